/* A program for any etcd that uses vedette/etcd.h only: puts two keys, reads them as a range, and watches the
 * subsequent changes.
 *
 * 	example-etcd http://127.0.0.1:2379
 *
 * The client never blocks: calls complete through callbacks on its own thread, and watches signal when there
 * is something to read. A program with an event loop would pass both to it; this one just waits. */
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <vedette/etcd.h>

/* Notification of the main thread by the callbacks. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t  answered = PTHREAD_COND_INITIALIZER;
static bool	       is_answered;
static bool	       has_failed;

static void answer(void *arg)
{
	pthread_mutex_lock(&lock);
	is_answered = true;
	pthread_cond_signal(&answered);
	pthread_mutex_unlock(&lock);
}

static bool wait_answered(void)
{
	pthread_mutex_lock(&lock);
	while (!is_answered)
		pthread_cond_wait(&answered, &lock);
	is_answered = false;
	pthread_mutex_unlock(&lock);
	return !has_failed;
}

static bool check(const struct vd_etcd_error *error)
{
	if (error)
		fprintf(stderr, "example-etcd: %s\n", error->error.message);
	has_failed = error != NULL;
	return error == NULL;
}

/* ---- Calls ---- */

static void put_done(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		     const struct vd_op_result *result)
{
	if (check(error) && arg)
		*(vd_rev *) arg = header->revision;
	answer(NULL);
}

static bool put(struct vd_etcd *etcd, const char *key, const char *value, vd_rev *ret_revision)
{
	struct vd_op	    op = { .kind = VD_OP_PUT, .key = vd_bytes_of(key), .value = vd_bytes_of(value) };
	struct vd_etcd_call call = { .timeout = VD_SECONDS(10) };

	return vd_etcd_put(etcd, &call, &op, put_done, ret_revision) == VD_OK && wait_answered();
}

static void range_done(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		       const struct vd_range_result *result)
{
	if (check(error))
		for (size_t i = 0; i < result->kv_count; i++)
			printf("%.*s = %.*s\n", (int) vd_kv_key(result->kvs[i]).size,
			       (const char *) vd_kv_key(result->kvs[i]).data,
			       (int) vd_kv_value(result->kvs[i]).size,
			       (const char *) vd_kv_value(result->kvs[i]).data);
	answer(NULL);
}

static bool print_prefix(struct vd_etcd *etcd, const char *prefix)
{
	char			     end[64];
	struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of(prefix) } };

	if (strlen(prefix) > sizeof end)
		return false;
	request.range.range_end = vd_etcd_prefix_end(request.range.key, end);
	return vd_etcd_range(etcd, &(struct vd_etcd_call) { .timeout = VD_SECONDS(10) }, &request, range_done,
			     NULL) == VD_OK &&
	       wait_answered();
}

/* ---- A watch ---- */

static bool print_changes(struct vd_etcd *etcd, const char *prefix, vd_rev from, size_t count)
{
	char			      end[64];
	struct vd_etcd_watch_request  request = { .key = vd_bytes_of(prefix),
						  .revision = from,
						  .ready = answer };
	struct vd_etcd_watch_response response;
	struct vd_etcd_error	      error;
	struct vd_etcd_watch	     *watch;
	vd_status		      status;

	request.range_end = vd_etcd_prefix_end(request.key, end);
	if (vd_etcd_watch_open(etcd, &request, &watch, NULL) != VD_OK)
		return false;
	while (count) {
		status = vd_etcd_watch_next(watch, &response, &error);
		if (status == VD_AGAIN) {
			(void) wait_answered();
			continue;
		}
		if (status != VD_OK)
			break;
		for (size_t i = 0; i < response.event_count && count; i++, count--) {
			const struct vd_store_event *event = &response.events[i];
			struct vd_bytes key = vd_kv_key(event->kv), value = vd_kv_value(event->kv);

			printf("%s %.*s%s%.*s\n", event->is_delete ? "DELETE" : "PUT", (int) key.size,
			       (const char *) key.data, value.size ? " " : "", (int) value.size,
			       (const char *) value.data);
		}
	}
	vd_etcd_watch_close(watch);
	return count == 0;
}

int main(int argc, char **argv)
{
	struct vd_etcd_options options = VD_ETCD_OPTIONS_INIT;
	const char	      *endpoint = argc > 1 ? argv[1] : "http://127.0.0.1:2379";
	struct vd_op	       remove = { .kind = VD_OP_DELETE, .key = vd_bytes_of("example/lamp") };
	struct vd_env	      *env;
	struct vd_etcd	      *etcd;
	struct vd_error	       error;
	vd_rev		       revision = 0;
	bool		       ok;

	options.endpoints = &endpoint;
	options.endpoint_count = 1;
	if (vd_env_new_threads(NULL, &env) != VD_OK)
		return 1;
	if (vd_etcd_open(env, &options, &etcd, &error) != VD_OK) {
		fprintf(stderr, "example-etcd: %s\n", error.message);
		return 1;
	}
	ok = put(etcd, "example/door", "shut", NULL) && put(etcd, "example/lamp", "off", &revision) &&
	     print_prefix(etcd, "example/") && put(etcd, "example/lamp", "on", NULL) &&
	     vd_etcd_delete(etcd, NULL, &remove, put_done, NULL) == VD_OK && wait_answered() &&
	     print_changes(etcd, "example/", revision, 3);
	vd_etcd_close_wait(etcd);
	vd_env_free(env);
	return ok ? 0 : 1;
}
