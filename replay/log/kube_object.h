/* Kubernetes objects as they come over the wire or out of files, and the records they are in the store.
 *
 * 	{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"n","resourceVersion":"12",...},...}
 * 	-> key /registry/pods/n/a, revision 12, value: the same object minified and without its resourceVersion (R-105), kind and apiVersion first where they were missing
 *
 * Items of a list lack kind and apiVersion; with those of the list they become the same bytes that a watch
 * shows. One thread at a time for each reader.
 */
#ifndef VDI_KUBE_OBJECT_H
#define VDI_KUBE_OBJECT_H

#include <vedette/store.h>

#include "buffer.h"
#include "json_scan.h"

/* The longest object. */
#define VDI_KUBE_OBJECT_SIZE_MAX ((size_t) 64 << 20)

struct vdi_kube_reader {
	struct vdi_json_plan  *plan;
	struct vdi_json_object scan;
	struct vdi_buffer      value;
};

/* All lent until the next call of the reader, or as long as the bytes that were read. Names are plain text:
 * what needs escapes is refused. */
struct vdi_kube_object {
	struct vd_bytes api_version, kind, name, namespace_name; /* empty: not there */
	vd_rev		revision;				 /* 0: not there */
	struct vd_bytes creation_time;				 /* "2026-05-28T20:26:42Z", or empty */
	bool		is_last; /* to be deleted, and not held: a write that answers this has removed it */
	bool		is_held; /* finalizers or a grace period would keep it for a while */
	struct vd_bytes value;
};

VDI_MUST_USE vd_status vdi_kube_reader_init(struct vdi_kube_reader *reader);
/* Copes with a zeroed one. */
void vdi_kube_reader_fini(struct vdi_kube_reader *reader);

/* kind and api_version are for an object that has none; NULL: it must have them. VD_BAD_REQUEST with a
 * sentence: no JSON, no such object, or a resourceVersion that is no number; VD_TOO_BIG, VD_NOMEM. */
VDI_MUST_USE vd_status vdi_kube_object_read(struct vdi_kube_reader *reader, struct vd_bytes json,
					    const char *kind, const char *api_version,
					    struct vdi_kube_object *ret_object, struct vd_error *reterr);

/* A record of it below prefix ("/registry/pods/"), at its revision; a tombstone has no value. VD_BAD_REQUEST:
 * the key is too long, or the object has no name or no revision; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_kube_object_kv(const struct vdi_kube_object *object, const char *prefix,
					  bool is_delete, struct vd_kv **ret_kv, struct vd_error *reterr);

/* ---- What servers send ---- */

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
	struct vd_bytes		 object; /* lent from the bytes read */
};

struct vdi_kube_event_reader {
	struct vdi_json_plan  *plan;
	struct vdi_json_object scan;
};
VDI_MUST_USE vd_status vdi_kube_event_reader_init(struct vdi_kube_event_reader *reader);
void		       vdi_kube_event_reader_fini(struct vdi_kube_event_reader *reader);
/* VD_BAD_REQUEST: it is none; the message begins with what stands there. */
VDI_MUST_USE vd_status vdi_kube_event_read(struct vdi_kube_event_reader *reader, struct vd_bytes json,
					   struct vdi_kube_event *ret_event, struct vd_error *reterr);

/* A Status object, or an ERROR event's, as an error: 410 VD_EXPIRED, 429 VD_FULL, 403 and 401 VD_FORBIDDEN,
 * 404 VD_NOT_FOUND, 504 VD_TIMEOUT, else VD_UNAVAILABLE; the message is the server's. */
vd_status vdi_kube_status_error(struct vd_bytes json, struct vd_error *reterr);

/* A page of a list: {"metadata":{"resourceVersion":"12","continue":"..."},"items":[...]}. */
struct vdi_kube_page_reader {
	struct vdi_json_plan  *plan;
	struct vdi_json_object scan;
};
struct vdi_kube_page {
	vd_rev		revision;	/* 0: not there */
	struct vd_bytes continue_token; /* empty: the last one; lent from the bytes read */
	struct vd_bytes items;		/* what stands between the brackets */
};
VDI_MUST_USE vd_status vdi_kube_page_reader_init(struct vdi_kube_page_reader *reader);
void		       vdi_kube_page_reader_fini(struct vdi_kube_page_reader *reader);
VDI_MUST_USE vd_status vdi_kube_page_read(struct vdi_kube_page_reader *reader, struct vd_bytes json,
					  struct vdi_kube_page *ret_page, struct vd_error *reterr);

/* Where kube-apiserver keeps a resource: "/registry/pods/", "/registry/services/specs/",
 * "/registry/example.com/horses/" (a group that is not Kubernetes' own). Returns false when it is too
 * long. */
#define VDI_KUBE_PREFIX_MAX 256
bool vdi_kube_prefix(const char *group, const char *plural, char prefix[VDI_KUBE_PREFIX_MAX]);

#endif
