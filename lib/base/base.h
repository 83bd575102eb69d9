/* Small macros and inline functions that every file uses. */
#ifndef VDI_BASE_H
#define VDI_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <vedette/bytes.h>
#include <vedette/env.h>
#include <vedette/status.h>

#include "alloc.h"
#include "check.h"

#define VDI_MUST_USE VD_MUST_USE
#define VDI_ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#define VDI_CONTAINER_OF(pointer, type, member) ((type *) ((char *) (pointer) -offsetof(type, member)))
/* Evaluates each argument once, so an argument may be a call, even a recursive one. */
#define VDI_MIN(a, b) VDI_PICK_(a, <, b, __COUNTER__)
#define VDI_MAX(a, b) VDI_PICK_(a, >, b, __COUNTER__)
/* Compares two numbers for qsort and bsearch: below 0, 0 or above 0. Evaluates each argument twice. */
#define VDI_ORDER(a, b) (((a) > (b)) - ((a) < (b)))
#define VDI_PICK_(a, order, b, number) VDI_PICK_NAMED_(a, order, b, number)
#define VDI_PICK_NAMED_(a, order, b, number)                                                                 \
	__extension__({                                                                                      \
		__typeof__(1 ? (a) : (b)) vdi_pick_a_##number = (a), vdi_pick_b_##number = (b);              \
		vdi_pick_a_##number order vdi_pick_b_##number ? vdi_pick_a_##number : vdi_pick_b_##number;   \
	})

/* Returns the status from the calling function unless it is VD_OK. */
#define VDI_TRY(expression)                                                                                  \
	do {                                                                                                 \
		vd_status vdi_try_status_ = (expression);                                                    \
		if (vdi_try_status_ != VD_OK)                                                                \
			return vdi_try_status_;                                                              \
	} while (0)

/* For public functions: reject a NULL argument, or a NULL pointer to bytes whose size is not 0, with a
 * message that names function and argument. reterr may be NULL. */
#define VDI_REQUIRE(argument, reterr)                                                                        \
	do {                                                                                                 \
		if ((argument) == NULL)                                                                      \
			return vd_error_set(reterr, VD_INVALID_ARGUMENT, "%s: %s is NULL", __func__,         \
					    #argument);                                                      \
	} while (0)
#define VDI_REQUIRE_BYTES(argument, reterr)                                                                  \
	do {                                                                                                 \
		if ((argument).size && (argument).data == NULL)                                              \
			return vd_error_set(reterr, VD_INVALID_ARGUMENT,                                     \
					    "%s: %s.data is NULL but its size is %zu", __func__, #argument,  \
					    (argument).size);                                                \
	} while (0)
/* Rejects the options of a public function if they are NULL or their size is not that of this library
 * build. */
#define VDI_REQUIRE_OPTIONS(options, reterr)                                                                 \
	do {                                                                                                 \
		VDI_REQUIRE(options, reterr);                                                                \
		if ((options)->size != sizeof *(options))                                                    \
			return vd_error_set(reterr, VD_INVALID_ARGUMENT,                                     \
					    "%s: options of %zu bytes, this library expects %zu: "           \
					    "initialise them with their _INIT",                              \
					    __func__, (options)->size, sizeof *(options));                   \
	} while (0)

#endif
