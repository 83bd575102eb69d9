/* The tree is in an arena of blocks that double in size. An object with many members gets a hash index at its
 * first lookup, so that bodies with hundreds of thousands of keys do not cost quadratic time. The hash has a
 * seed that clients do not know.
 */
#include "tree.h"
#include "utf8.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "hash.h"

#define INDEX_FROM 24

struct block {
	struct block *next;
	size_t	      size;
};

struct vdi_tree_index {
	uint64_t	 seed;
	uint32_t	 mask;
	struct vdi_node *slots[];
};

void vdi_tree_fini(struct vdi_tree *tree)
{
	struct block *block = tree->blocks;

	while (block) {
		struct block *next = block->next;

		vdi_free(block);
		block = next;
	}
	memset(tree, 0, sizeof *tree);
}

void *vdi_tree_take(struct vdi_tree *tree, size_t size)
{
	char *memory;
	bool  is_armed = __builtin_expect(vdi_alloc_is_armed(), 0);

	size = (size + 7) & ~(size_t) 7;
	if (size > tree->left || is_armed) {
		struct block *newest = tree->blocks;
		size_t	      block_size = newest ? VDI_MIN(newest->size * 2, (size_t) 1 << 20) : 4096;
		struct block *block;

		block_size = is_armed ? size + sizeof *block : VDI_MAX(block_size, size + sizeof *block);
		block = vdi_alloc(block_size);
		if (block == NULL)
			return NULL;
		block->next = newest;
		block->size = block_size;
		tree->blocks = block;
		tree->at = (char *) (block + 1);
		tree->left = block_size - sizeof *block;
	}
	memory = tree->at;
	tree->at += size;
	tree->left -= size;
	return memory;
}

struct vdi_node *vdi_tree_new(struct vdi_tree *tree, enum vdi_node_kind kind)
{
	struct vdi_node *node = vdi_tree_take(tree, sizeof *node);

	if (node) {
		memset(node, 0, sizeof *node);
		node->kind = (uint8_t) kind;
	}
	return node;
}

bool vdi_tree_take_text(struct vdi_tree *tree, struct vd_bytes text, struct vd_bytes *ret_text)
{
	char *copy = vdi_tree_take(tree, text.size ? text.size : 1);

	if (copy == NULL)
		return false;
	if (text.size)
		memcpy(copy, text.data, text.size);
	*ret_text = (struct vd_bytes) { copy, text.size };
	return true;
}

struct vdi_node *vdi_tree_new_string(struct vdi_tree *tree, struct vd_bytes text)
{
	struct vdi_node *node = vdi_tree_new(tree, VDI_NODE_STRING);

	return node && vdi_tree_take_text(tree, text, &node->text) ? node : NULL;
}

struct vdi_node *vdi_tree_new_int(struct vdi_tree *tree, int64_t number)
{
	struct vdi_node *node = vdi_tree_new(tree, VDI_NODE_NUMBER);
	struct vdi_out	 out = VDI_OUT_INIT;
	bool		 done;

	vdi_out_int(&out, number);
	done = node && !out.failed && vdi_tree_take_text(tree, vdi_out_slice(&out), &node->text);
	vdi_out_fini(&out);
	return done ? node : NULL;
}

struct vdi_node *vdi_tree_copy(struct vdi_tree *tree, const struct vdi_node *node)
{
	struct vdi_node *copy = vdi_tree_new(tree, node->kind);

	tree->steps++;
	if (copy == NULL || !vdi_tree_take_text(tree, node->text, &copy->text))
		return NULL;
	for (const struct vdi_node *child = node->first; child; child = child->next) {
		struct vdi_node *child_copy = vdi_tree_copy(tree, child);

		if (child_copy == NULL || !vdi_tree_take_text(tree, child->key, &child_copy->key))
			return NULL;
		vdi_tree_append(copy, child_copy);
	}
	return copy;
}

/* ---- Members ---- */

static uint32_t home_of(const struct vdi_tree_index *index, struct vd_bytes key)
{
	return (uint32_t) XXH3_64bits_withSeed(key.data ? key.data : "", key.size, index->seed) & index->mask;
}

static void index_put(struct vdi_tree *tree, struct vdi_tree_index *index, struct vdi_node *member)
{
	uint32_t at = home_of(index, member->key);

	for (tree->steps++; index->slots[at]; tree->steps++)
		at = (at + 1) & index->mask;
	index->slots[at] = member;
}

/* If out of memory, members are compared one by one, which only costs time. */
static void build_index(struct vdi_tree *tree, struct vdi_node *object)
{
	uint32_t	       capacity = 64;
	struct vdi_tree_index *index;

	while (capacity < object->count * 3)
		capacity *= 2;
	index = vdi_tree_take(tree, sizeof *index + capacity * sizeof index->slots[0]);
	if (index == NULL)
		return;
	memset(index, 0, sizeof *index + capacity * sizeof index->slots[0]);
	index->seed = vdi_hash_seed();
	index->mask = capacity - 1;
	for (struct vdi_node *member = object->first; member; member = member->next)
		index_put(tree, index, member);
	object->index = index;
}

/* A member was appended. */
static void index_note(struct vdi_tree *tree, struct vdi_node *object, struct vdi_node *member)
{
	if (object->index && object->count * 2 > object->index->mask)
		object->index = NULL; /* too small: built again when needed */
	else if (object->index)
		index_put(tree, object->index, member);
}

static struct vdi_node *find_member(struct vdi_tree *tree, struct vdi_node *object, struct vd_bytes key)
{
	if (object->index == NULL && object->count >= INDEX_FROM)
		build_index(tree, object);
	if (object->index) {
		uint32_t at = home_of(object->index, key);

		for (tree->steps++; object->index->slots[at];
		     tree->steps++, at = (at + 1) & object->index->mask)
			if (vd_bytes_equal(object->index->slots[at]->key, key))
				return object->index->slots[at];
		return NULL;
	}
	tree->steps++;
	for (struct vdi_node *member = object->first; member; member = member->next, tree->steps++)
		if (vd_bytes_equal(member->key, key))
			return member;
	return NULL;
}

struct vdi_node *vdi_tree_get(struct vdi_tree *tree, const struct vdi_node *object, struct vd_bytes key)
{
	return vdi_tree_is(object, VDI_NODE_OBJECT) ? find_member(tree, (struct vdi_node *) object, key) :
						      NULL;
}

struct vdi_node *vdi_tree_find(struct vdi_tree *tree, const struct vdi_node *object, const char *path)
{
	struct vdi_node *node = (struct vdi_node *) object;

	while (node && *path) {
		size_t size = strcspn(path, ".");

		node = vdi_tree_get(tree, node, (struct vd_bytes) { path, size });
		path += size + (path[size] == '.');
	}
	return node;
}

struct vd_bytes vdi_tree_string_of(const struct vdi_node *node)
{
	return vdi_tree_is(node, VDI_NODE_STRING) ? node->text : VD_BYTES_NONE;
}

int64_t vdi_tree_int_of(const struct vdi_node *node, int64_t fallback)
{
	const char *at;
	bool	    negative;
	int64_t	    number = 0;

	if (!vdi_tree_is(node, VDI_NODE_NUMBER))
		return fallback;
	at = node->text.data;
	negative = at[0] == '-';
	for (size_t i = negative; i < node->text.size; i++)
		if (at[i] < '0' || at[i] > '9' || __builtin_mul_overflow(number, 10, &number) ||
		    (negative ? __builtin_sub_overflow(number, at[i] - '0', &number) :
				__builtin_add_overflow(number, at[i] - '0', &number)))
			return fallback;
	return number;
}

void vdi_tree_append(struct vdi_node *array, struct vdi_node *value)
{
	vdi_tree_array_insert(array, NULL, value);
}

void vdi_tree_array_insert(struct vdi_node *array, struct vdi_node *before, struct vdi_node *value)
{
	struct vdi_node *previous =
		before ? before->previous : vdi_tree_last(array); /* for the first one: the last */

	value->next = before;
	value->previous = previous ? previous : value;
	if (before)
		before->previous = value;
	else if (array->first)
		array->first->previous = value;
	if (array->first == before)
		array->first = value;
	else
		previous->next = value;
	array->count++;
}

void vdi_tree_become(struct vdi_node *node, const struct vdi_node *value)
{
	node->first = value->first;
	node->index = value->index;
	node->text = value->text;
	node->count = value->count;
	node->kind = value->kind;
}

void vdi_tree_clear(struct vdi_node *parent)
{
	parent->first = NULL;
	parent->index = NULL;
	parent->count = 0;
}

bool vdi_tree_set(struct vdi_tree *tree, struct vdi_node *object, struct vd_bytes key, struct vdi_node *value)
{
	struct vdi_node *member;

	if (value == NULL)
		return false;
	member = find_member(tree, object, key);
	if (member) { /* the member's node keeps its position, also in the index */
		vdi_tree_become(member, value);
		return true;
	}
	if (!vdi_tree_take_text(tree, key, &value->key))
		return false;
	vdi_tree_append(object, value);
	index_note(tree, object, value);
	return true;
}

static struct vdi_node *member_at(struct vdi_tree *tree, struct vdi_node *object, const char *key,
				  enum vdi_node_kind kind)
{
	struct vdi_node *member = vdi_tree_get(tree, object, vd_bytes_of(key));

	if (!vdi_tree_is(member, kind)) {
		if (!vdi_tree_set(tree, object, vd_bytes_of(key), vdi_tree_new(tree, kind)))
			return NULL;
		member = vdi_tree_get(tree, object, vd_bytes_of(key));
	}
	return member;
}

struct vdi_node *vdi_tree_object_at(struct vdi_tree *tree, struct vdi_node *object, const char *key)
{
	return member_at(tree, object, key, VDI_NODE_OBJECT);
}

struct vdi_node *vdi_tree_array_at(struct vdi_tree *tree, struct vdi_node *object, const char *key)
{
	return member_at(tree, object, key, VDI_NODE_ARRAY);
}

void vdi_tree_array_remove(struct vdi_node *array, struct vdi_node *child)
{
	if (array->first == child)
		array->first = child->next;
	else
		child->previous->next = child->next;
	if (child->next)
		child->next->previous = child->previous;
	else if (array->first)
		array->first->previous = child->previous;
	child->next = NULL;
	child->previous = child;
	array->count--;
}

/* Insert the slots after the hole again, so that no lookup stops early. */
static void index_remove(struct vdi_tree *tree, struct vdi_tree_index *index, const struct vdi_node *member)
{
	uint32_t at = home_of(index, member->key);

	for (; index->slots[at] != member; tree->steps++)
		at = (at + 1) & index->mask;
	index->slots[at] = NULL;
	for (at = (at + 1) & index->mask; index->slots[at]; at = (at + 1) & index->mask) {
		struct vdi_node *moved = index->slots[at];

		index->slots[at] = NULL;
		index_put(tree, index, moved);
	}
}

bool vdi_tree_remove(struct vdi_tree *tree, struct vdi_node *object, struct vd_bytes key)
{
	struct vdi_node *member = vdi_tree_get(tree, object, key);

	if (member == NULL)
		return false;
	if (object->index)
		index_remove(tree, object->index, member);
	vdi_tree_array_remove(object, member);
	return true;
}

bool vdi_tree_equal(struct vdi_tree *tree, const struct vdi_node *a, const struct vdi_node *b)
{
	const struct vdi_node *x, *y;

	tree->steps++;
	if (a == NULL || b == NULL)
		return a == b;
	if (a->kind != b->kind || a->count != b->count || !vd_bytes_equal(a->text, b->text))
		return false;
	for (x = a->first, y = b->first; x; x = x->next, y = y->next) {
		const struct vdi_node *other = y;

		if (a->kind == VDI_NODE_OBJECT && !vd_bytes_equal(x->key, y->key))
			other = vdi_tree_get(tree, b, x->key);
		if (!vdi_tree_equal(tree, x, other))
			return false;
	}
	return true;
}

/* ---- Parsing ---- */

struct reader {
	struct vdi_tree *tree;
	const char	*start;
	const char	*at;
	const char	*end;
	struct vd_error *error;
	uint32_t	 left;	   /* nodes that may still be created; further children are only counted */
	bool		 is_whole; /* all nodes are created, as for metadata */
	bool		 is_row;   /* metadata's members are created, but not their content */
	bool		 is_in_metadata;
};

static vd_status bad(struct reader *reader, const char *what)
{
	return vd_error_set(reader->error, VD_BAD_REQUEST, "%s at offset %zu", what,
			    (size_t) (reader->at - reader->start));
}

static void skip_blanks(struct reader *reader)
{
	while (reader->at < reader->end &&
	       (*reader->at == ' ' || *reader->at == '\n' || *reader->at == '\t' || *reader->at == '\r'))
		reader->at++;
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 :
				      -1;
}

static int read_hex4(const char *at, const char *end)
{
	int value = 0;

	if (end - at < 4)
		return -1;
	for (int i = 0; i < 4; i++) {
		if (hex_digit(at[i]) < 0)
			return -1;
		value = value * 16 + hex_digit(at[i]);
	}
	return value;
}

static vd_status unescape(struct reader *reader, const char *from, const char *to, struct vd_bytes *ret_text)
{
	char  *copy = vdi_tree_take(reader->tree, (size_t) (to - from) + 1);
	size_t size = 0;

	if (copy == NULL)
		return VD_NOMEM;
	while (from < to) {
		int high, low;

		if (*from != '\\') {
			copy[size++] = *from++;
			continue;
		}
		from += 2;
		switch (from[-1]) {
		case 'b': copy[size++] = '\b'; break;
		case 'f': copy[size++] = '\f'; break;
		case 'n': copy[size++] = '\n'; break;
		case 'r': copy[size++] = '\r'; break;
		case 't': copy[size++] = '\t'; break;
		case '"':
		case '\\':
		case '/': copy[size++] = from[-1]; break;
		case 'u':
			high = read_hex4(from, to);
			from += 4;
			if (high >= 0xD800 && high < 0xDC00 && to - from >= 6 && from[0] == '\\' &&
			    from[1] == 'u') {
				low = read_hex4(from + 2, to);
				if (low >= 0xDC00 && low < 0xE000) {
					high = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
					from += 6;
				}
			}
			if (high < 0 || (high >= 0xD800 && high < 0xE000))
				return bad(reader, "invalid \\u escape in string");
			size += vdi_utf8_put(copy + size, (uint32_t) high);
			break;
		default: return bad(reader, "invalid escape in string");
		}
	}
	*ret_text = (struct vd_bytes) { copy, size };
	return VD_OK;
}

/* at is on the opening quote. */
static vd_status read_string(struct reader *reader, struct vd_bytes *ret_text)
{
	const char *from = ++reader->at;
	bool	    escaped = false, high = false;

	for (; reader->at < reader->end && *reader->at != '"'; reader->at++) {
		unsigned char c = (unsigned char) *reader->at;

		if (c < 0x20)
			return bad(reader, "control character in string");
		high |= c >= 0x80;
		if (c == '\\') {
			escaped = true;
			if (++reader->at == reader->end)
				break;
		}
	}
	if (reader->at >= reader->end)
		return bad(reader, "string without end");
	if (high && !vdi_utf8_valid((struct vd_bytes) { from, (size_t) (reader->at - from) }))
		return bad(reader, "invalid UTF-8 in string");
	if (escaped) {
		VDI_TRY(unescape(reader, from, reader->at, ret_text));
	} else {
		*ret_text = (struct vd_bytes) { from, (size_t) (reader->at - from) };
	}
	reader->at++;
	return VD_OK;
}

static bool digits(struct reader *reader)
{
	const char *from = reader->at;

	while (reader->at < reader->end && *reader->at >= '0' && *reader->at <= '9')
		reader->at++;
	return reader->at > from;
}

static vd_status read_number(struct reader *reader, struct vdi_node *node)
{
	const char *from = reader->at;

	if (*reader->at == '-')
		reader->at++;
	if (reader->at < reader->end && *reader->at == '0')
		reader->at++;
	else if (!digits(reader))
		return bad(reader, "invalid character looking for a value");
	if (reader->at < reader->end && *reader->at == '.') {
		reader->at++;
		if (!digits(reader))
			return bad(reader, "invalid number");
	}
	if (reader->at < reader->end && (*reader->at | 0x20) == 'e') {
		reader->at++;
		if (reader->at < reader->end && (*reader->at == '+' || *reader->at == '-'))
			reader->at++;
		if (!digits(reader))
			return bad(reader, "invalid number");
	}
	node->kind = VDI_NODE_NUMBER;
	node->text = (struct vd_bytes) { from, (size_t) (reader->at - from) };
	return VD_OK;
}

static bool word(struct reader *reader, const char *text)
{
	size_t size = strlen(text);

	if ((size_t) (reader->end - reader->at) < size || memcmp(reader->at, text, size) != 0)
		return false;
	reader->at += size;
	return true;
}

static vd_status read_value(struct reader *reader, unsigned depth, struct vdi_node **ret_node);

static vd_status read_member(struct reader *reader, unsigned depth, struct vdi_node *object)
{
	bool		 is_whole = reader->is_whole;
	struct vd_bytes	 key;
	struct vdi_node *value;

	if (reader->at == reader->end || *reader->at != '"')
		return bad(reader, "expected a string as key");
	VDI_TRY(read_string(reader, &key));
	if (find_member(reader->tree, object, key))
		return bad(reader, "duplicate key in object");
	skip_blanks(reader);
	if (reader->at == reader->end || *reader->at != ':')
		return bad(reader, "expected ':'");
	reader->at++;
	if (depth == 1 && vd_bytes_equal(key, vd_bytes_of("metadata"))) {
		skip_blanks(reader);
		reader->tree->metadata.data = reader->at;
		reader->is_whole |= !reader->is_row;
		reader->is_in_metadata = true;
		VDI_TRY(read_value(reader, depth, &value));
		reader->is_in_metadata = false;
		reader->is_whole = is_whole;
		reader->tree->metadata.size =
			reader->is_row ? (size_t) (reader->at - (const char *) reader->tree->metadata.data) :
					 0;
	} else {
		VDI_TRY(read_value(reader, depth, &value));
	}
	value->key = key;
	vdi_tree_append(object, value);
	index_note(reader->tree, object, value);
	return VD_OK;
}

/* Skips a value, or a member, of text that was parsed before. */
static vd_status skip(struct reader *reader)
{
	for (unsigned depth = 0; reader->at < reader->end; reader->at++) {
		char c = *reader->at;

		if (c == '"') {
			for (reader->at++; reader->at < reader->end && *reader->at != '"'; reader->at++)
				reader->at += *reader->at == '\\';
		} else if (c == '{' || c == '[') {
			depth++;
		} else if ((c == ',' || c == '}' || c == ']') && depth == 0) {
			return VD_OK;
		} else if (c == '}' || c == ']') {
			depth--;
		}
	}
	reader->at = reader->end;
	return bad(reader, "unexpected end of JSON input");
}

static bool is_metadata(const struct reader *reader)
{
	return reader->end - reader->at > 10 && memcmp(reader->at, "\"metadata\"", 10) == 0;
}

static vd_status read_children(struct reader *reader, unsigned depth, struct vdi_node *node)
{
	bool is_object = *reader->at == '{';
	char close = is_object ? '}' : ']';

	node->kind = is_object ? VDI_NODE_OBJECT : VDI_NODE_ARRAY;
	if (depth >= VDI_TREE_DEPTH_MAX)
		return bad(reader, "nested too deeply");
	reader->at++;
	skip_blanks(reader);
	if (reader->at < reader->end && *reader->at == close) {
		reader->at++;
		return VD_OK;
	}
	for (;;) {
		if (reader->left == 0 && !reader->is_whole && !(depth == 0 && is_metadata(reader)) &&
		    !(depth == 1 && reader->is_in_metadata)) {
			VDI_TRY(skip(reader));
			node->count++;
		} else if (is_object) {
			VDI_TRY(read_member(reader, depth + 1, node));
		} else {
			struct vdi_node *value;

			VDI_TRY(read_value(reader, depth + 1, &value));
			vdi_tree_append(node, value);
		}
		skip_blanks(reader);
		if (reader->at == reader->end)
			return bad(reader, "unexpected end of JSON input");
		if (*reader->at == close) {
			reader->at++;
			return VD_OK;
		}
		if (*reader->at != ',')
			return bad(reader, "expected ',' or the end");
		reader->at++;
		skip_blanks(reader);
	}
}

static vd_status read_value(struct reader *reader, unsigned depth, struct vdi_node **ret_node)
{
	struct vdi_node *node = vdi_tree_new(reader->tree, VDI_NODE_NULL);

	if (node == NULL)
		return VD_NOMEM;
	skip_blanks(reader);
	if (reader->at == reader->end)
		return bad(reader, "unexpected end of JSON input");
	*ret_node = node;
	reader->left -= reader->left > 0;
	switch (*reader->at) {
	case '{':
	case '[': return read_children(reader, depth, node);
	case '"': node->kind = VDI_NODE_STRING; return read_string(reader, &node->text);
	case 't':
		node->kind = VDI_NODE_TRUE;
		return word(reader, "true") ? VD_OK : bad(reader, "invalid literal");
	case 'f':
		node->kind = VDI_NODE_FALSE;
		return word(reader, "false") ? VD_OK : bad(reader, "invalid literal");
	case 'n': return word(reader, "null") ? VD_OK : bad(reader, "invalid literal");
	default: return read_number(reader, node);
	}
}

static vd_status parse(struct vdi_tree *tree, struct vd_bytes text, uint32_t nodes_max, bool is_row,
		       struct vdi_node **ret_root, struct vd_error *reterr)
{
	const char   *start = text.size ? text.data : "";
	struct reader reader = {
		tree,	start, start, start + text.size, reterr, nodes_max, nodes_max == UINT32_MAX,
		is_row, false
	};
	struct vdi_node *root;
	vd_status	 status = read_value(&reader, 0, &root);

	if (status == VD_OK) {
		skip_blanks(&reader);
		if (reader.at != reader.end)
			status = bad(&reader, "data after the value");
	}
	if (status == VD_NOMEM)
		(void) vd_error_set(reterr, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
	if (status == VD_OK)
		*ret_root = root;
	return status;
}

vd_status vdi_tree_parse(struct vdi_tree *tree, struct vd_bytes text, struct vdi_node **ret_root,
			 struct vd_error *reterr)
{
	return parse(tree, text, UINT32_MAX, false, ret_root, reterr);
}

vd_status vdi_tree_parse_shown(struct vdi_tree *tree, struct vd_bytes text, struct vdi_node **ret_root,
			       struct vd_error *reterr)
{
	return parse(tree, text, VDI_TREE_SHOWN_MAX, false, ret_root, reterr);
}

vd_status vdi_tree_parse_row(struct vdi_tree *tree, struct vd_bytes text, struct vdi_node **ret_root,
			     struct vd_error *reterr)
{
	return parse(tree, text, VDI_TREE_SHOWN_MAX, true, ret_root, reterr);
}

/* ---- Writing ---- */

struct vdi_tree_size vdi_tree_measure(struct vdi_tree *tree, const struct vdi_node *node)
{
	static const uint8_t words[] = {
		[VDI_NODE_NULL] = 4, [VDI_NODE_FALSE] = 5, [VDI_NODE_TRUE] = 4, [VDI_NODE_STRING] = 2
	};
	struct vdi_tree_size size = { node->text.size, 1 };

	tree->steps++;
	if (node->kind < VDI_NODE_ARRAY) {
		size.bytes += words[node->kind];
		return size;
	}
	size.bytes = 2 + (node->count ? node->count - 1 : 0);
	for (const struct vdi_node *child = node->first; child; child = child->next) {
		struct vdi_tree_size below = vdi_tree_measure(tree, child);

		size.bytes += below.bytes + (node->kind == VDI_NODE_OBJECT ? child->key.size + 3 : 0);
		size.depth = VDI_MAX(size.depth, below.depth + 1);
	}
	return size;
}

void vdi_tree_write(struct vdi_out *out, const struct vdi_node *node)
{
	vdi_tree_write_begin(out, node, SIZE_MAX);
}

void vdi_tree_write_begin(struct vdi_out *out, const struct vdi_node *node, size_t size_max)
{
	size_t left = size_max - VDI_MIN(out->size, size_max);

	switch ((enum vdi_node_kind) node->kind) {
	case VDI_NODE_NULL: vdi_out_raw(out, "null"); break;
	case VDI_NODE_FALSE: vdi_out_raw(out, "false"); break;
	case VDI_NODE_TRUE: vdi_out_raw(out, "true"); break;
	case VDI_NODE_NUMBER: vdi_out_bytes(out, node->text); break;
	case VDI_NODE_STRING:
		vdi_out_string(out, (struct vd_bytes) { node->text.data, VDI_MIN(node->text.size, left) });
		break;
	case VDI_NODE_ARRAY:
		vdi_out_raw(out, "[");
		for (const struct vdi_node *child = node->first; child && out->size < size_max;
		     child = child->next) {
			if (child != node->first)
				vdi_out_raw(out, ",");
			vdi_tree_write_begin(out, child, size_max);
		}
		vdi_out_raw(out, "]");
		break;
	case VDI_NODE_OBJECT:
		vdi_out_raw(out, "{");
		for (const struct vdi_node *child = node->first; child && out->size < size_max;
		     child = child->next) {
			if (child != node->first)
				vdi_out_raw(out, ",");
			vdi_out_string(out, child->key);
			vdi_out_raw(out, ":");
			vdi_tree_write_begin(out, child, size_max);
		}
		vdi_out_raw(out, "}");
		break;
	}
}
