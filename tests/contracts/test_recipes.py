"""The recipes of docs/howto/extending.md, applied as they are written to copies of the files that they change."""

import os
import re
import subprocess
import sys
from pathlib import Path
from textwrap import indent
from typing import NamedTuple

from tests.support.paths import ROOT

MOST_EDITS = 2

IMPORTED_FROM_HERE = """
import sys
from importlib.util import spec_from_file_location

FILES = {files!r}

class Edited:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return spec_from_file_location(name, FILES[name]) if name in FILES else None

sys.meta_path.insert(0, Edited)
"""
"""A sitecustomize module by which edited files are imported in place of those of the repository."""


class Edit(NamedTuple):
    """The file that an edit changes or adds, below the root, the table that gets an entry, and what is written."""

    path: str
    table: str
    text: str

    def applied(self, before: str | None) -> str:
        """The whole file after the edit; before: as it was, None where it is new."""
        if before is None:
            return self.text
        if not self.table:
            if not self.text.startswith(" "):
                return f"{before}\n\n{self.text}"
            fields, method, rest = before.partition("\n    @property\n")  # a field stands above the first of them
            return fields + self.text + method + rest
        head = re.search(rf"^{self.table}\b.*?{{\n", before, re.MULTILINE | re.DOTALL)
        assert head is not None, f"{self.path} has no table {self.table}"
        return before[: head.end()] + indent(self.text, " " * 8) + before[head.end() :]


def recipes() -> dict[str, list[Edit]]:
    """Recipe -> its numbered edits that have code."""
    text = (ROOT / "docs/howto/extending.md").read_text()
    results: dict[str, list[Edit]] = {}
    for title, body in re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL):
        edits = re.findall(r"^\d\. (.*?)^```text\n(.*?)^```$", body, re.MULTILINE | re.DOTALL)
        results[title] = [_edit(what, code) for what, code in edits]
    return results


def _edit(what: str, code: str) -> Edit:
    table = re.search(r"entry of `(\w+)`", what)
    path = re.search(r"`([\w/]+\.py)`", what)
    assert path is not None, what
    return Edit(path[1], table[1] if table else "", code)


CHECKS = {
    "A solver": """
import numpy as np, ranktune, tempfile
from ranktune.command_line.commands import all_solvers
from ranktune.command_line.options import solver_names
from ranktune.solvers import MySolver, load_model
from ranktune.solvers.export import export

assert "Rank by the covariance of each feature with the grades, raised to a power" in [
    one["summary"] for one in all_solvers() if one["name"] == "MySolver"
]
assert solver_names("MyS") == ["MySolver"] and "power : float, default=1.0" in MySolver.__doc__
X = np.random.default_rng(0).normal(size=(200, 3))
queries = ranktune.Queries.from_arrays(X, (X[:, 0] > 0.5).astype(int), group=[10] * 20)
with tempfile.TemporaryDirectory() as home:
    result = ranktune.tune(queries, solvers="mysolver", trials=3, sampler="random", test="none", home=home, jobs=1)
    rows = [row for row in result.leaderboard if row.solver == "MySolver"]
    assert result.trials == 3 and "power" in rows[0].params
assert "feature" in export(MySolver(power=0.5).fit(queries).as_model(), "json")
""",
    "A loss": """
import numpy as np, ranktune, tempfile
from ranktune.solvers import Ranker, load_model
from ranktune.solvers.export import export

searched = {choice for parameter in Ranker.space if parameter.name == "loss" for choice in parameter.choices}
assert "exponential" in searched and '"exponential"' in Ranker.__doc__
scale = next(parameter for parameter in Ranker.space if parameter.name == "temperature")
assert "exponential" in scale.when.values
X = np.random.default_rng(0).normal(size=(200, 3))
queries = ranktune.Queries.from_arrays(X, (X[:, 0] > 0.5).astype(int), group=[10] * 20)
parts = {"loss": "exponential", "optimizer": "lbfgs", "penalty": "l2"}
ranker = Ranker(**parts, temperature=1.0).fit(queries)
assert ranker.coef_[0] > 5.0 * abs(ranker.coef_[1:]).max() and "feature" in export(ranker.as_model(), "json")
with tempfile.TemporaryDirectory() as home:
    space = {f"Ranker.{name}": value for name, value in parts.items()}
    study = dict(solvers="Ranker", trials=3, sampler="random", test="none", home=home, jobs=1)
    result = ranktune.tune(queries, space=space, **study)
    assert result.trials == 3 and result.best_model.parameters["loss"] == "exponential"
""",
    "A metric": """
import numpy as np, ranktune
from ranktune.command_line.options import metric_names
from ranktune.solvers.metrics.presets import MEASURES

queries = ranktune.Queries.from_arrays(np.zeros((6, 1)), [0, 0, 1, 1, 0, 0], group=[3, 3])
scores = np.array([3.0, 2.0, 1.0, 3.0, 2.0, 1.0])
assert ranktune.parse_metric("hit@2").per_query(scores, queries).tolist() == [0.0, 1.0]
assert ranktune.parse_metric("hit@3").mean(scores, queries) == 1.0
assert metric_names("hi") == ["hit"] and MEASURES.help("hit").startswith("whether a relevant document")
assert ranktune.evaluate(scores, queries, "hit@2")["metrics"]["hit@2"]["mean"] == 0.5
""",
    "An export format": """
from typer.testing import CliRunner
from ranktune.command_line.app import app
from ranktune.solvers import LinearModel
from ranktune.solvers.export import export

model = LinearModel([0.5, 0.0, 0.25], "RankSVM", feature_names=("bm25", "age", "clicks"))
assert export(model, "tsv") == "bm25\\t0.5\\nclicks\\t0.25\\n"
assert "names and weights, separated by tabs" in CliRunner().invoke(app, ["export", "--help"]).output
""",
    "A page": """
from pathlib import Path
from ranktune.dashboards.views.registry import view_json, views_json
from tests.support.study_samples import study_data, trials_of

assert views_json()[0]["title"] == "Durations" and views_json()[0]["meaning"]["terms"][0][0] == "trial"
data = study_data(trials_of(4, ("RankSVM",)), solvers=("RankSVM",))
assert len(view_json("durations", data)["panels"][0]["table"]["rows"]) == 4
""",
    "A setting of a study": """
import inspect, ranktune
from typer.testing import CliRunner
from ranktune.command_line.app import app

assert inspect.signature(ranktune.tune).parameters["patience"].default == 100
assert "Trials without a better one after which a study ends." in ranktune.tune.__doc__
assert "write patience = 3 and" in CliRunner().invoke(app, ["tune", "--patience", "3"], env={"COLUMNS": "400"}).output
assert ranktune.Study(patience=3).patience == 3
""",
    "A column of queries": """
import json, numpy as np, polars as pl, pytest, ranktune
from typer.testing import CliRunner
from ranktune.command_line.app import app
from ranktune.solvers.core.errors import DataError, ParameterError

generator = np.random.default_rng(0)
frame = pl.DataFrame(generator.normal(size=(80, 2)), schema=["a", "b"]).with_columns(
    qid=np.arange(80) // 8, grade=generator.integers(0, 3, 80), cost=generator.uniform(0.5, 2.0, 80)
)
queries = ranktune.read(frame, price="cost")
assert queries.feature_names == ("a", "b") and queries.fingerprint != ranktune.read(frame, drop="cost").fingerprint
weighed = ranktune.RankSVM().fit(ranktune.read(frame, document_weight="cost"))
assert ranktune.RankSVM().fit(queries).coef_.tolist() == weighed.coef_.tolist()
assert queries.select([3]).columns["prices"].tolist() == frame["cost"][24:32].to_list()
with pytest.raises(ParameterError, match="cannot weigh documents: leave prices out"):
    type("Unweighted", (ranktune.RankSVM,), {"takes_document_weights": False})().fit(queries)
with pytest.raises(DataError, match="price of document number 0 is 0.0: prices are positive"):
    queries.given(prices=np.zeros(80))
frame.write_parquet("prices.parquet")
shown = CliRunner().invoke(app, ["data", "prices.parquet", "--price", "cost", "--json"])
(part,) = json.loads(shown.output)["parts"]
assert part["prices"] == f"{frame['cost'].min():g} to {frame['cost'].max():g}" and part["features"] == 2
CliRunner().invoke(app, ["data", "prices.parquet", "--price", "cost", "--output", "prices"])
assert ranktune.read("prices").fingerprint == queries.fingerprint
study = dict(solvers="RankSVM", trials=2, sampler="random", test="none", home="prices-home", jobs=1)
assert ranktune.tune("prices.parquet", price="cost", **study).trials == 2
""",
    "A reader": """
import pathlib, pytest, ranktune
from typer.testing import CliRunner
from ranktune.command_line.app import app

file = pathlib.Path("some.pairs")
file.write_text("".join(f"qid={k // 3} grade={k % 2} bm25={k / 7}\\n" for k in range(9)))
queries = ranktune.read(file)
assert queries.n_queries == 3 and queries.feature_names == ("bm25",)
assert ranktune.read(file, drop=["bm25"], features=["qid"], qid="grade").n_queries == 2
assert "NAME=VALUE NAME=VALUE ... a line" in CliRunner().invoke(app, ["data", "--help"]).output
with pytest.raises(ranktune.solvers.core.errors.DataError, match="Give .*[.]pairs"):
    ranktune.read("nothing.pairs")
""",
}


def test_every_recipe_with_code_is_checked() -> None:
    assert {title for title, edits in recipes().items() if edits} == set(CHECKS)


def test_recipes_do_what_they_say(tmp_path: Path) -> None:
    """All edits are made, and then each recipe is checked, in one process that imports the edited files."""
    texts: dict[str, str | None] = {}
    for edits in recipes().values():
        assert len(edits) <= MOST_EDITS
        for edit in edits:
            file = ROOT / edit.path
            texts[edit.path] = edit.applied(texts.get(edit.path, file.read_text() if file.exists() else None))
    files = {}
    for number, (path, text) in enumerate(texts.items()):
        files[f"ranktune.{path.removesuffix('.py').replace('/', '.')}"] = str(tmp_path / f"edited_{number}.py")
        (tmp_path / f"edited_{number}.py").write_text(text or "")
    (tmp_path / "sitecustomize.py").write_text(IMPORTED_FROM_HERE.format(files=files))
    for title, check in CHECKS.items():
        (tmp_path / f"{title}.py").write_text(check)
    paths = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)]
    program = "import runpy, sys; [runpy.run_path(file) for file in sys.argv[1:]]"
    done = subprocess.run(
        [sys.executable, "-c", program, *(f"{title}.py" for title in CHECKS)],
        capture_output=True, text=True, check=False, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
