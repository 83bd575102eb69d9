/* Shared by all benches: clocks, memory of a process, medians of short rounds, and one JSON line per case.
 *
 * A case runs several short rounds and reports the median. CPU time is the main figure, because wall time on
 * a shared machine varies. Every bench takes
 *   bench_x [--rounds N] [--seed N] [--scale F] [CASE...]     CASE: only cases whose name begins like this
 * --scale multiplies the counts of objects and events, for a quick run.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <vedette/vedette.h>

#define MEASURE_ROUNDS_MAX 31
#define MEASURE_THREADS_MAX 64

struct measure_options {
	unsigned rounds;
	uint64_t seed;
	double	 scale;
};
extern struct measure_options measure_options;

/* Reads the arguments. name: of the bench, in every line. */
void measure_begin(const char *name, int argc, char **argv);
bool measure_wanted(const char *case_name);
/* count times the scale, at least 1. */
size_t measure_scaled(size_t count);
/* Ends the program with a sentence unless status is VD_OK. */
void measure_check(vd_status status, const struct vd_error *error, const char *what);

int64_t measure_wall_ns(void);
/* user + system time of this process, or of another one. */
int64_t measure_cpu_ns(void);
int64_t measure_cpu_ns_of(pid_t pid);
void	measure_nap_ns(int64_t ns);
/* Private memory of a process in bytes (RssAnon); 0 as pid: this one. */
int64_t	 measure_memory(pid_t pid);
uint64_t measure_random(uint64_t *state);

/* Returns a folder of this run in TMPDIR or /tmp, made by the first call. It is removed when the program ends
 * in any way. */
const char *measure_folder(void);
/* Starts a program (NULL-terminated arguments) that ends with this one; *ret_output: its standard error. */
pid_t measure_spawn(const char *const *arguments, int *ret_output);

/* Puts the results of op_of for 0, 1, ... count - 1, each valid until the next call; waits until all are
 * answered. */
void measure_put(struct vd_store *store, uint64_t count, struct vd_op (*op_of)(void *arg, uint64_t i),
		 void *arg);

/* ---- Threads: whose CPU time was it? ---- */

struct measure_threads {
	pid_t  ids[MEASURE_THREADS_MAX];
	size_t count;
};
/* All threads of this process now. */
void measure_threads_all(struct measure_threads *ret_threads);
/* Returns the threads that were started since before was taken. */
void measure_threads_since(const struct measure_threads *before, struct measure_threads *ret_threads);
/* Their CPU time. */
int64_t measure_threads_cpu_ns(const struct measure_threads *threads);

/* ---- Rounds and lines ---- */

struct measure_rounds {
	double	 values[MEASURE_ROUNDS_MAX];
	unsigned count;
	double	 cpu_s; /* sums over the measured part of the rounds */
	double	 wall_s;
};
void   measure_add(struct measure_rounds *rounds, double value, double cpu_s, double wall_s);
double measure_median(const struct measure_rounds *rounds);
/* One JSON line; parameters: members of the object, such as "\"watchers\":10", or "". */
void measure_report(const char *case_name, const char *parameters, const struct measure_rounds *rounds,
		    const char *unit);
/* The same for a single value. */
void measure_report_value(const char *case_name, const char *parameters, double value, const char *unit,
			  double cpu_s, double wall_s);
int  measure_compare(const void *a, const void *b); /* of two int64_t, for qsort */

#endif
