/* Kubernetes objects as JSON from servers or files, and their records in the store.
 *
 *   {"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","resourceVersion":"12",...},...}
 *   -> key /registry/pods/n/a, revision 12, value: the same object minified and without resourceVersion, as
 *      kube-apiserver stores it; if kind and apiVersion were missing, they come first
 *
 * Items of a list lack kind and apiVersion; with those of the list they become the same bytes as from a
 * watch. One thread at a time for each reader.
 */
#ifndef VDI_KUBE_OBJECT_H
#define VDI_KUBE_OBJECT_H

#include <vedette/store.h>

#include "buffer.h"
#include "json_scan.h"

/* Maximum size of an object. */
#define VDI_KUBE_OBJECT_SIZE_MAX ((size_t) 64 << 20)

struct vdi_kube_reader {
	struct vdi_json_plan  *plan;
	struct vdi_json_object scan;
	struct vdi_buffer      value;
};

/* All slices are borrowed until the next call of the reader, or as long as the bytes that were read. Names
 * are plain text: names with escapes are rejected. */
struct vdi_kube_object {
	struct vd_bytes api_version, kind, name, namespace_name; /* empty: missing */
	vd_rev		revision;				 /* 0: missing */
	struct vd_bytes creation_time;				 /* "2026-05-28T20:26:42Z", or empty */
	bool is_last; /* deletionTimestamp is set and nothing delays removal: its write removed it */
	bool is_held; /* finalizers or a grace period delay the removal */
	struct vd_bytes value;
};

VDI_MUST_USE vd_status vdi_kube_reader_init(struct vdi_kube_reader *reader);
/* Accepts a zeroed reader. */
void vdi_kube_reader_fini(struct vdi_kube_reader *reader);

/* Reads an object. kind and api_version are for objects that lack them; NULL: required in the object.
 * VD_BAD_REQUEST with a message: not JSON, not an object with these, or resourceVersion is not a number;
 * VD_TOO_BIG, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_kube_object_read(struct vdi_kube_reader *reader, struct vd_bytes json,
					    const char *kind, const char *api_version,
					    struct vdi_kube_object *ret_object, struct vd_error *reterr);

/* Creates its record below prefix ("/registry/pods/"), at its revision; a tombstone has no value.
 * VD_BAD_REQUEST: the key is too long, or the object has no name or no revision; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_kube_object_kv(const struct vdi_kube_object *object, const char *prefix,
					  bool is_delete, struct vd_kv **ret_kv, struct vd_error *reterr);

/* ---- Responses of servers ---- */

enum vdi_kube_event_type {
	VDI_KUBE_ADDED,
	VDI_KUBE_MODIFIED,
	VDI_KUBE_DELETED,
	VDI_KUBE_BOOKMARK,
	VDI_KUBE_ERROR
};

/* One event of a watch: {"type":"ADDED","object":{...}}. */
struct vdi_kube_event {
	enum vdi_kube_event_type type;
	struct vd_bytes		 object; /* borrowed from the bytes read */
};

struct vdi_kube_event_reader {
	struct vdi_json_plan  *plan;
	struct vdi_json_object scan;
};
VDI_MUST_USE vd_status vdi_kube_event_reader_init(struct vdi_kube_event_reader *reader);
void		       vdi_kube_event_reader_fini(struct vdi_kube_event_reader *reader);
/* VD_BAD_REQUEST: not an event; the message quotes its start. */
VDI_MUST_USE vd_status vdi_kube_event_read(struct vdi_kube_event_reader *reader, struct vd_bytes json,
					   struct vdi_kube_event *ret_event, struct vd_error *reterr);

/* Converts a Status object, possibly of an ERROR event, to an error: 410 VD_EXPIRED, 429 VD_FULL, 403 and 401
 * VD_FORBIDDEN, 404 VD_NOT_FOUND, 504 VD_TIMEOUT, others VD_UNAVAILABLE, with the server's message. */
vd_status vdi_kube_status_error(struct vd_bytes json, struct vd_error *reterr);

/* A page of a list: {"metadata":{"resourceVersion":"12","continue":"..."},"items":[...]}. */
struct vdi_kube_page_reader {
	struct vdi_json_plan  *plan;
	struct vdi_json_object scan;
};
struct vdi_kube_page {
	vd_rev		revision;	/* 0: missing */
	struct vd_bytes continue_token; /* empty: last page; borrowed from the bytes read */
	struct vd_bytes items;		/* text between the brackets */
};
VDI_MUST_USE vd_status vdi_kube_page_reader_init(struct vdi_kube_page_reader *reader);
void		       vdi_kube_page_reader_fini(struct vdi_kube_page_reader *reader);
VDI_MUST_USE vd_status vdi_kube_page_read(struct vdi_kube_page_reader *reader, struct vd_bytes json,
					  struct vdi_kube_page *ret_page, struct vd_error *reterr);

/* Returns the key prefix that kube-apiserver uses for a resource: "/registry/pods/",
 * "/registry/services/specs/", "/registry/example.com/horses/" (a group that is not Kubernetes' own). false:
 * too long. */
#define VDI_KUBE_PREFIX_MAX 256
bool vdi_kube_prefix(const char *group, const char *plural, char prefix[VDI_KUBE_PREFIX_MAX]);

#endif
