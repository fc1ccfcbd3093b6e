"""How much code there is: a budget of tokens for each folder, whose sum only falls until the next minor release.

Tokens are those of the code without comments and docstrings, however it is laid out in lines. Run as a program, it
prints what each folder has: python -m tests.contracts.test_budget
"""

import ast
import io
import shutil
import subprocess
import tokenize
from pathlib import Path

import pytest

from tests.support.paths import ROOT

RELEASED = {"solvers": 316638, "tuner": 226738, "studies": 69089, "dashboards": 53700, "tests": 647939}
"""What each folder had at the last release. The next minor release writes its own numbers here."""
BUDGET = {"solvers": 316638, "tuner": 226737, "studies": 69089, "dashboards": 53700, "tests": 647926}
"""What each folder may have. What is removed is taken off here in the same commit. What moves to another folder moves
here too; nothing else is ever added."""
SILENT = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
}  # fmt: skip


def tokens(file: Path) -> int:
    """The tokens of a file's code."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(body := getattr(node, "body", None), list):
            node.body = [each for each in body if not _is_text(each)] or [ast.Pass()]  # type: ignore[attr-defined]
    code = io.StringIO(ast.unparse(tree))
    return sum(token.type not in SILENT for token in tokenize.generate_tokens(code.readline))


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def used(folder: str) -> int:
    return sum(map(tokens, (ROOT / folder).rglob("*.py")))


def budget_of(text: str) -> dict[str, int]:
    """The budget that a version of this file sets."""
    return next(
        {str(folder): int(count) for folder, count in ast.literal_eval(node.value).items()}
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "BUDGET"
    )


def sums(budget: dict[str, int]) -> tuple[int, int]:
    """The tokens of the product, in whichever folder they are, and those of its tests."""
    return sum(count for folder, count in budget.items() if folder != "tests"), budget["tests"]


@pytest.mark.parametrize("folder", BUDGET)
def test_a_folder_stays_within_its_budget(folder: str) -> None:
    assert used(folder) <= BUDGET[folder]


@pytest.mark.parametrize("version", ["HEAD", "HEAD^"])
def test_the_budget_only_falls(version: str) -> None:
    git = ["git", "-C", str(ROOT), "show", f"{version}:tests/contracts/{Path(__file__).name}"]
    if shutil.which("git") is None or (shown := subprocess.run(git, capture_output=True, text=True)).returncode:
        pytest.skip("there is no earlier version of this file")
    assert all(now <= before for now, before in zip(sums(BUDGET), sums(budget_of(shown.stdout)), strict=True))


def test_it_is_below_that_of_the_last_release() -> None:
    assert all(now <= released for now, released in zip(sums(BUDGET), sums(RELEASED), strict=True))


if __name__ == "__main__":
    print({folder: used(folder) for folder in BUDGET})
