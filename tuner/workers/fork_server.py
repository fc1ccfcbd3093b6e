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
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import IO, Any

from ranktune.tuner.workers.limits import serve

FORKS = sys.platform == "linux"
"""Whether workers are forks; elsewhere each is a process that loads its libraries."""
ONE_THREAD = {
    f"{library}_NUM_THREADS": "1"
    for library in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA", "VECLIB_MAXIMUM")
}
_MOST = 1 << 16  # bytes of a message


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

    def __init__(self, server: ForkServer, pid: int, pipes: Sequence[IO[bytes]]) -> None:
        self._server, self.pid = server, pid
        self.stdin, self.stdout, self.stderr = pipes
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return how it ended, as Popen.returncode says it; None while it runs."""
        with self._server.lock:
            if self.returncode is None:
                try:
                    self.returncode = self._server.ask(self.pid)
                except OSError:  # it ended with the server
                    self.returncode = -signal.SIGKILL
        return self.returncode

    def kill(self) -> None:
        """End the process."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)  # it is there, dead or not, until it is polled


class ForkServer:
    """The process that forks workers. It ends, with them, with this process."""

    def __init__(self, load: Callable[[], None] | None) -> None:
        self.lock, self._asked = threading.RLock(), 0
        self._orders, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = started("fork_server.main", theirs)
        self._orders.send(pickle.dumps((0, pickle.dumps(load))))

    @property
    def dead(self) -> bool:
        """Whether it has ended, with its workers."""
        return self._process.poll() is not None

    def fork(self) -> Fork:
        """Return a new worker. Raises OSError where there can be none."""
        with ExitStack() as ends:
            pairs = [[*map(ends.enter_context, socket.socketpair())] for _ in range(3)]
            pid = self.ask(None, [theirs.fileno() for _, theirs in pairs])
            orders, messages, output = (ours for ours, _ in pairs)
            return Fork(self, pid, [orders.makefile("wb"), messages.makefile("rb"), output.makefile("rb")])

    def ask(self, order: object, files: Sequence[int] = ()) -> Any:
        """Return the answer to an order. Raises OSError."""
        with self.lock:
            self._asked += 1
            socket.send_fds(self._orders, [pickle.dumps((self._asked, order))], files)
            number, answer = 0, None
            while number != self._asked:  # an interrupt may have kept this process from hearing an earlier answer
                if not (message := self._orders.recv(_MOST)):
                    raise ConnectionError("what forks workers has ended")
                number, answer = pickle.loads(message)
        if isinstance(answer, OSError):
            raise answer
        return answer

    def end(self) -> None:
        """End the server and its workers."""
        self._process.kill()
        self._process.wait()
        self._orders.close()


def main(coordinator: int) -> None:
    """Answer orders on the standard input, until that ends: to call a function, to say how a worker ended, to fork."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.set_threshold(10_000)
    pid, orders = os.getpid(), socket.socket(fileno=os.dup(0))
    orders.settimeout(1.0)
    while os.getppid() == coordinator:  # a fork of the coordinator may hold the other end of the socket
        try:
            content, files, _, _ = socket.recv_fds(orders, _MOST, 3)
        except TimeoutError:
            continue
        if not content:
            return
        number, order = pickle.loads(content)
        answer: object = None
        if files:
            try:
                answer = os.fork()
            except OSError as error:
                answer = error
            if answer == 0:
                os.setpgid(0, 0)
                for target, file in enumerate(files):
                    os.dup2(file, target)
                    os.close(file)
                orders.close()
                serve(pid)
                os._exit(0)  # what the server registered to do at its end is not done
            for file in files:
                os.close(file)
        elif isinstance(order, int):
            found, status = os.waitpid(order, os.WNOHANG)
            answer = os.waitstatus_to_exitcode(status) if found else None
        else:
            with suppress(Exception):  # a worker that needs what cannot be loaded says why
                pickle.loads(order)()
            gc.freeze()  # collections would copy the pages that workers share
        orders.send(pickle.dumps((number, answer)))
