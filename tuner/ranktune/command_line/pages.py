"""The commands report and dashboard: write one file, or serve the live pages until interrupted."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ranktune.solvers.core.errors import ParameterError
from ranktune.tuner.study.home import find_folder, home_folder

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

EXTRA = 'Install the extra dashboard: pip install "ranktune[dashboard]".'


def write(name: str, home: Path | None, output: Path | None, *beside: str, brief: bool = False) -> Path:
    """Write the report of a study, or of several side by side, and return its path.

    Without output it is in the folder of the first, as report.html, or as comparison.html of several. brief leaves out
    what takes seconds to compute.
    """
    from ranktune.dashboards.web.report import write_report

    folder, *others = (find_folder(home_folder(home), each).path for each in (name, *beside))
    output = output or folder / ("comparison.html" if beside else "report.html")
    return write_report(folder, output, *others, brief=brief)


@dataclass(frozen=True)
class Serving:
    """What to serve where; without a token, one is created if other machines can reach the address."""

    home: Path
    name: str | None = None
    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None


def given_token(token: str | None, file: Path | None) -> str | None:
    """Return the token that is given, or the one in a file. Raises ParameterError where the file has none."""
    if file is None:
        return token
    if token is not None:
        raise ParameterError("both a token and a file with one are given. Leave one out.")
    try:
        content = file.read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise ParameterError(f"cannot read the token in {file}: {getattr(error, 'strerror', None) or error}.") from None
    if not content:
        raise ParameterError(f"{file} holds no token. Write one line into it.")
    return content


def serve(wanted: Serving, on_ready: Callable[[str], None]) -> None:
    """Serve until interrupted; on_ready is called with the address once the page can be opened."""
    try:
        import uvicorn

        from ranktune.dashboards.web.connections import PatientProtocol, in_parts
        from ranktune.dashboards.web.guard import is_loopback
        from ranktune.dashboards.web.server import make_app
        from ranktune.dashboards.web.uvicorn_server import Server
    except ImportError as error:
        raise ParameterError(f"the live page cannot be served: {error}. {EXTRA}") from None
    if wanted.name is not None:
        find_folder(wanted.home, wanted.name)
    token = wanted.token or (None if is_loopback(wanted.host) else secrets.token_urlsafe(24))
    app = make_app(wanted.home, host=wanted.host, token=token, first=wanted.name, closing=lambda: server.should_exit)

    async def patient(scope: Scope, receive: Receive, send: Send) -> None:
        with suppress(TimeoutError):  # the client does not read
            await app(scope, receive, in_parts(send))

    config = uvicorn.Config(
        patient, http=PatientProtocol, h11_max_incomplete_event_size=16 * 1024, ws="none", lifespan="off",
        timeout_keep_alive=5, timeout_graceful_shutdown=5, log_level="warning", access_log=False, server_header=False,
    )  # fmt: skip
    server = Server(config)
    with suppress(AttributeError, OSError):
        os.nice(10)  # a running study comes first
    with _bound(wanted.host, wanted.port) as listening, suppress(KeyboardInterrupt):
        on_ready(_address(wanted.host, listening.getsockname()[1], token))
        server.run(sockets=[listening])


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((host, port))
        listening.listen(128)  # connections before the server is ready wait
    except (OSError, OverflowError) as error:
        listening.close()
        why = getattr(error, "strerror", None) or str(error)
        raise ParameterError(
            f"cannot listen on {host} port {port}: {why}. Choose another port (--port, 0 for any that is free)."
        ) from None
    return listening


def _address(host: str, port: int, token: str | None) -> str:
    shown = {"0.0.0.0": socket.gethostname(), "::": socket.gethostname(), "": "localhost"}.get(host, host)
    query = "" if token is None else f"?token={token}"
    return f"http://{f'[{shown}]' if ':' in shown else shown}:{port}/{query}"
