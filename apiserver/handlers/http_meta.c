/* Requests for other things than objects: discovery and OpenAPI documents, version, health, metrics, status
 * page. */
#include "http_handlers.h"

#include <stdio.h>
#include <vedette/vedette.h>

#include "buffer.h"
#include "env.h"
#include "metrics.h"
#include "status_page.h"

#define METRICS_SIZE_MAX (64u << 20)

static const char text_type[] = "text/plain; charset=utf-8";

void vdi_handle_document(struct vdi_request *request)
{
	const struct vdi_document *document = vdi_documents_find(&request->loop->resource_set->documents,
								 request->route.path, request->form.form);
	struct vdi_out		   body = VDI_OUT_INIT;
	char			   headers[96];
	struct vd_bytes		   known;

	if (document == NULL) {
		vdi_http_status_unknown_path(&request->status);
		vdi_request_fail(request, &request->status);
		return;
	}
	(void) snprintf(headers, sizeof headers, "Vary: Accept\r\nETag: %s\r\n", document->etag);
	if (vdi_http_header_get(&request->head, "If-None-Match", &known) &&
	    vd_bytes_equal(known, vd_bytes_of(document->etag))) {
		vdi_request_reply(request, 304, NULL, headers, &body);
		return;
	}
	vdi_out_bytes(&body, vdi_out_slice(&document->body));
	vdi_request_reply(request, 200, document->content_type, headers, &body);
}

static void reply_version(struct vdi_request *request)
{
	struct vdi_out body = VDI_OUT_INIT;

	vdi_out_printf(
		&body,
		"{\"major\":\"1\",\"minor\":\"36\",\"gitVersion\":\"v1.36.0+vedette-%s\",\"gitCommit\":\"\","
		"\"gitTreeState\":\"\","
		"\"buildDate\":\"1970-01-01T00:00:00Z\",\"goVersion\":\"none\",\"compiler\":\"" __VERSION__
		"\",\"platform\":\"linux\"}\n",
		vd_version());
	vdi_request_reply(request, 200, "application/json", "", &body);
}

/* False: a remote store does not respond. A local store always responds. */
static bool store_answers(const struct vd_server *server)
{
	struct vd_store_status status;

	return vd_store_status_get(server->store, &status) == VD_OK && !status.unreachable;
}

/* Reports health: ready if the server has started, the store responds and every cache is ready. verbose lists
 * each check. */
static void reply_health(struct vdi_request *request, bool ready_only, const char *name)
{
	struct vd_server	      *server = request->server;
	const struct vdi_resource_set *resource_set = request->loop->resource_set;
	struct vdi_out		       body = VDI_OUT_INIT, list = VDI_OUT_INIT;
	struct vd_bytes		       query = request->head.query;
	bool verbose = query.size >= 7 && memmem(query.data, query.size, "verbose", 7) != NULL;
	bool ready = !server->draining && !(ready_only && server->is_unready);

	vdi_out_printf(&list, "%sshutdown %s\n", ready ? "[+]" : "[-]",
		       ready ? "ok" : "failed: shutting down");
	if (ready_only) {
		bool is_reachable = store_answers(server);

		ready &= is_reachable;
		vdi_out_printf(&list, "%sstore %s\n", is_reachable ? "[+]" : "[-]",
			       is_reachable ? "ok" : "failed: it does not answer");
	}
	for (size_t i = 0; ready_only && i < resource_set->resources.count; i++) {
		struct vdi_resource *resource = resource_set->resources.items[i];
		bool		     is_ready = vd_cacher_ready(resource->cacher, NULL) == VD_OK;
		char		     text[VDI_RESOURCE_NAME_MAX];

		ready &= is_ready;
		vdi_out_printf(&list, "%scache/%s %s\n", is_ready ? "[+]" : "[-]",
			       vdi_resource_name(resource, text), is_ready ? "ok" : "not ready");
	}
	if (!ready || verbose) {
		vdi_out_bytes(&body, vdi_out_slice(&list));
		vdi_out_printf(&body, "%s check %s\n", name, ready ? "passed" : "failed");
	} else {
		vdi_out_raw(&body, "ok");
	}
	body.failed |= list.failed;
	vdi_out_fini(&list);
	vdi_request_reply(request, ready ? 200 : 500, text_type, "X-Content-Type-Options: nosniff\r\n",
			  &body);
}

static void reply_metrics(struct vdi_request *request)
{
	struct vd_server *server = request->server;
	struct vdi_out	  body = VDI_OUT_INIT;
	struct vdi_buffer registered;

	vdi_buffer_init(&registered, METRICS_SIZE_MAX);
	vdi_out_printf(&body,
		       "# HELP vedette_http_connections Connections that are open.\n# TYPE "
		       "vedette_http_connections gauge\n"
		       "vedette_http_connections %lld\n"
		       "# HELP vedette_http_watches Watches that are open.\n# TYPE vedette_http_watches "
		       "gauge\nvedette_http_watches %llu\n"
		       "# HELP vedette_http_requests_total Requests that were read.\n# TYPE "
		       "vedette_http_requests_total counter\n"
		       "vedette_http_requests_total %llu\n"
		       "# HELP vedette_http_refused_total Requests and connections that were refused.\n# "
		       "TYPE vedette_http_refused_total counter\n"
		       "vedette_http_refused_total %llu\n"
		       "# HELP vedette_http_watch_events_total Events sent to watches.\n# TYPE "
		       "vedette_http_watch_events_total counter\n"
		       "vedette_http_watch_events_total %llu\n",
		       (long long) server->connections_open, (unsigned long long) server->watches_open,
		       (unsigned long long) server->request_total, (unsigned long long) server->refused_total,
		       (unsigned long long) server->watch_event_total);
	if (vdi_metrics_render(vdi_env_metrics(server->env), &registered) == VD_OK)
		vdi_out_bytes(&body, (struct vd_bytes) { registered.data, registered.size });
	else
		body.failed = true;
	vdi_buffer_fini(&registered);
	vdi_request_reply(request, 200, "text/plain; version=0.0.4; charset=utf-8", "", &body);
}

/* Sends the status page and its files. Its Content-Security-Policy permits only its own script and requests
 * to this server. */
static bool reply_page(struct vdi_request *request, struct vd_bytes path)
{
	const struct vdi_page_file *file = vdi_page_find(path);
	struct vdi_out		    body = VDI_OUT_INIT;

	if (file == NULL)
		return false;
	vdi_out_bytes(&body, (struct vd_bytes) { file->data, file->size });
	vdi_request_reply(
		request, 200, file->content_type,
		"X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; "
		"script-src 'self'; style-src 'self'; connect-src 'self'; frame-ancestors 'none'\r\n",
		&body);
	return true;
}

/* Sends the list of paths, for clients that accept JSON. */
static void reply_paths(struct vdi_request *request)
{
	const struct vdi_documents *documents = &request->loop->resource_set->documents;
	struct vdi_out		    body = VDI_OUT_INIT;

	vdi_out_raw(&body, "{\"paths\":[");
	for (size_t i = 0; i < documents->count; i++) {
		if (documents->items[i].form != VDI_FORM_OBJECT)
			continue;
		vdi_out_comma(&body);
		vdi_out_text(&body, documents->items[i].path);
	}
	vdi_out_raw(&body,
		    ",\"/debug/vedette\",\"/healthz\",\"/livez\",\"/metrics\",\"/readyz\",\"/version\"]}\n");
	vdi_request_reply(request, 200, "application/json", "", &body);
}

void vdi_handle_plain(struct vdi_request *request)
{
	struct vd_bytes path = request->route.path, accept;

	if (request->route.kind == VDI_ROUTE_ROOT) {
		if (vdi_http_header_get(&request->head, "Accept", &accept) &&
		    memmem(accept.data, accept.size, "text/html", 9))
			(void) reply_page(request, vd_bytes_of("/")); /* "/" always exists */
		else
			reply_paths(request);
	} else if (vd_bytes_equal(path, vd_bytes_of("/version"))) {
		reply_version(request);
	} else if (vd_bytes_equal(path, vd_bytes_of("/healthz")) ||
		   vd_bytes_equal(path, vd_bytes_of("/livez"))) {
		reply_health(request, false, "healthz");
	} else if (vd_bytes_equal(path, vd_bytes_of("/readyz"))) {
		reply_health(request, true, "readyz");
	} else if (vd_bytes_equal(path, vd_bytes_of("/metrics"))) {
		reply_metrics(request);
	} else if (vd_bytes_equal(path, vd_bytes_of("/debug/vedette"))) {
		vdi_handle_debug(request);
	} else if (!reply_page(request, path)) {
		request->form.form = VDI_FORM_OBJECT;
		vdi_handle_document(request);
	}
}
