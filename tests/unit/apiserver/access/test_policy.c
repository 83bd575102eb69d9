/* The authorization policy: what rules cover, as Kubernetes' roles do; field errors with their place. */
#include "vdtest.h"

#include "policy.h"

static struct vdi_identity *identity_new(const char *user, const char *group)
{
	struct vdi_identity *identity;
	struct vd_bytes	     groups[] = { vd_bytes_of(group) };

	assert_status(vdi_identity_new(vd_bytes_of(user), VD_BYTES_NONE, groups, *group != 0,
				       VDI_GROUP_AUTHENTICATED, &identity),
		      VD_OK);
	return identity;
}

static struct vdi_policy *parse(const char *text)
{
	struct vdi_policy *policy;
	struct vd_error	   error = { 0 };

	if (vdi_policy_parse(vd_bytes_of(text), &policy, &error) != VD_OK)
		fail_msg("%s", error.message);
	return policy;
}

/* words: verb group resource subresource name namespace, or verb path; "-" is empty. */
static struct vdi_access access_of(const char *words, char text[256])
{
	struct vd_bytes parts[6] = { VD_BYTES_NONE };
	size_t		count = 0;
	char	       *rest, *word;

	(void) snprintf(text, 256, "%s", words);
	for (word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		parts[count++] = strcmp(word, "-") == 0 ? VD_BYTES_NONE : vd_bytes_of(word);
	if (count == 2)
		return (struct vdi_access) { .is_path = true, .verb = parts[0], .path = parts[1] };
	assert_int_equal(count, 6);
	return (struct vdi_access) { .verb = parts[0],
				     .group = parts[1],
				     .resource = parts[2],
				     .subresource = parts[3],
				     .name = parts[4],
				     .namespace_name = parts[5] };
}

static const char sample[] =
	"{\"rules\":["
	"{\"users\":[\"ann\"],\"verbs\":[\"get\",\"list\"],\"apiGroups\":[\"\"],\"resources\":[\"pods\","
	"\"pods/status\"],\"namespaces\":[\"a\",\"b\"]},"
	"{\"groups\":[\"dev\"],\"verbs\":[\"*\"],\"resources\":[\"*/scale\",\"configmaps\"]},"
	"{\"users\":[\"bob\"],\"verbs\":[\"update\"],\"resources\":[\"leases\"],\"resourceNames\":[\"mine\"]}"
	","
	"{\"users\":[\"bob\"],\"verbs\":[\"get\"],\"nonResourceURLs\":[\"/metrics\",\"/debug/*\"]},"
	"{\"groups\":[\"system:authenticated\"],\"verbs\":[\"watch\"],\"resources\":[\"*\"],\"namespaces\":["
	"\"open\"]}]}";

static void rules_mean_what_roles_mean(void **state)
{
	static const struct {
		const char *user, *group, *words;
		bool	    may;
	} rows[] = {
		{ "ann", "", "get - pods - x a", true },
		{ "ann", "", "list - pods - - b", true },
		{ "ann", "", "list - pods - - -", false }, /* of all namespaces */
		{ "ann", "", "list - pods - - c", false },
		{ "ann", "", "watch - pods - - a", false },
		{ "ann", "", "get - pods status x a", true },
		{ "ann", "", "get - pods log x a", false },
		{ "ann", "", "get - nodes status x a", false },
		{ "ann", "", "get apps pods - x a", false },
		{ "bob", "", "get - pods - x a", false },
		{ "eve", "dev", "deletecollection - configmaps - - -", true },
		{ "eve", "dev", "get other configmaps - x q", true }, /* apiGroups left out: all */
		{ "eve", "dev", "update apps deployments scale x q", true },
		{ "eve", "dev", "update apps deployments - x q", false },
		{ "eve", "", "update apps deployments scale x q", false },
		{ "bob", "", "update coordination.k8s.io leases - mine kube-system", true },
		{ "bob", "", "update coordination.k8s.io leases - other kube-system", false },
		{ "bob", "", "update coordination.k8s.io leases - - kube-system", false },
		{ "bob", "", "get /metrics", true },
		{ "bob", "", "get /metrics/x", false },
		{ "bob", "", "get /debug/vedette", true },
		{ "bob", "", "post /metrics", false },
		{ "bob", "", "get /", false },
		{ "eve", "", "get /healthz", true }, /* everybody */
		{ "eve", "", "get /version", true },
		{ "eve", "", "watch - secrets - - open", true },
		{ "eve", "", "watch - secrets - - closed", false },
		{ "eve", "system:masters", "delete - secrets - x closed", true },
		{ "eve", "system:masters", "post /anything", true },
	};
	struct vdi_policy *policy = parse(sample);

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_identity *identity = identity_new(rows[i].user, rows[i].group);
		char		     text[256];
		struct vdi_access    access = access_of(rows[i].words, text);

		if (vdi_policy_allows(policy, identity, &access) != rows[i].may)
			fail_msg("%s (%s) %s: not %d", rows[i].user, rows[i].group, rows[i].words,
				 rows[i].may);
		(void) vdi_identity_unref(identity);
	}
	(void) vdi_policy_free(policy);
}

static void without_a_policy_the_authenticated_may_everything(void **state)
{
	struct vdi_identity *ann = identity_new("ann", ""), *nobody;
	char		     text[256];
	struct vdi_access    access = access_of("delete - pods - x a", text);

	assert_status(vdi_identity_new(vd_bytes_of(VDI_USER_ANONYMOUS), VD_BYTES_NONE, NULL, 0,
				       VDI_GROUP_UNAUTHENTICATED, &nobody),
		      VD_OK);
	assert_true(vdi_policy_allows(NULL, ann, &access));
	assert_false(vdi_policy_allows(NULL, nobody, &access));
	access = access_of("get /healthz", text);
	assert_true(vdi_policy_allows(NULL, nobody, &access));
	(void) vdi_identity_unref(ann);
	(void) vdi_identity_unref(nobody);
}

static void rules_are_told_per_namespace(void **state)
{
	struct vdi_policy   *policy = parse(sample);
	struct vdi_identity *ann = identity_new("ann", "");
	struct vdi_out	     out = VDI_OUT_INIT;

	vdi_policy_write_rules(&out, policy, ann, vd_bytes_of("a"));
	vdi_out_bytes(&out, (struct vd_bytes) { "", 1 });
	assert_string_equal(out.data, "\"resourceRules\":[{\"verbs\":[\"get\",\"list\"],\"apiGroups\":[\"\"],"
				      "\"resources\":[\"pods\",\"pods/status\"]}],"
				      "\"nonResourceRules\":[{\"verbs\":[\"get\"],\"nonResourceURLs\":[\"/"
				      "healthz\",\"/livez\",\"/readyz\",\"/version\"]}]");
	vdi_out_reset(&out);
	vdi_policy_write_rules(&out, policy, ann, vd_bytes_of("open"));
	vdi_out_bytes(&out, (struct vd_bytes) { "", 1 });
	assert_non_null(strstr(
		out.data,
		"\"resourceRules\":[{\"verbs\":[\"watch\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]}]"));
	vdi_out_fini(&out);
	(void) vdi_identity_unref(ann);
	(void) vdi_policy_free(policy);
}

static void field_errors_are_named_with_their_place(void **state)
{
	static const char *const rows[][2] = {
		{ "", "line 1" },
		{ "{", "line 1" },
		{ "[]", "must be an object with an array \"rules\"" },
		{ "{\"rules\":{}}", "must be an object with an array \"rules\"" },
		{ "{\"rules\":[],\"more\":1}", "more: unknown key" },
		{ "{\"rules\":[1]}", "rules[0]: must be an object" },
		{ "{\"rules\":[{\"verbs\":[\"get\"],\"resources\":[\"pods\"]}]}",
		  "rules[0]: needs users or groups" },
		{ "{\"rules\":[{\"users\":[\"a\"],\"resources\":[\"pods\"]}]}", "rules[0]: needs verbs" },
		{ "{\"rules\":[{\"users\":[\"a\"],\"verbs\":[\"get\"]}]}",
		  "rules[0]: needs resources or nonResourceURLs" },
		{ "{\"rules\":[{\"users\":\"a\"}]}", "rules[0].users: must be an array of strings" },
		{ "{\"rules\":[{\"users\":[]}]}",
		  "rules[0].users: must be an array of strings, and not empty" },
		{ "{\"rules\":[{\"users\":[\"a\",1]}]}", "rules[0].users[1]: must be a string" },
		{ "{\"rules\":[{\"user\":[\"a\"]}]}", "rules[0].user: unknown key" },
		{ "{\"rules\":[],\"rules\":[]}", "line 1" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_policy *policy;
		struct vd_error	   error = { 0 };

		assert_status(vdi_policy_parse(vd_bytes_of(rows[i][0]), &policy, &error), VD_INVALID);
		if (strstr(error.message, rows[i][1]) != error.message)
			fail_msg("row %zu: %s", i, error.message);
	}
}

static void without_memory_nothing_is_lost(void **state)
{
	for (int64_t n = 1;; n++) {
		struct vdi_policy *policy = NULL;
		vd_status	   status;

		(void) vdi_alloc_fail_nth((uint64_t) n, 1);
		status = vdi_policy_parse(vd_bytes_of(sample), &policy, NULL);
		(void) vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK) {
			(void) vdi_policy_free(policy);
			assert_true(n > 2);
			return;
		}
		assert_status(status, VD_NOMEM);
	}
}

/* Who may everything is told so, before what the rules add. */
static void who_may_everything_is_told_so(void **state)
{
	struct vdi_policy   *policy = parse(sample);
	struct vdi_identity *ann = identity_new("ann", ""), *master = identity_new("eve", "system:masters");
	static const char    all[] = "{\"verbs\":[\"*\"],\"apiGroups\":[\"*\"],\"resources\":[\"*\"]}",
			  urls[] = ",{\"verbs\":[\"*\"],\"nonResourceURLs\":[\"*\"]}";

	for (int is_master = 0; is_master < 2; is_master++) {
		struct vdi_out out = VDI_OUT_INIT;

		vdi_policy_write_rules(&out, policy, is_master ? master : ann, vd_bytes_of("a"));
		assert_int_equal(memmem(out.data, out.size, all, sizeof all - 1) != NULL, is_master);
		assert_int_equal(memmem(out.data, out.size, urls, sizeof urls - 1) != NULL, is_master);
		vdi_out_fini(&out);
	}
	vdi_identity_unref(ann);
	vdi_identity_unref(master);
	(void) vdi_policy_free(policy);
}

/* Each member of a rule is told as it is written, and without an API group the rule is for all groups. */
static void each_member_of_a_rule_is_told(void **state)
{
	struct vdi_policy *policy = parse(
		"{\"rules\":[{\"users\":[\"ann\"],\"verbs\":[\"get\"],\"apiGroups\":[\"a\",\"b\"],"
		"\"resources\":"
		"[\"x\",\"y\"],\"resourceNames\":[\"n\",\"m\"]},"
		"{\"users\":[\"ann\"],\"verbs\":[\"list\"],\"resources\":[\"z\"]},"
		"{\"users\":[\"bob\"],\"verbs\":[\"get\"],\"resources\":[\"other\"]},"
		"{\"users\":[\"ann\"],\"verbs\":[\"get\",\"post\"],\"nonResourceURLs\":[\"/a\",\"/b/*\"]},"
		"{\"users\":[\"bob\"],\"verbs\":[\"get\"],\"nonResourceURLs\":[\"/other\"]},"
		"{\"users\":[\"ann\"],\"verbs\":[\"put\"],\"nonResourceURLs\":[\"/c\"]}]}");
	struct vdi_identity *ann = identity_new("ann", "");
	struct vdi_out	     out = VDI_OUT_INIT;

	vdi_policy_write_rules(&out, policy, ann, vd_bytes_of("a"));
	vdi_out_bytes(&out, (struct vd_bytes) { "", 1 });
	assert_string_equal(
		out.data,
		"\"resourceRules\":[{\"verbs\":[\"get\"],\"apiGroups\":[\"a\",\"b\"],\"resources\":[\"x\","
		"\"y\"],"
		"\"resourceNames\":[\"n\",\"m\"]},{\"verbs\":[\"list\"],\"apiGroups\":[\"*\"],\"resources\":["
		"\"z\"]}],"
		"\"nonResourceRules\":[{\"verbs\":[\"get\"],\"nonResourceURLs\":[\"/healthz\",\"/livez\",\"/"
		"readyz\","
		"\"/version\"]},{\"verbs\":[\"get\",\"post\"],\"nonResourceURLs\":[\"/a\",\"/b/*\"]},"
		"{\"verbs\":[\"put\"],\"nonResourceURLs\":[\"/c\"]}]");
	vdi_out_fini(&out);
	(void) vdi_identity_unref(ann);
	(void) vdi_policy_free(policy);
}

static void a_refusal_says_who_may_not_do_what(void **state)
{
	static const struct {
		struct vdi_access access;
		const char	 *sentence;
	} rows[] = {
		{ { .verb = { "get", 3 }, .resource = { "pods", 4 }, .namespace_name = { "n", 1 } },
		  "User \"ann\" cannot get resource \"pods\" in API group \"\" in the namespace \"n\"" },
		{ { .verb = { "list", 4 }, .resource = { "nodes", 5 } },
		  "User \"ann\" cannot list resource \"nodes\" in API group \"\" at the cluster scope" },
		{ { .verb = { "update", 6 },
		    .group = { "apps", 4 },
		    .resource = { "deployments", 11 },
		    .subresource = { "scale", 5 },
		    .namespace_name = { "n", 1 } },
		  "User \"ann\" cannot update resource \"deployments/scale\" in API group \"apps\" in the "
		  "namespace \"n\"" },
		{ { .is_path = true, .verb = { "get", 3 }, .path = { "/metrics", 8 } },
		  "User \"ann\" cannot get path \"/metrics\"" },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		char text[400];

		vdi_access_explain(&rows[i].access, "ann", text, sizeof text);
		assert_string_equal(text, rows[i].sentence);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_member_of_a_rule_is_told),
		cmocka_unit_test(a_refusal_says_who_may_not_do_what),
		cmocka_unit_test(who_may_everything_is_told_so),
		cmocka_unit_test(rules_mean_what_roles_mean),
		cmocka_unit_test(without_a_policy_the_authenticated_may_everything),
		cmocka_unit_test(rules_are_told_per_namespace),
		cmocka_unit_test(field_errors_are_named_with_their_place),
		cmocka_unit_test(without_memory_nothing_is_lost),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
