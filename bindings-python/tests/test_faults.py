"""A Redis that is down, hangs or refuses; and passwords, which nothing shows."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback

import pytest

import leasehold
from conftest import Redis, until
from leasehold import aio, errors

CANARY = "hunter2canary"


def shown(error):
    return "".join([str(error), repr(error), repr(error.args), repr(vars(error)), *traceback.format_exception(error)])


def test_a_store_that_is_not_there():
    lh = leasehold.open(f"redis://user:{CANARY}@127.0.0.1:1", response_timeout=0.3)
    begun = time.monotonic()
    with pytest.raises(errors.StoreUnavailable) as caught:
        lh.pool("p", slots=["a"])
    assert time.monotonic() - begun < 2
    assert CANARY not in shown(caught.value) + repr(lh)

    async def main():
        with pytest.raises(errors.StoreUnavailable):
            await aio.open("redis://127.0.0.1:1", response_timeout=0.3).pool("p", slots=["a"])

    asyncio.run(main())


@pytest.mark.parametrize(
    "url", [f"redis://user:{CANARY}@host:notaport/0", f"rediss://u:{CANARY}@[::1", f"http://u:{CANARY}@host", f"redis://:{CANARY}@h/{CANARY}"]
)
def test_a_wrong_url_is_not_repeated(url):
    for open in (leasehold.open, aio.open, lambda url: leasehold.open({"mode": "shared", "redis": {"endpoint": url}})):
        with pytest.raises(errors.InvalidArgument) as caught:
            open(url)
        text = "".join([str(caught.value), repr(caught.value), repr(vars(caught.value))])
        assert CANARY not in text


def test_a_wrong_password_is_not_shown(tmp_path):
    server = Redis(tmp_path, "--requirepass", "right")
    try:
        url = f"redis://:{CANARY}@127.0.0.1:{server.port}"
        lh = leasehold.open(url, response_timeout=0.3)
        with pytest.raises(errors.StoreUnavailable) as caught:
            lh.pool("p", slots=["a"])
        assert CANARY not in shown(caught.value) + repr(lh)
    finally:
        server.kill()


MAKES = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=test -addext basicConstraints=CA:FALSE"


def test_rediss_believes_what_ssl_cert_file_names_and_nobody_else(tmp_path):
    certificate, key = str(tmp_path / "certificate.pem"), str(tmp_path / "key.pem")
    files = ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", certificate]
    subprocess.run([*MAKES.split(), *files], check=True, capture_output=True)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = Redis(tmp_path, "--tls-port", str(port), "--tls-cert-file", certificate, "--tls-key-file", key, "--tls-auth-clients", "no")
    code = f"""
import leasehold
lh = leasehold.open("rediss://127.0.0.1:{port}", response_timeout=1)
try:
    print(lh.pool("p", slots=["a"], ttl=1).acquire(timeout=20).held)
except leasehold.errors.StoreUnavailable as error:
    print(error.code)
"""
    try:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("SSL_CERT_")}
        for believed, said in (({"SSL_CERT_FILE": certificate}, "True\n"), ({}, "store_unavailable\n")):
            process = [sys.executable, "-c", code]
            told = subprocess.run(process, env={**environment, **believed}, capture_output=True, text=True, timeout=60, check=True)
            assert told.stdout == said
    finally:
        server.kill()


def test_a_cluster_is_followed_to_whichever_node_has_a_pool(cluster):
    url = f"redis+cluster://127.0.0.1:{cluster[0].port}"
    with leasehold.open(url) as lh:
        for number in range(8):
            with lh.pool(f"p{number}", slots=["a"], ttl=1.0).acquire(timeout=15.0) as lease:
                assert lease.held
    assert all(not node.told("DBSIZE").startswith(b":0") for node in cluster), "both are used"
    with pytest.raises(errors.InvalidArgument):
        leasehold.open(f"{url}/1")


def test_a_store_that_dies(own_redis):
    pool = leasehold.open(own_redis.url, response_timeout=0.3).pool("p", slots=["a", "b"], ttl=0.3)
    lease = pool.acquire(timeout=5)
    own_redis.kill()
    silent = [lambda: pool.acquire(timeout=0.3), lambda: pool.acquire(timeout=0), lease.renew, pool.list]
    # That its deadline passed meanwhile, no store has to say.
    for call, error in [*((call, errors.StoreUnavailable) for call in silent), (lease.release, errors.Lost)]:
        begun = time.monotonic()
        with pytest.raises(error):
            call()
        assert time.monotonic() - begun < 2


# A payment had been sent, and whoever tried again on an error sent it twice.
def test_a_store_that_hangs_at_the_end_of_a_block(own_redis):
    def source(_):
        return [{"id": "t1", "amount": 5}]

    patient = {"ttl": 3, "timeout": 9}

    def send(lh):
        pool, wallet = lh.pool("p", slots=["a"], ttl=3), lh.tokens("w", source=source, settle=1, max_age=1, **patient)
        limit = lh.limit("l", max=2, period=1)
        with wallet.select(3), pool.acquire(timeout=9) as lease, lh.lock("n").acquire(**patient), limit.reserve(ttl=9):
            own_redis.process.send_signal(signal.SIGSTOP)
            return "0x1", lease

    async def send_later(lh):
        pool, wallet = await lh.pool("p", slots=["a"], ttl=3), lh.tokens("w", source=source, settle=1, max_age=1, **patient)
        limit = lh.limit("l", max=2, period=1)
        async with wallet.select(3), pool.acquire(timeout=9) as lease, lh.lock("n").acquire(**patient), await limit.reserve(ttl=9):
            own_redis.process.send_signal(signal.SIGSTOP)
            return "0x1", lease

    for open, run in ((leasehold.open, send), (aio.open, lambda lh: asyncio.run(send_later(lh)))):
        try:
            sent, lease = run(open(own_redis.url, response_timeout=0.3, lock_ttl=3))
        finally:
            own_redis.process.send_signal(signal.SIGCONT)
        assert sent == "0x1"
        assert not lease.held


# They ended as if nothing were wrong: no store said that their time had passed.
def test_a_block_that_outlived_what_it_had_fails_though_the_store_is_silent(own_redis):
    patient = {"ttl": 1, "timeout": 9}
    lh = leasehold.open(own_redis.url, response_timeout=0.3, lock_ttl=1)
    wallet = lh.tokens("w", source=lambda _: [{"id": "t1", "amount": 5}], settle=1, max_age=1, **patient)
    pool = lh.pool("p", slots=["a"], ttl=1)
    for has in (lambda: pool.acquire(timeout=9), lambda: wallet.select(3, keepalive=False)):
        try:
            with pytest.raises(errors.Lost), has() as had:
                own_redis.process.send_signal(signal.SIGSTOP)
                until(lambda had=had: not had.held)
        finally:
            own_redis.process.send_signal(signal.SIGCONT)


def test_a_store_that_hangs(own_redis):
    lh = leasehold.open(own_redis.url, response_timeout=0.3)
    pool = lh.pool("p", slots=["a", "b"], ttl=0.3)
    lease = pool.acquire(timeout=5)
    own_redis.process.send_signal(signal.SIGSTOP)
    try:
        for call in (lambda: pool.acquire(timeout=0.4), lease.renew):
            begun = time.monotonic()
            with pytest.raises(errors.StoreUnavailable):
                call()
            assert time.monotonic() - begun < 2

        async def main():
            begun = time.monotonic()
            with pytest.raises(errors.StoreUnavailable):
                await aio.open(own_redis.url, response_timeout=0.3).pool("p")
            assert time.monotonic() - begun < 2

        asyncio.run(main())
    finally:
        own_redis.process.send_signal(signal.SIGCONT)
    with pool.acquire(timeout=5) as lease:
        assert lease.held


def test_ctrl_c_ends_a_wait_and_leaves_nothing(place):
    pool = place.open().pool("p", slots=["a"], ttl=3 if not place.is_memory else 30)
    with pool.acquire(timeout=3):
        timer = threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        begun = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            pool.acquire(timeout=20)
        assert time.monotonic() - begun < 5
        timer.join()
        until(lambda: pool.statistics()["waiting"] == 0)
    with pool.acquire(timeout=2):
        pass
