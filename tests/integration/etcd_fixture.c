#include "etcd_fixture.h"

#include <stdarg.h>

#include "clock.h"
#include "control.h"
#include "rpc_etcd_options.h"

struct vd_env *env;

int fixture_begin(void **state)
{
	(void) state;
	return vd_env_new_threads(NULL, &env) == VD_OK ? 0 : 1;
}

int fixture_end(void **state)
{
	(void) state;
	env = vd_env_free(env);
	return 0;
}

#define PATIENCE_MS 300000

static vd_mono patience(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (vd_mono) { now.tv_sec * INT64_C(1000000000) + now.tv_nsec + PATIENCE_MS * INT64_C(1000000) };
}

const char *ask(const char *format, ...)
{
	static char answer[16384];
	char	    command[8192];
	va_list	    arguments;

	va_start(arguments, format);
	vsnprintf(command, sizeof(command), format, arguments);
	va_end(arguments);
	if (!test_control(command, answer, sizeof(answer)))
		fail_msg("%s: %s", command, answer);
	return answer;
}

struct vd_etcd *fixture_open(const char *endpoints, const struct vd_etcd_options *change)
{
	struct vd_etcd_options options = etcd_options_under_test();
	struct vd_error	       error;
	struct vd_etcd	      *client;
	const char	      *list[8];
	char		       copy[1024];
	char		      *rest = NULL;

	if (change != NULL)
		options = *change;
	snprintf(copy, sizeof(copy), "%s", endpoints != NULL ? endpoints : getenv("ETCD_ENDPOINTS"));
	options.endpoints = list;
	options.endpoint_count = 0;
	for (char *word = strtok_r(copy, ",", &rest); word != NULL; word = strtok_r(NULL, ",", &rest))
		list[options.endpoint_count++] = word;
	if (options.ca_path == NULL) {
		options.ca_path = getenv("ETCD_CACERT");
		options.cert_path = getenv("ETCD_CERT");
		options.key_path = getenv("ETCD_KEY");
	}
	assert_status(vd_etcd_open(env, &options, &client, &error), VD_OK);
	return client;
}

int expect_call(const char *method, const char **ret_metadata)
{
	const char *answer = ask("next %s", method);
	const char *metadata = strchr(answer, '{');

	if (ret_metadata != NULL)
		*ret_metadata = metadata != NULL ? metadata : "";
	return atoi(answer);
}

void expect_message(int call, const char *wanted)
{
	assert_string_equal(ask("message %d", call), wanted);
}

static void watcher_ready(void *arg)
{
	struct watcher *watcher = arg;

	vdi_lock_acquire(&watcher->lock);
	watcher->is_ready = true;
	vdi_condition_broadcast(&watcher->changed);
	vdi_lock_release(&watcher->lock);
}

void watcher_open(struct watcher *watcher, struct vd_etcd *client, struct vd_etcd_watch_request request)
{
	struct vd_error error;

	memset(watcher, 0, sizeof(*watcher));
	vdi_lock_init(&watcher->lock, VDI_LOCK_LEAF);
	vdi_condition_init(&watcher->changed);
	request.ready = watcher_ready;
	request.ready_arg = watcher;
	assert_status(vd_etcd_watch_open(client, &request, &watcher->watch, &error), VD_OK);
}

void watcher_close(struct watcher *watcher)
{
	vd_etcd_watch_close(watcher->watch);
	watcher->watch = NULL;
	vdi_condition_fini(&watcher->changed);
	vdi_lock_fini(&watcher->lock);
}

vd_status watcher_next(struct watcher *watcher)
{
	vd_mono due = patience();

	for (;;) {
		vd_status status = vd_etcd_watch_next(watcher->watch, &watcher->response, &watcher->error);

		if (status != VD_AGAIN)
			return status;
		vdi_lock_acquire(&watcher->lock);
		while (!watcher->is_ready) {
			if (!vdi_condition_wait_until(&watcher->changed, &watcher->lock, due))
				fail_msg("the watch said nothing for %d s", PATIENCE_MS / 1000);
		}
		watcher->is_ready = false;
		vdi_lock_release(&watcher->lock);
	}
}

void watcher_expect_nothing(struct watcher *watcher)
{
	assert_status(vd_etcd_watch_next(watcher->watch, &watcher->response, &watcher->error), VD_AGAIN);
}

void watcher_expect_events(struct watcher *watcher, const vd_rev *revisions)
{
	size_t count = 0;

	assert_status(watcher_next(watcher), VD_OK);
	while (revisions[count] != 0)
		count++;
	assert_int_equal(watcher->response.event_count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(watcher->response.events[i].kv->mod_rev, revisions[i]);
}

void watcher_expect_progress(struct watcher *watcher, vd_rev revision)
{
	assert_status(watcher_next(watcher), VD_OK);
	assert_true(vd_etcd_watch_is_progress(&watcher->response));
	assert_int_equal(watcher->response.header.revision, revision);
}

void watcher_expect_end(struct watcher *watcher, vd_status status)
{
	assert_status(watcher_next(watcher), status);
	assert_status(watcher_next(watcher), status); /* repeated by every later call */
}

static void range_done(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		       const struct vd_range_result *result)
{
	struct pending_call *pending = arg;

	vdi_lock_acquire(&pending->lock);
	pending->result.status = error != NULL ? error->error.code : VD_OK;
	if (error != NULL)
		pending->result.error = *error;
	if (error == NULL) {
		pending->result.revision = header->revision;
		pending->result.count = result->count;
	}
	pending->is_done = true;
	vdi_condition_broadcast(&pending->changed);
	vdi_lock_release(&pending->lock);
}

void pending_range(struct pending_call *pending, struct vd_etcd *client, const char *key, vd_dur timeout)
{
	struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of(key) } };
	struct vd_etcd_call	     call = { .timeout = timeout };

	memset(pending, 0, sizeof(*pending));
	vdi_lock_init(&pending->lock, VDI_LOCK_LEAF);
	vdi_condition_init(&pending->changed);
	assert_status(vd_etcd_range(client, &call, &request, range_done, pending), VD_OK);
}

struct call_result pending_wait(struct pending_call *pending)
{
	struct call_result result;
	vd_mono		   due = patience();

	vdi_lock_acquire(&pending->lock);
	while (!pending->is_done) {
		if (!vdi_condition_wait_until(&pending->changed, &pending->lock, due))
			fail_msg("a call was not answered within %d s", PATIENCE_MS / 1000);
	}
	result = pending->result;
	vdi_lock_release(&pending->lock);
	vdi_condition_fini(&pending->changed);
	vdi_lock_fini(&pending->lock);
	return result;
}

struct call_result call_range(struct vd_etcd *client, const char *key, vd_dur timeout)
{
	struct pending_call pending;

	pending_range(&pending, client, key, timeout);
	return pending_wait(&pending);
}
