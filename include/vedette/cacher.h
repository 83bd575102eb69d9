/* The Cacher: one resource, held in memory, listed and watched by many.
 *
 * It feeds itself from a store (list, then watch, resuming after every loss), keeps the objects in an ordered copy-on-write tree and
 * the recent events in one history, and serves gets, lists and watches without touching the store wherever Kubernetes' rules
 * allow. Writes pass through to the store. Mirrors kubernetes/apiserver pkg/storage/cacher (R-401..R-564) and its delegator
 * (R-580..R-589).
 *
 * All functions may be called from any thread; those named _wait block and are refused in an actor's handler (vedette/env.h). Callbacks follow
 * the rule of vedette/store.h: an error returned means no callback; VD_OK means exactly one, perhaps before the call returns.
 *
 * Names are checked: an object of a namespaced resource needs a namespace, one of a cluster-scoped resource has none (a namespace equal to the name is
 * accepted, because Kubernetes reads a Namespace so), and what is written carries the name and namespace of its key in its metadata. Lists and watches of a
 * namespaced resource may leave out the namespace, for all of them. Violations are VD_INVALID_ARGUMENT; calls that have no reterr report them to their callback,
 * with the sentence.
 */
#ifndef VEDETTE_CACHER_H
#define VEDETTE_CACHER_H

#include <vedette/codec.h>
#include <vedette/env.h>
#include <vedette/store.h>
#include <vedette/watch.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_cacher;

/* What follows when the cache was found to differ from the store at the same revision. Always: it is counted and logged with the first object that differs, and
 * exact revisions are read from the store until a later comparison finds no difference. */
enum vd_on_inconsistency {
	VD_ON_INCONSISTENCY_REPORT, /* that is all, as upstream does it */
	VD_ON_INCONSISTENCY_RELIST, /* the cache is filled anew; all watches end (VD_CLOSED) and cannot be resumed across it */
	VD_ON_INCONSISTENCY_PANIC,  /* the program stops: for tests */
};

struct vd_cacher_options {
	size_t		 size;		/* sizeof(struct vd_cacher_options) */
	const char	*resource;	/* "pods", "deployments.apps": for messages and metrics; copied */
	const char	*group;		/* API group, "" for core; copied; NULL: "" */
	const char	*key_prefix;	/* "/registry/pods/": starts and ends with '/', more than "/"; copied */
	bool		 cluster_scoped; /* keys are prefix + name; else prefix + namespace + "/" + name */
	struct vd_codec *codec;		/* lent: outlives the cacher, else vd_codec_free stops the program; a list index for the trigger, and for its other fields while lists ask for them */
	const char	*trigger;	/* a declared field with one watcher index, or NULL; copied. Other fields and labels are indexed too */
	int64_t		 history_bytes;	 /* budget of the history; default 64 MiB */
	vd_dur		 history_window; /* how long events stay resumable at least, within the budget; default 75 s, the minimum */
	int64_t		 lag_bytes_max;	 /* per watcher; default 16 MiB */
	uint32_t	 watcher_count_max; /* default 1,000,000; more answers VD_FULL */
	unsigned	 decode_workers;    /* 0: decode on the feeding actor itself; default 0 */
	/* An object that cannot be decoded is left out and counted, and its key is quarantined; if the cache had it, watchers get DELETED with its last readable state. false: the cache
	 * lists again until the object is readable or gone. */
	bool		 skip_undecodable;
	const char *const *index_labels;    /* label keys with a list index; NULL-terminated or NULL; copied */
	bool		   no_backfill;	    /* start with an empty history, though the store still has older revisions */
	vd_dur		   consistency_interval; /* between two comparisons with the store (R-5A0); default 5 min; 0: never */
	enum vd_on_inconsistency on_inconsistency;
};
#define VD_CACHER_OPTIONS_INIT                                                                                                   \
	{                                                                                                                        \
		sizeof(struct vd_cacher_options), 0, 0, 0, false, 0, 0, (int64_t) 64 << 20, { (int64_t) 75 * 1000000000 },       \
			(int64_t) 16 << 20, 1000000, 0, false, 0, false, { (int64_t) 300 * 1000000000 },                         \
			VD_ON_INCONSISTENCY_REPORT                                                                               \
	}

/* Returns at once; the cacher starts to fill itself. VD_INVALID_ARGUMENT with a sentence, VD_NOMEM. store outlives the cacher, until done of
 * vd_cacher_close: else vd_store_close stops the program and names it. */
VD_API VD_MUST_USE vd_status vd_cacher_new(const struct vd_env *env, struct vd_store *store, const struct vd_cacher_options *options,
					   struct vd_cacher **ret_cacher, struct vd_error *reterr);
/* Ends all watches (VD_CLOSED), answers what waits, frees. done (may be NULL) when it is gone. Once: a second call stops the program. The close_wait form stops the
 * program where it would never return: in a handler, and on the thread of a poller on which watchers are open. Watchers stay valid until they are closed. */
VD_API void		 vd_cacher_close(struct vd_cacher *cacher, void (*done)(void *arg), void *arg);
VD_API struct vd_cacher *vd_cacher_close_wait(struct vd_cacher *cacher);

/* VD_OK, VD_NOT_READY (message and retry_after_s as ), VD_CLOSED. */
VD_API VD_MUST_USE vd_status vd_cacher_ready(struct vd_cacher *cacher, struct vd_error *reterr);
/* Waits until ready, stopped, or timeout (negative: for ever). VD_OK, VD_NOT_READY, VD_CLOSED. */
VD_API VD_MUST_USE vd_status vd_cacher_ready_wait(struct vd_cacher *cacher, vd_dur timeout, struct vd_error *reterr);
/* The revision the cache stands at; 0 before the first fill. */
VD_API vd_rev vd_cacher_revision(const struct vd_cacher *cacher);

/* ---- Get ---- */

/* object is lent for the call, NULL when status is not VD_OK. revision: the cache's (or the store's). */
typedef void (*vd_object_fn)(void *arg, vd_status status, struct vd_object *object, vd_rev revision, const struct vd_error *error);

/* revision VD_REVISION_UNSET: the most recent; VD_REVISION_ANY: whatever the cache has; N: not older than N (waits at most 3 s, then
 * VD_TOO_LARGE_REVISION). VD_NOT_FOUND. */
VD_API VD_MUST_USE vd_status vd_cacher_get(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name, vd_rev revision,
					   vd_object_fn done, void *arg);

/* ---- List ---- */

enum vd_revision_match { VD_MATCH_UNSET, VD_MATCH_NOT_OLDER_THAN, VD_MATCH_EXACT };

struct vd_list_options {
	size_t		       size; /* sizeof(struct vd_list_options); only this set: VD_REVISION_ANY, whatever the cache has */
	struct vd_bytes	       namespace_name;
	struct vd_bytes	       name;
	struct vd_bytes	       label_selector;
	struct vd_bytes	       field_selector;
	vd_rev		       revision;
	enum vd_revision_match match;
	int64_t		       limit; /* 0: none */
	struct vd_bytes	       continue_token;
	struct vd_bytes	       shard_selector; /* KEP-5866: "shardRange(object.metadata.uid, '0x...', '0x...') || ..."; empty: everything */
};
#define VD_LIST_OPTIONS_INIT                                                                                                     \
	{                                                                                                                        \
		sizeof(struct vd_list_options), { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 }, VD_REVISION_UNSET, VD_MATCH_UNSET, 0,    \
			{ 0, 0 }, { 0, 0 }                                                                                                 \
	}

/* A list is a snapshot, walked lazily and without locks; one owner, one thread at a time. Key order. It may outlive cacher, store, codec and env. */
struct vd_list;

/* list is the receiver's to free when status is VD_OK, else NULL. */
typedef void (*vd_list_fn)(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error);

/* All rows of R-151. VD_EXPIRED (error->message as R-125; list again without the token),
 * VD_TOO_LARGE_REVISION, VD_NOT_READY, VD_BAD_REQUEST (a selector that cannot be read or names a field that the codec does not declare; a token). */
VD_API VD_MUST_USE vd_status vd_cacher_list(struct vd_cacher *cacher, const struct vd_list_options *options, vd_list_fn done, void *arg,
					    struct vd_error *reterr);
VD_API VD_MUST_USE vd_status vd_cacher_list_wait(struct vd_cacher *cacher, const struct vd_list_options *options, struct vd_list **ret_list,
						 struct vd_error *reterr);

/* An object that cannot be decoded is left out of lists with skip_undecodable, also from the store; without it, or as the only key of a list from the
 * store: VD_UNDECODABLE. */

/* The next object that the selectors want, lent until the list is freed; NULL at the end. */
VD_API struct vd_object *vd_list_next(struct vd_list *list);
VD_API vd_rev		 vd_list_revision(const struct vd_list *list);
/* Empty when this is the last page. Known from the beginning. Lent while the list lives. */
VD_API struct vd_bytes vd_list_continue(const struct vd_list *list);
/* -1: not given. */
VD_API int64_t	       vd_list_remaining(const struct vd_list *list);
/* What of the objects it is: the canonical text of the shard selector, empty without one (R-5B0). Lent while the list lives. */
VD_API struct vd_bytes vd_list_shard_selector(const struct vd_list *list);
/* Objects the list will walk over (an upper bound of what next gives). */
VD_API int64_t	       vd_list_candidate_count(const struct vd_list *list);
VD_API struct vd_list *vd_list_free(struct vd_list *list);

/* ---- What happened ---- */

/* As far as the cache's history reaches, which on the embedded store is all that the store has kept. */
struct vd_changes_options {
	size_t		size; /* sizeof(struct vd_changes_options) */
	struct vd_bytes namespace_name; /* empty: all */
	struct vd_bytes name;		/* empty: all */
	struct vd_bytes label_selector;
	struct vd_bytes field_selector;
	vd_rev		after;	  /* changes after this revision; 0: as far back as there is */
	vd_rev		until;	  /* up to and with this one; 0: up to now */
	bool		combined; /* one per object, in key order: what is different at `until`; else each change, in the order of revisions */
};
#define VD_CHANGES_OPTIONS_INIT                                                                                                  \
	{                                                                                                                        \
		sizeof(struct vd_changes_options), { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 }, 0, 0, false                           \
	}

struct vd_changes;
/* For the selectors, as a watch would tell it: what leaves a selector is DELETED. Lent while the changes live. */
struct vd_change {
	enum vd_watch_type type;
	vd_rev		   revision;   /* of the change; combined: of the object's last one */
	struct vd_object  *object;     /* the state after; DELETED: the last state that was wanted (combined: the one at `after`) */
	struct vd_object  *old_object; /* the state before (combined: at `after`); NULL for ADDED */
};

/* Does not block. VD_EXPIRED: the history does not reach back to `after`; VD_TOO_LARGE_REVISION: `until` has not come yet; VD_NOT_READY, VD_BAD_REQUEST,
 * VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_cacher_changes(struct vd_cacher *cacher, const struct vd_changes_options *options, struct vd_changes **ret_changes,
					       struct vd_error *reterr);
VD_API size_t		  vd_changes_count(const struct vd_changes *changes);
VD_API struct vd_change	  vd_changes_at(const struct vd_changes *changes, size_t index); /* index below the count */
VD_API vd_rev		  vd_changes_after(const struct vd_changes *changes); /* where they begin: what was asked, or how far back there is */
VD_API vd_rev		  vd_changes_until(const struct vd_changes *changes);
VD_API struct vd_changes *vd_changes_free(struct vd_changes *changes);

/* ---- Watch ---- */

/* Direct errors: VD_NOT_READY, VD_BAD_REQUEST (selectors, as for lists), VD_INVALID_ARGUMENT, VD_FULL, VD_NOMEM. Later ones come as an ERROR event. sink NULL: a pulled
 * watcher (vd_watcher_next). The sink is copied; it is never called inside this function, and not before *ret_watcher is written. The watch begins soon, not
 * inside this function: without a revision it starts with the state of that moment, which may hold what was written after the call; give the revision that you
 * know to see each change. */
VD_API VD_MUST_USE vd_status vd_cacher_watch(struct vd_cacher *cacher, const struct vd_watch_options *options, const struct vd_watch_sink *sink,
					     struct vd_watcher **ret_watcher, struct vd_error *reterr);

/* ---- Writes: pass through to the store; answered when durable ---- */

struct vd_preconditions {
	struct vd_bytes uid;	  /* empty: not asked */
	struct vd_bytes revision; /* text, compared as text; empty: not asked */
};

/* value: JSON without resourceVersion (one that is there is cut, except on create: VD_REVISION_ON_CREATE, R-121). ttl_s 0: none; negative:
 * VD_INVALID_ARGUMENT. VD_EXISTS. */
VD_API VD_MUST_USE vd_status vd_cacher_create(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name,
					      struct vd_bytes value, int64_t ttl_s, vd_object_fn done, void *arg);

/* current is NULL for a missing object (only with create_missing). Fills *ret_value (lent until the next call of update or done) and may set *ret_ttl_s.
 * May be called several times, each time with a fresh state, on a thread of the store; must not block. An error ends the update with it. */
typedef vd_status (*vd_update_fn)(void *arg, struct vd_object *current, struct vd_bytes *ret_value, int64_t *ret_ttl_s, struct vd_error *reterr);

/* GuaranteedUpdate (R-131..R-137): read, change, write if nobody else wrote, else again. Equal bytes write nothing. preconditions may be
 * NULL. VD_NOT_FOUND, VD_PRECONDITION. */
VD_API VD_MUST_USE vd_status vd_cacher_update(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name,
					      bool create_missing, const struct vd_preconditions *preconditions, vd_update_fn update,
					      vd_object_fn done, void *arg);

/* validate (may be NULL) sees the state that would be deleted and may refuse. done gets the last state and the revision of the deletion
 * (R-129, R-130). */
typedef vd_status (*vd_validate_fn)(void *arg, struct vd_object *current, struct vd_error *reterr);
VD_API VD_MUST_USE vd_status vd_cacher_delete(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name,
					      const struct vd_preconditions *preconditions, vd_validate_fn validate, vd_object_fn done,
					      void *arg);

/* Blocking forms. ret_object (may be NULL) is a reference of the caller's. put creates or replaces. */
VD_API VD_MUST_USE vd_status vd_cacher_get_wait(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name, vd_rev revision,
						struct vd_object **ret_object, struct vd_error *reterr);
VD_API VD_MUST_USE vd_status vd_cacher_put_wait(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name,
						struct vd_bytes value, struct vd_object **ret_object, struct vd_error *reterr);
VD_API VD_MUST_USE vd_status vd_cacher_delete_wait(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes name,
						   vd_rev *ret_revision, struct vd_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
