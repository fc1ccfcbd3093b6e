"""A proxy on loopback that forwards bytes to a server, until its connections are cut."""

import socket
import threading
import time
from contextlib import suppress
from typing import Self


class Proxy:
    """Forwards connections to a port of loopback; a context manager."""

    def __init__(self, to: int) -> None:
        self._to, self._open = to, threading.Event()
        self._open.set()
        self._ends: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.set()
        self._drop([self._listening, *self._ends])

    def cut(self, seconds: float) -> None:
        """Hold back all bytes for so many seconds, then drop the connections that there were; new ones go on."""
        held = list(self._ends)
        self._open.clear()
        time.sleep(seconds)
        self._drop(held)
        self._open.set()

    def _drop(self, ends: list[socket.socket]) -> None:
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it is closed at the end
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._to))
                self._ends += [client, server]
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._forward, args=(source, sink), daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                self._open.wait()
                sink.sendall(data)
        self._drop([source, sink])
