/* See the header. */
#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

#include "curl_library.h"

#define SONAME "libcurl.so.4"

struct vdi_curl vdi_curl;

static pthread_once_t  once = PTHREAD_ONCE_INIT;
static struct vd_error failure;

/* POSIX: an address of dlsym is one of a function too; C has no cast for it. */
static void find(void *library, const char *name, void *function, size_t size)
{
	void *address = dlsym(library, name);

	if (address == NULL && failure.code == VD_OK)
		(void) vd_error_set(&failure, VD_UNAVAILABLE, "%s: there is no %s in it", SONAME, name);
	memcpy(function, &address, size);
}

static void load(void)
{
	void *library = dlopen(SONAME, RTLD_NOW | RTLD_LOCAL);

	if (library == NULL) {
		(void) vd_error_set(&failure, VD_UNAVAILABLE, "requests need libcurl (Debian's libcurl4): %s",
				    dlerror());
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
