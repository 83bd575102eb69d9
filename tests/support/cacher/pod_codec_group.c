#include "pod_codec_group.h"

struct vd_codec *codec;

int pod_codec_start(void **state)
{
	(void) state;
	codec = pod_codec_new();
	/* A test that counts allocations must not count the memory that the codec keeps after its first
	 * object. */
	vd_object_unref(pod_new(codec, "n0", "x", NULL, NULL, 1));
	return 0;
}

int pod_codec_end(void **state)
{
	(void) state;
	codec = vd_codec_free(codec);
	return 0;
}
