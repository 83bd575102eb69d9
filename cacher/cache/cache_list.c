/* Without a limit nothing is gathered and vd_list_next walks. With a limit the page is gathered at once,
 * because its token names the last object and must be known before the walk. A receiver with an event loop
 * lets another thread do long searches, with vdi_list_gather. */
#include "cache_list.h"

#include "continue_token.h"

#define LONG_COMPARISONS 16384

struct vd_list *vd_list_free(struct vd_list *list)
{
	if (list == NULL)
		return NULL;
	vdi_metric_add(list->returned_metric, list->predicate ? list->returned : list->next);
	vdi_metric_add(list->returned_storage_metric, list->predicate ? list->returned : list->next);
	(void) vdi_metrics_unref(list->metrics);
	for (size_t i = 0; list->owns_objects && i < list->object_count; i++)
		vd_object_unref(list->objects[i]);
	vdi_free(list->objects);
	vdi_candidates_release(&list->candidates);
	vdi_predicate_unref(list->predicate);
	vdi_predicate_unref(list->sharded);
	vdi_free(list->continue_token);
	vdi_free(list->prefix);
	vdi_free(list);
	return NULL;
}

static vd_status push(struct vd_list *list, struct vd_object *object)
{
	void *objects = list->objects;

	if (!vdi_grow(&objects, &list->object_capacity, list->object_count + 1, sizeof(struct vd_object *)))
		return VD_NOMEM;
	list->objects = objects;
	list->objects[list->object_count++] = object;
	return VD_OK;
}

vd_status vdi_list_append(struct vd_list *list, struct vd_object *object)
{
	VDI_TRY(push(list, object));
	list->owns_objects = true;
	vd_object_ref(object);
	return VD_OK;
}

/* limit 0: none. */
static vd_status gather(struct vd_list *list, const struct vdi_predicate *predicate, int64_t limit,
			struct vd_bytes prefix, struct vd_error *reterr)
{
	struct vdi_btree_cursor *cursor = &list->candidates.cursor;
	size_t			 most = limit ? (size_t) limit : SIZE_MAX;
	struct vd_object	*object;

	while (list->object_count < most && (object = vdi_btree_cursor_range_next(cursor)))
		if (vdi_predicate_matches(predicate, object) && push(list, object) != VD_OK)
			return vd_error_set(reterr, VD_NOMEM, "out of memory for a list");
	if (list->object_count < most || cursor->remaining == 0)
		return VD_OK;
	if (vdi_predicate_takes_all_of_scope(predicate))
		list->remaining = list->candidate_count - limit;
	return vdi_continue_token_encode_after(vd_object_key(list->objects[list->object_count - 1]), prefix,
					       list->revision, &list->continue_token, reterr);
}

vd_status vdi_list_new(struct vdi_candidates *candidates, struct vdi_predicate *predicate, int64_t limit,
		       struct vd_bytes prefix, vd_rev revision, bool may_be_pending,
		       struct vd_list **ret_list, struct vd_error *reterr)
{
	struct vd_list *list = VDI_NEW(struct vd_list);
	vd_status	status = VD_OK;

	if (list == NULL) {
		vdi_candidates_release(candidates);
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a list");
	}
	list->revision = revision;
	list->remaining = -1;
	list->candidates = *candidates;
	list->candidate_count = (int64_t) candidates->count;
	list->limit = limit;
	list->predicate = vdi_predicate_ref(predicate);
	if (limit > 0 && may_be_pending && vdi_list_is_long(list)) {
		list->prefix = vdi_strndup(prefix.data, prefix.size);
		list->prefix_size = prefix.size;
		status = list->prefix ? VD_OK : vd_error_set(reterr, VD_NOMEM, "out of memory for a list");
	} else if (limit > 0) {
		status = gather(list, predicate, limit, prefix, reterr);
		list->limit = 0;
		list->predicate = vdi_predicate_unref(list->predicate);
	}
	if (status != VD_OK) {
		vd_list_free(list);
		return status;
	}
	*ret_list = list;
	return VD_OK;
}

bool vdi_list_is_long(const struct vd_list *list)
{
	uint64_t candidates = (uint64_t) list->candidate_count;

	if (list->predicate == NULL)
		return false;
	/* All walked objects are in the list, so the search is as long as the answer, which is sent in
	 * pieces. */
	if (vdi_predicate_takes_all_of_scope(list->predicate))
		return list->limit > LONG_COMPARISONS && candidates > LONG_COMPARISONS;
	return candidates * vdi_predicate_cost(list->predicate) > LONG_COMPARISONS;
}

vd_status vdi_list_gather(struct vd_list *list, struct vd_error *reterr)
{
	vd_status status;

	if (list->predicate == NULL)
		return VD_OK;
	status = gather(list, list->predicate, list->limit,
			(struct vd_bytes) { list->prefix, list->prefix_size }, reterr);
	list->limit = 0;
	list->predicate = vdi_predicate_unref(list->predicate);
	return status;
}

struct vd_object *vd_list_next(struct vd_list *list)
{
	struct vd_object *object;

	if (list->predicate == NULL)
		return list->next < list->object_count ? list->objects[list->next++] : NULL;
	do {
		object = vdi_btree_cursor_range_next(&list->candidates.cursor);
	} while (object && (!list->predicate->is_empty || list->predicate->name_size) &&
		 !vdi_predicate_matches(list->predicate, object));
	list->returned += object != NULL;
	return object;
}

vd_rev vd_list_revision(const struct vd_list *list)
{
	return list->revision;
}

struct vd_bytes vd_list_continue(const struct vd_list *list)
{
	return vd_bytes_of(list->continue_token);
}

int64_t vd_list_remaining(const struct vd_list *list)
{
	return list->remaining;
}

struct vd_bytes vd_list_shard_selector(const struct vd_list *list)
{
	return list->sharded ? vdi_shard_selector_text(vdi_predicate_shards(list->sharded)) : VD_BYTES_NONE;
}

int64_t vd_list_candidate_count(const struct vd_list *list)
{
	return list->candidate_count;
}
