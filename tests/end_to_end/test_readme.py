"""What the README shows, runs, and what it points to exists."""

import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import ranktune
from tests.support.commands import write_letor
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, flags=re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the README speaks of."""
    result = tmp_path_factory.mktemp("readme")
    generator = np.random.default_rng(0)
    for name, queries in (("train", 30), ("test", 12)):
        X = generator.random((queries * 8, 3))
        y = np.digitize(X[:, 0] - X[:, 1], [0.0, 0.5])
        write_letor(result / f"{name}.txt", X, y, [f"{name}{i // 8}" for i in range(len(X))])
    return result


@pytest.mark.parametrize("code", blocks("python"))
def test_python_runs(code: str, folder: Path) -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout


def test_commands_run_in_order(folder: Path) -> None:
    lines = [line.removeprefix("$ ") for block in blocks("console") for line in block.splitlines()]
    assert len(lines) >= 4
    for line in lines:
        command = shlex.split(line)
        assert command[0] == "ranktune"
        done = subprocess.run([sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
    assert (folder / "ranker.py").read_text()


def test_continuous_integration_runs_the_two_commands_to_the_letter() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    commands = [line for block in blocks("bash") for line in block.splitlines()]
    assert len(commands) == 2
    assert [command in script for command in commands] == [True, True]


def test_the_leaderboards_are_as_printed() -> None:
    default, elasticrank = blocks("text")
    for part in ("api-search: ndcg@10", "solver", "Use ", "Model: "):
        assert part in default
    for part in ("$ ranktune tune elasticrank.toml", "solver", "LinearBlend", "Ranker ", "Model: "):
        assert part in elasticrank


def test_the_study_file_that_it_speaks_of_is_one() -> None:
    (line,) = re.findall(r'`(preset = "\w+")`', README)
    study = ranktune.Study(**tomllib.loads(line))
    assert (study.solvers, study.acquisition, study.trials) == (("Ranker",), "thompson", 30)


def test_it_is_short_and_its_links_lead_to_files() -> None:
    """Addresses are absolute, so that they work on the page of the package index as well."""
    repository = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
    raw = repository.replace("github.com", "raw.githubusercontent.com")
    targets = dict(re.findall(r"^\[(\w+)\]: (\S+)$", README, flags=re.MULTILINE))
    used = set(re.findall(r"\]\[(\w+)\]", README))
    assert len(README.splitlines()) < 120
    assert "](" not in README
    assert used == set(targets)
    for address in targets.values():
        place = address.removeprefix(f"{repository}/blob/main/").removeprefix(f"{raw}/main/")
        assert (ROOT / place).is_file(), address
