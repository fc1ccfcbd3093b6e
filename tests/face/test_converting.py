"""Converting data and checking what was written, at the command line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import ranktune
from tests.support.commands import called, ended


def _source(folder: Path) -> Path:
    path = folder / "data.txt"
    path.write_text("".join(f"{k % 3} qid:{k // 5} 0:{k / 8} 1:{k % 4}\n" for k in range(60)))
    return path


def test_convert_then_describe(tmp_path: Path) -> None:
    source, output = _source(tmp_path), tmp_path / "made"
    words = ["data", str(source), "-o", str(output), "--zero-based", "--json"]
    done = called(*words)
    assert done.exit_code == 0, done.output
    result = json.loads(done.stdout)
    assert (result["queries"], result["documents"], result["features"], result["layout"]) == (12, 60, 2, "dense")
    assert ranktune.read(output).fingerprint == ranktune.read(source, one_based=False).fingerprint
    shown = called("data", str(output), "--check")
    assert shown.stdout == f"{output}: 60 documents are what was written.\n"


def test_the_summary_says_what_to_do_with_it(tmp_path: Path) -> None:
    done = called("data", str(_source(tmp_path)), "-o", str(tmp_path / "made"), "--zero-based")
    line = "made: 12 queries, 60 documents, 2 features (dense float32), 0 MB. Give it as DATA.\n"
    assert done.stdout.endswith(line)


def test_damage_is_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "made"
    ranktune.convert(_source(tmp_path), output, one_based=False)
    path = output / "grades.npy"
    path.write_bytes(path.read_bytes()[:-8] + b"\1" * 8)
    assert ended(monkeypatch, "data", output, "--check") == 2
    assert "grades.npy: is damaged" in (said := capsys.readouterr().err)
    assert "Convert the source again." in said
    assert ended(monkeypatch, "data", _source(tmp_path), "--check") == 2
    assert "is not a converted folder" in capsys.readouterr().err


def test_a_folder_that_exists_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "made").mkdir()
    assert ended(monkeypatch, "data", _source(tmp_path), "-o", tmp_path / "made") == 2
    assert "exists already. Remove it, or write to another folder." in capsys.readouterr().err


def test_the_cache_can_be_switched_off_for_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANKTUNE_DATA_CACHE", "")
    done = called("--no-cache", "data", str(_source(tmp_path)), "--zero-based")
    assert done.exit_code == 0, done.output
    assert os.environ["RANKTUNE_DATA_CACHE"] == "off"
