"""The pictures of the pages, drawn from simulations and by scripts of the gallery: python -m ranktune.docs.pictures.

Each is an SVG in docs/_static, light and dark. They are in the repository, so that a build need not draw them. Names of
pictures, or of scripts, draw these alone.
"""

from __future__ import annotations

import runpy
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import pyplot as plt

from ranktune import Queries, parse_metric

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


def losses(axes: Any) -> None:
    """Draw the loss of a pair by the difference of its scores."""
    z = np.linspace(-2, 3, 200)
    axes.plot(z, np.maximum(0, 1 - z) ** 2, label="RankSVM: squared hinge")
    axes.plot(z, np.maximum(0, 1 - z), "--", label="one pair at a time: hinge")
    axes.plot(z, np.log1p(np.exp(-z)), "-.", label="LambdaMART: logistic, without weights")
    axes.plot(z, z < 0, ":", color="grey", label="a pair in the wrong order")
    axes.set(xlabel="score of the better document less that of the worse", ylabel="loss", ylim=(-0.1, 5))
    axes.legend()


def places(axes: Any) -> None:
    """Draw what the only relevant document counts by its rank, and the gain of a grade."""
    ranks = np.arange(1, 16)
    one = Queries.from_arrays(np.ones((15, 1)), np.eye(15)[0], qid=np.zeros(15))
    for name, style in (("ndcg@10", "o-"), ("mrr", "s-"), ("p@10", "^-"), ("recall@10", "d-")):
        metric = parse_metric(name)
        values = [metric.mean(np.where(np.arange(15) == 0, 0.5 - rank, -np.arange(15.0)), one) for rank in ranks]
        axes[0].plot(ranks, values, style, markersize=4, label=name)
    axes[0].set(xlabel="rank of the only relevant document", ylabel="metric")
    axes[0].legend()
    grades = np.arange(5)
    axes[1].plot(grades, 2.0**grades - 1, "o-", label="gain=exp2")
    axes[1].plot(grades, grades, "s-", label="gain=linear")
    axes[1].set(xlabel="grade", ylabel="gain", xticks=grades)
    axes[1].legend()


def examination(axes: Any) -> None:
    """Draw clicks by position where good documents are shown first, as they are and divided by examination."""
    generator = np.random.default_rng(3)
    position, shown = np.arange(1, 11), 4000
    examined, relevant = position**-0.9, np.linspace(0.6, 0.35, 10)
    clicks = generator.binomial(shown, examined * relevant) / shown
    error = 1.96 * np.sqrt(clicks * (1 - clicks) / shown)
    axes.plot(position, examined, "d:", color="grey", label="examination")
    axes.errorbar(position, clicks, error, fmt="o-", capsize=3, label="clicks an impression")
    axes.errorbar(position, clicks / examined, error / examined, fmt="s-", capsize=3, label="clicks by examination")
    axes.plot(position, relevant, "--", color="C2", label="true attractiveness")
    axes.set(xlabel="position", ylabel="probability", ylim=(0, 1.05), xticks=position)
    axes.legend()


def plans(axes: Any) -> None:
    """Draw which queries train, validate and test, for a validation part, for folds and by time."""
    train, vali, test = ("#7f7f7f", ""), ("C0", "//"), ("C1", "xx")
    rows = {"a validation part": [(0.64, train), (0.16, vali), (0.2, test)]}
    for k in range(5):
        fold = [(0.16, vali if j == k else train) for j in range(5)]
        rows[f"fold {k + 1} of 5"] = [*fold, (0.2, test)]
    rows["by time, the latest last"] = rows["a validation part"]
    for y, parts in enumerate(rows.values()):
        left = 0.0
        for width, (colour, hatch) in parts:
            axes.barh(y, width, left=left, color=colour, hatch=hatch, edgecolor="white", height=0.7)
            left += width
    for (colour, hatch), name in zip((train, vali, test), ("train", "validate, to choose", "test"), strict=True):
        axes.barh(0, 0, color=colour, hatch=hatch, edgecolor="white", label=name)
    axes.set(yticks=range(len(rows)), yticklabels=list(rows), xlabel="share of the queries")
    axes.invert_yaxis()
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=3)


def gain(axes: Any) -> None:
    """Draw differences to the baseline, query by query, and means of resampled queries with their interval."""
    generator = np.random.default_rng(5)
    difference = np.where(generator.random(60) < 0.3, 0, generator.normal(0.03, 0.12, 60))
    means = difference[generator.integers(60, size=(4000, 60))].mean(axis=1)
    ordered = np.sort(difference)[::-1]
    axes[0].bar(np.arange(60), ordered, color=np.where(ordered > 0, "C0", "C1"))
    axes[0].set(xlabel="60 test queries, sorted", ylabel="difference to the baseline")
    axes[1].hist(means, 40, color="#7f7f7f")
    for limit in np.quantile(means, (0.025, 0.975)):
        axes[1].axvline(limit, color="C0", linestyle="--")
    axes[1].axvline(0, color="C1", linestyle=":")
    axes[1].set(xlabel="mean of resampled queries", yticks=[], title="95 % interval")


def within(axes: Any) -> None:
    """Draw trials by the cost of their features, the best for each cost, and a limit."""
    generator = np.random.default_rng(6)
    cost = np.round(generator.uniform(1, 30, 60))
    value = 0.62 - 0.25 / cost**0.7 - generator.exponential(0.015, 60)
    order = np.lexsort((-value, cost))
    front = order[value[order] >= np.maximum.accumulate(value[order])]
    axes.plot(cost, value, "o", color="#7f7f7f", label="trials without a limit")
    axes.step(cost[front], value[front], "s-", where="post", color="C0", label="the best for its cost")
    axes.axvspan(8.5, 31, color="C1", alpha=0.15, label="beyond cost<=8")
    allowed = np.flatnonzero(cost <= 8)
    best = allowed[value[allowed].argmax()]
    axes.plot(cost[best], value[best], "*", color="C1", markersize=16, label="the best within it")
    axes.set(xlabel="cost of the features", ylabel="NDCG@10", xlim=(0, 31))
    axes.legend(loc="lower right")


def interleaving(axes: Any) -> None:
    """Draw the probability that an interleaving test finds a preference, by the number of searches."""
    from ranktune.tuner.interleaving import plan

    for effect, style in ((0.02, "-"), (0.04, "--"), (0.08, "-.")):
        planned = [plan(effect, ties=0.8, power=power) for power in np.arange(0.1, 1.0, 0.05)]
        axes.semilogx([each.searches for each in planned], [each.power for each in planned], style, label=f"{effect:g}")
    axes.axhline(0.8, color="grey", linestyle=":")
    axes.set(xlabel="searches", ylabel="probability of a verdict", ylim=(0, 1.02))
    axes.legend(title="true preference, 80 % ties")


PICTURES: dict[str, tuple[Callable[[Any], None], int]] = {
    "selection": (selection, 1),
    "pairing": (pairing, 2),
    "racing": (racing, 1),
    "power": (power, 1),
    "losses": (losses, 1),
    "places": (places, 2),
    "examination": (examination, 1),
    "plans": (plans, 1),
    "gain": (gain, 2),
    "within": (within, 1),
    "interleaving": (interleaving, 1),
}
"""Name -> what draws it, and the number of its axes."""
SCRIPTS = {"objectives": "gallery/solvers/plot_objectives.py", "composition": "gallery/tuning/plot_composition.py"}
"""Name -> the script of the gallery, whose figures are pictures by their names."""


def report() -> None:
    """Take the pictures of the first page of the example report, light and dark; needs Playwright and Chromium."""
    from playwright.sync_api import sync_playwright

    from ranktune.docs.live_report import write_live_report

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write_live_report(file := Path(folder, "report.html"))
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        for theme in ("light", "dark"):
            page = browser.new_page(viewport={"width": 1180, "height": 980}, color_scheme=theme)
            page.goto(file.as_uri())
            page.locator(".plot svg.main-svg").first.wait_for()
            page.screenshot(path=FOLDER / f"report-{theme}.png")


def draw(names: Sequence[str] = ()) -> None:
    """Draw the pictures and scripts of these names, all for none, light and dark; that of the report by its name."""
    for name in names or (*PICTURES, *SCRIPTS):
        if name == "report":
            report()
            continue
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
