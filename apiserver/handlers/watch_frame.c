/* A JSON frame is `<hex>\r\n{"type":...,"object":...}\n\r\n`. The content of a protobuf frame is a 4-byte
 * big-endian length and a WatchEvent. The content of a compressed frame is one gzip member with either of
 * these. */
#include "watch_frame.h"

#include "buffer.h"
#include "caching_object.h"
#include "http_request.h"
#include "protobuf.h"
#include "stored_version.h"

#define ANNOTATED "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"

/* Frame slots of vdi_frame_get: five plain ones and as many compressed ones. Tables with includeObject=Object
 * are rare and not shared. */
enum { SLOT_OBJECT, SLOT_METADATA, SLOT_TABLE, SLOT_PROTOBUF, SLOT_PROTOBUF_METADATA, SLOT_NONE };
_Static_assert(2 * SLOT_NONE <= VDI_FRAME_SLOTS, "a slot for each shared representation");

static void write_table(struct vdi_out *out, const struct vdi_watch_encoding *encoding, struct vd_bytes text,
			bool with_columns)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;

	if (vdi_tree_parse_row(&tree, text, &root, NULL) != VD_OK) {
		out->failed = true;
	} else {
		vdi_out_printf(out, "{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/%s\",\"metadata\":{",
			       encoding->negotiated.v1beta1 ? "v1beta1" : "v1");
		vdi_out_member(out, "resourceVersion",
			       vdi_tree_string_of(vdi_tree_find(&tree, root, "metadata.resourceVersion")));
		vdi_out_raw(out, "}");
		if (with_columns)
			vdi_table_columns(out, encoding->resource);
		else
			vdi_out_raw(out, ",\"columnDefinitions\":[]");
		vdi_out_raw(out, ",\"rows\":[");
		vdi_table_row(out, encoding->resource, &tree, root, text,
			      (enum vdi_include) encoding->include, encoding->negotiated.v1beta1,
			      vd_env_wall(encoding->env));
		vdi_out_raw(out, "]}");
	}
	vdi_tree_fini(&tree);
}

static void write_metadata(struct vdi_out *out, const struct vdi_watch_encoding *encoding,
			   struct vd_bytes text)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;

	if (vdi_tree_parse_row(&tree, text, &root, NULL) != VD_OK)
		out->failed = true;
	else
		vdi_table_metadata(out, &tree, root, encoding->negotiated.v1beta1);
	vdi_tree_fini(&tree);
}

/* Writes a bookmark's object: the served kind with only a resourceVersion. */
static void write_bookmark_object(struct vdi_out *out, const struct vdi_watch_encoding *encoding,
				  const struct vd_watch_event *event)
{
	char version[VDI_RESOURCE_NAME_MAX];

	vdi_out_printf(out,
		       "{\"kind\":\"%s\",\"apiVersion\":\"%s\",\"metadata\":{\"resourceVersion\":\"%lld\"%s,"
		       "\"creationTimestamp\":null}}",
		       encoding->resource->kind, vdi_resource_api_version(encoding->resource, version),
		       (long long) event->revision, event->initial_events_end ? "," ANNOTATED : "");
}

static void write_bookmark(struct vdi_out *out, const struct vdi_watch_encoding *encoding,
			   const struct vd_watch_event *event)
{
	struct vdi_out text = VDI_OUT_INIT;

	write_bookmark_object(&text, encoding, event);
	if (text.failed)
		out->failed = true;
	else if (encoding->negotiated.form == VDI_FORM_TABLE)
		write_table(out, encoding, vdi_out_slice(&text), encoding->header_due);
	else if (encoding->negotiated.form == VDI_FORM_OBJECT)
		vdi_out_bytes(out, vdi_out_slice(&text));
	else
		write_metadata(out, encoding, vdi_out_slice(&text));
	vdi_out_fini(&text);
}

static void write_error(struct vdi_out *out, const struct vdi_watch_encoding *encoding,
			const struct vd_error *error)
{
	struct vdi_http_status *status = VDI_NEW(struct vdi_http_status);

	if (status == NULL) {
		out->failed = true;
		return;
	}
	vdi_http_status_of(status, "watch", encoding->resource->group, encoding->resource->plural,
			   VD_BYTES_NONE, error->code, error);
	vdi_http_status_write(out, status);
	vdi_free(status);
}

static void write_object(struct vdi_out *out, const struct vdi_watch_encoding *encoding,
			 const struct vd_watch_event *event)
{
	struct vdi_out text = VDI_OUT_INIT;

	if (encoding->negotiated.form == VDI_FORM_OBJECT) {
		vdi_object_write(out, encoding->resource, event->object, event->revision);
		return;
	}
	vdi_object_write(&text, encoding->resource, event->object, event->revision);
	if (text.failed)
		out->failed = true;
	else if (encoding->negotiated.form == VDI_FORM_TABLE)
		write_table(out, encoding, vdi_out_slice(&text), encoding->header_due);
	else
		write_metadata(out, encoding, vdi_out_slice(&text));
	vdi_out_fini(&text);
}

/* VD_BAD_REQUEST: the object does not have the fields of its kind. */
static vd_status write_protobuf(struct vdi_buffer *out, const struct vdi_watch_encoding *encoding,
				const struct vd_watch_event *event)
{
	struct vdi_protobuf protobuf;
	struct vdi_out	    text = VDI_OUT_INIT;
	vd_status	    status = VD_NOMEM;

	vdi_protobuf_init(&protobuf, encoding->resource, false, &encoding->negotiated);
	if (event->type == VD_WATCH_ERROR)
		write_error(&text, encoding, event->error);
	else if (event->type == VD_WATCH_BOOKMARK)
		write_bookmark_object(&text, encoding, event);
	if (text.failed)
		status = VD_NOMEM;
	else if (event->type == VD_WATCH_ERROR)
		status = vdi_protobuf_error_event(out, vdi_out_slice(&text));
	else
		status = vdi_protobuf_event(out, &protobuf, vd_watch_type_name(event->type),
					    event->type == VD_WATCH_BOOKMARK ?
						    vdi_out_slice(&text) :
						    vd_kv_value(vd_object_kv(event->object)),
					    event->type == VD_WATCH_BOOKMARK ? 0 : event->revision, NULL);
	vdi_out_fini(&text);
	return status;
}

static vd_status encode_protobuf(const struct vdi_watch_encoding *encoding,
				 const struct vd_watch_event *event, struct vd_blob **ret_frame)
{
	struct vdi_buffer out;
	vd_status	  status;

	vdi_buffer_init(&out, VDI_FRAME_MAX);
	vdi_buffer_append(&out, vd_bytes_of(VDI_FRAME_ROOM));
	status = write_protobuf(&out, encoding, event);
	vdi_buffer_append(&out, (struct vd_bytes) { "\r\n", 2 });
	if (status == VD_OK)
		status = vdi_buffer_status(&out);
	if (status == VD_OK)
		status = vdi_frame_new(out.data, out.size, ret_frame);
	vdi_buffer_fini(&out);
	return status;
}

static vd_status encode(void *arg, const struct vd_watch_event *event, struct vd_blob **ret_frame)
{
	const struct vdi_watch_encoding *encoding = arg;
	struct vdi_out			 out = VDI_OUT_INIT;
	vd_status			 status = VD_NOMEM;

	if (encoding->negotiated.protobuf)
		return encode_protobuf(encoding, event, ret_frame);
	vdi_out_raw(&out, VDI_FRAME_ROOM);
	vdi_out_printf(&out, "{\"type\":\"%s\",\"object\":", vd_watch_type_name(event->type));
	if (event->type == VD_WATCH_ERROR)
		write_error(&out, encoding, event->error);
	else if (event->type == VD_WATCH_BOOKMARK)
		write_bookmark(&out, encoding, event);
	else
		write_object(&out, encoding, event);
	vdi_out_raw(&out, "}\n\r\n");
	if (!out.failed)
		status = vdi_frame_new(out.data, out.size, ret_frame);
	vdi_out_fini(&out);
	return status;
}

/* Encodes as a gzip member of its own, with the gzip writer of the loop on whose thread this runs. */
static vd_status encode_compressed(void *arg, const struct vd_watch_event *event, struct vd_blob **ret_frame)
{
	struct vdi_watch_encoding *encoding = arg;
	struct vd_blob		  *plain;
	struct vd_bytes		   content;

	VDI_TRY(encode(encoding, event, &plain));
	content = vdi_frame_content(plain);
	encoding->compressed_size += content.size;
	vdi_gzip_writer_add(encoding->gzip_writer, content);
	vd_blob_unref(plain);
	return vdi_gzip_writer_end(encoding->gzip_writer, ret_frame);
}

static unsigned slot_of(const struct vdi_watch_encoding *encoding)
{
	const struct vdi_negotiated *negotiated = &encoding->negotiated;

	switch (negotiated->form) {
	case VDI_FORM_OBJECT:
		return encoding->resource->has_own_frames ? SLOT_NONE :
		       negotiated->protobuf		  ? SLOT_PROTOBUF :
							    SLOT_OBJECT;
	case VDI_FORM_TABLE:
		return encoding->resource->has_own_tables || encoding->header_due ||
				       encoding->include != VDI_INCLUDE_METADATA || negotiated->v1beta1 ?
			       SLOT_NONE :
			       SLOT_TABLE;
	default:
		return negotiated->v1beta1  ? SLOT_NONE :
		       negotiated->protobuf ? SLOT_PROTOBUF_METADATA :
					      SLOT_METADATA;
	}
}

bool vdi_watch_frame_is_shared(const struct vdi_watch_encoding *encoding, const struct vd_watch_event *event)
{
	return event->shared && slot_of(encoding) != SLOT_NONE;
}

vd_status vdi_watch_frame_get(struct vdi_watch_encoding *encoding, const struct vd_watch_event *event,
			      struct vd_blob **ret_frame)
{
	if (encoding->gzip_writer)
		return vdi_frame_get(event, SLOT_NONE + slot_of(encoding), encode_compressed, encoding,
				     ret_frame);
	return vdi_frame_get(event, slot_of(encoding), encode, encoding, ret_frame);
}

vd_status vdi_watch_frame_new(struct vdi_watch_encoding *encoding, const struct vd_watch_event *event,
			      struct vd_blob **ret_frame)
{
	VDI_TRY(encode(encoding, event, ret_frame));
	if (event->type != VD_WATCH_ERROR)
		encoding->header_due = false;
	return VD_OK;
}
