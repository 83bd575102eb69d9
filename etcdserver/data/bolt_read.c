/* A walk descends at most DEPTH_MAX levels and enters each page at most once, whatever page numbers the file
 * has. */
#include "bolt_read.h"

#define PAGE_HEADER 16
#define ELEMENT 16
#define FLAG_BRANCH 1u
#define FLAG_LEAF 2u
#define ELEMENT_IS_BUCKET 1u
#define MAGIC 0xED0CDAEDu
#define VERSION 2u
#define DEPTH_MAX 32

static uint16_t get_u16(const uint8_t *at)
{
	return (uint16_t) (at[0] | at[1] << 8);
}

static uint32_t get_u32(const uint8_t *at)
{
	return get_u16(at) | (uint32_t) get_u16(at + 2) << 16;
}

static uint64_t get_u64(const uint8_t *at)
{
	return get_u32(at) | (uint64_t) get_u32(at + 4) << 32;
}

static uint64_t fnv1a(const uint8_t *bytes, size_t size)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 0; i < size; i++)
		hash = (hash ^ bytes[i]) * 0x100000001b3u;
	return hash;
}

/* ---- Meta ---- */

static bool read_meta(struct vd_bytes bytes, uint64_t offset, struct vdi_bolt_file *file,
		      uint64_t *ret_transaction)
{
	const uint8_t *meta = (const uint8_t *) bytes.data + offset + PAGE_HEADER;

	if (offset + PAGE_HEADER + 64 > bytes.size || get_u32(meta) != MAGIC ||
	    get_u32(meta + 4) != VERSION || get_u64(meta + 56) != fnv1a(meta, 56))
		return false;
	*file = (struct vdi_bolt_file) { bytes.data, bytes.size, get_u32(meta + 8), get_u64(meta + 16),
					 get_u64(meta + 40) };
	*ret_transaction = get_u64(meta + 48);
	return file->page_size >= 512 && file->page_size <= 65536 &&
	       (file->page_size & (file->page_size - 1)) == 0;
}

vd_status vdi_bolt_file_init(struct vd_bytes bytes, struct vdi_bolt_file *ret_file, struct vd_error *reterr)
{
	struct vdi_bolt_file found[2];
	uint64_t	     transaction[2] = { 0, 0 };
	bool		     is_good[2] = { false, false };

	is_good[0] = read_meta(bytes, 0, &found[0], &transaction[0]);
	/* The second meta page follows one page later; the page size is only known from the first one, if
	 * that is valid. */
	for (uint32_t size = 1024; !is_good[1] && size <= 65536; size *= 2)
		is_good[1] = (!is_good[0] || found[0].page_size == size) &&
			     read_meta(bytes, size, &found[1], &transaction[1]) && found[1].page_size == size;
	if (!is_good[0] && !is_good[1])
		return vd_error_set(reterr, VD_CORRUPT,
				    "not a database of etcd: both of its meta pages are invalid");
	*ret_file = is_good[1] && (!is_good[0] || transaction[1] > transaction[0]) ? found[1] : found[0];
	if (ret_file->page_count > ret_file->size / ret_file->page_size)
		return vd_error_set(reterr, VD_CORRUPT,
				    "the database is truncated: it has %llu pages, but the file only %llu",
				    (unsigned long long) ret_file->page_count,
				    (unsigned long long) (ret_file->size / ret_file->page_size));
	return VD_OK;
}

/* ---- Pages ---- */

struct walk {
	const struct vdi_bolt_file *file;
	uint8_t			   *seen; /* a bit per page */
	vdi_bolt_each_fn	    each;
	void			   *arg;
	struct vd_error		   *reterr;
	bool			    wants_buckets; /* visit pairs that are buckets, else pairs that are not */
};

static vd_status damaged(struct walk *walk, uint64_t page)
{
	return vd_error_set(walk->reterr, VD_CORRUPT, "the database is damaged at page %llu",
			    (unsigned long long) page);
}

static vd_status walk_page(struct walk *walk, uint64_t page, unsigned depth);

static vd_status walk_leaf(struct walk *walk, const uint8_t *bytes, uint64_t size, uint64_t page,
			   size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t       place = PAGE_HEADER + i * ELEMENT;
		const uint8_t *element = bytes + place;
		uint64_t       key_size = get_u32(element + 8);
		uint64_t       value_size = get_u32(element + 12);
		bool	       is_bucket = get_u32(element) & ELEMENT_IS_BUCKET;

		place += get_u32(element + 4);
		if (place > size || key_size > size - place || value_size > size - place - key_size)
			return damaged(walk, page);
		if (is_bucket == walk->wants_buckets)
			VDI_TRY(walk->each(walk->arg, (struct vd_bytes) { bytes + place, key_size },
					   (struct vd_bytes) { bytes + place + key_size, value_size }));
	}
	return VD_OK;
}

static vd_status walk_page(struct walk *walk, uint64_t page, unsigned depth)
{
	const struct vdi_bolt_file *file = walk->file;
	const uint8_t		   *bytes;
	uint64_t		    size;
	size_t			    count;

	if (page < 2 || page >= file->page_count || depth > DEPTH_MAX || walk->seen[page / 8] & 1 << page % 8)
		return damaged(walk, page);
	walk->seen[page / 8] |= (uint8_t) (1 << page % 8);
	bytes = file->bytes + page * file->page_size;
	size = ((uint64_t) get_u32(bytes + 12) + 1) * file->page_size;
	count = get_u16(bytes + 10);
	if (size > file->size - page * file->page_size || PAGE_HEADER + count * ELEMENT > size)
		return damaged(walk, page);
	if (get_u16(bytes + 8) & FLAG_LEAF)
		return walk_leaf(walk, bytes, size, page, count);
	if (!(get_u16(bytes + 8) & FLAG_BRANCH))
		return damaged(walk, page);
	for (size_t i = 0; i < count; i++)
		VDI_TRY(walk_page(walk, get_u64(bytes + PAGE_HEADER + i * ELEMENT + 8), depth + 1));
	return VD_OK;
}

/* ---- Buckets ---- */

struct lookup {
	const char     *name;
	struct vd_bytes value;
	bool		found;
};

static vd_status look_for(void *arg, struct vd_bytes key, struct vd_bytes value)
{
	struct lookup *lookup = arg;

	if (vd_bytes_equal(key, vd_bytes_of(lookup->name))) {
		lookup->value = value;
		lookup->found = true;
	}
	return VD_OK;
}

static vd_status walk_bucket(struct walk *walk, const struct lookup *lookup)
{
	const uint8_t *value = lookup->value.data;
	uint64_t       root;

	if (lookup->value.size < 16)
		return damaged(walk, 0);
	root = get_u64(value);
	if (root)
		return walk_page(walk, root, 0);
	/* A small bucket is stored in the value itself: a leaf after the 16 bytes. */
	if (lookup->value.size < 16 + PAGE_HEADER ||
	    PAGE_HEADER + (uint64_t) get_u16(value + 16 + 10) * ELEMENT > lookup->value.size - 16 ||
	    !(get_u16(value + 16 + 8) & FLAG_LEAF))
		return damaged(walk, 0);
	return walk_leaf(walk, value + 16, lookup->value.size - 16, 0, get_u16(value + 16 + 10));
}

vd_status vdi_bolt_each(const struct vdi_bolt_file *file, const char *bucket, vdi_bolt_each_fn each,
			void *arg, struct vd_error *reterr)
{
	struct lookup lookup = { .name = bucket };
	struct walk   walk = {
		  .file = file, .each = look_for, .arg = &lookup, .reterr = reterr, .wants_buckets = true
	};
	vd_status status;

	walk.seen = vdi_calloc(file->page_count / 8 + 1, 1);
	if (walk.seen == NULL)
		return vd_error_set(reterr, VD_NOMEM, "out of memory");
	status = walk_page(&walk, file->root, 0);
	if (status == VD_OK && lookup.found) {
		walk.each = each;
		walk.arg = arg;
		walk.wants_buckets = false;
		status = walk_bucket(&walk, &lookup);
	}
	vdi_free(walk.seen);
	return status;
}
