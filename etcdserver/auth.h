/* Users, roles and tokens: who may do what (E-167, E-168; etcd server/auth/store.go, range_perm_cache.go,
 * simple_token.go).
 *
 * The data is small and changes rarely: it is one immutable value under a lock; a change makes a new one, has
 * it on disk (serve_state.h), and puts it in place. Checks take the lock for the length of the check. Changes
 * are made by one worker, which may block; everything else may be called from any thread and never blocks.
 */
#ifndef VDI_AUTH_H
#define VDI_AUTH_H

#include "auth_data.h"
#include "serve_call.h"

struct vdi_auth;

/* Who asks. Plain data. */
#define VDI_AUTH_NAME_MAX 256
struct vdi_auth_user {
	bool	 is_given;
	uint64_t revision; /* of the auth data when the token was looked at */
	size_t	 name_size;
	char	 name[VDI_AUTH_NAME_MAX];
};

VDI_MUST_USE vd_status vdi_auth_new(struct vdi_etcdserver *server, struct vdi_auth **ret_auth,
				    struct vd_error *reterr);
/* NULL is fine; returns NULL. */
struct vdi_auth *vdi_auth_free(struct vdi_auth *auth);

bool	 vdi_auth_is_enabled(const struct vdi_auth *auth);
uint64_t vdi_auth_revision(const struct vdi_auth *auth);

/* VD_ETCD_OTHER, or what is wrong with the token. */
enum vd_etcd_code vdi_auth_find_user(struct vdi_serve_call *call, struct vdi_auth_user *ret_user);
/* Reads the token (or the certificate) of a call. False: the call was ended with the reason. Without
 * authentication: nobody is given. */
bool vdi_auth_identify(struct vdi_serve_call *call, struct vdi_auth_user *ret_user);
/* VD_ETCD_OTHER: permitted. range_end as in etcd. */
enum vd_etcd_code vdi_auth_check_range(struct vdi_auth *auth, const struct vdi_auth_user *user,
				       struct vd_bytes key, struct vd_bytes range_end);
enum vd_etcd_code vdi_auth_check_write(struct vdi_auth *auth, const struct vdi_auth_user *user,
				       struct vd_bytes key, struct vd_bytes range_end);
enum vd_etcd_code vdi_auth_check_admin(struct vdi_auth *auth, const struct vdi_auth_user *user);
/* Anybody at all, but somebody. */
enum vd_etcd_code vdi_auth_check_somebody(struct vdi_auth *auth, const struct vdi_auth_user *user);
/* Every key that hangs on the lease may be written (or read). A lease that does not exist is no obstacle. */
enum vd_etcd_code vdi_auth_check_lease(struct vdi_auth *auth, const struct vdi_auth_user *user, int64_t lease,
				       bool write);
/* Runs work, which calls vdi_auth_check_lease: at once, or on a worker of its own when all keys of the lease
 * may have to be checked. */
void vdi_auth_defer_lease(struct vdi_serve_call *call, void (*work)(struct vdi_serve_call *call));
/* identify and check_admin; false: the call was ended. */
bool vdi_auth_require_admin(struct vdi_serve_call *call);
bool vdi_auth_require_somebody(struct vdi_serve_call *call);

/* ---- For the Auth service ---- */

/* What exists, under the lock: look, do not keep. */
const struct vdi_auth_data *vdi_auth_look(struct vdi_auth *auth);
void			    vdi_auth_look_end(struct vdi_auth *auth);

/* One change, on the worker for slow work. change edits a copy and says VD_ETCD_OTHER, or why not; then the
 * copy is on disk and in place, unless it has set
 * *ret_changed to false. */
typedef enum vd_etcd_code (*vdi_auth_change_fn)(struct vdi_auth_data *data, void *arg, vd_status *ret_status,
						bool *ret_changed);
/* VD_OK with *ret_code VD_ETCD_OTHER: done. Blocks. */
VDI_MUST_USE vd_status vdi_auth_change(struct vdi_auth *auth, vdi_auth_change_fn change, void *arg,
				       enum vd_etcd_code *ret_code);

/* The data as bytes (auth_data.h), for a snapshot; the caller frees. Any thread. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_auth_encode(struct vdi_auth *auth, void **ret_bytes, size_t *ret_size);
/* In the place of what is there, before anything is served: bytes as encode makes them. Blocks. VD_CORRUPT,
 * VD_NOMEM, VD_IO. */
VDI_MUST_USE vd_status vdi_auth_restore(struct vdi_auth *auth, struct vd_bytes bytes);

/* Tokens. The token is NUL-terminated; VD_AGAIN: the data has another revision by now; VD_FULL, VD_NOMEM,
 * VD_IO. */
#define VDI_AUTH_TOKEN_SIZE 48
VDI_MUST_USE vd_status vdi_auth_token_new(struct vdi_auth *auth, struct vd_bytes user, uint64_t revision,
					  char ret_token[VDI_AUTH_TOKEN_SIZE]);
/* Of that user, or all (NULL data). */
void vdi_auth_tokens_forget(struct vdi_auth *auth, struct vd_bytes user);

/* bcrypt. Blocks for some 50 ms. VD_IO (no randomness), VD_NOMEM, VD_INVALID_ARGUMENT. */
#define VDI_AUTH_HASH_SIZE 128
VDI_MUST_USE vd_status vdi_auth_hash_password(struct vdi_auth *auth, struct vd_bytes password,
					      char ret_hash[VDI_AUTH_HASH_SIZE]);
/* In place of a hash: no password matches, and finding that out takes as long as with a real one. Lent;
 * VDI_AUTH_HASH_SIZE bytes. */
const char *vdi_auth_no_hash(const struct vdi_auth *auth);
/* VD_OK with *ret_matches, VD_NOMEM. Blocks likewise. */
VDI_MUST_USE vd_status vdi_auth_password_matches(struct vd_bytes password, const char *hash,
						 bool *ret_matches);

#endif
