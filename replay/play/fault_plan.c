/* The parser of fault plans. */
#include "fault_plan.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#define DELAY_RATE 0.1

static const char *const kinds[VDI_FAULT_POINT_KINDS] = { "disconnect", "compact", "error" };

static bool is(struct vd_bytes word, const char *name)
{
	return vd_bytes_equal(word, vd_bytes_of(name));
}

static vd_status refuse(struct vd_error *reterr, struct vd_bytes word, const char *why)
{
	return vd_error_set(reterr, VD_INVALID_ARGUMENT, "faults: %.*s: %s", (int) VDI_MIN(word.size, 80),
			    (const char *) word.data, why);
}

/* Copies the text after the mark, with a NUL; false: too long for a number. */
static bool text_of(struct vd_bytes value, char text[32])
{
	if (value.size == 0 || value.size >= 32)
		return false;
	memcpy(text, value.data, value.size);
	text[value.size] = 0;
	return true;
}

static bool probability_of(struct vd_bytes value, double *ret_probability)
{
	char   text[32], *end;
	double number;

	if (!text_of(value, text))
		return false;
	number = strtod(text, &end);
	if (*end || end == text || !isfinite(number) || number < 0 || number > 1)
		return false;
	*ret_probability = number;
	return true;
}

static bool duration_of(struct vd_bytes value, vd_dur *ret_duration)
{
	static const struct {
		const char *name;
		double	    ns;
	} units[] = { { "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { "m", 6e10 } };
	char   text[32], *end;
	double number;

	if (!text_of(value, text))
		return false;
	number = strtod(text, &end);
	for (size_t i = 0; end != text && i < VDI_ARRAY_SIZE(units); i++)
		if (strcmp(end, units[i].name) == 0 && isfinite(number) && number >= 0 &&
		    number * units[i].ns < 1e15) {
			ret_duration->ns = (int64_t) (number * units[i].ns);
			return true;
		}
	return false;
}

static bool revision_of(struct vd_bytes value, vd_rev *ret_revision)
{
	char	  text[32], *end;
	long long number;

	if (!text_of(value, text))
		return false;
	errno = 0;
	number = strtoll(text, &end, 10);
	if (*end || errno || number < 1)
		return false;
	*ret_revision = number;
	return true;
}

static vd_status take_point(struct vdi_fault_plan *plan, struct vd_bytes word, struct vd_bytes name,
			    struct vd_bytes value, struct vd_error *reterr)
{
	for (int kind = 0; kind < VDI_FAULT_POINT_KINDS; kind++) {
		struct vdi_fault_point point = { .kind = (enum vdi_fault_point_kind) kind };

		if (!is(name, kinds[kind]))
			continue;
		if (!revision_of(value, &point.revision))
			return refuse(reterr, word, "expected a revision after @");
		if (!vdi_grow((void **) &plan->points, &plan->point_capacity, plan->point_count + 1,
			      sizeof point))
			return vd_error_set(reterr, VD_NOMEM, "out of memory");
		plan->points[plan->point_count++] = point;
		return VD_OK;
	}
	return refuse(reterr, word, "only disconnect, compact and error can have a revision");
}

static vd_status take_rate(struct vdi_fault_plan *plan, struct vd_bytes word, struct vd_bytes name,
			   struct vd_bytes value, struct vd_error *reterr)
{
	const struct {
		const char *name;
		double	   *rate;
		vd_dur	   *duration;
	} words[] = {
		{ "disconnect", &plan->after[VDI_FAULT_DISCONNECT], NULL },
		{ "compact", &plan->after[VDI_FAULT_COMPACT], NULL },
		{ "error", &plan->after[VDI_FAULT_ERROR], NULL },
		{ "delay", NULL, &plan->delay_max },
		{ "delay-rate", &plan->delay_rate, NULL },
		{ "stale", NULL, &plan->stale },
		{ "slow", NULL, &plan->slow },
		{ "refuse", &plan->refuse, NULL },
		{ "lose", &plan->lose, NULL },
		{ "too-large", &plan->too_large, NULL },
		{ "cut", &plan->cut, NULL },
	};

	for (size_t i = 0; i < VDI_ARRAY_SIZE(words); i++) {
		if (!is(name, words[i].name))
			continue;
		if (words[i].rate)
			return probability_of(value, words[i].rate) ?
				       VD_OK :
				       refuse(reterr, word, "expected a probability between 0 and 1 after =");
		return duration_of(value, words[i].duration) ?
			       VD_OK :
			       refuse(reterr, word, "expected a duration such as 20ms after =");
	}
	return refuse(reterr, word,
		      "unknown fault (expected disconnect, compact, error, delay, delay-rate, stale, slow, "
		      "refuse, lose, too-large, cut)");
}

static vd_status take_word(struct vdi_fault_plan *plan, struct vd_bytes word, struct vd_error *reterr)
{
	const char     *start = word.data, *end = start + word.size, *mark = start;
	struct vd_bytes name, value;

	while (mark < end && *mark != '=' && *mark != '@')
		mark++;
	if (mark == end)
		return refuse(reterr, word, "expected NAME=VALUE or NAME@REVISION");
	name = (struct vd_bytes) { start, (size_t) (mark - start) };
	value = (struct vd_bytes) { mark + 1, (size_t) (end - mark - 1) };
	return *mark == '@' ? take_point(plan, word, name, value, reterr) :
			      take_rate(plan, word, name, value, reterr);
}

static int order_points(const void *a, const void *b)
{
	const struct vdi_fault_point *left = a, *right = b;

	return left->revision < right->revision ? -1 :
	       left->revision > right->revision ? 1 :
						  (int) left->kind - (int) right->kind;
}

vd_status vdi_fault_plan_init(struct vdi_fault_plan *plan, const char *words, struct vd_error *reterr)
{
	*plan = (struct vdi_fault_plan) { .delay_rate = DELAY_RATE };
	for (const char *at = words ? words : ""; *at;) {
		size_t	  size = strcspn(at, ",");
		vd_status status = take_word(plan, (struct vd_bytes) { at, size }, reterr);

		if (status != VD_OK) {
			vdi_fault_plan_fini(plan);
			return status;
		}
		at += size;
		if (*at == ',' && *++at == 0) {
			vdi_fault_plan_fini(plan);
			return vd_error_set(reterr, VD_INVALID_ARGUMENT,
					    "faults: expected a fault after the last comma");
		}
	}
	if (plan->point_count)
		qsort(plan->points, plan->point_count, sizeof *plan->points, order_points);
	return VD_OK;
}

void vdi_fault_plan_fini(struct vdi_fault_plan *plan)
{
	vdi_free(plan->points);
	plan->points = NULL;
	plan->point_count = 0;
}

bool vdi_fault_plan_point(struct vdi_fault_plan *plan, vd_rev revision, enum vdi_fault_point_kind *ret_kind)
{
	if (plan->point_next == plan->point_count || plan->points[plan->point_next].revision > revision)
		return false;
	*ret_kind = plan->points[plan->point_next++].kind;
	return true;
}
