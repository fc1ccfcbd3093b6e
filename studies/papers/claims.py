"""What a paper says in words, and whether our figures agree, with the reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.studies.papers.published import MEAN_RANK, Claim

Figures = Mapping[tuple[str, str, str], float | None]
"""Ours by data set, system and measure; None where a system could not run."""
ByPart: TypeAlias = Mapping[tuple[str, str, str], Floats]
"""The same figures by fold, or by random order, (n_parts,)."""
Contrary: TypeAlias = bool | Floats
"""Whether the opposite of a claim is certain, or differences by query, fold or run that are below 0 against it."""

SIGNIFICANT = 0.05


class Finding(StrEnum):
    """What our figures say of a claim.

    refuted: it is significantly the other way. not shown: it does not hold here, but the given data cannot tell.
    cannot be checked: its data were not published or not given, or a system did not run.
    """

    CONFIRMED = "confirmed"
    REFUTED = "refuted"
    NOT_SHOWN = "not shown"
    UNCHECKED = "cannot be checked"


@dataclass(frozen=True)
class ClaimVerdict:
    """A printed figure or a claim, with what was found.

    source  where it is printed: "Figure 2", "Table 5", "section 4.5"
    reason  what was measured, and why it is not confirmed
    """

    source: str
    claim: str
    finding: Finding
    reason: str


@dataclass(frozen=True)
class _Case:
    """The difference in favour of a claim on a data set; by_part holds it by fold or order, empty where unknown."""

    dataset: str
    lower: str
    measure: str
    difference: float
    by_part: Floats


def below_zero(differences: Floats, level: float = SIGNIFICANT) -> bool:
    """Return whether the mean of differences is below 0, by a one-sided t-test; False for fewer than two."""
    from scipy.stats import ttest_1samp  # takes a third of a second to import

    finite = differences[np.isfinite(differences)]
    if len(finite) < 2:
        return False
    if np.ptp(finite) == 0.0:
        return bool(finite[0] < 0.0)
    return bool(ttest_1samp(finite, 0.0, alternative="less").pvalue < level)


def verdict_from(
    source: str, claim: str, holds: bool | None, measured: str, why: str = "", contrary: Contrary = False
) -> ClaimVerdict:
    """Return a verdict by what was measured, holds is None where nothing was; why explains what is not confirmed."""
    if holds:
        return ClaimVerdict(source, claim, Finding.CONFIRMED, measured)
    finding = Finding.UNCHECKED if holds is None else Finding.NOT_SHOWN
    if below_zero(contrary) if isinstance(contrary, np.ndarray) else contrary:
        finding = Finding.REFUTED
    return ClaimVerdict(source, claim, finding, " ".join(filter(None, (measured, why))))


def verdict_on(source: str, claim: Claim, ours: Figures, datasets: Sequence[str], by_part: ByPart) -> ClaimVerdict:
    """Return the verdict on a claim about the systems of a table, by our figures on datasets.

    It is refuted where it fails even if every case holds that is not significantly the other way, at a level that is
    divided by the number of cases.
    """
    if not claim.measures:
        return _unchecked(source, claim, claim.reason)
    allowed = (*datasets, MEAN_RANK)
    names = [name for name in allowed if name == claim.dataset] if claim.dataset else list(datasets)
    if not names:
        return _unchecked(source, claim, f"{claim.dataset} was not given.")
    if not claim.higher:
        return _no_winner(source, claim, ours, names)
    cases = []
    for name in names:
        for measure in claim.measures:
            for lower in claim.lower:
                high, low = ours.get((name, claim.higher, measure)), ours.get((name, lower, measure))
                if high is None or low is None:
                    return _unchecked(source, claim, f"{claim.higher} or {lower} could not run on {name}.")
                gain = low - high if name == MEAN_RANK else high - low
                parts = _difference(by_part, (name, claim.higher, measure), (name, lower, measure))
                cases.append(_Case(name, lower, measure, gain, parts))
    needed = claim.share * len(cases)
    held = sum(case.difference >= claim.by for case in cases)
    against = sum(below_zero(case.by_part - claim.by, SIGNIFICANT / len(cases)) for case in cases)
    measured = _counted(claim, cases, held)
    if held < needed:
        measured += f" Significantly the other way: {against}."
    return verdict_from(source, claim.text, held >= needed, measured, claim.reason, len(cases) - against < needed)


def _unchecked(source: str, claim: Claim, reason: str) -> ClaimVerdict:
    return ClaimVerdict(source, claim.text, Finding.UNCHECKED, reason)


def _difference(by_part: ByPart, first: tuple[str, str, str], second: tuple[str, str, str]) -> Floats:
    """Return the differences of two systems by part, none where their parts are not the same."""
    a, b = by_part.get(first, np.zeros(0)), by_part.get(second, np.zeros(0))
    return a - b if len(a) == len(b) else np.zeros(0)


def _no_winner(source: str, claim: Claim, ours: Figures, names: Sequence[str]) -> ClaimVerdict:
    """Return whether no system of claim.lower is best everywhere; one that is may not be on other data."""
    best = []
    for name in names:
        for measure in claim.measures:
            values = {system: ours.get((name, system, measure)) for system in claim.lower}
            figures = {system: value for system, value in values.items() if value is not None}
            if figures:
                best.append((f"{name}, {measure}", max(figures, key=lambda system: figures[system])))
    if not best:
        return _unchecked(source, claim, "None of the systems could run.")
    shown = "; ".join(f"{case}: {system}" for case, system in best)
    return verdict_from(source, claim.text, len({system for _, system in best}) > 1, f"Best: {shown}.")


def _counted(claim: Claim, cases: Sequence[_Case], held: int) -> str:
    """Return how many cases hold, and the worst."""
    worst = min(cases, key=lambda case: case.difference)
    wanted = "ahead"
    if claim.by:
        wanted = f"at most {-claim.by:g} behind" if claim.by < 0.0 else f"ahead by at least {claim.by:g}"
    return (
        f"{claim.higher} is {wanted} in {held} of {len(cases)} cases; the least is {worst.difference:+.4g} "
        f"({worst.dataset}, {worst.measure}, {worst.lower})."
    )


def counted(verdicts: Sequence[ClaimVerdict]) -> str:
    """Return how many verdicts there are of each finding."""
    counts = Counter(verdict.finding for verdict in verdicts)
    shown = ", ".join(f"{counts[finding]} {finding}" for finding in Finding if counts[finding])
    return f"{len(verdicts)} printed figures and claims: {shown}."
