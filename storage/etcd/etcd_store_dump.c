/* The etcd part of /debug/vedette: endpoints, calls, compactor. Strings from servers and the transport are
 * escaped. */
#include "buffer.h"
#include "etcd_store.h"

static void add_text(struct vdi_buffer *json, const char *name, const char *text)
{
	vdi_buffer_printf(json, ",\"%s\":", name);
	vdi_buffer_append_json_string(json, vd_bytes_of(text));
}

static void add_endpoint(struct vdi_buffer *json, struct vdi_etcd_store *store, size_t index)
{
	struct vdi_etcd_probe_endpoint *endpoint = &store->probe.endpoints[index];
	char				version[sizeof endpoint->version], why[256] = "";
	bool				is_ready = false;
	int64_t				size_bytes;

	vdi_lock_acquire(&store->lock);
	memcpy(version, endpoint->version, sizeof version);
	size_bytes = endpoint->size_bytes;
	vdi_lock_release(&store->lock);
	if (vd_etcd_endpoint_state(store->client, index, &is_ready, why, sizeof why) != VD_OK)
		is_ready = false; /* no longer in the list */
	vdi_buffer_append_text(json, index ? ",{\"endpoint\":" : "{\"endpoint\":");
	vdi_buffer_append_json_string(json, vd_bytes_of(endpoint->endpoint));
	vdi_buffer_printf(json, ",\"ready\":%s,\"bytes\":%lld", is_ready ? "true" : "false",
			  (long long) size_bytes);
	add_text(json, "version", version);
	/* Only the part after the endpoint's name. */
	add_text(json, "lastError",
		 strlen(why) > strlen(endpoint->endpoint) + 2 ? why + strlen(endpoint->endpoint) + 2 : "");
	vdi_buffer_append_char(json, '}');
}

static void add_calls(struct vdi_buffer *json, struct vdi_etcd_store *store)
{
	static const char *const names[VDI_ETCD_CALL_COUNT] = { "range",   "stream", "txn",
								"compact", "lease",  "watch" };

	vdi_buffer_append_text(json, ",\"calls\":{");
	for (size_t i = 0; i < VDI_ETCD_CALL_COUNT; i++)
		vdi_buffer_printf(json, "%s\"%s\":{\"ok\":%lld,\"failed\":%lld}", i ? "," : "", names[i],
				  (long long) vdi_metric_value(store->calls[i]),
				  (long long) vdi_metric_value(store->call_errors[i]));
	vdi_buffer_append_char(json, '}');
}

static void add_maintenance(struct vdi_buffer *json, struct vdi_etcd_store *store)
{
	struct vd_error failure;
	uint64_t	rounds, compactions;

	vdi_lock_acquire(&store->lock);
	failure = store->failure;
	rounds = store->compactor.rounds;
	compactions = store->compactor.compactions;
	vdi_lock_release(&store->lock);
	vdi_buffer_printf(json, ",\"reachable\":%s,\"progress\":%s,\"callsInFlight\":%lld,\"watches\":%lld",
			  atomic_load(&store->is_unreachable) ? "false" : "true",
			  atomic_load(&store->server_state->progress) ? "true" : "false",
			  (long long) atomic_load(&store->in_flight),
			  (long long) atomic_load(&store->server_state->usage.watchers));
	vdi_buffer_printf(json,
			  ",\"compactor\":{\"intervalSeconds\":%lld,\"rounds\":%llu,\"compactions\":%llu}",
			  (long long) (store->compactor.interval.ns / 1000000000),
			  (unsigned long long) rounds, (unsigned long long) compactions);
	add_text(json, "lastFailure", failure.code == VD_OK ? "" : failure.message);
}

void vdi_etcd_store_dump(struct vd_store *base, void (*write)(void *arg, struct vd_bytes json), void *arg)
{
	struct vdi_etcd_store *store = VDI_CONTAINER_OF(base, struct vdi_etcd_store, base);
	struct vdi_buffer      json;

	if (!vdi_etcd_store_enter(store))
		return;
	vdi_buffer_init(&json, 1u << 20);
	vdi_buffer_append_text(&json, ",\"etcd\":{\"endpoints\":[");
	for (size_t i = 0; i < store->probe.count; i++)
		add_endpoint(&json, store, i);
	vdi_buffer_append_char(&json, ']');
	add_maintenance(&json, store);
	add_calls(&json, store);
	vdi_buffer_append_char(&json, '}');
	vdi_etcd_store_leave(store);
	if (vdi_buffer_status(&json) == VD_OK)
		write(arg, vdi_buffer_bytes(&json));
	vdi_buffer_fini(&json);
}
