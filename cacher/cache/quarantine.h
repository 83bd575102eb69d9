/* The stored keys that cannot be decoded and are left out (O-20), with the reason.
 *
 * Any thread; own lock, a leaf. At most VDI_QUARANTINE_MAX keys are kept; more are only counted. A key leaves
 * when a readable state of it comes, when it is deleted, and when everything is listed again.
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
	_Atomic uint64_t	 total; /* undecodable states that ever came */
	struct vdi_quarantined **keys;
	size_t			 capacity;
};

void vdi_quarantine_init(struct vdi_quarantine *quarantine);
void vdi_quarantine_fini(struct vdi_quarantine *quarantine);
/* Without memory it is only counted. */
void vdi_quarantine_add(struct vdi_quarantine *quarantine, struct vd_bytes key, vd_rev revision,
			const char *error);
/* The state of that revision can be read, or is none. A newer state that cannot be read keeps the key
 * here. */
void vdi_quarantine_remove(struct vdi_quarantine *quarantine, struct vd_bytes key, vd_rev revision);
/* Whether keys of this namespace may be here: one begins with prefix, namespace_name and '/', or there are
 * more than are kept. *ret_error says so in a sentence. */
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
