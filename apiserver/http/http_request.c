/* Requests: body, waiting, responses.
 *
 * Waiting: `waiting` is 1 while a call is in flight and the code that started it has not returned from it, 2
 * when that code has returned, 0 when no call is in flight. The call's callback and the starting code race;
 * the second one continues the request: a callback that finds 1 sets 0, and the starting code continues
 * itself; a callback that finds 2 sends the request to its loop.
 */
#include "http_request.h"

#include <stdio.h>

#include "env.h"
#include "http_gzip.h"
#include "http_metrics.h"
#include "kind_cache.h"
#include "object.h"
#include "protobuf.h"
#include "stored_version.h"

/* largest response in protobuf */
#define ANSWER_MAX ((size_t) 64 << 20)
#include "http_text.h"
#include "request_log.h"

struct vdi_request *vdi_request_new(struct vdi_http_connection *connection, struct vd_bytes head_bytes,
				    struct vdi_http_refusal *ret_refusal)
{
	struct vdi_request *request = VDI_NEW(struct vdi_request);
	vd_status	    status;

	if (request == NULL)
		return NULL;
	request->server = connection->loop->server;
	request->loop = connection->loop;
	request->connection = connection;
	request->started = vd_env_now(request->server->env);
	request->head_text = vdi_strndup(head_bytes.data, head_bytes.size);
	status = request->head_text ?
			 vdi_http_head_parse((struct vd_bytes) { request->head_text, head_bytes.size },
					     &request->head, ret_refusal) :
			 VD_NOMEM;
	if (status == VD_OK)
		status = vdi_params_parse(request->head.query, &request->params);
	if (status != VD_OK) {
		vdi_free(request->head_text);
		vdi_free(request);
		return NULL;
	}
	vdi_route_parse(request->head.path, &request->route);
	request->server->requests_open++;
	return request;
}

static void free_request(struct vdi_request *request)
{
	request->server->requests_open--;
	vdi_metric_subtract(request->inflight, 1);
	if (request->is_counted) {
		vdi_budget_give_back(&request->server->accounts, request->account, request->kind);
		atomic_fetch_sub(&request->account->requests, 1);
	}
	(void) vdi_identity_unref(request->identity);
	vdi_account_put(&request->server->accounts, request->account);
	vdi_request_drop_result(request);
	if (request->free_state)
		request->free_state(request);
	vdi_params_fini(&request->params);
	vdi_out_fini(&request->warnings);
	vdi_free(request->body);
	vdi_free(request->head_text);
	if (request->is_creating)
		atomic_fetch_sub(&request->resource->cache->create_count, 1);
	(void) vdi_resource_unref(request->resource); /* after the objects of its cache */
	vdi_free(request);
}

void vdi_request_detach(struct vdi_request *request)
{
	request->connection = NULL;
	if (request->waiting == 0 && request->resume == NULL)
		free_request(request);
}

void vdi_request_continue(struct vdi_request *request)
{
	void (*resume)(struct vdi_request *) = request->resume;

	request->resume = NULL;
	if (request->is_late)
		vdi_http_metrics_late(request->server->metrics, request->result);
	if (request->connection == NULL)
		free_request(request);
	else
		resume(request);
}

void vdi_request_drop_result(struct vdi_request *request)
{
	request->object = vd_object_unref(request->object);
	request->list = vd_list_free(request->list);
}

static vd_status append_body(struct vdi_request *request, struct vd_bytes bytes,
			     struct vdi_http_refusal *refusal)
{
	if (bytes.size == 0)
		return VD_AGAIN;
	if (request->body_size + bytes.size > VDI_HTTP_BODY_MAX) {
		*refusal = (struct vdi_http_refusal) { 413, "Request entity too large: limit is 3145728" };
		return VD_BAD_REQUEST;
	}
	if (!vdi_grow((void **) &request->body, &request->body_capacity, request->body_size + bytes.size,
		      1)) {
		*refusal = (struct vdi_http_refusal) { 500, "out of memory" };
		return VD_BAD_REQUEST;
	}
	memcpy(request->body + request->body_size, bytes.data, bytes.size);
	request->body_size += bytes.size;
	return VD_AGAIN;
}

vd_status vdi_request_body(struct vdi_request *request, struct vd_bytes bytes, size_t *ret_taken,
			   struct vdi_http_refusal *ret_refusal)
{
	size_t at = 0;

	if (!request->head.chunked) {
		size_t wanted = (size_t) request->head.content_length - request->body_size;

		bytes.size = VDI_MIN(bytes.size, wanted);
		if (append_body(request, bytes, ret_refusal) == VD_BAD_REQUEST)
			return VD_BAD_REQUEST;
		*ret_taken = bytes.size;
		return request->body_size == (size_t) request->head.content_length ? VD_OK : VD_AGAIN;
	}
	while (at < bytes.size) {
		struct vd_bytes rest = { (const char *) bytes.data + at, bytes.size - at }, data;
		size_t		taken;
		vd_status status = vdi_http_chunked_take(&request->chunked, rest, &taken, &data, ret_refusal);
		if (status == VD_BAD_REQUEST || append_body(request, data, ret_refusal) == VD_BAD_REQUEST)
			return VD_BAD_REQUEST;
		at += taken;
		if (status == VD_OK) {
			*ret_taken = at;
			return VD_OK;
		}
	}
	*ret_taken = at;
	return VD_AGAIN;
}

/* ---- Waiting ---- */

void vdi_request_await(struct vdi_request *request, void (*resume)(struct vdi_request *request))
{
	vdi_request_drop_result(request);
	request->resume = resume;
	request->result = VD_OK;
	memset(&request->error, 0, sizeof request->error);
	request->waiting = 1;
}

void vdi_request_awaited(struct vdi_request *request, vd_status status, const struct vd_error *error)
{
	int expected = 1;

	if (status != VD_OK) {
		request->waiting = 0;
		request->result = status;
		if (error)
			request->error = *error;
		vdi_request_continue(request);
		return;
	}
	if (!atomic_compare_exchange_strong(&request->waiting, &expected, 2))
		vdi_request_continue(request);
}

static void complete(struct vdi_request *request)
{
	if (atomic_exchange(&request->waiting, 0) == 2)
		vdi_http_loop_complete(request->loop, request);
}

void vdi_request_got_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			    const struct vd_error *error)
{
	struct vdi_request *request = arg;

	request->result = status;
	request->revision = revision;
	if (object)
		request->object = vd_object_ref(object);
	if (error)
		request->error = *error;
	complete(request);
}

void vdi_request_got_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	struct vdi_request *request = arg;

	request->result = status;
	request->list = list;
	if (error)
		request->error = *error;
	complete(request);
}

/* ---- Responses ---- */

static void write_head(struct vdi_request *request, struct vdi_out *out, int code, const char *content_type,
		       const char *headers)
{
	struct vdi_http_connection *connection = request->connection;

	if (connection->loop->server->draining)
		connection->keep_alive = false;
	vdi_request_log_answered(connection->request_log, code);
	vdi_out_printf(out, "HTTP/1.1 %d %s\r\n%s%sCache-Control: no-cache, private\r\n%s", code,
		       vdi_http_reason_phrase(code), vdi_http_loop_date(connection->loop),
		       vdi_request_log_header(connection->request_log), headers);
	vdi_out_bytes(out, vdi_out_slice(&request->warnings));
	if (content_type)
		vdi_out_printf(out, "Content-Type: %s\r\n", content_type);
	if (!connection->keep_alive)
		vdi_out_raw(out, "Connection: close\r\n");
	else if (request->head.version_1_0)
		vdi_out_raw(out, "Connection: keep-alive\r\n");
}

/* Longest response that is indented: deep levels can make it fifty times as long. */
#define PRETTY_BYTES ((size_t) 1 << 18)

void vdi_request_reply(struct vdi_request *request, int code, const char *content_type, const char *headers,
		       struct vdi_out *body)
{
	struct vdi_out		    head = VDI_OUT_INIT, pretty = VDI_OUT_INIT;
	struct vdi_http_connection *connection = request->connection;
	struct vd_bytes		    content;

	if (request->pretty && body->size <= PRETTY_BYTES && !body->failed && content_type &&
	    strncmp(content_type, "application/json", 16) == 0) {
		vdi_out_pretty(&pretty, vdi_out_slice(body));
		vdi_out_fini(body);
		*body = pretty;
	}
	content = vdi_out_slice(body);
	vdi_http_metrics_received(request);
	if (content.size > VDI_GZIP_THRESHOLD && !body->failed && code != 304 &&
	    vdi_request_takes_gzip(request) &&
	    vdi_request_reply_gzip_body(request, code, content_type, headers, body) == VD_OK)
		return;
	vdi_http_metrics_answered(request, code, (int64_t) content.size);
	write_head(request, &head, code, content_type, headers);
	if (code != 304)
		vdi_out_printf(&head, "Content-Length: %zu\r\n", content.size);
	vdi_out_raw(&head, "\r\n");
	if (request->head.method == VDI_HTTP_HEAD || code == 304)
		content.size = 0;
	if (head.failed || body->failed)
		vdi_http_connection_close(connection); /* no memory for any response */
	else
		vdi_http_connection_answer(connection, vdi_out_slice(&head), content);
	vdi_out_fini(&head);
	vdi_out_fini(body);
}

void vdi_request_fail(struct vdi_request *request, const struct vdi_http_status *status)
{
	char headers[64] = "";

	if (status->retry_after_s)
		(void) snprintf(headers, sizeof headers, "Retry-After: %u\r\n", status->retry_after_s);
	vdi_request_reply_status(request, status, headers);
}

void vdi_request_reply_status(struct vdi_request *request, const struct vdi_http_status *status,
			      const char *headers)
{
	struct vdi_out body = VDI_OUT_INIT;

	vdi_http_status_write(&body, status);
	vdi_request_log_status(request->connection->request_log, status);
	vdi_request_log_response_body(request->connection->request_log, vdi_out_slice(&body));
	if (request->form.protobuf && !body.failed) {
		vdi_request_reply_protobuf_status(request, status->code, headers, vdi_out_slice(&body));
		vdi_out_fini(&body);
		return;
	}
	vdi_out_raw(&body, "\n");
	vdi_request_reply(request, status->code, "application/json", headers, &body);
}

void vdi_request_fail_result(struct vdi_request *request, const char *verb, vd_status code,
			     const struct vd_error *error)
{
	vdi_http_status_of(&request->status, verb, request->resource->group, request->resource->plural,
			   request->route.name, code, error);
	vdi_request_fail(request, &request->status);
}

/* With upstream's text for the max-in-flight limit: text/plain, Retry-After: 1. */
void vdi_request_fail_too_many(struct vdi_request *request)
{
	struct vdi_out		  body = VDI_OUT_INIT;
	struct vdi_request_labels labels;

	vdi_request_labels_of(request, &labels);
	vdi_request_labels_terminated(&labels, 429);
	request->server->refused_total++;
	vdi_out_raw(&body, "Too many requests, please try again later.\n");
	vdi_request_reply(request, 429, "text/plain; charset=utf-8", "Retry-After: 1\r\n", &body);
}

void vdi_request_fail_nomem(struct vdi_request *request)
{
	vdi_http_status_set(&request->status, 500, "InternalError", "Internal error occurred: out of memory");
	vdi_request_fail(request, &request->status);
}

void vdi_request_stream_head(struct vdi_request *request, struct vdi_out *out, const char *content_type,
			     bool chunked)
{
	if (!chunked)
		request->connection->keep_alive = false;
	write_head(request, out, 200, content_type, chunked ? "Transfer-Encoding: chunked\r\n" : "");
	vdi_out_raw(out, "\r\n");
}

void vdi_request_encoded_head(struct vdi_request *request, struct vdi_out *out, int code,
			      const char *content_type, const char *headers, const char *encoding)
{
	write_head(request, out, code, content_type, headers);
	vdi_out_printf(out,
		       "Content-Encoding: %s\r\nVary: Accept-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n",
		       encoding);
}

static const char *resource_verb(const struct vdi_request *request)
{
	bool is_one = request->route.name.size > 0;

	switch (request->head.method) {
	case VDI_HTTP_GET:
	case VDI_HTTP_HEAD:
		if (request->route.watch_prefix || (request->params.watch && !is_one))
			return "watch";
		return is_one ? "get" : "list";
	case VDI_HTTP_POST: return "create";
	case VDI_HTTP_PUT: return "update";
	case VDI_HTTP_PATCH: return "patch";
	case VDI_HTTP_DELETE: return is_one ? "delete" : "deletecollection";
	default: return "";
	}
}

static const char *path_verb(const struct vdi_request *request)
{
	switch (request->head.method) {
	case VDI_HTTP_GET: return "get";
	case VDI_HTTP_HEAD: return "head";
	case VDI_HTTP_POST: return "post";
	case VDI_HTTP_PUT: return "put";
	case VDI_HTTP_PATCH: return "patch";
	case VDI_HTTP_DELETE: return "delete";
	default: return "";
	}
}

const char *vdi_request_verb(const struct vdi_request *request)
{
	return request->route.kind == VDI_ROUTE_RESOURCE ? resource_verb(request) : path_verb(request);
}

static enum vdi_include include_of(const struct vdi_request *request)
{
	if (vd_bytes_equal(request->params.include_object, vd_bytes_of("Object")))
		return VDI_INCLUDE_OBJECT;
	return vd_bytes_equal(request->params.include_object, vd_bytes_of("None")) ? VDI_INCLUDE_NONE :
										     VDI_INCLUDE_METADATA;
}

/* Tables and metadata forms need the object's tree. */
static void write_form(struct vdi_request *request, struct vd_bytes text, struct vdi_out *out)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;

	if (vdi_tree_parse_row(&tree, text, &root, NULL) != VD_OK) {
		out->failed = true;
	} else if (request->form.form == VDI_FORM_TABLE) {
		struct vd_bytes revision =
			vdi_tree_string_of(vdi_tree_find(&tree, root, "metadata.resourceVersion"));

		vdi_out_printf(out, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":{",
			       request->form.v1beta1 ? "v1beta1" : "v1");
		vdi_out_member(out, "resourceVersion", revision);
		vdi_out_raw(out, "}");
		vdi_table_columns(out, request->resource);
		vdi_out_raw(out, ",\"rows\":[");
		vdi_table_row(out, request->resource, &tree, root, text, include_of(request),
			      request->form.v1beta1, vd_env_wall(request->server->env));
		vdi_out_raw(out, "]}");
	} else {
		vdi_table_metadata(out, &tree, root, request->form.v1beta1);
	}
	vdi_tree_fini(&tree);
}

void vdi_request_reply_text(struct vdi_request *request, int code, struct vd_bytes text)
{
	struct vdi_out body = VDI_OUT_INIT;

	vdi_request_log_response_body(request->connection->request_log, text);
	if (request->form.protobuf && vdi_request_reply_protobuf(request, code, text, 0))
		return;
	if (request->form.form == VDI_FORM_OBJECT)
		vdi_out_bytes(&body, text);
	else
		write_form(request, text, &body);
	vdi_out_raw(&body, "\n");
	vdi_request_reply(request, code, "application/json", "", &body);
}

void vdi_request_reply_object(struct vdi_request *request, int code, struct vd_object *object,
			      vd_rev revision)
{
	struct vdi_out text = VDI_OUT_INIT;

	/* The audit log needs the JSON text anyway, with its revision. */
	if (request->form.protobuf && !vdi_request_log_wants_response(request->connection->request_log) &&
	    vdi_request_reply_protobuf(request, code, vd_kv_value(vd_object_kv(object)), revision))
		return;
	vdi_object_write(&text, request->resource, object, revision);
	if (text.failed)
		vdi_request_fail_nomem(request);
	else
		vdi_request_reply_text(request, code, vdi_out_slice(&text));
	vdi_out_fini(&text);
}

/* ---- Protobuf ---- */

static bool is_scale(const struct vdi_request *request)
{
	return vd_bytes_equal(request->route.subresource, vd_bytes_of("scale"));
}

bool vdi_request_serves_protobuf(const struct vdi_request *request)
{
	return is_scale(request) || vdi_protobuf_supports(request->resource);
}

bool vdi_request_decode_body(struct vdi_request *request)
{
	struct vdi_buffer json;

	vdi_buffer_init(&json, VDI_PROTOBUF_BODY_MAX);
	if (vdi_protobuf_decode((struct vd_bytes) { request->body, request->body_size }, &json,
				&request->status) != VD_OK) {
		vdi_buffer_fini(&json);
		vdi_request_fail(request, &request->status);
		return false;
	}
	vdi_free(request->body);
	request->body = json.data;
	request->body_size = json.size;
	request->body_capacity = json.capacity;
	return true;
}

void vdi_request_reply_buffer(struct vdi_request *request, int code, const char *headers,
			      struct vdi_buffer *out)
{
	struct vdi_out body = { .data = out->data,
				.size = out->size,
				.capacity = out->capacity,
				.failed = out->status != VD_OK };

	vdi_buffer_init(out, out->size_max);
	vdi_request_reply(request, code, VDI_K8S_PROTO_TYPE, headers, &body);
}

void vdi_request_refuse_protobuf(struct vdi_request *request, const char *why)
{
	request->form.protobuf = false; /* the Status is sent as JSON */
	vdi_http_status_set(&request->status, 406, "NotAcceptable",
			    "this can be answered as application/json only: %s", why);
	vdi_request_fail(request, &request->status);
}

bool vdi_request_reply_protobuf(struct vdi_request *request, int code, struct vd_bytes json, vd_rev revision)
{
	struct vdi_protobuf protobuf;
	struct vdi_buffer   out;
	struct vd_error	    error = { 0 };
	vd_status	    status;

	vdi_protobuf_init(&protobuf, request->resource, is_scale(request), &request->form);
	vdi_buffer_init(&out, ANSWER_MAX);
	status = vdi_protobuf_write_enveloped(&out, &protobuf, json, revision, &error);
	if (status == VD_OK) {
		vdi_request_reply_buffer(request, code, "", &out);
		return true;
	}
	vdi_buffer_fini(&out);
	if (status == VD_NOMEM)
		vdi_request_fail_nomem(request);
	else if (request->form.json_too)
		return false;
	else
		vdi_request_refuse_protobuf(request, error.message);
	return true;
}

void vdi_request_reply_protobuf_status(struct vdi_request *request, int code, const char *headers,
				       struct vd_bytes json)
{
	struct vdi_protobuf protobuf;
	struct vdi_buffer   out;
	struct vdi_out	    body = VDI_OUT_INIT;

	vdi_buffer_init(&out, ANSWER_MAX);
	vdi_protobuf_init_status(&protobuf);
	if (request->form.protobuf && vdi_protobuf_write_enveloped(&out, &protobuf, json, 0, NULL) == VD_OK) {
		vdi_request_reply_buffer(request, code, headers, &out);
		return;
	}
	vdi_buffer_fini(&out);
	vdi_out_bytes(&body, json);
	vdi_out_raw(&body, "\n");
	vdi_request_reply(request, code, "application/json", headers, &body);
}
