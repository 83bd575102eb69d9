/* watchchan/watchchan_sync.c: the initial state in one long read, against the same in pages; its fallback and
 * its failures. */
#include "vdtest.h"

#include "actor_sim.h"
#include "buffer.h"
#include "env.h"
#include "part_store.h"
#include "storage_metrics.h"
#include "watchchan.h"

#define COUNT 350

struct world {
	struct vd_env	     *env;
	struct vd_store	     *inner, *store;
	struct vd_codec	     *codec;
	struct vdi_watchchan *watchchan;
	bool		      closed;
	int64_t		      live;
};

static struct world world_new(uint64_t seed, const struct part_options *options)
{
	struct vd_mvcc_options mvcc = VD_MVCC_OPTIONS_INIT;
	struct world	       world = { .live = vdi_alloc_live() };
	char		       key[64], value[96];

	mvcc.history_window = (vd_dur) { 0 };
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world.env), VD_OK);
	assert_status(vd_store_open_mvcc(world.env, &mvcc, &world.inner, NULL), VD_OK);
	assert_status(vd_codec_json_new(NULL, 0, &world.codec, NULL), VD_OK);
	world.store = part_store_new(world.env, world.inner, options);
	for (int i = 0; i < COUNT; i++) {
		snprintf(key, sizeof key, "/registry/pods/p%06d", i);
		snprintf(value, sizeof value, "{\"metadata\":{\"name\":\"p%06d\"}}", i);
		assert_status(
			vd_store_put_wait(world.store, vd_bytes_of(key), vd_bytes_of(value), NULL, NULL),
			VD_OK);
	}
	return world;
}

static void on_closed(void *arg)
{
	*(bool *) arg = true;
}

static bool is_true(void *arg)
{
	return *(bool *) arg;
}

static void close_watch(struct world *world)
{
	world->closed = false;
	vdi_watchchan_close(world->watchchan, on_closed, &world->closed);
	assert_true(vdi_sim_run_until(world->env, is_true, &world->closed, VD_SECONDS(10)));
	world->watchchan = NULL;
}

static void world_free(struct world *world)
{
	if (world->watchchan)
		close_watch(world);
	vdi_sim_run_until_idle(world->env);
	part_store_free(world->store);
	vd_store_close_wait(world->inner);
	vd_codec_free(world->codec);
	vd_env_free(world->env);
	assert_int_equal(vdi_alloc_live(), world->live);
}

static void on_ready(void *arg)
{
	(void) arg;
}

static vd_status open_counted(struct world *world, bool recursive, struct vdi_storage_metrics *metrics)
{
	struct vdi_watchchan_options options = {
		.resource = "pods",
		.codec = world->codec,
		.key = vd_bytes_of(recursive ? "/registry/pods/" : "/registry/pods/p000003"),
		.recursive = recursive,
		.send_initial_events = VD_TRUE,
		.initial_end_bookmark = true,
		.ready = on_ready,
		.ready_arg = world,
		.metrics = metrics,
	};

	return vdi_watchchan_open(world->env, world->store, &options, &world->watchchan, NULL);
}

static vd_status open_watch(struct world *world, bool recursive)
{
	return open_counted(world, recursive, NULL);
}

static vd_status next(struct world *world, struct vdi_watchchan_event *ret_event)
{
	vdi_sim_run_until_idle(world->env);
	return vdi_watchchan_next(world->watchchan, ret_event);
}

/* The whole initial state, the end bookmark, and what was written after it was opened. */
static void expect_all(struct world *world)
{
	struct vdi_watchchan_event event;
	char			   name[16];

	for (int i = 0; i < COUNT; i++) {
		assert_status(next(world, &event), VD_OK);
		assert_int_equal(event.type, VD_WATCH_ADDED);
		assert_true(event.initial);
		assert_int_equal(event.revision, i + 2);
		snprintf(name, sizeof name, "p%06d", i);
		assert_true(vd_bytes_equal(vd_object_name(event.object), vd_bytes_of(name)));
		vdi_watchchan_event_fini(&event);
		if (i == 5) /* neither among the rest nor lost */
			assert_status(vd_store_put_wait(world->store, vd_bytes_of("/registry/pods/zz"),
							vd_bytes_of("{\"metadata\":{\"name\":\"zz\"}}"), NULL,
							NULL),
				      VD_OK);
	}
	assert_status(next(world, &event), VD_OK);
	assert_int_equal(event.type, VD_WATCH_BOOKMARK);
	assert_true(event.initial_events_end);
	assert_int_equal(event.revision, COUNT + 1);
	assert_status(next(world, &event), VD_OK);
	assert_int_equal(event.type, VD_WATCH_ADDED);
	assert_int_equal(event.revision, COUNT + 2);
	vdi_watchchan_event_fini(&event);
	assert_status(next(world, &event), VD_AGAIN);
}

/* rules: T-091 */
static void r208_a_long_read_equals_the_pages(void **state)
{
	static const size_t lengths[] = { 1, 7, 99, 100, 101, COUNT - 1, COUNT, COUNT + 1 };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(lengths); i++)
		for (int lazy = 0; lazy < 2; lazy++) {
			struct part_options options = { .part_len = lengths[i], .is_lazy = lazy };
			struct world	    world = world_new(i + 1, &options);

			assert_status(open_watch(&world, true), VD_OK);
			expect_all(&world);
			assert_int_equal(part_store_streams(world.store), 1);
			assert_true(part_store_parts(world.store) >= COUNT / lengths[i]);
			world_free(&world);
		}
}

/* rules: T-080, T-091 */
static void r208_r158_without_long_reads_there_are_pages(void **state)
{
	struct part_options refused = { .part_len = 10, .is_refused = true };
	struct part_options unimplemented = { .part_len = 10, .fail_with = VD_UNSUPPORTED };
	struct world	    world = world_new(1, &refused);

	assert_status(open_watch(&world, true), VD_OK);
	expect_all(&world);
	assert_int_equal(part_store_streams(world.store), 0);
	world_free(&world);
	/* Only the answer tells. */
	world = world_new(2, &unimplemented);
	assert_status(open_watch(&world, true), VD_OK);
	expect_all(&world);
	assert_int_equal(part_store_streams(world.store), 1);
	world_free(&world);
}

/* The value of a request metric of pods; -1: there is none. */
static double requests_of(struct world *world, const char *metric, const char *operation)
{
	struct vdi_buffer buffer;
	char		  line[128];
	const char	 *at;
	double		  value;

	snprintf(line, sizeof line, "\n%s{operation=\"%s\",group=\"\",resource=\"pods\"} ", metric,
		 operation);
	vdi_buffer_init(&buffer, SIZE_MAX);
	assert_status(vdi_metrics_render(vdi_env_metrics(world->env), &buffer), VD_OK);
	vdi_buffer_append_char(&buffer, 0);
	at = strstr(vdi_buffer_bytes(&buffer).data, line);
	value = at ? atof(at + strlen(line)) : -1;
	vdi_buffer_fini(&buffer);
	return value;
}

/* A long read is one request of the operation listStream, a failed one an error; where it is not offered,
 * only the pages count.
 * rules: T-091 */
static void r208_r724_a_long_read_is_counted_by_itself(void **state)
{
	static const struct {
		struct part_options options;
		double		    streams, errors, lists;
	} rows[] = {
		{ { .part_len = 100 }, 1, -1, -1 },
		{ { .part_len = 10, .fail_after = 3, .fail_with = VD_UNAVAILABLE }, 1, 1, -1 },
		{ { .part_len = 10, .fail_with = VD_UNSUPPORTED }, -1, -1, 1 },
		{ { .part_len = 10, .is_refused = true }, -1, -1, 1 },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct world		    world = world_new(i + 1, &rows[i].options);
		struct vdi_storage_metrics *metrics;
		struct vdi_watchchan_event  event;

		assert_status(vdi_storage_metrics_new(world.env, "", "pods", &metrics), VD_OK);
		assert_status(open_counted(&world, true, metrics), VD_OK);
		while (next(&world, &event) == VD_OK)
			vdi_watchchan_event_fini(&event);
		assert_true(requests_of(&world, "etcd_requests_total", "listStream") == rows[i].streams);
		assert_true(requests_of(&world, "etcd_request_errors_total", "listStream") == rows[i].errors);
		assert_true(requests_of(&world, "etcd_request_duration_seconds_count", "listStream") ==
			    rows[i].streams);
		assert_true(requests_of(&world, "etcd_requests_total", "list") == rows[i].lists);
		close_watch(&world);
		vdi_storage_metrics_free(metrics);
		world_free(&world);
	}
}

static void r208_one_key_is_read_by_itself(void **state)
{
	struct part_options	   options = { .part_len = 10 };
	struct world		   world = world_new(1, &options);
	struct vdi_watchchan_event event;

	assert_status(open_watch(&world, false), VD_OK);
	assert_status(next(&world, &event), VD_OK);
	assert_int_equal(event.revision, 5);
	vdi_watchchan_event_fini(&event);
	assert_int_equal(part_store_streams(world.store), 0);
	world_free(&world);
}

/* Compacted in the middle: a plain Expired, after what came before it; and so for whatever else ends it.
 * rules: T-091 */
static void r208_r226_a_broken_read_is_the_last_event(void **state)
{
	static const struct {
		vd_status with, seen;
	} rows[] = { { VD_EXPIRED, VD_EXPIRED },
		     { VD_UNAVAILABLE, VD_INTERNAL },
		     { VD_NOMEM, VD_NOMEM },
		     { VD_UNSUPPORTED, VD_UNSUPPORTED } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct part_options options = {
			.part_len = 10, .fail_after = 3, .fail_with = rows[i].with, .is_lazy = i % 2
		};
		struct world		   world = world_new(i + 1, &options);
		struct vdi_watchchan_event event;

		assert_status(open_watch(&world, true), VD_OK);
		for (int n = 0; n < 30; n++) {
			assert_status(next(&world, &event), VD_OK);
			assert_int_equal(event.type, VD_WATCH_ADDED);
			vdi_watchchan_event_fini(&event);
		}
		assert_status(next(&world, &event), VD_OK);
		assert_int_equal(event.type, VD_WATCH_ERROR);
		assert_status(event.error->code, rows[i].seen);
		assert_status(next(&world, &event), VD_CLOSED);
		world_free(&world);
	}
}

static const struct vd_store_ops *honest;

static vd_status more_without_keys(struct vd_store *store, const struct vd_range_request *request,
				   vd_range_fn done, void *arg)
{
	struct vd_range_result result = { .store_revision = 9, .count = COUNT, .more = true };

	(void) store;
	(void) request;
	done(arg, VD_OK, &result, NULL);
	return VD_OK;
}

/* An initial state that is not whole has no end bookmark: in pages, and in one long read. */
static void r157_more_but_no_keys_is_an_error(void **state)
{
	for (unsigned long_read = 0; long_read < 2; long_read++) {
		struct part_options options = { .part_len = 100, .is_refused = !long_read, .is_cut = true };
		struct world	    world = world_new(1, &options);
		struct vdi_watchchan_event event;
		struct vd_store_ops	   liar;
		unsigned		   count = 0;

		honest = world.store->ops;
		liar = *honest;
		liar.range = more_without_keys;
		world.store->ops = &liar;
		assert_status(open_watch(&world, true), VD_OK);
		while (next(&world, &event) == VD_OK && event.type == VD_WATCH_ADDED) {
			vdi_watchchan_event_fini(&event);
			count++;
		}
		assert_int_equal(count, long_read ? COUNT : 0);
		assert_int_equal(event.type, VD_WATCH_ERROR);
		assert_status(event.error->code, VD_INTERNAL);
		assert_non_null(strstr(event.error->message, "more values remaining"));
		assert_status(next(&world, &event), VD_CLOSED);
		world.store->ops = honest;
		world_free(&world);
	}
}

static void r228_closing_in_the_middle_leaves_nothing(void **state)
{
	for (int seen = 0; seen < 40; seen += 3)
		for (int lazy = 0; lazy < 2; lazy++) {
			struct part_options options = { .part_len = 8, .is_lazy = lazy };
			struct world	    world = world_new((uint64_t) seen + 1, &options);

			assert_status(open_watch(&world, true), VD_OK);
			for (int i = 0; i < seen; i++) {
				struct vdi_watchchan_event event;

				assert_status(next(&world, &event), VD_OK);
				vdi_watchchan_event_fini(&event);
			}
			if (seen == 0)
				(void) vdi_sim_step(world.env);
			world_free(&world);
		}
}

static void torture_a_long_read(void **state)
{
	struct part_options options = { .part_len = 50, .is_lazy = true };
	struct world	    world = world_new(1, &options);

	/* What the store makes once for all its readers. */
	assert_status(open_watch(&world, true), VD_OK);
	vdi_sim_run_until_idle(world.env);
	close_watch(&world);
	for (uint64_t nth = 1;; nth++) {
		struct vdi_watchchan_event event;
		int64_t			   live;
		vd_status		   status;
		bool			   failed;

		vdi_sim_run_until_idle(world.env);
		live = vdi_alloc_live();
		(void) vdi_alloc_fail_nth(nth, 1);
		status = open_watch(&world, true);
		if (status == VD_OK)
			while ((status = next(&world, &event)) == VD_OK) {
				if (event.type == VD_WATCH_ERROR)
					assert_status(event.error->code, VD_NOMEM);
				vdi_watchchan_event_fini(&event);
			}
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		if (world.watchchan)
			close_watch(&world);
		vdi_sim_run_until_idle(world.env);
		if (vdi_alloc_live() != live)
			fail_msg("allocation %llu: %lld blocks are left", (unsigned long long) nth,
				 (long long) (vdi_alloc_live() - live));
		if (!failed) {
			assert_status(status, VD_AGAIN);
			break;
		}
		if (nth > 60)
			nth += 97; /* the same for every object */
	}
	world_free(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r208_a_long_read_equals_the_pages),
		cmocka_unit_test(r208_r158_without_long_reads_there_are_pages),
		cmocka_unit_test(r208_r724_a_long_read_is_counted_by_itself),
		cmocka_unit_test(r208_one_key_is_read_by_itself),
		cmocka_unit_test(r208_r226_a_broken_read_is_the_last_event),
		cmocka_unit_test(r157_more_but_no_keys_is_an_error),
		cmocka_unit_test(r228_closing_in_the_middle_leaves_nothing),
		cmocka_unit_test(torture_a_long_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
