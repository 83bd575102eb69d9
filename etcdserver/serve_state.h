/* Persistent state of an etcd server other than keys: its identity, alarms, users and roles.
 *
 * A few kilobytes in one file (DIR/etcd/state) in a directory of its own below the store's: with each change
 * written anew, synced and renamed, with a checksum. It is not in the journal: it has no revision of the
 * store and no order relative to keys, and stores without an etcd server should not contain it (see
 * docs/decisions).
 *
 * On a full disk a change uses the space of a second file (DIR/etcd/state.spare); without that it is refused.
 * A start continues with the state that it has read.
 *
 * The file has the bytes "VDETCD1\n", a checksum of the rest (8 bytes, little-endian XXH3), and a protobuf
 * message: 1 cluster id, 2 member id, 3 term, 4 alarms { 1 member id, 2 kind }, 5 authentication
 * (auth_data.h), 6 peer URLs.
 *
 * Alarms may be queried and raised from any thread; functions that block say so.
 */
#ifndef VDI_SERVE_STATE_H
#define VDI_SERVE_STATE_H

#include "serve_call.h"

#define VDI_SERVE_STATE_NAME "state"
#define VDI_SERVE_STATE_SIZE_MAX ((size_t) 64 << 20)
#define VDI_SERVE_ALARMS_MAX 1024
#define VDI_SERVE_PEER_URLS_SIZE_MAX ((size_t) 16 << 10)

struct vdi_dir;

struct vdi_serve_alarm {
	uint64_t member_id;
	int64_t	 kind; /* enum vdi_alarm, or another number: kept */
};

/* Reads or makes the state, and sets the server's cluster_id, member_id, term (one more than last time) and
 * alarms. Blocks. A full disk is no error: the new term is saved later. VD_CORRUPT, VD_LOCKED, VD_IO,
 * VD_NOMEM. */
VDI_MUST_USE vd_status vdi_serve_state_open(struct vdi_etcdserver *server, struct vdi_serve_state **ret_state,
					    struct vd_error *reterr);
/* Blocks. NULL is fine; returns NULL. */
struct vdi_serve_state *vdi_serve_state_close(struct vdi_serve_state *state);

/* Raises an alarm at once; it is saved soon after. Any thread; does not block. */
void vdi_serve_state_raise(struct vdi_serve_state *state, uint64_t member_id, enum vdi_alarm kind);
/* Copies at most max alarms; returns their total number. kind VDI_ALARM_NONE: all. Any thread. */
size_t vdi_serve_state_alarms(struct vdi_serve_state *state, int64_t kind, struct vdi_serve_alarm *ret_alarms,
			      size_t max);
/* Adds or removes an alarm; blocks until it is on disk. *ret_changed: false if there was nothing to do. */
VDI_MUST_USE vd_status vdi_serve_state_set_alarm(struct vdi_serve_state	      *state,
						 const struct vdi_serve_alarm *alarm, bool active,
						 bool *ret_changed);

/* Returns the directory for further files; NULL: everything is in memory. */
struct vdi_dir *vdi_serve_state_dir(const struct vdi_serve_state *state);

/* The URLs of MemberUpdate, one after another, each terminated by a NUL. set replaces them and blocks until
 * they are on disk; get appends them to urls (nothing if they were never set) and may be called from any
 * thread. */
VDI_MUST_USE vd_status vdi_serve_state_set_peer_urls(struct vdi_serve_state *state, struct vd_bytes urls);
void		       vdi_serve_state_peer_urls(struct vdi_serve_state *state, struct vdi_buffer *urls);

/* Returns the authentication as read; borrowed until it is replaced. */
struct vd_bytes vdi_serve_state_auth(const struct vdi_serve_state *state);
/* Replaces the authentication; blocks until it is on disk. */
VDI_MUST_USE vd_status vdi_serve_state_set_auth(struct vdi_serve_state *state, struct vd_bytes auth);

#endif
