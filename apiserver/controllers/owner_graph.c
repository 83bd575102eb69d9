/* Every change allocates all it needs first, so that it cannot fail half-way. */
#include "owner_graph.h"

#include "hash.h"

#define BUCKETS_FIRST 256

void vdi_owner_graph_init(struct vdi_owner_graph *graph, uint64_t			 seed,
			  void (*touched)(void *arg, struct vdi_owner_node *node), void *arg)
{
	*graph = (struct vdi_owner_graph) { .seed = seed, .touched = touched, .arg = arg };
}

static void free_node(struct vdi_owner_node *node)
{
	vdi_free(node->namespace_name);
	vdi_free(node->owners);
	vdi_free(node);
}

void vdi_owner_graph_fini(struct vdi_owner_graph *graph)
{
	for (size_t i = 0; i < graph->bucket_count; i++)
		while (graph->buckets[i]) {
			struct vdi_owner_node *node = graph->buckets[i];

			graph->buckets[i] = node->next;
			free_node(node);
		}
	vdi_free(graph->buckets);
	*graph = (struct vdi_owner_graph) { .buckets = NULL };
}

/* ---- Nodes by uid ---- */

static uint64_t hash_of(const struct vdi_owner_graph *graph, struct vd_bytes uid)
{
	return vdi_hash_bytes(uid, graph->seed);
}

struct vdi_owner_node *vdi_owner_graph_find(const struct vdi_owner_graph *graph, struct vd_bytes uid)
{
	uint64_t hash = hash_of(graph, uid);

	if (graph->bucket_count == 0)
		return NULL;
	for (struct vdi_owner_node *node = graph->buckets[hash & (graph->bucket_count - 1)]; node;
	     node = node->next)
		if (node->hash == hash && vd_bytes_equal(vd_bytes_of(node->uid), uid))
			return node;
	return NULL;
}

/* Grows the table. Without memory the chains become longer; false if there is no table at all. */
static bool make_room(struct vdi_owner_graph *graph)
{
	size_t			count = graph->bucket_count ? graph->bucket_count * 2 : BUCKETS_FIRST;
	struct vdi_owner_node **buckets;

	if (graph->count < graph->bucket_count)
		return true;
	buckets = vdi_calloc(count, sizeof *buckets);
	if (buckets == NULL)
		return graph->bucket_count > 0;
	for (size_t i = 0; i < graph->bucket_count; i++)
		while (graph->buckets[i]) {
			struct vdi_owner_node *node = graph->buckets[i];

			graph->buckets[i] = node->next;
			node->next = buckets[node->hash & (count - 1)];
			buckets[node->hash & (count - 1)] = node;
		}
	vdi_free(graph->buckets);
	graph->buckets = buckets;
	graph->bucket_count = count;
	return true;
}

static struct vdi_owner_node *get_node(struct vdi_owner_graph *graph, struct vd_bytes uid)
{
	struct vdi_owner_node *node = vdi_owner_graph_find(graph, uid), **bucket;

	if (node || !make_room(graph))
		return node;
	node = vdi_calloc(1, sizeof *node + uid.size + 1);
	if (node == NULL)
		return NULL;
	memcpy(node->uid, uid.data, uid.size);
	node->hash = hash_of(graph, uid);
	bucket = &graph->buckets[node->hash & (graph->bucket_count - 1)];
	node->next = *bucket;
	*bucket = node;
	graph->count++;
	return node;
}

void vdi_owner_graph_release(struct vdi_owner_graph *graph, struct vdi_owner_node *node)
{
	struct vdi_owner_node **place = &graph->buckets[node->hash & (graph->bucket_count - 1)];

	if (node->state != VDI_OWNER_IDLE || node->dependents || node->owner_count ||
	    node->waits_foreground || node->waits_orphan || node->waits_agent)
		return;
	while (*place != node)
		place = &(*place)->next;
	*place = node->next;
	graph->count--;
	free_node(node);
}

/* ---- Edges ---- */

static void unlink_edges(struct vdi_owner_edge *edges, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		*edges[i].link = edges[i].next;
		if (edges[i].next)
			edges[i].next->link = edges[i].link;
	}
}

static void link_edges(struct vdi_owner_edge *edges, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct vdi_owner_node *owner = edges[i].owner;

		edges[i].next = owner->dependents;
		edges[i].link = &owner->dependents;
		if (owner->dependents)
			owner->dependents->link = &edges[i].next;
		owner->dependents = &edges[i];
	}
}

static bool same_owners(const struct vdi_owner_node *node, const struct vdi_owner_attributes *attributes)
{
	if (node->owner_count != attributes->owner_count)
		return false;
	for (size_t i = 0; i < node->owner_count; i++)
		if (node->owners[i].blocks != attributes->owners[i].blocks ||
		    !vd_bytes_equal(vd_bytes_of(node->owners[i].owner->uid), attributes->owners[i].uid))
			return false;
	return true;
}

/* Frees the edges that a node no longer uses; owners that wait for their dependents are touched. */
static void drop_edges(struct vdi_owner_graph *graph, struct vdi_owner_edge *edges, size_t count)
{
	unlink_edges(edges, count);
	for (size_t i = 0; i < count; i++) {
		if (edges[i].owner->waits_foreground)
			graph->touched(graph->arg, edges[i].owner);
		/* The same owner may be named twice: release it at its last edge. */
		for (size_t j = i + 1; j < count && edges[i].owner; j++)
			if (edges[j].owner == edges[i].owner)
				edges[i].owner = NULL;
		if (edges[i].owner)
			vdi_owner_graph_release(graph, edges[i].owner);
	}
	vdi_free(edges);
}

/* Returns NULL and sets *ret_failed without memory; the graph is then unchanged. */
static struct vdi_owner_edge *make_edges(struct vdi_owner_graph *graph, struct vdi_owner_node *node,
					 const struct vdi_owner_attributes *attributes, bool *ret_failed)
{
	struct vdi_owner_edge *edges =
		attributes->owner_count ? vdi_calloc(attributes->owner_count, sizeof *edges) : NULL;
	size_t count = 0;

	*ret_failed = attributes->owner_count && edges == NULL;
	for (; edges && count < attributes->owner_count; count++) {
		edges[count].owner = get_node(graph, attributes->owners[count].uid);
		edges[count].dependent = node;
		edges[count].blocks = attributes->owners[count].blocks;
		if (edges[count].owner == NULL)
			break;
	}
	if (edges == NULL || count == attributes->owner_count)
		return edges;
	*ret_failed = true;
	link_edges(edges, count); /* so that drop_edges can remove them */
	drop_edges(graph, edges, count);
	return NULL;
}

/* ---- Changes ---- */

static char *make_place(const struct vdi_owner_attributes *attributes)
{
	char *place = vdi_alloc(attributes->namespace_name.size + attributes->name.size + 2);

	if (place == NULL)
		return NULL;
	if (attributes->namespace_name.size)
		memcpy(place, attributes->namespace_name.data, attributes->namespace_name.size);
	place[attributes->namespace_name.size] = 0;
	memcpy(place + attributes->namespace_name.size + 1, attributes->name.data, attributes->name.size);
	place[attributes->namespace_name.size + 1 + attributes->name.size] = 0;
	return place;
}

static vd_status take_place(struct vdi_owner_node *node, const struct vdi_owner_attributes *attributes)
{
	char *place;

	if (node->kind) /* the same uid is the same object */
		return VD_OK;
	place = make_place(attributes);
	if (place == NULL)
		return VD_NOMEM;
	vdi_free(node->namespace_name);
	node->namespace_name = place;
	node->name = place + attributes->namespace_name.size + 1;
	return VD_OK;
}

static bool set_flags(struct vdi_owner_node *node, const struct vdi_owner_attributes *attributes)
{
	bool changed = node->is_deleting != attributes->is_deleting ||
		       node->waits_foreground != attributes->waits_foreground ||
		       node->waits_orphan != attributes->waits_orphan ||
		       node->waits_agent != attributes->waits_agent;

	node->is_deleting = attributes->is_deleting;
	node->waits_foreground = attributes->waits_foreground;
	node->waits_orphan = attributes->waits_orphan;
	node->waits_agent = attributes->waits_agent;
	return changed;
}

static vd_status put_node(struct vdi_owner_graph *graph, struct vdi_owner_node *node,
			  const struct vdi_owner_attributes *attributes)
{
	bool is_changed = node->kind == NULL, same = same_owners(node, attributes), failed = false;
	struct vdi_owner_edge *edges = same ? NULL : make_edges(graph, node, attributes, &failed),
			      *old = node->owners;
	size_t old_count = node->owner_count;

	if (failed)
		return VD_NOMEM;
	if (take_place(node, attributes) != VD_OK) {
		if (edges) {
			link_edges(edges, attributes->owner_count);
			drop_edges(graph, edges, attributes->owner_count);
		}
		return VD_NOMEM;
	}
	node->kind = attributes->kind;
	node->is_gone = false;
	node->fill = attributes->fill;
	is_changed |= set_flags(node, attributes);
	if (!same) {
		node->owners = edges;
		node->owner_count = attributes->owner_count;
		link_edges(edges, attributes->owner_count);
		drop_edges(graph, old, old_count);
	}
	if ((is_changed || !same) && (node->waits_foreground || node->waits_orphan || node->waits_agent ||
				      (node->owner_count && !node->is_deleting)))
		graph->touched(graph->arg, node);
	return VD_OK;
}

vd_status vdi_owner_graph_put(struct vdi_owner_graph *graph, const struct vdi_owner_attributes *attributes)
{
	struct vdi_owner_node *node = vdi_owner_graph_find(graph, attributes->uid);
	vd_status	       status;

	if (node == NULL) {
		if (attributes->owner_count == 0 && !attributes->waits_foreground &&
		    !attributes->waits_orphan && !attributes->waits_agent)
			return VD_OK;
		node = get_node(graph, attributes->uid);
		if (node == NULL)
			return VD_NOMEM;
	}
	status = put_node(graph, node, attributes);
	vdi_owner_graph_release(graph, node);
	return status;
}

static void remove_node(struct vdi_owner_graph *graph, struct vdi_owner_node *node)
{
	struct vdi_owner_edge *edges = node->owners;
	size_t		       count = node->owner_count;

	node->kind = NULL;
	node->is_deleting = node->waits_foreground = node->waits_orphan = node->waits_agent = false;
	node->owners = NULL;
	node->owner_count = 0;
	drop_edges(graph, edges, count);
	for (struct vdi_owner_edge *edge = node->dependents; edge; edge = edge->next)
		graph->touched(graph->arg, edge->dependent);
	vdi_owner_graph_release(graph, node);
}

void vdi_owner_graph_remove(struct vdi_owner_graph *graph, struct vd_bytes uid)
{
	struct vdi_owner_node *node = vdi_owner_graph_find(graph, uid);

	if (node)
		remove_node(graph, node);
}

void vdi_owner_graph_delete(struct vdi_owner_graph *graph, struct vd_bytes uid)
{
	struct vdi_owner_node *node = vdi_owner_graph_find(graph, uid);

	if (node == NULL)
		return;
	node->is_gone = true;
	remove_node(graph, node);
}

void vdi_owner_graph_touch_delayed(struct vdi_owner_graph *graph)
{
	for (size_t i = 0; i < graph->bucket_count; i++)
		for (struct vdi_owner_node *node = graph->buckets[i]; node; node = node->next)
			if (node->state == VDI_OWNER_DELAYED || node->state == VDI_OWNER_RUNNING)
				graph->touched(graph->arg, node);
}

/* Returns a node of the bucket to remove. Removing one may free nodes in any bucket, so the search starts
 * anew after each. */
static struct vdi_owner_node *find_stale(const struct vdi_owner_graph *graph, size_t bucket, const void *kind,
					 uint64_t fill)
{
	for (struct vdi_owner_node *node = graph->buckets[bucket]; node; node = node->next)
		if (node->kind == kind && (fill == 0 || node->fill != fill))
			return node;
	return NULL;
}

void vdi_owner_graph_sweep(struct vdi_owner_graph *graph, void *kind, uint64_t fill)
{
	struct vdi_owner_node *node;

	for (size_t i = 0; i < graph->bucket_count; i++)
		while ((node = find_stale(graph, i, kind, fill)) != NULL)
			remove_node(graph, node);
	for (size_t i = 0; i < graph->bucket_count; i++)
		for (node = graph->buckets[i]; node; node = node->next)
			for (struct vdi_owner_edge *edge = node->kind ? NULL : node->dependents; edge;
			     edge = edge->next)
				graph->touched(graph->arg, edge->dependent);
}
