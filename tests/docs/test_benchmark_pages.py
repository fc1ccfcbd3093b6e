"""The pages of benchmarks come from the stored results: one for each introduction, with its tables and figure."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("ranktune.docs.pages", reason="wheels do not hold what builds the site: pip install -e .")

from ranktune.docs.benchmark_figures import FIGURES
from ranktune.docs.benchmark_pages import (
    FOLDER,
    README,
    conditions,
    page_of,
    with_results,
    with_speed,
    write_benchmark_pages,
)
from ranktune.studies.benchmarks.__main__ import app
from ranktune.studies.benchmarks.results import BenchmarkResult, Measurement
from ranktune.studies.benchmarks.tables import BenchmarkTable, Row

NAMES = sorted(path.stem for path in (FOLDER / "about").glob("*.md"))
RESULTS = sorted(path.stem for path in (FOLDER / "results").glob("*.json"))


def test_every_benchmark_has_an_introduction_and_a_place_in_the_index_and_results_are_of_one() -> None:
    """A benchmark without a stored result is named where the goals are printed."""
    commands = {command.name for command in app.registered_commands}
    assert set(NAMES) == commands >= {name.partition(".")[0] for name in RESULTS}
    index = (FOLDER / "index.md").read_text(encoding="utf-8").splitlines()
    assert all(index.count(name) == 1 for name in NAMES) and set(FIGURES) <= set(RESULTS)


@pytest.mark.parametrize("name", RESULTS)
def test_a_stored_result_is_that_of_its_command_and_names_no_place(name: str) -> None:
    result = BenchmarkResult.read(FOLDER / "results" / f"{name}.json")
    assert result.benchmark == name.partition(".")[0] and f"benchmarks {result.benchmark}" in result.command
    assert result.tables and all(table.rows for table in result.tables) and not any(t.failed for t in result.tables)
    assert not re.search(r"(^|[ '\"=])/", conditions(result))  # a page is the same on every machine
    assert all(name in result.versions for name in ("ranktune", "numpy", "scikit-learn"))


def test_pages_are_written_with_their_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for part in ("about", "results"):
        (tmp_path / part).mkdir()
        for name in ("objective", "truth"):
            source = next((FOLDER / part).glob(f"{name}.*"))
            (tmp_path / part / source.name).write_bytes(source.read_bytes())
    first, second = write_benchmark_pages(tmp_path)
    assert [first.name, second.name] == ["objective.md", "truth.md"]
    text = first.read_text(encoding="utf-8")
    assert (
        text.startswith("# Time to an equal objective\n") and "(figures/objective.svg)" in text and "| RankSVM" in text
    )
    figure = tmp_path / "figures" / "objective.svg"
    assert "figures/" not in second.read_text(encoding="utf-8") and list(figure.parent.iterdir()) == [figure]
    before = figure.read_bytes()
    write_benchmark_pages(tmp_path)
    assert figure.read_bytes() == before


def test_a_page_says_how_it_was_measured() -> None:
    table = BenchmarkTable("what it is", [{"solver": "RankSVM", "s": 0.5}], "A remark.")
    result = Measurement().result("solvers", ["solvers"], [table])
    loaded = replace(result, load=4.0, source="From elsewhere.")
    results, figures = {"": loaded, "of others": result}, {"of others": Path("figures/a.svg")}
    text = page_of("# Solvers\n\nAn introduction.\n", results, figures)
    assert "| RankSVM | 0.5 |\n\nA remark." in text and f"$ {result.command}" in text and result.processor in text
    assert "load was 4.0" in text and "From elsewhere." in text
    assert "## Results\n" in text and "## Results, of others\n\n![Solvers: the numbers of" in text
    assert "load was" not in page_of("# Solvers", {"": replace(result, load=0.1)}, {})


def test_pages_show_the_first_table_of_each_stored_result(tmp_path: Path) -> None:
    (tmp_path / "results").mkdir()
    empty = "# A\n\n<!-- results solvers\n-->\n\n<!-- end\n-->\n\nText.\n"
    assert with_results(empty, tmp_path) == empty
    for part, seconds in (("", 0.5), (".of-more", 0.25)):
        tables = [
            BenchmarkTable("what it is", [{"solver": "RankSVM", "s": seconds}]),
            BenchmarkTable("by task", [{"s": 7}]),
        ]
        Measurement().result("solvers", ["solvers"], tables).write(tmp_path / "results" / f"solvers{part}.json")
    text = with_results(empty, tmp_path)
    assert text.index("| RankSVM | 0.5 |") < text.index("Of more: **what it is**") < text.index("| RankSVM | 0.25 |")
    assert "by task" not in text and with_results(text, tmp_path) == text


@pytest.mark.parametrize("page", sorted(FOLDER.parent.glob("explanation/*.md")), ids=lambda page: page.stem)
def test_explanations_show_the_stored_results(page: Path) -> None:
    """If not: python -m ranktune.docs --no-gallery."""
    assert with_results(page.read_text(encoding="utf-8")) == page.read_text(encoding="utf-8")


def test_the_readme_has_the_figures_of_the_newest_results(tmp_path: Path) -> None:
    """If not: python -m ranktune.docs --no-gallery."""
    text = README.read_text(encoding="utf-8")
    assert with_speed(text) == text and "<!-- speed -->" in text
    (tmp_path / "results").mkdir()
    for name, date in (("objective", "2001-01-01"), ("solvers", "2999-01-01")):
        result = BenchmarkResult.read(FOLDER / "results" / f"{name}.json")
        result.write(tmp_path / "results" / f"{name}.json")
        row: Row = {
            "method": "liblinear, Newton",
            "times ours, to 0.0001": 77.0,
            "what": "RankSVM C=1, case a",
            "ours s": 7.5,
        }
        replace(result, date=date, tables=[BenchmarkTable("", [row])]).write(
            tmp_path / "results" / f"{name}.other.json"
        )
    assert "it takes 7.50 s" in with_speed(text, tmp_path) and "1/77 " not in with_speed(text, tmp_path)
