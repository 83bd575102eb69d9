#include "kube_reader.h"

#include "actor_sim.h"
#include "vdtest.h"

static void on_ready(void *arg)
{
	(void) arg; /* the owner steps */
}

static void stop(struct kube_reader *reader)
{
	if (reader->stream)
		vd_store_stream_close(reader->stream);
	if (reader->watch)
		vd_store_watch_close(reader->watch);
	reader->stream = NULL;
	reader->watch = NULL;
	reader->step = KUBE_READER_IDLE;
}

static struct kube_reader_object *find(struct kube_reader *reader, const char *key)
{
	for (size_t i = 0; i < reader->count; i++)
		if (strcmp(reader->objects[i].key, key) == 0)
			return &reader->objects[i];
	return NULL;
}

static void set(struct kube_reader *reader, const struct vd_kv *kv)
{
	struct kube_reader_object *object;
	char			   key[256];

	snprintf(key, sizeof key, "%.*s", (int) kv->key_size, kv->data);
	object = find(reader, key);
	if (object == NULL) {
		assert_true(reader->count < KUBE_READER_MAX);
		object = &reader->objects[reader->count++];
		memcpy(object->key, key, sizeof key);
	}
	object->revision = kv->mod_rev;
}

/* ---- Lists ---- */

static void on_range(void *arg, vd_status status, const struct vd_range_result *result,
		     const struct vd_error *error)
{
	struct kube_reader *reader = arg;

	(void) error;
	reader->is_ranging = false;
	if (reader->step != KUBE_READER_LISTING)
		return;
	if (status != VD_OK) {
		reader->failed++;
		reader->step = KUBE_READER_IDLE;
		return;
	}
	for (size_t i = 0; i < result->kv_count; i++)
		set(reader, result->kvs[i]);
	reader->revision = result->store_revision;
	reader->step = KUBE_READER_LISTED;
}

void kube_reader_list(struct kube_reader *reader, bool as_range)
{
	struct vd_range_request	       range = { .key = vd_bytes_of(KUBE_PREFIX),
						 .range_end = vd_bytes_of(KUBE_PREFIX_END) };
	struct vd_store_stream_request stream = { .range = range, .ready = on_ready };

	stop(reader);
	if (reader->is_ranging)
		return;
	reader->count = 0;
	reader->lists++;
	reader->step = KUBE_READER_LISTING;
	reader->is_ranging = as_range;
	if (as_range)
		assert_status(vd_store_range(reader->world->store, &range, on_range, reader), VD_OK);
	else
		assert_status(vd_store_stream_open(reader->world->store, &stream, &reader->stream), VD_OK);
}

static void take_parts(struct kube_reader *reader)
{
	struct vd_store_part part;
	struct vd_error	     error;
	vd_status	     status;

	while ((status = vd_store_stream_next(reader->stream, &part, &error)) == VD_OK) {
		for (size_t i = 0; i < part.kv_count; i++)
			set(reader, part.kvs[i]);
		if (!part.last)
			continue;
		stop(reader);
		reader->revision = part.read_revision;
		reader->step = KUBE_READER_LISTED;
		return;
	}
	if (status == VD_AGAIN)
		return;
	reader->failed++;
	stop(reader);
}

/* ---- Watches ---- */

void kube_reader_watch(struct kube_reader *reader)
{
	struct vd_store_watch_request request = { .key = vd_bytes_of(KUBE_PREFIX),
						  .range_end = vd_bytes_of(KUBE_PREFIX_END),
						  .start_revision = reader->revision + 1,
						  .previous = true,
						  .progress = true,
						  .ready = on_ready };
	struct vd_error		      error;

	assert_int_equal(reader->step, KUBE_READER_LISTED);
	assert_status(vd_store_watch_open(reader->world->store, &request, &reader->watch, &error), VD_OK);
	reader->step = KUBE_READER_WATCHING;
}

static void apply(struct kube_reader *reader, const struct vd_store_event *event)
{
	struct kube_reader_object *known;
	char			   key[256];

	snprintf(key, sizeof key, "%.*s", (int) event->kv->key_size, event->kv->data);
	known = find(reader, key);
	reader->events++;
	if (!reader->is_loose) {
		assert_int_equal(event->previous ? event->previous->mod_rev : 0, known ? known->revision : 0);
		assert_true(known == NULL || event->kv->mod_rev > known->revision);
		assert_true(known || !event->is_delete);
	}
	if (!event->is_delete)
		set(reader, event->kv);
	else if (known)
		*known = reader->objects[--reader->count];
}

static void take_batches(struct kube_reader *reader)
{
	struct vd_store_batch batch;
	struct vd_error	      error;
	vd_status	      status;

	while ((status = vd_store_watch_next(reader->watch, 10, &batch, &error)) == VD_OK) {
		assert_true(batch.event_count == 0 || batch.revision > reader->revision);
		assert_true(batch.revision >= reader->revision);
		for (size_t i = 0; i < batch.event_count; i++) {
			assert_true(batch.events[i].kv->mod_rev > reader->revision);
			assert_true(i == 0 || batch.events[i].kv->mod_rev >= batch.events[i - 1].kv->mod_rev);
			apply(reader, &batch.events[i]);
		}
		reader->revision = batch.revision;
	}
	if (status == VD_AGAIN)
		return;
	assert_status(status, VD_EXPIRED);
	reader->expired++;
	stop(reader);
}

/* ---- Steps ---- */

void kube_reader_step(struct kube_reader *reader)
{
	if (reader->step == KUBE_READER_LISTING && reader->stream)
		take_parts(reader);
	else if (reader->step == KUBE_READER_WATCHING)
		take_batches(reader);
}

void kube_reader_settle(struct kube_reader *reader)
{
	unsigned events = UINT32_MAX;

	for (int i = 0; i < 300 && (reader->step != KUBE_READER_WATCHING || events != reader->events); i++) {
		events = reader->events;
		if (reader->step == KUBE_READER_IDLE)
			kube_reader_list(reader, false);
		else if (reader->step == KUBE_READER_LISTED)
			kube_reader_watch(reader);
		else if (reader->step == KUBE_READER_LISTING)
			(void) kube_peer_advance(reader->world->peer); /* the revision may have to grow */
		vdi_sim_advance(reader->world->env, VD_SECONDS(1));
		kube_reader_step(reader);
	}
	assert_int_equal(reader->step, KUBE_READER_WATCHING);
}

bool kube_reader_is_equal(const struct kube_reader *reader)
{
	bool is_equal = reader->count == kube_peer_count(reader->world->peer, "pods");

	for (size_t i = 0; i < reader->count; i++) {
		char  space[256];
		char *name;

		snprintf(space, sizeof space, "%s", reader->objects[i].key + strlen(KUBE_PREFIX));
		name = strchr(space, '/');
		*name++ = 0;
		is_equal &= kube_peer_find(reader->world->peer, "pods", space, name) ==
			    reader->objects[i].revision;
	}
	return is_equal;
}

void kube_reader_close(struct kube_reader *reader)
{
	stop(reader);
}
