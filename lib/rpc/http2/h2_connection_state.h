/* The private struct of one HTTP/2 connection, shared by its two files: the socket (h2_connection.c) and
 * nghttp2's session (h2_session.c). Thread of the connection's loop only. */
#ifndef VDI_H2_CONNECTION_STATE_H
#define VDI_H2_CONNECTION_STATE_H

#include <event2/event.h>
#include <event2/event_struct.h>

#include "h2_connection.h"
#include "h2_loop_state.h"

#define VDI_H2_DATA_SIZE_MAX ((size_t) 16384) /* content of one DATA frame */
#define VDI_H2_WHY_SIZE 256

struct vdi_h2_connection {
	struct vdi_h2_loop	 *h2_loop;
	const struct vdi_h2_side *side;
	void			 *arg;
	nghttp2_session		 *session;
	struct vdi_h2_link	 *link; /* NULL: plain text */
	int			  fd;
	bool			  is_server;
	vd_dur			  keepalive_time;
	vd_dur			  keepalive_timeout;
	bool			  keepalive_without_streams;
	vd_dur			  ping_interval_min;

	struct event	    read_event;
	struct event	    write_event;
	struct vdi_h2_dirty dirty;
	struct vdi_h2_timer timer; /* deadline until ready, then keepalive, then closing */

	bool	 is_connecting;
	bool	 is_shaking;
	bool	 is_ready;
	bool	 is_receiving; /* inside nghttp2_session_mem_recv */
	bool	 is_paused;    /* no reads before a write completes */
	bool	 is_closing;
	bool	 is_deaf;      /* the connection is closing and ignores further input */
	bool	 is_lingering; /* everything is written and shut down; waits for the peer's end */
	bool	 is_over;
	bool	 has_goaway; /* sent by either side */
	vd_dur	 close_timeout;
	char	 why[VDI_H2_WHY_SIZE];
	char	 hint[VDI_H2_WHY_SIZE]; /* likely cause if the connection ends */
	char	*kept;			/* bytes that the socket did not take */
	size_t	 kept_size;
	size_t	 kept_used;
	size_t	 output_size; /* bytes in the h2_loop's output while it is filled */
	bool	 is_full;     /* the output has no room for a DATA frame */
	size_t	 headers_size;
	unsigned streams;
	int32_t	 not_sent_id;
	bool	 has_pinged;
	vd_mono	 received_at;
	vd_mono	 pinged_at; /* time of the peer's last ping */
	unsigned strikes;
};

/* Creates nghttp2's session with its callbacks and limits. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_session_new(struct vdi_h2_connection *connection);
/* Submits our SETTINGS and the connection's window. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_h2_session_introduce(struct vdi_h2_connection	       *connection,
						const struct vdi_h2_connection_options *options);
/* True if the h2_loop's output buffer has room for one more DATA frame; nghttp2 makes none larger. */
static inline bool vdi_h2_session_has_room(const struct vdi_h2_connection *connection)
{
	return connection->output_size + 9 + VDI_H2_DATA_SIZE_MAX <= VDI_H2_SCRATCH_SIZE;
}
/* Sets the timer to the next keepalive ping, counted from the last byte received. */
void vdi_h2_connection_arm_keepalive(struct vdi_h2_connection *connection);

#endif
