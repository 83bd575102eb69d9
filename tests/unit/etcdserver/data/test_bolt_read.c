/* Unit tests of etcdserver/data/bolt_read.c: pages put together by hand, whose heads and places are wrong one
 * by one. */
#include "bolt_read.h"
#include "vdtest.h"

#define PAGES 10
#define BRANCH 1
#define LEAF 2
#define VERSION_HERE 2

struct file {
	uint8_t *bytes;
	size_t	 page_size;
	size_t	 size;
};

static void set(struct file *file, size_t offset, uint64_t number, size_t size)
{
	assert_true(offset + size <= file->size);
	for (size_t i = 0; i < size; i++)
		file->bytes[offset + i] = (uint8_t) (number >> 8 * i);
}

static void seal(struct file *file, size_t page)
{
	uint64_t hash = 0xcbf29ce484222325u;

	for (size_t i = 16; i < 72; i++)
		hash = (hash ^ file->bytes[page * file->page_size + i]) * 0x100000001b3u;
	set(file, page * file->page_size + 72, hash, 8);
}

static void set_meta(struct file *file, size_t page, uint64_t root, uint64_t transaction)
{
	size_t at = page * file->page_size + 16;

	set(file, at, 0xED0CDAED, 4);
	set(file, at + 4, VERSION_HERE, 4);
	set(file, at + 8, file->page_size, 4);
	set(file, at + 16, root, 8);
	set(file, at + 40, PAGES, 8);
	set(file, at + 48, transaction, 8);
	seal(file, page);
}

static void set_page(struct file *file, size_t page, unsigned flags, unsigned count, unsigned overflow)
{
	set(file, page * file->page_size, page, 8);
	set(file, page * file->page_size + 8, flags, 2);
	set(file, page * file->page_size + 10, count, 2);
	set(file, page * file->page_size + 12, overflow, 4);
}

/* at: of the leaf's head; the key and value lie place bytes behind their element. */
static void set_pair(struct file *file, size_t at, size_t index, unsigned flags, size_t place,
		     const char *key, const void *value, size_t value_size)
{
	size_t element = at + 16 + index * 16;

	set(file, element, flags, 4);
	set(file, element + 4, place, 4);
	set(file, element + 8, strlen(key), 4);
	set(file, element + 12, value_size, 4);
	memcpy(file->bytes + element + place, key, strlen(key));
	memcpy(file->bytes + element + place + strlen(key), value, value_size);
}

#define AT(page) ((page) *file->page_size)

/* Page 2: the root, with the buckets "big" (root page 3), "inline" (in the value) and a pair that is none. 3:
 * a branch over the leaves 4 and 5, of which 5 has a page more. 7: the root of the older head, empty. */
static void file_init(struct file *file, size_t page_size)
{
	uint8_t root[16] = { 3 }, inlined[16 + 16 + 16 + 4] = { 0 };

	file->page_size = page_size;
	file->size = PAGES * page_size;
	file->bytes = calloc(1, file->size);
	set_meta(file, 0, 7, 4);
	set_meta(file, 1, 2, 5);
	inlined[16 + 8] = LEAF;
	inlined[16 + 10] = 1;
	inlined[32 + 4] = 16;
	inlined[32 + 8] = 2;
	inlined[32 + 12] = 2;
	memcpy(inlined + 48, "k1v1", 4);
	set_page(file, 2, LEAF, 3, 0);
	set_pair(file, AT(2), 0, 1, 64, "big", root, sizeof root);
	set_pair(file, AT(2), 1, 1, 100, "inline", inlined, sizeof inlined);
	set_pair(file, AT(2), 2, 0, 200, "pair", "x", 1);
	set_page(file, 3, BRANCH, 2, 0);
	set(file, AT(3) + 16 + 8, 4, 8);
	set(file, AT(3) + 32 + 8, 5, 8);
	set_page(file, 4, LEAF, 2, 0);
	set_pair(file, AT(4), 0, 0, 32, "a", "1", 1);
	set_pair(file, AT(4), 1, 0, 18, "b", "2", 1);
	set_page(file, 5, LEAF, 1, 1);
	set_pair(file, AT(5), 0, 0, 16, "c", "3", 1);
	set_page(file, 7, LEAF, 0, 0);
}

static vd_status add_text(void *arg, struct vd_bytes key, struct vd_bytes value)
{
	char *text = arg;

	strncat(text, key.data, VDI_MIN(key.size, (size_t) 9));
	strncat(text, value.data, VDI_MIN(value.size, (size_t) 9));
	return VD_OK;
}

/* What the bucket holds; NULL: VD_CORRUPT, with a sentence. From bytes of exactly this length, so that a read
 * too far is caught. */
static const char *content(const struct file *file, size_t size, const char *bucket)
{
	static char	     text[512];
	uint8_t		    *bytes = malloc(size ? size : 1);
	struct vdi_bolt_file opened;
	struct vd_error	     error = { 0 };
	vd_status	     status;

	*text = 0;
	memcpy(bytes, file->bytes, size);
	status = vdi_bolt_file_init((struct vd_bytes) { bytes, size }, &opened, &error);
	if (status == VD_OK)
		status = vdi_bolt_each(&opened, bucket, add_text, text, &error);
	free(bytes);
	if (status == VD_OK)
		return text;
	assert_status(status, VD_CORRUPT);
	assert_true(error.message[0]);
	return NULL;
}

static void expect(const struct file *file, const char *bucket, const char *wanted, unsigned line)
{
	const char *found = content(file, file->size, bucket);

	if (wanted == NULL ? found != NULL : found == NULL || strcmp(found, wanted) != 0)
		fail_msg("line %u: \"%s\", expected \"%s\"", line, found ? found : "damaged",
			 wanted ? wanted : "damaged");
}
#define EXPECT(bucket, wanted) expect(file, bucket, wanted, __LINE__)

/* The bucket "big" with a number changed. */
static void expect_with(struct file *file, size_t offset, uint64_t number, size_t size, const char *wanted,
			unsigned line)
{
	uint8_t before[8];

	memcpy(before, file->bytes + offset, size);
	set(file, offset, number, size);
	expect(file, "big", wanted, line);
	memcpy(file->bytes + offset, before, size);
}
#define WITH(offset, number, size, wanted) expect_with(file, offset, number, size, wanted, __LINE__)

static void a_sound_file_of_each_page_size(void **state)
{
	struct file two, *file = &two;

	(void) state;
	for (size_t size = 1024; size <= 65536; size *= 2) {
		file_init(file, size);
		EXPECT("big", "a1b2c3");
		EXPECT("inline", "k1v1");
		EXPECT("pair", ""); /* no bucket */
		EXPECT("none", "");
		free(file->bytes);
	}
}

/* Of two sound heads the newer one counts; of one that is damaged, the other. */
static void heads_are_checked(void **state)
{
	static const struct {
		size_t	 offset, size;
		uint64_t number;
	} wrong[] = { { 16, 4, 0xED0CDAEC }, { 20, 4, 1 },	{ 20, 4, 3 },
		      { 24, 4, 0 },	     { 24, 4, 256 },	{ 24, 4, 4095 },
		      { 24, 4, 6144 },	     { 24, 4, 131072 }, { 24, 4, 0x80001000 } };
	struct file two, *file = &two;
	uint8_t	    before[64];

	(void) state;
	file_init(file, 4096);
	for (size_t page = 0; page < 2; page++) {
		const char *left = page ? "" : "a1b2c3"; /* what the other head says */

		for (size_t i = 0; i < VDI_ARRAY_SIZE(wrong); i++) {
			memcpy(before, file->bytes + AT(page) + 16, sizeof before);
			set(file, AT(page) + wrong[i].offset, wrong[i].number, wrong[i].size);
			seal(file, page);
			EXPECT("big", left);
			memcpy(file->bytes + AT(page) + 16, before, sizeof before);
		}
		for (size_t at = AT(page) + 16; at < AT(page) + 80;
		     at++) { /* the checksum covers all of it */
			file->bytes[at] ^= 1;
			EXPECT("big", left);
			file->bytes[at] ^= 1;
		}
	}
	set_meta(file, 0, 7, 6);
	EXPECT("big", "");
	set_meta(file, 0, 7, 5); /* of two that are alike the first */
	EXPECT("big", "");
	set_meta(file, 0, 7, 4);
	EXPECT("big", "a1b2c3");
	file->bytes[16] ^= 1;
	file->bytes[AT(1) + 16] ^= 1;
	EXPECT("big", NULL);
	free(file->bytes);
}

static void a_file_that_is_cut_is_refused(void **state)
{
	struct file two, *file = &two;

	(void) state;
	file_init(file, 1024);
	for (size_t size = 0; size < file->size; size += size < 3000 ? 1 : 101)
		assert_null(content(file, size, "big"));
	assert_null(content(file, file->size - 1, "big"));
	set(file, AT(1) + 16 + 40, PAGES + 1, 8);
	seal(file, 1);
	EXPECT("big", NULL);
	free(file->bytes);
}

static void numbers_of_pages_are_checked(void **state)
{
	struct file two, *file = &two;
	size_t	    child;

	(void) state;
	file_init(file, 4096);
	child = AT(3) + 16 + 8;
	WITH(child, 0, 8, NULL);
	WITH(child, 1, 8, NULL);
	WITH(child, PAGES, 8, NULL);
	WITH(child, PAGES - 1, 8, NULL); /* neither branch nor leaf */
	WITH(child, UINT64_MAX, 8, NULL);
	WITH(child, 3, 8, NULL); /* itself */
	WITH(child, 2, 8, NULL); /* where it came from */
	WITH(child, 5, 8, NULL); /* twice */
	WITH(child, 7, 8, "c3"); /* empty */
	WITH(child, 7 | (uint64_t) 1 << 40, 8, NULL);
	set_page(file, 9, LEAF, 0, 0); /* the last one may be */
	WITH(child, 9, 8, "c3");
	free(file->bytes);
}

static void heads_of_pages_are_checked(void **state)
{
	struct file two, *file = &two;

	(void) state;
	file_init(file, 4096);
	WITH(AT(4) + 8, 0, 2, NULL);
	WITH(AT(4) + 8, 4, 2, NULL);
	WITH(AT(4) + 8, 16, 2, NULL);
	WITH(AT(4) + 12, 5, 4, "a1b2c3"); /* up to the end of the file */
	WITH(AT(4) + 12, 6, 4, NULL);
	WITH(AT(4) + 12, UINT32_MAX, 4, NULL);
	WITH(AT(4) + 10, 256, 2, NULL); /* more elements than a page has room for */
	WITH(AT(4) + 10, UINT16_MAX, 2, NULL);
	WITH(AT(4) + 10, 1, 2, "a1c3");
	WITH(AT(3) + 10, 1, 2, "a1b2");
	WITH(AT(3) + 10, 256, 2, NULL);
	WITH(AT(3) + 10, 0, 2, "");
	free(file->bytes);
}

/* Key and value end with the page, or one byte behind it. */
static void places_of_pairs_are_checked(void **state)
{
	struct file two, *file = &two;
	size_t	    element, room;

	(void) state;
	file_init(file, 4096);
	element = AT(4) + 16 + 16;
	room = 4096 - 32;
	WITH(element + 4, room - 2, 4, "a1c3"); /* two zero bytes, which end the text */
	WITH(element + 4, room - 1, 4, NULL);
	WITH(element + 4, room, 4, NULL);
	WITH(element + 4, room + 1, 4, NULL);
	WITH(element + 4, UINT32_MAX, 4, NULL);
	WITH(element + 8, room - 18, 4, NULL);
	WITH(element + 8, UINT32_MAX, 4, NULL);
	WITH(element + 12, room - 18, 4, NULL);
	WITH(element + 12, room - 18 - 1, 4, "a1b2c3"); /* a value to the end; only its text is looked at */
	WITH(element + 12, UINT32_MAX, 4, NULL);
	WITH(element, 1, 4, "a1c3"); /* a bucket inside of a bucket */
	free(file->bytes);
}

static void a_chain_of_branches_has_an_end(void **state)
{
	struct file deep = { .page_size = 1024, .size = 60 * 1024 }, *file = &deep;

	(void) state;
	for (unsigned depth = 30; depth < 36; depth++) {
		uint8_t root[16] = { 3 };

		file->bytes = calloc(1, file->size);
		set_meta(file, 0, 2, 5);
		set(file, 16 + 40, 60, 8);
		seal(file, 0);
		set_page(file, 2, LEAF, 1, 0);
		set_pair(file, AT(2), 0, 1, 64, "big", root, sizeof root);
		for (size_t page = 3; page < 3 + depth; page++) {
			set_page(file, page, BRANCH, 1, 0);
			set(file, AT(page) + 16 + 8, page + 1, 8);
		}
		set_page(file, 3 + depth, LEAF, 1, 0);
		set_pair(file, AT(3 + depth), 0, 0, 16, "c", "3", 1);
		EXPECT("big", depth <= 32 ? "c3" : NULL);
		free(file->bytes);
	}
}

/* A bucket's value: 16 bytes, root and sequence; with root 0 a leaf behind them. */
static void buckets_are_checked(void **state)
{
	struct file two, *file = &two;
	size_t	    element, value;

	(void) state;
	file_init(file, 4096);
	WITH(AT(2) + 16 + 12, 15, 4, NULL);
	element = AT(2) + 16 + 16;
	value = element + 100 + 6;
	for (unsigned size = 0; size < 52; size++) { /* cut anywhere: head, elements, pair */
		set(file, element + 12, size, 4);
		EXPECT("inline", NULL);
	}
	set(file, element + 12, 52, 4);
	EXPECT("inline", "k1v1");
	set(file, value + 16 + 8, 1, 2); /* a branch cannot lie there */
	EXPECT("inline", NULL);
	set(file, value + 16 + 8, LEAF, 2);
	set(file, value + 16 + 10, 0, 2);
	EXPECT("inline", "");
	set(file, value + 16 + 10, 3, 2);
	EXPECT("inline", NULL);
	set(file, element + 12, 32, 4); /* no more than a head */
	EXPECT("inline", NULL);
	set(file, value + 16 + 10, 0, 2);
	EXPECT("inline", "");
	free(file->bytes);
}

static vd_status refuse(void *arg, struct vd_bytes key, struct vd_bytes value)
{
	(void) key;
	(void) value;
	++*(int *) arg;
	return VD_FULL;
}

static void an_answer_ends_the_walk(void **state)
{
	struct file	     two, *file = &two;
	struct vdi_bolt_file opened;
	int		     calls = 0;

	(void) state;
	file_init(file, 4096);
	assert_status(vdi_bolt_file_init((struct vd_bytes) { file->bytes, file->size }, &opened, NULL),
		      VD_OK);
	assert_status(vdi_bolt_each(&opened, "big", refuse, &calls, NULL), VD_FULL);
	assert_int_equal(calls, 1);
	vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_bolt_each(&opened, "big", refuse, &calls, NULL), VD_NOMEM);
	vdi_alloc_fail_nth(0, 0);
	free(file->bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sound_file_of_each_page_size),
		cmocka_unit_test(heads_are_checked),
		cmocka_unit_test(a_file_that_is_cut_is_refused),
		cmocka_unit_test(numbers_of_pages_are_checked),
		cmocka_unit_test(heads_of_pages_are_checked),
		cmocka_unit_test(places_of_pairs_are_checked),
		cmocka_unit_test(a_chain_of_branches_has_an_end),
		cmocka_unit_test(buckets_are_checked),
		cmocka_unit_test(an_answer_ends_the_walk),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
