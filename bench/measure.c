/* Thread times are from /proc/self/task/N/schedstat, which counts in nanoseconds. */
#include "measure.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct measure_options measure_options = { 5, 1, 1.0 };

static const char *bench_name;
static char	 **wanted;
static int	   wanted_count;
static char	   machine[192];

static void describe_machine(void)
{
	FILE *file = fopen("/proc/cpuinfo", "r");
	char  line[256], model[128] = "unknown processor";

	while (file && fgets(line, sizeof line, file))
		if (strncmp(line, "model name", 10) == 0 && strchr(line, ':')) {
			snprintf(model, sizeof model, "%.120s", strchr(line, ':') + 2);
			model[strcspn(model, "\n\"\\")] = 0;
			break;
		}
	if (file)
		fclose(file);
	snprintf(
		machine, sizeof machine, "%s, %ld processors, %ld GiB", model, sysconf(_SC_NPROCESSORS_ONLN),
		(long) ((double) sysconf(_SC_PHYS_PAGES) * (double) sysconf(_SC_PAGESIZE) / (1 << 30) + 0.5));
}

void measure_begin(const char *name, int argc, char **argv)
{
	int at = 1;

	bench_name = name;
	for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2)
		if (strcmp(argv[at], "--rounds") == 0)
			measure_options.rounds = (unsigned) atoi(argv[at + 1]);
		else if (strcmp(argv[at], "--seed") == 0)
			measure_options.seed = strtoull(argv[at + 1], NULL, 10);
		else if (strcmp(argv[at], "--scale") == 0)
			measure_options.scale = atof(argv[at + 1]);
		else
			break;
	if ((at < argc && argv[at][0] == '-') || measure_options.rounds == 0 ||
	    measure_options.rounds > MEASURE_ROUNDS_MAX) {
		fprintf(stderr, "usage: bench_%s [--rounds N] [--seed N] [--scale F] [CASE...]\n", name);
		exit(2);
	}
	wanted = argv + at;
	wanted_count = argc - at;
	describe_machine();
}

bool measure_wanted(const char *case_name)
{
	for (int i = 0; i < wanted_count; i++)
		if (strncmp(case_name, wanted[i], strlen(wanted[i])) == 0)
			return true;
	return wanted_count == 0;
}

size_t measure_scaled(size_t count)
{
	double scaled = (double) count * measure_options.scale;

	return scaled < 1 ? 1 : (size_t) scaled;
}

void measure_check(vd_status status, const struct vd_error *error, const char *what)
{
	if (status == VD_OK)
		return;
	fprintf(stderr, "bench_%s: %s: %s\n", bench_name, what,
		error && error->message[0] ? error->message : vd_status_name(status));
	exit(1);
}

static _Noreturn void fail(const char *what)
{
	fprintf(stderr, "bench_%s: %s: %s\n", bench_name, what, strerror(errno));
	exit(1);
}

/* ---- State that outlives a call ---- */

static char  run_folder[512];
static pid_t remover;
static int   alive; /* the pipe that breaks when this process ends */

static void wait_for_removal(void)
{
	int status = 0;

	close(alive);
	if (waitpid(remover, &status, 0) != remover || status != 0)
		fprintf(stderr, "bench_%s: %s is left behind\n", bench_name, run_folder);
}

const char *measure_folder(void)
{
	/* A process of its own, because this one may be killed; its server may then still write for a
	 * moment. */
	static const char	   script[] = "cat; rm -rf -- \"$0\" || { sleep 5; exec rm -rf -- \"$0\"; }";
	static const char *const   remove[] = { "sh", "-c", script, run_folder, NULL };
	const char		  *temporary = getenv("TMPDIR");
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t	   attributes;
	int			   pipes[2];

	if (run_folder[0])
		return run_folder;
	snprintf(run_folder, sizeof run_folder, "%s/vedette-bench-%s-XXXXXX", temporary ? temporary : "/tmp",
		 bench_name);
	if (mkdtemp(run_folder) == NULL || pipe2(pipes, O_CLOEXEC) != 0)
		fail(run_folder);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, pipes[0], 0);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
	errno = posix_spawnp(&remover, "sh", &actions, &attributes, (char *const *) (uintptr_t) remove,
			     environ);
	if (errno)
		fail("sh");
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	close(pipes[0]);
	alive = pipes[1];
	(void) atexit(wait_for_removal);
	return run_folder;
}

static void answered(void *arg, vd_status status, const struct vd_txn_result *result,
		     const struct vd_error *error)
{
	(void) result;
	measure_check(status, error, "put");
	__atomic_fetch_add((uint64_t *) arg, 1, __ATOMIC_RELEASE);
}

void measure_put(struct vd_store *store, uint64_t count, struct vd_op (*op_of)(void *arg, uint64_t i),
		 void *arg)
{
	uint64_t done = 0;

	for (uint64_t i = 0; i < count; i++) {
		struct vd_op	      op = op_of(arg, i);
		struct vd_txn_request request = { .success = &op, .success_count = 1 };

		measure_check(vd_store_txn(store, &request, answered, &done), NULL, "put");
		while (i % 1024 == 1023 && __atomic_load_n(&done, __ATOMIC_ACQUIRE) <= i)
			measure_nap_ns(100000);
	}
	while (__atomic_load_n(&done, __ATOMIC_ACQUIRE) < count)
		measure_nap_ns(100000);
}

pid_t measure_spawn(const char *const *arguments, int *ret_output)
{
	int   pipes[2];
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) != 0 || (pid = fork()) < 0)
		fail(arguments[0]);
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		dup2(pipes[1], 2);
		execvp(arguments[0], (char *const *) (uintptr_t) arguments);
		_exit(127);
	}
	close(pipes[1]);
	*ret_output = pipes[0];
	return pid;
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t measure_wall_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

int64_t measure_cpu_ns(void)
{
	return clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

int64_t measure_cpu_ns_of(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) == 0 ? clock_ns(clock) : 0;
}

void measure_nap_ns(int64_t ns)
{
	struct timespec pause = { ns / 1000000000, ns % 1000000000 };

	nanosleep(&pause, NULL);
}

int64_t measure_memory(pid_t pid)
{
	char  path[64], line[256];
	long  kib = 0;
	FILE *file;

	if (pid)
		snprintf(path, sizeof path, "/proc/%d/status", (int) pid);
	else
		snprintf(path, sizeof path, "/proc/self/status");
	file = fopen(path, "r");
	while (file && fgets(line, sizeof line, file))
		if (sscanf(line, "RssAnon: %ld kB", &kib) == 1)
			break;
	if (file)
		fclose(file);
	return (int64_t) kib * 1024;
}

uint64_t measure_random(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));

	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

void measure_threads_all(struct measure_threads *ret_threads)
{
	DIR	      *folder = opendir("/proc/self/task");
	struct dirent *entry;

	ret_threads->count = 0;
	while (folder && (entry = readdir(folder)))
		if (entry->d_name[0] != '.' && ret_threads->count < MEASURE_THREADS_MAX)
			ret_threads->ids[ret_threads->count++] = (pid_t) atoi(entry->d_name);
	if (folder)
		closedir(folder);
}

static bool contains(const struct measure_threads *threads, pid_t id)
{
	for (size_t i = 0; i < threads->count; i++)
		if (threads->ids[i] == id)
			return true;
	return false;
}

void measure_threads_since(const struct measure_threads *before, struct measure_threads *ret_threads)
{
	struct measure_threads now;

	measure_threads_all(&now);
	ret_threads->count = 0;
	for (size_t i = 0; i < now.count; i++)
		if (!contains(before, now.ids[i]))
			ret_threads->ids[ret_threads->count++] = now.ids[i];
}

int64_t measure_threads_cpu_ns(const struct measure_threads *threads)
{
	int64_t sum = 0;

	for (size_t i = 0; i < threads->count; i++) {
		char	  path[64];
		FILE	 *file;
		long long ran = 0;

		snprintf(path, sizeof path, "/proc/self/task/%d/schedstat", (int) threads->ids[i]);
		file = fopen(path, "r");
		if (file && fscanf(file, "%lld", &ran) == 1)
			sum += ran;
		if (file)
			fclose(file);
	}
	return sum;
}

void measure_add(struct measure_rounds *rounds, double value, double cpu_s, double wall_s)
{
	if (rounds->count < MEASURE_ROUNDS_MAX)
		rounds->values[rounds->count++] = value;
	rounds->cpu_s += cpu_s;
	rounds->wall_s += wall_s;
}

static int compare_doubles(const void *a, const void *b)
{
	double left = *(const double *) a, right = *(const double *) b;

	return (left > right) - (left < right);
}

double measure_median(const struct measure_rounds *rounds)
{
	double sorted[MEASURE_ROUNDS_MAX];

	memcpy(sorted, rounds->values, sizeof sorted);
	qsort(sorted, rounds->count, sizeof *sorted, compare_doubles);
	return rounds->count ? (sorted[rounds->count / 2] + sorted[(rounds->count - 1) / 2]) / 2 : 0;
}

int measure_compare(const void *a, const void *b)
{
	int64_t left = *(const int64_t *) a, right = *(const int64_t *) b;

	return (left > right) - (left < right);
}

void measure_report(const char *case_name, const char *parameters, const struct measure_rounds *rounds,
		    const char *unit)
{
	printf("{\"bench\":\"%s\",\"case\":\"%s\"%s%s,\"value\":%.6g,\"unit\":\"%s\",\"cpu_s\":%.4f,\"wall_"
	       "s\":%.4f,\"rounds\":%u,\"seed\":%llu,"
	       "\"scale\":%g,\"machine\":\"%s\"}\n",
	       bench_name, case_name, parameters[0] ? "," : "", parameters, measure_median(rounds), unit,
	       rounds->cpu_s, rounds->wall_s, rounds->count, (unsigned long long) measure_options.seed,
	       measure_options.scale, machine);
	fflush(stdout);
}

void measure_report_value(const char *case_name, const char *parameters, double value, const char *unit,
			  double cpu_s, double wall_s)
{
	struct measure_rounds rounds = { .count = 0 };

	measure_add(&rounds, value, cpu_s, wall_s);
	measure_report(case_name, parameters, &rounds, unit);
}
