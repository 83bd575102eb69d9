/* The search for dependents lists all kinds that can contain some, one after another. A foreground search
 * ends at the first dependent that blocks; an orphaning search removes the reference from each one.
 */
#include "env.h"
#include "garbage_edit.h"
#include "garbage_work_state.h"
#include "object.h"

#define SEARCH_MAX 2048	  /* objects searched before the actor handles other work */
#define SETTLE VD_MS(100) /* delay until the graph has seen the dependents that a search found */

/* A dependent from which a reference is removed. */
struct child {
	struct vdi_control_return back;
	struct vdi_garbage_work	 *work;
	struct vd_object	 *object; /* a reference; the call's names point into it */
	struct vdi_object_call	  call;
};

static void search_on(struct vdi_control_return *back);

static void child_called(struct vdi_object_call *call)
{
	struct child *child = call->arg;

	vdi_control_loop_post(&child->work->collector->loop, &child->back);
}

static void free_child(struct child *child)
{
	vdi_object_call_fini(&child->call);
	(void) vd_object_unref(child->object);
	vdi_free(child);
}

static void child_done(struct vdi_control_return *back)
{
	struct child		*child = VDI_CONTAINER_OF(back, struct child, back);
	struct vdi_garbage_work *work = child->work;

	work->call_count--;
	if (child->call.result == VD_OK)
		vdi_garbage_count(work->collector, &work->collector->counts.orphaned);
	else if (child->call.result != VD_NOT_FOUND && child->call.result != VD_PRECONDITION)
		work->has_failed = true;
	free_child(child);
	search_on(&work->back);
}

bool vdi_garbage_return_free(struct vdi_control_return *back)
{
	if (back->run != child_done)
		return false;
	free_child(VDI_CONTAINER_OF(back, struct child, back));
	return true;
}

static vd_status edit_orphan(struct vdi_object_call *call, struct vdi_tree *tree, struct vdi_node *root,
			     bool *ret_changed)
{
	struct child *child = call->arg;

	*ret_changed |= vdi_garbage_remove_owner(tree, root, vd_bytes_of(child->work->target.uid));
	return VD_OK;
}

static void orphan(struct vdi_garbage_work *work, struct vd_object *object)
{
	struct child *child = VDI_NEW(struct child);

	if (child == NULL || !vdi_control_loop_begin(&work->collector->loop)) {
		vdi_free(child);
		work->has_failed = true;
		return;
	}
	*child = (struct child) { .back = { .run = child_done },
				  .work = work,
				  .object = vd_object_ref(object) };
	child->call = (struct vdi_object_call) { .resource = work->kind,
						 .namespace_name = vd_object_namespace(object),
						 .name = vd_object_name(object),
						 .preconditions = { .uid = vdi_object_uid(object) },
						 .edit = edit_orphan,
						 .now = vd_env_wall(work->collector->env),
						 .done = child_called,
						 .arg = child };
	work->call_count++;
	vdi_object_call_change(&child->call);
}

/* Returns true if object names the target as an owner; in a foreground search only if the reference blocks.
 * Also true if memory was too short to tell. */
static bool is_dependent(struct vdi_garbage_work *work, const struct vd_object *object)
{
	struct vd_bytes	 metadata = vdi_object_metadata(object), uid = vd_bytes_of(work->target.uid);
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root, *list;
	vd_status	 status;
	bool		 is = false;

	if (memmem(metadata.data, metadata.size, uid.data, uid.size) == NULL ||
	    vd_bytes_equal(vdi_object_uid(object), uid))
		return false;
	status = vdi_tree_parse(&tree, metadata, &root, NULL);
	list = status == VD_OK ? vdi_tree_get(&tree, root, vd_bytes_of("ownerReferences")) : NULL;
	for (struct vdi_node *item = vdi_tree_is(list, VDI_NODE_ARRAY) ? list->first : NULL; item;
	     item = item->next)
		is |= vdi_garbage_is_owner(&tree, item, uid) &&
		      (!work->is_foreground ||
		       vdi_tree_is(vdi_tree_get(&tree, item, vd_bytes_of("blockOwnerDeletion")),
				   VDI_NODE_TRUE));
	vdi_tree_fini(&tree);
	return is || status == VD_NOMEM;
}

static void finish_search(struct vdi_garbage_work *work)
{
	if (work->has_failed) {
		vdi_garbage_work_finish(work, VDI_GARBAGE_RETRY);
	} else if (work->found && work->is_foreground) {
		vdi_garbage_work_finish_after(work, VDI_GARBAGE_LATER, SETTLE);
	} else if (work->found) {
		vdi_garbage_search_start(work); /* until a search finds none */
	} else {
		vdi_garbage_work_remove_finalizer(work, work->is_foreground ? VDI_FINALIZER_FOREGROUND :
									      VDI_FINALIZER_ORPHAN);
	}
}

static void got_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	struct vdi_garbage_work *work = arg;

	work->list = list;
	work->has_failed |= status != VD_OK;
	vdi_control_loop_post(&work->collector->loop, &work->back);
}

static bool is_searched(const struct vdi_garbage_work *work, size_t index)
{
	const struct vdi_resources *resources = &work->set->resources;

	for (size_t i = 0; i < index; i++)
		if (resources->items[i]->cacher == resources->items[index]->cacher)
			return false;
	/* A namespaced object can own objects of its own namespace only. */
	return resources->items[index]->cacher &&
	       (resources->items[index]->namespaced || !work->target.resource->namespaced);
}

/* Starts the next list. False: none is left, or the search has failed. */
static bool list_next(struct vdi_garbage_work *work)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	vd_status	       status;

	while (work->kind_at < work->set->resources.count && !is_searched(work, work->kind_at))
		work->kind_at++;
	if (work->has_failed || work->kind_at == work->set->resources.count)
		return false;
	work->kind = work->set->resources.items[work->kind_at++];
	options.namespace_name = vd_bytes_of(work->target.namespace_name);
	work->back.run = search_on;
	if (!vdi_control_loop_begin(&work->collector->loop)) {
		work->kind_at = work->set->resources.count;
		work->has_failed = true;
		return true; /* the loop closes: stop here */
	}
	status = vd_cacher_list(work->kind->cacher, &options, got_list, work, NULL);
	if (status != VD_OK)
		got_list(work, status, NULL, NULL);
	return true;
}

/* Lets the actor handle other work first. */
static void yield(struct vdi_garbage_work *work)
{
	work->back.run = search_on;
	if (vdi_control_loop_begin(&work->collector->loop))
		vdi_control_loop_post(&work->collector->loop, &work->back);
}

/* Continues a search: after a list, a call for a child, or a pause. */
static void search_on(struct vdi_control_return *back)
{
	struct vdi_garbage_work *work = VDI_CONTAINER_OF(back, struct vdi_garbage_work, back);
	struct vd_object	*object;
	size_t			 searched = 0;

	while (work->list && work->call_count < VDI_GARBAGE_CALLS_MAX && !work->has_failed) {
		object = vd_list_next(work->list);
		if (object == NULL)
			break;
		if (is_dependent(work, object)) {
			work->found++;
			if (work->is_foreground)
				break;
			orphan(work, object);
		} else if (++searched == SEARCH_MAX && work->call_count == 0) {
			yield(work);
			return;
		}
	}
	if (work->call_count)
		return; /* the last child's call continues the search */
	work->list = vd_list_free(work->list);
	if ((work->is_foreground && work->found) || !list_next(work))
		finish_search(work);
}

void vdi_garbage_search_start(struct vdi_garbage_work *work)
{
	work->kind_at = 0;
	work->found = 0;
	if (!list_next(work))
		finish_search(work);
}
