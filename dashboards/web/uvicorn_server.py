"""The server of the live pages: uvicorn's, which shuts down in order at the first signal."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from ranktune.tuner.workers.interrupts import SIGNALS


class Server(uvicorn.Server):
    """uvicorn's server, which handles signals itself and then drops them.

    uvicorn raises a signal again after it has shut down. Here that would count as a second signal, after which a
    process has only seconds to end.
    """

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Shut down after a signal within this context; a second SIGINT does not wait for open requests."""
        before = {number: signal.signal(number, self.handle_exit) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
