/* Field numbers are those of github.com/google/gnostic openapiv2/OpenAPIv2.proto. Each message is written to
 * its own buffer first, because its length precedes it; this runs once per set of kinds. */
#include "openapi_v2.h"

#include <stdio.h>

static void put_varint(struct vdi_out *out, uint64_t value)
{
	do {
		unsigned char byte = (unsigned char) ((value & 0x7F) | (value > 0x7F ? 0x80 : 0));

		vdi_out_bytes(out, (struct vd_bytes) { &byte, 1 });
		value >>= 7;
	} while (value);
}

static void put_field(struct vdi_out *out, unsigned number, struct vd_bytes content)
{
	put_varint(out, number << 3 | 2);
	put_varint(out, content.size);
	vdi_out_bytes(out, content);
}

static void put_text(struct vdi_out *out, unsigned number, const char *text)
{
	put_field(out, number, vd_bytes_of(text));
}

/* Takes over message. */
static void put_message(struct vdi_out *out, unsigned number, struct vdi_out *message)
{
	out->failed |= message->failed;
	put_field(out, number, vdi_out_slice(message));
	vdi_out_fini(message);
}

static void put_parameter(struct vdi_out *operation, const char *name)
{
	struct vdi_out query = VDI_OUT_INIT, non_body = VDI_OUT_INIT, parameter = VDI_OUT_INIT,
		       item = VDI_OUT_INIT;

	put_text(&query, 2, "query");
	put_text(&query, 4, name);
	put_text(&query, 6, "string");
	put_message(&non_body, 3, &query);
	put_message(&parameter, 2, &non_body);
	put_message(&item, 1, &parameter);
	put_message(operation, 8, &item);
}

static void put_path(struct vdi_out *paths, const struct vdi_resource *resource)
{
	static const char *const parameters[] = { "dryRun", "fieldManager", "fieldValidation", "force" };
	struct vdi_out		 operation = VDI_OUT_INIT, extension = VDI_OUT_INIT, any = VDI_OUT_INIT,
		       item = VDI_OUT_INIT, named = VDI_OUT_INIT;
	struct vdi_out path = VDI_OUT_INIT, yaml = VDI_OUT_INIT;
	char	       version[VDI_RESOURCE_NAME_MAX];

	for (size_t i = 0; i < VDI_ARRAY_SIZE(parameters); i++)
		put_parameter(&operation, parameters[i]);
	vdi_out_printf(&yaml, "group: \"%s\"\nkind: %s\nversion: %s\n", resource->group, resource->kind,
		       resource->version);
	put_message(&any, 2, &yaml);
	put_text(&extension, 1, "x-kubernetes-group-version-kind");
	put_message(&extension, 2, &any);
	put_message(&operation, 13, &extension);
	put_message(&item, 8, &operation);
	vdi_out_printf(&path, "/api%s/%s%s/%s/{name}", *resource->group ? "s" : "",
		       vdi_resource_api_version(resource, version),
		       resource->namespaced ? "/namespaces/{namespace}" : "", resource->plural);
	put_message(&named, 1, &path);
	put_message(&named, 2, &item);
	put_message(paths, 2, &named);
}

void vdi_openapi_v2_write(struct vdi_out *out, const struct vdi_resources *resources)
{
	struct vdi_out info = VDI_OUT_INIT, paths = VDI_OUT_INIT;

	put_text(&info, 1, "vedette");
	put_text(&info, 2, "unversioned");
	for (size_t i = 0; i < resources->count; i++)
		put_path(&paths, resources->items[i]);
	put_text(out, 1, "2.0");
	put_message(out, 2, &info);
	put_message(out, 8, &paths);
}
