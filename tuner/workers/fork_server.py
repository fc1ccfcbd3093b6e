"""A process that loads the libraries of workers once, and forks each worker: that takes a hundredth of a second.

It only loads modules, so that it has one thread and no state of a library that a fork would not survive. Linux only:
on macOS a process that has loaded the libraries of the system must not be forked.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import IO, Any

from ranktune.tuner.workers.limits import serve

FORKS = sys.platform == "linux"
"""Whether workers are forks; elsewhere each is a process that loads its libraries."""
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA", "VECLIB_MAXIMUM")
}
_MOST = 1 << 17  # bytes of an order


def started(name: str, orders: socket.socket | None = None) -> subprocess.Popen[bytes]:
    """Return a process of its own group that calls MODULE.FUNCTION of this package with the number of this process.

    It has three pipes, or orders as its standard input. Its environment is set before any library is loaded.
    """
    module, _, function = name.partition(".")
    path = list(map(str, sys.path))  # paths may be there that are no text
    call = f"from {__package__}.{module} import {function}; {function}({os.getpid()})"
    code = f"import sys; sys.path[:] = {path!r}; {call}"
    group = 0 if os.name == "posix" else None
    output = subprocess.PIPE if orders is None else subprocess.DEVNULL
    return subprocess.Popen(
        [sys.executable, *(f"-W{option}" for option in sys.warnoptions), "-c", code],
        stdin=subprocess.PIPE if orders is None else orders.fileno(), stdout=output, stderr=output,
        env=os.environ | ONE_THREAD, process_group=group,
    )  # fmt: skip


class Fork:
    """A forked worker, with those attributes and methods of subprocess.Popen that WorkerProcess uses."""

    def __init__(self, server: ForkServer, pid: int, pipes: list[IO[bytes]]) -> None:
        self._server, self.pid = server, pid
        self.stdin, self.stdout, self.stderr = pipes
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return how it ended, as Popen.returncode says it; None while it runs."""
        if self.returncode is None:
            self.returncode = self._server.returncode(self)
        return self.returncode

    def wait(self, seconds: float) -> None:
        """Wait until it has ended. Raises TimeoutExpired."""
        until = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired("", seconds)
            time.sleep(0.001)

    def kill(self) -> None:
        """End the process."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)  # it is there, dead or not, until it is polled


class ForkServer:
    """The process that forks workers. It ends, with them, with this process."""

    def __init__(self, load: Callable[[], None] | None) -> None:
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._lock = threading.Lock()
        with theirs:
            self._process = started("fork_server.main", theirs)
        if load is not None:
            self._orders.send(pickle.dumps(load))

    @property
    def dead(self) -> bool:
        """Whether it has ended, with its workers."""
        return self._process.poll() is not None

    def fork(self) -> Fork:
        """Return a new worker. Raises OSError where there can be none."""
        with ExitStack() as unused, ExitStack() as failed:
            ours, theirs = list[IO[bytes]](), list[int]()
            for mode in ("wb", "rb", "rb"):
                read, write = os.pipe()
                theirs.append(read if mode == "wb" else write)
                unused.callback(os.close, theirs[-1])
                ours.append(failed.enter_context(os.fdopen(write if mode == "wb" else read, mode)))
            with self._lock:
                socket.send_fds(self._orders, [pickle.dumps(list(map(str, sys.path)))], theirs)
                answer = self._orders.recv(_MOST)
            pid = pickle.loads(answer) if answer else ConnectionError("what forks workers has ended")
            if isinstance(pid, OSError):
                raise pid
            failed.pop_all()
        return Fork(self, pid, ours)

    def returncode(self, worker: Fork) -> int | None:
        """Return how a worker ended, None while it runs."""
        with self._lock:
            if worker.returncode is not None:  # another thread has asked
                return worker.returncode
            with suppress(OSError):
                self._orders.send(pickle.dumps(worker.pid))
                if answer := self._orders.recv(_MOST):
                    worker.returncode = pickle.loads(answer)
                    return worker.returncode
        return -signal.SIGKILL  # it ended with the server

    def end(self) -> None:
        """End the server and its workers."""
        self._process.kill()
        self._process.wait()
        self._orders.close()


def main(coordinator: int) -> None:
    """Serve orders on the standard input, until that ends: to call a function, to fork, to say how a worker ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(10_000)
    own, orders = os.getpid(), socket.socket(fileno=os.dup(0))
    orders.settimeout(1.0)
    while os.getppid() == coordinator:  # a fork of the coordinator may hold the other end of the socket
        try:
            content, files, _, _ = socket.recv_fds(orders, _MOST, 3)
        except TimeoutError:
            continue
        if not content:
            return
        if not files:
            order: Any = pickle.loads(content)
            if isinstance(order, int):
                found, status = os.waitpid(order, os.WNOHANG)
                orders.send(pickle.dumps(os.waitstatus_to_exitcode(status) if found else None))
            else:
                with suppress(Exception):  # a worker that needs what cannot be loaded says why
                    order()
                gc.freeze()  # collections would copy the pages that workers share
            continue
        pid, failure = -1, None
        try:
            pid = os.fork()
            if pid > 0:
                os.setpgid(pid, pid)
        except OSError as error:
            failure = error
        if pid == 0:
            orders.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
                os.close(file)
            sys.path[:] = pickle.loads(content)
            serve(own)
            os._exit(0)  # what the server registered to do at its end is not done
        for file in files:
            os.close(file)
        orders.send(pickle.dumps(failure or pid))
