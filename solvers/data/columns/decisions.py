"""What a user must decide about the columns of a table: all questions at once, each with its likeliest answer.

It loads the standard library alone: the command line and the functions of Python write all answers as one call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias, cast

from ranktune.solvers.core.errors import DataError

Answer: TypeAlias = Sequence[tuple[str, str]]
"""Options, each with the name of a column, or "grades" with the numbers of words."""

COLUMN, NUMBER = "COLUMN", "NUMBER"
"""The answer where no column, or no number, is likely."""


class ColumnQuestion(NamedTuple):
    """A question about columns: what was found, and what can be said.

    answer is the likeliest answer. is_needed: nothing is learned without an answer.
    """

    question: str
    answer: Answer = ()
    is_needed: bool = True


def as_list(names: Sequence[str] | str) -> list[str]:
    """Return names, or a single one, as a list."""
    return [names] if isinstance(names, str) else list(names)


def left_out(names: Iterable[str]) -> Answer:
    """Return the answer that columns are not used."""
    return [("drop", name) for name in names]


def questions(decisions: Sequence[ColumnQuestion]) -> str:
    """Return the questions, numbered where there are several."""
    if len(decisions) == 1:
        return decisions[0].question
    lines = [f"\n{number}. {decision.question}" for number, decision in enumerate(decisions, 1)]
    return f"{len(lines)} decisions about columns:{''.join(lines)}"


def by_option(decisions: Iterable[ColumnQuestion]) -> dict[str, list[str]]:
    """Return option -> the columns that the answers give it."""
    columns: dict[str, list[str]] = {}
    for option, name in (pair for decision in decisions for pair in decision.answer):
        columns.setdefault(option, []).append(name)
    return columns


def answered(options: Mapping[str, object], decisions: Iterable[ColumnQuestion]) -> dict[str, object]:
    """Return options of reading with the answers of decisions."""
    dropped = as_list(cast(Sequence[str] | str, options.get("drop") or ()))
    columns = by_option(decisions).items()
    return {**options, **{option: [*dropped, *names] if option == "drop" else names[-1] for option, names in columns}}


class Undecided(DataError):
    """Decisions about columns that are needed; place is where the table is, call what answers them in Python."""

    def __init__(self, decisions: Iterable[ColumnQuestion], place: str = "", call: str = "") -> None:
        self.decisions, self.place = tuple(decisions), place
        self.asked = f"{place}: " * bool(place) + questions(self.decisions)
        call = call or self._arguments({}) * (len(self.decisions) > 1)
        super().__init__(f"{self.asked}\nAll answers at once: {call}" if call else self.asked)

    def __reduce__(self) -> tuple[type[Undecided], tuple[Sequence[ColumnQuestion], str]]:
        """Pickle the decisions: a worker process may read the data."""
        return Undecided, (self.decisions, self.place)

    def in_call(self, function: str, options: Mapping[str, object]) -> Undecided:
        """Return the same with a whole call of a public function, which was called with given."""
        return Undecided(self.decisions, self.place, f"ranktune.{function}({self._arguments(options)})")

    def _arguments(self, options: Mapping[str, object]) -> str:
        shown = {name: repr(value) for name, value in answered(options, self.decisions).items()}
        return ", ".join(
            f"{name}={name if text[0] == '<' or chr(10) in text else text}" for name, text in shown.items()
        )
