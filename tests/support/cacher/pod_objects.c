#include "pod_objects.h"

struct vd_codec *pod_codec_new(void)
{
	static const struct vd_field_spec fields[] = { { "spec.nodeName", ".spec.nodeName", NULL },
						       { "status.phase", ".status.phase", NULL } };
	struct vd_codec			 *codec;

	assert_status(vd_codec_json_new(fields, 2, &codec, NULL), VD_OK);
	return codec;
}

struct vd_object *pod_new(const struct vd_codec *codec, const char *namespace_name, const char *name,
			  const char *app, const char *node, vd_rev revision)
{
	char		  key[128], value[512];
	struct vd_kv	 *kv;
	struct vd_object *object;

	snprintf(key, sizeof key, "/registry/pods/%s/%s", namespace_name, name);
	snprintf(value, sizeof value,
		 "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\",\"uid\":\"u-%s\"%s%s%s},\"spec\":{%s%s%"
		 "s}}",
		 name, namespace_name, name, app ? ",\"labels\":{\"app\":\"" : "", app ? app : "",
		 app ? "\"}" : "", node ? "\"nodeName\":\"" : "", node ? node : "", node ? "\"" : "");
	assert_status(vd_kv_new(vd_bytes_of(key), vd_bytes_of(value), &kv), VD_OK);
	kv->mod_rev = revision;
	assert_status(vd_object_new(codec, kv, &object, NULL), VD_OK);
	vd_kv_unref(kv);
	return object;
}

struct vdi_event *pod_event(vd_rev revision, struct vd_object *object, struct vd_object *old_object)
{
	struct vdi_event *event;

	assert_status(
		vdi_event_new(revision, object, old_object, (vd_mono) { INT64_C(1000000000000) }, &event),
		VD_OK);
	vd_object_unref(object);
	vd_object_unref(old_object);
	return event;
}

const char *pod_names(const struct vdi_btree_snapshot *snapshot)
{
	static char		text[8192];
	size_t			size = 0;
	struct vdi_btree_cursor cursor;
	struct vdi_key_range	all = VDI_KEY_RANGE_ALL;
	struct vd_object       *object;

	text[0] = 0;
	vdi_btree_cursor_init(&cursor, snapshot);
	vdi_btree_cursor_range(&cursor, &all);
	while ((object = vdi_btree_cursor_range_next(&cursor)))
		size += (size_t) snprintf(text + size, sizeof text - size, "%s%.*s/%.*s", size ? " " : "",
					  (int) vd_object_namespace(object).size,
					  (const char *) vd_object_namespace(object).data,
					  (int) vd_object_name(object).size,
					  (const char *) vd_object_name(object).data);
	return text;
}
