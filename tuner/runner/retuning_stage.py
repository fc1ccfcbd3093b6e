"""The stage of a study that retunes another: the old configuration is fitted to the new data, and a model is chosen."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import partial

import numpy as np
from optuna.trial import TrialState

from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import RankTuneError, or_left_out
from ranktune.solvers.metrics.metrics import parse_metric
from ranktune.tuner.evaluation.models import kept_scores
from ranktune.tuner.policy.blends import scale, without_luck
from ranktune.tuner.retuning.continuing import continued, entry_of_continued, is_preferred
from ranktune.tuner.retuning.decision import KEEP, REFIT, REPLACE, RetuneDecision, unseen, verdict_of
from ranktune.tuner.retuning.earlier import Earlier, load_earlier
from ranktune.tuner.retuning.portfolio import DeliveredConfiguration, SolverConfiguration
from ranktune.tuner.retuning.versions import DECISION
from ranktune.tuner.runner.choice_stages import BASELINE, BLEND, ESTIMATE, SAVE
from ranktune.tuner.runner.refitting import Refits
from ranktune.tuner.runner.search_stages import SCORING
from ranktune.tuner.runner.stage import SplitState, Stage
from ranktune.tuner.samplers.first import alike
from ranktune.tuner.selection.finals import Candidate, FinalChoice, Finalist, task_of
from ranktune.tuner.splits.seals import sealing, write_sealed
from ranktune.tuner.statistics.measured import Interval
from ranktune.tuner.storage.record import number_of
from ranktune.tuner.study.abilities import can_load
from ranktune.tuner.study.declaration import Study
from ranktune.tuner.study.home import writing
from ranktune.tuner.study.problem import SplitProblem

REFITTED = "refit.json"
"""The model of the incumbent's configuration, fitted to the new data."""


def _decided(state: SplitState) -> RetuneDecision:
    earlier, session, problem = load_earlier(state.session.folder.path), state.session, state[SCORING]
    incumbent, chosen = state[BASELINE], state[SAVE].entries[0]
    assert earlier is not None and incumbent is not None, "retune wrote it, and declared the baseline"
    former = _former(state, earlier.delivered)
    anew = chosen
    contenders: dict[str, tuple[Finalist, Interval | None]] = {REPLACE: (chosen, state[ESTIMATE])}
    if former.number == chosen.candidate.number and not former.members:
        contenders = {REFIT: (chosen, None)}
    elif can_load(state.study.serve, former.parts):
        alone = FinalChoice([former], former, [former])
        refits = Refits(state.study, problem, alone, session.executor, state.deadline)
        refits.begin([former])
        found = refits.ended([former])
        if not found.entries:
            raise RankTuneError(f"the former configuration cannot be refitted: {found.unfit or found.left_out}")
        (anew,) = found.entries
        anew = replace(anew, candidate=replace(anew.candidate, vali=_values(state, former)))
        contenders |= {REFIT: (anew, None)}
    further = _continued(state, earlier, former, contenders)
    if further is not None:
        anew = further
        contenders |= {REFIT: (anew, None)}
    generator = np.random.default_rng([state.study.seed, 10])
    verdict = session.executor.call(
        verdict_of, problem, state.study.metric, incumbent, contenders, earlier.fitted, generator
    )
    _write(state, earlier, verdict, anew, None if further is None else further.candidate.solver)
    return verdict


def _continued(
    state: SplitState, earlier: Earlier, former: Candidate, contenders: Mapping[str, tuple[Finalist, Interval | None]]
) -> Finalist | None:
    """Return the incumbent that has learned on, None where validation does not prefer that."""
    study, problem, executor = state.study, state[SCORING], state.session.executor
    model = earlier.incumbent.path(state.session.folder.path.parent)
    found = continued(study, problem, former, model, executor, state.deadline)
    if found is None:
        return None
    candidate, task = found
    fresh = unseen(problem, earlier.fitted)[-len(problem.validation) :]
    if REFIT in contenders and not is_preferred(candidate, contenders[REFIT][0].candidate, fresh):
        return None
    make = partial(entry_of_continued, study, problem, candidate, task, executor)
    return or_left_out("the current model that learns on", make, None, into=state.left_out)


def _write(
    state: SplitState, earlier: Earlier, verdict: RetuneDecision, anew: Finalist, continued_by: str | None
) -> None:
    """Write the decision. What is current is moved once the version is complete, by `settle`."""
    folder, record, metric = state.session.folder.path, state.record, state.study.metric
    chosen = state[SAVE].entries[0].candidate
    ordered = next((c for c in state[BLEND].ordered if (c.solver, c.number) == (chosen.solver, chosen.number)), chosen)
    finished = [
        (trial, record.per_query(trial)[metric] if trial.state == TrialState.COMPLETE else None)
        for trial in record.trials()
    ]
    found: Json = {
        "after": earlier.after,
        "incumbent": asdict(earlier.incumbent),
        "decision": verdict.decision,
        "contenders": {name: each.as_dict() for name, each in verdict.contenders.items()},
        "means": {name: _json(mean) for name, mean in verdict.means.items()},
        "seen": verdict.seen,
        "continued_by": continued_by,
        "movement": earlier.movement(finished).as_dict(),
        "configuration": asdict(
            DeliveredConfiguration.of(ordered) if verdict.decision == REPLACE else earlier.delivered
        ),
        "delivered": {
            KEEP: {name: getattr(earlier.incumbent, name) for name in ("study", "model", "copy")},
            REFIT: {"study": folder.name, "model": REFITTED},
            REPLACE: {"study": folder.name, "model": "model.json"},
        }[verdict.decision],
    }
    with writing(folder):
        with sealing(folder / REFITTED):
            anew.model.save(folder / REFITTED)
        write_sealed(folder / DECISION, json.dumps(found, indent=1))


def _json(mean: Interval) -> list[float | None]:
    """Return a mean and the ends of its interval, None where there are none."""
    return [value if math.isfinite(value) else None for value in (mean.mean, mean.low, mean.high)]


def _former(state: SplitState, delivered: DeliveredConfiguration) -> Candidate:
    """Return the configuration of the incumbent as a candidate, with what its trials found."""
    parts = [_member(state, member) for member in delivered.parts]
    if len(parts) == 1:
        return parts[0]
    shares = {
        f"{member.solver} {k}": share for k, (member, share) in enumerate(zip(parts, delivered.shares, strict=True), 1)
    }
    return Candidate(delivered.solver, shares, float("nan"), np.empty(0), 0, members=tuple(parts))


def _member(state: SplitState, member: SolverConfiguration) -> Candidate:
    space, record = state.study.union_space(), state.record
    wanted = space.configuration(member.solver, member.params)
    for trial in record.trials() if wanted is not None else ():
        if trial.state == TrialState.COMPLETE and trial.value is not None and alike(trial.params, wanted or {}):
            values, params = record.per_query(trial)[state.study.metric], space.split(trial.params)[1]
            return Candidate(
                member.solver, params, trial.value, values, 1, number=number_of(trial), vali_weights=record.weights
            )
    return Candidate(member.solver, member.params, float("nan"), np.empty(0), 0)


def _values(state: SplitState, former: Candidate) -> Floats:
    """Return what the configuration scored by validation, (n_vali,), empty where that is not known."""
    if not former.members:
        return former.vali
    return state.session.executor.call(blended_values, state.study, state[SCORING], former)


def blended_values(study: Study, problem: SplitProblem, former: Candidate) -> Floats:
    """Return what a blend scores by the scores that the trials of its members left, empty where one left none."""
    queries, metric = problem.validation_queries, parse_metric(study.metric)
    total, lead = np.zeros(queries.n_documents), np.zeros(queries.n_queries)
    for member, share in zip(former.members, former.params.values(), strict=True):
        scores = kept_scores(task_of(study, problem, member), queries.n_documents)
        if scores is None or not len(member.vali):
            return np.empty(0)
        spread, weight = scale(scores, queries), float(str(share))
        total += weight * scores / spread if spread > 0.0 else 0.0
        lead += weight * (metric.per_query(scores.astype(np.float64), queries) - member.vali)
    return without_luck(metric.per_query(total, queries), lead, metric, queries.query_weights)


DECIDE = Stage(
    "decision",
    _decided,
    (SCORING, BLEND, SAVE, BASELINE, ESTIMATE),
    lambda state: "comparing with the model of the earlier study",
)
