/* A watch "from now" of the etcd store, between writes, compactions and a server that gets requests late:
 * what was written through this store after the watch was asked for, or by others since the server has the
 * watch, is seen, or the watch expires. Under preemption, against a client that is a page of code. */
#include "cacher_fixture.h"
#include "env.h"
#include "etcd_store.h"
#include "etcd_watch.h"

#define REVISIONS_MAX 256
#define SEEDS 400

/* The server, and the watches that its client has. */
struct fake_watch {
	int64_t start;
	int64_t created; /* the server's revision when it got the request; 0: not yet */
	bool	is_expired;
};

static struct server {
	struct vd_env	     *env;
	_Atomic int64_t	      current;
	int64_t		      compacted;
	struct vd_kv	     *kvs[REVISIONS_MAX];
	bool		      is_own[REVISIONS_MAX];
	struct fake_watch     watches[16];
	unsigned	      watch_count;
	struct vd_store_event event; /* of the last response */
} server;

static vd_status fake_open(struct vd_etcd *client, const struct vd_etcd_watch_request *request,
			   struct fake_watch **ret_watch, struct vd_error *reterr)
{
	struct fake_watch *watch = &server.watches[server.watch_count++];

	*watch = (struct fake_watch) { .start = request->revision };
	*ret_watch = watch;
	vdi_preempt_point();
	return VD_OK;
}

static void fake_close(struct fake_watch *watch)
{
}

static vd_status fake_next(struct fake_watch *watch, struct vd_etcd_watch_response *ret_response,
			   struct vd_etcd_error *reterr)
{
	vdi_preempt_point();
	if (watch->is_expired) {
		reterr->error.compacted = server.compacted;
		return VD_EXPIRED;
	}
	if (watch->created == 0 || watch->start > server.current)
		return VD_AGAIN;
	server.event = (struct vd_store_event) { .kv = server.kvs[watch->start] };
	*ret_response = (struct vd_etcd_watch_response) { .header.revision = server.current,
							  .events = &server.event,
							  .event_count = 1 };
	watch->start++;
	return VD_OK;
}

static vd_status fake_progress(struct fake_watch *watch)
{
	return VD_OK;
}

static vd_rev fake_created(const struct fake_watch *watch)
{
	return watch->created;
}

static bool fake_enter(struct vdi_etcd_store *store)
{
	return true;
}

static void fake_leave(struct vdi_etcd_store *store)
{
}

static void fake_count(struct vdi_etcd_store *store, enum vdi_etcd_operation operation, bool failed)
{
}

static void fake_describe(const struct vd_etcd_error *error, struct vd_error *ret_error)
{
	*ret_error = error->error;
}

static void fake_fill(struct vdi_etcd_server_state *server_state, vd_rev requested, struct vd_error *error)
{
}

static struct vdi_etcd_server_state *fake_unref(struct vdi_etcd_server_state *server_state)
{
	atomic_fetch_sub(&server_state->references, 1);
	return NULL;
}

/* The file itself, over these. */
#define vd_etcd_watch fake_watch
#define vdi_etcd_watch_created fake_created
#define vd_etcd_watch_open fake_open
#define vd_etcd_watch_close fake_close
#define vd_etcd_watch_next fake_next
#define vd_etcd_watch_progress fake_progress
#define vdi_etcd_store_enter fake_enter
#define vdi_etcd_store_leave fake_leave
#define vdi_etcd_store_count fake_count
#define vdi_etcd_store_describe fake_describe
#define vdi_etcd_server_state_fill fake_fill
#define vdi_etcd_server_state_unref fake_unref
#include "etcd_store_watch.c"

/* ---- Actors ---- */

static struct vdi_etcd_server_state *server_state;

static int64_t server_write(bool is_own)
{
	int64_t revision = server.current + 1;

	assert_true(revision < REVISIONS_MAX);
	server.kvs[revision] = calloc(1, sizeof *server.kvs[revision]);
	server.kvs[revision]->mod_rev = revision;
	server.is_own[revision] = is_own;
	server.current = revision;
	return revision;
}

/* A transaction of this store, as etcd_store.c counts it. */
static void write_own(void *arg)
{
	int64_t revision;

	atomic_fetch_add(&server_state->txns_begun, 1);
	vdi_preempt_point();
	revision = server_write(true);
	vdi_preempt_point();
	vdi_etcd_server_state_raise(&server_state->current, revision);
	atomic_fetch_add(&server_state->txns_ended, 1);
	vdi_preempt_point();
}

static void write_foreign(void *arg)
{
	(void) server_write(false);
}

static void compact(void *arg)
{
	server.compacted = server.current;
}

/* The server gets requests; a connection that breaks makes it look at the start again. */
static void serve(void *arg)
{
	for (unsigned i = 0; i < server.watch_count; i++) {
		struct fake_watch *watch = &server.watches[i];

		watch->is_expired |= watch->start < server.compacted;
		if (watch->created == 0)
			watch->created = server.current;
	}
}

enum { OWN, FOREIGN, COMPACTOR, SERVER, ACTORS };

/* Up to max events, one at a time. false: the watch has expired. */
static bool take(struct vd_store_watch *watch, bool *seen, uint64_t max)
{
	struct vd_store_batch batch;
	struct vd_error	      error = { 0 };
	vd_status	      status = VD_OK;

	while (max-- && (status = vdi_etcd_store_watch_next(watch, 1, &batch, &error)) == VD_OK)
		seen[batch.revision] = true;
	if (status != VD_OK && status != VD_AGAIN)
		assert_status(status, VD_EXPIRED);
	return status != VD_EXPIRED;
}

/* Three writes of this store. */
static void set_up(struct vdi_etcd_store *store)
{
	memset(&server, 0, sizeof server);
	server_state = calloc(1, sizeof *server_state);
	atomic_store(&server_state->references, 1);
	*store = (struct vdi_etcd_store) { .server_state = server_state };
	for (unsigned i = 0; i < 3; i++)
		write_own(NULL);
}

static void tear_down(void)
{
	for (int64_t i = 0; i < REVISIONS_MAX; i++)
		free(server.kvs[i]);
	assert_int_equal(atomic_load(&server_state->references), 1);
	free(server_state);
}

/* Returns whether the watch lived to the end. */
static bool run_seed(uint64_t seed)
{
	static void (*const runs[ACTORS])(void *) = { write_own, write_foreign, compact, serve };
	struct vdi_etcd_store	      store;
	struct vd_store_watch_request request = { .key = vd_bytes_of("a") };
	struct vd_actor		     *actors[ACTORS];
	struct vd_store_watch	     *watch = NULL;
	struct vd_error		      error;
	bool			      seen[REVISIONS_MAX] = { false };
	bool			      lives = true;
	int64_t			      first = 0;

	set_up(&store);
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &server.env), VD_OK);
	assert_status(vdi_sim_set_preemptions(server.env, 8), VD_OK);
	for (unsigned i = 0; i < ACTORS; i++) {
		struct vd_actor_options options = { .name = "actor", .run = runs[i] };

		assert_status(vd_actor_new(server.env, &options, &actors[i]), VD_OK);
	}
	for (unsigned i = 0; i < 40; i++) {
		unsigned which = (unsigned) vd_env_random_below(server.env, ACTORS + 1);

		/* Own writes are rare: often nothing was written through this store for long. */
		if (which < ACTORS && (which != OWN || vd_env_random_below(server.env, 3) == 0))
			vd_actor_wake(actors[which]);
		/* Often one is under way when the watch is asked for. */
		if (i == 10 && vd_env_random_below(server.env, 2) == 0)
			vd_actor_wake(actors[OWN]);
		for (uint64_t steps = vd_env_random_below(server.env, 4); steps; steps--)
			(void) vdi_sim_step(server.env);
		(void) vdi_sim_set_atomic(server.env, false);
		if (i == 10)
			assert_status(vdi_etcd_store_watch(&store.base, &request, &watch, &error), VD_OK);
		else if (i > 10 && lives)
			lives = take(watch, seen, vd_env_random_below(server.env, 3));
		(void) vdi_sim_set_atomic(server.env, true);
	}
	vdi_sim_run_until_idle(server.env);
	serve(NULL);
	lives = lives && take(watch, seen, UINT64_MAX);
	for (int64_t revision = watch->opened + 1; lives && revision <= server.current; revision++) {
		first = first || !(seen[revision] || revision > server.watches[0].created) ? first : revision;
		if (server.is_own[revision] && !seen[revision])
			fail_msg("seed %llu: the watch opened at %lld lacks the store's own write %lld",
				 (unsigned long long) seed, (long long) watch->opened, (long long) revision);
		if (first && !seen[revision])
			fail_msg("seed %llu: %lld is missing, though the server had the watch before, or "
				 "%lld was seen",
				 (unsigned long long) seed, (long long) revision, (long long) first);
	}
	vdi_etcd_store_watch_close(watch);
	for (unsigned i = 0; i < ACTORS; i++)
		vdi_wait_for_actor_close(server.env, actors[i]);
	vd_env_free(server.env);
	tear_down();
	return lives;
}

/* rules: R-231, E-704 */
static void own_writes_are_seen_or_the_watch_expires(void **state)
{
	unsigned lived = 0;

	(void) state;
	for (uint64_t seed = 0; seed < SEEDS; seed++)
		lived += run_seed(seed);
	assert_in_range(lived, SEEDS / 20, SEEDS - SEEDS / 20);
}

/* ---- The same, each guard by itself ---- */

static struct vd_store_watch *open_watch(struct vdi_etcd_store *store)
{
	struct vd_store_watch_request request = { .key = vd_bytes_of("a") };
	struct vd_store_watch	     *watch;
	struct vd_error		      error;

	assert_status(vdi_etcd_store_watch(&store->base, &request, &watch, &error), VD_OK);
	return watch;
}

/* A write of this store is under way when the watch is asked for; its revision is compacted before the server
 * gets the request.
 * rules: E-704, R-231 */
static void a_write_under_way_is_not_left_out(void **state)
{
	struct vdi_etcd_store  store;
	struct vd_store_watch *watch;
	bool		       seen[REVISIONS_MAX] = { false };

	(void) state;
	for (unsigned is_under_way = 0; is_under_way < 2; is_under_way++) {
		set_up(&store);
		if (is_under_way)
			atomic_fetch_add(&server_state->txns_begun, 1);
		watch = open_watch(&store);
		(void) server_write(is_under_way);
		write_foreign(NULL);
		compact(NULL);
		serve(NULL);
		assert_int_equal(take(watch, seen, UINT64_MAX),
				 !is_under_way); /* nothing of the store's own: it begins at the compaction */
		vdi_etcd_store_watch_close(watch);
		tear_down();
	}
}

/* The watch has seen an event, loses its server, and what comes next is compacted: another client's writes
 * would be missing in the middle.
 * rules: R-231 */
static void a_watch_that_has_seen_something_does_not_skip_what_follows(void **state)
{
	struct vdi_etcd_store  store;
	struct vd_store_watch *watch;

	(void) state;
	for (unsigned has_seen = 0; has_seen < 2; has_seen++) {
		bool seen[REVISIONS_MAX] = { false };

		set_up(&store);
		watch = open_watch(&store);
		for (unsigned i = 0; i < 4; i++)
			write_foreign(NULL);
		serve(NULL);
		assert_true(take(watch, seen, has_seen));
		compact(NULL);
		serve(NULL);
		assert_int_equal(take(watch, seen, UINT64_MAX), !has_seen);
		serve(NULL); /* begun again at the compaction */
		if (!has_seen)
			assert_true(take(watch, seen, UINT64_MAX));
		assert_int_equal(seen[4], has_seen);
		assert_int_equal(seen[7], !has_seen);
		vdi_etcd_store_watch_close(watch);
		tear_down();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_under_way_is_not_left_out),
		cmocka_unit_test(a_watch_that_has_seen_something_does_not_skip_what_follows),
		cmocka_unit_test(own_writes_are_seen_or_the_watch_expires),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
