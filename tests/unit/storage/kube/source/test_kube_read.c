/* Which request a read of the store becomes, and how lists continue. */
#include <vedette/kube.h>

#include "actor_sim.h"
#include "kube_client.h"
#include "kube_script.h"
#include "kube_source.h"
#include "vdtest.h"

static struct {
	struct vd_env	  *env;
	struct vd_kube	  *kube;
	struct vd_store	  *store;
	struct kube_script script;
} world;

static const struct vd_kube_resource pods = { "", "v1", "pods", "Pod", false };

struct answer {
	bool	  came, more;
	vd_status status;
	vd_rev	  revision;
	size_t	  count;
	int64_t	  total;
	char	  keys[128]; /* each followed by a space */
};

static void begin(const struct vd_kube_resource *resource, const char *namespace_name, const char *prefix,
		  const struct kube_script_answer *answers, size_t count)
{
	struct vd_kube_options	   options = VD_KUBE_OPTIONS_INIT;
	const struct vd_kube_scope scope = { .namespace_name = vd_bytes_of(namespace_name) };

	memset(&world, 0, sizeof world);
	assert_status(vdi_env_new_sim(7, NULL, NULL, &world.env), VD_OK);
	world.script.env = world.env;
	world.script.answers = answers;
	world.script.count = count;
	kube_script_use(&world.script);
	options.server = "http://127.0.0.1:1";
	assert_status(vdi_kube_open_over(world.env, &options, kube_script_transport_new, &world.kube, NULL),
		      VD_OK);
	assert_status(vd_store_open_kube(world.kube, resource, &scope, prefix, &world.store, NULL), VD_OK);
}

static void end(void)
{
	world.store = vd_store_close_wait(world.store);
	world.kube = vd_kube_close_wait(world.kube);
	world.env = vd_env_free(world.env);
}

static void on_range(void *arg, vd_status status, const struct vd_range_result *result,
		     const struct vd_error *error)
{
	struct answer *answer = arg;
	size_t	       size = 0;

	(void) error;
	answer->came = true;
	answer->status = status;
	if (status != VD_OK)
		return;
	answer->revision = result->store_revision;
	answer->count = result->kv_count;
	answer->total = result->count;
	answer->more = result->more;
	for (size_t i = 0; i < result->kv_count; i++) {
		struct vd_bytes key = vd_kv_key(result->kvs[i]);

		assert_int_equal(result->kvs[i]->version, 1);
		assert_int_equal(result->kvs[i]->create_rev, result->kvs[i]->mod_rev);
		size += (size_t) snprintf(answer->keys + size, sizeof answer->keys - size, "%.*s ",
					  (int) key.size, (const char *) key.data);
	}
}

/* key may end with a NUL, as the key after another one. */
static struct answer range(const char *key, size_t key_size, const char *range_end, vd_rev revision,
			   int64_t limit)
{
	struct answer		answer = { 0 };
	struct vd_range_request request = { .key = { key, key_size },
					    .range_end = vd_bytes_of(range_end),
					    .revision = revision,
					    .limit = limit };

	assert_status(vd_store_range(world.store, &request, on_range, &answer), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_true(answer.came);
	return answer;
}

#define POD(name, revision)                                                                                  \
	"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"" name "\",\"namespace\":\"a\","   \
	"\"resourceVersion\":\"" revision "\"}}"
#define LIST(token, items)                                                                                   \
	"{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"" token "\"},\"items\":[" items "]}"

#define PREFIX "/registry/pods/"
#define PREFIX_END "/registry/pods0"
#define EXACT "&resourceVersion=7&resourceVersionMatch=Exact"

static const char *last_path(void)
{
	assert_true(world.script.request_count > 0);
	return world.script.requests[world.script.request_count - 1].path;
}

static void a_range_becomes_one_list(void **state)
{
	static const struct {
		const char *namespace_name, *key, *range_end;
		vd_rev	    revision;
		int64_t	    limit;
		const char *path;
	} rows[] = {
		{ NULL, PREFIX, PREFIX_END, 0, 0, "/api/v1/pods?limit=500" },
		{ NULL, PREFIX, PREFIX_END, 7, 0, "/api/v1/pods?limit=500" EXACT },
		{ NULL, PREFIX, PREFIX_END, 0, 1, "/api/v1/pods?limit=1" },
		{ NULL, PREFIX, PREFIX_END, 0, 499, "/api/v1/pods?limit=499" },
		{ NULL, PREFIX, PREFIX_END, 0, 501, "/api/v1/pods?limit=500" },
		{ NULL, PREFIX "a/", PREFIX "a0", 0, 0, "/api/v1/namespaces/a/pods?limit=500" },
		{ NULL, PREFIX "a/m", PREFIX "a0", 0, 0, "/api/v1/namespaces/a/pods?limit=500" },
		{ NULL, PREFIX "a/", PREFIX "a0", 7, 3, "/api/v1/namespaces/a/pods?limit=3" EXACT },
		/* Not only one namespace. */
		{ NULL, PREFIX "a/", PREFIX "a1", 0, 0, "/api/v1/pods?limit=500" },
		{ NULL, PREFIX "a/", PREFIX "b0", 0, 0, "/api/v1/pods?limit=500" },
		{ NULL, PREFIX "a/", PREFIX "a00", 0, 0, "/api/v1/pods?limit=500" },
		{ NULL, PREFIX "a/", PREFIX_END, 0, 0, "/api/v1/pods?limit=500" },
		{ NULL, PREFIX "a", PREFIX "b", 0, 0, "/api/v1/pods?limit=500" },
		{ NULL, PREFIX "/", PREFIX "0", 0, 0, "/api/v1/pods?limit=500" },
		{ NULL, PREFIX, PREFIX "a0", 0, 0, "/api/v1/pods?limit=500" },
		{ NULL, "/registry/podq/a/", "/registry/podq/a0", 0, 0, "/api/v1/pods?limit=500" },
		/* The store has one namespace. */
		{ "ns", PREFIX, PREFIX_END, 0, 0, "/api/v1/namespaces/ns/pods?limit=500" },
		{ "ns", PREFIX "ns/", PREFIX "ns0", 0, 0, "/api/v1/namespaces/ns/pods?limit=500" },
		/* The current revision, and a key at a revision. */
		{ NULL, "/registry/pods", "", 0, 1, "/api/v1/pods?limit=1" },
		{ NULL, PREFIX "a/x", "", 7, 0, "/api/v1/pods?limit=500" EXACT },
	};
	static const struct kube_script_answer answers[] = { { .code = 200, .body = LIST("", "") } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct answer answer;

		begin(&pods, rows[i].namespace_name, PREFIX, answers, 1);
		answer = range(rows[i].key, strlen(rows[i].key), rows[i].range_end, rows[i].revision,
			       rows[i].limit);
		assert_string_equal(last_path(), rows[i].path);
		assert_int_equal(world.script.request_count, 1);
		assert_status(answer.status, VD_OK);
		assert_int_equal(answer.revision, 7);
		assert_int_equal(answer.count, 0);
		assert_false(answer.more);
		end();
	}
}

static void a_key_becomes_one_object(void **state)
{
	static const struct vd_kube_resource   nodes = { "", "v1", "nodes", "Node", true };
	static const struct vd_kube_resource   deployments = { "apps", "v1", "deployments", "Deployment",
							       false };
	static const struct kube_script_answer gone[] = { { .code = 404, .body = "{}" } };
	static const struct kube_script_answer there[] = { { .code = 200, .body = POD("x", "5") } };
	struct answer			       answer;

	(void) state;
	begin(&pods, NULL, PREFIX, there, 1);
	answer = range(PREFIX "a/x", strlen(PREFIX "a/x"), "", 0, 0);
	assert_string_equal(last_path(), "/api/v1/namespaces/a/pods/x");
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.count, 1);
	assert_int_equal(answer.total, 1);
	assert_int_equal(answer.revision, 5);
	assert_string_equal(answer.keys, PREFIX "a/x ");
	end();
	begin(&nodes, NULL, "/registry/nodes/", gone, 1);
	answer = range("/registry/nodes/x", strlen("/registry/nodes/x"), "", 0, 0);
	assert_string_equal(last_path(), "/api/v1/nodes/x");
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.total, 0);
	assert_int_equal(answer.revision, 1); /* a store is never at 0 */
	end();
	begin(&deployments, "ns", "/r/", gone, 1);
	(void) range("/r/ns/x", strlen("/r/ns/x"), "", 0, 0);
	assert_string_equal(last_path(), "/apis/apps/v1/namespaces/ns/deployments/x");
	end();
}

/* Of a key that can name no object, only the revision is read. */
static void other_keys_are_not_sent(void **state)
{
	static const char *const keys[] = {
		PREFIX,		PREFIX "a",	      PREFIX "a/",	PREFIX "/x",
		PREFIX "a/x/y", "/registry/podq/a/x", "/registry/pods",
	};
	static const struct kube_script_answer answers[] = { { .code = 200,
							       .body = LIST("", POD("x", "5")) } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(keys); i++) {
		struct answer answer;

		begin(&pods, NULL, PREFIX, answers, 1);
		answer = range(keys[i], strlen(keys[i]), "", 0, 0);
		assert_string_equal(last_path(), "/api/v1/pods?limit=1");
		assert_status(answer.status, VD_OK);
		assert_int_equal(answer.revision, 7);
		assert_int_equal(answer.total, 0);
		end();
	}
}

static void expect_open(const struct vd_kube_resource *resource, const struct vd_kube_scope *scope,
			const char *prefix, const char *wrong)
{
	struct vd_store *store = NULL;
	struct vd_error	 error = { 0 };
	char		 expected[256] = "";

	if (wrong)
		snprintf(expected, sizeof expected, "vd_store_open_kube: %s is missing, too long or invalid",
			 wrong);
	assert_status(vd_store_open_kube(world.kube, resource, scope, prefix, &store, &error),
		      wrong ? VD_INVALID_ARGUMENT : VD_OK);
	assert_string_equal(error.message, expected);
	if (store)
		assert_null(vd_store_close_wait(store));
}

static void a_store_has_a_resource_and_a_scope(void **state)
{
	static const char	   prefixes[] = "key_prefix, which must end with '/',";
	static const char	   versions[] = "resource.version (vd_kube_find returns it)";
	static char		   text[1026], selector[8194];
	const struct vd_kube_scope all = { .namespace_name = VD_BYTES_NONE };

	(void) state;
	begin(&pods, NULL, PREFIX, NULL, 0);
	memset(text, 'x', sizeof text - 1);
	memset(selector, 'x', sizeof selector);
	for (int more = 0; more < 2; more++) {
		struct vd_kube_resource resource = pods;
		struct vd_kube_scope	scope = { .label_selector = { selector, 8192 + (size_t) more } };

		text[1024] = more ? 'x' : 0;
		resource.group = text;
		expect_open(&resource, &all, "/r/", more ? "resource.group" : NULL);
		resource.group = NULL;
		resource.version = text;
		expect_open(&resource, &all, "/r/", more ? versions : NULL);
		resource.version = "v1";
		resource.plural = text;
		expect_open(&resource, &all, "/r/", more ? "resource.plural" : NULL);
		text[1023 + more] = '/';
		expect_open(&pods, &all, text, more ? prefixes : NULL);
		text[1023 + more] = 'x';
		expect_open(&pods, &scope, "/r/", more ? "a selector of the scope" : NULL);
		scope = (struct vd_kube_scope) { .field_selector = { selector, 8192 + (size_t) more } };
		expect_open(&pods, &scope, "/r/", more ? "a selector of the scope" : NULL);
	}
	expect_open(&pods, &all, "", prefixes);
	expect_open(&pods, &all, "/r", prefixes);
	expect_open(&(struct vd_kube_resource) { "a/b", "v1", "pods", "Pod", false }, &all, "/r/",
		    "resource.group");
	expect_open(&(struct vd_kube_resource) { "", NULL, "pods", "Pod", false }, &all, "/r/", versions);
	expect_open(&(struct vd_kube_resource) { "", "", "pods", "Pod", false }, &all, "/r/", versions);
	expect_open(&(struct vd_kube_resource) { "", "v1", "po/ds", "Pod", false }, &all, "/r/",
		    "resource.plural");
	expect_open(&(struct vd_kube_resource) { "", "v1", "nodes", "Node", true },
		    &(struct vd_kube_scope) { .namespace_name = vd_bytes_of("a") }, "/r/",
		    "scope.namespace_name");
	expect_open(&pods, &(struct vd_kube_scope) { .namespace_name = vd_bytes_of("a/b") }, "/r/",
		    "scope.namespace_name");
	expect_open(&pods, &(struct vd_kube_scope) { .namespace_name = { "a\0b", 3 } }, "/r/",
		    "scope.namespace_name");
	expect_open(&pods, &(struct vd_kube_scope) { .label_selector = { "a\0b", 3 } }, "/r/",
		    "a selector of the scope");
	end();
}

/* The server's page may have objects outside of the interval, and more than are wanted. */
static void a_list_is_cut_to_the_interval(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 200,
		  .body = LIST("", POD("k", "3") "," POD("m", "4") "," POD("n", "5") "," POD("z", "6")) }
	};
	static const struct {
		int64_t	    limit;
		const char *keys;
		bool	    more;
	} rows[] = { { 0, PREFIX "a/m " PREFIX "a/n ", false },
		     { 3, PREFIX "a/m " PREFIX "a/n ", false },
		     { 2, PREFIX "a/m " PREFIX "a/n ", false },
		     { 1, PREFIX "a/m ", true } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct answer answer;

		begin(&pods, NULL, PREFIX, answers, 1);
		answer = range(PREFIX "a/l", strlen(PREFIX "a/l"), PREFIX "a/y", 0, rows[i].limit);
		assert_status(answer.status, VD_OK);
		assert_string_equal(answer.keys, rows[i].keys);
		assert_int_equal(answer.more, rows[i].more);
		assert_int_equal(answer.total, (int64_t) answer.count + rows[i].more);
		end();
	}
}

/* The range after the last key of an answer uses the server's token, if nothing was left of its page. */
static void a_list_continues(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 200, .body = LIST("t1", POD("k", "3") "," POD("m", "4")) },
		{ .code = 200, .body = LIST("", POD("n", "5")) },
		{ .code = 200, .body = LIST("", POD("k", "3")) },
		{ .code = 200, .body = LIST("", POD("k", "3")) },
		{ .code = 200, .body = LIST("", "") },
		{ .code = 200, .body = LIST("", "") },
	};
	static const char behind_m[] = PREFIX "a/m", behind_k[] = PREFIX "a/k", behind_n[] = PREFIX "a/n";
	struct answer	  answer;

	(void) state;
	begin(&pods, NULL, PREFIX, answers, VDI_ARRAY_SIZE(answers));
	answer = range(PREFIX, strlen(PREFIX), PREFIX_END, 0, 2);
	assert_string_equal(last_path(), "/api/v1/pods?limit=2");
	assert_true(answer.more);
	assert_int_equal(answer.count, 2);
	/* The key behind the last one, with its NUL, at the list's revision. */
	answer = range(behind_m, sizeof behind_m, PREFIX_END, 7, 2);
	assert_string_equal(last_path(), "/api/v1/pods?limit=2&continue=t1");
	assert_string_equal(answer.keys, PREFIX "a/n ");
	assert_false(answer.more);
	/* Another key, another revision, another list: no token belongs to them. */
	(void) range(behind_k, sizeof behind_k, PREFIX_END, 7, 2);
	assert_string_equal(last_path(), "/api/v1/pods?limit=2" EXACT);
	(void) range(behind_m, sizeof behind_m, PREFIX_END, 0, 2);
	assert_string_equal(last_path(), "/api/v1/pods?limit=2");
	(void) range(behind_m, sizeof behind_m, PREFIX "a0", 7, 2);
	assert_string_equal(last_path(), "/api/v1/namespaces/a/pods?limit=2" EXACT);
	/* Nor behind an answer without a token. */
	(void) range(behind_n, sizeof behind_n, PREFIX_END, 7, 2);
	assert_string_equal(last_path(), "/api/v1/pods?limit=2" EXACT);
	end();
}

/* The list of one key is that of its namespace, of which only the key's object is wanted. */
static void a_key_at_a_revision_is_taken_from_a_list(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 200, .body = LIST("", POD("w", "3") "," POD("x", "4") "," POD("x0", "5")) },
		{ .code = 200, .body = LIST("", POD("w", "3") "," POD("x0", "5")) },
	};
	struct answer answer;

	(void) state;
	begin(&pods, NULL, PREFIX, answers, VDI_ARRAY_SIZE(answers));
	answer = range(PREFIX "a/x", strlen(PREFIX "a/x"), "", 7, 0);
	assert_status(answer.status, VD_OK);
	assert_string_equal(answer.keys, PREFIX "a/x ");
	assert_int_equal(answer.total, 1);
	assert_int_equal(answer.revision, 7);
	answer = range(PREFIX "a/x", strlen(PREFIX "a/x"), "", 7, 0);
	assert_status(answer.status, VD_OK);
	assert_string_equal(answer.keys, "");
	assert_int_equal(answer.total, 0);
	end();
}

/* A page that is too long is requested with an eighth of its objects, down to one. */
static void a_page_that_is_too_long_is_requested_in_parts(void **state)
{
	static const struct kube_script_answer too_long[] = {
		{ .code = 200, .status = VD_TOO_BIG }, { .code = 200, .status = VD_TOO_BIG },
		{ .code = 200, .status = VD_TOO_BIG }, { .code = 200, .status = VD_TOO_BIG },
		{ .code = 200, .body = LIST("", "") },
	};
	static const struct kube_script_answer other[] = { { .code = 403, .status = VD_TOO_BIG },
							   { .code = 200, .body = LIST("", "") } };
	static const struct kube_script_answer passes[] = { { .code = 200, .status = VD_TOO_BIG },
							    { .code = 200, .body = LIST("t", POD("k", "3")) },
							    { .code = 200,
							      .body = LIST("", POD("m", "4")) } };
	static const char *const	       paths[] = { "/api/v1/pods?limit=500", "/api/v1/pods?limit=62",
							   "/api/v1/pods?limit=7", "/api/v1/pods?limit=1" };
	struct answer			       answer;

	(void) state;
	begin(&pods, NULL, PREFIX, too_long, VDI_ARRAY_SIZE(too_long));
	assert_status(range(PREFIX, strlen(PREFIX), PREFIX_END, 0, 0).status, VD_TOO_BIG);
	assert_int_equal(world.script.request_count, VDI_ARRAY_SIZE(paths));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(paths); i++)
		assert_string_equal(world.script.requests[i].path, paths[i]);
	end();
	/* Not if it is no page. */
	begin(&pods, NULL, PREFIX, other, VDI_ARRAY_SIZE(other));
	assert_true(range(PREFIX, strlen(PREFIX), PREFIX_END, 0, 0).status != VD_OK);
	assert_int_equal(world.script.request_count, 1);
	end();
	/* The pages that follow have the same length. */
	begin(&pods, NULL, PREFIX, passes, VDI_ARRAY_SIZE(passes));
	answer = range(PREFIX, strlen(PREFIX), PREFIX_END, 0, 0);
	assert_status(answer.status, VD_OK);
	assert_string_equal(answer.keys, PREFIX "a/k " PREFIX "a/m ");
	assert_string_equal(last_path(), "/api/v1/pods?limit=62&continue=t");
	end();
}

/* A delay that the server asked for is over with the call that it refused. */
static void a_refused_question_delays_no_other_one(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 429, .body = "{}", .retry_after_s = 100 },
		{ .code = 200, .body = LIST("", "") },
	};
	struct answer answer;

	(void) state;
	begin(&pods, NULL, PREFIX, answers, VDI_ARRAY_SIZE(answers));
	answer = range("/registry/pods", strlen("/registry/pods"), "", 0, 1);
	assert_status(answer.status, VD_UNAVAILABLE);
	assert_int_equal(world.script.request_count, 1);
	answer = range("/registry/pods", strlen("/registry/pods"), "", 0, 1);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.revision, 7);
	end();
}

/* Codes of a refused list, for a range at a revision and for one of the newest state. */
static void refused_lists_are_errors_of_a_store(void **state)
{
	static const struct {
		int	  code;
		vd_status newest, exact;
	} rows[] = {
		{ 429, VD_UNAVAILABLE, VD_UNAVAILABLE },
		{ 404, VD_UNAVAILABLE, VD_UNAVAILABLE },
		{ 410, VD_EXPIRED, VD_EXPIRED },
		{ 503, VD_UNAVAILABLE, VD_UNAVAILABLE },
		{ 504, VD_TIMEOUT, VD_TOO_LARGE_REVISION },
	};

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++)
		for (unsigned is_exact = 0; is_exact < 2; is_exact++) {
			/* The delay is longer than a request may last, so it is not sent again. */
			const struct kube_script_answer refusal = { .code = rows[i].code,
								    .body = "{}",
								    .retry_after_s = 100 };
			struct answer			answer;

			begin(&pods, NULL, PREFIX, &refusal, 1);
			answer = range(PREFIX, strlen(PREFIX), PREFIX_END, is_exact ? 7 : 0, 0);
			assert_status(answer.status, is_exact ? rows[i].exact : rows[i].newest);
			assert_int_equal(world.script.request_count, 1);
			end();
		}
}

/* A token is text of the server, also with bytes that have a meaning in a query. */
static void a_token_is_escaped(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 200, .body = LIST("a+b/c=&d%", POD("k", "3")) },
		{ .code = 200, .body = LIST("", POD("m", "4")) },
	};
	struct answer answer;

	(void) state;
	begin(&pods, NULL, PREFIX, answers, VDI_ARRAY_SIZE(answers));
	answer = range(PREFIX, strlen(PREFIX), PREFIX_END, 7, 0);
	assert_status(answer.status, VD_OK);
	assert_int_equal(answer.count, 2);
	assert_string_equal(last_path(), "/api/v1/pods?limit=500&continue=a%2Bb%2Fc%3D%26d%25");
	end();
}

/* A list without a revision is no state, and its newest object may be as new as the list. */
static void a_list_has_a_revision(void **state)
{
	static const struct kube_script_answer none[] = { { .code = 200, .body = "{\"items\":[]}" } };
	static const struct kube_script_answer newest[] = { { .code = 200,
							      .body = LIST("", POD("x", "7")) } };

	(void) state;
	begin(&pods, NULL, PREFIX, none, 1);
	assert_status(range(PREFIX, strlen(PREFIX), PREFIX_END, 0, 0).status, VD_UNAVAILABLE);
	end();
	begin(&pods, NULL, PREFIX, none, 1);
	assert_status(range("/registry/pods", strlen("/registry/pods"), "", 0, 1).status, VD_UNAVAILABLE);
	end();
	begin(&pods, NULL, PREFIX, newest, 1);
	assert_string_equal(range(PREFIX, strlen(PREFIX), PREFIX_END, 0, 0).keys, PREFIX "a/x ");
	end();
}

/* No resource was removed that was never there. */
static void a_question_about_no_resource_is_an_error(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 404, .body = "{}" } };

	(void) state;
	begin(&pods, NULL, PREFIX, answers, 1);
	assert_status(range("/registry/pods", strlen("/registry/pods"), "", 0, 1).status, VD_UNAVAILABLE);
	end();
}

/* Only the newest VDI_KUBE_CURSORS answers can be continued with their token. */
static void sixteen_lists_are_remembered(void **state)
{
	struct kube_script_answer answers[VDI_KUBE_CURSORS + 3];
	char			  bodies[VDI_KUBE_CURSORS + 3][256], path[64], key[64];
	int			  size;

	(void) state;
	for (int i = 0; i < VDI_KUBE_CURSORS + 3; i++) {
		snprintf(
			bodies[i], sizeof bodies[i],
			"{\"metadata\":{\"resourceVersion\":\"7\",\"continue\":\"t%02d\"},\"items\":["
			"{\"metadata\":{\"name\":\"k%02d\",\"namespace\":\"a\",\"resourceVersion\":\"3\"}}]}",
			i, i);
		answers[i] = (struct kube_script_answer) { .code = 200, .body = bodies[i] };
	}
	begin(&pods, NULL, PREFIX, answers, VDI_ARRAY_SIZE(answers));
	for (int i = 0; i < VDI_KUBE_CURSORS + 1; i++)
		assert_true(range(PREFIX, strlen(PREFIX), PREFIX_END, 0, 1).more);
	size = snprintf(key, sizeof key, PREFIX "a/k00");
	(void) range(key, (size_t) size + 1, PREFIX_END, 7, 1);
	assert_string_equal(last_path(), "/api/v1/pods?limit=1" EXACT);
	/* That answer took the place of k01. */
	size = snprintf(key, sizeof key, PREFIX "a/k02");
	(void) range(key, (size_t) size + 1, PREFIX_END, 7, 1);
	snprintf(path, sizeof path, "/api/v1/pods?limit=1&continue=t02");
	assert_string_equal(last_path(), path);
	end();
}

static void only_the_number_of_a_key_is_counted(void **state)
{
	static const struct kube_script_answer answers[] = { { .code = 200, .body = POD("x", "5") } };
	struct answer			       answer = { 0 };
	struct vd_range_request request = { .key = vd_bytes_of(PREFIX "a/x"), .count_only = true };
	struct vd_range_request interval = { .key = vd_bytes_of(PREFIX),
					     .range_end = vd_bytes_of(PREFIX_END),
					     .count_only = true };

	(void) state;
	begin(&pods, NULL, PREFIX, answers, 1);
	assert_status(vd_store_range(world.store, &interval, on_range, &answer), VD_UNSUPPORTED);
	assert_status(vd_store_range(world.store, &request, on_range, &answer), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_true(answer.came);
	assert_int_equal(answer.count, 0);
	assert_int_equal(answer.total, 1);
	end();
}

/* The pages or the object may be of the server before. */
static void a_read_across_a_restore_is_an_error(void **state)
{
	static const struct kube_script_answer answers[] = {
		{ .code = 200, .body = LIST("", ""), .delay = VD_SECONDS(1) }
	};
	struct answer		answer = { 0 };
	struct vd_range_request request = { .key = vd_bytes_of(PREFIX),
					    .range_end = vd_bytes_of(PREFIX_END) };

	(void) state;
	begin(&pods, NULL, PREFIX, answers, 1);
	assert_status(vd_store_range(world.store, &request, on_range, &answer), VD_OK);
	vdi_sim_run_until_idle(world.env);
	assert_int_equal(world.script.request_count, 1);
	assert_false(answer.came);
	vdi_kube_source_of(world.store)->epoch++;
	vdi_sim_advance(world.env, VD_SECONDS(2));
	assert_true(answer.came);
	assert_status(answer.status, VD_UNAVAILABLE);
	end();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_range_becomes_one_list),
		cmocka_unit_test(a_key_becomes_one_object),
		cmocka_unit_test(other_keys_are_not_sent),
		cmocka_unit_test(a_store_has_a_resource_and_a_scope),
		cmocka_unit_test(a_list_is_cut_to_the_interval),
		cmocka_unit_test(a_list_continues),
		cmocka_unit_test(a_key_at_a_revision_is_taken_from_a_list),
		cmocka_unit_test(a_page_that_is_too_long_is_requested_in_parts),
		cmocka_unit_test(a_refused_question_delays_no_other_one),
		cmocka_unit_test(refused_lists_are_errors_of_a_store),
		cmocka_unit_test(a_token_is_escaped),
		cmocka_unit_test(a_list_has_a_revision),
		cmocka_unit_test(a_question_about_no_resource_is_an_error),
		cmocka_unit_test(sixteen_lists_are_remembered),
		cmocka_unit_test(only_the_number_of_a_key_is_counted),
		cmocka_unit_test(a_read_across_a_restore_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
