"""Engines in processes of their own, on loopback: downloaded by Maven, started, asked by HTTP, ended by process id.

What is downloaded stays in the folder RANKTUNE_ENGINES, by default ~/.cache/ranktune-engines.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats

JAVA = Path(__file__).with_name("java")
CACHE = Path(os.environ.get("RANKTUNE_ENGINES") or Path.home() / ".cache" / "ranktune-engines")
STARTS = 120.0
"""Seconds that an engine may take to start."""
Score: TypeAlias = "Callable[[str, Sequence[str], Floats], Floats]"
"""Function(model, names of features, values with NaN for absent) that returns the scores of rows."""


def class_path(coordinates: Sequence[str]) -> str:
    """The jars of coordinates and of what they depend on, downloaded at the first use; skips where that fails."""
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            pytest.skip(f"there is no {tool}")
    folder = CACHE / hashlib.sha256("\n".join(coordinates).encode()).hexdigest()[:16]
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as made:
            parts = [dict(zip(("groupId", "artifactId", "version"), c.split(":"), strict=True)) for c in coordinates]
            wanted = "".join(
                f"<dependency>{''.join(f'<{key}>{value}</{key}>' for key, value in part.items())}</dependency>"
                for part in parts
            )
            head = (
                "<modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>"
            )
            pom = Path(made, "pom.xml")
            pom.write_text(f"<project>{head}<dependencies>{wanted}</dependencies></project>")
            copy = ("dependency:copy-dependencies", "-DoutputDirectory=jars", "-DincludeScope=runtime")
            done = subprocess.run(["mvn", "-B", "-q", "-f", pom, *copy], cwd=made, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"Maven could not download {coordinates[0]}: {done.stdout.strip()[-200:]}")
            Path(made, "jars").rename(folder)
    return f"{folder}/*"


def compiled(source: str, jars: str) -> str:
    """The folder of the classes of a file in java/, and of those that it uses."""
    text = b"".join(path.read_bytes() for path in sorted(JAVA.glob("*.java"))) + source.encode()
    folder = CACHE / hashlib.sha256(text + jars.encode()).hexdigest()[:16]
    if not folder.is_dir():
        with tempfile.TemporaryDirectory(dir=CACHE) as made:
            where = ["-d", f"{made}/classes", "-cp", jars, "-sourcepath", str(JAVA)]
            subprocess.run(["javac", "-nowarn", "-proc:none", *where, JAVA / f"{source}.java"], check=True)
            Path(made, "classes").rename(folder)
    return str(folder)


@contextmanager
def running(source: str, jars: str, *arguments: str, module: str = "") -> Iterator[str]:
    """Start a class of java/ and yield its address; module: what comes before the jars in the class path."""
    path = os.pathsep.join(part for part in (compiled(source, jars), module, jars) if part)
    command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", path, source, *arguments]
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT) as process:
            try:
                until = time.monotonic() + STARTS
                while True:
                    said.seek(0)
                    text = said.read()
                    port = next((line[5:] for line in text.splitlines() if line.startswith("PORT ")), None)
                    if port is not None:
                        break
                    if process.poll() is not None or time.monotonic() > until:
                        pytest.fail(f"{source} did not start: {text[-2000:]}")
                    time.sleep(0.1)
                yield f"http://127.0.0.1:{int(port)}"
            finally:
                process.kill()


@contextmanager
def scoring(source: str, jars: str) -> Iterator[Score]:
    """Start a class of java/ that serves Scores, and yield what scores documents; raises Refused."""
    path = os.pathsep.join((compiled(source, jars), jars))
    command = ["java", "-Xmx512m", "-XX:+UseSerialGC", "-cp", path, source]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(command, text=True, **pipes) as process:
        files = Path(folder, "model"), Path(folder, "documents")

        def score(model: str, names: Sequence[str], rows: Floats) -> Floats:
            lines = ["\t".join(quote(name, safe="") for name in names)]
            lines += ["\t".join("" if x != x else repr(x) for x in row) for row in rows.tolist()]
            for file, text in zip(files, (model, "\n".join(lines)), strict=True):
                file.write_text(text)
            assert process.stdin is not None and process.stdout is not None
            process.stdin.write("\t".join(map(str, files)) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
            if answer.startswith("REFUSED"):
                raise Refused(answer)
            return np.array(answer.split(), dtype=np.float64)

        try:
            yield score
        finally:
            process.kill()


class Refused(Exception):
    """What an engine answers that refuses a request."""


def ask(method: str, url: str, content: object = None) -> Any:
    """The answer of an engine to a request, both in JSON. Raises Refused."""
    assert urlsplit(url).hostname == "127.0.0.1"
    body = None if content is None else content if isinstance(content, bytes) else json.dumps(content).encode()
    try:
        with urlopen(Request(url, body, {"Content-Type": "application/json"}, method=method), timeout=600) as answer:
            return json.loads(answer.read() or b"{}")
    except HTTPError as error:
        raise Refused(f"{error.code}: {error.read().decode()[:2000]}") from None
