"""What the tests share: a Redis of their own, and a look at what they leave behind."""

from __future__ import annotations

import asyncio
import ctypes
import itertools
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import leasehold
from leasehold import _settle
from leasehold._leasehold import Pending, trial

# What runs in the background of a shell ignores Ctrl-C, and so would all that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def until(condition: Callable[[], bool], seconds: float = 5.0) -> None:
    """Waits for what another thread is about to do."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not come about"
        time.sleep(0.002)


def promise(pending: Pending) -> asyncio.Future[Any]:
    """The future of a call that has begun on the running loop."""
    future = asyncio.get_running_loop().create_future()
    _settle.expect(pending, future)
    return future


@pytest.fixture(autouse=True)
def nothing_left_behind() -> Iterator[None]:
    """No test leaves a live Rust future behind."""
    before = trial.alive()
    yield
    until(lambda: trial.alive() == before)


class Redis:
    """A server on a port that was free. It ends with this process, however that ends."""

    def __init__(self, folder: Path, *options: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        command = ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder), *options]
        # 1 is PR_SET_PDEATHSIG.
        prctl = ctypes.CDLL(None).prctl
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, preexec_fn=lambda: prctl(1, signal.SIGKILL)
        )
        self.url = f"redis://127.0.0.1:{self.port}"
        until(self.listens)

    def listens(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def command(self, *words: str) -> None:
        """Has the server do something behind the library's back."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(" ".join(words).encode() + b"\r\n")
            assert connection.recv(64).startswith(b"+OK")

    def told(self, command: str) -> bytes:
        """What the server answers, which must be short."""
        with socket.create_connection(("127.0.0.1", self.port)) as connection:
            connection.sendall(command.encode() + b"\r\n")
            return connection.recv(4096)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[Redis]:
    """A server that a test may break."""
    server = Redis(tmp_path)
    yield server
    server.kill()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[Redis]]:
    """Two nodes of a cluster, each with half of the slots."""
    nodes, buses = [], []
    for name in ["one", "other"]:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            buses.append(probe.getsockname()[1])
        (tmp_path / name).mkdir()
        nodes.append(Redis(tmp_path / name, "--cluster-enabled", "yes", "--cluster-port", str(buses[-1])))
    for node, slots in zip(nodes, ["0 8191", "8192 16383"], strict=True):
        node.command("CLUSTER ADDSLOTSRANGE", slots)
    nodes[0].command("CLUSTER MEET 127.0.0.1", str(nodes[1].port), str(buses[1]))

    def whole(node: Redis) -> bool:
        info = node.told("CLUSTER INFO")
        return b"cluster_state:ok" in info and b"slots_assigned:16384" in info

    until(lambda: all(map(whole, nodes)), 20.0)
    yield nodes
    for node in nodes:
        node.kill()


@pytest.fixture(scope="session")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    """The server of all tests. Older than the TTL of most of them: a server grants nothing for one TTL after its start."""
    server = Redis(tmp_path_factory.mktemp("redis"))
    time.sleep(3.1)
    yield server
    server.kill()


NUMBERS = itertools.count()


class Place:
    """A store that no other test uses."""

    def __init__(self, url: str) -> None:
        self.namespace = f"test:{os.getpid()}:{next(NUMBERS)}"
        self.url = f"memory:{self.namespace}" if url == "memory:" else url
        self.is_memory = url == "memory:"

    def open(self, face: ModuleType = leasehold, **options: Any) -> Any:
        """A handle of its own: sync, or that of `leasehold.aio`."""
        return face.open(self.url, namespace=self.namespace, **options)


@pytest.fixture(params=["memory", "redis"])
def place(request: pytest.FixtureRequest) -> Place:
    """Each store in turn."""
    return Place("memory:" if request.param == "memory" else request.getfixturevalue("redis").url)


@pytest.fixture
def lh(place: Place) -> Iterator[leasehold.Leasehold]:
    with place.open() as lh:
        yield lh


@pytest.fixture
def redis_place(redis: Redis) -> Place:
    return Place(redis.url)


@pytest.fixture
def memory() -> Place:
    return Place("memory:")
