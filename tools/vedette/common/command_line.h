/* The command line of all subcommands: options as tables, help made from the same tables, error messages and
 * exit statuses.
 *
 * Main thread only. Texts point into argv or are literals; nothing is owned.
 */
#ifndef VDI_COMMAND_LINE_H
#define VDI_COMMAND_LINE_H

#include "base.h"

/* Exit statuses of the program. */
enum vdi_exit { VDI_EXIT_OK = 0, VDI_EXIT_FAILED = 1, VDI_EXIT_USAGE = 2 };

enum vdi_option_kind {
	/* bool: "--name" is true; also "--name=false" and other values of Go's strconv.ParseBool */
	VDI_OPTION_FLAG,
	VDI_OPTION_TEXT,     /* const char * */
	VDI_OPTION_NUMBER,   /* int64_t, not negative */
	VDI_OPTION_CHOICE,   /* const char *, one of choices */
	VDI_OPTION_COUNT,    /* unsigned */
	VDI_OPTION_BYTES,    /* int64_t: "64MiB" */
	VDI_OPTION_DURATION, /* vd_dur: "1h30m" */
	VDI_OPTION_TEXTS,    /* struct vdi_texts: may be repeated */
};

/* The values of an option that may be repeated; the caller owns items, with space for count_max. */
struct vdi_texts {
	const char **items;
	size_t	     count;
	size_t	     count_max;
};

struct vdi_option {
	char		     letter; /* 0: none */
	const char	    *name;   /* without dashes */
	enum vdi_option_kind kind;
	const char	    *argument; /* name of the value in help; NULL for a flag */
	const char	    *help;     /* one sentence, including the default */
	void		    *target;
	const char	    *choices; /* "json|name|table" */
	bool		    *given;   /* may be NULL */
};

/* One subcommand. run gets its own argv: argv[0] is its name. */
struct vdi_command {
	const char *name;
	const char *summary; /* for the list of commands */
	const char *usage;   /* "vedette get [options] RESOURCE [NAME]" */
	const char *details; /* a few lines, or NULL */
	const char *examples;
	int (*run)(const struct vdi_command *command, int argc, char **argv);
};

/* The values of --log-level and --log-format, which every subcommand takes. */
struct vdi_log_settings {
	const char *level;
	const char *format;
};
#define VDI_LOG_SETTINGS_INIT                                                                                \
	{                                                                                                    \
		"info", "text"                                                                               \
	}

/* Parses argv with the table; options may appear anywhere before "--". Also handles --help, --version and the
 * log options. Other words become operands, in order. false: *ret_exit is the exit status (help was printed,
 * or an error was reported). */
bool vdi_command_parse(const struct vdi_command *command, const struct vdi_option *options,
		       size_t option_count, int argc, char **argv, const char **operands, size_t operand_max,
		       size_t *ret_operand_count, struct vdi_log_settings *log, int *ret_exit);
void vdi_command_help(const struct vdi_command *command, const struct vdi_option *options,
		      size_t option_count);
/* Prints the usage error and a hint at --help on stderr. Returns VDI_EXIT_USAGE. */
int vdi_command_usage_error(const struct vdi_command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* "vedette get: <text>" on stderr. Returns VDI_EXIT_FAILED. */
int vdi_command_failed(const struct vdi_command *command, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* "vedette get: <what>: <the error>" on stderr; what may be "". Returns VDI_EXIT_USAGE if the error is an
 * invalid argument or invalid input, otherwise VDI_EXIT_FAILED. */
int vdi_command_error(const struct vdi_command *command, const char *what, const struct vd_error *error);

/* A vd_log_fn that writes to stderr; arg: struct vdi_log_settings. */
void		  vdi_command_log(void *arg, const struct vd_log_record *record);
enum vd_log_level vdi_command_log_level(const struct vdi_log_settings *log);
/* Logs a record through vdi_command_log, for a program without an env. */
void vdi_command_note(const struct vdi_log_settings *log, enum vd_log_level level, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

extern const struct vdi_command vdi_command_serve;
#if VDI_ETCD
extern const struct vdi_command vdi_command_etcd;
#endif
extern const struct vdi_command vdi_command_get;
extern const struct vdi_command vdi_command_watch;
extern const struct vdi_command vdi_command_kubeconfig;
extern const struct vdi_command vdi_command_record;
extern const struct vdi_command vdi_command_verify;
extern const struct vdi_command vdi_command_replay;

#endif
