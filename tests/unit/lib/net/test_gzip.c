/* The encoder: what comes out is gzip of what went in, whatever the pieces; and it is small. */
#include "vdtest.h"

#include <zlib.h>

#include "alloc.h"
#include "gzip.h"

#define CONTENT 300000

static char content[CONTENT];

static void make_content(void)
{
	uint32_t random = 1;

	for (size_t i = 0; i < CONTENT; i++) {
		random = random * 1664525 + 1013904223;
		content[i] =
			i % 1000 < 500 ? "{\"metadata\":{\"name\":\"x\"}}"[i % 25] : (char) (random >> 24);
	}
}

/* Everything of packed is one gzip stream, and it holds content[0..size). */
static void assert_holds(const char *packed, size_t packed_size, size_t size)
{
	static char text[CONTENT + 1];
	z_stream    stream = { .next_in = (Bytef *) (uintptr_t) packed,
			       .avail_in = (uInt) packed_size,
			       .next_out = (Bytef *) text,
			       .avail_out = sizeof text };

	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK); /* 16: gzip and nothing else */
	assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
	assert_int_equal(stream.avail_in, 0);
	assert_int_equal(stream.total_out, size);
	assert_memory_equal(text, content, size);
	inflateEnd(&stream);
}

static size_t pack(size_t size, size_t piece, size_t room_size, char *packed, size_t packed_max)
{
	struct vdi_gzip *gzip = NULL;
	size_t		 at = 0, used = 0, calls = 0;
	vd_status	 status = VD_AGAIN;

	assert_status(vdi_gzip_new(&gzip), VD_OK);
	while (at < size || status == VD_AGAIN) {
		struct vd_bytes input = { content + at, VDI_MIN(piece, size - at) };
		size_t		room = VDI_MIN(room_size, packed_max - used), taken = 99, made = 99;

		status = vdi_gzip_take(gzip, input, at + input.size == size, packed + used, room, &taken,
				       &made);
		assert_true(taken <= input.size && made <= room);
		assert_true(status == VD_OK || (status == VD_AGAIN && made == room));
		at += taken;
		used += made;
		assert_true(++calls < 4 * CONTENT);
	}
	assert_null(vdi_gzip_free(gzip));
	return used;
}

static void r647_any_pieces_and_rooms_make_the_same_content(void **state)
{
	static const size_t sizes[] = { 0, 1, 2, 1000, 65536, CONTENT }, pieces[] = { 1, 7, 65536, CONTENT },
			    rooms[] = { 1, 10, 32768, 2 * CONTENT };
	static char packed[2 * CONTENT];

	make_content();
	for (size_t i = 0; i < VDI_ARRAY_SIZE(sizes); i++)
		for (size_t j = 0; j < VDI_ARRAY_SIZE(pieces); j++)
			for (size_t k = 0; k < VDI_ARRAY_SIZE(rooms); k++)
				assert_holds(packed,
					     pack(sizes[i], pieces[j], rooms[k], packed, sizeof packed),
					     sizes[i]);
	assert_true(pack(CONTENT, 4096, 32768, packed, sizeof packed) <
		    CONTENT * 6 / 10); /* half of it says nothing new */
}

/* What was taken before a flush can be read before anything more is made, in rooms of any size; and an
 * encoder can begin anew at any time. */
static void r642_a_flush_makes_what_was_taken(void **state)
{
	static const size_t rooms[] = { 7, 100, 32768 };
	static char	    packed[2 * CONTENT], text[CONTENT];
	struct vdi_gzip	   *gzip;

	make_content();
	assert_status(vdi_gzip_new(&gzip), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rooms); i++) {
		z_stream  reader = { 0 };
		size_t	  taken, made, used = 0;
		vd_status status;

		vdi_gzip_restart(gzip);
		assert_status(vdi_gzip_take(gzip, (struct vd_bytes) { content, 40000 }, false, packed,
					    sizeof packed, &taken, &used),
			      VD_OK);
		do {
			status = vdi_gzip_flush(gzip, packed + used, rooms[i], &made);
			used += made;
		} while (status == VD_AGAIN);
		assert_status(status, VD_OK);
		reader.next_in = (Bytef *) packed;
		reader.avail_in = (uInt) used;
		reader.next_out = (Bytef *) text;
		reader.avail_out = sizeof text;
		assert_int_equal(inflateInit2(&reader, 15 + 16), Z_OK);
		assert_int_equal(inflate(&reader, Z_NO_FLUSH), Z_OK);
		assert_int_equal(reader.total_out, 40000);
		assert_memory_equal(text, content, 40000);
		inflateEnd(&reader);
	}
	vdi_gzip_free(gzip);
}

static void an_encoder_may_be_given_up(void **state)
{
	struct vdi_gzip *gzip = NULL;
	int64_t		 live = vdi_alloc_live();
	char		 room[4];
	size_t		 taken, made;

	make_content();
	assert_status(vdi_gzip_new(&gzip), VD_OK);
	assert_status(vdi_gzip_take(gzip, (struct vd_bytes) { content, CONTENT }, false, room, sizeof room,
				    &taken, &made),
		      VD_AGAIN);
	vdi_gzip_free(gzip);
	assert_null(vdi_gzip_free(NULL));
	assert_int_equal(vdi_alloc_live(), live);
}

static void without_memory_there_is_none(void **state)
{
	for (uint64_t nth = 1;; nth++) {
		int64_t		 live = vdi_alloc_live();
		struct vdi_gzip *gzip = NULL;
		vd_status	 status;

		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_gzip_new(&gzip);
		(void) vdi_alloc_fail_nth(0, 0);
		if (status == VD_OK) {
			vdi_gzip_free(gzip);
			assert_true(nth > 3);
			break;
		}
		assert_status(status, VD_NOMEM);
		assert_null(gzip);
		assert_int_equal(vdi_alloc_live(), live);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(r647_any_pieces_and_rooms_make_the_same_content),
		cmocka_unit_test(r642_a_flush_makes_what_was_taken),
		cmocka_unit_test(an_encoder_may_be_given_up),
		cmocka_unit_test(without_memory_there_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
