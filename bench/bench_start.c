/* Time from the start of a server with a full data directory until it answers, and its memory then.
 *
 *   - etcd:KEYS:SIZE: `vedette etcd`; values of SIZE random bytes
 *   - serve:KEYS:SIZE: `vedette serve` with pods of SIZE bytes, until all kinds are ready
 *   - read:KEYS:SIZE: the same directory opened in this process: the store alone
 *
 * The directory is in the page cache. A case can be run alone by its name: `bench_start etcd:1000000:100`.
 * With VEDETTE_BENCH_DATA=FOLDER the directories are kept there and reused by the next run, so that a case
 * takes seconds. VEDETTE_BENCH_PERF=FILE runs the last server under `perf record`.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"
#include "pods.h"

static char	   program[512];
static const char *folder;

struct content {
	uint64_t count, seed;
	size_t	 size;
	bool	 is_pod;
	char	 key[POD_KEY_MAX], value[POD_SIZE_MAX + 8];
};

static struct vd_bytes value_of(char *text, uint64_t number, size_t size, bool is_pod, uint64_t *seed)
{
	struct pod pod = pod_number(number, size);

	if (is_pod)
		return pod_json(text, &pod, seed);
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = measure_random(seed);

		memcpy(text + i, &word, 8);
	}
	return (struct vd_bytes) { text, size };
}

/* Keys come in an order of their own, as they do in a cluster. */
static struct vd_op put_number(void *arg, uint64_t i)
{
	struct content *content = arg;
	uint64_t	number = i * 7919 % content->count;
	struct pod	pod = pod_number(number, content->size);

	return (struct vd_op) { .kind = VD_OP_PUT,
				.key = pod_key(content->key, &pod),
				.value = value_of(content->value, number, content->size, content->is_pod,
						  &content->seed) };
}

static void fill(const char *path, uint64_t count, size_t size, bool is_pod)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	struct content	       content = {
			.count = count, .seed = measure_options.seed, .size = size, .is_pod = is_pod
	};
	struct vd_error	 error;
	struct vd_store *store;
	struct vd_env	*env;

	options.data_dir = path;
	options.no_sync = true;
	measure_check(vd_env_new_threads(NULL, &env), NULL, "threads");
	measure_check(vd_store_open_mvcc(env, &options, &store, &error), &error, "store");
	measure_put(store, count, put_number, &content);
	vd_store_close_wait(store);
	/* The checkpoint is brought up to the end. */
	measure_check(vd_store_open_mvcc(env, &options, &store, &error), &error, "store");
	measure_nap_ns(3000000000);
	vd_store_close_wait(store);
	vd_env_free(env);
}

struct server {
	pid_t pid;
	int   output;
};

static void start(struct server *server, const char *const *arguments)
{
	char   text[4096] = "";
	size_t size = 0;

	server->pid = measure_spawn(arguments, &server->output);
	while (strstr(text, "vedette: ready") == NULL) {
		ssize_t got = size + 1 < sizeof text ?
				      read(server->output, text + size, sizeof text - 1 - size) :
				      0;

		if (got <= 0) {
			fprintf(stderr, "bench_start: %s does not start: %s\n", arguments[0], text);
			exit(1);
		}
		size += (size_t) got;
		text[size] = 0;
	}
}

static void stop(struct server *server)
{
	kill(server->pid, SIGTERM);
	waitpid(server->pid, NULL, 0);
	close(server->output);
}

/* Of a process, in MiB. */
static double status_mib(pid_t pid, const char *format)
{
	char  path[64], line[256];
	long  kib = 0;
	FILE *file;

	snprintf(path, sizeof path, "/proc/%d/status", (int) pid);
	file = fopen(path, "r");
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, format, &kib) == 1)
			break;
	if (file)
		fclose(file);
	return (double) kib / 1024;
}

static void data_directory(char *path, size_t path_size, uint64_t count, size_t size, bool is_pod)
{
	struct stat about;

	snprintf(path, path_size, "%s/%s-%llu-%zu", folder, is_pod ? "pods" : "bytes",
		 (unsigned long long) count, size);
	if (stat(path, &about) != 0 && count)
		fill(path, count, size, is_pod);
}

static void bench_server(const char *name, bool is_serve, uint64_t count, size_t size)
{
	struct measure_rounds rounds = { .count = 0 }, cpu_rounds = { .count = 0 };
	char		      path[700], parameters[300];
	const char	     *perf = getenv("VEDETTE_BENCH_PERF");
	double		      rss = 0, anon = 0, peak = 0;
	struct server	      server;

	data_directory(path, sizeof path, count, size, is_serve);
	for (unsigned round = 0; round < measure_options.rounds; round++) {
		const char *const traced[] = { "perf",
					       "record",
					       "-g",
					       "-o",
					       perf,
					       program,
					       is_serve ? "serve" : "etcd",
					       "--data-dir",
					       path,
					       "--listen",
					       "127.0.0.1:0",
					       NULL };
		bool		  is_traced = perf && round + 1 == measure_options.rounds;
		int64_t		  began = measure_wall_ns();
		double		  cpu, wall;

		start(&server, traced + (is_traced ? 0 : 5));
		wall = (double) (measure_wall_ns() - began);
		cpu = (double) measure_cpu_ns_of(server.pid);
		measure_add(&rounds, wall / 1e6, cpu / 1e9, wall / 1e9);
		measure_add(&cpu_rounds, cpu / 1e6, 0, 0);
		measure_nap_ns(300000000);
		if (!is_traced) {
			rss = status_mib(server.pid, "VmRSS: %ld");
			anon = status_mib(server.pid, "RssAnon: %ld");
			peak = status_mib(server.pid, "VmHWM: %ld");
		}
		stop(&server);
	}
	snprintf(parameters, sizeof parameters,
		 "\"keys\":%llu,\"bytes\":%zu,\"cpu_ms\":%.0f,\"rss_mib\":%.1f,\"anonymous_mib\":%.1f,\"peak_"
		 "mib\":%.1f",
		 (unsigned long long) count, size, measure_median(&cpu_rounds), rss, anon, peak);
	measure_report(name, parameters, &rounds, "ms");
}

static void bench_read(uint64_t count, size_t size)
{
	struct measure_rounds  rounds = { .count = 0 };
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;
	char		       path[700], parameters[300];
	struct vd_store	      *store;
	struct vd_env	      *env;
	struct vd_error	       error;
	double		       memory = 0;

	data_directory(path, sizeof path, count, size, false);
	options.data_dir = path;
	measure_check(vd_env_new_threads(NULL, &env), NULL, "threads");
	for (unsigned round = 0; round < measure_options.rounds; round++) {
		int64_t wall = measure_wall_ns(), cpu = measure_cpu_ns();

		measure_check(vd_store_open_mvcc(env, &options, &store, &error), &error, "store");
		wall = measure_wall_ns() - wall;
		measure_add(&rounds, (double) wall / 1e6, (double) (measure_cpu_ns() - cpu) / 1e9,
			    (double) wall / 1e9);
		memory = (double) measure_memory(0) / 1024 / 1024;
		vd_store_close_wait(store);
	}
	vd_env_free(env);
	snprintf(parameters, sizeof parameters, "\"keys\":%llu,\"bytes\":%zu,\"anonymous_mib\":%.1f",
		 (unsigned long long) count, size, memory);
	measure_report("read", parameters, &rounds, "ms");
}

int main(int argc, char **argv)
{
	static const struct {
		const char *kind;
		uint64_t    count;
		size_t	    size;
	} cases[] = {
		{ "etcd", 0, 0 },	   { "etcd", 100000, 1024 },  { "etcd", 1000000, 100 },
		{ "etcd", 1000000, 1024 }, { "serve", 100000, 1024 }, { "read", 100000, 1024 },
		{ "read", 1000000, 100 },  { "read", 1000000, 1024 },
	};
	const char *slash = strrchr(argv[0], '/');
	const char *kept = getenv("VEDETTE_BENCH_DATA");

	measure_begin("start", argc, argv);
	snprintf(program, sizeof program, "%.*s/../tools/vedette/vedette",
		 slash ? (int) (slash - argv[0]) : 1, slash ? argv[0] : ".");
	folder = kept ? kept : measure_folder();
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		uint64_t count = cases[i].count ? measure_scaled(cases[i].count) : 0;
		char	 name[64];

		snprintf(name, sizeof name, "%s:%llu:%zu", cases[i].kind, (unsigned long long) cases[i].count,
			 cases[i].size);
		if (!measure_wanted(name))
			continue;
		if (strcmp(cases[i].kind, "read") == 0)
			bench_read(count, cases[i].size);
		else
			bench_server(cases[i].kind, strcmp(cases[i].kind, "serve") == 0, count,
				     cases[i].size);
	}
	return 0;
}
