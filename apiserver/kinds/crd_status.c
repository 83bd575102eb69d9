/* Writes the conditions of a definition. A condition keeps the time of its last change; conditions of other
 * writers stay. */
#include "crd.h"
#include "k8s_time.h"

struct condition {
	const char *type;
	bool	    is_true;
	const char *reason;
	const char *message;
};

struct editing {
	struct vdi_tree *tree;
	vd_wall		 now;
	bool		 failed;
	bool		 is_changed;
};

static struct vd_bytes text(struct editing *editing, const struct vdi_node *object, const char *name)
{
	return vdi_tree_string_of(vdi_tree_get(editing->tree, object, vd_bytes_of(name)));
}

static void set(struct editing *editing, struct vdi_node *object, const char *name, const char *value)
{
	struct vdi_node *present = vdi_tree_get(editing->tree, object, vd_bytes_of(name));

	if (vdi_tree_is(present, VDI_NODE_STRING) && vd_bytes_equal(present->text, vd_bytes_of(value)))
		return;
	editing->is_changed = true;
	if (!vdi_tree_set(editing->tree, object, vd_bytes_of(name),
			  vdi_tree_new_string(editing->tree, vd_bytes_of(value))))
		editing->failed = true;
}

static struct vdi_node *condition_of(struct editing *editing, struct vdi_node *list, const char *type)
{
	struct vdi_node *item;

	for (item = list->first; item; item = item->next)
		if (vd_bytes_equal(text(editing, item, "type"), vd_bytes_of(type)))
			return item;
	item = vdi_tree_new(editing->tree, VDI_NODE_OBJECT);
	if (item)
		vdi_tree_append(list, item);
	return item;
}

static void set_condition(struct editing *editing, struct vdi_node *status, const struct condition *condition)
{
	struct vdi_node *list = vdi_tree_array_at(editing->tree, status, "conditions");
	struct vdi_node *item = list ? condition_of(editing, list, condition->type) : NULL;
	const char	*value = condition->is_true ? "True" : "False";
	char		 now[VDI_K8S_TIME_SIZE];

	if (item == NULL) {
		editing->failed = true;
		return;
	}
	if (!vd_bytes_equal(text(editing, item, "status"), vd_bytes_of(value))) {
		vdi_k8s_time_format(editing->now, now);
		set(editing, item, "lastTransitionTime", now);
	}
	set(editing, item, "message", condition->message);
	set(editing, item, "reason", condition->reason);
	set(editing, item, "status", value);
	set(editing, item, "type", condition->type);
}

static void set_accepted_names(struct editing *editing, struct vdi_node *root, struct vdi_node *status)
{
	const struct vdi_node *wanted = vdi_tree_find(editing->tree, root, "spec.names");
	const struct vdi_node *present = vdi_tree_get(editing->tree, status, vd_bytes_of("acceptedNames"));

	if (wanted == NULL || (present && vdi_tree_equal(editing->tree, wanted, present)))
		return;
	editing->is_changed = true;
	if (!vdi_tree_set(editing->tree, status, vd_bytes_of("acceptedNames"),
			  vdi_tree_copy(editing->tree, wanted)))
		editing->failed = true;
}

static void set_approval(struct editing *editing, struct vdi_node *root, struct vdi_node *status)
{
	const struct vdi_node *annotations = vdi_tree_find(editing->tree, root, "metadata.annotations");

	if (text(editing, annotations, "api-approved.kubernetes.io").size)
		set_condition(editing, status,
			      &(struct condition) {
				      "KubernetesAPIApprovalPolicyConformant", true, "ApprovedAnnotation",
				      "approved in the annotation api-approved.kubernetes.io" });
}

vd_status vdi_crd_set_status(struct vdi_tree *tree, struct vdi_node *root, const struct vdi_crd_state *state,
			     vd_wall now, bool *ret_changed)
{
	struct editing	 editing = { tree, now, false, false };
	struct vdi_node *status = vdi_tree_object_at(tree, root, "status");
	bool		 is_terminating =
		text(&editing, vdi_tree_get(tree, root, vd_bytes_of("metadata")), "deletionTimestamp").size >
		0;

	if (status == NULL)
		return VD_NOMEM;
	set_condition(&editing, status,
		      state->conflict ? &(struct condition) { "NamesAccepted", false, state->conflict,
							      state->conflict_message } :
					&(struct condition) { "NamesAccepted", true, "NoConflicts",
							      "no conflicts found" });
	if (state->conflict == NULL)
		set_accepted_names(&editing, root, status);
	if (state->conflict == NULL && state->is_served)
		set_condition(&editing, status,
			      &(struct condition) { "Established", true, "InitialNamesAccepted",
						    "the initial names have been accepted" });
	else if (state->conflict)
		set_condition(&editing, status,
			      &(struct condition) { "Established", false, "NotAccepted",
						    "not all names are accepted" });
	set_approval(&editing, root, status);
	if (is_terminating && state->is_cleaned)
		set_condition(&editing, status,
			      &(struct condition) { "Terminating", false, "InstanceDeletionCompleted",
						    "removed all instances" });
	else if (is_terminating && state->cleaning)
		set_condition(&editing, status,
			      &(struct condition) { "Terminating", true, "InstanceDeletionInProgress",
						    state->cleaning });
	*ret_changed = editing.is_changed;
	return editing.failed ? VD_NOMEM : VD_OK;
}

vd_status vdi_crd_set_terminating(struct vdi_tree *tree, struct vdi_node *root, vd_wall now)
{
	struct editing	 editing = { tree, now, false, false };
	struct vdi_node *status = vdi_tree_object_at(tree, root, "status"),
			*metadata = vdi_tree_object_at(tree, root, "metadata");
	struct vdi_node *finalizers, *item;

	if (status == NULL || metadata == NULL)
		return VD_NOMEM;
	set_condition(&editing, status,
		      &(struct condition) { "Terminating", true, "InstanceDeletionPending",
					    "CustomResourceDefinition marked for deletion; CustomResource "
					    "deletion will begin soon" });
	finalizers = vdi_tree_array_at(tree, metadata, "finalizers");
	if (finalizers == NULL)
		return VD_NOMEM;
	for (item = finalizers->first; item; item = item->next)
		if (vd_bytes_equal(vdi_tree_string_of(item), vd_bytes_of(VDI_CRD_FINALIZER)))
			return editing.failed ? VD_NOMEM : VD_OK;
	item = vdi_tree_new_string(tree, vd_bytes_of(VDI_CRD_FINALIZER));
	if (item == NULL || editing.failed)
		return VD_NOMEM;
	vdi_tree_append(finalizers, item);
	return VD_OK;
}

void vdi_crd_remove_finalizer(struct vdi_tree *tree, struct vdi_node *root)
{
	struct vdi_node *metadata = vdi_tree_get(tree, root, vd_bytes_of("metadata"));
	struct vdi_node *finalizers = vdi_tree_get(tree, metadata, vd_bytes_of("finalizers"));

	for (struct vdi_node *item = vdi_tree_is(finalizers, VDI_NODE_ARRAY) ? finalizers->first : NULL,
			     *next;
	     item; item = next) {
		next = item->next;
		if (vd_bytes_equal(vdi_tree_string_of(item), vd_bytes_of(VDI_CRD_FINALIZER)))
			vdi_tree_array_remove(finalizers, item);
	}
	if (vdi_tree_is(finalizers, VDI_NODE_ARRAY) && finalizers->count == 0)
		(void) vdi_tree_remove(tree, metadata, vd_bytes_of("finalizers"));
}
