/* Reviews of the caller itself: `kubectl auth whoami`, `auth can-i`, `auth can-i --list`. They are not
 * stored.
 *
 * The response to a SelfSubjectReview, SelfSubjectAccessReview or SelfSubjectRulesReview is the request's
 * object with a status. Bodies may be JSON or protobuf; responses are JSON, which every client of these
 * reviews accepts.
 */
#include <stdio.h>

#include "http_handlers.h"
#include "policy.h"
#include "protobuf.h"

enum review { REVIEW_WHO, REVIEW_ACCESS, REVIEW_RULES };

struct review_kind {
	const char *group, *plural, *kind;
};

static const struct review_kind kinds[] = {
	[REVIEW_WHO] = { "authentication.k8s.io", "selfsubjectreviews", "SelfSubjectReview" },
	[REVIEW_ACCESS] = { "authorization.k8s.io", "selfsubjectaccessreviews", "SelfSubjectAccessReview" },
	[REVIEW_RULES] = { "authorization.k8s.io", "selfsubjectrulesreviews", "SelfSubjectRulesReview" },
};

static bool find_kind(const struct vdi_route *route, enum review *ret_review)
{
	if (!vd_bytes_equal(route->version, vd_bytes_of("v1")) || route->name.size || route->has_namespace)
		return false;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(kinds); i++) {
		if (vd_bytes_equal(route->group, vd_bytes_of(kinds[i].group)) &&
		    vd_bytes_equal(route->plural, vd_bytes_of(kinds[i].plural))) {
			*ret_review = (enum review) i;
			return true;
		}
	}
	return false;
}

/* ---- Statuses ---- */

static struct vd_bytes text_at(struct vdi_tree *tree, const struct vdi_node *root, const char *path)
{
	return vdi_tree_string_of(vdi_tree_find(tree, root, path));
}

/* False: neither or both of the two attributes are set. */
static bool read_access(struct vdi_tree *tree, const struct vdi_node *root, struct vdi_access *ret_access)
{
	bool has_resource =
		vdi_tree_is(vdi_tree_find(tree, root, "spec.resourceAttributes"), VDI_NODE_OBJECT);
	bool has_path = vdi_tree_is(vdi_tree_find(tree, root, "spec.nonResourceAttributes"), VDI_NODE_OBJECT);

	if (has_path == has_resource)
		return false;
	if (has_path)
		*ret_access =
			(struct vdi_access) { .is_path = true,
					      .verb = text_at(tree, root, "spec.nonResourceAttributes.verb"),
					      .path = text_at(tree, root,
							      "spec.nonResourceAttributes.path") };
	else
		*ret_access = (struct vdi_access) {
			.verb = text_at(tree, root, "spec.resourceAttributes.verb"),
			.group = text_at(tree, root, "spec.resourceAttributes.group"),
			.resource = text_at(tree, root, "spec.resourceAttributes.resource"),
			.subresource = text_at(tree, root, "spec.resourceAttributes.subresource"),
			.name = text_at(tree, root, "spec.resourceAttributes.name"),
			.namespace_name = text_at(tree, root, "spec.resourceAttributes.namespace")
		};
	return true;
}

static void write_access(struct vdi_out *out, const struct vdi_request *request,
			 const struct vdi_access *access)
{
	const struct vdi_security *security = request->loop->security;
	char			   why[VDI_STATUS_MESSAGE_SIZE];
	bool may = !security->authenticates || vdi_policy_allows(security->policy, request->identity, access);

	vdi_out_key(out, "allowed");
	vdi_out_raw(out, may ? "true" : "false");
	if (may)
		return;
	vdi_access_explain(access, request->identity->user, why, sizeof why);
	vdi_out_member(out, "reason", vd_bytes_of(why));
}

static void write_rules(struct vdi_out *out, const struct vdi_request *request,
			struct vd_bytes namespace_name)
{
	const struct vdi_security *security = request->loop->security;

	if (security->authenticates)
		vdi_policy_write_rules(out, security->policy, request->identity, namespace_name);
	else
		vdi_out_raw(
			out,
			"\"resourceRules\":[{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]}],"
			"\"nonResourceRules\":[{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}]");
	vdi_out_raw(out, ",\"incomplete\":false");
}

/* ---- Response ---- */

static bool is_text(const struct vdi_node *node)
{
	return node == NULL || node->kind == VDI_NODE_NULL || node->kind == VDI_NODE_STRING;
}

/* Checks the types of all members that a review reads. */
static bool has_types(struct vdi_tree *tree, const struct vdi_node *root)
{
	static const char *const objects[] = { "metadata", "spec", "spec.resourceAttributes",
					       "spec.nonResourceAttributes" };
	static const char *const texts[] = { "kind", "apiVersion", "spec.namespace" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++)
		if (!is_text(vdi_tree_find(tree, root, texts[i])))
			return false;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(objects); i++) {
		const struct vdi_node *node = vdi_tree_find(tree, root, objects[i]);

		if (node && node->kind != VDI_NODE_OBJECT && node->kind != VDI_NODE_NULL)
			return false;
		for (const struct vdi_node *member =
			     i >= 2 && vdi_tree_is(node, VDI_NODE_OBJECT) ? node->first : NULL;
		     member; member = member->next)
			if (!is_text(member) &&
			    member->kind != VDI_NODE_OBJECT) /* fieldSelector and labelSelector are objects */
				return false;
	}
	return true;
}

static void reply(struct vdi_request *request, enum review review, struct vdi_tree *tree,
		  const struct vdi_node *root)
{
	struct vdi_out	       body = VDI_OUT_INIT;
	struct vdi_access      access;
	const struct vdi_node *spec = vdi_tree_find(tree, root, "spec");

	if (review == REVIEW_RULES && text_at(tree, root, "spec.namespace").size == 0) {
		vdi_http_status_set(&request->status, 400, "BadRequest", "no namespace on request");
		vdi_request_fail(request, &request->status);
		return;
	}
	if (review == REVIEW_ACCESS && !read_access(tree, root, &access)) {
		vdi_http_status_set(&request->status, 422, "Invalid", "%s", "");
		if (vdi_tree_is(vdi_tree_find(tree, root, "spec.resourceAttributes"), VDI_NODE_OBJECT))
			vdi_http_status_cause(
				&request->status, "FieldValueInvalid", "spec.nonResourceAttributes",
				"Invalid value: cannot be specified in combination with resourceAttributes");
		else
			vdi_http_status_cause(&request->status, "FieldValueInvalid",
					      "spec.resourceAttributes",
					      "Invalid value: null: exactly one of nonResourceAttributes or "
					      "resourceAttributes must be specified");
		vdi_http_status_invalid(&request->status, kinds[review].group, kinds[review].kind,
					VD_BYTES_NONE);
		vdi_request_fail(request, &request->status);
		return;
	}
	vdi_out_printf(&body,
		       "{\"kind\":\"%s\",\"apiVersion\":\"%s/v1\",\"metadata\":{\"creationTimestamp\":null}",
		       kinds[review].kind, kinds[review].group);
	if (spec) {
		vdi_out_key(&body, "spec");
		vdi_tree_write(&body, spec);
	}
	vdi_out_key(&body, "status");
	vdi_out_raw(&body, "{");
	if (review == REVIEW_WHO)
		vdi_identity_write(&body, "userInfo", request->identity);
	else if (review == REVIEW_ACCESS)
		write_access(&body, request, &access);
	else
		write_rules(&body, request, text_at(tree, root, "spec.namespace"));
	vdi_out_raw(&body, "}}\n");
	vdi_request_reply(request, 201, "application/json", "", &body);
}

static bool has_version(struct vdi_tree *tree, const struct vdi_node *root, enum review review)
{
	struct vd_bytes version = text_at(tree, root, "apiVersion");
	char		expected[64];

	(void) snprintf(expected, sizeof expected, "%s/v1", kinds[review].group);
	return version.size == 0 || vd_bytes_equal(version, vd_bytes_of(expected));
}

#define REVIEW_SIZE_MAX 65536 /* parsed on the loop */

static void review_body(struct vdi_request *request, enum review review)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	struct vd_error	 error = { 0 };
	vd_status	 status =
		vdi_tree_parse(&tree, (struct vd_bytes) { request->body, request->body_size }, &root, &error);

	if (status == VD_NOMEM) {
		vdi_request_fail_nomem(request);
	} else if (status != VD_OK || !vdi_tree_is(root, VDI_NODE_OBJECT)) {
		vdi_http_status_set(&request->status, 400, "BadRequest", "the body cannot be read: %s",
				    status == VD_OK ? "not an object" : error.message);
		vdi_request_fail(request, &request->status);
	} else if (text_at(&tree, root, "kind").size &&
		   !vd_bytes_equal(text_at(&tree, root, "kind"), vd_bytes_of(kinds[review].kind))) {
		vdi_http_status_set(&request->status, 400, "BadRequest", "the body is not a %s",
				    kinds[review].kind);
		vdi_request_fail(request, &request->status);
	} else if (!has_types(&tree, root)) {
		vdi_http_status_set(
			&request->status, 400, "BadRequest",
			"%s in version \"v1\" cannot be handled as a %s: a member has the wrong type",
			kinds[review].kind, kinds[review].kind);
		vdi_request_fail(request, &request->status);
	} else if (!has_version(&tree, root, review)) {
		vdi_http_status_set(
			&request->status, 400, "BadRequest",
			"the API version in the data (%.*s) does not match the expected API version (%s/v1)",
			(int) VDI_MIN(text_at(&tree, root, "apiVersion").size, (size_t) 200),
			(const char *) text_at(&tree, root, "apiVersion").data, kinds[review].group);
		vdi_request_fail(request, &request->status);
	} else {
		reply(request, review, &tree, root);
	}
	vdi_tree_fini(&tree);
}

/* Validates the parameters of a create (dryRun, fieldManager, fieldValidation) and negotiates JSON. */
static bool begin(struct vdi_request *request)
{
	struct vd_bytes accept = VD_BYTES_NONE;

	if (!vdi_params_validate_write(&request->params, "CreateOptions", false, &request->status)) {
		vdi_request_fail(request, &request->status);
		return false;
	}
	(void) vdi_http_header_get(&request->head, "Accept", &accept);
	if (vdi_negotiate(accept, VDI_FORMS_OBJECT, &request->form))
		return true;
	vdi_http_status_set(&request->status, 406, "NotAcceptable",
			    "only the following media types are accepted: application/json");
	vdi_request_fail(request, &request->status);
	return false;
}

bool vdi_handle_review(struct vdi_request *request)
{
	enum review	review;
	struct vd_bytes type;

	if (!find_kind(&request->route, &review))
		return false;
	if (request->head.method != VDI_HTTP_POST) {
		vdi_http_status_method(&request->status);
		vdi_request_fail(request, &request->status);
	} else if (!begin(request)) {
		return true;
	} else if (request->body_size > REVIEW_SIZE_MAX) {
		vdi_http_status_set(&request->status, 413, "RequestEntityTooLarge",
				    "Request entity too large: limit is %d", REVIEW_SIZE_MAX);
		vdi_request_fail(request, &request->status);
	} else if (!vdi_http_header_get(&request->head, "Content-Type", &type) ||
		   vdi_media_type_is(type, "application/json")) {
		review_body(request, review);
	} else if (!vdi_media_type_is(type, VDI_K8S_PROTO_TYPE)) {
		vdi_http_status_media_type(&request->status, "application/json, " VDI_K8S_PROTO_TYPE);
		vdi_request_fail(request, &request->status);
	} else if (vdi_request_decode_body(request)) {
		review_body(request, review);
	}
	return true;
}
