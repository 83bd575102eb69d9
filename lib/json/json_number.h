/* Numbers in JSON text that a Go reader cannot decode.
 *
 * JSON's grammar has no limits, but Kubernetes' clients decode a number into an int64 or else a float64, and
 * fail on the whole list if it fits neither. Every integer and fraction that rounds to a finite float64 fits:
 * 18446744073709551616 becomes a float64, -0 and 1e-400 become 0; 1e309 does not fit.
 *
 * Pure functions: any thread; do not block or allocate, and do not depend on the process' locale. Linear in
 * the size of the text.
 */
#ifndef VDI_JSON_NUMBER_H
#define VDI_JSON_NUMBER_H

#include "base.h"

/* Returns true if number, which must match JSON's grammar, fits. */
bool vdi_json_number_fits(struct vd_bytes number);

#define VDI_JSON_WHOLE_SIZE 24

/* If number (in JSON's grammar) is a whole number written with a fraction or an exponent (1.0, 1e2, -0),
 * writes it like Go (1, 100, 0), because a Go reader takes 1.0 for a float64 but not for an int32. Returns
 * the size written, or 0 if number must stay as it is: it is written as a whole number, is not whole, or has
 * more than 15 digits or 19 places. */
size_t vdi_json_number_whole(struct vd_bytes number, char buffer[VDI_JSON_WHOLE_SIZE]);

/* Finds the first number in json that does not fit. For text that is not valid JSON the result is undefined,
 * but the offset is within it. ret_number may be NULL. */
bool vdi_json_has_unfit_number(struct vd_bytes json, size_t *ret_offset, struct vd_bytes *ret_number);

#endif
