/* Checks the output of an import: a snapshot first, then increasing revisions. It is the first member of a
 * target's own struct, which is the sink's argument. */
#ifndef LOG_CHECK_H
#define LOG_CHECK_H

#include "fuzz.h"
#include "import.h"

struct log_check {
	vd_rev	 last, open;
	bool	 in_snapshot, began;
	unsigned changes;
};

static inline void log_check_change(struct log_check *check, bool is_delete, const struct vd_kv *kv)
{
	VDI_CHECK(kv->mod_rev > 0 && (!is_delete || kv->value_size == 0));
	if (check->in_snapshot) {
		VDI_CHECK(!is_delete && kv->mod_rev <= check->last);
	} else {
		VDI_CHECK(kv->mod_rev > check->last && (check->open == 0 || check->open == kv->mod_rev));
		check->open = kv->mod_rev;
	}
	check->began = true;
	check->changes++;
}

static inline vd_status log_check_commit(void *arg, vd_rev revision, struct vd_error *reterr)
{
	struct log_check *check = arg;

	(void) reterr;
	VDI_CHECK(check->open == revision);
	check->last = revision;
	check->open = 0;
	return VD_OK;
}

static inline vd_status log_check_snapshot(void *arg, vd_rev revision, bool begins, struct vd_error *reterr)
{
	struct log_check *check = arg;

	(void) reterr;
	VDI_CHECK(begins ? !check->began && !check->in_snapshot :
			   check->in_snapshot && check->last == revision);
	check->in_snapshot = begins;
	check->last = revision;
	check->began = true;
	return VD_OK;
}

#endif
