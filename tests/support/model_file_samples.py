"""Model files for tests: saved, rewritten under a digest that fits, and refused soon and without allocating."""

import hashlib
import io
import json
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import ModelFormatError
from ranktune.solvers.models.base import load_model
from ranktune.solvers.models.linear import LinearModel


def save_small(folder: Path) -> Path:
    """Write a model whose weights are in its manifest; return its path."""
    names = tuple(f"feature {i}" for i in range(40))
    LinearModel(np.random.default_rng(0).normal(size=40), "RankSVM", parameters={"C": 0.5}, feature_names=names).save(
        folder / "s.json"
    )
    return folder / "s.json"


def save_large(folder: Path) -> Path:
    """Write a model whose weights are in a file beside its manifest; return the manifest's path."""
    LinearModel(np.random.default_rng(0).normal(size=1_500), "RankSVM").save(folder / "m.json")
    return folder / "m.json"


def linear(path: Path) -> LinearModel:
    model = load_model(path)
    assert isinstance(model, LinearModel)
    return model


def sidecar(path: Path) -> Path:
    return path.parent / str(json.loads(path.read_text())["weights"]["file"])


def rewritten(path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    """Change a manifest as somebody hostile would: with a digest that fits."""
    content = json.loads(path.read_text())
    change(content)
    content.pop("sha256", None)
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"))
    content["sha256"] = hashlib.sha256(canonical.encode()).hexdigest()
    path.write_text(json.dumps(content))


def with_sidecar(path: Path, data: bytes, **entry: Any) -> None:
    """Put data beside the manifest at path, under a digest that fits."""
    target = sidecar(path)
    target.write_bytes(data)
    rewritten(path, lambda content: content["weights"].update(sha256=hashlib.sha256(data).hexdigest(), **entry))


def archive(members: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", method) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return stream.getvalue()


def npy(values: Any, **options: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values, **options)
    return stream.getvalue()


def refused(path: Path) -> str:
    """Return the message by which a file is refused, soon and without much memory."""
    begun = time.perf_counter()
    tracemalloc.start()
    try:
        with pytest.raises(ModelFormatError) as caught:
            load_model(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    shown = path.name.replace("\0", "?")  # no terminal obeys it
    assert shown in str(caught.value) or path.stem in str(caught.value)
    assert peak < 100 * 2**20
    assert time.perf_counter() - begun < 5.0  # target 1 s; tracing memory and a busy machine take their share
    return str(caught.value)
