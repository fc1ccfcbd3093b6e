"""Pages are run: every command and every block of Python, in order, in one folder, as a reader would."""

from __future__ import annotations

import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

from ranktune.docs.pages import Block, Step, blocks

ALIKE = 0.75
"""Share of the words of an output that must be those of the page. Numbers do not count: times and versions differ."""

_MEASURED = re.compile(r"\d[\d.,:]* ?(?:s|ms|us|min|kB|MB|GB|bytes)\b")
"""What differs from run to run, or from version to version."""

END_SECONDS = 30.0
"""Seconds that a Python session may take to end."""

_INTERPRETER = """
import contextlib, io, json, sys, traceback
names = {"__name__": "__main__"}
for line in sys.stdin:
    printed, error = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(json.loads(line), "<page>", "exec"), names)
        except BaseException:
            error = traceback.format_exc()
    print(json.dumps([printed.getvalue(), error]), flush=True)
"""


def run(page: Path, folder: Path | None = None) -> list[Block]:
    """Run a page in a folder, a new one by default, and return its blocks with what their steps printed.

    Raises RuntimeError where a step fails. A command that is to fail says so: `COMMAND; echo "exit code $?"`.
    """
    if folder is None:
        with tempfile.TemporaryDirectory() as temporary:
            return run(page, Path(temporary))
    page_blocks = list(blocks(page.read_text()))
    with _Reader(folder) as reader:
        for step in (step for block in page_blocks for step in block.steps):
            step.printed = reader.python(step.code) if step.language == "python" else reader.command(step.code)
    return page_blocks


def refresh(page: Path) -> None:
    """Run a page and write what its code prints into it."""
    text, parts, end = page.read_text(), list[str](), 0
    for block in run(page):
        parts += [text[end : block.start], text[block.start : block.stop] if block.hidden else block.text()]
        end = block.stop
    page.write_text("".join([*parts, text[end:]]))


def difference(step: Step) -> str | None:
    """Return how what a step printed differs from its page, None where it says the same."""
    if step.output is None:
        return None
    if _alike(step.output, step.printed) and (not step.exact or _same_numbers(step.output, step.printed)):
        return None
    lines = difflib.unified_diff(step.output.splitlines(), step.printed.splitlines(), "page", "printed", lineterm="")
    return f"{step.code}\n" + "\n".join(lines)


class _Reader:
    """Someone who types what a page says, in one folder, with one Python session."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environment = {**os.environ, "COLUMNS": "80", "NO_COLOR": "1", "TERM": "dumb"}
        self.environment["LOKY_MAX_CPU_COUNT"] = "1"  # studies are the same on machines with more cores
        self.environment.pop("RANKTUNE_HOME", None)
        self.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"

    def __enter__(self) -> Self:
        self._session = subprocess.Popen(
            [sys.executable, "-c", _INTERPRETER],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._session.stdin is not None and self._session.stdout is not None
        self._session.stdin.close()  # it ends as a reader's does, and its worker processes with it
        try:
            self._session.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._session.kill()
            self._session.wait()
        self._session.stdout.close()

    def command(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"{command}\nended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def python(self, code: str) -> str:
        assert self._session.stdin is not None and self._session.stdout is not None
        self._session.stdin.write(json.dumps(code) + "\n")
        self._session.stdin.flush()
        printed, error = json.loads(self._session.stdout.readline())
        if error is not None:
            raise RuntimeError(f"{code}\n{error}")
        return str(printed)


def _alike(page: str, printed: str) -> bool:
    """Return whether two outputs have nearly the same words, of which any are allowed where the page has "..."."""
    expected, printed_words = _words(page), _words(printed)
    if "..." in expected:
        return set(expected) - {"..."} <= set(printed_words)
    return (
        expected == printed_words
        or difflib.SequenceMatcher(None, expected, printed_words, autojunk=False).ratio() >= ALIKE
    )


def _same_numbers(page: str, printed: str) -> bool:
    """Return whether two outputs have the same numbers in their order, of which any are allowed for "..."."""
    expected, came = _numbers(page), _numbers(printed)
    if "..." not in _words(page):
        return expected == came
    left = iter(came)
    return all(number in left for number in expected)


def _numbers(text: str) -> list[str]:
    return re.findall(r"\d+(?:[.,]\d+)*", _MEASURED.sub("", text))


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W\d_]+|\.\.\.", text)
