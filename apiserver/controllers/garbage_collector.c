/* A watch of each kind adds its objects to a graph of owners. The graph reports which objects may need work;
 * they are queued, and a few at a time are checked.
 *
 *   kind watches -> owner graph --touched--> queue --actor--> check (garbage_work.c) --> caches
 *   (own threads, under the graph's lock)      ^                  |
 *                                              `------------------' touched meanwhile, or back-off
 *
 * The watch of one kind sees changes in order, but watches of different kinds are not synchronised: a
 * dependent may become known after its owner was deleted. Therefore every new node with owners is checked
 * once, checks read the objects, and an owner that waits for its dependents is released only after a
 * search of all kinds in consistent lists.
 */
#include "garbage_collector.h"

#include "env.h"
#include "garbage_state.h"
#include "kind_cache.h"
#include "object.h"

#define RECHECK_KINDS_EVERY VD_SECONDS(5)
#define DELAY_FIRST_NS ((int64_t) 50000000)
#define DELAY_MAX_NS (VD_SECONDS(60).ns)
#define OWNERS_MAX 1024 /* owners handled of one object at a time */

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
		enqueue(collector, node); /* a delayed node: its timer is removed when the node is dequeued */
}

/* ---- Events of the watches ---- */

static bool holds(struct vd_bytes text, const char *part)
{
	return memmem(text.data, text.size, part, strlen(part)) != NULL;
}

struct owner_parse {
	struct vdi_owner_attributes attributes;
	struct vdi_owner_reference  owners[OWNERS_MAX];
};

static void take_owners(struct owner_parse *parsed, struct vdi_tree *tree, const struct vdi_node *list)
{
	for (const struct vdi_node *item = vdi_tree_is(list, VDI_NODE_ARRAY) ? list->first : NULL;
	     item && parsed->attributes.owner_count < OWNERS_MAX; item = item->next) {
		struct vd_bytes uid = vdi_tree_string_of(vdi_tree_get(tree, item, vd_bytes_of("uid")));

		if (uid.size == 0 || memchr(uid.data, 0, uid.size) ||
		    vd_bytes_equal(uid, parsed->attributes.uid))
			continue;
		parsed->owners[parsed->attributes.owner_count++] = (struct vdi_owner_reference) {
			.uid = uid,
			.blocks = vdi_tree_is(vdi_tree_get(tree, item, vd_bytes_of("blockOwnerDeletion")),
					      VDI_NODE_TRUE)
		};
	}
	parsed->attributes.owners = parsed->owners;
}

/* Reads the attributes that the graph needs. VD_NOMEM. Metadata that cannot be parsed has none. */
static vd_status read_attributes(struct owner_parse *parsed, const struct vdi_garbage_kind *kind,
				 struct vd_bytes metadata, struct vdi_tree *tree)
{
	struct vdi_node *root, *finalizers;
	vd_status	 status;

	if (!holds(metadata, "\"ownerReferences\"") && !holds(metadata, "\"deletionTimestamp\""))
		return VD_OK;
	status = vdi_tree_parse(tree, metadata, &root, NULL);
	if (status != VD_OK)
		return status == VD_NOMEM ? VD_NOMEM : VD_OK;
	take_owners(parsed, tree, vdi_tree_get(tree, root, vd_bytes_of("ownerReferences")));
	parsed->attributes.is_deleting =
		vdi_tree_string_of(vdi_tree_get(tree, root, vd_bytes_of("deletionTimestamp"))).size > 0;
	if (!parsed->attributes.is_deleting)
		return VD_OK;
	finalizers = vdi_tree_get(tree, root, vd_bytes_of("finalizers"));
	parsed->attributes.waits_foreground =
		vdi_deletion_has(finalizers, vd_bytes_of(VDI_FINALIZER_FOREGROUND));
	parsed->attributes.waits_orphan = vdi_deletion_has(finalizers, vd_bytes_of(VDI_FINALIZER_ORPHAN));
	parsed->attributes.waits_agent =
		kind->is_pods &&
		vdi_tree_int_of(vdi_tree_get(tree, root, vd_bytes_of("deletionGracePeriodSeconds")), 0) > 0;
	return VD_OK;
}

static vd_status put(struct vdi_garbage_kind *kind, struct vd_object *object, uint64_t fill)
{
	struct vdi_garbage_collector *collector = kind->collector;
	struct vdi_tree		      tree = VDI_TREE_INIT;
	struct owner_parse	      parsed;
	vd_status		      status;

	parsed.attributes = (struct vdi_owner_attributes) { .kind = kind,
							    .fill = fill,
							    .namespace_name = vd_object_namespace(object),
							    .name = vd_object_name(object),
							    .uid = vdi_object_uid(object) };
	status = read_attributes(&parsed, kind, vdi_object_metadata(object), &tree);
	if (status == VD_OK) {
		vdi_lock_acquire(&collector->lock);
		status = vdi_owner_graph_put(&collector->graph, &parsed.attributes);
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

	/* Sweep also after the first fill: a cache that lagged may have shown owners that this fill lacks,
	 * and no event reports their deletion. */
	vdi_lock_acquire(&collector->lock);
	vdi_owner_graph_sweep(&collector->graph, kind, fill);
	vdi_lock_release(&collector->lock);
	vdi_control_loop_wake(&collector->loop);
}

/* ---- Kinds ---- */

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

/* Removes a kind that is no longer served; its watch delivers the last deletions before it ends. */
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
	/* Events are ignored, as upstream: nothing has an event as owner, and events expire by themselves. */
	return resource->cache && !(strcmp(resource->plural, "events") == 0 &&
				    (*resource->group == 0 || strcmp(resource->group, "events.k8s.io") == 0));
}

static void open_kind(struct vdi_garbage_collector *collector, struct vdi_resource *resource)
{
	struct vdi_garbage_kind	     *kind = VDI_NEW(struct vdi_garbage_kind);
	struct vdi_kind_watch_handler handler = { changed, filled, kind };

	if (kind == NULL)
		return; /* the next timer or set of kinds tries again */
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
	/* Nodes whose owner's kind was unknown may be waiting for this kind. */
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

static void check_kinds(struct vdi_garbage_collector *collector)
{
	struct vdi_resource_set *set = collector->get_resource_set(collector->arg);

	vdi_control_loop_set_timer(&collector->loop, &collector->recheck_kinds,
				   vd_mono_add(vd_env_now(collector->env), RECHECK_KINDS_EVERY));
	if (set == NULL)
		return;
	(void) vdi_resource_set_unref(collector->set);
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

/* ---- Checks ---- */

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

/* Dequeues the next node whose object still exists; NULL: none. */
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

/* ---- Actor ---- */

static void turn(void *arg)
{
	struct vdi_garbage_collector *collector = arg;
	struct vdi_garbage_target     target;
	struct vdi_owner_node	     *node;
	bool			      failed = false;

	/* Kinds come first, so that nodes queued since the change are checked with the new set. */
	if (atomic_exchange(&collector->kinds_due, false))
		check_kinds(collector);
	while (collector->working < VDI_GARBAGE_WORKS_MAX &&
	       (node = next_node(collector, &target, &failed)) != NULL) {
		collector->working++;
		if (!vdi_garbage_work_start(collector, node, &target)) {
			vdi_garbage_target_fini(&target);
			vdi_garbage_worked(collector, node, VDI_GARBAGE_RETRY, (vd_dur) { 0 });
			break;
		}
	}
	if (failed) /* the node stays queued; retry when there may be memory */
		vdi_control_loop_set_timer(&collector->loop, &collector->recheck_kinds,
					   vd_mono_add(vd_env_now(collector->env), VD_SECONDS(1)));
}

static void expired(void *arg, struct vdi_timer *timer)
{
	struct vdi_garbage_collector *collector = arg;
	struct vdi_owner_node	     *node;

	if (timer == &collector->recheck_kinds) {
		check_kinds(collector);
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

/* ---- Constructor and end ---- */

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
	/* Close the loop before the watches, so that no kind is added or removed any more; late events only
	 * change the graph. */
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
	(void) vdi_resource_set_unref(collector->set);
	vdi_lock_fini(&collector->lock);
	vdi_free(collector);
	return NULL;
}

vd_status vdi_garbage_collector_new(const struct vd_env *env,
				    struct vdi_resource_set *(*get_resource_set)(void *arg),
				    void (*gone)(void *arg, struct vd_bytes namespace_name), void *arg,
				    struct vdi_garbage_collector **ret_collector, struct vd_error *reterr)
{
	struct vdi_garbage_collector *collector = VDI_NEW(struct vdi_garbage_collector);
	vd_status		      status = VD_NOMEM;

	if (collector) {
		collector->env = env;
		collector->get_resource_set = get_resource_set;
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
