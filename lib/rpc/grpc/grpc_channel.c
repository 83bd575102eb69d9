/* One endpoint: a channel of core with one target, so one connection, whose connectivity state is watched;
 * the balancer above chooses among the ready channels.
 *
 * Core reports that a connection failed, but not why. While a channel is failing, a call without
 * wait-for-ready ends at once with the cause; so every two seconds such a call is started as a probe. If the
 * connection is established in that moment, the call is canceled; the peer may see it begin (a health check
 * without a message).
 *
 * Core retries a name that cannot be resolved only after up to two minutes; resetting its back-off from time
 * to time shortens that to some seconds.
 */
#include <limits.h>

#include <grpc/support/alloc.h>
#include <vedette/vedette.h>

#include "grpc_cause.h"
#include "grpc_client_state.h"

#define PROBE_INTERVAL VD_SECONDS(2)
#define PROBE_TIMEOUT VD_SECONDS(5)
#define PROBES_PER_RESOLVE 3
#define CONNECT_TIMEOUT_MS 5000
#define BACKOFF_FIRST_MS 100
#define BACKOFF_MAX_MS 2000
#define KEEPALIVE_MIN VD_SECONDS(5)
#define METADATA_SIZE_MAX 65536

static void run_watch(struct vdi_grpc_tag *tag, bool success);
static void run_probe(struct vdi_grpc_tag *tag, bool success);

static grpc_arg int_arg(const char *key, int value)
{
	return (grpc_arg) { .type = GRPC_ARG_INTEGER, .key = (char *) key, .value.integer = value };
}

static grpc_arg string_arg(const char *key, const char *value)
{
	return (grpc_arg) { .type = GRPC_ARG_STRING, .key = (char *) key, .value.string = (char *) value };
}

static int to_ms(vd_dur duration)
{
	int64_t ms = duration.ns / 1000000;

	return ms > INT_MAX ? INT_MAX : (int) ms;
}

static grpc_channel *create_core(const struct vdi_grpc_client *client, const char *target, bool is_socket)
{
	grpc_arg	  list[24];
	grpc_channel_args args = { .args = list };
	vd_dur ping = client->keepalive_time.ns < KEEPALIVE_MIN.ns ? KEEPALIVE_MIN : client->keepalive_time;
	const char *name = client->server_name ? client->server_name : is_socket ? "localhost" : NULL;

	list[args.num_args++] =
		(grpc_arg) { .type = GRPC_ARG_POINTER,
			     .key = (char *) GRPC_ARG_RESOURCE_QUOTA,
			     .value.pointer = { client->quota, grpc_resource_quota_arg_vtable() } };
	list[args.num_args++] = int_arg(GRPC_ARG_ENABLE_RETRIES, 0);
	list[args.num_args++] = int_arg(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
	list[args.num_args++] = int_arg(GRPC_ARG_ENABLE_CHANNELZ, 0);
	/* A window of fixed size, instead of one that core measures with pings and grows to up to 16 MiB. */
	list[args.num_args++] = int_arg(GRPC_ARG_HTTP2_BDP_PROBE, 0);
	list[args.num_args++] = int_arg(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, VDI_GRPC_WINDOW);
	list[args.num_args++] = int_arg(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
	/* One connection per client, not per process. */
	list[args.num_args++] = int_arg(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
	list[args.num_args++] = int_arg(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, BACKOFF_FIRST_MS);
	list[args.num_args++] = int_arg(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, BACKOFF_MAX_MS);
	/* In spite of its name, this limits the duration of one attempt. */
	list[args.num_args++] = int_arg(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, CONNECT_TIMEOUT_MS);
	list[args.num_args++] = int_arg(GRPC_ARG_CLIENT_IDLE_TIMEOUT_MS, INT_MAX);
	list[args.num_args++] = int_arg(GRPC_ARG_MAX_METADATA_SIZE, METADATA_SIZE_MAX);
	list[args.num_args++] = int_arg(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1);
	list[args.num_args++] =
		int_arg(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH,
			client->receive_size_max >= INT_MAX ? -1 : (int) client->receive_size_max);
	list[args.num_args++] = string_arg(GRPC_ARG_PRIMARY_USER_AGENT_STRING, "vedette/" VD_VERSION);
	if (client->keepalive_time.ns > 0) {
		list[args.num_args++] = int_arg(GRPC_ARG_KEEPALIVE_TIME_MS, to_ms(ping));
		if (client->keepalive_timeout.ns > 0)
			list[args.num_args++] =
				int_arg(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, to_ms(client->keepalive_timeout));
		list[args.num_args++] = int_arg(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
		/* Keep an idle watch alive too. */
		list[args.num_args++] = int_arg(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
	}
	if (client->has_tls && name)
		list[args.num_args++] = string_arg(GRPC_SSL_TARGET_NAME_OVERRIDE_ARG, name);
	VDI_CHECK(args.num_args <= VDI_ARRAY_SIZE(list));
	return grpc_channel_create(target, client->credentials, &args);
}

static vd_status make_target(const struct vdi_rpc_endpoint *endpoint, char **ret_target)
{
	struct vdi_buffer target;
	vd_status	  status;

	vdi_buffer_init(&target, VDI_GRPC_TARGET_SIZE_MAX);
	vdi_grpc_target(endpoint, &target);
	status = vdi_buffer_status(&target);
	if (status == VD_OK)
		*ret_target = vdi_strdup(target.data);
	vdi_buffer_fini(&target);
	return status == VD_OK && *ret_target ? VD_OK : VD_NOMEM;
}

vd_status vdi_grpc_channel_new(struct vdi_grpc_client *client, const char *name,
			       struct vdi_grpc_channel **ret_channel, struct vd_error *reterr)
{
	struct vdi_grpc_channel *channel = VDI_NEW(struct vdi_grpc_channel);
	struct vdi_rpc_endpoint	 endpoint = { 0 };
	vd_status		 status;

	if (channel == NULL)
		return VD_NOMEM;
	channel->name = vdi_strdup(name);
	status = channel->name ? vdi_rpc_endpoint_parse(name, &endpoint, reterr) : VD_NOMEM;
	if (status == VD_OK)
		status = make_target(&endpoint, &channel->target);
	vdi_free(endpoint.address);
	if (status != VD_OK) {
		vdi_free(channel->name);
		vdi_free(channel);
		return status;
	}
	channel->client = client;
	channel->references = 1;
	channel->probe_due = VD_NEVER;
	channel->watch_tag.run = run_watch;
	channel->probe_tag.run = run_probe;
	channel->core = create_core(client, channel->target, endpoint.is_socket);
	*ret_channel = channel;
	return VD_OK;
}

void vdi_grpc_channel_unref_locked(struct vdi_grpc_channel *channel)
{
	struct vdi_grpc_client *client = channel->client;

	VDI_CHECK(channel->references > 0);
	if (--channel->references)
		return;
	if (channel->core)
		grpc_channel_destroy(channel->core);
	client->channels_alive--;
	if (client->is_closing)
		vdi_grpc_queue_wake(client->queue);
	vdi_free(channel->target);
	vdi_free(channel->name);
	vdi_free(channel);
}

static void start_watch(struct vdi_grpc_channel *channel)
{
	vdi_lock_acquire(&channel->client->lock);
	channel->references++;
	vdi_lock_release(&channel->client->lock);
	vdi_grpc_tag_hand(&channel->watch_tag);
	grpc_channel_watch_connectivity_state(
		channel->core, channel->state, gpr_inf_future(GPR_CLOCK_MONOTONIC),
		vdi_grpc_queue_core(channel->client->queue), &channel->watch_tag);
}

/* Reads the connectivity state, and connects if it is idle. */
static void look(struct vdi_grpc_channel *channel)
{
	struct vdi_grpc_client *client = channel->client;
	bool			became_ready;

	channel->state = grpc_channel_check_connectivity_state(channel->core, 1);
	if (channel->state == GRPC_CHANNEL_TRANSIENT_FAILURE && !channel->is_failing) {
		channel->is_failing = true;
		channel->probe_due = (vd_mono) { 0 };
	}
	if (channel->state == GRPC_CHANNEL_READY) {
		channel->is_failing = false;
		channel->probe_due = VD_NEVER;
		if (channel->probe)
			grpc_call_cancel(channel->probe, NULL);
	}
	vdi_lock_acquire(&client->lock);
	became_ready = channel->state == GRPC_CHANNEL_READY && !channel->is_ready && !channel->is_removed;
	channel->is_ready = channel->state == GRPC_CHANNEL_READY && !channel->is_removed;
	if (became_ready)
		channel->last_error[0] = 0;
	vdi_lock_release(&client->lock);
	/* An iteration starts the waiting calls, or the probe. */
	if (became_ready || channel->is_failing)
		vdi_grpc_queue_wake(client->queue);
}

static void run_watch(struct vdi_grpc_tag *tag, bool success)
{
	struct vdi_grpc_channel *channel = VDI_CONTAINER_OF(tag, struct vdi_grpc_channel, watch_tag);
	struct vdi_grpc_client	*client = channel->client;

	(void) success; /* the watch has no deadline */
	if (channel->core) {
		look(channel);
		start_watch(channel);
	}
	vdi_lock_acquire(&client->lock);
	vdi_grpc_channel_unref_locked(channel);
	vdi_lock_release(&client->lock);
}

void vdi_grpc_channel_tend(struct vdi_grpc_channel *channel)
{
	if (channel->is_tended)
		return;
	channel->is_tended = true;
	look(channel);
	/* A channel that core could not create (a key that does not fit the certificate) fails for ever; a
	 * watch of its state would never complete. */
	if (grpc_channel_support_connectivity_watcher(channel->core))
		start_watch(channel);
}

void vdi_grpc_channel_retire(struct vdi_grpc_channel *channel)
{
	struct vdi_grpc_client *client = channel->client;
	grpc_channel	       *core = channel->core;

	if (channel->probe)
		grpc_call_cancel(channel->probe, NULL);
	channel->probe_due = VD_NEVER;
	channel->core = NULL;
	grpc_channel_destroy(core); /* completes the watch; calls continue */
	vdi_lock_acquire(&client->lock);
	vdi_grpc_channel_unref_locked(channel);
	vdi_lock_release(&client->lock);
}

/* ---- Probes ---- */

vd_mono vdi_grpc_channel_probe(struct vdi_grpc_channel *channel, vd_mono now)
{
	grpc_op ops[2] = { { .op = GRPC_OP_SEND_INITIAL_METADATA }, { .op = GRPC_OP_RECV_STATUS_ON_CLIENT } };
	grpc_call_error error;

	if (channel->core == NULL || channel->probe || channel->probe_due.ns > now.ns)
		return channel->probe ? VD_NEVER : channel->probe_due;
	channel->probe_due = VD_NEVER;
	channel->probe = grpc_channel_create_call(
		channel->core, NULL, GRPC_PROPAGATE_DEFAULTS, vdi_grpc_queue_core(channel->client->queue),
		grpc_slice_from_static_string("/grpc.health.v1.Health/Check"), NULL,
		vdi_grpc_timespec(vd_mono_add(now, PROBE_TIMEOUT)), NULL);
	grpc_metadata_array_init(&channel->probe_metadata);
	ops[1].data.recv_status_on_client.status = &channel->probe_code;
	ops[1].data.recv_status_on_client.status_details = &channel->probe_details;
	ops[1].data.recv_status_on_client.trailing_metadata = &channel->probe_metadata;
	vdi_lock_acquire(&channel->client->lock);
	channel->references++;
	vdi_lock_release(&channel->client->lock);
	vdi_grpc_tag_hand(&channel->probe_tag);
	error = grpc_call_start_batch(channel->probe, ops, VDI_ARRAY_SIZE(ops), &channel->probe_tag, NULL);
	VDI_CHECK(error == GRPC_CALL_OK);
	return VD_NEVER;
}

static void run_probe(struct vdi_grpc_tag *tag, bool success)
{
	struct vdi_grpc_channel *channel = VDI_CONTAINER_OF(tag, struct vdi_grpc_channel, probe_tag);
	struct vdi_grpc_client	*client = channel->client;
	struct vdi_grpc_text	 words;
	char			 cause[sizeof channel->last_error];

	(void) success; /* always true; the status has the result */
	vdi_grpc_text_init(&words, channel->probe_details);
	vdi_grpc_cause(words.text, cause, sizeof cause);
	grpc_call_unref(channel->probe);
	grpc_slice_unref(channel->probe_details);
	grpc_metadata_array_destroy(&channel->probe_metadata);
	channel->probe = NULL;
	if (channel->is_failing && channel->core) {
		channel->probe_due = vd_mono_add(vd_env_now(client->env), PROBE_INTERVAL);
		if (strstr(words.text, "DNS resolution failed") &&
		    ++channel->probe_count % PROBES_PER_RESOLVE == 0)
			grpc_channel_reset_connect_backoff(channel->core);
		vdi_grpc_queue_wake(client->queue);
	}
	vdi_lock_acquire(&client->lock);
	if (channel->is_failing && channel->probe_code == GRPC_STATUS_UNAVAILABLE)
		memcpy(channel->last_error, cause, sizeof cause);
	vdi_grpc_channel_unref_locked(channel);
	vdi_lock_release(&client->lock);
	vdi_grpc_text_fini(&words);
}
