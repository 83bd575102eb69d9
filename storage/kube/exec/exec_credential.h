/* Credentials from a program: the exec plugins of a kubeconfig (ExecCredential of
 * client.authentication.k8s.io, v1 and v1beta1).
 *
 * The program has no terminal, 60 s of time and 1 MiB of output. The end of what it prints on stderr is part
 * of the message if it fails. One thread at a time; blocks while it runs. */
#ifndef VDI_EXEC_CREDENTIAL_H
#define VDI_EXEC_CREDENTIAL_H

#include "base.h"

#define VDI_EXEC_WORDS_MAX 256

/* The program and its arguments. Texts are owned. */
struct vdi_exec_plan {
	char   *api_version, *command;		     /* command NULL: no program */
	char   *hint;				     /* how to install it, or NULL */
	char   *arguments[VDI_EXEC_WORDS_MAX + 2];   /* command first; NULL after the last */
	char   *environment[VDI_EXEC_WORDS_MAX + 1]; /* "NAME=value", added to our environment */
	bool	gives_cluster;
	int64_t timeout_ms; /* 0: 60 s */
};
/* Accepts a zeroed struct. */
void vdi_exec_plan_fini(struct vdi_exec_plan *plan);

struct vdi_exec_credential;

/* The server's data for a program with provideClusterInfo; ca is PEM, may be empty. */
struct vdi_exec_cluster {
	const char     *server;
	struct vd_bytes ca;
	bool		insecure;
};

/* The credential: token NULL, certificate and key empty if missing. PEM. */
struct vdi_exec_answer {
	const char     *token;
	struct vd_bytes certificate, key;
	unsigned	number;	 /* of the run, counted by kube_exec */
	vd_wall		expires; /* 0: never */
	const char     *printed; /* the end of its stderr, as one printable line; "" if nothing */
};

/* plan is borrowed for the credential's lifetime, cluster for the call. VD_NOMEM. */
VDI_MUST_USE vd_status	    vdi_exec_credential_new(const struct vdi_exec_plan	  *plan,
						    const struct vdi_exec_cluster *cluster,
						    struct vdi_exec_credential	 **ret_credential);
struct vdi_exec_credential *vdi_exec_credential_free(struct vdi_exec_credential *credential);
/* Runs the program. The answer is borrowed until the next call. VD_FORBIDDEN: the program is missing, failed,
 * or returned no credential; VD_TIMEOUT; VD_CLOSED: stopped; VD_NOMEM. The message names the program. */
VDI_MUST_USE vd_status vdi_exec_credential_fetch(struct vdi_exec_credential *credential,
						 struct vdi_exec_answer *ret_answer, struct vd_error *reterr);
/* Any thread: ends a running program within 0.2 s, and any later one; fetch answers VD_CLOSED. */
void vdi_exec_credential_stop(struct vdi_exec_credential *credential);

#endif
