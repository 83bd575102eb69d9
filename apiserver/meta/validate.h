/* Validation of names, labels, annotations and other metadata. Pure functions; the texts are upstream's
 * (k8s.io/apimachinery pkg/util/validation). */
#ifndef VDI_VALIDATE_H
#define VDI_VALIDATE_H

#include "field_errors.h"
#include "tree.h"

#define VDI_NAME_ERRORS_MAX 3

/* Rules for the names of a kind's objects. resources_builtin.c has the rule of each built-in kind; custom
 * kinds use the first one. */
enum vdi_name_rule {
	VDI_NAME_SUBDOMAIN,    /* DNS-1123 subdomain, at most 253 characters */
	VDI_NAME_LABEL,	       /* DNS-1123 label, at most 63 characters */
	VDI_NAME_CRON_JOB,     /* a subdomain of at most 52 characters, because its Jobs' names add 11 */
	VDI_NAME_PATH_SEGMENT, /* any path segment; here at most 253 bytes, upstream has no bound */
};

/* Each returns NULL if text is valid, else upstream's message. */
const char *vdi_validate_subdomain(struct vd_bytes text); /* DNS-1123 subdomain: most names */
const char *vdi_validate_dns_label(struct vd_bytes text); /* DNS-1123 label: namespaces */
const char *vdi_validate_path_segment(struct vd_bytes text);
const char *vdi_validate_qualified_name(struct vd_bytes text); /* label and annotation keys, finalizers */
const char *vdi_validate_label_value(struct vd_bytes text);
/* A finalizer in a namespace's spec: a standard one, or a qualified name. */
const char *vdi_validate_finalizer(struct vd_bytes text);

/* Stores upstream's message for each error of a name, in upstream's order. Returns their number. */
size_t vdi_validate_name(enum vdi_name_rule rule, struct vd_bytes name,
			 const char *ret_why[VDI_NAME_ERRORS_MAX]);

/* Adds the errors of a label value, with upstream's texts and order. */
void vdi_validate_label_of(struct vdi_field_errors *field_errors, const char *field, struct vd_bytes value);

/* Adds the errors of the object's metadata (names, labels, annotations, owners, finalizers). */
void vdi_validate_metadata(struct vdi_tree *tree, const struct vdi_node *object, enum vdi_name_rule rule,
			   struct vdi_field_errors *field_errors);

#endif
