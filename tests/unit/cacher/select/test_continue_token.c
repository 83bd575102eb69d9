/* Unit tests of cacher/select/continue_token.c; the rows of upstream's Test_decodeContinue (T-101) among
 * them. */
#include "vdtest.h"

#include "base64.h"
#include "continue_token.h"

static const struct vd_bytes prefix = { "/test/", 6 };

static vd_status decode_json(const char *json, char **ret_key, size_t *ret_size, vd_rev *ret_revision,
			     struct vd_error *error)
{
	char   token[1024];
	size_t size = vdi_base64_encode(VDI_BASE64_URL, vd_bytes_of(json), token);

	return vdi_continue_token_decode((struct vd_bytes) { token, size }, prefix, ret_key, ret_size,
					 ret_revision, error);
}

static void r153_token_text_is_upstreams(void **state)
{
	char *token = NULL;

	(void) state;
	/* {"v":"meta.k8s.io/v1","rv":12,"start":"ns/a\u0000"} */
	assert_status(vdi_continue_token_encode_after(vd_bytes_of("/test/ns/a"), prefix, 12, &token, NULL),
		      VD_OK);
	assert_string_equal(token, "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MTIsInN0YXJ0IjoibnMvYVx1MDAwMCJ9");
	vdi_free(token);
}

static void r153_round_trip(void **state)
{
	static const char *const starts[] = { "a", "ns/pod", "<&>\"\\", "\xc3\xa9", "a b" };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(starts); i++) {
		char   key[64];
		char  *token = NULL;
		char  *decoded = NULL;
		size_t size = 0;
		vd_rev revision = 0;

		snprintf(key, sizeof key, "/test/%s", starts[i]);
		assert_status(vdi_continue_token_encode_after(vd_bytes_of(key), prefix, INT64_MAX - 1, &token,
							      NULL),
			      VD_OK);
		assert_status(vdi_continue_token_decode(vd_bytes_of(token), prefix, &decoded, &size,
							&revision, NULL),
			      VD_OK);
		assert_int_equal(size, strlen(key) + 1);
		assert_memory_equal(decoded, key, size); /* the NUL included */
		assert_true(revision == INT64_MAX - 1);
		vdi_free(token);
		vdi_free(decoded);
	}
}

static void r125_revision_minus_one_means_newest(void **state)
{
	char  *token = NULL;
	char  *key = NULL;
	size_t size;
	vd_rev revision = 0;

	(void) state;
	assert_status(
		vdi_continue_token_encode(vd_bytes_of("/test/a"), prefix, VDI_CONTINUE_LATEST, &token, NULL),
		VD_OK);
	assert_status(vdi_continue_token_decode(vd_bytes_of(token), prefix, &key, &size, &revision, NULL),
		      VD_OK);
	assert_int_equal(revision, -1);
	assert_string_equal(key, "/test/a");
	vdi_free(token);
	vdi_free(key);
}

static void r153_key_outside_the_prefix_is_refused(void **state)
{
	struct vd_error error;
	char	       *token = NULL;

	(void) state;
	assert_status(vdi_continue_token_encode(vd_bytes_of("/other/a"), prefix, 1, &token, &error),
		      VD_INTERNAL);
	assert_string_equal(error.message,
			    "unable to encode next field: the key and key prefix do not match");
	assert_status(vdi_continue_token_encode(vd_bytes_of("/test"), prefix, 1, &token, NULL), VD_INTERNAL);
	assert_status(vdi_continue_token_encode(vd_bytes_of("/test/a"), VD_BYTES_NONE, 1, &token, NULL),
		      VD_INTERNAL);
	assert_null(token);
}

#define TOKEN(v, rv, start) "{\"v\":\"" v "\",\"rv\":" rv ",\"start\":\"" start "\"}"
#define V1 "meta.k8s.io/v1"
#define TEN "0123456789"
#define HUNDRED TEN TEN TEN TEN TEN TEN TEN TEN TEN TEN

static void t101_r154_what_decodes(void **state)
{
	static const struct {
		const char *json;
		const char *key;
		vd_rev	    revision;
	} rows[] = {
		{ TOKEN(V1, "1", "key"), "/test/key", 1 },
		{ TOKEN(V1, "1", "/key"), "/test/key", 1 },
		{ TOKEN(V1, "1", "/"), "/test/", 1 },
		{ TOKEN(V1, "-1", "ns/a"), "/test/ns/a", -1 },
		{ TOKEN(V1, "1", "..."), "/test/...", 1 },
		{ TOKEN(V1, "1", "..a/.b"), "/test/..a/.b", 1 },
		/* null changes nothing */
		{ "{\"v\":\"" V1 "\",\"rv\":7,\"start\":\"k\",\"V\":null,\"RV\":null,\"Start\":null}",
		  "/test/k", 7 },
		{ " { \"START\":\"x\", \"start\":\"k\" , \"RV\":null,\"rv\":7, \"v\":\"" V1
		  "\",\"other\":[] } ",
		  "/test/k", 7 },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char	       *key = NULL;
		size_t		size = 0;
		vd_rev		revision = 0;
		struct vd_error error;

		if (decode_json(rows[i].json, &key, &size, &revision, &error) != VD_OK)
			fail_msg("%s: %s", rows[i].json, error.message);
		assert_int_equal(size, strlen(rows[i].key));
		assert_string_equal(key, rows[i].key);
		assert_int_equal(revision, rows[i].revision);
		vdi_free(key);
	}
}

static void t101_r153_what_does_not_decode(void **state)
{
	static const char *const rows[][2] = {
		{ TOKEN("", "1", "key"),
		  "continue key is not valid: server does not recognize this encoded version " },
		{ TOKEN("v1", "1", "key"),
		  "continue key is not valid: server does not recognize this encoded version v1" },
		{ TOKEN(V1, "0", "key"), "continue key is not valid: incorrect encoded start resourceVersion "
					 "(version meta.k8s.io/v1)" },
		{ TOKEN(V1, "1", ""),
		  "continue key is not valid: encoded start key empty (version meta.k8s.io/v1)" },
		{ TOKEN(V1, "1", "../key"), "continue key is not valid: ../key" },
		{ TOKEN(V1, "1", "./key"), "continue key is not valid: ./key" },
		{ TOKEN(V1, "1", "./../key"), "continue key is not valid: ./../key" },
		{ TOKEN(V1, "1", "key/../.."), "continue key is not valid: key/../.." },
		{ TOKEN(V1, "1", "/../key"), "continue key is not valid: /../key" },
		{ TOKEN(V1, "1", ".."), "continue key is not valid: .." },
		{ TOKEN(V1, "1", "."), "continue key is not valid: ." },
		{ TOKEN(V1, "1", "//"), "continue key is not valid: //" },
		{ TOKEN(V1, "1", "//key"), "continue key is not valid: //key" },
		{ TOKEN(V1, "1", "a//b"), "continue key is not valid: a//b" },
		{ TOKEN(V1, "1", "a/"), "continue key is not valid: a/" },
		{ TOKEN(V1, "1", "a/./b"), "continue key is not valid: a/./b" },
		{ "{}", "continue key is not valid: server does not recognize this encoded version " },
		{ "[]", "continue key is not valid: not a JSON object" },
		{ "{\"v\"}", "continue key is not valid: expected ':' at offset 4" },
		{ TOKEN(V1, "1.5", "key"), "continue key is not valid: rv is not an integer" },
		{ TOKEN(V1, "\"1\"", "key"), "continue key is not valid: rv is not an integer" },
		{ "{\"v\":1}", "continue key is not valid: v is not a string" },
		{ "{\"start\":{}}", "continue key is not valid: start is not a string" },
		{ "{\"x\":99999999999999999999999}", /* an unknown member may be any value */
		  "continue key is not valid: server does not recognize this encoded version " },
		{ TOKEN(V1, "9223372036854775808", "key"),
		  "continue key is not valid: rv is not an integer" },
		{ "{\"rv\":1,\"rv\":2}", "continue key is not valid: duplicate key in object at offset 12" },
		{ TOKEN(HUNDRED HUNDRED "x", "1", "key"),
		  "continue key is not valid: server does not recognize this encoded version " HUNDRED
			  HUNDRED },
		{ TOKEN(V1, "1", HUNDRED HUNDRED HUNDRED "/.."),
		  "continue key is not valid: " HUNDRED HUNDRED HUNDRED },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char	       *key = NULL;
		size_t		size = 0;
		vd_rev		revision = 0;
		struct vd_error error;

		assert_status(decode_json(rows[i][0], &key, &size, &revision, &error), VD_BAD_REQUEST);
		assert_string_equal(error.message, rows[i][1]);
		assert_null(key);
	}
}

static void r153_bytes_that_are_no_token(void **state)
{
	static const char *const rows[] = {
		"", "!", "e30=", "e3", "eyJ2Ijo", "A", "eyJ2IjoibWV0YS5rOHMuaW8vdjEi", "/w"
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char	       *key = NULL;
		size_t		size;
		vd_rev		revision;
		struct vd_error error;

		assert_status(vdi_continue_token_decode(vd_bytes_of(rows[i]), prefix, &key, &size, &revision,
							&error),
			      VD_BAD_REQUEST);
		assert_non_null(strstr(error.message, "continue key is not valid: "));
	}
}

static void r153_token_is_bounded(void **state)
{
	static char	text[VDI_CONTINUE_TOKEN_SIZE_MAX + 1];
	char	       *key = NULL;
	size_t		size;
	vd_rev		revision;
	struct vd_error error;

	(void) state;
	memset(text, 'A', sizeof text);
	assert_status(vdi_continue_token_decode((struct vd_bytes) { text, sizeof text }, prefix, &key, &size,
						&revision, &error),
		      VD_BAD_REQUEST);
	assert_non_null(strstr(error.message, "longer than"));
	/* As long as it may be: refused for what it holds. */
	assert_status(vdi_continue_token_decode((struct vd_bytes) { text, VDI_CONTINUE_TOKEN_SIZE_MAX },
						prefix, &key, &size, &revision, &error),
		      VD_BAD_REQUEST);
	assert_null(strstr(error.message, "longer than"));
}

static void torture_every_allocation(void **state)
{
	int64_t	 live = vdi_alloc_live();
	uint64_t nth = 1;

	(void) state;
	for (;; nth++) {
		char	 *token = NULL;
		char	 *key = NULL;
		size_t	  size;
		vd_rev	  revision;
		vd_status status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_continue_token_encode_after(vd_bytes_of("/test/a"), prefix, 1, &token, NULL);
		if (status == VD_OK)
			status = vdi_continue_token_decode(vd_bytes_of(token), prefix, &key, &size, &revision,
							   NULL);
		assert_status(status, vdi_alloc_failed() ? VD_NOMEM : VD_OK);
		vdi_alloc_fail_nth(0, 0);
		vdi_free(token);
		vdi_free(key);
		assert_int_equal(vdi_alloc_live(), live);
		if (status == VD_OK)
			break;
	}
	assert_true(nth > 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r153_token_text_is_upstreams),
		cmocka_unit_test(r153_round_trip),
		cmocka_unit_test(r125_revision_minus_one_means_newest),
		cmocka_unit_test(r153_key_outside_the_prefix_is_refused),
		cmocka_unit_test(t101_r154_what_decodes),
		cmocka_unit_test(t101_r153_what_does_not_decode),
		cmocka_unit_test(r153_bytes_that_are_no_token),
		cmocka_unit_test(r153_token_is_bounded),
		cmocka_unit_test(torture_every_allocation),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
