/* One allocation holds the struct, the array of groups and the strings. */
#include "identity.h"

static const char *put(char **at, struct vd_bytes text)
{
	char *start = *at;

	if (text.size)
		memcpy(start, text.data, text.size);
	start[text.size] = 0;
	*at += text.size + 1;
	return start;
}

vd_status vdi_identity_new(struct vd_bytes user, struct vd_bytes uid, const struct vd_bytes *groups,
			   size_t group_count, const char *last_group, struct vdi_identity **ret_identity)
{
	size_t size = sizeof(struct vdi_identity) + (group_count + 1) * sizeof(char *) + user.size +
		      uid.size + 2 + strlen(last_group) + 1;
	struct vdi_identity *identity;
	char		    *at;

	for (size_t i = 0; i < group_count; i++)
		size += groups[i].size + 1;
	identity = vdi_alloc(size);
	if (identity == NULL)
		return VD_NOMEM;
	atomic_init(&identity->users, 1);
	at = (char *) &identity->groups[group_count + 1];
	identity->user = put(&at, user);
	identity->uid = put(&at, uid);
	for (size_t i = 0; i < group_count; i++)
		identity->groups[i] = put(&at, groups[i]);
	identity->groups[group_count] = put(&at, vd_bytes_of(last_group));
	identity->group_count = group_count + 1;
	*ret_identity = identity;
	return VD_OK;
}

struct vdi_identity *vdi_identity_ref(struct vdi_identity *identity)
{
	if (identity)
		atomic_fetch_add_explicit(&identity->users, 1, memory_order_relaxed);
	return identity;
}

struct vdi_identity *vdi_identity_unref(struct vdi_identity *identity)
{
	if (identity && atomic_fetch_sub_explicit(&identity->users, 1, memory_order_acq_rel) == 1)
		vdi_free(identity);
	return NULL;
}

bool vdi_identity_is_in(const struct vdi_identity *identity, const char *group)
{
	for (size_t i = 0; i < identity->group_count; i++)
		if (strcmp(identity->groups[i], group) == 0)
			return true;
	return false;
}

void vdi_identity_write(struct vdi_out *out, const char *key, const struct vdi_identity *identity)
{
	vdi_out_key(out, key);
	vdi_out_raw(out, "{");
	if (identity) {
		vdi_out_member(out, "username", vd_bytes_of(identity->user));
		vdi_out_member(out, "uid", vd_bytes_of(identity->uid));
		vdi_out_key(out, "groups");
		vdi_out_raw(out, "[");
		for (size_t i = 0; i < identity->group_count; i++) {
			vdi_out_comma(out);
			vdi_out_text(out, identity->groups[i]);
		}
		vdi_out_raw(out, "]");
	}
	vdi_out_raw(out, "}");
}
