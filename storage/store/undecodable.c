#include "undecodable.h"

#include <stdio.h>

bool vdi_value_is_untransformed(struct vd_bytes value)
{
	return vd_bytes_has_prefix(value, vd_bytes_of("k8s:enc:")) ||
	       vd_bytes_equal(value, vd_bytes_of(VDI_VALUE_REFUSED));
}

static vd_status wrap(struct vd_error *error, const struct vd_kv *kv, const char *before)
{
	char inner[sizeof error->message];

	snprintf(inner, sizeof inner, "%s", error->message);
	return vd_error_set(error, VD_UNDECODABLE, "%s%s revision=%lld: %.200s", before,
			    vdi_value_is_untransformed(vd_kv_value(kv)) ?
				    "data from the storage is not transformable" :
				    "object not decodable",
			    (long long) kv->mod_rev, inner);
}

vd_status vdi_undecodable(struct vd_error *error, const struct vd_kv *kv)
{
	return wrap(error, kv, "Internal error occurred: ");
}

vd_status vdi_undecodable_item(struct vd_error *error, const struct vd_kv *kv)
{
	return wrap(error, kv, "");
}

/* Upstream recognizes here only values that could not be transformed. */
vd_status vdi_undecodable_deleted(struct vd_error *error, const struct vd_kv *kv)
{
	return vdi_value_is_untransformed(vd_kv_value(kv)) ?
		       wrap(error, kv, "saw a DELETED event, but object data is corrupt - ") :
		       vdi_undecodable(error, kv);
}
