/* The watcher against a model of etcd, by seeds: a history of revisions, a server that catches up in batches
 * and fragments, cuts in every place, restarts, compaction, slow readers with small buffers, watches opened
 * and closed at any time.
 *
 * What is checked, of every watch: each event that matches, from its start, once, in order, whole revisions
 * together; progress only when all before it was delivered; an end only by a compaction that passed it;
 * bounded memory. After the faults everyone catches up.
 *
 * A watch's key says which keys it wants and which watch it is: "<mask>:<number>".
 */
#include "vdtest.h"

#include "actor_sim.h"
#include "etcd_watch.h"
#include "etcd_watch_peer.h"
#include "rand.h"

#define KEYS 4
#define EVENTS_MAX 4000
#define WATCHES 6
#define SERVER_WATCHERS_MAX 256
#define VALUE_SIZE 200
#define HELD_MAX 8

static const char *const keys[KEYS] = { "a", "b", "c", "d" };

struct event {
	vd_rev rev;
	int    key;
	bool   is_delete;
};

/* One watcher at the server. */
struct watcher {
	bool	 in_use;
	int64_t	 id;
	int	 number;
	unsigned mask;
	vd_rev	 next;
	bool	 fragment;
	bool	 compacted;
};

struct server_stream {
	struct watcher watchers[SERVER_WATCHERS_MAX];
	/* answers about progress, which stand behind the events of their time; what answers a create may
	 * overtake them */
	vd_rev	 held[HELD_MAX];
	size_t	 held_count;
	int64_t	 next_id;
	unsigned fragments_left; /* of a response that is being sent: nothing else may come between */
};

/* One watch at the client, and what it must see. */
struct client_watch {
	struct watch_reader reader;
	bool		    is_open, is_ended;
	int		    number;
	unsigned	    mask;
	vd_rev		    start;	/* as asked */
	vd_rev		    opened_at;	/* current revision then */
	vd_rev		    base_last;	/* of the last creation with start 0 */
	vd_rev		    delivered;	/* revision of the last event */
	vd_rev		    progressed; /* of the last progress */
	vd_rev		    base; /* start 0: events up to it need not be seen; known with the first event */
	bool		    has_first;
	vd_rev		    created_start; /* of the last create request */
};

struct model {
	struct watch_world    world;
	struct vdi_rand	      rand;
	struct event	      events[EVENTS_MAX];
	size_t		      event_count;
	vd_rev		      current, compacted;
	struct client_watch   watches[WATCHES];
	int		      next_number;
	size_t		      buffer_bytes;
	struct server_stream *streams[4096];
	size_t		      stream_count;
	unsigned	      batch_max;
	bool		      compacts, cuts; /* some worlds are without */
};

/* What happened over all seeds. */
static struct {
	unsigned parks, resumes, fragments, fragments_cut, expirations, progress, held, streams, events,
		closed, reopened, down;
} marks;

/* ---- The server ---- */

static unsigned chance(struct model *m, unsigned in)
{
	return vdi_rand_once_in(&m->rand, in);
}

static struct client_watch *watch_of(struct model *m, int number)
{
	for (int i = 0; i < WATCHES; i++)
		if (m->watches[i].is_open && m->watches[i].number == number)
			return &m->watches[i];
	return NULL;
}

static bool matches(const struct event *event, unsigned mask)
{
	return mask & (1u << event->key);
}

static void on_create(struct model *m, struct rpc_script_call *call, struct server_stream *stream,
		      const struct watch_request *request)
{
	struct client_watch *watch;
	struct watcher	    *free = NULL;

	for (int i = 0; i < SERVER_WATCHERS_MAX && free == NULL; i++)
		if (!stream->watchers[i].in_use)
			free = &stream->watchers[i];
	assert_non_null(free);
	*free = (struct watcher) { .in_use = true, .id = stream->next_id++, .fragment = request->fragment };
	assert_int_equal(sscanf(request->key, "%x:%d", &free->mask, &free->number), 2);
	free->next = request->start_revision ? request->start_revision : m->current + 1;
	watch_created(call, free->id, m->current);
	watch = watch_of(m, free->number);
	if (watch == NULL)
		return;
	if (request->start_revision == 0)
		watch->base_last = m->current;
	assert_true(request->start_revision >= watch->created_start); /* never back */
	if (watch->created_start)
		marks.resumes++;
	watch->created_start = request->start_revision;
}

static void on_cancel(struct model *m, struct rpc_script_call *call, struct server_stream *stream, int64_t id)
{
	for (int i = 0; i < SERVER_WATCHERS_MAX; i++) {
		struct watcher *watcher = &stream->watchers[i];

		if (!watcher->in_use || watcher->id != id)
			continue;
		if (watch_of(m, watcher->number) && !watcher->compacted)
			marks.parks++;
		watcher->in_use = false;
		watch_canceled(call, id, m->current, NULL);
		return;
	}
}

static void flush_held(struct rpc_script_call *call, struct server_stream *stream)
{
	for (size_t i = 0; i < stream->held_count; i++)
		watch_progress(call, -1, stream->held[i]);
	marks.held += stream->held_count;
	stream->held_count = 0;
}

static void on_progress(struct model *m, struct rpc_script_call *call, struct server_stream *stream)
{
	for (int i = 0; i < SERVER_WATCHERS_MAX; i++)
		if (stream->watchers[i].in_use && stream->watchers[i].next != m->current + 1)
			return;
	if (stream->held_count == HELD_MAX || chance(m, 2))
		flush_held(call, stream);
	if (stream->held_count == 0 && chance(m, 2))
		watch_progress(call, -1, m->current);
	else
		stream->held[stream->held_count++] = m->current;
}

static void on_message(void *arg, struct rpc_script_call *call, struct vd_bytes message)
{
	struct model	     *m = arg;
	struct watch_request  request = watch_request_read(message);
	struct server_stream *stream = rpc_script_call_data(call);

	if (request.kind == WATCH_CREATE)
		on_create(m, call, stream, &request);
	else if (request.kind == WATCH_CANCEL)
		on_cancel(m, call, stream, request.watch_id);
	else
		on_progress(m, call, stream);
}

static void on_opened(void *arg, struct rpc_script_call *call)
{
	struct model	     *m = arg;
	struct server_stream *stream = calloc(1, sizeof *stream);

	assert_true(m->stream_count < VDI_ARRAY_SIZE(m->streams));
	m->streams[m->stream_count++] = stream;
	rpc_script_call_set_data(call, stream);
	marks.streams++;
}

/* One response with what is next for the watcher: whole revisions, in one or several messages. The connection
 * may break between them. */
static void serve(struct model *m, struct rpc_script_call *call, struct watcher *watcher)
{
	struct watch_event events[256];
	size_t		   count = 0, sent = 0;
	unsigned revisions = 0, revisions_max = 1 + (unsigned) vdi_rand_below(&m->rand, m->batch_max);
	vd_rev	 last = 0;

	if (watcher->next > m->current || watcher->compacted)
		return;
	if (watcher->next < m->compacted) {
		watcher->compacted = true;
		watch_compacted(call, watcher->id, m->compacted);
		return;
	}
	for (size_t i = 0; i < m->event_count; i++) {
		const struct event *event = &m->events[i];

		if (event->rev < watcher->next || !matches(event, watcher->mask))
			continue;
		if (event->rev != last && revisions++ == revisions_max)
			break;
		if (count + 8 > VDI_ARRAY_SIZE(events) && event->rev != last)
			break;
		last = event->rev;
		events[count++] = (struct watch_event) { .key = keys[event->key],
							 .mod_rev = event->rev,
							 .is_delete = event->is_delete,
							 .value_size = VALUE_SIZE };
	}
	watcher->next =
		revisions > revisions_max || count + 8 > VDI_ARRAY_SIZE(events) ? last + 1 : m->current + 1;
	while (sent < count) {
		size_t part = watcher->fragment && count - sent > 1 && chance(m, 2) ?
				      1 + vdi_rand_below(&m->rand, count - sent - 1) :
				      count - sent;

		watch_answer(call, &(struct watch_answer) { .id = watcher->id,
							    .revision = m->current,
							    .fragment = sent + part < count,
							    .events = events + sent,
							    .event_count = part });
		marks.fragments += sent + part < count;
		if (sent + part < count && chance(m, 8)) {
			/* The messages so far arrive, the rest never. */
			rpc_script_end(call, chance(m, 2) ? VDI_RPC_UNAVAILABLE : VDI_RPC_INTERNAL, "cut");
			marks.fragments_cut++;
			return;
		}
		sent += part;
	}
}

static void serve_stream(struct model *m, struct rpc_script_call *call, unsigned in)
{
	struct server_stream *stream = rpc_script_call_data(call);

	if (rpc_script_call_is_canceled(call) || rpc_script_call_is_over(call))
		return;
	if (chance(m, in))
		flush_held(call, stream);
	for (int i = 0; i < SERVER_WATCHERS_MAX; i++) {
		struct watcher *watcher = &stream->watchers[i];

		if (!watcher->in_use || !chance(m, in))
			continue;
		flush_held(call, stream);
		serve(m, call, watcher);
		if (watcher->next == m->current + 1 && chance(m, 10))
			watch_progress(call, watcher->id, m->current);
	}
	if (chance(m, 60) && in > 1)
		watch_put(call, 1000000 + (int64_t) vdi_rand_below(&m->rand, 3), "z",
			  m->current); /* an id that nobody has */
}

static void serve_all(struct model *m, unsigned in)
{
	for (size_t i = 0; i < rpc_script_call_count(m->world.script); i++)
		serve_stream(m, rpc_script_call_at(m->world.script, i), in);
}

static void transact(struct model *m)
{
	unsigned count = 1 + (unsigned) vdi_rand_below(&m->rand, 3);

	if (m->event_count + count > EVENTS_MAX)
		return;
	m->current++;
	for (unsigned i = 0; i < count; i++)
		m->events[m->event_count++] =
			(struct event) { m->current, (int) vdi_rand_below(&m->rand, KEYS), chance(m, 4) };
}

static void compact(struct model *m, vd_rev revision)
{
	m->compacted = VDI_MAX(m->compacted, revision);
}

/* ---- The readers ---- */

static void open_watch(struct model *m, struct client_watch *watch)
{
	struct vd_etcd_watch_request request = { .fragment = chance(m, 2),
						 .require_leader = chance(m, 4),
						 .progress = true };
	char			     key[32];
	uint64_t		     span = (uint64_t) (m->current - m->compacted + 3);
	unsigned		     mask = 1 + (unsigned) vdi_rand_below(&m->rand, (1u << KEYS) - 1);
	int			     number = m->next_number++;
	vd_rev start = chance(m, 2) ? 0 : VDI_MAX(m->compacted, 1) + (vd_rev) vdi_rand_below(&m->rand, span);

	*watch = (struct client_watch) {
		.is_open = true, .number = number, .mask = mask, .start = start, .opened_at = m->current
	};
	snprintf(key, sizeof key, "%x:%d", mask, number);
	request.key = vd_bytes_of(key);
	request.revision = start;
	watch_reader_open_request(&m->world, &watch->reader, request);
}

static void close_watch(struct client_watch *watch)
{
	if (!watch->is_open)
		return;
	watch_reader_close(&watch->reader);
	watch->is_open = false;
}

/* The first event that the watch must still see; NULL when none. */
static const struct event *next_expected(const struct model *m, const struct client_watch *watch,
					 vd_rev above, size_t skip)
{
	for (size_t i = 0; i < m->event_count; i++)
		if (m->events[i].rev > above && matches(&m->events[i], watch->mask) && skip-- == 0)
			return &m->events[i];
	return NULL;
}

static void check_events(struct model *m, struct client_watch *watch,
			 const struct vd_etcd_watch_response *response)
{
	vd_rev		    above = watch->has_first ? watch->delivered :
				    watch->start     ? watch->start - 1 :
						       response->events[0].kv->mod_rev - 1;
	const struct event *after;

	if (!watch->has_first &&
	    watch->start == 0) /* E-281: the revision of the creation itself may come, nothing older */
		assert_true(above + 1 >= watch->opened_at);
	if (!watch->has_first && watch->start == 0) {
		const struct event *missed = next_expected(m, watch, watch->base_last, 0);

		assert_true(missed == NULL || missed->rev >= above + 1);
	}
	for (size_t i = 0; i < response->event_count; i++) {
		const struct vd_store_event *event = &response->events[i];
		const struct event	    *expected = next_expected(m, watch, above, i);

		assert_non_null(expected);
		assert_int_equal(event->kv->mod_rev, expected->rev);
		assert_int_equal(*event->kv->data, *keys[expected->key]);
		assert_int_equal(event->is_delete, expected->is_delete);
	}
	/* Whole revisions. */
	watch->delivered = response->events[response->event_count - 1].kv->mod_rev;
	after = next_expected(m, watch, above, response->event_count);
	assert_true(after == NULL || after->rev > watch->delivered);
	assert_true(watch->delivered > watch->progressed);
	watch->has_first = true;
	marks.events += (unsigned) response->event_count;
}

static void check_progress(struct model *m, struct client_watch *watch, vd_rev revision)
{
	vd_rev		    above = watch->has_first ? watch->delivered :
				    watch->start     ? watch->start - 1 :
						       watch->base_last;
	const struct event *missing = next_expected(m, watch, above, 0);

	assert_true(revision >= watch->progressed);
	assert_true(missing == NULL || missing->rev > revision);
	watch->progressed = revision;
	marks.progress++;
}

/* At most `responses` of them. */
static void read_watch(struct model *m, struct client_watch *watch, unsigned responses)
{
	if (!watch->is_open || watch->is_ended)
		return;
	/* What is gathered, what is buffered, and one response more. */
	assert_true(watch->reader.watch->buffered_bytes <= 2 * m->buffer_bytes + 256 * (VALUE_SIZE + 128));
	while (responses--) {
		struct vd_etcd_watch_response response;
		struct vd_etcd_error	      error;
		vd_status status = vd_etcd_watch_next(watch->reader.watch, &response, &error);

		if (status == VD_AGAIN)
			return;
		if (status != VD_OK) {
			assert_status(status, VD_EXPIRED);
			assert_true(error.error.compacted <= m->compacted);
			assert_true(error.error.compacted >
				    VDI_MAX(watch->delivered + 1,
					    watch->start)); /* it has really lost something */
			watch->is_ended = true;
			marks.expirations++;
			return;
		}
		if (response.event_count)
			check_events(m, watch, &response);
		else
			check_progress(m, watch, response.header.revision);
	}
}

/* ---- One run ---- */

static void act(struct model *m, bool *is_up)
{
	struct client_watch *watch = &m->watches[vdi_rand_below(&m->rand, WATCHES)];

	switch (vdi_rand_below(&m->rand, 25)) {
	case 0:
		if (chance(m, 3)) {
			close_watch(watch);
			marks.closed++;
		}
		break;
	case 1:
		if (!watch->is_open || watch->is_ended) {
			close_watch(watch);
			open_watch(m, watch);
			marks.reopened++;
		}
		break;
	case 2:
		if (m->compacts && chance(m, 4))
			compact(m, m->current - (vd_rev) vdi_rand_below(&m->rand, 60));
		break;
	case 3:
		if (m->cuts && chance(m, 3))
			rpc_script_cut(m->world.script, 0);
		break;
	case 4:
		if (chance(m, 6)) {
			rpc_script_set_up(m->world.script, 0, !*is_up);
			*is_up = !*is_up;
			marks.down++;
		}
		break;
	case 5:
	case 6:
		if (chance(m, 2)) /* else hardly ever all of them stand where they can be told */
			serve_all(m, 1);
		if (watch->is_open)
			(void) vd_etcd_watch_progress(
				watch->reader.watch); /* of one that has ended it says so */
		break;
	case 7:
	case 8:
	case 9:
	case 10: read_watch(m, watch, 1 + (unsigned) vdi_rand_below(&m->rand, 10)); break;
	case 11:
	case 12:
	case 13:
	case 14:
	case 15: serve_all(m, 3); break;
	case 16:
	case 17:
	case 18: vdi_sim_advance(m->world.env, VD_MS((int64_t) vdi_rand_below(&m->rand, 30))); break;
	default:
		for (uint64_t i = vdi_rand_below(&m->rand, 5); i; i--)
			transact(m);
		break;
	}
	for (uint64_t i = vdi_rand_below(&m->rand, 6); i; i--)
		vdi_sim_step(m->world.env);
}

/* No faults any more: everyone sees everything. */
static void catch_up(struct model *m)
{
	rpc_script_set_up(m->world.script, 0, true);
	for (int turn = 0; turn < 300; turn++) {
		vdi_sim_advance(m->world.env, VD_MS(200));
		serve_all(m, 1);
		for (int i = 0; i < WATCHES; i++)
			read_watch(m, &m->watches[i], 1000);
	}
	for (int i = 0; i < WATCHES; i++) {
		struct client_watch *watch = &m->watches[i];
		vd_rev		     above = watch->has_first ? watch->delivered :
					     watch->start     ? watch->start - 1 :
								watch->base_last;

		if (watch->is_open && !watch->is_ended)
			assert_null(next_expected(m, watch, above, 0));
	}
}

static void live(uint64_t seed)
{
	static struct model m;
	bool		    is_up = true;
	int64_t		    blocks = vdi_alloc_live();

	memset(&m, 0, sizeof m);
	vdi_rand_init(&m.rand, seed);
	m.current = 1;
	m.next_number = 1;
	m.batch_max = 1 + (unsigned) vdi_rand_below(&m.rand, 40);
	m.compacts = chance(&m, 3);
	m.cuts = !chance(&m, 4);
	m.buffer_bytes = 1000 + vdi_rand_below(&m.rand, 20000);
	m.world = watch_world_new(seed, m.buffer_bytes);
	rpc_script_set_peer(m.world.script, &(struct rpc_script_peer) {
						    .opened = on_opened, .message = on_message, .arg = &m });
	rpc_script_set_delay(m.world.script, VD_MS((int64_t) vdi_rand_below(&m.rand, 12)));
	for (int i = 0; i < 50; i++)
		transact(&m);
	for (int i = 0; i < WATCHES; i++)
		open_watch(&m, &m.watches[i]);
	for (int i = 0; i < 400; i++)
		act(&m, &is_up);
	catch_up(&m);
	for (int i = 0; i < WATCHES; i++)
		close_watch(&m.watches[i]);
	watch_world_free(&m.world);
	for (size_t i = 0; i < m.stream_count; i++)
		free(m.streams[i]);
	assert_int_equal(vdi_alloc_live(), blocks);
}

/* VEDETTE_SEEDS=first,count tries others; VEDETTE_SEEDS=n,1 replays one. */
static void e285_nothing_is_lost_doubled_or_out_of_order(void **state)
{
	const char   *asked = getenv("VEDETTE_SEEDS");
	unsigned long first = 1, count = 150;

	if (asked && sscanf(asked, "%lu,%lu", &first, &count) != 2)
		fail_msg("VEDETTE_SEEDS=first,count");
	for (unsigned long seed = first; seed < first + count; seed++) {
		print_message("seed %lu\r", seed);
		live(seed);
	}
	print_message("parks %u resumes %u fragments %u cut %u expired %u progress %u held %u streams %u "
		      "events %u closed %u reopened %u down %u\n",
		      marks.parks, marks.resumes, marks.fragments, marks.fragments_cut, marks.expirations,
		      marks.progress, marks.held, marks.streams, marks.events, marks.closed, marks.reopened,
		      marks.down);
	if (asked)
		return;
	assert_true(marks.parks > 100 && marks.resumes > 100 && marks.fragments > 1000 &&
		    marks.fragments_cut > 50 && marks.expirations > 20);
	assert_true(marks.progress > 100 && marks.held > 50 && marks.streams > 300 && marks.events > 10000 &&
		    marks.closed && marks.reopened && marks.down);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(e285_nothing_is_lost_doubled_or_out_of_order) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
