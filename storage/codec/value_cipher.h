/* AES-GCM encryption of values, in the format of vedette/encryption.h. A cipher is immutable: any thread. */
#ifndef VDI_VALUE_CIPHER_H
#define VDI_VALUE_CIPHER_H

#include <vedette/encryption.h>

#include "base.h"

/* Maximum length of a key's name; VDI_CIPHER_OVERHEAD: maximum growth of a value by encryption. */
#define VDI_CIPHER_NAME_MAX 64
#define VDI_CIPHER_OVERHEAD ((size_t) (18 + VDI_CIPHER_NAME_MAX + 1 + 12 + 16))

struct vdi_value_cipher; /* reference counted */

enum vdi_cipher_result {
	/* Decrypted with the key that encrypts new values, or plain where new values are plain. */
	VDI_CIPHER_FRESH,
	VDI_CIPHER_STALE,      /* decrypted with another key, or plain although new values are encrypted */
	VDI_CIPHER_UNREADABLE, /* no key decrypts it, or plain text is not accepted */
	VDI_CIPHER_NOMEM,
};

/* Copies the rules. VD_INVALID_ARGUMENT with a message, VD_NOMEM. */
VDI_MUST_USE vd_status	 vdi_value_cipher_new(const struct vd_encryption_rule *rules, size_t count,
					      struct vdi_value_cipher **ret_cipher, struct vd_error *reterr);
struct vdi_value_cipher *vdi_value_cipher_ref(struct vdi_value_cipher *cipher);
/* NULL is fine. The last reference erases the secrets. */
void vdi_value_cipher_unref(struct vdi_value_cipher *cipher);

/* Returns true if a rule matches the key. */
bool vdi_value_cipher_covers(const struct vdi_value_cipher *cipher, struct vd_bytes key);
/* Returns true if a rule may match a key of the interval. */
bool vdi_value_cipher_covers_range(const struct vdi_value_cipher *cipher, struct vd_bytes key,
				   struct vd_bytes range_end);
/* Encrypts value into room, which has value.size + VDI_CIPHER_OVERHEAD bytes. *ret_size 0: the value is
 * written in plain text. VD_NOMEM, VD_INTERNAL. */
VDI_MUST_USE vd_status vdi_value_cipher_encrypt(const struct vdi_value_cipher *cipher, struct vd_bytes key,
						struct vd_bytes value, char *room, size_t *ret_size);
/* Decrypts value into room, which has value.size bytes. *ret_size: size of the value in room; with
 * *ret_is_plain the value was plain text and room is not used. */
enum vdi_cipher_result vdi_value_cipher_decrypt(const struct vdi_value_cipher *cipher, struct vd_bytes key,
						struct vd_bytes value, char *room, size_t *ret_size,
						bool *ret_is_plain);

#endif
