"""The command line: parse, call, print. Results go to standard output, everything else to standard error.

Heavy modules are imported inside the commands, so that --help answers at once. Exit code 2: something that was given
cannot be, and the message says what; 130: interrupted.
"""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(
    name="ranktune",
    help="Tune, select and ship ranking models.\n\n"
    "Give it documents grouped by query, with grades; it finds the model, says how sure it is, and saves it.\n\n"
    "Start here:  ranktune tune   (embedded example data)\n\n"
    "Your data:   ranktune tune train.txt --test test.txt --metric ndcg@10",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    add_completion=True,
)

Home = Annotated[Path | None, typer.Option(help="Folder of the records. (default: RANKTUNE_HOME or ./ranktune-runs)")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else on standard output.")]
Jobs = Annotated[int | None, typer.Option(help="Processes that run trials. [default: all cores]", min=1)]
Missing = Annotated[str, typer.Option(help="What a missing value (NaN, NULL) is: error, or zero.")]
ZeroBased = Annotated[bool, typer.Option("--zero-based", help="Feature numbers in text files begin at 0, not at 1.")]
Also = Annotated[list[str] | None, typer.Option(help="A further metric to report. Repeatable.")]


@app.command()
def tune(
    data: Annotated[
        str,
        typer.Argument(
            help="Training data: LETOR/SVMlight text (.gz, .bz2), csv, parquet, npz, a folder Fold1..Fold5."
        ),
    ] = "api-search",
    vali: Annotated[str | None, typer.Option(help="Validation data. (default: cross-validation by query)")] = None,
    test: Annotated[
        str | None, typer.Option(help="Test data, never used to choose. (default: a fifth set aside)")
    ] = None,
    metric: Annotated[
        str, typer.Option(help="What to maximise: ndcg@10, map, mrr, precision@5, ndcg@10:letor, ...")
    ] = "ndcg@10",
    also: Also = None,
    trials: Annotated[int, typer.Option(help="Configurations to try (for each fold of a folder).", min=1)] = 30,
    jobs: Jobs = None,
    solver: Annotated[
        list[str] | None,
        typer.Option(help="A solver that competes, or all. Repeatable. (default: the standard ones)"),
    ] = None,
    sampler: Annotated[
        str, typer.Option(help="What suggests configurations: thompson, random, tpe, gp, skopt.")
    ] = "thompson",
    plan: Annotated[
        str, typer.Option(help="auto, or progressive: score each query before learning from it (online solvers).")
    ] = "auto",
    permutations: Annotated[int, typer.Option(help="Orders of all queries for a progressive plan.", min=1)] = 10,
    folds: Annotated[
        int | None, typer.Option(help="Cross-validate by this many folds over train and vali.", min=2)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.", min=0)] = 0,
    refit: Annotated[bool, typer.Option(help="Learn the chosen model again on train and vali together.")] = True,
    name: Annotated[str | None, typer.Option(help="What the study is called; an existing one is continued.")] = None,
    home: Home = None,
    missing: Missing = "error",
    zero_based: ZeroBased = False,
    as_json: Json = False,
) -> None:
    """Tune the solvers on DATA, choose by validation, judge on test, save the model.

    Without arguments it runs on api-search, an example built from the documentation of the installed packages.
    """
    from ranktune import api

    with _watched(as_json) as progress:
        result = api.tune(
            data, vali=vali, test=test, metric=metric, also=also or (), solvers=solver or (), plan=plan,
            permutations=permutations, folds=folds, trials=trials, sampler=sampler, seed=seed, refit=refit,
            reading=_reading(missing, zero_based), name=name, home=home, jobs=jobs, progress=progress,
        )  # fmt: skip
    _show(result.as_dict(), as_json)


@app.command()
def run(
    study: Annotated[Path, typer.Argument(help="A study declared in TOML.")],
    jobs: Jobs = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Run a declared study: a TOML file with the fields of `tune` (data, metric, solvers, trials, space, ...)."""
    from ranktune import api

    with _watched(as_json) as progress:
        result = api.run(study, home=home, jobs=jobs, progress=progress)
    _show(result.as_dict(), as_json)


@app.command()
def resume(
    name: Annotated[str, typer.Argument(help="The study; `ranktune list` shows them.")],
    trials: Annotated[int | None, typer.Option(help="New total of trials (for each fold).", min=1)] = None,
    jobs: Jobs = None,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Continue a study that was interrupted or killed, or give a finished one more trials."""
    from ranktune import api

    with _watched(as_json) as progress:
        result = api.resume(name, trials=trials, home=home, jobs=jobs, progress=progress)
    _show(result.as_dict(), as_json)


@app.command("list")
def list_studies(home: Home = None, as_json: Json = False) -> None:
    """List the studies in the home folder."""
    from ranktune.dashboards.listing import listing, listing_table
    from ranktune.tuner.home import default_home

    where = home or default_home()
    found = listing(where)
    if as_json:
        _print_json({"home": str(where), "studies": found})
    elif found:
        _console().print(listing_table(found))
    else:
        print(f"No studies in {where} yet. `ranktune tune` makes one.")


@app.command()
def show(
    name: Annotated[str, typer.Argument(help="The study; `ranktune list` shows them.")],
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Show what a study found; of an unfinished one, how far it is."""
    from ranktune.dashboards.listing import state
    from ranktune.tuner.home import default_home, find_folder
    from ranktune.tuner.results import load_result

    folder = find_folder(home or default_home(), name)
    if folder.result.exists():
        _show(load_result(folder.result), as_json)
        return
    found = state(folder.path)
    if as_json:
        _print_json(found)
    else:
        best = "" if found["best"] is None else f", best {found['metric']} {found['best']:.4f} by validation"
        print(f"{name}: {found['done']} of {found['trials']} trials{best}. `ranktune resume {name}` finishes it.")


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="A model.json.")],
    data: Annotated[str, typer.Argument(help="The documents to score.")],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write. (default: standard output)")
    ] = None,
    missing: Missing = "error",
    zero_based: ZeroBased = False,
) -> None:
    """Print the score of every document of DATA, a line each, in the order of the file; higher ranks first."""
    from ranktune.commands import score_file

    scores = score_file(model, data, **_reading(missing, zero_based))
    text = "".join(f"{score!r}\n" for score in scores.tolist())
    if output is None:
        sys.stdout.write(text)
    else:
        try:
            output.write_text(text)
        except OSError as error:
            from ranktune.solvers.errors import ParameterError

            raise ParameterError(f"cannot write {output}: {error.strerror}. Give a file you may write to.") from None


@app.command()
def evaluate(
    model: Annotated[Path, typer.Argument(help="A model.json.")],
    data: Annotated[str, typer.Argument(help="Judged documents.")],
    metric: Annotated[str, typer.Option(help="ndcg@10, map, mrr, ndcg@10:letor, ...")] = "ndcg@10",
    also: Also = None,
    missing: Missing = "error",
    zero_based: ZeroBased = False,
    as_json: Json = False,
) -> None:
    """Judge MODEL on DATA: each metric's mean over queries with a 95 percent interval."""
    from ranktune.commands import evaluate_file, evaluation_table

    found = evaluate_file(model, data, [metric, *(also or [])], **_reading(missing, zero_based))
    _print_json(found) if as_json else _console().print(evaluation_table(found))


@app.command("data")
def describe_data(
    data: Annotated[str, typer.Argument(help="File, folder or name of judged documents.")] = "api-search",
    missing: Missing = "error",
    zero_based: ZeroBased = False,
    as_json: Json = False,
) -> None:
    """Tell what is in DATA: queries, documents, features, grades, sparsity, and what looks wrong."""
    from ranktune.commands import data_table, describe

    found = describe(data, **_reading(missing, zero_based))
    _print_json(found) if as_json else _console().print(data_table(found))


@app.command("solvers")
def list_solvers(
    name: Annotated[str | None, typer.Argument(help="A solver. (default: a table of all)")] = None,
    as_json: Json = False,
) -> None:
    """Tell which solvers there are; of one, what its parameters mean and in which range they are tuned."""
    from ranktune.solver_table import all_solvers, solver_page, solvers_table

    if as_json:
        _print_json({"solvers": [one for one in all_solvers() if name is None or one["name"].lower() == name.lower()]})
    else:
        _console().print(solvers_table(all_solvers()) if name is None else solver_page(name))


@app.command()
def related(
    name: Annotated[str, typer.Argument(help="A documented function or class, such as numpy.argsort.")],
    model: Annotated[
        Path | None, typer.Option(help="A model of api-search. (default: that of the latest study)")
    ] = None,
    count: Annotated[int, typer.Option(help="How many to print.", min=1)] = 10,
    home: Home = None,
    as_json: Json = False,
) -> None:
    """Print what the chosen api-search model ranks first for NAME, beside what BM25 does."""
    from ranktune.commands import related_table, related_to

    found = related_to(name, model, home, count)
    _print_json(found) if as_json else _console().print(related_table(found))


@app.command()
def reproduce(
    paper: Annotated[str, typer.Argument(help="Whose tables: solar, ranksvm, domination, elasticrank or adarank.")],
    data: Annotated[
        list[str] | None,
        typer.Option(help="A folder Fold1 ... Fold5 with train.txt, vali.txt and test.txt. Repeatable."),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Its name in the paper. (default: told by queries, documents and features)")
    ] = None,
    jobs: Annotated[int | None, typer.Option(help="Processes that share the work. [default: all cores]", min=1)] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a list of {dataset, algorithm, metric, published, ours, ...}.")
    ] = False,
) -> None:
    """Print a PAPER's published figures beside ours on the same data, with the differences.

    Every system is trained as the paper says: validation queries choose its parameters, test queries give the figure.

    Data of which nothing was published give our figures only. On two cores MQ2008 takes up to two minutes.

    Example:  ranktune reproduce solar --data MQ2008 --data OHSUMED
    """
    from ranktune import reproducing

    try:
        found = reproducing.reproduce_paper(paper, data or [], dataset, jobs)
    except KeyboardInterrupt:
        print("Interrupted. Nothing was kept.", file=sys.stderr)
        raise typer.Exit(130) from None
    _print_json(reproducing.as_list(found)) if as_json else _console().print(reproducing.tables(found))


@app.callback(invoke_without_command=True)
def version(
    show_version: Annotated[bool, typer.Option("--version", help="Print the version and stop.")] = False,
) -> None:
    """Tune, select and ship ranking models."""
    if show_version:
        from ranktune import __version__

        print(__version__)
        raise typer.Exit


@contextmanager
def _watched(as_json: bool) -> Iterator[Any]:
    """Yield a progress display; an interrupt ends with a word on how to go on, and exit code 130."""
    from ranktune.terminal import Lines, watcher

    try:
        yield Lines() if as_json else watcher()
    except KeyboardInterrupt:
        print(
            "Interrupted. Finished trials are in the record: `ranktune list`, then `ranktune resume NAME`.",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None


def _reading(missing: str, zero_based: bool) -> dict[str, Any]:
    """Return the options of the readers that differ from their defaults."""
    options: dict[str, Any] = {}
    if missing != "error":
        options["missing"] = missing
    if zero_based:
        options["one_based"] = False
    return options


def _show(result: dict[str, Any], as_json: bool) -> None:
    from ranktune.dashboards.leaderboard import report

    _print_json(result) if as_json else _console().print(report(result))


def _print_json(value: dict[str, Any] | list[dict[str, Any]]) -> None:
    print(json.dumps(value, indent=1))


def _console() -> Any:
    """Return a console that never breaks a table's line when the output is a file."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=120)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as a person reads it, without the place in our source."""
    print(f"warning: {_as_options(str(message))}", file=sys.stderr)


_SPELT = {"one_based=False": "--zero-based", "solvers=": "--solver "}
"""Arguments whose option has another name or sense."""


def _as_options(message: str) -> str:
    """Return message with the arguments that the present command has as options written as such: --missing zero."""
    commands: dict[str, Any] = getattr(typer.main.get_command(app), "commands", {})
    command = next((commands[word] for word in sys.argv[1:] if word in commands), None)
    options = {p.name: p.opts[0] for p in command.params if p.opts[0].startswith("--")} if command else {}
    for argument, option in _SPELT.items():
        if option.strip() in options.values():
            message = message.replace(argument, option)

    def written(found: re.Match[str]) -> str:
        option = options.get(found["name"])
        value = found["value"].strip("'\"")
        return found[0] if option is None else f"{option} {value}"

    return re.sub(r"""(?<![\w.-])(?P<name>[a-z_]+)=(?P<value>'[^']*'|"[^"]*"|[\w.@-]*\w)""", written, message)


def main() -> None:
    """Run the command line; an error of ours is one message and exit code 2, never a traceback."""
    from ranktune.solvers.errors import RankTuneError

    warnings.showwarning = _show_warning
    try:
        app()
    except RankTuneError as error:
        print(f"error: {_as_options(str(error))}", file=sys.stderr)
        sys.exit(2)
