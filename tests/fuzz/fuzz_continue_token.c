/* Continue tokens. The input is used as a token, and as the JSON inside of one; a decoded token is below the
 * prefix and can be encoded again. */
#include "base64.h"
#include "continue_token.h"
#include "fuzz.h"

static const struct vd_bytes prefix = { "/registry/pods/", 15 };

static void check_token(struct vd_bytes token)
{
	char	       *key = NULL;
	char	       *again = NULL;
	char	       *second = NULL;
	size_t		size = 0;
	size_t		second_size = 0;
	vd_rev		revision = 0;
	vd_rev		second_revision = 0;
	struct vd_error error;

	if (vdi_continue_token_decode(token, prefix, &key, &size, &revision, &error) != VD_OK) {
		VDI_CHECK(key == NULL && strncmp(error.message, "continue key is not valid", 25) == 0);
		return;
	}
	VDI_CHECK(revision != 0 && vd_bytes_has_prefix((struct vd_bytes) { key, size }, prefix));
	VDI_CHECK(size == prefix.size || (key[prefix.size] != '/' && key[size - 1] != '/'));
	VDI_CHECK(vdi_continue_token_encode((struct vd_bytes) { key, size }, prefix, revision, &again,
					    NULL) == VD_OK);
	if (size > prefix.size && strlen(again) <= VDI_CONTINUE_TOKEN_SIZE_MAX) {
		VDI_CHECK(vdi_continue_token_decode(vd_bytes_of(again), prefix, &second, &second_size,
						    &second_revision, NULL) == VD_OK);
		VDI_CHECK(second_revision == revision && second_size == size &&
			  memcmp(second, key, size) == 0);
	}
	vdi_free(key);
	vdi_free(again);
	vdi_free(second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char  *text = malloc(VDI_BASE64_ENCODED_MAX(size) + 1);
	char  *bytes = malloc(VDI_BASE64_DECODED_MAX(VDI_BASE64_ENCODED_MAX(size)));
	size_t text_size;
	size_t back_size = 0;

	VDI_CHECK(text && bytes);
	check_token((struct vd_bytes) { data, size });
	for (int kind = 0; kind < 2; kind++) {
		text_size = vdi_base64_encode(kind, (struct vd_bytes) { data, size }, text);
		VDI_CHECK(vdi_base64_decode(kind, (struct vd_bytes) { text, text_size }, bytes, &back_size,
					    NULL) == VD_OK);
		VDI_CHECK(back_size == size && (size == 0 || memcmp(bytes, data, size) == 0));
		/* Each value has one text. */
		if (vdi_base64_decode(kind, (struct vd_bytes) { data, size }, bytes, &back_size, NULL) ==
		    VD_OK) {
			VDI_CHECK(vdi_base64_encode(kind, (struct vd_bytes) { bytes, back_size }, text) ==
				  size);
			VDI_CHECK(size == 0 || memcmp(text, data, size) == 0);
			text_size = vdi_base64_encode(kind, (struct vd_bytes) { data, size }, text);
		}
	}
	check_token((struct vd_bytes) { text, text_size }); /* kind URL, last */
	free(text);
	free(bytes);
	return 0;
}
