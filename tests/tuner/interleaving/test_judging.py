"""Judging a log: outcomes as by scalar credit, both forms of logs, intervals, alarms without a difference, bad logs."""

import json
import re
from pathlib import Path

import numpy as np
import polars
import pytest
from polars import col
from scipy.stats import binomtest

from ranktune.solvers.clicks.reading.account import ReadingAccount
from ranktune.solvers.core.arrays import Array
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.tuner.interleaving import judge
from ranktune.tuner.interleaving.judging import judged
from ranktune.tuner.interleaving.lists import METHODS
from ranktune.tuner.interleaving.searches import Searches, read_searches
from tests.support.interleaving import all_lists, credit, patterns


def searches(outcome: Array, user: Array | None = None) -> Searches:
    own = np.arange(len(outcome))
    return Searches(
        "team-draft", outcome, own, own if user is None else user, outcome != 0, user is not None, ReadingAccount()
    )


def written(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def lists_of(method: str) -> tuple[list[dict[str, object]], list[int]]:
    """Every list of some rankings with every set of clicks, and who wins by scalar credit."""
    rows, expected = list[dict[str, object]](), list[int]()
    for a, b in (("wxyz", "xyzw"), ("wxyz", "pqz"), ("x", "yx")):
        for shown in all_lists(method, a, b, 4):
            for clicked in patterns(len(shown.documents)):
                ranks = {"ranks_a": shown.ranks_a, "ranks_b": shown.ranks_b} if method == "balanced" else {}
                clicks = [k + 1 for k in clicked]
                rows.append({"query": a + b, "user": len(rows) % 40, "teams": shown.teams, "clicks": clicks, **ranks})
                expected.append(credit(method, shown, clicked, a, b))
    return rows, expected


@pytest.mark.parametrize("method", METHODS)
def test_outcomes_are_those_of_scalar_credit_in_both_forms(tmp_path: Path, method: str) -> None:
    rows, expected = lists_of(method)
    path = written(tmp_path / "log.jsonl", rows)
    found = read_searches([path], {})
    assert found.method == method and found.outcome.tolist() == expected
    assert found.account.used == {"shown": len(rows)} and not found.account.left_out
    frame = polars.DataFrame(rows, infer_schema_length=None).with_row_index("search_id")
    ranks = [name for name in frame.columns if name.startswith("ranks")]
    place = polars.int_ranges(1, col("teams").list.len() + 1).alias("position")
    flat = frame.with_columns(place).explode("teams", "position", *ranks)
    flat = flat.with_columns(col("position").is_in("clicks").alias("clicks")).rename({"teams": "Side"})
    flat.write_csv(tmp_path / "log.csv")
    flat.sample(fraction=1.0, shuffle=True, seed=0).write_parquet(tmp_path / "log.parquet")
    frame.drop("search_id").write_parquet(tmp_path / "lists.parquet")
    whole = judge(path)
    for name, columns in (("log.csv", {"team": "side"}), ("log.parquet", {"team": "Side"}), ("lists.parquet", {})):
        again = judge(tmp_path / name, columns=columns)
        for value in ("verdict", "preference", "low", "high", "searches", "queries", "clicked", "units", "unit"):
            assert getattr(again, value) == getattr(whole, value)


def test_tallies_count_searches_and_queries() -> None:
    outcome, query = np.array([1, 1, 1, -1, -1, 0]), np.array([0, 0, 0, 1, 2, 3])
    found = judged(
        Searches("team-draft", outcome, query, query, outcome != 0, False, ReadingAccount()), np.random.default_rng(0)
    )
    assert (found.searches.wins, found.searches.ties, found.searches.losses) == (3, 1, 2)
    assert (found.queries.wins, found.queries.ties, found.queries.losses) == (1, 1, 2)
    assert found.searches.p == binomtest(3, 5).pvalue and found.preference == pytest.approx(1 / 6)
    assert "4 queries are too few" in found.remarks[0]


def test_the_interval_is_a_bootstrap_of_users() -> None:
    generator = np.random.default_rng(0)
    user = generator.integers(0, 150, 600)
    taste = generator.normal(0.3, 1.0, 150)[user]
    outcome = np.sign(np.round(taste + generator.normal(0, 0.7, 600))).astype(int)
    found = judged(searches(outcome, user), generator)
    assert found.low is not None and found.high is not None
    width = np.sqrt(found.design_effect * outcome.var() / 600)
    assert (found.high - found.low) / (2 * 1.96) == pytest.approx(width, rel=0.06)
    copies = judged(searches(np.repeat(outcome, 3), np.repeat(np.arange(600), 3)), generator)
    assert copies.design_effect == pytest.approx(3.0, rel=0.01)
    assert judged(searches(outcome, np.arange(600)), generator).design_effect == pytest.approx(1.0)


def test_verdicts_are_rarely_wrong_and_follow_the_names() -> None:
    """Of users who differ and prefer neither: 5 % of verdicts, where a sign test of searches alone has many more."""
    generator = np.random.default_rng(1)
    user = np.repeat(np.arange(100), 6)
    logs = [
        judged(searches(np.where(generator.random(600) < 0.9, each[user], -each[user]), user), generator, 500)
        for each in generator.choice([-1, 1], (600, 100))
    ]
    assert sum(len(found.verdict) == 1 for found in logs) / 600 < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 600)
    assert sum(found.searches.p <= 0.05 for found in logs) / 600 > 0.2
    ahead = np.repeat([1, -1, 0], [90, 40, 70])
    for_a, for_b = (judged(searches(sign * ahead), np.random.default_rng(0)) for sign in (1, -1))
    assert (for_a.verdict, for_b.verdict) == ("A", "B") and for_b.preference == -for_a.preference
    assert judged(searches(0 * ahead), generator).verdict == "no difference found"
    one = judged(searches(abs(ahead), np.zeros(200)), generator)
    assert one.low is None and one.verdict == "no difference found" and one.as_dict()["interval"] is None


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    good: dict[str, object] = {"query": "q", "teams": ["A", "B", "-"], "clicks": ["1"]}
    bad: dict[str, dict[str, object]] = {
        "no list of teams": {"teams": []},
        "no list of clicked positions": {"clicks": None},
        "a team that is neither A, B nor -": {"teams": ["A", "C"]},
        "a clicked position outside of the list": {"clicks": [4]},
        "ranks are not as many as teams": {"ranks_a": [1], "ranks_b": [1, 2, 3]},
    }
    changes: list[dict[str, object]] = [{}, *bad.values(), {"clicks": [0]}]
    every = [good | {"ranks_a": [1, 2, 3], "ranks_b": [3, 2, 1]} | change for change in changes]
    found = read_searches([written(tmp_path / "lists.jsonl", every)], {}, "team-draft")
    assert found.outcome.tolist() == [1] and found.account.counted == 7
    assert found.account.left_out == {**dict.fromkeys(bad, 1), "a clicked position outside of the list": 2}
    rows = [
        "session,query,rank,team,click",
        "s,q,1,a,0",
        "s,q,1,A,1",
        "s,q,2,B,",
        "s,r,1,B,true",
        "s,r,2,1,1",
        ",,1,A,1",
    ]
    path = tmp_path / "rows.csv"
    path.write_text("\n".join([*rows, "t,q,1,A,x", "t,q,,A,1", "u,q,2,,1"]) + "\n")
    found = read_searches([path], {})
    assert found.outcome.tolist() == [1, 0] and found.account.counted == 10
    assert found.account.left_out == {
        "neither query nor session": 1, "a team that is neither A, B nor -": 1, "a click that is no number": 1,
        "no position": 1, "another row of its search is left out": 1, "a position that its search has already": 1,
    }  # fmt: skip


def test_bad_logs_are_refused_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    refused = {
        "query,position,click\nq,1,1": "has no column of the team. Name it: columns={'team': 'NAME'}",
        "query,team,click\nq,A,1": "has no column of the position",
        "team,position,click\nA,1,1": "has no column of the query",
        "query,team,position,click\nq,C,1,1": "no search is left to be judged. Most lines are left out: a team that",
        "query,team,position,click": "holds no rows",
    }
    for text, words in refused.items():
        path.write_text(text + "\n")
        with pytest.raises(DataError, match=re.escape(words)):
            judge(path)
    path.write_text("query,team,position,click\nq,A,1,1\n")
    with pytest.raises(DataError, match="has no ranks_a and ranks_b"):
        judge(path, method="balanced")
    with pytest.raises(DataError, match="has no column 'usr' for the user"):
        judge(path, columns={"user": "usr"})
    for options, words in (({"columns": {"usr": "user"}}, "which no column is"), ({"method": "draft"}, "is unknown")):
        with pytest.raises(ParameterError, match=words):
            judge(path, **options)
    with pytest.raises(ParameterError, match="no file is given"):
        judge()
