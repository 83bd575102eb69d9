/* The query parameters of a request: parsing, defaulting and validation, with upstream's rules and texts.
 *
 * Unknown parameters are ignored; of a repeated parameter the first counts. A boolean is true unless it is
 * "0" or "false"; an empty value is true.
 */
#ifndef VDI_HTTP_PARAMS_H
#define VDI_HTTP_PARAMS_H

#include <vedette/cacher.h>

#include "http_status.h"

struct vdi_params {
	struct vd_bytes	 label_selector;
	struct vd_bytes	 field_selector;
	struct vd_bytes	 shard_selector;
	struct vd_bytes	 resource_version;
	struct vd_bytes	 resource_version_match;
	struct vd_bytes	 continue_token;
	struct vd_bytes	 limit;
	struct vd_bytes	 timeout_seconds;
	struct vd_bytes	 timeout;
	struct vd_bytes	 field_manager;
	struct vd_bytes	 field_validation;
	struct vd_bytes	 include_object;
	struct vd_bytes	 propagation_policy;
	struct vd_bytes	 grace_period_seconds;
	struct vd_bytes	 dry_run;
	bool		 has_dry_run;
	bool		 dry_run_other; /* a dryRun value other than "All" exists */
	bool		 export_object;
	bool		 watch;
	bool		 allow_bookmarks;
	enum vd_tristate force;
	enum vd_tristate pretty;
	enum vd_tristate send_initial_events;
	enum vd_tristate orphan_dependents;
	/* set by the server if the store cannot confirm progress: a streamed list (WatchList) would never
	 * end */
	bool  watch_list_off;
	char *text; /* decoded values; owned */
};

/* Fails with VD_NOMEM only: malformed pairs are dropped, as upstream does. */
VDI_MUST_USE vd_status vdi_params_parse(struct vd_bytes query, struct vdi_params *ret_params);
void		       vdi_params_fini(struct vdi_params *params);

/* Turns a watch with resourceVersion empty or "0", and with neither sendInitialEvents nor
 * resourceVersionMatch, into one with sendInitialEvents=true and NotOlderThan. Only the query parameter watch
 * counts: a deprecated /watch/ path without it gets no default. */
void vdi_params_default(struct vdi_params *params);
/* Validates resourceVersionMatch, continue and sendInitialEvents of a list or watch. False: *ret_status is a
 * 422 with one cause per error. Only the query parameter watch tells a watch from a list. */
bool vdi_params_validate_list(const struct vdi_params *params, struct vdi_http_status *ret_status);
/* Validates the other parameters of a list or watch: timeoutSeconds, includeObject. The cacher parses the
 * selectors. */
bool vdi_params_validate_query(const struct vdi_params *params, struct vdi_http_status *ret_status);
/* Validates includeObject only, for one object as a table. */
bool vdi_params_validate_include(const struct vdi_params *params, struct vdi_http_status *ret_status);
/* Validates the query parameters of a delete: propagationPolicy and orphanDependents, not both. */
bool vdi_params_validate_delete(const struct vdi_params *params, struct vdi_http_status *ret_status);
/* Validates dryRun (only "All"), fieldManager, fieldValidation and force (only in an apply patch). kind: the
 * options' kind for the message, "PatchOptions" for a patch; is_apply: a PATCH of the apply type. */
bool vdi_params_validate_write(const struct vdi_params *params, const char *kind, bool is_apply,
			       struct vdi_http_status *ret_status);

/* A watch whose path names one object may have a field selector only for that metadata.name; else 400. A
 * selector that cannot be parsed passes. */
bool vdi_params_validate_name(const struct vdi_params *params, struct vd_bytes name,
			      struct vdi_http_status *ret_status);

/* "" is VD_REVISION_UNSET, "0" VD_REVISION_ANY. 400 on anything but an unsigned 64-bit number. */
bool vdi_params_revision(struct vd_bytes text, vd_rev *ret_revision, struct vdi_http_status *ret_status);
/* Go's durations: "32s", "6m21s", "1.5h". Empty: 0. 400 on anything else. */
bool vdi_params_duration(struct vd_bytes text, vd_dur *ret_duration, struct vdi_http_status *ret_status);
/* Empty: 0. 400 on anything but an int64. */
bool vdi_params_int(struct vd_bytes text, int64_t *ret_number, struct vdi_http_status *ret_status);
/* Duration of a watch with this timeoutSeconds: timeout_s, or, if that is 0 or less, a random time from 30
 * minutes to one hour. */
vd_dur vdi_params_watch_time(int64_t timeout_s, const struct vd_env *env);

#endif
