#include "h2_peer.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "http_fixture.h"

void peer_attach(struct peer *peer, int fd)
{
	memset(peer, 0, sizeof *peer);
	peer->fd = fd;
	assert_int_equal(nghttp2_hd_inflate_new(&peer->inflater), 0);
}

void peer_connect(struct peer *peer, const char *address)
{
	peer_attach(peer, http_open((uint16_t) atoi(strrchr(address, ':') + 1), 0));
}

void peer_close(struct peer *peer)
{
	close(peer->fd);
	nghttp2_hd_inflate_del(peer->inflater);
}

bool peer_write(struct peer *peer, const void *bytes, size_t size)
{
	while (size) {
		ssize_t written = send(peer->fd, bytes, size, MSG_NOSIGNAL);

		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		bytes = (const char *) bytes + written;
		size -= (size_t) written;
	}
	return true;
}

size_t peer_frame_head(uint8_t *room, uint8_t type, uint8_t flags, uint32_t stream, size_t size)
{
	const uint8_t head[9] = { (uint8_t) (size >> 16),
				  (uint8_t) (size >> 8),
				  (uint8_t) size,
				  type,
				  flags,
				  (uint8_t) (stream >> 24),
				  (uint8_t) (stream >> 16),
				  (uint8_t) (stream >> 8),
				  (uint8_t) stream };

	memcpy(room, head, sizeof head);
	return sizeof head;
}

bool peer_frame(struct peer *peer, uint8_t type, uint8_t flags, uint32_t stream, const void *payload,
		size_t size)
{
	uint8_t *room = malloc(9 + size);
	bool	 is_written;

	assert_non_null(room);
	peer_frame_head(room, type, flags, stream, size);
	if (size)
		memcpy(room + 9, payload, size);
	is_written = peer_write(peer, room, 9 + size);
	free(room);
	return is_written;
}

void peer_begin(struct peer *peer, int64_t window)
{
	const uint8_t setting[6] = { 0,
				     4,
				     (uint8_t) (window >> 24),
				     (uint8_t) (window >> 16),
				     (uint8_t) (window >> 8),
				     (uint8_t) window };

	assert_true(peer_write(peer, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24));
	assert_true(peer_frame(peer, NGHTTP2_SETTINGS, 0, 0, setting, window < 0 ? 0 : sizeof setting));
}

size_t peer_put_header(uint8_t *block, const char *name, const char *value)
{
	size_t name_size = strlen(name), value_size = strlen(value), used = 0;

	assert_true(name_size < 127 && value_size < 127);
	block[used++] = 0;
	block[used++] = (uint8_t) name_size;
	memcpy(block + used, name, name_size);
	used += name_size;
	block[used++] = (uint8_t) value_size;
	memcpy(block + used, value, value_size);
	return used + value_size;
}

size_t peer_put_request(uint8_t *block, const char *path, const char *const *extra)
{
	const char *usual[][2] = { { ":method", "POST" },
				   { ":scheme", "http" },
				   { ":path", path },
				   { ":authority", "test" },
				   { "content-type", "application/grpc" },
				   { "te", "trailers" } };
	size_t	    used = 0;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(usual); i++) {
		const char *value = usual[i][1];

		for (size_t k = 0; extra && extra[k]; k += 2)
			if (strcmp(extra[k], usual[i][0]) == 0)
				value = extra[k + 1];
		if (value[0])
			used += peer_put_header(block + used, usual[i][0], value);
	}
	for (size_t k = 0; extra && extra[k]; k += 2) {
		bool is_usual = false;

		for (size_t i = 0; i < VDI_ARRAY_SIZE(usual); i++)
			is_usual = is_usual || strcmp(extra[k], usual[i][0]) == 0;
		if (!is_usual)
			used += peer_put_header(block + used, extra[k], extra[k + 1]);
	}
	return used;
}

bool peer_request(struct peer *peer, uint32_t stream, const char *path, uint8_t flags,
		  const char *const *extra)
{
	uint8_t block[4096];

	return peer_frame(peer, NGHTTP2_HEADERS, flags | NGHTTP2_FLAG_END_HEADERS, stream, block,
			  peer_put_request(block, path, extra));
}

bool peer_message(struct peer *peer, uint32_t stream, const char *text, uint8_t flags)
{
	uint8_t room[4096] = { 0 };
	size_t	size = strlen(text);

	assert_true(size + 5 < sizeof room);
	room[3] = (uint8_t) (size >> 8);
	room[4] = (uint8_t) size;
	memcpy(room + 5, text, size);
	return peer_frame(peer, NGHTTP2_DATA, flags, stream, room, 5 + size);
}

bool peer_number(struct peer *peer, uint8_t type, uint32_t stream, uint32_t number)
{
	const uint8_t payload[4] = { (uint8_t) (number >> 24), (uint8_t) (number >> 16),
				     (uint8_t) (number >> 8), (uint8_t) number };

	return peer_frame(peer, type, 0, stream, payload, sizeof payload);
}

uint32_t peer_number_of(const uint8_t *bytes)
{
	return (uint32_t) bytes[0] << 24 | (uint32_t) bytes[1] << 16 | (uint32_t) bytes[2] << 8 | bytes[3];
}

bool peer_fill(struct peer *peer, size_t wanted)
{
	while (peer->got_size - peer->got_used < wanted) {
		struct pollfd wait = { .fd = peer->fd, .events = POLLIN };
		ssize_t	      more;

		assert_true(wanted <= sizeof peer->got);
		if (peer->got_used + wanted > sizeof peer->got) {
			memmove(peer->got, peer->got + peer->got_used, peer->got_size - peer->got_used);
			peer->got_size -= peer->got_used;
			peer->got_used = 0;
		}
		assert_int_equal(poll(&wait, 1, PEER_PATIENCE_MS), 1);
		more = read(peer->fd, peer->got + peer->got_size, sizeof peer->got - peer->got_size);
		if (more <= 0) {
			peer->is_over = true;
			return false;
		}
		peer->got_size += (size_t) more;
	}
	return true;
}

bool peer_next(struct peer *peer, struct frame *frame)
{
	const uint8_t *head;

	if (!peer_fill(peer, 9))
		return false;
	head = peer->got + peer->got_used;
	frame->size = (size_t) head[0] << 16 | (size_t) head[1] << 8 | head[2];
	if (!peer_fill(peer, 9 + frame->size))
		return false;
	head = peer->got + peer->got_used;
	frame->type = head[3];
	frame->flags = head[4];
	frame->stream = peer_number_of(head + 5);
	frame->payload = head + 9;
	peer->got_used += 9 + frame->size;
	if ((frame->type == NGHTTP2_SETTINGS || frame->type == NGHTTP2_PING) &&
	    !(frame->flags & NGHTTP2_FLAG_ACK))
		(void) peer_frame(peer, frame->type, NGHTTP2_FLAG_ACK, 0, frame->payload,
				  frame->type == NGHTTP2_PING ? 8 : 0);
	return true;
}

static void copy_value(char *room, size_t size, const nghttp2_nv *pair)
{
	snprintf(room, size, "%.*s", (int) pair->valuelen, (const char *) pair->value);
}

/* All blocks have to pass here, in order. */
static void peer_hear_headers(struct peer *peer, const struct frame *frame, struct heard *heard)
{
	const uint8_t *at = frame->payload;
	size_t	       left = frame->size;
	nghttp2_nv     pair;
	int	       flags = 0;
	char	       number[16];

	assert_true(frame->flags & NGHTTP2_FLAG_END_HEADERS);
	while (!(flags & NGHTTP2_HD_INFLATE_FINAL)) {
		ssize_t used = nghttp2_hd_inflate_hd2(peer->inflater, &pair, &flags, at, left, 1);

		assert_true(used >= 0);
		at += used;
		left -= (size_t) used;
		if (!(flags & NGHTTP2_HD_INFLATE_EMIT))
			continue;
		if (strcmp((const char *) pair.name, ":status") == 0)
			copy_value(heard->http_status, sizeof heard->http_status, &pair);
		else if (strcmp((const char *) pair.name, "content-type") == 0)
			copy_value(heard->type, sizeof heard->type, &pair);
		else if (strcmp((const char *) pair.name, "grpc-message") == 0)
			copy_value(heard->message, sizeof heard->message, &pair);
		else if (strcmp((const char *) pair.name, "grpc-status") == 0) {
			copy_value(number, sizeof number, &pair);
			heard->status = atoi(number);
		}
	}
	nghttp2_hd_inflate_end_headers(peer->inflater);
}

void peer_hear_frame(struct peer *peer, const struct frame *frame, struct heard *heard)
{
	switch (frame->type) {
	case NGHTTP2_HEADERS:
		heard->header_frames++;
		peer_hear_headers(peer, frame, heard);
		break;
	case NGHTTP2_DATA:
		if (heard->data_size < sizeof heard->data)
			memcpy(heard->data + heard->data_size, frame->payload,
			       VDI_MIN(frame->size, sizeof heard->data - heard->data_size));
		heard->data_size += frame->size;
		break;
	case NGHTTP2_RST_STREAM: heard->reset = peer_number_of(frame->payload); break;
	default: break;
	}
}

struct heard peer_hear(struct peer *peer, uint32_t stream)
{
	struct heard heard = { .status = -1, .reset = -1 };
	struct heard other;
	struct frame frame;

	while (!heard.is_whole && heard.reset < 0 && peer_next(peer, &frame)) {
		peer_hear_frame(peer, &frame, frame.stream == stream ? &heard : &other);
		heard.is_whole = frame.stream == stream &&
				 (frame.type == NGHTTP2_HEADERS || frame.type == NGHTTP2_DATA) &&
				 frame.flags & NGHTTP2_FLAG_END_STREAM;
	}
	return heard;
}

int64_t peer_hear_end(struct peer *peer, char *text, size_t size)
{
	int64_t	     code = -1;
	struct frame frame;

	if (size)
		text[0] = 0;
	while (peer_next(peer, &frame)) {
		if (frame.type != NGHTTP2_GOAWAY)
			continue;
		code = peer_number_of(frame.payload + 4);
		if (size)
			snprintf(text, size, "%.*s", (int) (frame.size - 8),
				 (const char *) frame.payload + 8);
	}
	return code;
}
