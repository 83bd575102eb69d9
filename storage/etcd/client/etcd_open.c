/* Opening of an etcd client over gRPC; separate, so that the rest of the client does not depend on gRPC. */
#include <vedette/etcd.h>

#include "etcd_client.h"
#include "etcd_state.h"
#include "rpc_transport.h"

vd_status vdi_etcd_open(const struct vd_env *env, const struct vd_etcd_options *options,
			struct vd_etcd **ret_client, struct vd_error *reterr)
{
	struct vdi_rpc_tls	      tls;
	struct vdi_rpc_client_options transport_options;
	struct vd_etcd		     *client;
	struct vd_error		      error = { 0 };
	vd_status		      status;

	VDI_TRY(vdi_etcd_check_options(options, reterr));
	tls = (struct vdi_rpc_tls) { options->ca_path, options->cert_path, options->key_path,
				     options->server_name };
	transport_options = (struct vdi_rpc_client_options) {
		.endpoints = options->endpoints,
		.endpoint_count = options->endpoint_count,
		.tls = tls.ca_path || tls.cert_path || tls.server_name ? &tls : NULL,
		.keepalive_time = options->keepalive_time,
		.keepalive_timeout = options->keepalive_timeout,
		.send_size_max = options->send_size_max,
		.receive_size_max = options->receive_size_max,
	};
	/* Make the transport last, because it closes asynchronously and nothing of it may remain if the open
	 * fails. */
	VDI_TRY(vdi_etcd_new(env, options, NULL, &client, reterr));
	status = vdi_rpc_transport_of(options->transport)
			 ->client_new(env, &transport_options, &client->transport, &error);
	if (status != VD_OK) {
		vdi_etcd_discard(client);
		/* without memory, a transport may not set a message */
		return vd_error_set(reterr, status, "%s",
				    error.code == status ? error.message : vd_status_sentence(status));
	}
	*ret_client = client;
	return VD_OK;
}

vd_status vd_etcd_open(const struct vd_env *env, const struct vd_etcd_options *options,
		       struct vd_etcd **ret_client, struct vd_error *reterr)
{
	const struct vdi_usage what = { .kind = "etcd client",
					.closed_by = "vd_etcd_close",
					.watch_closed_by = "vd_etcd_watch_close",
					.env = env };
	struct vdi_usage      *usage;
	vd_status	       status;

	VDI_REQUIRE(env, reterr);
	VDI_REQUIRE(ret_client, reterr);
	usage = vdi_usage_new(&what);
	if (usage == NULL)
		return vd_error_set(reterr, VD_NOMEM, "etcdclient: out of memory for a client");
	status = vdi_etcd_open(env, options, ret_client, reterr);
	if (status == VD_OK)
		(*ret_client)->usage = usage;
	else
		(void) vdi_usage_unref(usage);
	return status;
}
