/* The token file: rows, field errors with their line, what is found. */
#include "vdtest.h"

#include "tokens.h"

static struct vdi_tokens *parse(const char *text)
{
	struct vdi_tokens *tokens;
	struct vd_error	   error = { 0 };
	vd_status	   status = vdi_tokens_parse(vd_bytes_of(text), &tokens, &error);

	if (status != VD_OK)
		fail_msg("%s", error.message);
	return tokens;
}

static void rows_name_users_and_groups(void **state)
{
	struct vdi_tokens *tokens =
		parse("# people\n\ns3cret,ann,17,\"dev, ops\"\r\n \"to,ken\" , bob ,\nplain,eve,9,dev\n");
	struct vdi_identity *ann = vdi_tokens_find(tokens, vd_bytes_of("s3cret")),
			    *bob = vdi_tokens_find(tokens, vd_bytes_of("to,ken"));

	assert_non_null(ann);
	assert_string_equal(ann->user, "ann");
	assert_string_equal(ann->uid, "17");
	assert_int_equal(ann->group_count, 3);
	assert_string_equal(ann->groups[0], "dev");
	assert_string_equal(ann->groups[1], "ops");
	assert_string_equal(ann->groups[2], "system:authenticated");
	assert_non_null(bob);
	assert_string_equal(bob->user, "bob");
	assert_string_equal(bob->uid, "");
	assert_true(vdi_identity_is_in(bob, VDI_GROUP_AUTHENTICATED));
	assert_false(vdi_identity_is_in(bob, "dev"));
	assert_string_equal(vdi_tokens_find(tokens, vd_bytes_of("plain"))->groups[0], "dev");
	assert_null(vdi_tokens_find(tokens, vd_bytes_of("s3cre")));
	assert_null(vdi_tokens_find(tokens, vd_bytes_of("s3cret ")));
	assert_null(vdi_tokens_find(tokens, VD_BYTES_NONE));
	(void) vdi_tokens_free(tokens);
}

/* Nobody knows a token of a file without rows. */
static void an_empty_file_is_fine(void **state)
{
	struct vdi_tokens *tokens = parse("");

	assert_null(vdi_tokens_find(tokens, vd_bytes_of("a")));
	(void) vdi_tokens_free(tokens);
}

static void groups_have_a_maximum(void **state)
{
	for (int groups = VDI_IDENTITY_GROUPS_MAX - 1; groups <= VDI_IDENTITY_GROUPS_MAX + 1; groups++) {
		struct vdi_tokens *tokens = NULL;
		struct vd_error	   error = { 0 };
		char		   text[32 * (VDI_IDENTITY_GROUPS_MAX + 2)] = "t,ann,1,\"", wanted[64];

		for (int i = 0; i < groups; i++)
			(void) snprintf(text + strlen(text), sizeof text - strlen(text), "%sg%d",
					i ? "," : "", i);
		strcat(text, ", ,\"\n"); /* an empty one is none */
		assert_status(vdi_tokens_parse(vd_bytes_of(text), &tokens, &error),
			      groups > VDI_IDENTITY_GROUPS_MAX ? VD_INVALID : VD_OK);
		if (groups > VDI_IDENTITY_GROUPS_MAX) {
			(void) snprintf(wanted, sizeof wanted, "line 1: more than %d groups",
					VDI_IDENTITY_GROUPS_MAX);
			assert_string_equal(error.message, wanted);
		} else {
			assert_int_equal(vdi_tokens_find(tokens, vd_bytes_of("t"))->group_count,
					 groups + 1); /* and that of all who are known */
		}
		(void) vdi_tokens_free(tokens);
	}
}

static void an_identity_outlives_its_file(void **state)
{
	struct vdi_tokens   *tokens = parse("a,ann,1\n");
	struct vdi_identity *ann = vdi_identity_ref(vdi_tokens_find(tokens, vd_bytes_of("a")));

	(void) vdi_tokens_free(tokens);
	assert_string_equal(ann->user, "ann");
	(void) vdi_identity_unref(ann);
}

static void field_errors_name_their_line_and_no_token(void **state)
{
	static const char *const rows[][2] = {
		{ "hidden,ann\n", "line 1: needs token, user and uid" },
		{ "a,ann,1\n\nhidden,,2\n", "line 3: needs token, user and uid" },
		{ ",ann,1", "line 1: needs token" },
		{ "hidden,ann,1,dev,ops", "line 1: more than 4 fields" },
		{ "\"hidden,ann,1", "line 1: a quote" },
		{ "\"hidden\"x,ann,1", "line 1: a quote" },
		{ "hidden,ann,1\nhidden,bob,2\n", "line 2: an earlier line has the same token" }
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tokens *tokens;
		struct vd_error	   error = { 0 };

		assert_status(vdi_tokens_parse(vd_bytes_of(rows[i][0]), &tokens, &error), VD_INVALID);
		if (strstr(error.message, rows[i][1]) != error.message)
			fail_msg("row %zu: %s", i, error.message);
		assert_null(strstr(error.message, "hidden"));
	}
}

static void a_nul_and_a_long_token_are_refused(void **state)
{
	struct vdi_tokens *tokens;
	struct vd_error	   error;
	char		  *text = malloc(VDI_TOKEN_SIZE_MAX + 64);

	assert_status(vdi_tokens_parse((struct vd_bytes) { "a\0b,ann,1", 9 }, &tokens, &error), VD_INVALID);
	memset(text, 'x', VDI_TOKEN_SIZE_MAX + 1);
	strcpy(text + VDI_TOKEN_SIZE_MAX + 1, ",ann,1");
	assert_status(vdi_tokens_parse(vd_bytes_of(text), &tokens, &error), VD_INVALID);
	tokens = parse(text + 1); /* exactly the limit */
	assert_non_null(vdi_tokens_find(tokens, (struct vd_bytes) { text, VDI_TOKEN_SIZE_MAX }));
	assert_null(vdi_tokens_find(tokens, (struct vd_bytes) { text, VDI_TOKEN_SIZE_MAX + 1 }));
	(void) vdi_tokens_free(tokens);
	free(text);
}

static void without_memory_nothing_is_lost(void **state)
{
	for (int64_t n = 1;; n++) {
		struct vdi_tokens *tokens = NULL;
		vd_status	   status;

		(void) vdi_alloc_fail_nth((uint64_t) n, 1);
		status = vdi_tokens_parse(vd_bytes_of("a,ann,1,\"x,y\"\nb,bob,2\n"), &tokens, NULL);
		(void) vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK) {
			(void) vdi_tokens_free(tokens);
			assert_true(n > 3);
			return;
		}
		assert_status(status, VD_NOMEM);
	}
}

/* Bytes behind the text, such as the rest of a longer file, do not change the result. */
static void nothing_is_read_behind_the_end(void **state)
{
	static const char file[] = "\"to,ken\" , \"bob\",7,\"dev, ops\"\t \r\nplain,eve,9,dev,\nb,ann,";
	static const char tails[] = "\", \nx#";

	for (size_t size = 0; size < sizeof file; size++) {
		struct vd_error first = { 0 };
		vd_status	first_status = VD_OK;

		for (size_t tail = 0; tail < sizeof tails; tail++) {
			struct vdi_tokens *tokens = NULL;
			struct vd_error	   error = { 0 };
			char		   text[sizeof file + 8];
			vd_status	   status;

			memcpy(text, file, size);
			memset(text + size, tails[tail], 8);
			status = vdi_tokens_parse((struct vd_bytes) { text, size }, &tokens, &error);
			if (tail == 0) {
				first = error;
				first_status = status;
			}
			assert_status(status, first_status);
			assert_string_equal(error.message, first.message);
			if (status == VD_OK && size > 30)
				assert_non_null(vdi_tokens_find(tokens, vd_bytes_of("to,ken")));
			(void) vdi_tokens_free(tokens);
		}
	}
}

static void tokens_have_a_maximum(void **state)
{
	struct vdi_tokens *tokens = NULL;
	struct vd_error	   error = { 0 };
	char		  *text = malloc((size_t) 20 * (VDI_TOKENS_MAX + 2)), wanted[80];
	size_t		   size = 0;

	for (int i = 0; i < VDI_TOKENS_MAX; i++)
		size += (size_t) sprintf(text + size, "t%d,u,1\n", i);
	assert_status(vdi_tokens_parse((struct vd_bytes) { text, size }, &tokens, NULL), VD_OK);
	(void) vdi_tokens_free(tokens);
	size += (size_t) sprintf(text + size, "t,u,1\n");
	assert_status(vdi_tokens_parse((struct vd_bytes) { text, size }, &tokens, &error), VD_INVALID);
	(void) snprintf(wanted, sizeof wanted, "line %d: more than %d tokens", VDI_TOKENS_MAX + 1,
			VDI_TOKENS_MAX);
	assert_string_equal(error.message, wanted);
	free(text);
}

static void fields_are_trimmed(void **state)
{
	struct vdi_tokens   *tokens = parse(" \ta b , ann\t,\t ,\tdev \r\n\t#, no row\n \t\n"
					      "\"c\" ,\t\"u\"\t,\"\",\" x ,, y\t\" \r\n");
	struct vdi_identity *found = vdi_tokens_find(tokens, vd_bytes_of("a b"));

	assert_non_null(found);
	assert_string_equal(found->user, "ann");
	assert_string_equal(found->uid, "");
	assert_int_equal(found->group_count, 2);
	assert_string_equal(found->groups[0], "dev");
	found = vdi_tokens_find(tokens, vd_bytes_of("c"));
	assert_non_null(found);
	assert_string_equal(found->user, "u");
	assert_int_equal(found->group_count, 3);
	assert_string_equal(found->groups[0], "x");
	assert_string_equal(found->groups[1], "y");
	(void) vdi_tokens_free(tokens);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_read_behind_the_end),
		cmocka_unit_test(tokens_have_a_maximum),
		cmocka_unit_test(fields_are_trimmed),
		cmocka_unit_test(rows_name_users_and_groups),
		cmocka_unit_test(an_empty_file_is_fine),
		cmocka_unit_test(an_identity_outlives_its_file),
		cmocka_unit_test(groups_have_a_maximum),
		cmocka_unit_test(field_errors_name_their_line_and_no_token),
		cmocka_unit_test(a_nul_and_a_long_token_are_refused),
		cmocka_unit_test(without_memory_nothing_is_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
