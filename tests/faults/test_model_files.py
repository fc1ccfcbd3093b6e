"""Old, damaged, foreign and hostile model files: read as they were written, or soon a ModelFormatError, and nothing is
run or allocated."""

import hashlib
import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import ModelFormatError
from ranktune.solvers.models.base import load_model
from tests.support.model_file_samples import (
    archive,
    linear,
    npy,
    refused,
    rewritten,
    save_large,
    save_small,
    sidecar,
    with_sidecar,
)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return save_small(tmp_path)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    return save_large(tmp_path)


# --- foreign files ---


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "not a whole JSON"),
        (b"[1, 2]", "not a RankTune model"),
        (b"3", "not a RankTune model"),
        (b'{"format": "onnx"}', "not a RankTune model"),
        (b'{"format": "ranktune-model", "version": 2}', "version 2"),
        (b'{"format": "ranktune-model", "version": true}', "version True"),
        (b'{"format": "ranktune-model", "version": 1}', "digest"),
        (b'{"format": "ranktune-model", "format": "x"}', "twice"),
        (b'{"format": NaN}', "range"),
        (b'{"format": 1e999}', "range"),
        (b'{"a": [[1e999]]}', "range"),
        (b'{"version": ' + b"9" * 5_000 + b"}", "not a whole JSON"),
        (b"[" * 50_000, "not a whole JSON|nested"),
        (b"[" * 40_000 + b"]" * 40_000, "nested"),
        (b'{"a": [' + b"[]," * 200_000 + b"0]}", "more lists"),
        (b" " * (5 * 2**20), "more than"),
    ],
    ids=lambda value: repr(value[:24]) if isinstance(value, bytes) else None,
)
def test_what_is_not_a_model_is_refused(tmp_path: Path, data: bytes, match: str) -> None:
    path = tmp_path / "foreign.json"
    path.write_bytes(data)
    assert re.search(match, refused(path))


def test_what_is_not_a_file_is_refused(tmp_path: Path) -> None:
    assert re.search("cannot be read", refused(tmp_path / "missing.json"))
    assert re.search("not a file", refused(tmp_path))
    assert re.search("cannot be read", refused(tmp_path / "with\0nul.json"))
    os.mkfifo(tmp_path / "pipe.json")
    assert re.search("not a file", refused(tmp_path / "pipe.json"))


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("kind", "forest", "kind 'forest'.*Known: blend, custom, linear, trees"),
        ("kind", ["linear"], "kind"),
        ("n_features", 41, "names 40 of 41|do not fit"),
        ("n_features", "40", "n_features"),
        ("n_features", True, "n_features"),
        ("feature_names", ["a"], "names 1 of 40"),
        ("feature_names", [1] * 40, "text"),
        ("scaling", "zscore", "zscore"),
        ("parameters", [1], "parameters"),
        ("parameters", {"C": [1]}, "plain values"),
        ("solver", None, "solver"),
        ("metric", 3, "metric"),
        ("weights", None, "no weights"),
        ("weights", {}, "cannot be read"),
        ("weights", {"value": [1.0] * 39}, "do not fit"),
        ("weights", {"value": ["1"] * 40}, "list of numbers"),
        ("weights", {"value": [True] * 40}, "list of numbers"),
        ("weights", {"value": [10**400] * 40}, "cannot be read"),
        ("weights", {"value": "1" * 40}, "list of numbers"),
        ("weights", {"value": [1.0], "index": [40]}, "do not fit"),
        ("weights", {"value": [1.0], "index": [-1]}, "do not fit"),
        ("weights", {"value": [1.0, 2.0], "index": [3, 3]}, "do not fit"),
        ("weights", {"value": [1.0], "index": [2**70]}, "cannot be read"),
        ("weights", {"value": [1.0], "index": [0.5]}, "whole numbers"),
        ("weights", {"value": [1.0], "index": [0, 1]}, "do not fit"),
    ],
)
def test_fields_that_cannot_be_are_refused(small: Path, name: str, value: Any, match: str) -> None:
    rewritten(small, lambda content: content.update({name: value}))
    assert re.search(match, refused(small))


def test_a_missing_field_is_refused(small: Path) -> None:
    whole = small.read_bytes()
    for name in json.loads(whole):
        small.write_bytes(whole)
        rewritten(small, lambda content: content.pop(name))  # noqa: B023 - called at once
        if name in ("format", "version", "kind", "solver", "parameters", "n_features", "weights"):
            assert refused(small)
        elif name != "sha256":
            assert load_model(small).nonzeros == 40


# --- hostile files ---


class Bomb:
    """Makes a file if it is ever unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> Any:
        return (Path.touch, (Path(self.path),))


def test_pickled_objects_are_not_unpickled(large: Path, tmp_path: Path) -> None:
    objects = np.empty(1_500, dtype=object)
    objects[:] = Bomb(tmp_path / "exploded")
    with_sidecar(large, archive({"value.npy": npy(objects, allow_pickle=True)}))
    assert re.search("cannot be read", refused(large))
    import pickle

    with_sidecar(large, pickle.dumps(Bomb(tmp_path / "exploded")))
    assert re.search("cannot be read", refused(large))
    assert not (tmp_path / "exploded").exists()
    pickle.loads(pickle.dumps(Bomb(tmp_path / "exploded")))
    assert (tmp_path / "exploded").exists()  # it would have


def test_a_huge_claimed_shape_allocates_nothing(large: Path, small: Path) -> None:
    header = b"\x93NUMPY\x01\x00" + (118).to_bytes(2, "little")
    text = b"{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000,), }".ljust(117) + b"\n"
    with_sidecar(large, archive({"value.npy": header + text}))
    assert re.search("claims to be", refused(large))
    with_sidecar(large, archive({"value.npy": header + text}), shape=[4_000_000_000])
    assert re.search("claims weights of shape", refused(large))
    rewritten(large, lambda content: content.update(n_features=4_000_000_000))
    assert re.search("claims 4000000000 features", refused(large))
    rewritten(small, lambda content: content.update(n_features=2**40, feature_names=None))
    assert re.search("claims", refused(small))
    little = {"n_features": 2**26, "feature_names": None, "weights": {"value": [1.0], "index": [5]}}
    rewritten(small, lambda content: content.update(little))
    assert re.search("1 weights that do not fit", refused(small))


@pytest.mark.parametrize(
    "data",
    [
        archive({"value.npy": npy(np.zeros(1_500))}, zipfile.ZIP_DEFLATED),
        archive({"value.npy": npy(np.zeros(1_500)), "more.npy": b""}),
        archive({"index.npy": npy(np.arange(1_500))}),
        archive({"value.npy": npy(np.zeros(1_499))}),
        archive({"value.npy": npy(np.zeros(1_500))[:-8]}),
        archive({"value.npy": npy(np.zeros(1_500)) + b"\0"}),
        archive({"value.npy": npy(np.zeros(1_500, dtype=">f8"))}),
        archive({"value.npy": npy(np.zeros(1_500, dtype=np.float32))}),
        archive({"value.npy": npy(np.zeros((1_500, 1)))}),
        archive({"value.npy": npy(np.full(1_500, np.nan))}),
        archive({"value.npy": npy(np.full(1_500, np.inf))}),
        archive({"value.npy": b"\x93NUMPY\x01\x00\x40\x00__import__('os').abort()".ljust(74)}),
        archive({"../value.npy": npy(np.zeros(1_500))}),
        b"not a zip at all",
        b"",
    ],
)
def test_weights_that_are_not_what_they_claim_are_refused(large: Path, data: bytes) -> None:
    with_sidecar(large, data)
    assert refused(large)


def test_a_file_that_inflates_is_not_inflated(large: Path) -> None:
    with_sidecar(large, archive({"value.npy": npy(np.zeros(1_500)) + b"\0" * 2**26}, zipfile.ZIP_DEFLATED))
    assert re.search("more than the", refused(large))  # 64 kB is already too long
    with_sidecar(large, archive({"value.npy": b"\0" * 2**23}, zipfile.ZIP_DEFLATED))
    assert re.search("too large", refused(large))


def test_weights_are_looked_for_in_the_folder_of_the_model_only(large: Path, tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    data, manifest = sidecar(large).read_bytes(), large.read_bytes()
    (tmp_path / "outside.npz").write_bytes(data)
    (inner / "m.json").write_bytes(manifest)
    names = [
        "../outside.npz",
        str(tmp_path / "outside.npz"),
        "..\\outside.npz",
        "./x.npz",
        "..",
        "",
        "a/../../outside.npz",
    ]
    for name in [*names, "x\0.npz", "model.json", None, 3, ["a.npz"]]:
        (inner / "m.json").write_bytes(manifest)
        rewritten(inner / "m.json", lambda content: content["weights"].update(file=name))  # noqa: B023 - called at once
        assert re.search("folder of the model", refused(inner / "m.json"))


def test_names_beside_the_model_are_checked_like_weights(small: Path) -> None:
    whole = small.read_bytes()
    good = b"\n".join(b"name %d" % i for i in range(40))
    for data, match in [
        (good, None),
        (good[:-9], "names 39 of 40"),
        (good.replace(b"name 7", b"name \\q"), "names cannot be read"),
        (good.replace(b"name 7", b"name \xff"), "names cannot be read"),
    ]:
        small.write_bytes(whole)
        (small.parent / "names.txt").write_bytes(data)
        entry = {"file": "names.txt", "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
        rewritten(small, lambda content: content.update(feature_names=entry))  # noqa: B023 - called at once
        if match is None:
            assert load_model(small).feature_names == tuple(f"name {i}" for i in range(40))
        else:
            assert re.search(match, refused(small))
        for size in (3, -1, 2**40, None, "9"):
            rewritten(small, lambda content: content["feature_names"].update(bytes=size))  # noqa: B023 - called at once
            assert re.search("more than the 3|claims names of", refused(small))
    rewritten(small, lambda content: content["feature_names"].update(file="../names.txt", bytes=500))
    assert re.search("folder of the model", refused(small))


# --- old files ---


VERSION_1 = r"""{
 "format": "ranktune-model",
 "version": 1,
 "kind": "linear",
 "solver": "ElasticRank",
 "parameters": {"l1": 0.01, "loss": "logistic", "averaged": true, "seed": 7},
 "n_features": 6,
 "feature_names": ["a", "b", "c", "d", "e", "f \u00e9"],
 "scaling": "list",
 "metric": "ndcg@10:letor",
 "data": "00ff",
 "created": "2026-01-02T03:04:05+00:00",
 "ranktune": "0.1.0",
 "weights": {"value": [0.1, -0.0025], "index": [2, 5]},
 "sha256": "fc7c9e645c1009d679d281eb4693af879cd6a9f9dc6044713025fb00da8cb8a2"
}
"""


def test_a_file_of_version_1_stays_readable(tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text(VERSION_1)
    model = linear(tmp_path / "m.json")
    assert model.weights.tolist() == [0.0, 0.0, 0.1, 0.0, 0.0, -0.0025]
    assert (model.solver, model.list_scaling, model.metric) == ("ElasticRank", True, "ndcg@10:letor")
    assert model.parameters == {"l1": 0.01, "loss": "logistic", "averaged": True, "seed": 7}
    assert model.feature_names == ("a", "b", "c", "d", "e", "f é")
    assert (model.fingerprint, model.created, model.version) == ("00ff", "2026-01-02T03:04:05+00:00", "0.1.0")
    model.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == VERSION_1


# --- damage ---


def test_weights_cut_at_every_64th_byte_are_refused(large: Path) -> None:
    weights = sidecar(large)
    whole = weights.read_bytes()
    for length in range(0, len(whole), 64):
        weights.write_bytes(whole[:length])
        with pytest.raises(ModelFormatError, match="not the file"):
            load_model(large)


def test_truncated_weights_whose_digest_was_made_to_fit_are_refused(large: Path) -> None:
    whole = sidecar(large).read_bytes()
    for length in range(0, len(whole), 64):
        with_sidecar(large, whole[:length])
        with pytest.raises(ModelFormatError):
            load_model(large)


def test_random_changes_of_weights_whose_digest_was_made_to_fit(large: Path) -> None:
    whole, manifest = sidecar(large).read_bytes(), large.read_bytes()
    generator = np.random.default_rng(2)
    heads = [i for i in range(len(whole)) if i < 200 or i > len(whole) - 150]
    refusals = 0
    for _ in range(100):
        data = bytearray(whole)
        data[generator.choice(heads)] ^= 1 << generator.integers(0, 8)
        large.write_bytes(manifest)
        with_sidecar(large, bytes(data))
        try:
            assert linear(large).weights.shape == (1_500,)
        except ModelFormatError:
            refusals += 1
    assert refusals > 25


def test_the_wrong_weights_are_noticed(large: Path) -> None:
    sidecar(large).unlink()
    assert re.search("cannot be read: No such file", refused(large))
    sidecar(large).write_bytes(archive({"value.npy": npy(np.ones(1_500))}))
    assert re.search("not the file", refused(large))


def test_a_change_by_hand_is_noticed(small: Path) -> None:
    small.write_text(small.read_text().replace('"C": 0.5', '"C": 0.7'))
    assert re.search("digest", refused(small))
