/* One end of an HTTP/2 connection, frame by frame, unlike any library: for tests of the server with all kinds
 * of peers. The socket blocks; a wait that takes minutes fails the test. */
#ifndef H2_PEER_H
#define H2_PEER_H

#include <nghttp2/nghttp2.h>

#include "vdtest.h"

#define PEER_PATIENCE_MS 300000

struct peer {
	int		     fd;
	bool		     is_over; /* the other side has closed or reset the connection */
	nghttp2_hd_inflater *inflater;
	uint8_t		     got[1 << 17];
	size_t		     got_size;
	size_t		     got_used;
};

struct frame {
	uint8_t	       type;
	uint8_t	       flags;
	uint32_t       stream;
	size_t	       size;
	const uint8_t *payload; /* good until the next frame is read */
};

/* Everything received on one stream, until its end. */
struct heard {
	bool	 is_whole; /* it ended with END_STREAM */
	char	 http_status[8];
	int	 status; /* grpc-status; -1: none received */
	unsigned header_frames;
	int64_t	 reset; /* code of RST_STREAM; -1: none received */
	char	 type[64];
	char	 message[512]; /* grpc-message, as on the wire */
	size_t	 data_size;
	char	 data[256]; /* cut */
};

void peer_attach(struct peer *peer, int fd);
/* 127.0.0.1; address "...:port". */
void   peer_connect(struct peer *peer, const char *address);
void   peer_close(struct peer *peer);
bool   peer_write(struct peer *peer, const void *bytes, size_t size);
size_t peer_frame_head(uint8_t *room, uint8_t type, uint8_t flags, uint32_t stream, size_t size);
/* Returns false if the other side has closed the connection. */
bool peer_frame(struct peer *peer, uint8_t type, uint8_t flags, uint32_t stream, const void *payload,
		size_t size);
/* Preface and SETTINGS, with the initial window of streams when it is not -1. */
void peer_begin(struct peer *peer, int64_t window);
/* A literal, without a table and without Huffman. */
size_t peer_put_header(uint8_t *block, const char *name, const char *value);
/* Writes the header block of a request; extra: pairs of name and value, terminated by NULL. A pair replaces
 * the usual one of that name; "" omits it. */
size_t peer_put_request(uint8_t *block, const char *path, const char *const *extra);
bool   peer_request(struct peer *peer, uint32_t stream, const char *path, uint8_t flags,
		    const char *const *extra);
/* gRPC's prefix and the bytes in one DATA frame. */
bool	 peer_message(struct peer *peer, uint32_t stream, const char *text, uint8_t flags);
bool	 peer_number(struct peer *peer, uint8_t type, uint32_t stream, uint32_t number);
uint32_t peer_number_of(const uint8_t *bytes);
bool	 peer_fill(struct peer *peer, size_t wanted);
/* The next frame; false at the end. SETTINGS and PINGs are answered. */
bool peer_next(struct peer *peer, struct frame *frame);
void peer_hear_frame(struct peer *peer, const struct frame *frame, struct heard *heard);
/* Reads until the stream or the connection has ended. Frames of other streams are skipped; of PUT ones the
 * headers are read. */
struct heard peer_hear(struct peer *peer, uint32_t stream);
/* Reads until the other side has closed. Returns the code of its last GOAWAY, -1: none; text gets its
 * message. */
int64_t peer_hear_end(struct peer *peer, char *text, size_t size);

#endif
