"""api-search: ranking data from the documentation of packages that are installed wherever RankTune is.

A query is a documented public function or class: its name and its summary. Its candidates are the 50 others that
BM25 ranks first over name, summary and body. Its grades come from what people wrote under "See Also": a candidate has
grade 2 if query and candidate list each other, 1 if only the query lists the candidate, 0 otherwise. "See Also" is
removed from the text before anything is computed from it. The data are the queries with a graded candidate.

n  documented objects, sorted by name      m  candidates of each, at most 50      F  features
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import metadata, resources
from itertools import pairwise
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ranktune.solvers.core.arrays import Ints
from ranktune.solvers.core.caches import cache_folder
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.api_search import NAME
from ranktune.solvers.data.api_search.cache import Arrays, load_arrays, remove_old, save_arrays
from ranktune.solvers.data.api_search.docstrings import Page, parse
from ranktune.solvers.data.api_search.documentation import Documented, installed
from ranktune.solvers.data.api_search.features import FEATURE_NAMES, PairFeatures
from ranktune.solvers.data.api_search.names import PublicNames
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.data.split import Split

PACKAGES = ("joblib", "numpy", "optuna", "scipy", "sklearn")
CANDIDATES = 50
SEED = 1
SHARES = {"train": 0.6, "vali": 0.2, "test": 0.2}

_DISTRIBUTION = {"sklearn": "scikit-learn"}
_BLOCK = 256
_KEPT_DAYS = 30  # age at which tables of other versions of the packages are removed
_MADE_BY = ("bm25", "dataset", "docstrings", "documentation", "features", "names")

Progress = Callable[[str], None]


@dataclass(frozen=True, eq=False)
class Table:
    """All documented objects, each with its candidates; for look-ups, also those without a graded candidate.

    names       n public names, sorted         summaries  n, one line each
    aliases     (other public name, number of the object)
    candidates  (n, m) int32 numbers of objects, by falling BM25
    grades      (n, m) int8, 0, 1 or 2         features   (n, m, F) float32, named FEATURE_NAMES
    """

    names: tuple[str, ...]
    summaries: tuple[str, ...]
    aliases: tuple[tuple[str, int], ...]
    candidates: NDArray[np.int32]
    grades: NDArray[np.int8]
    features: NDArray[np.float32]

    @cached_property
    def known(self) -> PublicNames:
        """The index of all names."""
        return PublicNames.of(self.names, self.aliases)

    @cached_property
    def parts(self) -> dict[str, Ints]:
        """Numbers of the queries of train, vali and test, sorted: 60, 20 and 20 % of those with a graded candidate.

        Queries are dealt in the order of a digest of seed and name, so that when a new version of a package adds
        others, only queries at the two borders change their part.
        """
        graded = np.flatnonzero(self.grades.max(axis=1, initial=0) > 0)
        digest = {q: hashlib.blake2b(f"{SEED}:{self.names[q]}".encode(), digest_size=16).digest() for q in graded}
        order = sorted(graded, key=lambda q: digest[q])
        borders = np.rint(np.cumsum([0.0, *SHARES.values()]) * len(order)).astype(int)
        return {
            part: np.array(sorted(order[low:high]), dtype=np.int64)
            for part, (low, high) in zip(SHARES, pairwise(borders), strict=True)
        }

    def queries(self, numbers: Ints) -> Queries:
        """Return the objects with these numbers as queries, with the public names as ids."""
        names = np.array(self.names, dtype=np.str_)
        m = self.candidates.shape[1]
        starts = np.arange(len(numbers) + 1, dtype=np.int64) * m
        features = np.ascontiguousarray(self.features[numbers].reshape(len(numbers) * m, -1))
        grades = self.grades[numbers].ravel().astype(np.float64)
        ids = names[self.candidates[numbers].ravel()]
        return Queries(features, grades, starts, names[numbers], ids, FEATURE_NAMES)

    def to_arrays(self) -> Arrays:
        """Return the arrays that from_arrays takes."""
        return {
            "names": np.array("\n".join(self.names)),
            "summaries": np.array("\n".join(self.summaries)),
            "aliases": np.array("\n".join(alias for alias, _ in self.aliases)),
            "alias_of": np.array([at for _, at in self.aliases], dtype=np.int32),
            "candidates": self.candidates,
            "grades": self.grades,
            "features": self.features,
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Self:
        """Return the table. Raises DataError where the arrays are not one."""
        try:
            names, summaries = (tuple(str(arrays[key]).split("\n")) for key in ("names", "summaries"))
            other = str(arrays["aliases"]).split("\n") if len(arrays["alias_of"]) else []
            aliases = tuple(zip(other, arrays["alias_of"].tolist(), strict=True))
            table = cls(names, summaries, aliases, arrays["candidates"], arrays["grades"], arrays["features"])
            n, m = table.candidates.shape
            shapes = len(summaries) == len(names) == n, table.features.shape == (n, m, len(FEATURE_NAMES))
            types = [array.dtype for array in (table.candidates, table.grades, table.features)]
            numbers = np.concatenate([table.candidates.ravel(), arrays["alias_of"]])
            sound = all(shapes) and types == [np.int32, np.int8, np.float32] and table.grades.shape == (n, m)
        except (KeyError, ValueError, TypeError) as error:
            raise DataError(f"the arrays are not a table of documented objects: {error}.") from error
        if not sound or (numbers < 0).any() or (numbers >= n).any():
            raise DataError("the arrays are not a table of documented objects: their shapes or types disagree.")
        return table


def load_split(cache: Path | None = None, progress: Progress | None = None) -> Split:
    """Return api-search in its fixed split by query: train 60 %, vali 20 %, test 20 %.

    cache is the folder of the built table, the user's cache folder by default. The first call takes several seconds and
    calls progress with messages. Each object is one query in one part, whatever other names it has.
    """
    table = load_table(cache, progress)
    parts = {part: table.queries(numbers) for part, numbers in table.parts.items()}
    return Split(NAME, parts["train"], parts["vali"], parts["test"])


def load_table(cache: Path | None = None, progress: Progress | None = None) -> Table:
    """Return the table of the installed packages from the cache folder, or build it and store it there."""
    path = (cache_folder() if cache is None else cache) / f"{NAME}-{_version()}.npz"
    arrays = load_arrays(path)
    if arrays is not None:
        try:
            return Table.from_arrays(arrays)
        except DataError:
            pass  # damaged in spite of correct checksums: build it again
    table = build(installed_documents(PACKAGES, progress), progress=progress)
    if save_arrays(path, table.to_arrays()):
        remove_old(path.parent, f"{NAME}-*.npz", _KEPT_DAYS)
    return table


def installed_documents(packages: Sequence[str], progress: Progress | None = None) -> list[Documented]:
    """Return the documented objects of the packages, after a message to progress."""
    if progress is not None:
        progress(f"reading the documentation of {', '.join(packages)}")
    return installed(packages)


def build(documents: Sequence[Documented], *, count: int = CANDIDATES, progress: Progress | None = None) -> Table:
    """Return the table of documents, sorted by name, with count candidates for each.

    Raises DataError where there are fewer than two documents.
    """
    if len(documents) < 2:
        raise DataError(f"{len(documents)} documented objects were found: at least two are needed.")
    if progress is not None:
        progress(f"comparing {len(documents):,} documented functions and classes")
    pages = [parse(each.docstring) for each in documents]
    known = PublicNames.of_documents(documents)
    pairs = PairFeatures.of(documents, pages, known)
    blocks = [slice(low, min(low + _BLOCK, len(documents))) for low in range(0, len(documents), _BLOCK)]
    candidates = [pairs.candidates(rows, count) for rows in blocks]
    features = [pairs.features(rows, block) for rows, block in zip(blocks, candidates, strict=True)]
    numbers = np.concatenate(candidates)
    return Table(
        tuple(each.name for each in documents),
        tuple(page.summary for page in pages),
        tuple((alias, at) for at, each in enumerate(documents) for alias in each.aliases),
        numbers.astype(np.int32),
        _grades(documents, pages, known, numbers),
        np.concatenate(features),
    )


def _grades(
    documents: Sequence[Documented], pages: Sequence[Page], known: PublicNames, candidates: Ints
) -> NDArray[np.int8]:
    """Return 2 where two list each other, 1 where only the query lists the candidate, else 0, (n, m)."""
    listed = [
        {known.resolve(document, name) for name in page.see_also}
        for document, page in zip(documents, pages, strict=True)
    ]
    grades = [[(c in listed[q]) * (1 + (q in listed[c])) for c in row] for q, row in enumerate(candidates.tolist())]
    return np.array(grades, dtype=np.int8)


def _version() -> str:
    """Return a digest of everything the table depends on: the packages, this Python and the code that builds it."""
    digest = hashlib.blake2b(f"{sys.version_info[:2]} {CANDIDATES}".encode(), digest_size=8)
    for package in PACKAGES:
        digest.update(f" {package} {metadata.version(_DISTRIBUTION.get(package, package))}".encode())
    folder = resources.files("ranktune.solvers.data.api_search")
    for module in _MADE_BY:
        source = folder / f"{module}.py"
        digest.update(source.read_bytes() if source.is_file() else metadata.version("ranktune").encode())
    return digest.hexdigest()
