"""What linear rankers are composed of: losses, pair weights, penalties and optimizers by name, and which compose.

A class says what it can be combined with:

loss       smooth (whether it has a gradient everywhere), bounded_slope, optimizers (those made for it, by name), and
           `rule`, a method of pairwise losses, which take a pair weight
optimizer  losses: "pairwise", any that is "smooth", or those that name it; penalties that it is searched with;
           searched: what a search tries of a parameter where that is not the usual range

The search space of Ranker and its checks come from these tables: what is added to one is tuned.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Any

from ranktune.solvers.core.checks import check_choice
from ranktune.solvers.core.parameters import Range
from ranktune.solvers.core.space import When
from ranktune.solvers.core.table import NamedTable, named
from ranktune.solvers.optimizers.base import Optimizer
from ranktune.solvers.optimizers.one_pass import OnePassOptimizer


@dataclass(frozen=True)
class LinearPart:
    """A loss, a pair weight, a penalty or an optimizer that has a name.

    place  its class, a dataclass: module:Name below ranktune.solvers
    usual  values of its fields where the ranker has no such parameter
    names  the ranker's parameters for fields that are called otherwise
    """

    place: str
    usual: Mapping[str, Any] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def kind(self) -> type[Any]:
        """The class."""
        kind: type[Any] = named(f"ranktune.solvers.{self.place}")
        return kind

    def made(self, ranker: object, **arguments: Any) -> Any:
        """Return the part with the parameters of a ranker that it takes, and with what is given."""
        named = {field.name: self.names.get(field.name, field.name) for field in fields(self.kind)}
        parameters = {name: getattr(ranker, source) for name, source in named.items() if hasattr(ranker, source)}
        return self.kind(**{**self.usual, **parameters, **arguments})

    def takes(self, parameter: str) -> bool:
        """Return whether a parameter of the ranker is one of the part."""
        return parameter in {self.names.get(field.name, field.name) for field in fields(self.kind)}


CENTRED = {"centre": "query"}
STEPS = {"max_iterations": "iterations"}
TRUNCATION = {"every": "truncate_every"}

LOSSES: NamedTable[LinearPart] = NamedTable(
    "loss",
    {
        "pairwise_hinge": LinearPart("losses.pairwise:PairwiseHinge"),
        "pairwise_squared_hinge": LinearPart("losses.pairwise:PairwiseSquaredHinge"),
        "pairwise_logistic": LinearPart("losses.pairwise:PairwiseLogistic"),
        "softmax": LinearPart("losses.listwise:SoftmaxCrossEntropy"),
        "domination": LinearPart("losses.domination:DominationLoss"),
        "pointwise_squared": LinearPart("losses.pointwise:SquaredInsensitiveLoss", {"epsilon": 0.0, **CENTRED}),
        "pointwise_logistic": LinearPart("losses.pointwise:LogisticLoss", CENTRED),
    },
)
PAIR_WEIGHTS: NamedTable[LinearPart] = NamedTable(
    "pair weight",
    {
        "uniform": LinearPart("losses.pair_weights:Uniform"),
        "ndcg": LinearPart("losses.pair_weights:DeltaNDCG", {"gain": "auto"}),
        "recall": LinearPart("losses.pair_weights:DeltaRecall"),
        "smoothed": LinearPart("losses.pair_weights:NoisyNDCG"),
        "yetirank": LinearPart("losses.pair_weights:NoisyNeighbours"),
    },
)
PENALTIES: NamedTable[LinearPart] = NamedTable(
    "penalty",
    {
        "none": LinearPart("losses.penalties:L2", {"strength": 0.0}),
        "l1": LinearPart("losses.penalties:L1", names={"strength": "l1"}),
        "l2": LinearPart("losses.penalties:L2", names={"strength": "l2"}),
        "elastic_net": LinearPart("losses.penalties:ElasticNet"),
    },
)
OPTIMIZERS: NamedTable[LinearPart] = NamedTable(
    "optimizer",
    {
        "newton": LinearPart("optimizers.second_order:Newton"),
        "least_squares": LinearPart("optimizers.least_squares:LeastSquares"),
        "lbfgs": LinearPart("optimizers.batch:LBFGS"),
        "owlqn": LinearPart("optimizers.batch:OWLQN"),
        "fista": LinearPart("optimizers.proximal:FISTA"),
        "coordinate_descent": LinearPart("optimizers.second_order:CoordinateDescent"),
        # Separable data without a penalty reach a relative gradient of 1e-9.
        "gradient_steps": LinearPart("optimizers.batch:GradientSteps", {"tol": 1e-9}, STEPS),
        "fobos": LinearPart("optimizers.one_pass:FOBOS"),
        "rda": LinearPart("optimizers.one_pass:RDA"),
        "psgd": LinearPart("optimizers.one_pass:PSGD", {"every": 10}, TRUNCATION),
        "tgd": LinearPart("optimizers.one_pass:TGD", {"every": 10}, TRUNCATION),
    },
)

VISITS = LinearPart("optimizers.base:Visits")
"""How one-pass optimizers visit the queries."""


def by_name(table: NamedTable[LinearPart]) -> Callable[[str, object], None]:
    """Return the check of a parameter that is a name of a table, or an object."""

    def check(name: str, value: object) -> None:
        if isinstance(value, str):
            check_choice(name, value, table)

    return check


def has_pairs(loss: str) -> bool:
    """Return whether a loss is one of pairs, which have weights."""
    return hasattr(LOSSES[loss].kind, "rule")


def is_one_pass(optimizer: object) -> bool:
    """Return whether an optimizer, or one by name, visits one query after the other."""
    named = OPTIMIZERS.get(optimizer) if isinstance(optimizer, str) else None
    return isinstance(optimizer, OnePassOptimizer) or (named is not None and issubclass(named.kind, OnePassOptimizer))


ONE_PASS = tuple(filter(is_one_pass, OPTIMIZERS))


def general() -> tuple[type[Optimizer], ...]:
    """Return the optimizers that take every loss with what they need."""
    return tuple(entry.kind for entry in OPTIMIZERS.values() if entry.kind.losses != "named")


def taking(table: Mapping[str, LinearPart], parameter: str) -> tuple[str, ...]:
    """Return the names of the parts that take a parameter."""
    return tuple(name for name, part in table.items() if part.takes(parameter))


def of_optimizer(parameter: str, *more: str) -> When:
    """Return the condition that the optimizer takes a parameter, or is one more."""
    return When("optimizer", (*taking(OPTIMIZERS, parameter), *more))


def losses_of(optimizer: str) -> tuple[str, ...]:
    """Return the losses that an optimizer is searched with."""
    wanted = OPTIMIZERS[optimizer].kind.losses
    if wanted == "pairwise":
        return tuple(filter(has_pairs, LOSSES))
    if wanted == "smooth":
        return tuple(loss for loss, part in LOSSES.items() if part.kind.smooth)
    return tuple(loss for loss, entry in LOSSES.items() if optimizer in entry.kind.optimizers)


SEARCHED = tuple(filter(losses_of, OPTIMIZERS))
"""The optimizers that a search tries: for the squared error of documents, newton is least_squares."""


def with_bounded_slope(losses: Iterable[str]) -> tuple[str, ...]:
    """Return those of losses under which steps of fixed length cannot overflow."""
    return tuple(loss for loss in losses if LOSSES[loss].kind.bounded_slope)


def penalised_by(strength: str, optimizers: Iterable[str]) -> tuple[str, ...]:
    """Return those of optimizers that are searched with a penalty of that strength, l1 or l2."""
    return tuple(name for name in optimizers if set(taking(PENALTIES, strength)) & set(OPTIMIZERS[name].kind.penalties))


def weights_of(optimizer: str) -> tuple[str, ...]:
    """Return the pair weights that an optimizer is searched with: steps that descend one function need uniform ones."""
    return tuple(PAIR_WEIGHTS) if OPTIMIZERS[optimizer].kind.losses == "pairwise" else ("uniform",)


def _groups(parameter: str, choices: Callable[[str], Hashable]) -> list[tuple[Any, Range, When]]:
    """Return the choices of optimizers, the most frequent first, what is searched in place of the usual, and when."""
    groups: dict[tuple[Any, Range], list[str]] = {}
    for name in SEARCHED:
        searched = OPTIMIZERS[name].kind.searched.get(parameter, Range())
        groups.setdefault((choices(name), searched), []).append(name)
    ordered = sorted(groups.items(), key=lambda group: -len(group[1]))
    return [(*key, When("optimizer", tuple(names))) for key, names in ordered]


def loss_ranges() -> tuple[Range, ...]:
    """Return what is searched of the loss: what the optimizer can minimise."""
    return tuple(
        Range(choices=losses, default=searched.default, when=when)
        for losses, searched, when in _groups("loss", losses_of)
        if losses
    )


def weight_ranges() -> tuple[Range, ...]:
    """Return what is searched of the pair weight, where the loss is one of pairs."""
    ranges = []
    for (losses, weights), _, when in _groups("pair_weight", lambda name: (losses_of(name), weights_of(name))):
        pairs = tuple(filter(has_pairs, losses))
        if pairs:
            whens = when if pairs == losses else (when, When("loss", pairs))
            ranges.append(Range(choices=weights, when=whens))
    return tuple(ranges)


def penalty_ranges() -> tuple[Range, ...]:
    """Return what is searched of the penalty."""
    groups = _groups("penalty", lambda name: OPTIMIZERS[name].kind.penalties)
    return tuple(Range(choices=penalties, when=when) for penalties, _, when in groups)


def strength_ranges(strength: str, usual: Range) -> tuple[Range, ...]:
    """Return what is searched of the strength l1 or l2, where the penalty has it."""
    ranges = []
    for penalties, searched, when in _groups(strength, lambda name: OPTIMIZERS[name].kind.penalties):
        having = tuple(name for name in penalties if PENALTIES[name].takes(strength))
        if having:
            whens = when if having == penalties else (when, When("penalty", having))
            ranges.append(replace(usual if searched == Range() else searched, when=whens))
    return tuple(ranges)
