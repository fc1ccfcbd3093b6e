"""Migration of the trials in a record to a wider search space (`ranktune.tuner.study.extending`)."""

from __future__ import annotations

from typing import Any

from optuna.distributions import BaseDistribution, CategoricalDistribution, distribution_to_json, json_to_distribution
from optuna.storages import RDBStorage
from sqlalchemy import Connection, case, column, select, table, update

from ranktune.solvers.core.arrays import Json
from ranktune.solvers.core.errors import StudyError
from ranktune.solvers.names import current_names
from ranktune.tuner.samplers.space import UnionSpace
from ranktune.tuner.study.compatibility import canonical, description, is_wider, saved

_TRIALS = table("trials", column("trial_id"), column("study_id"))
_PARAMS = table(
    "trial_params", column("trial_id"), column("param_name"), column("param_value"), column("distribution_json")
)


def migrate_space(storage: RDBStorage, study: str, space: UnionSpace) -> int:
    """Give the finished trials of a record the distributions of a wider space, and return how many values changed.

    Optuna requires the choices of a parameter to be the same in all trials of a study, and stores a choice as its place
    among them. One transaction writes all. Raises StudyError if the space is not wider than that of the trials; then
    nothing changes.
    """
    trials = select(_TRIALS.c.trial_id).where(_TRIALS.c.study_id == storage.get_study_id_from_name(study))
    seen = select(_PARAMS.c.param_name, _PARAMS.c.distribution_json).where(_PARAMS.c.trial_id.in_(trials)).distinct()
    with storage.engine.begin() as connection:
        changes = []
        for name, text in connection.execute(seen).all():
            written = json_to_distribution(text)
            today, before = _of_today(name, written)
            now = space.distributions.get(today)
            if now is None or (before != now and not is_wider(saved(now), saved(before))):
                here = "is not searched here" if now is None else f"{description(saved(now))} here"
                raise StudyError(
                    f"study '{study}' has trials with '{name}' {description(saved(before))}, and it {here}. "
                    "Choose another name (name=), or give the space it began with."
                )
            if (today, written) != (name, now):
                changes.append((name, text, before, today, now))
        return sum(_rewrite(connection, trials, *change) for change in changes)


def _of_today(name: str, distribution: BaseDistribution) -> tuple[str, BaseDistribution]:
    """Return a parameter by the name of today, and its distribution with the choices of today."""
    choices = distribution.choices if isinstance(distribution, CategoricalDistribution) else ()
    ((today, renamed),) = current_names({name: choices}).items()
    return today, CategoricalDistribution(renamed) if choices else distribution


def _rewrite(
    connection: Connection,
    trials: Any,
    name: str,
    text: str,
    before: BaseDistribution,
    today: str,
    now: BaseDistribution,
) -> int:
    values: Json = {"param_name": today, "distribution_json": distribution_to_json(now)}
    if isinstance(before, CategoricalDistribution) and isinstance(now, CategoricalDistribution):
        places = {canonical(choice): place for place, choice in enumerate(now.choices)}
        moved = {place: places[canonical(choice)] for place, choice in enumerate(before.choices)}
        values["param_value"] = case(moved, value=_PARAMS.c.param_value)
    chosen = (_PARAMS.c.trial_id.in_(trials), _PARAMS.c.param_name == name, _PARAMS.c.distribution_json == text)
    return connection.execute(update(_PARAMS).where(*chosen).values(values)).rowcount
