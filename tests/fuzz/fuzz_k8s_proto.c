/* Kubernetes' protobuf in both directions. A decoded value is valid JSON; that JSON can be encoded; after
 * that neither changes. The first byte selects an envelope, or JSON for one of the kinds. */
#include "fuzz.h"
#include "json_scan.h"
#include "k8s_proto.h"

#define OUTPUT_MAX ((size_t) 4 << 20)

struct round {
	struct vdi_buffer raw, proto, json;
};

/* Converts json -> protobuf -> round->json. Returns false if json does not fit the kind. */
static bool there_and_back(struct round *round, struct vd_bytes api_version, struct vd_bytes kind,
			   struct vd_bytes json)
{
	struct vd_error error = { 0 };
	size_t		mark;

	vdi_buffer_clear(&round->raw);
	if (vdi_k8s_proto_from_json(vdi_k8s_kind_find(api_version, kind), json, NULL, &round->raw, &error) !=
	    VD_OK) {
		VDI_CHECK(error.message[0] && round->raw.size == 0);
		return false;
	}
	vdi_buffer_clear(&round->proto);
	mark = vdi_k8s_proto_envelope_begin(&round->proto, api_version, kind);
	vdi_buffer_append(&round->proto, vdi_buffer_bytes(&round->raw));
	vdi_k8s_proto_envelope_end(&round->proto, mark);
	VDI_CHECK(vdi_buffer_status(&round->proto) == VD_OK);
	vdi_buffer_clear(&round->json);
	VDI_CHECK(vdi_k8s_proto_to_json(vdi_buffer_bytes(&round->proto), &round->json, &error) == VD_OK ||
		  error.code == VD_TOO_BIG);
	return error.code == VD_OK;
}

static void check_json(struct vd_bytes api_version, struct vd_bytes kind, struct vd_bytes json, bool fit)
{
	struct round one, two;
	bool	     written;

	vdi_buffer_init(&one.raw, OUTPUT_MAX);
	vdi_buffer_init(&one.proto, OUTPUT_MAX);
	vdi_buffer_init(&one.json, OUTPUT_MAX);
	two = one;
	written = there_and_back(&one, api_version, kind, json);
	VDI_CHECK(written || !fit || one.json.status == VD_TOO_BIG);
	if (written) {
		VDI_CHECK(vdi_json_validate(vdi_buffer_bytes(&one.json), NULL, NULL) == VD_OK);
		VDI_CHECK(there_and_back(&two, api_version, kind, vdi_buffer_bytes(&one.json)));
		VDI_CHECK(vd_bytes_equal(vdi_buffer_bytes(&one.json), vdi_buffer_bytes(&two.json)));
	}
	vdi_buffer_fini(&one.raw);
	vdi_buffer_fini(&one.proto);
	vdi_buffer_fini(&one.json);
	vdi_buffer_fini(&two.raw);
	vdi_buffer_fini(&two.proto);
	vdi_buffer_fini(&two.json);
}

static void check_envelope(struct vd_bytes proto)
{
	struct vdi_k8s_envelope envelope;
	struct vd_bytes		name, namespace_name;
	struct vdi_buffer	json;
	struct vd_error		error = { 0 };

	vdi_buffer_init(&json, OUTPUT_MAX);
	if (vdi_k8s_proto_open(proto, &envelope, &error) == VD_OK) {
		vdi_k8s_proto_names(envelope.raw, &name, &namespace_name);
		VDI_CHECK(vdi_utf8_valid(name) && vdi_utf8_valid(namespace_name));
	}
	if (vdi_k8s_proto_to_json(proto, &json, &error) == VD_OK) {
		VDI_CHECK(vdi_json_validate(vdi_buffer_bytes(&json), NULL, NULL) == VD_OK);
		check_json(envelope.api_version, envelope.kind, vdi_buffer_bytes(&json), true);
	} else {
		VDI_CHECK(error.message[0] && json.size == 0);
	}
	vdi_buffer_fini(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vd_bytes api_version, kind, json = { data + 1, size - 1 };

	if (size == 0)
		return 0;
	if (data[0] == 'k') {
		check_envelope((struct vd_bytes) { data, size });
		return 0;
	}
	if (!vdi_k8s_kind_at(data[0], &api_version, &kind))
		return 0;
	if (vdi_json_validate(json, NULL, NULL) == VD_OK) {
		check_json(api_version, kind, json, false);
	} else { /* for any result, it stays within its bounds */
		struct vdi_buffer raw;

		vdi_buffer_init(&raw, OUTPUT_MAX);
		if (vdi_k8s_proto_from_json(vdi_k8s_kind_find(api_version, kind), json, NULL, &raw, NULL) !=
		    VD_OK)
			VDI_CHECK(raw.size == 0);
		vdi_buffer_fini(&raw);
	}
	return 0;
}
