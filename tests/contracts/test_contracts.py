"""Properties of every solver, tested on all of them.

A solver is left out of a contract only by name and with the reason.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from ranktune.solvers.abilities import QUERY_WEIGHTS
from ranktune.solvers.base.linear import LinearRanker
from ranktune.solvers.base.ranker import BaseRanker
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import ParameterError, RankTuneWarning
from ranktune.solvers.core.space import Choice, Float, defaults, is_active
from ranktune.solvers.data.queries import Queries, concatenate
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.models.base import load_model
from ranktune.solvers.registry import SOLVERS, make
from tests.support.tree_samples import FEW

ALL = list(SOLVERS)

PRECISE: Mapping[str, Mapping[str, Any]] = {
    "CatBoostRanker": {"row_share": 1.0, "randomness": 0.0, "loss": "QueryRMSE"},
    "GBDTRanker": {"row_share": 1.0},
    "LambdaMART": {"query_share": 1.0, "min_documents": 1, "leaves": 8},  # splits of small leaves are often tied
    "RankSVM": {"tol": 1e-9},
    "SymmetricGBDT": {"row_share": 1.0},
    "XGBoostRanker": {"row_share": 1.0},
}
"""Parameters with which a solver runs to its optimum, or draws nothing and counts weights alone, where agreement of two
ways is asked for."""

VARIANTS: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "AdaRank": ({}, {"stop": "vali", "patience": 3}, {"stop": "never", "reweigh": "model"}),
    "CommitteePerceptron": ({}, {"size": 1}),
    "DominationRank": (
        {},
        {"penalty": "l2"},
        {"penalty": "elastic_net"},
        {"curvature": "tight", "max_iterations": 20_000},
    ),
    "ElasticRank": ({}, {"optimizer": "rda"}, {"optimizer": "psgd", "l1": 0.0, "schedule": "sqrt"}),
    "LambdaMART": ({}, {"seeds": 2}),
    "Ranker": ({}, {"optimizer": "rda"}, {"optimizer": "psgd", "penalty": "l2", "schedule": "sqrt"}),
    "RankSVM": ({}, {"pairs": "adjacent"}, {"loss": "l1", "tol": 1e-9}),
    "RidgeRanker": ({}, {"centre": "none"}),
    "ListNet": ({}, {"l1": 0.0}),
    "SVRRanker": ({}, {"loss": "l1"}),
    "RankBoost": ({}, {"stop": "vali", "patience": 3, "validation": 0.3}),
    "SOLAR2": ({}, {"covariance": "diagonal"}),
    "XGBoostRanker": ({}, {"seeds": 2}),
}
"""Other parameters under which agreement of two ways, and a path, must hold as well."""


def varied(names: Iterable[str] = ALL, without: Set[str] = frozenset({"stop"})) -> pytest.MarkDecorator:
    """These solvers with their defaults and variants, but for those with such a parameter; "stop" holds queries out."""
    cases = [(name, more) for name in names for more in VARIANTS.get(name, ({},)) if not without & more.keys()]
    return pytest.mark.parametrize(("name", "more"), cases)


FEATURES_NOT_ENOUGH = {"BestFeature"}
"""Solvers that are fitted to one feature."""


def graded(seed: int = 0, queries: int = 30, noise: float = 0.5) -> Queries:
    """Queries of 4 to 14 documents with grades 0 to 2, from a linear score with noise; values have few digits."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(4, 15, queries)
    qid = np.repeat(np.arange(queries), lengths)
    X = np.round(generator.random((len(qid), 6)), 2) * (generator.random((len(qid), 6)) < 0.8)
    score = X @ np.array([3.0, -2.0, 1.0, 0.5, 0.0, 0.0]) + noise * generator.normal(size=len(qid))
    y = np.digitize(score, np.quantile(score, [0.6, 0.85])).astype(np.float64)
    return Queries.from_arrays(X, y, qid=qid)


def fitted(name: str, queries: Queries, **parameters: Any) -> BaseRanker:
    """A solver with the defaults of its space but few trees, fitted; parameters that it does not have are left out."""
    known = SOLVERS[name]().get_params()
    given = {key: value for key, value in (FEW | parameters).items() if key in known}
    return trained(name, queries, defaults(SOLVERS[name].space) | dict(PRECISE.get(name, {})) | given)


def trained(name: str, queries: Queries, parameters: Mapping[str, Any]) -> BaseRanker:
    """Return a fitted solver with these parameters; its warnings are ignored."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankTuneWarning)
        return make(name, parameters, seed=0).fit(queries)


def relative_gap(a: Floats, b: Floats) -> float:
    """The largest difference, as a part of the spread of the scores."""
    return float(np.abs(a - b).max() / max(np.ptp(a), 1e-300))


@pytest.mark.parametrize("name", ALL)
def test_one_seed_one_model(name: str) -> None:
    queries = graded()
    assert fitted(name, queries).predict(queries).tobytes() == fitted(name, queries).predict(queries).tobytes()


@varied()
def test_dense_and_sparse_agree(name: str, more: Mapping[str, Any]) -> None:
    queries = graded()
    thin = queries.with_features(sparse.csr_array(queries.features))
    assert relative_gap(fitted(name, queries, **more).predict(queries), fitted(name, thin, **more).predict(thin)) < 1e-6


LINEAR = [name for name in ALL if issubclass(SOLVERS[name], LinearRanker)]
PAIRS_ARE_DRAWN = {name: "draws pairs by what their features hold" for name in ("PAMIR", "PairwisePegasos")}
SCALED = [name for name in LINEAR if "scaling" in SOLVERS[name]().get_params() and name not in PAIRS_ARE_DRAWN]


@pytest.mark.parametrize("scaling", ["minmax", "standard"])
@pytest.mark.parametrize("name", SCALED)
def test_where_features_are_scaled_their_units_do_not_matter(name: str, scaling: str) -> None:
    queries, more = graded(), {"scaling": scaling, "pair_order": "rows"}
    other = queries.with_features(queries.features * np.array([1.0, 4.0, 0.25, 1.0, 8.0, 2.0]))
    assert relative_gap(*(fitted(name, each, **more).predict(each) for each in (queries, other))) < 1e-6


@pytest.mark.parametrize("name", [name for name in ALL if name not in FEATURES_NOT_ENOUGH])
def test_features_that_say_nothing_rank_nothing(name: str) -> None:
    flat = graded().with_features(np.ones((graded().n_documents, 2)))
    assert np.ptp(fitted(name, flat).predict(flat)) == 0.0


@pytest.mark.parametrize("name", ALL)
def test_single_precision_is_enough(name: str) -> None:
    queries = graded()
    narrow = queries.with_features(queries.features.astype(np.float32))
    ranker = fitted(name, narrow)
    ndcg = parse_metric("ndcg@10")
    wide = ndcg.mean(fitted(name, queries).predict(queries), queries)
    assert ndcg.mean(ranker.predict(narrow), narrow) == pytest.approx(wide, abs=0.02)


_TIES = "equal scores, as before the first step, rank in the order of the documents"
ORDER_MATTERS = {
    "ElasticRank": _TIES,
    "LambdaMART": _TIES,
    "LambdaRank": _TIES,
    "RandomForestRanker": "documents are drawn by their number",
    "Ranker": _TIES,
    "XGBoostRanker": _TIES,
}
"""Solvers whose stated rule goes by the order of the documents, and the rule."""


@pytest.mark.parametrize("name", [name for name in ALL if name not in ORDER_MATTERS])
def test_the_order_of_the_documents_of_a_query_changes_nothing(name: str) -> None:
    queries = graded()
    generator = np.random.default_rng(1)
    rows = np.concatenate([a + generator.permutation(b - a) for a, b in zip(queries.starts, queries.starts[1:])])  # noqa: B905
    mixed = Queries(queries.features[rows], queries.grades[rows], queries.starts, queries.query_ids)
    assert relative_gap(fitted(name, queries).predict(queries), fitted(name, mixed).predict(queries)) < 1e-6


GRADES_ALONE_TEACH: dict[str, str] = {
    name: "learns from each document's grade, also where its query has no other"
    for name in ("LogisticRanker", "RidgeRanker", "SVRRanker", "GBDTRanker", "RandomForestRanker", "Prank")
}


@pytest.mark.parametrize("name", [name for name in ALL if name not in GRADES_ALONE_TEACH])
def test_queries_without_two_grades_add_nothing(name: str) -> None:
    queries = graded()
    flat = Queries.from_arrays(graded(5).features[:9], [2, 2, 2, 0, 0, 0, 0, 1, 1], qid=[0, 0, 0, 1, 1, 1, 1, 2, 3])
    more = concatenate([queries, flat])
    plain = {"scaling": "none", "random_state": None}  # scales and random orders are those of all the data
    assert (
        relative_gap(fitted(name, queries, **plain).predict(queries), fitted(name, more, **plain).predict(queries))
        < 1e-6
    )


@pytest.mark.parametrize("name", ALL)
def test_a_saved_model_scores_the_same_bits(name: str, tmp_path: Path) -> None:
    queries = graded()
    ranker = fitted(name, queries)
    ranker.as_model(solver=name).save(tmp_path / "model.json")
    loaded = load_model(tmp_path / "model.json")
    assert loaded.predict(queries).tobytes() == ranker.predict(queries).tobytes()
    assert fitted(name, queries).predict(queries).tobytes() == loaded.predict(queries).tobytes()


WEIGHTS_ARE_DRAWN = {"RandomForestRanker": "documents are drawn by their number, whatever their weight"}
"""Solvers to which a query of weight two is as good as two only on average, and why."""


WEIGHING = [name for name in ALL if QUERY_WEIGHTS in SOLVERS[name].supports({})]


@varied((name for name in WEIGHING if name not in WEIGHTS_ARE_DRAWN), {"stop", "optimizer"})
def test_a_query_of_weight_two_counts_as_two(name: str, more: Mapping[str, Any]) -> None:
    queries, chosen = graded(), np.arange(0, 30, 3)
    twice = concatenate([queries, queries.select(chosen)])
    weights = np.ones(30)
    weights[chosen] = 2.0
    doubled = queries.weighted_by(weights)
    plain, weighted, repeated = (fitted(name, given, **more) for given in (queries, doubled, twice))
    assert relative_gap(repeated.predict(queries), weighted.predict(queries)) < 1e-3
    if name == "BestFeature":  # it may choose the same one
        assert weighted.score_ != plain.score_  # type: ignore[attr-defined]
    else:
        assert relative_gap(plain.predict(queries), weighted.predict(queries)) > 1e-6


@pytest.mark.parametrize("name", [name for name in ALL if name not in WEIGHING])
def test_weights_that_a_method_cannot_heed_are_refused(name: str) -> None:
    with pytest.raises(ParameterError, match=rf"{name}(\(\))? cannot weigh queries"):
        SOLVERS[name]().fit(graded().weighted_by({0: 2.0}))


@pytest.mark.parametrize("name", ALL)
def test_the_model_is_usable_at_every_step(name: str) -> None:
    queries = graded()
    steps = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankTuneWarning)
        ranker = make(name, defaults(SOLVERS[name].space), seed=0)
        for step in ranker.fit_steps(queries):
            steps += 1
            assert step.iteration >= 0
            assert np.isfinite(ranker.predict(queries)).all()
            if steps == 3:
                break
    assert steps > 0
    assert ranker.as_model(solver=name).predict(queries).tobytes() == ranker.predict(queries).tobytes()


@pytest.mark.parametrize("name", ALL)
def test_every_corner_of_the_space_can_be_trained(name: str) -> None:
    queries, generator = graded(queries=15), np.random.default_rng(0)
    for _ in range(300 if name in ("ElasticRank", "Ranker") else 8):  # whose spaces have many conditions
        values: dict[str, Any] = {}
        for parameter in SOLVERS[name].space:
            if is_active(parameter, values):
                if isinstance(parameter, Choice):
                    values[parameter.name] = parameter.choices[int(generator.integers(len(parameter.choices)))]
                elif isinstance(parameter, Float):
                    values[parameter.name] = parameter.low if generator.random() < 0.5 else parameter.high
                else:
                    values[parameter.name] = min(parameter.low if generator.random() < 0.5 else parameter.high, 50)
        assert np.isfinite(trained(name, queries, values).predict(queries)).all(), values


@pytest.mark.parametrize("name", [name for name in ALL if name not in FEATURES_NOT_ENOUGH])
def test_what_is_there_is_learnt(name: str) -> None:
    train, test = graded(queries=150, noise=0.1), graded(seed=1, queries=60, noise=0.1)
    ndcg = parse_metric("ndcg@10")
    learnt = ndcg.mean(fitted(name, train, rounds=20).predict(test), test)  # as few thresholds as a search tries
    floor = ndcg.mean(np.zeros(test.n_documents), test)
    best = ndcg.mean(fitted("BestFeature", train).predict(test), test)
    assert learnt > max(floor, best) + 0.05, (learnt, floor, best)


@pytest.mark.parametrize("name", LINEAR)
def test_linear_scores_are_sums_over_features(name: str) -> None:
    queries = graded()
    ranker: Any = fitted(name, queries)
    if getattr(ranker, "scaling", None) == "list":
        pytest.skip("divides features by their range within a list first")
    assert ranker.coef_.shape == (6,) and ranker.coef_.dtype == np.float64
    assert relative_gap(queries.features @ ranker.coef_, ranker.predict(queries)) < 1e-12


SHIFT_MATTERS = {"Prank": "its thresholds are the same for all queries"}
"""Solvers to which a constant added to a feature within a query means something, and why."""


@varied((name for name in LINEAR if name not in SHIFT_MATTERS), {"stop", "centre"})
def test_what_all_documents_of_a_query_share_changes_nothing(name: str, more: Mapping[str, Any]) -> None:
    queries = graded()
    shifts = np.repeat(np.random.default_rng(2).integers(0, 3, (30, 6)), queries.lengths, axis=0) / 4.0
    shifted = queries.with_features(queries.features + shifts)
    ranker, other = (fitted(name, given, **{"scaling": "none", **more}) for given in (queries, shifted))
    assert relative_gap(ranker.predict(queries), other.predict(queries)) < 1e-6
