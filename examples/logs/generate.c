/* Writes the sample logs: a small cluster that lives through something. The same program writes the same
 * logs, always.
 *
 * 	generate FOLDER		writes FOLDER/rolling-update.ndjson.zst and the others
 * 	generate --check FOLDER	says what in FOLDER differs from what would be written
 *
 * Each begins with a snapshot of the cluster: three nodes, two namespaces, a deployment "web" of six pods,
 * and, where the story wants it, more. Then every change that a real cluster would have made, a transaction
 * each, with its time.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "hash.h"
#include "log_steps.h"
#include "log_writer.h"

#define FIRST_REVISION 1000
#define PODS_MAX 64
#define NODES 3

struct pod {
	char	    namespace_name[32], name[48], app[24], hash[16];
	int	    node; /* 0: not scheduled; from 1 */
	const char *phase;
	bool	    ready, deleting;
	vd_wall	    created;
};

struct story {
	struct vdi_log_writer *writer;
	vd_rev		       revision;
	vd_wall		       now;
	bool		       in_snapshot;
	struct pod	       pods[PODS_MAX];
	unsigned	       pod_count, named;
};

static void must(vd_status status, const struct vd_error *error)
{
	if (status == VD_OK)
		return;
	(void) fprintf(stderr, "generate: %s\n",
		       error->message[0] ? error->message : vd_status_sentence(status));
	exit(1);
}

/* ---- Records ---- */

static void change(struct story *story, bool is_delete, const char *key, const char *value)
{
	struct vd_error error = { 0 };
	struct vd_kv   *kv;

	must(vd_kv_new(vd_bytes_of(key), vd_bytes_of(value), &kv), &error);
	kv->mod_rev = ++story->revision;
	must(vdi_log_writer_change(story->writer, is_delete, kv, story->now, &error), &error);
	if (!story->in_snapshot)
		must(vdi_log_writer_commit(story->writer, story->revision, &error), &error);
	vd_kv_unref(kv);
}

__attribute__((format(printf, 3, 4))) static void put(struct story *story, const char *key,
						      const char *format, ...)
{
	char	value[4096];
	va_list arguments;

	va_start(arguments, format);
	(void) vsnprintf(value, sizeof value, format, arguments);
	va_end(arguments);
	change(story, false, key, value);
}

static void drop(struct story *story, const char *key)
{
	change(story, true, key, "");
}

static void wait_ms(struct story *story, int64_t milliseconds)
{
	story->now.ns += milliseconds * 1000000;
}

/* ---- Metadata ---- */

static const char *time_text(vd_wall time)
{
	static char text[4][VDI_LOG_TIME_SIZE];
	static int  next;
	char	   *at = text[next++ % 4];

	time.ns -= time.ns % 1000000000;
	vdi_log_time_format(time, at);
	return at;
}

/* A uid that belongs to a name. */
static const char *uid_of(const char *kind, const char *name)
{
	static char text[4][40];
	static int  next;
	char	   *at = text[next++ % 4], whole[128];
	uint64_t    high, low;

	(void) snprintf(whole, sizeof whole, "%s/%s", kind, name);
	high = vdi_hash_bytes(vd_bytes_of(whole), 1);
	low = vdi_hash_bytes(vd_bytes_of(whole), 2);
	(void) snprintf(at, 40, "%08x-%04x-4%03x-%04x-%012llx", (unsigned) (high >> 32),
			(unsigned) (high >> 16 & 0xffff), (unsigned) (high & 0xfff),
			(unsigned) (low >> 48 & 0x3fff) | 0x8000,
			(unsigned long long) (low & 0xffffffffffff));
	return at;
}

/* ---- Objects ---- */

static void put_namespace(struct story *story, const char *name, const char *phase)
{
	char key[96];

	(void) snprintf(key, sizeof key, "/registry/namespaces/%s", name);
	put(story, key,
	    "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\","
	    "\"creationTimestamp\":\"2026-05-28T20:00:00Z\"%s%s%s,"
	    "\"labels\":{\"kubernetes.io/"
	    "metadata.name\":\"%s\"}},\"spec\":{\"finalizers\":[\"kubernetes\"]},\"status\":{\"phase\":\"%"
	    "s\"}}",
	    name, uid_of("namespace", name), strcmp(phase, "Active") ? ",\"deletionTimestamp\":\"" : "",
	    strcmp(phase, "Active") ? time_text(story->now) : "", strcmp(phase, "Active") ? "\"" : "", name,
	    phase);
}

static void put_node(struct story *story, int number, const char *ready)
{
	char key[64], name[16];
	bool lost = strcmp(ready, "True") != 0;

	(void) snprintf(name, sizeof name, "node-%d", number);
	(void) snprintf(key, sizeof key, "/registry/minions/%s", name);
	put(story, key,
	    "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\","
	    "\"creationTimestamp\":\"2026-05-28T20:00:00Z\",\"labels\":{"
	    "\"kubernetes.io/hostname\":\"%s\",\"kubernetes.io/os\":\"linux\",\"topology.kubernetes.io/"
	    "zone\":\"z%d\"}},\"spec\":{\"podCIDR\":\"10.1.%d.0/24\"%s},"
	    "\"status\":{\"capacity\":{\"cpu\":\"8\",\"memory\":\"32Gi\",\"pods\":\"110\"},\"conditions\":[{"
	    "\"type\":\"Ready\",\"status\":\"%s\",\"reason\":\"%s\","
	    "\"lastHeartbeatTime\":\"%s\"}],\"nodeInfo\":{\"kubeletVersion\":\"v1.36.3\",\"osImage\":"
	    "\"Debian GNU/Linux 12\"}}}",
	    name, uid_of("node", name), name, number % 3, number,
	    lost ? ",\"taints\":[{\"key\":\"node.kubernetes.io/unreachable\",\"effect\":\"NoExecute\"}]" : "",
	    ready, lost ? "NodeStatusUnknown" : "KubeletReady", time_text(story->now));
}

static void put_lease(struct story *story, int number)
{
	char key[96], name[24];

	(void) snprintf(name, sizeof name, "node-%d", number);
	(void) snprintf(key, sizeof key, "/registry/leases/kube-node-lease/%s", name);
	put(story, key,
	    "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/"
	    "v1\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"kube-node-lease\",\"uid\":\"%s\","
	    "\"creationTimestamp\":\"2026-05-28T20:00:00Z\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
	    "\"kind\":\"Node\",\"name\":\"%s\",\"uid\":\"%s\"}]},"
	    "\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":40,\"renewTime\":\"%s\"}}",
	    name, uid_of("lease", name), name, uid_of("node", name), name, time_text(story->now));
}

static void put_deployment(struct story *story, const char *image, int updated, int ready)
{
	put(story, "/registry/deployments/shop/web",
	    "{\"kind\":\"Deployment\",\"apiVersion\":\"apps/"
	    "v1\",\"metadata\":{\"name\":\"web\",\"namespace\":\"shop\",\"uid\":\"%s\",\"generation\":%d,"
	    "\"creationTimestamp\":\"2026-05-28T20:10:00Z\",\"labels\":{\"app\":\"web\"}},\"spec\":{"
	    "\"replicas\":6,\"selector\":{\"matchLabels\":{\"app\":\"web\"}},"
	    "\"strategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":{\"maxSurge\":1,\"maxUnavailable\":0}"
	    "},\"template\":{\"metadata\":{\"labels\":{\"app\":"
	    "\"web\"}},\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"%s\"}]}}},\"status\":{"
	    "\"observedGeneration\":%d,\"replicas\":6,"
	    "\"updatedReplicas\":%d,\"readyReplicas\":%d}}",
	    uid_of("deployment", "web"), image[5] - '0', image, image[5] - '0', updated, ready);
}

static void put_replicaset(struct story *story, const char *hash, const char *image, int replicas, int ready)
{
	char key[96];

	(void) snprintf(key, sizeof key, "/registry/replicasets/shop/web-%s", hash);
	put(story, key,
	    "{\"kind\":\"ReplicaSet\",\"apiVersion\":\"apps/"
	    "v1\",\"metadata\":{\"name\":\"web-%s\",\"namespace\":\"shop\",\"uid\":\"%s\",\"labels\":{"
	    "\"app\":\"web\","
	    "\"pod-template-hash\":\"%s\"},\"ownerReferences\":[{\"apiVersion\":\"apps/"
	    "v1\",\"kind\":\"Deployment\",\"name\":\"web\",\"uid\":\"%s\","
	    "\"controller\":true}]},\"spec\":{\"replicas\":%d,\"selector\":{\"matchLabels\":{\"app\":\"web\","
	    "\"pod-template-hash\":\"%s\"}},\"template\":{"
	    "\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"%s\"}]}}},\"status\":{\"replicas\":%d,"
	    "\"readyReplicas\":%d}}",
	    hash, uid_of("replicaset", hash), hash, uid_of("deployment", "web"), replicas, hash, image,
	    replicas, ready);
}

/* ---- Pods ---- */

static void put_pod(struct story *story, const struct pod *pod)
{
	char key[128], node[40] = "", deletion[80] = "";

	(void) snprintf(key, sizeof key, "/registry/pods/%s/%s", pod->namespace_name, pod->name);
	if (pod->node)
		(void) snprintf(node, sizeof node, "\"nodeName\":\"node-%d\",", pod->node);
	if (pod->deleting)
		(void) snprintf(deletion, sizeof deletion,
				",\"deletionGracePeriodSeconds\":30,\"deletionTimestamp\":\"%s\"",
				time_text(story->now));
	put(story, key,
	    "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\","
	    "\"uid\":\"%s\",\"creationTimestamp\":\"%s\"%s,\"labels\":{"
	    "\"app\":\"%s\",\"pod-template-hash\":\"%s\"},\"ownerReferences\":[{\"apiVersion\":\"apps/"
	    "v1\",\"kind\":\"ReplicaSet\",\"name\":\"%s-%s\",\"uid\":\"%s\","
	    "\"controller\":true}]},\"spec\":{%s\"containers\":[{\"name\":\"main\",\"image\":\"%s\","
	    "\"resources\":{\"requests\":{\"cpu\":\"100m\"}}}],"
	    "\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30},\"status\":{\"phase\":\"%s\","
	    "\"qosClass\":\"Burstable\",\"conditions\":[{\"type\":"
	    "\"PodScheduled\",\"status\":\"%s\"},{\"type\":\"Ready\",\"status\":\"%s\"}]}}",
	    pod->name, pod->namespace_name, uid_of("pod", pod->name), time_text(pod->created), deletion,
	    pod->app, pod->hash, pod->app, pod->hash, uid_of("replicaset", pod->hash), node, pod->app,
	    pod->phase, pod->node ? "True" : "False", pod->ready ? "True" : "False");
}

static struct pod *new_pod(struct story *story, const char *namespace_name, const char *app, const char *hash)
{
	struct pod *pod = &story->pods[story->pod_count++];

	*pod = (struct pod) { .phase = "Pending", .created = story->now };
	(void) snprintf(pod->namespace_name, sizeof pod->namespace_name, "%s", namespace_name);
	(void) snprintf(pod->app, sizeof pod->app, "%s", app);
	(void) snprintf(pod->hash, sizeof pod->hash, "%s", hash);
	(void) snprintf(pod->name, sizeof pod->name, "%s-%s-%05x", app, hash,
			(unsigned) (vdi_hash_bytes(vd_bytes_of(hash), ++story->named) & 0xfffff));
	return pod;
}

static void start_pod(struct story *story, struct pod *pod, int node)
{
	put_pod(story, pod);
	wait_ms(story, 40);
	pod->node = node;
	put_pod(story, pod);
	wait_ms(story, 900);
	pod->phase = "Running";
	put_pod(story, pod);
	wait_ms(story, 1500);
	pod->ready = true;
	put_pod(story, pod);
}

static void mark_pod(struct story *story, struct pod *pod)
{
	pod->deleting = true;
	put_pod(story, pod);
	wait_ms(story, 120);
	pod->ready = false;
	put_pod(story, pod);
}

static void drop_pod(struct story *story, struct pod *pod)
{
	char key[128];

	(void) snprintf(key, sizeof key, "/registry/pods/%s/%s", pod->namespace_name, pod->name);
	drop(story, key);
	*pod = story->pods[--story->pod_count];
}

static struct pod *pod_of(struct story *story, const char *hash, int node)
{
	for (unsigned i = 0; i < story->pod_count; i++)
		if (strcmp(story->pods[i].hash, hash) == 0 && (node == 0 || story->pods[i].node == node))
			return &story->pods[i];
	return NULL;
}

/* ---- The beginning of every story ---- */

static void begin(struct story *story, int nodes)
{
	struct vd_error error = { 0 };

	story->revision = FIRST_REVISION;
	story->now.ns = 1780000000000000000;
	must(vdi_log_writer_snapshot_begin(story->writer, FIRST_REVISION + 200, &error), &error);
	story->in_snapshot = true;
	put_namespace(story, "default", "Active");
	put_namespace(story, "kube-node-lease", "Active");
	put_namespace(story, "shop", "Active");
	for (int node = 1; node <= nodes; node++) {
		put_node(story, node, "True");
		put_lease(story, node);
	}
	put_deployment(story, "web:v1", 6, 6);
	put_replicaset(story, "5d9c7b6f4", "web:v1", 6, 6);
	for (int i = 0; i < 6; i++) {
		struct pod *pod = new_pod(story, "shop", "web", "5d9c7b6f4");

		pod->node = i % NODES + 1;
		pod->phase = "Running";
		pod->ready = true;
		put_pod(story, pod);
	}
}

static void end_snapshot(struct story *story)
{
	struct vd_error error = { 0 };

	must(vdi_log_writer_snapshot_end(story->writer, FIRST_REVISION + 200, &error), &error);
	story->in_snapshot = false;
	story->revision = FIRST_REVISION + 200;
}

/* ---- The stories ---- */

static void rolling_update(struct story *story)
{
	begin(story, NODES);
	end_snapshot(story);
	wait_ms(story, 5000);
	put_deployment(story, "web:v2", 0, 6);
	for (int i = 0; i < 6; i++) {
		struct pod *fresh = new_pod(story, "shop", "web", "7f8d65c9b");
		struct pod *old;

		put_replicaset(story, "7f8d65c9b", "web:v2", i + 1, i);
		start_pod(story, fresh, i % NODES + 1);
		put_replicaset(story, "7f8d65c9b", "web:v2", i + 1, i + 1);
		put_deployment(story, "web:v2", i + 1, 6);
		put_replicaset(story, "5d9c7b6f4", "web:v1", 5 - i, 6 - i);
		old = pod_of(story, "5d9c7b6f4", 0);
		mark_pod(story, old);
		wait_ms(story, 1000);
		if (i % 2 == 0)
			put_lease(story, i % NODES + 1);
		drop_pod(story, old);
		put_replicaset(story, "5d9c7b6f4", "web:v1", 5 - i, 5 - i);
	}
	wait_ms(story, 3000);
	put_deployment(story, "web:v2", 6, 6);
}

/* node-2 is silent for two minutes, loses its pods, and returns. */
static void node_failure(struct story *story)
{
	struct pod *pod;

	begin(story, NODES);
	end_snapshot(story);
	for (int second = 0; second < 40; second += 10, wait_ms(story, 10000))
		for (int node = 1; node <= NODES; node++)
			if (node != 2)
				put_lease(story, node);
	put_node(story, 2, "Unknown");
	for (unsigned i = 0; i < story->pod_count; i++)
		if (story->pods[i].node == 2) {
			story->pods[i].ready = false;
			put_pod(story, &story->pods[i]);
		}
	for (int second = 0; second < 60; second += 10, wait_ms(story, 10000)) {
		put_lease(story, 1);
		put_lease(story, 3);
	}
	while ((pod = pod_of(story, "5d9c7b6f4", 2)) != NULL) {
		mark_pod(story, pod);
		drop_pod(story, pod);
		put_replicaset(story, "5d9c7b6f4", "web:v1", 6, 5);
		pod = new_pod(story, "shop", "web", "5d9c7b6f4");
		start_pod(story, pod, story->named % 2 ? 1 : 3);
		put_replicaset(story, "5d9c7b6f4", "web:v1", 6, 6);
	}
	put_lease(story, 2);
	put_node(story, 2, "True");
	for (int second = 0; second < 30; second += 10, wait_ms(story, 10000))
		for (int node = 1; node <= NODES; node++)
			put_lease(story, node);
}

/* A namespace with thirty config maps and twelve pods goes, in the order in which the namespace controller
 * takes it apart. */
static void namespace_deletion(struct story *story)
{
	char key[96];

	begin(story, NODES);
	put_namespace(story, "trial", "Active");
	for (int i = 0; i < 30; i++) {
		(void) snprintf(key, sizeof key, "/registry/configmaps/trial/settings-%02d", i);
		put(story, key,
		    "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"settings-%02d\","
		    "\"namespace\":\"trial\",\"uid\":\"%s\","
		    "\"creationTimestamp\":\"2026-05-28T20:20:00Z\"},\"data\":{\"number\":\"%d\",\"text\":"
		    "\"what the trial needs to know\"}}",
		    i, uid_of("configmap", key), i);
	}
	for (int i = 0; i < 12; i++) {
		struct pod *pod = new_pod(story, "trial", "batch", "6b7f9d5c8");

		pod->node = i % NODES + 1;
		pod->phase = "Running";
		pod->ready = true;
		put_pod(story, pod);
	}
	end_snapshot(story);
	wait_ms(story, 2000);
	put_namespace(story, "trial", "Terminating");
	for (int i = 0; i < 30; i++) {
		wait_ms(story, 7);
		(void) snprintf(key, sizeof key, "/registry/configmaps/trial/settings-%02d", i);
		drop(story, key);
		if (i % 10 == 3)
			put_lease(story, i / 10 + 1);
	}
	for (unsigned i = 0; i < story->pod_count; i++)
		if (strcmp(story->pods[i].namespace_name, "trial") == 0) {
			mark_pod(story, &story->pods[i]);
			wait_ms(story, 15);
		}
	for (struct pod *pod; (pod = pod_of(story, "6b7f9d5c8", 0)) != NULL; wait_ms(story, 300))
		drop_pod(story, pod);
	put_namespace(story, "trial", "Terminating");
	drop(story, "/registry/namespaces/trial");
}

/* Eighty nodes renew their leases every ten seconds for two minutes, and hardly anything else happens. */
static void lease_storm(struct story *story)
{
	begin(story, 80);
	end_snapshot(story);
	for (int round = 0; round < 12; round++) {
		for (int node = 1; node <= 80; node++, wait_ms(story, 125))
			put_lease(story, node);
		if (round % 4 == 1)
			put_node(story, round * 6 + 1, "True");
	}
}

/* ---- Files ---- */

static const struct {
	const char *name;
	void (*tell)(struct story *story);
} stories[] = { { "rolling-update", rolling_update },
		{ "node-failure", node_failure },
		{ "namespace-deletion", namespace_deletion },
		{ "lease-storm", lease_storm } };

static void write_story(const char *path, void (*tell)(struct story *story))
{
	struct vdi_log_writer_options options = { .path = path, .source = "examples/logs/generate.c" };
	struct vd_error		      error = { 0 };
	struct story		      story = { 0 };

	(void) unlink(path);
	must(vdi_log_writer_open(&options, &story.writer, NULL, &error), &error);
	tell(&story);
	must(vdi_log_writer_close(story.writer, &error), &error);
}

static bool same_change(const struct vdi_log_change *a, const struct vdi_log_change *b)
{
	return a->is_delete == b->is_delete && a->kv->mod_rev == b->kv->mod_rev &&
	       vd_bytes_equal(vd_kv_key(a->kv), vd_kv_key(b->kv)) &&
	       vd_bytes_equal(vd_kv_value(a->kv), vd_kv_value(b->kv));
}

static bool same_step(const struct vdi_log_step *a, const struct vdi_log_step *b)
{
	if (a->kind != b->kind || a->revision != b->revision || a->count != b->count ||
	    a->time.ns != b->time.ns)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (!same_change(&a->changes[i], &b->changes[i]))
			return false;
	return true;
}

static bool same_log(const char *path, const char *other)
{
	struct vdi_log_steps *logs[2];
	struct vdi_log_step   steps[2];
	struct vd_error	      error = { 0 };
	vd_status	      status[2];
	bool		      same;

	must(vdi_log_steps_open(path, &logs[0], &error), &error);
	must(vdi_log_steps_open(other, &logs[1], &error), &error);
	do {
		for (int i = 0; i < 2; i++)
			status[i] = vdi_log_steps_next(logs[i], &steps[i], &error);
		same = status[0] == status[1] && (status[0] != VD_OK || same_step(&steps[0], &steps[1]));
	} while (same && status[0] == VD_OK);
	if (!same)
		(void) fprintf(stderr,
			       "%s differs from what examples/logs/generate.c writes, at revision %lld\n",
			       path, (long long) steps[0].revision);
	vdi_log_steps_close(logs[0]);
	vdi_log_steps_close(logs[1]);
	return same;
}

int main(int argc, char **argv)
{
	bool checks = argc == 3 && strcmp(argv[1], "--check") == 0, same = true;
	char path[4096], fresh[] = "/tmp/vedette-logs-XXXXXX", written[64] = "";

	if (argc != 2 + checks || (checks && mkdtemp(fresh) == NULL)) {
		(void) fprintf(stderr, "usage: generate [--check] FOLDER\n");
		return 2;
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(stories); i++) {
		(void) snprintf(path, sizeof path, "%s/%s.ndjson.zst", argv[argc - 1], stories[i].name);
		if (!checks) {
			write_story(path, stories[i].tell);
			continue;
		}
		(void) snprintf(written, sizeof written, "%s/log.zst", fresh);
		write_story(written, stories[i].tell);
		same &= same_log(path, written);
		(void) unlink(written);
	}
	if (checks)
		(void) rmdir(fresh);
	return same ? 0 : 1;
}
