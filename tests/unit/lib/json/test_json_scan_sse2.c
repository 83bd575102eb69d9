/* The tests of lib/json/json_scan.c again, against the copy that processors without AVX2 run. */
#define VDI_JSON_SSE2_ONLY 1
#include "json_scan.c"

#include "test_json_scan.c"
