/* Tokens are only in memory, as upstream's simple tokens: after a restart clients authenticate again. */
#include "auth.h"

#include <crypt.h>
#include <stdio.h>

#include "env.h"
#include "hash.h"
#include "lock.h"
#include "rand.h"
#include "serve_state.h"

#define TOKENS_MAX 100000

struct token {
	char	text[VDI_AUTH_TOKEN_SIZE];
	vd_mono expires;
	size_t	user_size;
	char	user[];
};

struct vdi_auth {
	struct vdi_etcdserver *server;
	atomic_bool	       is_enabled;
	_Atomic uint64_t       revision;
	uint64_t	       seed;
	char		       no_hash[VDI_AUTH_HASH_SIZE]; /* salt and cost without a hash */

	struct vdi_lock lock; /* "leaf" */

	/* Under the lock. */
	struct vdi_auth_data *data;
	struct vdi_hash	      tokens; /* struct token by text */
	vd_mono		      purge_due;
};

/* ---- Life ---- */

/* Makes the start of a bcrypt hash: cost and salt. */
static vd_status make_setting(unsigned cost, char ret_setting[VDI_AUTH_HASH_SIZE])
{
	char salt[16];

	VDI_TRY(vdi_rand_secret_os(salt, sizeof salt));
	return crypt_gensalt_rn("$2b$", cost, salt, sizeof salt, ret_setting, VDI_AUTH_HASH_SIZE) ?
		       VD_OK :
		       VD_INVALID_ARGUMENT;
}

static bool token_equals(const void *entry, const void *key)
{
	return vd_bytes_equal(vd_bytes_of(((const struct token *) entry)->text),
			      *(const struct vd_bytes *) key);
}

vd_status vdi_auth_new(struct vdi_etcdserver *server, struct vdi_auth **ret_auth, struct vd_error *reterr)
{
	struct vdi_auth *auth = VDI_NEW(struct vdi_auth);
	struct vd_bytes	 stored = vdi_serve_state_auth(server->state);
	vd_status	 status;

	if (auth == NULL)
		return vd_error_set(reterr, VD_NOMEM, "etcd: out of memory");
	status = stored.size ? vdi_auth_data_read(stored, &auth->data) : vdi_auth_data_new(&auth->data);
	if (status != VD_OK) {
		vdi_free(auth);
		return vd_error_set(reterr, status, "etcd: users and roles cannot be read");
	}
	auth->server = server;
	status = make_setting(server->options.bcrypt_cost, auth->no_hash);
	if (status != VD_OK) {
		vdi_auth_data_free(auth->data);
		vdi_free(auth);
		return vd_error_set(reterr, status, "etcd: passwords cannot be hashed at cost %u",
				    server->options.bcrypt_cost);
	}
	auth->seed = vd_env_random(server->env);
	vdi_lock_init(&auth->lock, VDI_LOCK_LEAF);
	vdi_hash_init(&auth->tokens, token_equals, TOKENS_MAX);
	auth->is_enabled = auth->data->is_enabled;
	auth->revision = auth->data->revision;
	*ret_auth = auth;
	return VD_OK;
}

static void remove_token(struct vdi_auth *auth, struct token *token)
{
	struct vd_bytes text = vd_bytes_of(token->text);

	(void) vdi_hash_remove(&auth->tokens, vdi_hash_bytes(text, auth->seed), &text);
	vdi_free(token);
}

static bool is_forgotten(const struct token *token, const struct vd_bytes *user, vd_mono now)
{
	return token->expires.ns <= now.ns ||
	       (user && (user->data == NULL ||
			 vd_bytes_equal(*user, (struct vd_bytes) { token->user, token->user_size })));
}

/* Removes the tokens of one user, of all users, or the expired ones. A removal invalidates the walk over the
 * table, so each walk removes many. */
static void forget_tokens_locked(struct vdi_auth *auth, const struct vd_bytes *user, vd_mono now)
{
	struct token *found[1000];
	size_t	      count;

	do {
		size_t	      position = 0;
		struct token *token;

		count = 0;
		while (count < VDI_ARRAY_SIZE(found) &&
		       (token = vdi_hash_next(&auth->tokens, &position)) != NULL)
			if (is_forgotten(token, user, now))
				found[count++] = token;
		for (size_t i = 0; i < count; i++)
			remove_token(auth, found[i]);
	} while (count == VDI_ARRAY_SIZE(found));
}

struct vdi_auth *vdi_auth_free(struct vdi_auth *auth)
{
	if (auth == NULL)
		return NULL;
	vdi_auth_tokens_forget(auth, VD_BYTES_NONE);
	vdi_hash_fini(&auth->tokens);
	vdi_auth_data_free(auth->data);
	vdi_lock_fini(&auth->lock);
	vdi_free(auth);
	return NULL;
}

bool vdi_auth_is_enabled(const struct vdi_auth *auth)
{
	return atomic_load_explicit(&auth->is_enabled, memory_order_acquire);
}

uint64_t vdi_auth_revision(const struct vdi_auth *auth)
{
	return atomic_load_explicit(&auth->revision, memory_order_acquire);
}

/* ---- Who asks ---- */

static void give_user(struct vdi_auth *auth, struct vd_bytes name, struct vdi_auth_user *user)
{
	if (name.size >= VDI_AUTH_NAME_MAX)
		return;
	memcpy(user->name, name.data, name.size);
	user->name[name.size] = 0;
	user->name_size = name.size;
	user->revision = vdi_auth_revision(auth);
	user->is_given = true;
}

static bool find_token(struct vdi_auth *auth, struct vd_bytes text, struct vdi_auth_user *user)
{
	vd_mono	      now = vd_env_now(auth->server->env);
	struct token *token;
	bool	      is_good;

	vdi_lock_acquire(&auth->lock);
	token = vdi_hash_get(&auth->tokens, vdi_hash_bytes(text, auth->seed), &text);
	is_good = token && token->expires.ns > now.ns;
	if (is_good) {
		token->expires = vd_mono_add(now, auth->server->options.token_ttl);
		give_user(auth, (struct vd_bytes) { token->user, token->user_size }, user);
	}
	vdi_lock_release(&auth->lock);
	return is_good && user->is_given;
}

enum vd_etcd_code vdi_auth_find_user(struct vdi_serve_call *call, struct vdi_auth_user *ret_user)
{
	struct vdi_auth *auth = call->server->auth;
	struct vd_bytes	 text;

	ret_user->is_given = false;
	if (!vdi_auth_is_enabled(auth))
		return VD_ETCD_OTHER; /* a token is ignored while authentication is disabled */
	if (call->ops->metadata(call, "token", &text) || call->ops->metadata(call, "authorization", &text)) {
		if (vd_bytes_has_prefix(text, vd_bytes_of("Bearer ")))
			text = (struct vd_bytes) { (const char *) text.data + 7, text.size - 7 };
		return find_token(auth, text, ret_user) ? VD_ETCD_OTHER : VD_ETCD_INVALID_AUTH_TOKEN;
	}
	if (call->server->options.client_cert_auth && *call->ops->common_name(call))
		give_user(auth, vd_bytes_of(call->ops->common_name(call)), ret_user);
	return VD_ETCD_OTHER;
}

bool vdi_auth_identify(struct vdi_serve_call *call, struct vdi_auth_user *ret_user)
{
	enum vd_etcd_code code = vdi_auth_find_user(call, ret_user);

	if (code != VD_ETCD_OTHER)
		vdi_serve_fail(call, code);
	return code == VD_ETCD_OTHER;
}

/* ---- What they may do ---- */

static enum vd_etcd_code check(struct vdi_auth *auth, const struct vdi_auth_user *user, struct vd_bytes key,
			       struct vd_bytes range_end, bool write)
{
	struct vdi_auth_account *account;
	enum vd_etcd_code	 code = VD_ETCD_PERMISSION_DENIED;

	if (!vdi_auth_is_enabled(auth))
		return VD_ETCD_OTHER;
	if (!user->is_given)
		return VD_ETCD_USER_EMPTY;
	vdi_lock_acquire(&auth->lock);
	account = vdi_auth_data_account(auth->data, (struct vd_bytes) { user->name, user->name_size });
	if (user->revision < auth->data->revision)
		code = VD_ETCD_AUTH_OLD_REVISION;
	else if (account && (vdi_auth_account_has_role(account, vd_bytes_of(VDI_AUTH_ROOT)) ||
			     vdi_auth_data_permits(auth->data, account, key, range_end, write)))
		code = VD_ETCD_OTHER;
	vdi_lock_release(&auth->lock);
	return code;
}

enum vd_etcd_code vdi_auth_check_range(struct vdi_auth *auth, const struct vdi_auth_user *user,
				       struct vd_bytes key, struct vd_bytes range_end)
{
	return check(auth, user, key, range_end, false);
}

enum vd_etcd_code vdi_auth_check_write(struct vdi_auth *auth, const struct vdi_auth_user *user,
				       struct vd_bytes key, struct vd_bytes range_end)
{
	return check(auth, user, key, range_end, true);
}

enum vd_etcd_code vdi_auth_check_admin(struct vdi_auth *auth, const struct vdi_auth_user *user)
{
	struct vdi_auth_account *account;
	enum vd_etcd_code	 code = VD_ETCD_OTHER;

	if (!vdi_auth_is_enabled(auth))
		return VD_ETCD_OTHER;
	if (!user->is_given || user->name_size == 0)
		return VD_ETCD_USER_EMPTY;
	vdi_lock_acquire(&auth->lock);
	account = vdi_auth_data_account(auth->data, (struct vd_bytes) { user->name, user->name_size });
	if (account == NULL)
		code = VD_ETCD_USER_NOT_FOUND;
	else if (!vdi_auth_account_has_role(account, vd_bytes_of(VDI_AUTH_ROOT)))
		code = VD_ETCD_PERMISSION_DENIED;
	vdi_lock_release(&auth->lock);
	return code;
}

enum vd_etcd_code vdi_auth_check_login(struct vdi_auth *auth, const struct vdi_auth_user *user)
{
	return vdi_auth_is_enabled(auth) && !user->is_given ? VD_ETCD_USER_EMPTY : VD_ETCD_OTHER;
}

struct lease_check {
	struct vdi_auth		   *auth;
	const struct vdi_auth_user *user;
	bool			    write;
	enum vd_etcd_code	    code;
};

static void check_lease_keys(void *arg, vd_status status, const struct vd_lease_result *result,
			     const struct vd_error *error)
{
	struct lease_check *lease = arg;

	(void) error;
	lease->code = status == VD_OK ? VD_ETCD_OTHER : VD_ETCD_PERMISSION_DENIED;
	for (size_t i = 0; status == VD_OK && lease->code == VD_ETCD_OTHER && i < result->key_count; i++)
		lease->code = check(lease->auth, lease->user, result->keys[i], VD_BYTES_NONE, lease->write);
}

enum vd_etcd_code vdi_auth_check_lease(struct vdi_auth *auth, const struct vdi_auth_user *user, int64_t id,
				       bool write)
{
	/* Denied unless the store calls back before it returns, as the embedded store does. */
	struct lease_check lease = { auth, user, write, VD_ETCD_PERMISSION_DENIED };

	if (vdi_auth_check_admin(auth, user) == VD_ETCD_OTHER) /* also while authentication is disabled */
		return VD_ETCD_OTHER;
	if (vd_store_lease_time_to_live(auth->server->store, id, true, check_lease_keys, &lease) != VD_OK)
		return VD_ETCD_PERMISSION_DENIED;
	return lease.code;
}

void vdi_auth_defer_lease(struct vdi_serve_call *call, void (*work)(struct vdi_serve_call *call))
{
	if (vdi_auth_is_enabled(call->server->auth))
		vdi_serve_defer(call, VDI_SERVE_WORKER_LEASES, work);
	else
		work(call);
}

static bool require(struct vdi_serve_call *call,
		    enum vd_etcd_code (*check_user)(struct vdi_auth *auth, const struct vdi_auth_user *user))
{
	struct vdi_auth_user user;
	enum vd_etcd_code    code;

	if (!vdi_auth_identify(call, &user))
		return false;
	code = check_user(call->server->auth, &user);
	if (code != VD_ETCD_OTHER)
		vdi_serve_fail(call, code);
	return code == VD_ETCD_OTHER;
}

bool vdi_auth_require_admin(struct vdi_serve_call *call)
{
	return require(call, vdi_auth_check_admin);
}

bool vdi_auth_require_login(struct vdi_serve_call *call)
{
	return require(call, vdi_auth_check_login);
}

/* ---- Changes ---- */

const struct vdi_auth_data *vdi_auth_lock_data(struct vdi_auth *auth)
{
	vdi_lock_acquire(&auth->lock);
	return auth->data;
}

void vdi_auth_unlock_data(struct vdi_auth *auth)
{
	vdi_lock_release(&auth->lock);
}

/* Encodes the data; the caller frees the bytes. Only the worker changes data, so it may read without the
 * lock. */
static vd_status encode_data(const struct vdi_auth_data *data, void **ret_bytes, size_t *ret_size)
{
	struct vdi_wire_out out = { 0 };
	uint8_t		   *bytes;

	vdi_auth_data_write(&out, data);
	bytes = vdi_alloc(out.size + 1);
	if (bytes == NULL)
		return VD_NOMEM;
	out = (struct vdi_wire_out) { bytes, 0 };
	vdi_auth_data_write(&out, data);
	*ret_bytes = bytes;
	*ret_size = out.size;
	return VD_OK;
}

static vd_status copy_data(const struct vdi_auth_data *data, struct vdi_auth_data **ret_copy)
{
	vd_status status;
	void	 *bytes;
	size_t	  size;

	VDI_TRY(encode_data(data, &bytes, &size));
	status = vdi_auth_data_read((struct vd_bytes) { bytes, size }, ret_copy);
	vdi_free(bytes);
	return status;
}

static vd_status put_in_place(struct vdi_auth *auth, struct vdi_auth_data *data)
{
	struct vdi_auth_data *old;
	vd_status	      status;
	void		     *bytes;
	size_t		      size;

	VDI_TRY(encode_data(data, &bytes, &size));
	status = vdi_serve_state_set_auth(auth->server->state, (struct vd_bytes) { bytes, size });
	vdi_free(bytes);
	VDI_TRY(status);
	vdi_lock_acquire(&auth->lock);
	old = auth->data;
	auth->data = data;
	atomic_store_explicit(&auth->revision, data->revision, memory_order_release);
	atomic_store_explicit(&auth->is_enabled, data->is_enabled, memory_order_release);
	vdi_lock_release(&auth->lock);
	vdi_auth_data_free(old);
	return VD_OK;
}

vd_status vdi_auth_change(struct vdi_auth *auth, vdi_auth_change_fn change, void *arg,
			  enum vd_etcd_code *ret_code)
{
	struct vdi_auth_data *data;
	bool		      is_changed = true;
	vd_status	      status;

	VDI_TRY(copy_data(auth->data, &data));
	status = VD_OK;
	*ret_code = change(data, arg, &status, &is_changed);
	if (status == VD_OK && *ret_code == VD_ETCD_OTHER && is_changed)
		status = put_in_place(auth, data);
	else
		is_changed = false;
	if (!is_changed || status != VD_OK)
		vdi_auth_data_free(data);
	return status;
}

vd_status vdi_auth_encode(struct vdi_auth *auth, void **ret_bytes, size_t *ret_size)
{
	vd_status status;

	vdi_lock_acquire(&auth->lock);
	status = encode_data(auth->data, ret_bytes, ret_size);
	vdi_lock_release(&auth->lock);
	return status;
}

vd_status vdi_auth_restore(struct vdi_auth *auth, struct vd_bytes bytes)
{
	struct vdi_auth_data *data;
	vd_status	      status;

	VDI_TRY(vdi_auth_data_read(bytes, &data));
	status = put_in_place(auth, data);
	if (status != VD_OK)
		vdi_auth_data_free(data);
	return status;
}

/* ---- Tokens ---- */

vd_status vdi_auth_token_new(struct vdi_auth *auth, struct vd_bytes user, uint64_t revision,
			     char ret_token[VDI_AUTH_TOKEN_SIZE])
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	vd_mono		  now = vd_env_now(auth->server->env);
	unsigned char	  secret[24];
	struct token	 *token;
	struct vd_bytes	  text;
	vd_status	  status;

	VDI_TRY(vdi_rand_secret_os(secret, sizeof secret));
	token = vdi_alloc(sizeof *token + user.size + 1);
	if (token == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < sizeof secret; i++)
		token->text[i] = letters[secret[i] & 63];
	(void) snprintf(token->text + sizeof secret, sizeof token->text - sizeof secret, ".%lld",
			(long long) vdi_serve_revision(auth->server));
	memcpy(token->user, user.data, user.size);
	token->user_size = user.size;
	token->expires = vd_mono_add(now, auth->server->options.token_ttl);
	memcpy(ret_token, token->text, sizeof token->text);
	text = vd_bytes_of(token->text);
	vdi_lock_acquire(&auth->lock);
	if (auth->purge_due.ns <= now.ns) {
		forget_tokens_locked(auth, NULL, now);
		auth->purge_due = vd_mono_add(now, VD_SECONDS(10));
	}
	/* A change first installs its data and then removes tokens, so no earlier token remains. */
	status = auth->data->revision == revision ?
			 vdi_hash_put(&auth->tokens, vdi_hash_bytes(text, auth->seed), &text, token, NULL) :
			 VD_AGAIN;
	vdi_lock_release(&auth->lock);
	if (status != VD_OK)
		vdi_free(token);
	return status;
}

void vdi_auth_tokens_forget(struct vdi_auth *auth, struct vd_bytes user)
{
	vdi_lock_acquire(&auth->lock);
	forget_tokens_locked(auth, &user, vd_env_now(auth->server->env));
	vdi_lock_release(&auth->lock);
}

/* ---- Passwords ---- */

static vd_status crypt_password(struct vd_bytes password, const char *setting,
				char ret_hash[VDI_AUTH_HASH_SIZE])
{
	struct crypt_data *scratch = VDI_NEW(struct crypt_data);
	char		  *phrase = vdi_strndup(password.size ? password.data : "", password.size);
	const char	  *hash = NULL;
	vd_status	   status = VD_NOMEM;

	if (scratch && phrase) {
		hash = crypt_rn(phrase, setting, scratch, (int) sizeof *scratch);
		status = hash && strlen(hash) < VDI_AUTH_HASH_SIZE ? VD_OK : VD_INVALID_ARGUMENT;
	}
	if (status == VD_OK)
		memcpy(ret_hash, hash, strlen(hash) + 1);
	if (phrase)
		explicit_bzero(phrase, password.size);
	if (scratch)
		explicit_bzero(scratch, sizeof *scratch);
	vdi_free(phrase);
	vdi_free(scratch);
	return status;
}

vd_status vdi_auth_hash_password(struct vdi_auth *auth, struct vd_bytes password,
				 char ret_hash[VDI_AUTH_HASH_SIZE])
{
	char setting[VDI_AUTH_HASH_SIZE];

	VDI_TRY(make_setting(auth->server->options.bcrypt_cost, setting));
	return crypt_password(password, setting, ret_hash);
}

const char *vdi_auth_no_hash(const struct vdi_auth *auth)
{
	return auth->no_hash;
}

vd_status vdi_auth_password_matches(struct vd_bytes password, const char *hash, bool *ret_matches)
{
	char	  made[VDI_AUTH_HASH_SIZE] = "";
	unsigned  different = 0;
	vd_status status = crypt_password(password, hash, made);

	if (status == VD_NOMEM)
		return status;
	*ret_matches = false;
	if (status != VD_OK || strlen(made) != strlen(hash))
		return VD_OK; /* the stored hash is invalid */
	for (size_t i = 0; made[i]; i++)
		different |= (unsigned) (made[i] ^ hash[i]);
	*ret_matches = different == 0;
	return VD_OK;
}
