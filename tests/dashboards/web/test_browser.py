"""Every view in a real browser: it draws, makes no request elsewhere, runs no name, and fits the screen."""

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ranktune.dashboards.records.study import open_study
from ranktune.dashboards.views.registry import VIEWS
from ranktune.dashboards.web.page import report_html
from tests.support.finished import Finished
from tests.support.page_studies import LINE, append, declare, finish, hostile_data
from tests.support.study_samples import concluded, evidence_of, study_data, trial, trials_of

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed (Debian's package chromium)")
ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync "
    "--no-first-run"
).split()
WIDTHS = (1280, 390)
KEYS = list(VIEWS)
DRAW_ALL = """async () => {
  for (const plot of document.querySelectorAll(".plot")) {
    if (!plot.checkVisibility()) continue;
    plot.scrollIntoView({ block: "center" });
    const end = performance.now() + 20000;
    while (!plot.querySelector("svg.main-svg, canvas")) {
      if (performance.now() > end) throw new Error(`${plot.dataset.testid} is not drawn`);
      await new Promise(requestAnimationFrame);
    }
  }
}"""
"""Scrolls to every visible figure until it is drawn; one call is faster than several of Playwright for each figure."""
UNFOLD = (
    "document.querySelectorAll('.panel.folded .fold').forEach((button) => button.checkVisibility() && button.click())"
)
OPEN_ALL = """() => {
  for (const one of document.querySelectorAll("details:not([open]) > summary")) if (one.checkVisibility()) one.click();
}"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield opened
        opened.close()


@dataclass
class Tab:
    """A page, the messages of its console, its requests elsewhere, and its dialogs."""

    page: Any
    origin: str
    messages: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", lambda m: self.messages.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.messages.append(str(error)))
        self.page.on("requestfailed", lambda request: self.failed(request.url, request.failure))
        self.page.on("request", lambda request: self.requested(request.url))
        self.page.on("dialog", self.dialog)

    def dialog(self, opened: Any) -> None:
        self.dialogs.append(opened.message)
        opened.dismiss()

    def failed(self, url: str, why: str) -> None:
        if why != "net::ERR_ABORTED":  # that is what leaving a page does to what it still asked for
            self.messages.append(f"failed: {url}: {why}")

    def requested(self, url: str) -> None:
        if not url.startswith((self.origin, "data:", "blob:")):
            self.elsewhere.append(url)

    def show(self, address: str, view: str) -> None:
        """Open a view with all of its figures and tables."""
        self.page.goto(f"{address}#{view}")
        self.page.wait_for_selector("html[data-ready]", timeout=30_000)
        self.page.wait_for_selector(f"[data-testid=view-{view}][data-ready]", state="attached", timeout=60_000)
        height = self.page.evaluate("document.documentElement.scrollHeight")
        assert view in ("trials", "compare") or height < 6000, f"the page is {height} pixels tall"
        groups = self.page.locator(".groups button").count()
        for k in range(max(groups, 1)):
            if groups:
                self.page.locator(".groups button").nth(k).click()
            self.page.evaluate(UNFOLD)
            self.page.evaluate(DRAW_ALL)
            tables = self.page.locator("details:visible > summary")
            if tables.count():
                tables.first.click()  # as a reader does
            self.page.evaluate(OPEN_ALL)
            self.fits()

    def fits(self) -> None:
        """Check that nothing makes the page itself scroll sideways."""
        over = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over <= 0, f"the page is {over} pixels too wide"

    def quiet(self) -> None:
        """Check that there was no message, no request elsewhere, and no dialog."""
        assert (self.messages, self.elsewhere, self.dialogs) == ([], [], [])


def tab(browser: Any, origin: str, width: int = 1280, theme: str = "light") -> Tab:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
    return Tab(context.new_page(), origin)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, finished: Finished) -> dict[str, str]:
    """Reports on the file system: of a finished study, a really tuned one, one with hostile names, little ones."""
    folder = tmp_path_factory.mktemp("reports")
    trials = trials_of(24, failing=7)
    studies = {
        "finished": study_data(trials, evidence_of(), folder=folder / "sample", result=concluded("sample")),
        "hostile": hostile_data(folder / "hostile"),
        "failures": study_data([trial(k, "RankSVM", {}, None) for k in range(3)], folder=folder),
        "nothing": study_data(folder=folder),
        "one": study_data(trials[:1], folder=folder),
    }
    studies["real"] = open_study(finished.shared("split") / "split")
    results = {}
    for name, data in studies.items():
        file = folder / f"{name}.html"
        file.write_text(report_html(data), encoding="utf-8")
        results[name] = file.as_uri()
    return results


@pytest.fixture(
    scope="module",
    params=[
        "hostile-390-light",
        pytest.param("real-1280-light", marks=pytest.mark.thorough),
        pytest.param("finished-390-dark", marks=pytest.mark.thorough),
        pytest.param("hostile-1280-dark", marks=pytest.mark.thorough),
    ],
)
def opened(browser: Any, reports: dict[str, str], request: pytest.FixtureRequest) -> Iterator[tuple[Tab, str]]:
    """A report in a tab that stays open from view to view, as a reader's does."""
    name, width, theme = request.param.split("-")
    result = tab(browser, "file://", int(width), theme)
    yield result, reports[name]
    result.page.context.close()


@pytest.mark.parametrize("key", KEYS)
def test_every_view_of_a_report_draws(opened: tuple[Tab, str], key: str) -> None:
    shown, address = opened
    shown.messages.clear()
    shown.show(address, key)
    assert shown.page.locator("section.panel").count() > 0
    assert shown.page.locator("script").count() == 3  # no name became one
    shown.quiet()


def test_the_conclusion_is_there_without_scripts(browser: Any, reports: dict[str, str]) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(reports["real"])
    text = page.locator("main").inner_text()
    assert "What to use: Use " in text and "What next: " in text and "<" not in text
    context.close()


def test_the_first_page_ends_with_what_to_do_next_within_two_screens(browser: Any, reports: dict[str, str]) -> None:
    """Two of 1280 x 800; what is folded comes after it. On a phone the answers are one screen."""
    for width, key, most in ((1280, "panel-use", 1600), (390, "panel-conclusion", 844)):
        opened = tab(browser, "file://", width)
        opened.page.goto(reports["real"])
        opened.page.wait_for_selector("html[data-ready]")
        box = opened.page.get_by_test_id(key).bounding_box()
        assert box and (box["y"] + box["height"] if width == 1280 else box["height"]) <= most
        opened.page.context.close()


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["failures", "nothing", "one"])
def test_a_report_of_little_says_so(browser: Any, reports: dict[str, str], name: str) -> None:
    opened = tab(browser, "file://")
    for key in KEYS:
        opened.show(reports[name], key)
        assert opened.page.locator("section.panel").count() > 0
        assert opened.page.locator("main").inner_text().strip()
    opened.quiet()
    opened.page.context.close()


def test_the_conclusion_and_the_shown_view_are_printed_in_light_colours(browser: Any, reports: dict[str, str]) -> None:
    opened = tab(browser, "file://", theme="dark")
    page = opened.page
    page.goto(f"{reports['real']}#queries")
    page.wait_for_selector("html[data-ready]")
    pages = page.pdf().count(b"/Type /Page\n")
    assert 3 <= pages <= 12, pages
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.wait_for_function("document.querySelectorAll('.printed').length > 0")
    page.wait_for_function(
        "[...document.querySelectorAll('.plot')].every((plot) => !plot.checkVisibility() || plot.querySelector('svg'))"
    )
    assert page.locator(".printed > h2").all_inner_texts() == ["Overview", "Queries"]
    assert "…" not in page.get_by_test_id("panel-conclusion").inner_text()  # nothing of it is cut
    page.emulate_media(media="print")
    assert page.locator(".plot .legendtext").first.is_visible()
    box = page.get_by_test_id("panel-conclusion").bounding_box()
    assert box is not None and box["y"] + box["height"] < 900  # the first page, on which nothing else is
    after = "getComputedStyle(document.querySelector('[data-testid=panel-conclusion] + .panel')).breakBefore"
    assert page.evaluate(after) == "page"
    page.emulate_media(media="screen")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    page.wait_for_selector("main > [data-testid=view-queries]")
    assert page.locator(".printed").count() == 0
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    opened.quiet()
    page.context.close()


def test_every_tab_can_be_seen_on_a_phone(browser: Any, reports: dict[str, str]) -> None:
    opened = tab(browser, "file://", 390)
    opened.page.goto(reports["finished"])
    opened.page.wait_for_selector("html[data-ready]")
    links = opened.page.locator("nav a").all()
    assert len(links) >= len(KEYS)
    for link in links:
        box = link.bounding_box()
        assert box and 0 <= box["x"] and box["x"] + box["width"] <= 390
    opened.page.context.close()


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "theme"), [(1280, "light"), (390, "dark")])
def test_the_checker_of_accessibility_finds_nothing(
    browser: Any, reports: dict[str, str], width: int, theme: str
) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    opened = tab(browser, "file://", width, theme)
    for key in KEYS:
        opened.show(reports["finished"], key)
        result = axe.run(opened.page).response["violations"]
        assert [(result["id"], result["nodes"][0]["html"][:100]) for result in result] == []
    opened.page.context.close()


def test_keyboard_filter_sort_and_theme(browser: Any, reports: dict[str, str]) -> None:
    opened = tab(browser, "file://")
    page = opened.page
    page.goto(reports["finished"])
    page.wait_for_selector("html[data-ready]")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("nav a[data-key=trials]").focus()
    page.keyboard.press("Enter")
    page.wait_for_selector("[data-testid=view-trials][data-ready]")
    assert page.locator("nav a[aria-current=page]").inner_text() == "Trials"
    rows = page.locator("[data-testid=table-trials] tbody tr")
    assert rows.count() == 24
    page.locator("[data-testid=table-trials] input").fill("ranksvm")
    assert 0 < rows.count() < 24 and "of 24 rows" in page.locator(".count").inner_text()
    page.locator("[data-testid=table-trials] input").fill("C>0.1 solver=ranksvm")
    heads = page.locator("[data-testid=table-trials] thead button").all_inner_texts()
    values = [float(row.locator("td").nth(heads.index("C")).inner_text()) for row in rows.all()]
    assert 0 < len(values) < 12 and min(values) > 0.1 and "l1" not in heads  # those of the others are left out
    page.locator("[data-testid=table-trials] input").fill("")
    heads = page.locator("[data-testid=table-trials] thead button")
    place = heads.all_inner_texts().index("ndcg@10")
    heads.nth(place).focus()
    page.keyboard.press("Enter")
    shown = [float(row.locator("td").nth(place).inner_text().replace("\u2013", "-inf")) for row in rows.all()]
    assert shown == sorted(shown, reverse=True)  # the best first, what failed last
    assert page.locator("th[aria-sort=descending]").count() == 1
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    assert len(saved.value.path().read_text().splitlines()) == 25
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    opened.quiet()
    page.context.close()


def test_every_figure_is_saved_as_svg_and_its_data_as_csv(browser: Any, reports: dict[str, str]) -> None:
    opened = tab(browser, "file://")
    page = opened.page
    for key in ("overview", "queries"):
        opened.show(reports["real"], key)
        assert page.locator(".plot").count() == page.locator(".save").count() > 0
        assert "Share" not in page.evaluate(
            "[...document.querySelectorAll('[data-title]')].map((b) => b.dataset.title).join()"
        )
        panel = page.locator(".panel:has(.plot):visible").first
        name = str(panel.get_attribute("data-testid")).removeprefix("panel-")
        with page.expect_download() as saved:
            panel.get_by_role("button", name="as SVG").click()
        assert saved.value.suggested_filename == f"{name}.svg"
        assert re.search(r"<svg[^>]*>.*ndcg@10|<svg[^>]*>.*queries", saved.value.path().read_text(), re.DOTALL)
        with page.expect_download() as saved:
            panel.get_by_role("button", name="its data as CSV").click()
        assert len(saved.value.path().read_text().splitlines()) == 1 + panel.locator("tbody tr").count()
    opened.quiet()
    page.context.close()


@pytest.mark.thorough
def test_titles_of_axes_are_whole_on_a_phone(browser: Any, reports: dict[str, str]) -> None:
    opened = tab(browser, "file://", 390)
    cut = """() => [...document.querySelectorAll(".plot .xtitle, .plot .ytitle")].filter((title) => {
      const [inner, outer] = [title, title.closest(".plot")].map((node) => node.getBoundingClientRect());
      return title.checkVisibility() && (inner.left < outer.left - 1 || inner.right > outer.right + 1
        || inner.top < outer.top - 1 || inner.bottom > outer.bottom + 1);
    }).map((title) => title.textContent)"""
    for key in KEYS:
        opened.show(reports["finished"], key)
        assert opened.page.evaluate(cut) == [], key
    opened.page.context.close()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """The address of a dashboard in another process, and the home that it shows."""
    home = tmp_path_factory.mktemp("home")
    for name in ("done", "going", LINE[0], "חיפוש \"a\" 'b' &amp;"):
        declare(home, name)
        append(home, name, trials_of(6))
    finish(home, "done")
    declare(home, "empty")
    with subprocess.Popen(
        [sys.executable, "-m", "ranktune", "show", "--live", "--home", str(home), "--port", "0"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stdout is not None and process.stderr is not None
        result = re.search(r"http://127\.0\.0\.1:\d+", process.stdout.readline())
        assert result
        yield result[0], home
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""


@pytest.mark.thorough
def test_every_view_of_the_live_page_draws(browser: Any, served: tuple[str, Path]) -> None:
    address, _ = served
    for width, name in zip(WIDTHS, ("done", "going"), strict=True):
        opened = tab(browser, address, width)
        for key in KEYS:
            opened.show(f"{address}/study/{name}", key)
            assert opened.page.locator("section.panel").count() > 0
        opened.quiet()
        opened.page.context.close()


@pytest.mark.parametrize("width", [390, pytest.param(1280, marks=pytest.mark.thorough)])
def test_the_list_fits_and_is_searched_and_sorted(browser: Any, served: tuple[str, Path], width: int) -> None:
    address, home = served
    opened = tab(browser, address, width)
    page = opened.page
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    assert (
        page.evaluate(
            "(({ scrollWidth, clientWidth }) => scrollWidth - clientWidth)(document.querySelector('.scroll'))"
        )
        <= 0
    )
    page.get_by_role("button", name="study", exact=True).click()
    names = page.locator("[data-testid=studies] tbody a")
    assert len(names.all()) == len(list(home.iterdir()))
    assert names.all_inner_texts().index("done") < names.all_inner_texts().index("going")
    page.get_by_role("searchbox").fill("somewhere goin")
    assert names.all_inner_texts() == ["going"]
    opened.quiet()
    page.context.close()


@pytest.mark.thorough
def test_the_list_and_comparing(browser: Any, served: tuple[str, Path]) -> None:
    address, home = served
    opened = tab(browser, address, 390)
    page = opened.page
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    opened.fits()
    names = page.locator("[data-testid=studies] tbody a").all_inner_texts()
    assert sorted(names) == sorted(path.name for path in home.iterdir())
    for name in (LINE[0], "חיפוש \"a\" 'b' &amp;"):
        page.goto(address)
        page.get_by_role("link", name=name, exact=True).click()
        page.wait_for_selector("[data-testid=view-overview][data-ready]")
        assert page.locator("h1").inner_text() == name
        opened.fits()
    page.goto(address)
    for name in ("done", "going", "empty"):
        page.get_by_label(f"Compare {name}", exact=True).check()
    page.get_by_role("button", name="Compare 3").click()
    page.wait_for_url(f"{address}/compare/done/going/empty")
    page.wait_for_selector("[data-testid=view-compare][data-ready]")
    opened.fits()
    page.goto(f"{address}/study/done")
    page.get_by_label("Compare with another study").select_option("going")
    page.wait_for_url(f"{address}/compare/done/going")
    page.wait_for_selector("[data-testid=view-compare][data-ready]")
    page.get_by_test_id("plot-race").scroll_into_view_if_needed()
    page.locator("[data-testid=plot-race] svg.main-svg").first.wait_for(state="attached")
    opened.fits()
    opened.quiet()
    page.context.close()


@pytest.mark.thorough
def test_a_new_trial_is_shown_within_two_seconds(browser: Any, served: tuple[str, Path]) -> None:
    def slowly(route: Any) -> None:
        time.sleep(0.5)
        route.continue_()

    address, home = served
    (home / "going" / "lock").write_text(f'{{"pid": {os.getpid()}}}')
    opened = tab(browser, address)
    opened.show(f"{address}/study/going", "trials")
    opened.page.route("**/api/view/**", slowly)
    opened.page.locator("nav a[data-key=weights]").click()
    opened.page.get_by_text("Computing this page").wait_for()
    opened.page.unroute("**/api/view/**")
    opened.show(f"{address}/study/going", "trials")
    rows = opened.page.locator("[data-testid=table-trials] tbody tr")
    assert rows.count() == 6
    opened.page.wait_for_timeout(1500)  # the events are listened to
    append(home, "going", trials_of(7)[6:])
    ended = time.monotonic()
    rows.nth(6).wait_for(timeout=10_000)
    assert time.monotonic() - ended < 2.0
    assert "7 of 20 trials" in opened.page.locator("header").inner_text()
    assert opened.page.get_by_test_id("state").inner_text() == "running"
    opened.quiet()
    opened.page.context.close()
