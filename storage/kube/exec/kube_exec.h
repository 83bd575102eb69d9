/* The exec plugin of a client: runs its program on an actor of its own, so that nothing else waits for it.
 *
 * The program runs again 1 s after its last run has ended, at the earliest. The pause doubles, up to 64 s,
 * with each failure, rejection (401), and credential that had expired or lived less than 1 s when it arrived.
 * Only the first rejection after an accepted credential runs the program at once, at most every 10 s.
 *
 * All functions are called on the client's actor, unless stated otherwise. */
#ifndef VDI_KUBE_EXEC_H
#define VDI_KUBE_EXEC_H

#include "base.h"
#include "exec_credential.h"

struct vdi_kube_exec;

/* plan is borrowed until done of vdi_kube_exec_close, cluster for the call. changed is called on the
 * plugin's actor when a run of the program has ended. VD_NOMEM, VD_FULL. */
VDI_MUST_USE vd_status vdi_kube_exec_new(const struct vd_env *env, const struct vdi_exec_plan *plan,
					 const struct vdi_exec_cluster *cluster, void (*changed)(void *arg),
					 void *arg, struct vdi_kube_exec **ret_exec);
/* VD_OK: the credential, borrowed until the next call. VD_AGAIN: the program runs, and changed will be
 * called. VD_FORBIDDEN: the program failed or its credential was rejected; reterr has the cause and the
 * time to the next run. Starts the program when it is needed: at the first call, shortly before the
 * credential expires (meanwhile it is still used), and after a 401. */
VDI_MUST_USE vd_status vdi_kube_exec_get(struct vdi_kube_exec *exec, struct vdi_exec_answer *ret_answer,
					 struct vd_error *reterr);
/* Returns the time of the next call of get that may start the program; VD_NEVER: none. */
vd_mono vdi_kube_exec_due(const struct vdi_kube_exec *exec);
/* The server rejected the credential with this number: it is not used again. */
void vdi_kube_exec_refused(struct vdi_kube_exec *exec, unsigned number);
/* The server accepted the credential. */
void vdi_kube_exec_accepted(struct vdi_kube_exec *exec);
/* Ends a running program and frees the plugin. done is called on another actor; changed is not called
 * after it. */
void vdi_kube_exec_close(struct vdi_kube_exec *exec, void (*done)(void *arg), void *arg);

#endif
