"""What will not fit is said before it is read, with what there is: of the machine, the container, or by a limit."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from ranktune.solvers.core import memory
from ranktune.solvers.core.errors import DataError, ParameterError
from ranktune.solvers.core.memory import check_room, format_size, free_memory, limited_to, parse_memory


@pytest.mark.parametrize(
    ("given", "size"),
    [(7, 7), ("4GB", 4 * 10**9), ("512M", 512 * 10**6), ("2 GiB", 2**31), ("1.5k", 1500), (None, None)],
)
def test_sizes_are_read(given: object, size: int | None) -> None:
    assert parse_memory(given, "memory") == size  # type: ignore[arg-type]


@pytest.mark.parametrize("given", ["", "4 elephants", "-1", 0, True, "0GB"])
def test_what_is_no_size_is_refused(given: int | str) -> None:
    with pytest.raises(ParameterError, match=r"memory=.*such as 4GB"):
        parse_memory(given, "memory")


def test_sizes_are_formatted() -> None:
    assert [format_size(size) for size in (6.5e9, 4e8, -1)] == ["6.5 GB", "400 MB", "0 MB"]


def test_the_least_of_machine_and_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=5000))
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path)
    assert free_memory() == 5000
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("100\n")
    assert free_memory() == 5000
    (tmp_path / "memory.max").write_text("4100\n")
    assert free_memory() == 4000
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text("3000")
    (tmp_path / "memory" / "memory.usage_in_bytes").write_text("1000")
    assert free_memory() == 2000
    check_room("a table", 2000)
    with pytest.raises(DataError, match=r"a table takes about 0 MB of memory, and 0 MB are free\. Convert"):
        check_room("a table", 2001)


def test_a_limit_counts_what_the_process_has() -> None:
    resident = psutil.Process().memory_info().rss
    with limited_to(resident + (50 << 20)):
        check_room("a table", 1 << 20)
        with pytest.raises(DataError, match=r"takes about 10\.0 GB of memory, and .* that memory allows are free"):
            check_room("a table", 10**10)
    check_room("a table", 1 << 20)
