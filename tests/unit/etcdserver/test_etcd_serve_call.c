/* Unit tests of etcdserver/serve_call.c: which error of etcd a failure of the store becomes, and what a call
 * gets when its answer cannot be made. */
#include "etcd_server_fixture.h"
#include "vdtest.h"

struct carried {
	struct vdi_serve_call base;
	int		      finished, answered, sent, code;
	vd_status	      status; /* of send and answer */
	char		      text[256];
	size_t		      size;
};

static vd_status carry_send(struct vdi_serve_call *base, struct vd_bytes head, struct vdi_rpc_blob *blob)
{
	struct carried *call = (struct carried *) base;

	call->sent++;
	call->size = head.size + vdi_rpc_blob_size(blob);
	return call->status;
}

static void carry_finish(struct vdi_serve_call *base, int code, const char *message)
{
	struct carried *call = (struct carried *) base;

	call->finished++;
	call->code = code;
	(void) snprintf(call->text, sizeof call->text, "%s", message);
}

static vd_status carry_answer(struct vdi_serve_call *base, struct vdi_rpc_blob *blob)
{
	struct carried *call = (struct carried *) base;

	call->answered++;
	call->size = vdi_rpc_blob_size(blob);
	return call->status;
}

static const struct vdi_serve_call_ops ops = { .send = carry_send,
					       .finish = carry_finish,
					       .answer = carry_answer };

static struct carried carried(void)
{
	return (struct carried) { .base = { .ops = &ops }, .code = -1 };
}

static void failures_of_the_store_are_errors_of_etcd(void **state)
{
	static const struct {
		vd_status	  status;
		enum vd_etcd_code code;
	} rows[] = {
		{ VD_EXPIRED, VD_ETCD_COMPACTED },
		{ VD_TOO_LARGE_REVISION, VD_ETCD_FUTURE_REVISION },
		{ VD_NOT_FOUND, VD_ETCD_KEY_NOT_FOUND },
		{ VD_LEASE_NOT_FOUND, VD_ETCD_LEASE_NOT_FOUND },
		{ VD_LEASE_EXISTS, VD_ETCD_LEASE_EXIST },
		{ VD_DUPLICATE_KEY, VD_ETCD_DUPLICATE_KEY },
		{ VD_NO_SPACE, VD_ETCD_NO_SPACE },
		{ VD_TOO_BIG, VD_ETCD_REQUEST_TOO_LARGE },
		{ VD_INVALID_ARGUMENT, VD_ETCD_TOO_MANY_OPS },
		{ VD_FULL, VD_ETCD_TOO_MANY_REQUESTS },
		{ VD_CLOSED, VD_ETCD_STOPPED },
		{ VD_TIMEOUT, VD_ETCD_TIMEOUT },
		{ VD_UNAVAILABLE, VD_ETCD_UNHEALTHY },
		{ VD_IO, VD_ETCD_UNHEALTHY },
		{ VD_CORRUPT, VD_ETCD_CORRUPT },
		{ VD_NOMEM, VD_ETCD_OTHER },
		{ VD_INTERNAL, VD_ETCD_OTHER },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct carried call = carried();

		assert_int_equal(vdi_serve_code_of(rows[i].status), rows[i].code);
		vdi_serve_fail_status(&call.base, rows[i].status);
		assert_int_equal(call.finished, 1);
		if (rows[i].code == VD_ETCD_OTHER) {
			assert_int_equal(call.code, vd_status_grpc(rows[i].status));
			assert_string_equal(call.text, vd_status_sentence(rows[i].status));
		} else {
			assert_int_equal(call.code, vdi_serve_code_grpc(rows[i].code));
			assert_string_equal(call.text, vdi_serve_code_message(rows[i].code));
		}
	}
	/* The table's code is what clients make of them; on the wire these two have none. */
	assert_int_equal(vdi_serve_code_grpc(VD_ETCD_TOO_MANY_REQUESTS), VDI_RPC_UNKNOWN);
	assert_int_equal(vdi_serve_code_grpc(VD_ETCD_MEMBER_NOT_ENOUGH_STARTED), VDI_RPC_UNKNOWN);
	assert_int_equal(vdi_serve_code_grpc(VD_ETCD_NO_SPACE), VDI_RPC_RESOURCE_EXHAUSTED);
	assert_int_equal(vdi_serve_code_grpc(VD_ETCD_COMPACTED), VDI_RPC_OUT_OF_RANGE);
}

static void write_small(struct vdi_wire_out *out, const void *arg)
{
	(void) arg;
	vdi_wire_number(out, 1, 1);
}

static void write_large(struct vdi_wire_out *out, const void *arg)
{
	(void) arg;
	out->size += (size_t) INT32_MAX + 1;
}

static void an_answer_is_given_or_the_call_fails(void **state)
{
	struct carried call = carried();

	(void) state;
	vdi_serve_reply(&call.base, write_small, NULL);
	assert_int_equal(call.answered, 1);
	assert_int_equal(call.size, 2);
	assert_int_equal(call.finished, 0);

	call = carried();
	vdi_serve_reply(&call.base, write_large, NULL);
	assert_int_equal(call.answered, 0);
	assert_int_equal(call.finished, 1);
	assert_int_equal(call.code, VDI_RPC_RESOURCE_EXHAUSTED);
	assert_string_equal(call.text, "trying to send message larger than max (2147483647)");

	call = carried();
	(void) vdi_alloc_fail_nth(1, 1);
	vdi_serve_reply(&call.base, write_small, NULL);
	(void) vdi_alloc_fail_nth(0, 0);
	assert_int_equal(call.answered, 0);
	assert_int_equal(call.code, VDI_RPC_RESOURCE_EXHAUSTED);

	call = carried();
	call.status = VD_CLOSED; /* too late: there is nobody to tell */
	vdi_serve_reply(&call.base, write_small, NULL);
	assert_int_equal(call.finished, 0);

	call = carried();
	call.status = VD_FULL;
	vdi_serve_reply(&call.base, write_small, NULL);
	assert_int_equal(call.finished, 1);
	assert_string_equal(call.text, vdi_serve_code_message(VD_ETCD_TOO_MANY_REQUESTS));
	assert_int_equal(vdi_alloc_live(), 0);
}

/* A full queue does not end the call: the message is sent later. After the end nothing is sent. */
static void messages_of_a_stream(void **state)
{
	static const struct {
		vd_status status;
		int	  finished;
	} rows[] = { { VD_OK, 0 }, { VD_FULL, 0 }, { VD_CLOSED, 0 }, { VD_NOMEM, 1 } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct carried call = carried();

		call.status = rows[i].status;
		assert_status(vdi_serve_send(&call.base, vd_bytes_of("head"), NULL), rows[i].status);
		assert_int_equal(call.sent, 1);
		assert_int_equal(call.size, 4);
		assert_int_equal(call.finished, rows[i].finished);
	}
}

static void malformed_requests_have_the_text_of_grpc_go(void **state)
{
	struct carried call = carried();

	(void) state;
	vdi_serve_fail_malformed(&call.base);
	assert_int_equal(call.code, VDI_RPC_INTERNAL);
	assert_string_equal(call.text, "grpc: error unmarshalling request: proto: cannot parse invalid "
				       "wire-format data");
}

/* rules: E-465 */
static void e465_the_largest_request(void **state)
{
	struct vdi_etcdserver server = { .options = { .request_bytes_max = 1000 } };
	struct carried	      call = carried();
	char		      bytes[1000];

	(void) state;
	call.base.server = &server;
	assert_true(vdi_serve_check_size(&call.base, (struct vd_bytes) { bytes, 983 }));
	assert_int_equal(call.finished, 0);
	assert_false(vdi_serve_check_size(&call.base, (struct vd_bytes) { bytes, 984 }));
	assert_int_equal(call.finished, 1);
	assert_string_equal(call.text, vdi_serve_code_message(VD_ETCD_REQUEST_TOO_LARGE));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(failures_of_the_store_are_errors_of_etcd),
		cmocka_unit_test(an_answer_is_given_or_the_call_fails),
		cmocka_unit_test(messages_of_a_stream),
		cmocka_unit_test(malformed_requests_have_the_text_of_grpc_go),
		cmocka_unit_test(e465_the_largest_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
