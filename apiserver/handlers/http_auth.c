/* Authentication and authorization of requests, by client certificates, tokens and the policy.
 *
 * A bearer token takes precedence over a certificate, and an invalid one is rejected even if the certificate
 * is valid. Upstream: k8s.io/apiserver pkg/endpoints/filters (authentication.go, authorization.go),
 * pkg/endpoints/request/requestinfo.go for the verbs, pkg/endpoints/handlers/responsewriters/errors.go for
 * the texts.
 */
#include <stdio.h>

#include "http_handlers.h"
#include "policy.h"
#include "request_log.h"

static void fail_unauthorized(struct vdi_request *request)
{
	vdi_http_status_set(&request->status, 401, "Unauthorized", "Unauthorized");
	vdi_request_fail(request, &request->status);
}

/* Returns the token of "Bearer x", ignoring the scheme's case. False: another scheme, or none. */
static bool bearer_of(struct vd_bytes value, struct vd_bytes *ret_token)
{
	const char *data = value.data;

	if (value.size < 7 || data[6] != ' ' ||
	    !vdi_ascii_equal_fold((struct vd_bytes) { data, 6 }, "Bearer"))
		return false;
	data += 7;
	value.size -= 7;
	while (value.size && *data == ' ') {
		data++;
		value.size--;
	}
	*ret_token = (struct vd_bytes) { data, value.size };
	return true;
}

bool vdi_request_authenticate(struct vdi_request *request)
{
	const struct vdi_security *security = request->loop->security;
	struct vdi_identity	  *identity = NULL;
	struct vd_bytes		   value, token;

	if (!security->authenticates) {
		request->identity = vdi_identity_ref(security->anonymous);
		return true;
	}
	if (vdi_http_header_get(&request->head, "Authorization", &value) && bearer_of(value, &token)) {
		identity = security->tokens ? vdi_tokens_find(security->tokens, token) : NULL;
		if (identity == NULL) {
			fail_unauthorized(request);
			return false;
		}
	}
	if (identity == NULL)
		identity = request->connection->identity;
	request->identity = vdi_identity_ref(identity ? identity : security->anonymous);
	return true;
}

/* ---- Authorization ---- */

static struct vdi_access access_of(const struct vdi_request *request)
{
	const struct vdi_route *route = &request->route;

	if (route->kind != VDI_ROUTE_RESOURCE)
		return (struct vdi_access) { .is_path = true,
					     .verb = vd_bytes_of(vdi_request_verb(request)),
					     .path = route->path.size ? route->path : vd_bytes_of("/") };
	return (struct vdi_access) {
		.verb = vd_bytes_of(vdi_request_verb(request)),
		.group = route->group,
		.resource = route->plural,
		.subresource = route->subresource,
		.name = route->name,
		/* as upstream, a namespace object is in its own namespace */
		.namespace_name =
			route->has_namespace ? route->namespace_name :
			route->group.size == 0 && vd_bytes_equal(route->plural, vd_bytes_of("namespaces")) ?
					       route->name :
					       VD_BYTES_NONE
	};
}

static void fail_forbidden(struct vdi_request *request, const struct vdi_access *access)
{
	char group[256], resource[320], why[VDI_STATUS_MESSAGE_SIZE - 400];

	vdi_access_explain(access, request->identity->user, why, sizeof why);
	if (access->is_path) {
		vdi_http_status_set(&request->status, 403, "Forbidden", "forbidden: %s", why);
	} else {
		(void) snprintf(group, sizeof group, "%.*s",
				(int) VDI_MIN(access->group.size, sizeof group - 1),
				(const char *) access->group.data);
		(void) snprintf(resource, sizeof resource, "%.*s",
				(int) VDI_MIN(access->resource.size, (size_t) 63),
				(const char *) access->resource.data);
		if (access->name.size)
			vdi_http_status_set(&request->status, 403, "Forbidden",
					    "%s%s%s \"%.*s\" is forbidden: %s", resource, *group ? "." : "",
					    group, (int) VDI_MIN(access->name.size, (size_t) 253),
					    (const char *) access->name.data, why);
		else
			vdi_http_status_set(&request->status, 403, "Forbidden", "%s%s%s is forbidden: %s",
					    resource, *group ? "." : "", group, why);
		vdi_http_status_details(&request->status, access->name, group, resource);
	}
	vdi_request_fail(request, &request->status);
}

/* Every authenticated identity may make reviews of itself (upstream's role system:basic-user). */
static bool is_about_oneself(const struct vdi_access *access)
{
	if (access->is_path || !vd_bytes_equal(access->verb, vd_bytes_of("create")))
		return false;
	return (vd_bytes_equal(access->group, vd_bytes_of("authorization.k8s.io")) &&
		(vd_bytes_equal(access->resource, vd_bytes_of("selfsubjectaccessreviews")) ||
		 vd_bytes_equal(access->resource, vd_bytes_of("selfsubjectrulesreviews")))) ||
	       (vd_bytes_equal(access->group, vd_bytes_of("authentication.k8s.io")) &&
		vd_bytes_equal(access->resource, vd_bytes_of("selfsubjectreviews")));
}

/* Discovery, which kubectl and client-go read first (upstream's role system:discovery). */
static bool is_discovery(const struct vdi_request *request, const struct vdi_access *access)
{
	if (request->head.method != VDI_HTTP_GET && request->head.method != VDI_HTTP_HEAD)
		return false;
	switch (request->route.kind) {
	case VDI_ROUTE_API:
	case VDI_ROUTE_APIS:
	case VDI_ROUTE_GROUP:
	case VDI_ROUTE_VERSION: return true;
	case VDI_ROUTE_PLAIN: return vd_bytes_has_prefix(access->path, vd_bytes_of("/openapi/"));
	default: return false;
	}
}

/* Rejects impersonation: ignoring it would make `kubectl --as` report the caller's own permissions. */
static bool has_impersonation(const struct vdi_request *request)
{
	static const char prefix[] = "Impersonate-";

	for (size_t i = 0; i < request->head.header_count; i++) {
		struct vd_bytes name = request->head.headers[i].name;

		if (name.size > sizeof prefix - 1 &&
		    vdi_ascii_equal_fold((struct vd_bytes) { name.data, sizeof prefix - 1 }, prefix))
			return true;
	}
	return false;
}

bool vdi_request_authorize(struct vdi_request *request)
{
	const struct vdi_security *security = request->loop->security;
	struct vdi_access	   access = access_of(request);
	bool			   is_allowed =
		!security->authenticates || vdi_policy_allows(security->policy, request->identity, &access);
	bool is_anonymous = request->identity == security->anonymous;

	is_allowed = is_allowed ||
		     (!is_anonymous && (is_about_oneself(&access) || is_discovery(request, &access)));
	if (has_impersonation(request) && (is_allowed || !is_anonymous)) {
		vdi_request_log_decided(request->connection->request_log, request->identity, false);
		vdi_http_status_set(
			&request->status, 403, "Forbidden",
			"forbidden: User \"%s\" cannot impersonate: this server does not serve impersonation",
			request->identity->user);
		vdi_request_fail(request, &request->status);
		return false;
	}
	vdi_request_log_decided(request->connection->request_log, request->identity, is_allowed);
	if (is_allowed)
		return true;
	if (is_anonymous) /* ask for credentials first */
		fail_unauthorized(request);
	else
		fail_forbidden(request, &access);
	return false;
}
