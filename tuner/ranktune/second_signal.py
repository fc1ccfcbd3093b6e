"""A second signal ends the command within seconds, whatever it does.

Python handles a signal between two instructions of its own, so that compiled code, which may run for minutes, delays
it. The number of a signal is also written to a socket, at once; a thread reads it there, and ends the process if the
main thread does not. That is as safe as a kill: what had finished is on the disk.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ranktune.tuner.workers.interrupts import SIGNALS

PATIENCE = 4.0
"""Seconds after the second signal in which a command may end in good order."""
_SAYS = b"Interrupted. The process did not end in time and was ended; `ranktune resume` continues a study.\n"


@contextmanager
def second_signal_ends(patience: float = PATIENCE) -> Iterator[None]:
    """End this process with code 130 where the block goes on for so many seconds after a second signal.

    Outside the main thread it does nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    receiving, sending = socket.socketpair()
    sending.setblocking(False)
    over = threading.Event()
    watching = threading.Thread(target=_watch, args=(receiving, over, patience), name="second signal", daemon=True)
    before = signal.set_wakeup_fd(sending.fileno(), warn_on_full_buffer=False)
    watching.start()
    try:
        yield
    finally:
        over.set()
        signal.set_wakeup_fd(before)
        sending.close()  # which the thread reads as the end
        watching.join()
        receiving.close()


def _watch(receiving: socket.socket, over: threading.Event, patience: float) -> None:
    seen = 0
    while seen < 2:
        numbers = receiving.recv(64)
        if not numbers:
            return
        seen += sum(number in SIGNALS for number in numbers)
    if not over.wait(patience):
        with suppress(OSError):  # the terminal may be closed
            os.write(2, _SAYS)
        os._exit(130)
