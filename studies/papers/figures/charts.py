"""What a figure is drawn of: curves over two axes, and what the paper says about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ranktune.solvers.core.arrays import Floats, Ints
from ranktune.studies.papers.claims import ClaimVerdict, verdict_from
from ranktune.studies.papers.published import Figure

Values: TypeAlias = Sequence[float] | Floats | Ints


@dataclass(frozen=True)
class Series:
    """One system in a chart.

    x, y       the points; for bars x is the number of the category
    low, high  the band around y, () where there is none
    style      "line", "steps", "points", "line+points" or "bars"
    like       the series whose colour it has; "" for one of its own
    """

    name: str
    x: Values
    y: Values
    low: Values = ()
    high: Values = ()
    style: str = "line"
    like: str = ""


@dataclass(frozen=True)
class Chart:
    """Series over two axes; with categories the x axis has their names at 0, 1, 2, ...

    y_range  the ends of the y axis, such as the printed ones; None for those of the values
    """

    title: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    log_x: bool = False
    log_y: bool = False
    categories: tuple[str, ...] = ()
    y_range: tuple[float, float] | None = None


@dataclass
class PrintedFigure:
    """A figure of a paper as it is declared, our charts of the same, and the verdicts on its claims."""

    declared: Figure
    charts: list[Chart] = field(default_factory=list)
    claims: list[ClaimVerdict] = field(default_factory=list)

    @property
    def source(self) -> str:
        """Where it is printed."""
        return self.declared.source

    def draw(
        self,
        title: str,
        x_label: str,
        y_label: str,
        curves: Mapping[str, Sequence[Values]],
        *,
        style: str = "line+points",
        **axes: Any,
    ) -> None:
        """Add a chart of curves by name: x, y and, where there is a band, its ends; axes are fields of Chart."""
        series = []
        for name, (x, y, *band) in curves.items():
            low, high = band or ((), ())
            series.append(Series(name, x, y, low, high, style))
        self.charts.append(Chart(title, x_label, y_label, tuple(series), **axes))

    def say(self, claim: str, holds: bool | None, measured: str = "", **fields: object) -> None:
        """Add a verdict on a declared claim, whose text has these fields, by what was measured."""
        declared = self.declared.claims[claim]
        self.claims.append(verdict_from(self.source, declared.text.format(**fields), holds, measured, declared.reason))

    @property
    def verdict(self) -> ClaimVerdict:
        """Whether ours shows what the printed figure does: drawn, and all its claims hold."""
        claim, printed = f"the figure: {self.declared.caption}", f"Printed: {self.declared.printed}"
        if self.declared.missing:
            return ClaimVerdict(self.source, claim, None, self.declared.missing)
        failed = [claim.claim for claim in self.claims if claim.holds is False]
        if failed:
            return ClaimVerdict(
                self.source, claim, False, f"drawn on our data, but not: {'; '.join(failed)}. {printed}"
            )
        if self.claims and all(claim.holds is None for claim in self.claims):
            return ClaimVerdict(self.source, claim, None, "the data it speaks of were not given.")
        return ClaimVerdict(self.source, claim, True, f"drawn on our data; all that is said of it holds. {printed}")

    @property
    def verdicts(self) -> tuple[ClaimVerdict, ...]:
        """The figure's own verdict and those of its claims."""
        return (self.verdict, *self.claims)
