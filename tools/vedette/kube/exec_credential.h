/* Who we are to a server, as a program says it: the exec plugins of a kubeconfig (ExecCredential of
 * client.authentication.k8s.io, v1 and v1beta1).
 *
 * The program is run when there is no credential yet, when the one there is has expired, and after a server
 * refused it. It gets no terminal, may take 60 s and write 1 MiB; what it says to its stderr is the user's.
 * One thread at a time; blocks while it runs.
 */
#ifndef VDI_EXEC_CREDENTIAL_H
#define VDI_EXEC_CREDENTIAL_H

#include "base.h"

#define VDI_EXEC_WORDS_MAX 256

/* What is to be run. Texts are owned. */
struct vdi_exec_plan {
	char   *api_version, *command;		     /* command NULL: nothing is */
	char   *hint;				     /* how to install it, or NULL */
	char   *arguments[VDI_EXEC_WORDS_MAX + 2];   /* command first; NULL behind the last */
	char   *environment[VDI_EXEC_WORDS_MAX + 1]; /* "NAME=value", besides our own */
	bool	gives_cluster;
	int64_t timeout_ms; /* 0: 60 s */
};
/* Copes with a zeroed one. */
void vdi_exec_plan_fini(struct vdi_exec_plan *plan);

struct vdi_exec_credential;

/* The server as a program with provideClusterInfo sees it; ca is PEM, may be empty. */
struct vdi_exec_cluster {
	const char     *server;
	struct vd_bytes ca;
	bool		insecure;
};

/* What is sent: token NULL, certificate and key empty where there is none. PEM. */
struct vdi_exec_answer {
	const char     *token;
	struct vd_bytes certificate, key;
	unsigned	number; /* one more each time that the program was run */
};

/* The plan is lent for the credential's life, the cluster for the call. VD_NOMEM. */
VDI_MUST_USE vd_status	    vdi_exec_credential_new(const struct vdi_exec_plan	  *plan,
						    const struct vdi_exec_cluster *cluster,
						    struct vdi_exec_credential	 **ret_credential);
struct vdi_exec_credential *vdi_exec_credential_free(struct vdi_exec_credential *credential);
/* Lent until the next call. VD_FORBIDDEN: the program is not there, failed, or said something else than a
 * credential; VD_TIMEOUT; VD_NOMEM. The message names the program. */
VDI_MUST_USE vd_status vdi_exec_credential_get(struct vdi_exec_credential *credential,
					       struct vdi_exec_answer *ret_answer, struct vd_error *reterr);
/* The server does not take the one of this number (401). True: there is another, or it will be asked for;
 * false: that was tried often enough, and none was taken. */
bool vdi_exec_credential_refused(struct vdi_exec_credential *credential, unsigned number);
/* The server took one. */
void vdi_exec_credential_taken(struct vdi_exec_credential *credential);

#endif
