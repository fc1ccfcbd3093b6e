"""The report that the site shows, of a small study that is run while the site is built."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import polars

import ranktune
from ranktune.docs.shop import write_shop

TRIALS = 12


def write_live_report(path: Path) -> None:
    """Tune the data of the shop, and write the report of that study to a path."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_shop(folder)
        ranktune.tune(
            polars.read_csv(folder / "shop.csv", try_parse_dates=True),
            qid="search",
            grade="bought",
            drop="sku,day",
            baseline="column:bm25_title",
            trials=TRIALS,
            name="shop",
            home=folder,
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "ranktune", "show", "shop", "--home", name, "--page", str(path)]
        subprocess.run(command, check=True, capture_output=True)
