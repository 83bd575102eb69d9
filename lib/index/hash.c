/* Open addressing with linear probing. An entry is in its home slot (hash modulo capacity) or in the unbroken
 * run of slots after it. Removal closes the gap by moving entries back (Knuth 6.4, algorithm R), so there are
 * no tombstones, and a miss ends at the first free slot. Half of the hash is stored beside the pointers:
 * growing does not need the caller, and entries are accessed only if it is equal. A load of at most 3/4 keeps
 * runs short; below 1/8 the table shrinks, if memory is available. */
#include "hash.h"

#include <xxhash.h>

#include "base.h"
#include "rand.h"

enum { CAPACITY_MIN = 8 };

bool vdi_hash_is_text(const void *entry, const void *key)
{
	return vd_bytes_equal(*(const struct vd_bytes *) entry, *(const struct vd_bytes *) key);
}

void vdi_hash_init(struct vdi_hash *hash, vdi_hash_equal_fn equal, size_t count_max)
{
	VDI_CHECK(count_max <= VDI_HASH_COUNT_MAX);
	*hash = (struct vdi_hash) { .equal = equal, .count_max = count_max ? count_max : VDI_HASH_COUNT_MAX };
}

void vdi_hash_clear(struct vdi_hash *hash)
{
	vdi_free(hash->entries);
	hash->entries = NULL;
	hash->hashes = NULL;
	hash->count = hash->capacity = 0;
}

void vdi_hash_fini(struct vdi_hash *hash)
{
	vdi_hash_clear(hash);
}

uint64_t vdi_hash_seed(void)
{
	static _Atomic uint64_t process_seed;
	uint64_t		seed = atomic_load_explicit(&process_seed, memory_order_relaxed), mine;

	if (seed)
		return seed;
	mine = vdi_rand_seed_os();
	return atomic_compare_exchange_strong(&process_seed, &seed, mine) ? mine : seed;
}

uint64_t vdi_hash_bytes(struct vd_bytes bytes, uint64_t seed)
{
	return XXH3_64bits_withSeed(bytes.data, bytes.size, seed);
}

/* Returns the slot of key's entry, or the free slot for it. There is always a free one. */
static size_t find_slot(const struct vdi_hash *hash, uint32_t key_hash, const void *key)
{
	size_t mask = hash->capacity - 1, slot = key_hash & mask;

	while (hash->entries[slot] &&
	       !(hash->hashes[slot] == key_hash && hash->equal(hash->entries[slot], key)))
		slot = (slot + 1) & mask;
	return slot;
}

static bool resize(struct vdi_hash *hash, size_t capacity)
{
	void	**entries = vdi_calloc(capacity, sizeof *entries + sizeof *hash->hashes);
	uint32_t *hashes;

	if (entries == NULL)
		return false;
	hashes = (uint32_t *) (entries + capacity);
	for (size_t i = 0; i < hash->capacity; i++) {
		size_t slot = hash->hashes[i] & (capacity - 1);

		if (hash->entries[i] == NULL)
			continue;
		while (entries[slot])
			slot = (slot + 1) & (capacity - 1);
		entries[slot] = hash->entries[i];
		hashes[slot] = hash->hashes[i];
	}
	vdi_free(hash->entries);
	hash->entries = entries;
	hash->hashes = hashes;
	hash->capacity = capacity;
	return true;
}

vd_status vdi_hash_reserve(struct vdi_hash *hash, size_t more)
{
	size_t capacity = VDI_MAX(hash->capacity, (size_t) CAPACITY_MIN);

	if (more > hash->count_max - hash->count)
		return VD_FULL;
	while (hash->count + more > capacity / 4 * 3)
		capacity *= 2;
	return capacity == hash->capacity || resize(hash, capacity) ? VD_OK : VD_NOMEM;
}

void *vdi_hash_get(const struct vdi_hash *hash, uint64_t key_hash, const void *key)
{
	return hash->count ? hash->entries[find_slot(hash, (uint32_t) key_hash, key)] : NULL;
}

vd_status vdi_hash_put(struct vdi_hash *hash, uint64_t key_hash, const void *key, void *entry,
		       void **ret_replaced)
{
	size_t slot;
	void  *replaced = NULL;

	VDI_CHECK(entry != NULL);
	if (hash->count) {
		slot = find_slot(hash, (uint32_t) key_hash, key);
		replaced = hash->entries[slot];
	}
	if (replaced == NULL) {
		VDI_TRY(vdi_hash_reserve(hash, 1));
		slot = find_slot(hash, (uint32_t) key_hash, key);
		hash->count++;
	}
	hash->entries[slot] = entry;
	hash->hashes[slot] = (uint32_t) key_hash;
	if (ret_replaced)
		*ret_replaced = replaced;
	return VD_OK;
}

/* Moves the entries of the run after the free slot back, each at most to its home. */
static void close_gap(struct vdi_hash *hash, size_t gap)
{
	size_t mask = hash->capacity - 1;

	for (size_t slot = (gap + 1) & mask; hash->entries[slot]; slot = (slot + 1) & mask) {
		if (((slot - hash->hashes[slot]) & mask) < ((slot - gap) & mask))
			continue; /* its home is behind the gap */
		hash->entries[gap] = hash->entries[slot];
		hash->hashes[gap] = hash->hashes[slot];
		hash->entries[slot] = NULL;
		gap = slot;
	}
}

void *vdi_hash_remove(struct vdi_hash *hash, uint64_t key_hash, const void *key)
{
	size_t slot;
	void  *entry;

	if (hash->count == 0)
		return NULL;
	slot = find_slot(hash, (uint32_t) key_hash, key);
	entry = hash->entries[slot];
	if (entry == NULL)
		return NULL;
	hash->entries[slot] = NULL;
	hash->count--;
	close_gap(hash, slot);
	if (hash->count == 0)
		vdi_hash_clear(hash);
	else if (hash->capacity > CAPACITY_MIN && hash->count < hash->capacity / 8)
		(void) resize(hash, VDI_MAX(hash->capacity / 4,
					    (size_t) CAPACITY_MIN)); /* out of memory: it keeps its size */
	return entry;
}

void *vdi_hash_next(const struct vdi_hash *hash, size_t *position)
{
	while (*position < hash->capacity) {
		void *entry = hash->entries[(*position)++];

		if (entry)
			return entry;
	}
	return NULL;
}
