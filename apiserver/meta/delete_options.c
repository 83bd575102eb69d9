/* Parses DeleteOptions. Members that this server does not use are ignored. Malformed members are rejected,
 * because deleting without a precondition that was not understood would be worse than an error. */
#include "delete_options.h"

#include "k8s_proto.h"
#include "tree.h"

/* null counts as absent. */
static bool is_given(const struct vdi_node *node)
{
	return node && node->kind != VDI_NODE_NULL;
}

/* of options decoded from protobuf */
#define JSON_MAX ((size_t) 8 << 20)

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

static enum vdi_propagation propagation_of(struct vd_bytes text)
{
	if (vd_bytes_equal(text, vd_bytes_of("Background")))
		return VDI_PROPAGATION_BACKGROUND;
	if (vd_bytes_equal(text, vd_bytes_of("Foreground")))
		return VDI_PROPAGATION_FOREGROUND;
	return vd_bytes_equal(text, vd_bytes_of("Orphan")) ? VDI_PROPAGATION_ORPHAN : VDI_PROPAGATION_UNSET;
}

void vdi_delete_options_query(const struct vdi_params *params, struct vdi_delete_options *options)
{
	struct vdi_http_status ignored;

	options->propagation = propagation_of(params->propagation_policy);
	options->orphan_dependents = params->orphan_dependents;
	options->has_grace = params->grace_period_seconds.size > 0 &&
			     vdi_params_int(params->grace_period_seconds, &options->grace_s, &ignored);
}

static vd_status take_cascade(struct vdi_tree *tree, const struct vdi_node *root,
			      struct vdi_delete_options *options, struct vdi_http_status *status)
{
	const struct vdi_node *orphan = vdi_tree_find(tree, root, "orphanDependents");
	const struct vdi_node *grace = vdi_tree_find(tree, root, "gracePeriodSeconds");

	options->propagation =
		propagation_of(vdi_tree_string_of(vdi_tree_find(tree, root, "propagationPolicy")));
	if (is_given(orphan) && orphan->kind != VDI_NODE_TRUE && orphan->kind != VDI_NODE_FALSE)
		return bad(status, "orphanDependents must be true or false");
	options->orphan_dependents = !is_given(orphan)		   ? VD_UNSET :
				     orphan->kind == VDI_NODE_TRUE ? VD_TRUE :
								     VD_FALSE;
	options->has_grace = is_given(grace);
	if (!options->has_grace)
		return VD_OK;
	options->grace_s = vdi_tree_int_of(grace, INT64_MIN);
	return options->grace_s == INT64_MIN ? bad(status, "gracePeriodSeconds must be an integer") : VD_OK;
}

static vd_status take(struct vdi_delete_options *options, struct vd_bytes uid, struct vd_bytes revision,
		      bool dry_run)
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

static vd_status check_policy(struct vdi_tree *tree, const struct vdi_node *root,
			      struct vdi_http_status *status)
{
	static const char *const policies[] = { "Background", "Foreground", "Orphan" };
	const struct vdi_node	*policy = vdi_tree_find(tree, root, "propagationPolicy");
	const struct vdi_node	*orphan = vdi_tree_find(tree, root, "orphanDependents");
	bool			 known = !is_given(policy);

	for (size_t i = 0; i < VDI_ARRAY_SIZE(policies) && !known; i++)
		known = vd_bytes_equal(vdi_tree_string_of(policy), vd_bytes_of(policies[i]));
	vdi_http_status_set(status, 422, "Invalid", "%s", "");
	if (!known)
		vdi_http_status_cause(status, "FieldValueNotSupported", "propagationPolicy",
				      "Unsupported value: \"%.*s\": supported values: \"Foreground\", "
				      "\"Background\", \"Orphan\", \"nil\"",
				      (int) VDI_MIN(vdi_tree_string_of(policy).size, (size_t) 60),
				      vdi_tree_string_of(policy).size ?
					      (const char *) vdi_tree_string_of(policy).data :
					      "");
	if (is_given(orphan) && is_given(policy))
		vdi_http_status_cause(
			status, "FieldValueInvalid", "propagationPolicy",
			"Invalid value: orphanDependents and deletionPropagation cannot be both set");
	if (status->cause_count == 0)
		return VD_OK;
	vdi_http_status_invalid(status, "meta.k8s.io", "DeleteOptions", VD_BYTES_NONE);
	return VD_INVALID;
}

static bool is_text(const struct vdi_node *node)
{
	return !is_given(node) || node->kind == VDI_NODE_STRING;
}

/* Rejects what a typed decoder would reject: a precondition or a dry run in a wrong form must not become a
 * deletion. */
static vd_status check_types(struct vdi_tree *tree, const struct vdi_node *root,
			     struct vdi_http_status *status)
{
	const struct vdi_node *dry_run = vdi_tree_find(tree, root, "dryRun");
	const struct vdi_node *preconditions = vdi_tree_find(tree, root, "preconditions");
	const struct vdi_node *kind = vdi_tree_find(tree, root, "kind");

	if (!is_text(kind) ||
	    (is_given(kind) && kind->text.size && !vd_bytes_equal(kind->text, vd_bytes_of("DeleteOptions"))))
		return bad(status, "the body holds another kind");
	if (!is_text(vdi_tree_find(tree, root, "propagationPolicy")))
		return bad(status, "propagationPolicy must be a string");
	if (is_given(preconditions) && preconditions->kind != VDI_NODE_OBJECT)
		return bad(status, "preconditions must be an object");
	if (!is_text(vdi_tree_find(tree, root, "preconditions.uid")) ||
	    !is_text(vdi_tree_find(tree, root, "preconditions.resourceVersion")))
		return bad(status, "preconditions must be strings");
	if (is_given(dry_run) && dry_run->kind != VDI_NODE_ARRAY)
		return bad(status, "dryRun must be a list of strings");
	for (const struct vdi_node *value = is_given(dry_run) ? dry_run->first : NULL; value;
	     value = value->next)
		if (value->kind != VDI_NODE_STRING)
			return bad(status, "dryRun must be a list of strings");
	return VD_OK;
}

/* A precondition that is present and empty matches no object. The cacher takes an empty one as absent, so it
 * gets a text that no object has. */
static struct vd_bytes condition_of(const struct vdi_node *node)
{
	return vdi_tree_is(node, VDI_NODE_STRING) && node->text.size == 0 ? vd_bytes_of(" ") :
									    vdi_tree_string_of(node);
}

static vd_status parse_tree(struct vdi_tree *tree, struct vd_bytes body, struct vdi_delete_options *options,
			    struct vdi_http_status *status)
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
	VDI_TRY(check_types(tree, root, status));
	VDI_TRY(check_policy(tree, root, status));
	VDI_TRY(take_cascade(tree, root, options, status));
	dry_run = vdi_tree_find(tree, root, "dryRun");
	for (const struct vdi_node *value = dry_run ? dry_run->first : NULL; value; value = value->next)
		if (!vd_bytes_equal(vdi_tree_string_of(value), vd_bytes_of("All"))) {
			vdi_http_status_set(status, 422, "Invalid", "%s", "");
			vdi_http_status_cause(status, "FieldValueNotSupported", "dryRun",
					      "Unsupported value: [\"%.*s\"]: supported values: \"All\"",
					      (int) VDI_MIN(value->text.size, (size_t) 60),
					      value->text.size ? (const char *) value->text.data : "");
			vdi_http_status_invalid(status, "meta.k8s.io", "DeleteOptions", VD_BYTES_NONE);
			return VD_INVALID;
		}
	return take(options, condition_of(vdi_tree_find(tree, root, "preconditions.uid")),
		    condition_of(vdi_tree_find(tree, root, "preconditions.resourceVersion")),
		    dry_run && dry_run->count > 0);
}

/* Transcodes the body to JSON, then applies the same rules. */
static vd_status parse_protobuf(struct vdi_tree *tree, struct vd_bytes body,
				struct vdi_delete_options *options, struct vdi_http_status *status)
{
	struct vdi_k8s_envelope envelope;
	struct vdi_buffer	json;
	struct vd_error		error;
	vd_status		result;

	vdi_buffer_init(&json, JSON_MAX);
	result = vdi_k8s_proto_open(body, &envelope, &error);
	if (result == VD_OK && !vd_bytes_equal(envelope.kind, vd_bytes_of("DeleteOptions")))
		result = vd_error_set(&error, VD_BAD_REQUEST, "the body holds another kind");
	if (result == VD_OK)
		result = vdi_k8s_proto_to_json(body, &json, &error);
	if (result == VD_OK)
		result = parse_tree(tree, vdi_buffer_bytes(&json), options, status);
	else if (result != VD_NOMEM)
		result = bad(status, error.message);
	vdi_buffer_fini(&json);
	return result;
}

vd_status vdi_delete_options_parse(struct vd_bytes body, bool protobuf,
				   struct vdi_delete_options *ret_options, struct vdi_http_status *status)
{
	struct vdi_tree		  tree = VDI_TREE_INIT;
	struct vdi_delete_options options = { 0 };
	vd_status		  result = VD_OK;

	if (body.size && protobuf)
		result = parse_protobuf(&tree, body, &options, status);
	else if (body.size)
		result = parse_tree(&tree, body, &options, status);
	vdi_tree_fini(&tree);
	if (result == VD_NOMEM)
		vdi_http_status_set(status, 500, "InternalError", "Internal error occurred: out of memory");
	if (result == VD_OK)
		*ret_options = options;
	return result;
}
