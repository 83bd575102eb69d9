/* The error of a value that cannot be read, in upstream's words. Mirrors kubernetes/apiserver
 * pkg/storage/etcd3/corrupt_obj_deleter.go and errors.go. */
#ifndef VDI_UNDECODABLE_H
#define VDI_UNDECODABLE_H

#include "base.h"

#include <vedette/store.h>

/* Stands for a value that is not encrypted although a rule requires it. */
#define VDI_VALUE_REFUSED "(vedette: this value is not encrypted)"

/* Returns true if the value could not be transformed: it is still encrypted, or was refused. */
bool vdi_value_is_untransformed(struct vd_bytes value);
/* Wraps the codec's error about the record: "Internal error occurred: object not decodable revision=7: ...",
 * or "... data from the storage is not transformable revision=7: ...". Returns VD_UNDECODABLE. */
vd_status vdi_undecodable(struct vd_error *error, const struct vd_kv *kv);
/* The same without "Internal error occurred: ", for an item of a list, whose error has a beginning of its
 * own. */
vd_status vdi_undecodable_item(struct vd_error *error, const struct vd_kv *kv);
/* The same for the last state of a deleted object, which a watch reports. */
vd_status vdi_undecodable_deleted(struct vd_error *error, const struct vd_kv *kv);

#endif
