/* Unit tests of apiserver/controllers/owner_graph.c: nodes, edges, who is touched; against a naive model, and
 * with allocations that fail. */
#include "vdtest.h"

#include "owner_graph.h"

#define TOUCHED_MAX 64

struct world {
	struct vdi_owner_graph graph;
	char		       touched[TOUCHED_MAX][16];
	size_t		       touched_count;
};

static int kind_a, kind_b;

static void touched(void *arg, struct vdi_owner_node *node)
{
	struct world *world = arg;

	if (world->touched_count < TOUCHED_MAX)
		(void) snprintf(world->touched[world->touched_count++], sizeof world->touched[0], "%s",
				node->uid);
}

static void open_world(struct world *world)
{
	memset(world, 0, sizeof *world);
	vdi_owner_graph_init(&world->graph, 7, touched, world);
}

/* Sorted, each once, separated by blanks; then forgotten. */
static const char *touched_ones(struct world *world)
{
	static char text[TOUCHED_MAX * 16];

	qsort(world->touched, world->touched_count, sizeof world->touched[0],
	      (int (*)(const void *, const void *)) strcmp);
	text[0] = 0;
	for (size_t i = 0; i < world->touched_count; i++)
		if (i == 0 || strcmp(world->touched[i], world->touched[i - 1]) != 0)
			(void) snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s",
					*text ? " " : "", world->touched[i]);
	world->touched_count = 0;
	return text;
}

/* owners: "a b!": b blocks. flags: d deleting, f foreground, o orphan, w waits for its agent. */
static vd_status put_at(struct world *world, void *kind, uint64_t fill, const char *uid, const char *owners,
			const char *flags)
{
	struct vdi_owner_reference  references[8];
	struct vdi_owner_attributes attributes = { .kind = kind,
						   .fill = fill,
						   .namespace_name = vd_bytes_of("n"),
						   .name = vd_bytes_of(uid),
						   .uid = vd_bytes_of(uid),
						   .owners = references,
						   .is_deleting = strchr(flags, 'd') != NULL,
						   .waits_foreground = strchr(flags, 'f') != NULL,
						   .waits_orphan = strchr(flags, 'o') != NULL,
						   .waits_agent = strchr(flags, 'w') != NULL };

	while (*owners) {
		size_t size = strcspn(owners, " !");

		references[attributes.owner_count].uid = (struct vd_bytes) { owners, size };
		references[attributes.owner_count++].blocks = owners[size] == '!';
		owners += size;
		owners += strspn(owners, " !");
	}
	return vdi_owner_graph_put(&world->graph, &attributes);
}

static void put(struct world *world, const char *uid, const char *owners, const char *flags)
{
	assert_status(put_at(world, &kind_a, 1, uid, owners, flags), VD_OK);
}

static void remove_object(struct world *world, const char *uid)
{
	vdi_owner_graph_remove(&world->graph, vd_bytes_of(uid));
}

static struct vdi_owner_node *find(struct world *world, const char *uid)
{
	return vdi_owner_graph_find(&world->graph, vd_bytes_of(uid));
}

static void only_what_matters_has_a_node(void **state)
{
	struct world world;

	(void) state;
	open_world(&world);
	put(&world, "x", "", "");
	put(&world, "y", "", "d");
	assert_int_equal(world.graph.count, 0);
	put(&world, "a", "o", "");
	assert_int_equal(world.graph.count, 2);
	assert_null(find(&world, "o")->kind); /* nobody has seen it */
	assert_string_equal(touched_ones(&world), "a");
	put(&world, "o", "", "");
	assert_ptr_equal(find(&world, "o")->kind, &kind_a);
	put(&world, "a", "o", ""); /* as it was */
	assert_string_equal(touched_ones(&world), "");
	put(&world, "a", "", ""); /* it owns nothing and is owned by nobody */
	assert_null(find(&world, "a"));
	remove_object(&world, "o");
	remove_object(&world, "x");
	assert_int_equal(world.graph.count, 0);
	vdi_owner_graph_fini(&world.graph);
}

static void dependents_are_touched_when_an_owner_goes(void **state)
{
	struct world world;

	(void) state;
	open_world(&world);
	put(&world, "a", "o", "");
	put(&world, "b", "o p!", "");
	put(&world, "c", "a", "");
	(void) touched_ones(&world);
	remove_object(&world, "o");
	assert_string_equal(touched_ones(&world), "a b");
	assert_non_null(find(&world, "o")); /* they still name it */
	remove_object(&world, "a");
	assert_string_equal(touched_ones(&world), "c");
	remove_object(&world, "b");
	assert_null(find(&world, "o"));
	assert_null(find(&world, "p"));
	remove_object(&world, "c");
	assert_int_equal(world.graph.count, 0);
	vdi_owner_graph_fini(&world.graph);
}

static void who_waits_is_touched(void **state)
{
	struct world world;

	(void) state;
	open_world(&world);
	put(&world, "o", "", "df");
	assert_string_equal(touched_ones(&world), "o");
	put(&world, "a", "o!", "");
	put(&world, "b", "o!", "");
	assert_string_equal(touched_ones(&world), "a b");
	put(&world, "a", "o", ""); /* blocks no longer */
	assert_string_equal(touched_ones(&world), "a o");
	put(&world, "b", "o!", "d");
	assert_string_equal(touched_ones(&world), ""); /* on its way */
	remove_object(&world, "b");
	assert_string_equal(touched_ones(&world), "o");
	remove_object(&world, "o");
	assert_string_equal(touched_ones(&world), "a");
	put(&world, "q", "", "do");
	put(&world, "w", "", "dw");
	assert_string_equal(touched_ones(&world), "q w");
	vdi_owner_graph_fini(&world.graph);
}

static void what_a_fill_does_not_bring_has_gone(void **state)
{
	struct world world;

	(void) state;
	open_world(&world);
	put(&world, "o", "x", "");
	put(&world, "a", "o", "");
	put(&world, "b", "o", "");
	assert_status(put_at(&world, &kind_b, 1, "c", "a", ""), VD_OK);
	(void) touched_ones(&world);
	assert_status(put_at(&world, &kind_a, 2, "a", "o", ""), VD_OK);
	assert_status(put_at(&world, &kind_a, 2, "b", "o", ""), VD_OK);
	vdi_owner_graph_sweep(&world.graph, &kind_a, 2);
	/* o was not there: who names it is looked at. c is of another kind, and its owner is known. */
	assert_string_equal(touched_ones(&world), "a b");
	vdi_owner_graph_sweep(&world.graph, &kind_a, 0); /* the kind is served no longer */
	assert_string_equal(touched_ones(&world), "c");
	assert_int_equal(world.graph.count, 2); /* c, and a, which it names */
	vdi_owner_graph_sweep(&world.graph, &kind_b, 0);
	assert_int_equal(world.graph.count, 0);
	vdi_owner_graph_fini(&world.graph);
}

/* A node that is worked on stays until it is released. */
static void a_busy_node_stays(void **state)
{
	struct world	       world;
	struct vdi_owner_node *node;

	(void) state;
	open_world(&world);
	put(&world, "a", "o o", "");
	node = find(&world, "a");
	node->state = VDI_OWNER_RUNNING;
	remove_object(&world, "a");
	assert_ptr_equal(find(&world, "a"), node);
	assert_null(find(&world, "o"));
	node->state = VDI_OWNER_IDLE;
	vdi_owner_graph_release(&world.graph, node);
	assert_int_equal(world.graph.count, 0);
	vdi_owner_graph_fini(&world.graph);
}

enum { OBJECTS = 40 };

struct model {
	bool exists;
	int  owners[3];
	int  owner_count;
};

static void check_model(struct world *world, const struct model *model)
{
	for (int i = 0; i < OBJECTS; i++) {
		char		       uid[16];
		struct vdi_owner_node *node;
		size_t		       dependents = 0, edges = 0;

		(void) snprintf(uid, sizeof uid, "u%d", i);
		node = find(world, uid);
		for (int j = 0; j < OBJECTS; j++)
			for (int k = 0; k < model[j].owner_count && model[j].exists; k++)
				dependents += model[j].owners[k] == i;
		assert_int_equal(node != NULL,
				 dependents > 0 || (model[i].exists && model[i].owner_count > 0));
		for (struct vdi_owner_edge *edge = node ? node->dependents : NULL; edge; edge = edge->next) {
			assert_ptr_equal(edge->owner, node);
			edges++;
		}
		assert_int_equal(edges, dependents);
		if (node)
			assert_int_equal(node->owner_count, model[i].exists ? model[i].owner_count : 0);
	}
}

static void the_graph_is_as_a_naive_model(void **state)
{
	struct model model[OBJECTS] = { 0 };
	struct world world;
	unsigned     seed = 12345;

	(void) state;
	open_world(&world);
	for (int step = 0; step < 4000; step++) {
		int  i = rand_r(&seed) % OBJECTS;
		char uid[16], owners[64] = "";

		(void) snprintf(uid, sizeof uid, "u%d", i);
		world.touched_count = 0;
		if (rand_r(&seed) % 3 == 0) {
			remove_object(&world, uid);
			model[i] = (struct model) { .exists = false };
		} else {
			model[i].exists = true;
			model[i].owner_count = 0;
			for (int k = rand_r(&seed) % 4; k > 0; k--) {
				int owner = rand_r(&seed) % OBJECTS;

				if (owner == i)
					continue;
				model[i].owners[model[i].owner_count++] = owner;
				(void) snprintf(owners + strlen(owners), sizeof owners - strlen(owners),
						"u%d%s ", owner, rand_r(&seed) % 2 ? "!" : "");
			}
			put(&world, uid, owners, "");
		}
		if (step % 16 == 0)
			check_model(&world, model);
	}
	vdi_owner_graph_fini(&world.graph);
}

/* A deletion that was seen is a proof, one that was not is none; and uids do not come back, but what was
 * wrong about one is mended. */
static void a_deletion_that_was_seen_is_remembered(void **state)
{
	struct world world;

	(void) state;
	open_world(&world);
	put(&world, "d", "seen unseen", "");
	put(&world, "seen", "", "");
	put(&world, "unseen", "", "");
	(void) touched_ones(&world);
	vdi_owner_graph_delete(&world.graph, vd_bytes_of("seen"));
	vdi_owner_graph_delete(&world.graph, vd_bytes_of("nobody"));
	vdi_owner_graph_remove(&world.graph, vd_bytes_of("unseen"));
	assert_string_equal(touched_ones(&world), "d");
	assert_true(find(&world, "seen")->is_gone);
	assert_false(find(&world, "unseen")->is_gone);
	find(&world, "d")->state = VDI_OWNER_DELAYED;
	vdi_owner_graph_touch_delayed(&world.graph);
	assert_string_equal(touched_ones(&world), "d");
	find(&world, "d")->state = VDI_OWNER_IDLE;
	vdi_owner_graph_touch_delayed(&world.graph);
	assert_string_equal(touched_ones(&world), "");
	put(&world, "seen", "", "");
	assert_false(find(&world, "seen")->is_gone);
	vdi_owner_graph_fini(&world.graph);
}

static void every_failed_allocation_leaves_the_graph_as_it_was(void **state)
{
	(void) state;
	for (uint64_t nth = 1;; nth++) {
		int64_t	     live = vdi_alloc_live();
		struct world world;
		vd_status    status;
		size_t	     count;
		bool	     failed;

		open_world(&world);
		put(&world, "a", "o p", "");
		count = world.graph.count;
		vdi_alloc_fail_nth(nth, 1);
		status = put_at(&world, &kind_a, 1, "a", "q! r o", "d");
		if (status == VD_OK)
			status = put_at(&world, &kind_a, 1, "q", "s", "");
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		if (failed && find(&world, "r") == NULL) {
			assert_int_equal(world.graph.count, count);
			assert_non_null(find(&world, "p"));
			assert_int_equal(find(&world, "a")->owner_count, 2);
			assert_false(find(&world, "a")->is_deleting);
		}
		vdi_owner_graph_fini(&world.graph);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

/* Nobody is lost when the graph gets more buckets. */
static void thousands_of_nodes_are_found(void **state)
{
	struct world world;
	char	     uid[16];

	open_world(&world);
	for (unsigned i = 0; i < 3000; i++) {
		(void) snprintf(uid, sizeof uid, "u%u", i);
		put(&world, uid, "root", "");
		if (i % 97 && i != 2999)
			continue;
		for (unsigned k = 0; k <= i; k++) {
			(void) snprintf(uid, sizeof uid, "u%u", k);
			assert_non_null(vdi_owner_graph_find(&world.graph, vd_bytes_of(uid)));
		}
	}
	assert_int_equal(world.graph.count, 3001);
	for (unsigned i = 0; i < 3000; i++) {
		(void) snprintf(uid, sizeof uid, "u%u", i);
		vdi_owner_graph_remove(&world.graph, vd_bytes_of(uid));
		assert_true(vdi_owner_graph_find(&world.graph, vd_bytes_of(uid)) == NULL);
	}
	assert_int_equal(world.graph.count, 0);
	vdi_owner_graph_fini(&world.graph);
}

/* A change of any flag touches the node while it waits for something. */
static void each_flag_is_a_change(void **state)
{
	static const struct {
		const char *before, *after, *touched;
	} rows[] = {
		{ "d", "d", "" },     { "d", "df", "x" },  { "d", "do", "x" },	 { "d", "dw", "x" },
		{ "df", "df", "" },   { "do", "do", "" },  { "dw", "dw", "" },	 { "df", "d", "" },
		{ "do", "d", "" },    { "dw", "d", "" },   { "d", "", "x" },	 { "", "d", "" },
		{ "df", "do", "x" },  { "do", "dw", "x" }, { "dfo", "df", "x" }, { "dfw", "df", "x" },
		{ "dow", "do", "x" }, { "f", "df", "x" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct world world;

		open_world(&world);
		put(&world, "x", "root", rows[i].before);
		(void) touched_ones(&world);
		put(&world, "x", "root", rows[i].after);
		assert_string_equal(touched_ones(&world), rows[i].touched);
		assert_int_equal(find(&world, "x")->is_deleting, strchr(rows[i].after, 'd') != NULL);
		assert_int_equal(find(&world, "x")->waits_foreground, strchr(rows[i].after, 'f') != NULL);
		assert_int_equal(find(&world, "x")->waits_orphan, strchr(rows[i].after, 'o') != NULL);
		assert_int_equal(find(&world, "x")->waits_agent, strchr(rows[i].after, 'w') != NULL);
		remove_object(&world, "x");
		assert_int_equal(world.graph.count, 0);
		vdi_owner_graph_fini(&world.graph);
	}
}

/* Without memory for more buckets, the chains become longer. */
static void a_graph_that_cannot_grow_still_takes_nodes(void **state)
{
	struct world world;
	size_t	     buckets = 0;
	char	     uid[16];

	open_world(&world);
	for (unsigned i = 0; i < 3000; i++) {
		(void) snprintf(uid, sizeof uid, "u%u", i);
		if (buckets && world.graph.count == buckets)
			(void) vdi_alloc_fail_nth(1, 1); /* the buckets come first */
		put(&world, uid, "", "df");
		(void) vdi_alloc_fail_nth(0, 0);
		if (buckets == 0)
			buckets = world.graph.bucket_count;
		if (i == buckets + 1)
			break;
		assert_int_equal(world.graph.bucket_count, buckets);
	}
	assert_true(world.graph.bucket_count > buckets); /* with memory again */
	for (unsigned i = 0; i < world.graph.count; i++) {
		(void) snprintf(uid, sizeof uid, "u%u", i);
		assert_non_null(find(&world, uid));
	}
	vdi_owner_graph_sweep(&world.graph, &kind_a, 0);
	assert_int_equal(world.graph.count, 0);
	vdi_owner_graph_fini(&world.graph);
}

/* The node has the place of the object that was seen first under its uid. */
static void a_node_has_the_place_of_its_object(void **state)
{
	struct world		    world;
	struct vdi_owner_attributes attributes = {
		.kind = &kind_a, .name = vd_bytes_of("one"), .uid = vd_bytes_of("x"), .waits_orphan = true
	};

	open_world(&world);
	assert_status(vdi_owner_graph_put(&world.graph, &attributes), VD_OK);
	assert_string_equal(find(&world, "x")->namespace_name, "");
	assert_string_equal(find(&world, "x")->name, "one");
	attributes.namespace_name = vd_bytes_of("space");
	attributes.name = vd_bytes_of("two");
	assert_status(vdi_owner_graph_put(&world.graph, &attributes), VD_OK);
	assert_string_equal(find(&world, "x")->name, "one");
	put(&world, "y", "x", ""); /* keeps the node */
	remove_object(&world, "x");
	assert_null(find(&world, "x")->kind);
	assert_false(find(&world, "x")->is_gone);
	assert_status(vdi_owner_graph_put(&world.graph, &attributes), VD_OK);
	assert_string_equal(find(&world, "x")->namespace_name, "space");
	assert_string_equal(find(&world, "x")->name, "two");
	remove_object(&world, "y");
	remove_object(&world, "x");
	assert_int_equal(world.graph.count, 0);
	vdi_owner_graph_fini(&world.graph);
}

static void without_memory_for_buckets_there_is_no_node(void **state)
{
	struct world world;

	open_world(&world);
	(void) vdi_alloc_fail_nth(1, 1);
	assert_status(put_at(&world, &kind_a, 1, "x", "", "df"), VD_NOMEM);
	(void) vdi_alloc_fail_nth(0, 0);
	assert_int_equal(world.graph.count, 0);
	assert_null(find(&world, "x"));
	/* An object that has no node needs no memory. */
	(void) vdi_alloc_fail_nth(1, 1);
	assert_status(put_at(&world, &kind_a, 1, "x", "", "d"), VD_OK);
	(void) vdi_alloc_fail_nth(0, 0);
	put(&world, "x", "", "df");
	(void) vdi_alloc_fail_nth(1, 1);
	assert_status(put_at(&world, &kind_a, 1, "y", "", "d"), VD_OK);
	(void) vdi_alloc_fail_nth(0, 0);
	remove_object(&world, "x");
	vdi_owner_graph_fini(&world.graph);
}

static void touched_by_a_deletion(void *arg, struct vdi_owner_node *node)
{
	int *count = arg;

	if (*count >= 0) {
		assert_true(node->owners[0].owner->is_gone);
		++*count;
	}
}

/* A dependent that is touched by the deletion of its owner already sees that the owner is gone. */
static void an_owner_is_gone_before_its_dependents_are_touched(void **state)
{
	static const char	  *uids[] = { "x", "y" };
	struct vdi_owner_reference owner = { .uid = vd_bytes_of("root") };
	struct vdi_owner_graph	   graph;
	int			   count = -1;

	vdi_owner_graph_init(&graph, 7, touched_by_a_deletion, &count);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(uids); i++) {
		struct vdi_owner_attributes attributes = { .kind = &kind_a,
							   .name = vd_bytes_of("n"),
							   .uid = vd_bytes_of(uids[i]),
							   .owners = &owner,
							   .owner_count = 1 };

		assert_status(vdi_owner_graph_put(&graph, &attributes), VD_OK);
	}
	count = 0;
	vdi_owner_graph_delete(&graph, vd_bytes_of("root"));
	assert_int_equal(count, 2);
	count = -1;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(uids); i++)
		vdi_owner_graph_remove(&graph, vd_bytes_of(uids[i]));
	assert_int_equal(graph.count, 0);
	vdi_owner_graph_fini(&graph);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_memory_for_buckets_there_is_no_node),
		cmocka_unit_test(an_owner_is_gone_before_its_dependents_are_touched),
		cmocka_unit_test(each_flag_is_a_change),
		cmocka_unit_test(a_graph_that_cannot_grow_still_takes_nodes),
		cmocka_unit_test(a_node_has_the_place_of_its_object),
		cmocka_unit_test(thousands_of_nodes_are_found),
		cmocka_unit_test(only_what_matters_has_a_node),
		cmocka_unit_test(dependents_are_touched_when_an_owner_goes),
		cmocka_unit_test(who_waits_is_touched),
		cmocka_unit_test(what_a_fill_does_not_bring_has_gone),
		cmocka_unit_test(a_busy_node_stays),
		cmocka_unit_test(the_graph_is_as_a_naive_model),
		cmocka_unit_test(a_deletion_that_was_seen_is_remembered),
		cmocka_unit_test(every_failed_allocation_leaves_the_graph_as_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
