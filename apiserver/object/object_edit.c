/* Rules of creation and update, as in k8s.io/apiserver pkg/registry/rest/{create,update,meta}.go and the
 * strategies of the kinds.
 *
 * Everything is done on trees, parsed anew for each attempt: writes are the cold path, and an attempt must
 * not see the changes of an earlier one.
 */
#include "object_edit.h"

#include <stdio.h>

#include "config_data.h"
#include "crd.h"
#include "deletion.h"
#include "field_check.h"
#include "json_number.h"
#include "k8s_time.h"
#include "object_scale.h"
#include "object_schema.h"
#include "omit_empty.h"
#include "strategic_patch.h"
#include "table.h"
#include "tree_patch.h"
#include "validate.h"

#define GENERATED_MAX 63 /* for every kind: k8s.io/apiserver pkg/storage/names */

struct edit_state {
	const struct vdi_edit  *edit;
	struct vdi_edited      *edited;
	struct vdi_tree	       *tree;
	struct vdi_http_status *status;
	struct vd_bytes		current; /* of an update: the present object */
};

static vd_status no_memory(struct edit_state *state)
{
	vdi_http_status_set(state->status, 500, "InternalError", "Internal error occurred: out of memory");
	return VD_NOMEM;
}

static vd_status bad(struct edit_state *state, const char *message)
{
	vdi_http_status_set(state->status, 400, "BadRequest", "%s", message);
	return VD_INVALID;
}

static struct vd_bytes key(const char *text)
{
	return vd_bytes_of(text);
}

static vd_status parse(struct edit_state *state, struct vd_bytes text, struct vdi_node **ret_root)
{
	struct vd_error error;
	vd_status	status = vdi_tree_parse(state->tree, text, ret_root, &error);

	if (status == VD_NOMEM)
		return no_memory(state);
	if (status == VD_OK && (*ret_root)->kind == VDI_NODE_OBJECT)
		return VD_OK;
	vdi_http_status_set(state->status, 400, "BadRequest",
			    "the object provided is unrecognized (must be of type %s): %s",
			    state->edit->resource->kind,
			    status == VD_OK ? "the body must be a JSON object" : error.message);
	return VD_INVALID;
}

/* Upstream stores a custom kind's numbers as Go values, so 1.0 and 1e2 become 1 and 100. Typed readers depend
 * on that: they reject 1.0 for an integer. */
static bool write_whole_numbers(struct vdi_tree *tree, struct vdi_node *node)
{
	char   text[VDI_JSON_WHOLE_SIZE];
	size_t size = node->kind == VDI_NODE_NUMBER ? vdi_json_number_whole(node->text, text) : 0;

	for (struct vdi_node *child = node->first; child; child = child->next)
		if (!write_whole_numbers(tree, child))
			return false;
	return size == 0 || vdi_tree_take_text(tree, (struct vd_bytes) { text, size }, &node->text);
}

/* Changes the sent object as upstream's decoder does. */
static vd_status normalize(struct edit_state *state, struct vdi_node *root)
{
	const struct vdi_resource *resource = state->edit->resource;

	if (state->edit->part == VDI_EDIT_SCALE)
		vdi_omit_empty_metadata(state->tree, root);
	else
		vdi_omit_empty(resource, state->tree, root);
	return resource->built_in || write_whole_numbers(state->tree, root) ? VD_OK : no_memory(state);
}

static vd_status set_text(struct edit_state *state, struct vdi_node *object, const char *name,
			  struct vd_bytes text)
{
	return vdi_tree_set(state->tree, object, key(name), vdi_tree_new_string(state->tree, text)) ?
		       VD_OK :
		       no_memory(state);
}

static struct vd_bytes text_at(struct edit_state *state, const struct vdi_node *object, const char *path)
{
	return vdi_tree_string_of(vdi_tree_find(state->tree, object, path));
}

/* Checks that kind and apiVersion agree with the path, or fills them in. */
static vd_status check_type(struct edit_state *state, struct vdi_node *root, const char *kind,
			    const char *api_version)
{
	struct vd_bytes given_kind = text_at(state, root, "kind"),
			given_version = text_at(state, root, "apiVersion");

	if (given_version.size && !vd_bytes_equal(given_version, key(api_version))) {
		vdi_http_status_set(
			state->status, 400, "BadRequest",
			"the API version in the data (%.*s) does not match the expected API version (%s)",
			(int) VDI_MIN(given_version.size, (size_t) 200), (const char *) given_version.data,
			api_version);
		return VD_INVALID;
	}
	if (given_kind.size && !vd_bytes_equal(given_kind, key(kind))) {
		vdi_http_status_set(state->status, 400, "BadRequest",
				    "%.*s in version \"%s\" cannot be handled as a %s",
				    (int) VDI_MIN(given_kind.size, (size_t) 200),
				    (const char *) given_kind.data, state->edit->resource->version, kind);
		return VD_INVALID;
	}
	/* Upstream's decoder fills them in for Kubernetes' own kinds only. */
	if ((given_kind.size == 0 || given_version.size == 0) && !state->edit->resource->built_in) {
		vdi_http_status_set(state->status, 400, "BadRequest", "Object '%s' is missing in the body",
				    given_kind.size ? "apiVersion" : "Kind");
		return VD_INVALID;
	}
	if (given_version.size == 0)
		VDI_TRY(set_text(state, root, "apiVersion", key(api_version)));
	return given_kind.size ? VD_OK : set_text(state, root, "kind", key(kind));
}

static vd_status check_namespace(struct edit_state *state, struct vdi_node *metadata)
{
	struct vd_bytes given = text_at(state, metadata, "namespace");

	if (!state->edit->resource->namespaced) {
		(void) vdi_tree_remove(state->tree, metadata, key("namespace"));
		return VD_OK;
	}
	if (given.size && !vd_bytes_equal(given, state->edit->namespace_name))
		return bad(state, "the namespace of the provided object does not match the namespace sent on "
				  "the request");
	return given.size ? VD_OK : set_text(state, metadata, "namespace", state->edit->namespace_name);
}

static vd_status wrong_type(struct edit_state *state, const char *field, const char *wanted)
{
	vdi_http_status_set(
		state->status, 400, "BadRequest",
		"the object provided is unrecognized (must be of type %s): metadata.%s must be %s",
		state->edit->resource->kind, field, wanted);
	return VD_INVALID;
}

static bool all_strings(const struct vdi_node *node, enum vdi_node_kind kind)
{
	if (node == NULL || node->kind == VDI_NODE_NULL)
		return true;
	if (node->kind != kind)
		return false;
	for (const struct vdi_node *child = node->first; child; child = child->next)
		if (child->kind != VDI_NODE_STRING)
			return false;
	return true;
}

/* Replaces null by an empty string in a list of strings, as Go's decoder does, also for custom kinds'
 * metadata (apiextensions-apiserver pkg/apiserver/schema/objectmeta/coerce.go). */
static void fill_nulls(struct vdi_node *list)
{
	for (struct vdi_node *item = list ? list->first : NULL; item; item = item->next)
		if (item->kind == VDI_NODE_NULL) {
			item->kind = VDI_NODE_STRING;
			item->text = key("");
		}
}

/* Refuses metadata that a typed decoder would refuse. */
static vd_status check_types(struct edit_state *state, const struct vdi_node *metadata)
{
	static const char *const texts[] = { "name", "generateName", "namespace", "uid", "resourceVersion" };
	static const char *const maps[] = { "labels", "annotations" };
	struct vd_error		 error = { 0 };
	vd_status		 status;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(maps); i++)
		fill_nulls(vdi_tree_get(state->tree, metadata, key(maps[i])));
	fill_nulls(vdi_tree_get(state->tree, metadata, key("finalizers")));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(texts); i++) {
		const struct vdi_node *node = vdi_tree_get(state->tree, metadata, key(texts[i]));

		if (node && node->kind != VDI_NODE_STRING && node->kind != VDI_NODE_NULL)
			return wrong_type(state, texts[i], "a string");
	}
	for (size_t i = 0; i < VDI_ARRAY_SIZE(maps); i++)
		if (!all_strings(vdi_tree_get(state->tree, metadata, key(maps[i])), VDI_NODE_OBJECT))
			return wrong_type(state, maps[i], "a map of strings");
	if (!all_strings(vdi_tree_get(state->tree, metadata, key("finalizers")), VDI_NODE_ARRAY))
		return wrong_type(state, "finalizers", "a list of strings");
	status = vdi_tree_is(metadata, VDI_NODE_OBJECT) ? vdi_field_check_metadata(metadata, &error) : VD_OK;
	if (status == VD_NOMEM)
		return no_memory(state);
	if (status != VD_OK)
		vdi_http_status_set(state->status, 400, "BadRequest",
				    "%s in version \"%s\" cannot be handled as a %s: %s",
				    state->edit->resource->kind, state->edit->resource->version,
				    state->edit->resource->kind, error.message);
	return status == VD_OK ? VD_OK : VD_INVALID;
}

/* Returns the metadata; it and root are objects afterwards. */
static vd_status take_metadata(struct edit_state *state, struct vdi_node *root,
			       struct vdi_node **ret_metadata)
{
	struct vdi_node *metadata = vdi_tree_get(state->tree, root, key("metadata"));

	if (metadata && metadata->kind != VDI_NODE_OBJECT && metadata->kind != VDI_NODE_NULL)
		return bad(state, "metadata must be an object");
	VDI_TRY(check_types(state, metadata));
	*ret_metadata = vdi_tree_object_at(state->tree, root, "metadata");
	return *ret_metadata ? VD_OK : no_memory(state);
}

/* Checks that the Job's name is a valid label value, because the Job controller labels pods with it. */
static void check_job(struct edit_state *state, const struct vdi_node *root,
		      struct vdi_field_errors *field_errors)
{
	const struct vdi_resource *resource = state->edit->resource;

	if (!resource->built_in || strcmp(resource->plural, "jobs") != 0 ||
	    vdi_tree_is(vdi_tree_find(state->tree, root, "spec.manualSelector"), VDI_NODE_TRUE))
		return;
	for (int i = 0; i < 2; i++) /* job-name, batch.kubernetes.io/job-name */
		vdi_validate_label_of(field_errors, "spec.template.labels",
				      text_at(state, root, "metadata.name"));
}

static vd_status validate_config_data(struct edit_state *state, const struct vdi_node *root,
				      const struct vdi_node *old_root, struct vdi_field_errors *field_errors)
{
	const struct vdi_resource *resource = state->edit->resource;
	struct vdi_node		  *old = old_root ? vdi_tree_copy(state->tree, old_root) : NULL;

	if ((old_root && old == NULL) ||
	    (old && vdi_config_data_prepare(resource, state->tree, old) != VD_OK) ||
	    vdi_config_data_validate(resource, state->tree, root, old, field_errors) != VD_OK)
		return no_memory(state);
	return VD_OK;
}

/* old_root: NULL on create. */
static vd_status validate(struct edit_state *state, const struct vdi_node *root,
			  const struct vdi_node *old_root)
{
	const struct vdi_resource *resource = state->edit->resource;
	struct vdi_field_errors	  *field_errors = &state->edited->field_errors;

	vdi_field_errors_reset(field_errors);
	vdi_validate_metadata(state->tree, root, resource->name_rule, field_errors);
	if (old_root)
		vdi_deletion_validate_update(state->tree, vdi_tree_get(state->tree, root, key("metadata")),
					     vdi_tree_get(state->tree, old_root, key("metadata")),
					     field_errors);
	else
		check_job(state, root, field_errors);
	if (vdi_config_data_is(resource))
		VDI_TRY(validate_config_data(state, root, old_root, field_errors));
	if (field_errors->count == 0)
		return VD_OK;
	return vdi_field_errors_refuse(field_errors, state->status, resource->group, resource->kind,
				       text_at(state, root, "metadata.name"));
}

/* Sets the version in which objects of a kind with several versions are stored. */
static vd_status set_stored_version(struct edit_state *state, struct vdi_node *root)
{
	const struct vdi_resource *resource = state->edit->resource;

	return resource->stored_api_version ?
		       set_text(state, root, "apiVersion", key(resource->stored_api_version)) :
		       VD_OK;
}

/* Checks the rules that only a CustomResourceDefinition has. old: the object that it replaces, or NULL. */
static vd_status check_definition(struct edit_state *state, struct vdi_node *root, const struct vdi_node *old)
{
	struct vdi_field_errors *field_errors = &state->edited->field_errors;

	if (!vdi_crd_is(state->edit->resource))
		return VD_OK;
	vdi_field_errors_reset(field_errors);
	if (vdi_crd_prepare(state->tree, root, old) != VD_OK ||
	    vdi_crd_validate(state->tree, root, old, field_errors, &state->edited->rule_count) != VD_OK)
		return no_memory(state);
	if (field_errors->count == 0)
		return VD_OK;
	return vdi_field_errors_refuse(field_errors, state->status, state->edit->resource->group,
				       state->edit->resource->kind, text_at(state, root, "metadata.name"));
}

/* ---- Create ---- */

static vd_status choose_name(struct edit_state *state, struct vdi_node *metadata, struct vdi_edited *edited)
{
	static const char letters[] = "bcdfghjklmnpqrstvwxz2456789";
	struct vd_bytes	  name = text_at(state, metadata, "name"),
			base = text_at(state, metadata, "generateName");
	uint64_t random = state->edit->random[2];
	int	 size;

	edited->generated = name.size == 0 && base.size > 0;
	if (!edited->generated) {
		size = (int) VDI_MIN(name.size, sizeof edited->name - 1);
		(void) snprintf(edited->name, sizeof edited->name, "%.*s", size,
				name.size ? (const char *) name.data : "");
		return VD_OK;
	}
	size = snprintf(edited->name, sizeof edited->name, "%.*s",
			(int) VDI_MIN(base.size, (size_t) GENERATED_MAX - 5), (const char *) base.data);
	for (int i = 0; i < 5; i++, random /= sizeof letters - 1)
		edited->name[size++] = letters[random % (sizeof letters - 1)];
	edited->name[size] = 0;
	return set_text(state, metadata, "name", key(edited->name));
}

static vd_status set_system_fields(struct edit_state *state, struct vdi_node *metadata)
{
	static const char *const cleared[] = { "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink",
					       "generation", "managedFields" };
	uint64_t		 a = state->edit->random[0], b = state->edit->random[1];
	char			 uid[40], now[VDI_K8S_TIME_SIZE];
	struct vd_bytes		 revision = text_at(state, metadata, "resourceVersion");

	for (size_t i = 0; i < VDI_ARRAY_SIZE(cleared); i++)
		(void) vdi_tree_remove(state->tree, metadata, key(cleared[i]));
	if (vd_bytes_equal(revision, key("0"))) /* an empty one is omitted before */
		(void) vdi_tree_remove(state->tree, metadata, key("resourceVersion"));
	a = (a & ~(uint64_t) 0xF000) | 0x4000; /* version 4, variant 1 */
	b = (b & 0x3FFFFFFFFFFFFFFF) | 0x8000000000000000;
	(void) snprintf(uid, sizeof uid, "%08x-%04x-%04x-%04x-%012llx", (unsigned) (a >> 32),
			(unsigned) (a >> 16 & 0xFFFF), (unsigned) (a & 0xFFFF), (unsigned) (b >> 48),
			(unsigned long long) (b & 0xFFFFFFFFFFFF));
	vdi_k8s_time_format(state->edit->now, now);
	VDI_TRY(set_text(state, metadata, "uid", key(uid)));
	VDI_TRY(set_text(state, metadata, "creationTimestamp", key(now)));
	if (state->edit->resource->has_generation &&
	    !vdi_tree_set(state->tree, metadata, key("generation"), vdi_tree_new_int(state->tree, 1)))
		return no_memory(state);
	return VD_OK;
}

/* Adds the namespace controller's finalizer (kubernetes pkg/registry/core/namespace/strategy.go). */
static vd_status hold_namespace(struct edit_state *state, struct vdi_node *root)
{
	struct vdi_node *spec = vdi_tree_object_at(state->tree, root, "spec");
	struct vdi_node *list = vdi_tree_get(state->tree, spec, key("finalizers"));
	struct vdi_node *item;

	if (spec == NULL)
		return no_memory(state);
	if (vdi_deletion_has(list, key("kubernetes")))
		return VD_OK;
	list = vdi_tree_array_at(state->tree, spec, "finalizers");
	item = vdi_tree_new_string(state->tree, key("kubernetes"));
	if (list == NULL || item == NULL)
		return no_memory(state);
	vdi_tree_append(list, item);
	return VD_OK;
}

static vd_status label_namespace(struct edit_state *state, struct vdi_node *metadata)
{
	struct vd_bytes	 name = text_at(state, metadata, "name");
	struct vdi_node *labels = name.size ? vdi_tree_object_at(state->tree, metadata, "labels") : NULL;

	if (name.size == 0)
		return VD_OK;
	return labels ? set_text(state, labels, "kubernetes.io/metadata.name", name) : no_memory(state);
}

/* Sets the initial phase of a valid new object, and the label and the finalizer of a namespace. */
static vd_status begin_life(struct edit_state *state, struct vdi_node *root, struct vdi_node *metadata)
{
	const struct vdi_resource *resource = state->edit->resource;
	struct vdi_node		  *object;

	if (resource->initial_phase) {
		object = vdi_tree_object_at(state->tree, root, "status");
		if (object == NULL)
			return no_memory(state);
		if (text_at(state, object, "phase").size == 0)
			VDI_TRY(set_text(state, object, "phase", key(resource->initial_phase)));
	}
	if (!resource->built_in || !vdi_resource_is_namespaces(resource))
		return VD_OK;
	VDI_TRY(label_namespace(state, metadata));
	return hold_namespace(state, root);
}

/* Sets the defaults that Go's decoder sets at each write. */
static vd_status set_defaults(struct edit_state *state, struct vdi_node *root, struct vdi_node *metadata)
{
	const struct vdi_resource *resource = state->edit->resource;
	struct vdi_node		  *spec = vdi_tree_get(state->tree, root, key("spec")), *replicas;

	if (!resource->built_in)
		return VD_OK;
	if (vdi_config_data_prepare(resource, state->tree, root) != VD_OK)
		return no_memory(state);
	if (vdi_resource_is_namespaces(resource)) /* Go's decoder runs before a name is generated */
		return state->edited->generated ? VD_OK : label_namespace(state, metadata);
	if (!vdi_tree_is(spec, VDI_NODE_OBJECT))
		return VD_OK;
	if (strcmp(resource->plural, "services") == 0 && text_at(state, spec, "type").size == 0)
		return set_text(state, spec, "type", key("ClusterIP"));
	replicas = vdi_tree_get(state->tree, spec, key("replicas"));
	if (resource->has_scale && (replicas == NULL || replicas->kind == VDI_NODE_NULL) &&
	    !vdi_tree_set(state->tree, spec, key("replicas"), vdi_tree_new_int(state->tree, 1)))
		return no_memory(state);
	return VD_OK;
}

static vd_status create(struct edit_state *state, struct vdi_edited *edited)
{
	const struct vdi_resource *resource = state->edit->resource;
	char			   version[VDI_RESOURCE_NAME_MAX];
	struct vdi_node		  *root, *metadata;

	VDI_TRY(parse(state, state->edit->body, &root));
	VDI_TRY(normalize(state, root));
	VDI_TRY(check_type(state, root, resource->kind, vdi_resource_api_version(resource, version)));
	VDI_TRY(vdi_object_conform_written(state->edit, state->tree, root, VD_BYTES_NONE, edited,
					   state->status));
	VDI_TRY(take_metadata(state, root, &metadata));
	VDI_TRY(check_namespace(state, metadata));
	VDI_TRY(choose_name(state, metadata, edited));
	VDI_TRY(set_defaults(state, root, metadata));
	VDI_TRY(validate(state, root, NULL));
	VDI_TRY(set_system_fields(state, metadata));
	if (resource->has_status && !resource->keeps_status)
		(void) vdi_tree_remove(state->tree, root, key("status"));
	VDI_TRY(begin_life(state, root, metadata));
	VDI_TRY(vdi_object_obey(state->edit, state->tree, root, NULL, edited, state->status));
	VDI_TRY(check_definition(state, root, NULL));
	VDI_TRY(set_stored_version(state, root));
	vdi_tree_write(&edited->text, root);
	return edited->text.failed ? no_memory(state) : VD_OK;
}

vd_status vdi_edit_create(const struct vdi_edit *edit, struct vdi_edited *edited,
			  struct vdi_http_status *status)
{
	struct vdi_tree	  tree = VDI_TREE_INIT;
	struct edit_state state = { edit, edited, &tree, status, VD_BYTES_NONE };
	vd_status	  result;

	vdi_out_reset(&edited->text);
	status->code = 0;
	result = create(&state, edited);
	vdi_tree_fini(&tree);
	return result;
}

/* ---- Update ---- */

static vd_status conflict(struct edit_state *state, const char *why)
{
	vdi_http_status_conflict(state->status, state->edit->resource->group, state->edit->resource->plural,
				 state->edit->name, why);
	return VD_INVALID;
}

static vd_status patch_fault(struct edit_state *state, vd_status status, const struct vd_error *error)
{
	switch (status) {
	case VD_OK: return VD_OK;
	case VD_NOMEM: return no_memory(state);
	case VD_TOO_BIG:
		vdi_http_status_set(state->status, 413, "RequestEntityTooLarge", "%s", error->message);
		break;
	case VD_INVALID:
		vdi_http_status_set(state->status, 422, "Invalid",
				    "the server rejected our request due to an error in our request: %s",
				    error->message);
		break;
	default:
		vdi_http_status_set(state->status, 400, "BadRequest", "error decoding patch: %s",
				    error->message);
	}
	return VD_INVALID;
}

/* Returns the object (or its Scale) that the client requests: its body, or the present text with its patch
 * applied. */
static vd_status wanted(struct edit_state *state, struct vd_bytes present, struct vdi_node **ret_root)
{
	struct vd_error	 error;
	struct vdi_node *patch;
	vd_status	 status;

	if (state->edit->patch == VDI_PATCH_NONE) {
		VDI_TRY(parse(state, state->edit->body, ret_root));
		return normalize(state, *ret_root);
	}
	VDI_TRY(parse(state, present, ret_root));
	status = vdi_tree_parse(state->tree, state->edit->body, &patch, &error);
	if (status == VD_OK && state->edit->patch == VDI_PATCH_OPERATIONS)
		status = vdi_patch_operations(state->tree, ret_root, patch, &error);
	else if (status == VD_OK && patch->kind != VDI_NODE_OBJECT)
		status = vd_error_set(&error, VD_BAD_REQUEST, "the patch must be a JSON object");
	else if (status == VD_OK && state->edit->patch == VDI_PATCH_MERGE)
		status = vdi_patch_merge(state->tree, ret_root, patch, &error);
	else if (status == VD_OK)
		status = vdi_patch_strategic(state->tree, *ret_root, patch, &error);
	VDI_TRY(patch_fault(state, status, &error));
	return (*ret_root)->kind == VDI_NODE_OBJECT ? normalize(state, *ret_root) :
						      bad(state, "the patched object is not an object");
}

/* Upstream allows writes without a resourceVersion for Kubernetes' own kinds, but not for custom ones and
 * definitions (AllowUnconditionalUpdate). */
static vd_status check_condition(struct edit_state *state, struct vd_bytes revision)
{
	const struct vdi_resource *resource = state->edit->resource;

	if ((resource->built_in && !resource->needs_version && !vdi_crd_is(resource)) ||
	    (revision.size && !vd_bytes_equal(revision, key("0"))))
		return VD_OK;
	vdi_http_status_set(state->status, 422, "Invalid", "%s", "");
	vdi_http_status_cause(state->status, "FieldValueInvalid", "metadata.resourceVersion",
			      "Invalid value: 0: must be specified for an update");
	vdi_http_status_invalid(state->status, resource->group, resource->plural, state->edit->name);
	return VD_INVALID;
}

/* Compares name, version and uid of the sent object with those of the present one. */
static vd_status check_identity(struct edit_state *state, const struct vdi_node *metadata,
				const struct vdi_node *old_metadata)
{
	struct vd_bytes name = text_at(state, metadata, "name"), uid = text_at(state, metadata, "uid");
	struct vd_bytes revision = text_at(state, metadata, "resourceVersion");
	struct vd_bytes old_uid = text_at(state, old_metadata, "uid");

	if (name.size == 0) {
		vdi_http_status_set(state->status, 400, "BadRequest",
				    "the name of the object (%.*s based on URL) was undeterminable: name "
				    "must be provided",
				    (int) state->edit->name.size, (const char *) state->edit->name.data);
		return VD_INVALID;
	}
	if (!vd_bytes_equal(name, state->edit->name)) {
		vdi_http_status_set(state->status, 400, "BadRequest",
				    "the name of the object (%.*s) does not match the name on the URL (%.*s)",
				    (int) VDI_MIN(name.size, (size_t) 253), (const char *) name.data,
				    (int) state->edit->name.size, (const char *) state->edit->name.data);
		return VD_INVALID;
	}
	if (uid.size && !vd_bytes_equal(uid, old_uid)) {
		char why[256];

		(void) snprintf(why, sizeof why,
				"Precondition failed: UID in precondition: %.*s, UID in object meta: %.*s",
				(int) VDI_MIN(uid.size, (size_t) 64), (const char *) uid.data,
				(int) VDI_MIN(old_uid.size, (size_t) 64),
				old_uid.size ? (const char *) old_uid.data : "");
		return conflict(state, why);
	}
	if (state->edit->part != VDI_EDIT_SCALE)
		VDI_TRY(check_condition(state, revision));
	if (revision.size && !vd_bytes_equal(revision, key("0")) &&
	    !vd_bytes_equal(revision, text_at(state, old_metadata, "resourceVersion")))
		return conflict(state, "the object has been modified; please apply your changes to the "
				       "latest version and try again");
	return VD_OK;
}

/* Copies the member from the present object, or removes it if absent there. */
static vd_status keep(struct edit_state *state, struct vdi_node *object, const struct vdi_node *old_object,
		      const char *name)
{
	const struct vdi_node *old = vdi_tree_get(state->tree, old_object, key(name));

	if (old == NULL) {
		(void) vdi_tree_remove(state->tree, object, key(name));
		return VD_OK;
	}
	return vdi_tree_set(state->tree, object, key(name), vdi_tree_copy(state->tree, old)) ?
		       VD_OK :
		       no_memory(state);
}

static vd_status follow_generation(struct edit_state *state, struct vdi_node *root, struct vdi_node *metadata,
				   const struct vdi_node *old_root, const struct vdi_node *old_metadata)
{
	int64_t generation = vdi_tree_int_of(vdi_tree_get(state->tree, old_metadata, key("generation")), 0);

	VDI_TRY(keep(state, metadata, old_metadata, "generation"));
	if (!state->edit->resource->has_generation ||
	    vdi_omit_same_content(state->edit->resource, state->tree, root, old_root))
		return VD_OK;
	return vdi_tree_set(state->tree, metadata, key("generation"),
			    vdi_tree_new_int(state->tree, generation + 1)) ?
		       VD_OK :
		       no_memory(state);
}

/* Keeps spec.finalizers, which only /finalize may change. */
static vd_status keep_spec_finalizers(struct edit_state *state, struct vdi_node *root,
				      const struct vdi_node *old_root)
{
	const struct vdi_node *old_spec = vdi_tree_get(state->tree, old_root, key("spec"));
	struct vdi_node	      *spec = vdi_tree_get(state->tree, root, key("spec"));

	if (!vdi_tree_is(spec, VDI_NODE_OBJECT) &&
	    vdi_tree_get(state->tree, old_spec, key("finalizers")) == NULL)
		return VD_OK;
	spec = vdi_tree_object_at(state->tree, root, "spec");
	return spec ? keep(state, spec, old_spec, "finalizers") : no_memory(state);
}

/* Checks that each finalizer of a namespace is qualified: kubernetes/pkg/apis/core/validation,
 * ValidateFinalizerName. */
static vd_status check_spec_finalizers(struct edit_state *state, const struct vdi_node *root)
{
	const struct vdi_node *finalizers = vdi_tree_find(state->tree, root, "spec.finalizers");
	const char	      *why;
	int		       at = 0;

	if (state->edit->part != VDI_EDIT_FINALIZE || finalizers == NULL || finalizers->kind == VDI_NODE_NULL)
		return VD_OK;
	if (!all_strings(finalizers, VDI_NODE_ARRAY)) {
		vdi_http_status_set(state->status, 400, "BadRequest",
				    "%s in version \"%s\" cannot be handled as a %s: spec.finalizers must be "
				    "a list of strings",
				    state->edit->resource->kind, state->edit->resource->version,
				    state->edit->resource->kind);
		return VD_INVALID;
	}
	vdi_http_status_set(state->status, 422, "Invalid", "%s", "");
	for (const struct vdi_node *finalizer = finalizers->first; finalizer;
	     finalizer = finalizer->next, at++) {
		char field[32];

		if ((why = vdi_validate_finalizer(finalizer->text)) == NULL)
			continue;
		(void) snprintf(field, sizeof field, "spec.finalizers[%d]", at);
		vdi_http_status_cause(state->status, "FieldValueInvalid", field,
				      "Invalid value: \"%.*s\": %s",
				      (int) VDI_MIN(finalizer->text.size, (size_t) 80),
				      finalizer->text.size ? (const char *) finalizer->text.data : "", why);
	}
	if (state->status->cause_count == 0) {
		state->status->code = 0;
		return VD_OK;
	}
	vdi_http_status_invalid(state->status, state->edit->resource->group, state->edit->resource->kind,
				state->edit->name);
	return VD_INVALID;
}

static vd_status replace_whole(struct edit_state *state, struct vdi_node *root,
			       const struct vdi_node *old_root)
{
	static const char *const kept[] = { "uid", "creationTimestamp", "deletionTimestamp",
					    "deletionGracePeriodSeconds" };
	const struct vdi_node	*old_metadata = vdi_tree_get(state->tree, old_root, key("metadata"));
	char			 version[VDI_RESOURCE_NAME_MAX];
	struct vdi_node		*metadata;

	VDI_TRY(check_type(state, root, state->edit->resource->kind,
			   vdi_resource_api_version(state->edit->resource, version)));
	VDI_TRY(vdi_object_conform_written(state->edit, state->tree, root, state->current, state->edited,
					   state->status));
	VDI_TRY(take_metadata(state, root, &metadata));
	VDI_TRY(check_namespace(state, metadata));
	VDI_TRY(check_identity(state, metadata, old_metadata));
	VDI_TRY(check_spec_finalizers(state, root));
	VDI_TRY(set_defaults(state, root, metadata));
	VDI_TRY(validate(state, root, old_root));
	for (size_t i = 0; i < VDI_ARRAY_SIZE(kept); i++)
		VDI_TRY(keep(state, metadata, old_metadata, kept[i]));
	(void) vdi_tree_remove(state->tree, metadata, key("selfLink"));
	if (vdi_resource_is_namespaces(state->edit->resource) && state->edit->part == VDI_EDIT_WHOLE)
		VDI_TRY(keep_spec_finalizers(state, root, old_root));
	if (state->edit->resource->has_status)
		VDI_TRY(keep(state, root, old_root, "status"));
	VDI_TRY(check_definition(state, root, old_root));
	return follow_generation(state, root, metadata, old_root, old_metadata);
}

/* Takes only the status from the sent object. */
static vd_status replace_status(struct edit_state *state, struct vdi_node *sent, struct vdi_node *target)
{
	char		 version[VDI_RESOURCE_NAME_MAX];
	struct vdi_node *metadata;

	VDI_TRY(check_type(state, sent, state->edit->resource->kind,
			   vdi_resource_api_version(state->edit->resource, version)));
	VDI_TRY(take_metadata(state, sent, &metadata));
	VDI_TRY(check_identity(state, metadata, vdi_tree_get(state->tree, target, key("metadata"))));
	return keep(state, target, sent, "status");
}

static vd_status replace_scale(struct edit_state *state, struct vdi_node *sent, struct vdi_node *target,
			       const struct vdi_node *old_root)
{
	struct vdi_node *replicas, *metadata;

	VDI_TRY(take_metadata(state, sent, &metadata));
	VDI_TRY(check_identity(state, metadata, vdi_tree_get(state->tree, target, key("metadata"))));
	VDI_TRY(vdi_scale_check(state->tree, sent, state->edit->name, state->status, &replicas));
	if (!vdi_scale_set(state->tree, target, state->edit->resource, replicas))
		return no_memory(state);
	metadata = vdi_tree_get(state->tree, target, key("metadata"));
	return follow_generation(state, target, metadata, old_root,
				 vdi_tree_get(state->tree, old_root, key("metadata")));
}

/* Parses the present object and applies the present defaults of its schema, as upstream does when it reads
 * from its store. */
static vd_status present(struct edit_state *state, struct vd_bytes current, struct vdi_node **ret_root)
{
	VDI_TRY(parse(state, current, ret_root));
	return vdi_object_conform(state->edit->resource->schema, state->tree, *ret_root, NULL, state->status);
}

static vd_status apply(struct edit_state *state, struct vd_bytes current, const struct vdi_node *old_root,
		       struct vdi_node **ret_root)
{
	struct vdi_out	*scale;
	struct vdi_node *sent;
	vd_status	 status;

	switch (state->edit->part) {
	case VDI_EDIT_WHOLE:
	case VDI_EDIT_FINALIZE:
		VDI_TRY(wanted(state, current, ret_root));
		return replace_whole(state, *ret_root, old_root);
	case VDI_EDIT_STATUS:
		VDI_TRY(wanted(state, current, &sent));
		VDI_TRY(vdi_object_conform_written(state->edit, state->tree, sent, state->current,
						   state->edited, state->status));
		VDI_TRY(present(state, current, ret_root));
		return replace_status(state, sent, *ret_root);
	case VDI_EDIT_SCALE: break;
	}
	/* The tree points into the Scale's text, so that must stay until this function returns. */
	scale = &(struct vdi_out) VDI_OUT_INIT;
	vdi_scale_write(state->tree, old_root, state->edit->resource, scale);
	status = scale->failed ? no_memory(state) : wanted(state, vdi_out_slice(scale), &sent);
	if (status == VD_OK)
		status = present(state, current, ret_root);
	if (status == VD_OK)
		status = replace_scale(state, sent, *ret_root, old_root);
	vdi_out_fini(scale);
	return status;
}

static vd_status update(struct edit_state *state, struct vd_bytes current, struct vdi_edited *edited)
{
	struct vdi_node *root, *old_root, *stored_root, *metadata;

	VDI_TRY(present(state, current, &old_root));
	VDI_TRY(apply(state, current, old_root, &root));
	VDI_TRY(vdi_object_obey(state->edit, state->tree, root, old_root, edited, state->status));
	metadata = vdi_tree_get(state->tree, root, key("metadata"));
	(void) vdi_tree_remove(state->tree, metadata, key("resourceVersion"));
	(void) vdi_tree_remove(state->tree, vdi_tree_get(state->tree, old_root, key("metadata")),
			       key("resourceVersion"));
	edited->unchanged = vdi_omit_same(state->edit->resource, state->tree, root, old_root);
	if (edited->unchanged && state->edit->resource->schema) { /* the stored text may lack the defaults */
		VDI_TRY(parse(state, current, &stored_root));
		(void) vdi_tree_remove(state->tree, vdi_tree_get(state->tree, stored_root, key("metadata")),
				       key("resourceVersion"));
		edited->unchanged = vdi_omit_same(state->edit->resource, state->tree, root, stored_root);
	}
	edited->finished = vdi_deletion_is_over(state->edit->resource, state->tree, root, old_root);
	VDI_TRY(set_stored_version(state, root));
	vdi_tree_write(&edited->text, root);
	return edited->text.failed ? no_memory(state) : VD_OK;
}

vd_status vdi_edit_update(const struct vdi_edit *edit, struct vd_bytes current, struct vdi_edited *edited,
			  struct vdi_http_status *status)
{
	struct vdi_tree	  tree = VDI_TREE_INIT;
	struct edit_state state = { edit, edited, &tree, status, current };
	vd_status	  result;

	vdi_out_reset(&edited->text);
	status->code = 0;
	result = update(&state, current, edited);
	vdi_tree_fini(&tree);
	return result;
}

void vdi_edited_fini(struct vdi_edited *edited)
{
	vdi_out_fini(&edited->text);
	vdi_field_errors_fini(&edited->field_errors);
	vdi_unknown_fields_fini(&edited->unknown);
}
