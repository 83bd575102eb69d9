/* Parses and validates query parameters. Validation and its texts mirror k8s.io/apimachinery
 * pkg/apis/meta/internalversion/validation. */
#include "http_params.h"
#include "http_parser.h"

#include "http_route.h"
#include "selector.h"

static bool is(struct vd_bytes text, const char *word)
{
	return vd_bytes_equal(text, vd_bytes_of(word));
}

static bool is_false(struct vd_bytes text)
{
	const char *at = text.data;

	if (is(text, "0"))
		return true;
	if (text.size != 5)
		return false;
	for (size_t i = 0; i < 5; i++)
		if ((at[i] | 0x20) != "false"[i])
			return false;
	return true;
}

static void set_boolean(enum vd_tristate *to, struct vd_bytes value)
{
	*to = is_false(value) ? VD_FALSE : VD_TRUE;
}

struct parameter {
	const char *name;
	size_t	    offset;
};

#define PARAMETER(name, field)                                                                               \
	{                                                                                                    \
		name, offsetof(struct vdi_params, field)                                                     \
	}

static const struct parameter text_parameters[] = {
	PARAMETER("labelSelector", label_selector),
	PARAMETER("fieldSelector", field_selector),
	PARAMETER("shardSelector", shard_selector),
	PARAMETER("resourceVersion", resource_version),
	PARAMETER("resourceVersionMatch", resource_version_match),
	PARAMETER("continue", continue_token),
	PARAMETER("limit", limit),
	PARAMETER("timeoutSeconds", timeout_seconds),
	PARAMETER("timeout", timeout),
	PARAMETER("fieldManager", field_manager),
	PARAMETER("fieldValidation", field_validation),
	PARAMETER("includeObject", include_object),
	PARAMETER("propagationPolicy", propagation_policy),
	PARAMETER("gracePeriodSeconds", grace_period_seconds),
};

static const struct parameter tristate_parameters[] = {
	PARAMETER("force", force),
	PARAMETER("pretty", pretty),
	PARAMETER("sendInitialEvents", send_initial_events),
	PARAMETER("orphanDependents", orphan_dependents),
};

static void take_pair(struct vdi_params *params, struct vd_bytes name, struct vd_bytes value, uint64_t *seen)
{
	uint64_t bit = 1;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(text_parameters); i++, bit <<= 1) {
		if (!is(name, text_parameters[i].name))
			continue;
		if (!(*seen & bit))
			memcpy((char *) params + text_parameters[i].offset, &value, sizeof value);
		*seen |= bit;
		return;
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(tristate_parameters); i++, bit <<= 1) {
		if (!is(name, tristate_parameters[i].name))
			continue;
		if (!(*seen & bit))
			set_boolean((enum vd_tristate *) (void *) ((char *) params +
								   tristate_parameters[i].offset),
				    value);
		*seen |= bit;
		return;
	}
	if (is(name, "dryRun")) {
		if (!params->dry_run_other) /* keep the invalid value for the message */
			params->dry_run = value;
		params->has_dry_run = true;
		params->dry_run_other |= !is(value, "All");
	} else if (is(name, "watch")) {
		if (!(*seen & bit))
			params->watch = !is_false(value);
		*seen |= bit;
	} else if (is(name, "allowWatchBookmarks")) {
		if (!(*seen & bit << 1))
			params->allow_bookmarks = !is_false(value);
		*seen |= bit << 1;
	} else if (is(name, "export")) {
		params->export_object = !is_false(value);
	}
}

vd_status vdi_params_parse(struct vd_bytes query, struct vdi_params *ret_params)
{
	struct vdi_params params = { 0 };
	const char	 *at = query.data;
	const char	 *end = at + query.size;
	uint64_t	  seen = 0;
	size_t		  used = 0;

	if (query.size) {
		params.text = vdi_alloc(query.size);
		if (params.text == NULL)
			return VD_NOMEM;
	}
	while (at < end) {
		const char     *stop = memchr(at, '&', (size_t) (end - at));
		const char     *pair_end = stop ? stop : end;
		const char     *equals = memchr(at, '=', (size_t) (pair_end - at));
		const char     *name_end = equals ? equals : pair_end;
		struct vd_bytes name = { at, (size_t) (name_end - at) };
		struct vd_bytes value = { equals ? equals + 1 : pair_end,
					  equals ? (size_t) (pair_end - equals - 1) : 0 };
		size_t name_size, value_size;

		if (memchr(at, ';', (size_t) (pair_end - at)) == NULL &&
		    vdi_percent_decode(name, true, params.text + used, &name_size) &&
		    vdi_percent_decode(value, true, params.text + used + name_size, &value_size)) {
			name = (struct vd_bytes) { params.text + used, name_size };
			value = (struct vd_bytes) { params.text + used + name_size, value_size };
			used += name_size + value_size;
			take_pair(&params, name, value, &seen);
		}
		at = stop ? stop + 1 : end;
	}
	*ret_params = params;
	return VD_OK;
}

void vdi_params_fini(struct vdi_params *params)
{
	vdi_free(params->text);
	memset(params, 0, sizeof *params);
}

void vdi_params_default(struct vdi_params *params)
{
	if (!params->watch || params->watch_list_off ||
	    (params->resource_version.size && !is(params->resource_version, "0")))
		return;
	if (params->send_initial_events != VD_UNSET || params->resource_version_match.size)
		return;
	params->send_initial_events = VD_TRUE;
	params->resource_version_match = vd_bytes_of("NotOlderThan");
}

static void forbid(struct vdi_http_status *status, const char *field, const char *text)
{
	vdi_http_status_cause(status, "FieldValueForbidden", field, "Forbidden: %s", text);
}

static void unsupported(struct vdi_http_status *status, const char *field, struct vd_bytes value,
			const char *supported)
{
	vdi_http_status_cause(status, "FieldValueNotSupported", field,
			      "Unsupported value: \"%.*s\": supported values: %s",
			      (int) VDI_MIN(value.size, (size_t) 100), (const char *) value.data, supported);
}

static void validate_list(const struct vdi_params *params, struct vdi_http_status *status)
{
	static const char match_field[] = "resourceVersionMatch";
	struct vd_bytes	  match = params->resource_version_match;

	if (match.size) {
		if (params->resource_version.size == 0)
			forbid(status, match_field,
			       "resourceVersionMatch is forbidden unless resourceVersion is provided");
		if (params->continue_token.size)
			forbid(status, match_field,
			       "resourceVersionMatch is forbidden when continue is provided");
		if (!is(match, "Exact") && !is(match, "NotOlderThan"))
			unsupported(status, match_field, match, "\"Exact\", \"NotOlderThan\", \"\"");
		if (is(match, "Exact") && is(params->resource_version, "0"))
			forbid(status, match_field,
			       "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
	}
	if (params->send_initial_events != VD_UNSET)
		forbid(status, "sendInitialEvents", "sendInitialEvents is forbidden for list");
}

static void validate_watch(const struct vdi_params *params, struct vdi_http_status *status)
{
	static const char match_field[] = "resourceVersionMatch";
	struct vd_bytes	  match = params->resource_version_match;

	if (params->send_initial_events != VD_UNSET && !is(match, "NotOlderThan"))
		forbid(status, match_field,
		       "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
	if (params->send_initial_events != VD_UNSET && params->watch_list_off)
		forbid(status, "sendInitialEvents",
		       "sendInitialEvents is forbidden for watch unless the WatchList feature gate is "
		       "enabled");
	if (match.size == 0)
		return;
	if (params->send_initial_events == VD_UNSET)
		forbid(status, match_field,
		       "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
	if (!is(match, "NotOlderThan"))
		unsupported(status, match_field, match, "\"NotOlderThan\"");
	if (params->continue_token.size)
		forbid(status, match_field, "resourceVersionMatch is forbidden when continue is provided");
}

bool vdi_params_validate_list(const struct vdi_params *params, struct vdi_http_status *ret_status)
{
	vdi_http_status_set(ret_status, 422, "Invalid", "%s", "");
	if (params->watch)
		validate_watch(params, ret_status);
	else
		validate_list(params, ret_status);
	if (ret_status->cause_count == 0)
		return true;
	vdi_http_status_invalid(ret_status, "meta.k8s.io", "ListOptions", VD_BYTES_NONE);
	return false;
}

bool vdi_params_validate_include(const struct vdi_params *params, struct vdi_http_status *ret_status)
{
	struct vd_bytes include = params->include_object;

	if (include.size == 0 || is(include, "None") || is(include, "Metadata") || is(include, "Object"))
		return true;
	vdi_http_status_set(ret_status, 400, "BadRequest",
			    "Invalid value: \"%.*s\": supported values: \"Metadata\", \"None\", \"Object\"",
			    (int) VDI_MIN(include.size, (size_t) 100), (const char *) include.data);
	return false;
}

bool vdi_params_validate_query(const struct vdi_params *params, struct vdi_http_status *ret_status)
{
	int64_t timeout_s;

	return vdi_params_int(params->timeout_seconds, &timeout_s, ret_status) &&
	       vdi_params_validate_include(params, ret_status);
}

bool vdi_params_validate_delete(const struct vdi_params *params, struct vdi_http_status *ret_status)
{
	struct vd_bytes policy = params->propagation_policy;
	int64_t		seconds;

	if (!vdi_params_int(params->grace_period_seconds, &seconds, ret_status))
		return false;
	vdi_http_status_set(ret_status, 422, "Invalid", "%s", "");
	if (policy.size && !is(policy, "Background") && !is(policy, "Foreground") && !is(policy, "Orphan"))
		unsupported(ret_status, "propagationPolicy", policy,
			    "\"Foreground\", \"Background\", \"Orphan\", \"nil\"");
	if (policy.size && params->orphan_dependents != VD_UNSET)
		vdi_http_status_cause(
			ret_status, "FieldValueInvalid", "propagationPolicy",
			"Invalid value: orphanDependents and deletionPropagation cannot be both set");
	if (ret_status->cause_count == 0)
		return true;
	vdi_http_status_invalid(ret_status, "meta.k8s.io", "DeleteOptions", VD_BYTES_NONE);
	return false;
}

/* Parses one or more pairs of number and unit; the number may have a fraction. */
static bool parse_duration(struct vd_bytes text, double *ret_seconds)
{
	static const struct {
		const char *name;
		double	    seconds;
	} units[] = {
		{ "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 }, { "s", 1 }, { "m", 60 }, { "h", 3600 }
	};
	const char *at = text.data;
	const char *end = at + text.size;
	bool	    negative = text.size && *at == '-';
	double	    total = 0;

	at += text.size && (*at == '-' || *at == '+');
	if (end - at == 1 && *at == '0') {
		*ret_seconds = 0;
		return true;
	}
	if (at == end)
		return false;
	while (at < end) {
		double number = 0, scale = 1;
		bool   digits = false, found = false;

		for (; at < end && *at >= '0' && *at <= '9'; at++, digits = true)
			number = number * 10 + (*at - '0');
		if (at < end && *at == '.')
			for (at++; at < end && *at >= '0' && *at <= '9'; at++, digits = true)
				number += (*at - '0') * (scale /= 10);
		for (size_t i = 0; i < VDI_ARRAY_SIZE(units) && !found; i++) {
			size_t size = strlen(units[i].name);

			if ((size_t) (end - at) < size || memcmp(at, units[i].name, size) != 0 ||
			    ((size_t) (end - at) > size &&
			     ((at[size] < '0' || at[size] > '9') && at[size] != '.')))
				continue;
			found = true;
			total += number * units[i].seconds;
			at += size;
		}
		if (!digits || !found)
			return false;
	}
	*ret_seconds = negative ? -total : total;
	return true;
}

bool vdi_params_duration(struct vd_bytes text, vd_dur *ret_duration, struct vdi_http_status *ret_status)
{
	double seconds = 0;

	if (text.size && !parse_duration(text, &seconds)) {
		vdi_http_status_set(
			ret_status, 400, "BadRequest",
			"invalid timeout specified in the request URL - time: invalid duration \"%.*s\"",
			(int) VDI_MIN(text.size, (size_t) 100), (const char *) text.data);
		return false;
	}
	ret_duration->ns = seconds > 0 && seconds < 1e9 ? (int64_t) (seconds * 1e9) : 0;
	return true;
}

static bool is_printable(struct vd_bytes text)
{
	const unsigned char *at = text.data;

	for (size_t i = 0; i < text.size; i++)
		if (at[i] < 0x20 || at[i] == 0x7F)
			return false;
	return true;
}

bool vdi_params_validate_write(const struct vdi_params *params, const char *kind, bool is_apply,
			       struct vdi_http_status *ret_status)
{
	struct vd_bytes validation = params->field_validation;

	vdi_http_status_set(ret_status, 422, "Invalid", "%s", "");
	if (strcmp(kind, "PatchOptions") == 0 && !is_apply && params->force != VD_UNSET)
		forbid(ret_status, "force", "may not be specified for non-apply patch");
	if (params->field_manager.size > 128)
		vdi_http_status_cause(ret_status, "FieldValueTooLong", "fieldManager",
				      "Too long: may not be more than 128 bytes");
	if (!is_printable(params->field_manager))
		vdi_http_status_cause(ret_status, "FieldValueInvalid", "fieldManager",
				      "Invalid value: should only contain printable characters");
	if (params->dry_run_other)
		vdi_http_status_cause(ret_status, "FieldValueNotSupported", "dryRun",
				      "Unsupported value: [\"%.*s\"]: supported values: \"All\"",
				      (int) VDI_MIN(params->dry_run.size, (size_t) 60),
				      params->dry_run.size ? (const char *) params->dry_run.data : "");
	if (validation.size && !is(validation, "Ignore") && !is(validation, "Warn") &&
	    !is(validation, "Strict"))
		unsupported(ret_status, "fieldValidation", validation,
			    "\"\", \"Ignore\", \"Strict\", \"Warn\"");
	if (ret_status->cause_count == 0)
		return true;
	vdi_http_status_invalid(ret_status, "meta.k8s.io", kind, VD_BYTES_NONE);
	return false;
}

bool vdi_params_validate_name(const struct vdi_params *params, struct vd_bytes name,
			      struct vdi_http_status *ret_status)
{
	struct vdi_field_selector *selector;
	struct vd_bytes		   wanted;
	bool			   valid;

	if (name.size == 0 || vdi_field_selector_parse(params->field_selector, &selector, NULL) != VD_OK)
		return true;
	valid = vdi_field_selector_empty(selector) ||
		(vdi_field_selector_exact(selector, vd_bytes_of("metadata.name"), &wanted) &&
		 vd_bytes_equal(wanted, name));
	if (!valid)
		vdi_http_status_set(ret_status, 400, "BadRequest",
				    "fieldSelector metadata.name doesn't match requested name");
	vdi_field_selector_free(selector);
	return valid;
}

bool vdi_params_revision(struct vd_bytes text, vd_rev *ret_revision, struct vdi_http_status *ret_status)
{
	const char *digits = text.data;
	uint64_t    revision = 0;
	bool	    overflow = false;

	if (text.size == 0) {
		*ret_revision = VD_REVISION_UNSET;
		return true;
	}
	for (size_t i = 0; i < text.size; i++) {
		uint64_t digit = (uint64_t) (digits[i] - '0');

		if (digits[i] < '0' || digits[i] > '9') {
			vdi_http_status_set(ret_status, 400, "BadRequest",
					    "resourceVersion: Invalid value: \"%.*s\": strconv.ParseUint: "
					    "parsing \"%.*s\": invalid syntax",
					    (int) VDI_MIN(text.size, (size_t) 100), digits,
					    (int) VDI_MIN(text.size, (size_t) 100), digits);
			return false;
		}
		overflow |= __builtin_mul_overflow(revision, 10u, &revision) ||
			    __builtin_add_overflow(revision, digit, &revision);
	}
	if (overflow) {
		vdi_http_status_set(ret_status, 400, "BadRequest",
				    "resourceVersion: Invalid value: \"%.*s\": strconv.ParseUint: parsing "
				    "\"%.*s\": value out of range",
				    (int) VDI_MIN(text.size, (size_t) 100), digits,
				    (int) VDI_MIN(text.size, (size_t) 100), digits);
		return false;
	}
	*ret_revision = revision > INT64_MAX ? INT64_MAX : (vd_rev) revision;
	return true;
}

bool vdi_params_int(struct vd_bytes text, int64_t *ret_number, struct vdi_http_status *ret_status)
{
	const char *at = text.data;
	bool	    negative = text.size > 1 && at[0] == '-';
	bool	    bad = false;
	int64_t	    number = 0;

	for (size_t i = negative; i < text.size && !bad; i++) {
		bad = at[i] < '0' || at[i] > '9' || __builtin_mul_overflow(number, 10, &number) ||
		      __builtin_sub_overflow(number, at[i] - '0', &number);
	}
	if (!bad && !negative)
		bad = number == INT64_MIN;
	if (bad) {
		vdi_http_status_set(ret_status, 400, "BadRequest",
				    "strconv.ParseInt: parsing \"%.*s\": invalid syntax",
				    (int) VDI_MIN(text.size, (size_t) 100), at);
		return false;
	}
	*ret_number = negative ? number : -number;
	return true;
}

vd_dur vdi_params_watch_time(int64_t timeout_s, const struct vd_env *env)
{
	if (timeout_s <= 0)
		timeout_s = 1800 + (int64_t) vd_env_random_below(env, 1800);
	return VD_SECONDS(VDI_MIN(timeout_s, (int64_t) 1000000000)); /* large enough, and no overflow */
}
