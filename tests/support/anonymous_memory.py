"""The memory of a fit on data in files, besides the files: what Linux calls anonymous."""

from pathlib import Path

import numpy as np

from ranktune.solvers.data.disk.stored import write_queries
from ranktune.solvers.data.queries import Queries
from tests.support.commands import output_of

PROGRAM = """
import sys, threading, time
from pathlib import Path
from ranktune.solvers import LambdaMART, RankSVM, fit_blocks
from ranktune.solvers.data.blocked import LocalBlocks

def anonymous():
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))

def watch():
    while True:
        peak[0] = max(peak[0], anonymous())
        time.sleep(0.002)

fit_blocks(RANKER, sys.argv[1], LocalBlocks(20_000))  # compiled, libraries loaded
before = anonymous()
peak = [before]
threading.Thread(target=watch, daemon=True).start()
fit_blocks(RANKER, sys.argv[1:], LocalBlocks(20_000))
print(before, peak[0])
"""


def peak_memory(folder: Path, ranker: str, times: int, setup: str = "") -> tuple[int, int]:
    """Return the bytes before and at the peak of a fit on a folder that is given several times."""
    before, peak = output_of(setup + PROGRAM.replace("RANKER", ranker), *[folder] * times).split()
    return int(before), int(peak)


def write_large(folder: Path) -> Path:
    """Write 1,000 queries of 100 documents with 136 features; the first query has no pairs."""
    generator = np.random.default_rng(0)
    X = generator.normal(size=(100_000, 136)).astype(np.float32)
    y = np.clip(np.round(X[:, 0] + generator.normal(size=len(X))), 0, 4)
    y[:100] = 0.0
    write_queries(Queries.from_arrays(X, y, group=[100] * 1000), folder)
    return folder
