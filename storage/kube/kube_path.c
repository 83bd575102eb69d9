/* Builds the path into a buffer of the caller, like snprintf. */
#include <ctype.h>

#include <vedette/kube.h>

#include "base.h"

struct writer {
	char  *text;
	size_t size; /* of text */
	size_t used; /* may exceed size */
};

static void put(struct writer *writer, char character)
{
	if (writer->used + 1 < writer->size)
		writer->text[writer->used] = character;
	writer->used++;
}

static void put_text(struct writer *writer, const char *text)
{
	while (*text)
		put(writer, *text++);
}

/* Appends '/' and one segment, in which only the unreserved characters of RFC 3986 are unescaped. */
static void put_segment(struct writer *writer, struct vd_bytes segment)
{
	static const char    hex[] = "0123456789ABCDEF";
	const unsigned char *bytes = segment.data;

	put(writer, '/');
	for (size_t i = 0; i < segment.size; i++) {
		if (isalnum(bytes[i]) || bytes[i] == '-' || bytes[i] == '.' || bytes[i] == '_' ||
		    bytes[i] == '~') {
			put(writer, (char) bytes[i]);
		} else {
			put(writer, '%');
			put(writer, hex[bytes[i] >> 4]);
			put(writer, hex[bytes[i] & 15]);
		}
	}
}

size_t vd_kube_path(const struct vd_kube_resource *resource, struct vd_bytes namespace_name,
		    struct vd_bytes name, char *path, size_t size)
{
	struct writer writer = { path, size, 0 };
	const bool    is_core = resource->group == NULL || *resource->group == 0;

	put_text(&writer, is_core ? "/api" : "/apis");
	if (!is_core)
		put_segment(&writer, vd_bytes_of(resource->group));
	put_segment(&writer, vd_bytes_of(resource->version));
	if (namespace_name.size && !resource->cluster_scoped) {
		put_segment(&writer, vd_bytes_of("namespaces"));
		put_segment(&writer, namespace_name);
	}
	put_segment(&writer, vd_bytes_of(resource->plural));
	if (name.size)
		put_segment(&writer, name);
	if (size)
		path[VDI_MIN(writer.used, size - 1)] = 0;
	return writer.used;
}
