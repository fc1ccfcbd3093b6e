"""The papers' tables as declared in reproduce-*.toml: the printed figures, and how each system is run here.

A paper has tables, a table has entries (one system each), an entry has measures. A measure has the name that the paper
prints (ndcg@1) and the metric that is computed here under that name (ndcg@1:letor,short=pad).

    title = "..."
    [[tables]]
    title = "..."
    protocol = "folds"                                 # folds, every-point or progressive: see protocols
    metrics = { "ndcg@1" = "ndcg@1:letor" }            # or { metric = "pairwise", over = "pairs", scale = 100 }
    tolerance = 0.01                                   # a difference up to this counts as reproduced
    choose = "map:letor"                               # metric of the choice on vali; "each": each measure by itself
    [[tables.entries]]
    name = "RankSVM"
    solver = "RankSVM"
    parameters = { scaling = "minmax" }
    grid = { C = { base = 10.0, low = -5, high = 3 } } # or without base, or a list; the product of all is tried
    published.MQ2008 = { "ndcg@1" = 0.3627 }
    [[tables.claims]]                                  # what the text says about the table, checked on our figures
    text = "RankSVM beats AdaRank on MQ2008"
    dataset = "MQ2008"                                 # or none: every data set
    higher = "RankSVM"
    lower = ["AdaRank"]
    measures = ["ndcg@1"]

    [[systems]]                                        # an entry that figures are drawn of besides those of the tables
    [[figures]]
    source = "Figure 2"
    caption = "..."
    printed = "..."                                    # what there is to see, in words
    [figures.claims]                                   # by names under which the code that draws it measures them
    ahead = { text = "A outperforms {rival}", reason = "why not, for the line that says refuted or not shown" }

metrics, choose, parameters, grid, copies and evaluations of an entry take precedence over those of its table.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import product
from typing import TypeAlias

from ranktune.solvers.core.arrays import Json, JsonView
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.core.space import Value
from ranktune.solvers.data.blocks import QuerySplit
from ranktune.solvers.metrics.metrics import Metric, parse_metric

PAPERS = ("adarank", "domination", "elasticrank", "ranksvm", "solar")
PROTOCOLS = ("folds", "every-point", "progressive", "tuner", "daily")
MODEL_FACTS = ("weights", "us/document")
EACH = "each"
MEAN_RANK = "mean rank"
"""In place of a data set: the rank of a system among those of its table, the mean over all data sets."""

Point: TypeAlias = Mapping[str, Value]
"""A point of a grid: parameters by name."""


@dataclass(frozen=True)
class PublishedMeasure:
    """One printed column.

    metric  a metric, or None where label names a fact of the model: the number of weights that are not zero
            ("weights"), or the microseconds to score one document with these alone ("us/document")
    over    "queries": the mean over queries; "pairs": over all pairs of different grades, so that long queries count
            more
    scale   the factor of printed percentages
    """

    label: str
    metric: Metric | None
    over: str = "queries"
    scale: float = 1.0

    @property
    def spelling(self) -> str:
        """The metric as parse_metric reads it, or the fact of the model."""
        return self.label if self.metric is None else str(self.metric)


@dataclass(frozen=True)
class PublishedSystem:
    """One system: its solver, the grid, the metric of the choice, and the printed figures of each data set.

    ranks holds the printed mean ranks of the system among the entries of its table, by measure. orders is the number of
    random orders of the training queries over which figures are averaged, for solvers that depend on the order. copies
    names parameters that take the value of another: {threshold = "l1"}. With evaluations, the tuner fits so many points
    of the grid and no others, by sampler ("thompson:ei": ours with that acquisition) and the metric of the choice; 0 is
    all. carries says what a day takes over from the one before under the protocol "daily": "trials" as evidence, the
    "choice" without further evaluations, or "" nothing. Unless stops_early, fit sees no validation queries.
    """

    name: str
    solver: str
    measures: tuple[PublishedMeasure, ...]
    parameters: Point = field(default_factory=dict)
    grid: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    choose: str = EACH
    published: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    ranks: Mapping[str, float] = field(default_factory=dict)
    copies: Mapping[str, str] = field(default_factory=dict)
    orders: int = 1
    evaluations: int = 0
    carries: str = ""
    sampler: str = "thompson"
    stops_early: bool = True
    note: str = ""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the measures."""
        return tuple(measure.label for measure in self.measures)

    @property
    def points(self) -> list[Point]:
        """Every combination of the grid, in the order of declaration; one empty one without a grid."""
        return [dict(zip(self.grid, values, strict=True)) for values in product(*self.grid.values())]

    def at(self, point: Point) -> dict[str, Value]:
        """Return all parameters of the solver at a point of the grid."""
        return {**self.parameters, **point, **{name: point[other] for name, other in self.copies.items()}}


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper about the systems of a table: higher has better figures than each of lower.

    Without higher: no system of lower has the best figures everywhere.

    dataset   the data set it speaks of, "" for all, or "mean rank", of which less is better
    measures  the columns it speaks of; none where it is about mean ranks or data that are not public
    by        the least difference for a case to hold; below 0 for "about as good as"
    share     the least share of the cases (data set, measure, other system) that must hold
    source    where it is printed, "" for the table's own place
    reason    why it does not hold, or cannot be checked
    """

    text: str
    higher: str = ""
    lower: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    dataset: str = ""
    by: float = 0.0
    share: float = 1.0
    source: str = ""
    reason: str = ""


@dataclass(frozen=True)
class PublishedTable:
    """One printed table: its systems, and the protocol that they share."""

    title: str
    protocol: str
    entries: tuple[PublishedSystem, ...]
    tolerance: float | None = None
    folds: tuple[str, ...] = ()
    permutations: int = 10
    runs: int = 20
    seed: int = 0
    note: str = ""
    claims: tuple[Claim, ...] = ()

    @property
    def is_ranked(self) -> bool:
        """Whether mean ranks over data sets were printed."""
        return any(entry.ranks for entry in self.entries)


@dataclass(frozen=True)
class Figure:
    """A figure of a paper: where it is, its caption, and what is printed of it in words.

    claims   what the paper says about it, by a name of ours; the text may have fields, as {name} of the data set
    axes     the ends of the printed y axis by data set
    missing  why it cannot be drawn, "" where it is
    """

    source: str
    caption: str
    printed: str
    claims: Mapping[str, Claim] = field(default_factory=dict)
    axes: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    missing: str = ""


@dataclass(frozen=True)
class Paper:
    """The tables and figures of one paper, and the systems that figures are drawn of besides those of the tables."""

    name: str
    title: str
    tables: tuple[PublishedTable, ...]
    figures: tuple[Figure, ...] = ()
    systems: Mapping[str, PublishedSystem] = field(default_factory=dict)


def load_paper(name: str) -> Paper:
    """Return the declaration called name. Raises ParameterError, with the nearest name, where there is none."""
    key = name.lower()
    if key not in PAPERS:
        raise ParameterError(f"there is no paper '{name}' to reproduce. {nearest(name, PAPERS)}")
    declared = _declaration(f"reproduce-{key}")
    tables = tuple(_table(table) for table in declared["tables"])
    figures = tuple(_figure(figure) for figure in declared["figures"])
    systems = {system["name"]: _entry(system, {}) for system in declared.get("systems", ())}
    return Paper(key, declared["title"], tables, figures, systems)


def recognised(splits: list[QuerySplit]) -> str | None:
    """Return the name of the published data set with the shape of splits, the folds of a folder, or None."""
    parts = [part for part in (splits[0].train, splits[0].vali, splits[0].test) if part is not None]
    queries, documents = sum(part.n_queries for part in parts), sum(part.n_documents for part in parts)
    for name, shape in datasets().items():
        length = shape["documents_per_query"]
        same = shape["queries"] == queries and shape["features"] == splits[0].train.n_features
        if same and abs(documents / queries - length) < 1e-3 * length:
            return name
    return None


def datasets() -> dict[str, dict[str, float]]:
    """Return the shapes of the published data sets by name: queries, features, documents_per_query."""
    return dict(_declaration("reproduce-datasets"))


@cache
def _declaration(name: str) -> Json:
    return tomllib.loads((files("ranktune.studies") / f"{name}.toml").read_text(encoding="utf-8"))


def _table(declared: JsonView) -> PublishedTable:
    protocol = declared["protocol"]
    if protocol not in PROTOCOLS:
        raise ParameterError(f"protocol '{protocol}' is unknown. {nearest(protocol, PROTOCOLS)}")
    fields = {
        name: declared[name] for name in ("tolerance", "permutations", "runs", "seed", "note") if name in declared
    }
    entries = tuple(_entry(entry, declared) for entry in declared.get("entries", ()))
    claims = tuple(_claim(claim) for claim in declared.get("claims", ()))
    return PublishedTable(
        declared["title"], protocol, entries, folds=tuple(declared.get("folds", ())), claims=claims, **fields
    )


def _figure(declared: JsonView) -> Figure:
    claims = {name: _claim(claim) for name, claim in declared.get("claims", {}).items()}
    axes = {name: (low, high) for name, (low, high) in declared.get("axes", {}).items()}
    return Figure(**{**declared, "claims": claims, "axes": axes})


def _claim(declared: JsonView) -> Claim:
    lists = {name: tuple(declared[name]) for name in ("lower", "measures") if name in declared}
    return Claim(**{**declared, **lists})


def _entry(declared: JsonView, table: JsonView) -> PublishedSystem:
    shared = {name: table[name] for name in ("metrics", "choose", "grid", "copies", "evaluations") if name in table}
    fields = shared | dict(declared)
    fields["measures"] = tuple(_measure(label, metric) for label, metric in fields.pop("metrics", {}).items())
    fields["parameters"] = {**table.get("parameters", {}), **declared.get("parameters", {})}
    fields["grid"] = {name: _values(values) for name, values in fields.get("grid", {}).items()}
    if fields.get("choose", EACH) != EACH:
        fields["choose"] = str(parse_metric(fields["choose"]))
    return PublishedSystem(**fields)


def _measure(label: str, declared: str | JsonView) -> PublishedMeasure:
    options = {"metric": declared} if isinstance(declared, str) else dict(declared)
    metric = options.pop("metric")
    return PublishedMeasure(label, None if metric in MODEL_FACTS else parse_metric(metric), **options)


def _values(declared: Sequence[Value] | JsonView) -> tuple[Value, ...]:
    """Return the values of a grid: those of a list, or low to high, as exponents where there is a base."""
    if not isinstance(declared, Mapping):
        return tuple(declared)
    low, step = declared["low"], declared.get("step", 1)
    steps = [low + k * step for k in range(int((declared["high"] - low) / step + 1e-9) + 1)]
    return tuple(float(declared["base"] ** exponent) for exponent in steps) if "base" in declared else tuple(steps)
