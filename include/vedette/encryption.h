/* Values encrypted at rest: a store over another one, in the format of Kubernetes' encryption providers.
 *
 * The inner store holds "k8s:enc:aesgcm:v1:NAME:", a nonce of 12 bytes, the ciphertext and a tag of 16 bytes. The key of the record is authenticated too, so a
 * value that is moved to another key is refused. A kube-apiserver with the same keys reads and writes the same records.
 *
 * Only values are encrypted: keys, revisions and leases are not. One key may encrypt 2^32 values; change keys long before that.
 */
#ifndef VEDETTE_ENCRYPTION_H
#define VEDETTE_ENCRYPTION_H

#include <vedette/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One AES key. name: 1 to 64 bytes without ":". secret: 16, 24 or 32 bytes. */
struct vd_encryption_key {
	struct vd_bytes name;
	struct vd_bytes secret;
};

/* What happens to the values of all keys with a prefix. Of several rules that match a key, the first one counts; other values stay as they are. */
struct vd_encryption_rule {
	struct vd_bytes			prefix; /* such as "/registry/secrets/"; may be empty: every key */
	const struct vd_encryption_key *keys;	/* the first one encrypts, all of them decrypt */
	size_t				key_count;
	bool				writes_plain; /* values are not encrypted when they are written: to phase encryption out */
	bool				reads_plain;  /* values that are not encrypted are accepted: to phase it in */
};

/* Opens a store that passes everything on to inner, and takes inner over: closing it closes inner. On failure inner stays with the caller. Everything is copied; the
 * secrets are erased when the store and its watches are gone.
 *
 * A value that no key of its rule decrypts, or that is not encrypted where reads_plain is not set, cannot be decoded: readers get it with a value that is no object
 * (the encrypted one, if it is). It is counted, and logged at a limited rate. A record whose value is not encrypted with the first key is stale: an update that changes nothing writes it again.
 * Compares of values (VD_COMPARE_VALUE) answer VD_UNSUPPORTED.
 *
 * Never blocks. VD_INVALID_ARGUMENT: a rule, with a sentence; VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_store_open_encrypted(const struct vd_env *env, struct vd_store *inner, const struct vd_encryption_rule *rules, size_t rule_count,
						     struct vd_store **ret_store, struct vd_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
