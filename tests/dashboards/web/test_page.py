"""The page as text: whatever the data holds stays data."""

import gzip
import json
import re
from base64 import b64decode
from html.parser import HTMLParser

from ranktune.dashboards.figures.plotly import COLOURS
from ranktune.dashboards.web import page
from tests.support.study_samples import HOSTILE


class Elements(HTMLParser):
    """Every start tag with its attributes, and the text within scripts and the title."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._within: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._within = [f"{tag}#{dict(attrs).get('id', '')}"]

    def handle_endtag(self, tag: str) -> None:
        self._within = []

    def handle_data(self, data: str) -> None:
        for name in self._within:
            self.texts[name] = self.texts.get(name, "") + data


HARD = [*HOSTILE, "</script><script>alert(1)</script>", "<!--<script>", "]]>", "\u2028\u2029", "$title ${payload} $$"]


def test_names_survive_as_data_and_change_no_element() -> None:
    harmless = Elements(page.filled(title="t", payload=page.payload_element({"names": ["a"]}), style="", scripts=""))
    for text in HARD:
        elements = Elements(
            page.filled(title=text, payload=page.payload_element({"names": [text]}), style="", scripts="")
        )
        assert elements.tags == harmless.tags
        assert json.loads(elements.texts["script#payload"])["names"] == [text]
        assert elements.texts.get("title#", "").split() == text.replace("\0", "�").split() or "\0" in text


def test_json_within_a_script_cannot_end_it() -> None:
    text = page.as_script({"a": "</script><!--&", "b": float("nan")})
    assert not re.search("[<>&]", text)
    assert json.loads(text) == {"a": "</script><!--&", "b": None}


def test_the_policy_names_every_style_that_plotly_writes_and_no_host() -> None:
    policy = page.content_policy(scripts="'self'", styles="'self'", connect="'self'")
    parts = dict(part.strip().split(" ", 1) for part in policy.split(";"))
    assert parts["script-src"] == "'self'" and parts["default-src"] == "'none'"
    assert "unsafe-eval" not in policy and "http" not in policy and "*" not in policy
    assert parts["style-src"].count("sha256-") == 2  # the empty one, and that of the maps
    assert page.source_hash("") in parts["style-src"]
    assert "unsafe-inline" not in parts["style-src"] + parts["script-src"]


def test_plotly_is_the_bundle_of_the_figures_that_pages_have() -> None:
    text = page.plotly_js().decode()
    assert text.startswith("/**\n* plotly.js (cartesian - minified)") and len(text) < 1_600_000
    assert "</script" not in text.lower() and "<!--" not in text  # it is embedded in reports


def test_packed_data_are_the_same_data() -> None:
    payload = {"a": "</script><!--&é", "b": list(range(500))}
    plain = re.fullmatch(r"<script[^>]*>(.*)</script>", page.payload_element(payload))
    element = page.packed_element("payload", page.page_data(payload))
    packed = re.fullmatch(r"<script[^>]*>([A-Za-z0-9+/=]*)</script>", element)
    assert plain and packed and gzip.decompress(b64decode(packed[1])).decode() == plain[1]
    assert json.loads(plain[1]) == {**payload, "colours": list(COLOURS), "foot": page.FOOT}


def test_files_of_the_package_refer_to_no_other_place() -> None:
    for name in ("page.html", "page.css", "page.js"):
        assert not re.search(r"https?:|//[a-z]+\.|@import|url\(", page.static(name)), name
    assert not re.search(
        r"innerHTML|outerHTML|insertAdjacent|document\.write|eval\(|new Function", page.static("page.js")
    )
