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

from ranktune.options import (
    Address,
    Also,
    Artifacts,
    Executor,
    Extend,
    Home,
    Jobs,
    Json,
    Missing,
    Storage,
    TrialMemory,
    TrialTimeout,
    Verbose,
    ZeroBased,
    console,
    print_json,
    reading,
)

if TYPE_CHECKING:
    from ranktune.tuner.selection.results import Result

commands = typer.Typer()

_ENDS = (("stopped", "stopped early"), ("failed", "failed"))
"""How trials end that are not judged in full, and how that is said."""


@commands.command()
def tune(
    data: Annotated[
        str,
        typer.Argument(
            help="Training data: LETOR/SVMlight text (.gz, .bz2), csv, parquet, npz, a folder Fold1..Fold5."
        ),
    ] = "api-search",
    vali: Annotated[str | None, typer.Option(help="Validation data. (default: cross-validation by query)")] = None,
    test: Annotated[
        str | None, typer.Option(help="Test data, never used to choose; none for none. (default: a fifth set aside)")
    ] = None,
    metric: Annotated[
        str, typer.Option(help="What to maximise: ndcg@10, map, mrr, precision@5, ndcg@10:letor, ...")
    ] = "ndcg@10",
    also: Also = None,
    trials: Annotated[
        int | None,
        typer.Option(
            help="Configurations to try (for each fold of a folder). (default: 30, or by timeout or until)", min=1
        ),
    ] = None,
    timeout: Annotated[
        float | None, typer.Option(help="Seconds that everything may take, reading and learning again too.", min=0.001)
    ] = None,
    jobs: Jobs = None,
    trial_timeout: TrialTimeout = None,
    trial_memory: TrialMemory = None,
    executor: Executor = "processes",
    address: Address = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(help="A solver that competes, or all. Repeatable. (default: the standard ones)"),
    ] = None,
    sampler: Annotated[
        str, typer.Option(help="What suggests configurations: thompson, random, tpe, gp, skopt.")
    ] = "thompson",
    plan: Annotated[
        str,
        typer.Option(
            help="auto: cross-validation. split: keep to the given vali. nested: auto, judged by outer folds. "
            "progressive: score each query before learning from it (online solvers)."
        ),
    ] = "auto",
    permutations: Annotated[int, typer.Option(help="Orders of all queries for a progressive plan.", min=1)] = 10,
    folds: Annotated[
        int | None, typer.Option(help="Cross-validate by this many folds over train and vali.", min=2)
    ] = None,
    repeats: Annotated[int, typer.Option(help="How often queries are dealt into folds anew.", min=1)] = 1,
    outer: Annotated[int, typer.Option(help="Outer folds of plan nested.", min=2)] = 5,
    until: Annotated[
        float | None,
        typer.Option(help="End when further trials are expected to gain less than this, of the metric.", min=0.0),
    ] = None,
    full: Annotated[
        bool,
        typer.Option("--full", help="Judge every trial to its end: stop none that is for sure behind, follow no path."),
    ] = False,
    within: Annotated[
        str, typer.Option(help="Limits of the chosen model, such as 'features<=29, bytes<=10k, microseconds<=0.5'.")
    ] = "",
    seed: Annotated[int, typer.Option(help="Of everything random.", min=0)] = 0,
    refit: Annotated[bool, typer.Option(help="Learn the chosen model again on train and vali together.")] = True,
    name: Annotated[str | None, typer.Option(help="What the study is called; an existing one is continued.")] = None,
    join: Annotated[
        bool, typer.Option("--join", help="Where another process runs the study of that name, run trials for it.")
    ] = False,
    extend: Extend = False,
    home: Home = None,
    storage: Storage = None,
    artifacts: Artifacts = None,
    missing: Missing = "error",
    zero_based: ZeroBased = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Tune the solvers on DATA, choose by validation, judge on test, save the model.

    Without arguments it runs on api-search, an example built from the documentation of the installed packages.
    """
    from ranktune import api

    if join and _worked_for(name, home, storage, jobs, as_json):
        return
    with _watched(as_json, verbose) as progress:
        result = api.tune(
            data, vali=vali, test=test, metric=metric, also=also or (), solvers=solver or (), plan=plan,
            permutations=permutations, folds=folds, repeats=repeats, outer=outer, trials=trials, timeout=timeout,
            full=full, until=until, sampler=sampler, within=within, seed=seed, refit=refit,
            reading=reading(missing, zero_based), name=name, home=home, jobs=jobs, trial_timeout=trial_timeout,
            trial_memory=trial_memory, executor=executor, address=address, storage=storage, artifacts=artifacts,
            extend=extend, progress=progress,
        )  # fmt: skip
    _finish(result, as_json)


@commands.command()
def run(
    study: Annotated[Path, typer.Argument(help="A study declared in TOML.")],
    jobs: Jobs = None,
    trial_timeout: TrialTimeout = None,
    trial_memory: TrialMemory = None,
    executor: Executor = "processes",
    address: Address = None,
    extend: Extend = False,
    home: Home = None,
    storage: Storage = None,
    artifacts: Artifacts = None,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Run a declared study: a TOML file with the fields of `tune` (data, metric, solvers, trials, space, ...)."""
    from ranktune import api

    with _watched(as_json, verbose) as progress:
        result = api.run(
            study, home=home, jobs=jobs, trial_timeout=trial_timeout, trial_memory=trial_memory, executor=executor,
            address=address, storage=storage, artifacts=artifacts, extend=extend, progress=progress,
        )  # fmt: skip
    _finish(result, as_json)


@commands.command()
def resume(
    name: Annotated[str, typer.Argument(help="The study; `ranktune list` shows them.")],
    trials: Annotated[int | None, typer.Option(help="New total of trials (for each fold).", min=1)] = None,
    jobs: Jobs = None,
    trial_timeout: TrialTimeout = None,
    trial_memory: TrialMemory = None,
    executor: Executor = "processes",
    address: Address = None,
    home: Home = None,
    storage: Storage = None,
    extend: Extend = False,
    verbose: Verbose = False,
    as_json: Json = False,
) -> None:
    """Continue a study that was interrupted or killed, or give a finished one more trials."""
    from ranktune import api

    with _watched(as_json, verbose) as progress:
        result = api.resume(
            name, trials=trials, home=home, jobs=jobs, trial_timeout=trial_timeout, trial_memory=trial_memory,
            executor=executor, address=address, storage=storage, extend=extend, progress=progress,
        )  # fmt: skip
    _finish(result, as_json)


@commands.command()
def worker(
    name: Annotated[str, typer.Option(help="The study, which another process runs.")],
    storage: Storage = None,
    home: Home = None,
    jobs: Jobs = None,
    trial_timeout: TrialTimeout = None,
    trial_memory: TrialMemory = None,
    wait: Annotated[float, typer.Option(help="Seconds without a trial to take after which it leaves.", min=0.0)] = 600,
) -> None:
    """Run trials for a study that another process runs, on this machine or on another one.

    On one host:  ranktune tune train.txt --name N --storage postgresql://host/runs --artifacts /shared/runs

    On others:    ranktune worker --name N --storage postgresql://host/runs --jobs 8
    """
    from ranktune import api

    with _watched(as_json=True) as progress:
        done = api.work(
            name, storage=storage, home=home, jobs=jobs, trial_timeout=trial_timeout, trial_memory=trial_memory,
            wait=wait, progress=progress,
        )  # fmt: skip
    print(f"{done} trials of study '{name}' were run here.", file=sys.stderr)


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


def _worked_for(name: str | None, home: Path | None, storage: str | None, jobs: int | None, as_json: bool) -> bool:
    """Run trials for a study that another process runs, and show what it found; False where none runs it."""
    from ranktune import api
    from ranktune.solvers.core.errors import ParameterError
    from ranktune.tuner.selection.results import load_result
    from ranktune.tuner.study.home import StudyFolder, default_home

    if name is None:
        raise ParameterError("--join joins a study by its name. Give --name too.")
    folder = StudyFolder((home or default_home()) / name)
    if not folder.held():
        return False
    with _watched(as_json=True) as progress:
        api.work(name, storage=storage, home=home, jobs=jobs, progress=progress)
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
