/* The order is upstream's: its decoder sets defaults and then prunes (pkg/apiserver/customresource_handler.go: unstructuredDefaulter, schemaCoercingDecoder), its strategy
 * validates (pkg/registry/customresource/strategy.go).
 */
#include "object_schema.h"

static vd_status no_memory(struct vdi_http_status *status)
{
	vdi_http_status_set(status, 500, "InternalError", "Internal error occurred: out of memory");
	return VD_NOMEM;
}

vd_status vdi_object_conform(const struct vdi_schema *schema, struct vdi_tree *tree, struct vdi_node *root, struct vdi_unknown_fields *unknown,
			     struct vdi_http_status *status)
{
	vd_status result;

	if (schema == NULL)
		return VD_OK;
	result = vdi_schema_default(schema, tree, root);
	if (result == VD_TOO_BIG) {
		vdi_http_status_set(status, 413, "RequestEntityTooLarge", "the object's defaults make it too large");
		return VD_INVALID;
	}
	if (result == VD_OK)
		result = vdi_schema_prune(schema, tree, root, unknown ? vdi_unknown_fields_note : NULL, unknown);
	if (result != VD_OK || (unknown && vdi_unknown_fields_failed(unknown)))
		return no_memory(status);
	return VD_OK;
}

/* NewInvalid of a nameless kind, as pkg/endpoints/handlers/patch.go makes it. */
static vd_status refuse_unknown(struct vdi_edited *edited, const struct vdi_out *patched, struct vdi_http_status *status)
{
	struct vd_bytes unknown = vdi_out_slice(&edited->unknown.refusal);

	vdi_faults_reset(&edited->faults);
	vdi_faults_add_text(&edited->faults, VDI_FAULT_INVALID, vd_bytes_of("patch"), vdi_out_slice(patched), "strict decoding error: %.*s", (int) unknown.size,
			    (const char *) unknown.data);
	return vdi_faults_refuse(&edited->faults, status, "", "", VD_BYTES_NONE);
}

vd_status vdi_object_conform_patched(const struct vdi_edit *edit, struct vdi_tree *tree, struct vdi_node *root, struct vdi_edited *edited, struct vdi_http_status *status)
{
	const struct vdi_schema *schema = edit->resource->schema;
	struct vdi_out		 patched = VDI_OUT_INIT;
	vd_status		 result;

	vdi_unknown_fields_reset(&edited->unknown);
	if (schema == NULL)
		return VD_OK;
	if (edit->patch == VDI_PATCH_NONE || edit->unknown == VDI_UNKNOWN_IGNORED)
		return vdi_object_conform(schema, tree, root, NULL, status);
	if (edit->unknown == VDI_UNKNOWN_REFUSED)
		vdi_tree_write(&patched, root);
	result = patched.failed ? no_memory(status) : vdi_object_conform(schema, tree, root, &edited->unknown, status);
	if (result == VD_OK && edited->unknown.count && edit->unknown == VDI_UNKNOWN_REFUSED)
		result = refuse_unknown(edited, &patched, status);
	vdi_out_fini(&patched);
	return result;
}

vd_status vdi_object_obey(const struct vdi_edit *edit, struct vdi_tree *tree, const struct vdi_node *root, const struct vdi_node *old, struct vdi_edited *edited,
			  struct vdi_http_status *status)
{
	const struct vdi_schema *schema = edit->resource->schema;
	vd_status		 result;

	if (schema == NULL)
		return VD_OK;
	vdi_faults_reset(&edited->faults);
	result = vdi_schema_validate(schema, tree, root, old, edit->part == VDI_EDIT_STATUS ? VDI_SCHEMA_STATUS : VDI_SCHEMA_WHOLE, &edited->faults);
	if (result == VD_NOMEM)
		return no_memory(status);
	if (result == VD_OK)
		return VD_OK;
	return vdi_faults_refuse(&edited->faults, status, edit->resource->group, edit->resource->kind, vdi_tree_string_of(vdi_tree_find(tree, root, "metadata.name")));
}
