/* Stores are closed while others call them, with real threads that stand still where they let go of a lock:
 * what a close takes with it, nobody may need any more. */
#include <unistd.h>

#include "local_history.h"
#include "lock.h"
#include "temp_folder.h"
#include "thread.h"
#include "vdtest.h"

#include <vedette/store.h>

#define STALL 2 /* one release in so many */
#define ROUNDS 100

static void ignore_answer(void *arg, vd_status status, const struct vd_txn_result *result,
			  const struct vd_error *error)
{
	(void) arg;
	(void) result;
	(void) error;
	assert_true(status == VD_OK || status == VD_CLOSED || status == VD_FULL);
}

static void ignore_ready(void *arg)
{
	(void) arg;
}

static vd_status put(struct vd_store *store)
{
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = vd_bytes_of("k"), .value = vd_bytes_of("v") };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };

	return vd_store_txn(store, &request, ignore_answer, NULL);
}

static struct vd_store_watch *watch(struct vd_store *store)
{
	struct vd_store_watch_request request = { .key = vd_bytes_of("k"),
						  .progress = true,
						  .ready = ignore_ready };
	struct vd_store_watch	     *watch = NULL;

	assert_status(vd_store_watch_open(store, &request, &watch, NULL), VD_OK);
	return watch;
}

static struct vd_env *new_env(void)
{
	struct vd_env *env = NULL;

	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	return env;
}

/* The open watch keeps the handle. */
static void *put_until_closed(void *store)
{
	vd_status status;

	while ((status = put(store)) != VD_CLOSED)
		assert_true(status == VD_OK || status == VD_FULL);
	return NULL;
}

static void close_amid_calls(const struct vd_env *env)
{
	struct vd_store_watch *kept;
	struct vdi_thread      writer;
	struct vd_store	      *store;

	assert_status(vd_store_open_mvcc(env, NULL, &store, NULL), VD_OK);
	kept = watch(store);
	assert_status(vdi_thread_start(&writer, "puts", put_until_closed, store), VD_OK);
	vd_store_watch_close(watch(store));
	vd_store_close_wait(store);
	vdi_thread_join(&writer);
	vd_store_watch_close(kept);
}

static void an_embedded_store_closed_amid_calls(void **state)
{
	struct vd_env *env = new_env();

	(void) state;
	vdi_lock_stall(STALL);
	for (unsigned round = 0; round < ROUNDS; round++)
		close_amid_calls(env);
	vdi_lock_stall(0);
	vd_env_free(env);
}

/* ---- The local history: its recorder is busy with what was put last ---- */

static void close_amid_recording(const struct vd_env *env, const char *directory)
{
	struct vdi_local_history_options options = { .data_dir = directory,
						     .prefix = "k",
						     .history_bytes = 1 << 20 };
	struct vd_store			*inner, *store;

	assert_status(vd_store_open_mvcc(env, NULL, &inner, NULL), VD_OK);
	assert_status(vdi_local_history_open(env, inner, &options, &store, NULL), VD_OK);
	for (unsigned i = 0; i < 3; i++)
		assert_status(put(store), VD_OK);
	vd_store_close_wait(store);
}

static void a_local_history_closed_amid_recording(void **state)
{
	char	       directory[TEMP_FOLDER_SIZE];
	struct vd_env *env = new_env();

	(void) state;
	temp_folder_make(directory);
	vdi_lock_stall(STALL);
	for (unsigned round = 0; round < ROUNDS; round++)
		close_amid_recording(env, directory);
	vdi_lock_stall(0);
	temp_folder_remove(directory);
	vd_env_free(env);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_embedded_store_closed_amid_calls),
		cmocka_unit_test(a_local_history_closed_amid_recording),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
