"""What `show --page` and `show --live` do: write one file, or serve the live pages until interrupted."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from ranktune.solvers.core.errors import ParameterError
from ranktune.tuner.study.home import find_folder, home_folder

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


def write(name: str, home: Path | None, output: Path | None, *beside: str, brief: bool = False) -> Path:
    """Write the report of a study, or of several side by side, and return its path.

    Without output it is in the folder of the first, as report.html, or as comparison.html of several. brief leaves out
    what takes seconds to compute.
    """
    from ranktune.dashboards.web.page import write_report

    folder, *others = (find_folder(home_folder(home), each).path for each in (name, *beside))
    output = output or folder / ("comparison.html" if beside else "report.html")
    return write_report(folder, output, *others, brief=brief)


def serve(home: Path, name: str | None, on_ready: Callable[[str], None], host: str, port: int) -> None:
    """Serve until interrupted; on_ready is called with the address once the page can be opened.

    The token is that of the environment. Without one, it is created if other machines can reach the address.
    """
    try:
        import uvicorn

        from ranktune.dashboards.web.connections import PatientProtocol, Server, in_parts
        from ranktune.dashboards.web.guard import is_loopback
        from ranktune.dashboards.web.server import make_app
    except ImportError as error:
        remedy = 'Install the extra dashboard: pip install "ranktune[dashboard]".'
        raise ParameterError(f"the live page cannot be served: {error}. {remedy}") from None
    if name is not None:
        find_folder(home, name)
    token = os.environ.get("RANKTUNE_TOKEN") or (None if is_loopback(host) else secrets.token_urlsafe(24))
    app = make_app(home, host=host, token=token, first=name, closing=lambda: server.should_exit)

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
    with _bound(host, port) as listening, suppress(KeyboardInterrupt):
        on_ready(_address(host, listening.getsockname()[1], token))
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
