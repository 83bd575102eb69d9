/* Cost of an event in process: ingest, matching, delivery; and cost of an idle watcher.
 *
 *   - ingest: one event from the embedded store through decoding, cache, index, history and dispatch, without
 *     watchers. CPU of the cacher's thread
 *   - fan-out: all of W watchers match. CPU of cacher and consumers, including ingest, divided by deliveries
 *     (beyond_ingest_ns: minus the cost of the same events without watchers). sink "dispatching": called by
 *     the cacher's own actor; "consumer": by an actor of another thread
 *   - one-of: one of W watchers matches, selected by trigger, namespace, declared field or label; including
 *     ingest
 *   - idle-watcher: memory of one idle watcher
 *   - ingest-size, ingest-kind: like ingest, 64 together, for pods from 256 bytes to 16 KB and for objects of
 *     other kinds
 *   - stalled: put -> event received by all of 16 watchers: 99th percentile with 1,000 further watchers that
 *     do not read, divided by the one without them
 *   - latency: put -> answer of the durable store -> event at a watcher of the cacher, one at a time, 1 ms
 *     pause
 *
 * together: number of events written at once.
 */
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base.h"
#include "env.h"
#include "world.h"

#define WATCHERS_MAX 10000 /* of idle ones */
#define CROWD_MAX 100000
#define TOGETHER_MAX 64
#define POOL 256

static _Atomic uint64_t delivered;
static atomic_size_t	closed_count;

static size_t take(void *arg, const struct vd_watch_event *events, size_t count)
{
	(void) events;
	*(uint64_t *) arg += count;
	/* One thread writes. */
	atomic_store_explicit(&delivered, atomic_load_explicit(&delivered, memory_order_relaxed) + count,
			      memory_order_release);
	return count;
}

static void ended(void *arg, vd_status reason)
{
	(void) arg;
	measure_check(reason, NULL, "a watcher ended");
}

static void note_closed(void *arg)
{
	(void) arg;
	atomic_fetch_add(&closed_count, 1);
}

/* ---- Watchers ---- */

enum by { BY_NOTHING, BY_TRIGGER, BY_NAMESPACE, BY_FIELD, BY_LABEL, BY_COUNT };
static const char *const by_names[BY_COUNT] = { "nothing", "trigger", "namespace", "field", "label" };

struct crowd {
	struct vd_watcher *watchers[CROWD_MAX];
	struct {
		uint64_t count;
		char	 padding[56];
	} taken[CROWD_MAX];
	size_t count;
};
static struct crowd crowd;

static void choose(enum by by, size_t index, char *text, size_t size, struct vd_watch_options *options)
{
	static const char *const formats[BY_COUNT] = { "", "spec.nodeName=node-%05zu", "ns-%05zu",
						       "status.phase=Phase-%zu", "app=app-%05zu" };

	snprintf(text, size, formats[by], index);
	if (by == BY_TRIGGER || by == BY_FIELD)
		options->field_selector = vd_bytes_of(text);
	else if (by == BY_NAMESPACE)
		options->namespace_name = vd_bytes_of(text);
	else if (by == BY_LABEL)
		options->label_selector = vd_bytes_of(text);
}

static void open_watchers(struct world *world, size_t count, enum by by, bool consumer)
{
	struct vd_error error;
	char		text[64];

	atomic_store(&delivered, 0);
	memset(&crowd, 0, sizeof crowd);
	for (size_t i = 0; i < count; i++) {
		struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
		struct vd_watch_sink	sink = { take, ended, &crowd.taken[i].count,
						 consumer ? vdi_env_executor(world->consumer_env) : NULL };

		options.revision = vd_cacher_revision(world->cacher);
		choose(by, i, text, sizeof text, &options);
		measure_check(vd_cacher_watch(world->cacher, &options, &sink, &crowd.watchers[i], &error),
			      &error, "watch");
	}
	crowd.count = count;
	measure_nap_ns(100000000); /* they join */
}

static void close_watchers(void)
{
	atomic_store(&closed_count, 0);
	for (size_t i = 0; i < crowd.count; i++)
		vd_watcher_close(crowd.watchers[i], note_closed, NULL);
	while (atomic_load(&closed_count) < crowd.count)
		measure_nap_ns(1000000);
	crowd.count = 0;
}

/* ---- Events ---- */

/* Made beforehand, so that making them costs nothing while others are measured. */
struct pool {
	char		 keys[POOL][POD_KEY_MAX];
	char		 values[POOL][POD_SIZE_MAX];
	struct world_put puts[POOL];
	size_t		 next;
};
static struct pool pool;

/* by: the field by which the pods match watcher `target`. */
static void fill_pool_sized(struct world *world, enum by by, unsigned target, size_t key_count, size_t size)
{
	char phase[32];

	snprintf(phase, sizeof phase, "Phase-%u", target);
	for (size_t i = 0; i < POOL; i++) {
		struct pod pod = pod_number(measure_random(&world->seed) % key_count, size);

		if (by == BY_TRIGGER)
			pod.node = target;
		else if (by == BY_NAMESPACE)
			pod.namespace_number = target;
		else if (by == BY_FIELD)
			pod.phase = phase;
		else if (by == BY_LABEL)
			pod.app = target;
		pool.puts[i] = (struct world_put) { pod_key(pool.keys[i], &pod),
						    pod_json(pool.values[i], &pod, &world->seed) };
	}
}

static void fill_pool(struct world *world, enum by by, unsigned target, size_t key_count)
{
	fill_pool_sized(world, by, target, key_count, 1024);
}

struct cost {
	double	 cpu_ns; /* of the cacher's and the consumer's thread */
	double	 wall_ns;
	uint64_t events;
};

/* Writes events, `together` at a time; each group is delivered to `watchers` before the next is written. */
static struct cost run_events(struct world *world, size_t events, size_t together, size_t watchers)
{
	uint64_t target = atomic_load(&delivered);
	int64_t	 cpu =
		measure_threads_cpu_ns(&world->threads) + measure_threads_cpu_ns(&world->consumer_threads);
	int64_t wall = measure_wall_ns();
	size_t	done = 0;

	for (; done < events; done += together) {
		if (pool.next + together > POOL)
			pool.next = 0;
		world_put(world, &pool.puts[pool.next], together);
		pool.next += together;
		target += together * watchers;
		world_wait_revision(world, world->revision);
		while (watchers && atomic_load_explicit(&delivered, memory_order_acquire) < target)
			measure_nap_ns(20000);
	}
	return (struct cost) { (double) (measure_threads_cpu_ns(&world->threads) +
					 measure_threads_cpu_ns(&world->consumer_threads) - cpu),
			       (double) (measure_wall_ns() - wall), done };
}

/* ---- Cases ---- */

static void bench_ingest(struct world *world, const char *name, const char *what, size_t together)
{
	struct measure_rounds rounds = { .count = 0 };
	char		      parameters[128];

	for (unsigned round = 0; round < measure_options.rounds; round++) {
		struct cost cost =
			run_events(world, measure_scaled(together == 1 ? 4096 : 16384), together, 0);

		measure_add(&rounds, cost.cpu_ns / 1e3 / (double) cost.events, cost.cpu_ns / 1e9,
			    cost.wall_ns / 1e9);
	}
	snprintf(parameters, sizeof parameters, "%s,\"together\":%zu", what, together);
	measure_report(name, parameters, &rounds, "us");
}

static void bench_ingest_sizes(struct world *world)
{
	static const size_t sizes[] = { 256, 512, 1024, 2048, 4096, 8192, 16384 };
	char		    what[64];

	for (size_t i = 0; i < VDI_ARRAY_SIZE(sizes); i++) {
		fill_pool_sized(world, BY_NOTHING, 0, measure_scaled(100000), sizes[i]);
		snprintf(what, sizeof what, "\"bytes\":%zu", sizes[i]);
		(void) run_events(world, 4096, 64, 0);
		bench_ingest(world, "ingest-size", what, 64);
	}
	fill_pool(world, BY_NOTHING, 0, measure_scaled(100000));
}

/* ---- Other kinds ---- */

struct kind {
	const char		   *name;
	const struct vd_field_spec *fields;
	size_t			    field_count;
	const char		   *head; /* takes number and namespace */
	const char		   *item; /* repeated; takes two random numbers */
	unsigned		    items;
	const char		   *tail;
};

#define KIND_HEAD(version, kind)                                                                             \
	"{\"kind\":\"" kind "\",\"apiVersion\":\"" version                                                   \
	"\",\"metadata\":{\"name\":\"web-%07llu\",\"namespace\":\"ns-%05u\",\"labels\":{\"app\":\"web\"}},"
static const struct vd_field_spec event_fields[] = {
	{ "involvedObject.kind", "$.involvedObject.kind" },
	{ "involvedObject.name", "$.involvedObject.name" },
	{ "reason", "$.reason" },
	{ "type", "$.type" },
};
static const struct kind kinds[] = {
	{ "leases", NULL, 0, KIND_HEAD("coordination.k8s.io/v1", "Lease"),
	  "\"spec\":{\"holderIdentity\":\"node-%08llx\",\"leaseDurationSeconds\":40,\"renewTime\":\"%"
	  "016llx\"}",
	  1, "}" },
	{ "configmaps", NULL, 0, KIND_HEAD("v1", "ConfigMap") "\"data\":{\"first\":\"1\"",
	  ",\"key-%08llx\":\"value of a setting %016llx\"", 16, "}}" },
	{ "events", event_fields, VDI_ARRAY_SIZE(event_fields), KIND_HEAD("v1", "Event"),
	  "\"involvedObject\":{\"kind\":\"Pod\",\"namespace\":\"default\",\"name\":\"web-%08llx\",\"uid\":\"%"
	  "016llx\"},\"reason\":\"Scheduled\",\"message\":\"Successfully "
	  "assigned\",\"source\":{\"component\":\"default-scheduler\"},\"count\":1",
	  1, ",\"type\":\"Normal\"}" },
	{ "endpointslices", NULL, 0,
	  KIND_HEAD("discovery.k8s.io/v1", "EndpointSlice") "\"addressType\":\"IPv4\",\"endpoints\":[{}",
	  ",{\"addresses\":[\"%08llx\"],\"conditions\":{\"ready\":true,\"serving\":true,\"terminating\":"
	  "false},\"nodeName\":\"node-1\",\"targetRef\":{\"kind\":\"Pod\",\"name\":\"web-%016llx\"}}",
	  24, "]}" },
};

static void fill_pool_kind(struct world *world, const struct kind *kind)
{
	for (size_t i = 0; i < POOL; i++) {
		unsigned long long number = measure_random(&world->seed) % 10000;
		char		  *text = pool.values[i];
		size_t		   size;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		size = (size_t) snprintf(text, POD_SIZE_MAX, kind->head, number, (unsigned) (number / 100));
		for (unsigned j = 0; j < kind->items; j++)
			size += (size_t) snprintf(text + size, POD_SIZE_MAX - size, kind->item,
						  (unsigned long long) (measure_random(&world->seed) >> 32),
						  (unsigned long long) measure_random(&world->seed));
#pragma GCC diagnostic pop
		size += (size_t) snprintf(text + size, POD_SIZE_MAX - size, "%s", kind->tail);
		pool.puts[i].key.data = pool.keys[i];
		pool.puts[i].key.size =
			(size_t) snprintf(pool.keys[i], POD_KEY_MAX, "/registry/%s/ns-%05u/web-%07llu",
					  kind->name, (unsigned) (number / 100), number);
		pool.puts[i].value = (struct vd_bytes) { text, size };
	}
}

static void bench_kind(const struct kind *kind)
{
	struct world	world;
	struct vd_error error;
	char		prefix[64], what[96];

	world_open(&world, NULL);
	vd_codec_free(world.codec);
	measure_check(vd_codec_json_new(kind->fields, kind->field_count, &world.codec, &error), &error,
		      "codec");
	snprintf(prefix, sizeof prefix, "/registry/%s/", kind->name);
	world.options.codec = world.codec;
	world.options.resource = kind->name;
	world.options.key_prefix = prefix;
	world.options.trigger = NULL;
	world_start(&world);
	fill_pool_kind(&world, kind);
	(void) run_events(&world, measure_scaled(16384), 64, 0);
	snprintf(what, sizeof what, "\"kind\":\"%s\",\"bytes\":%zu", kind->name, pool.puts[0].value.size);
	bench_ingest(&world, "ingest-kind", what, 64);
	world_close(&world);
}

/* ---- Stalled watchers and latency ---- */

static size_t take_nothing(void *arg, const struct vd_watch_event *events, size_t count)
{
	(void) arg;
	(void) events;
	(void) count;
	return 0;
}

static double p99_of_puts(struct world *world, size_t count, size_t watchers)
{
	int64_t *latencies = calloc(count, sizeof *latencies);
	double	 p99;

	for (size_t i = 0; i < count; i++) {
		latencies[i] = measure_wall_ns();
		(void) run_events(world, 1, 1, watchers);
		latencies[i] = measure_wall_ns() - latencies[i];
	}
	qsort(latencies, count, sizeof *latencies, measure_compare);
	p99 = (double) latencies[count * 99 / 100] / 1e3;
	free(latencies);
	return p99;
}

#define HEALTHY 16
#define STALLED 1000

static void bench_stalled(struct world *world)
{
	struct measure_rounds ratios = { .count = 0 }, alone = { .count = 0 }, beside = { .count = 0 };
	size_t		      count = measure_scaled(2000);
	char		      parameters[160];

	for (unsigned round = 0; round < measure_options.rounds; round++) {
		double first, second;

		open_watchers(world, HEALTHY, BY_NOTHING, false);
		first = p99_of_puts(world, count, HEALTHY);
		for (size_t i = 0; i < STALLED; i++) {
			struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
			struct vd_watch_sink	sink = { take_nothing, ended, NULL, NULL };
			struct vd_error		error;

			options.revision = vd_cacher_revision(world->cacher);
			measure_check(vd_cacher_watch(world->cacher, &options, &sink,
						      &crowd.watchers[crowd.count++], &error),
				      &error, "watch");
		}
		(void) run_events(world, 64, 8, HEALTHY);
		second = p99_of_puts(world, count, HEALTHY);
		close_watchers();
		measure_add(&ratios, second / first, 0, 0);
		measure_add(&alone, first, 0, 0);
		measure_add(&beside, second, 0, 0);
	}
	snprintf(parameters, sizeof parameters,
		 "\"stalled\":%d,\"healthy\":%d,\"p99_us_without\":%.0f,\"p99_us_with\":%.0f", STALLED,
		 HEALTHY, measure_median(&alone), measure_median(&beside));
	measure_report("stalled", parameters, &ratios, "x");
}

static _Atomic int64_t answered_ns, seen_ns;

static void note_answer(void *arg, vd_status status, const struct vd_txn_result *result,
			const struct vd_error *error)
{
	(void) arg;
	(void) result;
	measure_check(status, error, "put");
	atomic_store(&answered_ns, measure_wall_ns());
}

static size_t note_event(void *arg, const struct vd_watch_event *events, size_t count)
{
	(void) arg;
	(void) events;
	atomic_store(&seen_ns, measure_wall_ns());
	return count;
}

static void report_stage(const char *stage, int64_t *latencies, size_t count)
{
	char parameters[128];

	qsort(latencies, count, sizeof *latencies, measure_compare);
	snprintf(parameters, sizeof parameters, "\"stage\":\"%s\",\"p99_us\":%.0f,\"p999_us\":%.0f", stage,
		 (double) latencies[count * 99 / 100] / 1e3, (double) latencies[count * 999 / 1000] / 1e3);
	measure_report_value("latency", parameters, (double) latencies[count / 2] / 1e3, "us", 0, 0);
}

static void bench_latency(void)
{
	struct vd_watch_options options = VD_WATCH_OPTIONS_INIT;
	struct vd_watch_sink	sink = { note_event, ended, NULL, NULL };
	size_t			count = measure_scaled(1000);
	int64_t *answers = calloc(count, sizeof *answers), *events = calloc(count, sizeof *events),
		*between = calloc(count, sizeof *between);
	struct vd_watcher *watcher;
	struct vd_error	   error;
	struct world	   world;

	world_open(&world, measure_folder());
	world_start(&world);
	fill_pool(&world, BY_NOTHING, 0, 1000);
	options.revision = vd_cacher_revision(world.cacher);
	measure_check(vd_cacher_watch(world.cacher, &options, &sink, &watcher, &error), &error, "watch");
	measure_nap_ns(100000000);
	for (size_t i = 0; i < count; i++) {
		struct vd_op	      op = { .kind = VD_OP_PUT,
					     .key = pool.puts[i % POOL].key,
					     .value = pool.puts[i % POOL].value };
		struct vd_txn_request request = { .success = &op, .success_count = 1 };
		int64_t		      begin = measure_wall_ns();

		atomic_store(&answered_ns, 0);
		atomic_store(&seen_ns, 0);
		measure_check(vd_store_txn(world.store, &request, note_answer, NULL), NULL, "put");
		while (atomic_load(&answered_ns) == 0 || atomic_load(&seen_ns) == 0)
			measure_nap_ns(50000);
		answers[i] = atomic_load(&answered_ns) - begin;
		events[i] = atomic_load(&seen_ns) - begin;
		between[i] = VDI_MAX((int64_t) 0, atomic_load(&seen_ns) - atomic_load(&answered_ns));
		measure_nap_ns(1000000);
	}
	report_stage("store", answers, count);
	report_stage("cacher", between, count);
	report_stage("event", events, count);
	atomic_store(&closed_count, 0);
	vd_watcher_close(watcher, note_closed, NULL);
	while (atomic_load(&closed_count) < 1)
		measure_nap_ns(1000000);
	world_close(&world);
	free(answers);
	free(events);
	free(between);
}

static void bench_fan_out(struct world *world, size_t watchers, size_t together, bool consumer)
{
	struct measure_rounds rounds = { .count = 0 };
	struct measure_rounds beyond = { .count = 0 };
	size_t events = measure_scaled(VDI_MAX((size_t) 512, VDI_MIN((size_t) 8192, 2000000 / watchers)));
	char   parameters[160];

	for (unsigned round = 0; round < measure_options.rounds; round++) {
		struct cost idle = run_events(world, 4096, together, 0), cost;
		double	    deliveries;

		open_watchers(world, watchers, BY_NOTHING, consumer);
		(void) run_events(world, together, together, watchers);
		cost = run_events(world, events, together, watchers);
		close_watchers();
		deliveries = (double) cost.events * (double) watchers;
		measure_add(&beyond,
			    (cost.cpu_ns - idle.cpu_ns / (double) idle.events * (double) cost.events) /
				    deliveries,
			    0, 0);
		measure_add(&rounds, cost.cpu_ns / deliveries, cost.cpu_ns / 1e9, cost.wall_ns / 1e9);
	}
	snprintf(parameters, sizeof parameters,
		 "\"watchers\":%zu,\"sink\":\"%s\",\"together\":%zu,\"beyond_ingest_ns\":%.1f", watchers,
		 consumer ? "consumer" : "dispatching", together, measure_median(&beyond));
	measure_report("fan-out", parameters, &rounds, "ns");
}

static void bench_one_of(struct world *world, enum by by, size_t watchers, size_t together)
{
	struct measure_rounds rounds = { .count = 0 };
	char		      parameters[160];

	fill_pool(world, by, 7, 1000);
	open_watchers(world, watchers, by, false);
	(void) run_events(world, POOL, together,
			  1); /* regardless of its previous state, the pod now matches the watcher */
	for (unsigned round = 0; round < measure_options.rounds; round++) {
		struct cost cost = run_events(world, measure_scaled(4096), together, 1);

		measure_add(&rounds, cost.cpu_ns / 1e3 / (double) cost.events, cost.cpu_ns / 1e9,
			    cost.wall_ns / 1e9);
	}
	close_watchers();
	snprintf(parameters, sizeof parameters, "\"by\":\"%s\",\"watchers\":%zu,\"together\":%zu",
		 by_names[by], watchers, together);
	measure_report("one-of", parameters, &rounds, "us");
}

static int64_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return (int64_t) (info.uordblks + info.hblkhd);
}

static void bench_idle(struct world *world, enum by by, bool consumer)
{
	int64_t heap, memory;
	char	parameters[160];

	open_watchers(world, WATCHERS_MAX, by, consumer);
	close_watchers();
	measure_nap_ns(100000000); /* the cacher forgets them */
	malloc_trim(0);
	heap = heap_bytes();
	memory = measure_memory(0);
	open_watchers(world, WATCHERS_MAX, by, consumer);
	memory = measure_memory(0) - memory;
	snprintf(parameters, sizeof parameters,
		 "\"selectors\":\"%s\",\"watchers\":%d,\"resident_bytes\":%.0f",
		 consumer	  ? "consumer" :
		 by == BY_NOTHING ? "equal" :
				    "different",
		 WATCHERS_MAX, (double) memory / WATCHERS_MAX);
	measure_report_value("idle-watcher", parameters, (double) (heap_bytes() - heap) / WATCHERS_MAX,
			     "bytes", 0, 0);
	close_watchers();
}

int main(int argc, char **argv)
{
	static const size_t widths[] = { 1, 10, 100, 1000, 10000, 100000 };
	struct world	    world;

	measure_begin("delivery", argc, argv);
	world_open(&world, NULL);
	/* Resident, or the first case would pay for it. */
	memset(&crowd, 1, sizeof crowd);
	world_fill(&world, 0, measure_scaled(100000), 1024);
	world_start(&world);
	fill_pool(&world, BY_NOTHING, 0, measure_scaled(100000));
	(void) run_events(&world, measure_scaled(65536), 64, 0); /* the history is full from now on */
	if (measure_wanted("ingest")) {
		bench_ingest(&world, "ingest", "\"bytes\":1024", 1);
		bench_ingest(&world, "ingest", "\"bytes\":1024", 8);
		bench_ingest(&world, "ingest", "\"bytes\":1024", 64);
	}
	if (measure_wanted("ingest-size"))
		bench_ingest_sizes(&world);
	if (measure_wanted("fan-out"))
		for (unsigned consumer = 0; consumer < 2; consumer++)
			for (size_t i = 0; i < VDI_ARRAY_SIZE(widths); i++) {
				bench_fan_out(&world, widths[i], 1, consumer);
				bench_fan_out(&world, widths[i], 8, consumer);
			}
	if (measure_wanted("one-of"))
		for (enum by by = BY_TRIGGER; by < BY_COUNT; by++)
			for (size_t i = 1; i < VDI_ARRAY_SIZE(widths) && widths[i] <= 10000; i++)
				if (widths[i] != 100)
					bench_one_of(&world, by, widths[i], 8);
	if (measure_wanted("idle-watcher")) {
		bench_idle(&world, BY_NOTHING, false);
		bench_idle(&world, BY_LABEL, false);
		bench_idle(&world, BY_NOTHING, true);
	}
	if (measure_wanted("stalled"))
		bench_stalled(&world);
	world_close(&world);
	for (size_t i = 0; measure_wanted("ingest-kind") && i < VDI_ARRAY_SIZE(kinds); i++)
		bench_kind(&kinds[i]);
	if (measure_wanted("latency"))
		bench_latency();
	return 0;
}
