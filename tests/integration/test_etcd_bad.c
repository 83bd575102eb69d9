/* The etcd client with servers that are not etcd: a port that sends nothing, web servers, garbage, endless
 * headers (tests/peers/etcd_bad.go).
 *
 * In each case a call ends at its deadline at the latest with a useful error, a watch receives nothing, the
 * client can be closed, and memory does not grow. With a good and a bad server, calls reach the good one.
 */
#include <unistd.h>

#include "etcd_fixture.h"
#include "rpc_etcd_options.h"
#include "sanitizer.h"

#define CALL_TIMEOUT VD_MS(1500)
#define RSS_GROWTH_MAX (96 << 20) /* of all kinds together, several of which send without end */

static long resident_bytes(void)
{
	long  pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%*s %ld", &pages), 1);
	fclose(file);
	return pages * sysconf(_SC_PAGESIZE);
}

struct bad_kind {
	const char *kind;
	/* an empty message at the end: a valid answer in spite of everything else */
	bool is_answer;
	bool is_transport; /* fails such that a call may be sent to another server (E-207) */
};

static const struct bad_kind kinds[] = {
	{ "silent", false, true },
	{ "close", false, true },
	{ "http1", false, true },
	{ "garbage", false, true },
	{ "text", false, true },
	{ "settings-only", false, false },
	{ "no-window", false, false },
	{ "goaway", false, true },
	{ "reset", false, false },
	{ "no-grpc", false, false },
	{ "http-503", false, true },
	{ "endless-headers", false, false },
	{ "endless-trailers", false, false },
	{ "huge-header", false, false },
	{ "huge-length", false, false },
	{ "short-message", false, false },
	{ "compressed", false, false },
	{ "not-protobuf", false, false },
	{ "no-status", true, false },
	{ "odd-status", true, false },
	{ "big-status", true, false },
	{ "two-answers", true, false },
	{ "endless-data", false, false },
	{ "ping-flood", false, false },
	{ "settings-flood", false, false },
};

static void bad_server(const struct bad_kind *kind)
{
	struct vd_etcd_options	     options = etcd_options_under_test();
	struct vd_etcd_watch_request request = { .key = vd_bytes_of("a") };
	struct vd_etcd		    *client;
	struct call_result	     result;
	struct watcher		     watcher;
	vd_status		     status;
	long			     before = resident_bytes();

	options.receive_size_max = 16u << 20;
	client = fixture_open(ask("bad %s", kind->kind), &options);
	watcher_open(&watcher, client, request);
	result = call_range(client, "a", CALL_TIMEOUT);
	if (result.status == VD_OK)
		assert_true(kind->is_answer && result.count == 0);
	else
		assert_true(strlen(result.error.error.message) > 0);
	status = vd_etcd_watch_next(watcher.watch, &watcher.response, &watcher.error);
	assert_int_not_equal(status, VD_OK); /* VD_AGAIN, or its end with a reason */
	vd_etcd_close_wait(client);
	watcher_close(&watcher);
	print_message("%s: %s (%s), %+ld KiB\n", kind->kind, vd_status_name(result.status),
		      result.error.error.message, (resident_bytes() - before) / 1024);
}

static void e201_e254_bad_servers_do_no_harm(void **state)
{
	long before = resident_bytes();

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(kinds); i++)
		bad_server(&kinds[i]);
/* A sanitizer keeps freed memory. */
#if !VDI_ADDRESS_SANITIZED && !VDI_THREAD_SANITIZED
	assert_true(resident_bytes() - before < RSS_GROWTH_MAX);
#else
	(void) before;
#endif
}

static void e205_a_good_server_beside_a_bad_one_is_found(void **state)
{
	(void) state;
	ask("default KV/Range {\"header\":{\"revision\":\"7\"}}");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(kinds); i++) {
		char		endpoints[256];
		struct vd_etcd *client;

		if (!kinds[i].is_transport)
			continue;
		print_message("beside %s\n", kinds[i].kind);
		snprintf(endpoints, sizeof(endpoints), "%s,%s", ask("bad %s", kinds[i].kind),
			 getenv("ETCD_ENDPOINTS") + strlen("http://"));
		client = fixture_open(endpoints, NULL);
		for (int n = 0; n < 5; n++) {
			struct call_result result = call_range(client, "a", VD_SECONDS(30));

			if (result.status != VD_OK)
				print_message("%s: %s\n", kinds[i].kind, result.error.error.message);
			assert_status(result.status, VD_OK);
			assert_int_equal(result.revision, 7);
		}
		vd_etcd_close_wait(client);
	}
}

/* Setup and teardown of the whole group. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e201_e254_bad_servers_do_no_harm),
		cmocka_unit_test(e205_a_good_server_beside_a_bad_one_is_found),
	};
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	if (getenv("CONTROL") == NULL) {
		fprintf(stderr, "skipped: this runs under `peers etcd-fake`\n");
		return 77;
	}
	return cmocka_run_group_tests(tests, fixture_begin, fixture_end);
}
