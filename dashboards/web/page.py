"""The HTML page: one template for the live page and the report, with the data escaped.

A report is a study in one HTML file, which needs no network and no server.
"""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from hashlib import sha256
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from ranktune.dashboards.figures.panels import Panel, joined, panels_json, to_json
from ranktune.dashboards.figures.plotly import COLOURS
from ranktune.dashboards.records.study import StudyData, open_study
from ranktune.dashboards.records.trial import counts
from ranktune.dashboards.views.registry import COMPARE, view_json, views_json
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import ParameterError, or_left_out, warn
from ranktune.solvers.core.files.atomic import atomic_write

MAX_COMPARED = 12
"""Studies on one page; a figure has as many colours."""
FOOT = "Made by RankTune. Intervals are 95 % bootstrap intervals over queries."


def study_json(data: StudyData) -> Json:
    """Return the title, the state and the facts of a study in the head of a page."""
    stopped, folds = counts(data.trials).stopped, len(data.splits)
    trials = f"{data.progress} trial{'s' * (data.progress.split()[-1] != '1')}"
    trials += f", {stopped} stopped early" * bool(stopped)
    facts = [data.metric, trials, *[f"{folds} folds"] * (folds > 1), f"data: {data.study.data}"]
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
    view: Json = {"key": "compare", "title": COMPARE.help, "question": COMPARE.question, "meaning": COMPARE.meaning}
    view |= {} if panels is None else {"panels": panels_json(panels)}
    return {"kind": "compare", "names": list(names), "study": study, "views": [view]}


def filled(*, title: str, payload: str, style: str, scripts: str, **more: str) -> str:
    """Return the page with title and the given elements: payload with the data, style, scripts; policy and plain."""
    elements = {"payload": payload, "style": style, "scripts": scripts, "policy": "", "plain": ""}
    return Template(static("page.html")).substitute(elements | more, title=escape(title))


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


def report_html(data: StudyData) -> str:
    """Return the report of a study: template, style, scripts and the panels of every view in one file."""
    views = [_filled(view, data) for view in views_json()]
    rows = views[0]["panels"][0]["table"].get("rows", ())
    plain = "".join(f"<p><b>{escape(str(what))}</b>: {escape(str(value))}</p>" for what, value in rows)
    return one_file(data.name, {"kind": "study", "study": study_json(data), "views": views}, plain)


def one_file(name: str, payload: Json, plain: str = "") -> str:
    """Return a page that needs no network and no server; payload is its kind, its head (study) and its views.

    plain is markup that is shown where scripts are switched off.
    """
    plotly, script, style = plotly_js().decode("utf-8"), static("page.js"), static("page.css")
    hashes = f"{source_hash(plotly)} {source_hash(script)}"
    policy = content_policy(scripts=hashes, styles=source_hash(style), connect="'none'")
    return filled(
        title=f"{name} - RankTune",
        payload=packed_element("payload", page_data({"mode": "report", "name": name, **payload})),
        style=f"<style>{style}</style>",
        scripts=f'{packed_element("plotly", plotly)}\n<script type="module">{script}</script>',
        policy=f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
        plain=plain,
    )


def one_view(
    name: str, kind: str, title: str, facts: Sequence[str], meaning: str, panels: Sequence[Panel], foot: str
) -> str:
    """Return a page of panels alone, in one file."""
    view = {"key": kind, "title": title, "meaning": {"text": meaning, "terms": []}, "panels": panels_json(panels)}
    head = {"title": name, "facts": facts, "state": None, "done": 0, "total": 0}
    return one_file(name, {"kind": kind, "study": head, "views": [view], "foot": foot})


def _filled(view: Json, data: StudyData) -> Json:
    """Return a view with its panels, or with a panel that gives the error."""
    absent = Panel("failed", str(view["title"]), note="This page failed and is left out.")
    what, instead = f"the page '{view['title']}' of the report", {"panels": panels_json([absent])}
    return view | or_left_out(
        what, lambda: view_json(str(view["key"]), data), instead, "The other pages are written.", raised=()
    )


def compared_html(studies: Sequence[StudyData]) -> str:
    """Return the report that shows studies side by side, in one file."""
    from ranktune.dashboards.views import compare

    names = [data.name for data in studies]
    return one_file(" and ".join(names), compared_json(names, compare.panels(*studies)))


def write_report(folder: Path, output: Path, *beside: Path, brief: bool = False) -> Path:
    """Write the report of the study in folder, or of several studies side by side, and return its path.

    brief leaves out what takes long to compute, and says how to get it.
    Raises StudyError where there is no study that can be read, ParameterError where output cannot be written or where
    there are too many studies.
    """
    if len(beside) >= MAX_COMPARED:
        raise ParameterError(
            f"a report is of at most {MAX_COMPARED} studies, not of {len(beside) + 1}. Leave some out."
        )
    studies = [open_study(each) for each in (folder, *beside)]
    if damage := joined(*(data.damage for data in studies)):
        warn(damage)
    return write_page(compared_html(studies) if beside else report_html(replace(*studies, brief=brief)), output)


def write_page(text: str, output: Path) -> Path:
    """Write a page and return its path. Raises ParameterError where it cannot be written."""
    try:
        atomic_write(output, text)  # by a draft of a random name, which follows no link
    except OSError as error:
        raise ParameterError(f"cannot write {output}: {error.strerror}. Give a file you may write to.") from None
    return output
