"""The baseline on the Overview page, and paired tests between rows of studies on the Compare page."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.dashboards.figures.panels import panels_json
from ranktune.dashboards.records.study import open_study
from ranktune.dashboards.views import compare, overview
from ranktune.solvers.core.arrays import Floats
from ranktune.tuner.selection.evidence import EVIDENCE, read_evidence, write_evidence
from ranktune.tuner.selection.rows import BASELINE, Gain
from ranktune.tuner.splits.seals import write_sealed
from ranktune.tuner.statistics.comparisons import compare as compared
from ranktune.tuner.statistics.measured import Comparison
from tests.support.page_studies import append, declare, finish
from tests.support.study_samples import number, trials_of

PAIRED = Comparison(
    0.0213, 0.0101, 0.0324, p_randomisation=0.0004, p_t=0.0, p_wilcoxon=0.0, effect=0.1, wins=80, ties=20, losses=57,
    level=0.95, mean_a=0.5, mean_b=0.4787, queries=157,
)  # fmt: skip


def made(home: Path, name: str, labels: tuple[str, ...] = ("LambdaRank", "RankSVM"), **more: Any) -> Path:
    declare(home, name)
    append(home, name, trials_of(6))
    finish(home, name, labels, **more)
    return home / name


def test_the_overview_says_whether_it_is_better_than_today(tmp_path: Path) -> None:
    def said(name: str, comparison: Comparison | None) -> str:
        gain = None if comparison is None else Gain("column:today", "test", comparison)
        data = open_study(made(tmp_path, name, ("LambdaRank", "RankSVM", BASELINE), gain=gain))
        return str({row[0]: row[1] for row in overview.panels(data)[0].table.rows}["Better than today"])

    assert said("better", PAIRED) == (
        "It is better than the baseline column:today: +0.0213 (+0.0101 to +0.0324) on 157 test queries, p = 0.0004."
    )
    assert "not shown to be better" in said("unclear", replace(PAIRED, difference=-0.01, low=-0.03))
    assert "Keep the baseline" in said("worse", replace(PAIRED, difference=-0.02, low=-0.03, high=-0.01))
    assert "baseline='column:NAME'" in said("unknown", None)


def test_any_two_rows_of_studies_on_the_same_queries_are_paired(tmp_path: Path) -> None:
    studies = [open_study(made(tmp_path, name, labels)) for name, labels in (
        ("one", ("LambdaRank", "RankSVM")), ("two", ("RankSVM", "LambdaRank", BASELINE)),
    )]  # fmt: skip
    panels = {panel.key: panel for panel in compare.panels(*studies)}
    json.dumps(panels_json(list(panels.values())))
    ((_, _, difference, low, high, p, wins, ties, losses),) = panels["chosen"].table.rows
    a, b = (study.evidence[0][1].values["ndcg@10"][0] for study in studies)
    pair = compared(a, b, np.random.default_rng(0))
    results = [number(cell) for cell in (difference, low, high, p, wins, ties, losses)]
    assert results == pytest.approx(
        [pair.difference, pair.low, pair.high, pair.p_randomisation, pair.wins, pair.ties, pair.losses]
    )
    rows = panels["pairs"].table.rows
    assert len(rows) == 5 * 4 // 2
    labels = {str(cell) for row in rows for cell in row[:2]}
    assert labels == {"one: the chosen", "one: RankSVM", "two: the chosen", "two: LambdaRank", f"two: {BASELINE}"}
    values = [number(row[3]) for row in rows]
    assert values == sorted(values)
    assert all(number(row[4]) >= number(row[3]) for row in rows)


def test_studies_are_compared_by_the_weights_of_their_queries(tmp_path: Path) -> None:
    made(tmp_path, "one")
    made(tmp_path, "two", ("RankSVM", "LambdaRank"))

    def chosen(*weights: Floats | None) -> tuple[str, list[float]]:
        for name, w in zip(("one", "two"), weights, strict=True):
            file = tmp_path / name / EVIDENCE
            write_evidence(replace(read_evidence(file), weights=w), file)
        panels = {panel.key: panel for panel in compare.panels(*(open_study(tmp_path / n) for n in ("one", "two")))}
        assert bool(panels["chosen"].table.rows) is bool(panels["pairs"].table.rows)
        return panels["chosen"].note, [number(row[2]) for row in panels["chosen"].table.rows]

    ones, weights = np.ones(40), np.linspace(0.1, 9.0, 40)
    _, plain = chosen(None, None)
    assert chosen(ones, None)[1] == plain
    a, b = (read_evidence(tmp_path / name / EVIDENCE).values["ndcg@10"][0] for name in ("one", "two"))
    known = ~np.isnan(a - b)
    assert chosen(weights, weights)[1] == pytest.approx([np.average((a - b)[known], weights=weights[known])], rel=1e-4)
    note, rows = chosen(weights, None)
    assert not rows and "other weights in one study than in another" in note


def test_studies_on_other_queries_are_not_paired(tmp_path: Path) -> None:
    first = open_study(made(tmp_path, "one"))
    declare(tmp_path, "running")
    for other in (open_study(tmp_path / "running"), open_study(_on_other_data(tmp_path))):
        panels = {panel.key: panel for panel in compare.panels(first, other)}
        assert not panels["chosen"].table.rows and not panels["pairs"].table.rows
        assert "finished" in panels["chosen"].note or "not evaluated on the same queries" in panels["chosen"].note


def _on_other_data(home: Path) -> Path:
    folder = made(home, "elsewhere")
    declared = json.loads((folder / "study.json").read_text())
    declared["study"]["data"], declared["data"] = "other.txt", {"": "another"}
    write_sealed(folder / "study.json", json.dumps(declared))
    return folder
