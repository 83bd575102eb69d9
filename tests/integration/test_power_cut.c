/* Power cuts and changed sectors.
 *
 * The system calls of a loaded store are recorded, and disks are laid out as a power cut could have left them
 * (disk_trace.h). On each of them the store must open with everything that was acknowledged before the cut.
 * Then sectors of the stopped store are changed (one bit, zeros, another sector, a file cut short): the store
 * refuses to open and names the directory, or everything is there.
 *
 *   test_power_cut [LAYOUTS [SEED]]     the long run: test_power_cut 2000 7
 */
#include <vedette/env.h>
#include <vedette/store.h>

#include "disk_trace.h"
#include "temp_folder.h"
#include "wait.h"

#define KEYS 64
#define WRITERS 4

static uint64_t layouts = 25;
static uint64_t first_seed = 1;
static char	top[] = "/tmp/vedette-test-power-XXXXXX";

/* ---- The load ---- */

struct writer {
	pthread_t	 thread;
	struct vd_env	*env;
	struct vd_store *store;
	unsigned	 number;
	unsigned	 rounds;
};

static void note_ack(vd_rev revision, unsigned key, size_t size)
{
	trace_ack((struct op) { .kind = OP_ACK, .revision = revision, .key = key, .size = size });
}

/* Each key has one writer. The value contains the step at which it was written. */
static void *write_some(void *arg)
{
	struct writer  *writer = arg;
	struct vdi_rand rand;
	char		filler[6000];
	char		key[32];
	vd_rev		revision = 0;
	int64_t		count;
	size_t		size;

	vdi_rand_init(&rand, first_seed * 100 + writer->number);
	for (unsigned i = 0; i < writer->rounds; i++) {
		unsigned number = (unsigned) vdi_rand_below(&rand, KEYS / WRITERS) * WRITERS + writer->number;

		snprintf(key, sizeof key, "/key/%03u", number);
		size = vdi_rand_once_in(&rand, 4) ? 0 : 1 + vdi_rand_below(&rand, sizeof filler);
		if (size == 0)
			assert_status(vd_store_delete_wait(writer->store, vd_bytes_of(key), VD_BYTES_NONE,
							   &count, &revision, NULL),
				      VD_OK);
		else
			assert_status(
				vd_store_put_wait(
					writer->store, vd_bytes_of(key),
					(struct vd_bytes) { memset(filler, (int) (size % 251), size), size },
					&revision, NULL),
				VD_OK);
		note_ack(revision, number, size);
	}
	return NULL;
}

static void ignore_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) status;
	(void) revision;
	(void) error;
	vdi_wait_signal(arg);
}

static void compact_now(struct writer *writer)
{
	struct vd_store_status status;
	struct vdi_wait	       wait;

	assert_status(vd_store_status_get(writer->store, &status), VD_OK);
	vdi_wait_init(&wait, writer->env);
	if (vd_store_compact(writer->store, status.current, false, ignore_done, &wait) == VD_OK)
		vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
}

static vd_status open_store(const char *dir, struct vd_env *env, struct vd_store **ret_store,
			    struct vd_error *error)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	options.data_dir = dir;
	options.history_window = (vd_dur) { 0 };
	return vd_store_open_mvcc(env, &options, ret_store, error);
}

static void a_load_is_recorded(void **state)
{
	struct writer	 writers[WRITERS];
	struct vd_store *store;
	struct vd_env	*env;
	struct vd_error	 error = { 0 };
	char		 dir[128];

	(void) state;
	snprintf(dir, sizeof dir, "%s/data", top);
	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	trace_begin(dir);
	for (unsigned part = 0; part < 4; part++) {
		assert_status(open_store(trace.dir, env, &store, &error), VD_OK);
		for (unsigned i = 0; i < WRITERS; i++) {
			writers[i] =
				(struct writer) { .env = env, .store = store, .number = i, .rounds = 150 };
			assert_int_equal(pthread_create(&writers[i].thread, NULL, write_some, &writers[i]),
					 0);
		}
		for (unsigned i = 0; i < WRITERS; i++)
			pthread_join(writers[i].thread, NULL);
		compact_now(&writers[0]);
		vd_store_close_wait(store);
	}
	trace_end();
	vd_env_free(env);
}

/* ---- The expected content ---- */

/* Returns the change of a key at a revision; NULL: not acknowledged. */
static const struct op *change_at(unsigned key, vd_rev revision)
{
	for (size_t i = 0; i < trace.count; i++)
		if (trace.ops[i].kind == OP_ACK && trace.ops[i].key == key &&
		    trace.ops[i].revision == revision)
			return &trace.ops[i];
	return NULL;
}

static bool is_removed_after(unsigned key, vd_rev from, vd_rev to)
{
	for (size_t i = 0; i < trace.count; i++)
		if (trace.ops[i].kind == OP_ACK && trace.ops[i].key == key && trace.ops[i].size == 0 &&
		    trace.ops[i].revision > from && trace.ops[i].revision <= to)
			return true;
	return false;
}

/* Everything acknowledged before `end` is there, and newer content was written by a writer. Deleting an
 * absent key does not change the revision. */
static void check(struct vd_store *store, size_t end)
{
	const struct op	      *acked[KEYS] = { NULL };
	struct vd_store_status status;
	char		       name[32];

	for (size_t i = 0; i < end; i++)
		if (trace.ops[i].kind == OP_ACK)
			acked[trace.ops[i].key] = &trace.ops[i];
	assert_status(vd_store_status_get(store, &status), VD_OK);
	for (unsigned key = 0; key < KEYS; key++) {
		vd_rev		 last = acked[key] ? acked[key]->revision : 0;
		struct vd_kv	*kv = NULL;
		const struct op *change;
		vd_status	 found;

		snprintf(name, sizeof name, "/key/%03u", key);
		found = vd_store_get_wait(store, vd_bytes_of(name), &kv, NULL);
		assert_true(status.current >= last);
		if (found == VD_NOT_FOUND) {
			assert_true(last == 0 || acked[key]->size == 0 ||
				    is_removed_after(key, last, status.current));
			continue;
		}
		assert_status(found, VD_OK);
		assert_true(kv->mod_rev > last || (kv->mod_rev == last && acked[key]->size));
		change = change_at(key, kv->mod_rev);
		assert_non_null(change);
		assert_int_equal(vd_kv_value(kv).size, change->size);
		for (size_t i = 0; i < change->size; i++)
			assert_int_equal(((const uint8_t *) vd_kv_value(kv).data)[i], change->size % 251);
		vd_kv_unref(kv);
	}
}

static void open_and_check(const char *dir, size_t end, bool may_refuse, unsigned *refused)
{
	struct vd_error	 error = { 0 };
	struct vd_store *store;
	struct vd_env	*env;
	vd_status	 status;

	assert_status(vd_env_new_threads(NULL, &env), VD_OK);
	status = open_store(dir, env, &store, &error);
	if (status == VD_OK) {
		check(store, end);
		assert_status(vd_store_put_wait(store, vd_bytes_of("/after"), vd_bytes_of("x"), NULL, NULL),
			      VD_OK);
		vd_store_close_wait(store);
	} else {
		if (!may_refuse)
			print_message("%s: %s\n", vd_status_name(status), error.message);
		assert_true(may_refuse);
		assert_non_null(strstr(error.message, dir));
		++*refused;
	}
	vd_env_free(env);
}

static void e469_any_layout_after_a_power_cut_has_everything_acknowledged(void **state)
{
	char	 dir[128];
	unsigned refused = 0;

	(void) state;
	for (uint64_t i = 0; i < layouts; i++) {
		struct vdi_rand rand;
		size_t		end;

		vdi_rand_init(&rand, first_seed * 1000003 + i);
		end = vdi_rand_below(&rand, trace.count + 1);
		snprintf(dir, sizeof dir, "%s/cut-%llu", top, (unsigned long long) i);
		lay_out(dir, end, &rand);
		open_and_check(dir, end, false, &refused);
		temp_folder_remove(dir);
	}
	print_message("%zu calls, %llu layouts\n", trace.count, (unsigned long long) layouts);
}

static void a_changed_sector_is_refused_or_harmless(void **state)
{
	char	 dir[128];
	unsigned refused = 0;

	(void) state;
	for (uint64_t i = 0; i < layouts * 3; i++) {
		struct vdi_rand rand;

		vdi_rand_init(&rand, first_seed * 2000003 + i);
		snprintf(dir, sizeof dir, "%s/changed-%llu", top, (unsigned long long) i);
		lay_out_changed(dir, &rand);
		open_and_check(dir, trace.count, true, &refused);
		temp_folder_remove(dir);
	}
	print_message("%llu changed, %u of them refused by name\n", (unsigned long long) layouts * 3,
		      refused);
	assert_true(refused > 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_load_is_recorded),
		cmocka_unit_test(e469_any_layout_after_a_power_cut_has_everything_acknowledged),
		cmocka_unit_test(a_changed_sector_is_refused_or_harmless),
	};

	if (!trace_arguments(argc, argv, &layouts, &first_seed, top))
		return 1;
	return trace_end_tests(cmocka_run_group_tests(tests, NULL, NULL), top);
}
