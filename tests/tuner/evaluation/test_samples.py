"""Where memory is limited, LightGBM is fitted to the largest sample of the queries whose bins fit, which is said."""

from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.solvers.data.origins import origin_of
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.evaluation import fitting
from ranktune.tuner.evaluation.fitting import BYTES_OF_DOCUMENT, BYTES_OF_FIT, read_for_fit, sample
from ranktune.tuner.evaluation.task import Task
from ranktune.tuner.splits.plans import PLAN, query_folds
from ranktune.tuner.splits.store import read_development, write_problem

WIDTH = 4


@pytest.fixture
def folder(tmp_path: Path) -> str:
    generator = np.random.default_rng(0)
    development = Queries.from_arrays(
        generator.normal(size=(400, WIDTH)), generator.integers(0, 3, 400), group=[10] * 40
    )
    write_problem(development, {PLAN: query_folds(development, 4, 0)}, tmp_path)
    return str(tmp_path)


def fitted_to(
    folder: str, solver: str, documents: int | None, monkeypatch: pytest.MonkeyPatch, bins: int = WIDTH, **params: str
) -> Queries:
    """Return what a solver is fitted to where the bins of so many documents fit."""
    room = None if documents is None else BYTES_OF_FIT + documents * (bins + BYTES_OF_DOCUMENT)
    monkeypatch.setattr(fitting, "left", lambda: room)
    return read_for_fit(Task(folder, ("ndcg@10",), solver, params, seed=3), np.arange(30))


def test_without_need_all_queries_are_fitted(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    development = read_development(folder)
    for solver, documents in (("LambdaMART", None), ("LambdaMART", 700), ("RankSVM", 1)):
        fitted = fitted_to(folder, solver, documents, monkeypatch)
        assert fitted.fingerprint == development.select(np.arange(30)).fingerprint
        assert origin_of(fitted)[0] is development  # whose bins are shared


def test_a_sample_is_fitted_where_bins_do_not_fit(folder: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.warns(RankTuneWarning, match=r"fitted to a sample of 12 of 30 queries, whose bins fit the"):
        fitted = fitted_to(folder, "LambdaMART", 120, monkeypatch)
    numbers = sample(np.arange(30), 12, 3)
    assert fitted.query_ids.tolist() == read_development(folder).query_ids[numbers].tolist()
    assert origin_of(fitted)[0] is fitted  # the bins of all queries would take more


def test_bins_are_not_shared_where_those_of_all_queries_do_not_fit(
    folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fitted = fitted_to(folder, "GBDTRanker", 305, monkeypatch)
    assert fitted.n_queries == 30 and origin_of(fitted)[0] is fitted


@pytest.mark.parametrize(("within", "kinds"), [("ranks", 2), ("all", 5)])
def test_columns_within_queries_count_as_bytes_and_as_numbers(
    folder: str, within: str, kinds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = kinds * WIDTH
    of_document = columns + columns * read_development(folder).features.dtype.itemsize
    with pytest.warns(RankTuneWarning, match=r"fitted to a sample of 12 of 30 queries"):
        fitted_to(folder, "LambdaMART", 120, monkeypatch, of_document, within_query=within)
    shared = 400 * of_document // (of_document + BYTES_OF_DOCUMENT)
    for documents, origin in ((300 + shared, True), (299 + shared, False)):
        fitted = fitted_to(folder, "LambdaMART", documents, monkeypatch, of_document, within_query=within)
        assert fitted.n_queries == 30 and (origin_of(fitted)[0] is not fitted) == origin
