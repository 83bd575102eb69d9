/* Those who ask the store itself, past caches and lines: ranges and watches at the borders of compaction and
 * anywhere else. The store answers these at once, so nothing is outstanding afterwards. */
#ifndef SIM_DIRECT_H
#define SIM_DIRECT_H

#include "world.h"

/* A random look. */
void direct_look(struct world *world);
/* The store is compacted to revision: what is there must be there, and what is gone must say so (E-334,
 * E-335, E-406). */
void direct_check_compaction(struct world *world, vd_rev revision);

#endif
