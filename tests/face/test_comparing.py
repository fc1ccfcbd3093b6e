"""compare and `evaluate --against`: all sign patterns by brute force, SciPy, and the command line."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import ranktune
from ranktune.solvers.core.errors import DataError, RankTuneWarning
from tests.support.commands import called


def made(n_queries: int, seed: int = 0) -> tuple[ranktune.Queries, np.ndarray, np.ndarray]:
    """Queries of six documents whose rows are mixed, scores that rank them well, and scores that rank them worse."""
    generator = np.random.default_rng(seed)
    grades = generator.integers(0, 3, 6 * n_queries)
    X = np.column_stack(
        [grades + generator.normal(size=len(grades)), grades + 2.0 * generator.normal(size=len(grades))]
    )
    qid = generator.permutation(np.arange(len(grades)) % n_queries)
    queries = ranktune.Queries.from_arrays(X, grades, qid=qid)
    return queries, X[:, 0], X[:, 1]


def test_models_and_scores_may_be_mixed_and_sides_swapped() -> None:
    queries, good, worse = made(20)
    model = ranktune.RankSVM().fit(queries).as_model()
    result = ranktune.compare(model, worse, queries)
    assert result == ranktune.compare(model.predict(queries), "column:2", queries)
    swapped = ranktune.compare(worse, model, queries)
    assert (swapped.difference, swapped.wins) == pytest.approx((-result.difference, result.losses))
    assert ranktune.compare(good, good, queries).p_randomisation == 1.0
    with pytest.raises(DataError, match="119 scores"):
        ranktune.compare(good, worse[1:], queries)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with data and a file of scores of each of two features."""
    queries, good, worse = made(40)
    assert queries.rows is not None
    frame = ["qid,docid,grade,first,second,today"]
    for at, row in enumerate(queries.rows.tolist()):
        query = queries.query_of_document[at]
        frame.append(f"{query},d{row},{queries.grades[at]:g},{good[row]!r},{worse[row]!r},{worse[row]!r}")
    text = "\n".join(frame).replace("np.float64(", "").replace(")", "")
    (tmp_path / "data.csv").write_text(text)
    for name, column in (("good", 3), ("worse", 4)):
        lines = [line.split(",")[column] for line in text.splitlines()[1:]]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    return tmp_path


def test_evaluate_against_prints_what_compare_finds_in_80_columns(folder: Path) -> None:
    arguments = ["good.txt", "data.csv", "--against", "column:today", "--drop", "today", "--also", "map"]
    result = json.loads(called("evaluate", *arguments, "--json").stdout)
    expected = ranktune.compare("good.txt", "worse.txt", "data.csv")
    assert result["against"]["comparisons"]["ndcg@10"] == json.loads(json.dumps(expected.as_dict()))
    means = result["metrics"]["ndcg@10"]["mean"], result["against"]["metrics"]["ndcg@10"]["mean"]
    assert means == pytest.approx((expected.mean_a, expected.mean_b))
    assert result == ranktune.evaluate("good.txt", "data.csv", also="map", against="today", drop="today") | {
        "model": "good.txt",
        "data": "data.csv",
    }
    printed = called("evaluate", *arguments).stdout
    assert max(map(len, printed.splitlines())) <= 80
    for text in (f"{expected.difference:+.4f}", f"{expected.low:+.4f} to {expected.high:+.4f}", "A wins", "map"):
        assert text in printed


def exit_code(*arguments: Sequence[str] | str) -> int:
    return called("evaluate", *arguments).exit_code


def test_the_exit_code_says_whether_it_is_better(folder: Path) -> None:
    assert exit_code("good.txt", "data.csv", "--against", "worse.txt", "--fail-unless-better") == 0
    assert exit_code("worse.txt", "data.csv", "--against", "good.txt", "--fail-unless-better") == 4
    assert exit_code("good.txt", "data.csv", "--against", "good.txt", "--fail-unless-better") == 4
    assert exit_code("worse.txt", "data.csv", "--against", "good.txt") == 0
    assert exit_code("worse.txt", "data.csv", "--fail-unless-better") == 2


def test_data_without_most_features_of_the_model_are_warned_of(tmp_path: Path) -> None:
    """A text file with two of twenty features has another meaning than training had; a few documents may be."""
    generator = np.random.default_rng(3)

    def written(name: str, width: int, n: int = 240) -> str:
        rows = [" ".join(f"{k + 1}:{x:.3f}" for k, x in enumerate(generator.normal(size=width))) for _ in range(n)]
        lines = [f"{row % 3} qid:{row // 6} {text}\n" for row, text in enumerate(rows)]
        (tmp_path / name).write_text("".join(lines))
        return str(tmp_path / name)

    X = generator.normal(size=(240, 20))
    ranktune.RankSVM().fit(X, np.arange(240) % 3, qid=np.arange(240) // 6).as_model().save(tmp_path / "model.json")
    model, narrow = str(tmp_path / "model.json"), written("narrow.txt", 2)
    for measured in (ranktune.evaluate, ranktune.predict):
        with pytest.warns(RankTuneWarning, match=r"narrow\.txt: has features 1 to 2, and the model learned from 20"):
            measured(model, narrow)
        measured(model, written("wide.txt", 20))
        measured(model, written("few.txt", 2, n=12))
