/* Every word is converted to the form --name=value (or --name for a switch), so that later code does not
 * depend on its source. */
#include "etcd_arguments.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>

#include "yaml_tree.h"

#define EXPERIMENTAL "experimental-"
#define NAME_MAX_SIZE 64

#define ONE_MEMBER "one member has no peers and no elections"
#define NO_RAFT_LOG "one member has no log of raft"
#define NOT_BBOLT "the store is not bbolt"
#define NO_TRACES "no traces are sent"
#define NO_SLOW_LOG "slow requests are in the metrics, not in the log"
#define LOGS "logs go to standard error"

static const struct ignored {
	const char *name;
	bool	    is_switch;
	const char *why;
} ignored_flags[] = {
#define ETCD_FLAG(name, is_switch, why) { name, is_switch, why },
#include "etcd_flags.def"
#undef ETCD_FLAG
};

/* Options of this command that etcd does not have; they apply even with a configuration file. */
static const char *const own_names[] = { "listen",
					 "memory",
					 "restore",
					 "http-listen",
					 "insecure-no-auth",
					 "max-unsent-bytes",
					 "auto-compaction-interval",
					 "config-file",
					 "help",
					 "version" };

struct gathering {
	const struct vdi_command  *command;
	const struct vdi_option	  *options;
	size_t			   option_count;
	struct vdi_etcd_arguments *out;
	const char		  *config_file;
	const char		  *searched; /* searched option; is_found: the command line has it */
	bool			   is_found;
	int			   exit;
};

/* The option that a word names. */
struct flag {
	char		     name[NAME_MAX_SIZE]; /* as in vdi_command_parse */
	const char	    *why;		  /* not NULL: no effect, with the reason */
	bool		     is_known;
	bool		     is_switch;
	enum vdi_option_kind kind; /* of an option with an effect */
};

/* ---- Lists of texts ---- */

static bool push(char ***list, size_t *count, size_t *capacity, const char *format, va_list values)
{
	va_list again;
	int	size;
	char   *text;

	va_copy(again, values);
	size = vsnprintf(NULL, 0, format, again);
	va_end(again);
	text = size < 0 ? NULL : vdi_alloc((size_t) size + 1);
	if (text == NULL || !vdi_grow((void **) list, capacity, *count + 2, sizeof **list)) {
		vdi_free(text);
		return false;
	}
	(void) vsnprintf(text, (size_t) size + 1, format, values);
	(*list)[(*count)++] = text;
	(*list)[*count] = NULL;
	return true;
}

static bool no_memory(struct gathering *gathering)
{
	gathering->exit = vdi_command_failed(gathering->command, "out of memory");
	return false;
}

__attribute__((format(printf, 2, 3))) static bool add_word(struct gathering *gathering, const char *format,
							   ...)
{
	struct vdi_etcd_arguments *out = gathering->out;
	va_list			   values;
	bool			   fine;

	va_start(values, format);
	fine = push(&out->argv, &out->argc, &out->argv_capacity, format, values);
	va_end(values);
	return fine || no_memory(gathering);
}

/* Adds a warning, once for each text. */
__attribute__((format(printf, 2, 3))) static bool add_warning(struct gathering *gathering, const char *format,
							      ...)
{
	struct vdi_etcd_arguments *out = gathering->out;
	va_list			   values;
	bool			   fine;

	va_start(values, format);
	fine = push(&out->warnings, &out->warning_count, &out->warning_capacity, format, values);
	va_end(values);
	for (size_t i = 0; fine && i + 1 < out->warning_count; i++)
		if (strcmp(out->warnings[i], out->warnings[out->warning_count - 1]) == 0) {
			vdi_free(out->warnings[--out->warning_count]);
			break;
		}
	return fine || no_memory(gathering);
}

/* ---- Names ---- */

static bool find_exact(const struct gathering *gathering, const char *name, struct flag *flag)
{
	static const char *const common[] = { "log-level", "log-format", "help", "version", "config-file" };

	for (size_t i = 0; i < gathering->option_count; i++)
		if (strcmp(gathering->options[i].name, name) == 0) {
			flag->kind = gathering->options[i].kind;
			flag->is_switch = flag->kind == VDI_OPTION_FLAG;
			return true;
		}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(common); i++)
		if (strcmp(common[i], name) == 0) {
			flag->kind = VDI_OPTION_TEXT;
			flag->is_switch = i == 2 || i == 3;
			return true;
		}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(ignored_flags); i++)
		if (strcmp(ignored_flags[i].name, name) == 0) {
			flag->why = ignored_flags[i].why;
			flag->is_switch = ignored_flags[i].is_switch;
			return true;
		}
	return false;
}

static struct flag find(const struct gathering *gathering, const char *name, size_t size)
{
	struct flag flag = { .is_known = false };

	if (size >= sizeof flag.name)
		return flag;
	memcpy(flag.name, name, size);
	flag.name[size] = 0;
	flag.is_known = find_exact(gathering, flag.name, &flag);
	if (!flag.is_known && strncmp(flag.name, EXPERIMENTAL, sizeof EXPERIMENTAL - 1) == 0) {
		memmove(flag.name, flag.name + sizeof EXPERIMENTAL - 1, size - sizeof EXPERIMENTAL + 2);
		flag.is_known = find_exact(gathering, flag.name, &flag);
	}
	return flag;
}

static bool is_own(const char *name)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(own_names); i++)
		if (strcmp(own_names[i], name) == 0)
			return true;
	return false;
}

/* ---- The command line ---- */

typedef bool (*take_fn)(struct gathering *gathering, const struct flag *flag, const char *word,
			const char *value);

/* Calls take for each word that is an option, without its dashes, and with its value ("" for a switch alone;
 * NULL: missing). Calls other for the rest. */
static bool each_word(struct gathering *gathering, int argc, char *const *argv, take_fn take, take_fn other)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		size_t	    dashes = strspn(word, "-"), size = strcspn(word + dashes, "=");
		struct flag flag = { .is_known = false };
		const char *value;

		if (strcmp(word, "--") != 0 && (dashes == 1 || dashes == 2))
			flag = find(gathering, word + dashes, size);
		if (!flag.is_known) {
			if (other && !other(gathering, &flag, word, NULL))
				return false;
			continue;
		}
		value = word[dashes + size] == '=' ? word + dashes + size + 1 :
			flag.is_switch		   ? "" :
			i + 1 < argc		   ? argv[++i] :
						     NULL;
		if (!take(gathering, &flag, word + dashes, value))
			return false;
	}
	return true;
}

/* Adds "--name=value", or a warning. */
static bool take_flag(struct gathering *gathering, const struct flag *flag, const char *word,
		      const char *value)
{
	size_t size = strcspn(word, "=");

	if (flag->why)
		return add_warning(gathering, "--%.*s has no effect here: %s",
				   (int) VDI_MIN(size, (size_t) NAME_MAX_SIZE), word, flag->why);
	if (strcmp(flag->name, "config-file") == 0)
		return true;
	if (value == NULL || (flag->is_switch && *value == 0))
		return add_word(gathering, "--%s", flag->name);
	if (*value == 0) /* in etcd an empty value selects the default */
		return true;
	return add_word(gathering, "--%s=%s", flag->name, value);
}

static bool hand_on(struct gathering *gathering, const struct flag *flag, const char *word, const char *value)
{
	(void) flag;
	(void) value;
	return add_word(gathering, "%s", word);
}

static bool note_config_file(struct gathering *gathering, const struct flag *flag, const char *word,
			     const char *value)
{
	(void) word;
	if (strcmp(flag->name, "config-file") == 0)
		gathering->config_file = value;
	return true;
}

/* Handles the command line if there is a configuration file. */
static bool take_own(struct gathering *gathering, const struct flag *flag, const char *word,
		     const char *value)
{
	if (is_own(flag->name))
		return take_flag(gathering, flag, word, value);
	return add_warning(gathering, "--%s is ignored: the configuration file applies", flag->name);
}

/* ---- The environment ---- */

/* Reads "ETCD_LISTEN_CLIENT_URLS=x" as an option; *ret_value NULL: not a variable of etcd. */
static struct flag read_variable(const struct gathering *gathering, const char *variable,
				 const char **ret_value)
{
	char	    name[NAME_MAX_SIZE];
	const char *equals = strchr(variable, '=');
	size_t	    size = equals ? (size_t) (equals - variable) : 0;

	*ret_value = NULL;
	if (strncmp(variable, "ETCD_", 5) != 0 || size <= 5 || size - 5 >= sizeof name || equals[1] == 0)
		return (struct flag) { .is_known = false };
	*ret_value = equals + 1;
	for (size_t i = 5; i < size; i++)
		name[i - 5] = (char) (variable[i] == '_' ? '-' : tolower((unsigned char) variable[i]));
	return find(gathering, name, size - 5);
}

static bool compare_name(struct gathering *gathering, const struct flag *flag, const char *word,
			 const char *value)
{
	(void) word;
	(void) value;
	gathering->is_found = gathering->is_found || strcmp(gathering->searched, flag->name) == 0;
	return true;
}

static bool is_on_command_line(struct gathering *gathering, int argc, char *const *argv, const char *name)
{
	gathering->searched = name;
	gathering->is_found = false;
	(void) each_word(gathering, argc, argv, compare_name, NULL);
	return gathering->is_found;
}

static bool take_environment(struct gathering *gathering, int argc, char *const *argv,
			     char *const *environment)
{
	for (; *environment; environment++) {
		const char *value;
		struct flag flag = read_variable(gathering, *environment, &value);
		int	    size = (int) strcspn(*environment, "=");

		if (value == NULL)
			continue;
		if (!flag.is_known || is_own(flag.name)) {
			if (!add_warning(gathering, "%.*s is not a variable of etcd", size, *environment))
				return false;
		} else if (is_on_command_line(gathering, argc, argv, flag.name)) {
			gathering->exit = vdi_command_usage_error(
				gathering->command, "%.*s and --%s are both set: remove one of them", size,
				*environment, flag.name);
			return false;
		} else if (flag.why ? !add_warning(gathering, "%.*s has no effect here: %s", size,
						   *environment, flag.why) :
				      !add_word(gathering, "--%s=%s", flag.name, value)) {
			return false;
		}
	}
	return true;
}

/* ---- The configuration file ---- */

static bool bad_key(struct gathering *gathering, const char *key, const char *what)
{
	gathering->exit =
		vdi_command_usage_error(gathering->command, "%s: %s %s", gathering->config_file, key, what);
	return false;
}

static bool is_number(const char *text)
{
	return *text && text[strspn(text, "0123456789")] == 0;
}

/* Takes a string, or several joined by commas. Durations in the file are whole nanoseconds. */
static bool take_key(struct gathering *gathering, const char *key, const char *name, json_t *value)
{
	struct flag flag = find(gathering, name, strlen(name));
	char	    text[4096];
	size_t	    size = 0;
	json_t	   *item;
	size_t	    i;

	if (json_is_string(value)) {
		const char *only = json_string_value(value);

		if (*only == 0 || strcmp(only, "null") == 0 || strcmp(only, "~") == 0)
			return true;
		size = (size_t) snprintf(text, sizeof text, "%s", only);
	} else if (json_is_array(value)) {
		if (json_array_size(value) == 0)
			return true;
		json_array_foreach (value, i, item) {
			if (!json_is_string(item))
				return bad_key(gathering, key, "must be a list of strings");
			if (size < sizeof text)
				size += (size_t) snprintf(text + size, sizeof text - size, "%s%s",
							  i ? "," : "", json_string_value(item));
		}
	} else if (flag.why == NULL) {
		return bad_key(gathering, key, "must be a string or a list of strings");
	}
	if (size >= sizeof text)
		return bad_key(gathering, key, "is too long");
	if (!flag.is_known || is_own(name))
		return add_warning(gathering, "%s: %s is not an option of etcd", gathering->config_file, key);
	if (flag.why)
		return add_warning(gathering, "%s: %s has no effect here: %s", gathering->config_file, key,
				   flag.why);
	return add_word(gathering, "--%s=%s%s", flag.name, text,
			flag.kind == VDI_OPTION_DURATION && is_number(text) ? "ns" : "");
}

static bool take_client_security(struct gathering *gathering, json_t *section)
{
	const char *key;
	json_t	   *value;

	if (!json_is_object(section))
		return true; /* null */
	json_object_foreach (section, key, value) {
		const char *name =
			strcmp(key, "allowed-hostname") == 0 ? "client-cert-allowed-hostname" : key;

		/* Rejected, because ignoring it would allow more clients than intended. */
		if (strcmp(key, "allowed-cn") == 0 && json_array_size(value))
			return bad_key(gathering, "client-transport-security: allowed-cn",
				       "is not supported: use allowed-hostname, or users and roles");
		if (strcmp(key, "skip-client-san-verification") != 0 &&
		    !take_key(gathering, key, name, value))
			return false;
	}
	return true;
}

static bool take_config(struct gathering *gathering)
{
	struct vd_error error;
	const char     *key;
	json_t	       *tree, *value;
	bool		fine = true;

	if (vdi_yaml_tree_read(gathering->config_file, &tree, &error) != VD_OK) {
		gathering->exit =
			vdi_command_usage_error(gathering->command, "--config-file: %s", error.message);
		return false;
	}
	if (!json_is_object(tree))
		fine = bad_key(gathering, "the file", "must be a mapping");
	json_object_foreach (tree, key, value) {
		if (!fine)
			break;
		if (strcmp(key, "client-transport-security") == 0)
			fine = take_client_security(gathering, value);
		else if (strcmp(key, "peer-transport-security") == 0 ||
			 strcmp(key, "discovery-config") == 0 || strcmp(key, "socket-options") == 0)
			fine = !json_is_object(value) ||
			       add_warning(gathering, "%s: %s has no effect here: %s", gathering->config_file,
					   key, ONE_MEMBER);
		else
			fine = take_key(gathering, key, key, value);
	}
	json_decref(tree);
	return fine;
}

/* ---- All sources ---- */

static const char *config_file_of(char *const *environment)
{
	for (; *environment; environment++)
		if (strncmp(*environment, "ETCD_CONFIG_FILE=", 17) == 0 && (*environment)[17])
			return *environment + 17;
	return NULL;
}

static bool gather(struct gathering *gathering, int argc, char *const *argv, char *const *environment)
{
	if (!add_word(gathering, "%s", argv[0]) || !each_word(gathering, argc, argv, note_config_file, NULL))
		return false;
	if (gathering->config_file == NULL)
		gathering->config_file = config_file_of(environment);
	if (gathering->config_file)
		return take_config(gathering) && each_word(gathering, argc, argv, take_own, hand_on);
	return take_environment(gathering, argc, argv, environment) &&
	       each_word(gathering, argc, argv, take_flag, hand_on);
}

bool vdi_etcd_arguments_init(const struct vdi_command *command, const struct vdi_option *options,
			     size_t option_count, int argc, char *const *argv, char *const *environment,
			     struct vdi_etcd_arguments *arguments, int *ret_exit)
{
	struct gathering gathering = {
		.command = command, .options = options, .option_count = option_count, .out = arguments
	};

	memset(arguments, 0, sizeof *arguments);
	if (gather(&gathering, argc, argv, environment))
		return true;
	vdi_etcd_arguments_fini(arguments);
	*ret_exit = gathering.exit;
	return false;
}

void vdi_etcd_arguments_warn(const struct vdi_etcd_arguments *arguments, const struct vdi_log_settings *log)
{
	for (size_t i = 0; i < arguments->warning_count; i++)
		vdi_command_note(log, VD_LOG_WARNING, "%s", arguments->warnings[i]);
}

void vdi_etcd_arguments_fini(struct vdi_etcd_arguments *arguments)
{
	for (size_t i = 0; i < arguments->argc; i++)
		vdi_free(arguments->argv[i]);
	for (size_t i = 0; i < arguments->warning_count; i++)
		vdi_free(arguments->warnings[i]);
	vdi_free(arguments->argv);
	vdi_free(arguments->warnings);
	memset(arguments, 0, sizeof *arguments);
}
