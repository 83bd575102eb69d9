#include "schema_error.h"

const char *vdi_schema_type_name(enum vdi_schema_type type)
{
	static const char *const names[] = {
		"", "array", "boolean", "integer", "number", "object", "string"
	};

	return names[type];
}

struct vd_bytes vdi_schema_error_field(struct vdi_schema_validator *validator, const char *more,
				       struct vd_bytes more_text)
{
	struct vd_bytes path = vdi_out_slice(&validator->path);

	vdi_schema_validator_reset(validator, &validator->field);
	path.size = VDI_MIN(path.size, (size_t) VDI_SCHEMA_PATH_SIZE);
	vdi_out_bytes(&validator->field, validator->prefix);
	if (path.size && *(const char *) path.data == '.')
		path = (struct vd_bytes) { (const char *) path.data + 1, path.size - 1 };
	if (validator->field.size && path.size)
		vdi_out_raw(&validator->field,
			    "."); /* before an index too: upstream appends the whole path as one child */
	vdi_out_bytes(&validator->field, path);
	if (validator->field.size && *more)
		vdi_out_raw(&validator->field, more);
	vdi_out_bytes(&validator->field, more_text);
	if (validator->field.size == 0)
		/* upstream's field.Path prints this for an empty path */
		vdi_out_raw(&validator->field, "<nil>");
	return vdi_out_slice(&validator->field);
}

void vdi_schema_error_add(struct vdi_schema_validator *validator, const char *format, ...)
{
	va_list		arguments;
	struct vd_bytes at = validator->prefix;

	vdi_schema_validator_reset(validator, &validator->text);
	va_start(arguments, format);
	vdi_out_vprintf(&validator->text, format, arguments);
	va_end(arguments);
	if (at.size == 0)
		at = vd_bytes_of("<nil>");
	vdi_field_errors_add_text(validator->field_errors, VDI_FIELD_ERROR_INVALID, at, VD_BYTES_NONE, "%.*s",
				  (int) validator->text.size,
				  validator->text.size ? validator->text.data : "");
}
