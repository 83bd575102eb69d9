/* The transcoder behind a pipe, for `peers proto-diff`: each line has an enveloped object and the JSON of an
 * object, both as base64; the answer is the JSON of the first and the envelope of the second, as base64, or
 * "!" and the error. */
#include <stdio.h>
#include <stdlib.h>

#include "base64.h"
#include "json_text.h"
#include "json_scan.h"
#include "k8s_proto.h"

static struct vd_bytes decode(char *text)
{
	size_t size = 0;

	if (vdi_base64_decode(VDI_BASE64_STANDARD, vd_bytes_of(text), text, &size, NULL) != VD_OK)
		exit(2);
	return (struct vd_bytes) { text, size };
}

static void print(vd_status status, const struct vdi_buffer *out, const struct vd_error *error)
{
	char *text;

	if (status != VD_OK) {
		printf("!%s: %s", vd_status_name(status), error->message);
		return;
	}
	text = vdi_alloc(VDI_BASE64_ENCODED_MAX(out->size) + 1);
	if (text == NULL)
		exit(2);
	printf("%.*s", (int) vdi_base64_encode(VDI_BASE64_STANDARD, vdi_buffer_bytes(out), text), text);
	vdi_free(text);
}

static vd_status to_proto(struct vd_bytes json, const struct vdi_k8s_envelope *head, struct vdi_buffer *out,
			  struct vd_error *error)
{
	const struct vdi_k8s_message *message = vdi_k8s_kind_find(head->api_version, head->kind);
	size_t			      mark;

	if (message == NULL)
		return vd_error_set(error, VD_UNSUPPORTED, "no table");
	VDI_TRY(vdi_json_validate(json, NULL, error));
	mark = vdi_k8s_proto_envelope_begin(out, head->api_version, head->kind);
	VDI_TRY(vdi_k8s_proto_from_json(message, json, NULL, out, error));
	vdi_k8s_proto_envelope_end(out, mark);
	return vdi_buffer_status(out);
}

int main(void)
{
	struct vdi_buffer out;
	char		 *line = NULL;
	size_t		  capacity = 0;
	ssize_t		  length;

	vdi_buffer_init(&out, (size_t) 64 << 20);
	while ((length = getline(&line, &capacity, stdin)) > 0) {
		struct vdi_k8s_envelope head = { .raw = VD_BYTES_NONE };
		struct vd_error		error = { 0 };
		struct vd_bytes		proto, json;
		char		       *second = strchr(line, ' ');

		if (second == NULL || line[length - 1] != '\n')
			return 2;
		line[length - 1] = 0;
		*second++ = 0;
		proto = decode(line);
		json = decode(second);
		vdi_buffer_clear(&out);
		print(vdi_k8s_proto_to_json(proto, &out, &error), &out, &error);
		printf("\t");
		vdi_buffer_clear(&out);
		if (vdi_k8s_proto_open(proto, &head, &error) != VD_OK)
			print(VD_BAD_REQUEST, &out, &error);
		else
			print(to_proto(json, &head, &out, &error), &out, &error);
		printf("\n");
		fflush(stdout);
	}
	vdi_buffer_fini(&out);
	free(line);
	return 0;
}
