"""Finished trials in Optuna's tables, each written once as a part of a transaction.

Optuna's own method looks up each parameter and attribute first, and cannot be a part of a transaction: it takes several
times as long, and does not show whether a trial was written whose commit went unanswered.
"""

from __future__ import annotations

import json

from optuna.distributions import check_distribution_compatibility, distribution_to_json, json_to_distribution
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial
from sqlalchemy import Connection, Table, insert, select


def _table(model: type[models.BaseModel]) -> Table:
    table = model.__table__
    assert isinstance(table, Table)
    return table


_STUDIES, _TRIALS, _VALUES = _table(models.StudyModel), _table(models.TrialModel), _table(models.TrialValueModel)
_PARAMS, _USER = _table(models.TrialParamModel), _table(models.TrialUserAttributeModel)
_SYSTEM, _REPORTS = _table(models.TrialSystemAttributeModel), _table(models.TrialIntermediateValueModel)


def begin_writing(connection: Connection, study_id: int) -> None:
    """Begin the transaction by locking out other writers of the study."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.execute(select(_STUDIES.c.study_id).where(_STUDIES.c.study_id == study_id).with_for_update())


class TrialRows:
    """The trials of one study; `key` is the user attribute that holds the number of a trial."""

    def __init__(self, study_id: int, key: str) -> None:
        self._study_id, self._key = study_id, key
        self._last = -1
        self._ids: dict[int, int] = {}
        self._checked: dict[str, str] = {}

    def find(self, connection: Connection, number: int) -> int | None:
        """Return the id of the trial with a number, None if there is none; reads only new trials."""
        query = (
            select(_TRIALS.c.trial_id, _USER.c.value_json)
            .join(_USER, (_USER.c.trial_id == _TRIALS.c.trial_id) & (_USER.c.key == self._key))
            .where(_TRIALS.c.study_id == self._study_id, _TRIALS.c.trial_id > self._last)
        )
        for trial_id, value in connection.execute(query):
            self._ids[json.loads(value)] = trial_id
            self._last = max(self._last, trial_id)
        return self._ids.get(number)

    def write(self, connection: Connection, trial: FrozenTrial) -> None:
        """Write a finished trial. Raises ValueError if a distribution is incompatible with earlier ones."""
        self._check(connection, trial)
        times = models.TrialModel(datetime_start=trial.datetime_start, datetime_complete=trial.datetime_complete)
        values = {
            "study_id": self._study_id,
            "number": self._next(connection),
            "state": trial.state,
            "datetime_start": times._datetime_start_utc,
            "datetime_complete": times._datetime_complete_utc,
        }
        new = connection.execute(insert(_TRIALS).values(values)).inserted_primary_key
        assert new is not None
        trial_id = int(new[0])
        if trial.value is not None:
            stored, kind = models.TrialValueModel.value_to_stored_repr(trial.value)
            row = {"trial_id": trial_id, "objective": 0, "value": stored, "value_type": kind}
            connection.execute(insert(_VALUES), [row])
        for step, reported in trial.intermediate_values.items():
            stored, report_kind = models.TrialIntermediateValueModel.intermediate_value_to_stored_repr(reported)
            row = {"trial_id": trial_id, "step": step, "intermediate_value": stored}
            connection.execute(insert(_REPORTS), [row | {"intermediate_value_type": report_kind}])
        if trial.params:
            rows = [
                {
                    "trial_id": trial_id,
                    "param_name": name,
                    "param_value": trial.distributions[name].to_internal_repr(value),
                    "distribution_json": self._checked[name],
                }
                for name, value in trial.params.items()
            ]
            connection.execute(insert(_PARAMS), rows)
        for table, attributes in ((_USER, trial.user_attrs), (_SYSTEM, trial.system_attrs)):
            if attributes:
                rows = [{"trial_id": trial_id, "key": k, "value_json": json.dumps(v)} for k, v in attributes.items()]
                connection.execute(insert(table), rows)

    def _next(self, connection: Connection) -> int:
        """Return Optuna's number for a new trial, which counts the trials of the study."""
        last = select(_TRIALS.c.number).where(_TRIALS.c.study_id == self._study_id).order_by(_TRIALS.c.trial_id.desc())
        found = connection.execute(last.limit(1)).scalar_one_or_none()
        return 0 if found is None else int(found) + 1

    def _check(self, connection: Connection, trial: FrozenTrial) -> None:
        """Check the distribution of each parameter against the first one, once for each distribution."""
        for name in trial.params:
            own = distribution_to_json(trial.distributions[name])
            if self._checked.get(name) != own:
                first = (
                    select(_PARAMS.c.distribution_json)
                    .join(_TRIALS, _TRIALS.c.trial_id == _PARAMS.c.trial_id)
                    .where(_TRIALS.c.study_id == self._study_id, _PARAMS.c.param_name == name)
                    .limit(1)
                )
                before = connection.execute(first).scalar_one_or_none()
                if before is not None:
                    check_distribution_compatibility(json_to_distribution(before), trial.distributions[name])
                self._checked[name] = own
