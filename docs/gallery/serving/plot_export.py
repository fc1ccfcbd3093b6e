"""
An export scores as the model does
==================================

A model leaves RankTune in the format of the system that serves it. Here it becomes a function of plain Python and a booster
of LightGBM; both score the same documents, and their scores are compared with those of the model.
"""

import subprocess
import tempfile
from pathlib import Path

import lightgbm
import matplotlib.pyplot as plt
import numpy as np

from ranktune import LambdaMART
from ranktune.solvers.data.api_search.dataset import load_split

split = load_split()
names = split.train.feature_names
queries = split.test.select(np.arange(20))
model = LambdaMART().fit(split.train).as_model(feature_names=names)
scores = model.predict(queries)

# %%
# ``ranktune export`` writes the files. With ``--check DATA`` it compares the scores itself.
with tempfile.TemporaryDirectory() as name:
    folder = Path(name)
    model.save(folder / "model.json")
    for form, file in (("python", "ranker.py"), ("lightgbm", "booster.txt")):
        command = ["ranktune", "export", "model.json", "--format", form, "-o", file]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    written = {}
    exec((folder / "ranker.py").read_text(), written)
    booster = lightgbm.Booster(model_file=folder / "booster.txt")
results = {
    "plain Python": [
        written["score"](dict(zip(names, row, strict=True))) for row in queries.features.tolist()
    ],
    "LightGBM": booster.predict(queries.features),
}

# %%
# All points lie on the diagonal.
figure, axes = plt.subplots(figsize=(5, 4.5))
for (label, values), marker, size in zip(results.items(), ("o", "x"), (9, 5), strict=True):
    axes.plot(scores, values, marker, markersize=size, alpha=0.5, label=label)
    print(f"{label}: the largest difference is {np.abs(np.array(values) - scores).max():.2g}")
axes.set(
    xlabel="score of the model",
    ylabel="score of the export",
    title=f"{queries.n_documents:,} documents, scored three times",
)
axes.legend()
figure.tight_layout()
