/* The transport under test. If gRPC C core is available, tests are built twice: NAME over our own HTTP/2,
 * NAME-grpc over core (tests/support/rpc/choose_grpc.c). */
#ifndef RPC_UNDER_TEST_H
#define RPC_UNDER_TEST_H

#include <stdbool.h>
#include <string.h>

#include "rpc_transport.h"

/* NULL: vd_rpc_http2(). Set before main() only. */
extern const struct vd_rpc_transport *rpc_chosen;

static inline const struct vd_rpc_transport *rpc_under_test(void)
{
	return vdi_rpc_transport_of(rpc_chosen);
}
static inline bool rpc_is_grpc(void)
{
	return strcmp(rpc_under_test()->name, "grpc") == 0;
}

#endif
