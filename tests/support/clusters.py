"""Clusters on loopback, whose processes are children of the test and are ended by their numbers."""

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from ranktune.solvers.core.machine_code.folders import code_folder
from tests.support.paths import ROOT
from tests.support.process_samples import SOON


class Processes:
    """Processes that run until end."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.processes: list[subprocess.Popen[bytes]] = []
        paths = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(ROOT)]))  # functions of tests are there
        params = {"RANKTUNE_CACHE": str(folder / "cache"), "PYTHONWARNINGS": "ignore", "PYTHONPATH": paths}
        compiled = code_folder()  # so that workers need not compile what is compiled here
        self.environment = (
            os.environ | params | ({} if compiled is None else {"NUMBA_CACHE_DIR": str(Path(compiled).parent)})
        )

    def run(self, *command: str) -> int:
        """Start a process and return its number."""
        with open(self.folder / f"{len(self.processes)}.log", "wb") as log:
            process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=log, stderr=log)
        self.processes.append(process)
        return process.pid

    def end(self) -> None:
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class DaskCluster(Processes):
    """A scheduler and workers of Dask."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.scheduler = self._scheduler("0")

    def _scheduler(self, port: str) -> int:
        """Start a scheduler, wait until it has written its address, and return its number."""
        file = self.folder / "scheduler.json"
        file.unlink(missing_ok=True)
        where = ("--host", "127.0.0.1", "--port", port, "--scheduler-file", str(file), "--no-dashboard")
        number, until = self.start("scheduler", *where), time.monotonic() + SOON
        self.address = ""
        while not self.address and time.monotonic() < until:
            time.sleep(0.05)
            with suppress(OSError, ValueError):  # not yet written, or not all of it
                self.address = json.loads(file.read_text())["address"]
        return number

    def restart(self) -> None:
        """Start another scheduler at the address of the first."""
        self.scheduler = self._scheduler(self.address.rpartition(":")[2])

    def start(self, kind: str, *options: str) -> int:
        """Start a process of Dask's and return its number."""
        return self.run(sys.executable, "-m", "distributed.cli.dask_" + kind, *options)

    def worker(self, *options: str) -> int:
        """Start a worker of one thread."""
        alone = ("--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1", "--local-directory", str(self.folder))
        return self.start("worker", self.address, *alone, *options)


RAY_ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(16),
}
"""Of nodes and drivers, read when ray is loaded. Ray listens on the address of the machine, hence the token."""


class RayCluster(Processes):
    """A head node and further nodes of Ray, each a process with children, which `ray start --block` ends with it."""

    def __init__(self, folder: Path, cpus: int) -> None:
        super().__init__(folder)
        self.environment |= RAY_ENVIRONMENT
        self.temporary = tempfile.mkdtemp(prefix="ray-", dir="/tmp")  # names of its sockets must be short
        with socket.create_server(("", 0)) as free:
            port = free.getsockname()[1]
        self.node("--head", f"--port={port}", f"--temp-dir={self.temporary}", "--include-dashboard=false", cpus=cpus)
        self.address = ""
        until = time.monotonic() + 2 * SOON
        while not self.address and time.monotonic() < until:
            time.sleep(0.2)
            result = re.search(r"ray start --address='([^']+)'", (folder / "0.log").read_text())
            self.address = result[1] if result else ""

    def node(self, *options: str, cpus: int) -> int:
        """Start a node and return the number of its process."""
        where = options or (f"--address={self.address}",)
        return self.run(
            sys.executable, "-m", "ray.scripts.scripts", "start", *where, f"--num-cpus={cpus}", "--block",
            f"--object-store-memory={80 * 2**20}", "--disable-usage-stats",
        )  # fmt: skip

    def end(self) -> None:
        super().end()
        shutil.rmtree(self.temporary, ignore_errors=True)
