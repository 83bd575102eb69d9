/* xoshiro256** 1.0 and splitmix64, after the public-domain descriptions by Blackman and Vigna. Bounded
 * numbers use Lemire's multiplication with rejection, which divides only if a draw is rejected. */
#include <errno.h>
#include <sys/random.h>
#include <time.h>

#include "rand.h"

#define GOLDEN_GAMMA UINT64_C(0x9e3779b97f4a7c15)

static uint64_t mix(uint64_t value)
{
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return value ^ (value >> 31);
}

static uint64_t rotate_left(uint64_t value, int by)
{
	return (value << by) | (value >> (64 - by));
}

void vdi_rand_init(struct vdi_rand *rand, uint64_t seed)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rand->state); i++)
		rand->state[i] = mix(seed += GOLDEN_GAMMA);
}

uint64_t vdi_rand_next(struct vdi_rand *rand)
{
	uint64_t *s = rand->state;
	uint64_t  result = rotate_left(s[1] * 5, 7) * 9;
	uint64_t  t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate_left(s[3], 45);
	return result;
}

static uint64_t next_owned(void *rand)
{
	return vdi_rand_next(rand);
}

static uint64_t next_shared(void *rand)
{
	return vdi_rand_shared_next(rand);
}

static uint64_t below(uint64_t (*next)(void *rand), void *rand, uint64_t bound)
{
	unsigned __int128 product;

	VDI_CHECK(bound > 0);
	product = (unsigned __int128) next(rand) * bound;
	if ((uint64_t) product < bound) {
		uint64_t unfair = -bound % bound;

		while ((uint64_t) product < unfair)
			product = (unsigned __int128) next(rand) * bound;
	}
	return (uint64_t) (product >> 64);
}

uint64_t vdi_rand_below(struct vdi_rand *rand, uint64_t bound)
{
	return below(next_owned, rand, bound);
}

bool vdi_rand_once_in(struct vdi_rand *rand, uint64_t times)
{
	return vdi_rand_below(rand, times) == 0;
}

void vdi_rand_shared_init(struct vdi_rand_shared *rand, uint64_t seed)
{
	atomic_init(&rand->counter, mix(seed + GOLDEN_GAMMA));
}

uint64_t vdi_rand_shared_next(struct vdi_rand_shared *rand)
{
	return mix(atomic_fetch_add_explicit(&rand->counter, GOLDEN_GAMMA, memory_order_relaxed) +
		   GOLDEN_GAMMA);
}

uint64_t vdi_rand_shared_below(struct vdi_rand_shared *rand, uint64_t bound)
{
	return below(next_shared, rand, bound);
}

uint64_t vdi_rand_seed_os(void)
{
	uint64_t seed = 0;

	if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed) {
		/* Early in boot or in a sandbox there is no randomness: the time and an address are good
		 * enough to spread load. */
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		seed = mix((uint64_t) now.tv_nsec ^ ((uint64_t) now.tv_sec << 30) ^ (uintptr_t) &seed);
	}
	return seed ? seed : GOLDEN_GAMMA;
}

vd_status vdi_rand_secret_os(void *ret_bytes, size_t size)
{
	char *at = ret_bytes;

	while (size) {
		ssize_t got = getrandom(at, size, 0);

		if (got <= 0 && errno != EINTR)
			return VD_IO;
		if (got > 0) {
			at += got;
			size -= (size_t) got;
		}
	}
	return VD_OK;
}
