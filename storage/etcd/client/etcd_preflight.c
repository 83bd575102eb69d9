/* The preflight: conditions for sending calls: a token if there is a user, and members that are new enough.
 *
 * clientv3 checks both in its constructor. This constructor does not wait, so the first call does, and all
 * calls that start meanwhile. On failure the waiting calls get the error, and the next call tries again.
 */
#include <stdio.h>

#include "etcd_call.h"
#include "etcd_proto.h"

#include <rpc.pb-c.h>

void vdi_etcd_preflight_init(struct vdi_etcd_preflight *preflight)
{
	TAILQ_INIT(&preflight->waiters);
}

static void settle(struct vd_etcd *client, const struct vdi_etcd_end *failed)
{
	struct vdi_etcd_waiter_list waiters = TAILQ_HEAD_INITIALIZER(waiters);
	struct vdi_etcd_waiter	   *waiter;

	client->preflight.phase = VDI_ETCD_PREFLIGHT_IDLE;
	TAILQ_CONCAT(&waiters, &client->preflight.waiters, node);
	while ((waiter = TAILQ_FIRST(&waiters)) != NULL) {
		TAILQ_REMOVE(&waiters, waiter, node);
		waiter->waits = false;
		waiter->resume(waiter, failed);
	}
}

static void settle_status(struct vd_etcd *client, vd_status status)
{
	struct vdi_etcd_end failed;

	if (status == VD_CLOSED)
		vdi_etcd_end_own(&failed, VDI_RPC_CANCELED, "grpc: the client connection is closing");
	else
		vdi_etcd_end_own(&failed, VDI_RPC_RESOURCE_EXHAUSTED, VDI_ETCD_NO_MEMORY_TEXT);
	settle(client, &failed);
}

/* Describes the failure of an internal call for the waiting calls. */
static void describe_failure(const struct vdi_etcd_call *call, const struct vd_etcd_error *error,
			     struct vdi_etcd_end *failed)
{
	if (error->error.code == VD_TIMEOUT &&
	    error->code == VD_ETCD_OTHER) { /* names the endpoint that was not reached, and the reason */
		char text[VD_ERROR_MESSAGE_SIZE + 64];

		(void) snprintf(text, sizeof text, "%s%s: %s", VDI_ETCD_OWN_PREFIX,
				vdi_etcd_methods[call->method].path, error->error.message);
		vdi_etcd_end_own(failed, VDI_RPC_DEADLINE_EXCEEDED, text);
	} else if (call->end.end.message && call->end.end.code != VDI_RPC_OK) {
		vdi_etcd_end_copy(failed, &call->end.end);
		failed->end.local = false; /* not caused by the caller */
	} else {
		vdi_etcd_end_own(failed, error->grpc_code,
				 error->error.code == VD_NOMEM ? VDI_ETCD_NO_MEMORY_TEXT :
								 error->error.message);
	}
}

/* ---- Members new enough ---- */

static bool take_number(const char **text, uint64_t *ret_number)
{
	const char *at = *text;

	*ret_number = 0;
	while (*at >= '0' && *at <= '9' && *ret_number < 1000000)
		*ret_number = *ret_number * 10 + (uint64_t) (*at++ - '0');
	if (at == *text)
		return false;
	*text = at;
	return true;
}

vd_status vdi_etcd_check_version(const char *version)
{
	uint64_t    major, minor, patch;
	const char *at = version;

	if (!take_number(&at, &major) || *at++ != '.' || !take_number(&at, &minor) || *at++ != '.' ||
	    !take_number(&at, &patch) || (*at != '\0' && *at != '-' && *at != '+'))
		return VD_INVALID_ARGUMENT;
	if (major != VDI_ETCD_API_MAJOR)
		return major < VDI_ETCD_API_MAJOR ? VD_UNSUPPORTED : VD_OK;
	/* A pre-release of (minor - 1).0 is older than it. */
	if (minor == VDI_ETCD_API_MINOR - 1 && patch == 0 && *at == '-')
		return VD_UNSUPPORTED;
	return minor < VDI_ETCD_API_MINOR - 1 ? VD_UNSUPPORTED : VD_OK;
}

static void check_finished(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	struct vd_etcd		     *client = call->client;
	struct vdi_etcd_preflight    *preflight = &client->preflight;
	Etcdserverpb__StatusResponse *answer = NULL;
	struct vd_etcd_error	      decode_error;
	vd_status		      status = VD_OK;

	if (error == NULL) {
		status = vdi_etcd_proto_unpack(&etcdserverpb__status_response__descriptor, message,
					       (ProtobufCMessage **) &answer, &decode_error);
		error = status != VD_OK ? &decode_error : NULL;
	}
	if (error && !preflight->has_failed) {
		describe_failure(call, error, &preflight->failed);
		preflight->has_failed = true;
	} else if (error == NULL && !preflight->has_failed) {
		status = vdi_etcd_check_version(answer->version);
		preflight->has_failed = status != VD_OK;
		if (status == VD_UNSUPPORTED)
			vdi_etcd_end_own(&preflight->failed, VDI_RPC_FAILED_PRECONDITION,
					 "etcdclient: old cluster version");
		else if (status != VD_OK)
			vdi_etcd_end_own(&preflight->failed, VDI_RPC_FAILED_PRECONDITION,
					 "etcdclient: the member's version is not in dotted-tri format");
	}
	if (answer)
		vdi_etcd_proto_free(&answer->base);
	if (--preflight->checks_left)
		return;
	if (!preflight->has_failed) {
		vdi_lock_acquire(&client->lock);
		preflight->is_checked = true;
		vdi_lock_release(&client->lock);
	}
	settle(client, preflight->has_failed ? &preflight->failed : NULL);
}

/* Placeholder of a user's callback in internal calls. */
static void no_user(void)
{
}

static vd_status start_internal(struct vd_etcd *client, enum vdi_etcd_method method, const char *endpoint,
				const ProtobufCMessage *request, vdi_etcd_finish_fn finished)
{
	const struct vd_etcd_call options = { .endpoint = endpoint, .timeout = client->dial_timeout };
	struct vdi_etcd_call	 *call;

	VDI_TRY(vdi_etcd_call_new(client, &options, method, finished, no_user, NULL, &call));
	call->is_internal = true;
	return vdi_etcd_call_start(call, vdi_etcd_proto_pack(request, &call->request), NULL);
}

static void start_checks(struct vd_etcd *client)
{
	Etcdserverpb__StatusRequest request = ETCDSERVERPB__STATUS_REQUEST__INIT;
	struct vdi_etcd_preflight  *preflight = &client->preflight;
	size_t			    count;
	vd_status		    status = VD_OK;

	preflight->phase = VDI_ETCD_PREFLIGHT_CHECKING;
	preflight->has_failed = false;
	preflight->checks_left = 1; /* one reference for this loop */
	for (size_t i = 0;; i++) {
		char *endpoint = NULL;

		vdi_lock_acquire(&client->lock);
		count = client->endpoint_count;
		if (i < count)
			endpoint = vdi_strdup(client->endpoints[i]);
		vdi_lock_release(&client->lock);
		if (i >= count)
			break;
		status = endpoint ? start_internal(client, VDI_ETCD_METHOD_STATUS, endpoint, &request.base,
						   check_finished) :
				    VD_NOMEM;
		vdi_free(endpoint);
		if (status != VD_OK)
			break;
		preflight->checks_left++;
	}
	if (status != VD_OK && !preflight->has_failed) {
		preflight->has_failed = true;
		if (status == VD_CLOSED)
			vdi_etcd_end_own(&preflight->failed, VDI_RPC_CANCELED,
					 "grpc: the client connection is closing");
		else
			vdi_etcd_end_own(&preflight->failed, VDI_RPC_RESOURCE_EXHAUSTED,
					 VDI_ETCD_NO_MEMORY_TEXT);
	}
	if (--preflight->checks_left == 0)
		settle(client, &preflight->failed);
}

/* ---- The token ---- */

static void next_phase(struct vd_etcd *client)
{
	bool is_checked;

	vdi_lock_acquire(&client->lock);
	is_checked = client->preflight.is_checked;
	vdi_lock_release(&client->lock);
	if (client->reject_old_cluster && !is_checked)
		start_checks(client);
	else
		settle(client, NULL);
}

static void set_token(struct vd_etcd *client, struct vd_blob *token)
{
	struct vd_blob *old;

	vdi_lock_acquire(&client->lock);
	old = client->preflight.token;
	client->preflight.token = token;
	client->preflight.token_generation++;
	client->preflight.is_token_known = true;
	vdi_lock_release(&client->lock);
	vd_blob_unref(old);
}

static bool is_printable(const char *text)
{
	while (*text >= ' ' && *text <= '~')
		text++;
	return *text == '\0';
}

static void authenticated(struct vdi_etcd_call *call, struct vd_etcd_error *error, struct vd_bytes message)
{
	struct vd_etcd			   *client = call->client;
	Etcdserverpb__AuthenticateResponse *answer;
	struct vd_etcd_error		    decode_error;
	struct vdi_etcd_end		    failed;
	struct vd_blob			   *token = NULL;

	/* Authentication is disabled: continue without a token, as clientv3. */
	if (error && error->code == VD_ETCD_AUTH_NOT_ENABLED) {
		set_token(client, NULL);
		next_phase(client);
		return;
	}
	if (error == NULL) {
		if (vdi_etcd_proto_unpack(&etcdserverpb__authenticate_response__descriptor, message,
					  (ProtobufCMessage **) &answer, &decode_error) != VD_OK) {
			error = &decode_error;
		} else {
			if (!is_printable(answer->token)) {
				(void) vdi_etcd_error_set(&decode_error, VD_CORRUPT,
							  "etcdclient: the server's token contains bytes "
							  "that are not printable");
				error = &decode_error;
			} else if (vd_blob_new(vd_bytes_of(answer->token), &token) != VD_OK) {
				(void) vdi_etcd_error_set(&decode_error, VD_NOMEM, VDI_ETCD_NO_MEMORY_TEXT);
				error = &decode_error;
			}
			vdi_etcd_proto_free(&answer->base);
		}
	}
	if (error) {
		describe_failure(call, error, &failed);
		settle(client, &failed);
		return;
	}
	set_token(client, token);
	next_phase(client);
}

static void start_authentication(struct vd_etcd *client)
{
	Etcdserverpb__AuthenticateRequest request = ETCDSERVERPB__AUTHENTICATE_REQUEST__INIT;
	vd_status			  status;

	request.name = client->user;
	request.password = client->password;
	client->preflight.phase = VDI_ETCD_PREFLIGHT_AUTHENTICATING;
	status = start_internal(client, VDI_ETCD_METHOD_AUTHENTICATE, NULL, &request.base, authenticated);
	if (status != VD_OK)
		settle_status(client, status);
}

void vdi_etcd_preflight_wait(struct vd_etcd *client, struct vdi_etcd_waiter *waiter, bool fresh)
{
	bool needs_token;

	VDI_CHECK(!waiter->waits);
	waiter->waits = true;
	TAILQ_INSERT_TAIL(&client->preflight.waiters, waiter, node);
	if (client->preflight.phase != VDI_ETCD_PREFLIGHT_IDLE)
		return;
	vdi_lock_acquire(&client->lock);
	needs_token = client->user && (fresh || !client->preflight.is_token_known);
	vdi_lock_release(&client->lock);
	if (needs_token)
		start_authentication(client);
	else
		next_phase(client);
}

void vdi_etcd_preflight_leave(struct vd_etcd *client, struct vdi_etcd_waiter *waiter)
{
	if (!waiter->waits)
		return;
	waiter->waits = false;
	TAILQ_REMOVE(&client->preflight.waiters, waiter, node);
}
