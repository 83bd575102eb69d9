/* The embedded store on a disk without room: a refused write waits while the checkpoint may make room, and no
 * longer than that. Real files, simulated time and actors. */
#include <signal.h>
#include <sys/resource.h>

#include "actor_sim.h"
#include "mvcc_fixture.h"
#include "mvcc_writer.h"
#include "temp_folder.h"

#define KEYS 700
/* A delete that comes now is in the queue when the writer looks for room again. */
#define BEFORE_LOOK ((vd_dur) { VDI_ROOM_CHECK_EVERY.ns - 1 })

struct world {
	struct vd_env	*env;
	char		 path[TEMP_FOLDER_SIZE];
	struct vd_store *store;
	struct rlimit	 no_limit;
	unsigned	 deleted;
};

static void init(struct world *w)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	char		       key[16];

	memset(w, 0, sizeof *w);
	w->env = mvcc_env_new();
	temp_folder_make(w->path);
	options.data_dir = w->path;
	options.no_sync = true;
	w->store = mvcc_store_new(w->env, &options);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &w->no_limit), 0);
	for (unsigned i = 0; i < KEYS; i++) {
		snprintf(key, sizeof key, "k%03u", i);
		mvcc_put(w->store, key, "v");
	}
	vdi_sim_advance(w->env, VD_SECONDS(5));
}

static void set_limit(struct world *w, rlim_t size)
{
	struct rlimit limited = w->no_limit;

	limited.rlim_cur = size;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limited), 0);
}

static void fini(struct world *w)
{
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &w->no_limit), 0);
	vd_store_close_wait(w->store);
	vd_env_free(w->env);
	temp_folder_remove(w->path);
}

/* A value that needs a longer checkpoint. */
static void submit_large(struct world *w, struct mvcc_call *call)
{
	static char	      value[8 << 20];
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = K("large"), .value = { value, sizeof value } };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };

	memset(call, 0, sizeof *call);
	assert_status(vd_store_txn(w->store, &request, mvcc_got_txn, call), VD_OK);
}

/* Deletes a key, which gives the checkpoint work that may make room, and lets so much time pass. */
static void delete_one(struct world *w, vd_dur pause)
{
	char		      key[16];
	struct vd_op	      op = { .kind = VD_OP_DELETE };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };
	struct mvcc_call      call = { 0 };

	snprintf(key, sizeof key, "k%03u", w->deleted++);
	assert_true(w->deleted < KEYS);
	op.key = K(key);
	assert_status(vd_store_txn(w->store, &request, mvcc_got_txn, &call), VD_OK);
	vdi_sim_advance(w->env, pause);
	assert_int_equal(call.answers, 1);
	assert_status(call.status, VD_OK);
}

/* Where nothing makes room there is nothing to wait for. */
static void a_write_that_cannot_fit_is_refused_soon(void **state)
{
	struct mvcc_call call;
	struct world	 w;
	uint64_t	 hash;

	(void) state;
	init(&w);
	set_limit(&w, 4 << 20);
	submit_large(&w, &call);
	vdi_sim_advance(w.env, (vd_dur) { 10 * VDI_ROOM_CHECK_EVERY.ns });
	assert_int_equal(call.answers, 1);
	assert_status(call.status, VD_NO_SPACE);
	delete_one(&w, VD_MS(1));
	/* Then nobody looks for room any more. */
	vdi_sim_advance(w.env, VD_SECONDS(10));
	hash = vdi_sim_schedule_hash(w.env);
	vdi_sim_advance(w.env, VD_SECONDS(1));
	assert_true(vdi_sim_schedule_hash(w.env) == hash);
	fini(&w);
}

/* Writes that are taken meanwhile do not make it wait any longer. */
static void a_write_waits_for_room_two_seconds_at_most(void **state)
{
	struct mvcc_call call;
	struct world	 w;
	vd_mono		 begun;
	vd_dur		 waited;

	(void) state;
	init(&w);
	set_limit(&w, 4 << 20);
	begun = vd_env_now(w.env);
	submit_large(&w, &call);
	delete_one(&w, BEFORE_LOOK);
	do {
		delete_one(&w, VDI_ROOM_CHECK_EVERY);
		waited = vd_mono_since(vd_env_now(w.env), begun);
	} while (call.answers == 0 && waited.ns < 2 * VDI_ROOM_WAIT.ns);
	assert_int_equal(call.answers, 1);
	assert_status(call.status, VD_NO_SPACE);
	assert_in_range(waited.ns, VDI_ROOM_WAIT.ns, VDI_ROOM_WAIT.ns + 2 * VDI_ROOM_CHECK_EVERY.ns);
	fini(&w);
}

/* It is written when there is room in time, once, and its wait is over. */
static void a_write_that_fits_in_time_is_taken(void **state)
{
	struct mvcc_call call;
	struct world	 w;
	vd_rev		 revision;

	(void) state;
	init(&w);
	set_limit(&w, 4 << 20);
	submit_large(&w, &call);
	delete_one(&w, BEFORE_LOOK);
	for (unsigned i = 0; i < 50; i++) {
		delete_one(&w, VDI_ROOM_CHECK_EVERY);
		assert_int_equal(call.answers, 0);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &w.no_limit), 0);
	revision = mvcc_status_of(w.store).current;
	vdi_sim_advance(w.env, VDI_ROOM_CHECK_EVERY);
	assert_int_equal(call.answers, 1);
	assert_status(call.status, VD_OK);
	assert_int_equal(call.revision, revision + 1);
	vdi_sim_advance(w.env, VD_SECONDS(5));
	assert_int_equal(mvcc_status_of(w.store).current, revision + 1);
	assert_int_equal(call.answers, 1);
	fini(&w);
}

/* A store that is closed answers what waits. */
static void a_close_does_not_wait_for_room(void **state)
{
	struct mvcc_call call;
	struct world	 w;
	vd_mono		 begun;

	(void) state;
	init(&w);
	set_limit(&w, 4 << 20);
	submit_large(&w, &call);
	delete_one(&w, VD_MS(1));
	assert_int_equal(call.answers, 0);
	begun = vd_env_now(w.env);
	vd_store_close_wait(w.store);
	w.store = NULL;
	assert_int_equal(call.answers, 1);
	assert_true(call.status == VD_NO_SPACE || call.status == VD_CLOSED);
	assert_true(vd_mono_since(vd_env_now(w.env), begun).ns < VD_SECONDS(1).ns);
	fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_that_cannot_fit_is_refused_soon),
		cmocka_unit_test(a_write_waits_for_room_two_seconds_at_most),
		cmocka_unit_test(a_write_that_fits_in_time_is_taken),
		cmocka_unit_test(a_close_does_not_wait_for_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
