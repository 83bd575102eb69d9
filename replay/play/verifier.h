/* Checks the watch guarantees while events arrive: compares several streams of one store, lists of it, and
 * the answers to writers.
 *
 * 	unique		no revision is delivered twice to a stream
 * 	ordered		revisions increase
 * 	atomic		all changes of a revision are delivered together
 * 	reliable	no event is missing: streams agree with each other, with the versions of keys, with
 * 			lists, and with acknowledged writes
 * 	resumable	a stream opened at an older revision gets exactly the events after it
 * 	bookmarkable	after progress at R all events up to R have arrived, and none follows
 * 	previous	the previous value is that of the previous version
 * 	list		a list shows the state of its revision, and is not older than allowed
 * 	protocol	the source sends what its protocol allows
 *
 * The work per event is constant; memory: one small record for each live key, and a ring of recent revisions.
 * One thread at a time. Of keys and values only the hashes are kept.
 */
#ifndef VDI_VERIFIER_H
#define VDI_VERIFIER_H

#include <vedette/store.h>

#include "base.h"

enum vdi_guarantee {
	VDI_UNIQUE,
	VDI_ORDERED,
	VDI_ATOMIC,
	VDI_RELIABLE,
	VDI_RESUMABLE,
	VDI_BOOKMARKABLE,
	VDI_PREVIOUS,
	VDI_LIST,
	VDI_PROTOCOL,
	VDI_GUARANTEE_COUNT
};
const char *vdi_guarantee_name(enum vdi_guarantee guarantee);

struct vdi_violation {
	enum vdi_guarantee guarantee;
	vd_rev		   revision; /* revision of the violation */
	vd_rev		   other;    /* a related revision (a bookmark, the stream's position); 0: none */
	char		   key[256]; /* truncated; "" if unknown */
	char		   stream[64];
	char		   text[384]; /* one sentence */
};

/* A change as delivered by a stream. */
struct vdi_seen {
	struct vd_bytes key;
	vd_rev		revision;
	bool		is_delete;
	vd_rev		create_rev;					/* 0: not delivered */
	int64_t		version;					/* 0: not delivered */
	uint64_t	value_hash;					/* of a put */
	enum { VDI_HINT_NONE, VDI_HINT_ADDED, VDI_HINT_MODIFIED } hint; /* the stream's type of a put */
	bool	 has_previous;
	vd_rev	 previous_revision; /* 0: not delivered */
	uint64_t previous_hash;
};

struct vdi_verifier;
struct vdi_verifier_stream;

struct vdi_verifier_options {
	uint32_t history_max; /* number of remembered revisions; 0: 65536 */
	/* The changes of a revision may arrive one by one, because watches of Kubernetes do not mark
	 * transactions: each is checked by itself, and atomic is not checked. */
	bool in_parts;
	void (*violated)(void *arg, const struct vdi_violation *violation);
	void *arg;
};

struct vdi_verifier_totals {
	uint64_t events, revisions, progresses, lists, resumes, acknowledgements; /* checked */
	uint64_t violations;
	vd_rev	 newest;
	size_t	 keys;
};

VDI_MUST_USE vd_status vdi_verifier_new(const struct vdi_verifier_options *options,
					struct vdi_verifier		 **ret_verifier);
/* Close the streams first. Accepts NULL. */
struct vdi_verifier *vdi_verifier_free(struct vdi_verifier *verifier);
void vdi_verifier_totals_get(const struct vdi_verifier *verifier, struct vdi_verifier_totals *ret_totals);

/* Adds a list at revision; the first one is the initial state. minimum: newest revision delivered to any
 * stream when the list was requested. One list at a time; it is checked when the streams have reached its
 * revision, at the end or later. VD_NOMEM: the list is dropped. */
void vdi_verifier_list_begin(struct vdi_verifier *verifier, vd_rev revision, vd_rev minimum);
VDI_MUST_USE vd_status vdi_verifier_list_item(struct vdi_verifier *verifier, struct vd_bytes key,
					      vd_rev revision, int64_t version, uint64_t value_hash);
void		       vdi_verifier_list_end(struct vdi_verifier *verifier);
/* Returns true if a list waits for the streams to reach its revision. */
bool vdi_verifier_list_is_pending(const struct vdi_verifier *verifier);

/* Opens a stream that must deliver everything after a revision; resumes: it continues another one, or starts
 * in the past. name is copied. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_verifier_stream_open(struct vdi_verifier *verifier, const char *name, vd_rev after,
						bool resumes, struct vdi_verifier_stream **ret_stream);
void		       vdi_verifier_stream_close(struct vdi_verifier_stream *stream);
vd_rev		       vdi_verifier_stream_position(const struct vdi_verifier_stream *stream);

/* Checks all changes of one revision, in their order; count > 0. VD_NOMEM: the state is incomplete, end the
 * verification. */
VDI_MUST_USE vd_status vdi_verifier_revision(struct vdi_verifier_stream *stream,
					     const struct vdi_seen *changes, size_t count);
void		       vdi_verifier_progress(struct vdi_verifier_stream *stream, vd_rev revision);
/* Notes that a writer's change was acknowledged at revision. */
VDI_MUST_USE vd_status vdi_verifier_acknowledged(struct vdi_verifier *verifier, vd_rev revision,
						 struct vd_bytes key);
/* Notes a fault in the data from a stream's source, which its store tolerated. */
void vdi_verifier_fault(struct vdi_verifier *verifier, const char *stream,
			const struct vd_watch_fault *fault);
/* Checks that acknowledged writes up to the position of every open stream were delivered. Call
 * periodically. */
void vdi_verifier_settle(struct vdi_verifier *verifier);

uint64_t vdi_verifier_hash(struct vd_bytes bytes);

#endif
