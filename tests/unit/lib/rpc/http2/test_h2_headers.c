#include "h2_client_state.h"
#include "vdtest.h"

static void timeouts_as_text(void **state)
{
	static const struct {
		int64_t	    ns;
		const char *text;
	} cases[] = {
		{ -5, "1n" },
		{ 1, "1n" },
		{ 99999999, "99999999n" },
		{ 100000000, "100000u" },
		{ 100000001, "100001u" },
		{ 5000000000, "5000000u" },
		{ 100000000000, "100000m" },
		{ 360000000000000, "360000S" },
		{ INT64_MAX / 2, "76861434M" },
		{ INT64_MAX, "2562048H" },
	};
	char text[VDI_H2_TIMEOUT_SIZE];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		vdi_h2_timeout_text((vd_dur) { cases[i].ns }, text);
		assert_string_equal(text, cases[i].text);
	}
}

static void pairs_are_checked_and_copied(void **state)
{
	struct vdi_rpc_metadata		     metadata[] = { { "a-key", vd_bytes_of("value") },
							    { "x-bin", { "\0\1\2\3", 4 } },
							    { "empty", VD_BYTES_NONE } };
	struct vdi_h2_pairs		     pairs;
	static const struct vdi_rpc_metadata bad[] = {
		{ "", { "x", 1 } },	{ "Upper", { "x", 1 } }, { ":path", { "x", 1 } },
		{ "a b", { "x", 1 } },	{ "key", { "\n", 1 } },	 { "key", { "\x80", 1 } },
		{ "key", { "\0", 1 } },
	};

	(void) state;
	assert_status(vdi_h2_pairs_make(metadata, 3, &pairs), VD_OK);
	assert_int_equal(pairs.count, 3);
	assert_memory_equal(pairs.list[0].value, "value", pairs.list[0].valuelen);
	assert_int_equal(pairs.list[1].valuelen, 6);
	assert_memory_equal(pairs.list[1].value, "AAECAw", 6);
	assert_int_equal(pairs.list[2].valuelen, 0);
	vdi_free(pairs.list);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad); i++)
		assert_status(vdi_h2_pairs_make(&bad[i], 1, &pairs), VD_INVALID_ARGUMENT);
	vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_h2_pairs_make(metadata, 3, &pairs), VD_NOMEM);
	vdi_alloc_fail_nth(0, 0);
	assert_status(vdi_h2_pairs_make(NULL, 0, &pairs), VD_OK);
	assert_null(pairs.list);
}

static void note(struct vdi_h2_answer *answer, const char *name, const char *value)
{
	vdi_h2_answer_note(answer, vd_bytes_of(name), vd_bytes_of(value));
}

static void words_are_bounded_and_of_one_line_of_bytes(void **state)
{
	struct vdi_h2_answer answer = { 0 };
	char		     room[100], longer[5000];
	const char	    *words;

	(void) state;
	memset(longer, 'x', sizeof longer - 1);
	longer[sizeof longer - 1] = 0;
	note(&answer, ":status", "200");
	note(&answer, "content-type", "application/grpc+proto");
	note(&answer, "grpc-status", "3");
	note(&answer, "grpc-message", longer);
	assert_int_equal(vdi_h2_answer_end(&answer, room, sizeof room, &words), VDI_RPC_INVALID_ARGUMENT);
	assert_int_equal(strlen(words), VDI_H2_WORDS_SIZE_MAX);
	vdi_h2_answer_fini(&answer);
	note(&answer, ":status", "200");
	note(&answer, "grpc-status", "14");
	note(&answer, "grpc-status", "0"); /* the first one counts */
	note(&answer, "grpc-message", "a%00b%2");
	assert_int_equal(vdi_h2_answer_end(&answer, room, sizeof room, &words), VDI_RPC_UNAVAILABLE);
	assert_string_equal(words, "a?b%2");
	vdi_h2_answer_fini(&answer);
	note(&answer, ":status", "99999999999999");
	assert_int_equal(vdi_h2_answer_end(&answer, room, sizeof room, &words), VDI_RPC_UNKNOWN);
	note(&answer, "content-type", "application/grpc-web");
	assert_false(answer.is_grpc);
	vdi_h2_answer_fini(&answer);
}

/* What ends a call, by what came. */
static void each_answer_has_its_code_and_words(void **state)
{
	static const struct {
		const char *http, *type, *status, *message;
		int	    code;
		const char *words;
	} cases[] = {
		{ "200", "application/grpc", "0", NULL, 0, "" },
		{ "200", "application/grpc", "7", "no", 7, "no" },
		{ "200", "APPLICATION/GRPC;x", "7", "", 7, "" },
		{ "200", "application/grpc+json", NULL, NULL, VDI_RPC_INTERNAL,
		  "server closed the stream without sending trailers" },
		{ "200", "application/grpcx", NULL, NULL, VDI_RPC_UNKNOWN,
		  "received unexpected content-type \"application/grpcx\"" },
		{ "200", "application/grp", NULL, NULL, VDI_RPC_UNKNOWN,
		  "received unexpected content-type \"application/grp\"" },
		{ "200", "text/html", "5", "words", 5, "words" }, /* a status is a status */
		{ "404", "text/html", "5", "words", VDI_RPC_UNIMPLEMENTED,
		  "unexpected HTTP status code received from server: 404" },
		{ "400", NULL, NULL, NULL, VDI_RPC_INTERNAL,
		  "unexpected HTTP status code received from server: 400" },
		{ "401", NULL, NULL, NULL, VDI_RPC_UNAUTHENTICATED,
		  "unexpected HTTP status code received from server: 401" },
		{ "403", NULL, NULL, NULL, VDI_RPC_PERMISSION_DENIED,
		  "unexpected HTTP status code received from server: 403" },
		{ "429", NULL, NULL, NULL, VDI_RPC_UNAVAILABLE,
		  "unexpected HTTP status code received from server: 429" },
		{ "502", NULL, NULL, NULL, VDI_RPC_UNAVAILABLE,
		  "unexpected HTTP status code received from server: 502" },
		{ "503", NULL, NULL, NULL, VDI_RPC_UNAVAILABLE,
		  "unexpected HTTP status code received from server: 503" },
		{ "504", NULL, NULL, NULL, VDI_RPC_UNAVAILABLE,
		  "unexpected HTTP status code received from server: 504" },
		{ "500", NULL, NULL, NULL, VDI_RPC_UNKNOWN,
		  "unexpected HTTP status code received from server: 500" },
		{ "999999999", NULL, NULL, NULL, VDI_RPC_UNKNOWN,
		  "unexpected HTTP status code received from server: 999999999" },
		{ "1000000000", NULL, NULL, NULL, VDI_RPC_UNKNOWN,
		  "unexpected HTTP status code received from server: 0" },
		{ "", NULL, NULL, NULL, VDI_RPC_UNKNOWN,
		  "unexpected HTTP status code received from server: 0" },
		{ "20/", NULL, NULL, NULL, VDI_RPC_UNKNOWN,
		  "unexpected HTTP status code received from server: 0" },
		{ "20:", NULL, NULL, NULL, VDI_RPC_UNKNOWN,
		  "unexpected HTTP status code received from server: 0" },
		{ "200", "application/grpc", "x", "y", VDI_RPC_UNKNOWN, "y" },
		{ "200", "application/grpc", "", "y", VDI_RPC_UNKNOWN, "y" },
		{ "200", "application/grpc", "3", "%41%6a%6A%7E%", 3, "Ajj~%" },
		{ "200", "application/grpc", "3", "%4", 3, "%4" },
		{ "200", "application/grpc", "3", "%41", 3, "A" },
		{ "200", "application/grpc", "3", "%g1%1g%/1%:1%@1%`1", 3, "%g1%1g%/1%:1%@1%`1" },
		{ "200", "application/grpc", "3", "%2541", 3, "%41" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct vdi_h2_answer answer = { 0 };
		char		     room[200];
		const char	    *words;
		int		     code;

		note(&answer, ":status", cases[i].http);
		if (cases[i].type)
			note(&answer, "content-type", cases[i].type);
		if (cases[i].status)
			note(&answer, "grpc-status", cases[i].status);
		if (cases[i].message)
			note(&answer, "grpc-message", cases[i].message);
		if (cases[i].message)
			note(&answer, "grpc-message", "the first one counts");
		code = vdi_h2_answer_end(&answer, room, sizeof room, &words);
		if (code != cases[i].code || strcmp(words, cases[i].words) != 0)
			fail_msg("%zu: %d %s", i, code, words);
		vdi_h2_answer_fini(&answer);
		assert_null(answer.words);
		assert_false(answer.has_status);
	}
}

static void only_an_encoding_is_encoded(void **state)
{
	struct vdi_h2_answer answer = { 0 };

	(void) state;
	note(&answer, "grpc-encoding", "identity");
	assert_false(answer.is_encoded);
	note(&answer, "grpc-encoding", "gzip");
	assert_true(answer.is_encoded);
	note(&answer, "other", "identity");
	assert_true(answer.is_encoded);
	vdi_h2_answer_fini(&answer);
}

static void resets_have_codes(void **state)
{
	static const struct {
		uint32_t error;
		int	 code;
	} cases[] = { { NGHTTP2_REFUSED_STREAM, VDI_RPC_UNAVAILABLE },
		      { NGHTTP2_CANCEL, VDI_RPC_CANCELED },
		      { NGHTTP2_ENHANCE_YOUR_CALM, VDI_RPC_RESOURCE_EXHAUSTED },
		      { NGHTTP2_INADEQUATE_SECURITY, VDI_RPC_PERMISSION_DENIED },
		      { NGHTTP2_INTERNAL_ERROR, VDI_RPC_INTERNAL },
		      { NGHTTP2_NO_ERROR, VDI_RPC_INTERNAL },
		      { 77, VDI_RPC_INTERNAL } };
	char room[200];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		assert_int_equal(vdi_h2_reset_end(cases[i].error, room, sizeof room), cases[i].code);
		assert_int_equal(strncmp(room, "stream terminated by RST_STREAM with error code: ", 49), 0);
	}
}

/* Each character of a name and of a value, and the padding of binary ones. */
static void names_and_values_are_of_legal_characters(void **state)
{
	(void) state;
	for (int c = 1; c < 256; c++) {
		char			key[3] = { 'k', (char) c, 0 }, value[1] = { (char) c };
		struct vdi_rpc_metadata of_key = { key, vd_bytes_of("v") }, of_value = { "k", { value, 1 } },
					binary = { "k-bin", { value, 1 } };
		bool is_legal_key =
			(c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
		struct vdi_h2_pairs pairs;

		assert_status(vdi_h2_pairs_make(&of_key, 1, &pairs),
			      is_legal_key ? VD_OK : VD_INVALID_ARGUMENT);
		if (is_legal_key)
			vdi_free(pairs.list);
		assert_status(vdi_h2_pairs_make(&of_value, 1, &pairs),
			      c >= 0x20 && c <= 0x7e ? VD_OK : VD_INVALID_ARGUMENT);
		if (c >= 0x20 && c <= 0x7e)
			vdi_free(pairs.list);
		assert_status(vdi_h2_pairs_make(&binary, 1, &pairs), VD_OK);
		assert_int_equal(pairs.list[0].valuelen, 2);
		vdi_free(pairs.list);
	}
	/* "-bin" alone is a name like any other. */
	{
		struct vdi_rpc_metadata alone = { "-bin", { "\0", 1 } };
		struct vdi_h2_pairs	pairs;

		assert_status(vdi_h2_pairs_make(&alone, 1, &pairs), VD_INVALID_ARGUMENT);
	}
}

/* A value is a piece of something longer: what stands behind it does not count. */
static void what_stands_behind_a_value_does_not_count(void **state)
{
	static const struct {
		const char *name, *text;
		size_t	    size;
		int	    code;
		const char *words;
	} cases[] = {
		{ "grpc-message", "50%25", 5, VDI_RPC_NOT_FOUND, "50%" },
		{ "grpc-message", "50%25", 4, VDI_RPC_NOT_FOUND, "50%2" },
		{ "grpc-message", "50%25", 3, VDI_RPC_NOT_FOUND, "50%" },
		{ "grpc-message", "words", 3, VDI_RPC_NOT_FOUND, "wor" },
		{ "content-type", "application/grpcx", 16, VDI_RPC_NOT_FOUND, "" },
		{ "content-type", "application/grpc+proto", 17, VDI_RPC_NOT_FOUND, "" },
		{ ":status", "2001", 3, VDI_RPC_NOT_FOUND, "" },
		{ "grpc-statusx", "7", 1, VDI_RPC_NOT_FOUND, "" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct vdi_h2_answer answer = { 0 };
		char		     room[200];
		const char	    *words;

		note(&answer, ":status", "200");
		note(&answer, "content-type", "application/grpc");
		vdi_h2_answer_note(&answer, vd_bytes_of("grpc-status"), (struct vd_bytes) { "51", 1 });
		vdi_h2_answer_note(&answer, vd_bytes_of(cases[i].name),
				   (struct vd_bytes) { cases[i].text, cases[i].size });
		assert_int_equal(vdi_h2_answer_end(&answer, room, sizeof room, &words), cases[i].code);
		assert_string_equal(words, cases[i].words);
		vdi_h2_answer_fini(&answer);
	}
}

/* Each letter that may stand in a key, and the first and last that may stand in a value. */
static void keys_and_values_up_to_their_borders(void **state)
{
	struct vdi_h2_pairs pairs;

	(void) state;
	for (unsigned c = 1; c < 256; c++) {
		const char		key[] = { 'k', (char) c, 0 }, value[] = { (char) c };
		struct vdi_rpc_metadata in_key = { key, { "x", 1 } }, in_value = { "key", { value, 1 } },
					in_bytes = { "key-bin", { value, 1 } };
		bool is_letter =
			(c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';

		assert_status(vdi_h2_pairs_make(&in_key, 1, &pairs), is_letter ? VD_OK : VD_INVALID_ARGUMENT);
		if (is_letter)
			vdi_free(pairs.list);
		assert_status(vdi_h2_pairs_make(&in_value, 1, &pairs),
			      c >= 0x20 && c <= 0x7e ? VD_OK : VD_INVALID_ARGUMENT);
		if (c >= 0x20 && c <= 0x7e)
			vdi_free(pairs.list);
		assert_status(vdi_h2_pairs_make(&in_bytes, 1, &pairs), VD_OK);
		vdi_free(pairs.list);
	}
	assert_status(vdi_h2_pairs_make(&(struct vdi_rpc_metadata) { "-bin", { "\1", 1 } }, 1, &pairs),
		      VD_INVALID_ARGUMENT);
	assert_status(vdi_h2_pairs_make(&(struct vdi_rpc_metadata) { "a-bin", { "\1", 1 } }, 1, &pairs),
		      VD_OK);
	vdi_free(pairs.list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeouts_as_text),
		cmocka_unit_test(pairs_are_checked_and_copied),
		cmocka_unit_test(words_are_bounded_and_of_one_line_of_bytes),
		cmocka_unit_test(each_answer_has_its_code_and_words),
		cmocka_unit_test(only_an_encoding_is_encoded),
		cmocka_unit_test(resets_have_codes),
		cmocka_unit_test(names_and_values_are_of_legal_characters),
		cmocka_unit_test(what_stands_behind_a_value_does_not_count),
		cmocka_unit_test(keys_and_values_up_to_their_borders),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
