/* Unit tests of replay/import_audit.c and import_watch.c: memory may run out anywhere. What becomes what is in tests/tool/test_import.py; bad bytes are tests/fuzz/fuzz_import.c. */
#include <stdio.h>

#include "import_audit.h"
#include "import_watch.h"
#include "vdtest.h"

#define K(text) vd_bytes_of(text)

static unsigned changes;

static vd_status on_change(void *arg, bool is_delete, const struct vd_kv *kv, vd_wall time, struct vd_error *reterr)
{
	changes++;
	return VD_OK;
}

static vd_status on_commit(void *arg, vd_rev revision, struct vd_error *reterr)
{
	return VD_OK;
}

static vd_status on_snapshot(void *arg, vd_rev revision, bool begins, struct vd_error *reterr)
{
	return VD_OK;
}

static vd_status on_mark(void *arg, enum vdi_log_kind kind, vd_rev revision, const char *text, struct vd_error *reterr)
{
	return VD_OK;
}

static const struct vdi_import_sink sink = { on_change, on_commit, on_snapshot, on_mark, NULL };

static bool prefix_of(void *arg, struct vd_bytes api_version, struct vd_bytes kind, char prefix[VDI_KUBE_PREFIX_MAX])
{
	return vdi_kube_prefix("", "pods", prefix);
}

#define POD(name, revision) "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"n\",\"resourceVersion\":\"" revision "\"}}"
#define AUDIT(verb, object)                                                                                                      \
	"{\"kind\":\"Event\",\"stage\":\"ResponseComplete\",\"level\":\"RequestResponse\",\"verb\":\"" verb                      \
	"\",\"objectRef\":{\"resource\":\"pods\",\"name\":\"a\",\"namespace\":\"n\"},\"responseStatus\":{\"code\":200},\"responseObject\":" object "}\n"

static vd_status import_audit(void)
{
	struct vdi_import_audit *import;
	vd_status		 status;

	VDI_TRY(vdi_import_audit_new(&sink, &import));
	status = vdi_import_audit_feed(import, K(AUDIT("create", POD("a", "5")) AUDIT("patch", POD("b", "4")) AUDIT("delete", "{\"kind\":\"Status\",\"apiVersion\":\"v1\"}")), NULL);
	if (status == VD_OK)
		status = vdi_import_audit_end(import, NULL, NULL);
	vdi_import_audit_free(import);
	return status;
}

static vd_status pass(const struct vdi_import_watch_scan *scan, struct vdi_import_watch_scan *ret_scan)
{
	struct vdi_import_watch *import;
	vd_status		 status;

	VDI_TRY(vdi_import_watch_new(scan, prefix_of, NULL, &sink, &import));
	status = vdi_import_watch_feed(import, K("{\"type\":\"ADDED\",\"object\":" POD("a", "5") "}{\"type\":\"ADDED\",\"object\":" POD("b", "4") "}\n" POD("b", "7")), NULL);
	if (status == VD_OK)
		status = vdi_import_watch_end(import, ret_scan, NULL, NULL);
	vdi_import_watch_free(import);
	return status;
}

static vd_status import_watch(void)
{
	struct vdi_import_watch_scan scan;

	VDI_TRY(pass(NULL, &scan));
	return pass(&scan, NULL);
}

static void every_allocation_may_fail(void **state)
{
	vd_status (*const imports[])(void) = { import_audit, import_watch };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(imports); i++)
		for (uint64_t nth = 1;; nth++) {
			int64_t	  live = vdi_alloc_live();
			vd_status status;
			bool	  failed;

			changes = 0;
			(void) vdi_alloc_fail_nth(nth, 1);
			status = imports[i]();
			failed = vdi_alloc_failed();
			(void) vdi_alloc_fail_nth(0, 0);
			assert_status(status, failed ? VD_NOMEM : VD_OK);
			assert_int_equal(vdi_alloc_live(), live);
			if (failed)
				continue;
			assert_int_equal(changes, 3);
			break;
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(every_allocation_may_fail) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
