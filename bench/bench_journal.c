/* Cost of durability: bench_journal [DIRECTORY [RECORDS]]. One JSON line per case; records with values of 256
 * bytes; CPU is that of the whole process. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "backend_tuning.h"
#include "measure.h"

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

struct watch {
	int64_t wall_ns;
	int64_t cpu_ns;
};

static struct watch watch_start(void)
{
	return (struct watch) { clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_PROCESS_CPUTIME_ID) };
}

static void report(const char *name, uint64_t group, uint64_t count, struct watch start, int64_t bytes)
{
	double wall = (double) (clock_ns(CLOCK_MONOTONIC) - start.wall_ns),
	       cpu = (double) (clock_ns(CLOCK_PROCESS_CPUTIME_ID) - start.cpu_ns);

	printf("{\"bench\":\"journal\",\"case\":\"%s\",\"group\":%llu,\"records\":%llu,\"wall_us\":%.3f,"
	       "\"cpu_us\":%.3f,\"wall_s\":%.3f,\"bytes\":%lld}\n",
	       name, (unsigned long long) group, (unsigned long long) count, wall / 1000 / (double) count,
	       cpu / 1000 / (double) count, wall / 1e9, (long long) bytes);
	fflush(stdout);
}

static void check(vd_status status, const struct vd_error *error)
{
	if (status == VD_OK)
		return;
	fprintf(stderr, "bench_journal: %s\n", error->message);
	exit(1);
}

struct counter {
	uint64_t records;
	vd_rev	 revision;
};

static vd_status count_begin(void *arg, vd_rev compacted, vd_rev revision_min, int64_t estimate)
{
	(void) compacted;
	(void) estimate;
	((struct counter *) arg)->revision = revision_min;
	return VD_OK;
}
static vd_status count_change(void *arg, struct vd_kv *kv, bool is_delete)
{
	(void) is_delete;
	((struct counter *) arg)->records++;
	vd_kv_unref(kv);
	return VD_OK;
}
static vd_status count_lease(void *arg, int64_t id, int64_t ttl_s, vd_wall deadline)
{
	(void) arg;
	(void) id;
	(void) ttl_s;
	(void) deadline;
	return VD_OK;
}

static void put_records(struct vdi_backend *backend, vd_rev *revision, uint64_t count, uint64_t group)
{
	static char	value[256];
	struct vd_error error;

	for (size_t i = 0; i < sizeof value; i++)
		value[i] = (char) rand();
	for (uint64_t i = 0; i < count; i++) {
		struct vdi_change change = { false, NULL, NULL };
		struct vdi_commit commit = { .revision = ++*revision, .changes = &change, .change_count = 1 };
		char		  key[64];

		snprintf(key, sizeof key, "/registry/pods/ns-%03d/pod-%010lld", (int) (*revision % 1000),
			 (long long) *revision);
		check(vd_kv_new(vd_bytes_of(key), (struct vd_bytes) { value, sizeof value }, &change.kv),
		      &error);
		change.kv->mod_rev = change.kv->create_rev = *revision;
		change.kv->version = 1;
		check(vdi_backend_append(backend, &commit, &error), &error);
		vd_kv_unref(change.kv);
		if ((i + 1) % group == 0)
			check(vdi_backend_sync(backend, &error), &error);
	}
	check(vdi_backend_sync(backend, &error), &error);
}

static void set_flag(void *arg)
{
	__atomic_store_n((bool *) arg, true, __ATOMIC_RELEASE);
}

static void nap(void)
{
	nanosleep(&(struct timespec) { 0, 1000000 }, NULL);
}

static void close_wait(struct vdi_backend *backend)
{
	bool is_closed = false;

	vdi_backend_close(backend, set_flag, &is_closed);
	while (!__atomic_load_n(&is_closed, __ATOMIC_ACQUIRE))
		nap();
}

static struct vdi_backend *open_counted(const struct vd_env *env, const char *path,
					struct vdi_backend_tuning tuning, const char *name,
					struct counter *ret_counter)
{
	struct vd_mvcc_options	options = VD_MVCC_OPTIONS_INIT;
	struct counter		counter = { 0, 0 };
	struct vdi_backend_sink sink = { count_begin, count_change, count_lease, &counter };
	struct vdi_backend     *backend;
	struct vd_error		error;
	struct watch		start = watch_start();

	options.data_dir = path;
	check(vdi_backend_open_tuned(env, &options, &tuning, &sink, &backend, &error), &error);
	if (name)
		report(name, 0, counter.records ? counter.records : 1, start,
		       vdi_backend_size_bytes(backend));
	*ret_counter = counter;
	return backend;
}

int main(int argc, char **argv)
{
	static const uint64_t	  groups[] = { 1, 10, 100, 1000 };
	struct vdi_backend_tuning journal_only = { .is_journal_only = true };
	struct vdi_backend_tuning both = { .is_journal_only = false };
	const char		 *path;
	uint64_t		  records = argc > 2 ? strtoull(argv[2], NULL, 10) : 1000000;
	struct vd_env		 *env;
	struct vdi_backend	 *backend;
	struct counter		  counter;
	vd_rev			  revision = 1;
	struct watch		  start;

	measure_begin("journal", 1, argv);
	if (argc > 1)
		(void) setenv("TMPDIR", argv[1], 1);
	path = measure_folder();
	measure_check(vd_env_new_threads(NULL, &env), NULL, "threads");
	backend = open_counted(env, path, journal_only, NULL, &counter);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(groups); i++) {
		uint64_t count = VDI_MIN((uint64_t) 3000 * groups[i], (uint64_t) 300000);

		start = watch_start();
		put_records(backend, &revision, count, groups[i]);
		report("append+sync", groups[i], count, start, vdi_backend_size_bytes(backend));
	}
	put_records(backend, &revision, records > (uint64_t) revision ? records - (uint64_t) revision + 1 : 1,
		    1000);
	close_wait(backend);
	backend = open_counted(env, path, journal_only, "recover-journal", &counter);
	close_wait(backend);
	/* The same directory with a checkpoint: the whole journal is moved into it. */
	backend = open_counted(env, path, both, "recover-before-checkpoint", &counter);
	start = watch_start();
	while (vdi_backend_checkpointed(backend) < counter.records)
		nap();
	report("checkpoint", 0, counter.records, start, vdi_backend_size_bytes(backend));
	close_wait(backend);
	backend = open_counted(env, path, both, "start-from-checkpoint", &counter);
	start = watch_start();
	put_records(backend, &revision, 300000, 100);
	report("append+sync+checkpoint", 100, 300000, start, vdi_backend_size_bytes(backend));
	close_wait(backend);
	vd_env_free(env);
	return 0;
}
