"""The live page: a read-only server of the studies in one home folder. Names are looked up, never joined to paths.

/  /study/NAME  /compare/A/B/...       pages                  /static/...   page.css, page.js, plotly.min.js
/api/studies  /api/study/NAME  /api/view/NAME/KEY  /api/compare/A/B/...
/events/NAME?view=KEY  server-sent events: "change" soon after the study's files have changed
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from ranktune.dashboards.figures.panels import panels_json, to_json
from ranktune.dashboards.records.study import Watched, Watching
from ranktune.dashboards.terminal.listing import listing
from ranktune.dashboards.views import compare as view_compare
from ranktune.dashboards.views.registry import VIEWS, view_json, views_json
from ranktune.dashboards.web.guard import Guard, allowed_hosts
from ranktune.dashboards.web.page import (
    MAX_COMPARED,
    compared_json,
    content_policy,
    filled,
    payload_element,
    plotly_js,
    static,
    study_json,
)
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import RankTuneError

POLL_SECONDS = 0.4
"""Seconds between two checks of a study's files."""
MAX_SHARE = 0.02
"""Fraction of a core for keeping pages up to date: the cost of a view limits how often it is computed again."""
PING_SECONDS = 15.0
MAX_LISTENERS = 50


@dataclass
class Site:
    """The pages of the studies in home; the front page is that of the study first, where one is given."""

    home: Path
    first: str | None = None
    poll: float = POLL_SECONDS
    closing: Callable[[], bool] = lambda: False
    watching: Watching = field(init=False)
    listeners: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        """Start without any study read."""
        self.watching = Watching(self.home)

    def routes(self) -> list[Route]:
        """Return the addresses of the pages and their data."""
        return [
            Route("/", self._front),
            Route("/study/{name}", self._study_page),
            Route("/compare/{names:path}", self._compare_page),
            Route("/static/{file}", _static),
            Route("/api/studies", self._studies),
            Route("/api/study/{name}", self._study),
            Route("/api/view/{name}/{key}", self._view),
            Route("/api/compare/{names:path}", self._compare),
            Route("/events/{name}", self._events),
        ]

    def _watched(self, name: str) -> Watched:
        folder = self.watching.find(name)
        if folder is None:
            raise HTTPException(404, "There is no such study.")
        return folder

    def _front(self, request: Request) -> Response:
        names = self.watching.names()
        if self.first is not None and self.first in names:
            return RedirectResponse(request.url_for("_study_page", name=self.first).path, 307)
        payload = {"kind": "list", "home": str(self.home.resolve()), "views": []}
        return _page("Studies - RankTune", payload)

    def _study_page(self, request: Request) -> Response:
        watched = self._watched(request.path_params["name"])
        payload = {"kind": "study", "name": watched.name, "study": study_json(watched.data()), "views": views_json()}
        return _page(f"{watched.name} - RankTune", payload)

    def _compare_page(self, request: Request) -> Response:
        payload = compared_json([watched.name for watched in self._compared(request)])
        return _page("Compare - RankTune", payload)

    def _compared(self, request: Request) -> list[Watched]:
        names = request.path_params["names"].split("/")
        if not 2 <= len(names) <= MAX_COMPARED:
            raise HTTPException(404, f"A comparison is of 2 to {MAX_COMPARED} studies.")
        return list(map(self._watched, names))

    def _studies(self, _: Request) -> Response:
        return _json_response(_json({"studies": listing(self.home)}))

    def _study(self, request: Request) -> Response:
        return _json_response(_json(study_json(self._watched(request.path_params["name"]).data())))

    def _view(self, request: Request) -> Response:
        key = request.path_params["key"]
        if key not in VIEWS:
            raise HTTPException(404, "There is no such view.")
        watched = self._watched(request.path_params["name"])
        body = watched.cached(key, lambda data: _json(view_json(key, data) | {"study": study_json(data)}))
        return _json_response(body)

    def _compare(self, request: Request) -> Response:
        studies = [watched.data() for watched in self._compared(request)]
        return _json_response(_json({"panels": panels_json(view_compare.panels(*studies))}))

    async def _events(self, request: Request) -> Response:
        watched = await asyncio.to_thread(self._watched, request.path_params["name"])
        if self.listeners >= MAX_LISTENERS:
            raise HTTPException(503, "Too many pages are open.")
        return _Listening(self, watched, request.query_params.get("view", ""))

    async def _changes(self, watched: Watched, view: str) -> AsyncIterator[str]:
        """Yield an event soon after each change; fewer where the view of the page is expensive."""
        known, sent, pinged = watched.signature(), 0.0, time.monotonic()
        yield "retry: 1000\n\n"
        while not self.closing():
            await asyncio.sleep(self.poll)
            now = time.monotonic()
            if now - sent >= watched.costs.get(view, 0.0) / MAX_SHARE and (fresh := watched.signature()) != known:
                known, sent, pinged = fresh, now, now
                yield "event: change\ndata: {}\n\n"
            elif now - pinged >= PING_SECONDS:
                pinged = now
                yield ": still here\n\n"


class _Listening(StreamingResponse):
    """The events of a study for one page, which counts among the listeners from when it is granted until it ends."""

    def __init__(self, site: Site, watched: Watched, view: str) -> None:
        headers = {"cache-control": "no-store", "x-accel-buffering": "no"}
        super().__init__(site._changes(watched, view), media_type="text/event-stream", headers=headers)
        self._site = site
        site.listeners += 1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._site.listeners -= 1


def make_app(
    home: Path,
    *,
    host: str = "127.0.0.1",
    token: str | None = None,
    first: str | None = None,
    closing: Callable[[], bool] = lambda: False,
) -> Guard:
    """Return the guarded application of the studies in home; closing returns whether open connections are to end."""
    site = Site(home, first, closing=closing)
    app = Starlette(routes=site.routes())
    app.add_exception_handler(RankTuneError, _unreadable)
    app.router.redirect_slashes = False
    hosts, any_address = allowed_hosts(host)
    policy = content_policy(scripts="'self'", styles="'self'", connect="'self'")
    return Guard(app, hosts, any_address, token, policy)


def _page(title: str, payload: Json) -> Response:
    style = f'<link rel="stylesheet" href="{_address("page.css")}">'
    plotly = f'<script id="plotly" src="{_address("plotly.min.js")}" async></script>'
    scripts = f'{plotly}\n<script type="module" src="{_address("page.js")}"></script>'
    text = filled(title=title, payload=payload_element(payload | {"mode": "live"}), style=style, scripts=scripts)
    return HTMLResponse(text, headers={"cache-control": "no-store"})


async def _unreadable(_: Request, error: Exception) -> Response:
    return PlainTextResponse(str(error), 500)


@cache
def _files() -> dict[str, tuple[bytes, str]]:
    """Return the content and the type of each file below /static."""
    return {
        "page.css": (static("page.css").encode(), "text/css"),
        "page.js": (static("page.js").encode(), "text/javascript"),
        "plotly.min.js": (plotly_js(), "text/javascript"),
    }


@cache
def _address(file: str) -> str:
    """Return the address of a file, with a hash of its content, so that browsers may cache it."""
    return f"/static/{file}?{sha256(_files()[file][0]).hexdigest()[:16]}"


def _static(request: Request) -> Response:
    content = _files().get(request.path_params["file"])
    if content is None:
        raise HTTPException(404, "There is no such file.")
    body, media = content
    return Response(body, media_type=media, headers={"cache-control": "private, max-age=31536000, immutable"})


def _json(value: object) -> bytes:
    return json.dumps(to_json(value), allow_nan=False, separators=(",", ":")).encode()


def _json_response(body: bytes) -> Response:
    return Response(body, media_type="application/json", headers={"cache-control": "no-store"})
