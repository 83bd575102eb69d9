/* gRPC messages in the DATA of one HTTP/2 stream: five bytes (a flag, the size) and the message.
 *
 * Inbox: received pieces -> messages in one piece, one allocation each, made when the size is known and
 * within the limit. A message is assembled only when the owner has requested one; bytes that arrive before
 * are kept as they are, and the peer gets window back only for requested bytes. So an owner that requests
 * nothing costs at most the stream's window.
 *
 * Outbox: messages to be sent, in order, each a short head (copied) and a shared blob (a reference). It is a
 * data source of nghttp2. Nothing is copied before the connection writes.
 *
 * Threads: the loop's thread only, except vdi_h2_outgoing_* (any thread): another thread may create a message
 * and pass it on.
 */
#ifndef VDI_H2_MESSAGE_H
#define VDI_H2_MESSAGE_H

#include <stdatomic.h>

#include <nghttp2/nghttp2.h>

#include "base.h"
#include "buffer.h"
#include "rpc_client.h"
#include "rpc_server.h"

#define VDI_H2_PREFIX_SIZE 5
#define VDI_H2_HEAD_SIZE_MAX 32

/* ---- Inbox ---- */

struct vdi_h2_inbox {
	size_t	 size_max; /* of one message */
	uint8_t	 prefix[VDI_H2_PREFIX_SIZE];
	unsigned prefix_size;
	char	*bytes; /* message being assembled; NULL: its prefix is not complete */
	size_t	 size;
	/* a peer may announce many bytes and send few: a large message grows as bytes arrive */
	size_t		  capacity;
	size_t		  used;
	struct vdi_buffer kept;	     /* received and not requested */
	size_t		  kept_used; /* bytes taken from kept */
	size_t		  owed;	     /* received bytes for which the stream's window was not returned */
};

void vdi_h2_inbox_init(struct vdi_h2_inbox *inbox, size_t size_max);
void vdi_h2_inbox_fini(struct vdi_h2_inbox *inbox);
/* Takes the bytes of one DATA frame (nghttp2's on_data_chunk_recv). Without a request, or with bytes kept
 * before, it only keeps them; else it uses the bytes of the requested message in place. VD_OK: a message is
 * complete and belongs to the caller; VD_AGAIN: not yet; VD_NOMEM; VD_TOO_BIG: inbox->size is its size;
 * VD_BAD_REQUEST: compressed. After a failure only fini is allowed. *ret_used is the number of bytes used: a
 * caller that requests the next message at once passes the rest again before it calls vdi_h2_inbox_keep. */
VDI_MUST_USE vd_status vdi_h2_inbox_take(struct vdi_h2_inbox *inbox, struct vd_bytes bytes, size_t *ret_used,
					 struct vdi_rpc_message *ret_message);
/* Keeps bytes that were not requested. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_inbox_keep(struct vdi_h2_inbox *inbox, struct vd_bytes bytes);
/* Takes the next message from the kept bytes. Results as in take. */
VDI_MUST_USE vd_status vdi_h2_inbox_next(struct vdi_h2_inbox *inbox, struct vdi_rpc_message *ret_message);
/* Returns true if part of a message has arrived (at the end of the stream: truncated). */
bool vdi_h2_inbox_is_torn(const struct vdi_h2_inbox *inbox);
bool vdi_h2_inbox_has_kept(const struct vdi_h2_inbox *inbox);
/* Returns the bytes of the stream's window to give back now (nghttp2_session_consume_stream): all received
 * bytes that are not kept. */
size_t vdi_h2_inbox_settle(struct vdi_h2_inbox *inbox);

/* ---- Outbox ---- */

/* Memory of unsent messages: their own, and that of their blobs, which counts once for all messages that
 * share it. Any thread. */
struct vdi_h2_unsent {
	_Atomic size_t bytes;
};

struct vdi_h2_outgoing {
	struct vdi_h2_outgoing *next;
	struct vdi_h2_unsent   *unsent;	   /* counter of unsent bytes; NULL: not counted */
	struct vdi_rpc_blob    *blob;	   /* NULL: the body is behind the head */
	size_t			head_size; /* with gRPC's five bytes; and with the body if blob is NULL */
	size_t			size;	   /* head and blob */
	char			head[];
};

/* Creates a message. With a blob (a reference is taken) head has at most VDI_H2_HEAD_SIZE_MAX bytes; without,
 * less than 4 GiB. VD_NOMEM, VD_TOO_BIG. */
VDI_MUST_USE vd_status vdi_h2_outgoing_new(struct vd_bytes head, struct vdi_rpc_blob *blob,
					   struct vdi_h2_outgoing **ret_outgoing);
/* Counts the message until it is freed; once. Returns the bytes counted before. */
size_t vdi_h2_outgoing_count(struct vdi_h2_outgoing *outgoing, struct vdi_h2_unsent *unsent);
/* Creates a message without gRPC's five bytes. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_outgoing_new_plain(struct vd_bytes	  bytes,
						 struct vdi_h2_outgoing **ret_outgoing);
/* NULL is allowed; returns NULL. */
struct vdi_h2_outgoing *vdi_h2_outgoing_free(struct vdi_h2_outgoing *outgoing);

struct vdi_h2_outbox {
	struct vdi_h2_outgoing	*first;
	struct vdi_h2_outgoing **last;
	size_t			 first_used;  /* bytes taken from first */
	size_t			 size;	      /* remaining bytes */
	bool			 is_ending;   /* no message will follow */
	bool			 is_deferred; /* nghttp2 was told to wait: vdi_h2_outbox_resume */
	/* written messages are kept until vdi_h2_outbox_forget, so that vdi_h2_outbox_rewind can send them
	 * again */
	bool			retains;
	struct vdi_h2_outgoing *written; /* the latest first */
	/* The connection has copied `size` bytes. On the loop's thread, inside nghttp2: only set fields and
	 * call nghttp2_submit_*. May be NULL. */
	void (*sent)(struct vdi_h2_outbox *outbox, size_t size);
	/* Called once when all was read and is_ending is set; submits the trailers. Returns 0 or an nghttp2
	 * error. NULL: the end of the outbox ends the stream. */
	int (*end)(struct vdi_h2_outbox *outbox);
};
void vdi_h2_outbox_init(struct vdi_h2_outbox *outbox);
void vdi_h2_outbox_fini(struct vdi_h2_outbox *outbox); /* frees the remaining messages */
/* Drops the messages that have not begun to be sent. */
void vdi_h2_outbox_cut(struct vdi_h2_outbox *outbox);
void vdi_h2_outbox_push(struct vdi_h2_outbox *outbox, struct vdi_h2_outgoing *outgoing);
/* For nghttp2_submit_request, _response, _data. */
nghttp2_data_provider vdi_h2_outbox_provider(struct vdi_h2_outbox *outbox);
/* After push, or when is_ending was set: makes nghttp2 read again if it waits. */
void vdi_h2_outbox_resume(struct vdi_h2_outbox *outbox, nghttp2_session *session, int32_t stream_id);
void vdi_h2_outbox_forget(struct vdi_h2_outbox *outbox); /* also ends retaining */
void vdi_h2_outbox_rewind(struct vdi_h2_outbox *outbox); /* on another stream, from the start */
/* For the connection: copies the next size bytes, which the source has announced, and frees sent messages. */
void vdi_h2_outbox_write(struct vdi_h2_outbox *outbox, char *room, size_t size);

#endif
