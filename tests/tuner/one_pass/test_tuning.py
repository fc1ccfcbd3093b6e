"""A pass: its metric is that of each ranker alone, an interrupted one ends as a whole one, bad data are refused."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

from ranktune.solvers.core.errors import AllFailed, DataError, ParameterError, StudyError
from ranktune.solvers.core.space import Float
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.one_pass import tuning
from ranktune.tuner.one_pass import tuning as checkpoint
from ranktune.tuner.one_pass.result import ConfigurationSpace, PassConfiguration
from ranktune.tuner.one_pass.tuning import OnePassTuning, PassCheckpoint
from tests.support.pass_samples import linear_queries

METRIC = parse_metric("ndcg@5")


def tuned(queries: Queries, count: int = 12, path: Path | None = None, seed: int = 0) -> OnePassTuning:
    return OnePassTuning(queries, METRIC, (), count, 6, seed, path)


@pytest.mark.parametrize("is_sparse", [False, True])
def test_the_metric_is_that_of_each_alone_before_it_learns(is_sparse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "BLOCK_ROWS", 100)
    queries = linear_queries(300, 3, is_sparse=is_sparse)
    result = tuned(queries).run()
    assert len(result.entries) > 12
    assert result.entries[0] is result.best and result.best.end == ""
    alone = [entry for entry in result.entries if entry.joined == 0 and not entry.end]
    for entry in alone:
        ranker = entry.configuration.ranker()
        values = METRIC.per_query(ranker.progressive(queries), queries)
        assert entry.mean == pytest.approx(np.nanmean(values), abs=1e-9)
        error = np.nanstd(values, ddof=1) / np.count_nonzero(~np.isnan(values)) ** 0.5
        assert entry.high - entry.mean == pytest.approx(1.959964 * error, rel=1e-6)
    assert len(alone) > 1


def test_the_model_is_the_best_configuration_fitted_once() -> None:
    queries = linear_queries(300, 4)
    result = OnePassTuning(queries, METRIC, ("ElasticRank",), 4, 4, 0).run()
    assert result.best.joined == 0, "the sample's best is one of the first, for this seed"
    alone = clone(result.best.configuration.ranker()).partial_fit(queries)
    np.testing.assert_allclose(result.best_model.weights, alone.coef_, rtol=1e-5, atol=1e-6)
    assert result.best_model.solver == "ElasticRank" and result.best_model.metric == "ndcg@5"


def as_in_earlier_releases(path: Path) -> None:
    """Write a checkpoint anew with values of queries that do not count at the next look, before the others."""
    about, arrays = PassCheckpoint(path, {}).load() or ({}, {})
    window = arrays["window"]
    arrays["window"] = np.hstack([np.full((len(window), 7), 9.0), window])
    PassCheckpoint(path, about["declared"]).save(about, arrays)


@pytest.mark.parametrize(("is_sparse", "is_earlier"), [(False, False), (True, False), (False, True)])
def test_an_interrupted_pass_ends_as_a_whole_one(
    is_sparse: bool, is_earlier: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tuning, "BLOCK_ROWS", 64)
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    monkeypatch.setattr(checkpoint, "SHARE_OF_WRITING", 1e9)
    queries, path = linear_queries(300, 7, is_sparse=is_sparse), tmp_path / "checkpoint.npz"
    whole = tuned(queries).run()
    learn, blocks, widths = OnePassTuning._learn, 0, [0]

    def interrupted(self: OnePassTuning) -> None:
        nonlocal blocks
        blocks += 1
        if blocks % 5 == 0:
            raise KeyboardInterrupt
        learn(self)

    monkeypatch.setattr(OnePassTuning, "_learn", interrupted)
    for _ in range(100):
        try:
            result = tuned(queries, path=path).run()
            break
        except KeyboardInterrupt:
            if is_earlier:
                as_in_earlier_releases(path)
            else:
                widths.append(np.load(path)["window"].shape[1])
    assert blocks > 20
    assert max(widths) <= 75 + 64 / 2, "of the last 150 queries half count, and a block has up to 64 documents"
    assert result.as_dict() == whole.as_dict()
    np.testing.assert_array_equal(result.best_model.weights, whole.best_model.weights)


def test_a_checkpoint_of_something_else_or_a_damaged_one_is_refused(tmp_path: Path) -> None:
    queries, path = linear_queries(100, 8), tmp_path / "checkpoint.npz"
    tuned(queries, path=path).save()
    tuned(queries, path=path).run()
    with pytest.raises(StudyError, match="another pass: its configurations is 12, not 13"):
        tuned(queries, 13, path)
    with pytest.raises(StudyError, match="another pass: its data"):
        tuned(linear_queries(100, 9), path=path)
    content = path.read_bytes()
    for damaged in (content[: len(content) // 2], b"", content[:900] + b"!" + content[901:], b"PK" + content[2:600]):
        path.write_bytes(damaged)
        with pytest.raises(StudyError, match=r"is damaged|another pass"):
            tuned(queries, path=path)
    PassCheckpoint(path, {}).save({"format": 99}, {})
    with pytest.raises(StudyError, match="has the format 99"):
        tuned(queries, path=path)


def test_what_a_pass_cannot_use_is_refused() -> None:
    queries = linear_queries(40, 10)
    for unusable, message in (
        (replace(queries, has_missing=True), "missing values"),
        (queries.weighted_by(np.full(40, 2.0)), "cannot weigh queries"),
        (queries.constrained({0: 1}), "monotone"),
        (replace(queries, grades=np.ones(queries.n_documents)), "nothing to learn"),
    ):
        with pytest.raises(DataError, match=message):
            tuned(unusable)
    with pytest.raises(ParameterError, match=r"cannot learn in one pass.*SOLAR1"):
        OnePassTuning(queries, METRIC, ("SOLAR",), 4, 4, 0)


def test_configurations_that_overflow_leave_the_pass() -> None:
    queries = linear_queries(200, 11, is_sparse=True)
    huge = replace(queries, features=queries.features.astype(float) * 1e150)
    with pytest.raises(AllFailed, match="overflowed"):
        OnePassTuning(huge, METRIC, ("ElasticRank",), 4, 4, 0).run()


def number_of(point: PassConfiguration, name: str) -> float:
    value = point.parameters[name]
    assert isinstance(value, float)
    return value


@pytest.mark.parametrize("is_sparse", [False, True])
def test_drawn_configurations_are_inside_their_space(is_sparse: bool) -> None:
    space, generator = ConfigurationSpace(None, is_sparse), np.random.default_rng(0)
    drawn = space.first(64, generator)
    assert len(drawn) == 64 and {point.solver for point in drawn} == {"ElasticRank", "SOLAR1"}
    assert 8 <= sum(point.solver == "SOLAR1" for point in drawn) <= 24
    for point in [*drawn]:
        drawn += [space.near(point, generator), space.drawn(generator)]
    for point in drawn:
        point.ranker()._check_parameters()
        values = point.parameters
        assert not (values.get("loss") == "pairwise_logistic" and values["pair_weight"] == "uniform")
        assert values["scaling"] == "none" if is_sparse else values["scaling"] in ("standard", "minmax")
        for parameter in space.spaces[point.solver]:
            if isinstance(parameter, Float) and parameter.name in values:
                assert parameter.low <= number_of(point, parameter.name) <= parameter.high
    rates = np.sort([number_of(point, "eta0") for point in drawn[2:64] if point.solver == "ElasticRank"])
    assert rates[0] < 0.006 and rates[-1] > 0.5
