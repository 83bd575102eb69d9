/* Throughput of the embedded store, in memory and durable (one fdatasync per group). Values are 1 KB and
 * random.
 *
 *   - memory-*: in memory: fill, blocking writers, submissions in flight, reads
 *   - durable-*: the same writes in a data directory; put-to-event: from the submission to ready() of a watch
 *   - catch-up: a watch a million revisions behind, alone and while a writer writes; put-p99: of that writer,
 *     and of one that has the store alone
 *   - open: a data directory of a million keys
 */
#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <vedette/vedette.h>

#include "base.h"
#include "measure.h"
#include "thread.h"
#include "wait.h"

#define VALUE_SIZE 1024
#define KEYS 100000

static double seconds_per_case = 1;
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
	return (struct vd_bytes) { random_bytes + random_next(seed) % (sizeof random_bytes - VALUE_SIZE),
				   VALUE_SIZE };
}

static struct vd_bytes key_text(char *buffer, uint64_t number)
{
	return (struct vd_bytes) { buffer, (size_t) sprintf(buffer, "/registry/pods/namespace-%03u/pod-%08u",
							    (unsigned) (number % 1000), (unsigned) number) };
}

struct measure {
	int64_t wall;
	int64_t cpu;
};

static struct measure take_measure(void)
{
	return (struct measure) { clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_PROCESS_CPUTIME_ID) };
}

/* name: the case; what: distinguishes it. value: operations per second. */
static void report(const char *name, const char *what, struct measure begin, double count, const char *extra)
{
	double wall = (double) (clock_ns(CLOCK_MONOTONIC) - begin.wall);
	double cpu = (double) (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin.cpu);
	char   parameters[320];

	snprintf(parameters, sizeof parameters, "\"what\":\"%s\",\"count\":%.0f,\"cpu_us_each\":%.3f%s%s",
		 what, count, cpu / count / 1e3, extra[0] ? "," : "", extra);
	measure_report_value(name, parameters, count / wall * 1e9, "per second", cpu / 1e9, wall / 1e9);
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

		if (vd_store_put_wait(writer->store, key_text(key, random_next(&writer->seed) % KEYS),
				      random_value(&writer->seed), NULL, NULL) != VD_OK)
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
	char	       what[64];
	char	       extra[96];
	struct measure begin = take_measure();

	for (unsigned i = 0; i < count; i++) {
		writers[i] = (struct writer) { .store = store,
					       .seed = 88172645463325252ull + i,
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
	snprintf(name, sizeof name, "%s-put", where);
	snprintf(what, sizeof what, "%u blocking writers", count);
	snprintf(extra, sizeof extra, "\"p50_us\":%.1f,\"p99_us\":%.1f",
		 (double) all[latency_count / 2] / 1e3, (double) all[latency_count * 99 / 100] / 1e3);
	report(name, what, begin, (double) puts, extra);
	free(writers);
	free(all);
}

/* ---- Submissions in flight ---- */

struct flight {
	struct vd_store *store;
	uint64_t	 seed;
	int64_t		 until;
	_Atomic uint64_t answered;
	uint64_t	 answered_max; /* 0: none */
	bool		 is_small;
	uint64_t	 key_count; /* 0: every put has a key of its own */
	uint64_t	 next_key;
	_Atomic unsigned under_way;
	struct vdi_wait	 over;
};

static void submit_one(struct flight *flight);

static void answered(void *arg, vd_status status, const struct vd_txn_result *result,
		     const struct vd_error *error)
{
	struct flight *flight = arg;

	(void) result;
	(void) error;
	if (status != VD_OK)
		exit(1);
	flight->answered++;
	if (clock_ns(CLOCK_MONOTONIC) < flight->until &&
	    (flight->answered_max == 0 || flight->answered < flight->answered_max))
		submit_one(flight);
	else if (--flight->under_way == 0)
		vdi_wait_signal(&flight->over);
}

static void submit_one(struct flight *flight)
{
	char		      key[64];
	struct vd_op	      op = { .kind = VD_OP_PUT, .value = random_value(&flight->seed) };
	struct vd_txn_request request = { .success = &op, .success_count = 1 };

	op.key =
		key_text(key, flight->key_count ? random_next(&flight->seed) % flight->key_count :
						  __atomic_fetch_add(&flight->next_key, 1, __ATOMIC_RELAXED));
	if (flight->is_small)
		op.value.size = 16;
	if (vd_store_txn(flight->store, &request, answered, flight) != VD_OK)
		exit(1);
}

static void bench_flight(struct vd_env *env, struct vd_store *store, const char *where, unsigned count)
{
	struct flight  flight = { .store = store, .seed = 7, .key_count = KEYS };
	char	       name[64];
	char	       what[64];
	struct measure begin = take_measure();

	flight.until = begin.wall + (int64_t) (seconds_per_case * 1e9);
	flight.under_way = count;
	vdi_wait_init(&flight.over, env);
	for (unsigned i = 0; i < count; i++)
		submit_one(&flight);
	vdi_wait_wait(&flight.over);
	vdi_wait_fini(&flight.over);
	snprintf(name, sizeof name, "%s-put", where);
	snprintf(what, sizeof what, "%u in flight", count);
	report(name, what, begin, (double) flight.answered, "");
}

/* ---- Reads ---- */

static void got_range(void *arg, vd_status status, const struct vd_range_result *result,
		      const struct vd_error *error)
{
	(void) error;
	*(size_t *) arg = status == VD_OK ? result->kv_count : 0;
}

static void bench_range(struct vd_store *store, const char *name, const struct vd_range_request *request,
			unsigned times)
{
	size_t	       count = 0;
	char	       extra[64];
	struct measure begin = take_measure();

	for (unsigned i = 0; i < times; i++)
		if (vd_store_range(store, request, got_range, &count) != VD_OK)
			exit(1);
	snprintf(extra, sizeof extra, "\"records\":%zu", count);
	report("memory-read", name, begin, times, extra);
}

/* ---- A watch that catches up while others write ---- */

static void ready(void *arg)
{
	(void) arg;
}

static void bench_catch_up(struct vd_store *store, vd_rev from, const char *what)
{
	struct vd_store_watch_request request = { .key = { "/", 1 },
						  .range_end = { "0", 1 },
						  .start_revision = from,
						  .previous = true,
						  .ready = ready };
	struct vd_store_status	      status;
	struct vd_store_watch	     *watch;
	struct vd_store_batch	      batch;
	uint64_t		      events = 0;
	struct measure		      begin;
	vd_rev			      seen = 0;

	if (vd_store_status_get(store, &status) != VD_OK ||
	    vd_store_watch_open(store, &request, &watch, NULL) != VD_OK)
		exit(1);
	begin = take_measure();
	while (seen < status.current) {
		vd_status next = vd_store_watch_next(watch, 1000, &batch, NULL);

		if (next != VD_OK) {
			fprintf(stderr, "bench_mvcc: %s\n", vd_status_name(next));
			exit(1);
		}
		seen = batch.revision;
		events += batch.event_count;
	}
	report("catch-up", what, begin, (double) events, "");
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
	size_t			before = heap_bytes();
	struct vd_store	       *store = open_store(env, NULL);
	size_t			empty = heap_bytes();
	struct vd_range_request request = { .key = { "/registry/pods/", 15 },
					    .range_end = { "/registry/pods0", 15 },
					    .limit = 10000 };
	struct vd_store_status	status;
	struct measure		begin = take_measure();
	char			extra[128];
	char			key[64];
	uint64_t		seed = 3;

	for (uint64_t i = 0; i < KEYS; i++)
		put_one(store, i, random_value(&seed));
	snprintf(extra, sizeof extra, "\"bytes_each\":%zu,\"of_key_and_value\":%d,\"store_bytes\":%zu",
		 (heap_bytes() - empty) / KEYS, VALUE_SIZE + 41, empty - before);
	report("memory-put", "fill, one after the other", begin, KEYS, extra);
	bench_writers(store, "memory", 1);
	bench_writers(store, "memory", 64);
	bench_writers(store, "memory", 256);
	bench_flight(env, store, "memory", 256);
	bench_range(store, "range 10k", &request, 200);
	request.limit = 0;
	bench_range(store, "range 100k", &request, 20);
	request.count_only = true;
	bench_range(store, "count 100k", &request, 100000);
	request.count_only = false;
	request.limit = 500;
	if (vd_store_status_get(store, &status) != VD_OK)
		exit(1);
	request.revision = status.current - 5000;
	bench_range(store, "range 500, 5000 revisions ago", &request, 200);
	request = (struct vd_range_request) { .key = key_text(key, 4711) };
	bench_range(store, "get", &request, 1000000);
	vd_store_close_wait(store);
}

static void fill_small(struct vd_env *env, struct vd_store *store, uint64_t count, uint64_t key_count)
{
	struct flight flight = { .store = store,
				 .seed = 7,
				 .key_count = key_count,
				 .is_small = true,
				 .until = INT64_MAX,
				 .answered_max = count };

	flight.under_way = 256;
	vdi_wait_init(&flight.over, env);
	for (unsigned i = 0; i < 256; i++)
		submit_one(&flight);
	vdi_wait_wait(&flight.over);
	vdi_wait_fini(&flight.over);
}

struct reader {
	struct vdi_thread thread;
	struct vd_store	 *store;
	atomic_bool	  stop;
};

/* Restarts a reader repeatedly, so that one is always a million revisions behind. */
static void *reader_run(void *arg)
{
	struct reader *reader = arg;

	while (!atomic_load(&reader->stop))
		bench_catch_up(reader->store, 2, "while a writer writes");
	return NULL;
}

static void bench_put_beside(struct vd_store *store, const char *what, bool with_reader)
{
	struct reader  reader = { .store = store };
	struct writer  writer = { .store = store, .seed = 5 };
	struct measure begin;
	char	       parameters[128];

	writer.latencies = malloc(LATENCIES_MAX * sizeof(int64_t));
	if (with_reader && vdi_thread_start(&reader.thread, "reader", reader_run, &reader) != VD_OK)
		exit(1);
	begin = take_measure();
	writer.until = begin.wall + (int64_t) (seconds_per_case * 1e9);
	(void) writer_run(&writer);
	atomic_store(&reader.stop, true);
	if (with_reader)
		vdi_thread_join(&reader.thread);
	qsort(writer.latencies, writer.latency_count, sizeof(int64_t), compare_latencies);
	snprintf(parameters, sizeof parameters, "\"what\":\"%s\",\"p50_us\":%.1f", what,
		 (double) writer.latencies[writer.latency_count / 2] / 1e3);
	measure_report_value("put-p99", parameters,
			     (double) writer.latencies[writer.latency_count * 99 / 100] / 1e3, "us", 0,
			     seconds_per_case);
	free(writer.latencies);
}

static void bench_watch(struct vd_env *env)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct vd_store	      *store;

	options.history_bytes = 0;
	if (vd_store_open_mvcc(env, &options, &store, NULL) != VD_OK)
		exit(1);
	fill_small(env, store, measure_scaled(1000000), KEYS);
	bench_catch_up(store, 2, "alone");
	bench_put_beside(store, "a writer for itself", false);
	bench_put_beside(store, "beside a watch a million revisions behind", true);
	vd_store_close_wait(store);
}

/* ---- Durable ---- */

static void signal_event(void *arg)
{
	vdi_wait_signal(arg);
}

static void ignore_answer(void *arg, vd_status status, const struct vd_txn_result *result,
			  const struct vd_error *error)
{
	(void) result;
	measure_check(status, error, "put");
	__atomic_store_n((bool *) arg, true, __ATOMIC_RELEASE);
}

static void bench_put_to_event(struct vd_env *env, struct vd_store *store)
{
	struct vd_store_watch_request request = {
		.key = { "/", 1 }, .range_end = { "0", 1 }, .previous = true, .ready = signal_event
	};
	size_t		       count = measure_scaled(500);
	int64_t		      *latencies = malloc(count * sizeof *latencies);
	struct vd_store_watch *watch;
	struct vd_store_batch  batch;
	struct vdi_wait	       wait;
	uint64_t	       seed = 11;
	char		       key[64], parameters[64];
	struct measure	       begin = take_measure();

	vdi_wait_init(&wait, env);
	request.ready_arg = &wait;
	if (vd_store_watch_open(store, &request, &watch, NULL) != VD_OK ||
	    vd_store_watch_next(watch, 1, &batch, NULL) != VD_AGAIN)
		exit(1);
	for (size_t i = 0; i < count; i++) {
		struct vd_op	      op = { .kind = VD_OP_PUT,
					     .key = key_text(key, i),
					     .value = random_value(&seed) };
		struct vd_txn_request txn = { .success = &op, .success_count = 1 };
		bool		      is_answered = false;
		int64_t		      sent = clock_ns(CLOCK_MONOTONIC);

		measure_check(vd_store_txn(store, &txn, ignore_answer, &is_answered), NULL, "put");
		do {
			vdi_wait_wait(&wait);
			vdi_wait_fini(&wait);
			vdi_wait_init(&wait, env);
		} while (vd_store_watch_next(watch, 1, &batch, NULL) == VD_AGAIN);
		latencies[i] = clock_ns(CLOCK_MONOTONIC) - sent;
		while (vd_store_watch_next(watch, 1, &batch, NULL) != VD_AGAIN ||
		       !__atomic_load_n(&is_answered, __ATOMIC_ACQUIRE))
			measure_nap_ns(10000);
		measure_nap_ns(1000000);
	}
	vd_store_watch_close(watch);
	vdi_wait_fini(&wait);
	qsort(latencies, count, sizeof *latencies, compare_latencies);
	snprintf(parameters, sizeof parameters, "\"what\":\"put to event\",\"p99_us\":%.0f",
		 (double) latencies[count * 99 / 100] / 1e3);
	measure_report_value("durable-latency", parameters, (double) latencies[count / 2] / 1e3, "us",
			     (double) (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin.cpu) / 1e9,
			     (double) (clock_ns(CLOCK_MONOTONIC) - begin.wall) / 1e9);
	free(latencies);
}

static void bench_durable(struct vd_env *env, const char *directory)
{
	struct vd_store *store = open_store(env, directory);

	bench_writers(store, "durable", 1);
	bench_writers(store, "durable", 64);
	bench_writers(store, "durable", 256);
	bench_flight(env, store, "durable", 256);
	bench_put_to_event(env, store);
	vd_store_close_wait(store);
}

static void bench_open(struct vd_env *env, const char *directory)
{
	struct measure_rounds rounds = { .count = 0 };
	struct vd_store	     *store = open_store(env, directory);
	char		      parameters[64];

	fill_small(env, store, measure_scaled(1000000), 0);
	vd_store_close_wait(store);
	for (unsigned round = 0; round < VDI_MIN(measure_options.rounds, 3u); round++) {
		struct measure begin = take_measure();
		double	       wall;

		store = open_store(env, directory);
		wall = (double) (clock_ns(CLOCK_MONOTONIC) - begin.wall);
		measure_add(&rounds, wall / 1e9,
			    (double) (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - begin.cpu) / 1e9, wall / 1e9);
		vd_store_close_wait(store);
	}
	snprintf(parameters, sizeof parameters, "\"keys\":%zu", measure_scaled(1000000));
	measure_report("open", parameters, &rounds, "s");
}

int main(int argc, char **argv)
{
	struct vd_env *env;
	char	       directory[540];
	uint64_t       seed;

	measure_begin("mvcc", argc, argv);
	seed = measure_options.seed;
	seconds_per_case *= measure_options.scale;
	for (size_t i = 0; i < sizeof random_bytes; i++)
		random_bytes[i] = (char) random_next(&seed);
	measure_check(vd_env_new_threads(NULL, &env), NULL, "threads");
	if (measure_wanted("memory"))
		bench_memory(env);
	if (measure_wanted("catch-up"))
		bench_watch(env);
	if (measure_wanted("durable")) {
		snprintf(directory, sizeof directory, "%s/durable", measure_folder());
		bench_durable(env, directory);
	}
	if (measure_wanted("open")) {
		snprintf(directory, sizeof directory, "%s/open", measure_folder());
		bench_open(env, directory);
	}
	vd_env_free(env);
	return 0;
}
