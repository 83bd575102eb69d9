/* The kinds that are served: built-in ones, those of a resources file and those of CustomResourceDefinitions.
 *
 * A struct vdi_resource is filled by one owner and does not change any more once it is shared; then it is
 * counted by reference, and any thread may read it. It lives as long as a set, a request or a watch uses it.
 * Strings are literals or its own. A struct vdi_resources is an ordered collection of references.
 */
#ifndef VDI_RESOURCES_H
#define VDI_RESOURCES_H

#include <stdatomic.h>
#include <vedette/cacher.h>

#include "base.h"
#include "validate.h"

struct vdi_kind_cache;
struct vdi_resource_counts;
struct vdi_read_defaults;
struct vdi_schema;

/* How a cell of a table comes about. */
enum vdi_cell {
	VDI_CELL_PATH,	  /* the value at path, as it is */
	VDI_CELL_DEFAULT, /* likewise; absent or empty reads as the text after '|' in path */
	VDI_CELL_COUNT,	  /* number of members at path */
	VDI_CELL_AGE,	  /* time since the timestamp at path */
	/* the value at path as a column of a CustomResourceDefinition shows it: what is of another type is
	 * null */
	VDI_CELL_TYPED,
	VDI_CELL_POD_READY,
	VDI_CELL_POD_STATUS,
	VDI_CELL_POD_RESTARTS,
	VDI_CELL_POD_IP,
	VDI_CELL_POD_READINESS_GATES,
	VDI_CELL_NODE_STATUS,
	VDI_CELL_NODE_ROLES,
	VDI_CELL_NODE_ADDRESS, /* path: the address type */
	VDI_CELL_SERVICE_EXTERNAL_IP,
	VDI_CELL_SERVICE_PORTS,
	VDI_CELL_SELECTOR, /* an object of labels, or a label selector, as k=v,k=v */
	VDI_CELL_ENDPOINTS,
	VDI_CELL_ENDPOINT_SLICE_PORTS,
	VDI_CELL_ENDPOINT_SLICE_ADDRESSES,
	VDI_CELL_READY_OF,   /* path: "a/b": two numbers, absent is 0 */
	VDI_CELL_CONTAINERS, /* path: of the pod template's spec */
	VDI_CELL_IMAGES,
	VDI_CELL_JOB_STATUS,
	VDI_CELL_JOB_COMPLETIONS,
	VDI_CELL_JOB_DURATION,
	VDI_CELL_ACCESS_MODES,
	VDI_CELL_CLAIM,
	VDI_CELL_EVENT_LAST_SEEN,
	VDI_CELL_EVENT_OBJECT,
	VDI_CELL_EVENT_SOURCE,
};

#define VDI_RESOURCE_WORDS_MAX 16   /* short names, categories */
#define VDI_RESOURCE_COLUMNS_MAX 64 /* of a CustomResourceDefinition */

struct vdi_column {
	const char   *name;
	const char   *type;   /* "string", "integer", "number", "boolean", "date" */
	const char   *format; /* "name" for the name column, else "" */
	const char   *description;
	int	      priority; /* > 0: only with -o wide */
	enum vdi_cell cell;
	const char   *path; /* ".spec.replicas" */
};

struct vdi_resource {
	_Atomic uint32_t	    users;
	const char		   *group; /* "" for core */
	const char		   *version;
	const char		   *kind;
	const char		   *list_kind;
	const char		   *plural;
	const char		   *singular;
	const char		   *short_names[VDI_RESOURCE_WORDS_MAX];
	const char		   *categories[VDI_RESOURCE_WORDS_MAX];
	const char		   *key_prefix; /* "/registry/pods/" */
	const struct vd_field_spec *fields;
	size_t			    field_count;
	const char		   *trigger;
	const struct vdi_column
		*columns; /* the name column excluded for custom kinds, included for built-in ones */
	size_t	 column_count;
	int64_t	 history_bytes; /* 0: default */
	int64_t	 ttl_s;		/* of new objects; 0: none */
	enum vdi_name_rule name_rule;
	bool		   namespaced;
	bool	    needs_version; /* a built-in kind whose replacement must name the version it replaces */
	bool	    built_in;	   /* strategic merge patches are understood */
	bool	    has_status;	   /* a status subresource */
	bool	    has_scale;
	bool	    keeps_status;    /* a create may set status (nodes) */
	bool	    has_generation;  /* metadata.generation follows spec */
	const char *initial_phase;   /* status.phase of a new object, or NULL */
	const char *scale_spec_path; /* of a custom kind's scale; NULL: .spec.replicas and its likes */
	const char *scale_status_path;
	const char *scale_selector_path; /* or "" */
	bool	    is_custom;		 /* of a CustomResourceDefinition */
	bool	    is_terminating;	 /* its definition goes: nothing new may come */
	bool	    has_own_frames;	 /* of watches: not to be shared with other resources of its cache */
	bool	    has_own_tables;	 /* likewise */
	const char *api_version;	 /* of a custom kind: "example.com/v1"; NULL: nothing is rewritten */
	const char *stored_api_version;	 /* what its objects are stored as */
	const struct vdi_schema *schema; /* of a custom kind, its own; or NULL: anything goes */
	const char
		*deprecation; /* of a deprecated version: a Warning header line for every answer; or NULL */

	/* of its objects, whatever version they are stored in; a use; NULL: none, or somebody else's
	 * business */
	struct vdi_read_defaults *defaults;

	/* Set by the server; NULL before. */
	struct vdi_kind_cache *cache; /* a use of it; codec and cacher are its */
	void (*cache_unref)(
		struct vdi_kind_cache *cache); /* gives that use back, with the last use of the resource */
	struct vdi_resource_counts *counts;    /* lent: lives as long as the server */
	struct vd_codec		   *codec;
	struct vd_cacher	   *cacher;

	void **owned; /* strings and arrays */
	size_t owned_count;
	size_t owned_capacity;
};

struct vdi_resources {
	struct vdi_resource **items; /* by group, version, then in order of declaration; a use of each */
	size_t		      count;
	size_t		      capacity;
};

/* One without strings, and one use of it. NULL: no memory. */
struct vdi_resource *vdi_resource_new(void);
/* NULL is fine in both; unref returns NULL. The last use frees what the resource owns and gives its cache
 * back. */
struct vdi_resource *vdi_resource_ref(struct vdi_resource *resource);
struct vdi_resource *vdi_resource_unref(struct vdi_resource *resource);
/* Before the resource is shared: memory is freed with it. NULL when there is no memory, for it or for
 * remembering it (then it is freed). */
void *vdi_resource_own(struct vdi_resource *resource, void *memory);

/* Below 0: version a comes first, as the better one (k8s.io/apimachinery pkg/version,
 * CompareKubeAwareVersionStrings). */
int vdi_resource_compare_versions(const char *a, const char *b);

/* Starts with the built-in kinds. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_resources_init(struct vdi_resources *resources);
void		       vdi_resources_fini(struct vdi_resources *resources);

/* Puts it in its place, with a use of its own; its group, version and plural are not there yet. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_resources_add(struct vdi_resources *resources, struct vdi_resource *resource);
/* Another collection of the same resources, into one that holds nothing. VD_NOMEM: it stays so. */
VDI_MUST_USE vd_status vdi_resources_copy(struct vdi_resources *to, const struct vdi_resources *from);

/* Adds the entries of a JSON array (design section 5); the same group and plural replaces. VD_INVALID with
 * the entry and the member at fault; resources is unchanged then. */
VDI_MUST_USE vd_status vdi_resources_load(struct vdi_resources *resources, struct vd_bytes json,
					  struct vd_error *reterr);

/* The keys of what would lie under "/registry/" lie under root instead ("/registry", "cluster-a/registry",
 * "/"); a storagePrefix that leads elsewhere stays. After everything was loaded, once, and before they are
 * shared. VD_INVALID: root is no path, or two kinds would share their keys. VD_NOMEM. After a failure only
 * vdi_resources_fini is of use. */
VDI_MUST_USE vd_status vdi_resources_set_root(struct vdi_resources *resources, const char *root,
					      struct vd_error *reterr);

/* NULL when there is none. */
struct vdi_resource *vdi_resources_find(const struct vdi_resources *resources, struct vd_bytes group,
					struct vd_bytes version, struct vd_bytes plural);
bool		     vdi_resources_has_version(const struct vdi_resources *resources, struct vd_bytes group,
					       struct vd_bytes version);

/* The core kind of namespaces. */
bool vdi_resource_is_namespaces(const struct vdi_resource *resource);

/* "pods", "deployments.apps" */
#define VDI_RESOURCE_NAME_MAX 512
const char *vdi_resource_name(const struct vdi_resource *resource, char buffer[VDI_RESOURCE_NAME_MAX]);
/* "v1", "apps/v1" */
const char *vdi_resource_api_version(const struct vdi_resource *resource, char buffer[VDI_RESOURCE_NAME_MAX]);

/* Makes the resource's codec with these fields, and fills what a cacher of it needs; the rest of options
 * stays. buffer holds the name as long as options are in use. What vd_codec_json_new answers. */
VDI_MUST_USE vd_status vdi_resource_cacher_options(struct vdi_resource	      *resource,
						   const struct vd_field_spec *fields, size_t field_count,
						   char			     buffer[VDI_RESOURCE_NAME_MAX],
						   struct vd_cacher_options *options,
						   struct vd_error	    *reterr);

/* Where the built-in kinds are written down. */
extern const struct vdi_resource vdi_resources_built_in[];
extern const size_t		 vdi_resources_built_in_count;

#endif
