/* Files that an operator passes to a server, and the tables made from one of them. The first byte selects:
 *
 * 	0	an authorization policy: its decisions and its description
 * 	1	a token file
 * 	2	a resources file, a zero byte, an object: columns and cells, also those of the
 * 		built-in kinds, are JSON for any object
 */
#include "fuzz.h"
#include "json_scan.h"
#include "policy.h"
#include "resources.h"
#include "table.h"
#include "tokens.h"

static void check_json(struct vdi_out *out)
{
	struct vd_error error;

	VDI_CHECK(!out->failed && vdi_json_validate(vdi_out_slice(out), NULL, &error) == VD_OK);
}

/* ---- Policies ---- */

static void ask(const struct vdi_policy *policy, const struct vdi_identity *identity)
{
	static const char *const words[] = { "get",    "pods", "apps", "a",
					     "team-a", "",     "*",    "deployments/scale" };
	const size_t		 count = VDI_ARRAY_SIZE(words);

	for (size_t i = 0; i < count; i++) {
		struct vdi_access access = { .verb = vd_bytes_of(words[i]),
					     .resource = vd_bytes_of(words[(i + 1) % count]),
					     .group = vd_bytes_of(words[(i + 2) % count]),
					     .name = vd_bytes_of(words[(i + 3) % count]),
					     .namespace_name = vd_bytes_of(words[(i + 4) % count]),
					     .subresource = vd_bytes_of(i % 2 ? "scale" : "") };
		struct vdi_access path = { .verb = vd_bytes_of("get"),
					   .is_path = true,
					   .path = vd_bytes_of(i % 2 ? "/page/x" : "/healthz") };

		(void) vdi_policy_allows(policy, identity, &access);
		VDI_CHECK(vdi_policy_allows(policy, identity, &path) || i % 2);
	}
}

static void read_policy(struct vd_bytes bytes)
{
	const struct vd_bytes groups[] = { vd_bytes_of("dev") };
	struct vdi_identity  *identity = NULL;
	struct vdi_policy    *policy = NULL;
	struct vdi_out	      out = VDI_OUT_INIT;
	struct vd_error	      error = { 0 };

	if (vdi_policy_parse(bytes, &policy, &error) != VD_OK) {
		VDI_CHECK(error.message[0]);
		return;
	}
	VDI_CHECK(vdi_identity_new(vd_bytes_of("ann"), VD_BYTES_NONE, groups, 1, VDI_GROUP_AUTHENTICATED,
				   &identity) == VD_OK);
	ask(policy, identity);
	vdi_out_raw(&out, "{");
	vdi_policy_write_rules(&out, policy, identity, vd_bytes_of("team-a"));
	vdi_out_raw(&out, "}");
	check_json(&out);
	vdi_out_fini(&out);
	vdi_identity_unref(identity);
	vdi_policy_free(policy);
}

/* ---- Tokens ---- */

static void read_tokens(struct vd_bytes bytes)
{
	const char	  *start = bytes.data, *end = start + bytes.size;
	struct vdi_tokens *tokens = NULL;
	struct vd_error	   error = { 0 };

	if (vdi_tokens_parse(bytes, &tokens, &error) != VD_OK) {
		VDI_CHECK(error.message[0]);
		return;
	}
	for (const char *line = start; line < end;) {
		const char	    *next = memchr(line, '\n', (size_t) (end - line));
		const char	    *comma = memchr(line, ',', (size_t) ((next ? next : end) - line));
		struct vdi_identity *identity =
			comma ? vdi_tokens_find(tokens, (struct vd_bytes) { line, (size_t) (comma - line) }) :
				NULL;

		VDI_CHECK(identity == NULL ||
			  (identity->user[0] && vdi_identity_is_in(identity, VDI_GROUP_AUTHENTICATED)));
		line = next ? next + 1 : end;
	}
	VDI_CHECK(vdi_tokens_find(tokens, VD_BYTES_NONE) == NULL);
	vdi_tokens_free(tokens);
}

/* ---- Resources and tables ---- */

static unsigned depth_of(const struct vdi_node *node)
{
	unsigned depth = 0;

	for (const struct vdi_node *child = node->first; child; child = child->next)
		depth = VDI_MAX(depth, depth_of(child));
	return depth + 1;
}

static void print(const struct vdi_resource *resource, struct vdi_tree *tree, const struct vdi_node *root,
		  struct vd_bytes text)
{
	const vd_wall  now = { INT64_C(1780000000) * 1000000000 };
	struct vdi_out out = VDI_OUT_INIT;

	vdi_out_raw(&out, "[{");
	vdi_table_columns(&out, resource);
	vdi_out_raw(&out, "},");
	for (int include = VDI_INCLUDE_METADATA; include <= VDI_INCLUDE_NONE; include++) {
		vdi_table_row(&out, resource, tree, root, text, (enum vdi_include) include, include % 2, now);
		vdi_out_raw(&out, ",");
	}
	vdi_table_metadata(&out, tree, root, false);
	vdi_out_raw(&out, "]");
	if (depth_of(root) + 8 <= VDI_JSON_DEPTH_MAX) /* deeper than any document that is read, but valid */
		check_json(&out);
	vdi_out_fini(&out);
}

static void read_resources(struct vd_bytes bytes)
{
	const char	    *zero = bytes.size ? memchr(bytes.data, 0, bytes.size) : NULL;
	struct vd_bytes	     file = { bytes.data,
				      zero ? (size_t) (zero - (const char *) bytes.data) : bytes.size };
	struct vd_bytes	     object = zero ? (struct vd_bytes) { zero + 1, bytes.size - file.size - 1 } :
					     vd_bytes_of("{\"metadata\":{\"name\":\"x\"}}");
	struct vdi_resources resources;
	struct vdi_tree	     tree = VDI_TREE_INIT;
	struct vdi_node	    *root;
	struct vd_error	     error = { 0 };

	VDI_CHECK(vdi_resources_init(&resources) == VD_OK);
	VDI_CHECK(vdi_resources_load(&resources, file, &error) == VD_OK || error.message[0]);
	if (vdi_tree_parse_row(&tree, object, &root, NULL) == VD_OK && vdi_tree_is(root, VDI_NODE_OBJECT))
		for (size_t i = 0; i < resources.count; i++)
			print(resources.items[i], &tree, root, object);
	vdi_tree_fini(&tree);
	vdi_resources_fini(&resources);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t		live = vdi_alloc_live();
	struct vd_bytes rest = { data + 1, size ? size - 1 : 0 };

	if (size == 0)
		return 0;
	switch (data[0] % 3) {
	case 0: read_policy(rest); break;
	case 1: read_tokens(rest); break;
	default: read_resources(rest);
	}
	VDI_CHECK(vdi_alloc_live() == live);
	return 0;
}
