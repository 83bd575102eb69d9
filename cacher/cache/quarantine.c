/* An array in order of arrival: it is empty in normal operation, and short otherwise. */
#include "quarantine.h"

struct vdi_quarantined {
	vd_rev revision;
	size_t key_size;
	size_t error_size;
	char   text[]; /* key, error */
};

void vdi_quarantine_init(struct vdi_quarantine *quarantine)
{
	*quarantine = (struct vdi_quarantine) { 0 };
	vdi_lock_init(&quarantine->lock, VDI_LOCK_LEAF);
}

void vdi_quarantine_fini(struct vdi_quarantine *quarantine)
{
	vdi_quarantine_clear(quarantine);
	vdi_free(quarantine->keys);
	quarantine->keys = NULL;
	vdi_lock_fini(&quarantine->lock);
}

static void remove_locked(struct vdi_quarantine *quarantine, struct vd_bytes key, vd_rev revision)
{
	size_t count = vdi_quarantine_count(quarantine);

	for (size_t i = 0; i < count; i++) {
		struct vdi_quarantined *entry = quarantine->keys[i];

		if (entry->key_size != key.size || memcmp(entry->text, key.data, key.size) != 0)
			continue;
		if (entry->revision > revision)
			return;
		vdi_free(entry);
		memmove(&quarantine->keys[i], &quarantine->keys[i + 1],
			(count - i - 1) * sizeof *quarantine->keys);
		atomic_store_explicit(&quarantine->count, count - 1, memory_order_relaxed);
		return;
	}
}

void vdi_quarantine_add(struct vdi_quarantine *quarantine, struct vd_bytes key, vd_rev revision,
			const char *error)
{
	struct vdi_quarantined *entry;
	size_t			error_size = strlen(error);
	void		       *keys;
	size_t			count;

	atomic_fetch_add_explicit(&quarantine->total, 1, memory_order_relaxed);
	entry = vdi_alloc(sizeof *entry + key.size + error_size);
	if (entry == NULL)
		return;
	*entry = (struct vdi_quarantined) { .revision = revision,
					    .key_size = key.size,
					    .error_size = error_size };
	memcpy(entry->text, key.data, key.size);
	memcpy(entry->text + key.size, error, error_size);
	vdi_lock_acquire(&quarantine->lock);
	remove_locked(quarantine, key, INT64_MAX);
	count = vdi_quarantine_count(quarantine);
	keys = quarantine->keys;
	if (count < VDI_QUARANTINE_MAX &&
	    vdi_grow(&keys, &quarantine->capacity, count + 1, sizeof *quarantine->keys)) {
		quarantine->keys = keys;
		quarantine->keys[count] = entry;
		atomic_store_explicit(&quarantine->count, count + 1, memory_order_relaxed);
		entry = NULL;
	}
	vdi_lock_release(&quarantine->lock);
	vdi_free(entry);
}

void vdi_quarantine_remove(struct vdi_quarantine *quarantine, struct vd_bytes key, vd_rev revision)
{
	vdi_lock_acquire(&quarantine->lock);
	remove_locked(quarantine, key, revision);
	vdi_lock_release(&quarantine->lock);
}

static bool is_in(const struct vdi_quarantined *entry, struct vd_bytes prefix, struct vd_bytes namespace_name)
{
	size_t size = prefix.size + namespace_name.size;

	return entry->key_size > size && memcmp(entry->text, prefix.data, prefix.size) == 0 &&
	       memcmp(entry->text + prefix.size, namespace_name.data, namespace_name.size) == 0 &&
	       entry->text[size] == '/';
}

bool vdi_quarantine_holds(struct vdi_quarantine *quarantine, struct vd_bytes prefix,
			  struct vd_bytes namespace_name, struct vd_error *ret_error)
{
	bool   holds;
	size_t i = 0, count;

	vdi_lock_acquire(&quarantine->lock);
	count = vdi_quarantine_count(quarantine);
	while (i < count && !is_in(quarantine->keys[i], prefix, namespace_name))
		i++;
	holds = i < count || count == VDI_QUARANTINE_MAX;
	if (i < count)
		vd_error_set(ret_error, VD_UNDECODABLE, "the object stored under %.*s cannot be decoded",
			     (int) VDI_MIN(quarantine->keys[i]->key_size, (size_t) 300),
			     quarantine->keys[i]->text);
	else if (holds)
		vd_error_set(ret_error, VD_UNDECODABLE, "%d objects or more cannot be decoded",
			     VDI_QUARANTINE_MAX);
	vdi_lock_release(&quarantine->lock);
	return holds;
}

void vdi_quarantine_clear(struct vdi_quarantine *quarantine)
{
	vdi_lock_acquire(&quarantine->lock);
	for (size_t i = 0; i < vdi_quarantine_count(quarantine); i++)
		vdi_free(quarantine->keys[i]);
	atomic_store_explicit(&quarantine->count, 0, memory_order_relaxed);
	vdi_lock_release(&quarantine->lock);
}

void vdi_quarantine_dump(struct vdi_quarantine *quarantine, size_t shown_max, struct vdi_buffer *buffer)
{
	size_t count;

	vdi_lock_acquire(&quarantine->lock);
	count = vdi_quarantine_count(quarantine);
	vdi_buffer_printf(
		buffer, "{\"count\":%zu,\"total\":%llu,\"keys\":[", count,
		(unsigned long long) atomic_load_explicit(&quarantine->total, memory_order_relaxed));
	for (size_t i = 0; i < VDI_MIN(count, shown_max); i++) {
		const struct vdi_quarantined *entry = quarantine->keys[i];

		vdi_buffer_append_text(buffer, i ? ",{\"key\":" : "{\"key\":");
		vdi_buffer_append_json_string(buffer, (struct vd_bytes) { entry->text, entry->key_size });
		vdi_buffer_printf(buffer, ",\"revision\":%lld,\"error\":", (long long) entry->revision);
		vdi_buffer_append_json_string(
			buffer, (struct vd_bytes) { entry->text + entry->key_size, entry->error_size });
		vdi_buffer_append_char(buffer, '}');
	}
	vdi_lock_release(&quarantine->lock);
	vdi_buffer_append_text(buffer, "]}");
}
