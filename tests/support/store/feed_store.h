/* The cheapest store that can feed a cacher: a sorted array, and events that are delivered once, in the order
 * of puts. For tests and benches of the layers above a store: it costs next to nothing and keeps no event.
 * Any thread, lists only while there are no puts; one watch at a time. */
#ifndef FEED_STORE_H
#define FEED_STORE_H

#include <vedette/store.h>

#include "base.h"

/* Stands at revision 1 and is empty. */
struct vd_store *feed_store_new(const struct vd_env *env);
/* Before anybody lists: keys must ascend. */
void feed_load(struct vd_store *store, const char *key, struct vd_bytes value);
/* Puts one event at the next revision. */
vd_rev feed_put(struct vd_store *store, const char *key, const char *value);
vd_rev feed_delete(struct vd_store *store, const char *key);
/* From now on events lack the previous record. */
void feed_omit_previous(struct vd_store *store, bool omit);
/* The revision moves, nothing else. */
void feed_progress(struct vd_store *store);
/* Restores the store to revision, with all its records; later writes get the revisions after it. */
void feed_set_back(struct vd_store *store, vd_rev revision);
/* The present watch ends with this. */
void feed_break(struct vd_store *store, vd_status status);
/* Sets whether the store claims that it can prove progress; true at first. */
void feed_set_progress(struct vd_store *store, bool progress);
/* While true, requests for progress go unanswered. */
void	 feed_hold_progress(struct vd_store *store, bool hold);
uint64_t feed_progress_requests(struct vd_store *store);
uint64_t feed_watches(struct vd_store *store);
void	 feed_store_free(struct vd_store *store);

#endif
