/* What a list or watch asks for: scope, selectors, and what a change is for it. */
#include "predicate.h"

#include "pod_codec_group.h"

static struct vdi_predicate *make(const char *ns, const char *name, const char *labels, const char *fields,
				  bool narrow, bool cluster)
{
	struct vdi_predicate_options options = {
		vd_bytes_of(ns), vd_bytes_of(name), vd_bytes_of(labels), vd_bytes_of(fields), narrow, cluster
	};
	struct vdi_predicate *predicate;

	assert_status(vdi_predicate_new(codec, &options, &predicate, NULL), VD_OK);
	return predicate;
}

static void r525_r620_the_scope_comes_from_the_request_then_from_the_fields(void **state)
{
	static const struct {
		const char *ns, *name, *fields;
		bool	    narrow, cluster;
		const char *scope_ns, *scope_name;
	} rows[] = {
		{ "", "", "", true, false, "", "" },
		{ "a", "x", "", true, false, "a", "x" },
		{ "", "", "metadata.name=x", true, false, "", "x" },
		{ "", "", "metadata.namespace=a,metadata.name=x", true, false, "a", "x" },
		{ "b", "", "metadata.namespace=a", true, false, "b", "" },
		{ "", "y", "metadata.name=x", true, false, "", "y" },
		{ "", "", "metadata.name!=x", true, false, "", "" },
		{ "", "", "metadata.name=x", false, false, "", "" },
		{ "a", "a", "", true, true, "", "a" }, /* core namespaces */
		{ "", "", "metadata.namespace=", true, false, "", "" },
		{ "", "x", "metadata.namespace!=a", true, false, "", "x" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_predicate *p =
			make(rows[i].ns, rows[i].name, "", rows[i].fields, rows[i].narrow, rows[i].cluster);

		assert_true(vd_bytes_equal(vdi_predicate_namespace(p), vd_bytes_of(rows[i].scope_ns)));
		assert_true(vd_bytes_equal(vdi_predicate_name(p), vd_bytes_of(rows[i].scope_name)));
		assert_int_equal(p->is_empty, rows[i].fields[0] == 0);
		vdi_predicate_unref(p);
	}
}

/* Nothing is selected but the scope; a label selector that matches nothing is not an empty one. */
static void r695_what_is_empty(void **state)
{
	static const struct {
		const char *labels, *fields, *shards;
		bool	    is_empty;
	} rows[] = {
		{ "", "", "", true },
		{ " ", ",", "", true }, /* texts of selectors without requirements */
		{ "app", "", "", false },
		{ "app in ()", "", "", false },
		{ "app,!app", "", "", false },
		{ "", "metadata.name=x", "", false },
		{ "", "", "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')",
		  false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_predicate_options options = { .label_selector = vd_bytes_of(rows[i].labels),
							 .field_selector = vd_bytes_of(rows[i].fields),
							 .shard_selector = vd_bytes_of(rows[i].shards) };
		struct vdi_predicate	    *p;

		assert_status(vdi_predicate_new(codec, &options, &p, NULL), VD_OK);
		assert_int_equal(p->is_empty, rows[i].is_empty);
		vdi_predicate_unref(p);
	}
}

/* Equal ones are found by their hash; different ones with one hash are told apart. What asks for nothing
 * keeps nothing. */
static void equality_is_more_than_a_hash(void **state)
{
	static const char *const rows[][4] = { { "", "", "", "" },
					       { "a", "", "", "" },
					       { "a", "x", "", "" },
					       { "", "", "app=a", "" },
					       { "", "", "app=b", "" },
					       { "", "", "", "spec.nodeName=n" },
					       { "", "", "", "spec.nodeName=m" },
					       { "", "x", "", "" },
					       { "b", "", "", "" } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (size_t k = 0; k < VDI_ARRAY_SIZE(rows); k++) {
			struct vdi_predicate *a =
				make(rows[i][0], rows[i][1], rows[i][2], rows[i][3], true, false);
			struct vdi_predicate *b =
				make(rows[k][0], rows[k][1], rows[k][2], rows[k][3], true, false);

			assert_int_equal(a->hash == b->hash, i == k);
			assert_int_equal(vdi_predicate_equal(a, b), i == k);
			b->hash = a->hash;
			assert_int_equal(vdi_predicate_equal(a, b), i == k);
			b->hash = a->hash + 1;
			assert_false(vdi_predicate_equal(a, b));
			assert_int_equal(a->has_labels, rows[i][2][0] != 0);
			assert_int_equal(a->fields_at != 0, rows[i][3][0] != 0);
			vdi_predicate_unref(a);
			vdi_predicate_unref(b);
		}
}

static void nothing_is_said_about_what_goes_well(void **state)
{
	struct vd_error error = { 0 };

	assert_status(
		vdi_predicate_check(codec, vd_bytes_of("app=a"), vd_bytes_of("spec.nodeName=n"), &error),
		VD_OK);
	assert_string_equal(error.message, "");
	assert_status(vdi_predicate_check(codec, (struct vd_bytes) { NULL, 3 }, VD_BYTES_NONE, &error),
		      VD_INVALID_ARGUMENT);
	assert_status(vdi_predicate_check(codec, VD_BYTES_NONE, (struct vd_bytes) { NULL, 3 }, &error),
		      VD_INVALID_ARGUMENT);
}

static void t142_r552_every_combination_of_before_and_after(void **state)
{
	struct vdi_predicate *p = make("", "", "app=web", "spec.nodeName=n1", true, false);
	struct vd_object     *objects[4] = { NULL, pod_new(codec, "ns", "x", "web", "n1", 1),
					     pod_new(codec, "ns", "x", "web", "n2", 2),
					     pod_new(codec, "ns", "x", NULL, "n1", 3) };

	for (unsigned before = 0; before < 4; before++)
		for (unsigned after = 0; after < 4; after++) {
			enum vd_watch_type type = VD_WATCH_ERROR;
			bool is = vdi_predicate_transition(p, objects[before], objects[after], &type);

			assert_int_equal(is, before == 1 || after == 1);
			if (is)
				assert_int_equal(type, before != 1 ? VD_WATCH_ADDED :
						       after == 1  ? VD_WATCH_MODIFIED :
								     VD_WATCH_DELETED);
		}
	for (unsigned i = 1; i < 4; i++)
		vd_object_unref(objects[i]);
	vdi_predicate_unref(p);
}

static void t103_r527_matches(void **state)
{
	static const struct {
		const char *ns, *name, *labels, *fields;
		bool	    matches; /* a/x with app=web on n1 */
	} rows[] = {
		{ "", "", "", "", true },
		{ "a", "", "", "", true },
		{ "b", "", "", "", false },
		{ "a", "x", "", "", true },
		{ "a", "y", "", "", false },
		{ "", "", "app", "", true },
		{ "", "", "!app", "", false },
		{ "", "", "app in (db,web)", "", true },
		{ "", "", "app notin (db,web)", "", false },
		{ "", "", "tier!=front", "", true },
		{ "", "", "", "spec.nodeName=n1", true },
		{ "", "", "", "spec.nodeName!=n1", false },
		{ "", "", "", "status.phase=", true },		/* absent reads as empty */
		{ "a", "", "", "metadata.namespace=b", false }, /* selectors count beside the scope */
		{ "", "", "", "metadata.name=x,metadata.namespace=a", true },
		{ "", "", "app=web", "metadata.name!=x", false },
	};
	struct vd_object *object = pod_new(codec, "a", "x", "web", "n1", 1);

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_predicate *p =
			make(rows[i].ns, rows[i].name, rows[i].labels, rows[i].fields, true, false);

		assert_int_equal(vdi_predicate_matches(p, object), rows[i].matches);
		vdi_predicate_unref(p);
	}
	vd_object_unref(object);
}

static void r694_exact_requirements(void **state)
{
	struct vdi_predicate *p =
		make("", "", "app in (web),tier", "spec.nodeName=n1,status.phase!=Failed", true, false);
	struct vd_bytes value;

	assert_true(vdi_predicate_exact_field(p, 0, &value));
	assert_true(vd_bytes_equal(value, vd_bytes_of("n1")));
	assert_false(vdi_predicate_exact_field(p, 1, &value));
	assert_true(vdi_predicate_exact_label(p, vd_bytes_of("app"), &value));
	assert_true(vd_bytes_equal(value, vd_bytes_of("web")));
	assert_false(vdi_predicate_exact_label(p, vd_bytes_of("tier"), &value));
	vdi_predicate_unref(p);
}

static void equal_predicates_are_one_group_and_others_are_not(void **state)
{
	static const char *const different[][4] = { { "a", "", "", "" },
						    { "", "a", "", "" },
						    { "", "", "app=a", "" },
						    { "", "", "app!=a", "" },
						    { "", "", "", "status.phase=a" },
						    { "", "", "", "" } };
	struct vdi_predicate	*a = make("a", "", "x=1,y=2", "", true, false);
	struct vdi_predicate	*b = make("a", "", "y=2, x=1", "", true, false);

	assert_true(vdi_predicate_equal(a, b));
	assert_int_equal(a->hash, b->hash);
	vdi_predicate_unref(b);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(different); i++)
		for (size_t j = 0; j < VDI_ARRAY_SIZE(different); j++) {
			struct vdi_predicate *c = make(different[i][0], different[i][1], different[i][2],
						       different[i][3], true, false);
			struct vdi_predicate *d = make(different[j][0], different[j][1], different[j][2],
						       different[j][3], true, false);

			assert_int_equal(vdi_predicate_equal(c, d), i == j);
			vdi_predicate_unref(c);
			vdi_predicate_unref(d);
		}
	assert_ptr_equal(vdi_predicate_ref(a), a);
	assert_null(vdi_predicate_unref(a));
	assert_null(vdi_predicate_unref(a));
	assert_null(vdi_predicate_unref(NULL));
}

static void bad_selectors_say_why(void **state)
{
	struct vdi_predicate_options options = { .label_selector = vd_bytes_of("a==") };
	struct vdi_predicate	    *predicate = NULL;
	struct vd_error		     error;

	options.label_selector = vd_bytes_of("a in");
	assert_status(vdi_predicate_new(codec, &options, &predicate, &error), VD_BAD_REQUEST);
	assert_true(error.message[0] != 0);
	options.label_selector = VD_BYTES_NONE;
	options.field_selector = vd_bytes_of("nonsense");
	assert_status(vdi_predicate_new(codec, &options, &predicate, &error), VD_BAD_REQUEST);
	options.field_selector = vd_bytes_of("spec.nodeName=n,nosuch=");
	assert_status(vdi_predicate_new(codec, &options, &predicate, &error), VD_BAD_REQUEST);
	assert_string_equal(error.message,
			    "field label not supported: nosuch: the codec does not declare it");
	assert_null(predicate);
}

static void torture_making_one(void **state)
{
	struct vdi_predicate_options options = { vd_bytes_of("ns"),
						 VD_BYTES_NONE,
						 vd_bytes_of("app in (a,b),x"),
						 vd_bytes_of("spec.nodeName=n"),
						 true,
						 false };
	int64_t			     live = vdi_alloc_live();
	bool			     failed = true;

	for (unsigned nth = 1; failed; nth++) {
		struct vdi_predicate *predicate = NULL;
		vd_status	      status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_predicate_new(codec, &options, &predicate, NULL);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		vdi_predicate_unref(predicate);
		assert_int_equal(vdi_alloc_live(), live);
		assert_true(nth > 2 || failed);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r525_r620_the_scope_comes_from_the_request_then_from_the_fields),
		cmocka_unit_test(r695_what_is_empty),
		cmocka_unit_test(equality_is_more_than_a_hash),
		cmocka_unit_test(nothing_is_said_about_what_goes_well),
		cmocka_unit_test(t142_r552_every_combination_of_before_and_after),
		cmocka_unit_test(t103_r527_matches),
		cmocka_unit_test(r694_exact_requirements),
		cmocka_unit_test(equal_predicates_are_one_group_and_others_are_not),
		cmocka_unit_test(bad_selectors_say_why),
		cmocka_unit_test(torture_making_one),
	};

	return cmocka_run_group_tests(tests, pod_codec_start, pod_codec_end);
}
