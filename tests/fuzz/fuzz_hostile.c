/* Depth and repetition: the input selects rules of a grammar instead of bytes of a text, so that nesting,
 * long lists, doubled copies and empty repetitions are as likely as anything else. Counted work (steps of
 * trees and patterns, bytes of documents) must stay within a bound that depends on the size of the input, or
 * end with an error; no clock is used. */
#include "fuzz.h"
#include "pattern.h"
#include "selector.h"
#include "strategic_patch.h"
#include "tree_patch.h"

#define TEXT_MAX (1 << 17)

struct choices {
	const uint8_t *at, *end;
};

/* Returns a number in [0, bound); 0 after the end of the input, where every rule ends. */
static unsigned choose(struct choices *choices, unsigned bound)
{
	return choices->at < choices->end ? *choices->at++ % bound : 0;
}

/* Returns mostly small numbers, sometimes very large ones. */
static unsigned count(struct choices *choices)
{
	static const uint16_t counts[] = { 0, 1, 2, 3, 5, 8, 23, 24, 25, 64, 300, 2000 };

	return counts[choose(choices, VDI_ARRAY_SIZE(counts))];
}

static void write_name(struct choices *choices, struct vdi_out *out, unsigned number)
{
	static const char *const names[] = { "a",
					     "b",
					     "name",
					     "spec",
					     "metadata",
					     "finalizers",
					     "containers",
					     "$patch",
					     "$setElementOrder/containers",
					     "$deleteFromPrimitiveList/finalizers",
					     "$retainKeys",
					     "k" };

	vdi_out_printf(out, "%s", names[choose(choices, VDI_ARRAY_SIZE(names))]);
	if (number)
		vdi_out_printf(out, "%u", number);
}

static void write_value(struct choices *choices, struct vdi_out *out, unsigned depth);

static void write_repeated(struct choices *choices, struct vdi_out *out, unsigned depth, bool is_object)
{
	unsigned       many = count(choices);
	struct choices same = *choices;

	vdi_out_raw(out, is_object ? "{" : "[");
	for (unsigned i = 0; i < many && out->size < TEXT_MAX; i++) {
		if (i < 4)
			same = *choices;
		else
			*choices = same; /* the others are equal */
		vdi_out_raw(out, i ? "," : "");
		if (is_object) {
			vdi_out_raw(out, "\"");
			write_name(choices, out, i);
			vdi_out_raw(out, "\":");
		}
		write_value(choices, out, depth + 1);
	}
	vdi_out_raw(out, is_object ? "}" : "]");
}

static void write_value(struct choices *choices, struct vdi_out *out, unsigned depth)
{
	switch (depth > 70 ? 0 : choose(choices, 8)) {
	case 0: vdi_out_raw(out, "1"); break;
	case 1: vdi_out_raw(out, "null"); break;
	case 2: vdi_out_raw(out, "\"delete\""); break;
	case 3: vdi_out_printf(out, "\"%0*u\"", 1 + 40 * (int) count(choices), 7); break;
	case 4:
	case 5: write_repeated(choices, out, depth, false); break;
	default: write_repeated(choices, out, depth, true);
	}
}

static void write_path(struct choices *choices, struct vdi_out *out)
{
	vdi_out_raw(out, "\"");
	for (unsigned i = choose(choices, 6); i > 0; i--) {
		vdi_out_raw(out, "/");
		switch (choose(choices, 4)) {
		case 0: vdi_out_raw(out, "-"); break;
		case 1: vdi_out_printf(out, "%u", count(choices)); break;
		default: write_name(choices, out, choose(choices, 3));
		}
	}
	vdi_out_raw(out, "\"");
}

static void write_operations(struct choices *choices, struct vdi_out *out)
{
	static const char *const names[] = { "add", "copy", "move", "remove", "replace", "test" };
	unsigned		 many = 1 + count(choices), kinds = 1 + choose(choices, 4);
	struct choices		 begin = *choices;

	vdi_out_raw(out, "[");
	for (unsigned i = 0; i < many && out->size < TEXT_MAX; i++) {
		/* few kinds of operations, repeatedly: copies double, moves alternate */
		if (i % kinds == 0)
			*choices = begin;
		vdi_out_printf(out, "%s{\"op\":\"%s\",\"path\":", i ? "," : "",
			       names[choose(choices, VDI_ARRAY_SIZE(names))]);
		write_path(choices, out);
		vdi_out_raw(out, ",\"from\":");
		write_path(choices, out);
		vdi_out_raw(out, ",\"value\":");
		write_value(choices, out, choose(choices, 60));
		vdi_out_raw(out, "}");
	}
	vdi_out_raw(out, "]");
}

static void write_pattern(struct choices *choices, struct vdi_out *out, unsigned depth)
{
	static const char *const repeats[] = { "",	   "*",	      "+",   "?",  "{1000}",
					       "{0,1000}", "{1000,}", "{0}", "{7}" };
	static const char *const atoms[] = { "a", ".", "[a-z]", "\\w", "^", "$", "", "\\b", "[^a]" };

	for (unsigned i = 1 + choose(choices, 3); i > 0 && out->size < 4096; i--) {
		if (depth < 30 && choose(choices, 2)) {
			vdi_out_raw(out, "(");
			write_pattern(choices, out, depth + 1);
			vdi_out_raw(out, choose(choices, 4) == 0 ? "|)" : ")");
		} else {
			vdi_out_raw(out, atoms[choose(choices, VDI_ARRAY_SIZE(atoms))]);
		}
		vdi_out_raw(out, repeats[choose(choices, VDI_ARRAY_SIZE(repeats))]);
	}
}

static void check_pattern(struct choices *choices)
{
	struct vdi_out	    text = VDI_OUT_INIT;
	struct vdi_pattern *pattern;
	uint64_t	    work = UINT64_MAX;
	char		    subject[300];
	bool		    found;

	write_pattern(choices, &text, 0);
	if (vdi_pattern_compile(vdi_out_slice(&text), &work, &pattern, NULL) == VD_OK) {
		uint64_t left = 1000000;

		memset(subject, 'a', sizeof subject);
		(void) !vdi_pattern_match(pattern, (struct vd_bytes) { subject, sizeof subject }, &left,
					  &found);
		(void) vdi_pattern_free(pattern);
	}
	VDI_CHECK(UINT64_MAX - work <= VDI_PATTERN_WORK_MAX + 1);
	vdi_out_fini(&text);
}

/* Steps: a few for each parsed byte, plus the excess of one operation, which is bounded by the document. */
static void check_patch(struct choices *choices)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_out	 target_text = VDI_OUT_INIT, patch_text = VDI_OUT_INIT;
	struct vdi_node *target, *patch;
	unsigned	 kind = choose(choices, 3);
	struct vd_error	 error;
	vd_status	 status;

	write_repeated(choices, &target_text, 0, true);
	if (kind == 0)
		write_operations(choices, &patch_text);
	else
		write_repeated(choices, &patch_text, 0, true);
	if (vdi_tree_parse(&tree, vdi_out_slice(&target_text), &target, &error) == VD_OK &&
	    vdi_tree_parse(&tree, vdi_out_slice(&patch_text), &patch, &error) == VD_OK) {
		uint64_t parsed = tree.steps, bytes = target_text.size + patch_text.size;

		VDI_CHECK(parsed <= 24 * bytes + 1000);
		status = kind == 0 ? vdi_patch_operations(&tree, &target, patch, &error) :
			 kind == 1 ? vdi_patch_merge(&tree, &target, patch, &error) :
				     vdi_patch_strategic(&tree, target, patch, &error);
		if (kind == 1)
			VDI_CHECK(tree.steps - parsed <= 64 * bytes + 1000);
		VDI_CHECK(tree.steps - parsed <= VDI_PATCH_STEPS_MAX + 8 * VDI_PATCH_BYTES_MAX);
		if (status == VD_OK) {
			struct vdi_tree_size size = vdi_tree_measure(&tree, target);

			VDI_CHECK(size.bytes <= VDI_PATCH_BYTES_MAX && size.depth <= VDI_TREE_DEPTH_MAX + 1);
		}
	}
	vdi_tree_fini(&tree);
	vdi_out_fini(&target_text);
	vdi_out_fini(&patch_text);
}

/* The canonical text is longer than the input by at most a constant factor. */
static void check_selector(struct choices *choices)
{
	struct vdi_out		   text = VDI_OUT_INIT;
	struct vdi_label_selector *selector;

	for (unsigned i = 0, many = count(choices); i < many; i++) {
		vdi_out_printf(&text, "%sk%u", i ? "," : "", choose(choices, 4) * i);
		if (choose(choices, 2)) {
			vdi_out_raw(&text, choose(choices, 2) ? " in (" : " notin (");
			for (unsigned j = 0, values = 1 + count(choices) / 20; j < values; j++)
				vdi_out_printf(&text, "%sv%u", j ? "," : "", j * choose(choices, 3));
			vdi_out_raw(&text, ")");
		}
	}
	if (vdi_label_selector_parse(vdi_out_slice(&text), &selector, NULL) == VD_OK) {
		VDI_CHECK(vdi_label_selector_text(selector).size <= 4 * text.size + 100);
		(void) vdi_label_selector_free(selector);
	}
	vdi_out_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct choices choices = { data, data + size };
	int64_t	       live = vdi_alloc_live();

	switch (choose(&choices, 4)) {
	case 0: check_pattern(&choices); break;
	case 1: check_selector(&choices); break;
	default: check_patch(&choices);
	}
	VDI_CHECK(vdi_alloc_live() == live);
	return 0;
}
