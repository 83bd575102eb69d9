/* What cached objects cost, and what reading them costs. One JSON line per case: bench_objects [COUNT].
 *
 * Pods of 1 and 4 KB with random, incompressible content. bytes is heap of the whole process per object while the cache holds it and the store
 * behind it keeps nothing else but the same shared record; lists are walked to the end. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <vedette/vedette.h>

#include "feed_store.h"

#define CHECK(expression)                                                                                                        \
	do {                                                                                                                     \
		if ((expression) != VD_OK) {                                                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #expression);                                         \
			exit(1);                                                                                                 \
		}                                                                                                                \
	} while (0)

static const struct vd_field_spec fields[] = { { "spec.nodeName", ".spec.nodeName", NULL }, { "status.phase", ".status.phase", NULL } };

static double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double) now.tv_sec * 1e9 + (double) now.tv_nsec;
}

static double resident_bytes(void)
{
	FILE *status = fopen("/proc/self/status", "r");
	char  line[256];
	double kilobytes = 0;

	while (status && fgets(line, sizeof line, status))
		if (sscanf(line, "RssAnon: %lf", &kilobytes) == 1)
			break;
	if (status)
		fclose(status);
	return kilobytes * 1024;
}

static void load(struct vd_store *store, size_t count, size_t size)
{
	char *value = malloc(size + 1);
	char  key[128];

	for (size_t i = 0; i < count; i++) {
		size_t used = (size_t) snprintf(
			value, size,
			"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"pod-%06zu\",\"namespace\":\"ns-%03zu\",\"uid\":\"%08x-%08x\",\"labels\":{\"app\":\"a%zu\","
			"\"tier\":\"t%zu\"}},\"spec\":{\"nodeName\":\"node-%zu\"},\"status\":{\"phase\":\"Running\"},\"data\":\"",
			i, i / 1000, (unsigned) rand(), (unsigned) rand(), i % 100, i % 7, i % 1000);

		while (used < size - 2)
			value[used++] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"[rand() & 63];
		value[used++] = '"';
		value[used++] = '}';
		snprintf(key, sizeof key, "/registry/pods/ns-%03zu/pod-%06zu", i / 1000, i);
		feed_load(store, key, (struct vd_bytes) { value, used });
	}
	free(value);
}

static void list_case(struct vd_cacher *cacher, const char *name, const char *label, const char *ns, size_t size)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	struct vd_list	      *list;
	struct vd_error	       error;
	double		       best = 1e18;
	size_t		       count = 0;

	options.revision = VD_REVISION_ANY;
	options.label_selector = vd_bytes_of(label);
	options.namespace_name = vd_bytes_of(ns);
	for (unsigned round = 0; round < 5; round++) {
		double start = cpu_ns();

		CHECK(vd_cacher_list_wait(cacher, &options, &list, &error));
		for (count = 0; vd_list_next(list); count++)
			;
		vd_list_free(list);
		start = cpu_ns() - start;
		best = start < best ? start : best;
	}
	printf("{\"bench\":\"objects\",\"case\":\"list\",\"by\":\"%s\",\"size\":%zu,\"objects\":%zu,\"ms\":%.3f}\n", name, size, count, best / 1e6);
}

static void note(void *arg, vd_status status, struct vd_object *object, vd_rev revision, const struct vd_error *error)
{
	CHECK(status);
}

static void get_case(struct vd_cacher *cacher, size_t count, size_t size)
{
	const size_t rounds = 1000000;
	double	     start = cpu_ns();

	for (size_t i = 0; i < rounds; i++) {
		size_t at = i * 7919 % count;
		char   ns[16], name[24];

		snprintf(ns, sizeof ns, "ns-%03zu", at / 1000);
		snprintf(name, sizeof name, "pod-%06zu", at);
		CHECK(vd_cacher_get(cacher, vd_bytes_of(ns), vd_bytes_of(name), VD_REVISION_ANY, note, NULL));
	}
	printf("{\"bench\":\"objects\",\"case\":\"get\",\"size\":%zu,\"objects\":%zu,\"ns\":%.0f,\"note\":\"two snprintf included\"}\n", size, count,
	       (cpu_ns() - start) / (double) rounds);
}

static void run(size_t count, size_t size)
{
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
	const char *const	 labels[] = { "app", NULL };
	struct vd_env		*env;
	struct vd_store		*store;
	struct vd_codec		*codec;
	struct vd_cacher	*cacher;
	struct vd_error		 error;
	double			 before, stored, start;

	CHECK(vd_env_new_threads(NULL, &env));
	store = feed_store_new(env);
	CHECK(vd_codec_json_new(fields, 2, &codec, &error));
	malloc_trim(0);
	before = resident_bytes();
	load(store, count, size);
	stored = resident_bytes() - before;
	options.resource = "pods";
	options.key_prefix = "/registry/pods/";
	options.codec = codec;
	options.trigger = "spec.nodeName";
	options.index_labels = labels;
	start = cpu_ns();
	CHECK(vd_cacher_new(env, store, &options, &cacher, &error));
	CHECK(vd_cacher_ready_wait(cacher, VD_SECONDS(60), &error));
	start = cpu_ns() - start;
	malloc_trim(0);
	printf("{\"bench\":\"objects\",\"case\":\"memory\",\"size\":%zu,\"objects\":%zu,\"record_bytes\":%.0f,\"bytes\":%.0f,\"ratio\":%.3f,\"fill_us\":%.2f}\n", size,
	       count, stored / (double) count, (resident_bytes() - before) / (double) count,
	       (resident_bytes() - before) / (double) count / (double) size, start / (double) count / 1e3);
	list_case(cacher, "everything", "", "", size);
	list_case(cacher, "label_indexed", "app=a7", "", size);
	list_case(cacher, "label_scanned", "app in (a7,a207),tier!=x", "", size);
	list_case(cacher, "namespace", "", "ns-007", size);
	get_case(cacher, count, size);
	vd_cacher_close_wait(cacher);
	feed_store_free(store);
	vd_codec_free(codec);
	vd_env_free(env);
}

int main(int argc, char **argv)
{
	size_t count = argc > 1 ? (size_t) atol(argv[1]) : 100000;

	run(count, 1024);
	run(count / 4, 4096);
	return 0;
}
