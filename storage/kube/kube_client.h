/* The client as its parts see it: identity, requests on the client's actor, and the list of sources.
 *
 * The client's state belongs to the transport's actor (kube_transport.h); functions marked "actor" must
 * be called there. A part (a source, discovery, an informer) registers itself as a member and is run on
 * that actor. */
#ifndef VDI_KUBE_CLIENT_H
#define VDI_KUBE_CLIENT_H

#include <sys/queue.h>

#include <vedette/kube.h>

#include "kube_transport.h"
#include "timer.h"
#include "usage.h"

/* A part of the client that runs on its actor. Embedded in the part, which sets run, health and close
 * before vdi_kube_member_add; the other members belong to the client. */
struct vdi_kube_member {
	/* Actor: called once after vdi_kube_member_add, after each vdi_kube_member_wake and when due;
	 * returns the time of its next call (VD_NEVER: not by time). It may remove and free any member,
	 * including its own. */
	vd_mono (*run)(struct vdi_kube_member *member, vd_mono now);
	/* Any thread, under VDI_LOCK_KUBE: fills health. The part protects what it reads by a lock of its
	 * own further down the order. NULL: the part reports none. */
	void (*health)(struct vdi_kube_member *member, struct vd_kube_health *ret_health);
	/* Actor, called once: the client closes; the part ends its exchanges and calls
	 * vdi_kube_member_remove, now or later. NULL: the part is closed by its owner, and the client
	 * waits for its removal. */
	void (*close)(struct vdi_kube_member *member);

	struct vd_kube *kube;			/* fixed by vdi_kube_member_add */
	LIST_ENTRY(vdi_kube_member) node;	/* actor, and the client's lock */
	struct vdi_timer timer;			/* actor */
	bool		 is_listed;		/* actor */
	TAILQ_ENTRY(vdi_kube_member) wake_node; /* the inbox's lock, as is_woken */
	bool is_woken;
};

/* Any thread, under any lock above VDI_LOCK_QUEUE: adds the member. The client stays open until it is
 * removed. The member may run, and be freed, before the call returns. VD_CLOSED. */
VDI_MUST_USE vd_status vdi_kube_member_add(struct vd_kube *kube, struct vdi_kube_member *member);
/* Any thread, under any lock above VDI_LOCK_QUEUE: has run called. Not after vdi_kube_member_remove. */
void vdi_kube_member_wake(struct vdi_kube_member *member);
/* Actor, without locks. The member may be freed at once. */
void vdi_kube_member_remove(struct vdi_kube_member *member);

/* ---- Requests on the actor ---- */

/* The state of one repeated request: growing delays of 0.1 to 30 s with jitter, and Retry-After. */
struct vdi_kube_backoff {
	unsigned attempts;
	vd_mono	 retry_at;
};
/* Actor, without locks of the client's rank or below (it takes VDI_LOCK_KUBE): notes a failure and sets
 * retry_at. retry_after_s 0: none was given. */
void vdi_kube_backoff_fail(struct vd_kube *kube, struct vdi_kube_backoff *backoff, unsigned retry_after_s);
void vdi_kube_backoff_reset(struct vdi_kube_backoff *backoff);

/* Actor. Starts an exchange with the client's identity (token, certificates; an exec plugin's
 * credential); the request's token is ignored. VD_AGAIN: the identity is being fetched; call again when
 * run is called. Errors of the identity: VD_FORBIDDEN with the
 * cause, and the time to try again in reterr->retry_after_s. VD_NOMEM,
 * VD_INVALID_ARGUMENT; VD_CLOSED: the client is being closed. The client
 * notes 401 (the identity is fetched again) and whether the server can be reached. */
VDI_MUST_USE vd_status vdi_kube_start(struct vd_kube *kube, const struct vdi_kube_http_request *request,
				      const struct vdi_kube_handler *handler,
				      struct vdi_kube_exchange **ret_exchange, struct vd_error *reterr);
/* Any thread: as vd_kube_request, but an answer of more than body_max bytes is VD_TOO_BIG. */
VDI_MUST_USE vd_status vdi_kube_request_bounded(struct vd_kube *kube, const struct vd_kube_call *call,
						size_t body_max, vd_kube_answer_fn done, void *arg);
/* Actor: returns true if a request that was answered with 401 may succeed with the next credential. */
bool vdi_kube_has_next_identity(const struct vd_kube *kube);
/* As the functions of struct vdi_kube_transport_ops. */
void vdi_kube_cancel(struct vdi_kube_exchange *exchange);
void vdi_kube_resume(struct vdi_kube_exchange *exchange);
/* Actor, without locks: reports a change of a member's health to options.changed. */
void vdi_kube_health_changed(struct vd_kube *kube, struct vdi_kube_member *member);

const struct vd_env	     *vdi_kube_env(const struct vd_kube *kube);
const struct vd_kube_options *vdi_kube_options(const struct vd_kube *kube);
vd_mono			      vdi_kube_now(const struct vd_kube *kube);

/* Converts the head and the body of a response that is not 2xx (a Status object or any text) to an error, as
 * vd_kube_answer_fn describes. Only code, retry_after_s and location of the head are read. */
vd_status vdi_kube_error_of(const struct vdi_kube_head *head, struct vd_bytes body, struct vd_error *reterr);

/* vd_kube_open over another transport, for tests. */
VDI_MUST_USE vd_status vdi_kube_open_over(const struct vd_env *env, const struct vd_kube_options *options,
					  vdi_kube_transport_new_fn transport_new, struct vd_kube **ret_kube,
					  struct vd_error *reterr);

#endif
