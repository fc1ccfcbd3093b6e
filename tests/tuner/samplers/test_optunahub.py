"""The sampler as a package of OptunaHub's registry."""

import inspect
import re
import subprocess
import sys

import optuna
import pytest

import ranktune
from tests.support.paths import ROOT

PACKAGE = ROOT / "examples" / "optunahub" / "package" / "samplers" / "ranktune_thompson"


def test_it_has_the_layout_of_the_registry() -> None:
    assert {file.name for file in PACKAGE.iterdir() if file.is_file()} == {
        "__init__.py", "README.md", "LICENSE", "example.py", "requirements.txt",
    }  # fmt: skip
    _, head, body = (PACKAGE / "README.md").read_text().split("---\n", 2)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert set(fields) == {"author", "title", "description", "tags", "optuna_versions", "license"}
    assert [title in body for title in ("## Abstract", "## APIs", "## Installation", "## Example")] == [True] * 4
    assert (PACKAGE / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()


def test_its_page_names_the_parameters_of_the_sampler() -> None:
    (signature,) = re.findall(r"ThompsonSampler\(\*, (.*)\)`", (PACKAGE / "README.md").read_text())
    named = dict(part.split("=") for part in signature.split(", "))
    parameters = inspect.signature(ranktune.ThompsonSampler).parameters
    assert named == {name: repr(parameter.default).replace("'", '"') for name, parameter in parameters.items()}


def test_optunahub_loads_it() -> None:
    optunahub = pytest.importorskip("optunahub", reason="pip install optunahub")
    module = optunahub.load_local_module("samplers/ranktune_thompson", registry_root=str(PACKAGE.parents[1]))
    study = optuna.create_study(sampler=module.ThompsonSampler(seed=0))
    study.optimize(lambda trial: trial.suggest_float("x", -5.0, 5.0) ** 2, n_trials=3)
    assert len(study.trials) == 3 and module.ThompsonSampler is ranktune.ThompsonSampler


@pytest.mark.thorough
def test_its_example_runs() -> None:
    pytest.importorskip("optunahub", reason="pip install optunahub")
    done = subprocess.run([sys.executable, PACKAGE / "example.py"], capture_output=True, text=True, check=True)
    value, kind = re.match(r"(\S+) \{.*'kind': '(.)'\}", done.stdout).groups()  # type: ignore[union-attr]
    assert float(value) < 0.1 and kind == "b"
