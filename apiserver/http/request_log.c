/* Assembles the JSON parts as soon as they are known, and joins them at the end. An audit event of a request
 * that was aborted before its response has the code 499 (as in nginx); upstream has no such code, because its
 * handlers respond even if the client is gone. */
#include "request_log.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <vedette/server.h>

#include "http_request.h"
#include "k8s_time.h"
#include "tree.h"

#define CODE_CUT 499
#define ID_SIZE 65

struct vdi_trail {
	struct vdi_trails   *trails;
	vd_wall		     received;
	vd_mono		     started;
	const char	    *verb;   /* Kubernetes' verb */
	const char	    *method; /* HTTP method */
	char		     version[4];
	char		     peer[INET6_ADDRSTRLEN];
	char		     id[ID_SIZE];
	char		     header[sizeof "Audit-Id: \r\n" + ID_SIZE];
	struct vdi_out	     uri, agent;
	struct vdi_out	     reference; /* members of objectRef; empty: none */
	bool		     has_name;
	struct vdi_identity *identity; /* one reference */
	bool		     is_decided, is_allowed;
	int		     level; /* audit level of this request */
	bool		     is_secret;
	int		     code;   /* 0: no response yet */
	struct vdi_out	     status; /* further members of responseStatus */
	struct vdi_out	     request_body, response_body;
	uint64_t	     sent_bytes;
};

/* ---- The logs ---- */

static vd_status open_one(struct vdi_trails *trails, const char *name, const char *path,
			  struct vdi_metric *taken, struct vdi_metric *lost, struct vdi_line_log **ret_log,
			  struct vd_error *reterr)
{
	const struct vdi_line_log_options options = {
		.name = name, .path = path, .taken = taken, .lost = lost
	};

	return path ? vdi_line_log_open(trails->env, &options, ret_log, reterr) : VD_OK;
}

static vd_status get_metrics(struct vdi_trails *trails)
{
	struct vdi_metrics *registry = vdi_env_metrics(trails->env);
	const char	   *plugin = "log";

	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_AUDIT_EVENT_TOTAL, NULL, &trails->audit_taken));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_AUDIT_ERROR_TOTAL, &plugin, &trails->audit_lost));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_ACCESS_LOG_LINES_TOTAL, NULL, &trails->access_taken));
	return vdi_metric_get(registry, VDI_METRIC_ACCESS_LOG_LOST_TOTAL, NULL, &trails->access_lost);
}

vd_status vdi_trails_open(const struct vd_env *env, const struct vd_server_options *options,
			  struct vdi_trails **ret_trails, struct vd_error *reterr)
{
	const char	  *audit = options->audit_level == VD_AUDIT_NONE ? NULL : options->audit_path;
	struct vdi_trails *trails;
	vd_status	   status = VD_OK;

	*ret_trails = NULL;
	if (options->audit_level < VD_AUDIT_NONE || options->audit_level > VD_AUDIT_REQUEST_RESPONSE)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "audit log: invalid level %d",
				    options->audit_level);
	if (audit == NULL && options->access_path == NULL)
		return VD_OK;
	trails = VDI_NEW(struct vdi_trails);
	if (trails == NULL)
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	*trails = (struct vdi_trails) { .env = env, .level = options->audit_level };
	if (get_metrics(trails) != VD_OK)
		status = vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	if (status == VD_OK)
		status = open_one(trails, "audit log", audit, trails->audit_taken, trails->audit_lost,
				  &trails->audit, reterr);
	if (status == VD_OK)
		status = open_one(trails, "access log", options->access_path, trails->access_taken,
				  trails->access_lost, &trails->access, reterr);
	if (status == VD_OK)
		*ret_trails = trails;
	else
		(void) vdi_trails_close(trails);
	return status;
}

struct vdi_trails *vdi_trails_close(struct vdi_trails *trails)
{
	if (trails == NULL)
		return NULL;
	(void) vdi_line_log_close(trails->audit);
	(void) vdi_line_log_close(trails->access);
	vdi_metric_release(trails->audit_taken);
	vdi_metric_release(trails->audit_lost);
	vdi_metric_release(trails->access_taken);
	vdi_metric_release(trails->access_lost);
	vdi_free(trails);
	return NULL;
}

void vdi_trails_reopen(struct vdi_trails *trails)
{
	if (trails == NULL)
		return;
	vdi_line_log_reopen(trails->audit);
	vdi_line_log_reopen(trails->access);
}

/* ---- Start ---- */

static const char *method_of(enum vdi_http_method method)
{
	switch (method) {
	case VDI_HTTP_GET: return "GET";
	case VDI_HTTP_HEAD: return "HEAD";
	case VDI_HTTP_POST: return "POST";
	case VDI_HTTP_PUT: return "PUT";
	case VDI_HTTP_PATCH: return "PATCH";
	case VDI_HTTP_DELETE: return "DELETE";
	case VDI_HTTP_OPTIONS: return "OPTIONS";
	default: return "OTHER";
	}
}

static void set_peer(int fd, char peer[INET6_ADDRSTRLEN])
{
	struct sockaddr_storage address = { 0 };
	socklen_t		size = sizeof address;

	peer[0] = 0;
	if (getpeername(fd, (struct sockaddr *) &address, &size) != 0)
		return;
	if (address.ss_family == AF_INET)
		(void) inet_ntop(AF_INET, &((struct sockaddr_in *) &address)->sin_addr, peer,
				 INET6_ADDRSTRLEN);
	else if (address.ss_family == AF_INET6)
		(void) inet_ntop(AF_INET6, &((struct sockaddr_in6 *) &address)->sin6_addr, peer,
				 INET6_ADDRSTRLEN);
}

/* Takes the client's audit ID if it has the form of one (upstream takes any, truncated at 64 bytes), else
 * makes a version 4 UUID. */
static void set_id(struct vdi_trail *trail, const struct vdi_request *request)
{
	struct vd_bytes given;
	uint64_t	high, low;

	if (vdi_http_header_get(&request->head, "Audit-ID", &given) && given.size && given.size < ID_SIZE) {
		const char *bytes = given.data;
		size_t	    i = 0;

		while (i < given.size && bytes[i] > ' ' && bytes[i] <= '~' && bytes[i] != '"' &&
		       bytes[i] != '\\')
			i++;
		if (i == given.size) {
			(void) snprintf(trail->id, sizeof trail->id, "%.*s", (int) given.size, bytes);
			return;
		}
	}
	high = (vd_env_random(trail->trails->env) & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
	low = (vd_env_random(trail->trails->env) & ~(UINT64_C(3) << 62)) | UINT64_C(2) << 62;
	(void) snprintf(trail->id, sizeof trail->id, "%08x-%04x-%04x-%04x-%012llx", (unsigned) (high >> 32),
			(unsigned) (high >> 16 & 0xffff), (unsigned) (high & 0xffff), (unsigned) (low >> 48),
			(unsigned long long) (low & UINT64_C(0xffffffffffff)));
}

static bool is(struct vd_bytes text, const char *wanted)
{
	return vd_bytes_equal(text, vd_bytes_of(wanted));
}

/* Returns true if the bodies are secrets or hold tokens. */
static bool is_secret(const struct vdi_route *route)
{
	if (route->group.size == 0)
		return is(route->plural, "secrets") ||
		       (is(route->plural, "serviceaccounts") && is(route->subresource, "token"));
	return is(route->group, "authentication.k8s.io");
}

static void set_reference(struct vdi_trail *trail, const struct vdi_route *route)
{
	struct vdi_out *out = &trail->reference;

	vdi_out_raw(out, "{");
	vdi_out_member(out, "resource", route->plural);
	vdi_out_member(out, "namespace", route->namespace_name);
	vdi_out_member(out, "name", route->name);
	vdi_out_member(out, "apiGroup", route->group);
	vdi_out_member(out, "apiVersion", route->version);
	vdi_out_member(out, "subresource", route->subresource);
	trail->has_name = route->name.size > 0;
}

/* Returns true for parameters in which clients send credentials, though this server reads none. */
static bool is_credential(struct vd_bytes name)
{
	static const char *const names[] = { "token",	   "access_token",  "id_token", "refresh_token",
					     "auth_token", "authorization", "bearer",	"api_key",
					     "apikey",	   "client_secret", "secret",	"password",
					     "passwd",	   "signature",	    "sig" };
	char			 decoded[64]; /* enough if each character is escaped */
	size_t			 size;

	if (name.size > sizeof decoded || !vdi_percent_decode(name, true, decoded, &size))
		return name.size <= sizeof decoded; /* assume so if it cannot be decoded */
	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++) {
		if (vdi_ascii_equal_fold((struct vd_bytes) { decoded, size }, names[i]))
			return true;
	}
	return false;
}

/* Writes the query as received, without credentials. */
static void write_query(struct vdi_out *out, struct vd_bytes query)
{
	const char *at = query.data;
	const char *end = at + query.size;

	while (at < end) {
		const char     *next = memchr(at, '&', (size_t) (end - at));
		const char     *stop = next ? next : end;
		const char     *equals = memchr(at, '=', (size_t) (stop - at));
		struct vd_bytes name = { at, (size_t) ((equals ? equals : stop) - at) };

		if (equals && is_credential(name)) {
			vdi_out_bytes(out, name);
			vdi_out_raw(out, "=REDACTED");
			if (next)
				vdi_out_raw(out, "&");
		} else
			vdi_out_bytes(out, (struct vd_bytes) { at, (size_t) ((next ? next + 1 : end) - at) });
		at = next ? next + 1 : end;
	}
}

struct vdi_trail *vdi_trail_begin(const struct vdi_request *request)
{
	struct vdi_trails *trails = request->server->trails;
	struct vdi_trail  *trail;
	struct vd_bytes	   agent;

	if (trails == NULL)
		return NULL;
	trail = VDI_NEW(struct vdi_trail);
	if (trail == NULL) {
		vdi_metric_add(trails->audit ? trails->audit_lost : NULL, 1);
		vdi_metric_add(trails->access ? trails->access_lost : NULL, 1);
		return NULL;
	}
	trail->trails = trails;
	trail->received = vd_env_wall(trails->env);
	trail->started = vd_env_now(trails->env);
	trail->method = method_of(request->head.method);
	trail->verb = vdi_request_verb(request);
	(void) snprintf(trail->version, sizeof trail->version, "1.%d", !request->head.version_1_0);
	set_peer(request->connection->fd, trail->peer);
	set_id(trail, request);
	(void) snprintf(trail->header, sizeof trail->header, "Audit-Id: %s\r\n",
			trails->audit ? trail->id : "");
	vdi_out_bytes(&trail->uri, request->head.path);
	if (request->head.query.size) {
		vdi_out_raw(&trail->uri, "?");
		write_query(&trail->uri, request->head.query);
	}
	if (vdi_http_header_get(&request->head, "User-Agent", &agent))
		vdi_out_bytes(&trail->agent, agent);
	trail->level = trails->level;
	if (request->route.kind == VDI_ROUTE_RESOURCE) {
		set_reference(trail, &request->route);
		trail->is_secret = is_secret(&request->route);
		if (trail->is_secret)
			trail->level = VDI_MIN(trail->level, VD_AUDIT_METADATA);
	}
	return trail;
}

/* ---- Facts about the request ---- */

void vdi_trail_decided(struct vdi_trail *trail, struct vdi_identity *identity, bool is_allowed)
{
	if (trail == NULL)
		return;
	(void) vdi_identity_unref(trail->identity);
	trail->identity = vdi_identity_ref(identity);
	trail->is_decided = true;
	trail->is_allowed = is_allowed;
}

void vdi_trail_named(struct vdi_trail *trail, const char *name)
{
	if (trail == NULL || trail->has_name || trail->reference.size == 0)
		return;
	vdi_out_member(&trail->reference, "name", vd_bytes_of(name));
	trail->has_name = true;
}

/* Writes json on one line; nothing if it is not JSON. */
static void copy_json(struct vd_bytes json, struct vdi_out *out)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	vd_status	 status = vdi_tree_parse(&tree, json, &root, NULL);

	vdi_out_reset(out);
	if (status == VD_OK)
		vdi_tree_write(out, root);
	out->failed |= status == VD_NOMEM;
	vdi_tree_fini(&tree);
}

void vdi_trail_request_body(struct vdi_trail *trail, struct vd_bytes json)
{
	if (trail && trail->trails->audit && trail->level >= VD_AUDIT_REQUEST && json.size)
		copy_json(json, &trail->request_body);
}

bool vdi_trail_wants_response(const struct vdi_trail *trail)
{
	return trail && trail->trails->audit && trail->level >= VD_AUDIT_REQUEST_RESPONSE;
}

void vdi_trail_response_body(struct vdi_trail *trail, struct vd_bytes json)
{
	if (vdi_trail_wants_response(trail))
		copy_json(json, &trail->response_body);
}

void vdi_trail_answered(struct vdi_trail *trail, int code)
{
	if (trail)
		trail->code = code;
}

void vdi_trail_status(struct vdi_trail *trail, const struct vdi_http_status *status)
{
	if (trail == NULL || trail->trails->audit == NULL)
		return;
	vdi_out_reset(&trail->status);
	vdi_out_printf(&trail->status, ",\"status\":\"%s\"", status->success ? "Success" : "Failure");
	if (!trail->is_secret) /* the message of an invalid body may quote it */
		vdi_out_member(&trail->status, "message",
			       status->long_message.size ? status->long_message :
							   vd_bytes_of(status->message));
	vdi_out_member(&trail->status, "reason", vd_bytes_of(status->reason ? status->reason : ""));
}

void vdi_trail_sent(struct vdi_trail *trail, size_t size_bytes)
{
	if (trail)
		trail->sent_bytes += size_bytes;
}

const char *vdi_trail_header(const struct vdi_trail *trail)
{
	return trail && trail->trails->audit ? trail->header : "";
}

/* ---- Audit ---- */

static void write_time(struct vdi_out *out, const char *key, vd_wall time)
{
	char	text[VDI_K8S_TIME_SIZE];
	int64_t seconds = time.ns / 1000000000;
	size_t	size = vdi_k8s_time_write(seconds, (int32_t) (time.ns % 1000000000 / 1000), text);

	vdi_out_member(out, key, (struct vd_bytes) { text, size });
}

static void write_body(struct vdi_out *out, const char *key, const struct vdi_out *body)
{
	out->failed |= body->failed;
	if (body->size == 0)
		return;
	vdi_out_key(out, key);
	vdi_out_bytes(out, vdi_out_slice(body));
}

static void write_event(struct vdi_out *out, const struct vdi_trail *trail, const char *stage)
{
	static const char *const levels[] = { "None", "Metadata", "Request", "RequestResponse" };

	vdi_out_printf(out, "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":\"%s\"",
		       levels[trail->level]);
	vdi_out_member(out, "auditID", vd_bytes_of(trail->id));
	vdi_out_member(out, "stage", vd_bytes_of(stage));
	vdi_out_member(out, "requestURI", vdi_out_slice(&trail->uri));
	vdi_out_member(out, "verb", vd_bytes_of(trail->verb));
	vdi_identity_write(out, "user", trail->identity);
	if (trail->peer[0])
		vdi_out_printf(out, ",\"sourceIPs\":[\"%s\"]", trail->peer);
	vdi_out_member(out, "userAgent", vdi_out_slice(&trail->agent));
	if (trail->reference.size) {
		vdi_out_key(out, "objectRef");
		vdi_out_bytes(out, vdi_out_slice(&trail->reference));
		vdi_out_raw(out, "}");
	}
	vdi_out_raw(out, ",\"responseStatus\":{\"metadata\":{}");
	if (trail->code)
		vdi_out_bytes(out, vdi_out_slice(&trail->status));
	else
		vdi_out_raw(out, ",\"status\":\"Failure\",\"message\":\"the connection was closed before the "
				 "answer\"");
	vdi_out_printf(out, ",\"code\":%d}", trail->code ? trail->code : CODE_CUT);
	write_body(out, "requestObject", &trail->request_body);
	write_body(out, "responseObject", &trail->response_body);
	write_time(out, "requestReceivedTimestamp", trail->received);
	write_time(out, "stageTimestamp", vd_env_wall(trail->trails->env));
	if (trail->is_decided)
		vdi_out_printf(out,
			       ",\"annotations\":{\"authorization.k8s.io/"
			       "decision\":\"%s\",\"authorization.k8s.io/reason\":\"\"}",
			       trail->is_allowed ? "allow" : "forbid");
	vdi_out_raw(out, "}");
	out->failed |=
		trail->uri.failed || trail->agent.failed || trail->reference.failed || trail->status.failed;
}

static void log_event(const struct vdi_trail *trail, const char *stage)
{
	struct vdi_out line = VDI_OUT_INIT;

	if (trail->trails->audit == NULL)
		return;
	write_event(&line, trail, stage);
	if (line.failed)
		vdi_metric_add(trail->trails->audit_lost, 1);
	else
		vdi_line_log_put(trail->trails->audit, vdi_out_slice(&line));
	vdi_out_fini(&line);
}

void vdi_trail_streams(struct vdi_trail *trail)
{
	if (trail)
		log_event(trail, "ResponseStarted");
}

/* ---- Access log ---- */

/* Writes quotes, backslashes, bytes below first and other non-printable ASCII as \xHH, as web servers do. */
static void write_escaped(struct vdi_out *out, struct vd_bytes text, unsigned char first)
{
	const unsigned char *bytes = text.data;
	size_t		     plain = 0; /* start of the bytes that need no escape */

	for (size_t i = 0; i < text.size; i++) {
		if (bytes[i] >= first && bytes[i] <= '~' && bytes[i] != '"' && bytes[i] != '\\')
			continue;
		vdi_out_bytes(out, (struct vd_bytes) { bytes + plain, i - plain });
		vdi_out_printf(out, "\\x%02X", bytes[i]);
		plain = i + 1;
	}
	if (text.size > plain)
		vdi_out_bytes(out, (struct vd_bytes) { bytes + plain, text.size - plain });
}

static void write_quoted(struct vdi_out *out, struct vd_bytes text)
{
	write_escaped(out, text, ' ');
}

/* Writes a word of the line: blanks are escaped too, because they separate words. */
static void write_word(struct vdi_out *out, const char *text)
{
	write_escaped(out, vd_bytes_of(*text ? text : "-"), '!');
}

static void write_common_time(struct vdi_out *out, vd_wall wall)
{
	time_t	  seconds = (time_t) (wall.ns / 1000000000);
	struct tm parts;
	char	  text[64] = "-";

	if (gmtime_r(&seconds, &parts))
		(void) strftime(text, sizeof text, "%d/%b/%Y:%H:%M:%S +0000", &parts);
	vdi_out_printf(out, "[%s]", text);
}

static void put_access(struct vdi_trails *trails, struct vdi_out *line)
{
	if (line->failed)
		vdi_metric_add(trails->access_lost, 1);
	else
		vdi_line_log_put(trails->access, vdi_out_slice(line));
	vdi_out_fini(line);
}

static void log_access(const struct vdi_trail *trail)
{
	struct vdi_out line = VDI_OUT_INIT;
	vd_dur	       took = vd_mono_since(vd_env_now(trail->trails->env), trail->started);

	if (trail->trails->access == NULL)
		return;
	write_word(&line, trail->peer);
	vdi_out_raw(&line, " - ");
	write_word(&line, trail->identity ? trail->identity->user : "");
	vdi_out_raw(&line, " ");
	write_common_time(&line, trail->received);
	vdi_out_printf(&line, " \"%s ", trail->method);
	write_quoted(&line, vdi_out_slice(&trail->uri));
	vdi_out_printf(&line, " HTTP/%s\" %d %llu \"-\" \"", trail->version,
		       trail->code ? trail->code : CODE_CUT, (unsigned long long) trail->sent_bytes);
	write_quoted(&line, vdi_out_slice(&trail->agent));
	vdi_out_printf(&line, "\" %lld.%06lld ", (long long) (took.ns / 1000000000),
		       (long long) (took.ns % 1000000000 / 1000));
	write_word(&line, trail->id);
	line.failed |= trail->uri.failed || trail->agent.failed;
	put_access(trail->trails, &line);
}

void vdi_trail_refused(const struct vdi_http_connection *connection, int code)
{
	struct vdi_trails *trails = connection->loop->server->trails;
	struct vdi_out	   line = VDI_OUT_INIT;
	char		   peer[INET6_ADDRSTRLEN];

	if (trails == NULL || trails->access == NULL)
		return;
	set_peer(connection->fd, peer);
	write_word(&line, peer);
	vdi_out_raw(&line, " - - ");
	write_common_time(&line, vd_env_wall(trails->env));
	vdi_out_printf(&line, " \"-\" %d 0 \"-\" \"-\" 0.000000 -", code);
	put_access(trails, &line);
}

/* ---- End ---- */

struct vdi_trail *vdi_trail_end(struct vdi_trail *trail)
{
	if (trail == NULL)
		return NULL;
	log_event(trail, "ResponseComplete");
	log_access(trail);
	(void) vdi_identity_unref(trail->identity);
	vdi_out_fini(&trail->uri);
	vdi_out_fini(&trail->agent);
	vdi_out_fini(&trail->reference);
	vdi_out_fini(&trail->status);
	vdi_out_fini(&trail->request_body);
	vdi_out_fini(&trail->response_body);
	vdi_free(trail);
	return NULL;
}
