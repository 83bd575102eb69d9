/* Unit tests of lib/json/tree.c: lists stay whole whatever is put in and taken out, and no choice of keys
 * makes look-ups slow. */
#include "hash.h"
#include "rand.h"
#include "table.h"
#include "tree.h"
#include "vdtest.h"

#define COLLIDING 1500

/* Keys whose hashes without a seed agree in all bits that a table of this size looks at. */
static void find_colliding(char keys[COLLIDING][16])
{
	uint32_t mask = 8191;

	for (unsigned number = 0, found = 0; found < COLLIDING; number++) {
		(void) snprintf(keys[found], sizeof keys[found], "k%u", number);
		found += ((uint32_t) vdi_hash_bytes(vd_bytes_of(keys[found]), 0) & mask) == 7;
	}
}

static void members_that_collide_without_a_seed_are_found_fast(void **state)
{
	static char	 keys[COLLIDING][16];
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_out	 text = VDI_OUT_INIT;
	struct vdi_node *root;

	(void) state;
	find_colliding(keys);
	vdi_out_raw(&text, "{");
	for (size_t i = 0; i < COLLIDING; i++)
		vdi_out_printf(&text, "%s\"%s\":1", i ? "," : "", keys[i]);
	vdi_out_raw(&text, "}");
	assert_status(vdi_tree_parse(&tree, vdi_out_slice(&text), &root, NULL), VD_OK);
	for (size_t i = 0; i < COLLIDING; i++)
		assert_non_null(vdi_tree_get(&tree, root, vd_bytes_of(keys[i])));
	for (size_t i = 0; i < COLLIDING; i++)
		assert_true(vdi_tree_remove(&tree, root, vd_bytes_of(keys[i])));
	/* Without the seed each of them walks past all that came before: more than COLLIDING * COLLIDING. */
	assert_in_range(tree.steps, COLLIDING, COLLIDING * 40);
	vdi_tree_fini(&tree);
	vdi_out_fini(&text);
}

static void the_seed_is_one_and_secret(void **state)
{
	(void) state;
	assert_true(vdi_hash_seed() != 0);
	assert_true(vdi_hash_seed() == vdi_hash_seed());
}

#define MODEL_MAX 64

/* The same children in the same order, read from both ends. */
static void assert_children(const struct vdi_node *array, const int64_t model[MODEL_MAX], size_t count)
{
	const struct vdi_node *at = array->first;

	assert_int_equal(array->count, count);
	for (size_t i = 0; i < count; i++, at = at->next)
		assert_int_equal(vdi_tree_int_of(at, -1), model[i]);
	assert_null(at);
	at = vdi_tree_last(array);
	for (size_t i = count; i-- > 0; at = at->previous)
		assert_int_equal(vdi_tree_int_of(at, -1), model[i]);
	assert_ptr_equal(at, vdi_tree_last(array)); /* around */
}

static struct vdi_node *child_at(const struct vdi_node *array, size_t index)
{
	struct vdi_node *at = array->first;

	for (; at && index; index--)
		at = at->next;
	return at;
}

/* Insertions and removals at random places against an array of numbers. */
static void children_are_those_of_the_model(void **state)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *array = vdi_tree_new(&tree, VDI_NODE_ARRAY);
	int64_t		 model[MODEL_MAX];
	size_t		 count = 0;
	struct vdi_rand	 rand;

	(void) state;
	vdi_rand_init(&rand, 42);
	for (int64_t step = 0; step < 20000; step++) {
		size_t at = vdi_rand_below(&rand, count + 1);

		if (count < MODEL_MAX && vdi_rand_below(&rand, 2)) {
			vdi_tree_array_insert(array, child_at(array, at), vdi_tree_new_int(&tree, step));
			memmove(&model[at + 1], &model[at], (count - at) * sizeof *model);
			model[at] = step;
			count++;
		} else if (at < count) {
			vdi_tree_array_remove(array, child_at(array, at));
			memmove(&model[at], &model[at + 1], (count - at - 1) * sizeof *model);
			count--;
		}
		assert_children(array, model, count);
	}
	vdi_tree_fini(&tree);
}

static void a_value_is_measured_and_its_beginning_written(void **state)
{
	static const char    text[] = "{\"a\":[1,true,null,\"xy\"],\"b\":{}}";
	struct vdi_tree	     tree = VDI_TREE_INIT;
	struct vdi_out	     out = VDI_OUT_INIT;
	struct vdi_node	    *root;
	struct vdi_tree_size size;

	(void) state;
	assert_status(vdi_tree_parse(&tree, vd_bytes_of(text), &root, NULL), VD_OK);
	size = vdi_tree_measure(&tree, root);
	assert_int_equal(size.bytes, sizeof text - 1);
	assert_int_equal(size.depth, 3);
	for (size_t max = 0; max < sizeof text; max++) {
		vdi_out_reset(&out);
		vdi_tree_write_begin(&out, root, max);
		assert_true(out.size <= max + 16);
		assert_memory_equal(out.data, text, VDI_MIN(max, out.size));
	}
	vdi_tree_fini(&tree);
	vdi_out_fini(&out);
}

/* What is shown of a huge object takes a bounded number of nodes: metadata is whole wherever it stands, and
 * containers know how many children they have. */
static void a_huge_object_is_shown_in_few_nodes(void **state)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_out	 text = VDI_OUT_INIT;
	struct vdi_node *root;

	(void) state;
	vdi_out_raw(&text, "{\"a\":[");
	for (int i = 0; i < 200000; i++)
		vdi_out_raw(&text, i ? ",[1]" : "\"]},\\\"\"");
	vdi_out_raw(&text, "],\"b\":{\"x\":[1,2]},\"metadata\":{\"name\":\"n\",\"finalizers\":[");
	for (int i = 0; i < 60000; i++)
		vdi_out_raw(&text, i ? ",\"f\"" : "\"f\"");
	vdi_out_raw(&text, "]}}");
	assert_status(vdi_tree_parse_shown(&tree, vdi_out_slice(&text), &root, NULL), VD_OK);
	assert_int_equal(vdi_tree_find(&tree, root, "a")->count, 200000);
	assert_int_equal(root->count, 3);
	assert_null(vdi_tree_find(&tree, root, "b"));
	assert_int_equal(vdi_tree_measure(&tree, vdi_tree_find(&tree, root, "metadata")).bytes,
			 60000 * 4 - 1 + 2 + 26);
	assert_true(vd_bytes_equal(vdi_tree_string_of(vdi_tree_find(&tree, root, "metadata.name")),
				   vd_bytes_of("n")));
	tree.steps = 0;
	(void) vdi_tree_measure(&tree, root);
	assert_in_range(tree.steps, 60000, 60000 + VDI_TREE_SHOWN_MAX + 10);
	vdi_tree_fini(&tree);
	vdi_out_fini(&text);
}

/* A row copies the text of metadata, so not even that is made of more nodes; its members are found all the
 * same, wherever they stand. */
static void a_row_of_huge_metadata_takes_few_nodes(void **state)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_out	 text = VDI_OUT_INIT, row = VDI_OUT_INIT, wanted = VDI_OUT_INIT;
	struct vdi_node *root;
	size_t		 begin;

	(void) state;
	vdi_out_raw(&text, "{\"kind\":\"K\",\"metadata\": ");
	begin = text.size;
	vdi_out_raw(&text, "{\"ownerReferences\":[");
	for (int i = 0; i < 60000; i++)
		vdi_out_raw(&text, i ? ",{\"uid\":\"}\\\"\"}" : "{}");
	vdi_out_raw(&text, "],\"labels\":{\"a\":\"b\"},\"name\":\"n\"}");
	vdi_out_raw(&wanted,
		    "{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/v1\",\"metadata\":");
	vdi_out_bytes(&wanted, (struct vd_bytes) { text.data + begin, text.size - begin });
	vdi_out_raw(&wanted, "}");
	vdi_out_raw(&text, ",\"spec\":{\"metadata\":{\"x\":1}}}");
	assert_status(vdi_tree_parse_row(&tree, vdi_out_slice(&text), &root, NULL), VD_OK);
	assert_int_equal(vdi_tree_find(&tree, root, "metadata.ownerReferences")->count, 60000);
	assert_true(vd_bytes_equal(vdi_tree_string_of(vdi_tree_find(&tree, root, "metadata.name")),
				   vd_bytes_of("n")));
	tree.steps = 0;
	(void) vdi_tree_measure(&tree, root);
	assert_in_range(tree.steps, 20, VDI_TREE_SHOWN_MAX + 10);
	vdi_table_metadata(&row, &tree, root, false);
	assert_true(vd_bytes_equal(vdi_out_slice(&row), vdi_out_slice(&wanted)));
	vdi_tree_fini(&tree);
	vdi_out_fini(&text);
	vdi_out_fini(&row);
	vdi_out_fini(&wanted);
}

/* Two documents are equal when they say the same, whatever the order of their members. */
static void equal_documents(void **state)
{
	static const struct {
		const char *a, *b;
		bool	    equal;
	} rows[] = {
		{ "1", "1", true },
		{ "1", "2", false },
		{ "1", "\"1\"", false },
		{ "true", "false", false },
		{ "null", "null", true },
		{ "null", "false", false },
		{ "{}", "[]", false },
		{ "{}", "{}", true },
		{ "[1,2]", "[1,2]", true },
		{ "[1,2]", "[2,1]", false },
		{ "[1,2]", "[1]", false },
		{ "[1]", "[1,2]", false },
		{ "{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}", true },
		{ "{\"a\":1,\"b\":2}", "{\"b\":1,\"a\":2}", false },
		{ "{\"a\":1}", "{\"b\":1}", false },
		{ "{\"a\":{\"b\":[{}]}}", "{\"a\":{\"b\":[{}]}}", true },
		{ "{\"a\":{\"b\":[{}]}}", "{\"a\":{\"b\":[[]]}}", false },
		{ "{\"a\":\"x\"}", "{\"a\":\"y\"}", false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_node *a, *b;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].a), &a, NULL), VD_OK);
		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].b), &b, NULL), VD_OK);
		if (vdi_tree_equal(&tree, a, b) != rows[i].equal ||
		    vdi_tree_equal(&tree, b, a) != rows[i].equal)
			fail_msg("%s and %s", rows[i].a, rows[i].b);
		assert_false(vdi_tree_equal(&tree, a, NULL));
		assert_false(vdi_tree_equal(&tree, NULL, b));
		assert_true(vdi_tree_equal(&tree, NULL, NULL));
		vdi_tree_fini(&tree);
	}
}

/* What is JSON and what is not, to its last byte; what is read is written again as it was. */
static void documents_are_json(void **state)
{
	static const char *const good[] = { "0",    "-0",   "10",	  "-1.5", "0.25",      "1e5",
					    "1E+5", "1e-5", "1.5e10",	  "\"\"", "\"a\\nb\"", "\"\\u00e9\"",
					    "[]",   "[1]",  "{\"a\":[]}", "true" };
	static const char *const bad[] = { "",	      "-",	  "01",	       "1.",	   ".5",   "1e",
					   "1e+",     "+1",	  "1a",	       "\"",	   "\"\\", "\"\x01\"",
					   "[",	      "[1",	  "[1,",       "[,]",	   "{",	   "{\"a\"",
					   "{\"a\":", "{\"a\":1", "{\"a\":1,", "{a:1}",	   "tru",  "nul",
					   "[1]]",    "1 2",	  "\"\\x\"",   "\"\\u12\"" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(good) + VDI_ARRAY_SIZE(bad); i++) {
		const char *text = i < VDI_ARRAY_SIZE(good) ? good[i] : bad[i - VDI_ARRAY_SIZE(good)];
		size_t	    size = strlen(text);
		char *exact = memcpy(malloc(size + !size), text, size); /* no byte behind it may be read */
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_out	 out = VDI_OUT_INIT;
		struct vdi_node *root;
		vd_status status = vdi_tree_parse(&tree, (struct vd_bytes) { exact, size }, &root, NULL);

		if ((status == VD_OK) != (i < VDI_ARRAY_SIZE(good)))
			fail_msg("%s", text);
		if (status == VD_OK && strstr(text, "\\u") == NULL) {
			vdi_tree_write(&out, root);
			if (!vd_bytes_equal(vdi_out_slice(&out), vd_bytes_of(text)))
				fail_msg("%s became %.*s", text, (int) out.size, out.data);
		}
		if (status == VD_OK && strstr(text, "\\u"))
			assert_true(vd_bytes_equal(vdi_tree_string_of(root), vd_bytes_of("\xc3\xa9")));
		vdi_out_fini(&out);
		vdi_tree_fini(&tree);
		free(exact);
	}
}

/* As a book about UTF-8 writes them; 0 for what is no character. */
static size_t naive_utf8(uint32_t c, char to[4])
{
	static const unsigned char leads[] = { 0, 0, 0xC0, 0xE0, 0xF0 };
	size_t			   size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;

	if (c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
		return 0;
	for (size_t i = size - 1; i > 0; i--, c >>= 6)
		to[i] = (char) (0x80 | c % 64);
	to[0] = (char) (size == 1 ? c : leads[size] | c);
	return size;
}

static void assert_string_is(const char *text, size_t size, const char *wanted, size_t wanted_size)
{
	char		*exact = memcpy(malloc(size), text, size); /* no byte behind it may be read */
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	vd_status	 status = vdi_tree_parse(&tree, (struct vd_bytes) { exact, size }, &root, NULL);

	if ((status == VD_OK) != (wanted != NULL) ||
	    (wanted && !vd_bytes_equal(vdi_tree_string_of(root), (struct vd_bytes) { wanted, wanted_size })))
		fail_msg("%.*s", (int) size, text);
	vdi_tree_fini(&tree);
	free(exact);
}

static void every_escape_is_the_character_it_names(void **state)
{
	char text[40], utf8[4];

	for (uint32_t c = 0; c < 0x10000; c += c < 0x900 || (c >= 0xD700 && c < 0xE100) ? 1 : 37) {
		size_t size = naive_utf8(c, utf8);

		for (int i = 0; i < 2; i++) {
			size_t length = (size_t) (i ? snprintf(text, sizeof text, "\"\\u%04X\"", c) :
						      snprintf(text, sizeof text, "\"\\u%04x\"", c));

			assert_string_is(text, length, size ? utf8 : NULL, size);
		}
	}
	for (uint32_t c = 0x10000; c < 0x110000; c += c < 0x10900 || c > 0x10FF00 ? 1 : 331) {
		size_t size = naive_utf8(c, utf8);

		assert_string_is(text,
				 (size_t) snprintf(text, sizeof text, "\"\\u%04x\\u%04X\"",
						   0xD800 + ((c - 0x10000) >> 10), 0xDC00 + (c & 0x3FF)),
				 utf8, size);
	}
}

static void escapes_that_name_nothing(void **state)
{
	static const struct {
		const char *text, *wanted; /* NULL: it is no JSON */
	} rows[] = {
		{ "\"\\ud800\"", NULL },
		{ "\"\\udbff\"", NULL },
		{ "\"\\udc00\"", NULL },
		{ "\"\\udfff\"", NULL },
		{ "\"\\ud800\\ud800\"", NULL },
		{ "\"\\ud800\\ue000\"", NULL },
		{ "\"\\ud800x\\udc00\"", NULL },
		{ "\"\\ud800\\n\"", NULL },
		{ "\"\\ud800\\udc0\"", NULL },
		{ "\"\\ud800udc000\"", NULL },
		{ "\"\\ud800\\xdc00\"", NULL },
		{ "\"\\u00g0\"", NULL },
		{ "\"\\u000/\"", NULL },
		{ "\"\\u000:\"", NULL },
		{ "\"\\u000`\"", NULL },
		{ "\"\\u000@\"", NULL },
		{ "\"\\u000G\"", NULL },
		{ "\"\\u\"", NULL },
		{ "\"\\u004\"", NULL },
		{ "\"\\\"", NULL },
		{ "\"\\b\\f\\n\\r\\t\\\"\\\\\\/\"", "\b\f\n\r\t\"\\/" },
		{ "\"a\\u0041b\"", "aAb" },
		{ "\"\\u004a\\u006F\"", "Jo" },
		{ "\"\\a\"", NULL },
		{ "\"\\v\"", NULL },
		{ "\"\\0\"", NULL },
		{ "\"\\'\"", NULL },
		{ " \t\r\n\"a\" \t\r\n", "a" },
		{ "\f\"a\"", NULL },
		{ "\"a\"\v", NULL },
		{ "\"\x1f\"", NULL },
		{ "\"\x7f\"", "\x7f" },
		{ "\" \"", " " },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		assert_string_is(rows[i].text, strlen(rows[i].text), rows[i].wanted,
				 rows[i].wanted ? strlen(rows[i].wanted) : 0);
}

/* Each sequence of bytes at the borders of what UTF-8 allows, against the model: it is what some character is
 * written as. */
static void strings_are_utf8(void **state)
{
	static const unsigned char bytes[] = { 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
					       0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED,
					       0xEE, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF };
	enum { COUNT = sizeof bytes };

	for (unsigned number = 0; number < COUNT * COUNT * COUNT * COUNT; number += number % 7 == 0 ? 1 : 3) {
		char	    text[6] = { '"',
					(char) bytes[number % COUNT],
					(char) bytes[number / COUNT % COUNT],
					(char) bytes[number / COUNT / COUNT % COUNT],
					(char) bytes[number / COUNT / COUNT / COUNT % COUNT],
					'"' };
		const char *at = text + 1;
		bool	    is_fine = true;

		while (at < text + 5 && is_fine) {
			unsigned char lead = (unsigned char) *at;
			size_t	      size = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
			uint32_t      c = size == 1 ? lead : lead & (0x7Fu >> size);
			char	      written[4];

			is_fine = (size_t) (text + 5 - at) >= size;
			for (size_t i = 1; i < size && is_fine; i++)
				c = c << 6 | (at[i] & 0x3F);
			is_fine = is_fine && naive_utf8(c, written) == size && memcmp(written, at, size) == 0;
			at += size;
		}
		assert_string_is(text, 6, is_fine ? text + 1 : NULL, 4);
	}
}

static void values_are_nested_up_to_a_depth(void **state)
{
	for (size_t depth = VDI_TREE_DEPTH_MAX - 2; depth <= VDI_TREE_DEPTH_MAX + 2; depth++)
		for (int is_object = 0; is_object < 2; is_object++) {
			struct vdi_tree	 tree = VDI_TREE_INIT;
			struct vdi_out	 text = VDI_OUT_INIT;
			struct vdi_node *root;

			for (size_t i = 0; i < depth; i++)
				vdi_out_raw(&text, is_object ? "{\"a\":" : "[");
			vdi_out_raw(&text, "1");
			for (size_t i = 0; i < depth; i++)
				vdi_out_raw(&text, is_object ? "}" : "]");
			assert_int_equal(vdi_tree_parse(&tree, vdi_out_slice(&text), &root, NULL) == VD_OK,
					 depth <= VDI_TREE_DEPTH_MAX);
			vdi_out_fini(&text);
			vdi_tree_fini(&tree);
		}
}

/* The error is of a failure only, and says memory only when it was that. */
static void an_error_says_what_it_was(void **state)
{
	struct vdi_node *root;

	(void) state;
	for (int i = 0; i < 3; i++) {
		struct vdi_tree tree = VDI_TREE_INIT;
		struct vd_error error = { 0 };
		vd_status	status;

		(void) vdi_alloc_fail_nth(i == 2, 1);
		status = vdi_tree_parse(&tree, vd_bytes_of(i == 1 ? "[1] 2" : "[1]"), &root, &error);
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(error.code, status);
		if (i == 0)
			assert_status(status, VD_OK);
		else if (i == 1)
			assert_non_null(strstr(error.message, "data after the value"));
		else
			assert_string_equal(error.message, vd_status_sentence(VD_NOMEM));
		vdi_tree_fini(&tree);
	}
}

static void integers_have_64_bits(void **state)
{
	static const struct {
		const char *text;
		int64_t	    number;
		bool	    is_integer;
	} rows[] = {
		{ "0", 0, true },
		{ "-0", 0, true },
		{ "-1", -1, true },
		{ "10", 10, true },
		{ "9223372036854775807", INT64_MAX, true },
		{ "9223372036854775808", 0, false },
		{ "-9223372036854775807", -INT64_MAX, true },
		{ "-9223372036854775808", INT64_MIN, true },
		{ "-9223372036854775809", 0, false },
		{ "92233720368547758070", 0, false },
		{ "-92233720368547758080", 0, false },
		{ "1.0", 0, false },
		{ "1e2", 0, false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_node node = { .kind = VDI_NODE_NUMBER, .text = vd_bytes_of(rows[i].text) };

		assert_int_equal(vdi_tree_int_of(&node, 5), rows[i].is_integer ? rows[i].number : 5);
		assert_int_equal(vdi_tree_int_of(&node, 6), rows[i].is_integer ? rows[i].number : 6);
		node.kind = VDI_NODE_STRING;
		assert_int_equal(vdi_tree_int_of(&node, 5), 5);
	}
	assert_int_equal(vdi_tree_int_of(NULL, 5), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_have_64_bits),
		cmocka_unit_test(every_escape_is_the_character_it_names),
		cmocka_unit_test(escapes_that_name_nothing),
		cmocka_unit_test(strings_are_utf8),
		cmocka_unit_test(values_are_nested_up_to_a_depth),
		cmocka_unit_test(members_that_collide_without_a_seed_are_found_fast),
		cmocka_unit_test(the_seed_is_one_and_secret),
		cmocka_unit_test(children_are_those_of_the_model),
		cmocka_unit_test(a_huge_object_is_shown_in_few_nodes),
		cmocka_unit_test(a_row_of_huge_metadata_takes_few_nodes),
		cmocka_unit_test(a_value_is_measured_and_its_beginning_written),
		cmocka_unit_test(equal_documents),
		cmocka_unit_test(documents_are_json),
		cmocka_unit_test(an_error_says_what_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
