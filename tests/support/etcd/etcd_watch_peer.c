#include "vdtest.h"

#include "actor_sim.h"
#include "etcd_client.h"
#include "etcd_watch_peer.h"
#include "rpc.pb-c.h"

/* ---- Client, network, env ---- */

struct watch_world watch_world_new(uint64_t seed, size_t buffer_bytes)
{
	return watch_world_new_for(seed, buffer_bytes, NULL, NULL);
}

struct watch_world watch_world_new_for(uint64_t seed, size_t buffer_bytes, const char *user,
				       const char *password)
{
	static const char *const endpoints[] = { "peer:2379" };
	struct vd_etcd_options	 options = VD_ETCD_OPTIONS_INIT;
	struct watch_world	 world;
	struct vd_error		 error;

	options.endpoints = endpoints;
	options.endpoint_count = 1;
	options.user = user;
	options.password = password;
	if (buffer_bytes)
		options.watch_buffer_bytes = buffer_bytes;
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &world.env), VD_OK);
	world.script = rpc_script_new(world.env, seed, endpoints, 1);
	assert_status(
		vdi_etcd_new(world.env, &options, rpc_script_client(world.script), &world.client, &error),
		VD_OK);
	return world;
}

static void note_closed(void *arg)
{
	*(bool *) arg = true;
}

static bool is_set(void *arg)
{
	return *(bool *) arg;
}

void watch_world_free(struct watch_world *world)
{
	bool closed = false;

	if (world->client) {
		vd_etcd_close(world->client, note_closed, &closed);
		assert_true(vdi_sim_run_until(world->env, is_set, &closed, VD_SECONDS(60)));
	}
	rpc_script_free(world->script);
	vd_env_free(world->env);
}

void watch_world_run(struct watch_world *world)
{
	vdi_sim_run_until_idle(world->env);
}

struct rpc_script_call *watch_world_stream(struct watch_world *world)
{
	return rpc_script_expect_call(world->script, WATCH_METHOD);
}

void watch_world_no_stream(struct watch_world *world)
{
	vdi_sim_advance(world->env, VD_SECONDS(60));
	assert_null(rpc_script_take_call(world->script, WATCH_METHOD));
}

/* ---- Requests ---- */

static void copy_text(char *to, size_t size, const ProtobufCBinaryData *from)
{
	assert_true(from->len < size);
	if (from->len)
		memcpy(to, from->data, from->len);
	to[from->len] = 0;
}

struct watch_request watch_request_read(struct vd_bytes message)
{
	Etcdserverpb__WatchRequest *request =
		etcdserverpb__watch_request__unpack(NULL, message.size, message.data);
	struct watch_request result = { 0 };

	assert_non_null(request);
	switch (request->request_union_case) {
	case ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST: {
		const Etcdserverpb__WatchCreateRequest *create = request->create_request;

		result.kind = WATCH_CREATE;
		copy_text(result.key, sizeof result.key, &create->key);
		copy_text(result.range_end, sizeof result.range_end, &create->range_end);
		result.range_end_size = create->range_end.len;
		result.start_revision = create->start_revision;
		result.watch_id = create->watch_id;
		result.previous = create->prev_kv;
		result.progress = create->progress_notify;
		result.fragment = create->fragment;
		for (size_t i = 0; i < create->n_filters; i++) {
			result.no_put |=
				create->filters[i] == ETCDSERVERPB__WATCH_CREATE_REQUEST__FILTER_TYPE__NOPUT;
			result.no_delete |= create->filters[i] ==
					    ETCDSERVERPB__WATCH_CREATE_REQUEST__FILTER_TYPE__NODELETE;
		}
		break;
	}
	case ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CANCEL_REQUEST:
		result.kind = WATCH_CANCEL;
		result.watch_id = request->cancel_request->watch_id;
		break;
	case ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_PROGRESS_REQUEST: result.kind = WATCH_PROGRESS; break;
	default: fail_msg("an empty watch request");
	}
	etcdserverpb__watch_request__free_unpacked(request, NULL);
	return result;
}

struct watch_request watch_expect(struct rpc_script_call *stream, enum watch_request_kind kind)
{
	struct watch_request request = watch_request_read(rpc_script_expect_message(stream));

	assert_int_equal(request.kind, kind);
	return request;
}

void watch_expect_nothing(struct watch_world *world, struct rpc_script_call *stream)
{
	struct vd_bytes message;

	watch_world_run(world);
	assert_false(rpc_script_take_message(stream, &message));
}

/* ---- Answers ---- */

/* Memory for an event, in addition to the generated structs. */
struct event_parts {
	Mvccpb__Event	 event;
	Mvccpb__KeyValue kv, previous;
	char		 value[32];
	uint8_t		*large;
};

static ProtobufCBinaryData data_of(const char *text)
{
	return (ProtobufCBinaryData) { strlen(text), (uint8_t *) text };
}

static void fill_event(struct event_parts *parts, const struct watch_event *event)
{
	mvccpb__event__init(&parts->event);
	mvccpb__key_value__init(&parts->kv);
	parts->event.kv = &parts->kv;
	parts->kv.key = data_of(event->key);
	parts->kv.mod_revision = event->mod_rev;
	if (event->is_delete) {
		parts->event.type = MVCCPB__EVENT__EVENT_TYPE__DELETE;
	} else {
		parts->kv.create_revision = event->create_rev ? event->create_rev : event->mod_rev;
		parts->kv.version = 1 + parts->kv.mod_revision - parts->kv.create_revision;
		snprintf(parts->value, sizeof parts->value, "v%lld", (long long) event->mod_rev);
		parts->kv.value = data_of(parts->value);
		if (event->value_size) {
			parts->large = malloc(event->value_size);
			memset(parts->large, 'v', event->value_size);
			parts->kv.value = (ProtobufCBinaryData) { event->value_size, parts->large };
		}
	}
	if (event->has_previous) {
		mvccpb__key_value__init(&parts->previous);
		parts->previous.key = parts->kv.key;
		parts->previous.value = data_of("p");
		parts->previous.mod_revision = parts->previous.create_revision = event->mod_rev - 1;
		parts->previous.version = 1;
		parts->event.prev_kv = &parts->previous;
	}
}

void watch_answer(struct rpc_script_call *stream, const struct watch_answer *answer)
{
	Etcdserverpb__WatchResponse  response = ETCDSERVERPB__WATCH_RESPONSE__INIT;
	Etcdserverpb__ResponseHeader header = ETCDSERVERPB__RESPONSE_HEADER__INIT;
	struct event_parts	    *parts = calloc(answer->event_count + 1, sizeof *parts);
	Mvccpb__Event		   **events = calloc(answer->event_count + 1, sizeof *events);
	uint8_t			    *bytes;
	size_t			     size;

	header.cluster_id = 14;
	header.member_id = 8;
	header.raft_term = 2;
	header.revision = answer->revision;
	response.header = answer->revision ? &header : NULL;
	response.watch_id = answer->id;
	response.created = answer->created;
	response.canceled = answer->canceled;
	response.fragment = answer->fragment;
	response.compact_revision = answer->compact_revision;
	if (answer->reason)
		response.cancel_reason = (char *) answer->reason;
	for (size_t i = 0; i < answer->event_count; i++) {
		fill_event(&parts[i], &answer->events[i]);
		events[i] = &parts[i].event;
	}
	response.n_events = answer->event_count;
	response.events = events;
	bytes = malloc(etcdserverpb__watch_response__get_packed_size(&response) + 1);
	size = etcdserverpb__watch_response__pack(&response, bytes);
	rpc_script_send(stream, (struct vd_bytes) { bytes, size });
	for (size_t i = 0; i < answer->event_count; i++)
		free(parts[i].large);
	free(bytes);
	free(parts);
	free(events);
}

void watch_created(struct rpc_script_call *stream, int64_t id, vd_rev revision)
{
	watch_answer(stream, &(struct watch_answer) { .id = id, .revision = revision, .created = true });
}

void watch_put(struct rpc_script_call *stream, int64_t id, const char *key, vd_rev mod_rev)
{
	struct watch_event event = { .key = key, .mod_rev = mod_rev };

	watch_answer(stream, &(struct watch_answer) {
				     .id = id, .revision = mod_rev, .events = &event, .event_count = 1 });
}

void watch_progress(struct rpc_script_call *stream, int64_t id, vd_rev revision)
{
	watch_answer(stream, &(struct watch_answer) { .id = id, .revision = revision });
}

void watch_canceled(struct rpc_script_call *stream, int64_t id, vd_rev revision, const char *reason)
{
	watch_answer(stream, &(struct watch_answer) {
				     .id = id, .revision = revision, .canceled = true, .reason = reason });
}

void watch_compacted(struct rpc_script_call *stream, int64_t id, vd_rev compacted)
{
	watch_answer(stream,
		     &(struct watch_answer) { .id = id, .canceled = true, .compact_revision = compacted });
}

/* ---- Readers ---- */

static void on_ready(void *arg)
{
	struct watch_reader *reader = arg;

	reader->ready++;
}

void watch_reader_open_request(struct watch_world *world, struct watch_reader *reader,
			       struct vd_etcd_watch_request request)
{
	struct vd_error error;

	*reader = (struct watch_reader) { 0 };
	request.ready = on_ready;
	request.ready_arg = reader;
	assert_status(vd_etcd_watch_open(world->client, &request, &reader->watch, &error), VD_OK);
}

void watch_reader_open(struct watch_world *world, struct watch_reader *reader, const char *key,
		       vd_rev revision)
{
	watch_reader_open_request(
		world, reader,
		(struct vd_etcd_watch_request) { .key = vd_bytes_of(key), .revision = revision });
}

void watch_reader_close(struct watch_reader *reader)
{
	vd_etcd_watch_close(reader->watch);
	reader->watch = NULL;
}

static void print_response(char *text, size_t size, const struct vd_etcd_watch_response *response)
{
	size_t used = strlen(text);

	if (used)
		used += (size_t) snprintf(text + used, size - used, " ");
	if (response->created)
		snprintf(text + used, size - used, "+%lld", (long long) response->header.revision);
	else if (vd_etcd_watch_is_progress(response))
		snprintf(text + used, size - used, "~%lld", (long long) response->header.revision);
	for (size_t i = 0; i < response->event_count; i++)
		used += (size_t) snprintf(text + used, size - used, "%s%s%lld", i ? "," : "",
					  response->events[i].is_delete ? "-" : "",
					  (long long) response->events[i].kv->mod_rev);
	assert_true(strlen(text) + 64 < size);
}

const char *watch_reader_text(struct watch_world *world, struct watch_reader *reader)
{
	static char	     text[65536];
	struct vd_etcd_error error;
	vd_status	     status;

	text[0] = 0;
	for (;;) {
		struct vd_etcd_watch_response response;

		watch_world_run(world);
		status = vd_etcd_watch_next(reader->watch, &response, &error);
		if (status != VD_OK)
			break;
		print_response(text, sizeof text, &response);
	}
	if (status != VD_AGAIN)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s!%s", text[0] ? " " : "",
			 vd_status_name(status));
	return text;
}

struct vd_etcd_error watch_reader_end(struct watch_world *world, struct watch_reader *reader)
{
	struct vd_etcd_watch_response response;
	struct vd_etcd_error	      error = { 0 };
	vd_status		      status;

	watch_world_run(world);
	status = vd_etcd_watch_next(reader->watch, &response, &error);
	assert_true(status != VD_OK && status != VD_AGAIN);
	assert_status(error.error.code, status);
	return error;
}
