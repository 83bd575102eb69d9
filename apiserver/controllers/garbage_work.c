/* A check of one object.
 *
 *   get --- absent, or another uid ----------------------> gone
 *    |- being deleted, foreground:
 *    |     dependents that block it ---------------------> queue them; their deletion queues the object again
 *    |     none in the graph -> search all kinds -> none ---> remove the finalizer
 *    |- being deleted, orphan: search all kinds -> remove the reference from each dependent
 *    |     -> until a search finds none -----------------> remove the finalizer
 *    |- being deleted, a pod in its grace period:
 *    |     its node is absent, and the period is over -----> delete it
 *    |- being deleted otherwise, or without owners ------> done
 *    `- each owner: get, absent ones from the store
 *          some exist (solid) ---------------------------> remove the references to the others
 *          some wait for their dependents ---------------> delete it (foreground if it has dependents)
 *          none exists ------------------------------------> delete it
 */
#include <stdio.h>
#include <stdlib.h>

#include "env.h"
#include "garbage_edit.h"
#include "garbage_work_state.h"
#include "k8s_time.h"
#include "object.h"
#include "table.h"

#define AGENT_PATIENCE VD_SECONDS(20)

static void next_owner(struct vdi_garbage_work *work);

static struct vdi_garbage_work *work_of(struct vdi_control_return *back)
{
	return VDI_CONTAINER_OF(back, struct vdi_garbage_work, back);
}

/* ---- End of a check ---- */

void vdi_garbage_work_free(struct vdi_garbage_work *work)
{
	struct vdi_garbage_work **place = &work->collector->works;

	while (*place != work)
		place = &(*place)->next;
	*place = work->next;
	vdi_object_call_fini(&work->call);
	vdi_tree_fini(&work->tree);
	vdi_free(work->owners);
	(void) vd_list_free(work->list);
	(void) vd_object_unref(work->answer);
	(void) vd_object_unref(work->object);
	(void) vdi_resource_set_unref(work->set);
	vdi_garbage_target_fini(&work->target);
	vdi_free(work);
}

void vdi_garbage_work_finish_after(struct vdi_garbage_work *work, enum vdi_garbage_end end, vd_dur delay)
{
	struct vdi_garbage_collector *collector = work->collector;
	struct vdi_owner_node	     *node = work->node;

	vdi_garbage_work_free(work);
	vdi_garbage_worked(collector, node, end, delay);
}

void vdi_garbage_work_finish(struct vdi_garbage_work *work, enum vdi_garbage_end end)
{
	vdi_garbage_work_finish_after(work, end, (vd_dur) { 0 });
}

static void fail(struct vdi_garbage_work *work, const char *what, vd_status status,
		 const struct vd_error *error)
{
	static struct vdi_log_limit limit = VDI_LOG_LIMIT(VD_SECONDS(10));

	if (status != VD_CONFLICT && status != VD_PRECONDITION && status != VD_CLOSED)
		vdi_log_limited(work->collector->env, &limit, VD_LOG_WARNING, "garbage collector",
				"%s %s/%s: %s: %s", work->target.resource->plural,
				work->target.namespace_name, work->target.name, what,
				error && error->message[0] ? error->message : vd_status_sentence(status));
	vdi_garbage_work_finish(work, VDI_GARBAGE_RETRY);
}

/* ---- Gets ---- */

static void got(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		const struct vd_error *error)
{
	struct vdi_garbage_work *work = arg;

	work->result = status;
	work->error = error ? *error : (struct vd_error) { .code = status };
	work->answer = object ? vd_object_ref(object) : NULL;
	vdi_control_loop_post(&work->collector->loop, &work->back);
}

/* Reads an object and then calls run. If the loop closes, run is not called and the work is freed with the
 * loop. */
static void get(struct vdi_garbage_work *work, const struct vdi_resource *resource,
		struct vd_bytes namespace_name, struct vd_bytes name, bool from_store,
		void (*run)(struct vdi_control_return *back))
{
	vd_status status;

	work->answer = vd_object_unref(work->answer);
	work->back.run = run;
	if (!vdi_control_loop_begin(&work->collector->loop))
		return;
	status = vd_cacher_get(resource->cacher, resource->namespaced ? namespace_name : VD_BYTES_NONE, name,
			       from_store ? VD_REVISION_UNSET : VD_REVISION_ANY, got, work);
	if (status != VD_OK)
		got(work, status, NULL, 0, NULL);
}

/* ---- Changes and deletions ---- */

static void called(struct vdi_object_call *call)
{
	struct vdi_garbage_work *work = call->arg;

	vdi_control_loop_post(&work->collector->loop, &work->back);
}

static void call_done(struct vdi_control_return *back)
{
	struct vdi_garbage_work *work = work_of(back);

	if (work->call.result == VD_OK)
		vdi_garbage_work_finish(work, VDI_GARBAGE_DONE);
	else if (work->call.result == VD_NOT_FOUND)
		vdi_garbage_work_finish(work, VDI_GARBAGE_GONE);
	else
		fail(work, "the object cannot be written", work->call.result, &work->call.error);
}

static void prepare_call(struct vdi_garbage_work *work, void (*run)(struct vdi_control_return *back))
{
	vdi_object_call_fini(&work->call);
	work->call = (struct vdi_object_call) { .resource = work->target.resource,
						.namespace_name = vd_bytes_of(work->target.namespace_name),
						.name = vd_bytes_of(work->target.name),
						.preconditions = { .uid = vd_bytes_of(work->target.uid) },
						.options = &work->options,
						.now = vd_env_wall(work->collector->env),
						.done = called,
						.arg = work };
	work->back.run = run;
}

static void change(struct vdi_garbage_work *work, vdi_object_edit_fn edit,
		   void (*run)(struct vdi_control_return *back))
{
	prepare_call(work, run);
	work->call.edit = edit;
	if (vdi_control_loop_begin(&work->collector->loop))
		vdi_object_call_change(&work->call);
}

static void deleted(struct vdi_control_return *back)
{
	struct vdi_garbage_work *work = work_of(back);

	if (work->call.result == VD_OK)
		vdi_garbage_count(work->collector, &work->collector->counts.deleted);
	call_done(back);
}

/* Deletes the object only in the state that was read. */
static void delete_object(struct vdi_garbage_work *work, enum vdi_propagation propagation)
{
	work->options = (struct vdi_delete_options) { .uid = vd_bytes_of(work->target.uid),
						      .revision = vd_bytes_of(work->revision),
						      .propagation = propagation };
	prepare_call(work, deleted);
	if (vdi_control_loop_begin(&work->collector->loop))
		vdi_object_call_delete(&work->call);
}

/* All edits run on a thread of the store. */
static vd_status edit_finalizer(struct vdi_object_call *call, struct vdi_tree *tree, struct vdi_node *root,
				bool *ret_changed)
{
	struct vdi_garbage_work *work = call->arg;

	*ret_changed |=
		vdi_garbage_remove_string(vdi_tree_find(tree, root, "metadata.finalizers"), work->finalizer);
	return VD_OK;
}

void vdi_garbage_work_remove_finalizer(struct vdi_garbage_work *work, const char *finalizer)
{
	work->finalizer = finalizer;
	change(work, edit_finalizer, call_done);
}

static vd_status edit_owners(struct vdi_object_call *call, struct vdi_tree *tree, struct vdi_node *root,
			     bool *ret_changed)
{
	struct vdi_garbage_work *work = call->arg;

	for (size_t i = 0; i < work->owner_count; i++)
		if (work->owners[i].class != VDI_GARBAGE_OWNER_SOLID)
			*ret_changed |= vdi_garbage_remove_owner(tree, root, work->owners[i].uid);
	return VD_OK;
}

static vd_status edit_unblock(struct vdi_object_call *call, struct vdi_tree *tree, struct vdi_node *root,
			      bool *ret_changed)
{
	struct vdi_node *list = vdi_tree_find(tree, root, "metadata.ownerReferences");

	for (struct vdi_node *item = vdi_tree_is(list, VDI_NODE_ARRAY) ? list->first : NULL; item;
	     item = item->next)
		if (vdi_tree_is(vdi_tree_get(tree, item, vd_bytes_of("blockOwnerDeletion")), VDI_NODE_TRUE)) {
			if (!vdi_tree_set(tree, item, vd_bytes_of("blockOwnerDeletion"),
					  vdi_tree_new(tree, VDI_NODE_FALSE)))
				return VD_NOMEM;
			*ret_changed = true;
		}
	return VD_OK;
}

/* ---- Owners ---- */

static const struct vdi_resource *find_owner_kind(const struct vdi_garbage_work	 *work,
						  const struct vdi_garbage_owner *owner)
{
	for (size_t i = 0; i < work->set->resources.count; i++) {
		const struct vdi_resource *resource = work->set->resources.items[i];

		if (vd_bytes_equal(vd_bytes_of(resource->group), owner->group) &&
		    vd_bytes_equal(vd_bytes_of(resource->kind), owner->kind))
			return resource;
	}
	return NULL;
}

static void unblocked(struct vdi_control_return *back)
{
	struct vdi_garbage_work *work = work_of(back);

	if (work->call.result != VD_OK) {
		call_done(back);
		return;
	}
	/* The object has a new revision; the owners were read for its uid, so the result still holds. */
	(void) snprintf(work->revision, sizeof work->revision, "%lld", (long long) work->call.revision);
	delete_object(work, VDI_PROPAGATION_FOREGROUND);
}

static void released(struct vdi_control_return *back)
{
	struct vdi_garbage_work *work = work_of(back);

	if (work->call.result == VD_OK)
		vdi_garbage_count(work->collector, &work->collector->counts.released);
	call_done(back);
}

static int order_owners(const void *a, const void *b)
{
	return vd_bytes_compare(((const struct vdi_garbage_owner *) a)->uid,
				((const struct vdi_garbage_owner *) b)->uid);
}

/* References to one uid must have one class: the owner may have been read twice, perhaps under two names, and
 * its deletion may have begun between. It counts as solid if it was solid once, because references are
 * removed by uid, and removing one would remove all. */
static void agree_on_owners(struct vdi_garbage_work *work)
{
	size_t end;

	qsort(work->owners, work->owner_count, sizeof *work->owners, order_owners);
	for (size_t i = 0; i < work->owner_count; i = end) {
		bool is_solid = false;

		for (end = i;
		     end < work->owner_count && vd_bytes_equal(work->owners[end].uid, work->owners[i].uid);
		     end++)
			is_solid |= work->owners[end].class == VDI_GARBAGE_OWNER_SOLID;
		for (size_t j = i; is_solid && j < end; j++)
			work->owners[j].class = VDI_GARBAGE_OWNER_SOLID;
	}
}

static void decide(struct vdi_garbage_work *work)
{
	struct vdi_node *finalizers = vdi_tree_get(&work->tree, work->metadata, vd_bytes_of("finalizers"));
	size_t		 counts[3] = { 0 };
	bool		 any, blocking, waiting;

	agree_on_owners(work);
	for (size_t i = 0; i < work->owner_count; i++)
		counts[work->owners[i].class]++;
	if (counts[VDI_GARBAGE_OWNER_SOLID]) {
		if (counts[VDI_GARBAGE_OWNER_SOLID] == work->owner_count)
			vdi_garbage_work_finish(work, VDI_GARBAGE_DONE);
		else
			change(work, edit_owners, released);
		return;
	}
	vdi_garbage_dependents(work->collector, work->node, &any, &blocking, &waiting);
	if (counts[VDI_GARBAGE_OWNER_WAITING] && any && waiting)
		change(work, edit_unblock, unblocked); /* may be a cycle of blocking owners */
	else if (counts[VDI_GARBAGE_OWNER_WAITING] && any)
		delete_object(work, VDI_PROPAGATION_FOREGROUND);
	else if (vdi_deletion_has(finalizers, vd_bytes_of(VDI_FINALIZER_ORPHAN)))
		delete_object(work, VDI_PROPAGATION_ORPHAN);
	else if (vdi_deletion_has(finalizers, vd_bytes_of(VDI_FINALIZER_FOREGROUND)))
		delete_object(work, VDI_PROPAGATION_FOREGROUND);
	else
		delete_object(work, VDI_PROPAGATION_BACKGROUND);
}

/* Returns the class of an existing owner. VD_NOMEM: unknown; assuming solid would be wrong, because no later
 * event would queue the object again. */
static vd_status class_of(struct vdi_garbage_work *work, enum vdi_garbage_owner_class *ret_class)
{
	struct vd_bytes	 metadata = vdi_object_metadata(work->answer);
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	bool		 is_waiting = false;
	vd_status	 status = VD_OK;

	if (memmem(metadata.data, metadata.size, VDI_FINALIZER_FOREGROUND,
		   sizeof VDI_FINALIZER_FOREGROUND - 1) &&
	    (status = vdi_tree_parse(&tree, metadata, &root, NULL)) == VD_OK)
		is_waiting =
			vdi_tree_string_of(vdi_tree_get(&tree, root, vd_bytes_of("deletionTimestamp"))).size >
				0 &&
			vdi_deletion_has(vdi_tree_get(&tree, root, vd_bytes_of("finalizers")),
					 vd_bytes_of(VDI_FINALIZER_FOREGROUND));
	vdi_tree_fini(&tree);
	*ret_class = is_waiting ? VDI_GARBAGE_OWNER_WAITING : VDI_GARBAGE_OWNER_SOLID;
	return status == VD_NOMEM ? VD_NOMEM : VD_OK;
}

static void got_owner(struct vdi_control_return *back)
{
	struct vdi_garbage_work	 *work = work_of(back);
	struct vdi_garbage_owner *owner = &work->owners[work->at];
	bool is_there = work->result == VD_OK && vd_bytes_equal(vdi_object_uid(work->answer), owner->uid);

	if (work->result != VD_OK && work->result != VD_NOT_FOUND) {
		fail(work, "an owner of the object cannot be read", work->result, &work->error);
		return;
	}
	if (!is_there && !work->is_confirming) {
		work->is_confirming = true;
		next_owner(work);
		return;
	}
	owner->class = VDI_GARBAGE_OWNER_DANGLING;
	if (is_there && class_of(work, &owner->class) != VD_OK) {
		vdi_garbage_work_finish(work, VDI_GARBAGE_RETRY);
		return;
	}
	work->is_confirming = false;
	work->at++;
	next_owner(work);
}

static void refuse_reference(struct vdi_garbage_work *work, const struct vdi_garbage_owner *owner)
{
	static struct vdi_log_limit limit = VDI_LOG_LIMIT(VD_SECONDS(10));

	vdi_garbage_count(work->collector, &work->collector->counts.invalid);
	vdi_log_limited(
		work->collector->env, &limit, VD_LOG_WARNING, "garbage collector",
		"%s %s: ownerRef %.*s %.*s is in a namespace, the object is not: it cannot be collected",
		work->target.resource->plural, work->target.name,
		(int) VDI_MIN(owner->kind.size, (size_t) 100), (const char *) owner->kind.data,
		(int) VDI_MIN(owner->name.size, (size_t) 100), (const char *) owner->name.data);
	vdi_garbage_work_finish(work, VDI_GARBAGE_DONE);
}

static void next_owner(struct vdi_garbage_work *work)
{
	const struct vdi_resource *resource;
	struct vdi_garbage_owner  *owner;

	if (work->at == work->owner_count) {
		decide(work);
		return;
	}
	owner = &work->owners[work->at];
	resource = find_owner_kind(work, owner);
	if (resource == NULL &&
	    vdi_garbage_saw_end(work->collector, owner->uid)) { /* the owner's kind is gone too */
		owner->class = VDI_GARBAGE_OWNER_DANGLING;
		work->at++;
		next_owner(work);
		return;
	}
	if (resource == NULL || resource->cacher == NULL) {
		struct vd_error error = { .code = VD_OK };

		(void) vd_error_set(&error, VD_NOT_FOUND, "no kind %.*s in group \"%.*s\" is served",
				    (int) VDI_MIN(owner->kind.size, (size_t) 100),
				    (const char *) owner->kind.data,
				    (int) VDI_MIN(owner->group.size, (size_t) 100),
				    owner->group.size ? (const char *) owner->group.data : "");
		vdi_garbage_unknown(work->collector);
		fail(work, "an owner of the object has an unknown kind", VD_NOT_FOUND, &error);
	} else if (resource->namespaced && !work->target.resource->namespaced) {
		refuse_reference(work, owner);
	} else {
		get(work, resource, vd_bytes_of(work->target.namespace_name), owner->name,
		    work->is_confirming, got_owner);
	}
}

/* Parses the owner references. False: no memory. */
static bool take_owners(struct vdi_garbage_work *work)
{
	struct vdi_node *list = vdi_tree_get(&work->tree, work->metadata, vd_bytes_of("ownerReferences"));

	if (!vdi_tree_is(list, VDI_NODE_ARRAY) || list->count == 0)
		return true;
	work->owners = vdi_calloc(list->count, sizeof *work->owners);
	if (work->owners == NULL)
		return false;
	for (struct vdi_node *item = list->first; item; item = item->next) {
		struct vdi_garbage_owner *owner = &work->owners[work->owner_count++];
		struct vd_bytes		  version =
			vdi_tree_string_of(vdi_tree_get(&work->tree, item, vd_bytes_of("apiVersion")));
		const char *slash = version.size ? memchr(version.data, '/', version.size) : NULL;

		owner->group = slash ? (struct vd_bytes) { version.data,
							   (size_t) (slash - (const char *) version.data) } :
				       VD_BYTES_NONE;
		owner->kind = vdi_tree_string_of(vdi_tree_get(&work->tree, item, vd_bytes_of("kind")));
		owner->name = vdi_tree_string_of(vdi_tree_get(&work->tree, item, vd_bytes_of("name")));
		owner->uid = vdi_tree_string_of(vdi_tree_get(&work->tree, item, vd_bytes_of("uid")));
	}
	return true;
}

/* ---- Pods whose node is absent ---- */

static void got_node(struct vdi_control_return *back)
{
	struct vdi_garbage_work *work = work_of(back);
	int64_t			 due_s = 0, now_s = vd_env_wall(work->collector->env).ns / 1000000000;

	if (work->result == VD_OK ||
	    !vdi_k8s_time_seconds(vdi_tree_string_of(vdi_tree_get(&work->tree, work->metadata,
								  vd_bytes_of("deletionTimestamp"))),
				  &due_s)) {
		vdi_garbage_work_finish_after(work, VDI_GARBAGE_LATER, AGENT_PATIENCE);
	} else if (work->result != VD_NOT_FOUND) {
		fail(work, "the node of the pod cannot be read", work->result, &work->error);
	} else if (due_s > now_s) {
		vdi_garbage_work_finish_after(work, VDI_GARBAGE_LATER, VD_SECONDS(due_s - now_s));
	} else {
		work->options = (struct vdi_delete_options) { .uid = vd_bytes_of(work->target.uid),
							      .revision = vd_bytes_of(work->revision),
							      .has_grace = true };
		prepare_call(work, deleted);
		if (vdi_control_loop_begin(&work->collector->loop))
			vdi_object_call_delete(&work->call);
	}
}

static void find_agent(struct vdi_garbage_work *work)
{
	const struct vdi_resource *nodes = vdi_resources_find(&work->set->resources, VD_BYTES_NONE,
							      vd_bytes_of("v1"), vd_bytes_of("nodes"));
	struct vdi_node		  *root;
	struct vd_bytes		   name;

	if (vdi_tree_parse(&work->tree, vd_kv_value(vd_object_kv(work->object)), &root, NULL) != VD_OK) {
		vdi_garbage_work_finish(work, VDI_GARBAGE_RETRY);
		return;
	}
	name = vdi_tree_string_of(vdi_tree_find(&work->tree, root, "spec.nodeName"));
	if (nodes == NULL || nodes->cacher == NULL || name.size == 0)
		vdi_garbage_work_finish(work, VDI_GARBAGE_DONE);
	else
		get(work, nodes, VD_BYTES_NONE, name, true, got_node);
}

/* ---- The object ---- */

static void check_deletion(struct vdi_garbage_work *work)
{
	struct vdi_node *finalizers = vdi_tree_get(&work->tree, work->metadata, vd_bytes_of("finalizers"));
	bool		 any, blocking, waiting;

	if (vdi_deletion_has(finalizers, vd_bytes_of(VDI_FINALIZER_FOREGROUND))) {
		vdi_garbage_dependents(work->collector, work->node, &any, &blocking, &waiting);
		work->is_foreground = true;
		if (blocking)
			vdi_garbage_work_finish(
				work, VDI_GARBAGE_DONE); /* their deletion queues this object again */
		else
			vdi_garbage_search_start(work);
	} else if (vdi_deletion_has(finalizers, vd_bytes_of(VDI_FINALIZER_ORPHAN))) {
		vdi_garbage_search_start(work);
	} else if (work->target.is_pods &&
		   vdi_tree_int_of(vdi_tree_get(&work->tree, work->metadata,
						vd_bytes_of("deletionGracePeriodSeconds")),
				   0) > 0) {
		find_agent(work);
	} else {
		vdi_garbage_work_finish(work, VDI_GARBAGE_DONE);
	}
}

static void got_object(struct vdi_control_return *back)
{
	struct vdi_garbage_work *work = work_of(back);
	vd_status		 status;

	if (work->result == VD_NOT_FOUND ||
	    (work->result == VD_OK &&
	     !vd_bytes_equal(vdi_object_uid(work->answer), vd_bytes_of(work->target.uid)))) {
		vdi_garbage_work_finish(work, VDI_GARBAGE_GONE);
		return;
	}
	if (work->result != VD_OK) {
		fail(work, "the object cannot be read", work->result, &work->error);
		return;
	}
	work->object = work->answer;
	work->answer = NULL;
	(void) snprintf(work->revision, sizeof work->revision, "%lld",
			(long long) vd_object_revision(work->object));
	status = vdi_tree_parse(&work->tree, vdi_object_metadata(work->object), &work->metadata, NULL);
	if (status != VD_OK || !take_owners(work))
		vdi_garbage_work_finish(work, VDI_GARBAGE_RETRY);
	else if (vdi_tree_string_of(
			 vdi_tree_get(&work->tree, work->metadata, vd_bytes_of("deletionTimestamp")))
			 .size)
		check_deletion(work);
	else if (work->owner_count == 0)
		vdi_garbage_work_finish(work, VDI_GARBAGE_DONE);
	else
		next_owner(work);
}

bool vdi_garbage_work_start(struct vdi_garbage_collector *collector, struct vdi_owner_node *node,
			    struct vdi_garbage_target *target)
{
	struct vdi_garbage_work *work = VDI_NEW(struct vdi_garbage_work);

	if (work == NULL)
		return false;
	work->collector = collector;
	work->node = node;
	work->target = *target;
	work->set = vdi_resource_set_ref(collector->set);
	work->next = collector->works;
	collector->works = work;
	get(work, work->target.resource, vd_bytes_of(work->target.namespace_name),
	    vd_bytes_of(work->target.name), false, got_object);
	return true;
}
