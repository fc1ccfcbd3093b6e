"""Mistakes that people make, at the command line and in Python, and the cures they are answered with, which exist."""

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge

import ranktune
from ranktune.command_line.messages import COMMANDS_ELSEWHERE
from ranktune.solvers.core.errors import RankTuneError, RankTuneWarning
from ranktune.solvers.formats import FORMATS
from ranktune.solvers.metrics.presets import MEASURES
from ranktune.solvers.names import SOLVERS
from ranktune.tuner.workers.interrupts import Interrupted
from tests.contracts.test_messages import COMMANDS, EXAMPLES, OF_METRICS, named
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
CUBE, GRADES = X.reshape(12, 5, 2), TABLE["bought"]
OTHER = TABLE.assign(search=QID + 100)
SHOP = ("--qid", "search", "--grade", "bought", "--drop", "sku")
MODEL = ranktune.RankSVM().fit(TABLE[["price", "bm25"]], TABLE["bought"], qid=QID).as_model()
CHANGED: dict[str, dict[str, Any]] = {
    "negative.csv": {"bought": -TABLE["bought"]}, "nothing.csv": {"bought": 0}, "one.csv": {"search": 1, "brand": 2},
    "holes.csv": {"bought": TABLE["bought"].where(TABLE.index != 2)},
}  # fmt: skip
"""Files of the table in which a column is another."""


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
    for name, changes in CHANGED.items():
        TABLE.assign(**changes).to_csv(name, index=False)
    TABLE.rename(columns={"price": "cost"}).to_csv("renamed.csv", index=False)
    lines = [f"{y} qid:{q} 1:{a}\n" for y, q, a in zip(TABLE["bought"], QID, X[:, 0], strict=True)]
    Path("new.txt").write_text("".join(lines))
    MODEL.save("model.json")
    whole = Path("model.json").read_bytes()
    for name, content in {"empty.txt": b"", "binary.csv": bytes(range(256)), "binary.txt": bytes(range(256)), **{
        "alone.txt": b"1 1:0.5\n0 1:0.2\n", "page.csv": b"<!DOCTYPE html><html></html>", "plain.toml": b"data = a.csv",
        "cut.json": whole[:80], "foreign.json": b'{"a": 1}', "model.pkl": b"\x80\x04K\x01.", "ragged.csv": b"a,b\n1\n",
    }}.items():  # fmt: skip
        Path(name).write_bytes(content)


AT_THE_COMMAND_LINE: dict[tuple[str, ...], str] = {
    **{
        (word, "x"): f"No such command '{word}'. Here it is: ranktune {here}."
        for word, here in COMMANDS_ELSEWHERE.items()
    },
    ("tunne", "shop.csv"): "No such command 'tunne'. Did you mean 'tune', 'retune'?",
    ("clicks", "log.csv", "-o", "grades.csv", "--model", "coec-lowest-rank"): "is gone: use coec.",
    ("show", "mine", "--optuna"): "No such option: --optuna. The record is an Optuna study: optuna-dashboard",
    ("show", "--page", "p.html"): "Invalid value for --page: is not for the list of all studies (without NAME): leave",
    ("show", "mine", "--port", "9000"): "Invalid value for --port: is not for a study in the terminal (without --live)",
    ("show", "mine", "--page", "p.html", "--wide"): "Invalid value for --wide: is not for --page: leave it out.",
    ("show", "mine", "two", "--live"): "Invalid value for NAME: one study is shown first: leave out two.",
    ("export", "model.json", "--format", "vespa", "--two-stage", "shop.csv"): "No such option: --two-stage. Export the",
    ("retune", "mine"): "Invalid value for data: is missing: give the new data, or --history or --rollback VERSION.",
    ("retune", "mine", "shop.csv", "--history"): "Invalid value for data: is not for --history: leave it out.",
    ("retune", "mine", "--rollback", "v2", "--trials", "5"): "Invalid value for --trials: is not for --rollback",
    ("retune", "mine", "--rollback", "v2", "--json"): "Invalid value for --json: is not for --rollback: leave it out.",
    ("retune", "mine", "shop.csv", "--page", "p.html"): "Invalid value for --page: needs --history.",
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
    "of products have. Name the grades: --grade COLUMN. Perhaps it is 'bought'.",
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
    ("tune", "api-serch"): "no such file, folder or name. Did you mean 'api-search'?",
    ("tune", "binary.csv"): "binary.csv:3: is not UTF-8 (invalid start byte). Save it as UTF-8.",
    ("tune", "binary.txt"): "binary.txt:1:1: the grade is not a number. A line is GRADE qid:ID INDEX:VALUE",
    ("tune", "page.csv"): "page.csv: cannot be read",
    ("tune", "ragged.csv"): "ragged.csv:2: has 1 cell, and the first line 2: every row needs a cell for each column",
    ("tune", "plain.toml"): "plain.toml is not TOML: Invalid value (at line 1, column 8). Text is in quotes",
    ("tune", "alone.txt"): "alone.txt: no line has a qid: after its grade, and there is no alone.txt.query beside it",
    ("tune", "new.txt", "--qid", "search"): "and new.txt has none: its features have numbers. Leave --qid out, or give",
    ("tune", "new.txt", "--test", "shop.csv"): "no column of the query ids. Name it: --qid COLUMN.",
    ("tune", "negative.csv", *SHOP): "has grade -1: gain=linear needs grades of at least 0. Add a constant to all",
    ("tune", "holes.csv", *SHOP): "'bought' has missing values: 1, the first in row 3 below the titles. Fill them",
    (
        "interleave",
        "--plan",
        "0.03",
    ): "--plan needs the share of ties: give it, as in --ties 0.8, or a log: --judge",
    ("tune", "nothing.csv", *SHOP): "all grades are 0. A ranker needs queries that have documents of different grades",
    ("tune", "one.csv", *SHOP): "1 query cannot be dealt into 5 folds: a query is never split.",
    ("tune", "shop.csv", *SHOP, "--test", "renamed.csv"): "renamed.csv: features that the training data does not have: "
    "cost. Leave those columns out.",
    ("tune", "shop.csv", "--timeout", "0"): "'0' was given. Input should be greater than or equal to 0.001.",
    ("tune", "shop.csv", "--timeout", "abc"): "'abc' was given. Input should be a valid number",
    ("tune", "shop.csv", "--jobs", "0"): "'0' was given. Input should be greater than or equal to 1.",
    ("tune", "shop.csv", *SHOP, "--name", "a/b"): "'a/b': a study's name becomes a folder: it may not begin with",
    ("tune", "shop.csv", *SHOP, "--metric", "ndcg@x"): "the cutoff after @ must be a whole number, as in 'ndcg@10'.",
    ("tune", "shop.csv", *SHOP, "--serve", "lucene"): "lucene is not a system that models are exported to. Known: ela",
    ("tune", "shop.csv", *SHOP, "--memory", "8 gigs"): "it must be a number of bytes, such as 4GB or 512M.",
    ("tune", "shop.csv", *SHOP, "--drop", "skuu"): "there is no column 'skuu'. Did you mean 'sku'?",
    ("tune", "shop.csv", "--fail-unless-better"): "needs a baseline (--baseline, or baseline in the study).",
    ("export", "model.json", "--format", "onnx"): "onnx is not text: add -o FILE.",
    ("predict", "cut.json", "shop.csv"): "cut.json is not a whole JSON file",
    ("predict", "foreign.json", "shop.csv"): "foreign.json is not a RankTune model: it does not say",
    ("predict", "model.pkl", "shop.csv"): "model.pkl is not a RankTune model, which is JSON. Give a model.json",
    ("predict", "model.json", "renamed.csv", *SHOP): "renamed.csv: there is no column 'price'. Known: bm25",
    ("explain", "model.json", "shop.csv", *SHOP, "--query", "999"): "there is no query '999'. Known: 0, 1",
    ("data", "shop.csv", *SHOP, "--output", "runs"): "runs: exists already. Remove it, or write to another folder.",
    ("solvers", "RankSWM"): "no solver 'RankSWM'. Did you mean 'RankSVM'?",
    ("docs", "howto/dta"): "no page 'howto/dta'. Did you mean 'howto/data'?",
    ("docs", "--search", "qwxz"): "no page has all of these words: qwxz",
    ("docs", "--search", " "): "--search needs a word",
    ("solvers", "--warm", "RankSWM"): "no solver 'RankSWM'. Did you mean 'RankSVM'?",
    ("evaluate", "model.json", "shop.csv", *SHOP, "--against", "no.txt"): "no.txt: there is no such file, and no such "
    "column of the data. Known: bm25",
    ("reproduce", "ranksvm"): "ranksvm: no data were given. Add --data FOLDER, which holds Fold1 ... Fold5",
    ("reproduce", "ranksvm", "--data", "runs"): "is not a LETOR folder, which holds Fold1/train.txt",
    ("reproduce", "ranksvm", "--data", "runs", "--dataset", "MQ20"): "there is no published data set 'MQ20'",
    ("reproduce", "ranksvm", "--data", "runs", "--data", "runs", "--dataset", "MQ2008"): "names one data set, but 2",
    ("show", "mine", "--format", "html"): "'html' is not one of 'csv', 'latex', 'markdown'.",
}
THINGS = {*TABLE, "api-search", *COMMANDS, *SOLVERS, *FORMATS, *MEASURES, "features", "solar", "MQ2008", "howto/data"}
"""What names mean that messages suggest, beside files."""


def check_remedies(words: tuple[str, ...], message: str) -> None:
    """Assert that a message names what was given, and that the options, commands and names exist that it suggests."""
    given = [Path(word).read_text() if Path(word).suffix == ".toml" and Path(word).exists() else word for word in words]
    parts = re.findall(r"\w[\w.]*", " ".join(given[words[0] in COMMANDS :]).lower())
    assert "missing" in message or any(part in message.lower().partition("error: ")[2] for part in parts), message
    called = [name for name in re.findall(r"\branktune ([a-z][a-z-]*)", message) if name != "docs"]
    assert {*called} <= COMMANDS.keys(), message
    known = {option for name in (*called, words[0]) if name in COMMANDS for each in COMMANDS[name].params
             for option in each.opts}  # fmt: skip
    assert {*re.findall(r"(?<![\w-])--[a-z][\w-]*", message)} - known - {*words, "--help"} == set(), message
    apart = re.sub(r"--[a-z-]+ \S+|'[^']*'|Known: .*", "", message)
    assert {*named(apart)} <= OF_METRICS | EXAMPLES | {word.partition("=")[0] for word in words}, message
    for name in re.findall(r"Did you mean '([^']*)'|Perhaps it is '([^']*)'", message):
        assert THINGS & {*name} or Path("".join(name)).exists(), message


@pytest.mark.parametrize("words", AT_THE_COMMAND_LINE, ids=" ".join)
def test_at_the_command_line(words: tuple[str, ...]) -> None:
    said = run(*words, cwd=Path(), check=2)
    assert AT_THE_COMMAND_LINE[words] in said.stderr and not said.stdout
    check_remedies(words, said.stderr)


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
    r"argument 'missing'. Options of readers go into reading={'missing': 'zero'}": lambda: untyped.tune(missing="zero"),
    r"resume\(\) missing a required argument: 'name'": lambda: untyped.resume(),
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
    "timeout=0: it must be a positive number": lambda: tune(timeout=0),
    "timeout='10m': it must be a positive number": lambda: tune(timeout="10m"),
    "no column 'cost'|lacks the features price|does not have: cost": lambda: tune(
        test=OTHER.rename(columns={"price": "cost"})
    ),
    "group= sums to 55, but there are 60 rows": lambda: ranktune.RankSVM().fit(X, TABLE["bought"], group=[5] * 11),
    "qid= has 59 entries, but there are 60 rows": lambda: untyped.tune((X, TABLE["bought"], QID[1:])),
    r"y has shape \(59,\) for 60 rows of X: it needs one grade per row": lambda: untyped.tune((X, X[1:, 0], QID)),
    r"cannot read data from tuple.*\(X, y, qid\)": lambda: untyped.tune((X, TABLE["bought"])),
    "y is not numeric: it is <U3, and must hold numbers": lambda: untyped.tune((X, ["Elm"] * 60, QID)),
    r"X has 1 features, and the model was trained on 2": lambda: MODEL.predict(X[:, :1]),
    r"X has shape \(2,\): it must be two-dimensional.*give X.reshape\(1, -1\)": lambda: MODEL.predict(X[0]),
    r"X has shape \(12, 5, 2\).*give X.reshape\(-1, 2\), with qid= or group=": lambda: untyped.tune(
        (CUBE, GRADES, QID)
    ),
    r"it must be two-dimensional.*give X.reshape\(-1, 2\)": lambda: ranktune.RankSVM().fit(CUBE, GRADES, qid=QID),
    r"a row per document.*give X.reshape\(-1, 2\)": lambda: ranktune.RankSVM().fit(X, GRADES, qid=QID).predict(CUBE),
    r"X='shop.csv' is a path.*ranktune.predict\(MODEL, 'shop.csv'\) scores a file": lambda: MODEL.predict("shop.csv"),
    r"ranktune.read\('shop.csv'\) returns what X may be": lambda: ranktune.RankSVM().fit("shop.csv"),
    "the data have no column 'bm25'. Name the columns as in training: price, bm25": lambda: MODEL.predict(
        TABLE[["price"]]
    ),
    "not fitted yet. Call fit": lambda: ranktune.RankSVM().predict(X),
    r"no study 'mien'": lambda: ranktune.resume("mien"),
}
ARGUMENTS = {
    name
    for function in map(untyped.__getattr__, {*ranktune.__all__} - {"__version__"})
    for name in inspect.signature(function).parameters
}


@pytest.mark.parametrize("words", IN_PYTHON)
def test_in_python(words: str) -> None:
    with pytest.raises((RankTuneError, TypeError, AttributeError)) as raised:
        IN_PYTHON[words]()
    message = str(raised.value)
    assert re.search(words, message), message
    assert not re.search(r"(?<![\w-])--[a-z]", message)
    assert {*named(message)} <= ARGUMENTS, message


def test_a_warning_shows_the_line_of_the_user() -> None:
    table = TABLE.assign(price=["n/a", *map(str, X[1:, 0])])
    with pytest.warns(RankTuneWarning, match="holds text, and is read as numbers") as caught:
        ranktune.read(table, qid="search", grade="bought", drop="sku")
    for one in caught:
        line = Path(one.filename).read_text().splitlines()[one.lineno - 1]
        assert Path(one.filename) == Path(__file__) and line.strip().startswith("ranktune.read(table, ")


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
