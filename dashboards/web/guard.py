"""What every request passes before anything answers it: method, address, host, token; and the headers of every answer.

Pages show what a study found to whoever can ask for them, so only those may ask whom the user meant. Reading is all
that can be asked for. Source of the threats: DNS rebinding (the Host header), links with encoded dots, other sites.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "ranktune_token"
LONGEST = 4096
"""Bytes that an address may have: two names of studies, each letter of them encoded."""


@dataclass(frozen=True)
class Guard:
    """An ASGI application that lets a request through to app only where all of these hold.

    hosts   names that the Host header may have, without port; where any_address, every IP address too: a name is
            needed to rebind, so an address cannot have been
    token   what a request has to bring as ?token= (then kept as a cookie) or as a bearer; None asks for none
    policy  the Content-Security-Policy of every answer
    """

    app: App
    hosts: frozenset[str]
    any_address: bool = False
    token: str | None = field(default=None, repr=False)
    policy: str = "default-src 'none'"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or say why not."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http":
            return None
        headers = {name.lower(): value for name, value in scope["headers"]}
        refused = self._refused(scope, headers)
        if refused is not None:
            return await _plainly(*refused, _guarded(send, self.policy))
        if self.token is not None:
            given = _query_token(scope)
            if given is not None and self._is_token(given):
                return await _plainly(303, "", _guarded(send, self.policy), self._without_token(scope, given))
            if not self._knows(headers):
                words = "This page needs its token: open the address that `ranktune dashboard` printed."
                return await _plainly(401, words, _guarded(send, self.policy))
        return await self.app(scope, receive, _guarded(send, self.policy))

    def _refused(self, scope: Scope, headers: dict[bytes, bytes]) -> tuple[int, str] | None:
        raw = scope.get("raw_path") or scope["path"].encode()
        if len(raw) + len(scope["query_string"]) > LONGEST:
            return 414, "This address is too long."
        if not self._is_host(headers.get(b"host", b"").decode("latin-1")):
            return 421, "This server answers to other names: use the address that `ranktune dashboard` printed."
        if scope["method"] not in ("GET", "HEAD"):
            return 405, "Pages are read only."
        if any(c in scope["path"] for c in "\\\0") or {".", ".."} & set(scope["path"].split("/")):
            return 400, "This address cannot be."
        return None

    def _is_host(self, header: str) -> bool:
        name = host_name(header)
        return name in self.hosts or (self.any_address and _is_address(name))

    def _is_token(self, given: str) -> bool:
        return self.token is not None and secrets.compare_digest(given.encode(), self.token.encode())

    def _knows(self, headers: dict[bytes, bytes]) -> bool:
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


def host_name(header: str) -> str:
    """Return the name in a Host header, lower case, without port; "" where it cannot be one."""
    found = re.fullmatch(r"(\[[0-9a-f:.]+\]|[a-z0-9._-]+)(:\d*)?", header.strip().lower())
    return found[1] if found else ""


def allowed_hosts(bound: str) -> tuple[frozenset[str], bool]:
    """Return the names that a server bound to an address answers to, and whether any IP address is one."""
    names = {"127.0.0.1", "localhost", "[::1]"}
    everywhere = bound in ("0.0.0.0", "::", "")
    if everywhere:
        names.add(socket.gethostname().lower())
    else:
        names.add(f"[{bound.lower()}]" if ":" in bound else bound.lower())
    return frozenset(names), everywhere


def is_loopback(bound: str) -> bool:
    """Return whether only this machine reaches a server bound to that address."""
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


def _query_token(scope: Scope) -> str | None:
    return dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("token")


def _guarded(send: Send, policy: str) -> Send:
    """Return send with the headers that every answer has."""
    always = [
        (b"x-content-type-options", b"nosniff"),
        (b"referrer-policy", b"no-referrer"),
        (b"x-frame-options", b"DENY"),
        (b"cross-origin-opener-policy", b"same-origin"),
        (b"cross-origin-resource-policy", b"same-origin"),
        (b"content-security-policy", f"{policy}; frame-ancestors 'none'".encode()),
    ]

    async def sent(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            names = {name for name, _ in always}
            message["headers"] = [pair for pair in message.get("headers", []) if pair[0].lower() not in names] + always
        await send(message)

    return sent


async def _plainly(status: int, words: str, send: Send, headers: list[tuple[bytes, bytes]] | None = None) -> None:
    """Answer with a line of text."""
    body = words.encode()
    base = [(b"content-type", b"text/plain; charset=utf-8"), (b"content-length", str(len(body)).encode())]
    if status == 405:
        base.append((b"allow", b"GET, HEAD"))
    await send({"type": "http.response.start", "status": status, "headers": [*base, *(headers or [])]})
    await send({"type": "http.response.body", "body": body})
