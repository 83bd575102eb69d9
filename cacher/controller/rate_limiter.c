/* The delays are those of client-go's limiters. A delay doubles by shifting until it would pass its maximum,
 * so it cannot overflow. The bucket adds the tokens of the time since its last use and then takes one; with
 * less than zero tokens the caller waits until the bucket would have reached zero again. */
#include "rate_limiter.h"

/* One year: a longer delay is of no use, and sums of it with a time do not overflow. */
#define DELAY_MAX_NS ((int64_t) 365 * 86400 * 1000000000)

static void refill(struct vdi_token_bucket *bucket, vd_mono now)
{
	double elapsed_s = (double) vd_mono_since(now, bucket->at).ns / 1e9;

	if (elapsed_s > 0) {
		bucket->tokens = VDI_MIN(bucket->burst, bucket->tokens + elapsed_s * bucket->qps);
		bucket->at = now;
	}
}

void vdi_token_bucket_init(struct vdi_token_bucket *bucket, double qps, double burst, vd_mono now)
{
	*bucket = (struct vdi_token_bucket) { .qps = qps, .burst = burst, .tokens = burst, .at = now };
}

vd_dur vdi_token_bucket_reserve(struct vdi_token_bucket *bucket, vd_mono now)
{
	double delay_ns;

	refill(bucket, now);
	bucket->tokens -= 1;
	if (bucket->tokens >= 0)
		return (vd_dur) { 0 };
	delay_ns = -bucket->tokens / bucket->qps * 1e9;
	return (vd_dur) { delay_ns < (double) DELAY_MAX_NS ? (int64_t) delay_ns : DELAY_MAX_NS };
}

bool vdi_token_bucket_take(struct vdi_token_bucket *bucket, vd_mono now)
{
	refill(bucket, now);
	/* Sums of fractions may miss a whole token by a rounding error. */
	if (bucket->tokens < 1 - 1e-9)
		return false;
	bucket->tokens -= 1;
	return true;
}

static vd_status check_duration(const char *name, vd_dur duration, struct vd_error *reterr)
{
	if (duration.ns < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "limits.%s is %lld ns, must be 0 or more",
				    name, (long long) duration.ns);
	return VD_OK;
}

vd_status vdi_rate_limits_check(const struct vd_rate_limits *limits, struct vd_error *reterr)
{
	VDI_TRY(check_duration("failure_base", limits->failure_base, reterr));
	VDI_TRY(check_duration("failure_max", limits->failure_max, reterr));
	VDI_TRY(check_duration("fast", limits->fast, reterr));
	VDI_TRY(check_duration("slow", limits->slow, reterr));
	VDI_TRY(check_duration("delay_max", limits->delay_max, reterr));
	if (limits->failure_max.ns < limits->failure_base.ns)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "limits.failure_max is less than limits.failure_base");
	/* Negated, so that NaN is refused too. */
	if (!(limits->qps >= 0 && limits->qps <= 1e9))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "limits.qps is %g, must be 0 to 1e9",
				    limits->qps);
	if (limits->qps > 0 && limits->burst == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "limits.burst is 0 but limits.qps is %g: must be 1 or more", limits->qps);
	return VD_OK;
}

void vdi_rate_limiter_init(struct vdi_rate_limiter *limiter, const struct vd_rate_limits *limits, vd_mono now)
{
	limiter->limits = *limits;
	vdi_token_bucket_init(&limiter->bucket, limits->qps, limits->burst, now);
}

static int64_t exponential(const struct vd_rate_limits *limits, unsigned failures)
{
	int64_t delay = limits->failure_base.ns;

	for (; failures && delay <= limits->failure_max.ns / 2; failures--)
		delay *= 2;
	return failures ? limits->failure_max.ns : delay;
}

vd_dur vdi_rate_limiter_when(struct vdi_rate_limiter *limiter, unsigned failures, vd_mono now)
{
	const struct vd_rate_limits *limits = &limiter->limits;
	int64_t			     delay = 0;

	if (limits->failure_base.ns)
		delay = exponential(limits, failures);
	if (limits->fast_attempts)
		delay = VDI_MAX(delay, failures < limits->fast_attempts ? limits->fast.ns : limits->slow.ns);
	if (limits->qps > 0)
		delay = VDI_MAX(delay, vdi_token_bucket_reserve(&limiter->bucket, now).ns);
	if (limits->delay_max.ns)
		delay = VDI_MIN(delay, limits->delay_max.ns);
	return (vd_dur) { VDI_MIN(delay, DELAY_MAX_NS) };
}
