/* What an etcd client consists of; for the files of the client only (etcd_client, etcd_call, etcd_gate,
 * etcd_stream). The watcher and everybody else sees etcd_client.h, the calls' files etcd_call.h.
 *
 * 	  any thread: start, cancel ---.                          .--- on_done, on_message, on_ended: the transport's thread
 * 	                               v                          v
 * 	                    inboxes and states, under the lock; the actor is woken
 * 	                                        |
 * 	                                      actor: gate, decode, repeat, user's callbacks, close
 */
#ifndef VDI_ETCD_STATE_H
#define VDI_ETCD_STATE_H

#include <sys/queue.h>

#include "etcd_client.h"
#include "etcd_error.h"
#include "lock.h"
#include "timer.h"
#include "usage.h"

struct vdi_etcd_call;

TAILQ_HEAD(vdi_etcd_call_list, vdi_etcd_call);
TAILQ_HEAD(vdi_etcd_stream_list, vdi_etcd_stream);

/* Who waits for the gate. Actor only. */
struct vdi_etcd_waiter {
	TAILQ_ENTRY(vdi_etcd_waiter) node;
	bool waits;
	/* failed NULL: go on. Not called when it was taken out before. */
	void (*resume)(struct vdi_etcd_waiter *waiter, const struct vdi_etcd_end *failed);
};
TAILQ_HEAD(vdi_etcd_waiter_list, vdi_etcd_waiter);

/* A call's place in the table of ids. */
struct vdi_etcd_slot {
	struct vdi_etcd_call *call; /* NULL: free */
	uint32_t	      generation;
	uint32_t	      next_free; /* index + 1; 0: none */
};

enum vdi_etcd_gate_phase { VDI_ETCD_GATE_IDLE, VDI_ETCD_GATE_AUTHENTICATING, VDI_ETCD_GATE_CHECKING };

/* What must hold before calls go out: a token when there is a user, members new enough when that was asked
 * for. */
struct vdi_etcd_gate {
	/* Actor only. */
	enum vdi_etcd_gate_phase    phase;
	struct vdi_etcd_waiter_list waiters;
	size_t			    checks_left;
	bool			    has_failed;
	struct vdi_etcd_end	    failed;

	/* Under the client's lock. */
	bool		is_token_known; /* token may be NULL: authentication is not enabled */
	bool		is_checked;
	struct vd_blob *token;
	uint64_t	token_generation;
};

struct vd_etcd {
	/* Fixed at creation. */
	const struct vd_env   *env;
	struct vdi_rpc_client *transport;
	struct vd_actor	      *actor;
	struct vdi_usage      *usage; /* NULL: the client is part of something else */
	char		      *user;  /* NULL: none */
	char		      *password;
	bool		       has_fixed_token;
	bool		       reject_old_cluster;
	vd_dur		       dial_timeout;
	vd_dur		       call_timeout;
	unsigned	       attempts_max;
	size_t		       watch_buffer_bytes;
	char		       api_version[16];

	struct vdi_etcd_gate gate; /* says itself who owns what */

	/* Actor only. */
	struct vdi_timer_heap timers;

	struct vdi_lock lock;

	/* Under lock. */
	char			  **endpoints; /* one block */
	size_t			    endpoint_count;
	struct vdi_etcd_slot	   *slots;
	size_t			    slot_capacity;
	size_t			    slot_count; /* ever used */
	uint32_t		    slot_free;	/* index + 1; 0: none */
	size_t			    call_count;
	size_t			    starter_count; /* threads on their way out of a start */
	struct vdi_etcd_call_list   call_inbox;
	struct vdi_etcd_stream_list stream_inbox;
	size_t			    stream_count; /* not freed yet */
	struct vdi_etcd_part	   *parts[VDI_ETCD_PART_COUNT];
	size_t			    part_count;
	bool			    is_closing;
	bool			    is_transport_closed;
	void (*closed)(void *arg);
	void *closed_arg;

	/* Actor only. */
	bool has_begun_close;
	bool has_closed_transport;
	bool has_ended;
};

static inline bool vdi_etcd_gate_is_open_locked(const struct vd_etcd *client)
{
	return (client->user == NULL || client->gate.is_token_known) &&
	       (!client->reject_old_cluster || client->gate.is_checked);
}

/* ---- etcd_client.c ---- */

/* For the actor: there is something in an inbox, or something that its close waits for has gone. */
void vdi_etcd_wake_locked(struct vd_etcd *client);

/* ---- etcd_gate.c; actor only ---- */

void vdi_etcd_gate_init(struct vdi_etcd_gate *gate);
/* Puts waiter in and starts what is missing; with fresh a new token is fetched even if there is one. */
void vdi_etcd_gate_wait(struct vd_etcd *client, struct vdi_etcd_waiter *waiter, bool fresh);
void vdi_etcd_gate_leave(struct vd_etcd *client, struct vdi_etcd_waiter *waiter);
/* E-203. version is what a member says of itself; VD_INVALID_ARGUMENT: not a version; VD_UNSUPPORTED: too
 * old. */
VDI_MUST_USE vd_status vdi_etcd_check_version(const char *version);

/* ---- etcd_call.c ---- */

/* Actor: one that stood in the inbox, and one whose time has come. */
void vdi_etcd_call_step(struct vdi_etcd_call *call);
void vdi_etcd_call_timer_due(struct vdi_timer *timer);
/* Actor: the client is closing. */
void vdi_etcd_calls_close(struct vd_etcd *client);

/* ---- etcd_stream.c ---- */

/* The oldest one in the inbox, taken out; NULL: none. */
struct vdi_etcd_stream *vdi_etcd_stream_pop_locked(struct vd_etcd *client);
/* As without _locked, with the client's lock held. */
void vdi_etcd_stream_receive_locked(struct vdi_etcd_stream *stream);
void vdi_etcd_stream_cancel_locked(struct vdi_etcd_stream *stream);
/* Actor: opens what is to be opened, delivers what the transport could not. */
void vdi_etcd_stream_step(struct vdi_etcd_stream *stream);

#endif
