/* Users, roles and permissions as data: what covers a range, and what survives its bytes. */
#include "auth_data.h"
#include "etcd_server_fixture.h"
#include "vdtest.h"

struct range_permission {
	int	    type;
	const char *key;
	const char *end;
	size_t	    end_size;
};

static struct vdi_auth_data *data_with(const struct range_permission *permissions, size_t count)
{
	struct vdi_auth_data *data;

	assert_status(vdi_auth_data_new(&data), VD_OK);
	assert_status(vdi_auth_data_add_account(data, vd_bytes_of("u"), vd_bytes_of(""), false), VD_OK);
	assert_status(
		vdi_auth_account_add_role(vdi_auth_data_account(data, vd_bytes_of("u")), vd_bytes_of("r")),
		VD_OK);
	assert_status(vdi_auth_data_add_role(data, vd_bytes_of("r")), VD_OK);
	for (size_t i = 0; i < count; i++)
		assert_status(vdi_auth_role_add_permission(
				      vdi_auth_data_role(data, vd_bytes_of("r")), permissions[i].type,
				      vd_bytes_of(permissions[i].key),
				      (struct vd_bytes) { permissions[i].end, permissions[i].end_size }),
			      VD_OK);
	return data;
}

static bool may_read(const struct vdi_auth_data *data, const char *key, const char *end, size_t end_size)
{
	return vdi_auth_data_permits(data, vdi_auth_data_account(data, vd_bytes_of("u")), vd_bytes_of(key),
				     (struct vd_bytes) { end, end_size }, false);
}

static void e167_permissions_together_cover_a_range(void **state)
{
	static const struct range_permission permissions[] = { { VDI_PERMISSION_READ, "a", "c", 1 },
							       { VDI_PERMISSION_READWRITE, "c", "e", 1 },
							       { VDI_PERMISSION_WRITE, "e", "f", 1 },
							       { VDI_PERMISSION_READ, "single", "", 0 },
							       { VDI_PERMISSION_READ, "z", "\0", 1 } };
	struct vdi_auth_data		    *data = data_with(permissions, VDI_ARRAY_SIZE(permissions));

	(void) state;
	assert_true(may_read(data, "a", "e", 1));
	assert_true(may_read(data, "b", "", 0));
	assert_true(may_read(data, "bb", "d", 1));
	assert_false(may_read(data, "a", "f", 1));
	assert_false(may_read(data, "e", "", 0));
	assert_true(may_read(data, "single", "", 0));
	assert_true(may_read(data, "single", "single\0", 7));
	assert_false(may_read(data, "single", "single\1", 7));
	assert_false(may_read(data, "single", "singlf", 6));
	assert_true(may_read(data, "z", "\0", 1));
	assert_true(may_read(data, "zz", "\0", 1));
	assert_false(may_read(data, "y", "\0", 1));
	/* E-312: an open end is no single key. */
	assert_false(may_read(data, "single", "\0", 1));
	assert_false(may_read(data, "a", "\0", 1));
	vdi_auth_data_free(data);
	/* A single key ends where its successor begins, whichever of two permissions comes first. */
	for (int order = 0; order < 2; order++) {
		struct vdi_auth_role *role;

		data = data_with(NULL, 0);
		role = vdi_auth_data_role(data, vd_bytes_of("r"));
		for (int i = 0; i < 2; i++)
			if (i == order)
				assert_status(vdi_auth_role_add_permission(role, VDI_PERMISSION_READ,
									   vd_bytes_of("k"), VD_BYTES_NONE),
					      VD_OK);
			else
				assert_status(vdi_auth_role_add_permission(role, VDI_PERMISSION_READ,
									   (struct vd_bytes) { "k\0", 2 },
									   vd_bytes_of("m")),
					      VD_OK);
		assert_true(may_read(data, "k", "l", 1));
		assert_true(may_read(data, "k", "m", 1));
		assert_true(may_read(data, "k", "k\0", 2));
		assert_true(may_read(data, "k", "", 0));
		assert_false(may_read(data, "k", "n", 1));
		vdi_auth_data_free(data);
	}
}

/* Fields in any order; what was never written is not there. */
static void e116_data_is_read_in_any_order(void **state)
{
	static const uint8_t  bytes[] = { 0x10, 77,   0x08, 1,	  0x1a, 7,    0x0a, 1,	 'u',  0x22,
					  2,	0x08, 1,    0x1a, 3,	0x0a, 1,    'v', 0x1a, 9,
					  0x0a, 1,    'w',  0x12, 1,	'p',  0x1a, 1,	 'r' };
	struct vdi_auth_data *data;

	(void) state;
	assert_status(vdi_auth_data_read((struct vd_bytes) { bytes, sizeof bytes }, &data), VD_OK);
	assert_true(data->is_enabled);
	assert_int_equal(data->revision, 77);
	assert_int_equal(data->account_count, 3);
	assert_int_equal(data->role_count, 0);
	assert_int_equal(vdi_auth_data_account(data, vd_bytes_of("v"))->role_count, 0);
	assert_int_equal(vdi_auth_data_account(data, vd_bytes_of("w"))->role_count, 1);
	assert_true(
		vdi_auth_account_has_role(vdi_auth_data_account(data, vd_bytes_of("w")), vd_bytes_of("r")));
	assert_true(vdi_auth_data_account(data, vd_bytes_of("u"))->no_password);
	assert_false(vdi_auth_data_account(data, vd_bytes_of("v"))->no_password);
	vdi_auth_data_free(data);
}

static void e116_data_survives_its_bytes(void **state)
{
	static const struct range_permission permissions[] = { { VDI_PERMISSION_READ, "a", "c", 1 },
							       { VDI_PERMISSION_WRITE, "b", "", 0 } };
	struct vdi_auth_data		    *data = data_with(permissions, 2);
	struct vdi_auth_data		    *again;
	uint8_t				     bytes[512];
	uint8_t				     more[512];
	struct vdi_wire_out		     out = { bytes, 0 };
	size_t				     size;

	(void) state;
	data->is_enabled = true;
	data->revision = 77;
	vdi_auth_data_write(&out, data);
	size = out.size;
	assert_status(vdi_auth_data_read((struct vd_bytes) { bytes, size }, &again), VD_OK);
	out = (struct vdi_wire_out) { more, 0 };
	vdi_auth_data_write(&out, again);
	assert_int_equal(out.size, size);
	assert_memory_equal(bytes, more, size);
	for (size_t cut = 1; cut < size; cut++) {
		struct vdi_auth_data *part = NULL;

		if (vdi_auth_data_read((struct vd_bytes) { bytes, cut }, &part) == VD_OK)
			vdi_auth_data_free(part);
	}
	vdi_auth_data_free(data);
	vdi_auth_data_free(again);
}

/* Whatever is added and removed: those who are left are there with what they have, and nobody else. */
static void e116_accounts_and_roles_are_removed_one_by_one(void **state)
{
	static const char *const names[] = { "c", "a", "e", "b", "d" };
	struct vdi_auth_data	*data;

	(void) state;
	for (size_t gone = 0; gone < VDI_ARRAY_SIZE(names); gone++) {
		assert_status(vdi_auth_data_new(&data), VD_OK);
		for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++) {
			struct vd_bytes name = vd_bytes_of(names[i]);

			assert_status(vdi_auth_data_add_account(data, name, name, false), VD_OK);
			assert_status(vdi_auth_data_add_role(data, name), VD_OK);
			for (size_t j = 0; j <= i; j++)
				assert_status(vdi_auth_account_add_role(vdi_auth_data_account(data, name),
									vd_bytes_of(names[j])),
					      VD_OK);
		}
		vdi_auth_data_remove_account(data, vdi_auth_data_account(data, vd_bytes_of(names[gone])));
		vdi_auth_data_remove_role(data, vdi_auth_data_role(data, vd_bytes_of(names[gone])));
		assert_int_equal(data->account_count, VDI_ARRAY_SIZE(names) - 1);
		assert_int_equal(data->role_count, VDI_ARRAY_SIZE(names) - 1);
		for (size_t i = 0; i < VDI_ARRAY_SIZE(names); i++) {
			struct vdi_auth_account *account = vdi_auth_data_account(data, vd_bytes_of(names[i]));

			assert_int_equal(account == NULL, i == gone);
			assert_int_equal(vdi_auth_data_role(data, vd_bytes_of(names[i])) == NULL, i == gone);
			for (size_t j = 0; account && j < VDI_ARRAY_SIZE(names); j++)
				assert_int_equal(vdi_auth_account_has_role(account, vd_bytes_of(names[j])),
						 j <= i && j != gone);
		}
		vdi_auth_data_free(data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		cmocka_unit_test(e167_permissions_together_cover_a_range),
		cmocka_unit_test(e116_data_survives_its_bytes),
		cmocka_unit_test(e116_data_is_read_in_any_order),
		cmocka_unit_test(e116_accounts_and_roles_are_removed_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
