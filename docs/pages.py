"""The code of a page: fenced blocks of commands and of Python, and what they print.

    ```console          A line that begins with "$ " is a command; the lines below it are what it prints.
    $ ranktune solvers  A command may go on after a backslash, or with a text up to END after <<'END'.
    ...
    ```

    ```python           Code. What it prints is the fence ``output`` that follows, if one does.
    ```

    <!-- run            Commands that a reader does not see: they make the files that the page speaks of.
    COMMAND
    -->

A line "..." in an output stands for any lines. ``` ```text ``` fences are never run. On a page with the comment
<!-- exact --> every number of an output is what comes, besides seconds and bytes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

FOLDER = Path(__file__).resolve().parent

EXACT = "<!-- exact -->"

_FENCE = re.compile(
    r"^```\{?(?P<language>console|python)\}?\n(?P<body>.*?)^```$(?:\n+```output\n(?P<output>.*?)^```$)?"
    r"|^<!-- run\n(?P<hidden>.*?)^-->$",
    flags=re.DOTALL | re.MULTILINE,
)


@dataclass
class Step:
    """A command or a block of Python, and what the page says that it prints; exact: number by number."""

    language: str
    code: str
    output: str | None
    exact: bool = False
    printed: str = field(default="", init=False)


@dataclass(frozen=True)
class Block:
    """A fence of a page, from one character of it to another, with its steps."""

    start: int
    stop: int
    steps: tuple[Step, ...]
    hidden: bool = False

    def text(self) -> str:
        """Return the fence with what its steps have printed."""
        if self.steps[0].language == "python":
            (step,) = self.steps
            output = "" if not step.printed else f"\n\n```output\n{_lines(step.printed)}```"
            return f"```python\n{step.code}```{output}"
        lines = [f"$ {step.code}\n{_lines(step.printed)}" for step in self.steps]
        return "```console\n" + "".join(lines) + "```"


def pages(folder: Path = FOLDER) -> list[Path]:
    """Return the pages that have code to run, in the order of their paths."""
    return [path for path in sorted(folder.rglob("*.md")) if any(True for _ in blocks(path.read_text()))]


def blocks(text: str) -> Iterator[Block]:
    """Yield the blocks of a page that are run, in their order."""
    exact = EXACT in text
    for match in _FENCE.finditer(text):
        if match["hidden"] is not None:
            steps = tuple(Step("console", line, None) for line in match["hidden"].splitlines() if line.strip())
            yield Block(*match.span(), steps, hidden=True)
        elif match["language"] == "python":
            yield Block(*match.span(), (Step("python", match["body"], match["output"], exact),))
        else:
            yield Block(*match.span(), tuple(_commands(match["body"], exact)))


def _lines(printed: str) -> str:
    """Return what was printed as whole lines without spaces at their ends."""
    return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())


def _commands(body: str, exact: bool) -> Iterator[Step]:
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        while command.endswith("\\"):
            line, _, output = output.partition("\n")
            command = f"{command}\n{line}"
        if match := re.search(r"<<'(\w+)'$", command):
            text, end, output = output.partition(f"\n{match[1]}\n")
            command = f"{command}\n{text}{end.rstrip()}"
        yield Step("console", command, output, exact)
