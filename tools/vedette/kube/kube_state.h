/* A Kubernetes endpoint as its own files see it: kube_store.c (the store, its actor and its transfers),
 * kube_list.c (ranges), kube_write.c (puts and deletes), kube_watch.c (watches).
 *
 * 	kube (actor, blocking: it waits in libcurl)	everything that is sent and received
 * 	callers						leave calls and watches, take what has come
 *
 * Everything of libcurl is the actor's. One lock ("store") for what crosses.
 */
#ifndef VDI_KUBE_STATE_H
#define VDI_KUBE_STATE_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "curl_library.h"
#include "json_stream.h"
#include "kube_store.h"
#include "lock.h"
#include "rand.h"

#define VDI_KUBE_CURSORS 16

struct vdi_kube_store;

/* One request. The actor's. */
struct vdi_kube_transfer {
	struct vdi_kube_store *store;
	CURL		      *easy; /* NULL: none is under way */
	struct curl_slist     *headers;
	unsigned	       credential;	/* which one was sent */
	const char	      *method, *upload; /* NULL: GET, nothing is sent; lent until the end */
	struct vdi_buffer      body;		/* of a list, or of an answer that is an error */
	char		       reason[CURL_ERROR_SIZE];
	/* What a 2xx answer brings, as it comes: the number of bytes taken, or CURL_WRITEFUNC_PAUSE; NULL: it
	 * is gathered in body. */
	size_t (*take)(struct vdi_kube_transfer *transfer, struct vd_bytes bytes);
	/* It is over; may free the transfer. */
	void (*ended)(struct vdi_kube_transfer *transfer, CURLcode result, long code);
	void *arg;
};

struct vdi_kube_call {
	LIST_ENTRY(vdi_kube_call) node;
	struct vdi_kube_store	*store;
	struct vdi_kube_transfer transfer;
	char			*key, *range_end;
	struct vd_bytes		 key_bytes, end_bytes;
	vd_rev			 revision;
	int64_t			 limit;
	vd_range_fn		 done;
	void			*arg;
	bool			 is_started;
	size_t			 kind;	/* at work */
	char			*token; /* of its next page, or NULL */
	vd_rev			 shown; /* revision of the first page */
	struct vd_kv	       **kvs;
	size_t			 count, capacity;
};

struct vdi_kube_write {
	LIST_ENTRY(vdi_kube_write) node;
	struct vdi_kube_store	   *store;
	const struct vdi_kube_kind *kind;
	struct vdi_kube_transfer    transfer;
	char			   *collection, *name; /* of the path, escaped */
	char			   *body;	       /* NULL: delete */
	vd_txn_fn		    done;
	void			   *arg;
	bool			    is_started;
	bool			    creates; /* there was none to replace */
};

/* Where a list goes on that was not read to its end. */
struct vdi_kube_cursor {
	struct vd_kv *last; /* NULL: none */
	vd_rev	      revision;
	size_t	      kind;
	char	     *token; /* NULL: the kind's first page */
};

struct vdi_kube_item {
	STAILQ_ENTRY(vdi_kube_item) node;
	struct vd_kv *kv; /* NULL: progress */
	bool	      is_delete;
	vd_rev	      revision;
	size_t	      bytes;
};
STAILQ_HEAD(vdi_kube_items, vdi_kube_item);

/* One kind of a watch. The actor's. */
struct vdi_kube_stream {
	struct vdi_kube_watch	   *watch;
	const struct vdi_kube_kind *kind;
	struct vdi_kube_transfer    transfer;
	struct vdi_kube_transfer    nudge; /* the list before a watch */
	struct vdi_json_stream	    frames;
	struct vdi_kube_items	    queue; /* whole revisions only */
	size_t			    bytes;
	vd_rev			    passed;   /* everything up to it has come */
	vd_rev			    listed;   /* revision of the list before the watch; 0: none */
	vd_rev			    resume;   /* where the next watch begins */
	vd_rev			    last;     /* revision of the last event */
	unsigned		    parts;    /* events of that revision */
	unsigned		    repeated; /* of them, how many come again */
	bool			    is_paused, has_come, is_nudged;
	vd_mono			    retry_at;
	vd_dur			    backoff;
};

struct vdi_kube_watch {
	struct vd_store_watch  base; /* first */
	struct vdi_kube_store *store;
	LIST_ENTRY(vdi_kube_watch) node;
	void (*ready)(void *arg);
	void *ready_arg;

	/* The actor's. */
	struct vdi_kube_stream *streams;
	size_t			stream_count;
	vd_rev			told; /* progress */

	/* Under the store's lock. */
	struct vdi_kube_items items;
	size_t		      bytes; /* in items and in the streams' queues */
	vd_status	      end;   /* VD_OK: it goes on */
	struct vd_error	      error;
	bool		      is_closing;
	bool		      is_orphan; /* the store is closed: it is its owner's alone */

	/* Reader only: what was lent. */
	struct vd_store_event *events;
	size_t		       event_count, event_capacity;
};

struct vdi_kube_store {
	struct vd_store			      store; /* first */
	const struct vd_env		     *env;
	struct vd_actor			     *actor;
	const struct vdi_http_client_options *http;
	const struct vdi_kube_kinds	     *kinds;
	char				     *base;
	bool				      whole_revisions;
	unsigned			      watch_timeout_s;
	_Atomic uint32_t		      references; /* 1 until closed, 1 for each watch */

	/* The actor's. */
	CURLM			    *multi;
	struct vdi_kube_reader	     objects;
	struct vdi_kube_event_reader events;
	struct vdi_kube_page_reader  pages;
	struct vdi_rand		     rand;
	struct vdi_kube_cursor	     cursors[VDI_KUBE_CURSORS];
	unsigned		     cursor_next;
	unsigned		     page_len;

	struct vdi_lock lock;
	/* Under lock. */
	LIST_HEAD(, vdi_kube_call) calls;
	LIST_HEAD(, vdi_kube_write) writes;
	LIST_HEAD(, vdi_kube_watch) watches;
	vd_rev newest;
	bool   is_closing;
	void (*close_done)(void *arg);
	void *close_done_arg;
};

/* ---- Transfers (kube_store.c) ---- */

/* GET of path, which may hold a query, or what method and upload say. Not VD_OK: it has not begun. */
VDI_MUST_USE vd_status vdi_kube_transfer_begin(struct vdi_kube_transfer *transfer, const char *path,
					       unsigned timeout_s, struct vd_error *reterr);
/* Ends it without a word. All zero is fine. */
void vdi_kube_transfer_end(struct vdi_kube_transfer *transfer);
/* What went wrong, with the name of the kind before it. */
vd_status vdi_kube_transfer_error(const struct vdi_kube_transfer *transfer, const char *name, CURLcode result,
				  long code, struct vd_error *reterr);
vd_status vdi_kube_blame(const char *name, vd_status status, const char *message, struct vd_error *reterr);
/* The actor looks at once. Any thread. */
void vdi_kube_store_wake(struct vdi_kube_store *store);
void vdi_kube_store_unref(struct vdi_kube_store *store);
/* Whether a kind lies in the interval. */
bool vdi_kube_kind_is_in(const struct vdi_kube_kind *kind, struct vd_bytes key, struct vd_bytes range_end);

/* ---- Ranges (kube_list.c) ---- */

vd_status vdi_kube_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			 void *arg);
void	  vdi_kube_call_start(struct vdi_kube_call *call);
/* Takes it out, answers and frees it. */
void vdi_kube_call_answer(struct vdi_kube_call *call, vd_status status, const struct vd_error *error,
			  bool more);
void vdi_kube_cursors_fini(struct vdi_kube_store *store);

/* ---- Writes (kube_write.c) ---- */

vd_status vdi_kube_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
		       void *arg);
void	  vdi_kube_write_start(struct vdi_kube_write *write);
/* Takes it out, answers and frees it. */
void vdi_kube_write_answer(struct vdi_kube_write *write, vd_status status, vd_rev revision, bool changed,
			   const struct vd_error *error);

/* ---- Watches (kube_watch.c) ---- */

vd_status vdi_kube_watch_open(struct vd_store *store, const struct vd_store_watch_request *request,
			      struct vd_store_watch **ret_watch, struct vd_error *reterr);
vd_status vdi_kube_watch_next(struct vd_store_watch *watch, size_t event_count_max,
			      struct vd_store_batch *ret_batch, struct vd_error *reterr);
void	  vdi_kube_watch_close(struct vd_store_watch *watch);
/* What there is to do: open streams that are due, read on. Earlier of due and the next moment. */
vd_mono vdi_kube_watch_tend(struct vdi_kube_watch *watch, vd_mono now, vd_mono due);
void	vdi_kube_watch_end(struct vdi_kube_watch *watch, vd_status status, const struct vd_error *error);
/* The store's actor is gone. True: its owner is gone, too. */
bool vdi_kube_watch_orphan_locked(struct vdi_kube_watch *watch, const struct vd_error *error);
void vdi_kube_watch_free(struct vdi_kube_watch *watch);

#endif
