"""The checks of every request (method, address, host, token) and the headers of every response.

Pages show the results of a study, so only clients of the user may read them, and no request changes anything.
The threats are DNS rebinding (the Host header), links with encoded dots, and other sites.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

COOKIE = "ranktune_token"
MAX_RUNNING = 200
"""Requests that are answered at a time, pages that wait for changes among them."""
MAX_ADDRESS = 4096
"""Bytes of an address: two names of studies, each character of them encoded."""
HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-frame-options": "DENY",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Of every response, with the policy."""


@dataclass(frozen=True)
class Guard:
    """An ASGI application that passes a request on to app only where it is allowed.

    hosts   names allowed in the Host header, without port; with any_address every IP address too, which is safe because
            DNS rebinding needs a name
    token   required of a request as ?token= (then kept as a cookie) or as a bearer token; None requires none
    policy  the Content-Security-Policy of every response
    running the requests that were allowed and are being answered
    """

    app: ASGIApp
    hosts: frozenset[str]
    any_address: bool = False
    token: str | None = field(default=None, repr=False)
    policy: str = "default-src 'none'"
    running: set[object] = field(default_factory=set, repr=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request."""

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                policy = {"content-security-policy": f"{self.policy}; frame-ancestors 'none'"}
                MutableHeaders(scope=message).update(HEADERS | policy)
            await send(message)

        request = Request(scope)
        refused = self._refused(request) or self._entered(request)
        if refused is not None:
            return await refused(scope, receive, sent)
        self.running.add(request)
        try:
            await self.app(scope, receive, sent)
        finally:
            self.running.discard(request)

    def _refused(self, request: Request) -> Response | None:
        scope, path = request.scope, request.scope["path"]
        if len(_raw_path(scope)) + len(scope["query_string"]) > MAX_ADDRESS:
            return PlainTextResponse("This address is too long.", 414)
        if not self._is_host(request.headers.get("host", "")):
            return PlainTextResponse(
                "This server has other names: use the address that `ranktune show --live` printed.", 421
            )
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("Pages are read only.", 405, {"allow": "GET, HEAD"})
        if any(c in path for c in "\\\0") or {".", ".."} & set(path.split("/")):
            return PlainTextResponse("This address is not valid.", 400)
        if _is_foreign(request):
            return PlainTextResponse("Pages of other sites may not read this one.", 403)
        return None

    def _entered(self, request: Request) -> Response | None:
        """Return the response to a request with a token in its address, or without one, or to one too many."""
        given, headers = request.query_params.get("token"), request.headers
        if self.token is not None and given is not None and self._is_token(given):
            rest = [(name, value) for name, value in request.query_params.multi_items() if name != "token"]
            # A path of two slashes would be another host; the browser must stay here.
            path = "/" + _raw_path(request.scope).decode("latin-1").lstrip("/")
            entered = RedirectResponse(f"{path}?{urlencode(rest)}" if rest else path, 303)
            entered.set_cookie(COOKIE, given, httponly=True, samesite="strict")
            return entered
        known = (headers.get("authorization", "").removeprefix("Bearer "), request.cookies.get(COOKIE, ""))
        if self.token is not None and not any(map(self._is_token, known)):
            return PlainTextResponse(
                "This page needs its token: open the address that `ranktune show --live` printed.", 401
            )
        if len(self.running) >= MAX_RUNNING:
            return PlainTextResponse("Too many requests are running.", 503)
        return None

    def _is_host(self, header: str) -> bool:
        name = host_name(header)
        return name in self.hosts or (self.any_address and _address(name) is not None)

    def _is_token(self, given: str) -> bool:
        return self.token is not None and secrets.compare_digest(given.encode(), self.token.encode())


def _raw_path(scope: Scope) -> bytes:
    raw: bytes = scope.get("raw_path") or scope["path"].encode()
    return raw


def _is_foreign(request: Request) -> bool:
    """Return whether a page of another site makes a request; a link there may open a page."""
    headers, path = request.headers, request.scope["path"]
    if headers.get("sec-fetch-site", "none") in ("same-origin", "none"):
        return False
    opens = (headers.get("sec-fetch-mode"), headers.get("sec-fetch-dest")) == ("navigate", "document")
    return not opens or path.startswith(("/api/", "/events/"))


def host_name(header: str) -> str:
    """Return the name in a Host header, lower case, without port; "" where the header is not valid."""
    match = re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d*)?", header.strip().lower())
    return match[1] if match else ""


def allowed_hosts(bound: str) -> tuple[frozenset[str], bool]:
    """Return the allowed host names of a server bound to an address, and whether any IP address is allowed."""
    names = {"127.0.0.1", "localhost", "[::1]"}
    everywhere = bound in ("0.0.0.0", "::", "")
    if everywhere:
        names.add(socket.gethostname().lower())
    else:
        names.add(f"[{bound.lower()}]" if ":" in bound else bound.lower())
    return frozenset(names), everywhere


def is_loopback(bound: str) -> bool:
    """Return whether only this machine can reach a server bound to that address."""
    address = _address(bound)
    return bound.lower() == "localhost" or (address is not None and address.is_loopback)


def _address(name: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    with suppress(ValueError):
        return ipaddress.ip_address(name.strip("[]"))
    return None
