/* All watches of one client: its streams, their actor, and the functions for users' threads.
 *
 * There is one gRPC stream per distinct metadata, as in clientv3. The set is a part of the client
 * (etcd_client.h): made with the first watch, closed with the client.
 *
 * The lock (VDI_LOCK_ETCD_WATCH_SET) protects data shared by threads: the command list, the table of streams,
 * and each stream's received messages. It may be taken with a watch's lock held; under it nothing but an
 * actor's wake is called.
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
	struct vdi_metric   *paused;
	struct vdi_metric   *received_events;

	/* Under lock. */
	struct vdi_lock		      lock;
	struct vdi_etcd_watch_list    commands;
	struct vdi_hash		      by_metadata; /* streams that new watches may join */
	struct vdi_etcd_watch_streams streams;	   /* all streams */
	struct vdi_etcd_watch_streams to_attend;
	bool			      is_closing;
	void (*closed)(void *arg);
	void *closed_arg;

	/* The actor only. */
	uint64_t		    round;
	struct vdi_timer_heap	    timers;
	struct vdi_buffer	    request; /* encoding buffer */
	struct vdi_etcd_wire_events events;  /* decoding buffer */
};

/* Returns the client's set, making it if needed. VD_CLOSED, VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_etcd_watch_set_get(struct vd_etcd *client, struct vdi_etcd_watch_set **ret_set);

/* ---- Any thread ---- */

/* Adds the watch to the stream of that metadata, making it if needed. The set then has a reference of its
 * own. VD_CLOSED, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_etcd_watch_set_add(struct vdi_etcd_watch_set *set, struct vd_etcd_watch *watch,
					      bool require_leader, const struct vd_etcd_pair *metadata,
					      size_t metadata_count);
/* Requests progress. As in clientv3, a stream made for this, without watches, exists until the client closes.
 * VD_CLOSED, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_etcd_watch_set_request_progress(struct vdi_etcd_watch_set *set,
							   bool			      require_leader,
							   const struct vd_etcd_pair *metadata,
							   size_t		      metadata_count);
/* Sends a command, enum vdi_etcd_watch_want. Called with the watch's lock held. Cannot fail. */
void vdi_etcd_watch_set_command(struct vdi_etcd_watch_set *set, struct vd_etcd_watch *watch, unsigned want);
/* Adds the stream to those that the actor must handle; true: it was not among them, so the caller must wake
 * the actor. */
bool vdi_etcd_watch_set_list_locked(struct vdi_etcd_watch_set *set, struct vdi_etcd_watch_stream *stream);
/* The same, with the wake. */
void vdi_etcd_watch_set_attend_locked(struct vdi_etcd_watch_set *set, struct vdi_etcd_watch_stream *stream);

#endif
