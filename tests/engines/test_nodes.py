"""What is downloaded or compiled is made once, also where test processes come to it together."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, BrokenBarrierError, Lock

import pytest

from tests.engines import nodes


def test_two_that_come_together_make_a_folder_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nodes, "CACHE", tmp_path)
    made, lock, both = list[Path](), Lock(), Barrier(2)

    def make(folder: Path) -> None:
        with lock:
            made.append(folder)
        try:
            both.wait(0.3)  # for another that makes it too
        except BrokenBarrierError:
            pass
        (folder / "made").mkdir()

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(lambda _: nodes.once(b"key", make), range(2))
    assert first == second and first.is_dir() and len(made) == 1
    assert nodes.once(b"other", make) != first and len(made) == 2
