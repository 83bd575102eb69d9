/* The initial state. WatchList sends the objects as ADDED events, then a bookmark with an annotation, and
 * goes on as the pump's watch; so the state is never in memory twice, and no event can be missed between.
 *
 * A server without WatchList refuses the request, or ignores the parameters and sends a bookmark without
 * the annotation. Then the state is read in pages, and the pump follows from the revision of the list. */
#include <inttypes.h>

#include "kube_source.h"

#define END_ANNOTATION "k8s.io/initial-events-end"

/* True: the annotation has the value "true". */
static bool is_end(struct vd_bytes bookmark)
{
	static const char name[] = "\"" END_ANNOTATION "\"", value[] = "\"true\"";
	const char	 *at = memmem(bookmark.data, bookmark.size, name, sizeof name - 1);
	const char	 *end = (const char *) bookmark.data + bookmark.size;

	if (at == NULL)
		return false;
	for (at += sizeof name - 1; at < end && strchr(" \t\r\n:", *at);)
		at++;
	return (size_t) (end - at) >= sizeof value - 1 && memcmp(at, value, sizeof value - 1) == 0;
}

static vd_status store_object(struct vdi_kube_source *source, const struct vdi_kube_object *object,
			      bool is_delete, struct vd_error *reterr)
{
	struct vdi_kube_pump *pump = &source->pump;
	struct vd_kv	     *kv;
	vd_status	      status;

	VDI_TRY(vdi_kube_source_check(source, object, reterr));
	VDI_TRY(vdi_kube_object_kv(object, source->prefix, is_delete, &kv, reterr));
	if (!is_delete)
		return vdi_kube_mirror_list(&pump->filling, kv, reterr);
	status = vdi_kube_mirror_unlist(&pump->filling, vd_kv_key(kv));
	vd_kv_unref(kv);
	return status == VD_OK ? VD_OK : vd_error_set(reterr, status, "out of memory for the initial state");
}

vd_status vdi_kube_fill_event(struct vdi_kube_source *source, const struct vdi_kube_event *event,
			      struct vd_error *reterr)
{
	struct vdi_kube_object object;

	VDI_TRY(vdi_kube_object_read(&source->objects, event->object, NULL, NULL, &object, reterr));
	if (event->type != VDI_KUBE_BOOKMARK)
		return store_object(source, &object, event->type == VDI_KUBE_DELETED, reterr);
	if (!is_end(event->object))
		return vd_error_set(reterr, VD_UNSUPPORTED, "the server does not know sendInitialEvents");
	if (object.revision == 0)
		return vd_error_set(reterr, VD_BAD_REQUEST, "a bookmark has no resourceVersion");
	if (object.revision < source->pump.filling.applied)
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "the initial state ends at revision %" PRId64
				    ", but has an object of revision %" PRId64,
				    (int64_t) object.revision, (int64_t) source->pump.filling.applied);
	source->pump.step = VDI_KUBE_FOLLOW;
	vdi_kube_pump_filled(source, object.revision);
	return VD_OK;
}

/* ---- Pages ---- */

static vd_status on_item(struct vdi_kube_pages *pages, struct vd_kv *kv, struct vd_error *reterr)
{
	return vdi_kube_mirror_list(&pages->source->pump.filling, kv, reterr);
}

static void on_page(struct vdi_kube_pages *pages, vd_status status, const struct vd_error *error)
{
	struct vdi_kube_source *source = pages->source;

	if (status == VD_OK && pages->token)
		status = vdi_kube_pages_next(pages);
	else if (status == VD_OK) {
		/* Pages of two servers, before and after a restore, would be no state of any. */
		vdi_kube_pump_identify(source);
		return;
	}
	if (status != VD_OK)
		vdi_kube_pump_failed(source, pages->fetch.code, status, error);
}

void vdi_kube_fill_identified(struct vdi_kube_source *source, bool is_other)
{
	struct vdi_kube_pump *pump = &source->pump;
	vd_rev		      revision = pump->pages.read_revision;

	vdi_kube_pages_end(&pump->pages);
	if (is_other) {
		vdi_kube_fill_begin(source);
		return;
	}
	pump->step = VDI_KUBE_FOLLOW;
	vdi_kube_pump_filled(source, revision);
	vdi_kube_member_wake(&source->member);
}

static void begin_pages(struct vdi_kube_source *source)
{
	struct vdi_kube_pump *pump = &source->pump;

	vdi_kube_pages_end(&pump->pages);
	vdi_kube_mirror_fini(&pump->filling);
	vdi_kube_source_mirror(source, &pump->filling);
	pump->step = VDI_KUBE_FILL_PAGES;
	pump->pages.source = source;
	pump->pages.path = source->path;
	pump->pages.item = on_item;
	pump->pages.page = on_page;
	if (vdi_kube_pages_next(&pump->pages) != VD_OK)
		vdi_kube_pump_failed(source, 0, VD_NOMEM, NULL);
}

/* ---- The fill ---- */

bool vdi_kube_fill_refused(struct vdi_kube_source *source, vd_status status)
{
	int code = source->pump.feed.code;

	if (status != VD_UNSUPPORTED && code != 400 && code != 403 && code != 422)
		return false;
	source->pump.refuses_watch_list = true;
	begin_pages(source);
	return true;
}

void vdi_kube_fill_begin(struct vdi_kube_source *source)
{
	struct vdi_kube_pump *pump = &source->pump;

	vdi_lock_acquire(&source->lock);
	source->fills++;
	vdi_lock_release(&source->lock);
	vdi_kube_source_state(source, VD_KUBE_LISTING, NULL);
	vdi_kube_mirror_fini(&pump->filling);
	vdi_kube_source_mirror(source, &pump->filling);
	if (pump->refuses_watch_list) {
		begin_pages(source);
	} else {
		pump->step = VDI_KUBE_FILL;
		vdi_kube_member_wake(&source->member);
	}
}

void vdi_kube_fill_run(struct vdi_kube_source *source)
{
	if (source->pump.step == VDI_KUBE_FILL && source->pump.feed.exchange == NULL)
		vdi_kube_pump_open(source, "sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
}
