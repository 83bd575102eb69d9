/* Numbers in JSON text that a Go reader cannot take.
 *
 * JSON's grammar has no bounds, but Kubernetes' clients decode a number into an int64 or else a float64, and
 * fail on the whole list if it fits neither. What fits: every integer and fraction that rounds to a finite
 * float64. 18446744073709551616 becomes a float64, -0 and 1e-400 become 0; 1e309 does not fit.
 *
 * Pure functions: any thread, nothing blocks or allocates, and the process' locale does not matter. Linear in
 * the size of the text.
 */
#ifndef VDI_JSON_NUMBER_H
#define VDI_JSON_NUMBER_H

#include "base.h"

/* True if number, a number of JSON's grammar, fits. */
bool vdi_json_number_fits(struct vd_bytes number);

#define VDI_JSON_WHOLE_SIZE 24

/* Writes a whole number that number, of JSON's grammar, expresses with a fraction or an exponent (1.0, 1e2,
 * -0) as Go writes it (1, 100, 0): a Go reader takes 1.0 for a float64 but not for an int32. Returns the size
 * written, or 0 if number is to stay as it is: it is written as a whole number, is none, or has more than 15
 * digits or 19 places. */
size_t vdi_json_number_whole(struct vd_bytes number, char buffer[VDI_JSON_WHOLE_SIZE]);

/* Finds the first number in json that does not fit. Text that is not valid JSON gives true or false, and the
 * offset is within it. NULL ret_number: not asked. */
bool vdi_json_has_unfit_number(struct vd_bytes json, size_t *ret_offset, struct vd_bytes *ret_number);

#endif
