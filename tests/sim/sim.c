/* sim: the whole pipeline from seeds.
 *
 *	sim --seed N		one seed, and what happened in it
 *	sim --seeds A-B		many
 *	sim --twice		each seed twice: the schedules must be equal
 *	sim --require-marks	every rare thing must have happened at least once
 *	sim --file FILE		seeds of fixed bugs: a number (or number/preemptions), then why
 *	--writes N (2000), --jobs N (1), --verbose
 *	--preemptions N (0 to 8; without it each seed has its own: 0 to 3)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

#define JOBS_MAX 64

struct run {
	uint64_t	 first, last, writes, jobs;
	int		 preemptions; /* -1: by seed */
	bool		 is_verbose, is_twice, needs_marks;
	struct sim_marks marks;
};

static void run_one(struct run *run, uint64_t seed)
{
	/* A quarter of the worlds have no preemption, as swarm testing omits every kind of fault now and
	 * then. */
	unsigned preemptions = run->preemptions >= 0 ? (unsigned) run->preemptions :
						       (unsigned) (seed * UINT64_C(0x9e3779b97f4a7c15) >> 62);
	uint64_t hash = world_run_seed(seed, run->writes, preemptions, run->is_verbose, &run->marks);

	if (run->is_twice &&
	    world_run_seed(seed, run->writes, preemptions, run->is_verbose, &run->marks) != hash) {
		fprintf(stderr, "seed %llu has another schedule the second time\n",
			(unsigned long long) seed);
		exit(1);
	}
}

static void run_file(struct run *run, const char *path)
{
	FILE *file = fopen(path, "r");
	char  line[512];

	if (file == NULL) {
		perror(path);
		exit(2);
	}
	while (fgets(line, sizeof line, file)) {
		char	*end;
		uint64_t seed = strtoull(line, &end, 10);

		run->preemptions = *end == '/' ? (int) strtol(end + 1, NULL, 10) : 0;
		if (end != line)
			run_one(run, seed);
	}
	fclose(file);
}

static void add_marks(struct sim_marks *total, const struct sim_marks *more)
{
#define SIM_MARK_ADD(name, text) total->name += more->name;
	SIM_MARKS(SIM_MARK_ADD)
#undef SIM_MARK_ADD
}

/* Process i of j runs every j-th seed and sends its marks. Returns false if one failed, which it has
 * reported. */
static bool run_jobs(struct run *run)
{
	int  pipes[JOBS_MAX][2];
	bool is_good = true;

	fflush(NULL);
	for (uint64_t job = 0; job < run->jobs; job++) {
		pid_t child;

		if (pipe(pipes[job]) != 0 || (child = fork()) < 0) {
			perror("sim");
			exit(2);
		}
		if (child > 0) {
			close(pipes[job][1]);
			continue;
		}
		for (uint64_t seed = run->first + job; seed <= run->last; seed += run->jobs)
			run_one(run, seed);
		exit(write(pipes[job][1], &run->marks, sizeof run->marks) == (ssize_t) sizeof run->marks ? 0 :
													   1);
	}
	for (uint64_t job = 0; job < run->jobs; job++) {
		struct sim_marks marks;
		int		 status;

		if (read(pipes[job][0], &marks, sizeof marks) == (ssize_t) sizeof marks)
			add_marks(&run->marks, &marks);
		else
			is_good = false;
		close(pipes[job][0]);
		if (wait(&status) < 0 || status != 0)
			is_good = false;
	}
	return is_good;
}

static int show_marks(const struct run *run)
{
	int missing = 0;

#define SIM_MARK_SHOW(name, text)                                                                            \
	printf("%10llu %s: %s\n", (unsigned long long) run->marks.name, #name, text);                        \
	missing += run->marks.name == 0;
	SIM_MARKS(SIM_MARK_SHOW)
#undef SIM_MARK_SHOW
	if (missing && run->needs_marks)
		fprintf(stderr, "%d marks were never reached\n", missing);
	return missing;
}

static int usage(void)
{
	fprintf(stderr, "usage: sim [--seed N | --seeds A-B | --file FILE] [--writes N] [--preemptions N] "
			"[--jobs N] [--twice] [--require-marks] [--verbose]\n");
	return 2;
}

int main(int argc, char **argv)
{
	struct run  run = { .first = 1, .last = 1, .writes = 2000, .jobs = 1, .preemptions = -1 };
	const char *file = NULL;

	for (int i = 1; i < argc; i++) {
		const char *value = i + 1 < argc ? argv[i + 1] : "";

		if (strcmp(argv[i], "--verbose") == 0)
			run.is_verbose = true;
		else if (strcmp(argv[i], "--twice") == 0)
			run.is_twice = true;
		else if (strcmp(argv[i], "--require-marks") == 0)
			run.needs_marks = true;
		else if (strcmp(argv[i], "--seed") == 0 && *value)
			run.first = run.last = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--seeds") == 0 &&
			 sscanf(value, "%lu-%lu", &run.first, &run.last) == 2)
			i++;
		else if (strcmp(argv[i], "--writes") == 0 && *value)
			run.writes = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--preemptions") == 0 && *value)
			run.preemptions = atoi(argv[++i]);
		else if (strcmp(argv[i], "--jobs") == 0 && *value)
			run.jobs = strtoull(argv[++i], NULL, 10);
		else if (strcmp(argv[i], "--file") == 0 && *value)
			file = argv[++i];
		else
			return usage();
	}
	if (run.jobs < 1 || run.jobs > JOBS_MAX || run.preemptions > 8)
		return usage();
	if (file)
		run_file(&run, file);
	else if (run.jobs > 1) {
		if (!run_jobs(&run))
			return 1;
	} else
		for (uint64_t seed = run.first; seed <= run.last; seed++)
			run_one(&run, seed);
	return show_marks(&run) && run.needs_marks ? 1 : 0;
}
