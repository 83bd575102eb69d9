/* Strings and white space of JSON. Plain byte loops, because events do not use them: their strings are
 * compared as they are, and their white space was removed on ingest. */
#include "json_text.h"

static int hex_digit(uint8_t character)
{
	if (character >= '0' && character <= '9')
		return character - '0';
	character |= 0x20;
	return character >= 'a' && character <= 'f' ? character - 'a' + 10 : -1;
}

/* Returns the code unit after "\u" at text, or -1. */
static int32_t hex_unit(const uint8_t *text, size_t size)
{
	int32_t unit = 0;

	if (size < 4)
		return -1;
	for (size_t i = 0; i < 4; i++) {
		int digit = hex_digit(text[i]);

		if (digit < 0)
			return -1;
		unit = unit << 4 | digit;
	}
	return unit;
}

size_t vdi_json_unescape(struct vd_bytes text, void *ret_text)
{
	const uint8_t *in = text.data;
	uint8_t	      *out = ret_text;
	size_t	       written = 0;

	for (size_t i = 0; i < text.size;) {
		int32_t unit;
		int32_t low;

		if (in[i] != '\\' || i + 1 >= text.size) {
			out[written++] = in[i++];
			continue;
		}
		switch (in[i + 1]) {
		case 'b':
			out[written++] = '\b';
			i += 2;
			continue;
		case 'f':
			out[written++] = '\f';
			i += 2;
			continue;
		case 'n':
			out[written++] = '\n';
			i += 2;
			continue;
		case 'r':
			out[written++] = '\r';
			i += 2;
			continue;
		case 't':
			out[written++] = '\t';
			i += 2;
			continue;
		case 'u': break;
		default:
			out[written++] = in[i + 1];
			i += 2;
			continue;
		}
		unit = hex_unit(in + i + 2, text.size - i - 2);
		if (unit < 0) {
			out[written++] = in[i++];
			continue;
		}
		i += 6;
		if (unit >= 0xD800 && unit < 0xDC00 && i + 6 <= text.size && in[i] == '\\' &&
		    in[i + 1] == 'u') {
			low = hex_unit(in + i + 2, 4);
			if (low >= 0xDC00 && low < 0xE000) {
				unit = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
				i += 6;
			}
		}
		written += vdi_utf8_put(out + written, (uint32_t) unit);
	}
	return written;
}

static size_t put_unit(uint8_t *out, uint32_t unit)
{
	static const char digits[] = "0123456789abcdef";

	out[0] = '\\';
	out[1] = 'u';
	out[2] = (uint8_t) digits[unit >> 12 & 15];
	out[3] = (uint8_t) digits[unit >> 8 & 15];
	out[4] = (uint8_t) digits[unit >> 4 & 15];
	out[5] = (uint8_t) digits[unit & 15];
	return 6;
}

/* Returns the letter of a character's short escape, else 0. */
static uint8_t short_escape(uint8_t character)
{
	switch (character) {
	case '"':
	case '\\': return character;
	case '\b': return 'b';
	case '\f': return 'f';
	case '\n': return 'n';
	case '\r': return 'r';
	case '\t': return 't';
	default: return 0;
	}
}

size_t vdi_json_quote(struct vd_bytes text, void *ret_text)
{
	const uint8_t *in = text.data;
	uint8_t	      *out = ret_text;
	size_t	       written = 0;
	size_t	       length;

	out[written++] = '"';
	for (size_t i = 0; i < text.size; i += length) {
		uint8_t letter = short_escape(in[i]);

		length = 1;
		if (letter) {
			out[written++] = '\\';
			out[written++] = letter;
		} else if (in[i] < 0x20 || in[i] == '<' || in[i] == '>' || in[i] == '&') {
			written += put_unit(out + written, in[i]);
		} else if (in[i] < 0x80) {
			out[written++] = in[i];
		} else {
			length = vdi_utf8_character(in + i, text.size - i);
			if (length == 0) {
				written += put_unit(out + written, 0xFFFD);
				length = 1;
			} else if (length == 3 && in[i] == 0xE2 && in[i + 1] == 0x80 &&
				   (in[i + 2] | 1) == 0xA9) {
				written += put_unit(out + written, 0x2000u | (in[i + 2] & 0x3F));
			} else {
				memcpy(out + written, in + i, length);
				written += length;
			}
		}
	}
	out[written++] = '"';
	return written;
}

size_t vdi_json_minify(struct vd_bytes json, void *ret_json)
{
	const uint8_t *in = json.data;
	uint8_t	      *out = ret_json;
	size_t	       written = 0;
	size_t	       i = 0;

	while (i < json.size) {
		size_t start = i;

		/* Move everything up to the next white space outside a string in one piece. */
		while (i < json.size && in[i] != ' ' && in[i] != '\n' && in[i] != '\r' && in[i] != '\t') {
			if (in[i++] != '"')
				continue;
			while (i < json.size && in[i] != '"')
				i += in[i] == '\\' ? 2 : 1;
			i++;
		}
		i = VDI_MIN(i, json.size);
		if (i > start && out + written != in + start)
			memmove(out + written, in + start, i - start);
		written += i - start;
		while (i < json.size && (in[i] == ' ' || in[i] == '\n' || in[i] == '\r' || in[i] == '\t'))
			i++;
	}
	return written;
}
