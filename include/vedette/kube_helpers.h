/* Requests that most controllers need: update an object that other writers change, too, apply a
 * configuration, elect a leader by a Lease.
 *
 * The contract of vedette/kube.h applies to callbacks, threads and arguments. The functions exist only in a
 * library built with -Dkube=enabled. */
#ifndef VEDETTE_KUBE_HELPERS_H
#define VEDETTE_KUBE_HELPERS_H

#include <vedette/kube.h>
#include <vedette/leader_election.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Retries of an update after conflicts. */
struct vd_kube_retry {
	unsigned attempts; /* maximum attempts, the first one included; 1 to 100 */
	vd_dur	 delay;	   /* before the second attempt */
	double	 factor;   /* growth of each further delay; at least 1 */
	double	 jitter;   /* each delay is longer by a random part, at most this one, of it; 0 or more */
};
/* client-go's retry.DefaultRetry, for an object with few other writers. */
#define VD_KUBE_RETRY_DEFAULT                                                                                \
	{                                                                                                    \
		5, { 10000000 }, 1.0, 0.1                                                                    \
	}
/* client-go's retry.DefaultBackoff, for an object that other writers change all the time. */
#define VD_KUBE_RETRY_BACKOFF                                                                                \
	{                                                                                                    \
		4, { 10000000 }, 5.0, 0.1                                                                    \
	}

/* Edits an object: object is its current JSON, borrowed for the call. Returns VD_OK and the new JSON in
 * *ret_object (the update takes over the reference), or VD_OK and NULL if nothing needs to be changed, or
 * another status, which ends the update. metadata.resourceVersion must be kept, so that the server detects
 * a change by another writer. Called once per attempt, on an actor of the env; must not block. */
typedef vd_status (*vd_kube_edit_fn)(void *arg, struct vd_bytes object, struct vd_blob **ret_object);

struct vd_kube_update {
	size_t			       size; /* sizeof(struct vd_kube_update) */
	const struct vd_kube_resource *resource;
	struct vd_bytes		       namespace_name; /* empty: cluster-scoped */
	struct vd_bytes		       name;
	const char		      *subresource; /* "status", ...; NULL: the object itself */
	vd_kube_edit_fn		       edit;
	void			      *edit_arg;
	struct vd_kube_retry	       retry;
};
#define VD_KUBE_UPDATE_INIT                                                                                  \
	{                                                                                                    \
		sizeof(struct vd_kube_update), 0, { 0, 0 }, { 0, 0 }, 0, 0, 0, VD_KUBE_RETRY_DEFAULT         \
	}

/* Updates an object: reads it, calls edit, writes the result, and starts again after a conflict. done
 * receives the answer of the last request: of the write, or of the read if edit changed nothing;
 * VD_CONFLICT if all attempts met a conflict; or the status of edit. Errors: VD_INVALID_ARGUMENT,
 * VD_TOO_BIG, VD_CLOSED, VD_NOMEM. The client must not be closed before done was called. */
VD_API VD_MUST_USE vd_status vd_kube_update(struct vd_kube *kube, const struct vd_kube_update *update,
					    vd_kube_answer_fn done, void *arg);

struct vd_kube_apply {
	size_t			       size; /* sizeof(struct vd_kube_apply) */
	const struct vd_kube_resource *resource;
	struct vd_bytes		       namespace_name; /* empty: cluster-scoped */
	struct vd_bytes		       name;
	const char		      *subresource; /* "status", ...; NULL: the object itself */
	struct vd_bytes configuration;		    /* YAML or JSON with apiVersion, kind and metadata.name */
	const char     *field_manager;		    /* name of the owner of the applied fields; required */
	bool		force;			    /* take over fields that other managers own */
};
#define VD_KUBE_APPLY_INIT                                                                                   \
	{                                                                                                    \
		sizeof(struct vd_kube_apply), 0, { 0, 0 }, { 0, 0 }, 0, { 0, 0 }, 0, false                   \
	}

/* Applies a configuration on the server (server-side apply): creates the object, or changes the fields that
 * the configuration has. done receives VD_CONFLICT if, without force, another manager owns a field. Errors
 * as for vd_kube_update. */
VD_API VD_MUST_USE vd_status vd_kube_apply(struct vd_kube *kube, const struct vd_kube_apply *apply,
					   vd_kube_answer_fn done, void *arg);

/* Creates a lock on a Lease of coordination.k8s.io/v1; does not contact the server. Members of the Lease
 * that the lock does not use are kept. The caller owns the lock until an election takes it. Errors:
 * VD_INVALID_ARGUMENT, VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_lease_lock_new(struct vd_kube *kube, const char *namespace_name,
					       const char *name, struct vd_leader_lock **ret_lock,
					       struct vd_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
