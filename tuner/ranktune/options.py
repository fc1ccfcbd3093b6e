"""What the commands share: options by name, how they print.

As in ranktune.cli, heavy modules are imported inside the functions.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

Home = Annotated[Path | None, typer.Option(help="Folder of the records. (default: RANKTUNE_HOME or ./ranktune-runs)")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else on standard output.")]
Jobs = Annotated[int | None, typer.Option(help="Processes that run trials. [default: all cores]", min=1)]
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
