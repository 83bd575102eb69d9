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
	assert_status(vdi_auth_data_add_account(data, vd_bytes_of("n"), vd_bytes_of(""), true), VD_OK);
	vdi_auth_data_write(&out, data);
	size = out.size;
	assert_status(vdi_auth_data_read((struct vd_bytes) { bytes, size }, &again), VD_OK);
	out = (struct vdi_wire_out) { more, 0 };
	vdi_auth_data_write(&out, again);
	assert_int_equal(out.size, size);
	assert_memory_equal(bytes, more, size);
	assert_true(again->is_enabled);
	assert_int_equal(again->revision, 77);
	assert_int_equal(again->account_count, 2);
	assert_true(vdi_auth_data_account(again, vd_bytes_of("n"))->no_password);
	assert_false(vdi_auth_data_account(again, vd_bytes_of("u"))->no_password);
	assert_int_equal(vdi_auth_data_account(again, vd_bytes_of("u"))->role_count, 1);
	assert_int_equal(again->role_count, 1);
	assert_int_equal(again->roles[0].permission_count, 2);
	assert_int_equal(again->roles[0].permissions[1].type, VDI_PERMISSION_WRITE);
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

/* Which operations each kind of permission allows. rules: E-167 */
static void e167_kinds_of_permissions(void **state)
{
	static const struct {
		int  type;
		bool reads, writes;
	} rows[] = { { VDI_PERMISSION_READ, true, false },
		     { VDI_PERMISSION_WRITE, false, true },
		     { VDI_PERMISSION_READWRITE, true, true } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		const struct range_permission permission = { rows[i].type, "k", "", 0 };
		struct vdi_auth_data	     *data = data_with(&permission, 1);
		struct vdi_auth_account	     *account = vdi_auth_data_account(data, vd_bytes_of("u"));

		assert_int_equal(vdi_auth_data_permits(data, account, vd_bytes_of("k"), VD_BYTES_NONE, false),
				 rows[i].reads);
		assert_int_equal(vdi_auth_data_permits(data, account, vd_bytes_of("k"), VD_BYTES_NONE, true),
				 rows[i].writes);
		/* A role that is gone permits nothing. */
		assert_status(vdi_auth_account_add_role(account, vd_bytes_of("nobody's")), VD_OK);
		assert_true(vdi_auth_account_remove_role(account, vd_bytes_of("r")));
		assert_false(vdi_auth_account_remove_role(account, vd_bytes_of("r")));
		assert_false(vdi_auth_data_permits(data, account, vd_bytes_of("k"), VD_BYTES_NONE, false));
		assert_false(vdi_auth_data_permits(data, account, vd_bytes_of("k"), VD_BYTES_NONE, true));
		vdi_auth_data_free(data);
	}
}

static const char *permissions_of(const struct vdi_auth_role *role)
{
	static char text[128];
	size_t	    at = 0;

	text[0] = 0;
	for (size_t i = 0; i < role->permission_count; i++)
		at += (size_t) snprintf(text + at, sizeof text - at, "%s%d %.*s-%.*s", i ? "," : "",
					role->permissions[i].type, (int) role->permissions[i].key_size,
					role->permissions[i].key, (int) role->permissions[i].range_end_size,
					role->permissions[i].range_end);
	return text;
}

/* Ordered by key, and as they came for the same key; the same range again only changes its kind. */
static void permissions_of_a_role(void **state)
{
	static const struct range_permission permissions[] = { { VDI_PERMISSION_READ, "m", "z", 1 },
							       { VDI_PERMISSION_READ, "b", "", 0 },
							       { VDI_PERMISSION_READ, "m", "n", 1 },
							       { VDI_PERMISSION_READ, "x", "", 0 },
							       { VDI_PERMISSION_WRITE, "m", "z", 1 } };
	struct vdi_auth_data		    *data = data_with(permissions, VDI_ARRAY_SIZE(permissions));
	struct vdi_auth_role		    *role = vdi_auth_data_role(data, vd_bytes_of("r"));

	(void) state;
	assert_string_equal(permissions_of(role), "0 b-,1 m-z,0 m-n,0 x-");
	assert_false(vdi_auth_role_remove_permission(role, vd_bytes_of("m"), VD_BYTES_NONE));
	assert_false(vdi_auth_role_remove_permission(role, vd_bytes_of("a"), vd_bytes_of("z")));
	assert_true(vdi_auth_role_remove_permission(role, vd_bytes_of("m"), vd_bytes_of("z")));
	assert_string_equal(permissions_of(role), "0 b-,0 m-n,0 x-");
	assert_true(vdi_auth_role_remove_permission(role, vd_bytes_of("x"), VD_BYTES_NONE));
	assert_true(vdi_auth_role_remove_permission(role, vd_bytes_of("b"), VD_BYTES_NONE));
	assert_string_equal(permissions_of(role), "0 m-n");
	vdi_auth_data_free(data);
}

static void e116_bytes_that_are_no_data(void **state)
{
	static const struct {
		const char *bytes;
		size_t	    size;
		vd_status   status;
	} rows[] = {
		{ "", 0, VD_OK },
		{ "\x38\1", 2, VD_OK },		   /* an unknown field */
		{ "\x1a\0\x22\0", 4, VD_OK },	   /* without names */
		{ "\x1a\0\x1a\0", 4, VD_CORRUPT }, /* twice */
		{ "\x22\3\x0a\1r\x22\3\x0a\1r", 10, VD_CORRUPT },
		{ "\x22\3\x0a\1r\x22\3\x0a\1q", 10, VD_OK },
		{ "\x1a\3\x0a\1u\x1a\3\x0a\1u", 10, VD_CORRUPT },
		{ "\x1a\3\x0a\1u\x1a\3\x0a\1v", 10, VD_OK },
		{ "\x08", 1, VD_CORRUPT },
		{ "\x1a\4\x0a\1u\x08", 6, VD_CORRUPT },	      /* an account that is cut */
		{ "\x22\4\x0a\1r\x08", 6, VD_CORRUPT },	      /* a role */
		{ "\x22\6\x0a\1r\x12\1\x08", 8, VD_CORRUPT }, /* a permission */
		{ "\x22\7\x0a\1r\x12\2\x08\1", 9, VD_OK },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_auth_data *data = NULL;
		vd_status	      status =
			vdi_auth_data_read((struct vd_bytes) { rows[i].bytes, rows[i].size }, &data);

		if (status != rows[i].status)
			fail_msg("row %zu: %s", i, vd_status_name(status));
		assert_int_equal(data != NULL, status == VD_OK);
		vdi_auth_data_free(data);
	}
}

/* Each allocation fails in turn: an error, and what was there before is still whole. */
static void changes_without_memory(void **state)
{
	static const struct range_permission permission = { VDI_PERMISSION_READ, "a", "c", 1 };
	static const char		     bytes[] = "\x08\1\x1a\x0b\x0a\1u\x12\1p\x1a\1r\x22\0\x22\x0d"
						       "\x0a\1r\x12\x08\x08\1\x12\1k\x1a\1l";
	struct vdi_auth_data		    *data;
	vd_status			     status;

	(void) state;
	for (int what = 0; what < 6; what++) {
		status = VD_NOMEM;
		for (uint64_t nth = 1; status != VD_OK; nth++) {
			struct vdi_auth_data	*read = NULL;
			struct vdi_auth_role	*role;
			struct vdi_auth_account *account;

			assert_true(nth < 100);
			data = data_with(&permission, 1);
			role = vdi_auth_data_role(data, vd_bytes_of("r"));
			account = vdi_auth_data_account(data, vd_bytes_of("u"));
			(void) vdi_alloc_fail_nth(nth, 1);
			switch (what) {
			case 0:
				status = vdi_auth_data_add_account(data, vd_bytes_of("a"), vd_bytes_of("p"),
								   false);
				break;
			case 1: status = vdi_auth_data_add_role(data, vd_bytes_of("a")); break;
			case 2: status = vdi_auth_account_add_role(account, vd_bytes_of("a")); break;
			case 3: status = vdi_auth_account_set_password(account, vd_bytes_of("new")); break;
			case 4:
				status = vdi_auth_role_add_permission(role, VDI_PERMISSION_READ,
								      vd_bytes_of("b"), vd_bytes_of("d"));
				break;
			default:
				status = vdi_auth_data_read((struct vd_bytes) { bytes, sizeof bytes - 1 },
							    &read);
				break;
			}
			assert_int_equal(status == VD_OK, !vdi_alloc_failed());
			(void) vdi_alloc_fail_nth(0, 0);
			if (status != VD_OK) {
				assert_status(status, VD_NOMEM);
				assert_int_equal(data->account_count, 1);
				assert_int_equal(data->role_count, 1);
				assert_int_equal(account->role_count, 1);
				assert_int_equal(account->password.size, 0);
				assert_int_equal(role->permission_count, 1);
			}
			vdi_auth_data_free(read);
			vdi_auth_data_free(data);
		}
	}
}

/* Full lists are played by their counts: a real one takes minutes. */
static void entries_are_bounded(void **state)
{
	struct vdi_auth_data	*data = data_with(NULL, 0);
	struct vdi_auth_account *account = vdi_auth_data_account(data, vd_bytes_of("u"));

	(void) state;
	account->role_count = VDI_AUTH_ENTRIES_MAX;
	assert_status(vdi_auth_account_add_role(account, vd_bytes_of("t")), VD_FULL);
	account->role_count = 1;
	data->account_count = VDI_AUTH_ENTRIES_MAX;
	assert_status(vdi_auth_data_add_account(data, vd_bytes_of("t"), VD_BYTES_NONE, false), VD_FULL);
	data->account_count = 1;
	data->role_count = VDI_AUTH_ENTRIES_MAX;
	assert_status(vdi_auth_data_add_role(data, vd_bytes_of("t")), VD_FULL);
	data->role_count = 1;
	assert_status(vdi_auth_account_add_role(account, vd_bytes_of("t")), VD_OK);
	assert_int_equal(account->role_count, 2);
	vdi_auth_data_free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, etcd_server_setup, etcd_server_teardown)
		cmocka_unit_test(e167_permissions_together_cover_a_range),
		cmocka_unit_test(e116_data_survives_its_bytes),
		cmocka_unit_test(e116_data_is_read_in_any_order),
		cmocka_unit_test(e116_accounts_and_roles_are_removed_one_by_one),
		cmocka_unit_test(e167_kinds_of_permissions),
		cmocka_unit_test(permissions_of_a_role),
		cmocka_unit_test(e116_bytes_that_are_no_data),
		cmocka_unit_test(changes_without_memory),
		cmocka_unit_test(entries_are_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
