/* LMDB 0.9's file format, 64-bit little-endian, read with bounds.
 *
 *   page   u64 number, u16 pad, u16 flags, u16 lower, u16 upper (overflow: u32 pages): 16 bytes; then u16
 *          offsets of nodes up to lower
 *   node   u16 lo, u16 hi, u16 flags, u16 key size, key, data
 *          branch: child = lo | hi << 16 | flags << 32; leaf: data size = lo | hi << 16
 *   meta   at 16: u32 magic, u32 version, u64 address, u64 map size, tree of free pages, main tree, u64 last
 *          page, u64 transaction
 *   tree   u32 pad (page size, in the tree of free pages), u16 flags, u16 depth, u64 branch, leaf, overflow
 *          pages, u64 entries, u64 root
 *
 * Keys must lie between the separators of their parents, or searches would miss what is there. The file is
 * read through a window of its own rather than mapped: a file that is cut meanwhile gives an error, not a
 * signal.
 *
 * A large tree is walked in parts: the pages of its first two levels are looked at first, and the subtrees
 * below shared out, in order. The parts have nothing in common but the bits of the pages that have been seen.
 */
#include <stdatomic.h>

#include "checkpoint_verify.h"

#include "parallel.h"

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

/* Shared by all walkers. */
struct verifier {
	struct vdi_file			    *file;
	const struct vdi_checkpoint_visitor *visitor; /* NULL: structure only */
	int64_t				     file_size;
	uint32_t			     page_size;
	uint64_t			     last_page;
	atomic_uchar			    *seen; /* a bit per page */
};

/* One for each part. */
struct walker {
	struct verifier *verifier;
	unsigned	 part;
	struct vd_error *reterr;
	uint8_t		*pages[DEPTH_MAX + 1]; /* the path being walked */
	uint8_t		*window;
	int64_t		 window_offset;
	size_t		 window_size;
	size_t		 window_step; /* how much is read at once: more while it goes straight on */
	uint8_t		*overflow;
	size_t		 overflow_capacity;
};

/* The pages of a tree are scattered after compactions. */
#define WINDOW_STEP_MIN ((size_t) 32 << 10)
#define WINDOW_SIZE_MAX ((size_t) 256 << 10)

static vd_status damaged(const struct walker *walker, uint64_t page, const char *what)
{
	const struct verifier *verifier = walker->verifier;

	return vd_error_set(walker->reterr, VD_CORRUPT, "%s/%s is damaged at offset %lld: %s",
			    verifier->file->dir->path, verifier->file->name,
			    (long long) page * verifier->page_size, what);
}

static vd_status no_memory(const struct walker *walker)
{
	return vd_error_set(walker->reterr, VD_NOMEM, "out of memory");
}

static vd_status walker_init(struct walker *walker, struct verifier *verifier, unsigned part,
			     struct vd_error *reterr)
{
	*walker = (struct walker) {
		.verifier = verifier, .part = part, .reterr = reterr, .window_step = WINDOW_STEP_MIN
	};
	walker->window = vdi_alloc(WINDOW_SIZE_MAX);
	return walker->window ? VD_OK : no_memory(walker);
}

static void walker_fini(struct walker *walker)
{
	vdi_free(walker->window);
	vdi_free(walker->overflow);
	for (unsigned i = 0; i <= DEPTH_MAX; i++)
		vdi_free(walker->pages[i]);
}

/* Reads size bytes at offset, at most a page; borrowed until the next call. The caller has checked that the
 * file is long enough. */
static vd_status page_bytes(struct walker *walker, int64_t offset, size_t size, const uint8_t **ret_bytes)
{
	if (offset < walker->window_offset ||
	    (uint64_t) (offset - walker->window_offset) + size > walker->window_size) {
		bool goes_on = offset == walker->window_offset + (int64_t) walker->window_size;

		walker->window_step = goes_on ? VDI_MIN(2 * walker->window_step, WINDOW_SIZE_MAX) :
						VDI_MAX(WINDOW_STEP_MIN, size);
		walker->window_size = 0;
		VDI_TRY(vdi_file_read(walker->verifier->file, offset, walker->window, walker->window_step,
				      &walker->window_size, walker->reterr));
		walker->window_offset = offset;
		if (walker->window_size < size)
			return damaged(walker, 0, "the file was cut");
	}
	*ret_bytes = walker->window + (offset - walker->window_offset);
	return VD_OK;
}

/* Reads and copies. */
static vd_status read_at(struct walker *walker, int64_t offset, void *bytes, size_t size)
{
	const uint8_t *place;

	VDI_TRY(page_bytes(walker, offset, size, &place));
	memcpy(bytes, place, size);
	return VD_OK;
}

/* Reads bytes that may be longer than a page, without the window; borrowed until the next call. */
static vd_status read_overflow(struct walker *walker, int64_t offset, size_t size, const uint8_t **ret_bytes)
{
	size_t got;

	if (!vdi_grow((void **) &walker->overflow, &walker->overflow_capacity, size, 1))
		return no_memory(walker);
	VDI_TRY(vdi_file_read(walker->verifier->file, offset, walker->overflow, size, &got, walker->reterr));
	*ret_bytes = walker->overflow;
	return got == size ? VD_OK : damaged(walker, 0, "the file was cut");
}

/* Each page has one place. */
static vd_status claim(struct walker *walker, uint64_t page, uint64_t count, uint64_t from)
{
	struct verifier *verifier = walker->verifier;

	if (page < 2 || page > verifier->last_page || count > verifier->last_page - page + 1)
		return damaged(walker, from, "a page number leads outside");
	for (uint64_t i = page; i < page + count; i++) {
		unsigned char bit = (unsigned char) (1u << (i % 8));

		if (atomic_fetch_or_explicit(&verifier->seen[i / 8], bit, memory_order_relaxed) & bit)
			return damaged(walker, i, "a page is in two places");
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
	return VDI_ORDER(left, right);
}

struct walk {
	enum tree_kind	kind;
	struct vd_bytes table; /* the name of a named tree */
	unsigned	depth; /* of the tree */
	unsigned	base;  /* first free place in walker->pages */
	uint64_t	entries;
	struct subtrees
		*subtrees; /* NULL: all pages are walked; else those at SUBTREE_LEVEL are only listed */
};

/* Each has the bounds of its keys. */
struct subtree {
	uint64_t page;
	uint64_t from;
	size_t	 low_at; /* in keys; NO_KEY: there is none */
	size_t	 low_size;
	size_t	 high_at;
	size_t	 high_size;
};

struct subtrees {
	struct subtree *subtrees;
	size_t		count;
	size_t		capacity;
	uint8_t	       *keys;
	size_t		key_size;
	size_t		key_capacity;
};

#define SUBTREE_LEVEL 2u
#define NO_KEY SIZE_MAX

static vd_status walk_tree(struct walker *walker, const struct tree *tree, enum tree_kind kind,
			   struct vd_bytes table);

/* A list of free pages: count, then numbers. */
static vd_status check_free_list(struct walker *walker, const uint8_t *list, uint64_t size, uint64_t from)
{
	uint64_t count = size >= 8 ? u64_at(list) : UINT64_MAX;

	if (count > size / 8 || (count + 1) * 8 > size)
		return damaged(walker, from, "a list of free pages is invalid");
	for (uint64_t i = 1; i <= count; i++)
		VDI_TRY(claim(walker, u64_at(list + i * 8), 1, from));
	return VD_OK;
}

static vd_status visit(struct walker *walker, const struct walk *walk, struct vd_bytes key,
		       struct vd_bytes value)
{
	const struct vdi_checkpoint_visitor *visitor = walker->verifier->visitor;

	return visitor ? visitor->entry(visitor->arg, walker->part, walk->table, key, value, walker->reterr) :
			 VD_OK;
}

/* Reads the value of an entry from its own pages. Does not move the window, which contains the node of the
 * entry. */
static vd_status check_overflow(struct walker *walker, const struct walk *walk, struct vd_bytes key,
				uint64_t page, uint32_t size, uint64_t from)
{
	uint32_t page_size = walker->verifier->page_size;
	uint64_t count = (PAGE_HEADER_SIZE - 1 + (uint64_t) size) / page_size + 1;
	bool is_wanted = walk->kind == TREE_FREE || (walk->kind == TREE_NAMED && walker->verifier->visitor);
	const uint8_t *bytes = NULL;
	uint32_t       pages;

	VDI_TRY(claim(walker, page, count, from));
	VDI_TRY(read_overflow(walker, (int64_t) (page * page_size),
			      PAGE_HEADER_SIZE + (is_wanted ? (size_t) size : 0), &bytes));
	memcpy(&pages, bytes + 12, 4);
	if (u64_at(bytes) != page || u16_at(bytes + 10) != PAGE_OVERFLOW || pages != count)
		return damaged(walker, page, "this is not the overflow page it should be");
	if (walk->kind == TREE_MAIN)
		return damaged(walker, from, "a tree is invalid");
	if (walk->kind == TREE_FREE)
		return check_free_list(walker, bytes + PAGE_HEADER_SIZE, size, page);
	return visit(walker, walk, key, (struct vd_bytes) { bytes + PAGE_HEADER_SIZE, size });
}

static vd_status check_leaf_node(struct walker *walker, const struct walk *walk, const uint8_t *node,
				 uint32_t room, uint64_t page)
{
	unsigned	flags = u16_at(node + 4);
	uint32_t	size = u16_at(node) | ((uint32_t) u16_at(node + 2) << 16);
	struct vd_bytes key = { node + 8, u16_at(node + 6) };
	const uint8_t  *data = node + 8 + key.size;
	struct tree	tree;

	if (flags & NODE_BIG) {
		if (flags != NODE_BIG || room < 8)
			return damaged(walker, page, "a node is invalid");
		return check_overflow(walker, walk, key, u64_at(data), size, page);
	}
	if (flags != (walk->kind == TREE_MAIN ? NODE_TREE : 0) || size > room)
		return damaged(walker, page, "a node is invalid");
	if (walk->kind == TREE_FREE)
		return check_free_list(walker, data, size, page);
	if (walk->kind == TREE_NAMED)
		return visit(walker, walk, key, (struct vd_bytes) { data, size });
	if (size != TREE_SIZE)
		return damaged(walker, page, "a tree is invalid");
	memcpy(&tree, data, sizeof tree);
	return walk_tree(walker, &tree, TREE_NAMED, key);
}

static bool keep_key(struct subtrees *subtrees, struct vd_bytes key, size_t *ret_at)
{
	*ret_at = key.data ? subtrees->key_size : NO_KEY;
	if (key.data == NULL)
		return true;
	if (!vdi_grow((void **) &subtrees->keys, &subtrees->key_capacity, subtrees->key_size + key.size + 1,
		      1))
		return false;
	memcpy(subtrees->keys + subtrees->key_size, key.data, key.size);
	subtrees->key_size += key.size;
	return true;
}

static vd_status note_subtree(struct walker *walker, struct subtrees *subtrees, uint64_t number,
			      uint64_t from, struct vd_bytes low, struct vd_bytes high)
{
	struct subtree subtree = {
		.page = number, .from = from, .low_size = low.size, .high_size = high.size
	};

	if (!vdi_grow((void **) &subtrees->subtrees, &subtrees->capacity, subtrees->count + 1,
		      sizeof subtree) ||
	    !keep_key(subtrees, low, &subtree.low_at) || !keep_key(subtrees, high, &subtree.high_at))
		return no_memory(walker);
	subtrees->subtrees[subtrees->count++] = subtree;
	return VD_OK;
}

/* low: lowest allowed key; data NULL: none. high: first key that is not allowed. */
static vd_status walk_page(struct walker *walker, struct walk *walk, uint64_t number, uint64_t from,
			   unsigned level, struct vd_bytes low, struct vd_bytes high)
{
	bool		is_leaf = level + 1 == walk->depth;
	uint32_t	page_size = walker->verifier->page_size;
	const uint8_t  *page = walker->pages[walk->base + level];
	struct vd_bytes before = low;
	unsigned	lower, upper, count;

	if (walk->subtrees && level == SUBTREE_LEVEL)
		return note_subtree(walker, walk->subtrees, number, from, low, high);
	VDI_TRY(claim(walker, number, 1, from));
	/* A leaf of a table has no child, so it stays in the window. */
	if (is_leaf && walk->kind == TREE_NAMED)
		VDI_TRY(page_bytes(walker, (int64_t) (number * page_size), page_size, &page));
	else
		VDI_TRY(read_at(walker, (int64_t) (number * page_size), walker->pages[walk->base + level],
				page_size));
	lower = u16_at(page + 12);
	upper = u16_at(page + 14);
	if (u64_at(page) != number || u16_at(page + 10) != (is_leaf ? PAGE_LEAF : PAGE_BRANCH) ||
	    lower < PAGE_HEADER_SIZE || lower % 2 || lower > upper || upper > page_size)
		return damaged(walker, number, "this is not the page it should be");
	count = (lower - PAGE_HEADER_SIZE) / 2;
	if (count < (is_leaf ? 1u : 2u))
		return damaged(walker, number, "a page has too few nodes");
	for (unsigned i = 0; i < count; i++) {
		unsigned	place = u16_at(page + PAGE_HEADER_SIZE + 2 * i);
		const uint8_t  *node = page + place;
		struct vd_bytes key;

		if (place < upper || place % 2 || place + 8 > page_size ||
		    place + 8u + u16_at(node + 6) > page_size)
			return damaged(walker, number, "a node leads outside its page");
		key = (struct vd_bytes) { node + 8, u16_at(node + 6) };
		/* The first key of a branch page counts as the lowest possible one and is not read. */
		if (is_leaf || i > 0) {
			if (walk->kind == TREE_FREE && key.size != 8)
				return damaged(walker, number, "a node is invalid");
			if ((before.data && compare(walk->kind, key, before) < (is_leaf && i == 0  ? 0 :
										i == 1 && !is_leaf ? 0 :
												     1)) ||
			    (high.data && compare(walk->kind, key, high) >= 0))
				return damaged(walker, number, "keys are out of order");
			before = key;
		}
		if (is_leaf) {
			VDI_TRY(check_leaf_node(walker, walk, node, page_size - place - 8 - u16_at(node + 6),
						number));
			walk->entries++;
		}
	}
	for (unsigned i = 0; i < count && !is_leaf; i++) {
		const uint8_t *node = page + u16_at(page + PAGE_HEADER_SIZE + 2 * i);
		const uint8_t *next =
			i + 1 < count ? page + u16_at(page + PAGE_HEADER_SIZE + 2 * (i + 1)) : NULL;
		uint64_t child = u16_at(node) | ((uint64_t) u16_at(node + 2) << 16) |
				 ((uint64_t) u16_at(node + 4) << 32);
		struct vd_bytes child_low = i ? (struct vd_bytes) { node + 8, u16_at(node + 6) } : low;
		struct vd_bytes child_high = next ? (struct vd_bytes) { next + 8, u16_at(next + 6) } : high;

		VDI_TRY(walk_page(walker, walk, child, number, level + 1, child_low, child_high));
	}
	return VD_OK;
}

/* ---- Trees ---- */

static vd_status make_room(struct walker *walker, const struct walk *walk)
{
	for (unsigned i = 0; i < walk->depth; i++) {
		uint8_t **page = &walker->pages[walk->base + i];

		if (*page == NULL)
			*page = vdi_alloc(walker->verifier->page_size);
		if (*page == NULL)
			return no_memory(walker);
	}
	return VD_OK;
}

struct parts {
	struct verifier	      *verifier;
	const struct walk     *walk;
	const struct subtrees *subtrees;
	unsigned	       count;
	struct {
		vd_status	status;
		struct vd_error error;
		uint64_t	entries;
	} results[VDI_PARALLEL_MAX];
};

static struct vd_bytes kept_key(const struct subtrees *subtrees, size_t at, size_t size)
{
	return at == NO_KEY ? VD_BYTES_NONE : (struct vd_bytes) { subtrees->keys + at, size };
}

static vd_status walk_subtrees(struct walker *walker, struct walk *walk, const struct subtrees *subtrees,
			       size_t from, size_t to)
{
	VDI_TRY(make_room(walker, walk));
	for (size_t i = from; i < to; i++) {
		const struct subtree *subtree = &subtrees->subtrees[i];

		VDI_TRY(walk_page(walker, walk, subtree->page, subtree->from, SUBTREE_LEVEL,
				  kept_key(subtrees, subtree->low_at, subtree->low_size),
				  kept_key(subtrees, subtree->high_at, subtree->high_size)));
	}
	return VD_OK;
}

static void walk_part(void *arg, unsigned part)
{
	struct parts *parts = arg;
	struct walk   walk = *parts->walk;
	struct walker walker;
	size_t	      count = parts->subtrees->count;
	vd_status     status = walker_init(&walker, parts->verifier, part, &parts->results[part].error);

	walk.subtrees = NULL;
	walk.entries = 0;
	if (status == VD_OK)
		status = walk_subtrees(&walker, &walk, parts->subtrees, count * part / parts->count,
				       count * (part + 1) / parts->count);
	walker_fini(&walker);
	parts->results[part].status = status;
	parts->results[part].entries = walk.entries;
}

/* The error of the first part with damage is reported. */
static vd_status walk_in_parts(struct walker *walker, struct walk *walk, uint64_t root)
{
	const struct vdi_checkpoint_visitor *visitor = walker->verifier->visitor;
	struct subtrees			     subtrees = { 0 };
	struct parts			     parts = { .verifier = walker->verifier,
						       .walk = walk,
						       .subtrees = &subtrees,
						       .count = visitor->part_count };
	vd_status			     status;

	walk->subtrees = &subtrees;
	status = walk_page(walker, walk, root, 0, 0, VD_BYTES_NONE, VD_BYTES_NONE);
	if (status == VD_OK)
		vdi_parallel(visitor->env, parts.count, walk_part, &parts);
	for (unsigned i = 0; i < parts.count && status == VD_OK; i++) {
		status = parts.results[i].status;
		walk->entries += parts.results[i].entries;
		if (status != VD_OK && walker->reterr)
			*walker->reterr = parts.results[i].error;
	}
	vdi_free(subtrees.subtrees);
	vdi_free(subtrees.keys);
	return status;
}

/* A named tree is walked from inside a leaf of the main one: its pages lie further up on the path. */
static vd_status walk_tree(struct walker *walker, const struct tree *tree, enum tree_kind kind,
			   struct vd_bytes table)
{
	const struct vdi_checkpoint_visitor *visitor = walker->verifier->visitor;
	struct walk			     walk = { .kind = kind, .table = table, .depth = tree->depth };

	if (tree->root == NO_PAGE)
		return tree->entries == 0 && tree->depth == 0 ?
			       VD_OK :
			       damaged(walker, 0, "a tree without pages has entries");
	walk.base = kind == TREE_NAMED ? DEPTH_MAX / 2 : 0;
	if (tree->depth == 0 || tree->depth > DEPTH_MAX / 2)
		return damaged(walker, 0, "a tree has an impossible depth");
	VDI_TRY(make_room(walker, &walk));
	if (kind == TREE_NAMED && visitor && visitor->part_count > 1 && walk.depth > SUBTREE_LEVEL &&
	    vd_bytes_equal(table, visitor->split))
		VDI_TRY(walk_in_parts(walker, &walk, tree->root));
	else
		VDI_TRY(walk_page(walker, &walk, tree->root, 0, 0, VD_BYTES_NONE, VD_BYTES_NONE));
	return walk.entries == tree->entries ? VD_OK : damaged(walker, tree->root, "a tree has lost entries");
}

static vd_status read_meta(struct walker *walker, struct meta *ret_meta)
{
	struct verifier *verifier = walker->verifier;
	struct meta	 metas[2];
	uint8_t		 header[PAGE_HEADER_SIZE];

	verifier->page_size = 0;
	for (unsigned i = 0; i < 2; i++) {
		VDI_TRY(read_at(walker, (int64_t) i * verifier->page_size, header, sizeof header));
		VDI_TRY(read_at(walker, (int64_t) i * verifier->page_size + PAGE_HEADER_SIZE, &metas[i],
				sizeof metas[i]));
		if (u64_at(header) != i || !(u16_at(header + 10) & PAGE_META) || metas[i].magic != META_MAGIC)
			return damaged(walker, i, "this is not a meta page of LMDB");
		if (metas[i].version != META_VERSION)
			return vd_error_set(walker->reterr, VD_NEWER_FORMAT,
					    "%s/%s has LMDB format %u; this program knows %u",
					    verifier->file->dir->path, verifier->file->name, metas[i].version,
					    META_VERSION);
		if (i == 0)
			verifier->page_size = metas[0].free_pages.pad;
		if (verifier->page_size < 512 || verifier->page_size > PAGE_SIZE_MAX ||
		    (verifier->page_size & (verifier->page_size - 1)) ||
		    metas[i].free_pages.pad != verifier->page_size ||
		    (int64_t) verifier->page_size * 2 > verifier->file_size)
			return damaged(walker, i, "an impossible page size");
	}
	*ret_meta = metas[metas[1].transaction > metas[0].transaction];
	if (ret_meta->last_page > (uint64_t) INT64_MAX / verifier->page_size - 1 ||
	    ((int64_t) ret_meta->last_page + 1) * verifier->page_size > verifier->file_size)
		return vd_error_set(walker->reterr, VD_CORRUPT,
				    "%s/%s was cut at offset %lld; it should have %llu pages of %u bytes",
				    verifier->file->dir->path, verifier->file->name,
				    (long long) verifier->file_size,
				    (unsigned long long) ret_meta->last_page + 1, verifier->page_size);
	return VD_OK;
}

static vd_status verify(struct walker *walker)
{
	struct verifier *verifier = walker->verifier;
	struct meta	 meta;

	VDI_TRY(vdi_file_size(verifier->file, &verifier->file_size, walker->reterr));
	VDI_TRY(read_meta(walker, &meta));
	verifier->last_page = meta.last_page;
	verifier->seen = vdi_calloc((size_t) meta.last_page / 8 + 1, sizeof *verifier->seen);
	if (verifier->seen == NULL)
		return no_memory(walker);
	VDI_TRY(walk_tree(walker, &meta.free_pages, TREE_FREE, VD_BYTES_NONE));
	return walk_tree(walker, &meta.main, TREE_MAIN, VD_BYTES_NONE);
}

vd_status vdi_checkpoint_verify(struct vdi_file *file, const struct vdi_checkpoint_visitor *visitor,
				struct vd_error *reterr)
{
	struct verifier verifier = { .file = file, .visitor = visitor };
	struct walker	walker;
	vd_status	status = walker_init(&walker, &verifier, 0, reterr);

	if (status == VD_OK)
		status = verify(&walker);
	vdi_free(verifier.seen);
	walker_fini(&walker);
	return status;
}
