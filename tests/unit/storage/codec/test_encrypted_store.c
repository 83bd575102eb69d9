/* Unit tests of storage/codec/encrypted_store.c and value_cipher.c: what lies in the inner store, what
 * readers get, and what is refused. */
#include "vdtest.h"

#include <vedette/encryption.h>

#include "actor_sim.h"
#include "base64.h"
#include "buffer.h"
#include "env.h"
#include "metrics.h"
#include "part_store.h"
#include "storage.h"
#include "value_cipher.h"

#define K(text) vd_bytes_of(text)
#define SECRET "/registry/secrets/a/b"
#define NEW_KEY                                                                                              \
	{                                                                                                    \
		{ "new", 3 },                                                                                \
		{                                                                                            \
			"0123456789abcdef0123456789abcdef", 32                                               \
		}                                                                                            \
	}
#define OLD_KEY                                                                                              \
	{                                                                                                    \
		{ "old", 3 },                                                                                \
		{                                                                                            \
			"fedcba9876543210", 16                                                               \
		}                                                                                            \
	}
#define GCM_HEAD "k8s:enc:aesgcm:v1:"

struct world {
	struct vd_env	*env;
	struct vd_store *inner, *store;
};

static vd_status open_encrypted(struct world *world, const struct vd_encryption_rule *rules, size_t count)
{
	return vd_store_open_encrypted(world->env, world->inner, rules, count, &world->store, NULL);
}

static void world_init(struct world *world)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	options.history_window = (vd_dur) { 0 };
	assert_status(vdi_env_new_sim(1, NULL, NULL, &world->env), VD_OK);
	assert_status(vd_store_open_mvcc(world->env, &options, &world->inner, NULL), VD_OK);
	world->store = NULL;
}

static void world_fini(struct world *world)
{
	vd_store_close_wait(world->store ? world->store : world->inner);
	vd_env_free(world->env);
}

static const struct vd_encryption_key  new_then_old[] = { NEW_KEY, OLD_KEY };
static const struct vd_encryption_rule secrets = { .prefix = { "/registry/secrets/", 18 },
						   .keys = new_then_old,
						   .key_count = 2 };

static void put(struct vd_store *store, const char *key, const char *value)
{
	assert_status(vd_store_put_wait(store, K(key), K(value), NULL, NULL), VD_OK);
}

/* The value at a store, until the next call. */
static const char *value_of(struct vd_store *store, const char *key)
{
	static char   text[512];
	struct vd_kv *kv;

	assert_status(vd_store_get_wait(store, K(key), &kv, NULL), VD_OK);
	snprintf(text, sizeof text, "%.*s", (int) kv->value_size, kv->data + kv->key_size);
	vd_kv_unref(kv);
	return text;
}

static bool is_stale(struct vd_store *store, const char *key)
{
	struct vd_kv *kv;
	bool	      stale;

	assert_status(vd_store_get_wait(store, K(key), &kv, NULL), VD_OK);
	stale = kv->is_stale;
	vd_kv_unref(kv);
	return stale;
}

static void r145_values_are_encrypted_at_rest(void **state)
{
	struct world world;

	(void) state;
	world_init(&world);
	assert_status(open_encrypted(&world, &secrets, 1), VD_OK);
	put(world.store, SECRET, "{\"a\":1}");
	put(world.store, "/registry/pods/a/b", "{\"a\":2}");
	assert_string_equal(value_of(world.store, SECRET), "{\"a\":1}");
	assert_false(is_stale(world.store, SECRET));
	assert_memory_equal(value_of(world.inner, SECRET), GCM_HEAD "new:", sizeof GCM_HEAD "new:" - 1);
	assert_null(strstr(value_of(world.inner, SECRET), "{\"a\""));
	assert_string_equal(value_of(world.inner, "/registry/pods/a/b"), "{\"a\":2}");
	world_fini(&world);
}

/* Made by another implementation of AES-256-GCM: nonce "abcdefghijkl", the key of the record
 * authenticated. */
static void r145_the_format_is_that_of_kubernetes(void **state)
{
	static const unsigned char sealed[] = { 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69,
						0x6a, 0x6b, 0x6c, 0x12, 0xee, 0xa8, 0x9d, 0xf1, 0xd4,
						0x10, 0x25, 0xe2, 0xa7, 0x24, 0x62, 0xf5, 0xa3, 0x69,
						0x34, 0x9e, 0x88, 0x5a, 0x8e, 0xe3, 0xbd, 0x4f };
	char			   value[sizeof GCM_HEAD + 4 + sizeof sealed];
	struct vd_bytes		   bytes = { value, sizeof GCM_HEAD - 1 + 4 + sizeof sealed };
	struct world		   world;

	(void) state;
	memcpy(value, GCM_HEAD "new:", sizeof GCM_HEAD + 4 - 1);
	memcpy(value + sizeof GCM_HEAD - 1 + 4, sealed, sizeof sealed);
	world_init(&world);
	assert_status(open_encrypted(&world, &secrets, 1), VD_OK);
	assert_status(vd_store_put_wait(world.inner, K(SECRET), bytes, NULL, NULL), VD_OK);
	assert_string_equal(value_of(world.store, SECRET), "{\"a\":1}");
	/* Under another key it is another record's: refused. */
	assert_status(vd_store_put_wait(world.inner, K("/registry/secrets/a/c"), bytes, NULL, NULL), VD_OK);
	assert_memory_equal(value_of(world.store, "/registry/secrets/a/c"), GCM_HEAD, sizeof GCM_HEAD - 1);
	world_fini(&world);
}

/* A value that cannot be decrypted is returned as it is stored, byte by byte; one without the mark of
 * encryption is replaced by a notice. No part of either is taken for plaintext. */
static void expect_refused(struct world *world, struct vd_bytes value)
{
	struct vd_bytes expected = vd_bytes_has_prefix(value, K("k8s:enc:")) ?
					   value :
					   K("(vedette: this value is not encrypted)");
	struct vd_kv   *kv;

	assert_status(vd_store_put_wait(world->inner, K(SECRET), value, NULL, NULL), VD_OK);
	assert_status(vd_store_get_wait(world->store, K(SECRET), &kv, NULL), VD_OK);
	assert_true(vd_bytes_equal(vd_kv_value(kv), expected));
	vd_kv_unref(kv);
}

static void any_changed_byte_is_refused(void **state)
{
	struct world  world;
	struct vd_kv *kv;
	char	      value[256];

	(void) state;
	world_init(&world);
	assert_status(open_encrypted(&world, &secrets, 1), VD_OK);
	put(world.store, SECRET, "{\"a\":1}");
	assert_status(vd_store_get_wait(world.inner, K(SECRET), &kv, NULL), VD_OK);
	assert_in_range(kv->value_size, 40, sizeof value);
	for (size_t i = 0; i < kv->value_size; i++) {
		memcpy(value, kv->data + kv->key_size, kv->value_size);
		value[i] = (char) (value[i] ^ 1);
		expect_refused(&world, (struct vd_bytes) { value, kv->value_size });
	}
	for (size_t size = 1; size < kv->value_size; size++) {
		expect_refused(&world, (struct vd_bytes) { kv->data + kv->key_size, size });
	}
	vd_kv_unref(kv);
	world_fini(&world);
}

static double transformations(struct world *world, const char *labels)
{
	struct vdi_buffer page;
	const char	 *line;
	double		  value;
	char		  start[128];

	(void) snprintf(start, sizeof start, "apiserver_storage_transformation_operations_total{%s} ",
			labels);
	vdi_buffer_init(&page, SIZE_MAX);
	assert_status(vdi_metrics_render(vdi_env_metrics(world->env), &page), VD_OK);
	vdi_buffer_append_char(&page, 0);
	line = strstr(vdi_buffer_bytes(&page).data, start);
	value = line ? atof(line + strlen(start)) : -1;
	vdi_buffer_fini(&page);
	return value;
}

/* What is encrypted, decrypted and refused is counted, what no rule covers is not. */
static void r145_transformations_are_counted(void **state)
{
	static const char read[] = "status=\"OK\",transformation_type=\"from_storage\"",
			  failed[] = "status=\"Internal\",transformation_type=\"from_storage\"",
			  written[] = "status=\"OK\",transformation_type=\"to_storage\"";
	struct world world;

	(void) state;
	world_init(&world);
	assert_status(open_encrypted(&world, &secrets, 1), VD_OK);
	put(world.store, "/registry/pods/a/b", "{}");
	(void) value_of(world.store, "/registry/pods/a/b");
	assert_true(transformations(&world, read) <= 0 && transformations(&world, written) <= 0);
	put(world.store, SECRET, "{}");
	assert_true(transformations(&world, read) <= 0 && transformations(&world, written) == 1);
	(void) value_of(world.store, SECRET);
	(void) value_of(world.store, SECRET);
	assert_true(transformations(&world, read) == 2 && transformations(&world, written) == 1);
	assert_true(transformations(&world, failed) <= 0);
	put(world.inner, SECRET, "{}"); /* not encrypted: refused */
	(void) value_of(world.store, SECRET);
	assert_true(transformations(&world, failed) == 1);
	assert_true(transformations(&world, read) == 2 && transformations(&world, written) == 1);
	world_fini(&world);
}

/* Keys rotate, and encryption is phased in and out. */
static void stale_values_are_told(void **state)
{
	static const struct vd_encryption_key old[] = { OLD_KEY };
	static const struct {
		struct vd_encryption_rule rule;
		const char		 *written; /* how a value begins that is written through it */
		bool			  reads_plain, reads_old, reads_new;
		bool			  plain_is_stale, old_is_stale, new_is_stale;
	} rows[] = {
		{ { .keys = old, .key_count = 1 }, GCM_HEAD "old:", false, true, false, false, false, false },
		{ { .keys = new_then_old, .key_count = 2 },
		  GCM_HEAD "new:",
		  false,
		  true,
		  true,
		  false,
		  true,
		  false },
		{ { .keys = old, .key_count = 1, .reads_plain = true },
		  GCM_HEAD "old:",
		  true,
		  true,
		  false,
		  true,
		  false,
		  false },
		{ { .keys = new_then_old, .key_count = 2, .writes_plain = true },
		  "{",
		  true,
		  true,
		  true,
		  false,
		  true,
		  true },
		{ { .writes_plain = true, .reads_plain = true },
		  "{",
		  true,
		  false,
		  false,
		  false,
		  false,
		  false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		static const char *const keys[] = { "plain", "old", "new" };
		const bool reads[] = { rows[i].reads_plain, rows[i].reads_old, rows[i].reads_new };
		const bool stale[] = { rows[i].plain_is_stale, rows[i].old_is_stale, rows[i].new_is_stale };
		const struct vd_encryption_rule with_old = { .keys = old, .key_count = 1 },
						with_new = { .keys = new_then_old, .key_count = 1 };
		struct vdi_value_cipher *cipher;
		struct world		 world;

		world_init(&world);
		put(world.inner, "plain", "{}");
		for (size_t j = 1; j < 3; j++) {
			char   room[VDI_CIPHER_OVERHEAD + 2];
			size_t size;

			assert_status(vdi_value_cipher_new(j == 1 ? &with_old : &with_new, 1, &cipher, NULL),
				      VD_OK);
			assert_status(vdi_value_cipher_encrypt(cipher, K(keys[j]), K("{}"), room, &size),
				      VD_OK);
			vdi_value_cipher_unref(cipher);
			assert_status(vd_store_put_wait(world.inner, K(keys[j]),
							(struct vd_bytes) { room, size }, NULL, NULL),
				      VD_OK);
		}
		assert_status(open_encrypted(&world, &rows[i].rule, 1), VD_OK);
		for (size_t j = 0; j < 3; j++) {
			if ((strcmp(value_of(world.store, keys[j]), "{}") == 0) != reads[j])
				fail_msg("row %zu: %s is %s", i, keys[j], value_of(world.store, keys[j]));
			if (reads[j] && is_stale(world.store, keys[j]) != stale[j])
				fail_msg("row %zu: %s is %sstale", i, keys[j], stale[j] ? "not " : "");
		}
		put(world.store, "written", "{}");
		assert_memory_equal(value_of(world.inner, "written"), rows[i].written,
				    strlen(rows[i].written));
		world_fini(&world);
	}
}

static void no_ready(void *arg)
{
	(void) arg;
}

static void watches_show_plain_values_and_previous_ones(void **state)
{
	struct vd_store_watch_request request = { .key = K("/registry/"),
						  .range_end = K("/registry0"),
						  .start_revision = 2,
						  .previous = true,
						  .ready = no_ready };
	struct vd_store_watch	     *watch;
	struct vd_store_batch	      batch;
	struct world		      world;

	(void) state;
	world_init(&world);
	assert_status(open_encrypted(&world, &secrets, 1), VD_OK);
	put(world.store, SECRET, "one");
	put(world.store, SECRET, "two");
	put(world.store, "/registry/pods/a/b", "pod");
	assert_status(vd_store_delete_wait(world.store, K(SECRET), VD_BYTES_NONE, NULL, NULL, NULL), VD_OK);
	assert_status(vd_store_watch_open(world.store, &request, &watch, NULL), VD_OK);
	assert_status(vd_store_watch_next(watch, 100, &batch, NULL), VD_OK);
	assert_int_equal(batch.event_count, 4);
	assert_true(vd_bytes_equal(vd_kv_value(batch.events[0].kv), K("one")));
	assert_null(batch.events[0].previous);
	assert_true(vd_bytes_equal(vd_kv_value(batch.events[1].kv), K("two")));
	assert_true(vd_bytes_equal(vd_kv_value(batch.events[1].previous), K("one")));
	assert_true(vd_bytes_equal(vd_kv_value(batch.events[2].kv), K("pod")));
	assert_true(batch.events[3].is_delete && batch.events[3].kv->value_size == 0);
	assert_true(vd_bytes_equal(vd_kv_value(batch.events[3].previous), K("two")));
	vd_store_watch_close(watch);
	world_fini(&world);
}

/* A long read gives plain values in each of its parts; one that no rule covers is the inner store's. */
static void long_reads_show_plain_values(void **state)
{
	struct part_options	       options = { .part_len = 2 };
	struct vd_store_stream_request request = {
		.range = { .key = K("/registry/"), .range_end = K("/registry0") }, .ready = no_ready
	};
	struct vd_store_stream *stream;
	struct vd_store_part	part;
	struct vd_error		error = { 0 };
	struct vd_store	       *mvcc, *parts;
	struct world		world;

	(void) state;
	world_init(&world);
	mvcc = world.inner;
	parts = world.inner = part_store_new(world.env, mvcc, &options);
	assert_status(open_encrypted(&world, &secrets, 1), VD_OK);
	put(world.store, "/registry/pods/a/b", "pod");
	put(world.store, SECRET, "one");
	put(world.store, "/registry/secrets/a/c", "two");
	assert_status(vd_store_stream_open(world.store, &request, &stream), VD_OK);
	assert_status(vd_store_stream_next(stream, &part, NULL), VD_OK);
	assert_int_equal(part.kv_count, 2);
	assert_int_equal(part.read_revision, 4);
	assert_false(part.last);
	assert_true(vd_bytes_equal(vd_kv_value(part.kvs[0]), K("pod")));
	assert_true(vd_bytes_equal(vd_kv_value(part.kvs[1]), K("one")));
	assert_int_equal(part.kvs[1]->mod_rev, 3);
	assert_int_equal(part.kvs[1]->create_rev, 3);
	assert_int_equal(part.kvs[1]->version, 1);
	assert_status(vd_store_stream_next(stream, &part, NULL), VD_OK);
	assert_int_equal(part.kv_count, 1);
	assert_true(part.last);
	assert_true(vd_bytes_equal(vd_kv_value(part.kvs[0]), K("two")));
	assert_status(vd_store_stream_next(stream, &part, NULL), VD_CLOSED);
	vd_store_stream_close(stream);
	/* Memory: the answer says so, and the inner store's part is gone. */
	assert_status(vd_store_stream_open(world.store, &request, &stream), VD_OK);
	for (uint64_t nth = 1;; nth++) {
		vd_status status;
		bool	  failed;

		vdi_alloc_fail_nth(nth, 1);
		status = vd_store_stream_next(stream, &part, &error);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		if (!failed)
			break;
		assert_status(status, VD_NOMEM);
		assert_status(error.code, VD_NOMEM);
		vd_store_stream_close(stream);
		assert_status(vd_store_stream_open(world.store, &request, &stream), VD_OK);
	}
	vd_store_stream_close(stream);
	request.range =
		(struct vd_range_request) { .key = K("/registry/pods/"), .range_end = K("/registry/pods0") };
	assert_status(vd_store_stream_open(world.store, &request, &stream), VD_OK);
	assert_ptr_equal(stream->store, parts);
	vd_store_stream_close(stream);
	vd_store_close_wait(world.store);
	part_store_free(parts);
	vd_store_close_wait(mvcc);
	vd_env_free(world.env);
}

/* A long read that the inner store refuses is refused. */
static void long_reads_may_be_refused(void **state)
{
	struct part_options	       options = { .part_len = 2, .is_refused = true };
	struct vd_store_stream_request request = {
		.range = { .key = K("/registry/"), .range_end = K("/registry0") }, .ready = no_ready
	};
	struct vd_store_stream *stream = NULL;
	struct vd_store	       *mvcc, *parts;
	struct world		world;

	(void) state;
	world_init(&world);
	mvcc = world.inner;
	parts = world.inner = part_store_new(world.env, mvcc, &options);
	assert_status(open_encrypted(&world, &secrets, 1), VD_OK);
	assert_status(vd_store_stream_open(world.store, &request, &stream), VD_UNSUPPORTED);
	assert_null(stream);
	vd_store_close_wait(world.store);
	part_store_free(parts);
	vd_store_close_wait(mvcc);
	vd_env_free(world.env);
}

struct answered {
	bool	  is_answered;
	vd_status status;
	char	  text[512];
};

static void on_txn(void *arg, vd_status status, const struct vd_txn_result *result,
		   const struct vd_error *error)
{
	struct answered *answered = arg;

	(void) error;
	answered->is_answered = true;
	answered->status = status;
	if (status != VD_OK)
		return;
	for (size_t i = 0; i < result->result_count; i++) {
		const struct vd_op_result *one = result->results[i].kind == VD_OP_TXN ?
							 &result->results[i].txn->results[0] :
							 &result->results[i];
		const struct vd_kv	  *kv = one->kind == VD_OP_RANGE ? one->range.kvs[0] :
						one->previous_count	 ? one->previous[0] :
									   NULL;
		size_t			   size = strlen(answered->text);

		snprintf(answered->text + size, sizeof answered->text - size, "%s%.*s", size ? " " : "",
			 kv ? (int) kv->value_size : 1, kv ? kv->data + kv->key_size : "-");
	}
}

static void transactions_are_encrypted_at_every_depth(void **state)
{
	struct vd_op inner_ops[] = {
		{ .kind = VD_OP_PUT, .key = K("/registry/secrets/x/y"), .value = K("deep"), .previous = true }
	};
	struct vd_txn_request inner_txn = { .success = inner_ops, .success_count = 1 };
	struct vd_op ops[] = { { .kind = VD_OP_PUT, .key = K(SECRET), .value = K("two"), .previous = true },
			       { .kind = VD_OP_TXN, .txn = &inner_txn },
			       { .kind = VD_OP_RANGE, .range = { .key = K(SECRET) } } };
	struct vd_compare     compare = { VD_COMPARE_VALUE, VD_COMPARE_EQUAL, K(SECRET), VD_BYTES_NONE, 0,
					  K("two") };
	struct vd_txn_request request = { .success = ops, .success_count = 3 };
	struct answered	      answered = { 0 };
	struct world	      world;

	(void) state;
	world_init(&world);
	assert_status(open_encrypted(&world, &secrets, 1), VD_OK);
	put(world.store, SECRET, "one");
	put(world.store, "/registry/secrets/x/y", "before");
	assert_status(vd_store_txn(world.store, &request, on_txn, &answered), VD_OK);
	(void) vdi_sim_run_until_idle(world.env);
	assert_true(answered.is_answered);
	assert_status(answered.status, VD_OK);
	assert_string_equal(answered.text, "one before two");
	assert_memory_equal(value_of(world.inner, "/registry/secrets/x/y"), GCM_HEAD, sizeof GCM_HEAD - 1);
	request = (struct vd_txn_request) { .compares = &compare, .compare_count = 1 };
	assert_status(vd_store_txn(world.store, &request, on_txn, &answered), VD_UNSUPPORTED);
	world_fini(&world);
}

static void rules_are_checked(void **state)
{
	static const struct vd_encryption_key colon[] = { { { "a:b", 3 }, { "0123456789abcdef", 16 } } },
					      nameless[] = { { { "", 0 }, { "0123456789abcdef", 16 } } },
					      small[] = { { { "a", 1 }, { "0123456789abcde", 15 } } };
	const struct vd_encryption_rule rules[] = { { .keys = colon, .key_count = 1 },
						    { .keys = nameless, .key_count = 1 },
						    { .keys = small, .key_count = 1 },
						    { .key_count = 0 } };
	struct world			world;

	(void) state;
	world_init(&world);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rules); i++) {
		struct vd_error error = { 0 };

		assert_status(
			vd_store_open_encrypted(world.env, world.inner, &rules[i], 1, &world.store, &error),
			VD_INVALID_ARGUMENT);
		assert_true(strlen(error.message) > 20);
	}
	/* Each of what is needed. */
	assert_status(vd_store_open_encrypted(NULL, world.inner, &secrets, 1, &world.store, NULL),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_store_open_encrypted(world.env, NULL, &secrets, 1, &world.store, NULL),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_store_open_encrypted(world.env, world.inner, NULL, 1, &world.store, NULL),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_store_open_encrypted(world.env, world.inner, &secrets, 1, NULL, NULL),
		      VD_INVALID_ARGUMENT);
	assert_null(world.store);
	/* No rules at all: everything passes. */
	assert_status(vd_store_open_encrypted(world.env, world.inner, NULL, 0, &world.store, NULL), VD_OK);
	put(world.store, SECRET, "plain");
	assert_string_equal(value_of(world.inner, SECRET), "plain");
	world_fini(&world);
}

static bool live_through(uint64_t nth)
{
	struct vd_store_watch_request request = { .key = K("/registry/"),
						  .range_end = K("/registry0"),
						  .start_revision = 2,
						  .previous = true,
						  .ready = no_ready };
	struct vd_store_watch	     *watch = NULL;
	struct vd_store_batch	      batch;
	struct vd_kv		     *kv = NULL;
	struct world		      world;
	bool			      failed;

	world_init(&world);
	put(world.inner, "/registry/x", "1");
	vdi_alloc_fail_nth(nth, 1);
	if (open_encrypted(&world, &secrets, 1) == VD_OK &&
	    vd_store_put_wait(world.store, K(SECRET), K("one"), NULL, NULL) == VD_OK) {
		struct vd_error error = { 0 };
		vd_status	status = vd_store_get_wait(world.store, K(SECRET), &kv, &error);

		assert_status(error.code, status);
		if (status == VD_OK)
			assert_true(vd_bytes_equal(vd_kv_value(kv), K("one")));
		if (vd_store_watch_open(world.store, &request, &watch, NULL) == VD_OK &&
		    vd_store_watch_next(watch, 9, &batch, NULL) == VD_OK)
			assert_int_equal(batch.event_count, 2);
	}
	failed = vdi_alloc_failed();
	vdi_alloc_fail_nth(0, 0);
	vd_kv_unref(kv);
	vd_store_watch_close(watch);
	world_fini(&world);
	return failed;
}

static void every_allocation_may_fail(void **state)
{
	uint64_t nth;
	int64_t	 live;

	(void) state;
	(void) live_through(0);
	live = vdi_alloc_live();
	for (nth = 1; live_through(nth); nth++)
		assert_int_equal(vdi_alloc_live(), live);
	assert_true(nth > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r145_values_are_encrypted_at_rest),
		cmocka_unit_test(r145_the_format_is_that_of_kubernetes),
		cmocka_unit_test(any_changed_byte_is_refused),
		cmocka_unit_test(r145_transformations_are_counted),
		cmocka_unit_test(stale_values_are_told),
		cmocka_unit_test(watches_show_plain_values_and_previous_ones),
		cmocka_unit_test(long_reads_show_plain_values),
		cmocka_unit_test(long_reads_may_be_refused),
		cmocka_unit_test(transactions_are_encrypted_at_every_depth),
		cmocka_unit_test(rules_are_checked),
		cmocka_unit_test(every_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
