/* What an end means: E-130..E-134, E-210, E-212, E-254. */
#include "etcd_error.h"
#include "vdtest.h"

static struct vd_etcd_error of(int code, const char *message, bool local, enum vdi_etcd_context context)
{
	const struct vdi_rpc_end end = {
		.code = code, .message = message, .endpoint = "a:1", .local = local
	};
	struct vd_etcd_error error;

	vdi_etcd_error_of_end(&end, context, &error);
	return error;
}

static void e130_e132_known_by_message_never_by_code(void **state)
{
	static const struct {
		enum vd_etcd_code code;
		int		  grpc;
		vd_status	  status;
		bool		  known;
		const char	 *message;
	} rows[] = {
#define ROW(name, grpc, status, known, message) { name, grpc, status, known, message },
		VD_ETCD_ERROR_MAP(ROW)
#undef ROW
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_etcd_error right = of(rows[i].grpc, rows[i].message, false, VDI_ETCD_CONTEXT_ALIVE);
		struct vd_etcd_error wrong =
			of(VDI_RPC_UNKNOWN, rows[i].message, false, VDI_ETCD_CONTEXT_ALIVE);

		assert_int_equal(vdi_etcd_code_of(rows[i].message),
				 rows[i].known ? rows[i].code : VD_ETCD_OTHER);
		assert_int_equal(vdi_etcd_code_grpc(rows[i].code), rows[i].grpc);
		assert_status(vdi_etcd_code_status(rows[i].code), rows[i].status);
		assert_int_equal(right.grpc_code, rows[i].grpc);
		assert_int_equal(wrong.grpc_code, VDI_RPC_UNKNOWN);
		assert_string_equal(right.endpoint, "a:1");
		if (rows[i].known) {
			assert_int_equal(wrong.code, rows[i].code);
			assert_status(wrong.error.code, rows[i].status);
			assert_string_equal(right.error.message, rows[i].message);
		} else {
			assert_int_equal(right.code, VD_ETCD_OTHER);
			assert_non_null(strstr(right.error.message, "rpc error: code = "));
			assert_non_null(strstr(right.error.message, rows[i].message));
		}
	}
	/* Not by a part of it, nor with more. */
	assert_int_equal(vdi_etcd_code_of("etcdserver: mvcc: required revision has been compacted."),
			 VD_ETCD_OTHER);
	assert_int_equal(vdi_etcd_code_of("etcdserver: no"), VD_ETCD_OTHER);
}

static void e131_e132_an_unknown_status_keeps_its_text(void **state)
{
	struct vd_etcd_error error =
		of(VDI_RPC_UNKNOWN, "not a primary lessor", false, VDI_ETCD_CONTEXT_ALIVE);

	assert_string_equal(error.error.message, "rpc error: code = Unknown desc = not a primary lessor");
	assert_status(error.error.code, VD_INTERNAL);
	error = of(VDI_RPC_DEADLINE_EXCEEDED, "context deadline exceeded", false, VDI_ETCD_CONTEXT_ALIVE);
	assert_string_equal(error.error.message,
			    "rpc error: code = DeadlineExceeded desc = context deadline exceeded");
	assert_status(error.error.code, VD_TIMEOUT);
	error = of(99, "new", false, VDI_ETCD_CONTEXT_ALIVE);
	assert_string_equal(error.error.message, "rpc error: code = Unknown desc = new");
	assert_int_equal(error.grpc_code, 99);
	assert_status(of(VDI_RPC_UNIMPLEMENTED, "unknown method", false, VDI_ETCD_CONTEXT_ALIVE).error.code,
		      VD_UNSUPPORTED);
	assert_status(of(VDI_RPC_UNAVAILABLE, "connection refused", false, VDI_ETCD_CONTEXT_ALIVE).error.code,
		      VD_UNAVAILABLE);
	assert_status(of(VDI_RPC_UNAUTHENTICATED, "who?", false, VDI_ETCD_CONTEXT_ALIVE).error.code,
		      VD_FORBIDDEN);
	assert_status(of(VDI_RPC_DATA_LOSS, "bits", false, VDI_ETCD_CONTEXT_ALIVE).error.code, VD_CORRUPT);
	assert_status(of(VDI_RPC_NOT_FOUND, "unknown service", false, VDI_ETCD_CONTEXT_ALIVE).error.code,
		      VD_NOT_FOUND);
	assert_status(of(VDI_RPC_FAILED_PRECONDITION, "no", false, VDI_ETCD_CONTEXT_ALIVE).error.code,
		      VD_PRECONDITION);
}

static void e133_reasons_of_a_watch(void **state)
{
	static const struct {
		const char	 *reason;
		enum vd_etcd_code code;
		vd_status	  status;
		const char	 *message;
	} rows[] = {
		{ "etcdserver: mvcc: required revision has been compacted", VD_ETCD_COMPACTED, VD_EXPIRED,
		  "etcdserver: mvcc: required revision has been compacted" },
		{ "mvcc: watcher range is empty", VD_ETCD_OTHER, VD_CANCELED,
		  "rpc error: code = FailedPrecondition desc = mvcc: watcher range is empty" },
		{ "rpc error: code = PermissionDenied desc = etcdserver: permission denied",
		  VD_ETCD_PERMISSION_DENIED, VD_FORBIDDEN, "etcdserver: permission denied" },
		{ "rpc error: code = Unauthenticated desc = etcdserver: invalid auth token",
		  VD_ETCD_INVALID_AUTH_TOKEN, VD_FORBIDDEN, "etcdserver: invalid auth token" },
		{ "watch: code = PermissionDenied desc = etcdserver: permission denied", VD_ETCD_OTHER,
		  VD_CANCELED,
		  "rpc error: code = FailedPrecondition desc = watch: code = PermissionDenied desc = "
		  "etcdserver: permission denied" },
		{ "rpc error: code = PermissionDenied desc = ", VD_ETCD_OTHER, VD_CANCELED,
		  "rpc error: code = FailedPrecondition desc = rpc error: code = PermissionDenied desc = " },
		{ "rpc error: code = Unknown", VD_ETCD_OTHER, VD_CANCELED,
		  "rpc error: code = FailedPrecondition desc = rpc error: code = Unknown" },
		{ "rpc error: code = InvalidArgument desc = etcdserver: user name is empty",
		  VD_ETCD_USER_EMPTY, VD_FORBIDDEN, "etcdserver: user name is empty" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_etcd_error error;

		vdi_etcd_error_of_reason(vd_bytes_of(rows[i].reason), &error);
		assert_int_equal(error.code, rows[i].code);
		/* The code of an unknown reason is FailedPrecondition, as in clientv3. */
		assert_int_equal(error.grpc_code, rows[i].code == VD_ETCD_OTHER ?
							  VDI_RPC_FAILED_PRECONDITION :
							  vdi_etcd_code_grpc(rows[i].code));
		assert_string_equal(error.endpoint, "");
		assert_status(error.error.code, rows[i].status);
		assert_string_equal(error.error.message, rows[i].message);
	}
}

/* Each gRPC code has a status and a name; codes that are not gRPC's are internal errors without a name. */
static void e132_every_code_has_a_status_and_a_name(void **state)
{
	static const struct {
		vd_status   status;
		const char *name;
	} rows[] = {
		{ VD_INTERNAL, "OK" },
		{ VD_CANCELED, "Canceled" },
		{ VD_INTERNAL, "Unknown" },
		{ VD_INVALID_ARGUMENT, "InvalidArgument" },
		{ VD_TIMEOUT, "DeadlineExceeded" },
		{ VD_NOT_FOUND, "NotFound" },
		{ VD_INTERNAL, "AlreadyExists" },
		{ VD_FORBIDDEN, "PermissionDenied" },
		{ VD_FULL, "ResourceExhausted" },
		{ VD_PRECONDITION, "FailedPrecondition" },
		{ VD_INTERNAL, "Aborted" },
		{ VD_INVALID_ARGUMENT, "OutOfRange" },
		{ VD_UNSUPPORTED, "Unimplemented" },
		{ VD_INTERNAL, "Internal" },
		{ VD_UNAVAILABLE, "Unavailable" },
		{ VD_CORRUPT, "DataLoss" },
		{ VD_FORBIDDEN, "Unauthenticated" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_etcd_error error = of((int) i, "text", false, VDI_ETCD_CONTEXT_ALIVE);
		char		     wanted[80];

		(void) snprintf(wanted, sizeof wanted, "rpc error: code = %s desc = text", rows[i].name);
		assert_status(error.error.code, rows[i].status);
		assert_string_equal(error.error.message, wanted);
		assert_string_equal(vdi_etcd_grpc_name((int) i), rows[i].name);
	}
	assert_string_equal(vdi_etcd_grpc_name(-1), "Unknown");
	assert_string_equal(vdi_etcd_grpc_name((int) VDI_ARRAY_SIZE(rows)), "Unknown");
	assert_status(of(-1, "text", false, VDI_ETCD_CONTEXT_ALIVE).error.code, VD_INTERNAL);
}

/* The client's own errors keep their text; a precondition that the client itself found is not supported. The
 * same texts of a server are the server's. */
static void errors_of_the_client_itself(void **state)
{
	const char	    *text = VDI_ETCD_OWN_PREFIX "no";
	struct vd_etcd_error error = of(VDI_RPC_FAILED_PRECONDITION, text, true, VDI_ETCD_CONTEXT_ALIVE);

	assert_status(error.error.code, VD_UNSUPPORTED);
	assert_string_equal(error.error.message, text);
	error = of(VDI_RPC_UNAVAILABLE, text, true, VDI_ETCD_CONTEXT_ALIVE);
	assert_status(error.error.code, VD_UNAVAILABLE);
	assert_string_equal(error.error.message, text);
	error = of(VDI_RPC_FAILED_PRECONDITION, text, false, VDI_ETCD_CONTEXT_ALIVE);
	assert_status(error.error.code, VD_PRECONDITION);
	assert_string_equal(error.error.message,
			    "rpc error: code = FailedPrecondition desc = " VDI_ETCD_OWN_PREFIX "no");
	error = of(VDI_RPC_FAILED_PRECONDITION, "no", true, VDI_ETCD_CONTEXT_ALIVE);
	assert_status(error.error.code, VD_PRECONDITION);
	assert_string_equal(error.error.message, "rpc error: code = FailedPrecondition desc = no");
	/* Only the client's own lack of memory is VD_NOMEM. */
	assert_status(of(VDI_RPC_RESOURCE_EXHAUSTED, VDI_ETCD_NO_MEMORY_TEXT, false, VDI_ETCD_CONTEXT_ALIVE)
			      .error.code,
		      VD_FULL);
}

/* What the client ends itself was never sent. */
static void an_end_of_the_client_itself(void **state)
{
	struct vdi_etcd_end end;

	vdi_etcd_end_own(&end, VDI_RPC_UNAVAILABLE, "down");
	assert_int_equal(end.end.code, VDI_RPC_UNAVAILABLE);
	assert_string_equal(end.end.message, "down");
	assert_string_equal(end.end.endpoint, "");
	assert_true(end.end.unsent && end.end.local);
	/* Without texts they are empty. */
	vdi_etcd_end_copy(&end, &(struct vdi_rpc_end) { .code = VDI_RPC_UNKNOWN });
	assert_int_equal(end.end.code, VDI_RPC_UNKNOWN);
	assert_string_equal(end.end.message, "");
	assert_string_equal(end.end.endpoint, "");
	assert_false(end.end.unsent || end.end.local);
}

static void e134_size_limits(void **state)
{
	assert_status(of(VDI_RPC_RESOURCE_EXHAUSTED,
			 "grpc: received message larger than max (2200011 vs. 2097152)", false,
			 VDI_ETCD_CONTEXT_ALIVE)
			      .error.code,
		      VD_TOO_BIG);
	assert_status(of(VDI_RPC_RESOURCE_EXHAUSTED, "Received message larger than max (5 vs. 4)", false,
			 VDI_ETCD_CONTEXT_ALIVE)
			      .error.code,
		      VD_TOO_BIG);
	assert_status(of(VDI_RPC_RESOURCE_EXHAUSTED, "trying to send message larger than max (5 vs. 4)", true,
			 VDI_ETCD_CONTEXT_ALIVE)
			      .error.code,
		      VD_TOO_BIG);
	assert_status(of(VDI_RPC_RESOURCE_EXHAUSTED, "quota", false, VDI_ETCD_CONTEXT_ALIVE).error.code,
		      VD_FULL);
	assert_status(of(VDI_RPC_RESOURCE_EXHAUSTED, VDI_ETCD_NO_MEMORY_TEXT, true, VDI_ETCD_CONTEXT_ALIVE)
			      .error.code,
		      VD_NOMEM);
}

static void e210_the_context_speaks_for_itself(void **state)
{
	assert_string_equal(of(VDI_RPC_DEADLINE_EXCEEDED, "Deadline Exceeded", true, VDI_ETCD_CONTEXT_TIMEOUT)
				    .error.message,
			    "context deadline exceeded");
	assert_status(of(VDI_RPC_CANCELED, "CANCELLED", true, VDI_ETCD_CONTEXT_TIMEOUT).error.code,
		      VD_TIMEOUT);
	assert_string_equal(of(VDI_RPC_CANCELED, "CANCELLED", true, VDI_ETCD_CONTEXT_CANCELED).error.message,
			    "context canceled");
	assert_status(of(VDI_RPC_CANCELED, "CANCELLED", true, VDI_ETCD_CONTEXT_CLOSED).error.code, VD_CLOSED);
	/* A typed error wins, and so does any other code. */
	assert_status(of(VDI_RPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted",
			 false, VDI_ETCD_CONTEXT_TIMEOUT)
			      .error.code,
		      VD_EXPIRED);
	assert_status(of(VDI_RPC_UNAVAILABLE, "gone", false, VDI_ETCD_CONTEXT_CANCELED).error.code,
		      VD_UNAVAILABLE);
}

static void e212_connection_canceled(void **state)
{
	const struct vdi_rpc_end canceled = { .code = VDI_RPC_CANCELED, .message = "x", .endpoint = "" };
	const struct vdi_rpc_end closing = { .code = VDI_RPC_UNAVAILABLE,
					     .message = "transport is closing",
					     .endpoint = "" };
	const struct vdi_rpc_end client = { .code = VDI_RPC_UNKNOWN,
					    .message = "a: grpc: the client connection is closing",
					    .endpoint = "" };
	const struct vdi_rpc_end other = { .code = VDI_RPC_UNAVAILABLE,
					   .message = "transport is closing now",
					   .endpoint = "" };

	assert_true(vdi_etcd_is_connection_canceled(&canceled) && vdi_etcd_is_connection_canceled(&closing) &&
		    vdi_etcd_is_connection_canceled(&client));
	assert_false(vdi_etcd_is_connection_canceled(&other));
}

static void e254_e255_halt(void **state)
{
	static const struct {
		int	    code;
		const char *message;
		bool	    is_halt;
	} rows[] = {
		{ VDI_RPC_OK, "", true },
		{ VDI_RPC_UNAVAILABLE, "connection reset", false },
		{ VDI_RPC_UNAVAILABLE, "etcdserver: leader changed", false },
		{ VDI_RPC_UNAVAILABLE, "etcdserver: no leader", true },
		{ VDI_RPC_INTERNAL, "stream error", false },
		{ VDI_RPC_INTERNAL, "etcdserver: no leader", false },
		{ VDI_RPC_RESOURCE_EXHAUSTED, "too large", true },
		{ VDI_RPC_CANCELED, "", true },
		{ VDI_RPC_UNKNOWN, "", true },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const struct vdi_rpc_end end = { .code = rows[i].code,
						 .message = rows[i].message,
						 .endpoint = "" };

		assert_int_equal(vdi_etcd_is_halt(&end), rows[i].is_halt);
	}
}

static void long_texts_are_cut(void **state)
{
	static char	     text[2000];
	struct vdi_etcd_end  copy;
	struct vdi_rpc_end   end = { .code = VDI_RPC_UNKNOWN, .message = text, .endpoint = text };
	struct vd_etcd_error error;

	memset(text, 'x', sizeof text - 1);
	vdi_etcd_end_copy(&copy, &end);
	assert_int_equal(strlen(copy.end.message), VD_ERROR_MESSAGE_SIZE - 1);
	assert_int_equal(strlen(copy.end.endpoint), 127);
	vdi_etcd_error_of_end(&end, VDI_ETCD_CONTEXT_ALIVE, &error);
	assert_int_equal(strlen(error.endpoint), 127);
	vdi_etcd_error_of_reason(vd_bytes_of(text), &error);
	assert_status(vdi_etcd_error_set(&error, VD_IO, "%s", text), VD_IO);
	assert_int_equal(error.grpc_code, 13);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e130_e132_known_by_message_never_by_code),
		cmocka_unit_test(e131_e132_an_unknown_status_keeps_its_text),
		cmocka_unit_test(e133_reasons_of_a_watch),
		cmocka_unit_test(e132_every_code_has_a_status_and_a_name),
		cmocka_unit_test(errors_of_the_client_itself),
		cmocka_unit_test(an_end_of_the_client_itself),
		cmocka_unit_test(e134_size_limits),
		cmocka_unit_test(e210_the_context_speaks_for_itself),
		cmocka_unit_test(e212_connection_canceled),
		cmocka_unit_test(e254_e255_halt),
		cmocka_unit_test(long_texts_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
