"""Outcomes as bytes: what comes back is what went, and damage is a failure of that trial."""

import io
import zipfile
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ranktune.tuner.evaluation import serialization
from ranktune.tuner.evaluation.serialization import RESULT_CAP, pack, unpack
from ranktune.tuner.evaluation.task import TaskOutcome

FULL = TaskOutcome(
    per_query={"map": np.array([0.1, np.nan, 1.0 / 3.0]), "ndcg@10:letor": np.array([1.0, 0.0, np.inf])},
    nonzeros=3.5,
    seconds=0.1 + 0.2,
    warnings=("UserWarning: öh", "b"),
    bytes=12.0,
    microseconds=7.5,
    begun=1e9 + 1e-6,
    ended=1e9 + 2.0,
    worker="host:12/1",
    stopped="fold 2 of 5",
    steps=((1.5, "fold 1 of 5", float("nan")),),
    path_parameter="C",
    chosen=0.1,
    path=((0.1, 0.5), (1.0, 1.0 / 3.0)),
    learning_curve=((1.0, 0.5),),
    scores=np.arange(5, dtype=np.float32) / np.float32(3),
)


def assert_same(outcome: TaskOutcome, other: TaskOutcome) -> None:
    for field in fields(TaskOutcome):
        a, b = getattr(outcome, field.name), getattr(other, field.name)
        if field.name == "per_query":
            assert list(a) == list(b)
            for name in a:
                np.testing.assert_array_equal(a[name], b[name])
        elif field.name in ("path", "learning_curve"):
            assert a == b
        elif field.name == "steps":
            assert repr(a) == repr(b)
        else:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("outcome", [FULL, TaskOutcome(), TaskOutcome(error="x\ny", given_up=True)])
def test_an_outcome_comes_back_as_it_was(outcome: TaskOutcome) -> None:
    assert_same(unpack(pack(outcome)), outcome)


def test_what_is_too_large_is_a_failure_that_says_so() -> None:
    huge = np.broadcast_to(np.float64(0.5), RESULT_CAP // 8 + 1)
    back = unpack(pack(TaskOutcome({"map": huge}, begun=1.0, ended=2.0, worker="w")))
    assert back.error == "its result takes 64 MB, more than 64"
    assert (back.begun, back.worker, dict(back.per_query)) == (1.0, "w", {})


def test_every_cut_is_a_failure_that_says_so() -> None:
    packed = pack(FULL)
    for end in range(0, len(packed) - 1, 7):
        assert "its result came back damaged" in str(unpack(packed[:end]).error)


@settings(max_examples=200, deadline=None)
@given(place=st.integers(0, len(pack(FULL)) - 1), byte=st.integers(0, 255))
def test_changed_bytes_never_raise(place: int, byte: int) -> None:
    packed = bytearray(pack(FULL))
    packed[place] = byte
    assert isinstance(unpack(bytes(packed)), TaskOutcome)


def member_of(packed: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        return archive.read("header.npy")


def with_array(member: bytes, kind: int = zipfile.ZIP_STORED) -> bytes:
    about = member_of(pack(TaskOutcome({"map": np.zeros(3)})))
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", kind) as archive:
        archive.writestr("header.npy", about)
        archive.writestr("q0.npy", member)
    return made.getvalue()


def test_arrays_that_claim_to_be_huge_or_hold_objects_are_refused() -> None:
    claims, objects = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(claims, {"descr": "<f8", "fortran_order": False, "shape": (4 * 10**9,)})
    np.lib.format.write_array(objects, np.array([{}, 1], dtype=object), allow_pickle=True)
    for member in (claims.getvalue(), objects.getvalue()):
        assert "damaged" in str(unpack(with_array(member)).error)


def test_a_bomb_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serialization, "RESULT_CAP", 10_000)
    bomb = with_array(bytes(20_001), zipfile.ZIP_DEFLATED)
    assert len(bomb) < 1000
    assert "too large when unpacked" in str(unpack(bomb).error)
