/* Structural schemas of custom kinds: compiled once from a CustomResourceDefinition's openAPIV3Schema, then
 * used for every write.
 *
 * Mirrors k8s.io/apiextensions-apiserver pkg/apiserver/schema (structural.go, validation.go, complete.go,
 * pruning, defaulting, listtype, objectmeta), pkg/apiserver/validation and pkg/apis/apiextensions/validation,
 * and k8s.io/kube-openapi pkg/validation. What differs on purpose is in docs/decisions/structural-schemas.md:
 * x-kubernetes-validations are kept and not evaluated, and bounds on depth, size and work.
 *
 * A struct vdi_schema is immutable and has memory of its own; any thread may read it. All functions here are
 * pure: no lock, no clock, no blocking.
 */
#ifndef VDI_SCHEMA_H
#define VDI_SCHEMA_H

#include "field_errors.h"
#include "tree.h"

#define VDI_SCHEMA_NODES_MAX 100000    /* subschemas */
#define VDI_SCHEMA_ENUM_MAX 10000      /* values of one enum */
#define VDI_SCHEMA_PATTERN_MAX 1000000 /* steps that compiling all its patterns takes (pattern.h) */
#define VDI_SCHEMA_LIST_KEYS_MAX 64
#define VDI_SCHEMA_WORK_MAX 20000000 /* steps of one validation; each is tens of nanoseconds at most */
#define VDI_SCHEMA_GROWTH_MAX ((size_t) 16 << 20) /* bytes that defaults add to one object */

struct vdi_schema;

/* From the node of openAPIV3Schema. place: where the schema stands
 * ("spec.versions[0].schema.openAPIV3Schema"), what the fields of faults begin with; "" is fine. VD_INVALID:
 * the schema is not structural or breaks a bound; faults say what is wrong, in upstream's words. VD_NOMEM.
 * tree is lent for the call (objects get their indexes); nothing of it is kept. */
VDI_MUST_USE vd_status vdi_schema_compile(struct vdi_tree *tree, const struct vdi_node *open_api_v3_schema,
					  const char *place, struct vdi_schema **ret_schema,
					  struct vdi_faults *faults);
/* One use more; there is one at first. */
const struct vdi_schema *vdi_schema_ref(const struct vdi_schema *schema);
/* One use less; the last one frees it. NULL is fine; answers NULL. */
struct vdi_schema *vdi_schema_free(struct vdi_schema *schema);

/* Steps that compiling its patterns took, and a twentieth of those for validating its defaults: at most twice
 * VDI_SCHEMA_PATTERN_MAX. */
uint64_t vdi_schema_work(const struct vdi_schema *schema);

/* How many x-kubernetes-validations it holds, which nobody evaluates here: a reason to warn whoever brings
 * the schema. */
size_t vdi_schema_rule_count(const struct vdi_schema *schema);

/* ---- What a write makes of an object: default, prune, validate, in this order ---- */

/* Nulls that may not be null go; defaults come where nothing is (R: pkg/apiserver/schema/defaulting).
 * VD_NOMEM; VD_TOO_BIG: more than VDI_SCHEMA_GROWTH_MAX. root is an object; of status and metadata nothing is
 * special. */
VDI_MUST_USE vd_status vdi_schema_default(const struct vdi_schema *schema, struct vdi_tree *tree,
					  struct vdi_node *root);

/* The same; *ret_changed: there was something to do. */
VDI_MUST_USE vd_status vdi_schema_default_stored(const struct vdi_schema *schema, struct vdi_tree *tree,
						 struct vdi_node *root, bool *ret_changed);
/* Stands for what vdi_schema_default does: schemas of equal keys do the same. 0: it has no defaults. */
uint64_t vdi_schema_default_key(const struct vdi_schema *schema);

/* Called with the path of each member that goes ("spec.x", "spec.list[2].y"), in the order of the document;
 * lent for the call. */
typedef void vdi_schema_unknown_fn(void *arg, struct vd_bytes path);
/* Members that the schema does not know go, except where it preserves them. apiVersion, kind and metadata
 * stay, of metadata what ObjectMeta has. unknown may be NULL. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_schema_prune(const struct vdi_schema *schema, struct vdi_tree *tree,
					struct vdi_node *root, vdi_schema_unknown_fn *unknown, void *arg);

enum vdi_schema_part { VDI_SCHEMA_WHOLE, VDI_SCHEMA_STATUS };

/* old: what it replaces, or NULL. What did not change is not held against an update
 * (CRDValidationRatcheting). VDI_SCHEMA_STATUS: only the status is looked at (an update through the status
 * subresource). VD_INVALID with faults; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_schema_validate(const struct vdi_schema *schema, struct vdi_tree *tree,
					   const struct vdi_node *root, const struct vdi_node *old,
					   enum vdi_schema_part part, struct vdi_faults *faults);

/* ---- OpenAPI ---- */

/* The value of components.schemas["<reversed group>.<version>.<Kind>"] for an OpenAPI v3 document: the schema
 * as it was given, with apiVersion, kind and metadata, and x-kubernetes-group-version-kind. kubectl explain
 * reads it. A failed allocation is in out->failed. */
void vdi_schema_write_open_api(struct vdi_out *out, const struct vdi_schema *schema, const char *group,
			       const char *version, const char *kind);

#endif
