/* Users, roles and tokens: checks of permissions (etcd server/auth/store.go, range_perm_cache.go,
 * simple_token.go).
 *
 * The data is small and changes rarely, so it is one immutable value under a lock. A change makes a new
 * value, writes it to disk (serve_state.h) and installs it. Checks hold the lock while they run. One worker,
 * which may block, makes all changes; all other functions may be called from any thread and never block.
 */
#ifndef VDI_AUTH_H
#define VDI_AUTH_H

#include "auth_data.h"
#include "serve_call.h"

struct vdi_auth;

/* The user of a call. Plain data. */
#define VDI_AUTH_NAME_MAX 256
struct vdi_auth_user {
	bool	 is_given;
	uint64_t revision; /* of the auth data when the token was checked */
	size_t	 name_size;
	char	 name[VDI_AUTH_NAME_MAX];
};

VDI_MUST_USE vd_status vdi_auth_new(struct vdi_etcdserver *server, struct vdi_auth **ret_auth,
				    struct vd_error *reterr);
/* NULL is fine; returns NULL. */
struct vdi_auth *vdi_auth_free(struct vdi_auth *auth);

bool	 vdi_auth_is_enabled(const struct vdi_auth *auth);
uint64_t vdi_auth_revision(const struct vdi_auth *auth);

/* Returns VD_ETCD_OTHER, or the error of the token. */
enum vd_etcd_code vdi_auth_find_user(struct vdi_serve_call *call, struct vdi_auth_user *ret_user);
/* Finds the user of a call by its token or certificate. False: the call was ended with an error. If
 * authentication is disabled, *ret_user is empty. */
bool vdi_auth_identify(struct vdi_serve_call *call, struct vdi_auth_user *ret_user);
/* Returns VD_ETCD_OTHER if the user has the permission. range_end as in etcd. */
enum vd_etcd_code vdi_auth_check_range(struct vdi_auth *auth, const struct vdi_auth_user *user,
				       struct vd_bytes key, struct vd_bytes range_end);
enum vd_etcd_code vdi_auth_check_write(struct vdi_auth *auth, const struct vdi_auth_user *user,
				       struct vd_bytes key, struct vd_bytes range_end);
enum vd_etcd_code vdi_auth_check_admin(struct vdi_auth *auth, const struct vdi_auth_user *user);
/* Requires that the user is authenticated; no permission is needed. */
enum vd_etcd_code vdi_auth_check_login(struct vdi_auth *auth, const struct vdi_auth_user *user);
/* Requires permission to write (or read) every key attached to the lease. A lease that does not exist
 * passes. */
enum vd_etcd_code vdi_auth_check_lease(struct vdi_auth *auth, const struct vdi_auth_user *user, int64_t lease,
				       bool write);
/* Runs work, which calls vdi_auth_check_lease: at once, or on a worker if all keys of the lease may have to
 * be checked. */
void vdi_auth_defer_lease(struct vdi_serve_call *call, void (*work)(struct vdi_serve_call *call));
/* Combines identify and check_admin; false: the call was ended. */
bool vdi_auth_require_admin(struct vdi_serve_call *call);
bool vdi_auth_require_login(struct vdi_serve_call *call);

/* ---- For the Auth service ---- */

/* Returns the current data, under the lock; do not keep the pointer. */
const struct vdi_auth_data *vdi_auth_lock_data(struct vdi_auth *auth);
void			    vdi_auth_unlock_data(struct vdi_auth *auth);

/* Edits a copy of the data, on the worker for slow work. Returns VD_ETCD_OTHER, or an error. On success the
 * copy is written to disk and installed, unless *ret_changed is set to false. */
typedef enum vd_etcd_code (*vdi_auth_change_fn)(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
						bool *ret_changed);
/* Makes a change. VD_OK with *ret_code VD_ETCD_OTHER: done. Blocks. */
VDI_MUST_USE vd_status vdi_auth_change(struct vdi_auth *auth, vdi_auth_change_fn change, void *arg,
				       enum vd_etcd_code *ret_code);

/* Encodes the data (auth_data.h) for a snapshot; the caller frees. Any thread. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_auth_encode(struct vdi_auth *auth, void **ret_bytes, size_t *ret_size);
/* Replaces the data by bytes from vdi_auth_encode, before the server accepts calls. Blocks. VD_CORRUPT,
 * VD_NOMEM, VD_IO. */
VDI_MUST_USE vd_status vdi_auth_restore(struct vdi_auth *auth, struct vd_bytes bytes);

/* Makes a token, NUL-terminated. VD_AGAIN: the data's revision has changed; VD_FULL, VD_NOMEM, VD_IO. */
#define VDI_AUTH_TOKEN_SIZE 48
VDI_MUST_USE vd_status vdi_auth_token_new(struct vdi_auth *auth, struct vd_bytes user, uint64_t revision,
					  char ret_token[VDI_AUTH_TOKEN_SIZE]);
/* Removes the tokens of that user, or of all (NULL data). */
void vdi_auth_tokens_forget(struct vdi_auth *auth, struct vd_bytes user);

/* Computes a bcrypt hash. Blocks for about 50 ms. VD_IO (no randomness), VD_NOMEM, VD_INVALID_ARGUMENT. */
#define VDI_AUTH_HASH_SIZE 128
VDI_MUST_USE vd_status vdi_auth_hash_password(struct vdi_auth *auth, struct vd_bytes password,
					      char ret_hash[VDI_AUTH_HASH_SIZE]);
/* Returns a placeholder for a hash: no password matches, and the check takes as long as with a real hash.
 * Borrowed; VDI_AUTH_HASH_SIZE bytes. */
const char *vdi_auth_no_hash(const struct vdi_auth *auth);
/* VD_OK with *ret_matches, VD_NOMEM. Also blocks for about 50 ms. */
VDI_MUST_USE vd_status vdi_auth_password_matches(struct vd_bytes password, const char *hash,
						 bool *ret_matches);

#endif
