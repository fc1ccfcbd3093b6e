"""Click models on simulated logs, through the command: what is kept, compared and covered."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers import RankSVM
from ranktune.solvers.clicks.counts import Counts
from ranktune.solvers.core.errors import ParameterError
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.studies.benchmarks.clicks import command, learning
from ranktune.studies.benchmarks.clicks.learning import LEARNERS, USERS, from_judgments, models_of
from ranktune.studies.benchmarks.clicks.policies import PAGE, SESSIONS, Pages, open_bandit
from ranktune.studies.clicks.simulation import simulated
from tests.support.click_counts import graded_queries
from tests.support.turnkey_samples import queries, write

TRAIN, TEST = queries(40, 1), queries(30, 2)


def test_a_log_is_compared_with_all_grades_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    some = {name: model for name, model in models_of().items() if name in ("CTR", "PBM")}
    monkeypatch.setattr(learning, "models_of", lambda: some)
    write(tmp_path / "a.train.txt", TRAIN)
    write(tmp_path / "a.test.txt", TEST)

    def run() -> list[str]:
        found = command.main([tmp_path / "a"], users=["eta 1"], sessions=3000, replications=3, keep_in=tmp_path / "k")
        return [str(table.rows) for table in found]

    first = run()
    assert len(first) == len(LEARNERS) + 3 and len((tmp_path / "k").read_text().splitlines()) == 2
    (row,) = command.main([tmp_path / "a"], users=["eta 1"], sessions=3000, keep_in=tmp_path / "k", replications=0)[
        1
    ].rows
    expected = parse_metric("ndcg@10").mean(RankSVM().fit(TRAIN).predict(TEST), TEST)
    assert float(str(row["full"])) == pytest.approx(expected, abs=2e-3)
    monkeypatch.setattr(command, "measured", None)  # nothing is measured again
    assert run() == first
    with pytest.raises(ParameterError, match="no users 'eta 2'"):
        command.main([tmp_path / "a"], users=["eta 2"])


def test_judgments_become_grades_and_weights_of_their_rows() -> None:
    train, scores = graded_queries(np.random.default_rng(0), 6)
    log = simulated(train, USERS["eta 1"], 500, np.random.default_rng(1), scores=scores)
    judgments = models_of()["CTR"].fit(Counts.of([log])).judgments()
    found = from_judgments(train, judgments)
    at = {int(name): place for place, name in enumerate(judgments.document)}
    rows = sorted(at)
    np.testing.assert_array_equal(found.features, train.features[rows])
    np.testing.assert_array_equal(found.grades, judgments.relevance[[at[row] for row in rows]])
    assert found.document_weights is not None
    np.testing.assert_array_equal(found.document_weights, judgments.weight[[at[row] for row in rows]])


@pytest.mark.parametrize("name", USERS)
def test_the_new_policy_earns_what_its_pages_earn(name: str) -> None:
    data, scores = graded_queries(np.random.default_rng(2), 8, 14)
    pages, users, generator = Pages.of(data, USERS[name], scores, -scores), USERS[name], np.random.default_rng(3)
    place = np.argsort(pages.target, axis=1)
    ranked = np.take_along_axis(pages.attraction, place, axis=1)
    clicks = np.array([users.clicks(ranked, generator).mean() for _ in range(2000)])
    assert clicks.mean() == pytest.approx(pages.truth(users), abs=5.0 * clicks.std() / np.sqrt(2000))
    found = pages.estimates(users, generator)
    assert found["IPS"].mean_weight == pytest.approx(1.0, abs=0.2)
    assert (found["DR"].high - found["DR"].low) < 1.05 * (found["IPS"].high - found["IPS"].low)
    assert pages.length.tolist() == [PAGE] * 8 and SESSIONS > 0


def test_a_policy_is_judged_from_the_log_of_another(real_data: Path) -> None:
    rows = list(open_bandit(real_data / "clicks" / "open_bandit"))
    assert len(rows) == 4 and all(row["agree"] for row in rows)
