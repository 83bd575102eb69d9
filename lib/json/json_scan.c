/* One pass over JSON text.
 *
 * Strings are most of the bytes. Searching the end of each from its start makes a dependency chain: the next
 * string cannot be searched before the end of this one is known (as measured, 10 ns per string, however fast
 * the comparison). So the special bytes of strings (a quote, a backslash, a control character, a byte of a
 * multi-byte character) are marked ahead of the walk, one bit per byte, in windows of 4 KiB. A cursor returns
 * the marks in order, in one or two instructions each; the walk only checks that the marks are where the
 * grammar allows them, and the CPU predicts these branches.
 *
 * Two loops share the pass. value_body() skips any value and only checks it: it keeps one bit per open
 * bracket in a word (depth is at most 64) and jumps between "a value", "a key" and "after a value".
 * object_body() walks the objects on a path of the plan, looks up each key among the plan's children, and
 * passes every other value to value_body().
 *
 * Outside strings the end of the text costs no checks if the document ends with a closing bracket, as nearly
 * all do: that byte stops every loop outside a string, and only a closing bracket can lead past it. Such
 * documents use the functions compiled with bounded == false, which check for the end only after a closing
 * bracket. All others (scalars, truncated text) use the copies with bounded == true.
 */
#include "json_scan.h"
#include "json_marks.h"
#include "json_plan.h"

#define WINDOW_BLOCKS 64

/* A key of a strict object, stored to detect its repetition. */
struct seen_key {
	uint64_t print; /* the last eight bytes */
	uint32_t offset;
	uint32_t length;
};

/* The marks that were not returned yet. */
struct cursor {
	uint64_t       word;  /* marks of this block */
	const uint8_t *block; /* inside the window */
};

struct scan {
	const uint8_t		   *start;
	const uint8_t		   *end;
	unsigned		    depth_max;
	bool			    spaced;
	uint8_t			    nothing; /* 0: the byte at the cursor when no mark is left */
	const struct vdi_json_node *nodes;
	struct vdi_json_object	   *object;
	struct cursor		    cursor; /* valid between functions; inside a loop it is in registers */
	const uint8_t		   *error_at;
	const char		   *error;
	vd_status		    error_status;
	size_t			    seen_count;
	const uint8_t		   *window; /* the bytes that marks[] describes */
	size_t			    window_blocks;
	uint64_t		    marks[WINDOW_BLOCKS];
	struct seen_key		    seen[VDI_JSON_MEMBERS_MAX];
};

/* The byte at p; after the end 0, which is never valid there. */
#define PEEK(p) (bounded && (p) >= scan->end ? 0 : *(p))

static __attribute__((noinline, cold)) const uint8_t *fail(struct scan *scan, const uint8_t *at,
							   const char *error)
{
	if (scan->error == NULL) {
		scan->error_at = VDI_MIN(at, scan->end);
		scan->error = at >= scan->end ? "unexpected end" : error;
		scan->error_status = VD_BAD_REQUEST;
	}
	return NULL;
}

/* Marks the window that starts at window. */
static __attribute__((noinline)) void window_fill(struct scan *scan, const uint8_t *window)
{
	size_t left = (size_t) (scan->end - window);
	size_t whole = VDI_MIN(left / BLOCK, (size_t) WINDOW_BLOCKS);

	scan->window = window;
	scan->window_blocks = whole;
	blocks_mark(window, whole, scan->marks);
	if (whole < WINDOW_BLOCKS && left % BLOCK) {
		uint8_t tail[BLOCK];

		memset(tail, ' ', sizeof tail); /* a blank is never marked */
		memcpy(tail, window + whole * BLOCK, left % BLOCK);
		scan->marks[whole] = marks64(tail);
		scan->window_blocks++;
	}
}

/* Returns the cursor whose next mark is the first one at or after p, which is in the window or after it. */
static __attribute__((noinline)) struct cursor cursor_at(struct scan *scan, const uint8_t *p)
{
	size_t offset = (size_t) (p - scan->window);

	VDI_CHECK_SLOW(p >= scan->window);
	if (p >= scan->end)
		return (struct cursor) { 0, scan->end };
	if (offset >= (size_t) BLOCK * WINDOW_BLOCKS) {
		window_fill(scan, scan->window + offset / (BLOCK * WINDOW_BLOCKS) * (BLOCK * WINDOW_BLOCKS));
		offset = (size_t) (p - scan->window);
	}
	return (struct cursor) { scan->marks[offset / BLOCK] & ~(uint64_t) 0 << offset % BLOCK,
				 p - offset % BLOCK };
}

/* Advances to the next block with marks; false at the end of the document. */
ALWAYS_INLINE bool cursor_refill(struct scan *scan, struct cursor *cursor)
{
	do {
		size_t offset = (size_t) (cursor->block - scan->window) + BLOCK;

		if (UNLIKELY(offset >= scan->window_blocks * BLOCK)) {
			if (cursor->block + BLOCK >= scan->end || cursor->block == scan->end) {
				cursor->block = scan->end;
				return false;
			}
			*cursor = cursor_at(scan, cursor->block + BLOCK);
		} else {
			cursor->block += BLOCK;
			cursor->word = scan->marks[offset / BLOCK];
		}
	} while (cursor->word == 0);
	return true;
}

/* Returns the next mark. */
ALWAYS_INLINE const uint8_t *cursor_next(struct scan *scan, struct cursor *cursor)
{
	const uint8_t *mark;

	if (UNLIKELY(cursor->word == 0) && UNLIKELY(!cursor_refill(scan, cursor)))
		return &scan->nothing;
	mark = cursor->block + __builtin_ctzll(cursor->word);
	cursor->word &= cursor->word - 1;
	return mark;
}

/* Checks one escape; p is at its backslash. Returns the position after it. */
static const uint8_t *escape_skip(struct scan *scan, const uint8_t *p)
{
	unsigned unit[2] = { 0, 0 };
	unsigned units = 1;

	if (p + 1 >= scan->end)
		return fail(scan, scan->end, "");
	switch (p[1]) {
	case '"':
	case '\\':
	case '/':
	case 'b':
	case 'f':
	case 'n':
	case 'r':
	case 't': return p + 2;
	case 'u': break;
	default: return fail(scan, p, "invalid escape in a string");
	}
	for (unsigned i = 0; i < units; i++) {
		if (scan->end - p < 6)
			return fail(scan, scan->end, "");
		if (p[0] != '\\' || p[1] != 'u')
			return fail(scan, p, "half a surrogate pair in a string");
		for (unsigned k = 2; k < 6; k++) {
			uint8_t letter = p[k] | 0x20;

			if (p[k] >= '0' && p[k] <= '9')
				unit[i] = unit[i] << 4 | (p[k] - '0');
			else if (letter >= 'a' && letter <= 'f')
				unit[i] = unit[i] << 4 | (unsigned) (letter - 'a' + 10);
			else
				return fail(scan, p, "invalid \\u escape in a string");
		}
		if (i == 0 && unit[0] >= 0xD800 && unit[0] < 0xDC00)
			units = 2;
		else if (i == 0 ? unit[0] >= 0xDC00 && unit[0] < 0xE000 :
				  unit[1] < 0xDC00 || unit[1] >= 0xE000)
			return fail(scan, p, "half a surrogate pair in a string");
		p += 6;
	}
	return p;
}

/* The part of string_end() that is not inlined: a special byte before the closing quote, from p on. *ret_end
 * is that quote, or NULL. */
static __attribute__((noinline)) struct cursor string_rest(struct scan *scan, const uint8_t *p,
							   const uint8_t **ret_end, bool *escaped)
{
	struct cursor cursor;
	size_t	      length;

	for (;;) {
		cursor = cursor_at(scan, p);
		p = cursor_next(scan, &cursor);
		*ret_end = p;
		if (*p == '"')
			return cursor;
		*ret_end = NULL;
		if (p == &scan->nothing) {
			fail(scan, scan->end, "");
			return cursor;
		}
		if (*p == '\\') {
			*escaped = true;
			p = escape_skip(scan, p);
			if (p == NULL)
				return cursor;
		} else if (*p < 0x20) {
			fail(scan, p, "control character in a string");
			return cursor;
		} else {
			/* Text in multi-byte characters stays in this loop. */
			do {
				length = vdi_utf8_character(p, (size_t) (scan->end - p));
				if (length == 0) {
					fail(scan, p, "invalid UTF-8 in a string");
					return cursor;
				}
				p += length;
			} while (p < scan->end && *p >= 0x80);
		}
	}
}

/* p is after the opening quote; returns the closing one. *escaped is never cleared. */
ALWAYS_INLINE const uint8_t *string_end(struct scan *scan, struct cursor *cursor, const uint8_t *p,
					bool *escaped)
{
	const uint8_t *mark = cursor_next(scan, cursor);
	const uint8_t *rest_end;
	bool	       rest_escaped = false;

	if (UNLIKELY(mark != p - 1)) /* a line end before the string is marked too */
		mark = cursor_next(scan, cursor);
	if (LIKELY(mark == p - 1)) {
		mark = cursor_next(scan, cursor);
		if (LIKELY(*mark == '"'))
			return mark;
		p = mark == &scan->nothing ? scan->end :
					     /* all bytes before it are plain, and may have left the window */
					     mark;
	}
	*cursor = string_rest(scan, p, &rest_end, &rest_escaped);
	*escaped |= rest_escaped;
	return rest_end;
}

static inline bool is_space(uint8_t character)
{
	return character == ' ' || character == '\n' || character == '\r' || character == '\t';
}

static __attribute__((noinline)) const uint8_t *space_rest(struct scan *scan, const uint8_t *p)
{
	const uint8_t *start = p;

	while (p < scan->end && is_space(*p))
		p++;
	scan->spaced |= p != start;
	return p;
}

ALWAYS_INLINE const uint8_t *space_skip(struct scan *scan, const uint8_t *p, const bool bounded)
{
	return UNLIKELY(PEEK(p) <= ' ') ? space_rest(scan, p) : p;
}

static inline bool is_digit(uint8_t character)
{
	return (uint8_t) (character - '0') < 10;
}

/* p is at the first character. The caller checks what follows. */
ALWAYS_INLINE const uint8_t *number_end(struct scan *scan, const uint8_t *p, const bool bounded)
{
	const uint8_t *start = p;

	if (PEEK(p) == '-')
		p++;
	if (PEEK(p) == '0') {
		p++;
	} else {
		if (!is_digit(PEEK(p)))
			return fail(scan, p, "invalid number");
		while (is_digit(PEEK(p)))
			p++;
	}
	if (PEEK(p) == '.') {
		p++;
		if (!is_digit(PEEK(p)))
			return fail(scan, p, "invalid number");
		while (is_digit(PEEK(p)))
			p++;
	}
	if ((PEEK(p) | 0x20) == 'e') {
		p++;
		if (PEEK(p) == '+' || PEEK(p) == '-')
			p++;
		if (!is_digit(PEEK(p)))
			return fail(scan, p, "invalid number");
		while (is_digit(PEEK(p)))
			p++;
	}
	return is_digit(PEEK(p)) ? fail(scan, start, "a number with a leading zero") : p;
}

ALWAYS_INLINE const uint8_t *literal_end(struct scan *scan, const uint8_t *p, const char *literal,
					 size_t size)
{
	size_t left = (size_t) (scan->end - p);

	if (LIKELY(left >= size) && memcmp(p, literal, size) == 0)
		return p + size;
	return fail(scan, left < size && memcmp(p, literal, left) == 0 ? scan->end : p,
		    "a value was expected");
}

/* Checks one value that starts at p (no white space before it) and returns the position after it. depth: open
 * brackets around it. */
ALWAYS_INLINE const uint8_t *value_body(struct scan *scan, const uint8_t *p, unsigned depth,
					const bool bounded)
{
	const unsigned base = depth;
	struct cursor  local = scan->cursor;
	uint64_t       objects = 0; /* lowest bit: the innermost open bracket is a `{` */
	bool	       escaped = false;

value:
	switch (PEEK(p)) {
	case '"':
		p = string_end(scan, &local, p + 1, &escaped);
		if (UNLIKELY(p == NULL))
			return NULL;
		p++;
		break;
	case '{':
		if (UNLIKELY(depth >= scan->depth_max))
			goto too_deep;
		depth++;
		objects = objects << 1 | 1;
		p = space_skip(scan, p + 1, bounded);
		if (PEEK(p) == '}')
			goto close;
		goto key;
	case '[':
		if (UNLIKELY(depth >= scan->depth_max))
			goto too_deep;
		depth++;
		objects <<= 1;
		p = space_skip(scan, p + 1, bounded);
		if (PEEK(p) == ']')
			goto close;
		goto value;
	case '-':
	case '0':
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
	case '6':
	case '7':
	case '8':
	case '9':
		p = number_end(scan, p, bounded);
		if (UNLIKELY(p == NULL))
			return NULL;
		break;
	case 't':
		p = literal_end(scan, p, "true", 4);
		if (UNLIKELY(p == NULL))
			return NULL;
		break;
	case 'f':
		p = literal_end(scan, p, "false", 5);
		if (UNLIKELY(p == NULL))
			return NULL;
		break;
	case 'n':
		p = literal_end(scan, p, "null", 4);
		if (UNLIKELY(p == NULL))
			return NULL;
		break;
	default: return fail(scan, p, "a value was expected");
	}
	if (depth == base)
		goto done;

after:
	switch (PEEK(p)) {
	case ',':
		p = space_skip(scan, p + 1, bounded);
		if (!(objects & 1))
			goto value;
		goto key;
	case '}':
		if (UNLIKELY(!(objects & 1)))
			return fail(scan, p, "`,` or `]` was expected");
		goto close;
	case ']':
		if (UNLIKELY(objects & 1))
			return fail(scan, p, "`,` or `}` was expected");
		goto close;
	case ' ':
	case '\n':
	case '\r':
	case '\t': p = space_rest(scan, p); goto after;
	default: return fail(scan, p, objects & 1 ? "`,` or `}` was expected" : "`,` or `]` was expected");
	}

key:
	if (UNLIKELY(PEEK(p) != '"'))
		return fail(scan, p, "a key was expected");
	p = string_end(scan, &local, p + 1, &escaped);
	if (UNLIKELY(p == NULL))
		return NULL;
	p++;
	if (UNLIKELY(PEEK(p) != ':')) {
		p = space_skip(scan, p, bounded);
		if (PEEK(p) != ':')
			return fail(scan, p, "`:` was expected");
	}
	p = space_skip(scan, p + 1, bounded);
	if (LIKELY(PEEK(p) == '"')) {
		p = string_end(scan, &local, p + 1, &escaped);
		if (UNLIKELY(p == NULL))
			return NULL;
		p++;
		goto after;
	}
	goto value;

close:
	p++;
	depth--;
	objects >>= 1;
	if (!bounded && UNLIKELY(p >= scan->end) && depth > 0)
		return fail(scan, p, "");
	if (depth != base)
		goto after;

done:
	scan->cursor = local;
	return p;

too_deep:
	fail(scan, p, "too many levels");
	return NULL;
}

static const uint8_t *value_unbounded(struct scan *scan, const uint8_t *p, unsigned depth)
{
	return value_body(scan, p, depth, false);
}

static const uint8_t *value_bounded(struct scan *scan, const uint8_t *p, unsigned depth)
{
	return value_body(scan, p, depth, true);
}

ALWAYS_INLINE uint16_t child_find(const struct scan *scan, const struct vdi_json_node *node,
				  const uint8_t *key, size_t length)
{
	uint16_t child = node->buckets[vdi_json_bucket((const char *) key, length)];

#if WITH_SSE2
	if (LIKELY(length < 16) && LIKELY(scan->end - key >= 16)) {
		/* Compare key and closing quote at once; bytes after the quote do not matter. */
		const __m128i have = _mm_loadu_si128((const __m128i *) (const void *) key);

		for (; child != VDI_JSON_NODE_NONE; child = scan->nodes[child].next) {
			const struct vdi_json_node *candidate = &scan->nodes[child];
			__m128i want = _mm_loadu_si128((const __m128i *) (const void *) candidate->key16);

			if (((unsigned) _mm_movemask_epi8(_mm_cmpeq_epi8(have, want)) |
			     candidate->behind16) == 0xffff &&
			    candidate->key_length == length)
				break;
		}
		return child;
	}
#endif
	for (; child != VDI_JSON_NODE_NONE; child = scan->nodes[child].next)
		if (scan->nodes[child].key_length == length &&
		    memcmp(scan->nodes[child].key, key, length) == 0)
			break;
	return child;
}

/* Finds the child for a key with escapes, in an object where such keys are allowed. */
static __attribute__((noinline)) uint16_t child_find_escaped(const struct scan		*scan,
							     const struct vdi_json_node *node,
							     const uint8_t *key, size_t length)
{
	char   plain[6 * VDI_JSON_PATH_SIZE_MAX];
	size_t size;

	if (length > sizeof plain)
		return VDI_JSON_NODE_NONE;
	size = vdi_json_unescape((struct vd_bytes) { key, length }, plain);
	for (size_t bucket = 0; bucket < VDI_JSON_BUCKETS; bucket++)
		for (uint16_t child = node->buckets[bucket]; child != VDI_JSON_NODE_NONE;
		     child = scan->nodes[child].next)
			if (scan->nodes[child].key_length == size &&
			    memcmp(scan->nodes[child].key, plain, size) == 0)
				return child;
	return VDI_JSON_NODE_NONE;
}

/* Records a key of a strict object whose keys start at seen[first]. False if it is repeated, or if there are
 * too many. */
static bool key_remember(struct scan *scan, size_t first, const uint8_t *key, size_t length)
{
	struct seen_key *seen = scan->seen;
	uint64_t	 print = 0;

	if (LIKELY(key + length - scan->start >= 8)) {
		print = load8(key + length - 8);
		if (length < 8)
			print = length ? print >> (64 - 8 * length) : 0;
	} else {
		memcpy(&print, key, length);
	}
	for (size_t i = first; i < scan->seen_count; i++) {
		if (UNLIKELY(seen[i].print == print && seen[i].length == length) &&
		    (length <= 8 || memcmp(scan->start + seen[i].offset, key, length) == 0)) {
			fail(scan, key - 1, "a key appears twice");
			return false;
		}
	}
	if (scan->seen_count >= VDI_JSON_MEMBERS_MAX) {
		fail(scan, key - 1, "too many members in metadata and the top level");
		return false;
	}
	seen[scan->seen_count++] =
		(struct seen_key) { print, (uint32_t) (key - scan->start), (uint32_t) length };
	return true;
}

static bool label_append(struct scan *scan, const uint8_t *key, size_t key_length,
			 struct vdi_json_value value)
{
	struct vdi_json_object *object = scan->object;

	if (value.type == VDI_JSON_NULL) {
		value.length = 0;
	} else if (value.type != VDI_JSON_STRING) {
		fail(scan, scan->start + value.offset, "the value of a label must be a string");
		return false;
	}
	if (UNLIKELY(object->label_count == object->label_capacity) &&
	    !vdi_grow((void **) &object->labels, &object->label_capacity, object->label_count + (size_t) 1,
		      sizeof *object->labels)) {
		fail(scan, key, "");
		scan->error_status = VD_NOMEM;
		return false;
	}
	object->labels[object->label_count++] =
		(struct vdi_json_label) { { (uint32_t) (key - scan->start), (uint32_t) key_length }, value };
	return true;
}

static uint8_t type_of(uint8_t first)
{
	switch (first) {
	case '{': return VDI_JSON_OBJECT;
	case '[': return VDI_JSON_ARRAY;
	case '"': return VDI_JSON_STRING;
	case 't': return VDI_JSON_TRUE;
	case 'f': return VDI_JSON_FALSE;
	case 'n': return VDI_JSON_NULL;
	default: return VDI_JSON_NUMBER;
	}
}

static const uint8_t *object_unbounded(struct scan *scan, const uint8_t *p, uint16_t number, unsigned depth);
static const uint8_t *object_bounded(struct scan *scan, const uint8_t *p, uint16_t number, unsigned depth);

/* Returns the member resourceVersion, from its key to before p, with the comma that is cut with it: the one
 * after it, else the one before it. */
static __attribute__((noinline)) struct vdi_json_slice resource_version_member(struct scan   *scan,
									       const uint8_t *key,
									       const uint8_t *p)
{
	const uint8_t *from = key - 1;
	const uint8_t *next = space_rest(scan, p);

	if (next < scan->end && *next == ',') {
		p = space_rest(scan, next + 1);
	} else {
		const uint8_t *before = from - 1;

		while (is_space(*before)) /* there is at least the bracket */
			before--;
		if (*before == ',')
			from = before;
	}
	return (struct vdi_json_slice) { (uint32_t) (from - scan->start), (uint32_t) (p - from) };
}

/* Walks the object at p, which is node `number` of the plan. depth: open brackets around it. The recursion is
 * as deep as the plan. */
ALWAYS_INLINE const uint8_t *object_body(struct scan *scan, const uint8_t *p, uint16_t number, unsigned depth,
					 const bool bounded)
{
	const struct vdi_json_node *node = &scan->nodes[number];
	struct vdi_json_object	   *object = scan->object;
	const size_t		    seen_first = scan->seen_count;
	struct cursor		    local = scan->cursor;

	if (UNLIKELY(depth >= scan->depth_max))
		return fail(scan, p, "too many levels");
	p = space_skip(scan, p + 1, bounded);
	if (number == VDI_JSON_METADATA)
		object->metadata_empty = PEEK(p) == '}';
	if (PEEK(p) == '}')
		goto close;
	for (;;) {
		const uint8_t	      *key = p + 1;
		size_t		       key_length;
		bool		       escaped = false;
		uint16_t	       child;
		struct vdi_json_value *value, unknown;

		if (UNLIKELY(PEEK(p) != '"'))
			return fail(scan, p, "a key was expected");
		p = string_end(scan, &local, key, &escaped);
		if (UNLIKELY(p == NULL))
			return NULL;
		key_length = (size_t) (p - key);
		if (LIKELY(!escaped))
			child = child_find(scan, node, key, key_length);
		else if (node->strict)
			return fail(scan, key - 1, "a key with a backslash is not allowed here");
		else
			child = child_find_escaped(scan, node, key, key_length);
		value = &unknown;
		if (child != VDI_JSON_NODE_NONE) {
			value = &object->values[child];
			if (UNLIKELY(value->type != VDI_JSON_ABSENT))
				return fail(scan, key - 1, "a key appears twice");
			if (UNLIKELY(number == VDI_JSON_LABELS) &&
			    !key_remember(scan, seen_first, key, key_length))
				return NULL;
		} else if (node->strict && UNLIKELY(!key_remember(scan, seen_first, key, key_length))) {
			return NULL;
		}
		p = space_skip(scan, p + 1, bounded);
		if (UNLIKELY(PEEK(p) != ':'))
			return fail(scan, p, "`:` was expected");
		p = space_skip(scan, p + 1, bounded);

		if (LIKELY(PEEK(p) == '"')) {
			const uint8_t *text = p + 1;

			escaped = false;
			p = string_end(scan, &local, text, &escaped);
			if (UNLIKELY(p == NULL))
				return NULL;
			*value = (struct vdi_json_value) { (uint32_t) (text - scan->start),
							   (uint32_t) (p - text), VDI_JSON_STRING, escaped };
			p++;
		} else {
			const uint8_t *text = p;
			uint8_t	       type = type_of(PEEK(p));

			scan->cursor = local;
			if (type == VDI_JSON_OBJECT && child != VDI_JSON_NODE_NONE &&
			    scan->nodes[child].inner)
				p = bounded ? object_bounded(scan, p, child, depth + 1) :
					      object_unbounded(scan, p, child, depth + 1);
			else
				p = bounded ? value_bounded(scan, p, depth + 1) :
					      value_unbounded(scan, p, depth + 1);
			local = scan->cursor;
			if (UNLIKELY(p == NULL))
				return NULL;
			*value = (struct vdi_json_value) { (uint32_t) (text - scan->start),
							   (uint32_t) (p - text), type, false };
			if (child == VDI_JSON_METADATA && type == VDI_JSON_OBJECT)
				object->metadata_insert = value->offset + 1;
		}
		if (number == VDI_JSON_LABELS && UNLIKELY(!label_append(scan, key, key_length, *value)))
			return NULL;
		if (UNLIKELY(child == VDI_JSON_RESOURCE_VERSION))
			object->resource_version_member = resource_version_member(scan, key, p);

		p = space_skip(scan, p, bounded);
		if (UNLIKELY(PEEK(p) != ','))
			break;
		p = space_skip(scan, p + 1, bounded);
	}
	if (UNLIKELY(PEEK(p) != '}'))
		return fail(scan, p, "`,` or `}` was expected");
close:
	p++;
	if (!bounded && UNLIKELY(p >= scan->end) && depth > 0)
		return fail(scan, p, "");
	scan->seen_count = seen_first;
	scan->cursor = local;
	return p;
}

static const uint8_t *object_unbounded(struct scan *scan, const uint8_t *p, uint16_t number, unsigned depth)
{
	return object_body(scan, p, number, depth, false);
}

static const uint8_t *object_bounded(struct scan *scan, const uint8_t *p, uint16_t number, unsigned depth)
{
	return object_body(scan, p, number, depth, true);
}

static vd_status too_big(size_t size, size_t size_max, struct vd_error *reterr)
{
	return vd_error_set(reterr, VD_TOO_BIG, "JSON of %zu bytes is larger than the limit of %zu", size,
			    size_max);
}

/* Initializes scan for json without the white space around it; *ret_bounded: which copies of the functions to
 * use. */
static vd_status scan_begin(struct scan *scan, struct vd_bytes json, const struct vdi_json_limits *limits,
			    bool *ret_bounded, struct vd_error *reterr)
{
	static const struct vdi_json_limits limits_default = VDI_JSON_LIMITS_DEFAULT;
	size_t				    size_max;

	if (limits == NULL)
		limits = &limits_default;
	size_max = VDI_MIN(limits->size_max, (size_t) UINT32_MAX - 1);
	if (json.size > size_max)
		return too_big(json.size, size_max, reterr);
	if (json.size == 0)
		return vd_error_set(reterr, VD_BAD_REQUEST, "invalid JSON at byte 0: unexpected end");
	scan->start = json.data;
	scan->end = scan->start + json.size;
	while (scan->end > scan->start && is_space(scan->end[-1]))
		scan->end--;
	scan->spaced = scan->end != scan->start + json.size;
	scan->nothing = 0;
	scan->depth_max = VDI_MIN(limits->depth_max, (unsigned) VDI_JSON_DEPTH_MAX);
	scan->nodes = NULL;
	scan->object = NULL;
	scan->error = NULL;
	scan->seen_count = 0;
	window_fill(scan, scan->start);
	scan->cursor = cursor_at(scan, scan->start);
	*ret_bounded = scan->end == scan->start || (scan->end[-1] != '}' && scan->end[-1] != ']');
	return VD_OK;
}

/* p: position after the document, NULL after an error. */
static vd_status scan_end(struct scan *scan, const uint8_t *p, struct vd_error *reterr)
{
	if (p)
		p = space_rest(scan, p);
	if (p && p != scan->end)
		fail(scan, p, "text after the end of the value");
	else if (p)
		return VD_OK;
	if (scan->error_status == VD_NOMEM)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	return vd_error_set(reterr, scan->error_status, "invalid JSON at byte %zu: %s",
			    (size_t) (scan->error_at - scan->start), scan->error);
}

vd_status vdi_json_validate(struct vd_bytes json, const struct vdi_json_limits *limits,
			    struct vd_error *reterr)
{
	bool spaced;

	return vdi_json_validate_spaced(json, limits, &spaced, reterr);
}

vd_status vdi_json_validate_spaced(struct vd_bytes json, const struct vdi_json_limits *limits,
				   bool *ret_spaced, struct vd_error *reterr)
{
	struct scan    scan;
	bool	       bounded = false; /* the compiler does not see that scan_begin always sets it */
	const uint8_t *p;

	VDI_TRY(scan_begin(&scan, json, limits, &bounded, reterr));
	p = space_rest(&scan, scan.start);
	/* Unbounded text has at least a bracket, so its first byte is not the end. */
	p = bounded ? value_bounded(&scan, p, 0) : value_unbounded(&scan, p, 0);
	VDI_TRY(scan_end(&scan, p, reterr));
	*ret_spaced = scan.spaced;
	return VD_OK;
}

static void object_clear(struct vdi_json_object *object)
{
	memset(object->values, 0, object->plan->node_count * sizeof *object->values);
	object->label_count = 0;
	object->metadata_insert = 0;
	object->metadata_empty = false;
	object->spaced = false;
	object->resource_version_member = (struct vdi_json_slice) { 0, 0 };
}

vd_status vdi_json_scan(struct vd_bytes json, const struct vdi_json_limits *limits,
			struct vdi_json_object *object, struct vd_error *reterr)
{
	struct scan    scan;
	bool	       bounded = false; /* the compiler does not see that scan_begin always sets it */
	const uint8_t *p;
	vd_status      status;

	object_clear(object);
	VDI_TRY(scan_begin(&scan, json, limits, &bounded, reterr));
	scan.object = object;
	scan.nodes = object->plan->nodes;
	p = space_rest(&scan, scan.start);
	if (p < scan.end && *p != '{')
		p = fail(&scan, p, "an object was expected");
	else if (p >= scan.end)
		p = fail(&scan, p, "");
	else
		p = bounded ? object_bounded(&scan, p, VDI_JSON_NODE_ROOT, 0) :
			      object_unbounded(&scan, p, VDI_JSON_NODE_ROOT, 0);
	status = scan_end(&scan, p, reterr);
	if (status != VD_OK)
		object_clear(object);
	object->spaced = scan.spaced;
	return status;
}
