/* A path comes from the client and is written into a header line and a message, so characters that could end
 * either are replaced. */
#include "unknown_fields.h"

#define NAMED_LENGTH_MAX 200

void vdi_unknown_fields_fini(struct vdi_unknown_fields *fields)
{
	vdi_out_fini(&fields->warnings);
	vdi_out_fini(&fields->refusal);
	fields->count = 0;
}

void vdi_unknown_fields_reset(struct vdi_unknown_fields *fields)
{
	vdi_out_reset(&fields->warnings);
	vdi_out_reset(&fields->refusal);
	fields->count = 0;
}

/* Writes a path that is inside two levels of quotes (the message's, and those of the header's quoted string):
 * printable characters only, and none that ends a quote. */
static void write_path(struct vdi_out *out, struct vd_bytes path)
{
	const char *text = path.data;

	for (size_t i = 0; i < path.size && i < NAMED_LENGTH_MAX; i++) {
		char character =
			text[i] < ' ' || text[i] == 0x7f || text[i] == '"' || text[i] == '\\' ? '?' : text[i];

		vdi_out_bytes(out, (struct vd_bytes) { &character, 1 });
	}
}

void vdi_unknown_fields_note(void *arg, struct vd_bytes path)
{
	struct vdi_unknown_fields *fields = arg;

	if (fields->count++ >= VDI_UNKNOWN_FIELDS_MAX)
		return;
	vdi_out_raw(&fields->warnings, "Warning: 299 - \"unknown field \\\"");
	write_path(&fields->warnings, path);
	vdi_out_raw(&fields->warnings, "\\\"\"\r\n");
	vdi_out_raw(&fields->refusal, fields->count > 1 ? ", unknown field \"" : "unknown field \"");
	write_path(&fields->refusal, path);
	vdi_out_raw(&fields->refusal, "\"");
}
