/* The etcd client and the cache over it, against a real etcd. `peers etcd-bench` runs it: it starts and fills
 * the etcd, puts what this program requests with a line {"put":N} or {"txn":N} on stdout, and runs etcd's own
 * Go client through the same cases (tests/peers/etcd_bench.go). Alone it needs $ETCD_ENDPOINTS.
 *
 *   - etcd-watch: 10,000 watches of one key each, on one stream. etcd-watch-idle: private memory of each;
 *     etcd-watch-open: CPU of opening one; etcd-watch-event: CPU per event at 1,000 puts per second, 1 KB
 *     each: threads are asleep when an event arrives
 *   - etcd-burst: 1 and 100 watches of one prefix on one stream; transactions of 50 puts of 1 KB, as fast as
 *     etcd accepts them: CPU per event
 *   - etcd-list: 100,000 pods of 1 KB: CPU per object. how: "pages" of 10,000 at one revision, like
 *     kube-apiserver; "stream" (RangeStream, etcd 3.7); "cacher": until a Cacher over it is ready, with
 *     decoding and indexing; "cacher+history": also with every revision since the store's compaction, which
 *     here is another 100,000 events
 *
 * CPU is that of this whole process, including gRPC's threads.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <vedette/etcd.h>

#include "base.h"
#include "lock.h"
#include "world.h"

#define WATCHES 10000
#define EVENTS 2000 /* of a round */
#define BURST_EVENTS                                                                                         \
	200000 /* of a round, all watches together; a tenth of it for one watch, which would fill etcd */
#define BURST_PUTS 50 /* of a transaction */
#define PAGE 10000
#define PREFIX "/registry/pods/"

static const char *endpoints[8];
static size_t	   endpoint_count;

struct bench {
	struct vd_env	    *env;
	struct vd_etcd	    *client;
	struct vdi_lock	     lock;
	struct vdi_condition changed;
	/* Under lock. */
	uint64_t events;
	uint64_t events_wanted;
	uint64_t created;
	uint64_t created_wanted;
	bool	 is_done;
	uint64_t count;
	int64_t	 cpu_ready,
		wall_ready; /* when a cacher was ready: taking it down is not counted; 0: at the end */
	vd_rev revision;
	char   next[VD_KEY_SIZE_MAX];
	size_t next_size;
	bool   more;
};

static void open_client(struct bench *bench)
{
	struct vd_etcd_options options = VD_ETCD_OPTIONS_INIT;
	struct vd_env_options  env_options = VD_ENV_OPTIONS_INIT;
	struct vd_error	       error;

	memset(bench, 0, sizeof *bench);
	vdi_lock_init(&bench->lock, VDI_LOCK_LEAF);
	vdi_condition_init(&bench->changed);
	env_options.threads = 1;
	measure_check(vd_env_new_threads(&env_options, &bench->env), NULL, "threads");
	options.endpoints = endpoints;
	options.endpoint_count = endpoint_count;
	measure_check(vd_etcd_open(bench->env, &options, &bench->client, &error), &error, "client");
}

static void close_client(struct bench *bench)
{
	vd_etcd_close_wait(bench->client);
	vd_env_free(bench->env);
	vdi_condition_fini(&bench->changed);
	vdi_lock_fini(&bench->lock);
}

/* ---- Watches: one reader for all ---- */

struct reader {
	struct bench	*bench;
	struct vd_actor *actor;
	struct watch {
		struct reader	     *reader;
		struct vd_etcd_watch *watch;
		bool		      is_listed; /* under lock */
	} * watches;
	size_t		count;
	struct vdi_lock lock;
	struct watch  **listed; /* under lock: those with something to read */
	size_t		listed_count;
};

static void reader_ready(void *arg)
{
	struct watch  *watch = arg;
	struct reader *reader = watch->reader;

	vdi_lock_acquire(&reader->lock);
	if (!watch->is_listed) {
		watch->is_listed = true;
		reader->listed[reader->listed_count++] = watch;
	}
	vdi_lock_release(&reader->lock);
	vd_actor_wake(reader->actor);
}

static void reader_run(void *arg)
{
	struct reader *reader = arg;
	struct bench  *bench = reader->bench;

	for (;;) {
		struct vd_etcd_watch_response response;
		struct vd_etcd_error	      error;
		struct watch		     *watch = NULL;
		uint64_t		      events = 0, created = 0;
		vd_status		      status;

		vdi_lock_acquire(&reader->lock);
		if (reader->listed_count > 0) {
			watch = reader->listed[--reader->listed_count];
			watch->is_listed = false;
		}
		vdi_lock_release(&reader->lock);
		if (watch == NULL)
			return;
		while ((status = vd_etcd_watch_next(watch->watch, &response, &error)) == VD_OK) {
			events += response.event_count;
			created += response.created;
		}
		if (status != VD_AGAIN)
			measure_check(status, &error.error, "watch");
		if (events + created == 0)
			continue;
		vdi_lock_acquire(&bench->lock);
		bench->events += events;
		bench->created += created;
		if (bench->events >= bench->events_wanted && bench->created >= bench->created_wanted)
			vdi_condition_signal(&bench->changed);
		vdi_lock_release(&bench->lock);
	}
}

/* prefix NULL: each has a key of its own. */
static void open_watches(struct bench *bench, struct reader *reader, size_t count, const char *prefix)
{
	const struct vd_actor_options options = { .name = "bench_reader", .run = reader_run, .arg = reader };
	struct vd_error		      error;

	reader->bench = bench;
	reader->count = count;
	reader->watches = vdi_calloc(reader->count, sizeof *reader->watches);
	reader->listed = vdi_calloc(reader->count, sizeof *reader->listed);
	if (!reader->watches || !reader->listed)
		measure_check(VD_NOMEM, NULL, "watches");
	vdi_lock_init(&reader->lock, VDI_LOCK_LEAF);
	measure_check(vd_actor_new(bench->env, &options, &reader->actor), NULL, "reader");
	for (size_t i = 0; i < reader->count; i++) {
		struct watch		    *watch = &reader->watches[i];
		struct vd_etcd_watch_request request = { .created_notify = true,
							 .ready = reader_ready,
							 .ready_arg = watch };
		char			     key[64], end[64];

		watch->reader = reader;
		snprintf(key, sizeof key, "/bench/watch/%05zu", i);
		request.key = vd_bytes_of(prefix ? prefix : key);
		if (prefix)
			request.range_end = vd_etcd_prefix_end(request.key, end);
		/* ready() may come before watch->watch is written. */
		vdi_lock_acquire(&reader->lock);
		watch->is_listed = true;
		vdi_lock_release(&reader->lock);
		measure_check(vd_etcd_watch_open(bench->client, &request, &watch->watch, &error), &error,
			      "watch");
		vdi_lock_acquire(&reader->lock);
		reader->listed[reader->listed_count++] = watch;
		vdi_lock_release(&reader->lock);
		vd_actor_wake(reader->actor);
	}
	vdi_lock_acquire(&bench->lock);
	bench->created_wanted = reader->count;
	while (bench->created < reader->count)
		vdi_condition_wait(&bench->changed, &bench->lock);
	vdi_lock_release(&bench->lock);
}

static void close_watches(struct reader *reader)
{
	for (size_t i = 0; i < reader->count; i++)
		vd_etcd_watch_close(reader->watches[i].watch);
	vd_actor_close(reader->actor, NULL,
		       NULL); /* no watch wakes it any more; it is gone before the env is */
}

static void run_range(struct bench *bench, const char *key);

static void free_reader(struct reader *reader)
{
	vdi_free(reader->watches);
	vdi_free(reader->listed);
	vdi_lock_fini(&reader->lock);
}

/* Asks for so many puts or transactions in each round, and waits for the events. */
static void measure_events(struct bench *bench, const char *ask, size_t count, size_t events,
			   struct measure_rounds *rounds)
{
	for (unsigned i = 0; i < measure_options.rounds; i++) {
		int64_t cpu, wall;

		vdi_lock_acquire(&bench->lock);
		bench->events_wanted = bench->events + events;
		cpu = measure_cpu_ns();
		wall = measure_wall_ns();
		printf("{\"%s\":%zu}\n", ask, count);
		fflush(stdout);
		while (bench->events < bench->events_wanted)
			vdi_condition_wait(&bench->changed, &bench->lock);
		vdi_lock_release(&bench->lock);
		cpu = measure_cpu_ns() - cpu;
		wall = measure_wall_ns() - wall;
		measure_add(rounds, (double) cpu / 1e3 / (double) events, (double) cpu / 1e9,
			    (double) wall / 1e9);
	}
}

static void watch_case(void)
{
	struct bench	      bench;
	struct reader	      reader = { 0 };
	struct measure_rounds rounds = { 0 };
	size_t		      events = measure_scaled(EVENTS);
	int64_t		      memory, cpu, wall;
	char		      parameters[128];

	open_client(&bench);
	run_range(&bench, "x"); /* connected */
	malloc_trim(0);
	memory = measure_memory(0);
	cpu = measure_cpu_ns();
	wall = measure_wall_ns();
	open_watches(&bench, &reader, measure_scaled(WATCHES), NULL);
	cpu = measure_cpu_ns() - cpu;
	wall = measure_wall_ns() - wall;
	malloc_trim(0);
	memory = measure_memory(0) - memory;
	snprintf(parameters, sizeof parameters, "\"client\":\"vedette\",\"watches\":%zu", reader.count);
	measure_report_value("etcd-watch-idle", parameters, (double) memory / (double) reader.count, "bytes",
			     (double) cpu / 1e9, (double) wall / 1e9);
	measure_report_value("etcd-watch-open", parameters, (double) cpu / 1e3 / (double) reader.count,
			     "us CPU", (double) cpu / 1e9, (double) wall / 1e9);
	measure_events(&bench, "put", events, events, &rounds);
	measure_report("etcd-watch-event", parameters, &rounds, "us CPU");
	close_watches(&reader);
	close_client(&bench);
	free_reader(&reader);
}

static void burst_case(size_t watches)
{
	struct bench	      bench;
	struct reader	      reader = { 0 };
	struct measure_rounds rounds = { 0 };
	size_t transactions = VDI_MAX(measure_scaled(BURST_EVENTS) / BURST_PUTS / VDI_MAX(watches, 10), 1);
	char   parameters[128];

	open_client(&bench);
	open_watches(&bench, &reader, watches, "/bench/burst/");
	measure_events(&bench, "txn", transactions, transactions * BURST_PUTS * watches, &rounds);
	snprintf(parameters, sizeof parameters, "\"client\":\"vedette\",\"watches\":%zu,\"together\":%d",
		 watches, BURST_PUTS);
	measure_report("etcd-burst", parameters, &rounds, "us CPU");
	close_watches(&reader);
	close_client(&bench);
	free_reader(&reader);
}

/* ---- Lists ---- */

/* Keeps where the next page begins. */
static void took(struct bench *bench, const struct vd_etcd_header *header,
		 const struct vd_range_result *result)
{
	bench->count += result->kv_count;
	bench->revision = header->revision;
	bench->more = result->more;
	if (result->more) {
		struct vd_bytes key = vd_kv_key(result->kvs[result->kv_count - 1]);

		memcpy(bench->next, key.data, key.size);
		bench->next[key.size] = '\0'; /* the first key after it */
		bench->next_size = key.size + 1;
	}
}

static void range_done(void *arg, const struct vd_etcd_error *error, const struct vd_etcd_header *header,
		       const struct vd_range_result *result)
{
	struct bench *bench = arg;

	if (error)
		measure_check(error->error.code, &error->error, "range");
	vdi_lock_acquire(&bench->lock);
	took(bench, header, result);
	bench->is_done = true;
	vdi_condition_signal(&bench->changed);
	vdi_lock_release(&bench->lock);
}

static void wait_done(struct bench *bench)
{
	vdi_lock_acquire(&bench->lock);
	while (!bench->is_done)
		vdi_condition_wait(&bench->changed, &bench->lock);
	bench->is_done = false;
	vdi_lock_release(&bench->lock);
}

static void run_range(struct bench *bench, const char *key)
{
	struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of(key) } };

	measure_check(vd_etcd_range(bench->client, NULL, &request, range_done, bench), NULL, "range");
	wait_done(bench);
}

static void list_pages(struct bench *bench)
{
	struct vd_etcd_range_request request = { .range = { .key = vd_bytes_of(PREFIX), .limit = PAGE } };
	char			     end[sizeof PREFIX];

	request.range.range_end = vd_etcd_prefix_end(vd_bytes_of(PREFIX), end);
	do {
		measure_check(vd_etcd_range(bench->client, NULL, &request, range_done, bench), NULL, "range");
		wait_done(bench);
		request.range.key = (struct vd_bytes) { bench->next, bench->next_size };
		if (request.range.revision == 0)
			request.range.revision = bench->revision;
	} while (bench->more);
}

static void fill_cacher(struct bench *bench, bool with_history)
{
	struct vd_etcd_options	     options = VD_ETCD_OPTIONS_INIT;
	struct vd_etcd_store_options store_options = VD_ETCD_STORE_OPTIONS_INIT;
	struct vd_cacher_options     cacher_options = VD_CACHER_OPTIONS_INIT;
	struct vd_store		    *store;
	struct vd_codec		    *codec;
	struct vd_cacher	    *cacher;
	struct vd_error		     error;

	options.endpoints = endpoints;
	options.endpoint_count = endpoint_count;
	store_options.etcd = &options;
	store_options.compaction_interval = (vd_dur) { 0 };
	measure_check(vd_store_open_etcd(bench->env, &store_options, &store, &error), &error, "store");
	measure_check(vd_codec_json_new(pod_fields, POD_FIELDS, &codec, &error), &error, "codec");
	cacher_options.resource = "pods";
	cacher_options.key_prefix = PREFIX;
	cacher_options.codec = codec;
	cacher_options.trigger = "spec.nodeName";
	cacher_options.no_backfill = !with_history;
	measure_check(vd_cacher_new(bench->env, store, &cacher_options, &cacher, &error), &error, "cacher");
	measure_check(vd_cacher_ready_wait(cacher, VD_SECONDS(120), &error), &error, "cacher");
	bench->count = measure_scaled(100000);
	bench->cpu_ready = measure_cpu_ns();
	bench->wall_ready = measure_wall_ns();
	vd_cacher_close_wait(cacher);
	vd_store_close_wait(store);
	vd_codec_free(codec);
}

static void list_cacher(struct bench *bench)
{
	fill_cacher(bench, false);
}

static void list_cacher_with_history(struct bench *bench)
{
	fill_cacher(bench, true);
}

static void list_case(const char *how, void (*list)(struct bench *bench))
{
	struct measure_rounds rounds = { 0 }, walls = { 0 };
	struct bench	      bench;
	char		      parameters[160];

	open_client(&bench);
	run_range(&bench, "x");
	for (unsigned i = 0; i < measure_options.rounds; i++) {
		int64_t cpu = measure_cpu_ns(), wall = measure_wall_ns();

		bench.count = 0;
		bench.cpu_ready = bench.wall_ready = 0;
		list(&bench);
		cpu = (bench.cpu_ready ? bench.cpu_ready : measure_cpu_ns()) - cpu;
		wall = (bench.wall_ready ? bench.wall_ready : measure_wall_ns()) - wall;
		measure_add(&rounds, (double) cpu / 1e3 / (double) bench.count, (double) cpu / 1e9,
			    (double) wall / 1e9);
		measure_add(&walls, (double) wall / 1e6, (double) cpu / 1e9, (double) wall / 1e9);
	}
	snprintf(parameters, sizeof parameters,
		 "\"client\":\"vedette\",\"how\":\"%s\",\"objects\":%llu,\"bytes\":1024,\"wall_ms\":%.4g",
		 how, (unsigned long long) bench.count, measure_median(&walls));
	measure_report("etcd-list", parameters, &rounds, "us CPU per object");
	close_client(&bench);
}

int main(int argc, char **argv)
{
	char *list = getenv("ETCD_ENDPOINTS"), *rest = NULL;

	measure_begin("etcd", argc, argv);
	if (list == NULL) {
		fprintf(stderr, "bench_etcd: $ETCD_ENDPOINTS is not set; `peers etcd-bench --vedette "
				"bench_etcd` runs it with an etcd of its own\n");
		return 2;
	}
	for (char *word = strtok_r(list, ",", &rest); word && endpoint_count < VDI_ARRAY_SIZE(endpoints);
	     word = strtok_r(NULL, ",", &rest))
		endpoints[endpoint_count++] = word;
	if (measure_wanted("etcd-watch"))
		watch_case();
	if (measure_wanted("etcd-burst")) {
		burst_case(1);
		burst_case(100);
	}
	if (measure_wanted("etcd-list")) {
		list_case("pages", list_pages);
		list_case("cacher", list_cacher);
		list_case("cacher+history", list_cacher_with_history);
	}
	return 0;
}
