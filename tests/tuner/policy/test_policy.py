"""All thresholds are in one policy, and a study decides by the one that it is given."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import numpy as np

from ranktune.solvers.data.blocks import QuerySplit
from ranktune.tuner.policy.policy import POLICY
from ranktune.tuner.samplers.first import first_configurations
from ranktune.tuner.selection.rows import LeaderboardRow
from ranktune.tuner.study.declaration import Study
from tests.support.engine_samples import graded
from tests.support.paths import ROOT
from tests.support.policies import run_by

TECHNICAL = {
    "tuner/search/loop.py": "FAILURES",
    "tuner/search/search_scheduler.py": "BULK_POWER",
    "tuner/search/dispatcher.py": "POLL POLL_JOINED WORKERS_POLL OVERDUE GRACE IN_COMMON",
    "tuner/runner/search_stages.py": "ALIKE",
    "tuner/runner/final_stages.py": "FURTHER UNUSED",
    "tuner/selection/serving.py": "COPY_PASSES",
    "tuner/splits/plans.py": "LARGE_BYTES LARGE_QUERIES",
    "tuner/study/tasks.py": "ROUND_STEP",
    "tuner/runner/worker.py": "HEARTBEAT WAIT",
    "tuner/selection/conclusion.py": "WIDE",
    "tuner/selection/details.py": "MIN_COMPOSITIONS",
    "tuner/selection/results.py": "VERSION",
    "tuner/selection/rows.py": "NORMAL MARGIN",
    "tuner/selection/evidence.py": "MAX_EXAMPLES MAX_DOCUMENTS MAX_FEATURES",
    "tuner/selection/explaining.py": (
        "SPREADS CLOSELY IMPORTANCE EFFECTS MIN_QUERIES TIMED MAX_REPEATS RESAMPLES MAX_GROUPS MAX_QUERIES "
        "MAX_DOCUMENTS MAX_BACKGROUND MAX_SHOWN MAX_EFFECTS DRAWS"
    ),
    "tuner/selection/estimate.py": "HOPELESS_Z GAIN_SHARE GAIN_VARIANCE MIN_QUERIES BLOCK",
    "tuner/splits/digests.py": "NOTHING BLOCK _LAST _ODD SKETCH SAMPLE FAR",
    "tuner/splits/seals.py": "_ATTEMPTS",
    "tuner/splits/split.py": "ALIKE",
    "tuner/splits/store.py": "MAX_MAPPED",
    "tuner/one_pass/tuning.py": "FORMAT SECONDS SHARE_OF_WRITING SAMPLE_ROWS BLOCK_ROWS",
    "tuner/one_pass/result.py": "FIXED FIRST_QUERIES Z",
}
"""Numbers that choose no model: intervals of polling, tolerances, sizes of blocks, what is shown, how the estimate is
computed, units of cost, what is too large to be repeated, when a study gives up."""

SHOWN_INDIFFERENT = {"tuner/one_pass/result.py": "SHARES"}
"""Numbers that decide, of which half and twice made no difference over many tasks (docs/explanation/tasks.md)."""


def numbers_of(file: Path) -> Iterator[str]:
    """The names that a module gives numbers."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            values = [part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
                yield from (name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name))


def test_modules_that_carry_out_decisions_have_no_thresholds() -> None:
    packages = "search", "selection", "runner", "splits", "one_pass"
    files = [file for name in packages for file in (ROOT / "tuner" / name).rglob("*.py")]
    files += [ROOT / "tuner" / name for name in ("samplers/registry.py", "study/declaration.py", "study/tasks.py")]
    known = {(file.relative_to(ROOT).as_posix(), name) for file in files for name in numbers_of(file)}
    assert known == {
        (file, name) for each in (TECHNICAL, SHOWN_INDIFFERENT) for file in each for name in each[file].split()
    }


def test_every_threshold_says_what_it_is_and_they_are_few() -> None:
    values = [getattr(POLICY, field.name) for field in fields(POLICY)]
    groups = [*filter(is_dataclass, values)]
    assert sum(len(fields(group)) for group in groups) + len(values) - len(groups) <= 50
    for group in (POLICY, *groups):
        described = re.findall(
            r"^    (\w[\w, ]*?)(?: :|$)", (type(group).__doc__ or "").split("------\n")[1], re.MULTILINE
        )
        assert [name for names in described for name in names.split(", ")] == [field.name for field in fields(group)]


def delivered(folder: Path, ahead: float) -> LeaderboardRow:
    """The row of the only solver in a study whose trials must be so many standard errors ahead."""
    policy = replace(POLICY, choice=replace(POLICY.choice, ahead=ahead))
    split = QuerySplit("", graded(30, 2, noise=2.0), None, graded(9, 2))
    result = run_by(policy, folder, split, solvers=("RidgeRanker",), trials=8, sampler="random", full=True)
    return next(row for row in result.leaderboard if not row.is_blend)


def test_a_study_chooses_by_its_policy(tmp_path: Path) -> None:
    """Where no difference is enough, the first configuration is delivered; where any is, the best of the trials."""
    best, first = delivered(tmp_path / "any", 0.0), delivered(tmp_path / "none", np.inf)
    begun, *_ = first_configurations(Study(solvers=("RidgeRanker",)).union_space())
    assert {f"RidgeRanker.{name}": value for name, value in (first.params or {}).items()}.items() <= begun.items()
    assert best.vali is not None and first.vali is not None
    assert best.vali.mean > first.vali.mean
