/* Realistic pods of exactly 1 or 4 KB, each with random values of its own that do not compress. */
#ifndef BENCH_PODS_H
#define BENCH_PODS_H

#include <vedette/vedette.h>

#define POD_SIZE_MAX 16384
#define POD_KEY_MAX 128
#define POD_FIELDS 8

struct pod {
	uint64_t    number; /* in name and uid */
	unsigned    namespace_number;
	unsigned    app;	 /* label app=app-00000 */
	unsigned    node;	 /* spec.nodeName */
	const char *phase;	 /* NULL: Running */
	bool	    without_uid; /* as a client writes it that leaves the uid to the server */
	/* of the JSON; at least 256, at most POD_SIZE_MAX. Below 900: only fields that selectors use */
	size_t size;
};

/* The fields declared by the built-in resource pods; spec.nodeName is the first. */
extern const struct vd_field_spec pod_fields[POD_FIELDS];

/* Spread as in a cluster: 100 pods to a namespace, 100 apps, 1000 nodes. */
struct pod pod_number(uint64_t number, size_t size);
/* Returns the JSON in text, exactly pod->size bytes. seed moves on. */
struct vd_bytes pod_json(char text[POD_SIZE_MAX], const struct pod *pod, uint64_t *seed);
/* "/registry/pods/ns-00001/web-7d4b9c6f5-0000001" */
struct vd_bytes pod_key(char text[POD_KEY_MAX], const struct pod *pod);
struct vd_bytes pod_namespace(char text[POD_KEY_MAX], const struct pod *pod);
struct vd_bytes pod_name(char text[POD_KEY_MAX], const struct pod *pod);

#endif
