/* Checks the watch guarantees while they happen: several streams of one store, lists of it, and what writers
 * were told, against each other.
 *
 * 	unique		no revision is delivered twice to a stream
 * 	ordered		revisions only grow
 * 	atomic		all changes of a revision come together
 * 	reliable	nothing is missing: streams agree with each other, with the versions of keys, with lists, and with acknowledged writes
 * 	resumable	a stream that is opened at an older revision gets exactly what came after it
 * 	bookmarkable	after progress at R nothing at or below R comes, and everything up to R has come
 * 	previous	the previous value is the one before
 * 	list		a list shows the state of its revision, and is not older than it may be
 * 	protocol	the source sends what its protocol allows
 *
 * Work per event does not depend on how much there is; memory: one small record for each live key, and a ring
 * of recent revisions. One thread at a time. Nothing is known about the keys and values but their hashes.
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
	vd_rev		   revision; /* the one it is about */
	vd_rev other;	 /* another that belongs to it (a bookmark, where the stream stood); 0: none */
	char   key[256]; /* cut; "" when not known */
	char   stream[64];
	char   text[384]; /* one sentence */
};

/* One change as a stream shows it. */
struct vdi_seen {
	struct vd_bytes key;
	vd_rev		revision;
	bool		is_delete;
	vd_rev		create_rev;					/* 0: not shown */
	int64_t		version;					/* 0: not shown */
	uint64_t	value_hash;					/* of a put */
	enum { VDI_HINT_NONE, VDI_HINT_ADDED, VDI_HINT_MODIFIED } hint; /* what the stream calls a put */
	bool	 has_previous;
	vd_rev	 previous_revision; /* 0: not shown */
	uint64_t previous_hash;
};

struct vdi_verifier;
struct vdi_verifier_stream;

struct vdi_verifier_options {
	uint32_t history_max; /* revisions that are remembered; default 65536 when 0 */
	/* the changes of a revision may come one after the other (watches of Kubernetes say nothing of
	 * transactions): each is shown by itself, and atomic is not checked */
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
/* Streams first. NULL is fine. */
struct vdi_verifier *vdi_verifier_free(struct vdi_verifier *verifier);
void vdi_verifier_totals_get(const struct vdi_verifier *verifier, struct vdi_verifier_totals *ret_totals);

/* A list at revision: the first one is what everything begins with. minimum: the newest revision that anybody
 * had been shown when it was asked for. Only one at a time; it is judged when the streams have come so far:
 * at the end, or later. VD_NOMEM: it is forgotten. */
void vdi_verifier_list_begin(struct vdi_verifier *verifier, vd_rev revision, vd_rev minimum);
VDI_MUST_USE vd_status vdi_verifier_list_item(struct vdi_verifier *verifier, struct vd_bytes key,
					      vd_rev revision, int64_t version, uint64_t value_hash);
void		       vdi_verifier_list_end(struct vdi_verifier *verifier);
/* A list still waits for its streams. */
bool vdi_verifier_list_is_pending(const struct vdi_verifier *verifier);

/* A stream that is to show everything behind a revision; resumes: it is the continuation of another, or
 * begins in the past. name is copied. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_verifier_stream_open(struct vdi_verifier *verifier, const char *name, vd_rev after,
						bool resumes, struct vdi_verifier_stream **ret_stream);
void		       vdi_verifier_stream_close(struct vdi_verifier_stream *stream);
vd_rev		       vdi_verifier_stream_position(const struct vdi_verifier_stream *stream);

/* All changes of one revision, in their order; count > 0. VD_NOMEM: what is known is not complete any more:
 * end. */
VDI_MUST_USE vd_status vdi_verifier_revision(struct vdi_verifier_stream *stream,
					     const struct vdi_seen *changes, size_t count);
void		       vdi_verifier_progress(struct vdi_verifier_stream *stream, vd_rev revision);
/* A writer was told that its change was made at revision. */
VDI_MUST_USE vd_status vdi_verifier_acknowledged(struct vdi_verifier *verifier, vd_rev revision,
						 struct vd_bytes key);
/* The source of a stream sent something that its store passed over. */
void vdi_verifier_fault(struct vdi_verifier *verifier, const char *stream,
			const struct vd_watch_fault *fault);
/* Acknowledged writes up to what every open stream has passed must have been seen. Now and then. */
void vdi_verifier_settle(struct vdi_verifier *verifier);

uint64_t vdi_verifier_hash(struct vd_bytes bytes);

#endif
