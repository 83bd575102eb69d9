/* Writes the schema of a kind in an OpenAPI v3 document. The output is made from the schema's source text, so
 * it has descriptions and examples. Upstream (pkg/controller/openapi/builder) publishes the structural schema
 * with the same additions: apiVersion, kind, metadata, and the group, version and kind. */
#include "schema_node.h"

static const char api_version_text[] =
	"\"apiVersion\":{\"description\":\"APIVersion defines the versioned schema of this representation of "
	"an object. Servers should convert recognized schemas to the "
	"latest internal value, and may reject unrecognized values. More info: "
	"https://git.k8s.io/community/contributors/devel/sig-architecture/"
	"api-conventions.md#resources\",\"type\":\"string\"}";
static const char kind_text[] =
	"\"kind\":{\"description\":\"Kind is a string value representing the REST resource this object "
	"represents. Servers may infer this from the endpoint the client "
	"submits requests to. Cannot be updated. In CamelCase. More info: "
	"https://git.k8s.io/community/contributors/devel/sig-architecture/"
	"api-conventions.md#types-kinds\",\"type\":\"string\"}";
/* The members of metadata that kubectl explain shows. */
static const struct {
	const char *name, *schema, *description;
} meta_members[] = {
	{ "annotations", "\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}",
	  "Annotations is an unstructured key value map stored with a resource that may be set by external "
	  "tools." },
	{ "creationTimestamp", "\"type\":\"string\",\"format\":\"date-time\"",
	  "CreationTimestamp is a timestamp representing the server time when this object was created." },
	{ "deletionGracePeriodSeconds", "\"type\":\"integer\",\"format\":\"int64\"",
	  "Number of seconds allowed for this object to gracefully terminate before it will be removed from "
	  "the system." },
	{ "deletionTimestamp", "\"type\":\"string\",\"format\":\"date-time\"",
	  "DeletionTimestamp is RFC 3339 date and time at which this resource will be deleted." },
	{ "finalizers", "\"type\":\"array\",\"items\":{\"type\":\"string\"}",
	  "Must be empty before the object is deleted from the registry." },
	{ "generateName", "\"type\":\"string\"",
	  "GenerateName is an optional prefix, used by the server, to generate a unique name ONLY IF the "
	  "Name field has not been provided." },
	{ "generation", "\"type\":\"integer\",\"format\":\"int64\"",
	  "A sequence number representing a specific generation of the desired state." },
	{ "labels", "\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}",
	  "Map of string keys and values that can be used to organize and categorize (scope and select) "
	  "objects." },
	{ "name", "\"type\":\"string\"", "Name must be unique within a namespace." },
	{ "namespace", "\"type\":\"string\"",
	  "Namespace defines the space within which each name must be unique." },
	{ "ownerReferences", "\"type\":\"array\",\"items\":{\"type\":\"object\"}",
	  "List of objects depended by this object." },
	{ "resourceVersion", "\"type\":\"string\"",
	  "An opaque value that represents the internal version of this object." },
	{ "uid", "\"type\":\"string\"", "UID is the unique in time and space value for this object." },
};

static void write_metadata(struct vdi_out *out)
{
	vdi_out_raw(out, "\"metadata\":{\"description\":\"Standard object's metadata. More info: "
			 "https://git.k8s.io/community/contributors/devel/sig-architecture/"
			 "api-conventions.md#metadata\",\"type\":\"object\",\"properties\":{");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(meta_members); i++)
		vdi_out_printf(out, "%s\"%s\":{%s,\"description\":\"%s\"}", i ? "," : "",
			       meta_members[i].name, meta_members[i].schema, meta_members[i].description);
	vdi_out_raw(out, "}}");
}

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
	write_metadata(out);
	for (const struct vdi_node *property = properties ? properties->first : NULL; property;
	     property = property->next)
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

void vdi_schema_write_open_api(struct vdi_out *out, const struct vdi_schema *schema, const char *group,
			       const char *version, const char *kind)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root = NULL;

	vdi_out_raw(out, "{");
	if (schema && vdi_tree_parse(&tree, schema->text, &root, NULL) != VD_OK)
		out->failed = true; /* the text came from a tree, so only memory can be missing */
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
