/* Each test has its own env, store, cacher and key prefix, so the server need not be emptied.
 *
 * The cacher's dump (cacher_dump.h) shows when everything is settled: the cacher has the last written
 * revision, no watch is being opened, and only watches whose sink accepted less than it was offered are
 * behind. Each delivery worker fills in its part of the dump on its own thread after all earlier events, so
 * everything that the dump shows was delivered. The cacher's own delivery worker fills in its part before it
 * reads its messages, so a watch that was just resumed appears in the second dump.
 */
#include "watch_suite_threads.h"

#include <jansson.h>
#include <vedette/cacher.h>

#include "cacher_dump.h"
#include "cacher_fixture.h"
#include "pod_objects.h"
#include "wait.h"

#define HANG VD_SECONDS(300)

static watch_suite_open_fn open_store;

struct threads_target {
	struct vd_env	 *env;
	struct vd_store	 *store;
	struct vd_codec	 *codec;
	struct vd_cacher *cacher;
	char		  prefix[64];
	vd_rev		  written;
	int64_t		  live;
};

static void *open_target(uint64_t seed, struct watch_place *ret_place)
{
	struct threads_target	*target = calloc(1, sizeof *target);
	struct vd_cacher_options options = VD_CACHER_OPTIONS_INIT;
	struct vd_error		 error = { 0 };

	(void) seed;
	target->live = vdi_alloc_live();
	assert_status(vd_env_new_threads(NULL, &target->env), VD_OK);
	assert_status(open_store(target->env, &target->store), VD_OK);
	target->codec = pod_codec_new();
	(void) snprintf(target->prefix, sizeof target->prefix, "/registry/watch-suite-%llx/pods/",
			(unsigned long long) vd_env_random(target->env));
	options.resource = "pods";
	options.key_prefix = target->prefix;
	options.codec = target->codec;
	options.trigger = "spec.nodeName";
	assert_status(vd_cacher_new(target->env, target->store, &options, &target->cacher, &error), VD_OK);
	assert_status(vd_cacher_ready_wait(target->cacher, HANG, &error), VD_OK);
	*ret_place = (struct watch_place) { target->env, target->store, target->cacher };
	return target;
}

static void close_target(void *arg)
{
	struct threads_target *target = arg;

	vd_cacher_close_wait(target->cacher);
	vd_store_close_wait(target->store);
	vd_codec_free(target->codec);
	vd_env_free(target->env);
	assert_int_equal(vdi_alloc_live(), target->live);
	free(target);
}

static void name_key(struct threads_target *target, char *key, size_t size, const char *namespace_name,
		     const char *name)
{
	(void) snprintf(key, size, "%s%s/%s", target->prefix, namespace_name, name);
}

static vd_rev put(void *arg, const char *namespace_name, const char *name, const char *app, const char *node)
{
	struct threads_target *target = arg;
	char		       key[256], value[1024];

	name_key(target, key, sizeof key, namespace_name, name);
	write_pod(value, sizeof value, namespace_name, name, app, node);
	assert_status(vd_store_put_wait(target->store, vd_bytes_of(key), vd_bytes_of(value), &target->written,
					NULL),
		      VD_OK);
	return target->written;
}

static vd_rev remove_one(void *arg, const char *namespace_name, const char *name)
{
	struct threads_target *target = arg;
	char		       key[256];
	int64_t		       deleted = 0;

	name_key(target, key, sizeof key, namespace_name, name);
	assert_status(vd_store_delete_wait(target->store, vd_bytes_of(key), VD_BYTES_NONE, &deleted,
					   &target->written, NULL),
		      VD_OK);
	assert_int_equal(deleted, 1);
	return target->written;
}

/* ---- Settling ---- */

struct look {
	struct vdi_wait wait;
	vd_rev		written;
	bool		is_settled;
};

static json_int_t number(const json_t *object, const char *key)
{
	return json_integer_value(json_object_get(object, key));
}

static void look_at(void *arg, vd_status status, struct vd_bytes text)
{
	struct look  *look = arg;
	json_t	     *dump = status == VD_OK ? json_loadb(text.data, text.size, 0, NULL) : NULL;
	const json_t *watchers = json_object_get(dump, "watchers");
	json_int_t    behind = number(watchers, "behind");
	json_t	     *row;
	size_t	      i;

	look->is_settled = dump && number(dump, "resourceVersion") >= look->written &&
			   behind == number(watchers, "blocked") &&
			   number(watchers, "count") == number(watchers, "live") + behind;
	json_array_foreach (json_object_get(watchers, "slowest"), i, row)
		if (strcmp(json_string_value(json_object_get(row, "state")), "live") == 0 &&
		    number(row, "lagEvents"))
			look->is_settled = false;
	json_decref(dump);
	vdi_wait_signal(&look->wait);
}

static bool is_settled(struct threads_target *target)
{
	struct look look = { .written = target->written };

	vdi_wait_init(&look.wait, target->env);
	assert_status(vdi_cacher_dump(target->cacher, look_at, &look), VD_OK);
	vdi_wait_wait(&look.wait);
	vdi_wait_fini(&look.wait);
	return look.is_settled;
}

static void settle(void *arg)
{
	struct threads_target *target = arg;
	vd_mono		       due = vd_mono_add(vd_env_now(target->env), HANG);

	while (!is_settled(target) || !is_settled(target)) {
		struct vdi_wait pause;
		bool		signalled;

		assert_true(vd_env_now(target->env).ns < due.ns);
		vdi_wait_init(&pause, target->env);
		signalled = vdi_wait_until(&pause, vd_mono_add(vd_env_now(target->env), VD_MS(1)));
		assert_false(signalled);
		vdi_wait_fini(&pause);
	}
}

int watch_suite_run_threads(const char *name, watch_suite_open_fn open,
			    const struct watch_suite_exception *exceptions)
{
	const struct watch_target target = { name,	 open_target, close_target, put,
					     remove_one, settle,      exceptions };

	open_store = open;
	return watch_suite_run(&target);
}
