"""Old and damaged model files: read as they were written, or a ModelFormatError."""

import re
from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.errors import ModelFormatError
from ranktune.solvers.models.base import load_model
from tests.support.model_file_samples import (
    archive,
    linear,
    npy,
    refused,
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


def test_a_manifest_cut_at_any_byte_is_refused(small: Path) -> None:
    whole = small.read_bytes()
    load_model(small)
    for length in range(0, len(whole) - 1, 23):
        small.write_bytes(whole[:length])
        with pytest.raises(ModelFormatError, match=r"s\.json"):
            load_model(small)


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


def test_random_changes_are_refused_or_change_nothing(small: Path) -> None:
    whole, expected = small.read_bytes(), linear(small)
    generator = np.random.default_rng(1)
    loaded = 0
    for _ in range(200):
        data = bytearray(whole)
        for place in generator.integers(0, len(data), generator.integers(1, 4)):
            data[place] = (
                generator.integers(0, 256)
                if generator.random() < 0.5
                else ord(generator.choice(list('0159 ,"[]{}:e.')))
            )
        small.write_bytes(data)
        try:
            got = linear(small)
        except ModelFormatError:
            continue
        loaded += 1
        assert got.weights.tobytes() == expected.weights.tobytes() and got.feature_names == expected.feature_names
    assert loaded < 40  # those where a byte was replaced by itself, or by another kind of white space


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
