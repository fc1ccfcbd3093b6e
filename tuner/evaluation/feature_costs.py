"""The costs of features, the limits of the cost of a model, and the feature sets that are searched to keep them.

Features cost alone, or in groups that are computed together. Costs are declared by name:
{"bm25*": 1.0, "embedding": {"features": ["emb_*"], "cost": 20}}. A number is the cost of each feature of that name,
which may be a glob. A table is a group: its cost is paid once if a model uses any of its features. Where several names
fit a feature, the feature's own name counts, else the longest. A feature without an entry costs 1. Features without
names are called f1, f2, ...

FEATURE_SET, a parameter of every solver's search space, says which share of the limits its models may use. The features
are chosen from the training queries alone, of each part of a plan separately, so that validation stays unbiased. The
sets of one part are nested: a blend of models uses the features of its largest member, and keeps the limits too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Self

import numpy as np

from ranktune.solvers.abilities import QUERY_WEIGHTS
from ranktune.solvers.core.arrays import Floats, Ints, Json, JsonView
from ranktune.solvers.core.errors import DataError, ParameterError, nearest
from ranktune.solvers.core.space import Choice, Int, Parameter, Value, When
from ranktune.solvers.data.columns.grammar import number_of, values_by_name
from ranktune.solvers.registry import solver_class

if TYPE_CHECKING:
    from ranktune.solvers.data.queries import Queries
    from ranktune.solvers.models.base import Model

HALF_LIFE = "half_life"
SHARES: Mapping[str, float] = {"inf": np.inf, "1": 1.0, "1/2": 0.5, "1/4": 0.25, "1/8": 0.125}
"""The parameter of solvers that weigh queries, where times are known: the half-life of weights, as a share of the time
from the first to the last query that is fitted. They are no part of any mean: what is scored counts as it did.
"""
FEATURE_SET = "feature_set"
LEVELS = 8
"""Sets of features: the k-th takes k / LEVELS of the limits."""


@dataclass(frozen=True)
class CostEntry:
    """One entry of a declaration: the names of its features, and what they cost, together or each."""

    name: str
    patterns: tuple[str, ...]
    cost: float
    together: bool


@dataclass(frozen=True, eq=False)
class GroupedFeatures:
    """Features by group; a feature without a group is a group of one.

    group  (n_features,) the number of the group of each feature
    cost   (n_groups,) what a group costs
    """

    group: Ints
    cost: Floats

    def cost_of(self, columns: Ints) -> float:
        """Return the cost of a model that uses these features: the sum over their groups."""
        return float(self.cost[np.unique(self.group[columns])].sum())


@dataclass(frozen=True)
class FeatureCosts:
    """A declaration of costs; without entries every feature costs 1."""

    entries: tuple[CostEntry, ...] = ()

    @classmethod
    def parse(cls, costs: JsonView) -> Self:
        """Return the costs of a table. Raises ParameterError where an entry is no cost."""
        return cls(tuple(_entry(str(name), value) for name, value in costs.items()))

    def of(self, data: Queries | Model) -> GroupedFeatures:
        """Return the costs of the features of data, or of a model.

        Features that were made of one column of a table, as those of its categories, are called by the column, and
        computed together. Raises DataError where an entry fits no feature, or two fit one.
        """
        names = data.feature_names or tuple(f"f{k + 1}" for k in range(data.n_features))
        sources = names if data.encoding is None else tuple(data.encoding.sources(names).values())
        for entry in self.entries:
            for pattern in entry.patterns:
                if not any(fnmatchcase(name, pattern) for name in sources):
                    raise DataError(f"costs: the data have no feature '{pattern}'. {nearest(pattern, sources)}")
        groups: dict[tuple[bool, str | int], int] = {}
        cost: list[float] = []
        group = np.empty(data.n_features, dtype=np.int64)
        for k, name in enumerate(sources):
            declared = self._entry_of(name)
            alone = name if data.encoding is not None else k  # without a table, several features may have one name
            key = (True, declared.name) if declared is not None and declared.together else (False, alone)
            if key not in groups:
                groups[key] = len(cost)
                cost.append(1.0 if declared is None else declared.cost)
            group[k] = groups[key]
        return GroupedFeatures(group, np.array(cost))

    def _entry_of(self, name: str) -> CostEntry | None:
        """Return the entry of a feature: that of its own name, else of the longest pattern; None without one."""
        fitting = [
            (pattern == name, len(pattern), entry)
            for entry in self.entries
            for pattern in entry.patterns
            if pattern == name or fnmatchcase(name, pattern)
        ]
        if not fitting:
            return None
        best = max((exact, length) for exact, length, _ in fitting)
        entries = [entry for exact, length, entry in fitting if (exact, length) == best]
        if any(entry is not entries[0] for entry in entries):
            first, second = entries[0].name, entries[1].name
            raise DataError(f"costs: '{first}' and '{second}' both fit the feature '{name}'. Name it in one of them.")
        return entries[0]


@dataclass(frozen=True)
class FeatureLimits:
    """The limits of the cost and of the number of the features of a model; infinity for no limit."""

    cost: float = float("inf")
    features: float = float("inf")

    def shares(self, features: GroupedFeatures, columns: Ints, paid: Ints) -> tuple[float, float]:
        """Return what further columns take of the limit of cost and of that of features; groups paid are free."""
        new = np.setdiff1d(features.group[columns], paid)
        return _share(float(features.cost[new].sum()), self.cost), _share(float(len(columns)), self.features)


def _share(amount: float, limit: float) -> float:
    if limit == 0.0:
        return 0.0 if amount == 0.0 else float("inf")
    return amount / limit


@dataclass(frozen=True)
class FeatureBudget:
    """What features cost, and the limits that are searched; None where no set of features is chosen."""

    costs: FeatureCosts
    limits: FeatureLimits | None = None


def _entry(name: str, value: object) -> CostEntry:
    """Return an entry. Raises ParameterError where its value is neither a cost nor a group."""
    if not isinstance(value, Mapping):
        return CostEntry(name, (name,), _number(name, value), together=False)
    features = value.get("features")
    features = (features,) if isinstance(features, str) else features
    if set(value) != {"features", "cost"} or not isinstance(features, list | tuple) or not features:
        raise ParameterError(
            f"costs: the group '{name}' is {dict(value)!r}. A group is a table of features, a list of names, and cost: "
            f'{{"features": ["{name}_*"], "cost": 20}}.'
        )
    return CostEntry(name, tuple(map(str, features)), _number(name, value["cost"]), together=True)


def _number(name: str, value: object) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool) and 0.0 <= value < float("inf"):
        return float(value)
    raise ParameterError(f"costs: '{name}' cannot cost {value!r}: a cost is a number, 0 or more.")


def read_costs(text: str) -> Json:
    """Return costs given as text, "bm25*=1, embedding*=20". Raises ParameterError."""
    rule = "costs={}: write a name or glob, = and a number, such as 'bm25*=1, emb*=20', or give a table."
    return values_by_name(text, rule, number_of)


def solver_parameters(parameters: Mapping[str, Value]) -> dict[str, Value]:
    """Return the parameters of a configuration that its solver has."""
    return {name: value for name, value in parameters.items() if name not in (FEATURE_SET, HALF_LIFE)}


def with_feature_sets(solver: str, space: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Return the space of a solver whose models are fitted on sets of features."""
    if any(parameter.name == FEATURE_SET for parameter in space):
        raise ParameterError(
            f"{solver} has a parameter '{FEATURE_SET}', and limits of cost or features add one of that name. Rename it."
        )
    return (*space, Int(FEATURE_SET, 1, LEVELS, default=LEVELS))


def check_sets(name: str, values: Iterable[object]) -> None:
    """Raise ParameterError where values of FEATURE_SET, by its flat name, are no numbers of sets."""
    for value in values:
        if not isinstance(value, int) or not 1 <= value <= LEVELS:
            raise ParameterError(f"space: '{name}' cannot be {value!r}: it must be a whole number from 1 to {LEVELS}.")


def with_half_life(solver: str, space: Sequence[Parameter]) -> tuple[Parameter, ...]:
    """Return the space of a solver with the half-life, for the configurations that weigh queries."""
    kind, when = solver_class(solver), []
    if any(parameter.name == HALF_LIFE for parameter in space):
        raise ParameterError(f"{solver} has a parameter '{HALF_LIFE}', and time adds one of that name. Rename it.")
    if QUERY_WEIGHTS not in kind.supports({}):
        return tuple(space)
    for parameter in space:
        if isinstance(parameter, Choice):
            able = tuple(c for c in parameter.choices if QUERY_WEIGHTS in kind.supports({parameter.name: c}))
            when += [When(parameter.name, able)] if len(able) < len(parameter.choices) else []
    return (*space, Choice(HALF_LIFE, tuple(SHARES), default="inf", when=tuple(when)))
