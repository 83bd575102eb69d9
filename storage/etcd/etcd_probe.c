/* The probe of each endpoint: its version, and every 30 s the size of its database.
 *
 * Mirrors kubernetes/apiserver pkg/storage/etcd3/etcdfeature: an unknown version counts as unsupported; one
 * endpoint that supports progress requests turns the feature on, and one that does not turns it off for good.
 * A failed probe is repeated after 10 ms, doubled up to 15 s. Unlike upstream, each check of the size also
 * checks the version, because a server may be replaced by an older one.
 */
#include "etcd_store.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

vd_status vdi_etcd_probe_init(struct vdi_etcd_probe *probe, struct vdi_etcd_store *store,
			      const char *const *endpoints, size_t count)
{
	probe->store = store;
	probe->endpoints = vdi_calloc(count ? count : 1, sizeof *probe->endpoints);
	if (probe->endpoints == NULL)
		return VD_NOMEM;
	for (; probe->count < count; probe->count++) {
		struct vdi_etcd_probe_endpoint *endpoint = &probe->endpoints[probe->count];

		*endpoint = (struct vdi_etcd_probe_endpoint) {
			.probe = probe,
			.endpoint = vdi_strdup(endpoints[probe->count]),
			.backoff = VDI_ETCD_PROBE_BACKOFF_FIRST,
			.size_bytes = -1,
		};
		if (endpoint->endpoint == NULL)
			return VD_NOMEM;
	}
	return VD_OK;
}

void vdi_etcd_probe_fini(struct vdi_etcd_probe *probe)
{
	for (size_t i = 0; i < probe->count; i++)
		vdi_free(probe->endpoints[i].endpoint);
	vdi_free(probe->endpoints);
	*probe = (struct vdi_etcd_probe) { 0 };
}

/* Parses "3.5.13" or "3.6.0-rc.1", as upstream's parser of semantic versions. */
static bool parse_version(const char *text, long ret_parts[3], bool *ret_is_release)
{
	for (int i = 0; i < 3; i++) {
		char *end;

		if (!isdigit((unsigned char) *text) || (text[0] == '0' && isdigit((unsigned char) text[1])))
			return false;
		ret_parts[i] = strtol(text, &end, 10);
		if (i < 2 && *end++ != '.')
			return false;
		text = end;
	}
	*ret_is_release = *text != '-';
	return *text == 0 || *text == '-' || *text == '+';
}

/* A pre-release is older than its release. */
static bool is_before(const long version[3], bool is_release, long major, long minor, long patch)
{
	const long wanted[3] = { major, minor, patch };

	for (int i = 0; i < 3; i++)
		if (version[i] != wanted[i])
			return version[i] < wanted[i];
	return !is_release;
}

bool vdi_etcd_version_has_progress(const char *text)
{
	long version[3];
	bool is_release;

	if (!parse_version(text, version, &is_release) || is_before(version, is_release, 3, 4, 31))
		return false;
	return is_before(version, is_release, 3, 5, 0) || !is_before(version, is_release, 3, 5, 13);
}

bool vdi_etcd_probe_is_settled_locked(const struct vdi_etcd_probe *probe)
{
	for (size_t i = 0; i < probe->count; i++)
		if (!probe->endpoints[i].was_asked)
			return false;
	return true;
}

/* Combines the results of all endpoints. */
static void conclude_locked(struct vdi_etcd_probe *probe)
{
	struct vdi_etcd_store *store = probe->store;
	int64_t		       size_bytes = -1;
	bool		       supports = false;

	for (size_t i = 0; i < probe->count; i++) {
		const struct vdi_etcd_probe_endpoint *endpoint = &probe->endpoints[i];

		if (endpoint->is_known && !endpoint->supports && !probe->is_off) {
			probe->is_off = true;
			vdi_log(store->env, VD_LOG_INFO, "etcd",
				"%s is etcd %s, whose progress notifications are unreliable: consistent "
				"lists are read from "
				"etcd, and streamed lists are refused",
				endpoint->endpoint, endpoint->version);
		}
		supports |= endpoint->supports; /* an endpoint with unknown version supports nothing */
		size_bytes = VDI_MAX(size_bytes, endpoint->size_bytes);
	}
	atomic_store(&store->server_state->progress, supports && !probe->is_off);
	atomic_store(&store->size_bytes, size_bytes);
}

static void on_status(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		      const struct vd_etcd_status *status)
{
	struct vdi_etcd_probe_endpoint *endpoint = arg;
	struct vdi_etcd_store	       *store = endpoint->probe->store;
	vd_mono				now = vd_env_now(store->env);

	/* The size is the member's own; whether it can reach the others shows in calls. */
	if (error == NULL)
		vdi_etcd_server_state_raise(&store->server_state->current, header->revision);
	vdi_lock_acquire(&store->lock);
	endpoint->is_asked = false;
	endpoint->was_asked = true;
	if (error) {
		endpoint->due = vd_mono_add(now, endpoint->backoff);
		endpoint->backoff.ns = VDI_MIN(2 * endpoint->backoff.ns, VDI_ETCD_PROBE_BACKOFF_MAX.ns);
	} else {
		endpoint->due = vd_mono_add(now, VDI_ETCD_PROBE_PERIOD);
		endpoint->backoff = VDI_ETCD_PROBE_BACKOFF_FIRST;
		endpoint->is_known = true;
		(void) snprintf(endpoint->version, sizeof endpoint->version, "%s", status->version);
		endpoint->supports = vdi_etcd_version_has_progress(endpoint->version);
		endpoint->size_bytes = status->db_size;
		conclude_locked(endpoint->probe);
	}
	vd_actor_wake(store->maintenance);
	vdi_lock_release(&store->lock);
}

/* Returns true if the endpoint is to be probed now. */
static bool is_due(struct vdi_etcd_probe_endpoint *endpoint, vd_mono now, vd_mono *ret_next)
{
	struct vdi_etcd_store *store = endpoint->probe->store;
	bool		       due;

	vdi_lock_acquire(&store->lock);
	due = !endpoint->is_asked && endpoint->due.ns <= now.ns;
	if (due)
		endpoint->is_asked = true;
	else if (!endpoint->is_asked && endpoint->due.ns < ret_next->ns)
		*ret_next = endpoint->due;
	vdi_lock_release(&store->lock);
	return due;
}

vd_mono vdi_etcd_probe_run(struct vdi_etcd_probe *probe)
{
	struct vdi_etcd_store *store = probe->store;
	vd_mono		       now = vd_env_now(store->env), next = VD_NEVER;

	for (size_t i = 0; i < probe->count; i++) {
		struct vdi_etcd_probe_endpoint *endpoint = &probe->endpoints[i];
		struct vd_etcd_call		call = { .timeout = VDI_ETCD_PROBE_TIMEOUT,
							 .endpoint = endpoint->endpoint };

		if (!is_due(endpoint, now, &next) ||
		    vd_etcd_status_get(store->client, &call, on_status, endpoint) == VD_OK)
			continue;
		vdi_lock_acquire(&store->lock);
		endpoint->is_asked = false;
		endpoint->was_asked = true;
		endpoint->due = vd_mono_add(now, VDI_ETCD_PROBE_BACKOFF_MAX);
		vdi_lock_release(&store->lock);
		next.ns = VDI_MIN(next.ns, endpoint->due.ns);
	}
	return next;
}
