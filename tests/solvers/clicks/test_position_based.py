"""The position-based model is that of plain EM, finds the truth of simulations, and says what a log does not tell."""

from collections import defaultdict
from math import log
from pathlib import Path

import numpy as np
import polars
import pytest

from ranktune.solvers.clicks.counts import ClickCounts
from ranktune.solvers.clicks.examination import Examination
from ranktune.solvers.clicks.mixture import ClickMixture, climb
from ranktune.solvers.clicks.position_based import PositionBased, TrustBias
from ranktune.solvers.clicks.rates import ClickRate
from ranktune.solvers.core.errors import DataError, ParameterError
from tests.support.click_counts import counted, drawn_counts, simulated_counts
from tests.support.click_simulation import Users


def plain_em(counts: ClickCounts, steps: int) -> tuple[list[float], list[float]]:
    """The probabilities of clicks by row, and the likelihood of each step: examination and attraction are hidden."""
    rows = list(zip(counts.query, counts.document, counts.position, counts.shown, counts.clicks, strict=True))
    seen, attracts = {row[2]: 0.5 for row in rows}, {row[:2]: 0.5 for row in rows}
    likelihoods = []
    for _ in range(steps):
        likelihood = 0.0
        sums: dict[object, list[float]] = defaultdict(lambda: [0.0, 0.0])
        for *pair, k, shown, clicks in rows:
            e, a = seen[k], attracts[tuple(pair)]
            likelihood += clicks * log(e * a) + (shown - clicks) * log(1.0 - e * a)
            missed = (shown - clicks) / (1.0 - e * a)
            for key, hidden in ((k, missed * e * (1.0 - a)), (tuple(pair), missed * a * (1.0 - e))):
                sums[key][0] += clicks + hidden
                sums[key][1] += shown
        seen = {k: sums[k][0] / sums[k][1] for k in seen}
        attracts = {pair: sums[pair][0] / sums[pair][1] for pair in attracts}
        likelihoods.append(likelihood)
    return [seen[row[2]] * attracts[row[:2]] for row in rows], likelihoods


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_highest_likelihood_is_that_of_plain_em(seed: int) -> None:
    counts = drawn_counts(np.random.default_rng(seed), queries=3, documents=4, positions=4)
    fitted = PositionBased(shrink=False).fit(counts)
    expected, likelihoods = plain_em(counts, 4000)
    assert (np.diff(likelihoods) > -1e-9).all()
    np.testing.assert_allclose(fitted.click_probability(counts), expected, atol=1e-6)
    assert fitted.values[-1] == pytest.approx(likelihoods[-1], abs=1e-6)


@pytest.mark.parametrize("trust", [False, True])
def test_no_step_lowers_the_posterior_density(trust: bool) -> None:
    generator = np.random.default_rng(2)
    counts = drawn_counts(generator)
    n = len(counts.firsts)
    free = np.zeros(5, dtype=bool)
    problem = ClickMixture(counts, counts.position - 1, generator.uniform(0.1, 0.5, n), 2.0, free, trust)
    values = np.concatenate([generator.uniform(0.3, 0.9, 5), generator.uniform(0.01, 0.2, 5), np.full(n, 0.3)])
    on_the_way = [problem.value(values)]
    for _ in range(50):
        values = problem.step(values)
        on_the_way.append(problem.value(values))
    assert (np.diff(on_the_way) >= -1e-9).all()
    assert climb(problem.step, problem.value, values, 1e-8)[1][-1] >= on_the_way[-1]


@pytest.mark.parametrize("eta", [1.0, 1.5])
def test_examination_and_relevance_are_found_with_honest_intervals(eta: float) -> None:
    counts, truth = simulated_counts(Users(eta=eta), 3)
    fitted = PositionBased().fit(counts)
    true = fitted.examination.position**-eta
    found = fitted.examination
    assert (np.abs(found.value / true - 1.0) < 0.1).all()
    assert (np.abs(found.value - true)[1:] < 3.5 * found.standard_error[1:]).all()
    judgments, raw = fitted.judgments(), ClickRate().fit(counts).judgments()
    covered = (judgments.low <= truth) & (truth <= judgments.high)
    assert 0.93 <= covered.mean() <= 0.985
    assert np.corrcoef(judgments.relevance, truth)[0, 1] > np.corrcoef(raw.relevance, truth)[0, 1] + 0.05
    assert ((0.0 <= judgments.weight) & (judgments.weight <= 1.0)).all()
    assert (judgments.effective <= judgments.impressions * (1.0 + 1e-6)).all()


@pytest.mark.thorough
def test_intervals_of_examination_cover_the_truth() -> None:
    covered = []
    for seed in range(30):
        counts, _ = simulated_counts(Users(), seed, n_queries=10, sessions=4000)
        found = PositionBased().fit(counts).examination
        true = 1.0 / found.position
        covered.append(((found.low <= true) & (true <= found.high))[1:])
    assert 0.9 <= np.mean(covered) <= 0.995


def test_what_a_log_does_not_tell_is_unknown() -> None:
    counts = counted(
        [
            *((0, 0, k, 100, 30 // k) for k in (1, 2)),
            (0, 1, 2, 100, 5),  # seen where another pair tells the examination
            *((1, 2, k, 100, 40 // k) for k in (3, 4)),  # nothing compares 3 and 4 with 1
            *((1, 3, k, 100, 0) for k in (1, 3)),  # without clicks
            (2, 4, 4, 100, 10),
        ]
    )
    fitted = PositionBased().fit(counts)
    assert fitted.examination.known.tolist() == [True, True, False, False]
    assert np.isnan(fitted.examination.low).tolist() == [False, False, True, True]
    judgments = fitted.judgments()
    assert list(judgments.status) == ["known", "one position", "unknown", "one position", "unknown"]
    assert np.isnan(judgments.relevance).tolist() == [False, False, True, False, True]
    assert judgments.weight[2] == judgments.effective[4] == 0.0
    given = PositionBased(propensities=Examination.given({1: 1.0, 2: 0.5, 3: 0.25})).fit(counts)
    assert given.examination.known.all()  # 4 is compared with 3
    assert given.examination.value[:3].tolist() == pytest.approx([1.0, 0.5, 0.25])
    assert set(given.judgments().status) == {"known", "one position"}


def test_given_propensities_give_rates_divided_by_them() -> None:
    counts = drawn_counts(np.random.default_rng(5))
    given = Examination.given({k: 0.8 / k for k in range(1, 6)})
    fitted = PositionBased(shrink=False, propensities=given).fit(counts)
    p = fitted.click_probability(counts)
    score = counts.by_pair((counts.clicks - counts.shown * p) / (1.0 - p))  # slope of the likelihood in log attraction
    inside = (fitted.relevance < 1.0 - 1e-6) & (fitted.relevance > 1e-6)
    assert inside.sum() > 10 and np.abs(score[inside]).max() < 1e-2
    np.testing.assert_allclose(p, given.at(counts.position) * fitted.relevance[counts.pair], rtol=1e-9)


def test_trust_is_found_where_pairs_have_many_clicks() -> None:
    users = Users("trust")
    counts, truth = simulated_counts(users, 6, n_queries=8)
    fitted = TrustBias().fit(counts)
    found = fitted.examination
    up, down = users.rates(found.position)
    slope = (up - down) / (up - down)[0]
    error = np.abs(found.value - slope)[1:]
    row = counts.position - 1
    assert (
        fitted.offset[row] + found.value[row] * fitted.precision.mean[counts.pair] > 0.0
    ).all()  # clicks are possible
    assert (error < 3.5 * found.standard_error[1:]).all() and (error / slope[1:] < 0.25).all()
    assert np.abs(fitted.offset - (down - slope * down[0])).max() < 0.02
    plain = PositionBased().fit(counts)
    assert np.abs(fitted.relevance - truth).mean() < 0.7 * np.abs(plain.relevance - truth).mean()
    with pytest.raises(DataError, match="does not tell trust"):
        TrustBias().fit(counted([(0, 0, 1, 100, 10), (0, 0, 2, 100, 5)]))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_judgments_are_read_back(tmp_path: Path, ending: str) -> None:
    judgments = PositionBased().fit(drawn_counts(np.random.default_rng(7))).judgments()
    judgments.save(tmp_path / f"judgments.{ending}")
    read = polars.read_csv if ending == "csv" else polars.read_parquet
    table = read(tmp_path / f"judgments.{ending}")
    assert table["relevance"].to_list() == judgments.relevance.tolist()
    assert table["document"].to_list() == list(judgments.document)
    with pytest.raises(ParameterError, match=r"\.csv or \.parquet"):
        judgments.save(tmp_path / "judgments.txt")


def test_a_log_that_tells_nothing_is_an_error() -> None:
    with pytest.raises(DataError, match="no clicks"):
        PositionBased().fit(counted([(0, 0, 1, 10, 0), (0, 1, 2, 10, 0)]))
    with pytest.raises(DataError, match="an impression weighs from 0 to 1"):
        PositionBased().fit(counted([(0, 0, 1, 10, 11)]))
    with pytest.raises(ParameterError, match="must be a positive number"):
        Examination.given({1: 0.0})
    single = PositionBased().fit(counted([(0, 0, 3, 100, 20), (0, 1, 3, 100, 10)]))
    assert single.judgments().relevance == pytest.approx([0.2, 0.1], abs=0.06)


def test_trust_tells_no_position_whose_documents_are_alike() -> None:
    """As many clicks, but documents of one relevance in each position below: its slope passes for its offset."""
    status = {}
    for spread in (0.3, 0.005):
        rows = []
        for k, position in enumerate((1, 2)):
            up, down = (0.9, 0.1) if k == 0 else (0.5, 0.05)
            for document, attraction in enumerate(0.4 + spread * np.linspace(-1.0, 1.0, 40)):
                rows.append((0, document, position, 20_000, 20_000 * (down + (up - down) * attraction)))
        examination = TrustBias().fit(counted(rows)).examination
        status[spread] = examination.status[1]
        if status[spread] == "known":
            assert examination.value[1] == pytest.approx(0.45 / 0.8, rel=0.05)
    assert status == {0.3: "known", 0.005: "not told apart"}
