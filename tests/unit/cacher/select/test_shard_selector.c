/* Shard selectors: the text, the hash, and what lists and watches of a shard see. */
#include "shard_selector.h"

#include "cacher.h"
#include "cacher_fixture.h"
#include "env.h"
#include "object.h"
#include "pod_objects.h"

#define FIFTY "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
#define HALF "0x8000000000000000"
#define END "0x10000000000000000"
#define LOW "shardRange(object.metadata.uid, '0x0000000000000000', '" HALF "')"
#define HIGH "shardRange(object.metadata.uid, '" HALF "', '" END "')"

static struct vdi_shard_selector *parse(const char *text)
{
	struct vdi_shard_selector *selector = NULL;
	struct vd_error		   error = { 0 };
	vd_status		   status = vdi_shard_selector_parse(vd_bytes_of(text), &selector, &error);

	if (status != VD_OK)
		fail_msg("%s: %s", text, error.message);
	assert_string_equal(error.message, ""); /* nothing is said about what goes well */
	return selector;
}

static void r5b0_the_hash_is_fnv1a(void **state)
{
	assert_true(vdi_fnv1a(VD_BYTES_NONE) == UINT64_C(0xcbf29ce484222325));
	assert_true(vdi_fnv1a(vd_bytes_of("a")) == UINT64_C(0xaf63dc4c8601ec8c));
	assert_true(vdi_fnv1a(vd_bytes_of("foobar")) == UINT64_C(0x85944171f73967e8));
}

static void r5b0_what_is_understood(void **state)
{
	static const struct {
		const char *text, *canonical;
	} rows[] = {
		{ LOW, LOW },
		{ HIGH, HIGH },
		{ "shardRange(object.metadata.uid,'0x0000000000000000','" HALF "')", LOW },
		{ "  shardRange( object.metadata.uid ,  '0x0000000000000000' ,\t'" HALF "' )  ", LOW },
		{ "shardRange(object . metadata.uid, \"0x0000000000000000\", \"" HALF "\")", LOW },
		{ LOW "||" HIGH, LOW " || " HIGH },
		{ "(" LOW ") || ((" HIGH "))", LOW " || " HIGH },
		{ "(" HIGH "||" LOW ")||" LOW, HIGH " || " LOW " || " LOW },
		{ "shardRange(object.metadata.namespace, '0x00000000000000aa', '0x00000000000000ff')",
		  "shardRange(object.metadata.namespace, '0x00000000000000aa', '0x00000000000000ff')" },
		{ "shardRange(object.metadata.uid, '0xffffffffffffffff', '" END "')",
		  "shardRange(object.metadata.uid, '0xffffffffffffffff', '" END "')" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_shard_selector *selector = parse(rows[i].text);

		assert_true(
			vd_bytes_equal(vdi_shard_selector_text(selector), vd_bytes_of(rows[i].canonical)));
		vdi_shard_selector_free(selector);
	}
	{
		/* Nothing behind the end is looked at. */
		struct vdi_shard_selector *selector = NULL;

		assert_status(
			vdi_shard_selector_parse((struct vd_bytes) { LOW "  ", sizeof LOW }, &selector, NULL),
			VD_OK);
		vdi_shard_selector_free(selector);
		assert_status(vdi_shard_selector_parse((struct vd_bytes) { LOW "||", sizeof LOW - 1 },
						       &selector, NULL),
			      VD_OK);
		vdi_shard_selector_free(selector);
		{
			struct vd_error error;

			assert_status(vdi_shard_selector_parse(
					      (struct vd_bytes) { LOW " &garbage", sizeof LOW + 1 },
					      &selector, &error),
				      VD_BAD_REQUEST);
			assert_null(strstr(error.message, "garbage"));
		}
	}
	assert_null(parse(""));
	assert_int_equal(vdi_shard_selector_text(NULL).size, 0);
}

static void r5b0_what_is_refused_and_why(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ " ", "empty shard selector is not allowed" },
		{ "shardRange(object.metadata.uid, '0000000000000000', '" HALF "')",
		  "hexStart must have '0x' prefix" },
		{ "shardRange(object.metadata.uid, '0x0000000000000000', '8000000000000000')",
		  "hexEnd must have '0x' prefix" },
		{ "shardRange(object.metadata.uid, '0x', '" HALF "')", "16-digit" },
		{ "shardRange(object.metadata.uid, '0x0', '" HALF "')", "16-digit" },
		{ "shardRange(object.metadata.uid, '0x0000000000000000', '0x20000000000000000')",
		  "16-digit" },
		{ "shardRange(object.metadata.uid, '0x00000000001111111111222222222233333333334', '" HALF
		  "')",
		  "got \"0x00000000001111111111222222222233333333\"" },
		{ "shardRange(object.metadata.uid, '0000000000111111111122222222223333333333444', '" HALF
		  "')",
		  "got \"0000000000111111111122222222223333333333\"" },
		{ "shardRange(object.metadata.uid, '0x000000000000000g', '" HALF "')",
		  "invalid hex character" },
		{ "shardRange(object.metadata.uid, '0x000000000000000A', '" HALF "')",
		  "invalid hex character" },
		{ "shardRange(object.metadata.name, '0x0000000000000000', '" HALF "')",
		  "unsupported field path \"object.metadata.name\"" },
		{ "shardRange(metadata.uid, '0x0000000000000000', '" HALF "')", "unsupported field path" },
		/* Longer than any path that is known. */
		{ "shardRange(object.metadata.uid" FIFTY FIFTY ", '0x0000000000000000', '" HALF "')",
		  "unsupported field path \"object.metadata.uidxxxxxxxx" },
		{ "shardRange(a." FIFTY ".bbbbbbbbbbb.c, '0x0000000000000000', '" HALF "')",
		  "unsupported field path \"a." FIFTY ".bbbbbbbbbbb\"" },
		{ "other(object.metadata.uid, '0x0000000000000000', '" HALF "')",
		  "unsupported function \"other\"" },
		{ "shardRange(object.metadata.uid, 0, 8)", "must be a string literal" },
		{ "shardRange(object.metadata.uid, '0x0000000000000000')", "expected ','" },
		{ "shardRange(object.metadata.uid, '0x0000000000000000', '" HALF, "unterminated string" },
		{ "shardRange(object.metadata.uid, '" HALF "', '" HALF "')", "must be less than end" },
		{ "shardRange(object.metadata.uid, '0xffffffffffffffff', '0x0000000000000000')",
		  "must be less than end" },
		{ "shardRange(object.metadata.uid, '" END "', '" END "')", "must be less than end" },
		{ LOW " && " HIGH, "only shardRange() and || are allowed" },
		{ LOW " ||", "unsupported function" },
		{ LOW " || shardRange(object.metadata.namespace, '0x0000000000000000', '" HALF "')",
		  "must use the same field" },
		{ "(" LOW, "expected ')'" },
		{ LOW ")", "only shardRange()" },
		{ "((((((((((((((((((" LOW, "parentheses" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_shard_selector *selector = NULL;
		struct vd_error		   error = { 0 };

		assert_status(vdi_shard_selector_parse(vd_bytes_of(rows[i].text), &selector, &error),
			      VD_BAD_REQUEST);
		assert_non_null(strstr(error.message, "invalid shard selector: "));
		if (strstr(error.message, rows[i].why) == NULL)
			fail_msg("%s: %s", rows[i].text, error.message);
		assert_null(selector);
	}
}

/* Lower bound inclusive, upper exclusive; hash("u-x") is in exactly one of any two neighbours. */
static void r5b0_bounds(void **state)
{
	struct vd_codec	 *codec = pod_codec_new();
	struct vd_object *object = pod_new(codec, "ns", "x", NULL, NULL, 1);
	uint64_t	  hash = vdi_fnv1a(vdi_object_uid(object));
	char		  text[256];

	assert_true(vdi_object_uid(object).size > 0);
	for (int i = -1; i <= 1; i++) {
		struct vdi_shard_selector *selector;

		snprintf(text, sizeof text, "shardRange(object.metadata.uid, '0x%016llx', '0x%016llx')",
			 (unsigned long long) hash + (uint64_t) i,
			 (unsigned long long) hash + (uint64_t) i + 1);
		selector = parse(text);
		assert_int_equal(vdi_shard_selector_matches(selector, object), i == 0);
		vdi_shard_selector_free(selector);
	}
	assert_true(vdi_shard_selector_matches(NULL, object));
	vd_object_unref(object);
	vd_codec_free(codec);
}

static void r5b0_torture(void **state)
{
	static const char	   text[] = LOW " || " HIGH " || " LOW;
	int64_t			   live = vdi_alloc_live();
	struct vdi_shard_selector *selector = NULL;
	bool			   failed = true;

	for (unsigned nth = 1; failed; nth++) {
		vd_status status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_shard_selector_parse(vd_bytes_of(text), &selector, NULL);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		if (failed)
			assert_int_equal(vdi_alloc_live(), live);
	}
	vdi_shard_selector_free(selector);
	assert_int_equal(vdi_alloc_live(), live);
}

/* ---- Over a cacher ---- */

static bool is_low(const char *name)
{
	char uid[80];

	snprintf(uid, sizeof uid, "u-%s", name);
	return vdi_fnv1a(vd_bytes_of(uid)) < UINT64_C(0x8000000000000000);
}

static size_t count_list(struct cacher_fixture *f, struct vd_list_options *options, const char *shard,
			 const char *token, char *ret_token)
{
	struct vd_list	 *list = NULL;
	struct vd_error	  error;
	size_t		  count = 0;
	struct vd_object *object;

	options->shard_selector = vd_bytes_of(shard);
	options->continue_token = vd_bytes_of(token);
	assert_status(vd_cacher_list_wait(f->cacher, options, &list, &error), VD_OK);
	while ((object = vd_list_next(list))) {
		char name[64];

		snprintf(name, sizeof name, "%.*s", (int) vd_object_name(object).size,
			 (const char *) vd_object_name(object).data);
		if (*shard)
			assert_int_equal(is_low(name), strcmp(shard, LOW) == 0);
		count++;
	}
	assert_true(vd_bytes_equal(vd_list_shard_selector(list), vd_bytes_of(shard)));
	if (*shard)
		assert_int_equal(vd_list_remaining(list), -1);
	if (ret_token)
		snprintf(ret_token, 512, "%.*s", (int) vd_list_continue(list).size,
			 (const char *) vd_list_continue(list).data);
	vd_list_free(list);
	return count;
}

static void r5b0_lists_of_two_shards_are_the_whole_list(void **state)
{
	struct cacher_fixture  f;
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	size_t		       low, high, paged = 0;
	char		       token[512] = "";
	char		       name[16];

	cacher_fixture_setup(&f, 71);
	for (unsigned i = 0; i < 40; i++) {
		snprintf(name, sizeof name, "p%u-tail",
			 i); /* what differs in the last bytes alone hashes close together */
		put_pod(&f, i % 2 ? "a" : "b", name, i % 3 ? "web" : "db", NULL);
	}
	cacher_fixture_settle(&f);
	low = count_list(&f, &options, LOW, "", NULL);
	high = count_list(&f, &options, HIGH, "", NULL);
	assert_true(low > 5 && high > 5);
	assert_int_equal(low + high, count_list(&f, &options, "", "", NULL));
	assert_int_equal(40, low + high);
	/* Pages of a shard: no remaining count, each object once. */
	options.limit = 3;
	do
		paged += count_list(&f, &options, LOW, token, token);
	while (*token);
	assert_int_equal(paged, low);
	/* With the selectors. */
	options = (struct vd_list_options) VD_LIST_OPTIONS_INIT;
	options.label_selector = vd_bytes_of("app=web");
	assert_int_equal(count_list(&f, &options, LOW, "", NULL) + count_list(&f, &options, HIGH, "", NULL),
			 26);
	/* One namespace is one shard of the namespaces. */
	options = (struct vd_list_options) VD_LIST_OPTIONS_INIT;
	options.shard_selector = vd_bytes_of("(");
	{
		struct vd_list *list = NULL;
		struct vd_error error;

		assert_status(vd_cacher_list_wait(f.cacher, &options, &list, &error), VD_BAD_REQUEST);
		assert_non_null(strstr(error.message, "invalid shard selector"));
	}
	cacher_fixture_teardown(&f);
}

static vd_rev put_uid(struct cacher_fixture *f, const char *name, const char *uid)
{
	char		key[128], value[256];
	struct vd_error error;
	vd_rev		revision = 0;

	snprintf(key, sizeof key, "/registry/pods/a/%s", name);
	snprintf(value, sizeof value,
		 "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"a\","
		 "\"uid\":\"%s\"}}",
		 name, uid);
	assert_status(vd_store_put_wait(f->store, vd_bytes_of(key), vd_bytes_of(value), &revision, &error),
		      VD_OK);
	return revision;
}

/* Two uids, one in each half. */
static void find_uids(char low[16], char high[16])
{
	for (unsigned i = 0; i < 1000; i++) {
		char uid[16];

		snprintf(uid, sizeof uid, "n%u-tail", i);
		strcpy(vdi_fnv1a(vd_bytes_of(uid)) >> 63 ? high : low, uid);
	}
}

/* An object whose hash changes (it was deleted and made again, of which only the last state came) leaves one
 * shard and enters the other.
 * rules: R-527, T-139 */
static void t092_r5b0_r716_watches_of_a_shard(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *low = calloc(1, sizeof *low), *high = calloc(1, sizeof *high),
			*all = calloc(1, sizeof *all);
	char   low_uid[16] = "", high_uid[16] = "", text[256];
	vd_rev first, second, third, gone;

	find_uids(low_uid, high_uid);
	cacher_fixture_setup(&f, 72);
	first = put_uid(&f, "x", low_uid);
	cacher_fixture_settle(&f);
	options.shard_selector = vd_bytes_of(LOW);
	assert_status(recorder_open(&f, low, &options, NULL), VD_OK);
	options.shard_selector = vd_bytes_of(HIGH);
	assert_status(recorder_open(&f, high, &options, NULL), VD_OK);
	options.shard_selector = VD_BYTES_NONE;
	assert_status(recorder_open(&f, all, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	snprintf(text, sizeof text, "+a/x@%lld", (long long) first);
	assert_string_equal(recorder_text(low), text);
	assert_string_equal(recorder_text(high), "");
	assert_string_equal(recorder_text(all), text);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.sharded_watches), 2);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.shard_filtered), 0);
	/* A change inside the shard. */
	second = put_uid(&f, "x", low_uid);
	cacher_fixture_settle(&f);
	snprintf(text, sizeof text, "~a/x@%lld", (long long) second);
	assert_string_equal(recorder_text(low), text);
	assert_string_equal(recorder_text(high), "");
	assert_string_equal(recorder_text(all), text);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.shard_filtered), 1);
	/* From one into the other. */
	third = put_uid(&f, "x", high_uid);
	cacher_fixture_settle(&f);
	snprintf(text, sizeof text, "-a/x@%lld", (long long) third);
	assert_string_equal(recorder_text(low), text);
	snprintf(text, sizeof text, "+a/x@%lld", (long long) third);
	assert_string_equal(recorder_text(high), text);
	snprintf(text, sizeof text, "~a/x@%lld", (long long) third);
	assert_string_equal(recorder_text(all), text);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.shard_filtered), 1);
	gone = delete_pod(&f, "a", "x");
	cacher_fixture_settle(&f);
	snprintf(text, sizeof text, "-a/x@%lld", (long long) gone);
	assert_string_equal(recorder_text(low), "");
	assert_string_equal(recorder_text(high), text);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.shard_filtered), 2);
	recorder_close(&f, low);
	recorder_close(&f, high);
	recorder_close(&f, all);
	cacher_fixture_settle(&f);
	assert_int_equal(vdi_metric_value(f.cacher->metrics.sharded_watches), 0);
	cacher_fixture_teardown(&f);
	free(low);
	free(high);
	free(all);
}

/* Catching up from the history asks the same question. */
static void r5b0_a_shard_from_a_revision(void **state)
{
	struct cacher_fixture	f;
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct recorder	       *recorder = calloc(1, sizeof *recorder);
	unsigned		expected = 0;
	char			name[16];
	vd_rev			first;

	cacher_fixture_setup(&f, 73);
	first = put_pod(&f, "a", "first", NULL, NULL);
	for (unsigned i = 0; i < 30; i++) {
		snprintf(name, sizeof name, "p%u-tail", i);
		expected += is_low(name);
		put_pod(&f, "a", name, NULL, NULL);
	}
	cacher_fixture_settle(&f);
	options.revision = first;
	options.shard_selector = vd_bytes_of(LOW);
	assert_status(recorder_open(&f, recorder, &options, NULL), VD_OK);
	cacher_fixture_settle(&f);
	assert_int_equal(recorder->count, expected);
	assert_true(expected > 5 && expected < 25);
	recorder_close(&f, recorder);
	cacher_fixture_teardown(&f);
	free(recorder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r5b0_the_hash_is_fnv1a),
		cmocka_unit_test(r5b0_what_is_understood),
		cmocka_unit_test(r5b0_what_is_refused_and_why),
		cmocka_unit_test(r5b0_bounds),
		cmocka_unit_test(r5b0_torture),
		cmocka_unit_test(r5b0_lists_of_two_shards_are_the_whole_list),
		cmocka_unit_test(t092_r5b0_r716_watches_of_a_shard),
		cmocka_unit_test(r5b0_a_shard_from_a_revision),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
