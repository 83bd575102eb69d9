/* A small operator: for each Website (kube_controller.yaml) it keeps a ConfigMap with the page.
 *
 *   cc kube_controller.c $(pkg-config --cflags --libs vedette jansson) -o kube_controller
 *   kubectl apply -f kube_controller.yaml && ./kube_controller [SERVER]
 *
 * Informers put the keys of changed Websites and ConfigMaps into a work queue. A worker of the leader
 * compares desired and cached state and makes at most one change, whose event queues the key again:
 *
 *   no finalizer -> add it          ConfigMap missing or different -> write it          status -> write it
 *   being deleted: ConfigMap exists -> delete it          finalizer -> remove it
 */
#include <jansson.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vedette/kube.h>
#include <vedette/kube_helpers.h>
#include <vedette/leader_election.h>
#include <vedette/vedette.h>
#include <vedette/work_queue.h>

#define FINALIZER "example.com/website"
#define MANAGED_BY "website-controller"

static const struct vd_kube_resource websites_resource = { "example.com", "v1", "websites", "Website",
							   false };
static const struct vd_kube_resource config_maps_resource = { "", "v1", "configmaps", "ConfigMap", false };

struct controller {
	struct vd_env		  *env;
	struct vd_kube		  *kube;
	struct vd_work_queue	  *queue;
	struct vd_kube_informer	  *websites, *config_maps;
	struct vd_leader_election *election;
};

static sem_t	     stop;
static volatile bool is_stopped;

/* From any thread, and from a signal's handler. */
static void end(int number)
{
	(void) number;
	is_stopped = true;
	sem_post(&stop);
}

/* ---- One change ---- */

struct job {
	struct controller *controller;
	struct vd_work	  *work;
	char		   namespace_name[64], name[254];
	json_t		  *site, *config_map; /* cached; config_map NULL: none */
	const char	  *doing;	      /* for messages */
	/* Changes an object for vd_kube_update; false: it is as it should be. */
	bool (*change)(struct job *job, json_t *object);
};

static void finish(struct job *job, enum vd_work_result result)
{
	vd_work_finish(job->work, result, (vd_dur) { 0 });
	json_decref(job->site);
	json_decref(job->config_map);
	free(job);
}

static void on_answer(void *arg, vd_status status, const struct vd_kube_answer *answer,
		      const struct vd_error *error)
{
	struct job *job = arg;

	(void) answer;
	if (status == VD_OK)
		printf("%s/%s: %s\n", job->namespace_name, job->name, job->doing);
	else
		fprintf(stderr, "kube_controller: %s/%s: not %s: %s\n", job->namespace_name, job->name,
			job->doing, error->message);
	finish(job, status == VD_OK ? VD_WORK_DONE : VD_WORK_RETRY);
}

/* The work is finished by the answer, or here if there will be none. */
static void send(struct job *job, const char *doing, const char *method, const char *name, const char *body)
{
	struct vd_kube_call call = VD_KUBE_CALL_INIT;
	char		    path[1024];

	vd_kube_path(&config_maps_resource, vd_bytes_of(job->namespace_name), vd_bytes_of(name), path,
		     sizeof path);
	job->doing = doing;
	call.method = method;
	call.path = path;
	call.body = vd_bytes_of(body);
	if (vd_kube_request(job->controller->kube, &call, on_answer, job) != VD_OK)
		finish(job, VD_WORK_RETRY);
}

static vd_status edit(void *arg, struct vd_bytes object, struct vd_blob **ret_object)
{
	struct job *job = arg;
	json_t	   *tree = json_loadb(object.data, object.size, 0, NULL);
	char	   *text;
	vd_status   status = VD_OK;

	*ret_object = NULL;
	if (tree && job->change(job, tree)) {
		text = json_dumps(tree, JSON_COMPACT);
		status = text ? vd_blob_new(vd_bytes_of(text), ret_object) : VD_NOMEM;
		free(text);
	}
	json_decref(tree);
	return tree ? status : VD_UNDECODABLE;
}

static void update(struct job *job, const char *doing, const struct vd_kube_resource *resource,
		   const char *subresource, bool (*change)(struct job *job, json_t *object))
{
	struct vd_kube_update request = VD_KUBE_UPDATE_INIT;

	job->doing = doing;
	job->change = change;
	request.resource = resource;
	request.namespace_name = vd_bytes_of(job->namespace_name);
	request.name = vd_bytes_of(job->name);
	request.subresource = subresource;
	request.edit = edit;
	request.edit_arg = job;
	if (vd_kube_update(job->controller->kube, &request, on_answer, job) != VD_OK)
		finish(job, VD_WORK_RETRY);
}

/* ---- The desired state ---- */

static json_t *metadata_of(json_t *object)
{
	return json_object_get(object, "metadata");
}

static json_t *data_of(const struct job *job)
{
	json_t *page = json_object_get(json_object_get(job->site, "spec"), "page");

	return json_pack("{s:s}", "index.html", json_is_string(page) ? json_string_value(page) : "");
}

/* Index of our finalizer; -1: none. */
static int finalizer_at(json_t *object)
{
	json_t *finalizer;
	size_t	i;

	json_array_foreach (json_object_get(metadata_of(object), "finalizers"), i, finalizer)
		if (json_is_string(finalizer) && strcmp(json_string_value(finalizer), FINALIZER) == 0)
			return (int) i;
	return -1;
}

static bool add_finalizer(struct job *job, json_t *object)
{
	json_t *finalizers = json_object_get(metadata_of(object), "finalizers");

	(void) job;
	if (finalizers == NULL)
		json_object_set_new(metadata_of(object), "finalizers", finalizers = json_array());
	return finalizer_at(object) < 0 && json_array_append_new(finalizers, json_string(FINALIZER)) == 0;
}

static bool remove_finalizer(struct job *job, json_t *object)
{
	int at = finalizer_at(object);

	(void) job;
	return at >= 0 &&
	       json_array_remove(json_object_get(metadata_of(object), "finalizers"), (size_t) at) == 0;
}

static bool set_page(struct job *job, json_t *object)
{
	json_t *data = data_of(job);
	bool	is_change = !json_equal(json_object_get(object, "data"), data);

	json_object_set_new(object, "data", data);
	return is_change;
}

static bool set_status(struct job *job, json_t *object)
{
	json_t *status = json_pack("{s:b,s:s,s:I}", "ready", 1, "configMap", job->name, "observedGeneration",
				   json_integer_value(json_object_get(metadata_of(job->site), "generation")));
	bool	is_change = !json_equal(json_object_get(object, "status"), status);

	json_object_set_new(object, "status", status);
	return is_change;
}

static void create_config_map(struct job *job)
{
	json_t *owner =
		json_pack("{s:s,s:s,s:s,s:O,s:b}", "apiVersion", "example.com/v1", "kind", "Website", "name",
			  job->name, "uid", json_object_get(metadata_of(job->site), "uid"), "controller", 1);
	json_t *object =
		json_pack("{s:s,s:s,s:{s:s,s:{s:s},s:[o]},s:o}", "apiVersion", "v1", "kind", "ConfigMap",
			  "metadata", "name", job->name, "labels", "app.kubernetes.io/managed-by", MANAGED_BY,
			  "ownerReferences", owner, "data", data_of(job));
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;

	send(job, "ConfigMap created", "POST", "", text ? text : "{}");
	free(text);
	json_decref(object);
}

/* Makes the first change that is needed. Updates repeat the test on the current object. */
static void reconcile_job(struct job *job)
{
	bool is_deleted = json_object_get(metadata_of(job->site), "deletionTimestamp") != NULL;

	if (is_deleted && job->config_map)
		send(job, "ConfigMap deleted", "DELETE", job->name, NULL);
	else if (is_deleted && finalizer_at(job->site) >= 0)
		update(job, "finalizer removed", &websites_resource, NULL, remove_finalizer);
	else if (is_deleted)
		finish(job, VD_WORK_DONE);
	else if (finalizer_at(job->site) < 0)
		update(job, "finalizer added", &websites_resource, NULL, add_finalizer);
	else if (job->config_map == NULL)
		create_config_map(job);
	else if (set_page(job, job->config_map))
		update(job, "ConfigMap changed", &config_maps_resource, NULL, set_page);
	else if (set_status(job, job->site))
		update(job, "status written", &websites_resource, "status", set_status);
	else
		finish(job, VD_WORK_DONE);
}

/* ---- The queue ---- */

static json_t *load(struct vd_kube_informer *informer, const struct job *job)
{
	struct vd_object *object =
		vd_kube_informer_get(informer, vd_bytes_of(job->namespace_name), vd_bytes_of(job->name));
	struct vd_bytes value = object ? vd_kv_value(vd_object_kv(object)) : VD_BYTES_NONE;
	json_t	       *tree = object ? json_loadb(value.data, value.size, 0, NULL) : NULL;

	if (object)
		vd_object_unref(object);
	return tree;
}

static void reconcile(void *arg, struct vd_work *work, struct vd_bytes key)
{
	struct job *job = calloc(1, sizeof *job);
	char	    text[320];

	if (job == NULL) {
		vd_work_finish(work, VD_WORK_RETRY, (vd_dur) { 0 });
		return;
	}
	job->controller = arg;
	job->work = work;
	snprintf(text, sizeof text, "%.*s", (int) key.size, (const char *) key.data);
	sscanf(text, "%63[^/]/%253s", job->namespace_name, job->name);
	job->site = load(job->controller->websites, job);
	job->config_map = load(job->controller->config_maps, job);
	if (job->site)
		reconcile_job(job);
	else
		finish(job, VD_WORK_DONE); /* deleted */
}

/* Of a new object and, as last state, a deleted one. A Website and its ConfigMap have the same name. */
static void on_change(void *arg, struct vd_object *object, bool detail)
{
	struct controller *controller = arg;
	struct vd_bytes	   namespace_name = vd_object_namespace(object), name = vd_object_name(object);
	char		   key[320];
	int		   size;

	(void) detail;
	size = snprintf(key, sizeof key, "%.*s/%.*s", (int) namespace_name.size, (char *) namespace_name.data,
			(int) name.size, (char *) name.data);
	if (vd_work_queue_add(controller->queue, (struct vd_bytes) { key, (size_t) size }) != VD_OK)
		fprintf(stderr, "kube_controller: %s: not queued\n", key);
}

static void on_update(void *arg, struct vd_object *old_object, struct vd_object *object)
{
	(void) old_object;
	on_change(arg, object, false);
}

/* ---- The leader ---- */

static void on_started_leading(void *arg)
{
	struct controller	*controller = arg;
	struct vd_worker_options workers = VD_WORKER_OPTIONS_INIT;
	struct vd_error		 error = { 0 };

	workers.work = reconcile;
	workers.arg = controller;
	if (vd_work_queue_run(controller->queue, &workers, &error) != VD_OK) {
		fprintf(stderr, "kube_controller: %s\n", error.message);
		end(0);
	}
}

/* Another process may lead now: end this one. */
static void on_stopped_leading(void *arg)
{
	(void) arg;
	end(0);
}

static vd_status elect(struct controller *controller, struct vd_error *error)
{
	struct vd_leader_election_options options = VD_LEADER_ELECTION_OPTIONS_INIT;
	struct vd_leader_lock		 *lock;
	char				  identity[300];
	vd_status			  status;

	snprintf(identity, sizeof identity, "%.200s_%llx", getenv("HOSTNAME") ? getenv("HOSTNAME") : "local",
		 (unsigned long long) vd_env_random(controller->env));
	options.name = MANAGED_BY;
	options.identity = identity;
	options.release_on_stop = true;
	options.started_leading = on_started_leading;
	options.stopped_leading = on_stopped_leading;
	options.arg = controller;
	status = vd_lease_lock_new(controller->kube, vd_kube_namespace(controller->kube), MANAGED_BY, &lock,
				   error);
	if (status != VD_OK)
		return status;
	status = vd_leader_election_start(controller->env, lock, &options, &controller->election, error);
	if (status != VD_OK)
		vd_leader_lock_free(lock);
	return status;
}

static vd_status run(struct controller *controller, struct vd_error *error)
{
	const struct vd_informer_handler handler = {
		on_change, on_update, on_change, NULL, controller, { 0 }
	};
	struct vd_kube_scope ours = { 0 };
	vd_status	     status;

	ours.label_selector = vd_bytes_of("app.kubernetes.io/managed-by=" MANAGED_BY);
	status = vd_kube_informer_open(controller->kube, "websites.example.com", NULL, &handler,
				       &controller->websites, error);
	if (status == VD_OK)
		status = vd_kube_informer_open(controller->kube, "configmaps", &ours, &handler,
					       &controller->config_maps, error);
	/* No decision before both are complete, which is later if the CRD is not installed yet. */
	while (status == VD_OK && !is_stopped &&
	       (vd_kube_informer_synced_wait(controller->websites, VD_SECONDS(1)) != VD_OK ||
		vd_kube_informer_synced_wait(controller->config_maps, VD_SECONDS(1)) != VD_OK))
		;
	if (status == VD_OK && !is_stopped)
		status = elect(controller, error);
	while (status == VD_OK && !is_stopped)
		sem_wait(&stop);
	return status;
}

int main(int argc, char **argv)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct controller      controller = { 0 };
	struct vd_error	       error = { 0 };
	vd_status	       status;

	setvbuf(stdout, NULL, _IOLBF, 0);
	sem_init(&stop, 0, 0);
	signal(SIGINT, end);
	signal(SIGTERM, end);
	options.server = argc > 1 ? argv[1] : NULL;
	status = vd_env_new_threads(NULL, &controller.env);
	if (status == VD_OK)
		status = vd_kube_open(controller.env, &options, &controller.kube, &error);
	if (status == VD_OK)
		status = vd_work_queue_new(controller.env, NULL, &controller.queue, &error);
	if (status == VD_OK)
		status = run(&controller, &error);
	if (status != VD_OK)
		fprintf(stderr, "kube_controller: %s\n",
			*error.message ? error.message : vd_status_sentence(status));
	/* The work ends before another process may lead. */
	if (controller.queue && vd_work_queue_shutdown_drain_wait(controller.queue, VD_SECONDS(10)) != VD_OK)
		fprintf(stderr, "kube_controller: work is left\n");
	vd_leader_election_close_wait(controller.election);
	vd_kube_informer_close_wait(controller.websites);
	vd_kube_informer_close_wait(controller.config_maps);
	vd_work_queue_close_wait(controller.queue);
	vd_kube_close_wait(controller.kube);
	vd_env_free(controller.env);
	return status != VD_OK;
}
