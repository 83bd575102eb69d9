/* Unit tests of apiserver/controllers/namespace_conditions.c: upstream's texts, and nothing written when
 * nothing is new. */
#include "vdtest.h"

#include "namespace_conditions.h"

#define NOW ((vd_wall) { (int64_t) 1780000000 * 1000000000 })
#define LATER ((vd_wall) { (int64_t) 1780000100 * 1000000000 })

/* The namespace as it is afterwards; the caller's. */
static char *set_conditions(const char *namespace_text, struct vdi_namespace_content *content, vd_wall now,
			    bool *ret_changed)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_out	 out = VDI_OUT_INIT;
	struct vdi_node *root;
	char		*text;

	*ret_changed = false;
	assert_status(vdi_tree_parse(&tree, vd_bytes_of(namespace_text), &root, NULL), VD_OK);
	assert_status(vdi_namespace_conditions_set(&tree, root, content, now, ret_changed), VD_OK);
	vdi_tree_write(&out, root);
	text = malloc(out.size + 1);
	assert_non_null(text);
	memcpy(text, out.data, out.size);
	text[out.size] = 0;
	vdi_out_fini(&out);
	vdi_tree_fini(&tree);
	return text;
}

static void what_stays_is_said_and_what_went_too(void **state)
{
	struct vdi_namespace_content content = { .kinds = { .count = 0 } };
	bool			     changed;
	char			    *first, *second;

	(void) state;
	vdi_content_add(&content.kinds, vd_bytes_of("pods."));
	vdi_content_add(&content.kinds, vd_bytes_of("deployments.apps"));
	vdi_content_add(&content.kinds, vd_bytes_of("pods."));
	vdi_content_add(&content.finalizers, vd_bytes_of("example.com/x"));
	vdi_content_add(&content.failures, vd_bytes_of("secrets: no"));
	first = set_conditions("{\"status\":{\"phase\":\"Terminating\"}}", &content, NOW, &changed);
	assert_true(changed);
	assert_non_null(strstr(
		first,
		"\"type\":\"NamespaceDeletionDiscoveryFailure\",\"status\":\"False\",\"lastTransitionTime\":"
		"\"2026-05-28T20:26:40Z\","
		"\"reason\":\"ResourcesDiscovered\",\"message\":\"All resources successfully discovered\""));
	assert_non_null(strstr(first, "\"reason\":\"ContentDeletionFailed\",\"message\":\"Failed to delete "
				      "all resource types, 1 remaining: secrets: no\""));
	assert_non_null(strstr(first, "\"reason\":\"SomeResourcesRemain\",\"message\":\"Some resources are "
				      "remaining: deployments.apps has 1 resource instances, "
				      "pods. has 2 resource instances\""));
	assert_non_null(strstr(first, "\"message\":\"Some content in the namespace has finalizers remaining: "
				      "example.com/x in 1 resource instances\""));
	second = set_conditions(first, &content, LATER, &changed);
	assert_false(changed);
	assert_string_equal(first, second);
	free(second);
	vdi_namespace_content_reset(&content);
	second = set_conditions(first, &content, LATER, &changed);
	assert_true(changed);
	assert_non_null(strstr(
		second, "\"type\":\"NamespaceContentRemaining\",\"status\":\"False\",\"lastTransitionTime\":"
			"\"2026-05-28T20:28:20Z\","
			"\"reason\":\"ContentRemoved\",\"message\":\"All content successfully removed\""));
	/* One that says the same as before has not changed when it did not. */
	assert_non_null(strstr(second, "\"status\":\"False\",\"lastTransitionTime\":\"2026-05-28T20:26:40Z\","
				       "\"reason\":\"ParsedGroupVersions\""));
	free(first);
	free(second);
}

static void every_failed_allocation_is_reported(void **state)
{
	(void) state;
	for (uint64_t nth = 1;; nth++) {
		int64_t			     live = vdi_alloc_live();
		struct vdi_namespace_content content = { .kinds = { .count = 0 } };
		struct vdi_tree		     tree = VDI_TREE_INIT;
		struct vdi_node		    *root;
		bool			     changed = false, failed;
		vd_status		     status;

		vdi_content_add(&content.kinds, vd_bytes_of("pods."));
		vdi_content_add(&content.finalizers, vd_bytes_of("example.com/x"));
		vdi_content_add(&content.failures, vd_bytes_of("secrets: no"));
		assert_status(vdi_tree_parse(&tree, vd_bytes_of("{}"), &root, NULL), VD_OK);
		vdi_alloc_fail_nth(nth, 1);
		status = vdi_namespace_conditions_set(&tree, root, &content, NOW, &changed);
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		vdi_tree_fini(&tree);
		vdi_namespace_content_reset(&content);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
	}
}

static void counts_have_a_maximum(void **state)
{
	struct vdi_namespace_content content = { .kinds = { .count = 0 } };
	char			     name[16];

	for (int round = 0; round < 2; round++)
		for (int i = 0; i < VDI_CONTENT_COUNTS_MAX + 3; i++) {
			(void) snprintf(name, sizeof name, "kind%d", i);
			vdi_content_add(&content.kinds, vd_bytes_of(name));
		}
	assert_int_equal(content.kinds.count, VDI_CONTENT_COUNTS_MAX);
	for (int i = 0; i < VDI_CONTENT_COUNTS_MAX; i++)
		assert_int_equal(content.kinds.items[i].number, 2);
	assert_int_equal(content.finalizers.count, 0);
	vdi_namespace_content_reset(&content);
	assert_int_equal(content.kinds.count, 0);
	/* A name without memory is not counted. */
	(void) vdi_alloc_fail_nth(1, 1);
	vdi_content_add(&content.kinds, vd_bytes_of("a"));
	(void) vdi_alloc_fail_nth(0, 0);
	assert_int_equal(content.kinds.count, 0);
	vdi_content_add(&content.kinds, vd_bytes_of("a"));
	assert_int_equal(content.kinds.count, 1);
	vdi_namespace_content_reset(&content);
}

#define CONDITION(status, reason, message)                                                                   \
	"{\"type\":\"NamespaceContentRemaining\",\"status\":\"" status                                       \
	"\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\",\"reason\":\"" reason                            \
	"\",\"message\":\"" message "\"}"

/* A condition keeps the time of its last transition until its status changes; each of its members is
 * corrected. */
static void each_member_of_a_condition_is_compared(void **state)
{
	static const struct {
		const char *condition; /* as it is stored; the content has none remaining */
		bool	    changed, moved;
	} rows[] = {
		{ CONDITION("False", "ContentRemoved", "All content successfully removed"), false, false },
		{ CONDITION("False", "Other", "All content successfully removed"), true, false },
		{ CONDITION("False", "ContentRemoved", "Other"), true, false },
		{ CONDITION("True", "ContentRemoved", "All content successfully removed"), true, true },
		{ "{\"type\":\"NamespaceContentRemaining\",\"status\":1}", true, true },
		{ "{\"type\":\"NamespaceContentRemaining\"}", true, true },
	};
	struct vdi_namespace_content none = { .kinds = { .count = 0 } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		bool  changed;
		char *all = set_conditions("{}", &none, NOW, &changed), *result;
		char  text[2000];
		char *begin = strstr(all, "{\"type\":\"NamespaceContentRemaining\""),
		     *end = strchr(begin, '}');

		assert_true(changed);
		(void) snprintf(text, sizeof text, "%.*s%s%s", (int) (begin - all), all, rows[i].condition,
				end + 1);
		result = set_conditions(text, &none, LATER, &changed);
		assert_int_equal(changed, rows[i].changed);
		assert_int_equal(strstr(result, "2026-05-28T20:28:20Z") != NULL, rows[i].moved);
		assert_non_null(strstr(result, "\"reason\":\"ContentRemoved\",\"message\":\"All content "
					       "successfully removed\"}"));
		free(result);
		free(all);
	}
}

static void several_failures_are_sorted(void **state)
{
	struct vdi_namespace_content content = { .kinds = { .count = 0 } };
	bool			     changed;
	char			    *text;

	vdi_content_add(&content.failures, vd_bytes_of("b: 2"));
	vdi_content_add(&content.failures, vd_bytes_of("c: 3"));
	vdi_content_add(&content.failures, vd_bytes_of("a: 1"));
	vdi_content_add(&content.finalizers, vd_bytes_of("y"));
	vdi_content_add(&content.finalizers, vd_bytes_of("x"));
	vdi_content_add(&content.finalizers, vd_bytes_of("x"));
	text = set_conditions("{}", &content, NOW, &changed);
	assert_non_null(strstr(text, "\"Failed to delete all resource types, 3 remaining: a: 1, b: 2, c: "
				     "3\""));
	assert_non_null(strstr(text, "remaining: x in 2 resource instances, y in 1 resource instances\""));
	free(text);
	vdi_namespace_content_reset(&content);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts_have_a_maximum),
		cmocka_unit_test(each_member_of_a_condition_is_compared),
		cmocka_unit_test(several_failures_are_sorted),
		cmocka_unit_test(what_stays_is_said_and_what_went_too),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
