"""The health check of a container asks a dashboard, and takes every other command as it runs."""

from pathlib import Path

import pytest

from ranktune.dashboards.web.health import check
from tests.dashboards.web.test_connections import served

CONTAINERFILE = Path(__file__).resolve().parents[3] / "Containerfile"


def test_a_dashboard_is_healthy_while_it_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with served(tmp_path) as (_, port):
        for given in (["--port", str(port)], [f"--port={port}", "--host=0.0.0.0"]):
            assert check(["/opt/python", "ranktune", "show", "--live", *given, ""]) == 0
    assert check(["ranktune", "show", "--live", "--port", str(port)]) == 1
    assert f"does not answer at port {port}" in capsys.readouterr().err
    assert check(["ranktune", "tune", "data.csv", ""]) == 0  # no page is served


@pytest.mark.skipif(not CONTAINERFILE.exists(), reason="an installed package has no Containerfile")
def test_the_image_runs_it() -> None:
    (line,) = [line for line in CONTAINERFILE.read_text().splitlines() if line.startswith("HEALTHCHECK")]
    assert f'CMD ["python", "-m", "{check.__module__}"]' in line
