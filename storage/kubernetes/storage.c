/* How: each call is a small state machine (struct op) that sends a range or a transaction to the store and
 * continues in the callback. A callback may run before the store's function returns. So the issuer and the
 * callback both count in, and the second one continues; retries are a loop, never a recursion.
 *
 *   get:     READ -> done
 *   create:  [LEASE] -> WRITE -> done
 *   update:  [suggestion] READ -> decide -> [LEASE] -> WRITE --conflict--> decide on the returned state
 *   delete:  [suggestion] READ -> decide -> WRITE --conflict--> decide on the returned state
 *
 * "decide" runs the caller's function. As upstream, a failed decision on a suggestion, which may be stale, is
 * repeated on fresh state.
 */
#include "storage.h"

#include <stdio.h>

#include "object.h"
#include "revision_cut.h"
#include "storage_state.h"

/* Maximum uses of a granted lease by writes with nearly the same expiry. */
#define LEASE_USES_MAX 1000

enum op_kind { OP_GET, OP_CREATE, OP_UPDATE, OP_DELETE };
enum op_step { STEP_READ, STEP_DECIDE, STEP_LEASE, STEP_WRITE, STEP_DONE };

struct op {
	struct vdi_storage *storage;
	enum op_kind	    kind;
	enum op_step	    step;
	vd_mono		    issued;  /* start of the current request */
	unsigned	    arrived; /* issuer and callback; the second one continues */

	struct vd_bytes	  key;			       /* own copy */
	char		 *uid, *precondition_revision; /* own copies, or NULL */
	struct vd_object *guard;		       /* reference, or NULL; create only */
	bool		  create_missing;
	vd_update_fn	  update;
	vd_validate_fn	  validate;
	vd_object_fn	  done;
	void		 *arg;
	vd_rev		  minimum;

	/* State on which the decision is based. */
	struct vd_object *current; /* reference; NULL: missing */
	bool		  stale_possible;
	/* Failed decision on a suggestion, with its revision, until it is confirmed. */
	vd_status	first_status;
	struct vd_error first_error;
	vd_rev		first_revision;

	/* Data to write. */
	struct vd_kv	 *wanted; /* own copy of key and value, without resourceVersion */
	struct vd_object *wanted_object;
	int64_t		  ttl_s;
	int64_t		  lease;
	vd_mono		  lease_asked_at;
	bool		  lease_was_gone; /* retried once with a new lease */
	struct op	 *lease_next;	  /* in the list of operations that wait for a grant */

	/* Result. */
	vd_status	  status;
	struct vd_error	  error;
	struct vd_object *result;
	vd_rev		  revision;
};

/* ---- Errors ---- */

static vd_status storage_error(struct vd_error *error, vd_status code, struct vd_bytes key, vd_rev revision,
			       const char *inner)
{
	static const struct {
		vd_status   code;
		const char *text;
		int	    number;
	} kinds[] = {
		{ VD_NOT_FOUND, "key not found", 1 },
		{ VD_EXISTS, "key exists", 2 },
		{ VD_CONFLICT, "resource version conflicts", 3 },
		{ VD_PRECONDITION, "invalid object", 4 },
		{ VD_UNAVAILABLE, "server unreachable", 5 },
		{ VD_TIMEOUT, "request timeout", 6 },
		{ VD_UNDECODABLE, "corrupt object", 7 },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(kinds); i++)
		if (kinds[i].code == code)
			return vd_error_set(error, code,
					    "StorageError: %s, Code: %d, Key: %.*s, ResourceVersion: %lld, "
					    "AdditionalErrorMsg: %s",
					    kinds[i].text, kinds[i].number,
					    (int) VDI_MIN(key.size, (size_t) 200), (const char *) key.data,
					    (long long) revision, inner ? inner : "<nil>");
	return vd_error_set(error, code, "%s", inner ? inner : vd_status_sentence(code));
}

/* ---- Life ---- */

static vd_status check_prefix(const char *prefix, struct vd_error *reterr)
{
	size_t size = prefix ? strlen(prefix) : 0;

	if (size == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "resourcePrefix cannot be empty");
	if (strcmp(prefix, "/") == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "resourcePrefix cannot be /");
	if (prefix[0] != '/')
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "resourcePrefix needs to start from /");
	if (prefix[size - 1] != '/')
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "key prefix \"%s\" needs to end with /",
				    prefix);
	if (size > VDI_STORAGE_KEY_MAX / 2)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "key prefix is longer than %d bytes",
				    VDI_STORAGE_KEY_MAX / 2);
	return VD_OK;
}

vd_status vdi_storage_new(const struct vd_env *env, struct vd_store *store,
			  const struct vdi_storage_options *options, struct vdi_storage **ret_storage,
			  struct vd_error *reterr)
{
	struct vdi_storage *storage;

	VDI_TRY(check_prefix(options->key_prefix, reterr));
	storage = VDI_NEW(struct vdi_storage);
	if (storage == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	vdi_lock_init(&storage->lease_lock, VDI_LOCK_LEAF);
	storage->env = env;
	storage->store = store;
	storage->codec = options->codec;
	storage->metrics = options->metrics;
	storage->key_prefix = vdi_strdup(options->key_prefix);
	storage->resource = vdi_strdup(options->resource ? options->resource : "");
	if (storage->key_prefix == NULL || storage->resource == NULL) {
		vdi_storage_free(storage);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	storage->key_prefix_size = strlen(storage->key_prefix);
	*ret_storage = storage;
	return VD_OK;
}

struct vdi_storage *vdi_storage_free(struct vdi_storage *storage)
{
	if (storage) {
		vdi_lock_fini(&storage->lease_lock);
		vdi_free(storage->key_prefix);
		vdi_free(storage->resource);
		vdi_free(storage);
	}
	return NULL;
}

struct vd_store *vdi_storage_store(const struct vdi_storage *storage)
{
	return storage->store;
}

struct vdi_storage_metrics *vdi_storage_metrics_of(const struct vdi_storage *storage)
{
	return storage->metrics;
}

/* ---- Keys ---- */

static bool segment_is_safe(struct vd_bytes segment)
{
	if (segment.size == 0 || memchr(segment.data, '/', segment.size) ||
	    memchr(segment.data, 0, segment.size))
		return false;
	return !vd_bytes_equal(segment, vd_bytes_of(".")) && !vd_bytes_equal(segment, vd_bytes_of(".."));
}

vd_status vdi_storage_key(const struct vdi_storage *storage, struct vd_bytes namespace_name,
			  struct vd_bytes name, char buffer[VDI_STORAGE_KEY_MAX], struct vd_bytes *ret_key,
			  struct vd_error *reterr)
{
	size_t size = storage->key_prefix_size;

	if (!segment_is_safe(name) || (namespace_name.size && !segment_is_safe(namespace_name)))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "invalid key: \"%s%.*s%s%.*s\"",
				    storage->key_prefix, (int) namespace_name.size,
				    (const char *) namespace_name.data, namespace_name.size ? "/" : "",
				    (int) name.size, (const char *) name.data);
	if (size + namespace_name.size + 1 + name.size > VDI_STORAGE_KEY_MAX)
		return vd_error_set(reterr, VD_TOO_BIG, "the key would be longer than %d bytes",
				    VDI_STORAGE_KEY_MAX);
	memcpy(buffer, storage->key_prefix, size);
	if (namespace_name.size) {
		memcpy(buffer + size, namespace_name.data, namespace_name.size);
		size += namespace_name.size;
		buffer[size++] = '/';
	}
	memcpy(buffer + size, name.data, name.size);
	*ret_key = (struct vd_bytes) { buffer, size + name.size };
	return VD_OK;
}

/* ---- Operations: life and the loop ---- */

static void op_run(struct op *op);

static struct op *op_new(struct vdi_storage *storage, enum op_kind kind, struct vd_bytes key)
{
	struct op *op = vdi_calloc(1, sizeof *op + key.size + 1);

	if (op == NULL)
		return NULL;
	op->storage = storage;
	op->kind = kind;
	memcpy(op + 1, key.data, key.size);
	op->key = (struct vd_bytes) { op + 1, key.size };
	return op;
}

static void op_free(struct op *op)
{
	vd_object_unref(op->guard);
	vd_object_unref(op->current);
	vd_object_unref(op->result);
	vd_object_unref(op->wanted_object);
	vd_kv_unref(op->wanted);
	vdi_free(op->uid);
	vdi_free(op->precondition_revision);
	vdi_free(op);
}

/* The issuer, after the store's function has returned, and the callback both call this; the second one
 * continues. */
static void op_meet(struct op *op)
{
	if (__atomic_add_fetch(&op->arrived, 1, __ATOMIC_ACQ_REL) == 2)
		op_run(op);
}

static void op_finish(struct op *op, vd_status status)
{
	op->status = status;
	op->step = STEP_DONE;
}

static void op_finish_error(struct op *op, vd_status status, const struct vd_error *error)
{
	if (error && error->message[0])
		op->error = *error;
	else
		vd_error_set(&op->error, status, "%s", vd_status_sentence(status));
	op->error.code = status;
	op_finish(op, status);
}

static void set_current(struct op *op, struct vd_object *object)
{
	vd_object_unref(op->current);
	op->current = object;
}

/* Counts a completed request in the metrics. */
static void count_answer(const struct op *op, vd_status status)
{
	static const enum vdi_storage_operation writes[] = { [OP_CREATE] = VDI_OPERATION_CREATE,
							     [OP_UPDATE] = VDI_OPERATION_UPDATE,
							     [OP_DELETE] = VDI_OPERATION_DELETE };

	if (op->step != STEP_LEASE)
		vdi_storage_metrics_request(op->storage->metrics,
					    op->step == STEP_WRITE ? writes[op->kind] : VDI_OPERATION_GET,
					    op->issued, status);
}

/* Decodes the record into op->current; false: the operation has ended. */
static bool take_state(struct op *op, struct vd_kv *kv)
{
	struct vd_object *object = NULL;

	if (kv) {
		struct vd_error error = { 0 };
		vd_status	status = vd_object_new(op->storage->codec, kv, &object, &error);

		if (status != VD_OK) {
			char inner[sizeof error.message];

			snprintf(inner, sizeof inner, "%s", error.message);
			if (status != VD_NOMEM)
				vdi_storage_metrics_undecodable(op->storage->metrics);
			if (status == VD_UNDECODABLE)
				vd_error_set(
					&op->error, VD_UNDECODABLE,
					"Internal error occurred: object not decodable revision=%lld: %.250s",
					(long long) kv->mod_rev, inner);
			else
				op->error = error;
			op_finish(op, status);
			return false;
		}
	}
	set_current(op, object);
	op->stale_possible = false;
	return true;
}

static void on_range(void *arg, vd_status status, const struct vd_range_result *result,
		     const struct vd_error *error)
{
	struct op *op = arg;

	count_answer(op, status);
	if (status != VD_OK) {
		op_finish_error(op, status, error);
	} else if (op->minimum > result->store_revision) {
		vd_error_set(&op->error, VD_TOO_LARGE_REVISION,
			     "Too large resource version: %lld, current: %lld", (long long) op->minimum,
			     (long long) result->store_revision);
		op->error.requested = op->minimum;
		op->error.current = result->store_revision;
		op_finish(op, VD_TOO_LARGE_REVISION);
	} else if (take_state(op, result->kv_count ? result->kvs[0] : NULL)) {
		op->revision = result->store_revision;
		op->step = STEP_DECIDE;
	}
	op_meet(op);
}

/* A grant has completed or failed: operations that wait for it continue, and check the lease again. */
static void wake_lease_waiters(struct vdi_storage *storage)
{
	struct op *waiters;

	vdi_lock_acquire(&storage->lease_lock);
	storage->lease_asked = false;
	waiters = storage->lease_waiters;
	storage->lease_waiters = NULL;
	vdi_lock_release(&storage->lease_lock);
	while (waiters) {
		struct op *op = waiters;

		waiters = op->lease_next;
		op_meet(op);
	}
}

static void on_lease(void *arg, vd_status status, const struct vd_lease_result *result,
		     const struct vd_error *error)
{
	struct op	   *op = arg;
	struct vdi_storage *storage = op->storage;

	if (status != VD_OK) {
		op_finish_error(op, status, error);
	} else {
		uint64_t uses;

		op->lease = result->id;
		vdi_lock_acquire(&storage->lease_lock);
		uses = (uint64_t) storage->lease_uses;
		storage->lease_id = result->id;
		/* Count from before the request, because the store may have granted it at once. */
		storage->lease_expiry = vd_mono_add(op->lease_asked_at, VD_SECONDS(result->ttl_s));
		storage->lease_uses = 1;
		vdi_lock_release(&storage->lease_lock);
		vdi_storage_metrics_lease(storage->metrics, uses);
		op->step = STEP_WRITE;
	}
	wake_lease_waiters(storage);
	op_meet(op);
}

/* Handles the loss of a reused lease (revoked, or missing after the store was restored): requests another
 * one, once. */
static bool lease_was_lost(struct op *op, vd_status status)
{
	struct vdi_storage *storage = op->storage;

	if (status != VD_LEASE_NOT_FOUND || op->lease == 0 || op->lease_was_gone)
		return false;
	vdi_lock_acquire(&storage->lease_lock);
	if (storage->lease_id == op->lease)
		storage->lease_id = 0;
	vdi_lock_release(&storage->lease_lock);
	op->lease_was_gone = true;
	op->lease = 0;
	op->step = STEP_LEASE;
	return true;
}

/* Stamps the written record with the transaction's result. The record shares nothing with the store, which
 * keeps its own copy. The object over it was made before the write, so that a completed write cannot fail
 * afterwards. */
static void stamp_wanted(struct op *op, vd_rev revision)
{
	struct vd_kv *kv = op->wanted;

	kv->mod_rev = revision;
	kv->create_rev = op->current ? vd_object_kv(op->current)->create_rev : revision;
	kv->version = op->current ? vd_object_kv(op->current)->version + 1 : 1;
	kv->lease = op->lease;
}

/* Rejects an object that does not belong to the key: it could not be found under either name, and watches of
 * its namespace would miss it. */
static vd_status check_name(struct op *op, const struct vd_object *object)
{
	struct vd_bytes namespace_name = vd_object_namespace(object), name = vd_object_name(object);
	char		buffer[VDI_STORAGE_KEY_MAX];
	struct vd_bytes key = VD_BYTES_NONE;

	if (vdi_storage_key(op->storage, namespace_name, name, buffer, &key, NULL) == VD_OK &&
	    vd_bytes_equal(key, op->key))
		return VD_OK;
	return vd_error_set(&op->error, VD_INVALID_ARGUMENT,
			    "metadata.namespace \"%.*s\" and metadata.name \"%.*s\" of the object do not "
			    "belong to its key %.*s",
			    (int) VDI_MIN(namespace_name.size, (size_t) 63),
			    (const char *) namespace_name.data, (int) VDI_MIN(name.size, (size_t) 100),
			    (const char *) name.data, (int) VDI_MIN(op->key.size, (size_t) 150),
			    (const char *) op->key.data);
}

/* Makes the record to write, and the object that is the result if the write succeeds. */
static vd_status set_wanted(struct op *op, struct vd_bytes value, int64_t ttl_s)
{
	struct vd_object *object = NULL;
	struct vd_kv	 *wanted = NULL;
	vd_status	  status;

	if (ttl_s < 0)
		return vd_error_set(&op->error, VD_INVALID_ARGUMENT,
				    "the time to live is %lld s, must be 0 (none) or more",
				    (long long) ttl_s);
	if (value.size && value.data == NULL)
		return vd_error_set(&op->error, VD_INVALID_ARGUMENT, "value.data is NULL but its size is %zu",
				    value.size);
	VDI_TRY(vdi_revision_cut_kv(op->storage->codec, op->key, value, op->kind == OP_CREATE, &wanted,
				    &op->error));
	status = vd_object_new(op->storage->codec, wanted, &object, &op->error);
	if (status == VD_OK)
		status = check_name(op, object);
	if (status != VD_OK) {
		vd_object_unref(object);
		vd_kv_unref(wanted);
		return status;
	}
	vd_kv_unref(op->wanted);
	vd_object_unref(op->wanted_object);
	op->wanted = wanted;
	op->wanted_object = object;
	op->ttl_s = ttl_s;
	return VD_OK;
}

static void on_written(struct op *op, const struct vd_txn_result *result)
{
	op->revision = result->revision;
	if (op->kind == OP_DELETE) {
		op->result = vd_object_ref(op->current);
		op_finish(op, VD_OK);
		return;
	}
	stamp_wanted(op, result->revision);
	op->result = vd_object_ref(op->wanted_object);
	op_finish(op, VD_OK);
}

static void on_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		   const struct vd_error *error)
{
	struct op *op = arg;

	count_answer(op, status);
	if (lease_was_lost(op, status)) {
		/* retried with another lease */
	} else if (status != VD_OK) {
		op_finish_error(op, status, error);
	} else if (result->succeeded) {
		on_written(op, result);
	} else if (op->kind == OP_CREATE && op->guard && result->results[0].range.count == 0) {
		op_finish(op, storage_error(&op->error, VD_CONFLICT, vd_object_key(op->guard),
					    vd_object_revision(op->guard), NULL));
	} else if (op->kind == OP_CREATE) {
		op_finish(op, storage_error(&op->error, VD_EXISTS, op->key, 0, NULL));
	} else {
		const struct vd_range_result *range = &result->results[0].range;

		/* Another client wrote the object: continue with its state. */
		if (take_state(op, range->kv_count ? range->kvs[0] : NULL)) {
			op->revision = result->revision;
			op->step = STEP_DECIDE;
		}
	}
	op_meet(op);
}

/* ---- Decisions ---- */

static vd_status check_preconditions(struct op *op)
{
	char			    inner[256], revision[24];
	struct vd_object_attributes attributes = { 0 };
	struct vd_kv		   *kv;
	bool			    equal;

	if (op->current == NULL)
		return VD_OK; /* a missing object has no metadata to compare; the callers handle it */
	kv = vd_object_kv(op->current);
	if (op->uid) {
		VDI_TRY(op->storage->codec->ops->inspect(op->storage->codec, vd_kv_value(kv), &attributes,
							 &op->error));
		equal = vd_bytes_equal(attributes.uid, vd_bytes_of(op->uid));
		snprintf(inner, sizeof inner,
			 "Precondition failed: UID in precondition: %.64s, UID in object meta: %.*s", op->uid,
			 (int) VDI_MIN(attributes.uid.size, (size_t) 64), (const char *) attributes.uid.data);
		vd_codec_release(op->storage->codec, &attributes);
		if (!equal)
			return storage_error(&op->error, VD_PRECONDITION, op->key, 0, inner);
	}
	if (op->precondition_revision) {
		snprintf(revision, sizeof revision, "%lld", (long long) kv->mod_rev);
		if (strcmp(revision, op->precondition_revision) != 0) {
			snprintf(inner, sizeof inner,
				 "Precondition failed: ResourceVersion in precondition: %.64s, "
				 "ResourceVersion in object meta: %s",
				 op->precondition_revision, revision);
			return storage_error(&op->error, VD_PRECONDITION, op->key, 0, inner);
		}
	}
	return VD_OK;
}

static vd_status call_update(struct op *op)
{
	struct vd_bytes value = VD_BYTES_NONE;
	int64_t		ttl_s = 0;

	VDI_TRY(op->update(op->arg, op->current, &value, &ttl_s, &op->error));
	VDI_TRY(set_wanted(op, value, ttl_s));
	op->lease = 0;
	return VD_OK;
}

/* Repeats a failed decision on fresh state if the state may be stale. If the fresh state is the same, the
 * first error is returned. */
static void decide_failed(struct op *op, vd_status status)
{
	if (!op->stale_possible) {
		if (op->error.code != status)
			vd_error_set(&op->error, status, "%s", vd_status_sentence(status));
		op_finish(op, status);
		return;
	}
	op->first_status = status;
	op->first_error = op->error;
	op->first_revision = op->current ? vd_object_revision(op->current) : 0;
	memset(&op->error, 0, sizeof op->error);
	op->step = STEP_READ;
}

static bool first_decision_stands(struct op *op)
{
	vd_status status = op->first_status;

	if (status == VD_OK || op->stale_possible || op->current == NULL)
		return false;
	op->first_status = VD_OK;
	if (vd_object_revision(op->current) != op->first_revision)
		return false;
	op->error = op->first_error;
	op_finish(op, status);
	return true;
}

static void decide_update(struct op *op)
{
	vd_status status;

	if (first_decision_stands(op))
		return;
	if (op->current == NULL && !op->create_missing) {
		op_finish(op, storage_error(&op->error, VD_NOT_FOUND, op->key, 0, NULL));
		return;
	}
	status = check_preconditions(op);
	if (status == VD_OK)
		status = call_update(op);
	if (status != VD_OK) {
		decide_failed(op, status);
		return;
	}
	if (op->current && op->ttl_s == 0 && vd_object_kv(op->current)->lease == 0 &&
	    !vd_object_kv(op->current)->is_stale &&
	    vd_bytes_equal(vd_kv_value(op->wanted), vd_kv_value(vd_object_kv(op->current)))) {
		if (op->stale_possible) {
			op->step = STEP_READ;
			return;
		}
		/* As upstream, no write: the revision does not change. */
		op->result = vd_object_ref(op->current);
		op->revision = vd_object_revision(op->current);
		op_finish(op, VD_OK);
		return;
	}
	op->step = op->ttl_s ? STEP_LEASE : STEP_WRITE;
}

static void decide_delete(struct op *op)
{
	vd_status status;

	if (first_decision_stands(op))
		return;
	if (op->current == NULL) {
		op_finish(op, storage_error(&op->error, VD_NOT_FOUND, op->key, 0, NULL));
		return;
	}
	status = check_preconditions(op);
	if (status == VD_OK && op->validate)
		status = op->validate(op->arg, op->current, &op->error);
	if (status != VD_OK) {
		decide_failed(op, status);
		return;
	}
	op->step = STEP_WRITE;
}

static void decide(struct op *op)
{
	switch (op->kind) {
	case OP_GET:
		if (op->current) {
			op->result = vd_object_ref(op->current);
			op_finish(op, VD_OK);
		} else {
			op_finish(op, storage_error(&op->error, VD_NOT_FOUND, op->key, 0, NULL));
		}
		break;
	case OP_UPDATE: decide_update(op); break;
	case OP_DELETE: decide_delete(op); break;
	default: VDI_UNREACHABLE("no decision for this kind of operation");
	}
}

/* ---- Issuing ---- */

static vd_status issue_write(struct op *op)
{
	struct vd_compare     compares[2] = { {
		    .target = VD_COMPARE_MOD,
		    .result = VD_COMPARE_EQUAL,
		    .key = op->key,
		    .number = op->current ? vd_object_revision(op->current) : 0,
	    } };
	struct vd_op	      write = { .kind = op->kind == OP_DELETE ? VD_OP_DELETE : VD_OP_PUT,
					.key = op->key,
					.lease = op->lease };
	struct vd_op	      look = { .kind = VD_OP_RANGE, .range = { .key = op->key, .limit = 1 } };
	struct vd_txn_request request = {
		.compares = compares,
		.compare_count = 1,
		.success = &write,
		.success_count = 1,
		.failure = &look,
		.failure_count = op->kind == OP_CREATE && op->guard == NULL ? 0 : 1,
	};

	if (op->guard) {
		compares[1] = (struct vd_compare) { .target = VD_COMPARE_MOD,
						    .result = VD_COMPARE_EQUAL,
						    .key = vd_object_key(op->guard),
						    .number = vd_object_revision(op->guard) };
		request.compare_count = 2;
	}
	look.range.count_only = op->kind == OP_CREATE;
	if (op->wanted)
		write.value = vd_kv_value(op->wanted);
	return vd_store_txn(op->storage->store, &request, on_txn, op);
}

/* Returns extra seconds that let later writes reuse the lease: min(60 s, 5 %). */
static int64_t lease_extra_s(int64_t ttl_s)
{
	return VDI_MIN(ttl_s / 20, (int64_t) 60);
}

/* Reuses the last lease as kubernetes/apiserver pkg/storage/etcd3/lease_manager.go does. (It is also reused
 * if no time has passed since the grant, which does not happen with a real clock.) */
static bool reuse_lease(struct op *op)
{
	struct vdi_storage *storage = op->storage;
	int64_t		    now_ns = vd_env_now(storage->env).ns;
	int64_t		    least_ns = now_ns + VD_SECONDS(op->ttl_s).ns;
	int64_t		    most_ns = least_ns + VD_SECONDS(lease_extra_s(op->ttl_s)).ns;
	bool		    reused;

	vdi_lock_acquire(&storage->lease_lock);
	reused = storage->lease_id && least_ns < storage->lease_expiry.ns &&
		 storage->lease_expiry.ns <= most_ns && storage->lease_uses < LEASE_USES_MAX;
	storage->lease_uses++;
	if (reused)
		op->lease = storage->lease_id;
	vdi_lock_release(&storage->lease_lock);
	return reused;
}

/* Requests a lease, one at a time: a write that arrives meanwhile can most likely use the same one. */
static vd_status issue_lease(struct op *op)
{
	struct vdi_storage *storage = op->storage;
	bool		    is_asked;
	vd_status	    status;

	vdi_lock_acquire(&storage->lease_lock);
	is_asked = storage->lease_asked;
	if (is_asked) {
		op->lease_next = storage->lease_waiters;
		storage->lease_waiters = op;
	}
	storage->lease_asked = true;
	vdi_lock_release(&storage->lease_lock);
	if (is_asked)
		return VD_OK;
	op->lease_asked_at = vd_env_now(storage->env);
	status = vd_store_lease_grant(storage->store, 0, op->ttl_s + lease_extra_s(op->ttl_s), on_lease, op);
	if (status != VD_OK)
		wake_lease_waiters(storage);
	return status;
}

static vd_status issue(struct op *op)
{
	struct vd_range_request range = { .key = op->key, .limit = 1 };

	switch (op->step) {
	case STEP_READ: return vd_store_range(op->storage->store, &range, on_range, op);
	case STEP_LEASE: return issue_lease(op);
	case STEP_WRITE: return issue_write(op);
	default: VDI_UNREACHABLE("step without a request");
	}
}

static void op_answer(struct op *op)
{
	op->done(op->arg, op->status, op->status == VD_OK ? op->result : NULL, op->revision,
		 op->status == VD_OK ? NULL : &op->error);
	op_free(op);
}

static void op_run(struct op *op)
{
	for (;;) {
		vd_status status;

		if (op->step == STEP_DECIDE) {
			decide(op);
			continue;
		}
		if (op->step == STEP_DONE) {
			op_answer(op);
			return;
		}
		if (op->step == STEP_LEASE && reuse_lease(op)) {
			op->step = STEP_WRITE;
			continue;
		}
		__atomic_store_n(&op->arrived, 0, __ATOMIC_RELAXED);
		op->issued = vd_env_now(op->storage->env);
		status = issue(op);
		if (status != VD_OK) {
			count_answer(op, status);
			op_finish_error(op, status, NULL);
			continue;
		}
		if (__atomic_add_fetch(&op->arrived, 1, __ATOMIC_ACQ_REL) != 2)
			return; /* the callback continues */
	}
}

/* Starts the operation. All results, including failure of the first request, are reported through the
 * callback. */
static vd_status op_start(struct op *op)
{
	op_run(op);
	return VD_OK;
}

static vd_status set_preconditions(struct op *op, const struct vd_preconditions *preconditions)
{
	if (preconditions && preconditions->uid.size) {
		op->uid = vdi_strndup(preconditions->uid.data, preconditions->uid.size);
		if (op->uid == NULL)
			return VD_NOMEM;
	}
	if (preconditions && preconditions->revision.size) {
		op->precondition_revision =
			vdi_strndup(preconditions->revision.data, preconditions->revision.size);
		if (op->precondition_revision == NULL)
			return VD_NOMEM;
	}
	return VD_OK;
}

static struct op *op_new_call(struct vdi_storage *storage, enum op_kind kind, struct vd_bytes key,
			      struct vd_object *suggestion, vd_object_fn done, void *arg)
{
	struct op *op = op_new(storage, kind, key);

	if (op == NULL)
		return NULL;
	op->done = done;
	op->arg = arg;
	op->step = STEP_READ;
	if (suggestion) {
		op->current = vd_object_ref(suggestion);
		op->stale_possible = true;
		op->step = STEP_DECIDE;
	}
	return op;
}

vd_status vdi_storage_get(struct vdi_storage *storage, struct vd_bytes key, vd_rev minimum, vd_object_fn done,
			  void *arg)
{
	struct op *op = op_new_call(storage, OP_GET, key, NULL, done, arg);

	if (op == NULL)
		return VD_NOMEM;
	op->minimum = minimum;
	return op_start(op);
}

vd_status vdi_storage_create(struct vdi_storage *storage, struct vd_bytes key, struct vd_bytes value,
			     int64_t ttl_s, vd_object_fn done, void *arg)
{
	return vdi_storage_create_beside(storage, NULL, key, value, ttl_s, done, arg);
}

vd_status vdi_storage_create_beside(struct vdi_storage *storage, struct vd_object *guard, struct vd_bytes key,
				    struct vd_bytes value, int64_t ttl_s, vd_object_fn done, void *arg)
{
	struct op *op = op_new_call(storage, OP_CREATE, key, NULL, done, arg);
	vd_status  status;

	if (op == NULL)
		return VD_NOMEM;
	status = set_wanted(op, value, ttl_s);
	if (status == VD_NOMEM) {
		op_free(op);
		return status;
	}
	op->guard = guard ? vd_object_ref(guard) : NULL;
	op->step = ttl_s ? STEP_LEASE : STEP_WRITE;
	if (status != VD_OK)
		op_finish(op, status);
	return op_start(op);
}

vd_status vdi_storage_update(struct vdi_storage *storage, struct vd_bytes key, bool create_missing,
			     const struct vd_preconditions *preconditions, struct vd_object *suggestion,
			     vd_update_fn update, vd_object_fn done, void *arg)
{
	struct op *op = op_new_call(storage, OP_UPDATE, key, suggestion, done, arg);

	if (op == NULL || set_preconditions(op, preconditions) != VD_OK) {
		if (op)
			op_free(op);
		return VD_NOMEM;
	}
	op->create_missing = create_missing;
	op->update = update;
	return op_start(op);
}

vd_status vdi_storage_delete(struct vdi_storage *storage, struct vd_bytes key,
			     const struct vd_preconditions *preconditions, struct vd_object *suggestion,
			     vd_validate_fn validate, vd_object_fn done, void *arg)
{
	struct op *op = op_new_call(storage, OP_DELETE, key, suggestion, done, arg);

	if (op == NULL || set_preconditions(op, preconditions) != VD_OK) {
		if (op)
			op_free(op);
		return VD_NOMEM;
	}
	op->validate = validate;
	return op_start(op);
}
