/* The object is encoded as protobuf and the result discarded: the transcoder knows each member's type and
 * reports unknown members. This costs one or two microseconds per KB. Custom kinds are checked against their
 * schema, CustomResourceDefinitions against the tables of crd_fields.c. Messages are upstream's where
 * possible (kubernetes/apiserver pkg/endpoints/handlers/create.go). */
#include "field_check.h"

#include "crd.h"
#include "hash.h"
#include "json_scan.h"
#include "k8s_proto.h"
#include "schema.h"

#define CHECKED_MAX ((size_t) 16 << 20)

static const struct vdi_k8s_message *message_of(const struct vdi_resource *resource)
{
	char version[VDI_RESOURCE_NAME_MAX];

	return vdi_k8s_kind_find(vd_bytes_of(vdi_resource_api_version(resource, version)),
				 vd_bytes_of(resource->kind));
}

static vd_status scan(const struct vdi_k8s_message *message, struct vd_bytes json,
		      void (*note)(void *arg, struct vd_bytes path), void *arg, struct vd_error *reterr)
{
	struct vdi_k8s_proto_options options = { .unknown = note, .arg = arg };
	struct vdi_buffer	     unused;
	vd_status		     status;

	vdi_buffer_init(&unused, CHECKED_MAX);
	status = vdi_k8s_proto_from_json(message, json, &options, &unused, reterr);
	vdi_buffer_fini(&unused);
	return status;
}

static void refuse(struct vdi_http_status *status, const struct vdi_resource *resource, const char *why,
		   struct vd_bytes what)
{
	vdi_http_status_set(status, 400, "BadRequest",
			    "%s in version \"%s\" cannot be handled as a %s: %s%.*s", resource->kind,
			    resource->version, resource->kind, why, (int) VDI_MIN(what.size, (size_t) 700),
			    what.size ? (const char *) what.data : "");
}

static vd_status conclude(const struct vdi_field_check *check, struct vdi_unknown_fields *unknown,
			  vd_status checked, const struct vd_error *error, struct vdi_http_status *status)
{
	if (checked == VD_NOMEM || vdi_unknown_fields_failed(unknown)) {
		vdi_http_status_set(status, 500, "InternalError", "Internal error occurred: out of memory");
		return VD_NOMEM;
	}
	if (checked == VD_BAD_REQUEST)
		refuse(status, check->resource, "", vd_bytes_of(error->message));
	else if (unknown->count && vd_bytes_equal(check->validation, vd_bytes_of("Strict")))
		refuse(status, check->resource, "strict decoding error: ", vdi_out_slice(&unknown->refusal));
	else
		return VD_OK;
	return VD_INVALID;
}

/* Reports the members that the schema of a custom kind does not have. */
static vd_status check_schema(const struct vdi_schema *schema, struct vd_bytes json,
			      struct vdi_unknown_fields *unknown)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	vd_status	 status = vdi_tree_parse(&tree, json, &root, NULL);

	if (status == VD_OK && root->kind == VDI_NODE_OBJECT)
		status = vdi_schema_prune(schema, &tree, root, vdi_unknown_fields_note, unknown);
	vdi_tree_fini(&tree);
	return status == VD_NOMEM ? VD_NOMEM : VD_OK;
}

static vd_status check_definition(struct vd_bytes json, struct vdi_unknown_fields *unknown,
				  struct vd_error *reterr)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	vd_status	 status = vdi_tree_parse(&tree, json, &root, NULL);

	if (status == VD_OK)
		status = vdi_crd_check_fields(&tree, root, unknown, reterr);
	else if (status == VD_BAD_REQUEST)
		status = VD_OK; /* the code that parses the object reports it */
	vdi_tree_fini(&tree);
	return status;
}

static vd_status check_body(const struct vdi_resource *resource, const struct vdi_k8s_message *message,
			    struct vd_bytes body, struct vdi_unknown_fields *unknown, struct vd_error *reterr)
{
	if (message)
		return scan(message, body, vdi_unknown_fields_note, unknown, reterr);
	if (resource->schema)
		return check_schema(resource->schema, body, unknown);
	return vdi_crd_is(resource) ? check_definition(body, unknown, reterr) : VD_OK;
}

/* body is valid JSON. */
static bool is_object(struct vd_bytes body)
{
	const char *at = body.data;

	for (size_t i = 0; i < body.size; i++)
		if (!strchr(" \t\r\n", at[i]))
			return at[i] == '{';
	return false;
}

vd_status vdi_field_check_body(const struct vdi_field_check *check, struct vd_bytes body,
			       struct vdi_out *warnings, struct vdi_http_status *status)
{
	bool whole =
		check->subresource.size == 0 || vd_bytes_equal(check->subresource, vd_bytes_of("status"));
	const struct vdi_k8s_message *message = whole ? message_of(check->resource) : NULL;
	struct vdi_unknown_fields     unknown = { .warnings = VDI_OUT_INIT, .refusal = VDI_OUT_INIT };
	struct vd_error		      error = { 0 };
	vd_status		      result;

	if (!whole || vdi_json_validate(body, NULL, NULL) != VD_OK || !is_object(body))
		return VD_OK; /* the code that parses the body reports it */
	result = conclude(check, &unknown, check_body(check->resource, message, body, &unknown, &error),
			  &error, status);
	if (result == VD_OK && unknown.count && !vd_bytes_equal(check->validation, vd_bytes_of("Ignore")))
		vdi_out_bytes(warnings, vdi_out_slice(&unknown.warnings));
	vdi_unknown_fields_fini(&unknown);
	return result;
}

bool vdi_field_check_has_schema(const struct vdi_resource *resource)
{
	return message_of(resource) != NULL;
}

vd_status vdi_field_check_metadata(const struct vdi_node *metadata, struct vd_error *reterr)
{
	struct vdi_out	text = VDI_OUT_INIT;
	struct vd_error error = { 0 };
	vd_status	status = VD_NOMEM;

	vdi_tree_write(&text, metadata);
	if (!text.failed)
		status = scan(vdi_k8s_object_meta(), vdi_out_slice(&text), NULL, NULL, &error);
	vdi_out_fini(&text);
	if (status == VD_BAD_REQUEST)
		return vd_error_set(reterr, status, "metadata.%s", error.message);
	return status == VD_NOMEM ? VD_NOMEM : VD_OK; /* an oversized object is reported elsewhere */
}

/* Unknown members of the present object (known), and the receiver of those that a patch adds. */
struct news {
	struct vdi_hash		   known; /* texts */
	struct vdi_tree		   memory;
	bool			   failed;
	struct vdi_unknown_fields *unknown;
	size_t			   count;
};

static void note_known(void *arg, struct vd_bytes path)
{
	struct news	*news = arg;
	struct vd_bytes *text = vdi_tree_take(&news->memory, sizeof *text);

	news->failed |=
		text == NULL || !vdi_tree_take_text(&news->memory, path, text) ||
		vdi_hash_put(&news->known, vdi_hash_bytes(path, vdi_hash_seed()), text, text, NULL) != VD_OK;
}

static void note_any(void *arg, struct vd_bytes path)
{
	struct news *news = arg;

	(void) path;
	news->count++;
}

static void note_new(void *arg, struct vd_bytes path)
{
	struct news *news = arg;

	if (vdi_hash_get(&news->known, vdi_hash_bytes(path, vdi_hash_seed()), &path) == NULL)
		vdi_unknown_fields_note(news->unknown, path);
}

/* Reports the unknown members of patched that current does not have. */
static vd_status report_new(const struct vdi_k8s_message *message, struct vd_bytes current,
			    struct vd_bytes patched, struct vdi_unknown_fields *unknown)
{
	struct news news = { .memory = VDI_TREE_INIT, .unknown = unknown };
	vd_status   status;

	vdi_hash_init(&news.known, vdi_hash_is_text, 0);
	status = scan(message, current, note_known, &news, NULL);
	if (status == VD_OK)
		status = scan(message, patched, note_new, &news, NULL);
	if (news.failed)
		status = VD_NOMEM;
	vdi_hash_fini(&news.known);
	vdi_tree_fini(&news.memory);
	return status == VD_NOMEM || vdi_unknown_fields_failed(unknown) ? VD_NOMEM : VD_OK;
}

vd_status vdi_field_check_patched(const struct vdi_resource *resource, struct vd_bytes current,
				  struct vd_bytes patched, struct vdi_unknown_fields *unknown,
				  struct vd_error *reterr)
{
	const struct vdi_k8s_message *message = message_of(resource);
	struct news		      any = { .count = 0 };
	vd_status		      checked, before;

	if (message == NULL)
		return VD_OK;
	checked = scan(message, patched, unknown ? note_any : NULL, &any, reterr);
	if (checked == VD_NOMEM)
		return VD_NOMEM;
	if (checked != VD_BAD_REQUEST)
		return any.count ? report_new(message, current, patched, unknown) : VD_OK;
	before = scan(message, current, NULL, NULL, NULL);
	return before == VD_BAD_REQUEST ? VD_OK : before == VD_NOMEM ? VD_NOMEM : VD_BAD_REQUEST;
}
