/* Which cluster the server is: the uid of its namespace kube-system. A server that was restored from a backup
 * or replaced by another one has another uid.
 *
 * All sources of a client share the answers. One request is in flight; its answer serves every ask that
 * accepts an answer as old as its sending, and for VDI_KUBE_CLUSTER_VALID also those that come later. So a
 * thousand watches that end together cost one request.
 *
 * On the client's actor. */
#ifndef VDI_KUBE_CLUSTER_H
#define VDI_KUBE_CLUSTER_H

#include <sys/queue.h>

#include "kube_client.h"

/* Less than a restore of a server takes. */
#define VDI_KUBE_CLUSTER_VALID VD_SECONDS(1)
/* A client that may not read the namespace asks again after so long. */
#define VDI_KUBE_CLUSTER_REFUSED VD_SECONDS(60)
#define VDI_KUBE_UID_SIZE 64

struct vdi_kube_cluster_answer {
	vd_status	       status; /* as in vd_kube_answer_fn */
	int		       code;   /* HTTP status; 0: no response */
	const char	      *uid; /* "": the server has no such namespace, or the client may not read it */
	const struct vd_error *error; /* NULL if status is VD_OK */
};

/* One caller that waits. Embedded in its owner, zeroed before the first use. */
struct vdi_kube_cluster_ask {
	TAILQ_ENTRY(vdi_kube_cluster_ask) node;
	/* Set by the owner. Called once for each vdi_kube_cluster_ask that returned VD_OK, possibly inside
	 * it, except after vdi_kube_cluster_ask_end. May ask again. Everything is borrowed for the call. */
	void (*answer)(struct vdi_kube_cluster_ask *ask, const struct vdi_kube_cluster_answer *answer);
	vd_mono	 not_before;
	uint64_t number; /* in the order of the asks */
	bool	 is_waiting;
};

/* Asks; the answer belongs to a request that was sent at not_before or later. The request is repeated as
 * that of struct vd_kube_call with repeat. VD_NOMEM, VD_CLOSED: answer is not called. */
VDI_MUST_USE vd_status vdi_kube_cluster_ask(struct vd_kube *kube, struct vdi_kube_cluster_ask *ask,
					    vd_mono not_before);
/* Gives up; accepts one that does not wait. */
void vdi_kube_cluster_ask_end(struct vd_kube *kube, struct vdi_kube_cluster_ask *ask);

#endif
