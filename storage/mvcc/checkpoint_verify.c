/* How: LMDB 0.9's file format, 64-bit little-endian, read with bounds.
 *
 *   page    u64 number, u16 pad, u16 flags, u16 lower, u16 upper (overflow: u32 pages)   16 bytes, then u16 offsets of nodes up to lower
 *   node    u16 lo, u16 hi, u16 flags, u16 key size, key, data; branch: child = lo | hi << 16 | flags << 32; leaf: data size = lo | hi << 16
 *   meta    at 16: u32 magic, u32 version, u64 address, u64 map size, tree of free pages, main tree, u64 last page, u64 transaction
 *   tree    u32 pad (page size, in the tree of free pages), u16 flags, u16 depth, u64 branch, leaf, overflow pages, u64 entries, u64 root
 *
 * Keys must lie between the separators of their parents, or searches would miss what is there. The file is read through a window of its own
 * rather than mapped: a file that is cut meanwhile gives an error, not a signal.
 */
#include "checkpoint_verify.h"

#define PAGE_HEADER_SIZE 16u
#define META_MAGIC 0xBEEFC0DEu
#define META_VERSION 1u
#define PAGE_BRANCH 1u
#define PAGE_LEAF 2u
#define PAGE_OVERFLOW 4u
#define PAGE_META 8u
#define NODE_BIG 1u
#define NODE_TREE 2u
#define TREE_SIZE 48u
#define NO_PAGE UINT64_MAX
#define DEPTH_MAX 32u
#define PAGE_SIZE_MAX 65536u

struct tree {
	uint32_t pad;
	uint16_t flags;
	uint16_t depth;
	uint64_t branch_pages;
	uint64_t leaf_pages;
	uint64_t overflow_pages;
	uint64_t entries;
	uint64_t root;
};
_Static_assert(sizeof(struct tree) == TREE_SIZE, "as LMDB has it");

struct meta {
	uint32_t    magic;
	uint32_t    version;
	uint64_t    address;
	uint64_t    map_size;
	struct tree free_pages;
	struct tree main;
	uint64_t    last_page;
	uint64_t    transaction;
};

enum tree_kind { TREE_FREE, TREE_MAIN, TREE_NAMED };

struct verifier {
	struct vdi_file *file;
	struct vd_error *reterr;
	int64_t		 file_size;
	uint32_t	 page_size;
	uint64_t	 last_page;
	uint8_t		*seen;	/* a bit per page */
	uint8_t		*pages[DEPTH_MAX + 1]; /* the path being walked */
	uint8_t		*window;
	int64_t		 window_offset;
	size_t		 window_size;
};

#define WINDOW_SIZE ((size_t) 32 << 10) /* pages of a tree lie scattered once compaction has run */

static vd_status damaged(const struct verifier *verifier, uint64_t page, const char *what)
{
	return vd_error_set(verifier->reterr, VD_CORRUPT, "%s/%s is damaged at offset %lld: %s", verifier->file->dir->path, verifier->file->name,
			    (long long) page * verifier->page_size, what);
}

/* size bytes at offset, copied. The file is long enough: checked before. */
static vd_status read_at(struct verifier *verifier, int64_t offset, void *bytes, size_t size)
{
	if (offset < verifier->window_offset || (uint64_t) (offset - verifier->window_offset) + size > verifier->window_size) {
		verifier->window_size = 0;
		if (size > WINDOW_SIZE) {
			size_t got;

			VDI_TRY(vdi_file_read(verifier->file, offset, bytes, size, &got, verifier->reterr));
			return got == size ? VD_OK : damaged(verifier, 0, "the file was cut");
		}
		VDI_TRY(vdi_file_read(verifier->file, offset, verifier->window, WINDOW_SIZE, &verifier->window_size, verifier->reterr));
		verifier->window_offset = offset;
		if (verifier->window_size < size)
			return damaged(verifier, 0, "the file was cut");
	}
	memcpy(bytes, verifier->window + (offset - verifier->window_offset), size);
	return VD_OK;
}

/* Each page has one place. */
static vd_status claim(struct verifier *verifier, uint64_t page, uint64_t count, uint64_t from)
{
	if (page < 2 || page > verifier->last_page || count > verifier->last_page - page + 1)
		return damaged(verifier, from, "a page number leads outside");
	for (uint64_t i = page; i < page + count; i++) {
		if (verifier->seen[i / 8] & (1u << (i % 8)))
			return damaged(verifier, i, "a page is in two places");
		verifier->seen[i / 8] |= (uint8_t) (1u << (i % 8));
	}
	return VD_OK;
}

static uint16_t u16_at(const uint8_t *bytes)
{
	uint16_t number;

	memcpy(&number, bytes, 2);
	return number;
}

static uint64_t u64_at(const uint8_t *bytes)
{
	uint64_t number;

	memcpy(&number, bytes, 8);
	return number;
}

static int compare(enum tree_kind kind, struct vd_bytes a, struct vd_bytes b)
{
	uint64_t left, right;

	if (kind != TREE_FREE)
		return vd_bytes_compare(a, b);
	left = u64_at(a.data);
	right = u64_at(b.data);
	return (left > right) - (left < right);
}

static vd_status walk_tree(struct verifier *verifier, const struct tree *tree, enum tree_kind kind);

/* A list of free pages: count, then numbers. */
static vd_status check_free_list(struct verifier *verifier, const uint8_t *list, uint64_t size, uint64_t from)
{
	uint64_t count = size >= 8 ? u64_at(list) : UINT64_MAX;

	if (count > size / 8 || (count + 1) * 8 > size)
		return damaged(verifier, from, "a list of free pages makes no sense");
	for (uint64_t i = 1; i <= count; i++)
		VDI_TRY(claim(verifier, u64_at(list + i * 8), 1, from));
	return VD_OK;
}

static vd_status check_overflow(struct verifier *verifier, uint64_t page, uint32_t size, enum tree_kind kind, uint64_t from)
{
	uint64_t  count = (PAGE_HEADER_SIZE - 1 + (uint64_t) size) / verifier->page_size + 1;
	uint8_t	  header[PAGE_HEADER_SIZE];
	uint32_t  pages;
	uint8_t	 *list;
	vd_status status;

	VDI_TRY(claim(verifier, page, count, from));
	VDI_TRY(read_at(verifier, (int64_t) (page * verifier->page_size), header, sizeof header));
	memcpy(&pages, header + 12, 4);
	if (u64_at(header) != page || u16_at(header + 10) != PAGE_OVERFLOW || pages != count)
		return damaged(verifier, page, "this is not the overflow page it should be");
	if (kind != TREE_FREE)
		return kind == TREE_MAIN ? damaged(verifier, from, "a tree makes no sense") : VD_OK;
	list = vdi_alloc(size);
	if (list == NULL)
		return vd_error_set(verifier->reterr, VD_NOMEM, "out of memory");
	status = read_at(verifier, (int64_t) (page * verifier->page_size + PAGE_HEADER_SIZE), list, size);
	if (status == VD_OK)
		status = check_free_list(verifier, list, size, page);
	vdi_free(list);
	return status;
}

static vd_status check_leaf_node(struct verifier *verifier, const uint8_t *node, uint32_t room, enum tree_kind kind, uint64_t page)
{
	unsigned       flags = u16_at(node + 4);
	uint32_t       size = u16_at(node) | ((uint32_t) u16_at(node + 2) << 16);
	const uint8_t *data = node + 8 + u16_at(node + 6);
	struct tree    tree;

	if (flags & NODE_BIG) {
		if (flags != NODE_BIG || room < 8)
			return damaged(verifier, page, "a node makes no sense");
		return check_overflow(verifier, u64_at(data), size, kind, page);
	}
	if (flags != (kind == TREE_MAIN ? NODE_TREE : 0) || size > room)
		return damaged(verifier, page, "a node makes no sense");
	if (kind == TREE_FREE)
		return check_free_list(verifier, data, size, page);
	if (kind == TREE_NAMED)
		return VD_OK;
	if (size != TREE_SIZE)
		return damaged(verifier, page, "a tree makes no sense");
	memcpy(&tree, data, sizeof tree);
	return walk_tree(verifier, &tree, TREE_NAMED);
}

struct walk {
	enum tree_kind kind;
	unsigned       depth; /* of the tree */
	unsigned       base;  /* first free place in verifier->pages */
	uint64_t       entries;
};

/* low: least key allowed, NULL data: none. high: the first that is not. */
static vd_status walk_page(struct verifier *verifier, struct walk *walk, uint64_t number, uint64_t from, unsigned level, struct vd_bytes low,
			   struct vd_bytes high)
{
	bool		is_leaf = level + 1 == walk->depth;
	uint8_t	       *page = verifier->pages[walk->base + level];
	struct vd_bytes before = low;
	unsigned	lower, upper, count;

	VDI_TRY(claim(verifier, number, 1, from));
	VDI_TRY(read_at(verifier, (int64_t) (number * verifier->page_size), page, verifier->page_size));
	lower = u16_at(page + 12);
	upper = u16_at(page + 14);
	if (u64_at(page) != number || u16_at(page + 10) != (is_leaf ? PAGE_LEAF : PAGE_BRANCH) || lower < PAGE_HEADER_SIZE || lower % 2 ||
	    lower > upper || upper > verifier->page_size)
		return damaged(verifier, number, "this is not the page it should be");
	count = (lower - PAGE_HEADER_SIZE) / 2;
	if (count < (is_leaf ? 1u : 2u))
		return damaged(verifier, number, "a page has too few nodes");
	for (unsigned i = 0; i < count; i++) {
		unsigned	place = u16_at(page + PAGE_HEADER_SIZE + 2 * i);
		const uint8_t  *node = page + place;
		struct vd_bytes key;

		if (place < upper || place % 2 || place + 8 > verifier->page_size || place + 8u + u16_at(node + 6) > verifier->page_size)
			return damaged(verifier, number, "a node leads outside its page");
		key = (struct vd_bytes) { node + 8, u16_at(node + 6) };
		/* The first key of a branch page counts as the least possible one and is not looked at. */
		if (is_leaf || i > 0) {
			if (walk->kind == TREE_FREE && key.size != 8)
				return damaged(verifier, number, "a node makes no sense");
			if ((before.data && compare(walk->kind, key, before) < (is_leaf && i == 0 ? 0 : i == 1 && !is_leaf ? 0 : 1)) ||
			    (high.data && compare(walk->kind, key, high) >= 0))
				return damaged(verifier, number, "keys are out of order");
			before = key;
		}
		if (is_leaf) {
			VDI_TRY(check_leaf_node(verifier, node, verifier->page_size - place - 8 - u16_at(node + 6), walk->kind, number));
			walk->entries++;
		}
	}
	for (unsigned i = 0; i < count && !is_leaf; i++) {
		const uint8_t  *node = page + u16_at(page + PAGE_HEADER_SIZE + 2 * i);
		const uint8_t  *next = i + 1 < count ? page + u16_at(page + PAGE_HEADER_SIZE + 2 * (i + 1)) : NULL;
		uint64_t	child = u16_at(node) | ((uint64_t) u16_at(node + 2) << 16) | ((uint64_t) u16_at(node + 4) << 32);
		struct vd_bytes child_low = i ? (struct vd_bytes) { node + 8, u16_at(node + 6) } : low;
		struct vd_bytes child_high = next ? (struct vd_bytes) { next + 8, u16_at(next + 6) } : high;

		VDI_TRY(walk_page(verifier, walk, child, number, level + 1, child_low, child_high));
	}
	return VD_OK;
}

/* A named tree is walked from inside a leaf of the main one: its pages lie further up on the path. */
static vd_status walk_tree(struct verifier *verifier, const struct tree *tree, enum tree_kind kind)
{
	struct walk walk = { kind, tree->depth, 0, 0 };

	if (tree->root == NO_PAGE)
		return tree->entries == 0 && tree->depth == 0 ? VD_OK : damaged(verifier, 0, "a tree without pages has entries");
	walk.base = kind == TREE_NAMED ? DEPTH_MAX / 2 : 0;
	if (tree->depth == 0 || tree->depth > DEPTH_MAX / 2)
		return damaged(verifier, 0, "a tree has an impossible depth");
	for (unsigned i = 0; i < walk.depth; i++) {
		uint8_t **page = &verifier->pages[walk.base + i];

		if (*page == NULL)
			*page = vdi_alloc(verifier->page_size);
		if (*page == NULL)
			return vd_error_set(verifier->reterr, VD_NOMEM, "out of memory");
	}
	VDI_TRY(walk_page(verifier, &walk, tree->root, 0, 0, VD_BYTES_NONE, VD_BYTES_NONE));
	return walk.entries == tree->entries ? VD_OK : damaged(verifier, tree->root, "a tree has lost entries");
}

static vd_status read_meta(struct verifier *verifier, struct meta *ret_meta)
{
	struct meta metas[2];
	uint8_t	    header[PAGE_HEADER_SIZE];

	verifier->page_size = 0;
	for (unsigned i = 0; i < 2; i++) {
		VDI_TRY(read_at(verifier, (int64_t) i * verifier->page_size, header, sizeof header));
		VDI_TRY(read_at(verifier, (int64_t) i * verifier->page_size + PAGE_HEADER_SIZE, &metas[i], sizeof metas[i]));
		if (u64_at(header) != i || !(u16_at(header + 10) & PAGE_META) || metas[i].magic != META_MAGIC)
			return damaged(verifier, i, "this is not a meta page of LMDB");
		if (metas[i].version != META_VERSION)
			return vd_error_set(verifier->reterr, VD_NEWER_FORMAT, "%s/%s has LMDB format %u; this program knows %u",
					    verifier->file->dir->path, verifier->file->name, metas[i].version, META_VERSION);
		if (i == 0)
			verifier->page_size = metas[0].free_pages.pad;
		if (verifier->page_size < 512 || verifier->page_size > PAGE_SIZE_MAX || (verifier->page_size & (verifier->page_size - 1)) ||
		    metas[i].free_pages.pad != verifier->page_size || (int64_t) verifier->page_size * 2 > verifier->file_size)
			return damaged(verifier, i, "an impossible page size");
	}
	*ret_meta = metas[metas[1].transaction > metas[0].transaction];
	if (ret_meta->last_page > (uint64_t) INT64_MAX / verifier->page_size - 1 ||
	    ((int64_t) ret_meta->last_page + 1) * verifier->page_size > verifier->file_size)
		return vd_error_set(verifier->reterr, VD_CORRUPT, "%s/%s was cut at offset %lld; it should have %llu pages of %u bytes",
				    verifier->file->dir->path, verifier->file->name, (long long) verifier->file_size,
				    (unsigned long long) ret_meta->last_page + 1, verifier->page_size);
	return VD_OK;
}

static vd_status verify(struct verifier *verifier)
{
	struct meta meta;

	verifier->window = vdi_alloc(WINDOW_SIZE);
	if (verifier->window == NULL)
		return vd_error_set(verifier->reterr, VD_NOMEM, "out of memory");
	VDI_TRY(vdi_file_size(verifier->file, &verifier->file_size, verifier->reterr));
	VDI_TRY(read_meta(verifier, &meta));
	verifier->last_page = meta.last_page;
	verifier->seen = vdi_calloc((size_t) meta.last_page / 8 + 1, 1);
	if (verifier->seen == NULL)
		return vd_error_set(verifier->reterr, VD_NOMEM, "out of memory");
	VDI_TRY(walk_tree(verifier, &meta.free_pages, TREE_FREE));
	return walk_tree(verifier, &meta.main, TREE_MAIN);
}

vd_status vdi_checkpoint_verify(struct vdi_file *file, struct vd_error *reterr)
{
	struct verifier verifier = { .file = file, .reterr = reterr };
	vd_status	status = verify(&verifier);

	vdi_free(verifier.window);
	vdi_free(verifier.seen);
	for (unsigned i = 0; i <= DEPTH_MAX; i++)
		vdi_free(verifier.pages[i]);
	return status;
}
