/* Trees and patches. Input: two documents with a NUL between; the second is taken for a patch of the
 * first. */
#include "fuzz.h"
#include "json_edit.h"

static void check_round_trip(const json_t *tree)
{
	char	       *text = NULL;
	size_t		size = 0;
	json_t	       *again = NULL;
	struct vd_error error;
	vd_status	status = vdi_json_dump(tree, &text, &size, &error);

	VDI_CHECK(status == VD_OK || status == VD_TOO_BIG);
	if (status != VD_OK)
		return;
	/* A merge may nest deeper than what may be loaded. */
	status = vdi_json_load((struct vd_bytes) { text, size }, NULL, &again, &error);
	VDI_CHECK(status == VD_OK || strstr(error.message, "too many levels"));
	VDI_CHECK(again == NULL || vdi_json_same(tree, again));
	json_decref(again);
	vdi_free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t  *border = size ? memchr(data, 0, size) : NULL;
	size_t		first = border ? (size_t) (border - data) : size;
	json_t	       *target = NULL;
	json_t	       *patch = NULL;
	json_t	       *result = NULL;
	struct vd_error error;

	if (vdi_json_load((struct vd_bytes) { data, first }, NULL, &target, &error) != VD_OK)
		return 0;
	check_round_trip(target);
	if (border && vdi_json_load((struct vd_bytes) { border + 1, size - first - 1 }, NULL, &patch,
				    &error) == VD_OK) {
		json_t *before = json_deep_copy(target);

		VDI_CHECK(vdi_json_merge_patch(target, patch, &result, NULL) == VD_OK);
		check_round_trip(result);
		json_decref(result);
		result = NULL;
		if (vdi_json_patch(target, patch, &result, &error) == VD_OK)
			check_round_trip(result);
		else
			VDI_CHECK(result == NULL && error.message[0]);
		VDI_CHECK(json_equal(before, target));
		json_decref(before);
	}
	json_decref(result);
	json_decref(patch);
	json_decref(target);
	return 0;
}
