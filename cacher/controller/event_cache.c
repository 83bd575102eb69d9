/* A hash table, and a list in the order of use. */
#include "event_cache.h"

struct vdi_event_cache_entry {
	struct vdi_event_key	      key;
	struct vdi_event_cache_entry *newer, *older;
	_Alignas(16) char record[];
};

static bool is_key(const void *entry, const void *key)
{
	const struct vdi_event_cache_entry *a = entry;
	const struct vdi_event_key	   *b = key;

	return a->key.a == b->a && a->key.b == b->b;
}

void vdi_event_cache_init(struct vdi_event_cache *cache, size_t record_size, size_t count_max)
{
	*cache = (struct vdi_event_cache) { .record_size = record_size, .count_max = count_max };
	vdi_hash_init(&cache->entries, is_key, count_max);
}

void vdi_event_cache_fini(struct vdi_event_cache *cache)
{
	while (cache->newest) {
		struct vdi_event_cache_entry *older = cache->newest->older;

		vdi_free(cache->newest);
		cache->newest = older;
	}
	cache->oldest = NULL;
	vdi_hash_fini(&cache->entries);
}

static void unlink_entry(struct vdi_event_cache *cache, struct vdi_event_cache_entry *entry)
{
	if (entry->newer)
		entry->newer->older = entry->older;
	else
		cache->newest = entry->older;
	if (entry->older)
		entry->older->newer = entry->newer;
	else
		cache->oldest = entry->newer;
}

static void link_newest(struct vdi_event_cache *cache, struct vdi_event_cache_entry *entry)
{
	entry->newer = NULL;
	entry->older = cache->newest;
	if (cache->newest)
		cache->newest->newer = entry;
	else
		cache->oldest = entry;
	cache->newest = entry;
}

static void evict_oldest(struct vdi_event_cache *cache)
{
	struct vdi_event_cache_entry *oldest = cache->oldest;

	unlink_entry(cache, oldest);
	(void) vdi_hash_remove(&cache->entries, oldest->key.a, &oldest->key);
	vdi_free(oldest);
}

void *vdi_event_cache_at(struct vdi_event_cache *cache, struct vdi_event_key key)
{
	struct vdi_event_cache_entry *entry = vdi_hash_get(&cache->entries, key.a, &key);

	if (entry) {
		unlink_entry(cache, entry);
		link_newest(cache, entry);
		return entry->record;
	}
	entry = vdi_calloc(1, sizeof *entry + cache->record_size);
	if (entry == NULL)
		return NULL;
	entry->key = key;
	if (cache->entries.count >= cache->count_max)
		evict_oldest(cache);
	if (vdi_hash_put(&cache->entries, key.a, &entry->key, entry, NULL) != VD_OK) {
		vdi_free(entry);
		return NULL;
	}
	link_newest(cache, entry);
	return entry->record;
}
