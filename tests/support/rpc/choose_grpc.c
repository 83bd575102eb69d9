/* Linked into the tests that run over gRPC C core. */
#include <vedette/rpc_grpc.h>

#include "rpc_under_test.h"

__attribute__((constructor)) static void choose_grpc(void)
{
	rpc_chosen = vd_rpc_grpc();
}
