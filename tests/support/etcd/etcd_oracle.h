/* The hand-written codec of etcd's messages against protobuf-c's: what both accept must mean the same. A
 * difference stops the program. */
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

/* Decodes with both. Compared when the bytes are the ones that protobuf-c itself would write for the message
 * (so: no unknown fields, nothing twice). Answers what our decoder answered. */
vd_status etcd_oracle_decode(enum etcd_oracle_kind kind, struct vd_bytes message);

#endif
