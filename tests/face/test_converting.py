"""Converting data and checking what was written, at the command line."""

import json
import os
from pathlib import Path

import pytest

import ranktune
from tests.support.commands import ranktune as run
from tests.support.commands import succeeded


def _source(folder: Path) -> Path:
    path = folder / "data.txt"
    path.write_text("".join(f"{k % 3} qid:{k // 5} 0:{k / 8} 1:{k % 4}\n" for k in range(60)))
    return path


def test_convert_then_describe(tmp_path: Path) -> None:
    source, output = _source(tmp_path), tmp_path / "made"
    result = json.loads(succeeded("data", source, "-o", output, "--zero-based", "--json"))
    assert (result["queries"], result["documents"], result["features"], result["layout"]) == (12, 60, 2, "dense")
    assert ranktune.read(output).fingerprint == ranktune.read(source, one_based=False).fingerprint
    assert succeeded("data", output, "--check") == f"{output}: 60 documents are what was written.\n"


def test_the_summary_says_what_to_do_with_it(tmp_path: Path) -> None:
    said = succeeded("data", _source(tmp_path), "-o", tmp_path / "made", "--zero-based")
    assert said.endswith("made: 12 queries, 60 documents, 2 features (dense float32), 0 MB. Give it as DATA.\n")


def test_damage_is_an_error_with_a_remedy(tmp_path: Path) -> None:
    output = tmp_path / "made"
    ranktune.convert(_source(tmp_path), output, one_based=False)
    path = output / "grades.npy"
    path.write_bytes(path.read_bytes()[:-8] + b"\1" * 8)
    said = run("data", output, "--check", cwd=tmp_path, check=2).stderr
    assert "grades.npy: is damaged" in said and "Convert the source again." in said
    said = run("data", _source(tmp_path), "--check", cwd=tmp_path, check=2).stderr
    assert "is not a converted folder" in said


def test_the_cache_can_be_switched_off_for_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKTUNE_DATA_CACHE", "")
    succeeded("--no-cache", "data", _source(tmp_path), "--zero-based")
    assert os.environ["RANKTUNE_DATA_CACHE"] == "off"
