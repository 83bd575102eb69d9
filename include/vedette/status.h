/* Status codes and errors.
 *
 * Every function of vedette that can fail returns a vd_status; VD_OK is 0. Results are returned through
 * ret_ parameters, which are written only on success. Details of a failure (which revision, when to retry)
 * are in struct vd_error, an optional last parameter that may be NULL. Two failures have different codes
 * if the caller must act differently: list again after VD_EXPIRED, wait or retry later after
 * VD_TOO_LARGE_REVISION, back off after VD_NOT_READY, slow down after VD_FULL.
 *
 * Functions that return a vd_status answer VD_INVALID_ARGUMENT, before any effect, to:
 * - a handle, callback, request, options or ret_ parameter that is NULL, unless the function allows NULL;
 * - a struct vd_bytes whose data is NULL and whose size is not 0;
 * - a number, enum value or duration outside its range;
 * - options whose size member is not that of this library's struct.
 *
 * Initialise each options struct with its _INIT macro: an option that is 0 means what its comment says
 * about 0, and is refused if the comment says nothing. Functions that return no status need a valid
 * handle.
 *
 * All functions in this header may be called from any thread; none blocks or allocates.
 */
#ifndef VEDETTE_STATUS_H
#define VEDETTE_STATUS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define VD_API __attribute__((visibility("default")))
#define VD_MUST_USE __attribute__((warn_unused_result))
#else
#define VD_API
#define VD_MUST_USE
#endif

/* The only table of status codes: X(name, text name, HTTP status, HTTP reason, gRPC code, sentence). The
 * enum, the names, the mappings and docs/SEMANTICS.md are generated from it. */
#define VD_STATUS_MAP(X)                                                                                     \
	X(VD_OK, "ok", 200, "", 0, "success")                                                                \
	X(VD_AGAIN, "again", 503, "ServiceUnavailable", 14,                                                  \
	  "nothing now; the callee signals when to ask again")                                               \
	X(VD_NOMEM, "out_of_memory", 500, "InternalError", 8, "an allocation failed; state is as before")    \
	X(VD_INVALID_ARGUMENT, "invalid_argument", 400, "BadRequest", 3,                                     \
	  "an argument is outside its contract")                                                             \
	X(VD_BAD_REQUEST, "bad_request", 400, "BadRequest", 3, "bytes from outside cannot be understood")    \
	X(VD_INVALID, "invalid", 422, "Invalid", 3, "understood, but the content is not allowed")            \
	X(VD_NOT_FOUND, "not_found", 404, "NotFound", 5, "no such key or object")                            \
	X(VD_EXISTS, "exists", 409, "AlreadyExists", 6, "the key or object exists already")                  \
	X(VD_CONFLICT, "conflict", 409, "Conflict", 10,                                                      \
	  "the object was changed by another writer; read again")                                            \
	X(VD_PRECONDITION, "precondition", 409, "Conflict", 9,                                               \
	  "a precondition (uid or resourceVersion) does not hold")                                           \
	X(VD_REVISION_ON_CREATE, "revision_on_create", 500, "", 3,                                           \
	  "resourceVersion should not be set on objects to be created")                                      \
	X(VD_EXPIRED, "expired", 410, "Expired", 11,                                                         \
	  "the revision was compacted or left the history; list again")                                      \
	X(VD_TOO_LARGE_REVISION, "too_large_revision", 504, "Timeout", 11,                                   \
	  "the revision is in the future; wait or try later")                                                \
	X(VD_NOT_READY, "not_ready", 429, "TooManyRequests", 14,                                             \
	  "not initialized yet; back off and try again")                                                     \
	X(VD_FULL, "full", 429, "TooManyRequests", 8, "a bound was reached; slow down")                      \
	X(VD_TOO_SLOW, "too_slow", 429, "TooManyRequests", 8,                                                \
	  "a watch lagged beyond its limit and was ended; resume it")                                        \
	X(VD_TIMEOUT, "timeout", 504, "Timeout", 4, "the deadline passed")                                   \
	X(VD_CANCELED, "canceled", 499, "", 1, "the caller canceled the call")                               \
	X(VD_CLOSED, "closed", 503, "ServiceUnavailable", 14, "the object is being shut down")               \
	X(VD_UNAVAILABLE, "unavailable", 500, "ServerTimeout", 14, "the store cannot be reached")            \
	X(VD_UNSUPPORTED, "unsupported", 501, "", 12, "this implementation does not offer the operation")    \
	X(VD_FORBIDDEN, "forbidden", 403, "Forbidden", 7, "not permitted")                                   \
	X(VD_TOO_BIG, "too_big", 413, "RequestEntityTooLarge", 8, "larger than its documented maximum")      \
	X(VD_UNDECODABLE, "undecodable", 500, "InternalError", 15, "stored bytes cannot be decoded")         \
	X(VD_CORRUPT, "corrupt", 500, "InternalError", 15, "stored data is damaged")                         \
	X(VD_NEWER_FORMAT, "newer_format", 500, "InternalError", 9,                                          \
	  "written by a newer version of this program")                                                      \
	X(VD_LOCKED, "locked", 500, "InternalError", 9, "another process has the store open")                \
	X(VD_NO_SPACE, "no_space", 507, "InternalError", 8,                                                  \
	  "the disk or the quota is full; nothing was lost")                                                 \
	X(VD_IO, "io", 500, "InternalError", 13, "the operating system reported an I/O error")               \
	X(VD_LEASE_NOT_FOUND, "lease_not_found", 404, "NotFound", 5, "no such lease")                        \
	X(VD_LEASE_EXISTS, "lease_exists", 409, "AlreadyExists", 9, "the lease id is in use")                \
	X(VD_DUPLICATE_KEY, "duplicate_key", 400, "BadRequest", 3, "one transaction writes a key twice")     \
	X(VD_INTERNAL, "internal", 500, "InternalError", 13, "internal error")

typedef enum vd_status {
#define VD_STATUS_ENUM(name, text, http, reason, grpc, sentence) name,
	VD_STATUS_MAP(VD_STATUS_ENUM)
#undef VD_STATUS_ENUM
		VD_STATUS_COUNT
} vd_status;

/* A revision of the store; Kubernetes calls it resourceVersion. One sequence for the whole store, starting
 * at 1. 0 means "not given". */
typedef int64_t vd_rev;

/* Instants and durations are distinct types, so that they cannot be mixed up. Unit: nanoseconds. */
typedef struct vd_mono {
	int64_t ns;
} vd_mono;
typedef struct vd_wall {
	int64_t ns; /* since 1970-01-01 00:00 UTC */
} vd_wall;
typedef struct vd_dur {
	int64_t ns;
} vd_dur;

#define VD_NEVER ((vd_mono) { INT64_MAX })
#define VD_US(n) ((vd_dur) { (int64_t) (n) *1000 })
#define VD_MS(n) ((vd_dur) { (int64_t) (n) *1000000 })
#define VD_SECONDS(n) ((vd_dur) { (int64_t) (n) *1000000000 })

/* Returns t + d, at most VD_NEVER. */
static inline vd_mono vd_mono_add(vd_mono t, vd_dur d)
{
	return d.ns > 0 && t.ns > INT64_MAX - d.ns ? VD_NEVER : (vd_mono) { t.ns + d.ns };
}
/* Returns the time from earlier to later. */
static inline vd_dur vd_mono_since(vd_mono later, vd_mono earlier)
{
	return (vd_dur) { later.ns - earlier.ns };
}

#define VD_ERROR_MESSAGE_SIZE 384

/* Details of a failure: plain data that may be copied. A function fills it only if it fails; fields that
 * do not apply are zero. */
struct vd_error {
	vd_status code;
	vd_rev	  requested;			  /* requested revision */
	vd_rev	  current;			  /* newest revision of the store or cache */
	vd_rev	  compacted;			  /* compact revision of the store (VD_EXPIRED) */
	uint32_t  retry_after_s;		  /* seconds to wait before a retry; 0: no advice */
	char	  message[VD_ERROR_MESSAGE_SIZE]; /* NUL-terminated, valid UTF-8 */
};

/* Returns the text name, such as "not_found" or "expired", for logs and tests. Never NULL. */
VD_API const char *vd_status_name(vd_status status);
/* Returns the sentence of the table. Never NULL. */
VD_API const char *vd_status_sentence(vd_status status);
/* Returns the HTTP status of the table. */
VD_API int vd_status_http(vd_status status);
/* Returns the reason of a Kubernetes Status; "" if Kubernetes has none. */
VD_API const char *vd_status_reason(vd_status status);
/* Returns the gRPC code of the table. */
VD_API int vd_status_grpc(vd_status status);

/* Fills error (may be NULL) and returns code, so that a failing function can end with one statement. A
 * message that is too long is cut at a character boundary. */
VD_API vd_status vd_error_set(struct vd_error *error, vd_status code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#ifdef __cplusplus
}
#endif
#endif
