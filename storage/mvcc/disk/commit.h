/* The changes of one commit, and the state that a start reads back: the interface between the store and its
 * files on disk. */
#ifndef VDI_COMMIT_H
#define VDI_COMMIT_H

#include <vedette/store.h>

#include "base.h"

struct vdi_change {
	bool	      is_delete; /* kv is a tombstone then: key and mod_rev, sub */
	struct vd_kv *kv;
	/* The live record of the same key that this one supersedes, borrowed as kv; NULL if the key had none
	 * (a create: version 1). With it compaction finds dead records without a map of all keys (E-1017).
	 * Required for a delete and for a put of version > 1. */
	const struct vd_kv *previous;
	bool is_first; /* no earlier version is in this store, even if version > 1 (mvcc_import.h) */
};

enum vdi_lease_change_kind { VDI_LEASE_GRANTED, VDI_LEASE_REVOKED, VDI_LEASE_RENEWED };

struct vdi_lease_change {
	enum vdi_lease_change_kind kind;
	int64_t			   id;
	int64_t			   ttl_s;    /* GRANTED */
	vd_wall			   deadline; /* GRANTED, RENEWED: time of expiry */
};

/* One unit that is applied wholly or not at all. */
struct vdi_commit {
	vd_rev			       revision; /* of the changes; 0: there are none */
	const struct vdi_change	      *changes;	 /* sub order */
	size_t			       change_count;
	const struct vdi_lease_change *leases;
	size_t			       lease_count;
	vd_rev			       compact; /* > 0: this commit compacts all revisions below */
};

/* Receives the state at open: first begin, with the compacted revision (-1: never) and the minimum of the
 * store's revision, which never decreases; then change for every record that compaction keeps, in revision
 * order; then lease for every live lease. An error of the sink ends the open with that error. The sink takes
 * over the reference kv. */
struct vdi_backend_sink {
	vd_status (*begin)(void *arg, vd_rev compacted, vd_rev revision_min, int64_t record_count_estimate);
	vd_status (*change)(void *arg, struct vd_kv *kv, bool is_delete);
	vd_status (*lease)(void *arg, int64_t id, int64_t ttl_s, vd_wall deadline);
	void *arg;
};

#endif
