/* Cells of kinds with special rules. Mirrors kubernetes pkg/printers/internalversion/printers.go, function by
 * function. */
#include <stdio.h>

#include "k8s_time.h"
#include "table.h"

static const struct vdi_node *first_of(const struct vdi_node *list)
{
	return list ? list->first : NULL;
}

#define FOR_EACH(child, list) for (const struct vdi_node *child = first_of(list); child; child = child->next)

static const struct vdi_node *find(const struct vdi_cell_context *context, const char *path)
{
	return vdi_tree_find(context->tree, context->root, path);
}

static const struct vdi_node *member(const struct vdi_cell_context *context, const struct vdi_node *object,
				     const char *path)
{
	return vdi_tree_find(context->tree, object, path);
}

static struct vd_bytes text_of(const struct vdi_cell_context *context, const struct vdi_node *object,
			       const char *path)
{
	return vdi_tree_string_of(vdi_tree_find(context->tree, object, path));
}

static bool is(struct vd_bytes text, const char *word)
{
	return vd_bytes_equal(text, vd_bytes_of(word));
}

/* Writes a cell that was composed of several parts as one string. */
static void finish(struct vdi_out *out, struct vdi_out *cell, const char *when_empty)
{
	out->failed |= cell->failed;
	if (cell->size)
		vdi_out_string(out, vdi_out_slice(cell));
	else
		vdi_out_text(out, when_empty);
	vdi_out_fini(cell);
}

static void add(struct vdi_out *cell, struct vd_bytes text, const char *separator)
{
	if (cell->size)
		vdi_out_raw(cell, separator);
	vdi_out_bytes(cell, text);
}

/* ---- Pods ---- */

struct pod_summary {
	char	status[128];
	int64_t ready, total, restarts;
	int64_t last_restart; /* seconds since 1970; 0: none */
};

static void set_status(struct pod_summary *summary, const char *prefix, struct vd_bytes reason)
{
	(void) snprintf(summary->status, sizeof summary->status, "%s%.*s", prefix,
			(int) VDI_MIN(reason.size, (size_t) 100),
			reason.size ? (const char *) reason.data : "");
}

static void note_restart(const struct vdi_cell_context *context, const struct vdi_node *container,
			 struct pod_summary *summary)
{
	int64_t finished;

	if (vdi_k8s_time_seconds(text_of(context, container, "lastState.terminated.finishedAt"), &finished) &&
	    finished > summary->last_restart)
		summary->last_restart = finished;
}

static void set_exit(const struct vdi_cell_context *context, const struct vdi_node *terminated,
		     const char *prefix, struct pod_summary *summary)
{
	int64_t signal = vdi_tree_int_of(member(context, terminated, "signal"), 0);
	int64_t code = vdi_tree_int_of(member(context, terminated, "exitCode"), 0);

	(void) snprintf(summary->status, sizeof summary->status, "%s%s:%lld", prefix,
			signal ? "Signal" : "ExitCode", (long long) (signal ? signal : code));
}

static bool is_sidecar(const struct vdi_cell_context *context, struct vd_bytes name)
{
	FOR_EACH(container, find(context, "spec.initContainers"))
	if (vd_bytes_equal(text_of(context, container, "name"), name))
		return is(text_of(context, container, "restartPolicy"), "Always");
	return false;
}

static bool has_condition(const struct vdi_cell_context *context, const char *type)
{
	FOR_EACH(condition, find(context, "status.conditions"))
	if (is(text_of(context, condition, "type"), type))
		return is(text_of(context, condition, "status"), "True");
	return false;
}

/* Returns true if an init container has not finished; the pod's status then shows it. */
static bool summarize_init(const struct vdi_cell_context *context, struct pod_summary *summary,
			   int64_t *sidecar_restarts)
{
	const struct vdi_node *declared = find(context, "spec.initContainers");
	long long	       index = -1;

	FOR_EACH(container, find(context, "status.initContainerStatuses"))
	{
		const struct vdi_node *terminated = member(context, container, "state.terminated");
		struct vd_bytes	       waiting = text_of(context, container, "state.waiting.reason");
		struct vd_bytes	       reason = text_of(context, terminated, "reason");
		bool		       sidecar = is_sidecar(context, text_of(context, container, "name"));
		int64_t restarts = vdi_tree_int_of(member(context, container, "restartCount"), 0);

		index++;
		summary->restarts += restarts;
		note_restart(context, container, summary);
		if (sidecar)
			*sidecar_restarts += restarts;
		if (terminated && vdi_tree_int_of(member(context, terminated, "exitCode"), 0) == 0)
			continue;
		if (sidecar && vdi_tree_is(member(context, container, "started"), VDI_NODE_TRUE)) {
			summary->ready += vdi_tree_is(member(context, container, "ready"), VDI_NODE_TRUE);
			continue;
		}
		if (terminated && reason.size == 0)
			set_exit(context, terminated, "Init:", summary);
		else if (terminated)
			set_status(summary, "Init:", reason);
		else if (waiting.size && !is(waiting, "PodInitializing"))
			set_status(summary, "Init:", waiting);
		else
			(void) snprintf(summary->status, sizeof summary->status, "Init:%lld/%u", index,
					declared ? declared->count : 0);
		return true;
	}
	return false;
}

/* Upstream iterates from the last container to the first and lets each overwrite the reason; the same result:
 * iterate forward and keep the first reason. */
static bool summarize_containers(const struct vdi_cell_context *context, struct pod_summary *summary)
{
	bool running = false, decided = false;

	FOR_EACH(container, find(context, "status.containerStatuses"))
	{
		const struct vdi_node *terminated = member(context, container, "state.terminated");
		struct vd_bytes	       waiting = text_of(context, container, "state.waiting.reason");
		struct vd_bytes	       reason = text_of(context, terminated, "reason");

		summary->restarts += vdi_tree_int_of(member(context, container, "restartCount"), 0);
		note_restart(context, container, summary);
		if (waiting.size || terminated) {
			if (!decided && waiting.size)
				set_status(summary, "", waiting);
			else if (!decided && reason.size)
				set_status(summary, "", reason);
			else if (!decided)
				set_exit(context, terminated, "", summary);
			decided = true;
		} else if (vdi_tree_is(member(context, container, "ready"), VDI_NODE_TRUE) &&
			   member(context, container, "state.running")) {
			running = true;
			summary->ready++;
		}
	}
	return running;
}

static void summarize_pod(const struct vdi_cell_context *context, struct pod_summary *summary)
{
	const struct vdi_node *containers = find(context, "spec.containers");
	struct vd_bytes	       phase = vdi_tree_string_of(find(context, "status.phase"));
	struct vd_bytes	       reason = vdi_tree_string_of(find(context, "status.reason"));
	int64_t		       sidecar_restarts = 0;
	bool		       initializing;

	memset(summary, 0, sizeof *summary);
	summary->total = containers ? containers->count : 0;
	FOR_EACH(container, find(context, "spec.initContainers"))
	summary->total += is(text_of(context, container, "restartPolicy"), "Always");
	set_status(summary, "", reason.size ? reason : phase);
	FOR_EACH(condition, find(context, "status.conditions"))
	if (is(text_of(context, condition, "type"), "PodScheduled") &&
	    is(text_of(context, condition, "reason"), "SchedulingGated"))
		set_status(summary, "", vd_bytes_of("SchedulingGated"));
	initializing = summarize_init(context, summary, &sidecar_restarts);
	if (!initializing || has_condition(context, "Initialized")) {
		bool running;

		summary->restarts = sidecar_restarts;
		running = summarize_containers(context, summary);
		if (strcmp(summary->status, "Completed") == 0 && running)
			set_status(summary, "",
				   vd_bytes_of(has_condition(context, "Ready") ? "Running" : "NotReady"));
	}
	if (!find(context, "metadata.deletionTimestamp"))
		return;
	if (is(reason, "NodeLost"))
		set_status(summary, "", vd_bytes_of("Unknown"));
	else if (!is(phase, "Succeeded") && !is(phase, "Failed"))
		set_status(summary, "", vd_bytes_of("Terminating"));
}

static void pod_restarts(struct vdi_out *out, const struct vdi_cell_context *context,
			 const struct pod_summary *summary)
{
	vdi_out_printf(out, "\"%lld", (long long) summary->restarts);
	if (summary->restarts && summary->last_restart) {
		vdi_out_raw(out, " (");
		vdi_human_duration(out, context->now.ns / 1000000000 - summary->last_restart);
		vdi_out_raw(out, " ago)");
	}
	vdi_out_raw(out, "\"");
}

static void readiness_gates(struct vdi_out *out, const struct vdi_cell_context *context)
{
	const struct vdi_node *gates = find(context, "spec.readinessGates");
	unsigned	       true_count = 0;

	if (gates == NULL || gates->count == 0) {
		vdi_out_text(out, "<none>");
		return;
	}
	FOR_EACH(gate, gates)
	{
		struct vd_bytes type = text_of(context, gate, "conditionType");

		FOR_EACH(condition, find(context, "status.conditions"))
		if (vd_bytes_equal(text_of(context, condition, "type"), type))
			true_count += is(text_of(context, condition, "status"), "True");
	}
	vdi_out_printf(out, "\"%u/%u\"", true_count, gates->count);
}

/* ---- Nodes ---- */

static void node_status(struct vdi_out *out, const struct vdi_cell_context *context)
{
	struct vdi_out cell = VDI_OUT_INIT;

	FOR_EACH(condition, find(context, "status.conditions"))
	if (is(text_of(context, condition, "type"), "Ready"))
		add(&cell,
		    vd_bytes_of(is(text_of(context, condition, "status"), "True") ? "Ready" : "NotReady"),
		    ",");
	if (cell.size == 0)
		vdi_out_raw(&cell, "Unknown");
	if (vdi_tree_is(find(context, "spec.unschedulable"), VDI_NODE_TRUE))
		vdi_out_raw(&cell, ",SchedulingDisabled");
	finish(out, &cell, "");
}

static void node_roles(struct vdi_out *out, const struct vdi_cell_context *context)
{
	static const char prefix[] = "node-role.kubernetes.io/";
	struct vdi_out	  cell = VDI_OUT_INIT;

	FOR_EACH(label, find(context, "metadata.labels"))
	{
		if (vd_bytes_has_prefix(label->key, vd_bytes_of(prefix)) &&
		    label->key.size > sizeof prefix - 1)
			add(&cell,
			    (struct vd_bytes) { (const char *) label->key.data + sizeof prefix - 1,
						label->key.size - (sizeof prefix - 1) },
			    ",");
		else if (is(label->key, "kubernetes.io/role") && label->text.size)
			add(&cell, label->text, ",");
	}
	finish(out, &cell, "<none>");
}

static void node_address(struct vdi_out *out, const struct vdi_cell_context *context, const char *type)
{
	struct vdi_out cell = VDI_OUT_INIT;

	FOR_EACH(address, find(context, "status.addresses"))
	if (cell.size == 0 && is(text_of(context, address, "type"), type))
		vdi_out_bytes(&cell, text_of(context, address, "address"));
	finish(out, &cell, "<none>");
}

/* ---- Services and endpoints ---- */

static void external_ip(struct vdi_out *out, const struct vdi_cell_context *context)
{
	struct vd_bytes type = vdi_tree_string_of(find(context, "spec.type"));
	struct vdi_out	cell = VDI_OUT_INIT;

	if (is(type, "ExternalName")) {
		vdi_out_bytes(&cell, vdi_tree_string_of(find(context, "spec.externalName")));
		finish(out, &cell, "<none>");
		return;
	}
	FOR_EACH(ingress, is(type, "LoadBalancer") ? find(context, "status.loadBalancer.ingress") : NULL)
	{
		struct vd_bytes ip = text_of(context, ingress, "ip");

		add(&cell, ip.size ? ip : text_of(context, ingress, "hostname"), ",");
	}
	FOR_EACH(address, find(context, "spec.externalIPs"))
	add(&cell, address->text, ",");
	finish(out, &cell, is(type, "LoadBalancer") ? "<pending>" : "<none>");
}

static void service_ports(struct vdi_out *out, const struct vdi_cell_context *context)
{
	struct vdi_out cell = VDI_OUT_INIT;

	FOR_EACH(port, find(context, "spec.ports"))
	{
		struct vd_bytes protocol = text_of(context, port, "protocol");
		int64_t		node_port = vdi_tree_int_of(member(context, port, "nodePort"), 0);

		vdi_out_printf(&cell, "%s%lld", cell.size ? "," : "",
			       (long long) vdi_tree_int_of(member(context, port, "port"), 0));
		if (node_port)
			vdi_out_printf(&cell, ":%lld", (long long) node_port);
		vdi_out_raw(&cell, "/");
		vdi_out_bytes(&cell, protocol.size ? protocol : vd_bytes_of("TCP"));
	}
	finish(out, &cell, "<none>");
}

static void selector(struct vdi_out *out, const struct vdi_node *labels,
		     const struct vdi_cell_context *context)
{
	const struct vdi_node *match = vdi_tree_get(context->tree, labels, vd_bytes_of("matchLabels"));
	const struct vdi_node *expressions =
		vdi_tree_get(context->tree, labels, vd_bytes_of("matchExpressions"));
	struct vdi_out cell = VDI_OUT_INIT;

	if (vdi_tree_is(match, VDI_NODE_OBJECT) || vdi_tree_is(expressions, VDI_NODE_ARRAY))
		labels = match;
	FOR_EACH(label, labels)
	{
		if (label->kind != VDI_NODE_STRING)
			continue;
		add(&cell, label->key, ",");
		vdi_out_raw(&cell, "=");
		vdi_out_bytes(&cell, label->text);
	}
	FOR_EACH(expression, expressions)
	{
		add(&cell, text_of(context, expression, "key"), ",");
		vdi_out_raw(&cell, " ");
		vdi_out_bytes(&cell, text_of(context, expression, "operator"));
	}
	finish(out, &cell, "<none>");
}

static void endpoints(struct vdi_out *out, const struct vdi_cell_context *context)
{
	struct vdi_out cell = VDI_OUT_INIT;
	unsigned       count = 0;

	FOR_EACH(subset, find(context, "subsets"))
	{
		const struct vdi_node *ports = member(context, subset, "ports");

		FOR_EACH(address, member(context, subset, "addresses"))
		{
			if (ports == NULL || ports->count == 0) {
				if (count++ < 3)
					add(&cell, text_of(context, address, "ip"), ",");
				continue;
			}
			FOR_EACH(port, ports)
			{
				if (count++ >= 3)
					continue;
				add(&cell, text_of(context, address, "ip"), ",");
				vdi_out_printf(&cell, ":%lld",
					       (long long) vdi_tree_int_of(member(context, port, "port"), 0));
			}
		}
	}
	if (count > 3)
		vdi_out_printf(&cell, " + %u more...", count - 3);
	finish(out, &cell, "<none>");
}

static void slice_ports(struct vdi_out *out, const struct vdi_cell_context *context)
{
	const struct vdi_node *ports = find(context, "ports");
	struct vdi_out	       cell = VDI_OUT_INIT;

	FOR_EACH(port, ports)
	{
		int64_t number = vdi_tree_int_of(member(context, port, "port"), 0);

		if (number)
			vdi_out_printf(&cell, "%s%lld", cell.size ? "," : "", (long long) number);
		else
			add(&cell, vd_bytes_of("*"), ",");
	}
	finish(out, &cell, "<unset>");
}

static void slice_addresses(struct vdi_out *out, const struct vdi_cell_context *context)
{
	struct vdi_out cell = VDI_OUT_INIT;
	unsigned       count = 0;

	FOR_EACH(endpoint, find(context, "endpoints"))
	FOR_EACH(address, member(context, endpoint, "addresses"))
	if (count++ < 3)
		add(&cell, address->text, ",");
	if (count > 3)
		vdi_out_printf(&cell, " + %u more...", count - 3);
	finish(out, &cell, "<unset>");
}

/* ---- Workloads ---- */

static void ready_of(struct vdi_out *out, const struct vdi_cell_context *context, const char *path)
{
	const char *slash = strchr(path, '/');
	char	    first[64];

	(void) snprintf(first, sizeof first, "%.*s", (int) (slash - path), path);
	vdi_out_printf(
		out, "\"%lld/%lld\"",
		(long long) vdi_tree_int_of(vdi_tree_path(context->tree, context->root, first), 0),
		(long long) vdi_tree_int_of(vdi_tree_path(context->tree, context->root, slash + 1), 1));
}

static void containers(struct vdi_out *out, const struct vdi_cell_context *context, const char *path,
		       const char *what)
{
	const struct vdi_node *spec = vdi_tree_path(context->tree, context->root, path);
	struct vdi_out	       cell = VDI_OUT_INIT;

	FOR_EACH(container, member(context, spec, "containers"))
	add(&cell, text_of(context, container, what), ",");
	finish(out, &cell, "");
}

static void job_status(struct vdi_out *out, const struct vdi_cell_context *context)
{
	static const char *const types[] = { "Complete", "Failed", "Suspended", "FailureTarget",
					     "SuccessCriteriaMet" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(types); i++)
		if (has_condition(context, types[i])) {
			vdi_out_text(out, types[i]);
			return;
		}
	vdi_out_text(out, find(context, "metadata.deletionTimestamp") ? "Terminating" : "Running");
}

static void job_completions(struct vdi_out *out, const struct vdi_cell_context *context)
{
	const struct vdi_node *wanted = find(context, "spec.completions");
	int64_t		       done = vdi_tree_int_of(find(context, "status.succeeded"), 0);
	int64_t		       parallelism = vdi_tree_int_of(find(context, "spec.parallelism"), 0);

	if (wanted)
		vdi_out_printf(out, "\"%lld/%lld\"", (long long) done,
			       (long long) vdi_tree_int_of(wanted, 0));
	else if (parallelism > 1)
		vdi_out_printf(out, "\"%lld/1 of %lld\"", (long long) done, (long long) parallelism);
	else
		vdi_out_printf(out, "\"%lld/1\"", (long long) done);
}

static void job_duration(struct vdi_out *out, const struct vdi_cell_context *context)
{
	int64_t start, end;

	if (!vdi_k8s_time_seconds(vdi_tree_string_of(find(context, "status.startTime")), &start)) {
		vdi_out_raw(out, "\"\"");
		return;
	}
	if (!vdi_k8s_time_seconds(vdi_tree_string_of(find(context, "status.completionTime")), &end))
		end = context->now.ns / 1000000000;
	vdi_out_raw(out, "\"");
	vdi_human_duration(out, end - start);
	vdi_out_raw(out, "\"");
}

static void access_modes(struct vdi_out *out, const struct vdi_node *modes)
{
	static const char *const names[][2] = { { "ReadWriteOnce", "RWO" },
						{ "ReadOnlyMany", "ROX" },
						{ "ReadWriteMany", "RWX" },
						{ "ReadWriteOncePod", "RWOP" } };
	struct vdi_out		 cell = VDI_OUT_INIT;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++)
		FOR_EACH(mode, modes)
	if (is(mode->text, names[i][0])) {
		add(&cell, vd_bytes_of(names[i][1]), ",");
		break;
	}
	finish(out, &cell, "");
}

/* ---- Events ---- */

static void event_last_seen(struct vdi_out *out, const struct vdi_cell_context *context)
{
	static const char *const paths[] = { "series.lastObservedTime", "lastTimestamp", "firstTimestamp",
					     "eventTime" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(paths); i++)
		if (vdi_tree_string_of(find(context, paths[i])).size) {
			vdi_table_age(out, find(context, paths[i]), context->now);
			return;
		}
	vdi_table_age(out, NULL, context->now);
}

static void event_object(struct vdi_out *out, const struct vdi_cell_context *context)
{
	struct vd_bytes kind = vdi_tree_string_of(find(context, "involvedObject.kind"));
	struct vdi_out	cell = VDI_OUT_INIT;

	for (size_t i = 0; i < kind.size; i++) {
		char c = ((const char *) kind.data)[i];

		c = c >= 'A' && c <= 'Z' ? (char) (c + 32) : c;
		vdi_out_bytes(&cell, (struct vd_bytes) { &c, 1 });
	}
	vdi_out_raw(&cell, "/");
	vdi_out_bytes(&cell, vdi_tree_string_of(find(context, "involvedObject.name")));
	finish(out, &cell, "");
}

static void event_source(struct vdi_out *out, const struct vdi_cell_context *context)
{
	struct vd_bytes component = vdi_tree_string_of(find(context, "source.component"));
	struct vdi_out	cell = VDI_OUT_INIT;

	if (component.size == 0)
		component = vdi_tree_string_of(find(context, "reportingComponent"));
	vdi_out_bytes(&cell, component);
	if (vdi_tree_string_of(find(context, "source.host")).size)
		add(&cell, vdi_tree_string_of(find(context, "source.host")), ", ");
	finish(out, &cell, "");
}

/* ---- Everything else ---- */

/* Writes the value at a path. Strings stay strings; in a string column other values are written as text. */
static void plain(struct vdi_out *out, const struct vdi_node *value, const struct vdi_column *column,
		  const char *fallback)
{
	bool wants_text = strcmp(column->type, "string") == 0 || strcmp(column->type, "date") == 0;

	if (value == NULL || value->kind == VDI_NODE_NULL ||
	    (fallback && vdi_tree_is(value, VDI_NODE_STRING) && value->text.size == 0)) {
		if (fallback == NULL)
			vdi_out_raw(out, wants_text && column->format ? "\"\"" : "null");
		else if (wants_text)
			vdi_out_text(out, fallback);
		else
			vdi_out_raw(out, fallback);
	} else if (!wants_text || value->kind == VDI_NODE_STRING) {
		vdi_tree_write(out, value);
	} else if (value->kind == VDI_NODE_TRUE || value->kind == VDI_NODE_FALSE) {
		vdi_out_text(out, value->kind == VDI_NODE_TRUE ? (fallback ? "True" : "true") :
								 (fallback ? "False" : "false"));
	} else {
		struct vdi_out cell = VDI_OUT_INIT;

		vdi_tree_write(&cell, value);
		finish(out, &cell, "");
	}
}

static void with_default(struct vdi_out *out, const struct vdi_cell_context *context,
			 const struct vdi_column *column)
{
	const char *bar = strchr(column->path, '|');
	char	    path[128];

	(void) snprintf(path, sizeof path, "%.*s", (int) (bar - column->path), column->path);
	plain(out, vdi_tree_path(context->tree, context->root, path), column, bar + 1);
}

static void count(struct vdi_out *out, const struct vdi_cell_context *context,
		  const struct vdi_column *column)
{
	const char *path = column->path;
	char	    one[64];
	uint64_t    sum = 0;

	while (*path) {
		size_t		       size = strcspn(path, "+");
		const struct vdi_node *node;

		(void) snprintf(one, sizeof one, "%.*s", (int) size, path);
		node = vdi_tree_path(context->tree, context->root, one);
		sum += node ? node->count : 0;
		path += size + (path[size] == '+');
	}
	vdi_out_printf(out, strcmp(column->type, "string") == 0 ? "\"%llu\"" : "%llu",
		       (unsigned long long) sum);
}

static void claim(struct vdi_out *out, const struct vdi_cell_context *context)
{
	struct vdi_out cell = VDI_OUT_INIT;

	vdi_out_bytes(&cell, vdi_tree_string_of(find(context, "spec.claimRef.namespace")));
	if (cell.size)
		add(&cell, vdi_tree_string_of(find(context, "spec.claimRef.name")), "/");
	finish(out, &cell, "");
}

static void pod_cell(struct vdi_out *out, const struct vdi_cell_context *context, enum vdi_cell cell)
{
	struct pod_summary summary;

	summarize_pod(context, &summary);
	if (cell == VDI_CELL_POD_READY)
		vdi_out_printf(out, "\"%lld/%lld\"", (long long) summary.ready, (long long) summary.total);
	else if (cell == VDI_CELL_POD_STATUS)
		vdi_out_text(out, summary.status);
	else
		pod_restarts(out, context, &summary);
}

void vdi_table_cell(struct vdi_out *out, const struct vdi_cell_context *context,
		    const struct vdi_column *column)
{
	const struct vdi_node *at_path =
		column->path[0] == '.' ? vdi_tree_path(context->tree, context->root, column->path) : NULL;
	struct vd_bytes pod_ip;

	switch (column->cell) {
	case VDI_CELL_PATH: plain(out, at_path, column, NULL); break;
	case VDI_CELL_DEFAULT: with_default(out, context, column); break;
	case VDI_CELL_COUNT: count(out, context, column); break;
	case VDI_CELL_AGE: vdi_table_age(out, at_path, context->now); break;
	case VDI_CELL_TYPED: vdi_table_typed(out, at_path, column->type, context->now); break;
	case VDI_CELL_POD_READY:
	case VDI_CELL_POD_STATUS:
	case VDI_CELL_POD_RESTARTS: pod_cell(out, context, column->cell); break;
	case VDI_CELL_POD_IP:
		pod_ip = vdi_tree_string_of(find(context, "status.podIP"));
		vdi_out_string(out, pod_ip.size ? pod_ip : vd_bytes_of("<none>"));
		break;
	case VDI_CELL_POD_READINESS_GATES: readiness_gates(out, context); break;
	case VDI_CELL_NODE_STATUS: node_status(out, context); break;
	case VDI_CELL_NODE_ROLES: node_roles(out, context); break;
	case VDI_CELL_NODE_ADDRESS: node_address(out, context, column->path); break;
	case VDI_CELL_SERVICE_EXTERNAL_IP: external_ip(out, context); break;
	case VDI_CELL_SERVICE_PORTS: service_ports(out, context); break;
	case VDI_CELL_SELECTOR: selector(out, at_path, context); break;
	case VDI_CELL_ENDPOINTS: endpoints(out, context); break;
	case VDI_CELL_ENDPOINT_SLICE_PORTS: slice_ports(out, context); break;
	case VDI_CELL_ENDPOINT_SLICE_ADDRESSES: slice_addresses(out, context); break;
	case VDI_CELL_READY_OF: ready_of(out, context, column->path); break;
	case VDI_CELL_CONTAINERS: containers(out, context, column->path, "name"); break;
	case VDI_CELL_IMAGES: containers(out, context, column->path, "image"); break;
	case VDI_CELL_JOB_STATUS: job_status(out, context); break;
	case VDI_CELL_JOB_COMPLETIONS: job_completions(out, context); break;
	case VDI_CELL_JOB_DURATION: job_duration(out, context); break;
	case VDI_CELL_ACCESS_MODES: access_modes(out, at_path); break;
	case VDI_CELL_CLAIM: claim(out, context); break;
	case VDI_CELL_EVENT_LAST_SEEN: event_last_seen(out, context); break;
	case VDI_CELL_EVENT_OBJECT: event_object(out, context); break;
	case VDI_CELL_EVENT_SOURCE: event_source(out, context); break;
	}
}
