/* Stops the program when a check fails: writes place and condition, the locks that this thread holds, and the
 * last entries of its trace. Uses write(2) and no heap, because the heap may be corrupt. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base.h"
#include "lock.h"
#include "trace.h"

static void write_text(void *arg, const char *text, size_t size)
{
	ssize_t ignored = write(STDERR_FILENO, text, size);

	(void) arg;
	(void) ignored; /* a failure cannot be reported */
}

static void write_trace_line(void *arg, const char *text, size_t size)
{
	write_text(arg, "vedette: trace: ", 16);
	write_text(arg, text, size);
}

void vdi_misuse(const char *format, ...)
{
	char	text[1400];
	int	length;
	va_list arguments;

	va_start(arguments, format);
	length = vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	write_text(NULL, "vedette: misuse: ", 17);
	write_text(NULL, text, length < 0 ? 0 : VDI_MIN((size_t) length, sizeof text - 1));
	write_text(NULL, "\n", 1);
	vdi_trace_dump(write_trace_line, NULL);
	abort();
}

void vdi_panic(const char *file, int line, const char *condition, const char *why)
{
	static __thread bool is_panicking;
	char		     locks[256];
	char		     text[768];
	int		     length;

	if (!is_panicking) {
		is_panicking = true;
		vdi_lock_describe_held(locks, sizeof locks);
		length = snprintf(text, sizeof text,
				  "vedette: check failed at %s:%d: %s%s%s\nvedette: locks held: %s\n", file,
				  line, condition, *why ? ": " : "", why, *locks ? locks : "none");
		write_text(NULL, text, length < 0 ? 0 : VDI_MIN((size_t) length, sizeof text - 1));
		vdi_trace_dump(write_trace_line, NULL);
	}
	abort();
}
