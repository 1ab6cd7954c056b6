"""Locks that a majority of servers grants, with threads and with asyncio."""

import asyncio
import threading

import pytest

import leasehold
from conftest import Redis
from leasehold import aio, errors

# A server that has just started grants no lock for so long.
OPTIONS = {"response_timeout": 0.3, "lock_ttl": 3}


@pytest.fixture
def servers(tmp_path):
    folders = [tmp_path / str(at) for at in range(3)]
    for folder in folders:
        folder.mkdir()
    servers = [Redis(folder) for folder in folders]
    yield servers
    for server in servers:
        server.kill()


@pytest.fixture
def stores(memory):
    """Three in memory."""
    return [f"{memory.url}:{at}" for at in range(3)]


def test_a_majority_grants_it_and_one_server_may_fail(servers):
    urls = [server.url for server in servers]
    # One that does not grant yet would not hold what the others do.
    for url in urls:
        with leasehold.open(url, **OPTIONS) as alone:
            alone.lock("first").acquire(timeout=20).release()
    with leasehold.open_quorum(urls, **OPTIONS) as quorum, leasehold.open_quorum(urls, **OPTIONS) as other:
        lock = quorum.lock(["a", "b"], timeout=20)
        assert lock.run(lambda locked: (locked.names, locked.held)) == (["a", "b"], True)
        locked = lock.acquire()
        servers[0].kill()
        assert locked.lost(timeout=2 * OPTIONS["lock_ttl"]) is None, "two have renewed it"
        with pytest.raises(errors.Exhausted):
            other.lock("b", timeout=0).acquire()
        servers[1].kill()
        assert type(locked.lost(timeout=5)) is errors.Lost
        with pytest.raises(errors.Lost):
            locked.release()
        with pytest.raises(errors.StoreUnavailable, match="1 of 3 servers answered, and 2 must"):
            other.lock("c", timeout=0.5).acquire()


def test_one_at_a_time_is_inside(stores):
    inside = []

    def body(locked):
        inside.append(locked.fence)
        assert len(inside) == 1, "two were inside at once"
        inside.pop()

    def visit():
        with leasehold.open_quorum(stores) as quorum:
            for _ in range(5):
                quorum.lock("a", timeout=20).run(body)

    threads = [threading.Thread(target=visit) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for store in stores:
        leasehold.open(store).lock("a", timeout=0).acquire().release()


def test_the_same_with_asyncio(stores):
    async def main():
        async with aio.open_quorum(stores) as quorum, aio.open_quorum(stores) as other:
            async with quorum.lock("a").acquire() as locked:
                assert locked.held
                waits = asyncio.ensure_future(other.lock("a", timeout=20).run(lambda inner: inner.fence))
                with pytest.raises(errors.Exhausted):
                    await other.lock("a", timeout=0).acquire()
            assert await waits > 0
            locked = await quorum.lock("a").acquire()
            waits = asyncio.ensure_future(other.lock("a", timeout=20).acquire())
            await asyncio.sleep(0.02)
            await other.close()
            with pytest.raises(errors.Cancelled):
                await waits
            await locked.release()
            assert repr(quorum) == "<leasehold Quorum { servers: 3 }>"

    asyncio.run(main())


def test_what_cannot_be_is_named(stores):
    for opened in (leasehold.open_quorum, aio.open_quorum):
        for servers, field in ((["redis://a/1", "redis://a/2"], "servers[1]"), ([], "servers"), ("redis://a", "servers"), (3, "servers")):
            with pytest.raises(errors.InvalidArgument) as caught:
                opened(servers)
            assert caught.value.field == field
        with pytest.raises(errors.InvalidArgument) as caught:
            opened(stores).lock("a", priority=1)
        assert caught.value.field == "priority"
        with pytest.raises(errors.InvalidArgument) as caught:
            opened(stores, lock_ageing=1)
        assert caught.value.field == "lock_ageing"
