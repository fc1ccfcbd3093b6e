"""What became of every line of a log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Self

import numpy as np

from ranktune.solvers.core.arrays import Mask

WIDTH = 80


@dataclass
class ReadingAccount:
    """Lines of text files and rows of tables, by what became of them. The three kinds add up to all of them.

    Attributes
    ----------
    lines : int
        All that were read.
    used, left_out, other : Counter
        Events by kind, events by why they are left out, and lines that are no events by what they are.

    Examples
    --------
    >>> from collections import Counter
    >>> print(ReadingAccount(4, Counter(impression=2), Counter({"no position": 1}), Counter(titles=1)))
    used      impression                                                           2
    left out  no position                                                          1
    no event  titles                                                               1
              lines                                                                4
    """

    lines: int = 0
    used: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)

    @property
    def counted(self) -> int:
        """The sum of all counts, which is the number of lines."""
        return sum(part.total() for part in (self.used, self.left_out, self.other))

    @property
    def most_left_out(self) -> str:
        """A sentence with the most frequent reason for which lines are left out, empty where none is."""
        return "".join(f" Most lines are left out: {what} ({n:,})." for what, n in self.left_out.most_common(1))

    def skip(self, what: str, fault: object = None) -> None:
        """Count a line that is no event, as left out where it has a fault."""
        self.lines += 1
        (self.other if fault is None else self.left_out)[what] += 1

    def sift(self, reasons: Iterable[tuple[str, Mask]], lines: Mask | bool = True) -> Mask:
        """Count lines by the first reason for which each is left out, and return which stay, (n,)."""
        used: Mask = np.ones((), dtype=bool)
        for reason, bad in reasons:
            if count := int(np.sum(bad & used & lines)):
                self.left_out[reason] += count
            used = used & ~bad
        return used

    def copy(self) -> Self:
        """Return an account of the same counts, without those of 0."""
        return type(self)(self.lines, +self.used, +self.left_out, +self.other)

    def __str__(self) -> str:
        """Return a table of 80 columns."""
        return "\n".join(self._rows())

    def _rows(self) -> Iterator[str]:
        for title, part in (("used", self.used), ("left out", self.left_out), ("no event", self.other)):
            for number, (what, count) in enumerate(part.most_common()):
                yield _row(title if not number else "", what, count)
        yield _row("", "lines", self.lines)


def _row(title: str, what: str, count: int) -> str:
    number = f"{count:,}"
    room = WIDTH - 10 - len(number) - 1
    shown = what if len(what) <= room else f"{what[: room - 3]}..."
    return f"{title:<10}{shown:<{room}} {number}"
