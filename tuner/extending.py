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
    distribution_to_json,
    json_to_distribution,
)
from optuna.storages import RDBStorage
from sqlalchemy import Connection, case, column, select, table, update

from ranktune.solvers.errors import StudyError
from ranktune.tuner.space import SOLVER, UnionSpace

Noted: TypeAlias = Mapping[str, Mapping[str, Any]]
"""A space as it is noted in a study's declaration."""

_TRIALS = table("trials", column("trial_id"), column("study_id"))
_PARAMS = table(
    "trial_params", column("trial_id"), column("param_name"), column("param_value"), column("distribution_json")
)


@dataclass(frozen=True)
class Difference:
    """What is different between two declarations, in words; sound where the one here is wider and all else the same."""

    text: str
    sound: bool = False


def noted_space(space: UnionSpace) -> dict[str, dict[str, Any]]:
    """Return a space as plain JSON, by flat name."""
    noted = {name: _noted(distribution) for name, distribution in space.distributions.items()}
    for name, conditions in space.conditions.items():
        own = {when.name: list(when.values) for when in conditions if when.name != SOLVER}
        if own:
            noted[name]["when"] = own
    return noted


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
        elif _key(there[name]) != _key(here[name]):
            text = f"'{name}' is {_said(there[name])} there, {_said(here[name])} here"
            found.append(Difference(text, _is_wider(here[name], there[name])))
    return found


def widen(storage: RDBStorage, study: str, space: UnionSpace) -> int:
    """Give the finished trials of a record the distributions of a wider space, and return how many values changed.

    Optuna wants the choices of a parameter to be the same in all trials of a study, and keeps a choice as its place
    among them. All is written in one transaction, before any trial is read. Raises StudyError where the space is not
    wider than that of the trials; then nothing is changed.
    """
    own = select(_TRIALS.c.trial_id).where(_TRIALS.c.study_id == storage.get_study_id_from_name(study))
    seen = select(_PARAMS.c.param_name, _PARAMS.c.distribution_json).where(_PARAMS.c.trial_id.in_(own)).distinct()
    with storage.engine.begin() as connection:
        changes = []
        for name, text in connection.execute(seen).all():
            before, now = json_to_distribution(text), space.distributions.get(name)
            if now is None or (before != now and not _is_wider(_noted(now), _noted(before))):
                here = "is not searched here" if now is None else f"{_said(_noted(now))} here"
                raise StudyError(
                    f"study '{study}' has trials with '{name}' {_said(_noted(before))}, and it {here}. "
                    "Choose another name (--name), or give the space it began with."
                )
            if before != now:
                changes.append((name, text, before, now))
        return sum(_rewrite(connection, own, *change) for change in changes)


def _rewrite(
    connection: Connection, own: Any, name: str, text: str, before: BaseDistribution, now: BaseDistribution
) -> int:
    values: dict[str, Any] = {"distribution_json": distribution_to_json(now)}
    if isinstance(before, CategoricalDistribution) and isinstance(now, CategoricalDistribution):
        places = {_key(choice): place for place, choice in enumerate(now.choices)}
        moved = {place: places[_key(choice)] for place, choice in enumerate(before.choices)}
        values["param_value"] = case(moved, value=_PARAMS.c.param_value)
    chosen = (_PARAMS.c.trial_id.in_(own), _PARAMS.c.param_name == name, _PARAMS.c.distribution_json == text)
    return connection.execute(update(_PARAMS).where(*chosen).values(values)).rowcount


def _noted(distribution: BaseDistribution) -> dict[str, Any]:
    match distribution:
        case FloatDistribution() | IntDistribution():
            whole = isinstance(distribution, IntDistribution)
            return {"low": distribution.low, "high": distribution.high, "log": distribution.log, "whole": whole}
        case CategoricalDistribution():
            return {"choices": list(distribution.choices)}
    raise StudyError(f"a distribution of type {type(distribution).__name__} is none of ours. Choose another name.")


def _is_wider(now: Mapping[str, Any], before: Mapping[str, Any]) -> bool:
    """Return whether whatever was possible before is possible now, and of the same kind."""
    if now.keys() != before.keys() or now.get("when") != before.get("when"):
        return False
    if "choices" in now:
        return set(map(_key, before["choices"])) <= set(map(_key, now["choices"]))
    same = (now["log"], now["whole"]) == (before["log"], before["whole"])
    return bool(same and now["low"] <= before["low"] and now["high"] >= before["high"])


def _key(value: Any) -> str:
    """Return what tells values apart that Python takes for equal, such as 1 and True."""
    return json.dumps(value, sort_keys=True)


def _said(noted: Mapping[str, Any]) -> str:
    """Return a noted range or list of choices in words."""
    if "choices" in noted:
        said = f"one of {_listed(noted['choices'])}"
    else:
        said = f"{noted['low']} to {noted['high']}" if noted["low"] != noted["high"] else f"{noted['low']}"
        said += " (log)" if noted["log"] else ""
    when = noted.get("when", {})
    return said + "".join(f" where {name} is {_listed(values)}" for name, values in when.items())


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(map(str, values))
