/* Strict single-pass JSON scanner: byte offsets, no tree.
 *
 * One pass checks the whole document (RFC 8259 grammar, well-formed UTF-8 without surrogates, \u escapes in
 * proper pairs, depth, size) and notes where the parts lie that a watch cache needs: the metadata of a
 * Kubernetes object and a few configured paths. The bytes stay as they are; a slice is an offset and a length
 * into them. Spec: H-701..H-705.
 *
 * What is refused beyond the grammar, because two readers of the same bytes could disagree about it:
 *   - a key that appears twice in the top level, in metadata or in metadata.labels, or twice on the way of a configured path;
 *   - a key with a backslash in the top level, in metadata or in metadata.labels (elsewhere on a path it is unescaped and compared);
 *   - labels whose values are not strings (null counts as "").
 *
 * A plan is immutable and may be shared by all threads; a struct vdi_json_object belongs to one caller at a
 * time and is meant to be used again for the next document. Nothing here blocks. Errors are VD_BAD_REQUEST
 * with the byte position in the message, VD_TOO_BIG, VD_NOMEM.
 */
#ifndef VDI_JSON_SCAN_H
#define VDI_JSON_SCAN_H

#include "base.h"
#include "json_text.h"

/* The deepest nesting ever accepted: `[]` has depth 1. */
#define VDI_JSON_DEPTH_MAX 64
/* Members that are accepted in the top level, metadata and metadata.labels together, the built-in ones and
 * those of a path apart. */
#define VDI_JSON_MEMBERS_MAX 1024
/* Paths of one plan, bytes of one path, segments of one path. */
#define VDI_JSON_PATHS_MAX 128
#define VDI_JSON_PATH_SIZE_MAX 512
#define VDI_JSON_PATH_DEPTH_MAX 16

struct vdi_json_limits {
	size_t	 size_max;  /* bytes of the document; never above UINT32_MAX - 1 */
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

/* Where a value lies. Strings: what stands between the quotes; everything else: the whole text, brackets
 * included. */
struct vdi_json_value {
	uint32_t offset;
	uint32_t length;
	uint8_t	 type;	  /* enum vdi_json_type */
	bool	 escaped; /* a string that holds a backslash: needs vdi_json_unescape before it is compared */
};

struct vdi_json_label {
	struct vdi_json_slice key; /* never holds a backslash */
	struct vdi_json_value value;
};

/* The members every Kubernetes object may have. */
enum vdi_json_member {
	VDI_JSON_API_VERSION,
	VDI_JSON_KIND,
	VDI_JSON_METADATA,
	VDI_JSON_NAME, /* from here on: of metadata */
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

/* Compiles a list of dotted paths, such as "spec.nodeName"; ".spec.nodeName", "{.spec.nodeName}",
 * "metadata.labels['a.b/c']" and "metadata.labels.a\.b/c" are understood too. Paths lead through objects
 * only. plan_paths may be empty (path_count 0). The texts are copied. VD_INVALID_ARGUMENT (a path that is not
 * understood, or too many or too long), VD_NOMEM. The caller owns the plan. */
VD_MUST_USE vd_status vdi_json_plan_new(const struct vd_bytes *paths, size_t path_count,
					struct vdi_json_plan **ret_plan, struct vd_error *reterr);
/* NULL is fine; returns NULL. */
struct vdi_json_plan *vdi_json_plan_free(struct vdi_json_plan *plan);

/* What one scan found. Read it after VD_OK only; offsets are into the bytes that were scanned. */
struct vdi_json_object {
	const struct vdi_json_plan *plan; /* borrowed: outlives the object */
	struct vdi_json_value
		*values; /* one for each node of the plan; use vdi_json_member and vdi_json_field */
	struct vdi_json_label *labels; /* in document order */
	uint32_t	       label_count;
	size_t		       label_capacity;
	/* Where a member can be inserted: just after the `{` of metadata; 0 when metadata is absent or no
	 * object. */
	uint32_t metadata_insert;
	bool metadata_empty; /* nothing but white space between the braces: what is inserted needs no comma */
	bool spaced; /* the document holds insignificant white space: vdi_json_minify would shorten it */
	/* The whole member `"resourceVersion":"..."` of metadata with the comma that goes with it: cutting
	 * this range leaves valid JSON. length 0: there is none. */
	struct vdi_json_slice resource_version_member;
};

/* Makes an object ready for scans with plan. VD_NOMEM. */
VD_MUST_USE vd_status vdi_json_object_init(struct vdi_json_object *object, const struct vdi_json_plan *plan);
/* Copes with a zeroed object. */
void vdi_json_object_fini(struct vdi_json_object *object);

/* Checks json, which must be one object, and fills object. limits may be NULL for the default. After an error
 * the object is empty and may be used again. VD_BAD_REQUEST, VD_TOO_BIG, VD_NOMEM (more labels than ever
 * before). */
VD_MUST_USE vd_status vdi_json_scan(struct vd_bytes json, const struct vdi_json_limits *limits,
				    struct vdi_json_object *object, struct vd_error *reterr);

static inline const struct vdi_json_value *vdi_json_member(const struct vdi_json_object *object,
							   enum vdi_json_member		 member)
{
	return &object->values[member];
}
/* The value at the plan's path number index (in the order given to vdi_json_plan_new). */
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

/* Checks json, any JSON value, against the grammar and limits (NULL: default) only: keys may repeat.
 * VD_BAD_REQUEST, VD_TOO_BIG. */
VD_MUST_USE vd_status vdi_json_validate(struct vd_bytes json, const struct vdi_json_limits *limits,
					struct vd_error *reterr);
/* The same, and whether there is insignificant white space (vdi_json_minify would shorten it). */
VD_MUST_USE vd_status vdi_json_validate_spaced(struct vd_bytes json, const struct vdi_json_limits *limits,
					       bool *ret_spaced, struct vd_error *reterr);

#endif
