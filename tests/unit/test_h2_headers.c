#include "h2_client_state.h"
#include "vdtest.h"

static void timeouts_as_text(void **state)
{
	static const struct {
		int64_t	    ns;
		const char *text;
	} cases[] = {
		{ -5, "1n" },		  { 1, "1n" },			{ 99999999, "99999999n" }, { 100000000, "100000u" }, { 100000001, "100001u" },
		{ 5000000000, "5000000u" }, { 100000000000, "100000m" }, { 360000000000000, "360000S" },
		{ INT64_MAX / 2, "76861434M" }, { INT64_MAX, "2562048H" },
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
	struct vdi_rpc_metadata metadata[] = { { "a-key", vd_bytes_of("value") }, { "x-bin", { "\0\1\2\3", 4 } }, { "empty", VD_BYTES_NONE } };
	struct vdi_h2_pairs	pairs;
	static const struct vdi_rpc_metadata bad[] = {
		{ "", { "x", 1 } }, { "Upper", { "x", 1 } }, { ":path", { "x", 1 } }, { "a b", { "x", 1 } }, { "key", { "\n", 1 } }, { "key", { "\x80", 1 } }, { "key", { "\0", 1 } },
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(timeouts_as_text),
		cmocka_unit_test(pairs_are_checked_and_copied),
		cmocka_unit_test(words_are_bounded_and_of_one_line_of_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
