"""Small studies as a release leaves them, zipped under data/released/format-N, for the tests of later releases.

`python tests/released_studies.py` writes those of the present format: once a format, when nothing in it changes any
more. Those of former formats are never written again, nor are those that a release wrote, in a folder of its number: in
0.2.0 and 0.2.1 two studies of RankSVM and LambdaMART of graded(24, 0), one interrupted after six of eight trials, and
the checkpoint of a pass over graded(3000, 0) that was interrupted at its second look.
"""

import shutil
import socket
import tempfile
import zipfile
from contextlib import suppress
from pathlib import Path
from unittest.mock import patch

import ranktune
from ranktune.tuner.search.progress import Silent, TrialReport
from ranktune.tuner.study.home import FORMAT
from tests.support.engine_samples import SOLVERS, graded
from tests.support.paths import DATA

ASSETS = DATA / "released"
FINISHED, UNFINISHED = "finished", "unfinished"
TRIALS, INTERRUPTED_AT = 12, 6
"""Trials of either study, and after how many the unfinished one was interrupted."""
_MOMENT = (2026, 1, 1, 0, 0, 0)


class _Interrupts(Silent):
    """Interrupts a study as Ctrl-C does, after so many trials."""

    def trial(self, report: TrialReport) -> None:
        if report.done == INTERRUPTED_AT:
            raise KeyboardInterrupt


def unpacked(release: Path, home: Path) -> Path:
    """Unpack the studies of a release into a home folder, and return it."""
    for archive in sorted(release.glob("*.zip")):
        with zipfile.ZipFile(archive) as file:
            file.extractall(home / archive.stem)
    return home


def write(target: Path) -> None:
    """Write the studies of the present format."""
    with tempfile.TemporaryDirectory() as folder, patch.object(socket, "gethostname", lambda: "host"):
        home = Path(folder)
        for name, progress in ((FINISHED, Silent()), (UNFINISHED, _Interrupts())):
            with suppress(KeyboardInterrupt):
                ranktune.tune(
                    graded(24, 0), vali=graded(12, 1), test=graded(12, 2), also="map", solvers=SOLVERS, trials=TRIALS,
                    sampler="tpe", name=name, home=home, jobs=1, progress=progress,
                )  # fmt: skip
            _pack(home / name, target / f"{name}.zip")


def _pack(study: Path, archive: Path) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as file:
        for member in sorted(study.rglob("*")):
            if member.is_file():
                entry = zipfile.ZipInfo(member.relative_to(study).as_posix(), _MOMENT)
                entry.compress_type = zipfile.ZIP_DEFLATED
                file.writestr(entry, member.read_bytes())


if __name__ == "__main__":
    shutil.rmtree(ASSETS / f"format-{FORMAT}", ignore_errors=True)
    write(ASSETS / f"format-{FORMAT}")
