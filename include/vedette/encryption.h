/* Encryption at rest: a store over another store, in the format of Kubernetes' encryption providers.
 *
 * The inner store holds "k8s:enc:aesgcm:v1:NAME:", a 12-byte nonce, the ciphertext and a 16-byte tag. The
 * key of the record is authenticated, too, so that a value moved to another key is rejected. A
 * kube-apiserver with the same encryption keys reads and writes the same records.
 *
 * Only values are encrypted, not keys, revisions or leases. One encryption key must not encrypt more than
 * 2^32 values; rotate keys long before that.
 */
#ifndef VEDETTE_ENCRYPTION_H
#define VEDETTE_ENCRYPTION_H

#include <vedette/store.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An AES key. name: 1 to 64 bytes without ":". secret: 16, 24 or 32 bytes. */
struct vd_encryption_key {
	struct vd_bytes name;
	struct vd_bytes secret;
};

/* Encryption of the values of all keys with a prefix. The first rule that matches a key applies; values of
 * other keys are not encrypted. */
struct vd_encryption_rule {
	struct vd_bytes			prefix; /* such as "/registry/secrets/"; empty: all keys */
	const struct vd_encryption_key *keys;	/* the first key encrypts, all keys decrypt */
	size_t				key_count;
	/* values are written without encryption, to phase encryption out */
	bool writes_plain;
	/* values without encryption are accepted, to phase encryption in */
	bool reads_plain;
};

/* Opens an encrypting store over inner and takes ownership of inner: closing the new store closes inner. On
 * failure the caller keeps inner. All arguments are copied; the secrets are erased when the store and its
 * watches are gone. Never blocks.
 *
 * A value cannot be decoded if no key of its rule decrypts it, or if it is not encrypted and reads_plain is
 * false. Readers then get a value that no codec decodes (for an encrypted record, its encrypted bytes); the
 * record is counted, and logged at a limited rate. A record that is not encrypted with the first key of its
 * rule is stale: an update without changes rewrites it. Compares of values (VD_COMPARE_VALUE) answer
 * VD_UNSUPPORTED.
 *
 * Errors: VD_INVALID_ARGUMENT (an invalid rule, with an explanation), VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_store_open_encrypted(const struct vd_env *env, struct vd_store *inner,
						     const struct vd_encryption_rule *rules,
						     size_t rule_count, struct vd_store **ret_store,
						     struct vd_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
