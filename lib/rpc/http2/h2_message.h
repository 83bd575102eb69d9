/* gRPC's messages in the DATA of one HTTP/2 stream: five bytes (a flag, the size) and the message.
 *
 * Inbox: pieces as they come -> messages in one piece, one allocation each, made when the size is known and
 * allowed. A message is put together only when the owner has asked for one; what comes before that is kept as
 * it is, and the peer gets its window back only for what was asked for: so an owner that does not ask costs
 * at most the stream's window.
 *
 * Outbox: messages on their way out, in order, each a short head (copied) and a shared blob (a reference);
 * the data source of nghttp2. Nothing is copied before the connection's write.
 *
 * Threads: the loop's, but vdi_h2_outgoing_* (any): a message may be made on another thread, and handed over.
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

/* ---- In ---- */

struct vdi_h2_inbox {
	size_t	 size_max; /* of a message */
	uint8_t	 prefix[VDI_H2_PREFIX_SIZE];
	unsigned prefix_size;
	char	*bytes; /* of the message that is being put together; NULL: its prefix is not complete */
	size_t	 size;
	/* a peer may say that much is coming and send little: large ones grow with what comes */
	size_t		  capacity;
	size_t		  used;
	struct vdi_buffer kept;	     /* came and was not asked for */
	size_t		  kept_used; /* of it */
	size_t		  owed;	     /* came, and the stream's window was not given back for it */
};

void vdi_h2_inbox_init(struct vdi_h2_inbox *inbox, size_t size_max);
void vdi_h2_inbox_fini(struct vdi_h2_inbox *inbox);
/* One DATA frame's piece (nghttp2's on_data_chunk_recv). Only keeps it, unless nothing is kept and wants:
 * then as much as belongs to the message asked for is taken in place, and the rest is kept. VD_OK: a message
 * is complete and the caller's; VD_AGAIN: none yet; VD_NOMEM; VD_TOO_BIG: inbox->size tells how big;
 * VD_BAD_REQUEST: compressed. After a failure the inbox is only good for fini. *ret_used says how much of
 * bytes was used: a caller that asks for the next message at once comes back with the rest before it calls
 * vdi_h2_inbox_keep. */
VDI_MUST_USE vd_status vdi_h2_inbox_take(struct vdi_h2_inbox *inbox, struct vd_bytes bytes, size_t *ret_used,
					 struct vdi_rpc_message *ret_message);
/* Bytes that nobody has asked for. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_inbox_keep(struct vdi_h2_inbox *inbox, struct vd_bytes bytes);
/* The next message out of what was kept. As take. */
VDI_MUST_USE vd_status vdi_h2_inbox_next(struct vdi_h2_inbox *inbox, struct vdi_rpc_message *ret_message);
/* Something of a message is there that is not complete (at the end of the stream: truncated). */
bool vdi_h2_inbox_is_torn(const struct vdi_h2_inbox *inbox);
bool vdi_h2_inbox_has_kept(const struct vdi_h2_inbox *inbox);
/* How many bytes of the stream's window are to be given back now (nghttp2_session_consume_stream): all that
 * came and is not kept. */
size_t vdi_h2_inbox_settle(struct vdi_h2_inbox *inbox);

/* ---- Out ---- */

/* What messages hold that have not been written: their own memory, and their blobs', which count once however
 * many messages wait with them. Any thread. */
struct vdi_h2_unsent {
	_Atomic size_t bytes;
};

struct vdi_h2_outgoing {
	struct vdi_h2_outgoing *next;
	struct vdi_h2_unsent   *unsent;	   /* that counts it; or NULL */
	struct vdi_rpc_blob    *blob;	   /* NULL: the body lies behind the head */
	size_t			head_size; /* with gRPC's five bytes; and with the body when blob is NULL */
	size_t			size;	   /* head and blob */
	char			head[];
};

/* head may be anything up to VDI_H2_HEAD_SIZE_MAX with a blob (a reference is taken), of any size below 4 GiB
 * without. VD_NOMEM, VD_TOO_BIG. */
VDI_MUST_USE vd_status vdi_h2_outgoing_new(struct vd_bytes head, struct vdi_rpc_blob *blob,
					   struct vdi_h2_outgoing **ret_outgoing);
/* Counts it until it is freed. Answers what there was before. Once. */
size_t vdi_h2_outgoing_count(struct vdi_h2_outgoing *outgoing, struct vdi_h2_unsent *unsent);
/* The bytes alone, without gRPC's five. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_outgoing_new_plain(struct vd_bytes	  bytes,
						 struct vdi_h2_outgoing **ret_outgoing);
/* NULL is fine; returns NULL. */
struct vdi_h2_outgoing *vdi_h2_outgoing_free(struct vdi_h2_outgoing *outgoing);

struct vdi_h2_outbox {
	struct vdi_h2_outgoing	*first;
	struct vdi_h2_outgoing **last;
	size_t			 first_used;  /* of first */
	size_t			 size;	      /* all that is left */
	bool			 is_ending;   /* nothing comes behind what is here */
	bool			 is_deferred; /* nghttp2 was told to wait: vdi_h2_outbox_resume */
	/* what was written stays, until vdi_h2_outbox_forget, to be written again after
	 * vdi_h2_outbox_rewind */
	bool			retains;
	struct vdi_h2_outgoing *written; /* the latest first */
	/* May be NULL. Of so many bytes the connection has taken over the copy. On the loop's thread, inside
	 * nghttp2: nothing but notes and nghttp2_submit_*. */
	void (*sent)(struct vdi_h2_outbox *outbox, size_t size);
	/* NULL: the end of the outbox is the end of the stream. Else called once when all was read and
	 * is_ending; submits the trailers. 0 or an error of nghttp2's. */
	int (*end)(struct vdi_h2_outbox *outbox);
};
void vdi_h2_outbox_init(struct vdi_h2_outbox *outbox);
void vdi_h2_outbox_fini(struct vdi_h2_outbox *outbox); /* frees what is left */
/* Drops what has not begun to leave. */
void vdi_h2_outbox_cut(struct vdi_h2_outbox *outbox);
void vdi_h2_outbox_push(struct vdi_h2_outbox *outbox, struct vdi_h2_outgoing *outgoing);
/* For nghttp2_submit_request, _response, _data. */
nghttp2_data_provider vdi_h2_outbox_provider(struct vdi_h2_outbox *outbox);
/* After push, or when is_ending was set: lets nghttp2 look again if it waits. */
void vdi_h2_outbox_resume(struct vdi_h2_outbox *outbox, nghttp2_session *session, int32_t stream_id);
void vdi_h2_outbox_forget(struct vdi_h2_outbox *outbox); /* and retains no more */
void vdi_h2_outbox_rewind(struct vdi_h2_outbox *outbox); /* on another stream, from the start */
/* The connection's: copies the next size bytes, which the source has announced, and drops what is done
 * with. */
void vdi_h2_outbox_write(struct vdi_h2_outbox *outbox, char *room, size_t size);

#endif
