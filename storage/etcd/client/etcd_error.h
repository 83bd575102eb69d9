/* Conversion of a call's end to a struct vd_etcd_error. Pure functions; any thread. */
#ifndef VDI_ETCD_ERROR_H
#define VDI_ETCD_ERROR_H

#include <vedette/etcd.h>

#include "base.h"
#include "rpc_client.h"

/* Reason on this side for a call without a result. */
enum vdi_etcd_context {
	VDI_ETCD_CONTEXT_ALIVE,
	VDI_ETCD_CONTEXT_TIMEOUT,  /* the call's deadline has passed */
	VDI_ETCD_CONTEXT_CANCELED, /* canceled by the caller */
	VDI_ETCD_CONTEXT_CLOSED,   /* the client is closing */
};

/* Returns the error of the table that has this message; VD_ETCD_OTHER: etcd's clients do not know it either.
 * Only compares messages, not codes. */
enum vd_etcd_code vdi_etcd_code_of(const char *message);
/* Return the message, gRPC code and status of code, which must be in the table. */
const char *vdi_etcd_code_message(enum vd_etcd_code code);
int	    vdi_etcd_code_grpc(enum vd_etcd_code code);
vd_status   vdi_etcd_code_status(enum vd_etcd_code code);
/* Returns "Unavailable" and so on; "Unknown" for an unknown code such as Code(99). Never NULL. */
const char *vdi_etcd_grpc_name(int grpc_code);

/* Converts an end other than VDI_RPC_OK. A known message becomes its error. Canceled and DeadlineExceeded
 * become the context's error if the caller's context is done. Other ends keep their message as "rpc error:
 * code = X desc = text". maybe_applied stays false. */
void vdi_etcd_error_of_end(const struct vdi_rpc_end *end, enum vdi_etcd_context context,
			   struct vd_etcd_error *ret_error);
/* Converts the cancel_reason of a watch: a known message, alone or in a printed status ("rpc error: code = X
 * desc = text"), becomes its error; any other is VD_CANCELED with FailedPrecondition and that text. */
void vdi_etcd_error_of_reason(struct vd_bytes reason, struct vd_etcd_error *ret_error);
/* Sets an error of this side: code, and its formatted message; grpc_code follows from code. Returns code. */
vd_status vdi_etcd_error_set(struct vd_etcd_error *error, vd_status code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* A copy of an end that outlives its callback. Must not be assigned, because it points into itself. */
struct vdi_etcd_end {
	struct vdi_rpc_end end; /* points at the next two */
	char		   message[VD_ERROR_MESSAGE_SIZE];
	char		   endpoint[128];
};
/* Prefix of messages about the client's own failures, which are shown unchanged. */
#define VDI_ETCD_OWN_PREFIX "etcdclient: "
#define VDI_ETCD_NO_MEMORY_TEXT VDI_ETCD_OWN_PREFIX "out of memory"

/* Truncates longer messages. */
void vdi_etcd_end_copy(struct vdi_etcd_end *copy, const struct vdi_rpc_end *end);
/* Sets an end of this side, before anything was sent. */
void vdi_etcd_end_own(struct vdi_etcd_end *end, int code, const char *message);

/* Returns true if this side closed the connection, which is not a failure of a close. */
bool vdi_etcd_is_connection_canceled(const struct vdi_rpc_end *end);
/* Returns true if a stream that ended like this must not be opened again, as in clientv3: any code except
 * Unavailable and Internal, and "no leader". VDI_RPC_OK (the peer ended it) also returns true. */
bool vdi_etcd_is_halt(const struct vdi_rpc_end *end);

#endif
