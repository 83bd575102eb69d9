/* getaddrinfo blocks as long as name servers take, so each lookup has a blocking actor of its own. The
 * requester may cancel first; both meet under the lookup's lock. The requester closes the actor, which frees
 * all after its run. */
#include <ctype.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>

#include <sys/un.h>

#include "h2_resolve.h"
#include "lock.h"

#define ADDRESSES_MAX 64

struct vdi_h2_resolve {
	struct vd_actor *actor;
	char		*host;
	char		*port;
	struct vdi_lock	 lock;

	/* Under lock. */
	void (*done)(void *arg, struct vdi_h2_addresses *addresses, const char *why); /* NULL: cancelled */
	void *arg;
};

static struct vdi_h2_addresses *copy_list(const struct addrinfo *list)
{
	struct vdi_h2_addresses *addresses;
	size_t			 count = 0;

	for (const struct addrinfo *at = list; at && count < ADDRESSES_MAX; at = at->ai_next)
		count += at->ai_addrlen <= sizeof(struct sockaddr_storage);
	addresses = vdi_calloc(1, sizeof *addresses + count * sizeof addresses->list[0]);
	if (addresses == NULL)
		return NULL;
	for (const struct addrinfo *at = list; at && addresses->count < count; at = at->ai_next) {
		struct vdi_h2_address *address = &addresses->list[addresses->count];

		if (at->ai_addrlen > sizeof(struct sockaddr_storage))
			continue;
		memcpy(&address->at, at->ai_addr, at->ai_addrlen);
		address->size = at->ai_addrlen;
		addresses->count++;
	}
	return addresses;
}

static int ask(const char *host, const char *port, int flags, struct vdi_h2_addresses **ret_addresses)
{
	struct addrinfo	 hints = { .ai_family = AF_UNSPEC,
				   .ai_socktype = SOCK_STREAM,
				   .ai_flags = AI_NUMERICSERV | flags };
	struct addrinfo *list = NULL;
	int		 error = getaddrinfo(host, port, &hints, &list);

	*ret_addresses = NULL;
	if (error)
		return error;
	*ret_addresses = copy_list(list);
	freeaddrinfo(list);
	return *ret_addresses ? 0 : EAI_MEMORY;
}

vd_status vdi_h2_address_of_number(const char *host, const char *port,
				   struct vdi_h2_addresses **ret_addresses)
{
	switch (ask(host, port, AI_NUMERICHOST, ret_addresses)) {
	case 0: return VD_OK;
	case EAI_MEMORY: return VD_NOMEM;
	default: return VD_AGAIN;
	}
}

vd_status vdi_h2_address_of_path(const char *path, struct vdi_h2_addresses **ret_addresses)
{
	struct vdi_h2_addresses *addresses = vdi_calloc(1, sizeof *addresses + sizeof addresses->list[0]);
	struct sockaddr_un	 at = { .sun_family = AF_UNIX };

	if (addresses == NULL)
		return VD_NOMEM;
	(void) snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
	memcpy(&addresses->list[0].at, &at, sizeof at);
	addresses->list[0].size =
		(socklen_t) (offsetof(struct sockaddr_un, sun_path) + strlen(at.sun_path) + 1);
	addresses->count = 1;
	*ret_addresses = addresses;
	return VD_OK;
}

/* ---- Names ---- */

static void free_resolve(void *arg)
{
	struct vdi_h2_resolve *resolve = arg;

	vdi_lock_fini(&resolve->lock);
	vdi_free(resolve->host);
	vdi_free(resolve->port);
	vdi_free(resolve);
}

static void say(int error, char *text, size_t size)
{
	if (error == EAI_NONAME || error == EAI_NODATA)
		(void) snprintf(text, size, "unknown host");
	else {
		const char *words = gai_strerror(error);

		(void) snprintf(text, size, "the host name could not be resolved: %c%s",
				tolower((unsigned char) words[0]), words + (words[0] != 0));
	}
}

static void run(void *arg)
{
	struct vdi_h2_resolve	*resolve = arg;
	struct vdi_h2_addresses *addresses;
	int			 error = ask(resolve->host, resolve->port, 0, &addresses);
	char			 why[200];

	say(error, why, sizeof why);
	vdi_lock_acquire(&resolve->lock);
	if (resolve->done)
		resolve->done(resolve->arg, addresses, why);
	else
		vdi_free(addresses);
	resolve->done = NULL;
	vdi_lock_release(&resolve->lock);
}

vd_status vdi_h2_resolve_start(const struct vd_env *env, const char *host, const char *port,
			       void (*done)(void *arg, struct vdi_h2_addresses *addresses, const char *why),
			       void *arg, struct vdi_h2_resolve **ret_resolve)
{
	struct vdi_h2_resolve  *resolve = VDI_NEW(struct vdi_h2_resolve);
	struct vd_actor_options options = {
		.name = "vedette-resolve", .run = run, .arg = resolve, .blocking = true
	};
	vd_status status;

	if (resolve == NULL)
		return VD_NOMEM;
	vdi_lock_init(&resolve->lock, VDI_LOCK_RPC_STREAM);
	resolve->host = vdi_strdup(host);
	resolve->port = vdi_strdup(port);
	resolve->done = done;
	resolve->arg = arg;
	status = resolve->host && resolve->port ? vd_actor_new(env, &options, &resolve->actor) : VD_NOMEM;
	if (status != VD_OK) {
		free_resolve(resolve);
		return status;
	}
	*ret_resolve = resolve;
	vd_actor_wake(resolve->actor);
	return VD_OK;
}

struct vdi_h2_resolve *vdi_h2_resolve_end(struct vdi_h2_resolve *resolve)
{
	if (resolve == NULL)
		return NULL;
	vdi_lock_acquire(&resolve->lock);
	resolve->done = NULL;
	vdi_lock_release(&resolve->lock);
	vd_actor_close(resolve->actor, free_resolve, resolve);
	return NULL;
}
