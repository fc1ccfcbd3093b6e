"""Words for grades: which is which is asked together with all else that a table leaves open."""

import itertools
import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.columns.decisions import Undecided, answered
from ranktune.solvers.data.columns.usual import SCALE, usual_grades
from tests.support.commands import called, ended, letor
from tests.support.shop_table import shop_table

untyped: Any = ranktune
pytestmark = pytest.mark.filterwarnings("ignore::ranktune.solvers.core.errors.RankTuneWarning")
ESCI = ("Irrelevant", "Complement", "Substitute", "Exact")
COLOURS = ("rot", "gelb", "hell blau", "weiß")
FAST = ("--trials", "2", "--solver", "RidgeRanker", "--solver", "BestFeature", "--jobs", "1", "--name", "shop")


def worded(words: tuple[str, ...]) -> pl.DataFrame:
    table = shop_table(queries=120)
    return table.with_columns(grade=pl.Series([words[grade] for grade in table["grade"]]))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKTUNE_HOME", raising=False)
    return tmp_path


@pytest.mark.parametrize("words", [ESCI, ("bad", "fair", "good", "perfect"), tuple("ICSE")], ids=str)
def test_the_second_command_has_the_numbers_of_the_words(
    words: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    worded(words).write_csv("shop.csv")
    shop_table(queries=120).write_csv("numbers.csv")
    assert ended(monkeypatch, "data", "numbers.csv") == 0
    plain = capsys.readouterr().out
    assert ended(monkeypatch, "data", "shop.csv", "--json") == 0
    described = json.loads(capsys.readouterr().out)
    count = {str(k): n for k, n in sorted(shop_table(queries=120)["grade"].value_counts().rows())}
    assert described["parts"][0]["grades"] == count and len(described["decisions"]) > 5
    command = shlex.split(described["command"])
    at = command.index("--grades")
    assert command[at + 1] == ",".join(f"{word}={number}" for number, word in enumerate(words))
    others = command[:at] + command[at + 2 :]
    assert [word.replace("shop.csv", "numbers.csv") for word in others] == shlex.split(plain.splitlines()[-1])
    assert ended(monkeypatch, "tune", "shop.csv") == 2
    assert shlex.split(capsys.readouterr().err.splitlines()[-1]) == command


def test_words_of_no_known_order_are_asked_for_and_nothing_is_said_of_the_grades(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    worded(COLOURS).write_csv("shop.csv")
    for given, left in (("", COLOURS), ("rot=0.25,gelb=1", COLOURS[2:])):
        more = ("--grades", given) if given else ()
        assert ended(monkeypatch, "data", "shop.csv", *more, "--json") == 0
        described = json.loads(capsys.readouterr().out)
        assert described["parts"][0]["queries"] == 120 and described["columns"] and "remarks" not in described
        assert not [key for key in described["parts"][0] if "grade" in key]
        options = shlex.split(described["command"])
        answer = options[len(options) - options[::-1].index("--grades")]
        assert set(answer.split(",")) == {*filter(None, given.split(",")), *(f"{word}=NUMBER" for word in left)}
        assert ended(monkeypatch, *options[1:]) == 2  # it must be filled in
        assert "pairs of WORD=NUMBER" in capsys.readouterr().err
    filled = described["command"].replace("=NUMBER", "=2")
    assert called(*shlex.split(filled)[1:], "--drop", "clicks,orders", *FAST).exit_code == 0
    assert len(ranktune.load_model("ranktune-runs/shop/model.json").feature_names or ()) > 5


@pytest.mark.parametrize("kind", ["polars", "pandas", "csv"])
def test_in_python_the_answers_make_the_grades(kind: str, folder: Path) -> None:
    table = worded(ESCI)
    table.write_csv("shop.csv")
    data = {"polars": table, "pandas": table.to_pandas(), "csv": "shop.csv"}[kind]
    with pytest.raises(Undecided) as info:
        ranktune.read(data)
    answers = answered({}, info.value.decisions)
    queries = untyped.read(data, **answers)
    numbers = [ESCI.index(word) for word in table["grade"]]
    assert queries.in_caller_order(queries.grades).tolist() == numbers
    with pytest.raises(Undecided, match=r'grades="Exact=3,([A-Z][a-z]*=NUMBER,?){3}"') as info:
        untyped.read(data, **(answers | {"grades": {"Exact": 3.0}}))
    with pytest.raises(ParameterError, match="WORD=NUMBER"):
        untyped.read(data, **answered(answers, info.value.decisions))


@pytest.mark.parametrize("grades", [["Good", 3, 1], ["Good", "3", "1"], ["Good", 0.5, None]], ids=str)
def test_beside_numbers_no_number_of_a_word_is_usual(grades: list[object], folder: Path) -> None:
    frame = pd.DataFrame({"qid": [1, 1, 1], "label": grades, "docid": ["a", "b", "c"], "bm25": [1.0, 2.0, 3.0]})
    (folder / "judged").write_text(
        "".join(f"1 0 {d} {y}\n" for d, y in zip("abc", grades, strict=True) if y is not None)
    )
    for data, qrels in ((frame, {}), (frame[["qid", "docid", "bm25"]], {"qrels": "judged"})):
        with pytest.raises(Undecided, match='grades="Good=NUMBER"'):
            untyped.read(data, **qrels)
    for good in ("Good=2", {"Good": 2}):
        read = untyped.read(frame[["qid", "docid", "bm25"]], qrels="judged", grades=good)
        assert read.grades.tolist() == [2.0 if y == "Good" else float(str(y or 0)) for y in grades]


def test_dates_are_no_words_for_grades() -> None:
    frame = pd.DataFrame({"qid": [1, 1], "label": pd.to_datetime(["2026-01-01", "2026-01-02"]), "bm25": [1.0, 2.0]})
    with pytest.raises(DataError, match=r"'label' holds timestamp.*, not numbers"):
        ranktune.read(frame)


def test_a_column_of_many_words_is_not_of_grades(folder: Path) -> None:
    table = shop_table(queries=40).rename({"title": "label", "grade": "score"})
    with pytest.raises(
        Undecided, match=r"'label' holds words such as .*, 400 in all\. Name the grades: grade=\"COLUMN\"\."
    ):
        ranktune.read(table)


@pytest.mark.parametrize(
    "lines",
    [
        "{q} 0 {d} {w}", "{q}\t{d}\t{w}", "{w} qid:{q} # {d}", "query,rating,docid\n{q},{w},{d}", "{q},{d},{w}",
    ],
)  # fmt: skip
def test_words_in_a_file_of_judgments_are_asked_for_with_the_rest(
    lines: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = dict(zip(itertools.product("ab", "123"), ["good", "bad", "fair", "fair", "good", "bad"], strict=True))
    head, _, line = lines.rpartition("\n")
    (folder / "judged").write_text("\n".join([head] * bool(head) + [
        line.format(q=q, d=f"D{d}", w=word) for (q, d), word in words.items()
    ]))  # fmt: skip
    frame = pl.DataFrame({"query": list("aaabbb"), "docid": [f"D{d}" for d in "123123"], "bm25": [3, 1, 2] * 2})
    frame.with_columns(url=pl.Series([f"u{k}" for k in range(6)])).write_csv("data.csv")
    assert ended(monkeypatch, "data", "data.csv", "--qrels", "judged") == 0
    shown = capsys.readouterr().out
    assert re.search(r"judged: 'good' is no grade", shown) and "2 decisions" in shown
    command = shlex.split(shown.splitlines()[-1])
    assert command[command.index("--grades") + 1] == "bad=0,fair=1,good=2" and "url" in command
    options = ("--qrels", "judged", *command[command.index("--qrels") + 2 :])
    assert json.loads(called("data", "data.csv", *options, "--json").stdout)["parts"][0]["grades"] == {
        "0": 2, "1": 2, "2": 2
    }  # fmt: skip


def test_every_command_that_reads_text_takes_numbers_of_grades(folder: Path) -> None:
    letor(folder / "numbers.txt", 12, 0)
    words = {"0": "-1", "1": "fair", "2": "2"}
    for name, seed in (("words.txt", 0), ("test.txt", 1)):
        rest = [line.partition(" ") for line in letor(folder / "drawn.txt", 12, seed).read_text().splitlines()]
        (folder / name).write_text("".join(f"{words[grade]}{space}{line}\n" for grade, space, line in rest))
    given = ("--grades", "-1=0,fair=1")
    grades = [json.loads(called("data", f, *more, "--json").stdout)["parts"][0]["grades"] for f, more in (
        ("numbers.txt", ()), ("words.txt", given)
    )]  # fmt: skip
    assert grades[0] == grades[1] and set(grades[0]) == set(words)
    fast = ("--trials", "1", "--solver", "RidgeRanker", "--jobs", "1")
    assert called("tune", "words.txt", "--test", "test.txt", *given, *fast, "--name", "shop").exit_code == 0
    assert called("data", "words.txt", "-o", "converted", *given).exit_code == 0
    said = [
        json.loads(called("evaluate", "ranktune-runs/shop/model.json", name, *more, "--json").stdout)["metrics"]
        for name, more in (("numbers.txt", ()), ("words.txt", given), ("converted", ()))
    ]
    assert said[0] == said[1] == said[2]


def test_the_order_of_usual_words_is_that_of_the_scale_however_they_are_written() -> None:
    assert len(set(SCALE)) == len(SCALE)
    for few in itertools.combinations(SCALE, 2):
        for written in (few, few[::-1], tuple(map(str.title, few)), tuple(word.replace(" ", "_") for word in few)):
            numbers: Mapping[str, int] = usual_grades(written)
            assert [numbers[word] for word in written] == [few.index(plain(word)) for word in written]
    assert usual_grades(["good", "blue"]) == {}


def plain(word: str) -> str:
    return word.lower().replace("_", " ")


def test_columns_of_many_words_that_name_each_other_are_asked_about_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pl.DataFrame({
        "qid": [k // 8 for k in range(80)], "docid": [f"D{k}" for k in range(80)],
        "label": [f"w{k}" for k in range(80)], "grading": [f"v{k}" for k in range(80)],
        "bm25": [k * 0.5 % 7 for k in range(80)],
    })  # fmt: skip
    table.write_csv("table.csv")
    code = ended(monkeypatch, "data", "table.csv")
    said = "".join(capsys.readouterr())
    assert (
        code in (0, 2)
        and said.count("'label' holds words such as 'w0', 80 in all") <= 2
        and "Name the grades: --grade COLUMN" in said
    )
    (folder / "judged").write_text("".join(f"w{k} qid:{k // 8} # D{k}\n" for k in range(80)))
    with pytest.raises(
        DataError, match=r"judged: 'w0' is no grade, of document D0 of query 0\. Read are lines QUERY 0"
    ):
        ranktune.read(table.select("qid", "docid", "bm25"), qrels="judged")
