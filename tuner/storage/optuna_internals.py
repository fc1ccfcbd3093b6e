"""Finished trials in Optuna's tables, each written once as a part of a transaction, and what that takes from Optuna.

Optuna's own method looks up each parameter and attribute first, and cannot be a part of a transaction: it takes several
times as long, and does not show whether a trial was written whose commit went unanswered. Everything taken from Optuna
that it does not document is here:

storages._rdb.models.*Model, SCHEMA_VERSION                 its tables, to write a trial as a part of a transaction
storages._rdb/alembic                                       the upgrades of its tables
TrialModel._datetime_start_utc, _datetime_complete_utc      times as they are stored
TrialValueModel.value_to_stored_repr                        the value of a trial as it is stored
TrialIntermediateValueModel.intermediate_value_to_stored_repr    a reported value as it is stored

A test checks that they exist in the installed Optuna, and that Optuna reads what is written by them.
"""

from __future__ import annotations

import json
from pathlib import Path

import optuna
from alembic.config import Config
from alembic.runtime.environment import EnvironmentContext
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from optuna.distributions import check_distribution_compatibility, distribution_to_json, json_to_distribution
from optuna.storages._rdb import models
from optuna.trial import FrozenTrial
from sqlalchemy import Connection, Table, bindparam, insert, select, update


def _table(model: type[models.BaseModel]) -> Table:
    table = model.__table__
    assert isinstance(table, Table)
    return table


STUDIES, TRIALS, VALUES = _table(models.StudyModel), _table(models.TrialModel), _table(models.TrialValueModel)
PARAMS, USER = _table(models.TrialParamModel), _table(models.TrialUserAttributeModel)
SYSTEM, REPORTS = _table(models.TrialSystemAttributeModel), _table(models.TrialIntermediateValueModel)
ABOUT = _table(models.StudyUserAttributeModel)
VERSION, HERE = _table(models.VersionInfoModel), {"schema_version": models.SCHEMA_VERSION}


class OptunaTables:
    """The tables of Optuna, as a part of a transaction; those that are missing are created.

    `version` is the name of the tables that are there, and `versions` has those that this Optuna knows, newest first.
    """

    def __init__(self, connection: Connection) -> None:
        models.BaseModel.metadata.create_all(connection)
        self._connection = connection
        self._scripts = ScriptDirectory(str(Path(models.__file__).with_name("alembic")))
        self.versions = [script.revision for script in self._scripts.walk_revisions()]
        context = MigrationContext.configure(connection)
        if context.get_current_revision() is None:
            if connection.execute(select(VERSION)).first() is None:
                connection.execute(insert(VERSION).values(**HERE, library_version=optuna.__version__))
            context.stamp(self._scripts, "head")
        self.version = context.get_current_revision()

    def upgrade(self) -> None:
        """Bring the tables up to the newest version."""
        scripts, metadata = self._scripts, models.BaseModel.metadata
        with EnvironmentContext(Config(), scripts, fn=lambda now, _: scripts._upgrade_revs("head", now)) as environment:
            environment.configure(connection=self._connection, target_metadata=metadata, render_as_batch=True)
            environment.run_migrations()
        self._connection.execute(update(VERSION).values(**HERE, library_version=optuna.__version__))


def study_names(connection: Connection) -> list[str]:
    """Return the names of all studies. Optuna's own function reads all that it knows of each."""
    return list(connection.execute(_NAMES).scalars())


def study_attribute(connection: Connection, study: str, key: str) -> object:
    """Return a user attribute of the study of that name, None if it has none."""
    return json.loads(connection.execute(_ATTRIBUTE, {"of_study": study, "of_key": key}).scalar() or "null")


_NAMES = select(STUDIES.c.study_name)
_ATTRIBUTE = (
    select(ABOUT.c.value_json)
    .join(STUDIES, STUDIES.c.study_id == ABOUT.c.study_id)
    .where(STUDIES.c.study_name == bindparam("of_study"), ABOUT.c.key == bindparam("of_key"))
)


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


def begin_writing(connection: Connection, study_id: int) -> None:
    """Begin the transaction by locking out other writers of the study."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    else:
        connection.execute(select(STUDIES.c.study_id).where(STUDIES.c.study_id == study_id).with_for_update())


class TrialRows:
    """The trials of one study; `key` is the user attribute that holds the number of a trial."""

    def __init__(self, study_id: int, key: str) -> None:
        self._study_id = study_id
        self._last = -1
        self._ids: dict[int, int] = {}
        self._checked: dict[str, str] = {}
        # Built once: to build a statement takes longer than to execute it.
        self._new = (
            select(TRIALS.c.trial_id, USER.c.value_json)
            .join(USER, (USER.c.trial_id == TRIALS.c.trial_id) & (USER.c.key == key))
            .where(TRIALS.c.study_id == study_id, TRIALS.c.trial_id > bindparam("last"))
        )
        of_study = select(TRIALS.c.number).where(TRIALS.c.study_id == study_id)
        self._latest = of_study.order_by(TRIALS.c.trial_id.desc()).limit(1)

    def find(self, connection: Connection, number: int) -> int | None:
        """Return the id of the trial with a number, None if there is none; reads only new trials."""
        for trial_id, value in connection.execute(self._new, {"last": self._last}):
            self._ids[json.loads(value)] = trial_id
            self._last = max(self._last, trial_id)
        return self._ids.get(number)

    def write(self, connection: Connection, trial: FrozenTrial) -> None:
        """Write a finished trial. Raises ValueError if a distribution is incompatible with earlier ones."""
        self._check(connection, trial)
        values = {"study_id": self._study_id, "number": self._next(connection), "state": trial.state}
        new = connection.execute(insert(TRIALS), values | stored_times(trial)).inserted_primary_key
        assert new is not None
        trial_id = int(new[0])
        if trial.value is not None:
            connection.execute(insert(VALUES), [{"trial_id": trial_id, "objective": 0, **stored_value(trial.value)}])
        for step, reported in trial.intermediate_values.items():
            connection.execute(insert(REPORTS), [{"trial_id": trial_id, "step": step, **stored_report(reported)}])
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
            connection.execute(insert(PARAMS), rows)
        for table, attributes in ((USER, trial.user_attrs), (SYSTEM, trial.system_attrs)):
            if attributes:
                rows = [{"trial_id": trial_id, "key": k, "value_json": json.dumps(v)} for k, v in attributes.items()]
                connection.execute(insert(table), rows)

    def _next(self, connection: Connection) -> int:
        """Return Optuna's number for a new trial, which counts the trials of the study."""
        latest = connection.execute(self._latest).scalar_one_or_none()
        return 0 if latest is None else int(latest) + 1

    def _check(self, connection: Connection, trial: FrozenTrial) -> None:
        """Check the distribution of each parameter against that of its first trial, once for each distribution."""
        for name in trial.params:
            distribution = distribution_to_json(trial.distributions[name])
            if self._checked.get(name) != distribution:
                first = (
                    select(PARAMS.c.distribution_json)
                    .join(TRIALS, TRIALS.c.trial_id == PARAMS.c.trial_id)
                    .where(TRIALS.c.study_id == self._study_id, PARAMS.c.param_name == name)
                    .limit(1)
                )
                before = connection.execute(first).scalar_one_or_none()
                if before is not None:
                    check_distribution_compatibility(json_to_distribution(before), trial.distributions[name])
                self._checked[name] = distribution
