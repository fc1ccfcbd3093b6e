"""The checks of every request (method, address, host, token) and the headers of every response.

Pages show the results of a study, so only clients of the user may read them, and no request changes anything.
The threats are DNS rebinding (the Host header), links with encoded dots, and other sites.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlencode

Message: TypeAlias = MutableMapping[str, Any]
Scope: TypeAlias = Message
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "ranktune_token"
MAX_RUNNING = 200
"""Requests that are answered at a time, pages that wait for changes among them."""
MAX_ADDRESS = 4096
"""Bytes of an address: two names of studies, each character of them encoded."""


@dataclass(frozen=True)
class Guard:
    """An ASGI application that passes a request on to app only where it is allowed.

    hosts   names allowed in the Host header, without port; with any_address every IP address too, which is safe because
            DNS rebinding needs a name
    token   required of a request as ?token= (then kept as a cookie) or as a bearer token; None requires none
    policy  the Content-Security-Policy of every response
    running the requests that were allowed and are being answered
    """

    app: App
    hosts: frozenset[str]
    any_address: bool = False
    token: str | None = field(default=None, repr=False)
    policy: str = "default-src 'none'"
    running: set[object] = field(default_factory=set, repr=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return None
        headers = {name.lower(): value for name, value in scope["headers"]}
        refused = self._refused(scope, headers) or _foreign(scope, headers)
        if refused is not None:
            return await _send_text(*refused, _with_headers(send, self.policy))
        if self.token is not None:
            given = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("token")
            if given is not None and self._is_token(given):
                return await _send_text(303, "", _with_headers(send, self.policy), self._without_token(scope, given))
            if not self._has_token(headers):
                text = "This page needs its token: open the address that `ranktune show --live` printed."
                return await _send_text(401, text, _with_headers(send, self.policy))
        if len(self.running) >= MAX_RUNNING:
            return await _send_text(503, "Too many requests are running.", _with_headers(send, self.policy))
        request = object()
        self.running.add(request)
        try:
            await self.app(scope, receive, _with_headers(send, self.policy))
        finally:
            self.running.discard(request)

    def _refused(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        raw = scope.get("raw_path") or scope["path"].encode()
        if len(raw) + len(scope["query_string"]) > MAX_ADDRESS:
            return 414, "This address is too long."
        if not self._is_host(headers.get(b"host", b"").decode("latin-1")):
            return 421, "This server has other names: use the address that `ranktune show --live` printed."
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "Pages are read only."
        if any(c in scope["path"] for c in "\\\0") or {".", ".."} & set(scope["path"].split("/")):
            return 400, "This address is not valid."
        return None

    def _is_host(self, header: str) -> bool:
        name = host_name(header)
        return name in self.hosts or (self.any_address and _is_address(name))

    def _is_token(self, given: str) -> bool:
        return self.token is not None and secrets.compare_digest(given.encode(), self.token.encode())

    def _has_token(self, headers: dict[bytes, bytes]) -> bool:
        bearer = headers.get(b"authorization", b"").decode("latin-1").removeprefix("Bearer ")
        try:
            cookie = SimpleCookie(headers.get(b"cookie", b"").decode("latin-1")).get(COOKIE)
        except CookieError:
            cookie = None
        return self._is_token(bearer) or (cookie is not None and self._is_token(cookie.value))

    def _without_token(self, scope: Scope, token: str) -> list[tuple[bytes, bytes]]:
        rest = [(name, value) for name, value in parse_qsl(scope["query_string"].decode("latin-1")) if name != "token"]
        # A path of two slashes would be another host; the browser must stay here.
        path = b"/" + (scope.get("raw_path") or scope["path"].encode()).lstrip(b"/")
        target = path + (b"?" + urlencode(rest).encode() if rest else b"")
        cookie = f"{COOKIE}={token}; Path=/; HttpOnly; SameSite=Strict"
        return [(b"location", target), (b"set-cookie", cookie.encode())]


def _foreign(scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
    """Return the refusal of a request that a page of another site makes; a link there may open a page."""
    if headers.get(b"sec-fetch-site", b"none") in (b"same-origin", b"none"):
        return None
    opens = (headers.get(b"sec-fetch-mode"), headers.get(b"sec-fetch-dest")) == (b"navigate", b"document")
    if opens and not scope["path"].startswith(("/api/", "/events/")):
        return None
    return 403, "Pages of other sites may not read this one."


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
    if bound.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(bound).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


def _with_headers(send: Send, policy: str) -> Send:
    """Return send with the headers of every response."""
    always = [
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"x-frame-options", b"DENY"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"content-security-policy", f"{policy}; frame-ancestors 'none'".encode()),
    ]

    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in always}
            message["headers"] = [pair for pair in message.get("headers", []) if pair[0].lower() not in names] + always
        await send(message)

    return sent


async def _send_text(status: int, text: str, send: Send, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    """Respond with a line of text."""
    body = text.encode()
    base = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    if status == 405:
        base.append((b"allow", b"GET, HEAD"))
    await send({"type": "http.response.start", "status": status, "headers": [*base, *(headers or [])]})
    await send({"type": "http.response.body", "body": body})
