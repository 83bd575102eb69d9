/* Structural schemas of custom kinds: compiled once from a CustomResourceDefinition's openAPIV3Schema, then
 * used for every write.
 *
 * Mirrors k8s.io/apiextensions-apiserver pkg/apiserver/schema (structural.go, validation.go, complete.go,
 * pruning, defaulting, listtype, objectmeta), pkg/apiserver/validation and pkg/apis/apiextensions/validation,
 * and k8s.io/kube-openapi pkg/validation. docs/decisions/structural-schemas.md lists the intended
 * differences: x-kubernetes-validations are kept but not evaluated; depth, size and work are bounded.
 *
 * A struct vdi_schema is immutable and owns its memory; any thread may read it. All functions here are pure:
 * no lock, no clock, no blocking.
 */
#ifndef VDI_SCHEMA_H
#define VDI_SCHEMA_H

#include "field_errors.h"
#include "tree.h"

#define VDI_SCHEMA_NODES_MAX 100000    /* subschemas */
#define VDI_SCHEMA_ENUM_MAX 10000      /* values of one enum */
#define VDI_SCHEMA_PATTERN_MAX 1000000 /* steps for compiling all patterns (pattern.h) */
#define VDI_SCHEMA_LIST_KEYS_MAX 64
#define VDI_SCHEMA_WORK_MAX 20000000 /* steps of one validation; one takes tens of nanoseconds at most */
#define VDI_SCHEMA_GROWTH_MAX ((size_t) 16 << 20) /* bytes that defaults may add to one object */

struct vdi_schema;

/* Compiles the value of openAPIV3Schema. place: path of the schema
 * ("spec.versions[0].schema.openAPIV3Schema"), the prefix of the fields in errors; may be "". VD_INVALID: the
 * schema is not structural or exceeds a limit; field errors has the errors, with upstream's messages.
 * VD_NOMEM. tree is borrowed during the call (its objects get indexes) and not kept. */
VDI_MUST_USE vd_status vdi_schema_compile(struct vdi_tree *tree, const struct vdi_node *open_api_v3_schema,
					  const char *place, struct vdi_schema **ret_schema,
					  struct vdi_field_errors *field_errors);
/* Adds a reference; the schema starts with one. */
const struct vdi_schema *vdi_schema_ref(const struct vdi_schema *schema);
/* Drops a reference; the last one frees the schema. NULL is allowed. Returns NULL. */
struct vdi_schema *vdi_schema_free(struct vdi_schema *schema);

/* Returns the steps that compiling the patterns took, plus a twentieth of those for validating the defaults:
 * at most twice VDI_SCHEMA_PATTERN_MAX. */
uint64_t vdi_schema_work(const struct vdi_schema *schema);

/* Returns the number of x-kubernetes-validations in the schema. They are not evaluated, so a write of the
 * schema gets a warning. */
size_t vdi_schema_rule_count(const struct vdi_schema *schema);

/* ---- The steps of a write: default, prune, validate, in this order ---- */

/* Removes forbidden nulls and sets the defaults of absent members (pkg/apiserver/schema/defaulting). root is
 * an object; status and metadata are treated like other members. VD_NOMEM; VD_TOO_BIG: the defaults add more
 * than VDI_SCHEMA_GROWTH_MAX bytes. */
VDI_MUST_USE vd_status vdi_schema_default(const struct vdi_schema *schema, struct vdi_tree *tree,
					  struct vdi_node *root);

/* The same; *ret_changed: the object was changed. */
VDI_MUST_USE vd_status vdi_schema_default_stored(const struct vdi_schema *schema, struct vdi_tree *tree,
						 struct vdi_node *root, bool *ret_changed);
/* Returns a hash of the schema's defaulting: schemas with equal keys set the same defaults. 0: the schema has
 * no defaults. */
uint64_t vdi_schema_default_key(const struct vdi_schema *schema);

/* Called with the path of each removed member ("spec.x", "spec.list[2].y"), sorted by path. path is borrowed
 * during the call. */
typedef void vdi_schema_unknown_fn(void *arg, struct vd_bytes path);
/* Removes members that the schema does not have, except where it preserves unknown fields. apiVersion, kind,
 * and the members of metadata that ObjectMeta has stay. unknown may be NULL. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_schema_prune(const struct vdi_schema *schema, struct vdi_tree *tree,
					struct vdi_node *root, vdi_schema_unknown_fn *unknown, void *arg);

enum vdi_schema_part { VDI_SCHEMA_WHOLE, VDI_SCHEMA_STATUS };

/* Validates an object. old: the object that it replaces, or NULL; errors in unchanged parts are ignored
 * (CRDValidationRatcheting). VDI_SCHEMA_STATUS: validates the status only (update through the status
 * subresource). VD_INVALID with field errors; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_schema_validate(const struct vdi_schema *schema, struct vdi_tree *tree,
					   const struct vdi_node *root, const struct vdi_node *old,
					   enum vdi_schema_part part, struct vdi_field_errors *field_errors);

/* ---- OpenAPI ---- */

/* Writes the value of components.schemas["<reversed group>.<version>.<Kind>"] in an OpenAPI v3 document: the
 * schema as given, with apiVersion, kind and metadata, and x-kubernetes-group-version-kind. kubectl explain
 * reads it. A failed allocation is in out->failed. */
void vdi_schema_write_open_api(struct vdi_out *out, const struct vdi_schema *schema, const char *group,
			       const char *version, const char *kind);

#endif
