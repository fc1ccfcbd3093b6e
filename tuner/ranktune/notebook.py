"""The result of a study for notebooks: a table with the conclusion, and the figures of the pages."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, fields
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ranktune.solvers.core.arrays import JsonView
from ranktune.solvers.core.errors import ParameterError, nearest, printable
from ranktune.solvers.core.libraries import load
from ranktune.tuner.selection.results import Result
from ranktune.tuner.statistics.measured import Interval

if TYPE_CHECKING:
    import optuna
    from plotly.graph_objects import Figure
    from scipy.optimize import OptimizeResult


COLUMNS = ("solver", "vali", "again", "test [95%]", "p Holm", "features", "kB")
"""The columns of the leaderboard that a notebook shows."""
COLOUR = "#3b82f6"
"""Of pictures: it is seen on white and on black."""


@dataclass(frozen=True)
class StudyResult(Result):
    """A Result that prints as a table, with data frames, and with figures, which need Plotly.

    The attributes are those of ranktune.tuner.selection.results.Result.
    """

    def __repr__(self) -> str:
        best = f"best={self.best.solver!r}, estimate={self.estimate.mean:.4f}"
        return f"StudyResult(study={self.study!r}, metric={self.metric!r}, {best}, trials={self.trials})"

    def __str__(self) -> str:
        """Return the result table and the conclusion, as `ranktune show` prints them."""
        from ranktune.dashboards.terminal.leaderboard import report
        from ranktune.dashboards.terminal.tables import as_text

        return as_text(report(self))

    def leaderboard_frame(self) -> Any:
        """Return the leaderboard as a data frame, a row a model, the chosen first.

        Returns
        -------
        DataFrame, pyarrow.Table or dict
            Of pandas, polars or pyarrow, the first that is installed; else a dict of columns.
        """
        from ranktune.dashboards.records.trial import frame, leaderboard_columns

        return frame(leaderboard_columns(self))

    def to_frame(self) -> Any:
        """Return the leaderboard as a data frame, as leaderboard_frame does."""
        return self.leaderboard_frame()

    def trials_frame(self) -> Any:
        """Return the finished trials as a data frame, a row a trial, in their order.

        Parameters have columns by flat name, such as RankSVM.C. The value of a trial that was stopped early is an
        estimate: its state is "stopped".

        Returns
        -------
        DataFrame, pyarrow.Table or dict
            Of pandas, polars or pyarrow, the first that is installed; else a dict of columns.
        """
        from ranktune.dashboards.records.study import open_study
        from ranktune.dashboards.records.trial import frame, trial_columns

        return frame(trial_columns(open_study(Path(self.folder)).trials))

    @property
    def optuna_study(self) -> optuna.Study:
        """The record as an Optuna study, for Optuna's own tools; of a folder of folds, that of the first fold."""
        from ranktune.earlier import record
        from ranktune.tuner.study.home import StudyFolder

        folder = StudyFolder(Path(self.folder))
        return record(folder, folder.split_names()[0])

    def skopt_result(self) -> OptimizeResult:
        """Return the finished trials as a result of scikit-optimize, for `skopt.plots`; of several folds, the first.

        scikit-optimize minimises, and a metric is maximised: `fun` and `func_vals` are negative values of the metric by
        validation. `models` has one Gaussian process of scikit-optimize, fitted to all trials. The fit takes seconds
        where many solvers compete.

        Returns
        -------
        scipy.optimize.OptimizeResult
            With x, fun, x_iters, func_vals, space, models and specs.

        Raises
        ------
        ParameterError
            If scikit-optimize is not installed.

        Notes
        -----
        The space joins those of all solvers. A parameter that is inactive in a trial, such as one of another solver, is
        at the centre of its range there, or at its first choice. Failed trials are left out. The value of a trial that
        was stopped early is an estimate, never above the best value. Plots of many parameters are large: name some by
        `plot_dims`.

        Examples
        --------
        >>> import skopt.plots
        >>> skopt_result = result.skopt_result()                                           # doctest: +SKIP
        >>> skopt.plots.plot_convergence(skopt_result)                                     # doctest: +SKIP
        >>> skopt.plots.plot_objective(skopt_result, plot_dims=["RankSVM.C", "RankSVM.loss"])  # doctest: +SKIP
        """
        load("skopt")
        from ranktune.tuner.samplers.skopt import skopt_result
        from ranktune.tuner.storage.record import number_of
        from ranktune.tuner.study.home import StudyFolder

        study = StudyFolder(Path(self.folder)).study()
        finished = (trial for trial in self.optuna_study.trials if trial.state.is_finished())
        return skopt_result(study.union_space(), sorted(finished, key=number_of), study.as_dict())

    def _repr_html_(self) -> str:
        from ranktune.dashboards.terminal.leaderboard import leaderboard_table

        table = leaderboard_table(self)
        cells = {name: values for name, values in {**table.left, **table.right}.items() if name in COLUMNS}
        shown = {name: [escape(_brief(value, 200)) for value in values] for name, values in cells.items()}
        shown |= _picture(self)
        heads = "".join(f"<th>{escape(name)}</th>" for name in shown)
        rows = "".join(f"<tr><td>{'</td><td>'.join(row)}</td></tr>" for row in zip(*shown.values(), strict=True))
        text = "<br>".join(escape(_brief(line)) for line in self.conclusion.lines)
        lines = re.sub(r"`([^`<]+)`", r"<code>\1</code>", text)
        name = f"{escape(self.study)}: {escape(self.metric)}"
        return printable(
            f"<p><b>{name}</b><br>{lines}</p><table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
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
        from ranktune.dashboards.views.registry import view_json

        panels = view_json(view, open_study(Path(self.folder)))["panels"]
        figures = {panel["key"]: panel["figure"] for panel in panels if panel["figure"] is not None}
        if panel not in figures:
            raise ParameterError(f"view '{view}' has no figure '{panel}'. {nearest(panel, figures)}")
        return _figure(figures[panel])

    def plot_leaderboard(self) -> Figure:
        """Return the figure of the leaderboard, with intervals."""
        return self.plot("overview", "leaderboard")

    def plot_best_so_far(self) -> Figure:
        """Return the figure of the best value so far, beside the solvers' defaults and random search."""
        return self.plot("overview", "worth")

    def plot_history(self) -> Figure:
        """Return the figure of each trial's value by solver; of several folds, the first."""
        return self.plot("progress", "history-0")

    def plot_time(self) -> Figure:
        """Return the figure of the processor time of fits by solver; of several folds, the first."""
        return self.plot("solvers", "reached-0")

    def plot_workers(self) -> Figure:
        """Return the figure of the workers over time; of several folds, the first."""
        return self.plot("progress", "workers-0")


def shown(result: Result) -> StudyResult:
    """Return result with its table and figures."""
    return StudyResult(**{field.name: getattr(result, field.name) for field in fields(result)})


def _figure(figure: JsonView) -> Figure:
    try:
        from plotly.graph_objects import Figure
    except ImportError:
        raise ParameterError('figures need Plotly: pip install "ranktune[dashboard]".') from None
    return Figure(figure)


def _picture(result: Result) -> dict[str, list[str]]:
    """Return a column of pictures: of each row the mean with its interval, and a dotted line at that of the first."""
    part = "vali" if result.best.test is None else "test"
    scores: list[Any] = [getattr(row, part) for row in result.leaderboard]
    known = [score for score in scores if score is not None and math.isfinite(score.low + score.high)]
    if not known:
        return {}
    low, high = min(score.low for score in known), max(score.high for score in known)

    def line(first: float, last: float, style: str) -> str:
        x1, x2 = (6.0 + 288.0 * (value - low) / (high - low or 1.0) for value in (first, last))
        return f'<line x1="{x1:.1f}" x2="{x2:.1f}" {style}/>'

    def drawn(score: Interval) -> str:
        lines = (
            line(known[0].mean, known[0].mean, 'y2="20" stroke-dasharray="2 3"'),
            line(score.low, score.high, 'y1="10" y2="10" stroke-width="2"'),
            line(score.mean, score.mean, 'y1="10" y2="10" stroke-width="10" stroke-linecap="round"'),
        )
        return f'<svg width="300" height="20" stroke="{COLOUR}">{"".join(lines)}</svg>'

    return {f"{part}: {low:.3f} to {high:.3f}": [drawn(score) if score in known else "" for score in scores]}


def _brief(text: str, longest: int = 1000) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"
