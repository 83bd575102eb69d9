/* Options and log output of the program. */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

#include "out.h"
#include "options.h"

bool vdi_parse_bytes(const char *text, int64_t *ret_bytes)
{
	static const struct {
		const char *name;
		int64_t	    factor;
	} units[] = { { "", 1 },	   { "b", 1 },		 { "k", 1024 },	     { "kib", 1024 },	 { "kb", 1000 },
		      { "m", 1 << 20 },	   { "mib", 1 << 20 },	 { "mb", 1000000 },  { "g", 1 << 30 },	 { "gib", 1 << 30 },
		      { "gb", 1000000000 } };
	char   *end;
	int64_t number;

	if (*text < '0' || *text > '9')
		return false;
	number = strtoll(text, &end, 10);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(units); i++)
		if (strcasecmp(end, units[i].name) == 0)
			return !__builtin_mul_overflow(number, units[i].factor, ret_bytes);
	return false;
}

bool vdi_parse_duration(const char *text, vd_dur *ret_duration)
{
	static const struct {
		const char *name;
		int64_t	    ns;
	} units[] = { { "ms", 1000000 }, { "us", 1000 }, { "ns", 1 }, { "s", 1000000000 }, { "m", 60000000000 }, { "h", 3600000000000 } };
	vd_dur total = { 0 };

	if (strcmp(text, "0") == 0) {
		*ret_duration = total;
		return true;
	}
	if (*text == 0)
		return false;
	while (*text) {
		char   *end;
		int64_t number, part = -1;

		if (*text < '0' || *text > '9')
			return false;
		number = strtoll(text, &end, 10);
		for (size_t i = 0; i < VDI_ARRAY_SIZE(units) && part < 0; i++) {
			size_t size = strlen(units[i].name);

			if (strncmp(end, units[i].name, size) != 0 || (end[size] && (end[size] < '0' || end[size] > '9')))
				continue;
			if (__builtin_mul_overflow(number, units[i].ns, &part) || __builtin_add_overflow(total.ns, part, &total.ns))
				return false;
			text = end + size;
		}
		if (part < 0)
			return false;
	}
	*ret_duration = total;
	return true;
}

static bool set_value(const struct vdi_option *option, const char *text)
{
	int64_t number;

	switch (option->kind) {
	case VDI_OPTION_FLAG: *(bool *) option->to = true; return text == NULL || strcmp(text, "true") == 0;
	case VDI_OPTION_TEXT: *(const char **) option->to = text; return true;
	case VDI_OPTION_BYTES: return vdi_parse_bytes(text, option->to);
	case VDI_OPTION_DURATION: return vdi_parse_duration(text, option->to);
	case VDI_OPTION_COUNT:
		if (!vdi_parse_bytes(text, &number) || number > UINT32_MAX)
			return false;
		*(unsigned *) option->to = (unsigned) number;
		return true;
	}
	return false;
}

bool vdi_options_parse(const char *command, const struct vdi_option *options, size_t option_count, int argc, char **argv, const char **operands,
		       size_t operand_max, size_t *ret_operand_count)
{
	size_t operand_count = 0;

	for (int i = 0; i < argc; i++) {
		const struct vdi_option *option = NULL;
		const char		*name = argv[i] + 2;
		const char		*equals = strchr(argv[i], '=');
		size_t			 size = equals ? (size_t) (equals - name) : strlen(argv[i]) - 2;
		const char		*value = equals ? equals + 1 : NULL;

		if (argv[i][0] != '-' || argv[i][1] == 0) {
			if (operand_count == operand_max) {
				(void) fprintf(stderr, "vedette %s: unexpected argument \"%s\"\n", command, argv[i]);
				return false;
			}
			operands[operand_count++] = argv[i];
			continue;
		}
		for (size_t j = 0; argv[i][1] == '-' && j < option_count; j++)
			if (strlen(options[j].name) == size && memcmp(options[j].name, name, size) == 0)
				option = &options[j];
		if (option == NULL) {
			(void) fprintf(stderr, "vedette %s: unknown option \"%s\"; see vedette %s --help\n", command, argv[i], command);
			return false;
		}
		if (option->kind != VDI_OPTION_FLAG && value == NULL)
			value = i + 1 < argc ? argv[++i] : NULL;
		if (option->kind != VDI_OPTION_FLAG && value == NULL) {
			(void) fprintf(stderr, "vedette %s: --%s needs a value\n", command, option->name);
			return false;
		}
		if (!set_value(option, value)) {
			(void) fprintf(stderr, "vedette %s: --%s: cannot understand \"%s\"\n", command, option->name, value);
			return false;
		}
	}
	if (ret_operand_count)
		*ret_operand_count = operand_count;
	return true;
}

void vdi_options_help(const struct vdi_option *options, size_t option_count)
{
	for (size_t i = 0; i < option_count; i++) {
		char left[64];

		(void) snprintf(left, sizeof left, "--%s%s%s", options[i].name, options[i].value ? " " : "", options[i].value ? options[i].value : "");
		(void) printf("  %-26s %s\n", left, options[i].help);
	}
}

bool vdi_parse_log_level(const char *text, enum vd_log_level *ret_level)
{
	static const char *const names[] = { "error", "warning", "info", "debug" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++)
		if (strcmp(text, names[i]) == 0) {
			*ret_level = (enum vd_log_level) i;
			return true;
		}
	return false;
}

static const char *const level_names[] = { "error", "warning", "info", "debug" };

static void format_time(vd_wall time, char text[40])
{
	time_t	  seconds = (time_t) (time.ns / 1000000000);
	struct tm parts;
	size_t	  size = gmtime_r(&seconds, &parts) ? strftime(text, 40, "%Y-%m-%dT%H:%M:%S", &parts) : 0;

	(void) snprintf(text + size, 40 - size, ".%03dZ", (int) (time.ns / 1000000 % 1000));
}

/* One write per record, so that records of several threads do not mix. */
void vdi_log_to_stderr(void *arg, const struct vd_log_record *record)
{
	struct vdi_out line = VDI_OUT_INIT;
	char		    time[40];

	(void) arg;
	format_time(record->time, time);
	vdi_out_printf(&line, "%s %-7s %s: %s", time, level_names[record->level], record->module, record->message);
	for (size_t i = 0; i < record->field_count; i++)
		vdi_out_printf(&line, " %s=%s", record->fields[i].key, record->fields[i].value);
	vdi_out_raw(&line, "\n");
	if (!line.failed)
		(void) fwrite(line.data, 1, line.size, stderr);
	vdi_out_fini(&line);
}

void vdi_log_to_stderr_json(void *arg, const struct vd_log_record *record)
{
	struct vdi_out line = VDI_OUT_INIT;
	char		    time[40];

	(void) arg;
	format_time(record->time, time);
	vdi_out_raw(&line, "{");
	vdi_out_member(&line, "time", vd_bytes_of(time));
	vdi_out_member(&line, "level", vd_bytes_of(level_names[record->level]));
	vdi_out_member(&line, "module", vd_bytes_of(record->module));
	vdi_out_member(&line, "message", vd_bytes_of(record->message));
	for (size_t i = 0; i < record->field_count; i++)
		vdi_out_member(&line, record->fields[i].key, vd_bytes_of(record->fields[i].value));
	vdi_out_raw(&line, "}\n");
	if (!line.failed)
		(void) fwrite(line.data, 1, line.size, stderr);
	vdi_out_fini(&line);
}
