/* Structural schemas: a schema, an object and its previous state, separated by zero bytes. A compiled schema
 * is used for all steps of a write; defaulting and pruning change nothing the second time, and no validation
 * returns more errors than its limit. */
#include "fuzz.h"
#include "schema.h"

static void count_unknown(void *arg, struct vd_bytes path)
{
	VDI_CHECK(path.size > 0 || path.data != NULL);
	++*(size_t *) arg;
}

static void write_all(struct vdi_out *out, const struct vdi_node *node)
{
	vdi_out_reset(out);
	vdi_tree_write(out, node);
	VDI_CHECK(!out->failed);
}

static void use(const struct vdi_schema *schema, struct vdi_tree *tree, struct vdi_node *object,
		const struct vdi_node *old)
{
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_out		once = VDI_OUT_INIT, twice = VDI_OUT_INIT;
	size_t			unknown = 0;
	vd_status		status = vdi_schema_default(schema, tree, object);

	VDI_CHECK(status == VD_OK || status == VD_TOO_BIG);
	VDI_CHECK(vdi_schema_prune(schema, tree, object, count_unknown, &unknown) == VD_OK);
	write_all(&once, object);
	unknown = 0;
	VDI_CHECK(vdi_schema_prune(schema, tree, object, count_unknown, &unknown) == VD_OK);
	write_all(&twice, object);
	VDI_CHECK(unknown == 0 && vd_bytes_equal(vdi_out_slice(&once), vdi_out_slice(&twice)));
	status = vdi_schema_validate(schema, tree, object, NULL, VDI_SCHEMA_WHOLE, &field_errors);
	VDI_CHECK(status == (field_errors.count ? VD_INVALID : VD_OK) &&
		  field_errors.kept <= VDI_FIELD_ERRORS_MAX);
	(void) vdi_field_errors_message(&field_errors);
	vdi_field_errors_reset(&field_errors);
	status = vdi_schema_validate(schema, tree, object, old, VDI_SCHEMA_WHOLE, &field_errors);
	VDI_CHECK(status == (field_errors.count ? VD_INVALID : VD_OK));
	vdi_field_errors_reset(&field_errors);
	status = vdi_schema_validate(schema, tree, object, old, VDI_SCHEMA_STATUS, &field_errors);
	VDI_CHECK(status == (field_errors.count ? VD_INVALID : VD_OK));
	vdi_field_errors_fini(&field_errors);
	vdi_out_fini(&once);
	vdi_out_fini(&twice);
}

static struct vd_bytes next_part(const uint8_t **data, size_t *size)
{
	const uint8_t  *zero = *size ? memchr(*data, 0, *size) : NULL;
	struct vd_bytes part = { *data, zero ? (size_t) (zero - *data) : *size };

	*data = zero ? zero + 1 : *data + *size;
	*size -= zero ? part.size + 1 : *size;
	return part;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vd_bytes source_text = next_part(&data, &size), object_text = next_part(&data, &size),
			old_text = next_part(&data, &size);
	struct vdi_tree		tree = VDI_TREE_INIT;
	struct vdi_field_errors field_errors = { 0 };
	struct vdi_schema      *schema = NULL;
	struct vdi_node	       *source, *object, *old = NULL;
	struct vdi_out		out = VDI_OUT_INIT;

	if (vdi_tree_parse(&tree, source_text, &source, NULL) == VD_OK) {
		vd_status status = vdi_schema_compile(&tree, source, "schema", &schema, &field_errors);

		VDI_CHECK(status == (field_errors.count ? VD_INVALID : VD_OK) &&
			  (status == VD_OK) == (schema != NULL));
		(void) vdi_field_errors_message(&field_errors);
	}
	if (schema) {
		vdi_schema_write_open_api(&out, schema, "example.com", "v1", "Kind");
		VDI_CHECK(!out.failed && vdi_tree_parse(&tree, vdi_out_slice(&out), &object, NULL) == VD_OK);
	}
	if (schema && vdi_tree_parse(&tree, object_text, &object, NULL) == VD_OK &&
	    object->kind == VDI_NODE_OBJECT) {
		if (vdi_tree_parse(&tree, old_text, &old, NULL) != VD_OK || old->kind != VDI_NODE_OBJECT)
			old = NULL;
		use(schema, &tree, object, old);
	}
	vdi_out_fini(&out);
	vdi_field_errors_fini(&field_errors);
	(void) vdi_schema_free(schema);
	vdi_tree_fini(&tree);
	return 0;
}
