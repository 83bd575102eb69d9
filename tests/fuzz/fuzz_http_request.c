/* Bytes from a socket: heads and chunked bodies, cut at every place, give the same result as in one piece. */
#include "fuzz.h"
#include "http_parser.h"
#include "http_route.h"
#include "negotiate.h"

static void check_head(struct vd_bytes bytes)
{
	struct vdi_http_scan	whole = { 0 }, cut = { 0 };
	struct vdi_http_refusal refusal, other;
	struct vdi_http_head	head;
	struct vdi_negotiated	form;
	static struct vdi_route route;
	struct vd_bytes		accept;
	size_t			size = 0, cut_size = 0;
	vd_status		status = vdi_http_scan(&whole, bytes, &size, &refusal);
	vd_status		cut_status = VD_AGAIN;

	for (size_t i = 0; i <= bytes.size && cut_status == VD_AGAIN; i += 1 + i / 8)
		cut_status = vdi_http_scan(&cut, (struct vd_bytes) { bytes.data, i }, &cut_size, &other);
	if (cut_status == VD_AGAIN)
		cut_status = vdi_http_scan(&cut, bytes, &cut_size, &other);
	VDI_CHECK(status == cut_status && size == cut_size);
	if (status != VD_OK ||
	    vdi_http_head_parse((struct vd_bytes) { bytes.data, size }, &head, &refusal) != VD_OK)
		return;
	VDI_CHECK(head.header_count <= VDI_HTTP_HEADER_MAX && head.content_length <= VDI_HTTP_BODY_MAX);
	VDI_CHECK(!(head.chunked && head.content_length >= 0));
	vdi_route_parse(head.path, &route);
	if (route.kind == VDI_ROUTE_RESOURCE) {
		VDI_CHECK(route.plural.size > 0 && memchr(route.plural.data, '/', route.plural.size) == NULL);
		VDI_CHECK(route.name.size == 0 || memchr(route.name.data, '/', route.name.size) == NULL);
	}
	if (vdi_http_header_get(&head, "Accept", &accept))
		(void) vdi_negotiate(accept, VDI_FORMS_LIST, &form);
}

static vd_status decode(struct vd_bytes bytes, size_t step, uint64_t *ret_hash)
{
	struct vdi_http_chunked chunked = { 0 };
	struct vdi_http_refusal refusal;
	size_t			at = 0, end = 0;
	uint64_t		hash = 0;

	while (at < bytes.size) {
		struct vd_bytes data;
		size_t		taken = 0;
		vd_status	status;

		if (end <= at)
			end = VDI_MIN(bytes.size, at + step);
		status = vdi_http_chunked_take(&chunked,
					       (struct vd_bytes) { (const char *) bytes.data + at, end - at },
					       &taken, &data, &refusal);
		if (status == VD_BAD_REQUEST)
			return status;
		VDI_CHECK(taken <= end - at && data.size <= taken && (taken > 0 || status == VD_OK));
		for (size_t i = 0; i < data.size; i++)
			hash = hash * 31 + ((const unsigned char *) data.data)[i] + 1;
		at += taken;
		if (status == VD_OK) {
			*ret_hash = hash;
			return VD_OK;
		}
	}
	return VD_AGAIN;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vd_bytes bytes = { data, size };
	uint64_t	whole = 0, single = 0;

	check_head(bytes);
	VDI_CHECK(decode(bytes, size + 1, &whole) == decode(bytes, 1, &single) && whole == single);
	return 0;
}
