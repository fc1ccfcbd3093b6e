"""The commands for studies: tune, resume, show.

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

from ranktune.arguments import ReadArguments, ResumeArguments, ShowArguments, TuneArguments, WorkArguments
from ranktune.command_line.options import (
    FORM,
    Given,
    Home,
    Json,
    Wide,
    check_alone,
    console,
    exit_unless_better,
    on_command_line,
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
SHOWN = {"as_json", "wide", "table_format"}
"""What `show` takes in the terminal."""


@commands.command()
@takes_options(TuneArguments, ReadArguments, ShowArguments)
def tune(
    shared: Given,
    read: Given,
    how: Given,
    *,
    context: typer.Context,
    join: Annotated[
        bool,
        typer.Option("--join", help="If another process runs the study of that name, run trials for it."),
    ] = False,
) -> None:
    """Tune the solvers on DATA, choose by validation, save a model. It is evaluated on the test queries.

    Without arguments it runs on api-search, an example made of the documentation of five packages.

    In place of DATA a study file is taken, STUDY.toml. It has fields that are no options here: times between training
    and test, groups of queries, costs of features, search spaces and more (`ranktune docs reference/study_file`).
    Options take precedence over its fields.
    """
    from ranktune import api

    shared, options = {**shared, "reading": {}}, reading(read)
    if str(shared["data"]).endswith(".toml"):
        typed = {name: shared[name] for name in on_command_line(context) & shared.keys() - {"data"}}
        shared |= api.study_file(shared["data"]) | typed
    shared["reading"] = {**shared["reading"], **options}
    if join and _worked_for(shared, how["as_json"]):
        return
    _finish(api.tune, shared, how, lambda: shared.get("baseline"))


@commands.command()
@takes_options(ResumeArguments, ShowArguments)
def resume(
    shared: Given,
    how: Given,
    *,
    join: Annotated[
        bool,
        typer.Option("--join", help="Run trials for the process that runs the study, here or elsewhere."),
    ] = False,
    wait: Annotated[
        float,
        typer.Option(
            help="With --join: seconds without the study, or a trial, after which this process leaves.",
            min=0.0,
        ),
    ] = 600,
) -> None:
    """Continue a study, give it more trials, or join it.

    On one host:  ranktune tune train.txt --name N --storage postgresql://h/runs

    On others:    ranktune resume N --join --storage postgresql://h/runs
    """
    from ranktune import api
    from ranktune.tuner.study.home import find_folder, home_folder

    if join:
        done = _work(shared, wait)
        print(f"{done} trial{'s' * (done != 1)} of study '{shared['name']}' ran here.", file=sys.stderr)
    else:
        where = home_folder(shared["home"])
        _finish(api.resume, shared, how, lambda: find_folder(where, shared["name"]).study().baseline)


SHOW_HELP = """List the studies; show one here, in a file or in a browser.

\b
ranktune show                    all studies of the home folder
ranktune show NAME               the result of one, or how far it is
ranktune show NAME --page FILE   its pages in one file that needs no network
ranktune show A B --page FILE    studies side by side
ranktune show --live             the pages of all studies while they run
"""


@commands.command(help=SHOW_HELP)
def show(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="The study; several are shown on one page. (default: a list of all)",
            metavar="NAME",
            autocompletion=study_names,
        ),
    ] = None,
    home: Home = None,
    page: Annotated[
        Path | None, typer.Option(help="Write the pages of the study, or of several side by side, into this HTML file.")
    ] = None,
    live: Annotated[
        bool, typer.Option("--live", help="Serve the pages of all studies, live, until interrupted. NAME is first.")
    ] = False,
    host: Annotated[
        str,
        typer.Option(
            help="With --live: address to listen on; beyond this machine requests need a token (RANKTUNE_TOKEN)."
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="With --live: port to listen on; 0 for any free one.", min=0, max=65535)
    ] = 8765,
    as_json: Json = False,
    wide: Wide = False,
) -> None:
    """See SHOW_HELP."""
    from ranktune.command_line.pages import serve, write
    from ranktune.tuner.study.home import home_folder

    where = home_folder(home)
    if live:
        check_alone(context, "--live", {"names", "home", "live", "host", "port"})
        if names is not None and len(names) > 1:
            raise typer.BadParameter(f"one study is shown first: leave out {', '.join(names[1:])}.", param_hint="NAME")
        first = names[0] if names else None
        serve(where, first, lambda address: print(f"Open {address}   (Ctrl-C stops)", flush=True), host, port)
    elif not names:
        check_alone(context, "the list of all studies (without NAME)", {"home", *SHOWN})
        _list(where, as_json, wide)
    elif page is not None:
        check_alone(context, "--page", {"names", "home", "page", "as_json"})
        written = str(write(names[0], where, page, *names[1:]))
        print_json({"page": written}) if as_json else print(written)
    elif len(names) > 1:
        raise typer.BadParameter("several studies are shown on one page: add --page FILE.", param_hint="NAME")
    else:
        check_alone(context, "a study in the terminal (without --live)", {"names", "home", *SHOWN})
        _show_study(where, names[0], as_json, wide)


def _list(home: Path, as_json: bool, wide: bool) -> None:
    """Print the studies of a folder."""
    from ranktune.dashboards.terminal.listing import listing, listing_table

    studies = listing(home)
    if as_json:
        print_json({"home": str(home), "studies": studies})
    elif studies:
        console(wide).print(listing_table(studies))
    else:
        print(f"No studies in {home} yet. `ranktune tune` creates one.")


def _show_study(home: Path, name: str, as_json: bool, wide: bool = False) -> None:
    """Print the result of a study, or the state of an unfinished one."""
    from ranktune.dashboards.terminal.listing import counted, state
    from ranktune.tuner.selection.results import load_result
    from ranktune.tuner.study.home import find_folder

    folder = find_folder(home, name)
    if folder.has_result:
        _show(load_result(folder.result), as_json, wide)
        if folder.is_running():
            print(f"It is being continued: `ranktune show {name} --live` shows it live.", file=sys.stderr)
        return
    progress = state(folder.path)
    if as_json:
        print_json(progress)
    else:
        best = "" if progress["best"] is None else f", best {progress['metric']} {progress['best']:.4f} by validation"
        ended = "".join(f", {progress[how]} {text}" for how, text in _INCOMPLETE if progress[how])
        next_step = f"`ranktune resume {name}` continues it"
        if progress["state"] == "running":
            next_step = f"It is running: `ranktune show {name} --live` shows it live"
        print(f"{name}: {counted(progress)} trials{ended}{best}. {next_step}.")
        if progress["damage"]:
            print(f"warning: {progress['damage']}", file=sys.stderr)


def _worked_for(shared: Given, as_json: bool) -> bool:
    """Run trials for a study that another process runs, and show its result; return False if none runs it."""
    from ranktune.solvers.core.errors import ParameterError
    from ranktune.tuner.study.home import StudyFolder, home_folder

    if not shared["name"]:
        raise ParameterError("--join joins a study by its name. Give --name too.")
    folder = StudyFolder(home_folder(shared["home"]) / shared["name"])
    if not folder.is_running():
        return False
    _work(shared)
    _show_study(folder.path.parent, folder.path.name, as_json)
    return True


def _work(shared: Given, wait: float = 600.0) -> int:
    """Run trials for a study that another process runs, and return their number."""
    from ranktune import api

    fields = {option.name: shared[option.name] for option in declared(WorkArguments) if option.name in shared}
    with watched(as_json=True) as progress:
        return api.work(**fields, wait=wait, progress=progress)


@contextmanager
def watched(as_json: bool, verbose: bool = False) -> Iterator[Progress]:
    """Yield a progress display; an interrupt prints how to continue and exits with code 130."""
    from ranktune.terminal import LineProgress, Verbose, watcher

    try:
        yield Verbose() if verbose else LineProgress() if as_json else watcher()
    except KeyboardInterrupt as error:
        from ranktune.tuner.workers.interrupts import ignore_more

        ignore_more()
        print(str(error) or "Interrupted.", file=sys.stderr)
        raise typer.Exit(130) from None


def _show(result: Result, as_json: bool, wide: bool = False, *, answered: bool = False) -> None:
    if as_json:
        print_json(result.as_dict())
        return
    from ranktune.dashboards.terminal.leaderboard import report

    console(wide).print(report(result, answered=answered, details=wide, folds=not FORM))


def _finish(study: Callable[..., Result], shared: Given, how: Given, baseline: Callable[[], object]) -> None:
    """Run a study, print its result, write its report; end with an exit code if it must be better and is not."""
    from ranktune.command_line.pages import write
    from ranktune.solvers.core.errors import or_left_out

    if how["fail_unless_better"] and baseline() is None:
        raise typer.BadParameter(
            "needs a baseline (--baseline, or baseline in the study).", param_hint="--fail-unless-better"
        )
    with watched(how["as_json"], how["verbose"]) as progress:
        result = study(**shared, progress=progress)
    folder = Path(result.folder)
    saved = f"The study is finished and saved; `ranktune show {folder.name} --json` prints it."
    answered = sys.stdout.isatty() and sys.stderr.isatty()  # the answer stands above
    show = partial(_show, result, how["as_json"], answered=answered)
    or_left_out("the table of results", show, None, saved, raised=())
    remedy = f"The study is finished and saved; `ranktune show {folder.name} --page FILE` tries again."
    written = partial(write, folder.name, folder.parent, None, brief=True)
    if report := or_left_out("the report", written, None, remedy, raised=()):
        print(f"Report: {report}", file=sys.stderr)
    if how["fail_unless_better"]:
        exit_unless_better(None if result.gain is None else result.gain.as_dict())
