#include "h2_transport.h"

const struct vd_rpc_transport *vd_rpc_http2(void)
{
	static const struct vd_rpc_transport transport = {
		.name = "http2",
		.unbounded = NULL,
		.client_new = vdi_h2_client_new,
		.server_new = vdi_h2_server_new,
	};

	return &transport;
}
