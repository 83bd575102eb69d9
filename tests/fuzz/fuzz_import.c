/* Imports of event logs: the input is used as a watch's output and as an audit log, fed in pieces. The output
 * is a valid log: increasing revisions, the snapshot first, valid keys. Both passes over a watch agree. */
#include <stdlib.h>

#include "import_audit.h"
#include "import_watch.h"
#include "log_check.h"

static vd_status on_change(void *arg, bool is_delete, const struct vd_kv *kv, vd_wall time,
			   struct vd_error *reterr)
{
	(void) time;
	(void) reterr;
	VDI_CHECK(kv->key_size > 10 && kv->key_size < VD_KEY_SIZE_MAX &&
		  memcmp(kv->data, "/registry/", 10) == 0);
	log_check_change(arg, is_delete, kv);
	return VD_OK;
}

static vd_status on_mark(void *arg, enum vdi_log_kind kind, vd_rev revision, const char *text,
			 struct vd_error *reterr)
{
	struct log_check *check = arg;

	(void) reterr;
	VDI_CHECK(check->open == 0 && !check->in_snapshot);
	VDI_CHECK(kind == VDI_LOG_PROGRESS ? revision > check->last : kind == VDI_LOG_FAILURE && text);
	if (kind == VDI_LOG_PROGRESS)
		check->last = revision;
	check->began = true;
	return VD_OK;
}

static bool prefix_of(void *arg, struct vd_bytes api_version, struct vd_bytes kind,
		      char prefix[VDI_KUBE_PREFIX_MAX])
{
	(void) arg;
	(void) api_version;
	return kind.size > 0 && vdi_kube_prefix("", "things", prefix);
}

static void check_audit(struct vd_bytes input, size_t piece)
{
	struct log_check	 check = { 0 };
	struct vdi_import_sink	 sink = { on_change, log_check_commit, log_check_snapshot, on_mark, &check };
	struct vdi_import_audit *import;
	struct vdi_import_totals totals = { 0 };
	struct vd_error		 error = { 0 };
	vd_status		 status = VD_OK;

	VDI_CHECK(vdi_import_audit_new(&sink, &import) == VD_OK);
	for (size_t at = 0; status == VD_OK && at < input.size; at += piece)
		status = vdi_import_audit_feed(
			import,
			(struct vd_bytes) { (const char *) input.data + at, VDI_MIN(piece, input.size - at) },
			&error);
	if (status == VD_OK)
		status = vdi_import_audit_end(import, &totals, &error);
	VDI_CHECK(status == VD_OK ? totals.taken == check.changes && check.open == 0 :
				    error.code == status && strncmp(error.message, "line ", 5) == 0);
	vdi_import_audit_free(import);
}

static vd_status pass_watch(struct vd_bytes input, size_t piece, const struct vdi_import_watch_scan *scan,
			    struct vdi_import_watch_scan *ret_scan)
{
	struct log_check	 check = { 0 };
	struct vdi_import_sink	 sink = { on_change, log_check_commit, log_check_snapshot, on_mark, &check };
	struct vdi_import_watch *import;
	struct vdi_import_totals totals = { 0 };
	struct vd_error		 error = { 0 };
	vd_status		 status = VD_OK;

	VDI_CHECK(vdi_import_watch_new(scan, prefix_of, NULL, &sink, &import) == VD_OK);
	for (size_t at = 0; status == VD_OK && at < input.size; at += piece)
		status = vdi_import_watch_feed(
			import,
			(struct vd_bytes) { (const char *) input.data + at, VDI_MIN(piece, input.size - at) },
			&error);
	if (status == VD_OK)
		status = vdi_import_watch_end(import, ret_scan, &totals, &error);
	VDI_CHECK(scan || check.changes == 0);
	VDI_CHECK(status == VD_OK ? totals.taken == check.changes && check.open == 0 && !check.in_snapshot :
				    error.code == status && strncmp(error.message, "line ", 5) == 0);
	vdi_import_watch_free(import);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vd_bytes		     input = { data, size };
	struct vdi_import_watch_scan scan = { 0 };
	size_t			     piece = size ? 1 + data[size - 1] % 64u : 1;

	check_audit(input, piece);
	if (pass_watch(input, piece, NULL, &scan) == VD_OK)
		(void) pass_watch(input, 4096, &scan, NULL);
	return 0;
}
