/* Discovery documents of an API server: refused with a message, or a table of names that can be searched. The
 * first line is the name to find; each further line is one document: 'c' of /api, 'a' of /apis, 'v' of a
 * version, and its JSON. */
#include <ctype.h>
#include <stdio.h>

#include "fuzz.h"
#include "kube_names.h"

static const struct vdi_kube_version shop = { "shop", "v1" };

static void check_text(const char *text, bool may_be_empty)
{
	VDI_CHECK(text && (may_be_empty || *text) && strlen(text) <= VDI_KUBE_NAME_MAX);
	for (; *text; text++)
		VDI_CHECK(isalnum((unsigned char) *text) || strchr("-._:", *text));
}

static void check_names(const struct vdi_kube_names *names)
{
	VDI_CHECK(names->count <= VDI_KUBE_NAMES_MAX && names->version_count <= VDI_KUBE_NAMES_VERSIONS_MAX);
	for (size_t i = 0; i < names->count; i++) {
		check_text(names->items[i].group, true);
		check_text(names->items[i].version, false);
		check_text(names->items[i].plural, false);
		check_text(names->items[i].singular, true);
		check_text(names->items[i].kind, true);
		VDI_CHECK(names->items[i].short_names);
	}
	for (size_t i = 0; i < names->version_count; i++) {
		check_text(names->versions[i].group, true);
		check_text(names->versions[i].version, false);
	}
}

static vd_status read_document(struct vdi_kube_names *names, char kind, struct vd_bytes document,
			       struct vd_error *reterr)
{
	const struct vdi_kube_version *version = names->version_count ? &names->versions[0] : &shop;

	if (kind == 'v')
		return vdi_kube_names_read_version(names, version, document, reterr);
	return vdi_kube_names_read_groups(names, kind == 'c', document, reterr);
}

static void find(const struct vdi_kube_names *names, const char *typed)
{
	const struct vdi_kube_name *name = NULL;
	struct vd_error		    error = { 0 };
	vd_status		    status = vdi_kube_names_find(names, typed, &name, &error);

	VDI_CHECK(status == VD_OK ? name >= names->items && name < names->items + names->count :
				    error.code == status && error.message[0]);
	VDI_CHECK((vdi_kube_names_check(typed, NULL) != VD_OK) == (status == VD_INVALID_ARGUMENT));
}

static struct vd_bytes take_line(struct vd_bytes *rest)
{
	const char     *end = rest->size ? memchr(rest->data, '\n', rest->size) : NULL;
	struct vd_bytes line = { rest->data, end ? (size_t) (end - (const char *) rest->data) : rest->size };
	size_t		used = end ? line.size + 1 : line.size;

	*rest = (struct vd_bytes) { (const char *) rest->data + used, rest->size - used };
	return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t		      live = vdi_alloc_live();
	struct vd_bytes	      rest = { data, size }, line = take_line(&rest);
	struct vdi_kube_names names = { 0 };
	struct vd_error	      error = { 0 };
	vd_status	      status = VD_OK;
	char		      typed[1024];

	snprintf(typed, sizeof typed, "%.*s", (int) VDI_MIN(line.size, sizeof typed - 1),
		 line.size ? (const char *) line.data : "");
	while (rest.size && status == VD_OK) {
		line = take_line(&rest);
		if (line.size == 0)
			continue;
		status = read_document(&names, *(const char *) line.data,
				       (struct vd_bytes) { (const char *) line.data + 1, line.size - 1 },
				       &error);
		VDI_CHECK(status == VD_OK || error.message[0]);
	}
	check_names(&names);
	if (status == VD_OK) {
		find(&names, typed);
		for (size_t i = 0; i < names.count && i < 16; i++)
			find(&names, names.items[i].plural);
	}
	vdi_kube_names_fini(&names);
	VDI_CHECK(vdi_alloc_live() == live);
	return 0;
}
