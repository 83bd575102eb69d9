/* The plan is made on a tree of the present state, which is changed in place:
 *
 *   namespace, not marked -----------------------------------------------> MARK (Terminating)
 *   namespace, marked, spec.finalizers left -----------------------------> WAIT
 *   pod, under its grace period, no shorter one requested ---------------> WAIT
 *   otherwise add or remove the garbage collector's finalizers as the options say, then:
 *     finalizers left, or a grace period that a kubelet has to watch ----> MARK
 *     otherwise ---------------------------------------------------------> REMOVE
 *
 * A pod deleted without grace is removed in one write. Upstream marks it first and then deletes it; clients
 * see one event more there.
 */
#include "deletion.h"

#include "crd.h"
#include "hash.h"

#include <stdio.h>

#include "k8s_time.h"
#include "table.h"

/* upstream's default for a pod that does not specify it */
#define POD_GRACE_S 30

struct plan {
	const struct vdi_resource	*resource;
	const struct vdi_delete_options *options;
	vd_wall				 now;
	struct vdi_tree			*tree;
	struct vdi_node			*root;
	struct vdi_node			*metadata;
	struct vdi_http_status		*status;
};

static struct vd_bytes key(const char *text)
{
	return vd_bytes_of(text);
}

static bool is_core(const struct vdi_resource *resource, const char *plural)
{
	return resource->built_in && *resource->group == 0 && strcmp(resource->plural, plural) == 0;
}

bool vdi_deletion_is_immortal(const struct vdi_resource *resource, struct vd_bytes name)
{
	static const char *const names[] = { "default", "kube-system", "kube-public" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(names) && vdi_resource_is_namespaces(resource); i++)
		if (vd_bytes_equal(name, key(names[i])))
			return true;
	return false;
}

bool vdi_deletion_returns_object(const struct vdi_resource *resource)
{
	static const char *const plurals[] = { "namespaces",	    "pods",
					       "services",	    "serviceaccounts",
					       "persistentvolumes", "persistentvolumeclaims" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(plurals); i++)
		if (is_core(resource, plurals[i]))
			return true;
	return false;
}

static vd_status no_memory(struct vdi_http_status *status)
{
	vdi_http_status_set(status, 500, "InternalError", "Internal error occurred: out of memory");
	return VD_NOMEM;
}

bool vdi_deletion_has(const struct vdi_node *list, struct vd_bytes text)
{
	for (const struct vdi_node *item = vdi_tree_is(list, VDI_NODE_ARRAY) ? list->first : NULL; item;
	     item = item->next)
		if (vd_bytes_equal(vdi_tree_string_of(item), text))
			return true;
	return false;
}

static size_t count_of(const struct vdi_node *list)
{
	return vdi_tree_is(list, VDI_NODE_ARRAY) ? list->count : 0;
}

/* ---- Final removal of a marked object ---- */

bool vdi_deletion_is_over(const struct vdi_resource *resource, struct vdi_tree *tree,
			  const struct vdi_node *root, const struct vdi_node *old_root)
{
	if (count_of(vdi_tree_find(tree, root, "metadata.finalizers")) > 0)
		return false;
	if (vdi_tree_string_of(vdi_tree_find(tree, old_root, "metadata.deletionTimestamp")).size == 0)
		return false;
	if (vdi_resource_is_namespaces(resource) &&
	    count_of(vdi_tree_find(tree, root, "spec.finalizers")) > 0)
		return false;
	return vdi_tree_int_of(vdi_tree_find(tree, old_root, "metadata.deletionGracePeriodSeconds"), 0) == 0;
}

/* If memory runs out, the set lacks some texts, and a finalizer that was there before may be refused; the
 * write soon fails in any case. */
static void collect_texts(struct vdi_hash *texts, const struct vdi_node *list)
{
	vdi_hash_init(texts, vdi_hash_is_text, 0);
	for (const struct vdi_node *item = vdi_tree_is(list, VDI_NODE_ARRAY) ? list->first : NULL; item;
	     item = item->next)
		(void) !vdi_hash_put(texts, vdi_hash_bytes(item->text, vdi_hash_seed()), &item->text,
				     (void *) (uintptr_t) &item->text, NULL);
}

static void refuse_new_finalizers(struct vdi_tree *tree, const struct vdi_node *metadata,
				  const struct vdi_node *old_metadata, struct vdi_field_errors *field_errors)
{
	const struct vdi_node *list = vdi_tree_get(tree, metadata, key("finalizers"));
	struct vdi_hash	       old;
	char		       found[160];
	size_t		       size = 0;

	collect_texts(&old, vdi_tree_get(tree, old_metadata, key("finalizers")));
	for (const struct vdi_node *item = vdi_tree_is(list, VDI_NODE_ARRAY) ? list->first : NULL;
	     item && size < sizeof found; item = item->next) {
		struct vd_bytes name = vdi_tree_string_of(item);

		if (vdi_hash_get(&old, vdi_hash_bytes(name, vdi_hash_seed()), &name) == NULL)
			size += (size_t) snprintf(found + size, sizeof found - size, "%s\"%.*s\"",
						  size ? ", " : "", (int) VDI_MIN(name.size, (size_t) 120),
						  name.size ? (const char *) name.data : "");
	}
	vdi_hash_fini(&old);
	if (size)
		vdi_field_errors_add(
			field_errors, VDI_FIELD_ERROR_FORBIDDEN, key("metadata.finalizers"), VD_BYTES_NONE,
			"no new finalizers can be added if the object is being deleted, found new "
			"finalizers []string{%s}",
			found);
}

void vdi_deletion_validate_update(struct vdi_tree *tree, const struct vdi_node *metadata,
				  const struct vdi_node *old_metadata, struct vdi_field_errors *field_errors)
{
	struct vd_bytes given = vdi_tree_string_of(vdi_tree_get(tree, metadata, key("deletionTimestamp")));
	const struct vdi_node *grace = vdi_tree_get(tree, metadata, key("deletionGracePeriodSeconds"));
	const struct vdi_node *old_grace =
		vdi_tree_get(tree, old_metadata, key("deletionGracePeriodSeconds"));
	bool is_marked =
		vdi_tree_string_of(vdi_tree_get(tree, old_metadata, key("deletionTimestamp"))).size > 0;

	if (is_marked)
		refuse_new_finalizers(tree, metadata, old_metadata, field_errors);
	/* A timestamp that is set cannot be changed by the client; any sent value is ignored. */
	if (!is_marked && given.size)
		vdi_field_errors_add_text(field_errors, VDI_FIELD_ERROR_INVALID,
					  key("metadata.deletionTimestamp"), given, "field is immutable");
	if (grace && grace->kind != VDI_NODE_NULL && !vdi_tree_equal(tree, grace, old_grace))
		vdi_field_errors_add_node(field_errors, VDI_FIELD_ERROR_INVALID,
					  key("metadata.deletionGracePeriodSeconds"), grace,
					  "field is immutable");
}

/* ---- Marks ---- */

static vd_status set_time(struct plan *plan, int64_t seconds)
{
	char text[VDI_K8S_TIME_SIZE];

	vdi_k8s_time_format((vd_wall) { seconds * 1000000000 }, text);
	return vdi_tree_set(plan->tree, plan->metadata, key("deletionTimestamp"),
			    vdi_tree_new_string(plan->tree, key(text))) ?
		       VD_OK :
		       no_memory(plan->status);
}

static vd_status set_int(struct plan *plan, const char *name, int64_t number)
{
	return vdi_tree_set(plan->tree, plan->metadata, key(name), vdi_tree_new_int(plan->tree, number)) ?
		       VD_OK :
		       no_memory(plan->status);
}

static vd_status raise_generation(struct plan *plan)
{
	int64_t generation = vdi_tree_int_of(vdi_tree_get(plan->tree, plan->metadata, key("generation")), 0);

	return generation > 0 ? set_int(plan, "generation", generation + 1) : VD_OK;
}

static int64_t now_s(const struct plan *plan)
{
	return plan->now.ns / 1000000000;
}

static bool marked_at(struct plan *plan, int64_t *ret_seconds)
{
	return vdi_k8s_time_seconds(
		vdi_tree_string_of(vdi_tree_get(plan->tree, plan->metadata, key("deletionTimestamp"))),
		ret_seconds);
}

static vd_status mark(struct plan *plan)
{
	int64_t at;
	bool	is_marked = marked_at(plan, &at);

	if (!is_marked)
		VDI_TRY(raise_generation(plan));
	if (!is_marked || at > now_s(plan))
		VDI_TRY(set_time(plan, now_s(plan)));
	return set_int(plan, "deletionGracePeriodSeconds", 0);
}

/* ---- Pods ---- */

static int64_t grace_of(const struct plan *plan, int64_t otherwise)
{
	if (!plan->options->has_grace)
		return otherwise;
	return plan->options->grace_s < 0 ? 1 : plan->options->grace_s;
}

/* Shortens the grace period of a pod that is being deleted; *ret_waits if the requested period is not
 * shorter. */
static vd_status shorten_grace(struct plan *plan, int64_t at, int64_t present_s, bool *ret_waits,
			       int64_t *ret_grace_s)
{
	int64_t wanted_s = grace_of(plan, present_s);

	*ret_waits = wanted_s >= present_s;
	if (*ret_waits)
		return VD_OK;
	at += wanted_s - present_s;
	if (at < now_s(plan)) {
		at = now_s(plan);
		wanted_s = VDI_MIN(wanted_s, (int64_t) 1);
	}
	*ret_grace_s = wanted_s;
	VDI_TRY(set_time(plan, at));
	return set_int(plan, "deletionGracePeriodSeconds", wanted_s);
}

/* *ret_grace_s > 0: the kubelet has to stop the pod first. A pod without a node or one that has ended is
 * removed at once. */
static vd_status plan_pod(struct plan *plan, bool *ret_waits, int64_t *ret_grace_s)
{
	struct vd_bytes node = vdi_tree_string_of(vdi_tree_find(plan->tree, plan->root, "spec.nodeName"));
	struct vd_bytes phase = vdi_tree_string_of(vdi_tree_find(plan->tree, plan->root, "status.phase"));
	int64_t		present_s = vdi_tree_int_of(
			vdi_tree_get(plan->tree, plan->metadata, key("deletionGracePeriodSeconds")), 0);
	int64_t own_s = vdi_tree_int_of(
		vdi_tree_find(plan->tree, plan->root, "spec.terminationGracePeriodSeconds"), POD_GRACE_S);
	int64_t at;

	if (marked_at(plan, &at))
		return present_s == 0 ?
			       VD_OK :
			       shorten_grace(plan, at, present_s < 0 ? 1 : present_s, ret_waits, ret_grace_s);
	*ret_grace_s = grace_of(plan, own_s);
	if (*ret_grace_s < 0)
		*ret_grace_s = 1;
	if (node.size == 0 || vd_bytes_equal(phase, key("Failed")) || vd_bytes_equal(phase, key("Succeeded")))
		*ret_grace_s = 0;
	if (*ret_grace_s == 0)
		return VD_OK;
	VDI_TRY(raise_generation(plan));
	VDI_TRY(set_time(plan, now_s(plan) + *ret_grace_s));
	return set_int(plan, "deletionGracePeriodSeconds", *ret_grace_s);
}

/* ---- The garbage collector's finalizers ---- */

static bool wants_orphans(const struct plan *plan, const struct vdi_node *finalizers)
{
	if (plan->options->orphan_dependents != VD_UNSET)
		return plan->options->orphan_dependents == VD_TRUE;
	if (plan->options->propagation != VDI_PROPAGATION_UNSET)
		return plan->options->propagation == VDI_PROPAGATION_ORPHAN;
	if (vdi_deletion_has(finalizers, key(VDI_FINALIZER_ORPHAN)))
		return true;
	if (vdi_deletion_has(finalizers, key(VDI_FINALIZER_FOREGROUND)))
		return false;
	/* Jobs are the only kind that orphans by default, for compatibility (kubernetes
	 * pkg/registry/batch/job/strategy.go). */
	return plan->resource->built_in && strcmp(plan->resource->group, "batch") == 0 &&
	       strcmp(plan->resource->plural, "jobs") == 0;
}

static bool wants_foreground(const struct plan *plan, const struct vdi_node *finalizers)
{
	/* Only for namespaces, the deprecated orphanDependents=false means foreground. */
	if (plan->options->orphan_dependents != VD_UNSET)
		return plan->options->orphan_dependents == VD_FALSE &&
		       vdi_resource_is_namespaces(plan->resource);
	if (plan->options->propagation != VDI_PROPAGATION_UNSET)
		return plan->options->propagation == VDI_PROPAGATION_FOREGROUND;
	return vdi_deletion_has(finalizers, key(VDI_FINALIZER_FOREGROUND)) &&
	       (vdi_resource_is_namespaces(plan->resource) ||
		!vdi_deletion_has(finalizers, key(VDI_FINALIZER_ORPHAN)));
}

static vd_status set_finalizer(struct plan *plan, const char *name, bool wanted)
{
	struct vdi_node *list = vdi_tree_get(plan->tree, plan->metadata, key("finalizers"));
	struct vdi_node *item, *next;

	if (wanted == vdi_deletion_has(list, key(name)))
		return VD_OK;
	if (!wanted) {
		for (item = list->first; item; item = next) {
			next = item->next;
			if (vd_bytes_equal(vdi_tree_string_of(item), key(name)))
				vdi_tree_array_remove(list, item);
		}
		if (list->count == 0)
			(void) vdi_tree_remove(plan->tree, plan->metadata, key("finalizers"));
		return VD_OK;
	}
	list = vdi_tree_array_at(plan->tree, plan->metadata, "finalizers");
	item = vdi_tree_new_string(plan->tree, key(name));
	if (list == NULL || item == NULL)
		return no_memory(plan->status);
	vdi_tree_append(list, item);
	return VD_OK;
}

static vd_status set_finalizers(struct plan *plan)
{
	const struct vdi_node *list = vdi_tree_get(plan->tree, plan->metadata, key("finalizers"));
	bool		       orphan = wants_orphans(plan, list), foreground = wants_foreground(plan, list);

	if (is_core(plan->resource, "events")) /* events have no dependents */
		return VD_OK;
	VDI_TRY(set_finalizer(plan, VDI_FINALIZER_ORPHAN, orphan));
	return set_finalizer(plan, VDI_FINALIZER_FOREGROUND, foreground);
}

/* ---- Namespaces ---- */

/* Adds the finalizer to the spec of a namespace that an older server created without one; otherwise the
 * namespace would be removed before its content. */
static vd_status hold_namespace(struct plan *plan)
{
	struct vdi_node *spec = vdi_tree_object_at(plan->tree, plan->root, "spec");
	struct vdi_node *list, *item;

	if (spec == NULL)
		return no_memory(plan->status);
	if (count_of(vdi_tree_get(plan->tree, spec, key("finalizers"))) > 0)
		return VD_OK;
	list = vdi_tree_new(plan->tree, VDI_NODE_ARRAY);
	item = vdi_tree_new_string(plan->tree, key("kubernetes"));
	if (list == NULL || item == NULL)
		return no_memory(plan->status);
	vdi_tree_append(list, item);
	return vdi_tree_set(plan->tree, spec, key("finalizers"), list) ? VD_OK : no_memory(plan->status);
}

static vd_status terminate_namespace(struct plan *plan)
{
	struct vdi_node *status;

	VDI_TRY(set_time(plan, now_s(plan)));
	VDI_TRY(set_finalizers(plan));
	VDI_TRY(hold_namespace(plan));
	status = vdi_tree_object_at(plan->tree, plan->root, "status");
	if (status == NULL || !vdi_tree_set(plan->tree, status, key("phase"),
					    vdi_tree_new_string(plan->tree, key("Terminating"))))
		return no_memory(plan->status);
	return VD_OK;
}

/* ---- CustomResourceDefinitions ---- */

/* The first delete adds the finalizer that keeps the definition until its objects are gone
 * (apiextensions-apiserver pkg/registry/customresourcedefinition/etcd.go). */
static vd_status hold_definition(struct plan *plan)
{
	int64_t at;

	if (!vdi_crd_is(plan->resource) || marked_at(plan, &at))
		return VD_OK;
	return vdi_crd_set_terminating(plan->tree, plan->root, plan->now) == VD_OK ? VD_OK :
										     no_memory(plan->status);
}

/* ---- The plan ---- */

static vd_status decide(struct plan *plan, enum vdi_deletion_decision *ret_decision)
{
	int64_t grace_s = 0, at;
	bool	waits = false;

	if (vdi_resource_is_namespaces(plan->resource)) {
		*ret_decision = VDI_DELETION_MARK;
		if (!marked_at(plan, &at))
			return terminate_namespace(plan);
		waits = count_of(vdi_tree_find(plan->tree, plan->root, "spec.finalizers")) > 0;
	}
	if (is_core(plan->resource, "pods"))
		VDI_TRY(plan_pod(plan, &waits, &grace_s));
	if (waits) {
		*ret_decision = VDI_DELETION_WAIT;
		return VD_OK;
	}
	VDI_TRY(set_finalizers(plan));
	VDI_TRY(hold_definition(plan));
	*ret_decision = VDI_DELETION_MARK;
	if (grace_s > 0)
		return VD_OK;
	if (count_of(vdi_tree_get(plan->tree, plan->metadata, key("finalizers"))) > 0)
		return mark(plan);
	*ret_decision = VDI_DELETION_REMOVE;
	return VD_OK;
}

static vd_status plan_tree(struct plan *plan, struct vd_bytes current, struct vdi_deletion *deletion)
{
	struct vd_bytes uid;
	vd_status	status = vdi_tree_parse(plan->tree, current, &plan->root, NULL);

	if (status != VD_OK)
		return status == VD_NOMEM ? no_memory(plan->status) : status;
	plan->metadata = vdi_tree_object_at(plan->tree, plan->root, "metadata");
	if (plan->metadata == NULL)
		return no_memory(plan->status);
	uid = vdi_tree_string_of(vdi_tree_get(plan->tree, plan->metadata, key("uid")));
	(void) snprintf(deletion->uid, sizeof deletion->uid, "%.*s",
			(int) VDI_MIN(uid.size, sizeof deletion->uid - 1),
			uid.size ? (const char *) uid.data : "");
	(void) vdi_tree_remove(plan->tree, plan->metadata, key("resourceVersion"));
	VDI_TRY(decide(plan, &deletion->decision));
	if (deletion->decision == VDI_DELETION_MARK)
		vdi_tree_write(&deletion->text, plan->root);
	return deletion->text.failed ? no_memory(plan->status) : VD_OK;
}

vd_status vdi_deletion_plan(const struct vdi_resource *resource, const struct vdi_delete_options *options,
			    vd_wall now, struct vd_bytes current, struct vdi_deletion *deletion,
			    struct vdi_http_status *status)
{
	struct vdi_tree tree = VDI_TREE_INIT;
	struct plan	plan = {
		    .resource = resource, .options = options, .now = now, .tree = &tree, .status = status
	};
	vd_status result;

	vdi_out_reset(&deletion->text);
	status->code = 0;
	result = plan_tree(&plan, current, deletion);
	vdi_tree_fini(&tree);
	return result;
}
