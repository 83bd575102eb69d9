/* Maps paths to the files of the status page. The bytes are built in (apiserver/page/embed). */
#include "status_page.h"

#include "page_data.inc"

static const struct vdi_page_file files[] = {
	{ "/", "text/html; charset=utf-8", page_status_html, sizeof page_status_html - 1 },
	{ "/status.js", "text/javascript; charset=utf-8", page_status_js, sizeof page_status_js - 1 },
	{ "/status.css", "text/css; charset=utf-8", page_status_css, sizeof page_status_css - 1 },
};

const struct vdi_page_file *vdi_page_find(struct vd_bytes path)
{
	for (size_t i = 0; i < VDI_ARRAY_SIZE(files); i++)
		if (vd_bytes_equal(path, vd_bytes_of(files[i].path)))
			return &files[i];
	return NULL;
}
