/* Counts brackets, and tracks whether the position is inside a string. */
#include "json_stream.h"

static bool is_space(char character)
{
	return character == ' ' || character == '\n' || character == '\r' || character == '\t';
}

/* Advances by one character of an open value. True: it was the last one of the value. */
static bool step(struct vdi_json_stream *stream, char character)
{
	if (stream->in_string) {
		if (stream->escaped)
			stream->escaped = false;
		else if (character == '\\')
			stream->escaped = true;
		else if (character == '"')
			stream->in_string = false;
		return false;
	}
	if (character == '"')
		stream->in_string = true;
	else if (character == '{' || character == '[')
		stream->depth++;
	else if (character == '}' || character == ']')
		return --stream->depth == 0;
	return false;
}

vd_status vdi_json_stream_feed(struct vdi_json_stream *stream, struct vd_bytes bytes, vdi_json_stream_fn each,
			       void *arg)
{
	size_t start = 0;

	if (bytes.size == 0)
		return VD_OK;
	if (stream->size + bytes.size > VDI_JSON_STREAM_VALUE_MAX)
		return VD_TOO_BIG;
	if (!vdi_grow((void **) &stream->data, &stream->capacity, stream->size + bytes.size, 1))
		return VD_NOMEM;
	memcpy(stream->data + stream->size, bytes.data, bytes.size);
	stream->size += bytes.size;
	for (; stream->scanned < stream->size; stream->scanned++) {
		char character = stream->data[stream->scanned];

		stream->lines += character == '\n';
		if (stream->depth == 0) {
			/* Between values; commas separate the elements if the inside of an array is fed. */
			if (is_space(character) || character == ',')
				continue;
			if (character != '{' && character != '[')
				return VD_BAD_REQUEST;
			start = stream->scanned;
			stream->line = stream->lines + 1;
		}
		if (step(stream, character))
			VDI_TRY(each(arg, (struct vd_bytes) { stream->data + start,
							      stream->scanned + 1 - start }));
	}
	if (stream->depth == 0)
		start = stream->size;
	memmove(stream->data, stream->data + start, stream->size - start);
	stream->size -= start;
	stream->scanned = stream->size;
	return VD_OK;
}

bool vdi_json_stream_is_open(const struct vdi_json_stream *stream)
{
	return stream->depth > 0;
}

void vdi_json_stream_reset(struct vdi_json_stream *stream)
{
	stream->size = stream->scanned = 0;
	stream->depth = 0;
	stream->in_string = stream->escaped = false;
}

void vdi_json_stream_fini(struct vdi_json_stream *stream)
{
	vdi_free(stream->data);
	memset(stream, 0, sizeof *stream);
}
