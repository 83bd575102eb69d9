/* The codec of Pods that all tests of one program share. */
#ifndef POD_CODEC_GROUP_H
#define POD_CODEC_GROUP_H

#include "pod_objects.h"

/* Set while the tests run. */
extern struct vd_codec *codec;

/* The setup and teardown of cmocka_run_group_tests. */
int pod_codec_start(void **state);
int pod_codec_end(void **state);

#endif
