/* The JSON of a pod is assembled with snprintf; random text fills it up to the exact size. */
#include "pods.h"

#include <stdio.h>
#include <stdlib.h>

#include "measure.h"

const struct vd_field_spec pod_fields[POD_FIELDS] = {
	{ "spec.nodeName", ".spec.nodeName", NULL },
	{ "status.phase", ".status.phase", NULL },
	{ "spec.serviceAccountName", ".spec.serviceAccountName", NULL },
	{ "spec.restartPolicy", ".spec.restartPolicy", NULL },
	{ "spec.schedulerName", ".spec.schedulerName", NULL },
	{ "spec.hostNetwork", ".spec.hostNetwork", "false" },
	{ "status.podIP", ".status.podIP", NULL },
	{ "status.nominatedNodeName", ".status.nominatedNodeName", NULL },
};

struct pod pod_number(uint64_t number, size_t size)
{
	return (struct pod) { .number = number,
			      .namespace_number = (unsigned) (number / 100),
			      .app = (unsigned) (number % 100),
			      .node = (unsigned) (number % 1000),
			      .size = size };
}

static size_t write_random(char *text, size_t size, uint64_t *seed)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < size;) {
		uint64_t bits = measure_random(seed);

		for (unsigned j = 0; j < 10 && i < size; j++, bits >>= 6)
			text[i++] = letters[bits & 63];
	}
	return size;
}

static struct vd_bytes small_json(char text[POD_SIZE_MAX], const struct pod *pod, uint64_t *seed)
{
	char   tail[128];
	size_t tail_size =
		(size_t) snprintf(tail, sizeof tail,
				  "\"}},\"spec\":{\"nodeName\":\"node-%05u\"},\"status\":{\"phase\":\"%s\"}}",
				  pod->node, pod->phase ? pod->phase : "Running");
	size_t size = (size_t) snprintf(text, POD_SIZE_MAX,
					"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
					"\"web-7d4b9c6f5-%07llu\",\"namespace\":\"ns-%05u\","
					"\"labels\":{\"app\":\"app-%05u\"},\"annotations\":{\"a\":\"",
					(unsigned long long) pod->number, pod->namespace_number, pod->app);

	if (pod->size < size + tail_size) {
		fprintf(stderr, "a pod cannot have %zu bytes\n", pod->size);
		exit(1);
	}
	size += write_random(text + size, pod->size - size - tail_size, seed);
	memcpy(text + size, tail, tail_size);
	return (struct vd_bytes) { text, pod->size };
}

static struct vd_bytes large_json(char text[POD_SIZE_MAX], const struct pod *pod, uint64_t *seed)
{
	static const char tail_format[] = "\"},\"ownerReferences\":[{\"apiVersion\":\"apps/"
					  "v1\",\"kind\":\"ReplicaSet\",\"name\":\"web-7d4b9c6f5\",\"uid\":"
					  "\"%016llx-%04x\",\"controller\":true}]},\"spec\":{\"containers\":["
					  "{\"name\":\"main\",\"image\":\"web:v2.1.4\","
					  "\"resources\":{}}],\"restartPolicy\":\"Always\",\"nodeName\":"
					  "\"node-%05u\"},\"status\":{\"phase\":\"%s\",\"conditions\":["
					  "{\"type\":\"Ready\",\"status\":\"True\",\"lastProbeTime\":null,"
					  "\"lastTransitionTime\":\"2026-05-28T20:26:40Z\"}],\"podIP\":"
					  "\"10.%u.%u.%u\"}}";
	uint64_t	  address = measure_random(seed);
	char		  tail[1024];
	size_t		  tail_size =
		(size_t) snprintf(tail, sizeof tail, tail_format, (unsigned long long) measure_random(seed),
				  (unsigned) (address >> 24 & 0xffff), pod->node,
				  pod->phase ? pod->phase : "Running", (unsigned) (address & 255),
				  (unsigned) (address >> 8 & 255), (unsigned) (address >> 16 & 255));
	char   uid[64] = "";
	size_t size;

	snprintf(uid, sizeof uid, "\"uid\":\"%016llx-%012llx\",", (unsigned long long) measure_random(seed),
		 (unsigned long long) pod->number);
	size = (size_t) snprintf(text, POD_SIZE_MAX,
				 "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"web-"
				 "7d4b9c6f5-%07llu\",\"namespace\":"
				 "\"ns-%05u\",%s\"creationTimestamp\":\"2026-05-28T20:26:40Z\",\"labels\":{"
				 "\"app\":\"app-%05u\",\"pod-template-hash\":\"7d4b9c6f5\",\"shard\":\"s%"
				 "02u\"},\"annotations\":{"
				 "\"checksum/config\":\"",
				 (unsigned long long) pod->number, pod->namespace_number,
				 pod->without_uid ? "" : uid, pod->app, (unsigned) (pod->number % 100));

	if (pod->size > POD_SIZE_MAX || pod->size < size + tail_size) {
		fprintf(stderr, "a pod cannot have %zu bytes\n", pod->size);
		exit(1);
	}
	size += write_random(text + size, pod->size - size - tail_size, seed);
	memcpy(text + size, tail, tail_size);
	return (struct vd_bytes) { text, pod->size };
}

struct vd_bytes pod_json(char text[POD_SIZE_MAX], const struct pod *pod, uint64_t *seed)
{
	if (pod->size < 900)
		return small_json(text, pod, seed);
	return large_json(text, pod, seed);
}

struct vd_bytes pod_key(char text[POD_KEY_MAX], const struct pod *pod)
{
	return (struct vd_bytes) {
		text, (size_t) snprintf(text, POD_KEY_MAX, "/registry/pods/ns-%05u/web-7d4b9c6f5-%07llu",
					pod->namespace_number, (unsigned long long) pod->number)
	};
}

struct vd_bytes pod_namespace(char text[POD_KEY_MAX], const struct pod *pod)
{
	return (struct vd_bytes) { text,
				   (size_t) snprintf(text, POD_KEY_MAX, "ns-%05u", pod->namespace_number) };
}

struct vd_bytes pod_name(char text[POD_KEY_MAX], const struct pod *pod)
{
	return (struct vd_bytes) { text, (size_t) snprintf(text, POD_KEY_MAX, "web-7d4b9c6f5-%07llu",
							   (unsigned long long) pod->number) };
}
