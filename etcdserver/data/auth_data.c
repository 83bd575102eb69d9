/* A permission covers a half-open interval of keys; a single key is [key, key + "\0"). Several permissions
 * cover a range if a walk from its start reaches its end: the next point is the furthest end of a permission
 * that contains the current one. (Upstream uses an interval tree.) */
#include "auth_data.h"

/* ---- Names ---- */

static vd_status copy_name(struct vd_bytes bytes, struct vdi_auth_name *ret_name)
{
	char *copy = vdi_alloc(bytes.size + 1);

	if (copy == NULL)
		return VD_NOMEM;
	if (bytes.size)
		memcpy(copy, bytes.data, bytes.size);
	copy[bytes.size] = 0;
	*ret_name = (struct vdi_auth_name) { copy, bytes.size };
	return VD_OK;
}

static void fini_permission(struct vdi_auth_permission *permission)
{
	vdi_free(permission->key);
	vdi_free(permission->range_end);
}

static void fini_role(struct vdi_auth_role *role)
{
	for (size_t i = 0; i < role->permission_count; i++)
		fini_permission(&role->permissions[i]);
	vdi_free(role->permissions);
	vdi_free(role->name.data);
}

static void fini_account(struct vdi_auth_account *account)
{
	for (size_t i = 0; i < account->role_count; i++)
		vdi_free(account->roles[i].data);
	vdi_free(account->roles);
	vdi_free(account->name.data);
	vdi_free(account->password.data);
}

vd_status vdi_auth_data_new(struct vdi_auth_data **ret_data)
{
	struct vdi_auth_data *data = VDI_NEW(struct vdi_auth_data);

	if (data == NULL)
		return VD_NOMEM;
	data->revision = 1;
	*ret_data = data;
	return VD_OK;
}

struct vdi_auth_data *vdi_auth_data_free(struct vdi_auth_data *data)
{
	if (data == NULL)
		return NULL;
	for (size_t i = 0; i < data->account_count; i++)
		fini_account(&data->accounts[i]);
	for (size_t i = 0; i < data->role_count; i++)
		fini_role(&data->roles[i]);
	vdi_free(data->accounts);
	vdi_free(data->roles);
	vdi_free(data);
	return NULL;
}

/* ---- The stored form ---- */

static void write_options(struct vdi_wire_out *out, const void *arg)
{
	(void) arg;
	vdi_wire_number(out, 1, 1);
}

void vdi_auth_account_write(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_auth_account *account = arg;

	vdi_wire_bytes(out, 1, vdi_auth_name_bytes(&account->name));
	vdi_wire_bytes(out, 2, vdi_auth_name_bytes(&account->password));
	for (size_t i = 0; i < account->role_count; i++)
		vdi_wire_bytes_always(out, 3, vdi_auth_name_bytes(&account->roles[i]));
	if (account->no_password)
		vdi_wire_message(out, 4, write_options, NULL);
}

static void write_permission(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_auth_permission *permission = arg;

	vdi_wire_number(out, 1, (uint64_t) permission->type);
	vdi_wire_bytes(out, 2, (struct vd_bytes) { permission->key, permission->key_size });
	vdi_wire_bytes(out, 3, (struct vd_bytes) { permission->range_end, permission->range_end_size });
}

void vdi_auth_role_write(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_auth_role *role = arg;

	vdi_wire_bytes(out, 1, vdi_auth_name_bytes(&role->name));
	for (size_t i = 0; i < role->permission_count; i++)
		vdi_wire_message(out, 2, write_permission, &role->permissions[i]);
}

void vdi_auth_data_write(struct vdi_wire_out *out, const void *arg)
{
	const struct vdi_auth_data *data = arg;

	vdi_wire_number(out, 1, data->is_enabled);
	vdi_wire_number(out, 2, data->revision);
	for (size_t i = 0; i < data->account_count; i++)
		vdi_wire_message(out, 3, vdi_auth_account_write, &data->accounts[i]);
	for (size_t i = 0; i < data->role_count; i++)
		vdi_wire_message(out, 4, vdi_auth_role_write, &data->roles[i]);
}

static vd_status read_permission(struct vd_bytes bytes, struct vdi_auth_role *role)
{
	struct vdi_wire_reader reader;
	struct vd_bytes	       key = VD_BYTES_NONE;
	struct vd_bytes	       range_end = VD_BYTES_NONE;
	int		       type = VDI_PERMISSION_READ;

	vdi_wire_reader_init(&reader, bytes);
	while (vdi_wire_next(&reader)) {
		if (reader.tag == VDI_WIRE_VARINT(1))
			type = (int) reader.number;
		else if (reader.tag == VDI_WIRE_BYTES(2))
			key = reader.bytes;
		else if (reader.tag == VDI_WIRE_BYTES(3))
			range_end = reader.bytes;
	}
	return reader.is_bad ? VD_CORRUPT : vdi_auth_role_add_permission(role, type, key, range_end);
}

static struct vd_bytes first_name(struct vd_bytes bytes)
{
	struct vdi_wire_reader reader;
	struct vd_bytes	       name = VD_BYTES_NONE;

	vdi_wire_reader_init(&reader, bytes);
	while (vdi_wire_next(&reader))
		if (reader.tag == VDI_WIRE_BYTES(1))
			name = reader.bytes;
	return name;
}

static vd_status read_role(struct vd_bytes bytes, struct vdi_auth_data *data)
{
	struct vd_bytes	       name = first_name(bytes);
	struct vdi_wire_reader reader;

	if (vdi_auth_data_role(data, name))
		return VD_CORRUPT;
	VDI_TRY(vdi_auth_data_add_role(data, name));
	vdi_wire_reader_init(&reader, bytes);
	while (vdi_wire_next(&reader))
		if (reader.tag == VDI_WIRE_BYTES(2))
			VDI_TRY(read_permission(reader.bytes, vdi_auth_data_role(data, name)));
	return reader.is_bad ? VD_CORRUPT : VD_OK;
}

static vd_status read_account(struct vd_bytes bytes, struct vdi_auth_data *data)
{
	struct vd_bytes		 name = first_name(bytes);
	struct vdi_auth_account *account;
	struct vdi_wire_reader	 reader;
	struct vdi_wire_reader	 options;

	if (vdi_auth_data_account(data, name))
		return VD_CORRUPT;
	VDI_TRY(vdi_auth_data_add_account(data, name, VD_BYTES_NONE, false));
	account = vdi_auth_data_account(data, name);
	vdi_wire_reader_init(&reader, bytes);
	while (vdi_wire_next(&reader)) {
		switch (reader.tag) {
		case VDI_WIRE_BYTES(2): VDI_TRY(vdi_auth_account_set_password(account, reader.bytes)); break;
		case VDI_WIRE_BYTES(3): VDI_TRY(vdi_auth_account_add_role(account, reader.bytes)); break;
		case VDI_WIRE_BYTES(4):
			vdi_wire_reader_init(&options, reader.bytes);
			while (vdi_wire_next(&options))
				if (options.tag == VDI_WIRE_VARINT(1))
					account->no_password = options.number != 0;
			break;
		default: break;
		}
	}
	return reader.is_bad ? VD_CORRUPT : VD_OK;
}

vd_status vdi_auth_data_read(struct vd_bytes bytes, struct vdi_auth_data **ret_data)
{
	struct vdi_wire_reader reader;
	struct vdi_auth_data  *data;
	vd_status	       status;

	VDI_TRY(vdi_auth_data_new(&data));
	vdi_wire_reader_init(&reader, bytes);
	status = VD_OK;
	while (status == VD_OK && vdi_wire_next(&reader)) {
		switch (reader.tag) {
		case VDI_WIRE_VARINT(1): data->is_enabled = reader.number != 0; break;
		case VDI_WIRE_VARINT(2): data->revision = reader.number; break;
		case VDI_WIRE_BYTES(3): status = read_account(reader.bytes, data); break;
		case VDI_WIRE_BYTES(4): status = read_role(reader.bytes, data); break;
		default: break;
		}
	}
	if (status == VD_OK && reader.is_bad)
		status = VD_CORRUPT;
	if (status == VD_OK)
		*ret_data = data;
	else
		vdi_auth_data_free(data);
	return status;
}

/* ---- Asking ---- */

struct vdi_auth_account *vdi_auth_data_account(const struct vdi_auth_data *data, struct vd_bytes name)
{
	for (size_t i = 0; i < data->account_count; i++)
		if (vd_bytes_equal(vdi_auth_name_bytes(&data->accounts[i].name), name))
			return &data->accounts[i];
	return NULL;
}

struct vdi_auth_role *vdi_auth_data_role(const struct vdi_auth_data *data, struct vd_bytes name)
{
	for (size_t i = 0; i < data->role_count; i++)
		if (vd_bytes_equal(vdi_auth_name_bytes(&data->roles[i].name), name))
			return &data->roles[i];
	return NULL;
}

bool vdi_auth_account_has_role(const struct vdi_auth_account *account, struct vd_bytes role)
{
	for (size_t i = 0; i < account->role_count; i++)
		if (vd_bytes_equal(vdi_auth_name_bytes(&account->roles[i]), role))
			return true;
	return false;
}

/* A border between keys: before bytes, or (is_after) before bytes + "\0", or after all keys. */
struct border {
	struct vd_bytes bytes;
	bool		is_after;
	bool		is_infinite;
};

static bool is_open_ended(struct vd_bytes range_end)
{
	return range_end.size == 1 && *(const char *) range_end.data == 0;
}

static struct border border_of_end(struct vd_bytes key, struct vd_bytes range_end)
{
	if (range_end.size == 0)
		return (struct border) { key, true, false };
	return (struct border) { range_end, false, is_open_ended(range_end) };
}

static bool is_successor(struct vd_bytes bytes, struct vd_bytes successor)
{
	return successor.size == bytes.size + 1 && vd_bytes_has_prefix(successor, bytes) &&
	       ((const char *) successor.data)[bytes.size] == 0;
}

static int compare_borders(const struct border *a, const struct border *b)
{
	int order;

	if (a->is_infinite || b->is_infinite)
		return (int) a->is_infinite - (int) b->is_infinite;
	order = vd_bytes_compare(a->bytes, b->bytes);
	if (order == 0)
		return (int) a->is_after - (int) b->is_after;
	if (order < 0 && a->is_after && !b->is_after && is_successor(a->bytes, b->bytes))
		return 0;
	if (order > 0 && b->is_after && !a->is_after && is_successor(b->bytes, a->bytes))
		return 0;
	return order;
}

static bool is_of_kind(const struct vdi_auth_permission *permission, bool write)
{
	return permission->type == VDI_PERMISSION_READWRITE ||
	       permission->type == (write ? VDI_PERMISSION_WRITE : VDI_PERMISSION_READ);
}

/* Moves *at to the furthest border that one permission reaches from it; false: none contains it. */
static bool advance(const struct vdi_auth_data *data, const struct vdi_auth_account *account, bool write,
		    struct border *at)
{
	struct border best = *at;

	for (size_t i = 0; i < account->role_count; i++) {
		const struct vdi_auth_role *role =
			vdi_auth_data_role(data, vdi_auth_name_bytes(&account->roles[i]));

		for (size_t j = 0; role && j < role->permission_count; j++) {
			const struct vdi_auth_permission *permission = &role->permissions[j];
			struct vd_bytes			  key = { permission->key, permission->key_size };
			struct border			  from = { key, false, false };
			struct vd_bytes end = { permission->range_end, permission->range_end_size };
			struct border	to = border_of_end(key, end);

			if (is_of_kind(permission, write) && compare_borders(&from, at) <= 0 &&
			    compare_borders(&to, &best) > 0)
				best = to;
		}
	}
	if (compare_borders(&best, at) == 0)
		return false;
	*at = best;
	return true;
}

bool vdi_auth_data_permits(const struct vdi_auth_data *data, const struct vdi_auth_account *account,
			   struct vd_bytes key, struct vd_bytes range_end, bool write)
{
	struct border at = { key, false, false };
	struct border to = border_of_end(key, range_end);

	/* An empty range has no keys, but still requires permission for its first key. */
	do
		if (!advance(data, account, write, &at))
			return false;
	while (compare_borders(&at, &to) < 0);
	return true;
}

/* ---- Changing ---- */

static bool grow(void **array, size_t *capacity, size_t count, size_t element_size, vd_status *ret_status)
{
	*ret_status = VD_FULL;
	if (count >= VDI_AUTH_ENTRIES_MAX)
		return false;
	*ret_status = VD_NOMEM;
	return vdi_grow(array, capacity, count + 1, element_size);
}

vd_status vdi_auth_data_add_account(struct vdi_auth_data *data, struct vd_bytes name,
				    struct vd_bytes password, bool no_password)
{
	struct vdi_auth_account account = { .no_password = no_password };
	size_t			place = 0;
	vd_status		status;

	if (!grow((void **) &data->accounts, &data->account_capacity, data->account_count, sizeof account,
		  &status))
		return status;
	status = copy_name(name, &account.name);
	if (status == VD_OK)
		status = copy_name(password, &account.password);
	if (status != VD_OK) {
		fini_account(&account);
		return status;
	}
	while (place < data->account_count &&
	       vd_bytes_compare(vdi_auth_name_bytes(&data->accounts[place].name), name) < 0)
		place++;
	memmove(&data->accounts[place + 1], &data->accounts[place],
		(data->account_count - place) * sizeof account);
	data->accounts[place] = account;
	data->account_count++;
	return VD_OK;
}

vd_status vdi_auth_data_add_role(struct vdi_auth_data *data, struct vd_bytes name)
{
	struct vdi_auth_role role = { 0 };
	size_t		     place = 0;
	vd_status	     status;

	if (!grow((void **) &data->roles, &data->role_capacity, data->role_count, sizeof role, &status))
		return status;
	VDI_TRY(copy_name(name, &role.name));
	while (place < data->role_count &&
	       vd_bytes_compare(vdi_auth_name_bytes(&data->roles[place].name), name) < 0)
		place++;
	memmove(&data->roles[place + 1], &data->roles[place], (data->role_count - place) * sizeof role);
	data->roles[place] = role;
	data->role_count++;
	return VD_OK;
}

vd_status vdi_auth_account_set_password(struct vdi_auth_account *account, struct vd_bytes password)
{
	struct vdi_auth_name copy;

	VDI_TRY(copy_name(password, &copy));
	vdi_free(account->password.data);
	account->password = copy;
	return VD_OK;
}

vd_status vdi_auth_account_add_role(struct vdi_auth_account *account, struct vd_bytes role)
{
	struct vdi_auth_name copy;
	size_t		     place = 0;
	vd_status	     status;

	if (!grow((void **) &account->roles, &account->role_capacity, account->role_count, sizeof copy,
		  &status))
		return status;
	VDI_TRY(copy_name(role, &copy));
	while (place < account->role_count &&
	       vd_bytes_compare(vdi_auth_name_bytes(&account->roles[place]), role) < 0)
		place++;
	memmove(&account->roles[place + 1], &account->roles[place],
		(account->role_count - place) * sizeof copy);
	account->roles[place] = copy;
	account->role_count++;
	return VD_OK;
}

static struct vdi_auth_permission *find_permission(struct vdi_auth_role *role, struct vd_bytes key,
						   struct vd_bytes range_end)
{
	for (size_t i = 0; i < role->permission_count; i++) {
		struct vdi_auth_permission *permission = &role->permissions[i];

		if (vd_bytes_equal((struct vd_bytes) { permission->key, permission->key_size }, key) &&
		    vd_bytes_equal((struct vd_bytes) { permission->range_end, permission->range_end_size },
				   range_end))
			return permission;
	}
	return NULL;
}

vd_status vdi_auth_role_add_permission(struct vdi_auth_role *role, int type, struct vd_bytes key,
				       struct vd_bytes range_end)
{
	struct vdi_auth_permission *found = find_permission(role, key, range_end);
	struct vdi_auth_name	    key_copy;
	struct vdi_auth_name	    end_copy;
	size_t			    place = 0;
	vd_status		    status;

	if (found) {
		found->type = type;
		return VD_OK;
	}
	if (!grow((void **) &role->permissions, &role->permission_capacity, role->permission_count,
		  sizeof *found, &status))
		return status;
	VDI_TRY(copy_name(key, &key_copy));
	status = copy_name(range_end, &end_copy);
	if (status != VD_OK) {
		vdi_free(key_copy.data);
		return status;
	}
	while (place < role->permission_count &&
	       vd_bytes_compare(
		       (struct vd_bytes) { role->permissions[place].key, role->permissions[place].key_size },
		       key) <= 0)
		place++;
	memmove(&role->permissions[place + 1], &role->permissions[place],
		(role->permission_count - place) * sizeof *found);
	role->permissions[place] = (struct vdi_auth_permission) { type, key_copy.data, key_copy.size,
								  end_copy.data, end_copy.size };
	role->permission_count++;
	return VD_OK;
}

bool vdi_auth_role_remove_permission(struct vdi_auth_role *role, struct vd_bytes key,
				     struct vd_bytes range_end)
{
	struct vdi_auth_permission *found = find_permission(role, key, range_end);

	if (found == NULL)
		return false;
	fini_permission(found);
	role->permission_count--;
	memmove(found, found + 1,
		(size_t) (role->permissions + role->permission_count - found) * sizeof *found);
	return true;
}

bool vdi_auth_account_remove_role(struct vdi_auth_account *account, struct vd_bytes role)
{
	for (size_t i = 0; i < account->role_count; i++) {
		if (!vd_bytes_equal(vdi_auth_name_bytes(&account->roles[i]), role))
			continue;
		vdi_free(account->roles[i].data);
		account->role_count--;
		memmove(&account->roles[i], &account->roles[i + 1],
			(account->role_count - i) * sizeof account->roles[0]);
		return true;
	}
	return false;
}

void vdi_auth_data_remove_account(struct vdi_auth_data *data, struct vdi_auth_account *account)
{
	fini_account(account);
	data->account_count--;
	memmove(account, account + 1,
		(size_t) (data->accounts + data->account_count - account) * sizeof *account);
}

void vdi_auth_data_remove_role(struct vdi_auth_data *data, struct vdi_auth_role *role)
{
	for (size_t i = 0; i < data->account_count; i++)
		/* Most accounts do not have it. */
		(void) vdi_auth_account_remove_role(&data->accounts[i], vdi_auth_name_bytes(&role->name));
	fini_role(role);
	data->role_count--;
	memmove(role, role + 1, (size_t) (data->roles + data->role_count - role) * sizeof *role);
}
