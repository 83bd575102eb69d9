/* An informer: a local store of one resource, kept up to date, with event handlers and indexes, as in
 * client-go.
 *
 * Handlers are called in the order of the changes, one at a time, on one actor: add for a new object (also
 * for each object that exists when the informer or handler starts), update for a changed object, remove
 * with the last known state. The local store changes before the handlers are called. If the watch cannot
 * resume, the informer lists again, and the handlers get the difference, including deletions. The informer
 * uses a watch of the cacher.
 *
 * All functions may be called from any thread, also inside a handler; only functions named _wait block.
 */
#ifndef VEDETTE_INFORMER_H
#define VEDETTE_INFORMER_H

#include <vedette/cacher.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_informer;
struct vd_informer_registration; /* registration of one handler */

/* An event handler; each function may be NULL. Objects are borrowed for the call; take references to keep
 * them. A handler must not block for long, because it delays all other handlers of the informer. */
struct vd_informer_handler {
	/* initial: the object existed before this handler was synced. */
	void (*add)(void *arg, struct vd_object *object, bool initial);
	/* object == old_object: a resync. */
	void (*update)(void *arg, struct vd_object *old_object, struct vd_object *object);
	/* unknown_final_state: deleted while the watch was down; last_state may be out of date. */
	void (*remove)(void *arg, struct vd_object *last_state, bool unknown_final_state);
	void (*synced)(void *arg); /* called once, after the last initial add */
	void *arg;
	/* interval at which each object is delivered again as an update; 0: never; at least 1 s */
	vd_dur resync_period;
};

/* An index of the local store. values computes the object's values in the index: it calls emit once for
 * each of them, in any order; there may be none. It is called on the informer's actor and must depend only
 * on the object. Values longer than VD_INDEX_VALUE_MAX bytes are not indexed. */
#define VD_INDEX_VALUE_MAX 1024
typedef void (*vd_index_emit_fn)(void *emit_arg, struct vd_bytes value);
struct vd_informer_index {
	const char *name; /* copied */
	void (*values)(void *arg, const struct vd_object *object, vd_index_emit_fn emit, void *emit_arg);
	void *arg;
};

struct vd_informer_options {
	size_t		size;		/* sizeof(struct vd_informer_options) */
	struct vd_bytes namespace_name; /* empty: all namespaces */
	struct vd_bytes label_selector;
	struct vd_bytes field_selector;
	/* Executor that calls the handlers; must outlive the informer. NULL: the env's. vd_poller_executor()
	 * of a poller: the embedder's own event loop. */
	const struct vd_executor       *executor;
	const struct vd_informer_index *indexes;
	size_t				index_count;
};
#define VD_INFORMER_OPTIONS_INIT                                                                             \
	{                                                                                                    \
		sizeof(struct vd_informer_options), { 0, 0 }, { 0, 0 }, { 0, 0 }, 0, 0, 0                    \
	}

/* Opens an informer without handlers; does not block. The caller owns it and closes it. options are
 * copied. Errors: VD_BAD_REQUEST (selectors), VD_INVALID_ARGUMENT (two indexes with one name), VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_informer_open(struct vd_cacher		       *cacher,
					      const struct vd_informer_options *options,
					      struct vd_informer **ret_informer, struct vd_error *reterr);
/* Opens an informer with one handler (copied) and default options. Selectors may be empty. Errors as for
 * vd_informer_open and vd_informer_add_handler. */
VD_API VD_MUST_USE vd_status vd_informer_new(struct vd_cacher *cacher, struct vd_bytes namespace_name,
					     struct vd_bytes label_selector, struct vd_bytes field_selector,
					     const struct vd_informer_handler *handler,
					     struct vd_informer **ret_informer, struct vd_error *reterr);
/* Adds a handler (copied) at any time: it first gets an add for each existing object, then the changes.
 * ret_registration may be NULL. Errors: VD_CLOSED, VD_NOMEM, VD_INVALID_ARGUMENT (resync_period below 1
 * s). */
VD_API VD_MUST_USE vd_status vd_informer_add_handler(struct vd_informer		      *informer,
						     const struct vd_informer_handler *handler,
						     struct vd_informer_registration **ret_registration,
						     struct vd_error		      *reterr);
/* Removes a handler; does not block. done (may be NULL) is called when the handler will not be called
 * again. Called inside the handler itself, it is not called again after this function returns. Must not be
 * called after vd_informer_close. */
VD_API void vd_informer_remove_handler(struct vd_informer	       *informer,
				       struct vd_informer_registration *registration, void (*done)(void *arg),
				       void			       *arg);
/* Blocks until the initial state is in the local store and the handlers registered before have received
 * it, at most for timeout (negative: for ever). Errors: VD_TIMEOUT; VD_CLOSED; VD_INVALID_ARGUMENT in an
 * actor's handler, and on the thread that serves the poller of this informer (vedette/poller.h). */
VD_API VD_MUST_USE vd_status vd_informer_synced_wait(struct vd_informer *informer, vd_dur timeout);

/* ---- The local store, as the handlers last saw it ---- */

/* Returns a reference that the caller owns, or NULL if there is no such object. */
VD_API struct vd_object *vd_informer_get(struct vd_informer *informer, struct vd_bytes namespace_name,
					 struct vd_bytes name);
/* Returns the number of objects. */
VD_API size_t vd_informer_count(struct vd_informer *informer);
/* Returns the revision of the local store, which bookmarks advance, too; 0 before it is first filled. */
VD_API vd_rev vd_informer_revision(struct vd_informer *informer);
/* Receives an object, borrowed for the call; returns false to end the visit. */
typedef bool (*vd_object_visit_fn)(void *arg, struct vd_object *object);
/* Calls visit for each object, in key order, on the calling thread, until visit returns false. The objects
 * are a snapshot and borrowed for the call; the local store may change meanwhile. Returns the number of
 * objects visited. */
VD_API size_t vd_informer_visit(struct vd_informer *informer, vd_object_visit_fn visit, void *arg);
/* Visits the objects that have the value in the index. Returns 0 if there is no such index. */
VD_API size_t vd_informer_visit_index(struct vd_informer *informer, const char *index, struct vd_bytes value,
				      vd_object_visit_fn visit, void *arg);

/* Closes the informer. No handler is called after done (may be NULL) was called. A second call aborts the
 * program. The close_wait form blocks until done and returns NULL; it aborts the program where
 * vd_informer_synced_wait is refused. */
VD_API void vd_informer_close(struct vd_informer *informer, void (*done)(void *arg), void *arg);
VD_API struct vd_informer *vd_informer_close_wait(struct vd_informer *informer);

#ifdef __cplusplus
}
#endif
#endif
