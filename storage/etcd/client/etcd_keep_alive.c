/* Keep-alive of leases (etcd client/v3 lease.go).
 *
 * A client has one renewer with one stream for all leases; a lease may have several holders. A renewal is
 * sent at once and after each third of the lease's TTL; while it is unanswered it is sent again every 500 ms.
 * The stream requires a leader and is reopened 500 ms after any end. Where clientv3 drops a response if its
 * reader is slow, this client has a callback; where it searches for late leases once per second, a timer.
 *
 * The renewer's actor calls a holder's callback without a lock, but marks the holder as busy, so that a stop
 * from another thread can wait for the end of the callback. After a callback everything is looked up again,
 * because it may have stopped any holder.
 */
#include "etcd_call.h"
#include "hash.h"

#include <pthread.h>
#include <rpc.pb-c.h>

#define SEND_INTERVAL VD_MS(500)
#define REOPEN_WAIT VD_MS(500)

struct renewer;

struct kept_lease {
	TAILQ_ENTRY(kept_lease) node;
	int64_t id;
	vd_mono next_at; /* next renewal */
	vd_mono sent_at; /* time of the renewal sent on the open stream; 0: none */
	vd_mono deadline;
	LIST_HEAD(, vd_etcd_keep_alive) holders;
	struct vdi_timer timer;
};

struct vd_etcd_keep_alive {
	/* Fixed at start. */
	struct renewer	*renewer; /* one reference */
	vd_etcd_lease_fn on_renewal;
	void		*arg;
	bool		 require_leader;

	/* Under the renewer's lock. */
	struct kept_lease *lease; /* NULL: the lease has ended */
	LIST_ENTRY(vd_etcd_keep_alive) node;
	uint64_t  notified_serial; /* last notification delivered */
	bool	  is_notifying;
	bool	  is_stopped; /* stopped inside its own callback */
	pthread_t notifying_thread;
};

struct renewer {
	struct vdi_etcd_part part; /* first */

	/* Fixed at creation. */
	struct vd_etcd	    *client; /* not used after the part's close has called done */
	const struct vd_env *env;
	struct vd_actor	    *actor;
	vd_dur		     first_wait;

	struct vdi_lock	     lock;
	struct vdi_condition notified;

	/* Under lock. */
	unsigned	references; /* the part's, and one per holder */
	struct vdi_hash by_id;
	TAILQ_HEAD(, kept_lease) leases;
	struct vdi_timer_heap	timers;
	struct vdi_etcd_stream *stream;
	bool			has_message;
	struct vdi_rpc_message	message;
	bool			has_ended;
	struct vdi_etcd_end	end;
	bool			is_closing;
	uint64_t		notify_serial;
	void (*closed)(void *arg);
	void *closed_arg;

	/* Actor only. */
	vd_mono reopen_at;
};

static void unref_locked(struct renewer *renewer)
{
	bool is_last = --renewer->references == 0;

	vdi_lock_release(&renewer->lock);
	if (!is_last)
		return;
	vdi_hash_fini(&renewer->by_id);
	vdi_condition_fini(&renewer->notified);
	vdi_lock_fini(&renewer->lock);
	vdi_free(renewer);
}

/* ---- Leases ---- */

static uint64_t hash_of(int64_t id)
{
	return vdi_hash_bytes((struct vd_bytes) { &id, sizeof id }, vdi_hash_seed());
}

static bool is_id(const void *entry, const void *key)
{
	return ((const struct kept_lease *) entry)->id == *(const int64_t *) key;
}

static void forget_lease_locked(struct renewer *renewer, struct kept_lease *lease)
{
	(void) vdi_hash_remove(&renewer->by_id, hash_of(lease->id), &lease->id);
	TAILQ_REMOVE(&renewer->leases, lease, node);
	vdi_timer_heap_remove(&renewer->timers, &lease->timer);
	vdi_free(lease);
}

/* The last holder also removes the lease. */
static void detach_locked(struct vd_etcd_keep_alive *holder)
{
	struct kept_lease *lease = holder->lease;

	if (lease == NULL)
		return;
	LIST_REMOVE(holder, node);
	holder->lease = NULL;
	if (LIST_EMPTY(&lease->holders))
		forget_lease_locked(holder->renewer, lease);
}

static void set_timer_locked(struct renewer *renewer, struct kept_lease *lease)
{
	vd_mono again = lease->sent_at.ns ? vd_mono_add(lease->sent_at, SEND_INTERVAL) : lease->next_at;
	vd_mono next = again.ns > lease->next_at.ns ? again : lease->next_at;

	vdi_timer_heap_set(&renewer->timers, &lease->timer,
			   next.ns < lease->deadline.ns ? next : lease->deadline);
}

/* ---- Telling; actor ---- */

struct news {
	const struct vd_etcd_error   *error; /* final error for the holder */
	const struct vd_etcd_header  *header;
	const struct vd_lease_result *result;
	bool			      only_require_leader;
};

static bool concerns(const struct vd_etcd_keep_alive *holder, const struct news *news, uint64_t serial)
{
	return holder->notified_serial != serial && (holder->require_leader || !news->only_require_leader);
}

/* Notifies one holder; releases the lock meanwhile. */
static void notify_locked(struct renewer *renewer, struct vd_etcd_keep_alive *holder, const struct news *news,
			  uint64_t serial)
{
	holder->notified_serial = serial;
	holder->is_notifying = true;
	holder->notifying_thread = pthread_self();
	if (news->error)
		detach_locked(holder);
	vdi_lock_release(&renewer->lock);
	holder->on_renewal(holder->arg, news->error, news->header, news->result);
	vdi_lock_acquire(&renewer->lock);
	holder->is_notifying = false;
	if (holder->is_stopped) {
		renewer->references--; /* cannot be the last: the part still has its reference */
		vdi_free(holder);
	} else {
		vdi_condition_broadcast(&renewer->notified);
	}
}

static void notify_lease(struct renewer *renewer, int64_t id, const struct news *news)
{
	uint64_t serial;

	vdi_lock_acquire(&renewer->lock);
	serial = ++renewer->notify_serial;
	for (;;) {
		struct kept_lease	  *lease = vdi_hash_get(&renewer->by_id, hash_of(id), &id);
		struct vd_etcd_keep_alive *holder = lease ? LIST_FIRST(&lease->holders) : NULL;

		while (holder && !concerns(holder, news, serial))
			holder = LIST_NEXT(holder, node);
		if (holder == NULL)
			break;
		notify_locked(renewer, holder, news, serial);
	}
	vdi_lock_release(&renewer->lock);
}

static void notify_all(struct renewer *renewer, const struct news *news)
{
	struct kept_lease *lease;
	uint64_t	   serial;

	vdi_lock_acquire(&renewer->lock);
	serial = ++renewer->notify_serial;
	do {
		struct vd_etcd_keep_alive *holder = NULL;

		TAILQ_FOREACH(lease, &renewer->leases, node)
		{
			LIST_FOREACH(holder, &lease->holders, node)
			if (concerns(holder, news, serial))
				break;
			if (holder)
				break;
		}
		if (holder)
			notify_locked(renewer, holder, news, serial);
	} while (lease);
	vdi_lock_release(&renewer->lock);
}

static void set_known_error(struct vd_etcd_error *error, enum vd_etcd_code code)
{
	vdi_etcd_error_of_reason(vd_bytes_of(vdi_etcd_code_message(code)), error);
}

/* ---- The stream's handlers; the transport's thread ---- */

static void on_message(void *arg, struct vdi_rpc_message *message)
{
	struct renewer *renewer = arg;

	vdi_lock_acquire(&renewer->lock);
	renewer->message = *message;
	renewer->has_message = true;
	vd_actor_wake(renewer->actor);
	vdi_lock_release(&renewer->lock);
}

static void on_ended(void *arg, const struct vdi_rpc_end *end)
{
	struct renewer *renewer = arg;

	vdi_lock_acquire(&renewer->lock);
	vdi_etcd_end_copy(&renewer->end, end);
	renewer->has_ended = true;
	vd_actor_wake(renewer->actor);
	vdi_lock_release(&renewer->lock);
}

/* ---- The actor ---- */

static void handle_answer(struct renewer *renewer, struct vd_bytes bytes)
{
	ProtobufCMessage		     *unpacked;
	Etcdserverpb__LeaseKeepAliveResponse *answer;
	struct vd_etcd_error		      error;
	struct vd_etcd_header		      header;
	struct vd_lease_result		      result;
	struct kept_lease		     *lease;
	vd_mono				      now = vd_env_now(renewer->env);
	int64_t				      ttl_s;

	/* A response that cannot be decoded counts as none: the renewal is sent again. */
	if (vdi_etcd_proto_unpack(&etcdserverpb__lease_keep_alive_response__descriptor, bytes, &unpacked,
				  &error) != VD_OK)
		return;
	answer = (Etcdserverpb__LeaseKeepAliveResponse *) unpacked;
	vdi_etcd_proto_header(answer->header, &header);
	result = (struct vd_lease_result) { .id = answer->id,
					    .ttl_s = answer->ttl,
					    .granted_ttl_s = answer->ttl,
					    .revision = header.revision };
	vdi_etcd_proto_free(unpacked);
	if (result.ttl_s <= 0) {
		set_known_error(&error, VD_ETCD_LEASE_NOT_FOUND);
		notify_lease(renewer, result.id, &(struct news) { .error = &error });
		return;
	}
	ttl_s = VDI_MIN(result.ttl_s, INT64_MAX / 2000000000);
	vdi_lock_acquire(&renewer->lock);
	lease = vdi_hash_get(&renewer->by_id, hash_of(result.id), &result.id);
	if (lease) {
		lease->next_at = vd_mono_add(now, (vd_dur) { ttl_s * 1000000000 / 3 });
		lease->deadline = vd_mono_add(now, VD_SECONDS(ttl_s));
		lease->sent_at = (vd_mono) { 0 };
		set_timer_locked(renewer, lease);
	}
	vdi_lock_release(&renewer->lock);
	notify_lease(renewer, result.id, &(struct news) { .header = &header, .result = &result });
}

/* Handles the message and the end that the transport's thread has stored. */
static void handle_stream(struct renewer *renewer)
{
	struct vdi_rpc_message	message = { 0 };
	struct vdi_etcd_stream *stream;
	struct vd_etcd_error	error;
	bool			has_message;
	bool			has_ended;

	vdi_lock_acquire(&renewer->lock);
	has_message = renewer->has_message;
	has_ended = renewer->has_ended;
	message = renewer->message;
	renewer->message = (struct vdi_rpc_message) { 0 };
	renewer->has_message = false;
	renewer->has_ended = false;
	stream = renewer->stream;
	if (has_ended)
		renewer->stream = NULL;
	vdi_lock_release(&renewer->lock);
	if (has_message) {
		handle_answer(renewer, message.bytes);
		vdi_rpc_message_release(&message);
		if (!has_ended)
			vdi_etcd_stream_receive(stream);
	}
	if (!has_ended)
		return;
	vdi_etcd_stream_free(stream);
	renewer->reopen_at = vd_mono_add(vd_env_now(renewer->env), REOPEN_WAIT);
	vdi_etcd_error_of_end(&renewer->end.end, VDI_ETCD_CONTEXT_ALIVE, &error);
	if (error.code == VD_ETCD_NO_LEADER)
		notify_all(renewer, &(struct news) { .error = &error, .only_require_leader = true });
}

static void open_stream(struct renewer *renewer)
{
	static const struct vdi_rpc_stream_handlers handlers = { .message = on_message, .ended = on_ended };
	const struct vdi_etcd_stream_request	    request = { .method = VDI_ETCD_METHOD_LEASE_KEEP_ALIVE,
								.require_leader = true };
	struct vdi_etcd_stream			   *stream;
	struct kept_lease			   *lease;
	bool					    is_wanted;

	vdi_lock_acquire(&renewer->lock);
	is_wanted = renewer->stream == NULL && !TAILQ_EMPTY(&renewer->leases) && !renewer->is_closing;
	vdi_lock_release(&renewer->lock);
	if (!is_wanted || vd_env_now(renewer->env).ns < renewer->reopen_at.ns)
		return;
	/* Its handlers may run at once: they only store what they get, for this actor. */
	if (vdi_etcd_stream_open(renewer->client, &request, &handlers, renewer, &stream) != VD_OK) {
		renewer->reopen_at = vd_mono_add(vd_env_now(renewer->env), REOPEN_WAIT);
		return;
	}
	vdi_lock_acquire(&renewer->lock);
	renewer->stream = stream;
	TAILQ_FOREACH(lease, &renewer->leases, node)
	{ /* due renewals are sent at once */
		lease->sent_at = (vd_mono) { 0 };
		set_timer_locked(renewer, lease);
	}
	vdi_lock_release(&renewer->lock);
	vdi_etcd_stream_receive(stream);
}

static void send_renewal(struct vdi_etcd_stream *stream, int64_t id)
{
	Etcdserverpb__LeaseKeepAliveRequest request = ETCDSERVERPB__LEASE_KEEP_ALIVE_REQUEST__INIT;
	uint8_t				    bytes[32];

	request.id = id;
	VDI_CHECK(protobuf_c_message_get_packed_size(&request.base) <= sizeof bytes);
	if (vdi_etcd_stream_send(stream, (struct vd_bytes) { bytes, protobuf_c_message_pack(
									    &request.base, bytes) }) != VD_OK)
		return; /* out of memory: not sent now, but due again in 500 ms */
}

static void handle_timers(struct renewer *renewer)
{
	struct vdi_timer *timer;
	vd_mono		  now = vd_env_now(renewer->env);

	for (;;) {
		struct vdi_etcd_stream *stream;
		struct kept_lease      *lease;
		struct vd_etcd_error	error;
		int64_t			id;
		bool			is_late;

		vdi_lock_acquire(&renewer->lock);
		timer = vdi_timer_heap_pop_due(&renewer->timers, now);
		if (timer == NULL) {
			vdi_lock_release(&renewer->lock);
			return;
		}
		lease = VDI_CONTAINER_OF(timer, struct kept_lease, timer);
		id = lease->id;
		is_late = now.ns >= lease->deadline.ns;
		stream = renewer->stream;
		if (!is_late) {
			lease->sent_at = now; /* also without a stream; reset when one is opened */
			set_timer_locked(renewer, lease);
		}
		vdi_lock_release(&renewer->lock);
		if (is_late) {
			(void) vdi_etcd_error_set(&error, VD_TIMEOUT,
						  "etcdclient: the lease was not renewed in time");
			notify_lease(renewer, id, &(struct news) { .error = &error });
		} else if (stream) {
			send_renewal(stream, id);
		}
	}
}

static void gone(void *arg)
{
	struct renewer *renewer = arg;
	void (*closed)(void *) = renewer->closed;
	void *closed_arg = renewer->closed_arg;

	vdi_lock_acquire(&renewer->lock);
	renewer->actor = NULL;
	unref_locked(renewer);
	closed(closed_arg);
}

/* Returns true if the actor is ending. */
static bool step_close(struct renewer *renewer)
{
	struct vdi_etcd_stream *stream;
	struct vd_etcd_error	error;
	bool			is_closing;

	vdi_lock_acquire(&renewer->lock);
	is_closing = renewer->is_closing;
	stream = renewer->stream;
	vdi_lock_release(&renewer->lock);
	if (!is_closing)
		return false;
	(void) vdi_etcd_error_set(&error, VD_CLOSED,
				  "etcdclient: leases keep alive halted: the client is closing");
	notify_all(renewer, &(struct news) { .error = &error });
	if (stream) {
		vdi_etcd_stream_cancel(stream);
		return true;
	}
	vd_actor_close(renewer->actor, gone, renewer);
	return true;
}

static void run(void *arg)
{
	struct renewer *renewer = arg;
	vd_mono		next;

	handle_stream(renewer);
	if (step_close(renewer))
		return;
	open_stream(renewer);
	handle_timers(renewer);
	vdi_lock_acquire(&renewer->lock);
	next = vdi_timer_heap_next_due(&renewer->timers);
	if (renewer->stream == NULL && !TAILQ_EMPTY(&renewer->leases) && renewer->reopen_at.ns < next.ns)
		next = renewer->reopen_at;
	vdi_lock_release(&renewer->lock);
	vd_actor_set_timer(renewer->actor, next);
}

/* ---- The part ---- */

static void close_renewer(struct vdi_etcd_part *part, void (*done)(void *arg), void *arg)
{
	struct renewer *renewer = (struct renewer *) part;

	vdi_lock_acquire(&renewer->lock);
	renewer->is_closing = true;
	renewer->closed = done;
	renewer->closed_arg = arg;
	vd_actor_wake(renewer->actor);
	vdi_lock_release(&renewer->lock);
}

static vd_status make_renewer(struct vd_etcd *client, struct vdi_etcd_part **ret_part)
{
	struct vd_actor_options options = { .name = "etcd_lease", .run = run };
	struct renewer	       *renewer = VDI_NEW(struct renewer);
	vd_status		status;

	if (renewer == NULL)
		return VD_NOMEM;
	options.arg = renewer;
	status = vd_actor_new(client->env, &options, &renewer->actor);
	if (status != VD_OK) {
		vdi_free(renewer);
		return status;
	}
	renewer->part.close = close_renewer;
	renewer->client = client;
	renewer->env = client->env;
	renewer->first_wait = client->dial_timeout.ns ?
				      (vd_dur) { client->dial_timeout.ns + VD_SECONDS(1).ns } :
				      VD_SECONDS(5);
	renewer->references = 1;
	vdi_hash_init(&renewer->by_id, is_id, 0);
	TAILQ_INIT(&renewer->leases);
	vdi_lock_init(&renewer->lock, VDI_LOCK_ETCD_LEASE);
	vdi_condition_init(&renewer->notified);
	*ret_part = &renewer->part;
	return VD_OK;
}

/* ---- For users ---- */

static struct kept_lease *find_or_add_locked(struct renewer *renewer, int64_t id)
{
	struct kept_lease *lease = vdi_hash_get(&renewer->by_id, hash_of(id), &id);

	if (lease)
		return lease;
	lease = VDI_NEW(struct kept_lease);
	if (lease == NULL)
		return NULL;
	lease->id = id;
	if (vdi_hash_put(&renewer->by_id, hash_of(id), &lease->id, lease, NULL) != VD_OK) {
		vdi_free(lease);
		return NULL;
	}
	LIST_INIT(&lease->holders);
	TAILQ_INSERT_TAIL(&renewer->leases, lease, node);
	lease->next_at = vd_env_now(renewer->env);
	lease->deadline = vd_mono_add(lease->next_at, renewer->first_wait);
	set_timer_locked(renewer, lease);
	return lease;
}

vd_status vd_etcd_keep_alive_start(struct vd_etcd *client, const struct vd_etcd_call *call, int64_t id,
				   vd_etcd_lease_fn on_renewal, void *arg,
				   struct vd_etcd_keep_alive **ret_keep_alive)
{
	struct vdi_etcd_part	  *part;
	struct renewer		  *renewer;
	struct vd_etcd_keep_alive *holder;
	struct kept_lease	  *lease = NULL;
	vd_status		   status = VD_OK;

	if (client == NULL || on_renewal == NULL || ret_keep_alive == NULL || id == 0)
		return VD_INVALID_ARGUMENT;
	VDI_TRY(vdi_etcd_part_get(client, VDI_ETCD_PART_LEASE, make_renewer, &part));
	renewer = (struct renewer *) part;
	holder = VDI_NEW(struct vd_etcd_keep_alive);
	if (holder == NULL)
		return VD_NOMEM;
	holder->renewer = renewer;
	holder->on_renewal = on_renewal;
	holder->arg = arg;
	holder->require_leader = call && call->require_leader;
	vdi_lock_acquire(&renewer->lock);
	if (renewer->is_closing)
		status = VD_CLOSED;
	else if ((lease = find_or_add_locked(renewer, id)) == NULL)
		status = VD_NOMEM;
	if (status == VD_OK) {
		holder->lease = lease;
		LIST_INSERT_HEAD(&lease->holders, holder, node);
		renewer->references++;
		*ret_keep_alive = holder;
		vd_actor_wake(renewer->actor);
	}
	vdi_lock_release(&renewer->lock);
	if (status != VD_OK)
		vdi_free(holder);
	return status;
}

void vd_etcd_keep_alive_stop(struct vd_etcd_keep_alive *holder)
{
	struct renewer *renewer;

	if (holder == NULL)
		return;
	renewer = holder->renewer;
	vdi_lock_acquire(&renewer->lock);
	detach_locked(holder);
	if (holder->is_notifying && pthread_equal(holder->notifying_thread, pthread_self())) {
		holder->is_stopped = true; /* freed when its callback returns */
		vdi_lock_release(&renewer->lock);
		return;
	}
	while (holder->is_notifying)
		vdi_condition_wait(&renewer->notified, &renewer->lock);
	vdi_free(holder);
	unref_locked(renewer);
}
