"""The pages of benchmarks: an introduction each, and the tables and the figure of stored results.

``benchmarks/about/NAME.md`` is written by hand, ``benchmarks/results/NAME.json`` by a benchmark's option --store, and
``NAME.PART.json`` for another part of the data. Pages that are written by hand show the first table of each result of
NAME between the comments ``results NAME`` and ``end``. What the README says of speed is written between the comments
``speed`` and ``end``, from the newest results.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

from ranktune.docs.benchmark_figures import FIGURES, draw
from ranktune.studies.benchmarks.results import BenchmarkResult
from ranktune.studies.benchmarks.tables import markdown

FOLDER = Path(__file__).parent / "benchmarks"
README = Path(__file__).resolve().parent.parent / "README.md"
BUSY = 0.5
"""A load of the machine from which on a page says that other work ran on it."""


def write_benchmark_pages(folder: Path = FOLDER) -> list[Path]:
    """Write the page of each introduction, with the figure and tables of its results if any are stored; return the pages."""
    written = []
    for about in sorted((folder / "about").glob("*.md")):
        name = about.stem
        text, results = about.read_text(encoding="utf-8"), results_of(name, folder)
        if results:
            text = page_of(text, results, _drawn(name, results, folder / "figures"))
        _write(folder / about.name, text)
        written.append(folder / about.name)
    return written


def _drawn(name: str, results: Mapping[str, BenchmarkResult], folder: Path) -> dict[str, Path]:
    """Write the figures of results, and return their files by part."""
    drawn = {}
    for part, result in results.items():
        stem = f"{name}.{part.replace(' ', '-')}" if part else name
        if stem in FIGURES:
            folder.mkdir(exist_ok=True)
            drawn[part] = folder / f"{stem}.svg"
            draw(stem, result.tables, drawn[part])
    return drawn


def write_summaries(folder: Path = FOLDER) -> None:
    """Bring the tables of results up to date in the pages that are written by hand."""
    for page in folder.parent.glob("explanation/*.md"):
        _write(page, with_results(page.read_text(encoding="utf-8"), folder))
    _write(README, with_speed(README.read_text(encoding="utf-8"), folder))


def with_speed(text: str, folder: Path = FOLDER) -> str:
    """Return the README with the sentences on speed that the newest stored results give."""
    objective, solvers = (
        max(results_of(name, folder).values(), key=lambda r: r.date) for name in ("objective", "solvers")
    )
    table = objective.tables[0]
    rival = next(row for row in table.rows if str(row["method"]).startswith("liblinear, Newton"))
    ours = next(row for row in solvers.tables[0].rows if row["what"] == "RankSVM C=1, case a")
    factor, seconds = (float(str(cell)) for cell in (rival["times ours, to 0.0001"], ours["ours s"]))
    said = (
        f"`RankSVM` reaches an equal objective in 1/{factor:.0f} of the processor time of scikit-learn with liblinear on "
        "all pairs "
        f"({table.title.partition(': ')[2]}). On 239,270 documents with 136 features it takes {seconds:.2f} s."
    )
    lines = "\n".join(textwrap.wrap(f"{said} <!-- end -->", 120, break_on_hyphens=False))
    return re.sub(r"(<!-- speed -->)\n.*?<!-- end -->", lambda at: f"{at[1]}\n{lines}", text, flags=re.DOTALL)


def _write(page: Path, text: str) -> None:
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def results_of(name: str, folder: Path = FOLDER) -> dict[str, BenchmarkResult]:
    """Return the stored results of a benchmark by the name of their part, first that without a name."""
    stored = sorted([*folder.glob(f"results/{name}.json"), *folder.glob(f"results/{name}.*.json")], key=_part)
    return {_part(path): BenchmarkResult.read(path) for path in stored}


def _part(path: Path) -> str:
    return path.stem.partition(".")[2].replace("-", " ")


def with_results(text: str, folder: Path = FOLDER) -> str:
    """Return a page with the first table of each stored result of the benchmarks that it names."""

    def shown(place: re.Match[str]) -> str:
        tables = [_titled(part, markdown(result.tables[0])) for part, result in results_of(place[2], folder).items()]
        return "\n\n".join([place[1], *tables, place[3]])

    return re.sub(r"(<!-- results (\S+)\n-->)\n.*?(<!-- end\n-->)", shown, text, flags=re.DOTALL)


def _titled(part: str, text: str) -> str:
    return f"{part.capitalize()}: {text}" if part else text


def page_of(introduction: str, results: Mapping[str, BenchmarkResult], figures: Mapping[str, Path]) -> str:
    """Return a page: the introduction, and of each result the figure, the tables, and how they were measured."""
    title = introduction.splitlines()[0].removeprefix("# ")
    parts = [introduction.strip()]
    for part, result in results.items():
        parts += ["", f"## Results{part and f', {part}'}"]
        if part in figures:
            parts += ["", f"![{title}: the numbers of the table]({figures[part].parent.name}/{figures[part].name})"]
        for table in result.tables:
            parts += ["", markdown(table)]
        parts += ["", conditions(result)]
    return "\n".join(parts) + "\n"


def conditions(result: BenchmarkResult) -> str:
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
