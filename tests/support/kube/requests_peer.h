/* An API server in memory behind struct vdi_kube_requests, for the simulator: GET, POST, PUT and PATCH (as a
 * merge) of objects by path, with resourceVersions and conflicts. Answers come on an actor, never inside the
 * call. Failures are scripted. */
#ifndef REQUESTS_PEER_H
#define REQUESTS_PEER_H

#include "kube_requests.h"

enum { REQUESTS_PEER_OBJECTS = 128, REQUESTS_PEER_FAILURES = 16 };

struct requests_peer_object {
	char	*path, *text;
	unsigned version;
};

struct requests_peer_answer;

struct requests_peer {
	struct vd_env		    *env;
	struct vd_actor		    *actor;
	struct requests_peer_object  objects[REQUESTS_PEER_OBJECTS];
	unsigned		     count;
	unsigned		     version;			       /* newest resourceVersion */
	vd_status		     failures[REQUESTS_PEER_FAILURES]; /* of the next calls; VD_OK: none */
	unsigned		     failure_count;
	bool			     is_down;	  /* all calls fail with VD_UNAVAILABLE */
	bool			     is_held;	  /* answers wait */
	bool			     is_refusing; /* calls return VD_CLOSED */
	struct requests_peer_answer *first, *last;
	unsigned		     calls;
	char			     log[8192];	 /* "GET /path\n" */
	char			     body[8192]; /* of the last call with one */
	char			     content_type[64];
	vd_dur			     timeout; /* of the last call */
};

void			 requests_peer_init(struct requests_peer *peer, struct vd_env *env);
void			 requests_peer_fini(struct requests_peer *peer);
struct vdi_kube_requests requests_peer_of(struct requests_peer *peer);
/* Stores an object as another client would. */
void requests_peer_put(struct requests_peer *peer, const char *path, const char *text);
/* The text of the object, or NULL. */
const char *requests_peer_get(struct requests_peer *peer, const char *path);
void	    requests_peer_delete(struct requests_peer *peer, const char *path);
/* The next calls fail with these statuses. */
void requests_peer_fail(struct requests_peer *peer, vd_status status);
/* Gives the held answers. */
void requests_peer_release(struct requests_peer *peer);

#endif
