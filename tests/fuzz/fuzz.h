/* A fuzz target is one function over bytes from outside, called by libFuzzer or driver.c. It stops the
 * program if a promise is broken. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdlib.h>

#include "base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
