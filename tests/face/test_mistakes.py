"""Mistakes that people make, at the command line and in Python, and the sentence that each is answered with."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import ranktune
from ranktune.solvers.core.errors import RankTuneError
from ranktune.tuner.workers.interrupts import Interrupted
from tests.support.commands import ranktune as run
from tests.support.commands import study_file

untyped: Any = ranktune
"""The calls below are wrong on purpose."""
QID = np.repeat(np.arange(12), 5)
X = np.random.default_rng(0).random((60, 2))
TABLE = pd.DataFrame({
    "search": QID, "sku": [f"p{k}" for k in range(60)], "price": X[:, 0], "bm25": X[:, 1],
    "brand": np.where(X[:, 1] > 0.5, "Elm", "Fir"), "bought": (X[:, 0] > 0.6).astype(int),
})  # fmt: skip
OTHER = TABLE.assign(search=QID + 100)
SHOP = ("--qid", "search", "--grade", "bought", "--drop", "sku")


@pytest.fixture(autouse=True)
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "1000")
    TABLE.to_csv("shop.csv", index=False)
    log = TABLE[["search", "sku"]].rename(columns={"search": "query"})
    log.assign(device="a phone", position=log.index % 5 + 1, click=TABLE["bought"]).to_csv("log.csv", index=False)
    TABLE.to_csv("headless.csv", index=False, header=False)
    TABLE.rename(columns={"price": "rating"}).to_csv("rated.csv", index=False)
    study_file(Path("clicks.toml"), data="shop.csv", clicks=["log.csv"], click_columns="document=sku")
    study_file(Path("falling.toml"), data="shop.csv", monotone="prize=1")
    Path("runs").mkdir()
    Path("empty.txt").touch()
    numbers = TABLE[["price", "bm25"]]
    ranktune.RankSVM().fit(numbers, TABLE["bought"], qid=QID).as_model().save("model.json")


AT_THE_COMMAND_LINE = {
    ("tunne", "shop.csv"): "No such command 'tunne'. Did you mean 'tune', 'retune'?",
    ("compare", "model.json", "shop.csv"): "Here it is: ranktune evaluate A DATA --against B.",
    ("fit", "shop.csv"): "No such command 'fit'. Here it is: ranktune tune.",
    ("mlflow", "mine", "http://127.0.0.1:5000"): "Here it is: ranktune tune DATA --name STUDY --mlflow URI, which logs",
    ("clicks", "log.csv", "-o", "grades.csv", "--model", "coec-lowest-rank"): "is gone: use coec.",
    ("show", "mine", "--optuna"): "No such option: --optuna. The record is an Optuna study: optuna-dashboard",
    ("show", "--page", "p.html"): "Invalid value for --page: is not for the list of all studies (without NAME): leave",
    ("show", "mine", "--port", "9000"): "Invalid value for --port: is not for a study in the terminal (without --live)",
    ("show", "mine", "--page", "p.html", "--wide"): "Invalid value for --wide: is not for --page: leave it out.",
    ("show", "mine", "two", "--live"): "Invalid value for NAME: one study is shown first: leave the others out.",
    ("export", "model.json", "--format", "vespa", "--two-stage", "shop.csv"): "No such option: --two-stage. Export the",
    ("history", "mine"): "No such command 'history'. Here it is: ranktune retune NAME --history.",
    ("rollback", "mine", "v2"): "No such command 'rollback'. Here it is: ranktune retune NAME --rollback VERSION.",
    ("note", "mine", "weekly"): "No such command 'note'. Here it is: ranktune tune --name NAME, the name says",
    ("retune", "mine"): "Invalid value for data: is missing: give the new data, or --history or --rollback VERSION.",
    ("retune", "mine", "shop.csv", "--history"): "Invalid value for data: is not for --history: leave it out.",
    ("retune", "mine", "--rollback", "v2", "--trials", "5"): "Invalid value for --trials: is not for --rollback",
    ("retune", "mine", "--rollback", "v2", "--json"): "Invalid value for --json: is not for --rollback: leave it out.",
    ("retune", "mine", "shop.csv", "--page", "p.html"): "Invalid value for --page: needs --history.",
    ("retune", "mine", "--history"): "no study 'mine' in ranktune-runs.",
    ("related", "numpy.argsort"): "ranktune predict MODEL FOLDER/test.csv, of the files that `python -m",
    ("tune", "shop.csv", "--label", "bought"): "No such option: --label. Here it is called --grade.",
    ("tune", "shop.csv", "--n-trials", "5"): "No such option: --n-trials. Here it is called --trials.",
    ("tune", "shop.csv", "new.csv"): "extra argument(s) (new.csv). One argument is the training data: further data go",
    ("tune", "shop.csv", "--trials", "many"): "Invalid value for '--trials': 'many' was given.",
    ("tune", "shop.csv", "--trials", "0"): "'0' was given. Input should be greater than or equal to 1",
    ("tune", "shop.csv", "--timeout", "10m"): "'10m' was given.",
    ("tune", "shop.csv", "--timeout", "2h"): "In seconds it is 7200.",
    ("tune", "shpo.csv"): "shpo.csv: there is no such file, folder or name. Did you mean 'shop.csv'?",
    ("tune", "shop.xlsx"): "shop.xlsx is a spreadsheet: save its sheet as .csv",
    ("tune", "shop.csv"): "no column of the query ids. Name it: --qid COLUMN.",
    ("tune", "shop.csv", "--qid", "search"): "no column of the grades. Name it: --grade COLUMN.",
    ("tune", "shop.csv", "--qid", "serach"): "no column 'serach' for the query ids. Did you mean 'search'?",
    ("tune", "shop.csv", *SHOP[:4]): "'sku' looks like the id of the document: --document sku. If it is not, leave it "
    "out: --drop sku.",
    ("tune", "shop.csv", *SHOP, "--clicks", "log.csv"): "of the document. Perhaps it is: click_columns = "
    '"document=sku" (study file).',
    ("tune", "clicks.toml", *SHOP): "and the data have no column of document ids. Name it: --document COLUMN.",
    ("clicks", "log.csv", "-o", "grades.csv"): "of the document. Perhaps it is: --column document=sku.",
    ("tune", "headless.csv"): "The first line of a file must hold the titles of its columns: is it missing?",
    ("tune", "rated.csv", *SHOP[:2], "--drop", "sku"): "'rating', and it has missing values or fractions, as ratings "
    "of products have. Name the grades: --grade COLUMN.",
    ("tune", "shop.csv", *SHOP[:2], "--grade", "brand", "--drop", "sku"): "the grade column 'brand' holds",
    ("tune", "shop.csv", *SHOP, "--metric", "ndgc@10"): "metric 'ndgc@10' is unknown. Did you mean 'ndcg'?",
    ("tune", "shop.csv", *SHOP, "--solver", "LightGBM"): "no solver 'LightGBM'. Here it is called 'LambdaMART'.",
    ("tune", "shop.csv", *SHOP, "--within", "features=3"): "'features=3' is not a limit: write a cost, <= and",
    ("tune", "shop.csv", *SHOP, "--within", "feature<=3"): "Did you mean 'features'?",
    ("tune", "shop.csv", *SHOP, "--baseline", "column:bm2"): "column:bm2: there is no such column of the data. Did you "
    "mean 'bm25'?",
    ("tune", "falling.toml", *SHOP): "names the feature 'prize', which the data do not have. Did you mean 'price'?",
    ("predict", "shop.csv", "model.json"): "shop.csv is not a RankTune model, which is JSON. Give a model.json",
    ("predict", "nothing.json", "shop.csv"): "nothing.json cannot be read: No such file or directory. Check the path:",
    ("predict", "runs", "shop.csv"): "runs is not a file. Check the path: a study keeps its model in",
    ("clicks", "log.csv", "-o", "grades.csv", "--column", "document=search"): "; its columns:",
    ("show", "ranktune-runs/mine"): "no study 'mine' in ranktune-runs.",
    ("export", "model.json", "--format", "slor"): "there is no format 'slor'. Did you mean 'solr'?",
    ("show", "mine"): "no study 'mine' in ranktune-runs.",
    ("show", "../mine"): "may not begin with a dot",
    ("resume", "mine"): "no study 'mine'",
    ("tune", "none.toml"): "cannot read the study",
    ("tune", "shpo.csv", "--jobs", "2"): "shpo.csv: there is no such file",  # said by the process that reads
    ("tune", "empty.txt"): "holds no documents",
    ("tune", "shop.csv", *SHOP, "--sampler", "bayes"): "Known:",
    ("tune", "shop.csv", *SHOP, "--home", "log.csv"): "cannot write to",
    ("predict", "model.json", "shop.csv", *SHOP, "-o", "none/scores.txt"): "cannot write none/scores.txt",
    ("reproduce", "solr"): "no paper 'solr' to reproduce. Did you mean 'solar'?",
}


@pytest.mark.parametrize("words", AT_THE_COMMAND_LINE, ids=" ".join)
def test_at_the_command_line(words: tuple[str, ...]) -> None:
    said = run(*words, cwd=Path(), check=2)
    assert AT_THE_COMMAND_LINE[words] in said.stderr and not said.stdout


def tune(**given: Any) -> object:
    return ranktune.tune(TABLE, qid="search", grade="bought", drop="sku", **{"trials": 1} | given)


def changed(**columns: object) -> object:
    return ranktune.read(TABLE.assign(**columns), qid="search", grade="bought", drop="sku")


def success(grades: np.ndarray) -> float:
    return float(grades[0] > 0)


IN_PYTHON: dict[str, Callable[[], object]] = {
    r"tune\(\) too many .* arrays are one argument, as in tune\(\(X, y, qid\)\)": lambda: untyped.tune(X, QID),
    "argument 'label'. Here it is called 'grade'": lambda: untyped.tune(TABLE, label="bought"),
    "argument 'n_trials'. Here it is called 'trials'": lambda: untyped.tune(TABLE, n_trials=3),
    "argument 'random_state'. Here it is called 'seed'": lambda: untyped.tune(TABLE, random_state=3),
    "argument 'trails'. Did you mean 'trials'": lambda: untyped.tune(TABLE, trails=3),
    r"register_metric\('success', success\), and then metric='success'": lambda: tune(metric=success),
    r"Give its name: solvers=\['RankSVM'\]": lambda: tune(solvers=[ranktune.RankSVM()]),
    "register_solver.'Mine', estimator, space.": lambda: tune(solvers=[Ridge()]),
    "no solver 'xgboost'. Here it is called 'XGBoostRanker'": lambda: tune(solvers="xgboost"),
    "trials='10': it must be a whole number": lambda: tune(trials="10"),
    "the predict of Ridge failed .* Give a model that": lambda: tune(baseline=Ridge(), test=OTHER),
    "first: a Ridge shares no parameter with LambdaMART": lambda: tune(first={"LambdaMART": Ridge()}),
    "is not a RankTune model.* the model comes first": lambda: untyped.predict("shop.csv", "model.json"),
    "a DataFrame is no model.* the model comes first": lambda: untyped.predict(TABLE, "model.json"),
    r"a RankSVM is no model.* Call its as_model\(\)": lambda: untyped.predict(ranktune.RankSVM(), TABLE),
    "shop.xls is a spreadsheet.*pandas.read_excel": lambda: untyped.read("shop.xls"),
    "no column 'serach' .* Did you mean 'search'": lambda: untyped.read(TABLE, qid="serach"),
    "columns 'sku' and 'brand' are not numbers.*OneHotEncoder": lambda: untyped.RankSVM().fit(TABLE, X[:, 0], qid=QID),
    "Here it is called 'leaves'": lambda: untyped.LambdaMART(num_leaves=3),
    "has no parameter 'c'.*Did you mean 'C'": lambda: untyped.RankSVM(c=1.0),
    "no study 'mine'": lambda: untyped.resume("mine"),
    r"'search' is the index of the frame: give reset_index\(\) of it": lambda: untyped.read(TABLE.set_index("search")),
    r"Give the name of a column: qid='NAME'.* tune\(\(X, y, qid\)\)": lambda: untyped.tune(TABLE, qid=TABLE["search"]),
    r"Make a frame of it: pandas.DataFrame\(data\)": lambda: untyped.read(TABLE.to_dict("list")),
    "'brand' holds words such as '(Elm|Fir)', 2 in all. Give .*: grades=\"(Elm|Fir)=NUMBER,": lambda: untyped.read(
        TABLE, qid="search", grade="brand", drop="sku"
    ),
    "'price' .numbers, except 'none yet': correct or empty such cells": lambda: changed(
        price=["none yet", *X[1:, 0].tolist()]
    ),
    "remove those rows. A grade of 0 says: not": lambda: changed(bought=[None, *TABLE["bought"][1:]]),
    "each query has one document only": lambda: untyped.tune(TABLE, qid="sku", grade="bought", drop="search", trials=1),
}


@pytest.mark.parametrize("words", IN_PYTHON)
def test_in_python(words: str) -> None:
    with pytest.raises((RankTuneError, TypeError, AttributeError)) as raised:
        IN_PYTHON[words]()
    assert re.search(words, str(raised.value)), raised.value


def test_an_interrupt_counts_trials() -> None:
    assert "1 running trial was put" in str(Interrupted(1)) and "2 running trials were put" in str(Interrupted(2))


MANY = pd.concat([TABLE] * 12, ignore_index=True).assign(search=np.repeat(np.arange(144), 5))
PRICES = (MANY.index % 70).astype(str)
DESCRIBED = {
    "category, 64 of 70 levels 6 values are in no feature: --drop title, or --levels 70": {
        "title": "t" + (MANY.index // 2 % 70).astype(str)
    },
    "is taken as a category, of whose 70 values 64 become features. If they are numbers": {"price": PRICES + " kg"},
    "numbers, except '-': correct or empty such cells": {"price": ["-", *MANY["price"][1:]]},
    "price double feature": {"price": ["n/a", *MANY["price"][1:]]},
    "days before 2026-02-28": {"day": [f"{1 + k % 28}.02.2026" for k in MANY.index]},
    "each query has one document only": {"search": MANY.index},
}


@pytest.mark.filterwarnings("ignore:the column 'price'")
@pytest.mark.parametrize("words", DESCRIBED)
def test_a_description_says_what_to_change(words: str) -> None:
    MANY.assign(**DESCRIBED[words]).to_csv("many.csv", index=False)
    said = " ".join(run("data", "many.csv", *SHOP, cwd=Path()).stdout.split())
    assert words in said, said
