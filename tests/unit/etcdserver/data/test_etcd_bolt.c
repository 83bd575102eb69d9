/* bbolt files: what is written is read again, whatever its size; what is damaged is refused and never
 * followed. */
#include "bolt_read.h"
#include "bolt_write.h"
#include "vdtest.h"

struct memory {
	uint8_t *bytes;
	size_t	 capacity;
};

static vd_status write_memory(void *arg, int64_t offset, const void *bytes, size_t size)
{
	struct memory *memory = arg;

	if (!vdi_grow((void **) &memory->bytes, &memory->capacity, (size_t) offset + size, 1))
		return VD_NOMEM;
	memcpy(memory->bytes + offset, bytes, size);
	return VD_OK;
}

static void make_key(char key[16], int i)
{
	(void) snprintf(key, 16, "key-%08d", i);
}

/* count pairs in "many", one large value in "large", nothing in "none". */
static size_t make_file(struct memory *memory, int count)
{
	struct vdi_bolt_sink	sink = { write_memory, memory };
	struct vdi_bolt_writer *writer;
	static char		large[100000];
	int64_t			size;
	char			key[16];

	assert_status(vdi_bolt_writer_new(&sink, &writer), VD_OK);
	memset(large, 'x', sizeof large);
	assert_status(vdi_bolt_bucket_begin(writer, "large"), VD_OK);
	assert_status(vdi_bolt_put(writer, vd_bytes_of("a"), (struct vd_bytes) { large, sizeof large }),
		      VD_OK);
	assert_status(vdi_bolt_put(writer, vd_bytes_of("b"), vd_bytes_of("small")), VD_OK);
	assert_status(vdi_bolt_bucket_end(writer), VD_OK);
	assert_status(vdi_bolt_bucket_begin(writer, "many"), VD_OK);
	for (int i = 0; i < count; i++) {
		make_key(key, i);
		assert_status(
			vdi_bolt_put(writer, vd_bytes_of(key), (struct vd_bytes) { key, (size_t) (i % 12) }),
			VD_OK);
	}
	assert_status(vdi_bolt_bucket_end(writer), VD_OK);
	assert_status(vdi_bolt_bucket_begin(writer, "none"), VD_OK);
	assert_status(vdi_bolt_bucket_end(writer), VD_OK);
	assert_status(vdi_bolt_finish(writer, &size), VD_OK);
	(void) vdi_bolt_writer_free(writer);
	return (size_t) size;
}

static vd_status count_pair(void *arg, struct vd_bytes key, struct vd_bytes value)
{
	int *next = arg;
	char wanted[16];

	make_key(wanted, *next);
	assert_true(vd_bytes_equal(key, vd_bytes_of(wanted)));
	assert_true(vd_bytes_equal(value, (struct vd_bytes) { wanted, (size_t) (*next % 12) }));
	++*next;
	return VD_OK;
}

static vd_status add_sizes(void *arg, struct vd_bytes key, struct vd_bytes value)
{
	*(size_t *) arg += key.size + value.size;
	return VD_OK;
}

static uint64_t number_at(const uint8_t *at, size_t size)
{
	uint64_t number = 0;

	for (size_t i = size; i; i--)
		number = number << 8 | at[i - 1];
	return number;
}

/* One page and all below it, as bbolt lays them out: its own number, its flags, elements in the order of
 * their keys; more than one page only for a single element, and a branch names the first key of each child.
 * Returns the first key. */
static struct vd_bytes check_page(const struct memory *memory, uint64_t page, size_t *ret_leaves)
{
	const uint8_t *at = memory->bytes + page * 4096;
	uint64_t       flags = number_at(at + 8, 2), count = number_at(at + 10, 2),
		 overflow = number_at(at + 12, 4);
	struct vd_bytes first = VD_BYTES_NONE, last = VD_BYTES_NONE;
	size_t		used = 16 + count * 16;

	assert_int_equal(number_at(at, 8), page);
	assert_true(flags == 1 || flags == 2);
	assert_true(count > 0 || flags == 2);
	*ret_leaves += flags == 2;
	for (uint64_t i = 0; i < count; i++) {
		const uint8_t  *element = at + 16 + i * 16;
		bool		is_branch = flags == 1;
		struct vd_bytes key = { element + number_at(element + (is_branch ? 0 : 4), 4),
					number_at(element + (is_branch ? 4 : 8), 4) };

		used += key.size + (is_branch ? 0 : number_at(element + 12, 4));
		if (is_branch)
			assert_true(vd_bytes_equal(check_page(memory, number_at(element + 8, 8), ret_leaves),
						   key));
		if (i)
			assert_true(vd_bytes_compare(last, key) < 0);
		else
			first = key;
		last = key;
	}
	assert_true(used <= (overflow + 1) * 4096);
	assert_true(overflow == 0 || (count == 1 && used > overflow * 4096));
	return first;
}

static void e165_pages_are_laid_out_as_bbolts(void **state)
{
	static const int counts[] = { 0, 1, 50, 300, 40000 };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(counts); i++) {
		struct memory  memory = { 0 };
		size_t	       leaves = 0;
		const uint8_t *root;

		(void) make_file(&memory, counts[i]);
		for (int meta = 0; meta < 2; meta++) {
			uint64_t page = number_at(memory.bytes + meta * 4096 + 32, 8);

			assert_int_equal(number_at(memory.bytes + meta * 4096 + 8, 2), 4);
			leaves = 0;
			(void) check_page(&memory, page, &leaves);
			assert_int_equal(leaves, 1);
			/* Three buckets, each with a root of its own. */
			root = memory.bytes + page * 4096;
			assert_int_equal(number_at(root + 10, 2), 3);
			for (int bucket = 0; bucket < 3; bucket++) {
				const uint8_t *element = root + 16 + bucket * 16;
				const uint8_t *value =
					element + number_at(element + 4, 4) + number_at(element + 8, 4);

				assert_int_equal(number_at(element, 4), 1);
				assert_int_equal(number_at(element + 12, 4), 16);
				leaves = 0;
				(void) check_page(&memory, number_at(value, 8), &leaves);
				assert_true(leaves >= 1);
				/* Pages are filled: what 40000 small pairs need and little more. */
				if (bucket == 1 && counts[i] == 40000)
					assert_in_range(leaves, 40000 * (16 + 12 + 5) / 4096,
							40000 * (16 + 12 + 6) / 4096 + 10);
			}
		}
		vdi_free(memory.bytes);
	}
}

/* Whatever a page is, it begins with its own number and says how many follow that are its own. */
static void e165_every_page_has_its_number(void **state)
{
	struct memory memory = { 0 };
	size_t	      size = make_file(&memory, 3000), pages = 0;
	unsigned      kinds = 0;

	(void) state;
	for (size_t at = 0; at < size; pages++) {
		uint64_t flags = number_at(memory.bytes + at + 8, 2);

		assert_int_equal(number_at(memory.bytes + at, 8), at / 4096);
		assert_true(flags == 1 || flags == 2 || flags == 4 || flags == 16);
		kinds |= (unsigned) flags;
		at += 4096 * (1 + number_at(memory.bytes + at + 12, 4));
		assert_true(at <= size);
	}
	assert_int_equal(kinds, 1 | 2 | 4 | 16);
	assert_true(pages > 20);
	vdi_free(memory.bytes);
}

static void e165_what_is_written_is_read(void **state)
{
	static const int counts[] = { 0, 1, 50, 300, 40000 };

	(void) state;
	for (size_t i = 0; i < VDI_ARRAY_SIZE(counts); i++) {
		struct memory	     memory = { 0 };
		size_t		     size = make_file(&memory, counts[i]);
		struct vdi_bolt_file file;
		int		     next = 0;
		size_t		     sizes = 0;

		assert_int_equal(size % 4096, 0);
		assert_status(vdi_bolt_file_init((struct vd_bytes) { memory.bytes, size }, &file, NULL),
			      VD_OK);
		assert_status(vdi_bolt_each(&file, "many", count_pair, &next, NULL), VD_OK);
		assert_int_equal(next, counts[i]);
		assert_status(vdi_bolt_each(&file, "large", add_sizes, &sizes, NULL), VD_OK);
		assert_int_equal(sizes, 1 + 100000 + 1 + 5);
		assert_status(vdi_bolt_each(&file, "none", add_sizes, &sizes, NULL), VD_OK);
		assert_status(vdi_bolt_each(&file, "absent", add_sizes, &sizes, NULL), VD_OK);
		assert_int_equal(sizes, 1 + 100000 + 1 + 5);
		vdi_free(memory.bytes);
	}
	assert_int_equal(vdi_alloc_live(), 0);
}

/* The two meta pages as bbolt reads them, and the page of free pages, which names none. */
static void e165_meta_pages(void **state)
{
	struct memory  memory = { 0 };
	size_t	       size = make_file(&memory, 300);
	const uint8_t *free_page;

	(void) state;
	for (uint64_t place = 0; place < 2; place++) {
		const uint8_t *page = memory.bytes + place * 4096, *meta = page + 16;
		uint64_t       hash = 0xcbf29ce484222325u;

		for (size_t i = 0; i < 56; i++)
			hash = (hash ^ meta[i]) * 0x100000001b3u;
		assert_int_equal(number_at(page, 8), place);
		assert_int_equal(number_at(page + 8, 2), 4);
		assert_int_equal(number_at(page + 10, 2), 0);
		assert_int_equal(number_at(page + 12, 4), 0);
		assert_int_equal(number_at(meta, 4), 0xED0CDAED);
		assert_int_equal(number_at(meta + 4, 4), 2);
		assert_int_equal(number_at(meta + 8, 4), 4096);
		assert_int_equal(number_at(meta + 12, 4), 0);
		assert_in_range(number_at(meta + 16, 8), 3, size / 4096 - 1); /* the root */
		assert_int_equal(number_at(meta + 24, 8), 0);
		assert_int_equal(number_at(meta + 32, 8), 2); /* the free pages */
		assert_int_equal(number_at(meta + 40, 8), size / 4096);
		assert_int_equal(number_at(meta + 48, 8), place); /* the transaction */
		assert_int_equal(number_at(meta + 56, 8), hash);
		for (size_t i = 16 + 64; i < 4096; i++)
			assert_int_equal(page[i], 0);
	}
	free_page = memory.bytes + 2 * 4096;
	assert_int_equal(number_at(free_page, 8), 2);
	assert_int_equal(number_at(free_page + 8, 2), 16);
	for (size_t i = 10; i < 4096; i++)
		assert_int_equal(free_page[i], 0);
	vdi_free(memory.bytes);
}

/* Each byte of heads and page headers is turned, and the file is cut: an answer or VD_CORRUPT, never a crash
 * (with the address sanitizer: no read beyond). */
static void damage_is_refused(void **state)
{
	struct memory memory = { 0 };
	size_t	      size = make_file(&memory, 300);

	(void) state;
	for (size_t at = 0; at < size; at += at % 4096 < 64 ? 1 : 61) {
		struct vdi_bolt_file file;
		struct vd_error	     error = { 0 };
		size_t		     sizes = 0;

		memory.bytes[at] ^= 0xff;
		if (vdi_bolt_file_init((struct vd_bytes) { memory.bytes, size }, &file, &error) == VD_OK)
			if (vdi_bolt_each(&file, "many", add_sizes, &sizes, &error) != VD_OK)
				assert_int_equal(error.code, VD_CORRUPT);
		memory.bytes[at] ^= 0xff;
	}
	for (size_t cut = 0; cut < size; cut += 997) {
		struct vdi_bolt_file file;
		uint8_t		    *part = malloc(cut + 1);

		memcpy(part, memory.bytes, cut);
		assert_status(vdi_bolt_file_init((struct vd_bytes) { part, cut }, &file, NULL), VD_CORRUPT);
		free(part);
	}
	vdi_free(memory.bytes);
}

/* The file ends where it is said to end, even if a page that could be read lies behind it. */
static void a_page_behind_the_end_is_damage(void **state)
{
	struct memory	     memory = { 0 };
	size_t		     size = make_file(&memory, 1), pages = size / 4096;
	uint8_t		    *bytes = malloc(size + 4096), *root, *element;
	struct vdi_bolt_file file;
	size_t		     sizes = 0;
	uint64_t	     many;

	(void) state;
	memcpy(bytes, memory.bytes, size);
	root = bytes + number_at(bytes + 32, 8) * 4096;
	element = root + 16 + 16; /* "many" */
	element += number_at(element + 4, 4) + number_at(element + 8, 4);
	many = number_at(element, 8);
	memcpy(bytes + size, bytes + many * 4096, 4096);
	assert_true(pages < 250);
	bytes[size] = (uint8_t) pages;
	element[0] = (uint8_t) pages;
	assert_status(vdi_bolt_file_init((struct vd_bytes) { bytes, size }, &file, NULL), VD_OK);
	assert_status(vdi_bolt_each(&file, "many", add_sizes, &sizes, NULL), VD_CORRUPT);
	assert_int_equal(sizes, 0);
	free(bytes);
	vdi_free(memory.bytes);
}

static void torture_writer(void **state)
{
	bool done = false;

	(void) state;
	for (uint64_t nth = 1; !done && nth < 100; nth++) {
		struct memory		memory = { 0 };
		struct vdi_bolt_sink	sink = { write_memory, &memory };
		struct vdi_bolt_writer *writer = NULL;
		int64_t			size;
		vd_status		status;

		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_bolt_writer_new(&sink, &writer);
		if (status == VD_OK)
			status = vdi_bolt_bucket_begin(writer, "b");
		for (int i = 0; status == VD_OK && i < 500; i++) {
			char key[16];

			make_key(key, i);
			status = vdi_bolt_put(writer, vd_bytes_of(key), vd_bytes_of(key));
		}
		if (status == VD_OK)
			status = vdi_bolt_bucket_end(writer);
		if (status == VD_OK)
			status = vdi_bolt_finish(writer, &size);
		done = !vdi_alloc_failed();
		(void) vdi_alloc_fail_nth(0, 0);
		assert_true(status == VD_OK || status == VD_NOMEM);
		assert_true(status == VD_OK || !done);
		(void) vdi_bolt_writer_free(writer);
		vdi_free(memory.bytes);
		assert_int_equal(vdi_alloc_live(), 0);
	}
	assert_true(done);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(e165_what_is_written_is_read),
		cmocka_unit_test(e165_pages_are_laid_out_as_bbolts),
		cmocka_unit_test(e165_every_page_has_its_number),
		cmocka_unit_test(e165_meta_pages),
		cmocka_unit_test(damage_is_refused),
		cmocka_unit_test(a_page_behind_the_end_is_damage),
		cmocka_unit_test(torture_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
