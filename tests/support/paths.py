"""Where things are in the repository, and its source files as trees."""

import ast
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""

DATA = ROOT / "tests" / "data"
"""Files that tests compare with or read."""

FOLDERS = ("tuner", "solvers", "studies", "dashboards")
"""Where the product's code is."""


@cache
def parsed(file: Path) -> ast.Module:
    """Return the tree of a source file, which is parsed once."""
    return ast.parse(file.read_text(encoding="utf-8"))
