/* Strict single-pass JSON scanner: byte offsets, no tree.
 *
 * One pass checks the whole document (RFC 8259 grammar, well-formed UTF-8 without surrogates, \u escapes in
 * proper pairs, depth, size) and records the offsets that a watch cache needs: the metadata of a Kubernetes
 * object and a few configured paths. The bytes are not changed; a slice is an offset and a length into them.
 *
 * Beyond the grammar it refuses what two readers of the same bytes could understand differently:
 *   - a repeated key in the top level, in metadata or in metadata.labels, or on the way of a configured path;
 *   - a key with a backslash in the top level, in metadata or in metadata.labels (elsewhere on a path it is
 *     unescaped and compared);
 *   - labels whose values are not strings (null counts as "").
 *
 * A plan is immutable, and all threads may share it; a struct vdi_json_object has one user at a time and is
 * meant to be reused for the next document. Does not block. Errors are VD_BAD_REQUEST with the byte position
 * in the message, VD_TOO_BIG, VD_NOMEM.
 */
#ifndef VDI_JSON_SCAN_H
#define VDI_JSON_SCAN_H

#include "base.h"
#include "json_text.h"

/* Maximum nesting: `[]` has depth 1. */
#define VDI_JSON_DEPTH_MAX 64
/* Maximum members of the top level, metadata and metadata.labels together, without the built-in ones and
 * those of a path. */
#define VDI_JSON_MEMBERS_MAX 1024
/* Maximum paths of one plan, bytes of one path, segments of one path. */
#define VDI_JSON_PATHS_MAX 128
#define VDI_JSON_PATH_SIZE_MAX 512
#define VDI_JSON_PATH_DEPTH_MAX 16

struct vdi_json_limits {
	size_t	 size_max;  /* of the document; at most UINT32_MAX - 1 */
	unsigned depth_max; /* at most VDI_JSON_DEPTH_MAX */
};
#define VDI_JSON_LIMITS_DEFAULT                                                                              \
	{                                                                                                    \
		(size_t) 8 << 20, VDI_JSON_DEPTH_MAX                                                         \
	}

enum vdi_json_type {
	VDI_JSON_ABSENT, /* no such member */
	VDI_JSON_STRING,
	VDI_JSON_NUMBER,
	VDI_JSON_TRUE,
	VDI_JSON_FALSE,
	VDI_JSON_NULL,
	VDI_JSON_OBJECT,
	VDI_JSON_ARRAY,
};

struct vdi_json_slice {
	uint32_t offset;
	uint32_t length;
};

/* Position of a value. Strings: without the quotes; all others: the whole text, with brackets. */
struct vdi_json_value {
	uint32_t offset;
	uint32_t length;
	uint8_t	 type;	  /* enum vdi_json_type */
	bool	 escaped; /* the string has a backslash: use vdi_json_unescape before comparing */
};

struct vdi_json_label {
	struct vdi_json_slice key; /* never has a backslash */
	struct vdi_json_value value;
};

/* The members that every Kubernetes object may have. */
enum vdi_json_member {
	VDI_JSON_API_VERSION,
	VDI_JSON_KIND,
	VDI_JSON_METADATA,
	VDI_JSON_NAME, /* from here on: members of metadata */
	VDI_JSON_NAMESPACE,
	VDI_JSON_GENERATE_NAME,
	VDI_JSON_UID,
	VDI_JSON_RESOURCE_VERSION,
	VDI_JSON_SELF_LINK,
	VDI_JSON_GENERATION,
	VDI_JSON_CREATION_TIMESTAMP,
	VDI_JSON_DELETION_TIMESTAMP,
	VDI_JSON_DELETION_GRACE_PERIOD_SECONDS,
	VDI_JSON_LABELS,
	VDI_JSON_ANNOTATIONS,
	VDI_JSON_FINALIZERS,
	VDI_JSON_OWNER_REFERENCES,
	VDI_JSON_MANAGED_FIELDS,
	VDI_JSON_MEMBER_COUNT
};

struct vdi_json_plan;

/* Compiles a list of dotted paths, such as "spec.nodeName"; also accepts ".spec.nodeName",
 * "{.spec.nodeName}", "metadata.labels['a.b/c']" and "metadata.labels.a\.b/c". Paths go through objects only.
 * paths may be empty (path_count 0). The texts are copied. VD_INVALID_ARGUMENT (a path is malformed or too
 * long, or too many paths), VD_NOMEM. The caller owns the plan. */
VD_MUST_USE vd_status vdi_json_plan_new(const struct vd_bytes *paths, size_t path_count,
					struct vdi_json_plan **ret_plan, struct vd_error *reterr);
/* NULL is allowed; returns NULL. */
struct vdi_json_plan *vdi_json_plan_free(struct vdi_json_plan *plan);

/* The result of one scan, valid after VD_OK only; offsets are into the scanned bytes. */
struct vdi_json_object {
	const struct vdi_json_plan *plan; /* borrowed: must outlive the object */
	struct vdi_json_value *values; /* one per node of the plan; use vdi_json_member and vdi_json_field */
	struct vdi_json_label *labels; /* in document order */
	uint32_t	       label_count;
	size_t		       label_capacity;
	/* Offset at which a member can be inserted: after the `{` of metadata; 0 if metadata is absent or not
	 * an object. */
	uint32_t metadata_insert;
	bool	 metadata_empty; /* metadata has no members: an inserted one needs no comma */
	bool	 spaced; /* the document has insignificant white space, which vdi_json_minify would remove */
	/* The whole member `"resourceVersion":"..."` of metadata with one comma: cutting this range leaves
	 * valid JSON. length 0: absent. */
	struct vdi_json_slice resource_version_member;
};

/* Prepares an object for scans with plan. VD_NOMEM. */
VD_MUST_USE vd_status vdi_json_object_init(struct vdi_json_object *object, const struct vdi_json_plan *plan);
/* A zeroed object is allowed. */
void vdi_json_object_fini(struct vdi_json_object *object);

/* Checks json, which must be one object, and fills object. limits NULL: defaults. After an error the object
 * is empty and may be reused. VD_BAD_REQUEST, VD_TOO_BIG, VD_NOMEM (more labels than in earlier scans). */
VD_MUST_USE vd_status vdi_json_scan(struct vd_bytes json, const struct vdi_json_limits *limits,
				    struct vdi_json_object *object, struct vd_error *reterr);

static inline const struct vdi_json_value *vdi_json_member(const struct vdi_json_object *object,
							   enum vdi_json_member		 member)
{
	return &object->values[member];
}
/* The value at the plan's path number index (in the order passed to vdi_json_plan_new). */
const struct vdi_json_value *vdi_json_field(const struct vdi_json_object *object, size_t index);

static inline struct vd_bytes vdi_json_value_bytes(struct vd_bytes json, const struct vdi_json_value *value)
{
	struct vd_bytes bytes = { (const char *) json.data + value->offset, value->length };
	return bytes;
}
static inline struct vd_bytes vdi_json_slice_bytes(struct vd_bytes json, struct vdi_json_slice slice)
{
	struct vd_bytes bytes = { (const char *) json.data + slice.offset, slice.length };
	return bytes;
}

/* Checks json, any JSON value, against the grammar and limits (NULL: defaults) only: keys may repeat.
 * VD_BAD_REQUEST, VD_TOO_BIG. */
VD_MUST_USE vd_status vdi_json_validate(struct vd_bytes json, const struct vdi_json_limits *limits,
					struct vd_error *reterr);
/* Like vdi_json_validate; *ret_spaced: there is insignificant white space, which vdi_json_minify would
 * remove. */
VD_MUST_USE vd_status vdi_json_validate_spaced(struct vd_bytes json, const struct vdi_json_limits *limits,
					       bool *ret_spaced, struct vd_error *reterr);

#endif
