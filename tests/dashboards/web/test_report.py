"""The report: one file, small, the numbers of the study, nothing from elsewhere."""

import re
from pathlib import Path

import pytest

from ranktune.command_line.pages import write
from ranktune.dashboards.views.registry import VIEWS
from ranktune.dashboards.web.page import report_html, write_report
from ranktune.solvers.core.errors import ParameterError, StudyError
from tests.dashboards.web.test_page import Elements
from tests.support.page_studies import declare, finish, hostile_data
from tests.support.reports import payload_of
from tests.support.study_samples import PAIR, concluded, evidence_of, study_data, trials_of


def test_five_hundred_trials_are_far_under_two_megabytes() -> None:
    solvers = (*PAIR, "LambdaMART", "ListNet", "PAMIR", "RankBoost")
    trials, result = trials_of(500, solvers), concluded("big", solvers)
    data = study_data(trials, evidence_of(solvers, 1000), solvers=solvers, trials=500, result=result)
    text = report_html(data)
    assert len(text.encode()) < 1_200_000
    payload = payload_of(text)
    assert [view["key"] for view in payload["views"]] == list(VIEWS)
    assert all(view["panels"] for view in payload["views"])


def test_nothing_is_fetched_from_anywhere(tmp_path: Path) -> None:
    text = report_html(hostile_data(tmp_path / "h"))
    for tag, attributes in Elements(text).tags:
        assert tag not in ("iframe", "object", "embed", "base", "form", "img")
        for name in ("src", "href"):
            assert (attributes.get(name) or "data:").startswith(("data:", "#")), (tag, attributes)
        assert not any(name.startswith("on") for name in attributes)
    (policy,) = [a["content"] for t, a in Elements(text).tags if a.get("http-equiv") == "Content-Security-Policy"]
    assert policy is not None and "connect-src 'none'" in policy and "script-src 'sha256-" in policy
    assert not re.search(r"https?:|'self'|unsafe-eval|\*", policy)


def test_studies_are_shown_side_by_side(tmp_path: Path) -> None:
    for name in "abc":
        declare(tmp_path, name)
        finish(tmp_path, name)
    file = write("a", tmp_path, None, "b", "c")
    payload = payload_of(file.read_text())
    assert file == tmp_path / "a" / "comparison.html" and payload["kind"] == "compare"
    (view,) = payload["views"]
    assert [panel["key"] for panel in view["panels"] if "leaderboard" in panel["key"]] == [
        f"leaderboard-{k}" for k in (1, 2, 3)
    ]
    with pytest.raises(ParameterError, match="at most 12 studies, not of 14"):
        write("a", tmp_path, None, *("b" * 13))


def test_what_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="cannot read"):
        write_report(tmp_path / "none", tmp_path / "out.html")
    declare(tmp_path, "s")
    with pytest.raises(ParameterError, match="cannot write"):
        write_report(tmp_path / "s", tmp_path / "missing" / "out.html")
    assert write_report(tmp_path / "s", tmp_path / "out.html").is_file()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.html", "s"]  # nothing half-written is left
