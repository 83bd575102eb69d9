#include "history_world.h"

#include "disk_sim.h"
#include "journal_segment.h"

void history_world_init(struct history_world *w, uint64_t seed)
{
	*w = (struct history_world) { .bytes_max = 1 << 20,
				      .store_id = HISTORY_STORE_ID,
				      .prefix = "/registry/",
				      .now = { INT64_C(1700000000) * 1000000000 },
				      .revision = 4,
				      .value_size = 40 };
	vdi_rand_init(&w->rand, seed);
	assert_status(vdi_disk_sim_new(seed, &w->disk), VD_OK);
	assert_status(vdi_dir_open(w->disk, "/data", &w->dir, NULL), VD_OK);
}

vd_status history_try_open(struct history_world *w, struct vd_error *error)
{
	struct vdi_history_files_options options = { .dir = w->dir,
						     .store_id = w->store_id,
						     .prefix = K(w->prefix),
						     .seed = 5,
						     .bytes_max = w->bytes_max,
						     .window = w->window };
	vd_status			 status;

	w->lost = (struct vd_error) { .code = VD_OK };
	VDI_TRY(vdi_loaded_history_new(&w->loaded));
	status = vdi_history_files_open(&options, w->now, w->loaded, &w->files, &w->lost, error);
	if (status != VD_OK)
		w->loaded = vdi_loaded_history_unref(w->loaded);
	return status;
}

void history_open(struct history_world *w)
{
	struct vd_error error = { 0 };

	assert_status(history_try_open(w, &error), VD_OK);
	assert_status(vdi_history_files_tidy(w->files, NULL), VD_OK);
	if (w->loaded->until == 0)
		vdi_history_files_restart(w->files, w->revision);
	assert_status(vdi_history_files_prepare(w->files, w->now, NULL), VD_OK);
}

void history_close(struct history_world *w)
{
	w->files = vdi_history_files_close(w->files);
	w->loaded = vdi_loaded_history_unref(w->loaded);
}

void history_world_fini(struct history_world *w)
{
	history_close(w);
	for (size_t i = 0; i < HISTORY_KEYS; i++)
		vd_kv_unref(w->live[i]);
	for (size_t i = 0; i < w->count; i++) {
		vd_kv_unref(w->events[i].kv);
		vd_kv_unref(w->events[i].previous);
	}
	vdi_free(w->events);
	vdi_dir_close(w->dir);
	vdi_disk_sim_free(w->disk);
}

struct vd_kv *history_record_of(unsigned key, struct vd_kv *previous, vd_rev revision, bool is_delete,
				size_t value_size, uint64_t noise)
{
	char		name[32], value[4096];
	struct vd_kv   *kv;
	struct vd_bytes bytes = { value, is_delete ? 0 : value_size };

	snprintf(name, sizeof name, "/registry/pods/k%02u", key);
	memset(value, 'a' + (int) (noise % 26), sizeof value);
	assert_status(vd_kv_new(K(name), bytes, &kv), VD_OK);
	kv->mod_rev = revision;
	if (!is_delete) {
		kv->create_rev = previous ? previous->create_rev : revision;
		kv->version = previous ? previous->version + 1 : 1;
		kv->lease = noise % 7 == 0 ? (int64_t) noise : 0;
	}
	return kv;
}

size_t history_make_revision(struct history_world *w)
{
	size_t	 first = w->count;
	unsigned changes = 1 + (unsigned) vdi_rand_below(&w->rand, 3),
		 key = (unsigned) vdi_rand_below(&w->rand, HISTORY_KEYS - 3);

	w->revision += 1 + (vd_rev) vdi_rand_below(&w->rand, 3);
	for (unsigned i = 0; i < changes; i++, key++) {
		struct vd_kv *previous = w->live[key];
		bool	      is_delete = previous && vdi_rand_once_in(&w->rand, 4);
		struct vd_kv *kv = history_record_of(key, previous, w->revision, is_delete, w->value_size,
						     vdi_rand_next(&w->rand));

		assert_true(vdi_grow((void **) &w->events, &w->capacity, w->count + 1, sizeof *w->events));
		w->events[w->count++] =
			(struct vd_store_event) { .is_delete = is_delete, .kv = kv, .previous = previous };
		w->live[key] = is_delete ? NULL : vd_kv_ref(kv);
	}
	return first;
}

void history_record_some(struct history_world *w, unsigned revisions)
{
	for (unsigned i = 0; i < revisions; i++) {
		size_t first = history_make_revision(w);

		assert_status(vdi_history_files_prepare(w->files, w->now, NULL), VD_OK);
		assert_status(vdi_history_files_append(w->files, w->events + first, w->count - first, w->now),
			      VD_OK);
		if (vdi_rand_once_in(&w->rand, 2))
			assert_status(vdi_history_files_flush(w->files, NULL), VD_OK);
		if (vdi_rand_once_in(&w->rand, 5)) {
			w->revision++;
			assert_status(vdi_history_files_mark(w->files, w->revision), VD_OK);
		}
		assert_status(vdi_history_files_evict(w->files, w->now, NULL), VD_OK);
	}
	assert_status(vdi_history_files_flush(w->files, NULL), VD_OK);
}

static void assert_same_kv(const struct vd_kv *a, const struct vd_kv *b)
{
	assert_int_equal(a != NULL, b != NULL);
	if (a == NULL)
		return;
	assert_true(vd_bytes_equal(vd_kv_key(a), vd_kv_key(b)));
	assert_true(vd_bytes_equal(vd_kv_value(a), vd_kv_value(b)));
	assert_int_equal(a->mod_rev, b->mod_rev);
	assert_int_equal(a->create_rev, b->create_rev);
	assert_int_equal(a->version, b->version);
	assert_int_equal(a->lease, b->lease);
}

void history_assert_loaded(struct history_world *w)
{
	size_t at = 0;

	for (size_t i = 0; i < w->count; i++) {
		const struct vd_store_event *event = &w->events[i];

		if (event->kv->mod_rev <= w->loaded->floor || event->kv->mod_rev > w->loaded->until)
			continue;
		assert_true(at < w->loaded->count);
		assert_int_equal(event->is_delete, w->loaded->events[at].is_delete);
		assert_same_kv(event->kv, w->loaded->events[at].kv);
		assert_same_kv(event->previous, w->loaded->events[at].previous);
		at++;
	}
	assert_int_equal(at, w->loaded->count);
}

void history_sync_and_close(struct history_world *w)
{
	assert_status(vdi_history_files_sync(w->files, NULL), VD_OK);
	history_close(w);
}

void history_reopen(struct history_world *w)
{
	history_close(w);
	history_open(w);
	history_assert_loaded(w);
}

unsigned history_segments(struct history_world *w, uint64_t *ret_first)
{
	unsigned count = 0;
	char	 name[VDI_DISK_NAME_MAX];
	int64_t	 size;

	for (uint64_t sequence = 1; sequence < 400; sequence++) {
		vdi_segment_name(VDI_SEGMENT_HISTORY, sequence, name);
		if (vdi_disk_sim_content(w->disk, name, &size) && count++ == 0 && ret_first)
			*ret_first = sequence;
	}
	return count;
}
