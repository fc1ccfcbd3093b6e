"""Nothing that another user of the machine wrote is believed: folders are checked, and attacks are tried."""

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or os.geteuid() != 0, reason="only root can act as several users"
)

VICTIM, ATTACKER, GROUP = 41_001, 41_002, 41_500
"""Two users whose primary group is the same."""


def acting(
    user: int, program: str, *given: str, group: int = GROUP, umask: int = 0o022, **environment: str
) -> tuple[str, str]:
    """Run a program as a user, who may read but not write everything, and return its two outputs."""
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH") if name in os.environ}
    rights = ["--inh-caps", "+dac_read_search", "--ambient-caps", "+dac_read_search"]  # the installation may be root's
    command = ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups", *rights, sys.executable, "-c"]
    done = subprocess.run(
        [*command, program, *given],
        env=kept | {"PYTHONDONTWRITEBYTECODE": "1", "HOME": "/nonexistent"} | environment,
        umask=umask, cwd="/", capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


@pytest.fixture(scope="module", autouse=True)
def _users() -> None:
    try:
        acting(VICTIM, "import ranktune.solvers.core.files.private")
    except (AssertionError, OSError) as error:
        pytest.skip(f"other users cannot be had here: {error}")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder of root that everyone can enter."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def owned(path: Path, user: int, mode: int) -> Path:
    path.mkdir(exist_ok=True)
    os.chown(path, user, GROUP)
    path.chmod(mode)
    return path


MADE = """
import json, sys
from pathlib import Path
from ranktune.solvers.core.files.private import is_writable, made_private
print(json.dumps([is_writable(Path(name)) and str(made_private(Path(name))) for name in json.loads(sys.argv[1])]))
"""
TRIED = """
import json, os, sys
found = []
for top, leaf in json.loads(sys.argv[1]):
    done = []
    path = leaf
    while path != top:
        try:
            os.rename(path, path + ".gone")
            os.rename(path + ".gone", path)
            done.append("moved " + path)
        except OSError:
            pass
        path = os.path.dirname(path)
    try:
        os.close(os.open(os.path.join(leaf, "planted"), os.O_CREAT | os.O_WRONLY))
        done.append("wrote into " + leaf)
    except OSError:
        pass
    found.append(done)
print(json.dumps(found))
"""
MODES = (0o700, 0o755, 0o750, 0o775, 0o770, 0o777, 0o1777, 0o2775, 0o757)


def test_a_folder_is_used_just_if_no_attack_on_it_succeeds(place: Path) -> None:
    levels = list(itertools.product((VICTIM, 0), MODES, (VICTIM, 0), MODES))
    leaves = []
    for number, (upper_user, upper_mode, user, mode) in enumerate(levels):
        upper = owned(place / str(number), upper_user, upper_mode)
        leaves.append(owned(upper / "cache", user, mode))
    used = json.loads(acting(VICTIM, MADE, json.dumps([str(leaf) for leaf in leaves]))[0])
    attack = json.dumps([(str(leaf.parent.parent), str(leaf)) for leaf in leaves])
    member = json.loads(acting(ATTACKER, TRIED, attack)[0])
    stranger = json.loads(acting(ATTACKER, TRIED, attack, group=ATTACKER)[0])
    for level, leaf, folder, *done in zip(levels, leaves, used, member, stranger, strict=True):
        assert not (folder and any(done)), (level, done)
        if not any(done) and level[2] == VICTIM:  # who can write there: it is not lost
            assert folder == str(leaf), level
    assert 20 < sum(map(bool, used)) < len(used) / 2


@pytest.mark.parametrize("kind", ["owner", "link", "link on the way"])
def test_what_belongs_to_another_is_not_used(kind: str, place: Path) -> None:
    own, foreign = owned(place / "own", VICTIM, 0o755), owned(place / "foreign", ATTACKER, 0o755)
    if kind == "owner":
        wanted = owned(own / "cache", ATTACKER, 0o777)
    elif kind == "link":
        wanted = own / "cache"
        wanted.symlink_to(owned(foreign / "cache", VICTIM, 0o700))
    else:  # a link of the victim's to a link of the attacker's to a folder of the victim's
        wanted = own / "cache"
        (foreign / "there").symlink_to(owned(place / "mine", VICTIM, 0o700))
        wanted.symlink_to("../foreign/there")
    assert json.loads(acting(VICTIM, MADE, json.dumps([str(wanted / "x")]))[0]) == [False]
    fine = own / "fine"
    fine.symlink_to("../own/real")
    real = owned(own / "real", VICTIM, 0o700)
    used = json.loads(acting(VICTIM, MADE, json.dumps([str(fine), str(fine / "x"), str(fine / ".." / "y")]))[0])
    assert used == [str(real), str(real / "x"), str(own / "y")]


KERNEL = """
import warnings
warnings.simplefilter("always")
from ranktune.solvers.losses.window_sums import offsets
from ranktune.solvers.core.machine_code.folders import code_folder
print(offsets(4).sum())
print(code_folder())
"""
PLANTED = """
import os, pickle, sys
from pathlib import Path

class Evil:
    def __reduce__(self):
        return os.system, ("touch " + sys.argv[2],)

evil = pickle.dumps(Evil())
for path in [path for path in Path(sys.argv[1]).rglob("*.nb?")]:
    path.unlink()
    path.write_bytes(evil * 2 if path.suffix == ".nbi" else evil)
"""


@pytest.mark.parametrize("umask", [0o002, 0o022, 0o077])
def test_no_umask_lets_the_group_in(umask: int, place: Path) -> None:
    home = owned(place / "home", VICTIM, 0o755)
    first, said = acting(VICTIM, KERNEL, umask=umask, RANKTUNE_CACHE=str(home / "new" / "cache"))
    folder = first.split()[1]
    assert said == "" and Path(folder).is_relative_to(home)
    every = [*Path(folder).parents, *(home / "new").rglob("*")]
    inside = [str(path) for path in every if path.is_relative_to(home / "new")]
    assert any(name.endswith(".nbc") for name in inside)
    assert not any(os.stat(name).st_mode & 0o077 for name in inside)
    (done,) = json.loads(acting(ATTACKER, TRIED, json.dumps([(str(home), folder)]))[0])
    assert done == []
    assert acting(VICTIM, KERNEL, umask=umask, RANKTUNE_CACHE=str(home / "new" / "cache")) == (first, "")


@pytest.mark.parametrize("attack", ["leaf", "release", "file", "open before"])
def test_planted_machine_code_is_not_run(attack: str, place: Path) -> None:
    home, marker = owned(place / "home", VICTIM, 0o755), owned(place / "open", 0, 0o1777) / "ran"
    cache, copy = home / "cache", owned(place / "copy", ATTACKER, 0o700)
    expected, _ = acting(VICTIM, KERNEL, umask=0o002, RANKTUNE_CACHE=str(cache))
    leaf = Path(expected.split()[1])
    target = {"leaf": leaf, "release": leaf.parent}.get(attack)
    if target is not None:  # as one who could write to the folder above once
        shutil.copytree(target, copy / "code")
        subprocess.run(["chown", "-R", f"{ATTACKER}:{GROUP}", copy], check=True)
        acting(ATTACKER, PLANTED, str(copy / "code"), str(marker))
        target.rename(target.with_name("old"))
        (copy / "code").rename(target)
        target.chmod(0o755)
    else:
        for path in [cache, *cache.rglob("*")]:
            path.chmod(0o777)
        acting(ATTACKER, PLANTED, str(cache), str(marker))
        for path in [cache, *cache.rglob("*")] if attack == "file" else [cache]:
            path.chmod(0o700)
    found, said = acting(VICTIM, KERNEL, umask=0o002, RANKTUNE_CACHE=str(cache))
    assert not marker.exists()
    assert found.split()[0] == expected.split()[0]
    assert said.count("compiled code") == 1
    acting(ATTACKER, "import os, sys; os.system('touch ' + sys.argv[1])", str(marker))
    assert marker.exists()  # the marker could have been made


READ = """
import sys, warnings
import numpy as np
from pathlib import Path
warnings.simplefilter("always")
from ranktune.solvers.data.conversion import cache
from ranktune.solvers.data.queries import Queries
source, reads = Path(sys.argv[1]), []

def read():
    reads.append(1)
    return Queries.from_arrays(np.arange(12.0).reshape(6, 2), [0, 1, 0, 1, 0, 1], qid=[1, 1, 1, 2, 2, 2])

queries = cache.read_cached(source, read, {})
print(len(reads), int(np.asarray(queries.features).sum()))
"""
POISONED = """
import sys
from pathlib import Path
import numpy as np
from ranktune.solvers.data.disk.stored import read_queries, source_of, write_queries

(folder,) = Path(sys.argv[1]).iterdir()
poisoned = read_queries(folder).with_features(np.full((6, 2), 9.0))
write_queries(poisoned, Path(sys.argv[2]), source=source_of(folder))
"""


@pytest.mark.parametrize("attack", ["none", "folder", "file", "above"])
def test_poisoned_arrays_are_not_read(attack: str, place: Path) -> None:
    home, copy = owned(place / "home", VICTIM, 0o755), owned(place / "copy", ATTACKER, 0o755)
    source, cache = home / "data.npz", home / "cache"
    source.write_text("some data\n")

    def read() -> tuple[list[str], str]:
        out, errors = acting(VICTIM, READ, str(source), umask=0o002, RANKTUNE_CACHE=str(cache))
        return out.split(), errors

    assert read() == (["1", "66"], "")
    assert read() == (["0", "66"], "")
    if attack == "none":
        return
    (kept,) = (cache / "data").iterdir()
    subprocess.run([sys.executable, "-c", POISONED, cache / "data", copy / "poisoned"], check=True)
    subprocess.run(["chown", "-R", f"{ATTACKER}:{GROUP}", copy], check=True)
    if attack == "file":
        for file in kept.iterdir():
            file.unlink()
            shutil.move(copy / "poisoned" / file.name, file)
    else:
        shutil.rmtree(kept)
        shutil.move(copy / "poisoned", kept)
        if attack == "above":
            subprocess.run(["chown", "-R", f"{VICTIM}:{GROUP}", kept], check=True)  # as if an owner could be forged
            (cache / "data").chmod(0o770)
    (reads, total), said = read()
    assert (int(reads) >= 1, total) == (True, "66")
    assert ("can be written by others" in said) == (attack == "above")


ACCOUNTS = """
import grp, pwd, sys
from pathlib import Path
from types import SimpleNamespace as Entry
victim = Entry(pw_name="victim", pw_gid=41500)
pwd.getpwuid = lambda _: victim
pwd.getpwall = lambda: [victim, *(Entry(pw_name=name, pw_gid=41500) for name in sys.argv[3].split())]
grp.getgrgid = lambda _: Entry(gr_mem=sys.argv[2].split())
from ranktune.solvers.core.files.private import is_writable
print(is_writable(Path(sys.argv[1])))
"""


@pytest.mark.parametrize(
    ("members", "of_that_group", "is_used"),
    [("", "", True), ("victim", "", True), ("second", "", False), ("", "second", False), ("victim second", "", False)],
)
def test_a_group_of_the_user_alone_is_no_danger(members: str, of_that_group: str, is_used: bool, place: Path) -> None:
    """As where the umask is 002, since each user has a group."""
    cache = str(owned(place / "cache", VICTIM, 0o775))
    assert acting(VICTIM, ACCOUNTS, cache, members, of_that_group)[0].strip() == str(is_used)
