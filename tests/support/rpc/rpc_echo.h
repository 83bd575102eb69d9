/* A small service on the server of the transport under test, and helpers for clients: waits for answers,
 * records of streams. Real threads, real sockets. */
#ifndef RPC_ECHO_H
#define RPC_ECHO_H

#include <stdatomic.h>

#include "base.h"
#include "lock.h"
#include "rpc_client.h"
#include "rpc_server.h"

/* ---- The service ----
 *
 * /test.Echo/Echo   unary: the request
 * /test.Echo/Size   unary: as many bytes as the request says in decimal
 * /test.Echo/Fail   unary: ends with the code that the request says, and the text behind the blank
 * /test.Echo/Hang   takes the request and never answers
 * /test.Echo/Meta   unary: the value of the request's metadata key "x-test", or "none"
 * /test.Echo/Name   unary: common name of the client's certificate
 * /test.Echo/Peer   unary: the peer
 * /test.Echo/Count  one request "count size": so many messages of that size, then OK; a stream method
 * /test.Echo/Chat   each message comes back; ends when the client has half-closed; a stream method
 * Others are UNIMPLEMENTED.
 */
struct rpc_echo {
	struct vdi_rpc_server *server;
	_Atomic uint64_t       accepted;
	_Atomic uint64_t       ended;
	_Atomic uint64_t       cancelled;
	_Atomic uint64_t       received;
	_Atomic uint64_t       sent; /* messages of Count that the server has taken */
	_Atomic uint64_t       fulls;
};

/* listen NULL: a free port of 127.0.0.1. options may be NULL; handlers and methods are filled in. Errors are
 * those of the transport. */
vd_status   rpc_echo_start(struct rpc_echo *echo, const struct vd_env *env, const char *listen,
			   const struct vdi_rpc_server_options *options, struct vd_error *reterr);
const char *rpc_echo_address(const struct rpc_echo *echo);
void	    rpc_echo_stop(struct rpc_echo *echo, const struct vd_env *env);

/* Until the counter is at least that much; fails the test after AWAIT_PATIENCE_S. */
void rpc_wait_for(const struct vd_env *env, const _Atomic uint64_t *counter, uint64_t at_least);

/* ---- The client's side ---- */

struct rpc_answer {
	struct vdi_rpc_end     end;
	char		       text[512];
	char		       endpoint[256];
	struct vdi_rpc_message message;
};
/* Makes a call and waits for the answer; starting the call must succeed. */
struct rpc_answer rpc_ask(const struct vd_env *env, struct vdi_rpc_client *client,
			  const struct vdi_rpc_request *request);
/* Any endpoint, that message. */
struct rpc_answer rpc_ask_simply(const struct vd_env *env, struct vdi_rpc_client *client, const char *method,
				 struct vd_bytes message, vd_dur timeout);
/* In two steps: any endpoint, no timeout. */
struct rpc_asked;
struct rpc_asked *rpc_ask_begin(const struct vd_env *env, struct vdi_rpc_client *client, const char *method,
				struct vd_bytes message);
struct rpc_answer rpc_ask_end(struct rpc_asked *asked);
void		  rpc_answer_release(struct rpc_answer *answer);

/* Records the messages and the end of a stream. */
struct rpc_recorder {
	const struct vd_env   *env;
	struct vdi_rpc_client *client;
	struct vdi_rpc_stream *stream;
	bool		       asks_again;   /* receive after each message */
	bool		       keeps_stream; /* the test frees it; else that is done at the end */
	struct vdi_lock	       lock;
	struct vdi_condition   changed;

	/* Under lock. */
	bool		   is_opened;
	bool		   is_ended;
	unsigned	   messages;
	uint64_t	   bytes;
	char		   last[64]; /* message, cut */
	char		   endpoint[256];
	struct vdi_rpc_end end;
	char		   text[512];
};
void rpc_recorder_init(struct rpc_recorder *recorder, const struct vd_env *env, struct vdi_rpc_client *client,
		       bool asks_again);
/* Opens a stream, and requests the first message if asks_again. */
vd_status rpc_recorder_open(struct rpc_recorder *recorder, const struct vdi_rpc_request *request);
/* Each fails the test after 20 s. */
void rpc_recorder_wait_opened(struct rpc_recorder *recorder);
void rpc_recorder_wait_messages(struct rpc_recorder *recorder, unsigned messages);
void rpc_recorder_wait_ended(struct rpc_recorder *recorder);
/* After the end. */
void rpc_recorder_fini(struct rpc_recorder *recorder);

struct vdi_rpc_client *rpc_connect(const struct vd_env *env, const char *const *endpoints, size_t count,
				   const struct vdi_rpc_tls *tls);
void		       rpc_close(const struct vd_env *env, struct vdi_rpc_client *client);

#endif
