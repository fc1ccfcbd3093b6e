"""The result of a pass: the model, its estimate, all configurations, and the looks of their race.

values  (m, n) what each of m configurations scored on n queries before it learned from them; NaN where a query is
        skipped by the metric, for all alike

There is a look when the number of queries has doubled: some configurations remain, and others join. It compares on the
second half of the queries since the look before, so that a configuration that joined there has learned from as many
queries as are compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from ranktune.solvers.base.passes import PassRanker
from ranktune.solvers.core.arrays import Floats, Ints, Json, Mask
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.core.space import (
    Choice,
    Float,
    Int,
    Parameter,
    Value,
    When,
    defaults,
    is_active,
    with_defaults,
)
from ranktune.solvers.linear.presets import ElasticRank
from ranktune.solvers.models.linear import LinearModel
from ranktune.solvers.online.solar import SOLAR1
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.policy.racing import t_quantile

Z = 1.959964
"""Standard errors of an interval of 95 percent."""
FIRST_QUERIES = 64
"""The least number of queries before the first look, half of which are compared: fewer tell nothing apart."""
SHARES = {"ElasticRank": 0.75, "SOLAR1": 0.25}
"""Shares of the solvers among the configurations that are drawn. Half and twice of that of SOLAR1 make no difference
(docs/explanation/tasks.md)."""
RANKERS: Mapping[str, type[PassRanker]] = {"ElasticRank": ElasticRank, "SOLAR1": SOLAR1}
FIXED: Mapping[str, Mapping[str, Value]] = {
    "ElasticRank": {"passes": 1, "optimizer": "fobos", "schedule": "adagrad"},
    "SOLAR1": {"passes": 1},
}
"""What all configurations of a solver have in common: what learning together needs."""


@dataclass(frozen=True)
class Look:
    """A look at the race.

    after   the number of queries after which it comes, counted: how many of the last of them count
    places  how many configurations remain, with new ones if these join
    """

    after: int
    counted: int
    places: int
    fresh: bool

    @property
    def survivors(self) -> int:
        """The most configurations that remain."""
        return self.places - int(self.places * POLICY.one_pass.fresh) if self.fresh else self.places


def looks(n_queries: int, configurations: int, survivors: int) -> list[Look]:
    """Return the looks of a pass: after all queries, half of them, a quarter, and so on.

    Each halves the places, down to survivors. New configurations join at all but the last two.
    """
    result, places, before = list[Look](), configurations, 0
    for halvings in range(POLICY.one_pass.halvings, -1, -1):
        after = n_queries >> halvings
        if after >= FIRST_QUERIES or halvings == 0:
            places = max(places // 2, min(survivors, configurations)) if halvings else places
            result.append(Look(after, after - (after + before) // 2, places, halvings > 1))
            before = after
    return result


@dataclass(frozen=True, eq=False)
class Standing:
    """How configurations stand, by the queries that are not skipped; without any the first is the best.

    best    the row of the highest mean
    gaps    (m,) the mean differences to it, and their standard errors
    worse   (m,) which are significantly worse than the best, paired by query
    order   (m,) the rows, best first
    """

    best: int
    gaps: Floats
    errors: Floats
    worse: Mask
    order: Ints

    @classmethod
    def of(cls, values: Floats, n_looks: int) -> Self:
        """Return how the configurations stand that scored values.

        A one-sided t-test at an equal share of `Race.level` for each look and each rival (Bonferroni): whichever
        configuration is best on average, it is dropped by a test with a probability of at most that.
        """
        scored = values[:, ~np.isnan(values).any(axis=0)]
        m, n = scored.shape
        if n < 2:
            best = int(scored[:, 0].argmax()) if n else 0
            gaps = scored[:, 0] - scored[best, 0] if n else np.zeros(m)
            return cls(best, gaps, np.full(m, np.inf), np.zeros(m, dtype=bool), np.argsort(-gaps, kind="stable"))
        best = int(scored.mean(axis=1).argmax())
        differences = scored - scored[best]
        gaps, errors = differences.mean(axis=1), differences.std(axis=1, ddof=1) / np.sqrt(n)
        quantile = t_quantile(POLICY.race.level / (n_looks * max(m - 1, 1)), n - 1)
        worse = (np.count_nonzero(differences, axis=1) >= POLICY.race.min_queries) & (gaps < -quantile * errors)
        return cls(best, gaps, errors, worse, np.argsort(-gaps, kind="stable"))

    def going_on(self, most: int) -> Ints:
        """Return the rows that remain, best first; at most so many."""
        return self.order[~self.worse[self.order]][:most]


@dataclass
class PassEntry:
    """A configuration of a pass.

    Attributes
    ----------
    number : int
        Its number, from 0 in the order of joining; a pass that goes on from another one counts on.
    solver, parameters : str and dict
        The solver and its parameters.
    joined : int
        Queries before it joined.
    queries : int
        Queries that it scored and then learned from.
    earlier : int
        Queries that it learned from in earlier passes.
    counted : int
        Those of them that the metric counts.
    mean, low, high : float
        The mean of the metric over these, each before it was learned from, and its 95 percent interval.
    end : str
        Why it ended: "worse", "places", "diverged", or "" if it remained to the end.
    difference, error : float
        At its last look, the mean difference to the best one, paired by query, and its standard error.
    """

    number: int
    solver: str
    parameters: Mapping[str, Value]
    joined: int
    queries: int = 0
    end: str = ""
    difference: float = float("nan")
    error: float = float("nan")
    counted: int = 0
    total: float = field(default=0.0, repr=False)
    squares: float = field(default=0.0, repr=False)
    earlier: int = 0

    @property
    def configuration(self) -> PassConfiguration:
        """The solver with its parameters."""
        return PassConfiguration(self.solver, self.parameters)

    def carried_on(self) -> Self:
        """Return it as it begins in the next pass: its values are those of that pass alone."""
        return type(self)(self.number, self.solver, self.parameters, 0, earlier=self.earlier + self.queries)

    def add(self, values: Floats) -> None:
        """Add its values on further queries, (n,)."""
        scored = values[~np.isnan(values)]
        self.queries += len(values)
        self.counted += len(scored)
        self.total += float(scored.sum())
        self.squares += float((scored * scored).sum())

    @property
    def mean(self) -> float:
        """The mean of the metric over its queries."""
        return self.total / self.counted if self.counted else float("nan")

    @property
    def _half(self) -> float:
        if self.counted < 2:
            return float("nan")
        spread = max(self.squares - self.total * self.mean, 0.0) / (self.counted - 1)
        return Z * float(np.sqrt(spread / self.counted))

    @property
    def low(self) -> float:
        """The lower limit of the interval."""
        return self.mean - self._half

    @property
    def high(self) -> float:
        """The upper limit of the interval."""
        return self.mean + self._half

    def as_json(self) -> Json:
        """Return everything that restores it."""
        return {**vars(self), "parameters": dict(self.parameters)}


@dataclass(frozen=True, repr=False)
class OnePassResult:
    """The result of `one_pass`.

    Attributes
    ----------
    best_model : LinearModel
        The model of the best configuration, after all training queries.
    best : Entry
        That configuration.
    entries : list of Entry
        All configurations, best first: those that remained to the end, then the others by how far they came.
    looks : list of dict
        The looks: after which query, how many remained, which were dropped and why, which joined.
    metric : str
        The metric.
    test : dict or None
        The metric of best_model on the test queries: mean, low, high (95 percent, over queries), queries; None without
        test queries.
    queries, documents : int
        Training queries and documents.
    """

    best_model: LinearModel
    best: PassEntry
    entries: list[PassEntry]
    looks: list[Json]
    metric: str
    test: Json | None
    queries: int
    documents: int

    def __repr__(self) -> str:
        """Return the best configuration and its estimate."""
        test = "" if self.test is None else f", test {self.test['mean']:.4f}"
        return (
            f"OnePassResult({self.best.solver}, best of {len(self.entries)} configurations on {self.queries} queries, "
            f"{self.metric} before learning {self.best.mean:.4f}{test})"
        )

    def as_dict(self) -> Json:
        """Return everything but the model as JSON values, numbers that are not known as None."""
        return {
            "metric": self.metric,
            "queries": self.queries,
            "documents": self.documents,
            "test": self.test,
            "best": self.best.number,
            "configurations": [_plain(entry) for entry in self.entries],
            "looks": self.looks,
        }


def _plain(entry: PassEntry) -> Json:
    named = "number", "solver", "parameters", "joined", "queries", "earlier", "end"
    about = {name: getattr(entry, name) for name in named}
    numbers = {name: getattr(entry, name) for name in ("mean", "low", "high", "difference", "error")}
    return about | {name: value if np.isfinite(value) else None for name, value in numbers.items()}


@dataclass(frozen=True)
class PassConfiguration:
    """A solver and its parameters, all of them that differ from the constructor's."""

    solver: str
    parameters: Mapping[str, Value]

    def __post_init__(self) -> None:
        """Give parameters that an earlier version wrote their names of today."""
        object.__setattr__(self, "parameters", RANKERS[self.solver].former.current(self.parameters))

    def ranker(self) -> PassRanker:
        """Return a new ranker of this configuration."""
        return RANKERS[self.solver](**self.parameters)


class ConfigurationSpace:
    """What can be drawn: the configurations of the named solvers that suit sparse, or dense, features.

    Sparse features are used as they are: a feature that the first block does not hold would have no scale. The loss
    "pairwise_logistic" comes with the pair weight "ndcg" alone: over all pairs it costs as much as all others together.
    """

    def __init__(self, solvers: Sequence[str] | None, sparse: bool) -> None:
        for name in solvers or ():
            if name not in RANKERS:
                raise ParameterError(f"solver '{name}' cannot learn in one pass with others. {nearest(name, RANKERS)}")
        named = [name for name in RANKERS if not solvers or name in solvers]
        scalings = ("none",) if sparse else ("standard", "minmax")
        declared: dict[str, Parameter] = {parameter.name: parameter for parameter in ElasticRank.space}
        eta0, l1, l2 = (replace(declared[name], when=None) for name in ("eta0", "l1", "l2"))
        spaces: dict[str, tuple[Parameter, ...]] = {
            "ElasticRank": (
                Choice("loss", ("pairwise_hinge", "pairwise_squared_hinge", "pairwise_logistic")),
                Choice(
                    "pair_weight",
                    ("uniform", "ndcg"),
                    "uniform",
                    When("loss", ("pairwise_hinge", "pairwise_squared_hinge")),
                ),
                Choice("pair_weight", ("ndcg",), "ndcg", When("loss", ("pairwise_logistic",))),
                eta0,
                l1,
                l2,
                Choice("scaling", scalings),
            ),
            # One scaling: all configurations then share the products of documents.
            "SOLAR1": (Float("C", 1e-6, 1.0, log=True), Choice("scaling", scalings[:1])),
        }
        self.spaces = {
            name: tuple(
                replace(p, default=scalings[0]) if isinstance(p, Choice) and p.name == "scaling" else p
                for p in with_defaults(spaces[name], RANKERS[name].__init__)
            )
            for name in named
        }
        shares = np.array([SHARES[name] for name in named])
        self._bounds = np.cumsum(shares / shares.sum())
        self._width = 1 + max(len(space) for space in self.spaces.values())

    def first(self, count: int, generator: np.random.Generator) -> list[PassConfiguration]:
        """Return the default of each solver, and others that cover the space evenly (a Latin hypercube)."""
        result = [self._filled(name, defaults(space)) for name, space in self.spaces.items()][:count]
        rest = count - len(result)
        strata = np.column_stack([generator.permutation(rest) for _ in range(self._width)])
        points = (strata + generator.random(strata.shape)) / max(rest, 1)
        return result + [self._at(point) for point in points]

    def drawn(self, generator: np.random.Generator) -> PassConfiguration:
        """Return a configuration drawn uniformly."""
        return self._at(generator.random(self._width))

    def near(self, other: PassConfiguration, generator: np.random.Generator) -> PassConfiguration:
        """Return a configuration of the same solver near another one."""
        values: dict[str, Value] = {}
        for parameter in self.spaces[other.solver]:
            if not is_active(parameter, values):
                continue
            value = other.parameters.get(parameter.name, parameter.default)
            if isinstance(parameter, Choice):
                same = generator.random() < POLICY.one_pass.kept and value in parameter.choices
                values[parameter.name] = value if same else _value(parameter, generator.random())
            else:
                place = _place(parameter, value) + POLICY.one_pass.near * generator.standard_normal()
                values[parameter.name] = _value(parameter, float(np.clip(place, 0.0, 1.0)))
        return self._filled(other.solver, values)

    def _at(self, point: Floats) -> PassConfiguration:
        """Return the configuration at a point of the unit cube."""
        name = list(self.spaces)[min(int(np.searchsorted(self._bounds, point[0])), len(self.spaces) - 1)]
        values: dict[str, Value] = {}
        for parameter, place in zip(self.spaces[name], point[1:], strict=False):
            if is_active(parameter, values):
                values[parameter.name] = _value(parameter, float(place))
        return self._filled(name, values)

    def _filled(self, solver: str, values: Mapping[str, Value]) -> PassConfiguration:
        return PassConfiguration(solver, {**values, **FIXED[solver]})


def _value(parameter: Parameter, place: float) -> Value:
    """Return the value at a place from 0 to 1 of the range of parameter."""
    if isinstance(parameter, Choice):
        return parameter.choices[min(int(place * len(parameter.choices)), len(parameter.choices) - 1)]
    low, high = float(parameter.low), float(parameter.high)
    value = low * (high / low) ** place if parameter.log else low + (high - low) * place
    value = min(max(value, low), high)
    return round(value) if isinstance(parameter, Int) else value


def _place(parameter: Float | Int, value: Any) -> float:
    """Return the place from 0 to 1 of a value in the range of parameter."""
    low, high = float(parameter.low), float(parameter.high)
    return float(np.log(value / low) / np.log(high / low)) if parameter.log else (value - low) / (high - low)
