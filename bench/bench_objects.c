/* Cost of 100,000 objects: memory, start, lists, gets. Each case runs in a process of its own, so that memory
 * of earlier cases does not count.
 *
 *   - object-memory: growth of the private resident memory of a process with store and cache, per object
 *     (ratio: to the object's bytes)
 *   - initial-sync: until ready over the embedded store: CPU of the cacher's thread per object, and wall time
 *   - list: all; 1 % by label, indexed and scanned; one namespace: CPU time until the last object was
 *     returned
 *   - get: one object by name
 *   - scale-...: memory per object, sync, lists and gets of 1,000 to 1,000,000 objects
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"
#include "world.h"

#define OBJECTS 100000

static void run_apart(void (*run)(size_t size), const char *name, size_t size)
{
	pid_t child;
	int   status = 0;

	if (!measure_wanted(name))
		return;
	fflush(stdout);
	child = fork();
	if (child == 0) {
		run(size);
		exit(0);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
		fprintf(stderr, "bench_objects: %s: failed\n", name);
		exit(1);
	}
}

/* ---- Memory and start ---- */

static void bench_memory(size_t size)
{
	uint64_t     count = measure_scaled(OBJECTS);
	struct world world;
	int64_t	     before, store, both, heap, trimmed, cpu, wall;
	char	     parameters[256];

	world_open(&world, NULL);
	before = measure_memory(0);
	world_fill(&world, 0, count, size);
	store = measure_memory(0) - before;
	wall = measure_wall_ns();
	cpu = measure_threads_cpu_ns(&world.threads);
	world_start(&world);
	cpu = measure_threads_cpu_ns(&world.threads) - cpu;
	wall = measure_wall_ns() - wall;
	measure_nap_ns(300000000);
	both = measure_memory(0) - before;
	heap = (int64_t) (mallinfo2().uordblks + mallinfo2().hblkhd);
	malloc_trim(0);
	trimmed = measure_memory(0) - before;
	snprintf(parameters, sizeof parameters,
		 "\"bytes\":%zu,\"objects\":%llu,\"ratio\":%.3f,\"store_bytes\":%.0f,\"heap_bytes\":%.0f,"
		 "\"trimmed_bytes\":%.0f",
		 size, (unsigned long long) count, (double) both / (double) count / (double) size,
		 (double) store / (double) count, (double) heap / (double) count,
		 (double) trimmed / (double) count);
	measure_report_value("object-memory", parameters, (double) both / (double) count, "bytes", 0, 0);
	snprintf(parameters, sizeof parameters, "\"bytes\":%zu,\"objects\":%llu,\"wall_ms\":%.1f", size,
		 (unsigned long long) count, (double) wall / 1e6);
	measure_report_value("initial-sync", parameters, (double) cpu / 1e3 / (double) count, "us",
			     (double) cpu / 1e9, (double) wall / 1e9);
	world_close(&world);
}

/* ---- Reads ---- */

static void open_lists(struct world *world, bool indexed)
{
	static const char *const labels[] = { "app", NULL };

	world_open(world, NULL);
	if (indexed)
		world->options.index_labels = labels;
	world_fill(world, 0, measure_scaled(OBJECTS), 1024);
	world_start(world);
}

static uint64_t read_list(struct world *world, const struct vd_list_options *options)
{
	struct vd_list *list;
	struct vd_error error;
	uint64_t	objects = 0;

	measure_check(vd_cacher_list_wait(world->cacher, options, &list, &error), &error, "list");
	while (vd_list_next(list))
		objects++;
	vd_list_free(list);
	return objects;
}

static void bench_list_of(struct world *world, const char *case_name, const char *name,
			  const struct vd_list_options *options, unsigned lists, size_t of)
{
	struct measure_rounds rounds = { .count = 0 };
	uint64_t	      objects = 0;
	char		      parameters[160];

	for (unsigned round = 0; round < measure_options.rounds; round++) {
		int64_t cpu = measure_cpu_ns(), wall = measure_wall_ns();

		objects = 0;
		for (unsigned i = 0; i < lists; i++)
			objects += read_list(world, options);
		cpu = measure_cpu_ns() - cpu;
		wall = measure_wall_ns() - wall;
		measure_add(&rounds, (double) cpu / 1e6 / lists, (double) cpu / 1e9, (double) wall / 1e9);
	}
	snprintf(parameters, sizeof parameters, "\"what\":\"%s\",\"objects\":%llu,\"of\":%zu", name,
		 (unsigned long long) (objects / lists), of);
	measure_report(case_name, parameters, &rounds, "ms");
}

static void bench_one_list(struct world *world, const char *name, const struct vd_list_options *options,
			   unsigned lists)
{
	bench_list_of(world, "list", name, options, lists, measure_scaled(OBJECTS));
}

static void bench_scale(size_t count)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	unsigned	       lists = (unsigned) VDI_MAX((size_t) 1000000 / count, (size_t) 10);
	struct world	       world;
	int64_t		       before, cpu, wall;
	char		       parameters[128];

	world_open(&world, NULL);
	before = measure_memory(0);
	world_fill(&world, 0, count, 1024);
	cpu = measure_threads_cpu_ns(&world.threads);
	wall = measure_wall_ns();
	world_start(&world);
	cpu = measure_threads_cpu_ns(&world.threads) - cpu;
	wall = measure_wall_ns() - wall;
	snprintf(parameters, sizeof parameters, "\"of\":%zu,\"wall_ms\":%.1f", count, (double) wall / 1e6);
	measure_report_value("scale-sync", parameters, (double) cpu / 1e3 / (double) count, "us",
			     (double) cpu / 1e9, (double) wall / 1e9);
	measure_nap_ns(300000000);
	snprintf(parameters, sizeof parameters, "\"of\":%zu", count);
	measure_report_value("scale-memory", parameters,
			     (double) (measure_memory(0) - before) / (double) count, "bytes", 0, 0);
	options.revision = VD_REVISION_ANY;
	bench_list_of(&world, "scale-list", "all", &options, lists, count);
	options.label_selector = vd_bytes_of("app=app-00042");
	for (unsigned i = 0; i < 2; i++)
		(void) read_list(&world, &options); /* the first one scans, the second has the index built */
	bench_list_of(&world, "scale-list", "label", &options, lists, count);
	options.label_selector = VD_BYTES_NONE;
	options.namespace_name = vd_bytes_of("ns-00003");
	bench_list_of(&world, "scale-list", "namespace", &options, 1000, count);
	world_close(&world);
}

static void bench_lists(size_t indexed)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct world	       world;

	open_lists(&world, indexed);
	options.revision = VD_REVISION_ANY;
	if (indexed) {
		options.label_selector = vd_bytes_of("app=app-00042");
		bench_one_list(&world, "1 % by label, indexed", &options, 100);
		world_close(&world);
		return;
	}
	bench_one_list(&world, "all", &options, 10);
	options.label_selector = vd_bytes_of("app=app-00042");
	bench_one_list(&world, "1 % by label, scanned", &options, 10);
	options.label_selector = VD_BYTES_NONE;
	options.field_selector = vd_bytes_of("spec.nodeName=node-00042");
	bench_one_list(&world, "0.1 % by trigger field", &options, 100);
	options.field_selector = VD_BYTES_NONE;
	options.namespace_name = vd_bytes_of("ns-00042");
	bench_one_list(&world, "one namespace of 100", &options, 1000);
	options.namespace_name = VD_BYTES_NONE;
	options.revision = VD_REVISION_UNSET;
	bench_one_list(&world, "all, most recent", &options, 10);
	world_close(&world);
}

static void got(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
		const struct vd_error *error)
{
	(void) revision;
	measure_check(status, error, "get");
	*(size_t *) arg += vd_object_kv(object)->value_size;
}

static void bench_gets(size_t count)
{
	struct measure_rounds rounds = { .count = 0 };
	struct world	      world;
	char		      namespaces[256][POD_KEY_MAX], names[256][POD_KEY_MAX];
	struct vd_bytes	      keys[256][2];
	size_t		      bytes = 0;

	open_lists(&world, false);
	for (size_t i = 0; i < 256; i++) {
		struct pod pod = pod_number(measure_random(&world.seed) % measure_scaled(OBJECTS), 1024);

		keys[i][0] = pod_namespace(namespaces[i], &pod);
		keys[i][1] = pod_name(names[i], &pod);
	}
	for (unsigned round = 0; round < measure_options.rounds; round++) {
		int64_t cpu = measure_cpu_ns(), wall = measure_wall_ns();

		for (size_t i = 0; i < count; i++)
			measure_check(vd_cacher_get(world.cacher, keys[i & 255][0], keys[i & 255][1],
						    VD_REVISION_ANY, got, &bytes),
				      NULL, "get");
		cpu = measure_cpu_ns() - cpu;
		wall = measure_wall_ns() - wall;
		measure_add(&rounds, (double) cpu / 1e3 / (double) count, (double) cpu / 1e9,
			    (double) wall / 1e9);
	}
	measure_report("get", bytes ? "\"of\":100000" : "", &rounds, "us");
	world_close(&world);
}

int main(int argc, char **argv)
{
	measure_begin("objects", argc, argv);
	run_apart(bench_memory, "object-memory", 1024);
	run_apart(bench_memory, "object-memory", 4096);
	run_apart(bench_lists, "list", false);
	run_apart(bench_lists, "list", true);
	run_apart(bench_gets, "get", 200000);
	for (size_t count = 1000; count <= measure_scaled(1000000); count *= 10)
		run_apart(bench_scale, "scale", count);
	return 0;
}
