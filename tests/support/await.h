/* Waits for other threads without sleeping. */
#ifndef AWAIT_H
#define AWAIT_H

#include <stdint.h>

/* Time after which an unfulfilled condition fails the test; much longer than any machine needs. */
#define AWAIT_PATIENCE_S 300

/* State of one wait; {0} at first. */
struct await {
	int64_t begun_ns;
};

/* Yields the processor. After AWAIT_PATIENCE_S fails the test and prints the condition. */
void await_turn(struct await *await, const char *what, const char *file, int line);

/* Returns when the condition is true; evaluates it repeatedly. */
#define AWAIT(condition)                                                                                     \
	do {                                                                                                 \
		struct await await_ = { 0 };                                                                 \
		while (!(condition))                                                                         \
			await_turn(&await_, #condition, __FILE__, __LINE__);                                 \
	} while (0)

#endif
