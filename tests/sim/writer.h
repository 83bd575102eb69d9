/* Clients that write: by the cachers' create, update and delete, and by raw transactions of many keys. Each
 * write contains a number of its own, so that the log shows its fate: acknowledged writes are in it, refused
 * ones are not, those with a lost answer are in it at most once. */
#ifndef SIM_WRITER_H
#define SIM_WRITER_H

#include "world.h"

struct writers *writers_new(struct world *world);
/* None is outstanding. */
void writers_free(struct writers *writers);
/* Starts a write unless too many are outstanding. */
void	 writers_start_one(struct world *world);
unsigned writers_outstanding(const struct world *world);
/* Called for each record when the oracle receives it. */
void writers_saw(struct world *world, const struct oracle_record *record);
/* Checks the writes that were acknowledged while the oracle was disconnected. */
void writers_check_pending(struct world *world);
void writers_compact(struct world *world);

#endif
