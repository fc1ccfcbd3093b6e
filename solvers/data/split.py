"""Training, validation and test queries, as a user gives them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ranktune.solvers.data.queries import Queries


@dataclass(frozen=True, eq=False)
class QuerySplit:
    """Training queries, and validation and test queries where the user gave them."""

    name: str
    train: Queries
    vali: Queries | None = None
    test: Queries | None = None

    def allowing_missing(self) -> QuerySplit:
        """Return the split whose parts may all have missing values if one has them, so that models can score them."""
        parts = {name: getattr(self, name) for name in ("train", "vali", "test")}
        present = {name: part for name, part in parts.items() if part is not None}
        if len({part.has_missing for part in present.values()}) == 1:
            return self
        return replace(self, **{name: replace(part, has_missing=True) for name, part in present.items()})
