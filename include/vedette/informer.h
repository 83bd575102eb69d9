/* An informer: a local picture of one resource, kept up to date, with handlers that see old and new, and indexes.
 *
 * Handlers are called in the order of the changes, one at a time, on one actor: add for what is new (also for everything that exists when the informer
 * or a handler starts), update for what changed, remove with the last known state. The picture is changed before they are called. After a loss of
 * history the informer lists again and the handlers see the difference, deletions included (R-350..R-356). Built on the same watch that everybody else uses.
 *
 * Functions may be called from any thread, also from inside a handler, but those named _wait, which block.
 */
#ifndef VEDETTE_INFORMER_H
#define VEDETTE_INFORMER_H

#include <vedette/cacher.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_informer;
struct vd_informer_registration; /* one handler of an informer */

/* Each may be NULL. Objects are lent; take references for what is kept. Must not block for long: the other handlers of this informer wait. */
struct vd_informer_handler {
	/* initial: it was there before this handler was synced. */
	void (*add)(void *arg, struct vd_object *object, bool initial);
	/* With object == old_object: a resync. */
	void (*update)(void *arg, struct vd_object *old_object, struct vd_object *object);
	/* unknown_final_state: it went while nobody looked; last_state may not be the last there was. */
	void (*remove)(void *arg, struct vd_object *last_state, bool unknown_final_state);
	void (*synced)(void *arg); /* once: everything that existed has been told */
	void  *arg;
	vd_dur resync_period;	   /* every object is told again, as an update, so often; 0: never; at least 1 s */
};

/* An index by values that the caller computes from an object: none, one or several, in any order, each once. Called on the informer's actor; pure. Values that
 * are longer are not indexed. */
#define VD_INDEX_VALUE_MAX 1024
typedef void (*vd_index_emit_fn)(void *emit_arg, struct vd_bytes value);
struct vd_informer_index {
	const char *name; /* copied */
	void (*values)(void *arg, const struct vd_object *object, vd_index_emit_fn emit, void *emit_arg);
	void *arg;
};

struct vd_informer_options {
	size_t			 size; /* sizeof(struct vd_informer_options) */
	struct vd_bytes		 namespace_name; /* empty: all */
	struct vd_bytes		 label_selector;
	struct vd_bytes		 field_selector;
	const struct vd_runner	*runner; /* whose thread calls the handlers: NULL: the env's; vd_poller_runner() of a loop of one's own; outlives the informer */
	const struct vd_informer_index *indexes;
	size_t			 index_count;
};
#define VD_INFORMER_OPTIONS_INIT                                                                                                 \
	{                                                                                                                        \
		sizeof(struct vd_informer_options), { 0, 0 }, { 0, 0 }, { 0, 0 }, 0, 0, 0                                        \
	}

/* Without handlers. VD_BAD_REQUEST (selectors), VD_INVALID_ARGUMENT (two indexes of one name), VD_NOMEM. */
VD_API VD_MUST_USE vd_status vd_informer_open(struct vd_cacher *cacher, const struct vd_informer_options *options, struct vd_informer **ret_informer,
					      struct vd_error *reterr);
/* With one handler, and all else as usual. Selectors may be empty. The handler is copied. */
VD_API VD_MUST_USE vd_status vd_informer_new(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes label_selector,
					     struct vd_bytes field_selector, const struct vd_informer_handler *handler,
					     struct vd_informer **ret_informer, struct vd_error *reterr);
/* At any time: the handler first gets an add for everything that is there, then what changes. ret_registration may be NULL. VD_CLOSED, VD_NOMEM,
 * VD_INVALID_ARGUMENT (a resync period below 1 s). */
VD_API VD_MUST_USE vd_status vd_informer_add_handler(struct vd_informer *informer, const struct vd_informer_handler *handler,
						     struct vd_informer_registration **ret_registration, struct vd_error *reterr);
/* No call of it begins after done (may be NULL) was called; from inside one of its own calls: none after this returned. Not after vd_informer_close. */
VD_API void vd_informer_remove_handler(struct vd_informer *informer, struct vd_informer_registration *registration, void (*done)(void *arg),
				       void *arg);
/* Waits until the initial state is in the picture and was told to the handlers that were there. VD_TIMEOUT, VD_CLOSED;
 * VD_INVALID_ARGUMENT in an actor's handler, and on the thread that serves the poller of this informer (vedette/poller.h). */
VD_API VD_MUST_USE vd_status vd_informer_synced_wait(struct vd_informer *informer, vd_dur timeout);

/* ---- The picture, as the handlers last saw it ---- */

/* A reference of the caller's, or NULL. */
VD_API struct vd_object *vd_informer_get(struct vd_informer *informer, struct vd_bytes namespace_name, struct vd_bytes name);
VD_API size_t		 vd_informer_count(struct vd_informer *informer);
/* Up to where it has seen; 0 before the first fill. */
VD_API vd_rev vd_informer_revision(struct vd_informer *informer);
/* Calls visit, on the calling thread, for each object in key order until it returns false; a snapshot, so the picture may change meanwhile. Objects are
 * lent. Returns how many were visited. */
typedef bool (*vd_object_visit_fn)(void *arg, struct vd_object *object);
VD_API size_t vd_informer_visit(struct vd_informer *informer, vd_object_visit_fn visit, void *arg);
/* The same for the objects that have the value in the index. 0 for an index that there is none of. */
VD_API size_t vd_informer_visit_index(struct vd_informer *informer, const char *index, struct vd_bytes value, vd_object_visit_fn visit, void *arg);

/* Handlers are not called after done (may be NULL) was. Once: a second call stops the program, as does the close_wait form where synced_wait is refused. */
VD_API void		   vd_informer_close(struct vd_informer *informer, void (*done)(void *arg), void *arg);
VD_API struct vd_informer *vd_informer_close_wait(struct vd_informer *informer);

#ifdef __cplusplus
}
#endif
#endif
