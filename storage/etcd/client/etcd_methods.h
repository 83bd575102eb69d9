/* The methods of etcd's v3 API: path, number of messages, and whether a client may repeat the call (as in
 * clientv3's retry policies). */
#ifndef VDI_ETCD_METHODS_H
#define VDI_ETCD_METHODS_H

#include "base.h"

enum vdi_etcd_kind {
	VDI_ETCD_UNARY,
	VDI_ETCD_SERVER_STREAM, /* one request, many responses */
	VDI_ETCD_BIDI,
};

enum vdi_etcd_repeat {
	VDI_ETCD_ONCE,	     /* repeated only if it was certainly not sent */
	VDI_ETCD_REPEATABLE, /* repeated on Unavailable; stream: its opening is */
};

/* X(id, service/method, kind, repeat) */
#define VDI_ETCD_METHOD_MAP(X)                                                                               \
	X(RANGE, "KV/Range", UNARY, REPEATABLE)                                                              \
	X(RANGE_STREAM, "KV/RangeStream", SERVER_STREAM, ONCE)                                               \
	X(PUT, "KV/Put", UNARY, ONCE)                                                                        \
	X(DELETE_RANGE, "KV/DeleteRange", UNARY, ONCE)                                                       \
	X(TXN, "KV/Txn", UNARY, ONCE)                                                                        \
	X(COMPACT, "KV/Compact", UNARY, ONCE)                                                                \
	X(WATCH, "Watch/Watch", BIDI, ONCE)                                                                  \
	X(LEASE_GRANT, "Lease/LeaseGrant", UNARY, REPEATABLE)                                                \
	X(LEASE_REVOKE, "Lease/LeaseRevoke", UNARY, REPEATABLE)                                              \
	X(LEASE_KEEP_ALIVE, "Lease/LeaseKeepAlive", BIDI, REPEATABLE)                                        \
	X(LEASE_TIME_TO_LIVE, "Lease/LeaseTimeToLive", UNARY, REPEATABLE)                                    \
	X(LEASE_LEASES, "Lease/LeaseLeases", UNARY, REPEATABLE)                                              \
	X(MEMBER_ADD, "Cluster/MemberAdd", UNARY, ONCE)                                                      \
	X(MEMBER_REMOVE, "Cluster/MemberRemove", UNARY, ONCE)                                                \
	X(MEMBER_UPDATE, "Cluster/MemberUpdate", UNARY, ONCE)                                                \
	X(MEMBER_LIST, "Cluster/MemberList", UNARY, REPEATABLE)                                              \
	X(MEMBER_PROMOTE, "Cluster/MemberPromote", UNARY, ONCE)                                              \
	X(ALARM, "Maintenance/Alarm", UNARY, REPEATABLE)                                                     \
	X(STATUS, "Maintenance/Status", UNARY, REPEATABLE)                                                   \
	X(DEFRAGMENT, "Maintenance/Defragment", UNARY, ONCE)                                                 \
	X(HASH, "Maintenance/Hash", UNARY, REPEATABLE)                                                       \
	X(HASH_KV, "Maintenance/HashKV", UNARY, REPEATABLE)                                                  \
	X(SNAPSHOT, "Maintenance/Snapshot", SERVER_STREAM, REPEATABLE)                                       \
	X(MOVE_LEADER, "Maintenance/MoveLeader", UNARY, REPEATABLE)                                          \
	X(DOWNGRADE, "Maintenance/Downgrade", UNARY, ONCE)                                                   \
	X(AUTH_ENABLE, "Auth/AuthEnable", UNARY, ONCE)                                                       \
	X(AUTH_DISABLE, "Auth/AuthDisable", UNARY, ONCE)                                                     \
	X(AUTH_STATUS, "Auth/AuthStatus", UNARY, ONCE)                                                       \
	X(AUTHENTICATE, "Auth/Authenticate", UNARY, ONCE)                                                    \
	X(USER_ADD, "Auth/UserAdd", UNARY, ONCE)                                                             \
	X(USER_GET, "Auth/UserGet", UNARY, REPEATABLE)                                                       \
	X(USER_LIST, "Auth/UserList", UNARY, REPEATABLE)                                                     \
	X(USER_DELETE, "Auth/UserDelete", UNARY, ONCE)                                                       \
	X(USER_CHANGE_PASSWORD, "Auth/UserChangePassword", UNARY, ONCE)                                      \
	X(USER_GRANT_ROLE, "Auth/UserGrantRole", UNARY, ONCE)                                                \
	X(USER_REVOKE_ROLE, "Auth/UserRevokeRole", UNARY, ONCE)                                              \
	X(ROLE_ADD, "Auth/RoleAdd", UNARY, ONCE)                                                             \
	X(ROLE_GET, "Auth/RoleGet", UNARY, REPEATABLE)                                                       \
	X(ROLE_LIST, "Auth/RoleList", UNARY, REPEATABLE)                                                     \
	X(ROLE_DELETE, "Auth/RoleDelete", UNARY, ONCE)                                                       \
	X(ROLE_GRANT_PERMISSION, "Auth/RoleGrantPermission", UNARY, ONCE)                                    \
	X(ROLE_REVOKE_PERMISSION, "Auth/RoleRevokePermission", UNARY, ONCE)

enum vdi_etcd_method {
#define VDI_ETCD_METHOD_ENUM(id, name, kind, repeat) VDI_ETCD_METHOD_##id,
	VDI_ETCD_METHOD_MAP(VDI_ETCD_METHOD_ENUM)
#undef VDI_ETCD_METHOD_ENUM
		VDI_ETCD_METHOD_COUNT
};

#define VDI_ETCD_PATH_PREFIX "/etcdserverpb."

struct vdi_etcd_method_info {
	const char	    *path; /* "/etcdserverpb.KV/Range" */
	enum vdi_etcd_kind   kind;
	enum vdi_etcd_repeat repeat;
};

/* Indexed by enum vdi_etcd_method. */
static const struct vdi_etcd_method_info vdi_etcd_methods[VDI_ETCD_METHOD_COUNT] = {
#define VDI_ETCD_METHOD_INFO(id, name, kind, repeat)                                                         \
	[VDI_ETCD_METHOD_##id] = { VDI_ETCD_PATH_PREFIX name, VDI_ETCD_##kind, VDI_ETCD_##repeat },
	VDI_ETCD_METHOD_MAP(VDI_ETCD_METHOD_INFO)
#undef VDI_ETCD_METHOD_INFO
};

#endif
