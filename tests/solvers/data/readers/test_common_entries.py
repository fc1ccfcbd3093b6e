"""Entries of the commonest form have a faster path: it reads what exact arithmetic gives, beside all other forms."""

from pathlib import Path

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Array
from ranktune.solvers.data.readers.parsing.decimals import exact_single
from ranktune.solvers.data.readers.text import read_text

MIDPOINTS = ("1048576.0625", "1048576.1875", "-1048576.0625", "0.5", "8388607.5", "8388609.5", "9999999.9999999")
FAULTS = ("2:0.5", "1:0.5", "1001:0.5", "3:0.5x", "3:0.5:1", "3:", "3:0.5.5", "3:-", "x3:1", "0:1")


def _spelt(generator: np.random.Generator) -> str:
    """A number of up to 9 digits on either side of the point, at times with a sign, an exponent or zeros around it."""
    whole = "".join(map(str, generator.integers(0, 10, generator.integers(0, 10))))
    part = "".join(map(str, generator.integers(0, 10, generator.integers(0 if whole else 1, 10))))
    point = "." if part or generator.random() < 0.2 else ""
    exponent = generator.choice(["", "", "", "", "e2", "E-3"])
    return f"{generator.choice(['', '', '-', '+'])}{whole}{point}{part}{exponent}"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("seed", range(5))
def test_values_are_the_nearest_numbers(tmp_path: Path, seed: int, dtype: type) -> None:
    generator = np.random.default_rng(seed)
    texts = [[_spelt(generator) for _ in range(12)] for _ in range(60)]
    columns = [np.sort(generator.choice(np.arange(1, 2000), 12, replace=False)) for _ in texts]
    lines = [
        f"1 qid:1 {' '.join(f'{column}:{text}' for column, text in zip(key, row, strict=True))}"
        for key, row in zip(columns, texts, strict=True)
    ]
    file = tmp_path / "data.txt"
    file.write_text("\n".join(lines))
    queries = read_text(file, dtype=dtype, n_features=2000, layout="dense")
    expected: Array = np.zeros((60, 2000), dtype=dtype)
    for i, (key, row) in enumerate(zip(columns, texts, strict=True)):
        expected[i, key - 1] = [float(text) if dtype == np.float64 else exact_single(text) for text in row]
    assert (queries.features == expected).all()


@pytest.mark.parametrize("text", MIDPOINTS)
def test_midpoints_of_floats_are_rounded_once(tmp_path: Path, text: str) -> None:
    file = tmp_path / "data.txt"
    file.write_text(f"1 qid:1 1:{text} 2:{text} 3:1 4:1 5:1 6:1 7:1 8:1 9:1 10:1 11:1 12:1 13:1 14:1\n")
    assert read_text(file, layout="dense").features[0, :2].tolist() == [exact_single(text)] * 2


@pytest.mark.parametrize("fault", FAULTS)
def test_the_first_fault_among_common_entries_is_reported(tmp_path: Path, fault: str) -> None:
    file = tmp_path / "data.txt"
    rest = " ".join(f"{column}:0.25" for column in range(10, 30))
    file.write_text(f"1 qid:1 1:0.5 2:0.5 3:0.5 {rest}\n0 qid:1 1:0.5 2:0.5 {fault} {rest}\n")
    with pytest.raises(ValueError, match=r"data\.txt:2:\d+: "):
        read_text(file, max_features=1000)
