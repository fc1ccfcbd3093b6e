"""ranktune docs: the pages without a network."""

import re
from pathlib import Path

import pytest

from ranktune.command_line.docs_command import readable
from tests.support.commands import called
from tests.support.paths import ROOT

LIST = (ROOT / "docs" / "llms.txt").read_text()
LISTED = re.findall(r"\((.+)\.md\)", LIST)


def shown(*words: str) -> str:
    done = called("docs", *words, env={"COLUMNS": "80"}, catch_exceptions=False)
    assert done.exit_code == 0
    return done.stdout


def test_pages_are_listed_in_80_columns() -> None:
    text = shown()
    assert all(name in text for name in LISTED)
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("name", LISTED)
def test_a_page_is_plain_markdown(name: str) -> None:
    text = shown(name)
    assert text.startswith("# ")
    assert not re.search(r"^(```|:::)\{|^<!--|\{(doc|ref|term)\}`", text, flags=re.MULTILINE)
    assert text.count("```") % 2 == 0


def test_what_is_for_the_site_alone_is_left_out() -> None:
    page = "# A\n\n<!-- run\nmake\n-->\n\n![x](y.png){.only-dark}\nSee {doc}`/howto/data` and {doc}`it <../b>`.\n"
    page += "```{toctree}\na\n```\n```{glossary}\nword\n  Meaning.\n```\n"
    assert readable(page) == "# A\n\nSee `howto/data` and it (`../b`).\n**word**: Meaning.\n\n"


def test_words_are_searched() -> None:
    result = shown("--search", "Missing VALUES export")
    assert "howto/data: Bring your data" in result
    assert max(map(len, result.splitlines())) <= 80


def test_the_folder_holds_the_pages() -> None:
    folder = Path(shown("--folder").strip())
    assert (folder / "llms.txt").read_text() == LIST
    assert all((folder / f"{name}.md").is_file() for name in LISTED)
