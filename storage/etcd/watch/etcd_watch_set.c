/* A run of the actor executes the users' commands, then handles every stream with work: messages, an end, an
 * expired timer, a request to send. A stream that exceeds its share continues in the next run, so none delays
 * the others.
 *
 * Commands are bits in the watch and a place in one list, so a command never allocates and cannot fail; a
 * watch is in the list at most once.
 *
 * A new watch finds its stream on the caller's thread, under the lock, and counts as joining until the actor
 * has executed the command; a stream with joining watches is not forgotten. A leaving stream is forgotten
 * before, so the watch gets a new one. */
#include "etcd_watch_set.h"

#include "env.h"
#include "etcd_watch_stream.h"

#define COMMANDS_PER_RUN 4096
#define METADATA_SIZE_MAX (64u << 10)

static void run(void *arg);

/* ---- Life ---- */

static bool stream_has_key(const void *entry, const void *key)
{
	return vd_bytes_equal(((const struct vdi_etcd_watch_stream *) entry)->key,
			      *(const struct vd_bytes *) key);
}

static uint64_t key_hash(struct vd_bytes key)
{
	return vdi_hash_bytes(key, vdi_hash_seed());
}

static void close_part(struct vdi_etcd_part *part, void (*done)(void *arg), void *arg)
{
	struct vdi_etcd_watch_set *set = VDI_CONTAINER_OF(part, struct vdi_etcd_watch_set, part);

	vdi_lock_acquire(&set->lock);
	set->is_closing = true;
	set->closed = done;
	set->closed_arg = arg;
	vd_actor_wake(set->actor); /* under the lock: a run that sees is_closing may free the set */
	vdi_lock_release(&set->lock);
}

static vd_status get_metrics(struct vdi_etcd_watch_set *set)
{
	struct vdi_metrics *registry = vdi_env_metrics(set->env);

	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_ETCD_WATCHES, NULL, &set->watches));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_ETCD_WATCH_CONNECTIONS_TOTAL, NULL, &set->connections));
	VDI_TRY(vdi_metric_get(registry, VDI_METRIC_ETCD_WATCH_PARKED_TOTAL, NULL, &set->paused));
	return vdi_metric_get(registry, VDI_METRIC_ETCD_WATCH_EVENTS_TOTAL, NULL, &set->received_events);
}

static void release_metrics(struct vdi_etcd_watch_set *set)
{
	vdi_metric_remove(set->watches);
	vdi_metric_release(set->connections);
	vdi_metric_release(set->paused);
	vdi_metric_release(set->received_events);
}

static vd_status make_part(struct vd_etcd *client, struct vdi_etcd_part **ret_part)
{
	struct vdi_etcd_watch_set *set = VDI_NEW(struct vdi_etcd_watch_set);
	struct vd_actor_options	   options = { .name = "etcd_watch", .run = run, .arg = set };
	vd_status		   status;

	if (set == NULL)
		return VD_NOMEM;
	set->part.close = close_part;
	set->client = client;
	set->env = vdi_etcd_env(client);
	status = get_metrics(set);
	if (status == VD_OK)
		status = vd_actor_new(set->env, &options, &set->actor);
	if (status != VD_OK) {
		release_metrics(set);
		vdi_free(set);
		return status;
	}
	vdi_lock_init(&set->lock, VDI_LOCK_ETCD_WATCH_SET);
	TAILQ_INIT(&set->commands);
	TAILQ_INIT(&set->streams);
	TAILQ_INIT(&set->to_attend);
	vdi_hash_init(&set->by_metadata, stream_has_key, 0);
	vdi_buffer_init(&set->request, SIZE_MAX);
	*ret_part = &set->part;
	return VD_OK;
}

vd_status vdi_etcd_watch_set_get(struct vd_etcd *client, struct vdi_etcd_watch_set **ret_set)
{
	struct vdi_etcd_part *part;

	VDI_TRY(vdi_etcd_part_get(client, VDI_ETCD_PART_WATCH, make_part, &part));
	*ret_set = VDI_CONTAINER_OF(part, struct vdi_etcd_watch_set, part);
	return VD_OK;
}

/* ---- Any thread ---- */

bool vdi_etcd_watch_set_list_locked(struct vdi_etcd_watch_set *set, struct vdi_etcd_watch_stream *stream)
{
	if (stream->is_attended)
		return false;
	stream->is_attended = true;
	TAILQ_INSERT_TAIL(&set->to_attend, stream, attend_node);
	return true;
}

void vdi_etcd_watch_set_attend_locked(struct vdi_etcd_watch_set *set, struct vdi_etcd_watch_stream *stream)
{
	(void) vdi_etcd_watch_set_list_locked(set, stream); /* the caller wakes the actor anyway */
	vd_actor_wake(set->actor);
}

static void command_locked(struct vdi_etcd_watch_set *set, struct vd_etcd_watch *watch, unsigned want)
{
	if (watch->wants == 0) {
		atomic_fetch_add_explicit(&watch->references, 1, memory_order_relaxed);
		TAILQ_INSERT_TAIL(&set->commands, watch, command_node);
	}
	watch->wants |= (uint8_t) want;
	vd_actor_wake(set->actor);
}

void vdi_etcd_watch_set_command(struct vdi_etcd_watch_set *set, struct vd_etcd_watch *watch, unsigned want)
{
	vdi_lock_acquire(&set->lock);
	command_locked(set, watch, want);
	vdi_lock_release(&set->lock);
}

/* Finds the stream of that metadata, or adds a new one to the table, which has room. */
static vd_status find_or_make_locked(struct vdi_etcd_watch_set *set, struct vd_bytes key,
				     struct vdi_etcd_watch_stream **ret_stream, bool *ret_is_new)
{
	struct vdi_etcd_watch_stream *stream;
	vd_status		      status;

	if (set->is_closing)
		return VD_CLOSED;
	*ret_stream = vdi_hash_get(&set->by_metadata, key_hash(key), &key);
	*ret_is_new = *ret_stream == NULL;
	if (*ret_stream)
		return VD_OK;
	VDI_TRY(vdi_etcd_watch_stream_new(set, key, &stream));
	status = vdi_hash_put(&set->by_metadata, key_hash(stream->key), &stream->key, stream, NULL);
	if (status != VD_OK) {
		vdi_etcd_watch_stream_free(stream);
		return status;
	}
	TAILQ_INSERT_TAIL(&set->streams, stream, set_node);
	*ret_stream = stream;
	return VD_OK;
}

vd_status vdi_etcd_watch_set_add(struct vdi_etcd_watch_set *set, struct vd_etcd_watch *watch,
				 bool require_leader, const struct vd_etcd_pair *metadata,
				 size_t metadata_count)
{
	struct vdi_buffer key;
	vd_status	  status;
	bool		  is_new;

	vdi_buffer_init(&key, METADATA_SIZE_MAX);
	status = vdi_etcd_watch_stream_key(require_leader, metadata, metadata_count, &key);
	if (status == VD_OK) {
		vdi_lock_acquire(&set->lock);
		status = find_or_make_locked(set, vdi_buffer_bytes(&key), &watch->stream, &is_new);
		if (status == VD_OK) {
			watch->set = set; /* not shared yet */
			watch->stream->joining++;
			atomic_fetch_add_explicit(&watch->references, 1, memory_order_relaxed);
			command_locked(set, watch, VDI_ETCD_WATCH_WANT_OPEN);
		}
		vdi_lock_release(&set->lock);
	}
	vdi_buffer_fini(&key);
	return status;
}

vd_status vdi_etcd_watch_set_request_progress(struct vdi_etcd_watch_set *set, bool require_leader,
					      const struct vd_etcd_pair *metadata, size_t metadata_count)
{
	struct vdi_etcd_watch_stream *stream;
	struct vdi_buffer	      key;
	vd_status		      status;
	bool			      is_new;

	vdi_buffer_init(&key, METADATA_SIZE_MAX);
	status = vdi_etcd_watch_stream_key(require_leader, metadata, metadata_count, &key);
	if (status == VD_OK) {
		vdi_lock_acquire(&set->lock);
		status = find_or_make_locked(set, vdi_buffer_bytes(&key), &stream, &is_new);
		if (status == VD_OK) {
			if (is_new) /* a stream made for watches ends with the last one */
				stream->is_kept = true;
			stream->is_asked = true;
			vdi_etcd_watch_set_attend_locked(set, stream);
		}
		vdi_lock_release(&set->lock);
	}
	vdi_buffer_fini(&key);
	return status;
}

/* ---- The actor ---- */

/* Executes commands of a watch; ignores those for a watch that has left the set. */
static void obey(struct vdi_etcd_watch_set *set, struct vd_etcd_watch *watch, unsigned wants)
{
	struct vdi_etcd_watch_stream *stream = watch->stream;

	if (vdi_sm_is(&watch->sm, VDI_ETCD_WATCH_ENDED))
		return;
	if (wants & VDI_ETCD_WATCH_WANT_OPEN)
		vdi_etcd_watch_stream_join(stream, watch);
	if (wants & VDI_ETCD_WATCH_WANT_CLOSE) {
		vdi_etcd_watch_stream_leave(stream, watch);
	} else {
		if (wants & VDI_ETCD_WATCH_WANT_RESUME)
			vdi_etcd_watch_stream_resume(stream, watch);
		if (wants & VDI_ETCD_WATCH_WANT_PROGRESS)
			stream->wants_progress = true;
	}
	vdi_lock_acquire(&set->lock);
	vdi_etcd_watch_set_attend_locked(set, stream);
	vdi_lock_release(&set->lock);
}

static bool take_command(struct vdi_etcd_watch_set *set)
{
	struct vd_etcd_watch *watch;
	unsigned	      wants = 0;

	vdi_lock_acquire(&set->lock);
	watch = TAILQ_FIRST(&set->commands);
	if (watch) {
		TAILQ_REMOVE(&set->commands, watch, command_node);
		wants = watch->wants;
		watch->wants = 0;
		if (wants & VDI_ETCD_WATCH_WANT_OPEN)
			watch->stream->joining--;
	}
	vdi_lock_release(&set->lock);
	if (watch == NULL)
		return false;
	obey(set, watch, wants);
	vdi_etcd_watch_unref(watch);
	return true;
}

/* NULL: every stream was handled in this run. */
static struct vdi_etcd_watch_stream *take_stream(struct vdi_etcd_watch_set *set)
{
	struct vdi_etcd_watch_stream *stream;

	vdi_lock_acquire(&set->lock);
	stream = TAILQ_FIRST(&set->to_attend);
	if (stream && stream->round != set->round) {
		TAILQ_REMOVE(&set->to_attend, stream, attend_node);
		stream->is_attended = false;
		stream->round = set->round;
		stream->wants_progress |= stream->is_asked;
		stream->is_asked = false;
	} else if (stream) {
		vd_actor_wake(set->actor);
		stream = NULL;
	}
	vdi_lock_release(&set->lock);
	return stream;
}

static void drop_stream(struct vdi_etcd_watch_set *set, struct vdi_etcd_watch_stream *stream)
{
	vdi_lock_acquire(&set->lock);
	VDI_CHECK(stream->is_forgotten); /* by_metadata no longer has it */
	if (stream->is_attended)
		TAILQ_REMOVE(&set->to_attend, stream, attend_node);
	TAILQ_REMOVE(&set->streams, stream, set_node);
	vdi_lock_release(&set->lock);
	vdi_timer_heap_remove(&set->timers, &stream->timer);
	vdi_etcd_watch_stream_free(stream);
}

static void attend_streams(struct vdi_etcd_watch_set *set)
{
	struct vdi_etcd_watch_stream *stream;

	set->round++;
	while ((stream = take_stream(set)) != NULL) {
		bool more = vdi_etcd_watch_stream_attend(stream);

		if (vdi_sm_is(&stream->sm, VDI_ETCD_WATCH_STREAM_GONE)) {
			drop_stream(set, stream);
		} else if (more) {
			vdi_lock_acquire(&set->lock);
			vdi_etcd_watch_set_attend_locked(set, stream);
			vdi_lock_release(&set->lock);
		}
	}
}

static void attend_due_streams(struct vdi_etcd_watch_set *set)
{
	struct vdi_timer *timer;

	while ((timer = vdi_timer_heap_pop_due(&set->timers, vd_env_now(set->env))) != NULL) {
		struct vdi_etcd_watch_stream *stream =
			VDI_CONTAINER_OF(timer, struct vdi_etcd_watch_stream, timer);

		stream->is_due = true;
		vdi_lock_acquire(&set->lock);
		vdi_etcd_watch_set_attend_locked(set, stream);
		vdi_lock_release(&set->lock);
	}
}

/* The list of streams changes only here, and under the lock when a stream is made, which no longer
 * happens. */
static void close_streams(struct vdi_etcd_watch_set *set)
{
	struct vdi_etcd_watch_stream *next;

	for (struct vdi_etcd_watch_stream *stream = TAILQ_FIRST(&set->streams); stream; stream = next) {
		next = TAILQ_NEXT(stream, set_node);
		vdi_etcd_watch_stream_close(stream);
		if (vdi_sm_is(&stream->sm, VDI_ETCD_WATCH_STREAM_GONE))
			drop_stream(set, stream);
	}
}

static void on_set_closed(void *arg)
{
	struct vdi_etcd_watch_set *set = arg;
	void (*closed)(void *arg) = set->closed;
	void *closed_arg = set->closed_arg;

	vdi_buffer_fini(&set->request);
	vdi_etcd_wire_events_fini(&set->events);
	vdi_hash_fini(&set->by_metadata);
	vdi_lock_fini(&set->lock);
	release_metrics(set);
	vdi_free(set);
	closed(closed_arg);
}

static void run(void *arg)
{
	struct vdi_etcd_watch_set *set = arg;
	size_t			   commands = 0;
	bool			   is_closing;

	vdi_lock_acquire(&set->lock);
	is_closing = set->is_closing;
	vdi_lock_release(&set->lock);
	while ((is_closing || commands < COMMANDS_PER_RUN) && take_command(set))
		commands++;
	if (commands == COMMANDS_PER_RUN && !is_closing)
		vd_actor_wake(set->actor);
	attend_due_streams(set);
	if (is_closing)
		close_streams(set);
	attend_streams(set);
	if (!is_closing || !TAILQ_EMPTY(&set->streams)) {
		vd_actor_set_timer(set->actor, vdi_timer_heap_next_due(&set->timers));
		return;
	}
	while (take_command(set)) /* commands of ended watches; no more can follow */
		continue;
	vd_actor_close(set->actor, on_set_closed, set);
}
