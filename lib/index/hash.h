/* A hash table of pointers, for indexes by bytes or by anything else that has a hash and an equality.
 *
 * The caller hashes (vdi_hash_bytes) and says what is equal; the table stores a pointer to the caller's
 * entry, which must carry what equality needs, and never looks into it otherwise. It owns nothing. One owner,
 * or one lock: not safe for threads by itself. 12 bytes a slot, between 3/8 and 3/4 of the slots in use while
 * it grows; an empty table has no memory. Removal leaves no trace, so a table that is used for ever stays as
 * fast as a new one, and memory is given back when few entries remain.
 *
 * Keys that come from outside need a random seed, the same for the table's whole life: without it a client
 * can send keys that all collide, and make each look-up as slow as a list. vdi_hash_seed() is that seed where
 * nothing depends on the order of the table; a table that is walked takes vd_env_random(), so that a
 * simulation repeats.
 */
#ifndef VDI_HASH_H
#define VDI_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vedette/bytes.h>
#include <vedette/status.h>

/* What key points at is between the caller and this function: for an index by bytes, a struct vd_bytes. */
typedef bool (*vdi_hash_equal_fn)(const void *entry, const void *key);

/* Of sets of texts: entry and key are struct vd_bytes. */
bool vdi_hash_is_text(const void *entry, const void *key);

#define VDI_HASH_COUNT_MAX ((size_t) 1 << 30)

struct vdi_hash {
	vdi_hash_equal_fn equal;
	size_t		  count;
	size_t		  count_max;
	size_t		  capacity; /* slots: 0 or a power of two */
	void		**entries;  /* NULL: free */
	uint32_t	 *hashes;   /* in the same block */
};

/* count_max: how many entries at most, 0: VDI_HASH_COUNT_MAX. Allocates nothing. */
void vdi_hash_init(struct vdi_hash *hash, vdi_hash_equal_fn equal, size_t count_max);
/* Frees the slots, not the entries. All zero is fine. */
void vdi_hash_fini(struct vdi_hash *hash);
/* As after init. */
void vdi_hash_clear(struct vdi_hash *hash);

/* A seed that no client knows: drawn once by each process, the same ever after; never 0. Any thread. */
uint64_t vdi_hash_seed(void);

/* XXH3, 64 bits. */
uint64_t vdi_hash_bytes(struct vd_bytes bytes, uint64_t seed);

/* The entry that equals key, or NULL. */
void *vdi_hash_get(const struct vdi_hash *hash, uint64_t key_hash, const void *key);
/* Stores entry (never NULL), in place of the one that equals key. ret_replaced (may be NULL) gets that one,
 * or NULL. VD_NOMEM; VD_FULL: count_max is reached. On failure nothing has changed. */
VD_MUST_USE vd_status vdi_hash_put(struct vdi_hash *hash, uint64_t key_hash, const void *key, void *entry,
				   void **ret_replaced);
/* Takes the entry that equals key out and returns it, or NULL. Cannot fail. */
void *vdi_hash_remove(struct vdi_hash *hash, uint64_t key_hash, const void *key);
/* After VD_OK the next `more` puts cannot fail, provided nothing is removed in between. VD_NOMEM, VD_FULL. */
VD_MUST_USE vd_status vdi_hash_reserve(struct vdi_hash *hash, size_t more);

/* Walks in no order: start with *position 0; NULL at the end. The table must not change meanwhile. */
void *vdi_hash_next(const struct vdi_hash *hash, size_t *position);

#endif
