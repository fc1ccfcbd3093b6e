"""What a study takes over from the latest version of the study that it retunes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.space import Value
from ranktune.tuner.retuning.decision import REFIT
from ranktune.tuner.retuning.earlier import MOST, Earlier, EarlierTrial, load_earlier
from ranktune.tuner.retuning.portfolio import (
    DeliveredConfiguration,
    FittedQueryIds,
    SolverConfiguration,
    load_fitted,
    load_portfolio,
)
from ranktune.tuner.retuning.versions import Delivery, decision_of
from ranktune.tuner.samplers.first import alike, grows
from ranktune.tuner.samplers.history import PARTIAL, SECONDS, VARIANCE
from ranktune.tuner.samplers.space import UnionSpace
from ranktune.tuner.search.search_scheduler import observations
from ranktune.tuner.selection.finished_trials import requested
from ranktune.tuner.selection.results import load_result
from ranktune.tuner.selection.typed import typed
from ranktune.tuner.statistics.comparisons import Movement
from ranktune.tuner.storage.attributes import PATH
from ranktune.tuner.storage.locations import Locations, record_name
from ranktune.tuner.storage.record import Record
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import StudyFolder

MEASURED = 5
"""Configurations that are evaluated again at least, where there are as many."""
SPREAD = (0.5, 0.1)
"""Quantiles of the values at which further ones are taken: without poor ones the ranking cannot be seen to carry."""
OTHERS = 2
"""Other solvers whose best trial is repeated: what was behind on the earlier data may be ahead on the new ones."""


def earlier_of(
    home: Path, latest: StudyFolder, incumbent: Delivery, study: Study, storage: str | None = None
) -> tuple[Earlier, Study]:
    """Return what a study takes over from the latest version, and the study with what it tries first."""
    space, owner = study.union_space(), incumbent.holder(home)
    delivered, *others = _configurations(owner, space)
    others += [] if home / incumbent.study == latest.path else _configurations(latest, space)
    split = _split_of(latest)
    locations = Locations.load(latest.path, storage)
    name = record_name(latest.path.name, split)
    record = Record(latest.split(split), name, study.metric, locations.storage, locations.artifacts)
    with closing(record):
        trials, timed = record.trials(), study.timeout is not None
        complete = [trial for trial in trials if trial.state == TrialState.COMPLETE and trial.value is not None]
        first = list(_first(space, delivered, others, complete))
        observed, values = list[EarlierTrial](), dict[int, Floats]()
        for trial in trials:
            if any(trial is other for _, other in first):
                values[len(observed)] = record.per_query(trial)[study.metric]
            observed += [_observed(seen, PATH in trial.user_attrs) for seen in _usable(trial, timed)]
    tried: dict[str, list[Mapping[str, Value]]] = {}
    for params, _ in first:
        solver, of_solver = space.split(params)
        tried.setdefault(solver, []).append(of_solver)
    fitted = _fitted(owner)
    evidence = [*observed, *_before(latest)]
    earlier = Earlier(incumbent, latest.path.name, delivered, evidence[:MOST], values, fitted)
    return earlier, replace(study, first=tried)


def _fitted(holder: StudyFolder) -> FittedQueryIds:
    """Return what the model that a version holds was fitted to, with that of the model that it goes on from."""
    ids, decided, begun = load_fitted(holder.split(_split_of(holder))), decision_of(holder), load_earlier(holder.path)
    if decided is None or begun is None or decided["decision"] != REFIT or not decided.get("continued_by"):
        return ids
    return ids.with_more(begun.fitted)


def _split_of(folder: StudyFolder) -> str:
    """Return the split whose model a version delivers."""
    split = Path(load_result(folder.result).model).parent.name
    return split if split in folder.split_names() else ""


def _configurations(folder: StudyFolder, space: UnionSpace) -> list[DeliveredConfiguration]:
    """Return what a version delivers, then what else it ended with."""
    decided, portfolio = decision_of(folder), load_portfolio(folder.split(_split_of(folder)))
    found = portfolio or _of_rows(folder)
    return found if decided is None else [typed(DeliveredConfiguration, decided["configuration"]), *found]


def _of_rows(folder: StudyFolder) -> list[DeliveredConfiguration]:
    """Return the configurations of the leaderboard, the chosen one first: a study of an older release kept no more."""
    rows = load_result(folder.result).leaderboard
    plain = {
        row.solver: SolverConfiguration(row.solver, row.params)
        for row in rows
        if row.params is not None and not row.is_blend
    }
    singles = [DeliveredConfiguration(name, (member,)) for name, member in plain.items()]
    if rows[0].params is None or not rows[0].is_blend:
        return singles
    pairs = [(plain.get(name.partition(" ")[0]), share) for name, share in rows[0].params.items()]
    members = [(member, share) for member, share in pairs if member is not None]
    parts, shares = tuple(member for member, _ in members), tuple(float(share or 0.0) for _, share in members)
    return [DeliveredConfiguration(rows[0].solver, parts, shares), *singles]


def _first(
    space: UnionSpace,
    delivered: DeliveredConfiguration,
    others: Sequence[DeliveredConfiguration],
    complete: Sequence[FrozenTrial],
) -> Iterator[tuple[dict[str, Value], FrozenTrial | None]]:
    """Yield what is tried first, once each, with its trial: what is delivered, then trials spread over the values.

    The best trials of other solvers follow, and the best others where these are few. A trial is repeated with the path
    that it had, so that the same data give the same values.
    """
    seen: list[dict[str, Value]] = []
    ranked = sorted(complete, key=lambda trial: -(trial.value or 0.0))
    spread = [space.split(ranked[round((1.0 - q) * (len(ranked) - 1))].params) for q in SPREAD] if ranked else []
    parts = [(member.solver, member.params) for member in delivered.parts]
    runners = [(member.solver, member.params) for other in others for member in other.parts]
    runners += [space.split(trial.params) for trial in ranked]
    tried = {solver for solver, _ in parts}
    best = {solver: (solver, params) for solver, params in reversed(runners) if solver not in tried}
    also = [best[solver] for solver in dict.fromkeys(solver for solver, _ in runners) if solver in best][:OTHERS]
    for k, (solver, params) in enumerate([*parts, *spread, *also, *runners]):
        if k >= len(parts) + len(spread) + len(also) and len(seen) >= MEASURED:
            return
        configuration = _inside(space, solver, params)
        if configuration is None or any(alike(configuration, other) for other in seen):
            continue
        seen.append(configuration)
        trials = [trial for trial in complete if alike(trial.params, configuration)]
        trial = max(trials, key=lambda trial: (trial.params == configuration, trial.value or 0.0), default=None)
        if trial is not None and not grows(solver):
            configuration = _inside(space, *space.split(requested(trial)[0])) or configuration
        yield configuration, trial


def _inside(space: UnionSpace, solver: str, params: Mapping[str, Value]) -> dict[str, Value] | None:
    """Return a configuration by flat name, None outside of the space; validation finds rounds of boosting again."""
    if solver not in {str(each["solver"]) for each in space.defaults()}:
        return None
    rounds = grows(solver) and "rounds" in params
    values = {name: value for name, value in params.items() if not (rounds and name == "rounds") and name != "seeds"}
    return space.configuration(solver, values)


def _usable(trial: FrozenTrial, timed: bool) -> list[FrozenTrial]:
    stopped = trial.state == TrialState.PRUNED and PARTIAL in trial.user_attrs
    is_known = (trial.state == TrialState.COMPLETE or stopped) and trial.value is not None
    return observations(trial, timed=timed) if is_known else []


def _observed(trial: FrozenTrial, path: bool) -> EarlierTrial:
    value, (variance, extra, cost) = trial.value, (trial.user_attrs.get(name) for name in (VARIANCE, PARTIAL, SECONDS))
    assert value is not None
    variance, extra, cost = (
        float(each) if each is not None and math.isfinite(each) else 0.0 for each in (variance, extra, cost)
    )
    return EarlierTrial(dict(trial.params), float(value), variance, extra, cost, path)


def _before(latest: StudyFolder) -> list[EarlierTrial]:
    """Return what the latest version took over itself, as far as it had moved by then."""
    earlier, decided = load_earlier(latest.path), decision_of(latest)
    if earlier is None or decided is None or decided["movement"]["variance"] is None:
        return []
    by = Movement(decided["movement"]["shift"], decided["movement"]["variance"], np.nan, 0)
    return [replace(one, value=one.value + by.shift, extra=one.extra + by.variance) for one in earlier.observed]
