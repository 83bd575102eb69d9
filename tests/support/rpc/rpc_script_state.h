/* The scripted peer from inside: scripts and calls. For rpc_script*.c only. */
#ifndef RPC_SCRIPT_STATE_H
#define RPC_SCRIPT_STATE_H

#include "rand.h"
#include "rpc_script.h"

#define RPC_SCRIPT_ENDPOINTS_MAX 16

enum item_kind { ITEM_OPEN, ITEM_MESSAGE, ITEM_HALF_CLOSE, ITEM_CANCEL };

struct item {
	struct item   *next;
	vd_mono	       due;
	enum item_kind kind;
	size_t	       size;
	char	       data[];
};

struct item_queue {
	struct item  *first;
	struct item **last;
	vd_mono	      due_last;
	size_t	      count;
	size_t	      bytes;
};

enum call_state { CALL_WAITING, CALL_OPEN, CALL_OVER };

struct rpc_script_call {
	struct rpc_script	*script;
	struct vdi_rpc_call	 call;
	struct vdi_rpc_stream	 stream;
	bool			 is_stream;
	enum call_state		 state;
	const char		*method;
	struct vdi_rpc_metadata *metadata;
	size_t			 metadata_count;
	vd_dur			 timeout;
	vd_mono			 deadline;
	int			 endpoint_wanted;
	size_t			 endpoint;
	struct item_queue	 to_peer;
	struct item_queue	 to_client;

	/* The end, once decided. */
	bool	has_end;
	vd_mono end_due;
	int	end_code;
	char   *end_text;
	bool	end_local;
	bool	end_unsent;
	bool	is_refused; /* the peer never sees it */
	bool	is_broken;  /* nothing more reaches the peer */

	/* Client's end. */
	struct vdi_rpc_stream_handlers handlers;
	vdi_rpc_done_fn		       done;
	void			      *arg;
	bool			       is_asked; /* one message */
	bool			       is_freed; /* unary: done; stream: stream_free */
	bool			       is_canceling;

	/* Peer's end. */
	bool	      is_seen, is_taken, is_peer_half_closed, is_peer_canceled, is_peer_ended;
	struct item **messages;
	size_t	      message_count, message_capacity, message_taken;
	void	     *data;
};

struct refusal {
	const char *method;
	size_t	    count;
	int	    code;
	const char *text;
};

struct rpc_script {
	struct vdi_rpc_client	 client;
	struct vd_env		*env;
	struct vdi_rand		 rand;
	struct vd_actor		*actor;
	struct rpc_script_peer	 peer;
	vd_dur			 delay_max;
	char			*endpoints[RPC_SCRIPT_ENDPOINTS_MAX];
	bool			 up[RPC_SCRIPT_ENDPOINTS_MAX];
	char			 last_errors[RPC_SCRIPT_ENDPOINTS_MAX][256];
	size_t			 endpoint_count;
	size_t			 endpoint_next;
	struct refusal		 refusal;
	struct rpc_script_call **live;
	size_t			 live_count, live_capacity;
	struct rpc_script_call **seen; /* by the peer, in order */
	size_t			 seen_count, seen_capacity;
	/* calls that ended before the test saw them: kept until their streams are freed */
	struct rpc_script_call **unseen;
	size_t			 unseen_count, unseen_capacity;
	bool			 is_closing, is_closed;
	void (*closed)(void *arg);
	void *closed_arg;
};

extern const struct vdi_rpc_client_ops rpc_script_ops;

/* ---- rpc_script_call.c ---- */

/* The peer's memory does not fail: an injected failure is spent here and forgotten. */
void	    *rpc_script_peer_alloc(size_t size);
char	    *rpc_script_peer_text(const char *text);
void	     rpc_script_peer_push(struct rpc_script_call ***array, size_t *count, size_t *capacity,
				  struct rpc_script_call *call);
vd_mono	     rpc_script_now(const struct rpc_script *script);
vd_mono	     rpc_script_arrival(struct rpc_script *script);
void	     rpc_script_wake(struct rpc_script *script);
struct item *rpc_script_item_new(enum item_kind kind, struct vd_bytes bytes);
struct item *rpc_script_peer_item_new(enum item_kind kind, struct vd_bytes bytes);
void	     rpc_script_queue_put(struct item_queue *queue, struct item *item, vd_mono due);
struct item *rpc_script_queue_take(struct item_queue *queue);
void	     rpc_script_queue_clear(struct item_queue *queue);
void	     rpc_script_call_free(struct rpc_script_call *call);
void	     rpc_script_decide_end(struct rpc_script_call *call, vd_mono due, int code, const char *text,
				   bool is_local);
/* An end that overtakes everything: data in flight to the client is lost, data to the peer perhaps; the peer
 * is notified. */
void	  rpc_script_break_call(struct rpc_script_call *call, int code, const char *text, bool is_local);
bool	  rpc_script_is_refused(struct rpc_script *script, const char *method);
vd_status rpc_script_call_new(struct rpc_script *script, const struct vdi_rpc_request *request,
			      bool is_stream, struct rpc_script_call **ret_call);

/* ---- rpc_script_client.c ---- */

void rpc_script_client_close(struct vdi_rpc_client *client, void (*done)(void *arg), void *arg);
/* Returns true also for a call that is over but still has to deliver sent data to its peer. */
bool rpc_script_is_live(const struct rpc_script_call *call);
void rpc_script_drop_dead(struct rpc_script *script);
void rpc_script_run(void *arg);

#endif
