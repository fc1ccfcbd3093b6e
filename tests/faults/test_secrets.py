"""The password of a database is in no file, argument list or message of a study, in whichever form it is given."""

import os
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import quote

import pytest

from ranktune.solvers.core.machine_code.folders import code_folder
from tests.support.commands import SOLVERS, letor
from tests.support.postgres_server import USER, Server
from tests.support.process_samples import children

PATIENCE = 120.0

FORMS = {
    "before the host": "postgresql://{user}:{password}@127.0.0.1:{port}/{name}",
    "in the query": "postgresql://127.0.0.1:{port}/{name}?user={user}&password={password}",
    "first in the query": "postgresql://127.0.0.1:{port}/{name}?password={password}&user={user}",
    "all in the query": "postgresql:///{name}?host=127.0.0.1&port={port}&user={user}&password={password}",
    "in a file": "postgresql://{user}@127.0.0.1:{port}/{name}?passfile={file}",
    "in the environment": "postgresql://{user}@127.0.0.1:{port}/{name}",
}


@pytest.mark.parametrize("form", FORMS)
def test_nothing_holds_the_password(form: str, postgres: Server, tmp_path: Path) -> None:
    name = postgres.new_database().rpartition("/")[2]
    file = tmp_path / "pass"
    file.write_text(f"127.0.0.1:*:*:{USER}:{postgres.password}\n")
    file.chmod(0o600)
    place = {"user": USER, "password": quote(postgres.password), "port": postgres.port, "name": name, "file": file}
    url = FORMS[form].format(**place)
    letor(tmp_path / "train.txt", 20, 1)
    home, cache = tmp_path / "home", tmp_path / "cache"
    environment = os.environ | {"RANKTUNE_CACHE": str(cache), "NUMBA_CACHE_DIR": os.path.dirname(code_folder() or "")}
    if form == "in the environment":
        environment["PGPASSWORD"] = postgres.password
    seen = list[str]()
    command = [sys.executable, "-m", "ranktune", "tune", "train.txt", "--name", "n", "--trials", "4", *SOLVERS]
    command += ["--home", str(home), "--storage"]
    with subprocess.Popen(
        [*command, url, "--verbose"], cwd=tmp_path, env=environment,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        until = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < until:
            seen += children(process.pid).values()
            for path in home.rglob("lock"):
                seen.append(path.read_text())
            time.sleep(0.05)
        seen += process.communicate()
    assert process.returncode == 0, seen[-1]
    wrong = url.replace(postgres.password, f"wrong-{postgres.password}")  # which the server refuses
    second = subprocess.run(
        [*command, wrong],
        cwd=tmp_path, env=environment, capture_output=True, text=True,
    )  # fmt: skip
    seen += [second.stdout, second.stderr]
    for folder in (home, cache):
        seen += [path.read_bytes().decode("latin-1") for path in folder.rglob("*") if path.is_file()]
    assert len(seen) > 10
    assert [text[:200] for text in seen if postgres.password in text] == []
