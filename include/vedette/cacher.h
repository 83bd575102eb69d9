/* The Cacher: one resource, held in memory, for many lists and watches.
 *
 * The cacher fills itself from a store (list, then watch, resuming after each loss). It keeps the objects
 * in an ordered copy-on-write tree and the recent events in one history. It serves gets, lists and watches
 * without a call to the store wherever the rules of Kubernetes allow that. Writes pass through to the
 * store. The behaviour is that of kubernetes/apiserver pkg/storage/cacher and of its delegator.
 *
 * All functions may be called from any thread. Functions named _wait block and are refused in an actor's
 * handler (vedette/env.h). Callbacks follow the rule of vedette/store.h: a call that returns an error
 * never calls its callback; a call that returns VD_OK calls it exactly once, possibly before it returns.
 *
 * Names are validated. An object of a namespaced resource needs a namespace; an object of a cluster-scoped
 * resource has none (a namespace equal to the name is accepted, because Kubernetes reads a Namespace so).
 * A written value must have the name and namespace of its key in its metadata. Lists and watches of a
 * namespaced resource may omit the namespace to select all. A violation is VD_INVALID_ARGUMENT; calls
 * without a reterr report it, with an explanation, to their callback.
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

/* Reaction when a comparison finds that the cache differs from the store at the same revision. In each
 * case the difference is counted and logged with its first object, and exact revisions are read from the
 * store until a later comparison finds no difference. */
enum vd_on_inconsistency {
	VD_ON_INCONSISTENCY_REPORT, /* no further reaction, as in Kubernetes */
	/* Invalidates the cache and lists again; all watches end (VD_CLOSED) and cannot resume across it. */
	VD_ON_INCONSISTENCY_RELIST,
	VD_ON_INCONSISTENCY_PANIC, /* aborts the program: for tests */
};

struct vd_cacher_options {
	size_t size; /* sizeof(struct vd_cacher_options) */
	/* such as "pods" or "deployments.apps", for messages and metrics; copied */
	const char *resource;
	const char *group; /* API group; "" or NULL: core; copied */
	/* such as "/registry/pods/": starts and ends with '/', not "/" alone; copied */
	const char *key_prefix;
	/* true: keys are prefix + name; false: prefix + namespace + "/" + name */
	bool cluster_scoped;
	/* Borrowed; must outlive the cacher, otherwise vd_codec_free aborts the program. */
	struct vd_codec *codec;
	/* A field that the codec declares, such as "spec.nodeName", by which watches are indexed: an event
	 * is not offered to watches that require another value of the field. Lists have an index of this
	 * field, too; indexes of other fields are built when lists use them. Copied; NULL: none. */
	const char *trigger;
	int64_t	    history_bytes; /* size limit of the history in bytes; default 64 MiB */
	/* minimum time that events stay resumable, within history_bytes; default and minimum 75 s */
	vd_dur history_window;
	/* maximum size of undelivered events per watcher, in bytes; default 16 MiB */
	int64_t	 lag_bytes_max;
	uint32_t watcher_count_max; /* maximum number of watchers; more: VD_FULL; default 1,000,000 */
	/* number of threads that decode; 0 (default): the actor that reads the store's events decodes them */
	unsigned decode_workers;
	/* true: an undecodable object is omitted and counted, and its key is quarantined; if the cache had
	 * the object, watchers get DELETED with its last readable state. false: the cache lists again
	 * until the object is readable or deleted. */
	bool skip_undecodable;
	/* label keys that lists have an index of; NULL-terminated, copied; NULL: none */
	const char *const *index_labels;
	/* true: start with an empty history even if the store has older revisions */
	bool no_backfill;
	/* Time between two comparisons with the store, times a random factor of 1 to 1.5; default 5 min;
	 * 0: none. */
	vd_dur			 consistency_interval;
	enum vd_on_inconsistency on_inconsistency;
};
#define VD_CACHER_OPTIONS_INIT                                                                               \
	{                                                                                                    \
		sizeof(struct vd_cacher_options), 0, 0, 0, false, 0, 0, (int64_t) 64 << 20,                  \
			{ (int64_t) 75 * 1000000000 }, (int64_t) 16 << 20, 1000000, 0, false, 0, false,      \
			{ (int64_t) 300 * 1000000000 }, VD_ON_INCONSISTENCY_REPORT                           \
	}

/* Creates a cacher, which starts to fill itself; does not block. The caller owns it and closes it. store
 * must outlive the cacher, until vd_cacher_close calls done; otherwise vd_store_close aborts the program
 * and names the cacher. Errors: VD_INVALID_ARGUMENT with an explanation, VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_cacher_new(const struct vd_env *env, struct vd_store *store,
					   const struct vd_cacher_options *options,
					   struct vd_cacher **ret_cacher, struct vd_error *reterr);
/* Closes the cacher: ends all watches (VD_CLOSED), answers outstanding calls, and frees the cacher. Does
 * not block. done (may be NULL) is called when the cacher is freed. A second call aborts the program.
 * Watchers stay valid until they are closed. The close_wait form blocks until done and returns NULL. It
 * aborts the program where it would never return: in an actor's handler, and on the thread of a poller that
 * has open watchers. */
VD_API void		 vd_cacher_close(struct vd_cacher *cacher, void (*done)(void *arg), void *arg);
VD_API struct vd_cacher *vd_cacher_close_wait(struct vd_cacher *cacher);

/* Returns VD_OK if the cache is filled, otherwise VD_NOT_READY or VD_CLOSED; never blocks. For VD_NOT_READY
 * the message is Kubernetes' "storage is (re)initializing" with the last error, and retry_after_s grows
 * from 1 to 30 while the cacher is not ready. */
VD_API VD_MUST_USE vd_status vd_cacher_ready(struct vd_cacher *cacher, struct vd_error *reterr);
/* Blocks until the cacher is ready or closed, at most for timeout (negative: for ever). Returns VD_OK,
 * VD_NOT_READY or VD_CLOSED. */
VD_API VD_MUST_USE vd_status vd_cacher_ready_wait(struct vd_cacher *cacher, vd_dur timeout,
						  struct vd_error *reterr);
/* Returns the revision of the cache; 0 before it is first filled. */
VD_API vd_rev vd_cacher_revision(const struct vd_cacher *cacher);

/* ---- Get ---- */

/* Receives one object. object is borrowed for the call; NULL if status is not VD_OK. revision: revision of
 * the cache, or of the store if the store answered. */
typedef void (*vd_object_fn)(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			     const struct vd_error *error);

/* Reads one object. revision VD_REVISION_UNSET: the most recent state, from the store. VD_REVISION_ANY: the
 * state of the cache. N: a state not older than N; waits at most 3 s for it, then VD_TOO_LARGE_REVISION. If
 * the cacher is not ready, the store answers. Error: VD_NOT_FOUND. */
VD_API VD_MUST_USE vd_status vd_cacher_get(struct vd_cacher *cacher, struct vd_bytes namespace_name,
					   struct vd_bytes name, vd_rev revision, vd_object_fn done,
					   void *arg);

/* ---- List ---- */

enum vd_revision_match { VD_MATCH_UNSET, VD_MATCH_NOT_OLDER_THAN, VD_MATCH_EXACT };

struct vd_list_options {
	size_t		size;		/* sizeof(struct vd_list_options) */
	struct vd_bytes namespace_name; /* empty: all namespaces */
	struct vd_bytes name;		/* empty: all names */
	struct vd_bytes label_selector; /* Kubernetes syntax; empty: no selector */
	struct vd_bytes field_selector;
	/* VD_REVISION_UNSET (default), VD_REVISION_ANY (zero), or a revision; see vd_cacher_list */
	vd_rev		       revision;
	enum vd_revision_match match;
	int64_t		       limit;	       /* maximum number of objects per page; 0: no limit */
	struct vd_bytes	       continue_token; /* of the previous page; empty: first page */
	/* KEP-5866: "shardRange(object.metadata.uid, '0x...', '0x...') || ..."; empty: all objects */
	struct vd_bytes shard_selector;
};
#define VD_LIST_OPTIONS_INIT                                                                                 \
	{                                                                                                    \
		sizeof(struct vd_list_options), { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 }, VD_REVISION_UNSET,   \
			VD_MATCH_UNSET, 0, { 0, 0 },                                                         \
		{                                                                                            \
			0, 0                                                                                 \
		}                                                                                            \
	}

/* A list: an immutable snapshot in key order, walked lazily and without locks. It has one owner, and one
 * thread uses it at a time. It may outlive cacher, store, codec and env. */
struct vd_list;

/* Receives a list. If status is VD_OK, the receiver owns list and frees it; otherwise list is NULL. */
typedef void (*vd_list_fn)(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error);

/* Lists objects under the rules of Kubernetes for resourceVersion:
 * - VD_REVISION_UNSET, or a token with negative revision: the latest state.
 * - VD_REVISION_ANY: the state of the cache, whatever its age; the limit is ignored.
 * - N: a state not older than N. Exactly N with VD_MATCH_EXACT, with a limit and VD_MATCH_UNSET, or with a
 *   token of revision N.
 *
 * Errors: VD_EXPIRED (the revision was compacted: list again without the token); VD_TOO_LARGE_REVISION;
 * VD_NOT_READY; VD_BAD_REQUEST (a selector that is malformed or names a field that the codec does not
 * declare; a malformed token; a token together with a revision); VD_INVALID (a match without a revision or
 * with a token; VD_MATCH_EXACT with VD_REVISION_ANY); VD_UNDECODABLE. With skip_undecodable, lists omit
 * undecodable objects, also if the store answers. Without it they are VD_UNDECODABLE, as is an undecodable
 * object that is the only key of a list from the store. */
VD_API VD_MUST_USE vd_status vd_cacher_list(struct vd_cacher *cacher, const struct vd_list_options *options,
					    vd_list_fn done, void *arg, struct vd_error *reterr);
/* Lists and blocks until the answer; otherwise as vd_cacher_list. The caller owns *ret_list and frees it. */
VD_API VD_MUST_USE vd_status vd_cacher_list_wait(struct vd_cacher	      *cacher,
						 const struct vd_list_options *options,
						 struct vd_list **ret_list, struct vd_error *reterr);

/* Returns the next object that matches the selectors, or NULL at the end. Borrowed until the list is
 * freed. */
VD_API struct vd_object *vd_list_next(struct vd_list *list);
/* Returns the revision of the state that was listed: the resourceVersion of the list. */
VD_API vd_rev vd_list_revision(const struct vd_list *list);
/* Returns the continue token; empty if this is the last page. Valid before the first vd_list_next.
 * Borrowed until the list is freed. */
VD_API struct vd_bytes vd_list_continue(const struct vd_list *list);
/* Returns Kubernetes' remainingItemCount; -1: not given, because this is the last page or the list has a
 * label, field or shard selector. */
VD_API int64_t vd_list_remaining(const struct vd_list *list);
/* Returns the canonical shard selector of this list; empty if none. Borrowed until the list is freed. */
VD_API struct vd_bytes vd_list_shard_selector(const struct vd_list *list);
/* Returns the number of objects that the list will visit: an upper bound of the objects that it returns. */
VD_API int64_t vd_list_candidate_count(const struct vd_list *list);
/* Frees the list; list may be NULL. Returns NULL. */
VD_API struct vd_list *vd_list_free(struct vd_list *list);

/* ---- Changes in the history ---- */

/* A query of past changes. It reaches as far back as the cache's history, which with the embedded store
 * covers all revisions that the store has retained. */
struct vd_changes_options {
	size_t		size;		/* sizeof(struct vd_changes_options) */
	struct vd_bytes namespace_name; /* empty: all namespaces */
	struct vd_bytes name;		/* empty: all names */
	struct vd_bytes label_selector;
	struct vd_bytes field_selector;
	vd_rev		after; /* changes after this revision; 0: from the oldest retained one */
	vd_rev		until; /* last revision, inclusive; 0: the current one */
	/* true: one change per object, in key order: the difference of its states at `after` and at
	 * `until`. false: each change, in revision order. */
	bool combined;
};
#define VD_CHANGES_OPTIONS_INIT                                                                              \
	{                                                                                                    \
		sizeof(struct vd_changes_options), { 0, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 }, 0, 0, false       \
	}

/* The result of a query: immutable, with one owner. */
struct vd_changes;
/* One change as a watch with the same selectors reports it: an object that stops matching is DELETED.
 * Borrowed until the changes are freed. */
struct vd_change {
	enum vd_watch_type type;
	vd_rev		   revision; /* revision of the change; combined: of the object's last change */
	/* new state; DELETED: last matching state (combined: the state at `after`) */
	struct vd_object *object;
	struct vd_object *old_object; /* previous state (combined: at `after`); NULL for ADDED */
};

/* Reads changes from the history; never blocks. The caller owns *ret_changes and frees it. Errors:
 * VD_EXPIRED (the history does not reach back to `after` or `until`), VD_TOO_LARGE_REVISION (`until` is in
 * the future), VD_NOT_READY, VD_BAD_REQUEST, VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_cacher_changes(struct vd_cacher		       *cacher,
					       const struct vd_changes_options *options,
					       struct vd_changes **ret_changes, struct vd_error *reterr);
/* Returns the number of changes. */
VD_API size_t vd_changes_count(const struct vd_changes *changes);
/* Returns one change; index must be less than the count. */
VD_API struct vd_change vd_changes_at(const struct vd_changes *changes, size_t index);
/* Returns the start revision: as requested, or the oldest retained one. */
VD_API vd_rev vd_changes_after(const struct vd_changes *changes);
/* Returns the last revision: as requested, or the current one at the time of the query. */
VD_API vd_rev vd_changes_until(const struct vd_changes *changes);
/* Frees the changes; changes may be NULL. Returns NULL. */
VD_API struct vd_changes *vd_changes_free(struct vd_changes *changes);

/* ---- Watch ---- */

/* Opens a watch; never blocks. The caller owns *ret_watcher and closes it. Errors: VD_NOT_READY,
 * VD_BAD_REQUEST (selectors, as for lists), VD_INVALID_ARGUMENT, VD_FULL, VD_NOMEM. Later errors are ERROR
 * events of the watch. sink is copied; NULL: a pulled watcher (vd_watcher_next). The sink is never called
 * inside this function, nor before *ret_watcher is written. The watch starts after this function returns:
 * without a revision it starts with the state of that moment, which may include writes made after the call.
 * To receive each change, pass the last revision that the caller has seen. */
VD_API VD_MUST_USE vd_status vd_cacher_watch(struct vd_cacher *cacher, const struct vd_watch_options *options,
					     const struct vd_watch_sink *sink,
					     struct vd_watcher **ret_watcher, struct vd_error *reterr);

/* ---- Writes: pass through to the store; answered when durable; never block unless named _wait ---- */

struct vd_preconditions {
	struct vd_bytes uid;	  /* empty: not checked */
	struct vd_bytes revision; /* compared as text; empty: not checked */
};

/* Creates an object. value: JSON without resourceVersion; a value with one is refused with
 * VD_REVISION_ON_CREATE. ttl_s: lifetime in seconds; 0: unlimited; negative: VD_INVALID_ARGUMENT. Error:
 * VD_EXISTS. */
VD_API VD_MUST_USE vd_status vd_cacher_create(struct vd_cacher *cacher, struct vd_bytes namespace_name,
					      struct vd_bytes name, struct vd_bytes value, int64_t ttl_s,
					      vd_object_fn done, void *arg);

/* Computes the new value for vd_cacher_update. current is NULL if the object is missing (only with
 * create_missing). Writes *ret_value, which stays valid until the next call of update or done, and may
 * write *ret_ttl_s (seconds). Called on a thread of the store, possibly several times, each time with a
 * fresh state; must not block. If it returns an error, the update ends with that error. */
typedef vd_status (*vd_update_fn)(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
				  int64_t *ret_ttl_s, struct vd_error *reterr);

/* Updates an object as Kubernetes' GuaranteedUpdate: reads, calls update, and writes if no other writer
 * changed the object in between; otherwise repeats with the new state. A resourceVersion in the value is
 * removed. A value equal to the stored one is not written, unless the stored record is stale
 * (vedette/encryption.h). preconditions may be NULL. Errors: VD_NOT_FOUND, VD_PRECONDITION. */
VD_API VD_MUST_USE vd_status vd_cacher_update(struct vd_cacher *cacher, struct vd_bytes namespace_name,
					      struct vd_bytes name, bool create_missing,
					      const struct vd_preconditions *preconditions,
					      vd_update_fn update, vd_object_fn done, void *arg);

/* Decides whether current, borrowed for the call, may be deleted: any status but VD_OK refuses, and is the
 * result of vd_cacher_delete. Called on a thread of the store, possibly several times; must not block. */
typedef vd_status (*vd_validate_fn)(void *arg, struct vd_object *current, struct vd_error *reterr);
/* Deletes an object. validate (may be NULL) receives the state to be deleted. done receives the last state
 * and the revision of the deletion. If another writer changed the object in between, the deletion is
 * repeated with the new state. preconditions may be NULL. Errors: VD_NOT_FOUND, VD_PRECONDITION. */
VD_API VD_MUST_USE vd_status vd_cacher_delete(struct vd_cacher *cacher, struct vd_bytes namespace_name,
					      struct vd_bytes		     name,
					      const struct vd_preconditions *preconditions,
					      vd_validate_fn validate, vd_object_fn done, void *arg);

/* Blocking forms, with the errors of the calls above. The caller owns a reference of *ret_object;
 * ret_object and ret_revision may be NULL. vd_cacher_put_wait creates the object or replaces it. */
VD_API VD_MUST_USE vd_status vd_cacher_get_wait(struct vd_cacher *cacher, struct vd_bytes namespace_name,
						struct vd_bytes name, vd_rev revision,
						struct vd_object **ret_object, struct vd_error *reterr);
VD_API VD_MUST_USE vd_status vd_cacher_put_wait(struct vd_cacher *cacher, struct vd_bytes namespace_name,
						struct vd_bytes name, struct vd_bytes value,
						struct vd_object **ret_object, struct vd_error *reterr);
VD_API VD_MUST_USE vd_status vd_cacher_delete_wait(struct vd_cacher *cacher, struct vd_bytes namespace_name,
						   struct vd_bytes name, vd_rev *ret_revision,
						   struct vd_error *reterr);

#ifdef __cplusplus
}
#endif
#endif
