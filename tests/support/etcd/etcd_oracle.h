/* Compares the hand-written codec of etcd's messages with protobuf-c: messages that both accept must have the
 * same meaning. A difference stops the program. */
#ifndef ETCD_ORACLE_H
#define ETCD_ORACLE_H

#include "etcd_wire.h"

enum etcd_oracle_kind {
	ETCD_ORACLE_RANGE,
	ETCD_ORACLE_RANGE_STREAM,
	ETCD_ORACLE_PUT,
	ETCD_ORACLE_DELETE,
	ETCD_ORACLE_TXN,
	ETCD_ORACLE_WATCH,
	ETCD_ORACLE_COUNT
};

/* Decodes with both. Compares if the bytes are those that protobuf-c itself would write for the message (so
 * no unknown fields, nothing twice). Returns the status of our decoder. */
vd_status etcd_oracle_decode(enum etcd_oracle_kind kind, struct vd_bytes message);

#endif
