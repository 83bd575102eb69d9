/* Writes over HTTP while the cache is behind the store, and while others write. */
#include "http_fixture.h"
#include "temp_folder.h"

#include <stdatomic.h>

#define CONFIG_MAPS "/api/v1/namespaces/default/configmaps"
#define KEY "/registry/configmaps/default/big"
#define LONG (20 << 10) /* edited by a worker */

/* While set, watches of the store deliver nothing. */
static atomic_bool	   is_held;
static struct vd_store_ops held_ops;
static vd_status (*real_next)(struct vd_store_watch *watch, size_t event_count_max,
			      struct vd_store_batch *ret_batch, struct vd_error *reterr);

static vd_status held_next(struct vd_store_watch *watch, size_t event_count_max,
			   struct vd_store_batch *ret_batch, struct vd_error *reterr)
{
	return atomic_load(&is_held) ? VD_AGAIN : real_next(watch, event_count_max, ret_batch, reterr);
}

/* Number of conditional writes that find another write just before. */
static atomic_int competitors;
static char	  competing[LONG + 256];
static vd_status (*real_txn)(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			     void *arg);

static void written(void *arg, vd_status status, const struct vd_txn_result *result,
		    const struct vd_error *error)
{
	assert_status(status, VD_OK);
}

static vd_status contested_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			       void *arg)
{
	struct vd_op put = { .kind = VD_OP_PUT, .key = vd_bytes_of(KEY), .value = vd_bytes_of(competing) };
	struct vd_txn_request other = { .success = &put, .success_count = 1 };

	if (request->compare_count && atomic_load(&competitors) > 0 && atomic_fetch_sub(&competitors, 1) > 0)
		assert_status(real_txn(store, &other, written, NULL), VD_OK);
	return real_txn(store, request, done, arg);
}

static void come_between(struct vd_store *store)
{
	held_ops = *store->ops;
	real_next = held_ops.watch_next;
	held_ops.watch_next = held_next;
	real_txn = held_ops.txn;
	held_ops.txn = contested_txn;
	store->ops = &held_ops;
}

/* Writes as another server on the same store would. */
static void change_in_the_store(struct vd_store *store, const char *from, const char *to)
{
	struct vd_kv *kv;
	char	     *value, *at;
	size_t	      size;

	assert_status(vd_store_get_wait(store, vd_bytes_of(KEY), &kv, NULL), VD_OK);
	size = kv->value_size;
	value = malloc(size + 1);
	assert_non_null(value);
	memcpy(value, kv->data + kv->key_size, size);
	value[size] = 0;
	at = strstr(value, from);
	assert_true(at && strlen(from) == strlen(to));
	memcpy(at, to, strlen(to));
	assert_status(
		vd_store_put_wait(store, vd_bytes_of(KEY), (struct vd_bytes) { value, size }, NULL, NULL),
		VD_OK);
	vd_kv_unref(kv);
	free(value);
}

/* A durable store: its transactions are answered on a thread of their own. */
static void open_durable(struct http_fixture *fixture, char directory[TEMP_FOLDER_SIZE])
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	temp_folder_make(directory);
	options.data_dir = directory;
	vd_store_close_wait(fixture->store);
	assert_status(vd_store_open_mvcc(fixture->env, &options, &fixture->store, NULL), VD_OK);
}

/* A patch without a revision is applied to the present state, however far the cache is behind, on a loop or
 * on a worker. */
static void patch_while_the_cache_is_behind(size_t size)
{
	struct http_fixture fixture;
	char		   *body = malloc(size + 256), *text = malloc(size + 1);
	char		    directory[TEMP_FOLDER_SIZE];

	assert_true(body && text);
	memset(text, 'x', size);
	text[size] = 0;
	snprintf(body, size + 256,
		 "{\"metadata\":{\"name\":\"big\"},\"data\":{\"word\":\"first\",\"text\":\"%s\"}}", text);
	atomic_store(&is_held, false);
	http_fixture_init(&fixture);
	open_durable(&fixture, directory);
	come_between(fixture.store);
	http_fixture_start(&fixture, 1, NULL);
	http_expect(fixture.port, "POST", CONFIG_MAPS, HTTP_JSON, body, 201, "first");
	http_expect(fixture.port, "GET", CONFIG_MAPS "/big", "", "", 200, "first");
	atomic_store(&is_held, true);
	change_in_the_store(fixture.store, "first", "other");
	http_expect(fixture.port, "GET", CONFIG_MAPS "/big?resourceVersion=0", "", "", 200, "first");
	http_expect(fixture.port, "PATCH", CONFIG_MAPS "/big", HTTP_MERGE, "{\"data\":{\"more\":\"1\"}}", 200,
		    "\"word\":\"other\"");
	change_in_the_store(fixture.store, "other", "third");
	http_expect(fixture.port, "PATCH", CONFIG_MAPS "/big", HTTP_MERGE, "{\"data\":{\"more\":\"2\"}}", 200,
		    "\"word\":\"third\"");
	atomic_store(&is_held, false);
	assert_status(
		vd_store_put_wait(fixture.store, vd_bytes_of(KEY "/wake"), vd_bytes_of("{}"), NULL, NULL),
		VD_OK);
	http_fixture_close(&fixture, (vd_dur) { 0 });
	temp_folder_remove(directory);
	free(body);
	free(text);
}

/* A patch without a revision succeeds in the end, however often other writers were faster. */
static void patch_against_others(size_t size)
{
	struct http_fixture fixture;
	char		    directory[TEMP_FOLDER_SIZE], text[LONG + 1], body[LONG + 256];

	memset(text, 'x', size);
	text[size] = 0;
	snprintf(competing, sizeof competing,
		 "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"big\",\"namespace\":"
		 "\"default\"},\"data\":{\"word\":\"theirs\",\"text\":\"%s\"}}",
		 text);
	snprintf(body, sizeof body,
		 "{\"metadata\":{\"name\":\"big\"},\"data\":{\"word\":\"first\",\"text\":\"%s\"}}", text);
	http_fixture_init(&fixture);
	open_durable(&fixture, directory);
	come_between(fixture.store);
	http_fixture_start(&fixture, 1, NULL);
	http_expect(fixture.port, "POST", CONFIG_MAPS, HTTP_JSON, body, 201, "first");
	atomic_store(&competitors, 50);
	http_expect(fixture.port, "PATCH", CONFIG_MAPS "/big", HTTP_MERGE, "{\"data\":{\"more\":\"1\"}}", 200,
		    "\"word\":\"theirs\"");
	assert_true(atomic_load(&competitors) <= 0);
	http_fixture_close(&fixture, (vd_dur) { 0 });
	temp_folder_remove(directory);
}

static void a_short_patch_is_made_in_the_end(void **state)
{
	(void) state;
	patch_against_others(10);
}

static void a_long_patch_is_made_in_the_end(void **state)
{
	(void) state;
	patch_against_others(LONG - 1);
}

static void a_short_patch_sees_the_present_state(void **state)
{
	(void) state;
	patch_while_the_cache_is_behind(10);
}

static void a_long_patch_sees_the_present_state(void **state)
{
	(void) state;
	patch_while_the_cache_is_behind(LONG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_short_patch_sees_the_present_state),
		cmocka_unit_test(a_long_patch_sees_the_present_state),
		cmocka_unit_test(a_short_patch_is_made_in_the_end),
		cmocka_unit_test(a_long_patch_is_made_in_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
