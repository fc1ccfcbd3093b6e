"""A row of the table: what one configuration reaches on one task, and how it is kept as text."""

from __future__ import annotations

import base64
from dataclasses import asdict, dataclass, replace
from typing import Self

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.data.split import QuerySplit
from ranktune.solvers.metrics.means import mean_of

STEPS = 32_767
"""The values of queries, from 0 to 1, are kept in so many steps."""


@dataclass(frozen=True)
class ModelCheckpoint:
    """A model on the way: rounds of boosting, or a value of the path; processor seconds so far, and what it scores."""

    value: float
    seconds: float
    vali: float
    test: float


@dataclass(frozen=True)
class Sizes:
    """How many queries and documents a task has to train, to validate and to test, and how many features."""

    queries: tuple[int, int, int]
    documents: tuple[int, int, int]
    features: int

    @classmethod
    def of(cls, split: QuerySplit) -> Self:
        """Return the sizes of a split with validation and test queries."""
        assert split.vali is not None
        assert split.test is not None
        train, vali, test = split.train, split.vali, split.test
        documents = train.n_documents, vali.n_documents, test.n_documents
        return cls((train.n_queries, vali.n_queries, test.n_queries), documents, train.n_features)


@dataclass(frozen=True)
class ConfigurationRow:
    """What a configuration reaches.

    configuration  its name
    checkpoints    the models on the way, of which the best by validation counts
    vali, test     the metric of that model by query, NaN where the metric skips it; packed rows have the mean test
    error          why it failed, empty otherwise
    sizes          of a task that is not drawn, whose seed tells them otherwise
    """

    task: str
    configuration: str
    share: float
    checkpoints: tuple[ModelCheckpoint, ...] = ()
    vali: Floats | None = None
    test: Floats | None = None
    error: str = ""
    sizes: Sizes | None = None

    @property
    def key(self) -> tuple[str, str, float]:
        """What the row is about."""
        return self.task, self.configuration, self.share

    def with_values(self, vali: Floats, test: Floats) -> Self:
        """Return the row with the metric by query."""
        return replace(self, vali=vali, test=test)

    def as_json(self) -> Json:
        """Return the row as values of JSON."""
        values = {name: _text(getattr(self, name)) for name in ("vali", "test")}
        return asdict(replace(self, vali=None, test=None)) | values

    @classmethod
    def from_json(cls, fields: Json) -> Self:
        """Return the row that as_json wrote."""
        values = {name: _values(fields[name]) for name in ("vali", "test")}
        points = tuple(ModelCheckpoint(**each) for each in fields["checkpoints"])
        known = fields.get("sizes")
        sizes = None if known is None else Sizes(tuple(known["queries"]), tuple(known["documents"]), known["features"])
        return cls(**fields | values | {"checkpoints": points, "sizes": sizes})


def mean_value(values: Floats | None) -> float:
    """Return the mean of the metric over the queries that it does not skip."""
    assert values is not None
    return mean_of(values)


def _text(values: Floats | None) -> str:
    if values is None:
        return ""
    steps = np.where(np.isnan(values), -1.0, np.round(np.nan_to_num(values) * STEPS))
    return base64.b64encode(steps.astype("<i2").tobytes()).decode()


def _values(text: str) -> Floats | None:
    if not text:
        return None
    steps = np.frombuffer(base64.b64decode(text), dtype="<i2").astype(np.float64)
    return np.where(steps < 0.0, np.nan, steps / STEPS)
