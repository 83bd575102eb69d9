/* Delivery to many watchers, and the cost of watchers that do not match. One JSON line per case: bench_fanout
 * [EVENTS].
 *
 * delivery: all of W watchers match; cpu_ns is user and system time of the whole process per delivery,
 * including ingest of the event. sink "inline": on the dispatching actor; "consumer": on an actor of another
 * thread. one_of: one of W watchers matches, selected by trigger, namespace, declared field or label; us is
 * the time of one event through decoding, cache, matching and delivery, with 512 put at once so that waking
 * threads is not measured. together: number put before waiting. idle: bytes of one idle watcher.
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <malloc.h>

#include <vedette/vedette.h>

#include "actor_loop.h"
#include "env.h"
#include "feed_store.h"

#define CHECK(expression)                                                                                    \
	do {                                                                                                 \
		if ((expression) != VD_OK) {                                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #expression);                     \
			exit(1);                                                                             \
		}                                                                                            \
	} while (0)

#define TOGETHER 512

static size_t take(void *arg, const struct vd_watch_event *events, size_t count)
{
	uint64_t *mine = arg;

	*mine += count;
	return count;
}

static void ended(void *arg, vd_status reason)
{
	fprintf(stderr, "a watcher ended: %s\n", vd_status_name(reason));
	exit(1);
}

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double) now.tv_sec * 1e9 + (double) now.tv_nsec;
}

static double heap_bytes(void)
{
	return (double) mallinfo2().uordblks + (double) mallinfo2().hblkhd;
}

struct bench {
	struct vd_env	   *env;
	struct vd_store	   *store;
	struct vd_codec	   *codec;
	struct vd_cacher   *cacher;
	struct vd_watcher **watchers;
	uint64_t	   *counts;
	size_t		    watcher_count;
};

static const struct vd_field_spec fields[] = { { "spec.nodeName", ".spec.nodeName", NULL },
					       { "status.phase", ".status.phase", NULL } };

static void setup(struct bench *bench)
{
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
	struct vd_error		 error;

	memset(bench, 0, sizeof *bench);
	CHECK(vd_env_new_threads(NULL, &bench->env));
	bench->store = feed_store_new(bench->env);
	CHECK(vd_codec_json_new(fields, 2, &bench->codec, &error));
	options.resource = "pods";
	options.key_prefix = "/registry/pods/";
	options.codec = bench->codec;
	options.trigger = "spec.nodeName";
	options.history_bytes = (int64_t) 1 << 30;
	options.lag_bytes_max = (int64_t) 1 << 40;
	CHECK(vd_cacher_new(bench->env, bench->store, &options, &bench->cacher, &error));
	CHECK(vd_cacher_ready_wait(bench->cacher, VD_SECONDS(30), &error));
}

static atomic_size_t closed_count;

static void note_closed(void *arg)
{
	atomic_fetch_add(&closed_count, 1);
}

static void teardown(struct bench *bench)
{
	struct timespec pause = { 0, 1000000 };

	atomic_store(&closed_count, 0);
	for (size_t i = 0; i < bench->watcher_count; i++)
		vd_watcher_close(bench->watchers[i], note_closed, NULL);
	while (atomic_load(&closed_count) < bench->watcher_count)
		nanosleep(&pause, NULL);
	vd_cacher_close_wait(bench->cacher);
	feed_store_free(bench->store);
	vd_codec_free(bench->codec);
	vd_env_free(bench->env);
	free(bench->watchers);
	free(bench->counts);
}

static void open_watchers(struct bench *bench, size_t count, const struct vd_executor *executor,
			  void (*choose)(size_t index, struct vd_watch_options *options))
{
	struct vd_error error;

	bench->watchers = calloc(count, sizeof *bench->watchers);
	bench->counts = calloc(count, 64);
	for (size_t i = 0; i < count; i++) {
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct vd_watch_sink	sink = { take, ended, (char *) bench->counts + i * 64, executor };

		options.revision = vd_cacher_revision(bench->cacher);
		if (choose)
			choose(i, &options);
		CHECK(vd_cacher_watch(bench->cacher, &options, &sink, &bench->watchers[i], &error));
	}
	bench->watcher_count = count;
	/* Until the last one is live. */
	struct timespec pause = { 0, 100000000 };
	nanosleep(&pause, NULL);
}

static uint64_t count_of(const struct bench *bench, size_t index)
{
	return *(volatile uint64_t *) ((char *) bench->counts + index * 64);
}

static void wait_for(const struct bench *bench, size_t index, uint64_t count)
{
	struct timespec pause = { 0, 200000 };

	while (count_of(bench, index) < count)
		nanosleep(&pause, NULL);
}

static void pod(char *text, size_t size, const char *ns, const char *name, const char *node,
		const char *phase, const char *app)
{
	char   filler[1024];
	size_t used =
		(size_t) snprintf(text, size,
				  "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\","
				  "\"namespace\":\"%s\",\"uid\":\"u\",\"labels\":{\"app\":\"%s\"}},"
				  "\"spec\":{\"nodeName\":\"%s\"},\"status\":{\"phase\":\"%s\"},\"data\":\"",
				  name, ns, app, node, phase);

	for (size_t i = 0; i < sizeof filler; i++)
		filler[i] = (char) ('a' + rand() % 26);
	snprintf(text + used, size - used, "%.*s\"}", (int) (1024 - used - 2), filler);
}

static void delivery(size_t watchers, size_t events, size_t batch, bool consumer)
{
	struct bench   bench;
	struct vd_env *other = NULL;
	char	       value[2048];
	double	       start;

	setup(&bench);
	if (consumer) {
		struct vd_env_options options = VD_ENV_OPTIONS_INIT;

		options.threads = 1;
		CHECK(vd_env_new_threads(&options, &other));
	}
	open_watchers(&bench, watchers, other ? vdi_env_executor(other) : NULL, NULL);
	pod(value, sizeof value, "ns", "p", "n", "Running", "a");
	start = cpu_ns();
	for (size_t i = 0; i < events; i += batch) {
		for (size_t j = 0; j < batch; j++)
			feed_put(bench.store, "/registry/pods/ns/p", value);
		wait_for(&bench, watchers - 1, i + batch);
	}
	wait_for(&bench, 0, events);
	printf("{\"bench\":\"fanout\",\"case\":\"delivery\",\"watchers\":%zu,\"sink\":\"%s\",\"together\":%"
	       "zu,\"events\":%zu,\"cpu_ns\":%.1f}\n",
	       watchers, consumer ? "consumer" : "inline", batch, events,
	       (cpu_ns() - start) / ((double) events * (double) watchers));
	fflush(stdout);
	teardown(&bench);
	vd_env_free(other);
}

static char names[4][10000][24];

static void by_node(size_t i, struct vd_watch_options *options)
{
	options->field_selector = vd_bytes_of(names[0][i]);
}
static void by_namespace(size_t i, struct vd_watch_options *options)
{
	options->namespace_name = vd_bytes_of(names[1][i]);
}
static void by_field(size_t i, struct vd_watch_options *options)
{
	options->field_selector = vd_bytes_of(names[2][i]);
}
static void by_label(size_t i, struct vd_watch_options *options)
{
	options->label_selector = vd_bytes_of(names[3][i]);
}

static void one_of(const char *name, size_t watchers, size_t events,
		   void (*choose)(size_t, struct vd_watch_options *))
{
	struct bench bench;
	char	     value[2048];
	double	     start;
	double	     before;

	setup(&bench);
	before = heap_bytes();
	open_watchers(&bench, watchers, NULL, choose);
	printf("{\"bench\":\"fanout\",\"case\":\"idle\",\"by\":\"%s\",\"watchers\":%zu,\"bytes\":%.0f}\n",
	       name, watchers, (heap_bytes() - before - 72.0 * (double) watchers) / (double) watchers);
	pod(value, sizeof value, "ns7", "p", "n7", "ph7", "a7");
	start = cpu_ns();
	for (size_t i = 0; i < events; i += TOGETHER) {
		for (size_t j = 0; j < TOGETHER; j++)
			feed_put(bench.store, "/registry/pods/ns7/p", value);
		wait_for(&bench, 7, i + TOGETHER);
	}
	printf("{\"bench\":\"fanout\",\"case\":\"one_of\",\"by\":\"%s\",\"watchers\":%zu,\"events\":%zu,"
	       "\"us\":%.2f}\n",
	       name, watchers, events, (cpu_ns() - start) / (double) events / 1e3);
	fflush(stdout);
	teardown(&bench);
}

int main(int argc, char **argv)
{
	size_t		    events = argc > 1 ? (size_t) atol(argv[1]) : 8192;
	static const size_t widths[] = { 1, 10, 100, 1000, 10000 };

	for (size_t i = 0; i < 10000; i++) {
		snprintf(names[0][i], sizeof names[0][i], "spec.nodeName=n%zu", i);
		snprintf(names[1][i], sizeof names[1][i], "ns%zu", i);
		snprintf(names[2][i], sizeof names[2][i], "status.phase=ph%zu", i);
		snprintf(names[3][i], sizeof names[3][i], "app=a%zu", i);
	}
	for (unsigned consumer = 0; consumer < 2; consumer++)
		for (size_t i = 0; i < 5; i++) {
			delivery(widths[i], widths[i] >= 1000 ? 1000 : 2000, 1, consumer);
			delivery(widths[i], widths[i] >= 1000 ? 2048 : events, 512, consumer);
		}
	for (unsigned width = 0; width < 2; width++) {
		size_t watchers = width ? 10000 : 10;

		one_of("all", watchers, TOGETHER, NULL);
		one_of("trigger", watchers, events, by_node);
		one_of("namespace", watchers, events, by_namespace);
		one_of("field", watchers, events, by_field);
		one_of("label", watchers, events, by_label);
	}
	return 0;
}
