"""Engines in processes of their own, on loopback: downloaded by Maven, started, asked by HTTP, ended by process id.

What is downloaded stays in the folder RANKTUNE_ENGINES, by default ~/.cache/ranktune-engines.
"""

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

import numpy as np
import pytest

from ranktune.solvers.core.arrays import Floats
from tests.engines.versions import ENGINES, LEAST_JAVA

JAVA = Path(__file__).with_name("java")
CACHE = Path(os.environ.get("RANKTUNE_ENGINES") or Path.home() / ".cache" / "ranktune-engines")
STARTS = 120.0
"""Seconds that an engine may take to start."""
Score: TypeAlias = "Callable[[str | bytes, Sequence[str], Floats], Floats]"
"""Function(model, names of features, values with NaN for absent) that returns the scores of rows."""


def java_home(engine: str) -> Path:
    """The first Java with a compiler that is new enough for an engine; skips where there is none."""
    least, javac = LEAST_JAVA.get(engine, 17), shutil.which("javac")
    homes = [Path(javac).resolve().parents[1]] if javac else []
    for home in homes + sorted(Path("/usr/lib/jvm").glob("*")):
        release = home / "release"
        version = re.search(r'JAVA_VERSION="(\d+)', release.read_text()) if release.is_file() else None
        if version and int(version[1]) >= least and (home / "bin" / "javac").is_file():
            return home
    pytest.skip(f"there is no Java of version {least} or later")


def once(key: bytes, make: Callable[[Path], None]) -> Path:
    """The folder of the cache for a key, which is made where it is not there, by one process at a time."""
    folder = CACHE / hashlib.sha256(key).hexdigest()[:16]
    CACHE.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock, tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            make(Path(scratch))
            Path(scratch, "made").rename(folder)
    return folder


def version_of(engine: str) -> str:
    """The version that is tried of an engine."""
    return ENGINES[engine][0].rpartition(":")[2]


def class_path(engine: str) -> str:
    """The jars of an engine and of what they depend on, downloaded at the first use; skips where that fails."""
    coordinates = ENGINES[engine]

    def download(folder: Path) -> None:
        if shutil.which("mvn") is None:
            pytest.skip("there is no mvn")
        parts = [dict(zip(("groupId", "artifactId", "version"), c.split(":"), strict=True)) for c in coordinates]
        wanted = "".join(
            f"<dependency>{''.join(f'<{key}>{value}</{key}>' for key, value in part.items())}</dependency>"
            for part in parts
        )
        head = "<modelVersion>4.0.0</modelVersion><groupId>x</groupId><artifactId>x</artifactId><version>1</version>"
        pom = folder / "pom.xml"
        pom.write_text(f"<project>{head}<dependencies>{wanted}</dependencies></project>")
        copy = ("dependency:copy-dependencies", "-DoutputDirectory=made", "-DincludeScope=runtime")
        done = subprocess.run(["mvn", "-B", "-q", "-f", pom, *copy], cwd=folder, capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"Maven could not download {coordinates[0]}: {done.stdout.strip()[-200:]}")

    return f"{once(chr(10).join(coordinates).encode(), download)}/*"


def command(source: str, engine: str, module: str = "") -> list[str]:
    """What runs a class of java/ with an engine; module: what comes before its jars in the class path."""
    home, jars = java_home(engine), class_path(engine)

    def compile(folder: Path) -> None:
        where = ["-d", str(folder / "made"), "-cp", jars, "-sourcepath", str(JAVA)]
        subprocess.run([home / "bin" / "javac", "-nowarn", "-proc:none", *where, JAVA / f"{source}.java"], check=True)

    text = b"".join(path.read_bytes() for path in sorted(JAVA.glob("*.java")))
    classes = once(text + f"{source} {jars} {home}".encode(), compile)
    path = os.pathsep.join(part for part in (str(classes), module, jars) if part)
    return [str(home / "bin" / "java"), "-Xmx512m", "-XX:+UseSerialGC", "-cp", path, source]


@contextmanager
def running(source: str, engine: str, *arguments: str, module: str = "") -> Iterator[str]:
    """Start a class of java/ with an engine, and yield its address."""
    started = [*command(source, engine, module), *arguments]
    with tempfile.TemporaryFile("w+") as said:
        with subprocess.Popen(started, stdin=subprocess.PIPE, stdout=said, stderr=subprocess.STDOUT) as process:
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
def scoring(source: str, engine: str) -> Iterator[Score]:
    """Start a class of java/ that serves Scores with an engine, and yield what scores documents; raises Refused."""
    started = command(source, engine)
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory() as folder, subprocess.Popen(started, text=True, **pipes) as process:
        files = Path(folder, "model"), Path(folder, "documents")

        def score(model: str | bytes, names: Sequence[str], rows: Floats) -> Floats:
            lines = ["\t".join(quote(name, safe="") for name in names)]
            lines += ["\t".join("" if x != x else repr(x) for x in row) for row in rows.tolist()]
            for file, content in zip(files, (model, "\n".join(lines)), strict=True):
                file.write_bytes(content if isinstance(content, bytes) else content.encode())
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


class Engine(NamedTuple):
    """A running engine: the format of its models, its version and its address."""

    format: str
    version: str
    url: str


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
