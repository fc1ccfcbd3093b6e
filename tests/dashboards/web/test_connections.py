"""Clients that do not send, do not read, or are pages of other sites, cost the others nothing."""

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from starlette.exceptions import HTTPException

from ranktune.dashboards.web import connections
from ranktune.dashboards.web.connections import PART, PatientProtocol, in_parts
from ranktune.dashboards.web.server import MAX_LISTENERS, Site, make_app
from ranktune.solvers.core.errors import ParameterError
from tests.dashboards.web.test_server import asked
from tests.support.commands import called
from tests.support.page_studies import declare

REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


@contextmanager
def served(home: Path) -> Iterator[tuple[str, int]]:
    """Serve a home in a thread, as the command does."""
    config = uvicorn.Config(make_app(home), http=PatientProtocol, log_level="error", lifespan="off", ws="none")
    server = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(128)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield listening.getsockname()
        finally:
            server.should_exit = True
            thread.join(10.0)


def is_closed(client: socket.socket) -> bool:
    try:
        return client.recv(1) == b""
    except ConnectionResetError:
        return True


def answer(address: tuple[str, int]) -> bytes:
    with socket.create_connection(address, timeout=20.0) as client:
        client.sendall(REQUEST)
        return client.recv(12)


def test_idle_connections_lock_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_WAITING", 20)
    with served(tmp_path) as address, ExitStack() as held:
        idle = [held.enter_context(socket.create_connection(address, timeout=20.0)) for _ in range(40)]
        assert answer(address) == b"HTTP/1.1 200"
        assert all(is_closed(client) for client in idle[:20])
        idle[-1].sendall(REQUEST)
        assert idle[-1].recv(12) == b"HTTP/1.1 200"


@pytest.mark.parametrize(("clients", "most", "sends_first"), [(120, 8, True), (120, 8, False), (60, 59, False)])
def test_connections_of_one_moment_are_all_answered(
    clients: int, most: int, sends_first: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_WAITING", most)
    with served(tmp_path) as address, ExitStack() as held:
        opened = [held.enter_context(socket.create_connection(address, timeout=30.0)) for _ in range(clients)]
        for client in opened if sends_first else reversed(opened):
            client.sendall(REQUEST)
        assert [client.recv(12) for client in opened] == [b"HTTP/1.1 200"] * clients


def test_the_queue_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MOST_WAITING", 5)
    monkeypatch.setattr(connections, "MOST_QUEUED", 7)
    monkeypatch.setattr(connections, "PATIENCE", 60.0)
    with served(tmp_path) as address, ExitStack() as held:
        idle = [held.enter_context(socket.create_connection(address, timeout=5.0)) for _ in range(12 + 3)]
        assert all(is_closed(client) for client in idle[12:])
        for client in idle[:12]:
            client.sendall(REQUEST)
            assert client.recv(12) == b"HTTP/1.1 200"


def test_a_request_has_to_arrive_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    with served(tmp_path) as address, socket.create_connection(address, timeout=20.0) as client:
        client.sendall(REQUEST[:20])
        begun = time.monotonic()
        assert is_closed(client)
        assert time.monotonic() - begun < 10.0
        assert answer(address) == b"HTTP/1.1 200"


@pytest.mark.parametrize("size", [0, 1, PART - 1, PART, PART + 1, 3 * PART, 3 * PART + 5])
def test_a_body_goes_out_in_parts(size: int) -> None:
    results: list[Any] = []

    async def send(message: Any) -> None:
        results.append(message)

    body = bytes(k % 251 for k in range(size))
    asyncio.run(in_parts(send)({"type": "http.response.body", "body": body}))
    assert b"".join(result["body"] for result in results) == body
    assert max(len(result["body"]) for result in results) <= PART
    assert [bool(result.get("more_body")) for result in results] == [True] * (len(results) - 1) + [False]


def test_a_client_that_does_not_read_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "READ_SECONDS", 0.05)

    async def never(message: Any) -> None:
        await asyncio.sleep(60)

    with pytest.raises(TimeoutError):
        asyncio.run(in_parts(never)({"type": "http.response.body", "body": b"x"}))


def test_listeners_of_one_moment_are_counted(tmp_path: Path) -> None:
    declare(tmp_path, "s")
    site = Site(tmp_path)

    class Request:
        path_params = {"name": "s"}  # noqa: RUF012
        query_params: dict[str, str] = {}  # noqa: RUF012

    async def burst() -> list[Any]:
        return await asyncio.gather(
            *(site._events(Request()) for _ in range(MAX_LISTENERS + 10)),  # type: ignore[arg-type]
            return_exceptions=True,
        )

    answers = asyncio.run(burst())
    assert [answer.status_code for answer in answers if isinstance(answer, HTTPException)] == [503] * 10
    assert len(answers) - 10 == site.listeners == MAX_LISTENERS


def fetch(site: str, mode: str = "no-cors", destination: str = "empty") -> dict[str, str]:
    return {"sec-fetch-site": site, "sec-fetch-mode": mode, "sec-fetch-dest": destination}


def test_pages_of_other_sites_may_not_read(tmp_path: Path) -> None:
    guarded = make_app(tmp_path)
    link = ("navigate", "document")
    for path, headers, status in (
        ("/", {}, 200),
        ("/", fetch("none", *link), 200),
        ("/api/studies", fetch("same-origin", "cors"), 200),
        ("/", fetch("cross-site", *link), 200),
        ("/", fetch("cross-site"), 403),
        ("/", fetch("cross-site", "navigate", "iframe"), 403),
        ("/api/studies", fetch("cross-site", *link), 403),
        ("/api/studies", fetch("same-site"), 403),
        ("/static/page.js", fetch("cross-site", "no-cors", "script"), 403),
    ):
        assert asked(guarded, path, headers=headers).status_code == status, (path, headers)


def test_the_token_is_that_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []

    def make(home: Path, **given: Any) -> None:
        seen.append(given["token"])
        raise ParameterError("enough")

    monkeypatch.setattr("ranktune.dashboards.web.server.make_app", make)
    for host in ("127.0.0.1", "0.0.0.0"):
        for token in ("abc", ""):
            called("show", "--live", "--host", host, env={"RANKTUNE_TOKEN": token})
    assert seen[:3] == ["abc", None, "abc"] and len(seen[3] or "") > 20
