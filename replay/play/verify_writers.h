/* The writers of a verification: each puts or deletes random keys below a prefix, one call at a time. At the
 * end they delete all keys.
 *
 * All functions run on the actor of the verification. Answers of the store arrive on the store's threads and
 * are left, under a lock, for that actor.
 */
#ifndef VDI_VERIFY_WRITERS_H
#define VDI_VERIFY_WRITERS_H

#include "base.h"
#include "lock.h"
#include "rand.h"
#include "store_read.h"

struct vdi_verify_writer_answer {
	vd_status	status;
	vd_rev		revision;
	bool		changed; /* a record was put or deleted */
	struct vd_error error;
};

/* The interface of the verification for the writers. All functions are required but make_value. */
struct vdi_verify_writers_host {
	struct vd_store *store;
	const char	*prefix; /* of the keys; at the end everything below it is deleted */
	unsigned	 count;	 /* at most VDI_VERIFY_WRITERS_MAX */
	/* The store accepts only one put or delete of one key at a time. */
	bool one_by_one;
	void (*make_value)(void *arg, const char *key, unsigned writer, uint64_t random, char *value,
			   size_t size);
	void *make_value_arg;
	void (*call_begins)(void *arg);
	void (*call_ended)(void *arg); /* any thread; also after a call that could not begin */
	/* On the actor, for each answer. key and answer are borrowed for the call. */
	void (*answered)(void *arg, const char *key, const struct vdi_verify_writer_answer *answer);
	/* On the actor: a call could not begin, for a reason that does not pass. */
	void (*failed)(void *arg, vd_status status);
	void *arg;
};

#define VDI_VERIFY_WRITERS_MAX 256

struct vdi_verify_writer {
	struct vdi_verify_writers      *writers;
	unsigned			number;
	bool				has_answer; /* under lock, as is the next field */
	struct vdi_verify_writer_answer answer;
	/* Owned by the actor. */
	bool			 is_busy; /* a call is outstanding */
	char			 key[2][160];
	unsigned		 key_count;
	bool			 has_rest; /* key[0] remains to be deleted */
	struct vdi_store_backoff backoff;
};

struct vdi_verify_writers {
	struct vdi_verify_writers_host host;
	const struct vd_env	      *env;
	struct vdi_rand		       rand;
	struct vdi_lock		       lock;
	struct vdi_verify_writer       writers[VDI_VERIFY_WRITERS_MAX];
	bool			       is_stopped, is_cleaned, has_written;
	unsigned		       cleaned; /* keys assigned to writers to delete, one by one */
};

void vdi_verify_writers_init(struct vdi_verify_writers *writers, const struct vd_env *env,
			     const struct vdi_verify_writers_host *host);
/* No call may be outstanding. */
void vdi_verify_writers_fini(struct vdi_verify_writers *writers);
/* No call begins after this. */
void vdi_verify_writers_stop(struct vdi_verify_writers *writers);

enum vdi_verify_writers_mode {
	VDI_VERIFY_WRITERS_WAIT,  /* only takes answers */
	VDI_VERIFY_WRITERS_WRITE, /* each idle writer writes again */
	VDI_VERIFY_WRITERS_CLEAN, /* deletes all keys */
};

/* Takes the answers and begins the next calls. Returns whether a call is outstanding or a key is left to
 * delete. */
bool vdi_verify_writers_run(struct vdi_verify_writers *writers, vd_mono now,
			    enum vdi_verify_writers_mode mode);

#endif
