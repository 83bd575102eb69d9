/* The client's own state, for kube_client.c, kube_open.c and kube_request.c. */
#ifndef VDI_KUBE_STATE_H
#define VDI_KUBE_STATE_H

#include "kube_client.h"
#include "kube_identity.h"
#include "kube_parts.h"
#include "lock.h"

struct vd_kube {
	/* Fixed at creation. */
	const struct vd_env	  *env;
	struct vd_kube_options	   options; /* texts are owned */
	char			  *server, *namespace_name, *user_agent;
	struct vdi_kube_transport *transport; /* fixed before is_open */
	struct vdi_usage	   usage;
	struct vdi_kube_parts	   parts;

	/* Under inbox_lock (VDI_LOCK_QUEUE). */
	struct vdi_lock inbox_lock;
	TAILQ_HEAD(, vdi_kube_member) woken; /* members that run at the next run */
	size_t woken_count, member_count;
	bool   is_open, is_closing;
	void (*close_done)(void *arg);
	void *close_done_arg;

	/* Under lock (VDI_LOCK_KUBE); the list is changed on the actor only, which reads it without. */
	struct vdi_lock lock;
	LIST_HEAD(, vdi_kube_member) members;
	struct vd_kube_health health; /* of the cluster */

	/* Actor. */
	struct vdi_timer_heap	timers;
	struct vdi_kube_member *running; /* NULL: none, or it was removed during its run */
	struct vdi_kube_member *next;	 /* close_members: the next one to close */
	size_t			exchange_count;
	bool			is_closed_to_members, is_transport_closed;
	/* NULL: it is closed. The member runs if there is a credential program. */
	struct vdi_kube_identity *identity;
	struct vdi_kube_member	  identity_member;
	_Atomic bool		  identity_changed, identity_closed; /* any thread */
};

/* The transport's function run. */
vd_mono vdi_kube_run(void *arg);
/* Functions of the identity: its program has ended; its member. */
void	vdi_kube_on_identity(void *kube);
vd_mono vdi_kube_run_identity(struct vdi_kube_member *own, vd_mono now);
void	vdi_kube_close_identity(struct vdi_kube_member *own);
/* Frees a client without transport and members. */
void vdi_kube_free(struct vd_kube *kube);

#endif
