"""Waiting for conditions without polling: until() checks when an event may have made the condition true.

As a program, for shell scripts (waiting.sh): waiting.py FILE REGEX [PID [COUNT]] waits until COUNT
lines of FILE match. Exits with 1 and the end of FILE if process PID ends before that, or after ten minutes.
"""

import asyncio
import ctypes
import os
import re
import select
import sys
import time

GUARD = 600  # seconds; ends a hanging test, measures nothing
IN_MODIFY, IN_MOVED_TO, IN_CREATE = 0x2, 0x80, 0x100

libc = ctypes.CDLL(None, use_errno=True)


class Changes:
    """Notification for threads of the test: a thread that changes something notifies. Only one thread waits
    at a time."""

    def __init__(self):
        self.fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)

    def tell(self):
        os.eventfd_write(self.fd, 1)


CHANGES = Changes()  # of everything that threads of the test count


def watch_folder(path):
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if (
        fd < 0
        or libc.inotify_add_watch(
            fd, os.path.dirname(os.path.abspath(path)).encode(), IN_MODIFY | IN_MOVED_TO | IN_CREATE
        )
        < 0
    ):
        raise OSError(ctypes.get_errno(), "inotify")
    return fd


def drain(fd):
    try:
        while os.read(fd, 1 << 16):
            pass
    except BlockingIOError:
        pass


def until(check, process=None, file=None, guard=GUARD, again=None):
    """Returns the value of check() as soon as it is true. check() is called again after a change of CHANGES
    or of file, and every `again` seconds if no notification exists (a server that must be polled). Returns
    None if process has ended (check() is called once more after that), or the guard has passed."""
    poll = select.poll()
    poll.register(CHANGES.fd, select.POLLIN)
    folder = watch_folder(file) if file else None
    end = os.pidfd_open(process.pid) if process and process.returncode is None else None
    try:
        for fd in (folder, end):
            if fd is not None:
                poll.register(fd, select.POLLIN)
        deadline = time.monotonic() + guard
        while True:
            has_ended = process is not None and process.poll() is not None
            result = check()
            left = deadline - time.monotonic()
            if result or has_ended or left <= 0:
                return result or None
            for fd, _ in poll.poll((left if again is None else min(left, again)) * 1000):
                if fd != end:
                    drain(fd)
    finally:
        for fd in (folder, end):
            if fd is not None:
                os.close(fd)


async def pause(seconds):
    """Lets time pass as part of what a test does: a fault's delay. Not for waiting."""
    await asyncio.sleep(seconds)


class Process:
    """A process that is not a child, for until()."""

    def __init__(self, pid):
        self.pid, self.returncode = pid, None
        try:
            os.close(os.pidfd_open(pid))
        except ProcessLookupError:
            self.returncode = 0

    def poll(self):
        """Returns None while the process runs."""
        if self.returncode is None:
            fd = os.pidfd_open(self.pid)
            if select.select([fd], [], [], 0)[0]:
                self.returncode = 0
            os.close(fd)
        return self.returncode


def main():
    path, pattern, *rest = sys.argv[1:]
    expression = re.compile(pattern)
    count = int(rest[1]) if len(rest) > 1 else 1

    def text():
        if not os.path.exists(path):
            return ""
        with open(path, errors="replace") as file:
            return file.read()

    if until(
        lambda: sum(1 for line in text().splitlines() if expression.search(line)) >= count,
        Process(int(rest[0])) if rest and rest[0] else None,
        path,
    ):
        return 0
    print(
        "%s has not %d lines with %s; its end:\n%s" % (path, count, pattern, text()[-3000:]), file=sys.stderr
    )
    return 1


if __name__ == "__main__":
    sys.exit(main())
