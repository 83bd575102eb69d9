/* The tests of lib/json/json_scan.c again, against the copy that other processors than x86-64 run. */
#define VDI_JSON_PORTABLE 1
#include "json_scan.c"

#include "test_json_scan.c"
