/* The client: its endpoints, the iterations of its one thread, and its end.
 *
 * The client does its own load balancing: each endpoint has a channel of its own, and calls take the next
 * ready one, round robin (docs/decisions/one-channel-per-endpoint.md). The queue's thread sleeps in core.
 * After a wake, or when a timer is due, it runs an iteration:
 *   add new and retire removed endpoints -> end calls whose time is over -> start calls that have a ready
 *   channel -> report ends -> probe failing endpoints
 *
 * Closing: close marks the client; the next iteration stops all rpcs and removes all endpoints; each of them
 * that ends wakes a further iteration. When none is left the queue is stopped, and when its last tag has
 * returned its thread frees the client and stops core.
 */
#include <stdio.h>

#include "grpc_client_state.h"
#include "grpc_transport.h"
#include "grpc_credentials.h"
#include "rpc_endpoint.h"

#define MEMORY_MIN ((size_t) 512 << 20)
#define MEMORY_MAX ((size_t) 4 << 30)

static struct vdi_grpc_client *client_of(struct vdi_rpc_client *client)
{
	return VDI_CONTAINER_OF(client, struct vdi_grpc_client, client);
}

/* ---- Endpoints ---- */

static void append_endpoint(const struct vdi_grpc_channel *channel, char *text, size_t size)
{
	size_t used = strlen(text);

	snprintf(text + used, size - used, "%s%s (%s)", text[used - 1] == ' ' ? "" : ", ", channel->name,
		 channel->last_error[0] ? channel->last_error : "not connected yet");
}

void vdi_grpc_client_describe_unready(struct vdi_grpc_client *client, const struct vdi_grpc_channel *only,
				      char *text, size_t size)
{
	vdi_lock_acquire(&client->lock);
	snprintf(text, size, "no endpoint is connected: ");
	if (only)
		append_endpoint(only, text, size);
	for (size_t i = 0; only == NULL && i < client->channel_count; i++)
		append_endpoint(client->channels[i], text, size);
	vdi_lock_release(&client->lock);
}

static void remove_channel_locked(struct vdi_grpc_channel *channel)
{
	struct vdi_grpc_client *client = channel->client;

	channel->is_removed = true;
	channel->is_ready = false;
	channel->removed_next = client->removed;
	client->removed = channel;
	for (struct vdi_grpc_link *link = client->live.next; link != &client->live; link = link->next) {
		struct vdi_grpc_rpc *rpc = vdi_grpc_rpc_of_live(link);

		if ((rpc->channel == channel && rpc->ops->is_stream) ||
		    (rpc->only == channel && rpc->place == VDI_GRPC_WAITING))
			vdi_grpc_rpc_stop_locked(rpc, VDI_GRPC_REMOVED);
	}
}

/* Frees channels that were never listed. */
static void free_channels_locked(struct vdi_grpc_client *client, struct vdi_grpc_channel **channels,
				 size_t count)
{
	client->channels_alive += count;
	for (size_t i = 0; i < count; i++)
		vdi_grpc_channel_unref_locked(channels[i]);
	vdi_free(channels);
}

static void free_channels(struct vdi_grpc_client *client, struct vdi_grpc_channel **channels, size_t count)
{
	vdi_lock_acquire(&client->lock);
	free_channels_locked(client, channels, count);
	vdi_lock_release(&client->lock);
}

static vd_status make_channels(struct vdi_grpc_client *client, const char *const *endpoints, size_t count,
			       struct vdi_grpc_channel ***ret_channels, struct vd_error *reterr)
{
	struct vdi_grpc_channel **channels;

	if (count == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "etcdclient: no available endpoints");
	channels = vdi_calloc(count, sizeof channels[0]);
	if (channels == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < count; i++) {
		vd_status status = vdi_grpc_channel_new(client, endpoints[i], &channels[i], reterr);

		if (status != VD_OK) {
			free_channels(client, channels, i);
			return status;
		}
	}
	*ret_channels = channels;
	return VD_OK;
}

/* An endpoint in both lists keeps its connection: the old channel replaces the new one. */
static void keep_old_locked(struct vdi_grpc_client *client, struct vdi_grpc_channel **channels, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < client->channel_count; j++) {
			if (strcmp(channels[i]->name, client->channels[j]->name) == 0) {
				struct vdi_grpc_channel *swap = channels[i];

				channels[i] = client->channels[j];
				client->channels[j] = swap;
				break;
			}
		}
	}
}

static vd_status set_endpoints(struct vdi_rpc_client *base, const char *const *endpoints, size_t count,
			       struct vd_error *reterr)
{
	struct vdi_grpc_client	 *client = client_of(base);
	struct vdi_grpc_channel **channels;
	struct vdi_grpc_channel **old;

	VDI_TRY(make_channels(client, endpoints, count, &channels, reterr));
	vdi_lock_acquire(&client->lock);
	if (client->is_closing) {
		free_channels_locked(client, channels, count);
		vdi_lock_release(&client->lock);
		return VD_CLOSED;
	}
	client->channels_alive += count;
	keep_old_locked(client, channels, count);
	old = client->channels;
	for (size_t i = 0; i < client->channel_count; i++)
		remove_channel_locked(old[i]);
	client->channels = channels;
	client->channel_count = count;
	client->channel_next = 0;
	vdi_grpc_queue_wake(client->queue);
	vdi_lock_release(&client->lock);
	vdi_free(old);
	return VD_OK;
}

static size_t endpoint_count(struct vdi_rpc_client *base)
{
	struct vdi_grpc_client *client = client_of(base);
	size_t			count;

	vdi_lock_acquire(&client->lock);
	count = client->channel_count;
	vdi_lock_release(&client->lock);
	return count;
}

static bool endpoint_state(struct vdi_rpc_client *base, size_t index,
			   struct vdi_rpc_endpoint_state *ret_state)
{
	struct vdi_grpc_client *client = client_of(base);
	bool			found;

	vdi_lock_acquire(&client->lock);
	found = index < client->channel_count;
	if (found) {
		const struct vdi_grpc_channel *channel = client->channels[index];

		ret_state->endpoint = channel->name;
		ret_state->ready = channel->is_ready;
		snprintf(ret_state->last_error, sizeof ret_state->last_error, "%s", channel->last_error);
	}
	vdi_lock_release(&client->lock);
	return found;
}

/* ---- Iterations ---- */

static void cut_locked(struct vdi_grpc_client *client)
{
	for (struct vdi_grpc_link *link = client->live.next; link != &client->live; link = link->next)
		vdi_grpc_rpc_stop_locked(vdi_grpc_rpc_of_live(link), VDI_GRPC_CLOSED);
	for (size_t i = 0; i < client->channel_count; i++)
		remove_channel_locked(client->channels[i]);
	vdi_free(client->channels);
	client->channels = NULL;
	client->channel_count = 0;
}

/* Takes a reference, because another thread may replace the list in between. */
static struct vdi_grpc_channel *hold_channel(struct vdi_grpc_client *client, size_t index)
{
	struct vdi_grpc_channel *channel = NULL;

	vdi_lock_acquire(&client->lock);
	if (index < client->channel_count) {
		channel = client->channels[index];
		channel->references++;
	}
	vdi_lock_release(&client->lock);
	return channel;
}

static void drop_channel(struct vdi_grpc_channel *channel)
{
	struct vdi_grpc_client *client = channel->client;

	vdi_lock_acquire(&client->lock);
	vdi_grpc_channel_unref_locked(channel);
	vdi_lock_release(&client->lock);
}

static void tend_channels(struct vdi_grpc_client *client)
{
	struct vdi_grpc_channel *channel;
	struct vdi_grpc_channel *removed;

	vdi_lock_acquire(&client->lock);
	if (client->is_closing && !client->is_cut) {
		client->is_cut = true;
		cut_locked(client);
	}
	removed = client->removed;
	client->removed = NULL;
	vdi_lock_release(&client->lock);
	while (removed) {
		struct vdi_grpc_channel *next = removed->removed_next;

		vdi_grpc_channel_retire(removed);
		removed = next;
	}
	for (size_t i = 0; (channel = hold_channel(client, i)) != NULL; i++) {
		if (channel->core)
			vdi_grpc_channel_tend(channel);
		drop_channel(channel);
	}
}

static vd_mono probe_channels(struct vdi_grpc_client *client, vd_mono now)
{
	struct vdi_grpc_channel *channel;
	vd_mono			 due = VD_NEVER;

	for (size_t i = 0; (channel = hold_channel(client, i)) != NULL; i++) {
		vd_mono next = vdi_grpc_channel_probe(channel, now);

		due.ns = VDI_MIN(due.ns, next.ns);
		drop_channel(channel);
	}
	return due;
}

static vd_mono run_iteration(void *arg)
{
	struct vdi_grpc_client *client = arg;
	vd_mono			now = vd_env_now(client->env);
	vd_mono			due;
	bool			is_over;

	tend_channels(client);
	vdi_grpc_rpc_expire(client, now);
	vdi_grpc_rpc_start_waiting(client);
	vdi_grpc_rpc_notify_refused(client);
	due = probe_channels(client, now);
	vdi_lock_acquire(&client->lock);
	due.ns = VDI_MIN(due.ns, vdi_timer_heap_next_due(&client->timers).ns);
	client->next_iteration = due;
	is_over = client->is_cut && vdi_grpc_link_is_empty(&client->live) && client->channels_alive == 0;
	vdi_lock_release(&client->lock);
	if (is_over)
		vdi_grpc_queue_stop(client->queue);
	return due;
}

/* ---- Creation and end ---- */

static void free_client(struct vdi_grpc_client *client)
{
	if (client->credentials)
		grpc_channel_credentials_release(client->credentials);
	grpc_resource_quota_unref(client->quota);
	vdi_grpc_runtime_leave(&client->user);
	vdi_lock_fini(&client->lock);
	vdi_free(client->server_name);
	vdi_free(client);
}

static void finish_client(void *arg)
{
	struct vdi_grpc_client *client = arg;
	void (*done)(void *arg) = client->done;
	void *done_arg = client->done_arg;

	free_client(client);
	if (done)
		done(done_arg);
}

static void close_client(struct vdi_rpc_client *base, void (*done)(void *arg), void *arg)
{
	struct vdi_grpc_client *client = client_of(base);

	vdi_lock_acquire(&client->lock);
	VDI_CHECK(!client->is_closing);
	client->is_closing = true;
	client->done = done;
	client->done_arg = arg;
	vdi_grpc_queue_wake(client->queue);
	vdi_lock_release(&client->lock);
}

/* Core bounds neither headers nor messages while it receives them; this bounds the memory that a faulty
 * server can make the client use. */
static size_t memory_max(const struct vdi_grpc_client *client)
{
	size_t twice = client->receive_size_max > MEMORY_MAX / 2 ? MEMORY_MAX : client->receive_size_max * 2;

	return VDI_MAX(twice, MEMORY_MIN);
}

static vd_status set_up(struct vdi_grpc_client *client, const struct vdi_rpc_client_options *options,
			struct vd_error *reterr)
{
	struct vdi_grpc_queue_options queue_options = { .name = "vedette-grpc",
							.iterate = run_iteration,
							.ended = finish_client,
							.arg = client,
							.lends = true };

	VDI_TRY(vdi_rpc_endpoints_use_tls(options->endpoints, options->endpoint_count, options->tls != NULL,
					  &client->has_tls, reterr));
	if (options->tls && options->tls->server_name) {
		client->server_name = vdi_strdup(options->tls->server_name);
		if (client->server_name == NULL)
			return VD_NOMEM;
	}
	if (client->has_tls)
		VDI_TRY(vdi_grpc_credentials_client(options->tls, &client->credentials, reterr));
	else
		client->credentials = grpc_insecure_credentials_create();
	VDI_TRY(make_channels(client, options->endpoints, options->endpoint_count, &client->channels,
			      reterr));
	client->channel_count = client->channels_alive = options->endpoint_count;
	return vdi_grpc_queue_new(client->env, &queue_options, &client->queue);
}

vd_status vdi_grpc_client_new(const struct vd_env *env, const struct vdi_rpc_client_options *options,
			      struct vdi_rpc_client **ret_client, struct vd_error *reterr)
{
	static const struct vdi_rpc_client_ops ops = {
		.call = vdi_grpc_call,
		.call_cancel = vdi_grpc_call_cancel,
		.stream_open = vdi_grpc_stream_open,
		.stream_send = vdi_grpc_stream_send,
		.stream_receive = vdi_grpc_stream_receive,
		.stream_half_close = vdi_grpc_stream_half_close,
		.stream_cancel = vdi_grpc_stream_cancel,
		.stream_free = vdi_grpc_stream_free,
		.set_endpoints = set_endpoints,
		.endpoint_count = endpoint_count,
		.endpoint_state = endpoint_state,
		.close = close_client,
	};
	struct vdi_grpc_client *client = VDI_NEW(struct vdi_grpc_client);
	vd_status		status;

	if (client == NULL)
		return VD_NOMEM;
	client->client.ops = &ops;
	client->env = env;
	client->keepalive_time = options->keepalive_time;
	client->keepalive_timeout = options->keepalive_timeout;
	client->send_size_max = options->send_size_max ? options->send_size_max : SIZE_MAX;
	client->receive_size_max = options->receive_size_max ? options->receive_size_max : SIZE_MAX;
	client->next_iteration = VD_NEVER;
	vdi_lock_init(&client->lock, VDI_LOCK_RPC);
	vdi_grpc_link_init(&client->live);
	vdi_grpc_link_init(&client->waiting);
	vdi_grpc_link_init(&client->refused);
	vdi_grpc_runtime_enter(&client->user, env);
	client->quota = grpc_resource_quota_create("vedette-client");
	grpc_resource_quota_resize(client->quota, memory_max(client));
	status = set_up(client, options, reterr);
	if (status != VD_OK) {
		if (client->channels) {
			client->channels_alive = 0;
			free_channels(client, client->channels, client->channel_count);
		}
		free_client(client);
		return status == VD_FULL ? VD_IO : status;
	}
	vdi_grpc_queue_start(client->queue);
	*ret_client = &client->client;
	return VD_OK;
}
