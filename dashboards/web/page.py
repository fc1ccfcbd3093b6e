"""The HTML page: one template for the live page and the report, with the data escaped."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from string import Template

from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.records.trial import counts
from ranktune.dashboards.views.registry import VIEWS, to_json
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import ParameterError

FOOT = "Made by RankTune. Intervals are 95 % bootstrap intervals over queries."


def study_json(data: StudyData) -> Json:
    """Return the title, the state and the facts of a study in the head of a page."""
    stopped = counts(data.trials).stopped
    trials = f"{data.progress} trials" + (f", {stopped} stopped early" if stopped else "")
    facts = [data.metric, trials, f"data: {data.study.data}"]
    if len(data.splits) > 1:
        facts.insert(2, f"{len(data.splits)} folds")
    return {
        "title": data.name,
        "name": data.name,
        "state": data.state,
        "done": len(data.trials),
        "total": 0 if data.study.timeout is not None else data.total,
        "facts": facts,
    }


def views_json() -> list[Json]:
    """Return the views' keys and titles, in their order."""
    return [{"key": view.key, "title": view.title} for view in VIEWS]


def filled(*, title: str, payload: Json, style: str, scripts: str, policy: str = "") -> str:
    """Return the page with title and payload as data, and the given style and script elements."""
    text = static("page.html")
    return Template(text).substitute(
        title=escape(title), payload=as_script(payload), style=style, scripts=scripts, policy=policy
    )


def as_script(value: object) -> str:
    """Return value as JSON for a script element: nothing in it can end the element."""
    text = json.dumps(to_json(value), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def static(name: str) -> str:
    """Return the text of page.html, page.css or page.js."""
    return (files("ranktune.dashboards.web") / "static" / name).read_text(encoding="utf-8")


@cache
def plotly_js() -> bytes:
    """Return plotly.min.js of the installed plotly. Raises ParameterError, which names the extra, without plotly."""
    found = find_spec("plotly")  # without importing it: that takes most of a second
    places = [] if found is None else list(found.submodule_search_locations or [])
    for place in places:
        file = Path(place) / "package_data" / "plotly.min.js"
        if file.is_file():
            return file.read_bytes()
    raise ParameterError('pages draw with Plotly, which is not installed: pip install "ranktune[dashboard]".')


def content_policy(*, scripts: str, styles: str, connect: str) -> str:
    """Return the Content-Security-Policy of a page: these sources and the style elements that Plotly adds.

    Plotly adds an empty style element, one with the text of its maps, and style attributes; it evaluates no text.
    """
    plotly = plotly_js().decode("utf-8")
    written = re.findall(r"""createElement\("style"\)[^'"]*;\w+\.id="\w+",\w+\.textContent='([^'\\]*)'""", plotly)
    allowed = " ".join(source_hash(text) for text in ("", *written))
    return (
        f"default-src 'none'; script-src {scripts}; style-src {styles} {allowed}; "
        f"style-src-attr 'unsafe-inline'; img-src data: blob:; "
        f"connect-src {connect}; base-uri 'none'; form-action 'none'"
    )


def source_hash(text: str) -> str:
    """Return the source of an inline script or style in a policy: its hash."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
