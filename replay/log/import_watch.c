/* Both passes use the same parser; the first one finds the snapshot, the second one writes the log. */
#include "import_watch.h"

#include "hash.h"
#include "json_stream.h"

#define SEED 0x696d706f7274

struct vdi_import_watch {
	bool			     is_scan;
	struct vdi_import_watch_scan scan; /* result of the first pass */
	vdi_import_prefix_fn	     prefix_of;
	void			    *prefix_arg;
	struct vdi_import_order	     order;
	struct vdi_import_sink	     sink;
	struct vdi_import_totals     totals;

	struct vdi_json_stream	     stream, items;
	struct vdi_kube_reader	     objects;
	struct vdi_kube_event_reader events;
	struct vdi_kube_page_reader  pages;
	struct vd_error		    *reterr; /* of the present call */

	uint64_t	count; /* objects so far */
	vd_rev		newest;
	vd_rev		last_revision; /* of the previous object */
	uint64_t	last_key;
	struct vdi_hash keys;	 /* first pass: hashes of the keys of the first objects */
	bool		is_past; /* first pass: the initial state has ended */
};

static bool is_same_hash(const void *entry, const void *key)
{
	return (uintptr_t) entry == *(const uintptr_t *) key;
}

vd_status vdi_import_watch_new(const struct vdi_import_watch_scan *scan, vdi_import_prefix_fn prefix_of,
			       void *prefix_arg, const struct vdi_import_sink *sink,
			       struct vdi_import_watch **ret_import)
{
	struct vdi_import_watch *import = VDI_NEW(struct vdi_import_watch);
	vd_status		 status;

	if (import == NULL)
		return VD_NOMEM;
	vdi_hash_init(&import->keys, is_same_hash, 0);
	import->is_scan = scan == NULL;
	if (scan)
		import->scan = *scan;
	import->prefix_of = prefix_of;
	import->prefix_arg = prefix_arg;
	import->sink = *sink;
	import->order.sink = &import->sink;
	status = vdi_kube_reader_init(&import->objects);
	if (status == VD_OK)
		status = vdi_kube_event_reader_init(&import->events);
	if (status == VD_OK)
		status = vdi_kube_page_reader_init(&import->pages);
	if (status == VD_OK)
		*ret_import = import;
	else
		vdi_import_watch_free(import);
	return status;
}

/* ---- The first pass ---- */

static vd_status scan_object(struct vdi_import_watch *import, bool is_put, uint64_t key, vd_rev revision)
{
	uintptr_t mark = (uintptr_t) key | 1; /* never NULL */

	if (!import->is_past && (!is_put || vdi_hash_get(&import->keys, key, &mark)))
		import->is_past = true;
	if (import->is_past)
		return VD_OK;
	if (revision <= import->newest) {
		import->scan.snapshot_count = import->count;
		import->scan.snapshot_revision = import->newest;
	}
	if (vdi_hash_put(&import->keys, key, &mark, (void *) mark, NULL) != VD_OK)
		return vd_error_set(import->reterr, VD_NOMEM, "out of memory");
	return VD_OK;
}

/* ---- The second pass ---- */

static vd_status write_object(struct vdi_import_watch *import, bool is_delete, const struct vd_kv *kv,
			      uint64_t key)
{
	const struct vdi_import_sink *sink = &import->sink;

	if (import->count <= import->scan.snapshot_count) {
		if (import->count == 1)
			VDI_TRY(sink->snapshot(sink->arg, import->scan.snapshot_revision, true,
					       import->reterr));
		VDI_TRY(sink->change(sink->arg, false, kv, (vd_wall) { 0 }, import->reterr));
		import->totals.taken++;
		import->order.last = import->scan.snapshot_revision;
		if (import->count == import->scan.snapshot_count)
			VDI_TRY(sink->snapshot(sink->arg, import->scan.snapshot_revision, false,
					       import->reterr));
		return VD_OK;
	}
	if (kv->mod_rev == import->last_revision && key == import->last_key) {
		import->totals.skipped++;
		return VD_OK;
	}
	VDI_TRY(vdi_import_order_change(&import->order, is_delete, kv, (vd_wall) { 0 }, import->reterr));
	import->totals.taken++;
	return VD_OK;
}

/* ---- Both passes ---- */

static vd_status take_object(struct vdi_import_watch *import, struct vd_bytes json,
			     enum vdi_kube_event_type type)
{
	struct vdi_kube_object object;
	char		       prefix[VDI_KUBE_PREFIX_MAX];
	struct vd_kv	      *kv;
	uint64_t	       key;
	vd_status	       status;

	VDI_TRY(vdi_kube_object_read(&import->objects, json, NULL, NULL, &object, import->reterr));
	if (!import->prefix_of(import->prefix_arg, object.api_version, object.kind, prefix))
		return vd_error_set(
			import->reterr, VD_BAD_REQUEST,
			"the resource of kind %.*s in %.*s is unknown: define it with --resources FILE",
			(int) VDI_MIN(object.kind.size, (size_t) 80), (const char *) object.kind.data,
			(int) VDI_MIN(object.api_version.size, (size_t) 80),
			(const char *) object.api_version.data);
	VDI_TRY(vdi_kube_object_kv(&object, prefix, type == VDI_KUBE_DELETED, &kv, import->reterr));
	import->count++;
	import->totals.read++;
	key = vdi_hash_bytes(vd_kv_key(kv), SEED);
	status = import->is_scan ? scan_object(import, type == VDI_KUBE_ADDED, key, kv->mod_rev) :
				   write_object(import, type == VDI_KUBE_DELETED, kv, key);
	import->newest = VDI_MAX(import->newest, kv->mod_rev);
	import->last_revision = kv->mod_rev;
	import->last_key = key;
	vd_kv_unref(kv);
	return status;
}

/* Ends the initial state at an event without an object. A snapshot that was begun is complete then, because
 * the first pass saw the same. */
static vd_status take_mark(struct vdi_import_watch *import, const struct vdi_kube_event *event)
{
	struct vdi_kube_object object;
	struct vd_error	       error = { 0 };

	import->is_past = true;
	import->totals.read++;
	if (event->type == VDI_KUBE_ERROR) {
		(void) vdi_kube_status_error(event->object, &error);
		if (import->is_scan)
			return VD_OK;
		VDI_TRY(vdi_import_order_commit(&import->order, import->reterr));
		return import->sink.mark(import->sink.arg, VDI_LOG_FAILURE, 0, error.message, import->reterr);
	}
	VDI_TRY(vdi_kube_object_read(&import->objects, event->object, "", "", &object, import->reterr));
	if (import->is_scan || object.revision <= import->order.last)
		return VD_OK;
	VDI_TRY(vdi_import_order_commit(&import->order, import->reterr));
	import->order.last = object.revision;
	return import->sink.mark(import->sink.arg, VDI_LOG_PROGRESS, object.revision, NULL, import->reterr);
}

static vd_status take_item(void *arg, struct vd_bytes json)
{
	return take_object(arg, json, VDI_KUBE_ADDED);
}

/* Returns true for a list: it has items and a kind that ends with List. Other values are events or
 * objects. */
static bool is_list(struct vdi_import_watch *import, struct vd_bytes json, struct vdi_kube_page *ret_page)
{
	const struct vdi_json_value *kind;
	struct vd_bytes		     text;

	if (vdi_kube_page_read(&import->pages, json, ret_page, NULL) != VD_OK) {
		ret_page->revision = 0;
		return false;
	}
	kind = vdi_json_member(&import->pages.scan, VDI_JSON_KIND);
	text = vdi_json_value_bytes(json, kind);
	return kind->type == VDI_JSON_STRING && text.size >= 4 &&
	       memcmp((const char *) text.data + text.size - 4, "List", 4) == 0;
}

static vd_status take_value(void *arg, struct vd_bytes json)
{
	struct vdi_import_watch *import = arg;
	struct vdi_kube_event	 event;
	struct vdi_kube_page	 page;
	struct vd_error		 error = { 0 };

	if (vdi_kube_event_read(&import->events, json, &event, &error) == VD_OK)
		return event.type == VDI_KUBE_BOOKMARK || event.type == VDI_KUBE_ERROR ?
			       take_mark(import, &event) :
			       take_object(import, event.object, event.type);
	if (!is_list(import, json, &page))
		return take_object(import, json, import->is_past ? VDI_KUBE_MODIFIED : VDI_KUBE_ADDED);
	vdi_json_stream_reset(&import->items);
	return vdi_json_stream_feed(&import->items, page.items, take_item, import);
}

vd_status vdi_import_watch_feed(struct vdi_import_watch *import, struct vd_bytes bytes,
				struct vd_error *reterr)
{
	struct vd_error error = { 0 };
	vd_status	status;

	import->reterr = &error;
	status = vdi_json_stream_feed(&import->stream, bytes, take_value, import);
	if (status == VD_OK)
		return VD_OK;
	if (error.message[0]) {
		status = vdi_import_at_line(import->stream.line, status, &error);
	} else {
		(void) vd_error_set(&error, status, "%s",
				    status == VD_BAD_REQUEST ? "expected a JSON object" :
							       vd_status_sentence(status));
		status = vdi_import_at_line(import->stream.lines + 1, status, &error);
	}
	error.code = status;
	if (reterr)
		*reterr = error;
	return status;
}

vd_status vdi_import_watch_end(struct vdi_import_watch *import, struct vdi_import_watch_scan *ret_scan,
			       struct vdi_import_totals *ret_totals, struct vd_error *reterr)
{
	if (vdi_json_stream_is_open(&import->stream)) {
		(void) vd_error_set(reterr, VD_BAD_REQUEST, "the input ends inside an object");
		return vdi_import_at_line(import->stream.line, VD_BAD_REQUEST, reterr);
	}
	VDI_TRY(vdi_import_order_commit(&import->order, reterr));
	import->totals.revision = import->order.last;
	if (ret_scan)
		*ret_scan = import->scan;
	if (ret_totals)
		*ret_totals = import->totals;
	return VD_OK;
}

struct vdi_import_watch *vdi_import_watch_free(struct vdi_import_watch *import)
{
	if (import == NULL)
		return NULL;
	vdi_json_stream_fini(&import->stream);
	vdi_json_stream_fini(&import->items);
	vdi_kube_reader_fini(&import->objects);
	vdi_kube_event_reader_fini(&import->events);
	vdi_kube_page_reader_fini(&import->pages);
	vdi_hash_fini(&import->keys);
	vdi_free(import);
	return NULL;
}
