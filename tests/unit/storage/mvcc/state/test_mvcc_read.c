/* Unit tests of storage/mvcc/state/mvcc_read.c: which revisions can be read, and what a refusal says. */
#include "mvcc_read.h"

#include "alloc.h"
#include "vdtest.h"

static void a_refusal_names_the_revisions(void **state)
{
	static const struct {
		vd_rev	  revision;
		vd_status status;
	} rows[] = { { -1, VD_OK },
		     { 0, VD_OK },
		     { 1, VD_EXPIRED },
		     { 4, VD_EXPIRED },
		     { 5, VD_OK },
		     { 10, VD_OK },
		     { 11, VD_TOO_LARGE_REVISION },
		     { INT64_MAX, VD_TOO_LARGE_REVISION } };
	const struct vdi_view view = { .revision = 10, .compacted = 5 };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vd_error error = { .code = VD_FULL, .requested = 77, .current = 78, .compacted = 79 };
		bool		is_fine = rows[i].status == VD_OK;

		assert_status(vdi_read_check(&view, rows[i].revision, NULL), rows[i].status);
		assert_status(vdi_read_check(&view, rows[i].revision, &error), rows[i].status);
		assert_status(error.code, is_fine ? VD_FULL : rows[i].status);
		assert_int_equal(error.requested, is_fine ? 77 : rows[i].revision);
		assert_int_equal(error.current, is_fine ? 78 : 10);
		assert_int_equal(error.compacted, is_fine ? 79 : 5);
	}
}

/* A read that failed holds nothing and may be ended again, as one that was ended may be. */
static void an_ended_read_is_empty(void **state)
{
	struct vd_range_request request = { .key = vd_bytes_of("a"), .range_end = vd_bytes_of("z") };
	struct vdi_btree	tree;
	struct vdi_view		view = { .revision = 10, .compacted = 5 };
	struct vdi_read		read;
	vd_status		status = VD_NOMEM;

	(void) state;
	vdi_btree_init(&tree, &vdi_kv_tree_ops);
	for (char letter = 'a'; letter < 'z'; letter++) {
		char	      key[2] = { letter, 0 };
		struct vd_kv *kv;
		void	     *previous = NULL;

		assert_status(vd_kv_new(vd_bytes_of(key), vd_bytes_of("v"), &kv), VD_OK);
		kv->mod_rev = 6;
		assert_status(vdi_btree_put(&tree, kv, &previous), VD_OK);
		vd_kv_unref(kv);
	}
	view.keys = vdi_btree_view(&tree);
	for (uint64_t nth = 1; status != VD_OK; nth++) {
		assert_true(nth < 100);
		memset(&read, 0x5a, sizeof read);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_read_range(&view, &request, nth % 2, &read, NULL);
		(void) vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK) {
			assert_int_equal(read.result.kv_count, 25);
			vdi_read_fini(&read);
		} else {
			assert_status(status, VD_NOMEM);
		}
		assert_int_equal(read.result.kv_count, 0);
		assert_null(read.result.kvs);
		vdi_read_fini(&read);
	}
	vdi_btree_fini(&tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_refusal_names_the_revisions),
		cmocka_unit_test(an_ended_read_is_empty),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
