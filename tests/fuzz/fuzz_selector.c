/* Label, field and shard selectors: a parsed selector has a canonical text that parses to the same text and
 * matches the same objects. */
#include "fuzz.h"
#include "selector.h"
#include "shard_selector.h"

static const struct vd_pair sets[][3] = {
	{ { { "a", 1 }, { "b", 1 } }, { { "x", 1 }, { "5", 1 } }, { { "app", 3 }, { "web", 3 } } },
	{ { { "a", 1 }, { NULL, 0 } }, { { "in", 2 }, { "notin", 5 } }, { { "a.b/c", 5 }, { "-7", 2 } } },
};

static void check_labels(struct vd_bytes text)
{
	struct vdi_label_selector *selector = NULL;
	struct vdi_label_selector *again = NULL;
	struct vd_error		   error;
	struct vd_bytes		   value;

	if (vdi_label_selector_parse(text, &selector, &error) != VD_OK) {
		VDI_CHECK(selector == NULL && error.message[0]);
		return;
	}
	VDI_CHECK(vdi_label_selector_parse(vdi_label_selector_text(selector), &again, NULL) == VD_OK);
	VDI_CHECK(vd_bytes_equal(vdi_label_selector_text(selector), vdi_label_selector_text(again)));
	VDI_CHECK(vdi_label_selector_hash(selector) == vdi_label_selector_hash(again));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(sets); i++) {
		bool matches = vdi_label_selector_matches(selector, sets[i], 3);

		VDI_CHECK(matches == vdi_label_selector_matches(again, sets[i], 3));
		for (size_t k = 0; k < 3; k++)
			if (vdi_label_selector_exact(selector, sets[i][k].key, &value) && matches)
				VDI_CHECK(vd_bytes_equal(value, sets[i][k].value));
	}
	vdi_label_selector_free(selector);
	vdi_label_selector_free(again);
}

static void check_shards(struct vd_bytes text)
{
	struct vdi_shard_selector *selector = NULL;
	struct vdi_shard_selector *again = NULL;
	struct vd_error		   error = { 0 };

	if (vdi_shard_selector_parse(text, &selector, &error) != VD_OK) {
		VDI_CHECK(selector == NULL && error.message[0]);
		return;
	}
	VDI_CHECK(vdi_shard_selector_parse(vdi_shard_selector_text(selector), &again, NULL) == VD_OK);
	VDI_CHECK(vd_bytes_equal(vdi_shard_selector_text(selector), vdi_shard_selector_text(again)));
	for (size_t i = 0; selector && i < selector->range_count; i++)
		VDI_CHECK(selector->ranges[i].first <= selector->ranges[i].last);
	vdi_shard_selector_free(selector);
	vdi_shard_selector_free(again);
}

static void check_fields(struct vd_bytes text)
{
	struct vdi_field_selector *selector = NULL;
	struct vdi_field_selector *again = NULL;
	struct vd_error		   error;
	struct vd_bytes		   value;

	if (vdi_field_selector_parse(text, &selector, &error) != VD_OK) {
		VDI_CHECK(selector == NULL && error.message[0]);
		return;
	}
	/* Escapes make the canonical text longer. */
	if (vdi_field_selector_text(selector).size <= VDI_SELECTOR_SIZE_MAX) {
		VDI_CHECK(vdi_field_selector_parse(vdi_field_selector_text(selector), &again, NULL) == VD_OK);
		for (size_t i = 0; i < VDI_ARRAY_SIZE(sets); i++) {
			bool matches = vdi_field_selector_matches_pairs(selector, sets[i], 3);

			VDI_CHECK(matches == vdi_field_selector_matches_pairs(again, sets[i], 3));
			for (size_t k = 0; k < 3; k++)
				if (vdi_field_selector_exact(selector, sets[i][k].key, &value) && matches)
					VDI_CHECK(vd_bytes_equal(value, sets[i][k].value));
		}
	}
	vdi_field_selector_free(selector);
	vdi_field_selector_free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_labels((struct vd_bytes) { data, size });
	check_fields((struct vd_bytes) { data, size });
	check_shards((struct vd_bytes) { data, size });
	return 0;
}
