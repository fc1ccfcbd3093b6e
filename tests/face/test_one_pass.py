"""ranktune.one_pass and `ranktune one-pass`: files that other commands take, and tables."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ranktune
from ranktune.solvers.core.arrays import dense
from ranktune.solvers.core.errors import DataError, ParameterError, StudyError
from tests.support.commands import called, succeeded, write_letor
from tests.support.pass_samples import linear_queries


def written(path: Path, n_queries: int, seed: int) -> Path:
    """A file of LETOR text."""
    queries = linear_queries(n_queries, seed, d=6)
    return write_letor(path, dense(queries.features), queries.grades, queries.query_of_document)


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    data, folder = written(tmp_path / "log.txt", 150, 1), tmp_path / "pass"
    given = ("one-pass", data, "--configurations", 6)
    said = succeeded(*given, "-o", folder, "--metric", "ndcg@5")
    assert sorted(path.name for path in folder.iterdir()) == ["model.json", "result.json", "state.npz"]
    assert max(map(len, said.replace(str(tmp_path), "").splitlines())) <= 80
    assert "ndcg@5 before learning, the best of" in said and "other queries" in said
    result = json.loads((folder / "result.json").read_text())
    assert result["queries"] == 135 and result["test"]["queries"] <= 15
    for command in ("evaluate", "predict"):
        succeeded(command, folder / "model.json", data)
    repeated = called(*given, "-o", folder).exception
    assert isinstance(repeated, StudyError) and "holds a finished pass" in str(repeated)
    (folder / "state.npz").rename(folder / "checkpoint.npz")  # as where it was killed before the last step
    assert succeeded(*given, "-o", folder, "--metric", "ndcg@5") == said and (folder / "state.npz").exists()
    printed = json.loads(succeeded(*given, "-o", tmp_path / "other", "--json", "--solver", "SOLAR1"))
    assert {entry["solver"] for entry in printed["configurations"]} == {"SOLAR1"}


def test_python_with_test_data_and_without() -> None:
    train, test = linear_queries(120, 2), linear_queries(60, 3)
    lines: list[str] = []
    result = ranktune.one_pass(train, test=test, configurations=5, metric="mrr", progress=lines.append)
    assert result.test is not None and result.queries == 120 and len(lines) == len(result.looks)
    measured = ranktune.evaluate(result.best_model, test, "mrr")["metrics"]["mrr"]
    assert result.test["mean"] == pytest.approx(measured["mean"], abs=1e-12)
    assert repr(result).startswith("OnePassResult(") and "test " in repr(result)
    repeated = ranktune.one_pass(train, test=test, configurations=5, metric="mrr")
    assert repeated.as_dict() == result.as_dict()
    assert ranktune.one_pass(train, configurations=2, held_out=0.0).test is None


def test_a_pass_goes_on_from_that_of_the_day_before(tmp_path: Path) -> None:
    """Of tables: the columns of the other day are in another order, and one of its categories is missing."""

    def written_day(name: str, colours: str, columns: list[str]) -> str:
        queries = linear_queries(120, len(colours), d=4)
        frame = pd.DataFrame(dense(queries.features), columns=list("abcd"))
        frame["colour"] = np.array(list(colours))[np.arange(len(frame)) % len(colours)]
        frame["grade"], frame["qid"] = queries.grades, queries.query_of_document
        frame[columns].to_csv(tmp_path / f"{name}.csv", index=False)
        return str(tmp_path / f"{name}.csv")

    columns = [*"abcd", "colour", "grade", "qid"]
    first, second = written_day("monday", "rgb", columns), written_day("tuesday", "br", columns[::-1])
    options = ("--configurations", 5, "--held-out", 0, "--qid", "qid", "--grade", "grade")
    monday, tuesday = tmp_path / "1", tmp_path / "2"
    succeeded("one-pass", first, "-o", monday, *options)
    succeeded("one-pass", second, "-o", tuesday, "--after", monday, *options)
    models = [ranktune.load_model(day / "model.json") for day in (monday, tuesday)]
    assert models[0].feature_names == models[1].feature_names and "colour=g" in (models[1].feature_names or ())
    assert json.loads((tuesday / "result.json").read_text())["configurations"][0]["earlier"] in (0, 120)
    again = called("one-pass", second, "-o", tmp_path / "3", "--after", tmp_path, *options).exception
    assert isinstance(again, StudyError) and "state.npz, which a pass ends with" in str(again)


def test_says_which_features_have_no_scale() -> None:
    queries, lines = linear_queries(80, 6), list[str]()
    X = dense(queries.features).copy()
    X[:, 3] = 7.0
    ranktune.one_pass(queries.with_features(X), configurations=2, progress=lines.append)
    assert lines[0].startswith("1 of 9 features do not vary within queries among the first ")


def test_parameters_out_of_range() -> None:
    train = linear_queries(30, 4)
    with pytest.raises(ParameterError, match="held_out=1"):
        ranktune.one_pass(train, held_out=1.0)
    with pytest.raises(ParameterError, match="configurations"):
        ranktune.one_pass(train, configurations=0)
    with pytest.raises(DataError, match="too few"):
        ranktune.one_pass((np.eye(3), [0, 1, 2], [1, 1, 1]))


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match="cannot make"):
        ranktune.one_pass(linear_queries(30, 4), folder=tmp_path / "file" / "pass")
