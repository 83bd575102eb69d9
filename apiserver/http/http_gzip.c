/* The stream: source -> encoder -> room -> one chunk.
 *
 * An iteration compresses SLICE bytes, about half a millisecond, and then lets other connections run. Its
 * output is collected in the room, which is sent as one chunk when it is full; the response head precedes the
 * first chunk, and the last-chunk follows the last.
 */
#include "http_gzip.h"

#include <stdio.h>

#include "gzip.h"
#include "http_metrics.h"
#include "negotiate.h"

#define SLICE 65536
#define ROOM_BYTES 32768

struct gzip_stream {
	struct vdi_http_stream	stream;
	struct vdi_http_loop   *loop;
	struct vdi_gzip_source *source;
	struct vdi_gzip	       *gzip;
	int64_t			sent; /* bytes of compressed content */

	/* Input that the encoder has not taken yet. */
	const struct iovec *parts;
	size_t		    part_at, part_count, part_offset;
	bool		    is_last; /* no parts follow these */
	bool		    is_made; /* all input is compressed */

	/* Output that is not sent yet. */
	struct vdi_out head; /* of the response, before the first chunk */
	char	       line[24];
	struct iovec   out[4];
	size_t	       out_at, out_count;
	size_t	       room_used;
	char	       room[ROOM_BYTES];
};

bool vdi_request_accepts_gzip(const struct vdi_request *request)
{
	struct vd_bytes encodings;

	return !request->server->options.no_compression && !request->head.version_1_0 &&
	       request->head.method != VDI_HTTP_HEAD &&
	       vdi_http_header_get(&request->head, "Accept-Encoding", &encodings) &&
	       vdi_negotiate_gzip(encodings);
}

bool vdi_request_takes_gzip(const struct vdi_request *request)
{
	return request->loop->gzip_count < VDI_GZIP_LOOP_MAX && vdi_request_accepts_gzip(request);
}

/* Compresses until the room is full, all input is compressed, or the iteration's slice is used. */
static vd_status make_some(struct gzip_stream *stream, size_t *turn)
{
	while (!stream->is_made && stream->room_used < ROOM_BYTES && *turn < SLICE) {
		struct vd_bytes input = VD_BYTES_NONE;
		size_t		taken, made;
		bool		is_last;
		vd_status	status;

		if (stream->part_at == stream->part_count && !stream->is_last) {
			stream->part_at = stream->part_offset = 0;
			VDI_TRY(stream->source->ops->next(stream->source, &stream->parts, &stream->part_count,
							  &stream->is_last));
			continue;
		}
		if (stream->part_at < stream->part_count) {
			const struct iovec *part = &stream->parts[stream->part_at];

			input = (struct vd_bytes) { (const char *) part->iov_base + stream->part_offset,
						    VDI_MIN(part->iov_len - stream->part_offset,
							    SLICE - *turn) };
		}
		is_last = stream->is_last &&
			  (stream->part_at == stream->part_count ||
			   (stream->part_at + 1 == stream->part_count &&
			    stream->part_offset + input.size == stream->parts[stream->part_at].iov_len));
		status = vdi_gzip_take(stream->gzip, input, is_last, stream->room + stream->room_used,
				       ROOM_BYTES - stream->room_used, &taken, &made);
		stream->room_used += made;
		stream->part_offset += taken;
		*turn += taken;
		if (stream->part_at < stream->part_count &&
		    stream->part_offset == stream->parts[stream->part_at].iov_len) {
			stream->part_at++;
			stream->part_offset = 0;
		}
		stream->is_made = is_last && status == VD_OK;
	}
	return VD_OK;
}

static void push(struct gzip_stream *stream, const void *data, size_t size)
{
	if (size)
		stream->out[stream->out_count++] = (struct iovec) { (void *) (uintptr_t) data, size };
}

/* Frames the room as a chunk. */
static void frame(struct gzip_stream *stream)
{
	stream->out_at = stream->out_count = 0;
	push(stream, stream->head.data, stream->head.size);
	if (stream->room_used) {
		push(stream, stream->line,
		     (size_t) snprintf(stream->line, sizeof stream->line, "%zx\r\n", stream->room_used));
		push(stream, stream->room, stream->room_used);
	}
	if (stream->is_made)
		push(stream, stream->room_used ? "\r\n0\r\n\r\n" : "0\r\n\r\n", stream->room_used ? 7 : 5);
	else
		push(stream, "\r\n", 2);
	stream->sent += (int64_t) stream->room_used;
}

static vd_status flush(struct gzip_stream *stream, struct vdi_http_connection *connection)
{
	size_t	  sent;
	vd_status status = vdi_http_connection_send(connection, stream->out + stream->out_at,
						    stream->out_count - stream->out_at, &sent);

	while (stream->out_at < stream->out_count && sent >= stream->out[stream->out_at].iov_len)
		sent -= stream->out[stream->out_at++].iov_len;
	if (stream->out_at < stream->out_count) {
		stream->out[stream->out_at].iov_base = (char *) stream->out[stream->out_at].iov_base + sent;
		stream->out[stream->out_at].iov_len -= sent;
		return status;
	}
	vdi_out_fini(&stream->head);
	stream->out_at = stream->out_count = stream->room_used = 0;
	return VD_OK;
}

static vd_status pump(struct vdi_http_stream *base, struct vdi_http_connection *connection)
{
	struct gzip_stream *stream = VDI_CONTAINER_OF(base, struct gzip_stream, stream);
	size_t		    turn = 0;

	for (;;) {
		if (stream->out_count) {
			VDI_TRY(flush(stream, connection));
			if (stream->is_made)
				return VD_OK;
		}
		if (turn >= SLICE)
			return VD_FULL;
		VDI_TRY(make_some(stream, &turn));
		if (stream->is_made || stream->room_used == ROOM_BYTES)
			frame(stream);
	}
}

static void free_stream(struct vdi_http_stream *base)
{
	struct gzip_stream *stream = VDI_CONTAINER_OF(base, struct gzip_stream, stream);

	if (stream->source)
		stream->source->ops->free(stream->source, stream->sent);
	stream->loop->gzip_count--;
	(void) vdi_gzip_free(stream->gzip);
	vdi_out_fini(&stream->head);
	vdi_free(stream);
}

static const struct vdi_http_stream_ops gzip_ops = { pump, NULL, free_stream };

vd_status vdi_request_reply_gzip(struct vdi_request *request, int code, const char *content_type,
				 const char *headers, struct vdi_gzip_source *source)
{
	struct gzip_stream *stream = VDI_NEW(struct gzip_stream);

	if (stream == NULL)
		return VD_NOMEM;
	stream->stream.ops = &gzip_ops;
	stream->loop = request->loop;
	stream->loop->gzip_count++;
	vdi_request_encoded_head(request, &stream->head, code, content_type, headers, "gzip");
	if (stream->head.failed || vdi_gzip_new(&stream->gzip) != VD_OK) {
		free_stream(&stream->stream);
		return VD_NOMEM;
	}
	stream->source = source;
	vdi_http_connection_stream(request->connection, &stream->stream);
	return VD_OK;
}

/* ---- Body as a source ---- */

struct body_source {
	struct vdi_gzip_source	  source;
	struct vdi_request_labels labels;
	int			  code;
	struct vdi_out		  body;
	struct iovec		  part;
};

static vd_status next_of_body(struct vdi_gzip_source *source, const struct iovec **ret_parts,
			      size_t *ret_count, bool *ret_is_last)
{
	struct body_source *body = VDI_CONTAINER_OF(source, struct body_source, source);

	body->part = (struct iovec) { body->body.data, body->body.size };
	*ret_parts = &body->part;
	*ret_count = 1;
	*ret_is_last = true;
	return VD_OK;
}

static void free_body(struct vdi_gzip_source *source, int64_t sent)
{
	struct body_source *body = VDI_CONTAINER_OF(source, struct body_source, source);

	vdi_request_labels_answered(&body->labels, body->code, sent);
	vdi_out_fini(&body->body);
	vdi_free(body);
}

static const struct vdi_gzip_source_ops body_ops = { next_of_body, free_body };

vd_status vdi_request_reply_gzip_body(struct vdi_request *request, int code, const char *content_type,
				      const char *headers, struct vdi_out *body)
{
	struct body_source *source = VDI_NEW(struct body_source);
	struct vdi_out	    given = *body;

	if (source == NULL)
		return VD_NOMEM;
	source->source.ops = &body_ops;
	vdi_request_labels_of(request, &source->labels);
	source->code = code;
	source->body = given;
	/* The stream owns the body now and may be finished and freed when the call returns. */
	*body = (struct vdi_out) VDI_OUT_INIT;
	if (vdi_request_reply_gzip(request, code, content_type, headers, &source->source) == VD_OK)
		return VD_OK;
	*body = given;
	vdi_free(source);
	return VD_NOMEM;
}
