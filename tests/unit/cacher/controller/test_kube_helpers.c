/* Updates with conflict retries, and apply, over an API server in memory. */
#include <math.h>

#include "actor_sim.h"
#include "env.h"
#include "requests_peer.h"
#include "vdtest.h"

#define PATH "/api/v1/namespaces/ns/configmaps/c"

static const struct vd_kube_resource configmaps = { .version = "v1", .plural = "configmaps" };

struct world {
	struct vd_env	     *env;
	struct requests_peer  peer;
	struct vd_kube_update update;
	unsigned	      edits, answers;
	unsigned	      disturbed; /* edits after which another client writes */
	vd_status	      edit_status;
	bool		      is_unchanged;
	vd_status	      status;
	char		      body[512], message[VD_ERROR_MESSAGE_SIZE];
};

static vd_status edit(void *arg, struct vd_bytes object, struct vd_blob **ret_object)
{
	struct world *world = arg;
	char	      text[512], version[16] = "";
	const char   *at = strstr((const char *) object.data, "resourceVersion\":\"");

	world->edits++;
	if (at)
		(void) sscanf(at, "resourceVersion\":\"%15[0-9]", version);
	if (world->disturbed) {
		world->disturbed--;
		requests_peer_put(&world->peer, PATH, "{\"metadata\":{\"name\":\"c\"}}");
	}
	if (world->edit_status != VD_OK || world->is_unchanged)
		return world->edit_status;
	(void) snprintf(text, sizeof text,
			"{\"metadata\":{\"name\":\"c\",\"resourceVersion\":\"%s\"},\"data\":{\"a\":\"%u\"}}",
			version, world->edits);
	return vd_blob_new(vd_bytes_of(text), ret_object);
}

static void answered(void *arg, vd_status status, const struct vd_kube_answer *answer,
		     const struct vd_error *error)
{
	struct world *world = arg;

	world->answers++;
	world->status = status;
	(void) snprintf(world->body, sizeof world->body, "%.*s", answer ? (int) answer->body.size : 0,
			answer ? (const char *) answer->body.data : "");
	(void) snprintf(world->message, sizeof world->message, "%s", error ? error->message : "");
}

static void world_init(struct world *world)
{
	struct vd_kube_update update = VD_KUBE_UPDATE_INIT;

	*world = (struct world) { 0 };
	assert_status(vdi_env_new_sim(3, NULL, NULL, &world->env), VD_OK);
	requests_peer_init(&world->peer, world->env);
	requests_peer_put(&world->peer, PATH, "{\"metadata\":{\"name\":\"c\"}}");
	update.resource = &configmaps;
	update.namespace_name = vd_bytes_of("ns");
	update.name = vd_bytes_of("c");
	update.edit = edit;
	update.edit_arg = world;
	world->update = update;
}

static void world_fini(struct world *world)
{
	requests_peer_fini(&world->peer);
	vd_env_free(world->env);
}

static vd_status run_update(struct world *world)
{
	struct vdi_kube_requests requests = requests_peer_of(&world->peer);

	assert_status(vdi_kube_update(&requests, &world->update, answered, world), VD_OK);
	vdi_sim_advance(world->env, VD_SECONDS(10));
	assert_int_equal(world->answers, 1);
	return world->status;
}

static void an_update_reads_edits_and_writes(void **state)
{
	struct world world;

	world_init(&world);
	assert_status(run_update(&world), VD_OK);
	assert_int_equal(world.edits, 1);
	assert_string_equal(world.peer.log, "GET " PATH "\nPUT " PATH "\n");
	assert_string_equal(world.body, requests_peer_get(&world.peer, PATH));
	assert_non_null(strstr(world.body, "\"a\":\"1\""));
	world_fini(&world);
}

static void k401_a_conflict_is_retried_with_the_new_object(void **state)
{
	struct world world;

	world_init(&world);
	world.disturbed = 4;
	assert_status(run_update(&world), VD_OK);
	assert_int_equal(world.edits, 5);
	assert_non_null(strstr(world.body, "\"a\":\"5\""));
	world_fini(&world);
}

static void k402_after_the_last_attempt_the_conflict_is_reported(void **state)
{
	struct world world;
	vd_mono	     begun;

	world_init(&world);
	world.disturbed = 5;
	begun = vd_env_now(world.env);
	assert_status(run_update(&world), VD_CONFLICT);
	assert_int_equal(world.edits, 5);
	assert_true(vd_env_now(world.env).ns - begun.ns >= 4 * VD_MS(10).ns);
	assert_string_equal(world.message, "scripted: the object was changed by another writer; read again");
	world_fini(&world);
}

static void delays_grow_by_the_factor(void **state)
{
	static const struct vd_kube_retry backoff = VD_KUBE_RETRY_BACKOFF;
	struct vdi_kube_requests	  requests;
	struct world			  world;

	world_init(&world);
	requests = requests_peer_of(&world.peer);
	world.update.retry = backoff;
	world.update.retry.jitter = 0;
	world.disturbed = 100;
	assert_status(vdi_kube_update(&requests, &world.update, answered, &world), VD_OK);
	vdi_sim_advance(world.env, VD_MS(9));
	assert_int_equal(world.edits, 1);
	vdi_sim_advance(world.env, VD_MS(1));
	assert_int_equal(world.edits, 2);
	vdi_sim_advance(world.env, VD_MS(50));
	assert_int_equal(world.edits, 3);
	vdi_sim_advance(world.env, VD_MS(249));
	assert_int_equal(world.edits, 3);
	vdi_sim_advance(world.env, VD_MS(1));
	assert_int_equal(world.edits, 4);
	assert_int_equal(world.answers, 1);
	assert_status(world.status, VD_CONFLICT);
	world_fini(&world);
}

/* However long the delay and its factor are. */
static void a_delay_grows_to_a_minute(void **state)
{
	static const int64_t	 delays_s[] = { 40, 60, 60 };
	struct vdi_kube_requests requests;
	struct world		 world;

	world_init(&world);
	requests = requests_peer_of(&world.peer);
	world.update.retry = (struct vd_kube_retry) { .attempts = 4, .delay = VD_SECONDS(40), .factor = 3 };
	world.disturbed = 100;
	assert_status(vdi_kube_update(&requests, &world.update, answered, &world), VD_OK);
	vdi_sim_run_until_idle(world.env);
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(delays_s); i++) {
		vdi_sim_advance(world.env, (vd_dur) { delays_s[i] * 1000000000 - 1 });
		assert_int_equal(world.edits, i + 1);
		vdi_sim_advance(world.env, (vd_dur) { 1 });
		assert_int_equal(world.edits, i + 2);
	}
	assert_status(world.status, VD_CONFLICT);
	world_fini(&world);
}

/* By up to jitter times its length. */
static void a_delay_is_spread(void **state)
{
	struct vdi_kube_requests requests;
	struct world		 world;
	int64_t			 least = INT64_MAX, most = 0;

	for (unsigned i = 0; i < 40; i++) {
		vd_mono begun;

		world_init(&world);
		for (unsigned k = 0; k < i; k++)
			(void) vd_env_random_below(world.env, 2);
		requests = requests_peer_of(&world.peer);
		world.update.retry = (struct vd_kube_retry) {
			.attempts = 2, .delay = VD_SECONDS(1), .factor = 1, .jitter = 0.5
		};
		world.disturbed = 100;
		begun = vd_env_now(world.env);
		assert_status(vdi_kube_update(&requests, &world.update, answered, &world), VD_OK);
		while (world.edits < 2)
			vdi_sim_advance(world.env, VD_MS(1));
		least = VDI_MIN(least, vd_mono_since(vd_env_now(world.env), begun).ns);
		most = VDI_MAX(most, vd_mono_since(vd_env_now(world.env), begun).ns);
		world_fini(&world);
	}
	assert_in_range(least, VD_MS(1000).ns, VD_MS(1200).ns);
	assert_in_range(most, VD_MS(1300).ns, VD_MS(1501).ns);
}

static void k403_other_errors_end_the_update(void **state)
{
	struct world world;

	world_init(&world);
	world.is_unchanged = true;
	assert_status(run_update(&world), VD_OK);
	assert_string_equal(world.peer.log, "GET " PATH "\n");
	assert_string_equal(world.body, requests_peer_get(&world.peer, PATH));
	world_fini(&world);

	world_init(&world);
	world.edit_status = VD_INVALID;
	assert_status(run_update(&world), VD_INVALID);
	assert_string_equal(world.message,
			    "the edit of " PATH ": understood, but the content is not allowed");
	world_fini(&world);

	world_init(&world);
	requests_peer_delete(&world.peer, PATH);
	assert_status(run_update(&world), VD_NOT_FOUND);
	assert_int_equal(world.edits, 0);
	world_fini(&world);

	world_init(&world);
	requests_peer_fail(&world.peer, VD_OK);
	requests_peer_fail(&world.peer, VD_FORBIDDEN);
	assert_status(run_update(&world), VD_FORBIDDEN);
	assert_int_equal(world.edits, 1);
	world_fini(&world);
}

static void a_client_that_closes_ends_the_update(void **state)
{
	struct vdi_kube_requests requests;
	struct world		 world;

	world_init(&world);
	requests = requests_peer_of(&world.peer);
	world.disturbed = 1;
	assert_status(vdi_kube_update(&requests, &world.update, answered, &world), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(world.answers, 0);
	world.peer.is_refusing = true;
	vdi_sim_advance(world.env, VD_SECONDS(1));
	assert_int_equal(world.answers, 1);
	assert_status(world.status, VD_CLOSED);
	assert_string_equal(world.message, "GET " PATH ": the object is being shut down");
	assert_status(vdi_kube_update(&requests, &world.update, answered, &world), VD_CLOSED);
	assert_int_equal(world.answers, 1);
	vdi_sim_run_until_idle(world.env);
	world_fini(&world);
}

static void wrong_arguments_are_refused(void **state)
{
	struct vdi_kube_requests requests;
	struct vd_kube_update	 update;
	struct world		 world;
	static char		 long_name[4096];

	world_init(&world);
	requests = requests_peer_of(&world.peer);
#define REFUSED(member, value, expected)                                                                     \
	do {                                                                                                 \
		update = world.update;                                                                       \
		update.member = value;                                                                       \
		assert_status(vdi_kube_update(&requests, &update, answered, &world), expected);              \
	} while (0)
	memset(long_name, 'x', sizeof long_name - 1);
	REFUSED(name, VD_BYTES_NONE, VD_INVALID_ARGUMENT);
	REFUSED(name, vd_bytes_of(long_name), VD_TOO_BIG);
	REFUSED(edit, NULL, VD_INVALID_ARGUMENT);
	REFUSED(resource, NULL, VD_INVALID_ARGUMENT);
	REFUSED(retry.attempts, 0, VD_INVALID_ARGUMENT);
	REFUSED(retry.attempts, 101, VD_INVALID_ARGUMENT);
	REFUSED(retry.factor, 0.5, VD_INVALID_ARGUMENT);
	REFUSED(retry.factor, (double) NAN, VD_INVALID_ARGUMENT);
	REFUSED(retry.jitter, -0.1, VD_INVALID_ARGUMENT);
	REFUSED(retry.jitter, (double) NAN, VD_INVALID_ARGUMENT);
	REFUSED(retry.delay.ns, -1, VD_INVALID_ARGUMENT);
	REFUSED(size, 1, VD_INVALID_ARGUMENT);
#undef REFUSED
	assert_int_equal(world.peer.calls, 0);
	world_fini(&world);
}

static void a_path_fits_or_is_refused(void **state)
{
	static char	      name[VDI_KUBE_PATH_MAX];
	const struct vd_bytes names = vd_bytes_of("ns");
	char		      path[VDI_KUBE_PATH_MAX];
	struct vd_bytes	      longest = { name, 0 };

	memset(name, 'x', sizeof name);
	/* With the NUL behind it. */
	longest.size = VDI_KUBE_PATH_MAX - 1 - strlen("/api/v1/namespaces/ns/configmaps/");
	assert_status(vdi_kube_object_path(&configmaps, names, longest, NULL, path), VD_OK);
	assert_int_equal(strlen(path), VDI_KUBE_PATH_MAX - 1);
	longest.size++;
	assert_status(vdi_kube_object_path(&configmaps, names, longest, NULL, path), VD_TOO_BIG);
	longest.size -= 1 + strlen("/status");
	assert_status(vdi_kube_object_path(&configmaps, names, longest, "status", path), VD_OK);
	assert_int_equal(strlen(path), VDI_KUBE_PATH_MAX - 1);
	assert_string_equal(path + strlen(path) - 8, "x/status");
	longest.size++;
	assert_status(vdi_kube_object_path(&configmaps, names, longest, "status", path), VD_TOO_BIG);
}

static void apply_sends_a_patch_with_its_manager(void **state)
{
	struct vd_kube_apply	 apply = VD_KUBE_APPLY_INIT;
	struct vdi_kube_requests requests;
	struct world		 world;

	world_init(&world);
	requests = requests_peer_of(&world.peer);
	apply.resource = &configmaps;
	apply.namespace_name = vd_bytes_of("ns");
	apply.name = vd_bytes_of("c");
	apply.subresource = "status";
	apply.configuration = vd_bytes_of("{\"data\":{}}");
	apply.field_manager = "my ctl&x";
	apply.force = true;
	assert_status(vdi_kube_apply(&requests, &apply, answered, &world), VD_OK);
	apply.force = false;
	apply.subresource = NULL;
	assert_status(vdi_kube_apply(&requests, &apply, answered, &world), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_string_equal(world.peer.log, "PATCH " PATH "/status?fieldManager=my%20ctl%26x&force=true\n"
					    "PATCH " PATH "?fieldManager=my%20ctl%26x\n");
	assert_string_equal(world.peer.content_type, "application/apply-patch+yaml");
	assert_status(world.status, VD_OK);
	apply.field_manager = "";
	assert_status(vdi_kube_apply(&requests, &apply, answered, &world), VD_INVALID_ARGUMENT);
	world_fini(&world);
}

static void the_manager_of_an_apply_is_escaped(void **state)
{
	struct vd_kube_apply	 apply = VD_KUBE_APPLY_INIT;
	struct vdi_kube_requests requests;
	struct world		 world;

	world_init(&world);
	requests = requests_peer_of(&world.peer);
	apply.resource = &configmaps;
	apply.namespace_name = vd_bytes_of("ns");
	apply.name = vd_bytes_of("c");
	apply.configuration = vd_bytes_of("{}");
	apply.field_manager = "azAZ09-_.~/:@[`{\x7f\xc3\xa9";
	assert_status(vdi_kube_apply(&requests, &apply, answered, &world), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_string_equal(world.peer.log,
			    "PATCH " PATH "?fieldManager=azAZ09-_.~%2F%3A%40%5B%60%7B%7F%C3%A9\n");
	apply.name = VD_BYTES_NONE;
	assert_status(vdi_kube_apply(&requests, &apply, answered, &world), VD_INVALID_ARGUMENT);
	world_fini(&world);
}

/* A manager that does not fit is not cut: it would be another one. */
static void the_manager_of_an_apply_fits_or_is_refused(void **state)
{
	static char		 manager[VDI_KUBE_PATH_MAX];
	struct vd_kube_apply	 apply = VD_KUBE_APPLY_INIT;
	struct vdi_kube_requests requests;
	struct world		 world;
	/* Room for one escaped letter is kept. */
	const size_t fits = VDI_KUBE_PATH_MAX - 1 - strlen(PATH "?fieldManager=&force=true") - 3;

	world_init(&world);
	requests = requests_peer_of(&world.peer);
	apply.resource = &configmaps;
	apply.namespace_name = vd_bytes_of("ns");
	apply.name = vd_bytes_of("c");
	apply.configuration = vd_bytes_of("{}");
	apply.field_manager = manager;
	apply.force = true;
	for (size_t size = fits - 1; size <= fits + 1; size++) {
		memset(manager, 'm', size);
		world.peer.log[0] = 0;
		assert_status(vdi_kube_apply(&requests, &apply, answered, &world),
			      size <= fits ? VD_OK : VD_TOO_BIG);
		vdi_sim_run_until_idle(world.env);
		assert_int_equal(strlen(world.peer.log),
				 size <= fits ? strlen("PATCH " PATH "?fieldManager=&force=true\n") + size :
						0);
	}
	world_fini(&world);
}

static void torture_an_update_begins_or_reports_lack_of_memory(void **state)
{
	bool has_failed = true;

	for (uint64_t nth = 1; has_failed; nth++) {
		struct vdi_kube_requests requests;
		struct world		 world;
		vd_status		 status;

		world_init(&world);
		requests = requests_peer_of(&world.peer);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_kube_update(&requests, &world.update, answered, &world);
		has_failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, has_failed ? VD_NOMEM : VD_OK);
		vdi_sim_run_until_idle(world.env);
		assert_int_equal(world.answers, status == VD_OK);
		world_fini(&world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_update_reads_edits_and_writes),
		cmocka_unit_test(k401_a_conflict_is_retried_with_the_new_object),
		cmocka_unit_test(k402_after_the_last_attempt_the_conflict_is_reported),
		cmocka_unit_test(delays_grow_by_the_factor),
		cmocka_unit_test(a_delay_grows_to_a_minute),
		cmocka_unit_test(a_delay_is_spread),
		cmocka_unit_test(the_manager_of_an_apply_is_escaped),
		cmocka_unit_test(the_manager_of_an_apply_fits_or_is_refused),
		cmocka_unit_test(k403_other_errors_end_the_update),
		cmocka_unit_test(a_client_that_closes_ends_the_update),
		cmocka_unit_test(wrong_arguments_are_refused),
		cmocka_unit_test(a_path_fits_or_is_refused),
		cmocka_unit_test(apply_sends_a_patch_with_its_manager),
		cmocka_unit_test(torture_an_update_begins_or_reports_lack_of_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
