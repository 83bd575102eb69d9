/* LIST: streams a snapshot.
 *
 * The list is read lazily while the socket takes bytes, so only one batch is in memory at a time. Plain lists
 * use scatter/gather: one sendmsg sends the pieces of up to BATCH_OBJECTS stored objects, commas and one
 * chunk frame without copying. Tables and metadata lists are rendered batch by batch. So 64 concurrent lists
 * of any size cost the memory of 64 batches.
 *
 * A protobuf list has length prefixes and transcoded objects, so it is built in one piece, up to
 * PROTOBUF_BYTES of JSON. A larger one is sent as JSON if the client accepts that (all known clients do),
 * because JSON needs no transcoding; the pages of paged lists are small.
 *
 * For a client that accepts gzip, the start of the list is read before the response begins: if there are more
 * than VDI_GZIP_THRESHOLD bytes, the batches become the source of a compressed response (http_gzip.h) and
 * have no chunk frames.
 */
#include "field_support.h"
#include "http_gzip.h"

#include <stdio.h>

#include "cache_list.h"
#include "cacher.h"
#include "continue_token.h"
#include "http_handlers.h"
#include "http_metrics.h"
#include "protobuf.h"
#include "stored_version.h"

#define BATCH_OBJECTS 128
#define BATCH_BYTES 131072
#define ITERATION_BYTES (1 << 20)
#define READ_BYTES (1 << 18)		/* input of one rendered batch; its rows may be short */
#define PRETTY_BYTES ((size_t) 1 << 18) /* longest list that is indented */
#define ENDING "]}\n"
#define PARTS_MAX (BATCH_OBJECTS * 6 + 8)
#define PROTOBUF_BYTES (2 << 20)
#define PROTOBUF_ANSWER_MAX ((size_t) 64 << 20)

struct list_stream {
	struct vdi_http_stream	  stream;
	struct vdi_gzip_source	  source;
	struct vd_server	 *server;
	struct vdi_resource	 *resource;
	struct vd_list		 *list;
	struct vdi_request_labels labels;
	int64_t			  sent; /* bytes; counted once the stream has begun */
	size_t			  read; /* bytes of the objects of the last rendered batch */
	bool			  streams;
	struct vdi_negotiated	  form;
	enum vdi_include	  include;
	bool			  chunked;
	bool			  first; /* no item written yet */
	bool			  ended; /* the last batch is made */
	bool			  begun; /* the source has returned the head */

	/* The list's first objects, read early to determine its size; sent first. */
	struct vd_object **taken;
	size_t		   taken_at, taken_count, taken_capacity;

	/* The batch being sent: parts[part_at..part_count), without the first part_offset bytes. */
	size_t			 part_at;
	size_t			 part_count;
	struct iovec		 parts[PARTS_MAX];
	struct vdi_object_pieces json[BATCH_OBJECTS];
	char			 chunk_head[24];
	struct vdi_out		 text; /* head, tail or rendered rows of the batch */
	struct vdi_out		 scratch;
};

static void push(struct list_stream *list, const void *data, size_t size)
{
	if (size)
		list->parts[list->part_count++] = (struct iovec) { (void *) (uintptr_t) data, size };
}

/* Adds the chunk frame around the parts from index from on, whose first one was left free for it. */
static void frame(struct list_stream *list, size_t from)
{
	size_t size = 0;

	for (size_t i = from + 1; i < list->part_count; i++)
		size += list->parts[i].iov_len;
	if (!list->chunked || size == 0) {
		list->parts[from] = (struct iovec) { list->chunk_head, 0 };
		if (list->chunked && list->ended)
			push(list, "0\r\n\r\n", 5);
		return;
	}
	list->parts[from] = (struct iovec) { list->chunk_head,
					     (size_t) snprintf(list->chunk_head, sizeof list->chunk_head,
							       "%zx\r\n", size) };
	push(list, list->ended ? "\r\n0\r\n\r\n" : "\r\n", list->ended ? 7 : 2);
}

static struct vd_object *next_object(struct list_stream *list)
{
	return list->taken_at < list->taken_count ? list->taken[list->taken_at++] : vd_list_next(list->list);
}

/* Pushes stored objects unchanged. */
static void batch_objects(struct list_stream *list)
{
	size_t count = 0, size = 0;

	while (count < BATCH_OBJECTS && size < BATCH_BYTES) {
		struct vd_object *object = next_object(list);

		if (object == NULL) {
			list->ended = true;
			break;
		}
		if (!list->first)
			push(list, ",", 1);
		list->first = false;
		vdi_object_pieces(list->resource, object, vd_object_revision(object), &list->json[count]);
		for (size_t i = 0; i < list->json[count].count; i++) {
			push(list, list->json[count].piece[i].data, list->json[count].piece[i].size);
			size += list->json[count].piece[i].size;
		}
		count++;
	}
}

/* Appends the object's row to out. */
static void render(struct list_stream *list, struct vd_object *object, struct vdi_out *out)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;

	vdi_out_reset(&list->scratch);
	vdi_object_write(&list->scratch, list->resource, object, vd_object_revision(object));
	out->failed |= list->scratch.failed;
	if (out->failed || vdi_tree_parse_row(&tree, vdi_out_slice(&list->scratch), &root, NULL) != VD_OK)
		out->failed = true;
	else if (list->form.form == VDI_FORM_TABLE)
		vdi_table_row(out, list->resource, &tree, root, vdi_out_slice(&list->scratch), list->include,
			      list->form.v1beta1, vd_env_wall(list->server->env));
	else
		vdi_table_metadata(out, &tree, root, list->form.v1beta1);
	vdi_tree_fini(&tree);
}

/* Appends rows to out until it has size_max bytes or the list ends. */
static void render_some(struct list_stream *list, struct vdi_out *out, size_t size_max)
{
	list->read = 0;
	while (out->size < size_max && list->read < READ_BYTES && !out->failed) {
		struct vd_object *object = next_object(list);

		if (object == NULL) {
			list->ended = true;
			break;
		}
		if (!list->first)
			vdi_out_raw(out, ",");
		list->first = false;
		list->read += vd_kv_value(vd_object_kv(object)).size;
		render(list, object, out);
	}
}

static vd_status next_batch(struct list_stream *list)
{
	list->part_at = 0;
	list->part_count = 1;
	vdi_out_reset(&list->text);
	if (list->form.form == VDI_FORM_OBJECT) {
		batch_objects(list);
	} else {
		render_some(list, &list->text, BATCH_BYTES / 2);
		push(list, list->text.data, list->text.size);
	}
	if (list->ended)
		push(list, ENDING, sizeof ENDING - 1);
	frame(list, 0);
	return list->text.failed ? VD_NOMEM : VD_OK;
}

/* Sends the batch in order; a partly sent part is shortened. */
static vd_status flush(struct list_stream *list, struct vdi_http_connection *connection,
		       size_t *iteration_bytes)
{
	size_t	  sent;
	vd_status status = vdi_http_connection_send(connection, list->parts + list->part_at,
						    list->part_count - list->part_at, &sent);

	*iteration_bytes += sent;
	list->sent += (int64_t) sent;
	while (list->part_at < list->part_count && sent >= list->parts[list->part_at].iov_len)
		sent -= list->parts[list->part_at++].iov_len;
	if (list->part_at < list->part_count) {
		list->parts[list->part_at].iov_base = (char *) list->parts[list->part_at].iov_base + sent;
		list->parts[list->part_at].iov_len -= sent;
	}
	return status;
}

static vd_status pump(struct vdi_http_stream *stream, struct vdi_http_connection *connection)
{
	struct list_stream *list = VDI_CONTAINER_OF(stream, struct list_stream, stream);
	size_t		    iteration_bytes = 0;

	for (;;) {
		VDI_TRY(flush(list, connection, &iteration_bytes));
		if (list->ended)
			return VD_OK;
		if (iteration_bytes >= ITERATION_BYTES)
			return VD_FULL;
		VDI_TRY(next_batch(list));
		iteration_bytes += list->read;
	}
}

static void free_list(struct vdi_http_stream *stream)
{
	struct list_stream *list = VDI_CONTAINER_OF(stream, struct list_stream, stream);

	if (list->streams)
		vdi_request_labels_answered(&list->labels, 200, list->sent);
	(void) vd_list_free(list->list);
	vdi_free(list->taken);
	vdi_out_fini(&list->text);
	vdi_out_fini(&list->scratch);
	(void) vdi_resource_unref(list->resource);
	vdi_free(list);
}

static const struct vdi_http_stream_ops list_ops = { pump, NULL, free_list };

/* Writes everything before the first item. */
static void write_head(struct list_stream *list, struct vdi_out *out)
{
	char version[VDI_RESOURCE_NAME_MAX];

	if (list->form.form == VDI_FORM_TABLE)
		vdi_out_printf(out, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\"",
			       list->form.v1beta1 ? "v1beta1" : "v1");
	else if (list->form.form == VDI_FORM_OBJECT)
		vdi_out_printf(out, "{\"kind\":\"%s\",\"apiVersion\":\"%s\"", list->resource->list_kind,
			       vdi_resource_api_version(list->resource, version));
	else
		vdi_out_printf(out,
			       "{\"kind\":\"PartialObjectMetadataList\",\"apiVersion\":\"meta.k8s.io/%s\"",
			       list->form.v1beta1 ? "v1beta1" : "v1");
	vdi_out_printf(out, ",\"metadata\":{\"resourceVersion\":\"%lld\"",
		       (long long) vd_list_revision(list->list));
	vdi_out_member(out, "continue", vd_list_continue(list->list));
	if (vd_list_remaining(list->list) > 0) {
		vdi_out_key(out, "remainingItemCount");
		vdi_out_int(out, vd_list_remaining(list->list));
	}
	if (vd_list_shard_selector(list->list).size && list->form.form != VDI_FORM_TABLE) {
		vdi_out_key(out, "shardInfo");
		vdi_out_raw(out, "{\"selector\":");
		vdi_out_string(out, vd_list_shard_selector(list->list));
		vdi_out_raw(out, "}");
	}
	vdi_out_raw(out, "}");
	if (list->form.form == VDI_FORM_TABLE)
		vdi_table_columns(out, list->resource);
	vdi_out_raw(out, list->form.form == VDI_FORM_TABLE ? ",\"rows\":[" : ",\"items\":[");
}

/* Reads objects until the list ends (*ret_all true) or their size exceeds size_max. */
static vd_status take_some(struct list_stream *list, size_t size_max, bool *ret_all)
{
	struct vd_object *object;
	size_t		  size = 0;

	*ret_all = false;
	while ((object = vd_list_next(list->list))) {
		void *grown = list->taken;

		if (!vdi_grow(&grown, &list->taken_capacity, list->taken_count + 1, sizeof *list->taken))
			return VD_NOMEM; /* the request fails, so the objects read are not needed */
		list->taken = grown;
		list->taken[list->taken_count++] = object;
		size += vd_kv_value(vd_object_kv(object)).size;
		if (size > size_max)
			return VD_OK;
	}
	*ret_all = true;
	return VD_OK;
}

/* ---- Gzip ---- */

static vd_status next_source(struct vdi_gzip_source *source, const struct iovec **ret_parts,
			     size_t *ret_count, bool *ret_is_last)
{
	struct list_stream *list = VDI_CONTAINER_OF(source, struct list_stream, source);

	if (list->begun)
		VDI_TRY(next_batch(list));
	list->begun = true;
	*ret_parts = list->parts;
	*ret_count = list->part_count;
	*ret_is_last = list->ended;
	return VD_OK;
}

static void free_source(struct vdi_gzip_source *source, int64_t sent)
{
	struct list_stream *list = VDI_CONTAINER_OF(source, struct list_stream, source);

	list->sent = sent;
	list->stream.ops->free(&list->stream);
}

static const struct vdi_gzip_source_ops source_ops = { next_source, free_source };

/* Sets *ret_is_long if the content is larger than VDI_GZIP_THRESHOLD. head has the content so far; rows
 * are added to it while it is smaller. */
static vd_status is_long(struct list_stream *list, struct vdi_out *head, bool *ret_is_long)
{
	size_t size = head->size + sizeof ENDING - 1;
	bool   all;

	if (list->form.form != VDI_FORM_OBJECT) {
		for (size_t read = 0; head->size <= VDI_GZIP_THRESHOLD && read < ITERATION_BYTES &&
				      !list->ended && !head->failed;
		     read += list->read)
			render_some(list, head, VDI_GZIP_THRESHOLD + 1);
		if (list->ended)
			vdi_out_raw(head, ENDING);
		*ret_is_long = head->size > VDI_GZIP_THRESHOLD;
		return head->failed ? VD_NOMEM : VD_OK;
	}
	if (list->taken_count == 0)
		VDI_TRY(take_some(list, VDI_GZIP_THRESHOLD, &all));
	for (size_t i = 0; i < list->taken_count && size <= VDI_GZIP_THRESHOLD; i++) {
		struct vdi_object_pieces json;

		vdi_object_pieces(list->resource, list->taken[i], vd_object_revision(list->taken[i]), &json);
		for (size_t j = 0; j < json.count; j++)
			size += json.piece[j].size;
		size += i > 0;
	}
	*ret_is_long = size > VDI_GZIP_THRESHOLD;
	return VD_OK;
}

/* False: no response was sent, respond without compression. True: head was taken over. */
static bool reply_gzip(struct vdi_request *request, struct list_stream *list, struct vdi_out *head)
{
	bool chunked = list->chunked;

	list->source.ops = &source_ops;
	vdi_out_fini(&list->text);
	list->text = *head;
	list->part_count = 0;
	push(list, list->text.data, list->text.size);
	list->chunked = false; /* the encoder's output is chunked */
	list->streams = true;
	if (vdi_request_reply_gzip(request, 200, "application/json", "", &list->source) == VD_OK) {
		*head = (struct vdi_out) VDI_OUT_INIT;
		return true;
	}
	list->text = (struct vdi_out) VDI_OUT_INIT;
	list->part_count = 0;
	list->chunked = chunked;
	list->streams = false;
	return false;
}

/* ---- Protobuf ---- */

static void write_list_meta(struct vdi_buffer *out, const struct vd_list *list)
{
	size_t meta = vdi_k8s_proto_begin(out, 1), shard;
	char   text[24];

	(void) snprintf(text, sizeof text, "%lld", (long long) vd_list_revision(list));
	/* selfLink: as in upstream's encoder, strings are written even if they are empty. */
	vdi_k8s_proto_bytes(out, 1, (struct vd_bytes) { NULL, 0 });
	vdi_k8s_proto_bytes(out, 2, vd_bytes_of(text));
	vdi_k8s_proto_bytes(out, 3, vd_list_continue(list));
	if (vd_list_remaining(list) > 0)
		vdi_k8s_proto_varint(out, 4, (uint64_t) vd_list_remaining(list));
	if (vd_list_shard_selector(list).size) {
		shard = vdi_k8s_proto_begin(out, 5);
		vdi_k8s_proto_bytes(out, 1, vd_list_shard_selector(list));
		vdi_k8s_proto_end(out, shard);
	}
	vdi_k8s_proto_end(out, meta);
}

static vd_status write_protobuf(struct list_stream *list, struct vdi_buffer *out, struct vd_error *reterr)
{
	struct vdi_protobuf protobuf;
	struct vd_bytes	    kind = vd_bytes_of("PartialObjectMetadataList");
	size_t		    envelope;

	vdi_protobuf_init(&protobuf, list->resource, false, &list->form);
	if (list->form.form == VDI_FORM_OBJECT)
		kind = vd_bytes_of(list->resource->list_kind);
	envelope = vdi_k8s_proto_envelope_begin(out, protobuf.api_version, kind);
	write_list_meta(out, list->list);
	for (size_t i = 0; i < list->taken_count; i++) {
		struct vd_object *object = list->taken[i];
		size_t		  item = vdi_k8s_proto_begin(out, 2);

		VDI_TRY(vdi_protobuf_write(out, &protobuf, vd_kv_value(vd_object_kv(object)),
					   vd_object_revision(object), reterr));
		vdi_k8s_proto_end(out, item);
	}
	vdi_k8s_proto_envelope_end(out, envelope);
	return vdi_buffer_status(out);
}

/* False: no response was sent, respond in JSON. True: list was taken over. */
static bool reply_protobuf(struct vdi_request *request, struct list_stream *list)
{
	struct vdi_buffer out;
	struct vd_error	  error = { .message = "the list is too large, ask for pages by limit" };
	bool		  all;
	vd_status	  status;

	vdi_buffer_init(&out, PROTOBUF_ANSWER_MAX);
	status = take_some(list, PROTOBUF_BYTES, &all);
	if (status == VD_OK)
		status = all ? write_protobuf(list, &out, &error) : VD_TOO_BIG;
	if (status == VD_OK) {
		list->stream.ops->free(&list->stream);
		vdi_request_reply_buffer(request, 200, "", &out);
		return true;
	}
	vdi_buffer_fini(&out);
	if (status != VD_NOMEM && request->form.json_too) {
		list->form.protobuf = request->form.protobuf = false;
		return false;
	}
	list->stream.ops->free(&list->stream);
	if (status == VD_NOMEM)
		vdi_request_fail_nomem(request);
	else
		vdi_request_refuse_protobuf(request, error.message);
	return true;
}

/* ---- JSON ---- */

/* Returns true if the list is short enough to indent. A list too long for protobuf is too long here. */
static bool is_for_eyes(struct list_stream *list)
{
	bool all = false;

	return list->taken_count == 0 && take_some(list, PRETTY_BYTES, &all) == VD_OK && all;
}

/* Pretty-printed lists are written whole, then indented. */
static void reply_pretty(struct vdi_request *request, struct list_stream *list)
{
	struct vdi_out body = VDI_OUT_INIT;

	list->chunked = false;
	write_head(list, &body);
	while (!list->ended && !body.failed) {
		body.failed |= next_batch(list) != VD_OK;
		for (size_t i = 0; i < list->part_count; i++)
			vdi_out_bytes(&body,
				      (struct vd_bytes) { list->parts[i].iov_base, list->parts[i].iov_len });
	}
	list->stream.ops->free(&list->stream);
	vdi_request_reply(request, 200, "application/json", "", &body);
}

static struct list_stream *new_stream(struct vdi_request *request)
{
	struct list_stream *list = VDI_NEW(struct list_stream);

	if (list == NULL)
		return NULL;
	list->stream.ops = &list_ops;
	list->server = request->server;
	list->resource = vdi_resource_ref(request->resource);
	list->list = request->list;
	request->list = NULL;
	vdi_request_labels_of(request, &list->labels);
	list->form = request->form;
	if (list->form.form == VDI_FORM_METADATA)
		list->form.form = VDI_FORM_METADATA_LIST;
	list->include =
		vd_bytes_equal(request->params.include_object, vd_bytes_of("Object")) ? VDI_INCLUDE_OBJECT :
		vd_bytes_equal(request->params.include_object, vd_bytes_of("None"))   ? VDI_INCLUDE_NONE :
											VDI_INCLUDE_METADATA;
	list->chunked = !request->head.version_1_0;
	list->first = true;
	return list;
}

/* As upstream, the 410 has a continue token that continues the list at the latest revision. */
static void fail_expired_page(struct vdi_request *request)
{
	static const char message[] = "The provided continue parameter is too old to display a consistent "
				      "list result. You can start a new list without the continue "
				      "parameter, or use the continue token in this response to retrieve the "
				      "remainder of the results. Continuing with the provided token "
				      "results in an inconsistent list - objects that were created, "
				      "modified, or deleted between the time the first chunk was returned "
				      "and now may show up in the list.";
	struct vd_bytes	  prefix = vd_bytes_of("/");
	char		 *key, *token = NULL;
	size_t		  size;
	vd_rev		  revision;

	if (vdi_continue_token_decode(request->params.continue_token, prefix, &key, &size, &revision, NULL) !=
	    VD_OK) {
		vdi_request_fail_result(request, "list", request->result, &request->error);
		return;
	}
	if (vdi_continue_token_encode((struct vd_bytes) { key, size }, prefix, VDI_CONTINUE_LATEST, &token,
				      NULL) == VD_OK) {
		vdi_http_status_set(&request->status, 410, "Expired", "%s", message);
		request->status.continue_token = vd_bytes_of(token);
		vdi_request_fail(request, &request->status);
	} else {
		vdi_request_fail_nomem(request);
	}
	vdi_free(token);
	vdi_free(key);
}

static void listed(struct vdi_request *request)
{
	struct list_stream *list;
	struct vdi_out	    head = VDI_OUT_INIT;
	size_t		    head_size;
	bool		    is_to_compress = false;

	if (request->result == VD_EXPIRED && request->params.continue_token.size) {
		fail_expired_page(request);
		return;
	}
	if (request->result != VD_OK) {
		vdi_request_fail_result(request, "list", request->result, &request->error);
		return;
	}
	list = new_stream(request);
	if (list == NULL) {
		vdi_request_fail_nomem(request);
		return;
	}
	if (list->form.protobuf && reply_protobuf(request, list))
		return;
	if (request->pretty && is_for_eyes(list)) {
		reply_pretty(request, list);
		return;
	}
	request->pretty = false;
	write_head(list, &head);
	if (vdi_request_takes_gzip(request)) {
		head.failed |= is_long(list, &head, &is_to_compress) != VD_OK;
		if (is_to_compress && !head.failed && reply_gzip(request, list, &head))
			return;
	}
	/* The response head and the list's head are the first batch. */
	vdi_request_stream_head(request, &list->text, "application/json", list->chunked);
	head_size = list->text.size;
	vdi_out_bytes(&list->text, vdi_out_slice(&head));
	list->text.failed |= head.failed;
	if (!list->text.failed) {
		push(list, list->text.data, head_size);
		list->part_count++;
		push(list, list->text.data + head_size, head.size);
		frame(list, 1);
	}
	vdi_out_fini(&head);
	if (list->text.failed) {
		list->stream.ops->free(&list->stream);
		vdi_http_connection_close(request->connection);
		return;
	}
	list->streams = true;
	vdi_http_connection_stream(request->connection, &list->stream);
}

/* ---- Listing ---- */

/* False: a response was sent. */
static bool read_options(struct vdi_request *request)
{
	struct vd_list_options *options = &request->list_options;
	struct vdi_params      *params = &request->params;

	*options = (struct vd_list_options) VD_LIST_OPTIONS_INIT;
	if (!vdi_params_validate_list(params, &request->status) ||
	    !vdi_params_validate_query(params, &request->status) ||
	    !vdi_field_support_check(request->resource, params->field_selector, &request->status) ||
	    !vdi_params_revision(params->resource_version, &options->revision, &request->status) ||
	    !vdi_params_int(params->limit, &options->limit, &request->status)) {
		vdi_request_fail(request, &request->status);
		return false;
	}
	options->namespace_name = request->route.namespace_name;
	options->label_selector = params->label_selector;
	options->field_selector = params->field_selector;
	options->shard_selector = params->shard_selector;
	options->limit = VDI_MAX(options->limit, 0);
	options->continue_token = params->continue_token;
	options->match = vd_bytes_equal(params->resource_version_match, vd_bytes_of("Exact")) ?
				 VD_MATCH_EXACT :
			 vd_bytes_equal(params->resource_version_match, vd_bytes_of("NotOlderThan")) ?
				 VD_MATCH_NOT_OLDER_THAN :
				 VD_MATCH_UNSET;
	return true;
}

static void run_gather(struct vdi_work *work)
{
	struct vdi_request *request = VDI_CONTAINER_OF(work, struct vdi_request, list_work);
	struct vd_error	    error = { 0 };
	struct vd_list	   *list = request->unsearched;
	vd_status	    status = vdi_list_gather(list, &error);

	request->unsearched = NULL;
	if (status != VD_OK)
		list = vd_list_free(list);
	vdi_request_got_list(request, status, list, status == VD_OK ? NULL : &error);
}

/* Posts run to the search threads; resume continues when run has called vdi_request_got_list. */
static void search(struct vdi_request *request, void (*run)(struct vdi_work *work),
		   void (*resume)(struct vdi_request *request))
{
	vdi_request_await(request, resume);
	request->list_work.run = run;
	if (vdi_work_queue_post(&request->server->searches, &request->list_work) == VD_OK) {
		vdi_request_awaited(request, VD_OK, NULL);
		return;
	}
	request->waiting = 0;
	request->resume = NULL;
	request->unsearched = vd_list_free(request->unsearched);
	vdi_request_fail_too_many(request);
}

static void found(struct vdi_request *request)
{
	if (request->result != VD_OK || !vdi_list_is_long(request->list)) {
		request->list_resume(request);
		return;
	}
	request->unsearched = request->list;
	request->list = NULL;
	search(request, run_gather, request->list_resume);
}

/* For a list from the store, which decodes each object on the calling thread. */
static void run_list(struct vdi_work *work)
{
	struct vdi_request *request = VDI_CONTAINER_OF(work, struct vdi_request, list_work);
	struct vd_error	    error = { 0 };
	vd_status status = vdi_cacher_list_pending(request->resource->cacher, &request->list_options, true,
						   vdi_request_got_list, request, &error);

	if (status != VD_OK)
		vdi_request_got_list(request, status, NULL, &error);
}

void vdi_request_list(struct vdi_request *request, void (*resume)(struct vdi_request *request))
{
	struct vd_error error = { 0 };
	vd_status	status = VD_AGAIN;

	if (!read_options(request))
		return;
	request->list_resume = resume;
	vdi_request_await(request, found);
	/* A retained old revision may also take long to produce. */
	if (request->list_options.match != VD_MATCH_EXACT && request->list_options.continue_token.size == 0)
		status = vdi_cacher_list_pending(request->resource->cacher, &request->list_options, false,
						 vdi_request_got_list, request, &error);
	if (status == VD_AGAIN)
		search(request, run_list, found);
	else
		vdi_request_awaited(request, status, &error);
}

void vdi_handle_list(struct vdi_request *request)
{
	vdi_request_list(request, listed);
}
