"""The result of a study for notebooks: a table with the conclusion, and the figures of the pages."""

from __future__ import annotations

from dataclasses import dataclass, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.errors import ParameterError, nearest
from ranktune.tuner.selection.results import Result

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass(frozen=True)
class StudyResult(Result):
    """A Result with a table in notebooks and figures, which need Plotly.

    The attributes are those of ranktune.tuner.selection.results.Result.
    """

    def _repr_html_(self) -> str:
        from ranktune.dashboards.views.overview import leaderboard_table, sentences

        result = self.as_dict()
        table = leaderboard_table(result)
        heads = "".join(f"<th>{escape(name)}</th>" for name in table.columns)
        rows = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in table.rows)
        said = escape(_brief(sentences(result)))
        name = f"{escape(self.study)}: {escape(self.metric)}"
        return (
            f"<p><b>{name}</b><br>{said}</p><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
            f"<p>Model: <code>{escape(self.model)}</code></p>"
        )

    def plot(self, view: str, panel: str) -> Figure:
        """Return the figure of a panel of a view.

        Parameters
        ----------
        view : str
            A page, such as "overview" or "progress".
        panel : str
            A figure of the page, such as "leaderboard".

        Returns
        -------
        plotly.graph_objects.Figure

        Raises
        ------
        ParameterError
            If there is no such figure, or if plotly is not installed.
        """
        from ranktune.dashboards.records.study import open_study
        from ranktune.dashboards.views.registry import build

        panels = build(view, open_study(Path(self.folder)))
        figures = {own.key: own.figure for own in panels if own.figure is not None}
        if panel not in figures:
            raise ParameterError(f"view '{view}' has no figure '{panel}'. {nearest(panel, figures)}")
        return _figure(figures[panel] or {})

    def plot_leaderboard(self) -> Figure:
        """Return the figure of the leaderboard, with intervals."""
        return self.plot("overview", "leaderboard")

    def plot_best_so_far(self) -> Figure:
        """Return the figure of the best value so far, beside the solvers' defaults and random search."""
        return self.plot("overview", "worth")

    def plot_history(self) -> Figure:
        """Return the figure of each trial's value by solver; of several folds, the first."""
        return self.plot("progress", self._of_first("history"))

    def plot_time(self) -> Figure:
        """Return the figure of the processor time of fits by solver; of several folds, the first."""
        return self.plot("progress", self._of_first("time"))

    def plot_workers(self) -> Figure:
        """Return the figure of the workers over time; of several folds, the first."""
        return self.plot("progress", self._of_first("workers"))

    def _of_first(self, key: str) -> str:
        return f"{key}-1" if len(self.folds) > 1 else key


def shown(result: Result) -> StudyResult:
    """Return result with its table and figures."""
    return StudyResult(**{field.name: getattr(result, field.name) for field in fields(result)})


def _figure(figure: JsonView) -> Figure:
    try:
        from plotly.graph_objects import Figure
    except ImportError:
        raise ParameterError('figures need Plotly: pip install "ranktune[dashboard]".') from None
    return Figure(figure)


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f'<td style="text-align:right">{value:.5g}</td>'
    return f"<td>{'' if value is None else escape(_brief(str(value), 200))}</td>"


def _brief(text: str, longest: int = 1000) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"
