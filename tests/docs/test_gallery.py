"""The scripts of the gallery: all run, each figure says what it shows, and the last run of all is kept."""

import ast
import json
import re
from pathlib import Path

import pytest

pytest.importorskip("ranktune.docs.pages", reason="wheels do not hold what builds the site: pip install -e .")

from ranktune.docs.scripts import GALLERY, LAST_RUN, run_script, scripts

SLOWEST = 25.0


def name_of(script: Path) -> str:
    return f"{script.parent.name}/{script.name}"


@pytest.mark.slow
@pytest.mark.parametrize("script", scripts(), ids=name_of)
def test_script_runs(script: Path) -> None:
    assert run_script(script).wrong == ""


@pytest.mark.parametrize("script", scripts(), ids=name_of)
def test_script_begins_with_a_title_and_a_paragraph(script: Path) -> None:
    text = ast.get_docstring(ast.parse(script.read_text()))
    assert text is not None
    heading, _, paragraph = text.partition("\n\n")
    title, line = heading.split("\n")
    assert line == "=" * len(title), "sphinx-gallery takes a title with a line below it"
    assert len(paragraph) > 80
    assert not re.search(r"^# %%\n(?!# )", script.read_text(), re.MULTILINE), "a cell begins with what it does"
    assert len(title) <= 60, "a title is one line below a thumbnail, or two"


def test_every_script_is_in_a_section() -> None:
    sections = {path.parent for path in GALLERY.glob("*/README.txt")}
    assert {script.parent for script in scripts()} == sections
    assert len(scripts()) >= 15


def test_last_run_is_of_these_scripts() -> None:
    last = json.loads(LAST_RUN.read_text())
    assert [ran["script"] for ran in last["scripts"]] == [name_of(script) for script in scripts()], (
        "run `python -m ranktune.docs gallery`"
    )
    slow = {ran["script"]: ran["seconds"] for ran in last["scripts"] if ran["seconds"] > SLOWEST}
    assert not slow, "a reader waits for it: use fewer queries or trials"


def test_faults_of_a_script_are_named(tmp_path: Path) -> None:
    script = tmp_path / "plot_bare.py"
    script.write_text("import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.title('Bare')\n")
    assert run_script(script, tmp_path).wrong == "axes without labels: ['Bare']"
    assert (tmp_path / "plot_bare_1.png").stat().st_size > 0


def test_warnings_of_a_script_are_wrong(tmp_path: Path) -> None:
    script = tmp_path / "plot_warns.py"
    script.write_text("import warnings\nwarnings.warn('rows are taken as one query')\n")
    assert "UserWarning: rows are taken as one query" in run_script(script).wrong


def test_error_of_a_script_is_what_is_wrong(tmp_path: Path) -> None:
    script = tmp_path / "plot_broken.py"
    script.write_text("raise ValueError('no such data')\n")
    assert run_script(script).wrong.endswith("ValueError: no such data")


def test_live_report_names_its_study(tmp_path: Path) -> None:
    from ranktune.docs.live_report import write_live_report

    write_live_report(tmp_path / "live" / "report.html")
    page = (tmp_path / "live" / "report.html").read_text()
    assert "shop" in page
    assert str(tmp_path.parent) not in page
