/* Unit tests of storage/kubernetes/storage.c: Kubernetes' operations over the embedded store, under the
 * simulator. */
#include "actor_sim.h"
#include "buffer.h"
#include "env.h"
#include "storage.h"
#include "storage_metrics.h"
#include "storage_world.h"
#include "store_chaos.h"
#include "vdtest.h"

/* rules, T-001, T-003 */
static void r128_create(void **state)
{
	struct storage_world  world = storage_world_new(1);
	struct storage_answer answer;

	(void) state;
	answer = storage_create(&world, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}}", 0);
	assert_status(answer.status, VD_REVISION_ON_CREATE);
	assert_string_equal(answer.error.message,
			    "resourceVersion should not be set on objects to be created");
	answer = storage_create(&world, STORAGE_VALUE("u", 1), 0);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.revision, 2);
	assert_int_equal(answer.object_revision, 2);
	assert_string_equal(answer.value, STORAGE_VALUE("u", 1));
	answer = storage_create(&world, STORAGE_VALUE("u", 2), 0);
	assert_status(answer.status, VD_EXISTS);
	assert_non_null(
		strstr(answer.error.message, "StorageError: key exists, Code: 2, Key: /registry/pods/ns/a"));
	answer = storage_create(&world, "not json", 0);
	assert_status(answer.status, VD_BAD_REQUEST);
	storage_world_free(&world);
}

/* A create that holds only while another object is as it was when it was looked at. */
/* An object whose names are not those of its key is refused; of long names people see a part. */
static void an_object_of_another_key_is_refused(void **state)
{
	static const char    long_form[] = "metadata.namespace \"%.63s\" and metadata.name \"%.100s\" of the "
					   "object do not belong to its key /registry/pods/ns/a";
	struct storage_world world = storage_world_new(16);
	char		     names[301], value[1024], expected[512];
	struct storage_answer answer;

	(void) state;
	answer = storage_create(&world, STORAGE_NAMED("b", "u", 1), 0);
	assert_status(answer.status, VD_INVALID_ARGUMENT);
	assert_string_equal(answer.error.message, "metadata.namespace \"ns\" and metadata.name \"b\" of the "
						  "object do not belong to its key /registry/pods/ns/a");
	answer = storage_create(&world, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"other\"}}", 0);
	assert_status(answer.status, VD_INVALID_ARGUMENT);
	for (size_t i = 0; i < sizeof names; i++)
		names[i] = (char) ('a' + i % 26);
	snprintf(value, sizeof value, "{\"metadata\":{\"name\":\"%.101s\",\"namespace\":\"%.64s\"}}", names,
		 names);
	answer = storage_create(&world, value, 0);
	assert_status(answer.status, VD_INVALID_ARGUMENT);
	snprintf(expected, sizeof expected, long_form, names, names);
	assert_string_equal(answer.error.message, expected);
	assert_status(storage_get(&world, 0).status, VD_NOT_FOUND);
	storage_world_free(&world);
}

static void r128_create_beside_a_guard(void **state)
{
	static const struct vd_bytes guard_key = { "/registry/pods/ns/guard", 23 };
	struct storage_world	     world = storage_world_new(1);
	struct vd_kv		    *kv = NULL;
	struct vd_object	    *guard = NULL;
	struct storage_answer	     answer = { 0 };

	(void) state;
	assert_status(vdi_storage_create(world.storage, guard_key,
					 vd_bytes_of(STORAGE_NAMED("guard", "g", 1)), 0, storage_on_object,
					 &answer),
		      VD_OK);
	storage_settle(&world, &answer);
	assert_status(vd_kv_new(guard_key, vd_bytes_of(STORAGE_NAMED("guard", "g", 1)), &kv), VD_OK);
	kv->mod_rev = answer.revision;
	assert_status(vd_object_new(world.codec, kv, &guard, NULL), VD_OK);
	for (int round = 0; round < 4; round++) {
		static const vd_status expected[] = { VD_OK, VD_EXISTS, VD_EXISTS, VD_CONFLICT };

		if (round == 2) { /* the guard changes: what exists is still said first */
			memset(&answer, 0, sizeof answer);
			assert_status(vdi_storage_delete(world.storage, guard_key, NULL, NULL, NULL,
							 storage_on_object, &answer),
				      VD_OK);
			storage_settle(&world, &answer);
			assert_status(answer.status, VD_OK);
		}
		if (round == 3) {
			memset(&answer, 0, sizeof answer);
			assert_status(vdi_storage_delete(world.storage, storage_key_a, NULL, NULL, NULL,
							 storage_on_object, &answer),
				      VD_OK);
			storage_settle(&world, &answer);
		}
		memset(&answer, 0, sizeof answer);
		assert_status(vdi_storage_create_beside(world.storage, guard, storage_key_a,
							vd_bytes_of(STORAGE_VALUE("u", 1)), 0,
							storage_on_object, &answer),
			      VD_OK);
		storage_settle(&world, &answer);
		assert_status(answer.status, expected[round]);
	}
	assert_status(storage_get(&world, 0).status, VD_NOT_FOUND);
	vd_object_unref(guard);
	vd_kv_unref(kv);
	storage_world_free(&world);
}

/* rules: R-113, T-004 */
static void r127_get(void **state)
{
	struct storage_world  world = storage_world_new(2);
	struct storage_answer answer = storage_get(&world, 0);

	(void) state;
	assert_status(answer.status, VD_NOT_FOUND);
	/* The revision is checked before the key is missed. */
	answer = storage_get(&world, 50);
	assert_status(answer.status, VD_TOO_LARGE_REVISION);
	assert_int_equal(answer.error.requested, 50);
	assert_int_equal(answer.error.current, 1);
	storage_create(&world, STORAGE_VALUE("u", 1), 0);
	for (vd_rev least = 0; least <= 2; least++) { /* none, a past one, the current one */
		answer = storage_get(&world, least);
		assert_status(answer.status, VD_OK);
		assert_int_equal(answer.object_revision, 2);
		assert_string_equal(answer.value, STORAGE_VALUE("u", 1));
	}
	storage_world_free(&world);
}

/* Of several faults the first in this order is answered: the store's error, the revision, the missing key,
 * the bytes. */
static void r127_the_order_of_a_gets_checks(void **state)
{
	const struct chaos_options refuse = { .refuse = 1000 };
	struct storage_world	   world = storage_world_new(13);
	struct storage_answer	   answer;

	(void) state;
	answer = storage_get(&world, 0);
	assert_status(answer.status, VD_NOT_FOUND);
	assert_string_equal(answer.error.message,
			    "StorageError: key not found, Code: 1, Key: /registry/pods/ns/a, "
			    "ResourceVersion: 0, AdditionalErrorMsg: <nil>");
	/* The object's revision is the key's, not the store's. */
	storage_create(&world, STORAGE_VALUE("u", 1), 0);
	assert_status(vd_store_put_wait(world.store, vd_bytes_of("/registry/pods/ns/b"),
					vd_bytes_of(STORAGE_NAMED("b", "v", 1)), NULL, NULL),
		      VD_OK);
	answer = storage_get(&world, 3);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.object_revision, 2);
	assert_int_equal(answer.revision, 3);
	/* Bytes that are no object: decoded last. */
	assert_status(vd_store_put_wait(world.store, storage_key_a, vd_bytes_of("no object"), NULL, NULL),
		      VD_OK);
	answer = storage_get(&world, 5);
	assert_status(answer.status, VD_TOO_LARGE_REVISION);
	answer = storage_get(&world, 4);
	assert_status(answer.status, VD_UNDECODABLE);
	assert_non_null(
		strstr(answer.error.message, "Internal error occurred: object not decodable revision=4: "));
	assert_status(vd_store_put_wait(world.store, storage_key_a, vd_bytes_of("k8s:enc:aescbc:v1:key1:x"),
					NULL, NULL),
		      VD_OK);
	answer = storage_get(&world, 5);
	assert_status(answer.status, VD_UNDECODABLE);
	assert_non_null(strstr(answer.error.message, "Internal error occurred: data from the storage is not "
						     "transformable revision=5: "));
	{
		struct vdi_storage_options options = { .resource = "pods",
						       .key_prefix = "/registry/pods/",
						       .codec = world.codec };
		struct vdi_storage	  *calm = world.storage;
		struct vd_store		  *chaos = chaos_store_new(world.env, world.store, &refuse);

		assert_status(vdi_storage_new(world.env, chaos, &options, &world.storage, NULL), VD_OK);
		assert_status(storage_get(&world, 5).status, VD_UNAVAILABLE);
		vdi_storage_free(world.storage);
		world.storage = calm;
		chaos_store_free(chaos);
	}
	storage_world_free(&world);
}

/* ---- Delete ---- */

struct removal {
	struct storage_answer answer;
	unsigned	      calls, refuse_below_call;
};

static vd_status on_validate(void *arg, struct vd_object *current, struct vd_error *reterr)
{
	struct removal *removal = arg;

	assert_non_null(current);
	removal->calls++;
	return removal->calls <= removal->refuse_below_call ? vd_error_set(reterr, VD_FORBIDDEN, "keep it") :
							      VD_OK;
}

static void remove_key(struct storage_world *world, struct removal *removal,
		       const struct vd_preconditions *preconditions, struct vd_object *suggestion)
{
	memset(&removal->answer, 0, sizeof removal->answer);
	removal->calls = 0;
	assert_status(vdi_storage_delete(world->storage, storage_key_a, preconditions, suggestion,
					 on_validate, storage_on_object, removal),
		      VD_OK);
	storage_settle(world, &removal->answer);
}

/* rules: R-130, T-005, T-006, T-008, T-010, T-011 */
static void r129_delete(void **state)
{
	struct storage_world	world = storage_world_new(9);
	struct removal		removal = { 0 };
	struct storage_change	change = { .value = STORAGE_VALUE("u", 2) };
	struct vd_preconditions wrong = { .uid = { "other", 5 } };
	struct vd_object       *suggestion;

	(void) state;
	remove_key(&world, &removal, NULL, NULL);
	assert_status(removal.answer.status, VD_NOT_FOUND);
	storage_create(&world, STORAGE_VALUE("u", 1), 0); /* 2 */
	suggestion = storage_look(&world);
	remove_key(&world, &removal, &wrong, NULL);
	assert_status(removal.answer.status, VD_PRECONDITION);
	removal.refuse_below_call = 5;
	remove_key(&world, &removal, NULL, suggestion); /* the suggestion is current: its error stands */
	assert_status(removal.answer.status, VD_FORBIDDEN);
	assert_string_equal(removal.answer.error.message, "keep it");
	storage_update(&world, &change, false, NULL, NULL); /* 3 */
	removal.refuse_below_call = 1;
	remove_key(&world, &removal, NULL, suggestion); /* stale: validated again */
	assert_status(removal.answer.status, VD_OK);
	assert_int_equal(removal.calls, 2);
	assert_int_equal(removal.answer.revision, 4); /* of the deletion */
	assert_string_equal(removal.answer.value, STORAGE_VALUE("u", 2));
	removal.refuse_below_call = 0;
	remove_key(&world, &removal, NULL, suggestion); /* of a gone object (T-010) */
	assert_status(removal.answer.status, VD_NOT_FOUND);
	/* Its failed precondition says nothing of an object that is gone. */
	remove_key(&world, &removal, &wrong, suggestion);
	assert_status(removal.answer.status, VD_NOT_FOUND);
	storage_update(&world, &change, false, &wrong, suggestion);
	assert_status(change.answer.status, VD_NOT_FOUND);
	vd_object_unref(suggestion);
	storage_world_free(&world);
}

/* ---- Keys, pages, counts ---- */

/* rules, T-083 */
static void r107_keys(void **state)
{
	static const struct {
		const char *namespace_name, *name, *key;
	} rows[] = {
		{ "ns", "a", "/registry/pods/ns/a" },
		{ "", "a", "/registry/pods/a" },
		{ "ns", "", NULL },
		{ "ns", "..", NULL },
		{ "..", "a", NULL },
		{ ".", "a", NULL },
		{ "ns", "a/b", NULL },
		{ "n/s", "a", NULL },
		{ "ns", "..a", "/registry/pods/ns/..a" },
	};
	static const char *const bad_prefixes[][2] = {
		{ NULL, "resourcePrefix cannot be empty" },
		{ "", "resourcePrefix cannot be empty" },
		{ "/", "resourcePrefix cannot be /" },
		{ "registry/", "resourcePrefix needs to start from /" },
		{ "/registry", "key prefix \"/registry\" needs to end with /" },
	};
	struct storage_world world = storage_world_new(10);
	char		     buffer[VDI_STORAGE_KEY_MAX];
	struct vd_bytes	     key;

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		vd_status status = vdi_storage_key(world.storage, vd_bytes_of(rows[i].namespace_name),
						   vd_bytes_of(rows[i].name), buffer, &key, NULL);

		assert_status(status, rows[i].key ? VD_OK : VD_INVALID_ARGUMENT);
		if (rows[i].key)
			assert_true(vd_bytes_equal(key, vd_bytes_of(rows[i].key)));
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad_prefixes); i++) { /* */
		struct vdi_storage_options options = { .resource = "pods",
						       .key_prefix = bad_prefixes[i][0],
						       .codec = world.codec };
		struct vdi_storage	  *storage = NULL;
		struct vd_error		   error = { 0 };

		assert_status(vdi_storage_new(world.env, world.store, &options, &storage, &error),
			      VD_INVALID_ARGUMENT);
		assert_string_equal(error.message, bad_prefixes[i][1]);
	}
	/* With the longest name there is room for the namespace, and for a slash. */
	for (size_t size = 0; size < 2; size++) {
		char	  name[VDI_STORAGE_KEY_MAX];
		vd_status status;

		memset(name, 'n', sizeof name);
		status = vdi_storage_key(
			world.storage, vd_bytes_of("ns"),
			(struct vd_bytes) { name, sizeof name - strlen("/registry/pods/ns/") + size }, buffer,
			&key, NULL);
		assert_status(status, size ? VD_TOO_BIG : VD_OK);
		assert_true(size || key.size == sizeof buffer);
	}
	/* Half of the room for keys is the prefix's. */
	for (size_t size = VDI_STORAGE_KEY_MAX / 2; size <= VDI_STORAGE_KEY_MAX / 2 + 1; size++) {
		char			   prefix[VDI_STORAGE_KEY_MAX];
		struct vdi_storage_options options = { .resource = "pods",
						       .key_prefix = prefix,
						       .codec = world.codec };
		struct vdi_storage	  *storage = NULL;

		memset(prefix, 'p', size);
		prefix[0] = prefix[size - 1] = '/';
		prefix[size] = 0;
		assert_status(vdi_storage_new(world.env, world.store, &options, &storage, NULL),
			      size > VDI_STORAGE_KEY_MAX / 2 ? VD_INVALID_ARGUMENT : VD_OK);
		if (storage)
			vdi_storage_free(storage);
	}
	storage_world_free(&world);
}

static void out_of_memory_undoes_a_new_storage(void **state)
{
	struct storage_world	   world = storage_world_new(11);
	struct vdi_storage_options options = { .resource = "pods",
					       .key_prefix = "/registry/pods/",
					       .codec = world.codec };
	bool			   has_failed = true;

	(void) state;
	for (uint64_t nth = 1; has_failed; nth++) {
		struct vdi_storage *storage = NULL;
		struct vd_error	    error = { 0 };
		int64_t		    live = vdi_alloc_live();
		vd_status	    status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_storage_new(world.env, world.store, &options, &storage, &error);
		has_failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, has_failed ? VD_NOMEM : VD_OK);
		assert_status(error.code, status);
		vdi_storage_free(storage);
		assert_int_equal(vdi_alloc_live(), live);
	}
	storage_world_free(&world);
}

struct page_answer {
	vd_status status;
	size_t	  count, missing;
	int64_t	  total;
	bool	  more;
	vd_rev	  revision;
	char	  why[512]; /* of what cannot be decoded */
};

static void on_page(void *arg, vd_status status, const struct vdi_storage_page *page,
		    const struct vd_error *error)
{
	struct page_answer *answer = arg;

	snprintf(answer->why, sizeof answer->why, "%s", error ? error->message : "");
	answer->status = status;
	if (page) {
		answer->count = page->object_count;
		answer->total = page->count;
		answer->more = page->more;
		answer->revision = page->revision;
		for (size_t i = 0; i < page->object_count; i++)
			answer->missing += page->objects[i] == NULL;
	}
}

static void on_revision(void *arg, vd_status status, vd_rev revision, const struct vd_error *error)
{
	(void) error;
	assert_status(status, VD_OK);
	*(vd_rev *) arg = revision;
}

static void on_count(void *arg, vd_status status, int64_t count, const struct vd_error *error)
{
	(void) error;
	assert_status(status, VD_OK);
	*(int64_t *) arg = count;
}

/* rules */
static void r138_pages_counts_and_the_current_revision(void **state)
{
	struct storage_world world = storage_world_new(11);
	struct vd_bytes	     prefix = vd_bytes_of("/registry/pods/");
	struct page_answer   page = { 0 };
	vd_rev		     revision = 0;
	int64_t		     count = 0;

	(void) state;
	for (int i = 0; i < 5; i++) {
		char key[64];

		snprintf(key, sizeof key, "/registry/pods/ns/%d", i);
		assert_status(vd_store_put_wait(world.store, vd_bytes_of(key),
						vd_bytes_of(i == 2 ? "junk" : "{\"metadata\":{}}"), NULL,
						NULL),
			      VD_OK);
	}
	assert_status(vd_store_put_wait(world.store, vd_bytes_of("/registry/podsx/a"), vd_bytes_of("{}"),
					NULL, NULL),
		      VD_OK);
	assert_status(vdi_storage_page(world.storage, prefix, VD_BYTES_NONE, 0, 3, on_page, &page), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_status(page.status, VD_OK);
	assert_int_equal(page.count, 3);
	assert_int_equal(page.missing, 1); /* the undecodable one, reported */
	assert_true(page.why[0] && strstr(page.why, "encrypted") == NULL);
	assert_int_equal(page.total, 5);
	assert_true(page.more);
	assert_int_equal(page.revision, 7);
	memset(&page, 0, sizeof page);
	assert_status(vdi_storage_page(world.storage, prefix, vd_bytes_of("/registry/pods/ns/3"), 5, 0,
				       on_page, &page),
		      VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(page.count, 1); /* at revision 5 there was only .../3 */
	assert_status(vdi_storage_current_revision(world.storage, on_revision, &revision), VD_OK);
	assert_status(vdi_storage_count(world.storage, on_count, &count), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(revision, 7);
	assert_int_equal(count, 5);
	/* Of several that cannot be decoded the first one says why. */
	assert_status(vd_store_put_wait(world.store, vd_bytes_of("/registry/pods/ns/1"),
					vd_bytes_of("k8s:enc:p:"), NULL, NULL),
		      VD_OK);
	memset(&page, 0, sizeof page);
	assert_status(vdi_storage_page(world.storage, prefix, VD_BYTES_NONE, 0, 0, on_page, &page), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(page.missing, 2);
	assert_non_null(strstr(page.why, "encrypted"));
	/* No prefix, or one that no key can have. */
	{
		static char	      prefix_bytes[VDI_STORAGE_KEY_MAX + 1];
		const struct vd_bytes too_long = { prefix_bytes, sizeof prefix_bytes };

		assert_status(
			vdi_storage_page(world.storage, VD_BYTES_NONE, VD_BYTES_NONE, 0, 0, on_page, &page),
			VD_INVALID_ARGUMENT);
		assert_status(vdi_storage_page(world.storage, too_long, VD_BYTES_NONE, 0, 0, on_page, &page),
			      VD_INVALID_ARGUMENT);
	}
	/* Without any it says nothing. */
	memset(&page, 0, sizeof page);
	assert_status(vdi_storage_page(world.storage, prefix, VD_BYTES_NONE, 3, 1, on_page, &page), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(page.count, 1);
	assert_string_equal(page.why, "");
	storage_world_free(&world);
}

static vd_status range_is_refused(struct vd_store *store, const struct vd_range_request *request,
				  vd_range_fn done, void *arg)
{
	(void) store;
	(void) request;
	(void) done;
	(void) arg;
	return VD_UNAVAILABLE;
}

/* Returns true if /metrics shows one failed request of the operation. */
static bool has_failed_request(struct storage_world *world, const char *operation)
{
	struct vdi_buffer text;
	char		  line[128];
	bool		  has_line;

	snprintf(line, sizeof line,
		 "etcd_request_errors_total{operation=\"%s\",group=\"\",resource=\"pods\"} 1\n", operation);
	vdi_buffer_init(&text, SIZE_MAX);
	assert_status(vdi_metrics_render(vdi_env_metrics(world->env), &text), VD_OK);
	vdi_buffer_append_char(&text, 0);
	has_line = strstr(text.data, line) != NULL;
	vdi_buffer_fini(&text);
	return has_line;
}

/* A store that fails a read inside the call: the caller gets the error and no callback, the request is
 * counted, and its memory is freed. */
static void a_read_that_the_store_refuses_at_once(void **state)
{
	struct storage_world	   world = storage_world_new(13);
	struct vdi_storage_options options = { .resource = "pods",
					       .key_prefix = "/registry/pods/",
					       .codec = world.codec };
	const struct vd_store_ops *honest = world.store->ops;
	struct vd_store_ops	   refusing = *honest;
	struct vdi_storage	  *storage;
	int64_t			   live;

	(void) state;
	assert_status(vdi_storage_metrics_new(world.env, "", "pods", &options.metrics), VD_OK);
	assert_status(vdi_storage_new(world.env, world.store, &options, &storage, NULL), VD_OK);
	refusing.range = range_is_refused;
	world.store->ops = &refusing;
	for (int i = 0; i < 2; i++) { /* the metrics appear with the first */
		live = vdi_alloc_live();
		assert_status(vdi_storage_page(storage, vd_bytes_of("/registry/pods/"), VD_BYTES_NONE, 0, 0,
					       on_page, NULL),
			      VD_UNAVAILABLE);
		assert_true(i > 0 || has_failed_request(&world, "list"));
		assert_status(vdi_storage_page(storage, storage_key_a, VD_BYTES_NONE, 0, 0, on_page, NULL),
			      VD_UNAVAILABLE);
		assert_true(i > 0 || has_failed_request(&world, "get"));
		assert_status(vdi_storage_count(storage, on_count, NULL), VD_UNAVAILABLE);
		assert_true(i > 0 || has_failed_request(&world, "listWithCount"));
		assert_status(vdi_storage_current_revision(storage, on_revision, NULL), VD_UNAVAILABLE);
		assert_true(i > 0 || has_failed_request(&world, "getCurrentResourceVersion"));
	}
	assert_int_equal(vdi_alloc_live(), live);
	world.store->ops = honest;
	vdi_storage_free(storage);
	vdi_storage_metrics_free(options.metrics);
	storage_world_free(&world);
}

static void every_failed_allocation_is_reported(void **state)
{
	int64_t live = vdi_alloc_live();

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		struct storage_world  world = storage_world_new(12);
		struct storage_change change = { .value = STORAGE_VALUE("u", 2), .ttl_s = 5 };
		bool		      failed;

		storage_create(&world, STORAGE_VALUE("u", 1), 0);
		change.world = &world;
		vdi_alloc_fail_nth(nth, 1);
		vd_status status = vdi_storage_update(world.storage, storage_key_a, false, NULL, NULL,
						      storage_on_update, storage_on_object, &change);
		if (status == VD_OK)
			storage_settle(&world, &change.answer);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK)
			status = change.answer.status;
		assert_true(status == VD_OK || (failed && status == VD_NOMEM));
		assert_string_equal(storage_get(&world, 0).value,
				    status == VD_OK ? STORAGE_VALUE("u", 2) : STORAGE_VALUE("u", 1));
		storage_world_free(&world);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(out_of_memory_undoes_a_new_storage),
		cmocka_unit_test(r128_create),
		cmocka_unit_test(an_object_of_another_key_is_refused),
		cmocka_unit_test(r128_create_beside_a_guard),
		cmocka_unit_test(r127_get),
		cmocka_unit_test(r127_the_order_of_a_gets_checks),
		cmocka_unit_test(r129_delete),
		cmocka_unit_test(r107_keys),
		cmocka_unit_test(r138_pages_counts_and_the_current_revision),
		cmocka_unit_test(a_read_that_the_store_refuses_at_once),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
