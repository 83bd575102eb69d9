/* A reader of a store that lists its pods, watches from the revision after the list, and lists again when the
 * watch ends with VD_EXPIRED. It applies the events to what it has listed, and asserts that each is the next
 * one of its object. Steps do not wait. */
#ifndef KUBE_READER_H
#define KUBE_READER_H

#include "kube_world.h"

#define KUBE_READER_MAX 128

enum kube_reader_step { KUBE_READER_IDLE, KUBE_READER_LISTING, KUBE_READER_LISTED, KUBE_READER_WATCHING };

struct kube_reader_object {
	char   key[256];
	vd_rev revision;
};

struct kube_reader {
	/* Set by the owner; the rest is zero. */
	struct kube_world *world;
	bool		   is_loose; /* the server may be restored: events are not compared with the state */

	enum kube_reader_step	  step;
	struct vd_store_stream	 *stream;
	struct vd_store_watch	 *watch;
	struct kube_reader_object objects[KUBE_READER_MAX];
	size_t			  count;
	vd_rev			  revision; /* of the list, then of the newest batch */
	bool			  is_ranging;
	unsigned		  lists, events, expired, failed;
};

/* Begins a list, as a stream or as a range; a watch or list is given up. */
void kube_reader_list(struct kube_reader *reader, bool as_range);
/* Opens the watch; the list must have ended. */
void kube_reader_watch(struct kube_reader *reader);
/* Takes what has arrived. */
void kube_reader_step(struct kube_reader *reader);
/* Steps, lists and watches until the reader watches and has nothing to take; at most 300 s. */
void kube_reader_settle(struct kube_reader *reader);
/* True: the objects are the peer's. */
bool kube_reader_is_equal(const struct kube_reader *reader);
void kube_reader_close(struct kube_reader *reader);

#endif
