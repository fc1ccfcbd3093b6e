"""Solvers and a metric of the user's in whole studies: beside the built-in ones, killed, resumed, shown and loaded."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from ranktune.tuner.study.events import read_events
from tests.support.commands import write_letor
from tests.support.paths import ROOT
from tests.support.reports import unpacked_page

SCRIPT = """
import sys
from importlib.util import find_spec
import numpy as np
import ranktune
from lightgbm import LGBMRanker
from ranktune.solvers import Float, Int
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.support import custom_solvers


class Slow(custom_solvers.MeanOfQuery):
    '''It is defined in the script itself.'''

    def fit(self, X, y, qid=None):
        import time

        time.sleep(0.05)
        return super().fit(X, y, qid)


def register():
    ranktune.register_solver("Power", custom_solvers.PowerRidge)
    ranktune.register_solver("Slow", Slow)
    ranktune.register_solver(
        "Pipe", make_pipeline(StandardScaler(), Ridge()), [Float("ridge__alpha", 1e-3, 1e3, log=True)]
    )
    ranktune.register_solver(
        "Leaves", LGBMRanker(n_estimators=10, verbosity=-1, n_jobs=1), [Int("num_leaves", 3, 15)]
    )
    ranktune.register_metric("success", custom_solvers.success)
    if find_spec("torch"):
        from examples.listwise_network import ListwiseNetwork

        ranktune.register_solver("Network", ListwiseNetwork)


if __name__ == "__main__":
    home, what = sys.argv[1:]
    if what != "bare":
        register()
    if what == "tune":
        generator = np.random.default_rng(0)
        X = generator.normal(size=(800, 5))
        y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + generator.normal(size=800), [0.5, 1.5])
        extras = {"Network": "torch", "CatBoostRanker": "catboost"}
        solvers = [
            *("Power", "Slow", "Pipe", "Leaves", "RankSVM"), *(name for name, of in extras.items() if find_spec(of))
        ]
        result = ranktune.tune(
            (X, y, np.repeat(np.arange(80), 10)), solvers=solvers, metric="ndcg@5", also=["success"], trials=16, jobs=2,
            home=home, name="mine", full=True,
        )
    else:
        result = ranktune.resume("mine", home=home, jobs=2)
    model = ranktune.load_model(result.model)
    print(model.predict(np.eye(5), group=[5]).tolist())
"""


MODULE = """
from tests.support.custom_solvers import PowerRidge


class Mine(PowerRidge):
    pass


def top(grades):
    return float(grades[0])
"""


ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}


def start(folder: Path, what: str) -> subprocess.Popen[str]:
    (folder / "script.py").write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, str(folder / "script.py"), str(folder / "home"), what]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, cwd=folder
    )


def finished(folder: Path) -> int:
    """How many trials are reported in the log."""
    if not (folder / "events.jsonl").exists():
        return 0
    return sum(event["event"] == "finished" for event in read_events(folder))


@pytest.fixture(scope="module")
def resumed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The home of a study that was killed and resumed, and what the script printed."""
    folder = tmp_path_factory.mktemp("custom")
    first = start(folder, "tune")
    study = folder / "home" / "mine"
    until = time.monotonic() + 300
    while finished(study) < 6:
        assert first.poll() is None and time.monotonic() < until, first.communicate()
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.communicate()
    before = finished(study)
    assert not (study / "result.json").exists()

    bare = start(folder, "bare")
    _, said = bare.communicate(timeout=300)
    assert bare.returncode != 0
    assert "the solver 'Slow' is not registered here" in said and "register_solver" in said

    second = start(folder, "resume")
    printed, said = second.communicate(timeout=500)
    assert second.returncode == 0, said
    assert before < json.loads((study / "result.json").read_text())["trials"] == 16
    return folder / "home", printed


def test_a_study_of_custom_solvers_is_killed_and_resumed(resumed: tuple[Path, str]) -> None:
    home, printed = resumed
    study = home / "mine"
    result = json.loads((study / "result.json").read_text())
    assert result["failures"] == []
    rows = {row["solver"]: row for row in result["leaderboard"]}
    assert {"Power", "Slow", "Pipe", "Leaves", "RankSVM"} <= set(rows)
    assert 0.0 < result["test_metrics"]["success"] <= 1.0
    extras = [name for name, library in (("Network", "torch"), ("CatBoostRanker", "catboost")) if find_spec(library)]
    assert set(extras) <= set(rows)
    kinds = {name: json.loads((study / "models" / f"{name}.json").read_text())["kind"] for name in rows}
    assert [kinds[name] for name in ("Power", "Slow", "Pipe", "Leaves")] == ["custom", "custom", "linear", "trees"]
    assert [kinds[name] for name in extras] == [
        {"Network": "custom", "CatBoostRanker": "trees"}[name] for name in extras
    ]
    assert not list(study.rglob("*.pkl")) and len(json.loads(printed)) == 5


def test_pages_show_it_where_nothing_is_registered(resumed: tuple[Path, str], tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    home = str(resumed[0])
    for command in (["show"], ["show", "mine"], ["show", "mine", "--page", "mine.html"]):
        done = subprocess.run(
            [sys.executable, "-m", "ranktune", *command, "--home", home], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode == 0, done.stderr
    page = unpacked_page((resumed[0] / "mine" / "report.html").read_text())
    assert "Power.alpha" in page and "Pipe.ridge__alpha" in page


def test_the_command_line_names_them_by_their_import_path(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    X = generator.normal(size=(300, 3))
    write_letor(tmp_path / "train.txt", X, X[:, 0] > 0, np.arange(300) // 10)
    (tmp_path / "mine.py").write_text(MODULE)

    def ranktune(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from ranktune.cli import main; main()", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=ENVIRONMENT)

    options = ["--solver", "mine:Mine", "--metric", "mine:top"]
    done = ranktune("tune", "train.txt", *options, "--trials", "4", "--jobs", "1", "--home", "home", "--name", "s")
    assert done.returncode == 0, done.stderr
    done = ranktune("resume", "s", "--home", "home", "--trials", "6", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    model = "home/s/model.json"
    done = ranktune("predict", model, "train.txt")
    assert done.returncode == 2 and "--solver module:Name" in done.stderr
    done = ranktune("predict", model, "train.txt", "--solver", "mine:Mine")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 300, done.stderr
    done = ranktune("evaluate", model, "train.txt", "--solver", "mine:Mine", "--metric", "mine:top", "--json")
    assert json.loads(done.stdout)["metrics"]["top"]["mean"] > 0.9
    done = ranktune("solvers", "mine:Mine")
    assert "alpha" in done.stdout and "power" in done.stdout


@pytest.mark.skipif(find_spec("torch") is None, reason="PyTorch is not installed")
def test_the_example_of_a_network_runs_as_a_script(tmp_path: Path) -> None:
    file = ROOT / "examples" / "listwise_network.py"
    done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()[:-1]]
    values = {name: float(value) for name, value in rows}
    assert values["ListwiseNetwork"] > values["RankSVM"] + 0.03
