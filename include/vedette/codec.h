/* From stored bytes to objects.
 *
 * A codec looks at the bytes of one object and reports where the few things are that the cache must know: name, namespace, labels, the declared
 * fields, and where a resourceVersion goes. The bytes themselves are kept as they are. The codec of vd_codec_json_new
 * understands every Kubernetes-shaped JSON object; an embedder with another encoding brings its own.
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

#define VD_LABELS_MAX 1024
#define VD_FIELDS_MAX 32

/* What a codec reports. Slices point into the value, or into the codec's scratch memory. Whoever inspected gives it back by
 * vd_codec_release when VD_OK was answered. */
struct vd_object_facts {
	struct vd_bytes name;
	struct vd_bytes namespace_name; /* empty: cluster scope */
	struct vd_bytes uid;
	const struct vd_pair *labels;
	size_t		      label_count;
	const struct vd_bytes *fields; /* parallel to the codec's declared fields; absent: empty */
	size_t		       field_count;
	uint32_t revision_offset; /* where `"resourceVersion":"N"` is written */
	uint32_t revision_size;	  /* bytes there that it replaces: a resourceVersion that the value holds; normally 0 */
	bool	 revision_comma;  /* it is followed by a comma of its own (nothing is replaced and metadata has other members) */
	uint32_t self_link_offset; /* of the member metadata.selfLink, which writes leave out as well */
	uint32_t self_link_size;   /* of that member, with its name; 0: the value has none */
	uint32_t metadata_offset; /* of the value of "metadata", with its braces */
	uint32_t metadata_size;
	void	*scratch; /* the codec's own */
};

struct vd_codec;

struct vd_codec_ops {
	/* Any thread, several at once. VD_UNDECODABLE with a sentence, VD_NOMEM. */
	vd_status (*inspect)(const struct vd_codec *codec, struct vd_bytes value, struct vd_object_facts *ret_facts, struct vd_error *reterr);
	/* Takes the scratch memory of facts back. NULL when there never is any. */
	void (*release)(const struct vd_codec *codec, struct vd_object_facts *facts);
	void (*free)(struct vd_codec *codec);
	/* Any thread, several at once. A value that was stored in another encoding, or is to be read with more than was stored, as one that inspect understands: a new
	 * record of key and that value, owned by the caller. *ret_kv NULL: value needs none. NULL when no value ever does. VD_UNDECODABLE with a sentence, VD_NOMEM. */
	vd_status (*translate)(const struct vd_codec *codec, struct vd_bytes key, struct vd_bytes value, struct vd_kv **ret_kv,
			       struct vd_error *reterr);
};

/* First member of every codec. */
struct vd_codec {
	const struct vd_codec_ops *ops;
	const char *const	  *field_names; /* declared fields, besides metadata.name and metadata.namespace */
	size_t			   field_count;
};

/* Any thread. */
static inline void vd_codec_release(const struct vd_codec *codec, struct vd_object_facts *facts)
{
	if (codec->ops->release)
		codec->ops->release(codec, facts);
}

/* One declared field: its value is the string, number or boolean at json_path (".spec.nodeName"), else default_value (NULL: ""). */
struct vd_field_spec {
	const char *name;	   /* as in a field selector: "spec.nodeName" */
	const char *json_path;
	const char *default_value;
};

/* The Kubernetes JSON codec. Strict: invalid JSON, UTF-8, depth over 64, or an object without metadata is VD_UNDECODABLE. A value that a
 * kube-apiserver stored as protobuf is translated into JSON, for the kinds of Kubernetes' stable versions; other kinds and encrypted values are
 * VD_UNDECODABLE and say so. Numbers have no bounds, as in JSON: one that fits neither int64 nor float64 (1e400) is kept as it is written. Programs that serve the
 * objects to Go clients must refuse it when it is written, as `vedette serve` does: no Go client can read a list with it. Copies the specs. */
VD_API VD_MUST_USE vd_status vd_codec_json_new(const struct vd_field_spec *fields, size_t field_count, struct vd_codec **ret_codec,
					       struct vd_error *reterr);
/* All cachers that use the codec must be gone: else the program stops with a message that names them. NULL is fine; returns NULL. */
VD_API struct vd_codec *vd_codec_free(struct vd_codec *codec);

/* ---- Objects: one decoded header over shared bytes. Immutable, reference counted, any thread. ---- */

/* Takes a reference of kv, or of a record of its own where the value had to be translated: key, revisions and lease are the same.
 * VD_UNDECODABLE, VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_object_new(const struct vd_codec *codec, struct vd_kv *kv, struct vd_object **ret_object,
					   struct vd_error *reterr);
VD_API struct vd_object *vd_object_ref(struct vd_object *object);
VD_API struct vd_object *vd_object_unref(struct vd_object *object);

/* All slices are good while the object is. */
VD_API struct vd_kv   *vd_object_kv(const struct vd_object *object); /* lent */
VD_API struct vd_bytes vd_object_key(const struct vd_object *object);
VD_API struct vd_bytes vd_object_name(const struct vd_object *object);
VD_API struct vd_bytes vd_object_namespace(const struct vd_object *object);
VD_API vd_rev	       vd_object_revision(const struct vd_object *object); /* mod revision: its resourceVersion */
VD_API size_t	       vd_object_label_count(const struct vd_object *object);
VD_API struct vd_pair  vd_object_label(const struct vd_object *object, size_t index);
/* false when absent. */
VD_API bool vd_object_label_get(const struct vd_object *object, struct vd_bytes key, struct vd_bytes *ret_value);
/* "metadata.name", "metadata.namespace" or a declared field; what is absent reads as empty. */
VD_API struct vd_bytes vd_object_field(const struct vd_object *object, size_t index);

/* The object's JSON as the wire wants it, with `"resourceVersion":"<revision>"` spliced in: three pieces that follow each other. text must stay
 * as long as the pieces are used. revision is the object's own, or that of the event (a delete). */
struct vd_object_json {
	struct vd_bytes piece[3];
	char		text[64];
};
VD_API void   vd_object_json(const struct vd_object *object, vd_rev revision, struct vd_object_json *ret_json);
VD_API size_t vd_object_json_size(const struct vd_object *object, vd_rev revision);

#ifdef __cplusplus
}
#endif
#endif
