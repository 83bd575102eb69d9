/* Builds the path into a buffer of the caller, like snprintf. */
#include <vedette/kube.h>

#include "base.h"
#include "http_parser.h"

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

/* Appends '/' and one segment, percent-encoded. */
static void put_segment(struct writer *writer, struct vd_bytes segment)
{
	const char *bytes = segment.data;
	char	    encoded[3];

	put(writer, '/');
	for (size_t i = 0; i < segment.size; i++) {
		size_t size = vdi_percent_encode((struct vd_bytes) { bytes + i, 1 }, encoded);

		for (size_t k = 0; k < size; k++)
			put(writer, encoded[k]);
	}
}

size_t vd_kube_path(const struct vd_kube_resource *resource, struct vd_bytes namespace_name,
		    struct vd_bytes name, char *path, size_t size)
{
	struct writer writer = { path, size = path ? size : 0, 0 };
	bool	      is_core;

	if (size)
		path[0] = 0;
	if (resource == NULL || resource->version == NULL || resource->plural == NULL ||
	    (name.size && name.data == NULL) || (namespace_name.size && namespace_name.data == NULL))
		return 0;
	is_core = resource->group == NULL || *resource->group == 0;
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
