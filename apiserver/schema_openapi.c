/* The schema of a kind in an OpenAPI v3 document. It is written from the text that the schema came as, so descriptions and examples are there; upstream
 * (pkg/controller/openapi/builder) publishes the structural schema with the same additions: apiVersion, kind, metadata and the group, version and kind.
 */
#include "schema_node.h"

static const char api_version_text[] =
	"\"apiVersion\":{\"description\":\"APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized schemas to the "
	"latest internal value, and may reject unrecognized values. More info: "
	"https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources\",\"type\":\"string\"}";
static const char kind_text[] =
	"\"kind\":{\"description\":\"Kind is a string value representing the REST resource this object represents. Servers may infer this from the endpoint the client "
	"submits requests to. Cannot be updated. In CamelCase. More info: "
	"https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds\",\"type\":\"string\"}";
static const char metadata_text[] = "\"metadata\":{\"description\":\"Standard object's metadata. More info: "
				    "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata\",\"type\":\"object\"}";

static void write_member(struct vdi_out *out, const struct vdi_node *member)
{
	vdi_out_comma(out);
	vdi_out_string(out, member->key);
	vdi_out_raw(out, ":");
	vdi_tree_write(out, member);
}

static void write_properties(struct vdi_out *out, const struct vdi_node *properties)
{
	vdi_out_key(out, "properties");
	vdi_out_raw(out, "{");
	vdi_out_raw(out, api_version_text);
	vdi_out_raw(out, ",");
	vdi_out_raw(out, kind_text);
	vdi_out_raw(out, ",");
	vdi_out_raw(out, metadata_text);
	for (const struct vdi_node *property = properties ? properties->first : NULL; property; property = property->next)
		if (!vdi_schema_is_meta(property->key))
			write_member(out, property);
	vdi_out_raw(out, "}");
}

static void write_root(struct vdi_out *out, const struct vdi_node *root)
{
	const struct vdi_node *properties = NULL;

	for (const struct vdi_node *member = root ? root->first : NULL; member; member = member->next) {
		if (vd_bytes_equal(member->key, vd_bytes_of("properties")))
			properties = member;
		else if (!vd_bytes_equal(member->key, vd_bytes_of("type")))
			write_member(out, member);
	}
	vdi_out_key(out, "type");
	vdi_out_text(out, "object");
	write_properties(out, properties);
}

void vdi_schema_write_open_api(struct vdi_out *out, const struct vdi_schema *schema, const char *group, const char *version, const char *kind)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root = NULL;

	vdi_out_raw(out, "{");
	if (schema && vdi_tree_parse(&tree, schema->text, &root, NULL) != VD_OK)
		out->failed = true; /* it was written from a tree: there is no memory */
	write_root(out, root);
	vdi_tree_fini(&tree);
	vdi_out_key(out, "x-kubernetes-group-version-kind");
	vdi_out_raw(out, "[{\"group\":");
	vdi_out_text(out, group);
	vdi_out_raw(out, ",\"version\":");
	vdi_out_text(out, version);
	vdi_out_raw(out, ",\"kind\":");
	vdi_out_text(out, kind);
	vdi_out_raw(out, "}]}");
}
