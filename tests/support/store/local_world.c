#include "local_world.h"

#include "actor_sim.h"
#include "disk_sim.h"
#include "key_range.h"
#include "local_history.h"
#include "local_store.h"
#include "store_chaos.h"

static void on_log(void *arg, const struct vd_log_record *record)
{
	struct local_world *w = arg;
	size_t		    used = strlen(w->log);

	if (strcmp(record->module, "history") == 0)
		snprintf(w->log + used, sizeof w->log - used, "%c %s\n", "EWID"[record->level],
			 record -> message);
}

unsigned local_log_lines(struct local_world *w, const char *text)
{
	unsigned count = 0;

	for (const char *at = w->log; (at = strstr(at, text)); at++)
		count++;
	return count;
}

void local_ignore_ready(void *arg)
{
}

static void open_oracle(struct local_world *w)
{
	struct vd_store_watch_request request = { .key = K("/registry/"),
						  .range_end = K("/registry0"),
						  .start_revision = 1,
						  .previous = true,
						  .ready = local_ignore_ready };

	assert_status(vd_store_watch_open(w->mvcc, &request, &w->oracle, NULL), VD_OK);
}

struct vd_store *local_mvcc_new(struct local_world *w)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;

	options.history_window.ns = 0;
	assert_status(vd_store_open_mvcc(w->env, &options, &store, NULL), VD_OK);
	return store;
}

void local_world_init(struct local_world *w, uint64_t seed)
{
	struct chaos_options calm = { 0 };

	memset(w, 0, sizeof *w);
	w->bytes = 1 << 20;
	w->window = VD_SECONDS(3600);
	vdi_rand_init(&w->rand, seed);
	assert_status(vdi_env_new_sim(seed, on_log, w, &w->env), VD_OK);
	assert_status(vdi_disk_sim_new(seed, &w->disk), VD_OK);
	vdi_env_set_disk(w->env, w->disk);
	w->mvcc = local_mvcc_new(w);
	w->chaos = chaos_store_new(w->env, w->mvcc, &calm);
	w->front_options = (struct part_options) { .part_len = 100, .is_remote = true, .id = 11 };
	w->front = part_store_new(w->env, w->chaos, &w->front_options);
	open_oracle(w);
}

vd_status local_try_start(struct local_world *w, struct vd_error *error)
{
	struct vdi_local_history_options options = { .data_dir = LOCAL_DIRECTORY,
						     .prefix = "/registry/",
						     .history_bytes = w->bytes,
						     .history_window = w->window };

	return vdi_local_history_open(w->env, w->front, &options, &w->store, error);
}

void local_start(struct local_world *w)
{
	struct vd_error error = { 0 };

	w->log[0] = 0;
	assert_status(local_try_start(w, &error), VD_OK);
	vdi_sim_advance(w->env, VD_MS(100));
}

void local_stop(struct local_world *w)
{
	w->store = vd_store_close_wait(w->store);
}

void local_power_cut(struct local_world *w)
{
	vdi_disk_sim_fail_nth(w->disk, 1, VDI_DISK_SIM_CRASH);
	local_stop(w);
	vdi_disk_sim_crash(w->disk);
}

void local_world_fini(struct local_world *w)
{
	if (w->store)
		local_stop(w);
	vd_store_watch_close(w->oracle);
	part_store_free(w->front);
	chaos_store_free(w->chaos);
	vd_store_close_wait(w->mvcc);
	vdi_disk_sim_free(w->disk);
	vd_env_free(w->env);
	vdi_free(w->truth);
}

vd_rev local_put(struct local_world *w, const char *key, const char *value)
{
	vd_rev revision;

	assert_status(vd_store_put_wait(w->mvcc, K(key), K(value), &revision, NULL), VD_OK);
	return revision;
}

vd_rev local_put_some(struct local_world *w, unsigned count)
{
	vd_rev revision = 0;

	for (unsigned i = 0; i < count; i++) {
		char key[40], value[64];

		snprintf(key, sizeof key, "/registry/pods/ns/p%02u", (unsigned) vdi_rand_below(&w->rand, 20));
		snprintf(value, sizeof value, "{\"n\":%u}", (unsigned) vdi_rand_next(&w->rand));
		if (vdi_rand_once_in(&w->rand, 5)) {
			vd_rev	deleted = 0;
			int64_t number;

			assert_status(vd_store_delete_wait(w->mvcc, K(key), (struct vd_bytes) { 0 }, &number,
							   &deleted, NULL),
				      VD_OK);
			revision = VDI_MAX(revision, deleted);
		} else {
			revision = local_put(w, key, value);
		}
	}
	vdi_sim_advance(w->env, VD_MS(100));
	return revision;
}

static void on_compacted(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	assert_status(status, VD_OK);
}

static struct local_truth local_truth_of(const struct vd_store_event *event)
{
	struct local_truth truth = { .revision = event->kv->mod_rev,
				     .previous = event->previous ? event->previous->mod_rev : 0,
				     .is_delete = event->is_delete };

	memcpy(truth.key, event->kv->data, event->kv->key_size);
	return truth;
}

void local_ask_oracle(struct local_world *w)
{
	struct vd_store_batch batch;

	while (vd_store_watch_next(w->oracle, 100, &batch, NULL) == VD_OK)
		for (size_t i = 0; i < batch.event_count; i++) {
			assert_true(
				vdi_grow((void **) &w->truth, &w->capacity, w->count + 1, sizeof *w->truth));
			w->truth[w->count++] = local_truth_of(&batch.events[i]);
		}
}

void local_compact(struct local_world *w, vd_rev revision)
{
	local_ask_oracle(w);
	assert_status(vd_store_compact(w->mvcc, revision, false, on_compacted, NULL), VD_OK);
	vdi_sim_advance(w->env, VD_MS(100));
}

struct local_reader {
	struct vd_store_watch *watch;
	size_t		       at; /* in the truth */
	size_t		       count;
	vd_rev		       progress;
	vd_status	       status;
};

/* Reads the available events; each must be the next true one. */
static void read_some(struct local_world *w, struct local_reader *reader, const char *prefix)
{
	struct vd_store_batch batch;

	local_ask_oracle(w);
	while ((reader->status = vd_store_watch_next(reader->watch, 1 + vdi_rand_below(&w->rand, 30), &batch,
						     NULL)) == VD_OK) {
		if (batch.event_count == 0)
			reader->progress = batch.revision;
		for (size_t i = 0; i < batch.event_count; i++) {
			struct local_truth heard = local_truth_of(&batch.events[i]);

			while (reader->at < w->count &&
			       strncmp(w->truth[reader->at].key, prefix, strlen(prefix)) != 0)
				reader->at++;
			assert_true(reader->at < w->count);
			assert_int_equal(heard.revision, w->truth[reader->at].revision);
			assert_int_equal(heard.previous, w->truth[reader->at].previous);
			assert_int_equal(heard.is_delete, w->truth[reader->at].is_delete);
			assert_string_equal(heard.key, w->truth[reader->at].key);
			reader->at++;
			reader->count++;
		}
	}
}

size_t local_assert_watch(struct local_world *w, const char *prefix, vd_rev after)
{
	char			      end[64];
	struct vd_store_watch_request request = { .key = K(prefix),
						  .range_end = vdi_bytes_prefix_end(K(prefix), end),
						  .start_revision = after + 1,
						  .previous = true,
						  .ready = local_ignore_ready };
	struct local_reader	      reader = { 0 };
	struct vd_store_status	      status;
	size_t			      left = 0;

	assert_status(vd_store_watch_open(w->store, &request, &reader.watch, NULL), VD_OK);
	local_ask_oracle(w);
	while (reader.at < w->count && w->truth[reader.at].revision <= after)
		reader.at++;
	(void) vd_store_watch_progress(reader.watch);
	for (unsigned i = 0; i < 50; i++) {
		vdi_sim_advance(w->env, VD_MS(50));
		read_some(w, &reader, prefix);
	}
	assert_status(reader.status, VD_AGAIN);
	for (size_t i = reader.at; i < w->count; i++)
		left += strncmp(w->truth[i].key, prefix, strlen(prefix)) == 0;
	assert_int_equal(left, 0);
	assert_status(vd_store_status_get(w->mvcc, &status), VD_OK);
	if (after < status.current) /* E-340 */
		assert_int_equal(reader.progress, status.current);
	vd_store_watch_close(reader.watch);
	return reader.count;
}

struct vd_store_status local_status_of(struct local_world *w)
{
	struct vd_store_status status;

	assert_status(vd_store_status_get(w->store, &status), VD_OK);
	return status;
}
