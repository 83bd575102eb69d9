/* The private state of a Kubernetes endpoint: endpoint_store.c (the store and its transfers), endpoint_list.c
 * (ranges), endpoint_write.c (puts and deletes), endpoint_watch.c (watches).
 *
 *   the client's actor		all transfers, the merging of kinds
 *   callers			leave calls and watches, take results
 *
 * The store is a member of the client (kube_client.h). One lock ("store") guards shared state.
 */
#ifndef VDI_ENDPOINT_STATE_H
#define VDI_ENDPOINT_STATE_H

#include <stdatomic.h>
#include <sys/queue.h>

#include "buffer.h"
#include "endpoint_store.h"
#include "json_stream.h"
#include "kube_client.h"
#include "kube_object.h"
#include "lock.h"
#include "rand.h"

#define VDI_ENDPOINT_CURSORS 16

struct vdi_endpoint_store;

/* One request. Owned by the actor. */
struct vdi_endpoint_transfer {
	struct vdi_endpoint_store *store;
	TAILQ_ENTRY(vdi_endpoint_transfer) node; /* while it waits for its start */
	bool			  is_running, is_starting;
	struct vdi_kube_exchange *exchange; /* NULL: it waits for its start */
	char			 *path;
	unsigned		  timeout_s;
	const char		 *method, *upload; /* NULL: GET without body; borrowed until the end */
	struct vdi_buffer	  body;		   /* of a list, or of an error response */
	int			  code;		   /* HTTP status; 0: no response */
	struct vdi_kube_head	  head;
	/* Takes a 2xx response as it arrives; false: pause, the same bytes come again. May end the transfer.
	 * NULL: the response is gathered in body. */
	bool (*take)(struct vdi_endpoint_transfer *transfer, struct vd_bytes bytes);
	/* The transfer has ended; may free it, or begin it again after vdi_endpoint_transfer_end. VD_OK: the
	 * response is complete, with any code. */
	void (*ended)(struct vdi_endpoint_transfer *transfer, vd_status status, const struct vd_error *error);
	void *arg;
};

struct vdi_endpoint_call {
	LIST_ENTRY(vdi_endpoint_call) node;
	struct vdi_endpoint_store   *store;
	struct vdi_endpoint_transfer transfer;
	char			    *key, *range_end;
	struct vd_bytes		     key_bytes, end_bytes;
	vd_rev			     revision;
	int64_t			     limit;
	vd_range_fn		     done;
	void			    *arg;
	bool			     is_started;
	size_t			     kind;  /* current one */
	char			    *token; /* of its next page, or NULL */
	vd_rev			     shown; /* revision of the first page */
	struct vd_kv		   **kvs;
	size_t			     count, capacity;
};

struct vdi_endpoint_write {
	LIST_ENTRY(vdi_endpoint_write) node;
	struct vdi_endpoint_store      *store;
	const struct vdi_endpoint_kind *kind;
	struct vdi_endpoint_transfer	transfer;
	char			       *collection, *name; /* URL path, escaped */
	char			       *body;		   /* NULL: delete */
	vd_txn_fn			done;
	void			       *arg;
	bool				is_started;
	bool				creates; /* the object does not exist yet */
};

/* The position of a list that was not read to its end. */
struct vdi_endpoint_cursor {
	struct vd_kv *last; /* NULL: none */
	vd_rev	      revision;
	size_t	      kind;
	char	     *token; /* NULL: the kind's first page */
};

struct vdi_endpoint_item {
	STAILQ_ENTRY(vdi_endpoint_item) node;
	struct vd_kv *kv; /* NULL: progress */
	bool	      is_delete;
	vd_rev	      revision;
	size_t	      bytes;
};
STAILQ_HEAD(vdi_endpoint_items, vdi_endpoint_item);

/* One kind of a watch. Owned by the actor. */
struct vdi_endpoint_stream {
	struct vdi_endpoint_watch      *watch;
	const struct vdi_endpoint_kind *kind;
	struct vdi_endpoint_transfer	transfer;
	struct vdi_endpoint_transfer	nudge; /* the list before a watch */
	struct vdi_json_stream		frames;
	struct vdi_endpoint_items	queue; /* whole revisions only */
	size_t				bytes;
	vd_rev				passed;	  /* all events up to here were received */
	vd_rev				listed;	  /* revision of the list before the watch; 0: none */
	vd_rev				resume;	  /* start of the next watch */
	vd_rev				last;	  /* revision of the last event */
	unsigned			parts;	  /* events of that revision */
	unsigned			repeated; /* of them, number to be received again */
	bool				is_paused, has_come, is_nudged;
	vd_mono				retry_at;
	vd_dur				backoff;
};

struct vdi_endpoint_watch {
	struct vd_store_watch	   base; /* first */
	struct vdi_endpoint_store *store;
	LIST_ENTRY(vdi_endpoint_watch) node;
	void (*ready)(void *arg);
	void *ready_arg;

	/* Owned by the actor. */
	struct vdi_endpoint_stream *streams;
	size_t			    stream_count;
	vd_rev			    reported; /* last reported progress */

	/* Under the store's lock. */
	struct vdi_endpoint_items items;
	size_t			  bytes; /* in items and in the streams' queues */
	vd_status		  end;	 /* VD_OK: not ended */
	struct vd_error		  error;
	bool			  is_closing;
	bool			  is_orphan; /* the store is closed: owned only by its reader */

	/* Reader only: borrowed events. */
	struct vd_store_event *events;
	size_t		       event_count, event_capacity;
};

struct vdi_endpoint_store {
	struct vd_store			 store; /* first */
	const struct vd_env		*env;
	struct vdi_kube_member		 member;
	const struct vdi_endpoint_kinds *kinds;
	bool				 whole_revisions;
	unsigned			 watch_timeout_s;
	_Atomic uint32_t		 references; /* 1 until closed, 1 for each watch */

	/* Owned by the actor. */
	TAILQ_HEAD(, vdi_endpoint_transfer) starting;
	struct vdi_kube_reader	     objects;
	struct vdi_kube_event_reader events;
	struct vdi_kube_page_reader  pages;
	struct vdi_rand		     rand;
	struct vdi_endpoint_cursor   cursors[VDI_ENDPOINT_CURSORS];
	unsigned		     cursor_next;
	unsigned		     page_len;

	struct vdi_lock lock;
	/* Under lock. */
	LIST_HEAD(, vdi_endpoint_call) calls;
	LIST_HEAD(, vdi_endpoint_write) writes;
	LIST_HEAD(, vdi_endpoint_watch) watches;
	vd_rev newest;
	bool   is_closing;
	void (*close_done)(void *arg);
	void *close_done_arg;
};

/* ---- Transfers (endpoint_store.c) ---- */

/* Begins a GET of path, which may include a query, or the request of method and upload; it starts at the next
 * run of the actor. VD_NOMEM: it has not begun. */
VDI_MUST_USE vd_status vdi_endpoint_transfer_begin(struct vdi_endpoint_transfer *transfer, const char *path,
						   unsigned timeout_s, struct vd_error *reterr);
void		       vdi_endpoint_transfer_resume(struct vdi_endpoint_transfer *transfer);
/* Ends the transfer without a callback. Accepts a zeroed one. */
void vdi_endpoint_transfer_end(struct vdi_endpoint_transfer *transfer);
/* Sets the error of a transfer, with the name of the kind before it. */
vd_status vdi_endpoint_transfer_error(const struct vdi_endpoint_transfer *transfer, const char *name,
				      vd_status status, const struct vd_error *error,
				      struct vd_error *reterr);
vd_status vdi_endpoint_blame(const char *name, vd_status status, const char *message,
			     struct vd_error *reterr);
/* Wakes the actor. Any thread. */
void vdi_endpoint_store_wake(struct vdi_endpoint_store *store);
void vdi_endpoint_store_unref(struct vdi_endpoint_store *store);
/* Returns text with all but letters, digits, '-', '.', '_' and '~' escaped, to be freed; NULL: out of
 * memory. */
char *vdi_endpoint_escape(struct vd_bytes text);
/* Returns true if the kind's keys are in the interval. */
bool vdi_endpoint_kind_is_in(const struct vdi_endpoint_kind *kind, struct vd_bytes key,
			     struct vd_bytes range_end);

/* ---- Ranges (endpoint_list.c) ---- */

vd_status vdi_endpoint_range(struct vd_store *store, const struct vd_range_request *request, vd_range_fn done,
			     void *arg);
void	  vdi_endpoint_call_start(struct vdi_endpoint_call *call);
/* Removes the call, answers and frees it. */
void vdi_endpoint_call_answer(struct vdi_endpoint_call *call, vd_status status, const struct vd_error *error,
			      bool more);
void vdi_endpoint_cursors_fini(struct vdi_endpoint_store *store);

/* ---- Writes (endpoint_write.c) ---- */

vd_status vdi_endpoint_txn(struct vd_store *store, const struct vd_txn_request *request, vd_txn_fn done,
			   void *arg);
void	  vdi_endpoint_write_start(struct vdi_endpoint_write *write);
/* Removes the write, answers and frees it. */
void vdi_endpoint_write_answer(struct vdi_endpoint_write *write, vd_status status, vd_rev revision,
			       bool changed, const struct vd_error *error);

/* ---- Watches (endpoint_watch.c) ---- */

vd_status vdi_endpoint_watch_open(struct vd_store *store, const struct vd_store_watch_request *request,
				  struct vd_store_watch **ret_watch, struct vd_error *reterr);
vd_status vdi_endpoint_watch_next(struct vd_store_watch *watch, size_t event_count_max,
				  struct vd_store_batch *ret_batch, struct vd_error *reterr);
void	  vdi_endpoint_watch_close(struct vd_store_watch *watch);
/* Opens streams that are due and continues paused ones. Returns the earlier of due and its next time. */
vd_mono vdi_endpoint_watch_tend(struct vdi_endpoint_watch *watch, vd_mono now, vd_mono due);
void vdi_endpoint_watch_end(struct vdi_endpoint_watch *watch, vd_status status, const struct vd_error *error);
/* The store closes and has removed the watch from its list. true: the reader has closed the watch too. */
VDI_MUST_USE bool vdi_endpoint_watch_orphan(struct vdi_endpoint_watch *watch, const struct vd_error *error);
void		  vdi_endpoint_watch_free(struct vdi_endpoint_watch *watch);

#endif
