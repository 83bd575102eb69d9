/* An informer: a local picture of one resource, kept up to date, with handlers that see old and new.
 *
 * Handlers are called in the order of the changes, one at a time, on one actor: add for what is new (also for everything that exists when the informer
 * or a handler starts), update for what changed, remove with the last known state. After a loss of history the informer lists again and the handlers see
 * the difference, deletions included (R-350..R-356). Built on the same watch that everybody else uses.
 */
#ifndef VEDETTE_INFORMER_H
#define VEDETTE_INFORMER_H

#include <vedette/cacher.h>

#ifdef __cplusplus
extern "C" {
#endif

struct vd_informer;

/* Each may be NULL. Objects are lent; take references for what is kept. Must not block for long: other handlers of this informer wait. */
struct vd_informer_handler {
	void (*add)(void *arg, struct vd_object *object, bool initial);
	void (*update)(void *arg, struct vd_object *old_object, struct vd_object *object);
	void (*remove)(void *arg, struct vd_object *last_state, bool unknown_final_state);
	void (*synced)(void *arg); /* once: the initial state has been delivered */
	void *arg;
};

/* label_selector and field_selector may be empty. VD_BAD_REQUEST, VD_NOMEM. The handler is copied. */
VD_API VD_MUST_USE vd_status vd_informer_new(struct vd_cacher *cacher, struct vd_bytes namespace_name, struct vd_bytes label_selector,
					     struct vd_bytes field_selector, const struct vd_informer_handler *handler,
					     struct vd_informer **ret_informer, struct vd_error *reterr);
/* Waits until the initial state was delivered. VD_TIMEOUT, VD_CLOSED. */
VD_API VD_MUST_USE vd_status vd_informer_synced_wait(struct vd_informer *informer, vd_dur timeout);
/* The object as the handlers last saw it; a reference of the caller's, or NULL. Any thread. */
VD_API struct vd_object *vd_informer_get(struct vd_informer *informer, struct vd_bytes namespace_name, struct vd_bytes name);
VD_API size_t		 vd_informer_count(struct vd_informer *informer);
/* No handler runs after done (may be NULL) was called. */
VD_API void		   vd_informer_close(struct vd_informer *informer, void (*done)(void *arg), void *arg);
VD_API struct vd_informer *vd_informer_close_wait(struct vd_informer *informer);

#ifdef __cplusplus
}
#endif
#endif
