"""The HTML page: one template for the live page and the report, with the data escaped."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from string import Template

from ranktune.dashboards.figures.panels import Panel, panels_json, to_json
from ranktune.dashboards.figures.plotly import COLOURS
from ranktune.dashboards.records.study import StudyData
from ranktune.dashboards.records.trial import counts
from ranktune.dashboards.views.registry import COMPARE
from ranktune.solvers.core.arrays import Json

MAX_COMPARED = 12
"""Studies on one page; a figure has as many colours."""
FOOT = "Made by RankTune. Intervals are 95 % bootstrap intervals over queries."


def study_json(data: StudyData) -> Json:
    """Return the title, the state and the facts of a study in the head of a page."""
    stopped = counts(data.trials).stopped
    trials = f"{data.progress} trial{'s' * (data.progress != '1')}" + (f", {stopped} stopped early" if stopped else "")
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


def compared_json(names: Sequence[str], panels: Sequence[Panel] | None = None) -> Json:
    """Return the payload of a page that compares the studies called names; None for panels that it fetches."""
    study = {"title": " and ".join(names), "facts": [f"{len(names)} studies compared"]}
    view: Json = {"key": "compare", "title": "Compare", "meaning": COMPARE.as_json()}
    view |= {} if panels is None else {"panels": panels_json(panels)}
    return {"kind": "compare", "names": list(names), "study": study, "views": [view]}


def filled(*, title: str, payload: str, style: str, scripts: str, policy: str = "") -> str:
    """Return the page with title and the given elements: payload with the data, style and scripts."""
    text = static("page.html")
    return Template(text).substitute(title=escape(title), payload=payload, style=style, scripts=scripts, policy=policy)


def payload_element(payload: Json) -> str:
    """Return the element that holds the data of a page."""
    return f'<script type="application/json" id="payload">{page_data(payload)}</script>'


def packed_element(name: str, text: str) -> str:
    """Return the element called name that holds a text, compressed: gzip in base64."""
    packed = b64encode(gzip.compress(text.encode(), mtime=0)).decode()
    return f'<script type="application/gzip" id="{name}">{packed}</script>'


def page_data(payload: Json) -> str:
    """Return the data of a page as JSON for a script element."""
    return as_script({"colours": COLOURS, "foot": FOOT, **payload})


def as_script(value: object) -> str:
    """Return value as JSON for a script element: nothing in it can end the element."""
    text = json.dumps(to_json(value), allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def static(name: str) -> str:
    """Return the text of a file of the page."""
    return (files("ranktune.dashboards.web") / "static" / name).read_text(encoding="utf-8")


def plotly_js() -> bytes:
    """Return Plotly's own bundle of the figures that pages have; the whole library is three times as large."""
    return static("plotly-cartesian.min.js").encode()


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
