/* HTTP/2 frames from the bytes of a fuzzer: nearly every input is a sequence of valid frames, so that a
 * fuzzer changes their order, streams, flags, sizes and header blocks, and not only their syntax. An input is
 * a list of operations: a byte that selects one, then its parameters; missing bytes are 0. Frames without
 * valid syntax are possible, too (RAW). */
#ifndef H2_FRAMES_H
#define H2_FRAMES_H

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nghttp2/nghttp2.h>

#include "fuzz.h"

#define FRAMES_SIZE_MAX (1u << 17)

struct source {
	const uint8_t *data;
	size_t	       size;
};

struct frames {
	size_t	size;
	size_t	last; /* where the last frame begins */
	uint8_t bytes[FRAMES_SIZE_MAX];
};

static inline uint8_t take(struct source *source)
{
	if (source->size == 0)
		return 0;
	source->size--;
	return *source->data++;
}

static inline uint32_t take_number(struct source *source)
{
	uint32_t number = 0;

	for (int i = 0; i < 4; i++)
		number = number << 8 | take(source);
	return number;
}

static inline struct source take_some(struct source *source, size_t size)
{
	struct source some = { source->data, VDI_MIN(size, source->size) };

	source->data += some.size;
	source->size -= some.size;
	return some;
}

static inline void put_bytes(struct frames *frames, const void *bytes, size_t size)
{
	size = VDI_MIN(size, FRAMES_SIZE_MAX - frames->size);
	if (size)
		memcpy(frames->bytes + frames->size, bytes, size);
	frames->size += size;
}

static inline void put_frame(struct frames *frames, uint8_t type, uint8_t flags, uint32_t stream,
			     const void *payload, size_t size)
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

	frames->last = frames->size;
	put_bytes(frames, head, sizeof head);
	put_bytes(frames, payload, size);
}

/* Mostly one of the first streams of a client; sometimes an even one, none, or a high one. */
static inline uint32_t take_stream(struct source *source)
{
	uint8_t byte = take(source);

	if (byte < 0xe0)
		return 2u * (byte & 15) + 1;
	if (byte < 0xf0)
		return 2u * (byte & 15);
	return byte < 0xf8 ? 2u * (byte & 7) + 1001 : 0x7fffffffu - (byte & 7);
}

/* ---- Headers ---- */

struct field {
	const char *name, *value;
};

static const struct field fields[] = {
	{ ":method", "POST" },
	{ ":method", "GET" },
	{ ":scheme", "http" },
	{ ":path", "/test.Echo/Echo" },
	{ ":path", "/test.Echo/Chat" },
	{ ":path", "/test.Echo/Hang" },
	{ ":path", "/test.Echo/Fail" },
	{ ":path", "/health?a=b" },
	{ ":path", "" },
	{ ":authority", "fuzz" },
	{ "content-type", "application/grpc" },
	{ "content-type", "text/html" },
	{ "te", "trailers" },
	{ "grpc-timeout", "1n" },
	{ "grpc-timeout", "99999999H" },
	{ "grpc-encoding", "gzip" },
	{ "token", "abc" },
	{ "x-bin", "AAE" },
	{ "X-Capital", "x" },
	{ "connection", "close" },
	{ ":status", "200" },
	{ ":status", "100" },
	{ ":status", "503" },
	{ ":status", "0" },
	{ "grpc-status", "0" },
	{ "grpc-status", "14" },
	{ "grpc-status", "x" },
	{ "grpc-message", "50%25 of%0A%C3%A4 %" },
	{ "content-length", "5" },
	{ "content-length", "18446744073709551616" },
	{ "transfer-encoding", "chunked" },
	{ "", "" },
	{ "host", "other" },
	{ "grpc-encoding", "identity" },
};

static const uint8_t request_fields[] = { 0, 2, 3, 9, 10, 12 }, answer_fields[] = { 20, 10 },
		     end_fields[] = { 24 };

static inline size_t put_literal(uint8_t *block, uint8_t how, const void *name, size_t name_size,
				 const void *value, size_t value_size)
{
	static const uint8_t kinds[] = { 0x00, 0x40,
					 0x10 }; /* without index, kept in the table, never indexed */
	size_t		     used = 0;

	block[used++] = kinds[how % 3];
	block[used++] = (uint8_t) name_size;
	memcpy(block + used, name, name_size);
	used += name_size;
	block[used++] = (uint8_t) value_size;
	memcpy(block + used, value, value_size);
	return used + value_size;
}

static inline size_t put_field(uint8_t *block, uint8_t how, const struct field *field)
{
	return put_literal(block, how, field->name, strlen(field->name), field->value, strlen(field->value));
}

#define BLOCK_SIZE_MAX 8192

/* A usual block, followed by header fields from the input: fields of the table, new fields, references to
 * nghttp2's tables, changes of the table's size. */
static inline size_t take_block(struct source *source, uint8_t *block)
{
	static const struct {
		const uint8_t *list;
		size_t	       count;
	} usual[] = { { request_fields, sizeof request_fields },
		      { answer_fields, sizeof answer_fields },
		      { end_fields, sizeof end_fields },
		      { NULL, 0 } };
	uint8_t which = take(source);
	uint8_t more = take(source);
	size_t	used = 0;

	for (size_t i = 0; i < usual[which & 3].count; i++) {
		uint8_t at = usual[which & 3].list[i];

		if (usual[which & 3].list == request_fields && i == 2)
			at = (uint8_t) (3 + (which >> 2) % 6); /* the path */
		used += put_field(block + used, which >> 5, &fields[at]);
	}
	for (more &= 31; more && used + 600 < BLOCK_SIZE_MAX; more--) {
		uint8_t	      kind = take(source);
		struct source name, value;

		switch (kind & 3) {
		case 0:
			used += put_field(block + used, kind >> 2,
					  &fields[take(source) % VDI_ARRAY_SIZE(fields)]);
			break;
		case 1:
			name = take_some(source, kind >> 4);
			value = take_some(source, take(source) & 127);
			used += put_literal(block + used, kind >> 2, name.data, name.size, value.data,
					    value.size);
			break;
		case 2:
			block[used++] = (uint8_t) (0x80 | (take(source) & 127)); /* of the tables */
			break;
		default:
			block[used++] = (uint8_t) (0x20 | (take(source) & 31)); /* the table's size */
			break;
		}
	}
	return used;
}

/* Padding, priority and pieces depend on flags: 0x1 END_STREAM, 0x8 padded, 0x20 priority, 0x40 in pieces,
 * 0x80 without an end. */
static inline void put_headers(struct frames *frames, struct source *source, uint32_t stream, uint8_t flags,
			       const uint8_t *block, size_t size)
{
	uint8_t room[BLOCK_SIZE_MAX + 300];
	size_t	used = 0, first = size;
	uint8_t padding = flags & NGHTTP2_FLAG_PADDED ? take(source) : 0;

	if (flags & NGHTTP2_FLAG_PADDED)
		room[used++] = padding;
	if (flags & NGHTTP2_FLAG_PRIORITY) {
		uint32_t parent = take_stream(source);

		for (int i = 0; i < 4; i++)
			room[used++] = (uint8_t) (parent >> (24 - 8 * i));
		room[used++] = take(source);
	}
	if (flags & 0x40)
		first = VDI_MIN(size, (size_t) take(source));
	memcpy(room + used, block, first);
	used += first;
	memset(room + used, 0, padding);
	put_frame(frames, NGHTTP2_HEADERS,
		  (uint8_t) ((flags & 0x29) | (flags & 0xc0 ? 0 : NGHTTP2_FLAG_END_HEADERS)), stream, room,
		  used + padding);
	if (!(flags & 0x40))
		return;
	for (block += first, size -= first; size;) {
		size_t piece = VDI_MIN(size, (size_t) take(source) + 1);

		put_frame(frames, NGHTTP2_CONTINUATION,
			  piece == size && !(flags & 0x80) ? NGHTTP2_FLAG_END_HEADERS : 0, stream, block,
			  piece);
		block += piece;
		size -= piece;
	}
}

/* ---- The others ---- */

/* A message of gRPC, a piece of one, or arbitrary bytes. */
static inline void take_data(struct frames *frames, struct source *source)
{
	uint32_t      stream = take_stream(source);
	uint8_t	      flags = take(source), how = take(source);
	struct source bytes = take_some(source, how >> 2);
	uint8_t	      room[400];
	size_t	      used = 0;
	uint8_t	      padding = flags & NGHTTP2_FLAG_PADDED ? take(source) : 0;

	if (flags & NGHTTP2_FLAG_PADDED)
		room[used++] = padding;
	if ((how & 3) < 2) {
		uint32_t size = (how & 3) == 0 ? (uint32_t) bytes.size : take_number(source) & 0xffffff;

		room[used++] = flags & 0x80 ? take(source) : 0; /* compressed */
		for (int i = 0; i < 4; i++)
			room[used++] = (uint8_t) (size >> (24 - 8 * i));
	}
	memcpy(room + used, bytes.data, bytes.size);
	used += bytes.size;
	memset(room + used, 0, padding);
	put_frame(frames, NGHTTP2_DATA, flags & 9, stream, room, used + padding);
}

static inline void take_settings(struct frames *frames, struct source *source)
{
	static const uint32_t values[] = { 0, 1, 100, 16384, 65535, 1u << 24, 0x7fffffff, 0xffffffff };
	uint8_t		      count = take(source), room[7 * 6];

	for (uint8_t i = 0; i < (count & 7) % 7; i++) {
		uint8_t	 id = take(source);
		uint32_t value = id & 0x80 ? take_number(source) : values[(id >> 4) & 7];

		room[6 * i] = 0;
		room[6 * i + 1] = id & 15;
		for (int k = 0; k < 4; k++)
			room[6 * i + 2 + k] = (uint8_t) (value >> (24 - 8 * k));
	}
	put_frame(frames, NGHTTP2_SETTINGS, count & 0x40 ? NGHTTP2_FLAG_ACK : 0,
		  count & 0x80 ? take_stream(source) : 0, room, 6u * ((count & 7) % 7));
}

static inline void take_small(struct frames *frames, struct source *source, uint8_t type)
{
	uint32_t stream = take_stream(source);
	uint32_t number = take_number(source);
	uint8_t	 room[64] = { (uint8_t) (number >> 24), (uint8_t) (number >> 16), (uint8_t) (number >> 8),
			      (uint8_t) number };
	uint8_t	 flags = 0;
	size_t	 size = type == NGHTTP2_PING || type == NGHTTP2_GOAWAY ? 8 : type == NGHTTP2_PRIORITY ? 5 : 4;

	if (type == NGHTTP2_WINDOW_UPDATE && stream % 4 == 3)
		stream = 0;
	if (type == NGHTTP2_PING || type == NGHTTP2_GOAWAY)
		stream = stream < 1001 ? 0 : stream;
	if (type == NGHTTP2_PING)
		flags = number & 1;
	room[4] = type == NGHTTP2_PRIORITY ? take(source) : 0;
	put_frame(frames, type, flags, stream, room, size);
}

static inline void repeat_last(struct frames *frames, size_t times)
{
	size_t size = frames->size - frames->last;

	for (; times && size && frames->size + size <= FRAMES_SIZE_MAX; times--) {
		memcpy(frames->bytes + frames->size, frames->bytes + frames->size - size, size);
		frames->last = frames->size;
		frames->size += size;
	}
}

/* One operation. */
static inline void take_frame(struct frames *frames, struct source *source)
{
	static const uint8_t small[] = { NGHTTP2_WINDOW_UPDATE, NGHTTP2_RST_STREAM, NGHTTP2_PING,
					 NGHTTP2_GOAWAY, NGHTTP2_PRIORITY };
	uint8_t		     choice = take(source);
	uint8_t		     block[BLOCK_SIZE_MAX];
	struct source	     some;
	uint32_t	     stream;
	uint8_t		     flags;
	size_t		     size;

	switch (choice & 15) {
	case 0:
	case 1:
	case 2:
		stream = take_stream(source);
		flags = take(source);
		size = take_block(source, block);
		put_headers(frames, source, stream, flags, block, size);
		break;
	case 3: /* a block that may be invalid */
		stream = take_stream(source);
		flags = take(source);
		some = take_some(source, take(source));
		memcpy(block, some.data, some.size);
		put_headers(frames, source, stream, flags, block, some.size);
		break;
	case 4:
	case 5:
	case 6: take_data(frames, source); break;
	case 7: take_settings(frames, source); break;
	case 8:
	case 9:
	case 10:
	case 11: take_small(frames, source, small[(choice >> 4) % VDI_ARRAY_SIZE(small)]); break;
	case 12:
	case 13: repeat_last(frames, take(source)); break;
	case 14: /* of any type */
		stream = take_stream(source);
		flags = take(source);
		some = take_some(source, take(source) & 127);
		put_frame(frames, choice >> 4, flags, stream, some.data, some.size);
		break;
	default: /* bytes */
		some = take_some(source, take(source));
		put_bytes(frames, some.data, some.size);
		frames->last = frames->size - some.size;
		break;
	}
}

/* ---- The wire ---- */

/* Writes everything, and reads the answers meanwhile or (reads: false) does not. Returns false if the other
 * side has closed or does not read. */
static inline bool exchange(int fd, const uint8_t *bytes, size_t size, bool reads)
{
	static uint8_t room[1 << 16];

	while (size) {
		struct pollfd wait = { .fd = fd, .events = (short) (POLLOUT | (reads ? POLLIN : 0)) };
		ssize_t	      done = send(fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (done > 0) {
			bytes += done;
			size -= (size_t) done;
			continue;
		}
		if (done < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (!reads)
			return false;
		(void) poll(&wait, 1, -1);
		if (wait.revents & POLLIN && recv(fd, room, sizeof room, MSG_DONTWAIT) == 0)
			return false;
	}
	return true;
}

/* Reads until the other side has closed. */
static inline void read_to_end(int fd)
{
	static uint8_t room[1 << 16];
	ssize_t	       got;

	do
		got = recv(fd, room, sizeof room, 0);
	while (got > 0 || (got < 0 && errno == EINTR));
}

#endif
