/* Unit tests of replay/log/kube_object.c: the same object is the same record, whoever sent it. */
#include <stdio.h>

#include "kube_object.h"
#include "vdtest.h"

#define K(text) vd_bytes_of(text)

static struct vdi_kube_reader reader;

static struct vd_kv *kv_of(const char *json, const char *kind, const char *api_version)
{
	struct vdi_kube_object object;
	struct vd_kv	      *kv;
	struct vd_error	       error = { 0 };

	if (vdi_kube_object_read(&reader, K(json), kind, api_version, &object, &error) != VD_OK)
		fail_msg("%s", error.message);
	assert_true(vd_bytes_equal(object.api_version, K("v1")));
	assert_status(vdi_kube_object_kv(&object, "/registry/pods/", false, &kv, NULL), VD_OK);
	return kv;
}

static void expect(const char *json, const char *kind, const char *key, vd_rev revision, const char *value)
{
	struct vd_kv *kv = kv_of(json, kind, kind ? "v1" : NULL);

	assert_true(vd_bytes_equal(vd_kv_key(kv), K(key)));
	assert_int_equal(kv->mod_rev, revision);
	if (!vd_bytes_equal(vd_kv_value(kv), K(value)))
		fail_msg("%.*s, not %s", (int) kv->value_size, kv->data + kv->key_size, value);
	vd_kv_unref(kv);
}

static void r105_items_and_events_are_the_same_record(void **state)
{
	const char *value = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
			    "\"namespace\":\"n\"},\"x\":1.50}";

	(void) state;
	assert_status(vdi_kube_reader_init(&reader), VD_OK);
	expect("{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
	       "\"resourceVersion\":\"12\"},\"x\":1.50}",
	       NULL, "/registry/pods/n/a", 12, value);
	expect(" {\"metadata\": {\"resourceVersion\": \"12\", \"name\": \"a\", \"namespace\": \"n\"}, \"x\": "
	       "1.50 }\n",
	       "Pod", "/registry/pods/n/a", 12, value);
	expect("{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":"
	       "\"7\"}}",
	       NULL, "/registry/pods/a", 7,
	       "{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}");
	vdi_kube_reader_fini(&reader);
}

/* The largest key that a store takes, and one byte more. */
static void keys_have_a_largest_size(void **state)
{
	static const char prefix[] = "/registry/pods/n/";
	static char	  json[VD_KEY_SIZE_MAX + 200], name[VD_KEY_SIZE_MAX + 2];

	assert_status(vdi_kube_reader_init(&reader), VD_OK);
	for (size_t size = VD_KEY_SIZE_MAX - 1; size <= VD_KEY_SIZE_MAX + 1; size++) {
		struct vdi_kube_object object;
		struct vd_kv	      *kv;
		struct vd_error	       error = { 0 };

		memset(name, 'x', size - (sizeof prefix - 1));
		name[size - (sizeof prefix - 1)] = 0;
		(void) snprintf(json, sizeof json,
				"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\","
				"\"namespace\":\"n\",\"resourceVersion\":\"5\"}}",
				name);
		assert_status(vdi_kube_object_read(&reader, K(json), NULL, NULL, &object, NULL), VD_OK);
		assert_status(vdi_kube_object_kv(&object, "/registry/pods/", true, &kv, &error),
			      size > VD_KEY_SIZE_MAX ? VD_BAD_REQUEST : VD_OK);
		if (size > VD_KEY_SIZE_MAX) {
			assert_non_null(strstr(error.message, "is too long"));
			continue;
		}
		assert_int_equal(kv->key_size, size);
		assert_int_equal(kv->data[size - 1], 'x');
		vd_kv_unref(kv);
	}
	vdi_kube_reader_fini(&reader);
}

static void what_is_no_object_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"[]",
		"{",
		"{}",
		"{\"kind\":\"Pod\"}",
		"{\"kind\":5,\"apiVersion\":\"v1\"}",
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"\\u0061\"}}",
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":"
		"\"1x\"}}",
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"resourceVersion\":"
		"\"9999999999999999999\"}}",
		"{\"kind\":\"Pod\",\"kind\":\"Pod\",\"apiVersion\":\"v1\"}"
	};
	static const char *const keyless[] = {
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"}}",
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"5\"}}",
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a/"
		"b\",\"resourceVersion\":\"5\"}}",
		"{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\",\"namespace\":\"..\","
		"\"resourceVersion\":\"5\"}}"
	};
	struct vdi_kube_object object;
	struct vd_kv	      *kv;

	(void) state;
	assert_status(vdi_kube_reader_init(&reader), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(bad); i++) {
		struct vd_error error = { 0 };

		assert_status(vdi_kube_object_read(&reader, K(bad[i]), NULL, NULL, &object, &error),
			      VD_BAD_REQUEST);
		assert_true(error.message[0]);
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(keyless); i++) {
		assert_status(vdi_kube_object_read(&reader, K(keyless[i]), NULL, NULL, &object, NULL), VD_OK);
		assert_status(vdi_kube_object_kv(&object, "/registry/pods/", false, &kv, NULL),
			      VD_BAD_REQUEST);
	}
	vdi_kube_reader_fini(&reader);
}

static void what_holds_an_object_that_is_to_go(void **state)
{
	static const struct {
		const char *metadata, *spec;
		bool	    is_last;
	} cases[] = { { "", "{}", false },
		      { ",\"deletionTimestamp\":\"x\"", "{}", true },
		      { ",\"deletionTimestamp\":\"x\",\"deletionGracePeriodSeconds\":0,\"finalizers\":[ ]",
			"{\"finalizers\":[]}", true },
		      { ",\"deletionTimestamp\":\"x\",\"deletionGracePeriodSeconds\":30", "{}", false },
		      { ",\"deletionTimestamp\":\"x\",\"finalizers\":[\"a\"]", "{}", false },
		      { ",\"deletionTimestamp\":\"x\"", "{\"finalizers\":[\"kubernetes\"]}", false },
		      /* What is no list holds nothing. */
		      { ",\"deletionTimestamp\":\"x\",\"finalizers\":null", "{\"finalizers\":null}", true },
		      { ",\"deletionTimestamp\":\"x\"", "{\"finalizers\":{\"a\":1}}", true },
		      { ",\"deletionTimestamp\":\"x\"", "{\"finalizers\":\"kubernetes\"}", true } };
	struct vdi_kube_object object;
	char		       json[512];

	(void) state;
	assert_status(vdi_kube_reader_init(&reader), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		snprintf(json, sizeof json,
			 "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\"%s},\"spec\":%"
			 "s}",
			 cases[i].metadata, cases[i].spec);
		assert_status(vdi_kube_object_read(&reader, K(json), NULL, NULL, &object, NULL), VD_OK);
		assert_int_equal(object.is_last, cases[i].is_last);
	}
	vdi_kube_reader_fini(&reader);
}

static void events_pages_and_statuses(void **state)
{
	struct vdi_kube_event_reader events;
	struct vdi_kube_page_reader  pages;
	struct vdi_kube_event	     event;
	struct vdi_kube_page	     page;
	struct vd_error		     error = { 0 };

	(void) state;
	assert_status(vdi_kube_event_reader_init(&events), VD_OK);
	assert_status(vdi_kube_page_reader_init(&pages), VD_OK);
	assert_status(
		vdi_kube_event_read(&events, K("{\"object\":{\"a\":1},\"type\":\"DELETED\"}"), &event, NULL),
		VD_OK);
	assert_int_equal(event.type, VDI_KUBE_DELETED);
	assert_true(vd_bytes_equal(event.object, K("{\"a\":1}")));
	assert_status(vdi_kube_event_read(&events, K("{\"object\":{},\"type\":\"SEEN\"}"), &event, &error),
		      VD_BAD_REQUEST);
	assert_status(vdi_kube_event_read(&events, K("<html>"), &event, &error), VD_BAD_REQUEST);
	assert_non_null(strstr(error.message, "<html>"));
	assert_status(
		vdi_kube_page_read(
			&pages,
			K("{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"abc\"},\"items\":[1,2]}"),
			&page, NULL),
		VD_OK);
	assert_int_equal(page.revision, 5);
	assert_true(vd_bytes_equal(page.continue_token, K("abc")) && vd_bytes_equal(page.items, K("1,2")));
	assert_status(vdi_kube_page_read(&pages,
					 K("{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":null}"),
					 &page, NULL),
		      VD_OK);
	assert_int_equal(page.items.size, 0);
	assert_status(vdi_kube_page_read(&pages,
					 K("{\"metadata\":{\"resourceVersion\":\"five\"},\"items\":[]}"),
					 &page, NULL),
		      VD_BAD_REQUEST);
	assert_status(vdi_kube_page_read(&pages, K("{\"kind\":\"Status\"}"), &page, NULL), VD_BAD_REQUEST);
	assert_status(vdi_kube_status_error(
			      K("{\"code\":410,\"message\":\"too old\",\"reason\":\"Expired\"}"), &error),
		      VD_EXPIRED);
	assert_string_equal(error.message, "too old (Expired)");
	assert_status(vdi_kube_status_error(K("{\"code\":429}"), &error), VD_FULL);
	assert_status(vdi_kube_status_error(K("no JSON"), &error), VD_UNAVAILABLE);
	vdi_kube_event_reader_fini(&events);
	vdi_kube_page_reader_fini(&pages);
}

static void where_kinds_lie(void **state)
{
	static const char *const cases[][3] = {
		{ "", "pods", "/registry/pods/" },
		{ "", "nodes", "/registry/minions/" },
		{ "", "services", "/registry/services/specs/" },
		{ "apps", "deployments", "/registry/deployments/" },
		{ "networking.k8s.io", "ingresses", "/registry/ingress/" },
		{ "apiextensions.k8s.io", "customresourcedefinitions",
		  "/registry/apiextensions.k8s.io/customresourcedefinitions/" },
		{ "example.com", "services", "/registry/example.com/services/" }
	};
	char prefix[VDI_KUBE_PREFIX_MAX], longest[VDI_KUBE_PREFIX_MAX];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		assert_true(vdi_kube_prefix(cases[i][0], cases[i][1], prefix));
		assert_string_equal(prefix, cases[i][2]);
	}
	memset(longest, 'x', sizeof longest - 1);
	longest[sizeof longest - 1] = 0;
	assert_false(vdi_kube_prefix("", longest, prefix));
}

static void every_allocation_may_fail(void **state)
{
	const char *json = "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"a\","
			   "\"resourceVersion\":\"12\"}}";

	(void) state;
	for (uint64_t nth = 1;; nth++) {
		int64_t		       live = vdi_alloc_live();
		struct vdi_kube_object object;
		struct vd_kv	      *kv = NULL;
		bool		       failed;
		vd_status	       status;

		memset(&reader, 0xa5, sizeof reader);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_kube_reader_init(&reader);
		if (status == VD_OK)
			status = vdi_kube_object_read(&reader, K(json), NULL, NULL, &object, NULL);
		if (status == VD_OK)
			status = vdi_kube_object_kv(&object, "/registry/pods/", false, &kv, NULL);
		failed = vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_status(status, failed ? VD_NOMEM : VD_OK);
		vd_kv_unref(kv);
		vdi_kube_reader_fini(&reader);
		assert_int_equal(vdi_alloc_live(), live);
		if (!failed)
			return;
	}
}

/* So much of it that people recognize it, and no byte that a terminal obeys. */
static void what_is_no_event_is_shown_up_to_the_first_strange_byte(void **state)
{
	static const char *const cases[][2] = {
		{ "<a b~", "\"<a b~...\" is not a watch event: " },
		{ "a\tb", "\"a...\" is" },
		{ "a\x1f"
		  "b",
		  "\"a...\" is" },
		{ "a\x7f"
		  "b",
		  "\"a...\" is" },
		{ "a\xc3\xa4", "\"a...\" is" },
		{ "\n", "\"...\" is" },
		{ "123456789012345678901234567890123456789012345678901234567890x",
		  "\"123456789012345678901234567890123456789012345678901234567890...\"" },
		{ "{\"type\":\"ADDED\"}", ": type or object is missing" },
		{ "{\"object\":{}}", ": type or object is missing" },
		{ "{\"type\":1,\"object\":{}}", ": type or object is missing" },
		{ "{\"type\":\"ADDED\",\"object\":[]}", ": type or object is missing" },
		{ "{\"type\":\"added\",\"object\":{}}", ": its type is unknown" }
	};
	static const char *const     names[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" };
	struct vdi_kube_event_reader events;
	struct vdi_kube_event	     event;

	(void) state;
	memset(&events, 0xa5, sizeof events); /* whatever was there */
	assert_status(vdi_kube_event_reader_init(&events), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct vd_error error = { 0 };

		assert_status(vdi_kube_event_read(&events, K(cases[i][0]), &event, &error), VD_BAD_REQUEST);
		if (strstr(error.message, cases[i][1]) == NULL)
			fail_msg("%s", error.message);
	}
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(names); i++) {
		char json[64];

		snprintf(json, sizeof json, "{\"type\":\"%s\",\"object\":{\"a\":1}}", names[i]);
		assert_status(vdi_kube_event_read(&events, K(json), &event, NULL), VD_OK);
		assert_int_equal(event.type, i);
	}
	vdi_kube_event_reader_fini(&events);
}

static void a_status_says_what_it_is_and_why(void **state)
{
	static const struct {
		const char *json;
		vd_status   status;
		const char *message;
	} cases[] = { { "{\"code\":410,\"message\":\"a\",\"reason\":\"b\"}", VD_EXPIRED, "a (b)" },
		      { "{\"code\":429,\"message\":\"a\"}", VD_FULL, "a" },
		      { "{\"code\":401,\"reason\":\"b\"}", VD_FORBIDDEN, "the server gives no reason (b)" },
		      { "{\"code\":403,\"message\":\"\",\"reason\":\"\"}", VD_FORBIDDEN,
			"the server gives no reason" },
		      { "{\"code\":404,\"message\":\"a\",\"reason\":\"\"}", VD_NOT_FOUND, "a" },
		      { "{\"code\":504}", VD_TIMEOUT, "the server gives no reason" },
		      { "{\"code\":500,\"message\":\"a\"}", VD_UNAVAILABLE, "a" },
		      { "{}", VD_UNAVAILABLE, "the server gives no reason" },
		      { "", VD_UNAVAILABLE, "the server gives no reason" } };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct vd_error error = { 0 };

		assert_status(vdi_kube_status_error(K(cases[i].json), &error), cases[i].status);
		assert_status(error.code, cases[i].status);
		assert_string_equal(error.message, cases[i].message);
	}
}

static void a_page_says_its_revision_token_and_items(void **state)
{
	static const struct {
		const char *json;
		vd_rev	    revision; /* -1: refused */
		const char *token, *items;
	} cases[] = { { "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"abc\"},\"items\":[{},{}]}",
			5, "abc", "{},{}" },
		      { "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"\"},\"items\":[]}", 5, "",
			"" },
		      { "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":null}", 5, "", "" },
		      { "{\"metadata\":{},\"items\":[1]}", 0, "", "1" },
		      { "{\"items\":[1]}", 0, "", "1" },
		      { "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"\\u0061\"},\"items\":[]}",
			-1, "", "" },
		      { "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":{}}", -1, "", "" },
		      { "{\"metadata\":{\"resourceVersion\":\"5\"}}", -1, "", "" },
		      { "{\"metadata\":{\"resourceVersion\":\"x\"},\"items\":[]}", -1, "", "" },
		      { "[]", -1, "", "" } };
	struct vdi_kube_page_reader pages;

	(void) state;
	memset(&pages, 0xa5, sizeof pages); /* whatever was there */
	assert_status(vdi_kube_page_reader_init(&pages), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		struct vdi_kube_page page;
		vd_status	     status = vdi_kube_page_read(&pages, K(cases[i].json), &page, NULL);

		if ((status == VD_OK) != (cases[i].revision >= 0))
			fail_msg("%s: %s", cases[i].json, vd_status_name(status));
		if (status != VD_OK)
			continue;
		assert_int_equal(page.revision, cases[i].revision);
		assert_true(vd_bytes_equal(page.continue_token, K(cases[i].token)) &&
			    vd_bytes_equal(page.items, K(cases[i].items)));
	}
	vdi_kube_page_reader_fini(&pages);
}

/* Each of the places that differ from the plural, in its own group only. */
static void special_places_are_those_of_their_groups(void **state)
{
	static const char *const cases[][3] = { { "", "endpoints", "/registry/services/endpoints/" },
						{ "", "replicationcontrollers", "/registry/controllers/" },
						{ "extensions", "ingresses", "/registry/ingress/" },
						{ "", "ingresses", "/registry/ingresses/" },
						{ "apps", "nodes", "/registry/nodes/" },
						{ "batch", "jobs", "/registry/jobs/" },
						{ "storagemigration.k8s.io", "storageversionmigrations",
						  "/registry/storageversionmigrations/" },
						{ "snapshot.storage.k8s.io", "volumesnapshots",
						  "/registry/snapshot.storage.k8s.io/volumesnapshots/" } };
	char			 prefix[VDI_KUBE_PREFIX_MAX], plural[VDI_KUBE_PREFIX_MAX];

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(cases); i++) {
		assert_true(vdi_kube_prefix(cases[i][0], cases[i][1], prefix));
		assert_string_equal(prefix, cases[i][2]);
	}
	/* "/registry/", the plural, "/", and the zero byte fill it. */
	memset(plural, 'x', sizeof plural);
	plural[VDI_KUBE_PREFIX_MAX - 12] = 0;
	assert_true(vdi_kube_prefix("", plural, prefix));
	assert_int_equal(strlen(prefix), VDI_KUBE_PREFIX_MAX - 1);
	plural[VDI_KUBE_PREFIX_MAX - 12] = 'x';
	plural[VDI_KUBE_PREFIX_MAX - 11] = 0;
	assert_false(vdi_kube_prefix("", plural, prefix));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r105_items_and_events_are_the_same_record),
		cmocka_unit_test(keys_have_a_largest_size),
		cmocka_unit_test(what_is_no_object_is_refused),
		cmocka_unit_test(what_holds_an_object_that_is_to_go),
		cmocka_unit_test(events_pages_and_statuses),
		cmocka_unit_test(where_kinds_lie),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(what_is_no_event_is_shown_up_to_the_first_strange_byte),
		cmocka_unit_test(a_status_says_what_it_is_and_why),
		cmocka_unit_test(a_page_says_its_revision_token_and_items),
		cmocka_unit_test(special_places_are_those_of_their_groups),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
