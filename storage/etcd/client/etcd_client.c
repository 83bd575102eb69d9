/* An etcd client: options, endpoints, its actor, the shutdown.
 *
 * The shutdown waits for everything that may still use the client: calls (canceled, and their callbacks run),
 * streams (freed by their owners), parts, and threads that are leaving a start function. Then the transport
 * is closed, and after it the actor, so that no callback can come late.
 */
#include "etcd_client.h"

#include <stdio.h>

#include "etcd_call.h"
#include "wait.h"

#define STEPS_PER_RUN 256

void vdi_etcd_wake_locked(struct vd_etcd *client)
{
	vdi_lock_assert_held(&client->lock);
	vd_actor_wake(client->actor);
}

const struct vd_env *vdi_etcd_env(const struct vd_etcd *client)
{
	return client->env;
}

struct vdi_usage *vdi_etcd_usage(const struct vd_etcd *client)
{
	return client->usage;
}

size_t vdi_etcd_watch_buffer_bytes(const struct vd_etcd *client)
{
	return client->watch_buffer_bytes;
}

vd_dur vdi_etcd_jitter(const struct vd_etcd *client, vd_dur wait)
{
	int64_t tenth = wait.ns / 10;

	return (vd_dur) { wait.ns - tenth +
			  (int64_t) vd_env_random_below(client->env, (uint64_t) (2 * tenth + 1)) };
}

/* ---- Metadata ---- */

static bool is_legal_key(const char *key)
{
	static const char *const own[] = { "client-api-version", "hasleader", "token" };

	if (key == NULL || key[0] == '\0')
		return false;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(own); i++)
		if (strcmp(key, own[i]) == 0)
			return false;
	return key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_-.")] == '\0' &&
	       strncmp(key, "grpc-", 5) != 0;
}

static bool is_legal_value(const char *key, struct vd_bytes value)
{
	size_t	    length = strlen(key);
	const char *bytes = value.data;

	if (length > 4 && strcmp(key + length - 4, "-bin") == 0)
		return true;
	for (size_t i = 0; i < value.size; i++)
		if (bytes[i] < ' ' || bytes[i] > '~')
			return false;
	return true;
}

vd_status vdi_etcd_metadata_copy(const struct vd_etcd_pair *pairs, size_t count,
				 struct vdi_rpc_metadata **ret_metadata)
{
	struct vdi_rpc_metadata *metadata;
	size_t			 size = count * sizeof *metadata;
	char			*text;

	*ret_metadata = NULL;
	if (count == 0)
		return VD_OK;
	if (pairs == NULL)
		return VD_INVALID_ARGUMENT;
	for (size_t i = 0; i < count; i++) {
		if ((pairs[i].value.size && pairs[i].value.data == NULL) || !is_legal_key(pairs[i].key) ||
		    !is_legal_value(pairs[i].key, pairs[i].value))
			return VD_INVALID_ARGUMENT;
		size += strlen(pairs[i].key) + 1 + pairs[i].value.size;
	}
	metadata = vdi_alloc(size);
	if (metadata == NULL)
		return VD_NOMEM;
	text = (char *) (metadata + count);
	for (size_t i = 0; i < count; i++) {
		size_t key_size = strlen(pairs[i].key) + 1;

		metadata[i].key = memcpy(text, pairs[i].key, key_size);
		text += key_size;
		metadata[i].value = (struct vd_bytes) { text, pairs[i].value.size };
		if (pairs[i].value.size)
			memcpy(text, pairs[i].value.data, pairs[i].value.size);
		text += pairs[i].value.size;
	}
	*ret_metadata = metadata;
	return VD_OK;
}

vd_status vdi_etcd_metadata_make(struct vd_etcd *client, bool require_leader, bool with_token,
				 const struct vdi_rpc_metadata *more, size_t more_count,
				 struct vdi_etcd_metadata *metadata)
{
	metadata->items = metadata->few;
	metadata->count = 0;
	metadata->token = NULL;
	if (more_count + 3 > VDI_ARRAY_SIZE(metadata->few)) {
		metadata->items = vdi_calloc(more_count + 3, sizeof *metadata->items);
		if (metadata->items == NULL)
			return VD_NOMEM;
	}
	metadata->items[metadata->count++] =
		(struct vdi_rpc_metadata) { "client-api-version", vd_bytes_of(client->api_version) };
	if (require_leader)
		metadata->items[metadata->count++] =
			(struct vdi_rpc_metadata) { "hasleader", vd_bytes_of("true") };
	vdi_lock_acquire(&client->lock);
	metadata->token_generation = client->preflight.token_generation;
	if (with_token && client->preflight.token)
		metadata->token = vd_blob_ref(client->preflight.token);
	vdi_lock_release(&client->lock);
	if (metadata->token)
		metadata->items[metadata->count++] =
			(struct vdi_rpc_metadata) { "token", vd_blob_bytes(metadata->token) };
	for (size_t i = 0; i < more_count; i++)
		metadata->items[metadata->count++] = more[i];
	return VD_OK;
}

void vdi_etcd_metadata_fini(struct vdi_etcd_metadata *metadata)
{
	metadata->token = vd_blob_unref(metadata->token);
	if (metadata->items != metadata->few)
		vdi_free(metadata->items);
}

/* ---- Endpoints ---- */

static vd_status copy_endpoints(const char *const *endpoints, size_t count, char ***ret_endpoints)
{
	size_t size = count * sizeof(char *);
	char **copy;
	char  *text;

	for (size_t i = 0; i < count; i++)
		size += strlen(endpoints[i]) + 1;
	copy = vdi_alloc(size);
	if (copy == NULL)
		return VD_NOMEM;
	text = (char *) (copy + count);
	for (size_t i = 0; i < count; i++) {
		copy[i] = text;
		text = stpcpy(text, endpoints[i]) + 1;
	}
	*ret_endpoints = copy;
	return VD_OK;
}

static vd_status check_endpoints(const char *const *endpoints, size_t count, struct vd_error *reterr)
{
	if (count == 0 || endpoints == NULL)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT, "etcdclient: no available endpoints");
	for (size_t i = 0; i < count; i++)
		if (endpoints[i] == NULL || endpoints[i][0] == '\0')
			return vd_error_set(reterr, VD_INVALID_ARGUMENT, "etcdclient: endpoint %zu is empty",
					    i + 1);
	return VD_OK;
}

vd_status vd_etcd_set_endpoints(struct vd_etcd *client, const char *const *endpoints, size_t count,
				struct vd_error *reterr)
{
	char	**copy;
	vd_status status;

	VDI_REQUIRE(client, reterr);
	VDI_TRY(check_endpoints(endpoints, count, reterr));
	if (copy_endpoints(endpoints, count, &copy) != VD_OK)
		return vd_error_set(reterr, VD_NOMEM, VDI_ETCD_NO_MEMORY_TEXT);
	vdi_lock_acquire(&client->lock);
	status = client->is_closing ?
			 vd_error_set(reterr, VD_CLOSED, "etcdclient: the client is closing") :
			 client->transport->ops->set_endpoints(client->transport, endpoints, count, reterr);
	if (status == VD_OK) {
		char **old = client->endpoints;

		client->endpoints = copy;
		client->endpoint_count = count;
		client->preflight.is_checked = false;
		copy = old;
	}
	vdi_lock_release(&client->lock);
	vdi_free(copy);
	return status;
}

size_t vd_etcd_endpoint_count(const struct vd_etcd *client)
{
	struct vd_etcd *mutable = (struct vd_etcd *) client;
	size_t count;

	vdi_lock_acquire(&mutable->lock);
	count = client->endpoint_count;
	vdi_lock_release(&mutable->lock);
	return count;
}

vd_status vd_etcd_endpoint_state(const struct vd_etcd *client, size_t index, bool *ret_ready, char *ret_text,
				 size_t size)
{
	struct vd_etcd *mutable = (struct vd_etcd *) client;
	struct vdi_rpc_endpoint_state state = { 0 };
	bool			      exists;

	VDI_REQUIRE(client, NULL);
	VDI_REQUIRE(ret_ready, NULL);
	if (size)
		VDI_REQUIRE(ret_text, NULL);
	vdi_lock_acquire(&mutable->lock);
	exists = client->transport->ops->endpoint_state(client->transport, index, &state);
	if (exists) {
		*ret_ready = state.ready;
		if (size)
			(void) snprintf(ret_text, size, "%s%s%s", state.endpoint,
					state.last_error[0] ? ": " : "", state.last_error);
	}
	vdi_lock_release(&mutable->lock);
	return exists ? VD_OK : VD_NOT_FOUND;
}

bool vdi_etcd_endpoint_index(struct vd_etcd *client, const char *endpoint, int *ret_index)
{
	bool is_found = endpoint == NULL;

	*ret_index = VDI_RPC_ANY_ENDPOINT;
	if (is_found)
		return true;
	vdi_lock_acquire(&client->lock);
	for (size_t i = 0; i < client->endpoint_count && !is_found; i++) {
		is_found = strcmp(client->endpoints[i], endpoint) == 0;
		if (is_found)
			*ret_index = (int) i;
	}
	vdi_lock_release(&client->lock);
	return is_found;
}

/* ---- The actor ---- */

static struct vdi_etcd_call *pop_call(struct vd_etcd *client)
{
	struct vdi_etcd_call *call;

	vdi_lock_acquire(&client->lock);
	call = TAILQ_FIRST(&client->call_inbox);
	if (call) {
		TAILQ_REMOVE(&client->call_inbox, call, inbox_node);
		call->is_in_inbox = false;
	}
	vdi_lock_release(&client->lock);
	return call;
}

static struct vdi_etcd_stream *pop_stream(struct vd_etcd *client)
{
	struct vdi_etcd_stream *stream;

	vdi_lock_acquire(&client->lock);
	stream = vdi_etcd_stream_pop_locked(client);
	vdi_lock_release(&client->lock);
	return stream;
}

static void on_actor_closed(void *arg)
{
	struct vd_etcd *client = arg;
	void (*closed)(void *) = client->closed;
	void *closed_arg = client->closed_arg;

	(void) vdi_usage_unref(client->usage);
	vd_blob_unref(client->preflight.token);
	vdi_lock_fini(&client->lock);
	vdi_free(client->endpoints);
	vdi_free(client->slots);
	vdi_free(client->user);
	vdi_free(client->password);
	vdi_free(client);
	if (closed)
		closed(closed_arg);
}

static void part_closed(void *arg)
{
	struct vd_etcd *client = arg;

	vdi_lock_acquire(&client->lock);
	client->part_count--;
	vdi_etcd_wake_locked(client);
	vdi_lock_release(&client->lock);
}

static void transport_closed(void *arg)
{
	struct vd_etcd *client = arg;

	vdi_lock_acquire(&client->lock);
	client->is_transport_closed = true;
	vdi_etcd_wake_locked(client);
	vdi_lock_release(&client->lock);
}

static void step_close(struct vd_etcd *client)
{
	struct vdi_etcd_part *parts[VDI_ETCD_PART_COUNT];
	bool		      has_begun = client->has_begun_close;
	bool		      is_empty;
	bool		      is_transport_closed;

	vdi_lock_acquire(&client->lock);
	memcpy(parts, client->parts, sizeof parts);
	is_empty = client->call_count == 0 && client->stream_count == 0 && client->part_count == 0 &&
		   client->starter_count == 0;
	is_transport_closed = client->is_transport_closed;
	vdi_lock_release(&client->lock);
	if (!has_begun) {
		client->has_begun_close = true;
		vdi_etcd_calls_close(client);
		for (size_t i = 0; i < VDI_ARRAY_SIZE(parts); i++)
			if (parts[i])
				parts[i]->close(parts[i], part_closed, client);
	}
	if (is_empty && !client->has_closed_transport) {
		client->has_closed_transport = true;
		client->transport->ops->close(client->transport, transport_closed, client);
	} else if (is_transport_closed && !client->has_ended) {
		client->has_ended = true;
		vd_actor_close(client->actor, on_actor_closed, client);
	}
}

static void run(void *arg)
{
	struct vd_etcd	       *client = arg;
	struct vdi_etcd_call   *call;
	struct vdi_etcd_stream *stream;
	struct vdi_timer       *timer;
	unsigned		calls = 0; /* limited per run, so that no call delays the others */
	unsigned		streams = 0;
	unsigned		timers = 0;
	bool			is_closing;

	for (; calls < STEPS_PER_RUN && (call = pop_call(client)) != NULL; calls++)
		vdi_etcd_call_step(call);
	for (; streams < STEPS_PER_RUN && (stream = pop_stream(client)) != NULL; streams++)
		vdi_etcd_stream_step(stream);
	for (; timers < STEPS_PER_RUN &&
	       (timer = vdi_timer_heap_pop_due(&client->timers, vd_env_now(client->env))) != NULL;
	     timers++)
		vdi_etcd_call_timer_due(timer);
	vdi_lock_acquire(&client->lock);
	is_closing = client->is_closing;
	vdi_lock_release(&client->lock);
	if (calls == STEPS_PER_RUN || streams == STEPS_PER_RUN || timers == STEPS_PER_RUN)
		vd_actor_wake(client->actor);
	vd_actor_set_timer(client->actor, vdi_timer_heap_next_due(&client->timers));
	if (is_closing)
		step_close(client);
}

/* ---- Open, close ---- */

vd_status vdi_etcd_check_options(const struct vd_etcd_options *options, struct vd_error *reterr)
{
	bool has_user, has_password;

	if (options == NULL || options->size != sizeof *options)
		return vd_error_set(
			reterr, VD_INVALID_ARGUMENT,
			"etcdclient: unknown size of the options; initialize them with VD_ETCD_OPTIONS_INIT");
	has_user = options->user && options->user[0];
	has_password = options->password && options->password[0];
	VDI_TRY(check_endpoints(options->endpoints, options->endpoint_count, reterr));
	if (has_user != has_password)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "etcdclient: a user needs a password, and a password a user");
	if (has_user && options->token && options->token[0])
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "Username/Password and Token configurations are mutually exclusive");
	if ((options->cert_path == NULL) != (options->key_path == NULL))
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "etcdclient: a certificate needs its key, and a key its certificate");
	if (options->receive_size_max < options->send_size_max)
		return vd_error_set(
			reterr, VD_INVALID_ARGUMENT,
			"gRPC message recv limit (%zu bytes) must be greater than send limit (%zu bytes)",
			options->receive_size_max, options->send_size_max);
	if (options->send_size_max == 0 || options->receive_size_max > INT32_MAX)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "etcdclient: message limits must be between 1 and %d bytes", INT32_MAX);
	if (options->attempts_max == 0 || options->watch_buffer_bytes == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "etcdclient: attempts_max and watch_buffer_bytes must not be 0");
	if (options->dial_timeout.ns < 0 || options->call_timeout.ns < 0 ||
	    options->keepalive_timeout.ns < 0 || options->keepalive_time.ns < 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "etcdclient: timeouts and intervals must not be negative");
	if (options->keepalive_time.ns != 0 && options->keepalive_time.ns < VD_SECONDS(5).ns)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "etcdclient: keepalive_time must be 0 or at least 5 s");
	return VD_OK;
}

static vd_status copy_options(struct vd_etcd *client, const struct vd_etcd_options *options)
{
	client->dial_timeout = options->dial_timeout;
	client->call_timeout = options->call_timeout;
	client->attempts_max = options->attempts_max;
	client->reject_old_cluster = options->reject_old_cluster;
	client->watch_buffer_bytes = options->watch_buffer_bytes;
	client->endpoint_count = options->endpoint_count;
	VDI_TRY(copy_endpoints(options->endpoints, options->endpoint_count, &client->endpoints));
	if (options->user && options->user[0]) {
		client->user = vdi_strdup(options->user);
		client->password = vdi_strdup(options->password);
		return client->user && client->password ? VD_OK : VD_NOMEM;
	}
	if (options->token && options->token[0])
		return vd_blob_new(vd_bytes_of(options->token), &client->preflight.token);
	return VD_OK;
}

vd_status vdi_etcd_new(const struct vd_env *env, const struct vd_etcd_options *options,
		       struct vdi_rpc_client *transport, struct vd_etcd **ret_client, struct vd_error *reterr)
{
	struct vd_actor_options actor_options = { .name = "etcd_client", .run = run };
	struct vd_etcd	       *client;
	vd_status		status;

	VDI_TRY(vdi_etcd_check_options(options, reterr));
	client = VDI_NEW(struct vd_etcd);
	if (client == NULL)
		return vd_error_set(reterr, VD_NOMEM, VDI_ETCD_NO_MEMORY_TEXT);
	client->env = env;
	client->transport = transport;
	(void) snprintf(client->api_version, sizeof client->api_version, "%d.%d", VDI_ETCD_API_MAJOR,
			VDI_ETCD_API_MINOR);
	vdi_etcd_preflight_init(&client->preflight);
	TAILQ_INIT(&client->call_inbox);
	TAILQ_INIT(&client->stream_inbox);
	actor_options.arg = client;
	status = copy_options(client, options);
	if (status == VD_OK)
		status = vd_actor_new(env, &actor_options, &client->actor);
	if (status != VD_OK) {
		vd_blob_unref(client->preflight.token);
		vdi_free(client->endpoints);
		vdi_free(client->user);
		vdi_free(client->password);
		vdi_free(client);
		return vd_error_set(reterr, status, "etcdclient: %s", vd_status_sentence(status));
	}
	vdi_lock_init(&client->lock, VDI_LOCK_ETCD_CLIENT);
	*ret_client = client;
	return VD_OK;
}

void vdi_etcd_discard(struct vd_etcd *client)
{
	vd_actor_close(client->actor, NULL, NULL); /* it never ran, so nothing in it uses the client */
	on_actor_closed(client);
}

void vd_etcd_close(struct vd_etcd *client, void (*done)(void *arg), void *arg)
{
	if (client == NULL) {
		if (done)
			done(arg);
		return;
	}
	if (client->usage)
		atomic_store(&client->usage->is_closing, true);
	vdi_lock_acquire(&client->lock);
	if (client->is_closing)
		vdi_misuse("vd_etcd_close: the client is closing already");
	client->is_closing = true;
	client->closed = done;
	client->closed_arg = arg;
	vdi_etcd_wake_locked(client);
	vdi_lock_release(&client->lock);
}

struct vd_etcd *vd_etcd_close_wait(struct vd_etcd *client)
{
	struct vdi_wait wait;

	if (client == NULL)
		return NULL;
	vdi_wait_check_close(__func__, "vd_etcd_close");
	vdi_wait_init(&wait, client->env);
	vd_etcd_close(client, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	return NULL;
}

vd_status vdi_etcd_part_get(struct vd_etcd *client, enum vdi_etcd_part_kind kind,
			    vd_status (*make)(struct vd_etcd *client, struct vdi_etcd_part **ret_part),
			    struct vdi_etcd_part **ret_part)
{
	vd_status status = VD_OK;

	vdi_lock_acquire(&client->lock);
	if (client->is_closing) {
		status = VD_CLOSED;
	} else if (client->parts[kind] == NULL) {
		status = make(client, &client->parts[kind]);
		if (status == VD_OK)
			client->part_count++;
	}
	if (status == VD_OK)
		*ret_part = client->parts[kind];
	vdi_lock_release(&client->lock);
	return status;
}
