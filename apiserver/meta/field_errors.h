/* Field errors of an object: ErrorList of k8s.io/apimachinery pkg/util/validation/field, with its texts.
 *
 * One owner, one thread; zero is an empty list. The first VDI_FAULTS_MAX errors are kept, all are counted. A
 * failed allocation sets `failed`, as in struct vdi_out.
 */
#ifndef VDI_FAULTS_H
#define VDI_FAULTS_H

#include "http_status.h"
#include "out.h"
#include "tree.h"

#define VDI_FAULTS_MAX 64
#define VDI_FAULT_VALUE_SIZE                                                                                 \
	1024 /* longest part of a bad value in a message; "..." follows (upstream has no bound) */

enum vdi_fault_kind {
	VDI_FAULT_REQUIRED,
	VDI_FAULT_DUPLICATE,
	VDI_FAULT_INVALID,
	VDI_FAULT_TYPE_INVALID,
	VDI_FAULT_NOT_SUPPORTED,
	VDI_FAULT_FORBIDDEN,
	VDI_FAULT_TOO_LONG,
	VDI_FAULT_TOO_MANY,
};

struct vdi_fault {
	uint8_t	 kind;
	uint32_t field_at; /* into text */
	uint32_t field_size;
	uint32_t message_at;
	uint32_t message_size;
};

struct vdi_faults {
	struct vdi_fault items[VDI_FAULTS_MAX];
	size_t		 kept;
	size_t		 count;
	struct vdi_out	 text;
	struct vdi_out	 document; /* memory that vdi_faults_refuse lends to a status */
	struct vdi_out	 causes;
	bool		 failed;
};

void vdi_faults_fini(struct vdi_faults *faults);
/* Removes all errors; keeps the memory. */
void vdi_faults_reset(struct vdi_faults *faults);

/* Adds `<field>: <kind>[: <value>][: <detail>]`. value is JSON text, written as it is; empty for none. Kinds
 * without a value (required, forbidden, too long) ignore it. */
void vdi_faults_add(struct vdi_faults *faults, enum vdi_fault_kind kind, struct vd_bytes field,
		    struct vd_bytes value, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* As vdi_faults_add, with a string value, quoted as Go quotes, and with a node of a tree as value. */
void vdi_faults_add_text(struct vdi_faults *faults, enum vdi_fault_kind kind, struct vd_bytes field,
			 struct vd_bytes value, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
void vdi_faults_add_node(struct vdi_faults *faults, enum vdi_fault_kind kind, struct vd_bytes field,
			 const struct vdi_node *value, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* The parts of error i, which is below kept. Borrowed until the list changes. */
struct vd_bytes vdi_faults_field(const struct vdi_faults *faults, size_t i);
struct vd_bytes vdi_faults_text(const struct vdi_faults *faults, size_t i);

/* Quotes as Go's strconv.Quote, for any string that JSON can hold. */
void vdi_faults_write_quoted(struct vdi_out *out, struct vd_bytes text);

/* Restores an earlier state of the list, given by its kept and count. */
void vdi_faults_truncate(struct vdi_faults *faults, size_t kept, size_t count);

/* Sorts by text, as upstream sorts errors that come out of maps. */
void vdi_faults_sort(struct vdi_faults *faults);

/* Returns `<field>: <message>` of a single error; several as `[a, b]`, each text once. Borrowed until the
 * next call with these errors. */
struct vd_bytes vdi_faults_message(struct vdi_faults *faults);

/* Fills status with 422 `<Kind>[.<group>] "<name>" is invalid: ...` and all causes. The status borrows from
 * faults: send it before they change. VD_INVALID; or VD_NOMEM, with a status of 500. */
VDI_MUST_USE vd_status vdi_faults_refuse(struct vdi_faults *faults, struct vdi_http_status *status,
					 const char *group, const char *kind, struct vd_bytes name);

#endif
