/* Cells as kubectl prints them. */
#include "vdtest.h"

#include <time.h>

#include "rand.h"
#include "table.h"

#define NOW ((vd_wall) { (int64_t) 1780000000 * 1000000000 }) /* 2026-05-28T20:26:40Z */

static void check_row(const char *group, const char *plural, const char *object, const char *cells)
{
	struct vdi_resources	   resources;
	const struct vdi_resource *resource;
	struct vdi_tree		   tree = VDI_TREE_INIT;
	struct vdi_node		  *root;
	struct vdi_out		   out = VDI_OUT_INIT;
	char			   wanted[1024];

	assert_status(vdi_resources_init(&resources), VD_OK);
	resource = vdi_resources_find(&resources, vd_bytes_of(group), vd_bytes_of("v1"), vd_bytes_of(plural));
	assert_non_null(resource);
	assert_status(vdi_tree_parse(&tree, vd_bytes_of(object), &root, NULL), VD_OK);
	vdi_table_row(&out, resource, &tree, root, vd_bytes_of(object), VDI_INCLUDE_NONE, false, NOW);
	vdi_out_printf(&out, "%c", 0);
	snprintf(wanted, sizeof wanted, "{\"cells\":[%s],\"object\":null}", cells);
	assert_string_equal(out.data, wanted);
	vdi_out_fini(&out);
	vdi_tree_fini(&tree);
	vdi_resources_fini(&resources);
}

static void h301_pods(void **state)
{
	check_row("", "pods",
		  "{\"metadata\":{\"name\":\"p\",\"creationTimestamp\":\"2026-05-28T20:21:30Z\"},\"spec\":{"
		  "\"nodeName\":\"n1\",\"containers\":[{},{}]},"
		  "\"status\":{\"phase\":\"Running\",\"podIP\":\"10.0.0.1\",\"containerStatuses\":[{"
		  "\"ready\":true,\"state\":{\"running\":{}},"
		  "\"restartCount\":2,\"lastState\":{\"terminated\":{\"finishedAt\":\"2026-05-28T20:25:40Z\"}"
		  "}},"
		  "{\"ready\":false,\"state\":{\"waiting\":{\"reason\":\"CrashLoopBackOff\"}}}]}}",
		  "\"p\",\"1/2\",\"CrashLoopBackOff\",\"2 (60s "
		  "ago)\",\"5m10s\",\"10.0.0.1\",\"n1\",\"\\u003cnone\\u003e\",\"\\u003cnone\\u003e\"");
	check_row("", "pods",
		  "{\"metadata\":{\"name\":\"p\",\"deletionTimestamp\":\"2026-05-28T20:21:30Z\"},\"spec\":{"
		  "\"containers\":[{}],\"initContainers\":[{},{}]},"
		  "\"status\":{\"phase\":\"Pending\",\"initContainerStatuses\":[{\"state\":{\"terminated\":{"
		  "\"exitCode\":0}}},{\"state\":{\"running\":{}}}]}}",
		  "\"p\",\"0/"
		  "1\",\"Terminating\",\"0\",\"\\u003cunknown\\u003e\",\"\\u003cnone\\u003e\","
		  "\"\\u003cnone\\u003e\",\"\\u003cnone\\u003e\","
		  "\"\\u003cnone\\u003e\"");
}

static void h301_other_kinds(void **state)
{
	check_row("", "configmaps",
		  "{\"metadata\":{\"name\":\"c\",\"creationTimestamp\":\"2026-05-26T20:26:40Z\"},\"data\":{"
		  "\"a\":\"\"},\"binaryData\":{\"b\":\"\"}}",
		  "\"c\",\"2\",\"2d\"");
	check_row("apps", "deployments",
		  "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":3,\"selector\":{\"matchLabels\":{"
		  "\"a\":\"b\"}},\"template\":{\"spec\":{\"containers\":"
		  "[{\"name\":\"x\",\"image\":\"i\"},{\"name\":\"y\",\"image\":\"j\"}]}}},\"status\":{"
		  "\"readyReplicas\":1,\"updatedReplicas\":2}}",
		  "\"d\",\"1/3\",\"2\",\"0\",\"\\u003cunknown\\u003e\",\"x,y\",\"i,j\",\"a=b\"");
	check_row("apps", "deployments",
		  "{\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":0,\"selector\":{\"matchLabels\":{"
		  "\"a\":\"b\",\"n\":1,\"c\":\"d\"},\"matchExpressions\":[{\"key\":\"k\","
		  "\"operator\":\"Exists\"}]},\"template\":{\"spec\":{\"containers\":[]}}}}",
		  "\"d\",\"0/0\",\"0\",\"0\",\"\\u003cunknown\\u003e\",\"\",\"\",\"a=b,c=d,k Exists\"");
	check_row("", "nodes",
		  "{\"metadata\":{\"name\":\"n\",\"labels\":{\"node-role.kubernetes.io/"
		  "control-plane\":\"\"}},\"spec\":{\"unschedulable\":true},\"status\":"
		  "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}],\"addresses\":[{\"type\":"
		  "\"InternalIP\",\"address\":\"10.0.0.9\"}],"
		  "\"nodeInfo\":{\"kubeletVersion\":\"v1.36.0\"}}}",
		  "\"n\",\"Ready,SchedulingDisabled\",\"control-plane\",\"\\u003cunknown\\u003e\",\"v1.36."
		  "0\",\"10.0.0.9\",\"\\u003cnone\\u003e\","
		  "\"\\u003cunknown\\u003e\",\"\\u003cunknown\\u003e\",\"\\u003cunknown\\u003e\"");
	check_row("", "services",
		  "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"type\":\"NodePort\",\"ports\":[{\"port\":80,"
		  "\"nodePort\":30080},{\"port\":53,\"protocol\":\"UDP\"}]}}",
		  "\"s\",\"NodePort\",\"\\u003cnone\\u003e\",\"\\u003cnone\\u003e\",\"80:30080/TCP,53/"
		  "UDP\",\"\\u003cunknown\\u003e\",\"\\u003cnone\\u003e\"");
}

/* No object, however odd its types, may upset a cell. */
static void cells_survive_objects_of_the_wrong_shape(void **state)
{
	static const char *const odd[] = {
		"{}", "[]", "1", "{\"metadata\":[],\"spec\":1,\"status\":\"x\"}",
		("{\"metadata\":{\"labels\":[1],\"creationTimestamp\":{}},\"spec\":{\"containers\":{\"a\":1},"
		 "\"ports\":\"x\",\"selector\":[{}]},"
		 "\"status\":{\"conditions\":{\"a\":{}},\"containerStatuses\":[1,null,{}],"
		 "\"initContainerStatuses\":[{}]}}")
	};
	struct vdi_resources resources;

	assert_status(vdi_resources_init(&resources), VD_OK);
	for (size_t i = 0; i < resources.count; i++) {
		for (size_t k = 0; k < VDI_ARRAY_SIZE(odd); k++) {
			struct vdi_tree	 tree = VDI_TREE_INIT, check = VDI_TREE_INIT;
			struct vdi_node *root, *row;
			struct vdi_out	 out = VDI_OUT_INIT;

			assert_status(vdi_tree_parse(&tree, vd_bytes_of(odd[k]), &root, NULL), VD_OK);
			vdi_table_row(&out, resources.items[i], &tree, root, vd_bytes_of(odd[k]),
				      VDI_INCLUDE_METADATA, false, NOW);
			assert_status(vdi_tree_parse(&check, vdi_out_slice(&out), &row, NULL), VD_OK);
			assert_int_equal(vdi_tree_find(&check, row, "cells")->count,
					 resources.items[i]->column_count);
			vdi_out_fini(&out);
			vdi_tree_fini(&tree);
			vdi_tree_fini(&check);
		}
	}
	vdi_resources_fini(&resources);
}

static void durations_are_short(void **state)
{
	static const struct {
		int64_t	    seconds;
		const char *text;
	} rows[] = { { -5, "<invalid>" }, { -1, "0s" },		{ 0, "0s" },	    { 119, "119s" },
		     { 120, "2m" },	  { 125, "2m5s" },	{ 599, "9m59s" },   { 600, "10m" },
		     { 10799, "179m" },	  { 10800, "3h" },	{ 11100, "3h5m" },  { 28800, "8h" },
		     { 172799, "47h" },	  { 172800, "2d" },	{ 180000, "2d2h" }, { 691200, "8d" },
		     { 63072000, "2y" },  { 63158400, "2y1d" }, { 252288000, "8y" } };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_out out = VDI_OUT_INIT;

		vdi_human_duration(&out, rows[i].seconds);
		vdi_out_printf(&out, "%c", 0);
		assert_string_equal(out.data, rows[i].text);
		vdi_out_fini(&out);
	}
}

static void check_columns(const struct vdi_column *columns, size_t count, const char *wanted)
{
	struct vdi_resource resource = { .columns = columns, .column_count = count };
	struct vdi_out	    out = VDI_OUT_INIT;

	vdi_out_raw(&out, "{");
	vdi_table_columns(&out, &resource);
	assert_true(vd_bytes_equal(vdi_out_slice(&out), vd_bytes_of(wanted)));
	vdi_out_fini(&out);
}

static void h301_h302_columns_and_what_rows_include(void **state)
{
	static const struct vdi_column columns[] = { { "A", "string", "name", "d", 0, VDI_CELL_PATH,
						       ".metadata.name" },
						     { "B", "integer", "", "", 1, VDI_CELL_PATH, ".b" } };
	static const char	       text[] = "{\"b\":2,\"metadata\":{\"name\":\"n\"}}";
	static const struct {
		enum vdi_include include;
		bool		 v1beta1;
		const char	*text, *row;
	} rows[] = {
		{ VDI_INCLUDE_NONE, false, text, "{\"cells\":[\"n\",2],\"object\":null}" },
		{ VDI_INCLUDE_OBJECT, false, text,
		  "{\"cells\":[\"n\",2],\"object\":{\"b\":2,\"metadata\":{\"name\":\"n\"}}}" },
		{ VDI_INCLUDE_METADATA, false, text,
		  "{\"cells\":[\"n\",2],\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta."
		  "k8s.io/v1\",\"metadata\":{\"name\":\"n\"}}}" },
		{ VDI_INCLUDE_METADATA, true, text,
		  "{\"cells\":[\"n\",2],\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta."
		  "k8s.io/v1beta1\",\"metadata\":{\"name\":\"n\"}}}" },
		{ VDI_INCLUDE_METADATA, false, "{\"b\":3}",
		  "{\"cells\":[\"\",3],\"object\":{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta."
		  "k8s.io/v1\"}}" },
	};
	struct vdi_resource resource = { .columns = columns, .column_count = 2 };

	check_columns(columns, 0, "{\"columnDefinitions\":[]");
	check_columns(
		columns, 2,
		"{\"columnDefinitions\":[{\"name\":\"A\",\"type\":\"string\",\"format\":\"name\","
		"\"description\":\"d\",\"priority\":0},"
		"{\"name\":\"B\",\"type\":\"integer\",\"format\":\"\",\"description\":\"\",\"priority\":1}]");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_out	 out = VDI_OUT_INIT;
		struct vdi_node *root;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].text), &root, NULL), VD_OK);
		vdi_table_row(&out, &resource, &tree, root, vd_bytes_of(rows[i].text), rows[i].include,
			      rows[i].v1beta1, NOW);
		if (!vd_bytes_equal(vdi_out_slice(&out), vd_bytes_of(rows[i].row)))
			fail_msg("%.*s, not %s", (int) out.size, out.data, rows[i].row);
		vdi_out_fini(&out);
		vdi_tree_fini(&tree);
	}
}

/* A cell has the type of its column, or is null. */
static void h302_cells_of_each_type(void **state)
{
	static const char *const rows[][3] = {
		{ "\"a\"", "string", "\"a\"" },
		{ "5", "string", "\"5\"" },
		{ "true", "string", "\"true\"" },
		{ "5", "integer", "5" },
		{ "\"5\"", "integer", "null" },
		{ "1.5", "number", "1.5" },
		{ "\"x\"", "number", "null" },
		{ "true", "boolean", "true" },
		{ "false", "boolean", "false" },
		{ "1", "boolean", "null" },
		{ "null", "string", "null" },
		{ "5", "date", "null" },
		{ "5", "nonsense", "null" },
		{ "true", "number", "null" },
		{ "true", "integer", "null" },
		{ "1.9", "integer", "1" },
		{ "2e3", "integer", "2000" },
		{ "2E3", "integer", "2000" },
		{ "1.25e1", "integer", "12" },
		{ "[1,{\"a\":2}]", "string", "\"[1,{\\\"a\\\":2}]\"" },
		{ "1.5e3", "number", "1.5e3" },
		{ "null", "integer", "null" },
		{ "[1]", "integer", "null" },
		{ "\"true\"", "boolean", "null" },
		{ "\"2026-05-28T20:26:00Z\"", "date", "\"40s\"" },
		{ "\"x\"", "date", "\"\\u003cinvalid\\u003e\"" },
		{ "\"2026-05-28T20:26:00Z\"", "string", "\"2026-05-28T20:26:00Z\"" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_out	 out = VDI_OUT_INIT;
		struct vdi_node *root;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i][0]), &root, NULL), VD_OK);
		vdi_table_typed(&out, root, rows[i][1], NOW);
		if (!vd_bytes_equal(vdi_out_slice(&out), vd_bytes_of(rows[i][2])))
			fail_msg("%s as %s: %.*s", rows[i][0], rows[i][1], (int) out.size, out.data);
		vdi_out_fini(&out);
		vdi_tree_fini(&tree);
	}
}

static void paths_lead_to_members_and_elements(void **state)
{
	static const char text[] =
		"{\"a\":{\"b\":[{\"n\":\"x\",\"v\":1},{\"v\":7},{\"n\":\"y\",\"v\":2},{\"n\":\"y\",\"v\":3}],"
		"\"c.d\":3,\"e\":{\"0\":9,\"n\":\"y\"}},\"l\":[10,[20,21]],\"\":4}";
	static const char *const rows[][2] = {
		{ "", text },
		{ ".a.b[0].v", "1" },
		{ ".a.b[1].v", "7" },
		{ ".a.b[3].v", "3" },
		{ ".a.b[4]", NULL },
		{ ".a.b[4].v", NULL },
		{ ".a.b[*].n", "\"x\"" },
		{ ".a.b[?(@.n==\"y\")].v", "2" },
		{ ".a.b[?(@.n=='x')].v", "1" },
		{ ".a.b[?(@.n == \"y\" )].v", "2" },
		{ ".a.b[?(@.n==\"z\")]", NULL },
		{ ".a.b[?(@.v==7)].v", "7" },
		{ ".a.b[?(@.n=\"y\")]", NULL },
		{ ".a.b[?(@.n==\"y\"", NULL },
		{ ".a.b[?(@.n)].v==", NULL },
		{ ".a.e[0]", NULL },
		{ ".a.e[*]", NULL },
		{ ".a.e[?(@.n==\"y\")]", NULL },
		{ ".a[?(@.n==\"y\")]", NULL },
		{ ".a.e['0']", "9" },
		{ ".a['c.d']", "3" },
		{ ".a[\"c.d\"]", "3" },
		{ "['a']['b'][2].v", "2" },
		{ ".a.c\\.d", "3" },
		{ ".l[1][1]", "21" },
		{ "l[0]", "10" },
		{ ".l[0", NULL },
		{ "['a", NULL },
		{ "['a'", NULL },
		{ "['a'x]", NULL },
		{ ".x", NULL },
		{ ".x.y", NULL },
		{ ".l.x", NULL },
		{ ".l[0].x", NULL },
		{ ".a.e.0", "9" },
		{ ".a..e['n']", "\"y\"" },
	};
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	char		 path[302], key[300];

	assert_status(vdi_tree_parse(&tree, vd_bytes_of(text), &root, NULL), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const struct vdi_node *found = vdi_tree_path(&tree, root, rows[i][0]);
		struct vdi_out	       out = VDI_OUT_INIT;

		if (found)
			vdi_tree_write(&out, found);
		if ((found != NULL) != (rows[i][1] != NULL) ||
		    (found && !vd_bytes_equal(vdi_out_slice(&out), vd_bytes_of(rows[i][1]))))
			fail_msg("%s: %.*s", rows[i][0], (int) out.size, out.size ? out.data : "");
		vdi_out_fini(&out);
	}
	for (size_t size = 255; size <= 257; size++) { /* a key has a bound */
		memset(key, 'k', size);
		key[size] = 0;
		(void) snprintf(path, sizeof path, ".%s", key);
		assert_true(vdi_tree_set(&tree, root, vd_bytes_of(key), vdi_tree_new(&tree, VDI_NODE_TRUE)));
		assert_int_equal(vdi_tree_path(&tree, root, path) != NULL, size <= 256);
	}
	vdi_tree_fini(&tree);
}

/* A row is made of a bounded part of an object, but has all of its metadata. */
static void h302_large_metadata_is_whole(void **state)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_out	 text = VDI_OUT_INIT, out = VDI_OUT_INIT;
	struct vdi_node *root;
	size_t		 begin;

	vdi_out_raw(&text, "{\"spec\":{},\"metadata\":");
	begin = text.size;
	vdi_out_raw(&text, "{\"name\":\"n\",\"annotations\":{");
	for (int i = 0; i < VDI_TREE_SHOWN_MAX + 10; i++)
		vdi_out_printf(&text, "%s\"k%d\":\"\"", i ? "," : "", i);
	vdi_out_raw(&text, "}}}");
	assert_status(vdi_tree_parse_row(&tree, vdi_out_slice(&text), &root, NULL), VD_OK);
	vdi_table_metadata(&out, &tree, root, false);
	assert_true(out.size > text.size - begin);
	assert_non_null(memmem(out.data, out.size, text.data + begin, text.size - begin - 1));
	vdi_out_fini(&out);
	vdi_out_fini(&text);
	vdi_tree_fini(&tree);
}

#define ENDPOINTS(addresses)                                                                                 \
	"{\"metadata\":{\"name\":\"e\"},\"subsets\":[{\"addresses\":[" addresses                             \
	"],\"ports\":[{\"port\":80}]}]}"
#define ADDRESS "{\"ip\":\"10.0.0.1\"}"
#define CELL "10.0.0.1:80"

/* Three are shown, and how many more there are. */
static void h301_endpoints_are_counted(void **state)
{
	check_row("", "endpoints", ENDPOINTS(""), "\"e\",\"\\u003cnone\\u003e\",\"\\u003cunknown\\u003e\"");
	check_row("", "endpoints", ENDPOINTS(ADDRESS "," ADDRESS "," ADDRESS),
		  "\"e\",\"" CELL "," CELL "," CELL "\",\"\\u003cunknown\\u003e\"");
	check_row("", "endpoints", ENDPOINTS(ADDRESS "," ADDRESS "," ADDRESS "," ADDRESS),
		  "\"e\",\"" CELL "," CELL "," CELL " + 1 more...\",\"\\u003cunknown\\u003e\"");
}

/* Kubernetes' short durations (k8s.io/apimachinery pkg/util/duration), on both sides of each border. */
static void durations_at_their_borders(void **state)
{
	enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };
	static const struct {
		int64_t	    seconds;
		const char *text;
	} rows[] = {
		{ -2, "<invalid>" },
		{ -1, "0s" },
		{ 0, "0s" },
		{ 119, "119s" },
		{ 120, "2m" },
		{ 121, "2m1s" },
		{ 10 * MINUTE - 1, "9m59s" },
		{ 10 * MINUTE, "10m" },
		{ 10 * MINUTE + 1, "10m" },
		{ 3 * HOUR - 1, "179m" },
		{ 3 * HOUR, "3h" },
		{ 3 * HOUR + MINUTE, "3h1m" },
		{ 8 * HOUR - 1, "7h59m" },
		{ 8 * HOUR, "8h" },
		{ 8 * HOUR + MINUTE, "8h" },
		{ 48 * HOUR - 1, "47h" },
		{ 48 * HOUR, "2d" },
		{ 49 * HOUR, "2d1h" },
		{ 8 * DAY - 1, "7d23h" },
		{ 8 * DAY, "8d" },
		{ 8 * DAY + HOUR, "8d" },
		{ 730 * DAY - 1, "729d" },
		{ 730 * DAY, "2y" },
		{ 731 * DAY, "2y1d" },
		{ (int64_t) 2920 * DAY - 1, "7y364d" },
		{ (int64_t) 2920 * DAY, "8y" },
		{ (int64_t) 2921 * DAY, "8y" },
		{ (int64_t) 3650 * DAY, "10y" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_out out = VDI_OUT_INIT;

		vdi_human_duration(&out, rows[i].seconds);
		if (!vd_bytes_equal(vdi_out_slice(&out), vd_bytes_of(rows[i].text)))
			fail_msg("%s: %.*s", rows[i].text, (int) out.size, out.data);
		vdi_out_fini(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations_at_their_borders),
		cmocka_unit_test(h301_pods),
		cmocka_unit_test(h301_other_kinds),
		cmocka_unit_test(cells_survive_objects_of_the_wrong_shape),
		cmocka_unit_test(durations_are_short),
		cmocka_unit_test(h301_h302_columns_and_what_rows_include),
		cmocka_unit_test(h302_cells_of_each_type),
		cmocka_unit_test(paths_lead_to_members_and_elements),
		cmocka_unit_test(h302_large_metadata_is_whole),
		cmocka_unit_test(h301_endpoints_are_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
