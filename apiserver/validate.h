/* What names, labels and annotations may look like. Pure functions; texts are upstream's (k8s.io/apimachinery pkg/util/validation). */
#ifndef VDI_VALIDATE_H
#define VDI_VALIDATE_H

#include "http_status.h"
#include "tree.h"

/* Each returns NULL when text is fine, else upstream's sentence. */
const char *vdi_validate_subdomain(struct vd_bytes text);   /* DNS-1123 subdomain: most names */
const char *vdi_validate_dns_label(struct vd_bytes text);   /* DNS-1123 label: namespaces */
const char *vdi_validate_path_segment(struct vd_bytes text);
const char *vdi_validate_qualified_name(struct vd_bytes text); /* label and annotation keys, finalizers */
const char *vdi_validate_label_value(struct vd_bytes text);
const char *vdi_validate_finalizer(struct vd_bytes text); /* of a namespace's spec: a standard one, or somebody's qualified name */

/* Adds a cause to status for each fault of the object's metadata (name, labels, annotations, finalizers). */
void vdi_validate_metadata(struct vdi_tree *tree, const struct vdi_node *object, bool is_namespace, struct vdi_http_status *status);

#endif
