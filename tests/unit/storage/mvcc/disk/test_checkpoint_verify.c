/* Unit tests of storage/mvcc/disk/checkpoint_verify.c: one field of a page at a time has a wrong value, and
 * the damage is named for what it is. */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend_model.h"
#include "checkpoint.h"
#include "checkpoint_verify.h"
#include "temp_folder.h"

#define PAGE ((int64_t) VDI_CHECKPOINT_PAGE_SIZE)
#define RECORD_COUNT 3000
#define NO_PAGE UINT64_MAX

#define WRONG_PAGE "this is not the page it should be"
#define OUTSIDE "a node leads outside its page"
#define TOO_FEW "a page has too few nodes"
#define WRONG_NODE "a node is invalid"
#define ORDER "keys are out of order"
#define WRONG_BIG "this is not the overflow page it should be"
#define WRONG_FREE "a list of free pages is invalid"
#define WRONG_TREE "a tree is invalid"
#define WRONG_DEPTH "a tree has an impossible depth"
#define LOST "a tree has lost entries"
#define NO_ROOT "a tree without pages has entries"
#define TWICE "a page is in two places"
#define NO_NUMBER "a page number leads outside"

/* A checkpoint of small and large records, two leases, and free pages. bytes is what the file held before
 * anything was changed. */
struct world {
	char		 path[TEMP_FOLDER_SIZE];
	char		 file_path[128];
	struct vdi_dir	*dir;
	struct vdi_file *file;
	uint8_t		*bytes;
	int64_t		 size;
	uint64_t	 last_page;
	int64_t		 meta; /* offset of the newest one */
	struct vd_error	 error;
	size_t		 entries;
	size_t		 value_bytes;
};

/* ---- Making one ---- */

static void apply(struct vdi_checkpoint *checkpoint, const struct vdi_commit *commit)
{
	struct vdi_segment_record record = { .kind = VDI_SEGMENT_COMMIT,
					     .index = vdi_checkpoint_meta(checkpoint)->covered + 1,
					     .revision = commit->revision };
	size_t			  size = vdi_commit_size(commit);
	void			 *payload = malloc(size);

	vdi_commit_encode(commit, payload);
	record.payload = (struct vd_bytes) { payload, size };
	assert_status(vdi_checkpoint_begin(checkpoint, (int64_t) size, NULL), VD_OK);
	assert_status(vdi_checkpoint_apply(checkpoint, &record, NULL), VD_OK);
	assert_status(vdi_checkpoint_commit(checkpoint, NULL), VD_OK);
	free(payload);
}

/* Puts of count keys in one commit: every fiftieth value is larger than a page. */
static void apply_puts(struct vdi_checkpoint *checkpoint, vd_rev revision, unsigned count)
{
	static const char  value[9000];
	struct vdi_change *changes = calloc(count, sizeof *changes);
	struct vdi_commit  commit = { .revision = revision, .changes = changes, .change_count = count };
	char		   key[40];

	for (unsigned i = 0; i < count; i++) {
		snprintf(key, sizeof key, "/key/%lld/%06u", (long long) revision, i);
		assert_status(vd_kv_new(vd_bytes_of(key),
					(struct vd_bytes) { value, i % 50 ? 60 : 3000 + i % 6000 },
					&changes[i].kv),
			      VD_OK);
		changes[i].kv->mod_rev = changes[i].kv->create_rev = revision;
		changes[i].kv->sub = i;
		changes[i].kv->version = 1;
	}
	apply(checkpoint, &commit);
	for (unsigned i = 0; i < count; i++)
		vd_kv_unref(changes[i].kv);
	free(changes);
}

/* Deletes of the keys that the revision `previous` put, one revision later, and compaction of both in one
 * group: so many pages become free at once that their list takes pages of its own. */
static void remove_puts(struct vdi_checkpoint *checkpoint, vd_rev previous, unsigned count)
{
	struct vdi_change *changes = calloc(count, sizeof *changes);
	struct vdi_commit  commit = {
		 .revision = previous + 1, .changes = changes, .change_count = count, .compact = previous + 1
	};
	char key[40];

	for (unsigned i = 0; i < count; i++) {
		struct vd_kv *superseded;

		snprintf(key, sizeof key, "/key/%lld/%06u", (long long) previous, i);
		assert_status(vd_kv_new(vd_bytes_of(key), VD_BYTES_NONE, &changes[i].kv), VD_OK);
		assert_status(vd_kv_new(vd_bytes_of(key), VD_BYTES_NONE, &superseded), VD_OK);
		changes[i].is_delete = true;
		changes[i].kv->mod_rev = previous + 1;
		superseded->mod_rev = previous;
		changes[i].kv->sub = superseded->sub = i;
		changes[i].previous = superseded;
	}
	apply(checkpoint, &commit);
	for (unsigned i = 0; i < count; i++) {
		vd_kv_unref(changes[i].kv);
		vd_kv_unref((struct vd_kv *) changes[i].previous);
	}
	free(changes);
	while (vdi_checkpoint_compact_pending(checkpoint))
		assert_status(vdi_checkpoint_compact_step(checkpoint, SIZE_MAX, NULL), VD_OK);
}

static uint64_t u64_in(const struct world *world, int64_t offset)
{
	uint64_t number;

	memcpy(&number, world->bytes + offset, 8);
	return number;
}

static unsigned u16_in(const struct world *world, int64_t offset)
{
	uint16_t number;

	memcpy(&number, world->bytes + offset, 2);
	return number;
}

/* Of a meta page, as its file format has it. */
#define META_FREE_TREE 40
#define META_MAIN_TREE 88
#define META_LAST_PAGE 136
#define META_TRANSACTION 144
#define TREE_DEPTH 6
#define TREE_ENTRIES 32
#define TREE_ROOT 40

static void world_init_with(struct world *world, bool has_many_free)
{
	static const uint8_t   store_id[VDI_STORE_ID_SIZE] = { 7 };
	struct vdi_checkpoint *checkpoint;
	int		       fd;

	memset(world, 0, sizeof *world);
	temp_folder_make(world->path);
	snprintf(world->file_path, sizeof world->file_path, "%s/%s", world->path, VDI_CHECKPOINT_NAME);
	assert_status(vdi_dir_open(vdi_disk_os(), world->path, &world->dir, NULL), VD_OK);
	assert_status(vdi_checkpoint_create(world->dir, true, store_id, &checkpoint, NULL), VD_OK);
	for (vd_rev revision = 2; revision < 5; revision++)
		apply_puts(checkpoint, revision, RECORD_COUNT / 3);
	if (has_many_free) {
		apply_puts(checkpoint, 5, 20000);
		remove_puts(checkpoint, 5, 20000);
	}
	vdi_checkpoint_close(checkpoint);
	fd = open(world->file_path, O_RDONLY);
	world->size = lseek(fd, 0, SEEK_END);
	world->bytes = malloc((size_t) world->size);
	assert_int_equal(pread(fd, world->bytes, (size_t) world->size, 0), world->size);
	close(fd);
	assert_status(vdi_file_open(world->dir, VDI_CHECKPOINT_NAME, VDI_FILE_READ, &world->file, NULL),
		      VD_OK);
	world->meta = u64_in(world, PAGE + META_TRANSACTION) > u64_in(world, META_TRANSACTION) ? PAGE : 0;
	world->last_page = u64_in(world, world->meta + META_LAST_PAGE);
	assert_true(world->last_page > 50);
}

static void world_init(struct world *world)
{
	world_init_with(world, false);
}

static void world_fini(struct world *world)
{
	vdi_file_close(world->file);
	vdi_dir_close(world->dir);
	temp_folder_remove(world->path);
	free(world->bytes);
}

static vd_status count_entry(void *arg, unsigned part, struct vd_bytes table, struct vd_bytes key,
			     struct vd_bytes value, struct vd_error *reterr)
{
	struct world *world = arg;

	(void) reterr;
	assert_int_equal(part, 0);
	assert_true(key.size > 0);
	if (vd_bytes_equal(table, vd_bytes_of("records"))) {
		world->entries++;
		world->value_bytes += value.size;
	}
	return VD_OK;
}

static vd_status verify(struct world *world, bool is_visited)
{
	struct vdi_checkpoint_visitor visitor = { NULL, vd_bytes_of("records"), 1, count_entry, world };

	world->entries = world->value_bytes = 0;
	world->error = (struct vd_error) { 0 };
	return vdi_checkpoint_verify(world->file, is_visited ? &visitor : NULL, &world->error);
}

static void write_bytes(const struct world *world, int64_t offset, const void *bytes, size_t size)
{
	int fd = open(world->file_path, O_WRONLY);

	assert_int_equal(pwrite(fd, bytes, size, offset), (ssize_t) size);
	close(fd);
}

/* The decision with size bytes at offset changed; they are put back. */
static vd_status verify_with(struct world *world, int64_t offset, uint64_t number, size_t size)
{
	vd_status status;

	write_bytes(world, offset, &number, size);
	status = verify(world, true);
	assert_status(verify(world, false), status); /* with and without a visitor */
	write_bytes(world, offset, world->bytes + offset, size);
	return status;
}

static void expect(struct world *world, int64_t offset, uint64_t number, size_t size, const char *why)
{
	vd_status status = verify_with(world, offset, number, size);

	if (why ? status != VD_CORRUPT || strstr(world->error.message, why) == NULL : status != VD_OK)
		fail_msg("%llu in %zu bytes at page %lld + %lld: expected \"%s\", got \"%s\"",
			 (unsigned long long) number, size, (long long) (offset / PAGE),
			 (long long) (offset % PAGE), why ? why : "ok", world->error.message);
}

/* ---- What is where: a page in use is one whose number is missed ---- */

enum page_kind { PAGE_UNUSED, PAGE_BRANCH, PAGE_LEAF, PAGE_BIG };

static enum page_kind kind_of(struct world *world, uint64_t page)
{
	unsigned flags = u16_in(world, (int64_t) page * PAGE + 10);

	if (u64_in(world, (int64_t) page * PAGE) != page || flags == 0 ||
	    verify_with(world, (int64_t) page * PAGE, NO_PAGE, 8) == VD_OK)
		return PAGE_UNUSED;
	return flags == 1 ? PAGE_BRANCH : flags == 2 ? PAGE_LEAF : PAGE_BIG;
}

/* ---- Tests ---- */

static void a_sound_file_is_seen_whole(void **state)
{
	struct world world;

	(void) state;
	world_init(&world);
	assert_status(verify(&world, false), VD_OK);
	assert_status(verify(&world, true), VD_OK);
	assert_int_equal(world.entries, RECORD_COUNT);
	assert_true(world.value_bytes > RECORD_COUNT * 60 + RECORD_COUNT / 50 * 3000);
	world_fini(&world);
}

static void check_header(struct world *world, int64_t at, enum page_kind kind)
{
	unsigned flags = u16_in(world, at + 10), lower = u16_in(world, at + 12),
		 upper = u16_in(world, at + 14);

	for (unsigned bit = 1; bit <= 16; bit *= 2)
		expect(world, at + 10, flags ^ bit, 2, WRONG_PAGE);
	expect(world, at, u64_in(world, at) + 1, 8, WRONG_PAGE);
	expect(world, at + 12, 14, 2, WRONG_PAGE);
	expect(world, at + 12, 0, 2, WRONG_PAGE);
	expect(world, at + 12, 16, 2, TOO_FEW);
	expect(world, at + 12, 18, 2, kind == PAGE_BRANCH ? TOO_FEW : LOST);
	expect(world, at + 12, lower - 1, 2, WRONG_PAGE);
	expect(world, at + 12, lower + 1, 2, WRONG_PAGE);
	expect(world, at + 12, upper + 2, 2, WRONG_PAGE);
	if (upper > lower)
		expect(world, at + 12, upper, 2,
		       OUTSIDE); /* the header may be, but the nodes behind the last one are none */
	expect(world, at + 14, lower - 2, 2, WRONG_PAGE);
	expect(world, at + 14, (uint64_t) PAGE + 2, 2, WRONG_PAGE);
	expect(world, at + 14, (uint64_t) PAGE, 2, OUTSIDE);
	expect(world, at + 14, upper + 2, 2, OUTSIDE); /* one node lies at upper */
}

static void check_nodes(struct world *world, int64_t at, enum page_kind kind)
{
	unsigned count = (u16_in(world, at + 12) - 16) / 2, upper = u16_in(world, at + 14);

	for (unsigned i = 0; i < count; i += i < 2 || i + 2 >= count ? 1 : count - 3) {
		int64_t	 offset = at + 16 + 2 * i;
		unsigned place = u16_in(world, offset), key_size = u16_in(world, at + place + 6);

		expect(world, offset, upper - 2, 2, OUTSIDE);
		expect(world, offset, place + 1, 2, OUTSIDE);
		expect(world, offset, (uint64_t) PAGE - 6, 2, OUTSIDE);
		expect(world, offset, UINT16_MAX - 1, 2, OUTSIDE);
		expect(world, at + place + 6, (uint64_t) PAGE - place - 7, 2, OUTSIDE);
		expect(world, at + place + 6, UINT16_MAX, 2, OUTSIDE);
		if (kind == PAGE_LEAF) { /* unknown flags; more data than there is */
			for (unsigned bit = 2; bit <= 16; bit *= 2)
				expect(world, at + place + 4, u16_in(world, at + place + 4) ^ bit, 2,
				       WRONG_NODE);
			if (u16_in(world, at + place + 4) == 0) {
				expect(world, at + place, (uint64_t) PAGE - place - 8 - key_size + 1, 4,
				       WRONG_NODE);
				expect(world, at + place, UINT32_MAX, 4, WRONG_NODE);
			}
		}
		if (i > 1 || (i == 1 && kind == PAGE_LEAF)) /* a node that is there twice */
			expect(world, offset, u16_in(world, offset - 2), 2, ORDER);
	}
}

static void check_big(struct world *world, int64_t at)
{
	uint32_t pages;

	memcpy(&pages, world->bytes + at + 12, 4);
	for (unsigned bit = 1; bit <= 16; bit *= 2)
		expect(world, at + 10, u16_in(world, at + 10) ^ bit, 2, WRONG_BIG);
	expect(world, at, u64_in(world, at) + 1, 8, WRONG_BIG);
	expect(world, at + 12, pages + 1, 4, WRONG_BIG);
	expect(world, at + 12, pages - 1, 4, WRONG_BIG);
}

static void each_field_of_a_page_header_is_checked(void **state)
{
	unsigned     counts[4] = { 0 };
	struct world world;

	(void) state;
	world_init(&world);
	for (uint64_t page = 2; page <= world.last_page; page++) {
		enum page_kind kind = kind_of(&world, page);
		int64_t	       at = (int64_t) page * PAGE;

		if (counts[kind]++ > 5 && kind != PAGE_BRANCH)
			continue;
		if (kind == PAGE_BIG)
			check_big(&world, at);
		else if (kind != PAGE_UNUSED) {
			check_header(&world, at, kind);
			check_nodes(&world, at, kind);
		}
	}
	assert_true(counts[PAGE_BRANCH] >= 1 && counts[PAGE_LEAF] > 5 && counts[PAGE_BIG] > 5 &&
		    counts[PAGE_UNUSED] > 3);
	assert_status(verify(&world, true), VD_OK);
	world_fini(&world);
}

/* Children of a branch page: outside of the file, of the wrong kind, and in two places. */
static void a_child_is_a_page_of_its_own(void **state)
{
	struct world world;
	unsigned     branches = 0;

	(void) state;
	world_init(&world);
	for (uint64_t page = 2; page <= world.last_page; page++) {
		int64_t at = (int64_t) page * PAGE, node, before;

		if (u16_in(&world, at + 10) != 1 || kind_of(&world, page) != PAGE_BRANCH)
			continue;
		node = at + u16_in(&world, at + 18);
		before = at + u16_in(&world, at + 16);
		expect(&world, node, 0, 6, NO_NUMBER);
		expect(&world, node, 1, 6, NO_NUMBER);
		expect(&world, node, world.last_page + 1, 6, NO_NUMBER);
		expect(&world, node, (uint64_t) 1 << 33 | 5, 6, NO_NUMBER);
		expect(&world, node, page, 6, TWICE);
		expect(&world, node, u64_in(&world, before) & 0xffffffffffff, 6, TWICE);
		branches++;
	}
	assert_true(branches > 0);
	world_fini(&world);
}

/* at: of a tree's descriptor. */
static void check_tree(struct world *world, int64_t at)
{
	uint64_t entries = u64_in(world, at + TREE_ENTRIES), root = u64_in(world, at + TREE_ROOT);
	unsigned depth = u16_in(world, at + TREE_DEPTH);

	if (root == NO_PAGE) {
		expect(world, at + TREE_ENTRIES, 1, 8, NO_ROOT);
		expect(world, at + TREE_DEPTH, 1, 2, NO_ROOT);
		return;
	}
	expect(world, at + TREE_ENTRIES, entries + 1, 8, LOST);
	expect(world, at + TREE_ENTRIES, entries - 1, 8, LOST);
	expect(world, at + TREE_DEPTH, 0, 2, WRONG_DEPTH);
	expect(world, at + TREE_DEPTH, 17, 2, WRONG_DEPTH);
	expect(world, at + TREE_DEPTH, UINT16_MAX, 2, WRONG_DEPTH);
	expect(world, at + TREE_DEPTH, 16, 2, depth == 1 ? WRONG_PAGE : "is damaged at offset");
	expect(world, at + TREE_ROOT, NO_PAGE, 8, NO_ROOT);
	expect(world, at + TREE_ROOT, 1, 8, NO_NUMBER);
	expect(world, at + TREE_ROOT, world->last_page + 1, 8, NO_NUMBER);
	expect(world, at + TREE_ROOT, root + 1, 8, "is damaged at offset");
}

static void each_field_of_a_tree_is_checked(void **state)
{
	struct world world;
	int64_t	     main_page;
	unsigned     count;

	(void) state;
	world_init(&world);
	check_tree(&world, world.meta + META_FREE_TREE);
	check_tree(&world, world.meta + META_MAIN_TREE);
	main_page = (int64_t) u64_in(&world, world.meta + META_MAIN_TREE + TREE_ROOT) * PAGE;
	count = (u16_in(&world, main_page + 12) - 16) / 2;
	assert_int_equal(count, 3); /* leases, meta, records */
	for (unsigned i = 0; i < count; i++) {
		int64_t node = main_page + u16_in(&world, main_page + 16 + 2 * i);

		check_tree(&world, node + 8 + u16_in(&world, node + 6));
		expect(&world, node, 47, 4, WRONG_TREE);
		expect(&world, node + 4, 0, 2, WRONG_NODE);
	}
	world_fini(&world);
}

/* at: of the count of a list of free pages, whose room is size bytes. */
static void check_free_list(struct world *world, int64_t at, uint64_t size)
{
	uint64_t count = u64_in(world, at), used = u64_in(world, world->meta + META_MAIN_TREE + TREE_ROOT);

	expect(world, at, size / 8, 8, WRONG_FREE);
	expect(world, at, size / 8 + 1, 8, WRONG_FREE);
	expect(world, at, UINT64_MAX, 8, WRONG_FREE);
	expect(world, at, 0, 8, NULL); /* fewer are free: nothing is in two places */
	if (count == 0)
		return;
	expect(world, at + 8 * (int64_t) count, 0, 8, NO_NUMBER);
	expect(world, at + 8 * (int64_t) count, 1, 8, NO_NUMBER);
	expect(world, at + 8 * (int64_t) count, world->last_page + 1, 8, NO_NUMBER);
	expect(world, at + 8 * (int64_t) count, used, 8, TWICE);
	if (count > 1)
		expect(world, at + 8, u64_in(world, at + 16), 8, TWICE);
}

static void free_pages_are_checked(void **state)
{
	struct world world;
	int64_t	     at;
	unsigned     count;

	(void) state;
	world_init(&world);
	at = (int64_t) u64_in(&world, world.meta + META_FREE_TREE + TREE_ROOT) * PAGE;
	assert_int_equal(u16_in(&world, at + 10), 2); /* one leaf */
	count = (u16_in(&world, at + 12) - 16) / 2;
	assert_true(count > 0);
	for (unsigned i = 0; i < count; i++) {
		int64_t	 node = at + u16_in(&world, at + 16 + 2 * i);
		uint64_t size = u16_in(&world, node) | (uint64_t) u16_in(&world, node + 2) << 16;

		assert_int_equal(u16_in(&world, node + 6), 8);
		assert_int_equal(u16_in(&world, node + 4), 0);
		check_free_list(&world, node + 16, size);
		expect(&world, node, 7, 4, WRONG_FREE);
		expect(&world, node, 0, 4, WRONG_FREE);
		expect(&world, node + 6, 7, 2, WRONG_NODE);
		if (i > 0)
			expect(&world, node + 8, u64_in(&world, at + u16_in(&world, at + 14 + 2 * i) + 8), 8,
			       ORDER);
	}
	world_fini(&world);
}

/* A list that takes pages of its own is checked like a short one. */
static void a_long_list_of_free_pages_is_checked(void **state)
{
	struct world world;
	int64_t	     at;
	unsigned     count, found = 0;

	(void) state;
	world_init_with(&world, true);
	at = (int64_t) u64_in(&world, world.meta + META_FREE_TREE + TREE_ROOT) * PAGE;
	assert_int_equal(u16_in(&world, at + 10), 2);
	count = (u16_in(&world, at + 12) - 16) / 2;
	for (unsigned i = 0; i < count; i++) {
		int64_t	 node = at + u16_in(&world, at + 16 + 2 * i);
		uint64_t size = u16_in(&world, node) | (uint64_t) u16_in(&world, node + 2) << 16;

		if (u16_in(&world, node + 4) == 0)
			continue;
		assert_true(size > PAGE / 2);
		check_free_list(&world, (int64_t) u64_in(&world, node + 16) * PAGE + 16, size);
		check_big(&world, (int64_t) u64_in(&world, node + 16) * PAGE);
		found++;
	}
	assert_true(found > 0);
	world_fini(&world);
}

static void each_field_of_a_meta_page_is_checked(void **state)
{
	static const uint64_t sizes[] = { 0, 1, 256, 511, 4095, 4097, 6144, 131072, UINT32_MAX };
	static const char     wrong[] = "this is not a meta page of LMDB";
	struct world	      world;
	int64_t		      newest;

	(void) state;
	world_init(&world);
	newest = world.meta;
	for (int64_t at = 0; at <= PAGE; at += PAGE) {
		expect(&world, at, (uint64_t) at / 4096 + 1, 8, wrong);
		expect(&world, at + 10, 0, 2, wrong);
		expect(&world, at + 10, 4, 2, wrong);
		expect(&world, at + 10, 8 | 16, 2, NULL); /* other flags are LMDB's own */
		expect(&world, at + 16, 0xBEEFC0DF, 4, wrong);
		for (uint64_t version = 0; version < 4; version++)
			if (version != 1) {
				assert_status(verify_with(&world, at + 20, version, 4), VD_NEWER_FORMAT);
				assert_non_null(strstr(world.error.message, VDI_CHECKPOINT_NAME));
			}
		for (size_t i = 0; i < VDI_ARRAY_SIZE(sizes); i++)
			expect(&world, at + META_FREE_TREE, sizes[i], 4, "an impossible page size");
		expect(&world, at + META_FREE_TREE, 512, 4, at ? "an impossible page size" : wrong);
		expect(&world, at + META_FREE_TREE, 65536, 4, at ? "an impossible page size" : wrong);
	}
	/* the newest one is the one that counts, and of two that are alike the first */
	expect(&world, PAGE - newest + META_LAST_PAGE, UINT64_MAX, 8, NULL);
	expect(&world, newest + META_LAST_PAGE, UINT64_MAX, 8, "was cut at offset");
	expect(&world, newest + META_LAST_PAGE, (uint64_t) INT64_MAX / 4096, 8, "was cut at offset");
	expect(&world, newest + META_LAST_PAGE, (uint64_t) INT64_MAX / 4096 - 1, 8, "was cut at offset");
	expect(&world, newest + META_LAST_PAGE, (uint64_t) world.size / 4096, 8, "was cut at offset");
	expect(&world, newest + META_LAST_PAGE, (uint64_t) world.size / 4096 - 1, 8, NULL);
	expect(&world, newest + META_LAST_PAGE, world.last_page - 1, 8, NO_NUMBER);
	world_fini(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_file_is_seen_whole),
		cmocka_unit_test(each_field_of_a_page_header_is_checked),
		cmocka_unit_test(a_child_is_a_page_of_its_own),
		cmocka_unit_test(each_field_of_a_tree_is_checked),
		cmocka_unit_test(free_pages_are_checked),
		cmocka_unit_test(a_long_list_of_free_pages_is_checked),
		cmocka_unit_test(each_field_of_a_meta_page_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
