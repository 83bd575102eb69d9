/* Small things every file of vedette uses. */
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
/* Each argument is evaluated once, so that it may be a call, even a recursive one. */
#define VDI_MIN(a, b) VDI_PICK_(a, <, b, __COUNTER__)
#define VDI_MAX(a, b) VDI_PICK_(a, >, b, __COUNTER__)
/* The order of two numbers as qsort and bsearch ask for it: below 0, 0 or above 0. Evaluates each argument
 * twice. */
#define VDI_ORDER(a, b) (((a) > (b)) - ((a) < (b)))
#define VDI_PICK_(a, order, b, number) VDI_PICK_NAMED_(a, order, b, number)
#define VDI_PICK_NAMED_(a, order, b, number)                                                                 \
	__extension__({                                                                                      \
		__typeof__(1 ? (a) : (b)) vdi_pick_a_##number = (a), vdi_pick_b_##number = (b);              \
		vdi_pick_a_##number order vdi_pick_b_##number ? vdi_pick_a_##number : vdi_pick_b_##number;   \
	})

/* Returns from the calling function with the status unless it is VD_OK. */
#define VDI_TRY(expression)                                                                                  \
	do {                                                                                                 \
		vd_status vdi_try_status_ = (expression);                                                    \
		if (vdi_try_status_ != VD_OK)                                                                \
			return vdi_try_status_;                                                              \
	} while (0)

/* For public functions: refuse a NULL, or bytes that are announced and not there, naming function and
 * argument. reterr may be NULL. */
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
/* The options of a public function: present, and of the size that this library was built with. */
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
