/* A real etcd whose quota (--quota-backend-bytes=8388608) fills up while many clients write: the answer to a
 * write tells the truth. etcd refuses most writes before they are proposed, but applies those that meet the
 * full quota when they are applied, and answers both in the same way. */
#include "etcd_client_fixture.h"
#include "etcd_fixture.h"

#define WRITES 16
#define VALUE_SIZE 400000

struct write {
	struct etcd_result result;
	struct vdi_wait	   wait;
	char		   key[32];
};

static bool exists(struct vd_etcd *client, const char *key)
{
	struct call_result result = call_range(client, key, VD_SECONDS(300));

	assert_status(result.status, VD_OK);
	return result.count == 1;
}

static void a_write_that_finds_no_space_may_have_happened(void **state)
{
	struct vd_etcd *client = fixture_open(NULL, NULL);
	struct write   *writes = test_calloc(WRITES, sizeof *writes);
	char	       *value = test_calloc(1, VALUE_SIZE);
	unsigned	refused = 0, carried_out = 0;

	(void) state;
	for (unsigned round = 0; refused == 0; round++) {
		for (unsigned i = 0; i < WRITES; i++) {
			struct vd_op op = { .kind = VD_OP_PUT, .value = { value, VALUE_SIZE } };

			(void) snprintf(writes[i].key, sizeof writes[i].key, "%u/%u", round, i);
			op.key = vd_bytes_of(writes[i].key);
			vdi_wait_init(&writes[i].wait, env);
			writes[i].result = (struct etcd_result) { .wait = &writes[i].wait };
			assert_status(vd_etcd_put(client,
						  &(struct vd_etcd_call) { .timeout = VD_SECONDS(300) }, &op,
						  etcd_note_op, &writes[i].result),
				      VD_OK);
		}
		for (unsigned i = 0; i < WRITES; i++) {
			bool is_there;

			vdi_wait_wait(&writes[i].wait);
			vdi_wait_fini(&writes[i].wait);
			is_there = exists(client, writes[i].key);
			if (!writes[i].result.is_error) {
				assert_true(is_there);
				continue;
			}
			assert_etcd_error(&writes[i].result, VD_NO_SPACE,
					  "etcdserver: mvcc: database space exceeded");
			assert_int_equal(writes[i].result.error.code, VD_ETCD_NO_SPACE);
			assert_true(writes[i].result.error.maybe_applied);
			assert_non_null(strchr(writes[i].result.error.endpoint, ':'));
			refused++;
			carried_out += is_there;
		}
	}
	print_message("%u writes found no space, %u of them were carried out\n", refused, carried_out);
	test_free(value);
	test_free(writes);
	vd_etcd_close_wait(client);
}

/* Setup and teardown of the whole group. */
int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_that_finds_no_space_may_have_happened),
	};

	if (getenv("ETCD_DIR") == NULL) {
		(void) fprintf(stderr, "run it under tests/integration/with-etcd.sh\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
