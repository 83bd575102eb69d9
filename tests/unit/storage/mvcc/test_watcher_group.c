/* Property test of storage/mvcc/watcher_group.c: whatever joined and left, exactly those groups are found
 * whose range holds the key and whose filters let the event pass, each once; and the tree's order, priorities
 * and largest ends are what look-ups rely on. */
#include "vdtest.h"

#include "rand.h"
#include "watchable.h"
#include "watcher_group.h"

#define MEMBERS 120
#define KEYS 12

struct member {
	struct vdi_watcher_group *group; /* NULL: not in */
	struct vdi_watch	  watch; /* parked at it, when waits */
	bool			  waits;
	struct vdi_key_range	  range;
	bool			  no_put, no_delete;
	char			  from[3], to[3];
};

static struct member members[MEMBERS];
static unsigned	     visits;

static void key_at(char text[3], unsigned number)
{
	(void) snprintf(text, 3, "%c%.*s", 'a' + (int) (number / 2), (int) (number % 2), "m");
}

static void mark(struct vdi_watcher_group *group, void *arg)
{
	(void) arg;
	assert_false(LIST_EMPTY(&group->parked));
	for (size_t i = 0; i < MEMBERS; i++)
		if (members[i].group == group && members[i].waits) {
			visits++;
			return;
		}
	fail_msg("a group that nobody waits in");
}

static bool holds(const struct member *member, struct vd_bytes key)
{
	if (member->range.single)
		return vd_bytes_equal(member->range.from, key);
	return vd_bytes_compare(member->range.from, key) <= 0 &&
	       (member->range.unbounded || vd_bytes_compare(key, member->range.to) < 0);
}

static bool same(const struct member *a, const struct member *b)
{
	return a->range.single == b->range.single && a->range.unbounded == b->range.unbounded &&
	       vd_bytes_equal(a->range.from, b->range.from) &&
	       (a->range.single || a->range.unbounded || vd_bytes_equal(a->range.to, b->range.to)) &&
	       a->no_put == b->no_put && a->no_delete == b->no_delete;
}

/* Groups that should be found: one for each set of equal members of which one waits. */
static unsigned expected(struct vd_bytes key, bool is_delete)
{
	unsigned count = 0;

	for (size_t i = 0; i < MEMBERS; i++) {
		bool is_first = members[i].group && members[i].waits && holds(&members[i], key) &&
				!(is_delete ? members[i].no_delete : members[i].no_put);

		for (size_t j = 0; is_first && j < i; j++)
			is_first = !(members[j].group && members[j].waits && same(&members[i], &members[j]));
		count += is_first;
	}
	return count;
}

static int compare_to(const struct vdi_key_range *a, const struct vdi_key_range *b)
{
	return a->unbounded || b->unbounded ? (int) a->unbounded - (int) b->unbounded :
					      vd_bytes_compare(a->to, b->to);
}

/* How many nodes; each with the largest end below it, and of a priority not below its children's. */
static size_t check_tree(const struct vdi_watcher_group *node)
{
	const struct vdi_watcher_group *children[2];
	const struct vdi_key_range     *largest;
	size_t				count = 1;

	if (node == NULL)
		return 0;
	children[0] = node->left;
	children[1] = node->right;
	largest = &node->range;
	for (int i = 0; i < 2; i++) {
		if (children[i] == NULL)
			continue;
		count += check_tree(children[i]);
		assert_true(children[i]->hash <= node->hash);
		if (compare_to(&children[i]->last->range, largest) > 0)
			largest = &children[i]->last->range;
	}
	assert_int_equal(compare_to(&node->last->range, largest), 0);
	return count;
}

static void change(struct vdi_watcher_index *index, struct vdi_rand *rand, struct member *member)
{
	unsigned from = (unsigned) vdi_rand_below(rand, KEYS),
		 to = from + 1 + (unsigned) vdi_rand_below(rand, KEYS - from);

	if (member->group) {
		if (member->waits)
			LIST_REMOVE(&member->watch, parked_node);
		vdi_watcher_index_leave(index, member->group);
		member->group = NULL;
		return;
	}
	key_at(member->from, from);
	key_at(member->to, to);
	member->range = (struct vdi_key_range) { .from = vd_bytes_of(member->from) };
	if (vdi_rand_below(rand, 3) == 0)
		member->range.single = true;
	else if (vdi_rand_below(rand, 4) == 0)
		member->range.unbounded = true;
	else
		member->range.to = vd_bytes_of(member->to);
	member->no_put = vdi_rand_below(rand, 4) == 0;
	member->no_delete = !member->no_put && vdi_rand_below(rand, 4) == 0;
	member->waits = vdi_rand_below(rand, 4) > 0;
	assert_status(vdi_watcher_index_join(index, &member->range, member->no_put, member->no_delete,
					     &member->group),
		      VD_OK);
	for (size_t i = 0; i < MEMBERS; i++) /* the same range and filters: the same group */
		if (members[i].group && &members[i] != member)
			assert_int_equal(members[i].group == member->group, same(&members[i], member));
	if (member->waits)
		LIST_INSERT_HEAD(&member->group->parked, &member->watch, parked_node);
}

static void e327_exactly_those_that_hold_the_key(void **state)
{
	struct vdi_watcher_index index = { 0 };
	struct vdi_rand		 rand;
	int64_t			 live = vdi_alloc_live();
	char			 text[3];

	(void) state;
	memset(members, 0, sizeof members);
	vdi_rand_init(&rand, 1);
	for (unsigned turn = 0; turn < 3000; turn++) {
		change(&index, &rand, &members[vdi_rand_below(&rand, MEMBERS)]);
		assert_int_equal(check_tree(index.root), index.range_count);
		for (unsigned number = turn % 5; number < KEYS + 2; number += 5)
			for (int is_delete = 0; is_delete < 2; is_delete++) {
				key_at(text, number);
				visits = 0;
				vdi_watcher_index_match(&index, vd_bytes_of(text), is_delete, mark, NULL);
				assert_int_equal(visits, expected(vd_bytes_of(text), is_delete));
			}
	}
	for (size_t i = 0; i < MEMBERS; i++)
		if (members[i].group)
			change(&index, &rand, &members[i]);
	assert_int_equal(index.single_count, 0);
	assert_int_equal(index.range_count, 0);
	assert_null(index.root);
	vdi_watcher_index_fini(&index);
	assert_int_equal(vdi_alloc_live(), live);
}

/* More single keys than the table has at first: each is found, and none is lost when some leave. */
static void a_table_of_single_keys_grows(void **state)
{
	struct vdi_watcher_index  index = { 0 };
	struct vdi_watcher_group *groups[500], *again;
	char			  keys[500][8];

	(void) state;
	for (size_t i = 0; i < 500; i++) {
		(void) snprintf(keys[i], sizeof keys[i], "k%zu", i);
		assert_status(vdi_watcher_index_join(&index,
						     &(struct vdi_key_range) { .from = vd_bytes_of(keys[i]),
									       .single = true },
						     false, false, &groups[i]),
			      VD_OK);
		assert_true(index.bucket_count >= index.single_count);
	}
	assert_int_equal(index.single_count, 500);
	for (size_t i = 0; i < 500; i++) {
		assert_status(vdi_watcher_index_join(&index,
						     &(struct vdi_key_range) { .from = vd_bytes_of(keys[i]),
									       .single = true },
						     false, false, &again),
			      VD_OK);
		assert_ptr_equal(again, groups[i]);
		vdi_watcher_index_leave(&index, again);
		vdi_watcher_index_leave(&index, groups[i]);
	}
	vdi_watcher_index_fini(&index);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e327_exactly_those_that_hold_the_key),
		cmocka_unit_test(a_table_of_single_keys_grows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
