/* An informer reports the namespaces that are being deleted. Each gets a visit, which makes passes over the
 * content of its namespace until a pass finds no object.
 *
 *   look (get) --> pass: pods, then each other kind: list -> delete each (CALLS_MAX at a time) -> count rest
 *                   |- objects stay, or an error  -> conditions -> wait (back-off, or a poke) -> look
 *                   |- all objects were deleted   -> another pass
 *                   `- no object was found        -> conditions and finalizer in one write -> end
 *
 * Lists are consistent reads, and a create into a namespace commits only if the namespace is still as the
 * create read it (vdi_cacher_create_beside). So once a namespace is marked, an empty pass proves that it has
 * no content and will get none. Pods are deleted first, before any other kind, as upstream does.
 */
#include "namespace_controller.h"

#include <stdatomic.h>
#include <stdio.h>
#include <vedette/informer.h>

#include "cacher_state.h"
#include "control_loop.h"
#include "env.h"
#include "namespace_conditions.h"
#include "object.h"
#include "object_call.h"

#define VISITS_MAX 4 /* concurrent visits */
#define CALLS_MAX 16 /* concurrent calls of one visit */
#define NAME_SIZE 256
#define DELAY_FIRST ((vd_dur) { 100000000 })
#define DELAY_MAX VD_SECONDS(8) /* as upstream, for content with finalizers */
#define RESYNC VD_SECONDS(60)

enum visit_state { VISIT_QUEUED, VISIT_RUNNING, VISIT_WAITING };

struct visit {
	struct visit			*next;
	struct vdi_namespace_controller *controller;
	struct vdi_control_return	 back; /* for the get, list or change in flight */
	struct vdi_timer		 timer;
	enum visit_state		 state;
	bool				 again; /* poked while it ran */
	unsigned			 delays;
	char				 name[NAME_SIZE];
	char				 uid[64];

	/* Results of the last operation. */
	vd_status	       result;
	struct vd_error	       error;
	struct vd_object      *object; /* a reference */
	struct vdi_object_call call;

	/* State of the pass. */
	struct vdi_resource_set	    *resource_set;
	size_t			     at; /* number of kinds begun: pods first, then one for each index */
	const struct vdi_resource   *kind;
	struct vd_list		    *list;
	size_t			     call_count;
	uint64_t		     removed;
	size_t			     remaining; /* objects of this pass that stay */
	size_t			     failed;	/* errors of this pass; content has texts for some only */
	bool			     is_last;	/* the pass found no object */
	struct vdi_namespace_content content;
};

/* The deletion of one object of the content. */
struct content_call {
	struct vdi_control_return back;
	struct visit		 *visit;
	struct vd_object	 *object; /* a reference; the call's names point into it */
	struct vdi_object_call	  call;
};

struct arrival {
	struct vdi_control_return	 back;
	struct vdi_namespace_controller *controller;
	char				 name[NAME_SIZE];
};

struct vdi_namespace_controller {
	const struct vd_env *env;
	struct vdi_resource_set *(*get_resource_set)(void *arg);
	void			*get_resource_set_arg;
	struct vdi_resource_set *first; /* its namespaces are watched by the informer */
	struct vd_informer	*informer;
	struct vdi_control_loop	 loop;
	_Atomic size_t		 visit_total;

	/* Owned by the actor. */
	struct visit *visits;
	size_t	      running;
};

static const struct vdi_delete_options in_background = { .propagation = VDI_PROPAGATION_BACKGROUND };

static void look(struct visit *visit);
static void renew_resource_set(struct visit *visit);
static void start_kind(struct visit *visit);

static struct visit *visit_of(struct vdi_control_return *back)
{
	return VDI_CONTAINER_OF(back, struct visit, back);
}

/* ---- End of a visit's turn ---- */

static void free_visit(struct visit *visit)
{
	(void) vd_list_free(visit->list);
	(void) vd_object_unref(visit->object);
	vdi_object_call_fini(&visit->call);
	(void) vdi_resource_set_unref(visit->resource_set);
	vdi_namespace_content_reset(&visit->content);
	vdi_free(visit);
}

static void end_visit(struct visit *visit)
{
	struct vdi_namespace_controller *controller = visit->controller;

	controller->running--;
	for (struct visit **place = &controller->visits; *place; place = &(*place)->next)
		if (*place == visit) {
			*place = visit->next;
			break;
		}
	atomic_fetch_sub(&controller->visit_total, 1);
	free_visit(visit);
}

static void wait_a_little(struct visit *visit)
{
	int64_t delay = DELAY_FIRST.ns << VDI_MIN(visit->delays, 10u);

	visit->controller->running--;
	visit->state = VISIT_WAITING;
	if (visit->again) {
		visit->again = false;
		visit->delays = 0;
		delay = 0;
	}
	visit->delays++;
	vdi_control_loop_set_timer(
		&visit->controller->loop, &visit->timer,
		vd_mono_add(vd_env_now(visit->controller->env), (vd_dur) { VDI_MIN(delay, DELAY_MAX.ns) }));
}

static void log_failure(struct visit *visit, const char *what)
{
	if (visit->result == VD_CLOSED)
		return;
	vdi_log(visit->controller->env, VD_LOG_WARNING, "namespaces", "namespace %s: %s: %s", visit->name,
		what, visit->error.message[0] ? visit->error.message : vd_status_sentence(visit->result));
}

/* ---- Writing the namespace ---- */

static void changed(struct vdi_object_call *call)
{
	struct visit *visit = call->arg;

	vdi_control_loop_post(&visit->controller->loop, &visit->back);
}

static vd_status take_finalizer(struct vdi_tree *tree, struct vdi_node *root, bool *ret_changed)
{
	struct vdi_node *list = vdi_tree_find(tree, root, "spec.finalizers");

	for (struct vdi_node *item = vdi_tree_is(list, VDI_NODE_ARRAY) ? list->first : NULL, *next; item;
	     item = next) {
		next = item->next;
		if (vd_bytes_equal(vdi_tree_string_of(item), vd_bytes_of("kubernetes"))) {
			vdi_tree_array_remove(list, item);
			*ret_changed = true;
		}
	}
	return VD_OK;
}

/* Runs on a thread of the store. */
static vd_status edit_namespace(struct vdi_object_call *call, struct vdi_tree *tree, struct vdi_node *root,
				bool *ret_changed)
{
	struct visit	*visit = call->arg;
	struct vdi_node *status;

	if (vdi_tree_string_of(vdi_tree_find(tree, root, "metadata.deletionTimestamp")).size == 0)
		return VD_OK;
	status = vdi_tree_object_at(tree, root, "status");
	if (status == NULL)
		return VD_NOMEM;
	if (!vd_bytes_equal(vdi_tree_string_of(vdi_tree_get(tree, status, vd_bytes_of("phase"))),
			    vd_bytes_of("Terminating"))) {
		*ret_changed = true;
		if (!vdi_tree_set(tree, status, vd_bytes_of("phase"),
				  vdi_tree_new_string(tree, vd_bytes_of("Terminating"))))
			return VD_NOMEM;
	}
	VDI_TRY(vdi_namespace_conditions_set(tree, root, &visit->content, call->now, ret_changed));
	return visit->is_last ? take_finalizer(tree, root, ret_changed) : VD_OK;
}

static void namespace_written(struct vdi_control_return *back)
{
	struct visit *visit = visit_of(back);

	visit->result = visit->call.result;
	visit->error = visit->call.error;
	vdi_object_call_fini(&visit->call);
	if (visit->result == VD_NOT_FOUND || visit->result == VD_PRECONDITION ||
	    (visit->result == VD_OK && visit->is_last)) {
		end_visit(visit);
		return;
	}
	if (visit->result != VD_OK)
		log_failure(visit, "the status cannot be written");
	wait_a_little(visit);
}

static void write_namespace(struct visit *visit)
{
	struct vdi_namespace_controller *controller = visit->controller;

	visit->call = (struct vdi_object_call) { .resource = visit->resource_set->namespaces,
						 .name = vd_bytes_of(visit->name),
						 .preconditions = { .uid = vd_bytes_of(visit->uid) },
						 .edit = edit_namespace,
						 .now = vd_env_wall(controller->env),
						 .done = changed,
						 .arg = visit };
	visit->back.run = namespace_written;
	if (vdi_control_loop_begin(&controller->loop))
		vdi_object_call_change(&visit->call);
}

/* ---- A pass over the content ---- */

static const struct vdi_resource *pods_of(const struct vdi_resource_set *resource_set)
{
	return vdi_resources_find(&resource_set->resources, VD_BYTES_NONE, vd_bytes_of("v1"),
				  vd_bytes_of("pods"));
}

/* Returns true for a namespaced kind, but only for the first of the versions that share a cache. */
static bool is_content(const struct vdi_resources *resources, size_t index)
{
	const struct vdi_resource *resource = resources->items[index];

	for (size_t i = 0; i < index; i++)
		if (resources->items[i]->cacher == resource->cacher)
			return false;
	return resource->namespaced && resource->cacher;
}

/* Returns the next kind: pods first, then the others; NULL after the last. */
static const struct vdi_resource *next_kind(struct visit *visit)
{
	const struct vdi_resources *resources = &visit->resource_set->resources;
	const struct vdi_resource  *pods = pods_of(visit->resource_set);

	if (visit->at++ == 0 && pods)
		return pods;
	for (; visit->at - 1 <= resources->count; visit->at++)
		if (visit->at >= 2 && resources->items[visit->at - 2] != pods &&
		    is_content(resources, visit->at - 2))
			return resources->items[visit->at - 2];
	return NULL;
}

static void start_pass(struct visit *visit)
{
	renew_resource_set(visit);
	visit->at = 0;
	visit->removed = 0;
	visit->remaining = visit->failed = 0;
	visit->is_last = false;
	vdi_namespace_content_reset(&visit->content);
	start_kind(visit);
}

static void finish_pass(struct visit *visit)
{
	bool stays = visit->remaining > 0 || visit->failed > 0;

	if (!stays && visit->removed) {
		visit->delays = 0;
		start_pass(visit);
		return;
	}
	if (visit->removed)
		visit->delays = 0; /* there was progress */
	visit->is_last = !stays;
	write_namespace(visit);
}

static void add_failure(struct visit *visit, vd_status status, const struct vd_error *error)
{
	char	    text[sizeof error->message + VDI_RESOURCE_NAME_MAX], name[VDI_RESOURCE_NAME_MAX];
	const char *why = error->message[0] ? error->message : vd_status_sentence(status);

	visit->failed++;
	(void) snprintf(text, sizeof text, "%s: %s", vdi_resource_name(visit->kind, name), why);
	vdi_content_add(&visit->content.failures, vd_bytes_of(text));
}

static void add_remaining(struct visit *visit, struct vd_object *object)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root, *list;
	char		 name[VDI_RESOURCE_NAME_MAX];

	visit->remaining++;
	(void) snprintf(name, sizeof name, "%s.%s", visit->kind->plural, visit->kind->group);
	vdi_content_add(&visit->content.kinds, vd_bytes_of(name));
	if (vdi_tree_parse(&tree, vdi_object_metadata(object), &root, NULL) == VD_OK) {
		list = vdi_tree_get(&tree, root, vd_bytes_of("finalizers"));
		for (const struct vdi_node *item = vdi_tree_is(list, VDI_NODE_ARRAY) ? list->first : NULL;
		     item; item = item->next)
			vdi_content_add(&visit->content.finalizers, vdi_tree_string_of(item));
	}
	vdi_tree_fini(&tree);
}

static void pump(struct visit *visit);

static void content_done(struct vdi_object_call *call)
{
	struct content_call *content = call->arg;

	vdi_control_loop_post(&content->visit->controller->loop, &content->back);
}

static void free_content(struct content_call *content)
{
	vdi_object_call_fini(&content->call);
	(void) vd_object_unref(content->object);
	vdi_free(content);
}

static void content_back(struct vdi_control_return *back)
{
	struct content_call    *content = VDI_CONTAINER_OF(back, struct content_call, back);
	struct vdi_object_call *call = &content->call;
	struct visit	       *visit = content->visit;

	visit->call_count--;
	if (call->result == VD_NOT_FOUND || (call->result == VD_OK && call->is_removed))
		visit->removed++;
	else if (call->result == VD_OK)
		add_remaining(visit, call->object);
	else
		add_failure(visit, call->result, &call->error);
	free_content(content);
	pump(visit);
}

static bool delete_content(struct visit *visit, struct vd_object *object)
{
	struct vdi_namespace_controller *controller = visit->controller;
	struct content_call		*content = VDI_NEW(struct content_call);

	if (content == NULL)
		return false;
	*content = (struct content_call) { .back = { .run = content_back },
					   .visit = visit,
					   .object = vd_object_ref(object) };
	content->call = (struct vdi_object_call) { .resource = visit->kind,
						   .namespace_name = vd_object_namespace(object),
						   .name = vd_object_name(object),
						   .options = &in_background,
						   .now = vd_env_wall(controller->env),
						   .done = content_done,
						   .arg = content };
	if (!vdi_control_loop_begin(&controller->loop)) {
		free_content(content);
		return false;
	}
	visit->call_count++;
	vdi_object_call_delete(&content->call);
	return true;
}

/* Starts deletions while there is room. The kind is done when none is left to start and all calls have
 * completed. */
static void pump(struct visit *visit)
{
	struct vd_object *object;

	while (visit->list && visit->call_count < CALLS_MAX && (object = vd_list_next(visit->list)))
		if (!delete_content(visit, object)) {
			struct vd_error error = { .code = VD_NOMEM };

			add_failure(visit, VD_NOMEM, &error);
			break;
		}
	if (visit->call_count)
		return;
	visit->list = vd_list_free(visit->list);
	if (visit->kind == pods_of(visit->resource_set) && visit->remaining) {
		finish_pass(visit);
		return;
	}
	start_kind(visit);
}

static void listed(struct vdi_control_return *back)
{
	struct visit *visit = visit_of(back);

	if (visit->result != VD_OK) {
		add_failure(visit, visit->result, &visit->error);
		start_kind(visit);
		return;
	}
	/* Undecodable objects are in no list, but would remain after the namespace is deleted. */
	if (vdi_quarantine_holds(&visit->kind->cacher->quarantine, vdi_cacher_prefix(visit->kind->cacher),
				 vd_bytes_of(visit->name), &visit->error))
		add_failure(visit, VD_UNDECODABLE, &visit->error);
	pump(visit);
}

static void got_list(void *arg, vd_status status, struct vd_list *list, const struct vd_error *error)
{
	struct visit *visit = arg;

	visit->result = status;
	visit->error = error ? *error : (struct vd_error) { .code = status };
	visit->list = list;
	vdi_control_loop_post(&visit->controller->loop, &visit->back);
}

static void start_kind(struct visit *visit)
{
	struct vd_list_options options = VD_LIST_OPTIONS_INIT;
	vd_status	       status;

	visit->kind = next_kind(visit);
	if (visit->kind == NULL) {
		finish_pass(visit);
		return;
	}
	options.namespace_name = vd_bytes_of(visit->name);
	visit->back.run = listed;
	if (!vdi_control_loop_begin(&visit->controller->loop))
		return;
	status = vd_cacher_list(visit->kind->cacher, &options, got_list, visit, NULL);
	if (status != VD_OK)
		got_list(visit, status, NULL, NULL);
}

/* ---- Checking a namespace ---- */

/* Returns true if the namespace waits for this controller; copies its uid. */
static bool is_ours(struct visit *visit)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root;
	bool		 is = false;
	struct vd_bytes	 uid;

	if (vdi_tree_parse(&tree, vd_kv_value(vd_object_kv(visit->object)), &root, NULL) == VD_OK) {
		uid = vdi_tree_string_of(vdi_tree_find(&tree, root, "metadata.uid"));
		(void) snprintf(visit->uid, sizeof visit->uid, "%.*s",
				(int) VDI_MIN(uid.size, sizeof visit->uid - 1),
				uid.size ? (const char *) uid.data : "");
		is = vdi_tree_string_of(vdi_tree_find(&tree, root, "metadata.deletionTimestamp")).size > 0 &&
		     vdi_deletion_has(vdi_tree_find(&tree, root, "spec.finalizers"),
				      vd_bytes_of("kubernetes"));
	}
	vdi_tree_fini(&tree);
	return is;
}

static void looked(struct vdi_control_return *back)
{
	struct visit *visit = visit_of(back);
	bool	      goes_on = visit->result == VD_OK && is_ours(visit);

	visit->object = vd_object_unref(visit->object);
	if (goes_on) {
		start_pass(visit);
	} else if (visit->result == VD_OK || visit->result == VD_NOT_FOUND) {
		end_visit(visit);
	} else {
		log_failure(visit, "the namespace cannot be read");
		wait_a_little(visit);
	}
}

static void got_namespace(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
			  const struct vd_error *error)
{
	struct visit *visit = arg;

	visit->result = status;
	visit->error = error ? *error : (struct vd_error) { .code = status };
	visit->object = object ? vd_object_ref(object) : NULL;
	vdi_control_loop_post(&visit->controller->loop, &visit->back);
}

/* Takes the newest set of kinds; keeps the old one when the server ends. */
static void renew_resource_set(struct visit *visit)
{
	struct vdi_resource_set *resource_set =
		visit->controller->get_resource_set(visit->controller->get_resource_set_arg);

	if (resource_set == NULL)
		return;
	(void) vdi_resource_set_unref(visit->resource_set);
	visit->resource_set = resource_set;
}

static void look(struct visit *visit)
{
	struct vdi_namespace_controller *controller = visit->controller;
	vd_status			 status;

	visit->state = VISIT_RUNNING;
	visit->again = false;
	controller->running++;
	visit->back.run = looked;
	renew_resource_set(visit);
	if (visit->resource_set == NULL || !vdi_control_loop_begin(&controller->loop))
		return;
	status = vd_cacher_get(visit->resource_set->namespaces->cacher, VD_BYTES_NONE,
			       vd_bytes_of(visit->name), VD_REVISION_UNSET, got_namespace, visit);
	if (status != VD_OK)
		got_namespace(visit, status, NULL, 0, NULL);
}

/* ---- Actor ---- */

static void turn(void *arg)
{
	struct vdi_namespace_controller *controller = arg;

	for (struct visit *visit = controller->visits; visit && controller->running < VISITS_MAX;
	     visit = visit->next)
		if (visit->state == VISIT_QUEUED)
			look(visit);
}

static void expired(void *arg, struct vdi_timer *timer)
{
	VDI_CONTAINER_OF(timer, struct visit, timer)->state = VISIT_QUEUED;
}

static struct visit *find_visit(struct vdi_namespace_controller *controller, const char *name)
{
	for (struct visit *visit = controller->visits; visit; visit = visit->next)
		if (strcmp(visit->name, name) == 0)
			return visit;
	return NULL;
}

static void hurry(struct visit *visit)
{
	if (visit->state == VISIT_RUNNING) {
		visit->again = true;
	} else if (visit->state == VISIT_WAITING) {
		vdi_timer_heap_remove(&visit->controller->loop.timers, &visit->timer);
		visit->state = VISIT_QUEUED;
		visit->delays = 0;
	}
}

static void add_visit(struct vdi_namespace_controller *controller, const char *name)
{
	struct visit **place = &controller->visits, *visit = VDI_NEW(struct visit);

	if (visit == NULL)
		return; /* the informer reports it again */
	visit->controller = controller;
	memcpy(visit->name, name, strlen(name) + 1);
	while (*place)
		place = &(*place)->next;
	*place = visit;
	atomic_fetch_add(&controller->visit_total, 1);
}

static void arrived(struct vdi_control_return *back)
{
	struct arrival *arrival = VDI_CONTAINER_OF(back, struct arrival, back);
	struct visit   *visit = find_visit(arrival->controller, arrival->name);

	if (visit == NULL)
		add_visit(arrival->controller, arrival->name);
	vdi_free(arrival);
}

static void poked(struct vdi_control_return *back)
{
	struct arrival *arrival = VDI_CONTAINER_OF(back, struct arrival, back);
	struct visit   *visit = find_visit(arrival->controller, arrival->name);

	if (visit)
		hurry(visit);
	vdi_free(arrival);
}

static void post(struct vdi_namespace_controller *controller, struct vd_bytes name,
		 void (*run)(struct vdi_control_return *))
{
	struct arrival *arrival = name.size < NAME_SIZE ? VDI_NEW(struct arrival) : NULL;

	if (arrival == NULL)
		return;
	arrival->back.run = run;
	arrival->controller = controller;
	memcpy(arrival->name, name.data, name.size);
	if (vdi_control_loop_begin(&controller->loop))
		vdi_control_loop_post(&controller->loop, &arrival->back);
	else
		vdi_free(arrival);
}

void vdi_namespace_controller_poke(struct vdi_namespace_controller *controller, struct vd_bytes name)
{
	if (atomic_load_explicit(&controller->visit_total, memory_order_relaxed))
		post(controller, name, poked);
}

size_t vdi_namespace_controller_count(struct vdi_namespace_controller *controller)
{
	return atomic_load_explicit(&controller->visit_total, memory_order_relaxed);
}

/* ---- Events of the informer ---- */

static void saw(void *arg, struct vd_object *object)
{
	static const char key[] = "\"deletionTimestamp\"";
	struct vd_bytes	  metadata = vdi_object_metadata(object);

	if (memmem(metadata.data, metadata.size, key, sizeof key - 1))
		post(arg, vd_object_name(object), arrived);
}

static void added(void *arg, struct vd_object *object, bool initial)
{
	saw(arg, object);
}

static void updated(void *arg, struct vd_object *old_object, struct vd_object *object)
{
	saw(arg, object);
}

/* ---- Constructor and end ---- */

struct vdi_namespace_controller *vdi_namespace_controller_free(struct vdi_namespace_controller *controller)
{
	struct vdi_control_return *back, *next;

	if (controller == NULL)
		return NULL;
	if (controller->informer)
		(void) vd_informer_close_wait(controller->informer);
	vdi_control_loop_close(&controller->loop);
	for (back = controller->loop.first; back; back = next) {
		next = back->next;
		if (back->run == content_back)
			free_content(VDI_CONTAINER_OF(back, struct content_call, back));
		else if (back->run == arrived || back->run == poked)
			vdi_free(VDI_CONTAINER_OF(back, struct arrival, back));
	}
	while (controller->visits) {
		struct visit *visit = controller->visits;

		controller->visits = visit->next;
		free_visit(visit);
	}
	vdi_control_loop_fini(&controller->loop);
	(void) vdi_resource_set_unref(controller->first);
	vdi_free(controller);
	return NULL;
}

vd_status vdi_namespace_controller_new(const struct vd_env *env,
				       struct vdi_resource_set *(*get_resource_set)(void *arg),
				       void				*get_resource_set_arg,
				       struct vdi_namespace_controller **ret_controller,
				       struct vd_error			*reterr)
{
	struct vd_informer_handler handler = { .add = added, .update = updated, .resync_period = RESYNC };
	struct vdi_namespace_controller *controller = VDI_NEW(struct vdi_namespace_controller);
	vd_status			 status;

	if (controller == NULL)
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	controller->env = env;
	controller->get_resource_set = get_resource_set;
	controller->get_resource_set_arg = get_resource_set_arg;
	controller->first = get_resource_set(get_resource_set_arg);
	handler.arg = controller;
	status = vdi_control_loop_init(&controller->loop, env, "namespaces", turn, expired, controller);
	if (status != VD_OK)
		(void) vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	else
		status = vd_informer_new(controller->first->namespaces->cacher, VD_BYTES_NONE, VD_BYTES_NONE,
					 VD_BYTES_NONE, &handler, &controller->informer, reterr);
	if (status != VD_OK) {
		(void) vdi_namespace_controller_free(controller);
		return status;
	}
	*ret_controller = controller;
	return VD_OK;
}
