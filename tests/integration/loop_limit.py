"""The limit for an iteration of an event loop: 50 ms of its thread's processor time, which does not depend on
the load of the machine. It depends on the processor, so a reference computation is measured repeatedly during
the attacks, and the limit grows with its slowest time."""
import time
import zlib

LIMIT_US = 50000
# Time of the reference computation on the machine where the limit was chosen. On a slower machine the limit
# is longer, on a faster one the same.
USUAL_S = 0.065
WORK = b''.join(b'%d:%d,' % (i, i * i) for i in range(60000))


class LoopLimit:
    def __init__(self):
        self.slowness = 1
        for _ in range(3):
            self.measure()

    def measure(self):
        began = time.thread_time()
        zlib.compress(WORK, 6)
        self.slowness = max(self.slowness, (time.thread_time() - began) / USUAL_S)

    @property
    def us(self):
        self.measure()
        return int(LIMIT_US * self.slowness)
