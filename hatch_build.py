"""The place of each folder in the package: solvers/ is ranktune.solvers, tuner/ranktune/ is ranktune itself.

A wheel gets the files under these names; of docs/ the pages that docs/llms.txt lists, without what the site is built by
and from. An editable installation gets one link for each file or subpackage of a
folder, so that mypy, pyright and editors see what Python sees, and a new module needs no new installation; a new
subpackage does.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGES = {
    "tuner/ranktune": "ranktune",
    "solvers": "ranktune/solvers",
    "tuner": "ranktune/tuner",
    "studies": "ranktune/studies",
    "dashboards": "ranktune/dashboards",
    "docs": "ranktune/docs",
}
LINKS = "build/editable"


def shipped_pages(root: Path) -> list[str]:
    """Return the files of docs/ that a wheel holds: the list of the pages, these pages, and what writes their data."""
    listed = (root / "docs" / "llms.txt").read_text(encoding="utf-8")
    return ["__init__.py", "shop.py", "llms.txt", *re.findall(r"\]\((.+\.md)\)", listed)]


class Layout(BuildHookInterface):
    """Map the folders onto the package ranktune."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to a wheel, or the links to an editable installation."""
        root = Path(self.root)
        places = {
            entry: f"{package}/{entry.name}"
            for folder, package in PACKAGES.items()
            for entry in sorted((root / folder).iterdir())
            if entry.name != "__pycache__" and entry.relative_to(root).as_posix() not in PACKAGES
        }
        if version != "editable":
            places = {entry: place for entry, place in places.items() if entry.parent.name != "docs"}
            places |= {root / "docs" / name: f"ranktune/docs/{name}" for name in shipped_pages(root)}
            build_data["force_include"] = {str(entry): place for entry, place in places.items()}
            return
        links = root / LINKS
        shutil.rmtree(links, ignore_errors=True)
        for entry, place in places.items():
            link = links / place
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to(entry, target_is_directory=entry.is_dir())
