/* The watches of `vedette replay --watch`: 'pods?namespace=a&labelSelector=x%3Dy&resourceVersion=5', as in a
 * URL. */
#ifndef VDI_REPLAY_WATCH_H
#define VDI_REPLAY_WATCH_H

#include "http_params.h"
#include "resources.h"

struct vdi_replay_watch {
	struct vdi_resource    *resource;
	struct vdi_params	params; /* slices of options point into it */
	struct vd_watch_options options;
	int64_t			timeout_s; /* 0: none */
	char			namespace_name[256];
	char			name[256];
};

/* Parses a watch. Kinds are named by plural, singular or short name, with the group if it is ambiguous:
 * "deployments.apps". VD_INVALID_ARGUMENT describes the error in text. */
VDI_MUST_USE vd_status vdi_replay_watch_parse(const char *text, const struct vdi_resources *resources,
					      struct vdi_replay_watch *ret_watch, struct vd_error *reterr);
void		       vdi_replay_watch_fini(struct vdi_replay_watch *watch);

#endif
