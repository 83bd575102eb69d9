/* A checkpoint in LMDB's file format, from an untrusted source: it is verified before LMDB maps it. For any
 * bytes the verification ends, stays inside the file, and reports errors with their place. The first byte
 * selects the form of the input:
 *
 * 	0	a small valid file with some bytes changed: 4 bytes each (page, 2 of offset, the new
 * 		byte); without a change it is valid
 * 	1	the file itself
 */
#include "checkpoint_verify.h"
#include "disk_sim.h"
#include "fuzz.h"

/* ---- A valid file ---- */

#define PAGE 512u
#define NONE UINT64_MAX

enum {
	META_0,
	META_1,
	FREE_LEAF,
	FREED,
	MAIN_LEAF,
	BRANCH,
	LEFT_LEAF,
	RIGHT_LEAF,
	SMALL_LEAF,
	BIG,
	BIG_REST,
	PAGES
};
enum { IS_BRANCH = 1, IS_LEAF = 2, IS_OVERFLOW = 4, IS_META = 8 };
enum { NODE_BIG = 1, NODE_TREE = 2 };

struct tree {
	uint32_t pad;
	uint16_t flags, depth;
	uint64_t branch_pages, leaf_pages, overflow_pages, entries, root;
};
struct meta {
	uint32_t    magic, version;
	uint64_t    address, map_size;
	struct tree free_pages, main;
	uint64_t    last_page, transaction;
};
static uint8_t image[PAGES * PAGE];

static void put16(size_t at, unsigned number)
{
	uint16_t value = (uint16_t) number;

	memcpy(image + at, &value, 2);
}

static unsigned get16(size_t at)
{
	uint16_t value;

	memcpy(&value, image + at, 2);
	return value;
}

static void begin_page(uint64_t number, unsigned flags)
{
	size_t at = number * PAGE;

	memcpy(image + at, &number, 8);
	put16(at + 10, flags);
	put16(at + 12, 16);
	put16(at + 14, PAGE);
}

/* Nodes are added in order. low, high: first words of a node: the size of the data, or the page below. */
static void add_node(uint64_t page, unsigned low, unsigned high, unsigned flags, struct vd_bytes key,
		     struct vd_bytes data)
{
	size_t	 at = page * PAGE;
	unsigned lower = get16(at + 12),
		 upper = get16(at + 14) - (unsigned) ((8 + key.size + data.size + 1) & ~(size_t) 1);

	put16(at + lower, upper);
	put16(at + 12, lower + 2);
	put16(at + 14, upper);
	put16(at + upper, low);
	put16(at + upper + 2, high);
	put16(at + upper + 4, flags);
	put16(at + upper + 6, (unsigned) key.size);
	if (key.size)
		memcpy(image + at + upper + 8, key.data, key.size);
	if (data.size)
		memcpy(image + at + upper + 8 + key.size, data.data, data.size);
}

static void add_data(uint64_t page, unsigned flags, const char *key, const void *data, size_t size)
{
	add_node(page, (unsigned) size, 0, flags, vd_bytes_of(key), (struct vd_bytes) { data, size });
}

static void add_meta(uint64_t page, uint64_t transaction)
{
	struct meta meta = { .magic = 0xBEEFC0DEu,
			     .version = 1,
			     .map_size = 1 << 20,
			     .last_page = PAGES - 1,
			     .transaction = transaction };

	meta.free_pages =
		(struct tree) { .pad = PAGE, .depth = 1, .leaf_pages = 1, .entries = 1, .root = FREE_LEAF };
	meta.main = (struct tree) { .depth = 1, .leaf_pages = 1, .entries = 2, .root = MAIN_LEAF };
	begin_page(page, IS_META);
	memcpy(image + page * PAGE + 16, &meta, sizeof meta);
}

static void make_image(void)
{
	const struct tree records = { .depth = 2,
				      .branch_pages = 1,
				      .leaf_pages = 2,
				      .overflow_pages = 2,
				      .entries = 5,
				      .root = BRANCH };
	const struct tree small = { .depth = 1, .leaf_pages = 1, .entries = 1, .root = SMALL_LEAF };
	const uint64_t	  freed[] = { 1, FREED }, transaction = 3, big = BIG;
	const uint32_t	  big_pages = 2;
	char		  value[100];

	memset(image, 0, sizeof image);
	memset(value, 'v', sizeof value);
	add_meta(META_0, 4);
	add_meta(META_1, 5);
	begin_page(FREE_LEAF, IS_LEAF);
	add_node(FREE_LEAF, sizeof freed, 0, 0, (struct vd_bytes) { &transaction, 8 },
		 (struct vd_bytes) { freed, sizeof freed });
	begin_page(MAIN_LEAF, IS_LEAF);
	add_data(MAIN_LEAF, NODE_TREE, "records", &records, sizeof records);
	add_data(MAIN_LEAF, NODE_TREE, "small", &small, sizeof small);
	begin_page(BRANCH, IS_BRANCH);
	add_node(BRANCH, LEFT_LEAF, 0, 0, VD_BYTES_NONE, VD_BYTES_NONE);
	add_node(BRANCH, RIGHT_LEAF, 0, 0, vd_bytes_of("m"), VD_BYTES_NONE);
	begin_page(LEFT_LEAF, IS_LEAF);
	add_data(LEFT_LEAF, 0, "a", value, sizeof value);
	add_data(LEFT_LEAF, 0, "b", value, 1);
	begin_page(RIGHT_LEAF, IS_LEAF);
	add_data(RIGHT_LEAF, 0, "m", value, 0);
	add_node(RIGHT_LEAF, 700, 0, NODE_BIG, vd_bytes_of("n"), (struct vd_bytes) { &big, 8 });
	add_data(RIGHT_LEAF, 0, "o", value, 3);
	begin_page(SMALL_LEAF, IS_LEAF);
	add_data(SMALL_LEAF, 0, "only", value, 8);
	begin_page(BIG, IS_OVERFLOW);
	memcpy(image + BIG * PAGE + 12, &big_pages, 4);
}

/* Returns true if something was changed. */
static bool change_image(const uint8_t *data, size_t size)
{
	static uint8_t good[sizeof image];

	memcpy(good, image, sizeof image);
	for (size_t at = 0; at + 4 <= size; at += 4)
		image[data[at] % PAGES * PAGE + (data[at + 1] | (unsigned) data[at + 2] << 8) % PAGE] =
			data[at + 3];
	return memcmp(good, image, sizeof image) != 0;
}

/* ---- */

static vd_status verify(struct vd_bytes content)
{
	struct vdi_disk *disk = NULL;
	struct vdi_dir	*dir = NULL;
	struct vdi_file *file = NULL;
	struct vd_error	 error = { 0 };
	vd_status	 status;

	VDI_CHECK(vdi_disk_sim_new(1, &disk) == VD_OK && vdi_dir_open(disk, "data", &dir, NULL) == VD_OK);
	VDI_CHECK(vdi_file_open(dir, "checkpoint", VDI_FILE_CREATE, &file, NULL) == VD_OK);
	VDI_CHECK(content.size == 0 || vdi_file_write(file, 0, content.data, content.size, NULL) == VD_OK);
	status = vdi_checkpoint_verify(file, NULL, &error);
	VDI_CHECK(status == VD_OK ||
		  ((status == VD_CORRUPT || status == VD_NEWER_FORMAT) && error.message[0]));
	vdi_file_close(file);
	vdi_dir_close(dir);
	vdi_disk_sim_free(disk);
	return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t live = vdi_alloc_live();

	if (size == 0)
		return 0;
	if (data[0] % 2) {
		(void) verify((struct vd_bytes) { data + 1, size - 1 });
	} else {
		make_image();
		if (!change_image(data + 1, size - 1))
			VDI_CHECK(verify((struct vd_bytes) { image, sizeof image }) == VD_OK);
		else
			(void) verify((struct vd_bytes) { image, sizeof image });
	}
	VDI_CHECK(vdi_alloc_live() == live);
	return 0;
}
