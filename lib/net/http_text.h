/* Texts of HTTP answers: reason phrases and the Date header. Pure functions; any thread. */
#ifndef VDI_HTTP_TEXT_H
#define VDI_HTTP_TEXT_H

#include <vedette/env.h>

/* Returns the reason phrase of a status code, as Go's net/http has it; "Status" for an unknown one. */
const char *vdi_http_reason_phrase(int code);

#define VDI_HTTP_DATE_SIZE 64
/* Writes now as the Date header has it: "Sun, 06 Nov 1994 08:49:37 GMT". */
void vdi_http_date(vd_wall now, char text[VDI_HTTP_DATE_SIZE]);

#endif
