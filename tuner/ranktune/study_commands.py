"""The commands that make and look at studies: tune, run, resume, list, show, report, dashboard.

As in ranktune.cli, heavy modules are imported inside the functions.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ranktune.arguments import ResumeArguments, RunArguments, TuneArguments, WorkArguments
from ranktune.options import (
    Home,
    Json,
    Missing,
    Verbose,
    ZeroBased,
    console,
    print_json,
    reading,
    takes_options,
)
from ranktune.tuner.study.settings import declared

if TYPE_CHECKING:
    from ranktune.tuner.selection.results import Result

commands = typer.Typer()

_ENDS = (("stopped", "stopped early"), ("failed", "failed"))
"""How trials end that are not judged in full, and how that is said."""


@commands.command()
@takes_options(TuneArguments)
def tune(
    given: dict[str, Any],
    *,
    join: Annotated[
        bool, typer.Option("--join", help="If another process runs the study of that name, run trials for it.")
    ] = False,
    missing: Missing = "error",
    zero_based: ZeroBased = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Tune the solvers on DATA, choose by validation, judge on test, save the model.

    Without arguments it runs on api-search, an example built from the documentation of the installed packages.
    """
    from ranktune import api

    if join and _worked_for(given, as_json):
        return
    with _watched(as_json, verbose) as progress:
        result = api.tune(**given, reading=reading(missing, zero_based), progress=progress)
    _finish(result, as_json)


@commands.command()
@takes_options(RunArguments)
def run(given: dict[str, Any], *, verbose: Verbose = False, as_json: Json = False) -> None:
    """Run a declared study: a TOML file with the fields of `tune` (data, metric, solvers, trials, space, ...)."""
    from ranktune import api

    with _watched(as_json, verbose) as progress:
        result = api.run(**given, progress=progress)
    _finish(result, as_json)


@commands.command()
@takes_options(ResumeArguments)
def resume(given: dict[str, Any], *, verbose: Verbose = False, as_json: Json = False) -> None:
    """Continue a study that was interrupted or killed, or give a finished one more trials."""
    from ranktune import api

    with _watched(as_json, verbose) as progress:
        result = api.resume(**given, progress=progress)
    _finish(result, as_json)


@commands.command()
@takes_options(WorkArguments)
def worker(given: dict[str, Any]) -> None:
    """Run trials for a study that another process runs, on this machine or on another one.

    On one host:  ranktune tune train.txt --name N --storage postgresql://host/runs --artifacts /shared/runs

    On others:    ranktune worker --name N --storage postgresql://host/runs --jobs 8
    """
    from ranktune import api

    with _watched(as_json=True) as progress:
        done = api.work(**given, progress=progress)
    print(f"{done} trials of study '{given['name']}' were run here.", file=sys.stderr)


@commands.command("list")
def list_studies(home: Home = None, as_json: Json = False) -> None:
    """List the studies in the home folder."""
    from ranktune.dashboards.terminal.listing import listing, listing_table
    from ranktune.tuner.study.home import default_home

    where = home or default_home()
    found = listing(where)
    if as_json:
        print_json({"home": str(where), "studies": found})
    elif found:
        console().print(listing_table(found))
    else:
        print(f"No studies in {where} yet. `ranktune tune` makes one.")


@commands.command()
def show(
    name: Annotated[str, typer.Argument(help="The study; `ranktune list` shows them.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show what a study found; of an unfinished one, how far it is."""
    from ranktune.dashboards.terminal.listing import state
    from ranktune.tuner.selection.results import load_result
    from ranktune.tuner.study.home import default_home, find_folder

    folder = find_folder(home or default_home(), name)
    if folder.result.exists():
        _show(load_result(folder.result), as_json)
        return
    found = state(folder.path)
    if as_json:
        print_json(found)
    else:
        best = "" if found["best"] is None else f", best {found['metric']} {found['best']:.4f} by validation"
        ended = "".join(f", {found[how]} {said}" for how, said in _ENDS if found[how])
        print(
            f"{name}: {found['done']} of {found['trials']} trials{ended}{best}. `ranktune resume {name}` finishes it."
        )


@commands.command()
def report(
    name: Annotated[str, typer.Argument(help="The study; `ranktune list` shows them.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. (default: report.html in the study's folder)")
    ] = None,
    home: Home = None,
) -> None:
    """Write a study's pages into one HTML file that opens anywhere, without a network."""
    from ranktune.pages import write

    print(write(name, home, output))


@commands.command()
def dashboard(
    name: Annotated[str | None, typer.Argument(help="The study to begin with. (default: a list of all)")] = None,
    home: Home = None,
    host: Annotated[str, typer.Option(help="Address to listen on; beyond this machine a token is asked for.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes one that is free.", min=0, max=65535)] = 8765,
    token: Annotated[
        str | None, typer.Option(help="Word that a browser has to bring. (default: made where needed)")
    ] = (None),
    optuna: Annotated[bool, typer.Option("--optuna", help="Serve optuna-dashboard of the study instead.")] = False,
) -> None:
    """Serve the pages of all studies, live, until interrupted."""
    from ranktune.pages import Serving, serve
    from ranktune.tuner.study.home import default_home

    def told(address: str) -> None:
        print(f"Open {address}   (Ctrl-C stops)", flush=True)

    serve(Serving(home or default_home(), name, host, port, token, optuna), told)


def _worked_for(given: dict[str, Any], as_json: bool) -> bool:
    """Run trials for a study that another process runs, and show what it found; False where none runs it."""
    from ranktune import api
    from ranktune.solvers.core.errors import ParameterError
    from ranktune.tuner.selection.results import load_result
    from ranktune.tuner.study.home import StudyFolder, default_home

    if not given["name"]:
        raise ParameterError("--join joins a study by its name. Give --name too.")
    folder = StudyFolder((given["home"] or default_home()) / given["name"])
    if not folder.held():
        return False
    with _watched(as_json=True) as progress:
        api.work(
            **{own.name: given[own.name] for own in declared(WorkArguments) if own.name in given}, progress=progress
        )
    if folder.result.exists():
        _show(load_result(folder.result), as_json)
    return True


@contextmanager
def _watched(as_json: bool, verbose: bool = False) -> Iterator[Any]:
    """Yield a progress display; an interrupt ends with a word on how to go on, and exit code 130."""
    from ranktune.terminal import Lines, Verbose, watcher

    try:
        yield Verbose() if verbose else Lines() if as_json else watcher()
    except KeyboardInterrupt as error:
        print(str(error) or "Interrupted.", file=sys.stderr)
        raise typer.Exit(130) from None


def _show(result: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(result)
        return
    from ranktune.dashboards.terminal.leaderboard import report

    console().print(report(result))


def _finish(result: Result, as_json: bool) -> None:
    """Print what a study found, and write its report where the extra for it is installed."""
    from importlib.util import find_spec

    from ranktune.solvers.core.errors import RankTuneError

    _show(result.as_dict(), as_json)
    if find_spec("plotly") is None:
        print('pip install "ranktune[dashboard]" for a report with pictures.', file=sys.stderr)
        return
    from ranktune.pages import write

    folder = Path(result.folder)
    try:
        print(f"Report: {write(folder.name, folder.parent, None)}", file=sys.stderr)
    except RankTuneError as error:  # the study itself is finished, and safe
        print(f"warning: no report was written: {error} `ranktune report {folder.name}` tries again.", file=sys.stderr)
