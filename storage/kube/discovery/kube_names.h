/* The resources that a server offers, and the search for the name that a user types.
 *
 * Filled from discovery documents, in the order of the server. The core group is read first, so that it is
 * found first. One thread changes a table; any number may search it afterwards. Does not block.
 *
 * Bounds: a document has at most VDI_KUBE_NAMES_DOCUMENT_MAX bytes and VDI_KUBE_NAMES_NODES_MAX JSON values;
 * a table has at most VDI_KUBE_NAMES_MAX resources and VDI_KUBE_NAMES_VERSIONS_MAX versions to be read
 * separately. A name has at most VDI_KUBE_NAME_MAX bytes; entries with other names are ignored, as are
 * members of unexpected types.
 */
#ifndef VDI_KUBE_NAMES_H
#define VDI_KUBE_NAMES_H

#include "base.h"
#include "tree.h"

#define VDI_KUBE_NAMES_DOCUMENT_MAX ((size_t) 16 << 20)
#define VDI_KUBE_NAMES_NODES_MAX 500000
#define VDI_KUBE_NAMES_MAX 50000
#define VDI_KUBE_NAMES_VERSIONS_MAX 2000
#define VDI_KUBE_NAME_MAX 253
/* Maximum short names of one resource; more are ignored. */
#define VDI_KUBE_SHORT_NAMES_MAX 16

/* Texts are owned by the table. */
struct vdi_kube_name {
	const char *group, *version, *plural, *singular,
		*kind;		 /* group "": core; singular, kind: may be "" */
	const char *short_names; /* separated by spaces */
	bool	    cluster_scoped;
};

/* A version whose resources are in a document of its own. */
struct vdi_kube_version {
	const char *group, *version;
};

struct vdi_kube_names {
	struct vdi_kube_name *items;
	size_t		      count, capacity;
	/* From documents that are not aggregated. */
	struct vdi_kube_version *versions;
	size_t			 version_count, version_capacity;
	/* Versions whose resources the server cannot tell, because the server behind it is down. */
	struct vdi_kube_version *missing;
	size_t			 missing_count, missing_capacity;
	struct vdi_tree		 texts; /* arena */
};

/* A zeroed table is empty and ready. */
void vdi_kube_names_fini(struct vdi_kube_names *names);

/* Reads the document of /api (is_core) or /apis: aggregated, which has the resources, or plain, which has the
 * versions to read. VD_BAD_REQUEST: not such a document; VD_TOO_BIG, VD_NOMEM. After an error the table must
 * not be searched. */
VDI_MUST_USE vd_status vdi_kube_names_read_groups(struct vdi_kube_names *names, bool is_core,
						  struct vd_bytes document, struct vd_error *reterr);
/* Reads the document of one version. version is borrowed for the call and may be one of the table's. Errors
 * as before. */
VDI_MUST_USE vd_status vdi_kube_names_read_version(struct vdi_kube_names	 *names,
						   const struct vdi_kube_version *version,
						   struct vd_bytes document, struct vd_error *reterr);
/* Notes that the resources of a version are unknown. VD_NOMEM, VD_TOO_BIG. */
VDI_MUST_USE vd_status vdi_kube_names_miss(struct vdi_kube_names	 *names,
					   const struct vdi_kube_version *version, struct vd_error *reterr);

/* VD_INVALID_ARGUMENT: typed cannot be the name of a resource. */
VDI_MUST_USE vd_status vdi_kube_names_check(const char *typed, struct vd_error *reterr);
/* Finds the resource of a typed name: resource, resource.group or resource.version.group. The resource is
 * compared with plural and singular names, then with short names, then with kinds, without regard to case.
 * The group must be equal, or else begin with the typed one. *ret_name is valid until the table is changed.
 * VD_INVALID_ARGUMENT: not a name. VD_NOT_FOUND; VD_UNAVAILABLE: the name's group is missing. Both messages
 * have the missing groups. */
VDI_MUST_USE vd_status vdi_kube_names_find(const struct vdi_kube_names *names, const char *typed,
					   const struct vdi_kube_name **ret_name, struct vd_error *reterr);

#endif
