/* Members: each complete, each a chunk, readable before its end; and nothing stays of one that failed. */
#include "vdtest.h"

#include <zlib.h>

#include "alloc.h"
#include "gzip_writer.h"

#define LARGE (3 << 20)

static char *random_text(size_t size)
{
	char	*text = malloc(size);
	uint32_t random = 7;

	for (size_t i = 0; i < size; i++) {
		random = random * 1664525 + 1013904223;
		text[i] = (char) (random >> 24);
	}
	return text;
}

/* The content of frame's one member; free. */
static char *unpack(const struct vd_blob *frame, size_t *ret_size)
{
	struct vd_bytes content = vdi_frame_content(frame);
	struct vd_bytes bytes = vd_blob_bytes(frame);
	char	       *text = malloc(LARGE), line[16];
	z_stream	stream = { .next_in = (Bytef *) (uintptr_t) content.data,
				   .avail_in = (uInt) content.size,
				   .next_out = (Bytef *) text,
				   .avail_out = LARGE };
	int		size = snprintf(line, sizeof line, "%zx\r\n", content.size);

	assert_memory_equal(bytes.data, line, (size_t) size);
	assert_memory_equal((const char *) content.data + content.size, "\r\n", 2);
	assert_int_equal(bytes.size, content.size + (size_t) size + 2);
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	assert_int_equal(stream.avail_in, 0);
	inflateEnd(&stream);
	*ret_size = stream.total_out;
	assert_int_equal(vdi_frame_unpacked_size(frame), stream.total_out);
	return text;
}

static void assert_member(struct vdi_gzip_writer *gzip_writer, const char *expected)
{
	struct vd_blob *frame;
	size_t		size;
	char	       *text;

	assert_status(vdi_gzip_writer_end(gzip_writer, &frame), VD_OK);
	assert_int_equal(vdi_gzip_writer_size(gzip_writer), 0);
	text = unpack(frame, &size);
	assert_int_equal(size, strlen(expected));
	assert_memory_equal(text, expected, size);
	free(text);
	vd_blob_unref(frame);
}

static void t202_r642_every_end_is_one_complete_member(void **state)
{
	static const char *const writes[] = { "first", "second", "third" };
	struct vdi_gzip_writer	*gzip_writer;
	int64_t			 live = vdi_alloc_live();

	assert_status(vdi_gzip_writer_new(&gzip_writer), VD_OK);
	vdi_gzip_writer_add(gzip_writer, vd_bytes_of("hello"));
	assert_member(gzip_writer, "hello");
	for (size_t i = 0; i < VDI_ARRAY_SIZE(writes); i++) {
		vdi_gzip_writer_add(gzip_writer, vd_bytes_of(writes[i]));
		assert_int_equal(vdi_gzip_writer_size(gzip_writer), strlen(writes[i]));
		assert_member(gzip_writer, writes[i]);
	}
	/* One end, one member. */
	for (size_t i = 0; i < VDI_ARRAY_SIZE(writes); i++)
		vdi_gzip_writer_add(gzip_writer, vd_bytes_of(writes[i]));
	assert_member(gzip_writer, "firstsecondthird");
	/* Given up in the middle. */
	vdi_gzip_writer_add(gzip_writer, vd_bytes_of("lost"));
	assert_null(vdi_gzip_writer_free(gzip_writer));
	assert_null(vdi_gzip_writer_free(NULL));
	assert_int_equal(vdi_alloc_live(), live);
}

/* Go's reader holds what the last block of a member brings back until the next member begins: the last one
 * must bring nothing. */
static void t202_r642_all_is_readable_before_the_last_block(void **state)
{
	struct vdi_gzip_writer *gzip_writer;
	struct vd_blob	       *frame;
	struct vd_bytes		content;
	const unsigned char	end[] = { 0, 0, 0xff, 0xff, 3, 0 };
	char			text[64];
	z_stream		stream = { .next_out = (Bytef *) text, .avail_out = sizeof text };

	assert_status(vdi_gzip_writer_new(&gzip_writer), VD_OK);
	vdi_gzip_writer_add(gzip_writer, vd_bytes_of("{\"type\":\"ADDED\"}\n"));
	assert_status(vdi_gzip_writer_end(gzip_writer, &frame), VD_OK);
	content = vdi_frame_content(frame);
	assert_int_equal(((const unsigned char *) content.data)[8],
			 4); /* the fastest level (RFC 1952, XFL) */
	/* A flush, the empty last block, checksum and size. */
	assert_memory_equal((const char *) content.data + content.size - 8 - sizeof end, end, sizeof end);
	stream.next_in = (Bytef *) (uintptr_t) content.data;
	stream.avail_in = (uInt) (content.size - 8 - 2);
	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	assert_int_equal(inflate(&stream, Z_NO_FLUSH), Z_OK);
	assert_int_equal(stream.total_out, 17);
	inflateEnd(&stream);
	vd_blob_unref(frame);
	vdi_gzip_writer_free(gzip_writer);
}

static void r642_a_large_member_leaves_no_large_buffer(void **state)
{
	struct vdi_gzip_writer *gzip_writer;
	struct vd_blob	       *frame;
	char		       *large = random_text(LARGE), *text;
	size_t			size;
	int64_t			live;

	assert_status(vdi_gzip_writer_new(&gzip_writer), VD_OK);
	vdi_gzip_writer_add(gzip_writer, vd_bytes_of("small"));
	assert_member(gzip_writer, "small");
	live = vdi_alloc_live();
	for (size_t at = 0; at < LARGE; at += 100000)
		vdi_gzip_writer_add(gzip_writer,
				    (struct vd_bytes) { large + at, VDI_MIN((size_t) 100000, LARGE - at) });
	assert_int_equal(vdi_gzip_writer_size(gzip_writer), LARGE);
	assert_status(vdi_gzip_writer_end(gzip_writer, &frame), VD_OK);
	text = unpack(frame, &size);
	assert_int_equal(size, LARGE);
	assert_memory_equal(text, large, LARGE);
	vd_blob_unref(frame);
	assert_int_equal(vdi_alloc_live(), live - 1);
	vdi_gzip_writer_add(gzip_writer, vd_bytes_of("small again"));
	assert_member(gzip_writer, "small again");
	free(text);
	free(large);
	vdi_gzip_writer_free(gzip_writer);
}

static void without_memory_a_member_is_lost_and_the_next_is_not(void **state)
{
	char *large = random_text(200000);

	for (uint64_t nth = 1, lost = 0;; nth++) {
		int64_t			live = vdi_alloc_live();
		struct vdi_gzip_writer *gzip_writer = NULL;
		struct vd_blob	       *frame = NULL;
		vd_status		status;

		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_gzip_writer_new(&gzip_writer);
		if (status == VD_OK) {
			vdi_gzip_writer_add(gzip_writer, (struct vd_bytes) { large, 100000 });
			vdi_gzip_writer_add(gzip_writer, (struct vd_bytes) { large, 100000 });
			status = vdi_gzip_writer_end(gzip_writer, &frame);
			lost += status != VD_OK;
		}
		(void) vdi_alloc_fail_nth(0, 0);
		if (gzip_writer) {
			vdi_gzip_writer_add(gzip_writer, vd_bytes_of("next"));
			assert_member(gzip_writer, "next");
		}
		vd_blob_unref(frame);
		vdi_gzip_writer_free(gzip_writer);
		assert_int_equal(vdi_alloc_live(), live);
		if (status == VD_OK) {
			assert_true(lost > 2);
			break;
		}
		assert_status(status, VD_NOMEM);
		assert_null(frame);
	}
	free(large);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t202_r642_every_end_is_one_complete_member),
		cmocka_unit_test(t202_r642_all_is_readable_before_the_last_block),
		cmocka_unit_test(r642_a_large_member_leaves_no_large_buffer),
		cmocka_unit_test(without_memory_a_member_is_lost_and_the_next_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
