"""The pictures of the explanations, drawn from simulations and by scripts of the gallery: python -m ranktune.docs.pictures.

Each is an SVG in docs/_static, light and dark. They are in the repository, so that a build need not draw them. Names of
pictures, or of scripts, draw these alone.
"""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt

FOLDER = Path(__file__).resolve().parent / "_static"
TRUE, DEVIATION, QUERIES = 0.60, 0.25, 400
"""Value of every configuration, deviation of the metric between queries, and validation queries of the simulations."""

STYLE = {
    "svg.fonttype": "none",  # text stays text: small files, and the fonts of the reader
    "svg.hashsalt": "ranktune",
    "font.family": "sans-serif",
    "font.size": 11,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}

matplotlib.use("svg")


def selection(axes: Any) -> None:
    """Draw the highest of many scores, as it stands and corrected."""
    generator = np.random.default_rng(0)
    trials = np.array([1, 2, 5, 10, 20, 50, 100])
    reported, corrected = [], []
    for n in trials:
        highest, honest = [], []
        for _ in range(100):
            values = generator.normal(TRUE, DEVIATION, (n, QUERIES))
            highest.append(values.mean(axis=1).max())
            halves = generator.permutation(QUERIES).reshape(2, -1)
            chosen = values[:, halves[0]].mean(axis=1).argmax()
            honest.append(values[chosen, halves[1]].mean())
        reported.append(np.mean(highest))
        corrected.append(np.mean(honest))
    axes.semilogx(trials, reported, "o-", label="highest score, as it stands")
    axes.semilogx(trials, corrected, "s-", label="chosen on one half, evaluated on the other")
    axes.axhline(TRUE, color="grey", linestyle=":", label="true value")
    axes.set(xlabel="trials", ylabel="NDCG@10")
    axes.legend()


def pairing(axes: Any) -> None:
    """Draw two rankings of the same queries: the interval of each mean, and that of the paired difference."""
    generator = np.random.default_rng(2)
    hardness = generator.normal(TRUE, DEVIATION, 200)
    old = hardness + generator.normal(0, 0.06, 200)
    new = hardness + 0.02 + generator.normal(0, 0.06, 200)
    for k, (name, values) in enumerate({"old": old, "new": new}.items()):
        axes[0].errorbar(k, values.mean(), 1.96 * values.std() / np.sqrt(200), fmt="o", capsize=5, color=f"C{k}")
        axes[0].text(k + 0.08, values.mean(), name, va="center")
    axes[0].set(xlim=(-0.5, 1.7), xticks=[], ylabel="NDCG@10", title="mean of each")
    difference = new - old
    axes[1].errorbar(0, difference.mean(), 1.96 * difference.std() / np.sqrt(200), fmt="o", capsize=5, color="C2")
    axes[1].axhline(0, color="grey", linestyle=":")
    axes[1].set(xlim=(-0.5, 0.5), xticks=[], title="difference, query by query")


def racing(axes: Any) -> None:
    """Draw a trial that is worse, and is stopped, and one that is better, and runs to its end."""
    generator = np.random.default_rng(4)
    seen = np.arange(40, QUERIES + 1, 40)
    for k, (gain, label) in enumerate(((0.02, "better than the incumbent"), (-0.04, "worse"))):
        difference = generator.normal(gain, 0.15, QUERIES)
        means = np.array([difference[:n].mean() for n in seen])
        errors = np.array([difference[:n].std() / np.sqrt(n) for n in seen])
        stops = means + 2.6 * errors < 0
        last = int(stops.argmax()) + 1 if stops.any() else len(seen)
        axes.errorbar(seen[:last] + 4 * k, means[:last], 2.6 * errors[:last], fmt="o-", capsize=3, label=label)
        if stops.any():
            axes.annotate("stopped", (seen[last - 1] + 4, means[last - 1]), (12, 0), textcoords="offset points")
    axes.axhline(0, color="grey", linestyle=":")
    axes.set(xlabel="validation queries evaluated", ylabel="difference to the incumbent")
    axes.legend()


def power(axes: Any) -> None:
    """Draw the probability that a paired test finds a true gain, by the number of test queries."""
    from scipy.stats import norm

    queries = np.logspace(1.3, 4, 60)
    for gain in (0.005, 0.01, 0.02, 0.04):
        axes.semilogx(queries, norm.cdf(gain * np.sqrt(queries) / 0.15 - 1.96), label=f"true gain {gain:g}")
    axes.axhline(0.8, color="grey", linestyle=":")
    axes.set(xlabel="test queries", ylabel="probability of p < 0.05", ylim=(0, 1.02))
    axes.legend()


PICTURES: dict[str, tuple[Callable[[Any], None], int]] = {
    "selection": (selection, 1),
    "pairing": (pairing, 2),
    "racing": (racing, 1),
    "power": (power, 1),
}
"""Name -> what draws it, and the number of its axes."""
SCRIPTS = {"objectives": "gallery/solvers/plot_objectives.py", "composition": "gallery/tuning/plot_composition.py"}
"""Name -> the script of the gallery, whose figures are pictures by their names."""


def draw(names: Sequence[str] = ()) -> None:
    """Draw the pictures and scripts of these names, all for none, light and dark."""
    for name in names or (*PICTURES, *SCRIPTS):
        for theme, style in (("light", "default"), ("dark", "dark_background")):
            with plt.style.context([style, STYLE]):
                if name in PICTURES:
                    drawn, columns = PICTURES[name]
                    drawn(plt.subplots(1, columns, num=name, figsize=(7, 3.6), layout="constrained")[1])
                else:
                    runpy.run_path(str(FOLDER.parent / SCRIPTS[name]))
                for number in plt.get_fignums():
                    figure = plt.figure(number)
                    figure.savefig(FOLDER / f"{figure.get_label()}-{theme}.svg", metadata={"Date": None})
                plt.close("all")


if __name__ == "__main__":
    draw(sys.argv[1:])
