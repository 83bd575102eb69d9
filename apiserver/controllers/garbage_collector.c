/* How: a watch of each kind puts what it sees into a graph of owners; the graph says which objects may need
 * something done; those are looked at, a few at a time.
 *
 *   kind watches --facts--> owner graph --touched--> queue --actor--> looks (garbage_work.c) --> caches
 *   (own threads, under the graph's lock)              ^                |
 *                                                      `----------------' touched meanwhile, or back-off
 *
 * A kind's watch sees changes in order, but different kinds are not in step: a dependent may become known
 * after its owner went. Therefore every new node with owners is looked at once, and looks read; and an owner
 * that waits lets go only after all kinds were searched for dependents in consistent lists.
 */
#include "garbage_collector.h"

#include "env.h"
#include "garbage_state.h"
#include "kind_cache.h"
#include "object.h"

#define LOOK_AGAIN VD_SECONDS(5)
#define DELAY_FIRST_NS ((int64_t) 50000000)
#define DELAY_MAX_NS (VD_SECONDS(60).ns)
#define OWNERS_MAX 1024 /* of one object; the rest is not looked at before these are gone */

/* ---- The queue; under the graph's lock ---- */

static void enqueue(struct vdi_garbage_collector *collector, struct vdi_owner_node *node)
{
	node->state = VDI_OWNER_QUEUED;
	node->queue_next = NULL;
	if (collector->queue_last)
		collector->queue_last->queue_next = node;
	else
		collector->queue_first = node;
	collector->queue_last = node;
	collector->counts.waiting++;
}

static void touched(void *arg, struct vdi_owner_node *node)
{
	struct vdi_garbage_collector *collector = arg;

	if (node->kind == NULL)
		return;
	collector->counts.added++;
	if (node->state == VDI_OWNER_RUNNING)
		node->again = true;
	else if (node->state != VDI_OWNER_QUEUED)
		enqueue(collector,
			node); /* one that was delayed: its timer is taken off when it is taken out */
}

/* ---- What the watches tell ---- */

static bool holds(struct vd_bytes text, const char *part)
{
	return memmem(text.data, text.size, part, strlen(part)) != NULL;
}

struct facts {
	struct vdi_owner_facts	   facts;
	struct vdi_owner_reference owners[OWNERS_MAX];
};

static void take_owners(struct facts *facts, struct vdi_tree *tree, const struct vdi_node *list)
{
	for (const struct vdi_node *item = vdi_tree_is(list, VDI_NODE_ARRAY) ? list->first : NULL;
	     item && facts->facts.owner_count < OWNERS_MAX; item = item->next) {
		struct vd_bytes uid = vdi_tree_string_of(vdi_tree_get(tree, item, vd_bytes_of("uid")));

		if (uid.size == 0 || memchr(uid.data, 0, uid.size) || vd_bytes_equal(uid, facts->facts.uid))
			continue;
		facts->owners[facts->facts.owner_count++] = (struct vdi_owner_reference) {
			.uid = uid,
			.blocks = vdi_tree_is(vdi_tree_get(tree, item, vd_bytes_of("blockOwnerDeletion")),
					      VDI_NODE_TRUE)
		};
	}
	facts->facts.owners = facts->owners;
}

/* VD_NOMEM; metadata that cannot be read has no facts. */
static vd_status read_facts(struct facts *facts, const struct vdi_garbage_kind *kind,
			    struct vd_bytes metadata, struct vdi_tree *tree)
{
	struct vdi_node *root, *finalizers;
	vd_status	 status;

	if (!holds(metadata, "\"ownerReferences\"") && !holds(metadata, "\"deletionTimestamp\""))
		return VD_OK;
	status = vdi_tree_parse(tree, metadata, &root, NULL);
	if (status != VD_OK)
		return status == VD_NOMEM ? VD_NOMEM : VD_OK;
	take_owners(facts, tree, vdi_tree_get(tree, root, vd_bytes_of("ownerReferences")));
	facts->facts.is_deleting =
		vdi_tree_string_of(vdi_tree_get(tree, root, vd_bytes_of("deletionTimestamp"))).size > 0;
	if (!facts->facts.is_deleting)
		return VD_OK;
	finalizers = vdi_tree_get(tree, root, vd_bytes_of("finalizers"));
	facts->facts.waits_foreground = vdi_deletion_has(finalizers, vd_bytes_of(VDI_FINALIZER_FOREGROUND));
	facts->facts.waits_orphan = vdi_deletion_has(finalizers, vd_bytes_of(VDI_FINALIZER_ORPHAN));
	facts->facts.waits_agent =
		kind->is_pods &&
		vdi_tree_int_of(vdi_tree_get(tree, root, vd_bytes_of("deletionGracePeriodSeconds")), 0) > 0;
	return VD_OK;
}

static vd_status put(struct vdi_garbage_kind *kind, struct vd_object *object, uint64_t fill)
{
	struct vdi_garbage_collector *collector = kind->collector;
	struct vdi_tree		      tree = VDI_TREE_INIT;
	struct facts		      facts;
	vd_status		      status;

	facts.facts = (struct vdi_owner_facts) { .kind = kind,
						 .fill = fill,
						 .namespace_name = vd_object_namespace(object),
						 .name = vd_object_name(object),
						 .uid = vdi_object_uid(object) };
	status = read_facts(&facts, kind, vdi_object_metadata(object), &tree);
	if (status == VD_OK) {
		vdi_lock_acquire(&collector->lock);
		status = vdi_owner_graph_put(&collector->graph, &facts.facts);
		vdi_lock_release(&collector->lock);
	}
	vdi_tree_fini(&tree);
	return status;
}

static bool changed(void *arg, const struct vd_watch_event *event, uint64_t fill)
{
	struct vdi_garbage_kind	     *kind = arg;
	struct vdi_garbage_collector *collector = kind->collector;
	struct vd_bytes		      uid = vdi_object_uid(event->object);
	vd_status		      status = VD_OK;

	if (uid.size == 0 || memchr(uid.data, 0, uid.size))
		return true;
	if (event->type == VD_WATCH_DELETED) {
		vdi_lock_acquire(&collector->lock);
		vdi_owner_graph_delete(&collector->graph, uid);
		vdi_lock_release(&collector->lock);
		if (collector->gone && vd_object_namespace(event->object).size)
			collector->gone(collector->arg, vd_object_namespace(event->object));
	} else {
		status = put(kind, event->object, fill);
	}
	vdi_control_loop_wake(&collector->loop);
	return status == VD_OK;
}

static void filled(void *arg, uint64_t fill)
{
	struct vdi_garbage_kind	     *kind = arg;
	struct vdi_garbage_collector *collector = kind->collector;

	/* After the first one, too: a cache that lagged may have shown owners that this fill did not bring,
	 * and nobody tells of their end. */
	vdi_lock_acquire(&collector->lock);
	vdi_owner_graph_sweep(&collector->graph, kind, fill);
	vdi_lock_release(&collector->lock);
	vdi_control_loop_wake(&collector->loop);
}

/* ---- The kinds ---- */

static void free_kind(struct vdi_garbage_kind *kind)
{
	(void) vdi_resource_unref(kind->resource);
	vdi_free(kind);
}

static void kind_left(struct vdi_control_return *back)
{
	struct vdi_garbage_kind	     *kind = VDI_CONTAINER_OF(back, struct vdi_garbage_kind, left), **place;
	struct vdi_garbage_collector *collector = kind->collector;

	for (place = &collector->kinds; *place != kind; place = &(*place)->next)
		;
	*place = kind->next;
	vdi_lock_acquire(&collector->lock);
	vdi_owner_graph_sweep(&collector->graph, kind, 0);
	collector->counts.kinds--;
	vdi_lock_release(&collector->lock);
	free_kind(kind);
}

static void watch_closed(void *arg)
{
	struct vdi_garbage_kind *kind = arg;

	vdi_control_loop_post(&kind->collector->loop, &kind->left);
}

/* It is not in the set any more: its watch tells of the last deletions, and ends. */
static void close_kind(struct vdi_garbage_kind *kind)
{
	if (kind->is_leaving || !vdi_control_loop_begin(&kind->collector->loop))
		return;
	kind->is_leaving = true;
	kind->resource->cache->collected = NULL;
	kind->left.run = kind_left;
	vdi_kind_watch_leave(kind->watch, watch_closed, kind);
}

static bool is_collected(const struct vdi_resource *resource)
{
	/* Nothing owns by way of an event, and nobody has to clean up after one (upstream's ignored
	 * resources). */
	return resource->cache && !(strcmp(resource->plural, "events") == 0 &&
				    (*resource->group == 0 || strcmp(resource->group, "events.k8s.io") == 0));
}

static void open_kind(struct vdi_garbage_collector *collector, struct vdi_resource *resource)
{
	struct vdi_garbage_kind	     *kind = VDI_NEW(struct vdi_garbage_kind);
	struct vdi_kind_watch_handler handler = { changed, filled, kind };

	if (kind == NULL)
		return; /* at the next look */
	kind->collector = collector;
	kind->is_pods = resource->built_in && *resource->group == 0 && strcmp(resource->plural, "pods") == 0;
	kind->is_seen = true;
	kind->resource = vdi_resource_ref(resource);
	if (vdi_kind_watch_new(collector->env, resource, &handler, &kind->watch) != VD_OK) {
		free_kind(kind);
		return;
	}
	kind->next = collector->kinds;
	collector->kinds = kind;
	resource->cache->collected = kind;
	vdi_lock_acquire(&collector->lock);
	collector->counts.kinds++;
	/* An owner may be of this kind. */
	if (collector->has_unknown)
		vdi_owner_graph_touch_delayed(&collector->graph);
	collector->has_unknown = false;
	vdi_lock_release(&collector->lock);
}

static void see_resource(struct vdi_garbage_collector *collector, struct vdi_resource *resource)
{
	struct vdi_garbage_kind *kind = resource->cache->collected;

	if (kind == NULL) {
		open_kind(collector, resource);
		return;
	}
	if (!kind->is_seen && kind->resource != resource) {
		vdi_lock_acquire(&collector->lock);
		(void) vdi_resource_unref(kind->resource);
		kind->resource = vdi_resource_ref(resource);
		vdi_lock_release(&collector->lock);
	}
	kind->is_seen = true;
}

static void look_at_kinds(struct vdi_garbage_collector *collector)
{
	struct vdi_served *set = collector->served(collector->arg);

	vdi_control_loop_set_timer(&collector->loop, &collector->look_again,
				   vd_mono_add(vd_env_now(collector->env), LOOK_AGAIN));
	if (set == NULL)
		return;
	(void) vdi_served_unref(collector->set);
	collector->set = set;
	for (struct vdi_garbage_kind *kind = collector->kinds; kind; kind = kind->next)
		kind->is_seen = false;
	for (size_t i = 0; i < set->resources.count; i++)
		if (is_collected(set->resources.items[i]))
			see_resource(collector, set->resources.items[i]);
	for (struct vdi_garbage_kind *kind = collector->kinds; kind; kind = kind->next)
		if (!kind->is_seen)
			close_kind(kind);
}

/* ---- Looks ---- */

static bool make_target(struct vdi_owner_node *node, struct vdi_garbage_target *target)
{
	struct vdi_garbage_kind *kind = node->kind;
	size_t a = strlen(node->namespace_name) + 1, b = strlen(node->name) + 1, c = strlen(node->uid) + 1;

	target->namespace_name = vdi_alloc(a + b + c);
	if (target->namespace_name == NULL)
		return false;
	target->name = memcpy(target->namespace_name + a, node->name, b);
	target->uid = memcpy(target->name + b, node->uid, c);
	memcpy(target->namespace_name, node->namespace_name, a);
	target->is_pods = kind->is_pods;
	target->resource = vdi_resource_ref(kind->resource);
	return true;
}

/* Takes the next node that is still there; NULL: none. */
static struct vdi_owner_node *next_node(struct vdi_garbage_collector *collector,
					struct vdi_garbage_target *target, bool *ret_failed)
{
	struct vdi_owner_node *node;

	vdi_lock_acquire(&collector->lock);
	while ((node = collector->queue_first) != NULL) {
		if (node->kind && !make_target(node, target)) {
			*ret_failed = true;
			node = NULL;
			break;
		}
		collector->queue_first = node->queue_next;
		if (collector->queue_first == NULL)
			collector->queue_last = NULL;
		collector->counts.waiting--;
		vdi_timer_heap_remove(&collector->loop.timers, &node->timer);
		node->again = false;
		node->state = node->kind ? VDI_OWNER_RUNNING : VDI_OWNER_IDLE;
		if (node->kind)
			break;
		vdi_owner_graph_release(&collector->graph, node);
	}
	vdi_lock_release(&collector->lock);
	return node;
}

void vdi_garbage_target_fini(struct vdi_garbage_target *target)
{
	(void) vdi_resource_unref(target->resource);
	vdi_free(target->namespace_name);
	*target = (struct vdi_garbage_target) { .resource = NULL };
}

void vdi_garbage_count(struct vdi_garbage_collector *collector, uint64_t *counter)
{
	vdi_lock_acquire(&collector->lock);
	++*counter;
	vdi_lock_release(&collector->lock);
}

bool vdi_garbage_saw_end(struct vdi_garbage_collector *collector, struct vd_bytes uid)
{
	const struct vdi_owner_node *node;
	bool			     saw;

	vdi_lock_acquire(&collector->lock);
	node = vdi_owner_graph_find(&collector->graph, uid);
	saw = node && node->is_gone;
	vdi_lock_release(&collector->lock);
	return saw;
}

void vdi_garbage_unknown(struct vdi_garbage_collector *collector)
{
	vdi_lock_acquire(&collector->lock);
	collector->has_unknown = true;
	vdi_lock_release(&collector->lock);
}

/* Under the graph's lock. */
static vd_dur next_delay(struct vdi_garbage_collector *collector, struct vdi_owner_node *node)
{
	int64_t delay_ns = DELAY_FIRST_NS << VDI_MIN(node->failures, 12u);

	node->failures++;
	collector->counts.failed++;
	return (vd_dur) { VDI_MIN(delay_ns, DELAY_MAX_NS) };
}

void vdi_garbage_worked(struct vdi_garbage_collector *collector, struct vdi_owner_node *node,
			enum vdi_garbage_end end, vd_dur delay)
{
	bool is_later = end == VDI_GARBAGE_RETRY || end == VDI_GARBAGE_LATER;

	collector->working--;
	vdi_lock_acquire(&collector->lock);
	if (end == VDI_GARBAGE_GONE)
		vdi_owner_graph_remove(&collector->graph, vd_bytes_of(node->uid));
	if (end == VDI_GARBAGE_RETRY)
		delay = next_delay(collector, node);
	else
		node->failures = 0;
	is_later &= node->kind && !node->again;
	if (node->again && node->kind) {
		enqueue(collector, node);
	} else {
		node->state = is_later ? VDI_OWNER_DELAYED : VDI_OWNER_IDLE;
		collector->counts.retried += is_later;
		if (is_later)
			vdi_control_loop_set_timer(&collector->loop, &node->timer,
						   vd_mono_add(vd_env_now(collector->env), delay));
		else
			vdi_owner_graph_release(&collector->graph, node);
	}
	vdi_lock_release(&collector->lock);
}

void vdi_garbage_dependents(struct vdi_garbage_collector *collector, struct vdi_owner_node *node,
			    bool *ret_any, bool *ret_blocking, bool *ret_waiting)
{
	*ret_any = *ret_blocking = *ret_waiting = false;
	vdi_lock_acquire(&collector->lock);
	for (struct vdi_owner_edge *edge = node->dependents; edge; edge = edge->next) {
		*ret_any = true;
		*ret_waiting |= edge->dependent->waits_foreground;
		*ret_blocking |= edge->blocks;
		if (edge->blocks && !edge->dependent->is_deleting)
			touched(collector, edge->dependent);
	}
	vdi_lock_release(&collector->lock);
}

/* ---- The actor ---- */

static void turn(void *arg)
{
	struct vdi_garbage_collector *collector = arg;
	struct vdi_garbage_target     target;
	struct vdi_owner_node	     *node;
	bool			      failed = false;

	/* First: what has happened since the set is another one is looked at with it. */
	if (atomic_exchange(&collector->kinds_due, false))
		look_at_kinds(collector);
	while (collector->working < VDI_GARBAGE_WORKS_MAX &&
	       (node = next_node(collector, &target, &failed)) != NULL) {
		collector->working++;
		if (!vdi_garbage_work_start(collector, node, &target)) {
			vdi_garbage_target_fini(&target);
			vdi_garbage_worked(collector, node, VDI_GARBAGE_RETRY, (vd_dur) { 0 });
			break;
		}
	}
	if (failed) /* the queue waits for memory */
		vdi_control_loop_set_timer(&collector->loop, &collector->look_again,
					   vd_mono_add(vd_env_now(collector->env), VD_SECONDS(1)));
}

static void expired(void *arg, struct vdi_timer *timer)
{
	struct vdi_garbage_collector *collector = arg;
	struct vdi_owner_node	     *node;

	if (timer == &collector->look_again) {
		look_at_kinds(collector);
		return;
	}
	node = VDI_CONTAINER_OF(timer, struct vdi_owner_node, timer);
	vdi_lock_acquire(&collector->lock);
	if (node->state == VDI_OWNER_DELAYED && node->kind) {
		enqueue(collector, node);
	} else if (node->state == VDI_OWNER_DELAYED) {
		node->state = VDI_OWNER_IDLE;
		vdi_owner_graph_release(&collector->graph, node);
	}
	vdi_lock_release(&collector->lock);
}

void vdi_garbage_collector_kinds_changed(struct vdi_garbage_collector *collector)
{
	atomic_store(&collector->kinds_due, true);
	vdi_control_loop_wake(&collector->loop);
}

void vdi_garbage_collector_counts(struct vdi_garbage_collector *collector,
				  struct vdi_garbage_counts    *ret_counts)
{
	vdi_lock_acquire(&collector->lock);
	*ret_counts = collector->counts;
	ret_counts->nodes = collector->graph.count;
	vdi_lock_release(&collector->lock);
}

/* ---- Life ---- */

static void close_watches(struct vdi_garbage_collector *collector)
{
	for (struct vdi_garbage_kind *kind = collector->kinds; kind; kind = kind->next)
		if (!kind->is_leaving) {
			struct vdi_wait closed;

			vdi_wait_init(&closed, collector->env);
			vdi_kind_watch_close(kind->watch, vdi_wait_signal_arg, &closed);
			vdi_wait_wait(&closed);
			vdi_wait_fini(&closed);
		}
}

struct vdi_garbage_collector *vdi_garbage_collector_free(struct vdi_garbage_collector *collector)
{
	struct vdi_control_return *back, *next;

	if (collector == NULL)
		return NULL;
	/* First the loop, so that no kind comes or goes any more; what the watches still say only goes into
	 * the graph. */
	vdi_control_loop_close(&collector->loop);
	close_watches(collector);
	for (back = collector->loop.first; back; back = next) {
		next = back->next;
		(void) vdi_garbage_return_free(back);
	}
	while (collector->works)
		vdi_garbage_work_free(collector->works);
	while (collector->kinds) {
		struct vdi_garbage_kind *kind = collector->kinds;

		collector->kinds = kind->next;
		free_kind(kind);
	}
	vdi_owner_graph_fini(&collector->graph);
	vdi_control_loop_fini(&collector->loop);
	(void) vdi_served_unref(collector->set);
	vdi_lock_fini(&collector->lock);
	vdi_free(collector);
	return NULL;
}

vd_status vdi_garbage_collector_new(const struct vd_env *env, struct vdi_served *(*served)(void *arg),
				    void (*gone)(void *arg, struct vd_bytes namespace_name), void *arg,
				    struct vdi_garbage_collector **ret_collector, struct vd_error *reterr)
{
	struct vdi_garbage_collector *collector = VDI_NEW(struct vdi_garbage_collector);
	vd_status		      status = VD_NOMEM;

	if (collector) {
		collector->env = env;
		collector->served = served;
		collector->gone = gone;
		collector->arg = arg;
		vdi_lock_init(&collector->lock, VDI_LOCK_OWNER_GRAPH);
		vdi_owner_graph_init(&collector->graph, vd_env_random(env), touched, collector);
		status = vdi_control_loop_init(&collector->loop, env, "garbage collector", turn, expired,
					       collector);
		if (status != VD_OK)
			(void) vdi_garbage_collector_free(collector);
	}
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	vdi_garbage_collector_kinds_changed(collector);
	*ret_collector = collector;
	return VD_OK;
}
