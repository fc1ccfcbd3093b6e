"""The scripts of the gallery are run, each in a process of its own, as a reader would who downloads it."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path

from ranktune import __version__
from ranktune.docs.pages import FOLDER

GALLERY = FOLDER / "gallery"
LAST_RUN = GALLERY / "last_run.json"

_RUN = """
import json, runpy, sys, time
from pathlib import Path
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
started = time.process_time()
runpy.run_path(sys.argv[1], run_name="__main__")
seconds = time.process_time() - started

def is_named(own):
    siblings = own.get_shared_y_axes().get_siblings(own)
    words = any(label.get_text() and not is_number(label.get_text()) for label in own.get_yticklabels())
    return words or any(sibling.get_ylabel() for sibling in siblings)

def is_number(text):
    return text.strip("$").replace("\u2212", "-").lstrip("-")[:1].isdigit()

figures = [plt.figure(number) for number in plt.get_fignums()]
axes = [own for figure in figures for own in figure.axes if own.get_label() != "<colorbar>"]
found = {
    "seconds": seconds,
    "figures": len(figures),
    "bare": [own.get_title() for own in axes if not own.get_xlabel() or not is_named(own)],
    "titles": [own.get_title() for own in axes],
}
if len(sys.argv) > 3:
    for number, figure in enumerate(figures, 1):
        figure.savefig(Path(sys.argv[3]) / f"{Path(sys.argv[1]).stem}_{number}.png")
Path(sys.argv[2]).write_text(json.dumps(found))
"""


@dataclass(frozen=True)
class Ran:
    """One run of a script.

    script   its name, with its section before it
    seconds  processor time, without imports of matplotlib
    figures  that it drew
    wrong    what is wrong with it, empty where nothing is
    """

    script: str
    seconds: float
    figures: int
    wrong: str = ""


def scripts() -> list[Path]:
    """Return the scripts of the gallery, in the order of their paths."""
    return sorted(GALLERY.rglob("plot_*.py"))


def run_script(script: Path, figures: Path | None = None) -> Ran:
    """Run a script in a new folder, and write its figures as PNG into the folder figures where one is given."""
    name = script.name if script.parent == GALLERY else f"{script.parent.name}/{script.name}"
    with tempfile.TemporaryDirectory() as folder:
        note = Path(folder) / "note.json"
        command = [sys.executable, "-c", _RUN, str(script.resolve()), str(note)]
        if figures is not None:
            figures.mkdir(parents=True, exist_ok=True)
            command.append(str(figures.resolve()))
        done = subprocess.run(command, cwd=folder, env=_environment(), capture_output=True, text=True, check=False)
        if done.returncode:
            return Ran(name, 0.0, 0, done.stderr.strip())
        checked = json.loads(note.read_text())
    wrong = [line for line in done.stderr.splitlines() if "Warning: " in line]
    if not checked["figures"]:
        wrong.append("it draws no figure")
    if checked["bare"]:
        wrong.append(f"axes without labels: {checked['bare']}")
    if not all(checked["titles"]):
        wrong.append("a figure without a title")
    return Ran(name, round(checked["seconds"], 1), checked["figures"], "; ".join(wrong))


def write_last_run(runs: list[Ran]) -> None:
    """Keep what a run of all scripts found, with the date, the version and the machine."""
    content = {
        "date": date.today().isoformat(),
        "version": __version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "scripts": [{key: value for key, value in asdict(ran).items() if key != "wrong"} for ran in runs],
    }
    LAST_RUN.write_text(json.dumps(content, indent=1) + "\n")


def _environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}
