"""
Read text once
==============

Ranking text is parsed by compiled code, by two threads. :func:`ranktune.convert` writes it into a folder that is mapped into
memory: opening it takes the same time whatever its size.
"""

import tempfile
from pathlib import Path
from time import perf_counter

import matplotlib.pyplot as plt
import numpy as np

import ranktune

QUERIES, LENGTH, FEATURES = 600, 50, 40
generator = np.random.default_rng(0)
X = generator.normal(size=(QUERIES * LENGTH, FEATURES)).round(4)
grades = generator.integers(0, 5, len(X))


def seconds(source) -> float:
    """Return the shortest time of three to read a source and add up its features."""
    times = []
    for _ in range(3):
        start = perf_counter()
        ranktune.read(source).features.sum()
        times.append(perf_counter() - start)
    return min(times)


# %%
# The same 30,000 documents as LETOR text, as csv and as a folder.
times = {}
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    with (folder / "data.txt").open("w") as text, (folder / "data.csv").open("w") as table:
        table.write(",".join(["qid", "grade", *(f"f{j}" for j in range(FEATURES))]) + "\n")
        for row, (grade, values) in enumerate(zip(grades.tolist(), X.tolist(), strict=True)):
            qid = row // LENGTH
            pairs = " ".join(f"{j}:{value}" for j, value in enumerate(values, start=1))
            text.write(f"{grade} qid:{qid} {pairs}\n")
            table.write(f"{qid},{grade}," + ",".join(map(str, values)) + "\n")
    ranktune.convert(folder / "data.txt", folder / "data")
    sources = {"LETOR text": "data.txt", "csv": "data.csv", "converted folder": "data"}
    for label, source in sources.items():
        times[label] = seconds(folder / source)

figure, axes = plt.subplots(figsize=(7, 2.8))
axes.semilogx([len(X) / value for value in times.values()], list(times), "o", markersize=9)
axes.margins(x=0.1, y=0.3)
axes.set(
    xlabel=f"documents of {FEATURES} features a second",
    title="Reading, and one pass over the features",
)
figure.tight_layout()

# %%
# A csv does not say what its columns are: all rows are looked at to find out, before they are read.
