/* The order of imported changes, and the sink that writes a log. */
#include "import.h"

#include <inttypes.h>
#include <stdio.h>

static vd_status write_change(void *arg, bool is_delete, const struct vd_kv *kv, vd_wall time,
			      struct vd_error *reterr)
{
	return vdi_log_writer_change(arg, is_delete, kv, time, reterr);
}

static vd_status write_commit(void *arg, vd_rev revision, struct vd_error *reterr)
{
	return vdi_log_writer_commit(arg, revision, reterr);
}

static vd_status write_snapshot(void *arg, vd_rev revision, bool begins, struct vd_error *reterr)
{
	return begins ? vdi_log_writer_snapshot_begin(arg, revision, reterr) :
			vdi_log_writer_snapshot_end(arg, revision, reterr);
}

static vd_status write_mark(void *arg, enum vdi_log_kind kind, vd_rev revision, const char *text,
			    struct vd_error *reterr)
{
	return vdi_log_writer_mark(arg, kind, revision, text, reterr);
}

struct vdi_import_sink vdi_import_sink_of(struct vdi_log_writer *writer)
{
	return (struct vdi_import_sink) { write_change, write_commit, write_snapshot, write_mark, writer };
}

vd_status vdi_import_order_commit(struct vdi_import_order *order, struct vd_error *reterr)
{
	vd_rev revision = order->open;

	order->open = 0;
	return revision ? order->sink->commit(order->sink->arg, revision, reterr) : VD_OK;
}

vd_status vdi_import_order_change(struct vdi_import_order *order, bool is_delete, const struct vd_kv *kv,
				  vd_wall time, struct vd_error *reterr)
{
	if (kv->mod_rev < order->last || (kv->mod_rev == order->last && order->open == 0))
		return vd_error_set(reterr, VD_BAD_REQUEST, "revision %" PRId64 " comes after %" PRId64,
				    kv->mod_rev, order->last);
	if (order->open && kv->mod_rev != order->open)
		VDI_TRY(vdi_import_order_commit(order, reterr));
	order->open = order->last = kv->mod_rev;
	return order->sink->change(order->sink->arg, is_delete, kv, time, reterr);
}

vd_status vdi_import_at_line(uint64_t line, vd_status status, struct vd_error *reterr)
{
	char text[200];

	if (reterr == NULL || (status != VD_BAD_REQUEST && status != VD_TOO_BIG))
		return status;
	snprintf(text, sizeof text, "%.199s", reterr->message);
	return vd_error_set(reterr, status, "line %" PRIu64 ": %s", line, text);
}
