/* The status page at "/", for browsers: three files of apiserver/page/, built into the program. */
#ifndef VDI_STATUS_PAGE_H
#define VDI_STATUS_PAGE_H

#include "base.h"

struct vdi_page_file {
	const char *path; /* "/", "/status.js" */
	const char *content_type;
	const char *data;
	size_t	    size;
};

/* Any thread. NULL: no such file. */
const struct vdi_page_file *vdi_page_find(struct vd_bytes path);

#endif
