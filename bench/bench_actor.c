/* Cost of waking an actor, on the pool and on a loop. One JSON line per case: bench_actor [ROUNDS]. ns is
 * wall time per operation, cpu_ns user and system time of the whole process, switches voluntary context
 * switches (an estimate of system calls that slept or woke). */
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "actor_loop.h"
#include "env.h"
#include "wait.h"

static int64_t clock_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static int64_t switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_nvcsw;
}

struct bench {
	const struct vd_env	 *env;
	const struct vd_executor *executor;
	const char		 *world;
	uint64_t		  rounds;
	int64_t			  wall_ns;
	int64_t			  cpu_ns;
	int64_t			  switches;
};

static void start(struct bench *bench)
{
	bench->switches = switches();
	bench->cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	bench->wall_ns = clock_ns(CLOCK_MONOTONIC);
}

static void report(struct bench *bench, const char *name, uint64_t operations)
{
	double wall = (double) (clock_ns(CLOCK_MONOTONIC) - bench->wall_ns);
	double cpu = (double) (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - bench->cpu_ns);

	printf("{\"bench\":\"actor\",\"world\":\"%s\",\"case\":\"%s\",\"operations\":%llu,\"ns\":%.1f,\"cpu_"
	       "ns\":%.1f,\"switches\":%.4f}\n",
	       bench->world, name, (unsigned long long) operations, wall / (double) operations,
	       cpu / (double) operations, (double) (switches() - bench->switches) / (double) operations);
	fflush(stdout);
}

static struct vd_actor *new_actor(struct bench *bench, void (*run)(void *arg), void *arg)
{
	struct vd_actor_options options = { .name = "bench", .run = run, .arg = arg };
	struct vd_actor	       *actor;

	VDI_CHECK(vd_executor_actor_new(bench->executor, &options, &actor) == VD_OK);
	return actor;
}

/* ---- Two actors that wake each other ---- */

struct hop {
	struct vd_actor *actors[2];
	uint64_t	 left;
	struct vdi_wait	 done;
};

static void hop_run(void *arg)
{
	struct hop *hop = arg;

	if (hop->left-- == 0)
		vdi_wait_signal(&hop->done);
	else
		vd_actor_wake(hop->actors[hop->left % 2]);
}

static void bench_hop(struct bench *bench)
{
	struct hop hop = { .left = bench->rounds };

	vdi_wait_init(&hop.done, bench->env);
	hop.actors[0] = new_actor(bench, hop_run, &hop);
	hop.actors[1] = new_actor(bench, hop_run, &hop);
	start(bench);
	vd_actor_wake(hop.actors[0]);
	vdi_wait_wait(&hop.done);
	report(bench, "one actor wakes the next", bench->rounds);
	vdi_wait_for_actor_close(bench->env, hop.actors[0]);
	vdi_wait_for_actor_close(bench->env, hop.actors[1]);
	vdi_wait_fini(&hop.done);
}

/* ---- Wakes from outside ---- */

struct target {
	struct vd_actor *actor;
	_Atomic uint64_t posted;
	_Atomic uint64_t seen;
	_Atomic uint64_t runs;
	_Atomic int64_t	 ran_at_ns;
};

static void target_run(void *arg)
{
	struct target *target = arg;

	atomic_store_explicit(&target->ran_at_ns, clock_ns(CLOCK_MONOTONIC), memory_order_relaxed);
	atomic_fetch_add_explicit(&target->runs, 1, memory_order_relaxed);
	atomic_store_explicit(&target->seen, atomic_load_explicit(&target->posted, memory_order_relaxed),
			      memory_order_release);
}

static void wait_until_seen(struct target *target)
{
	while (atomic_load_explicit(&target->seen, memory_order_acquire) !=
	       atomic_load_explicit(&target->posted, memory_order_relaxed))
		sched_yield();
}

/* As a producer does it: an item at a time, a wake after each. */
static void bench_stream(struct bench *bench)
{
	struct target target = { 0 };

	target.actor = new_actor(bench, target_run, &target);
	start(bench);
	for (uint64_t i = 1; i <= bench->rounds; i++) {
		atomic_store_explicit(&target.posted, i, memory_order_relaxed);
		vd_actor_wake(target.actor);
	}
	wait_until_seen(&target);
	report(bench, "another thread wakes one actor again and again", bench->rounds);
	vdi_wait_for_actor_close(bench->env, target.actor);
}

static void bench_spread(struct bench *bench)
{
	enum { TARGETS = 1000 };
	struct target *targets = vdi_calloc(TARGETS, sizeof *targets);
	uint64_t       rounds = bench->rounds / TARGETS;

	for (size_t i = 0; i < TARGETS; i++)
		targets[i].actor = new_actor(bench, target_run, &targets[i]);
	start(bench);
	for (uint64_t round = 1; round <= rounds; round++) {
		for (size_t i = 0; i < TARGETS; i++) {
			atomic_store_explicit(&targets[i].posted, round, memory_order_relaxed);
			vd_actor_wake(targets[i].actor);
		}
		for (size_t i = 0; i < TARGETS; i++)
			wait_until_seen(&targets[i]);
	}
	report(bench, "another thread wakes 1000 actors in turn", rounds * TARGETS);
	for (size_t i = 0; i < TARGETS; i++)
		vdi_wait_for_actor_close(bench->env, targets[i].actor);
	vdi_free(targets);
}

static int compare_ns(const void *a, const void *b)
{
	return (*(const int64_t *) a > *(const int64_t *) b) - (*(const int64_t *) a < *(const int64_t *) b);
}

/* The executor is asleep each time: measures the time from a wake until the handler runs. */
static void bench_latency(struct bench *bench)
{
	enum { SAMPLES = 2000 };
	struct target target = { 0 };
	int64_t	      samples_ns[SAMPLES];
	int64_t	      calls_ns = 0;

	target.actor = new_actor(bench, target_run, &target);
	for (size_t i = 0; i < SAMPLES; i++) {
		struct timespec pause = { .tv_nsec = 100000 };
		int64_t		wake_ns;

		clock_nanosleep(CLOCK_MONOTONIC, 0, &pause, NULL);
		atomic_store_explicit(&target.posted, i + 1, memory_order_relaxed);
		wake_ns = clock_ns(CLOCK_MONOTONIC);
		vd_actor_wake(target.actor);
		calls_ns += clock_ns(CLOCK_MONOTONIC) - wake_ns;
		wait_until_seen(&target);
		samples_ns[i] = atomic_load(&target.ran_at_ns) - wake_ns;
	}
	vdi_wait_for_actor_close(bench->env, target.actor);
	qsort(samples_ns, SAMPLES, sizeof samples_ns[0], compare_ns);
	printf("{\"bench\":\"actor\",\"world\":\"%s\",\"case\":\"wake a sleeping "
	       "runner\",\"call_ns\":%.0f,\"run_p50_ns\":%lld,\"run_p99_ns\":%lld}\n",
	       bench->world, (double) calls_ns / SAMPLES, (long long) samples_ns[SAMPLES / 2],
	       (long long) samples_ns[SAMPLES * 99 / 100]);
	fflush(stdout);
}

/* ---- Timers ---- */

struct ticker {
	const struct vd_env *env;
	struct vd_actor	    *actor;
	vd_mono		     due;
	size_t		     count;
	int64_t		     late_ns[500];
	struct vdi_wait	     done;
};

static void ticker_run(void *arg)
{
	struct ticker *ticker = arg;
	vd_mono	       now = vd_env_now(ticker->env);

	if (ticker->due.ns)
		ticker->late_ns[ticker->count++] = now.ns - ticker->due.ns;
	if (ticker->count == VDI_ARRAY_SIZE(ticker->late_ns)) {
		vdi_wait_signal(&ticker->done);
		return;
	}
	ticker->due = vd_mono_add(now, VD_US(300));
	vd_actor_set_timer(ticker->actor, ticker->due);
}

static void bench_timer(struct bench *bench)
{
	struct ticker ticker = { .env = bench->env };

	vdi_wait_init(&ticker.done, bench->env);
	ticker.actor = new_actor(bench, ticker_run, &ticker);
	start(bench);
	vd_actor_wake(ticker.actor);
	vdi_wait_wait(&ticker.done);
	qsort(ticker.late_ns, ticker.count, sizeof ticker.late_ns[0], compare_ns);
	printf("{\"bench\":\"actor\",\"world\":\"%s\",\"case\":\"timer of 300 "
	       "us\",\"late_p50_ns\":%lld,\"late_p99_ns\":%lld,\"cpu_ns\":%.0f}\n",
	       bench->world, (long long) ticker.late_ns[ticker.count / 2],
	       (long long) ticker.late_ns[ticker.count * 99 / 100],
	       (double) (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - bench->cpu_ns) / (double) ticker.count);
	vdi_wait_for_actor_close(bench->env, ticker.actor);
	vdi_wait_fini(&ticker.done);
}

static void bench_idle(struct bench *bench)
{
	struct timespec second = { .tv_sec = 1 };

	start(bench);
	clock_nanosleep(CLOCK_MONOTONIC, 0, &second, NULL);
	report(bench, "one idle second", 1);
}

static void bench_world(struct bench *bench)
{
	bench_hop(bench);
	bench_stream(bench);
	bench_spread(bench);
	bench_latency(bench);
	bench_timer(bench);
	bench_idle(bench);
}

int main(int count, char **arguments)
{
	struct vd_env_options options = VD_ENV_OPTIONS_INIT;
	struct bench	      bench = { .rounds = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000000 };
	struct vdi_loop	     *loop;
	struct vd_env	     *env;

	options.threads = 4;
	VDI_CHECK(vd_env_new_threads(&options, &env) == VD_OK);
	VDI_CHECK(vdi_loop_new(env, &loop) == VD_OK);
	VDI_CHECK(vdi_loop_start_thread(loop, "bench-loop") == VD_OK);
	bench.env = env;
	bench.executor = vdi_env_executor(env);
	bench.world = "threads";
	bench_world(&bench);
	bench.executor = vdi_loop_executor(loop);
	bench.world = "loop";
	bench_world(&bench);
	vdi_loop_free(loop);
	vd_env_free(env);
	return 0;
}
