"""Small studies, finished and interrupted, and their data in several formats: copied for each case of damage."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tests.fuzzing.asked import NAME

TRIALS = 6
KINDS = ("finished", "interrupted")
SOURCES = ("data.txt.gz", "data.txt.bz2", "data.npz", "data.parquet")
"""The data in formats with checksums, besides data.csv."""


def write_data(path: Path, seed: int = 1) -> Path:
    """Write a small table of graded documents."""
    table(seed).to_csv(path, index=False)
    return path


def table(seed: int) -> pd.DataFrame:
    """Return a small table of graded documents."""
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(160, 3)).round(3)
    grades = np.digitize(X @ [1.0, 0.5, -0.3] + 0.5 * generator.normal(size=len(X)), [0.3, 1.2])
    return pd.DataFrame({"qid": np.arange(len(X)) // 8, "grade": grades, "a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})


def _write_sources(folder: Path) -> None:
    frame = table(1)
    X = frame[["a", "b", "c"]].to_numpy()
    rows = zip(frame["grade"], frame["qid"], X.tolist(), strict=True)
    lines = [f"{grade} qid:{query} 1:{x[0]!r} 2:{x[1]!r} 3:{x[2]!r}\n".encode() for grade, query, x in rows]
    (folder / "data.txt.gz").write_bytes(gzip.compress(b"".join(lines), mtime=0))
    (folder / "data.txt.bz2").write_bytes(bz2.compress(b"".join(lines[:72])) + bz2.compress(b"".join(lines[72:])))
    buffer = io.BytesIO()
    np.savez_compressed(buffer, X=X, y=frame["grade"], qid=frame["qid"])
    (folder / "data.npz").write_bytes(buffer.getvalue())
    pq.write_table(pa.Table.from_pandas(frame), folder / "data.parquet", write_page_checksum=True)


@dataclass
class Samples:
    """A finished and an interrupted study, and other ones of the same name whose files are swapped in."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Samples:
        """Run the studies, the interrupted ones until they are killed."""
        folder.mkdir(parents=True, exist_ok=True)
        _write_sources(folder)
        for prefix, seed in (("", 1), ("other ", 2)):
            data = write_data(folder / f"{prefix}data.csv".replace(" ", "-"), seed)
            subprocess.run(_tune(data, folder / f"{prefix}finished"), check=True, capture_output=True)
            _interrupt(_tune(data, folder / f"{prefix}interrupted"), folder / f"{prefix}interrupted" / NAME)
        return cls(folder)

    def copy(self, kind: str, to: Path) -> Path:
        """Return the home folder of a copy of a study."""
        shutil.rmtree(to, ignore_errors=True)
        shutil.copytree(self.folder / kind, to)
        return to

    def files(self, kind: str) -> list[Path]:
        """Return the files of a study, relative to the home folder."""
        home = self.folder / kind
        return sorted(path.relative_to(home) for path in home.rglob("*") if path.is_file())

    def other(self, kind: str, file: Path) -> Path | None:
        """Return the file of the other study that stands where file does, None if there is none."""
        if (self.folder / f"other-{file}").is_file():
            return self.folder / f"other-{file}"
        beside = sorted(path for path in (self.folder / f"other {kind}" / file).parent.glob("*") if path.is_file())
        alike = [path for path in beside if path.name == file.name]
        return next(iter(alike or [path for path in beside if file.parent.name == "artifacts"]), None)


def _tune(data: Path, home: Path) -> list[str]:
    return [
        sys.executable, "-m", "ranktune", "tune", str(data), "--name", NAME, "--trials", str(TRIALS),
        "--solver", "RankSVM", "--sampler", "random", "--jobs", "1", "--home", str(home),
    ]  # fmt: skip


def _interrupt(command: list[str], study: Path) -> None:
    """Run a study until a trial has finished, and kill it."""
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )  # fmt: skip
    events = study / "events.jsonl"
    while process.poll() is None and not (events.exists() and '"finished"' in events.read_text()):
        time.sleep(0.002)
    os.killpg(process.pid, 9)
    process.wait()
    assert not (study / "result.json").exists()
