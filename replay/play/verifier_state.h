/* The private state of a verifier: verifier.c checks streams, verifier_list.c lists and acknowledged
 * writes. */
#ifndef VDI_VERIFIER_STATE_H
#define VDI_VERIFIER_STATE_H

#include <sys/queue.h>

#include "hash.h"
#include "verifier.h"

struct vdi_verifier_key {
	vd_rev	 revision;
	vd_rev	 create_rev;
	int64_t	 version;
	uint64_t value_hash;
	uint64_t digest;
	uint32_t size;
	char	 key[];
};

struct vdi_verifier_moment {
	vd_rev	 revision;
	uint64_t hash;
	uint64_t digest;   /* of the state after it */
	uint64_t keys;	   /* number of live keys */
	uint64_t previous; /* hash of the previous records that were delivered; their number */
	uint32_t previous_count;
};

struct vdi_verifier_ack {
	vd_rev revision;
	char   key[96];
};

struct vdi_verifier_list {
	bool	 is_open, is_pending, is_first;
	vd_rev	 revision, minimum;
	uint64_t digest, keys;
};

struct vdi_verifier {
	struct vdi_verifier_options options;
	struct vdi_hash		    keys; /* of struct vdi_verifier_key */
	uint64_t		    digest;
	struct vdi_verifier_moment *ring; /* by number modulo capacity */
	uint64_t		    begin, end;
	struct vdi_verifier_moment  base; /* before the oldest one in the ring */
	bool			    is_started;
	struct vdi_verifier_ack	   *acks;
	size_t			    ack_count, ack_capacity;
	struct vdi_verifier_list    list;
	LIST_HEAD(, vdi_verifier_stream) streams;
	struct vdi_verifier_totals totals;
};

struct vdi_verifier_stream {
	LIST_ENTRY(vdi_verifier_stream) node;
	struct vdi_verifier *verifier;
	char		     name[64];
	vd_rev		     position;
	vd_rev		     bookmark; /* newest progress; 0: none */
	vd_rev		     last;     /* last delivered revision; 0: none */
	uint64_t	     next;     /* number of the moment that must come next, if the ring has it */
	uint64_t	     last_key; /* hash of the last delivered key */
	bool		     resumes;
};

/* ---- Violations ---- */

/* Completes the violation with key and stream, and reports it. */
void vdi_verifier_report(struct vdi_verifier *verifier, struct vdi_violation *violation, struct vd_bytes key,
			 const char *stream);
/* stream: NULL if the violation is not of one. */
void vdi_verifier_violate(struct vdi_verifier *verifier, const struct vdi_verifier_stream *stream,
			  enum vdi_guarantee guarantee, vd_rev revision, vd_rev other, struct vd_bytes key,
			  const char *format, ...) __attribute__((format(printf, 7, 8)));

/* ---- States of keys ---- */

/* Returns the live key, or NULL. */
struct vdi_verifier_key *vdi_verifier_find(const struct vdi_verifier *verifier, struct vd_bytes key);
/* Returns the part of one key in the digest of a state. */
uint64_t vdi_verifier_digest(uint64_t key_hash, vd_rev revision);
void	 vdi_verifier_forget(struct vdi_verifier *verifier, struct vd_bytes key);
/* VD_NOMEM: unchanged. */
VDI_MUST_USE vd_status vdi_verifier_remember(struct vdi_verifier *verifier, const struct vdi_seen *seen);

/* ---- The ring ---- */

static inline struct vdi_verifier_moment *vdi_verifier_moment_at(const struct vdi_verifier *verifier,
								 uint64_t		    number)
{
	return &verifier->ring[number % verifier->options.history_max];
}

/* Returns the number of the first moment after revision. */
uint64_t vdi_verifier_first_behind(const struct vdi_verifier *verifier, vd_rev revision);
vd_rev	 vdi_verifier_newest(const struct vdi_verifier *verifier);
/* Returns the state at revision; NULL: no longer in the ring. */
const struct vdi_verifier_moment *vdi_verifier_state_at(const struct vdi_verifier *verifier, vd_rev revision);
void vdi_verifier_append(struct vdi_verifier *verifier, vd_rev revision, uint64_t hash);

/* ---- Lists (verifier_list.c) ---- */

/* Checks a list when a stream has reached its revision: both must show the same state. */
void vdi_verifier_check_list(struct vdi_verifier *verifier);

#endif
