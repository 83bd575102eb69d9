/* What is wrong with an object, field by field: k8s.io/apimachinery pkg/util/validation/field, ErrorList,
 * with its words.
 *
 * One owner, one thread; zero is an empty list. Of more than VDI_FAULTS_MAX faults the first are kept and all
 * are counted. A failed allocation is remembered (`failed`), as struct vdi_out does it.
 */
#ifndef VDI_FAULTS_H
#define VDI_FAULTS_H

#include "http_status.h"
#include "out.h"
#include "tree.h"

#define VDI_FAULTS_MAX 64
#define VDI_FAULT_VALUE_SIZE                                                                                 \
	1024 /* of a bad value that is shown; the rest of it is "..." (upstream has no bound) */

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
	struct vdi_out	 document; /* what vdi_faults_refuse lends to a status */
	struct vdi_out	 causes;
	bool		 failed;
};

void vdi_faults_fini(struct vdi_faults *faults);
/* Forgets all; keeps the memory. */
void vdi_faults_reset(struct vdi_faults *faults);

/* `<field>: <what kind>[: <value>][: <detail>]`. value: JSON text, shown as it is; empty for none. Kinds
 * without a value (required, forbidden, too long) ignore it. */
void vdi_faults_add(struct vdi_faults *faults, enum vdi_fault_kind kind, struct vd_bytes field,
		    struct vd_bytes value, const char *format, ...) __attribute__((format(printf, 5, 6)));
/* The same with a string for a value, quoted as Go quotes; and with a node of a tree. */
void vdi_faults_add_text(struct vdi_faults *faults, enum vdi_fault_kind kind, struct vd_bytes field,
			 struct vd_bytes value, const char *format, ...)
	__attribute__((format(printf, 5, 6)));
void vdi_faults_add_node(struct vdi_faults *faults, enum vdi_fault_kind kind, struct vd_bytes field,
			 const struct vdi_node *value, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

/* The parts of fault number i, which is below kept: lent until faults change. */
struct vd_bytes vdi_faults_field(const struct vdi_faults *faults, size_t i);
struct vd_bytes vdi_faults_text(const struct vdi_faults *faults, size_t i);

/* As Go's strconv.Quote, for what can be in JSON. */
void vdi_faults_write_quoted(struct vdi_out *out, struct vd_bytes text);

/* Back to what there was: kept and count of an earlier moment. */
void vdi_faults_truncate(struct vdi_faults *faults, size_t kept, size_t count);

/* Sorted by their texts, as upstream sorts what comes out of maps. */
void vdi_faults_sort(struct vdi_faults *faults);

/* `<field>: <message>` of one; several as `[a, b]`, each text once. Lent until the next call with these
 * faults. */
struct vd_bytes vdi_faults_message(struct vdi_faults *faults);

/* 422 `<Kind>[.<group>] "<name>" is invalid: ...` with all causes. The status borrows from faults: it must be
 * sent before they change. VD_INVALID, or VD_NOMEM with a status of 500. */
VDI_MUST_USE vd_status vdi_faults_refuse(struct vdi_faults *faults, struct vdi_http_status *status,
					 const char *group, const char *kind, struct vd_bytes name);

#endif
