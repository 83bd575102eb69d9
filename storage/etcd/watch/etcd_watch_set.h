/* All watches of one client: its streams, the actor that serves them, and how users reach it.
 *
 * One gRPC stream for each distinct metadata (E-250). The set is a part of the client (etcd_client.h): made
 * with the first watch, closed with the client.
 *
 * The lock (VDI_LOCK_ETCD_WATCH_SET) holds what threads share: the command list, the table of streams, and
 * each stream's received messages. It may be taken with a watch's lock held; nothing but an actor's wake is
 * done under it.
 */
#ifndef VDI_ETCD_WATCH_SET_H
#define VDI_ETCD_WATCH_SET_H

#include "buffer.h"
#include "etcd_client.h"
#include "etcd_watch.h"
#include "hash.h"
#include "metrics.h"
#include "timer.h"

TAILQ_HEAD(vdi_etcd_watch_streams, vdi_etcd_watch_stream);

struct vdi_etcd_watch_set {
	struct vdi_etcd_part part;

	/* Fixed at creation. */
	struct vd_etcd	    *client;
	const struct vd_env *env;
	struct vd_actor	    *actor;
	struct vdi_metric   *watches;
	struct vdi_metric   *connections;
	struct vdi_metric   *parked;
	struct vdi_metric   *received_events;

	/* Under lock. */
	struct vdi_lock		      lock;
	struct vdi_etcd_watch_list    commands;
	struct vdi_hash		      by_metadata; /* streams that new watches may join */
	struct vdi_etcd_watch_streams streams;	   /* all of them */
	struct vdi_etcd_watch_streams to_attend;
	bool			      is_closing;
	void (*closed)(void *arg);
	void *closed_arg;

	/* The actor only. */
	uint64_t		    round;
	struct vdi_timer_heap	    timers;
	struct vdi_buffer	    request; /* being encoded */
	struct vdi_etcd_wire_events events;  /* being decoded */
};

/* Made when there is none. VD_CLOSED, VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_etcd_watch_set_get(struct vd_etcd *client, struct vdi_etcd_watch_set **ret_set);

/* ---- Any thread ---- */

/* Joins the stream of that metadata, made when there is none. The set has a reference of its own then.
 * VD_CLOSED, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_etcd_watch_set_add(struct vdi_etcd_watch_set *set, struct vd_etcd_watch *watch,
					      bool require_leader, const struct vd_etcd_pair *metadata,
					      size_t metadata_count);
/* A stream without watches lives until the client's close (E-253). VD_CLOSED, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_etcd_watch_set_request_progress(struct vdi_etcd_watch_set *set,
							   bool			      require_leader,
							   const struct vd_etcd_pair *metadata,
							   size_t		      metadata_count);
/* want: enum vdi_etcd_watch_want. With the watch's lock held. Cannot fail. */
void vdi_etcd_watch_set_command(struct vdi_etcd_watch_set *set, struct vd_etcd_watch *watch, unsigned want);
/* Puts the stream among those that the actor is to look at; true: it was not there, so a wake is due. */
bool vdi_etcd_watch_set_list_locked(struct vdi_etcd_watch_set *set, struct vdi_etcd_watch_stream *stream);
/* The same, with the wake. */
void vdi_etcd_watch_set_attend_locked(struct vdi_etcd_watch_set *set, struct vdi_etcd_watch_stream *stream);

#endif
