/* Unit tests of lib/index/btree*.c: against a sorted array, under failing allocations, and with readers on
 * other threads. */
#include "vdtest.h"

#include <pthread.h>
#include <stdatomic.h>

#include "btree.h"

struct item {
	atomic_int references;
	unsigned   number;
	size_t	   key_size;
	char	   key[];
};

static struct vd_bytes item_key(const void *value)
{
	const struct item *item = value;

	return (struct vd_bytes) { item->key, item->key_size };
}

static void item_ref(void *value)
{
	atomic_fetch_add_explicit(&((struct item *) value)->references, 1, memory_order_relaxed);
}

static void item_unref(void *value)
{
	struct item *item = value;

	if (atomic_fetch_sub_explicit(&item->references, 1, memory_order_acq_rel) == 1)
		vdi_free(item);
}

static const struct vdi_btree_ops item_ops = { item_key, item_ref, item_unref };

static struct item *item_new(struct vd_bytes key, unsigned number)
{
	struct item *item = vdi_alloc(sizeof *item + key.size);

	assert_non_null(item);
	atomic_init(&item->references, 1);
	item->number = number;
	item->key_size = key.size;
	if (key.size)
		memcpy(item->key, key.data, key.size);
	return item;
}

static uint32_t random_next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t) (*seed >> 33);
}

/* ---- The model: a sorted array that holds a reference of each ---- */

struct model {
	struct item **items;
	size_t	      count;
	size_t	      capacity;
};

static size_t model_find(const struct model *model, struct vd_bytes key, bool *ret_found)
{
	size_t low = 0, high = model->count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (vd_bytes_compare(item_key(model->items[middle]), key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	*ret_found = low < model->count && vd_bytes_equal(item_key(model->items[low]), key);
	return low;
}

static void model_put(struct model *model, struct item *item)
{
	bool   found;
	size_t at = model_find(model, item_key(item), &found);

	item_ref(item);
	if (found) {
		item_unref(model->items[at]);
		model->items[at] = item;
		return;
	}
	assert_true(
		vdi_grow((void **) &model->items, &model->capacity, model->count + 1, sizeof *model->items));
	memmove(model->items + at + 1, model->items + at, (model->count - at) * sizeof *model->items);
	model->items[at] = item;
	model->count++;
}

static bool model_remove(struct model *model, struct vd_bytes key)
{
	bool   found;
	size_t at = model_find(model, key, &found);

	if (!found)
		return false;
	item_unref(model->items[at]);
	model->count--;
	memmove(model->items + at, model->items + at + 1, (model->count - at) * sizeof *model->items);
	return true;
}

static void model_copy(const struct model *model, struct model *ret_copy)
{
	*ret_copy = (struct model) { 0 };
	if (model->count)
		assert_true(vdi_grow((void **) &ret_copy->items, &ret_copy->capacity, model->count,
				     sizeof *model->items));
	for (size_t i = 0; i < model->count; i++) {
		item_ref(model->items[i]);
		ret_copy->items[ret_copy->count++] = model->items[i];
	}
}

static void model_fini(struct model *model)
{
	for (size_t i = 0; i < model->count; i++)
		item_unref(model->items[i]);
	vdi_free(model->items);
	*model = (struct model) { 0 };
}

static void assert_same(const struct vdi_btree_snapshot *snapshot, const struct model *model)
{
	struct vdi_btree_cursor cursor;
	void		       *value;

	vdi_btree_snapshot_check(snapshot);
	assert_int_equal(snapshot->count, model->count);
	assert_ptr_equal(vdi_btree_snapshot_min(snapshot), model->count ? model->items[0] : NULL);
	assert_ptr_equal(vdi_btree_snapshot_max(snapshot),
			 model->count ? model->items[model->count - 1] : NULL);
	vdi_btree_cursor_init(&cursor, snapshot);
	for (size_t i = 0; i < model->count; i++)
		assert_ptr_equal(vdi_btree_cursor_next(&cursor), model->items[i]);
	for (int i = 0; i < 3; i++)
		assert_null(vdi_btree_cursor_next(&cursor));
	assert_null(vdi_btree_cursor_value(&cursor));
	for (size_t i = model->count; i > 0; i--)
		assert_ptr_equal(vdi_btree_cursor_prev(&cursor), model->items[i - 1]);
	for (int i = 0; i < 3; i++)
		assert_null(vdi_btree_cursor_prev(&cursor));
	value = vdi_btree_cursor_next(&cursor);
	assert_ptr_equal(value, model->count ? model->items[0] : NULL);
}

/* Everything that takes a key, for one key (present or not) and a second one. */
static void assert_same_at(const struct vdi_btree_snapshot *snapshot, const struct model *model,
			   struct vd_bytes key, struct vd_bytes to)
{
	struct vdi_btree_cursor cursor;
	struct vdi_key_range	range = { .from = key, .to = to }, open = { .from = key, .unbounded = true },
			     single = { .from = key, .single = true };
	bool   found, to_found;
	size_t at = model_find(model, key, &found), end = model_find(model, to, &to_found),
	       count = end > at ? end - at : 0;

	assert_ptr_equal(vdi_btree_snapshot_get(snapshot, key), found ? model->items[at] : NULL);
	assert_int_equal(vdi_btree_snapshot_rank(snapshot, key), at);
	assert_int_equal(vdi_btree_snapshot_count_range(snapshot, key, to), count);
	assert_int_equal(vdi_btree_snapshot_count_key_range(snapshot, &range), count);
	assert_int_equal(vdi_btree_snapshot_count_key_range(snapshot, &open), model->count - at);
	assert_int_equal(vdi_btree_snapshot_count_key_range(snapshot, &single), found);
	vdi_btree_cursor_init(&cursor, snapshot);
	assert_ptr_equal(vdi_btree_cursor_seek(&cursor, key), at < model->count ? model->items[at] : NULL);
	assert_ptr_equal(vdi_btree_cursor_prev(&cursor), at > 0 ? model->items[at - 1] : NULL);
	assert_ptr_equal(vdi_btree_cursor_next(&cursor), at < model->count ? model->items[at] : NULL);
	assert_ptr_equal(vdi_btree_cursor_seek_rank(&cursor, at),
			 at < model->count ? model->items[at] : NULL);
	assert_ptr_equal(vdi_btree_cursor_next(&cursor), at + 1 < model->count ? model->items[at + 1] : NULL);
	assert_int_equal(vdi_btree_cursor_range(&cursor, &range), count);
	for (size_t i = 0; i < count; i++)
		assert_ptr_equal(vdi_btree_cursor_range_next(&cursor), model->items[at + i]);
	assert_null(vdi_btree_cursor_range_next(&cursor));
	assert_int_equal(vdi_btree_cursor_range_from_end(&cursor, &range), count);
	for (size_t i = count; i > 0; i--)
		assert_ptr_equal(vdi_btree_cursor_range_prev(&cursor), model->items[at + i - 1]);
	assert_null(vdi_btree_cursor_range_prev(&cursor));
	assert_int_equal(vdi_btree_cursor_range(&cursor, &single), found);
	assert_ptr_equal(vdi_btree_cursor_range_next(&cursor), found ? model->items[at] : NULL);
	assert_int_equal(vdi_btree_cursor_range_from_end(&cursor, &single), found);
	assert_int_equal(vdi_btree_cursor_range_from_end(&cursor, &open), model->count - at);
	assert_ptr_equal(vdi_btree_cursor_range_prev(&cursor),
			 at < model->count ? model->items[model->count - 1] : NULL);
}

/* ---- Keys of several shapes ---- */

struct key_buffer {
	char   bytes[64];
	size_t size;
};

static struct vd_bytes random_key(uint64_t *seed, unsigned shape, unsigned range, struct key_buffer *buffer)
{
	static const char alphabet[] = { '\0', '\1', 'a', '\xff' };
	unsigned	  number = random_next(seed) % range;

	switch (shape) {
	case 0: /* as they come in practice */
		buffer->size =
			(size_t) snprintf(buffer->bytes, sizeof buffer->bytes,
					  "/registry/pods/ns-%05u/web-7d4b9c6f5-%07u", number % 7, number);
		break;
	case 1: /* short, of few bytes: zeros, 0xff, keys that are prefixes of others, the empty key */
		buffer->size = random_next(seed) % 7;
		for (size_t i = 0; i < buffer->size; i++)
			buffer->bytes[i] = alphabet[random_next(seed) % sizeof alphabet];
		break;
	default: /* long runs of the same byte */
		buffer->size = number % sizeof buffer->bytes;
		memset(buffer->bytes, number & 1 ? 0 : 0xff, buffer->size);
		if (buffer->size)
			buffer->bytes[buffer->size - 1] = (char) random_next(seed);
		break;
	}
	return (struct vd_bytes) { buffer->bytes, buffer->size };
}

struct pair_of_worlds {
	struct vdi_btree tree;
	struct model	 model;
	unsigned	 number;
};

static void put_both(struct pair_of_worlds *worlds, struct vd_bytes key)
{
	struct item *item = item_new(key, worlds->number++);
	void	    *replaced = &worlds;
	bool	     found;
	size_t	     at = model_find(&worlds->model, key, &found);

	assert_status(vdi_btree_put(&worlds->tree, item, worlds->number & 1 ? NULL : &replaced), VD_OK);
	if (!(worlds->number & 1)) {
		assert_ptr_equal(replaced, found ? worlds->model.items[at] : NULL);
		if (replaced)
			item_unref(replaced);
	}
	model_put(&worlds->model, item);
	item_unref(item);
}

static void remove_both(struct pair_of_worlds *worlds, struct vd_bytes key)
{
	void  *removed = NULL;
	bool   found;
	size_t at = model_find(&worlds->model, key, &found);

	worlds->number++;
	assert_status(vdi_btree_remove(&worlds->tree, key, worlds->number & 1 ? NULL : &removed),
		      found ? VD_OK : VD_NOT_FOUND);
	if (removed) {
		assert_ptr_equal(removed, worlds->model.items[at]);
		item_unref(removed);
	}
	model_remove(&worlds->model, key);
}

/* A walk of random puts and removals, growing then shrinking, with up to eight snapshots kept for a while. */
static void random_walk(unsigned shape, unsigned range, unsigned steps, uint64_t seed)
{
	struct pair_of_worlds	  worlds = { 0 };
	struct vdi_btree_snapshot snapshots[8] = { 0 };
	struct model		  models[8] = { 0 };
	struct key_buffer	  buffer, other;
	int64_t			  live = vdi_alloc_live();

	vdi_btree_init(&worlds.tree, &item_ops);
	for (unsigned i = 0; i < steps; i++) {
		struct vd_bytes key = random_key(&seed, shape, range, &buffer);
		unsigned	slot = random_next(&seed) % 8;

		if (random_next(&seed) % 10 < (i < steps / 2 ? 7u : 3u))
			put_both(&worlds, key);
		else
			remove_both(&worlds, key);
		if (random_next(&seed) % 50 == 0) {
			if (snapshots[slot].ops) {
				assert_same(&snapshots[slot], &models[slot]);
				vdi_btree_snapshot_release(&snapshots[slot]);
				model_fini(&models[slot]);
			} else {
				vdi_btree_snapshot(&worlds.tree, &snapshots[slot]);
				model_copy(&worlds.model, &models[slot]);
			}
		}
		if (i % 64 == 0) {
			key = random_key(&seed, shape, range, &buffer);
			assert_same_at(vdi_btree_view(&worlds.tree), &worlds.model, key,
				       random_key(&seed, shape, range, &other));
		}
		if (i % 512 == 0)
			assert_same(vdi_btree_view(&worlds.tree), &worlds.model);
	}
	assert_same(vdi_btree_view(&worlds.tree), &worlds.model);
	while (worlds.model.count) /* down to nothing, sharing with what snapshots are left */
		remove_both(&worlds, item_key(worlds.model.items[random_next(&seed) % worlds.model.count]));
	assert_same(vdi_btree_view(&worlds.tree), &worlds.model);
	for (unsigned i = 0; i < 8; i++) {
		if (snapshots[i].ops)
			assert_same(&snapshots[i], &models[i]);
		vdi_btree_snapshot_release(&snapshots[i]);
		model_fini(&models[i]);
	}
	vdi_btree_fini(&worlds.tree);
	model_fini(&worlds.model);
	assert_int_equal(vdi_alloc_live(), live);
}

static void random_walks_agree_with_a_sorted_array(void **state)
{
	(void) state;
	random_walk(0, 200, 3000, 1);
	random_walk(0, 5000, 20000, 2);
	random_walk(1, 1, 8000, 3);
	random_walk(2, 64, 6000, 4);
}

static size_t keys_read;

static struct vd_bytes counted_key(const void *value)
{
	keys_read++;
	return item_key(value);
}

/* How many keys lie in a range is known by ranks: a count of many reads no more keys than one of few. */
static void e1015_w04_a_count_costs_the_same_for_few_and_for_many(void **state)
{
	static const struct vdi_btree_ops counted_ops = { counted_key, item_ref, item_unref };
	struct vdi_btree		  tree;
	char				  from[32], to[32];
	size_t				  most = 0;

	(void) state;
	vdi_btree_init(&tree, &counted_ops);
	for (int i = 0; i < 50000; i++) {
		struct item *item;

		snprintf(from, sizeof from, "/key-%07d", i);
		item = item_new(vd_bytes_of(from), 0);
		assert_status(vdi_btree_put(&tree, item, NULL), VD_OK);
		item_unref(item);
	}
	for (int count = 1; count <= 50000; count *= 3) {
		snprintf(from, sizeof from, "/key-%07d", (50000 - count) / 2);
		snprintf(to, sizeof to, "/key-%07d", (50000 - count) / 2 + count);
		keys_read = 0;
		assert_int_equal(vdi_btree_snapshot_count_range(vdi_btree_view(&tree), vd_bytes_of(from),
								vd_bytes_of(to)),
				 count);
		most = VDI_MAX(most, keys_read);
	}
	assert_true(most > 0 && most < 200);
	vdi_btree_fini(&tree);
}

static void empty_tree_answers(void **state)
{
	struct vdi_btree	  tree;
	struct vdi_btree_snapshot snapshot;
	struct model		  model = { 0 };

	(void) state;
	vdi_btree_init(&tree, &item_ops);
	vdi_btree_snapshot(&tree, &snapshot);
	assert_same(&snapshot, &model);
	assert_same_at(&snapshot, &model, vd_bytes_of("a"), vd_bytes_of("b"));
	assert_same_at(&snapshot, &model, VD_BYTES_NONE, VD_BYTES_NONE);
	assert_status(vdi_btree_remove(&tree, vd_bytes_of("a"), NULL), VD_NOT_FOUND);
	vdi_btree_snapshot_release(&snapshot);
	vdi_btree_snapshot_release(&snapshot);
	vdi_btree_clear(&tree);
	vdi_btree_fini(&tree);
	vdi_btree_fini(&(struct vdi_btree) { 0 });
}

static void keys_in_order_fill_their_leaves(void **state)
{
	struct pair_of_worlds worlds = { 0 };
	char		      text[32];

	(void) state;
	vdi_btree_init(&worlds.tree, &item_ops);
	for (int i = 0; i < 20000; i++) {
		snprintf(text, sizeof text, "/key-%07d", i);
		put_both(&worlds, vd_bytes_of(text));
	}
	assert_same(vdi_btree_view(&worlds.tree), &worlds.model);
	assert_true(vdi_btree_snapshot_memory_bytes(vdi_btree_view(&worlds.tree)) < 20000 * 15);
	for (int i = 0; i < 20000; i++) {
		snprintf(text, sizeof text, "/gone-%07d", 20000 - i);
		put_both(&worlds, vd_bytes_of(text));
	}
	assert_same(vdi_btree_view(&worlds.tree), &worlds.model);
	for (int i = 0; i < 20000; i++) {
		snprintf(text, sizeof text, "/key-%07d", i);
		remove_both(&worlds, vd_bytes_of(text));
	}
	assert_same(vdi_btree_view(&worlds.tree), &worlds.model);
	vdi_btree_fini(&worlds.tree);
	model_fini(&worlds.model);
}

static void load_sorted_replaces_everything(void **state)
{
	static const size_t	  counts[] = { 0, 1, 2, 55, 56, 57, 64, 65, 1000, 1569, 30000 };
	struct vdi_btree	  tree;
	struct vdi_btree_snapshot before;
	struct model		  model = { 0 }, previous = { 0 };
	int64_t			  live = vdi_alloc_live();
	char			  text[32];

	(void) state;
	vdi_btree_init(&tree, &item_ops);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(counts); i++) {
		vdi_btree_snapshot(&tree, &before);
		for (size_t j = 0; j < counts[i]; j++) {
			struct item *item;

			snprintf(text, sizeof text, "/ns-%03zu/%07zu", j / 777, j * 3);
			item = item_new(vd_bytes_of(text), (unsigned) j);
			model_put(&model, item);
			item_unref(item);
		}
		assert_status(vdi_btree_load_sorted(&tree, (void *const *) model.items, model.count), VD_OK);
		assert_same(vdi_btree_view(&tree), &model);
		assert_same_at(vdi_btree_view(&tree), &model, vd_bytes_of("/ns-000/0000100"),
			       vd_bytes_of("/ns-001/0002400"));
		assert_same(&before, &previous);
		vdi_btree_snapshot_release(&before);
		model_fini(&previous);
		previous = model;
		model = (struct model) { 0 };
	}
	/* Not ascending: refused, and nothing changed. */
	model_copy(&previous, &model);
	model.items[7] = previous.items[8];
	assert_status(vdi_btree_load_sorted(&tree, (void *const *) model.items, model.count),
		      VD_INVALID_ARGUMENT);
	assert_same(vdi_btree_view(&tree), &previous);
	model.items[7] = previous.items[7];
	model_fini(&model);
	vdi_btree_clear(&tree);
	assert_int_equal(vdi_btree_count(&tree), 0);
	vdi_btree_fini(&tree);
	model_fini(&previous);
	assert_int_equal(vdi_alloc_live(), live);
}

static void many_keys_are_found_together(void **state)
{
	static const char *const absent[] = {
		"", "zzz", "/ns-003/", "/ns-003/x", "/ns-0", "/ns-010/0000770x"
	};
	struct vdi_btree tree;
	struct model	 model = { 0 };
	struct vd_bytes	 keys[40];
	void		*values[40];
	char		 text[32];

	(void) state;
	vdi_btree_init(&tree, &item_ops);
	values[0] = &tree;
	vdi_btree_snapshot_get_many(vdi_btree_view(&tree), &(struct vd_bytes) { "a", 1 }, 1, values);
	assert_null(values[0]);
	vdi_btree_snapshot_prefetch(vdi_btree_view(&tree), vd_bytes_of("a"), 0);
	for (size_t i = 0; i < 5000; i++) {
		struct item *item;

		snprintf(text, sizeof text, "/ns-%03zu/%07zu", i * 7919 % 5000 / 77, i * 7919 % 5000);
		item = item_new(vd_bytes_of(text), (unsigned) i);
		assert_status(vdi_btree_put(&tree, item, NULL), VD_OK);
		model_put(&model, item);
		item_unref(item);
		if (i != 0 && i != 20 && i % 1000 != 999)
			continue;
		for (size_t from = 0; from < model.count; from += 34) {
			size_t count = VDI_MIN(model.count - from, (size_t) 34);

			for (size_t j = 0; j < count; j++)
				keys[j] = item_key(model.items[from + j]);
			for (size_t j = 0; j < VDI_ARRAY_SIZE(absent); j++)
				keys[count + j] = vd_bytes_of(absent[j]);
			vdi_btree_snapshot_get_many(vdi_btree_view(&tree), keys,
						    count + VDI_ARRAY_SIZE(absent), values);
			for (size_t j = 0; j < count; j++)
				assert_ptr_equal(values[j], model.items[from + j]);
			for (unsigned depth = 0; depth < 9; depth++) /* deeper than any */
				vdi_btree_snapshot_prefetch(vdi_btree_view(&tree), keys[depth % count],
							    depth);
			for (size_t j = 0; j < VDI_ARRAY_SIZE(absent); j++)
				assert_null(values[count + j]);
		}
	}
	vdi_btree_fini(&tree);
	model_fini(&model);
}

static void references_are_one_per_leaf_slot(void **state)
{
	struct item	*old_item = item_new(vd_bytes_of("k"), 1), *new_item = item_new(vd_bytes_of("k"), 2);
	struct vdi_btree tree;
	struct vdi_btree_snapshot first, second;
	void			 *removed = NULL;

	(void) state;
	vdi_btree_init(&tree, &item_ops);
	assert_status(vdi_btree_put(&tree, old_item, NULL), VD_OK);
	assert_int_equal(old_item->references, 2);
	assert_status(vdi_btree_put(&tree, old_item, NULL), VD_OK); /* in its own place */
	assert_int_equal(old_item->references, 2);
	vdi_btree_snapshot(&tree, &first);
	assert_status(vdi_btree_put(&tree, new_item, NULL), VD_OK);
	assert_int_equal(old_item->references, 2); /* ours and first's */
	assert_int_equal(new_item->references, 2);
	vdi_btree_snapshot_ref(&first, &second);
	vdi_btree_snapshot_release(&first);
	assert_int_equal(old_item->references, 2);
	assert_ptr_equal(vdi_btree_snapshot_get(&second, vd_bytes_of("k")), old_item);
	vdi_btree_snapshot_release(&second);
	assert_int_equal(old_item->references, 1);
	assert_status(vdi_btree_remove(&tree, vd_bytes_of("k"), &removed), VD_OK);
	assert_ptr_equal(removed, new_item);
	assert_int_equal(new_item->references, 2);
	item_unref(removed);
	item_unref(new_item);
	item_unref(old_item);
	vdi_btree_fini(&tree);
}

static void a_key_that_is_too_long_is_refused(void **state)
{
	struct vdi_btree tree;
	size_t		 size = VDI_BTREE_KEY_SIZE_MAX + 1;
	char		*bytes = calloc(1, size);
	struct item	*item = item_new((struct vd_bytes) { bytes, size }, 0);

	(void) state;
	vdi_btree_init(&tree, &item_ops);
	assert_status(vdi_btree_put(&tree, item, NULL), VD_INVALID_ARGUMENT);
	assert_status(vdi_btree_load_sorted(&tree, (void *const *) &item, 1), VD_INVALID_ARGUMENT);
	item->key_size--;
	assert_status(vdi_btree_put(&tree, item, NULL), VD_OK);
	vdi_btree_fini(&tree);
	item_unref(item);
	free(bytes);
}

/* Each operation of a walk is first made to fail at every allocation it does; the tree must not notice. */
static void torture_walk(unsigned snapshot_every, uint64_t seed)
{
	struct pair_of_worlds	  worlds = { 0 };
	struct vdi_btree_snapshot snapshot = { 0 };
	struct key_buffer	  buffer;
	int64_t			  live = vdi_alloc_live();
	unsigned		  failures = 0;

	vdi_btree_init(&worlds.tree, &item_ops);
	for (unsigned i = 0; i < 6000; i++) {
		struct vd_bytes key = random_key(&seed, i % 3 ? 0 : 1, 4000, &buffer);
		bool		put = random_next(&seed) % 10 < (i < 3000 ? 8u : 2u);
		struct item    *item;
		bool		found;

		if (!put && worlds.model.count)
			key = item_key(worlds.model.items[random_next(&seed) % worlds.model.count]);
		if (i % snapshot_every == 0) {
			vdi_btree_snapshot_release(&snapshot);
			vdi_btree_snapshot(&worlds.tree, &snapshot);
		}
		item = item_new(key, i);
		key = item_key(item);
		model_find(&worlds.model, key, &found);
		for (uint64_t nth = 1;; nth++) {
			int64_t	  before = vdi_alloc_live();
			vd_status status;

			vdi_alloc_fail_nth(nth, 1);
			status = put ? vdi_btree_put(&worlds.tree, item, NULL) :
				       vdi_btree_remove(&worlds.tree, key, NULL);
			if (!vdi_alloc_failed()) {
				vdi_alloc_fail_nth(0, 0);
				assert_status(status, put || found ? VD_OK : VD_NOT_FOUND);
				break;
			}
			vdi_alloc_fail_nth(0, 0);
			failures++;
			assert_status(status, VD_NOMEM);
			assert_int_equal(vdi_alloc_live(), before);
			assert_int_equal(item->references, 1);
			if (failures % 64 == 0)
				assert_same(vdi_btree_view(&worlds.tree), &worlds.model);
		}
		if (put)
			model_put(&worlds.model, item);
		else
			model_remove(&worlds.model, key);
		item_unref(item);
	}
	assert_true(failures > 100);
	assert_same(vdi_btree_view(&worlds.tree), &worlds.model);
	vdi_btree_snapshot_release(&snapshot);
	vdi_btree_fini(&worlds.tree);
	model_fini(&worlds.model);
	assert_int_equal(vdi_alloc_live(), live);
}

static void torture_put_and_remove(void **state)
{
	(void) state;
	torture_walk(1, 11);
	torture_walk(40, 12);
	torture_walk(100000, 13);
}

static void torture_load_sorted(void **state)
{
	struct vdi_btree tree;
	struct model	 model = { 0 }, small = { 0 };
	uint64_t	 seed = 5, nth = 0;

	(void) state;
	vdi_btree_init(&tree, &item_ops);
	for (int i = 0; i < 4000; i++) {
		struct key_buffer buffer;
		struct item	 *item = item_new(random_key(&seed, 0, 1000000, &buffer), (unsigned) i);

		model_put(&model, item);
		if (i < 10) {
			model_put(&small, item);
			assert_status(vdi_btree_put(&tree, item, NULL), VD_OK);
		}
		item_unref(item);
	}
	for (;;) {
		int64_t	  before = vdi_alloc_live();
		vd_status status;

		vdi_alloc_fail_nth(++nth, 1);
		status = vdi_btree_load_sorted(&tree, (void *const *) model.items, model.count);
		if (!vdi_alloc_failed())
			break;
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, VD_NOMEM);
		assert_int_equal(vdi_alloc_live(), before);
		assert_same(vdi_btree_view(&tree), &small);
	}
	vdi_alloc_fail_nth(0, 0);
	assert_true(nth > 50);
	assert_same(vdi_btree_view(&tree), &model);
	vdi_btree_fini(&tree);
	model_fini(&model);
	model_fini(&small);
}

/* ---- Readers on other threads ---- */

enum { READERS = 3, MAILBOX = 4, GENERATIONS = 300, KEYS = 600 };

struct exchange {
	pthread_mutex_t		  mutex;
	pthread_cond_t		  changed;
	struct vdi_btree_snapshot mailbox[MAILBOX];
	unsigned		  generation[MAILBOX];
	unsigned		  filled;
	bool			  over;
	atomic_uint		  errors;
};

/* In generation g every key stands with number g, so a torn snapshot shows. */
static void read_snapshot(struct exchange *exchange, struct vdi_btree_snapshot *snapshot, unsigned generation)
{
	struct vdi_btree_cursor	  cursor;
	struct vdi_btree_snapshot second;
	struct item		 *item;
	unsigned		  seen = 0, wrong = 0;

	vdi_btree_snapshot_ref(snapshot, &second);
	vdi_btree_snapshot_release(snapshot);
	vdi_btree_cursor_init(&cursor, &second);
	while ((item = vdi_btree_cursor_next(&cursor))) {
		wrong += item->number != generation;
		wrong += vdi_btree_snapshot_get(&second, item_key(item)) != item;
		seen++;
	}
	wrong += seen != second.count;
	vdi_btree_snapshot_release(&second);
	atomic_fetch_add(&exchange->errors, wrong);
}

static void *reader(void *arg)
{
	struct exchange *exchange = arg;

	for (;;) {
		struct vdi_btree_snapshot snapshot;
		unsigned		  generation;

		pthread_mutex_lock(&exchange->mutex);
		while (exchange->filled == 0 && !exchange->over)
			pthread_cond_wait(&exchange->changed, &exchange->mutex);
		if (exchange->filled == 0) {
			pthread_mutex_unlock(&exchange->mutex);
			return NULL;
		}
		snapshot = exchange->mailbox[--exchange->filled];
		generation = exchange->generation[exchange->filled];
		pthread_cond_broadcast(&exchange->changed);
		pthread_mutex_unlock(&exchange->mutex);
		read_snapshot(exchange, &snapshot, generation);
	}
}

static void write_generation(struct vdi_btree *tree, unsigned generation, uint64_t *seed)
{
	char text[64];

	for (unsigned i = 0; i < KEYS; i++) {
		unsigned     number = i * 7919 % KEYS;
		struct item *item;

		snprintf(text, sizeof text, "/registry/pods/ns-%02u/%05u", number % 5, number);
		if ((number + generation) % 11 == 0 || random_next(seed) % 4 == 0) {
			vd_status status = vdi_btree_remove(tree, vd_bytes_of(text), NULL);

			assert_true(status == VD_OK || status == VD_NOT_FOUND);
			continue;
		}
		item = item_new(vd_bytes_of(text), generation);
		assert_status(vdi_btree_put(tree, item, NULL), VD_OK);
		item_unref(item);
	}
}

static void snapshots_are_read_while_the_writer_goes_on(void **state)
{
	struct exchange	 exchange = { .mutex = PTHREAD_MUTEX_INITIALIZER,
				      .changed = PTHREAD_COND_INITIALIZER };
	struct vdi_btree tree;
	pthread_t	 threads[READERS];
	uint64_t	 seed = 99;
	int64_t		 live = vdi_alloc_live();

	(void) state;
	vdi_btree_init(&tree, &item_ops);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, &exchange), 0);
	for (unsigned generation = 0; generation < GENERATIONS; generation++) {
		write_generation(&tree, generation, &seed);
		pthread_mutex_lock(&exchange.mutex);
		while (exchange.filled == MAILBOX)
			pthread_cond_wait(&exchange.changed, &exchange.mutex);
		vdi_btree_snapshot(&tree, &exchange.mailbox[exchange.filled]);
		exchange.generation[exchange.filled++] = generation;
		pthread_cond_broadcast(&exchange.changed);
		pthread_mutex_unlock(&exchange.mutex);
	}
	pthread_mutex_lock(&exchange.mutex);
	exchange.over = true;
	pthread_cond_broadcast(&exchange.changed);
	pthread_mutex_unlock(&exchange.mutex);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(atomic_load(&exchange.errors), 0);
	vdi_btree_snapshot_check(vdi_btree_view(&tree));
	vdi_btree_fini(&tree);
	assert_int_equal(vdi_alloc_live(), live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(empty_tree_answers),
		cmocka_unit_test(many_keys_are_found_together),
		cmocka_unit_test(references_are_one_per_leaf_slot),
		cmocka_unit_test(a_key_that_is_too_long_is_refused),
		cmocka_unit_test(random_walks_agree_with_a_sorted_array),
		cmocka_unit_test(e1015_w04_a_count_costs_the_same_for_few_and_for_many),
		cmocka_unit_test(keys_in_order_fill_their_leaves),
		cmocka_unit_test(load_sorted_replaces_everything),
		cmocka_unit_test(torture_put_and_remove),
		cmocka_unit_test(torture_load_sorted),
		cmocka_unit_test(snapshots_are_read_while_the_writer_goes_on),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
