/* Writes conditions only if they differ, so a namespace that waits for hours is written once. */
#include "namespace_conditions.h"

#include <stdlib.h>

#include "k8s_time.h"
#include "table.h"

struct condition {
	const char *type;
	const char *ok_reason;
	const char *ok_message;
	const char *reason;
};

static const struct condition conditions[] = {
	{ "NamespaceDeletionDiscoveryFailure", "ResourcesDiscovered", "All resources successfully discovered",
	  NULL },
	{ "NamespaceDeletionGroupVersionParsingFailure", "ParsedGroupVersions",
	  "All legacy kube types successfully parsed", NULL },
	{ "NamespaceDeletionContentFailure", "ContentDeleted",
	  "All content successfully deleted, may be waiting on finalization", "ContentDeletionFailed" },
	{ "NamespaceContentRemaining", "ContentRemoved", "All content successfully removed",
	  "SomeResourcesRemain" },
	{ "NamespaceFinalizersRemaining", "ContentHasNoFinalizers",
	  "All content-preserving finalizers finished", "SomeFinalizersRemain" },
};

void vdi_content_add(struct vdi_content_counts *counts, struct vd_bytes name)
{
	for (size_t i = 0; i < counts->count; i++)
		if (vd_bytes_equal(vd_bytes_of(counts->items[i].name), name)) {
			counts->items[i].number++;
			return;
		}
	if (counts->count == VDI_CONTENT_COUNTS_MAX)
		return;
	counts->items[counts->count].name = vdi_strndup(name.data, name.size);
	counts->items[counts->count].number = 1;
	counts->count += counts->items[counts->count].name != NULL;
}

static void reset(struct vdi_content_counts *counts)
{
	for (size_t i = 0; i < counts->count; i++)
		vdi_free(counts->items[i].name);
	counts->count = 0;
}

void vdi_namespace_content_reset(struct vdi_namespace_content *content)
{
	reset(&content->kinds);
	reset(&content->finalizers);
	reset(&content->failures);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct vdi_content_count *) a)->name,
		      ((const struct vdi_content_count *) b)->name);
}

/* Sorted by name, so that equal counts give equal texts. */
static void write_counts(struct vdi_out *out, struct vdi_content_counts *counts, const char *verb)
{
	qsort(counts->items, counts->count, sizeof counts->items[0], by_name);
	for (size_t i = 0; i < counts->count; i++)
		vdi_out_printf(out, "%s%s %s %lld resource instances", i ? ", " : "", counts->items[i].name,
			       verb, (long long) counts->items[i].number);
}

static void write_failures(struct vdi_out *out, struct vdi_content_counts *failures)
{
	qsort(failures->items, failures->count, sizeof failures->items[0], by_name);
	vdi_out_printf(out, "Failed to delete all resource types, %zu remaining: ", failures->count);
	for (size_t i = 0; i < failures->count; i++)
		vdi_out_printf(out, "%s%s", i ? ", " : "", failures->items[i].name);
}

/* Writes the message of a condition; empty: the condition is False. */
static void write_message(struct vdi_out *out, struct vdi_namespace_content *content, size_t index)
{
	if (index == 2 && content->failures.count) {
		write_failures(out, &content->failures);
	} else if (index == 3 && content->kinds.count) {
		vdi_out_raw(out, "Some resources are remaining: ");
		write_counts(out, &content->kinds, "has");
	} else if (index == 4 && content->finalizers.count) {
		vdi_out_raw(out, "Some content in the namespace has finalizers remaining: ");
		write_counts(out, &content->finalizers, "in");
	}
}

static struct vdi_node *find_condition(struct vdi_tree *tree, struct vdi_node *list, const char *type)
{
	for (struct vdi_node *item = list->first; item; item = item->next)
		if (vd_bytes_equal(vdi_tree_string_of(vdi_tree_get(tree, item, vd_bytes_of("type"))),
				   vd_bytes_of(type)))
			return item;
	return NULL;
}

/* Returns true if the member had another value. */
static bool set_member(struct vdi_tree *tree, struct vdi_node *item, const char *name, struct vd_bytes text,
		       bool *failed)
{
	struct vdi_node *node = vdi_tree_get(tree, item, vd_bytes_of(name));

	if (vdi_tree_is(node, VDI_NODE_STRING) && vd_bytes_equal(vdi_tree_string_of(node), text))
		return false;
	*failed |= !vdi_tree_set(tree, item, vd_bytes_of(name), vdi_tree_new_string(tree, text));
	return true;
}

static vd_status set_condition(struct vdi_tree *tree, struct vdi_node *list,
			       const struct condition *condition, struct vd_bytes message, vd_wall now,
			       bool *ret_changed)
{
	struct vdi_node *item = find_condition(tree, list, condition->type);
	bool		 is_true = message.size > 0, failed = false, is_new = item == NULL;
	char		 text[VDI_K8S_TIME_SIZE];

	if (is_new) {
		item = vdi_tree_new(tree, VDI_NODE_OBJECT);
		if (item == NULL)
			return VD_NOMEM;
		(void) set_member(tree, item, "type", vd_bytes_of(condition->type), &failed);
	}
	if (set_member(tree, item, "status", vd_bytes_of(is_true ? "True" : "False"), &failed)) {
		vdi_k8s_time_format(now, text);
		(void) set_member(tree, item, "lastTransitionTime", vd_bytes_of(text), &failed);
		*ret_changed = true;
	}
	*ret_changed |= set_member(tree, item, "reason",
				   vd_bytes_of(is_true ? condition->reason : condition->ok_reason), &failed);
	*ret_changed |= set_member(tree, item, "message",
				   is_true ? message : vd_bytes_of(condition->ok_message), &failed);
	if (is_new)
		vdi_tree_append(list, item);
	return failed ? VD_NOMEM : VD_OK;
}

static struct vdi_node *conditions_of(struct vdi_tree *tree, struct vdi_node *root)
{
	struct vdi_node *status = vdi_tree_object_at(tree, root, "status");

	return status ? vdi_tree_array_at(tree, status, "conditions") : NULL;
}

vd_status vdi_namespace_conditions_set(struct vdi_tree *tree, struct vdi_node *root,
				       struct vdi_namespace_content *content, vd_wall now, bool *ret_changed)
{
	struct vdi_node *list = conditions_of(tree, root);
	struct vdi_out	 message = VDI_OUT_INIT;
	vd_status	 status = list ? VD_OK : VD_NOMEM;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(conditions) && status == VD_OK; i++) {
		vdi_out_reset(&message);
		write_message(&message, content, i);
		status = message.failed ? VD_NOMEM :
					  set_condition(tree, list, &conditions[i], vdi_out_slice(&message),
							now, ret_changed);
	}
	vdi_out_fini(&message);
	return status;
}
