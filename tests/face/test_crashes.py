"""Errors that nothing handles: one message, exit code 70, and a file with the traceback that only the user can read."""

import re
import signal
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path

import pytest

from ranktune import cli
from ranktune.dashboards.terminal import listing

ERRORS = (
    EOFError("no data left"),
    MemoryError(),
    RuntimeError("no compiled object yet"),
    zipfile.BadZipFile("bad magic number"),
    zlib.error("invalid stored block lengths"),
    RecursionError("maximum recursion depth exceeded"),
    KeyError("queries"),
)


def failing(monkeypatch: pytest.MonkeyPatch, error: BaseException, *words: str) -> int:
    """Run `ranktune show` with an error in it, and return the exit code."""

    def fail(home: Path) -> None:
        raise error

    monkeypatch.setattr(listing, "listing", fail)
    monkeypatch.setattr(sys, "argv", ["ranktune", "show", *words])
    monkeypatch.setattr(sys, "path", list(sys.path))
    with pytest.raises(SystemExit) as ended, pytest.MonkeyPatch.context() as patch:
        patch.setattr("warnings.showwarning", None)  # which main replaces
        cli.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_unexpected_error_gives_one_message_and_a_file(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKTUNE_CACHE", str(tmp_path / "cache"))
    assert failing(monkeypatch, error, "--home", str(tmp_path)) == 70
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.startswith(f"error: `ranktune show --home {tmp_path}` was ended by ")
    assert type(error).__name__ in said.err or isinstance(error, MemoryError)
    (file,) = (tmp_path / "cache" / "crashes").iterdir()
    assert str(file) in said.err
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    text = file.read_text()
    assert "Traceback (most recent call last)" in text
    assert "in fail\n" in text
    assert "command: ranktune show --home" in text


def test_the_file_goes_elsewhere_where_the_cache_takes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RANKTUNE_CACHE", str(tmp_path / "file" / "below"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert failing(monkeypatch, EOFError()) == 70
    (file,) = tmp_path.glob("crash-*.txt")
    assert str(file) in capsys.readouterr().err
    file.unlink()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    assert failing(monkeypatch, EOFError()) == 70
    assert "Set RANKTUNE_DEBUG=1 to see the details" in capsys.readouterr().err


def test_the_traceback_is_shown_on_demand(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKTUNE_CACHE", str(tmp_path))
    monkeypatch.setenv("RANKTUNE_DEBUG", "1")
    assert failing(monkeypatch, ValueError("odd")) == 70
    said = capsys.readouterr().err
    assert "Traceback (most recent call last)" in said
    assert said.splitlines()[-1].startswith("error: ")


def test_neither_message_nor_file_has_a_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RANKTUNE_CACHE", str(tmp_path))
    error = RuntimeError("cannot use postgresql://h/db?user=me&password=SECRET or host=h password='SEC RET SECRET'")
    assert failing(monkeypatch, error, "--storage", "postgresql://me:SECRET@h/db") == 2  # list has no such option
    assert failing(monkeypatch, error) == 70
    (file,) = (tmp_path / "crashes").iterdir()
    assert re.search("password=[*]{3}", file.read_text())
    assert "SECRET" not in file.read_text() + capsys.readouterr().err.rpartition("error: ")[2]


def test_a_reader_of_the_output_that_leaves_is_no_crash(tmp_path: Path) -> None:
    code = "from ranktune.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, "docs", "howto/data"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        cwd=tmp_path,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        process.stdout.close()
        _, errors = process.communicate(timeout=60)
    assert "error" not in errors
    assert process.returncode in (1, 120)


def test_an_interrupt_while_the_commands_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupting:
        def find_spec(self, name: str, *_: object) -> None:
            if name == "ranktune.command_line.app":
                raise KeyboardInterrupt

    monkeypatch.setattr(sys, "meta_path", [Interrupting(), *sys.meta_path])
    monkeypatch.delitem(sys.modules, "ranktune.command_line.app", raising=False)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        with pytest.raises(SystemExit) as ended:
            cli.main()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    assert ended.value.code == 130
