"""The manual page of the command line: the help of all commands, as Sphinx writes it for man."""

from __future__ import annotations

import tempfile
from pathlib import Path

from sphinx.cmd.build import build_main

import ranktune
from ranktune.docs.generated import command_line_page

SETTINGS = {
    "extensions": "myst_parser",
    "project": "RankTune",
    "author": "The RankTune developers",
    "release": ranktune.__version__,
    "man_make_section_directory": "0",
}


def write_manual(folder: Path) -> int:
    """Write ranktune.1 into a folder, and return the exit code of Sphinx. Warnings are errors."""
    page = command_line_page().replace("# Command line", "# tune, select and ship ranking models", 1)
    settings = [word for name, value in SETTINGS.items() for word in ("-D", f"{name}={value}")]
    with tempfile.TemporaryDirectory() as scratch:
        (Path(scratch) / "index.md").write_text(page, encoding="utf-8")
        cache = str(Path(scratch) / "doctrees")
        return build_main(["-C", "-W", "-q", "-b", "man", "-d", cache, *settings, scratch, str(folder)])
