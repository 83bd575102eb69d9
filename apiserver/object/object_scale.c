#include "object_scale.h"

#include <stdio.h>
#include <string.h>

#include "table.h"

/* Sets the member at a path such as .spec.group.replicas and creates missing objects on the way. False: out
 * of memory. */
static bool set_at(struct vdi_tree *tree, struct vdi_node *root, const char *path,
		   const struct vdi_node *value)
{
	const char *dot;
	char	    name[256];

	for (path++; (dot = strchr(path, '.')) != NULL; path = dot + 1) {
		(void) snprintf(name, sizeof name, "%.*s",
				(int) VDI_MIN((size_t) (dot - path), sizeof name - 1), path);
		root = vdi_tree_object_at(tree, root, name);
		if (root == NULL)
			return false;
	}
	return vdi_tree_set(tree, root, vd_bytes_of(path), vdi_tree_copy(tree, value));
}

bool vdi_scale_set(struct vdi_tree *tree, struct vdi_node *root, const struct vdi_resource *resource,
		   const struct vdi_node *replicas)
{
	return set_at(tree, root, resource->scale_spec_path ? resource->scale_spec_path : ".spec.replicas",
		      replicas);
}

static struct vd_bytes text_at(struct vdi_tree *tree, const struct vdi_node *object, const char *path)
{
	return vdi_tree_string_of(vdi_tree_find(tree, object, path));
}

static const struct vdi_node *number_at(struct vdi_tree *tree, const struct vdi_node *root, const char *path,
					const char *usual)
{
	return vdi_tree_path(tree, root, path ? path : usual);
}

static vd_status bad_scale(struct vdi_http_status *status, const char *why)
{
	vdi_http_status_set(status, 400, "BadRequest",
			    "Scale in version \"v1\" cannot be handled as a Scale: %s", why);
	return VD_INVALID;
}

/* Refuses what a typed decoder would refuse. An absent number is 0, because Go's encoder omits a zero:
 * `kubectl scale --replicas=0` sends {"spec":{}}. */
vd_status vdi_scale_check(struct vdi_tree *tree, struct vdi_node *sent, struct vd_bytes name,
			  struct vdi_http_status *status, struct vdi_node **ret_replicas)
{
	const struct vdi_node *spec = vdi_tree_get(tree, sent, vd_bytes_of("spec"));
	struct vdi_node	      *replicas = vdi_tree_find(tree, sent, "spec.replicas");
	struct vd_bytes kind = text_at(tree, sent, "kind"), version = text_at(tree, sent, "apiVersion");
	int64_t		number;

	if (replicas == NULL || replicas->kind == VDI_NODE_NULL)
		replicas = vdi_tree_new_int(tree, 0);
	if (replicas == NULL) {
		vdi_http_status_set(status, 500, "InternalError", "Internal error occurred: out of memory");
		return VD_NOMEM;
	}
	number = vdi_tree_int_of(replicas, INT64_MIN);

	if ((kind.size && !vd_bytes_equal(kind, vd_bytes_of("Scale"))) ||
	    (version.size && !vd_bytes_equal(version, vd_bytes_of("autoscaling/v1")))) {
		vdi_http_status_set(
			status, 400, "BadRequest", "%.*s in version \"%.*s\" cannot be handled as a Scale",
			(int) VDI_MIN(kind.size, (size_t) 200), kind.size ? (const char *) kind.data : "",
			(int) VDI_MIN(version.size, (size_t) 200),
			version.size ? (const char *) version.data : "");
		return VD_INVALID;
	}
	if (spec && spec->kind != VDI_NODE_OBJECT && spec->kind != VDI_NODE_NULL)
		return bad_scale(status, "spec must be an object");
	*ret_replicas = replicas;
	if (number < INT32_MIN || number > INT32_MAX)
		return bad_scale(status, "spec.replicas must be an integer of 32 bits");
	if (number >= 0)
		return VD_OK;
	vdi_http_status_set(status, 422, "Invalid", "%s", "");
	vdi_http_status_cause(status, "FieldValueInvalid", "spec.replicas",
			      "Invalid value: %lld: must be greater than or equal to 0", (long long) number);
	vdi_http_status_invalid(status, "autoscaling", "Scale", name);
	return VD_INVALID;
}

void vdi_scale_write(struct vdi_tree *tree, const struct vdi_node *root, const struct vdi_resource *resource,
		     struct vdi_out *out)
{
	static const char *const names[] = { "name", "namespace", "uid", "resourceVersion",
					     "creationTimestamp" };
	const struct vdi_node	*metadata = vdi_tree_get(tree, root, vd_bytes_of("metadata"));
	const struct vdi_node	*labels = vdi_tree_find(tree, root, "spec.selector.matchLabels");
	struct vdi_out		 selector = VDI_OUT_INIT;

	vdi_out_raw(out, "{\"kind\":\"Scale\",\"apiVersion\":\"autoscaling/v1\",\"metadata\":{");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++)
		vdi_out_member(out, names[i], text_at(tree, metadata, names[i]));
	vdi_out_printf(out, "},\"spec\":{\"replicas\":%lld},\"status\":{\"replicas\":%lld",
		       (long long) vdi_tree_int_of(
			       number_at(tree, root, resource->scale_spec_path, ".spec.replicas"), 0),
		       (long long) vdi_tree_int_of(
			       number_at(tree, root, resource->scale_status_path, ".status.replicas"), 0));
	if (resource->is_custom) {
		if (*resource->scale_selector_path)
			vdi_out_member(
				out, "selector",
				vdi_tree_string_of(vdi_tree_path(tree, root, resource->scale_selector_path)));
		vdi_out_raw(out, "}}");
		return;
	}
	for (const struct vdi_node *label = vdi_tree_is(labels, VDI_NODE_OBJECT) ? labels->first : NULL;
	     label; label = label->next) {
		if (selector.size)
			vdi_out_raw(&selector, ",");
		vdi_out_bytes(&selector, label->key);
		vdi_out_raw(&selector, "=");
		vdi_out_bytes(&selector, label->text);
	}
	vdi_out_member(out, "selector", vdi_out_slice(&selector));
	vdi_out_raw(out, "}}");
	out->failed |= selector.failed;
	vdi_out_fini(&selector);
}

vd_status vdi_scale_of(const struct vdi_resource *resource, struct vd_bytes current, struct vdi_out *out)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	vd_status	 status = vdi_tree_parse_shown(&tree, current, &root, NULL);

	if (status == VD_OK) {
		vdi_scale_write(&tree, root, resource, out);
		status = out->failed ? VD_NOMEM : VD_OK;
	}
	vdi_tree_fini(&tree);
	return status;
}
