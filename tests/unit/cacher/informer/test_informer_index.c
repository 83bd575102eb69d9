/* Indexes of an informer: what they find, how long values may be, how many there may be. */
#include <vedette/informer.h>

#include "cacher_fixture.h"
#include "informer_notes.h"

static void r441_indexes_of_an_informer(void **state)
{
	struct cacher_fixture	   f;
	struct vd_informer_index   indexes[] = { { "node", informer_by_node, NULL },
						 { "letter", informer_by_letter, NULL } };
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_informer	  *informer;
	struct vd_error		   error;
	struct informer_notes	   all = { 0 };

	cacher_fixture_setup(&f, 6);
	options.indexes = indexes;
	options.index_count = 2;
	indexes[1].name = "node";
	assert_status(vd_informer_open(f.cacher, &options, &informer, &error), VD_INVALID_ARGUMENT);
	indexes[1].name = "letter";
	put_pod(&f, "ns", "c", "ab", "n1");
	put_pod(&f, "ns", "a", "b", "n1");
	put_pod(&f, "ns", "b", NULL, "n2");
	cacher_fixture_settle(&f);
	assert_status(vd_informer_open(f.cacher, &options, &informer, &error), VD_OK);
	assert_status(vd_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
	assert_string_equal(informer_indexed(informer, "node", "n1"), " a  c ");
	assert_string_equal(informer_indexed(informer, "node", "n2"), " b ");
	assert_string_equal(informer_indexed(informer, "node", ""), "");
	assert_string_equal(informer_indexed(informer, "node", "n"), "");
	assert_string_equal(informer_indexed(informer, "letter", "b"), " a  c ");
	assert_string_equal(informer_indexed(informer, "letter", "a"), " c ");
	assert_string_equal(informer_indexed(informer, "nothing", "a"), "");
	put_pod(&f, "ns", "a", "a", "n2"); /* moves in both */
	delete_pod(&f, "ns", "c");
	put_pod(&f, "ns", "d", "a", NULL);
	cacher_fixture_settle(&f);
	assert_string_equal(informer_indexed(informer, "node", "n1"), "");
	assert_string_equal(informer_indexed(informer, "node", "n2"), " a  b ");
	assert_string_equal(informer_indexed(informer, "node", ""), " d ");
	assert_string_equal(informer_indexed(informer, "letter", "b"), "");
	assert_string_equal(informer_indexed(informer, "letter", "a"), " a  d ");
	assert_int_equal(vd_informer_visit(informer, informer_note_visited, &all), 3);
	assert_string_equal(all.text, " a  b  d ");
	vd_informer_close_wait(informer);
	cacher_fixture_teardown(&f);
}

struct visits {
	size_t count, most;
};

static bool visit_most(void *arg, struct vd_object *object)
{
	struct visits *visits = arg;

	(void) object;
	return ++visits->count < visits->most;
}

/* As many as there are, or as many as the visitor wants; that number is returned. */
static void visits_are_counted(void **state)
{
	static const struct {
		const char *value;
		size_t	    objects;
	} rows[] = { { "n0", 0 }, { "n1", 1 }, { "n2", 2 }, { "n3", 3 } };
	struct cacher_fixture	   f;
	struct vd_informer_index   index = { "node", informer_by_node, NULL };
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_informer	  *informer;

	cacher_fixture_setup(&f, 6);
	options.indexes = &index;
	options.index_count = 1;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (size_t k = 0; k < rows[i].objects; k++) {
			char name[2] = { (char) ('a' + 4 * i + k), 0 };

			put_pod(&f, "ns", name, NULL, rows[i].value);
		}
	cacher_fixture_settle(&f);
	assert_status(vd_informer_open(f.cacher, &options, &informer, NULL), VD_OK);
	assert_status(vd_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
	for (size_t most = 1; most < 8; most++) {
		struct visits all = { .most = most };

		assert_int_equal(vd_informer_visit(informer, visit_most, &all), VDI_MIN(most, (size_t) 6));
		assert_int_equal(all.count, VDI_MIN(most, (size_t) 6));
		for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
			struct visits some = { .most = most };

			assert_int_equal(vd_informer_visit_index(informer, "node", vd_bytes_of(rows[i].value),
								 visit_most, &some),
					 VDI_MIN(most, rows[i].objects));
			assert_int_equal(some.count, VDI_MIN(most, rows[i].objects));
		}
	}
	vd_informer_close_wait(informer);
	cacher_fixture_teardown(&f);
}

/* app, as often as the name says; and one that is always too long. */
static void by_length(void *arg, const struct vd_object *object, vd_index_emit_fn emit, void *emit_arg)
{
	struct vd_bytes name = vd_object_name(object);
	char		value[VD_INDEX_VALUE_MAX + 1];

	memset(value, 'v', sizeof value);
	emit(emit_arg, (struct vd_bytes) { value, sizeof value });
	if (*(const char *) name.data == 'a')
		emit(emit_arg, (struct vd_bytes) { value, VD_INDEX_VALUE_MAX });
}

/* The longest is indexed; what is longer is left out, and nobody finds it. */
static void r441_values_are_bounded(void **state)
{
	struct cacher_fixture	   f;
	struct vd_informer_index   index = { "length", by_length, NULL };
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_informer	  *informer;
	char			   value[VD_INDEX_VALUE_MAX + 2];

	cacher_fixture_setup(&f, 6);
	options.indexes = &index;
	options.index_count = 1;
	put_pod(&f, "ns", "a", NULL, NULL);
	put_pod(&f, "ns", "b", NULL, NULL);
	cacher_fixture_settle(&f);
	assert_status(vd_informer_open(f.cacher, &options, &informer, NULL), VD_OK);
	assert_status(vd_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
	memset(value, 'v', sizeof value);
	value[VD_INDEX_VALUE_MAX + 1] = 0;
	assert_string_equal(informer_indexed(informer, "length", value), "");
	value[VD_INDEX_VALUE_MAX] = 0;
	assert_string_equal(informer_indexed(informer, "length", value), " a ");
	vd_informer_close_wait(informer);
	cacher_fixture_teardown(&f);
}

static void there_are_at_most_64_indexes(void **state)
{
	struct cacher_fixture	   f;
	struct vd_informer_index   indexes[65];
	struct vd_informer_options options = VD_INFORMER_OPTIONS_INIT;
	struct vd_informer	  *informer;
	struct vd_error		   error;
	char			   names[65][8];

	for (unsigned i = 0; i < 65; i++) {
		snprintf(names[i], sizeof names[i], "i%u", i);
		indexes[i] = (struct vd_informer_index) { names[i], informer_by_node, NULL };
	}
	cacher_fixture_setup(&f, 8);
	options.indexes = indexes;
	options.index_count = 65;
	assert_status(vd_informer_open(f.cacher, &options, &informer, &error), VD_INVALID_ARGUMENT);
	options.index_count = 64;
	put_pod(&f, "ns", "a", NULL, "n1");
	assert_status(vd_informer_open(f.cacher, &options, &informer, &error), VD_OK);
	assert_status(vd_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
	assert_string_equal(informer_indexed(informer, "i63", "n1"), " a ");
	vd_informer_close_wait(informer);
	cacher_fixture_teardown(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r441_indexes_of_an_informer),
		cmocka_unit_test(visits_are_counted),
		cmocka_unit_test(r441_values_are_bounded),
		cmocka_unit_test(there_are_at_most_64_indexes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
