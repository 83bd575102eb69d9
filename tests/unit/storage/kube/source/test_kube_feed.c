/* Unit tests of storage/kube/source/kube_feed.c: how one watch of the server ends, and what is known then. */
#include "actor_sim.h"
#include "kube_client.h"
#include "kube_script.h"
#include "kube_source.h"
#include "vdtest.h"

static struct {
	struct vd_env	    *env;
	struct vd_kube	    *kube;
	struct vd_store	    *store;
	struct kube_script   script;
	struct vdi_kube_feed feed;
	unsigned	     opened, events, ended;
	vd_status	     event_status; /* of the next events */
	vd_status	     status;
	struct vd_error	     error;
} world;

static void on_opened(struct vdi_kube_feed *feed)
{
	(void) feed;
	world.opened++;
}

static vd_status on_event(struct vdi_kube_feed *feed, const struct vdi_kube_event *event,
			  struct vd_error *reterr)
{
	(void) feed;
	(void) reterr;
	assert_int_equal(event->type, VDI_KUBE_ADDED);
	assert_true(vd_bytes_equal(event->object, vd_bytes_of("{\"kind\":\"Pod\"}")));
	world.events++;
	return world.event_status;
}

static void on_ended(struct vdi_kube_feed *feed, vd_status status, const struct vd_error *error)
{
	/* It may be started again, and may wait for long before that. */
	assert_null(feed->exchange);
	assert_int_equal(feed->refusal.size, 0);
	assert_false(vdi_json_stream_is_open(&feed->frames));
	world.ended++;
	world.status = status;
	world.error = *error;
}

static void begin(const struct kube_script_answer *answers, size_t count)
{
	static const struct vd_kube_resource pods = { "", "v1", "pods", "Pod", false };
	struct vd_kube_options		     options = VD_KUBE_OPTIONS_INIT;

	memset(&world, 0, sizeof world);
	assert_status(vdi_env_new_sim(7, NULL, NULL, &world.env), VD_OK);
	world.script.env = world.env;
	world.script.answers = answers;
	world.script.count = count;
	kube_script_use(&world.script);
	options.server = "http://127.0.0.1:1";
	assert_status(vdi_kube_open_over(world.env, &options, kube_script_transport_new, &world.kube, NULL),
		      VD_OK);
	assert_status(vd_store_open_kube(world.kube, &pods, NULL, "/registry/pods/", &world.store, NULL),
		      VD_OK);
	world.feed = (struct vdi_kube_feed) { .source = vdi_kube_source_of(world.store),
					      .opened = on_opened,
					      .event = on_event,
					      .ended = on_ended };
}

static void end(void)
{
	vdi_kube_feed_end(&world.feed);
	vdi_sim_run_until_idle(world.env);
	world.store = vd_store_close_wait(world.store);
	world.kube = vd_kube_close_wait(world.kube);
	world.env = vd_env_free(world.env);
}

static void start(void)
{
	world.opened = world.events = world.ended = 0;
	assert_status(vdi_kube_feed_start(&world.feed, "/api/v1/pods?watch=true", NULL), VD_OK);
	vdi_sim_run_until_idle(world.env);
}

#define EVENT "{\"type\":\"ADDED\",\"object\":{\"kind\":\"Pod\"}}"
#define SPACED "{ \"type\": \"ADDED\", \"object\": {\"kind\":\"Pod\"} }"
#define GONE "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"message\":\"old\"}}"
#define FUTURE "{\"kind\":\"Status\",\"message\":\"Too large resource version: 9, current: 7\"}"
#define SLOW "{\"kind\":\"Status\",\"message\":\"too slow\"}"

static void a_watch_ends_with_what_the_server_said(void **state)
{
	static const struct {
		struct kube_script_answer answer;
		unsigned		  events;
		vd_status		  status;
		const char		 *message; /* a part of it */
		bool			  is_opened, has_progressed;
	} rows[] = {
		{ { .code = 200, .body = EVENT "\n" EVENT }, 2, VD_OK, "", true, true },
		{ { .code = 200, .body = SPACED EVENT }, 2, VD_OK, "", true, true },
		{ { .code = 200, .body = "" }, 0, VD_OK, "", true, true },
		{ { .code = 200, .body = EVENT "{\"type\":\"ADD" },
		  1,
		  VD_UNAVAILABLE,
		  "the watch ended in the middle of an event",
		  true,
		  true },
		{ { .code = 200, .body = EVENT "{\"type\":\"ADD", .status = VD_TIMEOUT },
		  1,
		  VD_TIMEOUT,
		  "scripted end: timeout",
		  true,
		  true },
		{ { .code = 200, .body = EVENT "]" },
		  1,
		  VD_BAD_REQUEST,
		  "the server's watch is not readable",
		  true,
		  true },
		{ { .code = 200, .body = EVENT GONE EVENT }, 1, VD_EXPIRED, "old", true, true },
		{ { .code = 410, .body = "{\"message\":\"gone\"}" }, 0, VD_EXPIRED, "gone", false, true },
		{ { .code = 504, .body = FUTURE }, 0, VD_TOO_LARGE_REVISION, "Too large", false, true },
		{ { .code = 504, .body = SLOW }, 0, VD_TIMEOUT, "too slow", false, true },
		{ { .code = 204, .body = "" }, 0, VD_UNAVAILABLE, "204", false, true },
		{ { .code = 0, .body = "", .status = VD_UNAVAILABLE },
		  0,
		  VD_UNAVAILABLE,
		  "scripted end: unavailable",
		  false,
		  false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		begin(&rows[i].answer, 1);
		start();
		assert_int_equal(world.ended, 1);
		assert_status(world.status, rows[i].status);
		if (strstr(world.error.message, rows[i].message) == NULL)
			fail_msg("%s instead of %s", world.error.message, rows[i].message);
		assert_int_equal(world.events, rows[i].events);
		assert_int_equal(world.opened, rows[i].is_opened);
		assert_int_equal(world.feed.has_progressed, rows[i].has_progressed);
		assert_int_equal(world.feed.code, rows[i].answer.code);
		assert_int_equal(vdi_kube_source_of(world.store)->watches_opened, 1);
		assert_int_equal(vdi_kube_source_of(world.store)->heard.ns,
				 *rows[i].answer.body ? vd_env_now(world.env).ns : 0);
		end();
	}
}

/* The error of the reader's function ends the watch, without a second end. */
static void a_reader_can_end_a_watch(void **state)
{
	static const struct kube_script_answer answer = { .code = 200, .body = EVENT EVENT, .holds = true };

	(void) state;
	begin(&answer, 1);
	world.event_status = VD_NOMEM;
	start();
	assert_int_equal(world.events, 1);
	assert_int_equal(world.ended, 1);
	assert_status(world.status, VD_NOMEM);
	assert_non_null(strstr(world.error.message, "not readable"));
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_int_equal(world.script.open, 0);
	end();
}

/* Nothing of the watch before is left: its code, its bytes, its error. */
static void a_watch_starts_anew(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 200, .body = EVENT GONE },
		{ .code = 0, .body = "", .status = VD_UNAVAILABLE },
		{ .code = 403, .body = "{\"message\":\"no\"}" },
		{ .code = 200, .body = EVENT "{\"type\":", .holds = true },
		{ .code = 200, .body = EVENT },
		{ .code = 0, .body = "", .holds = true },
	};

	(void) state;
	begin(answers, VDI_ARRAY_SIZE(answers));
	start();
	assert_status(world.status, VD_EXPIRED);
	start();
	assert_status(world.status, VD_UNAVAILABLE);
	assert_int_equal(world.feed.code, 0);
	assert_false(world.feed.has_progressed);
	assert_status(world.feed.error.code, VD_OK);
	start();
	assert_int_equal(world.feed.code, 403);
	assert_string_equal(world.error.message, "no");
	start();
	assert_int_equal(world.events, 1);
	assert_int_equal(world.ended, 0);
	start(); /* the one before is given up, with its half of an event */
	assert_int_equal(world.events, 1);
	assert_int_equal(world.ended, 1);
	assert_status(world.status, VD_OK);
	start();
	assert_int_equal(world.feed.code, 0);
	assert_int_equal(world.script.open, 1);
	vdi_kube_feed_end(&world.feed);
	vdi_kube_feed_end(&world.feed);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(world.script.open, 0);
	assert_int_equal(world.ended, 0);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_watch_ends_with_what_the_server_said),
		cmocka_unit_test(a_reader_can_end_a_watch),
		cmocka_unit_test(a_watch_starts_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
