"""The pages of benchmarks: an introduction each, and the tables and the figure of a stored result.

``benchmarks/about/NAME.md`` is written by hand, ``benchmarks/results/NAME.json`` by a benchmark's option --store.
"""

from __future__ import annotations

from pathlib import Path

from ranktune.docs.benchmark_figures import FIGURES, draw
from ranktune.studies.benchmarks.results import Result
from ranktune.studies.benchmarks.tables import markdown

FOLDER = Path(__file__).parent / "benchmarks"
BUSY = 0.5
"""A load of the machine from which on a page says that other work ran on it."""


def write_benchmark_pages(folder: Path = FOLDER) -> list[Path]:
    """Write the page of each introduction, with the figure and tables of its result if one is stored; return the pages."""
    written = []
    for about in sorted((folder / "about").glob("*.md")):
        name = about.stem
        page, stored = folder / about.name, folder / "results" / f"{name}.json"
        text = about.read_text(encoding="utf-8")
        if stored.exists():
            result = Result.read(stored)
            figure = folder / "figures" / f"{name}.svg" if name in FIGURES else None
            if figure is not None:
                figure.parent.mkdir(exist_ok=True)
                draw(name, result.tables, figure)
            text = page_of(text, result, figure)
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
        written.append(page)
    return written


def page_of(introduction: str, result: Result, figure: Path | None) -> str:
    """Return a page: the introduction, the figure, the tables, and how they were measured."""
    title = introduction.splitlines()[0].removeprefix("# ")
    parts = [introduction.strip(), "", "## Results"]
    if figure is not None:
        parts += ["", f"![{title}: the numbers of the table]({figure.parent.name}/{figure.name})"]
    for table in result.tables:
        parts += ["", markdown(table)]
    return "\n".join([*parts, "", conditions(result)]) + "\n"


def conditions(result: Result) -> str:
    """Return how a result was measured: the command, the machine, the load, the versions."""
    libraries = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    lines = ["## How it was measured", "", "```text", f"$ {result.command}", "```", ""]
    lines.append(
        f"On {result.date} UTC, in {result.seconds:,.0f} seconds, on {result.processor} with {result.cores} cores and "
        f"{result.memory_gb:g} GB of memory, {result.system}, Python {result.python}, {libraries}."
    )
    if result.load >= BUSY:
        lines += ["", f"Other work ran on the machine: its load was {result.load:.1f} at the beginning. Ratios, which "]
        lines[-1] += "come from rounds in which the compared ones take turns, say more than times."
    return "\n".join([*lines, *(["", result.source] if result.source else [])])
