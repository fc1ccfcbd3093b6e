"""How the search space of a study may change while its trials are kept: it may become wider, nothing else.

Wider is sound: more solvers, a numeric range that contains the former, choices besides the former ones. Every finished
trial is then one that the wider study could have run too. A space is noted as plain JSON, by flat name
{"low", "high", "log", "whole"} or {"choices"}, with "when" where it is active only under conditions of its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from ranktune.solvers.core.errors import StudyError
from ranktune.tuner.samplers.space import SOLVER, UnionSpace

Noted: TypeAlias = Mapping[str, Mapping[str, Any]]
"""A space as it is noted in a study's declaration."""


@dataclass(frozen=True)
class Difference:
    """What is different between two declarations, in words; sound where the one here is wider and all else the same."""

    text: str
    sound: bool = False


def noted_space(space: UnionSpace) -> dict[str, dict[str, Any]]:
    """Return a space as plain JSON, by flat name."""
    result = {name: noted(distribution) for name, distribution in space.distributions.items()}
    for name, conditions in space.conditions.items():
        own = {when.name: list(when.values) for when in conditions if when.name != SOLVER}
        if own:
            result[name]["when"] = own
    return result


def space_differences(there: Noted, here: Noted) -> list[Difference]:
    """Return the differences between two spaces: their solvers, then the parameters of those that are in both."""
    found = []
    before, now = list(there[SOLVER]["choices"]), list(here[SOLVER]["choices"])
    if before != now:
        found.append(Difference(f"solvers is {before} there, {now} here", set(before) <= set(now)))
    for name in dict.fromkeys((*there, *here)):
        if name == SOLVER or name.partition(".")[0] not in set(before) & set(now):
            continue
        if name not in here:
            found.append(Difference(f"'{name}' is searched there, not here"))
        elif name not in there:
            found.append(Difference(f"'{name}' is searched here, not there"))
        elif key(there[name]) != key(here[name]):
            text = f"'{name}' is {said(there[name])} there, {said(here[name])} here"
            found.append(Difference(text, is_wider(here[name], there[name])))
    return found


def noted(distribution: BaseDistribution) -> dict[str, Any]:
    """Return a range or list of choices as plain JSON."""
    match distribution:
        case FloatDistribution() | IntDistribution():
            whole = isinstance(distribution, IntDistribution)
            return {"low": distribution.low, "high": distribution.high, "log": distribution.log, "whole": whole}
        case CategoricalDistribution():
            return {"choices": list(distribution.choices)}
    raise StudyError(f"a distribution of type {type(distribution).__name__} is none of ours. Choose another name.")


def is_wider(now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Return whether whatever was possible before is possible now, and of the same kind."""
    if now.keys() != before.keys() or now.get("when") != before.get("when"):
        return False
    if "choices" in now:
        return set(map(key, before["choices"])) <= set(map(key, now["choices"]))
    same = (now["log"], now["whole"]) == (before["log"], before["whole"])
    return bool(same and now["low"] <= before["low"] and now["high"] >= before["high"])


def key(value: Any) -> str:
    """Return what tells values apart that Python takes for equal, such as 1 and True."""
    return json.dumps(value, sort_keys=True)


def said(value: Mapping[str, Any]) -> str:
    """Return a noted range or list of choices in words."""
    if "choices" in value:
        text = f"one of {_listed(value['choices'])}"
    else:
        text = f"{value['low']} to {value['high']}" if value["low"] != value["high"] else f"{value['low']}"
        text += " (log)" if value["log"] else ""
    when = value.get("when", {})
    return text + "".join(f" where {name} is {_listed(values)}" for name, values in when.items())


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values))
