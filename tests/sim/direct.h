/* Clients that use the store itself, bypassing caches: ranges and watches at the border of compaction and at
 * random revisions. The store answers at once, so nothing is outstanding afterwards. */
#ifndef SIM_DIRECT_H
#define SIM_DIRECT_H

#include "world.h"

/* Reads or watches something at random. */
void direct_look(struct world *world);
/* The store was compacted to revision: what remains must be readable, and the rest must be reported as
 * compacted (E-334, E-335, E-406). */
void direct_check_compaction(struct world *world, vd_rev revision);

#endif
