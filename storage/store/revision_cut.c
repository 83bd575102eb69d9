/* The codec reports the offsets of resourceVersion and selfLink; each member is cut together with one
 * adjacent comma. */
#include "revision_cut.h"

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Widens [*from, *to) by one comma: the one after the member, else the one before it. */
static void take_comma(const char *text, size_t size, size_t *from, size_t *to)
{
	size_t at = *to;

	while (at < size && is_space(text[at]))
		at++;
	if (at < size && text[at] == ',') {
		*to = at + 1;
		return;
	}
	at = *from;
	while (at > 0 && is_space(text[at - 1]))
		at--;
	if (at > 0 && text[at - 1] == ',')
		*from = at - 1;
}

/* Returns true if the member `"resourceVersion":"<digits>"` contains a revision above 0. */
static bool names_a_revision(const char *member, size_t size)
{
	size_t colon = 0, digits = 0;
	bool   above_zero = false;

	while (colon < size && member[colon] != ':')
		colon++;
	for (size_t at = colon + 1; at < size; at++) {
		char c = member[at];

		if (c == '"' || is_space(c))
			continue;
		if (c < '0' || c > '9')
			return false;
		digits++;
		above_zero |= c != '0';
	}
	return digits <= 20 && above_zero;
}

/* Makes a record of value without the bytes [from, to). */
static vd_status cut_member(struct vd_bytes key, struct vd_bytes value, size_t from, size_t size,
			    struct vd_kv **ret_kv)
{
	const char   *text = value.data;
	struct vd_kv *kv = NULL;
	size_t	      to = from + size;

	if (size == 0)
		return vd_kv_new(key, value, ret_kv);
	take_comma(text, value.size, &from, &to);
	VDI_TRY(vd_kv_new(key, (struct vd_bytes) { text, value.size - (to - from) }, &kv));
	memmove(kv->data + kv->key_size + from, text + to, value.size - to);
	*ret_kv = kv;
	return VD_OK;
}

static vd_status cut(const struct vd_object_attributes *attributes, struct vd_bytes key,
		     struct vd_bytes value, bool refuse, struct vd_kv **ret_kv, struct vd_error *reterr)
{
	bool	      self_link_first = attributes->self_link_offset < attributes->revision_offset;
	struct vd_kv *half = NULL;
	vd_status     status;

	if (refuse && attributes->revision_size &&
	    names_a_revision((const char *) value.data + attributes->revision_offset,
			     attributes->revision_size))
		return vd_error_set(reterr, VD_REVISION_ON_CREATE,
				    "resourceVersion should not be set on objects to be created");
	if (attributes->self_link_size == 0)
		return cut_member(key, value, attributes->revision_offset, attributes->revision_size, ret_kv);
	/* Cut the later member first, so that the offset of the earlier one stays valid. */
	status = self_link_first ? cut_member(key, value, attributes->revision_offset,
					      attributes->revision_size, &half) :
				   cut_member(key, value, attributes->self_link_offset,
					      attributes->self_link_size, &half);
	if (status == VD_OK)
		status = self_link_first ? cut_member(key, vd_kv_value(half), attributes->self_link_offset,
						      attributes->self_link_size, ret_kv) :
					   cut_member(key, vd_kv_value(half), attributes->revision_offset,
						      attributes->revision_size, ret_kv);
	vd_kv_unref(half);
	return status;
}

static vd_status inspect_and_cut(const struct vd_codec *codec, struct vd_bytes key, struct vd_bytes value,
				 bool refuse, struct vd_kv **ret_kv, struct vd_error *reterr)
{
	struct vd_object_attributes attributes = { 0 };
	vd_status		    status;

	VDI_TRY(codec->ops->inspect(codec, value, &attributes, reterr));
	status = cut(&attributes, key, value, refuse, ret_kv, reterr);
	vd_codec_release(codec, &attributes);
	return status;
}

vd_status vdi_revision_cut_kv(const struct vd_codec *codec, struct vd_bytes key, struct vd_bytes value,
			      bool refuse, struct vd_kv **ret_kv, struct vd_error *reterr)
{
	struct vd_kv *translated = NULL;
	vd_status     status = VD_OK;

	if (codec->ops->translate)
		status = codec->ops->translate(codec, key, value, &translated, reterr);
	if (status == VD_OK)
		status = inspect_and_cut(codec, key, translated ? vd_kv_value(translated) : value, refuse,
					 ret_kv, reterr);
	vd_kv_unref(translated);
	if (status != VD_UNDECODABLE)
		return status;
	if (reterr)
		reterr->code = VD_BAD_REQUEST;
	return VD_BAD_REQUEST;
}
