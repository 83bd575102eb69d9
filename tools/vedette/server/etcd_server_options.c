#include "etcd_server_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "auth.h"
#include "rpc_choice.h"
#include "units.h"

/* Splits a list at its commas. The text is kept in *kept. */
static bool split(const char *text, char **kept, const char **parts, size_t *ret_count)
{
	char *save = NULL;

	*ret_count = 0;
	*kept = vdi_strdup(text);
	if (*kept == NULL)
		return false;
	for (char *part = strtok_r(*kept, ",", &save); part; part = strtok_r(NULL, ",", &save)) {
		if (*ret_count == VDI_ETCD_URLS_MAX)
			return false;
		parts[(*ret_count)++] = part;
	}
	return *ret_count > 0;
}

/* Adds the addresses in a list of URLs to the listeners of their kind. */
static int add_listeners(const struct vdi_command *command, const struct vdi_etcd_server_options *options,
			 const char *option, const char *urls, struct vdi_etcd_listeners listeners[2])
{
	char   url[320];
	size_t size;

	for (const char *at = urls; *at; at += size + (at[size] == ',')) {
		struct vdi_etcd_listen	   parsed;
		struct vdi_etcd_listeners *to;
		const char		  *why;

		size = strcspn(at, ",");
		(void) snprintf(url, sizeof url, "%.*s", (int) VDI_MIN(size, sizeof url - 1), at);
		why = vdi_etcd_listen_parse(url, options->cert_file != NULL, &parsed);
		if (why)
			return vdi_command_usage_error(command, "--%s: \"%s\": %s", option, url, why);
		to = &listeners[parsed.is_tls];
		if (to->count == VDI_ETCD_URLS_MAX)
			return vdi_command_usage_error(command, "--%s: more than %d addresses", option,
						       VDI_ETCD_URLS_MAX);
		to->parsed[to->count] = parsed;
		to->addresses[to->count] = to->parsed[to->count].address;
		to->count++;
	}
	return VDI_EXIT_OK;
}

static int read_addresses(const struct vdi_command *command, struct vdi_etcd_server_options *options)
{
	const char *peer_urls = options->initial_advertise_peer_urls ? options->initial_advertise_peer_urls :
				options->listen_peer_urls	     ? options->listen_peer_urls :
								       "http://localhost:2380";
	const char *urls = options->listen	       ? options->listen :
			   options->listen_client_urls ? options->listen_client_urls :
							 "127.0.0.1:2379";
	int result = add_listeners(command, options, options->listen ? "listen" : "listen-client-urls", urls,
				   options->calls);

	if (result == VDI_EXIT_OK && options->http_listen)
		result = add_listeners(command, options, "http-listen", options->http_listen, options->http);
	if (result == VDI_EXIT_OK && options->listen_metrics_urls)
		result = add_listeners(command, options, "listen-metrics-urls", options->listen_metrics_urls,
				       options->http);
	if (result == VDI_EXIT_OK && options->listen_client_http_urls)
		result = add_listeners(command, options, "listen-client-http-urls",
				       options->listen_client_http_urls, options->http);
	if (result != VDI_EXIT_OK)
		return result;
	if (options->calls[0].count + options->calls[1].count == 0)
		return vdi_command_usage_error(
			command, "the listen addresses are not a list of addresses: \"%s\"", urls);
	if (options->advertise_client_urls && !split(options->advertise_client_urls, &options->texts[0],
						     options->client_urls, &options->client_url_count))
		return vdi_command_usage_error(command, "--advertise-client-urls is not a list of URLs");
	if (!split(peer_urls, &options->texts[1], options->peer_urls, &options->peer_url_count))
		return vdi_command_usage_error(command, "--%s is not a list of URLs",
					       options->initial_advertise_peer_urls ?
						       "initial-advertise-peer-urls" :
						       "listen-peer-urls");
	return VDI_EXIT_OK;
}

/* Rejects a cluster of several members: "a=http://x,a=http://y" is one member, but another name in it means
 * that the user expects shared data instead of a separate empty store. */
static int check_cluster(const struct vdi_command *command, const struct vdi_etcd_server_options *options)
{
	const char *first = options->initial_cluster;
	size_t	    size = first ? strcspn(first, "=") : 0;

	for (const char *at = first; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL)
		if (strncmp(at, first, size + 1) != 0)
			return vdi_command_usage_error(command,
						       "--initial-cluster names several members, but this is "
						       "always a single one: \"%s\"",
						       first);
	return VDI_EXIT_OK;
}

static int read_quota(const struct vdi_command *command, struct vdi_etcd_server_options *options)
{
	if (options->quota == NULL)
		return VDI_EXIT_OK;
	if (strncmp(options->quota, "-", 1) == 0 && strtoll(options->quota, NULL, 10) < 0)
		options->quota_bytes = -1;
	else if (!vdi_parse_bytes(options->quota, &options->quota_bytes))
		return vdi_command_usage_error(
			command,
			"--quota-backend-bytes must be a size such as 8GiB, or -1 for none, not \"%s\"",
			options->quota);
	return VDI_EXIT_OK;
}

/* Parses the retention as etcd does: a whole number of hours, or a duration, in mode periodic; a number of
 * revisions in mode revision. */
static int read_compaction(const struct vdi_command *command, struct vdi_etcd_server_options *options)
{
	bool		   is_revision = strcmp(options->compaction_mode, "revision") == 0;
	char		  *end;
	unsigned long long number;

	if (options->compaction_retention == NULL)
		return VDI_EXIT_OK;
	errno = 0;
	number = strtoull(options->compaction_retention, &end, 10);
	if (*end == 0 && *options->compaction_retention && errno == 0 && number < 1000000000000) {
		if (is_revision)
			options->compaction.revisions = (int64_t) number;
		else
			options->compaction.period = VD_SECONDS(3600 * VDI_MIN(number, 2000000));
		return VDI_EXIT_OK;
	}
	if (is_revision || !vdi_parse_duration(options->compaction_retention, &options->compaction.period))
		return vdi_command_usage_error(
			command,
			"--auto-compaction-retention \"%s\" is invalid for --auto-compaction-mode %s",
			options->compaction_retention, options->compaction_mode);
	return VDI_EXIT_OK;
}

static int read_options(const struct vdi_command *command, struct vdi_etcd_server_options *options)
{
	int result;

	if (options->memory && options->data_dir)
		return vdi_command_usage_error(command, "--memory and --data-dir exclude each other");
	if (!options->cert_file != !options->key_file)
		return vdi_command_usage_error(command, "--cert-file and --key-file must be given together");
	if (options->auto_tls && !options->cert_file)
		return vdi_command_usage_error(
			command, "--auto-tls is not supported: give --cert-file and --key-file");
	if (options->client_cert_auth && !(options->cert_file && options->trusted_ca_file))
		return vdi_command_usage_error(
			command, "--client-cert-auth requires --cert-file, --key-file and --trusted-ca-file");
	if (options->txn_ops_max > 128 || options->txn_ops_max < 1)
		return vdi_command_usage_error(command, "--max-txn-ops must be at most 128");
	if (options->bcrypt_cost < 4 || options->bcrypt_cost > 31)
		return vdi_command_usage_error(command, "--bcrypt-cost must be from 4 to 31");
	if (options->request_bytes_max < 1024 || options->request_bytes_max > (64 << 20))
		return vdi_command_usage_error(command, "--max-request-bytes must be from 1KiB to 64MiB");
	if (options->unsent_bytes_max < (1 << 20))
		return vdi_command_usage_error(command, "--max-unsent-bytes must be at least 1MiB");
	if (options->data_dir == NULL) {
		(void) snprintf(options->default_dir, sizeof options->default_dir, "./%s.etcd",
				options->name);
		options->data_dir = options->default_dir;
	}
	result = check_cluster(command, options);
	if (result == VDI_EXIT_OK)
		result = read_addresses(command, options);
	if (result == VDI_EXIT_OK)
		result = read_quota(command, options);
	return result == VDI_EXIT_OK ? read_compaction(command, options) : result;
}

static bool derive(struct vdi_etcd_server_options *options, const struct vdi_command *command,
		   const struct vdi_log_settings *log, int *ret_exit)
{
	size_t size;

	*ret_exit = read_options(command, options);
	if (*ret_exit == VDI_EXIT_OK && options->cert_file && options->calls[0].count)
		vdi_command_note(log, VD_LOG_WARNING,
				 "%s is plain text: certificates are for https and unixs",
				 options->calls[0].addresses[0]);
	if (*ret_exit == VDI_EXIT_OK && !options->memory) {
		size = strlen(options->data_dir) + sizeof "/etcd";
		options->state_path = vdi_alloc(size);
		if (options->state_path)
			(void) snprintf(options->state_path, size, "%s/etcd", options->data_dir);
		else
			*ret_exit = vdi_command_failed(command, "out of memory");
	}
	return *ret_exit == VDI_EXIT_OK;
}

static bool parse(struct vdi_etcd_server_options *options, const struct vdi_command *command, int argc,
		  char **argv, struct vdi_log_settings *log, int *ret_exit)
{
	const char	       *ignored;
	size_t			operand_count;
	const struct vdi_option table[] = {
		{ 0, "listen", VDI_OPTION_TEXT, "ADDR:PORT",
		  "listen address; port 0: chosen by the system (default 127.0.0.1:2379)", &options->listen },
		{ 0, "data-dir", VDI_OPTION_TEXT, "DIR", "directory of the store (default ./NAME.etcd)",
		  &options->data_dir },
		{ 0, "memory", VDI_OPTION_FLAG, NULL, "keep the store in memory only", &options->memory },
		{ 0, "restore", VDI_OPTION_TEXT, "FILE",
		  "restore a snapshot of etcd or vedette etcd into the store, which must be empty",
		  &options->restore },
		{ 0, "http-listen", VDI_OPTION_TEXT, "ADDR:PORT",
		  "additional address for /health, /version, /metrics, /livez and /readyz",
		  &options->http_listen },
		{ 0, "listen-metrics-urls", VDI_OPTION_TEXT, "URLS",
		  "URLs (http or https) for the paths of --http-listen", &options->listen_metrics_urls },
		{ 0, "listen-client-http-urls", VDI_OPTION_TEXT, "URLS",
		  "URLs for /health and the other HTTP paths, which client addresses then no longer serve",
		  &options->listen_client_http_urls },
		{ 0, "insecure-no-auth", VDI_OPTION_FLAG, NULL,
		  "allow addresses other than loopback without authentication", &options->insecure_no_auth },
		{ 0, "name", VDI_OPTION_TEXT, "NAME", "member name (default: default)", &options->name },
		{ 0, "listen-client-urls", VDI_OPTION_TEXT, "URLS",
		  "listen addresses as URLs (http, https, unix or unixs), instead of --listen",
		  &options->listen_client_urls },
		{ 0, "advertise-client-urls", VDI_OPTION_TEXT, "URLS",
		  "client URLs in the member list (default: the listen addresses)",
		  &options->advertise_client_urls },
		{ 0, "watch-progress-notify-interval", VDI_OPTION_DURATION, "DURATION",
		  "interval of progress notifications for idle watches (default 10m)",
		  &options->progress_interval },
		{ 0, "quota-backend-bytes", VDI_OPTION_TEXT, "SIZE",
		  "size of the store above which writes are refused (default 2GiB; -1: no quota)",
		  &options->quota },
		{ 0, "max-request-bytes", VDI_OPTION_BYTES, "SIZE",
		  "maximum size of one request (default 1.5MiB)", &options->request_bytes_max },
		{ 0, "max-unsent-bytes", VDI_OPTION_BYTES, "SIZE",
		  "maximum memory of all responses and events that clients have not read (default 1GiB)",
		  &options->unsent_bytes_max },
		{ 0, "max-txn-ops", VDI_OPTION_NUMBER, "N",
		  "maximum operations per transaction (default and maximum 128)", &options->txn_ops_max },
		VDI_RPC_OPTION(&options->rpc),
		{ 0, "max-concurrent-streams", VDI_OPTION_COUNT, "N",
		  "maximum concurrent streams per connection (default: no limit)", &options->streams_max },
		{ 0, "auto-compaction-mode", VDI_OPTION_CHOICE, "MODE",
		  "compaction mode: periodic or revision (default periodic)", &options->compaction_mode,
		  "periodic|revision" },
		{ 0, "auto-compaction-retention", VDI_OPTION_TEXT, "N",
		  "history to retain: hours or a duration, or a number of revisions in mode revision "
		  "(default "
		  "0: no compaction)",
		  &options->compaction_retention },
		{ 0, "auto-compaction-interval", VDI_OPTION_DURATION, "DURATION",
		  "interval of compactions in mode revision (default 5m)", &options->compaction.interval },
		{ 0, "cert-file", VDI_OPTION_TEXT, "FILE", "serve TLS with this certificate (PEM)",
		  &options->cert_file },
		{ 0, "key-file", VDI_OPTION_TEXT, "FILE", "private key for --cert-file (PEM)",
		  &options->key_file },
		{ 0, "trusted-ca-file", VDI_OPTION_TEXT, "FILE",
		  "CA bundle for verifying client certificates", &options->trusted_ca_file },
		{ 0, "client-crl-file", VDI_OPTION_TEXT, "FILE",
		  "revoked client certificates (PEM or DER); read for each connection",
		  &options->client_crl_file },
		{ 0, "client-cert-allowed-hostname", VDI_OPTION_TEXT, "NAMES",
		  "accept only client certificates that are valid for one of these host names",
		  &options->allowed_hostnames },
		{ 0, "cipher-suites", VDI_OPTION_TEXT, "NAMES",
		  "cipher suites of TLS 1.2, by IANA name (default: ECDHE with AES-GCM or ChaCha20)",
		  &options->cipher_suites },
		{ 0, "tls-min-version", VDI_OPTION_CHOICE, "VERSION",
		  "minimum TLS version: TLS1.2 or TLS1.3 (default TLS1.2)", &options->tls_min_version,
		  "TLS1.2|TLS1.3" },
		{ 0, "tls-max-version", VDI_OPTION_CHOICE, "VERSION",
		  "maximum TLS version: TLS1.2 or TLS1.3 (default TLS1.3)", &options->tls_max_version,
		  "TLS1.2|TLS1.3" },
		{ 0, "auto-tls", VDI_OPTION_FLAG, NULL, "not supported: use --cert-file and --key-file",
		  &options->auto_tls },
		{ 0, "client-cert-auth", VDI_OPTION_FLAG, NULL,
		  "require a client certificate; its common name is the user", &options->client_cert_auth },
		{ 0, "bcrypt-cost", VDI_OPTION_COUNT, "N", "cost of password hashes (default 10)",
		  &options->bcrypt_cost },
		{ 0, "auth-token-ttl", VDI_OPTION_COUNT, "SECONDS",
		  "lifetime of an unused token (default 300)", &options->token_ttl_s },
		{ 0, "grpc-keepalive-min-time", VDI_OPTION_DURATION, "DURATION",
		  "minimum interval between pings of a client (default 5s)", &options->ping_interval_min },
		{ 0, "grpc-keepalive-interval", VDI_OPTION_DURATION, "DURATION",
		  "interval of the server's pings (default 2h)", &options->keepalive_interval },
		{ 0, "grpc-keepalive-timeout", VDI_OPTION_DURATION, "DURATION",
		  "time without an answer to a ping until the connection is closed (default 20s)",
		  &options->keepalive_timeout },
		{ 0, "unsafe-no-fsync", VDI_OPTION_FLAG, NULL,
		  "answer writes before they are durable; for tests and benchmarks only", &options->no_sync },
		{ 0, "listen-peer-urls", VDI_OPTION_TEXT, "URLS",
		  "peer URLs in the member list; there are no peers", &options->listen_peer_urls },
		{ 0, "initial-advertise-peer-urls", VDI_OPTION_TEXT, "URLS",
		  "peer URLs in the member list, instead of --listen-peer-urls",
		  &options->initial_advertise_peer_urls },
		{ 0, "initial-cluster", VDI_OPTION_TEXT, "NAME=URL",
		  "name and peer URL of the only member; a list of several members is refused",
		  &options->initial_cluster },
		{ 0, "auth-token", VDI_OPTION_CHOICE, "KIND", "token type (simple)", &options->auth_token,
		  "simple" },
		{ 0, "metrics", VDI_OPTION_CHOICE, "LEVEL",
		  "metrics: basic, or extensive with call durations (default basic)", &options->metrics,
		  "basic|extensive" },
		{ 0, "config-file", VDI_OPTION_TEXT, "FILE",
		  "configuration file of etcd (YAML); etcd's options on the command line and ETCD_... "
		  "variables "
		  "are then ignored",
		  &ignored },
	};

	return vdi_etcd_arguments_init(command, table, VDI_ARRAY_SIZE(table), argc, argv, environ,
				       &options->arguments, ret_exit) &&
	       vdi_command_parse(command, table, VDI_ARRAY_SIZE(table), (int) options->arguments.argc,
				 options->arguments.argv, NULL, 0, &operand_count, log, ret_exit);
}

bool vdi_etcd_server_options_read(struct vdi_etcd_server_options *options, const struct vdi_command *command,
				  int argc, char **argv, struct vdi_log_settings *log, int *ret_exit)
{
	*options = (struct vdi_etcd_server_options) { .name = "default",
						      .compaction_mode = "periodic",
						      .progress_interval = VD_SECONDS(600),
						      .request_bytes_max = 3 << 19,
						      .unsent_bytes_max = 1 << 30,
						      .txn_ops_max = 128,
						      .bcrypt_cost = 10,
						      .token_ttl_s = 300,
						      .ping_interval_min = VD_SECONDS(5),
						      .keepalive_interval = VD_SECONDS(7200),
						      .keepalive_timeout = VD_SECONDS(20) };
	if (!parse(options, command, argc, argv, log, ret_exit))
		return false;
	vdi_etcd_arguments_warn(&options->arguments, log);
	return derive(options, command, log, ret_exit);
}

void vdi_etcd_server_options_fini(struct vdi_etcd_server_options *options)
{
	vdi_free(options->state_path);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(options->texts); i++)
		vdi_free(options->texts[i]);
	vdi_etcd_arguments_fini(&options->arguments);
}
