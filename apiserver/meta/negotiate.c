/* Accept clauses are read from left to right; only a higher q replaces an earlier acceptable one, which is
 * equivalent to upstream's stable sort. */
#include "negotiate.h"

#include "http_parser.h"

struct clause {
	struct vd_bytes type;
	struct vd_bytes as, group, version;
	int		q; /* thousandths */
};

/* Removes the part before separator from text and returns it. */
static struct vd_bytes take(struct vd_bytes *text, char separator)
{
	const char     *from = text->data;
	const char     *end = text->size ? memchr(from, separator, text->size) : NULL;
	struct vd_bytes part = { from, end ? (size_t) (end - from) : text->size };
	size_t		used = end ? part.size + 1 : part.size;

	text->data = from + used;
	text->size -= used;
	return vdi_http_trim(part);
}

static int parse_q(struct vd_bytes text)
{
	const char *at = text.data;
	int	    q, scale = 100;

	if (text.size == 0 || at[0] < '0' || at[0] > '1')
		return 1000;
	q = (at[0] - '0') * 1000;
	for (size_t i = 2; i < text.size && i < 5 && at[i] >= '0' && at[i] <= '9'; i++, scale /= 10)
		q += (at[i] - '0') * scale;
	return VDI_MIN(q, 1000);
}

static struct clause parse_clause(struct vd_bytes text)
{
	struct clause clause = { .q = 1000 };

	clause.type = take(&text, ';');
	while (text.size) {
		struct vd_bytes value = take(&text, ';');
		struct vd_bytes name = take(&value, '=');

		value = vdi_http_trim(value);
		if (vdi_ascii_equal_fold(name, "as"))
			clause.as = value;
		else if (vdi_ascii_equal_fold(name, "g"))
			clause.group = value;
		else if (vdi_ascii_equal_fold(name, "v"))
			clause.version = value;
		else if (vdi_ascii_equal_fold(name, "q"))
			clause.q = parse_q(value);
	}
	return clause;
}

static bool is(struct vd_bytes text, const char *word)
{
	return vd_bytes_equal(text, vd_bytes_of(word));
}

static bool form_of(const struct clause *clause, struct vdi_negotiated *ret)
{
	bool meta = is(clause->group, "meta.k8s.io") &&
		    (is(clause->version, "v1") || is(clause->version, "v1beta1"));
	bool discovery = is(clause->group, "apidiscovery.k8s.io");

	ret->v1beta1 = is(clause->version, "v1beta1");
	if (clause->as.size == 0) {
		ret->form = VDI_FORM_OBJECT;
		ret->v1beta1 = false;
		return true;
	}
	if (meta && is(clause->as, "Table"))
		ret->form = VDI_FORM_TABLE;
	else if (meta && is(clause->as, "PartialObjectMetadata"))
		ret->form = VDI_FORM_METADATA;
	else if (meta && is(clause->as, "PartialObjectMetadataList"))
		ret->form = VDI_FORM_METADATA_LIST;
	else if (discovery && is(clause->as, "APIGroupDiscoveryList") && is(clause->version, "v2"))
		ret->form = VDI_FORM_DISCOVERY_V2;
	else if (discovery && is(clause->as, "APIGroupDiscoveryList") && is(clause->version, "v2beta1"))
		ret->form = VDI_FORM_DISCOVERY_V2BETA1;
	else
		return false;
	return true;
}

/* Tables have no protobuf form; objects have one if their kind has a field table. */
static bool as_protobuf(enum vdi_form form, unsigned forms)
{
	if (form == VDI_FORM_METADATA || form == VDI_FORM_METADATA_LIST)
		return forms & VDI_FORMS_PROTOBUF_METADATA;
	return form == VDI_FORM_OBJECT && (forms & VDI_FORMS_PROTOBUF);
}

bool vdi_negotiate(struct vd_bytes accept, unsigned forms, struct vdi_negotiated *ret_negotiated)
{
	bool json_too = false;
	int  best = 0;

	accept = vdi_http_trim(accept);
	if (accept.size == 0) {
		*ret_negotiated = (struct vdi_negotiated) { .form = VDI_FORM_OBJECT };
		return true;
	}
	while (accept.size) {
		struct clause	      clause = parse_clause(take(&accept, ','));
		struct vdi_negotiated candidate = { .protobuf = vdi_ascii_equal_fold(
							    clause.type,
							    "application/vnd.kubernetes.protobuf") };

		if (!candidate.protobuf && !vdi_ascii_equal_fold(clause.type, "application/json") &&
		    !is(clause.type, "*/*") && !is(clause.type, "application/*"))
			continue;
		if (!form_of(&clause, &candidate) || !(forms & 1u << candidate.form) || clause.q == 0 ||
		    (candidate.protobuf && !as_protobuf(candidate.form, forms)))
			continue;
		json_too |= !candidate.protobuf;
		if (clause.q > best) {
			best = clause.q;
			*ret_negotiated = candidate;
		}
	}
	if (best > 0)
		ret_negotiated->json_too = json_too;
	return best > 0;
}

bool vdi_negotiate_gzip(struct vd_bytes accept_encoding)
{
	while (accept_encoding.size)
		if (is(take(&accept_encoding, ','), "gzip"))
			return true;
	return false;
}

bool vdi_media_type_is(struct vd_bytes content_type, const char *type)
{
	return vdi_ascii_equal_fold(take(&content_type, ';'), type);
}
