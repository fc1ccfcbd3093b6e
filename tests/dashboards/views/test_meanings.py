"""Every view says what it means, in the words of the glossary."""

import re

import pytest

from ranktune.dashboards.views.registry import COMPARE, TERMS, VIEWS, views_json
from tests.support.paths import ROOT


def glossary() -> set[str]:
    text = (ROOT / "docs/explanation/glossary.md").read_text()
    lines = re.findall(r"^([^\s`:#{].*)\n  \S", text, re.MULTILINE)
    return {term for line in lines for term in line.split(", ")}


MEANINGS = {str(view["key"]): view["meaning"] for view in views_json()} | {"compare": COMPARE.meaning}


@pytest.mark.parametrize("key", MEANINGS)
def test_terms_of_a_view_are_explained_and_in_the_glossary(key: str) -> None:
    meaning = MEANINGS[key]
    assert len(meaning["text"]) > 60
    assert {term for term, _ in meaning["terms"]} <= glossary()


def test_every_view_has_a_meaning_and_every_term_is_used() -> None:
    assert set(MEANINGS) == {*VIEWS, "compare"}
    assert TERMS == {term: text for meaning in MEANINGS.values() for term, text in meaning["terms"]}
