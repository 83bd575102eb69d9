/* Unit tests of apiserver/object/deletion.c: what a delete makes of an object, by its options and its
 * state. */
#include "vdtest.h"

#include "deletion.h"

static const struct vdi_resource pods = {
	.group = "", .version = "v1", .kind = "Pod", .plural = "pods", .namespaced = true, .built_in = true
};
static const struct vdi_resource namespaces = {
	.group = "", .version = "v1", .kind = "Namespace", .plural = "namespaces", .built_in = true
};
static const struct vdi_resource maps = { .group = "",
					  .version = "v1",
					  .kind = "ConfigMap",
					  .plural = "configmaps",
					  .namespaced = true,
					  .built_in = true };
static const struct vdi_resource events = { .group = "",
					    .version = "v1",
					    .kind = "Event",
					    .plural = "events",
					    .namespaced = true,
					    .built_in = true };
static const struct vdi_resource cron_jobs = { .group = "batch",
					       .version = "v1",
					       .kind = "CronJob",
					       .plural = "cronjobs",
					       .namespaced = true,
					       .built_in = true };
static const struct vdi_resource other_jobs = {
	.group = "example.com", .version = "v1", .kind = "Job", .plural = "jobs", .namespaced = true
};
static const struct vdi_resource jobs = { .group = "batch",
					  .version = "v1",
					  .kind = "Job",
					  .plural = "jobs",
					  .namespaced = true,
					  .built_in = true };
static const struct vdi_resource widgets = {
	.group = "example.com", .version = "v1", .kind = "Widget", .plural = "widgets", .namespaced = true
};

/* 2026-05-28T20:26:40Z */
#define NOW ((vd_wall) { (int64_t) 1780000000 * 1000000000 })

struct row {
	const struct vdi_resource *resource;
	struct vdi_delete_options  options;
	const char		  *current;
	enum vdi_deletion_decision decision;
	const char		  *text; /* of a mark */
};

static void check(const struct row *row)
{
	struct vdi_deletion    deletion = { .text = VDI_OUT_INIT };
	struct vdi_http_status status = { .code = 0 };

	assert_status(vdi_deletion_plan(row->resource, &row->options, NOW, vd_bytes_of(row->current),
					&deletion, &status),
		      VD_OK);
	if (deletion.decision != row->decision)
		print_message("%s: %d\n", row->current, (int) deletion.decision);
	assert_int_equal(deletion.decision, row->decision);
	if (row->decision == VDI_DELETION_MARK) {
		vdi_out_bytes(&deletion.text, (struct vd_bytes) { "", 1 });
		assert_string_equal(deletion.text.data, row->text);
	}
	for (uint64_t nth = 1, failed = true; failed; nth++) {
		vd_status result;

		memset(&status, 0, sizeof status);
		(void) vdi_alloc_fail_nth(nth, 1);
		result = vdi_deletion_plan(row->resource, &row->options, NOW, vd_bytes_of(row->current),
					   &deletion, &status);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(result, failed ? VD_NOMEM : VD_OK);
		assert_int_equal(status.code, failed ? 500 : 0);
		vdi_out_fini(&deletion.text);
		deletion.text = (struct vdi_out) VDI_OUT_INIT;
	}
	vdi_out_fini(&deletion.text);
}

#define MARKED "\"deletionTimestamp\":\"2026-05-28T20:26:40Z\",\"deletionGracePeriodSeconds\":0"

static void r667_finalizers_make_a_mark(void **state)
{
	static const struct row rows[] = {
		{ &maps,
		  { .dry_run = false },
		  "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}}",
		  VDI_DELETION_REMOVE,
		  NULL },
		{ &maps,
		  { .dry_run = false },
		  "{\"metadata\":{\"name\":\"a\",\"finalizers\":[]}}",
		  VDI_DELETION_REMOVE,
		  NULL },
		{ &maps,
		  { .dry_run = false },
		  "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\",\"generation\":3,\"finalizers\":["
		  "\"x/y\"]}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"name\":\"a\",\"generation\":4,\"finalizers\":[\"x/y\"]," MARKED "}}" },
		/* a second time: nothing changes */
		{ &maps,
		  { .dry_run = false },
		  "{\"metadata\":{\"finalizers\":[\"x/"
		  "y\"],\"generation\":4,\"deletionTimestamp\":\"2026-05-28T20:00:00Z\","
		  "\"deletionGracePeriodSeconds\":0}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"finalizers\":[\"x/"
		  "y\"],\"generation\":4,\"deletionTimestamp\":\"2026-05-28T20:00:00Z\","
		  "\"deletionGracePeriodSeconds\":0}}" },
		{ &maps,
		  { .dry_run = false },
		  "{\"metadata\":{\"deletionTimestamp\":\"2026-05-28T20:00:00Z\"}}",
		  VDI_DELETION_REMOVE,
		  NULL },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

static void r667_propagation_sets_the_collectors_finalizers(void **state)
{
	static const struct row rows[] = {
		{ &maps,
		  { .propagation = VDI_PROPAGATION_BACKGROUND },
		  "{\"metadata\":{}}",
		  VDI_DELETION_REMOVE,
		  NULL },
		{ &maps,
		  { .propagation = VDI_PROPAGATION_FOREGROUND },
		  "{\"metadata\":{}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"finalizers\":[\"foregroundDeletion\"]," MARKED "}}" },
		{ &widgets,
		  { .propagation = VDI_PROPAGATION_ORPHAN },
		  "{\"metadata\":{\"finalizers\":[\"a/b\"]}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"finalizers\":[\"a/b\",\"orphan\"]," MARKED "}}" },
		/* the deprecated form; false asks for no finalizer at all */
		{ &maps,
		  { .orphan_dependents = VD_TRUE },
		  "{\"metadata\":{}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"finalizers\":[\"orphan\"]," MARKED "}}" },
		{ &maps,
		  { .orphan_dependents = VD_FALSE },
		  "{\"metadata\":{\"finalizers\":[\"foregroundDeletion\"]}}",
		  VDI_DELETION_REMOVE,
		  NULL },
		/* one that was set before holds, unless something else is asked for */
		{ &maps,
		  { .dry_run = false },
		  "{\"metadata\":{\"finalizers\":[\"orphan\"]}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"finalizers\":[\"orphan\"]," MARKED "}}" },
		{ &maps,
		  { .propagation = VDI_PROPAGATION_BACKGROUND },
		  "{\"metadata\":{\"finalizers\":[\"orphan\"]}}",
		  VDI_DELETION_REMOVE,
		  NULL },
		{ &maps,
		  { .propagation = VDI_PROPAGATION_FOREGROUND },
		  "{\"metadata\":{\"finalizers\":[\"orphan\",\"a/b\"]}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"finalizers\":[\"a/b\",\"foregroundDeletion\"]," MARKED "}}" },
		{ &maps,
		  { .dry_run = false },
		  "{\"metadata\":{\"finalizers\":[\"foregroundDeletion\"]}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"finalizers\":[\"foregroundDeletion\"]," MARKED "}}" },
		{ &maps,
		  { .dry_run = false },
		  "{\"metadata\":{\"finalizers\":[\"orphan\",\"foregroundDeletion\"]}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"finalizers\":[\"orphan\"]," MARKED "}}" },
		{ &maps,
		  { .propagation = VDI_PROPAGATION_ORPHAN },
		  "{\"metadata\":{\"finalizers\":[\"foregroundDeletion\",\"a/b\",\"foregroundDeletion\"]}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"finalizers\":[\"a/b\",\"orphan\"]," MARKED "}}" },
		{ &jobs,
		  { .dry_run = false },
		  "{\"metadata\":{\"finalizers\":[\"foregroundDeletion\"]}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"finalizers\":[\"foregroundDeletion\"]," MARKED "}}" },
		/* jobs orphan by default, nothing belongs to events */
		{ &jobs,
		  { .dry_run = false },
		  "{\"metadata\":{}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"finalizers\":[\"orphan\"]," MARKED "}}" },
		{ &cron_jobs, { .dry_run = false }, "{\"metadata\":{}}", VDI_DELETION_REMOVE, NULL },
		{ &other_jobs, { .dry_run = false }, "{\"metadata\":{}}", VDI_DELETION_REMOVE, NULL },
		{ &jobs,
		  { .propagation = VDI_PROPAGATION_BACKGROUND },
		  "{\"metadata\":{}}",
		  VDI_DELETION_REMOVE,
		  NULL },
		{ &events,
		  { .propagation = VDI_PROPAGATION_FOREGROUND },
		  "{\"metadata\":{}}",
		  VDI_DELETION_REMOVE,
		  NULL },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

#define BOUND "\"spec\":{\"nodeName\":\"n\"}"
#define GRACE(at, seconds)                                                                                   \
	"{\"metadata\":{\"deletionTimestamp\":\"2026-05-28T20:" at                                           \
	"Z\",\"deletionGracePeriodSeconds\":" #seconds "}," BOUND "}"

static void r667_pods_have_a_grace_period(void **state)
{
	static const struct row rows[] = {
		{ &pods, { .dry_run = false }, "{\"metadata\":{},\"spec\":{}}", VDI_DELETION_REMOVE, NULL },
		{ &pods,
		  { .has_grace = true, .grace_s = 60 },
		  "{\"metadata\":{},\"spec\":{}}",
		  VDI_DELETION_REMOVE,
		  NULL },
		{ &pods,
		  { .dry_run = false },
		  "{\"metadata\":{}," BOUND "}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"deletionTimestamp\":\"2026-05-28T20:27:10Z\","
		  "\"deletionGracePeriodSeconds\":30}," BOUND "}" },
		{ &pods,
		  { .dry_run = false },
		  "{\"metadata\":{\"generation\":1},\"spec\":{\"nodeName\":\"n\","
		  "\"terminationGracePeriodSeconds\":5}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"generation\":2,\"deletionTimestamp\":\"2026-05-28T20:26:45Z\","
		  "\"deletionGracePeriodSeconds\":5},"
		  "\"spec\":{\"nodeName\":\"n\",\"terminationGracePeriodSeconds\":5}}" },
		{ &pods, { .has_grace = true }, "{\"metadata\":{}," BOUND "}", VDI_DELETION_REMOVE, NULL },
		{ &pods,
		  { .has_grace = true, .grace_s = -5 },
		  "{\"metadata\":{}," BOUND "}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"deletionTimestamp\":\"2026-05-28T20:26:41Z\","
		  "\"deletionGracePeriodSeconds\":1}," BOUND "}" },
		{ &pods,
		  { .dry_run = false },
		  "{\"metadata\":{}," BOUND ",\"status\":{\"phase\":\"Succeeded\"}}",
		  VDI_DELETION_REMOVE,
		  NULL },
		{ &pods,
		  { .dry_run = false },
		  "{\"metadata\":{}," BOUND ",\"status\":{\"phase\":\"Failed\"}}",
		  VDI_DELETION_REMOVE,
		  NULL },
		/* under way: only a shorter one changes anything */
		{ &pods, { .dry_run = false }, GRACE("27:10", 30), VDI_DELETION_WAIT, NULL },
		{ &pods, { .has_grace = true, .grace_s = 30 }, GRACE("27:10", 30), VDI_DELETION_WAIT, NULL },
		{ &pods,
		  { .has_grace = true, .grace_s = 10 },
		  GRACE("27:10", 30),
		  VDI_DELETION_MARK,
		  GRACE("26:50", 10) },
		{ &pods,
		  { .has_grace = true, .grace_s = 5 },
		  GRACE("26:50", 30),
		  VDI_DELETION_MARK,
		  GRACE("26:40", 1) }, /* not into the past */
		{ &pods, { .has_grace = true, .grace_s = 0 }, GRACE("26:50", 30), VDI_DELETION_REMOVE, NULL },
		{ &pods, { .has_grace = true, .grace_s = 60 }, GRACE("27:10", 30), VDI_DELETION_WAIT, NULL },
		{ &pods, { .has_grace = true, .grace_s = 31 }, GRACE("27:10", 30), VDI_DELETION_WAIT, NULL },
		{ &pods,
		  { .has_grace = true, .grace_s = 29 },
		  GRACE("27:10", 30),
		  VDI_DELETION_MARK,
		  GRACE("27:09", 29) },
		{ &pods,
		  { .has_grace = true, .grace_s = 20 },
		  GRACE("26:50", 30),
		  VDI_DELETION_MARK,
		  GRACE("26:40", 20) },
		{ &pods,
		  { .has_grace = true, .grace_s = -1 },
		  GRACE("27:10", 30),
		  VDI_DELETION_MARK,
		  GRACE("26:41", 1) },
		{ &pods, { .has_grace = true, .grace_s = 1 }, GRACE("26:41", 1), VDI_DELETION_WAIT, NULL },
		/* a period that was stored negative is one second */
		{ &pods, { .dry_run = false }, GRACE("27:10", -3), VDI_DELETION_WAIT, NULL },
		{ &pods, { .has_grace = true, .grace_s = 0 }, GRACE("27:10", -3), VDI_DELETION_REMOVE, NULL },
		{ &pods,
		  { .dry_run = false },
		  "{\"metadata\":{},\"spec\":{\"nodeName\":\"n\",\"terminationGracePeriodSeconds\":-7}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"deletionTimestamp\":\"2026-05-28T20:26:41Z\","
		  "\"deletionGracePeriodSeconds\":1},\"spec\":{\"nodeName\":\"n\","
		  "\"terminationGracePeriodSeconds\":-7}}" },
		{ &pods,
		  { .dry_run = false },
		  "{\"metadata\":{},\"spec\":{\"nodeName\":\"n\",\"terminationGracePeriodSeconds\":0}}",
		  VDI_DELETION_REMOVE,
		  NULL },
		{ &pods,
		  { .has_grace = true, .grace_s = 3 },
		  "{\"metadata\":{},\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":\"Running\"}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"deletionTimestamp\":\"2026-05-28T20:26:43Z\","
		  "\"deletionGracePeriodSeconds\":3},\"spec\":{\"nodeName\":\"n\"},\"status\":{\"phase\":"
		  "\"Running\"}}" },
		/* what an agent does in the end, and what is left when it was killed in between */
		{ &pods,
		  { .dry_run = false },
		  "{\"metadata\":{\"deletionTimestamp\":\"2026-05-28T20:26:40Z\","
		  "\"deletionGracePeriodSeconds\":0}," BOUND "}",
		  VDI_DELETION_REMOVE,
		  NULL },
		/* with finalizers it waits for those as well */
		{ &pods,
		  { .has_grace = true },
		  "{\"metadata\":{\"finalizers\":[\"x/y\"]}," BOUND "}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"finalizers\":[\"x/y\"]," MARKED "}," BOUND "}" },
		{ &maps,
		  { .has_grace = true, .grace_s = 60 },
		  "{\"metadata\":{}," BOUND "}",
		  VDI_DELETION_REMOVE,
		  NULL },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

#define TERMINATING(metadata, spec)                                                                          \
	"{\"metadata\":{\"name\":\"a\",\"deletionTimestamp\":\"2026-05-28T20:26:40Z\"" metadata              \
	"},\"spec\":{\"finalizers\":[" spec "]},\"status\":{\"phase\":\"Terminating\"}}"

static void r667_namespaces_terminate(void **state)
{
	static const struct row rows[] = {
		{ &namespaces,
		  { .dry_run = false },
		  "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"finalizers\":[\"kubernetes\"]},\"status\":{"
		  "\"phase\":\"Active\"}}",
		  VDI_DELETION_MARK,
		  TERMINATING("", "\"kubernetes\"") },
		/* one without the finalizer, from before there were any */
		{ &namespaces,
		  { .dry_run = false },
		  "{\"metadata\":{\"name\":\"a\"}}",
		  VDI_DELETION_MARK,
		  TERMINATING("", "\"kubernetes\"") },
		{ &namespaces,
		  { .propagation = VDI_PROPAGATION_FOREGROUND },
		  "{\"metadata\":{\"name\":\"a\"}}",
		  VDI_DELETION_MARK,
		  TERMINATING(",\"finalizers\":[\"foregroundDeletion\"]", "\"kubernetes\"") },
		{ &namespaces,
		  { .orphan_dependents = VD_FALSE },
		  "{\"metadata\":{\"name\":\"a\"}}",
		  VDI_DELETION_MARK,
		  TERMINATING(",\"finalizers\":[\"foregroundDeletion\"]", "\"kubernetes\"") },
		/* finalizers that were there before: of both, a namespace keeps both */
		{ &namespaces,
		  { .dry_run = false },
		  "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"orphan\",\"foregroundDeletion\"]}}",
		  VDI_DELETION_MARK,
		  "{\"metadata\":{\"name\":\"a\",\"finalizers\":[\"orphan\",\"foregroundDeletion\"],"
		  "\"deletionTimestamp\":\"2026-05-28T20:26:40Z\"},\"spec\":{\"finalizers\":[\"kubernetes\"]}"
		  ","
		  "\"status\":{\"phase\":\"Terminating\"}}" },
		{ &namespaces,
		  { .orphan_dependents = VD_TRUE },
		  "{\"metadata\":{\"name\":\"a\"}}",
		  VDI_DELETION_MARK,
		  TERMINATING(",\"finalizers\":[\"orphan\"]", "\"kubernetes\"") },
		{ &namespaces,
		  { .dry_run = false },
		  TERMINATING("", "\"kubernetes\""),
		  VDI_DELETION_WAIT,
		  NULL },
		{ &namespaces, { .has_grace = true }, TERMINATING("", "\"other\""), VDI_DELETION_WAIT, NULL },
		{ &namespaces, { .dry_run = false }, TERMINATING("", ""), VDI_DELETION_REMOVE, NULL },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
	assert_true(vdi_deletion_is_immortal(&namespaces, vd_bytes_of("kube-public")));
	assert_false(vdi_deletion_is_immortal(&namespaces, vd_bytes_of("kube-node-lease")));
	assert_false(vdi_deletion_is_immortal(&maps, vd_bytes_of("default")));
}

static void r664_the_last_finalizer_ends_a_marked_object(void **state)
{
#define M "\"deletionTimestamp\":\"2026-05-28T20:26:40Z\""
	static const struct {
		const struct vdi_resource *resource;
		const char		  *old, *new;
		bool			   is_over;
	} rows[] = {
		{ &maps, "{\"metadata\":{" M ",\"finalizers\":[\"a/b\"]}}", "{\"metadata\":{" M "}}", true },
		{ &maps, "{\"metadata\":{" M ",\"finalizers\":[\"a/b\"]}}",
		  "{\"metadata\":{" M ",\"finalizers\":[]}}", true },
		{ &maps, "{\"metadata\":{" M ",\"finalizers\":[\"a/b\",\"c/d\"]}}",
		  "{\"metadata\":{" M ",\"finalizers\":[\"c/d\"]}}", false },
		{ &maps, "{\"metadata\":{\"finalizers\":[\"a/b\"]}}", "{\"metadata\":{}}", false },
		/* one whose grace period runs is its agent's to end */
		{ &pods, "{\"metadata\":{" M ",\"deletionGracePeriodSeconds\":30}}",
		  "{\"metadata\":{" M ",\"deletionGracePeriodSeconds\":30}}", false },
		{ &pods, "{\"metadata\":{" M ",\"deletionGracePeriodSeconds\":0}}", "{\"metadata\":{" M "}}",
		  true },
		{ &namespaces, "{\"metadata\":{" M "}}",
		  "{\"metadata\":{" M "},\"spec\":{\"finalizers\":[\"kubernetes\"]}}", false },
		{ &namespaces, "{\"metadata\":{" M "}}",
		  "{\"metadata\":{" M "},\"spec\":{\"finalizers\":[]}}", true },
		{ &namespaces, "{\"metadata\":{" M "}}",
		  "{\"metadata\":{" M ",\"finalizers\":[\"a/b\"]},\"spec\":{}}", false },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_node *root, *old_root;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].old), &old_root, NULL), VD_OK);
		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].new), &root, NULL), VD_OK);
		if (vdi_deletion_is_over(rows[i].resource, &tree, root, old_root) != rows[i].is_over)
			print_message("%s\n", rows[i].new);
		assert_int_equal(vdi_deletion_is_over(rows[i].resource, &tree, root, old_root),
				 rows[i].is_over);
		vdi_tree_fini(&tree);
	}
}

static void what_an_update_may_not_do_to_a_marked_object(void **state)
{
	static const struct {
		const char *old, *new, *message;
	} rows[] = {
		{ "{" M ",\"finalizers\":[\"a/b\"]}", "{\"finalizers\":[\"a/b\"]}", NULL },
		{ "{" M ",\"finalizers\":[\"a/b\"]}", "{}", NULL },
		{ "{" M ",\"finalizers\":[\"a/b\"]}", "{\"finalizers\":[\"a/b\",\"c/d\",\"e/f\"]}",
		  "Forbidden: no new finalizers can be added if the object is being deleted, found new "
		  "finalizers []string{\"c/d\", \"e/f\"}" },
		{ "{}", "{\"finalizers\":[\"a/b\"]}", NULL },
		{ "{}", "{" M "}", "Invalid value: \"2026-05-28T20:26:40Z\": field is immutable" },
		{ "{" M "}", "{\"deletionTimestamp\":\"2030-01-01T00:00:00Z\"}",
		  NULL }, /* the old one is kept */
		{ "{" M ",\"deletionGracePeriodSeconds\":30}", "{" M ",\"deletionGracePeriodSeconds\":5}",
		  "Invalid value: 5: field is immutable" },
		{ "{" M ",\"deletionGracePeriodSeconds\":30}", "{" M "}", NULL },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree		tree = VDI_TREE_INIT;
		struct vdi_field_errors field_errors = { 0 };
		struct vdi_node	       *metadata, *old;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].old), &old, NULL), VD_OK);
		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].new), &metadata, NULL), VD_OK);
		vdi_deletion_validate_update(&tree, metadata, old, &field_errors);
		assert_int_equal(field_errors.count, rows[i].message != NULL);
		if (rows[i].message)
			assert_true(vd_bytes_equal(vdi_field_errors_text(&field_errors, 0),
						   vd_bytes_of(rows[i].message)));
		vdi_field_errors_fini(&field_errors);
		vdi_tree_fini(&tree);
	}
}

static void every_failed_allocation_is_reported(void **state)
{
	static const struct vdi_delete_options	options = { .propagation = VDI_PROPAGATION_FOREGROUND };
	static const struct vdi_resource *const kinds[] = { &namespaces, &pods, &maps };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(kinds); i++)
		for (uint64_t nth = 1;; nth++) {
			int64_t		       live = vdi_alloc_live();
			struct vdi_deletion    deletion = { .text = VDI_OUT_INIT };
			struct vdi_http_status status = { .code = 0 };
			vd_status	       result;
			bool		       failed;

			vdi_alloc_fail_nth(nth, 1);
			result = vdi_deletion_plan(
				kinds[i], &options, NOW,
				vd_bytes_of("{\"metadata\":{\"generation\":1,\"uid\":\"u\"}," BOUND "}"),
				&deletion, &status);
			failed = vdi_alloc_failed();
			vdi_alloc_fail_nth(0, 0);
			assert_status(result, failed ? VD_NOMEM : VD_OK);
			if (failed)
				assert_int_equal(status.code, 500);
			vdi_out_fini(&deletion.text);
			assert_int_equal(vdi_alloc_live(), live);
			if (!failed)
				break;
		}
}

static void some_kinds_return_what_was_deleted(void **state)
{
	static const struct {
		const char *group, *plural;
		bool	    returns;
	} rows[] = {
		{ "", "namespaces", true },	   { "", "pods", true },
		{ "", "services", true },	   { "", "serviceaccounts", true },
		{ "", "persistentvolumes", true }, { "", "persistentvolumeclaims", true },
		{ "", "configmaps", false },	   { "", "secrets", false },
		{ "example.com", "pods", false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (int is_built_in = 0; is_built_in < 2; is_built_in++) {
			struct vdi_resource resource = { .group = rows[i].group,
							 .plural = rows[i].plural,
							 .built_in = is_built_in };

			assert_int_equal(vdi_deletion_returns_object(&resource),
					 rows[i].returns && is_built_in);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(some_kinds_return_what_was_deleted),
		cmocka_unit_test(r667_finalizers_make_a_mark),
		cmocka_unit_test(r667_propagation_sets_the_collectors_finalizers),
		cmocka_unit_test(r667_pods_have_a_grace_period),
		cmocka_unit_test(r667_namespaces_terminate),
		cmocka_unit_test(r664_the_last_finalizer_ends_a_marked_object),
		cmocka_unit_test(what_an_update_may_not_do_to_a_marked_object),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
