/* DeleteOptions. Of the protobuf form only what has a meaning here is looked at; unknown fields are skipped by wire type. Deleting with a
 * precondition that was not understood would be worse than refusing, so malformed bytes are refused.
 */
#include "delete_options.h"

#include "tree.h"

static vd_status bad(struct vdi_http_status *status, const char *what)
{
	vdi_http_status_set(status, 400, "BadRequest", "error decoding DeleteOptions: %s", what);
	return VD_INVALID;
}

void vdi_delete_options_fini(struct vdi_delete_options *options)
{
	vdi_free(options->text);
	memset(options, 0, sizeof *options);
}

static vd_status take(struct vdi_delete_options *options, struct vd_bytes uid, struct vd_bytes revision, bool dry_run)
{
	options->text = vdi_alloc(uid.size + revision.size + 1);
	if (options->text == NULL)
		return VD_NOMEM;
	if (uid.size)
		memcpy(options->text, uid.data, uid.size);
	if (revision.size)
		memcpy(options->text + uid.size, revision.data, revision.size);
	options->uid = (struct vd_bytes) { options->text, uid.size };
	options->revision = (struct vd_bytes) { options->text + uid.size, revision.size };
	options->dry_run = dry_run;
	return VD_OK;
}

static vd_status check_policy(struct vdi_tree *tree, const struct vdi_node *root, struct vdi_http_status *status)
{
	static const char *const policies[] = { "Background", "Foreground", "Orphan" };
	const struct vdi_node	*policy = vdi_tree_find(tree, root, "propagationPolicy");
	const struct vdi_node	*orphan = vdi_tree_find(tree, root, "orphanDependents");
	bool			 known = policy == NULL || policy->kind == VDI_NODE_NULL;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(policies) && !known; i++)
		known = vd_bytes_equal(vdi_tree_string_of(policy), vd_bytes_of(policies[i]));
	vdi_http_status_set(status, 422, "Invalid", "%s", "");
	if (!known)
		vdi_http_status_cause(status, "FieldValueNotSupported", "propagationPolicy",
				      "Unsupported value: \"%.*s\": supported values: \"Background\", \"Foreground\", \"Orphan\"",
				      (int) VDI_MIN(vdi_tree_string_of(policy).size, (size_t) 60),
				      vdi_tree_string_of(policy).size ? (const char *) vdi_tree_string_of(policy).data : "");
	if (orphan && orphan->kind != VDI_NODE_NULL && policy && policy->kind != VDI_NODE_NULL)
		vdi_http_status_cause(status, "FieldValueInvalid", "propagationPolicy",
				      "Invalid value: orphanDependents and deletionPropagation cannot be both set");
	if (status->cause_count == 0)
		return VD_OK;
	vdi_http_status_invalid(status, "meta.k8s.io", "DeleteOptions", VD_BYTES_NONE);
	return VD_INVALID;
}

static vd_status parse_tree(struct vdi_tree *tree, struct vd_bytes body, struct vdi_delete_options *options, struct vdi_http_status *status)
{
	const struct vdi_node *dry_run;
	struct vdi_node	      *root;
	struct vd_error	       error;
	vd_status	       result = vdi_tree_parse(tree, body, &root, &error);

	if (result == VD_NOMEM)
		return VD_NOMEM;
	if (result != VD_OK)
		return bad(status, error.message);
	if (root->kind != VDI_NODE_OBJECT)
		return bad(status, "the body must be a JSON object");
	VDI_TRY(check_policy(tree, root, status));
	dry_run = vdi_tree_find(tree, root, "dryRun");
	for (const struct vdi_node *value = dry_run ? dry_run->first : NULL; value; value = value->next)
		if (!vd_bytes_equal(vdi_tree_string_of(value), vd_bytes_of("All"))) {
			vdi_http_status_set(status, 422, "Invalid", "%s", "");
			vdi_http_status_cause(status, "FieldValueNotSupported", "dryRun", "Unsupported value: supported values: \"All\"");
			vdi_http_status_invalid(status, "meta.k8s.io", "DeleteOptions", VD_BYTES_NONE);
			return VD_INVALID;
		}
	return take(options, vdi_tree_string_of(vdi_tree_find(tree, root, "preconditions.uid")),
		    vdi_tree_string_of(vdi_tree_find(tree, root, "preconditions.resourceVersion")), dry_run && dry_run->count > 0);
}

/* ---- Protobuf ---- */

struct field {
	uint64_t	number;
	unsigned	wire_type;
	struct vd_bytes content; /* of wire type 2 */
};

static bool take_varint(struct vd_bytes *bytes, uint64_t *ret_value)
{
	const unsigned char *at = bytes->data;
	uint64_t	     value = 0;

	for (size_t i = 0; i < bytes->size && i < 10; i++) {
		value |= (uint64_t) (at[i] & 0x7F) << (7 * i);
		if (at[i] < 0x80) {
			bytes->data = at + i + 1;
			bytes->size -= i + 1;
			*ret_value = value;
			return true;
		}
	}
	return false;
}

static bool skip(struct vd_bytes *bytes, uint64_t size)
{
	if (size > bytes->size)
		return false;
	bytes->data = (const char *) bytes->data + size;
	bytes->size -= size;
	return true;
}

static bool take_field(struct vd_bytes *bytes, struct field *field)
{
	uint64_t tag, value;

	if (!take_varint(bytes, &tag) || tag >> 3 == 0)
		return false;
	field->number = tag >> 3;
	field->wire_type = (unsigned) (tag & 7);
	switch (field->wire_type) {
	case 0: return take_varint(bytes, &value);
	case 1: return skip(bytes, 8);
	case 5: return skip(bytes, 4);
	case 2:
		if (!take_varint(bytes, &value))
			return false;
		field->content = (struct vd_bytes) { bytes->data, (size_t) value };
		return skip(bytes, value);
	default: return false;
	}
}

/* The last field of this number that holds bytes; empty when there is none. False when malformed. */
static bool find_field(struct vd_bytes message, uint64_t number, struct vd_bytes *ret_content)
{
	*ret_content = VD_BYTES_NONE;
	while (message.size) {
		struct field field;

		if (!take_field(&message, &field))
			return false;
		if (field.number == number && field.wire_type == 2)
			*ret_content = field.content;
	}
	return true;
}

static vd_status parse_protobuf(struct vd_bytes body, struct vdi_delete_options *options, struct vdi_http_status *status)
{
	struct vd_bytes magic = { "k8s\0", 4 }, raw, preconditions, dry_run, uid, revision;

	if (!vd_bytes_has_prefix(body, magic))
		return bad(status, "not a Kubernetes protobuf message");
	(void) skip(&body, magic.size);
	if (!find_field(body, 2, &raw) || !find_field(raw, 2, &preconditions) || !find_field(raw, 5, &dry_run) ||
	    !find_field(preconditions, 1, &uid) || !find_field(preconditions, 2, &revision))
		return bad(status, "malformed protobuf message");
	return take(options, uid, revision, dry_run.size > 0);
}

vd_status vdi_delete_options_parse(struct vd_bytes body, bool protobuf, struct vdi_delete_options *ret_options, struct vdi_http_status *status)
{
	struct vdi_tree	  tree = VDI_TREE_INIT;
	struct vdi_delete_options options = { 0 };
	vd_status		  result = VD_OK;

	if (body.size && protobuf)
		result = parse_protobuf(body, &options, status);
	else if (body.size)
		result = parse_tree(&tree, body, &options, status);
	vdi_tree_fini(&tree);
	if (result == VD_NOMEM)
		vdi_http_status_set(status, 500, "InternalError", "Internal error occurred: out of memory");
	if (result == VD_OK)
		*ret_options = options;
	return result;
}
