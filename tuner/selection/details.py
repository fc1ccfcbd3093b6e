"""Sentences on why a model was chosen, how others compare, what failed, and how a study ended."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from ranktune.solvers.core.errors import listed, spelt
from ranktune.solvers.metrics.presets import is_of_clicks
from ranktune.tuner.selection.rows import (
    ALIKE,
    BETTER,
    BLEND,
    DISTILLED,
    LINEAR_BLEND,
    MARGIN,
    TREE_BLEND,
    LeaderboardRow,
    combined,
    is_as_good,
    of_log,
    quality,
)
from ranktune.tuner.statistics.measured import Interval, direction

if TYPE_CHECKING:
    from ranktune.tuner.selection.results import Result

MIN_COMPOSITIONS = 8
"""Of a split, below which the best says little of compositions."""


def chosen_name(result: Result) -> str:
    """Return the solver of the chosen model; over folds, how often each was chosen."""
    if not result.folds:
        return result.best.solver
    solvers = Counter(fold.best.solver for fold in result.folds)
    return ", ".join(f"{name} on {n}" for name, n in solvers.most_common()) + f" of {len(result.folds)} folds"


def rivals(result: Result) -> list[LeaderboardRow]:
    """Return the rows of the other models, the best by validation first."""
    return [row for row in result.leaderboard[1:] if not row.is_baseline]


def number(value: float, digits: int = 3) -> str:
    """Return a number without digits that say nothing; an unknown one as "-"."""
    return "-" if not math.isfinite(value) else f"{value:.{digits}f}"


def between(interval: Interval, digits: int = 3, sign: str = "") -> str:
    """Return the ends of an interval: "0.85 to 0.90"."""
    return f"{interval.low:{sign}.{digits}f} to {interval.high:{sign}.{digits}f}"


def with_ends(interval: Interval | None) -> str:
    """Return a difference with the ends of its interval."""
    if interval is None or not math.isfinite(interval.mean):
        return "an unknown amount of"
    return f"{interval.mean:+.4f} ({between(interval, 4, '+')})"


def details(result: Result) -> Iterator[str]:
    """Yield the sentences, of which those that do not apply are empty."""
    scores = ", ".join(f"{name} {number(value, 4)}" for name, value in result.test_metrics.items())
    yield chosen_because(result)
    yield higher_on_test(result)
    yield f"Test: {scores}." if scores else ""
    yield clicks_and_judgments(result)
    yield tuning_gained(result)
    yield compositions(result)
    yield served(result)
    yield compared_models(result)
    if result.failures:
        count, last = len(result.failures), result.failures[-1]
        failed = "One trial failed" if count == 1 else f"{count} trials failed, the last"
        yield f"{failed} ({last.solver}) with: {last.error}"
    yield monotone(result)
    yield f"{trials_of(result)}."
    yield result.ended_early


def compared_models(result: Result) -> str:
    """Return which models are as good, which are not told apart, and which are better on test; "" without others."""
    others, parts = rivals(result), []
    good = [row.solver for row in others if is_as_good(row)]
    untold = [row.solver for row in others if row.verdict == ALIKE and row.solver not in good]
    better = [row.solver for row in others if row.verdict == BETTER]
    if good:
        parts.append(f"Shown to be as good, within {MARGIN:g}: {', '.join(good)}.")
    if untold:
        parts.append(f"Not told apart from it, which is no proof that they are as good: {', '.join(untold)}.")
    if better:
        parts.append(f"Better on the test queries, which are not used for selection: {', '.join(better)}.")
    return " ".join(parts)


def chosen_because(result: Result) -> str:
    """Return on what evidence the first row was chosen, and not one with a higher number; "" where none is higher."""
    best, others = result.leaderboard[0], rivals(result)
    parts = []
    above = _higher(best, others, quality)
    if above:
        row = above[0]
        column = "vali" if best.again is None else "again"
        numbers = f"{number(quality(row), 4)} against {number(quality(best), 4)}"
        parts.append(f"{row.solver} has a higher {column} ({numbers}), and was not chosen: {_reason(result, row)}.")
    elif best.again is not None and (above := _higher(best, others, _vali)):
        name = above[0].solver
        parts.append(f"{name} has a higher vali, and was not chosen: again decides, on folds that no trial has seen.")
    return " ".join([*parts, *filter(None, [result.set_aside])])


def higher_on_test(result: Result) -> str:
    """Return which models have a higher test score than the chosen one; "" where none has."""
    names = [row.solver for row in _higher(result.leaderboard[0], rivals(result), _test)]
    return f"Higher on test, which takes no part in the choice: {listed(names, 3)}." if names else ""


def feature_alone(result: Result) -> str:
    """Return a question about the one feature that validates no worse than every model; "" where a model is better."""
    rows = [row for row in result.leaderboard if not row.is_baseline and row.vali is not None]
    models = [_vali(row) for row in rows if not row.feature]
    best = max((row for row in rows if row.feature), key=_vali, default=None)
    if best is None or not models or _vali(best) < max(models):
        return ""
    return (
        f"{best.feature} alone reaches {number(_vali(best), 4)} by validation, no less than every model: is it known "
        f"before the ranking? If it is not, leave it out of the data ({spelt('drop=')}, of a table)."
    )


def _vali(row: LeaderboardRow) -> float:
    return math.nan if row.vali is None else row.vali.mean


def _test(row: LeaderboardRow) -> float:
    return math.nan if row.test is None else row.test.mean


def _higher(
    best: LeaderboardRow, others: Sequence[LeaderboardRow], value: Callable[[LeaderboardRow], float]
) -> list[LeaderboardRow]:
    """Return the rows whose number is higher as it is printed, the highest first."""
    above = [row for row in others if round(value(row) - value(best), 4) > 0.0]
    return sorted(above, key=lambda row: -value(row))


def _reason(result: Result, row: LeaderboardRow) -> str:
    chosen, blends = result.leaderboard[0].solver, (BLEND, TREE_BLEND, LINEAR_BLEND)
    if result.folds:
        return "each fold chose by its own validation"
    if not row.is_served:
        return "a system that the study serves cannot load it"
    if chosen in blends:
        return f"cross-validation does not prefer it to {chosen} significantly, and a blend is the safer choice"
    if row.solver in blends:
        return f"cross-validation, with the weights made on other folds, prefers {chosen}"
    return "its final model does not keep the limits of the study"


def tuning_gained(result: Result) -> str:
    """Return what tuning gained on the test queries over the best of the solvers' defaults; "" if that is not known."""
    tuning = result.tuning
    if tuning is None:
        return ""
    if tuning.gain is None:
        return f"Gain of tuning: none, the model is the best of the solvers' defaults ({tuning.default})."
    if not math.isfinite(tuning.gain.low):
        return "Gain of tuning: not known, the metric is defined on no test query."
    over = f"over the best of the solvers' defaults ({tuning.default})"
    text = f"Gain of tuning on test: {with_ends(tuning.gain)} {over}."
    delivered = "what validation chose is delivered, because test takes no part in the choice"
    if direction(tuning.gain.low, tuning.gain.high, tuning.p_value) < 0:
        return f"{text} Tuning did not help here: on these test queries the defaults are better; {delivered}."
    return f"{text} That can be chance; {delivered}." if tuning.gain.mean < 0.0 else text


def clicks_and_judgments(result: Result) -> str:
    """Return where clicks and judgments disagree, and what the click log has; "" without one."""
    found = result.clicks
    if found is None:
        return ""
    metric_name, beside, chosen = result.metric, found.metric, result.best.solver
    if not found.best:
        text = f"No test query has clicks and judgments, so that {metric_name} and {beside} are not compared."
    elif found.beside is None:
        text = f"On test {beside} would choose {chosen} too."
    else:
        clear = "" if found.beside.low > 0.0 else ", which is not significant"
        text = (
            f"On test {beside} would choose {found.best}: {with_ends(found.beside)} {beside} against {chosen}{clear}, "
            f"and {with_ends(found.own)} {metric_name}."
        )
    metric = metric_name if is_of_clicks(metric_name) else beside
    return f"{text} The choice followed {metric_name}. {of_log(found.log, metric)}"


def compositions(result: Result) -> str:
    """Return which composition was best, over folds how often, and its lead over the first; "" of few."""
    found = [split.composition for split in result.folds or (result,) if split.composition is not None]
    tried = sum(each.tried for each in found)
    if tried < MIN_COMPOSITIONS * max(len(result.folds), 1):
        return ""
    counts = Counter(each.parts for each in found).most_common()
    best = ", ".join(f"{parts} on {count}" if result.folds else parts for parts, count in counts)
    lead = combined(*(each.lead for each in found))
    against = "" if lead is None else f": by validation {with_ends(lead)} against the first"
    different = sum(each.different for each in found)
    return (
        f"Of {tried} configurations of Ranker, in {different} compositions, {best}{' folds' if result.folds else ''} "
        f"is best{against}."
    )


def monotone(result: Result) -> str:
    """Return the monotone constraints that the chosen model satisfies; "" if there are none."""
    rising, falling = ([name for name, sign in result.monotone.items() if sign == each] for each in (1, -1))
    parts = [
        f"{word} with {listed(names)}" for word, names in (("never falls", rising), ("never rises", falling)) if names
    ]
    return f"Verified: the score {' and '.join(parts)}." if parts else ""


def served(result: Result) -> str:
    """Return how much the restriction to models that given systems load lowers the metric; "" if no system is given."""
    restriction = result.restriction
    if restriction is None:
        return ""
    systems = " and ".join(restriction.systems)
    untried = ", ".join(restriction.untried)
    rest = f" It cannot load models of {untried}: they had no trials." if untried else ""
    if not result.best.is_served:
        return f"{systems} cannot load it, nor any other model of this study.{rest}"
    if restriction.cost is None:
        return f"{systems} can load the best model of all: nothing is lost.{rest}"
    mark = " *" if any(not row.is_served for row in result.leaderboard) else ""
    cost = with_ends(restriction.cost)
    if restriction.distilled:
        how = f"{DISTILLED} is a copy of {restriction.best}{mark}, which {systems} cannot load"
        return f"{how}: {cost} {result.metric} by validation.{rest}"
    tried = "" if restriction.loss is None else f" A copy of it in one model lost {with_ends(restriction.loss)}."
    loaded = f"{systems} cannot load {restriction.best}{mark}."
    return f"{loaded} That costs {cost} {result.metric} by validation.{tried}{rest}"


def left_out(result: Result) -> list[str]:
    """Return what failed at the end of a study, each cause once with the folds that it had."""
    folds: dict[tuple[str, str], list[str]] = {}
    for missing in result.left_out:
        folds.setdefault((missing.what, missing.error), []).append(missing.split)
    places = {key: f" ({', '.join(names)})" if any(names) else "" for key, names in folds.items()}
    lines = [f"Left out: {what}{place}. {error}" for (what, error), place in places.items()]
    return [*lines, f"`ranktune show {result.study} --json` has the tracebacks."] if lines else []


def trials_of(result: Result) -> str:
    """Return the number of trials, and how they ended where not all were evaluated in full."""
    failed = sum(failure.number is not None for failure in result.failures)
    others = [f"{count} {how}" for count, how in ((result.stopped, "stopped early"), (failed, "failed")) if count]
    trials = f"{result.trials} trial{'s' * (result.trials != 1)}"
    if not others:
        return trials
    return f"{trials} ({result.trials - result.stopped - failed} evaluated in full, {', '.join(others)})"
