/* Reads at most the size of the preface, and keeps the bytes while they match its beginning, so no bytes must
 * be returned to the socket. */
#include <errno.h>
#include <unistd.h>

#include <event2/event.h>
#include <event2/event_struct.h>
#include <nghttp2/nghttp2.h>
#include <sys/socket.h>

#include "env.h"
#include "h2_detection.h"

_Static_assert(VDI_H2_PREFACE_SIZE == NGHTTP2_CLIENT_MAGIC_LEN, "the preface of HTTP/2");

struct vdi_h2_opening {
	struct vdi_h2_hub   *hub;
	struct vdi_h2_timer  timer;
	struct event	     read_event;
	struct event	     write_event;
	struct vdi_h2_opened opened; /* as far as known */
	bool		     is_shaking;
	void (*tell)(void *arg, const struct vdi_h2_opened *opened);
	void *arg;
};

/* ---- End ---- */

static void leave_loop(struct vdi_h2_opening *opening)
{
	event_del(&opening->read_event);
	event_del(&opening->write_event);
	vdi_h2_timer_set(opening->hub, &opening->timer, VD_NEVER);
}

static void close_socket(struct vdi_h2_opening *opening)
{
	if (opening->opened.link)
		vdi_h2_link_end(opening->opened.link);
	opening->opened.link = vdi_h2_link_free(opening->opened.link);
	if (opening->opened.fd >= 0)
		(void) close(opening->opened.fd);
	opening->opened.fd = -1;
}

static void finish(struct vdi_h2_opening *opening, enum vdi_h2_opened_as as)
{
	struct vdi_h2_opened opened;

	leave_loop(opening);
	if (as == VDI_H2_OPENED_NOTHING)
		close_socket(opening);
	opening->opened.as = as;
	opened = opening->opened;
	opening->opened.fd = -1;
	opening->opened.link = NULL;
	opening->tell(opening->arg, &opened);
}

static void fire(struct vdi_h2_timer *timer)
{
	finish(VDI_CONTAINER_OF(timer, struct vdi_h2_opening, timer), VDI_H2_OPENED_NOTHING);
}

/* ---- First bytes ---- */

static void read_some(struct vdi_h2_opening *opening)
{
	struct vdi_h2_opened *opened = &opening->opened;
	char		     *room = opened->bytes + opened->size;
	size_t		      left = VDI_H2_PREFACE_SIZE - opened->size;
	ssize_t		      got;

	do
		got = opened->link ? vdi_h2_link_receive(opened->link, room, left) :
				     recv(opened->fd, room, left, MSG_DONTWAIT);
	while (got < 0 && errno == EINTR);
	if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
		return;
	if (got <= 0) {
		finish(opening, VDI_H2_OPENED_NOTHING);
		return;
	}
	opened->size += (size_t) got;
	if (memcmp(opened->bytes, NGHTTP2_CLIENT_MAGIC, opened->size) != 0)
		finish(opening, VDI_H2_OPENED_OTHER);
	else if (opened->size == VDI_H2_PREFACE_SIZE)
		finish(opening, opened->link ? VDI_H2_OPENED_NOTHING : VDI_H2_OPENED_HTTP2);
	else if (opened->link && vdi_h2_link_has_more(opened->link))
		/* the socket would not report buffered bytes */
		event_active(&opening->read_event, EV_READ, 0);
}

static void shake(struct vdi_h2_opening *opening)
{
	bool	  wants_write;
	vd_status status = vdi_h2_link_shake(opening->opened.link, &wants_write);

	if (status == VD_AGAIN) {
		if (wants_write && event_add(&opening->write_event, NULL) != 0)
			finish(opening, VDI_H2_OPENED_NOTHING);
		return;
	}
	opening->is_shaking = false;
	if (status != VD_OK)
		finish(opening, VDI_H2_OPENED_NOTHING);
	else if (vdi_h2_link_is_http2(opening->opened.link))
		finish(opening, VDI_H2_OPENED_HTTP2);
	else if (vdi_h2_link_has_more(opening->opened.link))
		event_active(&opening->read_event, EV_READ, 0);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct vdi_h2_opening *opening = arg;

	(void) fd;
	(void) what;
	if (opening->is_shaking)
		shake(opening);
	else
		read_some(opening);
}

/* ---- Creation and end ---- */

vd_status vdi_h2_opening_new(struct vdi_h2_hub *hub, const struct vdi_h2_opening_options *options,
			     struct vdi_h2_opening **ret_opening)
{
	struct vdi_h2_opening *opening = VDI_NEW(struct vdi_h2_opening);
	struct event_base     *base = vdi_loop_base(vdi_h2_hub_loop(hub));

	if (opening == NULL)
		return VD_NOMEM;
	opening->hub = hub;
	opening->tell = options->opened;
	opening->arg = options->arg;
	opening->timer.fire = fire;
	opening->is_shaking = options->tls != NULL;
	opening->opened.fd = options->fd;
	if ((options->tls &&
	     vdi_h2_link_new(options->tls, options->fd, NULL, &opening->opened.link) != VD_OK) ||
	    event_assign(&opening->read_event, base, options->fd, EV_READ | EV_PERSIST, on_ready, opening) !=
		    0 ||
	    event_assign(&opening->write_event, base, options->fd, EV_WRITE, on_ready, opening) != 0 ||
	    event_add(&opening->read_event, NULL) != 0) {
		(void) vdi_h2_link_free(opening->opened.link);
		vdi_free(opening);
		return VD_NOMEM;
	}
	vdi_h2_timer_set(hub, &opening->timer,
			 vd_mono_add(vd_env_now(vdi_h2_hub_env(hub)), options->timeout));
	*ret_opening = opening;
	return VD_OK;
}

struct vdi_h2_opening *vdi_h2_opening_free(struct vdi_h2_opening *opening)
{
	if (opening == NULL)
		return NULL;
	if (opening->opened.fd >= 0)
		leave_loop(opening);
	close_socket(opening);
	vdi_free(opening);
	return NULL;
}
