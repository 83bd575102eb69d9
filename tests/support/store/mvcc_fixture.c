#include "mvcc_fixture.h"

#include "actor_sim.h"

struct vd_env *mvcc_env_new(void)
{
	struct vd_env *env = NULL;

	assert_status(vdi_env_new_sim(5, NULL, NULL, &env), VD_OK);
	return env;
}

struct vd_store *mvcc_store_new(struct vd_env *env, const struct vd_mvcc_options *options)
{
	struct vd_store *store = NULL;

	assert_status(vd_store_open_mvcc(env, options, &store, NULL), VD_OK);
	return store;
}

void mvcc_got_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		  const struct vd_error *error)
{
	struct mvcc_call *call = arg;

	assert_true((status == VD_OK) == (result != NULL));
	assert_true((status == VD_OK) == (error == NULL));
	call->answers++;
	call->status = status;
	if (result) {
		call->revision = result->revision;
		call->succeeded = result->succeeded;
	}
}

void mvcc_got_done(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	struct mvcc_call *call = arg;

	(void) error;
	call->answers++;
	call->status = status;
	call->revision = revision;
}

void mvcc_got_lease(void *arg, vd_status status, const struct vd_lease_result *result,
		    const struct vd_error *error)
{
	struct mvcc_call *call = arg;

	(void) error;
	call->answers++;
	call->status = status;
	if (result)
		call->revision = result->revision;
}

vd_status mvcc_submit_put(struct vd_store *store, const char *key, const char *value, struct mvcc_call *call)
{
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = K(key), .value = K(value) };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };

	memset(call, 0, sizeof *call);
	return vd_store_txn(store, &request, mvcc_got_txn, call);
}

void mvcc_put(struct vd_store *store, const char *key, const char *value)
{
	assert_status(vd_store_put_wait(store, K(key), K(value), NULL, NULL), VD_OK);
}

void mvcc_got_text(void *arg, vd_status status, const struct vd_range_result *result,
		   const struct vd_error *error)
{
	struct mvcc_text *text = arg;

	(void) error;
	assert_status(status, VD_OK);
	text->revision = result->store_revision;
	for (size_t i = 0; i < result->kv_count; i++) {
		struct vd_bytes key = vd_kv_key(result->kvs[i]);
		struct vd_bytes value = vd_kv_value(result->kvs[i]);

		text->size += (size_t) snprintf(text->bytes + text->size, sizeof text->bytes - text->size,
						"%s%.*s=%.*s@%d/%d", i ? " " : "", (int) key.size,
						(const char *) key.data, (int) value.size,
						(const char *) value.data, (int) result->kvs[i]->mod_rev,
						(int) result->kvs[i]->lease);
	}
}

struct mvcc_text mvcc_all_text(struct vd_store *store, vd_rev revision)
{
	struct vd_range_request request = { .key = ZERO_END, .range_end = ZERO_END, .revision = revision };
	struct mvcc_text	text = { 0 };

	assert_status(vd_store_range(store, &request, mvcc_got_text, &text), VD_OK);
	return text;
}

struct vd_store_status mvcc_status_of(struct vd_store *store)
{
	struct vd_store_status status;

	assert_status(vd_store_status_get(store, &status), VD_OK);
	return status;
}

void mvcc_count_ready(void *arg)
{
	++*(int *) arg;
}
