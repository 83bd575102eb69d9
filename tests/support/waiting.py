"""Waiting for conditions without polling: until() checks when an event may have made the condition true."""
import ctypes
import os
import select
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
    if fd < 0 or libc.inotify_add_watch(fd, os.path.dirname(os.path.abspath(path)).encode(), IN_MODIFY | IN_MOVED_TO | IN_CREATE) < 0:
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
