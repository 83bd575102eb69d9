/* GET of one object. */
#include "http_handlers.h"

static void got(struct vdi_request *request)
{
	if (request->result != VD_OK)
		vdi_request_fail_result(request, "get", request->result, &request->error);
	else
		vdi_request_reply_object(request, 200, request->object, vd_object_revision(request->object));
}

/* Takes the object from a list at an exact revision. */
static void got_exact(struct vdi_request *request)
{
	struct vd_object *object = request->result == VD_OK ? vd_list_next(request->list) : NULL;

	if (object) {
		vdi_request_reply_object(request, 200, object, vd_object_revision(object));
		return;
	}
	if (request->result == VD_OK)
		vd_error_set(&request->error, request->result = VD_NOT_FOUND, "key not found");
	vdi_request_fail_result(request, "get", request->result, &request->error);
}

/* Unlike upstream, where a get ignores resourceVersionMatch: returns the object as of exactly that
 * revision. */
static void get_exact(struct vdi_request *request, vd_rev revision)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_error	       error = { 0 };
	vd_status	       status;

	options.namespace_name = request->route.namespace_name;
	options.name = request->route.name;
	options.revision = revision;
	options.match = VD_MATCH_EXACT;
	vdi_request_await(request, got_exact);
	status = vd_cacher_list(request->resource->cacher, &options, vdi_request_got_list, request, &error);
	vdi_request_awaited(request, status, &error);
}

void vdi_handle_get(struct vdi_request *request)
{
	vd_rev revision;

	if (request->params.export_object) {
		vdi_http_status_set(&request->status, 400, "BadRequest",
				    "the export parameter, deprecated since v1.14, is no longer supported");
		vdi_request_fail(request, &request->status);
		return;
	}
	if (!vdi_params_revision(request->params.resource_version, &revision, &request->status) ||
	    (request->form.form == VDI_FORM_TABLE &&
	     !vdi_params_validate_include(&request->params, &request->status))) {
		vdi_request_fail(request, &request->status);
		return;
	}
	if (revision > 0 && vd_bytes_equal(request->params.resource_version_match, vd_bytes_of("Exact"))) {
		get_exact(request, revision);
		return;
	}
	vdi_request_await(request, got);
	vdi_request_awaited(request,
			    vd_cacher_get(request->resource->cacher, request->route.namespace_name,
					  request->route.name, revision, vdi_request_got_object, request),
			    NULL);
}
