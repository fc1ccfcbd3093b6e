"""Which changes of a study's declaration keep its trials: more trials or time, and a wider search space.

A wider search space has more solvers, a numeric range that contains the former, or choices besides the former ones.
Every finished trial is then one that the wider study could have run too. A space is saved as JSON, by flat name
{"low", "high", "log", "whole"} or {"choices"}, with "when" if the parameter is active only under some conditions.

The home folder of a study holds its declaration. A record that several hosts reach holds the settings too, because
another home may hold another study of that name.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.study import StudyDirection

from ranktune.solvers.core.arrays import Json, JsonView
from ranktune.solvers.core.declared import declared
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.metrics.metrics import linear_gain, parse_metric
from ranktune.solvers.names import current_names
from ranktune.tuner.samplers.space import SOLVER, UnionSpace
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.settings import DECLARED, MIXED, ClickSettings, ColumnSettings

WEIGHTED = "weighted"
"""Entry of what a record declares where the values of its trials are weighted means."""
_FREE = ("name", "preset", "first", "trials", "timeout", "until", "solvers", "space", "custom", "mlflow", "baseline")
_SOURCES = (
    *("data", "vali", "test", "reading"),
    *(field.name for kind in (ColumnSettings, ClickSettings) for field in declared(kind)),
)

SavedSpace: TypeAlias = Mapping[str, JsonView]
"""A space as the declaration of a study holds it."""


@dataclass(frozen=True)
class Difference:
    """A difference between two declarations, in words; keeps_trials if the second is wider and otherwise the same."""

    text: str
    keeps_trials: bool = False


def saved_space(space: UnionSpace) -> dict[str, Json]:
    """Return a space as JSON, by flat name."""
    result = {name: saved(distribution) for name, distribution in space.distributions.items()}
    for name, conditions in space.conditions.items():
        others = {when.name: list(when.values) for when in conditions if when.name != SOLVER}
        if others:
            result[name]["when"] = others
    return result


def of_today(space: SavedSpace) -> SavedSpace:
    """Return a space that an earlier version saved, with the names and values of today."""
    result: dict[str, JsonView] = {}
    for name, distribution in space.items():
        ((today, choices),) = current_names({name: distribution.get("choices")}).items()
        when = {"when": current_names(distribution["when"])} if "when" in distribution else {}
        result[today] = {**distribution, **({"choices": choices} if choices else {}), **when}
    return result


def confining(before: SavedSpace, space: UnionSpace) -> Json:
    """Return the overrides that confine a space of today to one that was saved; what is new has its default."""
    overrides: Json = {}
    solvers = before[SOLVER]["choices"]
    for name, now in saved_space(space).items():
        if name == SOLVER or name.partition(".")[0] not in solvers:
            continue
        if name not in before:
            overrides[name] = space.parameter(name).default
        elif canonical(before[name]) != canonical(now):
            parameter = before[name]
            overrides[name] = parameter.get("choices") or {end: parameter[end] for end in ("low", "high", "log")}
    return overrides


def space_differences(before: SavedSpace, now: SavedSpace) -> list[Difference]:
    """Return the differences between two spaces: their solvers, then the parameters of solvers that are in both."""
    differences = []
    old, new = list(before[SOLVER]["choices"]), list(now[SOLVER]["choices"])
    if old != new:
        differences.append(Difference(f"solvers is {old} there, {new} here", set(old) <= set(new)))
    for name in dict.fromkeys((*before, *now)):
        if name == SOLVER or name.partition(".")[0] not in set(old) & set(new):
            continue
        if name not in now:
            differences.append(Difference(f"'{name}' is searched there, not here"))
        elif name not in before and not _is_fixed(now[name]):
            differences.append(Difference(f"'{name}' is searched here, not there"))
        elif name in before and canonical(before[name]) != canonical(now[name]):
            text = f"'{name}' is {description(before[name])} there, {description(now[name])} here"
            differences.append(Difference(text, is_wider(now[name], before[name])))
    return differences


def _is_fixed(value: JsonView) -> bool:
    """Return whether a saved range or list of choices has a single value."""
    return len(value["choices"]) == 1 if "choices" in value else bool(value["low"] == value["high"])


def saved(distribution: BaseDistribution) -> Json:
    """Return a range or list of choices as JSON."""
    match distribution:
        case FloatDistribution() | IntDistribution():
            whole = isinstance(distribution, IntDistribution)
            return {"low": distribution.low, "high": distribution.high, "log": distribution.log, "whole": whole}
        case CategoricalDistribution():
            return {"choices": list(distribution.choices)}
    raise StudyError(f"RankTune has no distribution of type {type(distribution).__name__}. Choose another name.")


def is_wider(now: JsonView, before: JsonView) -> bool:
    """Return whether every value that was possible before is possible now, and of the same kind."""
    if now.keys() != before.keys() or now.get("when") != before.get("when"):
        return False
    if "choices" in now:
        return set(map(canonical, before["choices"])) <= set(map(canonical, now["choices"]))
    same = (now["log"], now["whole"]) == (before["log"], before["whole"])
    return bool(same and now["low"] <= before["low"] and now["high"] >= before["high"])


def canonical(value: object) -> str:
    """Return a text that differs for values which Python considers equal, such as 1 and True."""
    return json.dumps(value, sort_keys=True)


def description(value: JsonView) -> str:
    """Return a saved range or list of choices in words."""
    if "choices" in value:
        text = f"one of {', '.join(map(str, value['choices']))}"
    else:
        text = f"{value['low']} to {value['high']}" if value["low"] != value["high"] else f"{value['low']}"
        text += " (log)" if value["log"] else ""
    when = value.get("when", {})
    return text + "".join(f" where {name} is {', '.join(map(str, values))}" for name, values in when.items())


def setting_differences(before: JsonView, now: JsonView) -> list[Difference]:
    """Return the differences between the fields of two studies, except those that may change and the search space.

    A study from before there was a choice of the acquisition, of systems, or of constraints, had the default.
    """
    before = {"acquisition": MIXED, "serve": [], "monotone": {}, **before}
    return [
        Difference(f"{name} is {before[name]!r} there, {value!r} here")
        for name, value in now.items()
        if name in before and name not in _FREE and not _is_same(name, before[name], value)
    ]


def _is_same(name: str, before: object, now: object) -> bool:
    """Return whether a setting is the same, or the gain of a metric is one that the grades may have decided."""
    if name == "metric":
        return str(now) == before or str(linear_gain(parse_metric(str(now)))) == before
    if name == "also" and isinstance(before, list) and isinstance(now, list):
        return len(before) == len(now) and all(_is_same("metric", *both) for both in zip(before, now, strict=True))
    return before == now


def claim(record: optuna.Study, study: Study, digest: str, *, weighted: bool = False) -> None:
    """Save in a record the settings of its study, and the digest of the queries that its trials learn from.

    `weighted` is whether queries have weights, which the values of the trials take into account. Raises StudyError that
    names every difference if the record belongs to another study.
    """
    settings = {name: value for name, value in study.as_dict().items() if name not in (*_FREE, *_SOURCES)}
    declared = record.user_attrs.get(DECLARED)
    diffs = setting_differences(declared["settings"], settings) if declared else []
    if declared and declared["data"] != digest:
        diffs.append(Difference("the digest of its data differs"))
    if declared and weighted and not declared.get(WEIGHTED):
        diffs.append(Difference("an earlier version computed the values of its trials without the weights of queries"))
    if record.direction != StudyDirection.MAXIMIZE:
        diffs.append(Difference(f"direction is '{record.direction.name.lower()}' there, 'maximize' here"))
    if diffs:
        text = "; ".join(change.text for change in diffs)
        raise StudyError(
            f"the record of study '{record.study_name}' is another study's: {text}. "
            "Choose another name (name=), or repeat its settings."
        )
    if declared is None:
        record.set_user_attr(DECLARED, {"settings": settings, "data": digest} | ({WEIGHTED: True} if weighted else {}))
