/* Unit tests of storage/store/storage_metrics.c: each call moves its own lines of /metrics and no other. */
#include "vdtest.h"

#include "actor_sim.h"
#include "buffer.h"
#include "env.h"
#include "storage_metrics.h"

struct page {
	struct vdi_buffer text;
};

static void render(struct vd_env *env, struct page *page)
{
	vdi_buffer_init(&page->text, SIZE_MAX);
	assert_status(vdi_metrics_render(vdi_env_metrics(env), &page->text), VD_OK);
	vdi_buffer_append_char(&page->text, 0);
}

/* The value of the line that begins with start; -1: there is none. */
static double value_of(const struct page *page, const char *start)
{
	const char *text = vdi_buffer_bytes(&page->text).data;

	for (const char *line = text; (line = strstr(line, start)); line++)
		if ((line == text || line[-1] == '\n') && line[strlen(start)] == ' ')
			return atof(line + strlen(start));
	return -1;
}

/* Lines of values that are other in after; an absent line is 0. */
static size_t changed_lines(const struct page *before, const struct page *after)
{
	char   line[512];
	size_t count = 0;

	for (const char *at = vdi_buffer_bytes(&after->text).data; *at;) {
		const char *end = strchr(at, '\n');
		size_t	    size = end ? (size_t) (end - at) : strlen(at);

		assert_true(size < sizeof line);
		memcpy(line, at, size);
		line[size] = 0;
		if (*line != '#' && strstr(vdi_buffer_bytes(&before->text).data, line) == NULL &&
		    strstr(line, "_bucket{") == NULL && strcmp(strrchr(line, ' '), " 0") != 0)
			count++;
		at = end ? end + 1 : at + size;
	}
	return count;
}

static void expect(struct vd_env *env, const char *line, double wanted)
{
	struct page page;

	render(env, &page);
	if (value_of(&page, line) != wanted)
		fail_msg("%s is %g, not %g", line, value_of(&page, line), wanted);
	vdi_buffer_fini(&page.text);
}

#define LABELS "group=\"apps\",resource=\"widgets\"}"

static struct vdi_storage_metrics *metrics_of(struct vd_env *env, const char *group)
{
	struct vdi_storage_metrics *metrics = NULL;

	assert_status(vdi_storage_metrics_new(env, group, "widgets", &metrics), VD_OK);
	return metrics;
}

static void r723_r724_each_operation_has_its_own_lines(void **state)
{
	static const char *const names[VDI_OPERATION_COUNT] = {
		"get",	  "list",   "listStream",    "create",
		"update", "delete", "listWithCount", "getCurrentResourceVersion"
	};
	struct vdi_storage_metrics *metrics;
	struct vd_env		   *env;
	char			    line[128];

	(void) state;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	metrics = metrics_of(env, "apps");
	for (int operation = 0; operation < VDI_OPERATION_COUNT; operation++)
		for (int is_error = 0; is_error < 2; is_error++) {
			vd_mono	    started = vd_env_now(env);
			struct page before, after;

			vdi_sim_advance(env, VD_SECONDS(2));
			render(env, &before);
			vdi_storage_metrics_request(metrics, (enum vdi_storage_operation) operation, started,
						    is_error ? VD_IO : VD_OK);
			render(env, &after);
			/* the total, the errors, and sum and count of the durations */
			assert_int_equal(changed_lines(&before, &after), 3 + is_error);
			vdi_buffer_fini(&before.text);
			vdi_buffer_fini(&after.text);
			snprintf(line, sizeof line, "etcd_requests_total{operation=\"%s\"," LABELS,
				 names[operation]);
			expect(env, line, 1 + is_error);
			snprintf(line, sizeof line, "etcd_request_errors_total{operation=\"%s\"," LABELS,
				 names[operation]);
			expect(env, line, is_error ? 1 : -1);
			snprintf(line, sizeof line,
				 "etcd_request_duration_seconds_sum{operation=\"%s\"," LABELS,
				 names[operation]);
			expect(env, line, 2 + 2 * is_error);
			snprintf(line, sizeof line,
				 "etcd_request_duration_seconds_count{operation=\"%s\"," LABELS,
				 names[operation]);
			expect(env, line, 1 + is_error);
		}
	vdi_storage_metrics_free(metrics);
	vd_env_free(env);
}

static void r721_r722_r732_lists(void **state)
{
	struct vdi_storage_metrics *metrics;
	struct vd_env		   *env;

	(void) state;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	metrics = metrics_of(env, "apps");
	for (int streamed = 0; streamed < 2; streamed++) {
		vd_mono started = vd_env_now(env);

		vdi_sim_advance(env, VD_SECONDS(3));
		vdi_storage_metrics_list(metrics, streamed, started, 100, 20, 3);
	}
	vdi_storage_metrics_list(metrics, true, vd_env_now(env), 1000, 200, 30);
	expect(env,
	       "apiserver_storage_list_total{group=\"apps\",resource=\"widgets\",storage=\"etcd\",index="
	       "\"\"}",
	       3);
	expect(env,
	       "apiserver_storage_list_fetched_objects_total{group=\"apps\",resource=\"widgets\",storage="
	       "\"etcd\",index=\"\"}",
	       1200);
	expect(env,
	       "apiserver_storage_list_evaluated_objects_total{group=\"apps\",resource=\"widgets\",storage="
	       "\"etcd\"}",
	       240);
	expect(env,
	       "apiserver_storage_list_returned_objects_total{group=\"apps\",resource=\"widgets\",storage="
	       "\"etcd\"}",
	       36);
	expect(env, "apiserver_storage_list_duration_seconds_count{streamed=\"false\"," LABELS, 1);
	expect(env, "apiserver_storage_list_duration_seconds_sum{streamed=\"false\"," LABELS, 3);
	expect(env, "apiserver_storage_list_duration_seconds_count{streamed=\"true\"," LABELS, 2);
	expect(env, "apiserver_storage_list_duration_seconds_sum{streamed=\"true\"," LABELS, 3);
	vdi_storage_metrics_free(metrics);
	vd_env_free(env);
}

static void r728_to_r731_events_and_leases(void **state)
{
	struct vdi_storage_metrics *metrics;
	struct vd_env		   *env;

	(void) state;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	metrics = metrics_of(env, "apps");
	vdi_storage_metrics_events(metrics, 0);
	expect(env, "apiserver_storage_events_received_total{" LABELS, -1); /* nothing was observed */
	vdi_storage_metrics_events(metrics, 2);
	vdi_storage_metrics_events(metrics, 40);
	expect(env, "apiserver_storage_events_received_total{" LABELS, 42);
	vdi_storage_metrics_progress(metrics);
	vdi_storage_metrics_progress(metrics);
	expect(env, "etcd_bookmark_total{" LABELS, 2);
	expect(env, "etcd_bookmark_counts{" LABELS, 2);
	vdi_storage_metrics_undecodable(metrics);
	expect(env, "apiserver_storage_decode_errors_total{" LABELS, 1);
	vdi_storage_metrics_lease(metrics, 7);
	vdi_storage_metrics_lease(metrics, 9);
	expect(env, "etcd_lease_object_counts_count", 2);
	expect(env, "etcd_lease_object_counts_sum", 16);
	vdi_storage_metrics_free(metrics);
	vd_env_free(env);
}

/* Gauges go with the resource, counters stay; the group is part of a name if there is one. */
static void r725_r726_gauges_go_with_the_resource(void **state)
{
	static const struct {
		const char *group, *line;
	} rows[] = { { "apps", "apiserver_storage_objects{resource=\"widgets.apps\"}" },
		     { "", "apiserver_storage_objects{resource=\"widgets\"}" } };
	struct vd_env *env;
	char	       line[128];

	(void) state;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_storage_metrics *metrics = metrics_of(env, rows[i].group);

		vdi_storage_metrics_objects(metrics, 5, 1000);
		vdi_storage_metrics_objects(metrics, 4, 900);
		vdi_storage_metrics_events(metrics, 1);
		expect(env, rows[i].line, 4);
		snprintf(line, sizeof line, "apiserver_resource_objects{group=\"%s\",resource=\"widgets\"}",
			 rows[i].group);
		expect(env, line, 4);
		snprintf(line, sizeof line,
			 "apiserver_resource_size_estimate_bytes{group=\"%s\",resource=\"widgets\"}",
			 rows[i].group);
		expect(env, line, 900);
		assert_null(vdi_storage_metrics_free(metrics));
		expect(env, line, -1);
		expect(env, rows[i].line, -1);
		snprintf(line, sizeof line,
			 "apiserver_storage_events_received_total{group=\"%s\",resource=\"widgets\"}",
			 rows[i].group);
		expect(env, line, 1);
	}
	vd_env_free(env);
}

static void null_counts_nothing(void **state)
{
	(void) state;
	vdi_storage_metrics_request(NULL, VDI_OPERATION_GET, (vd_mono) { 0 }, VD_OK);
	vdi_storage_metrics_list(NULL, true, (vd_mono) { 0 }, 1, 1, 1);
	vdi_storage_metrics_events(NULL, 1);
	vdi_storage_metrics_progress(NULL);
	vdi_storage_metrics_undecodable(NULL);
	vdi_storage_metrics_lease(NULL, 1);
	vdi_storage_metrics_objects(NULL, 1, 1);
	assert_null(vdi_storage_metrics_free(NULL));
}

/* Without memory nothing is counted, and nothing breaks; a later observation counts. */
static void out_of_memory_loses_only_the_count(void **state)
{
	struct vdi_storage_metrics *metrics = NULL;
	int64_t			    live = vdi_alloc_live();
	struct vd_env		   *env;

	(void) state;
	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	for (uint64_t nth = 1; metrics == NULL; nth++) {
		vd_status status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_storage_metrics_new(env, "apps", "widgets", &metrics);
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, metrics ? VD_OK : VD_NOMEM);
	}
	vdi_alloc_fail_nth(1, 1000);
	vdi_storage_metrics_events(metrics, 1);
	vdi_storage_metrics_objects(metrics, 1, 1);
	vdi_alloc_fail_nth(0, 0);
	expect(env, "apiserver_storage_events_received_total{" LABELS, -1);
	vdi_storage_metrics_events(metrics, 3);
	expect(env, "apiserver_storage_events_received_total{" LABELS, 3);
	vdi_storage_metrics_free(metrics);
	vd_env_free(env);
	assert_int_equal(vdi_alloc_live(), live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r723_r724_each_operation_has_its_own_lines),
		cmocka_unit_test(r721_r722_r732_lists),
		cmocka_unit_test(r728_to_r731_events_and_leases),
		cmocka_unit_test(r725_r726_gauges_go_with_the_resource),
		cmocka_unit_test(null_counts_nothing),
		cmocka_unit_test(out_of_memory_loses_only_the_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
