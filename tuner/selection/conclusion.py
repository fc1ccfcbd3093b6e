"""What a finished study says: what to use, what to expect, what it gains, what to do next; and the details.

The terminal, notebooks, reports, pages and JSON show the same sentences. Absence of evidence is no advice: a model is
as good as another where the interval of their difference, by all queries that both scored, ends above -MARGIN.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from ranktune.solvers.core.errors import listed
from ranktune.solvers.metrics.presets import is_of_clicks
from ranktune.tuner.selection.preferences import of_log
from ranktune.tuner.selection.results import (
    ALIKE,
    BETTER,
    BLEND,
    CHOSEN,
    DISTILLED,
    LINEAR_BLEND,
    TREE_BLEND,
    Gain,
    Result,
    Row,
)
from ranktune.tuner.statistics.measured import Interval

MARGIN = 0.01
"""A model is as good as another that is better by less, in units of the metric."""
WIDE = 0.02
"""Half the width of an interval above which more judged queries are suggested, and the width that they would give."""
NORMAL = 1.96
PARTS = ("loss", "pair_weight", "penalty", "optimizer")
"""The parameters of Ranker that name its parts."""


@dataclass(frozen=True)
class Conclusion:
    """The conclusion of a study in sentences.

    Attributes
    ----------
    use : str
        What to use.
    expect : str
        What to expect of it on new queries.
    gain : str
        What it gains over the ranking of today, or how to find out.
    next : tuple of str
        What to do next, the most important first.
    details : tuple of str
        Why it was chosen, the other models, what failed, and how the study ended.
    """

    use: str
    expect: str
    gain: str
    next: tuple[str, ...]
    details: tuple[str, ...]

    @property
    def lines(self) -> list[str]:
        """All but the details."""
        return [self.use, self.expect, self.gain, *self.next]


def conclude(result: Result) -> Conclusion:
    """Return the conclusion of a result."""
    return Conclusion(
        " ".join(_use(result)), " ".join(_expect(result)), _gained(result), tuple(_next(result)),
        tuple(line for line in _details(result) if line),
    )  # fmt: skip


def chosen_name(result: Result) -> str:
    """Return the solver of the chosen model; over folds, how often each was chosen."""
    if not result.folds:
        return result.best.solver
    solvers = Counter(fold.best.solver for fold in result.folds)
    return ", ".join(f"{name} on {n}" for name, n in solvers.most_common()) + f" of {len(result.folds)} folds"


def rivals(result: Result) -> list[Row]:
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


def combined(*evidence: Interval | None) -> Interval | None:
    """Return the mean of intervals of independent queries, weighted by precision; None without any that has a width."""
    known = [each for each in evidence if each is not None and each.high > each.low]
    if not known:
        return None
    weights = [(2 * NORMAL / (each.high - each.low)) ** 2 for each in known]
    mean = sum(weight * each.mean for weight, each in zip(weights, known, strict=True)) / sum(weights)
    half = NORMAL / math.sqrt(sum(weights))
    return Interval(mean, mean - half, mean + half)


def is_as_good(row: Row, margin: float = MARGIN) -> bool:
    """Return whether a row is shown to be as good as the chosen one: not worse by margin or more."""
    difference = combined(row.difference, row.validated)
    return row.verdict != "worse" and difference is not None and difference.low > -margin


def alternatives(rows: Sequence[Row]) -> dict[str, str]:
    """Return the smallest row that is shown to be as good as the chosen one, and the knee, by name."""
    from ranktune.tuner.statistics.pareto import Option, knee  # it loads NumPy

    models = [row for row in rows if row.solver != CHOSEN and row.is_served and not row.is_baseline]
    at_knee = knee([Option(row.solver, _quality(row), nonzeros=row.nonzeros) for row in models], "nonzeros")
    named = {"knee": at_knee.label} if at_knee else {}
    smallest = smallest_as_good(rows)
    return named if smallest is None else named | {"smallest": smallest.solver}


def smallest_as_good(rows: Sequence[Row]) -> Row | None:
    """Return the smallest row that is shown to be as good as the first; None without one of half its size."""
    good = [row for row in rows[1:] if row.is_served and not row.is_baseline and is_as_good(row)]
    smaller = [row for row in good if 2.0 * row.bytes <= rows[0].bytes]
    return min(smaller, key=lambda row: (row.bytes, -_quality(row)), default=None)


def _quality(row: Row) -> float:
    known = row.again or row.vali
    return known.mean if known else math.nan


def _use(result: Result) -> Iterator[str]:
    best, tuning = result.best, result.tuning
    if tuning is not None and tuning.gain is None:
        others = result.trials - 1
        vain = (
            f"{others} further trial{'s' * (others > 1)} found nothing better" if others > 0 else "no other was tried"
        )
        yield f"Use {chosen_name(result)} with its default settings: {vain}."
    else:
        yield f"Use {chosen_name(result)}{_params(result)}."
    if best.needs_queries:
        yield "It compares the documents of a query: it scores whole queries, and no search engine can load it."
    yield f"Model: {result.model}" + (f" ({best.bytes / 1000.0:.1f} kB)." if math.isfinite(best.bytes) else ".")


def _params(result: Result) -> str:
    if result.folds or not result.best.params:
        return ""
    pairs = (f"{name}={v:.4g}" if isinstance(v, float) else f"{name}={v}" for name, v in result.best.params.items())
    return f" ({', '.join(pairs)})"


def _expect(result: Result) -> Iterator[str]:
    estimate, metric = result.estimate, result.metric
    if math.isfinite(estimate.mean):
        limits = f" ({between(estimate)})" if math.isfinite(estimate.low) else ""
        yield f"Expect {metric} of {number(estimate.mean)} on new queries{limits}, by validation."
    else:
        yield f"What {metric} to expect on new queries is not known."
    test, limits_of_test = result.test_metrics.get(metric), result.expected_on_test
    if test is None:
        yield "There are no test queries."
    elif limits_of_test is None or (not test < limits_of_test.low and not test > limits_of_test.high):
        yield f"The test queries gave {number(test)}."
    else:
        easier = test > limits_of_test.high
        yield (
            f"The test queries gave {number(test)}, outside of {between(limits_of_test)}: they are "
            f"{'easier' if easier else 'harder'} than the rest. Plan with {number(estimate.mean if easier else test)}."
        )


def _gained(result: Result) -> str:
    if result.gain is not None:
        return gain_sentence(result.gain)
    names = " or ".join(f"--baseline column:{name}" for name in result.baselines[:2])
    how = f"such as {names}" if names else "as --baseline FILE or --baseline column:NAME"
    return f"Whether it is better than the ranking of today is not known: name that, {how}."


def gain_sentence(gain: Gain) -> str:
    """Return a gain over the baseline in a sentence."""
    measured, baseline = gain.comparison, gain.baseline
    if not math.isfinite(measured.difference):
        return f"Not comparable with the baseline {baseline}: the metric is defined on no {gain.part} query."
    where = f"on {measured.queries} test queries"
    if gain.part != "test":
        where = f"by validation on {measured.queries} queries, corrected for selection"
    ends = between(Interval(measured.difference, measured.low, measured.high), 4, "+")
    found = f"{measured.difference:+.4f} ({ends}) {where}, p = {measured.p_randomisation:.4f}"
    if measured.low > 0.0:
        return f"It is better than the baseline {baseline}: {found}."
    if measured.high < 0.0:
        return f"It is worse than the baseline {baseline}: {found}. Keep the baseline."
    return f"It is not shown to be better than the baseline {baseline}: {found}."


def _next(result: Result) -> Iterator[str]:
    """Yield what is missing, and what to do next."""
    yield from left_out(result)
    if not result.is_complete:
        yield f"It is compared with no other model yet: `ranktune resume {result.study}` goes on with that."
        return
    if question := feature_alone(result):
        yield question
    small = smallest_as_good(result.leaderboard)
    if small is not None:
        difference = combined(small.difference, small.validated)
        assert difference is not None
        yield (
            f"{small.solver} is shown to be as good (difference {between(difference, 3, '+')}) and "
            f"{result.best.bytes / max(small.bytes, 1.0):.3g} times smaller: `--solver {small.solver}` tunes it alone."
        )
    yield from _too_few(result)
    formats = result.restriction.systems if result.restriction else ()
    if result.model and not result.best.needs_queries:
        form = formats[0] if len(formats) == 1 else "FORMAT"
        yield f"Export it: `ranktune export {result.model} --format {form}`."


def _too_few(result: Result) -> Iterator[str]:
    """Yield which queries are too few, and how many would do."""
    untold = [row for row in rivals(result) if row.verdict == ALIKE and not is_as_good(row)]
    if untold and 0 < result.test_queries < 100:
        count = f"{len(untold)} of the others" if len(untold) > 1 else untold[0].solver
        yield f"{result.test_queries} test queries are too few to tell it apart from {count}."
    half = (result.estimate.high - result.estimate.low) / 2
    if half > WIDE and result.queries:
        more = math.ceil(result.queries * ((half / WIDE) ** 2 - 1.0))
        rounded = round(more, 2 - len(str(more)))
        yield f"About {max(rounded, 1):,} more judged queries would tell {result.metric} to within {WIDE:g}."


def _details(result: Result) -> Iterator[str]:
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
    yield f"{_trials(result)} in {_duration(result.seconds)}."
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
    above = _higher(best, others, _quality)
    if above:
        row = above[0]
        column = "vali" if best.again is None else "again"
        numbers = f"{number(_quality(row), 4)} against {number(_quality(best), 4)}"
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
        "before the ranking? If it is not, leave it out of the data (--drop, of a table)."
    )


def _vali(row: Row) -> float:
    return math.nan if row.vali is None else row.vali.mean


def _test(row: Row) -> float:
    return math.nan if row.test is None else row.test.mean


def _higher(best: Row, others: Sequence[Row], value: Callable[[Row], float]) -> list[Row]:
    """Return the rows whose number is higher as it is printed, the highest first."""
    above = [row for row in others if round(value(row) - value(best), 4) > 0.0]
    return sorted(above, key=lambda row: -value(row))


def _reason(result: Result, row: Row) -> str:
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
    if tuning.gain.high < 0.0:
        return f"{text} Tuning did not help here: on these test queries the defaults are better; {delivered}."
    return f"{text} That can be chance; {delivered}." if tuning.gain.mean < 0.0 else text


def clicks_and_judgments(result: Result) -> str:
    """Return where clicks and judgments disagree, and what the click log has; "" without one."""
    found = result.clicks
    if found is None:
        return ""
    own, beside, chosen = result.metric, found.metric, result.best.solver
    if not found.best:
        text = f"No test query has clicks and judgments, so that {own} and {beside} are not compared."
    elif found.beside is None:
        text = f"On test {beside} would choose {chosen} too."
    else:
        clear = "" if found.beside.low > 0.0 else ", which is not significant"
        text = (
            f"On test {beside} would choose {found.best}: {with_ends(found.beside)} {beside} against {chosen}{clear}, "
            f"and {with_ends(found.own)} {own}."
        )
    metric = own if is_of_clicks(own) else beside
    return f"{text} The choice followed {own}. {of_log(found.log, metric)}"


def compositions(result: Result) -> str:
    """Return what Ranker was composed of where it did best, over folds how often; "" if it did not compete."""
    splits = result.folds or (result,)
    rows = [row for split in splits for row in split.leaderboard]
    parameters = [row.params for row in rows if row.solver == "Ranker"]
    counts = Counter(" + ".join(str(each[part]) for part in PARTS if part in each) for each in parameters if each)
    if not counts:
        return ""
    often = [f"{parts} on {count}" if len(splits) > 1 else parts for parts, count in counts.most_common()]
    return f"Ranker does best composed of {', '.join(often)}{' folds' if len(splits) > 1 else ''}."


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


def _trials(result: Result) -> str:
    """Return the number of trials, and how they ended where not all were evaluated in full."""
    failed = sum(failure.number is not None for failure in result.failures)
    others = [f"{count} {how}" for count, how in ((result.stopped, "stopped early"), (failed, "failed")) if count]
    counted = f"{result.trials} trial{'' if result.trials == 1 else 's'}"
    if not others:
        return counted
    return f"{counted} ({result.trials - result.stopped - failed} evaluated in full, {', '.join(others)})"


def _duration(seconds: float) -> str:
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes = int(seconds // 60)
    return f"{minutes} min {int(seconds - 60 * minutes)} s"
