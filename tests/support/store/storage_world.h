/* vd_storage over an embedded store, in the simulator, and calls that wait for their answers. Every error
 * fails the test. */
#ifndef STORAGE_WORLD_H
#define STORAGE_WORLD_H

#include "storage.h"
#include "vdtest.h"

struct storage_world {
	struct vd_env	   *env;
	struct vd_store	   *store;
	struct vd_codec	   *codec;
	struct vdi_storage *storage;
};

/* The results of a call. */
struct storage_answer {
	bool		done;
	unsigned	calls;
	vd_status	status;
	vd_rev		revision; /* as given to the callback */
	vd_rev		object_revision;
	int64_t		create_revision, version, lease; /* of the object */
	char		value[512];
	struct vd_error error;
};

struct storage_world storage_world_new(uint64_t seed);
void		     storage_world_free(struct storage_world *world);
void		     storage_on_object(void *arg, vd_status status, struct vd_object *object, vd_rev revision,
				       const struct vd_error *error);
void		     storage_settle(struct storage_world *world, struct storage_answer *answer);

static const struct vd_bytes storage_key_a = { "/registry/pods/ns/a", 19 };

struct storage_answer storage_create(struct storage_world *world, const char *value, int64_t ttl_s);
struct storage_answer storage_get(struct storage_world *world, vd_rev minimum);

#define STORAGE_NAMED(name, uid, x)                                                                          \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"" uid "\"},\"x\":" #x "}"
#define STORAGE_VALUE(uid, x) STORAGE_NAMED("a", uid, x)

struct storage_change {
	struct storage_answer answer; /* first: arg of both callbacks */
	struct storage_world *world;
	const char	     *value;
	int64_t		      ttl_s;
	unsigned	      calls;
	bool		      saw_missing;
	unsigned	      fail_below_call;
	vd_status	      fail_with;
	unsigned	      interfere; /* number of calls before which another client writes */
};

vd_status storage_on_update(void *arg, struct vd_object *current, struct vd_bytes *ret_value,
			    int64_t *ret_ttl_s, struct vd_error *reterr);
void	  storage_update(struct storage_world *world, struct storage_change *change, bool create_missing,
			 const struct vd_preconditions *preconditions, struct vd_object *suggestion);
/* The present state as an object of our own. */
struct vd_object *storage_look(struct storage_world *world);

#endif
