/* UTF-8 as RFC 3629 defines it: no surrogates, nothing overlong, nothing above U+10FFFF. */
#include "utf8.h"

size_t vdi_utf8_character(const void *text, size_t size)
{
	const uint8_t *in = text;
	uint8_t	       lead = in[0];
	uint8_t	       least = 0x80; /* of the second byte */
	uint8_t	       most = 0xBF;
	size_t	       length;

	if (lead < 0x80)
		return 1;
	if (lead < 0xC2 || lead > 0xF4)
		return 0;
	length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
	if (size < length)
		return 0;
	if (lead == 0xE0)
		least = 0xA0; /* else overlong */
	else if (lead == 0xED)
		most = 0x9F; /* else a surrogate */
	else if (lead == 0xF0)
		least = 0x90; /* else overlong */
	else if (lead == 0xF4)
		most = 0x8F; /* else above U+10FFFF */
	if (in[1] < least || in[1] > most)
		return 0;
	for (size_t i = 2; i < length; i++)
		if ((in[i] & 0xC0) != 0x80)
			return 0;
	return length;
}

bool vdi_utf8_valid(struct vd_bytes text)
{
	const uint8_t *in = text.data;
	size_t	       length;

	for (size_t i = 0; i < text.size; i += length) {
		length = vdi_utf8_character(in + i, text.size - i);
		if (length == 0)
			return false;
	}
	return true;
}

size_t vdi_utf8_put(void *ret_text, uint32_t code)
{
	uint8_t *out = ret_text;

	if (code < 0x80) {
		out[0] = (uint8_t) code;
		return 1;
	}
	if (code < 0x800) {
		out[0] = (uint8_t) (0xC0 | code >> 6);
		out[1] = (uint8_t) (0x80 | (code & 0x3F));
		return 2;
	}
	if (code < 0x10000) {
		out[0] = (uint8_t) (0xE0 | code >> 12);
		out[1] = (uint8_t) (0x80 | (code >> 6 & 0x3F));
		out[2] = (uint8_t) (0x80 | (code & 0x3F));
		return 3;
	}
	out[0] = (uint8_t) (0xF0 | code >> 18);
	out[1] = (uint8_t) (0x80 | (code >> 12 & 0x3F));
	out[2] = (uint8_t) (0x80 | (code >> 6 & 0x3F));
	out[3] = (uint8_t) (0x80 | (code & 0x3F));
	return 4;
}
