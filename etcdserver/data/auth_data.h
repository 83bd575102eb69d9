/* Users and roles as plain data: stored, copied, queried (etcd's authpb, server/auth/store.go and
 * range_perm_cache.go).
 *
 * One owner; threads that share it need a lock. Names and keys are arbitrary bytes. Lists are sorted
 * bytewise.
 */
#ifndef VDI_AUTH_DATA_H
#define VDI_AUTH_DATA_H

#include "serve_wire.h"

#define VDI_AUTH_ROOT "root"
/* Maximum entries of each list. */
#define VDI_AUTH_ENTRIES_MAX 100000

enum vdi_permission { VDI_PERMISSION_READ, VDI_PERMISSION_WRITE, VDI_PERMISSION_READWRITE };

struct vdi_auth_permission {
	int    type; /* enum vdi_permission */
	char  *key;
	size_t key_size;
	char  *range_end;
	size_t range_end_size;
};

struct vdi_auth_name {
	char  *data;
	size_t size;
};

struct vdi_auth_role {
	struct vdi_auth_name	    name;
	struct vdi_auth_permission *permissions;
	size_t			    permission_count;
	size_t			    permission_capacity;
};

struct vdi_auth_account {
	struct vdi_auth_name  name;
	struct vdi_auth_name  password; /* password hash */
	bool		      no_password;
	struct vdi_auth_name *roles;
	size_t		      role_count;
	size_t		      role_capacity;
};

struct vdi_auth_data {
	bool			 is_enabled;
	uint64_t		 revision;
	struct vdi_auth_account *accounts;
	size_t			 account_count;
	size_t			 account_capacity;
	struct vdi_auth_role	*roles;
	size_t			 role_count;
	size_t			 role_capacity;
};

static inline struct vd_bytes vdi_auth_name_bytes(const struct vdi_auth_name *name)
{
	return (struct vd_bytes) { name->data, name->size };
}

/* Makes empty data: disabled, revision 1. */
VDI_MUST_USE vd_status vdi_auth_data_new(struct vdi_auth_data **ret_data);
/* NULL is fine; returns NULL. */
struct vdi_auth_data *vdi_auth_data_free(struct vdi_auth_data *data);
/* Writes the stored form: fields 1 enabled, 2 revision, 3 authpb.User, 4 authpb.Role; arg: the data. */
void vdi_auth_data_write(struct vdi_wire_out *out, const void *arg);
/* Write authpb.User and authpb.Role; arg: a struct vdi_auth_account, a struct vdi_auth_role. */
void vdi_auth_account_write(struct vdi_wire_out *out, const void *arg);
void vdi_auth_role_write(struct vdi_wire_out *out, const void *arg);
/* Reads the stored form. VD_CORRUPT, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_auth_data_read(struct vd_bytes bytes, struct vdi_auth_data **ret_data);

/* Return NULL if there is none. */
struct vdi_auth_account *vdi_auth_data_account(const struct vdi_auth_data *data, struct vd_bytes name);
struct vdi_auth_role	*vdi_auth_data_role(const struct vdi_auth_data *data, struct vd_bytes name);
bool vdi_auth_account_has_role(const struct vdi_auth_account *account, struct vd_bytes role);
/* Returns true if the permissions of the account's roles cover [key, range_end), in etcd's notation; the root
 * role is not considered. */
bool vdi_auth_data_permits(const struct vdi_auth_data *data, const struct vdi_auth_account *account,
			   struct vd_bytes key, struct vd_bytes range_end, bool write);

/* Changes: VD_NOMEM or VD_FULL; after a failure the data may only be freed. */
VDI_MUST_USE vd_status vdi_auth_data_add_account(struct vdi_auth_data *data, struct vd_bytes name,
						 struct vd_bytes password, bool no_password);
VDI_MUST_USE vd_status vdi_auth_data_add_role(struct vdi_auth_data *data, struct vd_bytes name);
VDI_MUST_USE vd_status vdi_auth_account_set_password(struct vdi_auth_account *account,
						     struct vd_bytes	      password);
VDI_MUST_USE vd_status vdi_auth_account_add_role(struct vdi_auth_account *account, struct vd_bytes role);
VDI_MUST_USE vd_status vdi_auth_role_add_permission(struct vdi_auth_role *role, int type, struct vd_bytes key,
						    struct vd_bytes range_end);
/* False: no such permission. */
bool vdi_auth_role_remove_permission(struct vdi_auth_role *role, struct vd_bytes key,
				     struct vd_bytes range_end);
bool vdi_auth_account_remove_role(struct vdi_auth_account *account, struct vd_bytes role);
void vdi_auth_data_remove_account(struct vdi_auth_data *data, struct vdi_auth_account *account);
/* Also removes it from all accounts. */
void vdi_auth_data_remove_role(struct vdi_auth_data *data, struct vdi_auth_role *role);

#endif
