/* A delayed call is a copy of its request with an actor whose timer issues it. A watch is a thin wrapper that
 * may end with VD_UNAVAILABLE, and whose notifications may be delayed by a timer. */
#include "lock.h"
#include "store_chaos.h"

#include <stdlib.h>

struct chaos {
	struct vd_store	     store;
	struct vd_store	    *inner;
	struct chaos_options options;
	struct chaos_marks   marks;
	size_t		     pending;
	struct chaos_watch  *watches;
	bool		     hides_death;
};

enum call_kind { CALL_RANGE, CALL_TXN };

struct call {
	struct chaos	       *chaos;
	enum call_kind		kind;
	bool			lose_answer, refuse;
	struct vd_range_request range;
	struct vd_txn_request	txn;
	vd_range_fn		range_done;
	vd_txn_fn		txn_done;
	void		       *arg;
	struct vd_actor	       *actor;
	char		       *memory; /* the bytes of the request */
	size_t			used;
};

struct chaos_watch {
	struct vd_store_watch  base;
	struct vd_store_watch *inner;
	struct vd_actor	      *actor; /* late news */
	bool		       cut;
	struct chaos_watch    *next;
	void (*ready)(void *arg);
	void		      *ready_arg;
	struct vd_store_event *lent; /* a copy: the inner watch may be closed while the batch is in use */
	size_t		       lent_count;
	struct vdi_lock	       lock; /* held during the reader's ready function */
	bool		       is_closed;
};

static struct chaos *chaos_of(struct vd_store *store)
{
	return VDI_CONTAINER_OF(store, struct chaos, store);
}

static bool happens(struct chaos *chaos, unsigned permille)
{
	return permille && vd_env_random_below(chaos->store.env, 1000) < permille;
}

static vd_mono later(struct chaos *chaos)
{
	int64_t max = chaos->options.delay_max.ns > 0 ? chaos->options.delay_max.ns : 1;

	return vd_mono_add(vd_env_now(chaos->store.env),
			   (vd_dur) { (int64_t) vd_env_random_below(chaos->store.env, (uint64_t) max) });
}

static void refused(struct vd_error *error)
{
	vd_error_set(error, VD_UNAVAILABLE, "the line was cut");
}

static vd_status hide_death(const struct chaos *chaos, vd_status status)
{
	return chaos->hides_death && (status == VD_CLOSED || status == VD_IO) ? VD_UNAVAILABLE : status;
}

/* ---- Copies of requests ---- */

static struct vd_bytes keep(struct call *call, struct vd_bytes bytes)
{
	char *copy = call->memory + call->used;

	if (bytes.size == 0)
		return VD_BYTES_NONE;
	memcpy(copy, bytes.data, bytes.size);
	call->used += bytes.size;
	return (struct vd_bytes) { copy, bytes.size };
}

static size_t ops_size(const struct vd_op *ops, size_t count)
{
	size_t size = 0;

	for (size_t i = 0; i < count; i++)
		size += ops[i].key.size + ops[i].range_end.size + ops[i].value.size + ops[i].range.key.size +
			ops[i].range.range_end.size;
	return size;
}

static struct vd_op *keep_ops(struct call *call, const struct vd_op *ops, size_t count)
{
	struct vd_op *copy = calloc(count + 1, sizeof *copy);

	for (size_t i = 0; i < count; i++) {
		VDI_CHECK(ops[i].kind != VD_OP_TXN);
		copy[i] = ops[i];
		copy[i].key = keep(call, ops[i].key);
		copy[i].range_end = keep(call, ops[i].range_end);
		copy[i].value = keep(call, ops[i].value);
		copy[i].range.key = keep(call, ops[i].range.key);
		copy[i].range.range_end = keep(call, ops[i].range.range_end);
	}
	return copy;
}

static struct vd_compare *keep_compares(struct call *call, const struct vd_compare *compares, size_t count)
{
	struct vd_compare *copy = calloc(count + 1, sizeof *copy);

	for (size_t i = 0; i < count; i++) {
		copy[i] = compares[i];
		copy[i].key = keep(call, compares[i].key);
		copy[i].range_end = keep(call, compares[i].range_end);
		copy[i].value = keep(call, compares[i].value);
	}
	return copy;
}

static void call_free(void *arg)
{
	struct call *call = arg;

	free((void *) (uintptr_t) call->txn.compares);
	free((void *) (uintptr_t) call->txn.success);
	free((void *) (uintptr_t) call->txn.failure);
	free(call->memory);
	free(call);
}

/* ---- Calls ---- */

static void on_range(void *arg, vd_status status, const struct vd_range_result *result,
		     const struct vd_error *error)
{
	struct call *call = arg;

	call->range_done(call->arg, hide_death(call->chaos, status), result, error);
	if (call->actor == NULL)
		call_free(call);
}

static void on_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		   const struct vd_error *error)
{
	struct call    *call = arg;
	struct vd_error lost = { 0 };

	if (call->lose_answer && status == VD_OK) {
		call->chaos->marks.lost_answers++;
		refused(&lost);
		call->txn_done(call->arg, VD_UNAVAILABLE, NULL, &lost);
	} else {
		call->txn_done(call->arg, hide_death(call->chaos, status), result, error);
	}
	if (call->actor == NULL)
		call_free(call);
}

static void issue(struct call *call)
{
	struct vd_error error = { 0 };
	vd_status	status = VD_UNAVAILABLE;

	refused(&error);
	if (call->refuse) {
		call->chaos->marks.refusals++;
		call->chaos->marks.refused_ranges += call->kind == CALL_RANGE;
	} else if (call->chaos->inner == NULL)
		status = VD_UNAVAILABLE;
	else if (call->kind == CALL_RANGE)
		status = vd_store_range(call->chaos->inner, &call->range, on_range, call);
	else
		status = vd_store_txn(call->chaos->inner, &call->txn, on_txn, call);
	if (status == VD_OK)
		return;
	if (call->kind == CALL_RANGE)
		on_range(call, status, NULL, &error);
	else
		on_txn(call, status, NULL, &error);
}

static void issue_late(void *arg)
{
	struct call	*call = arg;
	struct vd_actor *actor = call->actor;

	call->chaos->pending--;
	call->actor = NULL;
	vd_actor_close(actor, NULL, NULL);
	issue(call);
}

static vd_status call_start(struct call *call)
{
	struct chaos	       *chaos = call->chaos;
	struct vd_actor_options options = { .name = "chaos", .run = issue_late, .arg = call };

	call->refuse = happens(chaos, chaos->options.refuse);
	call->lose_answer =
		!call->refuse && call->kind == CALL_TXN && happens(chaos, chaos->options.lose_answer);
	if (happens(chaos, chaos->options.delay) &&
	    vd_actor_new(chaos->store.env, &options, &call->actor) == VD_OK) {
		chaos->marks.delays++;
		chaos->pending++;
		vd_actor_set_timer(call->actor, later(chaos));
		return VD_OK;
	}
	issue(call);
	return VD_OK;
}

static struct call *call_new(struct vd_store *store, enum call_kind kind, size_t size, void *arg)
{
	struct call *call = calloc(1, sizeof *call);

	call->chaos = chaos_of(store);
	call->kind = kind;
	call->arg = arg;
	call->memory = malloc(size + 1);
	return call;
}

static vd_status chaos_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			     void *arg)
{
	struct call *call = call_new(store, CALL_RANGE, request->key.size + request->range_end.size, arg);

	call->range = *request;
	call->range.key = keep(call, request->key);
	call->range.range_end = keep(call, request->range_end);
	call->range_done = done;
	return call_start(call);
}

static vd_status chaos_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			   void *arg)
{
	size_t size = ops_size(request->success, request->success_count) +
		      ops_size(request->failure, request->failure_count);
	struct call *call;

	for (size_t i = 0; i < request->compare_count; i++)
		size += request->compares[i].key.size + request->compares[i].range_end.size +
			request->compares[i].value.size;
	call = call_new(store, CALL_TXN, size, arg);
	call->txn = *request;
	call->txn.compares = keep_compares(call, request->compares, request->compare_count);
	call->txn.success = keep_ops(call, request->success, request->success_count);
	call->txn.failure = keep_ops(call, request->failure, request->failure_count);
	call->txn_done = done;
	return call_start(call);
}

static vd_status chaos_compact(struct vd_store *store, vd_rev revision, bool physical, vd_done_fn done,
			       void *arg)
{
	return chaos_of(store)->inner ?
		       vd_store_compact(chaos_of(store)->inner, revision, physical, done, arg) :
		       VD_UNAVAILABLE;
}

static vd_status chaos_lease_grant(struct vd_store *store, int64_t id, int64_t ttl_s, vd_lease_fn done,
				   void *arg)
{
	return chaos_of(store)->inner ? vd_store_lease_grant(chaos_of(store)->inner, id, ttl_s, done, arg) :
					VD_UNAVAILABLE;
}

static vd_status chaos_lease_revoke(struct vd_store *store, int64_t id, vd_done_fn done, void *arg)
{
	return chaos_of(store)->inner ? vd_store_lease_revoke(chaos_of(store)->inner, id, done, arg) :
					VD_UNAVAILABLE;
}

static vd_status chaos_lease_keep_alive(struct vd_store *store, int64_t id, vd_lease_fn done, void *arg)
{
	return chaos_of(store)->inner ? vd_store_lease_keep_alive(chaos_of(store)->inner, id, done, arg) :
					VD_UNAVAILABLE;
}

static vd_status chaos_lease_time_to_live(struct vd_store *store, int64_t id, bool keys, vd_lease_fn done,
					  void *arg)
{
	return chaos_of(store)->inner ?
		       vd_store_lease_time_to_live(chaos_of(store)->inner, id, keys, done, arg) :
		       VD_UNAVAILABLE;
}

/* ---- Watches ---- */

static void late_news(void *arg)
{
	struct chaos_watch *watch = arg;

	/* The watch may be closed while this handler is suspended. */
	vdi_lock_acquire(&watch->lock);
	if (!watch->is_closed)
		watch->ready(watch->ready_arg);
	vdi_lock_release(&watch->lock);
}

static void free_watch(void *arg)
{
	struct chaos_watch *watch = arg;

	vdi_lock_fini(&watch->lock);
	free(watch);
}

static void on_news(void *arg)
{
	struct chaos_watch *watch = arg;
	struct chaos	   *chaos = chaos_of(watch->base.store);

	if (happens(chaos, chaos->options.stall)) {
		chaos->marks.stalls++;
		vd_actor_set_timer(watch->actor, later(chaos));
	} else {
		watch->ready(watch->ready_arg);
	}
}

static vd_status chaos_watch(struct vd_store *store, const struct vd_store_watch_request *request,
			     struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct chaos		     *chaos = chaos_of(store);
	struct vd_store_watch_request inner = *request;
	struct chaos_watch	     *watch;
	struct vd_actor_options	      options = { .name = "chaos_watch", .run = late_news };
	vd_status		      status;

	if (happens(chaos, chaos->options.refuse_watch) || chaos->inner == NULL) {
		chaos->marks.refused_watches += chaos->inner != NULL;
		refused(reterr);
		return VD_UNAVAILABLE;
	}
	watch = calloc(1, sizeof *watch);
	options.arg = watch;
	vdi_lock_init(&watch->lock, VDI_LOCK_STORE);
	watch->base.store = store;
	watch->ready = request->ready;
	watch->ready_arg = request->ready_arg;
	inner.ready = on_news;
	inner.ready_arg = watch;
	status = vd_actor_new(store->env, &options, &watch->actor);
	if (status == VD_OK)
		status = vd_store_watch_open(chaos->inner, &inner, &watch->inner, reterr);
	if (status != VD_OK) {
		vd_actor_close(watch->actor, free_watch, watch);
		return status;
	}
	watch->next = chaos->watches;
	chaos->watches = watch;
	*ret_watch = &watch->base;
	return VD_OK;
}

static void drop_lent(struct chaos_watch *watch)
{
	for (size_t i = 0; i < watch->lent_count; i++) {
		vd_kv_unref(watch->lent[i].kv);
		vd_kv_unref(watch->lent[i].previous);
	}
	free(watch->lent);
	watch->lent = NULL;
	watch->lent_count = 0;
}

static void lend_copy(struct chaos_watch *watch, struct vd_store_batch *batch)
{
	if (batch->event_count == 0)
		return;
	watch->lent = malloc(batch->event_count * sizeof *watch->lent);
	for (; watch->lent_count < batch->event_count; watch->lent_count++) {
		const struct vd_store_event *event = &batch->events[watch->lent_count];

		watch->lent[watch->lent_count] = *event;
		(void) vd_kv_ref(event->kv);
		if (event->previous)
			(void) vd_kv_ref(event->previous);
	}
	batch->events = watch->lent;
}

static vd_status chaos_watch_next(struct vd_store_watch *base, size_t event_count_max,
				  struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	struct chaos_watch *watch = VDI_CONTAINER_OF(base, struct chaos_watch, base);
	struct chaos	   *chaos = chaos_of(base->store);
	vd_status	    status;

	drop_lent(watch);
	if (!watch->cut && happens(chaos, chaos->options.cut)) {
		chaos->marks.cuts++;
		watch->cut = true;
	}
	if (watch->cut) {
		refused(reterr);
		return VD_UNAVAILABLE;
	}
	status = vd_store_watch_next(watch->inner, event_count_max, ret_batch, reterr);
	if (status == VD_OK)
		lend_copy(watch, ret_batch);
	return hide_death(chaos, status);
}

static vd_status chaos_watch_progress(struct vd_store_watch *base)
{
	struct chaos_watch *watch = VDI_CONTAINER_OF(base, struct chaos_watch, base);

	if (chaos_of(base->store)->options.no_progress)
		return VD_UNSUPPORTED;
	return watch->cut ? VD_UNAVAILABLE : vd_store_watch_progress(watch->inner);
}

static void chaos_watch_close(struct vd_store_watch *base)
{
	struct chaos_watch  *watch = VDI_CONTAINER_OF(base, struct chaos_watch, base);
	struct chaos_watch **place = &chaos_of(base->store)->watches;

	while (*place != watch)
		place = &(*place)->next;
	*place = watch->next;
	vd_store_watch_close(watch->inner);
	vdi_lock_acquire(&watch->lock);
	watch->is_closed = true;
	vdi_lock_release(&watch->lock);
	drop_lent(watch);
	vd_actor_close(watch->actor, free_watch, watch);
}

static vd_status chaos_status(struct vd_store *store, struct vd_store_status *ret_status)
{
	struct chaos *chaos = chaos_of(store);
	vd_status     status = chaos->inner ? vd_store_status_get(chaos->inner, ret_status) : VD_UNAVAILABLE;

	if (status == VD_OK && chaos->options.no_progress)
		ret_status->progress = false;
	return status;
}

static void chaos_close(struct vd_store *store, void (*done)(void *arg), void *arg)
{
	(void) store;
	done(arg);
}

static const struct vd_store_ops chaos_ops = {
	.size = sizeof(struct vd_store_ops),
	.range = chaos_range,
	.txn = chaos_txn,
	.compact = chaos_compact,
	.lease_grant = chaos_lease_grant,
	.lease_revoke = chaos_lease_revoke,
	.lease_keep_alive = chaos_lease_keep_alive,
	.lease_time_to_live = chaos_lease_time_to_live,
	.watch = chaos_watch,
	.watch_next = chaos_watch_next,
	.watch_progress = chaos_watch_progress,
	.watch_close = chaos_watch_close,
	.status = chaos_status,
	.close = chaos_close,
};

struct vd_store *chaos_store_new(const struct vd_env *env, struct vd_store *inner,
				 const struct chaos_options *options)
{
	struct chaos *chaos = calloc(1, sizeof *chaos);

	chaos->store.ops = &chaos_ops;
	chaos->store.env = env;
	chaos->inner = inner;
	chaos_set(&chaos->store, options);
	return &chaos->store;
}

void chaos_set(struct vd_store *store, const struct chaos_options *options)
{
	chaos_of(store)->options = options ? *options : (struct chaos_options) { 0 };
}

void chaos_cut(struct vd_store *store)
{
	for (struct chaos_watch *watch = chaos_of(store)->watches; watch; watch = watch->next) {
		chaos_of(store)->marks.cuts += !watch->cut;
		watch->cut = true;
		watch->ready(watch->ready_arg);
	}
}

void chaos_set_inner(struct vd_store *store, struct vd_store *inner)
{
	struct chaos *chaos = chaos_of(store);

	for (struct chaos_watch *watch = chaos->watches; watch; watch = watch->next) {
		watch->cut = true;
		vd_store_watch_close(watch->inner);
		watch->inner = NULL;
		watch->ready(watch->ready_arg);
	}
	chaos->hides_death = true;
	chaos->inner = inner;
}

void chaos_replace_inner(struct vd_store *store, struct vd_store *inner)
{
	VDI_CHECK(chaos_of(store)->watches == NULL);
	chaos_of(store)->inner = inner;
}

const struct chaos_marks *chaos_marks(struct vd_store *store)
{
	return &chaos_of(store)->marks;
}

size_t chaos_pending(struct vd_store *store)
{
	return chaos_of(store)->pending;
}

void chaos_store_free(struct vd_store *store)
{
	free(chaos_of(store));
}
