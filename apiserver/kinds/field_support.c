#include "field_support.h"

#include "selector.h"

static bool is(struct vd_bytes text, const char *literal)
{
	return vd_bytes_equal(text, vd_bytes_of(literal));
}

static bool is_declared(const struct vdi_resource *resource, struct vd_bytes field)
{
	if (is(field, "metadata.name") || (resource->namespaced && is(field, "metadata.namespace")))
		return true;
	for (size_t i = 0; i < resource->field_count; i++)
		if (is(field, resource->fields[i].name))
			return true;
	return false;
}

bool vdi_field_support_check(const struct vdi_resource *resource, struct vd_bytes text,
			     struct vdi_http_status *ret_status)
{
	struct vdi_field_selector *selector;
	bool			   valid = true;

	if (text.size == 0 || vdi_field_selector_parse(text, &selector, NULL) != VD_OK)
		return true;
	for (size_t i = 0; i < vdi_field_selector_count(selector) && valid; i++) {
		struct vd_bytes field = vdi_field_selector_term(selector, i).field;

		valid = is_declared(resource, field);
		if (!valid)
			vdi_http_status_set(ret_status, 400, "BadRequest", "field label not supported: %.*s",
					    (int) VDI_MIN(field.size, (size_t) 253),
					    (const char *) field.data);
	}
	vdi_field_selector_free(selector);
	return valid;
}
