/* The stored keys that cannot be decoded and are left out of the cache, with the reason.
 *
 * Any thread; own lock, a leaf. At most VDI_QUARANTINE_MAX keys are kept; others are only counted. A key is
 * removed when a decodable version of it arrives, when it is deleted, and when the store is listed again.
 */
#ifndef VDI_QUARANTINE_H
#define VDI_QUARANTINE_H

#include <stdatomic.h>

#include "base.h"
#include "buffer.h"
#include "lock.h"

#define VDI_QUARANTINE_MAX 4096

struct vdi_quarantined;

struct vdi_quarantine {
	struct vdi_lock		 lock;
	_Atomic size_t		 count; /* written under lock */
	_Atomic uint64_t	 total; /* undecodable versions ever received */
	struct vdi_quarantined **keys;
	size_t			 capacity;
};

void vdi_quarantine_init(struct vdi_quarantine *quarantine);
void vdi_quarantine_fini(struct vdi_quarantine *quarantine);
/* Adds a key. If memory is short, it is only counted. */
void vdi_quarantine_add(struct vdi_quarantine *quarantine, struct vd_bytes key, vd_rev revision,
			const char *error);
/* Removes a key because its version at revision is decodable or a deletion. A newer undecodable version keeps
 * the key. */
void vdi_quarantine_remove(struct vdi_quarantine *quarantine, struct vd_bytes key, vd_rev revision);
/* Returns true if keys of this namespace may be quarantined: one starts with prefix, namespace_name and '/',
 * or there are more than are kept. *ret_error then describes it. */
bool vdi_quarantine_holds(struct vdi_quarantine *quarantine, struct vd_bytes prefix,
			  struct vd_bytes namespace_name, struct vd_error *ret_error);
void vdi_quarantine_clear(struct vdi_quarantine *quarantine);
/* `{"count":..,"total":..,"keys":[{"key":..,"revision":..,"error":..}]}` with the first shown_max keys. */
void vdi_quarantine_dump(struct vdi_quarantine *quarantine, size_t shown_max, struct vdi_buffer *buffer);

static inline size_t vdi_quarantine_count(const struct vdi_quarantine *quarantine)
{
	return atomic_load_explicit(&quarantine->count, memory_order_relaxed);
}

#endif
