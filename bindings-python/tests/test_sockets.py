"""Sockets that the event loop watches for the library."""

import asyncio
import os
import time

import pytest

import leasehold
from conftest import Redis, until
from leasehold import _settle, aio


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


# It slept, and it took longer to wake up than a near server to answer.
@pytest.mark.skipif(os.cpu_count() == 1, reason="who looks keeps the server from running")
def test_the_event_loop_of_a_lone_caller_looks_for_its_answers_and_sleeps_when_none_is_to_come(redis: Redis, monkeypatch):
    look, looks = _settle.look, []

    def counted(bridge):
        looks.append(bridge)
        look(bridge)

    async def main() -> None:
        async with aio.open(redis.url) as store:
            limit = store.limit("looked-for", max=3, period=60)
            # On a machine that has much to do answers may be long in coming.
            end = time.monotonic() + 30
            while not looks:
                await limit.used()
                assert time.monotonic() < end
            await limit.used()
            busy = time.process_time()
            await asyncio.sleep(0.5)
            assert time.process_time() - busy < 0.25

    monkeypatch.setattr(_settle, "look", counted)
    asyncio.run(main())


# It waited for the loop to go round.
def test_what_a_lone_caller_asks_sets_out_at_once(redis: Redis):
    async def main() -> None:
        with leasehold.open(redis.url) as other:
            async with aio.open(redis.url) as store:
                seen, limit = other.limit("at-once", max=9, period=3600), store.limit("at-once", max=9, period=3600)
                await limit.increment()
                asked = limit.increment()
                going = asyncio.ensure_future(asked)
                # It begins in the loop's next round, of which this is a part.
                asyncio.get_running_loop().call_soon(until, lambda: seen.used() == 2, 20)
                assert await going

    asyncio.run(main())
