/* What names, labels and annotations may look like. Pure functions; texts are upstream's (k8s.io/apimachinery
 * pkg/util/validation). */
#ifndef VDI_VALIDATE_H
#define VDI_VALIDATE_H

#include "faults.h"
#include "tree.h"

#define VDI_NAME_FAULTS_MAX 3

/* How the objects of a kind may be named. resources_builtin.c has the rule of each kind; custom kinds have
 * the first one. */
enum vdi_name_rule {
	VDI_NAME_SUBDOMAIN,    /* DNS-1123 subdomain, at most 253 characters */
	VDI_NAME_LABEL,	       /* DNS-1123 label, at most 63 characters */
	VDI_NAME_CRON_JOB,     /* a subdomain of at most 52 characters: its jobs' names have 11 more */
	VDI_NAME_PATH_SEGMENT, /* whatever a path can hold; here at most 253 bytes, upstream has no bound */
};

/* Each returns NULL when text is fine, else upstream's sentence. */
const char *vdi_validate_subdomain(struct vd_bytes text); /* DNS-1123 subdomain: most names */
const char *vdi_validate_dns_label(struct vd_bytes text); /* DNS-1123 label: namespaces */
const char *vdi_validate_path_segment(struct vd_bytes text);
const char *vdi_validate_qualified_name(struct vd_bytes text); /* label and annotation keys, finalizers */
const char *vdi_validate_label_value(struct vd_bytes text);
const char *vdi_validate_finalizer(
	struct vd_bytes text); /* of a namespace's spec: a standard one, or somebody's qualified name */

/* Writes upstream's sentence for each fault of a name, in upstream's order. Returns their number. */
size_t vdi_validate_name(enum vdi_name_rule rule, struct vd_bytes name,
			 const char *ret_why[VDI_NAME_FAULTS_MAX]);

/* Adds the faults of a label's value, in upstream's words and order. */
void vdi_validate_label_of(struct vdi_faults *faults, const char *field, struct vd_bytes value);

/* Adds the faults of the object's metadata (names, labels, annotations, owners, finalizers). */
void vdi_validate_metadata(struct vdi_tree *tree, const struct vdi_node *object, enum vdi_name_rule rule,
			   struct vdi_faults *faults);

#endif
