"""Two signals end a command within seconds, also where compiled code runs that no signal interrupts."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ranktune.second_signal import second_signal_ends
from tests.support.commands import SOLVERS, letor

SOON = 20.0
"""Seconds, of five that are promised: a safety net under load."""

STUCK = """
import hashlib, sys
from ranktune.second_signal import second_signal_ends
with second_signal_ends(0.5):
    print("begun", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 2 * 10**9)  # minutes without the interpreter's lock, like a kernel
"""


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_a_process_that_does_not_listen_is_ended(number: signal.Signals) -> None:
    prelude = f"import signal; signal.signal({int(number)}, signal.default_int_handler)\n"
    with subprocess.Popen(
        [sys.executable, "-c", prelude + STUCK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == "begun\n"
        time.sleep(0.5)  # until it is in the compiled code
        process.send_signal(number)
        time.sleep(0.1)
        assert process.poll() is None
        begun = time.monotonic()
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert time.monotonic() - begun < SOON
    assert process.returncode == 130
    assert errors.startswith("Interrupted.")


def test_a_server_that_was_asked_to_end_once_may_take_its_time() -> None:
    pytest.importorskip("uvicorn", reason="uvicorn is not here: pip install 'ranktune[dashboard]'")
    code = (
        "import signal, time, uvicorn\n"
        "from ranktune.second_signal import second_signal_ends\n"
        "from ranktune.dashboards.web.connections import Server\n"
        "with second_signal_ends(0.1):\n"
        "    server = Server(uvicorn.Config('none'))\n"
        "    with server.capture_signals():\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    assert server.should_exit\n"
        "    time.sleep(1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_previous_state_is_restored() -> None:
    before = signal.set_wakeup_fd(-1)
    signal.set_wakeup_fd(before)
    with second_signal_ends():
        assert signal.set_wakeup_fd(signal.set_wakeup_fd(-1)) == -1
    assert signal.set_wakeup_fd(before) == before


def test_an_interrupt_within_exec_ends_with_the_exit_code_too(tmp_path: Path) -> None:
    (tmp_path / "interrupted.py").write_text(
        "from ranktune import cli\n"
        "from ranktune.command_line import app\n"
        "def run():\n"
        "    raise KeyboardInterrupt\n"
        "app.run = lambda *_: exec('run()', {'run': run})\n"
        "cli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "interrupted"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "Interrupted.\n")


def interrupted(folder: Path, seed: int) -> tuple[int, str, float]:
    """Send two signals to a study at random moments; return its exit code, what it said and seconds."""
    generator = random.Random(seed)
    first, second = generator.uniform(0.0, 3.0), generator.uniform(0.0, 1.0)
    jobs = str(generator.choice((1, 2)))
    command = [sys.executable, "-m", "ranktune", "tune", "train.txt", "--trials", "30", *SOLVERS, "--jobs", jobs]
    with subprocess.Popen(
        [*command, "--name", f"n{seed}"], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None and process.stderr.readline()
        time.sleep(first)
        process.send_signal(generator.choice((signal.SIGINT, signal.SIGTERM)))
        time.sleep(second)
        begun = time.monotonic()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    return process.returncode, f"seed {seed}, {first:.3f} s, {second:.3f} s: {errors}", time.monotonic() - begun


MOMENTS = (
    pytest.param(range(4), marks=pytest.mark.thorough),
    *(pytest.param(range(k, k + 50), marks=pytest.mark.slow) for k in range(0, 500, 50)),
)


@pytest.mark.parametrize("seeds", MOMENTS)
def test_signals_at_random_moments(seeds: range, tmp_path: Path) -> None:
    letor(tmp_path / "train.txt", 100, 1, documents=20)
    for seed in seeds:
        code, said, seconds = interrupted(tmp_path, seed)
        assert code in (130, 0) and "Traceback" not in said and seconds < SOON, (code, said)
