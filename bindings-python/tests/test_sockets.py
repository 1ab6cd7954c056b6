"""Sockets that the event loop watches for the library."""

import asyncio

import pytest

from conftest import Redis
from leasehold import aio


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
