/* A kubeconfig file: refused with a sentence, or it says which server and who we are. Its text may have
 * aliases of aliases, which must not become more than they are. */
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"
#include "kubeconfig_read.h"

/* What it names is read too: no input may lead to a file that never ends, or to a terminal. */
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
