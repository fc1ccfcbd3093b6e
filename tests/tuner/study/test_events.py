"""The log of a study: what is written is read, whatever a crash, a full disk or hostile text did to it."""

import errno
import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ranktune.solvers.core.errors import RankTuneWarning
from ranktune.tuner.study import events as module
from ranktune.tuner.study.events import FILE, KEPT, LONGEST, Event, Events, read_events, readable, repair
from tests.support.process_samples import forked


def numbers(folder: Path) -> list[int]:
    return [event["trial"] for event in read_events(folder)]


def written(folder: Path, count: int) -> bytes:
    with Events(folder) as events:
        for number in range(count):
            events.write(Event.FINISHED, trial=number, params={"RankSVM.C": 1.5}, reason='a "word"\nand another')
    return (folder / FILE).read_bytes()


def corrupt(folder: Path) -> bytes:
    return b"".join(file.read_bytes() for file in sorted(folder.glob("events.corrupt-*")))


def test_what_is_written_is_read_in_order(tmp_path: Path) -> None:
    with Events(tmp_path, study="mine") as events:
        for number, kind in enumerate(Event):
            events.write(kind, trial=number, split="Fold1")
    results = list(read_events(tmp_path))
    assert [event["event"] for event in results] == [kind.value for kind in Event]
    assert all(event["study"] == "mine" and event["split"] == "Fold1" for event in results)
    assert [list(event)[:3] for event in results] == [["at", "event", "study"]] * len(results)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", event["at"]) for event in results)


def test_the_moment_is_now_or_given_in_utc(tmp_path: Path) -> None:
    with Events(tmp_path) as events:
        before = datetime.now(UTC).timestamp()
        events.write(Event.ASKED)
        after = datetime.now(UTC).timestamp()
        for at in (1_700_000_000.1234, float("nan"), 1e300):
            events.write(Event.STEP, at=at)
    now, given, *strange = [datetime.fromisoformat(event["at"]).timestamp() for event in read_events(tmp_path)]
    assert before - 0.001 <= now <= after
    assert given == pytest.approx(1_700_000_000.123, abs=1e-6)
    assert strange == pytest.approx([after, after], abs=60)


def test_every_value_becomes_json_and_none_hides_what_names_the_event(tmp_path: Path) -> None:
    values: dict[str, Any] = {
        "nan": float("nan"), "inf": [float("-inf"), 1.0], "one": np.float32(0.5), "many": np.array([1.0, np.nan]),
        "whole": np.int64(3), "path": Path("a"), "nested": {1: {"x": (True, None)}}, "event": "mine", "study": "other",
    }  # fmt: skip
    with Events(tmp_path, study="s") as events:
        events.write(Event.STEP, **values)
    line = (tmp_path / FILE).read_text()
    result = json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    del result["at"]
    assert result == {
        "event": "step", "study": "s", "nan": None, "inf": [None, 1.0], "one": 0.5, "many": [1.0, None], "whole": 3,
        "path": "a", "nested": {"1": {"x": [True, None]}},
    }  # fmt: skip


def test_a_text_is_one_line_however_hostile_or_long(tmp_path: Path) -> None:
    hostile = "a\nb\r\x1b[31m\u202e\u2028\ud800\0"
    with Events(tmp_path) as events:
        events.write(Event.FAILED, reason=hostile, name="x" * 1_000_000)
    assert (tmp_path / FILE).read_bytes().count(b"\n") == 1
    (result,) = read_events(tmp_path)
    assert result["reason"] == hostile
    assert len(result["name"]) == LONGEST + 3


@pytest.mark.parametrize("tail", [b"", b"\0" * 5000, b"\xff\xfe{", b'{"at": 1}\n\n[[[', b"[" * 100_000, b"1" * 9000])
def test_a_log_cut_at_any_byte_of_its_last_two_records_opens_again(tmp_path: Path, tail: bytes) -> None:
    whole = written(tmp_path, 5)
    first = len(b"\n".join(whole.split(b"\n")[:3])) + 1
    for cut in range(first, len(whole) + 1):
        left = whole[:cut] + tail
        (tmp_path / FILE).write_bytes(left)
        complete = whole[:cut].count(b"\n")
        half = whole[:cut].rpartition(b"\n")[2]
        complete += half == whole.split(b"\n")[complete] != b"" and not tail  # whole, but for the line feed
        with Events(tmp_path) as events:
            events.write(Event.FINISHED, trial=99)
        assert numbers(tmp_path) == [*range(complete), 99], cut
        kept = b"\n".join(whole.split(b"\n")[:complete]) + b"\n"
        assert kept + corrupt(tmp_path) == (left if left.endswith(b"\n") or corrupt(tmp_path) else left + b"\n"), cut
        for file in tmp_path.glob("events.corrupt-*"):
            file.unlink()


def test_a_sound_log_is_left_as_it_is(tmp_path: Path) -> None:
    whole = written(tmp_path, 3)
    repair(tmp_path / FILE)
    assert (tmp_path / FILE).read_bytes() == whole
    assert corrupt(tmp_path) == b""
    (tmp_path / FILE).write_bytes(b"")
    repair(tmp_path / FILE)
    assert (tmp_path / FILE).read_bytes() == b""


def test_garbage_alone_is_kept_aside(tmp_path: Path) -> None:
    garbage = bytes(range(256)) * 2000
    (tmp_path / FILE).write_bytes(garbage)
    Events(tmp_path).close()
    assert (tmp_path / FILE).read_bytes() == b""
    assert corrupt(tmp_path) == garbage


def test_a_record_longer_than_the_first_read_is_recognised(tmp_path: Path) -> None:
    with Events(tmp_path) as events:
        events.write(Event.STEP, trial=0, values=list(range(100_000)))
    whole = (tmp_path / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(whole + b"\0" * 300_000)
    repair(tmp_path / FILE)
    assert (tmp_path / FILE).read_bytes() == whole


def test_readers_leave_out_what_is_torn_in_the_middle(tmp_path: Path) -> None:
    whole = written(tmp_path, 3)
    (tmp_path / FILE).write_bytes(b"\0\0\n" + whole + whole[:20] + b"\n" + whole + whole[:30])
    assert numbers(tmp_path) == [0, 1, 2, 0, 1, 2]
    assert list(read_events(tmp_path / "nowhere")) == []


def test_the_log_is_rotated_and_read_across_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BYTES", 2000)
    written(tmp_path, 60)
    assert 2 < len(list(tmp_path.glob(f"{FILE}*"))) <= KEPT + 1
    result = numbers(tmp_path)
    assert result == list(range(result[0], 60))
    assert all(file.stat().st_size <= 2000 for file in tmp_path.glob(f"{FILE}*"))


def _write_many(folder: Path, count: int) -> None:
    module.BYTES = 10_000
    written(folder, count)


def test_reading_while_another_process_writes_and_rotates(tmp_path: Path) -> None:
    writer = forked(_write_many, tmp_path, 10_000)
    lengths = []
    while writer.is_alive():
        result = numbers(tmp_path)
        assert result == list(range(result[0], result[0] + len(result))) if result else True
        lengths.append(len(result))
    writer.join()
    assert writer.exitcode == 0
    assert len(lengths) > 3
    assert numbers(tmp_path)[-1] == 9999


def test_a_full_disk_is_one_warning_and_space_brings_the_log_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Events(tmp_path) as events:
        events.write(Event.ASKED, trial=0)
        opened, full = open("/dev/full", "a", encoding="ascii"), module._Handler._open
        monkeypatch.setattr(module._Handler, "_open", lambda self: opened)
        assert events._handler is not None
        events._handler.close_stream()
        with pytest.warns(RankTuneWarning, match="No space left on device. The study continues") as caught:
            events.write(Event.ASKED, trial=1)
            monkeypatch.setattr(module._Handler, "_open", lambda self: open("/dev/full", "a", encoding="ascii"))
            events.write(Event.ASKED, trial=2)
        assert len(caught) == 1
        monkeypatch.setattr(module._Handler, "_open", full)
        events.write(Event.ASKED, trial=3)
    assert numbers(tmp_path) == [0, 3]


def test_no_log_without_a_writable_folder_and_no_exception(tmp_path: Path) -> None:
    with pytest.warns(RankTuneWarning, match="No such file") as caught, Events(tmp_path / "gone") as events:
        events.write(Event.ASKED, trial=0)
        events.write(Event.ASKED, trial=1)
    assert len(caught) == 1
    (tmp_path / FILE).mkdir()
    with pytest.warns(RankTuneWarning, match="cannot be written") as caught, Events(tmp_path) as events:
        events.write(Event.ASKED, trial=0)
    assert len(caught) == 1


def test_a_folder_that_vanishes_meanwhile_costs_one_warning_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BYTES", 300)
    folder = tmp_path / "s"
    folder.mkdir()
    with pytest.warns(RankTuneWarning, match="No such file") as caught, Events(folder) as events:
        events.write(Event.ASKED, trial=0)
        (folder / FILE).unlink()
        folder.rmdir()
        for number in range(10):
            events.write(Event.ASKED, trial=number)
    assert len(caught) == 1


def test_what_was_cut_off_that_cannot_be_kept_is_not_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = written(tmp_path, 2) + b"torn"
    (tmp_path / FILE).write_bytes(whole)

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(RankTuneWarning, match="No space left"), Events(tmp_path) as events:
        events.write(Event.ASKED, trial=3)
    assert (tmp_path / FILE).read_bytes() == whole


def test_told_hears_readable_lines_with_and_without_a_file(tmp_path: Path) -> None:
    heard: list[str] = []
    for folder in (None, tmp_path):
        with Events(folder, heard.append, study="s") as events:
            events.write(Event.FINISHED, trial=3, split="Fold2", solver="RankSVM", value=0.123456789, reason=None)
    assert heard[0][8:] == heard[1][8:] == " Fold2: trial 3 finished: solver RankSVM, value 0.123457"
    assert len(list(read_events(tmp_path))) == 1


def test_readable_lines_hold_no_control_characters_and_are_short() -> None:
    line = readable({"at": "2026-01-01T00:00:00.000Z", "event": "failed", "reason": "\x1b[2J\n\u202e" + "x" * 9999})
    assert line.isprintable()
    assert len(line) == 400


def test_a_closed_terminal_does_not_end_the_study(tmp_path: Path) -> None:
    def closed(_: str) -> None:
        raise BrokenPipeError

    with Events(tmp_path, closed) as events:
        events.write(Event.ASKED, trial=0)
    assert [event["trial"] for event in read_events(tmp_path)] == [0]


def test_after_the_end_nothing_is_written(tmp_path: Path) -> None:
    whole = written(tmp_path, 1)
    events = Events(tmp_path)
    events.close()
    events.write(Event.ASKED, trial=5)
    events.close()
    assert (tmp_path / FILE).read_bytes() == whole
