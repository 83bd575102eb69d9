/* Cost of a key in the btree. One JSON line per case: bench_btree [KEYS [SEED]]; CPU time, with keys like
 * those of pods in a thousand namespaces. Bytes are the growth of the heap per value, without the values. */
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base.h"
#include "btree.h"

struct item {
	atomic_uint references;
	uint32_t    key_size;
	char	    key[];
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
	atomic_fetch_sub_explicit(&((struct item *) value)->references, 1, memory_order_acq_rel);
}

static const struct vdi_btree_ops item_ops = { item_key, item_ref, item_unref };

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static uint64_t random_next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

struct bench {
	struct vdi_btree tree;
	struct item    **sorted;
	struct item    **shuffled;
	size_t		 count;
	uint64_t	 seed;
	size_t		 heap;
	int64_t		 start_ns;
};

static void start(struct bench *bench)
{
	bench->heap = heap_bytes();
	bench->start_ns = now_ns();
}

static void report(struct bench *bench, const char *name, size_t operations)
{
	printf("{\"bench\":\"btree\",\"case\":\"%s\",\"keys\":%zu,\"ns\":%.1f}\n", name, bench->count,
	       (double) (now_ns() - bench->start_ns) / (double) operations);
	fflush(stdout);
}

static void report_memory(struct bench *bench, const char *name)
{
	printf("{\"bench\":\"btree\",\"case\":\"%s\",\"keys\":%zu,\"bytes_per_key\":%.2f,\"heap_bytes_per_"
	       "key\":%.2f}\n",
	       name, bench->count,
	       (double) vdi_btree_snapshot_memory_bytes(vdi_btree_view(&bench->tree)) / (double) bench->count,
	       (double) (heap_bytes() - bench->heap) / (double) bench->count);
}

static void put_all(struct bench *bench, struct item **items)
{
	for (size_t i = 0; i < bench->count; i++)
		if (vdi_btree_put(&bench->tree, items[i], NULL) != VD_OK)
			abort();
}

static void bench_inserts(struct bench *bench)
{
	start(bench);
	if (vdi_btree_load_sorted(&bench->tree, (void *const *) bench->sorted, bench->count) != VD_OK)
		abort();
	report(bench, "load_sorted", bench->count);
	report_memory(bench, "load_sorted");
	start(bench);
	vdi_btree_clear(&bench->tree);
	report(bench, "clear", bench->count);
	start(bench);
	put_all(bench, bench->sorted);
	report(bench, "insert_sequential", bench->count);
	report_memory(bench, "insert_sequential");
	vdi_btree_clear(&bench->tree);
	start(bench);
	put_all(bench, bench->shuffled);
	report(bench, "insert_random", bench->count);
	report_memory(bench, "insert_random");
}

static void bench_reads(struct bench *bench)
{
	const struct vdi_btree_snapshot *view = vdi_btree_view(&bench->tree);
	struct vdi_btree_cursor		 cursor;
	size_t				 found = 0;
	struct vdi_key_range		 all = VDI_KEY_RANGE_ALL;
	struct item			*item;

	start(bench);
	for (size_t i = 0; i < bench->count; i++)
		found +=
			vdi_btree_snapshot_get(view, item_key(bench->shuffled[bench->count - 1 - i])) != NULL;
	report(bench, "get", bench->count);
	start(bench);
	for (size_t i = 0; i < bench->count; i++)
		found += vdi_btree_snapshot_get(view, item_key(bench->sorted[i])) != NULL;
	report(bench, "get_in_order", bench->count);
	start(bench);
	vdi_btree_cursor_init(&cursor, view);
	while (vdi_btree_cursor_next(&cursor))
		found++;
	report(bench, "iterate", bench->count);
	start(bench);
	vdi_btree_cursor_range(&cursor, &all);
	while ((item = vdi_btree_cursor_range_next(&cursor)))
		found += item->key_size;
	report(bench, "iterate_range_reading_values", bench->count);
	start(bench);
	for (size_t i = 0; i < bench->count / 1000; i++) {
		char   prefix[64], end[64];
		size_t size = (size_t) snprintf(prefix, sizeof prefix, "/registry/pods/ns-%05zu/", i);
		struct vdi_key_range range =
			vdi_key_range_from_prefix((struct vd_bytes) { prefix, size }, end);

		found += vdi_btree_snapshot_count_key_range(view, &range);
	}
	report(bench, "count_prefix", bench->count / 1000);
	if (found == 0)
		abort();
}

/* Every value is replaced once, in random order, with a snapshot alive that was taken at most `every` puts
 * ago. */
static void bench_replace(struct bench *bench, const char *name, size_t every)
{
	struct vdi_btree_snapshot snapshot = { 0 };

	start(bench);
	for (size_t i = 0; i < bench->count; i++) {
		if (every && i % every == 0) {
			vdi_btree_snapshot_release(&snapshot);
			vdi_btree_snapshot(&bench->tree, &snapshot);
		}
		if (vdi_btree_put(&bench->tree, bench->shuffled[random_next(&bench->seed) % bench->count],
				  NULL) != VD_OK)
			abort();
	}
	vdi_btree_snapshot_release(&snapshot);
	report(bench, name, bench->count);
}

static void bench_remove(struct bench *bench)
{
	start(bench);
	for (size_t i = 0; i < bench->count; i++)
		if (vdi_btree_remove(&bench->tree, item_key(bench->shuffled[i]), NULL) != VD_OK)
			abort();
	report(bench, "remove_random", bench->count);
}

int main(int argc, char **argv)
{
	struct bench bench = { .count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000,
			       .seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1 };

	bench.sorted = calloc(bench.count + 1, sizeof *bench.sorted);
	bench.shuffled = calloc(bench.count + 1, sizeof *bench.shuffled);
	if (bench.sorted == NULL || bench.shuffled == NULL || bench.count < 1000 || bench.seed == 0)
		return 1;
	for (size_t i = 0; i < bench.count; i++)
		bench.shuffled[i] = (struct item *) (uintptr_t) (i + 1);
	for (size_t i = bench.count - 1; i > 0; i--) {
		size_t	     other = random_next(&bench.seed) % (i + 1);
		struct item *swap = bench.shuffled[i];

		bench.shuffled[i] = bench.shuffled[other];
		bench.shuffled[other] = swap;
	}
	for (size_t i = 0; i < bench.count;
	     i++) { /* made in random order: neighbours in the tree are none in memory */
		size_t number = (uintptr_t) bench.shuffled[i] - 1;
		char   key[64];
		size_t size =
			(size_t) snprintf(key, sizeof key, "/registry/pods/ns-%05zu/web-7d4b9c6f5-%07zu",
					  number / 1000, number);
		struct item *item = malloc(sizeof *item + size);

		if (item == NULL)
			return 1;
		atomic_init(&item->references, 1);
		item->key_size = (uint32_t) size;
		memcpy(item->key, key, size);
		bench.shuffled[i] = bench.sorted[number] = item;
	}
	vdi_btree_init(&bench.tree, &item_ops);
	bench_inserts(&bench);
	bench_reads(&bench);
	bench_replace(&bench, "put", 0);
	bench_replace(&bench, "put_snapshot_each", 1);
	bench_replace(&bench, "put_snapshot_each_100th", 100);
	bench_replace(&bench, "put_snapshot_each_10000th", 10000);
	bench_remove(&bench);
	vdi_btree_fini(&bench.tree);
	for (size_t i = 0; i < bench.count; i++)
		free(bench.sorted[i]);
	free(bench.sorted);
	free(bench.shuffled);
	return 0;
}
