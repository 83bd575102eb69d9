/* The query parameters of a request: parsing, defaulting and validation (R-601..R-616).
 *
 * Unknown parameters are ignored (H-104); of a repeated one the first counts. Booleans: everything but "0"
 * and "false" is true, also an empty value.
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
	bool		 dry_run_other; /* some dryRun value is not "All" */
	bool		 export_object;
	bool		 watch;
	bool		 allow_bookmarks;
	enum vd_tristate force;
	enum vd_tristate pretty;
	enum vd_tristate send_initial_events;
	enum vd_tristate orphan_dependents;
	/* set by the server: the store cannot prove progress, so initial events would have no end */
	bool  watch_list_off;
	char *text; /* decoded values; owned */
};

/* VD_NOMEM only: malformed pairs are dropped, as upstream does. */
VDI_MUST_USE vd_status vdi_params_parse(struct vd_bytes query, struct vdi_params *ret_params);
void		       vdi_params_fini(struct vdi_params *params);

/* is_list_path: a collection is addressed. */
void vdi_params_default(struct vdi_params *params);
/* R-607; false with *ret_status set. Looks at the query parameter watch only. */
bool vdi_params_validate_list(const struct vdi_params *params, struct vdi_http_status *ret_status);
/* The rest that a list or a watch can get wrong: timeoutSeconds, includeObject. The cacher reads the
 * selectors itself. */
bool vdi_params_validate_query(const struct vdi_params *params, struct vdi_http_status *ret_status);
/* Of these includeObject alone, for one object as a table. */
bool vdi_params_validate_include(const struct vdi_params *params, struct vdi_http_status *ret_status);
/* R-614, for what a delete brings in its query. */
bool vdi_params_validate_delete(const struct vdi_params *params, struct vdi_http_status *ret_status);
/* R-610..R-613; kind: whose options they are, "PatchOptions" for a patch; is_apply: a PATCH of the apply
 * type. */
bool vdi_params_validate_write(const struct vdi_params *params, const char *kind, bool is_apply,
			       struct vdi_http_status *ret_status);

/* A watch whose path names one object has either no field selector or one that asks for this name; else 400
 * . What cannot be parsed passes. */
bool vdi_params_validate_name(const struct vdi_params *params, struct vd_bytes name,
			      struct vdi_http_status *ret_status);

/* "" is VD_REVISION_UNSET, "0" VD_REVISION_ANY. Not a number: 400. */
bool vdi_params_revision(struct vd_bytes text, vd_rev *ret_revision, struct vdi_http_status *ret_status);
/* Go's durations: "32s", "6m21s", "1.5h". Empty: 0. 400 on anything else. */
bool vdi_params_duration(struct vd_bytes text, vd_dur *ret_duration, struct vdi_http_status *ret_status);
/* Empty: 0. 400 on anything but an int64. */
bool vdi_params_int(struct vd_bytes text, int64_t *ret_number, struct vdi_http_status *ret_status);
/* How long a watch lasts for which timeoutSeconds is asked: that, or for 0 or less a random time from 30
 * minutes to one hour. */
vd_dur vdi_params_watch_time(int64_t timeout_s, const struct vd_env *env);

#endif
