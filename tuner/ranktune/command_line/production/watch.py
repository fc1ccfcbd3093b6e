"""The command watch.

As in ranktune.command_line.app, modules that load libraries are imported inside the functions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranktune.arguments import DataArguments
from ranktune.command_line.messages import as_options
from ranktune.command_line.options import (
    Given,
    Home,
    Json,
    console,
    data_names,
    print_json,
    reading,
    study_names,
    takes_options,
)

commands = typer.Typer()

ALARM = 1
"""Exit code where the features or the metric have changed."""


@commands.command()
@takes_options(DataArguments)
def watch(
    given: Given,
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
    from ranktune.dashboards.terminal.drift import drift_table
    from ranktune.tuner.drift import watch

    found = watch(
        name, data, home=home, reference=reference, clicks=clicks or (), alarm=alarm, day=day, save=not no_save,
        **reading(given),
    ).as_dict()  # fmt: skip
    found["notes"] = [as_options(note, context.find_root().command) for note in found["notes"]]
    print_json(found) if as_json else console().print(drift_table(found))
    if found["alarm"]:
        raise typer.Exit(ALARM)
