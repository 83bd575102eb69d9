/* Field errors of an object: ErrorList of k8s.io/apimachinery pkg/util/validation/field, with its texts.
 *
 * One owner, one thread; zero is an empty list. The first VDI_FIELD_ERRORS_MAX errors are kept, all are
 * counted. A failed allocation sets `failed`, as in struct vdi_out.
 */
#ifndef VDI_FIELD_ERRORS_H
#define VDI_FIELD_ERRORS_H

#include "http_status.h"
#include "out.h"
#include "tree.h"

#define VDI_FIELD_ERRORS_MAX 64
#define VDI_FIELD_ERROR_VALUE_SIZE                                                                           \
	1024 /* longest part of a bad value in a message; "..." follows (upstream has no bound) */

enum vdi_field_error_kind {
	VDI_FIELD_ERROR_REQUIRED,
	VDI_FIELD_ERROR_DUPLICATE,
	VDI_FIELD_ERROR_INVALID,
	VDI_FIELD_ERROR_TYPE_INVALID,
	VDI_FIELD_ERROR_NOT_SUPPORTED,
	VDI_FIELD_ERROR_FORBIDDEN,
	VDI_FIELD_ERROR_TOO_LONG,
	VDI_FIELD_ERROR_TOO_MANY,
};

struct vdi_field_error {
	uint8_t	 kind;
	uint32_t field_at; /* into text */
	uint32_t field_size;
	uint32_t message_at;
	uint32_t message_size;
};

struct vdi_field_errors {
	struct vdi_field_error items[VDI_FIELD_ERRORS_MAX];
	size_t		       kept;
	size_t		       count;
	struct vdi_out	       text;
	struct vdi_out	       document; /* memory that vdi_field_errors_refuse lends to a status */
	struct vdi_out	       causes;
	bool		       failed;
};

void vdi_field_errors_fini(struct vdi_field_errors *field_errors);
/* Removes all errors; keeps the memory. */
void vdi_field_errors_reset(struct vdi_field_errors *field_errors);

/* Adds `<field>: <kind>[: <value>][: <detail>]`. value is JSON text, written as it is; empty for none. Kinds
 * without a value (required, forbidden, too long) ignore it. */
void vdi_field_errors_add(struct vdi_field_errors *field_errors, enum vdi_field_error_kind kind,
			  struct vd_bytes field, struct vd_bytes value, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
/* As vdi_field_errors_add, with a string value, quoted as Go quotes, and with a node of a tree as value. */
void vdi_field_errors_add_text(struct vdi_field_errors *field_errors, enum vdi_field_error_kind kind,
			       struct vd_bytes field, struct vd_bytes value, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
void vdi_field_errors_add_node(struct vdi_field_errors *field_errors, enum vdi_field_error_kind kind,
			       struct vd_bytes field, const struct vdi_node *value, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* The parts of error i, which is below kept. Borrowed until the list changes. */
struct vd_bytes vdi_field_errors_field(const struct vdi_field_errors *field_errors, size_t i);
struct vd_bytes vdi_field_errors_text(const struct vdi_field_errors *field_errors, size_t i);

/* Quotes as Go's strconv.Quote, for any string that JSON can hold. */
void vdi_field_errors_write_quoted(struct vdi_out *out, struct vd_bytes text);

/* Restores an earlier state of the list, given by its kept and count. */
void vdi_field_errors_truncate(struct vdi_field_errors *field_errors, size_t kept, size_t count);

/* Sorts by text, as upstream sorts errors that come out of maps. */
void vdi_field_errors_sort(struct vdi_field_errors *field_errors);

/* Returns `<field>: <message>` of a single error; several as `[a, b]`, each text once. Borrowed until the
 * next call with these errors. */
struct vd_bytes vdi_field_errors_message(struct vdi_field_errors *field_errors);

/* Fills status with 422 `<Kind>[.<group>] "<name>" is invalid: ...` and all causes. The status borrows from
 * field errors: send it before they change. VD_INVALID; or VD_NOMEM, with a status of 500. */
VDI_MUST_USE vd_status vdi_field_errors_refuse(struct vdi_field_errors *field_errors,
					       struct vdi_http_status *status, const char *group,
					       const char *kind, struct vd_bytes name);

#endif
