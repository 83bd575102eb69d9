/* The pods of this node, as a log agent knows them: it adds labels and owners to the records of containers.
 *
 *   cc kube_informer.c $(pkg-config --cflags --libs vedette jansson) -o kube_informer
 *   echo "shop web-7f9c-x2x GET / 200" | NODE_NAME=worker-1 ./kube_informer [SERVER]
 *
 * Without SERVER the program uses the service account of its pod, or the kubeconfig. It reads lines
 * "NAMESPACE POD MESSAGE" and writes one record of JSON for each. Rights: list and watch on pods. */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vedette/kube.h>
#include <vedette/vedette.h>

/* Called when the connection or a watch stops or goes on, so that nothing stops silently. */
static void on_health(void *arg, const struct vd_kube_health *health)
{
	(void) arg;
	if (health->state == VD_KUBE_RETRYING || health->state == VD_KUBE_REMOVED)
		fprintf(stderr, "kube_informer: %s: %s\n", health->resource ? health->resource : "cluster",
			health->error.message);
}

static void on_remove(void *arg, struct vd_object *last_state, bool unknown_final_state)
{
	(void) arg;
	(void) unknown_final_state;
	fprintf(stderr, "kube_informer: pod %.*s is gone\n", (int) vd_object_name(last_state).size,
		(const char *) vd_object_name(last_state).data);
}

static json_t *labels_of(const struct vd_object *pod)
{
	json_t *labels = json_object();

	for (size_t i = 0; i < vd_object_label_count(pod); i++) {
		struct vd_pair label = vd_object_label(pod, i);

		json_object_setn_new(labels, label.key.data, label.key.size,
				     json_stringn(label.value.data, label.value.size));
	}
	return labels;
}

/* ["ReplicaSet/web-7f9c"]: labels are decoded already, other members are read from the object's JSON. */
static json_t *owners_of(const struct vd_object *pod)
{
	struct vd_bytes value = vd_kv_value(vd_object_kv(pod));
	json_t	       *object = json_loadb(value.data, value.size, 0, NULL), *owners = json_array(), *owner;
	size_t		i;

	json_array_foreach (json_object_get(json_object_get(object, "metadata"), "ownerReferences"), i, owner)
		json_array_append_new(owners,
				      json_sprintf("%s/%s", json_string_value(json_object_get(owner, "kind")),
						   json_string_value(json_object_get(owner, "name"))));
	json_decref(object);
	return owners;
}

static void write_record(struct vd_kube_informer *pods, const char *namespace_name, const char *name,
			 const char *message)
{
	struct vd_object *pod = vd_kube_informer_get(pods, vd_bytes_of(namespace_name), vd_bytes_of(name));
	json_t		 *facts = json_pack("{s:s,s:s}", "namespace", namespace_name, "pod", name), *record;
	char		 *text;

	if (pod) {
		json_object_set_new(facts, "labels", labels_of(pod));
		json_object_set_new(facts, "owners", owners_of(pod));
		vd_object_unref(pod);
	}
	record = json_pack("{s:s,s:o}", "log", message, "kubernetes", facts);
	text = json_dumps(record, JSON_COMPACT);
	puts(text ? text : "{}");
	fflush(stdout);
	free(text);
	json_decref(record);
}

static void read_lines(struct vd_kube_informer *pods)
{
	char line[65536];

	while (fgets(line, sizeof line, stdin)) {
		char *namespace_name = strtok(line, " \n"), *name = strtok(NULL, " \n"),
		     *message = strtok(NULL, "\n");

		if (name)
			write_record(pods, namespace_name, name, message ? message : "");
	}
}

static int run(struct vd_kube *kube, const char *node, struct vd_error *error)
{
	const struct vd_informer_handler handler = { .remove = on_remove };
	struct vd_kube_scope		 scope = { 0 };
	struct vd_kube_informer		*pods = NULL;
	char				 selector[300];
	int				 failed = 1;

	snprintf(selector, sizeof selector, "spec.nodeName=%s", node);
	scope.field_selector = vd_bytes_of(selector);
	if (vd_kube_informer_open(kube, "pods", &scope, &handler, &pods, error) != VD_OK)
		return 1;
	if (vd_kube_informer_synced_wait(pods, VD_SECONDS(60)) == VD_OK) {
		fprintf(stderr, "kube_informer: %zu pods of %s on %s\n", vd_kube_informer_count(pods),
			vd_kube_server(kube), node);
		read_lines(pods);
		failed = 0;
	} else {
		vd_error_set(error, VD_TIMEOUT, "no list of pods in 60 s");
	}
	vd_kube_informer_close_wait(pods);
	return failed;
}

int main(int argc, char **argv)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_error	       error = { 0 };
	struct vd_env	      *env = NULL;
	struct vd_kube	      *kube = NULL;
	const char	      *node = getenv("NODE_NAME"); /* in a pod: fieldRef spec.nodeName */
	int		       failed = 1;

	if (node == NULL) {
		fprintf(stderr, "kube_informer: NODE_NAME is not set\n");
		return 2;
	}
	options.server = argc > 1 ? argv[1] : NULL;
	options.changed = on_health;
	if (vd_env_new_threads(NULL, &env) != VD_OK)
		return 1;
	if (vd_kube_open(env, &options, &kube, &error) == VD_OK)
		failed = run(kube, node, &error);
	if (failed)
		fprintf(stderr, "kube_informer: %s\n", error.message);
	vd_kube_close_wait(kube);
	vd_env_free(env);
	return failed;
}
