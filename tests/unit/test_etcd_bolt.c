/* bbolt files: what is written is read again, whatever its size; what is damaged is refused and never followed. */
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
	assert_status(vdi_bolt_put(writer, vd_bytes_of("a"), (struct vd_bytes) { large, sizeof large }), VD_OK);
	assert_status(vdi_bolt_put(writer, vd_bytes_of("b"), vd_bytes_of("small")), VD_OK);
	assert_status(vdi_bolt_bucket_end(writer), VD_OK);
	assert_status(vdi_bolt_bucket_begin(writer, "many"), VD_OK);
	for (int i = 0; i < count; i++) {
		make_key(key, i);
		assert_status(vdi_bolt_put(writer, vd_bytes_of(key), (struct vd_bytes) { key, (size_t) (i % 12) }), VD_OK);
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
		assert_status(vdi_bolt_file_init((struct vd_bytes) { memory.bytes, size }, &file, NULL), VD_OK);
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

/* Each byte of heads and page headers is turned, and the file is cut: an answer or VD_CORRUPT, never a crash (with the address sanitizer: no read beyond). */
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
		cmocka_unit_test(damage_is_refused),
		cmocka_unit_test(torture_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
