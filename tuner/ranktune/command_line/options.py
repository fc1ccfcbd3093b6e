"""Options that several commands share, options from a declaration, and printing.

As in ranktune.command_line.app, modules that load libraries are imported inside the functions.
"""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import MISSING
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias, cast

import typer

from ranktune.arguments import HOME, ShowArguments, WorkerRuntime
from ranktune.solvers.core.declared import DeclaredField, declared
from ranktune.solvers.formats import FORMATS
from ranktune.solvers.names import SOLVERS
from ranktune.tuner.statistics.measured import direction
from ranktune.tuner.study.settings import Settings, given_columns

if TYPE_CHECKING:
    from rich.console import Console

    from ranktune.solvers.core.arrays import JsonView
    from ranktune.solvers.data.readers.parsing.options import ReadOptions
    from ranktune.solvers.models.base import Model

NOT_BETTER = 4
"""Exit code of --fail-unless-better where the gain is not above 0 for sure."""

OPTIONS, COLUMNS, OUTPUT = "Options", "Columns, and how data are read", "Output and help"
PANELS = {
    "The study": "test vali metric also solvers trials timeout baseline name version",
    OPTIONS: "",
    COLUMNS: "qid grade grades document features drop weight document_weight time qrels missing zero_based",
    "How models are tried and chosen": "clicks plan folds within serve sampler seed",
    "How trials run": "jobs memory executor address join wait",
    "Where the study is kept": "home storage mlflow",
    OUTPUT: "as_json verbose fail_unless_better wide table_format help",
}
"""Panels of --help in their order, and which fields of a study are options there. The others are in study files."""
LISTED = {name: title for title, names in PANELS.items() for name in names.split()}
OF_STUDIES = (Settings, WorkerRuntime, ShowArguments)
"""Declarations of commands that run studies."""

Given: TypeAlias = dict[str, Any]
"""The options of a declaration, by field."""


def study_names(context: typer.Context, incomplete: str) -> list[str]:
    """Return the studies that an incomplete word of the command line may mean."""
    from ranktune.tuner.study.home import all_folders, home_folder

    return [
        folder.path.name
        for folder in all_folders(home_folder(context.params.get("home")))
        if folder.path.name.startswith(incomplete)
    ]


def metric_names(incomplete: str) -> list[str]:
    """Return the metrics that an incomplete word of the command line may mean."""
    from ranktune.solvers.metrics.presets import MEASURES

    usual = ("ndcg@10", "p@5", "err@10")
    return [name for name in (*usual, *MEASURES) if name.startswith(incomplete)]


def data_names(incomplete: str) -> list[str]:
    """Return the files, folders and names of data that an incomplete word of the command line may mean."""
    from ranktune.solvers.data.readers.formats import completions

    return completions(incomplete)


solver_names = SOLVERS.completions("all", "standard")

COMPLETIONS: dict[str, Callable[..., list[str]]] = {
    "name": study_names,
    "data": data_names,
    "vali": data_names,
    "test": data_names,
    "solvers": solver_names,
    "metric": metric_names,
    "also": metric_names,
    "format": FORMATS.completions(),
}
"""What a shell completes, by field of a declaration."""

Home = Annotated[Path | None, typer.Option(help=HOME.help)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else on standard output.")]
Wide = Annotated[bool, typer.Option("--wide", help="Print all columns, however wide the terminal is.")]
Solvers = Annotated[
    list[str] | None,
    typer.Option("--solver", help="module:Name of a class of yours, one of whose models this is. Repeatable."),
]
Trust = Annotated[
    list[str] | None,
    typer.Option(
        help="module.Class that a model saved by skops may hold too; the error names it. Only a class that does no "
        "harm whatever its attributes are. Repeatable."
    ),
]


def has_option(kind: type, field: DeclaredField) -> bool:
    """Return whether a command that takes a declaration has an option, or an argument, for one of its fields."""
    return field.setting.positional or field.name in LISTED or not issubclass(kind, OF_STUDIES)


def takes_options(*declarations: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return a decorator: a command takes the options of each declaration as a dict by field, and then its own ones.

    Fields of study files that it has no option for are its attribute in_file.
    """
    fields = {kind: [field for field in declared(kind) if not field.setting.python_only] for kind in declarations}
    shared = [[field for field in fields[kind] if has_option(kind, field)] for kind in declarations]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        others = list(inspect.signature(command, eval_str=True).parameters.values())[len(declarations) :]

        @wraps(command)
        def call(**values: object) -> None:
            for field in chain.from_iterable(shared):
                if field.setting.variable and values[field.name]:  # the pages and worker processes read it there
                    os.environ[field.setting.variable] = str(values[field.name])
            groups = [{field.name: values.pop(field.name) for field in fields} for fields in shared]
            command(*groups, **values)

        parameters = map(_parameter, chain.from_iterable(shared))
        call.__signature__ = inspect.Signature([*parameters, *others])  # type: ignore[attr-defined]
        call.in_file = [  # type: ignore[attr-defined]
            field for kind, every in fields.items() for field in every if not has_option(kind, field)
        ]
        return call

    return decorate


def _parameter(option: DeclaredField) -> inspect.Parameter:
    """Return the parameter by which Typer makes the option, or argument, of a field."""
    setting = option.setting
    kind: Any = setting.option_type or (list[str] if option.kind == Sequence[str] else option.kind)
    default = inspect.Parameter.empty if option.default is MISSING else option.default
    if default in (None, (), {}):
        kind, default = kind | None, None
    if setting.positional:
        info = typer.Argument(help=setting.help, autocompletion=COMPLETIONS.get(option.name))
    else:
        flag = (f"--{option.name}",) if option.default is False else ()  # without it there would be --no-... too
        info = typer.Option(
            *(setting.options or flag),
            help=setting.help,
            min=setting.minimum,
            envvar=setting.variable,
            show_envvar=False,
            autocompletion=COMPLETIONS.get(option.name),
        )
    return inspect.Parameter(
        option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, info]
    )


def on_command_line(context: typer.Context) -> set[str]:
    """Return the names of the parameters that the command line gives."""
    return {name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")}


def check_alone(context: typer.Context, way: str, used: set[str]) -> None:
    """Raise BadParameter where options beside those of a way of using the command are given."""
    for option in context.command.params:
        if option.name in on_command_line(context) - used:
            raise typer.BadParameter(f"is not for {way}: leave it out.", param_hint=option.opts[0])


def reading(shared: Given) -> ReadOptions:
    """Return the options of the readers that differ from their defaults, and the columns that are given."""
    options = cast("ReadOptions", given_columns(shared))
    if shared["missing"] != "keep":
        options["missing"] = shared["missing"]  # the readers check it
    if shared["zero_based"]:
        options["one_based"] = False
    return options


def find_solvers(names: Sequence[str] | None) -> None:
    """Import the solvers of the user's whose models a command loads."""
    for name in names or ():
        from ranktune.solvers.registry import solver_class

        solver_class(name)


def named_model(model: str) -> str:
    """Return the file of the current model where a study has that name and no file has; else the text as it is."""
    if os.path.exists(model) or not model or os.path.basename(model) != model:
        return model
    from ranktune.tuner.retuning.versions import model_file
    from ranktune.tuner.splits.seals import is_written
    from ranktune.tuner.study.home import home_folder

    home = home_folder()
    return str(model_file(home, model)) if is_written(home / model / "study.json") else model


def confirmed(model: str, trust: Sequence[str] | None) -> Model | str:
    """Return a model whose file may hold the classes of trust, without any the name of its file."""
    model = named_model(model)
    if not trust:
        return model
    from ranktune.solvers.models.base import load_model

    return load_model(model, trust=trust)


def write_output(content: str | bytes | Iterator[str], path: Path | None) -> None:
    """Write content to path, text to standard output if path is None; parts of a text as they come.

    Nothing is left of a file whose content cannot be computed to its end.
    """
    parts = iter([content]) if isinstance(content, str | bytes) else content
    from ranktune.solvers.core.errors import ParameterError, printable

    if path is None:
        exact = getattr(sys.stdout, "behind", sys.stdout)  # of which nothing is replaced
        for text in map(str, parts):
            if text != printable(text, keep="\n\t"):
                raise ParameterError("the output holds characters that a terminal obeys or hides. Add -o FILE.")
            exact.write(text)
        return
    from ranktune.solvers.core.files.atomic import atomic_write

    encoded = (each if isinstance(each, bytes) else each.encode() for each in parts)
    try:
        atomic_write(path.resolve(), lambda file: file.writelines(encoded))
    except OSError as error:
        raise ParameterError(f"cannot write {path}: {error.strerror}. Give a file you may write to.") from None


def exit_unless_better(found: JsonView | None) -> None:
    """End with the exit code NOT_BETTER unless a comparison, if there is one, shows a gain."""
    low, high = found["interval"] if found else (0.0, 0.0)
    if found is None or direction(low, high, found["p_randomisation"]) <= 0:
        print("Not better: the interval of the gain is not above 0 with p of at most 0.05.", file=sys.stderr)
        raise typer.Exit(NOT_BETTER)


def to_error(line: str) -> None:
    """Print a line of progress on standard error."""
    print(line, file=sys.stderr, flush=True)


FORM: list[str] = []
"""The format of tables that the current command was given, if any."""


def with_format(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that prints tables with an option --format for them.

    One that prints no JSON stays as it is, and so does one that runs a study, whose table `show` prints.
    """
    signature = inspect.signature(command, eval_str=True)
    names = signature.parameters.keys()
    if "as_json" not in names or {"verbose", "fail_unless_better"} <= names:
        return command

    @wraps(command)
    def call(*args: object, table_format: str | None = None, **options: object) -> None:
        if table_format is not None:
            FORM.append(table_format)
        try:
            command(*args, **options)
        finally:
            FORM.clear()

    option = typer.Option("--format", help="Print tables in this form, with all columns.")
    form = Annotated[Literal["csv", "latex", "markdown"] | None, option]
    added = inspect.Parameter("table_format", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=form)
    parameters = [*signature.parameters.values(), added]
    call.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return call


def print_json(value: object) -> None:
    """Print value as JSON on standard output."""
    print(json.dumps(value, indent=1))


def console(wide: bool = False) -> Console:
    """Return a console as wide as the terminal, with longer lines if the output is a file, with --wide as they are."""
    from ranktune.dashboards.terminal.tables import Screen

    if FORM:
        from ranktune.dashboards.terminal.tables import formatted

        class Formatted(Screen):
            def print(self, *objects: Any, **_: Any) -> None:
                for each in objects:
                    sys.stdout.write(formatted(each, FORM[0]))

        return Formatted()
    if wide:
        return Screen(width=1000)
    return Screen() if sys.stdout.isatty() or "COLUMNS" in os.environ else Screen(width=80)
