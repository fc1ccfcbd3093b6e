"""The commands for studies: tune, run, resume, worker, list, show, report, dashboard.

As in ranktune.command_line.app, modules that load libraries are imported inside the functions.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ranktune.arguments import ReadArguments, ResumeArguments, RunArguments, ShowArguments, TuneArguments, WorkArguments
from ranktune.command_line.options import (
    Given,
    Home,
    Json,
    StudyName,
    Wide,
    console,
    exit_unless_better,
    print_json,
    reading,
    study_names,
    takes_options,
)
from ranktune.solvers.core.declared import declared

if TYPE_CHECKING:
    from ranktune.tuner.search.progress import Progress
    from ranktune.tuner.selection.results import Result

commands = typer.Typer()

_INCOMPLETE = (("stopped", "stopped early"), ("failed", "failed"))
"""How trials end without a full evaluation, by key and in words."""


@commands.command()
@takes_options(TuneArguments, ReadArguments, ShowArguments)
def tune(
    given: Given,
    read: Given,
    how: Given,
    *,
    join: Annotated[
        bool, typer.Option("--join", help="If another process runs the study of that name, run trials for it.")
    ] = False,
) -> None:
    """Tune the solvers on DATA, choose by validation, save a model. It is evaluated on the test queries.

    Without arguments it runs on api-search, an example made of the documentation of five packages.
    """
    from ranktune import api

    if given["costs"]:
        from ranktune.tuner.evaluation.feature_costs import read_costs

        given["costs"] = read_costs(given["costs"])
    if join and _worked_for(given, how["as_json"]):
        return
    _finish(api.tune, {**given, "reading": reading(read)}, how, lambda: given["baseline"])


@commands.command()
@takes_options(RunArguments, ShowArguments)
def run(given: Given, how: Given) -> None:
    """Run a study that a TOML file declares. The fields are those of `tune`: data, metric, trials and others."""
    from ranktune import api

    def baseline() -> object:
        from ranktune.tuner.study.declaration import Study

        return Study.from_toml(given["study"]).baseline

    _finish(api.run, given, how, baseline)


@commands.command()
@takes_options(ResumeArguments, ShowArguments)
def resume(given: Given, how: Given) -> None:
    """Continue a study, or give a finished one more trials."""
    from ranktune import api

    def baseline() -> object:
        from ranktune.tuner.study.home import find_folder, home_folder

        return find_folder(home_folder(given["home"]), given["name"]).study().baseline

    _finish(api.resume, given, how, baseline)


@commands.command()
@takes_options(WorkArguments)
def worker(given: Given) -> None:
    """Run trials for a study of another process, here or elsewhere.

    On one host:  ranktune tune train.txt --name N --storage postgresql://host/runs --artifacts /shared/runs

    On others:    ranktune worker --name N --storage postgresql://host/runs --jobs 8
    """
    from ranktune import api

    with watched(as_json=True) as progress:
        done = api.work(**given, progress=progress)
    print(f"{done} trials of study '{given['name']}' were run here.", file=sys.stderr)


@commands.command("list")
def list_studies(home: Home = None, as_json: Json = False, wide: Wide = False) -> None:
    """List the studies in the home folder."""
    from ranktune.dashboards.terminal.listing import listing, listing_table
    from ranktune.tuner.study.home import home_folder

    where = home_folder(home)
    studies = listing(where)
    if as_json:
        print_json({"home": str(where), "studies": studies})
    elif studies:
        console(wide).print(listing_table(studies))
    else:
        print(f"No studies in {where} yet. `ranktune tune` creates one.")


@commands.command()
def show(
    name: StudyName,
    home: Home = None,
    as_json: Json = False,
    wide: Wide = False,
) -> None:
    """Show the result of a study, or the state of an unfinished one."""
    from ranktune.dashboards.terminal.listing import counted, state
    from ranktune.tuner.selection.results import load_result
    from ranktune.tuner.study.home import find_folder, home_folder

    folder = find_folder(home_folder(home), name)
    if folder.has_result:
        _show(load_result(folder.result), as_json, wide)
        if folder.held():
            print(f"It is being continued: `ranktune dashboard {name}` shows it live.", file=sys.stderr)
        return
    progress = state(folder.path)
    if as_json:
        print_json(progress)
    else:
        best = "" if progress["best"] is None else f", best {progress['metric']} {progress['best']:.4f} by validation"
        ended = "".join(f", {progress[how]} {text}" for how, text in _INCOMPLETE if progress[how])
        next_step = f"`ranktune resume {name}` continues it"
        if progress["state"] == "running":
            next_step = f"It is running: `ranktune dashboard {name}` shows it live"
        print(f"{name}: {counted(progress)} trials{ended}{best}. {next_step}.")
        if progress["damage"]:
            print(f"warning: {progress['damage']}", file=sys.stderr)


@commands.command()
def report(
    name: StudyName,
    beside: Annotated[
        list[str] | None, typer.Argument(help="Studies to show beside it.", autocompletion=study_names)
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="File to write. (default: report.html, of several comparison.html, in the study's folder)",
        ),
    ] = None,
    home: Home = None,
) -> None:
    """Write the pages of a study, or of several, into one HTML file.

    The file needs no network. Several studies are on one page side by side.
    """
    from ranktune.command_line.pages import write

    print(write(name, home, output, *(beside or ())))


@commands.command()
def dashboard(
    name: Annotated[
        str | None,
        typer.Argument(help="The study to show first. (default: a list of all)", autocompletion=study_names),
    ] = None,
    home: Home = None,
    host: Annotated[str, typer.Option(help="Address to listen on; beyond this machine, requests need a token.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="Port to listen on; 0 for any free one.", min=0, max=65535)] = 8765,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="RANKTUNE_TOKEN",
            help="Token that requests need; others on this machine can see an argument. (default: created if needed)",
        ),
    ] = None,
    token_file: Annotated[Path | None, typer.Option(help="File with the token.")] = None,
) -> None:
    """Serve the pages of all studies, live, until interrupted."""
    from ranktune.command_line.pages import Serving, given_token, serve
    from ranktune.tuner.study.home import home_folder

    def on_ready(address: str) -> None:
        print(f"Open {address}   (Ctrl-C stops)", flush=True)

    serve(Serving(home_folder(home), name, host, port, given_token(token, token_file)), on_ready)


def _worked_for(given: Given, as_json: bool) -> bool:
    """Run trials for a study that another process runs, and show its result; return False if none runs it."""
    from ranktune import api
    from ranktune.solvers.core.errors import ParameterError
    from ranktune.tuner.selection.results import load_result
    from ranktune.tuner.study.home import StudyFolder, home_folder

    if not given["name"]:
        raise ParameterError("--join joins a study by its name. Give --name too.")
    folder = StudyFolder(home_folder(given["home"]) / given["name"])
    if not folder.held():
        return False
    with watched(as_json=True) as progress:
        api.work(
            **{option.name: given[option.name] for option in declared(WorkArguments) if option.name in given},
            progress=progress,
        )
    if folder.has_result:
        _show(load_result(folder.result), as_json)
    return True


@contextmanager
def watched(as_json: bool, verbose: bool = False) -> Iterator[Progress]:
    """Yield a progress display; an interrupt prints how to continue and exits with code 130."""
    from ranktune.terminal import Lines, Verbose, watcher

    try:
        yield Verbose() if verbose else Lines() if as_json else watcher()
    except KeyboardInterrupt as error:
        from ranktune.tuner.workers.interrupts import ignore_more

        ignore_more()
        print(str(error) or "Interrupted.", file=sys.stderr)
        raise typer.Exit(130) from None


def _show(result: Given, as_json: bool, wide: bool = False) -> None:
    if as_json:
        print_json(result)
        return
    from ranktune.dashboards.terminal.leaderboard import report

    console(wide).print(report(result))


def _finish(study: Callable[..., Result], given: Given, how: Given, baseline: Callable[[], object]) -> None:
    """Run a study, print its result, write its report; end with an exit code if it must be better and is not."""
    from ranktune.command_line.pages import write
    from ranktune.solvers.core.errors import or_left_out

    if how["fail_unless_better"] and baseline() is None:
        raise typer.BadParameter(
            "needs a baseline (--baseline, or baseline in the study).", param_hint="--fail-unless-better"
        )
    with watched(how["as_json"], how["verbose"]) as progress:
        result = study(**given, progress=progress)
    folder = Path(result.folder)
    saved = f"The study is finished and saved; `ranktune show {folder.name} --json` prints it."
    or_left_out("the table of results", lambda: _show(result.as_dict(), how["as_json"]), None, saved, raised=())
    remedy = f"The study is finished and saved; `ranktune report {folder.name}` tries again."
    written = partial(write, folder.name, folder.parent, None, brief=True)
    if report := or_left_out("the report", written, None, remedy, raised=()):
        print(f"Report: {report}", file=sys.stderr)
    if how["fail_unless_better"]:
        exit_unless_better([None] if result.gain is None else [result.gain.comparison.low])
