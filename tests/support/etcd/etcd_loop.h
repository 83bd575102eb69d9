/* Our etcd client and store over our etcd server, without a network, in the simulator: the client's messages
 * pass through rpc_script.h to etcdserver on an embedded store. Network faults are those of the script
 * (rpc_script_set_delay, rpc_script_cut). One thread. */
#ifndef ETCD_LOOP_H
#define ETCD_LOOP_H

#include <vedette/etcd.h>

#include "etcdserver.h"
#include "rpc_script.h"

struct etcd_loop {
	struct vd_env	      *env;
	struct vd_store	      *mvcc;
	struct vdi_etcdserver *server;
	struct rpc_script     *script;
	struct vd_actor	 *actor; /* notifies the server of ends, which must not happen inside its own calls */
	struct loop_call *ended;
};

/* An empty etcd in memory. progress: of watches that want it periodically. */
void etcd_loop_open(struct etcd_loop *loop, struct vd_env *env, uint64_t seed, vd_dur progress);
/* Makes a store over a new client; it does not compact by itself. Fails the test on an error. */
struct vd_store *etcd_loop_store(struct etcd_loop *loop);
/* After the store was closed. */
void etcd_loop_close(struct etcd_loop *loop);

#endif
