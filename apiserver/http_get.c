/* GET of one object. */
#include "http_request.h"

static void got(struct vdi_request *request)
{
	if (request->result != VD_OK)
		vdi_request_fail_result(request, "get", request->result, &request->error);
	else
		vdi_request_reply_object(request, 200, request->object, vd_object_revision(request->object));
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
	if (!vdi_params_revision(request->params.resource_version, &revision, &request->status)) {
		vdi_request_fail(request, &request->status);
		return;
	}
	vdi_request_await(request, got);
	vdi_request_awaited(request,
			    vd_cacher_get(request->resource->cacher, request->route.namespace_name, request->route.name, revision,
					  vdi_request_got_object, request),
			    NULL);
}
