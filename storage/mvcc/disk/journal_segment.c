/* The reader holds a window of the file in memory and verifies each record in it; payloads are borrowed, not
 * copied. */
#include <stdio.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "journal_segment.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	       "the format is little-endian; so are the platforms");

static const struct {
	const char *magic;
	const char *stem;
	const char *suffix;
} families[] = {
	[VDI_SEGMENT_JOURNAL] = { "VDJRNL\r\n", "journal-", ".vdj" },
	[VDI_SEGMENT_HISTORY] = { "VDHIST\r\n", "history-", ".vdh" },
};
#define WINDOW_SIZE ((size_t) 256 << 10)
#define CHECKSUM_PLACE 16

struct disk_header {
	char	 magic[8];
	uint32_t format;
	uint32_t header_size;
	uint64_t checksum;
	uint8_t	 store_id[VDI_STORE_ID_SIZE];
	uint64_t sequence;
	uint64_t first_index;
	uint64_t nonce;
	uint64_t previous;
	int64_t	 size;
	int64_t	 revision;
	uint8_t	 zeros[VDI_SEGMENT_HEADER_SIZE - 88];
};
_Static_assert(sizeof(struct disk_header) == VDI_SEGMENT_HEADER_SIZE &&
		       offsetof(struct disk_header, checksum) == CHECKSUM_PLACE,
	       "as documented");

struct disk_record {
	uint64_t checksum;
	uint64_t previous;
	uint64_t index;
	int64_t	 revision;
	uint32_t payload_size;
	uint32_t group_place;
	uint32_t salt;
	uint32_t kind;
};
_Static_assert(sizeof(struct disk_record) == VDI_SEGMENT_RECORD_HEADER_SIZE, "as documented");

void vdi_segment_name(enum vdi_segment_family family, uint64_t sequence, char ret_name[VDI_DISK_NAME_MAX])
{
	snprintf(ret_name, VDI_DISK_NAME_MAX, "%s%016llu%s", families[family].stem,
		 (unsigned long long) sequence, families[family].suffix);
}

bool vdi_segment_name_parse(enum vdi_segment_family family, const char *name, uint64_t *ret_sequence)
{
	char	 expected[VDI_DISK_NAME_MAX];
	uint64_t sequence = 0;

	if (strncmp(name, families[family].stem, 8) != 0)
		return false;
	for (const char *at = name + 8; *at >= '0' && *at <= '9' && at < name + 26; at++)
		sequence = sequence * 10 + (uint64_t) (*at - '0');
	vdi_segment_name(family, sequence, expected);
	if (strcmp(name, expected) != 0)
		return false;
	*ret_sequence = sequence;
	return true;
}

static vd_status damaged(const struct vdi_file *file, int64_t offset, const char *what,
			 struct vd_error *reterr)
{
	return vd_error_set(reterr, VD_CORRUPT, "%s/%s is damaged at offset %lld: %s", file->dir->path,
			    file->name, (long long) offset, what);
}

/* ---- Making one ---- */

static uint64_t header_checksum(const struct disk_header *header, size_t size)
{
	uint64_t parts[2] = { XXH3_64bits(header, CHECKSUM_PLACE),
			      XXH3_64bits((const char *) header + CHECKSUM_PLACE + 8,
					  size - CHECKSUM_PLACE - 8) };

	return XXH3_64bits(parts, sizeof parts);
}

static void encode_header(struct vdi_segment_header *header, uint32_t format, struct disk_header *ret_disk)
{
	memset(ret_disk, 0, sizeof *ret_disk);
	memcpy(ret_disk->magic, families[header->family].magic, 8);
	ret_disk->format = format;
	ret_disk->header_size = VDI_SEGMENT_HEADER_SIZE;
	memcpy(ret_disk->store_id, header->store_id, VDI_STORE_ID_SIZE);
	ret_disk->sequence = header->sequence;
	ret_disk->first_index = header->first_index;
	ret_disk->nonce = header->nonce;
	ret_disk->previous = header->previous;
	ret_disk->size = header->size;
	ret_disk->revision = header->revision;
	ret_disk->checksum = header->checksum = header_checksum(ret_disk, sizeof *ret_disk);
}

static vd_status fill_new_file(struct vdi_file *file, struct vdi_segment_header *header, uint32_t format,
			       struct vd_error *reterr)
{
	struct disk_header disk;

	encode_header(header, format, &disk);
	VDI_TRY(vdi_file_allocate(file, header->size, reterr));
	VDI_TRY(vdi_file_write(file, 0, &disk, sizeof disk, reterr));
	return vdi_file_sync(file, reterr);
}

static vd_status create(struct vdi_dir *dir, struct vdi_segment_header *header, uint32_t format,
			const char *existing, struct vdi_file **ret_file, struct vd_error *reterr)
{
	const char	*made = existing ? existing : VDI_SEGMENT_TEMPORARY;
	char		 name[VDI_DISK_NAME_MAX];
	struct vdi_file *file;
	vd_status	 status;

	vdi_segment_name(header->family, header->sequence, name);
	status = vdi_file_open(dir, made, existing ? VDI_FILE_WRITE : VDI_FILE_CREATE, &file, reterr);
	if (status == VD_EXISTS) {
		VDI_TRY(vdi_dir_unlink(dir, made, reterr));
		status = vdi_file_open(dir, made, VDI_FILE_CREATE, &file, reterr);
	}
	if (status != VD_OK)
		return status;
	status = fill_new_file(file, header, format, reterr);
	if (status == VD_OK)
		status = vdi_dir_rename(dir, made, name, reterr);
	if (status == VD_OK) {
		strcpy(file->name, name);
		/* Fails for every cause: if this file may or may not exist after a crash, the file before it
		 * must not be written. */
		if (vdi_dir_sync(dir, reterr) != VD_OK)
			status = VD_IO;
	} else {
		/* Frees its space; if that fails, opening the journal removes it. */
		(void) !vdi_dir_unlink(dir, made, NULL);
	}
	if (status != VD_OK) {
		vdi_file_close(file);
		return status;
	}
	*ret_file = file;
	return VD_OK;
}

vd_status vdi_segment_create(struct vdi_dir *dir, struct vdi_segment_header *header, const char *made,
			     struct vdi_file **ret_file, struct vd_error *reterr)
{
	return create(dir, header, VDI_SEGMENT_FORMAT, made, ret_file, reterr);
}

vd_status vdi_segment_create_format(struct vdi_dir *dir, struct vdi_segment_header *header, uint32_t format,
				    struct vdi_file **ret_file, struct vd_error *reterr)
{
	return create(dir, header, format, NULL, ret_file, reterr);
}

/* ---- Reading the header ---- */

static vd_status is_unfinished(struct vdi_file *file, struct vd_error *reterr)
{
	uint64_t window[512];
	int64_t	 offset = 0;
	size_t	 size;

	do {
		memset(window, 0, sizeof window);
		VDI_TRY(vdi_file_read(file, offset, window, sizeof window, &size, reterr));
		for (size_t i = 0; i < VDI_ARRAY_SIZE(window); i++)
			if (window[i])
				return VD_OK;
		offset += (int64_t) size;
	} while (size == sizeof window);
	return VD_NOT_FOUND;
}

vd_status vdi_segment_header_read(struct vdi_file *file, enum vdi_segment_family family, uint64_t sequence,
				  struct vdi_segment_header *ret_header, struct vd_error *reterr)
{
	struct disk_header disk;
	size_t		   size;

	VDI_TRY(vdi_file_read(file, 0, &disk, sizeof disk, &size, reterr));
	if (size < sizeof disk || memcmp(disk.magic, families[family].magic, 8) != 0) {
		VDI_TRY(is_unfinished(file, reterr));
		return damaged(file, 0, "this is not the header of a journal file", reterr);
	}
	if (disk.header_size < 88 || disk.header_size > sizeof disk ||
	    header_checksum(&disk, disk.header_size) != disk.checksum)
		return damaged(file, 0, "the checksum of the header is wrong", reterr);
	if (disk.format > VDI_SEGMENT_FORMAT)
		return vd_error_set(reterr, VD_NEWER_FORMAT,
				    "%s/%s has format %u; this program supports formats up to %u",
				    file->dir->path, file->name, disk.format, VDI_SEGMENT_FORMAT);
	if (disk.format != VDI_SEGMENT_FORMAT || disk.header_size != sizeof disk ||
	    disk.sequence != sequence || disk.first_index == 0)
		return damaged(file, 0, "the header belongs to another file", reterr);
	ret_header->family = family;
	memcpy(ret_header->store_id, disk.store_id, VDI_STORE_ID_SIZE);
	ret_header->sequence = disk.sequence;
	ret_header->first_index = disk.first_index;
	ret_header->nonce = disk.nonce;
	ret_header->previous = disk.previous;
	ret_header->size = disk.size;
	ret_header->revision = disk.revision;
	ret_header->checksum = disk.checksum;
	return VD_OK;
}

/* ---- Records ---- */

static uint64_t record_checksum(const void *bytes, size_t payload_size, uint64_t nonce)
{
	return XXH3_64bits_withSeed((const char *) bytes + 8, vdi_segment_record_size(payload_size) - 8,
				    nonce);
}

void vdi_segment_record_prepare(void *bytes, enum vdi_segment_kind kind, vd_rev revision, size_t payload_size)
{
	struct disk_record disk = { .revision = revision,
				    .payload_size = (uint32_t) payload_size,
				    .kind = kind };

	memcpy(bytes, &disk, sizeof disk);
}

size_t vdi_segment_record_seal(void *bytes, uint64_t index, uint64_t nonce, uint64_t previous,
			       uint32_t group_place, uint32_t salt, uint64_t *ret_checksum)
{
	struct disk_record disk;

	memcpy(&disk, bytes, sizeof disk);
	disk.previous = previous;
	disk.index = index;
	disk.group_place = group_place;
	disk.salt = salt;
	memcpy(bytes, &disk, sizeof disk);
	disk.checksum = record_checksum(bytes, disk.payload_size, nonce);
	memcpy(bytes, &disk.checksum, 8);
	*ret_checksum = disk.checksum;
	return vdi_segment_record_size(disk.payload_size);
}

vd_status vdi_segment_reader_open(struct vdi_segment_reader *reader, struct vdi_dir *dir,
				  enum vdi_segment_family family, uint64_t sequence, struct vd_error *reterr)
{
	char	  name[VDI_DISK_NAME_MAX];
	vd_status status;

	memset(reader, 0, sizeof *reader);
	vdi_segment_name(family, sequence, name);
	VDI_TRY(vdi_file_open(dir, name, VDI_FILE_READ, &reader->file, reterr));
	status = vdi_segment_header_read(reader->file, family, sequence, &reader->header, reterr);
	if (status == VD_OK)
		status = vdi_file_size(reader->file, &reader->file_size, reterr);
	if (status == VD_OK && reader->file_size < reader->header.size)
		status = damaged(reader->file, reader->file_size, "the file was cut", reterr);
	if (status != VD_OK) {
		vdi_segment_reader_fini(reader);
		return status;
	}
	reader->offset = VDI_SEGMENT_HEADER_SIZE;
	reader->next_index = reader->header.first_index;
	reader->previous = reader->header.checksum;
	return VD_OK;
}

void vdi_segment_reader_fini(struct vdi_segment_reader *reader)
{
	reader->file = vdi_file_close(reader->file);
	vdi_free(reader->buffer);
	reader->buffer = NULL;
	reader->capacity = reader->buffer_size = 0;
}

/* Reads size bytes at offset into the window: *ret_bytes, or NULL if the file ends before. */
static vd_status window_at(struct vdi_segment_reader *reader, int64_t offset, size_t size,
			   const uint8_t **ret_bytes, struct vd_error *reterr)
{
	size_t got;

	*ret_bytes = NULL;
	if ((int64_t) size > reader->file_size - offset)
		return VD_OK;
	if (offset < reader->buffer_offset ||
	    (uint64_t) (offset - reader->buffer_offset) + size > reader->buffer_size) {
		reader->buffer_size = 0;
		if (!vdi_grow((void **) &reader->buffer, &reader->capacity, VDI_MAX(size, WINDOW_SIZE), 1))
			return vd_error_set(reterr, VD_NOMEM, "out of memory");
		VDI_TRY(vdi_file_read(reader->file, offset, reader->buffer, VDI_MAX(size, WINDOW_SIZE), &got,
				      reterr));
		reader->buffer_offset = offset;
		reader->buffer_size = got;
		if (got < size)
			return VD_OK;
	}
	*ret_bytes = reader->buffer + (offset - reader->buffer_offset);
	return VD_OK;
}

static bool is_plausible(const struct disk_record *record)
{
	return (record->kind == VDI_SEGMENT_COMMIT ||
		(record->kind == VDI_SEGMENT_MARK && record->payload_size == 0)) &&
	       record->group_place < record->index && record->revision >= 0;
}

/* Finds a record at offset whose own checksum is right: *ret_bytes; NULL: there is none. */
static vd_status verified_at(struct vdi_segment_reader *reader, int64_t offset,
			     struct disk_record *ret_record, const uint8_t **ret_bytes,
			     struct vd_error *reterr)
{
	const uint8_t *bytes;

	*ret_bytes = NULL;
	VDI_TRY(window_at(reader, offset, sizeof *ret_record, &bytes, reterr));
	if (bytes == NULL)
		return VD_OK;
	memcpy(ret_record, bytes, sizeof *ret_record);
	if (!is_plausible(ret_record))
		return VD_OK;
	VDI_TRY(window_at(reader, offset, vdi_segment_record_size(ret_record->payload_size), &bytes, reterr));
	if (bytes &&
	    record_checksum(bytes, ret_record->payload_size, reader->header.nonce) == ret_record->checksum)
		*ret_bytes = bytes;
	return VD_OK;
}

vd_status vdi_segment_reader_next(struct vdi_segment_reader *reader, struct vdi_segment_record *ret_record,
				  struct vd_error *reterr)
{
	struct disk_record disk;
	const uint8_t	  *bytes;

	for (int fresh = 0;; fresh++) {
		VDI_TRY(verified_at(reader, reader->offset, &disk, &bytes, reterr));
		if (bytes && disk.index == reader->next_index && disk.previous == reader->previous)
			break;
		/* The window may be older than the file. */
		if (fresh)
			return VD_NOT_FOUND;
		reader->buffer_size = 0;
	}
	ret_record->kind = (enum vdi_segment_kind) disk.kind;
	ret_record->index = disk.index;
	ret_record->revision = disk.revision;
	ret_record->payload = (struct vd_bytes) { bytes + sizeof disk, disk.payload_size };
	ret_record->offset = reader->offset;
	reader->offset += (int64_t) vdi_segment_record_size(disk.payload_size);
	reader->previous = disk.checksum;
	reader->next_index++;
	return VD_OK;
}

/* Moves *offset to the first place from *offset on at which a record of a later group could begin, or to the
 * end. */
static vd_status find_candidate(struct vdi_segment_reader *reader, int64_t *offset, struct vd_error *reterr)
{
	uint64_t index_max = reader->next_index +
			     (uint64_t) reader->file_size / VDI_SEGMENT_RECORD_HEADER_SIZE + UINT32_MAX;

	while (*offset + VDI_SEGMENT_RECORD_HEADER_SIZE <= reader->file_size) {
		struct disk_record record;
		const uint8_t	  *bytes;

		VDI_TRY(window_at(reader, *offset, sizeof record, &bytes, reterr));
		if (bytes == NULL)
			break;
		for (const uint8_t *end = reader->buffer + reader->buffer_size; bytes + sizeof record <= end;
		     bytes += 8, *offset += 8) {
			uint64_t index;

			memcpy(&index, bytes + offsetof(struct disk_record, index), sizeof index);
			if (index <= reader->next_index || index > index_max)
				continue;
			memcpy(&record, bytes, sizeof record);
			if (is_plausible(&record) && index - record.group_place > reader->next_index)
				return VD_OK;
		}
	}
	*offset = reader->file_size;
	return VD_OK;
}

vd_status vdi_segment_reader_classify_end(struct vdi_segment_reader *reader, struct vd_error *reterr)
{
	int64_t offset = reader->offset;

	for (;; offset += 8) {
		struct disk_record record;
		const uint8_t	  *bytes;

		VDI_TRY(find_candidate(reader, &offset, reterr));
		if (offset >= reader->file_size)
			return VD_OK;
		VDI_TRY(verified_at(reader, offset, &record, &bytes, reterr));
		if (bytes)
			return vd_error_set(reterr, VD_CORRUPT,
					    "%s/%s is damaged at offset %lld: record %llu is unreadable, yet "
					    "%llu at %lld is complete",
					    reader->file->dir->path, reader->file->name,
					    (long long) reader->offset,
					    (unsigned long long) reader->next_index,
					    (unsigned long long) record.index, (long long) offset);
	}
}
