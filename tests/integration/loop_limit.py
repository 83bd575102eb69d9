"""How long an iteration of an event loop may take: 50 ms of its thread's processor time, which others on the machine do not lengthen. A slower processor does, so
the same work is measured again and again beside the attacks, and the limit grows with its slowest time."""
import time
import zlib

LIMIT_US = 50000
# Of the work below, on the machine where the limit was chosen; a slower one has a longer limit, a faster one the same.
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
