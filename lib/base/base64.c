/* base64 by table, four characters to three bytes. For tokens and small values, so not optimized for
 * speed. */
#include "base64.h"

static const char alphabets[2][65] = {
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

size_t vdi_base64_encode(enum vdi_base64_kind kind, struct vd_bytes bytes, char *ret_text)
{
	const char    *alphabet = alphabets[kind];
	const uint8_t *in = bytes.data;
	size_t	       written = 0;

	for (size_t i = 0; i < bytes.size; i += 3) {
		size_t	 left = VDI_MIN(bytes.size - i, (size_t) 3);
		uint32_t word = (uint32_t) in[i] << 16 | (left > 1 ? (uint32_t) in[i + 1] << 8 : 0) |
				(left > 2 ? in[i + 2] : 0);

		for (size_t k = 0; k <= left; k++)
			ret_text[written++] = alphabet[word >> (18 - 6 * k) & 63];
		for (size_t k = left; kind == VDI_BASE64_STANDARD && k < 3; k++)
			ret_text[written++] = '=';
	}
	return written;
}

static int digit_of(enum vdi_base64_kind kind, uint8_t character)
{
	if (character >= 'A' && character <= 'Z')
		return character - 'A';
	if (character >= 'a' && character <= 'z')
		return character - 'a' + 26;
	if (character >= '0' && character <= '9')
		return character - '0' + 52;
	if (character == (uint8_t) alphabets[kind][62])
		return 62;
	return character == (uint8_t) alphabets[kind][63] ? 63 : -1;
}

static vd_status wrong_at(size_t at, size_t *ret_error_at)
{
	if (ret_error_at)
		*ret_error_at = at;
	return VD_BAD_REQUEST;
}

vd_status vdi_base64_decode(enum vdi_base64_kind kind, struct vd_bytes text, void *ret_bytes,
			    size_t *ret_size, size_t *ret_error_at)
{
	const uint8_t *in = text.data;
	uint8_t	      *out = ret_bytes;
	size_t	       size = text.size;
	size_t	       written = 0;
	uint32_t       word = 0;

	if (kind == VDI_BASE64_STANDARD && size) {
		size_t padding = in[size - 1] == '=' ? size > 1 && in[size - 2] == '=' ? 2 : 1 : 0;

		/* Without its padding the rest is checked like the URL alphabet, so its size must be a
		 * multiple of four here. */
		if (size % 4)
			return wrong_at(size, ret_error_at);
		size -= padding;
	}
	for (size_t i = 0; i < size; i++) {
		int digit = digit_of(kind, in[i]);

		if (digit < 0)
			return wrong_at(i, ret_error_at);
		word = word << 6 | (uint32_t) digit;
		if (i % 4 == 3) {
			out[written++] = (uint8_t) (word >> 16);
			out[written++] = (uint8_t) (word >> 8);
			out[written++] = (uint8_t) word;
			word = 0;
		}
	}
	switch (size % 4) {
	case 1: return wrong_at(size, ret_error_at);
	case 2:
		if (word & 15)
			return wrong_at(size - 1, ret_error_at);
		out[written++] = (uint8_t) (word >> 4);
		break;
	case 3:
		if (word & 3)
			return wrong_at(size - 1, ret_error_at);
		out[written++] = (uint8_t) (word >> 10);
		out[written++] = (uint8_t) (word >> 2);
		break;
	default: break;
	}
	*ret_size = written;
	return VD_OK;
}
