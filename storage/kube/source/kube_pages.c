/* Lists in pages. A page is read as a whole, and its items are scanned one by one. If a page is longer than
 * a response may be, its length is divided by eight and it is requested again. A list whose pages are empty
 * and never end is given up after EMPTY_MAX of them in a row. */
#include <inttypes.h>

#include "json_stream.h"
#include "kube_source.h"

#define PIECE ((size_t) 65536)
#define TOKEN_SIZE_MAX ((size_t) 65536)
#define EMPTY_MAX 1000

void vdi_kube_pages_end(struct vdi_kube_pages *pages)
{
	vdi_kube_fetch_end(&pages->fetch);
	vdi_free(pages->token);
	pages->token = NULL;
	pages->read_revision = 0;
	pages->empty_pages = 0;
}

/* What the items of a list lack: the list's kind without "List". */
struct taking {
	struct vdi_kube_pages *pages;
	char		       kind[128];
	struct vd_error	      *reterr;
};

static void read_kind(struct vdi_kube_source *source, struct vd_bytes json, char *kind, size_t size)
{
	const struct vdi_json_value *value = vdi_json_member(&source->pages.scan, VDI_JSON_KIND);
	struct vd_bytes		     text = vdi_json_value_bytes(json, value);

	kind[0] = 0;
	if (source->kind && strlen(source->kind) < size) {
		memcpy(kind, source->kind, strlen(source->kind) + 1);
	} else if (value->type == VDI_JSON_STRING && !value->escaped && text.size > 4 && text.size < size &&
		   memcmp((const char *) text.data + text.size - 4, "List", 4) == 0) {
		memcpy(kind, text.data, text.size - 4);
		kind[text.size - 4] = 0;
	}
}

static vd_status take_item(void *arg, struct vd_bytes json)
{
	struct taking	       *taking = arg;
	struct vdi_kube_source *source = taking->pages->source;
	struct vdi_kube_object	object;
	struct vd_kv	       *kv;

	VDI_TRY(vdi_kube_object_read(&source->objects, json, taking->kind[0] ? taking->kind : NULL,
				     source->api_version, &object, taking->reterr));
	VDI_TRY(vdi_kube_source_check(source, &object, taking->reterr));
	if (object.revision > taking->pages->read_revision)
		return vd_error_set(taking->reterr, VD_BAD_REQUEST,
				    "the list of revision %" PRId64 " has an object of revision %" PRId64,
				    (int64_t) taking->pages->read_revision, (int64_t) object.revision);
	VDI_TRY(vdi_kube_object_kv(&object, source->prefix, false, &kv, taking->reterr));
	taking->pages->empty_pages = 0;
	return taking->pages->item(taking->pages, kv, taking->reterr);
}

static vd_status take_items(struct taking *taking, struct vd_bytes items)
{
	struct vdi_json_stream stream = { 0 };
	vd_status	       status = VD_OK;

	for (size_t at = 0; status == VD_OK && at < items.size; at += PIECE)
		status = vdi_json_stream_feed(
			&stream,
			(struct vd_bytes) { (const char *) items.data + at, VDI_MIN(PIECE, items.size - at) },
			take_item, taking);
	vdi_json_stream_fini(&stream);
	return status;
}

static vd_status take_page(struct vdi_kube_pages *pages, struct vd_error *reterr)
{
	struct vdi_kube_source *source = pages->source;
	struct vd_bytes		json = vdi_buffer_bytes(&pages->fetch.body);
	struct vdi_kube_page	page;
	struct taking		taking = { .pages = pages, .reterr = reterr };
	vd_rev			asked = pages->revision ? pages->revision : pages->read_revision;

	VDI_TRY(vdi_kube_page_read(&source->pages, json, &page, reterr));
	if (page.revision == 0)
		return vd_error_set(reterr, VD_BAD_REQUEST, "the list has no resourceVersion");
	if (asked && page.revision != asked)
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "the server returned a list at revision %" PRId64 " instead of %" PRId64,
				    (int64_t) page.revision, (int64_t) asked);
	read_kind(source, json, taking.kind, sizeof taking.kind);
	pages->read_revision = page.revision;
	pages->empty_pages++;
	VDI_TRY(take_items(&taking, page.items));
	if (page.continue_token.size > TOKEN_SIZE_MAX || pages->empty_pages > EMPTY_MAX)
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    pages->empty_pages > EMPTY_MAX ?
					    "the pages of the server's list are empty and do not end" :
					    "the continue token of the list is longer than 64 KiB");
	vdi_free(pages->token);
	pages->token = NULL;
	if (page.continue_token.size) {
		pages->token = vdi_strndup(page.continue_token.data, page.continue_token.size);
		if (pages->token == NULL)
			return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	return VD_OK;
}

static void on_done(struct vdi_kube_fetch *fetch, vd_status status, const struct vd_error *error)
{
	struct vdi_kube_pages *pages = VDI_CONTAINER_OF(fetch, struct vdi_kube_pages, fetch);
	struct vd_error	       wrong = { 0 };

	if (status == VD_TOO_BIG && fetch->code == 200 && pages->limit > 1) {
		pages->limit = VDI_MAX(pages->limit / 8, 1u);
		if (vdi_kube_pages_next(pages) == VD_OK)
			return;
	}
	if (status == VD_OK) {
		status = take_page(pages, &wrong);
		error = &wrong;
		if (status == VD_OK)
			vdi_kube_source_raise(pages->source, pages->read_revision);
		else if (wrong.code != status)
			(void) vd_error_set(&wrong, status, "%s", vd_status_sentence(status));
		vdi_buffer_fini(&fetch->body);
	}
	pages->page(pages, status, status == VD_OK ? NULL : error);
}

vd_status vdi_kube_pages_next(struct vdi_kube_pages *pages)
{
	struct vdi_kube_source *source = pages->source;
	vd_rev			revision = pages->revision ? pages->revision : 0;
	char		       *url, *token;

	if (pages->limit == 0)
		pages->limit = VDI_KUBE_PAGE_LEN;
	if (pages->token) {
		token = vdi_kube_escape(vd_bytes_of(pages->token));
		url = token ? vdi_kube_source_url(source, pages->path, "limit=%u&continue=%s", pages->limit,
						  token) :
			      NULL;
		vdi_free(token);
	} else if (revision) {
		url = vdi_kube_source_url(source, pages->path,
					  "limit=%u&resourceVersion=%" PRId64 "&resourceVersionMatch=Exact",
					  pages->limit, (int64_t) revision);
	} else {
		url = vdi_kube_source_url(source, pages->path, "limit=%u", pages->limit);
	}
	pages->fetch.source = source;
	pages->fetch.method = "GET";
	pages->fetch.repeat = true;
	pages->fetch.done = on_done;
	return vdi_kube_fetch_begin(&pages->fetch, url, NULL, 0);
}
