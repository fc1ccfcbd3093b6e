"""What a paper says in words, and whether our figures agree: yes, refuted or cannot be checked, with the reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from ranktune.solvers.core.arrays import Json
from ranktune.studies.papers.published import MEAN_RANK, Claim

Figures = Mapping[tuple[str, str, str], float | None]
"""Ours by data set, system and measure; None where a system could not run."""


@dataclass(frozen=True)
class ClaimVerdict:
    """A printed figure or a claim, with one of three verdicts.

    source  where it is printed: "Figure 2", "Table 5", "section 4.5"
    holds   None where it cannot be checked: its data were not published or not given, or a system did not run
    reason  what was measured, and why it is not yes
    """

    source: str
    claim: str
    holds: bool | None
    reason: str

    @property
    def word(self) -> str:
        """The verdict as it is printed."""
        return {None: "cannot be checked", True: "yes", False: "refuted"}[self.holds]

    def as_dict(self) -> Json:
        """Return the fields as JSON values."""
        return asdict(self)


@dataclass(frozen=True)
class _Case:
    dataset: str
    lower: str
    measure: str
    difference: float


def verdict_from(source: str, claim: str, holds: bool | None, measured: str, why: str = "") -> ClaimVerdict:
    """Return a verdict by what was measured; why explains what is not yes."""
    answer = None if holds is None else bool(holds)
    return ClaimVerdict(source, claim, answer, measured if holds else " ".join(filter(None, (measured, why))))


def verdict_on(source: str, claim: Claim, ours: Figures, datasets: Sequence[str]) -> ClaimVerdict:
    """Return the verdict on a claim about the systems of a table, by our figures on datasets."""
    if not claim.measures:
        return ClaimVerdict(source, claim.text, None, claim.reason)
    allowed = (*datasets, MEAN_RANK)
    names = [name for name in allowed if name == claim.dataset] if claim.dataset else list(datasets)
    if not names:
        return ClaimVerdict(source, claim.text, None, f"{claim.dataset} was not given.")
    if not claim.higher:
        return _no_winner(source, claim, ours, names)
    cases = []
    for name in names:
        for measure in claim.measures:
            for lower in claim.lower:
                high, low = ours.get((name, claim.higher, measure)), ours.get((name, lower, measure))
                if high is None or low is None:
                    return ClaimVerdict(source, claim.text, None, f"{claim.higher} or {lower} could not run on {name}.")
                cases.append(_Case(name, lower, measure, low - high if name == MEAN_RANK else high - low))
    met = [case for case in cases if case.difference >= claim.by]
    holds = len(met) >= claim.share * len(cases)
    reason = _counted(claim, cases, met)
    return verdict_from(source, claim.text, holds, reason, claim.reason)


def _no_winner(source: str, claim: Claim, ours: Figures, names: Sequence[str]) -> ClaimVerdict:
    """Return whether no system of claim.lower has the best figure everywhere."""
    best = []
    for name in names:
        for measure in claim.measures:
            values = {system: ours.get((name, system, measure)) for system in claim.lower}
            figures = {system: value for system, value in values.items() if value is not None}
            if figures:
                best.append((f"{name}, {measure}", max(figures, key=lambda system: figures[system])))
    if not best:
        return ClaimVerdict(source, claim.text, None, "None of the systems could run.")
    shown = "; ".join(f"{case}: {system}" for case, system in best)
    return ClaimVerdict(source, claim.text, len({system for _, system in best}) > 1, f"Best: {shown}.")


def _counted(claim: Claim, cases: Sequence[_Case], met: Sequence[_Case]) -> str:
    """Return how many cases hold, and the worst."""
    worst = min(cases, key=lambda case: case.difference)
    wanted = "ahead"
    if claim.by:
        wanted = f"at most {-claim.by:g} behind" if claim.by < 0.0 else f"ahead by at least {claim.by:g}"
    return (
        f"{claim.higher} is {wanted} in {len(met)} of {len(cases)} cases; the least is {worst.difference:+.4g} "
        f"({worst.dataset}, {worst.measure}, {worst.lower})."
    )


def counted(verdicts: Sequence[ClaimVerdict]) -> str:
    """Return how many verdicts are yes, refuted, and cannot be checked."""
    yes, refuted, unknown = (sum(verdict.holds is holds for verdict in verdicts) for holds in (True, False, None))
    rest = f", {unknown} cannot be checked" if unknown else ""
    return f"{len(verdicts)} printed figures and claims: {yes} yes, {refuted} refuted{rest}."
