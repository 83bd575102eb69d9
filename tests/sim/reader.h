/* Clients that list and get: every row of the table of revisions and matches, page after page, compared with
 * the log at the answer's revision. */
#ifndef SIM_READER_H
#define SIM_READER_H

#include "viewer.h"

struct readers *readers_new(struct world *world);
void		readers_free(struct readers *readers);
/* Starts a random list or get. */
void readers_start_one(struct world *world);
/* Walks lists that were kept. all: every one of them, otherwise some. */
void	 readers_walk(struct world *world, bool all);
unsigned readers_outstanding(const struct world *world);
/* The list of a client before its watch, for all of filter. done gets the list's revision, or 0 and the cause
 * of the failure. */
void readers_relist(struct world *world, const struct sim_filter		     *filter,
		    void (*done)(void *arg, vd_rev revision, vd_status status), void *arg);

#endif
