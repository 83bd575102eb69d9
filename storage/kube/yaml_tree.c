/* libyaml parses the document; its nodes are copied, bounded in depth and number. */
#include "yaml_tree.h"

#include <stdio.h>

#include <yaml.h>

#define FILE_SIZE_MAX ((size_t) 4 << 20)
#define DEPTH_MAX 16
/* Mappings, sequences and texts together. An alias counts at each use, because a few lines of nested aliases
 * can expand to billions of nodes. */
#define NODES_MAX 100000

vd_status vdi_yaml_read_file(const char *path, size_t size_max, char **ret_text, size_t *ret_size,
			     struct vd_error *reterr)
{
	FILE  *file = fopen(path, "re");
	char  *text;
	size_t size;

	if (file == NULL)
		return vd_error_set(reterr, VD_NOT_FOUND, "cannot open %s", path);
	text = vdi_alloc(size_max + 1);
	if (text == NULL) {
		(void) fclose(file);
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	}
	size = fread(text, 1, size_max + 1, file);
	if (ferror(file) || size > size_max) {
		(void) vd_error_set(reterr, VD_IO, "%s %s", path,
				    ferror(file) ? "cannot be read" : "is too large");
		(void) fclose(file);
		vdi_free(text);
		return VD_IO;
	}
	(void) fclose(file);
	text[size] = 0;
	*ret_text = text;
	*ret_size = size;
	return VD_OK;
}

vd_status vdi_yaml_read_word(const char *path, size_t size_max, char **ret_text, struct vd_error *reterr)
{
	static const char white[] = " \t\r\n\v\f";
	char		 *text;
	size_t		  size, start;

	VDI_TRY(vdi_yaml_read_file(path, size_max, &text, &size, reterr));
	if (strlen(text) != size) {
		vdi_free(text);
		return vd_error_set(reterr, VD_BAD_REQUEST, "%s has a NUL", path);
	}
	start = strspn(text, white);
	while (size > start && strchr(white, text[size - 1]))
		size--;
	memmove(text, text + start, size - start);
	text[size - start] = 0;
	*ret_text = text;
	return VD_OK;
}

/* ---- YAML ---- */

struct growing {
	yaml_document_t *document;
	size_t		 nodes;
};

static json_t *tree_of(struct growing *growing, int number, unsigned depth);

/* A NUL would end the text early, so that different texts were equal. */
static bool is_text(const yaml_node_t *node)
{
	return memchr(node->data.scalar.value, 0, node->data.scalar.length) == NULL;
}

static bool fill_mapping(struct growing *growing, yaml_node_t *node, unsigned depth, json_t *object)
{
	for (yaml_node_pair_t *pair = node->data.mapping.pairs.start; pair < node->data.mapping.pairs.top;
	     pair++) {
		yaml_node_t *key = yaml_document_get_node(growing->document, pair->key);

		if (key == NULL || key->type != YAML_SCALAR_NODE || !is_text(key) ||
		    json_object_set_new(object, (const char *) key->data.scalar.value,
					tree_of(growing, pair->value, depth + 1)) != 0)
			return false;
	}
	return true;
}

static bool fill_sequence(struct growing *growing, yaml_node_t *node, unsigned depth, json_t *array)
{
	for (yaml_node_item_t *item = node->data.sequence.items.start; item < node->data.sequence.items.top;
	     item++)
		if (json_array_append_new(array, tree_of(growing, *item, depth + 1)) != 0)
			return false;
	return true;
}

/* NULL, for which jansson's functions fail: too deep, too many nodes, not text, or out of memory. */
static json_t *tree_of(struct growing *growing, int number, unsigned depth)
{
	yaml_node_t *node = yaml_document_get_node(growing->document, number);
	json_t	    *tree;
	bool	     is_good;

	if (node == NULL || depth > DEPTH_MAX || ++growing->nodes > NODES_MAX)
		return NULL;
	if (node->type == YAML_SCALAR_NODE)
		return is_text(node) ? json_stringn((const char *) node->data.scalar.value,
						    node->data.scalar.length) :
				       NULL;
	tree = node->type == YAML_MAPPING_NODE ? json_object() : json_array();
	is_good = node->type == YAML_MAPPING_NODE ? fill_mapping(growing, node, depth, tree) :
						    fill_sequence(growing, node, depth, tree);
	if (is_good)
		return tree;
	json_decref(tree);
	return NULL;
}

static vd_status parse(const char *path, const char *text, size_t size, json_t **ret_tree,
		       struct vd_error *reterr)
{
	yaml_parser_t	parser;
	yaml_document_t document;
	struct growing	growing = { &document, 0 };
	vd_status	status = VD_OK;

	if (!yaml_parser_initialize(&parser))
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	yaml_parser_set_input_string(&parser, (const unsigned char *) text, size);
	if (yaml_parser_load(&parser, &document)) {
		*ret_tree = tree_of(&growing, 1, 0);
		if (*ret_tree == NULL)
			status = vd_error_set(reterr, VD_BAD_REQUEST,
					      "%s is too deep, too large, or not text", path);
		yaml_document_delete(&document);
	} else {
		status = vd_error_set(reterr, VD_BAD_REQUEST, "%s, line %zu: %s", path,
				      parser.problem_mark.line + 1,
				      parser.problem ? parser.problem : "not YAML");
	}
	yaml_parser_delete(&parser);
	return status;
}

vd_status vdi_yaml_tree_read(const char *path, json_t **ret_tree, struct vd_error *reterr)
{
	size_t	  size = 0;
	char	 *text = NULL;
	vd_status status;

	VDI_TRY(vdi_yaml_read_file(path, FILE_SIZE_MAX, &text, &size, reterr));
	status = parse(path, text, size, ret_tree, reterr);
	vdi_free(text);
	return status;
}
