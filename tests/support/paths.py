"""Where things are in the repository."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The repository."""

DATA = ROOT / "tests" / "data"
"""Files that tests compare with or read."""

FOLDERS = ("tuner", "solvers", "studies", "dashboards")
"""Where the product's code is."""
