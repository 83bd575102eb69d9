/* Dispatches a complete request to its handler: route, admission limits, authorization, content
 * negotiation. */
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>

#include "deletion.h"
#include "http_handlers.h"
#include "http_metrics.h"
#include "kind_cache.h"
#include "loopback.h"
#include "protobuf.h"
#include "validate.h"

static void fail_unknown(struct vdi_request *request)
{
	vdi_http_status_unknown_path(&request->status);
	vdi_request_fail(request, &request->status);
}

static void fail_method(struct vdi_request *request)
{
	vdi_http_status_method(&request->status);
	vdi_request_fail(request, &request->status);
}

/* Rejects requests of foreign web pages, which could otherwise use the rights of the browser's user: by a
 * host name that resolves to 127.0.0.1 (DNS rebinding), if the server has no authentication, or by a
 * cross-site request, perhaps with the user's client certificate. With insecure_no_auth any host name is
 * valid. */
static bool is_from_elsewhere(const struct vdi_request *request)
{
	struct vd_bytes host = VD_BYTES_NONE, site;

	if (!request->loop->security->authenticates && !request->server->options.insecure_no_auth &&
	    vdi_http_header_get(&request->head, "Host", &host) && host.size && !vdi_loopback_has_host(host))
		return true;
	return vdi_http_header_get(&request->head, "Sec-Fetch-Site", &site) &&
	       !vd_bytes_equal(site, vd_bytes_of("same-origin")) &&
	       !vd_bytes_equal(site, vd_bytes_of("none"));
}

static bool wants_pretty(const struct vdi_request *request)
{
	static const char *const people[] = { "curl", "Wget", "Mozilla/5.0" };
	struct vd_bytes		 agent;

	if (request->params.pretty != VD_UNSET)
		return request->params.pretty == VD_TRUE;
	if (!vdi_http_header_get(&request->head, "User-Agent", &agent))
		return false;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(people); i++)
		if (vd_bytes_has_prefix(agent, vd_bytes_of(people[i])))
			return true;
	return false;
}

static bool negotiate(struct vdi_request *request, unsigned forms)
{
	struct vd_bytes accept = VD_BYTES_NONE;

	(void) vdi_http_header_get(&request->head, "Accept", &accept);
	if (request->resource)
		forms |= VDI_FORMS_PROTOBUF_METADATA |
			 (vdi_request_serves_protobuf(request) ? VDI_FORMS_PROTOBUF : 0);
	if (vdi_negotiate(accept, forms, &request->form))
		return true;
	vdi_http_status_set(&request->status, 406, "NotAcceptable",
			    "only the following media types are accepted: application/json%s",
			    forms & VDI_FORMS_PROTOBUF ? ", " VDI_K8S_PROTO_TYPE : "");
	vdi_request_fail(request, &request->status);
	return false;
}

static void fail_terminating(struct vdi_request *request)
{
	vdi_http_status_set(&request->status, 405, "MethodNotAllowed",
			    "create not allowed while custom resource definition is terminating");
	vdi_http_status_details(&request->status, VD_BYTES_NONE, request->resource->group,
				request->resource->plural);
	vdi_request_fail(request, &request->status);
}

/* Counts the create: the deletion of a CustomResourceDefinition waits for creates in flight. */
static void begin_create(struct vdi_request *request)
{
	atomic_fetch_add(&request->resource->cache->create_count, 1);
	request->is_creating = true;
	vdi_handle_create(request);
}

static void dispatch_collection(struct vdi_request *request)
{
	bool watch = request->params.watch || request->route.watch_prefix;

	switch (request->head.method) {
	case VDI_HTTP_GET:
		if (!negotiate(request, VDI_FORMS_LIST))
			return;
		if (watch)
			vdi_handle_watch(request);
		else
			vdi_handle_list(request);
		break;
	case VDI_HTTP_POST:
		if (request->route.watch_prefix ||
		    (request->resource->namespaced && !request->route.has_namespace))
			fail_method(request);
		else if (request->resource->is_terminating)
			fail_terminating(request);
		else if (negotiate(request, VDI_FORMS_RESOURCE))
			begin_create(request);
		break;
	case VDI_HTTP_DELETE:
		/* No collection delete of namespaces: the contents of each must be deleted first. */
		if (request->route.watch_prefix ||
		    (request->resource->namespaced && !request->route.has_namespace) ||
		    vdi_resource_is_namespaces(request->resource))
			fail_method(request);
		else if (negotiate(request, VDI_FORMS_LIST))
			vdi_handle_delete_collection(request);
		break;
	default: fail_method(request);
	}
}

static void dispatch_object(struct vdi_request *request)
{
	if (request->route.watch_prefix) {
		if (request->head.method != VDI_HTTP_GET)
			fail_method(request);
		else if (negotiate(request, VDI_FORMS_LIST))
			vdi_handle_watch(request);
		return;
	}
	if (!negotiate(request, VDI_FORMS_RESOURCE))
		return;
	switch (request->head.method) {
	case VDI_HTTP_GET: vdi_handle_get(request); break;
	case VDI_HTTP_PUT: vdi_handle_update(request); break;
	case VDI_HTTP_PATCH: vdi_handle_patch(request); break;
	case VDI_HTTP_DELETE: vdi_handle_delete(request); break;
	default: fail_method(request);
	}
}

static void dispatch_subresource(struct vdi_request *request)
{
	bool is_status = vd_bytes_equal(request->route.subresource, vd_bytes_of("status")) &&
			 request->resource->has_status;
	bool is_scale = vd_bytes_equal(request->route.subresource, vd_bytes_of("scale")) &&
			request->resource->has_scale;

	bool is_finalize = vd_bytes_equal(request->route.subresource, vd_bytes_of("finalize")) &&
			   vdi_resource_is_namespaces(request->resource);

	if (is_finalize && request->head.method != VDI_HTTP_PUT) {
		fail_method(request);
		return;
	}
	if (!is_status && !is_scale && !is_finalize) {
		fail_unknown(request);
		return;
	}
	if (!negotiate(request, is_scale ? VDI_FORMS_OBJECT : VDI_FORMS_RESOURCE))
		return;
	switch (request->head.method) {
	case VDI_HTTP_GET:
		if (is_scale)
			vdi_handle_get_scale(request);
		else
			vdi_handle_get(request);
		break;
	case VDI_HTTP_PUT: vdi_handle_update(request); break;
	case VDI_HTTP_PATCH: vdi_handle_patch(request); break;
	default: fail_method(request);
	}
}

static bool is_long_running(const struct vdi_request *request)
{
	return request->route.watch_prefix || (request->params.watch && request->route.name.size == 0);
}

static struct vd_bytes peer_of(const struct vdi_request *request, char buffer[INET6_ADDRSTRLEN])
{
	struct sockaddr_storage address = { 0 };
	socklen_t		size = sizeof address;
	const char	       *text = NULL;

	if (getpeername(request->connection->fd, (struct sockaddr *) &address, &size) == 0) {
		if (address.ss_family == AF_INET)
			text = inet_ntop(AF_INET, &((struct sockaddr_in *) &address)->sin_addr, buffer,
					 INET6_ADDRSTRLEN);
		else if (address.ss_family == AF_INET6)
			text = inet_ntop(AF_INET6, &((struct sockaddr_in6 *) &address)->sin6_addr, buffer,
					 INET6_ADDRSTRLEN);
	}
	return vd_bytes_of(text ? text : "");
}

/* Returns true if the unread responses of the client exceed its limit. */
static bool owes_too_much(const struct vdi_request *request)
{
	int64_t max = request->server->options.client_bytes_max;

	return max && atomic_load_explicit(&request->account->answer_bytes, memory_order_relaxed) >= max;
}

/* Applies the limits of all clients together and of this client. A request never waits for room: the response
 * is 429 at once. */
static bool admit(struct vdi_request *request)
{
	const struct vd_server_options *options = &request->server->options;
	struct vd_bytes			agent = VD_BYTES_NONE, client;
	char				buffer[INET6_ADDRSTRLEN];

	if (options->client_request_count_max == 0 && options->client_watch_count_max == 0 &&
	    options->client_bytes_max == 0 && options->request_count_max == 0 &&
	    options->mutating_request_count_max == 0)
		return true;
	if (request->loop->security->authenticates) {
		client = vd_bytes_of(request->identity->user);
	} else {
		client = peer_of(request, buffer);
		(void) vdi_http_header_get(&request->head, "User-Agent", &agent);
	}
	if (vdi_account_get(&request->server->accounts, client, agent, &request->account) != VD_OK) {
		vdi_request_fail_nomem(request);
		return false;
	}
	if (is_long_running(request))
		return true;
	request->kind = request->head.method == VDI_HTTP_GET ? VDI_REQUEST_READING : VDI_REQUEST_MUTATING;
	if (owes_too_much(request) ||
	    !vdi_account_admit(&request->account->requests, options->client_request_count_max)) {
		vdi_request_fail_too_many(request);
		return false;
	}
	if (!vdi_budget_take(&request->server->accounts, request->account, request->kind)) {
		atomic_fetch_sub(&request->account->requests, 1);
		vdi_request_fail_too_many(request);
		return false;
	}
	request->is_counted = true;
	return true;
}

/* Applies the query parameter timeout, which can only shorten the request's deadline. */
static bool limit_time(struct vdi_request *request)
{
	vd_dur timeout;

	if (!vdi_params_duration(request->params.timeout, &timeout, &request->status)) {
		vdi_request_fail(request, &request->status);
		return false;
	}
	/* As upstream, writes of one object have a shorter limit. */
	request->is_short = request->head.method != VDI_HTTP_GET &&
			    (request->head.method != VDI_HTTP_DELETE || request->route.name.size);
	if (timeout.ns <= 0 || timeout.ns > request->server->options.request_timeout.ns)
		timeout = request->server->options.request_timeout;
	if (request->is_short && timeout.ns > request->server->write_limit.ns)
		timeout = request->server->write_limit;
	else
		request->is_short = false;
	if (timeout.ns < request->server->options.request_timeout.ns)
		vdi_http_connection_limit(request->connection, timeout);
	return true;
}

/* As upstream's registry (pkg/registry/generic/registry/store.go), rejects a name that cannot be a path
 * segment before looking it up. */
static bool has_storable_name(struct vdi_request *request)
{
	struct vd_bytes name = request->route.name;
	const char     *why = name.size ? vdi_validate_path_segment(name) : NULL;

	if (why == NULL)
		return true;
	vdi_http_status_set(&request->status, 400, "BadRequest", "Name parameter invalid: \"%.*s\": %s",
			    (int) VDI_MIN(name.size, (size_t) 253), (const char *) name.data, why);
	vdi_request_fail(request, &request->status);
	return false;
}

static bool begin(struct vdi_request *request)
{
	if (!request->is_admitted && (!admit(request) || (!is_long_running(request) && !limit_time(request))))
		return false;
	request->is_admitted = true;
	return true;
}

static void find_kind(struct vdi_request *request)
{
	const struct vdi_route *route = &request->route;

	request->resource = vdi_resource_ref(vdi_resources_find(&request->loop->resource_set->resources,
								route->group, route->version, route->plural));
}

static void dispatch_known(struct vdi_request *request)
{
	struct vdi_route *route = &request->route;

	/* namespaces/x/y is y in namespace x; cluster-scoped kinds have no such path, and namespaced kinds
	 * need it for a single object. */
	if ((route->has_namespace && !request->resource->namespaced) ||
	    (route->name.size && request->resource->namespaced && !route->has_namespace)) {
		fail_unknown(request);
		return;
	}
	if (request->server->options.read_only && request->head.method != VDI_HTTP_GET) {
		fail_method(request);
		return;
	}
	if (!has_storable_name(request) || !begin(request))
		return;
	if (request->resource->deprecation)
		vdi_out_raw(&request->warnings, request->resource->deprecation);
	if (route->subresource.size)
		dispatch_subresource(request);
	else if (route->name.size)
		dispatch_object(request);
	else
		dispatch_collection(request);
}

/* ---- A kind that is not served, or not yet ----
 *
 * Another server may have stored its definition, and clients that read the definition there see it as
 * Established. So this server looks for the definition in the store; if it exists, the request waits until
 * this server serves it or has decided not to. Upstream responds 404 while its informer is behind
 * (apiextensions-apiserver pkg/apiserver/customresource_handler.go).
 */

/* Writes the definition's name. False: no definition can have it. */
static bool name_definition(const struct vdi_request *request, char name[256])
{
	const struct vdi_route *route = &request->route;
	int size = snprintf(name, 256, "%.*s.%.*s", (int) VDI_MIN(route->plural.size, (size_t) 254),
			    route->plural.size ? (const char *) route->plural.data : "",
			    (int) VDI_MIN(route->group.size, (size_t) 254),
			    route->group.size ? (const char *) route->group.data : "");

	return size <= 253 && route->group.size && memchr(route->group.data, '.', route->group.size) &&
	       vdi_validate_path_segment(vd_bytes_of(name)) == NULL;
}

/* Releases the result, which belongs to the cache of the definitions. */
static void forget_definitions(struct vdi_request *request)
{
	vdi_request_drop_result(request);
	request->resource = vdi_resource_unref(request->resource);
}

static void kind_decided(void *arg, vd_status status)
{
	vdi_request_got_object(arg, status, NULL, 0, NULL);
}

static void got_decision(struct vdi_request *request)
{
	forget_definitions(request);
	if (request->result == VD_NOMEM) {
		vdi_request_fail_nomem(request);
		return;
	}
	if (request->result != VD_OK) {
		vdi_http_status_set(
			&request->status, 503, "ServiceUnavailable",
			"the resource is defined and will be served soon, please try again later");
		request->status.retry_after_s = 1;
		vdi_request_fail(request, &request->status);
		return;
	}
	vdi_http_loop_freshen(request->loop);
	find_kind(request);
	if (request->resource)
		dispatch_known(request);
	else
		fail_unknown(request);
}

static void got_definition(struct vdi_request *request)
{
	char   name[256];
	vd_rev revision = request->object ? vd_object_revision(request->object) : 0;

	(void) name_definition(request, name);
	if (request->result == VD_OK) {
		vdi_request_await(request, got_decision);
		vdi_request_awaited(request,
				    vdi_kinds_await(&request->server->kinds, vd_bytes_of(name), revision,
						    kind_decided, request),
				    NULL);
		return;
	}
	forget_definitions(request);
	if (request->result == VD_NOT_FOUND) {
		fail_unknown(request);
		return;
	}
	vdi_http_status_of(&request->status, "get", "apiextensions.k8s.io", "customresourcedefinitions",
			   vd_bytes_of(name), request->result, &request->error);
	vdi_request_fail(request, &request->status);
}

static void dispatch_unknown(struct vdi_request *request)
{
	struct vdi_resource *definitions = vdi_resources_find(
		&request->loop->resource_set->resources, vd_bytes_of("apiextensions.k8s.io"),
		vd_bytes_of("v1"), vd_bytes_of("customresourcedefinitions"));
	char name[256];

	if (request->server->kinds.definitions == NULL || definitions == NULL ||
	    !name_definition(request, name)) {
		fail_unknown(request);
		return;
	}
	request->resource = vdi_resource_ref(definitions); /* while one of its objects is awaited */
	if (!begin(request))
		return;
	vdi_request_await(request, got_definition);
	vdi_request_awaited(request,
			    vd_cacher_get(definitions->cacher, VD_BYTES_NONE, vd_bytes_of(name),
					  VD_REVISION_UNSET, vdi_request_got_object, request),
			    NULL);
}

static void dispatch_resource(struct vdi_request *request)
{
	if (vdi_handle_review(request))
		return;
	find_kind(request);
	if (request->resource)
		dispatch_known(request);
	else
		dispatch_unknown(request);
}

void vdi_request_dispatch(struct vdi_request *request)
{
	vdi_http_loop_freshen(request->loop);
	vdi_http_metrics_begin(request, &request->inflight);
	request->pretty = wants_pretty(request);
	if (is_from_elsewhere(request)) {
		vdi_http_status_set(&request->status, 403, "Forbidden",
				    "requests from other sites are not served");
		vdi_request_fail(request, &request->status);
		return;
	}
	if (!vdi_request_authenticate(request) || !vdi_request_authorize(request))
		return;
	switch (request->route.kind) {
	case VDI_ROUTE_BAD:
		vdi_http_status_set(&request->status, 400, "BadRequest", "the request path is malformed");
		vdi_request_fail(request, &request->status);
		break;
	case VDI_ROUTE_API:
	case VDI_ROUTE_APIS:
	case VDI_ROUTE_GROUP:
	case VDI_ROUTE_VERSION:
		if (request->head.method != VDI_HTTP_GET && request->head.method != VDI_HTTP_HEAD)
			fail_method(request);
		else if (negotiate(request, VDI_FORMS_DISCOVERY))
			vdi_handle_document(request);
		break;
	case VDI_ROUTE_ROOT:
	case VDI_ROUTE_PLAIN:
		if (request->head.method != VDI_HTTP_GET && request->head.method != VDI_HTTP_HEAD)
			fail_method(request);
		else
			vdi_handle_plain(request);
		break;
	case VDI_ROUTE_RESOURCE: dispatch_resource(request); break;
	case VDI_ROUTE_NONE: fail_unknown(request);
	}
}
