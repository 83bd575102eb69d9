/* Waits for what another thread does, without sleeping. */
#ifndef AWAIT_H
#define AWAIT_H

#include <stdint.h>

/* How long a condition may take until the test fails; much longer than any machine needs. */
#define AWAIT_PATIENCE_S 300

/* One wait; {0} at its begin. */
struct await {
	int64_t begun_ns;
};

/* Gives the processor to others. After AWAIT_PATIENCE_S fails the test and prints what it waits for. */
void await_turn(struct await *await, const char *what, const char *file, int line);

/* Returns when the condition is true; asks again and again. */
#define AWAIT(condition)                                                                                     \
	do {                                                                                                 \
		struct await await_ = { 0 };                                                                 \
		while (!(condition))                                                                         \
			await_turn(&await_, #condition, __FILE__, __LINE__);                                 \
	} while (0)

#endif
