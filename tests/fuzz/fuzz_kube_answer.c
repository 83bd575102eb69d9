/* What a Kubernetes API server sends: bodies of errors, events of a watch, pages of a list, discovery. The
 * first byte of the input is the type. */
#include "fuzz.h"
#include "kube_client.h"
#include "kube_names.h"
#include "kube_object.h"
#include "utf8.h"

static void check_error(vd_status status, const struct vd_error *error)
{
	VDI_CHECK(status == VD_OK || (error->message[0] && error->code == status));
	VDI_CHECK(vdi_utf8_valid(vd_bytes_of(error->message)));
}

static void check_body(struct vd_bytes body)
{
	static const int codes[] = { 302, 400, 401, 403, 404, 409, 410, 413, 422, 429, 500, 503, 504 };
	size_t		 i;

	for (i = 0; i < VDI_ARRAY_SIZE(codes); i++) {
		struct vdi_kube_head head = { .code = codes[i] };
		struct vd_error	     error = { 0 };
		vd_status	     status = vdi_kube_error_of(&head, body, &error);

		VDI_CHECK(status != VD_OK);
		check_error(status, &error);
	}
}

static void check_object(struct vd_bytes json, const char *kind)
{
	struct vdi_kube_reader reader;
	struct vdi_kube_object object;
	struct vd_error	       error = { 0 };
	struct vd_kv	      *kv = NULL;
	vd_status	       status;

	VDI_CHECK(vdi_kube_reader_init(&reader) == VD_OK);
	status = vdi_kube_object_read(&reader, json, kind, kind ? "v1" : NULL, &object, &error);
	check_error(status, &error);
	if (status == VD_OK && vdi_kube_object_kv(&object, "/registry/pods/", false, &kv, &error) == VD_OK)
		vd_kv_unref(kv);
	vdi_kube_reader_fini(&reader);
}

static void check_event(struct vd_bytes json)
{
	struct vdi_kube_event_reader reader;
	struct vdi_kube_event	     event;
	struct vd_error		     error = { 0 };
	vd_status		     status;

	VDI_CHECK(vdi_kube_event_reader_init(&reader) == VD_OK);
	status = vdi_kube_event_read(&reader, json, &event, &error);
	check_error(status, &error);
	if (status == VD_OK) {
		VDI_CHECK((const char *) event.object.data >= (const char *) json.data &&
			  (const char *) event.object.data + event.object.size <=
				  (const char *) json.data + json.size);
		check_object(event.object, NULL);
		check_body(event.object);
	}
	vdi_kube_event_reader_fini(&reader);
}

static void check_page(struct vd_bytes json)
{
	struct vdi_kube_page_reader reader;
	struct vdi_kube_page	    page;
	struct vd_error		    error = { 0 };
	vd_status		    status;

	VDI_CHECK(vdi_kube_page_reader_init(&reader) == VD_OK);
	status = vdi_kube_page_read(&reader, json, &page, &error);
	check_error(status, &error);
	if (status == VD_OK)
		check_object(page.items, "Pod");
	vdi_kube_page_reader_fini(&reader);
}

static void check_discovery(struct vd_bytes json, bool is_version)
{
	const struct vdi_kube_version version = { "example.com", "v1" };
	struct vdi_kube_names	      names = { 0 };
	const struct vdi_kube_name   *name;
	struct vd_error		      error = { 0 };
	vd_status		      status;

	status = is_version ? vdi_kube_names_read_version(&names, &version, json, &error) :
			      vdi_kube_names_read_groups(&names, false, json, &error);
	check_error(status, &error);
	if (status == VD_OK && vdi_kube_names_find(&names, "po", &name, &error) == VD_OK)
		VDI_CHECK(name->plural[0]);
	vdi_kube_names_fini(&names);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vd_bytes json;
	int64_t		live = vdi_alloc_live();

	if (size == 0)
		return 0;
	json = (struct vd_bytes) { data + 1, size - 1 };
	switch (data[0]) {
	case 'B': check_body(json); break;
	case 'E': check_event(json); break;
	case 'P': check_page(json); break;
	case 'G':
	case 'V': check_discovery(json, data[0] == 'V'); break;
	default: check_object(json, NULL);
	}
	VDI_CHECK(vdi_alloc_live() == live);
	return 0;
}
