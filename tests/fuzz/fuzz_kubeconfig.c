/* A kubeconfig file: refused with a message, or it yields server and credentials. Nested YAML aliases must
 * not multiply. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "kubeconfig_read.h"

/* Files that it names are read too: no input may lead to an endless file, or to a terminal. */
static bool names_a_file(const uint8_t *data, size_t size)
{
	return memmem(data, size, "okenFile", 8) || memmem(data, size, "\\", 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t		      live = vdi_alloc_live();
	struct vdi_kubeconfig config = { 0 };
	struct vd_error	      error = { 0 };
	char		      path[64];
	vd_status	      status;
	int		      file;

	if (names_a_file(data, size))
		return 0;
	file = memfd_create("kubeconfig", MFD_CLOEXEC);
	VDI_CHECK(file >= 0 && write(file, data, size) == (ssize_t) size);
	(void) snprintf(path, sizeof path, "/proc/self/fd/%d", file);
	status = vdi_kubeconfig_read(path, NULL, &config, &error);
	VDI_CHECK(status == VD_OK ? config.server != NULL : error.message[0] && config.server == NULL);
	vdi_kubeconfig_fini(&config);
	if (status == VD_OK && vdi_kubeconfig_read(path, "b", &config, &error) == VD_OK)
		vdi_kubeconfig_fini(&config);
	(void) close(file);
	VDI_CHECK(vdi_alloc_live() == live);
	return 0;
}
