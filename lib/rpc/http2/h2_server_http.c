/* Plain HTTP requests between connection and service: the service answers at any time on any thread, and
 * the loop passes the response on at the end of an iteration. While the service has it, a request counts as
 * a call, so the loop exists when the response arrives; its connection may have ended. */
#include <stdio.h>

#include "env.h"
#include "h2_server_state.h"
#include "http_text.h"

#define HEADERS_MAX 4096
#define BODY_MAX ((size_t) 64 << 20)

static void free_http(struct vdi_h2_http *http)
{
	struct vdi_h2_server *server = http->loop->server;

	vdi_buffer_fini(&http->base.headers);
	vdi_buffer_fini(&http->base.body);
	vdi_free(http);
	vdi_h2_server_drop_call(server);
}

static void answer(struct vdi_rpc_http *base)
{
	struct vdi_h2_http	  *http = (struct vdi_h2_http *) base;
	struct vdi_h2_server_loop *loop = http->loop;

	vdi_lock_acquire(&loop->lock);
	http->next = loop->answered;
	loop->answered = http;
	/* Under the lock, because the loop may end as soon as it has processed the response. */
	vdi_h2_loop_wake(loop->h2_loop);
	vdi_lock_release(&loop->lock);
}

bool vdi_h2_server_http_begin(struct vdi_h2_server_loop *loop, struct vdi_h2_server_connection *connection,
			      struct vdi_h2_server_call *call, enum vdi_http_method method,
			      struct vd_bytes path, struct vd_bytes query)
{
	struct vdi_h2_http *http = vdi_calloc(1, sizeof *http + path.size + query.size);

	if (http == NULL)
		return false;
	http->loop = loop;
	http->connection = connection;
	http->call = call;
	if (path.size)
		memcpy(http->text, path.data, path.size);
	if (query.size)
		memcpy(http->text + path.size, query.data, query.size);
	http->base.method = method;
	http->base.path = (struct vd_bytes) { http->text, path.size };
	http->base.query = (struct vd_bytes) { http->text + path.size, query.size };
	http->base.is_tls = loop->server->tls != NULL;
	http->base.code = 200;
	http->base.answer = answer;
	vdi_buffer_init(&http->base.headers, HEADERS_MAX);
	vdi_buffer_init(&http->base.body, BODY_MAX);
	if (connection)
		connection->http = http;
	atomic_fetch_add_explicit(&loop->server->calls, 1, memory_order_relaxed);
	loop->server->http(loop->server->arg, &http->base);
	return true;
}

static void check_buffers(struct vdi_rpc_http *http)
{
	if (vdi_buffer_status(&http->headers) == VD_OK && vdi_buffer_status(&http->body) == VD_OK)
		return;
	vdi_buffer_clear(&http->headers);
	vdi_buffer_clear(&http->body);
	http->code = 503;
}

void vdi_h2_server_http_deliver(struct vdi_h2_http *answered)
{
	while (answered) {
		struct vdi_h2_http *next = answered->next;

		check_buffers(&answered->base);
		if (answered->connection)
			vdi_h2_server_connection_answer(answered->connection, &answered->base);
		else if (answered->call)
			vdi_h2_server_call_answer(answered->call, &answered->base);
		free_http(answered);
		answered = next;
	}
}

/* ---- HTTP/2 ---- */

#define FIELDS_MAX 16

/* Converts header lines to HTTP/2: lower-case names, in place. */
static size_t take_lines(char *line, nghttp2_nv *fields, size_t count)
{
	char *end;

	for (; line && (end = strstr(line, "\r\n")) != NULL && count < FIELDS_MAX; line = end + 2) {
		char *colon = memchr(line, ':', (size_t) (end - line));

		if (colon == NULL)
			continue;
		for (char *at = line; at < colon; at++)
			*at = *at >= 'A' && *at <= 'Z' ? (char) (*at + 32) : *at;
		fields[count++] =
			(nghttp2_nv) { (uint8_t *) line, (uint8_t *) colon + 2, (size_t) (colon - line),
				       (size_t) (end - colon - 2), NGHTTP2_NV_FLAG_NONE };
	}
	return count;
}

static nghttp2_nv field(const char *name, const char *value)
{
	return (nghttp2_nv) { (uint8_t *) (uintptr_t) name, (uint8_t *) (uintptr_t) value, strlen(name),
			      strlen(value), NGHTTP2_NV_FLAG_NONE };
}

static bool submit(struct vdi_h2_server_call *call, const struct vdi_rpc_http *http, char *lines)
{
	nghttp2_session	       *session = vdi_h2_connection_session(call->connection->connection);
	nghttp2_data_provider	provider = vdi_h2_outbox_provider(&call->outbox);
	struct vd_bytes		body = vdi_buffer_bytes(&http->body);
	struct vdi_h2_outgoing *outgoing;
	nghttp2_nv		fields[FIELDS_MAX + 3];
	size_t			count = 0;
	char			code[8], length[24], date[VDI_HTTP_DATE_SIZE];

	snprintf(code, sizeof code, "%d", http->code);
	snprintf(length, sizeof length, "%zu", body.size);
	vdi_http_date(vd_env_wall(call->server->env), date);
	fields[count++] = field(":status", code);
	count = take_lines(lines, fields, count);
	fields[count++] = field("date", date);
	if (body.size || http->method != VDI_HTTP_HEAD)
		fields[count++] = field("content-length", length);
	if (http->method == VDI_HTTP_HEAD)
		body.size = 0;
	if (body.size) {
		if (vdi_h2_outgoing_new_plain(body, &outgoing) != VD_OK)
			return false;
		vdi_h2_outbox_push(&call->outbox, outgoing);
	}
	return nghttp2_submit_response(session, call->stream_id, fields, count,
				       body.size ? &provider : NULL) == 0;
}

bool vdi_h2_server_http_submit(struct vdi_h2_server_call *call, const struct vdi_rpc_http *http)
{
	char *lines = vdi_strndup(http->headers.data ? http->headers.data : "", http->headers.size);
	bool  is_done = lines && submit(call, http, lines);

	vdi_free(lines);
	return is_done;
}
