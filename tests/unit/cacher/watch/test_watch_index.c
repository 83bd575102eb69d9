/* The watcher index against "ask every group": no group that wants an event is missed, none is found twice,
 * and groups of other values cost nothing. */
#include "watch_index.h"

#include "pod_codec_group.h"

static uint64_t roll(uint64_t *random, uint64_t below)
{
	*random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*random >> 33) % below;
}

static struct vdi_watch_group *group_new(const char *ns, const char *name, const char *labels,
					 const char *fields)
{
	struct vdi_predicate_options options = { .namespace_name = vd_bytes_of(ns),
						 .name = vd_bytes_of(name),
						 .label_selector = vd_bytes_of(labels),
						 .field_selector = vd_bytes_of(fields),
						 .narrow_scope = true,
						 .room = sizeof(struct vdi_watch_group) };
	struct vdi_predicate	    *predicate;
	struct vdi_watch_group	    *group;

	assert_status(vdi_predicate_new(codec, &options, &predicate, NULL), VD_OK);
	group = vdi_watch_group_new(predicate, 0);
	vdi_predicate_unref(predicate);
	return group;
}

struct found {
	struct vdi_watch_group *groups[4096];
	size_t			count;
};

static void note(void *arg, struct vdi_watch_group *group)
{
	struct found *found = arg;

	found->groups[found->count++] = group;
}

static unsigned times_found(const struct found *found, const struct vdi_watch_group *group)
{
	unsigned times = 0;

	for (size_t i = 0; i < found->count; i++)
		times += found->groups[i] == group;
	return times;
}

static struct vd_object *random_pod(uint64_t *random)
{
	char ns[4], name[4], app[4], node[4];

	snprintf(ns, sizeof ns, "n%u", (unsigned) roll(random, 3));
	snprintf(name, sizeof name, "p%u", (unsigned) roll(random, 5));
	snprintf(app, sizeof app, "a%u", (unsigned) roll(random, 4));
	snprintf(node, sizeof node, "h%u", (unsigned) roll(random, 4));
	return pod_new(codec, ns, name, roll(random, 3) ? app : NULL, roll(random, 3) ? node : NULL, 1);
}

static struct vdi_watch_group *random_group(uint64_t *random)
{
	static const char *const labels[] = { "",    "app=a1", "app=a2",     "app in (a1,a2)",
					      "app", "!app",   "app=a3,tier" };
	static const char *const fields[] = { "",
					      "spec.nodeName=h1",
					      "spec.nodeName=h2",
					      "spec.nodeName!=h1",
					      "status.phase=",
					      "metadata.name=p1",
					      "spec.nodeName=",
					      "metadata.namespace=n1" };
	char			 ns[4] = "", name[4] = "";

	if (roll(random, 2))
		snprintf(ns, sizeof ns, "n%u", (unsigned) roll(random, 3));
	if (roll(random, 3) == 0)
		snprintf(name, sizeof name, "p%u", (unsigned) roll(random, 5));
	return group_new(ns, name, labels[roll(random, VDI_ARRAY_SIZE(labels))],
			 fields[roll(random, VDI_ARRAY_SIZE(fields))]);
}

#define GROUPS 200

static void r543_no_group_that_wants_an_event_is_missed(void **state)
{
	static struct found	found;
	struct vdi_watch_group *groups[GROUPS] = { 0 };
	uint64_t		random = 7, visit = 0, wanted = 0, useless = 0;
	struct vdi_watch_index	index;

	vdi_watch_index_init(&index, codec, 0);
	for (unsigned round = 0; round < 3000; round++) {
		unsigned	  at = (unsigned) roll(&random, GROUPS);
		struct vd_object *old = NULL, *now = random_pod(&random);
		struct vdi_event *event;

		if (groups[at]) {
			vdi_watch_index_remove(&index, groups[at]);
			groups[at] = NULL;
		} else {
			struct vdi_watch_group *group = random_group(&random);

			if (vdi_watch_index_find(&index, vdi_watch_group_predicate(group))) {
				vdi_watch_group_unref(group);
			} else {
				assert_status(vdi_watch_index_add(&index, group), VD_OK);
				groups[at] = group;
				assert_ptr_equal(
					vdi_watch_index_find(&index, vdi_watch_group_predicate(group)),
					group);
			}
		}
		switch (roll(&random, 3)) { /* the same object before and after, or one of them alone */
		case 0:
			old = now;
			now = NULL;
			break;
		case 1: {
			char		ns[16], name[16], app[4];
			struct vd_bytes bytes = vd_object_namespace(now);

			snprintf(ns, sizeof ns, "%.*s", (int) bytes.size, (const char *) bytes.data);
			bytes = vd_object_name(now);
			snprintf(name, sizeof name, "%.*s", (int) bytes.size, (const char *) bytes.data);
			snprintf(app, sizeof app, "a%u", (unsigned) roll(&random, 4));
			old = pod_new(codec, ns, name, app, roll(&random, 2) ? "h1" : "h2", 1);
			break;
		}
		default: break;
		}
		event = pod_event(2, now, old);
		found.count = 0;
		vdi_watch_index_candidates(&index, event, ++visit, note, &found);
		for (unsigned i = 0; i < GROUPS; i++) {
			enum vd_watch_type type;
			bool		   wants;

			if (groups[i] == NULL)
				continue;
			wants = vdi_predicate_transition(vdi_watch_group_predicate(groups[i]),
							 event->old_object, event->object, &type);
			assert_true(times_found(&found, groups[i]) <= 1);
			if (wants)
				assert_int_equal(times_found(&found, groups[i]), 1);
			wanted += wants;
			useless += !wants && times_found(&found, groups[i]);
		}
		vdi_event_unref(event);
	}
	assert_true(wanted > 1000);
	assert_true(useless < 4 * wanted);
	for (unsigned i = 0; i < GROUPS; i++)
		if (groups[i])
			vdi_watch_index_remove(&index, groups[i]);
	assert_int_equal(index.group_count, 0);
	assert_int_equal(index.names.scoped + index.names.open + index.labels.scoped + index.labels.open +
				 index.namespaces + index.everything,
			 0);
	vdi_watch_index_fini(&index);
}

static void r526_watchers_of_other_values_cost_nothing(void **state)
{
	static struct found	found;
	struct vdi_watch_group *groups[1000], *all = group_new("", "", "", "");
	struct vdi_watch_index	index;
	struct vdi_event       *moved = pod_event(2, pod_new(codec, "ns", "x", "web", "h77", 2),
						  pod_new(codec, "ns", "x", "web", "h4", 1));
	struct vdi_event       *added = pod_event(3, pod_new(codec, "ns", "x", "web", "h77", 3), NULL);
	struct vdi_event       *without = pod_event(4, pod_new(codec, "ns", "x", "web", NULL, 4), NULL);

	vdi_watch_index_init(&index, codec, 0);
	for (unsigned i = 0; i < 1000; i++) {
		char field[32];

		snprintf(field, sizeof field, "spec.nodeName=h%u", i);
		assert_status(
			vdi_watch_index_add(&index, groups[i] = group_new(i % 2 ? "" : "ns", "", "", field)),
			VD_OK);
	}
	/* Where it is and where it was. */
	found.count = 0;
	vdi_watch_index_candidates(&index, moved, 1, note, &found);
	assert_int_equal(found.count, 2);
	assert_true(times_found(&found, groups[77]) && times_found(&found, groups[4]));
	/* A watcher without a value is found for each event, beside those of the value. */
	assert_status(vdi_watch_index_add(&index, all), VD_OK);
	found.count = 0;
	vdi_watch_index_candidates(&index, added, 2, note, &found);
	assert_int_equal(found.count, 2);
	assert_true(times_found(&found, groups[77]) && times_found(&found, all));
	found.count = 0;
	vdi_watch_index_candidates(&index, without, 3, note, &found);
	assert_int_equal(found.count, 1);
	assert_true(times_found(&found, all));
	for (size_t i = 0; i < 1000; i++)
		vdi_watch_index_remove(&index, groups[i]);
	vdi_watch_index_remove(&index, all);
	vdi_watch_index_fini(&index);
	vdi_event_unref(moved);
	vdi_event_unref(added);
	vdi_event_unref(without);
}

static void r526_watchers_of_other_names_cost_nothing(void **state)
{
	static struct found    found;
	struct vdi_watch_index index;
	struct vdi_event      *event = pod_event(2, pod_new(codec, "ns", "x7", "web", "h1", 2), NULL);

	vdi_watch_index_init(&index, codec, 0);
	for (unsigned i = 0; i < 1000; i++) {
		char name[32];

		snprintf(name, sizeof name, "x%u", i / 2);
		/* Under its name, whatever else it asks for. */
		assert_status(
			vdi_watch_index_add(&index, group_new(i % 2 ? "" : "ns", name, i % 3 ? "" : "app=web",
							      i % 5 ? "" : "spec.nodeName=h1")),
			VD_OK);
	}
	found.count = 0;
	vdi_watch_index_candidates(&index, event, 1, note, &found);
	assert_int_equal(found.count, 2);
	for (size_t bucket = 0; bucket < index.bucket_count; bucket++)
		while (index.buckets[bucket])
			vdi_watch_index_remove(&index, index.buckets[bucket]);
	vdi_watch_index_fini(&index);
	vdi_event_unref(event);
}

/* Groups remember 32 bits of a visit: who was seen 2^32 events ago is seen again. */
static void r543_a_group_is_found_when_visits_begin_again(void **state)
{
	struct found		found = { .count = 0 };
	struct vdi_watch_index	index;
	struct vdi_event       *wanted = pod_event(2, pod_new(codec, "ns", "x", "web", "h1", 2), NULL);
	struct vdi_event       *other = pod_event(3, pod_new(codec, "ns", "x", "web", "h2", 2), NULL);
	struct vdi_watch_group *old = group_new("", "", "", "spec.nodeName=h1"), *recent;
	uint64_t		visit = (UINT64_C(1) << 32) - 3;

	vdi_watch_index_init(&index, codec, 0);
	assert_status(vdi_watch_index_add(&index, old), VD_OK);
	/* 3 is the number of a later visit, too. */
	vdi_watch_index_candidates(&index, wanted, 3, note, &found);
	assert_int_equal(found.count, 1);
	for (; visit < (UINT64_C(1) << 32) + 8; visit++) {
		found.count = 0;
		vdi_watch_index_candidates(&index, (uint32_t) visit == 3 ? wanted : other, visit, note,
					   &found);
		assert_int_equal(found.count, (uint32_t) visit == 3);
	}
	/* A new one was never visited. */
	recent = group_new("ns", "", "", "spec.nodeName=h1");
	assert_status(vdi_watch_index_add(&index, recent), VD_OK);
	for (visit = UINT64_C(2) << 32; visit < (UINT64_C(2) << 32) + 2; visit++) {
		found.count = 0;
		vdi_watch_index_candidates(&index, wanted, visit, note, &found);
		assert_int_equal(found.count, 2);
	}
	vdi_watch_index_remove(&index, recent);
	vdi_watch_index_remove(&index, old);
	vdi_watch_index_fini(&index);
	vdi_event_unref(wanted);
	vdi_event_unref(other);
}

static void torture_adding(void **state)
{
	int64_t live = vdi_alloc_live();

	for (unsigned nth = 1; nth <= 3; nth++) {
		struct vdi_watch_index	index;
		struct vdi_watch_group *group = group_new("a", "", "", "");
		vd_status		status;

		vdi_watch_index_init(&index, codec, -1);
		vdi_alloc_fail_nth(nth, 1);
		status = vdi_watch_index_add(&index, group);
		vdi_alloc_fail_nth(0, 0);
		assert_status(status, nth <= 2 ? VD_NOMEM : VD_OK);
		if (status != VD_OK)
			assert_status(vdi_watch_index_add(&index, group),
				      VD_OK); /* the reference was still ours */
		/* Later a larger table is a wish, not a need. */
		for (unsigned i = 0; i < 200; i++) {
			char ns[8];

			snprintf(ns, sizeof ns, "n%u", i);
			group = group_new(ns, "", "", "");
			vdi_alloc_fail_nth(1, 2);
			assert_status(vdi_watch_index_add(&index, group), VD_OK);
			vdi_alloc_fail_nth(0, 0);
			assert_ptr_equal(vdi_watch_index_find(&index, vdi_watch_group_predicate(group)),
					 group);
		}
		for (size_t bucket = 0; bucket < index.bucket_count; bucket++)
			while (index.buckets[bucket])
				vdi_watch_index_remove(&index, index.buckets[bucket]);
		vdi_watch_index_fini(&index);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r543_no_group_that_wants_an_event_is_missed),
		cmocka_unit_test(r526_watchers_of_other_values_cost_nothing),
		cmocka_unit_test(r526_watchers_of_other_names_cost_nothing),
		cmocka_unit_test(r543_a_group_is_found_when_visits_begin_again),
		cmocka_unit_test(torture_adding),
	};

	return cmocka_run_group_tests(tests, pod_codec_start, pod_codec_end);
}
