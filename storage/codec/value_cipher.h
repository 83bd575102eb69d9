/* AES-GCM over values, in the format of vedette/encryption.h. Any thread: a cipher is immutable once made. */
#ifndef VDI_VALUE_CIPHER_H
#define VDI_VALUE_CIPHER_H

#include <vedette/encryption.h>

#include "base.h"

/* How much longer than the value its encrypted form is, at most. */
#define VDI_CIPHER_NAME_MAX 64
#define VDI_CIPHER_OVERHEAD ((size_t) (18 + VDI_CIPHER_NAME_MAX + 1 + 12 + 16))

struct vdi_value_cipher; /* counted */

enum vdi_cipher_result {
	VDI_CIPHER_FRESH, /* decrypted with the key that encrypts today; or plain where plain is written */
	VDI_CIPHER_STALE, /* decrypted with another key, or plain where values are encrypted */
	VDI_CIPHER_UNREADABLE, /* no key decrypts it, or plain where that is not accepted */
	VDI_CIPHER_NOMEM,
};

/* Copies the rules. VD_INVALID_ARGUMENT with a sentence, VD_NOMEM. */
VDI_MUST_USE vd_status	 vdi_value_cipher_new(const struct vd_encryption_rule *rules, size_t count,
					      struct vdi_value_cipher **ret_cipher, struct vd_error *reterr);
struct vdi_value_cipher *vdi_value_cipher_ref(struct vdi_value_cipher *cipher);
/* NULL is fine. The last one erases the secrets. */
void vdi_value_cipher_unref(struct vdi_value_cipher *cipher);

/* A rule matches the key. */
bool vdi_value_cipher_covers(const struct vdi_value_cipher *cipher, struct vd_bytes key);
/* Some key of the interval may match a rule. */
bool vdi_value_cipher_covers_range(const struct vdi_value_cipher *cipher, struct vd_bytes key,
				   struct vd_bytes range_end);
/* room: value.size + VDI_CIPHER_OVERHEAD bytes. *ret_size 0: the value is written as it is. VD_NOMEM,
 * VD_INTERNAL. */
VDI_MUST_USE vd_status vdi_value_cipher_encrypt(const struct vdi_value_cipher *cipher, struct vd_bytes key,
						struct vd_bytes value, char *room, size_t *ret_size);
/* room: value.size bytes. *ret_size: of the value in room; with *ret_is_plain the value is as it was and room
 * is not used. */
enum vdi_cipher_result vdi_value_cipher_decrypt(const struct vdi_value_cipher *cipher, struct vd_bytes key,
						struct vd_bytes value, char *room, size_t *ret_size,
						bool *ret_is_plain);

#endif
