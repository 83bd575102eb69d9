/* The served kinds: the built-in ones, the resources file, the documents made of them. */
#include "vdtest.h"

#include "discovery.h"
#include "tree.h"

static void built_in_kinds_keep_kubernetes_keys(void **state)
{
	static const char *const rows[][3] = {
		{ "", "pods", "/registry/pods/" },
		{ "", "nodes", "/registry/minions/" },
		{ "", "services", "/registry/services/specs/" },
		{ "", "endpoints", "/registry/services/endpoints/" },
		{ "apps", "deployments", "/registry/deployments/" },
		{ "coordination.k8s.io", "leases", "/registry/leases/" },
		{ "apiextensions.k8s.io", "customresourcedefinitions",
		  "/registry/apiextensions.k8s.io/customresourcedefinitions/" }
	};
	struct vdi_resources resources;

	assert_status(vdi_resources_init(&resources), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_resource *found = vdi_resources_find(&resources, vd_bytes_of(rows[i][0]),
								vd_bytes_of("v1"), vd_bytes_of(rows[i][1]));

		assert_non_null(found);
		assert_string_equal(found->key_prefix, rows[i][2]);
	}
	vdi_resources_fini(&resources);
}

/* Pods are looked up by their node, which has an index; without that field there is none to name. */
static void the_trigger_is_one_of_the_fields(void **state)
{
	static const struct vd_field_spec other = { "spec.other", ".spec.other", NULL };
	struct vdi_resources		  resources;

	(void) state;
	assert_status(vdi_resources_init(&resources), VD_OK);
	for (int has = 0; has < 2; has++) {
		struct vdi_resource *pods = vdi_resources_find(&resources, vd_bytes_of(""), vd_bytes_of("v1"),
							       vd_bytes_of("pods"));
		struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
		char			 name[VDI_RESOURCE_NAME_MAX];

		assert_status(vdi_resource_cacher_options(pods, has ? pods->fields : &other,
							  has ? pods->field_count : 1, name, &options, NULL),
			      VD_OK);
		assert_string_equal(options.trigger ? options.trigger : "", has ? "spec.nodeName" : "");
		assert_string_equal(options.resource, "pods");
		assert_string_equal(options.group, "");
		assert_string_equal(options.key_prefix, "/registry/pods/");
		assert_true(options.skip_undecodable);
		assert_int_equal(options.codec->field_count, has ? pods->field_count : 1);
		pods->codec = vd_codec_free(pods->codec);
	}
	for (int i = 0; i < 2; i++) {
		struct vdi_resource *resource = vdi_resources_find(
			&resources, vd_bytes_of(""), vd_bytes_of("v1"), vd_bytes_of(i ? "nodes" : "pods"));
		struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
		char			 name[VDI_RESOURCE_NAME_MAX];

		assert_status(vdi_resource_cacher_options(resource, resource->fields, resource->field_count,
							  name, &options, NULL),
			      VD_OK);
		assert_int_equal(options.cluster_scoped, i);
		resource->codec = vd_codec_free(resource->codec);
	}
	vdi_resources_fini(&resources);
}

#define WIDGET "{\"group\":\"example.com\",\"version\":\"v1\",\"kind\":\"Widget\",\"plural\":\"widgets\""

static void a_file_adds_and_replaces(void **state)
{
	static const char file[] = "[" WIDGET ",\"shortNames\":[\"wd\"],\"selectableFields\":[{\"jsonPath\":"
				   "\".spec.size\"}],\"trigger\":\"spec.size\","
				   "\"printerColumns\":[{\"name\":\"Size\",\"type\":\"integer\",\"jsonPath\":"
				   "\".spec.size\",\"priority\":1}]},"
				   "{\"group\":\"\",\"version\":\"v1\",\"kind\":\"Pod\",\"plural\":\"pods\","
				   "\"storagePrefix\":\"/registry/pods/\"}]";
	struct vdi_resources	   resources;
	const struct vdi_resource *widget;
	size_t			   count;
	struct vd_error		   error;

	assert_status(vdi_resources_init(&resources), VD_OK);
	count = resources.count;
	assert_status(vdi_resources_load(&resources, vd_bytes_of(file), &error), VD_OK);
	assert_int_equal(resources.count, count + 1);
	widget = vdi_resources_find(&resources, vd_bytes_of("example.com"), vd_bytes_of("v1"),
				    vd_bytes_of("widgets"));
	assert_non_null(widget);
	assert_true(widget->namespaced);
	assert_string_equal(widget->key_prefix, "/registry/example.com/widgets/");
	assert_string_equal(widget->list_kind, "WidgetList");
	assert_string_equal(widget->singular, "widget");
	assert_string_equal(widget->fields[0].name, "spec.size");
	assert_int_equal(widget->column_count, 2);
	assert_false(widget->built_in);
	vdi_resources_fini(&resources);
}

static void field_errors_are_named_with_their_place(void **state)
{
	static const char *const rows[][2] = {
		{ "{", "resources: line 1" },
		{ "{}", "resources: must be a JSON array" },
		{ "[1]", "resources: entry 0: entry: must be an object" },
		{ "[{\"version\":\"v1\",\"kind\":\"A\",\"plural\":\"as\"}]",
		  "resources: entry 0 (as): group: is required" },
		{ "[{\"group\":\"A_b\",\"version\":\"v1\",\"kind\":\"A\",\"plural\":\"as\"}]",
		  "resources: entry 0 (as): group: " },
		{ "[" WIDGET ",\"nonsense\":1}]", "resources: entry 0 (widgets): nonsense: unknown key" },
		{ "[" WIDGET "}," WIDGET ",\"namespaced\":1}]",
		  "resources: entry 1 (widgets): namespaced: must be true or false" },
		{ "[" WIDGET ",\"shortNames\":[\"ok\",5]}]",
		  "resources: entry 0 (widgets): shortNames[1]: must be a string" },
		{ "[" WIDGET ",\"trigger\":\"x\"}]",
		  "resources: entry 0 (widgets): trigger: must be one of selectableFields" },
		{ "[" WIDGET ",\"storagePrefix\":\"x\"}]",
		  "resources: entry 0 (widgets): storagePrefix: must begin and end with '/'" },
		{ "[" WIDGET ",\"storagePrefix\":\"xyz/\"}]",
		  "resources: entry 0 (widgets): storagePrefix: must begin and end with '/'" },
		{ "[" WIDGET ",\"storagePrefix\":\"/xyz\"}]",
		  "resources: entry 0 (widgets): storagePrefix: must begin and end with '/'" },
		{ "[{\"group\":\"a.\",\"version\":\"v1\",\"kind\":\"A\",\"plural\":\"as\"}]",
		  "resources: entry 0 (as): group: " },
		{ "[{\"group\":\"a-\",\"version\":\"v1\",\"kind\":\"A\",\"plural\":\"as\"}]",
		  "resources: entry 0 (as): group: " },
		{ "[{\"group\":\".a\",\"version\":\"v1\",\"kind\":\"A\",\"plural\":\"as\"}]",
		  "resources: entry 0 (as): group: " },
		{ "[" WIDGET "},5]", "resources: entry 1: entry: must be an object" },
		{ "[" WIDGET "},{\"plural\":5}]", "resources: entry 1: plural: must be a string" },
		{ "[" WIDGET ",\"storagePrefix\":\"/registry/pods/\"}]",
		  "resources: entry 0 (widgets): storagePrefix: is already used by another resource" },
		{ "[" WIDGET ",\"schema\":{\"type\":\"array\"}}]", "resources: entry 0 (widgets): schema: " },
		{ "[{\"group\":\"\",\"version\":\"v1\",\"plural\":\"as\",\"kind\":"
		  "\"Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}]",
		  "resources: entry 0 (as): kind: is required" },
		{ "[{\"group\":\"\",\"version\":\"v1\",\"plural\":\"as\",\"kind\":\"\"}]",
		  "resources: entry 0 (as): kind: is required" },
		{ "[{\"group\":\"\",\"version\":\"v1\",\"plural\":\"as\",\"kind\":\"A-B\"}]",
		  "resources: entry 0 (as): kind: must be letters and digits" },
		{ "[{\"group\":\"\",\"version\":\"V_1\",\"plural\":\"as\",\"kind\":\"A\"}]",
		  "resources: entry 0 (as): version: is required" },
		{ "[" WIDGET ",\"printerColumns\":[{\"name\":\"A\"}]}]",
		  "resources: entry 0 (widgets): printerColumns[0]: needs name and jsonPath" },
	};
	struct vdi_resources resources;
	struct vd_error	     error;
	size_t		     count;

	assert_status(vdi_resources_init(&resources), VD_OK);
	count = resources.count;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		assert_status(vdi_resources_load(&resources, vd_bytes_of(rows[i][0]), &error), VD_INVALID);
		assert_memory_equal(error.message, rows[i][1], strlen(rows[i][1]));
		assert_int_equal(resources.count, count);
	}
	vdi_resources_fini(&resources);
}

static void h110_to_h115_documents_are_valid_and_complete(void **state)
{
	struct vdi_resources	   resources;
	struct vdi_documents	   documents;
	const struct vdi_document *v2, *beta, *plain;

	assert_status(vdi_resources_init(&resources), VD_OK);
	assert_status(vdi_documents_init(&documents, &resources), VD_OK);
	for (size_t i = 0; i < documents.count; i++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_node *root;

		if (strcmp(documents.items[i].path, "/openapi/v2") != 0)
			assert_status(
				vdi_tree_parse(&tree, vdi_out_slice(&documents.items[i].body), &root, NULL),
				VD_OK);
		vdi_tree_fini(&tree);
	}
	plain = vdi_documents_find(&documents, vd_bytes_of("/apis"), VDI_FORM_OBJECT);
	v2 = vdi_documents_find(&documents, vd_bytes_of("/apis"), VDI_FORM_DISCOVERY_V2);
	beta = vdi_documents_find(&documents, vd_bytes_of("/apis"), VDI_FORM_DISCOVERY_V2BETA1);
	assert_true(plain && v2 && beta && plain != v2 && v2 != beta);
	assert_string_equal(v2->content_type,
			    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
	assert_non_null(
		vdi_documents_find(&documents, vd_bytes_of("/openapi/v3/apis/apps/v1"), VDI_FORM_OBJECT));
	assert_null(vdi_documents_find(&documents, vd_bytes_of("/apis/nope"), VDI_FORM_OBJECT));
	vdi_documents_fini(&documents);
	vdi_resources_fini(&resources);
}

static const char *document_of(const struct vdi_documents *documents, const char *path, enum vdi_form form,
			       struct vdi_out *ret_text)
{
	const struct vdi_document *document = vdi_documents_find(documents, vd_bytes_of(path), form);

	assert_non_null(document);
	*ret_text = (struct vdi_out) VDI_OUT_INIT;
	vdi_out_bytes(ret_text, vdi_out_slice(&document->body));
	vdi_out_bytes(ret_text, (struct vd_bytes) { "", 1 });
	return vdi_out_slice(ret_text).data;
}

static void expect_in_document(const struct vdi_documents *documents, const char *path, enum vdi_form form,
			       const char *part)
{
	struct vdi_out text;
	const char    *all = document_of(documents, path, form, &text);

	if (strstr(all, part) == NULL)
		fail_msg("%s has no %s: %s", path, part, all);
	vdi_out_fini(&text);
}

/* Every member that clients read of a resource and of its subresources, in both forms. rules: H-113, H-114 */
static void h112_members_of_a_resource(void **state)
{
	static const char file[] = "[" WIDGET ",\"singular\":\"widgetlet\",\"shortNames\":[\"wd\",\"wi\"],"
				   "\"categories\":[\"all\"],\"namespaced\":false,"
				   "\"statusSubresource\":true,\"scaleSubresource\":true}]";
	static const char *const aggregated[] = {
		"{\"metadata\":{\"name\":\"example.com\",\"creationTimestamp\":null},\"versions\":[{"
		"\"version\":\"v1\",",
		"\"freshness\":\"Current\"",
		"{\"resource\":\"widgets\",\"responseKind\":{\"group\":\"example.com\",\"version\":\"v1\","
		"\"kind\":\"Widget\"},\"scope\":\"Cluster\","
		"\"singularResource\":\"widgetlet\",\"verbs\":[\"create\",\"delete\",\"deletecollection\","
		"\"get\",\"list\",\"patch\",\"update\",\"watch\"],"
		"\"shortNames\":[\"wd\",\"wi\"],\"categories\":[\"all\"],\"subresources\":["
		"{\"subresource\":\"scale\",\"responseKind\":{\"group\":\"autoscaling\",\"version\":\"v1\","
		"\"kind\":\"Scale\"},\"verbs\":[\"get\",\"patch\",\"update\"]},"
		"{\"subresource\":\"status\",\"responseKind\":{\"group\":\"example.com\",\"version\":\"v1\","
		"\"kind\":\"Widget\"},"
		"\"verbs\":[\"get\",\"patch\",\"update\"]}]}",
	};
	static const char *const legacy[] = {
		("{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"example.com/"
		 "v1\",\"resources\":[{\"name\":\"widgets\","
		 "\"singularName\":\"widgetlet\",\"namespaced\":false,\"kind\":\"Widget\",\"verbs\":["
		 "\"create\","),
		"\"shortNames\":[\"wd\",\"wi\"],\"categories\":[\"all\"]}",
		"{\"name\":\"widgets/"
		"scale\",\"singularName\":\"\",\"namespaced\":false,\"group\":\"autoscaling\",\"version\":"
		"\"v1\",\"kind\":\"Scale\",",
		"{\"name\":\"widgets/"
		"status\",\"singularName\":\"\",\"namespaced\":false,\"kind\":\"Widget\",",
	};
	struct vdi_resources resources;
	struct vdi_documents documents;
	struct vd_error	     error;

	assert_status(vdi_resources_init(&resources), VD_OK);
	if (vdi_resources_load(&resources, vd_bytes_of(file), &error) != VD_OK)
		fail_msg("%s", error.message);
	assert_status(vdi_documents_init(&documents, &resources), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(aggregated); i++) {
		expect_in_document(&documents, "/apis", VDI_FORM_DISCOVERY_V2, aggregated[i]);
		expect_in_document(&documents, "/apis", VDI_FORM_DISCOVERY_V2BETA1, aggregated[i]);
	}
	expect_in_document(&documents, "/apis", VDI_FORM_DISCOVERY_V2,
			   "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v2\",");
	expect_in_document(
		&documents, "/apis", VDI_FORM_DISCOVERY_V2BETA1,
		"{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/v2beta1\",");
	/* The core group has no name. */
	expect_in_document(
		&documents, "/api", VDI_FORM_DISCOVERY_V2,
		"\"items\":[{\"metadata\":{\"creationTimestamp\":null},\"versions\":[{\"version\":\"v1\",");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(legacy); i++)
		expect_in_document(&documents, "/apis/example.com/v1", VDI_FORM_OBJECT, legacy[i]);
	expect_in_document(&documents, "/apis", VDI_FORM_OBJECT,
			   "{\"name\":\"example.com\",\"versions\":[{\"groupVersion\":\"example.com/"
			   "v1\",\"version\":\"v1\"}],"
			   "\"preferredVersion\":{\"groupVersion\":\"example.com/v1\",\"version\":\"v1\"}}");
	vdi_documents_fini(&documents);
	vdi_resources_fini(&resources);
}

/* The entry of a group and version in the index of OpenAPI v3, with its hash. */
static void index_entry(const char *file, const char *path, char entry[200])
{
	struct vdi_resources resources;
	struct vdi_documents documents;
	struct vdi_out	     text;
	const char	    *at;

	assert_status(vdi_resources_init(&resources), VD_OK);
	if (file)
		assert_status(vdi_resources_load(&resources, vd_bytes_of(file), NULL), VD_OK);
	assert_status(vdi_documents_init(&documents, &resources), VD_OK);
	at = strstr(document_of(&documents, "/openapi/v3", VDI_FORM_OBJECT, &text), path);
	snprintf(entry, 200, "%.*s", at ? (int) strcspn(at, "}") : 0, at ? at : "");
	vdi_out_fini(&text);
	vdi_documents_fini(&documents);
	vdi_resources_fini(&resources);
}

/* The index names each group and version with the hash of its document: equal content has an equal hash, also
 * after a restart, and other content another one. */
static void h202_the_index_has_the_hash_of_the_content(void **state)
{
	static const char small[] = "[" WIDGET ",\"schema\":{\"type\":\"object\"}}]";
	static const char large[] =
		"[" WIDGET
		",\"schema\":{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\"}}}}]";
	char first[200], again[200], other[200], apps[200], apps_again[200];

	index_entry(small, "\"apis/example.com/v1\"", first);
	assert_memory_equal(
		first,
		"\"apis/example.com/v1\":{\"serverRelativeURL\":\"/openapi/v3/apis/example.com/v1?hash=", 77);
	assert_int_equal(strlen(strstr(first, "hash=")), strlen("hash=0123456789abcdef\""));
	index_entry(small, "\"apis/example.com/v1\"", again);
	assert_string_equal(first, again);
	index_entry(large, "\"apis/example.com/v1\"", other);
	assert_string_not_equal(first, other);
	index_entry(NULL, "\"apis/example.com/v1\"", other);
	assert_string_equal(other, "");
	index_entry(small, "\"apis/apps/v1\"", apps);
	index_entry(large, "\"apis/apps/v1\"", apps_again);
	assert_true(*apps);
	assert_string_equal(apps, apps_again);
}

/* The small OpenAPI v2 document: each kind's PATCH with its group, version and kind, and the parameters that
 * kubectl looks up. */
static void h205_h206_the_small_openapi_v2_document(void **state)
{
	static const char *const   parts[] = { "\n\0032.0",
					       "/api/v1/namespaces/{namespace}/pods/{name}",
					       "/api/v1/nodes/{name}",
					       "/apis/apps/v1/namespaces/{namespace}/deployments/{name}",
					       "x-kubernetes-group-version-kind",
					       "group: \"apps\"\nkind: Deployment\nversion: v1\n",
					       "fieldValidation",
					       "dryRun",
					       "fieldManager",
					       "force" };
	struct vdi_resources	   resources;
	struct vdi_documents	   documents;
	const struct vdi_document *v2;

	assert_status(vdi_resources_init(&resources), VD_OK);
	assert_status(vdi_documents_init(&documents, &resources), VD_OK);
	v2 = vdi_documents_find(&documents, vd_bytes_of("/openapi/v2"), VDI_FORM_OBJECT);
	assert_non_null(v2);
	assert_string_equal(v2->content_type, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(parts); i++)
		assert_non_null(memmem(vdi_out_slice(&v2->body).data, vdi_out_slice(&v2->body).size, parts[i],
				       strlen(parts[i])));
	vdi_documents_fini(&documents);
	vdi_resources_fini(&resources);
}

static void r109_the_keys_lie_under_the_given_path(void **state)
{
	static const char *const rows[][2] = { { "/registry", "/registry/minions/" },
					       { "registry/", "/registry/minions/" },
					       { "a/b", "/a/b/minions/" },
					       { "ab/.x/x.", "/ab/.x/x./minions/" },
					       { "/a/b//", "/a/b/minions/" },
					       { "/", "/minions/" },
					       { "", "/minions/" } };
	static const char *const bad[][2] = { { "/a/../b", "\"..\" is not a valid path segment" },
					      { "a/./b", "\".\" is not a valid" },
					      { "/a//b", "\"\" is not a valid" } };
	static const char	 file[] = "[" WIDGET ",\"storagePrefix\":\"/elsewhere/\"}]";

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_resources resources;
		struct vdi_resource *widget;

		assert_status(vdi_resources_init(&resources), VD_OK);
		assert_status(vdi_resources_load(&resources, vd_bytes_of(file), NULL), VD_OK);
		assert_status(vdi_resources_set_root(&resources, rows[i][0], NULL), VD_OK);
		assert_string_equal(
			vdi_resources_find(&resources, VD_BYTES_NONE, vd_bytes_of("v1"), vd_bytes_of("nodes"))
				->key_prefix,
			rows[i][1]);
		widget = vdi_resources_find(&resources, vd_bytes_of("example.com"), vd_bytes_of("v1"),
					    vd_bytes_of("widgets"));
		assert_string_equal(widget->key_prefix, "/elsewhere/");
		vdi_resources_fini(&resources);
	}
	for (size_t size = 256; size <= 257; size++) {
		struct vdi_resources resources;
		struct vd_error	     error = { 0 };
		char		     root[260] = "/";

		memset(root + 1, 'a', size);
		assert_status(vdi_resources_init(&resources), VD_OK);
		assert_status(vdi_resources_set_root(&resources, root, &error),
			      size == 256 ? VD_OK : VD_INVALID);
		if (size == 257)
			assert_string_equal(error.message, "key prefix: longer than 256 bytes");
		vdi_resources_fini(&resources);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad); i++) {
		struct vdi_resources resources;
		struct vd_error	     error = { 0 };

		assert_status(vdi_resources_init(&resources), VD_OK);
		assert_status(vdi_resources_set_root(&resources, bad[i][0], &error), VD_INVALID);
		assert_non_null(strstr(error.message, bad[i][1]));
		vdi_resources_fini(&resources);
	}
	/* Two kinds in one place. */
	{
		static const char    two[] = "[" WIDGET ",\"storagePrefix\":\"/a/minions/\"}]";
		struct vdi_resources resources;
		struct vd_error	     error = { 0 };

		assert_status(vdi_resources_init(&resources), VD_OK);
		assert_status(vdi_resources_load(&resources, vd_bytes_of(two), NULL), VD_OK);
		assert_status(vdi_resources_set_root(&resources, "/a", &error), VD_INVALID);
		assert_non_null(strstr(error.message, "would share the keys below /a/minions/"));
		vdi_resources_fini(&resources);
	}
}

static void out_of_memory_undoes_everything(void **state)
{
	int64_t live = vdi_alloc_live();

	for (uint64_t nth = 1;; nth++) {
		struct vdi_resources resources = { 0 };
		struct vdi_documents documents = { 0 };
		vd_status	     status;
		bool		     failed;

		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_resources_init(&resources);
		if (status != VD_OK)
			assert_true(resources.items == NULL && resources.count == 0);
		if (status == VD_OK)
			status = vdi_resources_load(
				&resources, vd_bytes_of("[" WIDGET ",\"shortNames\":[\"wd\"]}]"), NULL);
		if (status == VD_OK)
			status = vdi_resources_set_root(&resources, "/a", NULL);
		if (status == VD_OK)
			status = vdi_documents_init(&documents, &resources);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		vdi_documents_fini(&documents);
		vdi_resources_fini(&resources);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			break;
		assert_status(status, VD_NOMEM);
		if (nth > 200)
			nth += 37; /* documents: every so many is enough */
	}
}

/* As Kubernetes orders versions: stable ones first, then beta, then alpha, each from the newest; what is no
 * version comes last, by its name. */
static void versions_have_an_order(void **state)
{
	static const char *const order[] = { "v100000000000000000",
					     "v20",
					     "v10",
					     "v2",
					     "v1",
					     "v11beta2",
					     "v10beta3",
					     "v3beta1",
					     "v1beta10",
					     "v1beta2",
					     "v12alpha1",
					     "v11alpha2",
					     "v1alpha1",
					     "beta1",
					     "foo1",
					     "foo10",
					     "v",
					     "v1000000000000000000",
					     "v1beta",
					     "v1x",
					     "v2gamma1" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(order); i++)
		for (size_t j = 0; j < VDI_ARRAY_SIZE(order); j++) {
			int compared = vdi_resource_compare_versions(order[i], order[j]);

			if ((compared > 0) - (compared < 0) != (i > j) - (i < j))
				fail_msg("%s and %s: %d", order[i], order[j], compared);
		}
}

/* The longest kind, and which of the built-in kinds live in a namespace. */
static void borders_of_kinds(void **state)
{
	static const char *const namespaced[] = { "pods",    "services",	"endpoints", "configmaps",
						  "secrets", "serviceaccounts", "events" };
	static const char *const cluster_wide[] = { "nodes", "namespaces", "persistentvolumes" };
	struct vdi_resources	 resources;
	struct vd_error		 error;

	assert_status(vdi_resources_init(&resources), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(namespaced) + VDI_ARRAY_SIZE(cluster_wide); i++) {
		bool	    is_namespaced = i < VDI_ARRAY_SIZE(namespaced);
		const char *name =
			is_namespaced ? namespaced[i] : cluster_wide[i - VDI_ARRAY_SIZE(namespaced)];
		struct vdi_resource *found =
			vdi_resources_find(&resources, VD_BYTES_NONE, vd_bytes_of("v1"), vd_bytes_of(name));

		if (found == NULL || found->namespaced != is_namespaced)
			fail_msg("%s", name);
	}
	for (size_t i = 0; i < vdi_resources_built_in_count; i++) {
		static const char *const scaled[] = { "deployments", "replicasets", "statefulsets",
						      "replicationcontrollers" };
		bool			 has_scale = false;

		for (size_t k = 0; k < VDI_ARRAY_SIZE(scaled); k++)
			has_scale |= strcmp(scaled[k], vdi_resources_built_in[i].plural) == 0;
		if (vdi_resources_built_in[i].has_scale != has_scale)
			fail_msg("%s", vdi_resources_built_in[i].plural);
	}
	assert_status(
		vdi_resources_load(
			&resources,
			vd_bytes_of("[{\"group\":\"\",\"version\":\"v1\",\"plural\":\"longs\",\"kind\":"
				    "\"Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\"}]"),
			&error),
		VD_OK);
	vdi_resources_fini(&resources);
}

/* What every built-in kind is, as upstream's storage strategies say it: N namespaced, V a replacement names
 * the version it replaces, S has a status, C has a scale, K keeps the status of a create, G has a
 * generation. */
static void built_in_kinds_are_as_upstream_has_them(void **state)
{
	static const struct {
		const char	  *group, *plural, *prefix;
		enum vdi_name_rule name_rule;
		const char	  *flags, *phase, *trigger;
		unsigned	   ttl_s;
	} rows[] = {
		{ "", "configmaps", "/registry/configmaps/", VDI_NAME_SUBDOMAIN, "N", NULL, NULL, 0 },
		{ "", "endpoints", "/registry/services/endpoints/", VDI_NAME_SUBDOMAIN, "N", NULL, NULL, 0 },
		{ "", "events", "/registry/events/", VDI_NAME_PATH_SEGMENT, "N", NULL, NULL, 3600 },
		{ "", "namespaces", "/registry/namespaces/", VDI_NAME_LABEL, "S", "Active", NULL, 0 },
		{ "", "nodes", "/registry/minions/", VDI_NAME_SUBDOMAIN, "SK", NULL, NULL, 0 },
		{ "", "persistentvolumeclaims", "/registry/persistentvolumeclaims/", VDI_NAME_SUBDOMAIN, "NS",
		  "Pending", NULL, 0 },
		{ "", "persistentvolumes", "/registry/persistentvolumes/", VDI_NAME_SUBDOMAIN, "S", "Pending",
		  NULL, 0 },
		{ "", "pods", "/registry/pods/", VDI_NAME_SUBDOMAIN, "NSG", "Pending", "spec.nodeName", 0 },
		{ "", "secrets", "/registry/secrets/", VDI_NAME_SUBDOMAIN, "N", NULL, NULL, 0 },
		{ "", "serviceaccounts", "/registry/serviceaccounts/", VDI_NAME_SUBDOMAIN, "N", NULL, NULL,
		  0 },
		{ "", "services", "/registry/services/specs/", VDI_NAME_LABEL, "NS", NULL, NULL, 0 },
		{ "apiextensions.k8s.io", "customresourcedefinitions",
		  "/registry/apiextensions.k8s.io/customresourcedefinitions/", VDI_NAME_SUBDOMAIN, "SG", NULL,
		  NULL, 0 },
		{ "apps", "daemonsets", "/registry/daemonsets/", VDI_NAME_SUBDOMAIN, "NSG", NULL, NULL, 0 },
		{ "apps", "deployments", "/registry/deployments/", VDI_NAME_SUBDOMAIN, "NSCG", NULL, NULL,
		  0 },
		{ "apps", "replicasets", "/registry/replicasets/", VDI_NAME_SUBDOMAIN, "NSCG", NULL, NULL,
		  0 },
		{ "apps", "statefulsets", "/registry/statefulsets/", VDI_NAME_LABEL, "NSCG", NULL, NULL, 0 },
		{ "batch", "cronjobs", "/registry/cronjobs/", VDI_NAME_CRON_JOB, "NSG", NULL, NULL, 0 },
		{ "batch", "jobs", "/registry/jobs/", VDI_NAME_SUBDOMAIN, "NSG", NULL, NULL, 0 },
		{ "coordination.k8s.io", "leases", "/registry/leases/", VDI_NAME_SUBDOMAIN, "NV", NULL, NULL,
		  0 },
		{ "discovery.k8s.io", "endpointslices", "/registry/endpointslices/", VDI_NAME_SUBDOMAIN, "NG",
		  NULL, NULL, 0 },
	};
	struct vdi_resources resources;

	assert_status(vdi_resources_init(&resources), VD_OK);
	assert_int_equal(resources.count, VDI_ARRAY_SIZE(rows));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const struct vdi_resource *resource =
			vdi_resources_find(&resources, vd_bytes_of(rows[i].group), vd_bytes_of("v1"),
					   vd_bytes_of(rows[i].plural));
		char flags[8];

		assert_non_null(resource);
		snprintf(flags, sizeof flags, "%s%s%s%s%s%s", resource->namespaced ? "N" : "",
			 resource->needs_version ? "V" : "", resource->has_status ? "S" : "",
			 resource->has_scale ? "C" : "", resource->keeps_status ? "K" : "",
			 resource->has_generation ? "G" : "");
		assert_string_equal(flags, rows[i].flags);
		assert_string_equal(resource->key_prefix, rows[i].prefix);
		assert_int_equal(resource->name_rule, rows[i].name_rule);
		assert_true(resource->built_in && !resource->is_custom);
		assert_string_equal(resource->initial_phase ? resource->initial_phase : "",
				    rows[i].phase ? rows[i].phase : "");
		assert_string_equal(resource->trigger ? resource->trigger : "",
				    rows[i].trigger ? rows[i].trigger : "");
		assert_int_equal(resource->ttl_s, rows[i].ttl_s);
	}
	vdi_resources_fini(&resources);
}

/* One member of a resource of a file, at its borders. "": it is taken. */
static void members_of_a_file_at_their_borders(void **state)
{
#define TEN_LETTERS "abcdefghij"
#define SIXTY TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS TEN_LETTERS
#define ONLY_LETTERS "must be lower case letters, digits and '-'"
	static const char *const rows[][2] = {
		{ "\"shortNames\":[\"a\",\"a-1\",\"z9\"]", "" },
		{ "\"shortNames\":[\"\"]", "shortNames[0]: " ONLY_LETTERS },
		{ "\"shortNames\":[\"ok\",\"-a\"]", "shortNames[1]: " ONLY_LETTERS },
		{ "\"shortNames\":[\"a-\"]", "shortNames[0]: " ONLY_LETTERS },
		{ "\"shortNames\":[\"a.b\"]", "shortNames[0]: " ONLY_LETTERS },
		{ "\"shortNames\":[\"A\"]", "shortNames[0]: " ONLY_LETTERS },
		{ "\"shortNames\":[\"a/b\"]", "shortNames[0]: " ONLY_LETTERS },
		{ "\"shortNames\":[\"a:b\"]", "shortNames[0]: " ONLY_LETTERS },
		{ "\"shortNames\":[\"a`b\"]", "shortNames[0]: " ONLY_LETTERS },
		{ "\"shortNames\":[\"a{b\"]", "shortNames[0]: " ONLY_LETTERS },
		{ "\"categories\":[\"all\",\"-\"]", "categories[1]: " ONLY_LETTERS },
		{ "\"shortNames\":[\"" SIXTY SIXTY SIXTY SIXTY TEN_LETTERS "abc\"]", "" },
		{ "\"shortNames\":[\"" SIXTY SIXTY SIXTY SIXTY TEN_LETTERS "abcd\"]",
		  "shortNames[0]: " ONLY_LETTERS },
		{ "\"historyBytes\":0", "" },
		{ "\"historyBytes\":5", "" },
		{ "\"historyBytes\":-1", "historyBytes: must be a number of bytes" },
		{ "\"historyBytes\":\"5\"", "historyBytes: must be a number of bytes" },
		{ "\"historyBytes\":1.5", "historyBytes: must be a number of bytes" },
		{ "\"statusSubresource\":true,\"scaleSubresource\":false,\"namespaced\":false", "" },
		{ "\"statusSubresource\":1", "statusSubresource: must be true or false" },
		{ "\"selectableFields\":{}", "selectableFields: must be an array of {name, jsonPath}" },
		{ "\"selectableFields\":[]", "" },
		{ "\"selectableFields\":[1]", "selectableFields[0]: must be an object" },
		{ "\"selectableFields\":[{}]", "selectableFields[0]: needs jsonPath" },
		{ "\"selectableFields\":[{\"name\":\"a\"}]",
		  "selectableFields[0]: jsonPath must begin with '.'" },
		{ "\"selectableFields\":[{\"jsonPath\":\"a\"}]",
		  "selectableFields[0]: jsonPath must begin with '.'" },
		{ "\"selectableFields\":[{\"jsonPath\":\"ab\"}]",
		  "selectableFields[0]: jsonPath must begin with '.'" },
		{ "\"selectableFields\":[{\"jsonPath\":\".\"}]",
		  "selectableFields[0]: jsonPath must begin with '.'" },
		{ "\"selectableFields\":[{\"jsonPath\":\".a\",\"x\":1}]",
		  "selectableFields[0].x: unknown key" },
		{ "\"selectableFields\":[{\"jsonPath\":\".a\",\"name\":\"b\",\"default\":\"c\"}]", "" },
		{ "\"printerColumns\":{}", "printerColumns: must be an array" },
		{ "\"printerColumns\":[1]", "printerColumns[0]: must be an object" },
		{ "\"printerColumns\":[{\"name\":\"A\",\"jsonPath\":\".a\",\"priority\":\"1\"}]",
		  "printerColumns[0].priority: must be an integer" },
		{ "\"printerColumns\":[{\"name\":\"A\",\"jsonPath\":\".a\",\"x\":1}]",
		  "printerColumns[0].x: unknown key" },
		{ "\"printerColumns\":[{\"name\":\"A\",\"jsonPath\":\"a\"}]",
		  "printerColumns[0]: jsonPath must begin with '.'" },
		{ "\"printerColumns\":[{\"name\":\"A\",\"jsonPath\":\".a\",\"type\":\"float\"}]",
		  "printerColumns[0]: type must be string, integer, number, boolean or date" },
		{ "\"printerColumns\":[{\"jsonPath\":\".a\"}]",
		  "printerColumns[0]: needs name and jsonPath" },
		{ "\"printerColumns\":[{\"name\":\"A\",\"jsonPath\":\".a\",\"type\":\"number\"},{\"name\":"
		  "\"B\",\"jsonPath\":\".b\",\"type\":\"boolean\"}]",
		  "" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_resources resources;
		struct vd_error	     error = { 0 };
		char		     text[1000], wanted[300];

		assert_status(vdi_resources_init(&resources), VD_OK);
		snprintf(text, sizeof text, "[" WIDGET ",%s}]", rows[i][0]);
		snprintf(wanted, sizeof wanted, "resources: entry 0 (widgets): %s", rows[i][1]);
		if (vdi_resources_load(&resources, vd_bytes_of(text), &error) !=
			    (*rows[i][1] ? VD_INVALID : VD_OK) ||
		    (*rows[i][1] && strcmp(error.message, wanted) != 0))
			fail_msg("%s: %s", rows[i][0], error.message);
		vdi_resources_fini(&resources);
	}
}

static void lists_of_a_file_have_a_longest(void **state)
{
	static const struct {
		const char *begin, *fault;
		size_t	    longest;
	} rows[] = {
		{ ",\"selectableFields\":[", "selectableFields: has too many entries", VD_FIELDS_MAX },
		{ ",\"printerColumns\":[", "printerColumns: has too many entries", 32 },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (size_t count = rows[i].longest - 1; count <= rows[i].longest + 1; count++) {
			struct vdi_resources resources;
			struct vd_error	     error = { 0 };
			struct vdi_out	     text = VDI_OUT_INIT;

			assert_status(vdi_resources_init(&resources), VD_OK);
			vdi_out_raw(&text, "[" WIDGET);
			vdi_out_raw(&text, rows[i].begin);
			for (size_t k = 0; k < count; k++) {
				vdi_out_raw(&text, k ? "," : "");
				if (i)
					vdi_out_printf(&text, "{\"name\":\"A%zu\",\"jsonPath\":\".a\"}", k);
				else
					vdi_out_printf(&text, "{\"jsonPath\":\".a%zu\"}", k);
			}
			vdi_out_raw(&text, "]}]");
			assert_status(vdi_resources_load(&resources, vdi_out_slice(&text), &error),
				      count <= rows[i].longest ? VD_OK : VD_INVALID);
			if (count <= rows[i].longest) {
				const struct vdi_resource *widget =
					vdi_resources_find(&resources, vd_bytes_of("example.com"),
							   vd_bytes_of("v1"), vd_bytes_of("widgets"));

				assert_int_equal(i ? widget->column_count : widget->field_count,
						 i ? count + 1 : count);
				assert_string_equal(i ? widget->columns[1].name : widget->fields[1].name,
						    i ? "A0" : "a1");
			} else {
				assert_non_null(strstr(error.message, rows[i].fault));
			}
			vdi_out_fini(&text);
			vdi_resources_fini(&resources);
		}
}

static void what_a_file_says_is_taken(void **state)
{
	static const char file[] =
		"[" WIDGET ",\"historyBytes\":5000,\"statusSubresource\":true,\"scaleSubresource\":true,"
		"\"categories\":[\"all\"],\"selectableFields\":[{\"jsonPath\":\".a\","
		"\"name\":\"b\",\"default\":\"c\"}],\"printerColumns\":[{\"name\":\"A\",\"jsonPath\":\".a\","
		"\"type\":\"date\",\"format\":\"f\",\"description\":\"d\",\"priority\":3},"
		"{\"name\":\"B\",\"jsonPath\":\".b\"}]}]";
	struct vdi_resources	   resources;
	const struct vdi_resource *widget;

	assert_status(vdi_resources_init(&resources), VD_OK);
	assert_status(vdi_resources_load(&resources, vd_bytes_of(file), NULL), VD_OK);
	widget = vdi_resources_find(&resources, vd_bytes_of("example.com"), vd_bytes_of("v1"),
				    vd_bytes_of("widgets"));
	assert_int_equal(widget->history_bytes, 5000);
	assert_true(widget->has_status && widget->has_scale);
	assert_string_equal(widget->categories[0], "all");
	assert_string_equal(widget->fields[0].name, "b");
	assert_string_equal(widget->fields[0].default_value, "c");
	assert_int_equal(widget->column_count, 3);
	assert_string_equal(widget->columns[1].format, "f");
	assert_string_equal(widget->columns[1].description, "d");
	assert_int_equal(widget->columns[1].priority, 3);
	assert_int_equal(widget->columns[1].cell, VDI_CELL_AGE);
	assert_string_equal(widget->columns[2].type, "string");
	assert_int_equal(widget->columns[2].cell, VDI_CELL_PATH);
	vdi_resources_fini(&resources);
}

/* Discovery names groups in their order, and of each the best version first. */
static void kinds_are_in_the_order_of_groups_and_versions(void **state)
{
	struct vdi_resources resources;

	assert_status(vdi_resources_init(&resources), VD_OK);
	for (size_t i = 1; i < resources.count; i++) {
		const struct vdi_resource *before = resources.items[i - 1], *next = resources.items[i];
		int			   order = strcmp(before->group, next->group);

		assert_true(order < 0 || (order == 0 && vdi_resource_compare_versions(before->version,
										      next->version) <= 0));
	}
	vdi_resources_fini(&resources);
}

/* The prefix of the keys has 3 to 512 bytes; lists of words have a longest; listKind is taken. */
static void more_members_of_a_file_at_their_borders(void **state)
{
	for (size_t size = 2; size <= 514; size += size == 4 ? 506 : 1) {
		struct vdi_resources resources;
		struct vd_error	     error = { 0 };
		char		     prefix[520], text[1200];
		bool		     is_fine = size >= 3 && size <= 512;

		memset(prefix, 'x', sizeof prefix);
		prefix[0] = prefix[size - 1] = '/';
		prefix[size] = 0;
		assert_status(vdi_resources_init(&resources), VD_OK);
		(void) snprintf(text, sizeof text,
				"[" WIDGET ",\"storagePrefix\":\"%s\",\"listKind\":\"Many\"}]", prefix);
		assert_status(vdi_resources_load(&resources, vd_bytes_of(text), &error),
			      is_fine ? VD_OK : VD_INVALID);
		if (is_fine) {
			const struct vdi_resource *widget =
				vdi_resources_find(&resources, vd_bytes_of("example.com"), vd_bytes_of("v1"),
						   vd_bytes_of("widgets"));

			assert_string_equal(widget->key_prefix, prefix);
			assert_string_equal(widget->list_kind, "Many");
		}
		vdi_resources_fini(&resources);
	}
	for (int is_category = 0; is_category < 2; is_category++)
		for (size_t count = VDI_RESOURCE_WORDS_MAX - 1; count <= VDI_RESOURCE_WORDS_MAX + 1;
		     count++) {
			struct vdi_resources resources;
			struct vd_error	     error = { 0 };
			struct vdi_out	     text = VDI_OUT_INIT;

			assert_status(vdi_resources_init(&resources), VD_OK);
			vdi_out_printf(&text, "[" WIDGET ",\"%s\":[",
				       is_category ? "categories" : "shortNames");
			for (size_t i = 0; i < count; i++)
				vdi_out_printf(&text, "%s\"a%zu\"", i ? "," : "", i);
			vdi_out_raw(&text, "]}]");
			assert_status(vdi_resources_load(&resources, vdi_out_slice(&text), &error),
				      count <= VDI_RESOURCE_WORDS_MAX ? VD_OK : VD_INVALID);
			if (count > VDI_RESOURCE_WORDS_MAX)
				assert_non_null(strstr(error.message, is_category ?
									      "categories: has too many" :
									      "shortNames: has too many"));
			vdi_out_fini(&text);
			vdi_resources_fini(&resources);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(more_members_of_a_file_at_their_borders),
		cmocka_unit_test(kinds_are_in_the_order_of_groups_and_versions),
		cmocka_unit_test(members_of_a_file_at_their_borders),
		cmocka_unit_test(lists_of_a_file_have_a_longest),
		cmocka_unit_test(what_a_file_says_is_taken),
		cmocka_unit_test(built_in_kinds_are_as_upstream_has_them),
		cmocka_unit_test(built_in_kinds_keep_kubernetes_keys),
		cmocka_unit_test(the_trigger_is_one_of_the_fields),
		cmocka_unit_test(a_file_adds_and_replaces),
		cmocka_unit_test(field_errors_are_named_with_their_place),
		cmocka_unit_test(h110_to_h115_documents_are_valid_and_complete),
		cmocka_unit_test(h112_members_of_a_resource),
		cmocka_unit_test(h202_the_index_has_the_hash_of_the_content),
		cmocka_unit_test(h205_h206_the_small_openapi_v2_document),
		cmocka_unit_test(r109_the_keys_lie_under_the_given_path),
		cmocka_unit_test(out_of_memory_undoes_everything),
		cmocka_unit_test(versions_have_an_order),
		cmocka_unit_test(borders_of_kinds),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
