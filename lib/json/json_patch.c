/* JSON patch (RFC 6902) with JSON pointers (RFC 6901).
 *
 * All operations work on a copy of the target, which is given away only at the end. A pointer is split into
 * its tokens once; every operation then needs the container that its last token is about. What an operation
 * puts in is checked for its depth where it lands, and copies are counted, so no patch can build something
 * deeper or much larger than what it was sent with.
 */
#include <stdio.h>

#include "json_edit.h"

struct token {
	const char *text;
	size_t	    size;
};

struct pointer {
	struct token tokens[VDI_JSON_DEPTH_MAX];
	size_t	     count;
	char	    *text; /* owned: the unescaped tokens */
};

struct patch {
	json_t		*root;
	size_t		 number; /* of the operation, from 0 */
	const char	*operation;
	const char	*path;
	size_t		 copied;
	struct vd_error *reterr;
};

static vd_status fail(const struct patch *patch, vd_status status, const char *why)
{
	return vd_error_set(patch->reterr, status, "JSON patch operation %zu (%.20s %.200s): %s",
			    patch->number, patch->operation, patch->path, why);
}

static vd_status out_of_memory(const struct patch *patch)
{
	return vd_error_set(patch->reterr, VD_NOMEM, "out of memory");
}

/* In any case the caller frees pointer->text. */
static vd_status pointer_parse(const struct patch *patch, const json_t *value, struct pointer *pointer)
{
	const char *text = json_string_value(value);
	size_t	    size = json_string_length(value);
	char	   *out;

	memset(pointer, 0, sizeof *pointer);
	if (size && text[0] != '/')
		return fail(patch, VD_BAD_REQUEST, "a JSON pointer begins with /");
	pointer->text = out = vdi_alloc(size + 1);
	if (out == NULL)
		return out_of_memory(patch);
	for (size_t i = 0; i < size; i++) {
		if (text[i] == '/') {
			if (pointer->count == VDI_JSON_DEPTH_MAX) {
				return fail(patch, VD_INVALID, "the JSON pointer has too many levels");
			}
			pointer->tokens[pointer->count++] = (struct token) { out, 0 };
			continue;
		}
		if (text[i] == '~') {
			i++;
			if (i == size || (text[i] != '0' && text[i] != '1')) {
				return fail(patch, VD_BAD_REQUEST,
					    "~ in a JSON pointer must be followed by 0 or 1");
			}
			*out++ = text[i] == '0' ? '~' : '/';
		} else {
			*out++ = text[i];
		}
		pointer->tokens[pointer->count - 1].size++;
	}
	return VD_OK;
}

/* `0` or digits without a leading zero; at most `most`. */
static bool index_parse(const struct token *token, size_t most, size_t *ret_index)
{
	size_t index = 0;

	if (token->size == 0 || token->size > 9 || (token->size > 1 && token->text[0] == '0'))
		return false;
	for (size_t i = 0; i < token->size; i++) {
		if (token->text[i] < '0' || token->text[i] > '9')
			return false;
		index = index * 10 + (size_t) (token->text[i] - '0');
	}
	*ret_index = index;
	return index <= most;
}

static json_t *child_get(json_t *container, const struct token *token)
{
	size_t index;

	if (json_is_object(container))
		return json_object_getn(container, token->text, token->size);
	if (json_is_array(container) && index_parse(token, json_array_size(container), &index))
		return json_array_get(container, index); /* NULL right behind the last */
	return NULL;
}

/* What the first count tokens lead to, or NULL. */
static json_t *pointer_follow(json_t *root, const struct pointer *pointer, size_t count)
{
	for (size_t i = 0; root && i < count; i++)
		root = child_get(root, &pointer->tokens[i]);
	return root;
}

/* Levels of brackets; rough size of the text is added to *size. */
static size_t measure(const json_t *value, size_t *size)
{
	json_t *tree = (json_t *) (uintptr_t) value;
	size_t	deepest = 0;

	*size += 16 + (json_is_string(value) ? json_string_length(value) : 0);
	if (!json_is_object(value) && !json_is_array(value))
		return 0;
	for (size_t i = 0; i < json_array_size(value); i++) {
		size_t depth = measure(json_array_get(value, i), size);

		deepest = VDI_MAX(deepest, depth);
	}
	for (void *at = json_object_iter(tree); at; at = json_object_iter_next(tree, at)) {
		size_t depth = measure(json_object_iter_value(at), size);

		*size += json_object_iter_key_len(at);
		deepest = VDI_MAX(deepest, depth);
	}
	return deepest + 1;
}

/* Puts value, whose reference is taken over in any case, where pointer says. */
static vd_status value_add(struct patch *patch, const struct pointer *pointer, json_t *value, bool replace)
{
	const struct token *last;
	json_t		   *container;
	size_t		    index;
	size_t		    size = 0;
	int		    failed;

	if (value == NULL)
		return out_of_memory(patch);
	if (measure(value, &size) + pointer->count > VDI_JSON_DEPTH_MAX) {
		json_decref(value);
		return fail(patch, VD_INVALID, "the result would have too many levels");
	}
	if (pointer->count == 0) {
		json_decref(patch->root);
		patch->root = value;
		return VD_OK;
	}
	last = &pointer->tokens[pointer->count - 1];
	container = pointer_follow(patch->root, pointer, pointer->count - 1);
	if (!json_is_object(container) && !json_is_array(container)) {
		json_decref(value);
		return fail(patch, VD_INVALID, "the parent of the path does not exist");
	}
	if (replace && child_get(container, last) == NULL) {
		json_decref(value);
		return fail(patch, VD_INVALID, "the path does not exist");
	}
	if (json_is_object(container)) {
		if (last->size && memchr(last->text, 0, last->size)) {
			json_decref(value);
			return fail(patch, VD_INVALID, "a key with a NUL");
		}
		failed = json_object_setn_new(container, last->text, last->size, value);
	} else if (replace && index_parse(last, json_array_size(container), &index)) {
		failed = json_array_set_new(container, index, value);
	} else if (last->size == 1 && last->text[0] == '-') {
		failed = json_array_append_new(container, value);
	} else if (index_parse(last, json_array_size(container), &index)) {
		failed = json_array_insert_new(container, index, value);
	} else {
		json_decref(value);
		return fail(patch, VD_INVALID, "the array has no such index");
	}
	return failed ? out_of_memory(patch) : VD_OK;
}

static vd_status value_remove(struct patch *patch, const struct pointer *pointer)
{
	const struct token *last;
	json_t		   *container;
	size_t		    index;

	if (pointer->count == 0)
		return fail(patch, VD_INVALID, "the whole document cannot be removed");
	last = &pointer->tokens[pointer->count - 1];
	container = pointer_follow(patch->root, pointer, pointer->count - 1);
	if (container == NULL || child_get(container, last) == NULL)
		return fail(patch, VD_INVALID, "the path does not exist");
	if (json_is_object(container))
		(void) json_object_deln(container, last->text, last->size); /* it is there */
	else if (index_parse(last, json_array_size(container), &index))
		(void) json_array_remove(container, index); /* it is there */
	return VD_OK;
}

static bool is_inside(const struct pointer *inner, const struct pointer *outer)
{
	if (inner->count <= outer->count)
		return false;
	for (size_t i = 0; i < outer->count; i++)
		if (inner->tokens[i].size != outer->tokens[i].size ||
		    memcmp(inner->tokens[i].text, outer->tokens[i].text, outer->tokens[i].size) != 0)
			return false;
	return true;
}

/* copy and move: from and to are parsed. */
static vd_status value_transfer(struct patch *patch, const struct pointer *from, const struct pointer *to,
				bool move)
{
	json_t *value = pointer_follow(patch->root, from, from->count);

	if (value == NULL)
		return fail(patch, VD_INVALID, "from does not exist");
	if (!move) {
		(void) measure(value, &patch->copied); /* its depth is looked at where it lands */
		if (patch->copied > VDI_JSON_PATCH_COPY_MAX)
			return fail(patch, VD_TOO_BIG, "the copies are too large");
		return value_add(patch, to, json_deep_copy(value), false);
	}
	if (is_inside(to, from))
		return fail(patch, VD_INVALID, "a value cannot be moved into itself");
	if (from->count == 0 && to->count == 0)
		return VD_OK;
	json_incref(value);
	if (from->count) {
		vd_status status = value_remove(patch, from);

		if (status != VD_OK) {
			json_decref(value);
			return status;
		}
	}
	return value_add(patch, to, value, false);
}

static vd_status operation_apply(struct patch *patch, const json_t *operation)
{
	const json_t  *name = json_object_get(operation, "op");
	const json_t  *path = json_object_get(operation, "path");
	const json_t  *from = json_object_get(operation, "from");
	json_t	      *value = json_object_get(operation, "value");
	struct pointer to_pointer = { .count = 0 };
	struct pointer from_pointer = { .count = 0 };
	bool	       needs_value;
	bool	       needs_from;
	vd_status      status;

	patch->operation = json_is_string(name) ? json_string_value(name) : "?";
	patch->path = json_is_string(path) ? json_string_value(path) : "?";
	needs_value = !strcmp(patch->operation, "add") || !strcmp(patch->operation, "replace") ||
		      !strcmp(patch->operation, "test");
	needs_from = !strcmp(patch->operation, "move") || !strcmp(patch->operation, "copy");
	if (!needs_value && !needs_from && strcmp(patch->operation, "remove") != 0)
		return fail(patch, VD_BAD_REQUEST, "unknown operation");
	if (!json_is_string(path))
		return fail(patch, VD_BAD_REQUEST, "path is missing or no string");
	if (needs_value && value == NULL)
		return fail(patch, VD_BAD_REQUEST, "value is missing");
	if (needs_from && !json_is_string(from))
		return fail(patch, VD_BAD_REQUEST, "from is missing or no string");
	status = pointer_parse(patch, path, &to_pointer);
	if (status == VD_OK && needs_from)
		status = pointer_parse(patch, from, &from_pointer);
	if (status != VD_OK) {
		/* the pointer said why */
	} else if (needs_from) {
		status = value_transfer(patch, &from_pointer, &to_pointer, patch->operation[0] == 'm');
	} else if (!needs_value) {
		status = value_remove(patch, &to_pointer);
	} else if (patch->operation[0] == 't') {
		const json_t *there = pointer_follow(patch->root, &to_pointer, to_pointer.count);

		status = there && vdi_json_same(there, value) ?
				 VD_OK :
				 fail(patch, VD_INVALID,
				      there ? "the test failed" : "the path does not exist");
	} else {
		status = value_add(patch, &to_pointer, json_deep_copy(value), patch->operation[0] == 'r');
	}
	vdi_free(from_pointer.text);
	vdi_free(to_pointer.text);
	return status;
}

vd_status vdi_json_patch(const json_t *target, const json_t *patch, json_t **ret_tree,
			 struct vd_error *reterr)
{
	struct patch work = { .reterr = reterr };
	vd_status    status = VD_OK;

	if (!json_is_array(patch))
		return vd_error_set(reterr, VD_BAD_REQUEST, "a JSON patch is an array of operations");
	if (json_array_size(patch) > VDI_JSON_PATCH_OPERATIONS_MAX)
		return vd_error_set(reterr, VD_TOO_BIG,
				    "The allowed maximum operations in a JSON patch is %d, got %zu",
				    VDI_JSON_PATCH_OPERATIONS_MAX, json_array_size(patch));
	work.root = json_deep_copy(target);
	if (work.root == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	for (; work.number < json_array_size(patch) && status == VD_OK; work.number++) {
		const json_t *operation = json_array_get(patch, work.number);

		if (json_is_object(operation))
			status = operation_apply(&work, operation);
		else
			status = vd_error_set(reterr, VD_BAD_REQUEST, "JSON patch operation %zu is no object",
					      work.number);
	}
	if (status != VD_OK) {
		json_decref(work.root);
		return status;
	}
	*ret_tree = work.root;
	return VD_OK;
}
