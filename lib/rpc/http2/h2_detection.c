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

struct vdi_h2_detection {
	struct vdi_h2_loop  *h2_loop;
	struct vdi_h2_timer  timer;
	struct event	     read_event;
	struct event	     write_event;
	struct vdi_h2_opened opened; /* as far as known */
	bool		     is_shaking;
	void (*on_opened)(void *arg, const struct vdi_h2_opened *opened);
	void *arg;
};

/* ---- End ---- */

static void leave_loop(struct vdi_h2_detection *detection)
{
	event_del(&detection->read_event);
	event_del(&detection->write_event);
	vdi_h2_timer_set(detection->h2_loop, &detection->timer, VD_NEVER);
}

static void close_socket(struct vdi_h2_detection *detection)
{
	if (detection->opened.link)
		vdi_h2_link_end(detection->opened.link);
	detection->opened.link = vdi_h2_link_free(detection->opened.link);
	if (detection->opened.fd >= 0)
		(void) close(detection->opened.fd);
	detection->opened.fd = -1;
}

static void finish(struct vdi_h2_detection *detection, enum vdi_h2_opened_as as)
{
	struct vdi_h2_opened opened;

	leave_loop(detection);
	if (as == VDI_H2_OPENED_NOTHING)
		close_socket(detection);
	detection->opened.as = as;
	opened = detection->opened;
	detection->opened.fd = -1;
	detection->opened.link = NULL;
	detection->on_opened(detection->arg, &opened);
}

static void fire(struct vdi_h2_timer *timer)
{
	finish(VDI_CONTAINER_OF(timer, struct vdi_h2_detection, timer), VDI_H2_OPENED_NOTHING);
}

/* ---- First bytes ---- */

static void read_some(struct vdi_h2_detection *detection)
{
	struct vdi_h2_opened *opened = &detection->opened;
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
		finish(detection, VDI_H2_OPENED_NOTHING);
		return;
	}
	opened->size += (size_t) got;
	if (memcmp(opened->bytes, NGHTTP2_CLIENT_MAGIC, opened->size) != 0)
		finish(detection, VDI_H2_OPENED_OTHER);
	else if (opened->size == VDI_H2_PREFACE_SIZE)
		finish(detection, opened->link ? VDI_H2_OPENED_NOTHING : VDI_H2_OPENED_HTTP2);
	else if (opened->link && vdi_h2_link_has_more(opened->link))
		/* the socket would not report buffered bytes */
		event_active(&detection->read_event, EV_READ, 0);
}

static void shake(struct vdi_h2_detection *detection)
{
	bool	  wants_write;
	vd_status status = vdi_h2_link_shake(detection->opened.link, &wants_write);

	if (status == VD_AGAIN) {
		if (wants_write && event_add(&detection->write_event, NULL) != 0)
			finish(detection, VDI_H2_OPENED_NOTHING);
		return;
	}
	detection->is_shaking = false;
	if (status != VD_OK)
		finish(detection, VDI_H2_OPENED_NOTHING);
	else if (vdi_h2_link_is_http2(detection->opened.link))
		finish(detection, VDI_H2_OPENED_HTTP2);
	else if (vdi_h2_link_has_more(detection->opened.link))
		event_active(&detection->read_event, EV_READ, 0);
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct vdi_h2_detection *detection = arg;

	(void) fd;
	(void) what;
	if (detection->is_shaking)
		shake(detection);
	else
		read_some(detection);
}

/* ---- Creation and end ---- */

vd_status vdi_h2_detection_new(struct vdi_h2_loop *h2_loop, const struct vdi_h2_detection_options *options,
			       struct vdi_h2_detection **ret_detection)
{
	struct vdi_h2_detection *detection = VDI_NEW(struct vdi_h2_detection);
	struct event_base	*base = vdi_loop_base(vdi_h2_loop_event_loop(h2_loop));

	if (detection == NULL)
		return VD_NOMEM;
	detection->h2_loop = h2_loop;
	detection->on_opened = options->opened;
	detection->arg = options->arg;
	detection->timer.fire = fire;
	detection->is_shaking = options->tls != NULL;
	detection->opened.fd = options->fd;
	if ((options->tls &&
	     vdi_h2_link_new(options->tls, options->fd, NULL, &detection->opened.link) != VD_OK) ||
	    event_assign(&detection->read_event, base, options->fd, EV_READ | EV_PERSIST, on_ready,
			 detection) != 0 ||
	    event_assign(&detection->write_event, base, options->fd, EV_WRITE, on_ready, detection) != 0 ||
	    event_add(&detection->read_event, NULL) != 0) {
		(void) vdi_h2_link_free(detection->opened.link);
		vdi_free(detection);
		return VD_NOMEM;
	}
	vdi_h2_timer_set(h2_loop, &detection->timer,
			 vd_mono_add(vd_env_now(vdi_h2_loop_env(h2_loop)), options->timeout));
	*ret_detection = detection;
	return VD_OK;
}

struct vdi_h2_detection *vdi_h2_detection_free(struct vdi_h2_detection *detection)
{
	if (detection == NULL)
		return NULL;
	if (detection->opened.fd >= 0)
		leave_loop(detection);
	close_socket(detection);
	vdi_free(detection);
	return NULL;
}
