/* Unit tests of apiserver/object/object_edit.c: what an update makes of an object, and which updates
 * are refused. */
#include "vdtest.h"

#include "object_edit.h"

static const struct vdi_resource maps = { .group = "",
					  .version = "v1",
					  .kind = "ConfigMap",
					  .plural = "configmaps",
					  .namespaced = true,
					  .built_in = true };
static const struct vdi_resource namespaces = { .group = "",
						.version = "v1",
						.kind = "Namespace",
						.plural = "namespaces",
						.built_in = true,
						.has_status = true };
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

static const struct vdi_resource leases = { .group = "coordination.k8s.io",
					    .version = "v1",
					    .kind = "Lease",
					    .plural = "leases",
					    .namespaced = true,
					    .built_in = true,
					    .needs_version = true };

/* 2026-05-28T20:26:40Z */
#define NOW ((vd_wall) { (int64_t) 1780000000 * 1000000000 })

#define META                                                                                                 \
	"\"metadata\":{\"resourceVersion\":\"7\",\"name\":\"a\",\"namespace\":\"default\",\"uid\":\"u\","    \
	"\"creationTimestamp\":\"2026-05-28T20:00:00Z\",\"generation\":1}"
#define NAMESPACE_META                                                                                       \
	"\"metadata\":{\"resourceVersion\":\"7\",\"name\":\"a\",\"uid\":\"u\",\"creationTimestamp\":\"2026-" \
	"05-28T20:00:00Z\"}"

static const char map[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"," META ",\"data\":{\"k\":\"v\"}}";
static const char deployment[] = "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\"," META
				 ",\"spec\":{\"replicas\":1},\"status\":{\"replicas\":1}}";
static const char lease[] =
	"{\"apiVersion\":\"coordination.k8s.io/v1\",\"kind\":\"Lease\"," META ",\"spec\":{}}";
static const char widget[] = "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\"," META
			     ",\"spec\":{\"replicas\":1},\"status\":{\"replicas\":1}}";
static const char namespace[] =
	"{\"apiVersion\":\"v1\",\"kind\":\"Namespace\"," NAMESPACE_META
	",\"spec\":{\"finalizers\":[\"kubernetes\"]},\"status\":{\"phase\":\"Active\"}}";

struct row {
	const struct vdi_resource *resource;
	const char		  *current;
	enum vdi_edit_part	   part;
	enum vdi_edit_patch	   patch;
	const char		  *body;
	int			   code; /* of a refusal; 0: it is taken */
	const char		  *text; /* what the refusal, or the result, holds */
};

static vd_status edit(const struct row *row, struct vdi_edited *edited, struct vdi_http_status *status)
{
	struct vdi_edit edit = { .resource = row->resource,
				 .namespace_name = vd_bytes_of("default"),
				 .name = vd_bytes_of("a"),
				 .body = vd_bytes_of(row->body),
				 .part = row->part,
				 .patch = row->patch,
				 .now = NOW,
				 .random = { 1, 2, 3 } };

	memset(edited, 0, sizeof *edited);
	memset(status, 0x5A, sizeof *status); /* an output: its content does not count */
	return vdi_edit_update(&edit, vd_bytes_of(row->current), edited, status);
}

static void check(const struct row *row)
{
	struct vdi_edited      edited;
	struct vdi_http_status status;
	vd_status	       result = edit(row, &edited, &status);
	const char	      *text = status.message;

	vdi_out_bytes(&edited.text, (struct vd_bytes) { "", 1 });
	if (row->code == 0)
		text = edited.text.data;
	if (result != (row->code ? VD_INVALID : VD_OK) || status.code != row->code ||
	    !strstr(text, row->text))
		fail_msg("%s: %d %s %s", row->body, status.code, status.message,
			 row->code == 0 ? edited.text.data : "");
	vdi_edited_fini(&edited);
}

#define LABELLED(more)                                                                                       \
	"\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":null,\"y\":\"z\"},\"annotations\":{\"n\":null}" more \
	"}"
#define NAMELESS "the name of the object (a based on URL) was undeterminable: name must be provided"
#define UNCONDITIONAL "metadata.resourceVersion: Invalid value: 0: must be specified for an update"

static void r661_the_object_that_is_written_says_which_it_is(void **state)
{
	static const struct row rows[] = {
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_NONE, "{}", 400, NAMELESS },
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_NONE, "{\"metadata\":{},\"data\":{}}", 400,
		  NAMELESS },
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"metadata\":null}", 400, NAMELESS },
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_OPERATIONS,
		  "[{\"op\":\"remove\",\"path\":\"/metadata/name\"}]", 400, NAMELESS },
		{ &namespaces, namespace, VDI_EDIT_FINALIZE, VDI_PATCH_NONE, "{}", 400, NAMELESS },
		{ &namespaces, namespace, VDI_EDIT_STATUS, VDI_PATCH_NONE, "{\"status\":{}}", 400, NAMELESS },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE, "{\"spec\":{\"replicas\":0}}",
		  400, NAMELESS },
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_NONE, "{\"metadata\":{\"name\":\"b\"}}", 400,
		  "the name of the object (b) does not match the name on the URL (a)" },
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"w\"}}", 0, "\"k\":\"w\"" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

static void r662_only_kubernetes_own_kinds_are_replaced_whatever_their_version(void **state)
{
	static const struct row rows[] = {
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"6\"}}", 409,
		  "the object has been modified" },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\"}}",
		  422, "widgets.example.com \"a\" is invalid: " UNCONDITIONAL },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  "{\"apiVersion\":\"example.com/"
		  "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"0\"}}",
		  422, UNCONDITIONAL },
		{ &widgets, widget, VDI_EDIT_STATUS, VDI_PATCH_NONE,
		  "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\"}}",
		  422, UNCONDITIONAL },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_MERGE,
		  "{\"metadata\":{\"resourceVersion\":null}}", 422, UNCONDITIONAL },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  "{\"apiVersion\":\"example.com/"
		  "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"6\"}}",
		  409, "the object has been modified" },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  "{\"apiVersion\":\"example.com/"
		  "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"},\"spec\":"
		  "{\"replicas\":5}}",
		  0, "\"replicas\":5" },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"spec\":{\"replicas\":6}}", 0,
		  "\"replicas\":6" },
		{ &leases, lease, VDI_EDIT_WHOLE, VDI_PATCH_NONE, "{\"metadata\":{\"name\":\"a\"}}", 422,
		  "leases.coordination.k8s.io \"a\" is invalid: " UNCONDITIONAL },
		{ &leases, lease, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"},\"spec\":{\"holderIdentity\":"
		  "\"h\"}}",
		  0, "\"holderIdentity\":\"h\"" },
		{ &widgets, widget, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"replicas\":4}}", 0, "\"replicas\":4" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

/* "" and "0" are no version; any other must be the text that the object has. */
static void r102_the_version_of_a_sent_object(void **state)
{
	static const struct {
		const char *version;
		int	    code;
	} rows[] = { { "", 0 },	     { "0", 0 },    { "7", 0 },	    { "07", 409 },
		     { "abc", 409 }, { "-7", 409 }, { "7.0", 409 }, { "18446744073709551623", 409 } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char text[160];

		snprintf(text, sizeof text,
			 "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"%s\"},\"data\":{\"k\":\"w\"}}",
			 rows[i].version);
		check(&(struct row) { &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_NONE, text, rows[i].code,
				      rows[i].code ? "the object has been modified" : "\"k\":\"w\"" });
	}
}

#define SCALE "\"metadata\":{\"name\":\"a\"}"

static void h347_a_scale_is_a_number_that_there_can_be(void **state)
{
	static const struct row rows[] = {
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{" SCALE ",\"spec\":{\"replicas\":3}}", 0, "\"replicas\":3" },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{\"apiVersion\":\"autoscaling/v1\",\"kind\":\"Scale\"," SCALE
		  ",\"spec\":{\"replicas\":0}}",
		  0, "\"replicas\":0" },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{" SCALE ",\"spec\":{\"replicas\":-2}}", 422,
		  "Scale.autoscaling \"a\" is invalid: spec.replicas: Invalid value: -2: must be greater "
		  "than or equal to 0" },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{" SCALE ",\"spec\":{\"replicas\":\"3\"}}", 400,
		  "Scale in version \"v1\" cannot be handled as a Scale: " },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{" SCALE ",\"spec\":{\"replicas\":1.5}}", 400,
		  "Scale in version \"v1\" cannot be handled as a Scale: " },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{" SCALE ",\"spec\":{\"replicas\":2147483648}}", 400,
		  "Scale in version \"v1\" cannot be handled as a Scale: " },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE, "{" SCALE ",\"spec\":[]}", 400,
		  "Scale in version \"v1\" cannot be handled as a Scale: " },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"," SCALE ",\"spec\":{\"replicas\":1}}", 400,
		  "Pod in version \"v1\" cannot be handled as a Scale" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

/* rules: H-347. Go's encoder omits a zero, so an absent number scales to zero, whatever brings it. */
static void h347_a_scale_without_a_number_is_zero(void **state)
{
	static const struct row rows[] = {
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/v1\"," SCALE
		  ",\"spec\":{},\"status\":{\"replicas\":1}}",
		  0, "\"spec\":{\"replicas\":0}" },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE, "{" SCALE "}", 0,
		  "\"spec\":{\"replicas\":0}" },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{" SCALE ",\"spec\":{\"replicas\":null}}", 0, "\"spec\":{\"replicas\":0}" },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_MERGE, "{\"spec\":null}", 0,
		  "\"spec\":{\"replicas\":0}" },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_OPERATIONS,
		  "[{\"op\":\"remove\",\"path\":\"/spec/replicas\"}]", 0, "\"spec\":{\"replicas\":0}" },
		{ &widgets, widget, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{\"metadata\":{\"name\":\"a\"},\"spec\":{}}", 0, "\"spec\":{\"replicas\":0}" },
		/* A patch that does not mention the number leaves it. */
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_MERGE, "{\"spec\":{}}", 0,
		  "\"spec\":{\"replicas\":1}" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

/* As upstream, which stores the numbers of custom kinds as Go values; Kubernetes' own are checked by their
 * types before. */
static void a_custom_kinds_whole_numbers_are_stored_as_such(void **state)
{
#define WIDGET_IS(what)                                                                                      \
	"{\"apiVersion\":\"example.com/"                                                                     \
	"v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"},\"spec\":{"        \
	"\"x\":" what "}}"
	static const struct row rows[] = {
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_NONE, WIDGET_IS("[1.0,1e2,-0,{\"y\":2.50e1}]"),
		  0, "\"spec\":{\"x\":[1,100,0,{\"y\":25}]}" },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  WIDGET_IS("[1.5,1e-3,18446744073709551616,\"1.0\"]"), 0,
		  "[1.5,1e-3,18446744073709551616,\"1.0\"]" },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"spec\":{\"x\":1.0}}", 0,
		  "\"x\":1}" },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_OPERATIONS,
		  "[{\"op\":\"add\",\"path\":\"/spec/x\",\"value\":1e1}]", 0, "\"x\":10}" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

/* What says the same in other words is no change: no write, and metadata.generation stays.
 * rules: R-135, T-031 */
static void r135_absent_null_and_empty_are_no_change(void **state)
{
#define UPDATED(more) "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"replicas\":1" more "}"
	static const struct {
		struct row row;
		bool	   unchanged;
	} rows[] = {
		{ { &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		    "{\"metadata\":{\"name\":\"a\",\"labels\":{},\"finalizers\":[],\"ownerReferences\":null},"
		    "\"data\":{\"k\":\"v\"},\"binaryData\":{}}" },
		  true },
		{ { &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		    "{\"metadata\":{\"name\":\"a\",\"selfLink\":\"/a\"},\"data\":{\"k\":\"v\"}}" },
		  true },
		{ { &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"metadata\":{\"selfLink\":\"/a\"}}" },
		  true },
		{ { &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"metadata\":{\"annotations\":{}}}" },
		  true },
		{ { &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"immutable\":false}" }, false },
		{ { &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"data\":{\"l\":\"\"}}" }, false },
		{ { &deployments, deployment, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		    UPDATED(",\"paused\":false,\"minReadySeconds\":0,\"strategy\":{}}") },
		  true },
		{ { &deployments, deployment, VDI_EDIT_WHOLE, VDI_PATCH_NONE, UPDATED("},\"status\":{}") },
		  true },
		{ { &deployments, deployment, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		    "{\"metadata\":{\"name\":\"a\"},\"spec\":{}}" },
		  true }, /* the default is 1 */
		{ { &deployments, deployment, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		    UPDATED(",\"revisionHistoryLimit\":0}") },
		  false },
		{ { &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"metadata\":{\"labels\":{}}}" },
		  true },
		{ { &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"spec\":{\"x\":{}}}" }, false },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_edited      edited;
		struct vdi_http_status status;

		assert_status(edit(&rows[i].row, &edited, &status), VD_OK);
		vdi_out_bytes(&edited.text, (struct vd_bytes) { "", 1 });
		if (edited.unchanged != rows[i].unchanged)
			fail_msg("%s: %s", rows[i].row.body, edited.text.data);
		if (rows[i].row.resource->has_generation)
			assert_true((strstr(edited.text.data, "\"generation\":1") != NULL) ==
				    rows[i].unchanged);
		vdi_edited_fini(&edited);
	}
}

/* A status that is part of the content moves the generation, one that is written apart does not. */
static void the_generation_follows_the_content(void **state)
{
	static const char scale[] = "{\"status\":{\"replicas\":2}}";

	static const struct vdi_resource whole = { .group = "example.com",
						   .version = "v1",
						   .kind = "Widget",
						   .plural = "widgets",
						   .namespaced = true,
						   .has_generation = true };
	static const struct row		 rows[] = {
			 { &whole, widget, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, scale, 0, "\"generation\":2" },
			 { &widgets, widget, VDI_EDIT_STATUS, VDI_PATCH_MERGE, scale, 0, "\"generation\":1" },
			 { &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_MERGE,
			   "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}", 0, "\"generation\":1" },
			 /* a kind without generations keeps what is stored */
			 { &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"data\":{\"k\":\"w\"}}", 0,
			   "\"generation\":1" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

/* Metadata of another type than ObjectMeta's would make lists of custom objects unreadable to every Go
 * client. */
static void metadata_of_custom_kinds_has_types(void **state)
{
#define WIDGET_WITH(more)                                                                                    \
	"{\"apiVersion\":\"example.com/"                                                                     \
	"v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"," more "}}"
#define OWNER(more)                                                                                          \
	"\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"name\":\"p\",\"uid\":\"q\"," more "}]"
#define NOT_WIDGET "Widget in version \"v1\" cannot be handled as a Widget: metadata."
	static const struct row rows[] = {
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  WIDGET_WITH(OWNER("\"controller\":\"yes\"")), 400,
		  NOT_WIDGET "ownerReferences[0].controller: is neither true nor false" },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  WIDGET_WITH(OWNER("\"blockOwnerDeletion\":1")), 400,
		  NOT_WIDGET "ownerReferences[0].blockOwnerDeletion" },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_NONE, WIDGET_WITH("\"managedFields\":\"x\""),
		  400, NOT_WIDGET "managedFields: is not a list" },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  WIDGET_WITH("\"creationTimestamp\":\"x\""), 400, NOT_WIDGET "creationTimestamp" },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_NONE, WIDGET_WITH("\"generation\":1.5"), 400,
		  NOT_WIDGET "generation" },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_MERGE,
		  "{\"metadata\":{" OWNER("\"controller\":5") "}}", 400,
		  NOT_WIDGET "ownerReferences[0].controller" },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_NONE, WIDGET_WITH(OWNER("\"controller\":true")),
		  0, "\"controller\":true" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

static void h348_a_status_comes_in_an_object_of_the_kind(void **state)
{
	static const struct row rows[] = {
		{ &widgets, widget, VDI_EDIT_STATUS, VDI_PATCH_NONE,
		  "{\"apiVersion\":\"autoscaling/"
		  "v1\",\"kind\":\"Scale\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}}",
		  400,
		  "the API version in the data (autoscaling/v1) does not match the expected API version "
		  "(example.com/v1)" },
		{ &widgets, widget, VDI_EDIT_STATUS, VDI_PATCH_NONE,
		  "{\"apiVersion\":\"example.com/"
		  "v1\",\"kind\":\"Gadget\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}}",
		  400, "Gadget in version \"v1\" cannot be handled as a Widget" },
		{ &widgets, widget, VDI_EDIT_STATUS, VDI_PATCH_NONE,
		  "{\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"}}", 400,
		  "Object 'Kind' is missing" },
		{ &widgets, widget, VDI_EDIT_STATUS, VDI_PATCH_NONE,
		  "{\"apiVersion\":\"example.com/"
		  "v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":\"7\"},\"spec\":"
		  "{\"replicas\":9},\"status\":{\"replicas\":2}}",
		  0, "\"spec\":{\"replicas\":1},\"status\":{\"replicas\":2}" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

#define NAMED "\"metadata\":{\"name\":\"a\"}"

static void r667_what_holds_a_namespace_is_somebodys(void **state)
{
	static const struct row rows[] = {
		{ &namespaces, namespace, VDI_EDIT_FINALIZE, VDI_PATCH_NONE,
		  "{" NAMED ",\"spec\":{\"finalizers\":[\"nope\"]}}", 422,
		  "Namespace \"a\" is invalid: spec.finalizers[0]: Invalid value: \"nope\": name is neither "
		  "a standard finalizer name nor is it fully qualified" },
		{ &namespaces, namespace, VDI_EDIT_FINALIZE, VDI_PATCH_NONE,
		  "{" NAMED ",\"spec\":{\"finalizers\":[\"kubernetes\",\"\"]}}", 422,
		  "spec.finalizers[1]: Invalid value: \"\": name part must be non-empty" },
		{ &namespaces, namespace, VDI_EDIT_FINALIZE, VDI_PATCH_NONE,
		  "{" NAMED ",\"spec\":{\"finalizers\":[5]}}", 400,
		  "spec.finalizers must be a list of strings" },
		{ &namespaces, namespace, VDI_EDIT_FINALIZE, VDI_PATCH_NONE,
		  "{" NAMED ",\"spec\":{\"finalizers\":\"x\"}}", 400,
		  "spec.finalizers must be a list of strings" },
		{ &namespaces, namespace, VDI_EDIT_FINALIZE, VDI_PATCH_NONE,
		  "{" NAMED ",\"spec\":{\"finalizers\":[\"example.com/x\"]}}", 0,
		  "\"finalizers\":[\"example.com/x\"]" },
		{ &namespaces, namespace, VDI_EDIT_FINALIZE, VDI_PATCH_NONE, "{" NAMED ",\"spec\":{}}", 0,
		  "\"spec\":{}" },
		/* Through any other door they stay as they are. */
		{ &namespaces, namespace, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  "{" NAMED ",\"spec\":{\"finalizers\":[\"nope\"]}}", 0, "\"finalizers\":[\"kubernetes\"]" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

/* rules: H-101. A message that names a fault says all of it: kubectl prints it. */
static void h101_the_longest_sentence_is_not_cut(void **state)
{
	struct vdi_edit edit = {
		.resource = &widgets,
		.namespace_name = vd_bytes_of("default"),
		.now = NOW,
		.body = vd_bytes_of(
			"{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\""
			"UPPERUPPERUPPERUPPERUPPERUPPERUPPERUPPERUPPERUPPERUPPERUPPERUPPERUPPERUPPERUPPER\"}"
			"}")
	};
	struct vdi_edited      edited;
	struct vdi_http_status status = { 0 };

	memset(&edited, 0, sizeof edited);
	assert_status(vdi_edit_create(&edit, &edited, &status), VD_INVALID);
	assert_int_equal(status.code, 422);
	assert_non_null(strstr(status.message,
			       "regex used for validation is "
			       "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"));
	vdi_edited_fini(&edited);
}

/* A null where a string is an element is an empty string to Go's decoder, and so it is stored; in a patch it
 * takes the member away. */
static void h340_a_null_among_labels_is_an_empty_string(void **state)
{
	static const struct row rows[] = {
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_NONE, "{" LABELLED("") "}", 0,
		  "\"labels\":{\"x\":\"\",\"y\":\"z\"},\"annotations\":{\"n\":\"\"}" },
		{ &widgets, widget, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Widget\"," LABELLED(
			  ",\"resourceVersion\":\"7\"") "}",
		  0, "\"labels\":{\"x\":\"\",\"y\":\"z\"},\"annotations\":{\"n\":\"\"}" },
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_OPERATIONS,
		  "[{\"op\":\"add\",\"path\":\"/metadata/labels\",\"value\":{\"x\":null}}]", 0,
		  "\"labels\":{\"x\":\"\"}" },
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_MERGE,
		  "{\"metadata\":{\"labels\":{\"x\":null,\"y\":\"z\"}}}", 0, "\"labels\":{\"y\":\"z\"}" },
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":5}}}", 400,
		  "metadata.labels must be a map of strings" },
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  "{\"metadata\":{\"name\":\"a\",\"finalizers\":[null]}}", 422, "metadata.finalizers" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

static void every_failed_allocation_is_reported(void **state)
{
	static const struct row rows[] = {
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_NONE,
		  "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\"}},\"data\":{\"k\":\"w\"}}", 0, "" },
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_STRATEGIC, "{\"data\":{\"k\":\"w\"}}", 0, "" },
		{ &widgets, widget, VDI_EDIT_STATUS, VDI_PATCH_MERGE, "{\"status\":{\"replicas\":3}}", 0,
		  "" },
		{ &widgets, widget, VDI_EDIT_SCALE, VDI_PATCH_OPERATIONS,
		  "[{\"op\":\"replace\",\"path\":\"/spec/replicas\",\"value\":3}]", 0, "" },
		{ &namespaces, namespace, VDI_EDIT_FINALIZE, VDI_PATCH_NONE,
		  "{" NAMED ",\"spec\":{\"finalizers\":[\"example.com/x\"]}}", 0, "" },
		{ &namespaces, namespace, VDI_EDIT_WHOLE, VDI_PATCH_NONE, "{" NAMED "}", 0, "" },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE, "{" SCALE ",\"spec\":{}}", 0,
		  "" },
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"data\":{\"k\":\"w\"}}", 0, "" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		bool failed = true;

		for (uint64_t nth = 1; failed; nth++) {
			int64_t		       live = vdi_alloc_live();
			struct vdi_edited      edited;
			struct vdi_http_status status;
			vd_status	       result;

			(void) vdi_alloc_fail_nth(nth, 1);
			result = edit(&rows[i], &edited, &status);
			failed = vdi_alloc_failed();
			(void) vdi_alloc_fail_nth(0, 0);
			assert_status(result, failed ? VD_NOMEM : VD_OK);
			if (failed)
				assert_int_equal(status.code, 500);
			vdi_edited_fini(&edited);
			assert_int_equal(vdi_alloc_live(), live);
		}
	}
}

/* Each way to patch does what is its own. */
static void h341_patches_are_of_three_kinds(void **state)
{
	static const char pod[] = "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\"," META
				  ",\"spec\":{\"replicas\":1,\"selector\":{\"matchLabels\":{\"a\":\"b\"}},"
				  "\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{"
				  "\"containers\":[{\"name\":\"a\",\"image\":\"1\"}]}}}}";
#define CONTAINER "{\"spec\":{\"template\":{\"spec\":{\"containers\":[{\"name\":\"b\",\"image\":\"2\"}]}}}}"
	static const struct row rows[] = {
		{ &deployments, pod, VDI_EDIT_WHOLE, VDI_PATCH_STRATEGIC, CONTAINER, 0,
		  "\"name\":\"a\",\"image\":\"1\"}" },
		{ &deployments, pod, VDI_EDIT_WHOLE, VDI_PATCH_STRATEGIC, CONTAINER, 0,
		  "\"name\":\"b\",\"image\":\"2\"}" },
		{ &deployments, pod, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, CONTAINER, 0,
		  "\"containers\":[{\"name\":\"b\",\"image\":\"2\"}]" },
		{ &deployments, pod, VDI_EDIT_WHOLE, VDI_PATCH_OPERATIONS,
		  "[{\"op\":\"replace\",\"path\":\"/spec/template/spec/containers/0/"
		  "image\",\"value\":\"3\"}]",
		  0, "\"containers\":[{\"name\":\"a\",\"image\":\"3\"}]" },
		{ &deployments, pod, VDI_EDIT_WHOLE, VDI_PATCH_STRATEGIC, "[]", 400,
		  "the patch must be a JSON object" },
		{ &deployments, pod, VDI_EDIT_WHOLE, VDI_PATCH_STRATEGIC, "{", 400, "" },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

#define DEFINITION(version)                                                                                  \
	"{\"metadata\":{\"name\":\"widgets.example.com\"" version                                            \
	"},\"spec\":{\"group\":\"example.com\",\"scope\":\"Namespaced\",\"names\":{\"plural\":\"widgets\","  \
	"\"kind\":\"Widget\"},\"versions\":[{\"name\":\"v1\",\"served\":true,\"storage\":%s,\"schema\":{"    \
	"\"openAPIV3Schema\":{\"type\":\"object\"}}}]}}"

/* A definition gets the names that it leaves out, and is refused when no version is stored. */
static void a_definition_keeps_to_the_rules_of_definitions(void **state)
{
	static const struct vdi_resource definitions = { .group = "apiextensions.k8s.io",
							 .version = "v1",
							 .kind = "CustomResourceDefinition",
							 .plural = "customresourcedefinitions",
							 .built_in = true,
							 .has_status = true,
							 .has_generation = true };
	static const char *const	 stored[] = { "true", "false" };
	static const char refused[] = "must have exactly one version marked as storage version";
	char		  current[1024] = "";

	(void) state;
	for (size_t i = 0; i < 2 * VDI_ARRAY_SIZE(stored); i++) {
		char		       body[1024];
		struct vdi_edit	       edit = { .resource = &definitions,
						.name = vd_bytes_of("widgets.example.com"),
						.now = NOW,
						.random = { 1, 2, 3 } };
		struct vdi_http_status status = { 0 };
		struct vdi_edited      edited = { 0 };
		bool		       is_update = i >= VDI_ARRAY_SIZE(stored);
		vd_status	       result;

		snprintf(body, sizeof body,
			 is_update ? DEFINITION(",\"resourceVersion\":\"7\"") : DEFINITION(""),
			 stored[i % 2]);
		edit.body = vd_bytes_of(body);
		result = is_update ? vdi_edit_update(&edit, vd_bytes_of(current), &edited, &status) :
				     vdi_edit_create(&edit, &edited, &status);
		vdi_out_bytes(&edited.text, (struct vd_bytes) { "", 1 });
		if (i % 2) {
			assert_status(result, VD_INVALID);
			assert_int_equal(status.code, 422);
			if (strstr(status.message, refused) == NULL)
				fail_msg("%s", status.message);
		} else {
			if (result != VD_OK)
				fail_msg("%d %s", status.code, status.message);
			assert_non_null(strstr(edited.text.data, "\"listKind\":\"WidgetList\""));
			if (!is_update) {
				const char *metadata = strstr(edited.text.data, "\"metadata\":{");

				assert_non_null(metadata);
				snprintf(current, sizeof current,
					 "%.*s\"metadata\":{\"resourceVersion\":\"7\",%s",
					 (int) (metadata - edited.text.data), edited.text.data,
					 metadata + sizeof "\"metadata\":{" - 1);
			}
		}
		vdi_edited_fini(&edited);
	}
}

static void h347_scales_at_their_borders(void **state)
{
	static const struct row scale_rows[] = {
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_NONE, "{\"metadata\":[]}", 400,
		  "metadata must be an object" },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{" SCALE ",\"spec\":{\"replicas\":2147483647}}", 0, "\"replicas\":2147483647" },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{" SCALE ",\"spec\":{\"replicas\":-2147483648}}", 422,
		  "Invalid value: -2147483648: must be greater" },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{" SCALE ",\"spec\":{\"replicas\":-2147483649}}", 400,
		  "Scale in version \"v1\" cannot be handled as a Scale: " },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{" SCALE ",\"spec\":{\"replicas\":-1}}", 422, "Invalid value: -1: must be greater" },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{\"kind\":\"Pod\"," SCALE ",\"spec\":{\"replicas\":1}}", 400,
		  "Pod in version \"\" cannot be handled as a Scale" },
		{ &deployments, deployment, VDI_EDIT_SCALE, VDI_PATCH_NONE,
		  "{\"apiVersion\":\"v1\"," SCALE ",\"spec\":{\"replicas\":1}}", 400,
		  " in version \"v1\" cannot be handled as a Scale" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(scale_rows); i++)
		check(&scale_rows[i]);
}

static const struct vdi_resource secrets = { .group = "",
					     .version = "v1",
					     .kind = "Secret",
					     .plural = "secrets",
					     .namespaced = true,
					     .built_in = true };
static void			 data_that_is_immutable_stays(void **state)
{
	static const char fixed[] = "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"," META
				    ",\"data\":{\"k\":\"v\"},\"immutable\":true}";
	static const char secret[] = "{\"apiVersion\":\"v1\",\"kind\":\"Secret\"," META
				     ",\"data\":{\"k\":\"eA==\"}}"; /* stored without a type */
	static const struct row rows[] = {
		{ &maps, fixed, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"data\":{\"k\":\"w\"}}", 422,
		  "data: Forbidden: field is immutable when `immutable` is set" },
		{ &maps, fixed, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"metadata\":{\"labels\":{\"x\":\"y\"}}}",
		  0, "\"labels\":{\"x\":\"y\"}" },
		{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"data\":{\"k/\":\"w\"}}", 422,
		  "data[k/]: Invalid value: " },
		{ &secrets, secret, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"type\":\"x\"}", 422,
		  "type: Invalid value: \"x\": field is immutable" },
		{ &secrets, secret, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, "{\"stringData\":{\"k\":\"y\"}}", 0,
		  "\"data\":{\"k\":\"eQ==\"}" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		check(&rows[i]);
}

/* A namespace keeps what holds it, also if the client leaves its spec out. */
static void a_namespace_keeps_its_finalizers(void **state)
{
	static const char bare[] = "{\"apiVersion\":\"v1\",\"kind\":\"Namespace\"," NAMESPACE_META
				   ",\"status\":{\"phase\":\"Active\"}}";
	static const struct {
		const char *current, *body, *spec; /* "": it has none */
	} rows[] = {
		{ namespace, "{" NAMED "}", "\"spec\":{\"finalizers\":[\"kubernetes\"]}" },
		{ namespace, "{" NAMED ",\"spec\":null}", "\"spec\":{\"finalizers\":[\"kubernetes\"]}" },
		{ namespace, "{" NAMED ",\"spec\":{}}", "\"spec\":{\"finalizers\":[\"kubernetes\"]}" },
		{ namespace, "{" NAMED ",\"spec\":{\"finalizers\":[]}}",
		  "\"spec\":{\"finalizers\":[\"kubernetes\"]}" },
		{ bare, "{" NAMED "}", "" },
		{ bare, "{" NAMED ",\"spec\":{\"finalizers\":[\"x/y\"]}}", "\"spec\":{}" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct row row = {
			&namespaces, rows[i].current, VDI_EDIT_WHOLE, VDI_PATCH_NONE, rows[i].body, 0, ""
		};
		struct vdi_edited      edited;
		struct vdi_http_status status;
		const char	      *found;

		assert_status(edit(&row, &edited, &status), VD_OK);
		vdi_out_bytes(&edited.text, (struct vd_bytes) { "", 1 });
		found = strstr(edited.text.data, "\"spec\":");
		if (*rows[i].spec ? !found || strncmp(found, rows[i].spec, strlen(rows[i].spec)) != 0 :
				    found != NULL)
			fail_msg("%s: %s", rows[i].body, edited.text.data);
		vdi_edited_fini(&edited);
	}
}

/* A patch that makes the object too large gets 413, one whose operation fails 422, and one that is no patch
 * 400. */
static void patches_that_fail_have_a_code_each(void **state)
{
	struct vdi_out large = VDI_OUT_INIT;

	vdi_out_printf(&large, "{\"data\":{\"k\":\"%04000000d\"}}%c", 0, 0);
	{
		const struct row rows[] = {
			{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_MERGE, large.data, 413,
			  "the patched object would have more than 3145728 bytes" },
			{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_STRATEGIC, large.data, 413,
			  "the patched object would have more than 3145728 bytes" },
			{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_OPERATIONS,
			  "[{\"op\":\"remove\",\"path\":\"/nope\"}]", 422,
			  "the server rejected our request due to an error in our request: operation 0: " },
			{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_OPERATIONS, "{}", 400,
			  "error decoding patch: " },
			{ &maps, map, VDI_EDIT_WHOLE, VDI_PATCH_OPERATIONS,
			  "[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]", 400,
			  "the patched object is not an object" },
		};

		for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
			check(&rows[i]);
	}
	vdi_out_fini(&large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(patches_that_fail_have_a_code_each),
		cmocka_unit_test(a_namespace_keeps_its_finalizers),
		cmocka_unit_test(data_that_is_immutable_stays),
		cmocka_unit_test(a_definition_keeps_to_the_rules_of_definitions),
		cmocka_unit_test(h341_patches_are_of_three_kinds),
		cmocka_unit_test(h347_scales_at_their_borders),
		cmocka_unit_test(r661_the_object_that_is_written_says_which_it_is),
		cmocka_unit_test(r662_only_kubernetes_own_kinds_are_replaced_whatever_their_version),
		cmocka_unit_test(r102_the_version_of_a_sent_object),
		cmocka_unit_test(h347_a_scale_is_a_number_that_there_can_be),
		cmocka_unit_test(h347_a_scale_without_a_number_is_zero),
		cmocka_unit_test(a_custom_kinds_whole_numbers_are_stored_as_such),
		cmocka_unit_test(r135_absent_null_and_empty_are_no_change),
		cmocka_unit_test(the_generation_follows_the_content),
		cmocka_unit_test(metadata_of_custom_kinds_has_types),
		cmocka_unit_test(h348_a_status_comes_in_an_object_of_the_kind),
		cmocka_unit_test(r667_what_holds_a_namespace_is_somebodys),
		cmocka_unit_test(h101_the_longest_sentence_is_not_cut),
		cmocka_unit_test(h340_a_null_among_labels_is_an_empty_string),
		cmocka_unit_test(every_failed_allocation_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
