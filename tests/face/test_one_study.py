"""One finished study, as it is seen everywhere: the same four lines, evidence in words and numbers, tables that fit."""

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ranktune
from ranktune.dashboards.views.registry import view_json
from tests.support.commands import SOLVERS, letor
from tests.support.commands import ranktune as run
from tests.support.finished import Finished
from tests.support.reports import payload_of
from tests.support.study_samples import concluded, evidence_of, study_data, trials_of

LINES = ("Use ", "Expect ndcg@10 of ", "Whether it is better than the ranking of today ", "Model: ")
"""How the four lines begin, of a study without a baseline."""
MARGIN = 0.01


@pytest.fixture(scope="module")
def home(finished: Finished, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a study of five solvers and their blends, with a report."""
    home = finished.copied(tmp_path_factory.mktemp("one"), "blend")
    run("show", "blend", "--home", home, "--page", home / "blend" / "report.html", cwd=home)
    return home


@cache
def shown(home: Path, *words: str) -> str:
    """What `ranktune show` prints of the study."""
    return run("show", "blend", "--home", home, *words, cwd=home).stdout


@cache
def report(home: Path) -> Mapping[str, Any]:
    """The views of the report by name."""
    return {view["key"]: view for view in payload_of((home / "blend" / "report.html").read_text())["views"]}


def plain(text: str) -> str:
    """Text with single spaces, without escapes, and without the options and arguments in which faces differ."""
    return re.sub(r"--\S+ [^\s`]+|\w+='[^']*'|(/\S*)?\bblend/|\\", "", " ".join(text.split()))


def panel(home: Path, view: str, key: str) -> Mapping[str, Any]:
    """A panel of the report."""
    (found,) = [each for each in report(home)[view]["panels"] if each["key"] == key]
    return dict(found)


def rows_of(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [dict(zip(table["columns"], row, strict=True)) for row in table["rows"]]


def test_every_face_has_the_four_lines(home: Path) -> None:
    text = shown(home)
    said = [line for line in text.splitlines() if line.startswith(LINES)]
    assert [line[: len(start)] for line, start in zip(said, LINES, strict=True)] == [*LINES]
    assert "Details: `ranktune show blend --wide`." in text
    conclusion = json.loads(shown(home, "--json"))["conclusion"]
    lines = [plain(line) for line in (*(conclusion[name] for name in ("use", "expect", "gain")), *conclusion["next"])]
    found = ranktune.resume("blend", home=home)
    answers = " ".join(str(row["answer"]) for row in rows_of(panel(home, "overview", "conclusion")["table"]))
    html = found._repr_html_().replace("&#x27;", "'")
    assert "<code>ranktune export" in html and "`" not in html
    html = re.sub("</?code>", "`", html)
    faces = {
        "terminal": plain(text), "Python": plain(str(found)), "notebook": plain(html),
        "Markdown": plain(shown(home, "--format", "markdown")), "report": plain(answers),
    }  # fmt: skip
    for name, face in faces.items():
        assert [line for line in lines if line not in face] == [], name
    assert "as baseline='FILE'" in " ".join(str(found).split()) and "as --baseline FILE" in " ".join(text.split())
    hidden = [line for line in conclusion["details"] if plain(line) in faces["terminal"] + faces["notebook"]]
    assert hidden == [] and all(plain(line) in plain(shown(home, "--wide")) for line in conclusion["details"])


def test_as_good_is_shown_by_an_interval_and_nothing_is_fastest(home: Path) -> None:
    """Evidence on test and by validation is weighted by its precision, the inverse of the squared width."""
    text = plain(shown(home, "--wide"))
    assert "fastest" not in text and "Not significantly different" not in text
    rows = {row["solver"]: row for row in json.loads(shown(home, "--json"))["leaderboard"]}
    good = re.findall(r"Shown to be as good, within 0\.01: ([^.]*)\.", text)
    named = {*(name for each in good for name in each.split(", ")), *re.findall(r"(\w+) is shown to be as good", text)}
    shown_to_be = set()
    for name, row in rows.items():
        parts = [(row[part], *row[f"{part}_interval"]) for part in ("difference", "validated") if row[part] is not None]
        known = [(mean, (high - low) ** -2.0) for mean, low, high in parts if high > low]
        if known and row["verdict"] != "worse":
            weights = [weight for _, weight in known]
            mean = sum(weight * each for each, weight in known) / sum(weights)
            if mean - 0.5 / math.sqrt(sum(weights)) > -MARGIN:
                shown_to_be.add(name)
    assert named == shown_to_be


def test_the_first_page_has_the_conclusion_one_picture_what_drives_it_an_example_and_commands(home: Path) -> None:
    panels = report(home)["overview"]["panels"]
    assert [each["key"] for each in panels[:5]] == ["conclusion", "leaderboard", "drivers", "use", "example"]
    assert [each["key"] for each in panels[:5] if each["figure"]] == ["leaderboard", "drivers"]
    drivers, use, example = (rows_of(each["table"]) for each in panels[2:5])
    assert len(drivers) <= 8 and {row["A higher value ranks"] for row in drivers} <= {"higher", "lower", "either way"}
    assert {"Grade", "Rank by RankSVM"} < {*example[0]} or len([name for name in example[0] if "Rank by" in name]) == 2
    assert all(str(row["run"]).startswith("ranktune") for row in use)


def test_each_page_asks_one_question_and_answers_it(home: Path) -> None:
    questions = [view.get("question") or "" for view in report(home).values()]
    assert len({*questions}) == len(questions) and all(each.count("?") == 1 for each in questions)
    answered = [view for view in report(home).values() if any(each.get("answer") for each in view["panels"])]
    assert {"progress", "solvers", "queries", "trade-offs"} <= {view["key"] for view in answered}


def test_trials_count_from_one_on_pages_as_in_the_terminal(home: Path) -> None:
    trials = rows_of(panel(home, "trials", "trials")["table"])
    assert sorted(row["trial"] for row in trials) == [*range(1, len(trials) + 1)]
    history = rows_of(panel(home, "progress", "history-0")["table"])
    assert sorted(row["Trial"] for row in history) == [*range(1, len(trials) + 1)]


def test_the_chosen_model_is_on_its_own_front() -> None:
    """Nothing on the front is worse and dearer than the chosen model, which is better than each of the trials."""
    data = study_data(trials_of(24), evidence_of(), result=concluded(value=0.99))
    panels = {each["key"]: rows_of(each["table"]) for each in view_json("trade-offs", data)["panels"]}
    for key in ("nonzeros-0", "bytes-0"):
        cost, metric = [name for name in panels[key][0] if name not in ("What", "Trial", "Solver", "Stopped after")]
        (chosen,) = [row for row in panels[key] if row["What"] == "leaderboard" and row[metric] == 0.99]
        front = [row for row in panels[key] if "front" in row["What"]]
        assert front and all(row[metric] >= 0.99 or row[cost] < chosen[cost] for row in front)


def test_counts_of_trials_are_whole_however_few() -> None:
    (figure,) = [each["figure"] for each in view_json("progress", study_data(trials_of(1)))["panels"][:1]]
    axis = figure["layout"]["xaxis"]
    assert axis["dtick"] == 1 and axis["range"][0] > 0.0


def test_marks_that_a_page_promises_are_drawn_for_many_models_too() -> None:
    labels = tuple(f"M{k}" for k in range(14))
    data = study_data(trials_of(4), evidence_of(labels, 200), result=concluded(labels=labels))
    (panel,) = [each for each in view_json("solvers", data)["panels"] if each["key"] == "verdicts"]
    assert "* marks" in panel["note"] and "text" in panel["figure"]["data"][0]["texttemplate"]


@pytest.mark.parametrize("columns", ["40", "80", None])
def test_a_terminal_is_never_exceeded_and_names_are_whole(
    columns: str | None, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns) if columns else monkeypatch.delenv("COLUMNS", raising=False)
    text = run("show", "blend", "--home", home, cwd=home).stdout
    table = text.partition("\nUse ")[0]
    assert max(map(len, table.splitlines())) <= int(columns or 80)
    assert max(len(line) for line in text.splitlines() if "/" not in line) <= int(columns or 80)
    assert all(f" {row.solver} " in table for row in ranktune.resume("blend", home=home).leaderboard)


def test_resume_of_what_is_finished_says_so_and_shows_it(home: Path) -> None:
    done = run("resume", "blend", "--home", home, cwd=home)
    assert "study 'blend' is finished; --trials gives it more trials" in done.stderr
    assert "refitting" not in done.stderr and plain(shown(home)) == plain(done.stdout)


def test_one_trial_is_one_trial(tmp_path: Path) -> None:
    letor(tmp_path / "train.txt", 20, 1)
    done = run("tune", "train.txt", *SOLVERS[2:], "--trials", 1, "--name", "one", "--json", cwd=tmp_path)
    assert json.loads(run("show", "one", "--json", cwd=tmp_path).stdout) == json.loads(done.stdout)
    assert "one" in run("show", cwd=tmp_path).stdout
    page = json.dumps(payload_of((tmp_path / "ranktune-runs" / "one" / "report.html").read_text()))
    assert "1 trial" in done.stderr and not re.search(r"\b1 \w*trials\b", done.stderr + done.stdout + page)
