"""The command interleave: files, tables of 80 columns, JSON and mistakes."""

import json
from pathlib import Path

import numpy as np
import polars

import ranktune
from ranktune.solvers.core.errors import DataError, ParameterError
from tests.support.commands import called, succeeded


def searches(folder: Path) -> Path:
    """Documents of 40 queries without grades, of which two columns rank alike in half of the queries."""
    generator = np.random.default_rng(0)
    x = generator.random((40, 6))
    y = np.where(np.arange(40)[:, None] < 20, x, generator.random((40, 6)))
    ids = np.arange(240)
    frame = polars.DataFrame({"qid": ids // 6, "docid": [f"d{k}" for k in ids], "x": x.ravel(), "y": y.ravel()})
    frame.write_csv(folder / "searches.csv")
    return folder / "searches.csv"


def test_lists_of_a_model_and_a_column_are_logged_and_judged(tmp_path: Path) -> None:
    data, shown, log = searches(tmp_path), tmp_path / "shown.jsonl", tmp_path / "log.jsonl"
    X = np.random.default_rng(1).random((60, 1))
    train = ranktune.Queries.from_arrays(X, (X[:, 0] > 0.5) * 1, group=[6] * 10, feature_names=["y"])
    ranktune.RankSVM().fit(train).as_model(feature_names=["y"]).save(tmp_path / "model.json")
    for method in ("team-draft", "balanced"):
        options = ("-o", shown, "--method", method, "--length", 4, "--draws", 3)
        said = succeeded("interleave", "column:x", tmp_path / "model.json", data, *options)
        assert f"120 lists of 40 queries by {method}.\nA: column:x\n" in said
        rows = [json.loads(line) for line in shown.read_text().splitlines()]
        frame = polars.read_csv(data)
        for row in rows:  # everyone clicks what A has first
            mine = frame.filter(polars.col("qid") == row["query"])
            first = {team: mine.sort(name, descending=True)["docid"][0] for team, name in (("A", "x"), ("B", "y"))}
            assert row["documents"][0] == first[row["teams"][0]] and len(row["documents"]) == 4
            row["clicks"] = [row["documents"].index(first["A"]) + 1] if first["A"] in row["documents"] else []
        log.write_text("".join(json.dumps(row) + "\n" for row in rows))
        found = json.loads(succeeded("interleave", "--judge", log, "--json"))
        assert found["method"] == method and found["account"]["used"] == {"shown": 120} and found["unit"] == "query"
        assert found["verdict"] == "A" and found["units"] == 40
    table = called("interleave", "--judge", str(log), env={"COLUMNS": "80"}).stdout
    assert "Interleaving by balanced" in table and max(map(len, table.splitlines())) <= 80
    assert "| search" in succeeded("interleave", "--judge", log, "--format", "markdown")
    planned = called("interleave", "--judge", str(log), "--plan", "0.05", env={"COLUMNS": "80"}).stdout
    assert "searches find a preference of 0.05" in planned and max(map(len, planned.splitlines())) <= 80
    assert json.loads(succeeded("interleave", "--plan", "0.05", "--ties", "0.5", "--json"))["plan"]["ties"] == 0.5
    again = json.loads(succeeded("interleave", "column:x", "column:y", data, "-o", shown, "--json"))
    assert (again["queries"], again["lists"], again["output"]) == (40, 40, str(shown))


def test_mistakes_are_named(tmp_path: Path) -> None:
    data, shown = searches(tmp_path), tmp_path / "shown.jsonl"
    for words, error in (
        (("interleave", "column:x", "column:y", data, "-o", tmp_path / "shown.csv"), "lists are written as .jsonl"),
        (("interleave", "column:x", "column:y", data, "-o", shown, "--method", "draft"), "method='draft' is unknown"),
        (("interleave", "column:x", "--plan", "0.05"), "no lists are written. Give A, B, DATA and --output"),
        (("interleave", "column:x", data), "nothing can be written. Give A, B, DATA and --output"),
    ):
        done = called(*words)
        assert isinstance(done.exception, DataError | ParameterError) and error in str(done.exception), words
        assert not shown.exists()
