"""A study with one damaged file: a right answer or one sentence, and the other studies are shown."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from ranktune.dashboards.records.study import Watched, open_study
from ranktune.dashboards.terminal.listing import listing, listing_table
from ranktune.dashboards.views.registry import VIEWS, view_json
from ranktune.dashboards.web.page import write_report
from ranktune.dashboards.web.server import make_app
from ranktune.solvers.core.errors import RankTuneError, RankTuneWarning, StudyError
from ranktune.tuner.selection.evidence import write_evidence
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.compatibility import claim
from ranktune.tuner.study.events import Event, Events
from tests.dashboards.web.test_server import asked
from tests.support.page_studies import append, declare, finish
from tests.support.study_samples import PAIR, evidence_of, trials_of

FILES = ("study.json", "result.json", "record.db", "evidence.npz", "lock", "places.json", "events.jsonl", "facts.json")
GARBAGE = (b"", b"\0" * 3000, b"{}", b"[]", b"null", b"[" * 5000, b'{"format": 2, "study": [], "data": 3}', b"\xff\xfe")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    result = tmp_path_factory.mktemp("home")
    for name in ("bad", "good"):
        declare(result, name)
        append(result, name, trials_of(4))
        counts = {"trials": 4, "stopped": 0}
        (result / name / "result.json").write_text(json.dumps(finish(result, name).as_dict() | counts))
        write_evidence(evidence_of(PAIR, 30), result / name / "evidence.npz")
    return result


def check_reading(home: Path) -> None:
    """Check that the list has both studies, and that the damaged one is shown or refused in a sentence."""
    results = {line["study"]: line for line in listing(home)}
    assert results["good"]["state"] == "finished"
    listing_table(list(results.values()))
    try:
        data = Watched(home / "bad").data()
    except RankTuneError as error:
        assert "\n" not in str(error)
        return
    for key in VIEWS:
        try:
            Watched(home / "bad").cached(key, lambda data, key=key: str(view_json(key, data)).encode())  # type: ignore[misc]
        except RankTuneError as error:
            assert "\n" not in str(error)
    assert data.name == "bad"


@pytest.mark.parametrize("file", FILES)
def test_garbage_in_any_file(file: str, home: Path, tmp_path: Path) -> None:
    for content in GARBAGE if file != "record.db" else GARBAGE[:2]:
        shutil.rmtree(tmp_path / "h", ignore_errors=True)
        shutil.copytree(home, tmp_path / "h")
        (tmp_path / "h" / "bad" / file).write_bytes(content)
        check_reading(tmp_path / "h")


@pytest.mark.parametrize("field", ["best", "trials", "failures", "leaderboard", "metric", "estimate", "alternatives"])
def test_a_result_with_other_values_than_it_should_have(field: str, home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "h")
    file = tmp_path / "h" / "bad" / "result.json"
    whole = json.loads(file.read_text())
    for value in (None, 3, "x", [], {}, [1], {"vali": "x"}):
        file.write_text(json.dumps(whole | {field: value}))
        check_reading(tmp_path / "h")


@pytest.mark.parametrize(
    ("seed", "count"),
    [(0, 40), pytest.param(1, 100, marks=pytest.mark.thorough), pytest.param(2, 400, marks=pytest.mark.slow)],
)
def test_evidence_with_a_wrong_byte_is_left_out_with_a_line(seed: int, count: int, home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "h")
    file = tmp_path / "h" / "bad" / "evidence.npz"
    content, generator = file.read_bytes(), np.random.default_rng(seed)
    whole = open_study(home / "bad").evidence[0][1]
    left_out = 0
    for at in generator.choice(len(content), count, replace=False):
        wrong = bytearray(content)
        wrong[at] ^= int(generator.integers(1, 256))
        file.write_bytes(wrong)
        data = open_study(tmp_path / "h" / "bad")
        if data.damage:
            left_out += 1
            assert data.evidence == []
            assert "evidence.npz" in data.damage
            assert data.damage.endswith("`ranktune resume bad` makes it again.")
        else:
            assert all(
                np.array_equal(data.evidence[0][1].values[k], v, equal_nan=True) for k, v in whole.values.items()
            )
    assert left_out > count / 2


def test_pages_and_report_of_a_study_without_its_evidence(home: Path, tmp_path: Path) -> None:
    shutil.copytree(home, tmp_path / "h")
    (tmp_path / "h" / "bad" / "evidence.npz").write_bytes(b"damaged")
    with pytest.warns(RankTuneWarning, match=r"evidence.npz.* is left out"):
        write_report(tmp_path / "h" / "bad", tmp_path / "out.html")
    app = make_app(tmp_path / "h")
    for path in ("/", "/api/studies", "/study/bad", "/study/good", *(f"/api/view/bad/{key}" for key in VIEWS)):
        assert asked(app, path).status_code == 200, path
    panels = asked(app, "/api/view/bad/overview").json()["panels"]
    assert ["evidence.npz" in panel["note"] for panel in panels if panel["key"] == "conclusion"] == [True]


def test_what_a_record_lacks_of_its_log_is_named(tmp_path: Path) -> None:
    declare(tmp_path, "s")
    append(tmp_path, "s", trials_of(4))
    with Events(tmp_path / "s") as events:
        for number in range(6):
            events.write(Event.FINISHED, trial=number, split="", value=0.5)
    (line,) = listing(tmp_path)
    assert "2 finished trials of the log" in line["damage"]
    assert "2 finished trials of the log" in open_study(tmp_path / "s").damage


def test_the_record_of_another_study_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        study = declare(tmp_path, name)
        append(tmp_path, name, trials_of(2))
        record = Record(tmp_path / name, name, study.metric)
        claim(record.study, study, "digest" if name == "a" else "another")
        record.close()
    open_study(tmp_path / "a")
    with pytest.raises(StudyError, match="is another study's"):
        open_study(tmp_path / "b")
    assert "is another study's" in {line["study"]: line for line in listing(tmp_path)}["b"]["state"]
