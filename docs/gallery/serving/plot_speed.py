"""
How fast models score
=====================

Weights are one product of a matrix and a vector. Trees are walked by compiled code of RankTune, which needs no library of the
solver; their time grows with the number of trees. Each model can also be exported to a function of plain Python.
"""

import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import process_time

import lightgbm
import matplotlib.pyplot as plt

from ranktune import LambdaMART, RankSVM
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
train, test = split.train, split.test
mappings = [dict(zip(test.feature_names, row, strict=True)) for row in test.features[:100].tolist()]


def speed(documents: int, predict: Callable[[], object]) -> float:
    """Return documents a second, the best of four."""
    times = []
    for _ in range(4):
        start = process_time()
        predict()
        times.append(process_time() - start)
    return documents / min(times)


def exported(model, form: str, folder: Path) -> Path:
    """Return the file of a model in another format."""
    model.save(folder / "model.json")
    command = ["ranktune", "export", "model.json", "--format", form, "-o", form]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder / form


# %%
# The same trees are scored by RankTune, by LightGBM, to which they were exported, and by plain Python.
def speeds(trees: int) -> dict[str, float]:
    """Return documents a second of each way to score a model of so many trees."""
    model = LambdaMART(trees=trees).fit(train).as_model(feature_names=train.feature_names)
    walk = {}
    with tempfile.TemporaryDirectory() as folder:
        booster = lightgbm.Booster(model_file=exported(model, "lightgbm", Path(folder)))
        exec(exported(model, "python", Path(folder)).read_text(), walk)
    n, X = test.n_documents, test.features
    return {
        "RankTune": speed(n, lambda: model.predict(test)),
        "LightGBM": speed(n, lambda: booster.predict(X, num_threads=1)),
        "plain Python": speed(len(mappings), lambda: [walk["score"](row) for row in mappings]),
    }


counts = [30, 100, 300]
measured = [speeds(trees) for trees in counts]
linear = RankSVM().fit(train).as_model()

# %%
# Both axes are logarithmic: each line on the grid is ten times faster than the one below.
figure, axes = plt.subplots(figsize=(7, 4.2))
for label, marker in zip(measured[0], "os^", strict=True):
    values = [one[label] for one in measured]
    axes.loglog(counts, values, f"{marker}-", label=f"trees, {label}")
top = speed(test.n_documents, lambda: linear.predict(test))
axes.axhline(top, color="grey", linestyle=":", label="weights, RankTune")
axes.set_xticks(counts, [str(count) for count in counts])
axes.minorticks_off()
axes.set(xlabel="trees of 8 leaves", ylabel="documents a second, one core")
axes.set_title("Scoring documents of 68 features")
figure.legend(loc="lower center", ncols=4, fontsize=9)
figure.tight_layout(rect=(0, 0.08, 1, 1))
