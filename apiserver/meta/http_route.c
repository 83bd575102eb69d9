/* Parses paths. The rule for `namespaces` mirrors kubernetes/apiserver pkg/endpoints/request/requestinfo.go:
 * namespaces/{x}/status and .../finalize are subresources of the namespace; any other third segment is a
 * resource in that namespace. */
#include "http_route.h"
#include "http_parser.h"

#define SEGMENTS_MAX 12

static bool is(struct vd_bytes segment, const char *word)
{
	return vd_bytes_equal(segment, vd_bytes_of(word));
}

/* Decodes one segment into the route's text. */
static bool decode_segment(struct vd_bytes raw, struct vdi_route *route, size_t *at,
			   struct vd_bytes *ret_segment)
{
	size_t size;

	if (raw.size == 0 || !vdi_percent_decode(raw, false, route->text + *at, &size))
		return false;
	*ret_segment = (struct vd_bytes) { route->text + *at, size };
	if (memchr(ret_segment->data, '/', size) || memchr(ret_segment->data, 0, size) ||
	    is(*ret_segment, ".") || is(*ret_segment, ".."))
		return false;
	*at += size;
	return true;
}

/* Splits at '/'; one trailing slash is allowed. route->text holds the segments in turn, each preceded by its
 * '/'. -1: malformed. */
static int split(struct vd_bytes path, struct vdi_route *route, struct vd_bytes segments[SEGMENTS_MAX])
{
	const char *at = path.data;
	const char *end = at + path.size;
	size_t	    text_size = 0;
	int	    count = 0;

	if (path.size >= VDI_ROUTE_PATH_MAX)
		return -1;
	while (at < end) {
		const char     *slash;
		struct vd_bytes raw;

		at++; /* the '/' */
		if (at == end)
			break;
		slash = memchr(at, '/', (size_t) (end - at));
		raw = (struct vd_bytes) { at, (size_t) ((slash ? slash : end) - at) };
		if (count == SEGMENTS_MAX)
			return -1;
		route->text[text_size++] = '/';
		if (!decode_segment(raw, route, &text_size, &segments[count]))
			return -1;
		count++;
		at = slash ? slash : end;
	}
	route->path = (struct vd_bytes) { route->text, text_size };
	return count;
}

/* Parses the segments after the version. */
static void route_resource(struct vdi_route *route, const struct vd_bytes *segments, int count)
{
	route->kind = VDI_ROUTE_RESOURCE;
	if (count > 1 && is(segments[0], "watch")) {
		route->watch_prefix = true;
		segments++;
		count--;
	}
	if (is(segments[0], "namespaces") && count > 2 && !is(segments[2], "status") &&
	    !is(segments[2], "finalize")) {
		route->has_namespace = true;
		route->namespace_name = segments[1];
		segments += 2;
		count -= 2;
	}
	route->plural = segments[0];
	if (count > 1)
		route->name = segments[1];
	if (count > 2) {
		const char *end = (const char *) segments[count - 1].data + segments[count - 1].size;

		route->subresource = (struct vd_bytes) { segments[2].data,
							 (size_t) (end - (const char *) segments[2].data) };
	}
}

void vdi_route_parse(struct vd_bytes path, struct vdi_route *ret_route)
{
	struct vd_bytes segments[SEGMENTS_MAX];
	int		count;

	memset(ret_route, 0, offsetof(struct vdi_route, text));
	count = split(path, ret_route, segments);
	if (count < 0) {
		ret_route->kind = VDI_ROUTE_BAD;
	} else if (count == 0) {
		ret_route->kind = VDI_ROUTE_ROOT;
	} else if (is(segments[0], "api")) {
		if (count > 1)
			ret_route->version = segments[1];
		if (count > 2)
			route_resource(ret_route, segments + 2, count - 2);
		else
			ret_route->kind = count == 1 ? VDI_ROUTE_API : VDI_ROUTE_VERSION;
	} else if (is(segments[0], "apis")) {
		if (count > 1)
			ret_route->group = segments[1];
		if (count > 2)
			ret_route->version = segments[2];
		if (count > 3)
			route_resource(ret_route, segments + 3, count - 3);
		else
			ret_route->kind = count == 1 ? VDI_ROUTE_APIS :
					  count == 2 ? VDI_ROUTE_GROUP :
						       VDI_ROUTE_VERSION;
	} else {
		ret_route->kind = VDI_ROUTE_PLAIN;
	}
}
