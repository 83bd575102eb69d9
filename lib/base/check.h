/* Checks of invariants. A failed check is a programming error: it stops the program with a message that gives
 * file, line and condition. Bad input, full disks and lost peers are never checks. VDI_CHECK is always on;
 * VDI_CHECK_SLOW only in debug builds. */
#ifndef VDI_CHECK_H
#define VDI_CHECK_H

#include "shared.h"

/* For a caller that broke a contract where no status can be returned: stops the program with the message,
 * which names the call. */
void		vdi_misuse(const char *format, ...) __attribute__((noreturn, cold, format(printf, 1, 2)));
VDI_SHARED void vdi_panic(const char *file, int line, const char *condition, const char *why)
	__attribute__((noreturn, cold));

#define VDI_CHECK(condition)                                                                                 \
	do {                                                                                                 \
		if (__builtin_expect(!(condition), 0))                                                       \
			vdi_panic(__FILE__, __LINE__, #condition, "");                                       \
	} while (0)

#ifdef NDEBUG
#define VDI_CHECK_SLOW(condition) ((void) sizeof(condition))
#else
#define VDI_CHECK_SLOW(condition) VDI_CHECK(condition)
#endif

#define VDI_UNREACHABLE(why) vdi_panic(__FILE__, __LINE__, "unreachable", why)

#endif
