"""What the README shows, runs."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the README speaks of."""
    found = tmp_path_factory.mktemp("readme")
    generator = np.random.default_rng(0)
    for name, queries in (("train", 30), ("vali", 12), ("test", 12)):
        X = generator.random((queries * 8, 3))
        y = np.digitize(X[:, 0] - X[:, 1], [0.0, 0.5])
        rows = (
            f"{g} qid:{name}{i // 8} " + " ".join(f"{j}:{v:.5f}" for j, v in enumerate(x, 1))
            for i, (g, x) in enumerate(zip(y, X, strict=True))
        )
        (found / f"{name}.txt").write_text("\n".join(rows) + "\n")
    _write_table(found, generator)
    (declared,) = blocks("toml")
    (found / "study.toml").write_text(declared)
    return found


def _write_table(folder: Path, generator: np.random.Generator) -> None:
    """Write shop.csv, and a run with its judgments."""
    table, run, judged = ["session,day,sku,traffic,price,bm25_title,bought"], [], []
    for query in range(40):
        for document in range(6):
            price, bm25 = generator.random(2).round(4)
            bought = int(bm25 - price > 0.2)
            table.append(f"s{query},2026-01-{1 + query % 28:02},p{document},{1 + query % 3},{price},{bm25},{bought}")
            run.append(f"q{query} Q0 p{document} {document + 1} {bm25} bm25")
            judged.append(f"q{query} 0 p{document} {bought}")
    for name, lines in (("shop.csv", table), ("bm25.run", run), ("judged.qrels", judged)):
        (folder / name).write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs(code: str, folder: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_commands_run_in_order(folder: Path) -> None:
    lines = [line.removeprefix("$ ") for block in blocks("console") for line in block.splitlines()]
    assert len(lines) >= 8
    for line in [*lines, "ranktune run study.toml"]:
        command = shlex.split(line)
        assert command[0] == "ranktune"
        done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert len((folder / "scores.txt").read_text().splitlines()) == 12 * 8


def test_continuous_integration_runs_the_two_commands_to_the_letter() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    commands = [line for block in blocks("bash") for line in block.splitlines()]
    assert len(commands) == 2
    assert [command in script for command in commands] == [True, True]


def test_the_leaderboard_is_as_printed() -> None:
    shown = blocks("text")[0]
    for part in ("api-search: ndcg@10", "solver", "Chosen by validation", "Model: "):
        assert part in shown
