"""Random boosters of LightGBM, XGBoost and CatBoost on random data: RankTune gives their scores, or refuses them.

A case is a library, kinds of features, options of training, and a form of the data. Scores are those of the predict of
the library, which is given what a user of it would give.
"""

import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from ranktune.solvers.core.arrays import Array, Floats
from ranktune.solvers.core.errors import DataError, ModelFormatError, RankTuneWarning
from ranktune.solvers.models.base import load_model
from ranktune.solvers.rankings.opening import open_ranking
from ranktune.solvers.rankings.parts import read_for

LIBRARIES = ("lightgbm", "xgboost", "catboost")
FORMS = ("csv", "letor", "parquet", "frame", "scipy")
NEAR = 1e-6

Generator = np.random.Generator


def frame_of(generator: Generator, n: int, categories: str, missing: bool) -> pd.DataFrame:
    """Columns of numbers, with zeros and missing values, and of categories: text, numbers and truth values."""
    frame = pd.DataFrame(generator.normal(size=(n, 3)).round(2), columns=["a", "b", "c"])
    frame[frame.abs() < 0.5] = 0.0
    frame["d"] = generator.integers(0, 5, n).astype(float)
    if missing:
        frame = frame.mask(generator.random(frame.shape) < 0.15)
    if categories:
        letter = "\u00e9" if "lightgbm" in categories else "e"  # XGBoost does not keep it whole
        values = [f"{word}, {letter}{k}" for word in ("red", "blue") for k in range(4)]
        frame.insert(1, "colour", pd.Categorical(generator.choice(values, n), categories=generator.permutation(values)))
        frame["size"] = pd.Categorical(generator.integers(1, 5, n))
    if "lightgbm" in categories:
        frame["new"] = pd.Categorical(generator.random(n) < 0.5)
    if categories == "lightgbm csv":  # Parquet has numbers where pandas has categories of decimals
        frame["rate"] = pd.Categorical(generator.choice([0.5, 2.0, 7.0], n))
    return frame


def trained(library: str, generator: Generator, X: Any, y: Floats) -> Any:
    """A booster with random options, as an estimator or not, stopped early or not."""
    early, weights = generator.random() < 0.4, generator.random(len(y)) + 0.5 if generator.random() < 0.3 else None
    noise = generator.normal(size=len(y))
    if library == "lightgbm":
        import lightgbm

        options = {
            "verbosity": -1, "num_threads": 1, "min_data_in_leaf": 5, "min_data_per_group": 5, "max_cat_to_onehot": 2,
            "boosting": generator.choice(["gbdt", "gbdt", "dart"]), "use_missing": bool(generator.random() < 0.8),
            "zero_as_missing": bool(generator.random() < 0.3), "seed": int(generator.integers(1000)),
        }  # fmt: skip
        data = lightgbm.Dataset(X, y, weight=weights)
        if early and options["boosting"] != "dart":
            stop: list[Any] = [lightgbm.early_stopping(3, verbose=False)]
            return lightgbm.train(options, data, 20, valid_sets=[lightgbm.Dataset(X, noise)], callbacks=stop)
        return lightgbm.train(options, data, 10)
    if library == "xgboost":
        import xgboost

        kind = generator.choice(["gbtree", "gbtree", "dart"])
        options = {"n_jobs": 1, "booster": kind, "max_depth": 4, "random_state": int(generator.integers(1000))}
        if kind == "dart":
            options["rate_drop"] = 0.3
        more = {"eval_set": [(X, noise)], "verbose": False} if early else {}
        estimator = xgboost.XGBRegressor(
            **options, n_estimators=12, early_stopping_rounds=3 if early else None, enable_categorical=True,
            num_parallel_tree=int(generator.integers(1, 3)), max_cat_to_onehot=2,
        )  # fmt: skip
        return estimator.fit(X, y, sample_weight=weights, **more)
    import catboost

    options = {"iterations": 10, "depth": 4, "thread_count": 1, "allow_writing_files": False, "verbose": False}
    kind = generator.integers(3)
    if kind == 0:
        return catboost.CatBoostRegressor(**options).fit(X, y, sample_weight=weights)
    if kind == 1:
        return catboost.CatBoostClassifier(**options).fit(X, y > 0, sample_weight=weights)
    grades = np.digitize(y, [-1.0, 0.0, 1.0])
    return catboost.CatBoostRanker(**options).fit(X, grades, group_id=np.arange(len(y)) // 10)


def scores_of(library: str, model: Any, X: Any) -> Floats:
    """What the predict of the library gives."""
    if library == "lightgbm":
        return np.asarray(model.predict(X, raw_score=True))
    if library == "catboost":
        import catboost

        return np.asarray(catboost.CatBoost.predict(model, X, prediction_type="RawFormulaVal"))
    return np.asarray(model.predict(X), dtype=np.float64)


def written(form: str, frame: pd.DataFrame, y: Array, qid: Array, folder: Path) -> Any:
    """The data in a form that RankTune reads; a text leaves out what is missing and some zeros."""
    table = frame.assign(qid=qid, grade=(y > 0).astype(int))
    columns = np.random.default_rng(len(frame.columns)).permutation(table.columns)  # they have names
    path = folder / f"data.{form}"
    if form == "csv":
        table[columns].to_csv(path, index=False)
    elif form == "parquet":
        table[columns].to_parquet(path)
    elif form == "frame":
        return table[columns]
    elif form == "scipy":
        return rows_of(frame), table["grade"].to_numpy(), qid
    else:
        lines = []
        for row, values in enumerate(frame.to_numpy()):
            pairs = [f"{k + 1}:{value!r}" for k, value in enumerate(values.tolist()) if not np.isnan(value)]
            lines.append(f"{table['grade'][row]} qid:{qid[row]} {' '.join(pairs)}")
        path.write_text("\n".join(lines))
    return path


def rows_of(frame: pd.DataFrame) -> sparse.csr_array:
    """Sparse rows that leave out what is missing, and keep zeros."""
    X = frame.to_numpy(dtype=np.float64)
    row, column = np.nonzero(~np.isnan(X))
    return sparse.csr_array(sparse.coo_array((X[row, column], (row, column)), shape=X.shape))


def case(library: str, seed: int) -> str:
    """ "equal", "refused", or what differs."""
    generator = np.random.default_rng([LIBRARIES.index(library), seed])
    form = str(generator.choice(FORMS))
    table = form in ("csv", "parquet", "frame")
    categories = f"{library} {form}" if table and library != "catboost" and generator.random() < 0.5 else ""
    missing = bool(generator.random() < 0.6)
    n = 200
    frame = frame_of(generator, n, categories, missing)
    y = generator.normal(size=n) + frame["a"].fillna(1.0).to_numpy() + (frame["d"] == 2.0)
    if categories:
        y = y + frame["colour"].astype(str).str.startswith("red") + 0.5 * (frame["size"] == 3)
    y = np.asarray(y, dtype=np.float64)
    if table:
        given: Any = frame
    else:
        given = sparse.csr_matrix(frame.fillna(0.0).to_numpy()) if generator.random() < 0.5 else frame.to_numpy()
    model = trained(library, generator, given, y)
    new = frame_of(generator, n, categories, missing)
    absent: Any = new
    if not table:  # what the library makes of sparse rows
        absent = rows_of(new) if library == "xgboost" else sparse.csr_array(rows_of(new)).toarray()
    expected = scores_of(library, model, absent)
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", RankTuneWarning)
        folder = Path(place)
        path = (
            folder
            / {"lightgbm": "m.txt", "xgboost": f"m.{'ubj' if seed % 2 else 'json'}", "catboost": "m.json"}[library]
        )
        model.save_model(str(path), **({"format": "json"} if library == "catboost" else {}))
        data = written(form, new, y, np.arange(n) // 10, folder)
        givens: list[tuple[str, Callable[[], Floats]]] = [
            ("file", lambda: _ranked(path, data)), ("memory", lambda: _ranked(model, data)),
            ("load_model", lambda: _loaded(path, data)),
        ]  # fmt: skip
        outcomes = []
        for name, score in givens:
            try:
                difference = float(np.abs(score() - expected).max() / max(1.0, np.abs(expected).max()))
            except (DataError, ModelFormatError) as error:
                outcomes.append(f"refused: {error}"[:160] if name != "load_model" else "refused")
            else:
                outcomes.append("equal" if difference <= NEAR else f"{name} of {form} differs by {difference}")
    wrong = [outcome for outcome in outcomes if "differs" in outcome]
    return wrong[0] if wrong else outcomes[0]


def _ranked(given: Any, data: Any) -> Floats:
    ranking = open_ranking(given)
    queries = read_for(ranking, data, {})
    return queries.in_caller_order(ranking.scores(queries))


def _loaded(path: Path, data: Any) -> Floats:
    from ranktune.solvers.data.sources import catalogue

    model = load_model(path)
    return model.predict(catalogue.read_for(model, data))
