"""Everything taken from Optuna that it does not document, in one place: its tables, and how values stand in them.

storages._rdb.models.*Model                                 its tables, to write a trial as a part of a transaction
TrialModel._datetime_start_utc, _datetime_complete_utc      times as they are stored
TrialValueModel.value_to_stored_repr                        the value of a trial as it is stored
TrialIntermediateValueModel.intermediate_value_to_stored_repr    a reported value as it is stored

A test checks that they exist in the installed Optuna, and that Optuna reads what is written by them.
"""

from __future__ import annotations

from optuna.storages._rdb import models
from optuna.trial import FrozenTrial
from sqlalchemy import Connection, Table


def _table(model: type[models.BaseModel]) -> Table:
    table = model.__table__
    assert isinstance(table, Table)
    return table


STUDIES, TRIALS, VALUES = _table(models.StudyModel), _table(models.TrialModel), _table(models.TrialValueModel)
PARAMS, USER = _table(models.TrialParamModel), _table(models.TrialUserAttributeModel)
SYSTEM, REPORTS = _table(models.TrialSystemAttributeModel), _table(models.TrialIntermediateValueModel)


def make_optuna_tables(connection: Connection) -> None:
    """Create the missing tables of Optuna, as a part of a transaction."""
    models.BaseModel.metadata.create_all(connection)


def stored_times(trial: FrozenTrial) -> dict[str, object]:
    """Return the columns of a trial's times."""
    times = models.TrialModel(datetime_start=trial.datetime_start, datetime_complete=trial.datetime_complete)
    return {"datetime_start": times._datetime_start_utc, "datetime_complete": times._datetime_complete_utc}


def stored_value(value: float) -> dict[str, object]:
    """Return the columns of a trial's value."""
    stored, kind = models.TrialValueModel.value_to_stored_repr(value)
    return {"value": stored, "value_type": kind}


def stored_report(value: float) -> dict[str, object]:
    """Return the columns of a reported value."""
    stored, kind = models.TrialIntermediateValueModel.intermediate_value_to_stored_repr(value)
    return {"intermediate_value": stored, "intermediate_value_type": kind}
