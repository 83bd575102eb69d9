/* Unit tests of apiserver/object/object_edit.c: what a create makes of an object. */
#include "vdtest.h"

#include "object_edit.h"

static const struct vdi_resource maps = { .group = "",
					  .version = "v1",
					  .kind = "ConfigMap",
					  .plural = "configmaps",
					  .namespaced = true,
					  .built_in = true };
static const struct vdi_resource deployments = { .group = "apps",
						 .version = "v1",
						 .kind = "Deployment",
						 .plural = "deployments",
						 .namespaced = true,
						 .built_in = true,
						 .has_status = true,
						 .has_scale = true,
						 .has_generation = true };
static const struct vdi_resource widgets = { .group = "example.com",
					     .version = "v1",
					     .kind = "Widget",
					     .plural = "widgets",
					     .namespaced = true,
					     .has_status = true,
					     .has_scale = true,
					     .has_generation = true };
static const struct vdi_resource secrets = { .group = "",
					     .version = "v1",
					     .kind = "Secret",
					     .plural = "secrets",
					     .namespaced = true,
					     .built_in = true };

/* 2026-05-28T20:26:40Z */
#define NOW ((vd_wall) { (int64_t) 1780000000 * 1000000000 })

static const struct vdi_resource create_jobs = { .group = "batch",
						 .version = "v1",
						 .kind = "Job",
						 .plural = "jobs",
						 .namespaced = true,
						 .built_in = true,
						 .has_status = true };
static const struct vdi_resource create_nodes = { .group = "",
						  .version = "v1",
						  .kind = "Node",
						  .plural = "nodes",
						  .built_in = true,
						  .has_status = true,
						  .keeps_status = true };

#define UID "00000000-0000-4001-8000-000000000002"
#define CREATED "\"uid\":\"" UID "\",\"creationTimestamp\":\"2026-05-28T20:26:40Z\""
#define TEN "abcdefghij"
#define SIXTY TEN TEN TEN TEN TEN TEN

static void what_a_create_makes_of_an_object(void **state)
{
	static const struct {
		const struct vdi_resource *resource;
		const char		  *body;
		int			   code; /* of a refusal; 0: it is taken */
		const char		  *text; /* all of the result, or of the refusal */
		const char		  *name;
		bool			   generated;
	} create_rows[] = {
		{ &maps, "{\"metadata\":{\"name\":\"a\"}}", 0,
		  "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"," CREATED
		  "},\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}",
		  "a", false },
		{ &widgets,
		  "{\"apiVersion\":\"example.com/"
		  "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"a\":1.0,\"b\":[1e2]},"
		  "\"status\":{\"x\":1}}",
		  0,
		  "{\"apiVersion\":\"example.com/"
		  "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"," CREATED
		  ",\"generation\":1},"
		  "\"spec\":{\"a\":1,\"b\":[100]}}",
		  "a", false },
		/* What the server sets, a client cannot. */
		{ &maps,
		  "{\"metadata\":{\"name\":\"a\",\"uid\":\"x\",\"creationTimestamp\":\"2020-01-01T00:00:"
		  "00Z\",\"generation\":7,\"selfLink\":\"/x\",\"resourceVersion\":\"0\","
		  "\"deletionTimestamp\":\"2020-01-01T00:00:00Z\",\"deletionGracePeriodSeconds\":5,"
		  "\"managedFields\":[]},\"data\":{}}",
		  0,
		  "{\"metadata\":{\"name\":\"a\"," CREATED
		  ",\"namespace\":\"default\"},\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}",
		  "a", false },
		/* A status is set at a create by nodes only. */
		{ &create_nodes, "{\"metadata\":{\"name\":\"a\"},\"status\":{\"phase\":\"x\"}}", 0,
		  "{\"metadata\":{\"name\":\"a\"," CREATED
		  "},\"status\":{\"phase\":\"x\"},\"apiVersion\":\"v1\",\"kind\":\"Node\"}",
		  "a", false },
		/* Names that are made. */
		{ &maps, "{\"metadata\":{\"generateName\":\"a-\"}}", 0,
		  "{\"metadata\":{\"generateName\":\"a-\",\"namespace\":\"default\",\"name\":\"a-"
		  "gbbbb\"," CREATED "},\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}",
		  "a-gbbbb", true },
		{ &maps, "{\"metadata\":{\"name\":\"b\",\"generateName\":\"a-\"}}", 0,
		  "{\"metadata\":{\"name\":\"b\",\"generateName\":\"a-\",\"namespace\":\"default\"," CREATED
		  "},\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}",
		  "b", false },
		{ &maps, "{\"metadata\":{\"generateName\":\"" SIXTY "\"}}", 0,
		  "{\"metadata\":{\"generateName\":\"" SIXTY
		  "\",\"namespace\":\"default\",\"name\":\"" TEN TEN TEN TEN TEN "abcdefghgbbbb\"," CREATED
		  "},\"apiVersion\":\"v1\","
		  "\"kind\":\"ConfigMap\"}",
		  TEN TEN TEN TEN TEN "abcdefghgbbbb", true },
		{ &maps, "{\"metadata\":{\"generateName\":\"\"}}", 422, NULL, "", false },
		{ &create_jobs, "{\"metadata\":{\"name\":\"" SIXTY "abc\"},\"spec\":{}}", 0, NULL,
		  SIXTY "abc", false },
		{ &create_jobs,
		  "{\"metadata\":{\"name\":\"" SIXTY "abcd\"},\"spec\":{\"manualSelector\":true}}", 0, NULL,
		  SIXTY "abcd", false },
		{ &create_jobs, "{\"metadata\":{\"name\":\"" SIXTY "abcd\"},\"spec\":{}}", 422, NULL,
		  SIXTY "abcd", false },
		{ &maps, "{\"metadata\":{\"name\":\"" SIXTY "abcd\"},\"data\":{}}", 0, NULL, SIXTY "abcd",
		  false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(create_rows); i++) {
		struct vdi_edit	       edit = { .resource = create_rows[i].resource,
						.namespace_name = vd_bytes_of(
							create_rows[i].resource->namespaced ? "default" : ""),
						.body = vd_bytes_of(create_rows[i].body),
						.now = NOW,
						.random = { 1, 2, 4 } };
		struct vdi_http_status status = { 0 };
		struct vdi_edited      edited = { 0 };
		vd_status	       result = vdi_edit_create(&edit, &edited, &status);

		if ((result == VD_OK) != (create_rows[i].code == 0) || status.code != create_rows[i].code ||
		    (create_rows[i].text &&
		     !vd_bytes_equal(vdi_out_slice(&edited.text), vd_bytes_of(create_rows[i].text))))
			fail_msg("%s: %d %s %.*s", create_rows[i].body, status.code, status.message,
				 (int) edited.text.size, edited.text.size ? edited.text.data : "");
		assert_string_equal(edited.name, create_rows[i].name);
		assert_int_equal(edited.generated, create_rows[i].generated);
		vdi_edited_fini(&edited);
	}
}

/* Five letters, of those that make no words, by the number that was drawn. */
static void names_are_made_of_27_letters(void **state)
{
	static const char     letters[] = "bcdfghjklmnpqrstvwxz2456789";
	const struct vd_bytes body = vd_bytes_of("{\"metadata\":{\"generateName\":\"x\"}}");

	for (uint64_t random = 0; random < 27 * 27 + 30; random++) {
		struct vdi_edit	       edit = { .resource = &maps,
						.namespace_name = vd_bytes_of("default"),
						.body = body,
						.now = NOW,
						.random = { 1, 2, random } };
		struct vdi_http_status status = { 0 };
		struct vdi_edited      edited = { 0 };
		char		       name[] = "x.....";

		assert_status(vdi_edit_create(&edit, &edited, &status), VD_OK);
		for (uint64_t i = 1, rest = random; i < 6; i++, rest /= 27)
			name[i] = letters[rest % 27];
		assert_string_equal(edited.name, name);
		vdi_edited_fini(&edited);
	}
}

#define UNRECOGNIZED "the object provided is unrecognized (must be of type ConfigMap): "

/* A body that is no object says so; one that is no JSON says where. */
static void what_is_no_object_is_refused(void **state)
{
	static const struct vdi_resource kind = { .group = "",
						  .version = "v1",
						  .kind = "ConfigMap",
						  .plural = "configmaps",
						  .namespaced = true,
						  .built_in = true };
	static const char *const	 rows[][2] = {
			{ "[]", UNRECOGNIZED "the body must be a JSON object" },
			{ "\"x\"", UNRECOGNIZED "the body must be a JSON object" },
			{ "{", UNRECOGNIZED "expected a string as key at offset 1" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_edit	       edit = { .resource = &kind,
						.namespace_name = vd_bytes_of("n"),
						.body = vd_bytes_of(rows[i][0]) };
		struct vdi_edited      edited = { 0 };
		struct vdi_http_status status = { 0 };

		assert_status(vdi_edit_create(&edit, &edited, &status), VD_INVALID);
		assert_int_equal(status.code, 400);
		assert_string_equal(status.message, rows[i][1]);
		vdi_edited_fini(&edited);
	}
}

static const struct vdi_resource services = { .group = "",
					      .version = "v1",
					      .kind = "Service",
					      .plural = "services",
					      .namespaced = true,
					      .built_in = true,
					      .has_status = true };
static const struct vdi_resource living_namespaces = { .group = "",
						       .version = "v1",
						       .kind = "Namespace",
						       .plural = "namespaces",
						       .built_in = true,
						       .has_status = true,
						       .initial_phase = "Active" };
static const struct vdi_resource converted = { .group = "example.com",
					       .version = "v2",
					       .kind = "Widget",
					       .plural = "widgets",
					       .api_version = "example.com/v2",
					       .stored_api_version = "example.com/v1",
					       .namespaced = true };

/* What a server adds to a new object of each kind, and what it refuses. */
static const struct {
	const struct vdi_resource *resource;
	const char		  *body;
	int			   code;
	const char		  *text; /* all of the result; of a refusal: a part of the message */
} create_rows_of_kinds[] = {
	{ &living_namespaces, "{\"metadata\":{\"name\":\"a\"}}", 0,
	  "{\"metadata\":{\"name\":\"a\",\"labels\":{\"kubernetes.io/metadata.name\":\"a\"}," CREATED
	  "},\"apiVersion\":\"v1\",\"kind\":\"Namespace\",\"status\":{\"phase\":\"Active\"},"
	  "\"spec\":{\"finalizers\":[\"kubernetes\"]}}" },
	{ &living_namespaces,
	  "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\",\"kubernetes.io/metadata.name\":\"b\"}},"
	  "\"spec\":{\"finalizers\":[\"kubernetes\"]},\"status\":{\"phase\":\"Terminating\"}}",
	  0,
	  "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\",\"kubernetes.io/"
	  "metadata.name\":\"a\"}," CREATED
	  "},\"spec\":{\"finalizers\":[\"kubernetes\"]},\"apiVersion\":\"v1\",\"kind\":\"Namespace\","
	  "\"status\":{\"phase\":\"Active\"}}" },
	{ &living_namespaces, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"finalizers\":[\"x/y\"]}}", 0,
	  "{\"metadata\":{\"name\":\"a\",\"labels\":{\"kubernetes.io/metadata.name\":\"a\"}," CREATED
	  "},\"spec\":{\"finalizers\":[\"x/y\",\"kubernetes\"]},\"apiVersion\":\"v1\",\"kind\":\"Namespace\","
	  "\"status\":{\"phase\":\"Active\"}}" },
	{ &living_namespaces, "{\"metadata\":{\"generateName\":\"a\"}}", 0,
	  "{\"metadata\":{\"generateName\":\"a\",\"name\":\"agbbbb\"," CREATED
	  ",\"labels\":{\"kubernetes.io/metadata.name\":\"agbbbb\"}},\"apiVersion\":\"v1\",\"kind\":"
	  "\"Namespace\",\"status\":{\"phase\":\"Active\"},\"spec\":{\"finalizers\":[\"kubernetes\"]}}" },
	{ &services, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"clusterIP\":\"None\"}}", 0,
	  "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"," CREATED
	  "},\"spec\":{\"clusterIP\":\"None\",\"type\":\"ClusterIP\"},\"apiVersion\":\"v1\",\"kind\":"
	  "\"Service\"}" },
	{ &services, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"type\":\"NodePort\"}}", 0,
	  "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"," CREATED
	  "},\"spec\":{\"type\":\"NodePort\"},\"apiVersion\":\"v1\",\"kind\":\"Service\"}" },
	{ &services, "{\"metadata\":{\"name\":\"a\"}}", 0,
	  "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"," CREATED
	  "},\"apiVersion\":\"v1\",\"kind\":\"Service\"}" },
	{ &deployments, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"paused\":true}}", 0,
	  "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"," CREATED
	  ",\"generation\":1},\"spec\":{\"paused\":true,\"replicas\":1},\"apiVersion\":\"apps/v1\",\"kind\":"
	  "\"Deployment\"}" },
	{ &deployments, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"replicas\":0}}", 0,
	  "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"," CREATED
	  ",\"generation\":1},\"spec\":{\"replicas\":0},\"apiVersion\":\"apps/"
	  "v1\",\"kind\":\"Deployment\"}" },
	{ &deployments, "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"replicas\":null}}", 0,
	  "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"," CREATED
	  ",\"generation\":1},\"spec\":{\"replicas\":1},\"apiVersion\":\"apps/"
	  "v1\",\"kind\":\"Deployment\"}" },
	{ &secrets, "{\"metadata\":{\"name\":\"a\"},\"stringData\":{\"k\":\"x\"}}", 0,
	  "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"," CREATED
	  "},\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"data\":{\"k\":\"eA==\"},\"type\":\"Opaque\"}" },
	{ &converted, "{\"apiVersion\":\"example.com/v2\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\"}}",
	  0,
	  "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\","
	  "\"namespace\":\"default\"," CREATED "}}" },
	{ &maps, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"\"}}", 0,
	  "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"," CREATED
	  "},\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}" },
	{ &maps, "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"0\"}}", 0,
	  "{\"metadata\":{\"name\":\"a\",\"namespace\":\"default\"," CREATED
	  "},\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"}" },
	{ &widgets,
	  "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\","
	  "\"resourceVersion\":\"\"}}",
	  0,
	  "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\","
	  "\"namespace\":\"default\"," CREATED ",\"generation\":1}}" },
	{ &secrets, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k/\":\"eA==\"}}", 422,
	  "Secret \"a\" is invalid: data[k/]: Invalid value: " },
	{ &maps, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"..\":\"\"}}", 422,
	  "ConfigMap \"a\" is invalid: data[..]: Invalid value: \"..\": must not be '..'" },
	{ &maps, "{\"metadata\":{\"name\":\"a\",\"namespace\":\"other\"}}", 400, "the namespace of the " },
};

static vd_status create_of_kind(size_t row, struct vdi_edited *edited, struct vdi_http_status *status)
{
	struct vdi_edit edit = { .resource = create_rows_of_kinds[row].resource,
				 .namespace_name = vd_bytes_of(
					 create_rows_of_kinds[row].resource->namespaced ? "default" : ""),
				 .body = vd_bytes_of(create_rows_of_kinds[row].body),
				 .now = NOW,
				 .random = { 1, 2, 4 } };

	memset(edited, 0, sizeof *edited);
	memset(edited->name, 'x', sizeof edited->name); /* outputs: their content does not count */
	memset(status, 0x5A, sizeof *status);
	return vdi_edit_create(&edit, edited, status);
}

static void a_create_sets_what_its_kind_needs(void **state)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(create_rows_of_kinds); i++) {
		struct vdi_edited      edited;
		struct vdi_http_status status;
		int		       code = create_rows_of_kinds[i].code;

		assert_status(create_of_kind(i, &edited, &status), code ? VD_INVALID : VD_OK);
		assert_int_equal(status.code, code);
		if (code == 0)
			assert_int_equal(edited.name[strlen("a") + (edited.generated ? 5 : 0)], 0);
		if (code ? strstr(status.message, create_rows_of_kinds[i].text) == NULL :
			   !vd_bytes_equal(vdi_out_slice(&edited.text),
					   vd_bytes_of(create_rows_of_kinds[i].text)))
			fail_msg("%s: %s %.*s", create_rows_of_kinds[i].body, status.message,
				 (int) edited.text.size, edited.text.size ? edited.text.data : "");
		vdi_edited_fini(&edited);
	}
}

static void every_failed_allocation_of_a_create_is_reported(void **state)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(create_rows_of_kinds); i++) {
		bool failed = true;

		for (uint64_t nth = 1; failed; nth++) {
			int64_t		       live = vdi_alloc_live();
			struct vdi_edited      edited;
			struct vdi_http_status status;
			vd_status	       result;

			(void) vdi_alloc_fail_nth(nth, 1);
			result = create_of_kind(i, &edited, &status);
			failed = vdi_alloc_failed();
			(void) vdi_alloc_fail_nth(0, 0);
			if (failed && (result != VD_NOMEM || status.code != 500))
				fail_msg("row %zu, allocation %d: %s %d %s", i, (int) nth,
					 vd_status_name(result), status.code, status.message);
			vdi_edited_fini(&edited);
			assert_int_equal(vdi_alloc_live(), live);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_no_object_is_refused),
		cmocka_unit_test(what_a_create_makes_of_an_object),
		cmocka_unit_test(names_are_made_of_27_letters),
		cmocka_unit_test(a_create_sets_what_its_kind_needs),
		cmocka_unit_test(every_failed_allocation_of_a_create_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
