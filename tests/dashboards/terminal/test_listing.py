"""What is listed of studies: score, date and state, of those that run too."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from ranktune.dashboards.terminal.listing import listing, listing_table
from ranktune.tuner.splits.seals import write_sealed
from ranktune.tuner.statistics.measured import Interval
from ranktune.tuner.study.lock import owning
from tests.support.commands import called, printed
from tests.support.page_studies import append, declare, finish, save
from tests.support.study_samples import row_of, trials_of


def listed(home: Path, width: int = 80) -> str:
    return printed(listing_table(listing(home)), width)


def test_a_blend_has_a_score(tmp_path: Path) -> None:
    declare(tmp_path, "s")
    result = finish(tmp_path, "s", ("Blend", "RankSVM"))
    save(replace(result, leaderboard=(row_of("Blend", vali=None),)), tmp_path)
    (line,) = listing(tmp_path)
    assert line["best"] == result.estimate.mean
    save(replace(result, leaderboard=(row_of("Blend", vali=None, again=Interval(0.61, 0.6, 0.62)),)), tmp_path)
    assert "0.6100" in listed(tmp_path)


def test_a_study_has_changed_when_its_last_trial_ended(tmp_path: Path) -> None:
    declare(tmp_path, "s")
    os.utime(tmp_path / "s" / "study.json", (0, 0))
    append(tmp_path, "s", trials_of(3))
    assert listing(tmp_path)[0]["changed"] > "2020"


def test_the_state_is_running_while_a_process_runs_it(tmp_path: Path) -> None:
    declare(tmp_path, "s")
    append(tmp_path, "s", trials_of(3))
    assert [line["state"] for line in listing(tmp_path)] == ["interrupted"]
    arguments = ["show", "s", "--home", str(tmp_path)]
    stopped = called(*arguments).stdout
    assert "3 of 20 trials" in stopped and "`ranktune resume s` continues it." in stopped
    with owning(tmp_path / "s"):
        assert [line["state"] for line in listing(tmp_path)] == ["running"]
        running = called(*arguments).stdout
        assert "It is running" in running and "resume" not in running
        finish(tmp_path, "s")
        assert [line["state"] for line in listing(tmp_path)] == ["running"]
    assert [line["state"] for line in listing(tmp_path)] == ["finished"]


def test_no_number_of_trials_is_promised_where_none_is_known(tmp_path: Path) -> None:
    declare(tmp_path, "s", timeout=60.0, trials=None)
    append(tmp_path, "s", trials_of(3))
    assert "3 trials" in called("show", "s", "--home", str(tmp_path)).stdout
    assert "500" not in listed(tmp_path, 120)


@pytest.mark.parametrize("width", [60, 80])
def test_name_state_score_and_date_are_there_in_any_terminal(tmp_path: Path, width: int) -> None:
    name = "a-study-with-quite-a-long-name"
    declare(tmp_path, name, data="/some/folder/" + 40 * "x" + ".txt")
    finish(tmp_path, name)
    text = listed(tmp_path, width)
    assert max(map(len, text.splitlines())) <= width
    (row,) = [line for line in text.splitlines() if "finished" in line]
    shown = "".join(text.split())
    assert name[:16] in shown and "0.5000" in row and listing(tmp_path)[0]["changed"][:10] in row


def test_all_columns_are_printed_wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    declare(tmp_path, "s")
    finish(tmp_path, "s")
    arguments = ["show", "--home", str(tmp_path)]
    assert "metric" not in called(*arguments).stdout
    assert "metric" in called(*arguments, "--wide").stdout


def test_notes_and_tags_of_earlier_releases_are_listed(tmp_path: Path) -> None:
    for name in ("a", "b"):
        declare(tmp_path, name)
    write_sealed(tmp_path / "a" / "labels.json", json.dumps({"note": "new clicks [2026]", "tags": ["clicks"]}))
    lines = {line["study"]: line for line in listing(tmp_path)}
    assert (lines["a"]["note"], lines["a"]["tags"], lines["b"]["tags"]) == ("new clicks [2026]", ["clicks"], [])
    assert "clicks" in listed(tmp_path, 120) and max(map(len, listed(tmp_path).splitlines())) <= 80
    (tmp_path / "a" / "labels.json").write_text('{"note": 3')
    assert "labels.json is damaged" in str(listing(tmp_path)[0]["note"])


def test_without_tags_there_is_no_column_of_tags(tmp_path: Path) -> None:
    declare(tmp_path, "s")
    assert "tags" not in listed(tmp_path, 120)
