/* A part is a page of the inner store at the revision of the first one. */
#include "part_store.h"

#include "forward_store.h"

struct part_store {
	struct vdi_forward_store front;
	struct part_options	 options;
	uint64_t		 streams, parts;
};

struct part_stream {
	struct vd_store_stream base;
	struct part_store     *store;
	void (*ready)(void *arg);
	void		*ready_arg;
	struct vd_actor *actor; /* brings lazy parts */
	char		 start[VD_KEY_SIZE_MAX + 1], end[VD_KEY_SIZE_MAX];
	size_t		 start_size, end_size;
	vd_rev		 revision;
	size_t		 given;
	bool		 waits, is_over, is_closed;

	/* The page at hand. */
	bool	       has_page;
	vd_status      status;
	struct vd_kv **kvs;
	size_t	       kv_count;
	bool	       more;
	struct vd_kv **lent;
	size_t	       lent_count;
};

static struct part_store *part_of(struct vd_store *store)
{
	return VDI_CONTAINER_OF(store, struct part_store, front.base);
}

static void release(struct vd_kv **kvs, size_t count)
{
	for (size_t i = 0; i < count; i++)
		vd_kv_unref(kvs[i]);
	vdi_free(kvs);
}

static void on_page(void *arg, vd_status status, const struct vd_range_result *result,
		    const struct vd_error *error)
{
	struct part_stream *stream = arg;

	(void) error;
	stream->status = status;
	stream->has_page = true;
	if (status != VD_OK)
		return;
	if (stream->revision == 0)
		stream->revision = result->store_revision;
	stream->more = result->more;
	stream->kv_count = result->kv_count;
	stream->kvs = vdi_calloc(result->kv_count + 1, sizeof *stream->kvs);
	if (stream->kvs == NULL) {
		stream->kv_count = 0;
		stream->status = VD_NOMEM;
		return;
	}
	for (size_t i = 0; i < result->kv_count; i++)
		stream->kvs[i] = vd_kv_ref(result->kvs[i]);
	if (result->kv_count) {
		struct vd_bytes last = vd_kv_key(result->kvs[result->kv_count - 1]);

		memcpy(stream->start, last.data, last.size);
		stream->start[last.size] = 0;
		stream->start_size = last.size + 1;
	}
}

static void read_page(struct part_stream *stream)
{
	struct vd_range_request request = { .key = { stream->start, stream->start_size },
					    .range_end = { stream->end, stream->end_size },
					    .revision = stream->revision,
					    .limit = (int64_t) stream->store->options.part_len };
	vd_status status = vd_store_range(stream->store->front.inner, &request, on_page, stream);

	if (status != VD_OK)
		on_page(stream, status, NULL, NULL);
}

static void stream_run(void *arg)
{
	struct part_stream *stream = arg;

	if (!stream->has_page)
		read_page(stream);
	if (stream->waits && stream->has_page) {
		stream->waits = false;
		stream->ready(stream->ready_arg);
	}
}

static vd_status part_stream_open(struct vd_store *base, const struct vd_store_stream_request *request,
				  struct vd_store_stream **ret_stream)
{
	struct part_store      *store = part_of(base);
	struct part_stream     *stream;
	struct vd_actor_options actor = { .name = "part_stream", .run = stream_run };
	vd_status		status;

	if (store->options.is_refused)
		return VD_UNSUPPORTED;
	stream = VDI_NEW(struct part_stream);
	if (stream == NULL)
		return VD_NOMEM;
	actor.arg = stream;
	status = vd_actor_new(base->env, &actor, &stream->actor);
	if (status != VD_OK) {
		vdi_free(stream);
		return status;
	}
	stream->base.store = base;
	stream->store = store;
	stream->ready = request->ready;
	stream->ready_arg = request->ready_arg;
	stream->revision = request->range.revision;
	stream->start_size = request->range.key.size;
	memcpy(stream->start, request->range.key.data, stream->start_size);
	stream->end_size = request->range.range_end.size;
	memcpy(stream->end, request->range.range_end.data, stream->end_size);
	store->streams++;
	*ret_stream = &stream->base;
	return VD_OK;
}

static vd_status part_stream_next(struct vd_store_stream *base, struct vd_store_part *ret_part,
				  struct vd_error *reterr)
{
	struct part_stream *stream = VDI_CONTAINER_OF(base, struct part_stream, base);
	struct part_store  *store = stream->store;

	release(stream->lent, stream->lent_count);
	stream->lent = NULL;
	stream->lent_count = 0;
	if (stream->is_over)
		return VD_CLOSED;
	if (store->options.fail_with != VD_OK && stream->given >= store->options.fail_after)
		return vd_error_set(reterr, store->options.fail_with, "%s",
				    vd_status_sentence(store->options.fail_with));
	if (!stream->has_page && !store->options.is_lazy)
		read_page(stream);
	if (!stream->has_page) {
		stream->waits = true;
		vd_actor_wake(stream->actor);
		return VD_AGAIN;
	}
	if (stream->status != VD_OK)
		return vd_error_set(reterr, stream->status, "%s", vd_status_sentence(stream->status));
	*ret_part = (struct vd_store_part) { .kvs = stream->kvs,
					     .kv_count = stream->kv_count,
					     .read_revision = stream->revision,
					     .last = !stream->more };
	ret_part->more = ret_part->last && store->options.is_cut;
	stream->lent = stream->kvs;
	stream->lent_count = stream->kv_count;
	stream->kvs = NULL;
	stream->kv_count = 0;
	stream->has_page = false;
	stream->is_over = ret_part->last;
	stream->given++;
	store->parts++;
	return VD_OK;
}

static void free_stream(void *arg)
{
	struct part_stream *stream = arg;

	release(stream->lent, stream->lent_count);
	release(stream->kvs, stream->kv_count);
	vdi_free(stream);
}

static void part_stream_close(struct vd_store_stream *base)
{
	struct part_stream *stream = VDI_CONTAINER_OF(base, struct part_stream, base);

	vd_actor_close(stream->actor, free_stream, stream);
}

/* ---- All other operations are forwarded to the inner store ---- */

static vd_status part_status(struct vd_store *store, struct vd_store_status *ret_status)
{
	VDI_TRY(vd_store_status_get(part_of(store)->front.inner, ret_status));
	ret_status->remote = part_of(store)->options.is_remote;
	ret_status->id = part_of(store)->options.id;
	return VD_OK;
}

static void part_close(struct vd_store *store, void (*done)(void *arg), void *arg)
{
	if (done)
		done(arg);
}

static const struct vd_store_ops part_ops = {
	.size = sizeof part_ops,
	.range = vdi_forward_range,
	.txn = vdi_forward_txn,
	.compact = vdi_forward_compact,
	.lease_grant = vdi_forward_lease_grant,
	.lease_revoke = vdi_forward_lease_revoke,
	.lease_keep_alive = vdi_forward_lease_keep_alive,
	.lease_time_to_live = vdi_forward_lease_time_to_live,
	.watch = vdi_forward_watch,
	.status = part_status,
	.close = part_close,
	.stream = part_stream_open,
	.stream_next = part_stream_next,
	.stream_close = part_stream_close,
};

struct vd_store *part_store_new(const struct vd_env *env, struct vd_store *inner,
				const struct part_options *options)
{
	struct part_store *store = VDI_NEW(struct part_store);

	VDI_CHECK(store != NULL && options->part_len > 0);
	store->front.base = (struct vd_store) { &part_ops, env };
	store->front.inner = inner;
	store->options = *options;
	return &store->front.base;
}

uint64_t part_store_streams(struct vd_store *store)
{
	return part_of(store)->streams;
}

uint64_t part_store_parts(struct vd_store *store)
{
	return part_of(store)->parts;
}

void part_store_free(struct vd_store *store)
{
	vdi_free(part_of(store));
}
