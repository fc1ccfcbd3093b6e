"""Study: what is tuned on what, declared in TOML or Python with the same fields."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from ranktune.solvers.core.checks import check_positive
from ranktune.solvers.core.errors import IncompatibleParts, ParameterError, nearest
from ranktune.solvers.core.space import Choice, Value, is_active
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.solvers.registry import ALL, NAMES, SOLVERS, STANDARD, check_loadable, loadable, make, solver_class
from ranktune.tuner.evaluation.plans import DEFAULT_FOLDS, DEFAULT_PERMUTATIONS, PLANS
from ranktune.tuner.samplers.registry import SAMPLERS
from ranktune.tuner.samplers.space import SOLVER, UnionSpace
from ranktune.tuner.statistics.pareto import parse_limits

DEFAULT_METRIC = "ndcg@10"
DEFAULT_TRIALS = 30
TRIALS_BY_TIME = 500
"""Trials at most where only a time was given: more of them find nothing but luck."""
NO_TEST = "none"


@dataclass(frozen=True)
class Study:
    """What is tuned on what.

    name      what its records are called; chosen from the data where empty
    data      file, folder or name of the training data, for the record; vali and test likewise; test "none": no query
              is set aside to judge by
    metric    what trials maximise; also: further metrics to report
    solvers   which solvers compete; "all" is every one, none the standard ones (with plan progressive: all that can)
    plan      how trials are scored: "auto", by cross-validation over training and validation queries (validation
              queries of 300 and more are kept to); "split", on the given validation queries alone; "nested", auto
              within each of so many outer folds, which say what the whole procedure delivers; "progressive", each
              query before it is learnt from (online learners only), in so many permutations of all queries
    folds     of the cross-validation, None for five; repeats: how often queries are dealt anew; outer: outer folds
    trials    configurations to try, for each split; timeout: seconds that all may take, None for as long as it takes
    full      judge every trial to its end, at its own parameters alone: none is stopped because it is for sure behind
              the best, and none looks at the values of a parameter that it passes on its way
    until     end when trials are expected to gain less than this, of the metric; None: not before their number or the
              time is over. It needs the sampler thompson, which knows what it expects
    sampler   thompson, random, tpe, gp or skopt
    reading   options of the readers: {"missing": "zero", "one_based": False}
    within    limits of the chosen model, such as "features<=29, bytes<=10k, microseconds<=0.5"; "" for none
    seed      of everything random; refit: learn the chosen configuration again on training and validation queries
    space     narrower ranges: {"RankSVM.C": {"low": 0.1, "high": 10}}, a list of choices, or one fixed value

    Raises ParameterError where a field cannot be; names are normalised to their one spelling.
    """

    name: str = ""
    data: str = ""
    vali: str | None = None
    test: str | None = None
    metric: str = DEFAULT_METRIC
    also: tuple[str, ...] = ()
    solvers: tuple[str, ...] = ()
    plan: str = "auto"
    permutations: int = DEFAULT_PERMUTATIONS
    folds: int | None = None
    repeats: int = 1
    outer: int = DEFAULT_FOLDS
    trials: int = DEFAULT_TRIALS
    timeout: float | None = None
    full: bool = False
    until: float | None = None
    sampler: str = "thompson"
    within: str = ""
    seed: int = 0
    refit: bool = True
    space: Mapping[str, Any] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check every field and give names their one spelling."""
        for name, (kind, said) in _KINDS.items():
            _check_kind(name, getattr(self, name), kind, said)
        _at_least("trials", self.trials, 1)
        _at_least("seed", self.seed, 0)
        if self.folds is not None:
            _at_least("folds", self.folds, 2)
        for name, low in (("permutations", 1), ("repeats", 1), ("outer", 2)):
            _at_least(name, getattr(self, name), low)
        if self.timeout is not None:
            check_positive("timeout", self.timeout)
            object.__setattr__(self, "timeout", float(self.timeout))
        if self.until is not None:
            check_positive("until", self.until)
            object.__setattr__(self, "until", float(self.until))
            if self.sampler != "thompson":
                raise ParameterError(
                    f"until={self.until:g}: sampler '{self.sampler}' does not know what it expects to gain. "
                    "Take thompson, or leave until out."
                )
        parse_limits(self.within)
        _check_plan(self)
        check_name(self.name)
        if self.plan not in PLANS:
            raise ParameterError(f"unknown plan '{self.plan}'. {nearest(self.plan, PLANS)}")
        if self.sampler not in SAMPLERS:
            raise ParameterError(f"unknown sampler '{self.sampler}'. {nearest(self.sampler, SAMPLERS)}")
        own = str(parse_metric(self.metric))
        also = tuple(dict.fromkeys(str(parse_metric(name)) for name in self.also))
        names = _competing(self.solvers, self.plan)
        for name, value in (("metric", own), ("also", tuple(m for m in also if m != own)), ("solvers", names)):
            object.__setattr__(self, name, value)
        self.union_space()  # an override that cannot be is told before anything runs
        for flat, override in self.space.items():
            _check_values(flat, override)

    @property
    def limits(self) -> dict[str, float]:
        """The most that the chosen model may cost, by cost."""
        return parse_limits(self.within)

    @property
    def strict(self) -> bool:
        """Whether the given validation queries alone choose: the protocol of published tables."""
        return self.plan == "split" or not self.refit

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metric that is maximised, then the others."""
        return (self.metric, *self.also)

    def union_space(self) -> UnionSpace:
        """Return the joined search space of the competing solvers, with this study's overrides."""
        space = UnionSpace({name: solver_class(name).space for name in self.solvers})
        return space.restricted(self.space) if self.space else space

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON and TOML know them."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Return the study with these fields; an unknown field is an error that names the nearest."""
        known = {f.name for f in fields(cls)}
        for name in values:
            if name not in known:
                raise ParameterError(f"a study has no field '{name}'. {nearest(name, known)}")
        given: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
        return cls(**given)

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Return the study declared in a TOML file, named after the file where it has no name.

        Data paths in it are relative to the file.
        """
        path = Path(path)
        try:
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ParameterError(
                f"cannot read the study {path}: {error.strerror}. Give the path of a TOML file."
            ) from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ParameterError(f"{path} is not TOML: {error}.") from None
        for name in ("data", "vali", "test"):
            beside = path.parent / str(values.get(name, ""))
            if values.get(name) and beside.exists():
                values[name] = str(beside)
        try:
            return cls.from_dict({"name": path.stem} | values)
        except (ParameterError, TypeError) as error:
            raise ParameterError(f"{path}: {error}") from None


def _check_plan(study: Study) -> None:
    """Raise ParameterError where fields of study contradict its plan."""
    if study.plan in ("split", "progressive") and (study.folds is not None or study.repeats > 1):
        raise ParameterError(
            f"plan='{study.plan}' does not deal queries into folds. Leave folds and repeats out, or the plan."
        )
    if study.plan == "nested" and study.test is not None:
        raise ParameterError(
            "plan='nested' judges on outer folds of all queries. Leave test out, or the plan: given test queries judge."
        )


def _competing(given: Sequence[str], plan: str) -> tuple[str, ...]:
    """Return the names of the solvers that compete: those given, else those that plan can score.

    Of solvers that were not asked for by their own name, those whose library cannot be loaded are left out.
    """
    online = [name for name in SOLVERS if hasattr(SOLVERS[name], "progressive")]
    if not given:
        return tuple(online) if plan == "progressive" else loadable(STANDARD)
    every = [name for name in given for name in (loadable(NAMES) if name == ALL else [name])]
    names = tuple(dict.fromkeys(solver_class(name).__name__ for name in every))
    for name in names:
        check_loadable(name)
    if plan == "progressive" and not set(names) <= set(online):
        strange = next(name for name in names if name not in online)
        raise ParameterError(
            f"{strange} does not learn from query to query, so plan='progressive' cannot score it. "
            f"Solvers that do: {', '.join(online)}."
        )
    return names


def _check_values(flat: str, override: Any) -> None:
    """Raise ParameterError where a number that override names, alone, in a list or as a bound, cannot be.

    The solver itself judges, with its other parameters at their defaults. Names and choices are the space's to check.
    """
    if flat == SOLVER:
        return
    name, own = flat.split(".", 1)
    space = {parameter.name: parameter for parameter in solver_class(name).space}
    if isinstance(space[own], Choice):
        return
    if isinstance(override, Mapping):
        values = [override[end] for end in ("low", "high") if end in override]
    else:
        values = list(override) if isinstance(override, list | tuple) else [override]
    for value in values:
        forced = {own: value}
        when = space[own].when
        while when is not None:  # a parameter that is not active is not looked at
            forced[when.name] = when.values[0]
            when = space[when.name].when
        parameters: dict[str, Value] = {}
        for parameter in space.values():
            if is_active(parameter, parameters):
                parameters[parameter.name] = forced.get(parameter.name, parameter.default)
        try:
            make(name, parameters, 0).check_parameters()
        except IncompatibleParts:  # of other parameters, whose values the trial will choose
            continue
        except ParameterError as error:
            raise ParameterError(f"space: '{flat}' cannot be {value!r}: {error}") from None


_TEXT, _TEXTS = (str, "text"), (tuple, "a list of texts")
_KINDS: Mapping[str, tuple[Any, str]] = {
    "name": _TEXT,
    "data": _TEXT,
    "vali": (str | None, "text"),
    "test": (str | None, "text"),
    "metric": _TEXT,
    "also": _TEXTS,
    "solvers": _TEXTS,
    "plan": _TEXT,
    "sampler": _TEXT,
    "within": _TEXT,
    "refit": (bool, "true or false"),
    "full": (bool, "true or false"),
    "space": (Mapping, "a table of parameters"),
    "reading": (Mapping, "a table of options"),
}


def _check_kind(name: str, value: Any, kind: Any, said: str) -> None:
    whole = isinstance(value, kind)
    if not whole or (isinstance(value, tuple) and not all(isinstance(one, str) for one in value)):
        raise ParameterError(f"{name}={value!r}: it must be {said}.")


def check_name(name: str) -> None:
    """Raise ParameterError where name cannot be the name of a study, which becomes a folder."""
    if any(c in name for c in "/\\\0") or name.startswith(".") or not name.isprintable():
        raise ParameterError(
            f"name={name!r}: a study's name becomes a folder: it may not begin with a dot, nor hold a slash or a "
            "character that cannot be printed."
        )


def _at_least(name: str, value: Any, low: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < low:
        raise ParameterError(f"{name}={value!r}: it must be a whole number of at least {low}.")
