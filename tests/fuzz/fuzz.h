/* A fuzz target is one function over bytes from outside; libFuzzer or driver.c calls it. It stops the program
 * when a promise is broken. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stdint.h>
#include <stdlib.h>

#include "base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
