"""The report: a study in one HTML file, which needs no network and no server."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ranktune.dashboards.figures.panels import Panel, joined, panels_json
from ranktune.dashboards.records.study import StudyData, open_study
from ranktune.dashboards.views.registry import view_json, views_json
from ranktune.dashboards.web.page import (
    MAX_COMPARED,
    compared_json,
    content_policy,
    filled,
    packed_element,
    page_data,
    plotly_js,
    source_hash,
    static,
    study_json,
)
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning, or_left_out
from ranktune.solvers.core.files.atomic import atomic_write

REMEDY = "The other pages are written."
"""What a warning says of a page that fails."""


def report_html(data: StudyData) -> str:
    """Return the report of a study: template, style, scripts and the panels of every view in one file."""
    views = [_filled(view, data) for view in views_json()]
    return one_file(data.name, {"kind": "study", "study": study_json(data), "views": views})


def one_file(name: str, payload: Json) -> str:
    """Return a page that needs no network and no server; payload is its kind, its head (study) and its views."""
    plotly, script, style = plotly_js().decode("utf-8"), static("page.js"), static("page.css")
    hashes = f"{source_hash(plotly)} {source_hash(script)}"
    policy = content_policy(scripts=hashes, styles=source_hash(style), connect="'none'")
    return filled(
        title=f"{name} - RankTune",
        payload=packed_element("payload", page_data({"mode": "report", "name": name, **payload})),
        style=f"<style>{style}</style>",
        scripts=f'{packed_element("plotly", plotly)}\n<script type="module">{script}</script>',
        policy=f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n',
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
    return view | or_left_out(what, lambda: view_json(str(view["key"]), data), instead, REMEDY, raised=())


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
        warnings.warn(damage, RankTuneWarning, stacklevel=2)
    return write_page(compared_html(studies) if beside else report_html(replace(*studies, brief=brief)), output)


def write_page(text: str, output: Path) -> Path:
    """Write a page and return its path. Raises ParameterError where it cannot be written."""
    try:
        atomic_write(output, text)  # by a draft of a random name, which follows no link
    except OSError as error:
        raise ParameterError(f"cannot write {output}: {error.strerror}. Give a file you may write to.") from None
    return output
