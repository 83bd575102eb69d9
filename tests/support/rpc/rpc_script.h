/* A scripted peer: lib/rpc/rpc_client.h without a network, inside the simulator.
 *
 * The test is the server. It sees each call and stream that was opened (method, metadata, messages) and
 * answers with messages and ends, in any order and at any simulated time; it cuts connections, takes
 * endpoints down and refuses calls. Either it looks on, between runs of the simulator:
 *
 * 	struct rpc_script_call *stream = rpc_script_expect_call(script, "/etcdserverpb.Watch/Watch");
 * 	struct vd_bytes request = rpc_script_expect_message(stream);
 * 	rpc_script_send(stream, answer);
 * 	vdi_sim_run_until_idle(env);
 *
 * or it is programmed with rpc_script_set_peer and answers from inside the handlers. Both may be mixed: what
 * a handler saw counts as taken.
 *
 * One actor is the transport's thread: everything reaches either side through it, never inside the call that
 * caused it. With a delay set (rpc_script_set_delay) each thing takes a seeded time on its way; what goes one
 * way on one call keeps its order. A call cut off loses what was on its way. Only memory that the contract
 * lets fail can fail under vdi_alloc_fail_nth: the client's calls, never the peer's.
 *
 * For one thread: the simulator's.
 */
#ifndef RPC_SCRIPT_H
#define RPC_SCRIPT_H

#include "base.h"
#include "rpc_client.h"

struct rpc_script;
/* one call or stream, as the peer sees it; good until rpc_script_free or rpc_script_forget_ended */
struct rpc_script_call;

/* All endpoints are up, nothing is delayed. The seed decides delays and the order of simultaneous
 * deliveries. */
struct rpc_script *rpc_script_new(struct vd_env *env, uint64_t seed, const char *const *endpoints,
				  size_t endpoint_count);
/* For code under test. Owned by the script; its close is to be called once and answered before
 * rpc_script_free. */
struct vdi_rpc_client *rpc_script_client(struct rpc_script *script);
/* Call after the client's close is complete (an unused client needs none). Checks that every stream was
 * freed. */
void rpc_script_free(struct rpc_script *script);

/* ---- The network ---- */

/* Delays everything by a random time below max, in both directions. */
void rpc_script_set_delay(struct rpc_script *script, vd_dur max);
/* Down: calls to the endpoint end with VDI_RPC_UNAVAILABLE at once, data in flight is lost, and new calls use
 * other endpoints or wait. index: position in the list. */
void rpc_script_set_up(struct rpc_script *script, size_t endpoint, bool up);
/* As down and up again. */
void rpc_script_cut(struct rpc_script *script, size_t endpoint);
/* Cuts one call: it ends with code and text at the client, and at the peer as canceled. */
void rpc_script_cut_call(struct rpc_script_call *call, int code, const char *text);
/* The next count calls of that method (NULL: any) end so and are never seen by a peer. count 0 stops it. */
void rpc_script_refuse(struct rpc_script *script, const char *method, size_t count, int code,
		       const char *text);

/* ---- The peer, programmed ---- */

struct rpc_script_peer {
	/* Each may be NULL. Called in the transport's actor; may call anything below. */
	void (*opened)(void *arg, struct rpc_script_call *call);
	void (*message)(void *arg, struct rpc_script_call *call, struct vd_bytes message);
	void (*half_closed)(void *arg, struct rpc_script_call *call);
	/* The client's side has ended: canceled, cut, closed. Not called after rpc_script_end. */
	void (*canceled)(void *arg, struct rpc_script_call *call);
	void *arg;
};
void rpc_script_set_peer(struct rpc_script *script, const struct rpc_script_peer *peer);

/* ---- The peer's answers ---- */

/* Sends one message; dropped if the call is over. */
void rpc_script_send(struct rpc_script_call *call, struct vd_bytes message);
/* Sends it after that time, but not before earlier messages. */
void rpc_script_send_later(struct rpc_script_call *call, struct vd_bytes message, vd_dur delay);
/* The end, after all messages. text NULL: "". Later messages and ends are dropped. */
void rpc_script_end(struct rpc_script_call *call, int code, const char *text);
void rpc_script_end_later(struct rpc_script_call *call, int code, const char *text, vd_dur delay);
/* Answers a unary call: the message and VDI_RPC_OK. */
void rpc_script_answer(struct rpc_script_call *call, struct vd_bytes message);

/* ---- Looking on ---- */

/* In the order in which they reached the peer; refused and still waiting ones are not among them. */
size_t			rpc_script_call_count(const struct rpc_script *script);
struct rpc_script_call *rpc_script_call_at(struct rpc_script *script, size_t index);
/* The oldest call not taken yet (of that method, NULL: any), or NULL. */
struct rpc_script_call *rpc_script_take_call(struct rpc_script *script, const char *method);
/* Runs the simulator until there is a call; fails the test if none arrives within a simulated minute. */
struct rpc_script_call *rpc_script_expect_call(struct rpc_script *script, const char *method);

const char *rpc_script_call_method(const struct rpc_script_call *call);
size_t	    rpc_script_call_endpoint(const struct rpc_script_call *call);
vd_dur	    rpc_script_call_timeout(const struct rpc_script_call *call);
bool	    rpc_script_call_is_stream(const struct rpc_script_call *call);
bool	    rpc_script_call_is_half_closed(const struct rpc_script_call *call); /* seen by the peer */
bool	    rpc_script_call_is_canceled(
	       /* returns true if the peer knows that the client's side has ended */
	       const struct rpc_script_call *call);
bool rpc_script_call_is_over(const struct rpc_script_call *call); /* ended at the client */
/* Lent as long as the call; data NULL: no such key. */
struct vd_bytes rpc_script_call_metadata(const struct rpc_script_call *call, const char *key);
size_t		rpc_script_call_metadata_count(const struct rpc_script_call *call);
/* For the peer's own use. */
void  rpc_script_call_set_data(struct rpc_script_call *call, void *data);
void *rpc_script_call_data(const struct rpc_script_call *call);

/* Messages that reached the peer; lent as long as the call. */
size_t		rpc_script_message_count(const struct rpc_script_call *call);
struct vd_bytes rpc_script_message_at(const struct rpc_script_call *call, size_t index);
/* Takes the oldest unread message; false if there is none. */
bool		rpc_script_take_message(struct rpc_script_call *call, struct vd_bytes *ret_message);
struct vd_bytes rpc_script_expect_message(struct rpc_script_call *call);

/* Sent by the peer and not yet taken by the client: back-pressure. */
size_t rpc_script_call_pending_bytes(const struct rpc_script_call *call);
size_t rpc_script_call_pending_count(const struct rpc_script_call *call);

/* Returns the number of calls and streams that are not over. */
size_t rpc_script_live_count(const struct rpc_script *script);
/* Drops the records of calls that are over, for long runs. */
void rpc_script_forget_ended(struct rpc_script *script);

#endif
