#include "rpc_choice.h"

#include <dlfcn.h>
#include <string.h>

#define SONAME "libvedette-grpc.so.0"

vd_status vdi_rpc_choose(const char *name, const struct vd_rpc_transport **ret_transport,
			 struct vd_error *reterr)
{
	const struct vd_rpc_transport *(*grpc)(void);
	void *library, *address;

	*ret_transport = vd_rpc_http2();
	if (name == NULL || strcmp(name, "http2") == 0)
		return VD_OK;
	if (strcmp(name, "grpc") != 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "--rpc %.64s: must be http2 or grpc", name);
	library = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		return vd_error_set(reterr, VD_UNAVAILABLE, "--rpc grpc needs libvedette-grpc: %s",
				    dlerror());
	address = dlsym(library, "vd_rpc_grpc");
	if (address == NULL)
		return vd_error_set(reterr, VD_UNAVAILABLE, "--rpc grpc: %s has no vd_rpc_grpc", SONAME);
	memcpy(&grpc, &address,
	       sizeof grpc); /* POSIX allows this; C has no cast from a data pointer to a function */
	*ret_transport = grpc();
	return VD_OK;
}
