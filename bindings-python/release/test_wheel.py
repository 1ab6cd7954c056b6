"""The wheel as a user gets it: built, installed without an index into an empty environment, used, and its types checked."""

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from email import message_from_string
from pathlib import Path

import pytest

# The wheel is built first, which can take minutes.
pytestmark = pytest.mark.timeout(900)

PACKAGE = Path(__file__).parent.parent
BIN = Path(sys.executable).parent


def run(*command, **environment):
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [str(it) for it in command], cwd="/", env=plain | environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    run(BIN / "maturin", "build", "--release", "-m", PACKAGE / "Cargo.toml", "-o", folder)
    (wheel,) = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="session")
def unpacked(wheel, tmp_path_factory):
    folder = tmp_path_factory.mktemp("unpacked")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def test_tags(wheel):
    name, version, python, abi, _platform = wheel.stem.split("-")
    assert (name, python, abi) == ("leasehold", "cp310", "abi3")


def test_content(unpacked):
    files = {str(it.relative_to(unpacked / "leasehold")) for it in (unpacked / "leasehold").rglob("*")}
    assert files == {"__init__.py", "_bodies.py", "_choices.py", "_functions.py", "_handles.py", "_leasehold.abi3.so", "_leasehold.pyi", "_settle.py", "aio", "aio/__init__.py", "aio/_face.py", "aio/limit.py", "aio/lock.py", "aio/pool.py", "aio/tokens.py", "asgi.py", "errors.py", "fence.py", "limits.py", "options.py", "py.typed", "sources.py", "views.py", "wsgi.py"}
    assert not [it for it in files if "trial" in it or "__pycache__" in it]
    licences = {it.name for it in unpacked.glob("*.dist-info/licenses/*")}
    assert licences == {"LICENSE-MIT", "LICENSE-APACHE"}
    # The tests' exports are not in it, nor is a folder of the machine that built it.
    binary = (unpacked / "leasehold" / "_leasehold.abi3.so").read_bytes()
    assert b"panic_next" not in binary
    assert str(PACKAGE).encode() not in binary


def test_metadata(unpacked):
    (metadata,) = unpacked.glob("*.dist-info/METADATA")
    fields = message_from_string(metadata.read_text()).items()
    told = {value for name, value in fields if name == "Classifier"}
    # What is built is for Linux, and for every Python from the one of the tag on.
    assert {it for it in told if it.startswith("Operating System")} == {"Operating System :: POSIX :: Linux"}
    versions = {f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 15)}
    assert told > versions | {"Framework :: AsyncIO", "Typing :: Typed"}
    assert {"Keywords", "License-Expression", "Requires-Python"} < {name for name, _ in fields}


def test_the_source_has_the_licences(tmp_path):
    run(BIN / "maturin", "sdist", "-m", PACKAGE / "Cargo.toml", "-o", tmp_path)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        folder = archive.name.removesuffix(".tar.gz")
        for name in ("LICENSE-MIT", "LICENSE-APACHE"):
            assert source.getmember(f"{folder}/{name}").size > 500


def interpreters():
    yield Path(sys.executable)
    for minor in range(10, 16):
        other = shutil.which(f"python3.{minor}")
        if other and minor != sys.version_info.minor:
            answer = subprocess.run([other, "-c", "import ensurepip"], capture_output=True, stdin=subprocess.DEVNULL)
            if answer.returncode == 0:
                yield Path(other)


@pytest.mark.parametrize("interpreter", list(interpreters()), ids=lambda it: it.name)
def test_install_without_an_index(wheel, tmp_path, interpreter):
    run(interpreter, "-m", "venv", tmp_path)
    python = tmp_path / "bin" / "python"
    run(python, "-m", "pip", "install", "-q", "--no-index", wheel, PIP_FIND_LINKS="", PIP_DISABLE_PIP_VERSION_CHECK="1")
    program = (
        "import leasehold\n"
        "with leasehold.open().pool('p', slots=['a']).acquire() as lease:\n"
        "    print(leasehold.__version__, lease.slot, hasattr(leasehold._leasehold, 'trial'))"
    )
    version = wheel.stem.split("-")[1]
    assert run(python, "-c", program).split() == [version, "a", "False"]


def test_stubs_are_true(unpacked, tmp_path):
    told = run(sys.executable, "-m", "mypy.stubtest", "leasehold", PYTHONPATH=str(unpacked), MYPYPATH=str(unpacked), MYPY_CACHE_DIR=str(tmp_path))
    assert "Success" in told


RIGHT = (PACKAGE / "release" / "consumer.py").read_text()
WRONG = """
import leasehold
lh = leasehold.open(namespce="x")
pool = lh.pool("p", ttl="30")
pool.acquire(timout=1)
lease = pool.acquire()
lease.nonce + 1
lease.used("5")
lh.pool("p", strategy="best")
lh.pool("p", read_nonce=5)
lh.lock("a", timout=1)
lh.lock("a").run(lambda it: it.fence, if_=True)
lh.limit("a", period=60)
lh.limit("a", max=1.5, period=60)
lh.limit("a", max=1, period=60, kind="leaky")
lh.limit("a", max=1, period=60).reserve(1)
lh.group([lh.lock("a")])
leasehold.limited(lh.limit("a", max=1, period=60))(len)(5)
lh.tokens("w")
lh.tokens("w", source=5)
lh.tokens("w", source=leasehold.TokensInMemory(), strategy="greedy")
lh.tokens("w", source=leasehold.TokensInMemory()).select(1.5)
lh.tokens("w", source=leasehold.TokensInMemory()).hear({"gone": "a"})
leasehold.TokensInMemory().add("w", "", {"id": "a"})
lh.limit_of("a", 1.5)
leasehold.limited(lambda: 5)(len)
leasehold.wsgi.LimitRequests(len, lh.limit("a", max=1, period=60))
leasehold.asgi.LimitRequests(print, lh.limit("a", max=1, period=60))
lh.limit("a", max=1, period=60).take()["alowed"]
"""


def test_types_hold(unpacked, tmp_path):
    user = tmp_path / "user.py"
    user.write_text(RIGHT)
    strict = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path)
    for version in ("3.10", "3.11"):
        run(*strict, "--python-version", version, "-p", "leasehold", MYPYPATH=str(unpacked))
        run(*strict, "--python-version", version, user, MYPYPATH=str(unpacked))
    run(sys.executable, user, PYTHONPATH=str(unpacked))


def test_mistakes_are_found_before_they_run(unpacked, tmp_path):
    user = tmp_path / "user.py"
    user.write_text(WRONG)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--hide-error-context", "--cache-dir", str(tmp_path), str(user)]
    told = subprocess.run(command, env=os.environ | {"MYPYPATH": str(unpacked)}, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    lines = {int(line.split(":")[1]) for line in told.stdout.splitlines() if ": error:" in line}
    assert lines == {3, 4, 5, 7, 8, 9, 10, 11, *range(12, 30)}, told.stdout
