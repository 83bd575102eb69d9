/* Time to validate and scan one object. One JSON line per case: bench_json [FILE...]; without files, two
 * generated pods. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "json_scan.h"
#include "k8s_proto.h"

#define ROUNDS 9

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (int64_t) now.tv_sec * 1000000000 + now.tv_nsec;
}

static size_t made_up_pod(char *text, size_t size, size_t wanted)
{
	size_t length = (size_t) snprintf(
		text, size,
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web-7d4b9c6f5-0000001\","
		"\"namespace\":\"ns-00001\","
		"\"uid\":\"55338d45-98ff-4b84-949d-000000000001\",\"resourceVersion\":\"10000000\","
		"\"creationTimestamp\":"
		"\"2026-05-28T20:26:40Z\",\"labels\":{\"app\":\"app-00001\",\"pod-template-hash\":"
		"\"7d4b9c6f5\",\"shard\":\"s01\"},"
		"\"ownerReferences\":[{\"apiVersion\":\"apps/"
		"v1\",\"kind\":\"ReplicaSet\",\"name\":\"web-7d4b9c6f5\",\"controller\":true}]},"
		"\"status\":{\"phase\":\"Running\",\"podIP\":\"10.1.2.3\"},\"spec\":{\"nodeName\":\"node-"
		"00001\",\"restartPolicy\":\"Always\","
		"\"containers\":[{\"name\":\"main\",\"image\":\"web:v2.1.4\",\"env\":[");

	for (unsigned i = 0; length + 80 < wanted; i++)
		length += (size_t) snprintf(text + length, size - length,
					    "%s{\"name\":\"SETTING_%u\",\"value\":\"%020u\"}", i ? "," : "",
					    i, i * 2654435761u);
	return length + (size_t) snprintf(text + length, size - length, "],\"resources\":{}}]}}");
}

static void report(const char *name, const char *operation, size_t size, int64_t best_ns, unsigned count)
{
	double ns = (double) best_ns / count;

	printf("{\"bench\":\"json\",\"case\":\"%s\",\"operation\":\"%s\",\"bytes\":%zu,\"ns\":%.1f,\"mb_per_"
	       "s\":%.0f}\n",
	       name, operation, size, ns, (double) size * 1000 / ns);
}

/* Converts a Pod to protobuf and back. Other JSON is skipped. */
static void measure_protobuf(const char *name, struct vd_bytes json, unsigned count)
{
	const struct vdi_k8s_message *pod = vdi_k8s_kind_find(vd_bytes_of("v1"), vd_bytes_of("Pod"));
	struct vdi_buffer	      proto, back;
	size_t			      mark;
	int64_t			      best[2] = { INT64_MAX, INT64_MAX };
	bool			      bad = false;

	vdi_buffer_init(&proto, 1 << 24);
	vdi_buffer_init(&back, 1 << 24);
	for (int round = 0; round < ROUNDS && !bad; round++) {
		int64_t start = now_ns();

		for (unsigned i = 0; i < count && !bad; i++) {
			vdi_buffer_clear(&proto);
			mark = vdi_k8s_proto_envelope_begin(&proto, vd_bytes_of("v1"), vd_bytes_of("Pod"));
			bad = vdi_k8s_proto_from_json(pod, json, NULL, &proto, NULL) != VD_OK;
			vdi_k8s_proto_envelope_end(&proto, mark);
		}
		best[0] = VDI_MIN(best[0], now_ns() - start);
		start = now_ns();
		for (unsigned i = 0; i < count && !bad; i++) {
			vdi_buffer_clear(&back);
			bad = vdi_k8s_proto_to_json(vdi_buffer_bytes(&proto), &back, NULL) != VD_OK;
		}
		best[1] = VDI_MIN(best[1], now_ns() - start);
	}
	if (!bad) {
		report(name, "to protobuf", proto.size, best[0], count);
		report(name, "from protobuf", back.size, best[1], count);
	}
	vdi_buffer_fini(&proto);
	vdi_buffer_fini(&back);
}

static int measure(const char *name, struct vd_bytes json)
{
	const struct vd_bytes  paths[] = { vd_bytes_of("metadata.name"), vd_bytes_of("spec.nodeName"),
					   vd_bytes_of("status.phase"), vd_bytes_of("spec.containers") };
	unsigned	       count = (unsigned) (20000000 / (json.size + 100)) + 1;
	struct vdi_json_plan  *plan;
	struct vdi_json_object object;
	struct vd_error	       error;
	char		      *copy = malloc(json.size + 1);
	int64_t		       best[3] = { INT64_MAX, INT64_MAX, INT64_MAX };
	int		       bad = 0;

	if (copy == NULL || vdi_json_plan_new(paths, VDI_ARRAY_SIZE(paths), &plan, NULL) != VD_OK)
		return 1;
	if (vdi_json_object_init(&object, plan) != VD_OK)
		return 1;
	if (vdi_json_scan(json, NULL, &object, &error) != VD_OK) {
		fprintf(stderr, "%s: %s\n", name, error.message);
		bad = 1;
	}
	for (int round = 0; round < ROUNDS && !bad; round++) {
		int64_t start = now_ns();

		for (unsigned i = 0; i < count; i++)
			bad |= vdi_json_scan(json, NULL, &object, NULL) != VD_OK;
		best[0] = VDI_MIN(best[0], now_ns() - start);
		start = now_ns();
		for (unsigned i = 0; i < count; i++)
			bad |= vdi_json_validate(json, NULL, NULL) != VD_OK;
		best[1] = VDI_MIN(best[1], now_ns() - start);
		start = now_ns();
		for (unsigned i = 0; i < count; i++)
			bad |= vdi_json_minify(json, copy) == 0;
		best[2] = VDI_MIN(best[2], now_ns() - start);
	}
	if (!bad) {
		report(name, "scan", json.size, best[0], count);
		report(name, "validate", json.size, best[1], count);
		report(name, "minify", json.size, best[2], count);
		measure_protobuf(name, json, count);
	}
	vdi_json_object_fini(&object);
	vdi_json_plan_free(plan);
	free(copy);
	return bad;
}

static int measure_file(const char *path)
{
	const char *slash = strrchr(path, '/');
	FILE	   *file = fopen(path, "rb");
	char	   *text = malloc(1 << 24);
	size_t	    size;
	int	    bad;

	if (file == NULL || text == NULL) {
		perror(path);
		free(text);
		if (file)
			fclose(file);
		return 1;
	}
	size = fread(text, 1, 1 << 24, file);
	fclose(file);
	bad = measure(slash ? slash + 1 : path, (struct vd_bytes) { text, size });
	free(text);
	return bad;
}

int main(int argc, char **argv)
{
	char text[8192];
	int  bad = 0;

	for (int i = 1; i < argc; i++)
		bad |= measure_file(argv[i]);
	if (argc > 1)
		return bad;
	bad |= measure("pod1k", (struct vd_bytes) { text, made_up_pod(text, sizeof text, 1024) });
	bad |= measure("pod4k", (struct vd_bytes) { text, made_up_pod(text, sizeof text, 4096) });
	return bad;
}
