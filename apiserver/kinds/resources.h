/* The kinds that are served: built-in ones, those of a resources file and those of CustomResourceDefinitions.
 *
 * One owner fills a struct vdi_resource; once shared, it is immutable, reference-counted, and readable on any
 * thread. A set of kinds, a request or a watch holds a reference. Its strings are literals or owned by it. A
 * struct vdi_resources is an ordered collection of references.
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

/* The source of the value of a table cell. */
enum vdi_cell {
	VDI_CELL_PATH,	  /* the value at path, unchanged */
	VDI_CELL_DEFAULT, /* the value at path; if absent or empty, the text after '|' in path */
	VDI_CELL_COUNT,	  /* number of members at path */
	VDI_CELL_AGE,	  /* time since the timestamp at path */
	/* the value at path, as a column of a CustomResourceDefinition: null if it has another type */
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
	VDI_CELL_READY_OF,   /* path: "a/b", two numbers; absent is 0 */
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
#define VDI_RESOURCE_COLUMNS_MAX 64 /* for a CustomResourceDefinition */

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
	const struct vdi_column *columns; /* custom kinds: without the name column; built-in kinds: with it */
	size_t			 column_count;
	int64_t			 history_bytes; /* 0: default */
	int64_t			 ttl_s;		/* of new objects; 0: none */
	enum vdi_name_rule	 name_rule;
	bool			 namespaced;
	bool	    needs_version; /* a built-in kind for which an update must have a resourceVersion */
	bool	    built_in;	   /* supports strategic merge patches */
	bool	    has_status;	   /* has a status subresource */
	bool	    has_scale;
	bool	    keeps_status;   /* a create may set status (nodes) */
	bool	    has_generation; /* metadata.generation counts changes of spec */
	const char *initial_phase;  /* status.phase of a new object, or NULL */
	/* of a custom kind's scale subresource; NULL: .spec.replicas etc. of built-in kinds */
	const char *scale_spec_path;
	const char *scale_status_path;
	const char *scale_selector_path; /* or "" */
	bool	    is_custom;		 /* from a CustomResourceDefinition */
	bool	    is_terminating;	 /* its definition is being deleted: creates are rejected */
	bool	    has_own_frames;	 /* watch frames not shared with other resources of its cache */
	bool	    has_own_tables;	 /* as has_own_frames, for Table frames */
	/* of a custom kind: "example.com/v1"; NULL: apiVersion is never rewritten */
	const char		*api_version;
	const char		*stored_api_version; /* apiVersion in the store */
	const struct vdi_schema *schema;	     /* of a custom kind; NULL: objects are not validated */
	const char *deprecation; /* Warning header line in every response of a deprecated version; or NULL */

	/* of its objects, in all stored versions; one reference; NULL: none, or handled elsewhere */
	struct vdi_read_defaults *defaults;

	/* Set by the server; NULL before. */
	struct vdi_kind_cache *cache; /* one reference; owns codec and cacher */
	void (*cache_unref)(
		struct vdi_kind_cache *cache); /* drops that reference, when the resource is freed */
	struct vdi_resource_counts *counts;    /* borrowed: lives as long as the server */
	struct vd_codec		   *codec;
	struct vd_cacher	   *cacher;

	void **owned; /* strings and arrays to free */
	size_t owned_count;
	size_t owned_capacity;
};

struct vdi_resources {
	struct vdi_resource **items; /* by group, version, then in order of declaration; one reference each */
	size_t		      count;
	size_t		      capacity;
};

/* Makes an empty resource with one reference. NULL: out of memory. */
struct vdi_resource *vdi_resource_new(void);
/* NULL is fine in both; unref returns NULL. The last reference frees the resource's memory and drops its
 * cache. */
struct vdi_resource *vdi_resource_ref(struct vdi_resource *resource);
struct vdi_resource *vdi_resource_unref(struct vdi_resource *resource);
/* Makes the resource the owner of memory, which is freed with it. Call before the resource is shared. Returns
 * memory, or NULL if memory is NULL or cannot be registered (then it is freed). */
void *vdi_resource_own(struct vdi_resource *resource, void *memory);

/* Returns less than 0 if version a sorts first, as the better one (k8s.io/apimachinery pkg/version,
 * CompareKubeAwareVersionStrings). */
int vdi_resource_compare_versions(const char *a, const char *b);

/* Fills with the built-in kinds. VD_NOMEM. */
VDI_MUST_USE vd_status vdi_resources_init(struct vdi_resources *resources);
void		       vdi_resources_fini(struct vdi_resources *resources);

/* Inserts resource in order and takes a reference. Its group, version and plural must not exist yet.
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_resources_add(struct vdi_resources *resources, struct vdi_resource *resource);
/* Copies the references into an empty collection. VD_NOMEM: it stays empty. */
VDI_MUST_USE vd_status vdi_resources_copy(struct vdi_resources *to, const struct vdi_resources *from);

/* Adds the entries of a resources file, a JSON array; an entry replaces a kind with the same group and
 * plural. VD_INVALID with the entry and the member at fault; resources is then unchanged. */
VDI_MUST_USE vd_status vdi_resources_load(struct vdi_resources *resources, struct vd_bytes json,
					  struct vd_error *reterr);

/* Replaces the prefix "/registry/" of all keys by root ("/registry", "cluster-a/registry", "/"); a
 * storagePrefix outside "/registry/" stays. Call once, after all kinds were loaded and before they are
 * shared. VD_INVALID: root is not a path, or two kinds would share keys. VD_NOMEM. After an error only
 * vdi_resources_fini may be called. */
VDI_MUST_USE vd_status vdi_resources_set_root(struct vdi_resources *resources, const char *root,
					      struct vd_error *reterr);

/* NULL if there is none. */
struct vdi_resource *vdi_resources_find(const struct vdi_resources *resources, struct vd_bytes group,
					struct vd_bytes version, struct vd_bytes plural);
bool		     vdi_resources_has_version(const struct vdi_resources *resources, struct vd_bytes group,
					       struct vd_bytes version);

/* Returns true for the core kind Namespace. */
bool vdi_resource_is_namespaces(const struct vdi_resource *resource);

/* Writes the qualified name, such as "pods" or "deployments.apps". */
#define VDI_RESOURCE_NAME_MAX 512
const char *vdi_resource_name(const struct vdi_resource *resource, char buffer[VDI_RESOURCE_NAME_MAX]);
/* Writes the apiVersion, such as "v1" or "apps/v1". */
const char *vdi_resource_api_version(const struct vdi_resource *resource, char buffer[VDI_RESOURCE_NAME_MAX]);

/* Makes the resource's codec with these fields and sets the members of options that depend on the resource;
 * the others stay. buffer holds the name while options are in use. Returns the statuses of
 * vd_codec_json_new. */
VDI_MUST_USE vd_status vdi_resource_cacher_options(struct vdi_resource	      *resource,
						   const struct vd_field_spec *fields, size_t field_count,
						   char			     buffer[VDI_RESOURCE_NAME_MAX],
						   struct vd_cacher_options *options,
						   struct vd_error	    *reterr);

/* The built-in kinds (resources_builtin.c). */
extern const struct vdi_resource vdi_resources_built_in[];
extern const size_t		 vdi_resources_built_in_count;

#endif
