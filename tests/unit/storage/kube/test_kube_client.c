/* Members, exchanges, health and the end of a client, over a scripted transport. */
#include "actor_sim.h"
#include "kube_client.h"
#include "kube_script.h"
#include "vdtest.h"

struct part {
	struct vdi_kube_member	  member;
	struct vdi_kube_exchange *exchange;
	unsigned		  runs, heads, ends;
	vd_status		  status;
	vd_mono			  next; /* returned by run */
	bool	 starts, pauses, removes, closes_itself, is_removed, wants_cancel, cancels_in_head;
	uint64_t received;
};

struct change {
	const char	  *resource;
	enum vd_kube_state state;
	char		   message[128];
};

static struct {
	struct vd_env	  *env;
	struct vd_kube	  *kube;
	struct kube_script script;
	struct change	   changes[32];
	size_t		   change_count;
	bool		   is_closed;
} world;

static void on_changed(void *arg, const struct vd_kube_health *health)
{
	struct change *change = &world.changes[world.change_count++];

	(void) arg;
	assert_true(world.change_count < VDI_ARRAY_SIZE(world.changes));
	change->resource = health->resource;
	change->state = health->state;
	snprintf(change->message, sizeof change->message, "%.127s", health->error.message);
}

static void begin(const struct kube_script_answer *answers, size_t count)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;

	memset(&world, 0, sizeof world);
	assert_status(vdi_env_new_sim(11, NULL, NULL, &world.env), VD_OK);
	world.script.env = world.env;
	world.script.answers = answers;
	world.script.count = count;
	kube_script_use(&world.script);
	options.server = "https://10.0.0.1:6443/";
	options.changed = on_changed;
	assert_status(vdi_kube_open_over(world.env, &options, kube_script_transport_new, &world.kube, NULL),
		      VD_OK);
}

static void end(void)
{
	world.kube = vd_kube_close_wait(world.kube);
	assert_int_equal(world.script.open, 0);
	world.env = vd_env_free(world.env);
}

/* ---- A member ---- */

static void on_head(void *arg, const struct vdi_kube_head *head)
{
	struct part *part = arg;

	(void) head;
	part->heads++;
	if (part->cancels_in_head) {
		vdi_kube_cancel(part->exchange);
		part->exchange = NULL;
	}
}

static bool on_body(void *arg, struct vd_bytes bytes)
{
	struct part *part = arg;

	if (!part->pauses)
		part->received += bytes.size;
	return !part->pauses;
}

static void on_ended(void *arg, vd_status status, const struct vd_error *error)
{
	struct part *part = arg;

	(void) error;
	part->exchange = NULL;
	part->ends++;
	part->status = status;
}

static void start(struct part *part)
{
	const struct vdi_kube_handler	   handler = { on_head, on_body, on_ended, part };
	const struct vdi_kube_http_request request = { .method = "GET", .path = "/x" };

	part->starts = false;
	part->status = vdi_kube_start(world.kube, &request, &handler, &part->exchange, NULL);
}

static vd_mono part_run(struct vdi_kube_member *member, vd_mono now)
{
	struct part *part = VDI_CONTAINER_OF(member, struct part, member);

	(void) now;
	assert_false(part->is_removed);
	part->runs++;
	if (part->starts)
		start(part);
	if (part->wants_cancel && part->exchange) {
		vdi_kube_cancel(part->exchange);
		part->exchange = NULL;
	}
	if (part->removes) {
		part->is_removed = true;
		vdi_kube_member_remove(member);
	}
	return part->next;
}

static void part_health(struct vdi_kube_member *member, struct vd_kube_health *ret_health)
{
	(void) member;
	ret_health->resource = "pods";
	ret_health->state = VD_KUBE_LISTING;
}

static void part_close(struct vdi_kube_member *member)
{
	struct part *part = VDI_CONTAINER_OF(member, struct part, member);

	assert_false(part->is_removed);
	if (part->exchange)
		vdi_kube_cancel(part->exchange);
	part->is_removed = true;
	vdi_kube_member_remove(member);
}

static void add(struct part *part)
{
	part->member.run = part_run;
	part->member.close = part_close;
	part->member.health = part_health;
	if (part->next.ns == 0)
		part->next = VD_NEVER;
	assert_status(vdi_kube_member_add(world.kube, &part->member), VD_OK);
}

/* ---- Tests ---- */

static void members_run_when_woken_and_when_due(void **state)
{
	struct part one = { 0 }, two = { 0 };

	(void) state;
	begin(NULL, 0);
	two.next = vd_mono_add(vd_env_now(world.env), VD_SECONDS(5));
	add(&one);
	add(&two);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(one.runs, 1);
	assert_int_equal(two.runs, 1);
	vdi_kube_member_wake(&one.member);
	vdi_kube_member_wake(&one.member);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(one.runs, 2);
	assert_int_equal(two.runs, 1);
	vdi_sim_advance(world.env, VD_MS(4999));
	assert_int_equal(two.runs, 1);
	two.next = VD_NEVER;
	vdi_sim_advance(world.env, VD_MS(1));
	assert_int_equal(two.runs, 2);
	vdi_sim_advance(world.env, VD_SECONDS(1000));
	assert_int_equal(two.runs, 2);
	assert_int_equal(one.runs, 2);
	end();
	assert_true(one.is_removed && two.is_removed);
}

/* A time that has passed makes a member run again, but not in the same run of the actor. */
static void a_member_that_is_always_due_does_not_stop_the_others(void **state)
{
	struct part busy = { .next = { 1 } }, other = { 0 };

	(void) state;
	begin(NULL, 0);
	add(&busy);
	add(&other);
	vdi_sim_advance(world.env, (vd_dur) { 100 });
	assert_in_range(busy.runs, 50, 110);
	assert_int_equal(other.runs, 1);
	end();
}

static void members_remove_themselves(void **state)
{
	struct part parts[3] = { { .removes = true }, { .runs = 0 }, { .removes = true } };

	(void) state;
	begin(NULL, 0);
	add(&parts[0]);
	add(&parts[1]);
	add(&parts[2]);
	vdi_kube_member_wake(&parts[2].member);
	vdi_sim_run_until_idle(world.env);
	assert_true(parts[0].is_removed && parts[2].is_removed && !parts[1].is_removed);
	end();
	assert_true(parts[1].is_removed);
}

/* The owner of a member without a close function removes it later. */
static void the_client_waits_for_its_members(void **state)
{
	struct part part = { 0 };

	(void) state;
	begin(NULL, 0);
	add(&part);
	part.member.close = NULL;
	vd_kube_close(world.kube, NULL, NULL);
	vdi_sim_advance(world.env, VD_SECONDS(60));
	assert_true(vdi_sim_actors(world.env) > 0);
	assert_status(vdi_kube_member_add(world.kube, &(struct part) { .runs = 0 }.member), VD_CLOSED);
	part.starts = part.removes = true;
	vdi_kube_member_wake(&part.member);
	vdi_sim_run_until_idle(world.env);
	assert_status(part.status, VD_CLOSED); /* it cannot start an exchange any more */
	assert_int_equal(vdi_sim_actors(world.env), 0);
	world.env = vd_env_free(world.env);
}

static void an_exchange_reaches_its_member(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 200, .body = "hello" },
							     { .code = 200, .body = "hello" },
							     { .code = 200, .holds = true } };
	struct part			       part = { .starts = true };

	(void) state;
	begin(answers, VDI_ARRAY_SIZE(answers));
	add(&part);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(part.heads, 1);
	assert_int_equal(part.received, 5);
	assert_int_equal(part.ends, 1);
	assert_status(part.status, VD_OK);
	/* Paused and resumed. */
	part.pauses = part.starts = true;
	vdi_kube_member_wake(&part.member);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(part.received, 5);
	assert_int_equal(part.ends, 1);
	part.pauses = false;
	vdi_kube_resume(part.exchange);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(part.received, 10);
	assert_int_equal(part.ends, 2);
	/* Canceled. */
	part.starts = part.cancels_in_head = true;
	vdi_kube_member_wake(&part.member);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(part.heads, 3);
	assert_int_equal(part.ends, 2);
	assert_int_equal(world.script.open, 0);
	end();
}

struct visited {
	struct vd_kube_health cluster;
	unsigned	      count;
};

static void visit(void *arg, const struct vd_kube_health *health)
{
	struct visited *visited = arg;

	if (visited->count++ == 0) {
		assert_null(health->resource);
		visited->cluster = *health;
	} else {
		assert_string_equal(health->resource, "pods");
		assert_int_equal(health->state, VD_KUBE_LISTING);
	}
}

static struct visited health(void)
{
	struct visited visited = { 0 };

	vd_kube_health(world.kube, visit, &visited);
	return visited;
}

static void the_health_of_the_cluster(void **state)
{
	static const struct kube_script_answer answers[] = { { .status = VD_UNAVAILABLE },
							     { .status = VD_UNAVAILABLE },
							     { .code = 500 },
							     { .code = 200, .status = VD_UNAVAILABLE } };
	struct part			       part = { 0 };
	struct visited			       visited;
	struct vdi_kube_backoff		       backoff = { 0 }, later = { 0 };
	unsigned			       i;

	(void) state;
	begin(answers, VDI_ARRAY_SIZE(answers));
	add(&part);
	vdi_sim_run_until_idle(world.env);
	visited = health();
	assert_int_equal(visited.count, 2);
	assert_int_equal(visited.cluster.state, VD_KUBE_CONNECTING);
	for (i = 0; i < 2; i++) {
		part.starts = true;
		vdi_kube_member_wake(&part.member);
		vdi_sim_run_until_idle(world.env);
	}
	vdi_kube_backoff_fail(world.kube, &backoff, 0);
	visited = health();
	assert_int_equal(visited.cluster.state, VD_KUBE_RETRYING);
	assert_int_equal(visited.cluster.attempts, 2);
	assert_status(visited.cluster.error.code, VD_UNAVAILABLE);
	assert_int_equal(visited.cluster.retry_at.ns, backoff.retry_at.ns);
	vdi_kube_backoff_fail(world.kube, &later, 30); /* of several, the next one */
	visited = health();
	assert_int_equal(visited.cluster.retry_at.ns, backoff.retry_at.ns);
	for (i = 0; i < 2; i++) { /* also an error is an answer */
		part.starts = true;
		vdi_kube_member_wake(&part.member);
		vdi_sim_run_until_idle(world.env);
		visited = health();
		assert_int_equal(visited.cluster.state, VD_KUBE_WATCHING);
		assert_int_equal(visited.cluster.attempts, 0);
		assert_int_equal(visited.cluster.heard.ns, vd_env_now(world.env).ns);
	}
	vdi_kube_health_changed(world.kube, &part.member);
	assert_int_equal(world.change_count, 3);
	assert_int_equal(world.changes[0].state, VD_KUBE_RETRYING);
	assert_non_null(strstr(world.changes[0].message, "scripted end"));
	assert_int_equal(world.changes[1].state, VD_KUBE_WATCHING);
	assert_string_equal(world.changes[2].resource, "pods");
	end();
}

static void delays_grow_and_obey_the_server(void **state)
{
	struct vdi_kube_backoff backoff = { 0 };
	int64_t			now, most = VD_MS(100).ns;
	unsigned		i;

	(void) state;
	begin(NULL, 0);
	now = vd_env_now(world.env).ns;
	for (i = 0; i < 40; i++) {
		vdi_kube_backoff_fail(world.kube, &backoff, 0);
		assert_in_range(backoff.retry_at.ns - now, most / 2, most);
		most = VDI_MIN(most * 2, VD_SECONDS(30).ns);
	}
	vdi_kube_backoff_reset(&backoff);
	vdi_kube_backoff_fail(world.kube, &backoff, 7);
	assert_in_range(backoff.retry_at.ns - now, VD_SECONDS(7).ns, VD_MS(8750).ns);
	vdi_kube_backoff_fail(world.kube, &backoff, UINT32_MAX); /* bounded */
	assert_in_range(backoff.retry_at.ns - now, VD_SECONDS(600).ns, VD_SECONDS(750).ns);
	end();
}

static void bad_options_are_refused(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	struct vd_error	       error;
	struct vd_kube	      *kube;

	(void) state;
	begin(NULL, 0);
	options.server = "https://10.0.0.1";
	options.silence_max = VD_MS(4999);
	assert_status(vd_kube_open(world.env, &options, &kube, &error), VD_INVALID_ARGUMENT);
	assert_non_null(strstr(error.message, "silence_max"));
	options.silence_max = VD_SECONDS(5);
	options.request_timeout.ns = 0;
	assert_status(vd_kube_open(world.env, &options, &kube, &error), VD_INVALID_ARGUMENT);
	assert_non_null(strstr(error.message, "request_timeout"));
	options.size--;
	assert_status(vd_kube_open(world.env, &options, &kube, &error), VD_INVALID_ARGUMENT);
	assert_status(vd_kube_open(NULL, &options, &kube, &error), VD_INVALID_ARGUMENT);
	assert_status(vd_kube_open(world.env, NULL, &kube, &error), VD_INVALID_ARGUMENT);
	options = (struct vd_kube_options) VD_KUBE_OPTIONS_INIT;
	assert_status(vd_kube_open(world.env, &options, NULL, &error), VD_INVALID_ARGUMENT);
	assert_string_equal(vd_kube_server(world.kube), "https://10.0.0.1:6443");
	end();
	vd_kube_close(NULL, NULL, NULL);
	assert_null(vd_kube_close_wait(NULL));
}

static void torture_open(void **state)
{
	struct vd_kube_options options = VD_KUBE_OPTIONS_INIT;
	uint64_t	       nth;
	vd_status	       status = VD_NOMEM;

	(void) state;
	begin(NULL, 0);
	options.server = "https://10.0.0.1";
	options.token = "secret";
	options.user_agent = "test";
	for (nth = 1; status != VD_OK; nth++) {
		struct vd_kube *kube = NULL;
		struct vd_error error = { 0 };

		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_kube_open_over(world.env, &options, kube_script_transport_new, &kube, &error);
		(void) vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK)
			kube = vd_kube_close_wait(kube);
		else
			assert_status(status, VD_NOMEM);
		assert_null(kube);
	}
	assert_true(nth > 8);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(members_run_when_woken_and_when_due),
		cmocka_unit_test(a_member_that_is_always_due_does_not_stop_the_others),
		cmocka_unit_test(members_remove_themselves),
		cmocka_unit_test(the_client_waits_for_its_members),
		cmocka_unit_test(an_exchange_reaches_its_member),
		cmocka_unit_test(the_health_of_the_cluster),
		cmocka_unit_test(delays_grow_and_obey_the_server),
		cmocka_unit_test(bad_options_are_refused),
		cmocka_unit_test(torture_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
