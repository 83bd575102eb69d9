/* A hash table of pointers, for indexes by bytes or by any key with a hash and an equality.
 *
 * The caller hashes (vdi_hash_bytes) and defines equality; the table stores a pointer to the caller's entry,
 * which must contain what equality needs. The table owns nothing. Not thread-safe: one owner, or one lock. 12
 * bytes per slot; 3/8 to 3/4 of the slots are used while it grows; an empty table has no memory. Removal
 * leaves no tombstones, so the table does not slow down over time, and it shrinks when few entries remain.
 *
 * Keys from clients need a random seed, fixed for the life of the table: without it a client can send keys
 * that all collide, and make each lookup as slow as a list. Use vdi_hash_seed() if nothing depends on the
 * order of the table; a table that is walked uses vd_env_random(), so that a simulation is reproducible.
 */
#ifndef VDI_HASH_H
#define VDI_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vedette/bytes.h>
#include <vedette/status.h>

/* The caller and this function define what key points to: for an index by bytes, a struct vd_bytes. */
typedef bool (*vdi_hash_equal_fn)(const void *entry, const void *key);

/* Equality for sets of texts: entry and key are struct vd_bytes. */
bool vdi_hash_is_text(const void *entry, const void *key);

#define VDI_HASH_COUNT_MAX ((size_t) 1 << 30)

struct vdi_hash {
	vdi_hash_equal_fn equal;
	size_t		  count;
	size_t		  count_max;
	size_t		  capacity; /* slots: 0 or a power of two */
	void		**entries;  /* NULL: free slot */
	uint32_t	 *hashes;   /* in the same block */
};

/* count_max: maximum entries, 0: VDI_HASH_COUNT_MAX. Does not allocate. */
void vdi_hash_init(struct vdi_hash *hash, vdi_hash_equal_fn equal, size_t count_max);
/* Frees the slots, not the entries. A zeroed table is allowed. */
void vdi_hash_fini(struct vdi_hash *hash);
/* The state is as after init. */
void vdi_hash_clear(struct vdi_hash *hash);

/* A random seed that clients cannot know, constant for the process; never 0. Any thread. */
uint64_t vdi_hash_seed(void);

/* XXH3, 64 bits. */
uint64_t vdi_hash_bytes(struct vd_bytes bytes, uint64_t seed);

/* Returns the entry that equals key, or NULL. */
void *vdi_hash_get(const struct vdi_hash *hash, uint64_t key_hash, const void *key);
/* Stores entry (never NULL), replacing the one that equals key. ret_replaced (may be NULL) gets the replaced
 * entry, or NULL. VD_NOMEM; VD_FULL: count_max is reached. On failure the table is unchanged. */
VD_MUST_USE vd_status vdi_hash_put(struct vdi_hash *hash, uint64_t key_hash, const void *key, void *entry,
				   void **ret_replaced);
/* Removes the entry that equals key and returns it, or NULL. Cannot fail. */
void *vdi_hash_remove(struct vdi_hash *hash, uint64_t key_hash, const void *key);
/* After VD_OK the next `more` puts cannot fail, if nothing is removed in between. VD_NOMEM, VD_FULL. */
VD_MUST_USE vd_status vdi_hash_reserve(struct vdi_hash *hash, size_t more);

/* Walks in no order: start with *position 0; NULL at the end. The table must not change during the walk. */
void *vdi_hash_next(const struct vdi_hash *hash, size_t *position);

#endif
