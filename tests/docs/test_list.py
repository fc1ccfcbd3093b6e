"""docs/llms.txt lists every page, with its title and first sentence."""

import re

import pytest

pytest.importorskip("ranktune.docs.pages", reason="wheels do not hold what builds the site: pip install -e .")

from ranktune.docs.llms import GENERATED, PLACE, llms_text
from ranktune.docs.pages import FOLDER


def test_the_list_is_that_of_the_pages() -> None:
    """If not: python -m ranktune.docs llms."""
    assert PLACE.read_text() == llms_text()
    assert PLACE.read_text().startswith("# RankTune\n\n> RankTune tunes")


def test_every_page_is_in_the_list_once() -> None:
    listed = re.findall(r"\((.+)\.md\)", PLACE.read_text())
    paths = (*FOLDER.glob("*.md"), *FOLDER.glob("*/*.md"))
    pages = {path.relative_to(FOLDER).with_suffix("").as_posix() for path in paths} - {"index", *GENERATED}
    indexes = {name for name in pages if name.endswith("/index") and name not in listed}
    assert sorted(pages - indexes) == sorted(listed)
    assert all("{toctree}" in (FOLDER / f"{name}.md").read_text() for name in indexes)
