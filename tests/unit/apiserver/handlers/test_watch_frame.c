/* Frames of a watch: shared ones are made once for all watches of a form, packed ones as well, and hold the
 * same. */
#include "vdtest.h"

#include <zlib.h>

#include "actor_sim.h"
#include "alloc.h"
#include "env.h"
#include "history.h"
#include "http_status.h"
#include "protobuf.h"
#include "rand.h"
#include "watch_frame.h"

/* Of one version, as any kind that is built in. */
static const struct vdi_resource plain_resource = {
	.group = "", .version = "v1", .kind = "ConfigMap", .plural = "configmaps"
};

/* What else may be served from the cache of that one: the same with other columns, and the objects in another
 * version. */
static const struct vdi_column		name_column = { "Name", "string",      "name",		"",
							0,	VDI_CELL_PATH, ".metadata.name" };
static const struct vdi_resource	other_columns = { .group = "",
							  .version = "v1",
							  .kind = "ConfigMap",
							  .plural = "configmaps",
							  .columns = &name_column,
							  .column_count = 1,
							  .has_own_tables = true };
static const struct vdi_resource	other_version = { .group = "",
							  .version = "v2",
							  .kind = "ConfigMap",
							  .plural = "configmaps",
							  .api_version = "v2",
							  .stored_api_version = "v1",
							  .has_own_frames = true,
							  .has_own_tables = true };
static const struct vdi_resource *const resources[] = { &plain_resource, &other_columns, &other_version };

struct world {
	struct vd_codec	     *codec;
	struct vd_object     *object;
	struct vd_watch_event event;
};

static struct world world_new(void)
{
	struct world  world = { .event = { .type = VD_WATCH_ADDED, .revision = 5 } };
	struct vd_kv *kv;

	assert_status(vd_codec_json_new(NULL, 0, &world.codec, NULL), VD_OK);
	assert_status(vd_kv_new(vd_bytes_of("/p/x"),
				vd_bytes_of("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
					    "\"name\":\"x\"}}"),
				&kv),
		      VD_OK);
	kv->mod_rev = 5;
	assert_status(vd_object_new(world.codec, kv, &world.object, NULL), VD_OK);
	assert_status(vdi_event_new(5, world.object, NULL, (vd_mono) { 0 }, &world.event.shared), VD_OK);
	world.event.object = world.object;
	vd_kv_unref(kv);
	return world;
}

static void world_free(struct world *world)
{
	vdi_event_unref(world->event.shared);
	vd_object_unref(world->object);
	vd_codec_free(world->codec);
}

/* What is in a frame, packed or not. */
static void assert_holds(const struct vd_blob *frame, bool is_packed, struct vd_bytes expected)
{
	struct vd_bytes content = vdi_frame_content(frame);
	char		unpacked[1000];
	z_stream	stream = { .next_in = (Bytef *) (uintptr_t) content.data,
				   .avail_in = (uInt) content.size,
				   .next_out = (Bytef *) unpacked,
				   .avail_out = sizeof unpacked };

	if (is_packed) {
		assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
		assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
		assert_int_equal(stream.avail_in, 0);
		inflateEnd(&stream);
		content = (struct vd_bytes) { unpacked, stream.total_out };
	}
	assert_true(vd_bytes_equal(content, expected));
}

static void t202_r642_a_member_is_made_once_for_all_watches(void **state)
{
	static const char text[] =
		"{\"type\":\"ADDED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{"
		"\"resourceVersion\":\"5\",\"name\":\"x\"}}}\n";
	int64_t			  live = vdi_alloc_live();
	struct world		  world = world_new();
	struct vdi_watch_encoding plain = { .resource = &plain_resource }, packed[2] = { plain, plain };
	struct vd_blob		 *frames[2], *own, *one;

	for (int i = 0; i < 2; i++)
		assert_status(vdi_gzip_writer_new(&packed[i].gzip_writer), VD_OK); /* of two loops */
	assert_true(vdi_watch_frame_is_shared(&plain, &world.event));
	assert_true(vdi_watch_frame_is_shared(&packed[0], &world.event));
	for (int i = 0; i < 2; i++)
		assert_status(vdi_watch_frame_get(&packed[i], &world.event, &frames[i]), VD_OK);
	assert_ptr_equal(frames[0], frames[1]);
	assert_int_equal(packed[0].compressed_size, sizeof text - 1); /* who made it has worked for it */
	assert_int_equal(packed[1].compressed_size, 0);
	assert_holds(frames[0], true, vd_bytes_of(text));
	assert_int_equal(vdi_frame_unpacked_size(frames[0]), sizeof text - 1);
	/* The plain one is another. */
	assert_status(vdi_watch_frame_get(&plain, &world.event, &one), VD_OK);
	assert_ptr_not_equal(one, frames[0]);
	assert_holds(one, false, vd_bytes_of(text));
	/* For oneself it is plain in either case: whoever asked packs it with others. */
	assert_status(vdi_watch_frame_new(&packed[0], &world.event, &own), VD_OK);
	assert_holds(own, false, vd_bytes_of(text));
	vd_blob_unref(own);
	vd_blob_unref(one);
	for (int i = 0; i < 2; i++) {
		vd_blob_unref(frames[i]);
		vdi_gzip_writer_free(packed[i].gzip_writer);
	}
	world_free(&world);
	assert_int_equal(vdi_alloc_live(), live);
}

/* The last state of a deleted object carries the revision of the deletion, in each form. rules: R-218 */
static void r130_r434_a_deletion_has_its_own_revision(void **state)
{
	struct vd_env *env;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	for (int i = 0; i < 4; i++) {
		static const char *const parts[] = {
			("{\"type\":\"DELETED\",\"object\":{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
			 "\"metadata\":{\"resourceVersion\":\"9\",\"name\":\"x\"}}}\n"),
			"\"metadata\":{\"resourceVersion\":\"9\"", "\"metadata\":{\"resourceVersion\":\"9\"",
			"\"metadata\":{\"resourceVersion\":\"9\""
		};
		struct world		  world = world_new();
		struct vdi_event	 *deletion;
		struct vdi_watch_encoding form = { .resource = &plain_resource,
						   .env = env,
						   .include = i == 3 ? VDI_INCLUDE_OBJECT :
								       VDI_INCLUDE_METADATA };
		struct vd_blob		 *frame;
		struct vd_bytes		  content;

		form.negotiated.form = i == 0 ? VDI_FORM_OBJECT : i == 1 ? VDI_FORM_METADATA : VDI_FORM_TABLE;
		assert_status(vdi_event_new(9, NULL, world.object, (vd_mono) { 0 }, &deletion), VD_OK);
		world.event = (struct vd_watch_event) { .type = VD_WATCH_DELETED,
							.revision = 9,
							.object = world.object,
							.shared = world.event.shared };
		vdi_event_unref(world.event.shared);
		world.event.shared = deletion;
		assert_status(vdi_watch_frame_new(&form, &world.event, &frame), VD_OK);
		content = vdi_frame_content(frame);
		if (memmem(content.data, content.size, parts[i], strlen(parts[i])) == NULL ||
		    memmem(content.data, content.size, "\"5\"", 3))
			fail_msg("%d: %.*s", i, (int) content.size, (const char *) content.data);
		vd_blob_unref(frame);
		world_free(&world);
	}
	vd_env_free(env);
}

/* rules: R-570 */
static void r640_who_shares_and_who_does_not(void **state)
{
	struct world		  world = world_new();
	struct vd_watch_event	  own = world.event;
	struct vdi_watch_encoding form = { .resource = &plain_resource, .include = VDI_INCLUDE_METADATA };

	form.negotiated.form = VDI_FORM_TABLE;
	assert_true(vdi_watch_frame_is_shared(&form, &world.event));
	form.header_due = true;
	assert_false(vdi_watch_frame_is_shared(&form, &world.event));
	form.header_due = false;
	form.include = VDI_INCLUDE_OBJECT;
	assert_false(vdi_watch_frame_is_shared(&form, &world.event));
	form.include = VDI_INCLUDE_METADATA;
	form.negotiated.v1beta1 = true;
	assert_false(vdi_watch_frame_is_shared(&form, &world.event));
	form.negotiated.form = VDI_FORM_METADATA;
	assert_false(vdi_watch_frame_is_shared(&form, &world.event));
	form.negotiated.v1beta1 = false;
	assert_true(vdi_watch_frame_is_shared(&form, &world.event));
	own.shared = NULL; /* an initial event */
	assert_false(vdi_watch_frame_is_shared(&form, &own));
	world_free(&world);
}

#define FORMS (2 * 2 * 2 * 3 * 3 * 2 * VDI_ARRAY_SIZE(resources))

/* Number of a form: what a watch can ask for, and whether its stream is compressed. */
static struct vdi_watch_encoding form_of(unsigned number, const struct vd_env *env,
					 struct vdi_gzip_writer *gzip_writer)
{
	static const enum vdi_form forms[] = { VDI_FORM_OBJECT, VDI_FORM_TABLE, VDI_FORM_METADATA };
	struct vdi_watch_encoding  form = { .resource = resources[number / 144], .env = env };

	form.gzip_writer = number % 2 ? gzip_writer : NULL;
	form.negotiated.v1beta1 = number / 2 % 2;
	form.header_due = number / 4 % 2;
	form.include = (uint8_t) (number / 8 % 3);
	form.negotiated.form = forms[number / 24 % 3];
	/* Tables have none, nor have objects whose fields are not known. */
	form.negotiated.protobuf =
		number / 72 % 2 &&
		(form.negotiated.form == VDI_FORM_METADATA ||
		 (form.negotiated.form == VDI_FORM_OBJECT && !form.resource->has_own_frames));
	return form;
}

/* What the watch would get if it was the only one. */
static struct vd_blob *frame_alone(const struct vdi_watch_encoding *form, const struct vd_watch_event *event)
{
	struct vdi_watch_encoding alone = *form;
	struct vd_blob		 *frame;

	alone.gzip_writer = NULL;
	assert_status(vdi_watch_frame_new(&alone, event, &frame), VD_OK);
	return frame;
}

/* As http_watch.c does it. */
static void assert_frame(struct vdi_watch_encoding form, const struct vd_watch_event *event)
{
	bool		is_shared = vdi_watch_frame_is_shared(&form, event);
	bool		is_packed = is_shared && form.gzip_writer;
	struct vd_blob *expected = frame_alone(&form, event), *frame;

	assert_status(is_shared ? vdi_watch_frame_get(&form, event, &frame) :
				  vdi_watch_frame_new(&form, event, &frame),
		      VD_OK);
	assert_holds(frame, is_packed, vdi_frame_content(expected));
	vd_blob_unref(frame);
	vd_blob_unref(expected);
}

/* Watches of all forms side by side on one event, in any order, each as ADDED, MODIFIED and DELETED: whoever
 * made a frame that another one is given, its bytes are the other one's. */
static void r570_r640_every_watch_gets_its_own_form(void **state)
{
	static const enum vd_watch_type types[] = { VD_WATCH_ADDED, VD_WATCH_MODIFIED, VD_WATCH_DELETED };
	struct vd_env		       *env;
	struct vdi_gzip_writer	       *gzip_writer;
	struct vdi_rand			rand;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	assert_status(vdi_gzip_writer_new(&gzip_writer), VD_OK);
	vdi_rand_init(&rand, 1);
	for (unsigned round = 0; round < 40; round++) {
		struct world world = world_new();

		for (unsigned i = 0; i < 2 * FORMS; i++) {
			world.event.type = types[vdi_rand_below(&rand, 3)];
			assert_frame(form_of((unsigned) vdi_rand_below(&rand, FORMS), env, gzip_writer),
				     &world.event);
		}
		world_free(&world);
	}
	vdi_gzip_writer_free(gzip_writer);
	vd_env_free(env);
}

/* Tables with each includeObject on the same event: what they say of the object is not the same. */
static void r640_tables_side_by_side(void **state)
{
	static const uint8_t includes[] = { VDI_INCLUDE_NONE, VDI_INCLUDE_METADATA, VDI_INCLUDE_OBJECT };
	static const char   *contents[] = { NULL, "\"object\":{\"kind\":\"PartialObjectMetadata\"",
					    "\"object\":{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\"" };
	static const uint8_t orders[][3] = { { 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
					     { 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 } };
	struct vd_env	    *env;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	for (size_t order = 0; order < VDI_ARRAY_SIZE(orders); order++) {
		struct world world = world_new();

		for (unsigned i = 0; i < 6; i++) { /* each twice: made, and perhaps given again */
			unsigned		  which = orders[order][i % 3];
			struct vdi_watch_encoding form = { .resource = &plain_resource,
							   .env = env,
							   .include = includes[which] };
			struct vd_blob		 *frame;
			struct vd_bytes		  content;

			form.negotiated.form = VDI_FORM_TABLE;
			if (vdi_watch_frame_is_shared(&form, &world.event))
				assert_status(vdi_watch_frame_get(&form, &world.event, &frame), VD_OK);
			else
				assert_status(vdi_watch_frame_new(&form, &world.event, &frame), VD_OK);
			content = vdi_frame_content(frame);
			for (unsigned other = 1; other < 3; other++)
				assert_int_equal(memmem(content.data, content.size, contents[other],
							strlen(contents[other])) != NULL,
						 other == which);
			vd_blob_unref(frame);
		}
		world_free(&world);
	}
	vd_env_free(env);
}

/* A frame that misses an allocation is an error in each form, never half a frame. */
static void torture_each_form_of_a_frame(void **state)
{
	static const enum vd_watch_type	   types[] = { VD_WATCH_ADDED, VD_WATCH_BOOKMARK, VD_WATCH_ERROR };
	static const struct vdi_negotiated forms[] = { { .form = VDI_FORM_OBJECT },
						       { .form = VDI_FORM_TABLE },
						       { .form = VDI_FORM_METADATA },
						       { .form = VDI_FORM_OBJECT, .protobuf = true },
						       { .form = VDI_FORM_METADATA, .protobuf = true } };
	const struct vd_error		   error = { .code = VD_EXPIRED, .requested = 1, .current = 9 };
	struct vd_env			  *env;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(forms) * VDI_ARRAY_SIZE(types); i++) {
		int64_t			  live = vdi_alloc_live();
		struct world		  world = world_new();
		struct vdi_watch_encoding form = { .resource = &plain_resource,
						   .env = env,
						   .include = VDI_INCLUDE_METADATA,
						   .negotiated = forms[i / VDI_ARRAY_SIZE(types)] };
		struct vd_watch_event	  event = { .type = types[i % VDI_ARRAY_SIZE(types)], .revision = 5 };
		struct vd_blob		 *whole, *frame;
		uint64_t		  nth = 1;
		bool			  failed = true;

		if (event.type == VD_WATCH_ADDED)
			event = world.event;
		else if (event.type == VD_WATCH_ERROR)
			event.error = &error;
		assert_status(vdi_watch_frame_new(&form, &event, &whole), VD_OK);
		for (; failed; nth++) {
			vd_status status;

			(void) vdi_alloc_fail_nth(nth, 1);
			status = vdi_watch_frame_new(&form, &event, &frame);
			failed = vdi_alloc_failed();
			(void) vdi_alloc_fail_nth(0, 0);
			assert_status(status, failed ? VD_NOMEM : VD_OK);
			if (status == VD_OK) {
				assert_true(
					vd_bytes_equal(vdi_frame_content(frame), vdi_frame_content(whole)));
				vd_blob_unref(frame);
			}
		}
		assert_true(nth > 3);
		vd_blob_unref(whole);
		world_free(&world);
		assert_int_equal(vdi_alloc_live(), live);
	}
	vd_env_free(env);
}

/* A frame of protobuf has the content that vdi_protobuf_event() writes, for each type and form. */
static void each_type_in_protobuf(void **state)
{
	static const struct {
		enum vd_watch_type type;
		enum vdi_form	   form;
		bool		   is_last;
		const char	  *json;
	} rows[] = {
		{ VD_WATCH_ADDED, VDI_FORM_OBJECT, false, "{\"metadata\":{\"name\":\"x\"}}" },
		{ VD_WATCH_MODIFIED, VDI_FORM_METADATA, false, "{\"metadata\":{\"name\":\"x\"}}" },
		{ VD_WATCH_BOOKMARK, VDI_FORM_OBJECT, false, "{\"metadata\":{}}" },
		{ VD_WATCH_BOOKMARK, VDI_FORM_METADATA, true,
		  "{\"metadata\":{\"resourceVersion\":\"5\",\"annotations\":{\"k8s.io/"
		  "initial-events-end\":\"true\"}}}" },
		{ VD_WATCH_ERROR, VDI_FORM_OBJECT, false, NULL },
	};
	const struct vd_error error = { .code = VD_EXPIRED, .requested = 1, .current = 9 };
	struct world	      world = world_new();

	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_watch_encoding form = { .resource = &plain_resource };
		struct vd_watch_event	  event = { .type = rows[i].type,
						    .revision = 5,
						    .initial_events_end = rows[i].is_last };
		struct vdi_protobuf	  protobuf;
		struct vdi_buffer	  expected;
		struct vd_blob		 *frame;

		form.negotiated = (struct vdi_negotiated) { .form = rows[i].form, .protobuf = true };
		vdi_protobuf_init(&protobuf, &plain_resource, false, &form.negotiated);
		vdi_buffer_init(&expected, 4096);
		if (rows[i].type == VD_WATCH_ERROR) {
			struct vdi_http_status *status = VDI_NEW(struct vdi_http_status);
			struct vdi_out		text = VDI_OUT_INIT;

			event.error = &error;
			vdi_http_status_of(status, "watch", "", "configmaps", VD_BYTES_NONE, VD_EXPIRED,
					   &error);
			vdi_http_status_write(&text, status);
			assert_status(vdi_protobuf_error_event(&expected, vdi_out_slice(&text)), VD_OK);
			vdi_out_fini(&text);
			vdi_free(status);
		} else {
			if (rows[i].type != VD_WATCH_BOOKMARK)
				event.object = world.object;
			assert_status(
				vdi_protobuf_event(&expected, &protobuf, vd_watch_type_name(rows[i].type),
						   vd_bytes_of(rows[i].json), rows[i].is_last ? 0 : 5, NULL),
				VD_OK);
		}
		assert_status(vdi_watch_frame_new(&form, &event, &frame), VD_OK);
		if (!vd_bytes_equal(vdi_frame_content(frame), vdi_buffer_bytes(&expected)))
			fail_msg("row %zu", i);
		vd_blob_unref(frame);
		vdi_buffer_fini(&expected);
	}
	world_free(&world);
}

static void torture_a_packed_frame(void **state)
{
	int64_t live = vdi_alloc_live();

	for (uint64_t nth = 1, failed = 0;; nth++) {
		struct world		  world = world_new();
		struct vdi_watch_encoding form = { .resource = &plain_resource };
		struct vd_blob		 *frame = NULL;
		vd_status		  status;

		assert_status(vdi_gzip_writer_new(&form.gzip_writer), VD_OK);
		(void) vdi_alloc_fail_nth(nth, 1);
		status = vdi_watch_frame_get(&form, &world.event, &frame);
		(void) vdi_alloc_fail_nth(0, 0);
		assert_int_equal(vdi_gzip_writer_size(form.gzip_writer), 0);
		failed += status != VD_OK;
		if (status != VD_OK) {
			assert_status(status, VD_NOMEM);
			assert_status(vdi_watch_frame_get(&form, &world.event, &frame), VD_OK);
		}
		vd_blob_unref(frame);
		vdi_gzip_writer_free(form.gzip_writer);
		world_free(&world);
		assert_int_equal(vdi_alloc_live(), live);
		if (nth > 20) {
			assert_true(failed >= 3);
			break;
		}
	}
}

/* What a watch is told, byte for byte: each type in each form. */
static void h303_h403_each_type_in_each_form(void **state)
{
	static const struct vdi_resource shown = { .group = "",
						   .version = "v1",
						   .kind = "ConfigMap",
						   .plural = "configmaps",
						   .columns = &name_column,
						   .column_count = 1 };
#define OBJECT                                                                                               \
	"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"resourceVersion\":\"5\",\"name\":"    \
	"\"x\"}}"
#define MARK                                                                                                 \
	"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"5\","             \
	"\"creationTimestamp\":null}}"
#define LAST                                                                                                 \
	"{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"resourceVersion\":\"5\","             \
	"\"annotations\":{\"k8s.io/initial-events-end\":\"true\"},\"creationTimestamp\":null}}"
#define PARTIAL(version, metadata)                                                                           \
	"{\"kind\":\"PartialObjectMetadata\",\"apiVersion\":\"meta.k8s.io/" version                          \
	"\",\"metadata\":" metadata "}"
#define TABLE(columns, rows)                                                                                 \
	"{\"kind\":\"Table\",\"apiVersion\":\"meta.k8s.io/"                                                  \
	"v1\",\"metadata\":{\"resourceVersion\":\"5\"},\"columnDefinitions\":[" columns "],\"rows\":[" rows  \
	"]}"
#define COLUMN                                                                                               \
	"{\"name\":\"Name\",\"type\":\"string\",\"format\":\"name\",\"description\":\"\",\"priority\":0}"
	static const struct {
		enum vd_watch_type type;
		enum vdi_form	   form;
		bool		   v1beta1, header_due, is_last;
		uint8_t		   include;
		const char	  *object;
	} rows[] = {
		{ VD_WATCH_ADDED, VDI_FORM_OBJECT, false, false, false, 0, OBJECT },
		{ VD_WATCH_ADDED, VDI_FORM_METADATA, false, false, false, 0,
		  PARTIAL("v1", "{\"resourceVersion\":\"5\",\"name\":\"x\"}") },
		{ VD_WATCH_ADDED, VDI_FORM_METADATA, true, false, false, 0,
		  PARTIAL("v1beta1", "{\"resourceVersion\":\"5\",\"name\":\"x\"}") },
		{ VD_WATCH_ADDED, VDI_FORM_TABLE, false, true, false, VDI_INCLUDE_NONE,
		  TABLE(COLUMN, "{\"cells\":[\"x\"],\"object\":null}") },
		{ VD_WATCH_ADDED, VDI_FORM_TABLE, false, false, false, VDI_INCLUDE_OBJECT,
		  TABLE("", "{\"cells\":[\"x\"],\"object\":" OBJECT "}") },
		{ VD_WATCH_BOOKMARK, VDI_FORM_OBJECT, false, false, false, 0, MARK },
		{ VD_WATCH_BOOKMARK, VDI_FORM_OBJECT, false, false, true, 0, LAST },
		{ VD_WATCH_BOOKMARK, VDI_FORM_METADATA, false, false, false, 0,
		  PARTIAL("v1", "{\"resourceVersion\":\"5\",\"creationTimestamp\":null}") },
		{ VD_WATCH_BOOKMARK, VDI_FORM_TABLE, false, true, false, VDI_INCLUDE_NONE,
		  TABLE(COLUMN, "{\"cells\":[\"\"],\"object\":null}") },
		{ VD_WATCH_BOOKMARK, VDI_FORM_TABLE, false, false, false, VDI_INCLUDE_OBJECT,
		  TABLE("", "{\"cells\":[\"\"],\"object\":" MARK "}") },
		{ VD_WATCH_ERROR, VDI_FORM_TABLE, false, true, false, 0, NULL },
	};
	struct vd_error error = { .code = VD_EXPIRED, .requested = 1, .current = 9 };
	struct world	world = world_new();
	struct vd_env  *env;

	assert_status(vdi_env_new_sim(1, NULL, NULL, &env), VD_OK);
	for (size_t i = 0; i < VDI_ARRAY_SIZE(rows); i++) {
		struct vdi_watch_encoding form = { .resource = &shown,
						   .env = env,
						   .include = rows[i].include,
						   .header_due = rows[i].header_due };
		struct vd_watch_event	  event = { .type = rows[i].type,
						    .revision = 5,
						    .initial_events_end = rows[i].is_last };
		char			  text[1000];
		struct vd_blob		 *frame;

		form.negotiated.form = rows[i].form;
		form.negotiated.v1beta1 = rows[i].v1beta1;
		if (rows[i].type == VD_WATCH_ADDED)
			event.object = world.object;
		else if (rows[i].type == VD_WATCH_ERROR)
			event.error = &error;
		assert_status(vdi_watch_frame_new(&form, &event, &frame), VD_OK);
		if (rows[i].object) {
			snprintf(text, sizeof text, "{\"type\":\"%s\",\"object\":%s}\n",
				 rows[i].type == VD_WATCH_ADDED ? "ADDED" : "BOOKMARK", rows[i].object);
			if (!vd_bytes_equal(vdi_frame_content(frame), vd_bytes_of(text)))
				fail_msg("%.*s not %s", (int) vdi_frame_content(frame).size,
					 (const char *) vdi_frame_content(frame).data, text);
			assert_false(form.header_due);
		} else {
			static const char begin[] =
				"{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"apiVersion\":\"v1\","
				"\"metadata\":{},\"status\":\"Failure\",\"message\":\"";

			assert_true(vd_bytes_has_prefix(vdi_frame_content(frame), vd_bytes_of(begin)));
			assert_true(form.header_due); /* a header was not sent with it */
		}
		vd_blob_unref(frame);
	}
	vd_env_free(env);
	world_free(&world);
}

/* Whichever part of a protobuf frame is the one for which there is no memory, no frame results. */
static void torture_frames_of_each_size(void **state)
{
	for (int name = 1; name < 700; name += 1) {
		struct vdi_watch_encoding form = { .resource = &plain_resource,
						   .negotiated = { .form = VDI_FORM_OBJECT,
								   .protobuf = true } };
		struct vd_watch_event	  event = { .type = VD_WATCH_ADDED, .revision = 5 };
		struct vd_object	 *object;
		struct vd_codec		 *codec;
		struct vd_blob		 *frame = NULL;
		struct vd_kv		 *kv;
		char			  text[1000];
		bool			  failed = true;

		(void) snprintf(
			text, sizeof text,
			"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%0*d\"}}",
			name, 1);
		assert_status(vd_codec_json_new(NULL, 0, &codec, NULL), VD_OK);
		assert_status(vd_kv_new(vd_bytes_of("/p/x"), vd_bytes_of(text), &kv), VD_OK);
		kv->mod_rev = 5;
		assert_status(vd_object_new(codec, kv, &object, NULL), VD_OK);
		event.object = object;
		for (uint64_t nth = 1; failed; nth++) {
			vd_status status;

			(void) vdi_alloc_fail_nth(nth, 1);
			status = vdi_watch_frame_new(&form, &event, &frame);
			failed = vdi_alloc_failed();
			(void) vdi_alloc_fail_nth(0, 0);
			assert_status(status, failed ? VD_NOMEM : VD_OK);
		}
		vd_blob_unref(frame);
		vd_object_unref(object);
		vd_kv_unref(kv);
		vd_codec_free(codec);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(torture_frames_of_each_size),
		cmocka_unit_test(h303_h403_each_type_in_each_form),
		cmocka_unit_test(t202_r642_a_member_is_made_once_for_all_watches),
		cmocka_unit_test(r130_r434_a_deletion_has_its_own_revision),
		cmocka_unit_test(r640_who_shares_and_who_does_not),
		cmocka_unit_test(r570_r640_every_watch_gets_its_own_form),
		cmocka_unit_test(r640_tables_side_by_side),
		cmocka_unit_test(torture_each_form_of_a_frame),
		cmocka_unit_test(each_type_in_protobuf),
		cmocka_unit_test(torture_a_packed_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
