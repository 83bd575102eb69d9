/* An encrypted value is a head with the names of provider and key, a random nonce, the ciphertext, and a tag;
 * the record's key is authenticated with it. */
#include "value_cipher.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdatomic.h>

#include "key_range.h"

#define MARK "k8s:enc:"
#define MARK_GCM "k8s:enc:aesgcm:v1:"
#define NONCE_SIZE 12
#define TAG_SIZE 16
#define SECRET_MAX 32

_Static_assert(sizeof MARK_GCM - 1 + VDI_CIPHER_NAME_MAX + 1 + NONCE_SIZE + TAG_SIZE == VDI_CIPHER_OVERHEAD,
	       "the overhead is the longest head and the tag");

struct cipher_key {
	/* Up to and including the colon after the name. */
	char	      head[sizeof MARK_GCM + VDI_CIPHER_NAME_MAX + 1];
	size_t	      head_size;
	unsigned char secret[SECRET_MAX];
	size_t	      secret_size;
};

struct cipher_rule {
	char		  *prefix;
	size_t		   prefix_size;
	struct cipher_key *keys;
	size_t		   key_count;
	bool		   writes_plain, reads_plain;
};

struct vdi_value_cipher {
	_Atomic uint32_t    references;
	size_t		    count;
	struct cipher_rule *rules;
};

/* ---- Life ---- */

static void release(struct vdi_value_cipher *cipher)
{
	for (size_t i = 0; i < cipher->count; i++) {
		struct cipher_rule *rule = &cipher->rules[i];

		if (rule->keys)
			OPENSSL_cleanse(rule->keys, rule->key_count * sizeof *rule->keys);
		vdi_free(rule->keys);
		vdi_free(rule->prefix);
	}
	vdi_free(cipher->rules);
	vdi_free(cipher);
}

struct vdi_value_cipher *vdi_value_cipher_ref(struct vdi_value_cipher *cipher)
{
	atomic_fetch_add_explicit(&cipher->references, 1, memory_order_relaxed);
	return cipher;
}

void vdi_value_cipher_unref(struct vdi_value_cipher *cipher)
{
	if (cipher && atomic_fetch_sub_explicit(&cipher->references, 1, memory_order_acq_rel) == 1)
		release(cipher);
}

static vd_status copy_key(const struct vd_encryption_key *key, struct cipher_key *ret_key,
			  struct vd_error *reterr)
{
	if (key->name.size == 0 || key->name.size > VDI_CIPHER_NAME_MAX ||
	    memchr(key->name.data, ':', key->name.size))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "the name of an encryption key must have 1 to %d bytes and no colon",
				    VDI_CIPHER_NAME_MAX);
	if (key->secret.size != 16 && key->secret.size != 24 && key->secret.size != 32)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "encryption key %.*s has %zu bytes: an AES key must have 16, 24 or 32",
				    (int) key->name.size, (const char *) key->name.data, key->secret.size);
	memcpy(ret_key->head, MARK_GCM, sizeof MARK_GCM - 1);
	memcpy(ret_key->head + sizeof MARK_GCM - 1, key->name.data, key->name.size);
	ret_key->head_size = sizeof MARK_GCM - 1 + key->name.size;
	ret_key->head[ret_key->head_size++] = ':';
	memcpy(ret_key->secret, key->secret.data, key->secret.size);
	ret_key->secret_size = key->secret.size;
	return VD_OK;
}

static vd_status copy_rule(const struct vd_encryption_rule *rule, struct cipher_rule *ret_rule,
			   struct vd_error *reterr)
{
	if (rule->key_count == 0 && !(rule->writes_plain && rule->reads_plain))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "the encryption rule of %.*s has no keys",
				    (int) rule->prefix.size, (const char *) rule->prefix.data);
	ret_rule->writes_plain = rule->writes_plain;
	ret_rule->reads_plain = rule->reads_plain || rule->writes_plain;
	ret_rule->prefix_size = rule->prefix.size;
	ret_rule->prefix = vdi_strndup(rule->prefix.size ? rule->prefix.data : "", rule->prefix.size);
	ret_rule->keys = vdi_calloc(VDI_MAX(rule->key_count, (size_t) 1), sizeof *ret_rule->keys);
	if (ret_rule->prefix == NULL || ret_rule->keys == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	ret_rule->key_count = rule->key_count;
	for (size_t i = 0; i < rule->key_count; i++)
		VDI_TRY(copy_key(&rule->keys[i], &ret_rule->keys[i], reterr));
	return VD_OK;
}

vd_status vdi_value_cipher_new(const struct vd_encryption_rule *rules, size_t count,
			       struct vdi_value_cipher **ret_cipher, struct vd_error *reterr)
{
	struct vdi_value_cipher *cipher = VDI_NEW(struct vdi_value_cipher);
	vd_status		 status = VD_OK;

	if (cipher == NULL ||
	    (cipher->rules = vdi_calloc(VDI_MAX(count, (size_t) 1), sizeof *cipher->rules)) == NULL) {
		vdi_free(cipher);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	atomic_init(&cipher->references, 1);
	for (; cipher->count < count && status == VD_OK; cipher->count++)
		status = copy_rule(&rules[cipher->count], &cipher->rules[cipher->count], reterr);
	if (status != VD_OK) {
		release(cipher);
		return status;
	}
	*ret_cipher = cipher;
	return VD_OK;
}

/* ---- Rules ---- */

static struct vd_bytes prefix_of(const struct cipher_rule *rule)
{
	return (struct vd_bytes) { rule->prefix, rule->prefix_size };
}

static const struct cipher_rule *rule_of(const struct vdi_value_cipher *cipher, struct vd_bytes key)
{
	for (size_t i = 0; i < cipher->count; i++)
		if (vd_bytes_has_prefix(key, prefix_of(&cipher->rules[i])))
			return &cipher->rules[i];
	return NULL;
}

bool vdi_value_cipher_covers(const struct vdi_value_cipher *cipher, struct vd_bytes key)
{
	return rule_of(cipher, key) != NULL;
}

bool vdi_value_cipher_covers_range(const struct vdi_value_cipher *cipher, struct vd_bytes key,
				   struct vd_bytes range_end)
{
	struct vdi_key_range range = vdi_key_range_from_etcd(key, range_end);

	for (size_t i = 0; i < cipher->count; i++)
		if (vdi_key_range_has_prefix(&range, prefix_of(&cipher->rules[i])))
			return true;
	return false;
}

/* ---- AES-GCM ---- */

static const EVP_CIPHER *algorithm(const struct cipher_key *key)
{
	return key->secret_size == 16 ? EVP_aes_128_gcm() :
	       key->secret_size == 24 ? EVP_aes_192_gcm() :
					EVP_aes_256_gcm();
}

static bool seal(EVP_CIPHER_CTX *context, const struct cipher_key *key, struct vd_bytes authenticated,
		 struct vd_bytes plain, unsigned char *at)
{
	unsigned char *nonce = at;
	int	       size;

	at += NONCE_SIZE;
	return RAND_bytes(nonce, NONCE_SIZE) == 1 &&
	       EVP_EncryptInit_ex(context, algorithm(key), NULL, key->secret, nonce) == 1 &&
	       EVP_EncryptUpdate(context, NULL, &size, authenticated.data, (int) authenticated.size) == 1 &&
	       EVP_EncryptUpdate(context, at, &size, plain.data, (int) plain.size) == 1 &&
	       EVP_EncryptFinal_ex(context, at + size, &size) == 1 &&
	       EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, TAG_SIZE, at + plain.size) == 1;
}

/* sealed: nonce, ciphertext, tag. */
static bool unseal(EVP_CIPHER_CTX *context, const struct cipher_key *key, struct vd_bytes authenticated,
		   struct vd_bytes sealed, unsigned char *room)
{
	const unsigned char *bytes = sealed.data;
	size_t		     size = sealed.size - NONCE_SIZE - TAG_SIZE;
	unsigned char	     tag[TAG_SIZE];
	int		     done;

	memcpy(tag, bytes + NONCE_SIZE + size, TAG_SIZE);
	return EVP_DecryptInit_ex(context, algorithm(key), NULL, key->secret, bytes) == 1 &&
	       EVP_DecryptUpdate(context, NULL, &done, authenticated.data, (int) authenticated.size) == 1 &&
	       EVP_DecryptUpdate(context, room, &done, bytes + NONCE_SIZE, (int) size) == 1 &&
	       EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, TAG_SIZE, tag) == 1 &&
	       EVP_DecryptFinal_ex(context, room + done, &done) == 1;
}

vd_status vdi_value_cipher_encrypt(const struct vdi_value_cipher *cipher, struct vd_bytes key,
				   struct vd_bytes value, char *room, size_t *ret_size)
{
	const struct cipher_rule *rule = rule_of(cipher, key);
	EVP_CIPHER_CTX		 *context;
	bool			  is_sealed;

	*ret_size = 0;
	if (rule == NULL || rule->writes_plain)
		return VD_OK;
	context = EVP_CIPHER_CTX_new();
	if (context == NULL)
		return VD_NOMEM;
	memcpy(room, rule->keys[0].head, rule->keys[0].head_size);
	is_sealed =
		seal(context, &rule->keys[0], key, value, (unsigned char *) room + rule->keys[0].head_size);
	EVP_CIPHER_CTX_free(context);
	if (!is_sealed)
		return VD_INTERNAL;
	*ret_size = rule->keys[0].head_size + NONCE_SIZE + value.size + TAG_SIZE;
	return VD_OK;
}

static enum vdi_cipher_result decrypt(const struct cipher_rule *rule, const struct cipher_key *with,
				      struct vd_bytes key, struct vd_bytes value, char *room,
				      size_t *ret_size)
{
	struct vd_bytes sealed = { (const char *) value.data + with->head_size,
				   value.size - with->head_size };
	EVP_CIPHER_CTX *context;
	bool		is_authentic;

	if (sealed.size < NONCE_SIZE + TAG_SIZE)
		return VDI_CIPHER_UNREADABLE;
	context = EVP_CIPHER_CTX_new();
	if (context == NULL)
		return VDI_CIPHER_NOMEM;
	is_authentic = unseal(context, with, key, sealed, (unsigned char *) room);
	EVP_CIPHER_CTX_free(context);
	if (!is_authentic)
		return VDI_CIPHER_UNREADABLE;
	*ret_size = sealed.size - NONCE_SIZE - TAG_SIZE;
	return with == rule->keys && !rule->writes_plain ? VDI_CIPHER_FRESH : VDI_CIPHER_STALE;
}

enum vdi_cipher_result vdi_value_cipher_decrypt(const struct vdi_value_cipher *cipher, struct vd_bytes key,
						struct vd_bytes value, char *room, size_t *ret_size,
						bool *ret_is_plain)
{
	const struct cipher_rule *rule = rule_of(cipher, key);
	enum vdi_cipher_result	  result = VDI_CIPHER_UNREADABLE;

	*ret_is_plain = rule == NULL || !vd_bytes_has_prefix(value, vd_bytes_of(MARK));
	if (*ret_is_plain)
		return rule == NULL || rule->writes_plain ? VDI_CIPHER_FRESH :
		       rule->reads_plain		  ? VDI_CIPHER_STALE :
							    VDI_CIPHER_UNREADABLE;
	/* Several keys may have the same name: try each. */
	for (size_t i = 0; i < rule->key_count && result == VDI_CIPHER_UNREADABLE; i++)
		if (vd_bytes_has_prefix(value,
					(struct vd_bytes) { rule->keys[i].head, rule->keys[i].head_size }))
			result = decrypt(rule, &rule->keys[i], key, value, room, ret_size);
	return result;
}
