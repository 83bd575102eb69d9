/* Each line becomes a change with its revision, and is put into a heap; when the window is full the oldest
 * change is removed and written. A deletion without a revision is ordered after the newest revision read
 * before it, and gets a revision when it leaves the heap. */
#include "import_audit.h"

#include <inttypes.h>

#include "json_stream.h"
#include "log_steps.h"

enum field {
	STAGE,
	LEVEL,
	VERB,
	GROUP,
	RESOURCE,
	SUBRESOURCE,
	NAMESPACE,
	NAME,
	CODE,
	RESPONSE,
	STAGE_TIME,
	REQUEST_URI,
	FIELD_COUNT
};

static const char *const field_paths[FIELD_COUNT] = { "stage",
						      "level",
						      "verb",
						      "objectRef.apiGroup",
						      "objectRef.resource",
						      "objectRef.subresource",
						      "objectRef.namespace",
						      "objectRef.name",
						      "responseStatus.code",
						      "responseObject",
						      "stageTimestamp",
						      "requestURI" };

struct change {
	vd_rev	      place;	/* revision, or the one that it follows */
	bool	      is_loose; /* without a revision of its own */
	uint64_t      number;	/* sequence number of changes, to keep their order */
	uint64_t      line;
	bool	      is_delete;
	vd_wall	      time;
	struct vd_kv *kv;
};

struct vdi_import_audit {
	struct vdi_import_sink	    sink;
	struct vdi_import_order	    order;
	struct vdi_import_totals    totals;
	struct vdi_json_stream	    stream, items;
	struct vdi_json_plan	   *plan;
	struct vdi_json_object	    scan;
	struct vdi_kube_reader	    objects;
	struct vdi_kube_page_reader pages;
	struct vd_error		   *reterr; /* of the present call */

	struct change heap[VDI_IMPORT_AUDIT_WINDOW];
	size_t	      count, bytes;
	uint64_t      number;
	vd_rev	      newest; /* newest revision read */
	struct vd_kv *open;   /* last change written, while its revision is not committed */

	/* The current line. */
	char	prefix[VDI_KUBE_PREFIX_MAX];
	bool	is_deleting; /* the request was a delete */
	vd_wall time;
};

vd_status vdi_import_audit_new(const struct vdi_import_sink *sink, struct vdi_import_audit **ret_import)
{
	struct vdi_import_audit *import = VDI_NEW(struct vdi_import_audit);
	struct vd_bytes		 paths[FIELD_COUNT];
	vd_status		 status;

	if (import == NULL)
		return VD_NOMEM;
	import->sink = *sink;
	import->order.sink = &import->sink;
	for (int i = 0; i < FIELD_COUNT; i++)
		paths[i] = vd_bytes_of(field_paths[i]);
	status = vdi_json_plan_new(paths, FIELD_COUNT, &import->plan, NULL);
	if (status == VD_OK)
		status = vdi_json_object_init(&import->scan, import->plan);
	if (status == VD_OK)
		status = vdi_kube_reader_init(&import->objects);
	if (status == VD_OK)
		status = vdi_kube_page_reader_init(&import->pages);
	if (status == VD_OK)
		*ret_import = import;
	else
		vdi_import_audit_free(import);
	return status;
}

/* ---- The window ---- */

static bool is_before(const struct change *a, const struct change *b)
{
	if (a->place != b->place)
		return a->place < b->place;
	if (a->is_loose != b->is_loose)
		return b->is_loose;
	return a->number < b->number;
}

static void swap(struct change *a, struct change *b)
{
	struct change held = *a;

	*a = *b;
	*b = held;
}

static void sift_down(struct vdi_import_audit *import)
{
	for (size_t at = 0, child; (child = 2 * at + 1) < import->count; at = child) {
		if (child + 1 < import->count && is_before(&import->heap[child + 1], &import->heap[child]))
			child++;
		if (!is_before(&import->heap[child], &import->heap[at]))
			return;
		swap(&import->heap[child], &import->heap[at]);
	}
}

static struct change pop(struct vdi_import_audit *import)
{
	struct change first = import->heap[0];

	import->heap[0] = import->heap[--import->count];
	import->bytes -= first.kv->value_size + first.kv->key_size;
	sift_down(import);
	return first;
}

static bool is_same_key(const struct vd_kv *a, const struct vd_kv *b)
{
	return vd_bytes_equal(vd_kv_key(a), vd_kv_key(b));
}

/* Gives a deletion the revision after the last one. If another change has that revision, the deletion joins
 * it, unless both have the same key: then they cannot be distinguished, and the key is kept. */
static bool number_loose(struct vdi_import_audit *import, struct change *change)
{
	change->kv->mod_rev = VDI_MAX(import->order.last, change->place) + 1;
	return !(import->count && !import->heap[0].is_loose &&
		 import->heap[0].kv->mod_rev <= change->kv->mod_rev &&
		 is_same_key(import->heap[0].kv, change->kv));
}

static vd_status give(struct vdi_import_audit *import, struct change *change)
{
	vd_status status;

	if (change->is_loose && !number_loose(import, change)) {
		import->totals.skipped++;
		return VD_OK;
	}
	/* A repeated response, such as of a retried request. */
	if (import->open && import->order.open == change->kv->mod_rev &&
	    is_same_key(import->open, change->kv)) {
		import->totals.skipped++;
		return VD_OK;
	}
	status = vdi_import_order_change(&import->order, change->is_delete, change->kv, change->time,
					 import->reterr);
	if (status == VD_BAD_REQUEST)
		(void) vd_error_set(import->reterr, VD_BAD_REQUEST,
				    "revision %" PRId64
				    " is more than %d changes late: sort the log, or remove the line",
				    change->kv->mod_rev, VDI_IMPORT_AUDIT_WINDOW);
	if (status != VD_OK)
		return vdi_import_at_line(change->line, status, import->reterr);
	import->totals.taken++;
	vd_kv_unref(import->open);
	import->open = vd_kv_ref(change->kv);
	return VD_OK;
}

static vd_status give_oldest(struct vdi_import_audit *import)
{
	struct change change = pop(import);
	vd_status     status = give(import, &change);

	vd_kv_unref(change.kv);
	return status;
}

/* Takes kv over. */
static vd_status push(struct vdi_import_audit *import, struct vd_kv *kv, bool is_delete, bool is_loose)
{
	struct change change = { is_loose ? import->newest : kv->mod_rev,
				 is_loose,
				 import->number++,
				 import->stream.line,
				 is_delete,
				 import->time,
				 kv };

	while (import->count == VDI_IMPORT_AUDIT_WINDOW ||
	       (import->count && import->bytes > VDI_IMPORT_AUDIT_WINDOW_BYTES)) {
		vd_status status = give_oldest(import);

		if (status != VD_OK) {
			vd_kv_unref(kv);
			return status;
		}
	}
	import->newest = VDI_MAX(import->newest, kv->mod_rev);
	import->bytes += kv->value_size + kv->key_size;
	import->heap[import->count] = change;
	for (size_t at = import->count++; at && is_before(&import->heap[at], &import->heap[(at - 1) / 2]);
	     at = (at - 1) / 2)
		swap(&import->heap[at], &import->heap[(at - 1) / 2]);
	return VD_OK;
}

/* ---- Lines ---- */

static struct vd_bytes text_of(const struct vdi_import_audit *import, struct vd_bytes json, enum field field)
{
	const struct vdi_json_value *value = vdi_json_field(&import->scan, field);

	return value->type == VDI_JSON_STRING || value->type == VDI_JSON_NUMBER ?
		       vdi_json_value_bytes(json, value) :
		       VD_BYTES_NONE;
}

static bool is(struct vd_bytes text, const char *wanted)
{
	return vd_bytes_equal(text, vd_bytes_of(wanted));
}

static bool is_one_of(struct vd_bytes text, const char *const *wanted, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is(text, wanted[i]))
			return true;
	return false;
}

/* Returns true if the request changed the store and the response shows how. */
static bool is_change(const struct vdi_import_audit *import, struct vd_bytes json)
{
	static const char *const verbs[] = { "create", "update", "patch", "delete", "deletecollection" };
	/* Responses for these subresources are the object itself. */
	static const char *const parts[] = { "",       "status",  "finalize", "ephemeralcontainers",
					     "resize", "approval" };
	struct vd_bytes		 code = text_of(import, json, CODE), uri = text_of(import, json, REQUEST_URI);

	return is(text_of(import, json, STAGE), "ResponseComplete") &&
	       is(text_of(import, json, LEVEL), "RequestResponse") &&
	       is_one_of(text_of(import, json, VERB), verbs, VDI_ARRAY_SIZE(verbs)) && code.size == 3 &&
	       *(const char *) code.data == '2' &&
	       is_one_of(text_of(import, json, SUBRESOURCE), parts, VDI_ARRAY_SIZE(parts)) &&
	       text_of(import, json, RESOURCE).size > 0 &&
	       (uri.size == 0 || memmem(uri.data, uri.size, "dryRun=All", 10) == NULL);
}

static bool copy_text(struct vd_bytes text, char *place, size_t size)
{
	if (text.size >= size || (text.size && memchr(text.data, '\\', text.size)))
		return false;
	if (text.size)
		memcpy(place, text.data, text.size);
	place[text.size] = 0;
	return true;
}

static vd_status take_object(struct vdi_import_audit *import, struct vd_bytes json)
{
	struct vdi_kube_object object;
	struct vd_kv	      *kv;
	bool		       is_delete;

	VDI_TRY(vdi_kube_object_read(&import->objects, json, "", "", &object, import->reterr));
	is_delete = object.is_last || (import->is_deleting && (!object.is_held));
	VDI_TRY(vdi_kube_object_kv(&object, import->prefix, is_delete, &kv, import->reterr));
	return push(import, kv, is_delete, false);
}

/* Imports the deletion of the requested object, if the response only states that it is gone. */
static vd_status take_status(struct vdi_import_audit *import, struct vd_bytes json)
{
	struct vdi_kube_object object = { .name = text_of(import, json, NAME),
					  .namespace_name = text_of(import, json, NAMESPACE),
					  .revision = 1 };
	struct vd_kv	      *kv;

	if (!import->is_deleting || object.name.size == 0) {
		import->totals.skipped++;
		return VD_OK;
	}
	VDI_TRY(vdi_kube_object_kv(&object, import->prefix, true, &kv, import->reterr));
	kv->mod_rev = 0;
	return push(import, kv, true, true);
}

static vd_status take_item(void *arg, struct vd_bytes json)
{
	return take_object(arg, json);
}

static vd_status take_answer(struct vdi_import_audit *import, struct vd_bytes json)
{
	struct vd_bytes	       answer = vdi_json_value_bytes(json, vdi_json_field(&import->scan, RESPONSE));
	struct vdi_kube_page   page;
	struct vdi_kube_object object;

	if (vdi_kube_page_read(&import->pages, answer, &page, NULL) == VD_OK) {
		vdi_json_stream_reset(&import->items);
		return vdi_json_stream_feed(&import->items, page.items, take_item, import);
	}
	VDI_TRY(vdi_kube_object_read(&import->objects, answer, "", "", &object, import->reterr));
	if (is(object.kind, "Status"))
		return take_status(import, json);
	return take_object(import, answer);
}

static vd_status take_line(void *arg, struct vd_bytes json)
{
	static const struct vdi_json_limits limits = { VDI_KUBE_OBJECT_SIZE_MAX, VDI_JSON_DEPTH_MAX };
	struct vdi_import_audit		   *import = arg;
	char				    group[256], plural[256];
	const struct vdi_json_value	   *kind;
	vd_status status = vdi_json_scan(json, &limits, &import->scan, import->reterr);

	if (status == VD_OK) {
		kind = vdi_json_member(&import->scan, VDI_JSON_KIND);
		if (kind->type != VDI_JSON_STRING || !is(vdi_json_value_bytes(json, kind), "Event") ||
		    text_of(import, json, STAGE).size == 0)
			status =
				vd_error_set(import->reterr, VD_BAD_REQUEST,
					     "not an audit event: its kind is not Event, or it has no stage");
	}
	if (status != VD_OK)
		return vdi_import_at_line(import->stream.line, status, import->reterr);
	import->totals.read++;
	if (!is_change(import, json) || vdi_json_field(&import->scan, RESPONSE)->type != VDI_JSON_OBJECT) {
		import->totals.skipped++;
		return VD_OK;
	}
	import->is_deleting = memcmp(text_of(import, json, VERB).data, "delete",
				     VDI_MIN(text_of(import, json, VERB).size, (size_t) 6)) == 0;
	import->time.ns = 0;
	(void) vdi_log_time_parse(text_of(import, json, STAGE_TIME),
				  &import->time); /* none if it is missing */
	if (!copy_text(text_of(import, json, GROUP), group, sizeof group) ||
	    !copy_text(text_of(import, json, RESOURCE), plural, sizeof plural) ||
	    !vdi_kube_prefix(group, plural, import->prefix))
		status = vd_error_set(import->reterr, VD_BAD_REQUEST,
				      "the apiGroup or resource in objectRef is not a plain name");
	else
		status = take_answer(import, json);
	/* Keep a message about an older line, from give. */
	return status == VD_BAD_REQUEST && strncmp(import->reterr->message, "line ", 5) == 0 ?
		       status :
		       vdi_import_at_line(import->stream.line, status, import->reterr);
}

/* ---- Feeding ---- */

vd_status vdi_import_audit_feed(struct vdi_import_audit *import, struct vd_bytes bytes,
				struct vd_error *reterr)
{
	struct vd_error error = { 0 };
	vd_status	status;

	import->reterr = &error;
	status = vdi_json_stream_feed(&import->stream, bytes, take_line, import);
	if (status == VD_OK)
		return VD_OK;
	if (error.message[0] == 0) {
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

vd_status vdi_import_audit_end(struct vdi_import_audit *import, struct vdi_import_totals *ret_totals,
			       struct vd_error *reterr)
{
	struct vd_error error = { 0 };
	vd_status	status = VD_OK;

	import->reterr = &error;
	if (vdi_json_stream_is_open(&import->stream)) {
		(void) vd_error_set(&error, VD_BAD_REQUEST, "the input ends inside an object");
		status = vdi_import_at_line(import->stream.line, VD_BAD_REQUEST, &error);
	}
	while (status == VD_OK && import->count)
		status = give_oldest(import);
	if (status == VD_OK)
		status = vdi_import_order_commit(&import->order, &error);
	import->totals.revision = import->order.last;
	if (status == VD_OK && ret_totals)
		*ret_totals = import->totals;
	if (status != VD_OK && reterr)
		*reterr = error;
	return status;
}

struct vdi_import_audit *vdi_import_audit_free(struct vdi_import_audit *import)
{
	if (import == NULL)
		return NULL;
	for (size_t i = 0; i < import->count; i++)
		vd_kv_unref(import->heap[i].kv);
	vd_kv_unref(import->open);
	vdi_json_stream_fini(&import->stream);
	vdi_json_stream_fini(&import->items);
	vdi_json_object_fini(&import->scan);
	vdi_json_plan_free(import->plan);
	vdi_kube_reader_fini(&import->objects);
	vdi_kube_page_reader_fini(&import->pages);
	vdi_free(import);
	return NULL;
}
