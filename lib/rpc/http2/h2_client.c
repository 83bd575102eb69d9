/* The client: its endpoints, the iterations of its one thread, and its end.
 *
 * Load balancing: each endpoint has a connection of its own, and calls take the next ready one, round robin
 * (docs/decisions/one-channel-per-endpoint.md). The thread is a blocking actor whose single run is the
 * loop's. An iteration handles: new and removed endpoints and resolvers' results -> rpcs that callers have
 * posted -> waiting calls for which a connection has room; then connections write.
 *
 * Closing: close marks the client; the next iteration stops all rpcs and removes all endpoints; each of
 * them that ends requests a further iteration. When none is left the loop is stopped, and its thread frees
 * the client.
 */
#include <stdio.h>

#include "h2_client_state.h"
#include "h2_transport.h"
#include "rpc_endpoint.h"

static struct vdi_h2_client *client_of(struct vdi_rpc_client *client)
{
	return VDI_CONTAINER_OF(client, struct vdi_h2_client, client);
}

/* ---- Endpoints ---- */

static void append_endpoint(const struct vdi_h2_channel *channel, char *text, size_t size)
{
	size_t	    used = strlen(text);
	const char *why = channel->is_ready	 ? "at its limit of calls" :
			  channel->last_error[0] ? channel->last_error :
						   "not connected yet";

	(void) snprintf(text + used, size - used, "%s%s (%s)", text[used - 1] == ' ' ? "" : ", ",
			channel->name, why);
}

void vdi_h2_client_describe_unready(struct vdi_h2_client *client, const struct vdi_h2_channel *only,
				    char *text, size_t size)
{
	vdi_lock_acquire(&client->lock);
	(void) snprintf(text, size, "no endpoint is connected: ");
	if (only)
		append_endpoint(only, text, size);
	for (size_t i = 0; only == NULL && i < client->channel_count; i++)
		append_endpoint(client->channels[i], text, size);
	vdi_lock_release(&client->lock);
}

static void remove_channel_locked(struct vdi_h2_channel *channel)
{
	struct vdi_h2_client *client = channel->client;

	channel->is_removed = true;
	channel->removed_next = client->removed;
	client->removed = channel;
	client->has_news = true;
}

/* Frees channels that were never listed. */
static void free_channels_locked(struct vdi_h2_client *client, struct vdi_h2_channel **channels, size_t count)
{
	client->channels_alive += count;
	for (size_t i = 0; i < count; i++)
		vdi_h2_channel_unref_locked(channels[i]);
	vdi_free(channels);
}

static vd_status make_channels(struct vdi_h2_client *client, const char *const *endpoints, size_t count,
			       struct vdi_h2_channel ***ret_channels, struct vd_error *reterr)
{
	struct vdi_h2_channel **channels;

	if (count == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "etcdclient: no available endpoints");
	channels = vdi_calloc(count, sizeof channels[0]);
	if (channels == NULL)
		return VD_NOMEM;
	for (size_t i = 0; i < count; i++) {
		vd_status status = vdi_h2_channel_new(client, endpoints[i], &channels[i], reterr);

		if (status != VD_OK) {
			vdi_lock_acquire(&client->lock);
			free_channels_locked(client, channels, i);
			vdi_lock_release(&client->lock);
			return status;
		}
	}
	*ret_channels = channels;
	return VD_OK;
}

/* An endpoint in both lists keeps its connection: the old channel replaces the new one. */
static void keep_old_locked(struct vdi_h2_client *client, struct vdi_h2_channel **channels, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < client->channel_count; j++) {
			if (strcmp(channels[i]->name, client->channels[j]->name) == 0) {
				struct vdi_h2_channel *swap = channels[i];

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
	struct vdi_h2_client   *client = client_of(base);
	struct vdi_h2_channel **channels;
	struct vdi_h2_channel **old;

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
	client->has_news = true;
	vdi_h2_loop_wake(client->h2_loop);
	vdi_lock_release(&client->lock);
	vdi_free(old);
	return VD_OK;
}

static size_t endpoint_count(struct vdi_rpc_client *base)
{
	struct vdi_h2_client *client = client_of(base);
	size_t		      count;

	vdi_lock_acquire(&client->lock);
	count = client->channel_count;
	vdi_lock_release(&client->lock);
	return count;
}

static bool endpoint_state(struct vdi_rpc_client *base, size_t index,
			   struct vdi_rpc_endpoint_state *ret_state)
{
	struct vdi_h2_client *client = client_of(base);
	bool		      found;

	vdi_lock_acquire(&client->lock);
	found = index < client->channel_count;
	if (found) {
		const struct vdi_h2_channel *channel = client->channels[index];

		ret_state->endpoint = channel->name;
		ret_state->ready = channel->is_ready;
		(void) snprintf(ret_state->last_error, sizeof ret_state->last_error, "%s",
				channel->last_error);
	}
	vdi_lock_release(&client->lock);
	return found;
}

/* ---- Iterations ---- */

static void cut_locked(struct vdi_h2_client *client)
{
	struct vdi_h2_rpc *rpc;

	TAILQ_FOREACH(rpc, &client->live, live_node)
	vdi_h2_rpc_stop_locked(rpc, VDI_H2_CLOSED);
	for (size_t i = 0; i < client->channel_count; i++)
		remove_channel_locked(client->channels[i]);
	vdi_free(client->channels);
	client->channels = NULL;
	client->channel_count = 0;
}

/* Takes a reference, because another thread may replace the list in between. */
static struct vdi_h2_channel *hold_channel(struct vdi_h2_client *client, size_t index)
{
	struct vdi_h2_channel *channel = NULL;

	vdi_lock_acquire(&client->lock);
	if (index < client->channel_count) {
		channel = client->channels[index];
		channel->references++;
	}
	vdi_lock_release(&client->lock);
	return channel;
}

static void tend_channels(struct vdi_h2_client *client)
{
	struct vdi_h2_channel *channel, *removed;
	bool		       has_news;

	vdi_lock_acquire(&client->lock);
	if (client->is_closing && !client->is_cut) {
		client->is_cut = true;
		cut_locked(client);
	}
	has_news = client->has_news;
	client->has_news = false;
	removed = client->removed;
	client->removed = NULL;
	vdi_lock_release(&client->lock);
	while (removed) {
		struct vdi_h2_channel *next = removed->removed_next;

		vdi_h2_channel_retire(removed);
		removed = next;
	}
	for (size_t i = 0; has_news && (channel = hold_channel(client, i)) != NULL; i++) {
		vdi_h2_channel_tend(channel);
		vdi_lock_acquire(&client->lock);
		vdi_h2_channel_unref_locked(channel);
		vdi_lock_release(&client->lock);
	}
}

static void end_iteration(void *arg)
{
	struct vdi_h2_client *client = arg;
	bool		      is_over;

	tend_channels(client);
	vdi_h2_rpc_attend_posted(client);
	vdi_h2_rpc_start_waiting(client);
	vdi_lock_acquire(&client->lock);
	is_over = client->is_cut && TAILQ_EMPTY(&client->live) && client->channels_alive == 0;
	vdi_lock_release(&client->lock);
	if (is_over)
		vdi_loop_stop(client->loop);
}

/* ---- Creation and end ---- */

/* Works on a half-built client too. */
static void free_client(struct vdi_h2_client *client)
{
	client->h2_loop = vdi_h2_loop_free(client->h2_loop);
	client->loop = vdi_loop_free(client->loop);
	client->tls = vdi_h2_tls_free(client->tls);
	vdi_lock_fini(&client->lock);
	vdi_free(client->server_name);
	vdi_free(client);
}

static void finish(void *arg)
{
	struct vdi_h2_client *client = arg;
	void (*done)(void *arg) = client->done;
	void *done_arg = client->done_arg;

	free_client(client);
	if (done)
		done(done_arg);
}

static void run_client(void *arg)
{
	struct vdi_h2_client *client = arg;

	vdi_loop_run(client->loop);
	vd_actor_close(client->actor, finish, client);
}

static void close_client(struct vdi_rpc_client *base, void (*done)(void *arg), void *arg)
{
	struct vdi_h2_client *client = client_of(base);

	vdi_lock_acquire(&client->lock);
	VDI_CHECK(!client->is_closing);
	client->is_closing = true;
	client->done = done;
	client->done_arg = arg;
	vdi_h2_loop_wake(client->h2_loop);
	vdi_lock_release(&client->lock);
}

static vd_status set_up(struct vdi_h2_client *client, const struct vdi_rpc_client_options *options,
			struct vd_error *reterr)
{
	struct vdi_h2_loop_options h2_loop_options = { .end_iteration = end_iteration,
						       .arg = client,
						       .lends = true };
	struct vd_actor_options	   actor_options = {
		   .name = "vedette-rpc", .run = run_client, .arg = client, .blocking = true
	};

	VDI_TRY(vdi_rpc_endpoints_use_tls(options->endpoints, options->endpoint_count, options->tls != NULL,
					  &client->has_tls, reterr));
	if (options->tls && options->tls->server_name) {
		client->server_name = vdi_strdup(options->tls->server_name);
		if (client->server_name == NULL)
			return VD_NOMEM;
	}
	if (client->has_tls)
		VDI_TRY(vdi_h2_tls_new_client(options->tls, &client->tls, reterr));
	VDI_TRY(make_channels(client, options->endpoints, options->endpoint_count, &client->channels,
			      reterr));
	client->channel_count = client->channels_alive = options->endpoint_count;
	client->has_news = true;
	VDI_TRY(vdi_loop_new(client->env, &client->loop));
	VDI_TRY(vdi_h2_loop_new(client->env, client->loop, &h2_loop_options, &client->h2_loop));
	return vd_actor_new(client->env, &actor_options, &client->actor);
}

vd_status vdi_h2_client_new(const struct vd_env *env, const struct vdi_rpc_client_options *options,
			    struct vdi_rpc_client **ret_client, struct vd_error *reterr)
{
	static const struct vdi_rpc_client_ops ops = {
		.call = vdi_h2_call,
		.call_cancel = vdi_h2_call_cancel,
		.stream_open = vdi_h2_stream_open,
		.stream_send = vdi_h2_stream_send,
		.stream_receive = vdi_h2_stream_receive,
		.stream_half_close = vdi_h2_stream_half_close,
		.stream_cancel = vdi_h2_stream_cancel,
		.stream_free = vdi_h2_stream_free,
		.set_endpoints = set_endpoints,
		.endpoint_count = endpoint_count,
		.endpoint_state = endpoint_state,
		.close = close_client,
	};
	struct vdi_h2_client *client = VDI_NEW(struct vdi_h2_client);
	vd_status	      status;

	if (client == NULL)
		return VD_NOMEM;
	client->client.ops = &ops;
	client->env = env;
	client->keepalive_time = options->keepalive_time;
	client->keepalive_timeout = options->keepalive_timeout;
	client->send_size_max = options->send_size_max ? options->send_size_max : SIZE_MAX;
	client->receive_size_max = options->receive_size_max ? options->receive_size_max : SIZE_MAX;
	vdi_lock_init(&client->lock, VDI_LOCK_RPC);
	TAILQ_INIT(&client->live);
	TAILQ_INIT(&client->posted);
	TAILQ_INIT(&client->waiting);
	status = set_up(client, options, reterr);
	if (status != VD_OK) {
		if (client->channels) {
			vdi_lock_acquire(&client->lock);
			client->channels_alive = 0;
			free_channels_locked(client, client->channels, client->channel_count);
			vdi_lock_release(&client->lock);
		}
		free_client(client);
		return status == VD_FULL ? VD_IO : status;
	}
	vd_actor_wake(client->actor);
	vdi_h2_loop_wake(client->h2_loop);
	*ret_client = &client->client;
	return VD_OK;
}
