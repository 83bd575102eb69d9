#include "rpc_echo.h"

#include "await.h"
#include "rpc_under_test.h"
#include "env.h"
#include "vdtest.h"
#include "wait.h"

/* ---- The service ---- */

struct echo_call {
	struct rpc_echo		   *echo;
	struct vdi_rpc_server_call *call;
	const char		   *method;
	struct vdi_rpc_blob	   *blob; /* of Count */
	unsigned		    left;
	bool is_busy; /* with one message, which is answered before the next one is requested */
	struct vdi_rpc_message pending; /* of Chat, when it could not be sent */
};

static struct vdi_rpc_blob *blob_of(struct vd_bytes bytes)
{
	struct vdi_rpc_blob *blob;
	char		    *room;

	if (vdi_rpc_blob_new(bytes.size, &blob, &room) != VD_OK)
		return NULL;
	if (bytes.size)
		memcpy(room, bytes.data, bytes.size);
	return blob;
}

static void answer(struct vdi_rpc_server_call *call, struct vd_bytes bytes)
{
	struct vdi_rpc_blob *blob = blob_of(bytes);

	if (blob == NULL || vdi_rpc_server_answer(call, VD_BYTES_NONE, blob) == VD_NOMEM)
		vdi_rpc_server_finish(call, VDI_RPC_RESOURCE_EXHAUSTED, "out of memory");
	vdi_rpc_blob_unref(blob);
}

static void accepted(void *arg, struct vdi_rpc_server_call *call, const char *method)
{
	struct rpc_echo	 *echo = arg;
	struct echo_call *mine = VDI_NEW(struct echo_call);

	vdi_rpc_server_call_set_arg(call, mine);
	if (mine == NULL) {
		vdi_rpc_server_finish(call, VDI_RPC_RESOURCE_EXHAUSTED, "out of memory");
		return;
	}
	atomic_fetch_add(&echo->accepted, 1);
	mine->echo = echo;
	mine->call = call;
	mine->method = method;
	if (strncmp(method, "/test.Echo/", 11) != 0) {
		vdi_rpc_server_finish(call, VDI_RPC_UNIMPLEMENTED, "unknown method");
		return;
	}
	vdi_rpc_server_receive(call);
}

static void count_on(struct echo_call *mine)
{
	while (mine->left) {
		vd_status status = vdi_rpc_server_send(mine->call, VD_BYTES_NONE, mine->blob);

		if (status == VD_FULL) {
			atomic_fetch_add(&mine->echo->fulls, 1);
			return;
		}
		if (status != VD_OK) {
			vdi_rpc_server_finish(mine->call, VDI_RPC_RESOURCE_EXHAUSTED, "out of memory");
			return;
		}
		atomic_fetch_add(&mine->echo->sent, 1);
		mine->left--;
	}
	vdi_rpc_server_finish(mine->call, VDI_RPC_OK, NULL);
}

static void chat_on(struct echo_call *mine)
{
	struct vdi_rpc_blob *blob = blob_of(mine->pending.bytes);
	vd_status status = blob ? vdi_rpc_server_send(mine->call, vd_bytes_of("re: "), blob) : VD_NOMEM;

	vdi_rpc_blob_unref(blob);
	if (status == VD_FULL)
		return;
	vdi_rpc_message_release(&mine->pending);
	if (status == VD_OK)
		vdi_rpc_server_receive(mine->call);
	else
		vdi_rpc_server_finish(mine->call, VDI_RPC_RESOURCE_EXHAUSTED, "out of memory");
}

static void unary(struct echo_call *mine, struct vd_bytes request)
{
	const char     *name = mine->method + 11;
	char		text[256];
	struct vd_bytes value;

	snprintf(text, sizeof text, "%.*s", (int) VDI_MIN(request.size, sizeof text - 1),
		 (const char *) request.data);
	if (strcmp(name, "Echo") == 0)
		answer(mine->call, request);
	else if (strcmp(name, "Size") == 0) {
		size_t size = strtoul(text, NULL, 10);
		char  *bytes = vdi_calloc(1, size + 1);

		answer(mine->call, (struct vd_bytes) { bytes, size });
		vdi_free(bytes);
	} else if (strcmp(name, "Fail") == 0) {
		const char *blank = strchr(text, ' ');

		vdi_rpc_server_finish(mine->call, atoi(text), blank ? blank + 1 : "");
	} else if (strcmp(name, "Meta") == 0) {
		if (!vdi_rpc_server_call_metadata(mine->call, "x-test", &value))
			value = vd_bytes_of("none");
		answer(mine->call, value);
	} else if (strcmp(name, "Name") == 0)
		answer(mine->call, vd_bytes_of(vdi_rpc_server_call_common_name(mine->call)));
	else if (strcmp(name, "Peer") == 0)
		answer(mine->call, vd_bytes_of(vdi_rpc_server_call_peer(mine->call)));
	else if (strcmp(name, "Hang") != 0)
		vdi_rpc_server_finish(mine->call, VDI_RPC_UNIMPLEMENTED, "unknown method");
}

static void message(void *arg, struct vdi_rpc_server_call *call, struct vdi_rpc_message *taken)
{
	struct echo_call *mine = arg;
	char		  text[64];
	size_t		  size = 0;
	char		 *room;

	if (taken->bytes.data == NULL) {
		if (strcmp(mine->method, "/test.Echo/Hang") != 0)
			vdi_rpc_server_finish(call, VDI_RPC_OK, NULL);
		return;
	}
	atomic_fetch_add(&mine->echo->received, 1);
	if (strcmp(mine->method, "/test.Echo/Chat") == 0) {
		mine->pending = *taken;
		*taken = (struct vdi_rpc_message) { 0 };
		chat_on(mine);
		return;
	}
	if (strcmp(mine->method, "/test.Echo/Count") == 0) {
		snprintf(text, sizeof text, "%.*s", (int) VDI_MIN(taken->bytes.size, sizeof text - 1),
			 (const char *) taken->bytes.data);
		mine->left = (unsigned) strtoul(text, &room, 10);
		size = strtoul(room, NULL, 10);
		if (vdi_rpc_blob_new(size, &mine->blob, &room) == VD_OK) {
			memset(room, 'c', size);
			count_on(mine);
		} else
			vdi_rpc_server_finish(call, VDI_RPC_RESOURCE_EXHAUSTED, "out of memory");
	} else
		unary(mine, taken->bytes);
	vdi_rpc_message_release(taken);
}

static void writable(void *arg, struct vdi_rpc_server_call *call)
{
	struct echo_call *mine = arg;

	(void) call;
	if (strcmp(mine->method, "/test.Echo/Count") == 0)
		count_on(mine);
	else
		chat_on(mine);
}

static void ended(void *arg, struct vdi_rpc_server_call *call, bool cancelled)
{
	struct echo_call *mine = arg;

	if (mine) {
		struct rpc_echo *echo = mine->echo;

		vdi_rpc_blob_unref(mine->blob);
		vdi_rpc_message_release(&mine->pending);
		vdi_free(mine);
		vdi_rpc_server_call_free(call);
		if (cancelled)
			atomic_fetch_add(&echo->cancelled, 1);
		atomic_fetch_add(&echo->ended, 1);
	} else
		vdi_rpc_server_call_free(call);
}

vd_status rpc_echo_start(struct rpc_echo *echo, const struct vd_env *env, const char *listen,
			 const struct vdi_rpc_server_options *options, struct vd_error *reterr)
{
	static const struct vdi_rpc_server_handlers handlers = { accepted, message, writable, ended };
	static const char *const		    streams[] = { "/test.Echo/Chat", "/test.Echo/Count" };
	static const char *const		    unary[] = { "/test.Echo/Echo" };
	struct vdi_rpc_server_options		    mine = { 0 };

	memset(echo, 0, sizeof *echo);
	if (listen == NULL)
		listen = "127.0.0.1:0";
	if (options)
		mine = *options;
	mine.listen = &listen;
	mine.listen_count = 1;
	mine.handlers = &handlers;
	mine.arg = echo;
	mine.stream_methods = streams;
	mine.stream_method_count = VDI_ARRAY_SIZE(streams);
	mine.unary_methods = unary;
	mine.unary_method_count = VDI_ARRAY_SIZE(unary);
	return rpc_under_test()->server_new(env, &mine, &echo->server, reterr);
}

const char *rpc_echo_address(const struct rpc_echo *echo)
{
	return vdi_rpc_server_address(echo->server, 0);
}

void rpc_echo_stop(struct rpc_echo *echo, const struct vd_env *env)
{
	struct vdi_wait wait;

	vdi_wait_init(&wait, env);
	vdi_rpc_server_close(echo->server, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	echo->server = NULL;
}

void rpc_wait_for(const struct vd_env *env, const _Atomic uint64_t *counter, uint64_t at_least)
{
	(void) env;
	AWAIT(atomic_load(counter) >= at_least);
}

/* ---- The client's side ---- */

struct rpc_asked {
	struct rpc_answer answer;
	struct vdi_wait	  wait;
};

static void take_answer(void *arg, const struct vdi_rpc_end *end, struct vdi_rpc_message *taken)
{
	struct rpc_asked *asked = arg;

	asked->answer.end = *end;
	snprintf(asked->answer.text, sizeof asked->answer.text, "%s", end->message);
	snprintf(asked->answer.endpoint, sizeof asked->answer.endpoint, "%s", end->endpoint);
	asked->answer.message = *taken;
	vdi_wait_signal(&asked->wait);
}

struct rpc_answer rpc_ask(const struct vd_env *env, struct vdi_rpc_client *client,
			  const struct vdi_rpc_request *request)
{
	struct rpc_asked asked = { 0 };

	vdi_wait_init(&asked.wait, env);
	assert_status(client->ops->call(client, request, take_answer, &asked, NULL), VD_OK);
	vdi_wait_wait(&asked.wait);
	vdi_wait_fini(&asked.wait);
	return asked.answer;
}

struct rpc_answer rpc_ask_simply(const struct vd_env *env, struct vdi_rpc_client *client, const char *method,
				 struct vd_bytes bytes, vd_dur timeout)
{
	struct vdi_rpc_request request = {
		.method = method, .message = bytes, .timeout = timeout, .endpoint = VDI_RPC_ANY_ENDPOINT
	};

	return rpc_ask(env, client, &request);
}

struct rpc_asked *rpc_ask_begin(const struct vd_env *env, struct vdi_rpc_client *client, const char *method,
				struct vd_bytes bytes)
{
	struct vdi_rpc_request request = { .method = method,
					   .message = bytes,
					   .endpoint = VDI_RPC_ANY_ENDPOINT };
	struct rpc_asked      *asked = VDI_NEW(struct rpc_asked);

	assert_non_null(asked);
	vdi_wait_init(&asked->wait, env);
	assert_status(client->ops->call(client, &request, take_answer, asked, NULL), VD_OK);
	return asked;
}

struct rpc_answer rpc_ask_end(struct rpc_asked *asked)
{
	struct rpc_answer answered;

	vdi_wait_wait(&asked->wait);
	vdi_wait_fini(&asked->wait);
	answered = asked->answer;
	vdi_free(asked);
	return answered;
}

void rpc_answer_release(struct rpc_answer *answered)
{
	vdi_rpc_message_release(&answered->message);
}

static void record_opened(void *arg, const char *endpoint)
{
	struct rpc_recorder *recorder = arg;

	vdi_lock_acquire(&recorder->lock);
	assert_false(recorder->is_opened || recorder->is_ended || recorder->messages);
	recorder->is_opened = true;
	snprintf(recorder->endpoint, sizeof recorder->endpoint, "%s", endpoint);
	vdi_condition_broadcast(&recorder->changed);
	vdi_lock_release(&recorder->lock);
}

static void record_message(void *arg, struct vdi_rpc_message *taken)
{
	struct rpc_recorder *recorder = arg;

	vdi_lock_acquire(&recorder->lock);
	assert_true(recorder->is_opened && !recorder->is_ended);
	recorder->messages++;
	recorder->bytes += taken->bytes.size;
	snprintf(recorder->last, sizeof recorder->last, "%.*s",
		 (int) VDI_MIN(taken->bytes.size, sizeof recorder->last - 1),
		 (const char *) taken->bytes.data);
	vdi_condition_broadcast(&recorder->changed);
	vdi_lock_release(&recorder->lock);
	vdi_rpc_message_release(taken);
	if (recorder->asks_again)
		recorder->client->ops->stream_receive(recorder->stream);
}

static void record_ended(void *arg, const struct vdi_rpc_end *end)
{
	struct rpc_recorder *recorder = arg;

	if (!recorder->keeps_stream)
		recorder->client->ops->stream_free(recorder->stream);
	vdi_lock_acquire(&recorder->lock);
	assert_false(recorder->is_ended);
	recorder->is_ended = true;
	recorder->end = *end;
	snprintf(recorder->text, sizeof recorder->text, "%s", end->message);
	vdi_condition_broadcast(&recorder->changed);
	vdi_lock_release(&recorder->lock);
}

void rpc_recorder_init(struct rpc_recorder *recorder, const struct vd_env *env, struct vdi_rpc_client *client,
		       bool asks_again)
{
	memset(recorder, 0, sizeof *recorder);
	recorder->env = env;
	recorder->client = client;
	recorder->asks_again = asks_again;
	vdi_lock_init(&recorder->lock, VDI_LOCK_LEAF);
	vdi_condition_init(&recorder->changed);
}

vd_status rpc_recorder_open(struct rpc_recorder *recorder, const struct vdi_rpc_request *request)
{
	static const struct vdi_rpc_stream_handlers handlers = { record_opened, record_message,
								 record_ended };
	vd_status status = recorder->client->ops->stream_open(recorder->client, request, &handlers, recorder,
							      &recorder->stream);

	/* The stream may have ended already, and been freed. */
	if (status == VD_OK && recorder->asks_again && (recorder->keeps_stream || request->timeout.ns == 0))
		recorder->client->ops->stream_receive(recorder->stream);
	return status;
}

static vd_mono patience(const struct rpc_recorder *recorder)
{
	return vd_mono_add(vd_env_now(recorder->env), VD_SECONDS(20));
}

void rpc_recorder_wait_opened(struct rpc_recorder *recorder)
{
	vd_mono due = patience(recorder);

	vdi_lock_acquire(&recorder->lock);
	while (!recorder->is_opened)
		assert_true(vdi_condition_wait_until(&recorder->changed, &recorder->lock, due));
	vdi_lock_release(&recorder->lock);
}

void rpc_recorder_wait_messages(struct rpc_recorder *recorder, unsigned messages)
{
	vd_mono due = patience(recorder);

	vdi_lock_acquire(&recorder->lock);
	while (recorder->messages < messages)
		assert_true(vdi_condition_wait_until(&recorder->changed, &recorder->lock, due));
	vdi_lock_release(&recorder->lock);
}

void rpc_recorder_wait_ended(struct rpc_recorder *recorder)
{
	vd_mono due = patience(recorder);

	vdi_lock_acquire(&recorder->lock);
	while (!recorder->is_ended)
		assert_true(vdi_condition_wait_until(&recorder->changed, &recorder->lock, due));
	vdi_lock_release(&recorder->lock);
}

void rpc_recorder_fini(struct rpc_recorder *recorder)
{
	vdi_condition_fini(&recorder->changed);
	vdi_lock_fini(&recorder->lock);
}

struct vdi_rpc_client *rpc_connect(const struct vd_env *env, const char *const *endpoints, size_t count,
				   const struct vdi_rpc_tls *tls)
{
	struct vdi_rpc_client_options options = { .endpoints = endpoints,
						  .endpoint_count = count,
						  .tls = tls };
	struct vdi_rpc_client	     *client;
	struct vd_error		      error = { 0 };

	if (rpc_under_test()->client_new(env, &options, &client, &error) != VD_OK)
		fail_msg("%s", error.message);
	return client;
}

void rpc_close(const struct vd_env *env, struct vdi_rpc_client *client)
{
	struct vdi_wait wait;

	vdi_wait_init(&wait, env);
	client->ops->close(client, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
}
