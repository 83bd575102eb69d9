#include "rpc_under_test.h"

const struct vd_rpc_transport *rpc_chosen;
