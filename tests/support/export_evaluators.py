"""Exports scored by what reads them: the systems themselves where they are here, else what their sources say they do.

A document is a mapping from names of features to numbers: a feature that it lacks is left out, or NaN.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from ranktune.solvers.export.absent import NAN
from tests.support.engine_grammars import load_vespa
from tests.support.export_readers import READERS

Documents: TypeAlias = list[dict[str, float]]
Scores: TypeAlias = Callable[[Documents], Floats]


def rows(documents: Documents, names: Sequence[str], absent: float = np.nan) -> Floats:
    return np.array([[document.get(name, absent) for name in names] for document in documents]).reshape(-1, len(names))


def documents(X: Floats, names: Sequence[str], *, left_out: bool = False) -> Documents:
    """Documents, in which what is missing is left out or NaN."""
    result = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    return [{name: x for name, x in document.items() if x == x} for document in result] if left_out else result


def each(score: Callable[[Mapping[str, float]], Any]) -> Scores:
    return lambda documents: np.array([score(document) for document in documents], dtype=np.float64)


def by_reader(format: str, content: str, names: Sequence[str], absent: str = NAN) -> Scores:
    """The reader of an engine's format, to which a feature that a document lacks arrives as absent."""
    if format == "vespa":
        return each(load_vespa(content))
    score = READERS[format](content, absent)
    keys = [str(number) for number in range(1, len(names) + 1)] if format == "ranklib" else names
    return lambda documents: score(dict(zip(keys, rows(documents, names).T, strict=True)), len(documents))


def by_onnxruntime(content: bytes, _: Sequence[str]) -> Scores:
    onnxruntime: Any = pytest.importorskip("onnxruntime")
    session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
    names = json.loads(session.get_modelmeta().custom_metadata_map["feature_names"])

    def scores(documents: Documents) -> Floats:
        (result,) = session.run(None, {"features": rows(documents, names).astype(np.float32)})
        assert result.shape == (len(documents), 1) and result.dtype == np.float32
        return np.asarray(result[:, 0], dtype=np.float64)

    return scores


def by_pmml4s(content: str, _: Sequence[str]) -> Scores:
    pypmml: Any = pytest.importorskip("pypmml")
    if shutil.which("java") is None:
        pytest.skip("java is not here: apt install default-jre-headless")
    loaded = pypmml.Model.fromString(content)
    assert list(loaded.outputNames) == ["score"]
    return each(lambda document: loaded.predict({name: x for name, x in document.items() if x == x})["score"])


def by_lightgbm(content: str, names: Sequence[str]) -> Scores:
    booster = pytest.importorskip("lightgbm").Booster(model_str=content)
    return lambda documents: np.asarray(booster.predict(rows(documents, names)))


def by_liblinear(content: str, names: Sequence[str]) -> Scores:
    """It prints six digits, and has no other way to say 0 than to leave a feature out."""
    program = shutil.which("liblinear-predict")
    if program is None:
        pytest.skip("liblinear-predict is not here: apt install liblinear-tools")

    def scores(documents: Documents) -> Floats:
        with TemporaryDirectory() as name:
            folder, X = Path(name), np.nan_to_num(rows(documents, names))
            lines = ("0 " + " ".join(f"{k}:{x!r}" for k, x in enumerate(row, 1) if x) for row in X.tolist())
            (folder / "rows").write_text("\n".join(lines) + "\n")
            (folder / "model").write_text(content)
            command: list[str | Path] = [program, folder / "rows", folder / "model", folder / "out"]
            subprocess.run(command, check=True, capture_output=True)
            return np.loadtxt(folder / "out", ndmin=1)

    return scores


def by_json(content: str, _: Sequence[str]) -> Scores:
    """Plain JSON, read as its description says."""
    made = json.loads(content)
    assert (made["format"], made["version"]) == ("ranktune-export", 1)

    def of_document(document: Mapping[str, float]) -> float:
        total, x = 0.0, [document.get(feature["name"], np.nan) for feature in made["features"]]
        for feature, value in zip(made["features"], x, strict=True):
            total += feature.get("missing", 0.0) if np.isnan(value) else feature.get("weight", 0.0) * value
        for tree in made.get("trees", ()):
            node = 0 if tree["feature"] else -1
            while node >= 0:
                value, limit = x[tree["feature"][node]], tree["threshold"][node]
                of_missing = tree["missing_left"][node] if "missing_left" in tree else limit >= 0.0
                node = tree["left" if (of_missing if np.isnan(value) else value <= limit) else "right"][node]
            total += tree["value"][~node]
        return total

    return each(of_document)


def by_python(content: str, _: Sequence[str]) -> Scores:
    made: dict[str, Any] = {}
    exec(content, made)
    return each(made["score"])


EVALUATORS: dict[str, Callable[[Any, Sequence[str]], Scores]] = {
    **{format: partial(by_reader, format) for format in (*READERS, "vespa")},
    "onnx": by_onnxruntime,
    "pmml": by_pmml4s,
    "lightgbm": by_lightgbm,
    "liblinear": by_liblinear,
    "json": by_json,
    "python": by_python,
}
"""Format -> function(content, names of all features) that returns what scores documents."""
