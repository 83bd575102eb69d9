/* What the embedded store does in a second. One JSON line per case: bench_mvcc [SECONDS [DIRECTORY]]; with a directory (which must not exist) the
 * writes are durable, one fdatasync a group. Values are 1 KB and random. Wall time and CPU time (all threads). */
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vedette/vedette.h>

#include "base.h"
#include "thread.h"
#include "wait.h"

#define VALUE_SIZE 1024
#define KEYS 100000

static double seconds_per_case = 2;
static char   random_bytes[1 << 20];

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static size_t heap_bytes(void)
{
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static uint64_t random_next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static struct vd_bytes random_value(uint64_t *seed)
{
	return (struct vd_bytes) { random_bytes + random_next(seed) % (sizeof random_bytes - VALUE_SIZE), VALUE_SIZE };
}

static struct vd_bytes key_text(char *buffer, uint64_t number)
{
	return (struct vd_bytes) { buffer, (size_t) sprintf(buffer, "/registry/pods/namespace-%03u/pod-%08u", (unsigned) (number % 1000),
							    (unsigned) number) };
}

struct measure {
	int64_t wall;
	int64_t cpu;
};

static struct measure measure_begin(void)
{
	return (struct measure) { clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_PROCESS_CPUTIME_ID) };
}

static void report(const char *name, struct measure begin, double count, const char *extra)
{
	double wall = (double) (clock_ns(CLOCK_MONOTONIC) - begin.wall);
	double cpu = (double) (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin.cpu);

	printf("{\"bench\":\"mvcc\",\"case\":\"%s\",\"count\":%.0f,\"per_second\":%.0f,\"cpu_us_each\":%.3f%s%s}\n", name, count,
	       count / wall * 1e9, cpu / count / 1e3, extra[0] ? "," : "", extra);
	fflush(stdout);
}

static struct vd_store *open_store(struct vd_env *env, const char *directory)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;
	struct vd_error	       error;

	options.data_dir = directory;
	if (vd_store_open_mvcc(env, &options, &store, &error) != VD_OK) {
		fprintf(stderr, "bench_mvcc: %s\n", error.message);
		exit(1);
	}
	return store;
}

/* ---- Blocking writers ---- */

struct writer {
	struct vdi_thread thread;
	struct vd_store	 *store;
	uint64_t	  seed;
	int64_t		  until;
	uint64_t	  count;
	int64_t		 *latencies;
	size_t		  latency_count;
};

#define LATENCIES_MAX 20000

static void *writer_run(void *arg)
{
	struct writer *writer = arg;
	char	       key[64];

	while (clock_ns(CLOCK_MONOTONIC) < writer->until) {
		int64_t begin = clock_ns(CLOCK_MONOTONIC);

		if (vd_store_put_wait(writer->store, key_text(key, random_next(&writer->seed) % KEYS), random_value(&writer->seed), NULL,
				      NULL) != VD_OK)
			exit(1);
		writer->count++;
		if (writer->latency_count < LATENCIES_MAX)
			writer->latencies[writer->latency_count++] = clock_ns(CLOCK_MONOTONIC) - begin;
	}
	return NULL;
}

static int compare_latencies(const void *a, const void *b)
{
	int64_t left = *(const int64_t *) a;
	int64_t right = *(const int64_t *) b;

	return (left > right) - (left < right);
}

static void bench_writers(struct vd_store *store, const char *where, unsigned count)
{
	struct writer *writers = calloc(count, sizeof *writers);
	int64_t	      *all = calloc(count, LATENCIES_MAX * sizeof *all);
	size_t	       latency_count = 0;
	uint64_t       puts = 0;
	char	       name[64];
	char	       extra[96];
	struct measure begin = measure_begin();

	for (unsigned i = 0; i < count; i++) {
		writers[i] = (struct writer) { .store = store, .seed = 88172645463325252ull + i,
					       .until = begin.wall + (int64_t) (seconds_per_case * 1e9) };
		writers[i].latencies = malloc(LATENCIES_MAX * sizeof(int64_t));
		if (vdi_thread_start(&writers[i].thread, "writer", writer_run, &writers[i]) != VD_OK)
			exit(1);
	}
	for (unsigned i = 0; i < count; i++) {
		vdi_thread_join(&writers[i].thread);
		puts += writers[i].count;
		memcpy(all + latency_count, writers[i].latencies, writers[i].latency_count * sizeof *all);
		latency_count += writers[i].latency_count;
		free(writers[i].latencies);
	}
	qsort(all, latency_count, sizeof *all, compare_latencies);
	snprintf(name, sizeof name, "%s put, %u blocking writers", where, count);
	snprintf(extra, sizeof extra, "\"p50_us\":%.1f,\"p99_us\":%.1f", (double) all[latency_count / 2] / 1e3,
		 (double) all[latency_count * 99 / 100] / 1e3);
	report(name, begin, (double) puts, extra);
	free(writers);
	free(all);
}

/* ---- Submissions in flight ---- */

struct flight {
	struct vd_store	 *store;
	uint64_t	  seed;
	int64_t		  until;
	_Atomic uint64_t  answered;
	uint64_t	  answered_max; /* 0: none */
	bool		  is_small;
	_Atomic unsigned  under_way;
	struct vdi_wait	  over;
};

static void submit_one(struct flight *flight);

static void answered(void *arg, vd_status status, const struct vd_txn_result *result, const struct vd_error *error)
{
	struct flight *flight = arg;

	(void) result;
	(void) error;
	if (status != VD_OK)
		exit(1);
	flight->answered++;
	if (clock_ns(CLOCK_MONOTONIC) < flight->until && (flight->answered_max == 0 || flight->answered < flight->answered_max))
		submit_one(flight);
	else if (--flight->under_way == 0)
		vdi_wait_signal(&flight->over);
}

static void submit_one(struct flight *flight)
{
	char		      key[64];
	struct vd_op	      op = { .kind = VD_OP_PUT, .key = key_text(key, random_next(&flight->seed) % KEYS), .value = random_value(&flight->seed) };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };

	if (flight->is_small)
		op.value.size = 16;
	if (vd_store_txn(flight->store, &request, answered, flight) != VD_OK)
		exit(1);
}

static void bench_flight(struct vd_env *env, struct vd_store *store, const char *where, unsigned count)
{
	struct flight  flight = { .store = store, .seed = 7 };
	char	       name[64];
	struct measure begin = measure_begin();

	flight.until = begin.wall + (int64_t) (seconds_per_case * 1e9);
	flight.under_way = count;
	vdi_wait_init(&flight.over, env);
	for (unsigned i = 0; i < count; i++)
		submit_one(&flight);
	vdi_wait_wait(&flight.over);
	vdi_wait_fini(&flight.over);
	snprintf(name, sizeof name, "%s put, %u in flight", where, count);
	report(name, begin, (double) flight.answered, "");
}

/* ---- Reads ---- */

static void got_range(void *arg, vd_status status, const struct vd_range_result *result, const struct vd_error *error)
{
	(void) error;
	*(size_t *) arg = status == VD_OK ? result->kv_count : 0;
}

static void bench_range(struct vd_store *store, const char *name, const struct vd_range_request *request, unsigned times)
{
	size_t	       count = 0;
	char	       extra[64];
	struct measure begin = measure_begin();

	for (unsigned i = 0; i < times; i++)
		if (vd_store_range(store, request, got_range, &count) != VD_OK)
			exit(1);
	snprintf(extra, sizeof extra, "\"records\":%zu", count);
	report(name, begin, times, extra);
}

/* ---- A watch that catches up while others write ---- */

static void ready(void *arg)
{
	(void) arg;
}

static void bench_catch_up(struct vd_store *store, vd_rev from)
{
	struct vd_store_watch_request request = { .key = { "/", 1 }, .range_end = { "0", 1 }, .start_revision = from, .previous = true, .ready = ready };
	struct vd_store_status	      status;
	struct vd_store_watch	     *watch;
	struct vd_store_batch	      batch;
	uint64_t		      events = 0;
	struct measure		      begin;
	vd_rev			      seen = 0;

	if (vd_store_status_get(store, &status) != VD_OK || vd_store_watch_open(store, &request, &watch, NULL) != VD_OK)
		exit(1);
	begin = measure_begin();
	while (seen < status.current) {
		vd_status next = vd_store_watch_next(watch, 1000, &batch, NULL);

		if (next != VD_OK) {
			fprintf(stderr, "bench_mvcc: %s\n", vd_status_name(next));
			exit(1);
		}
		seen = batch.revision;
		events += batch.event_count;
	}
	report("memory watch catching up", begin, (double) events, "");
	vd_store_watch_close(watch);
}

/* ---- Cases ---- */

static void put_one(struct vd_store *store, uint64_t number, struct vd_bytes value)
{
	char key[64];

	if (vd_store_put_wait(store, key_text(key, number), value, NULL, NULL) != VD_OK)
		exit(1);
}

static void bench_memory(struct vd_env *env)
{
	size_t		       before = heap_bytes();
	struct vd_store	      *store = open_store(env, NULL);
	size_t		       empty = heap_bytes();
	struct vd_range_request request = { .key = { "/registry/pods/", 15 }, .range_end = { "/registry/pods0", 15 }, .limit = 10000 };
	struct vd_store_status status;
	struct measure	       begin = measure_begin();
	char		       extra[128];
	char		       key[64];
	uint64_t	       seed = 3;

	for (uint64_t i = 0; i < KEYS; i++)
		put_one(store, i, random_value(&seed));
	snprintf(extra, sizeof extra, "\"bytes_each\":%zu,\"of_key_and_value\":%d,\"store_bytes\":%zu", (heap_bytes() - empty) / KEYS,
		 VALUE_SIZE + 41, empty - before);
	report("memory fill", begin, KEYS, extra);
	bench_writers(store, "memory", 1);
	bench_writers(store, "memory", 64);
	bench_writers(store, "memory", 256);
	bench_flight(env, store, "memory", 256);
	bench_range(store, "memory range 10k", &request, 200);
	request.limit = 0;
	bench_range(store, "memory range 100k", &request, 20);
	request.count_only = true;
	bench_range(store, "memory count 100k", &request, 100000);
	request.count_only = false;
	request.limit = 500;
	if (vd_store_status_get(store, &status) != VD_OK)
		exit(1);
	request.revision = status.current - 5000;
	bench_range(store, "memory range 500, 5000 revisions ago", &request, 200);
	request = (struct vd_range_request) { .key = key_text(key, 4711) };
	bench_range(store, "memory get", &request, 1000000);
	vd_store_close_wait(store);
}

/* Small revisions, a million of them, unless the machine is too slow for it. */
static void bench_watch(struct vd_env *env)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;
	struct writer	       writer = { .seed = 5 };
	struct flight	       flight = { .seed = 7, .under_way = 256, .is_small = true };

	options.history_bytes = 0;
	if (vd_store_open_mvcc(env, &options, &store, NULL) != VD_OK)
		exit(1);
	flight.store = store;
	flight.until = INT64_MAX;
	flight.answered_max = 1000000;
	vdi_wait_init(&flight.over, env);
	for (unsigned i = 0; i < 256; i++)
		submit_one(&flight);
	vdi_wait_wait(&flight.over);
	vdi_wait_fini(&flight.over);
	writer.store = store;
	writer.until = clock_ns(CLOCK_MONOTONIC) + (int64_t) (seconds_per_case * 1e9);
	writer.latencies = malloc(LATENCIES_MAX * sizeof(int64_t));
	if (vdi_thread_start(&writer.thread, "writer", writer_run, &writer) != VD_OK)
		exit(1);
	bench_catch_up(store, 2);
	bench_catch_up(store, 2);
	vdi_thread_join(&writer.thread);
	qsort(writer.latencies, writer.latency_count, sizeof(int64_t), compare_latencies);
	printf("{\"bench\":\"mvcc\",\"case\":\"memory put meanwhile\",\"p99_us\":%.1f}\n",
	       (double) writer.latencies[writer.latency_count * 99 / 100] / 1e3);
	free(writer.latencies);
	vd_store_close_wait(store);
}

int main(int argc, char **argv)
{
	struct vd_env *env;
	uint64_t       seed = 1;

	if (argc > 1)
		seconds_per_case = atof(argv[1]);
	for (size_t i = 0; i < sizeof random_bytes; i++)
		random_bytes[i] = (char) random_next(&seed);
	if (vd_env_new_threads(NULL, &env) != VD_OK)
		return 1;
	if (argc > 2) {
		struct vd_store *store = open_store(env, argv[2]);

		bench_writers(store, "durable", 1);
		bench_writers(store, "durable", 64);
		bench_writers(store, "durable", 256);
		bench_flight(env, store, "durable", 256);
		vd_store_close_wait(store);
	} else {
		bench_memory(env);
		bench_watch(env);
	}
	vd_env_free(env);
	return 0;
}
