"""The commands history and rollback.

As in ranktune.command_line.app, modules that load libraries are imported inside the functions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ranktune.command_line.options import Home, Json, StudyName, Wide, console, print_json, study_names

commands = typer.Typer()


@commands.command()
def history(
    name: StudyName,
    page: Annotated[Path | None, typer.Option("--page", help="Also write an HTML page to this file.")] = None,
    home: Home = None,
    as_json: Json = False,
    wide: Wide = False,
) -> None:
    """Show all versions of a study, and what changed."""
    from ranktune.dashboards.records.versions import history_of
    from ranktune.dashboards.terminal.history import changes, history_table
    from ranktune.tuner.study.home import home_folder

    found = history_of(home_folder(home), name)
    if page is not None:
        from ranktune.dashboards.web.history import write_history

        write_history(found, page)
    if as_json:
        print_json(found)
    else:
        console(wide).print(history_table(found))
        for line in changes(found):
            console(wide).print(line)


@commands.command()
def rollback(
    name: StudyName,
    version: Annotated[
        str, typer.Argument(help="The version; `ranktune history NAME` shows them.", autocompletion=study_names)
    ],
    home: Home = None,
) -> None:
    """Make the model of VERSION the current one again. Nothing is deleted."""
    from ranktune.tuner.retuning.versions import make_current, said
    from ranktune.tuner.study.home import home_folder

    where = home_folder(home)
    print(said(where, name, make_current(where, name, version)))
