"""What modules bring with them: the closures of imports, and the libraries that commands load."""

import ast
from pathlib import Path

import pytest

from ranktune.solvers.data.readers.text import read_text
from ranktune.solvers.linear.pointwise import RidgeRanker
from tests.contracts.test_layout import Module, graph, modules
from tests.support.commands import letor, output_of
from tests.support.page_studies import append, declare, finish
from tests.support.study_samples import trials_of

CLOSURES: dict[Module, int] = {
    ("tuner", "policy", "next_trial"): 1_000,
    ("tuner", "storage", "record"): 4_000,
    ("tuner", "study", "declaration"): 5_000,
    ("tuner", "search", "loop"): 12_000,
}
"""The most statement lines of a module and of all that it imports, in functions too: policy knows numbers, a record
trials as data, a declaration names."""

UNUSED = {
    "predict": {"numba", "optuna", "pandas", "polars", "narwhals", "rich", "scipy.optimize", "sklearn", "sqlalchemy"},
    "data": {"numba", "optuna", "pandas", "polars", "narwhals", "scipy.optimize", "sklearn", "sqlalchemy"},
    "explain": {"optuna", "pandas", "polars", "narwhals", "scipy.optimize", "sklearn", "sqlalchemy"},
    "show NAME": {"optuna", "scipy", "sqlalchemy", "ranktune.tuner.study.declaration"},
    "show": {"numpy", "optuna", "scipy", "sqlalchemy", "ranktune.tuner.study.declaration"},
}
"""Libraries that a command does without, on small text and on studies."""


def closure(start: Module) -> set[Module]:
    found, left = set[Module](), [start]
    while left:
        module = left.pop()
        if module not in found:
            found.add(module)
            left += graph()[module]
    return found


def statement_lines(module: Module) -> int:
    tree = ast.parse(modules()[module].read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [part for part in node.body if not _is_docstring(part)] or [ast.Pass()]
    return sum(bool(line.strip()) for line in ast.unparse(tree).splitlines())


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@pytest.mark.parametrize("module", CLOSURES, ids=".".join)
def test_a_module_brings_no_tower(module: Module) -> None:
    brought = closure(module)
    assert len(brought) > 5
    assert sum(map(statement_lines, brought)) <= CLOSURES[module]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with data, a linear model, a finished study and one that was interrupted."""
    folder = tmp_path_factory.mktemp("loading")
    data = letor(folder / "test.txt", 20, 1)
    RidgeRanker().fit(read_text(data)).as_model().save(folder / "model.json")
    for name in ("done", "begun"):
        declare(folder, name)
        append(folder, name, trials_of(3, ("LambdaRank", "RankSVM")))
    finish(folder, "done")
    return folder


@pytest.mark.parametrize("command", UNUSED)
def test_a_command_loads_what_it_uses(place: Path, command: str) -> None:
    words = {
        "predict": [f"{place}/model.json", f"{place}/test.txt", "-o", f"{place}/scores.txt"],
        "data": [f"{place}/test.txt"],
        "explain": [f"{place}/model.json", f"{place}/test.txt"],
        "show NAME": ["done", "--json", "--home", f"{place}"],
        "show": ["--home", f"{place}"],
    }
    run = f"import sys; sys.argv = {['ranktune', command.split()[0], *words[command]]}; from ranktune.cli import main"
    run += "; import ranktune.dashboards.terminal.leaderboard" * (command == "show NAME")  # which prints without --json
    code = f"{run}\ntry:\n    main()\nfinally:\n    print('LOADED', *sys.modules)"
    loaded = set(output_of(code).rpartition("LOADED")[2].split())
    assert "ranktune.command_line.app" in loaded and "ranktune.api" not in loaded
    assert not UNUSED[command] & loaded


def test_an_unfinished_study_is_shown_without_what_runs_it(place: Path) -> None:
    code = "from ranktune.dashboards.terminal.listing import state; from pathlib import Path; import sys\n"
    code += f"print(state(Path('{place}/begun'))['done'], *sys.modules)"
    done, *loaded = output_of(code).split()
    assert done == "3" and not UNUSED["show"] & set(loaded)
