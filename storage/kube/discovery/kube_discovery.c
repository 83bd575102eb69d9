/* A reading requests /api and /apis in the aggregated form. A server that does not know it answers with the
 * plain form, which has only the versions; the reading then requests them one after the other. A version that
 * cannot be read is noted in the table and does not end the reading, because an extension server is often
 * down.
 *
 * Handlers of exchanges only note what they receive; the member's run does the next step. */
#include "kube_discovery.h"

#include <stdio.h>
#include <sys/queue.h>

#include "buffer.h"
#include "kube_client.h"
#include "kube_names.h"
#include "kube_parts.h"
#include "lock.h"

#define ACCEPT                                                                                               \
	"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"                              \
	"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"

struct find {
	TAILQ_ENTRY(find) node;
	vd_kube_resource_fn done;
	void		   *arg;
	vd_mono		    newer_than; /* older results are not accepted */
	bool		    is_known;	/* the table that is there decides */
	char		    typed[];
};
TAILQ_HEAD(find_list, find);

enum step { STEP_CORE, STEP_VERSIONS, STEP_GROUPS, STEP_DONE };

struct reading {
	bool			  is_active;
	bool			  has_core, has_groups;
	size_t			  version; /* STEP_VERSIONS: index of the one to read */
	vd_mono			  begun, deadline;
	struct vdi_kube_backoff	  backoff;
	struct vdi_kube_names	  names;
	struct vdi_kube_exchange *exchange; /* NULL: none */
	/* The response. */
	bool		     has_ended;
	vd_status	     status;
	struct vd_error	     error;
	int		     code;
	struct vdi_kube_head head;
	struct vdi_buffer    body;
};

struct discovery {
	struct vdi_kube_member member;
	struct vd_kube	      *kube;

	struct vdi_lock lock; /* VDI_LOCK_KUBE_PARTS */
	/* Under lock. */
	struct find_list arrivals;
	bool		 is_closed;

	/* The client's actor. */
	struct find_list      waiting;
	struct reading	      reading;
	bool		      has_names;
	struct vdi_kube_names names;
	vd_mono		      read_at; /* begin of the reading that gave names */
	vd_mono		      failed_at;
	struct vd_error	      error; /* of the last reading; code VD_OK: none */
};

/* ---- Finds ---- */

static void answer(struct find *find, const struct vdi_kube_name *name, const struct vd_error *error)
{
	struct vd_kube_resource resource = { 0 };

	if (name) {
		resource.group = name->group;
		resource.version = name->version;
		resource.plural = name->plural;
		resource.kind = *name->kind ? name->kind : NULL;
		resource.cluster_scoped = name->cluster_scoped;
		find->done(find->arg, VD_OK, &resource, NULL);
	} else {
		find->done(find->arg, error->code, NULL, error);
	}
	vdi_free(find);
}

/* Answers a find from the table, if it is known to be there; with is_final also if it is not. */
static bool answer_from_names(struct discovery *discovery, struct find *find, bool is_final)
{
	struct vd_error		    error = { 0 };
	const struct vdi_kube_name *name = NULL;

	is_final = is_final || find->is_known;
	if (!discovery->has_names)
		return false;
	if (!is_final && discovery->read_at.ns < find->newer_than.ns)
		return false;
	if (vdi_kube_names_find(&discovery->names, find->typed, &name, &error) != VD_OK && !is_final &&
	    error.code != VD_INVALID_ARGUMENT)
		return false;
	TAILQ_REMOVE(&discovery->waiting, find, node);
	answer(find, name, &error);
	return true;
}

/* A callback may add finds, which go to the arrivals, but changes nothing of the list. */
static void answer_waiting(struct discovery *discovery, bool is_final)
{
	struct find *find, *next;

	for (find = TAILQ_FIRST(&discovery->waiting); find; find = next) {
		next = TAILQ_NEXT(find, node);
		(void) answer_from_names(discovery, find, is_final);
	}
}

static void fail_waiting(struct discovery *discovery, const struct vd_error *error)
{
	struct find *find;

	while ((find = TAILQ_FIRST(&discovery->waiting)) != NULL) {
		TAILQ_REMOVE(&discovery->waiting, find, node);
		answer(find, NULL, error);
	}
}

static void take_arrivals(struct discovery *discovery)
{
	vdi_lock_acquire(&discovery->lock);
	TAILQ_CONCAT(&discovery->waiting, &discovery->arrivals, node);
	vdi_lock_release(&discovery->lock);
}

/* ---- The exchange ---- */

static void on_head(void *arg, const struct vdi_kube_head *head)
{
	struct discovery *discovery = arg;

	discovery->reading.code = head->code;
	discovery->reading.head = *head;
}

static void note_end(struct discovery *discovery, vd_status status)
{
	discovery->reading.exchange = NULL;
	discovery->reading.has_ended = true;
	discovery->reading.status = status;
	vdi_kube_member_wake(&discovery->member);
}

static bool on_body(void *arg, struct vd_bytes bytes)
{
	struct discovery *discovery = arg;
	struct reading	 *reading = &discovery->reading;

	vdi_buffer_append(&reading->body, bytes);
	if (vdi_buffer_status(&reading->body) != VD_OK) {
		vdi_kube_cancel(reading->exchange);
		note_end(discovery,
			 vd_error_set(&reading->error, vdi_buffer_status(&reading->body),
				      "the response has more than %zu bytes", reading->body.size_max));
	}
	return true;
}

static void on_ended(void *arg, vd_status status, const struct vd_error *error)
{
	struct discovery *discovery = arg;
	struct reading	 *reading = &discovery->reading;

	if (status != VD_OK)
		reading->error = *error;
	else if (reading->code < 200 || reading->code > 299)
		status = vdi_kube_error_of(&reading->head, vdi_buffer_bytes(&reading->body), &reading->error);
	note_end(discovery, status);
}

/* The core versions are read before /apis, so that their resources come first. */
static enum step step_of(const struct reading *reading)
{
	if (!reading->has_core)
		return STEP_CORE;
	if (reading->version < reading->names.version_count)
		return STEP_VERSIONS;
	return reading->has_groups ? STEP_DONE : STEP_GROUPS;
}

static void describe_path(const struct reading *reading, char *path, size_t size)
{
	const struct vdi_kube_version *version = &reading->names.versions[reading->version];

	if (step_of(reading) == STEP_CORE)
		snprintf(path, size, "/api");
	else if (step_of(reading) == STEP_GROUPS)
		snprintf(path, size, "/apis");
	else
		snprintf(path, size, "%s%s/%s", *version->group ? "/apis/" : "/api", version->group,
			 version->version);
}

/* VD_AGAIN: later. */
static vd_status start(struct discovery *discovery)
{
	struct reading		     *reading = &discovery->reading;
	char			      path[3 * VDI_KUBE_NAME_MAX];
	const struct vdi_kube_handler handler = { on_head, on_body, on_ended, discovery };
	struct vdi_kube_http_request  request = {
		 .method = "GET",
		 .path = path,
		 .accept = step_of(reading) == STEP_VERSIONS ? "application/json" : ACCEPT,
		 .timeout = vdi_kube_options(discovery->kube)->request_timeout,
	};

	describe_path(reading, path, sizeof path);
	vdi_buffer_clear(&reading->body);
	reading->has_ended = false;
	reading->code = 0;
	reading->head = (struct vdi_kube_head) { 0 };
	memset(&reading->error, 0, sizeof reading->error);
	return vdi_kube_start(discovery->kube, &request, &handler, &reading->exchange, &reading->error);
}

/* ---- The reading ---- */

static void begin(struct discovery *discovery, vd_mono now)
{
	struct reading *reading = &discovery->reading;
	int64_t		timeout = vdi_kube_options(discovery->kube)->request_timeout.ns;

	memset(reading, 0, sizeof *reading);
	vdi_buffer_init(&reading->body, VDI_KUBE_NAMES_DOCUMENT_MAX);
	reading->is_active = true;
	reading->begun = now;
	reading->deadline = vd_mono_add(now, (vd_dur) { timeout * VDI_KUBE_DISCOVERY_TIMEOUTS });
}

static void end(struct discovery *discovery)
{
	struct reading *reading = &discovery->reading;

	if (reading->exchange)
		vdi_kube_cancel(reading->exchange);
	vdi_buffer_fini(&reading->body);
	vdi_kube_names_fini(&reading->names);
	memset(reading, 0, sizeof *reading);
}

static void succeed(struct discovery *discovery)
{
	vdi_kube_names_fini(&discovery->names);
	discovery->names = discovery->reading.names;
	discovery->read_at = discovery->reading.begun;
	discovery->has_names = true;
	discovery->error.code = VD_OK;
	memset(&discovery->reading.names, 0, sizeof discovery->reading.names);
	end(discovery);
	answer_waiting(discovery, true);
}

/* Names that are known remain known. */
static void fail(struct discovery *discovery, vd_status status, vd_mono now)
{
	char		path[3 * VDI_KUBE_NAME_MAX];
	struct vd_error error = discovery->reading.error;

	describe_path(&discovery->reading, path, sizeof path);
	discovery->error = error;
	(void) vd_error_set(&discovery->error, status, "discovery, %.200s: %s", path,
			    *error.message ? error.message : vd_status_sentence(status));
	discovery->failed_at = now;
	end(discovery);
	fail_waiting(discovery, &discovery->error);
}

/* Returns true if the step is to be repeated: after answers that mean "later", and lost connections. */
static bool is_repeatable(const struct discovery *discovery, vd_status status, vd_mono now)
{
	const struct reading *reading = &discovery->reading;

	if (status != VD_UNAVAILABLE && status != VD_FULL && status != VD_TIMEOUT)
		return false;
	if (step_of(reading) == STEP_VERSIONS && reading->code)
		return false; /* the server behind this version is down */
	if (reading->code >= 300 && reading->code < 400)
		return false; /* a redirect stays one: a proxy or a login page */
	return now.ns < reading->deadline.ns;
}

static vd_status take_versions_document(struct reading *reading)
{
	const struct vdi_kube_version version = reading->names.versions[reading->version];
	vd_status		      status = reading->status;

	if (status == VD_OK)
		status = vdi_kube_names_read_version(&reading->names, &version,
						     vdi_buffer_bytes(&reading->body), &reading->error);
	if (status == VD_OK || status == VD_NOT_FOUND || status == VD_NOMEM)
		return status == VD_NOMEM ? VD_NOMEM : VD_OK;
	if (reading->code == 0)
		return status; /* the server itself cannot be reached */
	return vdi_kube_names_miss(&reading->names, &version, &reading->error);
}

static vd_status take_document(struct reading *reading)
{
	if (step_of(reading) == STEP_VERSIONS)
		return take_versions_document(reading);
	if (reading->status == VD_NOT_FOUND)
		return VD_OK; /* a server without a core group, or with nothing else */
	VDI_TRY(reading->status);
	return vdi_kube_names_read_groups(&reading->names, step_of(reading) == STEP_CORE,
					  vdi_buffer_bytes(&reading->body), &reading->error);
}

static void advance(struct reading *reading, enum step done)
{
	switch (done) {
	case STEP_CORE: reading->has_core = true; break;
	case STEP_VERSIONS: reading->version++; break;
	default: reading->has_groups = true; break;
	}
	vdi_kube_backoff_reset(&reading->backoff);
}

/* Takes the response that has ended. */
static void take_response(struct discovery *discovery, vd_mono now)
{
	struct reading *reading = &discovery->reading;
	const enum step step = step_of(reading); /* the document can add versions */
	vd_status	status;

	reading->has_ended = false;
	if (is_repeatable(discovery, reading->status, now)) {
		vdi_kube_backoff_fail(discovery->kube, &reading->backoff, reading->head.retry_after_s);
		return;
	}
	status = take_document(reading);
	if (status == VD_OK)
		advance(reading, step);
	else
		fail(discovery, status, now);
}

/* Does what can be done now; returns when to continue. */
static vd_mono continue_reading(struct discovery *discovery, vd_mono now)
{
	struct reading *reading = &discovery->reading;
	vd_status	status;

	if (reading->has_ended)
		take_response(discovery, now);
	if (!reading->is_active || reading->exchange)
		return VD_NEVER;
	if (step_of(reading) == STEP_DONE) {
		succeed(discovery);
		return VD_NEVER;
	}
	if (reading->backoff.attempts && now.ns < reading->backoff.retry_at.ns)
		return reading->backoff.retry_at;
	status = start(discovery);
	if (status == VD_AGAIN && now.ns < reading->deadline.ns)
		return reading->deadline;
	if (status != VD_OK)
		fail(discovery, status == VD_AGAIN ? VD_TIMEOUT : status, now);
	return VD_NEVER;
}

/* ---- The member ---- */

/* Answers what is known, and decides whether a reading is needed for the rest. */
static void serve(struct discovery *discovery, vd_mono now)
{
	bool is_recent = discovery->has_names &&
			 now.ns < vd_mono_add(discovery->read_at, VDI_KUBE_DISCOVERY_PERIOD).ns;

	take_arrivals(discovery);
	if (discovery->reading.is_active)
		return;
	answer_waiting(discovery, is_recent);
	if (TAILQ_EMPTY(&discovery->waiting))
		return;
	if (discovery->error.code && now.ns < vd_mono_add(discovery->failed_at, VDI_KUBE_DISCOVERY_PAUSE).ns)
		fail_waiting(discovery, &discovery->error);
	else
		begin(discovery, now);
}

static vd_mono on_run(struct vdi_kube_member *member, vd_mono now)
{
	struct discovery *discovery = VDI_CONTAINER_OF(member, struct discovery, member);

	serve(discovery, now);
	return discovery->reading.is_active ? continue_reading(discovery, now) : VD_NEVER;
}

static void on_close(struct vdi_kube_member *member)
{
	struct discovery *discovery = VDI_CONTAINER_OF(member, struct discovery, member);
	struct vd_error	  error;

	vdi_lock_acquire(&discovery->lock);
	discovery->is_closed = true;
	vdi_lock_release(&discovery->lock);
	take_arrivals(discovery);
	if (discovery->reading.is_active)
		end(discovery);
	(void) vd_error_set(&error, VD_CLOSED, "the client is closed");
	fail_waiting(discovery, &error);
	vdi_kube_member_remove(member);
}

static vd_status discovery_new(struct vd_kube *kube, void **ret_part)
{
	struct discovery *discovery = VDI_NEW(struct discovery);
	vd_status	  status;

	if (discovery == NULL)
		return VD_NOMEM;
	discovery->kube = kube;
	discovery->member.run = on_run;
	discovery->member.close = on_close;
	TAILQ_INIT(&discovery->arrivals);
	TAILQ_INIT(&discovery->waiting);
	vdi_lock_init(&discovery->lock, VDI_LOCK_KUBE_PARTS);
	*ret_part = discovery;
	status = vdi_kube_member_add(kube, &discovery->member);
	if (status != VD_OK) {
		*ret_part = NULL;
		vdi_lock_fini(&discovery->lock);
		vdi_free(discovery);
	}
	return status;
}

static void discovery_free(void *part)
{
	struct discovery *discovery = part;

	vdi_kube_names_fini(&discovery->names);
	vdi_lock_fini(&discovery->lock);
	vdi_free(discovery);
}

vd_status vdi_kube_find(struct vd_kube *kube, const char *name, enum vdi_kube_find_mode mode,
			vd_kube_resource_fn done, void *arg)
{
	struct discovery *discovery;
	struct find	 *find;
	void		 *part;
	size_t		  size = strlen(name) + 1;
	vd_mono		  now = vdi_kube_now(kube);

	VDI_TRY(vdi_kube_parts_get(kube, VDI_KUBE_PART_DISCOVERY, discovery_new, discovery_free, &part));
	discovery = part;
	find = vdi_alloc(sizeof *find + size);
	if (find == NULL)
		return VD_NOMEM;
	find->done = done;
	find->arg = arg;
	find->is_known = mode == VDI_KUBE_FIND_KNOWN;
	find->newer_than.ns = mode == VDI_KUBE_FIND_FRESH ? now.ns - VDI_KUBE_DISCOVERY_PERIOD.ns : INT64_MIN;
	memcpy(find->typed, name, size);
	vdi_lock_acquire(&discovery->lock);
	if (discovery->is_closed) {
		vdi_lock_release(&discovery->lock);
		vdi_free(find);
		return VD_CLOSED;
	}
	TAILQ_INSERT_TAIL(&discovery->arrivals, find, node);
	vdi_kube_member_wake(&discovery->member);
	vdi_lock_release(&discovery->lock);
	return VD_OK;
}

vd_status vd_kube_find(struct vd_kube *kube, const char *name, vd_kube_resource_fn done, void *arg)
{
	VDI_REQUIRE(kube, NULL);
	VDI_REQUIRE(name, NULL);
	VDI_REQUIRE(done, NULL);
	return vdi_kube_find(kube, name, VDI_KUBE_FIND, done, arg);
}
