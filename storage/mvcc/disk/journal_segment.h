/* One file of the journal: its format, its creation, and reading it.
 *
 *   journal-<sequence, 16 digits>.vdj
 *
 *   header, 4096 bytes
 *      0 magic "VDJRNL\r\n"
 *      8 u32 format          12 u32 header size
 *     16 u64 checksum of the header except this field
 *     24 store id (16)
 *     40 u64 sequence        48 u64 index of the first record
 *     56 u64 nonce
 *     64 u64 checksum of the record before the first one (0: there is none)
 *     72 u64 file size, all of it reserved
 *     80 i64 revision of the newest commit before it
 *   records, each at a multiple of 8
 *      0 u64 checksum of what follows, padding included, seeded with the nonce
 *      8 u64 checksum of the record before (of the header, for the first one)
 *     16 u64 index           24 i64 revision (0: none)
 *     32 u32 payload size    36 u32 place in its group
 *     40 u32 salt of its group
 *     44 u32 kind
 *     48 payload (kind 1: a commit, see record.h; kind 2, "mark": empty), zeros up to a multiple of 8
 *   then any bytes: zeros, or records of an earlier use of the file
 *
 * Numbers are little-endian, checksums XXH3-64. Magic, format, header size and checksum stay where they are
 * in every future format.
 *
 * Stale bytes never read as valid records, because:
 * - the nonce is new for each file, so records of an earlier use (files are recycled) do not verify;
 * - each record has the checksum of the record before, and each header that of the last record of the file
 *   before: one chain from the first record to the last, across files; the remains of a failed or undone
 *   write are not part of it (the salt differs per attempt);
 * - indexes have no gaps.
 *
 * The end of the journal: the last valid record is the end if the bytes behind it can be the remains of one
 * torn write. Records are synced in groups, and a group is written when the group before it is on disk. So a
 * valid record of a *later* group behind an invalid one proves that the invalid one was on disk: damage, not
 * a crash. A file that is not the last one must contain every record up to the first of the next file. Known
 * limit: damage in the last group looks like a torn write, unless a mark follows it; closing the journal
 * writes one.
 *
 * No thread of its own; one thread at a time. All functions may block.
 */
#ifndef VDI_JOURNAL_SEGMENT_H
#define VDI_JOURNAL_SEGMENT_H

#include "disk.h"

#define VDI_SEGMENT_FORMAT 1u
#define VDI_SEGMENT_HEADER_SIZE 4096
#define VDI_SEGMENT_RECORD_HEADER_SIZE 48
#define VDI_SEGMENT_SIZE_MIN 8192
/* Name of a new file until it is complete and on disk. */
#define VDI_SEGMENT_TEMPORARY "journal-new.tmp"
/* Room for the next file: a new file, or an old one to be written again. */
#define VDI_SEGMENT_SPARE "journal-spare.tmp"
#define VDI_SEGMENT_RESERVE "journal-reserve" /* room for a file if the disk is full (journal_room.h) */
#define VDI_STORE_ID_SIZE 16

enum vdi_segment_kind { VDI_SEGMENT_COMMIT = 1, VDI_SEGMENT_MARK = 2 };

/* Families of files in this format; each has names and a magic of its own, so that a file of one family is
 * never read as one of another. */
enum vdi_segment_family {
	VDI_SEGMENT_JOURNAL, /* the journal of the embedded store, as described above */
	/* history-<sequence>.vdh, "VDHIST\r\n": the local history of a remote store
	 * (storage/history/history_files.h); the file grows while it is written */
	VDI_SEGMENT_HISTORY,
};

struct vdi_segment_header {
	enum vdi_segment_family family;
	uint8_t			store_id[VDI_STORE_ID_SIZE];
	uint64_t		sequence;
	uint64_t		first_index;
	uint64_t		nonce;
	uint64_t		previous;
	int64_t			size;
	vd_rev			revision;
	uint64_t		checksum; /* set by create and read */
};

struct vdi_segment_record {
	enum vdi_segment_kind kind;
	uint64_t	      index;
	vd_rev		      revision;
	struct vd_bytes	      payload;
	int64_t		      offset; /* of the record in the file */
};

/* Returns the size of a record with a payload of this size, in bytes. */
static inline size_t vdi_segment_record_size(size_t payload_size)
{
	return VDI_SEGMENT_RECORD_HEADER_SIZE + ((payload_size + 7) & ~(size_t) 7);
}

void vdi_segment_name(enum vdi_segment_family family, uint64_t sequence, char ret_name[VDI_DISK_NAME_MAX]);
/* Parses a file name. Returns false if it is not the name of a segment. */
bool vdi_segment_name_parse(enum vdi_segment_family family, const char *name, uint64_t *ret_sequence);

/* Creates a complete file under its own name, on disk when this returns VD_OK. made: an existing file that
 * becomes the new one (VDI_SEGMENT_SPARE, VDI_SEGMENT_RESERVE); its size must be header->size. NULL: a new
 * file. After an error no file with the name exists, or it is complete. */
VDI_MUST_USE vd_status vdi_segment_create(struct vdi_dir *dir, struct vdi_segment_header *header,
					  const char *made, struct vdi_file **ret_file,
					  struct vd_error *reterr);
/* Creates a file with another format number, as a newer program would; for tests. */
VDI_MUST_USE vd_status vdi_segment_create_format(struct vdi_dir *dir, struct vdi_segment_header *header,
						 uint32_t format, struct vdi_file **ret_file,
						 struct vd_error *reterr);
/* Reads and verifies the header. VD_CORRUPT; VD_NEWER_FORMAT; VD_NOT_FOUND: the file is empty or all zeros,
 * because its creation was interrupted. */
VDI_MUST_USE vd_status vdi_segment_header_read(struct vdi_file *file, enum vdi_segment_family family,
					       uint64_t sequence, struct vdi_segment_header *ret_header,
					       struct vd_error *reterr);

/* A record is written in two steps, because its index and its predecessor are known only when its group is
 * written. prepare writes kind, revision and payload size into the record's header; the caller writes payload
 * and padding behind it. seal writes the rest and the checksum, and may be repeated. It returns the size of
 * the record; *ret_checksum is `previous` of the next one. */
void   vdi_segment_record_prepare(void *bytes, enum vdi_segment_kind kind, vd_rev revision,
				  size_t payload_size);
size_t vdi_segment_record_seal(void *bytes, uint64_t index, uint64_t nonce, uint64_t previous,
			       uint32_t group_place, uint32_t salt, uint64_t *ret_checksum);

/* Reads the records from the first one. */
struct vdi_segment_reader {
	struct vdi_file		 *file;
	struct vdi_segment_header header;
	int64_t			  file_size;
	int64_t			  offset; /* of the next record */
	uint64_t		  next_index;
	uint64_t		  previous; /* checksum of the record before */
	uint8_t			 *buffer;
	size_t			  capacity;
	int64_t			  buffer_offset;
	size_t			  buffer_size;
};

/* As vdi_segment_header_read; a file shorter than its header says is VD_CORRUPT. */
VDI_MUST_USE vd_status vdi_segment_reader_open(struct vdi_segment_reader *reader, struct vdi_dir *dir,
					       enum vdi_segment_family family, uint64_t sequence,
					       struct vd_error *reterr);
/* Reads the next record; its payload is borrowed until the next call. VD_NOT_FOUND: there is no valid record
 * at this offset; call again when a writer may have written one. VD_IO, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_segment_reader_next(struct vdi_segment_reader *reader,
					       struct vdi_segment_record *ret_record,
					       struct vd_error		 *reterr);
/* Decides, after VD_NOT_FOUND in the last file: VD_OK if the journal may end here, VD_CORRUPT if a record
 * that was on disk is damaged. */
VDI_MUST_USE vd_status vdi_segment_reader_classify_end(struct vdi_segment_reader *reader,
						       struct vd_error		 *reterr);
/* Frees a zeroed or opened reader; a second call has no effect. */
void vdi_segment_reader_fini(struct vdi_segment_reader *reader);

#endif
