"""Monotone constraints and document weights of a study, through Python, the command line and TOML."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ranktune
from ranktune.notebook import StudyResult
from ranktune.solvers import Queries, RankSVM, RidgeRanker
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning, StudyError

STUDY: dict[str, Any] = {"trials": 2, "sampler": "random", "folds": 2}
SOLVERS = ["RidgeRanker", "LambdaMART"]
KEPT = {"bm25": 1, "bm25_body": 1, "price": -1}


def frame(seed: int = 0) -> pd.DataFrame:
    """Documents whose grades rise with the price and, beside bm25, fall with bm25_body."""
    generator = np.random.default_rng(seed)
    bm25, price = generator.normal(size=(2, 480))
    body = bm25 + generator.normal(size=480)
    grade = np.digitize(bm25 - 0.5 * body + 0.5 * price + generator.normal(size=480), [0.0, 1.0])
    counts = generator.integers(1, 4, 480)
    return pd.DataFrame(
        {"qid": np.arange(480) // 12, "bm25": bm25, "bm25_body": body, "price": price, "times": counts, "grade": grade}
    )


def tuned(folder: Path, data: object = None, **settings: Any) -> StudyResult:
    given = {"solvers": SOLVERS, "drop": ["times"]} | STUDY | settings
    return ranktune.tune(frame() if data is None else data, **given, home=folder)


def never_moves_against(result: StudyResult) -> bool:
    """Return whether no score of the chosen model moves against KEPT, over a grid of each feature."""
    table = frame().drop(columns=["qid", "grade", "times"])
    for name, sign in KEPT.items():
        scores = [result.best_model.predict(table.assign(**{name: value})) for value in np.linspace(-3.0, 3.0, 31)]
        if (sign * np.diff(scores, axis=0) < -1e-12).any():
            return False
    return True


def test_python_takes_constraints_as_a_mapping_or_text(tmp_path: Path) -> None:
    given = {"bm25*": 1, "price": -1}
    spelled: tuple[Any, ...] = "bm25*=1,price=-1", ["bm25*=1", "price=-1"], given
    assert all(ranktune.Study(monotone=each).monotone == given for each in spelled)
    result = tuned(tmp_path, name="m", monotone=given)
    assert dict(result.best_model.monotone) == result.monotone == KEPT
    assert never_moves_against(result)
    assert "the score never falls with bm25 and bm25_body and never rises with price" in " ".join(
        result.conclusion.details
    )
    with pytest.raises(StudyError, match=r"monotone is .*'price': -1.* there, \{'price': 1\} here"):
        tuned(tmp_path, name="m", monotone={"price": 1})


def test_the_same_data_break_the_constraints_without_them(tmp_path: Path) -> None:
    result = tuned(tmp_path)
    assert result.monotone == {}
    assert not never_moves_against(result)


@pytest.mark.parametrize("given", ["prise=-1", "price", "price=2", {"price": 0.5}, 3])
def test_what_is_no_constraint_is_refused_with_the_remedy(tmp_path: Path, given: object) -> None:
    with pytest.raises(ParameterError, match="monotone"):
        tuned(tmp_path, monotone=given)


def test_a_copy_for_solr_keeps_the_constraints(tmp_path: Path) -> None:
    result = tuned(tmp_path, monotone=KEPT, serve=["solr"], trials=3)
    assert result.monotone == KEPT
    assert never_moves_against(result)


def test_catboost_is_tuned_with_the_loss_that_keeps_constraints() -> None:
    pytest.importorskip("catboost")
    space = ranktune.Study(solvers=["CatBoostRanker"], monotone={"price": -1}).union_space()
    assert space.distributions["CatBoostRanker.loss"].choices == ("QueryRMSE",)  # type: ignore[attr-defined]


def test_a_progressive_plan_keeps_no_constraints() -> None:
    with pytest.raises(ParameterError, match="no solver keeps monotone"):
        ranktune.Study(plan="progressive", monotone={"price": -1})


def test_a_column_of_document_weights_counts_as_copies(tmp_path: Path) -> None:
    table = frame()
    copies = table.loc[table.index.repeat(table["times"])].drop(columns="times")
    settings: dict[str, Any] = {"drop": [], "solvers": ["RidgeRanker"], "test": "none", "trials": 1}
    weighted = tuned(tmp_path, document_weight="times", **settings)
    features = table[["bm25", "bm25_body", "price"]]
    ranker = RidgeRanker().set_params(**dict(weighted.best_model.parameters))
    known = ranker.fit(copies[list(features)], copies["grade"], qid=copies["qid"])
    np.testing.assert_allclose(weighted.best_model.predict(features), known.predict(features), rtol=1e-6)


def test_solvers_that_cannot_weigh_documents_are_left_out_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ranktune.Study(document_weight="times").solvers == ranktune.Study().solvers
    monkeypatch.setattr(RankSVM, "takes_document_weights", False)  # as of a solver of a user
    with pytest.warns(RankTuneWarning, match="RankSVM cannot weigh documents: left out"):
        study = ranktune.Study(document_weight="times")
    assert "RidgeRanker" in study.solvers and "RankSVM" not in study.solvers
    with pytest.raises(ParameterError, match=r"RankSVM cannot weigh documents\. Leave RankSVM out"):
        ranktune.Study(document_weight="times", solvers=["RankSVM"])
    table = frame()
    queries = Queries.from_arrays(
        table[["bm25", "price"]].to_numpy(), table["grade"], qid=table["qid"], document_weights=table["times"]
    )
    with pytest.raises(ParameterError, match="RankSVM cannot weigh documents"):
        tuned(tmp_path, queries, drop=[], solvers=["RankSVM"])
