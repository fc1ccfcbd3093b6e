"""UnionSpace: the search spaces of several solvers joined under one choice, "solver".

A flat name is "Solver.parameter": {"solver": "RankSVM", "RankSVM.C": 1.0}. Only the parameters of the chosen solver are
active, and of those only the ones whose own conditions hold. A parameter that is declared again under other conditions
has them in its further flat names: "Ranker.penalty[tgd]", because Optuna knows one list of choices a name.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self, TypeAlias

from optuna import Trial
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.solvers.core.space import Choice, Float, Int, Parameter, Value, When
from ranktune.solvers.core.space import conditions as own_conditions
from ranktune.solvers.names import SOLVER as SOLVER
from ranktune.solvers.names import SOLVERS
from ranktune.tuner.samplers.foreign_models import configuration_of

First: TypeAlias = Mapping[str, Sequence[Mapping[str, Value]]]
"""Configurations to try first, by solver: the values of parameters that are not the defaults."""


class UnionSpace:
    """Solvers by name, each with the parameters it declares; distributions are Optuna's, by flat name, in order.

    conditions are, by flat name, the conditions that must all hold for a parameter to be active. first are
    configurations to try first, if alone without the portfolios of the solvers.
    """

    def __init__(
        self, solvers: Mapping[str, Sequence[Parameter]], first: First | None = None, *, alone: bool = False
    ) -> None:
        if not solvers:
            raise ParameterError("no solver to tune: name at least one.")
        self._solvers = {name: tuple(parameters) for name, parameters in solvers.items()}
        self.first, self.alone = first or {}, alone
        self._parameters: dict[str, Parameter] = {}
        self.distributions: dict[str, BaseDistribution] = {SOLVER: CategoricalDistribution(tuple(solvers))}
        self.conditions: dict[str, tuple[When, ...]] = {SOLVER: ()}
        for name, space in self._solvers.items():
            flat_names = [f"{name}.{parameter_name}" for parameter_name in _names(space)]
            for flat, parameter in zip(flat_names, space, strict=True):
                self._parameters[flat] = parameter
                self.distributions[flat] = _distribution(parameter)
                parents = tuple(
                    replace(when, name=flat_names[_parent(parameter, when, space)])
                    for when in own_conditions(parameter)
                )
                self.conditions[flat] = (When(SOLVER, (name,)), *parents)

    def parameter(self, name: str) -> Parameter:
        """Return the parameter of a flat name."""
        return self._parameters[name]

    def suggest(self, trial: Trial) -> dict[str, Value]:
        """Suggest every active parameter to trial, in order, and return them by flat name."""
        params: dict[str, Value] = {}
        for name, distribution in self.distributions.items():
            if all(_has(params, when) for when in self.conditions[name]):
                params[name] = _ask(trial, name, distribution)
        return params

    @property
    def size(self) -> float:
        """Upper bound of the number of configurations: conditions are ignored."""
        return math.prod(_count(distribution) for distribution in self.distributions.values())

    def split(self, params: Mapping[str, Value]) -> tuple[str, dict[str, Value]]:
        """Return the chosen solver and its own parameters by their own names."""
        solver = str(params[SOLVER])
        prefix = f"{solver}."
        chosen = ((name.removeprefix(prefix), v) for name, v in params.items() if name.startswith(prefix))
        return solver, {name.partition("[")[0]: v for name, v in chosen}

    def defaults(self) -> list[dict[str, Value]]:
        """Return the default configuration of each solver, by flat name: what to try first."""
        return [self._filled(solver, {}) for solver in self._solvers]

    def configuration(self, solver: str, values: Mapping[str, Value]) -> dict[str, Value] | None:
        """Return the default configuration of a solver with some values changed, by flat name.

        None if one of them is outside, or inactive with the others.
        """
        params = self._filled(solver, values)
        flat_of = {name.partition("[")[0]: name for name in params}
        flat_names = [flat_of.get(f"{solver}.{name}", "") for name in values]
        inside = all(flat in params and _contains(self.distributions[flat], params[flat]) for flat in flat_names)
        return params if inside else None

    def _filled(self, solver: str, values: Mapping[str, Value]) -> dict[str, Value]:
        """Return the active parameters of a configuration, the defaults where no value is given."""
        params: dict[str, Value] = {SOLVER: solver}
        for flat in (f"{solver}.{declared}" for declared in _names(self._solvers[solver])):
            parameter = self._parameters[flat]
            if all(_has(params, when) for when in self.conditions[flat]):
                params[flat] = values.get(parameter.name, parameter.default)
        return params

    def restricted(self, overrides: Mapping[str, object]) -> Self:
        """Return the space with some parameters confined, by flat name; "solver" takes a name or a list of names.

        An override is {"low": ..., "high": ...} (either may be missing; "log" may be given too), a list of choices,
        or one fixed value; it confines all declarations of the parameter. A default outside is replaced by the nearest
        value inside. Where a declaration is left without a choice, what leads to it is no longer suggested. Raises
        ParameterError for an unknown name (with the nearest) or an override that cannot be.
        """
        names = [SOLVER, *dict.fromkeys(name.partition("[")[0] for name in self._parameters)]
        for name in overrides:
            if name not in names:
                raise ParameterError(f"the space has no parameter '{name}'. {nearest(name, names)}")
        solvers = self._kept_solvers(overrides.get(SOLVER, list(self._solvers)))
        spaces = {solver: confined(solver, self._solvers[solver], overrides) for solver in solvers}
        return type(self)(spaces, self.first, alone=self.alone)

    def _kept_solvers(self, override: object) -> list[str]:
        names = list(override) if isinstance(override, Iterable) and not isinstance(override, str) else [override]
        for name in names:
            if name not in self._solvers:
                raise ParameterError(f"the space has no solver '{name}'. {nearest(str(name), self._solvers)}")
        return [name for name in self._solvers if name in names]


def listed(first: Mapping[str, object]) -> dict[str, list[object]]:
    """Return the configurations of each solver, by the standard form of its name, as a list.

    An estimator of another library gives the parameters that the solver shares with it.
    """
    result: dict[str, list[object]] = {}
    for name, values in first.items():
        solver = SOLVERS.spelling(name) or name
        each = list(values) if isinstance(values, list | tuple) else [values]
        result[solver] = [configuration_of(solver, one) if hasattr(one, "get_params") else one for one in each]
    return result


def check_first(first: Mapping[str, Sequence[object]], space: UnionSpace) -> None:
    """Raise ParameterError for a configuration that is not one of the search space."""
    solvers = [str(params[SOLVER]) for params in space.defaults()]
    for solver, configurations in first.items():
        if solver not in solvers:
            raise ParameterError(f"first: '{solver}' is no solver of the study. {nearest(solver, solvers)}")
        for values in configurations:
            if not isinstance(values, Mapping):
                raise ParameterError(f"first: a configuration of {solver} is {values!r}: it must be a table.")
            if space.configuration(solver, values) is None:
                raise ParameterError(
                    f"first: {dict(values)!r} is no configuration of the search space of {solver}. "
                    f"`ranktune solvers {solver}` shows its parameters and their ranges."
                )


def _names(space: Sequence[Parameter]) -> list[str]:
    """Return the name of each declaration; further ones of a name say under which value of their first condition."""
    names: list[str] = []
    for parameter in space:
        further = parameter.name in names
        name = f"{parameter.name}[{'|'.join(map(str, own_conditions(parameter)[0].values))}]" if further else None
        names.append(name or parameter.name)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise TypeError(f"the search space declares '{twice}' twice under the same condition.")
    return names


def _parent(parameter: Parameter, when: When, space: Sequence[Parameter]) -> int:
    """Return the place in space of the declaration that a condition of parameter is about.

    Of several it is that which can be active together with parameter and have one of the values.
    """
    places = [place for place, other in enumerate(space) if other.name == when.name and not _exclude(other, parameter)]
    if len(places) > 1:  # with none of the values left, parameter is never active, whichever is taken
        places = [place for place in places if _can_be(space[place], when.values)] or places[:1]
    if len(places) != 1:
        raise TypeError(f"'{parameter.name}' depends on '{when.name}', which {len(places)} declarations can be.")
    return places[0]


def _can_be(parameter: Parameter, values: Sequence[Value]) -> bool:
    return not isinstance(parameter, Choice) or any(value in parameter.choices for value in values)


def _exclude(a: Parameter, b: Parameter) -> bool:
    """Return whether the conditions of two parameters cannot hold at once."""
    return any(
        first.name == second.name and not set(first.values) & set(second.values)
        for first in own_conditions(a)
        for second in own_conditions(b)
    )


def _has(params: Mapping[str, Value], when: When) -> bool:
    return when.name in params and params[when.name] in when.values


def _distribution(parameter: Parameter) -> BaseDistribution:
    match parameter:
        case Float():
            return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
        case Int():
            return IntDistribution(parameter.low, parameter.high, log=parameter.log)
        case Choice():
            return CategoricalDistribution(parameter.choices)


def widened(
    distributions: Mapping[str, BaseDistribution], params: Mapping[str, Value]
) -> Mapping[str, BaseDistribution]:
    """Return distributions with upper ends that hold params: boosting may have grown beyond what is searched."""
    beyond = {
        name: IntDistribution(old.low, value, old.log, old.step)
        for name, value in params.items()
        if isinstance(old := distributions[name], IntDistribution) and isinstance(value, int) and value > old.high
    }
    return {**distributions, **beyond} if beyond else distributions


def clipped(distributions: Mapping[str, BaseDistribution], params: Mapping[str, Value]) -> dict[str, Value]:
    """Return params with numbers within the ends of their distributions."""
    result = dict(params)
    for name, value in params.items():
        distribution = distributions[name]
        if isinstance(distribution, IntDistribution) and isinstance(value, int):
            result[name] = min(max(value, distribution.low), distribution.high)
    return result


def _contains(distribution: BaseDistribution, value: Value) -> bool:
    if isinstance(distribution, CategoricalDistribution):
        return value in distribution.choices
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    return isinstance(value, int | float) and distribution.low <= value <= distribution.high


def _count(distribution: BaseDistribution) -> float:
    match distribution:
        case CategoricalDistribution():
            return len(distribution.choices)
        case IntDistribution():
            return distribution.high - distribution.low + 1
    return 1 if distribution.single() else math.inf


def _ask(trial: Trial, name: str, distribution: BaseDistribution) -> Value:
    """Return what trial suggests for a parameter."""
    match distribution:
        case FloatDistribution():
            return trial.suggest_float(name, distribution.low, distribution.high, log=distribution.log)
        case IntDistribution():
            return trial.suggest_int(name, distribution.low, distribution.high, log=distribution.log)
        case CategoricalDistribution():
            return trial.suggest_categorical(name, distribution.choices)
    raise ParameterError(
        f"'{name}' has a distribution of type {type(distribution).__name__}, which no solver declares."
    )


def confined(solver: str, space: Sequence[Parameter], overrides: Mapping[str, object]) -> list[Parameter]:
    """Return the space of a solver under overrides by flat name.

    A declaration that is left without a choice stays as it is: the choices that would make it active go.
    """
    parameters: list[Parameter] = []
    unwanted: list[Parameter] = []
    for parameter in space:
        name = f"{solver}.{parameter.name}"
        others = [declaration for declaration in space if declaration.name == parameter.name]
        if name not in overrides:
            parameters.append(parameter)
        elif isinstance(parameter, Choice) and len(others) > 1:
            every = tuple(dict.fromkeys(choice for p in others if isinstance(p, Choice) for choice in p.choices))
            wanted = _confined(name, replace(parameter, choices=every), overrides[name])
            assert isinstance(wanted, Choice)
            choices = tuple(choice for choice in wanted.choices if choice in parameter.choices)
            parameters.append(_chosen(name, parameter, choices or parameter.choices))
            unwanted += [] if choices else [parameter]
        else:
            parameters.append(_confined(name, parameter, overrides[name]))
    for parameter in unwanted:
        parameters = [_without(declaration, parameter, f"{solver}.{parameter.name}") for declaration in parameters]
    return parameters


def _without(parent: Parameter, child: Parameter, name: str) -> Parameter:
    """Return parent without the choices under which child is active, if child depends on it."""
    when = own_conditions(child)[-1]
    if parent.name != when.name or not isinstance(parent, Choice) or _exclude(parent, child):
        return parent
    choices = tuple(choice for choice in parent.choices if choice not in when.values)
    if not choices:
        outer = f"{name.partition('.')[0]}.{parent.name}"
        raise ParameterError(
            f"'{name}' is left without a choice where '{outer}' is {' or '.join(map(str, parent.choices))}: allow more "
            f"of '{name}', or of '{outer}'."
        )
    return _chosen(parent.name, parent, choices)


def _confined(name: str, parameter: Parameter, override: object) -> Parameter:
    """Return parameter under an override."""
    if isinstance(override, Mapping):
        return _bounded(name, parameter, override)
    if isinstance(override, (list, tuple)):
        return _chosen(name, parameter, tuple(override))
    if isinstance(parameter, Choice):
        return _chosen(name, parameter, (override,))
    return _bounded(name, parameter, {"low": override, "high": override})


def _bounded(name: str, parameter: Parameter, override: Mapping[str, object]) -> Parameter:
    if isinstance(parameter, Choice):
        raise ParameterError(f"'{name}' is a choice of {list(parameter.choices)}: give a list of them, or one of them.")
    unknown = set(override) - {"low", "high", "log"}
    if unknown:
        word = sorted(unknown)[0]
        raise ParameterError(f"'{name}' has no bound '{word}'. {nearest(word, ('low', 'high', 'log'))}")
    low, high = (_number(name, parameter, override.get(end, getattr(parameter, end))) for end in ("low", "high"))
    log = bool(override.get("log", parameter.log))
    if low > high or (log and low <= 0):
        rule = "low must not exceed high" if low > high else "a logarithmic scale needs low > 0"
        raise ParameterError(f"'{name}' cannot run from {low} to {high}: {rule}.")
    default = min(max(parameter.default, low), high)
    if isinstance(parameter, Int):
        return replace(parameter, low=int(low), high=int(high), default=int(default), log=log)
    return replace(parameter, low=low, high=high, default=default, log=log)


def _chosen(name: str, parameter: Parameter, choices: tuple[Any, ...]) -> Parameter:
    if not choices:
        raise ParameterError(f"'{name}' needs at least one choice, and the list is empty.")
    if isinstance(parameter, Choice):
        for choice in choices:
            if choice not in parameter.choices:
                closest = nearest(str(choice), map(str, parameter.choices))
                raise ParameterError(f"'{name}' cannot be {choice!r}. {closest}")
        values: tuple[Value, ...] = choices
    else:
        values = tuple(_number(name, parameter, choice) for choice in choices)
    default = parameter.default if parameter.default in values else values[0]
    return Choice(parameter.name, values, default, parameter.when)


def _number(name: str, parameter: Float | Int, value: object) -> int | float:
    """Return value as the parameter's kind of number."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value:
        if isinstance(parameter, Float):
            return float(value)
        if value == int(value):
            return int(value)
    kind = "a whole number" if isinstance(parameter, Int) else "a number"
    raise ParameterError(f"'{name}' cannot be {value!r}: it must be {kind}.")
