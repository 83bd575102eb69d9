/* Unit tests of storage/kube/source/kube_source_stream.c: limits, and pages that are no state. */
#include "actor_sim.h"
#include "kube_client.h"
#include "kube_peer.h"
#include "kube_script.h"
#include "kube_source.h"
#include "kube_world.h"
#include "vdtest.h"

static void count_ready(void *arg)
{
	++*(int *) arg;
}

/* What a whole stream gave. */
struct result {
	size_t	  count, parts;
	int64_t	  total; /* as the last part says */
	bool	  more;
	vd_status status; /* of the end; VD_OK: all parts came */
	vd_rev	  revision;
	char	  message[VD_ERROR_MESSAGE_SIZE];
};

static struct result read_stream(struct vd_env *env, struct vd_store *store, vd_rev revision, int64_t limit)
{
	int			       ready = 0, waits = 0;
	bool			       is_waiting = false;
	struct vd_store_stream_request request = { .range = { .key = vd_bytes_of(KUBE_PREFIX),
							      .range_end = vd_bytes_of(KUBE_PREFIX_END),
							      .revision = revision,
							      .limit = limit },
						   .ready = count_ready,
						   .ready_arg = &ready };
	struct result		       result = { 0 };
	struct vd_store_part	       part = { 0 };
	struct vd_error		       error = { 0 };
	struct vd_store_stream	      *stream;

	assert_status(vd_store_stream_open(store, &request, &stream), VD_OK);
	for (int i = 0; i < 500 && !part.last && result.status == VD_OK; i++) {
		vd_status status = vd_store_stream_next(stream, &part, &error);

		if (status == VD_AGAIN) {
			waits += !is_waiting;
			is_waiting = true;
			vdi_sim_advance(env, VD_MS(100));
			continue;
		}
		is_waiting = false;
		assert_int_equal(ready, waits); /* once for each wait */
		result.status = status;
		if (status != VD_OK)
			break;
		result.parts++;
		result.count += part.kv_count;
		result.more = part.more;
		result.total = part.count;
		result.revision = part.read_revision;
		if (!part.last) {
			assert_int_equal(part.count, 0);
			assert_false(part.more);
		}
	}
	snprintf(result.message, sizeof result.message, "%s", error.message);
	if (result.status == VD_OK) {
		assert_true(part.last);
		assert_status(vd_store_stream_next(stream, &part, NULL), VD_CLOSED);
	}
	vd_store_stream_close(stream);
	return result;
}

/* From the mirror, and from the server's pages. */
static void a_limit_cuts_a_stream(void **state)
{
	static const struct {
		int64_t limit;
		size_t	count;
		bool	more;
	} rows[] = { { 0, 603, false },	 { 1, 1, true },     { 499, 499, true },  { 500, 500, true },
		     { 501, 501, true }, { 602, 602, true }, { 603, 603, false }, { 604, 603, false } };
	struct kube_world world;

	(void) state;
	kube_world_open(&world, 2);
	for (int i = 0; i < 603; i++) {
		char name[16];

		snprintf(name, sizeof name, "p%04d", i);
		kube_peer_put(world.peer, "pods", "a", name, "");
	}
	(void) read_stream(world.env, world.store, 0, 1); /* it is filled */
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (unsigned is_list = 0; is_list < 2; is_list++) {
			struct result result = read_stream(world.env, world.store,
							   is_list ? world.peer->revision : 0, rows[i].limit);

			assert_status(result.status, VD_OK);
			assert_int_equal(result.count, rows[i].count);
			assert_int_equal(result.more, rows[i].more);
			assert_int_equal(result.total, (int64_t) rows[i].count + rows[i].more);
			assert_int_equal(result.revision, world.peer->revision);
			assert_int_equal(result.parts, rows[i].count > 500 ? 2 : 1);
		}
	kube_world_close(&world);
}

/* A list of a server that was restored is older than what its watch has told. */
static void a_list_behind_the_watch_shows_a_restore(void **state)
{
	struct vdi_kube_source *source;
	struct kube_world	world;
	struct result		result;

	(void) state;
	kube_world_open(&world, 2);
	kube_peer_put(world.peer, "pods", "a", "x", "");
	assert_int_equal(read_stream(world.env, world.store, 0, 0).count, 1);
	source = vdi_kube_source_of(world.store);
	source->has_no_progress = true; /* so that lists are sent to the server */
	assert_int_equal(read_stream(world.env, world.store, 0, 0).count, 1);
	source->pump.covered = world.peer->revision + 5; /* as if it had been there */
	result = read_stream(world.env, world.store, 0, 0);
	assert_status(result.status, VD_EXPIRED);
	assert_string_equal(result.message, vd_status_sentence(VD_EXPIRED));
	assert_int_equal(source->epoch, 1);
	assert_false(source->pump.was_contradicted);
	vdi_sim_advance(world.env, VD_SECONDS(60));
	assert_int_equal(read_stream(world.env, world.store, 0, 0).count, 1);
	kube_world_close(&world);
}

#define POD(name)                                                                                            \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"a\","   \
	"\"resourceVersion\":\"3\"}}"
#define LIST(token, items)                                                                                   \
	"{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"" token "\"},\"items\":[" items "]}"

static void pages_must_be_in_order(void **state)
{
	static const struct {
		const char *first, *second;
		size_t	    count; /* 0: no state */
	} rows[] = {
		{ LIST("t", POD("a") "," POD("c")), LIST("", POD("d") "," POD("e")), 4 },
		{ LIST("t", POD("c") "," POD("a")), LIST("", POD("e") "," POD("d")), 4 },
		{ LIST("t", POD("a") "," POD("c")), LIST("", POD("c")), 0 },
		{ LIST("t", POD("a") "," POD("c")), LIST("", POD("b")), 0 },
		{ LIST("t", POD("a") "," POD("c")), LIST("", POD("d") "," POD("b")), 0 },
		{ LIST("t", POD("a") "," POD("c")), LIST("", ""), 2 },
	};
	static const struct vd_kube_resource pods = { "", "v1", "pods", "Pod", false };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		/* The second one is that to the pump, which asks who the server is; it gets none. */
		const struct kube_script_answer answers[] = { { .code = 200, .body = rows[i].first },
							      { .holds = true },
							      { .code = 200, .body = rows[i].second } };
		struct vd_kube_options		options = VD_KUBE_OPTIONS_INIT;
		struct kube_script script = { .answers = answers, .count = VDI_ARRAY_SIZE(answers) };
		struct vd_env	  *env;
		struct vd_kube	  *kube;
		struct vd_store	  *store;
		struct result	   result;

		assert_status(vdi_env_new_sim(7, NULL, NULL, &env), VD_OK);
		script.env = env;
		kube_script_use(&script);
		options.server = "http://127.0.0.1:1";
		assert_status(vdi_kube_open_over(env, &options, kube_script_transport_new, &kube, NULL),
			      VD_OK);
		assert_status(vd_store_open_kube(kube, &pods, NULL, KUBE_PREFIX, &store, NULL), VD_OK);
		result = read_stream(env, store, 7, 0);
		assert_string_equal(script.requests[1].path, "/api/v1/namespaces/kube-system");
		assert_status(result.status, rows[i].count ? VD_OK : VD_BAD_REQUEST);
		if (rows[i].count)
			assert_int_equal(result.count, rows[i].count);
		else
			assert_string_equal(result.message, "the pages of the server's list are not ordered");
		/* A restored server may have the revision again. */
		assert_int_equal(vdi_kube_source_of(store)->ring.given[0], 7);
		store = vd_store_close_wait(store);
		kube = vd_kube_close_wait(kube);
		env = vd_env_free(env);
	}
}

/* A stream that waits for a page of the server is ended, too. */
static void a_shutdown_ends_a_list(void **state)
{
	static const struct vd_kube_resource   pods = { "", "v1", "pods", "Pod", false };
	static const struct kube_script_answer answers[] = { { .holds = true } };
	struct vd_kube_options		       options = VD_KUBE_OPTIONS_INIT;
	struct kube_script		       script = { .answers = answers, .count = 1 };
	int				       ready = 0;
	struct vd_store_stream_request	       request = { .ready = count_ready, .ready_arg = &ready };
	struct vd_store_stream		      *stream;
	struct vd_store_part		       part;
	struct vd_env			      *env;
	struct vd_kube			      *kube;
	struct vd_store			      *store;

	(void) state;
	request.range = (struct vd_range_request) { .key = vd_bytes_of(KUBE_PREFIX),
						    .range_end = vd_bytes_of(KUBE_PREFIX_END),
						    .revision = 7 };
	assert_status(vdi_env_new_sim(7, NULL, NULL, &env), VD_OK);
	script.env = env;
	kube_script_use(&script);
	options.server = "http://127.0.0.1:1";
	assert_status(vdi_kube_open_over(env, &options, kube_script_transport_new, &kube, NULL), VD_OK);
	assert_status(vd_store_open_kube(kube, &pods, NULL, KUBE_PREFIX, &store, NULL), VD_OK);
	assert_status(vd_store_stream_open(store, &request, &stream), VD_OK);
	assert_status(vd_store_stream_next(stream, &part, NULL), VD_AGAIN);
	vdi_sim_run_until_idle(env);
	assert_int_equal(script.open, 2);
	/* An error of the pump is none of a list of its own. */
	vdi_kube_streams_end(vdi_kube_source_of(store), &(struct vd_error) { .code = VD_FORBIDDEN });
	assert_int_equal(ready, 0);
	vd_store_shutdown(store);
	vdi_sim_run_until_idle(env);
	assert_int_equal(ready, 1);
	assert_status(vd_store_stream_next(stream, &part, NULL), VD_CLOSED);
	assert_int_equal(script.open, 1); /* the client asks who the server is */
	vd_store_stream_close(stream);
	store = vd_store_close_wait(store);
	kube = vd_kube_close_wait(kube);
	env = vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_limit_cuts_a_stream),
		cmocka_unit_test(a_list_behind_the_watch_shows_a_restore),
		cmocka_unit_test(pages_must_be_in_order),
		cmocka_unit_test(a_shutdown_ends_a_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
