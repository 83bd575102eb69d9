/* Parses regular expressions into a tree of parts, as Go's regexp/syntax does with its Perl flags, with the
 * same error messages. */
#include <stdlib.h>

#include "pattern_parts.h"

#define REPEAT_MAX 1000

enum { FLAG_FOLD = 1, FLAG_LINES = 2, FLAG_DOT_ALL = 4 };

struct parser {
	const char		 *begin;
	const char		 *at;
	const char		 *end;
	struct vdi_pattern_parts *parts;
	/* the sequence before the part just read, which an operator does not repeat; or VDI_PATTERN_NONE */
	uint32_t	 prefix;
	unsigned	 flags;
	unsigned	 depth;
	bool		 no_memory;
	struct vd_error *error;
};

static vd_status fault(struct parser *parser, const char *what, const char *from, const char *to)
{
	return vd_error_set(parser->error, VD_INVALID, "error parsing regexp: %s: `%.*s`", what,
			    (int) VDI_MIN(to - from, (ptrdiff_t) 200), from);
}

static vd_status no_memory(struct parser *parser)
{
	return vd_error_set(parser->error, VD_NOMEM, "%s", vd_status_sentence(VD_NOMEM));
}

static vd_status new_part(struct parser *parser, enum vdi_pattern_part_kind kind, uint32_t a, uint32_t b,
			  uint32_t *ret_part)
{
	if (!vdi_grow((void **) &parser->parts->items, &parser->parts->capacity, parser->parts->count + 1,
		      sizeof *parser->parts->items))
		return no_memory(parser);
	parser->parts->items[parser->parts->count] = (struct vdi_pattern_part) { (uint8_t) kind, a, b, 0, 0 };
	*ret_part = (uint32_t) parser->parts->count++;
	return VD_OK;
}

static bool add_range(struct parser *parser, uint32_t from, uint32_t to)
{
	struct vdi_pattern_parts *parts = parser->parts;

	if (!vdi_grow((void **) &parts->ranges, &parts->range_capacity, parts->range_count + 1,
		      sizeof *parts->ranges)) {
		parser->no_memory = true;
		return false;
	}
	parts->ranges[parts->range_count++] = (struct vdi_pattern_range) { from, to };
	return true;
}

/* Adds a range; with the flag i also the other case of its ASCII letters. */
static void add_folded(struct parser *parser, uint32_t from, uint32_t to)
{
	uint32_t low, high;

	if (!add_range(parser, from, to) || !(parser->flags & FLAG_FOLD))
		return;
	low = VDI_MAX(from, (uint32_t) 'a');
	high = VDI_MIN(to, (uint32_t) 'z');
	if (low <= high)
		(void) add_range(parser, low - 32, high - 32);
	low = VDI_MAX(from, (uint32_t) 'A');
	high = VDI_MIN(to, (uint32_t) 'Z');
	if (low <= high)
		(void) add_range(parser, low + 32, high + 32);
}

static int compare_ranges(const void *a, const void *b)
{
	const struct vdi_pattern_range *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* Sorts the ranges from first on and joins adjacent ones. */
static void tidy(struct vdi_pattern_parts *parts, size_t first)
{
	size_t kept = first;

	qsort(parts->ranges + first, parts->range_count - first, sizeof *parts->ranges, compare_ranges);
	for (size_t i = first; i < parts->range_count; i++) {
		if (kept > first && parts->ranges[i].from <= parts->ranges[kept - 1].to + 1)
			parts->ranges[kept - 1].to = VDI_MAX(parts->ranges[kept - 1].to, parts->ranges[i].to);
		else
			parts->ranges[kept++] = parts->ranges[i];
	}
	parts->range_count = kept;
}

/* Replaces the ranges from first on by their complement. */
static void negate(struct parser *parser, size_t first)
{
	struct vdi_pattern_parts *parts = parser->parts;
	size_t			  last;
	uint32_t		  from = 0;

	tidy(parts, first);
	last = parts->range_count;
	for (size_t i = first; i < last; i++) {
		struct vdi_pattern_range range = parts->ranges[i];

		if (range.from > from && !add_range(parser, from, range.from - 1))
			return;
		from = range.to + 1;
	}
	if (from <= VDI_PATTERN_RUNE_MAX && !add_range(parser, from, VDI_PATTERN_RUNE_MAX))
		return;
	memmove(parts->ranges + first, parts->ranges + last,
		(parts->range_count - last) * sizeof *parts->ranges);
	parts->range_count -= last - first;
}

uint32_t vdi_pattern_rune(const char **at, const char *end)
{
	const unsigned char *from = (const unsigned char *) *at;
	size_t		     left = (size_t) (end - *at);

	if (from[0] < 0x80 || left < 2) {
		*at += 1;
		return from[0];
	}
	if (from[0] < 0xE0 || left < 3) {
		*at += 2;
		return (uint32_t) (from[0] & 0x1F) << 6 | (from[1] & 0x3F);
	}
	if (from[0] < 0xF0 || left < 4) {
		*at += 3;
		return (uint32_t) (from[0] & 0x0F) << 12 | (uint32_t) (from[1] & 0x3F) << 6 |
		       (from[2] & 0x3F);
	}
	*at += 4;
	return (uint32_t) (from[0] & 0x07) << 18 | (uint32_t) (from[1] & 0x3F) << 12 |
	       (uint32_t) (from[2] & 0x3F) << 6 | (from[3] & 0x3F);
}

static bool is_alnum(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

static int hex_of(char c)
{
	return c >= '0' && c <= '9' ? c - '0' :
	       c >= 'a' && c <= 'f' ? c - 'a' + 10 :
	       c >= 'A' && c <= 'F' ? c - 'A' + 10 :
				      -1;
}

/* Takes one character. Also takes a character that is no digit, because Go's message shows it. */
static bool take_hex_digit(struct parser *parser, uint32_t *value)
{
	uint32_t rune;

	if (parser->at == parser->end)
		return false;
	rune = vdi_pattern_rune(&parser->at, parser->end);
	if (rune >= 0x80 || hex_of((char) rune) < 0)
		return false;
	*value = *value * 16 + (uint32_t) hex_of((char) rune);
	return *value <= VDI_PATTERN_RUNE_MAX;
}

/* Reads \x7F or \x{10FFFF}; at is behind the x. */
static bool read_hex(struct parser *parser, uint32_t *ret_rune)
{
	bool good;

	*ret_rune = 0;
	if (parser->at == parser->end || *parser->at != '{') {
		good = take_hex_digit(parser, ret_rune);
		return take_hex_digit(parser, ret_rune) && good;
	}
	parser->at++;
	do {
		if (!take_hex_digit(parser, ret_rune))
			return false;
	} while (parser->at < parser->end && *parser->at != '}');
	if (parser->at == parser->end)
		return false;
	parser->at++;
	return true;
}

/* Reads a single character escaped by a backslash; at is on the backslash. */
static vd_status read_escape(struct parser *parser, uint32_t *ret_rune)
{
	const char *from = parser->at++;
	char	    c;

	if (parser->at == parser->end)
		return fault(parser, "trailing backslash at end of expression", from, from);
	c = *parser->at++;
	switch (c) {
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
	case '6':
	case '7':
		/* Go: a single non-zero digit is a back reference, which is not supported. */
		if (parser->at == parser->end || *parser->at < '0' || *parser->at > '7')
			break;
		/* fall through */
	case '0':
		*ret_rune = (uint32_t) (c - '0');
		for (int i = 1; i < 3 && parser->at < parser->end && *parser->at >= '0' && *parser->at <= '7';
		     i++)
			*ret_rune = *ret_rune * 8 + (uint32_t) (*parser->at++ - '0');
		return VD_OK;
	case 'x':
		if (read_hex(parser, ret_rune))
			return VD_OK;
		break;
	case 'a': *ret_rune = '\a'; return VD_OK;
	case 'f': *ret_rune = '\f'; return VD_OK;
	case 'n': *ret_rune = '\n'; return VD_OK;
	case 'r': *ret_rune = '\r'; return VD_OK;
	case 't': *ret_rune = '\t'; return VD_OK;
	case 'v': *ret_rune = '\v'; return VD_OK;
	default:
		if ((unsigned char) c < 0x80 && !is_alnum(c)) {
			*ret_rune = (unsigned char) c;
			return VD_OK;
		}
		if ((unsigned char) c >= 0x80) {
			parser->at--;
			(void) vdi_pattern_rune(&parser->at, parser->end);
		}
	}
	return fault(parser, "invalid escape sequence", from, parser->at);
}

struct named {
	const char		*name;
	struct vdi_pattern_range ranges[16];
};

static const struct named perl_classes[] = {
	{ "d", { { '0', '9' } } },
	{ "s", { { '\t', '\n' }, { '\f', '\r' }, { ' ', ' ' } } },
	{ "w", { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } } },
};

static const struct named posix_classes[] = {
	{ "alnum", { { '0', '9' }, { 'A', 'Z' }, { 'a', 'z' } } },
	{ "alpha", { { 'A', 'Z' }, { 'a', 'z' } } },
	{ "ascii", { { 0, 0x7F } } },
	{ "blank", { { '\t', '\t' }, { ' ', ' ' } } },
	{ "cntrl", { { 0, 0x1F }, { 0x7F, 0x7F } } },
	{ "digit", { { '0', '9' } } },
	{ "graph", { { '!', '~' } } },
	{ "lower", { { 'a', 'z' } } },
	{ "print", { { ' ', '~' } } },
	{ "punct", { { '!', '/' }, { ':', '@' }, { '[', '`' }, { '{', '~' } } },
	{ "space", { { '\t', '\r' }, { ' ', ' ' } } },
	{ "upper", { { 'A', 'Z' } } },
	{ "word", { { '0', '9' }, { 'A', 'Z' }, { '_', '_' }, { 'a', 'z' } } },
	{ "xdigit", { { '0', '9' }, { 'A', 'F' }, { 'a', 'f' } } },
};

static void add_class(struct parser *parser, const struct named *class, bool negated)
{
	struct vdi_pattern_parts *parts = parser->parts;
	size_t			  first = parts->range_count;

	for (size_t i = 0; i < VDI_ARRAY_SIZE(class->ranges) && (class->ranges[i].to || i == 0); i++)
		add_folded(parser, class->ranges[i].from, class->ranges[i].to);
	if (negated && !parser->no_memory)
		negate(parser, first);
}

/* Reads \d, \s, \w and their negations; at is on the backslash. */
static bool take_perl_class(struct parser *parser)
{
	if (parser->end - parser->at < 2 || parser->at[0] != '\\')
		return false;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(perl_classes); i++) {
		if ((parser->at[1] | 0x20) != perl_classes[i].name[0] || !is_alnum(parser->at[1]))
			continue;
		add_class(parser, &perl_classes[i], parser->at[1] < 'a');
		parser->at += 2;
		return true;
	}
	return false;
}

/* Reads [:alpha:] and the like; at is on its bracket. */
static vd_status take_posix_class(struct parser *parser, bool *ret_taken)
{
	const char *from = parser->at, *name = from + 2, *close;
	bool	    negated;

	*ret_taken = false;
	if (parser->end - from < 4 || from[1] != ':')
		return VD_OK;
	close = memmem(name, (size_t) (parser->end - name), ":]", 2);
	if (close == NULL)
		return VD_OK;
	negated = *name == '^';
	name += negated;
	parser->at = close + 2;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(posix_classes); i++) {
		if (!vd_bytes_equal((struct vd_bytes) { name, (size_t) (close - name) },
				    vd_bytes_of(posix_classes[i].name)))
			continue;
		add_class(parser, &posix_classes[i], negated);
		*ret_taken = true;
		return VD_OK;
	}
	return fault(parser, "invalid character class range", from, parser->at);
}

static vd_status refuse_unicode_class(struct parser *parser)
{
	const char *from = parser->at, *to = VDI_MIN(from + 3, parser->end);

	if (parser->end - from > 2 && from[2] == '{') {
		const char *close = memchr(from, '}', (size_t) (parser->end - from));

		to = close ? close + 1 : parser->end;
	}
	return fault(parser,
		     "invalid character class range (Unicode classes are not supported by this server)", from,
		     to);
}

static bool is_unicode_class(const struct parser *parser)
{
	return parser->end - parser->at >= 2 && parser->at[0] == '\\' &&
	       (parser->at[1] == 'p' || parser->at[1] == 'P');
}

/* At least one byte is left. */
static vd_status read_class_rune(struct parser *parser, uint32_t *ret_rune)
{
	if (*parser->at == '\\')
		return read_escape(parser, ret_rune);
	*ret_rune = vdi_pattern_rune(&parser->at, parser->end);
	return VD_OK;
}

static vd_status read_class(struct parser *parser, uint32_t *ret_part)
{
	struct vdi_pattern_parts *parts = parser->parts;
	const char		 *from = parser->at++;
	size_t			  first = parts->range_count;
	bool			  negated = parser->at < parser->end && *parser->at == '^', taken;

	parser->at += negated;
	for (bool begin = true; parser->at == parser->end || *parser->at != ']' || begin; begin = false) {
		const char *range_from = parser->at;
		uint32_t    low, high;

		/* Go: in a Perl class an unescaped '-' is allowed anywhere. */
		if (parser->at == parser->end)
			return fault(parser, "missing closing ]", from, parser->end);
		if (*parser->at == '[') {
			VDI_TRY(take_posix_class(parser, &taken));
			if (taken)
				continue;
		}
		if (is_unicode_class(parser))
			return refuse_unicode_class(parser);
		if (take_perl_class(parser))
			continue;
		VDI_TRY(read_class_rune(parser, &low));
		high = low;
		if (parser->end - parser->at >= 2 && parser->at[0] == '-' && parser->at[1] != ']') {
			parser->at++;
			VDI_TRY(read_class_rune(parser, &high));
			if (high < low)
				return fault(parser, "invalid character class range", range_from, parser->at);
		}
		add_folded(parser, low, high);
	}
	parser->at++;
	if (negated && !parser->no_memory)
		negate(parser, first);
	if (parser->no_memory)
		return no_memory(parser);
	tidy(parts, first);
	return new_part(parser, VDI_PART_SET, (uint32_t) first, (uint32_t) parts->range_count, ret_part);
}

static vd_status set_part(struct parser *parser, size_t first, uint32_t *ret_part)
{
	if (parser->no_memory)
		return no_memory(parser);
	tidy(parser->parts, first);
	return new_part(parser, VDI_PART_SET, (uint32_t) first, (uint32_t) parser->parts->range_count,
			ret_part);
}

static vd_status rune_part(struct parser *parser, uint32_t rune, uint32_t *ret_part)
{
	size_t first = parser->parts->range_count;

	add_folded(parser, rune, rune);
	return set_part(parser, first, ret_part);
}

static vd_status read_alternatives(struct parser *parser, uint32_t *ret_part);

static bool is_group_name(const char *from, const char *to)
{
	if (from == to)
		return false;
	for (; from < to; from++)
		if (!is_alnum(*from) && *from != '_')
			return false;
	return true;
}

/* Reads behind `(?`: a name, or flags up to `:` or `)`. *ret_group: a group follows. */
static vd_status read_flags(struct parser *parser, bool *ret_group)
{
	const char *from = parser->at - 2;
	unsigned    flags = parser->flags;
	bool	    off = false, any = false;

	*ret_group = true;
	if (parser->at < parser->end &&
	    (*parser->at == '<' ||
	     (*parser->at == 'P' && parser->end - parser->at > 1 && parser->at[1] == '<'))) {
		const char *name = parser->at + 1 + (*parser->at == 'P'),
			   *close = memchr(name, '>', (size_t) (parser->end - name));

		if (name < parser->end && (*name == '=' || *name == '!'))
			return fault(parser, "invalid or unsupported Perl syntax", from, name);
		if (close == NULL || !is_group_name(name, close))
			return fault(parser, "invalid named capture", from, close ? close + 1 : parser->end);
		parser->at = close + 1;
		return VD_OK;
	}
	while (parser->at < parser->end) {
		unsigned flag = 0;

		switch (*parser->at++) {
		case 'i': flag = FLAG_FOLD; break;
		case 'm': flag = FLAG_LINES; break;
		case 's': flag = FLAG_DOT_ALL; break;
		case 'U': any = true; continue;
		case '-':
			if (off)
				return fault(parser, "invalid or unsupported Perl syntax", from, parser->at);
			off = true;
			any = false;
			continue;
		case ':':
		case ')':
			if (off && !any)
				return fault(parser, "invalid or unsupported Perl syntax", from, parser->at);
			*ret_group = parser->at[-1] == ':';
			parser->flags = flags;
			return VD_OK;
		default:
			parser->at--;
			(void) vdi_pattern_rune(&parser->at, parser->end);
			return fault(parser, "invalid or unsupported Perl syntax", from, parser->at);
		}
		any = true;
		flags = off ? flags & ~flag : flags | flag;
	}
	return fault(parser, "invalid or unsupported Perl syntax", from, parser->end);
}

static vd_status read_group(struct parser *parser, uint32_t *ret_part, bool *ret_nothing)
{
	const char *from = parser->at++;
	unsigned    flags = parser->flags;
	bool	    group = true;

	if (parser->at < parser->end && *parser->at == '?') {
		parser->at++;
		VDI_TRY(read_flags(parser, &group));
	}
	if (!group) { /* the flags apply until the enclosing group ends */
		*ret_nothing = true;
		return VD_OK;
	}
	if (++parser->depth > VDI_PATTERN_DEPTH_MAX)
		return fault(parser, "expression nests too deeply", from, parser->end);
	VDI_TRY(read_alternatives(parser, ret_part));
	parser->depth--;
	if (parser->at == parser->end)
		return fault(parser, "missing closing )", parser->begin, parser->end);
	parser->at++;
	parser->flags = flags;
	return VD_OK;
}

/* Appends part to *sequence, which may be VDI_PATTERN_NONE. */
static vd_status join(struct parser *parser, uint32_t *sequence, uint32_t part)
{
	if (*sequence != VDI_PATTERN_NONE)
		return new_part(parser, VDI_PART_CAT, *sequence, part, sequence);
	*sequence = part;
	return VD_OK;
}

/* Reads \Q...\E; an operator behind it applies to its last character. */
static vd_status read_literal(struct parser *parser, uint32_t *ret_part, bool *ret_nothing)
{
	const char *from = parser->at + 2;
	const char *close = memmem(from, (size_t) (parser->end - from), "\\E", 2);
	const char *end = close ? close : parser->end;
	uint32_t    part = VDI_PATTERN_NONE;

	*ret_nothing = from == end;
	while (from < end) {
		if (part != VDI_PATTERN_NONE)
			VDI_TRY(join(parser, &parser->prefix, part));
		VDI_TRY(rune_part(parser, vdi_pattern_rune(&from, end), &part));
	}
	parser->at = close ? close + 2 : parser->end;
	*ret_part = part;
	return VD_OK;
}

static vd_status read_backslash(struct parser *parser, uint32_t *ret_part, bool *ret_nothing)
{
	static const char letters[] = { 'A', 'z', 'b', 'B' };
	static const int  kinds[] = { VDI_ASSERT_TEXT_BEGIN, VDI_ASSERT_TEXT_END, VDI_ASSERT_WORD,
				      VDI_ASSERT_NO_WORD };
	size_t		  first = parser->parts->range_count;
	uint32_t	  rune;

	if (parser->end - parser->at >= 2) {
		for (size_t i = 0; i < VDI_ARRAY_SIZE(letters); i++)
			if (parser->at[1] == letters[i]) {
				parser->at += 2;
				return new_part(parser, VDI_PART_ASSERT, (uint32_t) kinds[i], 0, ret_part);
			}
		if (parser->at[1] == 'Q')
			return read_literal(parser, ret_part, ret_nothing);
		if (is_unicode_class(parser))
			return refuse_unicode_class(parser);
		if (take_perl_class(parser))
			return set_part(parser, first, ret_part);
	}
	VDI_TRY(read_escape(parser, &rune));
	return rune_part(parser, rune, ret_part);
}

/* Reads one part that can be repeated. *ret_nothing: flags were read, which are no part. */
static vd_status read_atom(struct parser *parser, uint32_t *ret_part, bool *ret_nothing)
{
	size_t first = parser->parts->range_count;
	bool   lines = parser->flags & FLAG_LINES;

	*ret_nothing = false;
	switch (*parser->at) {
	case '(': return read_group(parser, ret_part, ret_nothing);
	case '[': return read_class(parser, ret_part);
	case '\\': return read_backslash(parser, ret_part, ret_nothing);
	case '^':
		parser->at++;
		return new_part(parser, VDI_PART_ASSERT,
				lines ? VDI_ASSERT_LINE_BEGIN : VDI_ASSERT_TEXT_BEGIN, 0, ret_part);
	case '$':
		parser->at++;
		return new_part(parser, VDI_PART_ASSERT, lines ? VDI_ASSERT_LINE_END : VDI_ASSERT_TEXT_END, 0,
				ret_part);
	case '.':
		parser->at++;
		if (parser->flags & FLAG_DOT_ALL)
			(void) add_range(parser, 0, VDI_PATTERN_RUNE_MAX);
		else if (add_range(parser, 0, '\n' - 1))
			(void) add_range(parser, '\n' + 1, VDI_PATTERN_RUNE_MAX);
		return set_part(parser, first, ret_part);
	default: return rune_part(parser, vdi_pattern_rune(&parser->at, parser->end), ret_part);
	}
}

/* Reads `{2}`, `{2,}` or `{2,3}`; false: the brace is an ordinary character. */
static bool read_bounds(struct parser *parser, int *ret_min, int *ret_max)
{
	const char *at = parser->at + 1;
	int	    numbers[2] = { 0, -1 }, count = 0;

	for (int i = 0; i < 2; i++) {
		const char *digits = at;

		for (; at < parser->end && *at >= '0' && *at <= '9'; at++)
			numbers[i] =
				VDI_MIN((numbers[i] < 0 ? 0 : numbers[i]) * 10 + (*at - '0'), REPEAT_MAX + 1);
		if (at == digits && i == 0)
			return false;
		if (at - digits > 1 && *digits == '0')
			return false;
		count++;
		if (i == 0 && at < parser->end && *at == ',')
			at++;
		else
			break;
	}
	if (at == parser->end || *at != '}')
		return false;
	parser->at = at + 1;
	*ret_min = numbers[0];
	*ret_max = count == 1 ? numbers[0] : numbers[1];
	return true;
}

/* Reads an operator; false if there is none. */
static bool read_operator(struct parser *parser, int *ret_min, int *ret_max)
{
	if (parser->at == parser->end)
		return false;
	switch (*parser->at) {
	case '*': *ret_min = 0, *ret_max = -1; break;
	case '+': *ret_min = 1, *ret_max = -1; break;
	case '?': *ret_min = 0, *ret_max = 1; break;
	case '{': return read_bounds(parser, ret_min, ret_max);
	default: return false;
	}
	parser->at++;
	return true;
}

/* Reads the operators behind a part; as in Go, flags may come between part and operator. */
static vd_status read_repeated(struct parser *parser, uint32_t *part)
{
	const char *last = NULL;
	int	    min, max;

	for (;;) {
		const char *from = parser->at;

		if (!read_operator(parser, &min, &max))
			return VD_OK;
		if (min > REPEAT_MAX || max > REPEAT_MAX || (max >= 0 && max < min))
			return fault(parser, "invalid repeat count", from, parser->at);
		if (parser->at < parser->end && *parser->at == '?')
			/* non-greedy: makes no difference to the question whether there is a match */
			parser->at++;
		if (*part == VDI_PATTERN_NONE)
			return fault(parser, "missing argument to repetition operator", from, parser->at);
		if (last)
			return fault(parser, "invalid nested repetition operator", last, parser->at);
		last = from;
		VDI_TRY(new_part(parser, VDI_PART_REPEAT, *part, 0, part));
		parser->parts->items[*part].min = min;
		parser->parts->items[*part].max = max;
	}
}

static vd_status read_sequence(struct parser *parser, uint32_t *ret_part)
{
	uint32_t sequence = VDI_PATTERN_NONE, last = VDI_PATTERN_NONE, part = VDI_PATTERN_NONE;
	bool	 nothing;

	VDI_TRY(read_repeated(parser, &last));
	while (parser->at < parser->end && *parser->at != '|' && *parser->at != ')') {
		VDI_TRY(read_atom(parser, &part, &nothing));
		if (!nothing) {
			if (last != VDI_PATTERN_NONE)
				VDI_TRY(join(parser, &sequence, last));
			if (parser->prefix != VDI_PATTERN_NONE)
				VDI_TRY(join(parser, &sequence, parser->prefix));
			parser->prefix = VDI_PATTERN_NONE;
			last = part;
		}
		VDI_TRY(read_repeated(parser, &last));
	}
	if (last == VDI_PATTERN_NONE)
		return new_part(parser, VDI_PART_EMPTY, 0, 0, ret_part);
	VDI_TRY(join(parser, &sequence, last));
	*ret_part = sequence;
	return VD_OK;
}

static vd_status read_alternatives(struct parser *parser, uint32_t *ret_part)
{
	uint32_t part, next;

	VDI_TRY(read_sequence(parser, &part));
	while (parser->at < parser->end && *parser->at == '|') {
		parser->at++;
		VDI_TRY(read_sequence(parser, &next));
		VDI_TRY(new_part(parser, VDI_PART_ALT, part, next, &part));
	}
	*ret_part = part;
	return VD_OK;
}

vd_status vdi_pattern_read(struct vd_bytes text, struct vdi_pattern_parts *parts, struct vd_error *reterr)
{
	struct parser parser = {
		.at = text.size ? text.data : "", .parts = parts, .prefix = VDI_PATTERN_NONE, .error = reterr
	};

	parser.begin = parser.at;
	parser.end = parser.at + text.size;
	if (text.size > VDI_PATTERN_SIZE_MAX)
		return vd_error_set(reterr, VD_INVALID, "error parsing regexp: expression too large");
	VDI_TRY(read_alternatives(&parser, &parts->root));
	if (parser.at < parser.end)
		return fault(&parser, "unexpected )", parser.begin, parser.end);
	return VD_OK;
}
