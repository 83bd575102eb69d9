/* One pass computes the size, one writes, so a commit needs no memory of its own. Fields that follow from
 * others are omitted: most records take 5 to 8 bytes beyond key and value. */
#include "record.h"
#include "varint.h"

#define FLAG_TOMBSTONE 1u
#define FLAG_LEASE 2u
#define FLAG_CREATED 4u
#define FLAG_PREVIOUS 8u
#define FLAGS_ALL 15u

static uint64_t zigzag(int64_t number)
{
	return ((uint64_t) number << 1) ^ (uint64_t) (number >> 63);
}

static int64_t unzigzag(uint64_t number)
{
	return (int64_t) (number >> 1) ^ -(int64_t) (number & 1);
}

static unsigned flags_of(const struct vdi_change *change)
{
	const struct vd_kv *kv = change->kv;

	if (change->is_delete)
		return FLAG_TOMBSTONE | (change->previous ? FLAG_PREVIOUS : 0);
	return (kv->lease ? FLAG_LEASE : 0) |
	       (kv->version == 1 && kv->create_rev == kv->mod_rev ? FLAG_CREATED : 0) |
	       (change->previous ? FLAG_PREVIOUS : 0);
}

static size_t change_size(const struct vdi_change *change)
{
	const struct vd_kv *kv = change->kv;
	unsigned	    flags = flags_of(change);
	size_t size = 1 + vdi_varint_size(kv->sub) + vdi_varint_size(kv->key_size) + kv->key_size;

	if (flags & FLAG_PREVIOUS)
		size += vdi_varint_size((uint64_t) (kv->mod_rev - change->previous->mod_rev)) +
			vdi_varint_size(change->previous->sub);
	if (flags & FLAG_TOMBSTONE)
		return size;
	size += vdi_varint_size(kv->value_size) + kv->value_size;
	if (!(flags & FLAG_CREATED))
		size += vdi_varint_size((uint64_t) (kv->mod_rev - kv->create_rev)) +
			vdi_varint_size((uint64_t) kv->version);
	if (flags & FLAG_LEASE)
		size += vdi_varint_size(zigzag(kv->lease));
	return size;
}

static uint8_t *put_change(uint8_t *at, const struct vdi_change *change)
{
	const struct vd_kv *kv = change->kv;
	unsigned	    flags = flags_of(change);

	*at++ = (uint8_t) flags;
	at = vdi_varint_put(at, kv->sub);
	at = vdi_varint_put(at, kv->key_size);
	if (!(flags & FLAG_TOMBSTONE))
		at = vdi_varint_put(at, kv->value_size);
	if (flags & FLAG_PREVIOUS) {
		at = vdi_varint_put(at, (uint64_t) (kv->mod_rev - change->previous->mod_rev));
		at = vdi_varint_put(at, change->previous->sub);
	}
	if (!(flags & (FLAG_TOMBSTONE | FLAG_CREATED))) {
		at = vdi_varint_put(at, (uint64_t) (kv->mod_rev - kv->create_rev));
		at = vdi_varint_put(at, (uint64_t) kv->version);
	}
	if (flags & FLAG_LEASE)
		at = vdi_varint_put(at, zigzag(kv->lease));
	memcpy(at, kv->data, kv->key_size);
	at += kv->key_size;
	if (flags & FLAG_TOMBSTONE)
		return at;
	memcpy(at, kv->data + kv->key_size, kv->value_size);
	return at + kv->value_size;
}

static size_t lease_size(const struct vdi_lease_change *lease)
{
	return 1 + vdi_varint_size(zigzag(lease->id)) +
	       (lease->kind == VDI_LEASE_GRANTED ? vdi_varint_size(zigzag(lease->ttl_s)) : 0) +
	       (lease->kind == VDI_LEASE_REVOKED ? 0 : 8);
}

static uint8_t *put_lease(uint8_t *at, const struct vdi_lease_change *lease)
{
	*at++ = (uint8_t) lease->kind;
	at = vdi_varint_put(at, zigzag(lease->id));
	if (lease->kind == VDI_LEASE_GRANTED)
		at = vdi_varint_put(at, zigzag(lease->ttl_s));
	if (lease->kind == VDI_LEASE_REVOKED)
		return at;
	memcpy(at, &lease->deadline.ns, 8);
	return at + 8;
}

static void check_change(const struct vdi_commit *commit, size_t place)
{
	const struct vdi_change *change = &commit->changes[place];
	const struct vd_kv	*kv = change->kv;

	VDI_CHECK(commit->revision > 0 && kv->mod_rev == commit->revision);
	VDI_CHECK(place == 0 || kv->sub > commit->changes[place - 1].kv->sub);
	VDI_CHECK(change->is_delete ||
		  (kv->create_rev > 0 && kv->create_rev <= kv->mod_rev && kv->version > 0));
	VDI_CHECK(change->previous || (!change->is_delete && (kv->version == 1 || change->is_first)));
	VDI_CHECK(change->previous == NULL ||
		  (change->previous->mod_rev > 0 && change->previous->mod_rev <= kv->mod_rev));
}

size_t vdi_commit_size(const struct vdi_commit *commit)
{
	size_t size = vdi_varint_size(commit->change_count) + vdi_varint_size(commit->lease_count) +
		      vdi_varint_size((uint64_t) commit->compact);

	for (size_t i = 0; i < commit->change_count; i++) {
		check_change(commit, i);
		size += change_size(&commit->changes[i]);
	}
	for (size_t i = 0; i < commit->lease_count; i++)
		size += lease_size(&commit->leases[i]);
	return size;
}

void vdi_commit_encode(const struct vdi_commit *commit, void *ret_bytes)
{
	uint8_t *at = ret_bytes;

	at = vdi_varint_put(at, commit->change_count);
	at = vdi_varint_put(at, commit->lease_count);
	at = vdi_varint_put(at, (uint64_t) commit->compact);
	for (size_t i = 0; i < commit->change_count; i++)
		at = put_change(at, &commit->changes[i]);
	for (size_t i = 0; i < commit->lease_count; i++)
		at = put_lease(at, &commit->leases[i]);
}

/* ---- Reading: `at` moves only over what was understood ---- */

static bool get_number(const uint8_t **at, const uint8_t *end, uint64_t largest, uint64_t *ret_number)
{
	return vdi_varint_take(at, end, ret_number) && *ret_number <= largest;
}

static vd_status get_record(const uint8_t **place, const uint8_t *end, vd_rev mod_rev,
			    struct vdi_record *ret_record)
{
	struct vdi_record record = { .mod_rev = mod_rev };
	const uint8_t	 *at = *place;
	uint64_t	  sub, key_size, value_size = 0, distance, number;
	unsigned	  flags;

	if (at == end || mod_rev <= 0)
		return VD_CORRUPT;
	flags = *at++;
	if (flags & ~FLAGS_ALL || ((flags & FLAG_TOMBSTONE) && (flags & (FLAG_LEASE | FLAG_CREATED))))
		return VD_CORRUPT;
	record.is_delete = flags & FLAG_TOMBSTONE;
	if (!get_number(&at, end, UINT32_MAX, &sub) || !get_number(&at, end, VD_KEY_SIZE_MAX, &key_size))
		return VD_CORRUPT;
	if (!record.is_delete && !get_number(&at, end, VD_VALUE_SIZE_MAX, &value_size))
		return VD_CORRUPT;
	if (flags & FLAG_PREVIOUS) {
		if (!get_number(&at, end, (uint64_t) mod_rev - 1, &distance) ||
		    !get_number(&at, end, UINT32_MAX, &number))
			return VD_CORRUPT;
		record.previous_rev = mod_rev - (vd_rev) distance;
		record.previous_sub = (uint32_t) number;
	}
	if (flags & FLAG_CREATED) {
		record.create_rev = mod_rev;
		record.version = 1;
	} else if (!record.is_delete) {
		if (!get_number(&at, end, (uint64_t) mod_rev - 1, &distance) ||
		    !get_number(&at, end, INT64_MAX, &number) || number == 0)
			return VD_CORRUPT;
		record.create_rev = mod_rev - (vd_rev) distance;
		record.version = (int64_t) number;
	}
	if (flags & FLAG_LEASE) {
		if (!vdi_varint_take(&at, end, &number))
			return VD_CORRUPT;
		record.lease = unzigzag(number);
	}
	if ((uint64_t) (end - at) < key_size + value_size)
		return VD_CORRUPT;
	record.sub = (uint32_t) sub;
	record.key = (struct vd_bytes) { at, key_size };
	record.value = (struct vd_bytes) { at + key_size, value_size };
	*place = at + key_size + value_size;
	*ret_record = record;
	return VD_OK;
}

vd_status vdi_commit_reader_init(struct vdi_commit_reader *reader, vd_rev revision, struct vd_bytes bytes)
{
	const uint8_t *at = bytes.data;
	const uint8_t *end = at + bytes.size;
	uint64_t       changes, leases, compact;

	if (!get_number(&at, end, bytes.size, &changes) || !get_number(&at, end, bytes.size, &leases) ||
	    !get_number(&at, end, INT64_MAX, &compact) || (changes && revision <= 0))
		return VD_CORRUPT;
	*reader = (struct vdi_commit_reader) { at, end, revision, changes, leases, (vd_rev) compact };
	return VD_OK;
}

vd_status vdi_commit_reader_record(struct vdi_commit_reader *reader, struct vdi_record *ret_record,
				   struct vd_bytes *ret_bytes)
{
	const uint8_t *start = reader->at;

	VDI_CHECK(reader->change_count > 0);
	VDI_TRY(get_record(&reader->at, reader->end, reader->revision, ret_record));
	reader->change_count--;
	if (ret_bytes)
		*ret_bytes = (struct vd_bytes) { start, (size_t) (reader->at - start) };
	return VD_OK;
}

vd_status vdi_commit_reader_lease(struct vdi_commit_reader *reader, struct vdi_lease_change *ret_lease)
{
	struct vdi_lease_change lease = { 0 };
	const uint8_t	       *at = reader->at;
	uint64_t		number;

	VDI_CHECK(reader->change_count == 0 && reader->lease_count > 0);
	if (at == reader->end || *at > VDI_LEASE_RENEWED)
		return VD_CORRUPT;
	lease.kind = (enum vdi_lease_change_kind) * at++;
	if (!vdi_varint_take(&at, reader->end, &number))
		return VD_CORRUPT;
	lease.id = unzigzag(number);
	if (lease.kind == VDI_LEASE_GRANTED) {
		if (!vdi_varint_take(&at, reader->end, &number))
			return VD_CORRUPT;
		lease.ttl_s = unzigzag(number);
	}
	if (lease.kind != VDI_LEASE_REVOKED) {
		if (reader->end - at < 8)
			return VD_CORRUPT;
		memcpy(&lease.deadline.ns, at, 8);
		at += 8;
	}
	reader->at = at;
	reader->lease_count--;
	*ret_lease = lease;
	return VD_OK;
}

vd_status vdi_commit_reader_end(const struct vdi_commit_reader *reader)
{
	return reader->at == reader->end && reader->change_count == 0 && reader->lease_count == 0 ?
		       VD_OK :
		       VD_CORRUPT;
}

vd_status vdi_record_decode(struct vd_bytes bytes, vd_rev mod_rev, struct vdi_record *ret_record)
{
	const uint8_t	 *at = bytes.data;
	struct vdi_record record;

	VDI_TRY(get_record(&at, (const uint8_t *) bytes.data + bytes.size, mod_rev, &record));
	if (at != (const uint8_t *) bytes.data + bytes.size)
		return VD_CORRUPT;
	*ret_record = record;
	return VD_OK;
}

vd_status vdi_record_kv(const struct vdi_record *record, struct vd_kv **ret_kv)
{
	struct vd_kv *kv;

	VDI_TRY(vd_kv_new(record->key, record->value, &kv));
	kv->sub = record->sub;
	kv->mod_rev = record->mod_rev;
	kv->create_rev = record->create_rev;
	kv->version = record->version;
	kv->lease = record->lease;
	*ret_kv = kv;
	return VD_OK;
}
