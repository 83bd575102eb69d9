/* Unit tests of apiserver/kinds/crd_status.c: the status of a definition in each of its states, and what does
 * not change it. */
#include "vdtest.h"

#include "crd.h"

#define THEN "2027-01-15T08:00:00Z"
#define AT "2027-01-15T08:01:40Z"
#define NOW ((vd_wall) { (int64_t) 1800000100 * 1000000000 })

#define CONDITION(time, message, reason, status, type)                                                       \
	"{\"lastTransitionTime\":\"" time "\",\"message\":\"" message "\",\"reason\":\"" reason              \
	"\",\"status\":\"" status "\",\"type\":\"" type "\"}"
#define NO_CONFLICTS(time) CONDITION(time, "no conflicts found", "NoConflicts", "True", "NamesAccepted")
#define CONFLICT(time) CONDITION(time, "taken", "KindConflict", "False", "NamesAccepted")
#define ESTABLISHED(time)                                                                                    \
	CONDITION(time, "the initial names have been accepted", "InitialNamesAccepted", "True", "Established")
#define NOT_ACCEPTED(time)                                                                                   \
	CONDITION(time, "not all names are accepted", "NotAccepted", "False", "Established")
#define APPROVED(time)                                                                                       \
	CONDITION(time, "approved in the annotation api-approved.kubernetes.io", "ApprovedAnnotation",       \
		  "True", "KubernetesAPIApprovalPolicyConformant")
#define CLEANED(time)                                                                                        \
	CONDITION(time, "removed all instances", "InstanceDeletionCompleted", "False", "Terminating")
#define CLEANING(time) CONDITION(time, "some are left", "InstanceDeletionInProgress", "True", "Terminating")
#define PENDING(time)                                                                                        \
	CONDITION(time,                                                                                      \
		  "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon",   \
		  "InstanceDeletionPending", "True", "Terminating")

#define NAMES "{\"plural\":\"ws\",\"kind\":\"W\"}"
#define ROOT(meta, status) "{\"metadata\":{" meta "},\"spec\":{\"names\":" NAMES "},\"status\":" status "}"
#define DELETED "\"deletionTimestamp\":\"" THEN "\""

struct row {
	const char	    *root;
	struct vdi_crd_state state;
	const char	    *status;
	bool		     is_changed;
};

static const struct row rows[] = {
	{ ROOT("", "{}"),
	  { 0 },
	  "{\"conditions\":[" NO_CONFLICTS(AT) "],\"acceptedNames\":" NAMES "}",
	  true },
	{ ROOT("", "{}"),
	  { .is_served = true },
	  "{\"conditions\":[" NO_CONFLICTS(AT) "," ESTABLISHED(AT) "],\"acceptedNames\":" NAMES "}",
	  true },
	/* Said before: the time stays, and nothing is written. */
	{ ROOT("",
	       "{\"conditions\":[" NO_CONFLICTS(THEN) "," ESTABLISHED(THEN) "],\"acceptedNames\":" NAMES "}"),
	  { .is_served = true },
	  "{\"conditions\":[" NO_CONFLICTS(THEN) "," ESTABLISHED(THEN) "],\"acceptedNames\":" NAMES "}",
	  false },
	/* Of other names, or none. */
	{ ROOT("", "{\"conditions\":[" NO_CONFLICTS(THEN) "],\"acceptedNames\":{\"plural\":\"\"}}"),
	  { 0 },
	  "{\"conditions\":[" NO_CONFLICTS(THEN) "],\"acceptedNames\":" NAMES "}",
	  true },
	{ "{\"metadata\":{},\"spec\":{},\"status\":{}}",
	  { 0 },
	  "{\"conditions\":[" NO_CONFLICTS(AT) "]}",
	  true },
	{ "{\"metadata\":{},\"spec\":{}}", { 0 }, "{\"conditions\":[" NO_CONFLICTS(AT) "]}", true },
	/* A conflict: the names that were accepted stay, and what was established is not any more. */
	{ ROOT("", "{}"),
	  { .is_served = true, .conflict = "KindConflict", .conflict_message = "taken" },
	  "{\"conditions\":[" CONFLICT(AT) "," NOT_ACCEPTED(AT) "]}",
	  true },
	{ ROOT("", "{\"conditions\":[" NO_CONFLICTS(THEN) "," ESTABLISHED(
			   THEN) "],\"acceptedNames\":{\"plural\":\"v\"}}"),
	  { .conflict = "KindConflict", .conflict_message = "taken" },
	  "{\"conditions\":[" CONFLICT(AT) "," NOT_ACCEPTED(AT) "],\"acceptedNames\":{\"plural\":\"v\"}}",
	  true },
	/* The same, with another sentence: the time is of the last change of "status". */
	{ ROOT("", "{\"conditions\":[" CONDITION(THEN, "other", "PluralConflict", "False",
						 "NamesAccepted") "," NOT_ACCEPTED(THEN) "]}"),
	  { .conflict = "KindConflict", .conflict_message = "taken" },
	  "{\"conditions\":[" CONFLICT(THEN) "," NOT_ACCEPTED(THEN) "]}",
	  true },
	/* Conditions of others stay. */
	{ ROOT("", "{\"conditions\":[{\"type\":\"Other\",\"status\":\"True\"}]}"),
	  { 0 },
	  "{\"conditions\":[{\"type\":\"Other\",\"status\":\"True\"}," NO_CONFLICTS(
		  AT) "],\"acceptedNames\":" NAMES "}",
	  true },
	/* An approval by annotation. */
	{ ROOT("\"annotations\":{\"api-approved.kubernetes.io\":\"x\"}", "{}"),
	  { 0 },
	  "{\"conditions\":[" NO_CONFLICTS(AT) "," APPROVED(AT) "],\"acceptedNames\":" NAMES "}",
	  true },
	{ ROOT("\"annotations\":{\"api-approved.kubernetes.io\":\"\"}", "{}"),
	  { 0 },
	  "{\"conditions\":[" NO_CONFLICTS(AT) "],\"acceptedNames\":" NAMES "}",
	  true },
	/* What is left is told only of a definition that goes. */
	{ ROOT("", "{}"),
	  { .is_cleaned = true },
	  "{\"conditions\":[" NO_CONFLICTS(AT) "],\"acceptedNames\":" NAMES "}",
	  true },
	{ ROOT("", "{}"),
	  { .cleaning = "some are left" },
	  "{\"conditions\":[" NO_CONFLICTS(AT) "],\"acceptedNames\":" NAMES "}",
	  true },
	{ ROOT("\"deletionTimestamp\":\"\"", "{}"),
	  { .is_cleaned = true },
	  "{\"conditions\":[" NO_CONFLICTS(AT) "],\"acceptedNames\":" NAMES "}",
	  true },
	{ ROOT(DELETED, "{}"),
	  { 0 },
	  "{\"conditions\":[" NO_CONFLICTS(AT) "],\"acceptedNames\":" NAMES "}",
	  true },
	{ ROOT(DELETED, "{}"),
	  { .cleaning = "some are left" },
	  "{\"conditions\":[" NO_CONFLICTS(AT) "," CLEANING(AT) "],\"acceptedNames\":" NAMES "}",
	  true },
	{ ROOT(DELETED, "{}"),
	  { .is_cleaned = true, .cleaning = "some are left" },
	  "{\"conditions\":[" NO_CONFLICTS(AT) "," CLEANED(AT) "],\"acceptedNames\":" NAMES "}",
	  true },
	{ ROOT(DELETED,
	       "{\"conditions\":[" NO_CONFLICTS(THEN) "," PENDING(THEN) "],\"acceptedNames\":" NAMES "}"),
	  { .cleaning = "some are left" },
	  "{\"conditions\":[" NO_CONFLICTS(THEN) "," CLEANING(THEN) "],\"acceptedNames\":" NAMES "}",
	  true },
};

static void check_text(const struct vdi_node *node, const char *wanted)
{
	struct vdi_out out = VDI_OUT_INIT;

	vdi_tree_write(&out, node);
	if (!vd_bytes_equal(vdi_out_slice(&out), vd_bytes_of(wanted)))
		fail_msg("%.*s, not %s", (int) out.size, out.data, wanted);
	vdi_out_fini(&out);
}

static void each_state_has_its_conditions(void **state)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_node *root;
		bool		 is_changed = !rows[i].is_changed;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].root), &root, NULL), VD_OK);
		assert_status(vdi_crd_set_status(&tree, root, &rows[i].state, NOW, &is_changed), VD_OK);
		assert_int_equal(is_changed, rows[i].is_changed);
		check_text(vdi_tree_get(&tree, root, vd_bytes_of("status")), rows[i].status);
		vdi_tree_fini(&tree);
	}
}

#define GOING(finalizers)                                                                                    \
	"{\"metadata\":{\"finalizers\":[" finalizers "]},\"status\":{\"conditions\":[" PENDING(AT) "]}}"
#define ITS_OWN "\"" VDI_CRD_FINALIZER "\""

static void a_delete_adds_the_finalizer_once(void **state)
{
	static const char *const texts[][2] = {
		{ "{}", "{\"status\":{\"conditions\":[" PENDING(
				AT) "]},\"metadata\":{\"finalizers\":[" ITS_OWN "]}}" },
		{ "{\"metadata\":{},\"status\":{}}", GOING(ITS_OWN) },
		{ "{\"metadata\":{\"finalizers\":[\"a\"]},\"status\":{}}", GOING("\"a\"," ITS_OWN) },
		{ "{\"metadata\":{\"finalizers\":[\"a\"," ITS_OWN ",\"b\"]},\"status\":{}}",
		  GOING("\"a\"," ITS_OWN ",\"b\"") },
		{ "{\"metadata\":{\"finalizers\":[" ITS_OWN
		  "]},\"status\":{\"conditions\":[" CLEANED(THEN) "]}}",
		  GOING(ITS_OWN) },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_node *root;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(texts[i][0]), &root, NULL), VD_OK);
		assert_status(vdi_crd_set_terminating(&tree, root, NOW), VD_OK);
		check_text(root, texts[i][1]);
		vdi_tree_fini(&tree);
	}
}

#define ANNOTATED "\"annotations\":{\"api-approved.kubernetes.io\":\"x\"}"

static void every_failed_allocation_is_reported(void **state)
{
	static const char *const roots[] = { "{}", ROOT(ANNOTATED, "{}"),
					     ROOT(ANNOTATED "," DELETED,
						  "{\"conditions\":[" CONFLICT(THEN) "," NOT_ACCEPTED(
							  THEN) "," CLEANING(THEN) "]}") };

	for (size_t i = 0; i < 2 * VDI_ARRAY_SIZE(roots); i++) {
		bool	 failed = true;
		uint64_t nth;

		for (nth = 1; failed; nth++) {
			struct vdi_tree	     tree = VDI_TREE_INIT;
			struct vdi_crd_state resource_set = { .is_served = true, .is_cleaned = true };
			struct vdi_node	    *root;
			vd_status	     result;
			bool		     is_changed;

			assert_status(vdi_tree_parse(&tree, vd_bytes_of(roots[i / 2]), &root, NULL), VD_OK);
			vdi_alloc_fail_nth(nth, 1);
			result = i % 2 ? vdi_crd_set_terminating(&tree, root, NOW) :
					 vdi_crd_set_status(&tree, root, &resource_set, NOW, &is_changed);
			failed = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			assert_status(result, failed ? VD_NOMEM : VD_OK);
			vdi_tree_fini(&tree);
		}
		assert_true(nth > 4);
	}
}

/* Names that follow from the kind, as long as they can be. */
static void names_follow_from_the_kind(void **state)
{
	for (size_t size = 1; size < 150; size += size < 115 || size > 125 ? 9 : 1) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_node *root;
		char		 text[700], wanted[700], kind[200], singular[200], list[200];
		int		 kept = (int) VDI_MIN(size, (size_t) 120);

		memset(kind, 'Z', size);
		kind[size] = 0;
		memset(singular, 'z', (size_t) kept);
		singular[kept] = 0;
		snprintf(list, sizeof list, "%.*sList", kept, kind);
		snprintf(text, sizeof text, "{\"spec\":{\"names\":{\"kind\":\"%s\"}}}", kind);
		assert_status(vdi_tree_parse(&tree, vd_bytes_of(text), &root, NULL), VD_OK);
		assert_status(vdi_crd_prepare(&tree, root, NULL), VD_OK);
		snprintf(wanted, sizeof wanted, "{\"kind\":\"%s\",\"singular\":\"%s\",\"listKind\":\"%s\"}",
			 kind, singular, list);
		check_text(vdi_tree_find(&tree, root, "spec.names"), wanted);
		vdi_tree_fini(&tree);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_follow_from_the_kind),
		cmocka_unit_test(each_state_has_its_conditions),
		cmocka_unit_test(a_delete_adds_the_finalizer_once),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
