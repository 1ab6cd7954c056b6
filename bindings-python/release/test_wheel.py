"""The wheel as a user gets it: built, installed without an index into an empty environment, used, and its types checked."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

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
    run(BIN / "maturin", "build", "--release", "--generate-stubs", "-m", PACKAGE / "Cargo.toml", "-o", folder)
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
    assert {"py.typed", "_leasehold.pyi", "_leasehold.abi3.so", "errors.py", "__init__.py"} <= files
    assert not [it for it in files if "trial" in it or "__pycache__" in it]
    licences = {it.name for it in unpacked.glob("*.dist-info/licenses/*")}
    assert licences == {"LICENSE-MIT", "LICENSE-APACHE"}
    # The tests' exports are not in it, nor is a folder of the machine that built it.
    binary = (unpacked / "leasehold" / "_leasehold.abi3.so").read_bytes()
    assert b"panic_next" not in binary
    assert str(PACKAGE).encode() not in binary


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
    program = "import leasehold; print(leasehold.__version__, leasehold.LeaseholdError.code, hasattr(leasehold._leasehold, 'trial'))"
    version = wheel.stem.split("-")[1]
    assert run(python, "-c", program).split() == [version, "internal", "False"]


def test_stubs_are_true(unpacked, tmp_path):
    told = run(sys.executable, "-m", "mypy.stubtest", "leasehold", PYTHONPATH=str(unpacked), MYPYPATH=str(unpacked), MYPY_CACHE_DIR=str(tmp_path))
    assert "Success" in told


def test_types_hold(unpacked, tmp_path):
    user = tmp_path / "user.py"
    user.write_text(
        "import leasehold\n"
        "version: str = leasehold.__version__\n"
        "try:\n    pass\nexcept leasehold.TimedOut as error:\n    code: str = error.code\n"
    )
    run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, "-p", "leasehold", MYPYPATH=str(unpacked))
    run(sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path, user, MYPYPATH=str(unpacked))
