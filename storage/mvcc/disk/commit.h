/* What one commit changes, and what a start gets back: what the store and its files on disk tell each
 * other. */
#ifndef VDI_COMMIT_H
#define VDI_COMMIT_H

#include <vedette/store.h>

#include "base.h"

struct vdi_change {
	bool	      is_delete; /* kv is a tombstone then: key and mod_rev, sub */
	struct vd_kv *kv;
	/* The live record of the same key that this one supersedes, lent like kv; NULL when the key had none
	 * (a create: version 1). By it compaction finds what is dead without a map of all keys (E-1017):
	 * required for a delete and for a put of version > 1. */
	const struct vd_kv *previous;
	bool is_first; /* no earlier version is in this store, whatever its version says (mvcc_import.h) */
};

enum vdi_lease_change_kind { VDI_LEASE_GRANTED, VDI_LEASE_REVOKED, VDI_LEASE_RENEWED };

struct vdi_lease_change {
	enum vdi_lease_change_kind kind;
	int64_t			   id;
	int64_t			   ttl_s;    /* GRANTED */
	vd_wall			   deadline; /* GRANTED, RENEWED: when it expires */
};

/* One unit that is applied wholly or not at all. */
struct vdi_commit {
	vd_rev			       revision; /* of the changes; 0 when there are none */
	const struct vdi_change	      *changes;	 /* sub order */
	size_t			       change_count;
	const struct vdi_lease_change *leases;
	size_t			       lease_count;
	vd_rev compact; /* > 0: older revisions than this are compacted from here on */
};

/* Receives the state at open: first begin with the compacted revision (-1: never) and the least revision the
 * store must stand at (it never goes back); then every record that compaction keeps, in revision
 * order; then leases that live. A sink error ends the open with it. The kv is the sink's reference to
 * keep. */
struct vdi_backend_sink {
	vd_status (*begin)(void *arg, vd_rev compacted, vd_rev revision_min, int64_t record_count_estimate);
	vd_status (*change)(void *arg, struct vd_kv *kv, bool is_delete);
	vd_status (*lease)(void *arg, int64_t id, int64_t ttl_s, vd_wall deadline);
	void *arg;
};

#endif
