/* One Watch stream of an etcd server without a network: requests, and responses as text: "h6 id0 created",
 * "h7 id0 PUT k=1 @7", ... */
#ifndef ETCD_WATCH_TALK_H
#define ETCD_WATCH_TALK_H

#include "etcd_server_fixture.h"

#include "actor_sim.h"
#include "vdtest.h"

#define COMPACTED "etcdserver: mvcc: required revision has been compacted"

struct watch_test {
	struct etcd_server_fixture fixture;
	struct etcd_server_call	   call;
};

static inline void open_stream(struct watch_test *test)
{
	etcd_server_call_init(&test->call, &test->fixture);
	etcd_server_call_open(&test->call, &test->fixture, "/etcdserverpb.Watch/Watch");
}

static inline int setup(void **state)
{
	struct vdi_etcdserver_options options = { .progress_interval = VD_SECONDS(10) };
	struct watch_test	     *test = malloc(sizeof *test);

	etcd_server_fixture_open(&test->fixture, &options);
	open_stream(test);
	*state = test;
	return 0;
}

static inline int teardown(void **state)
{
	struct watch_test *test = *state;

	etcd_server_call_end(&test->call);
	etcd_server_fixture_close(&test->fixture);
	free(test);
	return vdi_alloc_live() == 0 ? 0 : -1;
}

struct create {
	const char *key;
	const char *end;
	size_t	    end_size;
	int64_t	    start;
	int64_t	    id;
	bool	    previous;
	bool	    notify;
	bool	    fragment;
	bool	    no_put;
	bool	    no_delete;
};

static inline void create(struct watch_test *test, struct create with)
{
	Etcdserverpb__WatchCreateRequest	     body = ETCDSERVERPB__WATCH_CREATE_REQUEST__INIT;
	Etcdserverpb__WatchRequest		     request = ETCDSERVERPB__WATCH_REQUEST__INIT;
	Etcdserverpb__WatchCreateRequest__FilterType filters[2];

	body.key = etcd_bytes(with.key);
	if (with.end)
		body.range_end = (ProtobufCBinaryData) { with.end_size ? with.end_size : strlen(with.end),
							 (uint8_t *) (uintptr_t) with.end };
	body.start_revision = with.start;
	body.watch_id = with.id;
	body.prev_kv = with.previous;
	body.progress_notify = with.notify;
	body.fragment = with.fragment;
	if (with.no_put)
		filters[body.n_filters++] = ETCDSERVERPB__WATCH_CREATE_REQUEST__FILTER_TYPE__NOPUT;
	if (with.no_delete)
		filters[body.n_filters++] = ETCDSERVERPB__WATCH_CREATE_REQUEST__FILTER_TYPE__NODELETE;
	body.filters = filters;
	request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CREATE_REQUEST;
	request.create_request = &body;
	etcd_server_call_send(&test->call, &request.base);
}

static inline void cancel(struct watch_test *test, int64_t id)
{
	Etcdserverpb__WatchCancelRequest body = ETCDSERVERPB__WATCH_CANCEL_REQUEST__INIT;
	Etcdserverpb__WatchRequest	 request = ETCDSERVERPB__WATCH_REQUEST__INIT;

	body.watch_id = id;
	request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_CANCEL_REQUEST;
	request.cancel_request = &body;
	etcd_server_call_send(&test->call, &request.base);
}

static inline void progress(struct watch_test *test)
{
	Etcdserverpb__WatchProgressRequest body = ETCDSERVERPB__WATCH_PROGRESS_REQUEST__INIT;
	Etcdserverpb__WatchRequest	   request = ETCDSERVERPB__WATCH_REQUEST__INIT;

	request.request_union_case = ETCDSERVERPB__WATCH_REQUEST__REQUEST_UNION_PROGRESS_REQUEST;
	request.progress_request = &body;
	etcd_server_call_send(&test->call, &request.base);
}

static inline void put(struct watch_test *test, const char *key, const char *value)
{
	etcd_server_put(&test->fixture, key, value);
}

static inline void compact(struct watch_test *test, int64_t revision)
{
	Etcdserverpb__CompactionRequest request = ETCDSERVERPB__COMPACTION_REQUEST__INIT;

	request.revision = revision;
	protobuf_c_message_free_unpacked(etcd_server_ask(&test->fixture, NULL, "/etcdserverpb.KV/Compact",
							 &request.base,
							 &etcdserverpb__compaction_response__descriptor),
					 NULL);
}

static inline void describe_event(char *text, size_t size, const Mvccpb__Event *event)
{
	(void) snprintf(text + strlen(text), size - strlen(text), " %s %.*s",
			event->type == MVCCPB__EVENT__EVENT_TYPE__DELETE ? "DELETE" : "PUT",
			(int) event->kv->key.len, (const char *) event->kv->key.data);
	if (event->kv->value.len && event->kv->value.len < 20)
		(void) snprintf(text + strlen(text), size - strlen(text), "=%.*s", (int) event->kv->value.len,
				(const char *) event->kv->value.data);
	(void) snprintf(text + strlen(text), size - strlen(text), "@%d", (int) event->kv->mod_revision);
	if (event->prev_kv)
		(void) snprintf(text + strlen(text), size - strlen(text), "(was %.*s@%d)",
				(int) VDI_MIN(event->prev_kv->value.len, 20),
				(const char *) event->prev_kv->value.data,
				(int) event->prev_kv->mod_revision);
}

static inline const char *next(struct watch_test *test)
{
	static char		     text[4096];
	Etcdserverpb__WatchResponse *response = etcd_server_call_next(&test->call);

	if (response == NULL)
		return "nothing";
	assert_non_null(response->header);
	assert_int_equal(response->header->cluster_id, test->fixture.server->cluster_id);
	(void) snprintf(text, sizeof text, "h%d id%d%s%s%s", (int) response->header->revision,
			(int) response->watch_id, response->created ? " created" : "",
			response->canceled ? " canceled" : "", response->fragment ? " fragment" : "");
	if (response->compact_revision)
		(void) snprintf(text + strlen(text), sizeof text - strlen(text), " compacted %d",
				(int) response->compact_revision);
	if (response->cancel_reason && *response->cancel_reason)
		(void) snprintf(text + strlen(text), sizeof text - strlen(text), " reason %s",
				response->cancel_reason);
	if (response->n_events > 5)
		(void) snprintf(text + strlen(text), sizeof text - strlen(text), " %zu events @%d..%d",
				response->n_events, (int) response->events[0]->kv->mod_revision,
				(int) response->events[response->n_events - 1]->kv->mod_revision);
	for (size_t i = 0; response->n_events <= 5 && i < response->n_events; i++)
		describe_event(text, sizeof text, response->events[i]);
	etcdserverpb__watch_response__free_unpacked(response, NULL);
	return text;
}

#define EXPECT(test, wanted) assert_string_equal(next(test), wanted)

#endif
