/* Requests of clients to the etcd server, and the content of snapshot files. The first byte selects the
 * decoder. */
#include "bolt_read.h"
#include "fuzz.h"
#include "serve_txn.h"
#include "utf8.h"

static vd_status look(void *arg, struct vd_bytes key, struct vd_bytes value)
{
	size_t *sum = arg;

	for (size_t i = 0; i < key.size; i++)
		*sum += ((const uint8_t *) key.data)[i];
	for (size_t i = 0; i < value.size; i++)
		*sum += ((const uint8_t *) value.data)[i];
	return VD_OK;
}

static void read_bolt(struct vd_bytes bytes)
{
	static const char *const buckets[] = { "key", "lease", "meta", "auth" };
	struct vdi_bolt_file	 file;
	struct vd_error		 error;
	size_t			 sum = 0;

	if (vdi_bolt_file_init(bytes, &file, &error) != VD_OK)
		return;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(buckets); i++)
		if (vdi_bolt_each(&file, buckets[i], look, &sum, &error) != VD_OK)
			VDI_CHECK(error.message[0]); /* damage is reported with a message */
}

static void decode_txn(struct vd_bytes message)
{
	struct vdi_serve_txn *txn = NULL;

	if (vdi_serve_txn_decode(message, 128, &txn) != VD_OK) {
		VDI_CHECK(txn == NULL);
		return;
	}
	VDI_CHECK(txn->success_count <= 128 && txn->failure_count <= 128 && txn->compare_count <= 128);
	(void) vdi_serve_txn_check(txn, 128);
	VDI_CHECK(vdi_serve_txn_cost(txn) >= 0);
	vdi_serve_txn_free(txn);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t		       live = vdi_alloc_live();
	struct vd_bytes	       message = { data + 1, size - 1 };
	struct vdi_serve_range range;
	struct vd_op	       op;

	if (size == 0)
		return 0;
	switch (data[0] % 6) {
	case 0:
		if (vdi_serve_range_decode(message, &range) && vdi_serve_range_check(&range) == VD_ETCD_OTHER)
			VDI_CHECK(range.key.size > 0);
		break;
	case 1:
		if (vdi_serve_put_decode(message, &op) && vdi_serve_put_check(&op) == VD_ETCD_OTHER)
			VDI_CHECK(op.key.size > 0 && (!op.ignore_value || op.value.size == 0));
		break;
	case 2:
		if (vdi_serve_delete_decode(message, &op))
			VDI_CHECK(op.kind == VD_OP_DELETE);
		break;
	case 3: decode_txn(message); break;
	case 4: (void) vdi_utf8_valid(message); break;
	default: read_bolt(message); break;
	}
	VDI_CHECK(vdi_alloc_live() == live);
	return 0;
}
