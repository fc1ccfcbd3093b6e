"""The page as text: the one template of the live page and the report, with its data put in so that it stays data."""

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
from typing import Any

from ranktune.dashboards.records.study import StudyData, counts, study_state, trials_told
from ranktune.dashboards.views.registry import VIEWS, finite
from ranktune.solvers.core.errors import ParameterError

Json = dict[str, Any]

FOOT = "Made by RankTune. Intervals are 95 percent bootstrap intervals over queries."


def study_json(data: StudyData) -> Json:
    """Return what the head of a page says of a study."""
    stopped = counts(trial for _, trial in data.trials).stopped
    trials = f"{trials_told(data)} trials" + (f", {stopped} stopped early" if stopped else "")
    facts = [data.metric, trials, f"data: {data.study.data}"]
    if len(data.splits) > 1:
        facts.insert(2, f"{len(data.splits)} folds")
    return {
        "title": data.name,
        "name": data.name,
        "state": study_state(data),
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


def as_script(value: Any) -> str:
    """Return value as JSON that may stand within a script element: nothing in it can end the element."""
    text = json.dumps(finite(value), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def static(name: str) -> str:
    """Return one of our own files: page.html, page.css, page.js."""
    return (files("ranktune.dashboards.web") / "static" / name).read_text(encoding="utf-8")


@cache
def plotly_js() -> bytes:
    """Return plotly.min.js out of the installed plotly. Raises ParameterError that names the extra where it is not."""
    found = find_spec("plotly")  # without importing it: that takes most of a second
    places = [] if found is None else list(found.submodule_search_locations or [])
    for place in places:
        file = Path(place) / "package_data" / "plotly.min.js"
        if file.is_file():
            return file.read_bytes()
    raise ParameterError('pages draw with Plotly, which is not installed: pip install "ranktune[dashboard]".')


def content_policy(*, scripts: str, styles: str, connect: str) -> str:
    """Return the Content-Security-Policy of a page: these sources, what Plotly writes into style elements, no other.

    Plotly adds an empty style element that it fills by rules, one with the text of its maps, and style attributes; it
    evaluates no text.
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
    """Return how a policy names an inline script or style."""
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"
