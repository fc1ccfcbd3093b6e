"""Leases: which worker runs which trial. A trial whose worker is lost is tried once more, and never a third time.

A lease is a row beside the study, from the start of its trial until the outcome is in the record. Its states:

waiting    for a worker that joined, or a process of the owner
leased     a worker has it, under a token that changes with each lease
delivered  a worker that joined has delivered the outcome
lost       its worker was lost for the second time
closed     the trial is in the record; the row stays for a worker that delivers twice, which gets the same answer twice

Each change is one transaction, and a repeated one changes nothing more.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    String,
    Table,
    Update,
    UpdateBase,
    and_,
    bindparam,
    case,
    cast,
    delete,
    select,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite

from ranktune.solvers.core.arrays import Floats, python_value
from ranktune.solvers.core.space import Value
from ranktune.solvers.names import current_names
from ranktune.tuner.evaluation.serialization import pack, unpack
from ranktune.tuner.evaluation.task import TaskOutcome
from ranktune.tuner.policy.policy import POLICY, Race
from ranktune.tuner.storage.database import INCUMBENTS, LEASES, RACES
from ranktune.tuner.storage.membership import Membership, Watch
from ranktune.tuner.storage.waking import Waking, notify

WAITING, LEASED, DELIVERED, LOST, CLOSED = "waiting", "leased", "delivered", "lost", "closed"


@dataclass(frozen=True)
class Offer:
    """A trial that a worker may run: params by flat name, limit in seconds.

    `incumbent` is what the trial is raced against, and `race` when it is stopped, as in a Task, and `path` whether its
    path is evaluated although that is expensive.
    """

    number: int
    params: Mapping[str, Value]
    limit: float | None = None
    incumbent: Floats | None = field(default=None, compare=False, repr=False)
    race: Race = field(default=POLICY.race, compare=False, repr=False)
    path: bool = field(default=False, compare=False, repr=False)


@dataclass(frozen=True, kw_only=True)
class Lease(Offer):
    """The lease of a trial, in attempt 1 or 2. Only `claim` reads what it is raced against.

    `worker` has it, or had it when it was lost; `joined` is whether that is a worker that joined.
    """

    attempt: int
    token: str
    worker: str
    state: str = LEASED
    joined: bool = False


TAKEN = ("state", "token", "worker", "joined")
"""The columns of a lease that change when a worker gets it."""


class Leases(Membership):
    """The leases of a study, with its owner and its workers. All methods wait while the database is away."""

    @cached_property
    def _watch(self) -> Watch:
        return Watch(self.period, self._clock)

    def _insert(self, table: Table) -> sqlite.Insert | postgresql.Insert:
        return sqlite.insert(table) if self.engine.dialect.name == "sqlite" else postgresql.insert(table)

    # the owner's side

    @cached_property
    def _give(self) -> UpdateBase:
        """The statement that leases a new trial, or one that waits; repeated, it finds the lease that it gave."""
        new = self._insert(LEASES)
        return new.on_conflict_do_update(
            index_elements=[LEASES.c.study, LEASES.c.number],
            set_={name: new.excluded[name] for name in TAKEN} | {"beat": LEASES.c.beat + 1},
            where=(LEASES.c.state == WAITING) | (LEASES.c.token == new.excluded.token),
        ).returning(*LEASES.c)

    def give(self, offer: Offer, worker: str) -> Lease | None:
        """Lease a new or waiting trial, in its attempt, to a process of the owner; None if another worker has it.

        What it is raced against is kept for a worker that takes the trial once it is put back.
        """
        row = self._row(offer) | {"state": LEASED, "token": secrets.token_hex(16), "worker": worker}

        def work(connection: Connection) -> Lease | None:
            leased = connection.execute(self._give, row).one_or_none()
            if leased is None:
                return None
            if leased.beat:  # a new lease has no race yet
                _remove_race(connection, self.study, offer.number)
            self._write_race(connection, offer)
            return _lease(leased)

        return self._run(work)

    def offer(self, *offers: Offer) -> None:
        """Let any worker that joined take these trials; nothing happens to those that have a lease already."""

        def work(connection: Connection) -> None:
            for offer in offers:
                if connection.execute(self._offer, self._row(offer)).one_or_none() is not None:
                    self._write_race(connection, offer)
            notify(connection, self.study)

        if offers:
            self._run(work)

    @cached_property
    def _offer(self) -> UpdateBase:
        return self._insert(LEASES).on_conflict_do_nothing().returning(LEASES.c.number)

    def _row(self, offer: Offer) -> dict[str, object]:
        """Return the row of a trial that waits."""
        row: dict[str, object] = {"study": self.study, "number": offer.number, "state": WAITING, "attempt": 1}
        row |= {"token": "", "worker": "", "joined": False, "beat": 0}
        return row | {"trial_limit": offer.limit, "params": _json(offer.params)}

    def withdraw(self, numbers: Collection[int]) -> set[int]:
        """Remove those of some trials that no worker has taken yet in their first attempt, and return their numbers."""
        waiting = and_(LEASES.c.state == WAITING, LEASES.c.attempt == 1, LEASES.c.number.in_(numbers))
        removing = delete(LEASES).where(LEASES.c.study == self.study, waiting).returning(LEASES.c.number)

        def work(connection: Connection) -> set[int]:
            removed = set(connection.execute(removing).scalars())
            for number in removed:
                _remove_race(connection, self.study, number)
            return removed

        return self._run(work)

    def set_race(self, offer: Offer) -> None:
        """Set what a waiting trial is raced against, and when it is stopped."""

        def work(connection: Connection) -> None:
            _remove_race(connection, self.study, offer.number)
            self._write_race(connection, offer)

        self._run(work)

    def _write_race(self, connection: Connection, offer: Offer) -> None:
        of_trial = {"study": self.study, "number": offer.number}
        if offer.incumbent is not None:
            scores = np.asarray(offer.incumbent, dtype="<f8").tobytes()
            connection.execute(self._insert(INCUMBENTS).values(**of_trial, scores=scores))
        if offer.race != POLICY.race or offer.path:
            thresholds = json.dumps(asdict(offer.race) | {"path": offer.path})
            connection.execute(self._insert(RACES).values(**of_trial, thresholds=thresholds))

    def rows(self) -> list[Lease]:
        """Return the leases in any state but closed, by number."""
        return [_lease(row) for row in self._run(lambda c: self._rows(c, LEASES.c.state != CLOSED))]

    def reissue(self, number: int, token: str) -> Lease | None:
        """Let a trial whose worker was lost wait for its second attempt, with the same parameters.

        Returns None if that was the second attempt, so that the caller records the failure, or if the token is stale.
        """
        lease = self._run(lambda c: self._again(c, number, token))
        return lease if lease is not None and lease.state == WAITING else None

    def expired(self) -> list[tuple[Lease, bool]]:
        """Return the trials whose workers that joined are lost, and whether each waits for its second attempt.

        If not, that was the second attempt: the caller records the failure, and gets the trial again until then. Call
        it at least three times a period; a worker without a heartbeat for a period of the steady clock is lost.
        """

        def work(connection: Connection) -> list[tuple[Lease, bool]]:
            both = and_(LEASES.c.state == LEASED, LEASES.c.joined)
            rows = self._rows(connection, both | (LEASES.c.state == LOST))
            trials = [(_lease(row), False) for row in rows if row.state == LOST]
            leased = {row.token: row for row in rows if row.state == LEASED}
            self._watch.keep_only(set(leased))
            for token, row in leased.items():
                if self._watch.gone(token, row.beat):
                    lost = self._again(connection, row.number, token, row.beat)
                    if lost is not None:
                        trials.append((replace(lost, worker=row.worker), lost.state == WAITING))
            return trials

        return self._run(work)

    def collect(self) -> list[tuple[Lease, TaskOutcome]]:
        """Return what workers that joined have delivered and is not closed, by number."""
        rows = self._run(lambda c: self._rows(c, LEASES.c.state == DELIVERED))
        return [(_lease(row), unpack(row.outcome)) for row in rows]

    def close(self, number: int) -> None:
        """Close the lease of a trial that is in the record."""
        self._run(lambda c: close_lease(c, self.study, number))

    def settle(self, numbers: Collection[int]) -> None:
        """Remove the leases of trials that are in the record, and the closed ones."""

        def work(connection: Connection) -> None:
            for row in self._rows(connection, LEASES.c.state != CLOSED):
                if row.number in numbers:
                    close_lease(connection, self.study, row.number)
            connection.execute(delete(LEASES).where(LEASES.c.study == self.study, LEASES.c.state == CLOSED))

        self._run(work)

    # the side of a worker that joined

    def claim(self, worker: str, count: int = 1, *, joined: bool = True) -> list[Lease]:
        """Lease the first waiting trials, so many at most. No two workers get the same; `joined` as in a Lease."""
        values = {"of_study": self.study, "count": count, "by": worker, "by_joined": joined, "of": secrets.token_hex(8)}
        tries = 0

        def work(connection: Connection) -> list[Lease]:
            nonlocal tries
            tries += 1
            # The answer to the commit of the first try may have been lost.
            rows: Sequence[Row[Any]] = connection.execute(_CLAIMED, values).all() if tries > 1 else []
            if not rows and connection.execute(self._claim, values).rowcount:
                rows = connection.execute(_CLAIMED, values).all()
            return [_raced(row) for row in rows]

        return self._run(work)

    @cached_property
    def _claim(self) -> Update:
        waits = and_(LEASES.c.study == bindparam("of_study"), LEASES.c.state == WAITING)
        first = select(LEASES.c.number).where(waits).order_by(LEASES.c.number).limit(bindparam("count"))
        if self.engine.dialect.name != "sqlite":
            first = first.with_for_update(skip_locked=True)
        token = bindparam("of", type_=String) + cast(LEASES.c.number, String)
        taken = dict(zip(TAKEN, (LEASED, token, bindparam("by"), bindparam("by_joined")), strict=True))
        which = select(first.cte("first").c.number)  # a CTE is evaluated once
        return update(LEASES).where(waits, LEASES.c.number.in_(which)).values(**taken, beat=LEASES.c.beat + 1)

    def wait(self, waking: Waking, seconds: float) -> None:
        """Wait until a trial may have been offered, or `waking` is called, for so many seconds at most."""
        self._retried(lambda: waking.wait(seconds, self.engine, self.study))

    def renew(self, tokens: Collection[str]) -> set[str]:
        """Record a heartbeat of trials and return the tokens that are still valid; stop the other trials."""
        if not tokens:
            return set()
        renewing = self._held(tokens).values(beat=LEASES.c.beat + 1).returning(LEASES.c.token)
        return self._run(lambda c: set(c.execute(renewing).scalars()))

    def give_back(self, tokens: Collection[str]) -> None:
        """Let trials that their worker will not finish wait again, in the same attempt."""
        free = self._held(tokens).values(state=WAITING, token="", worker="", joined=False)
        self._run(lambda c: c.execute(free))

    def deliver(self, number: int, token: str, outcome: TaskOutcome) -> bool:
        """Deliver an outcome; return True also the second time, False if another worker has the trial by now."""
        given = {"of_study": self.study, "of_number": number, "held": token}
        values = given | {"what": pack(outcome)}
        return self._run(lambda c: bool(c.execute(_DELIVER, values).rowcount or c.execute(_REPEATED, given).all()))

    # common

    def _held(self, tokens: Collection[str]) -> Update:
        """Return an update of the leases that workers have under these tokens."""
        return update(LEASES).where(LEASES.c.study == self.study, LEASES.c.state == LEASED, LEASES.c.token.in_(tokens))

    def _rows(self, connection: Connection, which: ColumnElement[bool]) -> Sequence[Row[Any]]:
        rows = select(LEASES).where(LEASES.c.study == self.study, which).order_by(LEASES.c.number)
        return connection.execute(rows).all()

    def _again(self, connection: Connection, number: int, token: str, beat: int | None = None) -> Lease | None:
        """End an attempt in one statement: the first is followed by another, the second by none. None: a stale token.

        The token stays, so that a repeated call finds what it did if the answer to its commit was lost.
        """
        same = and_(_of_trial(LEASES, self.study, number), LEASES.c.token == token)
        leased = and_(same, LEASES.c.state == LEASED, *([] if beat is None else [LEASES.c.beat == beat]))
        values = {"state": case((LEASES.c.attempt == 1, WAITING), else_=LOST), "attempt": 2}
        ended = update(LEASES).where(leased).values(**values, beat=LEASES.c.beat + 1, joined=False)
        row = connection.execute(ended.returning(*LEASES.c)).one_or_none()
        if row is None and beat is None:
            row = connection.execute(select(LEASES).where(same, LEASES.c.state.in_((WAITING, LOST)))).one_or_none()
        return None if row is None else _lease(row)


def close_lease(connection: Connection, study: str, number: int) -> None:
    """Close the lease of a trial, within a transaction that may write the trial into the record."""
    trial = {"of_study": study, "of_number": number}
    if not connection.execute(_CLOSE, trial).rowcount:
        connection.execute(_DROP, trial)
    _remove_race(connection, study, number)


def _remove_race(connection: Connection, study: str, number: int) -> None:
    for remove in _REMOVE_RACE:
        connection.execute(remove, {"of_study": study, "of_number": number})


def _of_trial(table: Table, study: object, number: object) -> ColumnElement[bool]:
    return and_(table.c.study == study, table.c.number == number)


def _of_given(table: Table) -> ColumnElement[bool]:
    return _of_trial(table, bindparam("of_study"), bindparam("of_number"))


_DELIVERED = and_(_of_given(LEASES), LEASES.c.state == DELIVERED)
_CLOSE = update(LEASES).where(_DELIVERED).values(state=CLOSED, outcome=None, params="{}")
_DROP = delete(LEASES).where(_of_given(LEASES), LEASES.c.state != CLOSED)
_SAME = and_(_of_given(LEASES), LEASES.c.token == bindparam("held"))
_DELIVER = update(LEASES).where(_SAME, LEASES.c.state == LEASED).values(state=DELIVERED, outcome=bindparam("what"))
_REPEATED = select(LEASES.c.number).where(_SAME, LEASES.c.state.in_((DELIVERED, CLOSED)))
_CLAIMED: Select[Any] = (
    select(*LEASES.c, INCUMBENTS.c.scores, RACES.c.thresholds)
    .outerjoin(INCUMBENTS, and_(INCUMBENTS.c.study == LEASES.c.study, INCUMBENTS.c.number == LEASES.c.number))
    .outerjoin(RACES, and_(RACES.c.study == LEASES.c.study, RACES.c.number == LEASES.c.number))
    .where(LEASES.c.study == bindparam("of_study"), LEASES.c.state == LEASED)
    .where(LEASES.c.token == bindparam("of", type_=String) + cast(LEASES.c.number, String))
    .order_by(LEASES.c.number)
)
_REMOVE_RACE = [delete(table).where(_of_given(table)) for table in (INCUMBENTS, RACES)]
"""The statements of the end of each trial: to build one takes longer than to execute it."""


def _lease(row: Row[Any]) -> Lease:
    params, whose = current_names(json.loads(row.params)), {"worker": row.worker, "joined": bool(row.joined)}
    limits = {"limit": row.trial_limit, "attempt": row.attempt, "token": row.token, "state": row.state}
    return Lease(row.number, params, **limits, **whose)


def _raced(row: Row[Any]) -> Lease:
    """Return a lease with what it is raced against."""
    incumbent = None if row.scores is None else np.frombuffer(row.scores, dtype="<f8").astype(np.float64)
    about = json.loads(row.thresholds or "{}")
    return replace(_lease(row), path=about.pop("path", False), incumbent=incumbent, race=Race(**about))


def _json(params: Mapping[str, Value]) -> str:
    """Return parameters as JSON, which keeps every float to the last bit."""
    return json.dumps({name: python_value(value) for name, value in params.items()})
