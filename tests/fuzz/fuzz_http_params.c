/* Query strings, and the bodies of delete requests. */
#include "delete_options.h"
#include "fuzz.h"
#include "http_params.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct vdi_http_status status;
	struct vdi_delete_options     options;
	struct vdi_params	      params;
	struct vd_bytes		      bytes = { data, size };
	vd_rev			      revision;
	int64_t			      number;

	for (int protobuf = 0; protobuf < 2; protobuf++) {
		if (vdi_delete_options_parse(bytes, protobuf, &options, &status) != VD_OK)
			continue;
		VDI_CHECK(options.uid.size + options.revision.size <= size);
		vdi_delete_options_fini(&options);
	}
	if (vdi_params_parse(bytes, &params) != VD_OK)
		return 0;
	if (vdi_params_revision(params.resource_version, &revision, &status))
		VDI_CHECK(revision >= VD_REVISION_UNSET);
	(void) vdi_params_int(params.limit, &number, &status);
	vdi_params_default(&params);
	if (!vdi_params_validate_list(&params, &status))
		VDI_CHECK(status.code == 422 && status.cause_count > 0 && status.message[0]);
	(void) vdi_params_validate_write(&params, "PatchOptions", false, &status);
	vdi_params_fini(&params);
	return 0;
}
