/* An etcd client's options over the transport under test. */
#ifndef RPC_ETCD_OPTIONS_H
#define RPC_ETCD_OPTIONS_H

#include <vedette/etcd.h>

#include "rpc_under_test.h"

static inline struct vd_etcd_options etcd_options_under_test(void)
{
	struct vd_etcd_options options = VD_ETCD_OPTIONS_INIT;

	options.transport = rpc_under_test();
	return options;
}

#endif
