/* Options are parsed by getopt's rules from the same table that prints the help. */
#include "command_line.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <vedette/vedette.h>

#include "json_text.h"
#include "units.h"

#define COMMON_COUNT 4

struct common {
	bool			 help, version;
	struct vdi_log_settings *log;
	struct vdi_option	 options[COMMON_COUNT];
};

static void common_init(struct common *common, struct vdi_log_settings *log)
{
	memset(common, 0, sizeof *common);
	common->log = log;
	common->options[0] =
		(struct vdi_option) { 0,
				      "log-level",
				      VDI_OPTION_CHOICE,
				      "LEVEL",
				      "lowest severity to log: error, warning, info or debug (default info)",
				      &log->level,
				      "error|warning|info|debug|warn|panic|fatal",
				      NULL };
	common->options[1] = (struct vdi_option) { 0,
						   "log-format",
						   VDI_OPTION_CHOICE,
						   "FORMAT",
						   "log format: text or json (default text)",
						   &log->format,
						   "text|json|console",
						   NULL };
	common->options[2] =
		(struct vdi_option) { 'h',  "help", VDI_OPTION_FLAG, NULL, "show this help", &common->help,
				      NULL, NULL };
	common->options[3] = (struct vdi_option) {
		0, "version", VDI_OPTION_FLAG, NULL, "show the version", &common->version, NULL, NULL
	};
}

/* ---- Help ---- */

static void print_option(const struct vdi_option *option)
{
	char left[64];
	int  length =
		snprintf(left, sizeof left, "  %c%c%s--%s%s%s", option->letter ? '-' : ' ',
			 option->letter ? option->letter : ' ', option->letter ? ", " : "  ", option->name,
			 option->argument ? " " : "", option->argument ? option->argument : "");

	if (length > 30)
		printf("%s\n%32s%s\n", left, "", option->help);
	else
		printf("%-32s%s\n", left, option->help);
}

void vdi_command_help(const struct vdi_command *command, const struct vdi_option *options,
		      size_t option_count)
{
	struct vdi_log_settings log = VDI_LOG_SETTINGS_INIT;
	struct common		common;

	common_init(&common, &log);
	printf("%s\n\nUsage: %s\n", command->summary, command->usage);
	if (command->details)
		printf("\n%s", command->details);
	printf("\nOptions:\n");
	for (size_t i = 0; i < option_count; i++)
		print_option(&options[i]);
	for (size_t i = 0; i < COMMON_COUNT; i++)
		print_option(&common.options[i]);
	if (command->examples)
		printf("\nExamples:\n%s", command->examples);
}

int vdi_command_usage_error(const struct vdi_command *command, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "vedette %s: ", command->name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, "\nTry: vedette %s --help\n", command->name);
	return VDI_EXIT_USAGE;
}

int vdi_command_failed(const struct vdi_command *command, const char *format, ...)
{
	va_list arguments;

	fprintf(stderr, "vedette %s: ", command->name);
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
	return VDI_EXIT_FAILED;
}

int vdi_command_error(const struct vdi_command *command, const char *what, const struct vd_error *error)
{
	(void) vdi_command_failed(command, "%s%s%s", what, *what ? ": " : "",
				  error->message[0] ? error->message : vd_status_sentence(error->code));
	return error->code == VD_INVALID || error->code == VD_INVALID_ARGUMENT ? VDI_EXIT_USAGE :
										 VDI_EXIT_FAILED;
}

/* ---- Options ---- */

static bool is_choice(const char *choices, const char *text)
{
	size_t size = strlen(text);

	for (const char *at = choices; *at;) {
		size_t length = strcspn(at, "|");

		if (length == size && memcmp(at, text, size) == 0)
			return true;
		at += length + (at[length] == '|');
	}
	return false;
}

/* As Go's strconv.ParseBool. */
static bool read_bool(const char *text, bool *ret_value)
{
	static const char *const words[][6] = { { "0", "f", "F", "false", "False", "FALSE" },
						{ "1", "t", "T", "true", "True", "TRUE" } };

	for (size_t value = 0; value < VDI_ARRAY_SIZE(words); value++)
		for (size_t i = 0; i < VDI_ARRAY_SIZE(words[value]); i++)
			if (strcmp(text, words[value][i]) == 0) {
				*ret_value = value == 1;
				return true;
			}
	return false;
}

/* Assigns an option's value; text NULL: a flag without a value. Returns false after reporting an error. */
static bool assign(const struct vdi_command *command, const struct vdi_option *option, const char *text)
{
	char	 *end;
	long long number;

	if (option->given)
		*option->given = true;
	switch (option->kind) {
	case VDI_OPTION_FLAG:
		if (!read_bool(text ? text : "true", option->target)) {
			(void) vdi_command_usage_error(command, "--%s must be true or false, not \"%s\"",
						       option->name, text);
			return false;
		}
		return true;
	case VDI_OPTION_TEXT: *(const char **) option->target = text; return true;
	case VDI_OPTION_CHOICE:
		if (!is_choice(option->choices, text)) {
			(void) vdi_command_usage_error(command, "--%s must be one of %s, not \"%s\"",
						       option->name, option->choices, text);
			return false;
		}
		*(const char **) option->target = text;
		return true;
	case VDI_OPTION_TEXTS:
		if (((struct vdi_texts *) option->target)->count ==
		    ((struct vdi_texts *) option->target)->count_max) {
			(void) vdi_command_usage_error(command, "--%s may be given %zu times at most",
						       option->name,
						       ((struct vdi_texts *) option->target)->count_max);
			return false;
		}
		((struct vdi_texts *) option->target)->items[((struct vdi_texts *) option->target)->count++] =
			text;
		return true;
	case VDI_OPTION_BYTES:
		if (!vdi_parse_bytes(text, option->target)) {
			(void) vdi_command_usage_error(
				command, "--%s must be a size such as 64MiB, not \"%s\"", option->name, text);
			return false;
		}
		return true;
	case VDI_OPTION_DURATION:
		if (!vdi_parse_duration(text, option->target)) {
			(void) vdi_command_usage_error(command,
						       "--%s must be a duration such as 1h30m, not \"%s\"",
						       option->name, text);
			return false;
		}
		return true;
	default:
		errno = 0;
		number = strtoll(text, &end, 10);
		if (*text < '0' || *text > '9' || *end || errno ||
		    (option->kind == VDI_OPTION_COUNT && number > UINT_MAX)) {
			(void) vdi_command_usage_error(command, "--%s must be a whole number, not \"%s\"",
						       option->name, text);
			return false;
		}
		if (option->kind == VDI_OPTION_COUNT)
			*(unsigned *) option->target = (unsigned) number;
		else
			*(int64_t *) option->target = number;
		return true;
	}
}

struct parser {
	const struct vdi_command *command;
	const struct vdi_option	 *options;
	size_t			  option_count;
	struct common		  common;
	int			  argc, at;
	char			**argv;
};

static const struct vdi_option *option_at(const struct parser *parser, size_t place)
{
	return place < parser->option_count ? &parser->options[place] :
	       place - parser->option_count < COMMON_COUNT ?
					      &parser->common.options[place - parser->option_count] :
					      NULL;
}

static const struct vdi_option *find_name(const struct parser *parser, const char *name, size_t size)
{
	const struct vdi_option *option;

	for (size_t i = 0; (option = option_at(parser, i)) != NULL; i++)
		if (strlen(option->name) == size && memcmp(option->name, name, size) == 0)
			return option;
	return NULL;
}

static const struct vdi_option *find_letter(const struct parser *parser, char letter)
{
	const struct vdi_option *option;

	for (size_t i = 0; (option = option_at(parser, i)) != NULL; i++)
		if (option->letter && option->letter == letter)
			return option;
	return NULL;
}

/* Takes an option. value: the value in the same word, or NULL. */
static bool take(struct parser *parser, const struct vdi_option *option, const char *value)
{
	if (option->kind != VDI_OPTION_FLAG && value == NULL) {
		if (parser->at + 1 >= parser->argc) {
			(void) vdi_command_usage_error(parser->command, "--%s needs a value (%s)",
						       option->name, option->argument);
			return false;
		}
		value = parser->argv[++parser->at];
	}
	return assign(parser->command, option, value);
}

static bool take_long(struct parser *parser, const char *word)
{
	size_t			 size = strcspn(word + 2, "=");
	const struct vdi_option *option = find_name(parser, word + 2, size);

	if (option == NULL) {
		(void) vdi_command_usage_error(parser->command, "unknown option --%.*s", (int) size,
					       word + 2);
		return false;
	}
	return take(parser, option, word[2 + size] == '=' ? word + 3 + size : NULL);
}

static bool take_letters(struct parser *parser, const char *word)
{
	for (const char *letter = word + 1; *letter; letter++) {
		const struct vdi_option *option = find_letter(parser, *letter);

		if (option == NULL) {
			(void) vdi_command_usage_error(parser->command, "unknown option -%c", *letter);
			return false;
		}
		if (option->kind != VDI_OPTION_FLAG)
			return take(parser, option, letter[1] ? letter + 1 + (letter[1] == '=') : NULL);
		if (!take(parser, option, NULL))
			return false;
	}
	return true;
}

bool vdi_command_parse(const struct vdi_command *command, const struct vdi_option *options,
		       size_t option_count, int argc, char **argv, const char **operands, size_t operand_max,
		       size_t *ret_operand_count, struct vdi_log_settings *log, int *ret_exit)
{
	struct parser parser = { .command = command,
				 .options = options,
				 .option_count = option_count,
				 .argc = argc,
				 .argv = argv };
	bool	      only_operands = false;
	size_t	      count = 0;

	common_init(&parser.common, log);
	*ret_exit = VDI_EXIT_USAGE;
	for (parser.at = 1; parser.at < argc; parser.at++) {
		const char *word = argv[parser.at];
		bool	    ok = true;

		if (only_operands || word[0] != '-' || word[1] == 0) {
			if (count == operand_max) {
				(void) vdi_command_usage_error(command, "unexpected argument \"%s\"", word);
				return false;
			}
			operands[count++] = word;
		} else if (strcmp(word, "--") == 0) {
			only_operands = true;
		} else {
			ok = word[1] == '-' ? take_long(&parser, word) : take_letters(&parser, word);
		}
		if (!ok)
			return false;
	}
	*ret_operand_count = count;
	*ret_exit = VDI_EXIT_OK;
	if (parser.common.help)
		vdi_command_help(command, options, option_count);
	else if (parser.common.version)
		printf("vedette %s\n", vd_version());
	return !parser.common.help && !parser.common.version;
}

/* ---- Logs ---- */

static const char *const level_names[] = { "error", "warning", "info", "debug" };

/* Maps the additional levels of Go's loggers. */
enum vd_log_level vdi_command_log_level(const struct vdi_log_settings *log)
{
	if (strcmp(log->level, "warn") == 0)
		return VD_LOG_WARNING;
	if (strcmp(log->level, "panic") == 0 || strcmp(log->level, "fatal") == 0)
		return VD_LOG_ERROR;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(level_names); i++)
		if (strcmp(log->level, level_names[i]) == 0)
			return (enum vd_log_level) i;
	return VD_LOG_INFO;
}

static void quote_to(char **line, const char *end, const char *text)
{
	size_t size = strlen(text);

	if ((size_t) (end - *line) > VDI_JSON_QUOTED_MAX(size))
		*line += vdi_json_quote((struct vd_bytes) { text, size }, *line);
	else
		*line = stpcpy(*line, "\"\"");
}

void vdi_command_log(void *arg, const struct vd_log_record *record)
{
	const struct vdi_log_settings *log = arg;
	bool			       json = strcmp(log->format, "json") == 0;
	time_t			       seconds = (time_t) (record->time.ns / 1000000000);
	struct tm		       utc;
	char			       time_text[32], line[8192], *at = line;
	const char		      *end = line + sizeof line - 128;

	gmtime_r(&seconds, &utc);
	strftime(time_text, sizeof time_text, "%Y-%m-%dT%H:%M:%S", &utc);
	if (json)
		at += snprintf(at, 256,
			       "{\"time\":\"%s.%03dZ\",\"level\":\"%s\",\"module\":\"%.64s\",\"message\":",
			       time_text, (int) (record->time.ns / 1000000 % 1000),
			       level_names[record->level], record->module);
	else
		at += snprintf(at, 256, "%s.%03dZ %-7s %.64s: ", time_text,
			       (int) (record->time.ns / 1000000 % 1000), level_names[record->level],
			       record->module);
	if (json)
		quote_to(&at, end, record->message);
	else
		at += snprintf(at, (size_t) (end - at), "%.2000s", record->message);
	for (size_t i = 0; i < record->field_count && end - at > 512; i++) {
		*at++ = json ? ',' : ' ';
		if (json) {
			quote_to(&at, end, record->fields[i].key);
			*at++ = ':';
			quote_to(&at, end, record->fields[i].value);
		} else {
			at += snprintf(at, 400, "%.100s=%.250s", record->fields[i].key,
				       record->fields[i].value);
		}
	}
	if (json)
		*at++ = '}';
	*at++ = '\n';
	fwrite(line, 1, (size_t) (at - line), stderr);
}

void vdi_command_note(const struct vdi_log_settings *log, enum vd_log_level level, const char *format, ...)
{
	char		     message[1024];
	va_list		     arguments;
	struct timespec	     now;
	struct vd_log_record record = { .level = level, .module = "vedette", .message = message };

	if (level > vdi_command_log_level(log))
		return;
	va_start(arguments, format);
	vsnprintf(message, sizeof message, format, arguments);
	va_end(arguments);
	clock_gettime(CLOCK_REALTIME, &now);
	record.time.ns = (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
	vdi_command_log((void *) log, &record);
}
