"""What knows its pool or wallet, and is known to it as a function, is garbage like anything else; also at the interpreter's exit, where
what is held is given back."""

import asyncio
import contextvars
import gc
import socket
import subprocess
import sys
import textwrap
import threading
import time
import weakref

import pytest

import leasehold
from conftest import until
from leasehold import aio
from leasehold._settle import granted
from wallets import BRIEF

TTL = 3
ROWS = [{"id": "a", "amount": 1}]


class Relayer:
    """Has a pool or a wallet, whose functions are its methods."""

    def nonce(self, slot):
        return 7

    async def nonce_later(self, slot):
        return 7

    def page(self, ask):
        return ROWS

    def spent(self, wallet, ids):
        return []


def of_method(lh, relayer):
    return lh.pool("p", slots=["a"], ttl=TTL, read_nonce=relayer.nonce)


def of_coroutine(lh, relayer):
    return lh.pool("p", slots=["a"], ttl=TTL, read_nonce=relayer.nonce_later)


def of_closure(lh, relayer):
    return lh.pool("p", slots=["a"], ttl=TTL, read_nonce=lambda slot: relayer.nonce(slot))


def of_page(lh, relayer):
    return lh.tokens("w", **BRIEF, source=relayer.page)


def of_object(lh, relayer):
    return lh.tokens("w", **BRIEF, source=relayer)


KINDS = pytest.mark.parametrize("kind", [of_method, of_closure, of_page, of_object])


def nobody_is_left(those):
    gc.collect()
    return not [it for it in those if it() is not None]


@KINDS
def test_a_cycle_is_collected(memory, kind):
    lh = leasehold.open(memory.url)

    def one():
        relayer = Relayer()
        relayer.handle = kind(lh, relayer)
        return weakref.ref(relayer)

    assert nobody_is_left([one() for _ in range(20)])


@pytest.mark.parametrize("kind", [of_method, of_coroutine, of_closure, of_page, of_object])
def test_a_cycle_is_collected_with_asyncio(memory, kind):
    async def one(lh):
        relayer = Relayer()
        handle = kind(lh, relayer)
        relayer.handle = await handle if asyncio.iscoroutine(handle) else handle
        return weakref.ref(relayer)

    async def main():
        lh = aio.open(memory.url)
        assert nobody_is_left([await one(lh) for _ in range(20)])

    asyncio.run(main())


def test_a_cycle_through_the_context_of_a_coroutine_is_collected(memory):
    """A coroutine runs in the context in which its pool was opened, which may know what has the pool."""
    current = contextvars.ContextVar("current")

    async def one(lh):
        relayer = Relayer()
        current.set(relayer)
        relayer.handle = await lh.pool("p", slots=["a"], ttl=TTL, read_nonce=lambda slot: 7)
        return weakref.ref(relayer)

    async def main():
        lh = aio.open(memory.url)
        # A loop keeps the context of the first call.
        await lh.pool("p", slots=["a"], ttl=TTL)
        # Each in a task, and so in a context of its own.
        left = [await asyncio.create_task(one(lh)) for _ in range(20)]
        # This turn of the loop still has the last task.
        await asyncio.sleep(0)
        assert nobody_is_left(left)

    asyncio.run(main())


def test_a_lease_in_a_cycle_is_collected_and_forgotten(place):
    lh = place.open()
    relayer = Relayer()
    relayer.pool = of_method(lh, relayer)
    relayer.lease = relayer.pool.acquire(timeout=3)
    relayer = weakref.ref(relayer)
    assert nobody_is_left([relayer])
    # Of this pool nothing is left: it is another one that looks. Until the deadline nobody has the slot.
    pool = lh.pool("p", slots=["a"], ttl=TTL)
    until(lambda: pool.inspect()["ready"] == 1, seconds=20)


def test_a_lease_in_a_cycle_is_collected_and_forgotten_with_asyncio(place):
    async def one(lh):
        relayer = Relayer()
        relayer.pool = await of_coroutine(lh, relayer)
        relayer.lease = await relayer.pool.acquire(timeout=3)
        return weakref.ref(relayer)

    async def main():
        lh = place.open(aio)
        held = [await one(lh)]
        # This turn of the loop still has the future that had the lease.
        await asyncio.sleep(0)
        assert nobody_is_left(held)
        async with (await lh.pool("p", slots=["a"], ttl=TTL)).acquire(timeout=20):
            pass

    asyncio.run(main())


def test_a_selection_in_a_cycle_is_collected_and_forgotten(place):
    lh = place.open()
    relayer = Relayer()
    relayer.wallet = of_object(lh, relayer)
    relayer.selection = relayer.wallet.select(1, timeout=40)
    relayer = weakref.ref(relayer)
    assert nobody_is_left([relayer])
    wallet = lh.tokens("w", **BRIEF, source=lambda ask: ROWS)
    until(lambda: wallet.count_locked() == 0, seconds=30)


def test_a_lease_outlives_its_pool_and_reads_its_nonce(memory):
    answers = iter([5, 6])
    lease = leasehold.open(memory.url).pool("p", slots=["a"], ttl=TTL, read_nonce=lambda slot: next(answers)).acquire()
    gc.collect()
    assert (lease.nonce, lease.read_nonce()) == (5, 6)

    async def main():
        lease = await (await aio.open(memory.url).pool("q", slots=["a"], ttl=TTL, read_nonce=Relayer().nonce_later)).acquire()
        gc.collect()
        return await lease.read_nonce()

    assert asyncio.run(main()) == 7


def test_what_is_granted_and_not_taken_yet_keeps_the_function(memory):
    async def main():
        pool = await aio.open(memory.url).pool("p", slots=["a"], ttl=TTL, read_nonce=Relayer().nonce_later)
        started = pool._core.acquire()
        del pool
        gc.collect()
        (lease,) = await granted(started)
        return await aio.Lease(lease).read_nonce()

    assert asyncio.run(main()) == 7


def test_a_function_that_is_under_way_stays(memory):
    """It lets go of its own pool, and the collector comes, while it runs."""
    relayer = Relayer()

    def nonce(slot):
        relayer.pool = None
        gc.collect()
        return 7

    relayer.pool = leasehold.open(memory.url).pool("p", slots=["a"], ttl=TTL, read_nonce=nonce)
    with relayer.pool.acquire() as lease:
        assert lease.nonce == 7
        lease.unused()


def test_threads_read_while_the_collector_runs(memory):
    def work(number):
        for _ in range(50):
            relayer = Relayer()
            relayer.pool = leasehold.open(f"{memory.url}{number}").pool("p", slots=["a"], ttl=TTL, read_nonce=relayer.nonce)
            relayer.lease = relayer.pool.acquire(timeout=5)
            assert relayer.lease.read_nonce() == 7
            relayer.lease.release()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        gc.collect()
    for thread in threads:
        thread.join()


class Local:
    """What a caller has in a variable."""


async def fails(reason):
    raise ValueError(reason)


@pytest.mark.parametrize("kind", ["in vain", "cancelled", "without a nonce"])
def test_a_call_that_fails_keeps_nothing_of_its_callers(place, kind):
    """Not even until the collector comes: a lease among that would be renewed meanwhile."""
    alive = weakref.WeakSet()

    async def main():
        lh = place.open(aio, lock_ttl=TTL, response_timeout=0.5)
        lock, pool = lh.lock("a"), await lh.pool("p", slots=["a"], ttl=TTL, read_nonce=fails)
        calls = {
            "in vain": lambda: lock.acquire(timeout=0.001),
            "cancelled": lambda: asyncio.wait_for(lock.acquire(timeout=50), 0.001),
            "without a nonce": lambda: pool.acquire(timeout=6),
        }

        async def call():
            local = Local()
            alive.add(local)
            await calls[kind]()

        async with lock.acquire(timeout=6):
            for _ in range(5):
                try:
                    await call()
                except (leasehold.LeaseholdError, asyncio.TimeoutError):
                    continue
                raise AssertionError("was granted")
            # This turn of the loop still has the last one.
            await asyncio.sleep(0)
            assert not alive

    gc.collect()
    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()


def test_a_lock_of_a_caller_whose_next_call_fails_is_forgotten(memory):
    async def pay(lh):
        held = await lh.lock("account").acquire()
        await lh.lock("busy").acquire(timeout=0.001)
        return held

    async def main():
        lh = aio.open(memory.url, lock_ttl=1)
        async with lh.lock("busy").acquire():
            try:
                await pay(lh)
            except leasehold.TimedOut:
                pass
            # Renewed no more, it ends at its deadline.
            await (await lh.lock("account").acquire(timeout=30)).release()

    asyncio.run(main())


def test_a_call_that_waits_as_its_loop_is_closed_is_collected(memory):
    lh = aio.open(memory.url, lock_ttl=1)
    alive = weakref.WeakSet()

    async def work():
        local = Local(), await lh.lock("first").acquire()
        alive.add(local[0])
        await lh.lock("second").acquire(timeout=300)
        return local

    async def main():
        task = asyncio.ensure_future(work())
        await asyncio.sleep(0.01)
        assert not task.done()
        # A loop has its tasks weakly.
        tasks.append(weakref.ref(task))

    tasks = []
    with leasehold.open(memory.url, lock_ttl=1).lock("second").acquire():
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda loop, context: None)
        loop.run_until_complete(main())
        loop.close()
        del loop
    assert nobody_is_left(tasks)
    assert not alive
    leasehold.open(memory.url, lock_ttl=1).lock("first").acquire(timeout=30).release()


class Waiter:
    """Has the task in which it waits, for what knows a method of its."""

    async def nonce(self, slot):
        return 7

    async def nonce_that_never_comes(self, slot):
        await asyncio.sleep(300)

    async def for_a_slot(self, lh, silent):
        pool = await lh.pool("busy", slots=["a"], ttl=60, read_nonce=self.nonce)
        await pool.acquire(timeout=300)

    async def for_a_nonce(self, lh, silent):
        pool = await lh.pool("idle", slots=["a"], ttl=60, read_nonce=self.nonce_that_never_comes)
        await pool.acquire(timeout=300)

    async def for_a_pool(self, lh, silent):
        await silent.pool("busy", read_nonce=self.nonce)


# Such a call had them where the collector does not look, and with them its loop: what the loop's tasks held was renewed for ever.
@pytest.mark.parametrize("waits", [Waiter.for_a_slot, Waiter.for_a_nonce, Waiter.for_a_pool], ids=lambda it: it.__name__)
@pytest.mark.parametrize("closes", [True, False], ids=["closed", "not closed"])
@pytest.mark.filterwarnings("ignore:unclosed event loop:ResourceWarning")
def test_a_loop_whose_call_waits_for_what_knows_a_function_is_collected(memory, waits, closes):
    left = []

    async def work(waiter, silent):
        lh = aio.open(memory.url, lock_ttl=1)
        held = await lh.lock("first").acquire()
        await waits(waiter, lh, silent)
        return held

    async def main(silent):
        waiter = Waiter()
        waiter.task = asyncio.ensure_future(work(waiter, silent))
        # A loop has its tasks weakly.
        left.extend([weakref.ref(waiter), weakref.ref(waiter.task), weakref.ref(asyncio.get_running_loop())])
        await asyncio.sleep(0.05)
        assert not waiter.task.done()

    def run(url):
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda loop, context: None)
        loop.run_until_complete(main(aio.open(url, response_timeout=60)))
        if closes:
            loop.close()

    with socket.create_server(("127.0.0.1", 0)) as silent, leasehold.open(memory.url).pool("busy", slots=["a"], ttl=60).acquire():
        thread = threading.Thread(target=run, args=(f"redis://127.0.0.1:{silent.getsockname()[1]}",))
        thread.start()
        thread.join()
        assert len(left) == 3 and nobody_is_left(left)
    leasehold.open(memory.url, lock_ttl=1).lock("first").acquire(timeout=30).release()


SCRIPTS = {
    "a function for nonces": """
        lh = leasehold.open(URL, namespace=NAMESPACE, lock_ttl=6)
        pool = lh.pool("p", slots=["s"], ttl=6, read_nonce=lambda slot: 7)
        held = lh.lock("a").acquire(timeout=12)
    """,
    "a lease of the pool": """
        lh = leasehold.open(URL, namespace=NAMESPACE, lock_ttl=6)
        pool = lh.pool("p", slots=["s"], ttl=6, read_nonce=lambda slot: 7)
        lease, held = pool.acquire(timeout=12), lh.lock("a").acquire(timeout=12)
    """,
    "a source of tokens": """
        lh = leasehold.open(URL, namespace=NAMESPACE, lock_ttl=6)
        wallet = lh.tokens("w", source=lambda ask: [])
        held = lh.lock("a").acquire(timeout=12)
    """,
    "asyncio": """
        import asyncio

        async def nonce(slot):
            return 7

        async def main():
            global lh, pool, held
            asyncio.get_running_loop().set_exception_handler(lambda loop, context: None)
            lh = leasehold.aio.open(URL, namespace=NAMESPACE, lock_ttl=6)
            pool = await lh.pool("p", slots=["s"], ttl=6, read_nonce=nonce)
            held = await lh.lock("a").acquire(timeout=12)

        asyncio.run(main())
    """,
    "a loop that is not closed": """
        import asyncio

        async def main():
            global lh, held
            lh = leasehold.aio.open(URL, namespace=NAMESPACE, lock_ttl=6)
            held = await lh.lock("a").acquire(timeout=12)

        loop = asyncio.new_event_loop()
        loop.set_exception_handler(lambda loop, context: None)
        loop.run_until_complete(main())
    """,
}


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_is_held_at_the_exit_is_given_back(redis_place, script):
    lock = redis_place.open(lock_ttl=6).lock("a")
    # A server grants nothing for one time to live after its start.
    lock.acquire(timeout=12).release()
    preamble = f"import leasehold\nURL, NAMESPACE = {redis_place.url!r}, {redis_place.namespace!r}\n"
    subprocess.run([sys.executable, "-c", preamble + textwrap.dedent(SCRIPTS[script])], check=True, timeout=30)
    begun = time.monotonic()
    lock.acquire(timeout=12).release()
    assert time.monotonic() - begun < 2


def test_the_exit_waits_for_no_server(own_redis):
    """A server that went away costs the exit nothing."""
    script = f"""
        import leasehold, os, signal
        lh = leasehold.open({own_redis.url!r}, lock_ttl=2, response_timeout=0.3)
        pool = lh.pool("p", slots=["s"], ttl=2, read_nonce=lambda slot: 7)
        held = lh.lock("a").acquire(timeout=5)
        os.kill({own_redis.process.pid}, signal.SIGSTOP)
        print(__import__("time").time())
    """
    ended = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], check=True, timeout=30, capture_output=True, text=True)
    assert time.time() - float(ended.stdout) < 3
