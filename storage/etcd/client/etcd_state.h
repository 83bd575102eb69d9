/* The structures of an etcd client, only for its own files (etcd_client, etcd_call, etcd_preflight,
 * etcd_stream). Other files use etcd_client.h, and files that make calls etcd_call.h.
 *
 * 	  any thread: start, cancel          the transport's thread: on_done, on_message, on_ended
 * 	                      \              /
 * 	                       v            v
 * 	      inboxes and states, under the lock; the actor is woken
 * 	                           |
 * 	                           v
 * 	      actor: preflight, decoding, repeats, users' callbacks, close
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

/* A call or stream that waits for the preflight. Actor only. */
struct vdi_etcd_waiter {
	TAILQ_ENTRY(vdi_etcd_waiter) node;
	bool waits;
	/* Continues; failed is NULL, or the reason of a failure. Not called if the waiter was removed
	 * before. */
	void (*resume)(struct vdi_etcd_waiter *waiter, const struct vdi_etcd_end *failed);
};
TAILQ_HEAD(vdi_etcd_waiter_list, vdi_etcd_waiter);

/* An entry of the table that maps ids to calls. */
struct vdi_etcd_slot {
	struct vdi_etcd_call *call; /* NULL: unused */
	uint32_t	      generation;
	uint32_t	      next_free; /* index + 1; 0: none */
};

enum vdi_etcd_preflight_phase {
	VDI_ETCD_PREFLIGHT_IDLE,
	VDI_ETCD_PREFLIGHT_AUTHENTICATING,
	VDI_ETCD_PREFLIGHT_CHECKING
};

/* The preflight: conditions for sending calls: a token if there is a user, and, if requested, members that
 * are new enough. */
struct vdi_etcd_preflight {
	/* Actor only. */
	enum vdi_etcd_preflight_phase phase;
	struct vdi_etcd_waiter_list   waiters;
	size_t			      checks_left;
	bool			      has_failed;
	struct vdi_etcd_end	      failed;

	/* Under the client's lock. */
	bool		is_token_known; /* token may be NULL: authentication is disabled */
	bool		is_checked;
	struct vd_blob *token;
	uint64_t	token_generation;
};

struct vd_etcd {
	/* Fixed at creation. */
	const struct vd_env   *env;
	struct vdi_rpc_client *transport;
	struct vd_actor	      *actor;
	struct vdi_usage      *usage; /* NULL: the client is part of another object */
	char		      *user;  /* NULL: none */
	char		      *password;
	bool		       has_fixed_token;
	bool		       reject_old_cluster;
	vd_dur		       dial_timeout;
	vd_dur		       call_timeout;
	unsigned	       attempts_max;
	size_t		       watch_buffer_bytes;
	char		       api_version[16];

	struct vdi_etcd_preflight preflight; /* its fields state their owner */

	/* Actor only. */
	struct vdi_timer_heap timers;

	struct vdi_lock lock;

	/* Under lock. */
	char			  **endpoints; /* one block */
	size_t			    endpoint_count;
	struct vdi_etcd_slot	   *slots;
	size_t			    slot_capacity;
	size_t			    slot_count; /* slots used so far */
	uint32_t		    slot_free;	/* index + 1; 0: none */
	size_t			    call_count;
	size_t			    starter_count; /* threads that are leaving a start function */
	struct vdi_etcd_call_list   call_inbox;
	struct vdi_etcd_stream_list stream_inbox;
	size_t			    stream_count; /* streams not freed yet */
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

static inline bool vdi_etcd_preflight_is_done_locked(const struct vd_etcd *client)
{
	return (client->user == NULL || client->preflight.is_token_known) &&
	       (!client->reject_old_cluster || client->preflight.is_checked);
}

/* ---- etcd_client.c ---- */

/* Wakes the actor: an inbox is not empty, or an object that its close waits for was freed. */
void vdi_etcd_wake_locked(struct vd_etcd *client);

/* ---- etcd_preflight.c; actor only ---- */

void vdi_etcd_preflight_init(struct vdi_etcd_preflight *preflight);
/* Adds waiter and starts the missing checks; fresh: fetch a new token even if there is one. */
void vdi_etcd_preflight_wait(struct vd_etcd *client, struct vdi_etcd_waiter *waiter, bool fresh);
void vdi_etcd_preflight_leave(struct vd_etcd *client, struct vdi_etcd_waiter *waiter);
/* Checks a member's version as clientv3's RejectOldCluster. VD_INVALID_ARGUMENT: not a version;
 * VD_UNSUPPORTED: too old. */
VDI_MUST_USE vd_status vdi_etcd_check_version(const char *version);

/* ---- etcd_call.c ---- */

/* Handles a call from the inbox, or one whose timer has expired. Actor only. */
void vdi_etcd_call_step(struct vdi_etcd_call *call);
void vdi_etcd_call_timer_due(struct vdi_timer *timer);
/* Cancels all calls because the client is closing. Actor only. */
void vdi_etcd_calls_close(struct vd_etcd *client);

/* ---- etcd_stream.c ---- */

/* Removes the oldest stream from the inbox; NULL: empty. */
struct vdi_etcd_stream *vdi_etcd_stream_pop_locked(struct vd_etcd *client);
/* As without _locked, but the caller holds the client's lock. */
void vdi_etcd_stream_receive_locked(struct vdi_etcd_stream *stream);
void vdi_etcd_stream_cancel_locked(struct vdi_etcd_stream *stream);
/* Opens the stream if needed, and delivers its end. Actor only. */
void vdi_etcd_stream_step(struct vdi_etcd_stream *stream);

#endif
