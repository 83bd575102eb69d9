/* A store in front of a real one that offers long reads (vd_store_stream_open), in parts of the size that a
 * test sets, and with the end that the test sets. Everything else is forwarded. For one thread: the
 * simulator's. */
#ifndef PART_STORE_H
#define PART_STORE_H

#include <vedette/store.h>

#include "base.h"

struct part_options {
	size_t	  part_len;   /* records in a part; at least 1 */
	bool	  is_lazy;    /* a part arrives some time after it was requested */
	bool	  is_remote;  /* it claims to be remote */
	uint64_t  id;	      /* and that it is this one */
	bool	  is_refused; /* the open returns VD_UNSUPPORTED */
	bool	  is_cut;     /* the last part claims that there is more */
	size_t	  fail_after; /* parts, then the end is fail_with; with VD_OK it never fails */
	vd_status fail_with;
};

struct vd_store *part_store_new(const struct vd_env *env, struct vd_store *inner,
				const struct part_options *options);
/* Long reads that were opened, and parts that were given. */
uint64_t part_store_streams(struct vd_store *store);
uint64_t part_store_parts(struct vd_store *store);
/* Nothing may be open. The inner store stays open, also after vd_store_close, which has no other effect. */
void part_store_free(struct vd_store *store);

#endif
