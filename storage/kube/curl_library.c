/* dlopen of libcurl, and its functions in a table. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "curl_library.h"

#define SONAME "libcurl.so.4"

struct vdi_curl vdi_curl;

static pthread_once_t  once = PTHREAD_ONCE_INIT;
static struct vd_error failure;

/* POSIX allows this use of dlsym; C has no cast from a data pointer to a function. */
static void find(void *library, const char *name, void *function, size_t size)
{
	void *address = dlsym(library, name);

	if (address == NULL && failure.code == VD_OK)
		(void) vd_error_set(&failure, VD_UNAVAILABLE, "%s: function %s is missing", SONAME, name);
	memcpy(function, &address, size);
}

static void load(void)
{
	void *library = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);

	if (library == NULL) {
		(void) vd_error_set(&failure, VD_UNAVAILABLE,
				    "requests require libcurl (Debian: libcurl4): %s", dlerror());
		return;
	}
#define FIND(name) find(library, "curl_" #name, &vdi_curl.name, sizeof vdi_curl.name);
	VDI_CURL_FUNCTIONS(FIND)
#undef FIND
}

vd_status vdi_curl_load(struct vd_error *reterr)
{
	(void) pthread_once(&once, load);
	if (failure.code != VD_OK)
		return vd_error_set(reterr, failure.code, "%s", failure.message);
	return VD_OK;
}
