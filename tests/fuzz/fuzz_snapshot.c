/* An etcd snapshot from an untrusted source: bbolt pages and their records. For any bytes reading ends, stays
 * inside them, and reports why it failed. */
#include "fuzz.h"
#include "snapshot_read.h"

struct check {
	struct vd_bytes input;
	uint64_t	count;
};

static vd_status on_record(void *arg, bool is_delete, struct vd_kv *kv)
{
	struct check *check = arg;

	VDI_CHECK(kv->mod_rev >= 1 && kv->key_size > 0 && kv->key_size <= VD_KEY_SIZE_MAX);
	VDI_CHECK(is_delete ? kv->value_size == 0 :
			      kv->create_rev >= 1 && kv->create_rev <= kv->mod_rev && kv->version >= 1);
	check->count++;
	/* A page is visited once, so the number of pairs is bounded by the number of bytes. */
	VDI_CHECK(check->count <= check->input.size / 16);
	return VD_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vdi_snapshot snapshot;
	struct vd_error	    error = { 0 };
	struct check	    check = { .input = { data, size } };
	vd_status	    status = vdi_snapshot_init(&snapshot, check.input, &error);

	if (status == VD_OK)
		status = vdi_snapshot_each(&snapshot, on_record, &check, &error);
	VDI_CHECK(status == VD_OK || (error.code == status && error.message[0]));
	return 0;
}
