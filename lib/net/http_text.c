/* Texts of HTTP answers that do not depend on the process' locale. */
#include <stdio.h>
#include <time.h>

#include "http_text.h"

const char *vdi_http_reason_phrase(int code)
{
	switch (code) {
	case 200: return "OK";
	case 201: return "Created";
	case 202: return "Accepted";
	case 304: return "Not Modified";
	case 307: return "Temporary Redirect";
	case 400: return "Bad Request";
	case 401: return "Unauthorized";
	case 403: return "Forbidden";
	case 404: return "Not Found";
	case 405: return "Method Not Allowed";
	case 406: return "Not Acceptable";
	case 408: return "Request Timeout";
	case 409: return "Conflict";
	case 410: return "Gone";
	case 413: return "Request Entity Too Large";
	case 414: return "Request URI Too Long";
	case 415: return "Unsupported Media Type";
	case 417: return "Expectation Failed";
	case 422: return "Unprocessable Entity";
	case 429: return "Too Many Requests";
	case 431: return "Request Header Fields Too Large";
	case 500: return "Internal Server Error";
	case 501: return "Not Implemented";
	case 503: return "Service Unavailable";
	case 504: return "Gateway Timeout";
	case 505: return "HTTP Version Not Supported";
	case 507: return "Insufficient Storage";
	default: return "Status";
	}
}

void vdi_http_date(vd_wall now, char text[VDI_HTTP_DATE_SIZE])
{
	static const char *const days[] = { "Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat" };
	static const char *const months[] = { "Jan", "Feb", "Mar", "Apr", "May", "Jun",
					      "Jul", "Aug", "Sep", "Oct", "Nov", "Dec" };
	time_t			 seconds = (time_t) (now.ns / 1000000000);
	struct tm		 parts;

	text[0] = 0;
	if (gmtime_r(&seconds, &parts))
		(void) snprintf(text, VDI_HTTP_DATE_SIZE, "%s, %02d %s %04d %02d:%02d:%02d GMT",
				days[parts.tm_wday], parts.tm_mday, months[parts.tm_mon],
				parts.tm_year + 1900, parts.tm_hour, parts.tm_min, parts.tm_sec);
}
