/* HTTP for the command line: requests to one server, whole or as a stream, through libcurl.
 *
 * One thread; every call blocks. Failures are said in one sentence a person can act on: the message of a
 * Status object where the server sent one.
 */
#ifndef VDI_HTTP_CLIENT_H
#define VDI_HTTP_CLIENT_H

#include "base.h"

struct vdi_exec_credential; /* exec_credential.h */

/* Who we are in one request. */
struct vdi_http_identity {
	const char *token;	/* lent; NULL: none is sent */
	unsigned    credential; /* its number, as exec_credential.h has it */
};

#define VDI_DEFAULT_SERVER "http://127.0.0.1:8080"

struct vdi_http_client;

struct vdi_http_client_options {
	const char     *server; /* base URL */
	const char     *token;	/* bearer token, or NULL */
	const char     *ca_file, *cert_file, *key_file;
	struct vd_bytes ca_data, cert_data, key_data; /* PEM, instead of the files; empty: none */
	bool		insecure;		      /* any certificate will do */
	struct vdi_exec_credential
		*exec; /* not NULL: asked who we are, unless a token or a certificate is here */
	/* not NULL: connects to this socket of the file system, and server is only a name */
	const char *socket_path;
};

struct vdi_http_answer {
	int    code; /* 0: no answer came */
	char  *body; /* NUL-terminated behind size bytes; NULL for a stream that delivered */
	size_t size;
};

/* Sets up a libcurl handle of somebody else's (CURL *): protocols, time-out of the connect, keep-alive,
 * certificates. *ret_identity is good until the next such call. Blocks while a program is asked. What
 * vdi_exec_credential_get answers. */
VDI_MUST_USE vd_status vdi_http_options_apply(const struct vdi_http_client_options *options, void *curl,
					      struct vdi_http_identity *ret_identity,
					      struct vd_error	       *reterr);
/* The URL without slashes at its end; vdi_free. VD_INVALID_ARGUMENT: not a URL; VD_NOMEM. */
VDI_MUST_USE vd_status vdi_http_options_base(const struct vdi_http_client_options *options, char **ret_base,
					     struct vd_error *reterr);

/* VD_INVALID_ARGUMENT: not a URL; VD_NOMEM. The texts are borrowed for the client's life. */
VDI_MUST_USE vd_status	vdi_http_client_new(const struct vdi_http_client_options *options,
					    struct vdi_http_client **ret_client, struct vd_error *reterr);
struct vdi_http_client *vdi_http_client_free(struct vdi_http_client *client);

/* path begins with '/' and may hold a query. VD_OK: any answer that came whole, whatever its code.
 * VD_UNAVAILABLE: none did; the message says why. */
VDI_MUST_USE vd_status vdi_http_get(struct vdi_http_client *client, const char *path, const char *accept,
				    struct vdi_http_answer *ret_answer, struct vd_error *reterr);
void		       vdi_http_answer_fini(struct vdi_http_answer *answer);
/* As get, and an answer that is not 2xx becomes its error: VD_NOT_FOUND, VD_EXPIRED (410), VD_FORBIDDEN,
 * VD_FULL (429), else VD_UNAVAILABLE; the message is the server's. ret_answer is filled in that case too, if
 * it is an answer at all: the caller calls _fini always. */
VDI_MUST_USE vd_status vdi_http_get_ok(struct vdi_http_client *client, const char *path, const char *accept,
				       struct vdi_http_answer *ret_answer, struct vd_error *reterr);

/* As get_ok with another method, and with a JSON body (NULL: none). */
VDI_MUST_USE vd_status vdi_http_send_ok(struct vdi_http_client *client, const char *method, const char *path,
					const char *body, struct vdi_http_answer *ret_answer,
					struct vd_error *reterr);

typedef vd_status (*vdi_http_chunk_fn)(void *arg, struct vd_bytes chunk);

/* A 2xx answer is given to chunk as it comes; the call returns when it ends. VD_OK: it ended as HTTP wants it
 * to. An error of chunk is returned. Other answers as above. *ret_began: the head of a 2xx answer had
 * come. */
VDI_MUST_USE vd_status vdi_http_stream(struct vdi_http_client *client, const char *path, const char *accept,
				       vdi_http_chunk_fn chunk, void *arg, bool *ret_began,
				       struct vd_error *reterr);

/* Reads a Status object; the message that fits (code, reason, body in short) when it is none. */
vd_status vdi_http_error_of(int code, struct vd_bytes body, struct vd_error *reterr);

#endif
