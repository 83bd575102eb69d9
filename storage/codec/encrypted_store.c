/* Requests are copied with encrypted values, and results with decrypted ones, if a rule matches one of their
 * keys; other results are passed on unchanged. Watches and long reads may outlive the store, so each has a
 * reference to the shared struct core. */
#include <vedette/encryption.h>

#include "env.h"
#include "forward_store.h"
#include "kv.h"
#include "metrics.h"
#include "store.h"
#include "undecodable.h"
#include "value_cipher.h"

/* Replaces a value that should be encrypted but is not; readers find neither JSON nor protobuf. */

enum { READ_OK, READ_FAILED, WRITE_OK, METRIC_COUNT };

/* Shared by the store, its calls, watches and long reads. */
struct core {
	_Atomic uint32_t	 references;
	const struct vd_env	*env;
	struct vdi_value_cipher *cipher;
	struct vdi_metric	*metrics[METRIC_COUNT];
	struct vdi_log_limit	 log_limit;
};

struct encrypted_store {
	struct vdi_forward_store front;
	struct core		*core;
	void (*close_done)(void *arg);
	void *close_done_arg;
};

static struct encrypted_store *store_of(struct vd_store *base)
{
	return VDI_CONTAINER_OF(base, struct encrypted_store, front.base);
}

static struct core *core_ref(struct core *core)
{
	atomic_fetch_add_explicit(&core->references, 1, memory_order_relaxed);
	return core;
}

static void core_unref(struct core *core)
{
	if (core == NULL || atomic_fetch_sub_explicit(&core->references, 1, memory_order_acq_rel) != 1)
		return;
	vdi_value_cipher_unref(core->cipher);
	for (size_t i = 0; i < METRIC_COUNT; i++)
		vdi_metric_release(core->metrics[i]);
	vdi_free(core);
}

/* ---- Records out of the store ---- */

static struct vd_kv *copy_numbers(struct vd_kv *to, const struct vd_kv *from)
{
	to->sub = from->sub;
	to->create_rev = from->create_rev;
	to->mod_rev = from->mod_rev;
	to->version = from->version;
	to->lease = from->lease;
	memcpy(to->data, from->data, from->key_size);
	return to;
}

/* Keeps a value that cannot be decrypted, so that its reader sees the name of the provider; replaces a plain
 * one. */
static vd_status unreadable(struct core *core, struct vd_kv *kv, bool is_plain, struct vd_kv **ret_kv)
{
	struct vd_kv *refused =
		is_plain ? vdi_kv_alloc(kv->key_size, sizeof VDI_VALUE_REFUSED - 1) : vd_kv_ref(kv);

	if (refused == NULL)
		return VD_NOMEM;
	if (is_plain)
		memcpy(copy_numbers(refused, kv)->data + kv->key_size, VDI_VALUE_REFUSED,
		       sizeof VDI_VALUE_REFUSED - 1);
	vdi_metric_add(core->metrics[READ_FAILED], 1);
	vdi_log_limited(core->env, &core->log_limit, VD_LOG_ERROR, "encryption",
			"the value of %.*s at revision %lld cannot be decrypted with the keys of its rule, "
			"or is not encrypted although the rule requires it",
			(int) kv->key_size, kv->data, (long long) kv->mod_rev);
	*ret_kv = refused;
	return VD_OK;
}

/* Returns a reference to kv itself if it is not encrypted, else a decrypted copy, for the caller. */
static vd_status read_kv(struct core *core, struct vd_kv *kv, struct vd_kv **ret_kv)
{
	struct vd_bytes	       key = vd_kv_key(kv), value = vd_kv_value(kv);
	enum vdi_cipher_result result;
	struct vd_kv	      *plain;
	size_t		       size = 0;
	bool		       is_plain;

	/* No value: a tombstone, or a read of keys only. Encrypted values are never empty. */
	if (value.size == 0 || !vdi_value_cipher_covers(core->cipher, key)) {
		*ret_kv = vd_kv_ref(kv);
		return VD_OK;
	}
	plain = vdi_kv_alloc(kv->key_size, kv->value_size);
	if (plain == NULL)
		return VD_NOMEM;
	copy_numbers(plain, kv);
	result = vdi_value_cipher_decrypt(core->cipher, key, value, plain->data + kv->key_size, &size,
					  &is_plain);
	if (result == VDI_CIPHER_NOMEM || result == VDI_CIPHER_UNREADABLE ||
	    (is_plain && result == VDI_CIPHER_FRESH)) {
		vd_kv_unref(plain);
		if (result == VDI_CIPHER_NOMEM)
			return VD_NOMEM;
		if (result == VDI_CIPHER_UNREADABLE)
			return unreadable(core, kv, is_plain, ret_kv);
		*ret_kv = vd_kv_ref(kv);
		return VD_OK;
	}
	if (is_plain) {
		memcpy(plain->data + kv->key_size, value.data, value.size);
		size = value.size;
	}
	plain->value_size = (uint32_t) size;
	plain->is_stale = result == VDI_CIPHER_STALE;
	vdi_metric_add(core->metrics[READ_OK], 1);
	*ret_kv = plain;
	return VD_OK;
}

static void free_kvs(struct vd_kv **kvs, size_t count)
{
	for (size_t i = 0; kvs && i < count; i++)
		vd_kv_unref(kvs[i]);
	vdi_free(kvs);
}

static vd_status read_kvs(struct core *core, struct vd_kv **kvs, size_t count, struct vd_kv ***ret_kvs)
{
	struct vd_kv **copies = vdi_calloc(VDI_MAX(count, (size_t) 1), sizeof(*copies));
	vd_status      status = copies ? VD_OK : VD_NOMEM;

	for (size_t i = 0; status == VD_OK && i < count; i++)
		status = read_kv(core, kvs[i], &copies[i]);
	if (status == VD_OK)
		*ret_kvs = copies;
	else
		free_kvs(copies, count);
	return status;
}

/* ---- Ranges ---- */

struct range_call {
	struct core *core;
	vd_range_fn  done;
	void	    *arg;
};

static vd_status no_memory(struct vd_error *error)
{
	return vd_error_set(error, VD_NOMEM, "out of memory for decrypted values");
}

static void on_range(void *arg, vd_status status, const struct vd_range_result *result,
		     const struct vd_error *error)
{
	struct range_call     *call = arg;
	struct vd_range_result plain;
	struct vd_error	       mine = { 0 };

	if (status == VD_OK) {
		plain = *result;
		status = read_kvs(call->core, result->kvs, result->kv_count, &plain.kvs);
		if (status != VD_OK) {
			no_memory(&mine);
			error = &mine;
		}
	}
	call->done(call->arg, status, status == VD_OK ? &plain : NULL, status == VD_OK ? NULL : error);
	if (status == VD_OK)
		free_kvs(plain.kvs, plain.kv_count);
	core_unref(call->core);
	vdi_free(call);
}

static vd_status encrypted_range(struct vd_store *base, const struct vd_range_request *request,
				 vd_range_fn done, void *arg)
{
	struct encrypted_store *store = store_of(base);
	struct range_call      *call;
	vd_status		status;

	if (request->count_only ||
	    !vdi_value_cipher_covers_range(store->core->cipher, request->key, request->range_end))
		return vd_store_range(store->front.inner, request, done, arg);
	call = VDI_NEW(struct range_call);
	if (call == NULL)
		return VD_NOMEM;
	*call = (struct range_call) { core_ref(store->core), done, arg };
	status = vd_store_range(store->front.inner, request, on_range, call);
	if (status != VD_OK) {
		core_unref(call->core);
		vdi_free(call);
	}
	return status;
}

/* ---- Transactions ---- */

/* A request with encrypted values; everything allocated for it is in one list. */
struct allocation {
	struct allocation *next;
	max_align_t	   data[];
};

struct txn_call {
	struct core	  *core;
	vd_txn_fn	   done;
	void		  *arg;
	struct allocation *allocations; /* for the request, later for the result */
	struct vd_kv	 **read;	/* of the result */
	size_t		   read_count, read_capacity;
};

static void *allocate(struct txn_call *call, size_t size)
{
	struct allocation *allocation = vdi_alloc(sizeof *allocation + size);

	if (allocation == NULL)
		return NULL;
	allocation->next = call->allocations;
	call->allocations = allocation;
	return allocation->data;
}

static void free_allocations(struct txn_call *call)
{
	struct allocation *allocation;

	while ((allocation = call->allocations) != NULL) {
		call->allocations = allocation->next;
		vdi_free(allocation);
	}
}

static void free_txn_call(struct txn_call *call)
{
	free_allocations(call);
	free_kvs(call->read, call->read_count);
	core_unref(call->core);
	vdi_free(call);
}

static vd_status check_compares(const struct core *core, const struct vd_compare *compares, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (compares[i].target == VD_COMPARE_VALUE &&
		    vdi_value_cipher_covers_range(core->cipher, compares[i].key, compares[i].range_end))
			return VD_UNSUPPORTED;
	return VD_OK;
}

static vd_status write_txn(struct txn_call *call, const struct vd_txn_request *request,
			   struct vd_txn_request *ret_request);

static vd_status write_op(struct txn_call *call, const struct vd_op *op, struct vd_op *ret_op)
{
	struct vd_txn_request *nested;
	char		      *room;
	size_t		       size;

	*ret_op = *op;
	if (op->kind == VD_OP_TXN) {
		nested = allocate(call, sizeof *nested);
		ret_op->txn = nested;
		return nested ? write_txn(call, op->txn, nested) : VD_NOMEM;
	}
	if (op->kind != VD_OP_PUT || op->ignore_value ||
	    !vdi_value_cipher_covers(call->core->cipher, op->key))
		return VD_OK;
	room = allocate(call, op->value.size + VDI_CIPHER_OVERHEAD);
	if (room == NULL)
		return VD_NOMEM;
	VDI_TRY(vdi_value_cipher_encrypt(call->core->cipher, op->key, op->value, room, &size));
	if (size == 0)
		return VD_OK;
	ret_op->value = (struct vd_bytes) { room, size };
	vdi_metric_add(call->core->metrics[WRITE_OK], 1);
	return VD_OK;
}

static vd_status write_ops(struct txn_call *call, const struct vd_op *ops, size_t count,
			   const struct vd_op **ret_ops)
{
	struct vd_op *copies = allocate(call, VDI_MAX(count, (size_t) 1) * sizeof *copies);

	if (copies == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < count; i++)
		VDI_TRY(write_op(call, &ops[i], &copies[i]));
	*ret_ops = copies;
	return VD_OK;
}

static vd_status write_txn(struct txn_call *call, const struct vd_txn_request *request,
			   struct vd_txn_request *ret_request)
{
	*ret_request = *request;
	VDI_TRY(check_compares(call->core, request->compares, request->compare_count));
	VDI_TRY(write_ops(call, request->success, request->success_count, &ret_request->success));
	return write_ops(call, request->failure, request->failure_count, &ret_request->failure);
}

/* Decrypts the records into an array that lives as long as the result. */
static vd_status read_list(struct txn_call *call, struct vd_kv **kvs, size_t count, struct vd_kv ***ret_kvs)
{
	struct vd_kv **copies = allocate(call, VDI_MAX(count, (size_t) 1) * sizeof(*copies));

	if (copies == NULL || !vdi_grow((void **) &call->read, &call->read_capacity, call->read_count + count,
					sizeof(*call->read)))
		return VD_NOMEM;
	for (size_t i = 0; i < count; i++) {
		VDI_TRY(read_kv(call->core, kvs[i], &copies[i]));
		call->read[call->read_count++] = copies[i];
	}
	*ret_kvs = copies;
	return VD_OK;
}

static vd_status read_txn(struct txn_call *call, const struct vd_txn_result *result,
			  struct vd_txn_result *ret_result)
{
	struct vd_op_result *copies =
		allocate(call, VDI_MAX(result->result_count, (size_t) 1) * sizeof *copies);

	if (copies == NULL)
		return VD_NOMEM;
	*ret_result = *result;
	ret_result->results = copies;
	for (size_t i = 0; i < result->result_count; i++) {
		struct vd_op_result  *copy = &copies[i];
		struct vd_txn_result *nested;

		*copy = result->results[i];
		VDI_TRY(read_list(call, copy->previous, copy->previous_count, &copy->previous));
		if (copy->kind == VD_OP_RANGE)
			VDI_TRY(read_list(call, copy->range.kvs, copy->range.kv_count, &copy->range.kvs));
		if (copy->kind != VD_OP_TXN)
			continue;
		nested = allocate(call, sizeof *nested);
		if (nested == NULL)
			return VD_NOMEM;
		VDI_TRY(read_txn(call, copy->txn, nested));
		copy->txn = nested;
	}
	return VD_OK;
}

static void on_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		   const struct vd_error *error)
{
	struct txn_call	    *call = arg;
	struct vd_txn_result plain;
	struct vd_error	     mine = { 0 };

	free_allocations(call);
	if (status == VD_OK && read_txn(call, result, &plain) != VD_OK) {
		/* The transaction was executed, but its result cannot be delivered. */
		status = vd_error_set(&mine, VD_UNAVAILABLE,
				      "out of memory for the result of an executed transaction");
		error = &mine;
	}
	call->done(call->arg, status, status == VD_OK ? &plain : NULL, status == VD_OK ? NULL : error);
	free_txn_call(call);
}

static vd_status encrypted_txn(struct vd_store *base, const struct vd_txn_request *request, vd_txn_fn done,
			       void *arg)
{
	struct encrypted_store *store = store_of(base);
	struct txn_call	       *call = VDI_NEW(struct txn_call);
	struct vd_txn_request	sealed;
	vd_status		status;

	if (call == NULL)
		return VD_NOMEM;
	call->core = core_ref(store->core);
	call->done = done;
	call->arg = arg;
	status = write_txn(call, request, &sealed);
	if (status == VD_OK)
		status = vd_store_txn(store->front.inner, &sealed, on_txn, call);
	if (status != VD_OK)
		free_txn_call(call);
	return status;
}

/* ---- Watches ---- */

struct encrypted_watch {
	struct vd_store_watch  base;
	struct vd_store	       stub; /* only base.store's operations are used */
	struct core	      *core;
	struct vd_store_watch *inner;
	struct vd_store_event *events; /* borrowed by the reader; references */
	size_t		       event_count, event_capacity;
	bool has_failed; /* a batch is lost, because there was no memory to decrypt it; the watch must end */
};

static struct encrypted_watch *watch_of(struct vd_store_watch *watch)
{
	return VDI_CONTAINER_OF(watch, struct encrypted_watch, base);
}

static void drop_events(struct encrypted_watch *watch)
{
	for (size_t i = 0; i < watch->event_count; i++) {
		vd_kv_unref(watch->events[i].kv);
		vd_kv_unref(watch->events[i].previous);
	}
	watch->event_count = 0;
}

static vd_status read_events(struct encrypted_watch *watch, const struct vd_store_batch *batch)
{
	if (!vdi_grow((void **) &watch->events, &watch->event_capacity, batch->event_count,
		      sizeof *watch->events))
		return VD_NOMEM;
	for (size_t i = 0; i < batch->event_count; i++) {
		struct vd_store_event *event = &watch->events[i];

		*event = (struct vd_store_event) { .is_delete = batch->events[i].is_delete };
		watch->event_count = i + 1;
		VDI_TRY(read_kv(watch->core, batch->events[i].kv, &event->kv));
		if (batch->events[i].previous)
			VDI_TRY(read_kv(watch->core, batch->events[i].previous, &event->previous));
	}
	return VD_OK;
}

static vd_status encrypted_watch_next(struct vd_store_watch *base, size_t event_count_max,
				      struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	struct encrypted_watch *watch = watch_of(base);
	struct vd_store_batch	batch;

	drop_events(watch);
	if (watch->has_failed)
		return no_memory(reterr);
	VDI_TRY(vd_store_watch_next(watch->inner, event_count_max, &batch, reterr));
	watch->has_failed = read_events(watch, &batch) != VD_OK;
	if (watch->has_failed)
		return no_memory(reterr);
	*ret_batch = (struct vd_store_batch) { batch.revision, watch->events, watch->event_count };
	return VD_OK;
}

static vd_status encrypted_watch_progress(struct vd_store_watch *base)
{
	return vd_store_watch_progress(watch_of(base)->inner);
}

static void encrypted_watch_close(struct vd_store_watch *base)
{
	struct encrypted_watch *watch = watch_of(base);

	vd_store_watch_close(watch->inner);
	drop_events(watch);
	core_unref(watch->core);
	vdi_free(watch->events);
	vdi_free(watch);
}

static vd_status encrypted_watch(struct vd_store *base, const struct vd_store_watch_request *request,
				 struct vd_store_watch **ret_watch, struct vd_error *reterr)
{
	struct encrypted_store *store = store_of(base);
	struct encrypted_watch *watch;
	vd_status		status;

	if (!vdi_value_cipher_covers_range(store->core->cipher, request->key, request->range_end))
		return vd_store_watch_open(store->front.inner, request, ret_watch, reterr);
	watch = VDI_NEW(struct encrypted_watch);
	if (watch == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory for a watch");
	status = vd_store_watch_open(store->front.inner, request, &watch->inner, reterr);
	if (status != VD_OK) {
		vdi_free(watch);
		return status;
	}
	watch->core = core_ref(store->core);
	watch->stub = *base;
	watch->base = (struct vd_store_watch) { &watch->stub, watch->inner->opened };
	*ret_watch = &watch->base;
	return VD_OK;
}

/* ---- Long reads ---- */

struct encrypted_stream {
	struct vd_store_stream	base;
	struct vd_store		stub;
	struct core	       *core;
	struct vd_store_stream *inner;
	struct vd_kv	      **kvs; /* borrowed by the reader */
	size_t			count;
};

static struct encrypted_stream *stream_of(struct vd_store_stream *stream)
{
	return VDI_CONTAINER_OF(stream, struct encrypted_stream, base);
}

static void drop_part(struct encrypted_stream *stream)
{
	free_kvs(stream->kvs, stream->count);
	stream->kvs = NULL;
	stream->count = 0;
}

static vd_status encrypted_stream_next(struct vd_store_stream *base, struct vd_store_part *ret_part,
				       struct vd_error *reterr)
{
	struct encrypted_stream *stream = stream_of(base);
	struct vd_store_part	 part;

	drop_part(stream);
	VDI_TRY(vd_store_stream_next(stream->inner, &part, reterr));
	if (read_kvs(stream->core, part.kvs, part.kv_count, &stream->kvs) != VD_OK)
		return no_memory(reterr);
	stream->count = part.kv_count;
	part.kvs = stream->kvs;
	*ret_part = part;
	return VD_OK;
}

static void encrypted_stream_close(struct vd_store_stream *base)
{
	struct encrypted_stream *stream = stream_of(base);

	vd_store_stream_close(stream->inner);
	drop_part(stream);
	core_unref(stream->core);
	vdi_free(stream);
}

static vd_status encrypted_stream(struct vd_store *base, const struct vd_store_stream_request *request,
				  struct vd_store_stream **ret_stream)
{
	struct encrypted_store	*store = store_of(base);
	struct encrypted_stream *stream;
	vd_status		 status;

	if (!vdi_value_cipher_covers_range(store->core->cipher, request->range.key, request->range.range_end))
		return vd_store_stream_open(store->front.inner, request, ret_stream);
	stream = VDI_NEW(struct encrypted_stream);
	if (stream == NULL)
		return VD_NOMEM;
	status = vd_store_stream_open(store->front.inner, request, &stream->inner);
	if (status != VD_OK) {
		vdi_free(stream);
		return status;
	}
	stream->core = core_ref(store->core);
	stream->stub = *base;
	stream->base.store = &stream->stub;
	*ret_stream = &stream->base;
	return VD_OK;
}

/* ---- Life ---- */

static void on_closed(void *arg)
{
	struct encrypted_store *store = arg;
	void (*done)(void *arg) = store->close_done;
	void *done_arg = store->close_done_arg;

	core_unref(store->core);
	vdi_free(store);
	if (done)
		done(done_arg);
}

static void encrypted_close(struct vd_store *base, void (*done)(void *arg), void *arg)
{
	struct encrypted_store *store = store_of(base);

	store->close_done = done;
	store->close_done_arg = arg;
	vd_store_close(store->front.inner, on_closed, store);
}

static const struct vd_store_ops ops = {
	.size = sizeof(struct vd_store_ops),
	.range = encrypted_range,
	.txn = encrypted_txn,
	.compact = vdi_forward_compact,
	.lease_grant = vdi_forward_lease_grant,
	.lease_revoke = vdi_forward_lease_revoke,
	.lease_keep_alive = vdi_forward_lease_keep_alive,
	.lease_time_to_live = vdi_forward_lease_time_to_live,
	.watch = encrypted_watch,
	.watch_next = encrypted_watch_next,
	.watch_progress = encrypted_watch_progress,
	.watch_close = encrypted_watch_close,
	.status = vdi_forward_status,
	.close = encrypted_close,
	.stream = encrypted_stream,
	.stream_next = encrypted_stream_next,
	.stream_close = encrypted_stream_close,
	.shutdown = vdi_forward_shutdown,
	.dump = vdi_forward_dump,
	.lease_list = vdi_forward_lease_list,
};

static vd_status init_metrics(struct core *core)
{
	static const char *const labels[METRIC_COUNT][2] = { [READ_OK] = { "OK", "from_storage" },
							     [READ_FAILED] = { "Internal", "from_storage" },
							     [WRITE_OK] = { "OK", "to_storage" } };

	for (size_t i = 0; i < METRIC_COUNT; i++)
		VDI_TRY(vdi_metric_get(vdi_env_metrics(core->env),
				       VDI_METRIC_STORAGE_TRANSFORMATION_OPERATIONS_TOTAL, labels[i],
				       &core->metrics[i]));
	return VD_OK;
}

vd_status vd_store_open_encrypted(const struct vd_env *env, struct vd_store *inner,
				  const struct vd_encryption_rule *rules, size_t rule_count,
				  struct vd_store **ret_store, struct vd_error *reterr)
{
	struct encrypted_store *store;
	vd_status		status;

	if (env == NULL || inner == NULL || (rules == NULL && rule_count) || ret_store == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "open encrypted: env, inner, rules or ret_store is NULL");
	store = VDI_NEW(struct encrypted_store);
	if (store == NULL || (store->core = VDI_NEW(struct core)) == NULL) {
		vdi_free(store);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	atomic_init(&store->core->references, 1);
	store->core->env = env;
	store->core->log_limit.interval = VD_SECONDS(10);
	store->front.base = (struct vd_store) { &ops, env };
	store->front.inner = inner;
	status = init_metrics(store->core);
	if (status != VD_OK)
		(void) vd_error_set(reterr, status, "out of memory for metrics");
	else
		status = vdi_value_cipher_new(rules, rule_count, &store->core->cipher, reterr);
	if (status != VD_OK) {
		core_unref(store->core);
		vdi_free(store);
		return status;
	}
	*ret_store = &store->front.base;
	return VD_OK;
}
