"""Timeouts of connections whose clients send or read slowly, or not at all.

uvicorn ends a connection that is idle between two requests (timeout_keep_alive), not one whose request never comes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol

from ranktune.dashboards.web.guard import Message, Send

HEADER_SECONDS = 10.0
"""Seconds that a request may take to arrive."""
MOST_WAITING = 100
"""Connections whose request has not arrived; the oldest is ended for another one."""
READ_SECONDS = 30.0
"""Seconds that a client may take to read a part of a response."""
PART = 1 << 16
"""Bytes of a response that are handed to a connection at a time."""


class PatientProtocol(H11Protocol):
    """HTTP/1.1 whose requests have to arrive in time."""

    waiting: ClassVar[OrderedDict[PatientProtocol, asyncio.TimerHandle]] = OrderedDict()

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
        self.waiting[self] = asyncio.get_running_loop().call_later(HEADER_SECONDS, self._end)
        if len(self.waiting) > MOST_WAITING:
            next(iter(self.waiting))._end()

    def _end(self) -> None:
        self._arrived()
        self.transport.abort()

    def _arrived(self) -> None:
        timer = self.waiting.pop(self, None)
        if timer is not None:
            timer.cancel()


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
