/* Messages of an etcd server. Input: one byte for the type, then the message. Our decoder must survive it and
 * agree with protobuf-c if both accept it. */
#include "etcd_oracle.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t live = vdi_alloc_live();

	if (size == 0)
		return 0;
	(void) etcd_oracle_decode((enum etcd_oracle_kind)(data[0] % ETCD_ORACLE_COUNT),
				  (struct vd_bytes) { data + 1, size - 1 });
	VDI_CHECK(vdi_alloc_live() == live);
	return 0;
}
