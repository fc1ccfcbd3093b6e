"""Pages of one view, each in one file: all versions of a study, and the report of a click log.

The report has the examination, the models on later clicks, the evidence by query, and what was left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ranktune.dashboards.figures import plotly as figures
from ranktune.dashboards.figures.kinds import Curves, Dots
from ranktune.dashboards.figures.panels import Frame, Panel, counted, joined
from ranktune.dashboards.web.page import one_view, write_page
from ranktune.solvers.clicks.examination import WIDEST
from ranktune.solvers.clicks.judging.judged import JudgedLog
from ranktune.solvers.clicks.judgments import UNKNOWN
from ranktune.solvers.core.arrays import JsonView

MAX_QUERIES = 2_000
"""Rows of the evidence by query."""


def write_history(found: JsonView, output: Path) -> Path:
    """Write the page of the versions, as history_of has them, and return its path."""
    metric, versions = found["metric"], found["versions"]
    meaning = (
        "Each version was judged on its own data. Means of different versions differ by how hard their queries are, "
        "too: the gain compares two models on the same queries."
    )
    rows = [
        [
            row["version"], row["current"], row["decision"] or row["state"], row["solver"], row["quality"],
            *(row["interval"] or (None, None)), row["gain"], len(row["features"]), row["queries"],
            "; ".join(row["changes"]),
        ]
        for row in versions
    ]  # fmt: skip
    columns = ("Version", "Current", "Decision", "Solver", metric, "Low", "High", "Gain", "Features", "Queries",
               "Changes")  # fmt: skip
    across = figures.axis("version", categories=figures.distinct((row[0] for row in rows), 36))
    kind = Curves("Version", (metric,), across, figures.axis(metric), ends=("Low", "High"))
    panel, foot = Panel("versions", "All versions", Frame(columns, rows), kind), "Made by RankTune. Intervals are 95 %."
    facts = [counted(len(rows), "version")]
    return write_page(one_view(found["study"], "history", "History", facts, meaning, [panel], foot), output)


def judged_html(log: JudgedLog, name: str) -> str:
    """Return the report of the judgments called name, in one file."""
    known, at_one, unknown = log.pairs.values()
    pairs = (f"{known:,} documents known", f"{at_one:,} seen at one position", f"{unknown:,} unknown")
    meaning = (
        "Clicks are corrected for how likely each position is looked at, relative to the first one. Later clicks show "
        "which model predicts best; that need not be the one that judges relevance best."
    )
    foot, facts = (
        "Made by RankTune. Intervals are 95 % intervals; those of losses are over sessions.",
        [f"judgments by {log.model}"],
    )
    return one_view(name, "clicks", "Judgments", [*facts, *pairs], meaning, list(_panels(log)), foot)


def _panels(log: JudgedLog) -> Iterator[Panel]:
    yield _examination(log)
    if log.later is not None:
        ties = f"Not significantly worse than {log.later.best}: {', '.join(log.later.ties)}." * bool(log.later.ties)
        note = f"{log.later.impressions:,} impressions of {log.later.sessions:,} sessions. Lower is better."
        rows = [(name, row.loss, row.low, row.high) for name, row in log.later.losses.items()]
        yield _by_model("losses", "Log-loss of later clicks", "nats an impression", rows, joined(note, ties))
    if log.agreement is not None:
        agreed = log.agreement
        note = f"{agreed.pairs:,} documents of {agreed.queries:,} queries that all models and people judge."
        for key, title, means in (("ndcg", "NDCG@10", agreed.ndcg), ("kendall", "Kendall's tau", agreed.kendall)):
            rows = [(name, mean.value, mean.low, mean.high) for name, mean in means.items()]
            yield _by_model(key, f"{title} by judgments of people", title, rows, note)
    yield _evidence(log)
    parts = {"used": log.account.used, "left out": log.account.left_out, "no event": log.account.other}
    lines = [[part, what, count] for part, counts in parts.items() for what, count in counts.most_common()]
    yield Panel("account", "What became of the lines of the log", Frame(("", "What", "Lines"), lines))
    yield Panel("remarks", "Remarks", Frame(("Remark",), [[remark] for remark in log.remarks]))


def _examination(log: JudgedLog) -> Panel:
    examined = log.examination
    known = (np.where(examined.estimable, each, np.nan) for each in (examined.value, examined.low, examined.high))
    note = (
        "How likely a position is looked at, relative to the first one. Not estimable apart: the ends of its interval "
        f"differ by more than a factor of {WIDEST:g}."
    )
    rows = list(zip(examined.position, *known, examined.status, strict=True))
    table = Frame(("Position", "Value", "Low", "High", "Status"), rows)
    kind = Curves(
        "Position", ("Value",), figures.axis("position"), figures.axis("examination", rangemode="tozero"),
        area=("95 %", "Low", "High"), markers=True,
    )  # fmt: skip
    return Panel("examination", "Examination by position", table, kind, note)


def _by_model(key: str, title: str, unit: str, rows: list[tuple[str, float, float, float]], note: str) -> Panel:
    """Return the panel of a value with its interval for each model."""
    table = Frame(("Model", "Value", "Low", "High"), rows)
    return Panel(key, title, table, Dots("Model", {title: ("Value", "Low", "High")}, unit, "model"), note)


def _evidence(log: JudgedLog) -> Panel:
    """Return what there is to know of each query, those of the most impressions."""
    judged = log.judgments
    names, query = np.unique(np.array(judged.query, dtype=object), return_inverse=True)
    graded = np.array(judged.status) != UNKNOWN
    sums = [np.bincount(query, each) for each in (np.ones(len(query)), graded, judged.impressions, judged.effective)]
    order = np.argsort(-sums[2], kind="stable")[:MAX_QUERIES]
    rows = [[str(names[k]), *(float(each[k]) for each in sums)] for k in order]
    columns = ("Query", "Documents", "With a grade", "Impressions", "Effective impressions")
    note = (
        "Effective: impressions at the first position that would tell as much. "
        f"{len(rows):,} of {len(names):,} queries, those of the most impressions."
    )
    return Panel("evidence", "Evidence by query", Frame(columns, rows), None, note)
