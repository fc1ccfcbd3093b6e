"""A stored result: what a benchmark measured, with its command, the machine, the versions, the date and the load.

The results of the parts of a long comparison are lines of JSON in a file, so that no part is repeated.
"""

from __future__ import annotations

import inspect
import json
import os
import platform
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import wraps
from importlib.metadata import distributions
from pathlib import Path
from typing import Annotated, Self, TypeAlias, TypeVar, get_args

import psutil
import typer
from rich.console import Console

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import DataError, RankTuneError
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row, clauses, drawn, text_of

K = TypeVar("K")
V = TypeVar("V")

LIBRARIES = (
    "ranktune", "numpy", "scipy", "scikit-learn", "numba", "lightgbm", "xgboost-cpu", "xgboost", "catboost", "optuna",
    "cmaes", "polars", "pandas", "pytrec-eval-terrier", "flaml", "ydf", "perpetual",
    "scikit-optimize", "torch", "coco-experiment",
)  # fmt: skip
"""Distributions whose versions are stored where they are installed."""


@dataclass(frozen=True)
class BenchmarkResult:
    """A benchmark's tables and how they were measured.

    date      of the beginning, UTC
    seconds   of wall time that it took
    load      of the machine over a minute at the beginning: processes that run or wait for a core
    source    where the numbers come from if not from this command on this machine; empty otherwise
    """

    benchmark: str
    command: str
    date: str
    seconds: float
    processor: str
    cores: int
    memory_gb: float
    system: str
    python: str
    load: float
    versions: dict[str, str]
    tables: list[BenchmarkTable]
    source: str = ""

    def write(self, path: Path) -> None:
        """Write the result as JSON."""
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Self:
        """Return the result in a file. Raises DataError where it is not one."""
        try:
            values: Json = json.loads(path.read_text(encoding="utf-8"))
            return cls(**values | {"tables": [BenchmarkTable(**table) for table in values["tables"]]})
        except (ValueError, TypeError, KeyError) as error:
            raise DataError(f"{path}: not a stored result of a benchmark. Run the benchmark again.") from error


class Measurement:
    """The conditions at the beginning of a benchmark."""

    def __init__(self) -> None:
        self._begun, self._date = time.monotonic(), datetime.now(UTC)
        self._load = psutil.getloadavg()[0]

    def result(
        self,
        benchmark: str,
        arguments: list[str],
        tables: list[BenchmarkTable],
        module: str = "ranktune.studies.benchmarks",
    ) -> BenchmarkResult:
        """Return the result of a benchmark that has ended; arguments are those of the command line of the module."""
        installed = {each.name.lower().replace("_", "-"): each.version for each in distributions()}
        return BenchmarkResult(
            benchmark=benchmark,
            command=shlex.join(["python", "-m", module, *arguments]),
            date=self._date.strftime("%Y-%m-%d %H:%M"),
            seconds=round(time.monotonic() - self._begun, 1),
            processor=_processor(),
            cores=os.cpu_count() or 1,
            memory_gb=round(psutil.virtual_memory().total / 1e9, 1),
            system=f"{platform.system()} {platform.machine()}",
            python=platform.python_version(),
            load=round(self._load, 2),
            versions={name: installed[name] for name in LIBRARIES if name in installed},
            tables=tables,
        )


def _processor() -> str:
    """Return the name of the processor's model."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def stored_results(path: Path | None, of_json: Callable[[Json], V]) -> Iterator[V]:
    """Yield the results in a file of JSON lines; truncated lines and those of another form are skipped."""
    for line in path.read_text(encoding="utf-8").splitlines() if path is not None and path.exists() else ():
        try:
            yield of_json(json.loads(line))
        except (ValueError, TypeError, KeyError):
            continue


def append_result(path: Path | None, result: Json) -> None:
    """Append a result to a file of JSON lines, if any, on a new line even where the last line was truncated."""
    if path is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        truncated = file.tell() > 0 and file.seek(-1, os.SEEK_END) >= 0 and file.read(1) != b"\n"
        file.write((b"\n" if truncated else b"") + json.dumps(result).encode() + b"\n")


def add_missing(
    planned: Iterable[K],
    results: MutableMapping[K, V],
    run: Callable[[K], V],
    path: Path | None,
    seconds: float = float("inf"),
) -> None:
    """Add the results of the planned runs that are not known, in order, and append them to the file at path.

    None begins after so many seconds. Results are dataclasses of plain values.
    """
    begun = time.monotonic()
    for key in planned:
        if key not in results and time.monotonic() - begun <= seconds:
            results[key] = run(key)
            append_result(path, vars(results[key]))


Benchmark: TypeAlias = Callable[..., list[BenchmarkTable]]
"""A command: its docstring says in the section "Parameters" what each is, and `_option` reads it."""


def add_commands(app: typer.Typer, module: str, benchmarks: Mapping[str, Benchmark]) -> None:
    """Add a command for each benchmark of a module: it prints the tables, and has the option --store."""
    for name, benchmark in benchmarks.items():
        app.command(name)(_command(module, name, benchmark))


def _described(benchmark: Benchmark) -> tuple[str, dict[str, tuple[str, str]]]:
    """Return what a benchmark does, and by parameter what follows its type and what it is, by its docstring.

    {NAME} stands for the names in this constant of its module.
    """
    text, _, fields = (inspect.getdoc(benchmark) or "").partition("\n\nParameters\n----------\n")
    filled = re.sub(r"\{(\w+)\}", lambda at: ", ".join(benchmark.__globals__[at[1]]), fields)
    parts = re.split(r"^(\w+) : [\w ]+(?:, (.*))?\n", filled, flags=re.MULTILINE)[1:]
    notes = zip(parts[::3], parts[1::3], parts[2::3], strict=True)
    return text, {name: (note or "", " ".join(words.split())) for name, note, words in notes}


def _is_number(kind: object) -> bool:
    return kind in (int, float) or any(map(_is_number, get_args(kind)))


def _option(parameter: inspect.Parameter, note: str, words: str) -> inspect.Parameter:
    """Return a parameter with its declaration for the command line.

    note says "positional", the name of an option such as "--C", or the least number, "at least 8". Else whole numbers
    with a default are at least 1 unless it is 0, and all others at least 0.
    """
    default = ... if parameter.default is parameter.empty else parameter.default
    least = int(note.split()[-1]) if note.startswith("at least") else int(isinstance(default, int) and default > 0)
    names = [note] if note.startswith("--") else []
    declared = typer.Argument if note == "positional" else typer.Option
    option = declared(default, *names, help=words, min=least if _is_number(parameter.annotation) else None)
    return parameter.replace(default=option, kind=inspect.Parameter.KEYWORD_ONLY)


def _command(module: str, name: str, benchmark: Benchmark) -> Callable[..., None]:
    text, words = _described(benchmark)

    @wraps(benchmark)
    def run(*, context: typer.Context, store: Path | None, **options: object) -> None:
        measurement = Measurement()
        try:
            tables = benchmark(**options)
        except RankTuneError as error:
            print(f"error: {error}", file=sys.stderr)
            raise typer.Exit(2) from None
        console = Console()
        for table in tables:
            console.print(drawn(table, console.width))
        if store is not None:
            arguments = list(context.obj or [name, "--store", ""])
            where = arguments.index("--store")
            measurement.result(name, arguments[:where] + arguments[where + 2 :], tables, module).write(store)
        if any(table.failed for table in tables):
            raise typer.Exit(1)

    declared, added = (inspect.signature(each, eval_str=True).parameters.values() for each in (benchmark, _added))
    parameters = [*(_option(parameter, *words[parameter.name]) for parameter in declared), *added]
    run.__doc__ = text
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run


def _added(
    *,
    context: typer.Context,
    store: Annotated[
        Path | None,
        typer.Option(help="Also write the tables to this file as JSON, with machine, versions, date and command."),
    ] = None,
) -> None:
    """Have the parameters that every command has."""


FIGURES = ("predict", "mean ms", "s", "found", "ratio")
"""Columns of the figure that a row with the columns "wanted" and "met" is about, the first that it has, where "wanted"
does not name one, as "cpu s <= 3" does."""
SAID = ("wanted", "met", "beside", "found")


def goals_table(folder: Path, names: Iterable[str]) -> BenchmarkTable:
    """Return a line for each goal in the stored results of benchmarks in a folder, and for each without a result."""
    rows: list[Row] = []
    for name in names:
        results = [
            BenchmarkResult.read(path)
            for path in sorted([*folder.glob(f"{name}.json"), *folder.glob(f"{name}.*.json")])
        ]
        rows += [line for result in results for line in _goals_of(result)]
        rows += [] if results else [{"line": name, "figure": "", "goal": "", "is": "missing", "date": ""}]
    absent = ", ".join(str(row["line"]) for row in rows if row["is"] == "missing")
    command = "python -m ranktune.studies.benchmarks NAME --store docs/benchmarks/results/NAME.json"
    note = f"Without a result, where NAME is {absent}: {command}" if absent else ""
    return BenchmarkTable(
        f"Goals of the benchmarks: {sum(row['is'] == 'met' for row in rows)} of {len(rows)} met", rows, note
    )


def _goals_of(result: BenchmarkResult) -> Iterator[Row]:
    """Yield a line for each row that says what is wanted, named by its words and whole numbers."""
    for row in (row for table in result.tables for row in table.rows if row.get("wanted")):
        wanted = str(row["wanted"])
        named = [name for name, *_ in clauses(wanted) if name in row]
        column = named[-1] if named else next(name for name in FIGURES if name in row)
        words = [
            value if isinstance(value, str) else f"{name} {value:,}"
            for name, value in row.items()
            if isinstance(value, str | int) and not isinstance(value, bool) and name not in SAID
        ]
        yield {
            "line": f"{result.benchmark}: {', '.join(words)}", "figure": text_of(row[column]), "goal": wanted,
            "is": "met" if row["met"] else "not met", "date": result.date[:10],
        }  # fmt: skip
