/* Functions over the table of status codes (vedette/status.h). */
#include <stdarg.h>
#include <stdio.h>

#include "base.h"

struct status_row {
	const char *name;
	const char *reason;
	const char *sentence;
	short	    http;
	short	    grpc;
};

static const struct status_row rows[] = {
#define STATUS_ROW(code, text, http, reason, grpc, sentence) { text, reason, sentence, http, grpc },
	VD_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

static const struct status_row *row_of(vd_status status)
{
	return (unsigned) status < VDI_ARRAY_SIZE(rows) ? &rows[status] : &rows[VD_INTERNAL];
}

const char *vd_status_name(vd_status status)
{
	return row_of(status)->name;
}

const char *vd_status_sentence(vd_status status)
{
	return row_of(status)->sentence;
}

int vd_status_http(vd_status status)
{
	return row_of(status)->http;
}

const char *vd_status_reason(vd_status status)
{
	return row_of(status)->reason;
}

int vd_status_grpc(vd_status status)
{
	return row_of(status)->grpc;
}

/* Removes a character at the end that vsnprintf cut in the middle. */
static void trim_partial_character(char *text, size_t size)
{
	size_t tail = 0;

	while (tail < size && tail < 4 && ((unsigned char) text[size - 1 - tail] & 0xC0) == 0x80)
		tail++;
	if (tail < size) {
		unsigned char lead = (unsigned char) text[size - 1 - tail];
		size_t	      need = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : lead >= 0xC0 ? 1 : 0;

		if (need > tail)
			text[size - 1 - tail] = 0;
	}
}

vd_status vd_error_set(struct vd_error *error, vd_status code, const char *format, ...)
{
	va_list arguments;
	int	length;

	if (error == NULL)
		return code;
	memset(error, 0, offsetof(struct vd_error, message));
	error->code = code;
	va_start(arguments, format);
	length = vsnprintf(error->message, sizeof error->message, format, arguments);
	va_end(arguments);
	if (length < 0)
		error->message[0] = 0;
	else if ((size_t) length >= sizeof error->message)
		trim_partial_character(error->message, sizeof error->message - 1);
	return code;
}
