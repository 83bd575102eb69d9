/* Order of the steps, as upstream: its decoder sets defaults and then prunes
 * (pkg/apiserver/customresource_handler.go: unstructuredDefaulter, schemaCoercingDecoder), then its strategy
 * validates (pkg/registry/customresource/strategy.go). */
#include "object_schema.h"

#include "crd.h"
#include "field_check.h"

static vd_status no_memory(struct vdi_http_status *status)
{
	vdi_http_status_set(status, 500, "InternalError", "Internal error occurred: out of memory");
	return VD_NOMEM;
}

vd_status vdi_object_conform(const struct vdi_schema *schema, struct vdi_tree *tree, struct vdi_node *root,
			     struct vdi_unknown_fields *unknown, struct vdi_http_status *status)
{
	vd_status result;

	if (schema == NULL)
		return VD_OK;
	result = vdi_schema_default(schema, tree, root);
	if (result == VD_TOO_BIG) {
		vdi_http_status_set(status, 413, "RequestEntityTooLarge",
				    "the object's defaults make it too large");
		return VD_INVALID;
	}
	if (result == VD_OK)
		result = vdi_schema_prune(schema, tree, root, unknown ? vdi_unknown_fields_note : NULL,
					  unknown);
	if (result != VD_OK || (unknown && vdi_unknown_fields_failed(unknown)))
		return no_memory(status);
	return VD_OK;
}

/* Returns the member that follows last in key order; last NULL: the first one. */
static const struct vdi_node *next_by_key(const struct vdi_node *object, const struct vdi_node *last)
{
	const struct vdi_node *next = NULL;

	for (const struct vdi_node *member = object->first; member; member = member->next)
		if ((last == NULL || vd_bytes_compare(member->key, last->key) > 0) &&
		    (next == NULL || vd_bytes_compare(member->key, next->key) < 0))
			next = member;
	return next;
}

/* Writes a map as Go's fmt prints it with %+v, up to the length that an error message shows. */
static void write_map(struct vdi_out *out, const struct vdi_node *node)
{
	bool is_array = node->kind == VDI_NODE_ARRAY;

	switch (node->kind) {
	case VDI_NODE_NULL: vdi_out_raw(out, "<nil>"); return;
	case VDI_NODE_FALSE: vdi_out_raw(out, "false"); return;
	case VDI_NODE_TRUE: vdi_out_raw(out, "true"); return;
	case VDI_NODE_NUMBER:
	case VDI_NODE_STRING: vdi_out_bytes(out, node->text); return;
	default: break;
	}
	vdi_out_raw(out, is_array ? "[" : "map[");
	for (const struct vdi_node *child = is_array ? node->first : next_by_key(node, NULL);
	     child && out->size <= 2 * VDI_FIELD_ERROR_VALUE_SIZE;
	     child = is_array ? child->next : next_by_key(node, child)) {
		if (child != (is_array ? node->first : next_by_key(node, NULL)))
			vdi_out_raw(out, " ");
		if (!is_array) {
			vdi_out_bytes(out, child->key);
			vdi_out_raw(out, ":");
		}
		write_map(out, child);
	}
	vdi_out_raw(out, "]");
}

/* Writes the value that upstream shows in the message: the patch itself if it is a strategic merge patch,
 * otherwise the patched object. */
static vd_status write_refused(const struct vdi_edit *edit, const struct vdi_node *root, struct vdi_out *out)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *patch;
	vd_status	 status;

	if (edit->patch != VDI_PATCH_STRATEGIC) {
		vdi_tree_write(out, root);
		return out->failed ? VD_NOMEM : VD_OK;
	}
	status = vdi_tree_parse(&tree, edit->body, &patch, NULL);
	if (status == VD_OK)
		write_map(out, patch);
	vdi_tree_fini(&tree);
	return status != VD_OK || out->failed ? VD_NOMEM : VD_OK; /* it was parsed before */
}

/* Refuses with upstream's NewInvalid for an empty kind (pkg/endpoints/handlers/patch.go). */
static vd_status refuse_patched(struct vdi_edited *edited, struct vd_bytes refused, const char *why,
				struct vd_bytes what, struct vdi_http_status *status)
{
	vdi_field_errors_reset(&edited->field_errors);
	vdi_field_errors_add_text(&edited->field_errors, VDI_FIELD_ERROR_INVALID, vd_bytes_of("patch"),
				  refused, "%s%.*s", why, (int) what.size, (const char *) what.data);
	return vdi_field_errors_refuse(&edited->field_errors, status, "", "", VD_BYTES_NONE);
}

/* Checks a definition. Types and unknown fields of a body were checked before, so only those of a patch are
 * reported here. VD_BAD_REQUEST with a sentence. */
static vd_status conform_definition(struct vdi_tree *tree, struct vdi_node *root,
				    struct vdi_unknown_fields *unknown, struct vdi_http_status *status,
				    struct vd_error *reterr)
{
	vd_status result = vdi_crd_check_fields(tree, root, unknown, reterr);

	return result == VD_NOMEM ? no_memory(status) : result;
}

/* For Kubernetes' own kinds: reports unknown members, but keeps them. */
static vd_status conform_patched(const struct vdi_edit *edit, const struct vdi_node *root,
				 struct vd_bytes current, struct vdi_unknown_fields *unknown,
				 struct vdi_http_status *status, struct vd_error *reterr)
{
	struct vdi_out patched = VDI_OUT_INIT;
	vd_status      result = VD_NOMEM;

	vdi_tree_write(&patched, root);
	if (!patched.failed)
		result = vdi_field_check_patched(edit->resource, current, vdi_out_slice(&patched), unknown,
						 reterr);
	vdi_out_fini(&patched);
	return result == VD_NOMEM ? no_memory(status) : result;
}

static vd_status conform(const struct vdi_edit *edit, struct vdi_tree *tree, struct vdi_node *root,
			 struct vd_bytes current, struct vdi_unknown_fields *unknown,
			 struct vdi_http_status *status, struct vd_error *reterr)
{
	if (vdi_crd_is(edit->resource))
		return conform_definition(tree, root, unknown, status, reterr);
	if (edit->resource->schema == NULL)
		return edit->patch == VDI_PATCH_NONE || !vdi_field_check_has_schema(edit->resource) ?
			       VD_OK :
			       conform_patched(edit, root, current, unknown, status, reterr);
	return vdi_object_conform(edit->resource->schema, tree, root, unknown, status);
}

static vd_status refuse_body(const struct vdi_resource *resource, const char *why,
			     struct vdi_http_status *status)
{
	vdi_http_status_set(status, 400, "BadRequest", "%s in version \"%s\" cannot be handled as a %s: %s",
			    resource->kind, resource->version, resource->kind, why);
	return VD_INVALID;
}

vd_status vdi_object_conform_written(const struct vdi_edit *edit, struct vdi_tree *tree,
				     struct vdi_node *root, struct vd_bytes current,
				     struct vdi_edited *edited, struct vdi_http_status *status)
{
	bool			   is_patch = edit->patch != VDI_PATCH_NONE;
	struct vdi_unknown_fields *unknown =
		is_patch && edit->unknown != VDI_UNKNOWN_IGNORED ? &edited->unknown : NULL;
	struct vdi_out	refused = VDI_OUT_INIT;
	struct vd_error error = { 0 };
	bool		is_refused;
	vd_status	result;

	vdi_unknown_fields_reset(&edited->unknown);
	/* Copy the object for the message before unknown members are removed. */
	result = is_patch && (vdi_crd_is(edit->resource) ||
			      (edit->resource->schema && edit->unknown == VDI_UNKNOWN_REFUSED)) ?
			 write_refused(edit, root, &refused) :
			 VD_OK;
	if (result == VD_OK)
		result = conform(edit, tree, root, current, unknown, status, &error);
	is_refused = result == VD_BAD_REQUEST ||
		     (result == VD_OK && edited->unknown.count && edit->unknown == VDI_UNKNOWN_REFUSED);
	if (is_patch && is_refused && refused.size == 0 && write_refused(edit, root, &refused) != VD_OK)
		result = VD_NOMEM;
	if (result == VD_NOMEM)
		(void) no_memory(status);
	else if (result == VD_BAD_REQUEST && is_patch)
		result = refuse_patched(edited, vdi_out_slice(&refused), "", vd_bytes_of(error.message),
					status);
	else if (result == VD_BAD_REQUEST)
		result = refuse_body(edit->resource, error.message, status);
	else if (is_refused)
		result = refuse_patched(edited, vdi_out_slice(&refused),
					"strict decoding error: ", vdi_out_slice(&edited->unknown.refusal),
					status);
	vdi_out_fini(&refused);
	return result;
}

vd_status vdi_object_obey(const struct vdi_edit *edit, struct vdi_tree *tree, const struct vdi_node *root,
			  const struct vdi_node *old, struct vdi_edited *edited,
			  struct vdi_http_status *status)
{
	const struct vdi_schema *schema = edit->resource->schema;
	vd_status		 result;

	if (schema == NULL)
		return VD_OK;
	vdi_field_errors_reset(&edited->field_errors);
	result = vdi_schema_validate(schema, tree, root, old,
				     edit->part == VDI_EDIT_STATUS ? VDI_SCHEMA_STATUS : VDI_SCHEMA_WHOLE,
				     &edited->field_errors);
	if (result == VD_NOMEM)
		return no_memory(status);
	if (result == VD_OK)
		return VD_OK;
	return vdi_field_errors_refuse(&edited->field_errors, status, edit->resource->group,
				       edit->resource->kind,
				       vdi_tree_string_of(vdi_tree_find(tree, root, "metadata.name")));
}
