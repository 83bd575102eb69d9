/* Where a failed check ends. Writes with plain write(2): the heap may be what broke. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base.h"

void vdi_panic(const char *file, int line, const char *condition, const char *why)
{
	char	text[512];
	int	length = snprintf(text, sizeof text, "vedette: check failed at %s:%d: %s%s%s\n", file, line, condition, *why ? ": " : "", why);
	ssize_t ignored = write(STDERR_FILENO, text, length < 0 ? 0 : VDI_MIN((size_t) length, sizeof text - 1));

	(void) ignored; /* nothing is left to tell */
	abort();
}
