"""The commands for models in production: watch, and retune, which shows the versions of a study too, and goes back.

As in ranktune.command_line.app, modules that load libraries are imported inside the functions.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktune.arguments import DataArguments
from ranktune.command_line.messages import as_options
from ranktune.command_line.options import (
    Given,
    Home,
    Json,
    Wide,
    check_alone,
    console,
    data_names,
    print_json,
    reading,
    study_names,
    takes_options,
)
from ranktune.command_line.production.arguments import VersionArguments
from ranktune.command_line.study_commands import watched

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ranktune.solvers.core.arrays import JsonView


commands = typer.Typer()

ALARM = 1
"""Exit code where the features or the metric have changed."""
EXIT_CODES = {"keep": 0, "refit": 10, "replace": 11}
"""Exit code by decision, for schedulers."""
HELP = """Tune study NAME on new DATA; keep, refit or replace its model.

A new version NAME@DATE has the settings of the study and a tenth of its budget. What the latest version learnt is
evidence, as far as its configurations rank alike on both data. Without a significant gain the current model is kept.

\b
exit code 0    keep: the current model stays as it is
exit code 10   refit: its configuration, fitted to the new data, is better
exit code 11   replace: another configuration, or a blend, is better

\b
`ranktune export NAME`, evaluate, predict, explain, ship and watch take the
current model of a study by its name.

\b
ranktune retune NAME --history            show all versions, and what changed
ranktune retune NAME --rollback VERSION   make its model the current one again
"""
WAYS = {
    "--history": {"name", "home", "history", "as_json", "wide", "table_format", "page"},
    "--rollback": {"name", "home", "rollback"},
}
"""What --history and --rollback take."""


@commands.command()
@takes_options(DataArguments)
def watch(
    shared: Given,
    *,
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="The study; `ranktune show` shows them.", autocompletion=study_names)],
    data: Annotated[str, typer.Argument(help="The new data, grades may be missing.", autocompletion=data_names)],
    reference: Annotated[
        str | None,
        typer.Option(help="The training data, for a study of an older release.", autocompletion=data_names),
    ] = None,
    clicks: Annotated[
        list[Path] | None,
        typer.Option(help="Click log of the new data, for a study whose metric is of clicks. Repeatable."),
    ] = None,
    alarm: Annotated[float, typer.Option(help="Share of days with an alarm where nothing changes.")] = 0.05,
    day: Annotated[str | None, typer.Option(help="Day of the data, such as 2026-11-28. (default: today)")] = None,
    no_save: Annotated[bool, typer.Option("--no-save", help="Do not keep the result for the pages of the study.")] = (
        False
    ),
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Compare new DATA with those of a study: features and metric.

    Exit code 0: no alarm; 1: the features or the metric have changed. Where nothing has, one day in twenty is an alarm
    (--alarm 0.05). The columns are those of the study. The result is kept, and the page Drift of the report shows it.

    Example:  ranktune watch shop today.csv
    """
    from ranktune.dashboards.terminal.reports import drift_table
    from ranktune.tuner.drift import watch

    found = watch(
        name, data, home=home, reference=reference, clicks=clicks or (), alarm=alarm, day=day, save=not no_save,
        **reading(shared),
    ).as_dict()  # fmt: skip
    found["notes"] = [as_options(note, context.find_root().command) for note in found["notes"]]
    print_json(found) if as_json else console().print(drift_table(found))
    if found["alarm"]:
        raise typer.Exit(ALARM)


@commands.command(help=HELP)
@takes_options(VersionArguments)
def retune(
    shared: Given,
    *,
    context: typer.Context,
    history: Annotated[bool, typer.Option("--history", help="Show all versions of the study.")] = False,
    page: Annotated[Path | None, typer.Option(help="With --history: also write an HTML page to this file.")] = None,
    rollback: Annotated[
        str | None,
        typer.Option(
            help="Make the model of this version the current one again. Nothing is deleted.",
            metavar="VERSION",
            autocompletion=study_names,
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print every event of events.jsonl.")] = False,
    as_json: Json = False,
    wide: Wide = False,
) -> None:
    """See HELP."""
    if history or rollback is not None:
        way = "--history" if history else "--rollback"
        check_alone(context, way, WAYS[way])
        _show_versions(shared, page, as_json, wide) if history else _roll_back(shared, str(rollback))
        return
    if shared["data"] is None:
        raise typer.BadParameter(
            "is missing: give the new data, or --history or --rollback VERSION.", param_hint="data"
        )
    if page is not None:
        raise typer.BadParameter("needs --history.", param_hint="--page")
    from ranktune.daily import retuning

    ended = retuning.ended(*(shared[name] for name in ("name", "data", "vali", "test", "version", "home")))
    if ended is not None:
        typer.echo(f"{shared['version']} has ended before, on these data: its decision again", err=True)
    else:
        with watched(as_json, verbose) as progress:
            done = retuning.retune(**shared, progress=progress)
        about = {"study": done.result.study, "model": str(done.model), "current": done.current}
        ended = about | done.evidence, done.result.metric
    found, metric = ended
    if as_json:
        print_json(found)
        typer.echo(found["current"], err=True)
    else:
        console(wide).print(summary(found, metric))
    raise typer.Exit(EXIT_CODES[found["decision"]])


def _show_versions(shared: Given, page: Path | None, as_json: bool, wide: bool) -> None:
    """Print all versions of a study, and what changed."""
    from ranktune.dashboards.records.versions import history_of
    from ranktune.dashboards.terminal.reports import changes, history_table
    from ranktune.tuner.study.home import home_folder

    found = history_of(home_folder(shared["home"]), shared["name"])
    if page is not None:
        from ranktune.dashboards.web.one_view import write_history

        write_history(found, page)
    if as_json:
        print_json(found)
    else:
        for shown in (history_table(found), *changes(found)):
            console(wide).print(shown)


def _roll_back(shared: Given, version: str) -> None:
    """Make the model of a version the current one."""
    from ranktune.tuner.retuning.versions import make_current, sentence
    from ranktune.tuner.study.home import home_folder

    where = home_folder(shared["home"])
    print(sentence(where, shared["name"], make_current(where, shared["name"], version)))


def summary(found: JsonView, metric: str) -> RenderableType:
    """Return the decision with its evidence: a table of the contenders, and sentences."""
    from rich.console import Group

    from ranktune.dashboards.terminal.tables import table

    against = found["incumbent"]
    rows = table((f"against {against['study']}",), (metric, "gain", "95% interval", "p Holm", "queries"))
    for name, each in found["contenders"].items():
        if each["difference"] is None:
            rows.add_row(name, "-", "-", "-", "-", "0")
            continue
        low, high = each["interval"]
        rows.add_row(
            name, f"{each['mean_a']:.4f}", f"{each['difference']:+.4f}", f"{low:+.4f} to {high:+.4f}",
            f"{each['p_holm']:.4f}", str(each["queries"]),
        )  # fmt: skip
    return Group(rows, f"{_moved(found['movement'])}\n{_decided(found)}\n{found['current']}")


def _moved(movement: JsonView) -> str:
    count = f"{movement['configurations']} configurations were evaluated on both data"
    if movement["variance"] is None:
        return f"{count}. They do not rank alike, so that earlier trials were not used."
    noise = movement["variance"] ** 0.5
    return f"{count}: earlier trials counted with a shift of {movement['shift']:+.4f} and noise of {noise:.4f}."


def _decided(found: JsonView) -> str:
    seen = " 0 queries were left out, as it is not known which ones the current model was fitted to."
    if found["seen"] is not None:
        seen = f" {found['seen']} queries were left out because the current model was fitted to them, or to later ones."
    refit = "the configuration of the current model, fitted to the new data,"
    if found.get("continued_by"):
        refit = f"the current model, continued by {found['continued_by']} on the new data,"
    return {
        "keep": "Keep: nothing is significantly better than the current model.",
        "refit": f"Refit: {refit} is significantly better.",
        "replace": "Replace: the model that this study chose is significantly better.",
    }[found["decision"]] + seen
