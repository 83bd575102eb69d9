/* The transport of remote calls selected by --rpc. */
#ifndef VDI_RPC_CHOICE_H
#define VDI_RPC_CHOICE_H

#include <vedette/rpc.h>

#include "base.h"

#define VDI_RPC_OPTION(rpc)                                                                                  \
	{                                                                                                    \
		0, "rpc", VDI_OPTION_TEXT, "NAME",                                                           \
			"transport of etcd calls: http2, or grpc, which loads libvedette-grpc (default "     \
			"http2)",                                                                            \
			rpc                                                                                  \
	}

/* name: NULL, "http2" or "grpc"; loads libvedette-grpc for the last one, once. VD_INVALID_ARGUMENT: unknown
 * transport; VD_UNAVAILABLE: the library cannot be loaded, with the reason. */
VDI_MUST_USE vd_status vdi_rpc_choose(const char *name, const struct vd_rpc_transport **ret_transport,
				      struct vd_error *reterr);

#endif
