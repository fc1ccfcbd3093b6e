"""The grid of models that engines load and score, each with documents in single precision."""

import hashlib
import json
import os
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.export import export
from ranktune.solvers.export.absent import ERAS
from ranktune.solvers.models.base import Model
from ranktune.solvers.models.blend import BlendModel, blended
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.models.tree_model import TreeModel
from ranktune.solvers.models.trees import Trees, joined
from ranktune.solvers.models.within import WithinModel
from ranktune.solvers.names import STANDARD
from ranktune.solvers.registry import SOLVERS, make
from tests.support.paths import DATA
from tests.support.tree_samples import grown

ROWS = 24
GOLDEN = DATA / "golden" / "scores-of-engines.json"
HARD = (
    "page rank",
    'say "so"',
    "it's",
    "цена",
    "a:b",
    "a.b",
    "a,b=c",
    "back\\slash",
    "${x}",
    "{{x}}",
    "[1]",
    "naïve/%20?&#",
    "brand=Elm",
    "tab\there",
    "x" * 300,
)
VALUES = np.array([-2.0, -0.5, 0.0, 0.1, 1e-7, 1.0, 3.0, 1e4])


class Cell(NamedTuple):
    """A model, documents (n, n_features) whose absent values are NaN, and the sum of absolute terms of each score."""

    model: Model
    X: Floats

    def expected(self) -> Floats:
        """The scores of the model, to which what it knows nothing of is 0."""
        X = self.X if self.model.takes_missing else np.nan_to_num(self.X)
        return self.model.predict(X, group=[len(X)])

    def scale(self) -> float:
        """The largest sum of absolute terms of a score: what rounding is relative to."""
        parts = self.model.parts if isinstance(self.model, BlendModel) else (self.model,)
        total = 0.0
        for part in parts:
            part = part.inner if isinstance(part, WithinModel) else part
            if isinstance(part, LinearModel):
                total += float((np.abs(np.nan_to_num(self.X)) @ np.abs(part.weights)).max())
            elif isinstance(part, TreeModel):
                trees = part.trees
                total += sum(
                    float(np.abs(trees.value[a + t : b + t + 1]).max()) for t, (a, b) in enumerate(_spans(trees))
                )
        return total

    def check(self, scores: Floats) -> None:
        """Check that scores are those of the model to single precision, and the order too."""
        expected, gap = self.expected(), 1e-6 * self.scale()
        np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=gap)
        assert (np.diff(expected[np.argsort(-scores, kind="stable")]) <= 2.0 * gap).all()


def _spans(trees: Trees) -> Iterator[tuple[int, int]]:
    return zip(trees.starts[:-1].tolist(), trees.starts[1:].tolist(), strict=True)


def _rows(features: int, *, absent: float = 0.0, lowest: float = -np.inf, seed: int = 0) -> Floats:
    """Values of VALUES, of their neighbours in single precision, and others."""
    generator = np.random.default_rng(seed)
    X = generator.choice(VALUES, size=(ROWS, features)).astype(np.float32)
    X = np.where(generator.random(X.shape) < 0.3, np.nextafter(X, np.float32(generator.choice([-9, 9]))), X)
    X = np.where(generator.random(X.shape) < 0.3, generator.normal(size=X.shape).astype(np.float32), X)
    X = np.maximum(X, np.float32(lowest)).astype(np.float64)
    return np.where(generator.random(X.shape) < absent, np.nan, X)


def _deep(depth: int, columns: int, seed: int) -> Trees:
    """A tree with a path of that many splits."""
    tree = grown(seed, depth, columns, values=VALUES)
    left = np.append(np.arange(1, depth), ~0)
    children = np.column_stack([left, ~np.arange(1, depth + 1)])
    return replace(tree, children=children)


def _forest(
    trees: int, splits: int, features: int, *, absent: float = 0.0, deep: bool = False, **names: object
) -> Cell:
    grow = _deep if deep else partial(grown, values=VALUES)
    parts = [
        grow(splits, features, seed) if deep else grown(seed, splits, features, values=VALUES, sides=absent > 0.0)
        for seed in range(trees)
    ]
    return Cell(TreeModel(joined(parts), features, "LambdaMART", **names), _rows(features, absent=absent))  # type: ignore[arg-type]


def _linear(weights: Iterable[float], *, absent: float = 0.0, **names: object) -> Cell:
    weights = np.array(list(weights), dtype=np.float64)
    return Cell(LinearModel(weights, "RankSVM", **names), _rows(len(weights), absent=absent))  # type: ignore[arg-type]


def _spread(generator: np.random.Generator, count: int) -> Floats:
    """Weights of both signs from 1e-12 to 1e12."""
    return np.asarray(10.0 ** generator.uniform(-12, 12, count) * generator.choice([-1.0, 1.0], count))


def _mixed(kind: str) -> Cell:
    """Blends of two of a kind."""
    one, other = (
        (_forest(3, 4, 5), _forest(4, 2, 5)) if kind == "trees" else (_linear(np.arange(5) - 2.0), _linear(np.ones(5)))
    )
    return Cell(blended([one.model, other.model], [0.25, 3.0], "Blend", {}), one.X)


def _trained(name: str, kind: str) -> Cell:
    """A solver on 20 queries of a kind of data; RankTune itself may refuse it."""
    generator = np.random.default_rng(3)
    X = _rows(6, seed=1, lowest=0.0)
    X = np.concatenate([X, generator.gamma(2.0, size=(216, 6)).astype(np.float32)])
    names = tuple(f"f{k}" for k in range(6))
    if kind == "categories":
        levels = generator.integers(0, 3, len(X))
        X[:, :3], names = np.eye(3)[levels], ("brand=Elm", "brand=Ash & Co", "brand:missing", *names[3:])
    y = np.digitize(np.nan_to_num(X) @ [1.0, -0.5, 0.3, 0.2, -1.0, 0.1] + generator.normal(size=len(X)), [-1.0, 0.5])
    if kind == "missing":
        X[generator.random(X.shape) < 0.2] = np.nan
    queries = Queries.from_arrays(X, y, qid=np.arange(len(X)) // 12, feature_names=names)
    if kind == "monotone":
        queries = queries.constrained([1, 0, 0, 0, -1, 0])
    few: dict[str, Any] = {"trees": 8} if "trees" in SOLVERS[name]().get_params() else {}
    if kind == "within a query":
        few["within_query"] = "all"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker = make(name, few, 0).fit(queries)
        return Cell(ranker.as_model(feature_names=names), X[:ROWS])


def noted(engine: str, name: str, cell: Cell, scores: Floats) -> None:
    """Note what an engine, a format and a version, made of an export, for those who have not got the engine."""
    if os.environ.get("RANKTUNE_WRITE_GOLDEN") and name in MADE:
        known = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
        single = [float(str(np.float32(score))) for score in scores]
        known.setdefault(engine, {})[name] = {"export": exported(engine, cell), "scores": single}
        GOLDEN.write_text(json.dumps(known, indent=1, sort_keys=True) + "\n")


def exported(engine: str, cell: Cell) -> str:
    """A digest of the export to a format and a version."""
    format, version = engine.split()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what a document lacks
        content = str(export(cell.model, format, engine_version=version if format in ERAS else None))
    return hashlib.sha256(content.encode()).hexdigest()[:16]


DRAWN = np.random.default_rng(5)
WEIGHTS = (
    -20896337.301749934, -24579834.45984641, -2.332456027654246, 7.231578786594805e-06, -1.969413257618464e-11,
    0.001588009655986811, 0.006358533007548325, -1.2206879393052772e-11,
)  # fmt: skip
"""Numbers, not powers of drawn ones, which differ by processor in their last digit."""
CELLS: dict[str, Callable[[], Cell]] = {
    "trees": partial(_forest, 20, 12, 6),
    "trees, one stump": partial(_forest, 1, 1, 1),
    "trees, 200": partial(_forest, 200, 3, 4),
    "trees, depth 12": partial(_forest, 3, 12, 6, deep=True),
    "trees, 80 features": partial(_forest, 30, 8, 80),
    "trees, absent": partial(_forest, 20, 12, 6, absent=0.3),
    "trees, names": partial(_forest, 40, 6, len(HARD), feature_names=HARD),
    "weights, names": partial(_linear, np.arange(len(HARD)) + 0.5, feature_names=HARD),
    "weights, one": partial(_linear, np.array([-0.1])),
    "weights, 1e-12 to 1e12": partial(_linear, WEIGHTS),
    "weights, 1e-12": partial(_linear, np.array([1e-12, -3e-12, 2e-12])),
    "weights, whole": partial(_linear, np.array([1.0, 2e22, -3.0, 1e12, 123456789012345680.0])),
    "weights, digits": partial(_linear, np.array([1.0 / 3.0, 0.30000000000000004, -1.1e-5, 5e-324 + 0.1])),
    "weights, absent": partial(_linear, np.array([1.0, -2.0, 0.5]), absent=0.4),
    "blend of trees": partial(_mixed, "trees"),
    "blend of weights": partial(_mixed, "weights"),
}
MADE = tuple(CELLS)
"""Cells that no solver trained: alike to the bit wherever they are made."""
LARGE: dict[str, Callable[[], Cell]] = {
    "trees, 2,000": partial(_forest, 2000, 12, 30),
    "trees, 5,000 features": partial(_forest, 500, 12, 5000),
    "weights, 5,000": partial(_linear, _spread(DRAWN, 5000)),
}
for _name in SOLVERS:
    for _kind in ("dense", "missing", "categories", "monotone"):
        _often = _name in STANDARD or _kind == "missing"
        (CELLS if _often else LARGE)[f"{_name}, {_kind}"] = partial(_trained, _name, _kind)
CELLS["LambdaMART, within a query"] = partial(_trained, "LambdaMART", "within a query")
GRID: list[Any] = [pytest.param(cell, id=name, marks=pytest.mark.engines) for name, cell in CELLS.items()]
GRID += [pytest.param(cell, id=name, marks=pytest.mark.slow) for name, cell in LARGE.items()]
