/* The transport's thread passes on messages into the stream's queue, the stream's end, and a wake of the
 * actor. Nothing is decoded here.
 *
 * One message is requested at a time, and the next one at once, unless the queue or its bytes have reached
 * their limit; then the actor requests again when enough is processed. Bytes count until they are processed,
 * so messages that the actor is working on are bounded too. */
#include <stdio.h>

#include "etcd_watch_stream.h"

static size_t cost(const struct vdi_rpc_message *message)
{
	return message->bytes.size + sizeof *message;
}

static bool has_room_locked(const struct vdi_etcd_watch_stream *stream)
{
	return stream->received_bytes < VDI_ETCD_WATCH_RECEIVED_BYTES_MAX &&
	       !vdi_queue_is_full(&stream->received);
}

static void on_opened(void *arg, const char *endpoint)
{
	struct vdi_etcd_watch_stream *stream = arg;

	vdi_lock_acquire(&stream->set->lock);
	stream->has_opened = true;
	stream->opened_at = vd_env_now(stream->set->env);
	(void) snprintf(stream->endpoint, sizeof stream->endpoint, "%s", endpoint);
	vdi_lock_release(&stream->set->lock);
}

static void on_message(void *arg, struct vdi_rpc_message *message)
{
	struct vdi_etcd_watch_stream *stream = arg;
	vd_status		      status;
	bool			      is_paused, is_news;

	vdi_lock_acquire(&stream->set->lock);
	status = vdi_queue_put(&stream->received, message);
	VDI_CHECK(status == VD_OK); /* no message is requested while it is full */
	stream->received_bytes += cost(message);
	is_paused = stream->is_paused = !has_room_locked(stream);
	is_news = vdi_etcd_watch_set_list_locked(stream->set, stream);
	vdi_lock_release(&stream->set->lock);
	if (!is_paused)
		vdi_etcd_stream_receive(stream->rpc);
	/* Last, so that the actor does not run before this is done. The stream and its set exist until the
	 * end is delivered, which is later. */
	if (is_news)
		vd_actor_wake(stream->set->actor);
}

static void on_ended(void *arg, const struct vdi_rpc_end *end)
{
	struct vdi_etcd_watch_stream *stream = arg;

	vdi_lock_acquire(&stream->set->lock);
	stream->has_ended = true;
	vdi_etcd_end_copy(&stream->end, end);
	vdi_etcd_watch_set_attend_locked(stream->set, stream);
	vdi_lock_release(&stream->set->lock);
}

const struct vdi_rpc_stream_handlers vdi_etcd_watch_inbox_handlers = { on_opened, on_message, on_ended };

void vdi_etcd_watch_inbox_reset(struct vdi_etcd_watch_stream *stream)
{
	vdi_lock_acquire(&stream->set->lock);
	VDI_CHECK(stream->received.count == 0);
	stream->received_bytes = 0;
	stream->is_paused = false;
	stream->has_opened = false;
	stream->has_ended = false;
	vdi_lock_release(&stream->set->lock);
}

size_t vdi_etcd_watch_inbox_take(struct vdi_etcd_watch_stream *stream, struct vdi_rpc_message *ret_messages,
				 size_t count)
{
	size_t taken = 0;

	vdi_lock_acquire(&stream->set->lock);
	while (taken < count && vdi_queue_take(&stream->received, &ret_messages[taken]))
		taken++;
	vdi_lock_release(&stream->set->lock);
	return taken;
}

void vdi_etcd_watch_inbox_done(struct vdi_etcd_watch_stream *stream, const struct vdi_rpc_message *messages,
			       size_t count)
{
	size_t bytes = 0;
	bool   is_resumed;

	for (size_t i = 0; i < count; i++)
		bytes += cost(&messages[i]);
	vdi_lock_acquire(&stream->set->lock);
	stream->received_bytes -= bytes;
	is_resumed = stream->is_paused && !stream->has_ended && has_room_locked(stream);
	if (is_resumed)
		stream->is_paused = false;
	vdi_lock_release(&stream->set->lock);
	if (is_resumed)
		vdi_etcd_stream_receive(stream->rpc);
}
