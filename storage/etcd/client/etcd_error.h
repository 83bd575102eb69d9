/* From a call's end to a struct vd_etcd_error (E-130..E-134, E-210, E-212, E-254). Pure functions; any
 * thread. */
#ifndef VDI_ETCD_ERROR_H
#define VDI_ETCD_ERROR_H

#include <vedette/etcd.h>

#include "base.h"
#include "rpc_client.h"

/* Why a call has no result although the peer did not say so. */
enum vdi_etcd_context {
	VDI_ETCD_CONTEXT_ALIVE,
	VDI_ETCD_CONTEXT_TIMEOUT,  /* the caller's time is over */
	VDI_ETCD_CONTEXT_CANCELED, /* by the caller */
	VDI_ETCD_CONTEXT_CLOSED,   /* the client is closing */
};

/* The error of the table that carries this text; VD_ETCD_OTHER when clients do not know it (E-132). By
 * message only, never by code. */
enum vd_etcd_code vdi_etcd_code_of(const char *message);
/* Its sentence, gRPC code and status. code must be one of the table. */
const char *vdi_etcd_code_message(enum vd_etcd_code code);
int	    vdi_etcd_code_grpc(enum vd_etcd_code code);
vd_status   vdi_etcd_code_status(enum vd_etcd_code code);
/* "Unavailable", ...; "Code(99)" has no name: "Unknown". Never NULL. */
const char *vdi_etcd_grpc_name(int grpc_code);

/* The whole translation. end->code is not VDI_RPC_OK. A known text becomes its error; Canceled and
 * DeadlineExceeded while the caller's context is done become the context's own (E-210); everything else keeps
 * its text as "rpc error: code = X desc = text". maybe_applied stays false. */
void vdi_etcd_error_of_end(const struct vdi_rpc_end *end, enum vdi_etcd_context context,
			   struct vd_etcd_error *ret_error);
/* The cancel_reason of a watch (E-133, E-234): a known text, also inside a printed status ("rpc error: code =
 * X desc = text"), becomes its error; anything else VD_CANCELED with FailedPrecondition and that text. */
void vdi_etcd_error_of_reason(struct vd_bytes reason, struct vd_etcd_error *ret_error);
/* An error of this side: code, its sentence formatted; grpc_code follows from the code. Returns code. */
vd_status vdi_etcd_error_set(struct vd_etcd_error *error, vd_status code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* An end that outlives its callback. Never assigned: it points into itself. */
struct vdi_etcd_end {
	struct vdi_rpc_end end; /* points at the next two */
	char		   message[VD_ERROR_MESSAGE_SIZE];
	char		   endpoint[128];
};
/* Texts of this client's own failures: they are shown as they are. */
#define VDI_ETCD_OWN_PREFIX "etcdclient: "
#define VDI_ETCD_NO_MEMORY_TEXT VDI_ETCD_OWN_PREFIX "out of memory"

/* Longer texts are cut. */
void vdi_etcd_end_copy(struct vdi_etcd_end *copy, const struct vdi_rpc_end *end);
/* Of this side, before anything was sent. */
void vdi_etcd_end_own(struct vdi_etcd_end *end, int code, const char *message);

/* E-212: the connection was closed by this side, which is no failure of a close. */
bool vdi_etcd_is_connection_canceled(const struct vdi_rpc_end *end);
/* E-254, E-255: whether a stream that ended so is not to be opened again. VDI_RPC_OK (a clean end of the
 * peer) is one. */
bool vdi_etcd_is_halt(const struct vdi_rpc_end *end);

#endif
