"""The candidates and the failures among the trials of a record.

It imports the database, which the workers that score and refit candidates do without.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np
from optuna.trial import FrozenTrial, TrialState

from ranktune.solvers.abilities import LINEAR
from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import AllFailed, StudyError, warn
from ranktune.solvers.core.space import Value
from ranktune.solvers.names import COMPOSED
from ranktune.solvers.registry import solver_class
from ranktune.tuner.policy.policy import POLICY, Policy
from ranktune.tuner.policy.reserve import ahead, close
from ranktune.tuner.samplers.first import alike, first_configurations, grows, is_alike
from ranktune.tuner.samplers.space import SOLVER, UnionSpace
from ranktune.tuner.selection.finals import Candidate
from ranktune.tuner.selection.rows import NORMAL, PARTS, Composition, Failure
from ranktune.tuner.statistics.intervals import paired
from ranktune.tuner.statistics.measured import Interval
from ranktune.tuner.statistics.pareto import within_limits
from ranktune.tuner.storage.attributes import ERROR, PATH, UNFINISHED
from ranktune.tuner.storage.record import number_of, repeated, seconds_of


class TrialsByQuery(Protocol):
    """The finished trials of a split with their values by query: a `Record`, or trials in memory.

    metric is what they maximise, weights, (n validation queries,), how often each query counts.
    """

    metric: str
    weights: Floats | None

    def trials(self) -> list[FrozenTrial]:
        """Return the finished trials, by their number."""

    def per_query(self, trial: FrozenTrial) -> Mapping[str, Floats]:
        """Return the values of a finished trial by metric, (n validation queries,) each."""


def best_candidates(
    record: TrialsByQuery,
    space: UnionSpace,
    limits: Mapping[str, float] | None = None,
    policy: Policy = POLICY,
) -> list[Candidate]:
    """Return the few best trials of each solver that keep the limits, best first; ties go to the earlier trial.

    The first configuration of a solver comes first, unless others are ahead of it by so many standard errors
    (`ranktune.tuner.policy.reserve`), and of the others those that a study tries first.

    Raises StudyError, with the shared cause, where no trial succeeded (AllFailed where there were some), or none keeps
    the limits.
    """
    by_solver: dict[str, list[FrozenTrial]] = {}
    trials = record.trials()
    for trial in trials:
        if trial.state == TrialState.COMPLETE:
            by_solver.setdefault(space.split(trial.params)[0], []).append(trial)
    if not by_solver:
        causes = sorted({str(trial.user_attrs.get(ERROR)) for trial in trials})
        kind = AllFailed if trials else StudyError
        raise kind(f"none of {len(trials)} trial{'s' * (len(trials) != 1)} succeeded: {'; '.join(causes[:3])}")
    tried = Counter(space.split(trial.params)[0] for trial in trials if trial.state != TrialState.FAIL)
    _warn_if_all_alike([trial for succeeded in by_solver.values() for trial in succeeded], record.metric)
    within_limits_of = {
        solver: [t for t in ts if within_limits(t.user_attrs, limits or {})] for solver, ts in by_solver.items()
    }
    by_solver = {solver: within for solver, within in within_limits_of.items() if within}
    if not by_solver:
        wanted = ", ".join(f"{cost}<={most:g}" for cost, most in (limits or {}).items())
        raise StudyError(
            f"none of {len(trials)} trial{'s' * (len(trials) != 1)} keeps within {wanted}. Allow more, or try more "
            "trials; the trade-offs of what was tried are in the report."
        )
    candidates, first = [], first_configurations(space)
    for solver, succeeded in by_solver.items():
        whole, seconds = _whole(succeeded)
        ranked = sorted(whole, key=lambda trial: (-(trial.value or 0.0), number_of(trial)))
        begun = _begun(whole, first)
        eligible = _believed(ranked, begun, record, policy)[: policy.choice.per_solver]
        if solver_class(solver).model_parts({}) == {LINEAR}:  # the average of linear models is one
            eligible += [trial for trial in _close(ranked, record, policy) if trial not in eligible]
        for place, trial in enumerate(eligible):
            assert trial.value is not None
            candidates.append(
                Candidate(
                    solver,
                    space.split(trial.params)[1],
                    trial.value,
                    record.per_query(trial)[record.metric],
                    tried[solver],
                    number=number_of(trial),
                    place=place,
                    seconds=seconds[number_of(trial)],
                    repeated=repeated(trial, solver_class(solver)),
                    path=_path_of(trial, space.split(trial.params)[1]),
                    vali_weights=record.weights,
                    is_first=trial in begun,
                )
            )
    return sorted(candidates, key=lambda candidate: (-candidate.value, candidate.number))


def _path_of(trial: FrozenTrial, parameters: Mapping[str, Value]) -> tuple[str, tuple[float, ...]]:
    """Return the parameter and the values that a trial went along; rounds of boosting need no others before them."""
    for name, points in dict[str, list[tuple[float, float]]](trial.user_attrs.get(PATH) or {}).items():
        if isinstance(parameters.get(name), float):
            return name, tuple(value for value, _ in points)
    return "", ()


def _whole(trials: Sequence[FrozenTrial]) -> tuple[list[FrozenTrial], dict[int, float]]:
    """Return the trials, and the seconds of each by its number.

    Of the trials over which one model grew the best is returned alone, with the seconds of all.
    """
    by_number, seconds = {number_of(trial): trial for trial in trials}, {number_of(t): seconds_of(t) for t in trials}
    for unfinished in (trial for trial in trials if trial.user_attrs.get(UNFINISHED)):
        group = [number for number, trial in by_number.items() if is_alike(trial.params, unfinished.params)]
        best = max(group, key=lambda number: (by_number[number].value or 0.0, number))
        seconds[best] = sum(seconds[number] for number in group)
        by_number = {number: trial for number, trial in by_number.items() if number == best or number not in group}
    return list(by_number.values()), seconds


def _begun(trials: Sequence[FrozenTrial], configurations: Sequence[Mapping[str, Value]]) -> list[FrozenTrial]:
    """Return the trial of each of the configurations that a study tries first, of those that have finished."""
    in_order = sorted(trials, key=number_of)
    begun = [next((trial for trial in in_order if alike(first, trial.params)), None) for first in configurations]
    return [trial for trial in begun if trial is not None]


def _believed(
    ranked: list[FrozenTrial], first: Sequence[FrozenTrial], record: TrialsByQuery, policy: Policy
) -> list[FrozenTrial]:
    """Return the trials that may replace the first configuration of their solver, then it, then the other first ones.

    All, in their order, where no first configuration has finished.
    """
    if not first:
        return ranked
    others = [trial for trial in ranked if trial is not first[0]]
    level, *values = (record.per_query(trial)[record.metric] for trial in (first[0], *others))
    chosen = [others[place] for place in ahead(level, values, record.weights, policy)]
    return [*chosen, first[0], *(trial for trial in first[1:] if trial not in chosen)]


def _close(ranked: list[FrozenTrial], record: TrialsByQuery, policy: Policy) -> list[FrozenTrial]:
    values = [record.per_query(trial)[record.metric] for trial in ranked]
    return [ranked[place] for place in close(values, record.weights, policy)]


def best_default(record: TrialsByQuery, space: UnionSpace, limits: Mapping[str, float]) -> Candidate | None:
    """Return the best trial within limits at a configuration that a study tries first, None without one in full."""
    first, candidates, trials = first_configurations(space), [], record.trials()
    for trial in trials:
        if trial.state != TrialState.COMPLETE or trial.value is None or not within_limits(trial.user_attrs, limits):
            continue
        asked, value = requested(trial)
        solver, params = space.split(asked)
        if any(is_alike(asked, configuration) for configuration in first):
            parts = [each for each in trials if is_alike(each.params, trial.params)] if grows(solver) else [trial]
            seconds = sum(map(seconds_of, parts))  # of a model that has grown, those of all its parts
            seconds *= repeated(trial, solver_class(solver))
            number = number_of(trial)
            candidates.append(Candidate(solver, params, value, np.empty(0), 1, number=number, seconds=seconds))
    return max(candidates, key=lambda candidate: (candidate.value, -candidate.number), default=None)


def set_aside(
    record: TrialsByQuery, space: UnionSpace, limits: Mapping[str, float], entries: Sequence[Candidate]
) -> str:
    """Return why the best trial is in no row of the leaderboard, the first of whose entries is delivered; "" if it is.

    Progress shows the value of that trial as the best if it keeps the limits. Its solver may have no row if not.
    """
    complete = [trial for trial in record.trials() if trial.state == TrialState.COMPLETE]
    best = max(complete, key=lambda trial: (trial.value or 0.0, -number_of(trial)))
    shown = [member for entry in entries for member in (entry, *entry.members)]
    solver, _ = space.split(best.params)
    keeps = within_limits(best.user_attrs, limits)
    row = next((entry for entry in shown if entry.solver == solver), None if keeps else entries[0])
    if (
        number_of(best) in {member.number for member in shown}
        or row is None
        or round((best.value or 0.0) - row.value, 4) <= 0
    ):
        return ""
    if not keeps:
        reason = "it does not keep the limits of the study"
    elif row.rescored is not None:
        reason = "on fresh folds it is not better"
    else:
        reason = "it leads by less than its standard error, which the best of many trials does by luck"
    return (
        f"The best trial, {solver} with {best.value:.4f}, was set aside for the {row.solver} that scored "
        f"{row.value:.4f}: {reason}."
    )


def best_composition(record: TrialsByQuery, limits: Mapping[str, float]) -> Composition | None:
    """Return the best composition within limits, and by how much it leads the first; None without one in full."""
    trials = [each for each in record.trials() if each.params[SOLVER] == COMPOSED and each.state != TrialState.FAIL]
    complete = [t for t in trials if t.state == TrialState.COMPLETE and within_limits(t.user_attrs, limits)]
    if not complete:
        return None
    best, first = max(complete, key=lambda each: (each.value or 0.0, -number_of(each))), min(trials, key=number_of)
    different, lead = len({_parts(each.params) for each in trials}), None
    if best is not first and first.state == TrialState.COMPLETE:
        ours, default = (record.per_query(each)[record.metric] for each in (best, first))
        mean, error = paired(ours, default, record.weights)
        lead = Interval(mean, mean - NORMAL * error, mean + NORMAL * error)
    return Composition(" + ".join(_parts(best.params)), len(trials), different, lead)


def _parts(params: Mapping[str, Value]) -> tuple[str, ...]:
    """Return what a composition consists of, by its parameters by flat name."""
    named = {name.partition("[")[0]: str(value) for name, value in params.items()}
    return tuple(named[name] for part in PARTS if (name := f"{COMPOSED}.{part}") in named)


def failures(record: TrialsByQuery, space: UnionSpace, split: str) -> list[Failure]:
    """Return the trials that failed, by their number, and why."""
    return [
        Failure(split, number_of(trial), space.split(trial.params)[0], str(trial.user_attrs.get(ERROR)))
        for trial in record.trials()
        if trial.state == TrialState.FAIL
    ]


def _warn_if_all_alike(trials: Sequence[FrozenTrial], metric: str) -> None:
    values = {trial.value for trial in trials}
    if len(values) == 1 and len(trials) > 1:
        warn(
            f"all {len(trials)} trials scored {values.pop():g} by {metric}: on these data it distinguishes none, "
            "and the choice is arbitrary. Choose by another metric (a smaller cutoff, other conventions)."
        )


def requested(trial: FrozenTrial) -> tuple[Mapping[str, Value], float]:
    """Return the parameters of a trial by flat name as they were requested, and the value at them.

    The record has the best value of a regularization path, whose last point is the requested one. The rounds of
    boosting are not requested: validation queries find them.
    """
    value = float(trial.value or 0.0)
    if grows(str(trial.params[SOLVER])):
        return trial.params, value
    for name, path in dict(trial.user_attrs.get(PATH) or {}).items():
        place, value = path[-1]
        flat = f"{trial.params[SOLVER]}.{name}"
        flat = next((name for name in trial.params if name.partition("[")[0] == flat), flat)
        return trial.params | {flat: type(trial.params[flat])(place)}, float(value)
    return trial.params, value
