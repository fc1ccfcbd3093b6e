"""The live page's server: who may ask, what can be asked for, the events of changes."""

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ranktune.command_line.pages import serve
from ranktune.dashboards.records.study import Watched
from ranktune.dashboards.web.guard import COOKIE, Guard, allowed_hosts, host_name, is_loopback
from ranktune.dashboards.web.server import Site, make_app
from ranktune.solvers.core.errors import ParameterError
from ranktune.tuner.drift.watching import write_day
from ranktune.tuner.splits.seals import write_sealed
from tests.support.page_studies import LINE, append, declare, finish
from tests.support.study_samples import trial, trials_of

HOST = "http://127.0.0.1:8765"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = tmp_path_factory.mktemp("home")
    for name in ("mine", "other"):
        declare(result, name)
        append(result, name, trials_of(4))
    finish(result, "mine")
    declare(result, "empty")
    declare(result, LINE[0])
    (result / "secret.txt").write_text("secret")
    return result


def asked(app: Any, path: str, *, method: str = "GET", host: str = HOST, **more: Any) -> Any:
    import httpx  # here: it takes long to load

    async def ask() -> Any:
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url=host) as client:
            return await client.request(method, path, **more)

    return asyncio.run(ask())


def raw(app: Any, path: bytes, host: bytes = b"127.0.0.1") -> tuple[int, bytes]:
    """Ask with an address that no client would send."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    from urllib.parse import unquote_to_bytes

    where, _, query = path.partition(b"?")
    scope = {
        "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": unquote_to_bytes(where).decode("latin-1"), "raw_path": where, "query_string": query,
        "headers": [(b"host", host)], "server": ("127.0.0.1", 1), "client": ("127.0.0.1", 2), "root_path": "",
    }  # fmt: skip
    asyncio.run(app(scope, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


def test_pages_and_data(home: Path) -> None:
    app = make_app(home)
    front = asked(app, "/")
    assert front.status_code == 200 and "text/html" in front.headers["content-type"]
    names = [study["study"] for study in asked(app, "/api/studies").json()["studies"]]
    assert set(names) == {"mine", "other", "empty", LINE[0]}
    assert asked(app, "/study/mine").status_code == 200
    assert asked(app, "/api/study/mine").json()["state"] == "finished"
    for key in ("overview", "progress", "trials"):
        for name in ("mine", "other", "empty"):
            result = asked(app, f"/api/view/{name}/{key}").json()
            assert result["panels"] and result["study"]["name"] == name
    assert asked(app, "/compare/mine/other").status_code == 200
    compared = asked(app, "/api/compare/mine/other").json()["panels"]
    assert [panel["key"] for panel in compared][:4] == ["summary", "chosen", "settings", "race"]
    for file, kind in (("page.js", "text/javascript"), ("page.css", "text/css"), ("plotly.min.js", "text/javascript")):
        answer = asked(app, f"/static/{file}")
        assert kind in answer.headers["content-type"] and len(answer.content) > 1000
        assert re.search(rf'"/static/{re.escape(file)}\?\w{{16}}"', asked(app, "/study/mine").text)
    first = asked(make_app(home, first="mine"), "/")
    assert (first.status_code, first.headers["location"]) == (307, "/study/mine")


@pytest.mark.parametrize(
    "host", ["http://evil.example", "http://127.0.0.1.evil.example", "http://10.0.0.1", "http://[::2]"]
)
def test_other_hosts_are_refused(home: Path, host: str) -> None:
    assert asked(make_app(home), "/", host=host).status_code == 421


def test_hosts_that_are_ours(home: Path) -> None:
    for host in ("http://localhost:1", "http://127.0.0.1:99", "http://[::1]:8765", "http://LOCALHOST"):
        assert asked(make_app(home), "/", host=host).status_code == 200
    for header in (b"", b"127.0.0.1:x", b"127.0.0.1 evil", b"[::1", b"localhost.", b"127.0.0.1@evil.example"):
        assert raw(make_app(home), b"/", header)[0] == 421
    names, everywhere = allowed_hosts("0.0.0.0")
    guard = Guard(make_app(home).app, names, everywhere)
    assert asked(guard, "/", host="http://192.168.1.7").status_code == 200  # a name is needed to rebind
    assert asked(guard, "/", host="http://evil.example").status_code == 421
    assert "tuner.local" in allowed_hosts("tuner.local")[0]
    assert [is_loopback(h) for h in ("127.0.0.1", "127.3.2.1", "::1", "localhost", "0.0.0.0", "::", "box")] == [
        True, True, True, True, False, False, False,
    ]  # fmt: skip
    assert [host_name(h) for h in ("A:1", "[::1]:1", "a:b", "[::1]x")] == ["a", "[::1]", "", ""]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
def test_reading_is_all_that_can_be_asked_for(home: Path, method: str) -> None:
    answer = asked(make_app(home), "/api/study/mine", method=method, headers={"origin": "http://evil.example"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
    assert asked(make_app(home), "/api/study/mine", method="HEAD").status_code == 200


OUTSIDE = [
    b"/static/../secret.txt", b"/static/%2e%2e/secret.txt", b"/static/..%2fsecret.txt", b"/static/%2e%2e%2fsecret.txt",
    b"/static/..\\secret.txt", b"/static/%5c..%5csecret.txt", b"/study/..", b"/study/%2e%2e", b"/api/study/../secret",
    b"/api/study/mine%00", b"/api/study/mine/..", b"/api/study/%2e%2e%2fhome", b"/api/study/mine%2f..%2fother",
    b"/api/view/..%2fsecret.txt/trials", b"/api/view/%2e%2e%5csecret/x", b"//secret.txt", b"/api/view/mine/..%2f..",
    b"/api/view/mine/__init__", b"/static/page.html", b"/static/server.py", b"/static/", b"/api/study/",
    b"/api/study/%252e%252e", b"/api/study/MINE", b"/events/..%2fmine", b"/api/study/\xff\xfe", b"/.git/config",
]  # fmt: skip


@pytest.mark.parametrize("path", OUTSIDE)
def test_names_outside_are_not_matched(home: Path, path: bytes) -> None:
    status, body = raw(make_app(home), path)
    assert status in (400, 404)
    assert b"secret" not in body.replace(b"secret.txt", b"") and b"Traceback" not in body


def test_long_addresses_are_refused(home: Path) -> None:
    assert raw(make_app(home), b"/study/" + b"a" * 1_000_000)[0] == 414
    assert raw(make_app(home), b"/?" + b"a" * 5000)[0] == 414


def test_every_answer_is_guarded(home: Path) -> None:
    app = make_app(home)
    for path, method in (("/", "GET"), ("/nothing", "GET"), ("/", "POST"), ("/static/page.js", "GET")):
        headers = asked(app, path, method=method).headers
        assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy and "default-src 'none'" in policy and "script-src 'self'" in policy
        assert "unsafe-eval" not in policy and "access-control-allow-origin" not in headers


def test_a_token_is_asked_for(home: Path) -> None:
    app = make_app(home, token="right")
    for path in ("/", "/api/studies", "/static/page.js", "/events/mine", "/?token=wrong", "/?token=", "/?token=%C3%A9"):
        assert asked(app, path).status_code == 401, path
    entered = asked(app, "/study/mine?token=right&x=1")
    assert (entered.status_code, entered.headers["location"]) == (303, "/study/mine?x=1")
    cookie = entered.headers["set-cookie"]
    assert cookie.startswith(f"{COOKIE}=right;") and "HttpOnly" in cookie and "SameSite=strict" in cookie
    assert raw(app, b"//evil.example/?token=right")[0] == 303
    assert asked(app, "/api/studies", headers={"cookie": f"{COOKIE}=right"}).status_code == 200
    assert asked(app, "/api/studies", headers={"authorization": "Bearer right"}).status_code == 200
    for headers in ({"cookie": f"{COOKIE}=wrong"}, {"cookie": 'x="'}, {"authorization": "Bearer é".encode("latin-1")}):
        assert asked(app, "/api/studies", headers=headers).status_code == 401
    assert asked(app, "/", host="http://evil.example", params={"token": "right"}).status_code == 421
    assert "right" not in repr(app)


def test_an_unreadable_study_is_reported_and_hides_no_other(tmp_path: Path) -> None:
    declare(tmp_path, "good")
    declare(tmp_path, "bad")
    write_sealed(tmp_path / "bad" / "study.json", '{"format": 99}')
    app = make_app(tmp_path)
    studies = {study["study"]: study for study in asked(app, "/api/studies").json()["studies"]}
    assert "has format" in studies["bad"]["state"] and studies["good"]["trials"] == 20
    answer = asked(app, "/api/view/bad/overview")
    assert answer.status_code == 500 and "has format" in answer.text and "Traceback" not in answer.text


def listened(home: Path, act: Callable[[], None]) -> tuple[float, Site]:
    """Return the seconds from act to the event that tells of it."""

    async def run() -> tuple[float, Site]:
        site = Site(home, poll=0.1)
        result = site.watching.find("other")
        assert result is not None
        events = site._changes(result, "overview")
        assert "retry" in await anext(events)
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        begun = time.monotonic()
        await asyncio.to_thread(act)
        acted = time.monotonic()
        event = await asyncio.wait_for(waiting, 10)
        assert event.startswith("event: change")
        await events.aclose()  # type: ignore[attr-defined]
        return time.monotonic() - max(begun, acted), site

    return asyncio.run(run())


def test_a_change_is_an_event_within_a_second(home: Path) -> None:
    seconds, site = listened(home, lambda: append(home, "other", [trial(4, "RankSVM", {"C": 1.0}, 0.5)]))
    assert seconds < 1.0
    assert site.listeners == 0  # it stopped listening when the page went


def test_a_day_that_is_watched_is_a_change(home: Path) -> None:
    assert listened(home, lambda: write_day(home / "other", "2026-11-28", {}))[0] < 1.0


def test_costly_pages_are_made_less_often(home: Path) -> None:
    async def events_of(cost: float, view: str) -> int:
        site = Site(home, poll=0.02)
        watched = Watched(home / "other", costs={"overview": cost})
        events, count = site._changes(watched, view), 0
        await anext(events)
        until = time.monotonic() + 1.0
        try:
            while True:
                (home / "other" / "lock").write_text(f"{count}")
                await asyncio.wait_for(
                    asyncio.shield(waiting := asyncio.ensure_future(anext(events))), until - time.monotonic()
                )
                count += 1
        except TimeoutError:
            waiting.cancel()
        return count

    assert asyncio.run(events_of(0.0, "overview")) > 3
    assert asyncio.run(events_of(0.5, "overview")) <= 1
    assert asyncio.run(events_of(0.5, "trials")) > 3  # another view


def test_what_cannot_be_served_is_an_error(home: Path, tmp_path: Path) -> None:
    def never(address: str) -> None:
        raise AssertionError(address)

    with pytest.raises(ParameterError, match="cannot listen"):
        serve(home, None, never, "203.0.113.1", 0)
