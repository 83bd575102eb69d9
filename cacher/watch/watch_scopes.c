/* Each namespace has a list of counts, one per shard selector; usually there is only one. The first count of
 * a list is kept, even at 0, until the list is empty, so that the hash table changes only with the set of
 * namespaces. */
#include "watch_scopes.h"

struct vdi_watch_scope {
	/* a reference; all watchers counted here have its namespace and shard selector */
	struct vdi_predicate   *predicate;
	struct vdi_watch_scope *next;
	size_t			watchers;
};

static bool is_of_namespace(const void *entry, const void *key)
{
	const struct vdi_watch_scope *scope = entry;

	return vd_bytes_equal(vdi_predicate_namespace(scope->predicate), *(const struct vd_bytes *) key);
}

static uint64_t hash_of(struct vd_bytes namespace_name)
{
	return vdi_hash_bytes(namespace_name, vdi_hash_seed());
}

static struct vdi_watch_scope *first_of(const struct vdi_watch_scopes *scopes, struct vd_bytes namespace_name)
{
	return vdi_hash_get(&scopes->by_namespace, hash_of(namespace_name), &namespace_name);
}

static struct vdi_watch_scope *with_shards_of(struct vdi_watch_scope	 *scope,
					      const struct vdi_predicate *predicate)
{
	struct vd_bytes text = vdi_shard_selector_text(vdi_predicate_shards(predicate));

	while (scope &&
	       !vd_bytes_equal(vdi_shard_selector_text(vdi_predicate_shards(scope->predicate)), text))
		scope = scope->next;
	return scope;
}

static bool is_counted(const struct vdi_predicate *predicate)
{
	return !predicate->is_empty && predicate->name_size == 0;
}

void vdi_watch_scopes_init(struct vdi_watch_scopes *scopes)
{
	vdi_hash_init(&scopes->by_namespace, is_of_namespace, 0);
}

void vdi_watch_scopes_fini(struct vdi_watch_scopes *scopes)
{
	VDI_CHECK(scopes->by_namespace.count == 0);
	vdi_hash_fini(&scopes->by_namespace);
}

static void free_scope(struct vdi_watch_scope *scope)
{
	vdi_predicate_unref(scope->predicate);
	vdi_free(scope);
}

static vd_status add_scope(struct vdi_watch_scopes *scopes, struct vdi_watch_scope *first,
			   struct vdi_predicate *predicate)
{
	struct vd_bytes		namespace_name = vdi_predicate_namespace(predicate);
	struct vdi_watch_scope *scope = VDI_NEW(struct vdi_watch_scope);
	vd_status		status = VD_OK;

	if (scope == NULL)
		return VD_NOMEM;
	*scope = (struct vdi_watch_scope) { .predicate = vdi_predicate_ref(predicate), .watchers = 1 };
	if (first) {
		scope->next = first->next;
		first->next = scope;
	} else {
		status = vdi_hash_put(&scopes->by_namespace, hash_of(namespace_name), &namespace_name, scope,
				      NULL);
	}
	if (status != VD_OK)
		free_scope(scope);
	return status;
}

vd_status vdi_watch_scopes_enter(struct vdi_watch_scopes *scopes, struct vdi_predicate *predicate)
{
	struct vdi_watch_scope *first, *scope;

	if (!is_counted(predicate))
		return VD_OK;
	first = first_of(scopes, vdi_predicate_namespace(predicate));
	scope = with_shards_of(first, predicate);
	if (scope == NULL)
		return add_scope(scopes, first, predicate);
	scope->watchers++;
	return VD_OK;
}

void vdi_watch_scopes_leave(struct vdi_watch_scopes *scopes, const struct vdi_predicate *predicate)
{
	struct vd_bytes		namespace_name = vdi_predicate_namespace(predicate);
	struct vdi_watch_scope *first, *scope, **place;

	if (!is_counted(predicate))
		return;
	first = first_of(scopes, namespace_name);
	scope = with_shards_of(first, predicate);
	scope->watchers--;
	if (scope != first && scope->watchers == 0) {
		for (place = &first->next; *place != scope; place = &(*place)->next)
			continue;
		*place = scope->next;
		free_scope(scope);
	}
	if (first->watchers == 0 && first->next == NULL) {
		(void) vdi_hash_remove(&scopes->by_namespace, hash_of(namespace_name), &namespace_name);
		free_scope(first);
	}
}

static void count_namespace(const struct vdi_watch_scopes *scopes, struct vd_bytes namespace_name,
			    const struct vd_object *object, size_t *watchers, size_t *other_shards)
{
	for (const struct vdi_watch_scope *scope = first_of(scopes, namespace_name); scope;
	     scope = scope->next) {
		*watchers += scope->watchers;
		if (scope->watchers &&
		    !vdi_shard_selector_matches(vdi_predicate_shards(scope->predicate), object))
			*other_shards += scope->watchers;
	}
}

void vdi_watch_scopes_count(const struct vdi_watch_scopes *scopes, const struct vd_object *object,
			    size_t *ret_watchers, size_t *ret_other_shards)
{
	struct vd_bytes namespace_name = vd_object_namespace(object);

	*ret_watchers = *ret_other_shards = 0;
	if (scopes->by_namespace.count == 0)
		return;
	count_namespace(scopes, VD_BYTES_NONE, object, ret_watchers, ret_other_shards);
	if (namespace_name.size)
		count_namespace(scopes, namespace_name, object, ret_watchers, ret_other_shards);
}
