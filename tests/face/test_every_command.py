"""Whatever names data have, every command prints them as text: nothing that a terminal obeys, nothing that hides.

And every command that writes, to a file or to standard output, answers in a sentence what the file system refuses.
"""

import errno
import json
import os
import re
import shutil
import sys
from io import StringIO
from pathlib import Path

import pytest
import typer
from rich.panel import Panel

from ranktune.command_line.app import app
from ranktune.command_line.messages import Shield
from ranktune.dashboards.terminal.tables import Screen, formatted, table, titled
from ranktune.solvers.core.errors import RankTuneError, RankTuneWarning, printable
from ranktune.solvers.core.files.atomic import atomic_write, refusal_of
from tests.support.commands import called, ended
from tests.support.every_command import Place, commands

TEXTS = (
    "\x1b[2J\x1b]0;t\x07[red]x[/blue]",
    "\x9b31m\x9d\u202eevil\u2066\u200b\ufeff",
    "\r\b\x0bnew\nline\x7f\u2028:smile:[/x]",
)
LONG = ("tune", "resume", "retune")
"""Commands that are run once; their results are shown by others."""
SGR = re.compile(r"\x1b\[[\d;]*m")


def harmful(text: str) -> set[str]:
    return {character for character in text if not (character.isprintable() or character == "\n")}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    made = Place(tmp_path_factory.mktemp("place"), TEXTS, "d\x1b[2J\u202e[red][ab]*")
    made.make()
    return made


@pytest.mark.parametrize("command", commands())
def test_no_command_prints_what_a_terminal_obeys(
    command: str, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("warnings.showwarning", None)  # which the command line replaces
    takes_json = any(
        parameter.name == "as_json"
        for parameter in typer.main.get_command(app).commands[command].params  # type: ignore[attr-defined]
    )
    for words in place.used(command):
        code = ended(monkeypatch, *words)
        said = capsys.readouterr()
        assert code in (0, 1, 2, 10, 11) and "Traceback" not in said.err, said.err
        assert code != 2 or said.err.count("\n") <= 6, said.err
        assert harmful(said.out + said.err) == set()
        if takes_json and code == 0 and command not in LONG and "--warm" not in words:
            assert ended(monkeypatch, *words, "--json") in (0, 1, 2, 10, 11)  # a second pass, or one that is refused
            out = capsys.readouterr().out
            assert out.isascii() and (not out or json.loads(out))
            for form in ("markdown", "latex", "csv"):
                ended(monkeypatch, *words, "--format", form)
                assert harmful("".join(capsys.readouterr())) == set()


@pytest.mark.parametrize(
    ("command", "shown"),
    [("data", "f0?[2J?]0;t?[red]x[/blue]"), ("watch", "?[2J?]0;t?[red]x[/blue]")],
)
def test_names_are_shown_as_they_are_but_for_that(
    command: str, shown: str, place: Place, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("warnings.showwarning", None)
    for words in place.used(command):
        ended(monkeypatch, *words)
    assert shown in capsys.readouterr().out


@pytest.mark.parametrize("text", [*TEXTS, "\udce9", "a\u00a0b\u3000c", "\x85\U000e0041\u2060"])
def test_on_a_terminal_the_own_colours_are_all_that_it_obeys(text: str) -> None:
    rows = table((f"a{text}",), ("n",))
    rows.add_row(f"cell{text}", "1", style="bold red")
    rows.caption = f"caption{text}"
    file = StringIO()
    screen = Screen(file=file, force_terminal=True, color_system="standard", width=200)
    for what in (titled(text, rows), Panel(text), text):
        screen.print(what)
    shown = file.getvalue()
    assert SGR.search(shown) and harmful(SGR.sub("", shown)) == set()
    assert f"cell{printable(text)}" in shown and len([line for line in shown.splitlines() if "cell" in line]) == 1
    for error in (RankTuneError(text), RankTuneWarning(text)):
        assert harmful(str(error)) == set()
    behind = StringIO()
    print(text, file=Shield(behind))
    assert harmful(behind.getvalue()) == set()


def test_no_markup_is_read_in_names() -> None:
    rows = table(("name",))
    rows.add_row("[/blue]")
    assert formatted(rows, "csv") == "name\n[/blue]\n"
    rows.add_row("<b> [a](b) `c` *d* _e_ f_g &lt; h|i")
    assert r"\<b> \[a](b) \`c\` \*d\* \_e\_ f_g \&lt; h\|i" in formatted(rows, "markdown")


class Refusing(StringIO):
    """A stream that takes nothing."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def write(self, text: str) -> int:
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EDQUOT])
@pytest.mark.parametrize("words", [("show",), ("solvers", "--json"), ("docs", "howto/data")])
def test_an_output_that_takes_nothing_is_said(
    words: tuple[str, ...], number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("warnings.showwarning", None)
    monkeypatch.setattr(sys, "stdout", Refusing(number))
    assert ended(monkeypatch, *words) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: cannot use ") and os.strerror(number) in said and said.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").is_char_device(), reason="needs /dev/full")
@pytest.mark.parametrize("command", ["predict", "show", "export", "retune"])
def test_a_device_is_written_to_and_not_replaced(command: str, place: Place, tmp_path: Path) -> None:
    device = tmp_path / "full"
    device.symlink_to("/dev/full")
    words = [device if str(word).startswith(str(place.folder / "out")) else word for word in place.used(command)[-1]]
    done = called(*words)
    assert isinstance(done.exception, RankTuneError) and "No space left" in str(done.exception)
    assert device.is_char_device()
    with pytest.raises(OSError, match="No space left"):
        atomic_write(device, "x")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(28, "x", "/a/b"), "cannot use /a/b: No space left on device. Free space"),
        (OSError("10 requested and 3 written"), "No space left on device. Free space"),
        (RuntimeError("(sqlite3.OperationalError) attempt to write a readonly database"), "Make it writable"),
        (ValueError("IO error: Input/output error (os error 5)"), "Check the disk"),
        (NotADirectoryError(20, "x", b"/a\xe9"), "cannot use /a?: Not a directory. Check the path"),
    ],
    ids=str,
)
def test_errors_of_file_systems_are_known_by_number_and_by_words(error: Exception, said: str) -> None:
    assert said in str(RankTuneError(refusal_of(error)))
    wrapped = KeyError("x")
    assert refusal_of(wrapped) is None
    wrapped.__cause__ = error
    assert said in str(RankTuneError(refusal_of(wrapped)))


def test_names_that_are_no_utf_8_are_said(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("warnings.showwarning", None)
    folder = tmp_path / "\udce9"
    shutil.copytree(place.home, folder / "runs")
    for command in ("resume", "show", "watch", "retune"):
        for words in place.used(command):
            there = [str(word).replace(str(place.home), str(folder / "runs")) for word in words]
            assert ended(monkeypatch, *there) in (0, 1, 2, 10, 11)
            said = capsys.readouterr()
            assert "Traceback" not in said.err and harmful(said.out + said.err) == set()
