/* Answers as etcd's server/etcdserver/api/etcdhttp behind the mux of Go's net/http: paths are cleaned by a
 * redirect, each handler checks the method itself, and other responses are plain error texts. Bodies and
 * headers are those of etcd 3.7, except that checks are in a fixed order. */
#include "serve_http.h"

#include <stdio.h>

#include "buffer.h"
#include "env.h"
#include "metrics.h"
#include "process_stat.h"

#define PATH_SIZE_MAX 1024 /* all served paths are shorter */

static const char plain_text[] = "text/plain; charset=utf-8";

/* ---- Answers ---- */

static void add_type(struct vdi_rpc_http *http, const char *type)
{
	vdi_buffer_printf(&http->headers, "Content-Type: %s\r\n", type);
}

static void add_nosniff(struct vdi_rpc_http *http)
{
	vdi_buffer_append_text(&http->headers, "X-Content-Type-Options: nosniff\r\n");
}

/* As Go's http.Error. */
static void fail(struct vdi_rpc_http *http, int code, const char *text)
{
	http->code = code;
	add_type(http, plain_text);
	add_nosniff(http);
	vdi_buffer_printf(&http->body, "%s\n", text);
}

/* False: answered with an error, because only GET is allowed. */
static bool is_get(struct vdi_rpc_http *http)
{
	if (http->method == VDI_HTTP_GET)
		return true;
	vdi_buffer_append_text(&http->headers, "Allow: GET\r\n");
	fail(http, 405, "Method Not Allowed");
	return false;
}

/* ---- The query ---- */

/* Returns true if encoded, when decoded, equals text. */
static bool is_text(struct vd_bytes encoded, const char *text)
{
	char   room[64];
	size_t size;

	return encoded.size <= sizeof room && vdi_percent_decode(encoded, true, room, &size) &&
	       size == strlen(text) && memcmp(room, text, size) == 0;
}

/* value NULL: any value, also "?verbose" without one. As in Go, a pair with a semicolon is ignored. */
static bool query_has(const struct vdi_rpc_http *http, const char *key, const char *value)
{
	const char *at = http->query.data;
	const char *end = at ? at + http->query.size : at;

	while (at < end) {
		const char *mark = memchr(at, '&', (size_t) (end - at));
		const char *pair_end = mark ? mark : end;
		const char *equals = memchr(at, '=', (size_t) (pair_end - at));
		const char *name_end = equals ? equals : pair_end;

		if (memchr(at, ';', (size_t) (pair_end - at)) == NULL &&
		    is_text((struct vd_bytes) { at, (size_t) (name_end - at) }, key) &&
		    (value == NULL ||
		     (equals &&
		      is_text((struct vd_bytes) { equals + 1, (size_t) (pair_end - equals - 1) }, value))))
			return true;
		at = pair_end + 1;
	}
	return false;
}

/* ---- version and health ---- */

static void answer_version(struct vdi_etcdserver *server, struct vdi_rpc_http *http)
{
	(void) server;
	if (!is_get(http))
		return;
	add_type(http, "application/json");
	vdi_buffer_append_text(&http->body, "{\"etcdserver\":\"" VDI_ETCD_VERSION
					    "\",\"etcdcluster\":\"" VDI_ETCD_CLUSTER_VERSION
					    ".0\",\"storage\":\"" VDI_ETCD_STORAGE_VERSION "\"}");
}

static bool alarm_is_active(const struct vdi_etcdserver *server, enum vdi_alarm kind)
{
	return atomic_load_explicit(&server->alarms, memory_order_relaxed) & 1u << kind;
}

/* serializable=true makes no difference, because a single member reads the same. */
static void answer_health(struct vdi_etcdserver *server, struct vdi_rpc_http *http)
{
	struct vd_store_status store;
	const char	      *reason = NULL;
	char		       text[96];

	if (!is_get(http))
		return;
	if (alarm_is_active(server, VDI_ALARM_NOSPACE) && !query_has(http, "exclude", "NOSPACE"))
		reason = "ALARM NOSPACE";
	else if (alarm_is_active(server, VDI_ALARM_CORRUPT) && !query_has(http, "exclude", "CORRUPT"))
		reason = "ALARM CORRUPT";
	else if (vd_store_status_get(server->store, &store) != VD_OK)
		reason = "RANGE ERROR:etcdserver: server stopped";
	atomic_fetch_add_explicit(reason ? &server->health_failures : &server->health_successes, 1,
				  memory_order_relaxed);
	(void) snprintf(text, sizeof text, "{\"health\":\"%s\",\"reason\":\"%s\"}", reason ? "false" : "true",
			reason ? reason : "");
	if (reason) {
		fail(http, 503, text);
		return;
	}
	add_type(http, plain_text);
	vdi_buffer_append_text(&http->body, text);
}

/* ---- livez and readyz ---- */

static const char *check_corruption(struct vdi_etcdserver *server)
{
	return alarm_is_active(server, VDI_ALARM_CORRUPT) ? "alarm activated: CORRUPT" : NULL;
}

static const char *check_read(struct vdi_etcdserver *server)
{
	struct vd_store_status store;

	return vd_store_status_get(server->store, &store) == VD_OK ? NULL : "etcdserver: server stopped";
}

static const char *check_nothing(struct vdi_etcdserver *server)
{
	(void) server;
	return NULL;
}

struct check {
	const char *name;
	const char *(*run)(struct vdi_etcdserver *server);
};
static const struct check live_checks[] = { { "serializable_read", check_read }, { NULL, NULL } };
static const struct check ready_checks[] = { { "data_corruption", check_corruption },
					     { "serializable_read", check_read },
					     { "linearizable_read", check_read },
					     { "non_learner", check_nothing },
					     { NULL, NULL } };

static void run_checks(struct vdi_etcdserver *server, struct vdi_rpc_http *http, const struct check *checks,
		       const char *only)
{
	struct vdi_buffer lines;
	bool		  has_failed = false;

	if (!is_get(http))
		return;
	vdi_buffer_init(&lines, 4096);
	for (const struct check *check = checks; check->name; check++) {
		const char *reason;

		if (only ? strcmp(only, check->name) != 0 : query_has(http, "exclude", check->name))
			continue;
		reason = check->run(server);
		has_failed = has_failed || reason;
		if (reason)
			vdi_buffer_printf(&lines, "[-]%s failed: %s\n", check->name, reason);
		else
			vdi_buffer_printf(&lines, "[+]%s ok\n", check->name);
	}
	if (has_failed) {
		vdi_buffer_append_char(&lines, 0);
		fail(http, 503, lines.data ? lines.data : "");
	} else {
		add_type(http, plain_text);
		add_nosniff(http);
		if (query_has(http, "verbose", NULL))
			vdi_buffer_append(&http->body, vdi_buffer_bytes(&lines));
		vdi_buffer_append_text(&http->body, "ok\n");
	}
	vdi_buffer_fini(&lines);
}

static bool has_check(const struct check *checks, const char *name)
{
	for (; checks->name; checks++)
		if (strcmp(checks->name, name) == 0)
			return true;
	return false;
}

/* ---- Metrics ---- */

/* Appends metrics that the registry cannot hold: a number with a fraction, and labels chosen by clients. */
static void append_server_metrics(struct vdi_etcdserver *server, struct vdi_buffer *body)
{
	struct vdi_process_stat stat;

	vdi_process_stat_read(&stat);
	vdi_buffer_printf(body,
			  "# HELP process_cpu_seconds_total Processor time of the process.\n# TYPE "
			  "process_cpu_seconds_total counter\nprocess_cpu_seconds_total %.2f\n",
			  stat.cpu_seconds);
	vdi_serve_clients_render(&server->clients, body);
}

/* Any method, like the handler of Prometheus' library. */
static void answer_metrics(struct vdi_etcdserver *server, struct vdi_rpc_http *http)
{
	add_type(http, "text/plain; version=0.0.4; charset=utf-8");
	if (vdi_metrics_render(vdi_env_metrics(server->env), &http->body) == VD_OK)
		append_server_metrics(server, &http->body);
}

/* ---- Paths ---- */

/* Go's path.Clean of an absolute path, except that a slash at the end remains. In place; returns the new
 * size. */
static size_t clean(char *path, size_t size)
{
	bool   has_slash = path[size - 1] == '/';
	size_t used = 0;

	for (size_t at = 0; at < size;) {
		const char *slash;
		size_t	    part;

		while (at < size && path[at] == '/')
			at++;
		slash = memchr(path + at, '/', size - at);
		part = (slash ? (size_t) (slash - path) : size) - at;
		if (part == 2 && memcmp(path + at, "..", 2) == 0) {
			while (used && path[used - 1] != '/')
				used--;
			used -= used > 0;
		} else if (part && !(part == 1 && path[at] == '.')) {
			path[used++] = '/';
			memmove(path + used, path + at, part);
			used += part;
		}
		at += part;
	}
	if (used == 0 || has_slash)
		path[used++] = '/';
	return used;
}

static void append_encoded(struct vdi_buffer *out, struct vd_bytes path)
{
	const unsigned char *at = path.data;

	for (size_t i = 0; i < path.size; i++) {
		bool is_letter = (at[i] >= 'A' && at[i] <= 'Z') || (at[i] >= 'a' && at[i] <= 'z') ||
				 (at[i] >= '0' && at[i] <= '9');

		if (is_letter || (at[i] && strchr("-_.~$&+,/:;=@", at[i])))
			vdi_buffer_append_char(out, (char) at[i]);
		else
			vdi_buffer_printf(out, "%%%02X", at[i]);
	}
}

static void append_html(struct vdi_buffer *out, struct vd_bytes text)
{
	const char *at = text.data;

	for (size_t i = 0; i < text.size; i++) {
		if (at[i] == '&')
			vdi_buffer_append_text(out, "&amp;");
		else if (at[i] == '"')
			vdi_buffer_append_text(out, "&#34;");
		else if (at[i] == '\'')
			vdi_buffer_append_text(out, "&#39;");
		else if (at[i] == '<')
			vdi_buffer_append_text(out, "&lt;");
		else if (at[i] == '>')
			vdi_buffer_append_text(out, "&gt;");
		else
			vdi_buffer_append_char(out, at[i]);
	}
}

static bool has_control(struct vd_bytes text)
{
	const unsigned char *at = text.data;

	for (size_t i = 0; i < text.size; i++)
		if (at[i] < 0x20 || at[i] == 0x7F)
			return true;
	return false;
}

static void redirect(struct vdi_rpc_http *http, struct vd_bytes path)
{
	struct vdi_buffer location;

	vdi_buffer_init(&location, 3 * PATH_SIZE_MAX + 1024);
	append_encoded(&location, path);
	if (http->query.size && !has_control(http->query)) {
		vdi_buffer_append_char(&location, '?');
		vdi_buffer_append(&location, http->query);
	}
	if (vdi_buffer_status(&location) != VD_OK) {
		fail(http, 404, "404 page not found");
		vdi_buffer_fini(&location);
		return;
	}
	http->code = 307;
	if (http->method == VDI_HTTP_GET || http->method == VDI_HTTP_HEAD)
		add_type(http, "text/html; charset=utf-8");
	vdi_buffer_append_text(&http->headers, "Location: ");
	vdi_buffer_append(&http->headers, vdi_buffer_bytes(&location));
	vdi_buffer_append_text(&http->headers, "\r\n");
	if (http->method == VDI_HTTP_GET) {
		vdi_buffer_append_text(&http->body, "<a href=\"");
		append_html(&http->body, vdi_buffer_bytes(&location));
		vdi_buffer_append_text(&http->body, "\">Temporary Redirect</a>.\n\n");
	}
	vdi_buffer_fini(&location);
}

static void route(struct vdi_etcdserver *server, struct vdi_rpc_http *http, const char *path)
{
	if (strcmp(path, "/health") == 0)
		answer_health(server, http);
	else if (strcmp(path, "/version") == 0)
		answer_version(server, http);
	else if (strcmp(path, "/metrics") == 0)
		answer_metrics(server, http);
	else if (strcmp(path, "/livez") == 0)
		run_checks(server, http, live_checks, NULL);
	else if (strcmp(path, "/readyz") == 0)
		run_checks(server, http, ready_checks, NULL);
	else if (strncmp(path, "/livez/", 7) == 0 && has_check(live_checks, path + 7))
		run_checks(server, http, live_checks, path + 7);
	else if (strncmp(path, "/readyz/", 8) == 0 && has_check(ready_checks, path + 8))
		run_checks(server, http, ready_checks, path + 8);
	else
		fail(http, 404, "404 page not found");
}

static bool is_well_encoded(struct vd_bytes path)
{
	const char *at = path.data;
	char	    room[3];
	size_t	    size;

	for (size_t i = 0; i < path.size; i++)
		if (at[i] == '%' &&
		    !vdi_percent_decode((struct vd_bytes) { at + i, VDI_MIN(path.size - i, sizeof room) },
					false, room, &size))
			return false;
	return path.size && at[0] == '/';
}

/* As Go's mux, splits the path at slashes as sent and compares the decoded parts: an encoded slash matches
 * none. */
static bool decode(struct vd_bytes path, char *text, size_t size)
{
	const char *at = path.data;
	size_t	    used;

	for (size_t i = 0; i + 2 < path.size; i++)
		if (at[i] == '%' && at[i + 1] == '2' && (at[i + 2] == 'f' || at[i + 2] == 'F'))
			return false;
	if (path.size >= size || !vdi_percent_decode(path, false, text, &used) || memchr(text, 0, used))
		return false;
	text[used] = 0;
	return true;
}

/* As Go's server answers before any handler. */
static void fail_malformed(struct vdi_rpc_http *http)
{
	http->code = 400;
	http->closes = true;
	add_type(http, plain_text);
	vdi_buffer_append_text(&http->body, "400 Bad Request");
}

static void find(struct vdi_etcdserver *server, struct vdi_rpc_http *http)
{
	char   path[PATH_SIZE_MAX], text[PATH_SIZE_MAX];
	size_t size = http->path.size;

	if (size >= sizeof path) {
		fail(http, 404, "404 page not found");
		return;
	}
	memcpy(path, http->path.data, size);
	size = clean(path, size);
	if (size != http->path.size)
		redirect(http, (struct vd_bytes) { path, size });
	else if (decode(http->path, text, sizeof text))
		route(server, http, text);
	else
		fail(http, 404, "404 page not found");
}

void vdi_serve_http_fill(struct vdi_etcdserver *server, bool with_cors, struct vdi_rpc_http *http)
{
	if (http->method == VDI_HTTP_OPTIONS && vd_bytes_equal(http->path, vd_bytes_of("*")))
		return;
	if (!is_well_encoded(http->path)) {
		fail_malformed(http);
		return;
	}
	if (with_cors)
		vdi_buffer_append_text(&http->headers,
				       "Access-Control-Allow-Headers: accept, content-type, authorization\r\n"
				       "Access-Control-Allow-Methods: POST, GET, OPTIONS, PUT, DELETE\r\n"
				       "Access-Control-Allow-Origin: *\r\n");
	if (!with_cors || http->method != VDI_HTTP_OPTIONS)
		find(server, http);
}

bool vdi_serve_http_is_slow(const struct vdi_rpc_http *http)
{
	char text[32];

	return is_well_encoded(http->path) && decode(http->path, text, sizeof text) &&
	       strcmp(text, "/metrics") == 0;
}
