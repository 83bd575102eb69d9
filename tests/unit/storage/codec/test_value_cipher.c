/* Unit tests of storage/codec/value_cipher.c: every rule with every form of a value, sizes, and which keys
 * are covered. */
#include "vdtest.h"

#include "value_cipher.h"

#define K(text) vd_bytes_of(text)
#define HEAD "k8s:enc:aesgcm:v1:"
#define SECRET_A "0123456789abcdef0123456789abcdef"
#define SECRET_B "fedcba9876543210fedcba98"

static const struct vd_encryption_key key_a = { { "a", 1 }, { SECRET_A, 32 } },
				      key_b = { { "b", 1 }, { SECRET_B, 24 } };

static struct vdi_value_cipher *cipher_of(const struct vd_encryption_rule *rules, size_t count)
{
	struct vdi_value_cipher *cipher = NULL;

	assert_status(vdi_value_cipher_new(rules, count, &cipher, NULL), VD_OK);
	return cipher;
}

/* The rules of one prefix that there are: keys, and what may be plain. */
static const struct rule_row {
	const char *keys; /* in order: 'a', 'b' */
	bool	    writes_plain, reads_plain;
} rule_rows[] = {
	{ "a", false, false }, { "a", false, true },   { "a", true, false },
	{ "a", true, true },   { "ab", false, false }, { "ba", false, false },
	{ "ba", true, false }, { "b", false, true },   { "", true, true },
};

static struct vdi_value_cipher *cipher_of_row(const struct rule_row *row)
{
	struct vd_encryption_key  keys[2];
	struct vd_encryption_rule rule = { .prefix = K("/s/"),
					   .keys = keys,
					   .key_count = strlen(row->keys),
					   .writes_plain = row->writes_plain,
					   .reads_plain = row->reads_plain };

	for (size_t i = 0; i < rule.key_count; i++)
		keys[i] = row->keys[i] == 'a' ? key_a : key_b;
	return cipher_of(&rule, 1);
}

/* Each rule reads what each other one wrote: fresh exactly when it would write it so itself. */
static void r145_every_rule_reads_what_every_other_wrote(void **state)
{
	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rule_rows); i++)
		for (size_t j = 0; j < VDI_ARRAY_SIZE(rule_rows); j++) {
			const struct rule_row	*writer_row = &rule_rows[i], *reader_row = &rule_rows[j];
			struct vdi_value_cipher *writer = cipher_of_row(writer_row),
						*reader = cipher_of_row(reader_row);
			struct vd_bytes	       value = K("value"), stored = value;
			char		       room[5 + VDI_CIPHER_OVERHEAD], plain[sizeof room];
			size_t		       size = 99, plain_size = 99;
			bool		       is_plain = false;
			enum vdi_cipher_result result, expected;
			const char	      *found;

			assert_status(vdi_value_cipher_encrypt(writer, K("/s/x"), value, room, &size), VD_OK);
			assert_int_equal(size == 0, writer_row->writes_plain);
			if (size) {
				assert_int_equal(size, sizeof HEAD - 1 + 2 + 12 + 5 + 16);
				assert_memory_equal(room, HEAD, sizeof HEAD - 1);
				assert_true(room[sizeof HEAD - 1] == writer_row->keys[0] &&
					    room[sizeof HEAD] == ':');
				stored = (struct vd_bytes) { room, size };
				found = strchr(reader_row->keys, writer_row->keys[0]);
				expected = found == NULL ? VDI_CIPHER_UNREADABLE :
					   found == reader_row->keys && !reader_row->writes_plain ?
							   VDI_CIPHER_FRESH :
							   VDI_CIPHER_STALE;
			} else {
				expected = reader_row->writes_plain ? VDI_CIPHER_FRESH :
					   reader_row->reads_plain  ? VDI_CIPHER_STALE :
								      VDI_CIPHER_UNREADABLE;
			}
			result = vdi_value_cipher_decrypt(reader, K("/s/x"), stored, plain, &plain_size,
							  &is_plain);
			if (result != expected)
				fail_msg("rule %zu wrote, rule %zu read: %d, expected %d", i, j, (int) result,
					 (int) expected);
			assert_int_equal(is_plain, writer_row->writes_plain);
			if (!is_plain && result != VDI_CIPHER_UNREADABLE) {
				assert_int_equal(plain_size, 5);
				assert_memory_equal(plain, "value", 5);
			}
			vdi_value_cipher_unref(writer);
			vdi_value_cipher_unref(reader);
		}
}

/* Made by another implementation of AES-GCM: nonce "abcdefghijkl", the key "/s/x" authenticated. The size of
 * the secret says which AES it is. */
static void r145_each_size_of_a_secret_is_its_own_algorithm(void **state)
{
	static const struct {
		struct vd_encryption_key key;
		const char		*sealed;
	} rows[] = {
		{ { { "a", 1 }, { "fedcba9876543210", 16 } },
		  "\x3f\xb9\x32\x14\x08\x7a\x17\x3f\xb0\x80\x73\x21\xe1\xdb\x44\x43\x09\x13\x39\x11\xeb" },
		{ { { "a", 1 }, { SECRET_B, 24 } },
		  "\x58\x3b\x85\xf2\x66\x6e\x70\xb4\xe1\xd2\xef\xdd\x13\xb2\x78\x5a\xdb\x10\x42\xad\x58" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_encryption_rule rule = { .prefix = K("/s/"), .keys = &rows[i].key, .key_count = 1 };
		struct vdi_value_cipher	 *cipher = cipher_of(&rule, 1);
		char   value[] = HEAD "a:abcdefghijklVALUEnumberand sixteen", plain[sizeof value];
		size_t size = 0;
		bool   is_plain;

		memcpy(value + sizeof HEAD - 1 + 2 + 12, rows[i].sealed, 21);
		assert_int_equal(
			vdi_value_cipher_decrypt(cipher, K("/s/x"),
						 (struct vd_bytes) { value, sizeof HEAD - 1 + 2 + 12 + 21 },
						 plain, &size, &is_plain),
			VDI_CIPHER_FRESH);
		assert_int_equal(size, 5);
		assert_memory_equal(plain, "value", 5);
		vdi_value_cipher_unref(cipher);
	}
}

static void keys_without_a_rule_stay_as_they_are(void **state)
{
	struct vdi_value_cipher *cipher = cipher_of_row(&rule_rows[0]);
	char			 room[64 + VDI_CIPHER_OVERHEAD];
	bool			 is_plain = false;
	size_t			 size = 99;

	(void) state;
	assert_status(vdi_value_cipher_encrypt(cipher, K("/p/x"), K("value"), room, &size), VD_OK);
	assert_int_equal(size, 0);
	assert_int_equal(vdi_value_cipher_decrypt(cipher, K("/p/x"), K("value"), room, &size, &is_plain),
			 VDI_CIPHER_FRESH);
	assert_true(is_plain);
	is_plain = false;
	assert_int_equal(
		vdi_value_cipher_decrypt(cipher, K("/p/x"), K(HEAD "a:value"), room, &size, &is_plain),
		VDI_CIPHER_FRESH);
	assert_true(is_plain);
	vdi_value_cipher_unref(cipher);
}

/* Of two rules the first that matches counts; two keys may have one name. */
static void the_first_rule_that_matches_counts(void **state)
{
	static const struct vd_encryption_key  same[] = { { { "a", 1 }, { SECRET_B, 24 } },
							  { { "a", 1 }, { SECRET_A, 32 } } };
	static const struct vd_encryption_rule rules[] = {
		{ .prefix = { "/s/x", 4 }, .writes_plain = true, .reads_plain = true },
		{ .prefix = { "/s/", 3 }, .keys = same, .key_count = 2 },
	};
	struct vdi_value_cipher *cipher = cipher_of(rules, 2), *other = cipher_of_row(&rule_rows[0]);
	char			 room[5 + VDI_CIPHER_OVERHEAD], plain[sizeof room];
	size_t			 size, plain_size;
	bool			 is_plain;

	(void) state;
	assert_status(vdi_value_cipher_encrypt(cipher, K("/s/x"), K("value"), room, &size), VD_OK);
	assert_int_equal(size, 0);
	assert_status(vdi_value_cipher_encrypt(cipher, K("/s/y"), K("value"), room, &size), VD_OK);
	assert_int_not_equal(size, 0);
	assert_int_equal(vdi_value_cipher_decrypt(cipher, K("/s/y"), (struct vd_bytes) { room, size }, plain,
						  &plain_size, &is_plain),
			 VDI_CIPHER_FRESH);
	assert_int_equal(vdi_value_cipher_decrypt(other, K("/s/y"), (struct vd_bytes) { room, size }, plain,
						  &plain_size, &is_plain),
			 VDI_CIPHER_UNREADABLE);
	assert_status(vdi_value_cipher_encrypt(other, K("/s/y"), K("value"), room, &size), VD_OK);
	assert_int_equal(vdi_value_cipher_decrypt(cipher, K("/s/y"), (struct vd_bytes) { room, size }, plain,
						  &plain_size, &is_plain),
			 VDI_CIPHER_STALE);
	assert_memory_equal(plain, "value", 5);
	vdi_value_cipher_unref(cipher);
	vdi_value_cipher_unref(other);
}

/* Values of any size, the empty one included; cut short by any number of bytes they are refused. */
static void r145_values_of_any_size(void **state)
{
	struct vdi_value_cipher *cipher = cipher_of_row(&rule_rows[0]);

	(void) state;
	for (size_t size = 0; size < 70; size++) {
		char *value = malloc(size + 1), *room = malloc(size + VDI_CIPHER_OVERHEAD),
		     *plain = malloc(size + VDI_CIPHER_OVERHEAD);
		size_t sealed, plain_size = 0;
		bool   is_plain;

		memset(value, (int) ('A' + size), size + 1);
		assert_status(vdi_value_cipher_encrypt(cipher, K("/s/x"), (struct vd_bytes) { value, size },
						       room, &sealed),
			      VD_OK);
		assert_int_equal(vdi_value_cipher_decrypt(cipher, K("/s/x"),
							  (struct vd_bytes) { room, sealed }, plain,
							  &plain_size, &is_plain),
				 VDI_CIPHER_FRESH);
		assert_int_equal(plain_size, size);
		assert_memory_equal(plain, value, size);
		for (size_t cut = 1; cut < sealed && cut < 60; cut++) {
			char *exact = malloc(sealed - cut);

			memcpy(exact, room, sealed - cut);
			assert_int_equal(vdi_value_cipher_decrypt(cipher, K("/s/x"),
								  (struct vd_bytes) { exact, sealed - cut },
								  plain, &plain_size, &is_plain),
					 VDI_CIPHER_UNREADABLE);
			free(exact);
		}
		assert_int_equal(vdi_value_cipher_decrypt(cipher, K("/s/y"),
							  (struct vd_bytes) { room, sealed }, plain,
							  &plain_size, &is_plain),
				 VDI_CIPHER_UNREADABLE);
		free(value);
		free(room);
		free(plain);
	}
	vdi_value_cipher_unref(cipher);
}

static void rules_are_checked(void **state)
{
	char			  name[VDI_CIPHER_NAME_MAX + 1], secret[40] = { 0 };
	struct vdi_value_cipher	 *cipher;
	struct vd_encryption_key  key = { { name, 1 }, { secret, 16 } };
	struct vd_encryption_rule rule = { .keys = &key, .key_count = 1 };

	(void) state;
	memset(name, 'n', sizeof name);
	for (size_t size = 0; size <= sizeof name; size++) {
		struct vd_error error = { 0 };

		key.name.size = size;
		cipher = NULL;
		assert_status(vdi_value_cipher_new(&rule, 1, &cipher, &error),
			      size >= 1 && size <= VDI_CIPHER_NAME_MAX ? VD_OK : VD_INVALID_ARGUMENT);
		assert_int_equal(cipher == NULL, error.message[0] != 0);
		vdi_value_cipher_unref(cipher);
	}
	key.name = K("a:b");
	assert_status(vdi_value_cipher_new(&rule, 1, &cipher, NULL), VD_INVALID_ARGUMENT);
	key.name = K("n");
	for (size_t size = 0; size <= sizeof secret; size++) {
		key.secret.size = size;
		cipher = NULL;
		assert_status(vdi_value_cipher_new(&rule, 1, &cipher, NULL),
			      size == 16 || size == 24 || size == 32 ? VD_OK : VD_INVALID_ARGUMENT);
		vdi_value_cipher_unref(cipher);
	}
	rule.key_count = 0;
	for (unsigned i = 0; i < 4; i++) {
		rule.writes_plain = i & 1;
		rule.reads_plain = i & 2;
		cipher = NULL;
		assert_status(vdi_value_cipher_new(&rule, 1, &cipher, NULL),
			      i == 3 ? VD_OK : VD_INVALID_ARGUMENT);
		vdi_value_cipher_unref(cipher);
	}
}

static void keys_and_ranges_are_covered_by_prefix(void **state)
{
	static const struct vd_encryption_rule rules[] = {
		{ .prefix = { "/b/", 3 }, .keys = &key_a, .key_count = 1 },
		{ .prefix = { "/d/x", 4 }, .keys = &key_b, .key_count = 1 },
	};
	static const struct {
		const char *key, *end;
		bool	    is_covered;
	} rows[] = {
		{ "/b/", "", true },	  { "/b/1", "", true },	    { "/b", "", false },
		{ "/a/", "", false },	  { "/c/", "", false },	    { "/d/", "", false },
		{ "/d/x", "", true },	  { "/d/xy", "", true },    { "/a", "/b", false },
		{ "/a", "/b/", false },	  { "/a", "/b0", true },    { "/b/1", "/b/2", true },
		{ "/b0", "/d/x", false }, { "/b0", "/d/x1", true }, { "/d/y", "/e", false },
		{ "/", "0", true },
	};
	struct vdi_value_cipher *cipher = cipher_of(rules, 2);

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		if (*rows[i].end == 0)
			assert_int_equal(vdi_value_cipher_covers(cipher, K(rows[i].key)), rows[i].is_covered);
		if (vdi_value_cipher_covers_range(cipher, K(rows[i].key), K(rows[i].end)) !=
		    rows[i].is_covered)
			fail_msg("[%s, %s)", rows[i].key, rows[i].end);
	}
	vdi_value_cipher_unref(cipher);
	vdi_value_cipher_unref(NULL);
}

static void every_failed_allocation_is_reported(void **state)
{
	struct vd_encryption_rule rule = { .prefix = K("/s/"), .keys = &key_a, .key_count = 1 };
	int64_t			  live = vdi_alloc_live();
	vd_status		  status = VD_NOMEM;

	(void) state;
	for (uint64_t nth = 1; status == VD_NOMEM; nth++) {
		struct vdi_value_cipher *cipher = NULL;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_value_cipher_new(&rule, 1, &cipher, NULL);
		vdi_alloc_fail_nth(0, 0);
		assert_int_equal(cipher != NULL, status == VD_OK);
		vdi_value_cipher_unref(cipher);
		assert_int_equal(vdi_alloc_live(), live);
	}
	assert_status(status, VD_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r145_every_rule_reads_what_every_other_wrote),
		cmocka_unit_test(r145_each_size_of_a_secret_is_its_own_algorithm),
		cmocka_unit_test(keys_without_a_rule_stay_as_they_are),
		cmocka_unit_test(the_first_rule_that_matches_counts),
		cmocka_unit_test(r145_values_of_any_size),
		cmocka_unit_test(rules_are_checked),
		cmocka_unit_test(keys_and_ranges_are_covered_by_prefix),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
