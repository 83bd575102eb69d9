/* CRC-32C (Castagnoli), used by etcd's hashes of records. Any thread. */
#ifndef VDI_CRC32C_H
#define VDI_CRC32C_H

#include <stddef.h>
#include <stdint.h>

struct vdi_crc32c {
	uint32_t state;
	uint32_t table[8][256];
};

void	 vdi_crc32c_init(struct vdi_crc32c *crc);
void	 vdi_crc32c_add(struct vdi_crc32c *crc, const void *bytes, size_t size);
uint32_t vdi_crc32c_value(const struct vdi_crc32c *crc);

#endif
