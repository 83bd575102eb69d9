/* Searches apiVersion from the start of the JSON, where nearly every client writes it, so the search is
 * short. Members before it are skipped by quotes and braces only, because the bytes were validated when they
 * were read or written. */
#include "stored_version.h"

/* Returns the end of the string whose opening quote is `at`. */
static const char *skip_string(const char *at, const char *end)
{
	for (at++; at < end && *at != '"'; at++)
		if (*at == '\\')
			at++;
	return at < end ? at + 1 : end;
}

/* Returns the end of the value at `at`. */
static const char *skip_value(const char *at, const char *end)
{
	int depth = 0;

	while (at < end) {
		if (*at == '"') {
			at = skip_string(at, end);
			if (depth == 0)
				return at;
			continue;
		}
		if (*at == '{' || *at == '[')
			depth++;
		else if ((*at == '}' || *at == ']') && depth-- <= 1)
			return depth == 0 ? at + 1 : at;
		else if (*at == ',' && depth == 0)
			return at;
		at++;
	}
	return end;
}

static const char *skip_blank(const char *at, const char *end)
{
	while (at < end &&
	       (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r' || *at == ',' || *at == ':'))
		at++;
	return at;
}

/* Returns the text between the quotes of the top-level apiVersion. */
struct vd_bytes vdi_version_of(struct vd_bytes json)
{
	static const char key[] = "\"apiVersion\"";
	const char	 *at = json.data, *end = at + json.size;

	at = skip_blank(at, end);
	for (at = skip_blank(at < end ? at + 1 : end, end); at < end && *at == '"';
	     at = skip_blank(skip_value(skip_blank(skip_string(at, end), end), end), end)) {
		const char *value;

		if ((size_t) (end - at) < sizeof key || memcmp(at, key, sizeof key - 1) != 0)
			continue;
		value = at + sizeof key - 1;
		while (value < end &&
		       (*value == ' ' || *value == ':' || *value == '\t' || *value == '\n' || *value == '\r'))
			value++;
		if (value < end && *value == '"')
			return (struct vd_bytes) { value + 1,
						   (size_t) (skip_string(value, end) - value) - 2 };
		return VD_BYTES_NONE;
	}
	return VD_BYTES_NONE;
}

static void push(struct vdi_object_pieces *pieces, const char *from, const char *to)
{
	if (to > from)
		pieces->piece[pieces->count++] = (struct vd_bytes) { from, (size_t) (to - from) };
}

/* Pushes one piece, with its apiVersion replaced. */
static void push_split(struct vdi_object_pieces *pieces, struct vd_bytes piece, struct vd_bytes version,
		       const char *wanted)
{
	const char *from = piece.data, *to = from + piece.size, *at = version.data;

	if (version.size == 0 || at < from || at >= to) {
		push(pieces, from, to);
		return;
	}
	push(pieces, from, at);
	push(pieces, wanted, wanted + strlen(wanted));
	push(pieces, at + version.size, to);
}

void vdi_object_pieces(const struct vdi_resource *resource, const struct vd_object *object, vd_rev revision,
		       struct vdi_object_pieces *ret_pieces)
{
	struct vd_bytes version = VD_BYTES_NONE;
	const char     *wanted = resource ? resource->api_version : NULL;

	ret_pieces->count = 0;
	vd_object_json(object, revision, &ret_pieces->text);
	if (wanted)
		version = vdi_version_of(vd_kv_value(vd_object_kv(object)));
	if (wanted && vd_bytes_equal(version, vd_bytes_of(wanted)))
		version = VD_BYTES_NONE;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(ret_pieces->text.piece); i++)
		push_split(ret_pieces, ret_pieces->text.piece[i], version, wanted);
}

void vdi_version_write(struct vdi_out *out, const struct vdi_resource *resource, struct vd_bytes json)
{
	struct vdi_object_pieces pieces = { .count = 0 };

	push_split(&pieces, json, resource->api_version ? vdi_version_of(json) : VD_BYTES_NONE,
		   resource->api_version);
	for (size_t i = 0; i < pieces.count; i++)
		vdi_out_bytes(out, pieces.piece[i]);
}

bool vdi_version_is_stored(const struct vdi_resource *resource, const struct vd_object *object)
{
	return resource->stored_api_version == NULL ||
	       vd_bytes_equal(vdi_version_of(vd_kv_value(vd_object_kv(object))),
			      vd_bytes_of(resource->stored_api_version));
}

void vdi_object_write(struct vdi_out *out, const struct vdi_resource *resource,
		      const struct vd_object *object, vd_rev revision)
{
	struct vdi_object_pieces pieces;

	vdi_object_pieces(resource, object, revision, &pieces);
	for (size_t i = 0; i < pieces.count; i++)
		vdi_out_bytes(out, pieces.piece[i]);
}
