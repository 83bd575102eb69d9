/* Frames: one encoding per event, slot and type; gone when the event is no longer recent. */
#include "vdtest.h"

#include "caching_object.h"
#include "history.h"

static vd_status encode(void *arg, const struct vd_watch_event *event, struct vd_blob **ret_frame)
{
	char text[32];

	++*(unsigned *) arg;
	snprintf(text, sizeof text, "%d@%lld", (int) event->type, (long long) event->revision);
	return vd_blob_new(vd_bytes_of(text), ret_frame);
}

static struct vdi_event *make(struct vd_codec *codec)
{
	struct vd_kv	 *kv;
	struct vd_object *object;
	struct vdi_event *event;

	assert_status(vd_kv_new(vd_bytes_of("/p/x"), vd_bytes_of("{\"metadata\":{\"name\":\"x\"}}"), &kv),
		      VD_OK);
	kv->mod_rev = 5;
	assert_status(vd_object_new(codec, kv, &object, NULL), VD_OK);
	assert_status(vdi_event_new(5, object, NULL, (vd_mono) { 0 }, &event), VD_OK);
	vd_kv_unref(kv);
	vd_object_unref(object);
	return event;
}

/* rules: R-570, H-621 */
static void t147_r572_each_identity_is_encoded_once(void **state)
{
	int64_t		      live = vdi_alloc_live();
	struct vd_codec	     *codec;
	struct vd_watch_event event = { .type = VD_WATCH_ADDED, .revision = 5 };
	struct vd_blob	     *first, *second, *other;
	unsigned	      encoded = 0;

	assert_status(vd_codec_json_new(NULL, 0, &codec, NULL), VD_OK);
	event.shared = make(codec);
	assert_status(vdi_frame_get(&event, 0, encode, &encoded, &first), VD_OK);
	assert_status(vdi_frame_get(&event, 0, encode, &encoded, &second), VD_OK);
	assert_ptr_equal(first, second);
	assert_int_equal(encoded, 1);
	/* What is encoded already takes no memory. */
	(void) vdi_alloc_fail_nth(1, 1);
	assert_status(vdi_frame_get(&event, 0, encode, &encoded, &other), VD_OK);
	assert_false(vdi_alloc_failed());
	(void) vdi_alloc_fail_nth(0, 0);
	assert_ptr_equal(first, other);
	vd_blob_unref(other);
	event.type = VD_WATCH_MODIFIED;
	assert_status(vdi_frame_get(&event, 0, encode, &encoded, &other), VD_OK);
	assert_ptr_not_equal(first, other);
	vd_blob_unref(other);
	assert_status(vdi_frame_get(&event, 1, encode, &encoded, &other), VD_OK);
	vd_blob_unref(other);
	assert_int_equal(encoded, 3);
	/* Who has a slot of its own shares with nobody, and neither does what is no object. */
	for (unsigned i = 0; i < 2; i++) {
		assert_status(vdi_frame_get(&event, VDI_FRAME_SLOTS, encode, &encoded, &other), VD_OK);
		vd_blob_unref(other);
	}
	assert_int_equal(encoded, 5);
	event.type = VD_WATCH_BOOKMARK;
	for (unsigned i = 0; i < 2; i++) {
		assert_status(vdi_frame_get(&event, 0, encode, &encoded, &other), VD_OK);
		vd_blob_unref(other);
	}
	assert_int_equal(encoded, 7);
	encoded = 3;
	/* No longer recent: who holds a frame keeps it, nobody else pays for it. */
	vdi_frames_retire(event.shared);
	event.type = VD_WATCH_ADDED;
	assert_status(vdi_frame_get(&event, 0, encode, &encoded, &other), VD_OK);
	assert_ptr_not_equal(first, other);
	assert_true(vd_bytes_equal(vd_blob_bytes(first), vd_blob_bytes(other)));
	assert_int_equal(encoded, 4);
	vd_blob_unref(other);
	assert_status(vdi_frame_get(&event, 0, encode, &encoded, &other), VD_OK);
	assert_int_equal(encoded, 5);
	vd_blob_unref(other);
	vd_blob_unref(first);
	vd_blob_unref(second);
	vdi_event_unref(event.shared);
	vd_codec_free(codec);
	assert_int_equal(vdi_alloc_live(), live);
}

/* The events stay in the history for long, their frames do not. */
static void what_is_no_longer_recent_holds_no_frames(void **state)
{
	struct vd_codec	     *codec;
	struct vd_watch_event event = { .type = VD_WATCH_ADDED, .revision = 5 };
	struct vd_blob	     *frame;
	unsigned	      encoded = 0;
	int64_t		      live;

	assert_status(vd_codec_json_new(NULL, 0, &codec, NULL), VD_OK);
	event.shared = make(codec);
	for (unsigned slot = 0; slot < 2; slot++) {
		assert_status(vdi_frame_get(&event, slot, encode, &encoded, &frame), VD_OK);
		vd_blob_unref(frame);
	}
	live = vdi_alloc_live();
	vdi_frames_retire(event.shared);
	assert_int_equal(vdi_alloc_live(), live - 2);
	vdi_event_unref(event.shared);
	vd_codec_free(codec);
}

static void torture_a_frame(void **state)
{
	struct vd_codec	     *codec;
	struct vd_watch_event event = { .type = VD_WATCH_ADDED, .revision = 5 };
	struct vd_blob	     *frame;
	unsigned	      encoded = 0;
	int64_t		      live = vdi_alloc_live();

	assert_status(vd_codec_json_new(NULL, 0, &codec, NULL), VD_OK);
	event.shared = make(codec);
	for (unsigned nth = 1; nth <= 3; nth++) {
		vd_status status;

		vdi_alloc_fail_nth(nth, 1);
		status = vdi_frame_get(&event, 0, encode, &encoded, &frame);
		vdi_alloc_fail_nth(0, 0);
		assert_true(status == VD_OK || status == VD_NOMEM);
		if (status == VD_OK)
			vd_blob_unref(frame);
	}
	vdi_event_unref(event.shared);
	vd_codec_free(codec);
	assert_int_equal(vdi_alloc_live(), live);
}

static vd_status refuse(void *arg, const struct vd_watch_event *event, struct vd_blob **ret_frame)
{
	return VD_NOMEM;
}

/* A frame that could not be made is nobody's: the next watcher makes it. */
static void a_frame_that_failed_is_made_again(void **state)
{
	int64_t		      live = vdi_alloc_live();
	struct vd_codec	     *codec;
	struct vd_watch_event event = { .type = VD_WATCH_ADDED, .revision = 5 }, other = event;
	struct vd_blob	     *first, *frame;
	unsigned	      encoded = 0;

	assert_status(vd_codec_json_new(NULL, 0, &codec, NULL), VD_OK);
	event.shared = make(codec);
	other.shared = make(codec);
	assert_status(vdi_frame_get(&other, 0, encode, &encoded, &first), VD_OK);
	frame = first;
	assert_status(vdi_frame_get(&event, 0, refuse, NULL, &frame), VD_NOMEM);
	assert_status(vdi_frame_get(&event, 0, encode, &encoded, &frame), VD_OK);
	assert_int_equal(encoded, 2);
	assert_ptr_not_equal(frame, first);
	vd_blob_unref(frame);
	vd_blob_unref(first);
	vdi_event_unref(event.shared);
	vdi_event_unref(other.shared);
	vd_codec_free(codec);
	assert_int_equal(vdi_alloc_live(), live);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_that_failed_is_made_again),
		cmocka_unit_test(t147_r572_each_identity_is_encoded_once),
		cmocka_unit_test(what_is_no_longer_recent_holds_no_frames),
		cmocka_unit_test(torture_a_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
