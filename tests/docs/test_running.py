"""The code of pages: what is taken from a page, how it is run, and that every page prints what it says."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("ranktune.docs.pages", reason="wheels do not hold what builds the site: pip install -e .")

from ranktune.docs.pages import FOLDER, blocks, pages
from ranktune.docs.running import difference, refresh, run

PAGE = """
<!-- run
echo hidden > file.txt
-->

```console
$ cat file.txt
hidden
$ echo one \\
two
one two
$ cat > more.txt <<'END'
some
text
END
$ cat more.txt
some
text
```

```text
$ rm -r nothing
```

```python
print("three")
```

```output
three
```

```python
value = 4
```
"""


def page_of(folder: Path, text: str = PAGE) -> Path:
    path = folder / "page.md"
    path.write_text(text)
    return path


def test_blocks_are_commands_and_code_with_what_they_print() -> None:
    steps = [(step.language, step.code.strip(), step.output) for block in blocks(PAGE) for step in block.steps]
    assert steps == [
        ("console", "echo hidden > file.txt", None),
        ("console", "cat file.txt", "hidden\n"),
        ("console", "echo one \\\ntwo", "one two\n"),
        ("console", "cat > more.txt <<'END'\nsome\ntext\nEND", ""),
        ("console", "cat more.txt", "some\ntext\n"),
        ("python", 'print("three")', "three\n"),
        ("python", "value = 4", None),
    ]


def test_a_page_is_run_in_one_folder(tmp_path: Path) -> None:
    result = run(page_of(tmp_path))
    printed = [step.printed for block in result for step in block.steps]
    assert printed == ["", "hidden\n", "one two\n", "", "some\ntext\n", "three\n", ""]
    assert all(difference(step) is None for block in result for step in block.steps)


def test_the_session_of_a_page_ends_as_one_of_a_reader(tmp_path: Path) -> None:
    code = "import atexit, pathlib\natexit.register(pathlib.Path('ended').touch)\n"
    run(page_of(tmp_path, f"```python\n{code}```\n"), tmp_path)
    assert (tmp_path / "ended").exists(), "worker processes of a session that is killed would stay"


def test_other_words_are_a_difference_and_other_numbers_are_none(tmp_path: Path) -> None:
    text = "```console\n$ echo trial 3 took 0.2 s\ntrial 1 took 7.9 s\n$ echo no model\nthe model was saved\n```\n"
    (block,) = run(page_of(tmp_path, text))
    first, second = (difference(step) for step in block.steps)
    assert first is None
    assert second is not None and "+no model" in second


@pytest.mark.parametrize(
    ("page", "printed", "same"),
    [
        ("0.25 in 1.2 s, 3.1 kB", "0.25 in 7.9 s, 44 kB", True),
        ("0.25 in 1.2 s", "0.26 in 1.2 s", False),
        ("one of 2,880", "one of 2,881", False),
        ("one 1\n...\nfour 4", "one 1\ntwo 2\nthree 3\nfour 4", True),
        ("one 1\n...\nfour 4", "one 1\ntwo 2\nfour 5", False),
    ],
)
def test_an_exact_page_has_the_numbers_that_come(page: str, printed: str, same: bool, tmp_path: Path) -> None:
    text = f"<!-- exact -->\n\n```python\nprint({printed!r})\n```\n\n```output\n{page}\n```\n"
    for exact in (True, False):
        (block,) = run(page_of(tmp_path, text if exact else text.removeprefix("<!-- exact -->")))
        assert (difference(block.steps[0]) is None) is (same or not exact)


def test_what_fails_is_an_error_with_its_message(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="ended with 3"):
        run(page_of(tmp_path, "```console\n$ exit 3\n```\n"))
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        run(page_of(tmp_path, "```python\n1 / 0\n```\n"))


def test_refresh_writes_what_is_printed_and_nothing_else(tmp_path: Path) -> None:
    page = page_of(tmp_path)
    refresh(page)
    assert page.read_text() == PAGE
    page.write_text(PAGE.replace("one two\n", "other\n").replace("```output\nthree", "```output\nfour"))
    refresh(page)
    assert page.read_text() == PAGE


def marked(page: Path) -> Any:
    """Return a page as a parameter: the tutorial and the guides are thorough tests, the others slow ones."""
    place = page.relative_to(FOLDER)
    often = place.parts[0] in ("tutorial", "howto")
    return pytest.param(page, marks=() if often else pytest.mark.slow, id=str(place.with_suffix("")))


@pytest.mark.parametrize("page", [marked(page) for page in pages()])
def test_every_page_prints_what_it_says(page: Path) -> None:
    results = (difference(step) for block in run(page) for step in block.steps)
    assert [text for text in results if text] == []
