"""The command line in tests: in this process with its streams and exit code, or by its commands alone; its files."""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterable
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from ranktune import cli
from ranktune.command_line.app import app
from ranktune.solvers.core.errors import RankTuneWarning

SOLVERS = ("--solver", "RankSVM", "--solver", "RidgeRanker", "--jobs", "1", "--sampler", "random")


def letor(path: Path, queries: int, seed: int, documents: int = 10) -> Path:
    """Write a small LETOR file whose grades follow the first two of four features."""
    generator = np.random.default_rng(seed)
    lines: list[str] = []
    for q in range(queries):
        for _ in range(documents):
            x = generator.random(4)
            grade = int(np.digitize(x[0] - 0.5 * x[1] + 0.1 * generator.normal(), [0.2, 0.5]))
            features = " ".join(f"{j}:{v:.6f}" for j, v in enumerate(x, start=1))
            lines.append(f"{grade} qid:{seed}{q} {features} # docid = D{len(lines)}\n")
    path.write_text("".join(lines))
    return path


def write_letor(path: Path, X: Iterable[Iterable[float]], grades: Iterable[float], qid: Iterable[object]) -> Path:
    """Write documents as LETOR text, with all digits of their features."""
    rows = zip(X, grades, qid, strict=True)
    lines = [f"{float(y):g} qid:{q} " + " ".join(f"{k}:{float(v)!r}" for k, v in enumerate(x, 1)) for x, y, q in rows]
    path.write_text("\n".join(lines) + "\n")
    return path


def study_file(path: Path, **fields: object) -> str:
    """Write a study file, and return its path."""
    path.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items()))
    return str(path)


def ranktune(*arguments: object, cwd: Path, check: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command line in this process as a user does in a folder, and return what it wrote to each stream."""
    written = BytesIO(), BytesIO()
    with pytest.MonkeyPatch.context() as patch, mock.patch.dict(os.environ), warnings.catch_warnings():
        warnings.simplefilter("always", RankTuneWarning)  # printed, as it is where no test runs
        patch.chdir(cwd)
        patch.delenv("RANKTUNE_HOME", raising=False)
        patch.setattr(sys, "path", [*sys.path])  # to which the folder is added
        for name, stream in zip(("stdout", "stderr"), written, strict=True):
            patch.setattr(sys, name, TextIOWrapper(stream, "utf-8", write_through=True))
        code = ended(patch, *arguments)
        output, errors = (stream.getvalue().decode() for stream in written)
    assert code == check, errors
    assert "Traceback" not in errors
    return subprocess.CompletedProcess([*map(str, arguments)], code, output, errors)


def output_of(code: str, *arguments: object) -> str:
    """Return what a program in another process of Python prints."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def ended(monkeypatch: pytest.MonkeyPatch, *words: object) -> int:
    """Run the command line in this process, as a user does, and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["ranktune", *map(str, words)])
    with pytest.raises(SystemExit) as end:
        cli.main()
    return int(end.value.code or 0)


def called(*words: object, **options: Any) -> Result:
    """Run a command in this process, without what is around it."""
    return CliRunner().invoke(app, [str(word) for word in words], **options)


def succeeded(*words: object) -> str:
    """Run a command, which must succeed, and return what it prints."""
    done = called(*words)
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def printed(what: object, width: int = 120) -> str:
    """Return what a console of this width shows."""
    console = Console(width=width, file=StringIO())
    console.print(what)
    return str(console.file.getvalue())  # type: ignore[attr-defined]
