"""The table as one small file: every row with its checkpoints and its values of validation queries.

The values of test queries are many, so that their mean alone is kept.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import astuple
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.studies.benchmarks.task_table.rows import STEPS, ConfigurationRow, ModelCheckpoint, Sizes, mean_value


def pack(rows: Sequence[ConfigurationRow], path: Path) -> None:
    """Write the rows that did not fail. Raises ParameterError where there are none."""
    kept = [row for row in rows if row.vali is not None]
    if not kept:
        raise ParameterError("there are no rows to pack: make them with the command table.")
    names = [sorted({getattr(row, name) for row in kept}) for name in ("task", "configuration")]
    places = [{name: place for place, name in enumerate(each)} for each in names]
    vali = [np.where(np.isnan(row.vali), -1.0, np.round(row.vali * STEPS)) for row in kept if row.vali is not None]
    sizes = {row.task: row.sizes for row in kept if row.sizes is not None}
    points = [astuple(point) for row in kept for point in row.checkpoints]
    np.savez_compressed(
        path,
        names=np.frombuffer(json.dumps(names).encode(), dtype=np.uint8),
        sizes=np.array([(places[0][task], *s.queries, *s.documents, s.features) for task, s in sizes.items()]),
        task=np.array([places[0][row.task] for row in kept], dtype=np.int16),
        configuration=np.array([places[1][row.configuration] for row in kept], dtype=np.int16),
        share=np.array([row.share for row in kept]),
        test=np.array([mean_value(row.test) for row in kept], dtype=np.float32),
        lengths=np.array([[len(row.checkpoints), len(values)] for row, values in zip(kept, vali, strict=True)]),
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
        own = tuple(points[point - n_points : point])
        row = ConfigurationRow(
            tasks[task], configurations[configuration], float(share), own, sizes=sizes.get(int(task))
        )
        rows.append(row.with_values(values[value - n_values : value], table["test"][place : place + 1]))
    return rows
