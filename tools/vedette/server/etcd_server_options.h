/* The options of `vedette etcd`, as an etcd takes them: from the command line, the environment or a
 * configuration file (etcd_arguments.h). */
#ifndef VDI_ETCD_SERVER_OPTIONS_H
#define VDI_ETCD_SERVER_OPTIONS_H

#include "auto_compaction.h"
#include "command_line.h"
#include "etcd_arguments.h"
#include "etcd_port.h"

#define VDI_ETCD_URLS_MAX 16

struct vdi_etcd_listeners {
	struct vdi_etcd_listen parsed[VDI_ETCD_URLS_MAX];
	const char	      *addresses[VDI_ETCD_URLS_MAX];
	size_t		       count;
};

struct vdi_etcd_server_options {
	const char *listen;
	const char *listen_client_urls;
	const char *advertise_client_urls;
	const char *listen_peer_urls;
	const char *initial_advertise_peer_urls;
	const char *initial_cluster;
	const char *name;
	const char *data_dir;
	const char *http_listen;
	const char *restore;
	const char *listen_metrics_urls;
	const char *listen_client_http_urls;
	const char *quota;
	const char *compaction_mode;
	const char *compaction_retention;
	const char *cert_file;
	const char *key_file;
	const char *trusted_ca_file;
	const char *client_crl_file;
	const char *allowed_hostnames;
	const char *cipher_suites;
	const char *tls_min_version;
	const char *tls_max_version;
	const char *auth_token;
	const char *metrics;
	vd_dur	    progress_interval;
	int64_t	    request_bytes_max;
	int64_t	    unsent_bytes_max;
	int64_t	    txn_ops_max;
	unsigned    streams_max;
	const char *rpc;
	unsigned    bcrypt_cost;
	unsigned    token_ttl_s;
	vd_dur	    ping_interval_min;
	vd_dur	    keepalive_interval;
	vd_dur	    keepalive_timeout;
	bool	    memory;
	bool	    client_cert_auth;
	bool	    auto_tls;
	bool	    insecure_no_auth;
	bool	    no_sync;

	/* Derived from the texts above. */
	struct vdi_etcd_arguments	   arguments; /* owns the texts */
	char				  *texts[2];  /* owned: the lists of URLs below point into them */
	struct vdi_etcd_listeners	   calls[2];  /* plain, TLS */
	struct vdi_etcd_listeners	   http[2];
	const char			  *client_urls[VDI_ETCD_URLS_MAX];
	size_t				   client_url_count;
	const char			  *peer_urls[VDI_ETCD_URLS_MAX];
	size_t				   peer_url_count;
	int64_t				   quota_bytes;
	struct vdi_auto_compaction_options compaction;
	char				   default_dir[256];
	char				  *state_path;
};

/* Parses the arguments, checks the options against each other, and derives those that follow from others.
 * false: *ret_exit is the exit status (help was printed, or an error was reported). The caller frees *options
 * in both cases. */
bool vdi_etcd_server_options_read(struct vdi_etcd_server_options *options, const struct vdi_command *command,
				  int argc, char **argv, struct vdi_log_settings *log, int *ret_exit);
/* Accepts a zeroed struct. */
void vdi_etcd_server_options_fini(struct vdi_etcd_server_options *options);

#endif
