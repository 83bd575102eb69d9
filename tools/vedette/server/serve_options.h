/* The options of `vedette serve`. */
#ifndef VDI_SERVE_OPTIONS_H
#define VDI_SERVE_OPTIONS_H

#include "command_line.h"
#include "etcd_options.h"
#include "etcd_port.h"
#include "service_manager.h"

/* Texts point into argv or are literals. */
struct vdi_serve_options {
	const char		    *listen;
	const char		    *data_dir;
	const char		    *resources;
	const char		    *load;
	const char		    *encryption;
	bool			     strict; /* for --load */
	int64_t			     history_bytes;
	vd_dur			     history_window;
	vd_dur			     consistency_interval;
	unsigned		     client_requests, client_watches;
	int64_t			     client_bytes;
	unsigned		     requests, mutating_requests;
	bool			     no_compression;
	bool			     no_garbage_collector;
	const char		    *on_inconsistency;
	unsigned		     threads;
	bool			     memory;
	const char		    *tls_cert, *tls_key, *client_ca, *token_file, *policy;
	bool			     insecure_no_auth;
	const char		    *audit_log, *audit_level, *access_log;
	vd_dur			     shutdown_delay;
	struct vdi_service_manager   manager;
	struct vdi_etcd_settings     etcd;
	struct vdi_etcd_port_options port;
};

/* Parses argv, checks the options against each other, and derives those that follow from others. Also reads
 * the variables of the service manager. false: *ret_exit is the exit status (help was printed, or an error
 * was reported). */
bool vdi_serve_options_read(struct vdi_serve_options *options, const struct vdi_command *command, int argc,
			    char **argv, struct vdi_log_settings *log, int *ret_exit);

#endif
