/* Objects are scanned, not parsed into a tree (lib/json/json_scan.h), and their bytes are kept, so that the
 * same object has the same bytes from every source. */
#include "kube_object.h"

#include <inttypes.h>
#include <stdio.h>

#include "json_text.h"
#include "tree.h"

static const struct vd_bytes	    finalizers_of_spec = { "spec.finalizers", 15 };
static const struct vdi_json_limits limits = { VDI_KUBE_OBJECT_SIZE_MAX, VDI_JSON_DEPTH_MAX };

static vd_status scan_init(struct vdi_json_plan **plan, struct vdi_json_object *scan,
			   const struct vd_bytes *paths, size_t count)
{
	vd_status status;

	VDI_TRY(vdi_json_plan_new(paths, count, plan, NULL));
	status = vdi_json_object_init(scan, *plan);
	if (status != VD_OK)
		*plan = vdi_json_plan_free(*plan);
	return status;
}

static void scan_fini(struct vdi_json_plan **plan, struct vdi_json_object *scan)
{
	vdi_json_object_fini(scan);
	*plan = vdi_json_plan_free(*plan);
}

/* Parses a revision; "" and "0" are 0. */
static bool read_revision(struct vd_bytes text, vd_rev *ret_revision)
{
	vd_rev revision = 0;

	if (text.size > 18)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		char digit = ((const char *) text.data)[i];

		if (digit < '0' || digit > '9')
			return false;
		revision = revision * 10 + (digit - '0');
	}
	*ret_revision = revision;
	return true;
}

/* ---- Objects ---- */

vd_status vdi_kube_reader_init(struct vdi_kube_reader *reader)
{
	memset(reader, 0, sizeof *reader);
	vdi_buffer_init(&reader->value, VDI_KUBE_OBJECT_SIZE_MAX + 1024);
	return scan_init(&reader->plan, &reader->scan, &finalizers_of_spec, 1);
}

void vdi_kube_reader_fini(struct vdi_kube_reader *reader)
{
	scan_fini(&reader->plan, &reader->scan);
	vdi_buffer_fini(&reader->value);
}

static bool text_of(const struct vdi_kube_reader *reader, struct vd_bytes json, enum vdi_json_member member,
		    struct vd_bytes *ret_text)
{
	const struct vdi_json_value *value = vdi_json_member(&reader->scan, member);

	*ret_text = VD_BYTES_NONE;
	if (value->type == VDI_JSON_ABSENT || value->type == VDI_JSON_NULL)
		return true;
	if (value->type != VDI_JSON_STRING || value->escaped)
		return false;
	*ret_text = vdi_json_value_bytes(json, value);
	return true;
}

static void append_member(struct vdi_buffer *out, const char *name, const char *text)
{
	vdi_buffer_printf(out, "\"%s\":", name);
	vdi_buffer_append_json_string(out, vd_bytes_of(text));
	vdi_buffer_append_char(out, ',');
}

static bool is_empty(struct vd_bytes json, const struct vdi_json_value *value)
{
	struct vd_bytes text = vdi_json_value_bytes(json, value);

	if (value->type != VDI_JSON_ARRAY)
		return true;
	for (size_t i = 1; i + 1 < text.size; i++)
		if (strchr(" \t\r\n", ((const char *) text.data)[i]) == NULL)
			return false;
	return true;
}

static bool is_held(const struct vdi_kube_reader *reader, struct vd_bytes json)
{
	const struct vdi_json_value *grace =
		vdi_json_member(&reader->scan, VDI_JSON_DELETION_GRACE_PERIOD_SECONDS);

	return (grace->type == VDI_JSON_NUMBER &&
		!vd_bytes_equal(vdi_json_value_bytes(json, grace), vd_bytes_of("0"))) ||
	       !is_empty(json, vdi_json_member(&reader->scan, VDI_JSON_FINALIZERS)) ||
	       !is_empty(json, vdi_json_field(&reader->scan, 0));
}

/* Returns the object without resourceVersion and white space. */
static vd_status make_value(struct vdi_kube_reader *reader, struct vd_bytes json, const char *kind,
			    const char *api_version, struct vd_bytes *ret_value)
{
	struct vdi_buffer    *out = &reader->value;
	struct vdi_json_slice cut = reader->scan.resource_version_member;
	const char	     *text = json.data;
	size_t		      brace = 0, size;

	while (text[brace] != '{')
		brace++;
	vdi_buffer_clear(out);
	vdi_buffer_append_char(out, '{');
	if (kind)
		append_member(out, "kind", kind);
	if (api_version)
		append_member(out, "apiVersion", api_version);
	if (cut.length == 0)
		cut.offset = (uint32_t) json.size;
	vdi_buffer_append(out, (struct vd_bytes) { text + brace + 1, cut.offset - brace - 1 });
	vdi_buffer_append(out, (struct vd_bytes) { text + cut.offset + cut.length,
						   json.size - cut.offset - cut.length });
	VDI_TRY(vdi_buffer_status(out));
	size = reader->scan.spaced ? vdi_json_minify((struct vd_bytes) { out->data, out->size }, out->data) :
				     out->size;
	*ret_value = (struct vd_bytes) { out->data, size };
	return VD_OK;
}

vd_status vdi_kube_object_read(struct vdi_kube_reader *reader, struct vd_bytes json, const char *kind,
			       const char *api_version, struct vdi_kube_object *ret_object,
			       struct vd_error *reterr)
{
	struct vdi_kube_object object = { 0 };
	struct vd_bytes	       revision;
	vd_status	       status;

	VDI_TRY(vdi_json_scan(json, &limits, &reader->scan, reterr));
	if (!text_of(reader, json, VDI_JSON_KIND, &object.kind) ||
	    !text_of(reader, json, VDI_JSON_API_VERSION, &object.api_version) ||
	    !text_of(reader, json, VDI_JSON_NAME, &object.name) ||
	    !text_of(reader, json, VDI_JSON_NAMESPACE, &object.namespace_name) ||
	    !text_of(reader, json, VDI_JSON_RESOURCE_VERSION, &revision) ||
	    !text_of(reader, json, VDI_JSON_CREATION_TIMESTAMP, &object.creation_time))
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "kind, apiVersion, and the name, namespace and resourceVersion in "
				    "metadata must be plain strings");
	if (!read_revision(revision, &object.revision))
		return vd_error_set(reterr, VD_BAD_REQUEST, "the resourceVersion \"%.*s\" is not a number",
				    (int) VDI_MIN(revision.size, (size_t) 40), (const char *) revision.data);
	if ((object.kind.size == 0 && kind == NULL) || (object.api_version.size == 0 && api_version == NULL))
		return vd_error_set(reterr, VD_BAD_REQUEST, "not a Kubernetes object: it has no %s",
				    object.kind.size ? "apiVersion" : "kind");
	object.is_held = is_held(reader, json);
	object.is_last = !object.is_held &&
			 vdi_json_member(&reader->scan, VDI_JSON_DELETION_TIMESTAMP)->type == VDI_JSON_STRING;
	status = make_value(reader, json, object.kind.size ? NULL : kind,
			    object.api_version.size ? NULL : api_version, &object.value);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	if (object.kind.size == 0)
		object.kind = vd_bytes_of(kind);
	if (object.api_version.size == 0)
		object.api_version = vd_bytes_of(api_version);
	*ret_object = object;
	return VD_OK;
}

static bool is_segment(struct vd_bytes name)
{
	return memchr(name.data, '/', name.size) == NULL && !vd_bytes_equal(name, vd_bytes_of(".")) &&
	       !vd_bytes_equal(name, vd_bytes_of(".."));
}

/* printf would take longer than the rest of the key's making. False: no room. */
static bool append_text(char *key, size_t max, size_t *size, struct vd_bytes text)
{
	if (text.size > max - *size)
		return false;
	if (text.size)
		memcpy(key + *size, text.data, text.size);
	*size += text.size;
	return true;
}

vd_status vdi_kube_object_kv(const struct vdi_kube_object *object, const char *prefix, bool is_delete,
			     struct vd_kv **ret_kv, struct vd_error *reterr)
{
	char		key[VD_KEY_SIZE_MAX];
	struct vd_bytes value;
	size_t		size = 0;
	vd_status	status;

	if (object->name.size == 0 || object->revision == 0)
		return vd_error_set(reterr, VD_BAD_REQUEST, "the object has no %s",
				    object->name.size ? "resourceVersion" : "name");
	if (!is_segment(object->name) || (object->namespace_name.size && !is_segment(object->namespace_name)))
		return vd_error_set(reterr, VD_BAD_REQUEST, "the name \"%.*s\" cannot be part of a key",
				    (int) VDI_MIN(object->name.size, (size_t) 80),
				    (const char *) object->name.data);
	if (!append_text(key, sizeof key, &size, vd_bytes_of(prefix)) ||
	    !append_text(key, sizeof key, &size, object->namespace_name) ||
	    !append_text(key, sizeof key, &size, vd_bytes_of(object->namespace_name.size ? "/" : "")) ||
	    !append_text(key, sizeof key, &size, object->name))
		return vd_error_set(reterr, VD_BAD_REQUEST, "a name of %zu bytes is too long",
				    object->name.size);
	value = is_delete ? VD_BYTES_NONE : object->value;
	status = vd_kv_new((struct vd_bytes) { key, size }, value, ret_kv);
	if (status != VD_OK)
		return vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	(*ret_kv)->mod_rev = object->revision;
	return VD_OK;
}

/* ---- Events ---- */

vd_status vdi_kube_event_reader_init(struct vdi_kube_event_reader *reader)
{
	const struct vd_bytes paths[] = { vd_bytes_of("type"), vd_bytes_of("object") };

	memset(reader, 0, sizeof *reader);
	return scan_init(&reader->plan, &reader->scan, paths, VDI_ARRAY_SIZE(paths));
}

void vdi_kube_event_reader_fini(struct vdi_kube_event_reader *reader)
{
	scan_fini(&reader->plan, &reader->scan);
}

static vd_status no_event(struct vd_bytes json, const char *why, struct vd_error *reterr)
{
	int shown = (int) VDI_MIN(json.size, (size_t) 60);

	for (int i = 0; i < shown; i++)
		if ((unsigned char) ((const char *) json.data)[i] < 0x20 ||
		    (unsigned char) ((const char *) json.data)[i] >= 0x7f)
			shown = i;
	return vd_error_set(reterr, VD_BAD_REQUEST, "\"%.*s...\" is not a watch event: %s", shown,
			    (const char *) json.data, why);
}

vd_status vdi_kube_event_read(struct vdi_kube_event_reader *reader, struct vd_bytes json,
			      struct vdi_kube_event *ret_event, struct vd_error *reterr)
{
	static const char *const     names[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" };
	const struct vdi_json_value *type, *object;
	struct vd_error		     error = { 0 };
	vd_status		     status = vdi_json_scan(json, &limits, &reader->scan, &error);

	if (status != VD_OK)
		return status == VD_BAD_REQUEST ?
			       no_event(json, error.message, reterr) :
			       vd_error_set(reterr, status, "%s", vd_status_sentence(status));
	type = vdi_json_field(&reader->scan, 0);
	object = vdi_json_field(&reader->scan, 1);
	if (type->type != VDI_JSON_STRING || object->type != VDI_JSON_OBJECT)
		return no_event(json, "type or object is missing", reterr);
	for (unsigned i = 0; i < VDI_ARRAY_SIZE(names); i++)
		if (vd_bytes_equal(vdi_json_value_bytes(json, type), vd_bytes_of(names[i]))) {
			*ret_event = (struct vdi_kube_event) { (enum vdi_kube_event_type) i,
							       vdi_json_value_bytes(json, object) };
			return VD_OK;
		}
	return no_event(json, "its type is unknown", reterr);
}

vd_status vdi_kube_status_error(struct vd_bytes json, struct vd_error *reterr)
{
	struct vdi_tree	 tree = VDI_TREE_INIT;
	struct vdi_node *root = NULL;
	struct vd_bytes	 message, reason;
	int64_t		 code;
	vd_status	 status;

	if (vdi_tree_parse(&tree, json, &root, NULL) != VD_OK)
		root = NULL;
	message = vdi_tree_string_of(vdi_tree_find(&tree, root, "message"));
	reason = vdi_tree_string_of(vdi_tree_find(&tree, root, "reason"));
	code = vdi_tree_int_of(vdi_tree_find(&tree, root, "code"), 0);
	status = code == 410		    ? VD_EXPIRED :
		 code == 429		    ? VD_FULL :
		 code == 401 || code == 403 ? VD_FORBIDDEN :
		 code == 404		    ? VD_NOT_FOUND :
		 code == 504		    ? VD_TIMEOUT :
					      VD_UNAVAILABLE;
	if (message.size == 0)
		message = vd_bytes_of("the server gives no reason");
	(void) vd_error_set(reterr, status, "%.*s%s%.*s%s", (int) VDI_MIN(message.size, (size_t) 1000),
			    (const char *) message.data, reason.size ? " (" : "",
			    (int) VDI_MIN(reason.size, (size_t) 100),
			    reason.size ? (const char *) reason.data : "", reason.size ? ")" : "");
	for (char *at = reterr ? reterr->message : NULL; at && *at; at++)
		if ((unsigned char) *at < 0x20 || *at == 0x7f)
			*at = ' '; /* the text goes into logs and to terminals */
	vdi_tree_fini(&tree);
	return status;
}

/* ---- Pages ---- */

vd_status vdi_kube_page_reader_init(struct vdi_kube_page_reader *reader)
{
	const struct vd_bytes paths[] = { vd_bytes_of("metadata.continue"), vd_bytes_of("items") };

	memset(reader, 0, sizeof *reader);
	return scan_init(&reader->plan, &reader->scan, paths, VDI_ARRAY_SIZE(paths));
}

void vdi_kube_page_reader_fini(struct vdi_kube_page_reader *reader)
{
	scan_fini(&reader->plan, &reader->scan);
}

vd_status vdi_kube_page_read(struct vdi_kube_page_reader *reader, struct vd_bytes json,
			     struct vdi_kube_page *ret_page, struct vd_error *reterr)
{
	const struct vdi_json_value *revision, *token, *items;
	struct vdi_kube_page	     page = { 0 };

	VDI_TRY(vdi_json_scan(json, &limits, &reader->scan, reterr));
	revision = vdi_json_member(&reader->scan, VDI_JSON_RESOURCE_VERSION);
	token = vdi_json_field(&reader->scan, 0);
	items = vdi_json_field(&reader->scan, 1);
	if (items->type != VDI_JSON_ARRAY && items->type != VDI_JSON_NULL)
		return vd_error_set(reterr, VD_BAD_REQUEST, "not a list: it has no items");
	if (revision->type == VDI_JSON_STRING &&
	    !read_revision(vdi_json_value_bytes(json, revision), &page.revision))
		return vd_error_set(reterr, VD_BAD_REQUEST,
				    "the resourceVersion of the list is not a number");
	if (token->type == VDI_JSON_STRING) {
		if (token->escaped)
			return vd_error_set(reterr, VD_BAD_REQUEST,
					    "the continue token of the list contains escapes");
		page.continue_token = vdi_json_value_bytes(json, token);
	}
	if (items->type == VDI_JSON_ARRAY) {
		page.items = vdi_json_value_bytes(json, items);
		page.items = (struct vd_bytes) { (const char *) page.items.data + 1, page.items.size - 2 };
	}
	*ret_page = page;
	return VD_OK;
}

/* ---- Keys ---- */

/* Returns true for the groups that Kubernetes itself stores directly below /registry/; other groups that end
 * with .k8s.io are custom kinds. */
static bool is_own_group(const char *group)
{
	static const char *const own[] = { "",
					   "apps",
					   "batch",
					   "autoscaling",
					   "policy",
					   "extensions",
					   "admissionregistration.k8s.io",
					   "authentication.k8s.io",
					   "authorization.k8s.io",
					   "certificates.k8s.io",
					   "coordination.k8s.io",
					   "discovery.k8s.io",
					   "events.k8s.io",
					   "flowcontrol.apiserver.k8s.io",
					   "internal.apiserver.k8s.io",
					   "networking.k8s.io",
					   "node.k8s.io",
					   "rbac.authorization.k8s.io",
					   "resource.k8s.io",
					   "scheduling.k8s.io",
					   "storage.k8s.io",
					   "storagemigration.k8s.io" };

	for (size_t i = 0; i < VDI_ARRAY_SIZE(own); i++)
		if (strcmp(group, own[i]) == 0)
			return true;
	return false;
}

bool vdi_kube_prefix(const char *group, const char *plural, char prefix[VDI_KUBE_PREFIX_MAX])
{
	/* kubernetes/cmd/kube-apiserver: SpecialDefaultResourcePrefixes. */
	static const struct {
		const char *group, *plural, *place;
	} special[] = { { "", "nodes", "minions" },
			{ "", "services", "services/specs" },
			{ "", "endpoints", "services/endpoints" },
			{ "", "replicationcontrollers", "controllers" },
			{ "networking.k8s.io", "ingresses", "ingress" },
			{ "extensions", "ingresses", "ingress" } };
	const char *place = plural;
	bool	    is_own = is_own_group(group);
	int	    size;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(special); i++)
		if (strcmp(group, special[i].group) == 0 && strcmp(plural, special[i].plural) == 0)
			place = special[i].place;
	size = snprintf(prefix, VDI_KUBE_PREFIX_MAX, "/registry/%s%s%s/", is_own ? "" : group,
			is_own ? "" : "/", place);
	return size > 0 && size < VDI_KUBE_PREFIX_MAX;
}
