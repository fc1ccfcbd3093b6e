"""What the commands data and solvers compute, and their tables."""

from __future__ import annotations

import inspect
import re
from collections.abc import Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Unpack

from rich.console import Group, RenderableType
from rich.text import Text

from ranktune.dashboards.terminal.tables import FittedTable, table, titled
from ranktune.solvers.abilities import TREES
from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import DataError, listed
from ranktune.solvers.core.space import Choice, Parameter, conditions
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.data.columns.decisions import COLUMN, NUMBER, by_option
from ranktune.solvers.data.columns.roles import WantedRoles
from ranktune.solvers.data.disk.stored import is_stored, read_queries
from ranktune.solvers.data.grades import check_learnable
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.readers.parsing.options import ReadOptions
from ranktune.solvers.data.sources import catalogue
from ranktune.solvers.data.sources.inspection import Suspect, column_report, suspects
from ranktune.solvers.data.sources.summary import summarise
from ranktune.solvers.registry import NAMES, STANDARD, custom_names, loadable, solver_class
from ranktune.tuner.selection.rows import of_log

if TYPE_CHECKING:
    from ranktune.solvers.base.ranker import BaseRanker

MOST_PLAIN_FEATURES = 20
"""Feature columns without a note that a description lists."""
_OF_GRADES = {"grade", "grades", "relevant"}
_MAIN_FACTS = ("queries", "documents", "features", "grades", "sparsity", "queries_without_relevant")


def evaluation_table(evaluation: Json) -> RenderableType:
    """Return an evaluation as a table, with others of its comparison with another ranking and of clicks."""
    if "clicks" in evaluation:
        others = {name: value for name, value in evaluation.items() if name != "clicks"}
        return Group(
            evaluation_table(others), titled("Clicks a search, by session", _clicks_table(evaluation["clicks"]))
        )
    what = f"{evaluation['data']}, {evaluation['queries']} queries"
    means = _means_table(evaluation["metrics"], evaluation.get("judged"))
    if "against" not in evaluation:
        return titled(f"{evaluation['model']} on {what}", means)
    other = evaluation["against"]
    return Group(
        titled(f"A: {evaluation['model']} on {what}", means),
        titled(f"B: {other['model']}", _means_table(other["metrics"])),
        titled("A against B, query by query", _paired_table(other["comparisons"])),
    )


def _means_table(metrics: Json, judged: Json | None = None) -> RenderableType:
    means = table(("metric",), ("mean", "95% interval", "queries skipped"))
    for name, metric in metrics.items():
        mean = "-" if metric["mean"] is None else f"{metric['mean']:.4f}"
        interval = "-" if metric["mean"] is None else f"{metric['interval'][0]:.4f} to {metric['interval'][1]:.4f}"
        means.add_row(name, mean, interval, str(metric["skipped"]))
    if judged is not None:
        means.caption = (
            "Judged and not ranked: {outside} of {documents} documents, {queries_outside} of {queries} queries.\n"
            "The pool of trec_eval's metrics, as ndcg_cut_10, has them too, that of others the documents of DATA alone."
        ).format(**judged)
    return means


def _clicks_table(clicks: Json) -> RenderableType:
    rows = table(("metric", "of"), ("clicks a search", "95% interval"))
    names = {"model": "A", "against": "B", "difference": "A - B"} if "against" in clicks else {"model": "the model"}
    for name in clicks["model"]:
        for kind, title in names.items():
            value, interval = clicks[kind][name].values()
            limits = "-" if interval is None else f"{interval[0]:.4f} to {interval[1]:.4f}"
            rows.add_row(name, title, f"{value:.4f}", limits)
    rows.caption = of_log(clicks["log"], "dr")
    return rows


def _paired_table(comparisons: Json) -> RenderableType:
    rows = table(("metric",), ("A - B", "95% interval", "p", "A wins", "ties", "B wins"))
    for name, compared in comparisons.items():
        counts = [str(compared[count]) for count in ("wins", "ties", "losses")]
        if compared["difference"] is None:
            rows.add_row(name, "-", "-", "-", *counts)
            continue
        low, high = compared["interval"]
        p = f"{compared['p_randomisation']:.4f}"
        rows.add_row(name, f"{compared['difference']:+.4f}", f"{low:+.4f} to {high:+.4f}", p, *counts)
    rows.caption = "p: two-sided, of a paired randomisation test"
    return rows


def conversion_facts(queries: Queries, data: str, output: Path) -> Json:
    """Return what a folder of converted data holds."""
    return {
        "data": data,
        "output": str(output),
        "queries": queries.n_queries,
        "documents": queries.n_documents,
        "features": queries.n_features,
        "layout": "sparse" if queries.is_sparse else "dense",
        "dtype": queries.features.dtype.name,
        "megabytes": round(sum(path.stat().st_size for path in output.iterdir()) / 1e6),
    }


def check_converted(data: str) -> str:
    """Return a sentence about a folder of converted data whose content is what was written, or raise DataError."""
    folder = Path(data)
    if not is_stored(folder):
        raise DataError(
            f"{data}: is not a converted folder, so there is nothing to compare. Run `ranktune data --output`."
        )
    queries = read_queries(folder, check=True)
    return f"{data}: {queries.n_documents:,} documents are what was written."


BELOW_ZERO = (
    "Metrics with gains, such as ndcg@10 by which `tune` chooses, need grades of at least 0: add a constant to all of "
    "them, or choose another metric (--metric pairwise)."
)
"""What grades below 0 mean for tuning."""


def describe(data: str, **reading: Unpack[ReadOptions]) -> Json:
    """Return a description of each part of data, of the columns of a table, and of the features that look wrong.

    What is to be decided about the columns is with it, and is taken by the likeliest answers; of grades that have none
    nothing is said. A folder of folds has parts: each fold's train, vali and test.
    """
    table = catalogue.open_table(data, WantedRoles.of(reading))
    described: Json = {"data": data}
    listed: Sequence[Suspect] = ()
    answers = reading
    if table is not None:
        described["decisions"], answers = catalogue.decisions_of(table, reading)
    try:
        splits = catalogue.load(data if table is None else table, **answers)
        listed = suspects(splits[0].train)
        described |= _parts(splits)
        asked = by_option(described.get("decisions", ()))
        if COLUMN in asked.get("grade", ()) or NUMBER in str(asked.get("grades")):
            facts = [key for key in described["parts"][0] if not _OF_GRADES & {*key.split("_")}]
            described["parts"] = [{key: part[key] for key in facts} for part in described["parts"]]
            described.pop("remarks", None)
    except DataError as error:
        if table is None:
            raise
        if answers.get("qid") != COLUMN:
            described["error"] = str(error)
    with suppress(DataError):  # not even the columns are clear
        described |= {} if table is None else {"columns": column_report(table, reading, listed)}
    described["suspects"] = [{"feature": row.name, "kind": row.kind, "reason": row.reason} for row in listed]
    return described


def _parts(splits: Sequence[QuerySplit]) -> Json:
    """Return a description of each part of splits, and remarks on all of them."""
    parts = []
    for split in splits:
        for part in ("train", "vali", "test"):
            queries = getattr(split, part)
            if queries is not None:
                name = " ".join(filter(None, (split.name if split.vali or split.test else "", part)))
                parts.append({"part": name} | summarise(queries))
    described: Json = {"parts": parts if len(parts) > 1 else [parts[0] | {"part": "all"}]}
    every = [part for split in splits for part in (split.train, split.vali, split.test) if part is not None]
    lowest = min(float(part.grades.min()) for part in every)
    if lowest < 0.0:
        described["remarks"] = [f"The lowest grade is {lowest:g}. {BELOW_ZERO}"]
    try:
        check_learnable(splits[0].train, "the queries")
    except DataError as error:
        described["remarks"] = [*described.get("remarks", ()), f"For a ranker {error}"]
    return described


def data_table(described: Json) -> RenderableType:
    """Return a description as tables: one column per part, or one row per part if there are many; and the columns."""
    shown: list[RenderableType] = []
    if "parts" in described:
        shown.append(titled(described["data"], _parts_table(described["parts"])))
    if "columns" in described:
        shown.append(_columns_table(described["columns"]))
    else:  # numbered features
        shown += [Text(f"feature {row['feature']} {row['reason']}") for row in described["suspects"]]
    shown += [Text(remark) for remark in described.get("remarks", ())]
    return Group(*shown)


def _parts_table(parts: Sequence[Json]) -> RenderableType:
    if len(parts) > 3:
        facts = {key.replace("_", " "): [_cell(part[key]) for part in parts] for key in _MAIN_FACTS}
        optional = ("queries without relevant", "grades", "sparsity")
        return FittedTable({"part": [part["part"] for part in parts]}, facts, optional)
    rows = table(("",), tuple(part["part"] for part in parts))
    rows.columns[0].no_wrap = True
    for column in rows.columns[1:]:  # long cells, such as the counts of the grades
        column.no_wrap, column.overflow = False, "fold"
    for key in (name for name in parts[0] if name != "part"):
        rows.add_row(key.replace("_", " "), *(_cell(part[key]) for part in parts))
    return rows


HOW_TO_CHANGE = "Options that change it: --qid, --grade, --document, --weight, --time COLUMN; --features, --drop NAMES."


def _columns_table(columns: Sequence[Json]) -> RenderableType:
    """Return how columns are taken: those that are not features, then features with a note; others by number."""
    rows = table(("column", "type", "taken as", "note"))
    plain = [column for column in columns if column["taken_as"] == "feature" and not column["note"]]
    special = [column for column in columns if column not in plain]
    for column in (*special, *plain[:MOST_PLAIN_FEATURES]):
        rows.add_row(*(column[key] for key in ("column", "type", "taken_as", "note")))
    if len(plain) > MOST_PLAIN_FEATURES:
        rows.add_row(f"... and {len(plain) - MOST_PLAIN_FEATURES} more", "", "feature", "")
    return Group(titled("Columns", rows), Text(HOW_TO_CHANGE))


def _cell(value: object) -> str:
    match value:
        case dict():
            return ", ".join(f"{name}: {count:,}" for name, count in value.items())
        case list():
            return listed(value, 8) or "none"
        case float():
            return f"{value:.4g}"
        case int():
            return f"{value:,}"
    return str(value)


def all_solvers() -> list[Json]:
    """Return what is listed of every solver whose library can be loaded; a warning names the others."""
    return [
        {
            "name": name,
            "summary": " ".join(_documentation(solver).split("\n\n")[0].split()).rstrip("."),
            "model": _kind(solver),
            "online": solver.online,
            "standard": name in STANDARD,
            "parameters": [parameter.name for parameter in solver.space],
        }
        for name, solver in ((name, solver_class(name)) for name in (*loadable(NAMES), *custom_names()))
    ]


def _kind(solver: type[BaseRanker]) -> str:
    """Return the kind of a solver's models."""
    if solver.__name__ not in NAMES:
        return "your own"
    return "trees" if TREES in solver.model_parts({}) else "linear"


def solvers_table(solvers: list[Json]) -> RenderableType:
    """Return the solvers as a table, a row each."""
    rows = table(("solver", "what it is", "model"), ("tuned",))
    for row in solvers:
        marks = ("*" if row["standard"] else "") + (" o" if row["online"] else "")
        rows.add_row(
            f"{row['name']} {marks}".rstrip(),
            row["summary"],
            row["model"],
            str(len(row["parameters"])),
        )
    rows.caption = "* competes by default, others if named; o learns online (--plan progressive)"
    return titled("Solvers", rows)


def solver_page(name: str) -> RenderableType:
    """Return the documentation of one solver, and the range in which each parameter is tuned."""
    solver = solver_class(name)
    ranges = table(("parameter", "range", "first", "only if"))
    for parameter in solver.space:
        when = "; ".join(f"{need.name}: {', '.join(map(str, need.values))}" for need in conditions(parameter))
        ranges.add_row(parameter.name, _range(parameter), str(parameter.default), when)
    return Group(Text(f"{solver.__name__}: {as_text(_documentation(solver))}"), "", ranges)


def as_text(docstring: str, width: int = 80) -> str:
    """Return a numpydoc docstring as a page of text: without examples, sections in capitals, prose wrapped."""
    without_examples = re.sub(r"^Examples\n-+\n.*?(?=^\w[^\n]*\n---|\Z)", "", docstring, flags=re.S | re.M)
    page = re.sub(r"^(\w.*)\n-{3,}$", lambda title: title[1].upper(), without_examples, flags=re.M).strip()
    lines: list[str] = []
    for margin, block in groupby(page.splitlines(), _prose_margin):
        if margin is None:
            lines += block
        else:
            lines += wrap(" ".join(" ".join(block).split()), width, initial_indent=margin, subsequent_indent=margin)
    return "\n".join(lines)


def _prose_margin(line: str) -> str | None:
    """Return the indentation of a line of prose, None of a title, a parameter, a formula or a blank line."""
    text = line.strip()
    is_prose = text and not text.isupper() and " : " not in text and "  " not in text
    return line[: len(line) - len(line.lstrip())] if is_prose else None


def _documentation(solver: type[BaseRanker]) -> str:
    """Return the docstring of a solver, which may begin with its name, without the marks of code."""
    return (inspect.getdoc(solver) or "").removeprefix(f"{solver.__name__}: ").replace("``", "")


def _range(parameter: Parameter) -> str:
    if isinstance(parameter, Choice):
        return ", ".join(str(choice) for choice in parameter.choices)
    return f"{parameter.low:g} to {parameter.high:g}{', logarithmic' if parameter.log else ''}"
