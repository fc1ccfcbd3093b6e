"""Damaged model files of LightGBM, XGBoost and CatBoost: what their readers make of them, and what the libraries do.

The libraries score them in forks of one process, `python -m tests.fuzzing.library_models`, which they may end.
"""

import json
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.core.errors import RankTuneError
from ranktune.solvers.data.queries import Queries
from ranktune.solvers.models.other_libraries.xgboost import NUMBERS as NUMBERS_OF_UBJSON
from ranktune.solvers.rankings.opening import open_ranking

KINDS = ("txt", "json", "ubj", "catboost.json")
TOKENS = (
    *("0", "1", "-1", "2", "-2", "3", "6", "7", "-8", "9", "255", "-129", "65536", "2147483647", "-2147483648"),
    *(
        "4294967295",
        "4294967297",
        "1e308",
        "-1e308",
        "1e999",
        "nan",
        "inf",
        "-inf",
        "0.5",
        "1_0",
        "\uff11",
        "0x1",
        "x",
        "",
    ),
)
NUMBERS = (0, 1, -1, 2, -2, 3, 6, 7, 40, 255, 2**24, 2**31 - 1, -(2**31), 2**32, 2**40, 2**63, 0.5, 1e38, -1e38, 1e39)
OTHERS: tuple[Any, ...] = (math.nan, math.inf, None, "x", [], True, "1", "-1", "3", "99", "4294967297")
"""What numbers, and text that says a number, are changed to."""
FLOATS_TOO = (*NUMBERS, math.nan, math.inf)
_ARRAY = re.compile(rb"\[\$([lLUdD])#L(.{8})", re.DOTALL)


@cache
def data() -> tuple[Floats, Floats]:
    """Features, of which the last is a category and some values are missing, and targets."""
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(400, 4)), 1)
    X[:, 3] = generator.integers(0, 40, 400)
    y = X[:, 0] + (X[:, 3] % 3 == 1)
    X[generator.random(X.shape) < 0.1] = np.nan
    return X, y


@cache
def original(kind: str) -> bytes:
    """The file of a small model: splits by numbers, and by categories but of CatBoost."""
    X, y = data()
    if kind == "txt":
        import lightgbm

        options = {"verbosity": -1, "num_threads": 1, "num_leaves": 6, "min_data_per_group": 5, "max_cat_to_onehot": 1}
        made = lightgbm.train(options | {"cat_smooth": 1}, lightgbm.Dataset(X, y, categorical_feature=[3]), 4)
        return str(made.model_to_string()).encode()
    if kind == "catboost.json":
        return _original_of_catboost(X, y)
    import xgboost

    types = {"feature_types": ["q", "q", "q", "c"], "enable_categorical": True}
    options = {"max_depth": 3, "nthread": 1, "max_cat_to_onehot": 1}
    return bytes(xgboost.train(options, xgboost.DMatrix(X, y, **types), 4).save_raw(kind))


def _original_of_catboost(X: Floats, y: Floats) -> bytes:
    import catboost

    options = {"iterations": 4, "depth": 3, "thread_count": 1, "logging_level": "Silent", "allow_writing_files": False}
    sides = {"per_float_feature_quantization": ["0:nan_mode=Max", "1:nan_mode=Min"]}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        catboost.CatBoost(options | sides).fit(X, y).save_model(str(path), format="json")
        whole = json.loads(path.read_bytes())
    del whole["model_info"]  # nothing that scores
    return json.dumps(whole).encode()


def mutant(kind: str, seed: int) -> bytes:
    """A file with one change: of a number, a count or a name, or cut."""
    generator, content = np.random.default_rng([seed, *kind.encode()]), original(kind)
    if generator.random() < 0.1:
        return content[: int(generator.integers(40, len(content)))]
    return {"txt": _of_text, "json": _of_json, "ubj": _of_ubjson, "catboost.json": _of_json}[kind](content, generator)


def _of_text(content: bytes, generator: np.random.Generator) -> bytes:
    lines = content.decode().split("\n")
    end = lines.index("end of trees")
    at = int(generator.choice([k for k in range(end) if "=" in lines[k]]))
    name, _, values = lines[at].partition("=")
    tokens = values.split(" ")
    k, token = int(generator.integers(len(tokens))), str(generator.choice(TOKENS))
    change = int(generator.integers(10))
    tokens[k : k + (change != 0)] = [token] if change > 1 else []
    lines[at : at + 1] = [] if change == 2 else [f"{name}={' '.join(tokens)}"] * (1 + (change == 3))
    text = "\n".join(lines)
    if generator.random() < 0.9:  # or else the sizes of trees tell
        parts = text.partition("\nend of trees")[0].split("\nTree=")[1:]
        sizes = " ".join(str(len(f"Tree={part}\n")) for part in parts)
        text = re.sub("\ntree_sizes=.*", f"\ntree_sizes={sizes}", text)
    return text.encode()


def _of_json(content: bytes, generator: np.random.Generator) -> bytes:
    whole = json.loads(content)
    places: list[tuple[Any, Any]] = []
    waiting: list[Any] = [whole.get("learner", whole)]
    while waiting:
        value = waiting.pop()
        inner = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
        places += [(value, inner[int(generator.integers(len(inner)))][0])] if inner else []
        waiting += [item for _, item in inner if isinstance(item, dict | list)]
    values, at = places[int(generator.integers(len(places)))]
    match int(generator.integers(8)):
        case 0:
            del values[at]
        case 1 if isinstance(values, list):
            values.append(values[at])
        case 2:
            values[at] = OTHERS[int(generator.integers(len(OTHERS)))]
        case _:
            number = NUMBERS[int(generator.integers(len(NUMBERS)))]
            values[at] = type(values[at])(number) if isinstance(values[at], str | float) else number
    return json.dumps(whole).encode()


def _of_ubjson(content: bytes, generator: np.random.Generator) -> bytes:
    arrays = [found for found in _ARRAY.finditer(content) if int.from_bytes(found[2])]
    found = arrays[int(generator.integers(len(arrays)))]
    kind, count = np.dtype(NUMBERS_OF_UBJSON[found[1].decode()]), int.from_bytes(found[2])
    number = FLOATS_TOO[int(generator.integers(len(FLOATS_TOO)))]
    match int(generator.integers(8)):
        case 0:
            length = int(generator.choice([0, count - 1, count + 1, 2**40, 2**63 - 1]))
            change, at = length.to_bytes(8), found.start(2)
        case 1:  # a count, which is text
            texts = list(re.finditer(rb"SL.{7}\x01(\d)", content, re.DOTALL))
            change, at = str(number)[-1:].encode(), texts[int(generator.integers(len(texts)))].start(1)
        case 2:
            change, at = generator.bytes(1), int(generator.integers(len(content)))
        case _:
            with np.errstate(all="ignore"):
                change = np.array(number).astype(kind).tobytes()
            at = found.end() + kind.itemsize * int(generator.integers(count))
    return content[:at] + change + content[at + len(change) :]


def scores_of(path: Path) -> Floats | None:
    """The scores of the data by a file as it is read, None where it is refused."""
    X, y = data()
    try:
        return open_ranking(path).scores(Queries.from_arrays(X, np.zeros(len(y)), group=[10] * 40))
    except RankTuneError:
        return None


def scores_of_libraries(paths: Sequence[Path], folder: Path) -> list[Floats | None]:
    """The scores of the data by the libraries of files, None where a library refuses one, or ends, or does not end."""
    np.save(folder / "X.npy", data()[0])
    subprocess.run([sys.executable, "-m", "tests.fuzzing.library_models", folder / "X.npy", *paths], check=True)
    results = [path.with_suffix(f"{path.suffix}.npy") for path in paths]
    return [np.load(result) if result.exists() else None for result in results]


def _score(path: Path, X: Floats) -> Floats:
    if path.suffix == ".txt":
        import lightgbm

        return np.asarray(lightgbm.Booster(model_file=path).predict(X, raw_score=True, num_threads=1))
    if path.name.endswith("catboost.json"):
        import catboost

        model = catboost.CatBoost().load_model(str(path), format="json")
        return np.asarray(model.predict(X, prediction_type="RawFormulaVal", thread_count=1))
    import xgboost

    booster = xgboost.Booster({"nthread": 1}, model_file=path)
    return np.asarray(booster.predict(xgboost.DMatrix(X, nthread=1), output_margin=True))


def main(features: Path, *paths: Path) -> None:
    """Write the scores of each file beside it, as far as its library comes."""
    X = np.load(features)
    import_module("lightgbm" if paths[0].suffix == ".txt" else "catboost" if "catboost" in paths[0].name else "xgboost")
    for path in paths:
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            continue
        signal.alarm(10)
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os.dup2(2, 1)
            np.save(path.with_suffix(f"{path.suffix}.npy"), _score(path, X))
        finally:
            os._exit(0)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
