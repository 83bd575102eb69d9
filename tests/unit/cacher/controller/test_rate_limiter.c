/* Delays of keys that failed: the numbers of client-go's own tests. */
#include <math.h>

#include "rate_limiter.h"
#include "vdtest.h"

static const vd_mono start = { (int64_t) 1000 * 1000000000 };

static struct vdi_rate_limiter limiter_of(struct vd_rate_limits limits)
{
	struct vdi_rate_limiter limiter;
	struct vd_error		error;

	assert_status(vdi_rate_limits_check(&limits, &error), VD_OK);
	vdi_rate_limiter_init(&limiter, &limits, start);
	return limiter;
}

static int64_t when_ms(struct vdi_rate_limiter *limiter, unsigned failures)
{
	return vdi_rate_limiter_when(limiter, failures, start).ns / 1000000;
}

static void k130_the_delay_of_a_key_doubles_up_to_its_maximum(void **state)
{
	struct vdi_rate_limiter limiter = limiter_of(
		(struct vd_rate_limits) { .failure_base = VD_MS(1), .failure_max = VD_SECONDS(1) });
	static const int64_t expected_ms[] = { 1, 2, 4, 8, 16 };

	for (unsigned i = 0; i < VDI_ARRAY_SIZE(expected_ms); i++)
		assert_int_equal(when_ms(&limiter, i), expected_ms[i]);
	assert_int_equal(when_ms(&limiter, 9), 512);
	assert_int_equal(when_ms(&limiter, 10), 1000);
	assert_int_equal(when_ms(&limiter, 11), 1000);
}

static void k131_a_delay_never_overflows(void **state)
{
	struct vdi_rate_limiter limiter = limiter_of(
		(struct vd_rate_limits) { .failure_base = VD_MS(1), .failure_max = VD_SECONDS(1000) });
	struct vdi_rate_limiter largest = limiter_of(
		(struct vd_rate_limits) { .failure_base = { INT64_MAX / 2 }, .failure_max = { INT64_MAX } });
	int64_t year_ms = (int64_t) 365 * 86400 * 1000;

	assert_int_equal(when_ms(&limiter, 5), 32);
	assert_int_equal(when_ms(&limiter, 19), 524288);
	assert_int_equal(when_ms(&limiter, 20), 1000000);
	assert_int_equal(when_ms(&limiter, 1000), 1000000);
	assert_int_equal(when_ms(&limiter, UINT32_MAX), 1000000);
	assert_int_equal(when_ms(&largest, 0), year_ms);
	assert_int_equal(when_ms(&largest, 7), year_ms);
}

static void k132_the_first_failures_are_fast_and_further_ones_slow(void **state)
{
	struct vdi_rate_limiter limiter = limiter_of(
		(struct vd_rate_limits) { .fast_attempts = 3, .fast = VD_MS(5), .slow = VD_SECONDS(10) });

	assert_int_equal(when_ms(&limiter, 0), 5);
	assert_int_equal(when_ms(&limiter, 1), 5);
	assert_int_equal(when_ms(&limiter, 2), 5);
	assert_int_equal(when_ms(&limiter, 3), 10000);
	assert_int_equal(when_ms(&limiter, 4), 10000);
}

static void k133_the_longest_delay_of_several_limits_counts(void **state)
{
	struct vdi_rate_limiter limiter = limiter_of((struct vd_rate_limits) {
		.failure_base = VD_MS(1),
		.failure_max = VD_SECONDS(100),
		.fast_attempts = 3,
		.fast = VD_MS(3),
		.slow = VD_SECONDS(1),
	});

	assert_int_equal(when_ms(&limiter, 0), 3);
	assert_int_equal(when_ms(&limiter, 1), 3);
	assert_int_equal(when_ms(&limiter, 2), 4);
	assert_int_equal(when_ms(&limiter, 3), 1000);
	assert_int_equal(when_ms(&limiter, 11), 2048);
}

static void k134_a_maximum_limits_the_delay(void **state)
{
	struct vdi_rate_limiter limiter =
		limiter_of((struct vd_rate_limits) { .fast_attempts = 2,
						     .fast = VD_MS(5),
						     .slow = VD_SECONDS(1000),
						     .delay_max = VD_SECONDS(500) });

	assert_int_equal(when_ms(&limiter, 1), 5);
	assert_int_equal(when_ms(&limiter, 2), 500000);
}

static void k136_a_bucket_delays_all_keys_together(void **state)
{
	struct vdi_rate_limiter limiter = limiter_of((struct vd_rate_limits) { .qps = 10, .burst = 3 });
	vd_mono			later = vd_mono_add(start, VD_MS(1000));

	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(when_ms(&limiter, 0), 0);
	assert_int_equal(when_ms(&limiter, 0), 100);
	assert_int_equal(when_ms(&limiter, 7), 200);
	/* Ten tokens came, two of them were reserved; at most three are kept. */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(vdi_rate_limiter_when(&limiter, 0, later).ns, 0);
	assert_int_equal(vdi_rate_limiter_when(&limiter, 0, later).ns / 1000000, 100);
}

static void a_bucket_without_tokens_refuses(void **state)
{
	struct vdi_token_bucket bucket;

	vdi_token_bucket_init(&bucket, 1. / 300, 25, start);
	for (unsigned i = 0; i < 25; i++)
		assert_true(vdi_token_bucket_take(&bucket, start));
	assert_false(vdi_token_bucket_take(&bucket, start));
	assert_false(vdi_token_bucket_take(&bucket, vd_mono_add(start, VD_SECONDS(299))));
	assert_true(vdi_token_bucket_take(&bucket, vd_mono_add(start, VD_SECONDS(300))));
	assert_false(vdi_token_bucket_take(&bucket, vd_mono_add(start, VD_SECONDS(301))));
}

static void wrong_limits_are_named(void **state)
{
	static const struct {
		struct vd_rate_limits limits;
		const char	     *message;
	} cases[] = {
		{ { .failure_base = { -1 } }, "limits.failure_base is -1 ns, must be 0 or more" },
		{ { .slow = { -2 } }, "limits.slow is -2 ns, must be 0 or more" },
		{ { .failure_base = { 2 }, .failure_max = { 1 } },
		  "limits.failure_max is less than limits.failure_base" },
		{ { .qps = -1 }, "limits.qps is -1, must be 0 to 1e9" },
		{ { .qps = 1 }, "limits.burst is 0 but limits.qps is 1: must be 1 or more" },
	};

	for (unsigned i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct vd_error error;

		assert_status(vdi_rate_limits_check(&cases[i].limits, &error), VD_INVALID_ARGUMENT);
		assert_string_equal(error.message, cases[i].message);
	}
}

/* The bounds belong to what is allowed; what lies behind them does not, nor does what is no number. */
static void limits_at_their_bounds(void **state)
{
	struct vd_rate_limits limits = { .failure_base = { 2 }, .failure_max = { 2 }, .burst = 1 };
	struct vd_error	      error;

	assert_status(vdi_rate_limits_check(&limits, &error), VD_OK);
	limits.qps = 1e9;
	assert_status(vdi_rate_limits_check(&limits, &error), VD_OK);
	limits.qps = 1e9 + 1;
	assert_status(vdi_rate_limits_check(&limits, &error), VD_INVALID_ARGUMENT);
	limits.qps = nan("");
	assert_status(vdi_rate_limits_check(&limits, &error), VD_INVALID_ARGUMENT);
	limits.qps = 0;
	limits.burst = 0;
	assert_status(vdi_rate_limits_check(&limits, &error), VD_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(k130_the_delay_of_a_key_doubles_up_to_its_maximum),
		cmocka_unit_test(k131_a_delay_never_overflows),
		cmocka_unit_test(k132_the_first_failures_are_fast_and_further_ones_slow),
		cmocka_unit_test(k133_the_longest_delay_of_several_limits_counts),
		cmocka_unit_test(k134_a_maximum_limits_the_delay),
		cmocka_unit_test(k136_a_bucket_delays_all_keys_together),
		cmocka_unit_test(a_bucket_without_tokens_refuses),
		cmocka_unit_test(wrong_limits_are_named),
		cmocka_unit_test(limits_at_their_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
