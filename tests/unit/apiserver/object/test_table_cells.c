/* Cells with rules of their own, one at a time: what each of them makes of every shape of object that its
 * rule tells apart.
 * rules: H-301 */
#include "vdtest.h"

#include "table.h"

#define NOW ((vd_wall) { (int64_t) 1780000000 * 1000000000 }) /* 2026-05-28T20:26:40Z */
#define NONE "\"\\u003cnone\\u003e\""
#define UNKNOWN "\"\\u003cunknown\\u003e\""
#define UNSET "\"\\u003cunset\\u003e\""

struct cell_row {
	const char *object, *cell;
};

static void check_typed(enum vdi_cell cell, const char *path, const char *type, const char *format,
			const struct cell_row *rows, size_t count)
{
	struct vdi_column column = { "Name", type, format, "", 0, cell, path };

	for (size_t i = 0; i < count; i++) {
		struct vdi_tree	 tree = VDI_TREE_INIT;
		struct vdi_out	 out = VDI_OUT_INIT;
		struct vdi_node *root;

		assert_status(vdi_tree_parse(&tree, vd_bytes_of(rows[i].object), &root, NULL), VD_OK);
		vdi_table_cell(&out, &(struct vdi_cell_context) { &tree, root, NOW }, &column);
		if (!vd_bytes_equal(vdi_out_slice(&out), vd_bytes_of(rows[i].cell)))
			fail_msg("%s: %.*s, not %s", rows[i].object, (int) out.size, out.data, rows[i].cell);
		vdi_out_fini(&out);
		vdi_tree_fini(&tree);
	}
}

#define CHECK(cell, path, rows) check_typed(cell, path, "string", "", rows, VDI_ARRAY_SIZE(rows))
#define CHECK_AS(cell, path, type, fmt, rows) check_typed(cell, path, type, fmt, rows, VDI_ARRAY_SIZE(rows))

/* ---- Pods ---- */

#define STATUSES(members) "\"containerStatuses\":[" members "]"
#define INIT_STATUSES(members) "\"initContainerStatuses\":[" members "]"
#define SIDECAR "\"initContainers\":[{\"name\":\"a\"},{\"name\":\"s\",\"restartPolicy\":\"Always\"}]"
#define RUNNING "\"state\":{\"running\":{}}"
#define WAITING(reason) "\"state\":{\"waiting\":{\"reason\":\"" reason "\"}}"
#define TERMINATED(members) "\"state\":{\"terminated\":{" members "}}"
#define SPEC_STATUS(spec, status) "{\"spec\":{" spec "},\"status\":{" status "}}"
#define STATUS(status) "{\"status\":{" status "}}"
#define DELETED(status)                                                                                      \
	"{\"metadata\":{\"deletionTimestamp\":\"2026-05-28T20:21:30Z\"},\"status\":{" status "}}"

static void pods_say_in_one_word_how_they_are(void **state)
{
	static const struct cell_row rows[] = {
		{ "{}", "\"\"" },
		{ STATUS("\"phase\":\"Pending\""), "\"Pending\"" },
		{ STATUS("\"phase\":\"Failed\",\"reason\":\"Evicted\""), "\"Evicted\"" },
		/* Gates. */
		{ STATUS("\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"reason\":"
			 "\"SchedulingGated\"}]"),
		  "\"SchedulingGated\"" },
		{ STATUS("\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\",\"reason\":"
			 "\"Other\"}]"),
		  "\"Pending\"" },
		{ STATUS("\"phase\":\"Pending\",\"conditions\":[{\"type\":\"Ready\",\"reason\":"
			 "\"SchedulingGated\"}]"),
		  "\"Pending\"" },
		/* Deletion. */
		{ DELETED("\"phase\":\"Running\""), "\"Terminating\"" },
		{ DELETED("\"phase\":\"Succeeded\""), "\"Succeeded\"" },
		{ DELETED("\"phase\":\"Failed\""), "\"Failed\"" },
		{ DELETED("\"phase\":\"Running\",\"reason\":\"NodeLost\""), "\"Unknown\"" },
		{ STATUS("\"phase\":\"Running\",\"reason\":\"NodeLost\""), "\"NodeLost\"" },
		/* Containers: the first that has a word. */
		{ STATUS("\"phase\":\"Running\"," STATUSES("{" WAITING("A") "},{" WAITING("B") "}")),
		  "\"A\"" },
		{ STATUS("\"phase\":\"Running\"," STATUSES("{" RUNNING
							   ",\"ready\":true},{" WAITING("B") "}")),
		  "\"B\"" },
		{ STATUS("\"phase\":\"Running\"," STATUSES(
			  "{" TERMINATED("\"reason\":\"Error\",\"exitCode\":1") "},{" WAITING("B") "}")),
		  "\"Error\"" },
		{ STATUS("\"phase\":\"Running\"," STATUSES(
			  "{" TERMINATED("\"exitCode\":3") "},{" TERMINATED("\"reason\":\"Error\"") "}")),
		  "\"ExitCode:3\"" },
		{ STATUS("\"phase\":\"Running\"," STATUSES("{" TERMINATED(
			  "\"exitCode\":3,\"signal\":9") "},{" TERMINATED("\"exitCode\":4") "}")),
		  "\"Signal:9\"" },
		{ STATUS("\"phase\":\"Running\"," STATUSES(
			  "{" WAITING("A") "},{" TERMINATED("\"exitCode\":4") "}")),
		  "\"A\"" },
		{ STATUS("\"phase\":\"Running\"," STATUSES("{\"state\":{\"waiting\":{}}}")), "\"Running\"" },
		/* One has ended well, another runs. */
		{ STATUS(STATUSES("{" TERMINATED("\"reason\":\"Completed\"") "}")), "\"Completed\"" },
		{ STATUS(STATUSES("{" TERMINATED("\"reason\":\"Completed\"") "},{" RUNNING
									     ",\"ready\":true}")),
		  "\"NotReady\"" },
		{ STATUS(STATUSES("{" TERMINATED("\"reason\":\"Completed\"") "},{" RUNNING "}")),
		  "\"Completed\"" },
		{ STATUS(STATUSES("{" TERMINATED("\"reason\":\"Completed\"") "},{\"ready\":true}")),
		  "\"Completed\"" },
		{ STATUS(STATUSES("{" TERMINATED("\"reason\":\"Error\"") "},{" RUNNING ",\"ready\":true}")),
		  "\"Error\"" },
		{ STATUS("\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]," STATUSES(
			  "{" TERMINATED("\"reason\":\"Completed\"") "},{" RUNNING ",\"ready\":true}")),
		  "\"Running\"" },
		{ STATUS("\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]," STATUSES(
			  "{" TERMINATED("\"reason\":\"Completed\"") "},{" RUNNING ",\"ready\":true}")),
		  "\"NotReady\"" },
		/* Init containers. */
		{ SPEC_STATUS("\"initContainers\":[{},{},{}]",
			      INIT_STATUSES("{" TERMINATED("\"exitCode\":0") "},{" RUNNING "}")),
		  "\"Init:1/3\"" },
		{ SPEC_STATUS("\"initContainers\":[{},{},{}]", INIT_STATUSES("{" RUNNING "}")),
		  "\"Init:0/3\"" },
		{ STATUS(INIT_STATUSES("{" RUNNING "}")), "\"Init:0/0\"" },
		{ STATUS(INIT_STATUSES("{" TERMINATED("\"exitCode\":2") "}")), "\"Init:ExitCode:2\"" },
		{ STATUS(INIT_STATUSES("{" TERMINATED("\"exitCode\":2,\"signal\":15") "}")),
		  "\"Init:Signal:15\"" },
		{ STATUS(INIT_STATUSES("{" TERMINATED("\"exitCode\":2,\"reason\":\"OOMKilled\"") "}")),
		  "\"Init:OOMKilled\"" },
		{ STATUS(INIT_STATUSES("{" WAITING("ErrImagePull") "}")), "\"Init:ErrImagePull\"" },
		{ SPEC_STATUS("\"initContainers\":[{}]", INIT_STATUSES("{" WAITING("PodInitializing") "}")),
		  "\"Init:0/1\"" },
		/* While they run, the others are not asked, unless the pod says that they are through. */
		{ STATUS(INIT_STATUSES("{" WAITING("I") "}") "," STATUSES("{" WAITING("C") "}")),
		  "\"Init:I\"" },
		{ STATUS("\"conditions\":[{\"type\":\"Initialized\",\"status\":\"True\"}]," INIT_STATUSES(
			  "{" WAITING("I") "}") "," STATUSES("{" WAITING("C") "}")),
		  "\"C\"" },
		{ STATUS("\"conditions\":[{\"type\":\"Initialized\",\"status\":\"False\"}]," INIT_STATUSES(
			  "{" WAITING("I") "}") "," STATUSES("{" WAITING("C") "}")),
		  "\"Init:I\"" },
		/* One that runs beside the others has started. */
		{ SPEC_STATUS(SIDECAR,
			      "\"phase\":\"Running\"," INIT_STATUSES("{\"name\":\"a\"," TERMINATED(
				      "\"exitCode\":0") "},{\"name\":\"s\"," RUNNING ",\"started\":true}")),
		  "\"Running\"" },
		{ SPEC_STATUS(SIDECAR,
			      "\"phase\":\"Running\"," INIT_STATUSES("{\"name\":\"a\"," TERMINATED(
				      "\"exitCode\":0") "},{\"name\":\"s\"," RUNNING ",\"started\":false}")),
		  "\"Init:1/2\"" },
		{ SPEC_STATUS(SIDECAR, "\"phase\":\"Running\"," INIT_STATUSES("{\"name\":\"a\"," RUNNING
									      ",\"started\":true}")),
		  "\"Init:0/2\"" },
		{ SPEC_STATUS(SIDECAR, "\"phase\":\"Running\"," INIT_STATUSES("{\"name\":\"other\"," RUNNING
									      ",\"started\":true}")),
		  "\"Init:0/2\"" },
	};

	CHECK(VDI_CELL_POD_STATUS, "", rows);
}

static void pods_count_their_containers(void **state)
{
	static const struct cell_row rows[] = {
		{ "{}", "\"0/0\"" },
		{ SPEC_STATUS("\"containers\":[{},{}]",
			      STATUSES("{" RUNNING ",\"ready\":true},{" RUNNING ",\"ready\":true}")),
		  "\"2/2\"" },
		{ SPEC_STATUS("\"containers\":[{},{}]",
			      STATUSES("{" RUNNING ",\"ready\":false},{\"ready\":true}")),
		  "\"0/2\"" },
		{ SPEC_STATUS("\"containers\":[{}]", STATUSES("{" WAITING("A") ",\"ready\":true}")),
		  "\"0/1\"" },
		/* Those that run beside the others count, other init containers do not. */
		{ SPEC_STATUS("\"containers\":[{}]," SIDECAR, ""), "\"0/2\"" },
		{ SPEC_STATUS("\"containers\":[{}]," SIDECAR,
			      INIT_STATUSES(
				      "{\"name\":\"s\"," RUNNING
				      ",\"started\":true,\"ready\":true}") "," STATUSES("{" RUNNING
											",\"ready\":true}")),
		  "\"2/2\"" },
		{ SPEC_STATUS("\"containers\":[{}]," SIDECAR,
			      INIT_STATUSES(
				      "{\"name\":\"s\"," RUNNING
				      ",\"started\":true,\"ready\":false}") "," STATUSES("{" RUNNING
											 ",\"ready\":true}")),
		  "\"1/2\"" },
		{ SPEC_STATUS("\"containers\":[{}],\"initContainers\":[{\"restartPolicy\":\"Never\"}]", ""),
		  "\"0/1\"" },
	};

	CHECK(VDI_CELL_POD_READY, "", rows);
}

#define RESTARTS(count) "\"restartCount\":" count
#define RESTARTED(count, finished)                                                                           \
	RESTARTS(count) ",\"lastState\":{\"terminated\":{\"finishedAt\":\"2026-05-28T20:" finished "Z\"}}"

static void pods_count_their_restarts(void **state)
{
	static const struct cell_row rows[] = {
		{ "{}", "\"0\"" },
		{ STATUS(STATUSES("{" RESTARTS("2") "},{" RESTARTS("3") "}")), "\"5\"" },
		/* The last of them. */
		{ STATUS(STATUSES("{" RESTARTED("1", "25:40") "},{" RESTARTED("1", "26:10") "},{" RESTARTED(
			  "1", "20:00") "}")),
		  "\"3 (30s ago)\"" },
		{ STATUS(STATUSES("{" RESTARTED("0", "25:40") "}")), "\"0\"" },
		/* While init containers run, theirs are counted, after that only those of the ones that go
		 * on. */
		{ SPEC_STATUS(SIDECAR,
			      INIT_STATUSES("{\"name\":\"a\"," WAITING("I") "," RESTARTED("4", "26:30") "}")),
		  "\"4 (10s ago)\"" },
		{ SPEC_STATUS(
			  SIDECAR,
			  INIT_STATUSES("{\"name\":\"a\"," RESTARTS("4") "," TERMINATED(
				  "\"exitCode\":0") "},"
						    "{\"name\":\"s\"," RESTARTS(
							    "7") ",\"started\":true," RUNNING
								 "}") "," STATUSES("{" RESTARTS("10") "}")),
		  "\"17\"" },
		{ SPEC_STATUS(SIDECAR, INIT_STATUSES("{\"name\":\"s\"," RESTARTS(
					       "7") "},{\"name\":\"a\"," RESTARTS("1") "}")),
		  "\"7\"" },
		{ SPEC_STATUS(SIDECAR, INIT_STATUSES("{\"name\":\"s\"," RESTARTS("2") "," TERMINATED(
					       "\"exitCode\":0") "},{\"name\":\"a\"," RESTARTS("1") "}")),
		  "\"3\"" },
	};

	CHECK(VDI_CELL_POD_RESTARTS, "", rows);
}

static void pods_have_an_address_and_gates(void **state)
{
	static const struct cell_row ips[] = { { "{}", NONE },
					       { STATUS("\"podIP\":\"10.0.0.1\""), "\"10.0.0.1\"" } };
	static const struct cell_row gates[] = {
		{ "{}", NONE },
		{ SPEC_STATUS("\"readinessGates\":[]", ""), NONE },
		{ SPEC_STATUS("\"readinessGates\":[{\"conditionType\":\"a\"},{\"conditionType\":\"b\"},{"
			      "\"conditionType\":\"c\"}]",
			      "\"conditions\":[{\"type\":\"a\",\"status\":\"True\"},{\"type\":\"b\","
			      "\"status\":\"False\"},{\"type\":\"d\",\"status\":\"True\"}]"),
		  "\"1/3\"" },
	};

	CHECK(VDI_CELL_POD_IP, "", ips);
	CHECK(VDI_CELL_POD_READINESS_GATES, "", gates);
}

/* ---- Nodes, services and endpoints ---- */

#define LABELS(labels) "{\"metadata\":{\"labels\":{" labels "}}}"

static void nodes_have_a_status_roles_and_addresses(void **state)
{
	static const struct cell_row statuses[] = {
		{ "{}", "\"Unknown\"" },
		{ SPEC_STATUS("\"unschedulable\":true", ""), "\"Unknown,SchedulingDisabled\"" },
		{ SPEC_STATUS("\"unschedulable\":false",
			      "\"conditions\":[{\"type\":\"Other\",\"status\":\"True\"},{\"type\":\"Ready\","
			      "\"status\":\"False\"}]"),
		  "\"NotReady\"" },
		{ STATUS("\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"},{\"type\":\"Ready\","
			 "\"status\":\"Unknown\"}]"),
		  "\"Ready,NotReady\"" },
	};
	static const struct cell_row roles[] = {
		{ "{}", NONE },
		{ LABELS("\"node-role.kubernetes.io/\":\"\""), NONE },
		{ LABELS("\"example.com/"
			 "a-label-that-is-longer-than-the-prefix\":\"\",\"node-role.kubernetes\":\"\""),
		  NONE },
		{ LABELS("\"node-role.kubernetes.io/\":\"\",\"node-role.kubernetes.io/"
			 "a\":\"\",\"node-role.kubernetes.io/b\":\"\""),
		  "\"a,b\"" },
		{ LABELS("\"node-role.kubernetes.io/a\":\"\""), "\"a\"" },
		{ LABELS("\"node-role.kubernetes.io/a\":\"\",\"node-role.kubernetes.io/\":\"\""), "\"a\"" },
		{ LABELS("\"node-role.kubernetes.io/a\":\"\",\"x\":\"y\",\"kubernetes.io/role\":\"b\""),
		  "\"a,b\"" },
		{ LABELS("\"kubernetes.io/role\":\"\""), NONE },
	};
	static const struct cell_row addresses[] = {
		{ "{}", NONE },
		{ STATUS("\"addresses\":[{\"type\":\"Hostname\",\"address\":\"h\"}]"), NONE },
		{ STATUS("\"addresses\":[{\"type\":\"Hostname\",\"address\":\"h\"},{\"type\":\"InternalIP\","
			 "\"address\":\"1\"},{\"type\":\"InternalIP\",\"address\":\"2\"}]"),
		  "\"1\"" },
	};

	CHECK(VDI_CELL_NODE_STATUS, "", statuses);
	CHECK(VDI_CELL_NODE_ROLES, "", roles);
	CHECK(VDI_CELL_NODE_ADDRESS, "InternalIP", addresses);
}

#define INGRESS(list) "\"loadBalancer\":{\"ingress\":[" list "]}"

static void services_have_addresses_and_ports(void **state)
{
	static const struct cell_row addresses[] = {
		{ "{}", NONE },
		{ SPEC_STATUS("\"type\":\"ExternalName\",\"externalName\":\"e.com\",\"externalIPs\":[\"1.1.1."
			      "1\"]",
			      ""),
		  "\"e.com\"" },
		{ SPEC_STATUS("\"type\":\"ExternalName\"", ""), NONE },
		{ SPEC_STATUS("\"type\":\"ClusterIP\",\"externalName\":\"e.com\",\"externalIPs\":[\"1.1.1."
			      "1\",\"2.2.2.2\"]",
			      INGRESS("{\"ip\":\"9\"}")),
		  "\"1.1.1.1,2.2.2.2\"" },
		{ SPEC_STATUS("\"type\":\"LoadBalancer\"", ""), "\"\\u003cpending\\u003e\"" },
		{ SPEC_STATUS("\"type\":\"LoadBalancer\",\"externalIPs\":[\"3\"]",
			      INGRESS("{\"ip\":\"1\",\"hostname\":\"x\"},{\"hostname\":\"h\"}")),
		  "\"1,h,3\"" },
	};
	static const struct cell_row ports[] = {
		{ "{}", NONE },
		{ SPEC_STATUS("\"ports\":[{\"port\":80}]", ""), "\"80/TCP\"" },
		{ SPEC_STATUS("\"ports\":[{\"port\":80,\"nodePort\":0},{\"port\":81,\"nodePort\":3,"
			      "\"protocol\":\"SCTP\"},{}]",
			      ""),
		  "\"80/TCP,81:3/SCTP,0/TCP\"" },
	};

	CHECK(VDI_CELL_SERVICE_EXTERNAL_IP, "", addresses);
	CHECK(VDI_CELL_SERVICE_PORTS, "", ports);
}

static void selectors_are_maps_or_requirements(void **state)
{
	static const struct cell_row rows[] = {
		{ "{}", NONE },
		{ "{\"s\":{\"a\":\"b\",\"c\":\"d\",\"e\":5}}", "\"a=b,c=d\"" },
		{ "{\"s\":{\"matchLabels\":{\"a\":\"b\"}}}", "\"a=b\"" },
		{ "{\"s\":{\"x\":\"y\",\"matchExpressions\":[{\"key\":\"k\",\"operator\":\"Exists\"},{"
		  "\"key\":\"l\",\"operator\":\"In\"}]}}",
		  "\"k Exists,l In\"" },
		{ "{\"s\":{\"x\":\"y\",\"matchLabels\":{\"a\":\"b\"},\"matchExpressions\":[{\"key\":\"k\","
		  "\"operator\":\"Exists\"}]}}",
		  "\"a=b,k Exists\"" },
		{ "{\"s\":{\"matchLabels\":\"v\"}}", "\"matchLabels=v\"" },
	};

	CHECK(VDI_CELL_SELECTOR, ".s", rows);
}

#define SUBSETS(list) "{\"subsets\":[" list "]}"

static void endpoints_show_three_and_count_the_rest(void **state)
{
	static const struct cell_row rows[] = {
		{ "{}", NONE },
		{ SUBSETS("{\"addresses\":[{\"ip\":\"1\"},{\"ip\":\"2\"}]}"), "\"1,2\"" },
		{ SUBSETS("{\"addresses\":[{\"ip\":\"1\"}],\"ports\":[]}"), "\"1\"" },
		{ SUBSETS("{\"addresses\":[{\"ip\":\"1\"},{\"ip\":\"2\"},{\"ip\":\"3\"},{\"ip\":\"4\"},{"
			  "\"ip\":\"5\"}]}"),
		  "\"1,2,3 + 2 more...\"" },
		{ SUBSETS("{\"addresses\":[{\"ip\":\"1\"},{\"ip\":\"2\"}],\"ports\":[{\"port\":7},{\"port\":"
			  "8}]}"),
		  "\"1:7,1:8,2:7 + 1 more...\"" },
		{ SUBSETS("{\"addresses\":[{\"ip\":\"1\"}],\"ports\":[{\"port\":7},{\"port\":8}]},{"
			  "\"addresses\":[{\"ip\":\"9\"}]}"),
		  "\"1:7,1:8,9\"" },
	};
	static const struct cell_row ports[] = {
		{ "{}", UNSET },
		{ "{\"ports\":[]}", UNSET },
		{ "{\"ports\":[{\"port\":80},{\"port\":0},{},{\"port\":81}]}", "\"80,*,*,81\"" }
	};
	static const struct cell_row slices[] = {
		{ "{}", UNSET },
		{ "{\"endpoints\":[{\"addresses\":[\"1\",\"2\"]},{\"addresses\":[\"3\"]}]}", "\"1,2,3\"" },
		{ "{\"endpoints\":[{\"addresses\":[\"1\",\"2\"]},{},{\"addresses\":[\"3\",\"4\",\"5\"]}]}",
		  "\"1,2,3 + 2 more...\"" },
	};

	CHECK(VDI_CELL_ENDPOINTS, "", rows);
	CHECK(VDI_CELL_ENDPOINT_SLICE_PORTS, "", ports);
	CHECK(VDI_CELL_ENDPOINT_SLICE_ADDRESSES, "", slices);
}

/* ---- Workloads ---- */

static void workloads_are_counted(void **state)
{
	static const struct cell_row ready[] = {
		{ "{}", "\"0/1\"" },
		{ SPEC_STATUS("\"replicas\":3", ""), "\"0/3\"" },
		{ STATUS("\"ready\":2"), "\"2/1\"" },
		{ SPEC_STATUS("\"replicas\":0", "\"ready\":1"), "\"1/0\"" },
	};
	static const struct cell_row names[] = {
		{ "{}", "\"\"" },
		{ "{\"t\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\"},{\"name\":\"b\",\"image\":\"j\"}]"
		  "}}",
		  "\"a,b\"" },
	};
	static const struct cell_row images[] = { { "{\"t\":{\"containers\":[{\"name\":\"a\",\"image\":\"i\"}"
						    ",{\"name\":\"b\",\"image\":\"j\"}]}}",
						    "\"i,j\"" } };
	static const struct cell_row sums[] = {
		{ "{}", "\"0\"" },
		{ "{\"a\":[1,2]}", "\"2\"" },
		{ "{\"b\":{\"x\":1}}", "\"1\"" },
		{ "{\"a\":[1,2],\"b\":{\"x\":1}}", "\"3\"" },
	};
	static const struct cell_row numbers[] = { { "{}", "0" }, { "{\"a\":[1,2]}", "2" } };

	CHECK(VDI_CELL_READY_OF, ".status.ready/.spec.replicas", ready);
	CHECK(VDI_CELL_CONTAINERS, ".t", names);
	CHECK(VDI_CELL_IMAGES, ".t", images);
	CHECK(VDI_CELL_COUNT, ".a+.b", sums);
	CHECK_AS(VDI_CELL_COUNT, ".a", "integer", "", numbers);
}

#define CONDITION(type, status) "{\"type\":\"" type "\",\"status\":\"" status "\"}"

static void jobs_have_a_status_completions_and_a_duration(void **state)
{
	static const struct cell_row statuses[] = {
		{ "{}", "\"Running\"" },
		{ DELETED(""), "\"Terminating\"" },
		{ DELETED("\"conditions\":[" CONDITION("Complete", "True") "]"), "\"Complete\"" },
		{ STATUS("\"conditions\":[" CONDITION("Complete", "False") "]"), "\"Running\"" },
		{ STATUS("\"conditions\":[" CONDITION("FailureTarget", "True") "," CONDITION("Failed",
											     "True") "]"),
		  "\"Failed\"" },
		{ STATUS("\"conditions\":[" CONDITION("Suspended", "True") "]"), "\"Suspended\"" },
		{ STATUS("\"conditions\":[" CONDITION("FailureTarget", "True") "]"), "\"FailureTarget\"" },
		{ STATUS("\"conditions\":[" CONDITION("SuccessCriteriaMet", "True") "]"),
		  "\"SuccessCriteriaMet\"" },
	};
	static const struct cell_row completions[] = {
		{ "{}", "\"0/1\"" },
		{ SPEC_STATUS("\"completions\":4,\"parallelism\":3", "\"succeeded\":2"), "\"2/4\"" },
		{ SPEC_STATUS("\"parallelism\":3", "\"succeeded\":2"), "\"2/1 of 3\"" },
		{ SPEC_STATUS("\"parallelism\":1", "\"succeeded\":1"), "\"1/1\"" },
		{ SPEC_STATUS("\"parallelism\":2", ""), "\"0/1 of 2\"" },
	};
	static const struct cell_row durations[] = {
		{ "{}", "\"\"" },
		{ STATUS("\"startTime\":\"2026-05-28T20:26:00Z\""), "\"40s\"" },
		{ STATUS("\"startTime\":\"2026-05-28T20:20:00Z\",\"completionTime\":\"2026-05-28T20:21:"
			 "05Z\""),
		  "\"65s\"" },
		{ STATUS("\"completionTime\":\"2026-05-28T20:21:05Z\""), "\"\"" },
	};

	CHECK(VDI_CELL_JOB_STATUS, "", statuses);
	CHECK(VDI_CELL_JOB_COMPLETIONS, "", completions);
	CHECK(VDI_CELL_JOB_DURATION, "", durations);
}

static void volumes_have_modes_and_claims(void **state)
{
	static const struct cell_row modes[] = {
		{ "{}", "\"\"" },
		{ "{\"m\":[\"ReadWriteOncePod\",\"ReadWriteMany\",\"Other\",\"ReadOnlyMany\","
		  "\"ReadWriteOnce\",\"ReadWriteOnce\"]}",
		  "\"RWO,ROX,RWX,RWOP\"" },
	};
	static const struct cell_row claims[] = {
		{ "{}", "\"\"" },
		{ "{\"spec\":{\"claimRef\":{\"namespace\":\"n\",\"name\":\"c\"}}}", "\"n/c\"" },
		{ "{\"spec\":{\"claimRef\":{\"name\":\"c\"}}}", "\"\"" },
	};

	CHECK(VDI_CELL_ACCESS_MODES, ".m", modes);
	CHECK(VDI_CELL_CLAIM, "", claims);
}

/* ---- Events ---- */

#define AT(second) "\"2026-05-28T20:26:" second "Z\""

static void events_have_a_time_an_object_and_a_source(void **state)
{
	static const struct cell_row seen[] = {
		{ "{}", UNKNOWN },
		{ "{\"eventTime\":" AT("01") "}", "\"39s\"" },
		{ "{\"firstTimestamp\":" AT("02") ",\"eventTime\":" AT("01") "}", "\"38s\"" },
		{ "{\"firstTimestamp\":" AT("02") ",\"lastTimestamp\":" AT("03") ",\"eventTime\":" AT(
			  "01") "}",
		  "\"37s\"" },
		{ "{\"series\":{\"lastObservedTime\":" AT("04") "},\"lastTimestamp\":" AT("03") "}",
		  "\"36s\"" },
	};
	static const struct cell_row objects[] = {
		{ "{}", "\"/\"" },
		{ "{\"involvedObject\":{\"kind\":\"AZaz@[09\",\"name\":\"Pa\"}}", "\"azaz@[09/Pa\"" },
	};
	static const struct cell_row sources[] = {
		{ "{}", "\"\"" },
		{ "{\"source\":{\"component\":\"c\"},\"reportingComponent\":\"r\"}", "\"c\"" },
		{ "{\"reportingComponent\":\"r\"}", "\"r\"" },
		{ "{\"source\":{\"component\":\"c\",\"host\":\"h\"}}", "\"c, h\"" },
		{ "{\"source\":{\"host\":\"h\"}}", "\"h\"" },
	};

	CHECK(VDI_CELL_EVENT_LAST_SEEN, "", seen);
	CHECK(VDI_CELL_EVENT_OBJECT, "", objects);
	CHECK(VDI_CELL_EVENT_SOURCE, "", sources);
}

/* ---- Everything else ---- */

static void plain_values_by_the_type_of_the_column(void **state)
{
	static const struct cell_row strings[] = {
		{ "{}", "\"\"" },
		{ "{\"v\":null}", "\"\"" },
		{ "{\"v\":\"\"}", "\"\"" },
		{ "{\"v\":\"x\"}", "\"x\"" },
		{ "{\"v\":5}", "\"5\"" },
		{ "{\"v\":true}", "\"true\"" },
		{ "{\"v\":false}", "\"false\"" },
		{ "{\"v\":[\"a\"]}", "\"[\\\"a\\\"]\"" },
	};
	static const struct cell_row unformatted[] = { { "{}", "null" }, { "{\"v\":1}", "\"1\"" } };
	static const struct cell_row numbers[] = { { "{}", "null" },
						   { "{\"v\":5}", "5" },
						   { "{\"v\":\"x\"}", "\"x\"" },
						   { "{\"v\":null}", "null" } };
	static const struct cell_row dates[] = { { "{}", "\"\"" },
						 { "{\"v\":\"d\"}", "\"d\"" },
						 { "{\"v\":5}", "\"5\"" } };
	static const struct cell_row defaults[] = {
		{ "{}", NONE },
		{ "{\"v\":null}", NONE },
		{ "{\"v\":\"\"}", NONE },
		{ "{\"v\":\"x\"}", "\"x\"" },
		{ "{\"v\":5}", "\"5\"" },
		{ "{\"v\":true}", "\"True\"" },
		{ "{\"v\":false}", "\"False\"" },
	};
	static const struct cell_row number_defaults[] = { { "{}", "0" },
							   { "{\"v\":5}", "5" },
							   { "{\"v\":\"\"}", "0" } };
	static const struct cell_row ages[] = { { "{}", UNKNOWN },
						{ "{\"v\":" AT("10") "}", "\"30s\"" },
						{ "{\"v\":\"x\"}", UNKNOWN } };
	static const struct cell_row typed[] = { { "{}", "null" },
						 { "{\"v\":5}", "5" },
						 { "{\"v\":\"x\"}", "null" } };

	CHECK(VDI_CELL_PATH, ".v", strings);
	CHECK_AS(VDI_CELL_PATH, ".v", "string", NULL, unformatted);
	CHECK_AS(VDI_CELL_PATH, ".v", "integer", "", numbers);
	CHECK_AS(VDI_CELL_PATH, ".v", "date", "", dates);
	CHECK(VDI_CELL_DEFAULT, ".v|<none>", defaults);
	CHECK_AS(VDI_CELL_DEFAULT, ".v|0", "integer", "", number_defaults);
	CHECK(VDI_CELL_AGE, ".v", ages);
	CHECK_AS(VDI_CELL_TYPED, ".v", "integer", "", typed);
}

/* ---- Paths ---- */

static void paths_of_columns(void **state)
{
	static const char object[] = "{\"a\":{\"b.c\":{\"d\":\"1\"},\"b\":\"2\"},\"l\":[{\"t\":\"x\",\"v\":"
				     "\"3\"},{\"t\":\"y\",\"v\":\"4\"},\"5\"],\"\":{\"z\":\"6\"}}";
	static const struct {
		const char *path, *text; /* NULL: there is none */
	} rows[] = {
		{ ".a.b", "2" },
		{ "a.b", "2" },
		{ ".a.b\\.c.d", "1" },
		{ ".a['b.c'].d", "1" },
		{ ".a[\"b.c\"].d", "1" },
		{ ".a['b']", "2" },
		{ ".a['b'", NULL },
		{ ".a['b'x]", NULL },
		{ ".a['b]", NULL },
		{ ".a.b.c", NULL },
		{ ".none", NULL },
		{ ".l[0].v", "3" },
		{ ".l[1].v", "4" },
		{ ".l[2]", "5" },
		{ ".l[3]", NULL },
		{ ".l[*].v", "3" },
		{ ".l[", NULL },
		{ ".a[0]", NULL },
		{ ".l[?(@.t==\"y\")].v", "4" },
		{ ".l[?(@.t == 'x' )].v", "3" },
		{ ".l[?(@.t==y)].v", "4" },
		{ ".l[?(@.t==\"z\")].v", NULL },
		{ ".l[?(@.u==\"y\")].v", NULL },
		{ ".a[?(@.t==\"y\")].v", NULL },
		{ ".l[?(@.t)].v", NULL },
		{ ".l[?(@.t)].v==\"y\")]", NULL },
		{ ".l[?(@.t==\"y\"]", NULL },
	};
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	char		 key[300], path[400], text[700];

	assert_status(vdi_tree_parse(&tree, vd_bytes_of(object), &root, NULL), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const struct vdi_node *node = vdi_tree_path(&tree, root, rows[i].path);

		if (rows[i].text == NULL ? node != NULL :
					   !node || !vd_bytes_equal(node->text, vd_bytes_of(rows[i].text)))
			fail_msg("%s", rows[i].path);
	}
	assert_ptr_equal(vdi_tree_path(&tree, root, ""), root);
	assert_ptr_equal(vdi_tree_path(&tree, root, "."), root);
	vdi_tree_fini(&tree);
	/* A name may have 256 bytes. */
	for (size_t size = 255; size <= 257; size++) {
		memset(key, 'k', size);
		key[size] = 0;
		snprintf(path, sizeof path, ".%s", key);
		snprintf(text, sizeof text, "{\"%s\":1}", key);
		assert_status(vdi_tree_parse(&tree, vd_bytes_of(text), &root, NULL), VD_OK);
		assert_int_equal(vdi_tree_path(&tree, root, path) != NULL, size <= 256);
		vdi_tree_fini(&tree);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pods_say_in_one_word_how_they_are),
		cmocka_unit_test(pods_count_their_containers),
		cmocka_unit_test(pods_count_their_restarts),
		cmocka_unit_test(pods_have_an_address_and_gates),
		cmocka_unit_test(nodes_have_a_status_roles_and_addresses),
		cmocka_unit_test(services_have_addresses_and_ports),
		cmocka_unit_test(selectors_are_maps_or_requirements),
		cmocka_unit_test(endpoints_show_three_and_count_the_rest),
		cmocka_unit_test(workloads_are_counted),
		cmocka_unit_test(jobs_have_a_status_completions_and_a_duration),
		cmocka_unit_test(volumes_have_modes_and_claims),
		cmocka_unit_test(events_have_a_time_an_object_and_a_source),
		cmocka_unit_test(plain_values_by_the_type_of_the_column),
		cmocka_unit_test(paths_of_columns),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
