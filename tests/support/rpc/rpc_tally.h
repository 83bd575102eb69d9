/* For tests of clients: an echo service and, if a test starts it, a second one; calls that are counted and
 * not waited for; peers that do not speak the protocol. */
#ifndef RPC_TALLY_H
#define RPC_TALLY_H

#include "rpc_fixture.h"
#include "vdtest.h"

extern struct rpc_echo rpc_tally_other;

int rpc_tally_start(void **state);
int rpc_tally_stop(void **state);

/* A counter of calls that are not waited for. */
struct rpc_tally {
	_Atomic uint64_t begun;
	_Atomic uint64_t ended;
	_Atomic uint64_t ok;
	_Atomic uint64_t codes[17];
	_Atomic uint64_t unsent;
};

void rpc_tally_end(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *message);
void rpc_tally_call(struct vdi_rpc_client *client, const struct vdi_rpc_request *request,
		    struct rpc_tally *tally);
void rpc_tally_start_other(void);

#endif
