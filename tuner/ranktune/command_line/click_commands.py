"""The command clicks.

As in ranktune.command_line.app, modules that load libraries are imported inside the functions.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktune.arguments import TrainingTableArguments
from ranktune.command_line.options import Given, Json, console, print_json, takes_options, to_error
from ranktune.solvers.clicks.judging.models import DEFAULT, MODELS

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ranktune.solvers.clicks.counterfactual import ClickEstimate
    from ranktune.solvers.clicks.examination import Examination
    from ranktune.solvers.clicks.judging.judged import JudgedLog
    from ranktune.solvers.clicks.judging.later import ClickAgreement, LaterClicks

SHOWN = 14
"""Positions that the table has, at most about."""

commands = typer.Typer()

_ABOUT = """Turn a click log into judgments corrected for position.

LOG is one or more files of impressions with clicks, or of events: csv, Parquet, jsonl, User Behavior Insights. All
click models are fitted to the earlier sessions and compared by the clicks of the later ones. The chosen model is then
fitted to all sessions. `ranktune tune DATA --qrels judgments.csv` learns from its judgments.

\b
Models:
"""
_MODELS = "".join(f"  {name:<18}{row.help}\n" for name, row in MODELS.items())
_EXAMPLES = """
\b
Examples:
  ranktune clicks log.csv -o judgments.csv
  ranktune clicks events.ndjson.gz queries.ndjson.gz -o judgments.parquet \\
    --kind-weight add_to_cart=2 --kind-weight purchase=5
"""


HELP = f"{_ABOUT}{_MODELS}{_EXAMPLES}"


@commands.command("clicks", help=HELP)
@takes_options(TrainingTableArguments)
def clicks(
    shared: Given,
    *,
    logs: Annotated[list[str], typer.Argument(help="Files of a click log.", metavar="LOG...")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .csv or .parquet file to write.")],
    model: Annotated[str, typer.Option(help="One of the models above.", autocompletion=MODELS.completions())] = DEFAULT,
    propensities: Annotated[
        Path | None,
        typer.Option(help="csv or Parquet file with the columns position and propensity: examination that is known."),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option("--column", help="ROLE=NAME of a column, such as document=sku. Repeatable.", metavar="ROLE=NAME"),
    ] = None,
    weights: Annotated[
        list[str] | None,
        typer.Option(
            "--kind-weight", help="KIND=WEIGHT of events, beside a click of 1. Repeatable.", metavar="KIND=WEIGHT"
        ),
    ] = None,
    first_position: Annotated[
        int | None, typer.Option(help="Where positions begin: 0 or 1. (default: found in the log)")
    ] = None,
    qrels: Annotated[
        Path | None, typer.Option(help="File of judgments of people, with which those of all models are compared.")
    ] = None,
    report: Annotated[Path | None, typer.Option(help="HTML file for figures and tables of all this.")] = None,
    as_json: Json = False,
) -> None:
    """Judge the log; print what is known of it, or everything as JSON."""
    from ranktune.judging import clicks
    from ranktune.solvers.clicks.judgments import check_ending
    from ranktune.solvers.clicks.reading.roles import named_columns
    from ranktune.solvers.data.columns.grammar import number_of, values_by_name

    if report is not None:
        check_ending(report, "the report is", (".html", ".htm"))
    result = clicks(
        *logs,
        output=output,
        model=model,
        propensities=propensities,
        columns=named_columns(columns or (), "columns"),
        weights=values_by_name(weights or (), "weights={}: write KIND=WEIGHT, such as purchase=5.", number_of),
        first_position=first_position,
        qrels=qrels,
        **shared,
        progress=to_error,
    )
    if report is not None:
        from ranktune.dashboards.web.one_view import judged_html
        from ranktune.dashboards.web.page import write_page

        write_page(judged_html(result, output.name), report)
    if as_json:
        print_json({**result.as_dict(), "output": str(output)})
    else:
        console().print(summary(result, output))


def summary(result: JudgedLog, output: Path) -> RenderableType:
    """Return the tables of models, of agreement and of examination, the account, and the remarks."""
    from rich.console import Group
    from rich.text import Text

    agreed, at_one, unknown = result.pairs.values()
    pairs = f"{agreed:,} documents are known, {at_one:,} were seen at one position only, {unknown:,} are unknown"
    parts: list[RenderableType] = []
    if result.later is not None:
        parts += [_losses(result.later, result.model), ""]
    if result.agreement is not None:
        parts += [_agreement(result.agreement), ""]
    remarks = "\n".join(result.remarks)
    parts += [_examination(result.examination, result.model), "", Text(f"{result.account}\n\n{remarks}\n")]
    return Group(*parts, Text(f"{pairs}\njudgments by {result.model}: {output}"))


def _losses(later: LaterClicks, chosen: str) -> RenderableType:
    from ranktune.dashboards.terminal.tables import table, titled

    rows = table(("model",), ("log-loss", "95%", "behind", "95%"))
    for name, row in later.losses.items():
        behind = ("best", "") if name == later.best else (f"{row.behind:+.4f}", _to(row.behind_low, row.behind_high))
        mark = " *" if name == chosen else ""
        rows.add_row(f"{name}{mark}", f"{row.loss:.4f}", _to(row.low, row.high), *behind)
    for name in later.unfitted:
        rows.add_row(name, "-", "", "", "")
    ties = f"; not significantly worse: {', '.join(later.ties)}" if later.ties else ""
    rows.caption = f"best: {later.best}{ties}. * is chosen. behind: paired by session"
    title = f"Later clicks: {later.impressions:,} impressions of {later.sessions:,} sessions"
    return titled(title, rows)


def _agreement(agreed: ClickAgreement) -> RenderableType:
    from ranktune.dashboards.terminal.tables import table, titled

    def cells(mean: ClickEstimate) -> tuple[str, str]:
        return f"{mean.value:.4f}", _to(mean.low, mean.high)

    rows = table(("model",), ("NDCG@10", "95%", "Kendall", "95%"))
    for name, ndcg in agreed.ndcg.items():
        rows.add_row(name, *cells(ndcg), *cells(agreed.kendall[name]))
    return titled(f"Agreement with judgments of {agreed.pairs:,} documents of {agreed.queries:,} queries", rows)


def _examination(examined: Examination, model: str) -> RenderableType:
    """Return examination at the first positions, and at others that are further apart the lower they are."""
    import numpy as np

    from ranktune.dashboards.terminal.tables import table, titled

    n = len(examined.position)
    shown = np.unique(np.geomspace(1, n, SHOWN).round().astype(int)) - 1 if n > SHOWN else np.arange(n)
    rows = table(("position",), ("examination", "95%"))
    for k in shown.tolist():
        interval = (f"{examined.value[k]:.4f}", _to(float(examined.low[k]), float(examined.high[k])))
        rows.add_row(str(examined.position[k]), *(interval if examined.estimable[k] else (examined.status[k], "")))
    return titled(f"Examination by {model}, relative to the first position", rows)


def _to(low: float, high: float) -> str:
    return f"{low:.4f} to {high:.4f}"
