"""LightGBM by its C interface grows the trees that its Python package grows, to the bit."""

import gc
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.boosting.lightgbm import library as lightgbm_library
from ranktune.solvers.boosting.lightgbm.library import Data, TreeBooster
from ranktune.solvers.core.errors import DataError
from tests.support.commands import output_of

ROUNDS = 5
PARAMS: dict[str, Any] = {
    **{"objective": "lambdarank", "label_gain": [0.0, 0.1, 3.0], "num_leaves": 7, "min_data_in_leaf": 3, "seed": 4},
    **{"num_threads": 1, "deterministic": True, "force_col_wise": True, "verbosity": -1, "feature_fraction": 0.7},
}
LENGTHS = np.tile([3, 40, 1, 16], 10)


def problem(layout: Any = np.asarray, dtype: Any = np.float64) -> tuple[Any, Any, Any]:
    generator = np.random.default_rng(0)
    rows = int(LENGTHS.sum())
    X = (generator.normal(size=(rows, 8)) * (generator.random((rows, 8)) < 0.5)).astype(dtype)
    return layout(X), generator.integers(0, 3, rows).astype(np.float64), generator.random(rows) + 0.5


def wide(X: Any) -> Any:
    """CSR with long indices."""
    thin = sparse.csr_array(X)
    thin.indices, thin.indptr = thin.indices.astype(np.int64), thin.indptr.astype(np.int64)
    return thin


def data_of(X: Any, labels: Any, lengths: Any, weights: Any = None, params: Any = PARAMS) -> Data:
    data = Data(X, params)
    data.describe(labels, lengths, weights)
    return data


def body(text: str) -> str:
    return text[text.index("\nTree=") : text.index("\nend of trees")]


def ours(data: Data) -> str:
    booster = TreeBooster(data, PARAMS)
    for _ in range(ROUNDS):
        assert not booster.update()
    return body(booster.text(0, ROUNDS))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("layout", [np.asarray, sparse.csr_array, wide])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_trees_are_those_of_the_package(layout: Any, dtype: Any, weighted: bool) -> None:
    import lightgbm

    X, labels, weights = problem(layout, dtype)
    given = weights if weighted else None
    theirs = lightgbm.Dataset(X, label=labels, group=LENGTHS, weight=given, params=PARAMS)
    booster = lightgbm.train(PARAMS, theirs, num_boost_round=ROUNDS)
    assert ours(data_of(X, labels, LENGTHS, given)) == body(booster.model_to_string())


def test_a_subset_gives_the_trees_of_the_package() -> None:
    import lightgbm

    X, labels, weights = problem()
    chosen = np.array([1, 2, 5, 7, 8, 13, 22])
    starts = np.concatenate([[0], np.cumsum(LENGTHS)])
    rows = np.concatenate([np.arange(starts[q], starts[q + 1]) for q in chosen])
    whole = lightgbm.Dataset(X, label=labels, group=LENGTHS, weight=weights, params=PARAMS, free_raw_data=False)
    booster = lightgbm.train(PARAMS, whole.construct().subset(rows.tolist()), num_boost_round=ROUNDS)
    part = Data(X, PARAMS).subset(rows, PARAMS)
    part.describe(labels[rows], LENGTHS[chosen], weights[rows])
    assert ours(part) == body(booster.model_to_string())
    assert ours(part) != ours(data_of(X, labels, LENGTHS, weights))


def test_long_text_comes_whole() -> None:
    generator = np.random.default_rng(1)
    X, params = generator.normal(size=(300, 4_000)), {"objective": "regression", "verbosity": -1, "num_threads": 1}
    booster = TreeBooster(data_of(X, generator.normal(size=300), np.array([300]), None, params), params)
    booster.update()
    text = booster.text(0, 1)
    assert len(text) > 2**16 and "end of trees" in text


def test_an_error_of_lightgbm_has_its_message(capfd: pytest.CaptureFixture[str]) -> None:
    X, labels, _ = problem()
    with pytest.raises(DataError, match=r"LightGBM cannot learn from these data: .*num_leaves"):
        TreeBooster(data_of(X, labels, LENGTHS), {**PARAMS, "num_leaves": 10**7})
    with pytest.raises(DataError, match="query counts"):
        data_of(X, labels, LENGTHS[:-1])
    capfd.readouterr()  # LightGBM writes to standard error as well


def test_nothing_is_kept_of_what_is_no_longer_used(monkeypatch: pytest.MonkeyPatch) -> None:
    library = lightgbm_library._library()
    given_back: list[str] = []

    class Watched:
        def __getattr__(self, name: str) -> Any:
            def free(handle: Any) -> Any:
                given_back.append(name)
                return getattr(library, name)(handle)

            return free if name.endswith("Free") else getattr(library, name)

    monkeypatch.setattr(lightgbm_library, "_library", Watched)
    X, labels, _ = problem()
    data = data_of(X, labels, LENGTHS)
    part = data.subset(np.arange(44), PARAMS)
    part.describe(labels[:44], LENGTHS[:3])
    booster = TreeBooster(part, PARAMS)
    del part
    gc.collect()
    assert given_back == []
    del booster
    gc.collect()
    assert sorted(given_back) == ["LGBM_BoosterFree", "LGBM_DatasetFree"]
    del data
    gc.collect()
    assert len(given_back) == 3
    with pytest.raises(DataError):
        data_of(X, labels[:-1], LENGTHS)
    gc.collect()
    assert len(given_back) == 4


def test_learning_imports_neither_the_package_nor_what_it_imports() -> None:
    code = (
        "import sys, numpy as np\n"
        "from ranktune.solvers.data.queries import Queries\n"
        "from ranktune.solvers.registry import NAMES, SOLVERS, loadable, make\n"
        "classes = [SOLVERS[name] for name in loadable(NAMES)]\n"
        "X = np.random.default_rng(0).random((60, 3)); qid = np.repeat(range(6), 10)\n"
        "queries = Queries.from_arrays(X, X[:, 0] > 0.5, qid=qid)\n"
        "for name in ('RankSVM', 'LambdaMART', 'GBDTRanker', 'RandomForestRanker'):\n"
        "    make(name, {} if name == 'RankSVM' else {'trees': 2}).fit(queries).as_model().predict(queries)\n"
        "heavy = 'lightgbm', 'xgboost', 'sklearn', 'scipy.stats', 'pandas'\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    assert output_of(code) == "[]\n"
