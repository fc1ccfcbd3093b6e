"""What the commands share: options by name, how they print.

As in ranktune.cli, heavy modules are imported inside the functions.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

Home = Annotated[Path | None, typer.Option(help="Folder of the records. (default: RANKTUNE_HOME or ./ranktune-runs)")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else on standard output.")]
_RUNNING = "How trials run"
Jobs = Annotated[
    int | None, typer.Option(help="Processes that run trials. (default: all cores)", min=1, rich_help_panel=_RUNNING)
]
TrialTimeout = Annotated[
    float | None,
    typer.Option(help="Seconds that one trial may take; it fails beyond.", min=0.001, rich_help_panel=_RUNNING),
]
TrialMemory = Annotated[
    str | None, typer.Option(help="Memory that one trial may take, such as 4GB.", rich_help_panel=_RUNNING)
]
Executor = Annotated[
    str, typer.Option(help="Where trials run: processes (here), or dask (a cluster).", rich_help_panel=_RUNNING)
]
Address = Annotated[str | None, typer.Option(help="Of Dask's scheduler: tcp://HOST:8786.", rich_help_panel=_RUNNING)]
_RECORD = "Where the record is kept"


def _remembered(url: str | None) -> str | None:
    """Keep the URL where the pages look for its password: it is in no file."""
    if url:
        os.environ["RANKTUNE_STORAGE"] = url
    return url


Storage = Annotated[
    str | None,
    typer.Option(
        callback=_remembered,
        help="PostgreSQL database for the record, which workers on other machines join: postgresql://USER@HOST/NAME. "
        "The password is best kept in PGPASSWORD or ~/.pgpass. (default: a file in the home)",
        envvar="RANKTUNE_STORAGE",
        show_envvar=False,
        rich_help_panel=_RECORD,
    ),
]
Artifacts = Annotated[
    str | None,
    typer.Option(
        help="Folder that all machines see, or s3://BUCKET/PREFIX, for arrays and data. (default: the study's folder)",
        rich_help_panel=_RECORD,
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Tell every event, as events.jsonl has it.")]
Extend = Annotated[
    bool, typer.Option("--extend", help="Widen the study of that name: more solvers, wider ranges, more choices.")
]
Missing = Annotated[str, typer.Option(help="What a missing value (NaN, NULL) is: error, or zero.")]
ZeroBased = Annotated[bool, typer.Option("--zero-based", help="Feature numbers in text files begin at 0, not at 1.")]
Also = Annotated[list[str] | None, typer.Option(help="A further metric to report. Repeatable.")]


def reading(missing: str, zero_based: bool) -> dict[str, Any]:
    """Return the options of the readers that differ from their defaults."""
    options: dict[str, Any] = {}
    if missing != "error":
        options["missing"] = missing
    if zero_based:
        options["one_based"] = False
    return options


def print_json(value: dict[str, Any] | list[dict[str, Any]]) -> None:
    """Print value as JSON, and nothing else, on standard output."""
    print(json.dumps(value, indent=1))


def console() -> Any:
    """Return a console that never breaks a table's line when the output is a file."""
    from rich.console import Console

    return Console() if sys.stdout.isatty() else Console(width=120)
