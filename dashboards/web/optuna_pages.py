"""optuna-dashboard's pages behind the guard: it has no check of hosts, no token and no read-only mode."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeAlias

from optuna.storages import RDBStorage
from optuna_dashboard import wsgi
from starlette.concurrency import run_in_threadpool

from ranktune.dashboards.web.guard import App, Guard, Receive, Scope, Send, allowed_hosts

WsgiApp: TypeAlias = Callable[[dict[str, object], Callable[..., object]], Iterable[bytes]]

POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; font-src 'self' data:; "
    "img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'"
)
"""Its scripts need 'unsafe-eval'; the rest is as for RankTune's own pages."""


def optuna_app(record: Path, *, host: str = "127.0.0.1", token: str | None = None) -> Guard:
    """Return the guarded application that shows the Optuna study in record."""
    storage = RDBStorage(f"sqlite:///{record}", skip_compatibility_check=True)
    hosts, any_address = allowed_hosts(host)
    return Guard(_as_asgi(wsgi(storage)), hosts, any_address, token, POLICY)


def _as_asgi(application: WsgiApp) -> App:
    """Return an ASGI application that calls a WSGI application with requests without a body."""

    def respond(environ: dict[str, object]) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        started: list[tuple[int, list[tuple[bytes, bytes]]]] = []

        def start(status: str, headers: list[tuple[str, str]], exc_info: object = None) -> Callable[[bytes], None]:
            encoded = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
            started.append((int(status.split()[0]), encoded))
            return lambda _: None

        parts = application(environ, start)
        try:
            body = b"".join(parts)
        finally:
            getattr(parts, "close", lambda: None)()
        return (*started[-1], body)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, headers, body = await run_in_threadpool(respond, _environ(scope))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    return app


def _environ(scope: Scope) -> dict[str, object]:
    """Return the WSGI environment of a request without a body."""
    server = scope.get("server") or ("127.0.0.1", 80)
    environ: dict[str, object] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": scope["path"].encode().decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": "HTTP/1.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for name, value in scope["headers"]:
        environ[f"HTTP_{name.decode('latin-1').upper().replace('-', '_')}"] = value.decode("latin-1")
    return environ
