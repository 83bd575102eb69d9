/* Command line options, the same way for every subcommand: `--name value`, `--name=value`, `--flag`. */
#ifndef VDI_OPTIONS_H
#define VDI_OPTIONS_H

#include "base.h"

enum vdi_option_kind { VDI_OPTION_FLAG, VDI_OPTION_TEXT, VDI_OPTION_BYTES, VDI_OPTION_DURATION, VDI_OPTION_COUNT };

struct vdi_option {
	const char	    *name;  /* "listen", without the dashes */
	enum vdi_option_kind kind;
	const char	    *value; /* what stands for the value in the help text */
	const char	    *help;
	void		    *to;    /* bool, const char *, int64_t, vd_dur, unsigned */
};

/* Everything must be an option, but for up to operand_max operands, which are collected. False: a message was written to stderr (exit status 2). */
bool vdi_options_parse(const char *command, const struct vdi_option *options, size_t option_count, int argc, char **argv, const char **operands,
		       size_t operand_max, size_t *ret_operand_count);
void vdi_options_help(const struct vdi_option *options, size_t option_count);

/* "64MiB", "1g", "4096"; "10m", "1h30m", "500ms". */
bool vdi_parse_bytes(const char *text, int64_t *ret_bytes);
bool vdi_parse_duration(const char *text, vd_dur *ret_duration);

/* --log-level and --log-format, common to all. A log sink that writes to stderr. */
bool vdi_parse_log_level(const char *text, enum vd_log_level *ret_level);
void vdi_log_to_stderr(void *arg, const struct vd_log_record *record);
void vdi_log_to_stderr_json(void *arg, const struct vd_log_record *record);

#endif
