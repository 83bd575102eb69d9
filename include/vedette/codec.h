/* Codecs: decode stored bytes into objects.
 *
 * A codec inspects the bytes of one object and reports the parts that the cache needs: name, namespace,
 * labels, the declared fields, and the position of resourceVersion. The bytes themselves are not changed.
 * The codec of vd_codec_json_new understands every Kubernetes-shaped JSON object; an embedder with another
 * encoding implements its own.
 */
#ifndef VEDETTE_CODEC_H
#define VEDETTE_CODEC_H

#include <vedette/bytes.h>
#include <vedette/status.h>
#include <vedette/store.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_object;

struct vd_pair {
	struct vd_bytes key;
	struct vd_bytes value;
};

#define VD_LABELS_MAX 1024 /* maximum number of labels of one object */
#define VD_FIELDS_MAX 32   /* maximum number of fields that a codec declares */

/* Result of an inspection. Slices point into the value or into the codec's scratch memory. After VD_OK the
 * caller returns that memory with vd_codec_release. */
struct vd_object_attributes {
	struct vd_bytes	      name;
	struct vd_bytes	      namespace_name; /* empty: cluster-scoped */
	struct vd_bytes	      uid;
	const struct vd_pair *labels;
	size_t		      label_count;
	/* one for each field that the codec declares; absent in the object: empty */
	const struct vd_bytes *fields;
	size_t		       field_count;
	uint32_t	       revision_offset; /* offset at which `"resourceVersion":"N"` is inserted */
	/* size of the resourceVersion member at that offset, which is replaced; normally 0, because
	 * storage removes resourceVersion */
	uint32_t revision_size;
	/* a comma must follow the inserted member: nothing is replaced and metadata has other members */
	bool	 revision_comma;
	uint32_t self_link_offset; /* offset of the member metadata.selfLink, which storage removes, too */
	uint32_t self_link_size;   /* size of that member with its name; 0: absent */
	uint32_t metadata_offset;  /* offset of the value of "metadata", including its braces */
	uint32_t metadata_size;
	void	*scratch; /* private to the codec */
};

struct vd_codec;

/* The operations of a codec. An embedder may implement its own. */
struct vd_codec_ops {
	/* Inspects value. Called on any thread, on several at once. Errors: VD_UNDECODABLE with an
	 * explanation, VD_NOMEM. */
	vd_status (*inspect)(const struct vd_codec *codec, struct vd_bytes value,
			     struct vd_object_attributes *ret_attributes, struct vd_error *reterr);
	/* Frees the scratch memory of the attributes. NULL: the codec never allocates any. */
	void (*release)(const struct vd_codec *codec, struct vd_object_attributes *attributes);
	/* Frees the codec itself; called by vd_codec_free. */
	void (*free)(struct vd_codec *codec);
	/* Translates a value that is stored in another encoding, or needs additions when it is read, into
	 * one that inspect understands. *ret_kv: a new record of key and the translated value, owned by
	 * the caller; NULL: no translation needed. The operation is NULL if no value ever needs one.
	 * Called on any thread, on several at once. Errors: VD_UNDECODABLE with an explanation, VD_NOMEM. */
	vd_status (*translate)(const struct vd_codec *codec, struct vd_bytes key, struct vd_bytes value,
			       struct vd_kv **ret_kv, struct vd_error *reterr);
};

/* First member of every codec. */
struct vd_codec {
	const struct vd_codec_ops *ops;
	/* declared fields, in addition to metadata.name and metadata.namespace */
	const char *const *field_names;
	size_t		   field_count;
};

/* Frees the scratch memory of the attributes. May be called from any thread. */
static inline void vd_codec_release(const struct vd_codec *codec, struct vd_object_attributes *attributes)
{
	if (codec->ops->release)
		codec->ops->release(codec, attributes);
}

/* A declared field: the string, number or boolean at json_path (such as ".spec.nodeName"), otherwise
 * default_value (NULL: ""). */
struct vd_field_spec {
	const char *name; /* name in field selectors, such as "spec.nodeName" */
	const char *json_path;
	const char *default_value;
};

/* Creates the Kubernetes JSON codec; copies the specs. The caller owns it. It is strict: invalid JSON or
 * UTF-8, a depth over 64, or an object without metadata is VD_UNDECODABLE. A value that a kube-apiserver
 * stored as protobuf is translated into JSON if its kind is in a stable API version of Kubernetes; other
 * kinds and encrypted values are VD_UNDECODABLE with an explanation. Numbers have no bounds, as in JSON:
 * one that fits neither int64 nor float64 (1e400) is kept as written. No Go client can read a list with
 * such a number, so programs that serve Go clients must reject it on write, as `vedette serve` does. */
VD_API VD_MUST_USE vd_status vd_codec_json_new(const struct vd_field_spec *fields, size_t field_count,
					       struct vd_codec **ret_codec, struct vd_error *reterr);
/* Frees the codec; codec may be NULL. Returns NULL. All cachers that use it must be gone: otherwise the
 * program aborts with a message that names them. */
VD_API struct vd_codec *vd_codec_free(struct vd_codec *codec);

/* ---- Objects ----
 *
 * An object is a stored record with its decoded attributes: immutable and reference counted. All functions
 * below may be called from any thread and never block. */

/* Decodes kv. The object holds a reference of kv or, if the value had to be translated, of a new record
 * with the same key, revisions and lease. The caller owns one reference. Errors: VD_UNDECODABLE, VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_object_new(const struct vd_codec *codec, struct vd_kv *kv,
					   struct vd_object **ret_object, struct vd_error *reterr);
/* Takes a reference and returns object. */
VD_API struct vd_object *vd_object_ref(struct vd_object *object);
/* Drops one reference; the last one frees the object. object may be NULL. Returns NULL. */
VD_API struct vd_object *vd_object_unref(struct vd_object *object);

/* The attributes of an object. Slices and the record are borrowed while the object has a reference. */
VD_API struct vd_kv   *vd_object_kv(const struct vd_object *object);
VD_API struct vd_bytes vd_object_key(const struct vd_object *object);
VD_API struct vd_bytes vd_object_name(const struct vd_object *object);
VD_API struct vd_bytes vd_object_namespace(const struct vd_object *object); /* empty: cluster-scoped */
/* Returns the revision of the last change: the resourceVersion. */
VD_API vd_rev vd_object_revision(const struct vd_object *object);
VD_API size_t vd_object_label_count(const struct vd_object *object);
/* Returns one label; index must be less than the count. */
VD_API struct vd_pair vd_object_label(const struct vd_object *object, size_t index);
/* Finds a label. Returns false if the object does not have it. */
VD_API bool vd_object_label_get(const struct vd_object *object, struct vd_bytes key,
				struct vd_bytes *ret_value);
/* Returns a field: the index counts metadata.name, metadata.namespace, then the declared fields. Absent in
 * the object: empty. */
VD_API struct vd_bytes vd_object_field(const struct vd_object *object, size_t index);

/* The object's JSON with `"resourceVersion":"<revision>"` inserted, as three consecutive pieces. The struct
 * must not be moved or copied while the pieces are used, because they may point into text. */
struct vd_object_json {
	struct vd_bytes piece[3];
	char		text[64];
};
/* Writes the pieces, which borrow from object. revision: vd_object_revision; for a deletion, the revision
 * of the event. */
VD_API void vd_object_json(const struct vd_object *object, vd_rev revision, struct vd_object_json *ret_json);
/* Returns the size of all three pieces together, in bytes. */
VD_API size_t vd_object_json_size(const struct vd_object *object, vd_rev revision);

#ifdef __cplusplus
}
#endif
#endif
