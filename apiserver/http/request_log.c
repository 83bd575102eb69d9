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

struct vdi_request_log {
	struct vdi_request_logs *request_logs;
	vd_wall			 received;
	vd_mono			 started;
	const char		*verb;	 /* Kubernetes' verb */
	const char		*method; /* HTTP method */
	char			 version[4];
	char			 peer[INET6_ADDRSTRLEN];
	char			 id[ID_SIZE];
	char			 header[sizeof "Audit-Id: \r\n" + ID_SIZE];
	struct vdi_out		 uri, agent;
	struct vdi_out		 reference; /* members of objectRef; empty: none */
	bool			 has_name;
	struct vdi_identity	*identity; /* one reference */
	bool			 is_decided, is_allowed;
	int			 level; /* audit level of this request */
	bool			 is_secret;
	int			 code;	 /* 0: no response yet */
	struct vdi_out		 status; /* further members of responseStatus */
	struct vdi_out		 request_body, response_body;
	uint64_t		 sent_bytes;
};

/* ---- The logs ---- */

static vd_status open_one(struct vdi_request_logs *request_logs, const char *name, const char *path,
			  struct vdi_metric *taken, struct vdi_metric *lost, struct vdi_async_log **ret_log,
			  struct vd_error *reterr)
{
	const struct vdi_async_log_options options = {
		.name = name, .path = path, .taken = taken, .lost = lost
	};

	return path ? vdi_async_log_open(request_logs->env, &options, ret_log, reterr) : VD_OK;
}

static vd_status get_metrics(struct vdi_request_logs *request_logs)
{
	struct vdi_metrics *registry = vdi_env_metrics(request_logs->env);
	const char	   *plugin = "log";

	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_AUDIT_EVENT_TOTAL, NULL, &request_logs->audit_taken));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_AUDIT_ERROR_TOTAL, &plugin, &request_logs->audit_lost));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_ACCESS_LOG_LINES_TOTAL, NULL,
			       &request_logs->access_taken));
	return vdi_metric_get(registry, VDI_METRIC_ACCESS_LOG_LOST_TOTAL, NULL, &request_logs->access_lost);
}

vd_status vdi_request_logs_open(const struct vd_env *env, const struct vd_server_options *options,
				struct vdi_request_logs **ret_request_logs, struct vd_error *reterr)
{
	const char		*audit = options->audit_level == VD_AUDIT_NONE ? NULL : options->audit_path;
	struct vdi_request_logs *request_logs;
	vd_status		 status = VD_OK;

	*ret_request_logs = NULL;
	if (options->audit_level < VD_AUDIT_NONE || options->audit_level > VD_AUDIT_REQUEST_RESPONSE)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "audit log: invalid level %d",
				    options->audit_level);
	if (audit == NULL && options->access_path == NULL)
		return VD_OK;
	request_logs = VDI_NEW(struct vdi_request_logs);
	if (request_logs == NULL)
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	*request_logs = (struct vdi_request_logs) { .env = env, .level = options->audit_level };
	if (get_metrics(request_logs) != VD_OK)
		status = vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	if (status == VD_OK)
		status = open_one(request_logs, "audit log", audit, request_logs->audit_taken,
				  request_logs->audit_lost, &request_logs->audit, reterr);
	if (status == VD_OK)
		status =
			open_one(request_logs, "access log", options->access_path, request_logs->access_taken,
				 request_logs->access_lost, &request_logs->access, reterr);
	if (status == VD_OK)
		*ret_request_logs = request_logs;
	else
		(void) vdi_request_logs_close(request_logs);
	return status;
}

struct vdi_request_logs *vdi_request_logs_close(struct vdi_request_logs *request_logs)
{
	if (request_logs == NULL)
		return NULL;
	(void) vdi_async_log_close(request_logs->audit);
	(void) vdi_async_log_close(request_logs->access);
	vdi_metric_release(request_logs->audit_taken);
	vdi_metric_release(request_logs->audit_lost);
	vdi_metric_release(request_logs->access_taken);
	vdi_metric_release(request_logs->access_lost);
	vdi_free(request_logs);
	return NULL;
}

void vdi_request_logs_reopen(struct vdi_request_logs *request_logs)
{
	if (request_logs == NULL)
		return;
	vdi_async_log_reopen(request_logs->audit);
	vdi_async_log_reopen(request_logs->access);
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
static void set_id(struct vdi_request_log *request_log, const struct vdi_request *request)
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
			(void) snprintf(request_log->id, sizeof request_log->id, "%.*s", (int) given.size,
					bytes);
			return;
		}
	}
	high = (vd_env_random(request_log->request_logs->env) & ~UINT64_C(0xf000)) | UINT64_C(0x4000);
	low = (vd_env_random(request_log->request_logs->env) & ~(UINT64_C(3) << 62)) | UINT64_C(2) << 62;
	(void) snprintf(request_log->id, sizeof request_log->id, "%08x-%04x-%04x-%04x-%012llx",
			(unsigned) (high >> 32), (unsigned) (high >> 16 & 0xffff), (unsigned) (high & 0xffff),
			(unsigned) (low >> 48), (unsigned long long) (low & UINT64_C(0xffffffffffff)));
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

static void set_reference(struct vdi_request_log *request_log, const struct vdi_route *route)
{
	struct vdi_out *out = &request_log->reference;

	vdi_out_raw(out, "{");
	vdi_out_member(out, "resource", route->plural);
	vdi_out_member(out, "namespace", route->namespace_name);
	vdi_out_member(out, "name", route->name);
	vdi_out_member(out, "apiGroup", route->group);
	vdi_out_member(out, "apiVersion", route->version);
	vdi_out_member(out, "subresource", route->subresource);
	request_log->has_name = route->name.size > 0;
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

struct vdi_request_log *vdi_request_log_begin(const struct vdi_request *request)
{
	struct vdi_request_logs *request_logs = request->server->request_logs;
	struct vdi_request_log	*request_log;
	struct vd_bytes		 agent;

	if (request_logs == NULL)
		return NULL;
	request_log = VDI_NEW(struct vdi_request_log);
	if (request_log == NULL) {
		vdi_metric_add(request_logs->audit ? request_logs->audit_lost : NULL, 1);
		vdi_metric_add(request_logs->access ? request_logs->access_lost : NULL, 1);
		return NULL;
	}
	request_log->request_logs = request_logs;
	request_log->received = vd_env_wall(request_logs->env);
	request_log->started = vd_env_now(request_logs->env);
	request_log->method = method_of(request->head.method);
	request_log->verb = vdi_request_verb(request);
	(void) snprintf(request_log->version, sizeof request_log->version, "1.%d",
			!request->head.version_1_0);
	set_peer(request->connection->fd, request_log->peer);
	set_id(request_log, request);
	(void) snprintf(request_log->header, sizeof request_log->header, "Audit-Id: %s\r\n",
			request_logs->audit ? request_log->id : "");
	vdi_out_bytes(&request_log->uri, request->head.path);
	if (request->head.query.size) {
		vdi_out_raw(&request_log->uri, "?");
		write_query(&request_log->uri, request->head.query);
	}
	if (vdi_http_header_get(&request->head, "User-Agent", &agent))
		vdi_out_bytes(&request_log->agent, agent);
	request_log->level = request_logs->level;
	if (request->route.kind == VDI_ROUTE_RESOURCE) {
		set_reference(request_log, &request->route);
		request_log->is_secret = is_secret(&request->route);
		if (request_log->is_secret)
			request_log->level = VDI_MIN(request_log->level, VD_AUDIT_METADATA);
	}
	return request_log;
}

/* ---- Facts about the request ---- */

void vdi_request_log_decided(struct vdi_request_log *request_log, struct vdi_identity *identity,
			     bool is_allowed)
{
	if (request_log == NULL)
		return;
	(void) vdi_identity_unref(request_log->identity);
	request_log->identity = vdi_identity_ref(identity);
	request_log->is_decided = true;
	request_log->is_allowed = is_allowed;
}

void vdi_request_log_named(struct vdi_request_log *request_log, const char *name)
{
	if (request_log == NULL || request_log->has_name || request_log->reference.size == 0)
		return;
	vdi_out_member(&request_log->reference, "name", vd_bytes_of(name));
	request_log->has_name = true;
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

void vdi_request_log_request_body(struct vdi_request_log *request_log, struct vd_bytes json)
{
	if (request_log && request_log->request_logs->audit && request_log->level >= VD_AUDIT_REQUEST &&
	    json.size)
		copy_json(json, &request_log->request_body);
}

bool vdi_request_log_wants_response(const struct vdi_request_log *request_log)
{
	return request_log && request_log->request_logs->audit &&
	       request_log->level >= VD_AUDIT_REQUEST_RESPONSE;
}

void vdi_request_log_response_body(struct vdi_request_log *request_log, struct vd_bytes json)
{
	if (vdi_request_log_wants_response(request_log))
		copy_json(json, &request_log->response_body);
}

void vdi_request_log_answered(struct vdi_request_log *request_log, int code)
{
	if (request_log)
		request_log->code = code;
}

void vdi_request_log_status(struct vdi_request_log *request_log, const struct vdi_http_status *status)
{
	if (request_log == NULL || request_log->request_logs->audit == NULL)
		return;
	vdi_out_reset(&request_log->status);
	vdi_out_printf(&request_log->status, ",\"status\":\"%s\"", status->success ? "Success" : "Failure");
	if (!request_log->is_secret) /* the message of an invalid body may quote it */
		vdi_out_member(&request_log->status, "message",
			       status->long_message.size ? status->long_message :
							   vd_bytes_of(status->message));
	vdi_out_member(&request_log->status, "reason", vd_bytes_of(status->reason ? status->reason : ""));
}

void vdi_request_log_sent(struct vdi_request_log *request_log, size_t size_bytes)
{
	if (request_log)
		request_log->sent_bytes += size_bytes;
}

const char *vdi_request_log_header(const struct vdi_request_log *request_log)
{
	return request_log && request_log->request_logs->audit ? request_log->header : "";
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

static void write_event(struct vdi_out *out, const struct vdi_request_log *request_log, const char *stage)
{
	static const char *const levels[] = { "None", "Metadata", "Request", "RequestResponse" };

	vdi_out_printf(out, "{\"kind\":\"Event\",\"apiVersion\":\"audit.k8s.io/v1\",\"level\":\"%s\"",
		       levels[request_log->level]);
	vdi_out_member(out, "auditID", vd_bytes_of(request_log->id));
	vdi_out_member(out, "stage", vd_bytes_of(stage));
	vdi_out_member(out, "requestURI", vdi_out_slice(&request_log->uri));
	vdi_out_member(out, "verb", vd_bytes_of(request_log->verb));
	vdi_identity_write(out, "user", request_log->identity);
	if (request_log->peer[0])
		vdi_out_printf(out, ",\"sourceIPs\":[\"%s\"]", request_log->peer);
	vdi_out_member(out, "userAgent", vdi_out_slice(&request_log->agent));
	if (request_log->reference.size) {
		vdi_out_key(out, "objectRef");
		vdi_out_bytes(out, vdi_out_slice(&request_log->reference));
		vdi_out_raw(out, "}");
	}
	vdi_out_raw(out, ",\"responseStatus\":{\"metadata\":{}");
	if (request_log->code)
		vdi_out_bytes(out, vdi_out_slice(&request_log->status));
	else
		vdi_out_raw(out, ",\"status\":\"Failure\",\"message\":\"the connection was closed before the "
				 "answer\"");
	vdi_out_printf(out, ",\"code\":%d}", request_log->code ? request_log->code : CODE_CUT);
	write_body(out, "requestObject", &request_log->request_body);
	write_body(out, "responseObject", &request_log->response_body);
	write_time(out, "requestReceivedTimestamp", request_log->received);
	write_time(out, "stageTimestamp", vd_env_wall(request_log->request_logs->env));
	if (request_log->is_decided)
		vdi_out_printf(out,
			       ",\"annotations\":{\"authorization.k8s.io/"
			       "decision\":\"%s\",\"authorization.k8s.io/reason\":\"\"}",
			       request_log->is_allowed ? "allow" : "forbid");
	vdi_out_raw(out, "}");
	out->failed |= request_log->uri.failed || request_log->agent.failed ||
		       request_log->reference.failed || request_log->status.failed;
}

static void log_event(const struct vdi_request_log *request_log, const char *stage)
{
	struct vdi_out line = VDI_OUT_INIT;

	if (request_log->request_logs->audit == NULL)
		return;
	write_event(&line, request_log, stage);
	if (line.failed)
		vdi_metric_add(request_log->request_logs->audit_lost, 1);
	else
		vdi_async_log_put(request_log->request_logs->audit, vdi_out_slice(&line));
	vdi_out_fini(&line);
}

void vdi_request_log_streams(struct vdi_request_log *request_log)
{
	if (request_log)
		log_event(request_log, "ResponseStarted");
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

static void put_access(struct vdi_request_logs *request_logs, struct vdi_out *line)
{
	if (line->failed)
		vdi_metric_add(request_logs->access_lost, 1);
	else
		vdi_async_log_put(request_logs->access, vdi_out_slice(line));
	vdi_out_fini(line);
}

static void log_access(const struct vdi_request_log *request_log)
{
	struct vdi_out line = VDI_OUT_INIT;
	vd_dur	       took = vd_mono_since(vd_env_now(request_log->request_logs->env), request_log->started);

	if (request_log->request_logs->access == NULL)
		return;
	write_word(&line, request_log->peer);
	vdi_out_raw(&line, " - ");
	write_word(&line, request_log->identity ? request_log->identity->user : "");
	vdi_out_raw(&line, " ");
	write_common_time(&line, request_log->received);
	vdi_out_printf(&line, " \"%s ", request_log->method);
	write_quoted(&line, vdi_out_slice(&request_log->uri));
	vdi_out_printf(&line, " HTTP/%s\" %d %llu \"-\" \"", request_log->version,
		       request_log->code ? request_log->code : CODE_CUT,
		       (unsigned long long) request_log->sent_bytes);
	write_quoted(&line, vdi_out_slice(&request_log->agent));
	vdi_out_printf(&line, "\" %lld.%06lld ", (long long) (took.ns / 1000000000),
		       (long long) (took.ns % 1000000000 / 1000));
	write_word(&line, request_log->id);
	line.failed |= request_log->uri.failed || request_log->agent.failed;
	put_access(request_log->request_logs, &line);
}

void vdi_request_log_refused(const struct vdi_http_connection *connection, int code)
{
	struct vdi_request_logs *request_logs = connection->loop->server->request_logs;
	struct vdi_out		 line = VDI_OUT_INIT;
	char			 peer[INET6_ADDRSTRLEN];

	if (request_logs == NULL || request_logs->access == NULL)
		return;
	set_peer(connection->fd, peer);
	write_word(&line, peer);
	vdi_out_raw(&line, " - - ");
	write_common_time(&line, vd_env_wall(request_logs->env));
	vdi_out_printf(&line, " \"-\" %d 0 \"-\" \"-\" 0.000000 -", code);
	put_access(request_logs, &line);
}

/* ---- End ---- */

struct vdi_request_log *vdi_request_log_end(struct vdi_request_log *request_log)
{
	if (request_log == NULL)
		return NULL;
	log_event(request_log, "ResponseComplete");
	log_access(request_log);
	(void) vdi_identity_unref(request_log->identity);
	vdi_out_fini(&request_log->uri);
	vdi_out_fini(&request_log->agent);
	vdi_out_fini(&request_log->reference);
	vdi_out_fini(&request_log->status);
	vdi_out_fini(&request_log->request_body);
	vdi_out_fini(&request_log->response_body);
	vdi_free(request_log);
	return NULL;
}
