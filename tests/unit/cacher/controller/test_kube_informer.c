/* Shared informers: what is shared, resources that are not there yet or were removed, and every kind of end.
 * The stores are embedded ones, the server answers discovery only. */
#include <pthread.h>

#include "actor_sim.h"
#include "kube_client.h"
#include "kube_informer_state.h"
#include "kube_routes.h"
#include "vdtest.h"

static const char core[] =
	"{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{},\"versions\":[{\"version\":\"v1\","
	"\"resources\":[{\"resource\":\"pods\",\"responseKind\":{\"kind\":\"Pod\"},\"scope\":\"Namespaced\","
	"\"singularResource\":\"pod\",\"shortNames\":[\"po\"]},{\"resource\":\"nodes\",\"scope\":\"Cluster\"}"
	"]}]}]}";
static const char no_groups[] = "{\"kind\":\"APIGroupDiscoveryList\",\"items\":[]}";
static const char carts_v1[] =
	"{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":\"shop\"},\"versions\":[{"
	"\"version\":"
	"\"v1\",\"resources\":[{\"resource\":\"carts\",\"scope\":\"Namespaced\"}]}]}]}";
static const char carts_v2[] =
	"{\"kind\":\"APIGroupDiscoveryList\",\"items\":[{\"metadata\":{\"name\":\"shop\"},\"versions\":[{"
	"\"version\":"
	"\"v2\",\"resources\":[{\"resource\":\"carts\",\"scope\":\"Namespaced\"}]}]}]}";

static struct kube_routes routes;
static struct vd_store	 *stores[3]; /* opened so far */
static char		  store_names[3][256];
static size_t		  store_count;
static struct vd_store	 *spare[3]; /* opened before: opening waits, which an actor must not do */

struct fixture {
	struct vd_env	      *env;
	struct vd_kube	      *kube;
	struct vdi_kube_member removed; /* reports a removed resource */
	bool		       has_removed;
};

/* What one handler was told. */
struct seen {
	char			 text[4096];
	unsigned		 synced, closed;
	struct vd_kube_informer *informer;
	bool			 closes; /* at the first call */
	struct fixture		*opens;	 /* one more informer at the first call */
	struct seen		*other;
};

static vd_status open_store(struct vd_kube *kube, const struct vd_kube_resource *resource,
			    const struct vd_kube_scope *scope, const char *key_prefix,
			    struct vd_store **ret_store, struct vd_error *reterr)
{
	assert_true(store_count < VDI_ARRAY_SIZE(spare));
	*ret_store = spare[store_count];
	spare[store_count] = NULL;
	snprintf(store_names[store_count], 256, "%s %s %.*s", key_prefix, resource->version,
		 (int) scope->label_selector.size,
		 scope->label_selector.size ? (const char *) scope->label_selector.data : "");
	stores[store_count++] = *ret_store;
	return VD_OK;
}

static void serve(const char *groups)
{
	routes.is_aggregated = true;
	kube_routes_set(&routes, "/api", 200, core);
	kube_routes_set(&routes, "/apis", 200, groups);
}

static void setup_preempted(struct fixture *f, uint64_t seed, unsigned preemptions)
{
	struct vd_kube_options	   options = VD_KUBE_OPTIONS_INIT;
	struct vd_mvcc_options	   store_options = VD_MVCC_OPTIONS_INIT;
	struct vdi_kube_informers *informers;
	struct vd_error		   error;

	memset(f, 0, sizeof *f);
	kube_routes_init(&routes);
	store_count = 0;
	options.server = "http://server";
	assert_status(vdi_env_new_sim(seed, NULL, NULL, &f->env), VD_OK);
	if (preemptions)
		assert_status(vdi_sim_set_preemptions(f->env, preemptions), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(spare); i++)
		assert_status(vd_store_open_mvcc(f->env, &store_options, &spare[i], &error), VD_OK);
	assert_status(vdi_kube_open_over(f->env, &options, kube_routes_transport, &f->kube, &error), VD_OK);
	assert_status(vdi_kube_informers_of(f->kube, &informers), VD_OK);
	informers->store_open = open_store;
	serve(no_groups);
}

static void setup(struct fixture *f, uint64_t seed)
{
	setup_preempted(f, seed, 0);
}

static void teardown(struct fixture *f)
{
	f->kube = vd_kube_close_wait(f->kube);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(spare); i++)
		spare[i] = spare[i] ? vd_store_close_wait(spare[i]) : NULL;
	f->env = vd_env_free(f->env);
}

static void put(size_t store, const char *key, const char *name, const char *label)
{
	char		json[256], whole[256];
	vd_rev		revision;
	struct vd_error error;

	snprintf(json, sizeof json,
		 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"labels\":{\"app\":\"%s\"}}}", name,
		 label);
	snprintf(whole, sizeof whole, "%sns/%s", key, name);
	assert_status(
		vd_store_put_wait(stores[store], vd_bytes_of(whole), vd_bytes_of(json), &revision, &error),
		VD_OK);
}

static void delete_all(size_t store)
{
	int64_t		deleted;
	vd_rev		revision;
	struct vd_error error;

	assert_status(vd_store_delete_wait(stores[store], vd_bytes_of("/"), vd_bytes_of("0"), &deleted,
					   &revision, &error),
		      VD_OK);
}

/* ---- Handlers ---- */

static void on_closed(void *arg)
{
	((struct seen *) arg)->closed++;
}

static struct vd_kube_informer *open_informer(struct fixture *f, const char *resource, const char *labels,
					      struct seen *seen);

static void note(struct seen *seen, const char *what, const struct vd_object *object)
{
	size_t used = strlen(seen->text);

	assert_int_equal(seen->closed, 0);
	snprintf(seen->text + used, sizeof seen->text - used, "%s%.*s ", what,
		 object ? (int) vd_object_name(object).size : 0,
		 object ? (const char *) vd_object_name(object).data : "");
	if (seen->closes && seen->informer) {
		seen->closes = false;
		vd_kube_informer_close(seen->informer, on_closed, seen);
	}
	if (seen->opens) {
		struct fixture *f = seen->opens;

		seen->opens = NULL;
		seen->other->informer = open_informer(f, "pods", "", seen->other);
	}
}

static void on_add(void *arg, struct vd_object *object, bool initial)
{
	note(arg, initial ? "*" : "+", object);
}

static void on_update(void *arg, struct vd_object *old_object, struct vd_object *object)
{
	(void) old_object;
	note(arg, "~", object);
}

static void on_remove(void *arg, struct vd_object *last_state, bool unknown_final_state)
{
	note(arg, unknown_final_state ? "?" : "-", last_state);
}

static void on_synced(void *arg)
{
	struct seen *seen = arg;

	seen->synced++;
	note(seen, "synced", NULL);
}

static const struct vd_informer_handler handler_of_none;

static struct vd_informer_handler noting(struct seen *seen)
{
	struct vd_informer_handler handler = handler_of_none;

	handler.add = on_add;
	handler.update = on_update;
	handler.remove = on_remove;
	handler.synced = on_synced;
	handler.arg = seen;
	return handler;
}

static struct vd_kube_informer *open_informer(struct fixture *f, const char *resource, const char *labels,
					      struct seen *seen)
{
	struct vd_kube_scope	   scope = { .label_selector = vd_bytes_of(labels) };
	struct vd_informer_handler handler = noting(seen);
	struct vd_kube_informer	  *informer = NULL;
	struct vd_error		   error = { 0 };

	if (vd_kube_informer_open(f->kube, resource, &scope, &handler, &informer, &error) != VD_OK)
		fail_msg("%s", error.message);
	seen->informer = informer;
	return informer;
}

static const char *taken(struct seen *seen)
{
	static char text[4096];

	strcpy(text, seen->text);
	seen->text[0] = 0;
	return text;
}

/* The state of the informer of this name, and its error. */
struct state {
	const char     *name;
	int		state; /* -1: not reported */
	struct vd_error error;
};

static void on_health(void *arg, const struct vd_kube_health *health)
{
	struct state *state = arg;

	if (health->resource && strcmp(health->resource, state->name) == 0) {
		state->state = (int) health->state;
		state->error = health->error;
	}
}

static int state_of(struct fixture *f, const char *name)
{
	struct state state = { name, -1, { 0 } };

	vd_kube_health(f->kube, on_health, &state);
	return state.state;
}

/* ---- Tests ---- */

static bool count_visits(void *arg, struct vd_object *object)
{
	(void) object;
	++*(size_t *) arg;
	return true;
}

static void an_informer_follows_its_resource(void **state)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct fixture		 f;
		struct seen		 seen = { 0 };
		struct vd_kube_informer *informer;
		struct vd_object	*object;
		size_t			 visits = 0;

		setup(&f, seed);
		informer = open_informer(&f, "po", "", &seen);
		assert_int_equal(vd_kube_informer_count(informer), 0);
		assert_int_equal(vd_kube_informer_revision(informer), 0);
		assert_null(vd_kube_informer_get(informer, vd_bytes_of("ns"), vd_bytes_of("a")));
		assert_int_equal(vd_kube_informer_visit(informer, count_visits, &visits), 0);
		assert_status(vd_kube_informer_synced_wait(informer, VD_SECONDS(5)), VD_OK);
		assert_string_equal(taken(&seen), "synced ");
		assert_string_equal(store_names[0], "/registry/pods/ v1 ");
		put(0, "/registry/pods/", "a", "x");
		vdi_sim_advance(f.env, VD_MS(200));
		put(0, "/registry/pods/", "a", "y");
		put(0, "/registry/pods/", "b", "y");
		vdi_sim_advance(f.env, VD_MS(200));
		assert_string_equal(taken(&seen), "+a ~a +b ");
		assert_int_equal(vd_kube_informer_count(informer), 2);
		assert_int_equal(vd_kube_informer_visit(informer, count_visits, &visits), 2);
		assert_int_equal(visits, 2);
		assert_true(vd_kube_informer_revision(informer) >= 4);
		object = vd_kube_informer_get(informer, vd_bytes_of("ns"), vd_bytes_of("b"));
		assert_non_null(object);
		vd_object_unref(object);
		assert_int_equal(state_of(&f, "po"), -1); /* reported by the store */
		vd_kube_informer_close_wait(informer);
		teardown(&f);
	}
}

static void closing_none_is_allowed(void **state)
{
	assert_null(vd_kube_informer_close_wait(NULL));
}

static void callers_of_one_resource_share_a_store(void **state)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct fixture f;
		struct seen    seen[4] = { 0 };

		setup(&f, seed);
		open_informer(&f, "po", "", &seen[0]);
		open_informer(&f, "pods", "", &seen[1]);
		open_informer(&f, "pods", "app=x", &seen[2]);
		vdi_sim_advance(f.env, VD_SECONDS(1));
		assert_int_equal(store_count, 2);
		assert_int_equal(routes.requests, 2);
		put(strcmp(store_names[0], "/registry/pods/ v1 ") != 0, "/registry/pods/", "a", "x");
		vdi_sim_advance(f.env, VD_SECONDS(1));
		open_informer(&f, "Pod", "", &seen[3]); /* later: gets what is there */
		vdi_sim_advance(f.env, VD_SECONDS(1));
		assert_int_equal(store_count, 2);
		assert_string_equal(taken(&seen[0]), "synced +a ");
		assert_string_equal(taken(&seen[1]), "synced +a ");
		assert_string_equal(taken(&seen[2]), "synced ");
		assert_int_equal(seen[3].synced, 1);
		assert_string_equal(taken(&seen[3]), "*a synced ");
		seen[0].informer = vd_kube_informer_close_wait(seen[0].informer);
		seen[1].informer = vd_kube_informer_close_wait(seen[1].informer);
		put(strcmp(store_names[0], "/registry/pods/ v1 ") != 0, "/registry/pods/", "b", "x");
		vdi_sim_advance(f.env, VD_SECONDS(1));
		assert_string_equal(taken(&seen[0]), "");
		assert_string_equal(taken(&seen[3]), "+b ");
		vd_kube_informer_close_wait(seen[3].informer);
		vd_kube_informer_close_wait(seen[2].informer);
		/* the last one closed the store: the next begins anew */
		open_informer(&f, "pods", "", &seen[0]);
		assert_status(vd_kube_informer_synced_wait(seen[0].informer, VD_SECONDS(5)), VD_OK);
		assert_int_equal(store_count, 3);
		assert_int_equal(vd_kube_informer_count(seen[0].informer), 0);
		vd_kube_informer_close_wait(seen[0].informer);
		teardown(&f);
	}
}

static void a_resource_that_appears_later(void **state)
{
	struct fixture f;
	struct seen    seen = { 0 };

	setup(&f, 1);
	open_informer(&f, "carts", "", &seen);
	vdi_sim_advance(f.env, VD_SECONDS(1));
	assert_int_equal(state_of(&f, "carts"), VD_KUBE_REMOVED);
	assert_status(vd_kube_informer_synced_wait(seen.informer, VD_SECONDS(100)), VD_TIMEOUT);
	assert_in_range(routes.requests, 6, 10); /* every 30 s */
	serve(carts_v1);
	vdi_sim_advance(f.env, VD_SECONDS(31));
	assert_int_equal(store_count, 1);
	assert_string_equal(store_names[0], "/registry/shop/carts/ v1 ");
	assert_string_equal(taken(&seen), "synced ");
	assert_int_equal(state_of(&f, "carts"), -1);
	vd_kube_informer_close_wait(seen.informer);
	teardown(&f);
}

/* The client's actor runs again and again while the answer is awaited. */
static void a_resource_is_looked_for_once_at_a_time(void **state)
{
	struct fixture f;
	struct seen    seen = { 0 };

	setup(&f, 1);
	serve(carts_v1);
	routes.delay = VD_SECONDS(1);
	open_informer(&f, "carts", "", &seen);
	for (unsigned i = 0; i < 20; i++) {
		vdi_sim_advance(f.env, VD_MS(50));
		assert_int_equal(seen.informer->finds, 1);
		vdi_kube_member_wake(&seen.informer->member);
	}
	vdi_sim_advance(f.env, VD_SECONDS(2));
	assert_int_equal(seen.informer->finds, 0);
	assert_int_equal(store_count, 1);
	assert_string_equal(taken(&seen), "synced ");
	vd_kube_informer_close_wait(seen.informer);
	teardown(&f);
}

static void on_found(void *arg, vd_status status, const struct vd_kube_resource *resource,
		     const struct vd_error *error)
{
	(void) resource;
	(void) error;
	*(vd_status *) arg = status;
}

/* What another caller's discovery found is used within 10 s. */
static void a_resource_that_another_caller_found(void **state)
{
	struct fixture f;
	struct seen    seen = { 0 };
	vd_status      found = VD_AGAIN;

	setup(&f, 1);
	open_informer(&f, "carts", "", &seen);
	vdi_sim_advance(f.env, VD_SECONDS(13));
	serve(carts_v1);
	assert_status(vd_kube_find(f.kube, "carts", on_found, &found), VD_OK);
	vdi_sim_advance(f.env, VD_SECONDS(1));
	assert_status(found, VD_OK);
	assert_int_equal(store_count, 0);
	vdi_sim_advance(f.env, VD_SECONDS(10));
	assert_int_equal(store_count, 1);
	assert_int_equal(routes.requests, 4);
	vd_kube_informer_close_wait(seen.informer);
	teardown(&f);
}

static void a_server_that_is_down_at_first(void **state)
{
	struct fixture f;
	struct seen    seen = { 0 };
	struct state   health = { "pods", -1, { 0 } };

	setup(&f, 1);
	kube_routes_set(&routes, "/api", 403, "{\"kind\":\"Status\",\"message\":\"no rights\",\"code\":403}");
	open_informer(&f, "pods", "", &seen);
	vdi_sim_advance(f.env, VD_SECONDS(3));
	vd_kube_health(f.kube, on_health, &health);
	assert_int_equal(health.state, VD_KUBE_RETRYING);
	assert_non_null(strstr(health.error.message, "no rights"));
	kube_routes_set(&routes, "/api", 0, "");
	vdi_sim_advance(f.env, VD_SECONDS(200));
	assert_int_equal(state_of(&f, "pods"), VD_KUBE_RETRYING);
	serve(no_groups);
	vdi_sim_advance(f.env, VD_SECONDS(40));
	assert_int_equal(seen.synced, 1);
	vd_kube_informer_close_wait(seen.informer);
	teardown(&f);
}

/* ---- A resource that is removed and comes back in another version ---- */

static vd_mono on_removed_run(struct vdi_kube_member *member, vd_mono now)
{
	(void) member;
	(void) now;
	return VD_NEVER;
}

static void on_removed_health(struct vdi_kube_member *member, struct vd_kube_health *ret_health)
{
	struct fixture *f = VDI_CONTAINER_OF(member, struct fixture, removed);

	ret_health->resource = "carts.shop";
	ret_health->state = f->has_removed ? VD_KUBE_REMOVED : VD_KUBE_WATCHING;
}

static void on_removed_close(struct vdi_kube_member *member)
{
	vdi_kube_member_remove(member);
}

static void a_resource_that_comes_back_in_another_version(void **state)
{
	for (uint64_t seed = 1; seed <= 10; seed++) {
		struct fixture f;
		struct seen    seen[2] = { 0 };

		setup(&f, seed);
		serve(carts_v1);
		f.removed.run = on_removed_run;
		f.removed.health = on_removed_health;
		f.removed.close = on_removed_close;
		assert_status(vdi_kube_member_add(f.kube, &f.removed), VD_OK);
		open_informer(&f, "carts", "", &seen[0]);
		open_informer(&f, "carts.shop", "", &seen[1]);
		vdi_sim_advance(f.env, VD_SECONDS(1));
		put(0, "/registry/shop/carts/", "a", "x");
		vdi_sim_advance(f.env, VD_SECONDS(100));
		/* as the store does when the server no longer has the resource, after a while */
		f.has_removed = true;
		serve(no_groups);
		vdi_sim_advance(f.env, VD_SECONDS(100));
		serve(carts_v2);
		vdi_sim_advance(f.env, VD_SECONDS(100));
		assert_int_equal(store_count, 1); /* objects are left: not moved */
		stores[1] = spare[1]; /* what is there already is not initial for handlers that were synced */
		put(1, "/registry/shop/carts/", "b", "x");
		delete_all(0);
		vdi_sim_advance(f.env, VD_SECONDS(100));
		assert_int_equal(store_count, 2);
		f.has_removed = false;
		assert_string_equal(store_names[1], "/registry/shop/carts/ v2 ");
		vdi_sim_advance(f.env, VD_SECONDS(100));
		assert_int_equal(store_count, 2);
		for (size_t i = 0; i < 2; i++) {
			assert_false(seen[i].informer->is_moving); /* it has moved */
			assert_false(seen[i].informer->is_detached);
			assert_string_equal(seen[i].text, "synced +a -a +b ");
			assert_int_equal(seen[i].synced, 1);
			assert_int_equal(vd_kube_informer_count(seen[i].informer), 1);
			vd_kube_informer_close_wait(seen[i].informer);
		}
		teardown(&f);
	}
}

/* Another selector of it is not moved, and nothing is before the resource was found empty twice. */
static void only_what_was_removed_moves(void **state)
{
	struct fixture f;
	struct seen    seen[2] = { 0 };
	vd_mono	       removed;

	setup(&f, 3);
	serve(carts_v1);
	f.removed.run = on_removed_run;
	f.removed.health = on_removed_health;
	f.removed.close = on_removed_close;
	assert_status(vdi_kube_member_add(f.kube, &f.removed), VD_OK);
	open_informer(&f, "carts", "", &seen[0]);
	open_informer(&f, "carts", "app=x", &seen[1]);
	vdi_sim_advance(f.env, VD_SECONDS(100));
	assert_int_equal(store_count, 2);
	serve(carts_v2);
	f.has_removed = true; /* the one without a selector */
	removed = vd_env_now(f.env);
	while (store_count == 2)
		vdi_sim_advance(f.env, VD_SECONDS(1));
	assert_in_range(vd_mono_since(vd_env_now(f.env), removed).ns, VDI_KUBE_INFORMER_READ.ns + 1,
			2 * VDI_KUBE_INFORMER_READ.ns + VD_SECONDS(1).ns);
	f.has_removed = false;
	assert_string_equal(store_names[2], "/registry/shop/carts/ v2 ");
	vdi_sim_advance(f.env, VD_SECONDS(200));
	assert_int_equal(store_count, 3);
	vd_kube_informer_close_wait(seen[0].informer);
	vd_kube_informer_close_wait(seen[1].informer);
	teardown(&f);
}

/* As a server may have it of an earlier version: the rest is told. */
static void an_object_that_cannot_be_decoded_is_left_out(void **state)
{
	struct fixture f;
	struct seen    seen = { 0 };

	setup(&f, 4);
	open_informer(&f, "pods", "", &seen);
	vdi_sim_advance(f.env, VD_SECONDS(1));
	put(0, "/registry/pods/", "a", "x");
	assert_status(vd_store_put_wait(stores[0], vd_bytes_of("/registry/pods/ns/bad"),
					vd_bytes_of("no JSON"), NULL, NULL),
		      VD_OK);
	put(0, "/registry/pods/", "b", "x");
	vdi_sim_advance(f.env, VD_SECONDS(1));
	assert_string_equal(seen.text, "synced +a +b ");
	vd_kube_informer_close_wait(seen.informer);
	teardown(&f);
}

/* ---- Ends ---- */

static void closing_at_any_time(void **state)
{
	for (uint64_t seed = 1; seed <= 200; seed++) {
		struct fixture f;
		struct seen    seen[3] = { 0 };

		setup_preempted(&f, seed, seed % 2 ? 4 : 0);
		if (seed % 5 == 0)
			routes.is_silent = true;
		for (size_t i = 0; i < 3; i++)
			open_informer(&f, seed % 7 ? "pods" : "carts", i == 2 ? "app=x" : "", &seen[i]);
		for (uint64_t steps = (seed * 7) % 97; steps && vdi_sim_step(f.env); steps--)
			;
		if (seed % 3 == 0)
			vdi_sim_advance(f.env, VD_SECONDS(seed % 50));
		for (size_t i = 0; i < 3; i++)
			vd_kube_informer_close(seen[i].informer, on_closed, &seen[i]);
		vdi_sim_settle(f.env);
		vdi_sim_advance(f.env, VD_SECONDS(1));
		for (size_t i = 0; i < 3; i++)
			assert_int_equal(seen[i].closed, 1);
		teardown(&f);
	}
}

static void closing_inside_a_handler(void **state)
{
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct fixture f;
		struct seen    second = { 0 }, first = { .closes = true, .opens = &f, .other = &second };

		setup(&f, seed);
		open_informer(&f, "pods", "", &first);
		vdi_sim_advance(f.env, VD_SECONDS(5));
		assert_int_equal(first.closed, 1);
		assert_string_equal(first.text, "synced ");
		assert_int_equal(second.synced, 1);
		vd_kube_informer_close_wait(second.informer);
		teardown(&f);
	}
}

static bool close_in_visit(void *arg, struct vd_object *object)
{
	struct seen *seen = arg;

	(void) object;
	vd_kube_informer_close(seen->informer, on_closed, seen);
	vdi_sim_advance(seen->opens->env, VD_SECONDS(1));
	assert_int_equal(seen->closed, 0); /* not before the visit has ended */
	return false;
}

static void closing_inside_a_visit(void **state)
{
	struct fixture f;
	struct seen    seen = { 0 };

	setup(&f, 1);
	open_informer(&f, "pods", "", &seen);
	vdi_sim_advance(f.env, VD_SECONDS(1));
	put(0, "/registry/pods/", "a", "x");
	vdi_sim_advance(f.env, VD_SECONDS(1));
	seen.opens = &f;
	assert_int_equal(vd_kube_informer_visit(seen.informer, close_in_visit, &seen), 1);
	vdi_sim_advance(f.env, VD_SECONDS(1));
	assert_int_equal(seen.closed, 1);
	teardown(&f);
}

static void close_soon(void *arg)
{
	struct seen *seen = arg;

	vd_kube_informer_close(seen->informer, on_closed, seen);
}

/* A wait ends when another thread closes the informer. */
static void a_wait_ends_with_the_close(void **state)
{
	struct fixture		f;
	struct seen		seen = { 0 };
	struct vd_actor	       *actor;
	struct vd_actor_options options = { "closer", close_soon, &seen, false };

	setup(&f, 1);
	routes.is_silent = true;
	open_informer(&f, "pods", "", &seen);
	assert_status(vd_actor_new(f.env, &options, &actor), VD_OK);
	vd_actor_wake(actor);
	assert_status(vd_kube_informer_synced_wait(seen.informer, VD_SECONDS(60)), VD_CLOSED);
	vdi_wait_for_actor_close(f.env, actor);
	vdi_sim_advance(f.env, VD_SECONDS(1));
	assert_int_equal(seen.closed, 1);
	teardown(&f);
}

/* ---- Threads ---- */

static vd_status open_any_store(struct vd_kube *kube, const struct vd_kube_resource *resource,
				const struct vd_kube_scope *scope, const char *key_prefix,
				struct vd_store **ret_store, struct vd_error *reterr)
{
	struct vd_mvcc_options options = VD_MVCC_OPTIONS_INIT;

	return vd_store_open_mvcc(vdi_kube_env(kube), &options, ret_store, reterr);
}

static void *open_and_close(void *arg)
{
	static const struct vd_informer_handler silent;
	struct vd_kube			       *kube = arg;

	for (int i = 0; i < 30; i++) {
		struct vd_kube_informer *informer;
		struct vd_error		 error;
		size_t			 visits = 0;

		if (vd_kube_informer_open(kube, i % 3 ? "pods" : "nodes", NULL, &silent, &informer, &error) !=
		    VD_OK)
			abort();
		if (i % 4 && vd_kube_informer_synced_wait(informer, (vd_dur) { -1 }) != VD_OK)
			abort();
		vd_kube_informer_visit(informer, count_visits, &visits);
		(void) vd_kube_informer_count(informer);
		vd_kube_informer_close_wait(informer);
	}
	return NULL;
}

/* Real threads open, read and close the same informers. */
static void threads_open_and_close_informers(void **state)
{
	struct vd_kube_options	   options = VD_KUBE_OPTIONS_INIT;
	struct vd_env_options	   env_options = VD_ENV_OPTIONS_INIT;
	struct vdi_kube_informers *informers;
	struct vd_env		  *env;
	struct vd_kube		  *kube;
	struct vd_error		   error;
	pthread_t		   threads[4];

	kube_routes_init(&routes);
	serve(no_groups);
	options.server = "http://server";
	env_options.threads = 3;
	assert_status(vd_env_new_threads(&env_options, &env), VD_OK);
	assert_status(vdi_kube_open_over(env, &options, kube_routes_transport, &kube, &error), VD_OK);
	assert_status(vdi_kube_informers_of(kube, &informers), VD_OK);
	informers->store_open = open_any_store;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_create(&threads[i], NULL, open_and_close, kube), 0);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(threads); i++)
		assert_int_equal(pthread_join(threads[i], NULL), 0);
	vd_kube_close_wait(kube);
	vd_env_free(env);
}

static void arguments_are_checked(void **state)
{
	struct fixture		   f;
	struct seen		   seen = { 0 };
	struct vd_informer_handler handler = noting(&seen), quick = handler;
	struct vd_kube_scope	   scope = { .label_selector = vd_bytes_of("app in (") };
	struct vd_kube_informer	  *informer;
	struct vd_error		   error;

	setup(&f, 1);
	quick.resync_period = VD_MS(1);
	assert_status(vd_kube_informer_open(NULL, "pods", NULL, &handler, &informer, &error),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_kube_informer_open(f.kube, NULL, NULL, &handler, &informer, &error),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_kube_informer_open(f.kube, "pods", NULL, NULL, &informer, &error),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_kube_informer_open(f.kube, "pods", NULL, &handler, NULL, &error),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_kube_informer_open(f.kube, "pods", NULL, &quick, &informer, &error),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_kube_informer_open(f.kube, "pods/log", NULL, &handler, &informer, &error),
		      VD_INVALID_ARGUMENT);
	assert_status(vd_kube_informer_open(f.kube, "pods", &scope, &handler, &informer, &error),
		      VD_BAD_REQUEST);
	vd_kube_informer_close(NULL, on_closed, &seen);
	assert_int_equal(seen.closed, 1);
	teardown(&f);
}

static void torture_allocations(void **state)
{
	for (uint64_t nth = 1; nth < 2000; nth++) {
		struct fixture		   f;
		struct seen		   seen = { 0 };
		struct vd_informer_handler handler = noting(&seen);
		struct vd_kube_informer	  *informer = NULL;
		struct vd_error		   error;
		vd_status		   status;
		bool			   failed;

		setup(&f, nth);
		vdi_alloc_fail_nth(nth, 1 + nth % 3);
		status = vd_kube_informer_open(f.kube, "pods", NULL, &handler, &informer, &error);
		if (status == VD_OK)
			vdi_sim_advance(f.env, VD_SECONDS(60));
		failed = vdi_alloc_failed();
		vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK) {
			assert_int_equal(seen.synced, 1);
			vd_kube_informer_close_wait(informer);
		} else {
			assert_status(status, VD_NOMEM);
		}
		teardown(&f);
		if (!failed)
			break;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_informer_follows_its_resource),
		cmocka_unit_test(closing_none_is_allowed),
		cmocka_unit_test(callers_of_one_resource_share_a_store),
		cmocka_unit_test(a_resource_that_appears_later),
		cmocka_unit_test(a_resource_is_looked_for_once_at_a_time),
		cmocka_unit_test(a_resource_that_another_caller_found),
		cmocka_unit_test(a_server_that_is_down_at_first),
		cmocka_unit_test(a_resource_that_comes_back_in_another_version),
		cmocka_unit_test(only_what_was_removed_moves),
		cmocka_unit_test(an_object_that_cannot_be_decoded_is_left_out),
		cmocka_unit_test(closing_at_any_time),
		cmocka_unit_test(closing_inside_a_handler),
		cmocka_unit_test(closing_inside_a_visit),
		cmocka_unit_test(a_wait_ends_with_the_close),
		cmocka_unit_test(threads_open_and_close_informers),
		cmocka_unit_test(arguments_are_checked),
		cmocka_unit_test(torture_allocations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
