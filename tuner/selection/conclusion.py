"""What a finished study says: what to use, what to expect, what it gains, what to do next; and the details.

The terminal, notebooks, reports, pages and JSON show the same sentences. Absence of evidence is no advice: a model is
as good as another where the interval of their difference, by all queries that both scored, ends above -MARGIN.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ranktune.solvers.core.errors import spelt
from ranktune.tuner.selection.details import (
    between,
    chosen_name,
    details,
    feature_alone,
    left_out,
    number,
    rivals,
)
from ranktune.tuner.selection.rows import ALIKE, Gain, combined, is_as_good, smallest_as_good
from ranktune.tuner.statistics.measured import Interval, direction

if TYPE_CHECKING:
    from ranktune.tuner.selection.results import Result

WIDE = 0.02
"""Half the width of an interval above which more judged queries are suggested, and the width that they would give."""

_RANKINGS = ("baseline='FILE'", "baseline='column:NAME'")


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
        The file of the model, then what to do next, the most important first.
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
        tuple(line for line in details(result) if line),
    )  # fmt: skip


def _use(result: Result) -> Iterator[str]:
    best, tuning = result.best, result.tuning
    if tuning is not None and tuning.gain is None:
        others = result.trials - 1
        found = f"{others} further trial{'s' * (others > 1)} found nothing better"
        vain = found if others > 0 else "no other was tried"
        yield f"Use {chosen_name(result)} with its default settings: {vain}."
    else:
        yield f"Use {chosen_name(result)}{_params(result)}."
    if best.needs_queries:
        yield "It compares the documents of a query: it scores whole queries, and no search engine can load it."


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
    names = [f"baseline={'column:' + name!r}" for name in result.baselines[:2]]
    how = f"{'such as' if names else 'as'} {' or '.join(names or _RANKINGS)}"
    return f"Whether it is better than the ranking of today is not known: name that, {spelt(how)}."


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
    shown = direction(measured.low, measured.high, measured.p_randomisation)
    if shown > 0:
        return f"It is better than the baseline {baseline}: {found}."
    if shown < 0:
        return f"It is worse than the baseline {baseline}: {found}. Keep the baseline."
    return f"It is not shown to be better than the baseline {baseline}: {found}."


def _next(result: Result) -> Iterator[str]:
    """Yield where the model is, what is missing, and what to do next."""
    yield f"Model: {result.model}" + (f" ({result.best.bytes / 1000.0:.1f} kB)" * math.isfinite(result.best.bytes))
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
        alone = spelt(f"solvers='{small.solver}'")
        yield (
            f"{small.solver} is shown to be as good (difference {between(difference, 3, '+')}) and "
            f"{float(f'{result.best.bytes / max(small.bytes, 1.0):.3g}'):,g} times smaller: `{alone}` tunes it alone."
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
    more = math.ceil(result.queries * ((half / WIDE) ** 2 - 1.0)) if half > WIDE else 0
    if 5 * more > result.queries:
        rounded = round(more, 2 - len(str(more)))
        yield f"About {max(rounded, 1):,} more judged queries would tell {result.metric} to within {WIDE:g}."
