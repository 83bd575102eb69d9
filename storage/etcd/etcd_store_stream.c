/* Long reads over RangeStream (etcd 3.7, R-158, R-208): parts are pulled; one more waits here, none beyond.
 *
 * 	open --> READING --part--> HOLDING --next takes it--> READING ... --end--> ENDED
 *
 * The client reads the next part when this one was taken. Three hold the memory: the user until close, the
 * client until its last callback, and in between whoever is in one of them; the last one frees.
 */
#include "etcd_store.h"

struct etcd_stream {
	struct vd_store_stream base;

	/* Fixed at creation. */
	struct vdi_etcd_store *store;
	void (*ready)(void *arg);
	void	*ready_arg;
	vd_rev	 asked; /* revision of the request; 0: the current one */
	uint64_t id;	/* of the client's call */

	/* Under lock. */
	struct vdi_lock lock;
	unsigned	references;
	bool		is_closed;	/* by the user */
	bool		is_waiting;	/* next said VD_AGAIN */
	bool		has_begun;	/* a part has come */
	bool		is_ended;	/* the client's last callback was here */
	bool		is_resume_owed; /* the client waits for us to take the part */
	vd_status	status;		/* of the end */
	struct vd_error error;
	vd_rev		revision; /* that is read at */
	struct vd_kv  **kvs;	  /* the part that waits; references */
	size_t		kv_count;
	int64_t		count;
	bool		has_part;
	bool		more;

	/* The caller of next only: what was lent last. */
	struct vd_kv **lent;
	size_t	       lent_count;
	bool	       was_last;
};

static void release(struct vd_kv **kvs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		vd_kv_unref(kvs[i]);
	vdi_free(kvs);
}

/* Takes the lock; whoever drops the last reference frees. */
static void unref_locked(struct etcd_stream *stream)
{
	bool is_last = --stream->references == 0;

	vdi_lock_release(&stream->lock);
	if (!is_last)
		return;
	release(stream->kvs, stream->kv_count);
	release(stream->lent, stream->lent_count);
	vdi_lock_fini(&stream->lock);
	vdi_free(stream);
}

static void tell_locked(struct etcd_stream *stream)
{
	if (stream->is_waiting && !stream->is_closed) {
		stream->is_waiting = false;
		stream->ready(stream->ready_arg);
	}
}

/* false: no memory. */
static bool keep_part_locked(struct etcd_stream *stream, const struct vd_etcd_header *header,
			     const struct vd_range_result *part)
{
	struct vd_kv **kvs = NULL;

	if (part->kv_count) {
		kvs = vdi_alloc(part->kv_count * sizeof(struct vd_kv *));
		if (kvs == NULL)
			return false;
		for (size_t i = 0; i < part->kv_count; i++)
			kvs[i] = vd_kv_ref(part->kvs[i]);
	}
	/* The first header tells at which revision an unpinned stream reads; a pinned one's last header tells
	 * the newest. */
	if (stream->revision == 0)
		stream->revision = stream->asked ? stream->asked : header->revision;
	stream->has_begun = true;
	stream->has_part = true;
	stream->kvs = kvs;
	stream->kv_count = part->kv_count;
	stream->count = part->count;
	stream->more = part->more;
	return true;
}

static void fail_locked(struct etcd_stream *stream, vd_status status, const char *text)
{
	stream->status = status;
	vd_error_set(&stream->error, status, "%s", text);
}

/* who says Unimplemented is not asked again for a while. */
static void note_end(struct vdi_etcd_store *store, const struct vd_etcd_error *error,
		     struct vd_error *ret_error, vd_rev asked)
{
	vdi_etcd_store_count(store, VDI_ETCD_CALL_STREAM, error != NULL);
	if (error == NULL)
		vdi_etcd_store_heard(store, NULL);
	else if (vdi_etcd_store_failed(store, error, asked, ret_error) == VD_UNSUPPORTED)
		atomic_store(&store->no_stream_until_ns,
			     vd_mono_add(vd_env_now(store->env), VDI_ETCD_STREAM_RETRY).ns);
}

static void stream_ended(struct etcd_stream *stream, const struct vd_etcd_error *error)
{
	struct vd_error failure = { 0 };

	atomic_fetch_sub_explicit(&stream->store->in_flight, 1, memory_order_relaxed);
	note_end(stream->store, error, &failure, stream->asked);
	vdi_lock_acquire(&stream->lock);
	stream->is_ended = true;
	stream->is_resume_owed = false;
	if (stream->status == VD_OK && error) {
		stream->status = failure.code;
		stream->error = failure;
	} else if (stream->status == VD_OK && stream->revision == 0) {
		fail_locked(stream, VD_CORRUPT, "etcd ended a long read without telling its revision");
	}
	tell_locked(stream);
	unref_locked(stream);
}

/* The client's actor. True: read the next part. */
static bool on_part(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		    const struct vd_range_result *part, bool last)
{
	struct etcd_stream *stream = arg;
	bool		    goes_on = false, is_over = false;

	if (last) {
		stream_ended(stream, error);
		return false;
	}
	vdi_etcd_store_heard(stream->store, header);
	vdi_lock_acquire(&stream->lock);
	VDI_CHECK(!stream->has_part);
	if (stream->is_closed || stream->status != VD_OK) {
		goes_on = true; /* towards its end, which was asked for */
	} else if (part->kv_count == 0 && stream->has_begun) {
		stream->more |= part->more;
		goes_on = true;
	} else if (keep_part_locked(stream, header, part)) {
		stream->is_resume_owed = true;
		tell_locked(stream);
	} else {
		fail_locked(stream, VD_NOMEM, "out of memory for a part of a list");
		goes_on = is_over = true;
	}
	vdi_lock_release(&stream->lock);
	if (is_over)
		vd_etcd_cancel(stream->store->client, stream->id);
	return goes_on;
}

vd_status vdi_etcd_store_stream(struct vd_store *base, const struct vd_store_stream_request *request,
				struct vd_store_stream **ret_stream)
{
	struct vdi_etcd_store	    *store = VDI_CONTAINER_OF(base, struct vdi_etcd_store, base);
	struct vd_etcd_range_request range = { .range = request->range };
	struct etcd_stream	    *stream;
	struct vd_etcd_call	     options = { 0 };
	vd_status		     status;

	if (vd_env_now(store->env).ns < atomic_load(&store->no_stream_until_ns))
		return VD_UNSUPPORTED;
	stream = VDI_NEW(struct etcd_stream);
	if (stream == NULL)
		return VD_NOMEM;
	vdi_lock_init(&stream->lock, VDI_LOCK_STORE); /* never together with the store's own */
	stream->base.store = base;
	stream->store = store;
	stream->ready = request->ready;
	stream->ready_arg = request->ready_arg;
	stream->asked = request->range.revision;
	stream->references = 2;
	options.ret_id = &stream->id;
	status = vdi_etcd_store_enter(store) ? VD_OK : VD_CLOSED;
	if (status == VD_OK) {
		atomic_fetch_add_explicit(&store->in_flight, 1, memory_order_relaxed);
		status = vd_etcd_range_stream(store->client, &options, &range, on_part, stream);
		if (status != VD_OK)
			atomic_fetch_sub_explicit(&store->in_flight, 1, memory_order_relaxed);
		vdi_etcd_store_leave(store);
	}
	if (status != VD_OK) {
		vdi_lock_fini(&stream->lock);
		vdi_free(stream);
		return status;
	}
	*ret_stream = &stream->base;
	return VD_OK;
}

vd_status vdi_etcd_store_stream_next(struct vd_store_stream *base, struct vd_store_part *ret_part,
				     struct vd_error *reterr)
{
	struct etcd_stream *stream = VDI_CONTAINER_OF(base, struct etcd_stream, base);
	vd_status	    status = VD_OK;
	bool		    resume = false;

	release(stream->lent, stream->lent_count);
	stream->lent = NULL;
	stream->lent_count = 0;
	vdi_lock_acquire(&stream->lock);
	if (stream->has_part || (stream->is_ended && stream->status == VD_OK && !stream->was_last)) {
		*ret_part = (struct vd_store_part) {
			.range = { .revision = stream->revision,
				   .kvs = stream->kvs,
				   .kv_count = stream->kv_count,
				   .count = stream->count },
			.last = stream->is_ended && stream->status == VD_OK,
		};
		ret_part->range.more = ret_part->last && stream->more;
		stream->lent = stream->kvs;
		stream->lent_count = stream->kv_count;
		stream->kvs = NULL;
		stream->kv_count = 0;
		stream->has_part = false;
		stream->was_last = ret_part->last;
		resume = stream->is_resume_owed;
		stream->is_resume_owed = false;
	} else if (stream->is_ended) {
		status = stream->status == VD_OK ? VD_CLOSED : stream->status;
		if (reterr)
			*reterr = stream->error;
	} else {
		stream->is_waiting = true;
		status = VD_AGAIN;
	}
	vdi_lock_release(&stream->lock);
	if (resume && vdi_etcd_store_enter(stream->store)) {
		vd_etcd_range_stream_resume(stream->store->client, stream->id);
		vdi_etcd_store_leave(stream->store);
	}
	return status;
}

void vdi_etcd_store_stream_close(struct vd_store_stream *base)
{
	struct etcd_stream *stream = VDI_CONTAINER_OF(base, struct etcd_stream, base);
	bool		    is_ended;

	vdi_lock_acquire(&stream->lock);
	stream->is_closed = true;
	is_ended = stream->is_ended;
	vdi_lock_release(&stream->lock);
	if (!is_ended && vdi_etcd_store_enter(stream->store)) {
		vd_etcd_cancel(stream->store->client, stream->id);
		vdi_etcd_store_leave(stream->store);
	}
	vdi_lock_acquire(&stream->lock);
	unref_locked(stream);
}
