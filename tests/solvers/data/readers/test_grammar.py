"""What a format cannot say clearly is refused with place and remedy, or said in a remark; nothing is lost silently."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from ranktune.solvers.core.arrays import Array
from ranktune.solvers.core.errors import DataError, RankTuneWarning
from ranktune.solvers.data.columns.grammar import number_of
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.sources.catalogue import read
from tests.support.commands import called
from tests.support.refusals import assert_refused

BIG = (1 << 53) + 1
HIT = {"_id": "a", "_source": {"qid": 7, "grade": 1}}
PAIR = {"name": "bm25", "value": 1.5}
RUN = "7 Q0 a 1 2.5 x\n"


def logged(*logs: object, **more: object) -> str:
    return json.dumps({**HIT, "fields": {"_ltrlog": list(logs)}, **more})


def response(**more: object) -> str:
    return json.dumps({"hits": {"hits": [json.loads(logged({"one": [PAIR]}))]}, **more})


FAILED = {"error": {"type": "x"}, "status": 503}
SOLR = {"responseHeader": {"partialResults": True}, "response": {"docs": []}}
ROWS: dict[str, tuple[str, str]] = {
    "key twice": ('{"qid": 1, "f": 1}\n{"qid": 1, "f": 1, "f": 2}', "json:2: 'f' is given twice.*Keep one, or rename"),
    "path twice": ('{"qid": 1, "f.g": 1, "f": {"g": 2}}', "'f.g' is given twice"),
    "no double": (f'{{"qid": 1, "f": {10**400}}}', "'f' holds a whole number beyond 1e308.*Correct it"),
    "no double later": (
        f'[{{"qid": 1, "f": 0.5}}, {{"qid": 1, "f": {10**400}}}]',
        "'f' holds a whole number beyond 1e308",
    ),
    "infinite": ('{"qid": 1, "grade": 2, "f": 1e999}', "'f' is inf in row 1"),
    "two queries": ('{"qid": 1, "documents": [{"qid": 2, "f": 1}]}', "json:1: 'qid' is given twice"),
    "two grades": (logged([PAIR], grade=2), "'grade' is given twice"),
    "feature as grade": (logged([PAIR, {"name": "grade", "value": 9}]), "feature 'grade' is called.*Rename"),
    "feature as query": (logged([PAIR, {"name": "qid", "value": 9}]), "feature 'qid' is called"),
    "feature as weight": (logged([PAIR, {"name": "weight", "value": 9}], weight=2), "feature 'weight' is called"),
    "one name in two logs": (logged({"one": [PAIR]}, {"two": [PAIR]}), "'bm25' is given twice"),
    "a feature twice": (logged([PAIR, PAIR]), "'bm25' is given twice"),
    "no value": (logged([{"name": "bm25", "vaule": 1.5}]), "feature 'bm25' has 'vaule'.*typing error"),
    "timed out": (response(timed_out=True), r"json:1: is a partial answer.*\(timed_out\).*Ask it again"),
    "failed shards": (response(_shards={"total": 5, "failed": 1}), "partial answer.*failed _shards"),
    "one failed": (json.dumps({"responses": [json.loads(response()), FAILED]}), r"partial answer.*\(error\)"),
    "partial Solr": (json.dumps(SOLR), "partialResults"),
    "underscore": ('{"qid": 1, "[features]": "a=1_0"}', "'a=1_0' is no feature of Solr"),
    "full width": ('{"qid": 1, "[features]": "a=\uff11\uff12"}', "is no feature of Solr"),
    "Solr twice": ('{"qid": 1, "[features]": "a=1,b=2,a=3"}', "'a' is given twice"),
    "large ids": (
        f'[{{"qid": {BIG}, "y": 0, "f": 1}}, {{"qid": {BIG - 1}.0, "y": 1, "f": 1}}]',
        "whole number of some documents, as 9007199254740993, and a decimal of others",
    ),
}
REFUSED = {name: ("a.json", *row) for name, row in ROWS.items()} | {
    "document twice": ("a.run", f"{RUN}8 Q0 a 1 2 x\n{RUN}", "run:3: document a is in query 7 twice. Keep one"),
    "score": ("a.run", "7 Q0 a 1 2_5 x\n", "run:1: .* is no such line"),
}
"""Name -> file, its content, and what the refusal says."""


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_clear_is_refused(case: str, tmp_path: Path) -> None:
    name, content, words = REFUSED[case]
    assert_refused(tmp_path / name, content, words)


@pytest.mark.parametrize("shards", [{"total": 5, "failed": 0, "skipped": 2}])
def test_a_whole_answer_is_read(shards: dict[str, int], tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(response(timed_out=False, _shards=shards))
    assert read(path).features.tolist() == [[1.5]]


@pytest.mark.parametrize("tag", ["grade", "Label", "qid", "weight"])
def test_the_tag_of_a_run_takes_no_role(tag: str, tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "runs"):
        folder.mkdir(exist_ok=True)
        (folder / f"{tag}.run").write_text(RUN.replace("x", tag))
    (tmp_path / "a.qrels").write_text("7 0 a 2\n7 0 a 2\n")
    queries = read(tmp_path / f"{tag}.run", qrels=tmp_path / "a.qrels")
    assert queries.feature_names == ("score",) and queries.grades.tolist() == [2.0]
    with pytest.raises(DataError, match=f"Rename '{tag}'"):
        read(tmp_path / "runs", qrels=tmp_path / "a.qrels")


def whole(cell: str = "x1") -> str:
    rows = [f"{row // 4},{row % 3},{row % 40},{row}.5" for row in range(200)]
    rows[17] = f"4,1,{cell},0.5"
    return "\n".join(["qid,grade,age,bm25", *rows])


def test_one_wrong_cell_of_whole_numbers_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(whole())
    with pytest.warns(RankTuneWarning, match="'age' holds whole numbers, except 'x1': it is taken as a cat"):
        read(path)
    with pytest.warns(RankTuneWarning, match="'age'"):
        done = called("data", str(path), "--json")
    notes = {row["column"]: row["note"] for row in json.loads(done.stdout)["columns"]}
    assert "'x1'" in notes["age"]
    path.write_text(whole("7"))
    assert read(path).feature_names == ("age", "bm25")


def test_rounded_whole_numbers_are_said(tmp_path: Path) -> None:
    frame = pl.DataFrame({"qid": [1, 1], "grade": [0, 1], "f": [BIG, 5]})
    frame.write_csv(tmp_path / "a.csv")
    frame.write_ndjson(tmp_path / "a.jsonl")
    for source in (frame, (frame[["f"]].to_numpy(), [0, 1], [1, 1]), tmp_path / "a.csv", tmp_path / "a.jsonl"):
        with pytest.warns(RankTuneWarning, match=f"beyond 2.*53, such as {BIG}, which are rounded to {BIG - 1}"):
            assert read(source).features.tolist() == [[float(BIG)], [5.0]]


def test_a_number_beyond_doubles_in_a_frame_is_refused() -> None:
    frame = pd.DataFrame({"qid": [1, 1], "grade": [0, 1], "f": [10**400, 1]}, dtype=object)
    with pytest.raises(DataError, match="'f' holds a whole number beyond 1e308"):
        read(frame)


@pytest.mark.parametrize("kind", [np.float32, np.float64, object])
def test_large_ids_with_a_point_are_refused(kind: type) -> None:
    limit = 2.0**24 if kind is np.float32 else 2.0**53
    for ids, fits in (([limit - 1.0, 1.0], True), ([limit, 1.0], False)):
        qid: Array = np.array(ids, dtype=kind)
        if fits:
            assert read((np.eye(2), [0, 1], qid)).n_queries == 2
        else:
            with pytest.raises(DataError, match=r"qid\[0\] is .*Give whole numbers, or text"):
                read((np.eye(2), [0, 1], qid))
    assert Queries.from_arrays(np.eye(2), [0, 1], qid=[BIG, BIG - 1]).n_queries == 2


def test_a_document_twice_in_a_query_is_said(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("qid,docid,grade,f\n1,a,0,1\n2,a,1,1\n2,b,1,1\n2,b,0,1\n")
    with pytest.warns(RankTuneWarning, match="document 'b' is in query 2 twice"):
        assert read(path).n_documents == 4


def test_an_arrow_file_of_equal_names_is_refused(tmp_path: Path) -> None:
    import pyarrow as pa

    table = pa.table([[1], [2], [3], [4]], names=["qid", "grade", "f", "f"])
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as file:
        file.write_table(table)
    with pytest.raises(DataError, match="several columns called 'f'"):
        read(tmp_path / "a.arrow")


def test_numbers_are_those_of_one_regular_rule() -> None:
    rule = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
    marks = np.random.default_rng(0).choice(list("0127+-.eE_ nainf\uff11\n"), (60_000, 5))
    words = ["".join(row[:length]) for row, length in zip(marks, np.resize(np.arange(6), len(marks)), strict=True)]
    found = [word for word in words if number_of(word) is not None]
    assert found == list(filter(rule.fullmatch, words)) and len(found) > 1000
