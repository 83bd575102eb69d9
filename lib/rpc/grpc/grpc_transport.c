#include "grpc_transport.h"

#include <vedette/rpc_grpc.h>

const struct vd_rpc_transport *vd_rpc_grpc(void)
{
	static const struct vd_rpc_transport transport = {
		.name = "grpc",
		.unbounded =
			"bytes that a client leaves unread, endless headers, and streams that are opened and "
			"reset at once",
		.client_new = vdi_grpc_client_new,
		.server_new = vdi_grpc_server_new,
	};

	return &transport;
}
