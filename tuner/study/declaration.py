"""Study: the declaration of what is tuned on what, in Python or TOML, with the fields of Settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Self

from ranktune.solvers.clicks.reading.roles import named_columns
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.checks import check_positive
from ranktune.solvers.core.declared import DeclaredField, declared, documented
from ranktune.solvers.core.errors import IncompatibleParts, ParameterError, nearest
from ranktune.solvers.core.registrations import space_of
from ranktune.solvers.core.space import Choice, Value, conditions, is_active
from ranktune.solvers.data.query_columns import constraints
from ranktune.solvers.metrics.metrics import for_grades, parse_metric
from ranktune.solvers.names import current_names
from ranktune.solvers.registry import (
    ALL,
    COMPUTING,
    NAMES,
    SOLVERS,
    STANDARD_NAME,
    check_loadable,
    custom_names,
    loadable,
    make,
    solver_class,
    standard,
)
from ranktune.tuner.evaluation.feature_costs import (
    FEATURE_SET,
    FeatureBudget,
    FeatureCosts,
    FeatureLimits,
    check_sets,
    read_costs,
    with_feature_sets,
)
from ranktune.tuner.samplers.foreign_spaces import overrides_of
from ranktune.tuner.samplers.presets import PRESETS
from ranktune.tuner.samplers.registry import SAMPLERS
from ranktune.tuner.samplers.space import SOLVER, UnionSpace, check_first, listed
from ranktune.tuner.splits.gaps import check_gap
from ranktune.tuner.statistics.pareto import parse_limits
from ranktune.tuner.study.abilities import (
    able_of,
    able_space,
    check_able,
    known_systems,
    needs_of,
)
from ranktune.tuner.study.custom import declared_solvers, described_custom, metrics_of, named_first
from ranktune.tuner.study.secrets import check_tracking, shown_tracking
from ranktune.tuner.study.settings import MIXED, Settings, check_name, given_columns


@documented(Settings)
@dataclass(frozen=True, kw_only=True, repr=False)
class Study(Settings):
    """The declaration of a study: what is tuned on what.

    {parameters}
    custom : Mapping[str, Any], default={}
        Descriptions of the solvers and metrics that the study names and that are not RankTune's, filled in from what is
        registered.
    after : str, default=""
        The study that this one retunes on new data (`ranktune retune`). It then tries first only what is given.

    Raises
    ------
    ParameterError
        If a field is invalid, or if fields contradict each other.

    Notes
    -----
    Names of metrics and solvers are given in their standard form. Data paths and names are kept for the record.

    Examples
    --------
    >>> from ranktune import Study
    >>> study = Study(metric="NDCG@5", solvers=["ranksvm"], trials=20, space={"RankSVM.C": [0.1, 1.0]})
    >>> study.metric, study.solvers, study.trials
    ('ndcg@5', ('RankSVM',), 20)
    """

    custom: Mapping[str, Any] = field(default_factory=dict)
    after: str = ""

    def __post_init__(self) -> None:
        """Check every field and give names their standard form."""
        self._normalise(
            monotone=constraints(self.monotone),
            click_columns=named_columns(self.click_columns),
            costs=read_costs(self.costs) if isinstance(self.costs, str) else self.costs,
        )
        for setting in declared(Settings):
            _check_type(setting, getattr(self, setting.name))
        if self.preset is not None:
            self._normalise(**PRESETS.find(self.preset).missing(vars(self)), preset=PRESETS.spelling(self.preset))
        if not isinstance(self.custom, Mapping):
            raise ParameterError(f"custom={self.custom!r}: it must be a table of descriptions. Leave it out.")
        if self.until is not None and self.sampler != "thompson":
            raise ParameterError(
                f"until={self.until:g} needs sampler='thompson': '{self.sampler}' does not estimate the gain of "
                "further trials. Choose thompson, or leave out until=."
            )
        if self.mlflow is not None:
            check_tracking(self.mlflow)
        parse_limits(self.within)
        FeatureCosts.parse(self.costs)
        _check_plan(self)
        check_gap(self.gap)
        check_name(self.name)
        _check_known("sampler", self.sampler, SAMPLERS.names)
        if self.acquisition not in (None, MIXED) and self.sampler != "thompson":
            raise ParameterError(
                f"acquisition='{self.acquisition}' needs sampler='thompson': '{self.sampler}' decides in its own way. "
                "Choose thompson, or leave out acquisition=."
            )
        metric, *also = metrics_of(self, self.custom)
        serve, needs = known_systems(self.serve), needs_of(self)
        self._normalise(
            metric=metric,
            also=tuple(also),
            clicks=tuple(self.clicks),
            acquisition=self.acquisition or MIXED,
            solvers=_competing(self.solvers, self.plan, declared_solvers(self.custom), serve, needs),
            serve=serve,
            timeout=None if self.timeout is None else float(self.timeout),
            until=None if self.until is None else float(self.until),
            space=current_names(overrides_of(self.space)),
            first=listed(self.first),
            features=tuple(self.features),
            drop=tuple(self.drop),
        )
        self._normalise(custom=described_custom(self.solvers, self.metrics, self.custom))
        check_first(self.first, self.union_space())  # an invalid override is refused before anything runs
        for flat, override in self.space.items():
            if flat.partition(".")[0] not in declared_solvers(self.custom):
                _check_values(flat, override)

    def _normalise(self, **fields: object) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        """Show the fields that differ from their defaults, without passwords."""
        usual = {setting.name: setting.default for setting in declared(Settings)} | {
            "acquisition": MIXED,
            "custom": {},
        }
        values = self.as_dict()
        changed = {name: values[name] for name in usual if getattr(self, name) not in (usual[name], ())}
        return f"Study({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def check_loadable(self) -> None:
        """Raise ParameterError, with what to install, where the library of a solver is missing: to read needs none."""
        for name in self.solvers:
            check_loadable(name)

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that its trials are computed by."""
        modules = (description["make"].partition(":")[0] for description in declared_solvers(self.custom).values())
        packages = (*COMPUTING, *map(SOLVERS.library, self.solvers), *(module.partition(".")[0] for module in modules))
        return tuple(filter(None, dict.fromkeys(packages)))

    @property
    def limits(self) -> dict[str, float]:
        """The most that the chosen model may cost, by cost; without costs of features, their number is their cost."""
        limits = parse_limits(self.within)
        if not self.costs and "cost" in limits:
            limits["nonzeros"] = min(limits.pop("cost"), limits.get("nonzeros", float("inf")))
        return limits

    @property
    def budget(self) -> FeatureBudget | None:
        """What features cost, and the limits within which each trial chooses its features; None without both.

        A progressive plan learns from every query that it scores, so that none is left to choose features by.
        """
        limits, none = self.limits, float("inf")
        searched = FeatureLimits(limits.get("cost", none), limits.get("nonzeros", none))
        if searched == FeatureLimits() or self.plan == "progressive":
            return FeatureBudget(FeatureCosts.parse(self.costs)) if self.costs else None
        return FeatureBudget(FeatureCosts.parse(self.costs), searched)

    @property
    def strict(self) -> bool:
        """Whether the given validation queries alone choose: the protocol of published tables."""
        return self.one_split or not self.refit

    @property
    def one_split(self) -> bool:
        """Whether the plan keeps to one set of validation queries: those given, or the latest ones."""
        return self.plan == "split" or self.group_by_time is not None

    @property
    def read_options(self) -> dict[str, Any]:
        """The options of readers: columns, and those of reading."""
        sessions = {} if self.group is None else {"session": self.group}
        return given_columns(asdict(self)) | sessions | dict(self.reading)

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metric that is maximised, then the others."""
        return (self.metric, *self.also)

    def for_grades(self, *grades: Floats) -> Self:
        """Return the study with metrics whose gain is the same for any part of these grades, each (n_documents,)."""
        metric, *also = (str(for_grades(parse_metric(name), *grades)) for name in self.metrics)
        return self if (metric, *also) == self.metrics else replace(self, metric=metric, also=tuple(also))

    def union_space(self) -> UnionSpace:
        """Return the joined search space of the competing solvers, with this study's overrides."""
        custom, needs = declared_solvers(self.custom), needs_of(self)
        spaces = {
            name: space_of(custom[name]) if name in custom else able_space(needs, self.serve, name)
            for name in self.solvers
        }
        budget = self.budget
        if budget is not None and budget.limits is not None:
            spaces = {name: with_feature_sets(name, space) for name, space in spaces.items()}
        space = UnionSpace(spaces, self.first, alone=bool(self.after))
        return space.restricted(self.space) if self.space else space

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON and TOML know them, without passwords."""
        values = asdict(self) | {"mlflow": None if self.mlflow is None else shown_tracking(self.mlflow)}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the study with these fields; an unknown field is an error that names the nearest."""
        names = {f.name for f in fields(cls)}
        for name in values:
            if name not in names:
                raise ParameterError(f"a study has no field '{name}'. {nearest(name, names)}")
        return cls(**values)


def _check_plan(study: Study) -> None:
    """Raise ParameterError if settings of a study contradict its plan."""
    dealt = [f"folds={study.folds}"] * (study.folds is not None) + [f"repeats={study.repeats}"] * (study.repeats > 1)
    others = dealt + [f"time='{study.time}'"] * (study.time is not None)
    if study.group_by_time is not None and (others or study.plan in ("nested", "progressive")):
        raise ParameterError(
            f"group_by_time='{study.group_by_time}' scores trials on the latest queries alone. Leave "
            f"{' and '.join(others) or 'the plan'} out, or group_by_time."
        )
    if study.group is not None and study.time is None:
        raise ParameterError(
            f"group='{study.group}' keeps sessions together in time. Name the column of times (time=). The column "
            "of query ids is another one (qid=)."
        )
    if study.group is not None and study.plan == "progressive":
        raise ParameterError(
            "plan='progressive' learns each query before it ranks the next one, also in a session. Leave group out."
        )
    if study.plan == "progressive" and study.monotone:
        raise ParameterError(
            "plan='progressive' scores each query by what was learned before it, and no solver keeps monotone "
            "constraints then. Leave monotone out, or the plan."
        )
    if study.plan in ("split", "progressive") and dealt:
        raise ParameterError(
            f"plan='{study.plan}' does not deal queries into folds. Leave {' and '.join(dealt)} out, or the plan."
        )
    if study.plan == "nested" and study.test is not None:
        raise ParameterError(
            f"plan='nested' judges on outer folds of all queries. Leave test='{study.test}' out, or the plan: given "
            "test queries judge."
        )


def _competing(
    solvers: Sequence[str], plan: str, declared: Mapping[str, Any], serve: Sequence[str], needs: frozenset[str]
) -> tuple[str, ...]:
    """Return the names of the solvers that compete: those given, by default those that plan can score.

    Left out, unless they are given by name, are solvers whose library cannot be loaded, whose models a system of serve
    cannot load, and that cannot use what the data need. own are solvers of the user's that the study has declared
    already: they need not be registered to read its declaration.
    """
    if not solvers:
        return able_of(needs, serve, _online() if plan == "progressive" else standard())
    groups = {ALL: lambda: loadable((*NAMES, *custom_names())), STANDARD_NAME: standard}
    every = [name for each in solvers for name in (able_of(needs, serve, groups[each]()) if each in groups else [each])]
    names = tuple(dict.fromkeys(name if name in declared else solver_class(name).__name__ for name in every))
    for name in names:
        if name not in declared:
            check_able(needs, serve, name)
    if plan == "progressive" and not set(names) <= set(_online()):
        other = next(name for name in names if name not in _online())
        raise ParameterError(
            f"{other} does not learn from query to query, so plan='progressive' cannot score it. "
            f"Solvers that do: {', '.join(_online())}."
        )
    return names


def _online() -> tuple[str, ...]:
    return tuple(name for name in SOLVERS if SOLVERS[name].online)


def _check_values(flat: str, override: object) -> None:
    """Raise ParameterError if a number in override, alone, in a list or as a bound, is invalid for its solver.

    The solver checks it, with its other parameters at their defaults. The space has checked names and choices.
    """
    if flat == SOLVER:
        return
    name, parameter_name = flat.split(".", 1)
    if isinstance(override, Mapping):
        values = [override[end] for end in ("low", "high") if end in override]
    else:
        values = list(override) if isinstance(override, list | tuple) else [override]
    if parameter_name == FEATURE_SET:
        check_sets(flat, values)
        return
    declared = solver_class(name).space
    space = {parameter.name: parameter for parameter in reversed(declared)}
    if parameter_name not in space or isinstance(space[parameter_name], Choice):
        return
    for value in values:
        forced = {parameter_name: value}
        waiting = list(conditions(space[parameter_name]))
        for when in waiting:  # which grows; solvers do not check inactive parameters
            if when.name not in forced:
                forced[when.name] = when.values[0]
                waiting += conditions(space[when.name])
        parameters: dict[str, Value] = {}
        for parameter in (each for each in declared if is_active(each, parameters)):
            parameters[parameter.name] = forced.get(parameter.name, parameter.default)
        try:
            make(name, parameters, 0).check_parameters()
        except IncompatibleParts:  # with other parameters, whose values the trial chooses
            continue
        except ParameterError as error:
            raise ParameterError(f"space: '{flat}' cannot be {value!r}: {error}") from None


def _check_type(setting: DeclaredField, value: object) -> None:
    """Raise ParameterError unless value has the declared type, is not below the minimum, and is one of the choices."""
    if value is None and setting.is_optional:
        return
    if setting.kind is float:
        check_positive(setting.name, value)
        return
    least = setting.setting.minimum
    is_texts = isinstance(value, list | tuple) and all(isinstance(text, str) for text in value)
    is_whole = isinstance(value, int) and not isinstance(value, bool) and (least is None or value >= least)
    table = f"a table of {setting.setting.content}", isinstance(value, Mapping)
    kinds: dict[object, tuple[str, bool]] = {
        str: ("text", isinstance(value, str)),
        bool: ("true or false", isinstance(value, bool)),
        Sequence[str]: ("a list of texts", is_texts),
        int: (f"a whole number of at least {least}", is_whole),
        **dict.fromkeys((Mapping[str, str], Mapping[str, int], Mapping[str, Any]), table),
    }
    expected, is_valid = kinds[setting.kind]
    if not is_valid:
        shown = f"{' '.join(repr(value).split()):.80}"
        raise ParameterError(f"{setting.name}={shown}: it must be {expected}.{named_first(setting.name, value)}")
    if setting.setting.choices:
        _check_known(setting.name, str(value), setting.setting.choices)


def _check_known(name: str, value: str, names: Collection[str]) -> None:
    if value not in names:
        raise ParameterError(f"unknown {name} '{value}'. {nearest(value, names)}")
