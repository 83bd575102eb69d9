/* Cost of `vedette replay`: it reads a log of pods of 1 KB from a pipe, W watches receive every event, and
 * nothing is printed. The writer of the log is a process of its own; only the CPU time and memory of vedette
 * are counted.
 *
 *   - replay-max: 10,000,000 puts over 10,000 pods (each put changes one), in commits of one, into W watches
 *     of all pods: events per second of CPU. memory: the RSS after each tenth of the log, which is constant,
 *     whatever the log's length
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "measure.h"
#include "pods.h"

#define PODS 10000
/* Of each, made beforehand, so that the writer keeps up. */
#define VERSIONS 4
#define POD_SIZE 1024
#define TENTHS 10

static char program[512];

/* ---- The writer ---- */

static int64_t rss_of(pid_t pid)
{
	char	  path[64], line[256];
	long long kilobytes = 0;
	FILE	 *file;

	(void) snprintf(path, sizeof path, "/proc/%d/status", (int) pid);
	file = fopen(path, "re");
	if (file == NULL)
		return 0;
	while (fgets(line, sizeof line, file))
		if (sscanf(line, "VmRSS: %lld", &kilobytes) == 1)
			break;
	(void) fclose(file);
	return kilobytes * 1024;
}

/* VERSIONS of every pod, which differ outside of the selected fields, as updates of a status do. */
static char *make_values(uint64_t seed)
{
	char *values = malloc((size_t) PODS * VERSIONS * POD_SIZE);
	char  text[POD_SIZE_MAX];

	if (values == NULL)
		exit(1);
	for (size_t i = 0; i < (size_t) PODS * VERSIONS; i++) {
		struct pod pod = pod_number(i / VERSIONS, POD_SIZE);

		memcpy(values + i * POD_SIZE, pod_json(text, &pod, &seed).data, POD_SIZE);
	}
	return values;
}

/* ret_rss: memory of the reader after each tenth of the log. */
static void write_log(FILE *out, size_t count, uint64_t seed, pid_t reader, int64_t ret_rss[TENTHS])
{
	char  *values = make_values(seed);
	size_t tenth = 0;

	(void) fputs("{\"vedetteLog\":1}\n", out);
	for (size_t i = 0; i < count; i++) {
		struct pod	pod = pod_number(i % PODS, POD_SIZE);
		char		key[POD_KEY_MAX];
		struct vd_bytes name = pod_key(key, &pod);

		(void) fprintf(out, "{\"rev\":%zu,\"type\":\"PUT\",\"key\":\"%.*s\",\"value\":", i + 2,
			       (int) name.size, key);
		(void) fwrite(values + (i % PODS * VERSIONS + i / PODS % VERSIONS) * POD_SIZE, 1, POD_SIZE,
			      out);
		(void) fprintf(out, "}\n{\"commit\":%zu}\n", i + 2);
		if (tenth < TENTHS && i + 1 == count / TENTHS * (tenth + 1))
			ret_rss[tenth++] = rss_of(reader);
	}
	free(values);
}

/* ---- vedette ---- */

static pid_t start(unsigned watches, int *ret_input)
{
	int   pipes[2];
	pid_t pid;

	if (pipe(pipes) != 0)
		exit(1);
	pid = fork();
	if (pid == 0) {
		const char **arguments = calloc(watches * 2 + 8, sizeof *arguments);
		size_t	     count = 0;

		(void) dup2(pipes[0], STDIN_FILENO);
		(void) close(pipes[0]);
		(void) close(pipes[1]);
		arguments[count++] = program;
		arguments[count++] = "replay";
		arguments[count++] = "-";
		arguments[count++] = "--quiet";
		for (unsigned i = 0; i < watches; i++) {
			arguments[count++] = "--watch";
			arguments[count++] = "pods";
		}
		execv(program, (char *const *) (uintptr_t) arguments);
		_exit(127);
	}
	(void) close(pipes[0]);
	*ret_input = pipes[1];
	return pid;
}

static void bench(unsigned watches, size_t count)
{
	int	      input = -1, status = 0;
	int64_t	      wall_ns = measure_wall_ns(), rss[TENTHS] = { 0 }, least = INT64_MAX, most = 0;
	pid_t	      pid = start(watches, &input);
	FILE	     *out = fdopen(input, "w");
	struct rusage usage;
	char	      parameters[320], curve[128];
	size_t	      curve_size = 0;
	double	      cpu_s;

	(void) setvbuf(out, NULL, _IOFBF, (size_t) 1 << 20);
	write_log(out, count, measure_options.seed, pid, rss);
	if (fclose(out) != 0 || wait4(pid, &status, 0, &usage) != pid || status != 0) {
		(void) fprintf(stderr, "bench_replay: vedette ended with status %d\n", status);
		exit(1);
	}
	wall_ns = measure_wall_ns() - wall_ns;
	cpu_s = (double) usage.ru_utime.tv_sec + (double) usage.ru_stime.tv_sec +
		(double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
	for (size_t i = 0; i < TENTHS; i++) {
		least = rss[i] < least ? rss[i] : least;
		most = rss[i] > most ? rss[i] : most;
		curve_size += (size_t) snprintf(curve + curve_size, sizeof curve - curve_size, "%s%.1f",
						i ? "," : "", (double) rss[i] / 1048576);
	}
	(void) snprintf(parameters, sizeof parameters,
			"\"watches\":%u,\"events\":%zu,\"rss_mib\":%.1f,\"rss_grown_mib\":%.1f,\"rss_tenths_"
			"mib\":[%s]",
			watches, count, (double) usage.ru_maxrss / 1024, (double) (most - least) / 1048576,
			curve);
	measure_report_value("replay-max", parameters, (double) count / cpu_s, "events a second of CPU",
			     cpu_s, (double) wall_ns / 1e9);
}

int main(int argc, char **argv)
{
	measure_begin("replay", argc, argv);
	(void) snprintf(program, sizeof program, "%s", argv[0]);
	if (strrchr(program, '/'))
		*strrchr(program, '/') = 0;
	(void) strncat(program, "/../tools/vedette/vedette", sizeof program - strlen(program) - 1);
	if (measure_wanted("replay-max")) {
		bench(1, measure_scaled(10000000) / 10);
		bench(100, measure_scaled(10000000));
	}
	return 0;
}
