"""Sockets that the event loop watches for the library."""

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import leasehold
from conftest import Redis
from leasehold import _settle, aio
from leasehold._leasehold import trial


class Interrupted(asyncio.SelectorEventLoop):
    """Interrupted as it has begun to watch the first socket. Before that it has the bell."""

    watched = 0

    def add_reader(self, fd, callback, *arguments):
        super().add_reader(fd, callback, *arguments)
        self.watched += 1
        if self.watched == 2:
            raise KeyboardInterrupt("now")


# It was lost.
def test_an_interrupt_as_a_socket_is_handed_over_is_raised_in_the_loop(redis: Redis):
    async def main() -> None:
        limit = aio.open(redis.url).limit("interrupted", max=3, period=60)
        for _ in range(1_000):
            await limit.used()
        await asyncio.sleep(1)

    with pytest.raises(KeyboardInterrupt, match="now"), asyncio.Runner(loop_factory=Interrupted) as runner:
        runner.run(main())


LOOKING = """
import asyncio, sys, time
from leasehold import _settle, aio

looks, look = [], _settle.look

def counted(*given):
    looks.append(given)
    look(*given)

async def main():
    async with aio.open(sys.argv[1]) as store:
        limit = store.limit("looked-for", max=3, period=60)
        # On a machine that has much to do answers may be long in coming.
        end = time.monotonic() + 30
        while not looks and time.monotonic() < end:
            await limit.used()
        await limit.used()
        busy = time.process_time()
        await asyncio.sleep(0.5)
        assert time.process_time() - busy < 0.25, "it sleeps when no answer is to come"

_settle.look = counted
asyncio.run(main())
print("looks" if looks else "sleeps")
"""


# It slept, and it took longer to wake up than a near server to answer. In a process of its own: this one may have threads.
def test_the_event_loop_of_a_lone_caller_looks_for_its_answers_and_sleeps_when_none_is_to_come(redis: Redis):
    said = subprocess.run([sys.executable, "-c", LOOKING, redis.url], capture_output=True, text=True, timeout=60)
    assert said.stdout.strip() == ("looks" if trial.looks() else "sleeps"), said.stderr


# It hardly ever had it.
def test_a_loop_does_not_look_while_another_thread_may_want_the_interpreter(redis: Redis, monkeypatch):
    looks: list[object] = []
    monkeypatch.setattr(_settle, "look", lambda *given: looks.append(given))
    begins, ends = threading.Event(), threading.Event()

    def read_nonce(_: object) -> int:
        begins.set()
        ends.wait()
        return 7

    async def main() -> None:
        async with aio.open(redis.url) as store:
            limit = store.limit("shared", max=3, period=60)
            # A thread of this library, of which Python's own list does not tell.
            pool = await store.pool("asking", slots=["a"], ttl=3, read_nonce=read_nonce)
            asking = asyncio.ensure_future(pool.acquire(timeout=20))
            while not begins.is_set():
                await asyncio.sleep(0.01)
            looks.clear()
            for _ in range(100):
                await limit.used()
            looked = len(looks)
            ends.set()
            await asking
            assert not looked

    asyncio.run(main())


# It waited for the loop to go round.
def test_what_a_lone_caller_asks_sets_out_at_once_and_what_many_ask_together(redis: Redis):
    async def main() -> None:
        loop = asyncio.get_running_loop()
        # What a thread asks itself sets out with what its loop has held.
        with leasehold.open(redis.url) as other, ThreadPoolExecutor(1) as thread:
            async with aio.open(redis.url) as store:
                there, limit = other.limit("at-once", max=99, period=3600), store.limit("at-once", max=99, period=3600)

                def takes(count: int) -> list[asyncio.Future[object]]:
                    return [asyncio.ensure_future(limit.increment()) for _ in range(count)]

                async def seen_in_the_round_in_which_it_begins(count: int, seconds: float) -> bool:
                    before, seen = there.used(), []
                    asked = takes(count)
                    # Behind those, which begin in the next round, and before its end.
                    loop.call_soon(lambda: seen.append(thread.submit(came, lambda: there.used() > before, seconds).result()))
                    await asyncio.gather(*asked)
                    return seen[0]

                # Who is alone between many is not known to be.
                for _ in range(10):
                    await limit.increment()
                    # After a tenth of a second somebody else would send it.
                    assert not await seen_in_the_round_in_which_it_begins(3, 0.05)
                for _ in range(10):
                    await limit.increment()
                assert await seen_in_the_round_in_which_it_begins(1, 20)

    asyncio.run(main())


def came(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether it comes about though the loop does nothing."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
    return False


# The call stayed under way for as long as anybody had the exception, and what it was granted.
def test_an_interrupt_as_a_call_sets_out_drops_it(redis: Redis, monkeypatch):
    async def main() -> None:
        async with aio.open(redis.url) as store:
            pool = await store.pool("interrupted", slots=["a"], ttl=4)
            await (await pool.acquire(timeout=20)).release()
            expect = _settle.expect

            def interrupted(started, future):
                expect(started, future)
                raise KeyboardInterrupt

            monkeypatch.setattr(_settle, "expect", interrupted)
            with pytest.raises(KeyboardInterrupt) as raised:
                await pool.acquire()
            monkeypatch.setattr(_settle, "expect", expect)
            assert await pool.acquire(timeout=2)
            del raised

    asyncio.run(main())


# What was asked then failed once its time was over.
def test_after_a_round_that_was_interrupted_the_loop_still_comes(redis: Redis, monkeypatch):
    async def main() -> None:
        async with aio.open(redis.url) as store:
            limit = store.limit("lost", max=3, period=60)
            await limit.used()
            # The loop is told to come, and does not.
            answer = _settle.answer
            monkeypatch.setattr(_settle, "answer", lambda _: None)
            lost = asyncio.ensure_future(limit.used())
            await asyncio.sleep(0.1)
            monkeypatch.setattr(_settle, "answer", answer)
            began = time.monotonic()
            assert await limit.used() == 0
            assert await lost == 0
            assert time.monotonic() - began < 3

    asyncio.run(main())
