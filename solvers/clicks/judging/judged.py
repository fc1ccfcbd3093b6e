"""From a click log to judgments: the models compared, the one that is chosen, and what there is to know of the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import cast

import numpy as np

from ranktune.solvers.clicks.counts import ClickCounts, Impressions
from ranktune.solvers.clicks.examination import WIDEST, Examination
from ranktune.solvers.clicks.fitted import FittedClicks
from ranktune.solvers.clicks.judging.later import ClickAgreement, LaterClicks, Scaled, agreement, losses_on
from ranktune.solvers.clicks.judging.models import MODELS
from ranktune.solvers.clicks.judgments import KNOWN, ONE_POSITION, UNKNOWN, Judgments
from ranktune.solvers.clicks.reading.account import ReadingAccount
from ranktune.solvers.clicks.reading.click_log import ClickLog
from ranktune.solvers.core.arrays import Floats, Json
from ranktune.solvers.core.errors import DataError
from ranktune.solvers.data.readers.judgments import GradeTable as Given

Say = Callable[[str], object]


@dataclass(frozen=True, eq=False)
class JudgedLog:
    """The judgments of a click log, and how far they can be trusted.

    Attributes
    ----------
    model : str
        The click model.
    judgments : Judgments
        Relevance by query and document, with intervals, weights and what is known. `save` writes them.
    examination : Examination
        By position, relative to the first one.
    later : LaterClicks or None
        The log-loss of every model on later clicks; None where it was not measured.
    agreement : Agreement or None
        Of every model with judgments of people, where they are given.
    account : Account
        What became of every line of the log.
    remarks : list of str
        What was found, what was assumed, and what is suspicious.
    """

    model: str
    judgments: Judgments
    examination: Examination
    later: LaterClicks | None
    agreement: ClickAgreement | None
    account: ReadingAccount
    remarks: list[str]

    @property
    def pairs(self) -> dict[str, int]:
        """How many pairs of query and document are known, were seen at one position only, and are unknown."""
        counts = Counter(self.judgments.status)
        return {status: counts[status] for status in (KNOWN, ONE_POSITION, UNKNOWN)}

    def as_dict(self) -> Json:
        """Return all but the judgments as plain values, NaN as None."""
        examined = self.examination
        rows = zip(
            *(values.tolist() for values in (examined.position, examined.value, examined.low, examined.high)),
            examined.known.tolist(),
            examined.status,
            strict=True,
        )
        later, agreed = self.later, self.agreement
        curve = [
            {
                "position": int(place),
                "value": float(value),
                "low": float(low),
                "high": float(high),
                "known": bool(is_known),
                "status": str(status),
            }
            for place, value, low, high, is_known, status in rows
        ]
        values: Json = {
            "model": self.model,
            "pairs": self.pairs,
            "later": None if later is None else {**asdict(later), "best": later.best, "ties": later.ties},
            "agreement": None if agreed is None else asdict(agreed),
            "examination": curve,
            "account": {
                "lines": self.account.lines,
                "used": dict(self.account.used),
                "left_out": dict(self.account.left_out),
                "other": dict(self.account.other),
            },
            "remarks": self.remarks,
        }
        return cast(Json, _plain(values))


def judged(
    log: ClickLog, model: str, propensities: Examination | None, judge_share: float, grades: Given | None, say: Say
) -> JudgedLog:
    """Return the judgments of a log by a model, which is compared with the others on the latest sessions.

    say is called with what is done next. Raises DataError where the model cannot be fitted.
    """
    say("counting impressions")
    heaviest = [1.0]
    try:
        counts = ClickCounts.of(_watched(log, heaviest))
    except DataError as error:
        raise DataError(f"{error}{log.account.most_left_out}") from None
    remarks, most = list(log.remarks), max(heaviest)

    def scaled(weights: Floats) -> Floats:
        return weights / most

    if most > 1.0:
        remarks.append(
            f"An impression weighs up to {most:g}. All weights are divided by that, so that relevance is a share of it."
        )
    later = None
    if judge_share:
        try:
            later = _on_later(log.parts(judge_share), propensities, scaled, say)
            if not log.has_times:
                remarks.append("Without times, the last sessions of the files are taken for the latest ones.")
        except DataError as error:
            remarks.append(f"Models are not compared on later clicks: {error}")
    counts = _shares(counts, scaled)
    say(f"fitting {model} to all sessions")
    chosen = MODELS[model].make(propensities).fit(counts)
    judgments, agreed = chosen.judgments(), None
    if grades is not None:
        others = _every(counts, propensities, say, but=model)[0]
        agreed = agreement({name: found.judgments() for name, found in {model: chosen, **others}.items()}, grades)
    untold = int((chosen.examination.known & ~chosen.examination.estimable).sum())
    if untold:
        remarks.append(
            f"{untold} positions are not told apart by {model}: the ends of their intervals differ by more than a "
            f"factor of {WIDEST:g}. Intervals of the judgments of what was seen there are wide too."
        )
    remarks += _on_models(model, later)
    return JudgedLog(model, judgments, chosen.examination, later, agreed, log.account, remarks)


def _watched(log: ClickLog, heaviest: list[float]) -> Iterator[Impressions]:
    """Yield the impressions of a log, and add the largest weight of each batch to a list."""
    for batch in log:
        heaviest.append(float(batch.click.max()))
        yield batch


def _shares(counts: ClickCounts, scaled: Scaled) -> ClickCounts:
    """Return counts whose clicks are shares of impressions, also where sums are rounded up."""
    return replace(counts, clicks=np.minimum(scaled(counts.clicks), counts.shown))


def _on_later(
    parts: tuple[ClickLog, ClickLog], propensities: Examination | None, scaled: Scaled, say: Say
) -> LaterClicks:
    """Return the losses of all models, fitted to the earlier sessions, on the later ones."""
    earlier, later = parts
    say("counting impressions of earlier sessions")
    fitted, unfitted = _every(_shares(ClickCounts.of(earlier), scaled), propensities, say)
    say("predicting later clicks")
    return replace(losses_on(later, fitted, scaled), unfitted=unfitted)


def _every(
    counts: ClickCounts, propensities: Examination | None, say: Say, but: str = ""
) -> tuple[dict[str, FittedClicks], dict[str, str]]:
    """Return all fitted models but one, and why others cannot be fitted."""
    fitted, unfitted = dict[str, FittedClicks](), dict[str, str]()
    for name in MODELS:
        if name == but:
            continue
        say(f"fitting {name}")
        try:
            fitted[name] = MODELS[name].make(propensities).fit(counts)
        except DataError as error:
            unfitted[name] = str(error)
    return fitted, unfitted


def _on_models(model: str, later: LaterClicks | None) -> Iterator[str]:
    """Yield what later clicks say of the choice of a model."""
    if later is None:
        return
    for name, why in later.unfitted.items():
        yield f"{name} cannot be fitted to the earlier sessions: {why}"
    if model not in later.losses:
        return
    for name in ("ctr", "coec"):
        if name in later.losses and later.losses[name].loss < later.losses[model].loss and not later.losses[model].ties:
            yield (
                f"{name} predicts later clicks better than {model}, with a log-loss of {later.losses[name].loss:.4f} "
                f"and not {later.losses[model].loss:.4f}. That need not hold for what people judge."
            )


def _plain(value: object) -> object:
    """Return a value with None for numbers that are not finite, in dicts and lists too."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
