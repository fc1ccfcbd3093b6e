"""The table of what configurations reach on tasks: its rows, and all of them in one small file.

A row is a configuration on one task, with its checkpoints and its values of validation queries. The values of test
queries are many, so that the file has their mean alone.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import asdict, astuple, dataclass, replace
from pathlib import Path
from typing import Self
from zipfile import BadZipFile

import numpy as np

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.data.blocks import QuerySplit
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
        stored = fields.get("sizes")
        sizes = (
            None if stored is None else Sizes(tuple(stored["queries"]), tuple(stored["documents"]), stored["features"])
        )
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


def pack(rows: Sequence[ConfigurationRow], path: Path) -> None:
    """Write the rows that did not fail. Raises ParameterError where there are none."""
    scored = [row for row in rows if row.vali is not None]
    if not scored:
        raise ParameterError("there are no rows to pack: make them with the command table.")
    names = [sorted({getattr(row, name) for row in scored}) for name in ("task", "configuration")]
    places = [{name: place for place, name in enumerate(each)} for each in names]
    vali = [np.where(np.isnan(row.vali), -1.0, np.round(row.vali * STEPS)) for row in scored if row.vali is not None]
    sizes = {row.task: row.sizes for row in scored if row.sizes is not None}
    points = [astuple(point) for row in scored for point in row.checkpoints]
    np.savez_compressed(
        path,
        names=np.frombuffer(json.dumps(names).encode(), dtype=np.uint8),
        sizes=np.array([(places[0][task], *s.queries, *s.documents, s.features) for task, s in sizes.items()]),
        task=np.array([places[0][row.task] for row in scored], dtype=np.int16),
        configuration=np.array([places[1][row.configuration] for row in scored], dtype=np.int16),
        share=np.array([row.share for row in scored]),
        test=np.array([mean_value(row.test) for row in scored], dtype=np.float32),
        lengths=np.array([[len(row.checkpoints), len(values)] for row, values in zip(scored, vali, strict=True)]),
        checkpoints=np.array(points, dtype=np.float32).T.copy(),
        vali=np.concatenate(vali).astype(np.int16),
    )


def unpack(path: Path) -> list[ConfigurationRow]:
    """Return the rows that pack wrote, test the mean of each alone. Raises DataError for another file."""
    try:
        with path.open("rb") as file, np.load(file) as packed:
            table = {name: packed[name] for name in packed.files}
        tasks, configurations = json.loads(table["names"].tobytes())
    except (OSError, ValueError, KeyError, AttributeError, BadZipFile) as error:
        raise DataError(f"{path}: not a packed table. Write it with the command pack.") from error
    sizes = {place: Sizes(tuple(s[:3]), tuple(s[3:6]), s[6]) for place, *s in table.get("sizes", np.array([])).tolist()}
    points = [ModelCheckpoint(*map(float, point)) for point in table["checkpoints"].T]
    values = np.where(table["vali"] < 0, np.nan, table["vali"] / STEPS)
    ends = np.cumsum(table["lengths"], axis=0)
    rows = []
    for place, (task, configuration, share) in enumerate(
        zip(table["task"], table["configuration"], table["share"], strict=True)
    ):
        (point, value), (n_points, n_values) = ends[place], table["lengths"][place]
        models = tuple(points[point - n_points : point])
        row = ConfigurationRow(
            tasks[task], configurations[configuration], float(share), models, sizes=sizes.get(int(task))
        )
        rows.append(row.with_values(values[value - n_values : value], table["test"][place : place + 1]))
    return rows
