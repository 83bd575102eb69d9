/* Delays of keys that are added again after a failure: per key exponential, per key fast then slow, and a
 * token bucket for all keys. The owner keeps the failures of each key and locks.
 */
#ifndef VDI_RATE_LIMITER_H
#define VDI_RATE_LIMITER_H

#include <vedette/work_queue.h>

#include "base.h"

/* A token bucket whose tokens can be reserved ahead of time: the number of tokens is then negative. */
struct vdi_token_bucket {
	double	qps;
	double	burst;
	double	tokens;
	vd_mono at; /* when tokens was computed */
};

/* The bucket is full at first. */
void vdi_token_bucket_init(struct vdi_token_bucket *bucket, double qps, double burst, vd_mono now);
/* Takes a token and returns the time until it exists; 0: now. */
vd_dur vdi_token_bucket_reserve(struct vdi_token_bucket *bucket, vd_mono now);
/* Takes a token if there is one. */
bool vdi_token_bucket_take(struct vdi_token_bucket *bucket, vd_mono now);

struct vdi_rate_limiter {
	struct vd_rate_limits	limits;
	struct vdi_token_bucket bucket;
};

/* VD_INVALID_ARGUMENT: the message names the member. */
VDI_MUST_USE vd_status vdi_rate_limits_check(const struct vd_rate_limits *limits, struct vd_error *reterr);
void vdi_rate_limiter_init(struct vdi_rate_limiter *limiter, const struct vd_rate_limits *limits,
			   vd_mono now);
/* The delay of a key that had failures failures before this one. Takes a token of the bucket. */
vd_dur vdi_rate_limiter_when(struct vdi_rate_limiter *limiter, unsigned failures, vd_mono now);

#endif
