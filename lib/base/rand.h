/* Seeded random numbers. Not for secrets, except vdi_rand_secret_os.
 *
 * struct vdi_rand has one owner (xoshiro256**); struct vdi_rand_shared may be used by several threads at once
 * (an atomic counter through the splitmix64 mixer). Equal seeds give equal sequences on every machine.
 */
#ifndef VDI_RAND_H
#define VDI_RAND_H

#include <stdatomic.h>

#include "base.h"

struct vdi_rand {
	uint64_t state[4];
};

struct vdi_rand_shared {
	_Atomic uint64_t counter;
};

void	 vdi_rand_init(struct vdi_rand *rand, uint64_t seed);
uint64_t vdi_rand_next(struct vdi_rand *rand);
/* Uniform in [0, bound), unbiased; bound > 0. */
uint64_t vdi_rand_below(struct vdi_rand *rand, uint64_t bound);
/* True once in `times` on average; times > 0. */
bool vdi_rand_once_in(struct vdi_rand *rand, uint64_t times);

void	 vdi_rand_shared_init(struct vdi_rand_shared *rand, uint64_t seed);
uint64_t vdi_rand_shared_next(struct vdi_rand_shared *rand);
uint64_t vdi_rand_shared_below(struct vdi_rand_shared *rand, uint64_t bound);

/* A seed from the operating system; never 0. */
uint64_t vdi_rand_seed_os(void);
/* Unpredictable bytes for secrets: tokens, salts. VD_IO: the operating system provides none. */
VDI_MUST_USE vd_status vdi_rand_secret_os(void *ret_bytes, size_t size);

#endif
