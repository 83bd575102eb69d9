/* The order is upstream's: its decoder sets defaults and then prunes (pkg/apiserver/customresource_handler.go: unstructuredDefaulter, schemaCoercingDecoder), its strategy
 * validates (pkg/registry/customresource/strategy.go).
 */
#include "object_schema.h"

#include "crd.h"

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
static vd_status refuse_patched(struct vdi_edited *edited, const struct vdi_out *patched, const char *why, struct vd_bytes what, struct vdi_http_status *status)
{
	vdi_faults_reset(&edited->faults);
	vdi_faults_add_text(&edited->faults, VDI_FAULT_INVALID, vd_bytes_of("patch"), vdi_out_slice(patched), "%s%.*s", why, (int) what.size, (const char *) what.data);
	return vdi_faults_refuse(&edited->faults, status, "", "", VD_BYTES_NONE);
}

/* A definition, whatever brought it; of a body the types were looked at before, and what it does not have was told. VD_BAD_REQUEST with a sentence. */
static vd_status conform_definition(struct vdi_tree *tree, struct vdi_node *root, struct vdi_unknown_fields *unknown, struct vdi_http_status *status, struct vd_error *reterr)
{
	vd_status result = vdi_crd_check_fields(tree, root, unknown, reterr);

	return result == VD_NOMEM ? no_memory(status) : result;
}

static vd_status conform(const struct vdi_edit *edit, struct vdi_tree *tree, struct vdi_node *root, struct vdi_unknown_fields *unknown, struct vdi_http_status *status,
			 struct vd_error *reterr)
{
	if (vdi_crd_is(edit->resource))
		return conform_definition(tree, root, unknown, status, reterr);
	return vdi_object_conform(edit->resource->schema, tree, root, unknown, status);
}

static vd_status refuse_body(const struct vdi_resource *resource, const char *why, struct vdi_http_status *status)
{
	vdi_http_status_set(status, 400, "BadRequest", "%s in version \"%s\" cannot be handled as a %s: %s", resource->kind, resource->version, resource->kind, why);
	return VD_INVALID;
}

vd_status vdi_object_conform_written(const struct vdi_edit *edit, struct vdi_tree *tree, struct vdi_node *root, struct vdi_edited *edited, struct vdi_http_status *status)
{
	bool			   is_patch = edit->patch != VDI_PATCH_NONE;
	struct vdi_unknown_fields *unknown = is_patch && edit->unknown != VDI_UNKNOWN_IGNORED ? &edited->unknown : NULL;
	struct vdi_out		   patched = VDI_OUT_INIT;
	struct vd_error		   error = { 0 };
	vd_status		   result;

	vdi_unknown_fields_reset(&edited->unknown);
	if (edit->resource->schema == NULL && !vdi_crd_is(edit->resource))
		return VD_OK;
	if (is_patch && (edit->unknown == VDI_UNKNOWN_REFUSED || vdi_crd_is(edit->resource)))
		vdi_tree_write(&patched, root);
	result = patched.failed ? no_memory(status) : conform(edit, tree, root, unknown, status, &error);
	if (result == VD_BAD_REQUEST && is_patch)
		result = refuse_patched(edited, &patched, "", vd_bytes_of(error.message), status);
	else if (result == VD_BAD_REQUEST)
		result = refuse_body(edit->resource, error.message, status);
	else if (result == VD_OK && edited->unknown.count && edit->unknown == VDI_UNKNOWN_REFUSED)
		result = refuse_patched(edited, &patched, "strict decoding error: ", vdi_out_slice(&edited->unknown.refusal), status);
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
