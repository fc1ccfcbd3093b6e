"""Interleaved lists: the papers' algorithms written another way, and what random clicks may prefer."""

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.queries import Queries
from ranktune.tuner.interleaving import balanced, team_draft
from ranktune.tuner.interleaving.lists import METHODS, interleaved
from tests.support.interleaving import Coins, all_lists, credit, patterns

PAIRS = [
    *(("wxyz", "".join(other), length) for other in permutations("wxyz") for length in (3, 4)),
    ("wxyz", "pqrs", 4), ("wxyz", "zp", 4), ("x", "yx", 3), ("wxy", "xpqr", 5), ("", "wx", 2), ("wxyz", "x", 10),
]  # fmt: skip


@pytest.mark.parametrize("method", METHODS)
def test_documents_come_in_the_order_of_the_rankings(method: str) -> None:
    for a, b, length in PAIRS:
        for shown in all_lists(method, a, b, length):
            documents = [str(document) for document in shown.documents]
            assert len({*documents}) == len(documents) == min(length, len({*a, *b}))
            for ranking, ranks in ((a, shown.ranks_a), (b, shown.ranks_b)):
                seen = [ranking.index(d) + 1 if d in ranking[:length] else None for d in documents]
                assert ranks == seen
            for k, (document, team) in enumerate(zip(documents, shown.teams, strict=True)):
                best = {side: next((d for d in r if d not in documents[:k]), None) for side, r in (("A", a), ("B", b))}
                assert document in best.values() and (team == "-" or best[team] == document)


def test_team_draft_is_that_of_the_paper() -> None:
    for a, b, length in PAIRS:
        fair = min(len(a), len(b), length)
        for shown in all_lists("team-draft", a, b, length):
            assert [team == "-" for team in shown.teams] == [k >= fair for k in range(len(shown.teams))]
            for k in range(0, fair - 1, 2):  # rounds, whose coins are independent
                assert {*shown.teams[k : k + 2]} == {"A", "B"}
        teams = [tuple(shown.teams) for shown in all_lists("team-draft", a, b, length)]
        assert all(teams.count(each) * 2 ** -(-fair // 2) == len(teams) for each in teams)


@pytest.mark.parametrize("begins", [0, 1])
def test_balanced_is_that_of_the_paper(begins: int) -> None:
    for a, b, length in PAIRS:
        one, other, merged = 0, 0, list[str]()
        while len(merged) < length and (one < len(a) or other < len(b)):  # k_a and k_b of Joachims 2002
            if other >= len(b) or (one < len(a) and (one < other or (one == other and begins))):
                merged += [a[one]] * (a[one] not in merged)
                one += 1
            else:
                merged += [b[other]] * (b[other] not in merged)
                other += 1
        assert balanced(a, b, Coins([begins]), length).documents == merged  # type: ignore[arg-type]


def preference(method: str, a: str, b: str, length: int, clicked: Sequence[int]) -> int:
    return sum(credit(method, shown, clicked, a, b) for shown in all_lists(method, a, b, length))


def test_random_clicks_prefer_no_ranking_by_team_draft() -> None:
    for a, b, length in PAIRS:
        for clicked in patterns(min(length, len({*a, *b}))):
            assert preference("team-draft", a, b, length, clicked) == 0


@pytest.mark.parametrize("method", METHODS)
def test_equal_rankings_are_equal_and_swapped_ones_are_opposed(method: str) -> None:
    for clicked in patterns(4):
        assert preference(method, "wxyz", "wxyz", 4, clicked) == 0
    for a, b, length in PAIRS:
        for shown in all_lists(method, a, b, length)[:1]:
            for other in all_lists(method, b, a, length)[-1:]:  # the opposite coins
                swap = {"A": "B", "B": "A", "-": "-"}
                assert other.documents == shown.documents and other.teams == [swap[team] for team in shown.teams]
                for clicked in patterns(len(shown.documents)):
                    assert credit(method, other, clicked, b, a) == -credit(method, shown, clicked, a, b)


def test_random_clicks_prefer_the_shifted_ranking_by_balanced_lists() -> None:
    """Of wxyz and xyzw: w is first for A and last for B, and each of the others is one rank higher for B."""
    single = sum(preference("balanced", "wxyz", "xyzw", 4, [k]) for k in range(4))
    lists = len(all_lists("balanced", "wxyz", "xyzw", 4))
    assert single / (4 * lists) == (1 - 3) / 4  # a click on w favours A, on x, y or z favours B


def test_lists_of_queries_follow_scores_and_repeat_with_the_seed() -> None:
    queries = Queries.from_arrays(
        np.zeros((5, 1)), np.zeros(5), qid=["q", "q", "q", "r", "r"], document_ids=list("abcab")
    )
    up, down = np.array([1.0, 2.0, 2.0, 1.0, 2.0]), np.array([3.0, 2.0, 1.0, 0.0, 0.0])

    def rows(seed: int, method: str, numbered: bool = False) -> list[Json]:
        data = Queries.from_arrays(queries.features, queries.grades, group=[3, 2]) if numbered else queries
        generator = np.random.default_rng(seed)
        return [*interleaved(data, up, down, generator, method=method, length=9, draws=30)]

    first = rows(0, "balanced")
    assert [row["query"] for row in first] == ["q"] * 30 + ["r"] * 30
    assert {tuple(row["documents"]) for row in first[:30]} == {("b", "a", "c"), ("a", "b", "c")}
    assert first == rows(0, "balanced") != rows(1, "balanced") and "ranks_a" not in rows(0, "team-draft")[0]
    assert sorted(rows(0, "team-draft", True)[0]["documents"]) == [1, 2, 3]


def test_what_is_refused() -> None:
    generator = np.random.default_rng(0)
    with pytest.raises(DataError, match="ranking B has document 'y' twice"):
        team_draft(["x"], ["y", "y"], generator)
    with pytest.raises(ParameterError, match="length=0"):
        balanced(["x"], ["y"], generator, 0)
    twice = Queries.from_arrays(np.zeros((2, 1)), np.zeros(2), document_ids=["a", "a"])
    for method, error in (("draft", "method='draft' is unknown"), ("balanced", "query 0: ranking A has document 'a'")):
        with pytest.raises((DataError, ParameterError), match=error):
            list(interleaved(twice, np.zeros(2), np.zeros(2), generator, method=method, length=2, draws=1))
