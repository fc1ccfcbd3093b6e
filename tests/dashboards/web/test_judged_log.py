"""The report of a click log has the numbers of its judgments, and nothing from elsewhere."""

from pathlib import Path

import numpy as np
import polars
import pytest

import ranktune
from ranktune.dashboards.web.one_view import judged_html
from tests.support.reports import payload_of


def test_panels_show_what_is_known(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    rank = np.tile([1, 2, 7], 2000)
    product = np.where(
        rank == 7, "</script>", np.where((rank == 1) == np.repeat(generator.random(2000) < 0.5, 3), "a", "b")
    )
    click = generator.random(6000) < np.where(product == "a", 0.6, 0.2) / rank
    log = polars.DataFrame({"query": "<b>q", "doc": product, "rank": rank, "click": click.astype(int)})
    log.write_csv(tmp_path / "log.csv")
    (tmp_path / "judged.qrels").write_text("<b>q 0 a 2\n<b>q 0 b 1\n")
    result = ranktune.clicks(tmp_path / "log.csv", qrels=tmp_path / "judged.qrels")
    text = judged_html(result, "mine.csv")
    assert "<b>q" not in text and "https://" not in text.partition("<script>")[0]
    payload = payload_of(text)
    panels = {panel["key"]: panel["table"]["rows"] for panel in payload["views"][0]["panels"]}
    assert payload["foot"].startswith("Made by RankTune") and payload["study"]["title"] == "mine.csv"
    positions, values, _, _, status = zip(*panels["examination"], strict=True)
    assert positions == (1, 2, 7) and values[0] == 1.0 and values[2] is None
    assert status == ("known", "known", "unknown")
    assert values[1] == pytest.approx(float(result.examination.value[1]))
    assert result.later is not None
    for (name, *values), (other, row) in zip(panels["losses"], result.later.losses.items(), strict=True):
        assert (name, values) == (other, pytest.approx([row.loss, row.low, row.high], rel=1e-5))
    assert panels["ndcg"][0][:2] == ["position-based", 1.0]
    assert panels["evidence"][0][:4] == ["<b>q", 3.0, 2.0, 6000.0]
    assert panels["account"] == [["used", "impression", 6000], ["no event", "titles", 1]]
    assert [remark for (remark,) in panels["remarks"]] == result.remarks
