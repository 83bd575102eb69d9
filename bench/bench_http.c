/* Cost of `vedette serve` from outside: it runs as a process of its own, and only its CPU time and memory are
 * counted.
 *
 *   - http-delivery: W raw connections watch the same resource; events are written one by one, or 8 at a time
 *     (by 8 PUTs at once). Server CPU per delivered event, minus the cost of the same PUTs without watchers
 *     (with_put_us: without the subtraction)
 *   - http-idle: private memory of the server per idle watch, in user space
 *   - http-list: 100,000 pods of 1 KB
 *   - http-lists: 64 such lists at once: maximum private memory above the idle server
 *   - http-stalled: PUT sent -> event read by all of 16 healthy watches: 99th percentile with 1,000 further
 *     watches that read nothing, divided by the one without them; median of the ratios of exactly 10 pairs of
 *     rounds, run one after the other on the same server, alternately in either order. cpu_ratio: the same
 *     ratio for the server's CPU time of a PUT
 *   - http-latency: PUT sent -> event read, durable store, one idle watcher, 1 ms pause
 *   - http-get: one object by name over one connection: from the cache (resourceVersion=0) and most recent
 *   - http-create: 64 connections create pods in a durable store, all at once: server CPU per create
 *   - http-one-of: a PUT that matches one of 1,000 watches, by label; server CPU in total
 *
 * BENCH_SERVER in the environment is another server: a program with the arguments of `vedette serve`
 * (bench/peers/cacher). BENCH_ETCD: the durable store of that server; without it http-latency and http-create
 * are skipped.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "http_client.h"
#include "pods.h"

#define OBJECTS 100000
#define WRITERS 8
#define PAGE 262144
#define WATCH_EVENTS                                                                                         \
	"/api/v1/namespaces/ns-00000/"                                                                       \
	"pods?watch=1&resourceVersion=0&sendInitialEvents=false&resourceVersionMatch=NotOlderThan"

static char program[512];
static bool is_peer;

static void start(struct http_server *server, const char *data_dir)
{
	const char *const memory[] = { "--memory", "--no-garbage-collector", NULL };
	const char *const durable[] = { "--data-dir", data_dir, "--no-garbage-collector", NULL };

	http_server_start(server, program, data_dir ? durable : memory);
}

static bool has_durable(void)
{
	return !is_peer || getenv("BENCH_ETCD");
}

static void start_durable(struct http_server *server, const char *name)
{
	static char	  prefix[64], path[600];
	const char *const etcd[] = { "--etcd", getenv("BENCH_ETCD"), "--etcd-prefix", prefix, NULL };

	if (!is_peer) {
		snprintf(path, sizeof path, "%s/%s", measure_folder(), name);
		start(server, path);
		return;
	}
	snprintf(prefix, sizeof prefix, "/%s-%d", name, (int) getpid());
	http_server_start(server, program, etcd);
}

static void put_path(char *path, size_t size, const struct pod *pod)
{
	char ns[POD_KEY_MAX], name[POD_KEY_MAX];

	snprintf(path, size, "/api/v1/namespaces/%.*s/pods/%.*s", (int) pod_namespace(ns, pod).size, ns,
		 (int) pod_name(name, pod).size, name);
}

static void create(const struct http_server *server, int connection, uint64_t count, uint64_t *seed)
{
	char		path[256], value[POD_SIZE_MAX], text[256];
	struct pod	pod = pod_number(0, 1024);
	struct vd_bytes body;

	(void) server;
	body.data = text;
	body.size = (size_t) snprintf(
		text, sizeof text,
		"{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"ns-00000\"}}");
	http_send(connection, "POST", "/api/v1/namespaces", body);
	http_receive(connection);
	for (uint64_t i = 0; i < count; i++) {
		pod = pod_number(i, 1024);
		pod.namespace_number = 0;
		pod.without_uid = true;
		snprintf(path, sizeof path, "/api/v1/namespaces/ns-00000/pods");
		http_send(connection, "POST", path, pod_json(value, &pod, seed));
		http_receive(connection);
	}
}

/* ---- Delivery ---- */

struct writers {
	int		connections[WRITERS];
	char		paths[WRITERS][256];
	char		values[WRITERS][2][POD_SIZE_MAX];
	struct vd_bytes bodies[WRITERS][2];
	unsigned	turn;
};

static void writers_open(struct writers *writers, const struct http_server *server, uint64_t *seed,
			 size_t size)
{
	memset(writers, 0, sizeof *writers);
	for (unsigned i = 0; i < WRITERS; i++) {
		struct pod pod = pod_number(i, size);

		pod.namespace_number = 0;
		pod.without_uid = true;
		writers->connections[i] = http_connect(server);
		put_path(writers->paths[i], sizeof writers->paths[i], &pod);
		for (unsigned j = 0; j < 2; j++)
			writers->bodies[i][j] = pod_json(writers->values[i][j], &pod, seed);
	}
	create(server, writers->connections[0], WRITERS, seed);
}

/* Equal bytes write nothing, so two bodies take turns. */
static void put_together(struct writers *writers, unsigned together)
{
	for (unsigned i = 0; i < together; i++)
		http_send(writers->connections[i], "PUT", writers->paths[i],
			  writers->bodies[i][writers->turn & 1]);
	for (unsigned i = 0; i < together; i++)
		http_receive(writers->connections[i]);
	writers->turn++;
}

/* CPU of the server in ns for all of it. */
static double write_events(const struct http_server *server, struct writers *writers,
			   struct http_watches *watches, size_t events, unsigned together)
{
	int64_t cpu = measure_cpu_ns_of(server->pid);

	for (size_t i = 0; i < events; i += together) {
		put_together(writers, together);
		if (watches)
			http_watches_read(watches, watches->events + (uint64_t) together * watches->count -
							   watches->events % watches->count);
	}
	return (double) (measure_cpu_ns_of(server->pid) - cpu);
}

static void bench_delivery(const char *name, size_t watchers, unsigned together, size_t size)
{
	struct measure_rounds rounds = { .count = 0 }, with_put = { .count = 0 };
	static struct writers writers;
	struct http_watches   watches;
	struct http_server    server;
	uint64_t	      seed = measure_options.seed;
	size_t		      events = measure_scaled(watchers >= 10000 ? 64 : watchers >= 1000 ? 320 : 2048);
	char		      parameters[160];

	start(&server, NULL);
	writers_open(&writers, &server, &seed, size);
	(void) write_events(&server, &writers, NULL, 2048, together);
	for (unsigned round = 0; round < measure_options.rounds; round++) {
		double	idle = write_events(&server, &writers, NULL, 2048, together) / 2048;
		int64_t wall;
		double	cpu;

		http_watches_open(&watches, &server, WATCH_EVENTS, watchers);
		measure_nap_ns(100000000);
		(void) write_events(&server, &writers, &watches, 2 * (size_t) together, together);
		wall = measure_wall_ns();
		cpu = write_events(&server, &writers, &watches, events, together);
		measure_add(&rounds, (cpu / (double) events - idle) / 1e3 / (double) watchers, cpu / 1e9,
			    (double) (measure_wall_ns() - wall) / 1e9);
		measure_add(&with_put, cpu / 1e3 / (double) events / (double) watchers, 0, 0);
		http_watches_close(&watches);
		measure_nap_ns(200000000);
	}
	snprintf(parameters, sizeof parameters,
		 "\"connections\":%zu,\"together\":%u,\"bytes\":%zu,\"with_put_us\":%.3f", watchers, together,
		 size, measure_median(&with_put));
	measure_report(name, parameters, &rounds, "us");
	for (unsigned i = 0; i < WRITERS; i++)
		close(writers.connections[i]);
	http_server_stop(&server);
}

/* ---- Idle watches ---- */

static void bench_idle(size_t count, bool bookmarks)
{
	char		    path[256], parameters[96];
	struct http_watches first, watches;
	struct http_server  server;
	int64_t		    before;

	snprintf(path, sizeof path, "%s%s", WATCH_EVENTS, bookmarks ? "&allowWatchBookmarks=true" : "");
	start(&server, NULL);
	http_watches_open(&first, &server, path, 10); /* one-time costs are not counted */
	measure_nap_ns(200000000);
	before = measure_memory(server.pid);
	http_watches_open(&watches, &server, path, count);
	measure_nap_ns(300000000);
	snprintf(parameters, sizeof parameters,
		 "\"connections\":%zu,\"bookmarks\":%s,\"server_bytes_before\":%lld", count,
		 bookmarks ? "true" : "false", (long long) before);
	measure_report_value("http-idle", parameters,
			     (double) (measure_memory(server.pid) - before) / (double) count, "bytes", 0, 0);
	http_watches_close(&watches);
	http_watches_close(&first);
	http_server_stop(&server);
}

/* ---- Lists ---- */

struct reader {
	int	 connection;
	bool	 is_over;
	char	 tail[5]; /* the last five bytes read */
	uint64_t bytes;
};

/* A body without a known length ends with the last chunk, "0\r\n\r\n". */
static void read_some(struct reader *reader)
{
	static char text[PAGE];
	ssize_t	    got = read(reader->connection, text, sizeof text);

	if (got <= 0) {
		fprintf(stderr, "bench_http: a list was cut\n");
		exit(1);
	}
	reader->bytes += (uint64_t) got;
	if (got >= 5) {
		memcpy(reader->tail, text + got - 5, 5);
	} else {
		memmove(reader->tail, reader->tail + got, 5 - (size_t) got);
		memcpy(reader->tail + 5 - got, text, (size_t) got);
	}
	reader->is_over = memcmp(reader->tail, "0\r\n\r\n", 5) == 0;
}

/* Returns the highest private memory of the server meanwhile. */
static int64_t list_at_once(const struct http_server *server, const char *path, unsigned count,
			    uint64_t *ret_bytes)
{
	struct reader *readers = calloc(count, sizeof *readers);
	int	       epoll = epoll_create1(EPOLL_CLOEXEC);
	unsigned       open = count;
	int64_t	       peak = 0, looked = 0;

	*ret_bytes = 0;
	for (unsigned i = 0; i < count; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u32 = i };

		readers[i].connection = http_connect(server);
		http_send(readers[i].connection, "GET", path, VD_BYTES_NONE);
		epoll_ctl(epoll, EPOLL_CTL_ADD, readers[i].connection, &event);
	}
	while (open) {
		struct epoll_event events[64];
		int		   ready = epoll_wait(epoll, events, 64, 1000);

		for (int i = 0; i < ready; i++) {
			struct reader *reader = &readers[events[i].data.u32];

			read_some(reader);
			if (reader->is_over) {
				*ret_bytes += reader->bytes;
				close(reader->connection);
				open--;
			}
		}
		if (measure_wall_ns() - looked > 2000000) {
			int64_t now = measure_memory(server->pid);

			peak = now > peak ? now : peak;
			looked = measure_wall_ns();
		}
	}
	close(epoll);
	free(readers);
	return peak;
}

struct content {
	uint64_t seed;
	char	 key[POD_KEY_MAX], value[POD_SIZE_MAX];
};

static struct vd_op put_number(void *arg, uint64_t i)
{
	struct content *content = arg;
	struct pod	pod = pod_number(i, 1024);

	return (struct vd_op) { .kind = VD_OP_PUT,
				.key = pod_key(content->key, &pod),
				.value = pod_json(content->value, &pod, &content->seed) };
}

static void make_store(const char *data_dir, uint64_t count)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct content	       content = { .seed = measure_options.seed };
	struct vd_error	       error;
	struct vd_store	      *store;
	struct vd_env	      *env;

	options.data_dir = data_dir;
	options.no_sync = true;
	measure_check(vd_env_new_threads(NULL, &env), NULL, "threads");
	measure_check(vd_store_open_mvcc(env, &options, &store, &error), &error, "store");
	measure_put(store, count, put_number, &content);
	vd_store_close_wait(store);
	vd_env_free(env);
}

static void bench_one_list(const struct http_server *server, const char *what, const char *path,
			   unsigned times)
{
	struct measure_rounds rounds = { .count = 0 };
	char		      parameters[256];
	uint64_t	      bytes = 0;

	/* Repeated lists are measured: a label has its index from the second list on. */
	(void) list_at_once(server, path, 1, &bytes);
	(void) list_at_once(server, path, 1, &bytes);
	for (unsigned round = 0; round < measure_options.rounds; round++) {
		int64_t cpu = measure_cpu_ns_of(server->pid), wall = measure_wall_ns();

		for (unsigned i = 0; i < times; i++)
			(void) list_at_once(server, path, 1, &bytes);
		cpu = measure_cpu_ns_of(server->pid) - cpu;
		wall = measure_wall_ns() - wall;
		measure_add(&rounds, (double) cpu / 1e6 / times, (double) cpu / 1e9,
			    (double) wall / 1e9 / times);
	}
	snprintf(parameters, sizeof parameters,
		 "\"what\":\"%s\",\"objects\":%zu,\"bytes\":%llu,\"wall_ms\":%.2f", what,
		 measure_scaled(OBJECTS), (unsigned long long) bytes, rounds.wall_s * 1e3 / rounds.count);
	measure_report("http-list", parameters, &rounds, "ms");
}

static void bench_pages(const struct http_server *server)
{
	struct measure_rounds rounds = { .count = 0 };
	char		      parameters[128];
	unsigned	      pages = 0;

	for (unsigned round = 0; round < measure_options.rounds; round++) {
		int64_t cpu = measure_cpu_ns_of(server->pid), wall = measure_wall_ns();

		pages = http_read_pages(server, "/api/v1/pods?limit=500");
		cpu = measure_cpu_ns_of(server->pid) - cpu;
		wall = measure_wall_ns() - wall;
		measure_add(&rounds, (double) cpu / 1e6, (double) cpu / 1e9, (double) wall / 1e9);
	}
	snprintf(parameters, sizeof parameters,
		 "\"what\":\"pages\",\"objects\":%zu,\"pages\":%u,\"wall_ms\":%.1f", measure_scaled(OBJECTS),
		 pages, rounds.wall_s * 1e3 / rounds.count);
	measure_report("http-list", parameters, &rounds, "ms");
}

static void bench_gets(const struct http_server *server, const char *what, const char *query)
{
	struct measure_rounds rounds = { .count = 0 };
	char		      parameters[64], path[256];
	int		      connection = http_connect(server);
	size_t		      count = measure_scaled(5000);

	for (unsigned round = 0; round < measure_options.rounds; round++) {
		int64_t cpu = measure_cpu_ns_of(server->pid), wall = measure_wall_ns();

		for (size_t i = 0; i < count; i++) {
			size_t number = i * 7919 % measure_scaled(OBJECTS);

			snprintf(path, sizeof path, "/api/v1/namespaces/ns-%05zu/pods/web-7d4b9c6f5-%07zu%s",
				 number / 100, number, query);
			http_send(connection, "GET", path, VD_BYTES_NONE);
			http_receive(connection);
		}
		cpu = measure_cpu_ns_of(server->pid) - cpu;
		measure_add(&rounds, (double) cpu / 1e3 / (double) count, (double) cpu / 1e9,
			    (double) (measure_wall_ns() - wall) / 1e9);
	}
	snprintf(parameters, sizeof parameters, "\"what\":\"%s\"", what);
	measure_report("http-get", parameters, &rounds, "us");
	close(connection);
}

static void bench_lists(void)
{
	char		   path[600], parameters[256], count[32];
	const char *const  ready_made[] = { "--pods", count, NULL };
	struct http_server server;
	uint64_t	   bytes;
	int64_t		   cpu, wall, started, rest, peak;
	bool		   lists = measure_wanted("http-list"), gets = measure_wanted("http-get");

	if (!lists && !gets && !measure_wanted("http-lists") && !measure_wanted("http-start"))
		return;
	snprintf(path, sizeof path, "%s/lists", measure_folder());
	snprintf(count, sizeof count, "%zu", measure_scaled(OBJECTS));
	if (!is_peer)
		make_store(path, measure_scaled(OBJECTS));
	started = measure_wall_ns();
	if (is_peer)
		http_server_start(&server, program, ready_made);
	else
		start(&server, path);
	started = measure_wall_ns() - started;
	if (!is_peer && (lists || measure_wanted("http-start")))
		measure_report_value("http-start", "\"objects\":100000", (double) started / 1e6, "ms",
				     (double) measure_cpu_ns_of(server.pid) / 1e9, (double) started / 1e9);
	(void) list_at_once(&server, "/api/v1/pods?resourceVersion=0", 1, &bytes);
	if (lists) {
		bench_one_list(&server, "all", "/api/v1/pods?resourceVersion=0", 1);
		bench_one_list(&server, "label",
			       "/api/v1/pods?resourceVersion=0&labelSelector=app%3Dapp-00042", 10);
		bench_one_list(&server, "namespace", "/api/v1/namespaces/ns-00042/pods?resourceVersion=0",
			       100);
		if (!is_peer)
			bench_pages(&server);
	}
	if (gets) {
		bench_gets(&server, "cache", "?resourceVersion=0");
		if (!is_peer)
			bench_gets(&server, "most recent", "");
	}
	if (lists || measure_wanted("http-lists")) {
		measure_nap_ns(500000000);
		rest = measure_memory(server.pid);
		cpu = measure_cpu_ns_of(server.pid);
		wall = measure_wall_ns();
		/* The peer would need more memory than there is for all of them. */
		peak = list_at_once(&server, "/api/v1/pods?resourceVersion=0", is_peer ? 8 : 64, &bytes);
		cpu = measure_cpu_ns_of(server.pid) - cpu;
		wall = measure_wall_ns() - wall;
		snprintf(parameters, sizeof parameters, "\"lists\":%d,\"objects\":%zu,\"resting_mib\":%.1f",
			 is_peer ? 8 : 64, measure_scaled(OBJECTS), (double) rest / 1048576);
		measure_report_value("http-lists", parameters, (double) (peak - rest) / 1048576, "MiB",
				     (double) cpu / 1e9, (double) wall / 1e9);
	}
	http_server_stop(&server);
}

/* ---- Creates ---- */

#define CREATORS 64

static void bench_creates(void)
{
	struct measure_rounds rounds = { .count = 0 };
	static char	      values[CREATORS][POD_SIZE_MAX];
	struct vd_bytes	      bodies[CREATORS];
	int		      connections[CREATORS];
	struct http_server    server;
	uint64_t	      seed = measure_options.seed, number = 1000;
	size_t		      batches = measure_scaled(64);

	start_durable(&server, "creates");
	for (unsigned i = 0; i < CREATORS; i++)
		connections[i] = http_connect(&server);
	create(&server, connections[0], 1, &seed);
	for (unsigned round = 0; round < measure_options.rounds; round++) {
		int64_t cpu = measure_cpu_ns_of(server.pid), wall = measure_wall_ns();

		for (size_t batch = 0; batch < batches; batch++) {
			for (unsigned i = 0; i < CREATORS; i++) {
				struct pod pod = pod_number(number++, 1024);

				pod.namespace_number = 0;
				pod.without_uid = true;
				bodies[i] = pod_json(values[i], &pod, &seed);
			}
			for (unsigned i = 0; i < CREATORS; i++)
				http_send(connections[i], "POST", "/api/v1/namespaces/ns-00000/pods",
					  bodies[i]);
			for (unsigned i = 0; i < CREATORS; i++)
				http_receive(connections[i]);
		}
		cpu = measure_cpu_ns_of(server.pid) - cpu;
		measure_add(&rounds, (double) cpu / 1e3 / (double) (batches * CREATORS), (double) cpu / 1e9,
			    (double) (measure_wall_ns() - wall) / 1e9);
	}
	measure_report("http-create", "\"connections\":64", &rounds, "us");
	for (unsigned i = 0; i < CREATORS; i++)
		close(connections[i]);
	http_server_stop(&server);
}

/* ---- One of many ---- */

static void bench_one_of(void)
{
	struct measure_rounds rounds = { .count = 0 };
	static struct writers writers;
	struct http_watches   watches;
	struct http_server    server;
	uint64_t	      seed = measure_options.seed;
	size_t		      count = measure_scaled(1000), events = measure_scaled(400);

	start(&server, NULL);
	writers_open(&writers, &server, &seed, 1024);
	http_watches_open_each(&watches, &server, WATCH_EVENTS "&labelSelector=app%%3Dapp-%05zu", count);
	measure_nap_ns(100000000);
	for (unsigned round = 0; round < measure_options.rounds; round++) {
		int64_t wall = measure_wall_ns(), cpu = measure_cpu_ns_of(server.pid);

		for (size_t i = 0; i < events; i++) {
			put_together(&writers, 1);
			http_watches_read(&watches, watches.events + 1);
		}
		cpu = measure_cpu_ns_of(server.pid) - cpu;
		measure_add(&rounds, (double) cpu / 1e3 / (double) events, (double) cpu / 1e9,
			    (double) (measure_wall_ns() - wall) / 1e9);
	}
	measure_report("http-one-of", "\"connections\":1000", &rounds, "us");
	http_watches_close(&watches);
	http_server_stop(&server);
}

/* ---- Stalled watches ---- */

#define HEALTHY 16
#define STALLED 1000
#define STALLED_ROUNDS 10
#define FILL_EVENTS 1000 /* of 1 KB: more than their sockets take */

struct stalled_round {
	double p99_us;
	double cpu_us; /* of the server, for one PUT */
};

static struct stalled_round put_and_read(const struct http_server *server, struct writers *writers,
					 struct http_watches *healthy, size_t count)
{
	int64_t *latencies = calloc(count, sizeof *latencies), cpu = measure_cpu_ns_of(server->pid);
	struct stalled_round round;

	for (size_t i = 0; i < count; i++) {
		int64_t begin = measure_wall_ns();

		http_send(writers->connections[0], "PUT", writers->paths[0],
			  writers->bodies[0][writers->turn++ & 1]);
		http_watches_read(healthy, healthy->events + healthy->count);
		latencies[i] = measure_wall_ns() - begin;
		http_receive(writers->connections[0]);
	}
	round.cpu_us = (double) (measure_cpu_ns_of(server->pid) - cpu) / 1e3 / (double) count;
	qsort(latencies, count, sizeof *latencies, measure_compare);
	round.p99_us = (double) latencies[count * 99 / 100] / 1e3;
	free(latencies);
	return round;
}

static struct stalled_round round_beside(const struct http_server *server, struct writers *writers,
					 struct http_watches *healthy, size_t count, size_t stalled_count)
{
	struct stalled_round round;
	struct http_watches  stalled;

	http_watches_open(&stalled, server, WATCH_EVENTS, stalled_count);
	(void) put_and_read(server, writers, healthy, FILL_EVENTS);
	measure_nap_ns(200000000);
	(void) put_and_read(server, writers, healthy, count / 16);
	round = put_and_read(server, writers, healthy, count);
	http_watches_close(&stalled);
	return round;
}

static struct stalled_round round_alone(const struct http_server *server, struct writers *writers,
					struct http_watches *healthy, size_t count)
{
	/* the same number of events as in the other run */
	(void) put_and_read(server, writers, healthy, FILL_EVENTS);
	measure_nap_ns(200000000);
	(void) put_and_read(server, writers, healthy, count / 16);
	return put_and_read(server, writers, healthy, count);
}

static void bench_stalled(void)
{
	struct measure_rounds ratios = { .count = 0 }, without = { .count = 0 }, with = { .count = 0 },
			      cpu = { .count = 0 };
	static struct writers writers;
	struct http_watches   healthy;
	struct http_server    server;
	uint64_t	      seed = measure_options.seed;
	size_t	 count = measure_scaled(is_peer ? 1000 : 4000), stalled_count = measure_scaled(STALLED);
	unsigned pair_count =
		measure_options.rounds == 1 ? 2 : STALLED_ROUNDS; /* one round is one of several turns */
	char parameters[640], pairs[400] = "";

	start(&server, NULL);
	writers_open(&writers, &server, &seed, 1024);
	http_watches_open(&healthy, &server, WATCH_EVENTS, HEALTHY);
	for (unsigned round = 0; round < pair_count; round++) {
		struct stalled_round alone, beside;

		if (round % 2 == 0)
			alone = round_alone(&server, &writers, &healthy, count);
		beside = round_beside(&server, &writers, &healthy, count, stalled_count);
		if (round % 2 == 1)
			alone = round_alone(&server, &writers, &healthy, count);
		measure_add(&ratios, beside.p99_us / alone.p99_us, 0, 0);
		measure_add(&without, alone.p99_us, 0, 0);
		measure_add(&with, beside.p99_us, 0, 0);
		measure_add(&cpu, beside.cpu_us / alone.cpu_us, 0, 0);
		snprintf(pairs + strlen(pairs), sizeof pairs - strlen(pairs), "%s[%.0f,%.0f]",
			 round ? "," : "", alone.p99_us, beside.p99_us);
	}
	snprintf(parameters, sizeof parameters,
		 "\"healthy\":%d,\"stalled\":%zu,\"pairs\":%u,\"p99_us_without\":%.0f,\"p99_us_with\":%.0f,"
		 "\"cpu_ratio\":%.3f,\"p99_us_pairs\":[%s]",
		 HEALTHY, stalled_count, pair_count, measure_median(&without), measure_median(&with),
		 measure_median(&cpu), pairs);
	measure_report("http-stalled", parameters, &ratios, "x");
	http_watches_close(&healthy);
	http_server_stop(&server);
}

/* ---- Latency ---- */

static void bench_latency(void)
{
	size_t		      count = measure_scaled(1000);
	int64_t		     *latencies = calloc(count, sizeof *latencies);
	static struct writers writers;
	struct http_watches   watches;
	struct http_server    server;
	uint64_t	      seed = measure_options.seed;
	char		      parameters[128];
	int64_t		      cpu, wall;

	start_durable(&server, "latency");
	writers_open(&writers, &server, &seed, 1024);
	http_watches_open(&watches, &server, WATCH_EVENTS, 1);
	measure_nap_ns(100000000);
	cpu = measure_cpu_ns_of(server.pid);
	wall = measure_wall_ns();
	for (size_t i = 0; i < count; i++) {
		int64_t begin = measure_wall_ns();

		http_send(writers.connections[0], "PUT", writers.paths[0], writers.bodies[0][i & 1]);
		http_watches_read(&watches, watches.events + 1);
		latencies[i] = measure_wall_ns() - begin;
		http_receive(writers.connections[0]);
		measure_nap_ns(1000000);
	}
	cpu = measure_cpu_ns_of(server.pid) - cpu;
	wall = measure_wall_ns() - wall;
	qsort(latencies, count, sizeof *latencies, measure_compare);
	snprintf(parameters, sizeof parameters, "\"puts\":%zu,\"p99_us\":%.0f,\"p999_us\":%.0f", count,
		 (double) latencies[count * 99 / 100] / 1e3, (double) latencies[count * 999 / 1000] / 1e3);
	measure_report_value("http-latency", parameters, (double) latencies[count / 2] / 1e3, "us",
			     (double) cpu / 1e9, (double) wall / 1e9);
	http_watches_close(&watches);
	http_server_stop(&server);
	free(latencies);
}

int main(int argc, char **argv)
{
	static const size_t widths[] = { 1, 10, 100, 1000, 10000 },
			    sizes[] = { 1024, 2048, 4096, 8192, 16384 };
	const char *slash = strrchr(argv[0], '/');

	measure_begin("http", argc, argv);
	is_peer = getenv("BENCH_SERVER") != NULL;
	if (is_peer)
		snprintf(program, sizeof program, "%s", getenv("BENCH_SERVER"));
	else
		snprintf(program, sizeof program, "%.*s/../tools/vedette/vedette",
			 slash ? (int) (slash - argv[0]) : 1, slash ? argv[0] : ".");
	for (size_t i = 0; measure_wanted("http-delivery") && i < sizeof widths / sizeof *widths; i++) {
		bench_delivery("http-delivery", widths[i], 1, 1024);
		bench_delivery("http-delivery", widths[i], 8, 1024);
	}
	for (size_t i = 0; measure_wanted("http-size") && i < sizeof sizes / sizeof *sizes; i++)
		bench_delivery("http-size", 1000, 1, sizes[i]);
	if (measure_wanted("http-idle")) {
		bench_idle(1000, false);
		bench_idle(1000, true);
		bench_idle(measure_scaled(10000), false);
	}
	bench_lists();
	if (measure_wanted("http-stalled"))
		bench_stalled();
	if (measure_wanted("http-latency") && has_durable())
		bench_latency();
	if (measure_wanted("http-create") && has_durable())
		bench_creates();
	if (measure_wanted("http-one-of"))
		bench_one_of();
	return 0;
}
