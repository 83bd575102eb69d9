/* Those who change things: through the cachers' create, update and delete, and with raw transactions of many
 * keys. Each write carries a number of its own in what it writes, so that the log tells what became of it:
 * acknowledged ones are in it, refused ones are not, those with a lost answer are at most once.
 */
#ifndef SIM_WRITER_H
#define SIM_WRITER_H

#include "world.h"

struct writers *writers_new(struct world *world);
/* None is outstanding. */
void writers_free(struct writers *writers);
/* Starts a write unless too many are under way. */
void	 writers_start_one(struct world *world);
unsigned writers_outstanding(const struct world *world);
/* Each record, when the oracle learns of it. */
void writers_saw(struct world *world, const struct oracle_record *record);
/* What was acknowledged while the oracle was away. */
void writers_check_pending(struct world *world);
void writers_compact(struct world *world);

#endif
