/* An echo service and one peer that sends single frames (h2_peer.h): setup and teardown of tests. */
#ifndef H2_SERVED_PEER_H
#define H2_SERVED_PEER_H

#include "h2_peer.h"
#include "rpc_fixture.h"
#include "vdtest.h"

extern struct peer peer;

/* options may be NULL. The peer has sent nothing yet. */
int	     h2_served_start_with(const struct vdi_rpc_server_options *options);
int	     h2_served_start(void **state);
int	     h2_served_stop(void **state);
void	     h2_served_expect(struct heard heard, int status, const char *message);
struct heard h2_served_ask(uint32_t stream, const char *const *extra);

#endif
