/* A pattern is parsed into a tree of parts, and the tree is compiled into a non-deterministic automaton
 * (Thompson). A match reads the text once and keeps the set of states that the automaton can be in. So a text
 * of n characters costs at most n times the program, for every pattern: `(a*)*b` is harmless. Upstream has
 * this bound from Go's regexp; a backtracking library could only keep it by refusing patterns that upstream
 * accepts (docs/decisions/structural-schemas.md). */
#include "pattern_parts.h"

enum step_kind { STEP_SET, STEP_ASSERT, STEP_SPLIT, STEP_MATCH };

struct step {
	uint8_t	 kind;
	uint32_t a, b; /* split: next steps; set: range of its entries in ranges; assert: its kind */
	uint32_t next;
};

struct vdi_pattern {
	struct step		 *steps;
	size_t			  step_count;
	size_t			  step_capacity;
	struct vdi_pattern_range *ranges;
	uint32_t		  first;
	bool			  anchored; /* matches at the begin of the text only */
};

struct builder {
	const struct vdi_pattern_parts *parts;
	struct vdi_pattern	       *pattern;
	uint64_t			work; /* steps so far */
	uint64_t			work_max;
	struct vd_error		       *error;
};

static vd_status no_memory(struct builder *builder)
{
	return vd_error_set(builder->error, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
}

/* ---- Compilation, from the end of the program to its begin ---- */

static vd_status new_step(struct builder *builder, enum step_kind kind, uint32_t a, uint32_t b, uint32_t next,
			  uint32_t *ret_step)
{
	struct vdi_pattern *pattern = builder->pattern;

	if (pattern->step_count == VDI_PATTERN_STEPS_MAX)
		return vd_error_set(builder->error, VD_INVALID, "error parsing regexp: expression too large");
	if (!vdi_grow((void **) &pattern->steps, &pattern->step_capacity, pattern->step_count + 1,
		      sizeof *pattern->steps))
		return no_memory(builder);
	pattern->steps[pattern->step_count] = (struct step) { (uint8_t) kind, a, b, next };
	*ret_step = (uint32_t) pattern->step_count++;
	return VD_OK;
}

/* Counts each visit of a part, because a part that adds no instruction takes time too, and nested repetitions
 * multiply it. */
static vd_status spend(struct builder *builder)
{
	if (++builder->work > VDI_PATTERN_WORK_MAX)
		return vd_error_set(builder->error, VD_INVALID, "error parsing regexp: expression too large");
	if (builder->work > builder->work_max)
		return vd_error_set(builder->error, VD_TOO_BIG, "the patterns together are too large");
	return VD_OK;
}

static vd_status build(struct builder *builder, uint32_t index, uint32_t next, uint32_t *ret_step);

static vd_status build_repeat(struct builder *builder, const struct vdi_pattern_part *part, uint32_t next,
			      uint32_t *ret_step)
{
	uint32_t at = next, loop;

	if (part->max < 0) {
		/* loop: split(body, next), where the body leads back to loop */
		VDI_TRY(new_step(builder, STEP_SPLIT, VDI_PATTERN_NONE, next, 0, &loop));
		VDI_TRY(build(builder, part->a, loop, &at));
		builder->pattern->steps[loop].a = at;
		at = loop;
	} else {
		for (int i = part->min; i < part->max; i++) {
			uint32_t body;

			VDI_TRY(build(builder, part->a, at, &body));
			VDI_TRY(new_step(builder, STEP_SPLIT, body, next, 0, &at));
		}
	}
	for (int i = 0; i < part->min; i++)
		VDI_TRY(build(builder, part->a, at, &at));
	*ret_step = at;
	return VD_OK;
}

/* Sequences and alternatives nest on the left side: iterating over that side bounds the recursion by the
 * nesting of groups. */
static vd_status build(struct builder *builder, uint32_t index, uint32_t next, uint32_t *ret_step)
{
	struct vdi_pattern_part part = builder->parts->items[index];
	uint32_t		right;

	VDI_TRY(spend(builder));
	while (part.kind == VDI_PART_CAT) {
		VDI_TRY(build(builder, part.b, next, &next));
		part = builder->parts->items[part.a];
	}
	switch ((enum vdi_pattern_part_kind) part.kind) {
	case VDI_PART_SET: return new_step(builder, STEP_SET, part.a, part.b, next, ret_step);
	case VDI_PART_ASSERT: return new_step(builder, STEP_ASSERT, part.a, 0, next, ret_step);
	case VDI_PART_REPEAT: return build_repeat(builder, &part, next, ret_step);
	case VDI_PART_ALT:
		VDI_TRY(build(builder, part.b, next, ret_step));
		while (builder->parts->items[part.a].kind == VDI_PART_ALT) {
			part = builder->parts->items[part.a];
			VDI_TRY(build(builder, part.b, next, &right));
			VDI_TRY(new_step(builder, STEP_SPLIT, right, *ret_step, 0, ret_step));
		}
		VDI_TRY(build(builder, part.a, next, &right));
		return new_step(builder, STEP_SPLIT, right, *ret_step, 0, ret_step);
	case VDI_PART_EMPTY:
	case VDI_PART_CAT: break;
	}
	*ret_step = next;
	return VD_OK;
}

struct vdi_pattern *vdi_pattern_free(struct vdi_pattern *pattern)
{
	if (pattern) {
		vdi_free(pattern->steps);
		vdi_free(pattern->ranges);
		vdi_free(pattern);
	}
	return NULL;
}

static vd_status compile(struct builder *builder, struct vd_bytes text, struct vdi_pattern_parts *parts)
{
	struct vdi_pattern *pattern = builder->pattern;
	uint32_t	    match;

	VDI_TRY(vdi_pattern_read(text, parts, builder->error));
	builder->work = parts->count + parts->range_count;
	VDI_TRY(new_step(builder, STEP_MATCH, 0, 0, 0, &match));
	VDI_TRY(build(builder, parts->root, match, &pattern->first));
	pattern->anchored = pattern->steps[pattern->first].kind == STEP_ASSERT &&
			    pattern->steps[pattern->first].a == VDI_ASSERT_TEXT_BEGIN;
	return VD_OK;
}

vd_status vdi_pattern_compile(struct vd_bytes text, uint64_t *work, struct vdi_pattern **ret_pattern,
			      struct vd_error *reterr)
{
	struct vdi_pattern_parts parts = { 0 };
	struct vdi_pattern	*pattern = VDI_NEW(struct vdi_pattern);
	struct builder builder = { .parts = &parts, .pattern = pattern, .work_max = *work, .error = reterr };
	vd_status      status;

	if (pattern == NULL)
		return vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	status = compile(&builder, text, &parts);
	*work -= VDI_MIN(*work, builder.work);
	pattern->ranges = parts.ranges;
	vdi_free(parts.items);
	if (status == VD_OK)
		*ret_pattern = pattern;
	else
		(void) vdi_pattern_free(pattern);
	return status;
}

/* ---- Matching ---- */

struct states {
	uint32_t *sparse; /* sparse[step]: index of the step in dense, valid if dense has it there */
	uint32_t *dense;
	uint32_t  count;
};

struct match {
	const struct vdi_pattern *pattern;
	uint32_t		 *stack;
	/* characters before and behind the position; -1: begin or end of the text */
	int64_t	 before;
	int64_t	 behind;
	uint64_t cost;
	bool	 found;
};

static bool is_word(int64_t c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool holds(const struct match *match, uint32_t kind)
{
	switch ((enum vdi_pattern_assert) kind) {
	case VDI_ASSERT_TEXT_BEGIN: return match->before < 0;
	case VDI_ASSERT_TEXT_END: return match->behind < 0;
	case VDI_ASSERT_LINE_BEGIN: return match->before < 0 || match->before == '\n';
	case VDI_ASSERT_LINE_END: return match->behind < 0 || match->behind == '\n';
	case VDI_ASSERT_WORD: return is_word(match->before) != is_word(match->behind);
	case VDI_ASSERT_NO_WORD: return is_word(match->before) == is_word(match->behind);
	}
	return false;
}

/* Adds a step and all steps reachable from it without reading a character. Each step enters a set once, so
 * the stack never holds more than two entries per step. */
static void enter(struct match *match, struct states *set, uint32_t step)
{
	uint32_t *stack = match->stack;
	size_t	  depth = 0;

	stack[depth++] = step;
	while (depth) {
		uint32_t	   at = stack[--depth];
		const struct step *one = &match->pattern->steps[at];

		if (set->sparse[at] < set->count && set->dense[set->sparse[at]] == at)
			continue;
		set->sparse[at] = set->count;
		set->dense[set->count++] = at;
		match->cost++;
		switch ((enum step_kind) one->kind) {
		case STEP_MATCH: match->found = true; break;
		case STEP_ASSERT:
			if (holds(match, one->a))
				stack[depth++] = one->next;
			break;
		case STEP_SPLIT:
			stack[depth++] = one->b;
			stack[depth++] = one->a;
			break;
		case STEP_SET: break;
		}
	}
}

static bool contains(const struct vdi_pattern *pattern, const struct step *step, uint32_t rune)
{
	uint32_t low = step->a, high = step->b;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (rune < pattern->ranges[middle].from)
			high = middle;
		else if (rune > pattern->ranges[middle].to)
			low = middle + 1;
		else
			return true;
	}
	return false;
}

static vd_status run(struct match *match, struct states *now, struct states *then, struct vd_bytes text,
		     uint64_t work)
{
	const struct vdi_pattern *pattern = match->pattern;
	const char		 *at = text.size ? text.data : "", *end = at + text.size;
	struct states		 *swapped;

	match->before = -1;
	for (;;) {
		const char *next = at;
		uint32_t    rune = 0;

		match->behind = -1;
		if (at < end)
			match->behind = rune = vdi_pattern_rune(&next, end);
		/* before and behind are set for this position, so that assertions can be evaluated. */
		if (match->before < 0 || !pattern->anchored)
			enter(match, now, pattern->first);
		if (match->found || at == end || (now->count == 0 && pattern->anchored))
			return VD_OK;
		if (match->cost > work)
			return VD_TOO_BIG;
		then->count = 0;
		at = next;
		match->before = rune;
		match->behind = -1;
		if (at < end)
			match->behind = vdi_pattern_rune(&next, end);
		for (uint32_t i = 0; i < now->count; i++) {
			const struct step *step = &pattern->steps[now->dense[i]];

			if (step->kind == STEP_SET && contains(pattern, step, rune))
				enter(match, then, step->next);
		}
		match->cost += now->count + 1;
		swapped = now;
		now = then;
		then = swapped;
		if (match->found)
			return VD_OK;
	}
}

vd_status vdi_pattern_match(const struct vdi_pattern *pattern, struct vd_bytes text, uint64_t *work,
			    bool *ret_matches)
{
	size_t	      count = pattern->step_count;
	uint32_t     *memory = vdi_calloc(count * 6 + 2, sizeof *memory);
	struct match  match = { .pattern = pattern, .cost = 1 + count / 16 };
	struct states now, then;
	vd_status     status;

	if (memory == NULL)
		return VD_NOMEM;
	now = (struct states) { memory, memory + count, 0 };
	then = (struct states) { memory + count * 2, memory + count * 3, 0 };
	match.stack = memory + count * 4;
	status = run(&match, &now, &then, text, *work);
	vdi_free(memory);
	if (match.cost > *work) {
		*work = 0;
		return VD_TOO_BIG;
	}
	*work -= match.cost;
	if (status == VD_OK)
		*ret_matches = match.found;
	return status;
}
