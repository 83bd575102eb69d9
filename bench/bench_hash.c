/* Cost of a key in the hash table. One JSON line per case: bench_hash [KEYS]; CPU time, with keys like those
 * of pods, including hashing. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base.h"
#include "hash.h"

struct item {
	uint32_t size;
	char	 key[60];
};

static bool item_equal(const void *entry, const void *key)
{
	const struct item *item = entry;

	return vd_bytes_equal((struct vd_bytes) { item->key, item->size }, *(const struct vd_bytes *) key);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static void report(const char *name, size_t count, int64_t start_ns)
{
	printf("{\"bench\":\"hash\",\"case\":\"%s\",\"keys\":%zu,\"ns\":%.1f}\n", name, count,
	       (double) (now_ns() - start_ns) / (double) count);
}

int main(int argc, char **argv)
{
	size_t		count = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000, found = 0, position = 0;
	struct item    *items = calloc(count + 1, sizeof *items);
	struct vdi_hash hash;
	int64_t		start_ns;

	if (items == NULL)
		return 1;
	for (size_t i = 0; i < count; i++)
		items[i].size = (uint32_t) snprintf(items[i].key, sizeof items[i].key,
						    "/registry/pods/ns-%05zu/web-7d4b9c6f5-%07zu", i % 1000,
						    i * 2654435761u % 10000000);
	vdi_hash_init(&hash, item_equal, 0);
	start_ns = now_ns();
	for (size_t i = 0; i < count; i++) {
		struct vd_bytes key = { items[i].key, items[i].size };

		if (vdi_hash_put(&hash, vdi_hash_bytes(key, 1), &key, &items[i], NULL) != VD_OK)
			abort();
	}
	report("put", count, start_ns);
	printf("{\"bench\":\"hash\",\"case\":\"memory\",\"keys\":%zu,\"bytes_per_key\":%.2f}\n", hash.count,
	       (double) (hash.capacity * 12) / (double) hash.count);
	start_ns = now_ns();
	for (size_t i = 0; i < count; i++) {
		const struct item *item = &items[i * 7919 % count];
		struct vd_bytes	   key = { item->key, item->size };

		found += vdi_hash_get(&hash, vdi_hash_bytes(key, 1), &key) != NULL;
	}
	report("get", count, start_ns);
	start_ns = now_ns();
	while (vdi_hash_next(&hash, &position))
		found++;
	report("iterate", count, start_ns);
	start_ns = now_ns();
	for (size_t i = 0; i < count; i++) {
		struct vd_bytes key = { items[i].key, items[i].size };

		found += vdi_hash_remove(&hash, vdi_hash_bytes(key, 1), &key) != NULL;
	}
	report("remove", count, start_ns);
	vdi_hash_fini(&hash);
	free(items);
	return found == 0;
}
