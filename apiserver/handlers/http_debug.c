/* /debug/vedette: the state of the whole server as JSON, for operators.
 *
 * Every cache writes its own part, on its own threads (cacher_dump.h). The request waits for the last of them
 * without blocking its loop.
 */
#include "env.h"
#include "http_handlers.h"

#include <stdatomic.h>
#include <vedette/vedette.h>

#include "cacher_dump.h"

struct part {
	struct vdi_debug *debug;
	struct vdi_out	  json; /* of one cache; empty: no response */
};

struct vdi_debug {
	struct vdi_request *request;
	/* one reference on the set that was served when the request arrived */
	struct vdi_resource_set *resource_set;
	_Atomic size_t		 left;
	size_t			 part_count;
	struct part		 parts[];
};

static void free_debug(struct vdi_request *request)
{
	struct vdi_debug *debug = request->debug;

	for (size_t i = 0; i < debug->part_count; i++)
		vdi_out_fini(&debug->parts[i].json);
	(void) vdi_resource_set_unref(debug->resource_set);
	vdi_free(debug);
}

static void part_is_done(struct vdi_debug *debug)
{
	if (atomic_fetch_sub(&debug->left, 1) == 1)
		vdi_request_got_object(debug->request, VD_OK, NULL, 0, NULL);
}

static void dumped(void *arg, vd_status status, struct vd_bytes json)
{
	struct part *part = arg;

	if (status == VD_OK)
		vdi_out_bytes(&part->json, json);
	part_is_done(part->debug);
}

static void write_loops(struct vdi_out *body, struct vd_server *server)
{
	struct vdi_loop_iteration longest;

	vdi_out_raw(body, ",\"loops\":[");
	for (size_t i = 0; i < server->loop_count; i++) {
		vdi_out_comma(body);
		longest = vdi_loop_longest_iteration(server->loops[i].loop);
		vdi_out_printf(
			body,
			"{\"executor\":\"%u\",\"connections\":%lld,\"watches\":%lld,\"longestIterationUs\":%"
			"lld,\"longestIterationCpuUs\":%lld}",
			vdi_env_executor_number(server->env,
						vdi_loop_executor(server->loops[i].loop)->executor),
			(long long) server->loops[i].connections_open,
			(long long) server->loops[i].watches_open, (long long) (longest.wall.ns / 1000),
			(long long) (longest.cpu.ns / 1000));
	}
	vdi_out_raw(body, "]");
}

static void write_client(void *arg, const struct vdi_account *account)
{
	struct vdi_out *body = arg;
	const char     *line = memchr(account->key, '\n', account->key_size);
	size_t		address = (size_t) (line - account->key);

	vdi_out_comma(body);
	vdi_out_raw(body, "{");
	vdi_out_member(body, "address", (struct vd_bytes) { account->key, address });
	vdi_out_member(body, "userAgent", (struct vd_bytes) { line + 1, account->key_size - address - 1 });
	vdi_out_comma(body);
	vdi_out_printf(body, "\"requests\":%lld,\"watches\":%lld,\"unsentBytes\":%lld,\"answerBytes\":%lld}",
		       (long long) account->requests, (long long) account->watches,
		       (long long) account->unsent_bytes, (long long) account->answer_bytes);
}

static void write_clients(struct vdi_out *body, struct vd_server *server)
{
	vdi_out_raw(body, ",\"clients\":[");
	vdi_accounts_each(&server->accounts, write_client, body);
	vdi_out_raw(body, "]");
}

static void write_more(void *arg, struct vd_bytes json)
{
	vdi_out_bytes(arg, json);
}

/* watches: the caches' open streams. */
static void write_store(struct vdi_out *body, struct vd_server *server, const struct vdi_debug *debug)
{
	struct vd_store_status store;
	size_t		       watches = 0;

	if (vd_store_status_get(server->store, &store) != VD_OK)
		return;
	for (size_t i = 0; i < debug->part_count; i++) {
		struct vd_bytes json = vdi_out_slice(&debug->parts[i].json);

		watches += json.size && memmem(json.data, json.size, ",\"watchChan\":{", 14) != NULL;
	}
	vdi_out_printf(body,
		       ",\"store\":{\"current\":%lld,\"compacted\":%lld,\"keys\":%lld,\"bytes\":%lld,"
		       "\"watches\":%zu",
		       (long long) store.current, (long long) store.compacted, (long long) store.key_count,
		       (long long) store.size_bytes, watches);
	vd_store_dump(server->store, write_more, body);
	vdi_out_raw(body, "}");
}

static void write_resource(struct vdi_out *body, const struct vdi_resource *resource, const struct part *part)
{
	char		text[VDI_RESOURCE_NAME_MAX];
	struct vd_bytes json = vdi_out_slice(&part->json);

	vdi_out_comma(body);
	vdi_out_raw(body, "{");
	vdi_out_member(body, "resource", vd_bytes_of(vdi_resource_name(resource, text)));
	vdi_out_member(body, "storagePrefix", vd_bytes_of(resource->key_prefix));
	if (json.size > 2 && !part->json.failed) {
		/* Continue the object with the members of json, without its opening brace. */
		vdi_out_raw(body, ",");
		vdi_out_bytes(body, (struct vd_bytes) { (const char *) json.data + 1, json.size - 2 });
	}
	vdi_out_raw(body, "}");
}

static void all_dumped(struct vdi_request *request)
{
	struct vd_server *server = request->server;
	struct vdi_out	  body = VDI_OUT_INIT;

	vdi_out_printf(&body,
		       "{\"version\":\"%s\",\"address\":\"%s\",\"connections\":%lld,\"watches\":%llu,"
		       "\"requestsUnderWay\":%lld,\"requests\":%llu,"
		       "\"refused\":%llu,\"watchEvents\":%llu,\"memoryBlocks\":%lld,\"draining\":%s",
		       vd_version(), server->address, (long long) server->connections_open,
		       (unsigned long long) server->watches_open, (long long) server->requests_open,
		       (unsigned long long) server->request_total, (unsigned long long) server->refused_total,
		       (unsigned long long) server->watch_event_total, (long long) vdi_alloc_live(),
		       server->draining ? "true" : "false");
	write_loops(&body, server);
	write_clients(&body, server);
	write_store(&body, server, request->debug);
	vdi_out_raw(&body, ",\"resources\":[");
	for (size_t i = 0; i < request->debug->part_count; i++)
		write_resource(&body, request->debug->resource_set->resources.items[i],
			       &request->debug->parts[i]);
	vdi_out_raw(&body, "]}\n");
	vdi_request_reply(request, 200, "application/json", "", &body);
}

void vdi_handle_debug(struct vdi_request *request)
{
	struct vdi_resource_set *resource_set = request->loop->resource_set;
	size_t			 count = resource_set->resources.count;
	struct vdi_debug	*debug = vdi_calloc(1, sizeof *debug + count * sizeof debug->parts[0]);

	if (debug == NULL) {
		vdi_request_fail_nomem(request);
		return;
	}
	debug->request = request;
	debug->resource_set = vdi_resource_set_ref(resource_set);
	debug->part_count = count;
	atomic_init(&debug->left, count);
	request->debug = debug;
	request->free_state = free_debug;
	for (size_t i = 0; i < count; i++)
		debug->parts[i].debug = debug;
	vdi_request_await(request, all_dumped);
	for (size_t i = 0; i < count; i++)
		if (vdi_cacher_dump(resource_set->resources.items[i]->cacher, dumped, &debug->parts[i]) !=
		    VD_OK)
			part_is_done(debug);
	vdi_request_awaited(request, VD_OK, NULL);
}
