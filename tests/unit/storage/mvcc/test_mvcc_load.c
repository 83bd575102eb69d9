/* Unit tests of storage/mvcc/mvcc_load.c: the state of a store after a restart. Real files, simulated
 * time. */
#include "actor_sim.h"
#include "mvcc_build.h"
#include "mvcc_fixture.h"
#include "temp_folder.h"

struct world {
	struct vd_env	      *env;
	char		       path[TEMP_FOLDER_SIZE];
	struct vd_mvcc_options options;
	struct vd_store	      *store;
};

static void init(struct world *w)
{
	memset(w, 0, sizeof *w);
	w->env = mvcc_env_new();
	temp_folder_make(w->path);
	w->options = (struct vd_mvcc_options) VD_MVCC_OPTIONS_INIT;
	w->options.data_dir = w->path;
	w->options.no_sync = true;
	w->store = mvcc_store_new(w->env, &w->options);
}

static void fini(struct world *w)
{
	vd_store_close_wait(w->store);
	vd_env_free(w->env);
	temp_folder_remove(w->path);
}

static void put_leased(struct world *w, const char *key, int64_t lease)
{
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = K(key), .value = K("v"), .lease = lease };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };
	struct mvcc_call      call = { 0 };

	assert_status(vd_store_txn(w->store, &request, mvcc_got_txn, &call), VD_OK);
	vdi_sim_run_until_idle(w->env);
	assert_status(call.status, VD_OK);
}

static void remove_key(struct world *w, const char *key)
{
	struct vd_op	      op = { .kind = VD_OP_DELETE, .key = K(key) };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };
	struct mvcc_call      call = { 0 };

	assert_status(vd_store_txn(w->store, &request, mvcc_got_txn, &call), VD_OK);
	vdi_sim_run_until_idle(w->env);
	assert_status(call.status, VD_OK);
}

static void grant(struct world *w, int64_t id, int64_t ttl_s)
{
	struct mvcc_call call = { 0 };

	assert_status(vd_store_lease_grant(w->store, id, ttl_s, mvcc_got_lease, &call), VD_OK);
	vdi_sim_run_until_idle(w->env);
	assert_status(call.status, VD_OK);
}

static void compact(struct world *w, vd_rev revision)
{
	struct mvcc_call call = { 0 };

	assert_status(vd_store_compact(w->store, revision, false, mvcc_got_done, &call), VD_OK);
	vdi_sim_run_until_idle(w->env);
	assert_status(call.status, VD_OK);
}

/* Takes so long; the clock may jump meanwhile. */
static void restart(struct world *w, vd_dur down, vd_dur jump)
{
	vd_store_close_wait(w->store);
	vdi_sim_advance(w->env, down);
	vdi_sim_jump_wall(w->env, jump);
	w->store = mvcc_store_new(w->env, &w->options);
}

struct leased {
	int64_t ttl_s, granted_ttl_s;
	char	keys[128]; /* each with a comma behind it */
};

static void got_ttl(void *arg, vd_status status, const struct vd_lease_result *result,
		    const struct vd_error *error)
{
	struct leased *leased = arg;

	(void) error;
	assert_status(status, VD_OK);
	leased->ttl_s = result->ttl_s;
	leased->granted_ttl_s = result->granted_ttl_s;
	for (size_t i = 0; i < result->key_count; i++) {
		strncat(leased->keys, result->keys[i].data, result->keys[i].size);
		strcat(leased->keys, ",");
	}
}

static struct leased lease_of(struct world *w, int64_t id)
{
	struct leased leased = { 0 };

	assert_status(vd_store_lease_time_to_live(w->store, id, true, got_ttl, &leased), VD_OK);
	vdi_sim_run_until_idle(w->env);
	return leased;
}

/* The deadline stays, but a client gets some seconds to renew, and never more than was granted. */
static void e508_a_lease_keeps_its_deadline_over_a_restart(void **state)
{
	static const struct {
		int64_t ttl_s, down_s, jump_s, left_s;
	} rows[] = {
		{ 100, 0, 0, 100 },    { 100, 30, 0, 70 },   { 100, 94, 0, 6 },
		{ 100, 95, 0, 5 },     { 100, 96, 0, 5 },    { 100, 100, 0, 5 },
		{ 100, 1000, 0, 5 },   { 5, 1, 0, 5 },	     { 6, 1, 0, 5 },
		{ 6, 0, 0, 6 },	       { 4, 3, 0, 4 },	     { 4, 1000, 0, 4 },
		{ 100, 10, -50, 100 }, /* set back before the grant: not more than the TTL */
		{ 100, 50, -20, 70 },  { 100, 10, 1000, 5 }, { 7000000000, 1000, 0, 6999999000 },
		{ 2, 0, 1000000, 2 },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct leased leased;
		struct world  w;

		init(&w);
		grant(&w, 7, rows[i].ttl_s);
		put_leased(&w, "a", 7);
		restart(&w, VD_SECONDS(rows[i].down_s), VD_SECONDS(rows[i].jump_s));
		leased = lease_of(&w, 7);
		if (leased.ttl_s != rows[i].left_s)
			fail_msg("row %zu: %lld s are left", i, (long long) leased.ttl_s);
		assert_int_equal(leased.granted_ttl_s, rows[i].ttl_s);
		assert_string_equal(leased.keys, "a,");
		/* It ends then, with its key. */
		if (rows[i].left_s < 1000) {
			vdi_sim_advance(w.env, (vd_dur) { VD_SECONDS(rows[i].left_s).ns - 1 });
			assert_string_equal(lease_of(&w, 7).keys, "a,");
			vdi_sim_advance(w.env, (vd_dur) { 1 });
			assert_int_equal(lease_of(&w, 7).ttl_s, -1);
			assert_int_equal(mvcc_status_of(w.store).key_count, 0);
		}
		fini(&w);
	}
}

/* Those that live, with the keys whose newest record names them. */
static void e508_leases_have_their_keys_after_a_restart(void **state)
{
	struct mvcc_call call = { 0 };
	struct world	 w;

	(void) state;
	init(&w);
	for (int64_t id = 1; id <= 4; id++)
		grant(&w, id, 100);
	put_leased(&w, "a", 1);
	put_leased(&w, "b", 2);
	put_leased(&w, "c", 1);
	put_leased(&w, "d", 1);
	put_leased(&w, "e", 3);
	put_leased(&w, "d", 2);
	put_leased(&w, "c", 0);
	remove_key(&w, "b");
	assert_status(vd_store_lease_revoke(w.store, 3, mvcc_got_done, &call), VD_OK);
	vdi_sim_run_until_idle(w.env);
	assert_status(call.status, VD_OK);
	for (unsigned round = 0; round < 3; round++) {
		restart(&w, VD_SECONDS(1), VD_SECONDS(0));
		assert_string_equal(lease_of(&w, 1).keys, "a,");
		assert_string_equal(lease_of(&w, 2).keys, "d,");
		assert_int_equal(lease_of(&w, 3).ttl_s, -1);
		assert_string_equal(lease_of(&w, 4).keys, "");
		assert_true(lease_of(&w, 4).ttl_s > 0);
		assert_int_equal(mvcc_status_of(w.store).key_count, 3);
		vdi_sim_advance(w.env, VD_SECONDS(10)); /* into the checkpoint */
	}
	fini(&w);
}

/* The end of the records in the store's first journal file. */
static long journal_end(const char *folder, FILE **ret_file)
{
	char  path[TEMP_FOLDER_SIZE + 64];
	FILE *file;
	int   byte;
	long  end = 0;

	(void) snprintf(path, sizeof path, "%s/journal-%016d.vdj", folder, 1);
	file = fopen(path, "r+");
	assert_non_null(file);
	for (long i = 0; (byte = getc(file)) != EOF; i++)
		if (byte)
			end = i + 1;
	if (ret_file)
		*ret_file = file;
	else
		(void) fclose(file);
	return end;
}

/* Power fails while the last bytes of the journal are written: what of a revoked lease is on the disk, the
 * lease and all its keys or none of them, is known by any cut. */
static void e502_a_lease_and_its_keys_are_revoked_together(void **state)
{
	struct mvcc_call call = { 0 };
	char		 image[TEMP_FOLDER_SIZE];
	struct world	 w, again;
	long		 before, end;
	unsigned	 kept = 0, gone = 0;

	(void) state;
	init(&w);
	grant(&w, 7, 100);
	put_leased(&w, "b", 7);
	put_leased(&w, "a", 7);
	put_leased(&w, "c", 7);
	before = journal_end(w.path, NULL);
	assert_status(vd_store_lease_revoke(w.store, 7, mvcc_got_done, &call), VD_OK);
	vdi_sim_run_until_idle(w.env);
	assert_status(call.status, VD_OK);
	end = journal_end(w.path, NULL);
	assert_true(end > before);
	again = w;
	again.options.data_dir = image;
	for (long cut = before; cut <= end; cut = cut < end ? VDI_MIN(cut + 9, end) : end + 1) {
		char	      command[4 * TEMP_FOLDER_SIZE];
		struct leased leased;
		FILE	     *file;

		temp_folder_make(image);
		(void) snprintf(command, sizeof command, "cp -r --sparse=always %s/. %s && rm -f %s/lock",
				w.path, image, image);
		assert_int_equal(system(command), 0);
		(void) journal_end(image, &file);
		assert_int_equal(fseek(file, cut, SEEK_SET), 0);
		for (long i = cut; i < end; i++)
			(void) putc(0, file);
		assert_int_equal(fclose(file), 0);
		again.store = mvcc_store_new(w.env, &again.options);
		leased = lease_of(&again, 7);
		if (leased.ttl_s < 0) {
			assert_int_equal(mvcc_status_of(again.store).key_count, 0);
			assert_int_equal(mvcc_status_of(again.store).current, 5);
			gone++;
		} else {
			assert_string_equal(leased.keys, "a,b,c,");
			assert_int_equal(mvcc_status_of(again.store).key_count, 3);
			assert_int_equal(mvcc_status_of(again.store).current, 4);
			kept++;
		}
		vd_store_close_wait(again.store);
		temp_folder_remove(image);
	}
	assert_true(kept > 0 && gone > 0);
	fini(&w);
}

/* Everything that was visible is, at each revision that was not compacted; and the revision never goes back,
 * although the last records are gone. */
static void what_was_visible_is_after_a_restart(void **state)
{
	char key[8];

	(void) state;
	for (unsigned is_compacted = 0; is_compacted < 3; is_compacted++) {
		struct mvcc_text       before[64];
		struct vd_store_status status;
		vd_rev		       last;
		struct world	       w;

		init(&w);
		for (unsigned i = 0; i < 20; i++) {
			snprintf(key, sizeof key, "k%u", i % 7);
			mvcc_put(w.store, key, i % 2 ? "odd" : "even");
		}
		for (unsigned i = 0; i < 7; i++) {
			snprintf(key, sizeof key, "k%u", i);
			remove_key(&w, key);
		}
		last = mvcc_status_of(w.store).current;
		assert_int_equal(last, 28);
		if (is_compacted)
			compact(&w, is_compacted == 1 ? 15 : last);
		status = mvcc_status_of(w.store);
		for (vd_rev revision = VDI_MAX(status.compacted, 2); revision <= last; revision++)
			before[revision] = mvcc_all_text(w.store, revision);
		for (unsigned round = 0; round < 3; round++) {
			struct vd_store_status now;

			restart(&w, VD_SECONDS(1), VD_SECONDS(0));
			now = mvcc_status_of(w.store);
			assert_int_equal(now.current, last);
			assert_int_equal(now.compacted, status.compacted);
			assert_int_equal(now.key_count, 0);
			assert_true(now.size_bytes > 0);
			for (vd_rev revision = VDI_MAX(status.compacted, 2); revision <= last; revision++) {
				struct mvcc_text after = mvcc_all_text(w.store, revision);

				assert_int_equal(after.size, before[revision].size);
				assert_memory_equal(after.bytes, before[revision].bytes, after.size);
			}
			vdi_sim_advance(w.env, VD_SECONDS(10));
		}
		mvcc_put(w.store, "next", "1");
		assert_int_equal(mvcc_status_of(w.store).current, last + 1);
		fini(&w);
	}
}

/* The records of a checkpoint are counted beforehand, so the array does not grow while they are read. */
static void expected_records_have_room(void **state)
{
	struct vdi_mvcc_build build = { 0 };

	(void) state;
	assert_status(vdi_mvcc_build_expect(&build, 0), VD_OK);
	assert_int_equal(build.capacity, 0);
	assert_status(vdi_mvcc_build_expect(&build, 1000), VD_OK);
	assert_true(build.capacity >= 1000);
	assert_int_equal(build.count, 0);
	vdi_mvcc_build_fini(&build);
	memset(&build, 0, sizeof build);
	(void) vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_mvcc_build_expect(&build, 1), VD_NOMEM);
	(void) vdi_alloc_fail_nth(0, 0);
	vdi_mvcc_build_fini(&build);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e508_a_lease_keeps_its_deadline_over_a_restart),
		cmocka_unit_test(e508_leases_have_their_keys_after_a_restart),
		cmocka_unit_test(e502_a_lease_and_its_keys_are_revoked_together),
		cmocka_unit_test(expected_records_have_room),
		cmocka_unit_test(what_was_visible_is_after_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
