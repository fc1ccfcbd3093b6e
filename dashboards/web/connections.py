"""Timeouts of connections whose clients send or read slowly, or not at all.

uvicorn ends a connection that is idle between two requests (timeout_keep_alive), not one whose request never comes.

The server of the live pages: uvicorn's, which shuts down in order at the first signal.
"""

from __future__ import annotations

import asyncio
import signal
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import uvicorn
from starlette.types import Message, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ranktune.tuner.workers.interrupts import SIGNALS

HEADER_SECONDS = 10.0
"""Seconds that a request may take to arrive."""
MOST_WAITING = 250
"""Connections whose request has not arrived; further ones queue, and are not read meanwhile."""
MOST_QUEUED = 350
"""Connections that queue; further ones are ended."""
PATIENCE = 2.0
"""Seconds that a connection has for its request while others queue: then the oldest is ended for the next."""
READ_SECONDS = 30.0
"""Seconds that a client may take to read a part of a response."""
PART = 1 << 16
"""Bytes of a response that are handed to a connection at a time."""


class PatientProtocol(H11Protocol):
    """HTTP/1.1 whose requests have to arrive in time."""

    waiting: ClassVar[OrderedDict[PatientProtocol, asyncio.TimerHandle]] = OrderedDict()
    queued: ClassVar[OrderedDict[PatientProtocol, asyncio.TimerHandle]] = OrderedDict()
    since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request."""
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._arrived()
        elif self not in self.waiting:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection."""
        self._arrived()
        super().connection_lost(exc)

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        if len(self.waiting) < MOST_WAITING:
            self.since = loop.time()
            self.waiting[self] = loop.call_later(HEADER_SECONDS, self._end)
        elif len(self.queued) < MOST_QUEUED:
            self.transport.pause_reading()
            self.queued[self] = loop.call_later(PATIENCE, self._press)
        else:
            self.transport.abort()

    def _press(self) -> None:
        """End the oldest connection that waits, once it has had its time, for the first of the queue."""
        oldest, loop = next(iter(self.waiting)), asyncio.get_running_loop()
        left = oldest.since + PATIENCE - loop.time()
        self.queued[self] = loop.call_later(max(left, 0.0), self._press)
        if left <= 0.0:
            oldest._end()

    def _end(self) -> None:
        self._arrived()
        self.transport.abort()

    def _arrived(self) -> None:
        timer = self.waiting.pop(self, None) or self.queued.pop(self, None)
        if timer is not None:
            timer.cancel()
        while self.queued and len(self.waiting) < MOST_WAITING:
            first, timer = self.queued.popitem(last=False)
            timer.cancel()
            first._wait()
            first.transport.resume_reading()


def in_parts(send: Send) -> Callable[[Message], Coroutine[Any, Any, None]]:
    """Return a send that writes a body in parts, each after most of the last was read, until a client stops reading.

    Raises TimeoutError, which ends the connection.
    """

    async def sent(message: Message) -> None:
        body = message.get("body", b"")
        for start in range(PART, len(body), PART):
            part = {"type": message["type"], "body": body[start - PART : start], "more_body": True}
            await asyncio.wait_for(send(part), READ_SECONDS)
        rest = {**message, "body": body[(max(len(body) - 1, 0) // PART) * PART :]} if "body" in message else message
        await asyncio.wait_for(send(rest), READ_SECONDS)

    return sent


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
