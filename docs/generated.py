"""The pages of the reference that follow the code: written before each build, never by hand."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import MISSING
from pathlib import Path

import ranktune
import ranktune.solvers
from ranktune.arguments import TuneArguments
from ranktune.command_line.options import has_option
from ranktune.docs.llms import PLACE, llms_text
from ranktune.solvers.core.declared import DeclaredField, declared
from ranktune.solvers.names import SOLVERS

FOLDER = Path(__file__).parent / "reference"

SECTIONS = {
    "Tuning and data": ("ranktune", [name for name in ranktune.__all__ if name not in SOLVERS.names]),
    "Common solvers": ("ranktune", [name for name in ranktune.__all__ if name in SOLVERS.names]),
    "Other solvers, metrics and models": ("ranktune.solvers", ranktune.solvers.__all__),
    "Export": ("ranktune.solvers.export", ["export"]),
    "Results": ("ranktune.tuner.selection.results", ["Result"]),
    "Rows of results": ("ranktune.tuner.selection.rows", ["Row", "Gain"]),
    "Drift": ("ranktune.tuner.drift", ["watch", "Drift"]),
    "Comparisons": ("ranktune.tuner.statistics.measured", ["Comparison", "Interval"]),
    "Tuning in one pass": ("ranktune.tuner.one_pass.result", ["OnePassResult"]),
    "Judgments from clicks": ("ranktune.solvers.clicks.judging.judged", ["JudgedLog"]),
    "Interleaving": ("ranktune.tuner.interleaving", ["team_draft", "balanced", "judge", "plan"]),
    "Results of interleaving": ("ranktune.tuner.interleaving.judging", ["Judged", "Tally"]),
    "Events": ("ranktune.tuner.study.events", ["read_events"]),
    "Trials on joblib": ("ranktune.tuner.workers.joblib_executor", ["JoblibWorkers"]),
}
"""Title -> module and its public names, in the order of the page."""


def write_pages() -> None:
    """Write the list of the pages, and those of Python, of the command line and of study files."""
    PLACE.write_text(llms_text(), encoding="utf-8")
    pages = {"python.rst": python_page(), "command_line.md": command_line_page(), "study_file.md": _study_file()}
    for name, text in pages.items():
        path = FOLDER / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def python_page() -> str:
    """Return the page of public names."""
    parts = ["Python", "======", "", "Import what you use from the module that a heading names. Others are not public."]
    known: set[str] = set()
    for title, (module, names) in SECTIONS.items():
        public = [name for name in names if not name.startswith("_") and name not in known]
        known |= set(public)
        if public:
            parts += ["", title, "-" * len(title), "", f"From ``{module}``:", "", f".. currentmodule:: {module}"]
            parts += ["", ".. autosummary::"]
            parts += ["   :toctree: api", "   :nosignatures:", "", *(f"   {name}" for name in public)]
    return "\n".join(parts) + "\n"


def command_line_page() -> str:
    """Return the page of the commands: their help, and the exit codes."""
    parts = ["# Command line", "", "Results go to standard output, everything else to standard error."]
    parts += [
        "",
        "| exit code | meaning |",
        "|---|---|",
        "| 0 | done |",
        "| 1 | `ranktune watch`: the features or the metric have changed |",
        "| 2 | invalid input, which the message names |",
    ]
    parts += ["| 3 | every trial of a study failed |", "| 4 | `--fail-unless-better`, and the model is not better |"]
    parts += ["| 10, 11 | `ranktune retune`: the model was refitted, or replaced |"]
    parts += ["| 70 | an unexpected error; the message names a file with the details |", "| 130 | interrupted |"]
    for words in ([], *([name] for name in _commands())):
        command = " ".join(["ranktune", *words])
        parts += ["", f"## {command}", "", "```text", _help(words), "```"]
    return "\n".join(parts) + "\n"


def _commands() -> Iterable[str]:
    from ranktune.command_line.app import app

    for command in app.registered_commands:
        yield command.name or str(getattr(command.callback, "__name__", "")).removesuffix("_command").replace("_", "-")


def _help(words: list[str]) -> str:
    environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "ranktune", *words, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return done.stdout.strip("\n").replace("python -m ranktune", "ranktune", 1)


_STUDY_FILE = """# Study files

`ranktune tune study.toml` runs a study that is declared in a file. The fields of the file are the arguments of `ranktune.tune`. Most
have the names of the options of `ranktune tune`, with `_` instead of `-`; `solvers` is `--solver`. Options that may be repeated
are lists. Options beside the file take precedence. Fields without an option are for the file and for Python alone.

```toml
data = "train.txt"
test = "test.txt"
metric = "ndcg@10"
also = ["map"]
solvers = ["RankSVM", "RidgeRanker"]
trials = 6

[space]
"RankSVM.C" = { low = 0.001, high = 10.0 }
"RankSVM.loss" = ["l2"]

[reading]
missing = "zero"
```

`[space]` limits the range of a parameter, or the values that it may have. `[reading]` has options of readers.

| field | option | default | meaning |
|---|---|---|---|
"""


def _study_file() -> str:
    fields = [one for one in declared(TuneArguments) if not one.setting.python_only]
    rows = ((one.name, _option(one), _as_toml(one), re.sub(r"([*|])", r"\\\1", one.setting.help)) for one in fields)
    return _STUDY_FILE + "".join(
        f"| `{name}` | {option} | {default} | {text} |\n" for name, option, default, text in rows
    )


def _option(one: DeclaredField) -> str:
    """Return the option of `ranktune tune` for a field, nothing where there is none."""
    names = one.setting.options or (f"--{one.name.replace('_', '-')}",)
    return f"`{names[0]}`" if has_option(TuneArguments, one) and not one.setting.positional else ""


def _as_toml(one: DeclaredField) -> str:
    """Return the default of a field as a study file spells it, nothing where there is none."""
    return "" if one.default is None or one.default is MISSING else f"`{json.dumps(one.default)}`"
