"""The home that a test may change."""

import shutil
from pathlib import Path

import pytest


@pytest.fixture
def home(tuned: Path, tmp_path: Path) -> Path:
    """Return a copy of the home that the fixture tuned of the module has."""
    return Path(shutil.copytree(tuned, tmp_path / "home"))
