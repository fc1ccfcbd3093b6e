"""Write the shipped file of api-search: python -m ranktune.solvers.data.api_search.pack FILE.

Of the 68 features it holds those that cannot be computed from others, rounded to float16.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.data.api_search.dataset import PACKAGES, Table, build, installed_documents
from ranktune.solvers.data.api_search.features import FEATURE_NAMES

STORED = tuple(name for name in FEATURE_NAMES[:25] if name != "length_ratio")


def lines(texts: tuple[str, ...]) -> NDArray[Any]:
    """Return the UTF-8 bytes of the texts, a line each."""
    return np.frombuffer("\n".join(texts).encode(), dtype=np.uint8)


def log_lengths(table: Table) -> NDArray[Any]:
    """Return the length of each document, known where it is a candidate; all are, or their ratio to one tells it."""
    result = np.full(len(table.names), np.nan, dtype=np.float32)
    result[table.candidates] = table.features[:, :, FEATURE_NAMES.index("log_length")]
    for at in np.flatnonzero(np.isnan(result)):
        theirs = result[table.candidates[at]].astype(np.float64)
        shift = -np.log(table.features[at, :, FEATURE_NAMES.index("length_ratio")].astype(np.float64))
        choices = np.concatenate([theirs + shift, theirs - shift])
        fits = [np.abs(np.abs(theirs - choice) - shift).max() for choice in choices]
        result[at] = choices[int(np.argmin(fits))]
    return result


def main() -> None:
    """Write the file named by the first argument."""
    table = build(installed_documents(PACKAGES))
    part = np.zeros(len(table.names), dtype=np.int8)
    for number, queries in enumerate(table.parts.values(), start=1):
        part[queries] = number
    stored = [np.ascontiguousarray(table.features[:, :, FEATURE_NAMES.index(name)]) for name in STORED]
    np.savez_compressed(
        sys.argv[1],
        allow_pickle=False,
        names=lines(table.names),
        summaries=lines(table.summaries),
        aliases=lines(tuple(alias for alias, _ in table.aliases)),
        alias_of=np.array([at for _, at in table.aliases], dtype=np.int16),
        part=part,
        candidates=table.candidates.astype(np.int16),
        grades=table.grades,
        log_length=log_lengths(table),
        features=np.stack(stored).astype(np.float16),
    )


if __name__ == "__main__":
    main()
