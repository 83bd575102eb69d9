/* The recorder over an API server in memory: the requests, failures, the bound of the queue, the end. */
#include <pthread.h>
#include <stdatomic.h>

#include "actor_sim.h"
#include "env.h"
#include "event_sender.h"
#include "requests_peer.h"
#include "vdtest.h"

#define EVENTS "/api/v1/namespaces/ns/events"

struct world {
	struct vd_env		 *env;
	struct requests_peer	  peer;
	struct vd_event_recorder *recorder;
	bool			  is_closed;
};

static const struct vd_event_object pod = {
	.api_version = { "v1", 2 },
	.kind = { "Pod", 3 },
	.namespace_name = { "ns", 2 },
	.name = { "foo", 3 },
	.uid = { "u-1", 3 },
	.resource_version = { "9", 1 },
	.field_path = { "spec.containers[2]", 18 },
};

static struct vd_event_recorder_options default_options(void)
{
	struct vd_event_recorder_options options = VD_EVENT_RECORDER_OPTIONS_INIT;

	options.component = "ctl";
	options.host = "node1";
	return options;
}

static void world_init(struct world *world, struct vd_event_recorder_options options)
{
	struct vdi_kube_requests requests;
	struct vd_error		 error;

	*world = (struct world) { 0 };
	assert_status(vdi_env_new_sim(5, NULL, NULL, &world->env), VD_OK);
	requests_peer_init(&world->peer, world->env);
	requests = requests_peer_of(&world->peer);
	assert_status(vdi_event_recorder_open(&requests, &options, &world->recorder, &error), VD_OK);
}

static void world_fini(struct world *world)
{
	if (!world->is_closed)
		vd_event_recorder_close_wait(world->recorder);
	requests_peer_fini(&world->peer);
	vd_env_free(world->env);
}

static vd_status record(struct world *world, const char *reason, const char *message)
{
	vd_status status = vd_event_record(world->recorder, &pod, VD_EVENT_NORMAL, reason, "%s", message);

	vdi_sim_run_until_idle(world->env);
	return status;
}

static struct vd_event_recorder_counts counts(struct world *world)
{
	struct vd_event_recorder_counts result;

	vd_event_recorder_counts(world->recorder, &result);
	return result;
}

static void k310_an_event_is_created_and_counted_by_a_patch(void **state)
{
	struct world world;

	world_init(&world, default_options());
	assert_status(record(&world, "Started", "some \"verbose\" message: 1"), VD_OK);
	assert_string_equal(world.peer.log, "POST " EVENTS "\n");
	assert_string_equal(
		world.peer.body,
		"{\"apiVersion\":\"v1\",\"kind\":\"Event\",\"metadata\":{\"name\":\"foo.17a6101701650000\","
		"\"namespace\":\"ns\"},\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"ns\",\"name\":"
		"\"foo\",\"uid\":\"u-1\",\"apiVersion\":\"v1\",\"resourceVersion\":\"9\",\"fieldPath\":"
		"\"spec.containers[2]\"},\"reason\":\"Started\",\"message\":\"some \\\"verbose\\\" message: "
		"1\",\"source\":{\"component\":\"ctl\",\"host\":\"node1\"},\"firstTimestamp\":"
		"\"2024-01-01T00:00:00Z\",\"lastTimestamp\":\"2024-01-01T00:00:00Z\",\"count\":1,"
		"\"eventTime\":null,\"type\":\"Normal\",\"reportingComponent\":\"ctl\",\"reportingInstance\":"
		"\"node1\"}");
	vdi_sim_advance(world.env, VD_SECONDS(7));
	world.peer.log[0] = 0;
	assert_status(record(&world, "Started", "some \"verbose\" message: 1"), VD_OK);
	assert_string_equal(world.peer.log, "PATCH " EVENTS "/foo.17a6101701650000\n");
	assert_string_equal(world.peer.content_type, "application/strategic-merge-patch+json");
	assert_string_equal(world.peer.body, "{\"count\":2,\"lastTimestamp\":\"2024-01-01T00:00:07Z\","
					     "\"message\":\"some \\\"verbose\\\" message: 1\"}");
	assert_int_equal(counts(&world).written, 2);
	world_fini(&world);
}

static void k311_an_event_without_namespace_is_created_in_default(void **state)
{
	struct vd_event_object node = { .kind = vd_bytes_of("Node"), .name = vd_bytes_of("n") };
	struct world	       world;

	world_init(&world, default_options());
	assert_status(vd_event_record(world.recorder, &node, VD_EVENT_WARNING, "Down", "gone"), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_string_equal(world.peer.log, "POST /api/v1/namespaces/default/events\n");
	assert_non_null(strstr(world.peer.body, "\"involvedObject\":{\"kind\":\"Node\",\"name\":\"n\"}"));
	assert_non_null(strstr(world.peer.body, "\"type\":\"Warning\""));
	world_fini(&world);
}

static void k312_an_expired_event_is_created_again(void **state)
{
	struct world world;

	world_init(&world, default_options());
	assert_status(record(&world, "R", "m"), VD_OK);
	requests_peer_delete(&world.peer, EVENTS "/foo.17a6101701650000");
	world.peer.log[0] = 0;
	assert_status(record(&world, "R", "m"), VD_OK);
	assert_string_equal(world.peer.log, "PATCH " EVENTS "/foo.17a6101701650000\nPOST " EVENTS "\n");
	assert_non_null(strstr(world.peer.body, "\"count\":2"));
	assert_non_null(strstr(world.peer.body, "\"name\":\"foo.17a6101701650000\""));
	assert_int_equal(counts(&world).written, 2);
	world_fini(&world);
}

static void k313_a_rejected_event_is_given_up_and_others_are_retried(void **state)
{
	struct world world;

	world_init(&world, default_options());
	requests_peer_fail(&world.peer, VD_FORBIDDEN);
	assert_status(record(&world, "A", "m"), VD_OK);
	assert_int_equal(counts(&world).rejected, 1);
	requests_peer_fail(&world.peer, VD_UNAVAILABLE);
	requests_peer_fail(&world.peer, VD_UNAVAILABLE);
	assert_status(record(&world, "B", "m"), VD_OK);
	assert_status(record(&world, "C", "m"), VD_OK); /* waits behind B */
	assert_int_equal(world.peer.calls, 2);
	vdi_sim_advance(world.env, VD_SECONDS(10)); /* the first pause is shorter than 10 s */
	assert_int_equal(world.peer.calls, 3);
	vdi_sim_advance(world.env, VD_SECONDS(10));
	assert_int_equal(world.peer.calls, 5);
	assert_int_equal(counts(&world).written, 2);
	world_fini(&world);
}

static void k314_an_event_fails_after_twelve_attempts(void **state)
{
	struct world world;

	world_init(&world, default_options());
	world.peer.is_down = true;
	assert_status(record(&world, "A", "m"), VD_OK);
	vdi_sim_advance(world.env, VD_SECONDS(1000));
	assert_int_equal(world.peer.calls, 12);
	assert_int_equal(counts(&world).failed, 1);
	world_fini(&world);
}

static void k315_events_beyond_the_bound_are_dropped_without_blocking(void **state)
{
	struct vd_event_recorder_options options = default_options();
	struct world			 world;
	char				 reason[16];

	options.queue_max = 10;
	world_init(&world, options);
	world.peer.is_held = true;
	for (unsigned i = 0; i < 20; i++) {
		(void) snprintf(reason, sizeof reason, "R%u", i);
		assert_status(record(&world, reason, "m"), i < 11 ? VD_OK : VD_FULL); /* one is being sent */
	}
	assert_int_equal(counts(&world).dropped, 9);
	requests_peer_release(&world.peer);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(counts(&world).written, 11);
	world_fini(&world);
}

static void a_noisy_object_is_limited(void **state)
{
	struct world world;

	world_init(&world, default_options());
	for (unsigned i = 0; i < 300; i++)
		assert_status(vd_event_record(world.recorder, &pod, VD_EVENT_NORMAL, "R", "m%u", i), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(counts(&world).written, 25);
	assert_int_equal(counts(&world).filtered, 275);
	assert_non_null(strstr(world.peer.body, "\"message\":\"(combined from similar events): m24\""));
	assert_int_equal(world.peer.count, 10);
	world_fini(&world);
}

static void note_closed(void *arg)
{
	((struct world *) arg)->is_closed = true;
}

static void k316_a_close_sends_what_is_queued(void **state)
{
	struct world world;

	world_init(&world, default_options());
	for (unsigned i = 0; i < 5; i++)
		(void) vd_event_record(world.recorder, &pod, VD_EVENT_NORMAL, "R", "m%u", i);
	vd_event_recorder_close(world.recorder, note_closed, &world);
	assert_status(vd_event_record(world.recorder, &pod, VD_EVENT_NORMAL, "R", "late"), VD_CLOSED);
	vdi_sim_run_until_idle(world.env);
	assert_true(world.is_closed);
	assert_int_equal(world.peer.calls, 5);
	world_fini(&world);
}

static void k317_a_close_gives_up_after_its_time(void **state)
{
	struct world world;

	world_init(&world, default_options());
	world.peer.is_down = true;
	for (unsigned i = 0; i < 5; i++)
		(void) vd_event_record(world.recorder, &pod, VD_EVENT_NORMAL, "R", "m%u", i);
	vdi_sim_run_until_idle(world.env);
	vd_event_recorder_close(world.recorder, note_closed, &world);
	vdi_sim_advance(world.env, VD_MS(4999));
	assert_false(world.is_closed);
	vdi_sim_advance(world.env, VD_MS(1));
	assert_true(world.is_closed);
	world_fini(&world);

	world_init(&world, default_options());
	world.peer.is_held = true;
	for (unsigned i = 0; i < 5; i++)
		(void) vd_event_record(world.recorder, &pod, VD_EVENT_NORMAL, "R", "m%u", i);
	vdi_sim_run_until_idle(world.env);
	vd_event_recorder_close(world.recorder, note_closed, &world);
	vdi_sim_advance(world.env, VD_SECONDS(60));
	assert_false(world.is_closed); /* a request is outstanding */
	requests_peer_release(&world.peer);
	vdi_sim_run_until_idle(world.env);
	assert_true(world.is_closed);
	assert_int_equal(world.peer.calls, 1);
	world_fini(&world);
}

static void names_are_valid_and_unique(void **state)
{
	static const struct {
		const char *name, *expected;
	} cases[] = {
		{ "foo.bar-1", "foo.bar-1.ff" }, { "system:Node", "system-node.ff" },
		{ ":a..b:", "xa--bx.ff" },	 { "-", "x.ff" },
		{ "a.-b", "a--b.ff" },
	};
	struct vdi_event event = { .count = 1 };
	static char	 long_name[500];

	for (unsigned i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		event.fields[VDI_EVENT_NAME] = vd_bytes_of(cases[i].name);
		vdi_event_name(&event, 255);
		assert_string_equal(event.name, cases[i].expected);
	}
	memset(long_name, 'a', sizeof long_name - 1);
	event.fields[VDI_EVENT_NAME] = vd_bytes_of(long_name);
	vdi_event_name(&event, -1);
	assert_int_equal(strlen(event.name), 253);
}

static void wrong_events_and_options_are_refused(void **state)
{
	struct vd_event_recorder_options options = default_options();
	struct vd_event_recorder	*recorder;
	struct vd_event_object		 object = pod;
	struct vdi_kube_requests	 requests;
	struct vd_error			 error;
	struct world			 world;
	static char			 long_text[3000];

	world_init(&world, options);
	requests = requests_peer_of(&world.peer);
	memset(long_text, 'x', sizeof long_text - 1);
	assert_status(record(&world, "", "m"), VD_INVALID_ARGUMENT);
	assert_status(record(&world, long_text, "m"), VD_INVALID_ARGUMENT);
	object.name = VD_BYTES_NONE;
	assert_status(vd_event_record(world.recorder, &object, VD_EVENT_NORMAL, "R", "m"),
		      VD_INVALID_ARGUMENT);
	object.name = vd_bytes_of(long_text);
	assert_status(vd_event_record(world.recorder, &object, VD_EVENT_NORMAL, "R", "m"),
		      VD_INVALID_ARGUMENT);
	assert_int_equal(world.peer.calls, 0);
	memcpy(long_text + 1023, "\xc3\xa4", 2); /* a character across the limit is left out */
	assert_status(record(&world, "R", long_text), VD_OK);
	assert_non_null(strstr(world.peer.body, "xxx\",\"source\""));
	options.similar_max = 65;
	assert_status(vdi_event_recorder_open(&requests, &options, &recorder, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "similar_max is 65, must be 1 to 64");
	options = default_options();
	options.component = NULL;
	assert_status(vdi_event_recorder_open(&requests, &options, &recorder, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(error.message, "component is empty");
	world_fini(&world);
}

static void torture_a_recorder_opens_and_records_or_reports_lack_of_memory(void **state)
{
	struct vd_event_recorder_options options = default_options();
	bool				 has_failed = true;

	for (uint64_t nth = 1; has_failed; nth++) {
		struct vdi_kube_requests  requests;
		struct vd_event_recorder *recorder = NULL;
		struct world		  world;
		vd_status		  status;

		world_init(&world, options);
		requests = requests_peer_of(&world.peer);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_event_recorder_open(&requests, &options, &recorder, NULL);
		if (status == VD_OK)
			status = vd_event_record(recorder, &pod, VD_EVENT_NORMAL, "R", "m");
		has_failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, has_failed ? VD_NOMEM : VD_OK);
		vd_event_recorder_close_wait(recorder);
		world_fini(&world);
	}
}

/* ---- Real threads ---- */

enum { THREADS = 3, EVENTS_EACH = 400 };

struct sink {
	struct vd_event_recorder *recorder;
	atomic_uint		  requests, recorded, number_next;
};

static vd_status take_request(void *peer, const struct vd_kube_call *call, vd_kube_answer_fn done, void *arg)
{
	struct vd_kube_answer answer = { .code = 200 };

	atomic_fetch_add(&((struct sink *) peer)->requests, 1);
	done(arg, VD_OK, &answer, NULL);
	return VD_OK;
}

static void *record_many(void *arg)
{
	struct sink	      *sink = arg;
	struct vd_event_object object = pod;
	char		       name[16];

	(void) snprintf(name, sizeof name, "p%u", atomic_fetch_add(&sink->number_next, 1));
	object.name = vd_bytes_of(name);
	for (unsigned i = 0; i < EVENTS_EACH; i++)
		if (vd_event_record(sink->recorder, &object, VD_EVENT_NORMAL, "R", "m%u", i % 5) == VD_OK)
			atomic_fetch_add(&sink->recorded, 1);
	return NULL;
}

static void torture_an_event_is_sent_although_memory_was_short(void **state)
{
	bool has_failed = true;

	for (uint64_t nth = 1; has_failed; nth++) {
		struct sink			 sink = { 0 };
		struct vdi_kube_requests	 requests = { .send = take_request, .peer = &sink };
		struct vd_event_recorder_counts	 result;
		struct vd_env			*env;
		struct vd_event_recorder_options options = default_options();

		assert_status(vdi_env_new_sim(5, NULL, NULL, &env), VD_OK);
		requests.env = env;
		assert_status(vdi_event_recorder_open(&requests, &options, &sink.recorder, NULL), VD_OK);
		assert_status(vd_event_record(sink.recorder, &pod, VD_EVENT_NORMAL, "R", "m"), VD_OK);
		(void) vdi_alloc_fail_nth(nth, 1);
		vdi_sim_run_until_idle(env);
		has_failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		vdi_sim_advance(env, VD_SECONDS(10));
		vd_event_recorder_counts(sink.recorder, &result);
		assert_int_equal(result.written, 1);
		assert_int_equal(atomic_load(&sink.requests), 1);
		vd_event_recorder_close_wait(sink.recorder);
		vd_env_free(env);
	}
}

static void k315_threads_record_at_the_same_time(void **state)
{
	struct vd_event_recorder_options options = default_options();
	static struct sink		 sink;
	struct vdi_kube_requests	 requests = { .send = take_request, .peer = &sink };
	struct vd_event_recorder_counts	 result;
	struct vd_env			*env;
	pthread_t			 threads[THREADS];

	options.queue_max = 50;
	options.flush = VD_SECONDS(3600);
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	requests.env = env;
	assert_status(vdi_event_recorder_open(&requests, &options, &sink.recorder, NULL), VD_OK);
	for (unsigned i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, record_many, &sink), 0);
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	vd_event_recorder_counts(sink.recorder, &result);
	assert_int_equal(result.dropped + atomic_load(&sink.recorded), THREADS * EVENTS_EACH);
	vd_event_recorder_close_wait(sink.recorder);
	assert_in_range(atomic_load(&sink.requests), 3, THREADS * 25);
	vd_env_free(env);
}

static void expect_options(struct world *world, struct vd_event_recorder_options options, const char *message)
{
	struct vdi_kube_requests  requests = requests_peer_of(&world->peer);
	struct vd_event_recorder *recorder = NULL;
	struct vd_error		  error = { 0 };

	assert_status(vdi_event_recorder_open(&requests, &options, &recorder, &error),
		      message ? VD_INVALID_ARGUMENT : VD_OK);
	assert_string_equal(error.message, message ? message : "");
	if (recorder)
		vd_event_recorder_close_wait(recorder);
}

static void options_at_their_bounds(void **state)
{
	static const char times[] = "burst, refill and similar_interval must be above 0";
	static const char retries[] = "attempts must be above 0, retry_delay and flush 0 or more";
	struct vd_event_recorder_options options;
	struct world			 world;

	world_init(&world, default_options());
#define OPTION(member, value, message)                                                                       \
	do {                                                                                                 \
		options = default_options();                                                                 \
		options.member = value;                                                                      \
		expect_options(&world, options, message);                                                    \
	} while (0)
	OPTION(component, "", "component is empty");
	OPTION(queue_max, 0, "queue_max is 0, must be 1 or more");
	OPTION(queue_max, 1, NULL);
	OPTION(similar_max, 0, "similar_max is 0, must be 1 to 64");
	OPTION(similar_max, 1, NULL);
	OPTION(similar_max, 64, NULL);
	OPTION(burst, 0, times);
	OPTION(burst, 1, NULL);
	OPTION(refill.ns, 0, times);
	OPTION(refill.ns, 1, NULL);
	OPTION(similar_interval.ns, 0, times);
	OPTION(similar_interval.ns, 1, NULL);
	OPTION(attempts, 0, retries);
	OPTION(attempts, 1, NULL);
	OPTION(retry_delay.ns, -1, retries);
	OPTION(retry_delay.ns, 0, NULL);
	OPTION(flush.ns, -1, retries);
	OPTION(flush.ns, 0, NULL);
#undef OPTION
	world_fini(&world);
}

static void texts_at_their_bounds(void **state)
{
	static char	       text[1100];
	struct vd_event_object object = pod;
	struct world	       world;

	world_init(&world, default_options());
	memset(text, 'x', sizeof text - 1);
	text[128] = 0;
	assert_status(record(&world, text, "m"), VD_OK);
	text[128] = 'x', text[129] = 0;
	assert_status(record(&world, text, "m"), VD_INVALID_ARGUMENT);
	text[129] = 'x';
	for (size_t more = 0; more < 2; more++) {
		object.uid = (struct vd_bytes) { text, 1024 + more };
		assert_status(vd_event_record(world.recorder, &object, VD_EVENT_NORMAL, "R", "m"),
			      more ? VD_INVALID_ARGUMENT : VD_OK);
	}
	object.uid = (struct vd_bytes) { NULL, 1 };
	assert_status(vd_event_record(world.recorder, &object, VD_EVENT_NORMAL, "R", "m"),
		      VD_INVALID_ARGUMENT);
	object = pod;
	object.kind = VD_BYTES_NONE;
	assert_status(vd_event_record(world.recorder, &object, VD_EVENT_NORMAL, "R", "m"),
		      VD_INVALID_ARGUMENT);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(world.peer.calls, 2);
	/* Longer messages are cut. */
	for (size_t size = 1023; size <= 1025; size++) {
		char expected[1100];

		text[size] = 0;
		assert_status(record(&world, (const char *[]) { "A", "B", "C" }[size - 1023], text), VD_OK);
		snprintf(expected, sizeof expected, "\"message\":\"%.*s\",",
			 (int) VDI_MIN(size, (size_t) 1024), text);
		assert_non_null(strstr(world.peer.body, expected));
		text[size] = 'x';
	}
	world_fini(&world);
}

/* Failures that pass are repeated; those of the event itself are not, nor is a create in a namespace that is
 * gone. */
static void which_failures_are_repeated(void **state)
{
	static const struct {
		vd_status status;
		unsigned  calls;
	} rows[] = { { VD_UNAVAILABLE, 2 }, { VD_TIMEOUT, 2 },	 { VD_FULL, 2 },   { VD_NOMEM, 2 },
		     { VD_INVALID, 1 },	    { VD_FORBIDDEN, 1 }, { VD_EXISTS, 1 }, { VD_NOT_FOUND, 1 },
		     { VD_CONFLICT, 1 },    { VD_TOO_BIG, 1 } };

	for (unsigned i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct world world;

		world_init(&world, default_options());
		requests_peer_fail(&world.peer, rows[i].status);
		assert_status(record(&world, "R", "m"), VD_OK);
		vdi_sim_advance(world.env, VD_SECONDS(60));
		assert_int_equal(world.peer.calls, rows[i].calls);
		assert_int_equal(counts(&world).written, rows[i].calls - 1);
		world_fini(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(k310_an_event_is_created_and_counted_by_a_patch),
		cmocka_unit_test(k311_an_event_without_namespace_is_created_in_default),
		cmocka_unit_test(k312_an_expired_event_is_created_again),
		cmocka_unit_test(k313_a_rejected_event_is_given_up_and_others_are_retried),
		cmocka_unit_test(k314_an_event_fails_after_twelve_attempts),
		cmocka_unit_test(k315_events_beyond_the_bound_are_dropped_without_blocking),
		cmocka_unit_test(a_noisy_object_is_limited),
		cmocka_unit_test(k316_a_close_sends_what_is_queued),
		cmocka_unit_test(k317_a_close_gives_up_after_its_time),
		cmocka_unit_test(names_are_valid_and_unique),
		cmocka_unit_test(wrong_events_and_options_are_refused),
		cmocka_unit_test(options_at_their_bounds),
		cmocka_unit_test(texts_at_their_bounds),
		cmocka_unit_test(which_failures_are_repeated),
		cmocka_unit_test(torture_a_recorder_opens_and_records_or_reports_lack_of_memory),
		cmocka_unit_test(torture_an_event_is_sent_although_memory_was_short),
		cmocka_unit_test(k315_threads_record_at_the_same_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
