"""Interleaving written another way: all tosses of the coins, credit by the papers, and how likely clicks are."""

from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import Any

from ranktune.tuner.interleaving.lists import METHODS, InterleavedList


class Coins:
    """A generator whose tosses are known."""

    def __init__(self, tosses: Sequence[int]) -> None:
        self.tosses = iter(tosses)

    def integers(self, _: int) -> int:
        return next(self.tosses)


def all_lists(method: str, a: Sequence[str], b: Sequence[str], length: int) -> list[InterleavedList]:
    """The lists of all tosses, each as likely as the others."""
    made: Any = METHODS[method]
    return [
        made(a, b, Coins(tosses), length) for tosses in product((0, 1), repeat=min(length, len({*a, *b})))
    ]  # a round shows one or two


def patterns(n: int) -> Iterator[tuple[int, ...]]:
    """All sets of clicked places of n, from 0."""
    for size in range(n + 1):
        yield from combinations(range(n), size)


def credit(method: str, shown: InterleavedList, clicked: Sequence[int], a: Sequence[str], b: Sequence[str]) -> int:
    """1 where A wins, -1 where B does: clicks by team, or in the tops of both rankings that cover all clicks."""
    if method == "team-draft":
        sides = [shown.teams[k] for k in clicked]
        ahead = sides.count("A") - sides.count("B")
    else:
        documents = {shown.documents[k] for k in clicked}
        covering = (k for k in range(len(a) + len(b) + 1) if documents <= {*a[:k], *b[:k]})
        k = next(covering)
        ahead = len(documents & {*a[:k]}) - len(documents & {*b[:k]})
    return (ahead > 0) - (ahead < 0)
