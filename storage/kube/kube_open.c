/* Opening and closing a client. Until is_open is set, the transport's actor leaves the client alone. */
#include <inttypes.h>
#include <stdio.h>
#include <vedette/vedette.h>

#include "kube_curl.h"
#include "kube_state.h"
#include "wait.h"

/* ---- Options ---- */

static const size_t text_offsets[] = {
	offsetof(struct vd_kube_options, server),	   offsetof(struct vd_kube_options, kubeconfig),
	offsetof(struct vd_kube_options, context),	   offsetof(struct vd_kube_options, token),
	offsetof(struct vd_kube_options, token_path),	   offsetof(struct vd_kube_options, ca_path),
	offsetof(struct vd_kube_options, cert_path),	   offsetof(struct vd_kube_options, key_path),
	offsetof(struct vd_kube_options, tls_server_name), offsetof(struct vd_kube_options, proxy_url),
	offsetof(struct vd_kube_options, user_agent),
};

static const char **text_at(struct vd_kube_options *options, size_t index)
{
	return (const char **) (void *) ((char *) options + text_offsets[index]);
}

/* On failure the copy holds the texts copied so far. */
static vd_status copy_options(struct vd_kube_options *copy, const struct vd_kube_options *options)
{
	size_t i;

	*copy = *options;
	for (i = 0; i < VDI_ARRAY_SIZE(text_offsets); i++)
		*text_at(copy, i) = NULL;
	for (i = 0; i < VDI_ARRAY_SIZE(text_offsets); i++) {
		const char *text =
			*(const char *const *) (const void *) ((const char *) options + text_offsets[i]);

		if (text && (*text_at(copy, i) = vdi_strdup(text)) == NULL)
			return VD_NOMEM;
	}
	return VD_OK;
}

void vdi_kube_free(struct vd_kube *kube)
{
	size_t i;

	for (i = 0; i < VDI_ARRAY_SIZE(text_offsets); i++)
		vdi_free((char *) (uintptr_t) *text_at(&kube->options, i));
	if (kube->identity)
		vdi_kube_identity_close(kube->identity, NULL, NULL);
	vdi_free(kube->server);
	vdi_free(kube->namespace_name);
	vdi_free(kube->user_agent);
	vdi_lock_fini(&kube->inbox_lock);
	vdi_kube_parts_fini(&kube->parts);
	vdi_lock_fini(&kube->lock);
	vdi_free(kube);
}

/* ---- Open ---- */

static vd_status check_options(const struct vd_kube_options *options, struct vd_error *reterr)
{
	if (options->request_timeout.ns <= 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "vd_kube_open: request_timeout is %" PRId64 " ns, must be above 0",
				    options->request_timeout.ns);
	if (options->silence_max.ns < VD_SECONDS(5).ns)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "vd_kube_open: silence_max is %" PRId64 " ns, must be at least 5 s",
				    options->silence_max.ns);
	if (options->source_bytes_max == 0)
		return vd_error_set(reterr, VD_INVALID_ARGUMENT,
				    "vd_kube_open: source_bytes_max is 0, must be above 0");
	return VD_OK;
}

static vd_status prepare(struct vd_kube *kube, const struct vd_kube_options *options, struct vd_error *reterr)
{
	struct vdi_kubeconfig	     config;
	const struct vdi_kubeconfig *found;
	char			     user_agent[64];

	VDI_TRY(check_options(options, reterr));
	VDI_TRY(copy_options(&kube->options, options));
	VDI_TRY(vdi_kube_config_find(options, VDI_KUBE_POD_FOLDER, &config, reterr));
	VDI_TRY(vdi_kube_identity_new(kube->env, &config, vdi_kube_on_identity, kube, &kube->identity,
				      reterr));
	found = vdi_kube_identity_config(kube->identity);
	snprintf(user_agent, sizeof user_agent, "vedette/%s", vd_version());
	kube->server = vdi_strdup(found->server);
	kube->namespace_name = vdi_strdup(found->namespace_name);
	kube->user_agent = vdi_strdup(options->user_agent ? options->user_agent : user_agent);
	return kube->server && kube->namespace_name && kube->user_agent ? VD_OK : VD_NOMEM;
}

static vd_status connect(struct vd_kube *kube, vdi_kube_transport_new_fn transport_new,
			 struct vd_error *reterr)
{
	const struct vdi_kube_transport_options options = {
		.env = kube->env,
		.server = kube->server,
		.proxy_url = vdi_kube_identity_config(kube->identity)->proxy_url,
		.user_agent = kube->user_agent,
		.run = vdi_kube_run,
		.arg = kube,
	};
	bool			   has_program = vdi_kube_identity_has_program(kube->identity);
	struct vdi_kube_transport *transport;

	VDI_TRY(transport_new(&options, &transport, reterr));
	vdi_lock_acquire(&kube->inbox_lock);
	kube->transport = transport;
	kube->is_open = true;
	vdi_lock_release(&kube->inbox_lock);
	kube->identity_member.run = vdi_kube_run_identity;
	kube->identity_member.close = vdi_kube_close_identity;
	if (has_program)
		return vdi_kube_member_add(kube, &kube->identity_member);
	transport->ops->wake(transport);
	return VD_OK;
}

vd_status vdi_kube_open_over(const struct vd_env *env, const struct vd_kube_options *options,
			     vdi_kube_transport_new_fn transport_new, struct vd_kube **ret_kube,
			     struct vd_error *reterr)
{
	struct vd_kube *kube;
	vd_status	status;

	VDI_REQUIRE(env, reterr);
	VDI_REQUIRE_OPTIONS(options, reterr);
	VDI_REQUIRE(ret_kube, reterr);
	kube = VDI_NEW(struct vd_kube);
	if (kube == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	kube->env = env;
	vdi_kube_parts_init(&kube->parts);
	vdi_lock_init(&kube->lock, VDI_LOCK_KUBE);
	vdi_lock_init(&kube->inbox_lock, VDI_LOCK_QUEUE);
	LIST_INIT(&kube->members);
	TAILQ_INIT(&kube->woken);
	status = prepare(kube, options, reterr);
	if (status == VD_OK)
		status = connect(kube, transport_new, reterr);
	if (status != VD_OK) {
		vdi_kube_free(kube);
		return status == VD_NOMEM ? vd_error_set(reterr, VD_NOMEM, "out of memory") : status;
	}
	kube->usage = (struct vdi_usage) {
		.kind = "kube client", .name = kube->server, .closed_by = "vd_kube_close", .env = env
	};
	vdi_usage_begin(&kube->usage);
	*ret_kube = kube;
	return VD_OK;
}

vd_status vd_kube_open(const struct vd_env *env, const struct vd_kube_options *options,
		       struct vd_kube **ret_kube, struct vd_error *reterr)
{
	return vdi_kube_open_over(env, options, vdi_kube_curl_new, ret_kube, reterr);
}

/* ---- Close ---- */

void vd_kube_close(struct vd_kube *kube, void (*done)(void *arg), void *arg)
{
	if (kube == NULL) {
		if (done)
			done(arg);
		return;
	}
	vdi_usage_check("vd_kube_close", kube);
	atomic_store(&kube->usage.is_closing, true);
	vdi_lock_acquire(&kube->inbox_lock);
	if (kube->is_closing)
		vdi_misuse("vd_kube_close: the client is closing already");
	kube->is_closing = true;
	kube->close_done = done;
	kube->close_done_arg = arg;
	kube->transport->ops->wake(kube->transport);
	vdi_lock_release(&kube->inbox_lock);
}

struct vd_kube *vd_kube_close_wait(struct vd_kube *kube)
{
	struct vdi_wait wait;

	if (kube == NULL)
		return NULL;
	vdi_wait_check_close("vd_kube_close_wait", "vd_kube_close");
	vdi_wait_init(&wait, kube->env);
	vd_kube_close(kube, vdi_wait_signal_arg, &wait);
	vdi_wait_wait(&wait);
	vdi_wait_fini(&wait);
	return NULL;
}
