/* Received bytes are kept contiguous from the first byte of a request, because its head is scanned and
 * parsed in place; an idle connection keeps none. A response is built completely before its first byte is
 * sent. A function that detects the end notes it, and it is executed at the end of the iteration (work), so
 * no caller has the connection freed under it. */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <sys/socket.h>

#include "buffer.h"
#include "env.h"
#include "h1_connection.h"
#include "http_text.h"
#include "h2_loop_state.h"

#define LINE_MAX_OF_CMUX 4096
#define METHOD_MAX 32
#define LINGER VD_MS(500) /* like Go's server */

enum state { HEAD, ANSWER, WRITING, LINGERING };

struct vdi_h1_connection {
	/* Fixed at creation. */
	struct vdi_h2_loop	 *h2_loop;
	const struct vdi_h1_side *side;
	void			 *arg;
	int			  fd; /* -1: closed */
	struct vdi_h2_link	 *link;
	vd_dur			  head_timeout;
	vd_dur			  idle_timeout;
	vd_dur			  write_timeout;
	_Atomic size_t		 *memory_used;
	size_t			  memory_max;

	struct event	    read_event;
	struct event	    write_event;
	struct vdi_h2_dirty dirty;
	struct vdi_h2_timer timer;

	enum state state;
	bool	   is_reading;
	bool	   is_recognized; /* the peer speaks HTTP/1.x */
	bool	   is_draining;
	bool	   is_over;

	/* Current request. */
	struct vdi_http_scan	scan;
	bool			keeps; /* the connection is kept open after the request */
	bool			is_version_1_0;
	bool			is_head; /* the method is HEAD: no body in the response */
	bool			is_in_body;
	bool			is_chunked;
	bool			has_answer; /* which waits for the end of the request's body */
	int64_t			body_left;
	size_t			body_size; /* bytes skipped so far */
	struct vdi_http_chunked chunked;

	struct vdi_buffer in;
	size_t		  in_used; /* bytes used of in; only those behind them count */
	struct vdi_buffer out;
	size_t		  out_used;
	size_t		  charged;
};

/* ---- Pure functions ---- */

static bool is_method_letter(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
}

/* Returns true for: method, blank, target without blanks, blank, HTTP/1.x. */
static bool is_request_line(const char *line, size_t size)
{
	const char *first = memchr(line, ' ', size);
	const char *second = first ? memchr(first + 1, ' ', (size_t) (line + size - first) - 1) : NULL;
	size_t	    left = second ? (size_t) (line + size - second) - 1 : 0;

	return left == 8 && memcmp(second + 1, "HTTP/1.", 7) == 0 && second[8] >= '0' && second[8] <= '9';
}

/* Returns true for the beginning of a TLS handshake. */
static bool is_handshake(struct vd_bytes bytes)
{
	return bytes.size >= 2 && memcmp(bytes.data, "\x16\x03", 2) == 0;
}

vd_status vdi_h1_recognize(struct vd_bytes bytes)
{
	const char *text = bytes.data;
	size_t	    size = 0;

	while (size < bytes.size && text[size] != ' ')
		if (size == METHOD_MAX || !is_method_letter(text[size++]))
			return VD_BAD_REQUEST;
	if (size == bytes.size)
		return VD_AGAIN;
	if (size == 0)
		return VD_BAD_REQUEST;
	for (; size < bytes.size && size < LINE_MAX_OF_CMUX; size++) {
		if (text[size] == '\r' || text[size] == '\n')
			return is_request_line(text, size) ? VD_OK : VD_BAD_REQUEST;
		if ((unsigned char) text[size] < 0x20 || text[size] == 0x7F)
			return VD_BAD_REQUEST;
	}
	return size == LINE_MAX_OF_CMUX ? VD_BAD_REQUEST : VD_AGAIN;
}

/* ---- End ---- */

static void note_end(struct vdi_h1_connection *connection)
{
	connection->is_over = true;
	vdi_h2_loop_list_dirty(connection->h2_loop, &connection->dirty);
}

static void close_socket(struct vdi_h1_connection *connection)
{
	if (connection->fd < 0)
		return;
	event_del(&connection->read_event);
	event_del(&connection->write_event);
	if (connection->link)
		vdi_h2_link_end(connection->link);
	(void) close(connection->fd);
	connection->fd = -1;
}

static void advance(struct vdi_h1_connection *connection);

/* Processes bytes that were read before the connection was created; executes a noted end. */
static void work(struct vdi_h2_dirty *dirty)
{
	struct vdi_h1_connection *connection = VDI_CONTAINER_OF(dirty, struct vdi_h1_connection, dirty);

	if (!connection->is_over) {
		advance(connection);
		return;
	}
	vdi_h2_timer_set(connection->h2_loop, &connection->timer, VD_NEVER);
	close_socket(connection);
	connection->side->ended(connection->arg);
}

/* The timer limits every state of the connection. */
static void fire(struct vdi_h2_timer *timer)
{
	note_end(VDI_CONTAINER_OF(timer, struct vdi_h1_connection, timer));
}

static void give_time(struct vdi_h1_connection *connection, vd_dur time)
{
	vdi_h2_timer_set(connection->h2_loop, &connection->timer,
			 vd_mono_add(vd_env_now(vdi_h2_loop_env(connection->h2_loop)), time));
}

void vdi_h1_connection_abort(struct vdi_h1_connection *connection)
{
	note_end(connection);
}

/* ---- Memory and reading ---- */

static void charge(struct vdi_h1_connection *connection)
{
	size_t cost = sizeof *connection + connection->in.capacity + connection->out.capacity;

	if (cost > connection->charged) {
		if (atomic_fetch_add_explicit(connection->memory_used, cost - connection->charged,
					      memory_order_relaxed) +
			    cost - connection->charged >
		    connection->memory_max)
			note_end(connection);
	} else
		atomic_fetch_sub_explicit(connection->memory_used, connection->charged - cost,
					  memory_order_relaxed);
	connection->charged = cost;
}

static struct vd_bytes unread(const struct vdi_h1_connection *connection)
{
	return (struct vd_bytes) { connection->in.data ? connection->in.data + connection->in_used : NULL,
				   connection->in.size - connection->in_used };
}

/* Makes room by removing used bytes. */
static void compact(struct vdi_h1_connection *connection)
{
	struct vd_bytes left = unread(connection);

	if (left.size == 0) {
		vdi_buffer_fini(&connection->in);
		vdi_buffer_init(&connection->in, VDI_H1_HEAD_MAX);
	} else {
		memmove(connection->in.data, left.data, left.size);
		connection->in.size = left.size;
	}
	connection->in_used = 0;
}

static void set_reading(struct vdi_h1_connection *connection)
{
	bool reads = connection->state == HEAD || connection->state == LINGERING || connection->is_in_body;

	if (connection->is_over || reads == connection->is_reading)
		return;
	connection->is_reading = reads;
	if (!reads)
		event_del(&connection->read_event);
	else if (event_add(&connection->read_event, NULL) != 0)
		note_end(connection);
	else if (connection->link && vdi_h2_link_has_more(connection->link))
		/* the socket would not report buffered bytes */
		event_active(&connection->read_event, EV_READ, 0);
}

/* ---- Writing ---- */

static void begin_head(struct vdi_h1_connection *connection);

static void linger(struct vdi_h1_connection *connection)
{
	connection->state = LINGERING;
	if (connection->link)
		vdi_h2_link_end(connection->link);
	(void) shutdown(connection->fd, SHUT_WR);
	give_time(connection, LINGER);
}

static void end_answer(struct vdi_h1_connection *connection)
{
	vdi_buffer_fini(&connection->out);
	vdi_buffer_init(&connection->out, SIZE_MAX / 2);
	/* A request that is still in the socket would make a close drop the end of the response. */
	if (connection->keeps && (!connection->is_draining || unread(connection).size))
		begin_head(connection);
	else
		linger(connection);
	advance(connection);
}

static void write_some(struct vdi_h1_connection *connection)
{
	while (connection->out_used < connection->out.size) {
		const char *bytes = connection->out.data + connection->out_used;
		size_t	    size = connection->out.size - connection->out_used;
		ssize_t	    sent = connection->link ?
					   vdi_h2_link_send(connection->link, bytes, size) :
					   send(connection->fd, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (sent > 0) {
			connection->out_used += (size_t) sent;
			continue;
		}
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent == 0 || (errno != EAGAIN && errno != EWOULDBLOCK && errno != ENOBUFS) ||
		    event_add(&connection->write_event, NULL) != 0)
			note_end(connection);
		return;
	}
	end_answer(connection);
}

static void start_writing(struct vdi_h1_connection *connection)
{
	connection->state = WRITING;
	connection->out_used = 0;
	give_time(connection, connection->write_timeout);
	write_some(connection);
}

static void make_answer(struct vdi_h1_connection *connection, int code, struct vd_bytes headers,
			struct vd_bytes body)
{
	struct vdi_buffer *out = &connection->out;
	char		   date[VDI_HTTP_DATE_SIZE];

	vdi_http_date(vd_env_wall(vdi_h2_loop_env(connection->h2_loop)), date);
	vdi_buffer_printf(out, "HTTP/1.%d %d %s\r\n", connection->is_version_1_0 ? 0 : 1, code,
			  vdi_http_reason_phrase(code));
	vdi_buffer_append(out, headers);
	vdi_buffer_printf(out, "Date: %s\r\n", date);
	/* with HEAD and no body the size of GET's response is unknown */
	if (body.size || !connection->is_head)
		vdi_buffer_printf(out, "Content-Length: %zu\r\n", body.size);
	if (!connection->keeps && !connection->is_version_1_0)
		vdi_buffer_append_text(out, "Connection: close\r\n");
	else if (connection->keeps && connection->is_version_1_0)
		vdi_buffer_append_text(out, "Connection: keep-alive\r\n");
	vdi_buffer_append_text(out, "\r\n");
	if (!connection->is_head)
		vdi_buffer_append(out, body);
}

void vdi_h1_connection_answer(struct vdi_h1_connection *connection, int code, struct vd_bytes headers,
			      struct vd_bytes body, bool closes)
{
	if (connection->is_over)
		return;
	VDI_CHECK(connection->state == ANSWER && !connection->has_answer);
	if (closes || connection->is_draining)
		connection->keeps = false;
	make_answer(connection, code, headers, body);
	charge(connection);
	if (vdi_buffer_status(&connection->out) != VD_OK)
		note_end(connection);
	if (connection->is_over)
		return;
	if (connection->is_in_body)
		connection->has_answer = true;
	else
		start_writing(connection);
}

/* Answers an invalid request here and closes, because the start of the next request is unknown. */
static void refuse(struct vdi_h1_connection *connection, int code, const char *message)
{
	static const char type[] = "Content-Type: text/plain; charset=utf-8\r\n";
	char		  text[160];
	int size = snprintf(text, sizeof text, "%d %s: %s", code, vdi_http_reason_phrase(code), message);

	connection->keeps = false;
	connection->is_in_body = false;
	connection->state = ANSWER;
	vdi_h1_connection_answer(connection, code, (struct vd_bytes) { type, sizeof type - 1 },
				 (struct vd_bytes) { text, VDI_MIN((size_t) size, sizeof text - 1) }, true);
}

/* ---- Requests ---- */

static void begin_head(struct vdi_h1_connection *connection)
{
	connection->state = HEAD;
	connection->scan = (struct vdi_http_scan) { 0 };
	connection->chunked = (struct vdi_http_chunked) { 0 };
	connection->body_size = 0;
	connection->has_answer = connection->is_head = connection->is_version_1_0 = false;
	compact(connection);
	give_time(connection, connection->in.size ? connection->head_timeout : connection->idle_timeout);
}

static void begin_answer(struct vdi_h1_connection *connection, const struct vdi_http_head *head)
{
	connection->state = ANSWER;
	connection->keeps = head->keep_alive;
	connection->is_version_1_0 = head->version_1_0;
	connection->is_head = head->method == VDI_HTTP_HEAD;
	connection->is_chunked = head->chunked;
	connection->body_left = head->content_length;
	connection->is_in_body = head->chunked || head->content_length > 0;
	/* No 100 (Continue) is sent, and a large body is not skipped: the connection ends with the
	 * response. */
	if (connection->is_in_body &&
	    (head->expect_continue || head->content_length > (int64_t) VDI_H1_BODY_MAX)) {
		connection->keeps = false;
		connection->is_in_body = false;
	}
	if (!connection->is_in_body)
		vdi_h2_timer_set(connection->h2_loop, &connection->timer,
				 VD_NEVER); /* the service has no time limit here */
	connection->side->request(connection->arg, head);
}

static void take_head(struct vdi_h1_connection *connection)
{
	struct vd_bytes		bytes = unread(connection);
	struct vdi_http_head	head;
	struct vdi_http_refusal refusal;
	size_t			size;
	vd_status		status;

	if (!connection->is_recognized) {
		status = vdi_h1_recognize(bytes);
		if (is_handshake(bytes))
			refuse(connection, 400,
			       /* TLS clients add this text to their own error */
			       "this port is without TLS");
		else if (status == VD_BAD_REQUEST)
			note_end(connection);
		if (status != VD_OK)
			return;
		connection->is_recognized = true;
	}
	status = vdi_http_scan(&connection->scan, bytes, &size, &refusal);
	if (status == VD_AGAIN) {
		if (bytes.size >= VDI_H1_HEAD_MAX)
			refuse(connection, 431, "Request header fields too large");
		return;
	}
	if (status == VD_OK)
		status = vdi_http_head_parse((struct vd_bytes) { bytes.data, size }, &head, &refusal);
	if (status != VD_OK) {
		refuse(connection, refusal.code, refusal.message);
		return;
	}
	begin_answer(connection, &head);
	connection->in_used += size;
}

/* Counts the bytes that belong to the body; *ret_is_all: the body ends there. */
static vd_status pass_over(struct vdi_h1_connection *connection, struct vd_bytes bytes, size_t *ret_used,
			   bool *ret_is_all)
{
	struct vdi_http_refusal refusal;
	struct vd_bytes		data;
	vd_status		status;

	if (!connection->is_chunked) {
		*ret_used = (size_t) VDI_MIN((int64_t) bytes.size, connection->body_left);
		connection->body_left -= (int64_t) *ret_used;
		*ret_is_all = connection->body_left == 0;
		return VD_OK;
	}
	status = vdi_http_chunked_take(&connection->chunked, bytes, ret_used, &data, &refusal);
	*ret_is_all = status == VD_OK;
	return status == VD_AGAIN ? VD_OK : status;
}

static void take_body(struct vdi_h1_connection *connection)
{
	bool is_all = false;

	while (!is_all && unread(connection).size) {
		size_t used;

		if (pass_over(connection, unread(connection), &used, &is_all) != VD_OK ||
		    (connection->body_size += used) > VDI_H1_BODY_MAX) {
			connection->keeps = false; /* the response is sent even so */
			is_all = true;
			used = 0;
		}
		connection->in_used += used;
	}
	if (!is_all) {
		compact(connection);
		return;
	}
	connection->is_in_body = false;
	if (connection->has_answer)
		start_writing(connection);
	else
		vdi_h2_timer_set(connection->h2_loop, &connection->timer, VD_NEVER);
}

static void advance(struct vdi_h1_connection *connection)
{
	if (!connection->is_over && connection->state == HEAD)
		take_head(connection);
	if (!connection->is_over && connection->is_in_body)
		take_body(connection);
	charge(connection);
	set_reading(connection);
}

/* ---- The socket ---- */

static void take_end(struct vdi_h1_connection *connection)
{
	if (connection->state == HEAD && connection->is_recognized && unread(connection).size)
		refuse(connection, 400, "malformed request: it ends too early");
	else
		note_end(connection);
}

/* False: no more bytes now. */
static bool read_some(struct vdi_h1_connection *connection)
{
	char  *input = vdi_h2_loop_input(connection->h2_loop);
	size_t room =
		connection->state == LINGERING ? VDI_H2_SCRATCH_SIZE : VDI_H1_HEAD_MAX - connection->in.size;
	ssize_t got = connection->link ? vdi_h2_link_receive(connection->link, input, room) :
					 recv(connection->fd, input, room, MSG_DONTWAIT);

	if (got < 0 && errno == EINTR)
		return true;
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return false;
	if (got <= 0) {
		if (got < 0)
			note_end(connection);
		else
			take_end(connection);
		return false;
	}
	if (connection->state == LINGERING)
		return true;
	if (connection->state == HEAD && connection->in.size == 0)
		give_time(connection, connection->head_timeout);
	vdi_buffer_append(&connection->in, (struct vd_bytes) { input, (size_t) got });
	if (vdi_buffer_status(&connection->in) != VD_OK) {
		note_end(connection);
		return false;
	}
	advance(connection);
	return connection->link && vdi_h2_link_has_more(connection->link);
}

#define ROUNDS_MAX 8 /* reads per iteration */

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct vdi_h1_connection *connection = arg;
	bool			  has_more = true;

	(void) fd;
	(void) what;
	for (unsigned i = 0; i < ROUNDS_MAX && has_more && connection->is_reading && !connection->is_over;
	     i++)
		has_more = read_some(connection);
	if (has_more && connection->link && connection->is_reading && !connection->is_over)
		event_active(&connection->read_event, EV_READ, 0);
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct vdi_h1_connection *connection = arg;

	(void) fd;
	(void) what;
	if (!connection->is_over && connection->state == WRITING)
		write_some(connection);
}

/* ---- Begin and end ---- */

vd_status vdi_h1_connection_new(struct vdi_h2_loop *h2_loop, const struct vdi_h1_options *options,
				struct vdi_h1_connection **ret_connection)
{
	struct vdi_h1_connection *connection = VDI_NEW(struct vdi_h1_connection);
	struct event_base	 *base = vdi_loop_base(vdi_h2_loop_event_loop(h2_loop));

	if (connection == NULL)
		return VD_NOMEM;
	connection->h2_loop = h2_loop;
	connection->side = options->side;
	connection->arg = options->arg;
	connection->fd = options->fd;
	connection->head_timeout = options->head_timeout;
	connection->idle_timeout = options->idle_timeout;
	connection->write_timeout = options->write_timeout;
	connection->memory_used = options->memory_used;
	connection->memory_max = options->memory_max;
	connection->is_recognized = options->link != NULL;
	connection->dirty.work = work;
	connection->timer.fire = fire;
	vdi_buffer_init(&connection->in, VDI_H1_HEAD_MAX);
	vdi_buffer_init(&connection->out, SIZE_MAX / 2);
	vdi_buffer_append(&connection->in, options->first);
	if (vdi_buffer_status(&connection->in) != VD_OK ||
	    event_assign(&connection->read_event, base, options->fd, EV_READ | EV_PERSIST, on_readable,
			 connection) != 0 ||
	    event_assign(&connection->write_event, base, options->fd, EV_WRITE, on_writable, connection) !=
		    0) {
		vdi_buffer_fini(&connection->in);
		vdi_free(connection);
		return VD_NOMEM;
	}
	connection->link = options->link;
	begin_head(connection);
	give_time(connection, connection->head_timeout);
	vdi_h2_loop_list_dirty(h2_loop, &connection->dirty);
	*ret_connection = connection;
	return VD_OK;
}

struct vdi_h1_connection *vdi_h1_connection_free(struct vdi_h1_connection *connection)
{
	if (connection == NULL)
		return NULL;
	close_socket(connection);
	vdi_h2_timer_set(connection->h2_loop, &connection->timer, VD_NEVER);
	vdi_h2_loop_unlist_dirty(connection->h2_loop, &connection->dirty);
	atomic_fetch_sub_explicit(connection->memory_used, connection->charged, memory_order_relaxed);
	(void) vdi_h2_link_free(connection->link);
	vdi_buffer_fini(&connection->in);
	vdi_buffer_fini(&connection->out);
	vdi_free(connection);
	return NULL;
}

void vdi_h1_connection_drain(struct vdi_h1_connection *connection)
{
	connection->is_draining = true;
	if (connection->state == HEAD && unread(connection).size == 0)
		note_end(connection);
}
